"""What happened to every object and every leftover detection, as a table: a cell can be traced to its frames.

One row per frame (`kind` frame), annotated object (object) and detection that matched nothing (unmatched, duplicate,
ignored). From these rows the counts can be made again:

| column | holds |
|---|---|
| kind, sequence, frame | see above |
| drive | the drive of the frame, as `--groups` names it, else its sequence |
| bin, place | number of the bin in the document, and of the first bin of the place; -1 for none. Of a detection that
a policy counts, where it is counted |
| distance_m | of the object, or of the detection itself |
| true, predicted | classes; `empty` for none. At the lowest score threshold |
| score, affinity | of the report, and of its match |
| track | of the object, empty where the data has none |
| group | objects of one frame with the same number are one item (group-labelled only; else -1) |
| file, line | of the object |
| true_x1 ... true_y2 | the object's image rectangle |
| report_file, report_line | of the detection |
| report_x1 ... report_yaw_rad | the detection's image rectangle and box in the ego frame |

Unknown numbers are empty in CSV, null in Parquet.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.base.files import ending_of, write_bytes
from verifier.base.libraries import library
from verifier.base.tables import SUFFIXES, Kind, read_table
from verifier.perception.confusion.counting import Observed
from verifier.perception.confusion.drives import DriveTable
from verifier.perception.confusion.rules import EMPTY_NAME, CountingRule
from verifier.perception.detections.columns import Boxes, DetectionSet
from verifier.perception.detections.distances import reported_distance

TRUE_2D = ("true_x1", "true_y1", "true_x2", "true_y2")
BOX_2D = ("report_x1", "report_y1", "report_x2", "report_y2")
BOX_3D = ("report_x_m", "report_y_m", "report_z_m", "report_length_m", "report_width_m", "report_height_m",
          "report_yaw_rad")  # fmt: skip
TEXTS = ("kind", "sequence", "drive", "frame", "true", "predicted", "track", "file", "report_file")
WHOLES = ("bin", "place", "group", "line", "report_line")
REALS = ("distance_m", "score", "affinity", *TRUE_2D, *BOX_2D, *BOX_3D)
COLUMNS = ("kind", "sequence", "drive", "frame", "bin", "place", "distance_m", "true", "predicted", "score",
           "affinity", "track", "group", "file", "line", *TRUE_2D, "report_file", "report_line", *BOX_2D,
           *BOX_3D)  # fmt: skip

Table = Mapping[str, NDArray[Any]]


def check_record_target(path: str | Path) -> None:
    """Refuse a record that could not be written, before anything is counted."""
    if ending_of("--record", path, SUFFIXES) == ".parquet":
        library("pyarrow.parquet")


def record_table(
    data: DetectionSet, rule: CountingRule, observed: Observed, drives: DriveTable | None = None
) -> dict[str, NDArray[Any]]:
    """The rows of some frames: first the frames, then the objects, then the leftover detections."""
    matches = observed.matches
    frames = np.arange(data.frame_count)
    left = np.flatnonzero((matches.annotation_of < 0) & (rule.levels(np.asarray(data.detections.score)) > 0))
    by = np.where(observed.scene.objects.level > 0, matches.detection_of, -1)
    parts = [
        _rows(data, frames, "frame"),
        _rows(data, data.annotations.frame, "object", objects=np.arange(len(data.annotations)), reports=by),
        _rows(data, data.detections.frame[left], _kinds(observed, left), reports=left),
    ]
    objects, reports = parts[1], parts[2]
    objects["bin"], objects["place"] = observed.objects.bin, observed.objects.place
    objects["distance_m"] = observed.objects.distance_m
    objects["affinity"] = (
        np.where(by >= 0, matches.affinity[by], np.nan) if len(matches.affinity) else np.full(len(by), np.nan)
    )
    if observed.group is not None:
        objects["group"] = observed.group
    counted = np.full(len(data.detections), -1, dtype=np.int64)
    counted[observed.leftover] = observed.scene.leftovers.place
    reports["bin"] = reports["place"] = counted[left]
    reports["distance_m"] = reported_distance(data.detections.take(left), rule.measure)
    rows = {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS if name != "drive"}
    if drives is None:
        return rows | {"drive": rows["sequence"]}
    # A row that the table does not have is refused where drives are put together.
    return rows | {"drive": np.array([drives.drives.get(name, "") for name in rows[drives.of]], dtype=object)}


def _kinds(observed: Observed, left: NDArray[np.int64]) -> NDArray[Any]:
    kinds = np.where(observed.matches.nearest[left] >= 0, "duplicate", "unmatched")
    return np.where(observed.matches.ignored[left], "ignored", kinds).astype(object)


def _rows(
    data: DetectionSet,
    frame: NDArray[np.int64],
    kind: str | NDArray[Any],
    objects: NDArray[np.int64] | None = None,
    reports: NDArray[np.int64] | None = None,
) -> dict[str, NDArray[Any]]:
    """Rows of frames, with the object and the report (-1: none) of each."""
    n = len(frame)
    nobody = np.full(n, -1, dtype=np.int64)
    objects, reports = (nobody if rows is None else rows for rows in (objects, reports))
    columns: dict[str, NDArray[Any]] = {
        "kind": np.full(n, kind, dtype=object) if isinstance(kind, str) else kind,
        "sequence": _names(data.sequences, data.frame_sequence[frame]),
        "frame": _names(data.frame_name, frame),
        "true": _names(data.classes, _at(data.annotations.label, objects), EMPTY_NAME),
        "predicted": _names(data.classes, _at(data.detections.label, reports), EMPTY_NAME),
        "track": _tracks(data.annotations, objects),
        "file": _names(data.files, _at(data.annotations.file, objects)),
        "report_file": _names(data.files, _at(data.detections.file, reports)),
        "line": _at(data.annotations.line, objects),
        "report_line": _at(data.detections.line, reports),
        "score": _at(np.asarray(data.detections.score), reports, np.nan),
    }
    columns |= dict.fromkeys(("bin", "place", "group"), nobody)
    columns |= {name: np.full(n, np.nan) for name in ("distance_m", "affinity")}
    columns |= _box_columns(TRUE_2D, data.annotations.box_2d, objects)
    columns |= _box_columns(BOX_2D, data.detections.box_2d, reports)
    return columns | _box_columns(BOX_3D, data.detections.box_3d, reports)


def _tracks(annotations: Boxes, objects: NDArray[np.int64]) -> NDArray[Any]:
    """What the data calls the track of each object: a whole number as such; nothing where it is NaN."""
    texts = np.full(len(objects), "", dtype=object)
    real = np.flatnonzero(objects >= 0)
    track = annotations.attributes.get("track")
    if track is None or not len(real):
        return texts
    values = track[objects[real]]
    whole = values.dtype.kind == "f" and bool(np.all(values[~np.isnan(values)] % 1 == 0))
    texts[real] = ["" if value != value else str(int(value) if whole else value) for value in values.tolist()]
    return texts


def _box_columns(names: Sequence[str], box: NDArray[Any] | None, rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """The sides of the boxes at `rows`; NaN at -1, and where there are no boxes."""
    return {
        name: np.full(len(rows), np.nan) if box is None else _at(box[:, k], rows, np.nan)
        for k, name in enumerate(names)
    }


def _at(values: NDArray[Any], rows: NDArray[np.int64], nothing: float = -1) -> NDArray[Any]:
    if len(values) == 0:
        return np.full(len(rows), nothing, dtype=values.dtype)
    return np.where(rows >= 0, values[rows], nothing)


def _names(names: Sequence[str], index: NDArray[Any], nothing: str = "") -> NDArray[Any]:
    """The names at `index`; `nothing` at -1."""
    known = np.array([*names, nothing], dtype=object)
    named: NDArray[Any] = known[index]
    return named


def write_record(tables: Sequence[Table], path: str | Path) -> None:
    """Write the rows of all tables as one CSV or Parquet file; all or nothing."""
    if Path(path).suffix.lower() == ".csv":
        text = _csv_text(COLUMNS) + "".join(_csv_text(*_csv_rows(table)) for table in tables)
        write_bytes(path, text.encode())
        return
    parquet = library("pyarrow.parquet")
    stream = io.BytesIO()
    with parquet.ParquetWriter(stream, _arrow_schema()) as writer:
        for table in tables:
            writer.write_table(_arrow_table(table))
    write_bytes(path, stream.getvalue())


def join_records(parts: Sequence[Path], path: str | Path) -> None:
    """Put records written by `write_record` together, one part in memory at a time.

    Raises:
        InputError: a part is missing, or the file cannot be written.
    """
    target = Path(path)
    beside = target.with_name(f".{target.name}.joining")
    try:
        if target.suffix.lower() == ".csv":
            with beside.open("wb") as stream:
                stream.write(_csv_text(COLUMNS).encode())
                for part in parts:
                    stream.write(part.read_bytes().partition(b"\n")[2])
        else:
            parquet = library("pyarrow.parquet")
            with parquet.ParquetWriter(str(beside), _arrow_schema()) as writer:
                for part in parts:
                    writer.write_table(parquet.read_table(str(part)))
        beside.replace(target)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InputError(f"cannot be written: {error.strerror or error}", Place(str(path))) from None


def _csv_text(*rows: Sequence[Any]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def _csv_rows(table: Table) -> list[tuple[Any, ...]]:
    columns = []
    for name in COLUMNS:
        values = table[name].tolist()
        if name in REALS:
            values = ["" if value != value else repr(value) for value in values]
        columns.append(values)
    return list(zip(*columns, strict=True))


def _arrow_schema() -> Any:
    arrow = library("pyarrow")
    kinds = dict.fromkeys(TEXTS, arrow.string()) | dict.fromkeys(WHOLES, arrow.int64())
    return arrow.schema([(name, kinds.get(name, arrow.float64())) for name in COLUMNS])


def _arrow_table(table: Table) -> Any:
    arrow = library("pyarrow")
    schema = _arrow_schema()
    arrays = [arrow.array(table[name], type=schema.field(name).type, from_pandas=True) for name in COLUMNS]
    return arrow.Table.from_arrays(arrays, schema=schema)


NEEDED: Mapping[str, Kind] = {
    "kind": "text",
    "sequence": "note",
    "frame": "note",
    "bin": "whole",
    "place": "whole",
    "distance_m": "any",
    "true": "note",
    "predicted": "note",
    "score": "any",
    "group": "whole",
    "file": "note",
    "line": "whole",
    "report_file": "note",
    "report_line": "whole",
}
"""The columns that are read, and what they hold. Others are left alone."""
KINDS = ("frame", "object", "unmatched", "duplicate", "ignored")


@dataclass(frozen=True, eq=False)
class Record:
    """The rows of a record.

    Attributes:
        columns: name -> (n,) values, for the names of `NEEDED` and `drive`, which records of earlier versions have
            not (then the sequence): objects (texts), int64, or float64 with NaN for an unknown number. With boxes
            also `TRUE_2D` and `BOX_2D` of `verifier.perception.confusion.record`, NaN where the record has none.
        file: its name, as given.
    """

    columns: Mapping[str, NDArray[Any]]
    file: str

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.columns["kind"])


def read_record(path: str | Path, *, tracks: bool = False, boxes: bool = False) -> Record:
    """Read a record that `verify confusion --record` wrote; its column `track` and its rectangles where asked for.

    Raises:
        UsageError: the ending is neither .csv nor .parquet.
        InputError: unreadable, a column missing, or a value that cannot be: with the line where there is one.
    """
    ending = Path(path).suffix.lower()
    if ending not in SUFFIXES:
        raise UsageError(f"a record ends in {' or '.join(SUFFIXES)}, got {shown(str(path))}")
    needed: Mapping[str, Kind] = {**NEEDED, **({"track": "note"} if tracks else {})}
    sides: Mapping[str, Kind] = dict.fromkeys((*TRUE_2D, *BOX_2D) if boxes else (), "any")
    table = read_table(path, needed, {"drive": "note", **sides}, others=True)
    columns = {
        name: np.array(table.texts[name], dtype=object)[values] if name in table.texts else values
        for name, values in table.columns.items()
    }
    unknown = np.flatnonzero(~np.isin(columns["kind"], KINDS))
    if len(unknown):
        row = int(unknown[0])
        message = f"kind: expected one of {', '.join(KINDS)}, got {shown(columns['kind'][row])}"
        raise InputError(message, table.place(row))
    columns.setdefault("drive", columns["sequence"])
    for name in sides:
        columns.setdefault(name, np.full(len(columns["kind"]), np.nan))
    return Record(columns, str(path))
