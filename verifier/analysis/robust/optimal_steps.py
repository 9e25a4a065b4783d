"""What a world that decides makes of a number of steps: optimal gains of N steps, and quantiles of times.

With the choices of the world as rows of P, the best over the rows of each state:

    gained(k + 1) = gain + best (P gained(k))           from gained(0) = 0
    left(k + 1)   = best (P left(k)) outside of the goal

(Puterman, Markov Decision Processes, section 4.3: backward induction is optimal over all strategies, with memory or
not.) The greatest time within which a goal is reached with probability q is the least k with Pmin(F<=k goal) >= q:
`left` is taken at its greatest for it. The least time goes with Pmax, and with the least `left`. Only non-negative
numbers are added, multiplied and compared, so the errors are those of `stepping`. What is equal to the level, or
nearly so, is computed in fractions.

The least or the greatest that is expected to be gained before a condition holds, over all that a world may decide.

Where the world can keep the condition from ever holding, the greatest gain is infinite; the least one is over what it
may do so that the condition surely holds, and infinite where that is nothing, as in PRISM. What is finite is found by
policy iteration: for the least gain beginning with a policy under which the condition surely holds, for then no later
one ever avoids it (a policy that is better somewhere cannot stay where nothing is gained).

A proof of what no choice gains: with v the gains of the policy, g > 0 what a step gains and r the most that some
choice is better by, rounding included, v (1 + r/g) solves the inequalities that bound the greatest gain from above,
v (1 - r/g) those that bound the least one from below. Where a step gains nothing, 2 r w is added, or subtracted: w is
the greatest time until the condition holds, so w - P w >= 1/2 for every choice, rounding included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.objective import Objective, OfGains, steps_of, without_steps
from verifier.analysis.robust.graph import end_components
from verifier.analysis.robust.optimum import Between, Optimum
from verifier.base.arrays import ROUNDOFF, Floats, Ints, Mask, marked
from verifier.base.errors import NoAnswerError
from verifier.base.graphs import coreachable
from verifier.chains.chain import DecisionProcess
from verifier.checking.batch import BatchResult
from verifier.checking.linear import Solution, solve
from verifier.checking.plan import towards
from verifier.checking.stepping import MOST_STEPS, NEVER, Steps, gained
from verifier.language.expressions.syntax import Node
from verifier.language.ltl.progression import ACCEPT
from verifier.systems.rewards import Gains, gains_of_time

_NEAR = 2.0**-40
_MOST_DIGITS = 10**8
"""Bits of all fractions together, of those that settle a quantile."""


@dataclass(frozen=True, eq=False)
class OptimalSteps(OfGains, Optimum):
    """What is gained in so many steps, and which end of it is asked for.

    Attributes:
        choice_starts: (n + 1,) where the rows of each state begin.
    """

    choice_starts: Ints
    gains: Gains
    steps: int

    is_undecided = Objective.is_undecided

    @property
    def effort(self) -> int:
        """See `Objective`."""
        return max(1, self.steps)

    def probabilities(self, rates: Floats, *, roughly: bool = False) -> BatchResult:
        """As `Objective.probabilities`, of what is gained."""
        steps = steps_of(self.skeleton, self._values(rates))
        best = best_of(self.choice_starts, self.greatest)
        return without_steps(gained(steps, self.gains.values(rates), self.steps, best)[self.skeleton.starts].T)

    def gain_bracket(self, rates: Floats, value_error: float) -> Between:
        """Bounds of the optimum for one family of rates."""
        value = self.probabilities(rates[None]).probability[0]
        off = value * (
            sum(steps_of(self.skeleton, self._values(rates[None])).error_after(self.steps, value_error)) + 2.0**-40
        )
        off += value * self.gains.relative_error * (1 + 2.0**-40)
        return Between(value, np.maximum(value - off, 0), value + off)


@dataclass(frozen=True, eq=False)
class OptimalQuantile(Optimum):
    """The time by which the formula `F condition` holds with probability `level`: the least over all that the world
    may do, or the greatest; steps take `step_s`. `greatest` is about the probability: that of the least time.

    Attributes:
        choice_starts: (n + 1,) where the rows of each state begin.
        condition: what is to hold.
        level: above 0, up to 1.
    """

    choice_starts: Ints
    condition: Node
    level: Fraction
    step_s: Fraction

    is_undecided = Objective.is_undecided
    most: ClassVar[float] = math.inf
    plain: ClassVar[bool] = False
    _effort: ClassVar[int] = 50

    def probabilities(self, rates: Floats, *, roughly: bool = False) -> BatchResult:
        """As `Objective.probabilities`, of the time, where doubles decide what is nearly equal; inf for no time."""
        reached = super().probabilities(rates, roughly=roughly).probability
        steps = self._least_steps(steps_of(self.skeleton, self._values(rates)), reached, None)
        return without_steps(np.where(steps == NEVER, np.inf, steps * float(self.step_s)))

    def quantiles(self, rates: Floats, value_error: float, exact: Callable[[], DecisionProcess]) -> Ints:
        """(m,) least numbers of steps beyond doubt, `NEVER` where there is none.

        Args:
            rates: (bins, predicted, true).
            value_error: largest relative error of each probability that is made of them.
            exact: what the world may do, with its fractions.

        Raises:
            NoAnswerError: more than `MOST_STEPS` steps, or the level is too close to what is reached at all.
        """
        reached = np.where(self.bracket(rates, value_error).upper < float(self.level), 0.0, 1.0)[None]
        steps: Ints = self._least_steps(
            steps_of(self.skeleton, self._values(rates[None])), reached, (value_error, exact)
        )[0]
        return steps

    def _least_steps(
        self, steps: Steps, reached: Floats, doubt: tuple[float, Callable[[], DecisionProcess]] | None
    ) -> Ints:
        goal, start = self.skeleton.mask_of(self.condition), self.skeleton.starts
        best = best_of(self.choice_starts, not self.greatest)
        pending, rest, taken = reached >= float(self.level), 1 - self.level, 0
        needed = np.full(reached.shape, NEVER, dtype=np.int64)
        left = np.repeat((~goal).astype(np.float64)[:, None], len(reached), axis=1)
        exactly: _Left | None = None
        while pending.any():
            if taken > MOST_STEPS:
                raise NoAnswerError(f"the quantile lies behind {MOST_STEPS} steps", hint="ask a lower level")
            now = left[start].T
            done = now <= float(rest)
            if doubt is not None and rest:
                value_error, exact = doubt
                off = sum(steps.error_after(taken, value_error)) + _NEAR
                close = (np.abs(now - float(rest)) <= off * now) & pending
                if close.any():
                    exactly = exactly or _Left(exact(), goal, not self.greatest)
                    told = np.array([chance <= rest for chance in exactly.after(taken)[start]], dtype=bool)
                    done = np.where(close, told, done)
            needed[done & pending] = taken
            pending &= ~done
            before, left, taken = left, best(steps.of(left)), taken + 1
            left[goal] = 0
            if not rest:  # whether anything is left is a matter of the graph
                left = (left > 0).astype(np.float64)
            if np.array_equal(left, before):
                if exactly is not None and not exactly.stays(taken):
                    raise NoAnswerError("what is reached at all is too close to the level of the quantile")
                break  # what is left stays for ever
        return needed


class _Left:
    """The optimal chance that a goal was not reached, after more and more steps, in fractions."""

    def __init__(self, process: DecisionProcess, goal: Mask, greatest: bool) -> None:
        assert process.fractions is not None
        self._process, self._goal, self._choose, self._taken = process, goal, max if greatest else min, 0
        self._left = np.array([Fraction(int(not is_goal)) for is_goal in goal], dtype=object)

    def stays(self, steps: int) -> bool:
        """Whether nothing changes any more by so many steps."""
        before = self.after(steps - 1)
        return bool((self.after(steps) == before).all())

    def after(self, steps: int) -> NDArray[Any]:
        """(n,) after so many steps, not fewer than asked before."""
        process = self._process
        weights = np.array(process.fractions, dtype=object)
        while self._taken < steps:
            rows = np.add.reduceat(weights * self._left[process.indices], process.indptr[:-1])
            ends = zip(process.choice_starts.tolist(), process.choice_starts[1:].tolist(), strict=False)
            left = np.array([self._choose(rows[low:high]) for low, high in ends], dtype=object)
            left[self._goal] = Fraction(0)
            self._left, self._taken = left, self._taken + 1
            if sum(Fraction(number).denominator.bit_length() for number in left) > _MOST_DIGITS:
                raise NoAnswerError("the quantile is too close to its level to be told within the limits")
        return self._left


def best_of(choice_starts: Ints, greatest: bool) -> Callable[[Floats], Floats]:
    """From (rows, M) numbers the best of each state, (n, M)."""
    choose = np.maximum if greatest else np.minimum
    return lambda rows: np.asarray(choose.reduceat(rows, choice_starts[:-1], axis=0))


@dataclass(frozen=True, eq=False)
class OptimalGain(OfGains, Optimum):
    """What is gained in each state until the formula `F condition` holds, and which end of it is asked for."""

    gains: Gains

    is_undecided = Objective.is_undecided

    @property
    def wants_more(self) -> bool:
        """Whether the greatest gain is asked for."""
        return self.greatest

    def gain_bracket(self, rates: Floats, value_error: float) -> Between:
        """Bounds of the optimum for one family of rates; arguments and errors as `Optimum.bracket`."""
        values = self._values(rates[None])
        target, begun = self._begin(values[0])
        policy = self._best(target, values, begun)[0][1]
        solution, start = self._solved(target, policy, values, value_error), self.product.start
        value = solution.value[0]
        infinite, off = np.isinf(value[start]), (solution.error[0] + solution.representation[0])[start]
        share, apart = self._slack(target, values, value, value_error)
        spread = 2 * apart * self._longest(rates, value_error)[start] if apart else 0.0
        told, rough = np.where(infinite, 0, value[start]), self.gains.relative_error + 2**-40
        if self.greatest:
            lower = np.maximum(told - off, 0) * (1 - rough)
            upper = np.where(told > 0, (told + off + spread) * ((1 + share) * (1 + rough)), 0)
        else:
            lower = np.maximum(told - off - spread, 0) * (1 - min(share + rough, 1.0))
            upper = (told + off) * (1 + rough)
        return Between(value[start], np.where(infinite, np.inf, lower), np.where(infinite, np.inf, upper))

    def _longest(self, rates: Floats, value_error: float) -> Floats:
        """(p,) the greatest expected number of steps until the condition holds, off by a quarter of a step at most;
        infinite where it may never hold, or nothing is proven."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        steps = OptimalGain(**{**parts, "greatest": True, "gains": gains_of_time(self.skeleton, Fraction(1))})
        values = steps._values(rates[None])
        target, begun = steps._begin(values[0])
        longest = steps._best(target, values, begun)[0][2].value[0]
        share, apart = steps._slack(target, values, longest, value_error)
        return np.where(apart == 0 and share <= 1 / 4, longest, np.inf)

    def _slack(self, target: Mask, values: Floats, value: Floats, value_error: float) -> tuple[float, float]:
        """How much better some choice is than the policy, rounding included: as a share of what a step gains there,
        and where a step gains nothing."""
        gain = self._gain(values)[0][self.owner]
        weights = values[0, self.skeleton.entry[self.product.edge]]
        with np.errstate(invalid="ignore"):  # what is infinite is left out below
            ahead = np.where(weights > 0, weights * value[self.product.indices], 0)
            worth = np.bincount(self.behind, ahead, len(self.owner)) + gain
            apart = worth - value[self.owner] if self.greatest else value[self.owner] - worth
            apart += worth * (value_error + (np.bincount(self.behind).max(initial=0) + 8) * 2 * ROUNDOFF)
        asked = ~target[self.owner] & np.isfinite(value[self.owner]) & np.isfinite(worth)
        asked[:2] = False
        some, none = asked & (gain > 0), asked & (gain == 0)
        return float((apart[some] / gain[some]).max(initial=0)), float(apart[none].max(initial=0))

    def _values(self, rates: Floats) -> Floats:
        return np.concatenate([super()._values(rates), self.gains.values(rates).T], axis=1)

    def _gain(self, values: Floats) -> Floats:
        """(M, p) what a step gains; of what is decided, any number."""
        return values[:, values.shape[1] - self.skeleton.state_count :][:, np.maximum(self.product.state, 0)]

    def _begin(self, values: Floats) -> tuple[Mask, Ints]:
        """States where nothing is to be chosen, and the policy to begin with."""
        step, p = self.fixed_step(values), self.state_count
        there = values[self.skeleton.entry[self.product.edge]] > 0
        sources, owner = self.behind[there], self.owner
        targets, first = self.product.indices[there], self.first[:-1].copy()
        done = np.arange(p) == ACCEPT
        if self.greatest:
            of = end_components(step)
            return done | coreachable(p, owner[sources], targets, (of >= 0) & ~done), first
        sure = np.ones(p, dtype=bool)
        while True:
            stays = ~marked(len(owner), sources[~sure[targets]])
            kept = stays[sources]
            more = coreachable(p, owner[sources[kept]], targets[kept], done) & sure
            if np.array_equal(more, sure):
                break
            sure = more
        near = done.copy()
        while True:
            closer = marked(len(owner), sources[near[targets]])
            ready = np.flatnonzero(closer & stays & ~near[owner])
            if not len(ready):
                break
            first[owner[ready]] = ready
            near[owner[ready]] = True
        return done, first

    def _solved(self, target: Mask, policy: Ints, values: Floats, value_error: float = ROUNDOFF) -> Solution:
        """What is gained before the condition holds from each product state under a policy, (M, p)."""
        done = np.arange(self.state_count) == ACCEPT
        kept = (policy[self.owner[self.behind]] == self.behind) & ~target[self.owner[self.behind]]
        kept &= values[0, self.skeleton.entry[self.product.edge]] > 0
        plan = towards(self._everywhere, kept, done).plan_of_gains(matrices=len(values))
        gains = self._gain(values)[:, plan.unknown]
        return solve(plan, values, self.skeleton.entry, stochastic=True, value_error=value_error, gains=gains)

    def _worth(self, values: Floats, reached: Floats) -> Floats:
        return super()._worth(values, reached) + self._gain(values)[:, self.owner]

    def _told(self, solution: Solution) -> BatchResult:
        return without_steps(solution.value[:, self.product.start])
