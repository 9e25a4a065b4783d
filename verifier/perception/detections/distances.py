"""How far away an object is: the measures that bins, filters and tables name.

| measure | definition, from the centre (x, y, z) of the box in the ego frame |
|---|---|
| `euclidean_3d` | sqrt(x² + y² + z²): Badithela et al. 2022 ("Euclidean distance of the object to the ego") |
| `ground_plane` | sqrt(x² + y²): the nuScenes detection benchmark (Caesar et al. 2020, section 3.1) |
| `forward` | x: the distance along the road; negative behind the ego |
| `given` | what the data set itself says |

Distances from a file of their own, for annotations whose format has none (COCO, MOTChallenge).

Rigid motions between coordinate frames, and headings, for whole columns of boxes.

The ego frame is x forward, y left, z up. KITTI's camera frame is x right, y down, z forward (Geiger, Lenz, Stiller
and Urtasun 2013, "Vision meets robotics: the KITTI dataset", figure 3). nuScenes gives poses as a translation and
a quaternion w, x, y, z that take a point *from* the named frame *into* its parent (Caesar et al. 2020).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats
from verifier.base.errors import InputError, Place, check_known, shown
from verifier.base.numbers import number_words
from verifier.base.words import first_of
from verifier.perception.detections.classmap import is_part
from verifier.perception.detections.columns import Boxes, DetectionSet
from verifier.perception.detections.sources import digest_record
from verifier.perception.detections.tablefiles import frame_keys, looked_up, read_named
from verifier.perception.settings import Measure

MEASURES: tuple[Measure, ...] = get_args(Measure)


def distance(boxes: Boxes, measure: str) -> NDArray[np.float64]:
    """(n,) metres; NaN for an object without a box in the ego frame, or with `given`, without a given distance.

    Raises:
        UsageError: there is no such measure.
    """
    check_known("distance measure", measure, MEASURES)
    source = boxes.distance_m if measure == "given" else boxes.box_3d
    if source is None:
        return np.full(len(boxes), np.nan)
    if measure == "given":
        return source
    if measure == "forward":
        return source[:, 0]
    axes = source.T[: 2 if measure == "ground_plane" else 3]
    squares = np.asarray(sum(axis * axis for axis in axes))
    return np.asarray(np.sqrt(squares))  # as np.linalg.norm, several times faster


def reported_distance(boxes: Boxes, measure: str) -> NDArray[np.float64]:
    """(n,) metres of detections: by the measure of their box in the ego frame, else as given."""
    measured = distance(boxes, measure)
    return measured if boxes.distance_m is None else np.where(np.isnan(measured), boxes.distance_m, measured)


LARGEST_M = 1e5
NO_ANNOTATION = "no annotation with {}"


def with_distances(data: DetectionSet, path: str | Path, key: str) -> DetectionSet:
    """The set with the distance of each annotation taken from a CSV or Parquet file.

    The file has the columns `frame` (the frame's name), the attribute `key` of the annotations (`id` of COCO, `track`
    of MOTChallenge), which with the frame names one annotation, and `distance_m`. Annotations that the file does
    not name keep what they had, or have an unknown distance; how many is recorded in `origin["distances"]`. Where
    files are read alone (`only_files`), rows of other sequences are left out: `sequences_named` has them all.

    Raises:
        InputError: the file cannot be read, names something that is not there, or one annotation twice.
        UsageError: the annotations have no such attribute.
    """
    boxes = data.annotations
    check_known("attribute of the annotations", key, boxes.attributes)
    named, raw = read_named(path, {}, ("frame", key, "distance_m"))
    codes, keys = frame_keys(named)
    index = {name: number for number, name in enumerate(data.frame_name)}
    names = [f"{sequence}/{frame}" if sequence else frame for sequence, frame in keys]
    objects, distance, line = named.numbers(key)[0], named.numbers("distance_m")[0], named.line
    if is_part():
        own = np.array([name in index or _sequence(name) in data.sequences for name in names], dtype=bool)
        kept = own[codes] if len(own) else own
        codes, objects, distance, line = codes[kept], objects[kept], distance[kept], line[kept]
    frame, _ = looked_up(codes, names, index)

    def fail(bad: np.ndarray, text: str, hint: str | None = None) -> None:
        if bad.any():
            row = int(bad.argmax())
            what = _object_text(key, objects[row], names[int(codes[row])])
            raise InputError(text.format(what, distance[row]), Place(str(path), int(line[row])), hint)

    fail(~((distance >= 0) & (distance <= LARGEST_M)), "{}: expected a distance in metres, got {:g}")
    own_pairs = list(zip(boxes.frame.tolist(), boxes.attributes[key].tolist(), strict=True))
    known_pairs, pairs = set(own_pairs), list(zip(frame.tolist(), objects.tolist(), strict=True))
    nowhere = frame < 0
    if len(frame) > 1 and nowhere.all():
        text = f"the frames do not match: none of {len(frame)} rows is of a frame of the annotations; the first, {{}}"
        fail(nowhere, text, f"the first frame of the annotations is {shown(data.frame_name[0])}" if index else None)
    unknown = np.array([pair not in known_pairs for pair in pairs], dtype=bool)
    there = boxes.attributes[key][boxes.frame == frame[unknown.argmax()]] if unknown.any() else ()
    known = first_of([number_words(number) for number in there])
    fail(unknown, NO_ANNOTATION, f"this frame has the {key} {known}" if known else None)
    row_of: dict[tuple[Any, Any], int] = {}
    again = np.array([row_of.setdefault(pair, row) != row for row, pair in enumerate(pairs)], dtype=bool)
    fail(again, "{} occurs twice")
    result = np.full(len(boxes), np.nan) if boxes.distance_m is None else boxes.distance_m.copy()
    for at, pair in enumerate(own_pairs):
        if pair in row_of:
            result[at] = distance[row_of[pair]]
    record = {**digest_record("distances", path, raw), "key": key, "unknown": int(np.isnan(result).sum())}
    origin = {**data.origin, "distances": record}
    return data.change(annotations=replace(boxes, distance_m=result), origin=origin)


def sequences_named(path: str | Path, key: str) -> dict[str, InputError]:
    """The sequences of such a file, and what is wrong with the first row of each that no data have; InputError."""
    named, _ = read_named(path, {}, ("frame", key, "distance_m"))
    codes, keys = frame_keys(named)
    objects, errors = named.numbers(key)[0], dict[str, InputError]()
    for row in np.sort(np.unique(codes, return_index=True)[1]).tolist():
        name = "/".join(filter(None, keys[int(codes[row])]))
        text = NO_ANNOTATION.format(_object_text(key, objects[row], name))
        errors.setdefault(_sequence(name), InputError(text, Place(str(path), int(named.line[row]))))
    return errors


def _sequence(frame: str) -> str:
    return frame.rpartition("/")[0]


def _object_text(key: str, number: float, frame: str) -> str:
    return f"{key} {number:g} in frame {shown(frame)}"


EGO_FROM_CAMERA = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
"""Turns camera axes (right, down, forward) into ego axes (forward, left, up)."""


@dataclass(frozen=True, eq=False)
class Motion:
    """n rigid motions: a point p of the source frame is R p + t in the target frame.

    `rotation` (n, 3, 3) and `translation` (n, 3) in metres. Names read `target_from_source`.
    """

    rotation: Floats
    translation: Floats

    def take(self, rows: NDArray[np.int64]) -> Motion:
        """The motions at `rows`, one per box."""
        return Motion(self.rotation[rows], self.translation[rows])

    def inverse(self) -> Motion:
        """The motion back."""
        back = np.swapaxes(self.rotation, 1, 2)
        return Motion(back, -np.einsum("nij,nj->ni", back, self.translation))

    def boxes(self, centre: Floats, size_lwh: Floats, heading: Floats) -> Floats:
        """(n, 7) boxes in the target frame, from their centre (n, 3), length, width and height (n, 3) and the
        direction of their length (n, 3) in the source frame. The yaw is that of the heading's projection on the
        target's ground plane: a small roll or pitch between the frames tilts a box, which seven numbers cannot say.
        """
        turned, moved = (np.einsum("nij,nj->ni", self.rotation, vector) for vector in (heading, centre))
        yaw = np.arctan2(turned[:, 1], turned[:, 0])
        return np.column_stack([moved + self.translation, size_lwh, yaw])


def motion(translation: Floats, quaternion_wxyz: Floats) -> Motion:
    """Motions from translations (n, 3) and quaternions (n, 4); quaternions are normalised here."""
    return Motion(rotations(quaternion_wxyz), np.asarray(translation, dtype=np.float64))


def rotations(quaternion_wxyz: Floats) -> Floats:
    """(n, 3, 3) rotation matrices of quaternions w, x, y, z (n, 4), which need not be of length 1; NaN for zero."""
    q = np.asarray(quaternion_wxyz, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        w, x, y, z = (q / np.linalg.norm(q, axis=1, keepdims=True)).T
    return np.stack(
        [
            np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], axis=-1),
            np.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], axis=-1),
            np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=-1),
        ],
        axis=-2,
    )


def camera_boxes(bottom_centre: Floats, size_hwl: Floats, rotation_y: Floats) -> tuple[Floats, Floats, Floats]:
    """Centre, length-width-height and heading, all still in the camera frame, of boxes in KITTI's convention.

    `bottom_centre` (n, 3) is the middle of the bottom face, `size_hwl` (n, 3) height, width and length, and
    `rotation_y` (n,) the turn about the downward axis: 0 points right, -pi/2 forward (readme of KITTI's object
    development kit).
    """
    height, width, length = size_hwl.T
    centre = bottom_centre - np.column_stack([np.zeros_like(height), height / 2, np.zeros_like(height)])
    heading = np.column_stack([np.cos(rotation_y), np.zeros_like(rotation_y), -np.sin(rotation_y)])
    return centre, np.column_stack([length, width, height]), heading


def ego_from_camera(count: int) -> Motion:
    """The change of axes from the camera to an ego frame whose origin is the camera, `count` times."""
    rotation = np.broadcast_to(EGO_FROM_CAMERA, (count, 3, 3))
    return Motion(rotation, np.zeros((count, 3)))
