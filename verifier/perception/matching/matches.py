"""Which detection explains which annotation, for all frames at once, under a named policy.

One-to-one assignment of detections to annotations, from the pairs that may match.

Greedy matching walks through the pairs in a given order and takes every pair with two free ends. That walk need not
be taken step by step: a pair that is the first of the remaining pairs at both of its ends is taken whatever happens
elsewhere. Taking all such pairs at once, dropping the pairs they block and repeating gives exactly the result of the
walk (Preis 1999, "Linear time 1/2-approximation algorithm for maximum weighted matching", takes such locally dominant
edges; here the rank of a pair stands for the weight). The first pair of all is always among them, so it ends.

Optimal assignment is the linear sum assignment problem (Kuhn 1955, "The Hungarian method"), solved per connected
component: pairs of different components never compete.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import LimitError, UsageError
from verifier.perception.detections.columns import ANY_CLASS, Boxes, DetectionSet
from verifier.perception.matching.candidates import (
    BLOCK,
    Candidates,
    Windows,
    candidates,
    centres,
    columns,
    reach,
)
from verifier.perception.matching.policy import MatchingPolicy, centre_distance, cover_2d, iou_2d, iou_3d, iou_bev


@dataclass(frozen=True, eq=False)
class Matches:
    """The result of matching a `DetectionSet` with n annotations and m detections.

    Attributes:
        detection_of: (n,) the detection matched with each annotation, -1 if none.
        annotation_of: (m,) the annotation matched with each detection, -1 if none; the inverse of `detection_of`.
        affinity: (m,) IoU or distance (m, pixels) of the match, NaN if none.
        nearest: (m,) the most alike annotation among the detection's pairs, taken or not; -1 without any pair. An
            unmatched detection with a nearest annotation is a duplicate, or has lost it to a surer detection.
        ignored: (m,) unmatched and in a region to ignore, when the policy has `ignore_overlap`.
    """

    detection_of: Ints
    annotation_of: Ints
    affinity: Floats
    nearest: Ints
    ignored: Mask


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs that may match: detection, annotation, affinity value; each (p,)."""

    detection: Ints
    annotation: Ints
    value: Floats

    def take(self, rows: Ints) -> _Pairs:
        return _Pairs(self.detection.take(rows), self.annotation.take(rows), self.value.take(rows))


def match(data: DetectionSet, policy: MatchingPolicy) -> Matches:
    """Match the detections of every frame with its annotations.

    Frames do not influence each other, and with `class_aware` neither do classes. Memory: some columns as long as the
    input, and the pairs of a block of frames or of the largest frame, never those of all frames.

    Raises:
        UsageError: the policy compares boxes that the data does not have.
        LimitError: optimal assignment of too many boxes in one frame.
    """
    annotations, detections = data.annotations, data.detections
    annotation_box = _compared(annotations, policy, "annotations")
    detection_box = _compared(detections, policy, "detections")
    detection_of = np.full(len(annotations), -1, dtype=np.int64)
    annotation_of = np.full(len(detections), -1, dtype=np.int64)
    nearest = np.full(len(detections), -1, dtype=np.int64)
    affinity = np.full(len(detections), np.nan)
    # Where numbers beyond 1e154 overflow, the IoU is NaN or the distance infinite, which reaches no threshold.
    with np.errstate(over="ignore", invalid="ignore"):
        of_detection, of_annotation = (
            _groups(data, boxes, policy.class_aware) for boxes in (detections, annotations)
        )
        pool = candidates(of_detection, of_annotation, reach(policy, detection_box, annotation_box))
        for pairs in _reaching_pairs(policy, pool, detection_box, annotation_box):
            _assign(data, policy, pairs, nearest, annotation_of, detection_of)
            matched = annotation_of[pairs.detection] == pairs.annotation
            affinity[pairs.detection[matched]] = pairs.value[matched]
        ignored = _ignored(data, policy, annotation_of < 0)
    return Matches(detection_of, annotation_of, affinity, nearest, ignored)


