"""As what the labels of each draw are told to the planner, and what it knows after each report.

A planner may be told a label in another way wherever the object stands (`sees(c, within = d)`), of another object
(`report(o)`), for another frame, or once more (`count(c)`). The draws of a channel are told in few *kinds* of ways.
Where reports may be in another bin than the object, a kind has several *ways*, one for each report that the bins
make of a label, with whole numbers that say how often each is; that is no choice, and taken as exact.

Labels that no draw tells apart are one *group*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from verifier.base.arrays import Floats, Ints, Mask
from verifier.systems.channel import Channel


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
        found: Ints = self.then[:, self.report]
        return found

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
    each = np.concatenate([often[:, :, None], told[:, :, first]], axis=2)
    patterns, number = np.unique(each.reshape(len(each), math.prod(each.shape[1:])), axis=0, return_inverse=True)
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
    found: dict[tuple[int, ...], int] = {}
    for often, *reports in pattern:
        if often:
            found[tuple(reports)] = found.get(tuple(reports), 0) + often
    return tuple(found.items())
