"""The matrices that the data cannot rule out: a simultaneous confidence region of the columns that matter.

*Reports.* Labels that the planner cannot tell apart are one report, so a column matters through the chances of its
reports only. A column of the chain therefore is a point of a simplex with one coordinate per group of labels.

*Events.* That an item of a column is reported within a group is an event; an event and its complement are one. A
column with two groups has one event, with g > 2 groups it has g, with a single group none. Columns held fixed by
convention have none either: they are points. Columns without items have theirs, with the interval [0, 1].

*Region.* With an interval for every event of a run that hold all at once (`rate_intervals`), the true matrices lie in

    { mu : lower <= mu <= upper, each column of mu sums to 1 },

a product of polytopes, one for each column. One set of events serves every chain of a run: then all bounds of the
run hold at once.

As what the labels of each draw are told to the planner, and what it knows after each report.

A planner may be told a label in another way wherever the object stands (`sees(c, within = d)`), of another object
(`report(o)`), for another frame, or once more (`count(c)`). The draws of a channel are told in few *kinds* of ways.
Where reports may be in another bin than the object, a kind has several *ways*, one for each report that the bins
make of a label, with whole numbers that say how often each is; that is no choice, and taken as exact.

Labels that no draw tells apart are one *group*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.intervals.intervals import Measured
from verifier.analysis.intervals.rate_intervals import Event, RateIntervals
from verifier.base.arrays import Floats, Ints, Mask
from verifier.perception.confusion.matrices import Label
from verifier.systems.channel import Channel
from verifier.systems.skeleton import Skeleton


@dataclass(frozen=True, eq=False)
class Region:
    """A box of matrices, cut with the simplex of each column.

    Attributes:
        group: (labels,) int64, number of the group that each label is in; groups count from 0 as they occur.
        lower, upper: (bins, groups, true) int64, bounds on each group's rate in billionths.
        needed: (bins, true) bool, the columns that matter; the others are the whole simplex.
        evidence: the intervals it was made from; None for a box that is assumed, not estimated.
    """

    labels: tuple[Label, ...]
    group: Ints
    lower: Ints
    upper: Ints
    needed: Mask
    evidence: RateIntervals | None = None

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
        needed = needed_columns(skeleton, shape[0])
        least, most = np.zeros(shape, dtype=np.int64), np.full(shape, UNIT, dtype=np.int64)
        for index, column in np.argwhere(needed).tolist():
            for number in range(shape[1]):
                cell, own = (index, number, column), (index, group == number, column)
                least[cell], most[cell] = _outwards(lower[own], upper[own])
        return cls(channel.labels, group, least, most, needed)


def _outwards(lower: NDArray[Any], upper: NDArray[Any]) -> tuple[int, int]:
    """Bounds on a sum of rates, in billionths."""
    low, high = (sum(map(Fraction, ends), Fraction(0)) * UNIT for ends in (lower, upper))
    return math.floor(low), min(math.ceil(high), UNIT)


def groups_of(channel: Channel) -> Ints:
    """(labels,) the group of each label: labels told alike in every draw are one group, numbered as they occur."""
    return told_of(channel).group


def events_of(skeleton: Skeleton, measured: Measured) -> frozenset[Event]:
    """The events that bounds on a chain of `skeleton` rest on; unite those of all chains of a run."""
    sets = set(_events_of_groups(groups_of(skeleton.channel)))
    columns = np.argwhere(_estimated(skeleton, measured)).tolist()
    return frozenset(Event(index, column, labels) for index, column in columns for labels in sets)


def _events_of_groups(group: Ints) -> list[tuple[int, ...]]:
    """The labels of each group; for the first group, which has label 0, all other labels."""
    return [
        tuple(np.flatnonzero((group == number) == (number > 0)).tolist()) for number in range(int(group.max()) + 1)
    ]


def region_of(skeleton: Skeleton, intervals: RateIntervals) -> Region:
    """The region of the columns that a chain of `skeleton` needs, from the intervals of the run.

    Raises:
        ValueError: the run lacks some of the skeleton's events.
    """
    measured = intervals.measured
    if not events_of(skeleton, measured) <= intervals.events:
        raise ValueError("the events of a run must include those of each of its chains")
    group = groups_of(skeleton.channel)
    shape = (len(measured.counts), int(group.max()) + 1, len(group))
    needed = needed_columns(skeleton, len(measured.counts))
    lower, upper = np.zeros(shape, dtype=np.int64), np.full(shape, UNIT, dtype=np.int64)
    rest, *others = _events_of_groups(group)
    for index, column in np.argwhere(_estimated(skeleton, measured)).tolist():
        low, high = intervals.ends[Event(index, column, rest)]
        lower[index, 0, column], upper[index, 0, column] = UNIT - high, UNIT - low
        for number, labels in enumerate(others, 1):
            lower[index, number, column], upper[index, number, column] = intervals.ends[Event(index, column, labels)]
    fixed = measured.fixed & needed
    for index, column in np.argwhere(fixed).tolist():
        for number in range(shape[1]):
            rates = measured.rates[index, group == number, column]
            lower[index, number, column], upper[index, number, column] = _outwards(rates, rates)
    return Region(skeleton.channel.labels, group, lower, upper, needed, intervals)


def by_group(counts: Ints, group: Ints) -> Ints:
    """(drives, bins, groups, true) from (drives, bins, predicted, true)."""
    result = np.zeros((*counts.shape[:2], int(group.max()) + 1, counts.shape[3]), dtype=np.int64)
    for label, number in enumerate(group.tolist()):
        result[:, :, number] += counts[:, :, label]
    return result


def needed_columns(skeleton: Skeleton, bins: int) -> Mask:
    """(bins, true) the columns that the chain depends on: of draws that tell labels apart, where that matters."""
    channel, told = skeleton.channel, told_of(skeleton.channel)
    result = np.zeros((bins, len(channel.labels)), dtype=bool)
    rows = np.unique(skeleton.entry_row[skeleton.depends_on_reports])
    used = (channel.columns[rows] >= 0) & told.matters[told.kind[rows]]
    result[channel.bins[rows][used], channel.columns[rows][used]] = True
    return result


def _estimated(skeleton: Skeleton, measured: Measured) -> Mask:
    """(bins, true) the columns that are needed and not held fixed, whether they have items or not."""
    return needed_columns(skeleton, len(measured.counts)) & ~measured.fixed


@dataclass(frozen=True, eq=False)
class Told:
    """How the draws of a channel are told.

    Attributes:
        group: (labels,) int64, the group of each label; groups count from 0 as they occur.
        kind: (rows, draws) int64, the kind of each draw; any where there is no draw.
        report: (kinds, ways, groups) int64, the report of each group.
        often: (kinds, ways) int64, how often each way is; 0 behind the last way of a kind.
        then: (observations, reports) int64, the observation after one more report; -1 where that cannot be.
    """

    group: Ints
    kind: Ints
    report: Ints
    often: Ints
    then: Ints

    @property
    def group_count(self) -> int:
        """Number of groups of labels."""
        return int(self.report.shape[2])

    @property
    def ways(self) -> int:
        """The most ways of a kind."""
        return int(self.often.shape[1])

    @cached_property
    def after(self) -> Ints:
        """(observations, kinds, ways, groups) the observation after the report of each group."""
        return self.then[:, self.report]

    @cached_property
    def share(self) -> Floats:
        """(kinds, ways) the probability of each way."""
        return np.asarray(self.often / self.often.sum(axis=1, keepdims=True))

    @cached_property
    def matters(self) -> Mask:
        """(kinds,) whether a kind tells any groups apart."""
        return np.asarray((self.report != self.report[:, :, :1]).any(axis=(1, 2)))


_ZERO = np.zeros(1, dtype=np.int64)
NOTHING_TOLD = Told(_ZERO, _ZERO[:, None][:, :0], _ZERO[:, None, None], _ZERO[:, None] + 1, _ZERO[:, None])
"""Where there are no draws."""
_known: WeakKeyDictionary[Channel, Told] = WeakKeyDictionary()


def told_of(channel: Channel) -> Told:
    """How the draws of a channel are told; found out once, for a search asks hundreds of times."""
    if channel not in _known:
        _known[channel] = _told_of(channel)
    return _known[channel]


def _told_of(channel: Channel) -> Told:
    real = channel.columns >= 0
    told, often = channel.told[real][:, None], np.ones((int(real.sum()), 1), dtype=np.int64)
    if channel.located is not None:
        told = np.moveaxis(channel.located.told, 0, 2)[real]
        often = np.moveaxis(channel.located.counts, 0, 2)[real]
    told = np.where(often[:, :, None] > 0, told, -1)
    numbers: dict[bytes, int] = {}
    group = [numbers.setdefault(told[:, :, label].tobytes(), len(numbers)) for label in range(len(channel.labels))]
    first = np.unique(group, return_index=True)[1]
    keys = np.concatenate([often[:, :, None], told[:, :, first]], axis=2)
    patterns, number = np.unique(keys.reshape(len(keys), math.prod(keys.shape[1:])), axis=0, return_inverse=True)
    kinds: dict[tuple[tuple[tuple[int, ...], int], ...], int] = {}
    own = np.array(
        [kinds.setdefault(_ways(pattern.reshape(-1, 1 + len(first)).tolist()), len(kinds)) for pattern in patterns],
        dtype=np.int64,
    )
    kind = np.zeros(real.shape, dtype=np.int64)
    kind[real] = own[number.ravel()]
    count, most = max(len(kinds), 1), max(map(len, kinds), default=1)
    report, times = np.zeros((count, most, len(first)), dtype=np.int64), np.zeros((count, most), dtype=np.int64)
    times[:, 0] = 1
    for place, ways in enumerate(kinds):
        for way, (reports, how_often) in enumerate(ways):
            report[place, way], times[place, way] = reports, how_often
    then = channel.then if channel.then.size else np.zeros((len(channel.observations), 1), dtype=np.int64)
    return Told(np.array(group, dtype=np.int64), kind, report, times, then)


def _ways(pattern: list[list[int]]) -> tuple[tuple[tuple[int, ...], int], ...]:
    """The different reports of the groups, with how often each is; the pattern has a row for each bin."""
    times: dict[tuple[int, ...], int] = {}
    for often, *reports in pattern:
        if often:
            times[tuple(reports)] = times.get(tuple(reports), 0) + often
    return tuple(times.items())
