"""CSV and Parquet tables with named, typed columns, read and written as arrays."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, nearest_name, shown
from verifier.base.libraries import library
from verifier.perception.detections.sources import Member, read_bytes
from verifier.perception.detections.texttables import NUMBER, lines_of

Kind: TypeAlias = Literal["text", "whole", "flag", "number", "measured"]
"""Text; a whole number; 0 or 1; a finite number; a finite number or an empty cell (NaN)."""
WANTED = {"whole": "a whole number", "flag": "0 or 1", "number": "a finite number", "measured": "a finite number"}
LARGEST_WHOLE = 2.0**53


@dataclass(frozen=True, eq=False)
class Table:
    """Columns by name, all (n,): numbers as float64, whole numbers as int64, flags as bool, text as codes.

    `texts` holds the texts of each text column by code; `line` (n,) the line (Parquet: row, from 1) in `file`.
    """

    columns: Mapping[str, NDArray[Any]]
    texts: Mapping[str, tuple[str, ...]]
    line: NDArray[np.int64]
    file: str

    def __len__(self) -> int:
        return len(self.line)

    def stack(self, *names: str) -> NDArray[np.float64]:
        """(n, k) the named columns side by side."""
        return np.column_stack([self.columns[name] for name in names])

    def place(self, row: int) -> Place:
        """Where a row stands, for a message."""
        return Place(self.file, int(self.line[row]))


def read_table(
    path: str | Path,
    required: Mapping[str, Kind],
    optional: Mapping[str, Kind] | None = None,
    raw: bytes | None = None,
    others: bool = False,
) -> Table:
    """The table in a CSV file (comma, semicolon or tab) or a Parquet file.

    Args:
        path: its suffix `.parquet` tells Parquet from CSV.
        required: kinds of the columns that must be there.
        optional: kinds of those that may be.
        raw: the bytes, where they do not stand in the file `path` themselves.
        others: whether further columns are passed over; otherwise they are an error.

    Raises:
        InputError: unreadable, a column missing, unknown or twice, a cell that is not what it has to be.
    """
    file = str(path)
    kinds = {**required, **(optional or {})}
    data = read_bytes(path) if raw is None else raw
    if Path(path).suffix.lower() == ".parquet":
        arrow, parquet = library("pyarrow"), library("pyarrow.parquet")
        try:
            table = parquet.read_table(arrow.BufferReader(data))
        except (arrow.ArrowException, OSError):
            raise InputError("not a readable Parquet file", Place(file)) from None
        line = np.arange(1, table.num_rows + 1, dtype=np.int64)
    else:
        table, line = _from_csv(data, file, kinds)
    _check_names(table.column_names, required, kinds, others, file)
    columns: dict[str, NDArray[Any]] = {}
    texts: dict[str, tuple[str, ...]] = {}
    for name, kind in kinds.items():
        if name in table.column_names:
            column = table[name].combine_chunks()
            if kind == "text":
                columns[name], texts[name] = _text(column, name, line, file)
            else:
                columns[name] = _numbers(column, name, kind, line, file)
    return Table(columns, texts, line, file)


def table_bytes(columns: Mapping[str, NDArray[Any]], suffix: str) -> bytes:
    """The columns as a CSV or Parquet file that `read_table` reads back to the same values; NaN is an empty cell.

    Args:
        columns: arrays of one length; texts are arrays of objects.
        suffix: ".csv" or ".parquet".
    """
    arrow = library("pyarrow")
    table = arrow.table({name: _arrow(value) for name, value in columns.items()})
    buffer = io.BytesIO()
    if suffix == ".parquet":
        library("pyarrow.parquet").write_table(table, buffer)
    else:
        writer = library("pyarrow.csv")
        buffer.write((",".join(columns) + "\n").encode())
        # "needed" puts every text between quotes, whether it needs them or not.
        plain = not any(set(text) & set(',;\t"') for value in columns.values() for text in _texts_of(value))
        options = writer.WriteOptions(include_header=False, quoting_style="none" if plain else "needed")
        writer.write_csv(table, buffer, options)
    return buffer.getvalue()


def _arrow(value: NDArray[Any]) -> Any:
    arrow = library("pyarrow")
    if value.dtype == object:
        return arrow.array(value, arrow.string())
    return arrow.array(value.astype(np.int64) if value.dtype == np.bool_ else value, from_pandas=True)


def _texts_of(value: NDArray[Any]) -> set[str]:
    return set(value.tolist()) if value.dtype == object else set()


def _from_csv(raw: bytes, file: str, kinds: Mapping[str, Kind]) -> tuple[Any, NDArray[np.int64]]:
    arrow, reader = library("pyarrow"), library("pyarrow.csv")
    text, line, _ = lines_of([Member(file, "", "", raw)])
    if not text:
        raise InputError("the file is empty; expected a line with the names of the columns", Place(file))
    head = text[: text.index(b"\n")].decode()
    separator = max(",;\t", key=head.count)
    types = {name: arrow.string() if kind == "text" else arrow.float64() for name, kind in kinds.items()}
    try:
        table = reader.read_csv(
            io.BytesIO(text),
            parse_options=reader.ParseOptions(delimiter=separator),
            convert_options=reader.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True),
        )
    except (arrow.ArrowException, UnicodeDecodeError) as error:
        _find_fault(text.decode(), line, separator, file, kinds)
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"not a readable CSV file: {reason}", Place(file)) from None
    if table.num_rows != len(line) - 1:
        raise InputError("a quoted cell goes over several lines", Place(file))
    return table, line[1:]


def _find_fault(text: str, line: NDArray[np.int64], separator: str, file: str, kinds: Mapping[str, Kind]) -> None:
    """Raise for the first row with a wrong number of cells or a cell that is no number."""
    rows = csv.reader(io.StringIO(text), delimiter=separator)
    head = next(rows)
    for number, row in zip(line[1:].tolist(), rows, strict=False):
        if len(row) != len(head):
            raise InputError(f"found {len(row)} cells, expected {len(head)}", Place(file, number))
        for name, cell in zip(head, row, strict=True):
            kind = kinds.get(name, "text")
            if kind != "text" and cell and not NUMBER.fullmatch(cell.strip()):
                raise InputError(f"{name}: expected {WANTED[kind]}, got {shown(cell)}", Place(file, number))


def _check_names(
    found: list[str], required: Mapping[str, Kind], kinds: Mapping[str, Kind], others: bool, file: str
) -> None:
    for name in found:
        if found.count(name) > 1:
            raise InputError(f"the column {shown(name)} occurs twice", Place(file, 1))
        if name not in kinds and not others:
            near = nearest_name(name, kinds)
            hint = (f"did you mean '{near}'? " if near else "") + "known: " + ", ".join(kinds)
            raise InputError(f"unknown column {shown(name)}", Place(file, 1), hint)
    for name in required:
        if name not in found:
            raise InputError(f"no column '{name}'", Place(file, 1), "the file has: " + ", ".join(found[:30]))


def _text(column: Any, name: str, line: NDArray[np.int64], file: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    arrow = library("pyarrow")
    if arrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not any(test(column.type) for test in (arrow.types.is_integer, arrow.types.is_string, _large(arrow))):
        raise InputError(f"column '{name}': expected names or whole numbers, got {column.type}", Place(file))
    if column.null_count:
        row = int(column.is_null().to_numpy(zero_copy_only=False).argmax())
        raise InputError(f"{name}: the cell is empty", Place(file, int(line[row])))
    encoded = column.dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), tuple(map(str, encoded.dictionary.to_pylist()))


def _large(arrow: Any) -> Any:
    return arrow.types.is_large_string


def _numbers(column: Any, name: str, kind: Kind, line: NDArray[np.int64], file: str) -> NDArray[Any]:
    arrow = library("pyarrow")
    types = arrow.types
    if not any(test(column.type) for test in (types.is_integer, types.is_floating, types.is_boolean, types.is_null)):
        raise InputError(f"column '{name}': expected numbers, got {column.type}", Place(file))
    try:
        column = column.cast(arrow.float64())
    except arrow.ArrowInvalid:
        raise InputError(f"column '{name}': a number too large to be exact", Place(file)) from None
    empty = column.is_null().to_numpy(zero_copy_only=False)
    values = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    bad = ~np.isfinite(values)
    if kind == "measured":
        bad &= ~empty
    elif kind == "whole":
        bad |= (values != np.floor(values)) | (np.abs(values) > LARGEST_WHOLE)
    elif kind == "flag":
        bad |= (values != 0) & (values != 1)
    if bad.any():
        row = int(bad.argmax())
        found = "an empty cell" if empty[row] else f"{values[row]:g}"
        raise InputError(f"{name}: expected {WANTED[kind]}, got {found}", Place(file, int(line[row])))
    return values.astype({"whole": np.int64, "flag": np.bool_}.get(kind, np.float64))
