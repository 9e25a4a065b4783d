"""Codes of the tables of a study: whole numbers, each with its text for people."""

from enum import IntEnum
from typing import Self

import numpy as np
from numpy.typing import NDArray


class Code(IntEnum):
    """The base of enumerations whose members are spelled as a number and a text."""

    text: str

    def __new__(cls, value: int, text: str = "") -> Self:
        """A member."""
        code = int.__new__(cls, value)
        code._value_, code.text = value, text
        return code

    @classmethod
    def counted(cls, table: NDArray[np.uint8]) -> dict[Self, int]:
        """How often each code stands in a table, of those that do."""
        codes, counts = np.unique(table, return_counts=True)
        return {cls(code): count for code, count in zip(codes.tolist(), counts.tolist(), strict=True)}
