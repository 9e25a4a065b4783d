"""Logs from a nuScenes scene in one JSON file, with the ego poses recorded there (see `nuscenes_compact`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from verifier.base.errors import InputError, Place
from verifier.closedloop.logs import Logs
from verifier.closedloop.plausible import LogLimits, check_plausible
from verifier.closedloop.readers.from_sets import Drive, check_sources, logs_of, people_map
from verifier.perception.detections.geometry import motion
from verifier.perception.detections.jsondata import Elements, elements, load_json
from verifier.perception.detections.nuscenes_compact import nuscenes_compact
from verifier.perception.detections.reading import Reading

PEOPLE = ("pedestrian*", "human.pedestrian*")


def nuscenes_logs(
    annotations: str | Path,
    sources: Mapping[str, str | Path],
    people: Sequence[str] = PEOPLE,
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
        ignore: kinds of faults to leave out, see `verifier.perception.detections.IGNORABLE`.
        limits: of gaps and jumps between frames.

    Raises:
        InputError: a file cannot be read, frames are not in the order of time, there is a gap or jump.
        UsageError: no source, or `ignore` names an unknown fault.
    """
    check_sources(sources)
    reading = Reading(class_map=people_map(people), ignore=ignore)
    sets = {name: nuscenes_compact(annotations, path, reading) for name, path in sources.items()}
    logs = logs_of(sets, _drive(str(annotations), next(iter(sets.values())).frame_name), ())
    check_plausible(logs, limits, str(annotations))
    return logs


def _drive(file: str, names: Sequence[str]) -> Drive:
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
