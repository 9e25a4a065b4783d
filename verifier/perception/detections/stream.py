"""Parquet tables of any size, a chunk of whole frames at a time, in memory that does not grow with the files.

All tables list their rows by ascending frame (within ascending sequence), so one pass over each suffices.
"""

from __future__ import annotations

import contextlib
import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import lt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.base.libraries import library
from verifier.perception.detections.assembly import Rows, assemble
from verifier.perception.detections.columns import DetectionSet, Frames
from verifier.perception.detections.parquetfiles import (
    NEEDED,
    FilesInOrder,
    RowRange,
    TablePart,
    Tables,
    begins_run,
    opened,
    without_rows,
)
from verifier.perception.detections.sources import Reading
from verifier.perception.detections.tablefiles import Key, NamedTable, frames_of, looked_up, renamed, rows_of


@dataclass(frozen=True)
class Chunk:
    """Some whole frames; `last_frame` is the name to resume after, `rows_done` of `rows_total` rows are read.

    `numbers` are those of the frames within their sequences, where these are asked for: equal to those of
    `verifier.perception.confusion.tracks.frame_numbers` of all frames at once.
    """

    data: DetectionSet
    last_frame: str
    rows_done: int
    rows_total: int
    numbers: NDArray[np.int64] | None = None


def stream_tables(
    tables: Tables,
    reading: Reading | None = None,
    *,
    classes: tuple[str, ...] = (),
    rows_per_chunk: int = 200_000,
    after: str | None = None,
    numbered: bool = False,
    part: TablePart | None = None,
    records: Sequence[Mapping[str, object]] | None = None,
) -> Iterator[Chunk]:
    """The same as `tablefiles.tables`, for Parquet files whose rows ascend by sequence and frame.

    Every chunk has the same classes: those of the class map or `classes`. `after` is the `last_frame` of an
    earlier run: what follows is read. Frames do not repeat between chunks, so the counts of the chunks add up. With
    `numbered` all frames are looked through beforehand, to number them. Who has hashed the files gives `records`; of
    a `part` nothing else is read.

    Raises:
        InputError: as `tables`; rows that are not in ascending order; no frame named `after`; frames to be numbered
            that are no whole numbers from 0.
        UsageError: neither a class map nor `classes` is given.
    """
    reading = reading or Reading()
    if reading.class_map is None and not classes:
        raise UsageError("streaming needs a class map, or the names of the classes")
    rows = (part or tables.whole).rows
    sides = [_Side(*row, rows_per_chunk) for row in zip(tables.files, tables.columns, NEEDED, rows, strict=False)]
    numbers, lists_frames = None, 2 if len(sides) > 2 else 0
    if numbered:
        own = {name: given for name, given in tables.columns[0].items() if name in ("frame", "sequence")}
        numbers = _Numbers(_Side(tables.files[lists_frames], own, ("frame",), rows[lists_frames], rows_per_chunk))
    records = tables.records() if records is None else records
    skipping = after is not None
    while any(not side.finished() for side in sides):
        parts = _next_parts(sides)
        keys = parts[lists_frames].keys
        frames_read = frames_of(keys)
        names = frames_read.names
        places = {} if numbers is None else dict(zip(names, map(numbers.of, keys), strict=True))
        if skipping:
            start = names.index(after) + 1 if after in names else len(names)
            skipping = start == len(names) and names[-1:] != (after,)
            floor = keys[start] if start < len(keys) else None
            parts = [side.from_key(part, floor) for side, part in zip(sides, parts, strict=True)]
            keys = keys[start:]
            frames_read = frames_of(keys)
            names = frames_read.names
        if keys or parts[1].keys:
            with _placed(tables.files):
                data = _chunk_set(parts, tables.files, (keys, frames_read), reading, classes, records)
            done = sum(side.rows_done - side.rows[0] for side in sides)
            place = None if numbers is None else np.array([places[name] for name in data.frame_name], dtype=np.int64)
            yield Chunk(data, names[-1] if names else "", done, sum(end - first for first, end in rows), place)
    if skipping:
        raise InputError(f"no frame named {shown(after)}, after which to resume", Place(tables.files[0].name))


