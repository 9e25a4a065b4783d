"""Questions about a directed graph, answered in compiled code over arrays of edges.

A graph is a number of nodes n and two equally long arrays of whole numbers, the source and the target of each edge.
Parallel edges and self-loops are allowed.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from verifier.base.arrays import Ints, Mask, marked
from verifier.base.errors import LimitError

Nodes = NDArray[np.int64] | NDArray[np.int32]

_ROUNDS = 500
"""Levels after which the number of all of them is foreseen."""
FEW = 300
"""Edges up to which a search in Python is faster than to hand the graph to compiled code."""
_MOST_EDGES = 2**31 - 1
"""The compiled searches number edges with 32 bits."""


def reachable(n: int, sources: Nodes, targets: Nodes, start: Mask) -> Mask:
    """(n,) bool: the nodes with a path, possibly empty, from a node of the (n,) mask `start`."""
    if len(sources) <= FEW:
        after: dict[int, list[int]] = {}
        for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
            after.setdefault(source, []).append(target)
        reached, pending = start.copy(), [node for node in after if start[node]]
        while pending:
            for target in after.get(pending.pop(), ()):
                if not reached[target]:
                    reached[target] = True
                    pending.append(target)
        return reached
    found = np.zeros(n + 1, dtype=bool)
    found[breadth_first_order(_rooted(n, sources, targets, start), n, return_predecessors=False)] = True
    return found[:n]


def coreachable(n: int, sources: Nodes, targets: Nodes, goal: Mask) -> Mask:
    """(n,) bool: the nodes with a path, possibly empty, to a node of the (n,) mask `goal`."""
    return reachable(n, targets, sources, goal)


def distances(n: int, sources: Nodes, targets: Nodes, start: Mask) -> Ints:
    """(n,) int64: least number of edges from some node of `start` to each node; -1 where there is no path."""
    order, parent = breadth_first_order(_rooted(n, sources, targets, start), n)
    depth = np.zeros(n + 1, dtype=np.int64)
    depth[order[1:]] = 1
    parent[parent < 0] = n
    # The search tree gives each node's parent; doubling adds up the steps to the root.
    while np.any(parent != n):
        depth += depth[parent]
        parent = parent[parent]
    return depth[:n] - 1


def in_bottom(component: Ints, sources: Ints, targets: Ints) -> Mask:
    """(n,) bool: the nodes of components that no edge leaves; `component` is from `components`."""
    leaving = component[sources] != component[targets]
    return ~marked(len(component), component[sources[leaving]])[component]


def components(n: int, sources: Nodes, targets: Nodes) -> Ints:
    """(n,) int64: the number of each node's strongly connected component, from 0 without gaps."""
    _, labels = connected_components(_adjacency(n, sources, targets), directed=True, connection="strong")
    return labels.astype(np.int64)


def on_cycle(n: int, sources: Nodes, targets: Nodes) -> Mask:
    """(n,) bool: the nodes that lie on a cycle; a self-loop is one. The same for the reversed graph."""
    component = components(n, sources, targets)
    cyclic: Mask = (np.bincount(component, minlength=n) > 1)[component]
    cyclic[sources[sources == targets]] = True
    return cyclic


def rows(n: int, sources: Nodes, targets: Nodes) -> tuple[Ints, Ints]:
    """The graph in compressed sparse rows, each edge once: row starts and, increasing in each row, targets."""
    graph = _adjacency(n, sources, targets)
    return graph.indptr.astype(np.int64), graph.indices.astype(np.int64)


def levels(n: int, sources: Ints, targets: Ints, max_levels: int) -> Ints | None:
    """(n,) int64: the number of edges on the longest path from each node of an acyclic graph.

    Every edge leads to a smaller level. None when there are more than `max_levels` levels (or a cycle), or would be
    if all had as few nodes as the first of them, for one round of array operations is spent on each.
    """
    open_edges = np.bincount(sources, minlength=n)
    edges = np.arange(len(targets))
    entering_of = csr_array((np.ones(len(targets), dtype=bool), (targets, edges)), shape=(n, len(targets)))
    start, predecessors = entering_of.indptr.astype(np.int64), sources[entering_of.indices]
    level, place = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    frontier, placed = np.flatnonzero(open_edges == 0), 0
    for number in range(max_levels):
        level[frontier] = number
        placed += len(frontier)
        if number % _ROUNDS == _ROUNDS - 1 and 2 * placed * max_levels < number * n:
            return None
        entering = predecessors[ranges(start[frontier], start[frontier + 1])]
        if len(entering) == 0:
            return level if placed == n else None
        np.subtract.at(open_edges, entering, 1)
        closed = entering[open_edges[entering] == 0]
        # Each node once: of the places where it stands in `closed`, the one that was written last.
        places = np.arange(len(closed))
        place[closed] = places
        frontier = closed[place[closed] == places]
    return None


def ranges(begin: Ints, end: Ints) -> Ints:
    """The integers begin[0]..end[0]-1, begin[1]..end[1]-1, and so on, one after the other."""
    lengths = end - begin
    total = int(lengths.sum())
    if total == 0:
        return np.zeros(0, dtype=np.int64)
    offsets = np.repeat(begin - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return offsets + np.arange(total)


def _adjacency(n: int, sources: Nodes, targets: Nodes) -> csr_array[Any, Any]:
    if len(sources) > _MOST_EDGES:
        raise LimitError(
            f"the model has {len(sources)} moves between its states; at most {_MOST_EDGES} can be searched",
            hint="narrow the ranges of the variables or of the inputs",
        )
    # Ones everywhere, so that no edge counts as absent; doubles, which the searches would make of other numbers.
    return csr_array((np.ones(len(sources)), (sources, targets)), shape=(n, n))


def _rooted(n: int, sources: Nodes, targets: Nodes, start: Mask) -> csr_array[Any, Any]:
    """The graph with one more node, n, that points at every node of `start`: a single search answers for all."""
    begun = np.flatnonzero(start)
    root = np.full(len(begun), n, dtype=sources.dtype)
    ends = np.concatenate([targets, begun.astype(targets.dtype)])
    return _adjacency(n + 1, np.concatenate([sources, root]), ends)
