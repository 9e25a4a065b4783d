"""Which pairs of a detection and an annotation may match, and which of them do.

Two tools that "match detections with objects" seldom mean the same thing, and their confusion matrices differ on the
same boxes. A `MatchingPolicy` says every choice by name. A *pair* is a detection and an annotation of one frame whose
affinity reaches the threshold. Greedy matching walks through the pairs in an order and takes each pair whose
detection and annotation are both still free. The order makes the convention:

* `score`: pairs by falling score of the detection, then by falling affinity. So the surest detection chooses first,
  and each takes its best still free object (COCO, nuScenes).
* `affinity`: the most alike pair first, whatever its score (supervision, Ultralytics).
* `annotation`: annotations in the order of the file, each takes its most alike still free detection (KITTI).

The conventions, each read from the program that defines it:

| name | order | affinity reaches | equal scores | equal affinity | classes | other |
|---|---|---|---|---|---|---|
| coco: pycocotools `COCOeval.evaluateImg` | score | IoU >= t | first | last | same | regions to ignore |
| nuscenes: devkit `eval/detection/algo.py: accumulate` | score | distance < t | last | first | same | |
| kitti: `evaluate_object.cpp: computeStatistics` | annotation | IoU > t | - | first | same | regions to ignore |
| pascal_voc: VOCdevkit `VOCevaldet.m` | score | IoU >= t | first | first | same | `only_best` |
| supervision: `ConfusionMatrix` since 0.26 | affinity | IoU > t | - | first | same first | |

What they do beside matching (regions aside) is not matching and not done here: COCO keeps the 100 surest detections
of a class and image, KITTI leaves out small and occluded objects and counts Van as neither, PASCAL VOC leaves out
difficult objects.

How alike two boxes are, for pairs of boxes: overlap of rectangles and distance of centres.

Intersection over union (IoU) of two regions A and B is |A n B| / |A u B|, the Jaccard index; it lies in [0, 1] and
is 1 only when both are the same region (Everingham et al. 2010, "The PASCAL VOC Challenge", Sec. 4.2). Here:

* `iou_2d`: rectangles of the image, areas in square pixels, an edge at x = 3 being a line and not a column of
  pixels (COCO and KITTI; PASCAL VOC adds 1 pixel to each side).
* `iou_bev`: the boxes seen from above, rotated rectangles (KITTI bird's-eye-view benchmark).
* `iou_3d`: volumes of upright boxes; roll and pitch are zero (KITTI 3-D object benchmark).

Every function takes pairs: row i of the one array with row i of the other. A region without area has IoU 0 with
every region, itself included. A row of NaN gives NaN. Boxes in 3-D are (n, 7): centre x, y, z, length (along the
direction of yaw), width, height in metres, yaw in radians from x towards y; boxes in 2-D are (n, 4): left, top,
right, bottom in pixels.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from verifier.base.arrays import Floats
from verifier.base.errors import UsageError, unknown_name
from verifier.perception.settings import Affinity, Assignment

Order: TypeAlias = Literal["score", "affinity", "annotation"]
Tie: TypeAlias = Literal["first", "last"]


@dataclass(frozen=True)
class MatchingPolicy:
    """Every choice that decides which detection matches which annotation.

    Attributes:
        affinity: what is compared: IoU of image rectangles (`iou_2d`), of rotated ground-plane rectangles
            (`iou_bev`) or of upright boxes (`iou_3d`); distance of centres in the image (`centre_2d`, pixels), in
            the ground plane (`centre_bev`, m) or in space (`centre_3d`, m).
        threshold: a pair needs IoU >= threshold, in (0, 1], or distance <= threshold, in m or pixels, from 0.
        assignment: `greedy`; or `optimal`: as many pairs as possible, and among these choices the greatest sum of
            IoU or the least sum of distances (Kuhn 1955). Among equally good choices an optimal assignment takes
            one, always the same for the same input; only a star (one detection with several annotations or the
            reverse) has a stated rule, that of `order="affinity"`.
        class_aware: a pair needs equal classes. A matrix that shows confusions of classes needs False.
        order: how greedy matching walks through the pairs, see above. `affinity` breaks ties by falling score,
            then as `score_ties` and `affinity_ties` say.
        same_class_first: greedy without `class_aware`: all pairs of equal classes come before all others.
        only_best: greedy: a detection whose best annotation is taken gets none (a duplicate in the sense of
            PASCAL VOC), in place of its next best.
        strict: a pair needs IoU > threshold, or distance < threshold.
        score_ties: of detections with equal scores (`order="annotation"`: equally alike, whatever their scores),
            the `first` or the `last` of the input comes first.
        affinity_ties: of annotations equally alike, the `first` or the `last` of the input comes first.
        ignore_overlap: an unmatched detection of which at least this part (of its image rectangle) lies in one
            region to ignore is `ignored`: neither match nor false positive. None: the regions play no part.
    """

    affinity: Affinity
    threshold: float
    assignment: Assignment = "greedy"
    class_aware: bool = False
    order: Order = "score"
    same_class_first: bool = False
    only_best: bool = False
    strict: bool = False
    score_ties: Tie = "first"
    affinity_ties: Tie = "first"
    ignore_overlap: float | None = None

    def __post_init__(self) -> None:
        options = {"affinity": get_args(Affinity), "assignment": get_args(Assignment), "order": get_args(Order)}
        for name, known in {**options, "score_ties": get_args(Tie), "affinity_ties": get_args(Tie)}.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}")
        if self.by_distance and not 0 <= self.threshold < math.inf:
            raise ValueError(f"a distance threshold must be finite and at least 0, got {self.threshold}")
        if not self.by_distance and not 0 < self.threshold <= 1:
            raise ValueError(f"an IoU threshold must lie in (0, 1], got {self.threshold}")
        if self.ignore_overlap is not None and not 0 < self.ignore_overlap <= 1:
            raise ValueError(f"ignore_overlap must lie in (0, 1], got {self.ignore_overlap}")
        if self.class_aware and self.same_class_first:
            raise ValueError("same_class_first says nothing where only equal classes match")
        if self.assignment == "optimal" and (self.order != "score" or self.only_best or self.same_class_first):
            raise ValueError("order, only_best and same_class_first are choices of greedy matching")

    @property
    def by_distance(self) -> bool:
        """Whether less affinity value is better: a distance, not an IoU."""
        return self.affinity.startswith("centre")

    @property
    def column(self) -> Literal["box_2d", "box_3d"]:
        """The column of `Boxes` that is compared."""
        return "box_2d" if self.affinity in ("iou_2d", "centre_2d") else "box_3d"

    def record(self) -> dict[str, object]:
        """Every choice as JSON values, to be kept beside the counts; `MatchingPolicy(**record)` is equal."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