def _next_parts(sides: list[_Side]) -> list[_Part]:
    """All rows before the least frame at which some file is not yet read on."""
    for side in sides:
        side.fill()
    open_ends = [side.keys[-1] for side in sides if not side.exhausted]
    _check_comparable(sides)
    return [side.take(min(open_ends) if open_ends else None) for side in sides]


def _check_comparable(sides: list[_Side]) -> None:
    """All files name sequences and frames by values of the same type."""
    kinds = [(side, tuple(map(type, side.keys[0]))) for side in sides if side.keys]
    for side, kind in kinds[1:]:
        if kind != kinds[0][1]:
            raise InputError(
                f"frames are named by {_kind_text(kind)}, in {kinds[0][0].file} by {_kind_text(kinds[0][1])}",
                Place(side.file),
            )


def _kind_text(kind: tuple[type, ...]) -> str:
    names = {int: "whole numbers", str: "names"}
    sequence, frame = kind
    return names.get(frame, "?") + ("" if sequence is type(None) else f" within sequences named by {names[sequence]}")


def _texts(key: Key) -> tuple[str, str]:
    return ("" if key[0] is None else str(key[0]), str(key[1]))


def _chunk_set(
    parts: Sequence[_Part],
    files: Sequence[FilesInOrder],
    found_frames: tuple[list[Key], Frames],
    reading: Reading,
    classes: tuple[str, ...],
    records: Sequence[Mapping[str, object]],
) -> DetectionSet:
    keys, frames = found_frames
    index = dict(zip(keys, range(len(keys)), strict=True))

    def placed(part: _Part, own: FilesInOrder, scored: bool) -> Rows:
        """The rows of a part, each in its file."""
        named, frame_keys, sizes = part
        codes = np.repeat(np.arange(len(frame_keys), dtype=np.int64), sizes)
        found = rows_of(named, looked_up(codes, frame_keys, index), scored=scored)
        starts = np.array(own.starts)
        file = np.searchsorted(starts, named.line - 1, side="right") - 1
        return replace(found, line=named.line - starts[file], file=file.astype(np.int32), files=own.paths)

    if reading.sequences is not None:
        present = tuple(name for name in reading.sequences if name in frames.sequences)
        reading = replace(reading, sequences=present)
    truth, found = placed(parts[0], files[0], scored=False), placed(parts[1], files[1], scored=True)
    unlisted = len(files) == 2
    return assemble("table", frames, truth, found, records, reading, classes, whole=False, unlisted=unlisted)


@contextlib.contextmanager
def _placed(tables: Sequence[FilesInOrder]) -> Iterator[None]:
    """A row of a table of several files is told as that of its file."""
    try:
        yield
    except InputError as error:
        for files in tables:
            if error.place.file == files.name and error.place.line is not None:
                raise InputError(error.message, files.place(error.place.line - 1), error.hint) from None
        raise


class _Numbers:
    """Numbers of frames within their sequences: places on the grid that each sequence's frames lie on; where they lie
    on none, places in their order. To be asked for all frames in turn."""

    def __init__(self, side: _Side) -> None:
        grids: dict[Any, tuple[int, int, int, int]] = {}  # first, least and common step, last
        while not side.finished():
            side.fill()
            for sequence, frame in side.take(None if side.exhausted else side.keys[-1]).keys:
                if not isinstance(frame, int) or frame < 0:
                    raise InputError(
                        f"frame {shown(str(frame))}: in a stream contexts follow frames that are whole numbers",
                        Place(side.file),
                        "number the frames of each sequence, or count the files at once",
                    )
                first, least, common, last = grids.get(sequence, (frame, 0, 0, frame))
                if step := frame - last:
                    least, common = min(least or step, step), math.gcd(common, step)
                grids[sequence] = first, least, common, frame
        self._grid = {key: (first, least or 1, least == common) for key, (first, least, common, _) in grids.items()}
        self._seen: dict[Any, int] = {}

    def of(self, key: Key) -> int:
        """The number of a frame."""
        first, step, regular = self._grid[key[0]]
        self._seen[key[0]] = place = self._seen.get(key[0], -1) + 1
        return (int(key[1]) - first) // step if regular else place


