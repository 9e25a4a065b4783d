"""The arrays and lists that this package is made of: names of their types, and what every part asks of them."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Columns: TypeAlias = Mapping[str, NDArray[Any]]
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_SHORT = 8
ROUNDOFF = 2.0**-53
"""Largest relative error of one operation on doubles, and of rounding a fraction to a double."""


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Key -> its values, in the order in which keys, and values of one key, come."""
    values: dict[Key, list[Value]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return values


def rows_of(indptr: NDArray[np.signedinteger]) -> Ints:
    """(nnz,) the row of each entry of compressed sparse rows, from their (n + 1,) starts."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def distinct(numbers: Ints) -> Ints:
    """The different ones of some numbers that are at least 0 and not much larger than they are many, increasing."""
    return np.flatnonzero(marked(int(numbers.max(initial=-1)) + 1, numbers))


def marked(count: int, places: Ints | list[int]) -> Mask:
    """(count,) bool: true in these places."""
    mask = np.zeros(count, dtype=bool)
    mask[places] = True
    return mask


def numbered(codes: Ints, bound: int) -> tuple[Ints, Ints]:
    """The distinct codes, increasing, and the position of each code among them.

    Args:
        codes: (k,) int64, each in 0..bound-1.
        bound: how many codes there could be; where that is not many more than there are, nothing is sorted.
    """
    if bound > 2**16 + 4 * len(codes):
        unique, position = np.unique(codes, return_inverse=True)
        return unique, position.ravel().astype(np.int64)
    occurs = marked(bound, codes)
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[codes]


def numbered_rows(columns: Iterable[Ints], count: int) -> tuple[Ints, Ints]:
    """The number of each of `count` rows, equal rows alike, in their order, and the first row of each number.

    Args:
        columns: (count,) int64 each, not below 0; at least one.
        count: number of rows.
    """
    row, rows = np.zeros(count, dtype=np.int64), 1
    for column in columns:  # numbered again for every column, so that no code outgrows an integer
        kinds = int(column.max(initial=0)) + 1
        unique, row = numbered(row * kinds + column, rows * kinds)
        rows = len(unique)
    first = np.empty(rows, dtype=np.int64)
    first[row[::-1]] = np.arange(count)[::-1]
    return row, first


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
    values = [getattr(columns, field.name) for field in fields(columns)]
    return tuple(dict(value) if isinstance(value, MappingProxyType) else value for value in values)


def read_only(value: Any, kind: Any = None) -> NDArray[Any]:
    """A view of an array, of another type where `kind` says so, that cannot be written."""
    array = np.asarray(value, dtype=kind).view()
    array.setflags(write=False)
    return array


def freeze(owner: Any, kinds: Mapping[str, DTypeLike], *, copied: bool = True) -> None:
    """Make fields of a frozen dataclass, but those that are None, arrays of these types that cannot be written.

    Args:
        owner: the dataclass.
        kinds: name of a field -> type of its numbers.
        copied: whether nobody else can write them either; if not, they are views.
    """
    for name, kind in kinds.items():
        value = getattr(owner, name)
        if value is not None:
            object.__setattr__(owner, name, read_only(np.array(value, dtype=kind) if copied else value, kind))


def check_shapes(owner: Any, expected: Mapping[str, tuple[int, ...]]) -> None:
    """ValueError unless each named array, but those that are None, has its shape."""
    for name, shape in expected.items():
        value = getattr(owner, name)
        if value is not None and value.shape != shape:
            raise ValueError(f"{name} has shape {value.shape}, expected {shape}")


def check_index(name: str, index: NDArray[Any], size: int, lowest: int = 0) -> None:
    """ValueError where a number points to none of `size` things; `name` is for the message."""
    if index.size and (index.min() < lowest or index.max() >= size):
        raise ValueError(f"{name} has an index outside {lowest}..{size - 1}")
