"""The distinct values of an array of codes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from verifier.base.arrays import Ints


def distinct(codes: Ints, bound: int) -> tuple[Ints, Ints]:
    """The distinct codes, increasing, and the position of each code among them.

    Args:
        codes: (k,) int64, each in 0..bound-1.
        bound: how many codes there could be; where that is not many more than there are, nothing is sorted.
    """
    if bound > 2**16 + 4 * len(codes):
        found, position = np.unique(codes, return_inverse=True)
        return found, position.ravel().astype(np.int64)
    occurs = np.zeros(bound, dtype=bool)
    occurs[codes] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[codes]


def distinct_rows(columns: Iterable[Ints], kinds: int, count: int) -> tuple[Ints, Ints]:
    """The number of each of `count` rows of some columns, equal rows alike, and the first row of each number.

    Args:
        columns: (count,) int64 each, in 0..kinds-1.
        kinds: how many codes there could be.
        count: number of rows.
    """
    row, rows = np.zeros(count, dtype=np.int64), 1
    for column in columns:  # numbered again for every column, so that no code outgrows an integer
        found, row = distinct(row * kinds + column, rows * kinds)
        rows = len(found)
    first = np.empty(rows if count else 0, dtype=np.int64)
    first[row[::-1]] = np.arange(count)[::-1]
    return row, first
