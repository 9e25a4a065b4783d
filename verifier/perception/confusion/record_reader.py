"""Reading a per-object record back; what its columns hold is said in `verifier.perception.confusion.record`."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.base.files import read_text
from verifier.base.libraries import library
from verifier.perception.confusion.record import FORMATS

NEEDED: Mapping[str, type] = {
    "kind": str,
    "sequence": str,
    "frame": str,
    "bin": int,
    "place": int,
    "distance_m": float,
    "true": str,
    "predicted": str,
    "score": float,
    "group": int,
    "file": str,
    "line": int,
    "report_file": str,
    "report_line": int,
}
"""The columns that are read, and what they hold. Others are left alone."""
KINDS = ("frame", "object", "unmatched", "duplicate", "ignored")


@dataclass(frozen=True, eq=False)
class Record:
    """The rows of a record.

    Attributes:
        columns: name -> (n,) values, for the names of `NEEDED`: objects (texts), int64, or float64 with NaN for an
            unknown number.
        file: its name, as given.
    """

    columns: Mapping[str, NDArray[Any]]
    file: str

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.columns["kind"])


def read_record(path: str | Path) -> Record:
    """Read a record that `verify confusion --record` wrote.

    Raises:
        UsageError: the ending is neither .csv nor .parquet.
        InputError: unreadable, a column missing, or a value that cannot be: with the line where there is one.
    """
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise UsageError(f"a record ends in {' or '.join(FORMATS)}, got {shown(str(path))}")
    columns = _csv_columns(path) if ending == ".csv" else _parquet_columns(path)
    unknown = np.flatnonzero(~np.isin(columns["kind"], KINDS))
    if len(unknown):
        row = int(unknown[0])
        found = shown(columns["kind"][row])
        place = Place(str(path), row + 2 if ending == ".csv" else None)
        raise InputError(f"kind: expected one of {', '.join(KINDS)}, got {found}", place)
    return Record(columns, str(path))


def _csv_columns(path: str | Path) -> dict[str, NDArray[Any]]:
    text, _ = read_text(path)
    rows = csv.reader(io.StringIO(text))
    header = next(rows, [])
    places = _places(header, path)
    wanted = [places[name] for name in NEEDED]
    cells: list[list[str]] = [[] for _ in wanted]
    try:
        for row in rows:
            if len(row) != len(header):
                message = f"found {len(row)} cells, expected {len(header)}"
                raise InputError(message, Place(str(path), rows.line_num))
            for column, at in zip(cells, wanted, strict=True):
                column.append(row[at])
    except csv.Error as error:
        raise InputError(f"not a readable CSV file: {error}", Place(str(path), rows.line_num)) from None
    return {
        name: _parsed(name, kind, column, path) for (name, kind), column in zip(NEEDED.items(), cells, strict=True)
    }


def _parsed(name: str, kind: type, cells: list[str], path: str | Path) -> NDArray[Any]:
    if kind is str:
        return np.array(cells, dtype=object)
    try:
        if kind is int:
            return np.array([int(cell) for cell in cells], dtype=np.int64)
        return np.array([float(cell) if cell else np.nan for cell in cells], dtype=np.float64)
    except (ValueError, OverflowError):
        row = next(row for row, cell in enumerate(cells) if not _reads_as(kind, cell))
    what = "a whole number" if kind is int else "a number"
    raise InputError(f"{name}: expected {what}, got {shown(cells[row])}", Place(str(path), row + 2))


def _reads_as(kind: type, cell: str) -> bool:
    try:
        return abs(int(cell)) < 2**63 if kind is int else float(cell or "0") is not None
    except ValueError:
        return False


def _parquet_columns(path: str | Path) -> dict[str, NDArray[Any]]:
    arrow, parquet = library("pyarrow"), library("pyarrow.parquet")
    if not Path(path).is_file():
        raise InputError("no such file", Place(str(path)))
    try:
        _places(parquet.read_schema(str(path)).names, path)
        table = parquet.read_table(str(path), columns=list(NEEDED))
        columns = {}
        for name, kind in NEEDED.items():
            wanted = {str: arrow.string(), int: arrow.int64(), float: arrow.float64()}[kind]
            column = table[name].cast(wanted)
            if kind is not float and column.null_count:
                raise InputError(f"{name}: a value is missing", Place(str(path)))
            columns[name] = column.combine_chunks().to_numpy(zero_copy_only=False)
    except (arrow.ArrowException, OSError):
        raise InputError("not a readable Parquet file of a record", Place(str(path))) from None
    return columns


def _places(names: Sequence[str], path: str | Path) -> dict[str, int]:
    """Position of each column that is needed."""
    for name in NEEDED:
        if list(names).count(name) != 1:
            how = "no" if name not in names else "more than one"
            raise InputError(
                f"{how} column '{name}'", Place(str(path), 1), "a record is what `verify confusion --record` writes"
            )
    return {name: list(names).index(name) for name in NEEDED}
