"""Logs from detection sets, which know the ego frame of each image, and from where that frame was.

KITTI tracking has no ego pose, so the path is a straight line driven at an assumed speed. A nuScenes scene in one
JSON file has the ego poses recorded there (see `nuscenes_compact`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from verifier.base.arrays import Floats
from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.closedloop.logs import Detections, LogLimits, Logs, check_plausible
from verifier.perception.detections import class_map
from verifier.perception.detections.cameras import in_space, read_cameras
from verifier.perception.detections.classmap import ClassMap
from verifier.perception.detections.columns import Boxes, DetectionSet
from verifier.perception.detections.depth import UNITS_PER_M, with_depth
from verifier.perception.detections.distances import Motion, motion
from verifier.perception.detections.kitti import kitti_tracking
from verifier.perception.detections.nuscenes_compact import nuscenes_compact
from verifier.perception.detections.sources import Elements, Reading, elements, load_json

PERSON = "person"


@dataclass(frozen=True, eq=False)
class Drive:
    """When and where the images of a detection set were taken.

    Attributes:
        time_s: (f,) increasing within a sequence.
        world_from_ego: f motions; the ground plane is x, y of the world.
        heading_rad: (f,) of the vehicle in the ground plane.
    """

    time_s: Floats
    world_from_ego: Motion
    heading_rad: Floats


@dataclass(frozen=True)
class Placing:
    """How rectangles get places in space: cameras, and depth maps, "" for the ground that an object stands on."""

    calibration: str
    depth_folder: str = ""
    depth_scale: float = UNITS_PER_M

    def __call__(self, data: DetectionSet) -> DetectionSet:
        """The set with a point for every rectangle without a box in space; errors as the readers of both files."""
        cameras = read_cameras(self.calibration, data)
        if not self.depth_folder:
            return in_space(data, cameras)
        nobody = data.annotations.take(np.zeros(0, np.int64))  # the people have boxes, and need no depth
        deep = with_depth(data.change(annotations=nobody), self.depth_folder, scale=self.depth_scale)
        return in_space(data.change(detections=deep.detections), cameras, deep=True)


def people_map(names: Sequence[str]) -> ClassMap:
    """The class map under which these names (`*` stands for any characters) are people, and nothing else is."""
    rules = dict.fromkeys(names, PERSON)
    if not rules or "" in rules:
        raise UsageError("name the classes that are people")
    return class_map({**rules, "*": rules.get("*", "ignore")})


def logs_of(sets: Mapping[str, DetectionSet], drive: Drive, remarks: Sequence[str], *, placed: bool = True) -> Logs:
    """The logs of several sources over the same frames and annotations; every sequence is a log.

    A log is positive when it shows people at all; whether they are in the way depends on the control radius, see
    `positive_by_path`.

    Args:
        sets: at least one, by name of the source; they share frames and annotations.
        drive: of their frames, in the same order.
        remarks: of the result.
        placed: whether a metric asks where people and detections are.

    Raises:
        InputError: a source has other frames than the first.
        UsageError: a source has no boxes in space.
    """
    first = next(iter(sets.values()))
    if not (np.diff(first.frame_sequence) >= 0).all():
        raise ValueError("the frames of a sequence must stand together")
    for name, detections in sets.items():
        if detections.frame_name != first.frame_name:
            raise InputError(
                f"source '{name}' answers {detections.frame_count} frames, the first source {first.frame_count}, "
                "or others",
                hint="compare detectors on the same frames",
            )
        if placed and len(detections.detections) and not detections.detections.in_space:
            raise UsageError(
                f"the detections of source '{name}' have no boxes in space, only rectangles in the image\n"
                "  hint: cameras place them, --calibration; --metric roc_a and roc_b need no places"
            )
    positive = np.zeros(len(first.sequences), dtype=np.bool_)
    positive[first.frame_sequence[first.annotations.frame]] = True
    sources = {
        name: Detections(
            detections.detections.frame,
            np.zeros(0) if detections.detections.score is None else detections.detections.score,
            _points(detections.detections, drive),
            detections.detections.box_2d,
        )
        for name, detections in sets.items()
    }
    return Logs(
        first.sequences,
        positive,
        first.frame_sequence.astype(np.int64),
        drive.time_s,
        drive.world_from_ego.translation[:, :2],
        drive.heading_rad,
        first.annotations.frame,
        _points(first.annotations, drive),
        sources,
        first.annotations.box_2d,
        tuple(remarks),
    )


def _points(boxes: Boxes, drive: Drive) -> Floats:
    """(n, 2) the centres of the boxes in the ground plane."""
    if boxes.box_3d is None:
        return np.full((len(boxes), 2), np.nan)
    world = drive.world_from_ego.take(boxes.frame)
    centre = np.einsum("nij,nj->ni", world.rotation, boxes.box_3d[:, :3]) + world.translation
    return np.asarray(centre[:, :2])


KITTI_PEOPLE = ("Pedestrian", "Person", "Person_sitting")
FRAME_RATE_HZ = 10.0


def kitti_tracking_logs(
    annotations: str | Path,
    sources: Mapping[str, str | Path],
    speed_mps: float | None,
    frames: str | Path | Mapping[str, int],
    sequences: Sequence[str] | None = None,
    people: Sequence[str] = KITTI_PEOPLE,
    ignore: tuple[str, ...] = (),
    placing: Placing | None = None,
) -> Logs:
    """One log per sequence: 10 Hz, straight ahead along the camera's axis at `speed_mps`.

    Where a box stands relative to the camera is measured; where the camera is, is assumed. At the speed that was
    really driven, a person at rest stays where he is on the ground; at another speed he drifts along the path. The
    path never bends. The remarks of the result say so.

    Args:
        annotations: as `kitti_tracking`.
        sources: by name, as the detections of `kitti_tracking`; they need boxes in space.
        speed_mps: of the vehicle, not negative; 0 is a vehicle at rest. None: no metric asks for positions.
        frames: how many frames each sequence has, as `kitti_tracking`.
        sequences: the sequences to read, None for all.
        people: names of classes that are people.
        ignore: kinds of faults to leave out, see `verifier.perception.detections.sources.IGNORABLE`.
        placing: of rectangles without boxes in space; None for none.

    Raises:
        InputError: a file cannot be read.
        UsageError: a source without boxes in space.
    """
    chosen = None if sequences is None else tuple(sequences)
    reading = Reading(class_map=people_map(people), ignore=ignore, dont_care="drop", sequences=chosen)
    sets = {name: kitti_tracking(annotations, path, reading, frames=frames) for name, path in sources.items()}
    drive = _kitti_drive(next(iter(sets.values())).frame_name, speed_mps or 0.0)
    remarks = ["detections in KITTI's don't-care regions are judged like any others"]
    if speed_mps is None:
        return logs_of(sets, drive, remarks, placed=False)
    remarks.insert(
        0, f"the vehicle is assumed to drive straight ahead at {speed_mps:g} m/s: KITTI tracking has no ego pose"
    )
    if placing is not None:
        sets = {name: placing(detections) for name, detections in sets.items()}
        _check_people(next(iter(sets.values())))
        how = "the median depth of its rectangle" if placing.depth_folder else "where its foot meets flat ground"
        remarks.append(f"a detection without a box in space is placed by its rectangle: {how}")
        for name, detections in sets.items():
            lost = (
                0 if detections.detections.box_3d is None else int(np.isnan(detections.detections.box_3d[:, 0]).sum())
            )
            if lost:
                remarks.append(
                    f"{name}: {lost} of {len(detections.detections)} detections have no place: they stop nobody"
                )
    return logs_of(sets, drive, remarks)


def _check_people(data: DetectionSet) -> None:
    """Refuse annotated people without a place, whom a drive would pass as if nobody stood there; InputError."""
    people = data.annotations
    lost = np.arange(len(people)) if people.box_3d is None else np.flatnonzero(np.isnan(people.box_3d[:, 0]))
    if len(lost):
        first = shown(data.frame_name[int(people.frame[lost[0]])])
        raise InputError(
            f"{len(lost)} of {len(people)} people have no place, the first in frame {first}: no box in space, "
            "and depth maps place detections only, or the foot of the rectangle meets no ground",
            hint="correct labels or cameras; --metric roc_a and roc_b need no places",
        )


def _kitti_drive(names: Sequence[str], speed_mps: float) -> Drive:
    """Frames are named "SSSS/FFFFFF" and numbered from 0."""
    time = np.array([int(name.rpartition("/")[2]) for name in names], dtype=np.float64) / FRAME_RATE_HZ
    zero = np.zeros_like(time)
    rotation = np.broadcast_to(np.eye(3), (len(time), 3, 3))
    return Drive(time, Motion(rotation, np.column_stack([speed_mps * time, zero, zero])), zero)


NUSCENES_PEOPLE = ("pedestrian*", "human.pedestrian*")


def nuscenes_logs(
    annotations: str | Path,
    sources: Mapping[str, str | Path],
    people: Sequence[str] = NUSCENES_PEOPLE,
    ignore: tuple[str, ...] = (),
    limits: LogLimits | None = None,
) -> Logs:
    """One log: the key frames (2 Hz) of the scene, its people, and the people that each detector reports.

    Positions are those of the ego frame (`ego2global` at the LiDAR's key frame) in the map's x and y, with the first
    one subtracted. Points are the centres of boxes. nuScenes has no rectangles of annotations in this form, so that
    matching is by distance on the ground.

    Args:
        annotations: the scene's file.
        sources: by name, a folder or result file as `nuscenes_compact` reads it.
        people: names of classes that are people.
        ignore: kinds of faults to leave out, see `verifier.perception.detections.sources.IGNORABLE`.
        limits: of gaps and jumps between frames.

    Raises:
        InputError: a file cannot be read, frames are not in the order of time, there is a gap or jump.
        UsageError: `ignore` names an unknown fault.
    """
    reading = Reading(class_map=people_map(people), ignore=ignore)
    sets = {name: nuscenes_compact(annotations, path, reading) for name, path in sources.items()}
    logs = logs_of(sets, _nuscenes_drive(str(annotations), next(iter(sets.values())).frame_name), ())
    check_plausible(logs, limits, str(annotations))
    return logs


def _nuscenes_drive(file: str, names: Sequence[str]) -> Drive:
    """The poses of the frames of these names."""
    every = elements(load_json(file)[0], file, "frames")
    row_of = {token: row for row, token in enumerate(every.texts("sample_token"))}
    rows = [row_of[name] for name in names]
    frames = Elements([every.items[row] for row in rows], file, "frames", lambda row: f"/{rows[row]}")
    time = frames.whole("timestamp_us")
    late = np.diff(time) <= 0
    if late.any():
        row = int(late.argmax()) + 1
        raise frames.fail(
            row, "timestamp_us", f"{time[row]} is not later than the {time[row - 1]} of the frame before"
        )
    translation, rotation = frames.vectors("ego2global_translation", 3), frames.vectors("ego2global_rotation_wxyz", 4)
    if not (np.isfinite(translation).all() and np.isfinite(rotation).all() and rotation.any(axis=1).all()):
        raise InputError("a pose is not finite, or its quaternion is zero", Place(file))
    world_from_ego = motion(translation - translation[0], rotation)
    forward = world_from_ego.rotation[:, :, 0]
    return Drive((time - time[0]) / 1e6, world_from_ego, np.arctan2(forward[:, 1], forward[:, 0]))
