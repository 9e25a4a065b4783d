"""Reachability in directed graphs given as compressed sparse rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


def reachable(indptr: Ints, indices: Ints, sources: Mask) -> Mask:
    """(n,) mask of the nodes that some node of `sources` reaches in zero or more steps."""
    n = len(indptr) - 1
    starts = np.flatnonzero(sources)
    found = np.zeros(n + 1, dtype=bool)
    if len(starts):
        # One extra node points at every source, so that a single compiled search answers for all.
        pointers = np.append(indptr, indptr[-1] + len(starts)).astype(np.int32)
        targets = np.concatenate([indices, starts]).astype(np.int32)
        graph = csr_array((np.ones(len(targets), dtype=np.int8), targets, pointers), shape=(n + 1, n + 1))
        found[breadth_first_order(graph, n, return_predecessors=False)] = True
    return found[:n]


def reversed_graph(n: int, sources: Ints, targets: Ints) -> tuple[Ints, Ints]:
    """(indptr, indices) in which node t lists every s with an edge s -> t."""
    order = np.argsort(targets, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(targets, minlength=n))]).astype(np.int64)
    return indptr, sources[order]


def gather_rows(indptr: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Positions of all entries of `rows`, one row after the other, and the row each belongs to.

    Returns:
        entries: (k,) int64 positions in the arrays that `indptr` divides.
        owners: (k,) int64 index into `rows`.
    """
    lengths = indptr[rows + 1] - indptr[rows]
    owners = np.repeat(np.arange(len(rows)), lengths)
    starts = np.cumsum(lengths) - lengths
    entries = np.arange(len(owners)) - starts[owners] + indptr[rows][owners]
    return entries, owners