def _compared(boxes: Boxes, policy: MatchingPolicy, what: str) -> Floats:
    """(n, k) what is compared: boxes, or their centres in one piece of memory."""
    box = _column(boxes, policy.column, what)
    return np.ascontiguousarray(centres(policy, box)) if policy.by_distance else box


def _column(boxes: Boxes, name: str, what: str) -> Floats:
    column: Floats | None = getattr(boxes, name)
    if column is not None:
        return column
    width = 4 if name == "box_2d" else 7
    if len(boxes):
        kind = "image rectangles (box_2d)" if width == 4 else "boxes in space (box_3d)"
        raise UsageError(f"the matching policy compares {kind}, which the {what} do not have")
    return np.zeros((0, width))


def _groups(data: DetectionSet, boxes: Boxes, class_aware: bool) -> Ints:
    """(n,) boxes may only match within a group."""
    return boxes.frame * len(data.classes) + boxes.label if class_aware else boxes.frame


def _reaching_pairs(
    policy: MatchingPolicy, pool: Candidates, detection_box: Floats, annotation_box: Floats
) -> Iterator[_Pairs]:
    """The pairs that reach the threshold, whole groups at a time: at least `BLOCK` of them, but at the end."""
    reaching: list[_Pairs] = []
    for begin, end in pool.blocks():
        for detection, annotation in pool.pairs(begin, end):
            # `take` copies whole rows, several times faster than indexing.
            value = _compare(policy, detection_box.take(detection, axis=0), annotation_box.take(annotation, axis=0))
            reaching.append(_Pairs(detection, annotation, value).take(np.flatnonzero(_reaches(policy, value))))
        if sum(len(part.detection) for part in reaching) >= BLOCK:
            yield _joined(reaching)
            reaching = []
    if reaching:
        yield _joined(reaching)


def _joined(parts: list[_Pairs]) -> _Pairs:
    return _Pairs(
        np.concatenate([part.detection for part in parts]),
        np.concatenate([part.annotation for part in parts]),
        np.concatenate([part.value for part in parts]),
    )


def _compare(policy: MatchingPolicy, detection: Floats, annotation: Floats) -> Floats:
    if policy.by_distance:
        return centre_distance(detection, annotation)
    return {"iou_2d": iou_2d, "iou_bev": iou_bev, "iou_3d": iou_3d}[policy.affinity](detection, annotation)


def _reaches(policy: MatchingPolicy, value: Floats) -> Mask:
    if policy.by_distance:
        return value < policy.threshold if policy.strict else value <= policy.threshold
    return _exceeds(policy, value, policy.threshold)


def _exceeds(policy: MatchingPolicy, part: Floats, least: float) -> Mask:
    return part > least if policy.strict else part >= least


def _assign(
    data: DetectionSet, policy: MatchingPolicy, pairs: _Pairs, nearest: Ints, annotation_of: Ints, detection_of: Ints
) -> None:
    """Fill the last three arrays for the pairs of some whole groups."""
    if len(pairs.detection) == 0:
        return
    _fill_nearest(policy, pairs, nearest)
    if policy.only_best:
        pairs = pairs.take(np.flatnonzero(nearest[pairs.detection] == pairs.annotation))
    pairs = pairs.take(_walk(data, policy, pairs))
    if policy.assignment == "greedy":
        greedy(pairs.detection, pairs.annotation, annotation_of, detection_of)
        return
    loss = pairs.value / (policy.threshold or 1.0) if policy.by_distance else 1 - pairs.value
    optimal(pairs.detection, pairs.annotation, loss, annotation_of, detection_of)


