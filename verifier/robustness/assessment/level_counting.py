"""How the confusion matrices of a level are counted, and what can be seen of that before there are detections."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from verifier.base.errors import InputError, UsageError
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.job import count_job, default_measure
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.distances import distance
from verifier.perception.matching import MatchingPolicy
from verifier.robustness.assessment.level_recipe import Counting


def measure_of(counting: Counting | None, data: DetectionSet) -> str:
    """The measure of distance; UsageError where no annotation has a distance by it."""
    measure = (None if counting is None else counting.measure) or default_measure(data)
    if counting is not None and len(data.annotations) and np.isnan(distance(data.annotations, measure)).all():
        raise UsageError(
            f"counting: the annotations have no distance by the measure '{measure}'\n"
            "  hint: name distance_field, or annotations with boxes in space"
        )
    return measure


def matrices_of(data: DetectionSet, counting: Counting, policy: MatchingPolicy, title: str) -> ConfusionCounts:
    """The matrices of detections that count; matched without regard to classes, so that a confusion of them shows.

    Raises:
        InputError, UsageError: distances that are not known, objects in no bin, classes without a column.
    """
    measure = measure_of(counting, data)
    if (
        counting.unmatched != "drop"
    ):  # a false positive lies where the localizer says, an object where it is annotated
        away = distance(data.annotations, measure)
        data = data.change(
            annotations=replace(data.annotations, distance_m=away),
            origin={**data.origin, "distances": {"annotations": measure, "detections": "depth of the image"}},
        )
        measure = "given"
    rule = CountingRule(
        counting.labelling,
        counting.classes or data.classes,
        Bins(counting.edges_m),
        measure,
        counting.unmatched,
        counting.unmatched,
        counting.outside,
    )
    return count_job(data, replace(policy, class_aware=False), rule, title)[0]


def check_counting(truth: DetectionSet, counting: Counting, policy: MatchingPolicy) -> None:
    """Refuse, before an image is made, what counting the annotations alone refuses.

    Raises:
        InputError, UsageError: as `matrices_of`.
    """
    try:
        matrices_of(truth, counting, policy, "")
    except UsageError as error:
        raise UsageError(str(error) if str(error).startswith("counting: ") else f"counting: {error}") from None
    except InputError as error:
        if error.hint is not None and "--outside" in error.hint:
            raise InputError(error.message, error.place, 'give other edges_m, or outside = "drop"') from None
        raise
