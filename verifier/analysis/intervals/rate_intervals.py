"""Simultaneous confidence intervals of all rates that the bounds of a run rest on.

Every event of a run (see `region`) gets a two-sided interval that misses the truth with probability at most
alpha / K0, with K0 the number of events, *whether or not their columns have items*: were only those with items
counted, alpha would depend on the data. So all of them hold at once with probability at least 1 - alpha (Bonferroni).

Which interval, is the tier's business (`tiers`): betting on drives (`betting`), or Clopper and Pearson's (The use of
confidence or fiducial limits illustrated in the case of the binomial, Biometrika 26, 1934): with x of n items in the
event and c = alpha / (2 K0), the lower end l is 0 for x = 0 and solves Pr(Bin(n, l) >= x) = c otherwise; the upper
end is 1 minus the lower end of the complement. With an intraclass correlation of at most R, x and n are effective
numbers (Kish, Survey Sampling, 1965),

    n_eff = N^2 / sum_d n_d (1 + (n_d - 1) R),    x_eff = n_eff x / N,

the items of the event rounded down and those of its complement rounded up: wider, and decided in whole numbers.

Of tier `anytime` it is the set of rates that no bet at odds of K0 / alpha has ruled out (`anytime`).

A shift widens every interval at both ends. Ends are whole billionths, rounded outwards: short fractions that any
checker can compute with.

Intervals of rates that hold at every look, however the data came about.

Assumed is one rate p per column: given all that went before, an item is in the event with probability p. Who stops
counting when, and which items come, may depend on the outcomes. A gambler who bets with Jeffreys' mixture of rates
against p has after S of n items in the event the capital

    M_n(p) = B(S + 1/2, n - S + 1/2) / B(1/2, 1/2) / (p^S (1 - p)^(n - S)),

a martingale with mean 1 at the true rate, so that Pr(M_n(p) >= 1/a at some n) <= a (Ville, Etude critique de la
notion de collectif, 1939; Robbins, Statistical methods related to the law of the iterated logarithm, Annals of
Mathematical Statistics 41, 1970). The interval is {p : M_n(p) < 1/a}. log M is convex in p with its minimum at S/n,
so that each end is found by bisection; it is rounded outwards.

What it needs is more than it seems: where objects differ, an item's rate depends on the outcomes before it, and the
interval is wrong for the mean rate as well (90 tracks of mean length 40 with rates from Beta(1/2, 2): 60 % instead of
95 %).

Where the rate of a random item is not that of a random encounter, or of a random drive.

They differ where the size of a drive tells something of it: where hard drives are longer, say. Then it matters which
of them is meant (`verifier.perception.confusion.sanity`), and a reader is told.
"""

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, xlog1py, xlogy

from verifier.analysis.intervals.drive_items import UNIT, DriveItems, approximate_ends, lower_ends
from verifier.analysis.intervals.intervals import Measured
from verifier.analysis.intervals.tiers import BY_ITEMS, Tier
from verifier.analysis.settings import Weights
from verifier.base.arrays import Floats, Ints
from verifier.base.numbers import fixed
from verifier.base.statistics import binomial_lower_end
from verifier.perception.confusion import ConfusionMatrices
from verifier.perception.confusion.counts import Sequences
from verifier.perception.confusion.matrices import label_text
from verifier.perception.confusion.sanity import WORTH_SAYING, weighted_rates

_OUTWARDS = 1 - 1e-9
"""Covers the relative error of ends from the incomplete beta function and its inverse, or from logarithms."""


class Event(NamedTuple):
    """An item of column (bin, true) is reported with one of these labels (numbers, increasing, never label 0).

    Of an event and its complement, the one without label 0 stands for both.
    """

    bin: int
    true: int
    labels: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class RateIntervals:
    """The intervals of all events of a run.

    Attributes:
        alpha: the chance that some interval misses its rate is at most this.
        tier: "independent_drives", "icc_at_most", "independent_items" or "anytime".
        drives: what each drive holds; None only for the last two of them.
        largest: (bins, true) int64, B in units of `drives`; for betting.
        icc: for "icc_at_most".
        shift: billionths.
        times: as if every drive had been there so many times, for planning: then ends are not decided exactly.
    """

    measured: Measured
    events: Set[Event]
    alpha: Fraction
    tier: Tier = "independent_items"
    drives: DriveItems | None = None
    largest: Ints | None = None
    icc: Fraction | None = None
    shift: int = 0
    times: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1 or self.shift < 0:
            raise ValueError("alpha lies strictly between 0 and 1, and a shift is not negative")
        needs = {"independent_drives": self.largest is not None, "icc_at_most": self.icc is not None}
        if self.tier == "approximate" or not needs.get(self.tier, True):
            raise ValueError(f"no intervals of tier {self.tier} can be made")
        if self.drives is None and self.tier not in BY_ITEMS:
            raise ValueError("the drives are not known")

    @property
    def tail(self) -> Fraction:
        """The chance with which each end may be missed."""
        return self.alpha / (2 * max(len(self.events), 1))

    @cached_property
    def ends(self) -> Mapping[Event, tuple[int, int]]:
        """Lower and upper end of every event, in billionths."""
        order = sorted(self.events)
        if not order:
            return {}
        low, rest = self._lower_ends(order)
        lower = np.maximum(low - self.shift, 0)
        upper = np.minimum(UNIT - rest + self.shift, UNIT)
        return dict(zip(order, zip(lower.tolist(), upper.tolist(), strict=True), strict=True))

    def _lower_ends(self, order: Sequence[Event]) -> tuple[Ints, Ints]:
        """The lower ends of the events and of their complements."""
        hits, total = held_in_events(self.measured.counts[None] if self.drives is None else self.drives.table, order)
        if self.tier == "anytime":
            return anytime_ends(hits[0], total[0], 2 * float(self.tail), self.times or 1.0)
        if self.tier != "independent_drives":
            return _of_effective_items(hits, total, self.icc or Fraction(0), float(self.tail), self.times)
        at = tuple(np.array([(row.bin, row.true) for row in order]).T)
        largest = np.zeros(len(order), dtype=np.int64) if self.largest is None else self.largest[at]
        sides = np.concatenate([hits, total - hits], axis=1)
        both = np.concatenate([total, total], axis=1), np.concatenate([largest, largest])
        if self.times is None:
            ends = lower_ends(sides, *both, self.tail)
        else:
            ends = np.floor(approximate_ends(sides, *both, self.tail, self.times) * UNIT).astype(np.int64)
        return ends[: len(order)], ends[len(order) :]


