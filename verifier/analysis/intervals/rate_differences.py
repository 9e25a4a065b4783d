"""Where the rate of a random item is not that of a random encounter, or of a random drive.

They differ where the size of a drive tells something of it: where hard drives are longer, say. Then it matters which
of them is meant (`verifier.perception.confusion.weights`), and a reader is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from verifier.analysis.intervals.rate_intervals import Event
from verifier.analysis.settings import Weights
from verifier.base.arrays import Floats
from verifier.perception.confusion import ConfusionMatrices
from verifier.perception.confusion.counts import Sequences
from verifier.perception.confusion.matrices import label_text
from verifier.perception.confusion.weights import WORTH_SAYING, weighted_rates

_LISTED = 3


@dataclass(frozen=True)
class RateDifference:
    """The rate of one event by item, drive and, where tracks are known, track."""

    event: Event
    rates: Mapping[Weights, float]

    @property
    def spread(self) -> float:
        """By how much they differ at most."""
        return max(self.rates.values()) - min(self.rates.values())


def rate_differences(sequences: Sequences, bins: int, labels: int, events: Set[Event]) -> tuple[RateDifference, ...]:
    """The events whose rates differ by more than `WORTH_SAYING`, the largest difference first.

    Args:
        sequences: each a drive.
    """
    found = weighted_rates(sequences, bins, labels)
    by_weights: dict[Weights, Floats] = {"item": found.item, "drive": found.drive}
    if sequences.tracks is not None:
        # What has no tracks (false positives, each of its own) counts by item.
        by_weights["track"] = np.where(np.isnan(found.track), found.item, found.track)
    all_of_them = [
        RateDifference(
            event,
            {
                weights: float(np.nan_to_num(rates[event.bin, list(event.labels), event.true]).sum())
                for weights, rates in by_weights.items()
            },
        )
        for event in sorted(events)
    ]
    telling = [each for each in all_of_them if each.spread > WORTH_SAYING]
    return tuple(sorted(telling, key=lambda each: -each.spread))


def difference_remark(differences: Sequence[RateDifference], matrices: ConfusionMatrices) -> str | None:
    """The largest differences, for people; None where there are none."""
    if not differences:
        return None
    told = []
    for each in differences[:_LISTED]:
        at, true, labels = each.event
        reported = " or ".join(label_text(matrices.labels[label]) for label in labels)
        rates = ", ".join(f"{rate:.3f} by {weights}" for weights, rate in each.rates.items())
        told.append(f"{label_text(matrices.labels[true])} reported as {reported} in {matrices.bin_text(at)}: {rates}")
    more = f"; and {len(differences) - _LISTED} more" if len(differences) > _LISTED else ""
    return f"rates differ with what is counted (--weights): {'; '.join(told)}{more}"
