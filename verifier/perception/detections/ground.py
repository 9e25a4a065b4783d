"""Distances of image rectangles from the ground they stand on, for detectors that see in two dimensions only.

An object stands on the ground plane where the ray through the foot of its rectangle, the middle of the lower edge,
meets it. The centre is taken half as high as the rectangle is tall at that depth. What this assumes: the ground is
flat, the camera's pitch is the calibrated one, and the whole object is seen. The foot is the near side of an object:
the centre of a car lies further away. A foot at or above the horizon meets no ground: it counts as `FARTHEST_M` away.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from verifier.base.arrays import Floats
from verifier.base.errors import UsageError
from verifier.perception.detections.cameras import Cameras, read_cameras
from verifier.perception.detections.columns import Boxes, DetectionSet
from verifier.perception.detections.distances import distance

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
    found = data.detections
    if found.box_3d is not None and len(found) and not np.isnan(found.box_3d).any():
        raise UsageError("--calibration: the detections have boxes in the ego frame, so their distances are known")
    if found.box_2d is None and len(found):
        raise UsageError("--calibration places rectangles in an image, and the detections have none")
    cameras = read_cameras(calibration, data)
    known = distance(data.annotations, "given" if measure == "given" else "euclidean_3d")
    parts = {"detections": found}
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
        away = np.linalg.norm(centre[:, : 3 if measure == "euclidean_3d" else 2], axis=1)
    no_ground = ~np.isnan(box[:, 0]) & ~(away < FARTHEST_M)
    return np.where(no_ground, FARTHEST_M, np.where(away >= 0, away, np.nan))


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
        known = np.isfinite(point).all(axis=1) & (point[:, 0] > 0)
        found = np.where(known[:, None], np.column_stack([point, np.zeros((len(box), 4))]), np.nan)
        if boxes.box_3d is not None:
            found = np.where(np.isnan(boxes.box_3d[:, :1]), found, boxes.box_3d)
        placed[name] = replace(boxes, box_3d=found)
    return data.change(**placed)