def held_in_events(table: Ints, order: Sequence[Event]) -> tuple[Ints, Ints]:
    """(drives, events) items in each event and of its column, from (drives, bins, predicted, true)."""
    hits = np.stack([table[:, row.bin, list(row.labels), row.true].sum(axis=1) for row in order], axis=1)
    column = np.array([(row.bin, row.true) for row in order])
    total = table[:, column[:, 0], :, column[:, 1]].sum(axis=-1).T
    return hits, total


def _of_effective_items(
    hits: Ints, total: Ints, icc: Fraction, tail: float, times: float | None
) -> tuple[Ints, Ints]:
    """The lower ends of the events and of their complements, from (drives, events) items."""
    factor = 1 if times is None else Fraction(times)
    columns = zip(hits.T.tolist(), total.T.tolist(), strict=True)
    pairs = [effective_items(mine, sizes, icc, factor) for mine, sizes in columns]
    ends = []
    of_event, of_rest = zip(*pairs, strict=True)
    for event, rest in ((of_event, of_rest), (of_rest, of_event)):
        seen = np.array([math.floor(bound) for bound in event], dtype=np.int64)
        others = np.array([math.ceil(bound) for bound in rest], dtype=np.int64)
        ends.append(lower_end(seen, seen + others, tail))
    return ends[0], ends[1]


def effective_items(
    hits: Sequence[int], sizes: Sequence[int], icc: Fraction, times: Fraction | int = 1
) -> tuple[Fraction, Fraction]:
    """The effective numbers of items in an event and in its complement, from those of each drive."""
    total, seen = sum(sizes), sum(hits)
    if not total:
        return Fraction(0), Fraction(0)
    spread = sum((size * (1 + (size - 1) * icc) for size in sizes if size), Fraction(0)) if icc else Fraction(total)
    effective = Fraction(total**2) / spread * times
    return effective * seen / total, effective * (total - seen) / total


def lower_end(items: Ints, total: Ints, tail: float) -> Ints:
    """Lower ends of two-sided Clopper-Pearson intervals in billionths, rounded outwards.

    Args:
        items, total: x of n items, arrays that broadcast against each other, 0 <= x <= n.
        tail: the probability c that each end may be missed with, above 0 and below 1/2.
    """
    return np.floor(binomial_lower_end(items, total, tail) * UNIT * _OUTWARDS).astype(np.int64)


_HALVINGS = 60


def anytime_ends(hits: Ints, items: Ints, alpha: float, times: float = 1.0) -> tuple[Ints, Ints]:
    """(c,) lower ends in billionths of c rates, and of the rates of their complements.

    Args:
        hits, items: (c,) S of n items.
        alpha: probability with which an interval may miss its rate at some look.
        times: as if all had been seen so many times; for planning.
    """
    seen: Floats = (hits * times).astype(np.float64)
    total: Floats = (items * times).astype(np.float64)
    return _lower(seen, total, alpha), _lower(total - seen, total, alpha)


def _lower(hits: Floats, items: Floats, alpha: float) -> Ints:
    """Lower ends in billionths; 0 where nothing is in the event."""
    wins = betaln(hits + 0.5, items - hits + 0.5) - betaln(0.5, 0.5) + np.log(alpha)
    low, high = np.zeros(len(hits)), np.divide(hits, items, out=np.zeros(len(hits)), where=items > 0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        ruled_out = wins >= xlogy(hits, middle) + xlog1py(items - hits, -middle)
        low, high = np.where(ruled_out, middle, low), np.where(ruled_out, high, middle)
    return np.floor(low * UNIT * _OUTWARDS).astype(np.int64)


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
    rates = weighted_rates(sequences, bins, labels)
    by_weights: dict[Weights, Floats] = {"item": rates.item, "drive": rates.drive}
    if sequences.tracks is not None:
        # What has no tracks (false positives, each of its own) counts by item.
        by_weights["track"] = np.where(np.isnan(rates.track), rates.item, rates.track)
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
    telling = [difference for difference in all_of_them if difference.spread > WORTH_SAYING]
    return tuple(sorted(telling, key=lambda difference: -difference.spread))


def difference_remark(differences: Sequence[RateDifference], matrices: ConfusionMatrices) -> str | None:
    """The largest differences, for people; None where there are none."""
    if not differences:
        return None
    told = []
    for difference in differences[:_LISTED]:
        at, true, labels = difference.event
        reported = " or ".join(label_text(matrices.labels[label]) for label in labels)
        rates = ", ".join(f"{fixed(rate, 3)} by {weights}" for weights, rate in difference.rates.items())
        told.append(f"{label_text(matrices.labels[true])} reported as {reported} in {matrices.bin_text(at)}: {rates}")
    more = f"; and {len(differences) - _LISTED} more" if len(differences) > _LISTED else ""
    return f"rates differ with what is counted (--weights): {'; '.join(told)}{more}"
