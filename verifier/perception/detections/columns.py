"""Annotations and detections as columns: one row per object, arrays that share their length.

Boxes stand in the **ego frame**: right-handed, x forward, y left, z up, metres, yaw counter-clockwise from x to y.
Every reader turns its own convention (camera frame, global frame, bottom centre, ...) into this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import check_index, check_shapes, freeze, plain_fields, read_only
from verifier.base.errors import LimitError, Place

ANY_CLASS = -1
"""The label of a don't-care region that stands for every class."""
NO_SEQUENCE = "(no sequence)"
"""The sequence of frames that their source puts in none; where all frames are in it, sequences are not known."""


MOST_FRAMES = 20_000_000
"""Frames of one data set; more is refused, so that one wild frame number does not fill the memory."""
UNKNOWN_FRAME = -1
"""The frame of an object that stands in no known frame."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """Annotations or detections; n rows in any order.

    `frame` (n,) index into the frames and `label` (n,) index into the classes of the `DetectionSet`; `score` (n,)
    of detections, any finite number, greater is surer. `box_2d` (n, 4) left, top, right, bottom in pixels;
    `box_3d` (n, 7) centre x, y, z and length, width, height in metres, yaw in radians, in the ego frame; a row of
    NaN where an object has no such box. `distance_m` (n,) is what the source itself says, NaN where it says
    nothing. `attributes` are further columns (n,), such as `occluded`, `truncated`, `track`, `num_points`.
    `line` (n,) is the line (JSON: element, from 1; tables: row, from 1) in the file `file` (n,), an index into the
    files of the `DetectionSet`.

    Arrays are not copied: the views held here cannot be written, the caller's own arrays can and should not be.

    Raises:
        ValueError: lengths differ, a box is partly NaN, infinite or of negative size, a score or distance is
            not finite, a distance is negative.
    """

    frame: NDArray[np.int64]
    label: NDArray[np.int32]
    score: NDArray[np.float64] | None
    box_2d: NDArray[np.float64] | None
    box_3d: NDArray[np.float64] | None
    distance_m: NDArray[np.float64] | None
    attributes: Mapping[str, NDArray[Any]]
    line: NDArray[np.int64]
    file: NDArray[np.int32]

    def __post_init__(self) -> None:
        numbers = dict.fromkeys(("score", "box_2d", "box_3d", "distance_m"), np.float64)
        freeze(
            self, {"frame": np.int64, "label": np.int32, "line": np.int64, "file": np.int32, **numbers}, copied=False
        )
        columns = {name: read_only(value) for name, value in self.attributes.items()}
        object.__setattr__(self, "attributes", MappingProxyType(columns))
        n = len(self.frame)
        one = dict.fromkeys(("frame", "label", "line", "file", "score", "distance_m"), (n,))
        check_shapes(self, {**one, "box_2d": (n, 4), "box_3d": (n, 7)})
        for name, value in columns.items():
            if value.shape != (n,):
                raise ValueError(f"{name} has shape {value.shape}, expected {(n,)}")
        for index in (self.frame, self.line, self.file):
            if index.size and index.min() < 0:
                raise ValueError("frame, line and file are indices from 0")
        for name, box in (("box_2d", self.box_2d), ("box_3d", self.box_3d)):
            if box is not None and (bad := faulty_boxes(box)).any():
                raise ValueError(f"{name}: row {int(bad.argmax())} is partly NaN, infinite or of negative size")
        if self.score is not None and not np.isfinite(self.score).all():
            raise ValueError("a score is not finite")
        if self.distance_m is not None and ((self.distance_m < 0) | np.isinf(self.distance_m)).any():
            raise ValueError("a distance is negative or infinite")

    def __len__(self) -> int:
        return len(self.frame)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), plain_fields(self)

    @property
    def in_space(self) -> bool:
        """Whether objects have boxes in the ego frame, and not only a column for them."""
        return self.box_3d is not None and not (len(self) and np.isnan(self.box_3d).all())

    def take(self, rows: NDArray[Any]) -> Boxes:
        """The boxes at `rows`: indices in the order wanted, or a mask (n,)."""
        columns: dict[str, Any] = {}
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        for own in fields(self):
            value = getattr(self, own.name)
            if own.name == "attributes":
                columns[own.name] = {name: column[rows] for name, column in value.items()}
            else:  # `take` copies whole rows, several times faster than indexing
                columns[own.name] = None if value is None else value.take(rows, axis=0)
        return Boxes(**columns)


@dataclass(frozen=True, eq=False)
class DetectionSet:
    """What is there and what a detector says, over the same frames.

    `classes` are the names after the class map. `sequences` are the drives or scenes, `frame_sequence` (f,) the
    sequence of each frame, `frame_name` (f,) its unique name. Frames are in the order of time within a sequence
    where the source has one. `ignored` are the don't-care regions (label `ANY_CLASS` where the region names no
    class), None when the source has no such notion. `origin` is everything decided while reading and filtering, as
    JSON values; a filter adds an entry to `origin["filters"]`.

    Raises:
        ValueError: an index points nowhere, a name occurs twice, or a detection has no score.
    """

    classes: tuple[str, ...]
    sequences: tuple[str, ...]
    frame_sequence: NDArray[np.int32]
    frame_name: tuple[str, ...]
    annotations: Boxes
    detections: Boxes
    ignored: Boxes | None
    files: tuple[str, ...]
    origin: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame_sequence", read_only(self.frame_sequence, np.int32))
        object.__setattr__(self, "origin", MappingProxyType(dict(self.origin)))
        if self.frame_sequence.shape != (len(self.frame_name),):
            raise ValueError("frame_sequence and frame_name differ in length")
        for name, values in (("class", self.classes), ("frame", self.frame_name), ("sequence", self.sequences)):
            if len(set(values)) != len(values):
                raise ValueError(f"a {name} name occurs twice")
        check_index("frame_sequence", self.frame_sequence, len(self.sequences))
        if self.detections.score is None:
            raise ValueError("detections have no scores")
        for name, boxes in (("annotations", self.annotations), ("detections", self.detections)):
            self._check_boxes(name, boxes, lowest_label=0)
        if self.ignored is not None:
            self._check_boxes("ignored", self.ignored, lowest_label=ANY_CLASS)

    def _check_boxes(self, name: str, boxes: Boxes, lowest_label: int) -> None:
        check_index(f"{name}.frame", boxes.frame, len(self.frame_name))
        check_index(f"{name}.label", boxes.label, len(self.classes), lowest_label)
        check_index(f"{name}.file", boxes.file, len(self.files))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), plain_fields(self)

    def change(self, **changes: Any) -> DetectionSet:
        """A copy with some fields replaced, checked again."""
        return replace(self, **changes)

    def place(self, boxes: Boxes, row: int) -> Place:
        """Where a box stands, for a message."""
        file, line = self.files[boxes.file[row]], int(boxes.line[row])
        return Place(file, path=f"element {line}") if file.endswith(".json") else Place(file, line)

    @property
    def frame_count(self) -> int:
        """Frames, those without any object included."""
        return len(self.frame_name)


Coded: TypeAlias = tuple[NDArray[np.int64], tuple[str, ...]]
"""(n,) codes, and the text of each code."""


def codes(values: Iterable[str]) -> Coded:
    """(n,) the code of each value, and the values by code, in the order they first occur."""
    listed = list(values)
    index = {value: code for code, value in enumerate(dict.fromkeys(listed))}
    return np.fromiter(map(index.__getitem__, listed), np.int64, len(listed)), tuple(index)


@dataclass(frozen=True)
class Frames:
    """The frames of a data set: their unique names, the sequence of each (f,), and the names of the sequences."""

    names: tuple[str, ...]
    sequence: NDArray[np.int32]
    sequences: tuple[str, ...]

    @classmethod
    def of(cls, names: Iterable[str], sequences: Iterable[str]) -> Frames:
        """Frames of these names, by the name of the sequence of each."""
        sequence, known = codes(sequences)
        return cls(tuple(names), sequence.astype(np.int32), known)


LookedUp: TypeAlias = tuple[NDArray[np.int64], Callable[[int], str]]
"""(n,) frame of each row, and what to call it in a message."""


def frames_at(index: Mapping[Any, int], keys: Iterable[Any]) -> NDArray[np.int64]:
    """(n,) the frame under each key; `UNKNOWN_FRAME` where there is none."""
    return np.array([index.get(key, UNKNOWN_FRAME) for key in keys], dtype=np.int64)


def numbered_frames(sequences: tuple[str, ...], counts: NDArray[np.int64], first: int, place: Place) -> Frames:
    """Frames "SEQUENCE/NNNNNN", `counts` of them per sequence counted from `first`.

    Raises:
        LimitError: more than `MOST_FRAMES`.
    """
    total = int(np.minimum(counts, MOST_FRAMES + 1).sum())
    if total > MOST_FRAMES:
        raise LimitError(f"{int(counts.sum())} frames, at most {MOST_FRAMES} are read", place)
    starts = np.cumsum(counts) - counts
    sequence = np.repeat(np.arange(len(sequences), dtype=np.int32), counts)
    numbers = np.arange(len(sequence)) - starts[sequence] + first
    pairs = zip(sequence.tolist(), numbers.tolist(), strict=True)
    return Frames(tuple(f"{sequences[s]}/{n:06d}" for s, n in pairs), sequence, sequences)


def faulty_boxes(box: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows of `box_2d` (n, 4) or `box_3d` (n, 7) are no box: partly NaN, infinite, or of negative size.

    A row of NaN alone is no fault: the object has no box of that kind. Sizes of zero are allowed.
    """
    with np.errstate(invalid="ignore"):
        sizes = box[:, 2:] - box[:, :2] if box.shape[1] == 4 else box[:, 3:6]
    if np.isfinite(box).all() and (sizes >= 0).all():
        return np.zeros(len(box), dtype=bool)
    unknown = np.isnan(box)
    bad = unknown.any(axis=1) | np.isinf(box).any(axis=1) | (sizes < 0).any(axis=1)
    return np.asarray(bad & ~unknown.all(axis=1))


