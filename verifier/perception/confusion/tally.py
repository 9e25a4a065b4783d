"""Sparse counts per sequence: which cells of which matrices hold how many items, over a family of thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import numbered

Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of the cells that are not zero for every threshold.

    Attributes:
        index: (n, 4) int64: sequence, bin, predicted label, true label; distinct rows in lexicographic order.
        counts: (n, thresholds) int64.
    """

    index: NDArray[np.int64]
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.index.ndim != 2 or self.index.shape[1] != 4 or self.counts.shape[:1] != self.index.shape[:1]:
            raise ValueError(f"index of shape {self.index.shape} with counts of shape {self.counts.shape}")

    def dense(self, bins: int, labels: int) -> NDArray[np.int64]:
        """(thresholds, bins, predicted, true) the sum over all sequences."""
        total = np.zeros((self.counts.shape[1], bins, labels, labels), dtype=np.int64)
        _, at_bin, predicted, true = self.index.T
        cell = np.ravel_multi_index((at_bin, predicted, true), (bins, labels, labels))
        for member, counts in enumerate(self.counts.T):
            np.add.at(total[member].reshape(-1), cell, counts)
        return total

    def of_sequence(self, sequence: int) -> Tally:
        """The rows of one sequence."""
        low, high = np.searchsorted(self.index[:, 0], [sequence, sequence + 1])
        return Tally(self.index[low:high], self.counts[low:high])

    def in_bins(self, bins: NDArray[np.int64], used: NDArray[np.bool_] | slice = slice(None)) -> Tally:
        """The rows that are `used`, with other bins (n,); those that then coincide are added."""
        index = self.index.copy()
        index[:, 1] = bins
        return summed(index[used], self.counts[used])

    def coarser_bins(self, finer: int) -> Tally:
        """So many bins that follow each other become one."""
        return self.in_bins(self.index[:, 1] // finer)

    def renumbered(self, sequence_of: NDArray[np.int64]) -> Tally:
        """Sequence s becomes `sequence_of[s]`; rows that then coincide are added."""
        index = self.index.copy()
        index[:, 0] = sequence_of[index[:, 0]]
        return summed(index, self.counts)


@dataclass(frozen=True, eq=False)
class Items:
    """Items to be counted, each with its true label and what is predicted while a threshold lies in a range.

    Attributes:
        index: (n, 4) int64 as in `Tally`.
        low: (n,) the first threshold index at which this prediction holds.
        high: (n,) one past the last.
        weight: (n,) how many items the row stands for.
    """

    index: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    weight: NDArray[np.int64]


def counted(parts: Sequence[Items], thresholds: int) -> Tally:
    """Add up items: one pass for all thresholds, because each row says where its prediction begins and ends."""
    index = np.concatenate([part.index for part in parts])
    low = np.concatenate([part.low for part in parts])
    high = np.concatenate([part.high for part in parts])
    weight = np.concatenate([part.weight for part in parts])
    used = (low < high) & (weight != 0)
    if not used.all():
        index, low, high, weight = (array[used] for array in (index, low, high, weight))
    rows, row_of = distinct_rows(index)
    cells = len(rows) * (thresholds + 1)
    changes = np.bincount(row_of * (thresholds + 1) + low, weight, cells)
    changes -= np.bincount(row_of * (thresholds + 1) + high, weight, cells)
    steps = changes.reshape(len(rows), thresholds + 1).astype(np.int64)
    return Tally(rows, np.cumsum(steps, axis=1)[:, :-1])


def summed(index: NDArray[np.int64], counts: NDArray[np.int64]) -> Tally:
    """Add up rows with the same index."""
    return Tally(*summed_rows(index, counts))


def summed_rows(index: NDArray[np.int64], numbers: NDArray[Number]) -> tuple[NDArray[np.int64], NDArray[Number]]:
    """The distinct rows in lexicographic order, and the sum of the numbers of each."""
    rows, row_of = distinct_rows(index)
    total = np.zeros((len(rows), *numbers.shape[1:]), dtype=numbers.dtype)
    np.add.at(total, row_of, numbers)
    return rows, total


def joined_tallies(parts: Sequence[Tally]) -> Tally:
    """The sum of tallies whose sequences are numbered through; at least one."""
    return summed(np.concatenate([part.index for part in parts]), np.concatenate([part.counts for part in parts]))


def no_counts(thresholds: int) -> Tally:
    """Nothing counted yet."""
    return Tally(np.zeros((0, 4), dtype=np.int64), np.zeros((0, thresholds), dtype=np.int64))


def distinct_rows(index: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct rows in lexicographic order, and for each row its place among them."""
    if not len(index):
        return index, np.zeros(0, dtype=np.int64)
    sizes = tuple(int(column.max()) + 1 for column in index.T)
    keys, place = numbered(np.ravel_multi_index(tuple(index.T), sizes), math.prod(sizes))
    return np.stack(np.unravel_index(keys, sizes), axis=1).astype(np.int64), place
