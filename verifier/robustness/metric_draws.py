"""What detection metrics would have been on other images: a bootstrap over images, for differences of data sets.

Images are drawn with replacement, as many as there are (Efron 1979; Davison and Hinkley 1997, section 2.4). What is
drawn is given as weights, how often each draw has each image, so that several data sets of the same images, as taken
and degraded, can be drawn alike: a difference between them then compares the same images. Matching is done once;
weights change what is counted, never what is matched.

Images of one drive resemble each other. Drawn one by one they make intervals that are too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints
from verifier.base.statistics import drawn_with_replacement
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.matching import MatchingPolicy
from verifier.robustness.detection_metrics import COCO_MOST, COCO_SIZES, TABLE_6, coco_evaluation, right_detections

BLOCK_ENTRIES = 2_000_000
"""Numbers of a table held at a time: 16 MB."""
RECALLS = np.linspace(0.0, 1.0, 101)
"""Where precision is interpolated."""


def image_weights(images: int, draws: int, rng: np.random.Generator) -> Ints:
    """(draws, images) how often each draw has each image; ValueError without images or draws."""
    if images < 1 or draws < 1:
        raise ValueError(f"expected images and draws, got {images} and {draws}")
    return drawn_with_replacement(images, draws, rng)


def drawn_shares(
    data: DetectionSet, policy: MatchingPolicy, lowest_score: float | None, weights: Ints
) -> dict[str, Floats]:
    """Precision and recall, as `detection_metrics.count_hits` counts, in every draw; NaN where not defined.

    Args:
        data: annotations and detections.
        policy: how they are matched.
        lowest_score: detections below do not take part; None: all do.
        weights: (draws, images) from `image_weights`.

    Raises:
        UsageError: the policy compares boxes that the data does not have.
    """
    data, matches, right = right_detections(data, policy, lowest_score)
    judged = right | ~matches.ignored
    hits, reports, objects = (
        weights @ np.bincount(frames, minlength=data.frame_count)
        for frames in (
            data.detections.frame[right],
            data.detections.frame[judged],
            data.annotations.frame,
        )
    )
    with np.errstate(invalid="ignore"):
        return {"precision": hits / reports, "recall": hits / objects}


def drawn_coco(data: DetectionSet, names: Sequence[str], weights: Ints) -> dict[str, Floats]:
    """COCO's metrics by their names of `detection_metrics.TABLE_6` in every draw; NaN where no object is drawn.

    Raises:
        InputError, UsageError: as `detection_metrics.coco_metrics`.
    """
    evaluation = coco_evaluation(data)
    return {name: _drawn_metric(evaluation, TABLE_6[name], len(data.classes), weights) for name in names}


def _drawn_metric(evaluation: Any, name: str, classes: int, weights: Ints) -> Floats:
    """The mean over classes and IoU thresholds, in every draw."""
    kind, _, which = name.partition("_")
    area = COCO_SIZES.index(which) if which in COCO_SIZES else 0
    most = int(which) if kind == "ar" and which.isdigit() else COCO_MOST[-1]
    ious = [round(iou * 100) for iou in evaluation.params.iouThrs.tolist()]
    rows = [ious.index(int(which))] if kind == "ap" and which.isdigit() else list(range(len(ious)))
    frames = len(evaluation.params.imgIds)
    total, known = np.zeros(len(weights)), np.zeros(len(weights))
    for label in range(classes):
        start = (label * len(COCO_SIZES) + area) * frames
        found = [each for each in evaluation.evalImgs[start : start + frames] if each is not None]
        value = _drawn_class(found, rows, most, weights, precise=kind == "ap")
        there = ~np.isnan(value)
        total[there] += value[there]
        known += there
    with np.errstate(invalid="ignore"):
        mean: Floats = total / known
    return mean


def _drawn_class(found: list[Any], rows: list[int], most: int, weights: Ints, *, precise: bool) -> Floats:
    """(draws,) average precision, or recall, of a class over the IoU thresholds in `rows`; NaN without an object."""
    wanted = np.zeros(weights.shape[1], np.int64)
    for each in found:
        wanted[each["image_id"]] = np.count_nonzero(~np.asarray(each["gtIgnore"], np.bool_))
    objects = weights @ wanted
    scores = [np.asarray(each["dtScores"], np.float64)[:most] for each in found]
    order = np.argsort(-np.concatenate([np.zeros(0), *scores]), kind="mergesort")
    image = np.repeat([each["image_id"] for each in found], [len(each) for each in scores]).astype(np.int64)[order]
    value = np.zeros(len(weights))
    for row in rows if len(order) else ():
        matched, ignored = (
            np.concatenate([np.asarray(each[key])[row, :most] for each in found]).astype(np.bool_)[order]
            for key in ("dtMatches", "dtIgnore")
        )
        kept = np.flatnonzero(~ignored)
        if not precise:
            hits = weights @ np.bincount(image[kept][matched[kept]], minlength=weights.shape[1])
            value += hits / np.maximum(objects, 1) / len(rows)
            continue
        step = max(1, BLOCK_ENTRIES // max(len(kept), 1))
        for begin in range(0, len(weights), step):
            part = slice(begin, begin + step)
            value[part] += _precision(weights[part][:, image[kept]], matched[kept], objects[part]) / len(rows)
    return np.where(objects > 0, value, np.nan)


def _precision(weight: Ints, hit: NDArray[np.bool_], objects: Ints) -> Floats:
    """(draws,) precision interpolated at 101 recalls; `weight` (draws, detections), the surest detection first."""
    if not weight.shape[1]:
        return np.zeros(len(weight))
    hits = np.cumsum(weight * hit, axis=1)
    everything = np.cumsum(weight, axis=1)
    precision = np.divide(hits, everything, out=np.zeros(hits.shape), where=everything > 0)
    best = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    # At so many hits recall reaches each of pycocotools' thresholds, which are not quite j/100: as it compares them.
    # Then one search in all draws at once, in whole numbers that keep the draws apart.
    total = np.maximum(objects, 1)[:, np.newaxis]
    needed = np.ceil(RECALLS * total).astype(np.int64)
    needed -= (needed > 0) & ((needed - 1) / total >= RECALLS)
    needed += needed / total < RECALLS
    apart = np.arange(len(weight))[:, np.newaxis] * (2 + max(int(objects.max()), int(hits[:, -1].max())))
    place = np.searchsorted((hits + apart).ravel(), (needed + apart).ravel()).reshape(needed.shape)
    place -= np.arange(len(weight))[:, np.newaxis] * hits.shape[1]
    reached = place < hits.shape[1]
    found: Floats = np.where(reached, np.take_along_axis(best, np.minimum(place, hits.shape[1] - 1), axis=1), 0.0)
    mean: Floats = found.mean(axis=1)
    return mean