def no_boxes(scored: bool = False) -> Boxes:
    """Zero rows; with a score column when `scored`."""
    score = np.zeros(0) if scored else None
    none, short = np.zeros(0, np.int64), np.zeros(0, np.int32)
    return Boxes(none, short, score, None, None, None, {}, none, short)


def joined(parts: Sequence[Boxes]) -> Boxes:
    """The rows of all parts, in order; a column that some part has not is NaN there.

    Raises:
        ValueError: some parts have scores and others not, or an attribute is missing in a part and no number.
    """
    filled = [part for part in parts if len(part)]
    if not filled:
        return parts[0] if parts else no_boxes()
    if len({part.score is None for part in filled}) > 1:
        raise ValueError("some parts have scores and others have none")
    columns: dict[str, Any] = {}
    for name in ("frame", "label", "line", "file"):
        columns[name] = np.concatenate([getattr(part, name) for part in filled])
    for name, width in (("score", ()), ("box_2d", (4,)), ("box_3d", (7,)), ("distance_m", ())):
        values = [getattr(part, name) for part in filled]
        columns[name] = None
        if any(value is not None for value in values):
            columns[name] = np.concatenate(
                [
                    np.full((len(part), *width), np.nan) if value is None else value
                    for part, value in zip(filled, values, strict=True)
                ]
            )
    names = dict.fromkeys(name for part in filled for name in part.attributes)
    columns["attributes"] = {
        name: np.concatenate([part.attributes.get(name, np.full(len(part), np.nan)) for part in filled])
        for name in names
    }
    return Boxes(**columns)