def _fill_nearest(policy: MatchingPolicy, pairs: _Pairs, nearest: Ints) -> None:
    """The most alike annotation of each detection; the pairs of a detection stand together."""
    starts = np.flatnonzero(np.r_[True, pairs.detection[1:] != pairs.detection[:-1]])
    counts = np.diff(np.r_[starts, len(pairs.detection)])
    least = policy.affinity_ties == "first"
    alike = np.minimum if policy.by_distance else np.maximum
    best = np.repeat(alike.reduceat(pairs.value, starts), counts) == pairs.value
    chosen = np.where(best, pairs.annotation, np.iinfo(np.int64).max if least else -1)
    nearest[pairs.detection[starts]] = (np.minimum if least else np.maximum).reduceat(chosen, starts)


def _walk(data: DetectionSet, policy: MatchingPolicy, pairs: _Pairs) -> Ints:
    """The order in which the pairs are offered, see the policy's `order`."""
    score = data.detections.score
    unlike = pairs.value if policy.by_distance else -pairs.value
    unsure = np.zeros(len(unlike)) if score is None else -score.take(pairs.detection)
    detection = pairs.detection if policy.score_ties == "first" else -pairs.detection
    annotation = pairs.annotation if policy.affinity_ties == "first" else -pairs.annotation
    keys: list[NDArray[Any]]  # the most significant last
    if policy.order == "annotation":
        keys = [detection, unlike, pairs.annotation]
    elif policy.order == "affinity" or policy.assignment == "optimal":
        # One key in place of two: first by detection, then by annotation.
        keys = [detection * len(data.annotations) + annotation, unsure, unlike]
    else:
        keys = [annotation, unlike, detection, unsure]
    order = _sorted(keys)
    if policy.same_class_first:
        other = data.detections.label[pairs.detection] != data.annotations.label[pairs.annotation]
        later = other.take(order)
        order = np.concatenate([order[~later], order[later]])
    return order


def _sorted(keys: list[NDArray[Any]]) -> Ints:
    """`np.lexsort(keys)`. Sorting by the last key is several times faster, so all are used only where it ties."""
    order = np.argsort(keys[-1])
    last = keys[-1].take(order)
    tied = ~(last[1:] > last[:-1])
    places = np.flatnonzero(np.r_[tied, False] | np.r_[False, tied])
    if 2 * len(places) > len(order):
        return np.lexsort(keys)
    rows = order.take(places)
    order[places] = rows.take(np.lexsort([key.take(rows) for key in keys]))
    return order


def _ignored(data: DetectionSet, policy: MatchingPolicy, unmatched: Mask) -> Mask:
    """Which unmatched detections lie in a region to ignore; a region without a class counts for every class."""
    ignored = np.zeros(len(data.detections), dtype=np.bool_)
    if policy.ignore_overlap is None or data.ignored is None or len(data.ignored) == 0 or not unmatched.any():
        return ignored
    detection_box = _column(data.detections, "box_2d", "detections")
    region_box = _column(data.ignored, "box_2d", "regions to ignore")
    # A region may be far larger than a detection in it: all that matters is that it begins before the detection ends.
    end = columns(np.where(unmatched[:, np.newaxis], detection_box[:, 2:], np.nan))
    begin = columns(np.where(np.isnan(np.stack(end, axis=1)), np.nan, -np.inf))
    windows = Windows(columns(region_box[:, :2]), begin, end)
    pool = candidates(data.detections.frame, data.ignored.frame, windows)
    for detection, region in pool.pairs(0, len(pool.detections)):
        inside = _exceeds(policy, cover_2d(detection_box[detection], region_box[region]), policy.ignore_overlap)
        if policy.class_aware:
            label = data.ignored.label[region]
            inside &= (label == ANY_CLASS) | (label == data.detections.label[detection])
        ignored[detection[inside]] = True
    return ignored


ROUNDS = 32
"""Rounds of taking pairs at once before the rest is walked through one by one; real scenes need about five."""
LARGEST_TABLE = 25_000_000
"""Entries of a dense cost table for optimal assignment: 200 MB."""


