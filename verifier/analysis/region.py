"""The matrices that the data cannot rule out: a simultaneous confidence region of the columns that matter.

*Reports.* Labels that the planner cannot tell apart are one report, so a column matters through the chances of its
reports only. A column of the chain therefore is a point of a simplex with one coordinate per group of labels.

*Events.* That an item of a column is reported within a group is an event; an event and its complement are one. A
column with two groups has one event, with g > 2 groups it has g, with a single group none. Columns held fixed by
convention and columns without items have none either: the former are points, the latter the whole simplex.

*Region.* Every event gets the two-sided interval of Clopper and Pearson (The use of confidence or fiducial limits
illustrated in the case of the binomial, Biometrika 26, 1934) at level 1 - alpha/K, where K is the number of events
of the whole run (Bonferroni): with x of n items in the event and c = alpha/(2K), the lower end l is 0 for x = 0 and
solves Pr(Bin(n, l) >= x) = c otherwise; the upper end is 1 minus the lower end of the complement. Each interval
misses the truth with probability at most 2c = alpha/K, whatever the truth is, so all of them hold at once with
probability at least 1 - alpha, and the true matrices then lie in

    { mu : lower <= mu <= upper, each column of mu sums to 1 },

a product of polytopes, one for each column. One set of events serves every chain of a run: then all bounds of the
run hold at once. The items of a column are taken as independent draws from it; items that depend on each other
(frames of one drive) carry less information than this counts.

Ends are whole numbers of billionths, rounded outwards: short fractions that any checker can compute with.
"""

from __future__ import annotations

import math
from collections.abc import Set
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv

from verifier.analysis.adjoint import told_by
from verifier.analysis.intervals import check_level
from verifier.analysis.measured import Measured
from verifier.confusion.matrices import Label
from verifier.systems.channel import Channel
from verifier.systems.skeleton import Skeleton

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

UNIT = 10**9
"""Ends of intervals are whole numbers of 1/UNIT."""
_OUTWARDS = 1 - 1e-9
"""Covers the relative error of ends from the incomplete beta function and its inverse."""
_TOLERANCE = 1e-6
_HALVINGS = 100


class Event(NamedTuple):
    """An item of column (bin, true) is reported with one of these labels (numbers, increasing, never label 0).

    Of an event and its complement, the one without label 0 stands for both.
    """

    bin: int
    true: int
    labels: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Evidence:
    """The data behind a region.

    Attributes:
        alpha: the chance that some event's interval misses the truth is at most this.
        events: K, among how many events alpha is divided.
        items: (bins, groups, true) int64, items of each column by group.
        fixed: (bins, true) bool, columns held by convention.
    """

    alpha: Fraction
    events: int
    items: Ints
    fixed: Mask

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1 or self.events < 0 or np.any(self.items < 0):
            raise ValueError("alpha lies strictly between 0 and 1, events and items are counts")
        if self.fixed.shape != (len(self.items), self.items.shape[2]):
            raise ValueError("items and fixed columns must fit together")


