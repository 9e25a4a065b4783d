"""Cameras of frames: what pixel looks where, from the calibration files of KITTI and nuScenes or from a table.

A camera is a pinhole without distortion (rectified images): a pixel looks along a direction, seen from the camera's
centre in the ego frame (x forward, y left, z up), and the ground is a plane of known height in that frame.

| source | is |
|---|---|
| KITTI | a folder or zip archive of calibration files, named after images or sequences; the matrix `P2` of the left colour camera. The ego frame is camera 0, 1.65 m above the ground (Geiger et al. 2013, figure 3) |
| nuScenes | the folder of the official tables (frames are samples, seen by CAM_FRONT, or files of images), or the file of `nuscenes_compact`. The ego frame stands on the ground |
| table | CSV or Parquet with `fx fy cx cy` in pixels and `height_m`; `pitch_deg` (looks down by it), `roll_deg` (left side up) and `x_m` (ahead of the ego's origin) are 0 where not given. A column `frame` or `sequence` says what a row is of; without one, one row is of all frames. The ego frame stands on the ground |

Detectors that see in two dimensions only get distances from the ground: an object stands on the ground plane where
the ray through the foot of its rectangle, the middle of the lower edge, meets it. The centre is taken half as high as
the rectangle is tall at that depth. What this assumes: the ground is flat, the camera's pitch is the calibrated one,
and the whole object is seen. The foot is the near side of an object: the centre of a car lies further away. A foot at
or above the horizon meets no ground: it counts as `FARTHEST_M` away.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from verifier.base.arrays import Floats, Ints
from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.base.tables import Kind, read_table
from verifier.perception.detections.columns import Boxes, DetectionSet
from verifier.perception.detections.distances import EGO_FROM_CAMERA, Motion, distance, motion
from verifier.perception.detections.nuscenes import camera_tables
from verifier.perception.detections.nuscenes_compact import cameras as cameras_of
from verifier.perception.detections.sources import Elements, elements, load_json, read_source

KITTI_HEIGHT_M = 1.65
"""Of KITTI's cameras above the ground."""
INTRINSICS = ("fx", "fy", "cx", "cy")
POSE = ("pitch_deg", "roll_deg", "x_m")


@dataclass(frozen=True, eq=False)
class Cameras:
    """n cameras.

    Attributes:
        direction: (n, 3, 3) takes a pixel (u, v, 1) to a direction in the camera frame (right, down, forward), of
            any length.
        pose: n motions ego_from_camera.
        ground_m: (n,) height of the ground in the ego frame.
    """

    direction: Floats
    pose: Motion
    ground_m: Floats

    def take(self, rows: Ints) -> Cameras:
        """The cameras at `rows`."""
        return Cameras(self.direction[rows], self.pose.take(rows), self.ground_m[rows])


@np.errstate(all="ignore")  # what is no number is refused
def read_cameras(path: str | Path, data: DetectionSet) -> Cameras:
    """The camera of each frame of `data`, from a source of the table above.

    Raises:
        InputError: unreadable, not such a source, no camera for a frame, or a camera that is none.
    """
    target = Path(path)
    if target.suffix.lower() in (".csv", ".tsv", ".parquet", ".pq"):
        cameras, names = _of_table(path)
    elif target.suffix.lower() == ".json":
        cameras, names = _of_compact(path)
    elif (target / "calibrated_sensor.json").is_file():
        intrinsics, pose, names = camera_tables(path)
        cameras = _checked(intrinsics, pose, np.zeros(len(intrinsics)), Place(str(path)))
    else:
        cameras, names = _of_kitti(path)
    return cameras.take(_of_frames(names, data, str(path)))


def _of_frames(names: Mapping[str, int], data: DetectionSet, file: str) -> Ints:
    """(f,) the camera of each frame: by its name, the name of its image without suffix, its sequence, or for all."""
    camera = np.empty(data.frame_count, dtype=np.int64)
    for at, (frame, sequence) in enumerate(zip(data.frame_name, data.frame_sequence.tolist(), strict=True)):
        own = (frame, Path(frame).name, Path(frame).stem, data.sequences[sequence], "")
        known = [names[name] for name in own if name in names]
        if not known:
            hint = f"the file has, for example, {shown(next(iter(names)))}" if names else None
            raise InputError(f"no camera for frame {shown(frame)}", Place(file), hint)
        camera[at] = known[0]
    return camera


def _checked(intrinsics: Floats, pose: Motion, ground_m: Floats, place: Place) -> Cameras:
    """Cameras from their 3 x 3 matrices (n, 3, 3), if each can be inverted and stands above the ground."""
    fine = np.isfinite(intrinsics).all(axis=(1, 2)) & (np.abs(np.linalg.det(intrinsics)) > 0)
    above = pose.translation[:, 2] - ground_m
    fine &= np.isfinite(pose.rotation).all(axis=(1, 2)) & (above > 0) & (above < np.inf)
    if not fine.all():
        message = "a camera needs a focal length in pixels and a height above the ground in metres"
        raise InputError(f"camera {int(np.argmin(fine)) + 1}: {message}", place)
    return Cameras(np.linalg.inv(intrinsics).astype(np.float64), pose, ground_m)


