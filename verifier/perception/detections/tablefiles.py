"""Annotations and detections in CSV and Parquet files with named columns, as Arrow tables and as rows of objects.

| name | holds |
|---|---|
| `frame` | the frame: a whole number or a name; required |
| `sequence` | the drive or scene |
| `class` | the class name; required |
| `score` | of detections; required there |
| `x1 y1 x2 y2` | box in the image, pixels: left, top, right, bottom |
| `x y z` | centre of the box in the ego frame, metres: forward, left, up |
| `length width height yaw` | its size in metres and its turn in radians, counter-clockwise from straight ahead |
| `distance_m` | the distance the data set itself gives |
| `region` | 1 for an annotation that marks where detections are not judged, else 0 |

`z`, sizes and yaw are 0 where a file has no such column, and `origin` says so. Every other column of numbers of the
annotations is an attribute. An empty cell (CSV) or a null (Parquet) is unknown; a NaN in a box is a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, UsageError, check_known, first_line, shown
from verifier.base.files import read_bytes
from verifier.base.libraries import library
from verifier.base.tables import Kind, arrow_table, codes_of, doubles_of, is_number, known_names, value_type
from verifier.perception.detections.assembly import Rows, assemble
from verifier.perception.detections.columns import NO_SEQUENCE, DetectionSet, Frames, LookedUp, frames_at
from verifier.perception.detections.sources import Reading, digest_record

BOX_2D = ("x1", "y1", "x2", "y2")
CENTRE = ("x", "y")
ASSUMED_ZERO = ("z", "length", "width", "height", "yaw")
BOX_3D = CENTRE + ASSUMED_ZERO
NAMES = ("frame", "sequence", "class", "score", *BOX_2D, *BOX_3D, "distance_m", "region")
TEXTS = ("frame", "sequence", "class")
Key: TypeAlias = tuple[Any, Any]
"""Sequence, None or "" where a table names none, and frame."""


@dataclass(frozen=True, eq=False)
class NamedTable:
    """An Arrow table with the names above, the line of each row (n,), and the file for messages.

    Of several files, `file` is what they stand in, `files` their names, and `part` (n,) the file of each row;
    `pointer` is that of a row in JSON.
    """

    table: Any
    line: NDArray[np.int64]
    file: str
    files: tuple[str, ...] = ()
    part: NDArray[np.int32] | None = None
    pointer: Callable[[int], str] | None = None

    def __len__(self) -> int:
        return len(self.line)

    def has(self, name: str) -> bool:
        """Whether there is such a column."""
        return name in self.table.column_names

    def numbers(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """(n,) values, NaN where there is none, and which cells are empty (n,)."""
        return doubles_of(self.table[name].combine_chunks(), name, self.file)

    def attribute(self, name: str) -> NDArray[Any]:
        """(n,) numbers, NaN where there is none; or the names of tracks, empty where there is none."""
        column = self.table[name]
        if is_number(column.type):
            return self.numbers(name)[0]
        return np.array(column.fill_null("").to_pylist(), dtype=str)

    def codes(self, name: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
        """(n,) code of each cell, and the texts by code. An empty cell is an error."""
        return codes_of(self.table[name].combine_chunks(), name, self.line, self.file)


def read_named(path: str | Path, columns: Mapping[str, str], required: Sequence[str]) -> tuple[NamedTable, bytes]:
    """A CSV (separated by comma, semicolon or tab) or Parquet file, and its bytes.

    `columns` gives the file's own name for a name above, where it differs.

    Raises:
        InputError: unreadable, a required column missing, a cell that is no number: with file and line.
    """
    raw = read_bytes(path)
    kinds: dict[str, Kind] = {columns.get(name, name): "text" if name in TEXTS else "any" for name in NAMES}
    table, line = arrow_table(raw, str(path), kinds)
    return NamedTable(renamed(table, columns, required, str(path)), line, str(path)), raw


def named_frame(frame: Any, columns: Mapping[str, str], required: Sequence[str], file: str) -> NamedTable:
    """A pandas DataFrame as such a table; rows count from 1, and its index is left out.

    Raises:
        InputError: no DataFrame, or as `read_named`.
    """
    arrow, pandas = library("pyarrow"), library("pandas")
    if not isinstance(frame, pandas.DataFrame):
        raise InputError(f"expected a pandas DataFrame, got {type(frame).__name__}", Place(file))
    try:
        table = arrow.Table.from_pandas(frame, preserve_index=False)
    except (arrow.ArrowException, ValueError, TypeError) as error:
        message = f"cannot be read as a table: {'; '.join(map(str, error.args))}"
        raise InputError(message, Place(file)) from None
    return NamedTable(renamed(table, columns, required, file), np.arange(1, len(frame) + 1, dtype=np.int64), file)


def renamed(table: Any, columns: Mapping[str, str], required: Sequence[str], file: str) -> Any:
    """The table with the names above; of other columns, numbers and names of tracks only."""
    arrow = library("pyarrow")
    if len(set(table.column_names)) != len(table.column_names):
        twice = next(name for name in table.column_names if table.column_names.count(name) > 1)
        raise InputError(f"the column {shown(twice)} occurs twice", Place(file, 1))
    own = {theirs: ours for ours, theirs in columns.items()}
    for theirs in columns.values():
        if theirs not in table.column_names:
            raise InputError(f"no column {shown(theirs)}", Place(file), known_names(theirs, table.column_names))
    taken: dict[str, object] = {}
    for name in table.column_names:
        ours = own.get(name, name if name not in columns else f"{name} of the file")
        column = table[name]
        kind = value_type(column.type)
        text = arrow.types.is_string(kind) or arrow.types.is_large_string(kind)
        if ours in (*TEXTS, "track") and kind != column.type:  # decoding classes takes longer than reading them
            column = column.cast(arrow.dictionary(arrow.int32(), kind) if text and ours == "class" else kind)
        if ours in TEXTS:
            if not text and not arrow.types.is_integer(kind):
                if len(column):  # of no rows no type is known
                    message = f"column '{ours}': expected names or whole numbers, got {column.type}"
                    raise InputError(message, Place(file))
                column = column.cast(arrow.string())
            taken[ours] = column
        elif is_number(column.type) or (text and ours == "track"):
            taken[ours] = column
        elif ours in NAMES:
            raise InputError(f"column '{ours}': expected numbers, got {column.type}", Place(file))
    for name in required:
        if name not in taken:
            hint = f"{known_names(name, table.column_names)}; name it with --column {name}=NAME (in Python: columns)"
            raise InputError(f"no column '{name}'", Place(file), hint)
    return arrow.table(taken)


def rows_of(named: NamedTable, frames: LookedUp, scored: bool) -> Rows:
    """The rows of a table whose frames are already looked up."""
    box_2d, no_2d = _box(named, BOX_2D)
    box_3d, no_3d = _box(named, BOX_3D)
    distance = named.numbers("distance_m")[0] if named.has("distance_m") else None
    region = None
    if named.has("region") and not scored:
        region = np.nan_to_num(named.numbers("region")[0]) != 0
    others = [] if scored else [name for name in named.table.column_names if name not in NAMES]
    return Rows(
        frames[0],
        *named.codes("class"),
        named.line,
        np.zeros(len(named), np.int32) if named.part is None else named.part,
        named.files or (named.file,),
        frames[1],
        named.numbers("score")[0] if scored else None,
        box_2d,
        box_3d,
        distance,
        {name: named.attribute(name) for name in others},
        no_2d,
        no_3d,
        region,
        pointer=named.pointer,
    )


def joined_tables(parts: Sequence[NamedTable], file: str) -> NamedTable:
    """The tables of several files as one; the names in a column `track` become numbers.

    Raises:
        InputError: an empty cell of a name, or columns that do not fit together.
    """
    arrow = library("pyarrow")
    tables = []
    for named in parts:
        texts = [name for name in (*TEXTS, "track") if named.has(name)]
        for name in texts[: -1 if named.has("track") else None]:
            named.codes(name)  # names the file of an empty cell
        columns = {name: named.table[name] for name in named.table.column_names}
        tables.append(arrow.table(columns | {name: columns[name].cast(arrow.string()) for name in texts}))
    try:
        whole = arrow.concat_tables(tables, promote_options="permissive")
    except arrow.ArrowException as error:
        raise InputError(f"the columns of its files do not fit together: {first_line(error)}", Place(file)) from None
    if "track" in whole.column_names:
        tracks = whole["track"].combine_chunks().dictionary_encode().indices.fill_null(-1)
        whole = whole.set_column(whole.column_names.index("track"), "track", tracks)
    sizes = [len(named) for named in parts]
    line = np.concatenate([named.line for named in parts])
    files = tuple(named.file for named in parts)
    return NamedTable(whole, line, file, files, np.repeat(np.arange(len(parts), dtype=np.int32), sizes))


def frame_keys(named: NamedTable) -> tuple[NDArray[np.int64], list[tuple[str, str]]]:
    """(n,) code of each row's frame, and (sequence, frame) by code in the order they first occur."""
    frame, names = named.codes("frame")
    if not named.has("sequence"):
        return frame, [("", name) for name in names]
    sequence, sequences = named.codes("sequence")
    pairs = sequence * max(len(names), 1) + frame
    unique, first, codes = np.unique(pairs, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    listed = unique[order]
    keys = [(sequences[pair // len(names)], names[pair % len(names)]) for pair in listed.tolist()]
    return place[codes].astype(np.int64), keys


def frames_of(keys: Sequence[Key]) -> Frames:
    """Frames named "SEQUENCE/FRAME"; without sequences named by the frame."""
    told = ["" if sequence is None else str(sequence) for sequence, _ in keys]
    names = (f"{own}/{frame}" if own else str(frame) for own, (_, frame) in zip(told, keys, strict=True))
    return Frames.of(names, (sequence or NO_SEQUENCE for sequence in told))


def looked_up(codes: NDArray[np.int64], keys: Sequence[Any], index: Mapping[Any, int]) -> LookedUp:
    """(n,) frame of each row, and what to call it in a message."""
    frame = frames_at(index, keys)[codes]

    def text(row: int) -> str:
        sequence, name = keys[int(codes[row])]
        return f"frame {shown(str(name))}" + (
            "" if sequence in (None, "") else f" of sequence {shown(str(sequence))}"
        )

    return frame, text


def _box(named: NamedTable, names: Sequence[str]) -> tuple[NDArray[np.float64] | None, NDArray[np.bool_] | None]:
    """(n, k) box and which rows have none (n,): all its cells empty."""
    needed = names if names is BOX_2D else CENTRE
    if not all(named.has(name) for name in needed):
        return None, None
    box, absent = np.zeros((len(named), len(names))), np.ones(len(named), dtype=bool)
    for at, name in enumerate(names):
        if named.has(name):
            box[:, at], empty = named.numbers(name)
            absent &= empty
    box[absent] = np.nan
    return box, absent


REQUIRED = ("frame", "class")
REQUIRED_SCORED = ("frame", "class", "score")


def tables(
    annotations: Any,
    detections: Any,
    reading: Reading | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    frames: Any = None,
    classes: tuple[str, ...] = (),
) -> DetectionSet:
    """One file of annotations and one of detections, CSV or Parquet, or pandas DataFrames, in which NaN is unknown.

    `columns` gives the files' own names for `frame`, `class`, ... where they differ. `frames` is a file with the
    columns `frame` (and `sequence`) that lists every frame, those without objects too. Without it the frames are
    those with an annotation, and a detection elsewhere is in an unknown frame. `classes` are all that may occur; none
    for those of the annotations.

    Raises:
        InputError: a file cannot be read, with file and line (of a DataFrame the row, from 1, in "<annotations>",
            "<detections>" or "<frames>"); see also `sources.IGNORABLE`.
        UsageError: `columns` names something that does not exist.
    """
    columns = check_columns(columns or {})
    records = []

    def read(given: Any, role: str, own: Mapping[str, str], needed: Sequence[str]) -> NamedTable:
        if not isinstance(given, str | Path):
            return named_frame(given, own, needed, f"<{role}>")
        named, raw = read_named(given, own, needed)
        records.append(digest_record(role, given, raw))
        return named

    truth = read(annotations, "annotations", columns, REQUIRED)
    table = read(detections, "detections", columns, REQUIRED_SCORED)
    all_keys = None
    if frames is not None:
        wanted = {name: own for name, own in columns.items() if name in ("frame", "sequence")}
        needed = ("frame", "sequence") if truth.has("sequence") else ("frame",)
        all_keys = each_once(read(frames, "frames", wanted, needed))
    assumed = {"annotations": assumed_zero(truth), "detections": assumed_zero(table)}
    notes = {"columns": dict(columns), "frames_given": frames is not None, "assumed_zero": assumed}
    return table_set("table", truth, table, all_keys, reading, records, classes, notes, unlisted=frames is None)


def table_set(
    name: str,
    truth: NamedTable,
    table: NamedTable,
    keys: Sequence[tuple[str, str]] | None,
    reading: Reading | None,
    records: Sequence[Mapping[str, object]],
    classes: tuple[str, ...] = (),
    notes: Mapping[str, object] | None = None,
    unlisted: bool = False,
) -> DetectionSet:
    """The checked set of a format whose objects are rows of tables.

    `keys` are the frames as (sequence, frame); None for those with an annotation.
    """
    truth_codes, truth_keys = frame_keys(truth)
    all_keys = truth_keys if keys is None else keys
    index = {key: number for number, key in enumerate(all_keys)}
    codes, keys_there = frame_keys(table)
    reading = reading or Reading()
    return assemble(
        name,
        frames_of(all_keys),
        rows_of(truth, looked_up(truth_codes, truth_keys, index), scored=False),
        rows_of(table, looked_up(codes, keys_there, reading.frame_index(index)), scored=True),
        records,
        reading,
        classes,
        notes=notes,
        unlisted=unlisted,
    )


def assumed_zero(named: NamedTable) -> list[str]:
    """The numbers of a box in the ego frame that the file does not give and that are taken as 0."""
    if not all(named.has(name) for name in CENTRE):
        return []
    return [name for name in ASSUMED_ZERO if not named.has(name)]


def check_columns(columns: Mapping[str, str]) -> Mapping[str, str]:
    """`columns`, if it names what exists and no column of the file twice."""
    for name in columns:
        check_known("column", name, NAMES)
    if len(set(columns.values())) != len(columns):
        raise UsageError("one column of the file is named for two purposes")
    return columns


def each_once(listed: NamedTable) -> list[tuple[str, str]]:
    """(sequence, frame) of each row of a list of frames; InputError where one occurs twice."""
    codes, keys = frame_keys(listed)
    if len(keys) != len(listed):
        counts = np.bincount(codes)
        row = int(np.flatnonzero(codes == int((counts > 1).argmax()))[1])
        sequence, name = keys[int(codes[row])]
        where = f" of sequence {shown(sequence)}" if sequence else ""
        raise InputError(f"frame {shown(name)}{where} occurs twice", Place(listed.file, int(listed.line[row])))
    return keys