@dataclass(frozen=True, eq=False)
class Region:
    """A box of matrices, cut with the simplex of each column.

    Attributes:
        labels: of the matrices.
        group: (labels,) int64, number of the group that each label is in; groups count from 0 as they occur.
        lower, upper: (bins, groups, true) int64, bounds on each group's rate in billionths.
        needed: (bins, true) bool, the columns that matter; the others are the whole simplex.
        evidence: the data it was made from; None for a box that is assumed, not estimated.
    """

    labels: tuple[Label, ...]
    group: Ints
    lower: Ints
    upper: Ints
    needed: Mask
    evidence: Evidence | None = None

    def __post_init__(self) -> None:
        bins, groups, true = self.lower.shape
        if self.upper.shape != self.lower.shape or self.needed.shape != (bins, true):
            raise ValueError("the arrays of a region must fit together")
        if not len(self.group) == len(self.labels) == true or not np.array_equal(
            np.unique(self.group), range(groups)
        ):
            raise ValueError("every label is in one of the groups, and every group has a label")
        if self.lower.dtype != np.int64 or self.upper.dtype != np.int64:
            raise ValueError("bounds are whole numbers of billionths")
        if not np.all((self.lower >= 0) & (self.lower <= self.upper) & (self.upper <= UNIT)):
            raise ValueError("bounds must satisfy 0 <= lower <= upper <= 1")
        if not np.all((self.lower.sum(axis=1) <= UNIT) & (self.upper.sum(axis=1) >= UNIT)):
            raise ValueError("a column of a region is empty: no rates between its bounds sum to 1")

    @property
    def group_count(self) -> int:
        """Number of groups of labels."""
        return int(self.lower.shape[1])

    def contains(self, rates: NDArray[Any]) -> bool:
        """Whether (bins, predicted, true) rates lie in the region; compared are exact numbers.

        Whether the columns sum to 1 is not looked at. Fractions and whole numbers are exact; doubles are taken for
        the fractions that they are.
        """
        for index, column in np.argwhere(self.needed).tolist():
            rate = [Fraction(each) * UNIT for each in rates[index, :, column]]
            for group in range(self.group_count):
                total = sum((r for r, g in zip(rate, self.group.tolist(), strict=True) if g == group), Fraction(0))
                if not self.lower[index, group, column] <= total <= self.upper[index, group, column]:
                    return False
        return True

    @classmethod
    def of_bounds(cls, skeleton: Skeleton, lower: NDArray[Any], upper: NDArray[Any]) -> Region:
        """The box of all matrices between two given ones, for a statement that starts from an assumption.

        Args:
            skeleton: says which columns matter, and which labels its planner tells apart.
            lower, upper: (bins, predicted, true) bounds on each rate, from 0 to 1: doubles or, exactly, fractions.
                0 and 1 leave a rate free, equal bounds fix it. They are rounded outwards to billionths.

        Raises:
            ValueError: bounds out of order or range, or a column in which no rates between them sum to 1.
        """
        channel = skeleton.channel
        group = groups_of(channel)
        shape = (len(lower), int(group.max()) + 1, len(group))
        needed = _needed(skeleton, shape[0])
        least, most = np.zeros(shape, dtype=np.int64), np.full(shape, UNIT, dtype=np.int64)
        for index, column in np.argwhere(needed).tolist():
            for number in range(shape[1]):
                members = np.flatnonzero(group == number)
                low = sum((Fraction(each) for each in lower[index, members, column]), Fraction(0))
                high = sum((Fraction(each) for each in upper[index, members, column]), Fraction(0))
                least[index, number, column] = math.floor(low * UNIT)
                most[index, number, column] = min(math.ceil(high * UNIT), UNIT)
        return cls(channel.labels, group, least, most, needed)


def groups_of(channel: Channel) -> Ints:
    """(labels,) the group of each label: labels told alike are one group, numbered as they occur."""
    told = told_by(channel)
    number = {each: k for k, each in enumerate(dict.fromkeys(told))}
    return np.array([number[each] for each in told], dtype=np.int64)


def events_of(skeleton: Skeleton, measured: Measured) -> frozenset[Event]:
    """The events that bounds on a chain of `skeleton` rest on; unite those of all chains of a run."""
    group = groups_of(skeleton.channel)
    members = [tuple(np.flatnonzero(group == number).tolist()) for number in range(int(group.max()) + 1)]
    if len(members) == 1:
        return frozenset()
    rest = tuple(label for label in range(len(group)) if label not in members[0])
    sets = {rest, *members[1:]}
    estimated = _estimated(skeleton, measured)
    columns = np.argwhere(estimated).tolist()
    return frozenset(Event(index, column, labels) for index, column in columns for labels in sets)