def greedy(detection: Ints, annotation: Ints, annotation_of: Ints, detection_of: Ints) -> None:
    """Match along the pairs in their order; each takes its place when both of its ends are free (-1).

    `detection` and `annotation` (p,) are the pairs. `annotation_of` and `detection_of` are filled in place.
    """
    first_of_detection = np.empty(len(annotation_of), dtype=np.int64)
    first_of_annotation = np.empty(len(detection_of), dtype=np.int64)
    for _ in range(ROUNDS):
        if len(detection) == 0:
            return
        rank = np.arange(len(detection))
        # Where an index repeats, the last value assigned stays: reversed, the first pair's rank.
        first_of_detection[detection[::-1]] = rank[::-1]
        first_of_annotation[annotation[::-1]] = rank[::-1]
        taken = (first_of_detection.take(detection) == rank) & (first_of_annotation.take(annotation) == rank)
        annotation_of[detection[taken]] = annotation[taken]
        detection_of[annotation[taken]] = detection[taken]
        free = np.flatnonzero((annotation_of.take(detection) < 0) & (detection_of.take(annotation) < 0))
        detection, annotation = detection.take(free), annotation.take(free)
    for one, other in zip(detection.tolist(), annotation.tolist(), strict=True):
        if annotation_of[one] < 0 and detection_of[other] < 0:
            annotation_of[one], detection_of[other] = other, one


def optimal(detection: Ints, annotation: Ints, loss: Floats, annotation_of: Ints, detection_of: Ints) -> None:
    """Match as many pairs as possible and, among such matchings, with the least sum of `loss`.

    Pairs (p,) as in `greedy`, in an order that settles ties in stars; `loss` (p,) in [0, 1].

    Raises:
        LimitError: a component's cost table would exceed `LARGEST_TABLE` entries.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if len(detection) == 0:
        return
    detections, row = np.unique(detection, return_inverse=True)
    annotations, column = np.unique(annotation, return_inverse=True)
    size = len(detections) + len(annotations)
    graph = coo_array((np.ones(len(row), dtype=np.int8), (row, len(detections) + column)), shape=(size, size))
    count, component = connected_components(graph)
    rows = np.bincount(component[: len(detections)], minlength=count)
    columns = np.bincount(component[len(detections) :], minlength=count)
    star = np.minimum(rows, columns)[component[row]] == 1
    greedy(detection[star], annotation[star], annotation_of, detection_of)
    rest = np.flatnonzero(~star)
    rest = rest[np.argsort(component[row[rest]], kind="stable")]
    for pairs in np.split(rest, np.flatnonzero(np.diff(component[row[rest]])) + 1):
        if len(pairs):
            chosen = pairs[_least_loss(row[pairs], column[pairs], loss[pairs])]
            annotation_of[detection[chosen]] = annotation[chosen]
            detection_of[annotation[chosen]] = detection[chosen]


def _least_loss(row: Ints, column: Ints, loss: Floats) -> Ints:
    """Which of the pairs of one component an optimal assignment takes."""
    from scipy.optimize import linear_sum_assignment

    rows, row = np.unique(row, return_inverse=True)
    columns, column = np.unique(column, return_inverse=True)
    if len(rows) * len(columns) > LARGEST_TABLE:
        raise LimitError(
            f"optimal assignment: {len(rows)} detections and {len(columns)} annotations compete in one frame; "
            f"a table of {len(rows) * len(columns)} entries exceeds the limit of {LARGEST_TABLE}",
            hint="use greedy assignment, a stricter threshold, or a greater minimum score",
        )
    # Not matching costs 0 and matching loss - size < 0, so one more pair outweighs every difference of losses.
    pair = np.full((len(rows), len(columns)), -1, dtype=np.int64)
    pair[row, column] = np.arange(len(row))
    cost = np.zeros(pair.shape)
    cost[row, column] = loss - (min(pair.shape) + 1)
    chosen = pair[linear_sum_assignment(cost)]
    return chosen[chosen >= 0]
