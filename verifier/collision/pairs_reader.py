"""Pairs of true and predicted distance from files: a table of pairs, or the record that `verify confusion` writes.

A table (CSV, separated by comma, semicolon or tab; or Parquet) has these columns; further ones are ignored:

| column | holds |
|---|---|
| `image` | name of the image (frame) |
| `true_m` | true distance of an object, metres |
| `predicted_m` | distance that the detector reports for it, metres |
| `class` | class of the object; only needed where one class is chosen |
| `drive` | may be missing: drive of the image, so that drives can be resampled |
| `remarks` | may be missing: what a reader must know, in any of its cells; it is repeated |

A line with both distances is a pair. One with `true_m` alone is an object without a report. One with neither is an
image, which counts also when no object stands in it. Images that no line names are known by their number alone.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import (
    InputError,
    LimitError,
    Place,
    UsageError,
    check_known,
    one_line,
    shown,
    unknown_error,
)
from verifier.base.files import read_bytes
from verifier.base.tables import Kind, Table, read_table
from verifier.collision.pairs import Pairs, common_drives, named_places
from verifier.collision.settings import NegativeReports

REQUIRED = ("image", "true_m", "predicted_m")
MISSING = frozenset({"nan", "<na>", "nat", "none", "null", "inf", "-inf"})
"""What programs write, in any case, where they have no value; it names nothing."""
MOST_IMAGES = 2_000_000
"""Images that a number may stand for; each gets a name of some 100 bytes."""
LARGEST_M = 1e5
"""Metres; a larger distance is refused as not being in metres."""
RECORD_MEASURES = {
    "euclidean_3d": ("report_x_m", "report_y_m", "report_z_m"),
    "ground_plane": ("report_x_m", "report_y_m"),
    "forward": ("report_x_m",),
}
"""By measure of distance the columns of a record that it is computed from."""


@dataclass(frozen=True, eq=False)
class ReadPairs:
    """Pairs, and what else their source says.

    Attributes:
        missed_m: (k,) true distances of the objects without a report, as far as the source lists them.
        missed_image: (k,) the image of each of them.
        origin: file, choices and numbers of objects, as JSON values.
        listed: the first so many images are named by the source; of the others only the number is known.
    """

    pairs: Pairs
    missed_m: Floats
    missed_image: Ints
    origin: Mapping[str, Any]
    listed: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "origin", MappingProxyType(dict(self.origin)))

    @property
    def name(self) -> str:
        """The title, for the beginning of a message; empty without one."""
        return f"{self.pairs.title}: " if self.pairs.title else ""


@dataclass(frozen=True, eq=False)
class Objects:
    """Objects of all images, from whatever source, before they become pairs.

    `image` (n,) index into `names`, the images; `true_m` (n,), NaN where it is unknown, and `predicted_m` (n,), NaN
    where there is no report, in metres, negative behind the ego by the measure `forward`.
    """

    image: Ints
    true_m: Floats
    predicted_m: Floats
    names: tuple[str, ...]


def read_pairs(
    path: str | Path,
    *,
    classes: Sequence[str] = (),
    image_count: int | None = None,
    columns: Mapping[str, str] | None = None,
    negative_reports: NegativeReports = "error",
    title: str = "",
) -> ReadPairs:
    """The pairs of a table.

    Args:
        classes: only objects of these classes; all if empty.
        image_count: number of images, where the file does not name those without objects.
        columns: the file's own names for the columns above, where they differ.
        negative_reports: a predicted distance below 0, which a regression may give, is an `error`; is taken as
            `zero`; or its object is `left_out`.
        title: what the pairs are, for people; the file's name without its ending if empty.

    Raises:
        InputError: with file and line of what cannot be read; or no pair is left.
        UsageError: no such class, or fewer images than the file names.
        LimitError: more images than `MOST_IMAGES`.
    """
    own = {**{name: name for name in (*REQUIRED, "class")}, **(columns or {})}
    for name in own:
        check_known("column", name, (*REQUIRED, "class"))
    if len(set(own.values())) < len(own):
        raise UsageError("one column of the file cannot be two columns of a table of pairs")
    kinds: dict[str, Kind] = {own["image"]: "text", own["true_m"]: "measured", own["predicted_m"]: "measured"}
    kinds |= {own["class"]: "note"} if classes else {}
    others: dict[str, Kind] = {"drive": "text", "remarks": "note"}
    raw = read_bytes(path)
    table = read_table(path, kinds, {name: others[name] for name in others if name not in kinds}, raw, others=True)
    true_m = _distances(table, own["true_m"])
    predicted_m = _distances(table, own["predicted_m"], negative_reports)
    below = int(np.count_nonzero(predicted_m < 0))
    if negative_reports == "zero":
        predicted_m = np.where(predicted_m < 0, 0.0, predicted_m)
    alone = np.isnan(true_m) & ~np.isnan(predicted_m)
    if alone.any():
        raise InputError("a predicted distance without a true one is no pair", table.place(int(alone.argmax())))
    names, image = _names(table, own["image"])
    kept = ~np.isnan(true_m)
    if classes:
        kept &= _of_classes(_cells(table, own["class"]), classes, str(path), kept)
    if image_count is not None and image_count < len(names):
        raise UsageError(f"{image_count} images are too few: {path} names {len(names)}")
    if image_count is not None and image_count > MOST_IMAGES:
        raise LimitError(f"{image_count} images are too many; at most {MOST_IMAGES} are counted")
    origin = {**_digest(path, raw), "format": "pairs", "classes": list(classes)}
    origin |= {"negative_reports": below, "negative_reports_are": negative_reports}
    remarks = [one_line(text) for text in table.texts.get("remarks", ()) if text.strip()]
    origin |= {"remarks": remarks} if remarks else {}
    objects = Objects(image[kept], true_m[kept], predicted_m[kept], names)
    made = made_pairs(objects, title or PurePath(path).stem, origin, str(path), image_count)
    return made if "drive" not in table.texts else _in_drives(made, table, image)


def _in_drives(made: ReadPairs, table: Table, image: Ints) -> ReadPairs:
    """With the drive of each image; InputError where an image has several, UsageError where images have none."""
    names, drive = _names(table, "drive")
    if made.pairs.image_count > int(image.max()) + 1:
        raise UsageError("drives are named, so every image needs a row, with a drive")
    first = np.unique(image, return_index=True)[1]
    other = drive != drive[first][image]
    if other.any():
        raise InputError("an image in two drives", table.place(int(other.argmax())))
    origin = {**made.origin, "drives": len(names)}
    return replace(made, pairs=replace(made.pairs, drive=drive[first]), origin=origin)


def read_record(
    path: str | Path, measure: str, *, classes: Sequence[str] = (), same_class: bool = False, title: str = ""
) -> ReadPairs:
    """The pairs of a per-object record (CSV or Parquet) that `verify confusion --record` wrote.

    Every frame of the record is an image, every object that a detection was matched with a pair. The predicted
    distance is that of the reported box.

    Args:
        path: the record.
        measure: of `RECORD_MEASURES`, by which the record was counted; the record holds the true distances by it
            and does not name it.
        classes: true classes of the objects; all if empty.
        same_class: a report of another class is no report.
        title: as in `read_pairs`.

    Raises:
        InputError: with file and line; an object in a frame that has no row, a report without a box in space.
        UsageError: no such measure or class.
    """
    check_known("distance measure of a record", measure, RECORD_MEASURES)
    texts, numbers = ("kind", "frame", "true", "predicted"), ("distance_m", *RECORD_MEASURES[measure])
    kinds: dict[str, Kind] = {**dict.fromkeys(texts, "note"), **dict.fromkeys(numbers, "measured")}
    raw = read_bytes(path)
    table = read_table(path, kinds, raw=raw, others=True)
    kind, frame, true, predicted = (_cells(table, name) for name in texts)
    frames = _listed_frames(table, np.flatnonzero(kind == "frame"))
    rows = np.flatnonzero(kind == "object")
    if classes:
        rows = rows[_of_classes(true[rows], classes, str(path))]
    image = np.array([frames.get(name, -1) for name in frame[rows].tolist()], dtype=np.int64)
    if (image < 0).any():
        row = int(rows[int((image < 0).argmax())])
        raise InputError(f"an object in frame {shown(frame[row])}, which has no row of its own", table.place(row))
    reported = (predicted[rows] != "empty") & ((predicted[rows] == true[rows]) | (not same_class))
    parts = table.stack(*RECORD_MEASURES[measure])[rows].T
    blind = reported & np.isnan(parts).any(axis=0)
    if blind.any():
        hint = "pairs need the distances of both sides: match detections that have boxes in the ego frame"
        raise InputError("the report has no box in space", table.place(int(rows[int(blind.argmax())])), hint)
    with np.errstate(over="ignore"):
        report_m = parts[0] if measure == "forward" else np.sqrt(np.square(parts).sum(axis=0))
    far = reported & np.isinf(report_m)
    if far.any():
        raise InputError("the report is too far away for a distance", table.place(int(rows[int(far.argmax())])))
    objects = Objects(image, table.columns["distance_m"][rows], np.where(reported, report_m, np.nan), tuple(frames))
    origin = {**_digest(path, raw), "format": "record", "classes": list(classes), "measure": measure}
    return made_pairs(objects, title or PurePath(path).stem, {**origin, "same_class": same_class}, str(path))


def made_pairs(
    objects: Objects, title: str, origin: Mapping[str, object], source: str, image_count: int | None = None
) -> ReadPairs:
    """The pairs of objects ahead; what is left out is counted in the origin.

    Left out are objects of unknown distance, objects behind the ego, and pairs whose report lies behind it.

    Args:
        objects: of all images.
        origin: what is known of the source, as JSON values.
        source: name of the file, for messages.
        image_count: number of images, if more than have a name; the others get names of their own.

    Raises:
        InputError: no pair is left.
    """
    unknown = np.isnan(objects.true_m)
    behind = (objects.true_m < 0) | (objects.predicted_m < 0)
    ahead = ~unknown & ~behind
    paired = ahead & ~np.isnan(objects.predicted_m)
    if not paired.any():
        raise InputError("no pair of a true and a predicted distance", Place(source))
    listed = len(objects.names)
    count = listed if image_count is None else image_count
    names = (*objects.names, *_unlisted(count - listed))
    pairs = Pairs(objects.true_m[paired], objects.predicted_m[paired], objects.image[paired], count, title, names)
    numbers = {
        "images": count,
        "objects": int(ahead.sum()),
        "pairs": int(paired.sum()),
        "without_distance": int(unknown.sum()),
        "behind": int(behind.sum()),
    }
    lost = ahead & ~paired
    return ReadPairs(pairs, objects.true_m[lost], objects.image[lost], {**origin, **numbers}, listed)


def on_common_images(sources: Sequence[ReadPairs]) -> list[ReadPairs]:
    """The same pairs over the images of all sources together; an image is the same where it has the same name.

    A source that does not name an image that another one names has no object in it: it is one of those of which the
    source gives the number alone, or one more.
    """
    named, places = named_places([pairs.pairs.image_names[: pairs.listed] for pairs in sources])
    count = max(len(named), *(pairs.pairs.image_count for pairs in sources))
    names = (*named, *_unlisted(count - len(named)))
    drive = common_drives([pairs.pairs.drive[: pairs.listed] for pairs in sources], places, count)
    moved = []
    for read, place in zip(sources, places, strict=True):
        pairs = replace(read.pairs, image=place[read.pairs.image], image_count=count, image_names=names, drive=drive)
        moved.append(replace(read, pairs=pairs, missed_image=place[read.missed_image], listed=len(named)))
    return moved


def _unlisted(count: int) -> list[str]:
    return [f"(without a line, {number})" for number in range(count)]


def _cells(table: Table, name: str) -> NDArray[Any]:
    """(n,) the texts of a column."""
    texts: NDArray[Any] = np.array([text.strip() for text in table.texts[name]], dtype=object)
    return np.asarray(texts[table.columns[name]])


def _names(table: Table, name: str) -> tuple[tuple[str, ...], Ints]:
    """The different texts of a column in the order in which they first occur, and (n,) the index of each row's."""
    index_of: dict[str, int] = {}
    for code, text in enumerate(map(str.strip, table.texts[name])):
        if not text or text.casefold() in MISSING:
            place = table.place(int((table.columns[name] == code).argmax()))
            raise InputError(f"{name}: expected a name, got {shown(text)}, a missing value", place)
        index_of.setdefault(text, len(index_of))
    return tuple(index_of), np.array([index_of[text] for text in _cells(table, name).tolist()], dtype=np.int64)


