"""The least or the greatest probability of a formula over all that a world may decide.

The world knows the whole past, and so does its strategy: on the product with the formula's progression it needs no
memory until it stays in an end component for good, where it makes the formula hold, or fail, as it likes, if it can
(`robust.graph`). So an optimum is the greatest probability of reaching such a component, and 1 minus that for the
least probability of the formula: the world then wants it to fail.

    policy iteration          which choice each product state makes, for many matrices at once; the batch engine
                              solves the chain of each policy, which bounds the optimum from within
    `robust.solve`            a proof that no choice does better, which bounds it from without

Policies that stop improving are optimal: where no choice is better, the probability of reaching the components under
the policy solves the equations of which the optimum is the least solution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from verifier.analysis.objective import Objective, by_observation, product_of
from verifier.analysis.robust.graph import Components, decided_components
from verifier.analysis.robust.policy import first_policy, make_nodes
from verifier.analysis.robust.region import NOTHING_TOLD
from verifier.analysis.robust.solve import greatest_reach
from verifier.analysis.robust.step import UncertainStep
from verifier.base.arrays import ROUNDOFF, Floats, Ints, Mask, grouped, marked, rows_of
from verifier.base.budget import Cache
from verifier.base.errors import EngineError, NoAnswerError
from verifier.base.graphs import ranges
from verifier.checking.batch import BatchResult, gathered
from verifier.checking.linear import Solution, solve
from verifier.checking.plan import towards
from verifier.checking.product import Product
from verifier.language.expressions.syntax import Node
from verifier.systems.strategies import StrategySkeleton

MOST_ROUNDS = 1000
_NOISE = 2.0**-42
"""A choice is better if it gains more than this share of what it gives: less could be rounding."""
_NUMBERS_AT_ONCE = 2**23
_MOST_QUESTIONS = 4


@dataclass(frozen=True, eq=False)
class Optimum(Objective):
    """A formula on the choices of a world that decides, and which of its probabilities is asked for.

    Attributes:
        first: (p + 1,) int64, where the alternatives of each product state begin.
        behind: (q,) int64, the alternative behind each transition of the product, increasing.
        greatest: whether the greatest probability is asked for, or the least.
        part_of: the optimum over all choices, where the world keeps to some of them.
    """

    first: Ints
    behind: Ints
    greatest: bool
    part_of: Optimum | None = field(default=None, kw_only=True)

    slopes: ClassVar[bool] = False
    _effort: ClassVar[int] = 10

    @property
    def wants_more(self) -> bool:
        """Whether policies are to reach the target as often as possible: for both ends of a probability."""
        return True

    @property
    def whole(self) -> Optimum:
        """As `Objective.whole`."""
        return self.part_of or self

    @property
    def owner(self) -> Ints:
        """As `Objective.owner`."""
        return rows_of(self.first)

    @property
    def sources(self) -> Ints:
        """As `Objective.sources`."""
        return self.behind

    def probabilities(self, rates: Floats, *, roughly: bool = False) -> BatchResult:
        """As `Objective.probabilities`, of the optimum; errors are those of the best policy's own probability.

        Raises:
            NoAnswerError: what staying in some end component means is not known.
        """
        values = self._values(rates)
        used = np.unique(self.skeleton.entry[self.product.edge])
        patterns, kind = np.unique(values[:, used] > 0, axis=0, return_inverse=True)
        parts: list[tuple[Ints, BatchResult]] = []
        size = max(1, _NUMBERS_AT_ONCE // max(len(self.product.edge), 1))
        for number in range(len(patterns)):
            alike = np.flatnonzero(kind.ravel() == number)
            target, begun = self._begin(values[alike[0]])
            policy = self._best(target, values[alike[:1]], begun)[0][1]
            for low in range(0, len(alike), size):
                at = alike[low : low + size]
                parts += [
                    (at[rows], self._told(solution)) for rows, _, solution in self._best(target, values[at], policy)
                ]
        return gathered(parts, (len(values), len(self.product.start)))

    def _values(self, rates: Floats) -> Floats:
        """(M, ..) what policies are best for: the values of the entries first."""
        return self.skeleton.entry_values(rates)

    def _begin(self, values: Floats) -> tuple[Mask, Ints]:
        """The states where nothing is to be chosen, and the policy to begin with."""
        goal = self.goal(values)
        if goal.assumed:
            raise NoAnswerError(
                "whether the world can meet what remains of the formula by staying somewhere is not known"
            )
        return goal.sure, self._first_policy(goal.sure, values)

    def _first_policy(self, target: Mask, values: Floats) -> Ints:
        weights = values[self.skeleton.entry[self.product.edge]]
        return first_policy(self.first, self.behind, self.product.indices, weights, target)

    def ranges(self, side: str) -> bool:
        """As `Objective.ranges`: else a bound that holds while the world keeps to some strategy is a bound."""
        return self.greatest == (side == "upper")

    def is_undecided(self, rates: Floats) -> bool:
        """As `Objective.is_undecided`: whether what staying in some end component means is not known."""
        return self.goal(self.skeleton.entry_values(rates)).assumed

    def bracket(self, rates: Floats, value_error: float) -> Bracket:
        """Proven bounds of the optimum for one family of (bins, predicted, true) rates.

        Args:
            rates: the rates.
            value_error: largest relative error of each probability that is made of them.

        Raises:
            EngineError, LimitError: from deciding components and solving.
        """
        values = self.skeleton.entry_values(rates)
        goal = self.goal(values)
        policy = self._best(goal.sure, values[None], self._first_policy(goal.sure, values))[0][1]
        inner = self._solved(goal.sure, policy, values[None], value_error)
        outer = greatest_reach(
            self.fixed_step(values, value_error),
            make_nodes(self.fixed_step(values), goal.components.of),
            goal.possible,
            guide=inner.value[0],
        ).value[self.product.start]
        start = self.product.start
        value, off = (array[0, start] for array in (inner.value, inner.error + inner.representation))
        least, most = np.maximum(value - off, 0), np.minimum(np.maximum(outer, value), 1)
        if not self.greatest:
            value, least, most = 1 - value, complement(most, -np.inf), complement(least, np.inf)
        return Bracket(value, least, most, self._taken(goal, policy, values), goal.sure)

    def worth(self, rates: Floats) -> tuple[Floats, Mask]:
        """(p,) the probability with which the world can get what it wants from each product state, and whether it may
        stay there; errors as `probabilities`."""
        values = self.skeleton.entry_values(rates)
        target, begun = self._begin(values)
        return self._best(target, values[None], begun)[0][2].value[0], self.goal(values).components.of >= 0

    def settled(self, rates: Floats) -> Optimum:
        """The same with one strategy of the world, which is best for these rates, and with all ways of staying where
        it has won."""
        if self.part_of is not None:
            return self
        values = self.skeleton.entry_values(rates)
        goal = self.goal(values)
        policy = self._best(goal.sure, values[None], self._first_policy(goal.sure, values))[0][1]
        return self._keeping(self._taken(goal, policy, values))

    def _taken(self, goal: Goal, policy: Ints, values: Floats) -> Mask:
        """(r,) the alternatives that the world takes: those of the policy, and where it has won those that stay, as
        far as all of them together win."""
        there = values[self.skeleton.entry[self.product.edge]] > 0
        of, owner = goal.components.of, self.owner
        leaves = marked(len(owner), self.behind[there & (of[self.product.indices] != of[owner[self.behind]])])
        for (_, holds), way in goal.components.ways.items():
            for state, led in way.items() if holds == self.greatest else ():
                for row in range(*self.first[state : state + 2].tolist()):
                    leaves[row] |= not led.issuperset(self.product.indices[there & (self.behind == row)].tolist())
        return np.where(goal.sure[owner], ~leaves, policy[owner] == np.arange(len(owner)))

    def _keeping(self, kept: Mask) -> Optimum:
        """The same with some of the alternatives, at least one of each product state."""
        product, inside = self.product, kept[self.behind]
        first = np.concatenate([[0], np.cumsum(np.bincount(self.owner[kept], minlength=self.state_count))])
        behind = (np.cumsum(kept) - 1)[self.behind[inside]]
        lengths = np.bincount(self.owner[self.behind[inside]], minlength=self.state_count)
        own = replace(
            product,
            indptr=np.concatenate([[0], np.cumsum(lengths)]),
            indices=product.indices[inside],
            edge=product.edge[inside],
        )
        arrays = self.row[kept], self.following[kept], self.moving[kept]
        return Optimum(self.skeleton, own, *arrays, first, behind, self.greatest, part_of=self)

    def fixed_step(self, values: Floats, error: float = ROUNDOFF) -> UncertainStep:
        """The alternatives with the probabilities that (entries,) values give: nothing but the world is uncertain."""
        count, width = len(self.owner), int(np.bincount(self.sources).max(initial=1))
        place = np.arange(len(self.sources)) - np.searchsorted(self.sources, self.sources)
        following, motion = np.repeat(self.owner[:, None], width, axis=1), np.zeros((count, width))
        following[self.sources, place] = self.product.indices
        motion[self.sources, place] = values[self.skeleton.entry[self.product.edge]]
        motion[:2, 0] = 1.0  # `false` and `true`
        nothing = np.zeros((1, 1), dtype=np.int64)
        return UncertainStep(
            following,
            motion,
            np.zeros((count, 0), dtype=np.int64),
            nothing,
            nothing,
            NOTHING_TOLD,
            np.zeros((count, 0), dtype=np.int64),
            (),
            self.owner,
            error,
        )

    def goal(self, values: Floats) -> Goal:
        """What the world wants to reach where the entries have these values; errors as `decided_components`."""
        components = decided_components(self, self.fixed_step(values))
        possible, assumed = components.won(self.greatest)
        return Goal(components, possible & ~assumed, possible)

    def _best(self, target: Mask, values: Floats, policy: Ints) -> list[tuple[Ints, Ints, Solution]]:
        """Policies that are best for (M, entries) values: for each the rows that it is best for, the alternative that
        each product state chooses, and what that gives for these rows."""
        pending = [(np.arange(len(values)), policy)]
        best: list[tuple[Ints, Ints, Solution]] = []
        for _ in range(MOST_ROUNDS * len(values)):
            if not pending:
                return best
            rows, own = pending.pop()
            better, solution = self._improved(target, own, values[rows])
            same = (better == own).all(axis=1)
            if same.any():
                part = {field.name: getattr(solution, field.name)[same] for field in fields(solution)}
                best.append((rows[same], own, Solution(**part)))
            others = grouped((better[place].tobytes(), place) for place in np.flatnonzero(~same).tolist())
            pending += [(rows[places], better[places[0]]) for places in others.values()]
        raise EngineError(f"no best policy was found in {MOST_ROUNDS} rounds")

    def _improved(self, target: Mask, policy: Ints, values: Floats) -> tuple[Ints, Solution]:
        """(M, p) a better alternative for each product state where there is one, else that of the policy; and what
        the policy gives."""
        solution = self._solved(target, policy, values)
        reached = solution.value
        worth = self._worth(values, reached)
        most = (np.maximum if self.wants_more else np.minimum).reduceat(worth, self.first[:-1], axis=1)
        with np.errstate(invalid="ignore"):  # what stays infinite is not better
            gains = most - reached if self.wants_more else reached - most
        matrix, state = np.nonzero((gains > _NOISE * most) & ~target)
        result = np.repeat(policy[None], len(values), axis=0)
        # The first of the best alternatives.
        is_best = worth == most[:, self.owner]
        place = np.where(is_best, np.arange(len(self.owner)), len(self.owner))
        result[matrix, state] = np.minimum.reduceat(place, self.first[:-1], axis=1)[matrix, state]
        return result, solution

    def _worth(self, values: Floats, reached: Floats) -> Floats:
        """(M, r) what each alternative is worth if its states are worth (M, p)."""
        weights = values[:, self.skeleton.entry[self.product.edge]]
        begun = np.searchsorted(self.behind, np.arange(2, len(self.owner)))
        worth = np.zeros((len(values), len(self.owner)))
        behind = np.where(weights > 0, reached[:, self.product.indices], 0)
        worth[:, 2:] = np.add.reduceat(weights * behind, begun, axis=1)
        return worth

    def _solved(self, target: Mask, policy: Ints, values: Floats, value_error: float = ROUNDOFF) -> Solution:
        """The probability of reaching the target from each product state under a policy, (M, p)."""
        kept = policy[self.owner[self.behind]] == self.behind
        kept &= values[0, self.skeleton.entry[self.product.edge]] > 0  # all values have the same transitions
        question = self._questions.kept(
            (kept.tobytes(), target.tobytes()), lambda: towards(self._everywhere, kept, target)
        )
        plan = question.plan(accepting=True, exact_one=True, matrices=len(values))
        return solve(plan, values, self.skeleton.entry, stochastic=True, value_error=value_error)

    @cached_property
    def _questions(self) -> Cache:
        return Cache(_MOST_QUESTIONS)

    @cached_property
    def _everywhere(self) -> Product:
        return replace(self.product, start=np.arange(self.state_count))

    def _told(self, solution: Solution) -> BatchResult:
        start = self.product.start
        value, error, moved, steps = (
            np.asarray(getattr(solution, name)[:, start]) for name in ("value", "error", "representation", "steps")
        )
        value, error = np.clip(value, 0, 1), np.minimum(error, 1)
        value = value if self.greatest else 1 - value
        lower, upper = np.maximum(value - error, 0), np.minimum(value + error, 1)
        return BatchResult(value, error, np.minimum(moved, 1), steps, lower, upper)


@dataclass(frozen=True, eq=False)
class Goal:
    """What the world wants to reach under some support: components in which it can win, surely and possibly."""

    components: Components
    sure: Mask
    possible: Mask

    @property
    def assumed(self) -> bool:
        """Whether it is only assumed that it can win in some of them."""
        return bool(np.any(self.sure != self.possible))


@dataclass(frozen=True, eq=False)
class Between:
    """A number at the m initial states, optimal over all that a world may decide.

    Attributes:
        value: (m,) that of the best policy that was found.
        lower, upper: (m,) proven bounds of the optimum.
    """

    value: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True, eq=False)
class Bracket(Between):
    """An optimal probability.

    Attributes:
        taken: (r,) the alternatives that the world takes, one of each product state but in the target.
        target: (p,) where the world stays and has won.
    """

    taken: Mask
    target: Mask


def complement(end: Floats, outwards: float) -> Floats:
    """1 - end, rounded outwards where it is rounded."""
    return np.where(np.isin(end, (0, 1)), 1 - end, np.clip(np.nextafter(1 - end, outwards), 0, 1))


def build_optimum(
    choices: StrategySkeleton, formula: Node, propositions: Mapping[str, Node], max_states: int, greatest: bool
) -> Optimum:
    """The product of a world's choices with a formula; arguments and errors as `build_objective`.

    Args:
        choices: of a world that decides.
        greatest: whether its greatest probability is asked for.
    """
    skeleton = choices.choices
    product = product_of(skeleton, skeleton.indptr[choices.choice_starts], formula, propositions, max_states)
    return optimum_on(choices, product, greatest)


def optimum_on(choices: StrategySkeleton, product: Product, greatest: bool) -> Optimum:
    """The same from the product of the graph of all choices, a state with the transitions of all its choices."""
    skeleton = choices.choices
    counts = np.diff(choices.choice_starts)[np.maximum(product.state, 0)]
    counts[:2] = 1
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    owner, lengths = rows_of(first), np.diff(skeleton.indptr)
    states = product.state[2:]
    chosen = ranges(choices.choice_starts[states], choices.choice_starts[states + 1])
    sources = 2 + np.repeat(np.arange(len(chosen)), lengths[chosen])
    return Optimum(skeleton, product, *by_observation(skeleton, product, owner, sources), first, sources, greatest)
