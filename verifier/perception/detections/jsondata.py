"""Large JSON files into columns: decoded by orjson, then one column at a time, without a Python object per box.

When something does not fit, the elements are looked at one by one, to name the first faulty one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, shown
from verifier.base.files import decoded, json_value, read_bytes
from verifier.base.libraries import library


@dataclass(frozen=True)
class Elements:
    """Objects of one file, in its order: `what` they are, and the JSON pointer of each, for messages."""

    items: Sequence[dict[str, Any]]
    file: str
    what: str
    pointer: Callable[[int], str]

    def __post_init__(self) -> None:
        if not set(map(type, self.items)) <= {dict}:
            row = next(row for row, item in enumerate(self.items) if type(item) is not dict)
            raise self.fail(row, "", f"expected an object, got {shown(self.items[row])}")

    def __len__(self) -> int:
        return len(self.items)

    def fail(self, row: int, key: str, message: str) -> InputError:
        """The error for the value under `key` of element `row`."""
        return InputError(message, Place(self.file, path=self.pointer(row) + (f"/{key}" if key else "")))

    def values(self, key: str, default: Any = None) -> list[Any]:
        """The values under `key`; an element without it is an error unless there is a default."""
        try:
            return list(map(itemgetter(key), self.items))
        except KeyError:
            if default is not None:
                return [item.get(key, default) for item in self.items]
            row = next(row for row, item in enumerate(self.items) if key not in item)
            raise self.fail(row, "", f"missing key '{key}'") from None

    def texts(self, key: str, default: str | None = None) -> list[str]:
        """(n) strings."""
        found = self.values(key, default)
        return self._of_type(key, found, (str,), "a string")

    def numbers(self, key: str, default: float | None = None) -> NDArray[np.float64]:
        """(n,) numbers; NaN only where the file says NaN."""
        found = self._of_type(key, self.values(key, default), (float, int), "a number")
        return self._array(key, found)

    def whole(self, key: str, default: int | None = None) -> NDArray[np.int64]:
        """(n,) whole numbers of at most 64 bits."""
        found = self._of_type(key, self.values(key, default), (int,), "a whole number")
        try:
            return np.frombuffer(array("q", found), dtype=np.int64)
        except OverflowError:
            row = next(row for row, value in enumerate(found) if not -(2**63) <= value < 2**63)
            raise self.fail(row, key, "a whole number of more than 64 bits") from None

    def vectors(self, key: str, width: int) -> NDArray[np.float64]:
        """(n, width) numbers."""
        found = self._of_type(key, self.values(key), (list,), f"a list of {width} numbers")
        if not set(map(len, found)) <= {width}:
            row = next(row for row, value in enumerate(found) if len(value) != width)
            raise self.fail(row, key, f"expected a list of {width} numbers, got {shown(found[row])}")
        flat = list(chain.from_iterable(found))
        if not set(map(type, flat)) <= {float, int}:
            row = next(row for row, each in enumerate(flat) if type(each) not in (float, int)) // width
            raise self.fail(row, key, f"expected a list of {width} numbers, got {shown(found[row])}")
        return self._array(key, flat).reshape(-1, width)

    def _of_type(self, key: str, found: list[Any], types: tuple[type, ...], wanted: str) -> list[Any]:
        if set(map(type, found)) <= set(types):
            return found
        row = next(row for row, value in enumerate(found) if type(value) not in types)
        raise self.fail(row, key, f"expected {wanted}, got {shown(found[row])}")

    def _array(self, key: str, found: list[Any]) -> NDArray[np.float64]:
        try:
            return np.frombuffer(array("d", found), dtype=np.float64)
        except OverflowError:
            raise InputError(f"{key}: a number too large to be one", Place(self.file)) from None


def codes(values: Iterable[str]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """(n,) the code of each value, and the values by code, in the order they first occur."""
    found = list(values)
    index = {value: code for code, value in enumerate(dict.fromkeys(found))}
    return np.fromiter(map(index.__getitem__, found), np.int64, len(found)), tuple(index)


def load_json(path: Any) -> tuple[Any, bytes]:
    """A decoded JSON file and its bytes. NaN and infinities, which are not JSON, are read as Python writes them.

    Raises:
        InputError: with file, line and column.
    """
    raw = read_bytes(path)
    orjson = library("orjson")
    try:
        return orjson.loads(raw), raw
    except orjson.JSONDecodeError:
        text = decoded(raw, Place(str(path)))
    if not text.strip():
        raise InputError("the file is empty", Place(str(path)))
    return json_value(text, Place(str(path))), raw


def elements(document: Any, file: str, what: str, key: str = "") -> Elements:
    """The objects of a list: the document itself, or what it holds under `key`."""
    found = document
    if key:
        if not isinstance(document, dict) or key not in document:
            raise InputError(f"expected an object with the key '{key}'", Place(file))
        found = document[key]
    prefix = f"/{key}" if key else ""
    if not isinstance(found, list):
        raise InputError(f"expected a list of {what}, got {shown(found)}", Place(file, path=prefix or None))
    return Elements(found, file, what, lambda row: f"{prefix}/{row}")