def _distances(table: Table, name: str, negative: str | None = None) -> Floats:
    values: Floats = table.columns[name]
    allowed = negative not in (None, "error")
    wrong = (values < (-LARGEST_M if allowed else 0)) | (values > LARGEST_M)
    if wrong.any():
        row = int(wrong.argmax())
        message = f"{name}: expected a distance from 0 to {LARGEST_M:g} m, got {values[row]:g}"
        hint = "name what a report below 0 is: zero or left_out" if negative and values[row] < 0 else None
        raise InputError(message, table.place(row), hint)
    return values


def _listed_frames(table: Table, rows: Ints) -> dict[str, int]:
    frames: dict[str, int] = {}
    cells = _cells(table, "frame")
    for row in rows.tolist():
        name = cells[row]
        if name in frames:
            raise InputError(f"frame {shown(name)} has two rows", table.place(row))
        frames[name] = len(frames)
    return frames


def _of_classes(cells: NDArray[Any], classes: Sequence[str], source: str, objects: Mask | None = None) -> Mask:
    """(n,) which rows are of the classes; each must occur among the objects."""
    known = set((cells if objects is None else cells[objects]).tolist()) - {""}
    for name in classes:
        if name not in known:
            raise unknown_error("class", name, known, after=f" in {source}")
    return np.isin(cells.astype(str), list(classes))


def _digest(path: str | Path, raw: bytes) -> dict[str, object]:
    return {"name": PurePath(path).name, "sha256": hashlib.sha256(raw).hexdigest()}
