"""Decision tables: rows of intervals, of which at most one holds in a case, and what is set there.

Whether a row holds is looked up in sets of rows kept as bits: for each column those whose low end is at most a value,
and those whose high end is at least that. So a case costs columns times rows / 64 operations, however many cases and
rows there are, and two rows overlap where each lies in the other's sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Ints, Mask
from verifier.base.errors import InputError, LimitError, Place
from verifier.language.expressions import Source
from verifier.language.expressions.syntax import Call, Node, Number, Operation
from verifier.systems.model_parts import Type
from verifier.systems.reachability import distinct_rows

LARGEST_SETS = 2**30
"""Bytes of all sets of rows together."""
ANY = 2**62
"""A cell that is always met is -ANY..ANY."""
_CASES_AT_ONCE = 2**12

Bits = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class DecisionTable:
    """See the module.

    Attributes:
        asks: text -> expression of a column, and its kind.
        sets: the inputs and the memory that it sets.
        low, high: (rows, asks) int64, the ends of each cell, both included; a condition is 0 or 1.
        values: (rows, sets) int64.
        lines: (rows,) int64, the line of each row; 0 for none.
        row: what a row is called.
        names: text of a question -> names of its values, for messages.
    """

    asks: Mapping[str, tuple[Node, Type | None]]
    sets: tuple[str, ...]
    low: Ints
    high: Ints
    values: Ints
    file: str
    lines: Ints
    row: str = "row"
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ends = sum(map(len, self._ends))
        if ends * len(self.lines) / 4 > LARGEST_SETS:
            message = (
                f"{len(self.lines)} {self.row}s with {ends} different ends of cells are more than can be looked up"
            )
            raise LimitError(message, Place(self.file), "join those that set the same")
        for first in range(0, len(self.lines), _CASES_AT_ONCE):
            rows = slice(first, first + _CASES_AT_ONCE)
            met = self._holding(self.low[rows], self.high[rows])
            number = np.arange(first, first + len(met))
            met[number - first, number // 8] &= ~(0x80 >> number % 8).astype(np.uint8)
            if met.any():
                later = int(np.flatnonzero(met.any(axis=1))[0])
                raise self._overlap(first + later, int(np.unpackbits(met[later]).argmax()))

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.lines)

    @property
    def compared(self) -> tuple[Node, ...]:
        """The questions; a count is compared with the ends of its cells, beyond which it is not told apart."""
        found: list[Node] = []
        for column, (node, _) in enumerate(self.asks.values()):
            if isinstance(node, Call) and node.function == "count":
                ends = {int(end) for end in (*self.low[:, column], *self.high[:, column]) if abs(end) < ANY}
                found += [Operation("<=", (node, Number(end))) for end in sorted(ends) or (0,)]
            else:
                found.append(node)
        return tuple(found)

    def decided(self, views: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Mask, Mapping[str, Any]]]:
        """See `verifier.systems.model_parts.Decider`."""
        for view in views:
            row = self._rows_of(view)
            yield row >= 0, {name: self.values[row, k] for k, name in enumerate(self.sets)}

    def explained(self, case: Mapping[str, Any]) -> tuple[Source, str]:
        """See `verifier.systems.model_parts.Decider`."""
        row = int(self._rows_of({text: np.array([value]) for text, value in case.items()})[0])
        line = int(self.lines[row]) or None
        where = self._told({text: int(value) for text, value in case.items()})
        return Source("", self.file, None, (lambda: line) if row >= 0 else None), f"no {self.row} for {where}"

    def _rows_of(self, view: Mapping[str, Any]) -> Ints:
        """(k,) the row that holds in each case; -1 where none does."""
        cases = np.stack([np.asarray(view[text]) for text in self.asks], axis=1)
        # Values between the same ends are the same case.
        codes = [
            np.searchsorted(ends, values) + np.searchsorted(ends, values, "right")
            for ends, values in zip(self._ends, cases.T, strict=True)
        ]
        number, sample = distinct_rows(codes, 2 * max(map(len, self._ends)) + 1, len(cases))
        found = np.full(len(sample), -1, dtype=np.int64)
        for first in range(0, len(sample), _CASES_AT_ONCE):
            few = slice(first, first + _CASES_AT_ONCE)
            met = self._holding(cases[sample[few]], cases[sample[few]])
            byte = (met != 0).argmax(axis=1)
            bits = met[np.arange(len(met)), byte]
            found[few] = np.where(bits, 8 * byte + np.unpackbits(bits[:, None], axis=1).argmax(axis=1), -1)
        return found[number]

    def _holding(self, low: NDArray[Any], high: NDArray[Any]) -> Bits:
        """(k, rows / 8) the rows that have a value in common with each of k boxes, as bits."""
        met: Bits | None = None
        for column, (ends, begun, open_) in enumerate(zip(self._ends, self._begun, self._open, strict=True)):
            mine = begun[np.searchsorted(ends, high[:, column], "right")]
            mine &= open_[np.searchsorted(ends, low[:, column], "left")]
            met = mine if met is None else met & mine
        return np.packbits(np.ones((len(low), len(self.lines)), dtype=bool), axis=1) if met is None else met

    @cached_property
    def _ends(self) -> list[Ints]:
        """For each column the ends of its cells, increasing."""
        return [np.unique(np.concatenate([low, high])) for low, high in zip(self.low.T, self.high.T, strict=True)]

    @cached_property
    def _begun(self) -> list[Bits]:
        """For each column (ends + 1, rows / 8): the rows whose low end is among the first so many ends."""
        return [self._gathered(np.searchsorted(ends, low) + 1, len(ends)) for ends, low in self._columns(self.low)]

    @cached_property
    def _open(self) -> list[Bits]:
        """For each column (ends + 1, rows / 8): the rows whose high end is not among the first so many ends."""
        found = (
            self._gathered(np.searchsorted(ends, high) + 1, len(ends)) for ends, high in self._columns(self.high)
        )
        every = np.packbits(np.ones(len(self.lines), dtype=bool))
        return [every & ~bits for bits in found]

    def _columns(self, cells: Ints) -> Iterator[tuple[Ints, Ints]]:
        return zip(self._ends, cells.T, strict=True)

    def _gathered(self, position: Ints, count: int) -> Bits:
        """(count + 1, rows / 8) the rows with at most so great a position."""
        bits = np.zeros((count + 1, (len(position) + 7) // 8), dtype=np.uint8)
        number = np.arange(len(position))
        np.bitwise_or.at(bits, (position, number // 8), (0x80 >> number % 8).astype(np.uint8))
        return np.bitwise_or.accumulate(bits, axis=0)

    def _overlap(self, row: int, other: int) -> InputError:
        low = np.maximum(self.low[row], self.low[other])
        common = {
            text: int(value)
            for text, value, cells in zip(self.asks, low, (self.low[[row, other]]).T, strict=True)
            if (cells > -ANY).any()
        }
        where = f" at {self._told(common)}" if common else " in every case"
        if not self.lines[row]:
            return InputError(f"two {self.row}s overlap{where}", Place(self.file))
        first, second = sorted((int(self.lines[row]), int(self.lines[other])))
        hint = "in every case one row decides; narrow one of the two"
        return InputError(f"overlaps line {first}{where}", Place(self.file, second), hint)

    def _told(self, case: Mapping[str, int]) -> str:
        """A case for people: `x = 3, sees(ped)`."""
        parts = []
        reported = {text.rpartition(" = ")[0] for text, value in case.items() if text.startswith("report(") and value}
        for text, value in case.items():
            if not value and text.rpartition(" = ")[0] in reported:
                continue
            if text in self.names:
                parts.append(f"{text} = {self.names[text][value]}")
            elif self.asks[text][1] == "boolean":
                parts.append(text if value else f"!({text})" if " = " in text else f"!{text}")
            else:
                parts.append(f"{text} = {value}")
        return ", ".join(parts)
