r"""Bounds over all matrices of a region where steps are counted: greatest means, and proofs that allow to stop early.

T is the greatest mean over one step while nature chooses the rates of every draw; what is decided keeps its worth.
T^n x bounds what n steps from x can give, for every matrix of the region, and for rates that change in every step.
`UncertainStep.upper_bound` is not below T, with all rounding. T is monotone and convex, T(k x) <= k T x for k >= 1.

*Blocks.* Some steps are first taken with the rates that are best for x, as sparse products that give y; then it is
checked, for all of them at once, that T gives no more than (1 + d) times as much. So T^B x <= (1 + d1) .. (1 + dB) y.

*Stopping.* Let v' >= T^M v.

1. Where v' <= (1 + d) v, T^(jM) v <= (1 + d)^j v, and where v' <= v + d, T^(jM) v <= v + j d: that is enough where
   v' is next to v.
2. What is never more after a step may be left where it is, once it is next to a limit that it does not leave.
3. Let c be a vector with T c <= c, such as a proven bound of what infinitely many steps can give, and 0 <= k <= 1
   with v' <= (1 - k) c + k v. By convexity T^M ((1 - k) c + k v) <= (1 - k) c + k v', and by induction

       T^(jM) v <= (1 - k^j) c + k^j v:

   a billion steps need not be taken. That is tight once all that is left fades at one rate, and sound before. The
   same holds on the states that a state can reach, so each state has the best k of these.

No certificate holds that many vectors: who checks computes the bounds again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array

from verifier.analysis.objective import Objective
from verifier.analysis.robust.certificate import claimed_bound
from verifier.analysis.robust.inner_bounds import (
    OneSide,
    Side,
    best_of,
    bound_sides,
    middle_of,
    nothing_attained,
    per_column,
    rates_of,
)
from verifier.analysis.robust.region import Region
from verifier.analysis.robust.solve import LARGE_LOSS
from verifier.analysis.robust.step import UncertainStep, greatest_masses, uncertain_step
from verifier.analysis.step_counts import StepCount
from verifier.base.arrays import ROUNDOFF, Floats, Mask
from verifier.language.ltl.progression import ACCEPT, REJECT

MOST_TAKEN, FEWEST_TAKEN = 50_000, 1_000
"""Steps that are taken before a stop other than at a limit is looked for, and how many even in large products."""
WORK = 2 * 10**7
"""Numbers, one for each state and observation, that so many steps may touch."""
SPAN, JUMP = 1 / 32, 1 / 2
"""Share of these steps from which a stop is proven; it spans so many times the steps before it."""
_LARGEST_BLOCK, _NUMBERS_AT_ONCE, _LARGEST_DENSE = 1024, 2**18, 150
_DRIFT = 2.0**-43
"""Relative, in one step, from which on other rates are looked for."""
_CLOSE, _STILL, _NOISE = 2.0**-40, 1e-10, 2.0**-46
_MOST_LIFTED = 1e-6
_FIRST_LOOK = 64
_MOST_FAVOURED = 32
_NOTHING = 2.0**-200
"""A probability that nobody asks to be known to be smaller."""
_MOST_ROUNDS = 1000
_WIDER, _NARROWER = 1 + 16 * ROUNDOFF, 1 - 16 * ROUNDOFF


def refuse_uncountable(objective: StepCount, region: Region) -> None:
    """NoAnswerError where a response can be counted neither with ages nor without."""
    if objective.window.response is not None and objective.windows_apart(_Greatest(region)) is None:
        objective.refuse_ages()


def counted_side(objective: StepCount, region: Region, side: Side, *, attained: bool) -> OneSide:
    """One side of the bounds over a region, and on request what its matrices attain; without certificates, and
    conservative where a stop may have cost more than `LARGE_LOSS`.

    Raises:
        EngineError, LimitError: from what infinitely many steps can give, and where products would be too large.
    """
    walk = _Greatest(region)
    number, missing = objective.numbers(walk, (side == "upper") != objective.window.negated)
    worst = np.minimum((number + missing) * _WIDER, 1.0)
    bounds = np.array([claimed_bound(side, value) for value in worst.tolist()])
    known = nothing_attained(objective, region)
    if attained:
        sign = 1.0 if side == "lower" else -1.0
        tried = np.array([*walk.choices(), _each_for_itself(objective, region, sign)])
        known = best_of(objective, region, None, tried, sign)
    return OneSide(bounds, known, walk.lost > LARGE_LOSS)


def _each_for_itself(objective: StepCount, region: Region, sign: float) -> Floats:
    """(bins, groups, true) masses where each column favours the report that is best if it favours one alone."""
    middle, groups = middle_of(region), region.group_count
    columns = np.argwhere(region.needed & (region.lower < region.upper).any(axis=1))[:_MOST_FAVOURED]
    favoured = np.repeat(middle[None], len(columns) * groups, axis=0).reshape(len(columns), groups, *middle.shape)
    for number, (index, true) in enumerate(columns.tolist()):
        ends = (np.repeat(array[None, index, :, true], groups, axis=0) for array in (region.lower, region.upper))
        favoured[number, :, index, :, true] = greatest_masses(np.eye(groups), *ends)
    if len(columns):
        rates = rates_of(region, favoured.reshape(-1, *middle.shape))
        worth = objective.probabilities(rates, roughly=True).probability.mean(axis=1).reshape(len(columns), groups)
        for number, (index, true) in enumerate(columns.tolist()):
            best = int(np.argmin(sign * worth[number]))
            middle[index, :, true] = favoured[number, best, index, :, true]
    return middle


@dataclass(eq=False)
class _Greatest:
    """Greatest means over a region, as a `Walk`: bounds from above.

    Attributes:
        lost: how much stops may have cost.
        last: the choices of the product that was stepped on most, and the worth of its states before its first step.
    """

    region: Region
    lost: float = 0.0
    last: tuple[int, UncertainStep, Floats] | None = None
    _limits: dict[tuple[Objective, bool], Floats] = field(default_factory=dict)

    def after(self, at: Objective, ends: Floats, steps: int, cut: Mask | None = None, fails: float = 0.0) -> Floats:
        step, begun = uncertain_step(at, self.region), ends
        one = _Steps(step, begun, cut, fails)
        if cut is not None and steps:
            ends, steps = one.greatest(ends), steps - 1  # from here on what is cut off is worth the same
        if cut is not None or ends[ACCEPT] == ends[REJECT]:
            limit = np.full(len(ends), max(float(ends.max()), fails))
        else:
            limit = self._limit(at, bool(ends[ACCEPT] > 0))
        worth = self._stepped(at, one, ends, steps, limit)
        if self.last is None or self.last[0] <= steps:
            self.last = steps, step, worth
        return worth

    def each(self, at: Objective, ends: Floats, steps: int) -> Iterator[Floats]:
        one = _Steps(uncertain_step(at, self.region), ends, None, 0.0)
        yield ends
        for _ in range(steps):
            ends = one.greatest(ends)
            yield ends

    def ever(self, at: Objective, meets: bool) -> Floats:
        return self._limit(at, meets)[at.product.start]

    def rest(self, at: Objective, ends: Floats, steps: int, enough: float) -> float:
        one = _Steps(uncertain_step(at, self.region), ends, None, 0.0)
        return float(self._stepped(at, one, ends, steps, np.zeros_like(ends), enough, 0.0).max(initial=0.0))

    def choices(self) -> Floats:
        """(c, bins, groups, true) masses of single matrices that may attain much: of the middle, the mean of what was
        chosen in each column before the first step, and the vertex there."""
        middle = middle_of(self.region)
        if self.last is None:
            return middle[None]
        _, step, worth = self.last
        _, masses = step.greatest(worth[step.following])
        total, often = np.zeros(step.lower.shape), np.zeros(len(step.lower))
        for (draw, _), chosen in masses.items():
            drawn = step.columns[:, draw] >= 0
            np.add.at(total, step.columns[drawn, draw], chosen[drawn])
            np.add.at(often, step.columns[drawn, draw], 1)
        used = often[:, None] > 0
        other = middle.swapaxes(1, 2).reshape(total.shape)
        mean = np.where(used, total / np.maximum(often, 1)[:, None], other)
        vertex = np.where(used, greatest_masses(mean, step.lower, step.upper), other)
        return np.array([middle, *(per_column(array, self.region) for array in (mean, vertex))])

    def _limit(self, at: Objective, meets: bool) -> Floats:
        """(p,) a bound c of what infinitely many steps can give, with T c <= c proven."""
        if (at, meets) not in self._limits:
            (bound,) = bound_sides(at, self.region, ("upper" if meets else "lower",))
            self._limits[at, meets] = np.minimum(bound.reached.value, 1.0)
        return self._limits[at, meets]

    def _stepped(
        self,
        at: Objective,
        one: _Steps,
        ends: Floats,
        steps: int,
        limit: Floats,
        enough: float = _NOTHING,
        still: float = _STILL,
    ) -> Floats:
        """T^steps of `ends`, or what is proven to be no less.

        Args:
            at: the product.
            one: its steps.
            ends: (p,), not above the limit, or else T of them is not above them.
            limit: (p,) c.
            enough: of what falls nothing below is asked.
            still: how much may be added at most, by a stop, to what hardly changes; 0 for nothing.
        """
        lifted = float(_quotient(ends, limit).max())
        rises = lifted <= 1 + _MOST_LIFTED
        growth = 1.0 if rises else float(_quotient(one.greatest(ends), ends).max())
        if rises:
            limit = np.minimum(limit * (lifted * _WIDER), 1.0)
        most = min(steps, max(FEWEST_TAKEN, min(MOST_TAKEN, WORK // one.step.following.size)))
        span, worth, taken = int(most * SPAN), ends, 0
        while taken < steps:
            before, number = worth, min(max(_FIRST_LOOK, min(span, taken // 4)), steps - taken)
            worth = one.after(worth, number)
            taken += number
            left = steps - taken
            if rises and np.all(worth >= limit * (1 - _CLOSE)):
                return np.minimum(worth, limit)
            if not rises and np.all(worth <= np.maximum(limit * (1 + _CLOSE), enough)):
                return one.fixed(_grown(at, worth, growth, left))
            spans = left // number
            if still and np.abs(worth - before).max() * (spans + 1) <= still + left * _NOISE:
                more = max(float((worth - before).max()), 0.0) * (spans + 1) * _WIDER
                grown = _grown(at, worth, float(_quotient(worth, before).max()), spans + 1)
                worth = one.fixed(np.minimum(grown, (worth + more) * _WIDER))
                return np.minimum(worth, limit) if rises else worth
            jumps = min(spans, int(JUMP * taken / number)) if taken >= most else 0
            if jumps:
                worth, lost = _jumped(at, before, worth, limit, rises, jumps)
                self.lost, taken = self.lost + lost, taken + jumps * number
        return np.minimum(worth, limit) if rises else worth


def _jumped(
    at: Objective, before: Floats, worth: Floats, limit: Floats, rises: bool, jumps: int
) -> tuple[Floats, float]:
    """What is proven after so many times the steps that led from `before` to `worth`, and how much that may cost."""
    side = np.minimum if rises else np.maximum
    before, worth = side(before, limit), side(worth, limit)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (worth - limit) / (before - limit)
    share = np.where(before == limit, np.where(worth == limit, np.nan, np.inf), share) * (
        _NARROWER if rises else _WIDER
    )
    share = np.where(worth > before, share, np.minimum(share, 1.0))
    kept, other = (_over_reach(at, share, pick) for pick in ((np.fmin, np.fmax) if rises else (np.fmax, np.fmin)))
    distance = np.fmin(kept, 1.0) ** jumps * np.abs(worth - limit)  # 0 where all are at the limit
    if rises:
        bounds = np.minimum((limit - distance * _NARROWER) * _WIDER, limit)
    elif np.any(kept > 1):  # it grows, if by rounding alone
        bounds = np.minimum(_grown(at, worth, float(_quotient(worth, before).max()), jumps), 1.0)
    else:
        bounds = np.minimum((limit + distance * _WIDER) * _WIDER, 1.0)
    fastest = limit + np.fmin(other, 1.0) ** jumps * (worth - limit)
    return bounds, float(np.abs(bounds - fastest).max())


def _over_reach(at: Objective, numbers: Floats, best: np.ufunc) -> Floats:
    """(p,) the least, or the greatest, of the numbers of all states that each can reach; NaN are none."""
    product = at.product
    for _ in range(_MOST_ROUNDS):
        ahead = np.full_like(numbers, np.nan)
        ahead[2:] = best.reduceat(numbers[product.indices], product.indptr[2:-1])
        reached = best(numbers, ahead)
        if np.array_equal(reached, numbers, equal_nan=True):
            return numbers
        numbers = reached
    return np.full_like(numbers, best.reduce(numbers))


def _quotient(numbers: Floats, others: Floats) -> Floats:
    """How many times as large each number is, rounded up; 1 where none is larger, infinite behind 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotients = np.where(numbers > others, numbers / others * (1 + 4 * ROUNDOFF), 1.0)
    return np.asarray(quotients)