CONVENTIONS: Mapping[str, MatchingPolicy] = MappingProxyType(
    {
        "coco": MatchingPolicy("iou_2d", 0.5, class_aware=True, affinity_ties="last", ignore_overlap=0.5),
        "nuscenes": MatchingPolicy("centre_bev", 2.0, class_aware=True, strict=True, score_ties="last"),
        "kitti": MatchingPolicy("iou_2d", 0.5, class_aware=True, order="annotation", strict=True, ignore_overlap=0.5),
        "pascal_voc": MatchingPolicy("iou_2d", 0.5, class_aware=True, only_best=True),
        "supervision": MatchingPolicy("iou_2d", 0.5, order="affinity", same_class_first=True, strict=True),
    }
)
"""Policies of published programs, with their usual affinity and threshold."""


def usual_threshold(affinity: Affinity) -> float:
    """Least IoU, or largest distance in pixels or metres, where only the affinity is named."""
    return {"centre_2d": 20.0, "centre_bev": 2.0, "centre_3d": 2.0}.get(affinity, 0.5)


def convention(name: str, **changes: Any) -> MatchingPolicy:
    """The policy of a published program, with some choices replaced.

    >>> convention("nuscenes", threshold=4.0).threshold
    4.0

    Raises:
        UsageError: no convention of that name.
        ValueError: a choice that does not exist or does not fit the others.
    """
    if name not in CONVENTIONS:
        message, hint = unknown_name("matching convention", name, CONVENTIONS)
        raise UsageError(f"{message} ({hint})")
    return replace(CONVENTIONS[name], **changes)


CORNERS = ((0.5, 0.5), (-0.5, 0.5), (-0.5, -0.5), (0.5, -0.5))
"""Corners of a rectangle in units of its length and width, counter-clockwise."""
ROUNDINGS = 16
"""Shared areas up to so many roundings of the numbers they are made of are rounding errors: nothing is shared."""


def iou_2d(a: Floats, b: Floats) -> Floats:
    """(n,) IoU of the image rectangles `a` (n, 4) and `b` (n, 4)."""
    shared = _shared_area(a, b)
    both = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1]) + (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    return _ratio(shared, both - shared)


def cover_2d(a: Floats, b: Floats) -> Floats:
    """(n,) part of the image rectangle `a` (n, 4) that lies in `b` (n, 4): |a n b| / |a|.

    With regions to ignore COCO and KITTI use this in place of the IoU: one region may hold many objects.
    """
    return _ratio(_shared_area(a, b), (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1]))


def iou_bev(a: Floats, b: Floats) -> Floats:
    """(n,) IoU of the rotated ground-plane rectangles of `a` (n, 7) and `b` (n, 7); z and height play no part."""
    shared = _shared_ground(a, b)
    return _ratio(shared, a[:, 3] * a[:, 4] + b[:, 3] * b[:, 4] - shared)


def iou_3d(a: Floats, b: Floats) -> Floats:
    """(n,) IoU of the upright boxes `a` (n, 7) and `b` (n, 7): ground-plane intersection times common height."""
    top = np.minimum(a[:, 2] + a[:, 5] / 2, b[:, 2] + b[:, 5] / 2)
    bottom = np.maximum(a[:, 2] - a[:, 5] / 2, b[:, 2] - b[:, 5] / 2)
    # Taken from the difference of two sums, the common height of equal boxes could exceed their height by rounding.
    height = np.minimum(np.maximum(top - bottom, 0.0), np.minimum(a[:, 5], b[:, 5]))
    shared = _shared_ground(a, b) * height
    return _ratio(shared, a[:, 3] * a[:, 4] * a[:, 5] + b[:, 3] * b[:, 4] * b[:, 5] - shared)


