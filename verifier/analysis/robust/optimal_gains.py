"""The least or the greatest that is expected to be gained before a condition holds, over all that a world may decide.

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
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar

import numpy as np

from verifier.analysis.robust.graph import end_components
from verifier.analysis.robust.optimum import Optimum
from verifier.base.arrays import ROUNDOFF, Floats, Ints, Mask
from verifier.checking.batch import BatchResult
from verifier.checking.graphs import coreachable
from verifier.checking.linear import Solution, solve
from verifier.checking.plan import towards
from verifier.language.ltl.progression import ACCEPT
from verifier.systems.rewards import Gains, gains_of_time


@dataclass(frozen=True, eq=False)
class GainBracket:
    """An optimal gain at the m initial states: that of the best policy that was found, and proven bounds."""

    value: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True, eq=False)
class OptimalGain(Optimum):
    """What is gained in each state until the formula `F condition` holds, and which end of it is asked for."""

    gains: Gains

    most: ClassVar[float] = math.inf
    plain: ClassVar[bool] = False

    @property
    def wants_more(self) -> bool:
        """Whether the greatest gain is asked for."""
        return self.greatest

    @property
    def columns_needed(self) -> Ints:
        """As `Objective.columns_needed`: gains may depend on reports that transitions do not depend on."""
        return np.unique(np.concatenate([super().columns_needed, self.gains.columns_needed()]), axis=0)

    def is_undecided(self, rates: Floats) -> bool:
        """As `Objective.is_undecided`: never."""
        return False

    def gain_bracket(self, rates: Floats, value_error: float) -> GainBracket:
        """Bounds of the optimum for one family of rates; arguments and errors as `Optimum.bracket`."""
        values = self._values(rates[None])
        target, begun = self._begin(values[0])
        policy = self._best(target, values, begun)[0][1]
        found, start = self._solved(target, policy, values, value_error), self.product.start
        value = found.value[0]
        off = np.where(np.isfinite(value), found.error[0] + found.representation[0], 0)
        share, apart = self._slack(target, values, value, value_error)
        spread = 2 * apart * self._longest(rates, value_error)[start] if apart else 0.0
        slack = (1 + share) * (1 + self.gains.relative_error + 2**-40)
        inner = (value - off)[start], (value + off)[start]
        if self.greatest:
            lower, upper = np.maximum(inner[0] * (1 - 2**-40), 0), np.where(value[start] > 0, inner[1] + spread, 1.0)
            upper = np.where(value[start] > 0, upper * slack, 0)
        else:
            less = 1 - min(share + self.gains.relative_error + 2**-40, 1.0)
            lower, upper = np.maximum((inner[0] - spread) * less, 0), inner[1] * (1 + 2**-40)
        infinite = np.isinf(value[start])
        return GainBracket(value[start], np.where(infinite, np.inf, lower), np.where(infinite, np.inf, upper))

    def _longest(self, rates: Floats, value_error: float) -> Floats:
        """(p,) the greatest expected number of steps until the condition holds, off by a quarter of a step at most;
        infinite where it may never hold, or nothing is proven."""
        parts = {each.name: getattr(self, each.name) for each in fields(self)}
        steps = OptimalGain(**{**parts, "greatest": True, "gains": gains_of_time(self.skeleton, Fraction(1))})
        values = steps._values(rates[None])
        target, begun = steps._begin(values[0])
        found = steps._best(target, values, begun)[0][2].value[0]
        share, apart = steps._slack(target, values, found, value_error)
        return np.where(apart == 0 and share <= 1 / 4, found, np.inf)

    def _slack(self, target: Mask, values: Floats, value: Floats, value_error: float) -> tuple[float, float]:
        """How much better some choice is than the policy, rounding included: as a share of what a step gains there,
        and where a step gains nothing."""
        gain = self._gain(values)[0][self.owner]
        weights = values[0, self.skeleton.entry[self.product.edge]]
        behind = np.where(weights > 0, value[self.product.indices], 0)
        worth = np.bincount(self.behind, weights * behind, len(self.owner)) + gain
        size = np.where(np.isfinite(worth), worth, 0)
        with np.errstate(invalid="ignore"):  # what is infinite is left out below
            apart = worth - value[self.owner] if self.greatest else value[self.owner] - worth
        apart = apart + size * (value_error + (np.bincount(self.behind).max(initial=0) + 8) * 2 * ROUNDOFF)
        asked = ~target[self.owner] & np.isfinite(value[self.owner]) & np.isfinite(worth)
        asked[:2] = False
        some, none = (asked & (apart > 0) & each for each in (gain > 0, gain == 0))
        return float((apart[some] / gain[some]).max(initial=0)), float(apart[none].max(initial=0))

    def _values(self, rates: Floats) -> Floats:
        return np.concatenate([super()._values(rates), self.gains.values(rates).T], axis=1)

    def _gain(self, values: Floats) -> Floats:
        """(M, p) what a step gains."""
        states = self.skeleton.state_count
        gained = values[:, values.shape[1] - states :][:, np.maximum(self.product.state, 0)]
        gained[:, :2] = 0
        return gained

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
            stays = np.ones(len(owner), dtype=bool)
            stays[sources[~sure[targets]]] = False
            kept = stays[sources]
            more = coreachable(p, owner[sources[kept]], targets[kept], done) & sure
            if np.array_equal(more, sure):
                break
            sure = more
        near = done.copy()
        while True:
            closer = np.zeros(len(owner), dtype=bool)
            closer[sources[near[targets]]] = True
            ready = np.flatnonzero(closer & stays & ~near[owner])
            if not len(ready):
                break
            first[owner[ready]] = ready
            near[owner[ready]] = True
        return done | ~sure, first

    def _solved(self, target: Mask, policy: Ints, values: Floats, value_error: float = ROUNDOFF) -> Solution:
        """What is gained before the condition holds from each product state under a policy, (M, p)."""
        done = np.arange(self.state_count) == ACCEPT
        kept = (policy[self.owner[self.behind]] == self.behind) & ~target[self.owner[self.behind]]
        kept &= values[0, self.skeleton.entry[self.product.edge]] > 0
        plan = towards(self._everywhere, kept, done).plan_of_gains(matrices=len(values))
        entries = values[:, : values.shape[1] - self.skeleton.state_count]
        return solve(
            plan,
            np.ascontiguousarray(entries),
            self.skeleton.entry,
            stochastic=True,
            value_error=value_error,
            gains=self._gain(values)[:, plan.unknown],
        )

    def _worth(self, values: Floats, reached: Floats) -> Floats:
        return super()._worth(values, reached) + self._gain(values)[:, self.owner]

    def _told(self, found: Solution) -> BatchResult:
        value = found.value[:, self.product.start]
        zero = np.zeros_like(value)
        return BatchResult(value, zero + 1, zero, zero, zero, value, value)