def _of_kitti(path: str | Path) -> tuple[Cameras, dict[str, int]]:
    source = read_source(path, "calibration")
    matrices = np.empty((len(source.members), 3, 4))
    for at, member in enumerate(source.members):
        lines = [line.split() for line in member.raw.decode(errors="replace").splitlines()]
        numbers = [line[1:] for line in lines if line[:1] == ["P2:"]]
        try:
            matrices[at] = np.array(numbers, dtype=np.float64).reshape(3, 4)
        except ValueError:
            message = "expected a line 'P2:' with 12 numbers, as in KITTI's calibration files"
            hint = "or name a table (.csv) with fx, fy, cx, cy and height_m"
            raise InputError(message, Place(member.name), hint) from None
    left, n = matrices[:, :, :3], len(matrices)
    try:
        centre = -np.linalg.solve(left, matrices[:, :, 3:])[:, :, 0]
    except np.linalg.LinAlgError:
        centre = np.full((n, 3), np.nan)
    pose = Motion(np.broadcast_to(EGO_FROM_CAMERA, (n, 3, 3)), centre @ EGO_FROM_CAMERA.T)
    cameras = _checked(left, pose, np.full(n, -KITTI_HEIGHT_M), Place(str(path)))
    return cameras, {member.stem: at for at, member in enumerate(source.members)}


def _of_compact(path: str | Path) -> tuple[Cameras, dict[str, int]]:
    document, _ = load_json(path)
    frames = elements(document, str(path), "frames")
    camera = cameras_of(frames)
    pose = motion(camera.vectors("cam2ego_translation", 3), camera.vectors("cam2ego_rotation_wxyz", 4))
    names = {name: at for at, name in enumerate(frames.texts("sample_token"))}
    return _checked(_matrices(camera, "intrinsic"), pose, np.zeros(len(frames)), Place(str(path))), names


def _matrices(items: Elements, key: str) -> Floats:
    """(n, 3, 3) the matrices under `key`."""
    matrices: list[Any] = items.values(key)
    try:
        return np.array(matrices, dtype=np.float64).reshape(len(items), 3, 3)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{key}: expected 3 rows of 3 numbers in each", Place(items.file)) from None


def _of_table(path: str | Path) -> tuple[Cameras, dict[str, int]]:
    needed: dict[str, Kind] = dict.fromkeys((*INTRINSICS, "height_m"), "number")
    further: dict[str, Kind] = {**dict.fromkeys(POSE, "number"), "frame": "text", "sequence": "text"}
    table = read_table(path, needed, further)
    zero, n = np.zeros(len(table)), len(table)
    fx, fy, cx, cy, height = (table.columns[name] for name in needed)
    pitch, roll, ahead = (table.columns.get(name, zero) for name in POSE)
    matrices = np.zeros((n, 3, 3))
    matrices[:, 0, 0], matrices[:, 1, 1], matrices[:, 0, 2], matrices[:, 1, 2], matrices[:, 2, 2] = fx, fy, cx, cy, 1
    from scipy.spatial.transform import Rotation  # takes long to load

    turn = Rotation.from_euler("YX", np.column_stack([pitch, roll]), degrees=True).as_matrix()
    pose = Motion(turn @ EGO_FROM_CAMERA, np.column_stack([ahead, zero, height]))
    cameras = _checked(matrices, pose, zero, Place(str(path)))
    keys = [name for name in ("frame", "sequence") if name in table.columns]
    if len(keys) > 1 or (not keys and n != 1):
        raise InputError(
            "expected one row, or a column 'frame' or 'sequence' that says what each is of", Place(str(path))
        )
    if not keys:
        return cameras, {"": 0}
    names: Sequence[str] = [table.texts[keys[0]][code] for code in table.columns[keys[0]]]
    if len(set(names)) != n:
        row = next(row for row, name in enumerate(names) if name in names[:row])
        raise InputError(f"{keys[0]} {shown(names[row])} has a row already", table.place(row))
    return cameras, {name: at for at, name in enumerate(names)}


FARTHEST_M = 1000.0
"""No object on the ground is taken to be further away."""


