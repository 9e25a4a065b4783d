"""Filters: each takes a `DetectionSet`, gives the one that remains, and records what it took out.

An annotation that a filter takes out becomes a don't-care region by default (`removed="ignore"`): a detection on a
far, hidden or cut-off pedestrian is then neither right nor a false positive, as in the KITTI and COCO benchmarks.
With `removed="drop"` it is gone, and a detection on it is unmatched, as in the nuScenes benchmark.

An object for which the value is unknown (NaN) stays.
"""

import math

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import UsageError, check_known
from verifier.perception.detections.columns import Boxes, DetectionSet, joined
from verifier.perception.detections.distances import distance, reported_distance
from verifier.perception.settings import Removed


def keep_scores(data: DetectionSet, lowest: float) -> DetectionSet:
    """Detections with a score of at least `lowest`."""
    _check_number("lowest score", lowest)
    score = data.detections.score
    assert score is not None  # a DetectionSet without scores does not exist
    return _filtered(data, {"filter": "score", "lowest": lowest}, None, score >= lowest)


def keep_range(
    data: DetectionSet, measure: str, lowest_m: float, highest_m: float, removed: Removed = "ignore"
) -> DetectionSet:
    """Annotations and detections whose distance by `measure` lies in [lowest_m, highest_m)."""
    _check_number("lowest distance", lowest_m)
    if not highest_m > lowest_m:
        raise UsageError(f"the range [{lowest_m:g}, {highest_m:g}) m is empty")

    def inside(boxes: Boxes) -> NDArray[np.bool_]:
        away = (distance if boxes is data.annotations else reported_distance)(boxes, measure)
        return np.isnan(away) | ((away >= lowest_m) & (away < highest_m))

    highest = None if math.isinf(highest_m) else highest_m
    entry = {"filter": "range", "measure": measure, "lowest_m": lowest_m, "highest_m": highest}
    return _filtered(data, entry, inside(data.annotations), inside(data.detections), removed)


def keep_field_of_view(data: DetectionSet, half_angle_deg: float, removed: Removed = "ignore") -> DetectionSet:
    """Annotations and detections whose centre lies within `half_angle_deg` of straight ahead, seen from above."""
    if not 0 < half_angle_deg <= 180:
        raise UsageError(f"the half angle of a field of view lies in (0, 180] degrees, got {half_angle_deg:g}")

    def inside(boxes: Boxes) -> NDArray[np.bool_]:
        if boxes.box_3d is None:
            return np.ones(len(boxes), dtype=bool)
        x, y = boxes.box_3d[:, 0], boxes.box_3d[:, 1]
        return np.isnan(x) | (np.abs(np.arctan2(y, x)) <= math.radians(half_angle_deg))

    entry = {"filter": "field_of_view", "half_angle_deg": half_angle_deg}
    return _filtered(data, entry, inside(data.annotations), inside(data.detections), removed)


def keep_attribute(
    data: DetectionSet, name: str, lowest: float = -math.inf, highest: float = math.inf, removed: Removed = "ignore"
) -> DetectionSet:
    """Annotations whose attribute `name` lies in [lowest, highest].

    For example `keep_attribute(data, "occluded", highest=1)`, `keep_attribute(data, "truncated", highest=0.3)`,
    `keep_attribute(data, "num_points", lowest=1)`.

    Raises:
        UsageError: the data set has no such attribute, or it is not a number.
    """
    known = data.annotations.attributes
    check_known("attribute of the annotations", name, known)
    if known[name].dtype.kind not in "biuf":
        raise UsageError(f"the attribute '{name}' is not a number")
    if not lowest <= highest:
        raise UsageError(f"no number lies in [{lowest:g}, {highest:g}]")
    value = known[name].astype(np.float64)
    inside = np.isnan(value) | ((value >= lowest) & (value <= highest))
    bounds = {key: edge for key, edge in (("lowest", lowest), ("highest", highest)) if math.isfinite(edge)}
    return _filtered(data, {"filter": "attribute", "name": name, **bounds}, inside, None, removed)


def _check_number(name: str, value: float) -> None:
    if math.isnan(value):
        raise UsageError(f"the {name} is not a number")


def _filtered(
    data: DetectionSet,
    entry: dict[str, object],
    annotations: NDArray[np.bool_] | None,
    detections: NDArray[np.bool_] | None,
    removed: Removed = "drop",
) -> DetectionSet:
    """The set with the masked rows kept, and `entry` with the numbers taken out added to its origin."""
    changes: dict[str, object] = {}
    entry = dict(entry)
    if annotations is not None:
        out = data.annotations.take(~annotations)
        changes["annotations"] = data.annotations.take(annotations)
        entry |= {"removed": removed, "annotations": len(out)}
        if removed == "ignore" and len(out):
            changes["ignored"] = joined([data.ignored, out]) if data.ignored is not None else out
    if detections is not None:
        changes["detections"] = data.detections.take(detections)
        entry["detections"] = int((~detections).sum())
    filters = [*data.origin.get("filters", []), entry]
    return data.change(**changes, origin={**data.origin, "filters": filters})
