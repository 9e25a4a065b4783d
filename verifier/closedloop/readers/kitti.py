"""Logs from KITTI tracking. Its files have no ego pose, so the path is a straight line driven at an assumed speed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from verifier.base.errors import UsageError
from verifier.closedloop.logs import Logs
from verifier.closedloop.readers.from_sets import Drive, check_sources, logs_of, people_map
from verifier.perception.detections.geometry import Motion
from verifier.perception.detections.kitti import kitti_tracking
from verifier.perception.detections.reading import Reading

PEOPLE = ("Pedestrian", "Person", "Person_sitting")
FRAME_RATE_HZ = 10.0


def kitti_tracking_logs(
    annotations: str | Path,
    sources: Mapping[str, str | Path],
    speed_mps: float,
    frames: str | Path | Mapping[str, int],
    sequences: Sequence[str] | None = None,
    people: Sequence[str] = PEOPLE,
    ignore: tuple[str, ...] = (),
) -> Logs:
    """One log per sequence: 10 Hz, straight ahead along the camera's axis at `speed_mps`.

    Where a box stands relative to the camera is measured; where the camera is, is assumed. At the speed that was
    really driven, a person at rest stays where he is on the ground; at another speed he drifts along the path. The
    path never bends. The remarks of the result say so.

    Args:
        annotations: as `kitti_tracking`.
        sources: by name, as the detections of `kitti_tracking`; they need boxes in space.
        speed_mps: of the vehicle, not negative; 0 is a vehicle at rest.
        frames: how many frames each sequence has, as `kitti_tracking`.
        sequences: the sequences to read, None for all.
        people: names of classes that are people.
        ignore: kinds of faults to leave out, see `verifier.perception.detections.IGNORABLE`.

    Raises:
        InputError: a file cannot be read.
        UsageError: no source, a source without boxes in space, or the speed is negative or not finite.
    """
    if not 0 <= speed_mps < math.inf:
        raise UsageError(f"expected a speed in m/s from 0, got {speed_mps:g}")
    check_sources(sources)
    chosen = None if sequences is None else tuple(sequences)
    reading = Reading(class_map=people_map(people), ignore=ignore, dont_care="drop", sequences=chosen)
    sets = {name: kitti_tracking(annotations, path, reading, frames=frames) for name, path in sources.items()}
    drive = _drive(next(iter(sets.values())).frame_name, speed_mps)
    remark = f"the vehicle is assumed to drive straight ahead at {speed_mps:g} m/s: KITTI tracking has no ego pose"
    regions = "detections in KITTI's don't-care regions are judged like any others"
    return logs_of(sets, drive, (remark, regions))


def _drive(names: Sequence[str], speed_mps: float) -> Drive:
    """Frames are named "SSSS/FFFFFF" and numbered from 0."""
    time = np.array([int(name.rpartition("/")[2]) for name in names], dtype=np.float64) / FRAME_RATE_HZ
    zero = np.zeros_like(time)
    rotation = np.broadcast_to(np.eye(3), (len(time), 3, 3))
    return Drive(time, Motion(rotation, np.column_stack([speed_mps * time, zero, zero])), zero)