class _Part(NamedTuple):
    """Rows of whole frames: the table, the frames in their order, and how many rows each has."""

    named: NamedTable
    keys: list[Key]
    sizes: NDArray[np.int64]


class _Side:
    """One table, or some rows of it: what is read and not yet handed out, with the frame of each run of rows."""

    def __init__(
        self, files: FilesInOrder, columns: Mapping[str, str], required: tuple[str, ...], rows: RowRange, most: int
    ) -> None:
        self.files, self.file, self.columns, self.required = files, files.name, columns, required
        self.rows, self.most = rows, most
        self.batches = files.batches(rows, min(most, 65_536))
        with opened(files.paths[files.file_of(rows[0])]) as source:
            self.buffer = without_rows(source, columns, required, self.file)
        self.keys: list[Key] = []
        self.starts = np.zeros(0, dtype=np.int64)
        self.rows_done = rows[0]
        self.exhausted = False
        self.last: Key | None = None

    def finished(self) -> bool:
        return self.exhausted and not len(self.buffer)

    def fill(self) -> None:
        """Read on until there are enough rows and two frames, or nothing is left."""
        arrow = library("pyarrow")
        parts = [self.buffer]
        held = len(self.buffer)
        while not self.exhausted and (held < self.most or len(self.keys) < 2):
            file, table = next(self.batches, (None, None))
            if file is None:
                self.exhausted = True
            else:
                read = renamed(table, self.columns, self.required, file).select(self.buffer.column_names)
                parts.append(read.cast(self.buffer.schema))
                held += len(parts[-1])
            if held >= self.most or self.exhausted:
                self.buffer, parts = arrow.concat_tables(parts), []
                self._find_runs()
                parts = [self.buffer]

    def _find_runs(self) -> None:
        names = [name for name in ("sequence", "frame") if name in self.buffer.column_names]
        columns = {name: self.buffer[name].combine_chunks() for name in names}
        begins = [begins_run(column, name, self.files, self.rows_done) for name, column in columns.items()]
        self.starts = np.flatnonzero(np.logical_or.reduce(begins))
        runs = [column.take(library("pyarrow").array(self.starts)).to_pylist() for column in columns.values()]
        self.keys = list(zip(*(runs if len(runs) == 2 else [[None] * len(runs[0]), *runs]), strict=True))
        self._check_order()

    def _check_order(self) -> None:
        before = [] if self.last is None else [self.last]
        if all(map(lt, [*before, *self.keys], self.keys if before else self.keys[1:])):
            return
        previous = self.last
        for key, start in zip(self.keys, self.starts.tolist(), strict=True):
            if previous is not None and key <= previous:
                raise InputError(
                    f"frame {shown('/'.join(filter(None, _texts(key))))} comes after "
                    f"{shown('/'.join(filter(None, _texts(previous))))}: rows must ascend by sequence and frame",
                    self.files.place(self.rows_done + start),
                    "sort the file, or read it at once",
                )
            previous = key

    def take(self, end: Key | None) -> _Part:
        """Hand out the rows of all frames before `end`, or everything."""
        count = len(self.keys) if end is None else bisect_left(self.keys, end)
        stop = len(self.buffer) if count == len(self.keys) else int(self.starts[count])
        line = np.arange(self.rows_done + 1, self.rows_done + stop + 1, dtype=np.int64)
        named = NamedTable(self.buffer.slice(0, stop), line, self.file)
        keys = self.keys[:count]
        sizes = np.diff(self.starts[:count], append=stop)
        self.last = keys[-1] if keys else self.last
        self.buffer = self.buffer.slice(stop)
        self.keys, self.starts = self.keys[count:], self.starts[count:] - stop
        self.rows_done += stop
        return _Part(named, keys, sizes)

    def from_key(self, part: _Part, floor: Key | None) -> _Part:
        """The rows of `part` from the frame `floor` on; none without it."""
        named, keys, sizes = part
        first = len(keys) if floor is None else bisect_left(keys, floor)
        start = int(sizes[:first].sum())
        rest = NamedTable(named.table.slice(start), named.line[start:], named.file)
        return _Part(rest, keys[first:], sizes[first:])
