"""Columns of a CSV or Parquet file by name, and where in the file each cell stands, for messages."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints
from verifier.base.errors import InputError, Place, shown
from verifier.base.files import read_bytes, read_text
from verifier.base.libraries import library
from verifier.base.tables import PARQUET, arrow_table, known_names

MISSING = frozenset({"nan", "<na>", "nat", "none", "null", "inf", "-inf"})
"""What programs write, in any case, where they have no value; it names nothing."""


@dataclass(frozen=True, eq=False)
class ColumnTable:
    """Some columns of a file.

    Attributes:
        cells: name -> (n,) texts, or numbers where the file stores numbers.
        line: (n,) line of each row (Parquet: row), from 1.
        own: name -> the file's own name of the column.
        lines: the lines of a text file, none otherwise.
        separator: of the cells of a line.
    """

    file: str
    cells: Mapping[str, NDArray[Any]]
    line: Ints
    own: Mapping[str, str]
    lines: Sequence[str] = ()
    separator: str = ","

    def place(self, row: int, name: str | None = None) -> Place:
        """Where a row stands, or its cell in the column `name`."""
        number = int(self.line[row])
        if not self.lines:
            return Place(self.file, number)
        text = self.lines[number - 1]
        if name is None:
            return Place(self.file, number, text=text)
        position = next(csv.reader([self.lines[0]], delimiter=self.separator)).index(self.own[name])
        return Place(self.file, number, _starts(text, self.separator)[position] + 1, text=text)

    def numbers(self, name: str) -> Floats:
        """(n,) the finite numbers of a column, NaN for empty cells.

        Raises:
            InputError: a cell holds something else.
        """
        cells = self.cells[name]
        if cells.dtype != object:
            if cells.dtype.kind not in "iuf":
                message = f"{self.own[name]}: expected a column of numbers, got {cells.dtype}"
                raise InputError(message, Place(self.file))
            return np.asarray(cells, dtype=np.float64)
        values = np.full(len(cells), np.nan)
        for row, cell in enumerate(cells.tolist()):
            if cell is None or (isinstance(cell, str) and not cell):
                continue
            number = isinstance(cell, str | int | float | Decimal) and not isinstance(cell, bool)
            try:  # a column of a Parquet file may hold lists, structures, dates
                values[row] = float(cell) if number else np.inf
            except (OverflowError, ValueError):
                values[row] = np.inf
            if not np.isfinite(values[row]) or "_" in str(cell):
                message = f"{self.own[name]}: expected a number, got {shown(cell)}"
                raise InputError(message, self.place(row, name))
        return values

    def codes(self, name: str) -> tuple[tuple[str, ...], Ints]:
        """The different texts of a column in the order in which they first occur, and (n,) the index of each row's.

        Raises:
            InputError: a cell is empty, or holds what programs write for a missing value.
        """
        found: dict[str, int] = {}
        texts = ["" if cell is None else str(cell) for cell in self.cells[name].tolist()]
        index = np.array([found.setdefault(text, len(found)) for text in texts], dtype=np.int64)
        if "" in found:
            row = int((index == found[""]).argmax())
            raise InputError(f"{self.own[name]}: the cell is empty", self.place(row, name))
        for text, number in found.items():
            if text.casefold() in MISSING:
                place = self.place(int((index == number).argmax()), name)
                raise InputError(f"{self.own[name]}: expected a name, got {shown(text)}, a missing value", place)
        return tuple(found), index


def read_columns(
    path: str | Path, wanted: Mapping[str, str], kind: str, optional: Sequence[str] = ()
) -> tuple[ColumnTable, bytes]:
    """The wanted columns (our name -> the file's own) of a CSV or Parquet file, and the file's bytes.

    CSV files have a header and are separated by comma, semicolon or tab, whichever the header has most of.

    Args:
        path: the file; the ending .parquet or .pq names that format.
        wanted: the columns.
        kind: what the file should be, for messages.
        optional: further columns, by the file's own names; those that it does not have are left out.

    Raises:
        InputError: unreadable, no such column, or a row with too many or too few cells.
    """
    if Path(path).suffix.lower() in PARQUET:
        raw = read_bytes(path)
        return _parquet_columns(raw, str(path), wanted, kind, optional), raw
    text, raw = read_text(path)
    return _csv_columns(text, str(path), wanted, kind, optional), raw


def _csv_columns(text: str, file: str, wanted: Mapping[str, str], kind: str, optional: Sequence[str]) -> ColumnTable:
    lines = _lines(text, file, kind)
    separator = max(",;\t", key=lines[0].count)
    rows = _rows(lines, separator, file)
    head = [name.strip() for name in next(rows)[1]]
    _check_head(head, wanted, file, kind)
    wanted = {**wanted, **{name: name for name in optional if name in head}}
    lines[0] = separator.join(head)
    places = [head.index(own) for own in wanted.values()]
    cells: list[list[str]] = []
    numbers: list[int] = []
    for number, row in rows:
        if len(row) != len(head):
            message = f"found {len(row)} cells, expected {len(head)}"
            raise InputError(message, Place(file, number, text=lines[number - 1]))
        cells.append([row[place].strip() for place in places])
        numbers.append(number)
    columns = np.array(cells, dtype=object).reshape(len(cells), len(places)).T
    line = np.array(numbers, dtype=np.int64)
    return ColumnTable(file, dict(zip(wanted, columns, strict=True)), line, dict(wanted), lines, separator)


def _lines(text: str, file: str, kind: str) -> list[str]:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not lines[0].strip():
        raise InputError(f"expected {kind}: a header and a line per item", Place(file, 1))
    return lines


def _rows(lines: Sequence[str], separator: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each line that is not blank."""
    reader = csv.reader(lines, delimiter=separator, strict=True)
    before = 0
    try:
        for row in reader:
            if reader.line_num != before + 1:
                raise InputError("a quoted cell goes over several lines", Place(file, before + 1))
            before = reader.line_num
            if row and (len(row) > 1 or row[0].strip()):
                yield before, row
    except csv.Error as error:
        raise InputError(f"not a readable CSV line: {error}", Place(file, before + 1)) from None


def _check_head(head: Sequence[str], wanted: Mapping[str, str], file: str, kind: str) -> None:
    twice = next((name for name in head if head.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"the column {shown(twice)} occurs twice", Place(file, 1))
    for ours, own in wanted.items():
        if own not in head:
            described = f"'{own}'" + (f" (for {ours})" if own != ours else "")
            raise InputError(f"no column {described}; expected {kind}", Place(file, 1), known_names(own, head))


def _parquet_columns(
    raw: bytes, file: str, wanted: Mapping[str, str], kind: str, optional: Sequence[str]
) -> ColumnTable:
    arrow, (table, line) = library("pyarrow"), arrow_table(raw, file, {})
    _check_head(table.column_names, wanted, file, kind)
    wanted = {**wanted, **{name: name for name in optional if name in table.column_names}}
    cells = {}
    for name, own in wanted.items():
        column = table[own]
        if arrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        cells[name] = np.asarray(column.to_numpy())
    return ColumnTable(file, cells, line, dict(wanted))


def _starts(line: str, separator: str) -> list[int]:
    """Where each cell of a line begins; separators in double quotes belong to the cell."""
    starts, quoted = [0], False
    for position, character in enumerate(line):
        if character == '"':
            quoted = not quoted
        elif character == separator and not quoted:
            starts.append(position + 1)
    return starts
