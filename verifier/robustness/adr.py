"""Average detection rate (ADR): how much a detector finds, at sensitivities fixed before the image degraded.

Pezzementi et al. 2018 ("Putting Image Manipulations in Context", section II-A). A system is deployed with a
sensitivity that was chosen under known conditions, and meets others. So:

1. On the baseline, the images as they were taken, a score threshold is picked for each of some levels of false
   positives per image, from 1e-3 to 1e-1: the loosest with at most so many.
2. On any other images the same thresholds are kept, whatever they do to the false positives there.
3. ADR is the mean over the thresholds of the detection rate, the share of the annotated objects that are found. The
   normalised ADR is ADR / ADR of the baseline: 1 is no loss.

Easily confused with the log-average miss rate (Dollár et al. 2012): that picks new thresholds on each data set,
averages logarithms, and so hides a shift of the scores. The paper gives neither number nor spacing of its levels;
nine levels, evenly spaced in the logarithm, are the convention of the Caltech benchmark.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from verifier.base.arrays import Floats
from verifier.base.errors import InputError, UsageError
from verifier.closedloop.logs import IOU_HALF, Standardizer
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.matching import MatchingPolicy
from verifier.robustness.detection_metrics import Judged, judged

LEVELS = tuple(float(level) for level in np.logspace(-3, -1, 9))
"""False positives per image, 1e-3 to 1e-1."""


@dataclass(frozen=True)
class AdrSettings:
    """How ADR is computed.

    Attributes:
        levels: false positives per image on the baseline, increasing.
        policy: what a found object is; the surest detection chooses first. Where it is class-aware a detection finds
            only objects of its class. Objects of all classes count together: restrict the data to one where one is
            meant.

    Raises:
        UsageError: the levels are not positive and increasing, or the policy has another order.
    """

    levels: tuple[float, ...] = LEVELS
    policy: MatchingPolicy = IOU_HALF

    def __post_init__(self) -> None:
        levels = self.levels
        increasing = all(low < high for low, high in pairwise(levels))
        if not levels or not increasing or not levels[0] > 0 or not math.isfinite(levels[-1]):
            raise UsageError(f"expected increasing, positive levels of false positives per image, got {levels}")
        policy = self.policy
        if policy.assignment != "greedy" or policy.order != "score" or policy.same_class_first:
            raise UsageError(
                "a detection rate over thresholds needs a matching in which the detection with the highest score "
                "chooses first: assignment 'greedy' and order 'score'"
            )


USUAL = AdrSettings()


@dataclass(frozen=True)
class Thresholds:
    """Score thresholds, picked on a baseline.

    A level below 1 / images cannot be told from "no false positive at all": its threshold is the surest false
    positive. Where even all detections together stay within a level, its threshold is -inf and lets all through.

    Attributes:
        levels: (k) false positives per image asked for.
        scores: (k) a detection takes part when its score is **greater**.
        false_positives: (k) of the baseline at each threshold.
        images: of the baseline.
    """

    levels: tuple[float, ...]
    scores: tuple[float, ...]
    false_positives: tuple[int, ...]
    images: int

    @property
    def at_least(self) -> tuple[float, ...]:
        """(k) the same for whoever keeps the scores **at least** so great, as `filters.keep_scores` does."""
        return tuple(math.nextafter(score, math.inf) for score in self.scores)

    @property
    def unresolved(self) -> tuple[float, ...]:
        """The levels that the baseline has too few images for: they all have the threshold of no false positive."""
        return tuple(level for level in self.levels if level * self.images < 1)

    @property
    def all_pass(self) -> tuple[float, ...]:
        """The levels at which every detection takes part: the detector has no more false positives than that."""
        pairs = zip(self.levels, self.scores, strict=True)
        return tuple(level for level, score in pairs if score == -math.inf)


@dataclass(frozen=True)
class DetectionRates:
    """What a detector finds at fixed thresholds, under one condition.

    Attributes:
        thresholds: where a detection begins to count.
        objects: annotated objects that can be judged.
        images: number of images.
        hits: (k) objects found at each threshold.
        false_positives: (k) detections that explain no object, at each threshold.
    """

    thresholds: Thresholds
    objects: int
    images: int
    hits: tuple[int, ...]
    false_positives: tuple[int, ...]

    @classmethod
    def of(cls, judged: Judged, thresholds: Thresholds) -> DetectionRates:
        """From what matching says of a data set."""
        counts = (_above(scores, thresholds.scores) for scores in (judged.hit, judged.false))
        return cls(thresholds, len(judged.hit), judged.images, *counts)

    @property
    def rates(self) -> tuple[float, ...]:
        """(k) share of the objects that are found."""
        return tuple(count / self.objects for count in self.hits)

    @property
    def false_positive_rates(self) -> tuple[float, ...]:
        """(k) false positives per image: what has become of the levels."""
        return tuple(false / self.images for false in self.false_positives)

    @property
    def adr(self) -> float:
        """Average detection rate, in [0, 1]."""
        return sum(self.hits) / (self.objects * len(self.hits))

    def normalised(self, baseline: DetectionRates) -> float:
        """ADR / ADR of the baseline.

        Raises:
            InputError: the baseline finds nothing.
            ValueError: the two were not computed with the same thresholds.
        """
        if self.thresholds != baseline.thresholds:
            raise ValueError("detection rates at different thresholds cannot be compared")
        if not any(baseline.hits):
            raise InputError(
                "the detector finds nothing in the baseline, so that nothing can be compared with it",
                hint="allow more false positives per image, or use more images",
            )
        return self.adr / baseline.adr


def pick_thresholds(baseline: DetectionSet, settings: AdrSettings = USUAL) -> Thresholds:
    """The thresholds for the levels, from the images as they were taken.

    Raises:
        InputError: there are no images.
        UsageError: the policy compares boxes that the data does not have.
    """
    judgement = judged(baseline, settings.policy)
    if not judgement.images:
        raise InputError("no images, so that no false positives per image")
    table = Standardizer.from_validation(judgement.false, judgement.images)
    scores = tuple(table.raw_threshold(level) for level in settings.levels)
    return Thresholds(settings.levels, scores, _above(judgement.false, scores), judgement.images)


def detection_rates(data: DetectionSet, thresholds: Thresholds, settings: AdrSettings = USUAL) -> DetectionRates:
    """What is found at these thresholds.

    Raises:
        InputError: there is no object that can be judged.
        UsageError: the policy compares boxes that the data does not have.
    """
    judgement = judged(data, settings.policy)
    if not len(judgement.hit):
        raise InputError("no annotated object that can be judged, so that no detection rate")
    return DetectionRates.of(judgement, thresholds)


def _above(scores: Floats, thresholds: tuple[float, ...]) -> tuple[int, ...]:
    """How many scores are greater than each threshold; -inf, the score of an object not found, never is."""
    rising = np.sort(scores)
    below = np.searchsorted(rising, np.array(thresholds), side="right")
    return tuple((len(rising) - below).tolist())
