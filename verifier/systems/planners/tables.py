"""Decision tables: rows of intervals, of which at most one holds in a case, and what is set there.

Whether a row holds is looked up in sets of rows kept as bits: for each column those whose low end is at most a value,
and those whose high end is at least that. So a case costs columns times rows / 64 operations, however many cases and
rows there are, and two rows overlap where each lies in the other's sets.

Decision tables in CSV: columns of conditions, `->`, and columns of what is set.

    x,sees(ped),mode,->,speed,mode'
    0..9,*,0,,3,0
    10..20,true,0,,2,1

A column of conditions is a variable, memory, a label or an atom; a cell is a number, `lo..hi`, `true` or `false`, a
class (below `report(o)`) or `*`. What is set is whole numbers: inputs, and memory with a quote behind its name.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Columns, Ints, Mask, numbered_rows
from verifier.base.errors import InputError, LimitError, Place, shown
from verifier.base.files import csv_rows, decoded
from verifier.language.expressions import Source, parse_expression
from verifier.language.expressions.evaluation import Value
from verifier.language.expressions.syntax import ATOMS, Call, Name, Node, Number, Operation
from verifier.systems.model_parts import Type

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
        """The questions; a count is compared with the largest end of its cells, beyond which it is not told apart."""
        questions: list[Node] = []
        for column, (node, _) in enumerate(self.asks.values()):
            if isinstance(node, Call) and node.function == "count":
                largest = max((int(end) for end in self.high[:, column] if end < ANY), default=0)
                node = Operation("<=", (node, Number(largest)))
            questions.append(node)
        return tuple(questions)

    def decided(self, views: Iterable[Columns]) -> Iterator[tuple[Mask, Columns]]:
        """See `verifier.systems.model_parts.Decider`."""
        for view in views:
            row = self._rows_of(view)
            yield row >= 0, {name: self.values[row, k] for k, name in enumerate(self.sets)}

    def explained(self, case: Mapping[str, Value]) -> tuple[Source, str]:
        """See `verifier.systems.model_parts.Decider`."""
        row = int(self._rows_of({text: np.array([value]) for text, value in case.items()})[0])
        line = int(self.lines[row]) or None
        where = self._told({text: int(value) for text, value in case.items()})
        return Source("", self.file, None, (lambda: line) if row >= 0 else None), f"no {self.row} for {where}"

    def _rows_of(self, view: Columns) -> Ints:
        """(k,) the row that holds in each case; -1 where none does."""
        cases = np.stack([np.asarray(view[text]) for text in self.asks], axis=1)
        # Values between the same ends are the same case.
        codes = [
            np.searchsorted(ends, values) + np.searchsorted(ends, values, "right")
            for ends, values in zip(self._ends, cases.T, strict=True)
        ]
        number, sample = numbered_rows(codes, len(cases))
        row_of = np.empty(len(sample), dtype=np.int64)
        for first in range(0, len(sample), _CASES_AT_ONCE):
            few = slice(first, first + _CASES_AT_ONCE)
            met = self._holding(cases[sample[few]], cases[sample[few]])
            byte = (met != 0).argmax(axis=1)
            bits = met[np.arange(len(met)), byte]
            row_of[few] = np.where(bits, 8 * byte + np.unpackbits(bits[:, None], axis=1).argmax(axis=1), -1)
        return row_of[number]

    def _holding(self, low: NDArray[Any], high: NDArray[Any]) -> Bits:
        """(k, rows / 8) the rows that have a value in common with each of k boxes, as bits."""
        met = [
            begun[np.searchsorted(ends, last, "right")] & open_[np.searchsorted(ends, first, "left")]
            for ends, begun, open_, first, last in zip(
                self._ends, self._begun, self._open, low.T, high.T, strict=True
            )
        ]
        return reduce(np.bitwise_and, met)

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
        columns = (
            self._gathered(np.searchsorted(ends, high) + 1, len(ends)) for ends, high in self._columns(self.high)
        )
        every = np.packbits(np.ones(len(self.lines), dtype=bool))
        return [every & ~bits for bits in columns]

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


ARROW = "->"
_WHOLE = re.compile(r"-?\d{1,15}")
_INTERVAL = re.compile(r"(-?\d{1,15})\s*\.\.\s*(-?\d{1,15})")
_REPORT = re.compile(r"report\(\s*([A-Za-z_]\w*)\s*(,.*)?\)\Z", re.DOTALL)
_TRUTH = {"false": 0, "true": 1}
_EVERY = (-ANY, ANY)


@dataclass(frozen=True)
class _Column:
    """A column of conditions: its text, its cells, and in messages its place in the head."""

    text: str
    cells: tuple[str, ...]
    head: Source


def table_of(raw: bytes, file: str) -> tuple[DecisionTable, list[Source]]:
    """The decision table in the bytes of a CSV file, and for each question where it stands.

    Raises:
        InputError: no such table, with file and line; two rows overlap.
    """
    rows = csv_rows(decoded(raw, Place(file)), file, ",;\t")
    first, head = next(rows, (0, []))
    if not first:
        raise InputError("the file is empty; expected a line with the names of the columns", Place(file))
    arrow, body = _checked_head(head, Place(file, first)), list(rows)
    for line, row in body:
        if row[arrow]:
            raise InputError(f"expected an empty cell below {ARROW}, got {shown(row[arrow])}", Place(file, line))
    if not body:
        raise InputError("expected at least one row below the names of the columns", Place(file, first))
    lines = [line for line, _ in body]
    columns = [
        _Column(name, tuple(row[k] for _, row in body), Source(name, file, f"column {name}", lambda: first))
        for k, name in enumerate(head[:arrow])
    ]
    asks: dict[str, tuple[Node, Type | None]] = {}
    places: list[Source] = []
    ends: list[list[tuple[int, int]]] = []
    for column in columns:
        for text, node, kind, cells in _read(column, lines):
            asks[text] = (node, kind)
            ends.append(cells)
            places.append(column.head)
    if not asks:
        raise columns[0].head.error("expected a class in some row", None)
    boxes = np.array(ends, dtype=np.int64)
    values = [[_set(row[k], head[k], Place(file, line)) for k in range(arrow + 1, len(head))] for line, row in body]
    sets = tuple(name.removesuffix("'") for name in head[arrow + 1 :])
    low, high = boxes[..., 0].T, boxes[..., 1].T
    return DecisionTable(asks, sets, low, high, np.array(values, dtype=np.int64), file, np.array(lines)), places


def _checked_head(head: list[str], place: Place) -> int:
    """The number of the column `->`."""
    if head.count(ARROW) != 1:
        hint = f"x,sees(ped),{ARROW},speed: conditions, the column {ARROW}, then what is set"
        raise InputError(f"expected one column named {ARROW}, found {head.count(ARROW)}", place, hint)
    arrow = head.index(ARROW)
    named = [*head[:arrow], *(name.removesuffix("'") for name in head[arrow + 1 :])]
    for part in (head[:arrow], named[arrow:]):
        for name in part:
            if part.count(name) > 1 or not name:
                raise InputError(f"the column {shown(name)} occurs twice" if name else "a column has no name", place)
    if not arrow or arrow == len(head) - 1:
        side = "condition before" if not arrow else "result behind"
        raise InputError(f"expected at least one {side} {ARROW}", place)
    for name in head[arrow + 1 :]:
        if not re.fullmatch(r"[A-Za-z_]\w*'?", name):
            raise InputError(f"expected the name of an input or of memory behind {ARROW}, got {shown(name)}", place)
    return arrow


def _read(column: _Column, lines: list[int]) -> list[tuple[str, Node, Type, list[tuple[int, int]]]]:
    """Text, expression, kind and cells of what a column asks: one question for each class below `report(o)`."""
    report = _REPORT.fullmatch(column.text)
    if report:
        classes = sorted({cell for cell in column.cells if cell != "*"})
        questions: list[tuple[str, Node, Type, list[tuple[int, int]]]] = []
        for name in classes:
            text = f"{column.text} = {name}"
            node = parse_expression(text, Source(text, column.head.file, column.head.path, column.head.line))
            questions.append(
                (text, node, "boolean", [_EVERY if c == "*" else (int(c == name),) * 2 for c in column.cells])
            )
        return questions
    node = parse_expression(column.text, column.head)
    asked = node.function if isinstance(node, Call) else ""
    if not isinstance(node, Name | Call) or (asked and asked not in ATOMS):
        raise column.head.error(f"expected a variable, memory, a label or an atom, got {column.text}", None)
    truths = asked != "count" if asked else bool(set(column.cells) & _TRUTH.keys())
    cell_of: Callable[[str], tuple[int, int] | None] = _truth if truths else _interval
    cells = []
    known: dict[str, tuple[int, int] | None] = {}
    for cell, line in zip(column.cells, lines, strict=True):
        if cell not in known:
            known[cell] = cell_of(cell)
        ends = known[cell]
        if ends is None:
            wanted = "true, false or *" if truths else "a whole number, lo..hi or *"
            raise InputError(f"{column.text}: expected {wanted}, got {shown(cell)}", Place(column.head.file, line))
        cells.append(ends)
    return [(column.text, node, "boolean" if truths else "number", cells)]


def _truth(cell: str) -> tuple[int, int] | None:
    return _EVERY if cell == "*" else (_TRUTH[cell],) * 2 if cell in _TRUTH else None


def _interval(cell: str) -> tuple[int, int] | None:
    if cell == "*":
        return _EVERY
    if _WHOLE.fullmatch(cell):
        return int(cell), int(cell)
    ends = _INTERVAL.fullmatch(cell)
    return (int(ends[1]), int(ends[2])) if ends and int(ends[1]) <= int(ends[2]) else None


def _set(cell: str, name: str, place: Place) -> int:
    if not _WHOLE.fullmatch(cell):
        raise InputError(f"{name}: expected a whole number, got {shown(cell)}", place)
    return int(cell)
