"""Which pairs of boxes are worth comparing: those of one group (frame, or frame and class) near each other.

Annotations are sorted by group and then by a key on the first axis. For each detection the annotations that can reach
the threshold have keys in an interval, found by bisection: a detection meets a few annotations, not all of its frame.
Those with a key outside of a second interval, on the second axis, are left out next. The intervals are generous by
more than rounding can do, so pairs are only spared, never lost; what a pair is worth is computed from the boxes.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from verifier.base.arrays import Floats, Ints
from verifier.perception.matching.policy import MatchingPolicy

Axes: TypeAlias = tuple[Floats, Floats]

BLOCK = 1 << 15
"""Pairs compared at a time: a dozen columns of so many numbers stay in a processor's cache."""


@dataclass(frozen=True, eq=False)
class Windows:
    """Where annotations must lie to match, on two axes.

    Pairs of columns, one per axis: `key` (a,) of each annotation; `low` and `high` (m,) of each detection: the least
    and greatest key that can match it. NaN on the first axis: the box is unknown and matches nothing.
    """

    key: Axes
    low: Axes
    high: Axes


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs to compare, as one run of sorted annotations per detection.

    Attributes:
        detections: (m,) detections that have candidates, sorted by group.
        annotations: (a,) annotations, sorted by group and first key.
        begins: (m,) where in `annotations` the run of each detection begins.
        ends: (m + 1,) running total of the lengths of the runs.
        borders: (g + 1,) where in `detections` each group begins, and `m`.
        key: (a,) second key of `annotations`.
        low, high: (m,) bounds of the second key, of `detections`.
    """

    detections: Ints
    annotations: Ints
    begins: Ints
    ends: Ints
    borders: Ints
    key: Floats
    low: Floats
    high: Floats

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Ranges of `detections`: whole groups of at most about `BLOCK` pairs together, or one larger group."""
        yield from _cut(self.ends, self.borders)

    def pairs(self, begin: int, end: int) -> Iterator[tuple[Ints, Ints]]:
        """Detection and annotation of each pair of `detections[begin:end]`, at most about `BLOCK` at a time."""
        for i, j in _cut(self.ends, np.arange(begin, end + 1)):
            counts = self.ends[i + 1 : j + 1] - self.ends[i:j]
            shift = self.begins[i:j] - (self.ends[i:j] - self.ends[i])
            places = np.arange(self.ends[j] - self.ends[i]) + np.repeat(shift, counts)
            key = self.key.take(places)
            near = np.flatnonzero(
                (key >= np.repeat(self.low[i:j], counts)) & (key <= np.repeat(self.high[i:j], counts))
            )
            yield np.repeat(self.detections[i:j], counts).take(near), self.annotations.take(places.take(near))


def reach(policy: MatchingPolicy, detection: Floats, annotation: Floats) -> Windows:
    """Windows for boxes (n, 4) or (n, 7), or centres (n, 2) or (n, 3), as the policy's affinity asks."""
    if policy.affinity == "iou_2d":
        # With w the common width and a, d the widths, IoU <= w / max(a, d): the common height is at most each
        # height. So t*d <= w and a <= d/t, and the left edge lies from d(1-t)/t before to d(1-t) behind; the top
        # edge likewise.
        behind = [(detection[:, axis + 2] - detection[:, axis]) * (1 - policy.threshold) for axis in (0, 1)]
        before = [side / policy.threshold for side in behind]
    elif policy.affinity in ("iou_bev", "iou_3d"):
        radius = np.hypot(annotation[:, 3], annotation[:, 4]) / 2
        largest = np.fmax.reduce(radius, initial=0.0)
        around = np.hypot(detection[:, 3], detection[:, 4]) / 2 + largest
        before = behind = [around, around]
    else:
        around = np.full(len(detection), policy.threshold)
        before = behind = [around, around]
    axes = [_window(detection[:, axis], before[axis], behind[axis]) for axis in (0, 1)]
    (low, high), (second_low, second_high) = axes
    return Windows(columns(annotation[:, :2]), (low, second_low), (high, second_high))


def columns(points: Floats) -> Axes:
    """The two columns of `points` (n, 2), each in one piece of memory."""
    first, second = np.ascontiguousarray(points.T)
    return first, second


def _window(middle: Floats, before: Floats, behind: Floats) -> tuple[Floats, Floats]:
    """(n,) from `before` the middle to `behind` it, and somewhat more."""
    slack = 1e-9 * (np.abs(middle) + before + behind)
    return middle - before - slack, middle + behind + slack


def candidates(detection_group: Ints, annotation_group: Ints, windows: Windows) -> Candidates:
    """Pairs of one group in which the annotation lies in the detection's window, and few others."""
    key = windows.key[0]
    annotations = np.flatnonzero(~np.isnan(key))
    annotations = annotations.take(np.lexsort((key.take(annotations), annotation_group.take(annotations))))
    group, key = annotation_group.take(annotations), key.take(annotations)
    detections = np.argsort(detection_group, kind="stable")
    own = detection_group.take(detections)
    begins, stops = (np.searchsorted(group, own, side=side) for side in ("left", "right"))
    if len(annotations):
        bounds = (windows.low[0].take(detections), windows.high[0].take(detections))
        low, high = _runs(key, group, *bounds, own)
        begins, stops = np.maximum(low, begins), np.minimum(high, stops)
    some = np.flatnonzero(stops > begins)
    detections, own, begins, stops = (array.take(some) for array in (detections, own, begins, stops))
    return Candidates(
        detections=detections,
        annotations=annotations,
        begins=begins,
        ends=np.r_[0, np.cumsum(stops - begins)],
        borders=np.flatnonzero(np.r_[True, own[1:] != own[:-1], True][: len(own) + 1]),
        key=windows.key[1].take(annotations),
        low=windows.low[1].take(detections),
        high=windows.high[1].take(detections),
    )


def centres(policy: MatchingPolicy, box: Floats) -> Floats:
    """(n, 2) or (n, 3) centres of the boxes in the plane or space that the policy measures distances in."""
    if policy.affinity == "centre_2d":
        return box[:, :2] / 2 + box[:, 2:] / 2
    return box[:, :3] if policy.affinity == "centre_3d" else box[:, :2]


def _runs(key: Floats, group: Ints, low: Floats, high: Floats, index: Ints) -> tuple[Ints, Ints]:
    """Where keys from `low` to `high` begin and end among `key`, sorted within each group, for detections of group
    `index`; the runs may reach into neighbouring groups.

    Group and key become one number, `group * span + key`. Groups lie farther apart than rounding can bring them, and
    within one the numbers of keys and bounds are rounded alike, so that none changes places with another.
    """
    least, greatest = float(key.min()), float(key.max())
    span = 2.0 * (greatest - least) + 1.0
    if not math.isfinite(span):
        return np.zeros_like(index), np.full_like(index, len(key))
    merged = group * span + (key - least)
    base = index * span
    begin = np.searchsorted(merged, base + (np.clip(low, least, greatest) - least), side="left")
    end = np.searchsorted(merged, base + (np.clip(high, least, greatest) - least), side="right")
    return begin, end


def _cut(ends: Ints, borders: Ints) -> Iterator[tuple[int, int]]:
    """Neighbouring `borders` joined while a range has at most about `BLOCK` pairs."""
    totals = ends[borders]
    first = 0
    while first < len(borders) - 1:
        last = int(np.searchsorted(totals, totals[first] + BLOCK, side="right")) - 1
        last = max(last, first + 1)
        yield int(borders[first]), int(borders[last])
        first = last
