"""ADR, detection metrics and curves on other images of the same kind: a paired bootstrap over images or drives.

Units (images, or whole sequences, whose images resemble each other) are drawn with replacement, as many as there are
(Efron 1979; Davison and Hinkley 1997, section 2.4). Draws are weights, how often each has each unit: matching is done
once, and several data sets of the same images, as taken and degraded, are drawn alike, so that a difference compares
the same images. Thresholds of ADR are picked again on each drawn baseline, because they too depend on which images
were taken; a level that a handful of false positives decides says little, and `Thresholds` tells. All else that was
fixed before stays: the operating point of the detector, and the sensitivities of a trade-off curve. Intervals are
percentile intervals, no closer than so few units with objects allow (`verifier.base.statistics.reaching`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints
from verifier.base.errors import UsageError
from verifier.base.statistics import drawn_with_replacement, percentile_ends, reaching, reaching_ratio
from verifier.closedloop.curves import areas, worst_case
from verifier.perception.confusion.average_precision import drawn_class
from verifier.perception.confusion.drives import GroupedBy
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.matching import MatchingPolicy
from verifier.robustness.adr import USUAL, AdrSettings, DetectionRates, Thresholds, pick_thresholds
from verifier.robustness.detection_metrics import (
    COCO_MOST,
    COCO_SIZES,
    Judged,
    coco_evaluation,
    judged,
    right_detections,
)

ADR = "ADR"
"""What the average detection rate is called among the metrics."""
CONFIDENCE = 0.95
DRAWS = 500
"""Of which 12 lie beyond each end of an interval at that confidence."""


def drawn_shares(
    data: DetectionSet, policy: MatchingPolicy, lowest_score: float | None, weights: Ints
) -> dict[str, Floats]:
    """Precision and recall, as `detection_metrics.count_hits` counts, in every draw; NaN where not defined.

    Args:
        data: annotations and detections.
        policy: how they are matched.
        lowest_score: detections below do not take part; None: all do.
        weights: (draws, images) how often each draw has each image.

    Raises:
        UsageError: the policy compares boxes that the data does not have.
    """
    data, matches, right = right_detections(data, policy, lowest_score)
    judged = right | ~matches.ignored
    hits, reports, objects = (
        weights @ np.bincount(frames, minlength=data.frame_count)
        for frames in (data.detections.frame[right], data.detections.frame[judged], data.annotations.frame)
    )
    with np.errstate(invalid="ignore"):
        return {"precision": hits / reports, "recall": hits / objects}


def drawn_coco(data: DetectionSet, names: Sequence[str], weights: Ints) -> dict[str, Floats]:
    """COCO's metrics by their names of `detection_metrics.TABLE_6` in every draw; NaN where no object is drawn.

    Raises:
        InputError, UsageError: as `detection_metrics.coco_metrics`.
    """
    evaluation = coco_evaluation(data)
    return {name: _drawn_metric(evaluation, name, len(data.classes), weights) for name in names}


def _drawn_metric(evaluation: Any, name: str, classes: int, weights: Ints) -> Floats:
    """The mean over classes and IoU thresholds, in every draw."""
    kind, which = name[:2], name[2:]
    area = next((at for at, size in enumerate(COCO_SIZES) if which == f"_{size[0].upper()}"), 0)
    most = int(which) if kind == "AR" and which.isdigit() else COCO_MOST[-1]
    ious = [round(iou * 100) for iou in evaluation.params.iouThrs.tolist()]
    one = kind == "AP" and which.startswith("0")
    rows = [ious.index(round(100 * float(which)))] if one else list(range(len(ious)))
    frames = len(evaluation.params.imgIds)
    total, known = np.zeros(len(weights)), np.zeros(len(weights))
    for label in range(classes):
        start = (label * len(COCO_SIZES) + area) * frames
        images = [image for image in evaluation.evalImgs[start : start + frames] if image is not None]
        value = drawn_class(images, rows, most, weights, precise=kind == "AP")
        there = ~np.isnan(value)
        total[there] += value[there]
        known += there
    with np.errstate(invalid="ignore"):
        mean: Floats = total / known
    return mean


BLOCK_ENTRIES = 4_000_000
"""Numbers of a table held at a time: 32 MB."""
FEWEST_UNITS = 2
"""Drawing from fewer says nothing."""


@dataclass(frozen=True)
class AdrInterval:
    """Percentile intervals (low, high) of ADR and of normalised ADR.

    Attributes:
        adr, normalised: NaN where no draw has a value.
        undefined: draws without a normalised ADR, for nothing is to be found, or nothing is found in the baseline.
            They are left out.
    """

    adr: tuple[float, float]
    normalised: tuple[float, float]
    undefined: int


def adr_intervals(
    baseline: DetectionSet,
    conditions: Mapping[str, DetectionSet],
    rng: np.random.Generator,
    settings: AdrSettings = USUAL,
    *,
    draws: int = 1000,
    confidence: float = 0.95,
    unit: GroupedBy = "frame",
) -> dict[str, AdrInterval]:
    """An interval for each condition, and for "baseline".

    Every data set has the same frames in the same order: frame i of a condition is the mutated frame i.

    Raises:
        UsageError: the frames differ, or there are too few units; see also `judged`.
    """
    for name, data in conditions.items():
        if data.frame_name != baseline.frame_name or (data.frame_sequence != baseline.frame_sequence).any():
            raise UsageError(f"condition '{name}' has other frames than the baseline")
    units = baseline.frame_sequence if unit == "sequence" else np.arange(baseline.frame_count)
    _, unit_of, frames = np.unique(units, return_inverse=True, return_counts=True)
    if len(frames) < FEWEST_UNITS:
        raise UsageError(f"a bootstrap needs at least {FEWEST_UNITS} {unit}s, got {len(frames)}")
    reference = judged(baseline, settings.policy)
    all_found = {"baseline": reference} | {
        name: judged(condition, settings.policy) for name, condition in conditions.items()
    }
    largest = max(max(len(judged.hit), len(judged.false), len(frames)) for judged in all_found.values())
    blocks = (drawn_with_replacement(len(frames), part.stop - part.start, rng) for part in _parts(draws, largest))
    drawn = _drawn(reference, all_found, unit_of, frames, blocks, settings.levels)
    picked = pick_thresholds(baseline, settings)
    start = _own_adr(reference, picked)
    return {
        name: _interval(
            (drawn[name], drawn["baseline"]),
            (_own_adr(judged, picked), start),
            np.bincount(unit_of[judged.hit_frame]),
            confidence,
            is_baseline=name == "baseline",
        )
        for name, judged in all_found.items()
    }


def _own_adr(judged: Judged, thresholds: Thresholds) -> float:
    return DetectionRates.of(judged, thresholds).adr if len(judged.hit) else np.nan


def drawn_adr(baseline: DetectionSet, data: DetectionSet, weights: Ints, settings: AdrSettings = USUAL) -> Floats:
    """(B,) ADR of `data` in every draw, at thresholds picked again on the drawn baseline; NaN without objects.

    Args:
        baseline, data: of the same frames in the same order.
        weights: (B, frames) how often each draw has each frame.

    Raises:
        ValueError: another number of frames than weights.
        UsageError: as `judged`.
    """
    reference, judgement = judged(baseline, settings.policy), judged(data, settings.policy)
    if not reference.images == judgement.images == weights.shape[1]:
        raise ValueError(f"{weights.shape[1]} weights, {reference.images} and {judgement.images} frames")
    units, frames = np.arange(judgement.images), np.ones(judgement.images, np.int64)
    blocks = (weights[part] for part in _parts(len(weights), max(len(reference.false), len(judgement.hit))))
    return _drawn(reference, {"data": judgement}, units, frames, blocks, settings.levels)["data"]


def _parts(draws: int, entries: int) -> Iterator[slice]:
    """So many draws at a time that tables of so many entries a draw are held."""
    step = max(1, BLOCK_ENTRIES // max(entries, 1))
    for begin in range(0, draws, step):
        yield slice(begin, min(begin + step, draws))


def _drawn(
    reference: Judged,
    conditions: Mapping[str, Judged],
    unit_of: Ints,
    frames: Ints,
    blocks: Iterable[Ints],
    levels: tuple[float, ...],
) -> dict[str, Floats]:
    """(B,) ADR of each condition in every draw, at thresholds picked on the drawn reference.

    Args:
        reference: the baseline.
        unit_of: (frames,) the unit of each frame.
        frames: (units,) how many frames each unit has.
        blocks: (b, units) how often each draw has each unit, a part of the B draws at a time.
        levels: false positives per image.
    """
    parts: list[dict[str, Floats]] = []
    for weight in blocks:
        score = _thresholds(reference, unit_of, weight, weight @ frames, np.array(levels))
        parts.append({name: _adr(condition, unit_of, weight, score) for name, condition in conditions.items()})
    return {name: np.concatenate([part[name] for part in parts]) for name in conditions}


def _thresholds(judged: Judged, unit_of: Ints, weight: Ints, images: Ints, levels: Floats) -> Floats:
    """(B, k) the score to exceed: that of the first false positive too many, -inf where there is none."""
    order = np.argsort(-judged.false, kind="stable")
    score = np.append(judged.false[order], -np.inf)
    counted = np.cumsum(weight[:, unit_of[judged.false_frame[order]]], axis=1)
    rate = counted / images[:, np.newaxis]
    # How many stand before the rate exceeds the level, in every draw: rows differ, so one search per level.
    first = [np.count_nonzero(rate <= level, axis=1) for level in levels.tolist()]
    return np.asarray(score[np.stack(first, axis=1)])


def _adr(judged: Judged, unit_of: Ints, weight: Ints, threshold: Floats) -> Floats:
    """(B,) ADR; NaN where nothing is to be found."""
    order = np.argsort(-judged.hit, kind="stable")
    falling = judged.hit[order]
    share = weight[:, unit_of[judged.hit_frame[order]]]
    counted = np.hstack([np.zeros((len(weight), 1), dtype=np.int64), np.cumsum(share, axis=1)])
    above = np.searchsorted(-falling, -threshold, side="left")
    hits = np.take_along_axis(counted, above, axis=1).sum(axis=1)
    with np.errstate(invalid="ignore"):
        rate: Floats = hits / (counted[:, -1] * threshold.shape[1])
    return rate


def _interval(
    drawn: tuple[Floats, Floats], value: tuple[float, float], units: Ints, confidence: float, *, is_baseline: bool
) -> AdrInterval:
    """From draws and values of a condition and the baseline, and the objects of each unit."""
    adr, baseline = drawn
    with np.errstate(divide="ignore", invalid="ignore"):
        normalised: NDArray[np.float64] = np.where(baseline > 0, adr / baseline, np.nan)
    undefined = int(np.count_nonzero(np.isnan(normalised)))
    own, share = percentile_ends(adr, confidence), percentile_ends(normalised, confidence)
    if not is_baseline and value[1] > 0:  # the baseline's is 1 by definition
        share = reaching_ratio(share, *value, units, confidence=confidence) or share
    return AdrInterval(reaching(own, value[0], units, confidence=confidence) or own, share, undefined)


def weights_of(images: int, seed: int) -> Ints | None:
    """(draws, images) how often each draw has each image; None for too few images."""
    if images < FEWEST_UNITS:
        return None
    return drawn_with_replacement(images, DRAWS, np.random.default_rng([seed, 4]))


def drawn_metrics(
    data: DetectionSet,
    source: DetectionSet,
    names: Sequence[str],
    policy: MatchingPolicy,
    lowest_score: float | None,
    adr_levels: tuple[float, ...],
    weights: Ints,
) -> dict[str, Floats]:
    """The metrics in every draw, by name; NaN where one is not defined.

    Raises:
        UsageError: boxes that the data do not have, or a library that is missing.
    """
    if not len(data.annotations):
        return {}
    shares = drawn_shares(data, policy, lowest_score, weights)
    drawn = {name: shares[name] for name in names if name in shares}
    if ADR in names:
        drawn[ADR] = drawn_adr(source, data, weights, AdrSettings(adr_levels, policy))
    return drawn | drawn_coco(data, [name for name in names if name not in (*shares, ADR)], weights)


def share_interval(
    sensitivities: tuple[Floats, Floats],
    baseline: tuple[Floats, Floats],
    level: tuple[Floats, Floats],
    value: tuple[float, float],
    objects: Ints,
) -> tuple[float, float] | None:
    """Of RobROC of two curves by the area of the first one, in equal draws; None where no draw has an area.

    Args:
        value: both areas, of the images themselves.
    """
    whole = areas(*baseline)
    _, safety, efficiency = worst_case(sensitivities, [baseline[0], level[0]], [baseline[1], level[1]])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(whole > 0, areas(safety, efficiency) / whole, np.nan)
    return reaching_ratio(percentile_ends(shares, CONFIDENCE), *value, int(np.count_nonzero(objects)), 1.0)