def with_ground(data: DetectionSet, calibration: str | Path, measure: str) -> DetectionSet:
    """The set whose detections without a box in the ego frame have the distance of their foot on the ground.

    Annotations get one only where none of them has a box in the ego frame or a distance. `measure` is that of
    `distances.distance`, `given` being that on the ground. `origin["projected"]` says how many rectangles were
    placed, and how many of them at `FARTHEST_M`.

    Raises:
        InputError: as `cameras.read_cameras`.
        UsageError: detections have neither rectangles nor boxes in the ego frame, or all have such boxes.
    """
    detections = data.detections
    if detections.box_3d is not None and len(detections) and not np.isnan(detections.box_3d).any():
        raise UsageError("--calibration: the detections have boxes in the ego frame, so their distances are known")
    if detections.box_2d is None and len(detections):
        raise UsageError("--calibration places rectangles in an image, and the detections have none")
    cameras = read_cameras(calibration, data)
    known = distance(data.annotations, "given" if measure == "given" else "euclidean_3d")
    parts = {"detections": detections}
    if data.annotations.box_2d is not None and np.isnan(known).all():
        parts["annotations"] = data.annotations
    record = {"role": "calibration", "name": Path(calibration).name, "measure": measure, "farthest_m": FARTHEST_M}
    placed = {}
    for name, boxes in parts.items():
        away = ground_distances(boxes, cameras, measure)
        record[name] = {"placed": int((~np.isnan(away)).sum()), "farthest": int((away == FARTHEST_M).sum())}
        placed[name] = replace(boxes, distance_m=away)
    return data.change(**placed, origin={**data.origin, "projected": record})


@np.errstate(all="ignore")
def ground_distances(boxes: Boxes, cameras: Cameras, measure: str) -> Floats:
    """(n,) metres, at most `FARTHEST_M`; NaN where there is no rectangle, and for what is behind the ego
    by the measure `forward`. `cameras` are those of the frames."""
    box = np.full((len(boxes), 4), np.nan) if boxes.box_2d is None else boxes.box_2d
    centre = foot_centres(box, cameras.take(boxes.frame))
    if measure == "forward":
        away = centre[:, 0]
    else:
        away = np.linalg.norm(centre if measure == "euclidean_3d" else centre[:, :2], axis=1)
    away = np.where(np.isnan(box.sum(axis=1)), np.nan, np.fmin(away, FARTHEST_M))  # no ground: as far
    return np.where(away >= 0, away, np.nan)


@np.errstate(all="ignore")
def foot_centres(box: Floats, cameras: Cameras) -> Floats:
    """(n, 3) centres in the ego frame of what stands on the ground in the rectangles (n, 4); NaN where none does.

    Args:
        box: left, top, right, bottom in pixels.
        cameras: n of them.
    """
    middle, one = (box[:, 0] + box[:, 2]) / 2, np.ones(len(box))
    low, high = (
        np.einsum("nij,nj->ni", cameras.direction, np.column_stack([middle, edge, one]))
        for edge in (box[:, 3], box[:, 1])
    )
    ray = np.einsum("nij,nj->ni", cameras.pose.rotation, low)
    above = cameras.pose.translation[:, 2] - cameras.ground_m
    depth = np.where(ray[:, 2] < 0, above / -ray[:, 2], np.nan)
    foot: Floats = cameras.pose.translation + depth[:, None] * ray
    foot[:, 2] += depth * np.linalg.norm(high - low, axis=1) / 2
    return foot


@np.errstate(all="ignore")
def in_space(data: DetectionSet, cameras: Cameras, *, deep: bool = False) -> DetectionSet:
    """The set in which every rectangle without a box in the ego frame has a point there, a box without size.

    The point is the centre of what stands on the ground in it (`foot_centres`); with `deep` the centre of the
    rectangle at `distance_m` along the optical axis (Pezzementi et al. 2021, section 6.1.1). It is unknown where the
    foot meets no ground, or the distance is not known. `cameras` are those of the frames.
    """
    placed = {}
    for name, boxes in (("annotations", data.annotations), ("detections", data.detections)):
        box = np.full((len(boxes), 4), np.nan) if boxes.box_2d is None else boxes.box_2d
        own = cameras.take(boxes.frame)
        if deep:
            z = np.full(len(boxes), np.nan) if boxes.distance_m is None else boxes.distance_m
            middle = np.column_stack([(box[:, 0] + box[:, 2]) / 2, (box[:, 1] + box[:, 3]) / 2, np.ones(len(box))])
            ray = np.einsum("nij,nj->ni", own.direction, middle)
            point = np.einsum("nij,nj->ni", own.pose.rotation, ray / ray[:, 2:] * z[:, None]) + own.pose.translation
        else:
            point = foot_centres(box, own)
        known = np.isfinite(point.sum(axis=1)) & (point[:, 0] > 0)
        box_3d = np.where(known[:, None], np.column_stack([point, np.zeros((len(box), 4))]), np.nan)
        if boxes.box_3d is not None:
            box_3d = np.where(np.isnan(boxes.box_3d[:, :1]), box_3d, boxes.box_3d)
        placed[name] = replace(boxes, box_3d=box_3d)
    return data.change(**placed)
