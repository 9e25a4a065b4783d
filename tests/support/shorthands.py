"""What tests ask of the package in one call, and the package itself never does."""

from __future__ import annotations

from collections.abc import Set

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.intervals.intervals import Measured, alpha_of
from verifier.analysis.intervals.rate_intervals import Event, RateIntervals, lower_end
from verifier.analysis.robust.region import Region, events_of, region_of
from verifier.analysis.robust.solutions import Effort
from verifier.base.arrays import Ints
from verifier.perception.confusion.counting import Count, count_and_observe
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.matching import MatchingPolicy
from verifier.perception.matching.matches import Matches
from verifier.systems.skeleton import Skeleton

PROVEN = Effort(attained=False, certificates=("lower", "upper"))
"""Bounds with their certificates, and nothing else."""


def confidence_region(
    skeleton: Skeleton, measured: Measured, level: float = 0.95, events: Set[Event] | None = None
) -> Region:
    """The simultaneous confidence region of the columns of a chain, for independent items; of its own events alone if
    none are given."""
    own = events_of(skeleton, measured)
    return region_of(skeleton, RateIntervals(measured, own if events is None else events, alpha_of(level)))


def ends_in_billionths(items: Ints, total: Ints, tail: float) -> tuple[Ints, Ints]:
    """Ends of two-sided Clopper-Pearson intervals in billionths, rounded outwards."""
    return lower_end(items, total, tail), UNIT - lower_end(total - items, total, tail)


def count_detections(data: DetectionSet, policy: MatchingPolicy, rule: CountingRule) -> Count:
    """Match and count."""
    return count_and_observe(data, policy, rule)[0]


def of_sequences(counts: ConfusionCounts) -> NDArray[np.int64]:
    """(sequences, thresholds, bins, predicted, true) the counts of each sequence."""
    assert counts.sequences is not None
    tally, size = counts.sequences.tally, len(counts.labels)
    return np.array(
        [tally.of_sequence(number).dense(counts.bins.count, size) for number in range(len(counts.sequences.names))]
    )


def match_count(found: Matches) -> int:
    """Number of matched pairs."""
    return int(np.count_nonzero(found.annotation_of >= 0))