def ledger(read: int, sound: int, chosen: int, kept: int, regions: int) -> dict[str, int]:
    """Of how many annotations that were read, how many are left out while reading, and why."""
    return {
        "read": read,
        "faulty or in no known frame": read - sound,
        "in frames that are left out": sound - chosen,
        "of classes that are left out": chosen - kept - regions,
        "regions that are not judged": regions,
    }


def repeated(boxes: Boxes) -> int:
    """How many boxes repeat one that stands there already: frame, class, box, distance and score are equal."""
    if boxes.box_2d is None and boxes.box_3d is None:
        return 0
    known = (boxes.score, boxes.box_2d, boxes.box_3d, boxes.distance_m)
    parts = [part for value in known if value is not None for part in np.atleast_2d(value.T)]
    columns = [boxes.frame, boxes.label, *(np.nan_to_num(part, nan=-1.5) for part in parts)]
    key = np.zeros(len(boxes))
    for number, column in enumerate(columns, 1):
        key += column * (number * 0.6180339887498949 % 1)  # equal rows have equal sums, others hardly ever
    alike = np.sort(key)
    alike = alike[1:][alike[1:] == alike[:-1]]
    if not len(alike):
        return 0
    rows = np.column_stack([column[np.isin(key, alike)] for column in columns])
    return len(rows) - len(np.unique(rows, axis=0))


def ignore_hint(fault: str) -> str:
    """How to leave out what has this kind of fault."""
    return f"--ignore {fault} (in Python ignore=({fault!r},)) leaves these out and counts them"
