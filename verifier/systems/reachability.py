"""Searches in directed graphs, in compiled code.

A graph of n nodes is given in compressed sparse rows: the successors of node s are indices[indptr[s]:indptr[s + 1]].
Parallel edges and self-loops are allowed.
"""

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from verifier.base.arrays import Ints, Mask, rows_of
from verifier.base.errors import LimitError

Numbers: TypeAlias = "NDArray[np.int64] | NDArray[np.int32]"

_MOST_EDGES = 2**31 - 1
"""The compiled searches number edges with 32 bits."""


def reachable(indptr: Numbers, indices: Numbers, sources: Mask) -> Mask:
    """(n,) mask of the nodes that some node of `sources` reaches in zero or more steps."""
    n = len(indptr) - 1
    reached = np.zeros(n + 1, dtype=bool)
    reached[breadth_first_order(_rooted(indptr, indices, sources), n, return_predecessors=False)] = True
    return reached[:n]


def distances(indptr: Numbers, indices: Numbers, sources: Mask) -> Ints:
    """(n,) least number of edges from some node of `sources` to each node; -1 where there is no path."""
    n = len(indptr) - 1
    order, parent = breadth_first_order(_rooted(indptr, indices, sources), n)
    depth = np.zeros(n + 1, dtype=np.int64)
    depth[order[1:]] = 1
    parent[parent < 0] = n
    # The search tree gives each node's parent; doubling adds up the steps to the root.
    while np.any(parent != n):
        depth += depth[parent]
        parent = parent[parent]
    return depth[:n] - 1


def on_cycle(indptr: Numbers, indices: Numbers) -> Mask:
    """(n,) mask of the nodes that lie on a cycle; a self-loop is one. The same for the reversed graph."""
    n = len(indptr) - 1
    graph = csr_array((np.ones(len(indices), dtype=np.int8), indices, indptr), shape=(n, n))
    _, component = connected_components(graph, directed=True, connection="strong")
    cyclic: Mask = (np.bincount(component, minlength=n) > 1)[component]
    cyclic[indices[rows_of(indptr) == indices]] = True
    return cyclic


def rows(n: int, sources: Numbers, targets: Numbers) -> tuple[Numbers, Numbers]:
    """(indptr, indices) of the graph with these edges, each kept once; swap the two for the reversed graph."""
    _refuse_too_many(len(sources))
    graph = csr_array((np.ones(len(sources), dtype=bool), (sources, targets)), shape=(n, n))
    return graph.indptr, graph.indices


def _rooted(indptr: Numbers, indices: Numbers, sources: Mask) -> csr_array[Any, Any]:
    """The graph with one more node, n, that points at every source, so that a single search answers for all."""
    n, starts = len(indptr) - 1, np.flatnonzero(sources)
    _refuse_too_many(len(indices) + len(starts))
    pointers = np.append(indptr, indptr[-1] + len(starts)).astype(np.int32)
    targets = np.concatenate([indices, starts]).astype(np.int32)
    return csr_array((np.ones(len(targets), dtype=np.int8), targets, pointers), shape=(n + 1, n + 1))


def _refuse_too_many(edges: int) -> None:
    if edges > _MOST_EDGES:
        raise LimitError(
            f"the model has {edges} moves between its states; at most {_MOST_EDGES} can be searched",
            hint="narrow the ranges of the variables or of the inputs",
        )


def distinct(codes: Ints, bound: int) -> tuple[Ints, Ints]:
    """The distinct codes, increasing, and the position of each code among them.

    Args:
        codes: (k,) int64, each in 0..bound-1.
        bound: how many codes there could be; where that is not many more than there are, nothing is sorted.
    """
    if bound > 2**16 + 4 * len(codes):
        unique, position = np.unique(codes, return_inverse=True)
        return unique, position.ravel().astype(np.int64)
    occurs = np.zeros(bound, dtype=bool)
    occurs[codes] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[codes]


def distinct_rows(columns: Iterable[Ints], count: int) -> tuple[Ints, Ints]:
    """The number of each of `count` rows, equal rows alike, in their order, and the first row of each number.

    Args:
        columns: (count,) int64 each, not below 0; at least one.
        count: number of rows.
    """
    row, rows = np.zeros(count, dtype=np.int64), 1
    for column in columns:  # numbered again for every column, so that no code outgrows an integer
        kinds = int(column.max(initial=0)) + 1
        unique, row = distinct(row * kinds + column, rows * kinds)
        rows = len(unique)
    first = np.empty(rows, dtype=np.int64)
    first[row[::-1]] = np.arange(count)[::-1]
    return row, first