def confidence_region(
    skeleton: Skeleton, measured: Measured, level: float = 0.95, events: Set[Event] | None = None
) -> Region:
    """The simultaneous confidence region of the columns that a chain of `skeleton` needs.

    Args:
        skeleton: says which columns matter, and which labels its planner tells apart.
        measured: the counts.
        level: probability with which all intervals of the run hold at once; its decimal digits are taken exactly.
        events: all events of the run; those of this skeleton alone if None.

    Raises:
        UsageError: the level does not lie strictly between 0 and 1.
        ValueError: `events` lacks some of the skeleton's.
    """
    alpha = 1 - Fraction(repr(float(check_level(level))))
    own = events_of(skeleton, measured)
    if events is not None and not own <= events:
        raise ValueError("the events of a run must include those of each of its chains")
    count = len(own if events is None else events)
    group = groups_of(skeleton.channel)
    groups = int(group.max()) + 1
    items = np.zeros((len(measured.counts), groups, len(group)), dtype=np.int64)
    for label, number in enumerate(group.tolist()):
        items[:, number] += measured.counts[:, label]
    needed = _needed(skeleton, len(items))
    lower, upper = np.zeros_like(items), np.full_like(items, UNIT)
    if groups > 1 and count:
        found = clopper_pearson(items, items.sum(axis=1, keepdims=True), float(alpha / (2 * count)))
        estimated = _estimated(skeleton, measured)[:, None, :]
        lower, upper = np.where(estimated, found[0], lower), np.where(estimated, found[1], upper)
    fixed = measured.fixed & needed
    for index, column in np.argwhere(fixed).tolist():
        for number in range(groups):
            rate = (
                sum((Fraction(each) for each in measured.rates[index, group == number, column]), Fraction(0)) * UNIT
            )
            lower[index, number, column] = math.floor(rate)
            upper[index, number, column] = min(math.ceil(rate), UNIT)
    return Region(skeleton.channel.labels, group, lower, upper, needed, Evidence(alpha, count, items, measured.fixed))


def clopper_pearson(items: Ints, total: Ints, tail: float) -> tuple[Ints, Ints]:
    """Ends of two-sided Clopper-Pearson intervals in billionths, rounded outwards.

    Args:
        items, total: x of n items, arrays that broadcast against each other, 0 <= x <= n.
        tail: the probability c that each end may be missed with, above 0 and below 1/2.
    """
    return _lower_end(items, total, tail), UNIT - _lower_end(total - items, total, tail)


def _lower_end(items: Ints, total: Ints, tail: float) -> Ints:
    some = items > 0
    least = np.where(some, items, 1).astype(np.float64)  # the end is 0 for x = 0
    rest = np.maximum(total - items, 0) + 1.0
    end = betaincinv(least, rest, tail)
    # The inverse can fail, as it does for 1,000 of 10^9; the function itself is accurate.
    wrong = ~(np.abs(betainc(least, rest, end) / tail - 1) < _TOLERANCE)
    if np.any(wrong):
        end = np.where(wrong, _bisected(least, rest, tail), end)
    rounded: Ints = np.where(some, np.floor(end * UNIT * _OUTWARDS), 0).astype(np.int64)
    return rounded


def _bisected(least: Floats, rest: Floats, tail: float) -> Floats:
    """The end below which Pr(Bin(n, end) >= least) is at most `tail`."""
    low, high = np.zeros(np.broadcast_shapes(least.shape, rest.shape)), least / (least + rest - 1)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        beyond = betainc(least, rest, middle) > tail
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return low


def _needed(skeleton: Skeleton, bins: int) -> Mask:
    """(bins, true) the columns that the chain depends on."""
    result = np.zeros((bins, len(skeleton.channel.labels)), dtype=bool)
    needed = skeleton.columns_needed()
    result[needed[:, 0], needed[:, 1]] = True
    return result


def _estimated(skeleton: Skeleton, measured: Measured) -> Mask:
    """(bins, true) the columns that are needed, have items and are not held fixed."""
    result: Mask = _needed(skeleton, len(measured.counts)) & ~measured.fixed & (measured.counts.sum(axis=1) > 0)
    return result
