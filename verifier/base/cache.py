"""Large values that are built once and kept while there is room for them."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np

Value = TypeVar("Value")


def _one(value: object) -> int:
    return 1


class Cache:
    """Values by key. Those that were not asked for longest go first where the sizes of all exceed the limit, which is
    in bytes or in whatever sizes are given in; the last one stays, however large.

    A value that somebody still holds is found again even if it had to go.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0
        self._kept: dict[Hashable, tuple[object, int]] = {}
        self._alive: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()

    def __reduce__(self) -> tuple[type["Cache"], tuple[int]]:
        """In another process it begins empty."""
        return Cache, (self._limit,)

    def kept(self, key: Hashable, make: Callable[[], Value], size_of: Callable[[Value], int] = _one) -> Value:
        """The value of a key, made if it is not there; `size_of` gives its size, which is 1 if left out."""
        value: Value | None = self._alive.get(key)
        if value is None:
            value = self._alive[key] = make()
        _, size = self._kept.pop(key, (None, None))
        if size is None:
            size = size_of(value)
            self._held += size
        self._kept[key] = value, size
        while self._held > self._limit and len(self._kept) > 1:
            self._held -= self._kept.pop(next(iter(self._kept)))[1]
        return value


def array_bytes(*values: object) -> int:
    """Bytes of the arrays that are attributes of some values, or are in tuples and dictionaries that are."""
    return sum(array.nbytes for value in values for part in vars(value).values() for array in _arrays(part))


def _arrays(part: object) -> Iterator[np.ndarray[Any, Any]]:
    inner = part.values() if isinstance(part, Mapping) else part if isinstance(part, tuple) else (part,)
    return (array for array in inner if isinstance(array, np.ndarray))
