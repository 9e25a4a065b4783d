"""Questions about the graph of a chain, answered in compiled code over arrays of edges.

A graph is a number of nodes n and two equally long int64 arrays, the source and the target of each edge. Parallel
edges are allowed. Nothing here looks at probabilities.
"""

from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from verifier.base.arrays import Ints, Mask
from verifier.systems import reachability

_ROUNDS = 500
"""Levels after which the number of all of them is foreseen."""
FEW = 300
"""Edges up to which a search in Python is faster than to hand the graph to compiled code."""


def reachable(n: int, sources: Ints, targets: Ints, start: Mask) -> Mask:
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
    return reachability.reachable(*reachability.rows(n, sources, targets), start)


def coreachable(n: int, sources: Ints, targets: Ints, goal: Mask) -> Mask:
    """(n,) bool: the nodes with a path, possibly empty, to a node of the (n,) mask `goal`."""
    return reachable(n, targets, sources, goal)


def components(n: int, sources: Ints, targets: Ints) -> Ints:
    """(n,) int64: the number of each node's strongly connected component, from 0 without gaps."""
    _, labels = connected_components(_adjacency(n, sources, targets), directed=True, connection="strong")
    return labels.astype(np.int64)


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


def _adjacency(n: int, sources: Ints, targets: Ints) -> csr_array[Any, Any]:
    # csgraph works on doubles; ones everywhere, so that no edge counts as absent.
    return coo_array((np.ones(len(sources)), (sources, targets)), shape=(n, n)).tocsr()
