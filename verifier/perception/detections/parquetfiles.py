"""Parquet files that are one table together: one file, or those of a folder in the order of their names; on this
machine, or wherever fsspec reaches (`s3://`, `gs://`, `https://`, ...).

Rows are numbered through from 0, and `place` says in which row of which file one stands. A part of the table is a
range of rows, so whoever reads a part opens the files that it lies in and no others.

Of tables that list their rows by ascending sequence a range of sequences is a range of rows, so such a part is read
as if there were nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path, PurePath
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, UsageError, first_line, shown
from verifier.base.libraries import library
from verifier.base.tables import value_type
from verifier.perception.detections.tablefiles import REQUIRED, REQUIRED_SCORED, check_columns, renamed

RowRange: TypeAlias = tuple[int, int]
"""The first row of a part, and one past its last."""


@dataclass(frozen=True)
class FilesInOrder:
    """The files of one table.

    Attributes:
        name: as it was given.
        paths: of the files, as they are opened and told.
        starts: (files + 1,) rows before each file, and of all files.
    """

    name: str
    paths: tuple[str, ...]
    starts: tuple[int, ...]

    @classmethod
    def of(cls, path: str | Path, columns: Mapping[str, str], required: Sequence[str]) -> FilesInOrder:
        """Look at all files.

        Raises:
            InputError: nothing there, unreadable, a column missing, or files of different columns.
        """
        paths, starts, first = _listed(str(path)), [0], None
        for file in paths:
            with opened(file) as source:
                starts.append(starts[-1] + int(source.metadata.num_rows))
                schema = without_rows(source, columns, required, file).schema
            first = schema if first is None else first
            mine, others = ({field.name: str(value_type(field.type)) for field in known} for known in (schema, first))
            for name in {**others, **mine}:
                if mine.get(name) != others.get(name):
                    raise InputError(
                        f"column '{name}': {mine.get(name, 'none')} here, {others.get(name, 'none')} in {paths[0]}",
                        Place(file),
                        "files of one table have the same columns: write them again with one schema",
                    )
        return cls(str(path), tuple(paths), tuple(starts))

    @property
    def without_folders(self) -> FilesInOrder:
        """By names that do not depend on where the files lie."""
        short, own = PurePath(self.name).name, self.name.rstrip("/")
        return FilesInOrder(short, tuple(f"{short}{path[len(own) :]}" for path in self.paths), self.starts)

    def __len__(self) -> int:
        return self.starts[-1]

    def file_of(self, row: int) -> int:
        """The number of the file that a row stands in; of a table without rows the first."""
        return min(max(bisect_right(self.starts, row) - 1, 0), len(self.paths) - 1)

    def place(self, row: int) -> Place:
        """Where a row stands."""
        file = self.file_of(row)
        return Place(self.paths[file], row - self.starts[file] + 1)

    def within(self, rows: RowRange) -> range:
        """The numbers of the files that hold these rows."""
        return range(self.file_of(rows[0]), self.file_of(rows[1] - 1) + 1) if rows[0] < rows[1] else range(0)

    def batches(self, rows: RowRange, most: int, columns: Sequence[str] | None = None) -> Iterator[tuple[str, Any]]:
        """The file and an Arrow table of at most so many rows, one after the other: row group by row group, as one
        iteration over all of them holds on to memory of those already read.

        Raises:
            InputError: a file cannot be read, or is not what it was when the table was looked at.
        """
        arrow = library("pyarrow")
        for number in self.within(rows):
            file, start = self.paths[number], self.starts[number]
            with opened(file) as source:
                if int(source.metadata.num_rows) != self.starts[number + 1] - start:
                    raise InputError("the file has changed since it was first read", Place(file))
                for group in range(source.metadata.num_row_groups):
                    end = start + source.metadata.row_group(group).num_rows
                    if start < rows[1] and rows[0] < end:
                        try:
                            for batch in source.iter_batches(batch_size=most, row_groups=[group], columns=columns):
                                low, high = max(rows[0] - start, 0), min(rows[1] - start, len(batch))
                                start += len(batch)
                                if low < high:
                                    yield file, arrow.Table.from_batches([batch.slice(low, high - low)])
                        except (arrow.ArrowException, OSError) as error:
                            raise InputError(
                                f"not readable behind row {start - self.starts[number]}: {first_line(error)}",
                                Place(file),
                            ) from None
                    start = end

    def record(self, role: str, digests: Sequence[str]) -> dict[str, object]:
        """What is recorded of the files, as of every source; `digests` are their SHA-256."""
        short = self.without_folders
        digest = digests[0]
        if short.paths != (short.name,):
            own = zip((PurePath(path[len(short.name) + 1 :]) for path in short.paths), digests, strict=True)
            lines = "".join(f"{text}  {name}\n" for name, text in sorted(own))
            digest = hashlib.sha256(lines.encode()).hexdigest()
        return {"role": role, "name": short.name, "files": len(self.paths), "sha256": digest}


def without_rows(source: Any, columns: Mapping[str, str], required: Sequence[str], file: str) -> Any:
    """The table of an open file as `renamed` gives it, with the types of its columns and no row."""
    arrow = library("pyarrow")
    fields = source.schema_arrow
    row = arrow.Table.from_arrays([arrow.nulls(1, field.type) for field in fields], names=fields.names)
    return renamed(row, columns, required, file).schema.empty_table()


def digest_of(path: str) -> str:
    """The SHA-256 of a file, in memory that does not grow with it; InputError."""
    try:
        with _stream(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or first_line(error)}", Place(path)) from None


@contextlib.contextmanager
def opened(path: str) -> Iterator[Any]:
    """A `pyarrow.parquet.ParquetFile`; InputError. Pyarrow leaves a stream that it was given open."""
    arrow, parquet = library("pyarrow"), library("pyarrow.parquet")
    with contextlib.ExitStack() as stack:
        try:
            stream = stack.enter_context(_stream(path))
            source = parquet.ParquetFile(stream, buffer_size=1 << 20, pre_buffer=False)
        except FileNotFoundError:
            raise InputError("no such file", Place(path)) from None
        except (arrow.ArrowException, OSError) as error:
            if isinstance(error, PermissionError):
                raise InputError(f"cannot be read: {error.strerror or first_line(error)}", Place(path)) from None
            raise InputError("not a readable Parquet file", Place(path)) from None
        yield source


def _stream(path: str) -> Any:
    """The bytes of a file."""
    return filesystem(path).open(path, "rb") if is_address(path) else Path(path).open("rb")


def _listed(path: str) -> list[str]:
    """The files that a path names: itself, or all of a folder."""
    if not is_address(path):
        paths = sorted(map(str, Path(path).rglob("*.parquet"))) if Path(path).is_dir() else [path]
    else:
        files = filesystem(path)
        try:
            files.invalidate_cache()  # a process that lives long sees what is there now
            paths = [path]
            if files.isdir(path):
                paths = sorted(map(files.unstrip_protocol, files.glob(path.rstrip("/") + "/**/*.parquet")))
        except OSError as error:
            raise InputError(f"cannot be read: {first_line(error)}", Place(path)) from None
    if not paths:
        raise InputError("no file *.parquet in it", Place(path))
    return paths


def is_address(path: object) -> bool:
    """Whether it is in a store."""
    return "://" in str(path)


def filesystem(path: str) -> Any:
    """What reads an address; UsageError where nothing does."""
    try:
        return library("fsspec").core.url_to_fs(path)[0]
    except (ValueError, ImportError) as error:
        raise UsageError(f"{shown(path)}: nothing reads this address: {first_line(error)}") from None


ROLES = ("annotations", "detections", "frames")
NEEDED = (REQUIRED, REQUIRED_SCORED, ("frame",))


@dataclass(frozen=True)
class TablePart:
    """The rows of some whole sequences: of annotations, detections and, where they are listed, frames."""

    rows: tuple[RowRange, ...]

    def __len__(self) -> int:
        return sum(end - first for first, end in self.rows)


@dataclass(frozen=True)
class Tables:
    """The tables that are read, in the order of `ROLES`, and what their columns are called there."""

    files: tuple[FilesInOrder, ...]
    columns: tuple[Mapping[str, str], ...]

    @classmethod
    def of(
        cls,
        annotations: str | Path,
        detections: str | Path,
        columns: Mapping[str, str] | None = None,
        frames: str | Path | None = None,
    ) -> Tables:
        """Look at all files; InputError as `FilesInOrder.of`, UsageError as `check_columns`."""
        columns = check_columns(columns or {})
        listed = {name: own for name, own in columns.items() if name in ("frame", "sequence")}
        own, paths = (columns, columns, listed), (annotations, detections, frames)
        files = tuple(
            FilesInOrder.of(path, names, needed)
            for path, names, needed in zip(paths, own, NEEDED, strict=True)
            if path is not None
        )
        return cls(files, own[: len(files)])

    @property
    def whole(self) -> TablePart:
        """All rows."""
        return TablePart(tuple((0, len(file)) for file in self.files))

    def records(self, digest: Callable[[str], str] = digest_of) -> list[dict[str, object]]:
        """What is recorded of all files; `digest` gives the SHA-256 of one."""
        return [
            file.record(role, [digest(path) for path in file.paths])
            for role, file in zip(ROLES, self.files, strict=False)
        ]

    def paths_of(self, parts: Sequence[TablePart], whole: bool) -> Iterator[str]:
        """The files that hold rows of these parts; with `whole` also those without rows."""
        for number, files in enumerate(self.files):
            for at, path in enumerate(files.paths):
                empty = files.starts[at] == files.starts[at + 1]
                if (empty and whole) or any(at in files.within(part.rows[number]) for part in parts):
                    yield path

    def parts(self, least: int) -> list[TablePart]:
        """All rows, in parts of whole sequences with at least so many rows; the last may have fewer.

        Raises:
            InputError: the sequences of a table do not ascend, or tables name them by different types.
        """
        begins = [_begins(files, columns) for files, columns in zip(self.files, self.columns, strict=True)]
        kinds = {type(own[0][0]): files.name for files, own in zip(self.files, begins, strict=True) if own}
        if len(kinds) > 1:
            one, other = kinds.values()
            raise InputError(f"sequences are named by another type than in {one}", Place(other))
        parts, ends = list[TablePart](), tuple(0 for _ in begins)
        for name in sorted({name for own in begins for name, _ in own})[1:]:
            now = tuple(
                own[at][1] if (at := bisect_left(own, name, key=itemgetter(0))) < len(own) else len(files)
                for files, own in zip(self.files, begins, strict=True)
            )
            if sum(now) - sum(ends) >= least:
                parts.append(TablePart(tuple(zip(ends, now, strict=True))))
                ends = now
        last = tuple(len(file) for file in self.files)
        return [*parts, TablePart(tuple(zip(ends, last, strict=True)))]


def _begins(files: FilesInOrder, columns: Mapping[str, str]) -> list[tuple[Any, int]]:
    """The first row of each sequence; of a table without sequences the first of all, named "".

    What the file itself says of a row group is enough where that is of one sequence.
    """
    own, begins, row = columns.get("sequence", "sequence"), list[tuple[Any, int]](), 0
    for file in files.paths:
        with opened(file) as source:
            if own not in source.schema_arrow.names:
                return [("", 0)] if len(files) else []
            column = source.schema_arrow.names.index(own)
            for number in range(source.metadata.num_row_groups):
                group = source.metadata.row_group(number)
                told = group.column(column).statistics
                if told is not None and told.has_min_max and told.min == told.max and told.null_count == 0:
                    _add_begin(begins, told.min, row, files)
                else:
                    _read_begins(begins, own, (row, row + group.num_rows), files)
                row += group.num_rows
    return begins


def _read_begins(begins: list[tuple[Any, int]], own: str, rows: RowRange, files: FilesInOrder) -> None:
    row = rows[0]
    for file, table in files.batches(rows, 1 << 20, [own]):
        column = renamed(table, {"sequence": own}, ("sequence",), file)["sequence"].combine_chunks()
        for at in np.flatnonzero(begins_run(column, "sequence", files, row)).tolist():
            _add_begin(begins, column[at].as_py(), row + at, files)
        row += len(column)


def begins_run(column: Any, name: str, files: FilesInOrder, first: int) -> NDArray[np.bool_]:
    """(n,) whether a cell differs from that before it, as the first does; `first` is the row of that one.

    Raises:
        InputError: an empty cell.
    """
    if column.null_count:
        row = int(column.is_null().to_numpy(zero_copy_only=False).argmax())
        raise InputError(f"{name}: the cell is empty", files.place(first + row))
    begins = np.ones(len(column), dtype=bool)
    begins[1:] = library("pyarrow.compute").not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
    return begins


def _add_begin(begins: list[tuple[Any, int]], name: Any, row: int, files: FilesInOrder) -> None:
    if not begins or begins[-1][0] < name:
        begins.append((name, row))
    elif begins[-1][0] != name:
        raise InputError(
            f"sequence {shown(str(name))} comes after {shown(str(begins[-1][0]))}: rows must ascend by sequence",
            files.place(row),
            "sort the table, or read it at once",
        )
