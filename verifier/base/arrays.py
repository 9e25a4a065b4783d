"""The arrays that this package is made of: names of their types, and what every part asks of them."""

from dataclasses import fields
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

_SHORT = 8
ROUNDOFF = 2.0**-53
"""Largest relative error of one operation on doubles, and of rounding a fraction to a double."""


def rows_of(indptr: NDArray[np.signedinteger]) -> Ints:
    """(nnz,) the row of each entry of compressed sparse rows, from their (n + 1,) starts."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def distinct(numbers: Ints) -> Ints:
    """The different ones of some numbers that are at least 0 and not much larger than they are many, increasing."""
    there = np.zeros(int(numbers.max(initial=-1)) + 1, dtype=bool)
    there[numbers] = True
    return np.flatnonzero(there)


def row_sums(table: Floats) -> Floats:
    """(k,) the sums of the rows of a (k, few) table, from left to right, which numpy is slow at."""
    if not 0 < table.shape[1] <= _SHORT:
        return np.asarray(table.sum(axis=1))
    total: Floats = table[:, 0].copy()
    for column in table.T[1:]:
        total += column
    return total


def plain_fields(columns: Any) -> tuple[Any, ...]:
    """The fields of a dataclass in their order, as another process can be sent them: mappings as dictionaries."""
    values = [getattr(columns, each.name) for each in fields(columns)]
    return tuple(dict(value) if isinstance(value, MappingProxyType) else value for value in values)