def _grown(at: Objective, worth: Floats, growth: float, count: int) -> Floats:
    """Not below worth * growth^count; infinite if that growth is beyond doubles, but where nothing is to be reached.

    A growth is infinite where something came of nothing: then it may do so elsewhere later.
    """
    power = count * math.log(growth) * (1 + 2.0**-40)
    if power > 700:
        return np.where(_over_reach(at, worth, np.fmax) > 0, math.inf, 0.0)
    return worth * (math.exp(power) * _WIDER if power else 1.0)


class _Steps:
    """Greatest means over steps of one product; `ACCEPT`, `REJECT` and what is cut off keep what they are worth."""

    def __init__(self, step: UncertainStep, ends: Floats, cut: Mask | None, fails: float) -> None:
        self.step, self._ends, self._cut, self._fails = step, ends, cut, fails
        self._size = 1

    def fixed(self, worth: Floats) -> Floats:
        """(..., p) worths that are at most 1, in place."""
        np.minimum(worth, 1.0, out=worth)
        worth[..., [REJECT, ACCEPT]] = self._ends[[REJECT, ACCEPT]]
        if self._cut is not None:
            worth[..., self._cut] = self._fails
        return worth

    def greatest(self, worth: Floats) -> Floats:
        """T of (p,) worths."""
        return self.fixed(self.step.upper_bound(worth[self.step.following]).copy())

    def after(self, worth: Floats, steps: int) -> Floats:
        """T^steps of (p,) worths."""
        while steps:
            worth, taken = self._block(worth, min(steps, self._size))
            steps -= taken
        return worth

    def _block(self, worth: Floats, size: int) -> tuple[Floats, int]:
        """Some steps at once, and how many: those after which the rates that are best for `worth` still are."""
        following, count = self.step.following, len(worth)
        if size == 1:
            self._size = 2
            return self.greatest(worth), 1
        _, masses = self.step.greatest(worth[following])
        walked = self._walked(worth, self.step.weights(masses), size)
        behind = walked[:-1][:, following].reshape(size * count, -1)
        top = self.fixed(self.step.upper_bound(behind, np.tile(np.arange(count), size)).reshape(size, count).copy())
        growth = _quotient(top, walked[1:]).max(axis=1)
        wrong = np.flatnonzero(~(growth <= 1 + _DRIFT))
        taken = int(wrong[0]) if len(wrong) else size
        largest = max(2, min(_LARGEST_BLOCK, _NUMBERS_AT_ONCE // following.size))
        self._size = min(largest, 2 * size) if taken == size else max(1, taken)
        if taken == 0:
            return top[0], 1
        return self.fixed(walked[taken] * (math.prod(growth[:taken].tolist()) * _WIDER)), taken

    def _walked(self, worth: Floats, weights: Floats, steps: int) -> Floats:
        """(steps + 1, p) worths, step by step, with given probabilities of what follows."""
        count, width = self.step.following.shape
        following = self.step.following
        if self._cut is not None:
            weights = np.where(self._cut[:, None], np.eye(1, width), weights)
            following = np.where(self._cut[:, None], np.arange(count)[:, None], following)
        rows = np.repeat(np.arange(count), width)
        mean = csr_array((weights.ravel(), (rows, following.ravel())), shape=(count, count))
        walked = np.empty((steps + 1, count))
        walked[0] = worth
        if count > _LARGEST_DENSE:
            for k in range(steps):
                walked[k + 1] = mean @ walked[k]
            return walked
        power, known = mean.toarray().T, 1
        while known <= steps:
            more = min(known, steps + 1 - known)
            walked[known : known + more] = walked[:more] @ power
            power, known = power @ power, known + more
        return walked