def centre_distance(a: Floats, b: Floats) -> Floats:
    """(n,) Euclidean distance of the points `a` (n, d) and `b` (n, d), in their unit.

    nuScenes matches by the distance in the ground plane (Caesar et al. 2020, Sec. 3.1, d = 2).
    """
    squares = np.square(a[:, 0] - b[:, 0])
    for axis in range(1, a.shape[1]):
        squares += np.square(a[:, axis] - b[:, axis])
    return np.sqrt(squares)


def _ratio(part: Floats, whole: Floats) -> Floats:
    """`part / whole`, 0 where `whole` is 0."""
    result: Floats = np.divide(part, whole, out=np.where(whole == 0, 0.0, np.nan), where=whole > 0)
    return result


def _shared_area(a: Floats, b: Floats) -> Floats:
    width = np.minimum(a[:, 2], b[:, 2]) - np.maximum(a[:, 0], b[:, 0])
    height = np.minimum(a[:, 3], b[:, 3]) - np.maximum(a[:, 1], b[:, 1])
    np.maximum(width, 0.0, out=width)
    np.maximum(height, 0.0, out=height)
    width *= height
    return width


def _shared_ground(a: Floats, b: Floats) -> Floats:
    """(n,) area of the intersection of the ground-plane rectangles; clips only pairs whose circumcircles meet."""
    reach = (np.hypot(a[:, 3], a[:, 4]) + np.hypot(b[:, 3], b[:, 4])) / 2
    apart = centre_distance(a[:, :2], b[:, :2])
    area = np.zeros(len(a))
    near = np.flatnonzero(~(apart > reach))  # NaN goes through
    area[near] = _clipped_area(a[near], b[near])
    return area


def _clipped_area(a: Floats, b: Floats) -> Floats:
    """(n,) area of the intersection of two rotated rectangles, by clipping `a` in the axes of `b`.

    In these axes `b` is |x| <= h, |y| <= k, and `a` is convex: above each x its slice is one interval from y_low to
    y_high. Cut to `b`, the slice has length clip(y_high, -k, k) - clip(y_low, -k, k). So the area is the integral of
    clip(y, -k, k) dx along the boundary of `a`, clockwise, cut to |x| <= h: four sides, each a straight line,
    and no case for touching, equal or containing boxes.
    """
    cosine, sine = np.cos(b[:, 6]), np.sin(b[:, 6])
    dx, dy = a[:, 0] - b[:, 0], a[:, 1] - b[:, 1]
    centre = (cosine * dx + sine * dy, cosine * dy - sine * dx)
    cosine, sine = np.cos(a[:, 6] - b[:, 6]), np.sin(a[:, 6] - b[:, 6])
    half_length, half_width = b[:, 3] / 2, b[:, 4] / 2
    corners = []
    for along, across in CORNERS:
        x, y = along * a[:, 3], across * a[:, 4]
        corners.append((centre[0] + (cosine * x - sine * y), centre[1] + (sine * x + cosine * y)))
    area = np.zeros(len(a))
    for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1], strict=True):
        area -= _side_integral(x0, y0, x1, y1, half_length, half_width)
    # Rounding may leave the area an ulp outside of what is possible, and boxes that are apart some 1e-16 in common.
    sizes = np.maximum(a[:, 3:5].max(axis=1), b[:, 3:5].max(axis=1))
    numbers = np.abs(a[:, :2]).sum(axis=1) + np.abs(b[:, :2]).sum(axis=1) + sizes
    area[area <= ROUNDINGS * np.finfo(np.float64).eps * numbers * sizes] = 0.0
    return np.minimum(area, np.minimum(a[:, 3] * a[:, 4], b[:, 3] * b[:, 4]))


def _side_integral(x0: Floats, y0: Floats, x1: Floats, y1: Floats, h: Floats, k: Floats) -> Floats:
    """(n,) integral of clip(y, -k, k) dx on the straight line from (x0, y0) to (x1, y1), cut to |x| <= h."""
    run = x1 - x0
    slope = np.divide(y1 - y0, run, out=np.zeros_like(run), where=run != 0)
    begin, end = np.clip(x0, -h, h), np.clip(x1, -h, h)
    low, high = y0 + (begin - x0) * slope, y0 + (end - x0) * slope
    rise = high - low
    # clip(y, -k, k) bends where the line meets y = -k and y = k: at the parts t and u of its length.
    bends = [np.divide(side - low, rise, out=np.zeros_like(rise), where=rise != 0) for side in (-k, k)]
    t, u = np.clip(np.minimum(*bends), 0.0, 1.0), np.clip(np.maximum(*bends), 0.0, 1.0)
    # Up to t it is what it is at the beginning, from u on what it is at the end.
    integral: Floats = (end - begin) * ((t + u) * np.clip(low, -k, k) + (2 - t - u) * np.clip(high, -k, k)) / 2
    return integral
