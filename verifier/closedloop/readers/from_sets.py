"""Logs from detection sets, which know the ego frame of each image, and from where that frame was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from verifier.base.arrays import Floats
from verifier.base.errors import InputError, UsageError
from verifier.closedloop.logs import Detections, Logs
from verifier.perception.detections import class_map
from verifier.perception.detections.classmap import ClassMap
from verifier.perception.detections.columns import Boxes, DetectionSet
from verifier.perception.detections.geometry import Motion

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


def people_map(names: Sequence[str]) -> ClassMap:
    """The class map under which these names (`*` stands for any characters) are people, and nothing else is."""
    rules = dict.fromkeys(names, PERSON)
    if not rules or "" in rules:
        raise UsageError("name the classes that are people")
    return class_map({**rules, "*": rules.get("*", "ignore")})


def check_sources(sources: Mapping[str, str | Path]) -> None:
    """Refuse no source at all; UsageError."""
    if not sources:
        raise UsageError("name at least one source of detections")


def logs_of(sets: Mapping[str, DetectionSet], drive: Drive, remarks: Sequence[str]) -> Logs:
    """The logs of several sources over the same frames and annotations; every sequence is a log.

    A log is positive when it shows people at all; whether they are in the way depends on the control radius, see
    `positive_by_path`.

    Args:
        sets: at least one, by name of the source; they share frames and annotations.
        drive: of their frames, in the same order.
        remarks: of the result.

    Raises:
        InputError: a source has other frames than the first.
        UsageError: a source has no boxes in space.
    """
    first = next(iter(sets.values()))
    if not (np.diff(first.frame_sequence) >= 0).all():
        raise ValueError("the frames of a sequence must stand together")
    for name, each in sets.items():
        if each.frame_name != first.frame_name:
            raise InputError(
                f"source '{name}' answers {each.frame_count} frames, the first source {first.frame_count}, or others",
                hint="compare detectors on the same frames",
            )
        if len(each.detections) and each.detections.box_3d is None:
            raise UsageError(
                f"the detections of source '{name}' have no boxes in space, only rectangles in the image"
            )
    positive = np.zeros(len(first.sequences), dtype=np.bool_)
    positive[first.frame_sequence[first.annotations.frame]] = True
    found = {
        name: Detections(
            each.detections.frame,
            np.zeros(0) if each.detections.score is None else each.detections.score,
            _points(each.detections, drive),
            each.detections.box_2d,
        )
        for name, each in sets.items()
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
        found,
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
