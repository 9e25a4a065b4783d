"""The matrices of a region as choices of a decision process, for other model checkers to compute the bounds with.

What follows a step is linear in the rates of each draw, and these lie in a polytope. So the least and the greatest
probability of a formula are attained where each draw is from a vertex, chosen anew in every state and for all that
was reported before it in the step (Iyengar, Robust dynamic programming, Mathematics of Operations Research 30, 2005;
Puggelli et al., Polynomial-time verification of PCTL properties of MDPs with convex uncertainties, CAV 2013). Each
combination of such choices is a choice of the process, with the steps of the chain: Pmin and Pmax over it are the
bounds of the semantics "per_state". Where the world decides, its choices are combined with these.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.objective import led_by_observation
from verifier.analysis.robust.region import Region, Told, told_of
from verifier.base.arrays import Ints, Mask, rows_of
from verifier.base.errors import LimitError
from verifier.chains.chain import DecisionProcess, valuations_of
from verifier.systems.channel import Channel
from verifier.systems.strategies import StrategySkeleton

MOST_CHOICES = 4096
"""Choices of one state, at most."""
_MOST_LABELS = 11
"""Of a column whose vertices are listed."""

_Shares: TypeAlias = "tuple[Fraction, ...]"
"""How likely each of the states is that may follow."""


def vertex_process(
    skeleton: StrategySkeleton, region: Region, labels: Mapping[str, Mask], *, exact: bool, remark: str
) -> DecisionProcess:
    """The decision process of all matrices of a region.

    Args:
        skeleton: of a chain (one row for each state) or of a world that decides.
        labels: name -> (n,) mask.
        exact: also keep the probabilities as fractions.
        remark: what the process means, for those who read an export.

    Raises:
        LimitError: a state would have more than `MOST_CHOICES` choices.
        ValueError: the region does not fit the skeleton.
    """
    choices = skeleton.choices
    told = told_of(choices.channel)
    if not np.array_equal(told.group, region.group):
        raise ValueError("the region's groups are not those of the skeleton")
    sources = rows_of(choices.indptr)
    following, drawn = led_by_observation(choices, len(choices.indptr) - 1, sources, choices.entry, choices.indices)
    known: dict[tuple[int, bytes], list[_Shares]] = {}
    targets: list[int] = []
    shares: list[Fraction] = []
    ends, per_row = [0], []
    for row, led in zip(drawn.tolist(), following, strict=True):
        states, place = np.unique(led, return_inverse=True)
        key = row, place.tobytes()
        if key not in known:
            known[key] = [(Fraction(1),)] if row < 0 else _Draws(choices.channel, told, region, row, place).behind()
        per_row.append(len(known[key]))
        for distribution in known[key]:
            kept = [(state, share) for state, share in zip(states.tolist(), distribution, strict=True) if share]
            targets += [state for state, _ in kept]
            shares += [share for _, share in kept]
            ends.append(len(targets))
    before = np.concatenate([[0], np.cumsum(per_row)])
    return DecisionProcess(
        choice_starts=before[skeleton.choice_starts],
        indptr=np.array(ends, dtype=np.int64),
        indices=np.array(targets, dtype=np.int64),
        probabilities=np.array([float(share) for share in shares]),
        labels=dict(labels),
        initial=choices.starts,
        fractions=tuple(shares) if exact else None,
        valuations=valuations_of(choices),
        remark=remark,
    )


def vertices(lower: Sequence[int], upper: Sequence[int]) -> list[tuple[int, ...]]:
    """The extreme points of {lower <= mu <= upper, sum mu = 10^9}: all rates but one at an end.

    Raises:
        LimitError: they may be too many.
    """
    if len(lower) > _MOST_LABELS:
        raise LimitError(f"a column of {len(lower)} labels has too many vertices", hint="let planners ask for fewer")
    points = dict.fromkeys(
        (*ends[:free], UNIT - sum(ends), *ends[free:])
        for free in range(len(lower))
        for ends in itertools.product(*(row for k, row in enumerate(zip(lower, upper, strict=True)) if k != free))
        if lower[free] <= UNIT - sum(ends) <= upper[free]
    )
    return list(points)


@dataclass
class _Draws:
    """The draws of one row, behind which each observation and outcome leads to one of a few states."""

    channel: Channel
    told: Told
    region: Region
    row: int
    place: Ints
    _known: dict[tuple[int, int], list[_Shares]] = field(default_factory=dict)

    def behind(self, draw: int = 0, seen: int = 0) -> list[_Shares]:
        """What nature can make of the step once `seen` was reported before a draw."""
        if draw == self.channel.columns.shape[1]:
            return [self._end(seen)]
        if self.channel.columns[self.row, draw] < 0:
            return self.behind(draw + 1, seen)
        if (draw, seen) not in self._known:
            distributions: dict[_Shares, None] = {}
            for shares in self._drawn(draw, seen):
                distributions[shares] = None
                if len(distributions) > MOST_CHOICES:
                    raise self._too_many()
            self._known[draw, seen] = _extreme(distributions)
        return self._known[draw, seen]

    def _too_many(self) -> LimitError:
        drawn = int((self.channel.columns[self.row] >= 0).sum())
        return LimitError(
            f"a state would have more than {MOST_CHOICES} choices: the vertices of {drawn} reports in one step",
            hint="export an environment with fewer objects, or ignore false positives",
        )

    def _drawn(self, draw: int, seen: int) -> Iterator[_Shares]:
        at = self.channel.bins[self.row, draw], slice(None), self.channel.columns[self.row, draw]
        kind = int(self.told.kind[self.row, draw])
        often, after_each = self.told.often[kind], self.told.after[seen, kind].tolist()
        total = int(often.sum())
        ways = [(Fraction(n, total), led) for n, led in zip(often.tolist(), after_each, strict=True) if n]
        for rates in vertices(self.region.lower[at].tolist(), self.region.upper[at].tolist()):
            mass: dict[int, Fraction] = {}
            for (share, led), (group, rate) in itertools.product(ways, enumerate(rates)):
                if rate:
                    mass[led[group]] = mass.get(led[group], Fraction(0)) + share * Fraction(rate, UNIT)
            after = [self.behind(draw + 1, number) for number in mass]
            if math.prod(map(len, after)) > MOST_CHOICES:
                raise self._too_many()
            for picked in itertools.product(*after):
                yield _mean(list(mass.values()), picked)

    def _end(self, seen: int) -> _Shares:
        chances = self.channel.chances(np.dtype(object))[self.row]
        led = self.place.reshape(-1, len(chances))[seen]
        fractions = [Fraction(0)] * (int(self.place.max()) + 1)
        for state, chance in zip(led.tolist(), chances.tolist(), strict=True):
            fractions[state] += chance
        return tuple(fractions)


def _mean(weights: Sequence[Fraction], parts: Sequence[_Shares]) -> _Shares:
    return tuple(
        sum((weight * share for weight, share in zip(weights, shares, strict=True)), Fraction(0))
        for shares in zip(*parts, strict=True)
    )


def _extreme(distributions: Mapping[_Shares, None]) -> list[_Shares]:
    """Without those between two others, where that is easy: where one or two states may follow."""
    ordered = sorted(distributions)
    return ordered if len(ordered[0]) > 2 else list(dict.fromkeys((ordered[0], ordered[-1])))
