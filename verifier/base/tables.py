"""CSV and Parquet tables with named columns: read as Arrow tables or as typed arrays, and written.

CSV files have a header, and are separated by comma, semicolon or tab, whichever the header has most of. The fast way
reads a file as one table; only when something is wrong are its lines looked at one by one, to name the first faulty
one.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import InputError, Place, first_line, nearest_name, shown
from verifier.base.files import decoded, read_bytes
from verifier.base.libraries import library

Kind: TypeAlias = Literal["text", "note", "whole", "flag", "number", "measured", "any"]
"""Text; text or an empty cell; a whole number; 0 or 1; a finite number; a finite number or an empty cell (NaN); a
number or an empty cell."""
_TEXTS = ("text", "note")
WANTED = {
    "whole": "a whole number",
    "flag": "0 or 1",
    "number": "a finite number",
    "measured": "a finite number",
    "any": "a number",
}
SUFFIXES = (".csv", ".parquet")
PARQUET = (".parquet", ".pq")
FEATHER = ".feather"
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_BLANK_LINE = re.compile(rb"\n[ \t]*\n")
LARGEST_WHOLE = 2.0**53


@dataclass(frozen=True, eq=False)
class Table:
    """Columns by name, all (n,): numbers as float64, whole numbers as int64, flags as bool, text as codes.

    `texts` holds the texts of each text column by code; `line` (n,) the line (Parquet: row, from 1) in `file`.
    """

    columns: Mapping[str, NDArray[Any]]
    texts: Mapping[str, tuple[str, ...]]
    line: Ints
    file: str

    def __len__(self) -> int:
        return len(self.line)

    def stack(self, *names: str) -> Floats:
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
        path: its suffix tells Parquet (`PARQUET`) from CSV.
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
    table, line = arrow_table(data, file, kinds)
    _check_names(table.column_names, required, kinds, others, file)
    columns: dict[str, NDArray[Any]] = {}
    texts: dict[str, tuple[str, ...]] = {}
    for name, kind in kinds.items():
        if name in table.column_names:
            column = table[name].combine_chunks()
            if kind in _TEXTS:
                columns[name], texts[name] = codes_of(column, name, line, file, empty=kind == "note")
            else:
                columns[name] = _numbers(column, name, kind, line, file)
    return Table(columns, texts, line, file)


def arrow_table(raw: bytes, file: str, kinds: Mapping[str, Kind]) -> tuple[Any, Ints]:
    """An Arrow table of a CSV, Parquet or Feather file, and (n,) the line (else the row, from 1) of each row.

    Args:
        raw: the bytes of the file.
        file: its name; the suffix tells Parquet (`PARQUET`) and Feather from CSV.
        kinds: of columns by name, to read the texts of CSV as; what is unknown is read as it looks.

    Raises:
        InputError: not readable as a table, or a cell of CSV that cannot be of its kind.
    """
    suffix = Path(file).suffix.lower()
    if suffix not in (*PARQUET, FEATHER):
        return _from_csv(raw, file, kinds)
    arrow = library("pyarrow")
    reader = library("pyarrow.parquet") if suffix in PARQUET else library("pyarrow.feather")
    try:
        table = reader.read_table(arrow.BufferReader(raw))
    except (arrow.ArrowException, OSError):
        kind = "Parquet" if suffix in PARQUET else "Feather"
        raise InputError(f"not a readable {kind} file", Place(file)) from None
    return table, np.arange(1, table.num_rows + 1, dtype=np.int64)


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
        texts = [value for value in columns.values() if value.dtype == object]
        plain = not any(set(text) & set(',;\t"') for value in texts for text in set(value.tolist()))
        options = writer.WriteOptions(include_header=False, quoting_style="none" if plain else "needed")
        writer.write_csv(table, buffer, options)
    return buffer.getvalue()


def _arrow(value: NDArray[Any]) -> Any:
    arrow = library("pyarrow")
    if value.dtype == object:
        return arrow.array(value, arrow.string())
    return arrow.array(value.astype(np.int64) if value.dtype == np.bool_ else value, from_pandas=True)


def _from_csv(raw: bytes, file: str, kinds: Mapping[str, Kind]) -> tuple[Any, Ints]:
    arrow, reader = library("pyarrow"), library("pyarrow.csv")
    text, line, _ = lines_of([(file, raw)])
    if not text:
        raise InputError("the file is empty; expected a line with the names of the columns", Place(file))
    head = text[: text.index(b"\n")].decode().lstrip("\ufeff")
    separator = max(",;\t", key=head.count)
    known = {
        name: kinds[name.strip()] for name in next(csv.reader([head], delimiter=separator)) if name.strip() in kinds
    }
    types = {name: arrow.string() if kind in _TEXTS else arrow.float64() for name, kind in known.items()}
    try:
        table = reader.read_csv(
            io.BytesIO(text),
            parse_options=reader.ParseOptions(delimiter=separator),
            convert_options=reader.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True),
        )
    except (arrow.ArrowException, UnicodeDecodeError) as error:
        _find_fault(text.decode(), line, separator, file, known)
        raise InputError(f"not a readable CSV file: {first_line(error)}", Place(file)) from None
    if table.num_rows != len(line) - 1:
        raise InputError("a quoted cell goes over several lines", Place(file))
    return table.rename_columns([name.strip() for name in table.column_names]), line[1:]


def _find_fault(text: str, line: Ints, separator: str, file: str, kinds: Mapping[str, Kind]) -> None:
    """Raise for the first row with a wrong number of cells or a cell that is no number."""
    rows = csv.reader(io.StringIO(text), delimiter=separator)
    head = next(rows)
    for number, row in zip(line[1:].tolist(), rows, strict=False):
        if len(row) != len(head):
            raise InputError(f"found {len(row)} cells, expected {len(head)}", Place(file, number))
        for name, cell in zip(head, row, strict=True):
            kind = kinds.get(name, "text")
            if kind not in _TEXTS and cell and not NUMBER.fullmatch(cell.strip()):
                raise InputError(f"{name}: expected {WANTED[kind]}, got {shown(cell)}", Place(file, number))


def _check_names(
    names: list[str], required: Mapping[str, Kind], kinds: Mapping[str, Kind], others: bool, file: str
) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"the column {shown(name)} occurs twice", Place(file, 1))
        if name not in kinds and not others:
            near = nearest_name(name, kinds)
            hint = (f"did you mean '{near}'? " if near else "") + "known: " + ", ".join(kinds)
            raise InputError(f"unknown column {shown(name)}", Place(file, 1), hint)
    for name in required:
        if name not in names:
            raise InputError(f"no column '{name}'", Place(file, 1), known_names(name, names))


def codes_of(column: Any, name: str, line: Ints, file: str, *, empty: bool = False) -> tuple[Ints, tuple[str, ...]]:
    """(n,) code of each cell of an Arrow column of names or whole numbers, and the texts by code.

    Args:
        column: in one chunk.
        name, line, file: for messages, as in `Table`.
        empty: whether cells may be empty.

    Raises:
        InputError: not such a column, or an empty cell.
    """
    arrow = library("pyarrow")
    types = arrow.types
    kind = value_type(column.type)
    if not any(test(kind) for test in (types.is_integer, types.is_string, types.is_large_string)):
        raise InputError(f"column '{name}': expected names or whole numbers, got {kind}", Place(file))
    texts = None if kind == column.type or column.null_count else column.dictionary
    if texts is not None and not texts.null_count and len(texts.unique()) == len(texts):
        column = column.indices
    else:
        texts, column = None, column.cast(kind)
    if column.null_count and empty:
        column = column.cast(arrow.string()).fill_null("")
    elif column.null_count:
        row = int(column.is_null().to_numpy(zero_copy_only=False).argmax())
        raise InputError(f"{name}: the cell is empty", Place(file, int(line[row])))
    encoded = column.dictionary_encode()
    names = encoded.dictionary if texts is None else texts.take(encoded.dictionary)
    return encoded.indices.to_numpy().astype(np.int64), tuple(map(str, names.to_pylist()))


def value_type(kind: Any) -> Any:
    """The Arrow type of the values of a column, whether or not they stand in a dictionary."""
    return kind.value_type if library("pyarrow").types.is_dictionary(kind) else kind


def is_number(kind: Any) -> bool:
    """Whether an Arrow type is one of numbers, or of nothing."""
    types = library("pyarrow").types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_null(kind))


def doubles_of(column: Any, name: str, file: str) -> tuple[Floats, Mask]:
    """(n,) numbers of an Arrow column, NaN where there is none, and which cells are empty (n,).

    Raises:
        InputError: no column of numbers, or a whole number that is no double.
    """
    arrow = library("pyarrow")
    if not is_number(column.type):
        raise InputError(f"column '{name}': expected numbers, got {column.type}", Place(file))
    try:
        column = column.cast(arrow.float64())
    except arrow.ArrowInvalid:
        raise InputError(f"column '{name}': a number too large to be exact", Place(file)) from None
    empty = column.is_null().to_numpy(zero_copy_only=False)
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64), empty


def known_names(name: str, known: Sequence[str]) -> str:
    """A hint for a column that is not there."""
    nearest = nearest_name(name, known)
    return (f"did you mean '{nearest}'? " if nearest else "") + "the file has: " + ", ".join(known[:30])


def lines_of(files: Sequence[tuple[str, bytes]]) -> tuple[bytes, Ints, NDArray[np.int32]]:
    """Text files (name, bytes) as one text of lines that are not blank, with the line number and file of each."""
    texts = [unified(name, raw) for name, raw in files]
    counts = [text.count(b"\n") for text in texts]
    whole = b"".join(texts)
    file = np.repeat(np.arange(len(texts), dtype=np.int32), counts)
    starts = np.cumsum([0, *counts[:-1]])
    line = np.arange(1, len(file) + 1, dtype=np.int64) - starts[file]
    if _BLANK_LINE.search(b"\n" + whole):
        lines = whole.split(b"\n")[:-1]
        kept = np.array([bool(text.strip()) for text in lines], dtype=bool)
        whole = b"".join(text + b"\n" for text in lines if text.strip())
        line, file = line[kept], file[kept]
    return whole, line, file


def unified(name: str, raw: bytes) -> bytes:
    """The bytes of a text file with every line ending in one line feed; InputError where it is no UTF-8 text."""
    if not raw.isascii() or b"\0" in raw:
        raw = decoded(raw, Place(name)).encode()
    if b"\r" in raw:
        raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return raw if not raw or raw.endswith(b"\n") else raw + b"\n"


def _numbers(column: Any, name: str, kind: Kind, line: Ints, file: str) -> NDArray[Any]:
    if kind != "flag" and library("pyarrow").types.is_boolean(column.type):
        raise InputError(f"column '{name}': expected numbers, got {column.type}", Place(file))
    values, empty = doubles_of(column, name, file)
    if kind == "any":
        return values
    bad = ~np.isfinite(values)
    if kind == "measured":
        bad &= ~empty
    elif kind == "whole":
        bad |= (values != np.floor(values)) | (np.abs(values) > LARGEST_WHOLE)
    elif kind == "flag":
        bad |= (values != 0) & (values != 1)
    if bad.any():
        row = int(bad.argmax())
        cell = "an empty cell" if empty[row] else f"{values[row]:g}"
        raise InputError(f"{name}: expected {WANTED[kind]}, got {cell}", Place(file, int(line[row])))
    return values.astype({"whole": np.int64, "flag": np.bool_}.get(kind, np.float64))
