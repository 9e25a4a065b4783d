"""Parquet tables that list their rows by ascending sequence, in parts of whole sequences.

A range of sequences is a range of rows of each table, so a part is read as if there were nothing else.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from verifier.base.errors import InputError, Place, shown
from verifier.base.libraries import library
from verifier.perception.detections.parquetfiles import FilesInOrder, Rows, digest_of, opened
from verifier.perception.detections.tablefiles import REQUIRED, REQUIRED_SCORED, check_columns, renamed

ROLES = ("annotations", "detections", "frames")
NEEDED = (REQUIRED, REQUIRED_SCORED, ("frame",))


@dataclass(frozen=True)
class TablePart:
    """The rows of some whole sequences: of annotations, detections and, where they are listed, frames."""

    rows: tuple[Rows, ...]

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
        detection_columns: Mapping[str, str] | None = None,
        frames: str | Path | None = None,
    ) -> Tables:
        """Look at all files; InputError and UsageError as `stream_tables`."""
        columns = check_columns(columns or {})
        found = columns if detection_columns is None else check_columns(detection_columns)
        listed = {name: own for name, own in columns.items() if name in ("frame", "sequence")}
        own, paths = (columns, found, listed), (annotations, detections, frames)
        files = tuple(
            FilesInOrder.of(path, names, needed)
            for path, names, needed in zip(paths, own, NEEDED, strict=True)
            if path is not None
        )
        return cls(files, own[: len(files)])

    @property
    def whole(self) -> TablePart:
        """All rows."""
        return TablePart(tuple((0, len(each)) for each in self.files))

    def records(self, digest: Callable[[str], str] = digest_of) -> list[dict[str, Any]]:
        """What is recorded of all files; `digest` gives the SHA-256 of one."""
        return [
            each.record(role, [digest(path) for path in each.paths])
            for role, each in zip(ROLES, self.files, strict=False)
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
        last = tuple(len(each) for each in self.files)
        return [*parts, TablePart(tuple(zip(ends, last, strict=True)))]


def _begins(files: FilesInOrder, columns: Mapping[str, str]) -> list[tuple[Any, int]]:
    """The first row of each sequence; of a table without sequences the first of all, named "".

    What the file itself says of a row group is enough where that is of one sequence.
    """
    own, found, row = columns.get("sequence", "sequence"), list[tuple[Any, int]](), 0
    for file in files.paths:
        with opened(file) as source:
            if own not in source.schema_arrow.names:
                return [("", 0)] if len(files) else []
            column = source.schema_arrow.names.index(own)
            for number in range(source.metadata.num_row_groups):
                group = source.metadata.row_group(number)
                told = group.column(column).statistics
                if told is not None and told.has_min_max and told.min == told.max and told.null_count == 0:
                    _add_begin(found, told.min, row, files)
                else:
                    _read_begins(found, own, (row, row + group.num_rows), files)
                row += group.num_rows
    return found


def _read_begins(found: list[tuple[Any, int]], own: str, rows: Rows, files: FilesInOrder) -> None:
    row, compute = rows[0], library("pyarrow.compute")
    for file, table in files.batches(rows, 1 << 20, [own]):
        column = renamed(table, {"sequence": own}, ("sequence",), file)["sequence"].combine_chunks()
        if column.null_count:
            place = files.place(row + int(column.is_null().to_numpy(zero_copy_only=False).argmax()))
            raise InputError("sequence: the cell is empty", place)
        differs = compute.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
        for at in [0, *(np.flatnonzero(differs) + 1).tolist()]:
            _add_begin(found, column[at].as_py(), row + at, files)
        row += len(column)


def _add_begin(found: list[tuple[Any, int]], name: Any, row: int, files: FilesInOrder) -> None:
    if not found or found[-1][0] < name:
        found.append((name, row))
    elif found[-1][0] != name:
        raise InputError(
            f"sequence {shown(str(name))} comes after {shown(str(found[-1][0]))}: rows must ascend by sequence",
            files.place(row),
            "sort the table, or read it at once",
        )
