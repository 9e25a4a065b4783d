"""A formula on a skeleton: what every matrix shares, and what all analyses start from.

The skeleton says where each observation leads; the formula's progression says what remains to be met. Their product
is built on every transition that *some* matrix may have, so that a matrix on the edge of the simplex, where
transitions vanish, is only another matrix. Each product state draws its observation from one row of the channel:

    P[p, following[p, y]] += Pr(y | row[p])

Where the world draws, an observation comes with an outcome of that draw, as in the skeleton:

    P[p, following[p, (y, w)]] += Pr(y | row[p]) Pr(w | moving[p])

That keeps detection (the channel row, uncertain) apart from motion (`following`, certain).

Where the world decides, a product state has several *alternatives*, one for each choice of the world; a row is an
alternative then, and `owner` says of which product state.

What requirements ask beside the probability of a formula, for many matrices at once.

Each is an `Objective` whose `probabilities` are its numbers, so that draws of matrices give it an interval as they
give one to a probability. What needs slopes, or bounds over all matrices, is known for probabilities only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar

import numpy as np

from verifier.base.arrays import Floats, Ints
from verifier.base.errors import NoAnswerError
from verifier.checking.batch import BatchResult, expected_gains, satisfaction_probabilities
from verifier.checking.product import MOST_OBLIGATIONS, Product, build_product
from verifier.checking.step_bounds import long_window
from verifier.checking.stepping import NEVER, Steps, gained, quantiles
from verifier.language.expressions.syntax import Node
from verifier.systems.rewards import Gains
from verifier.systems.skeleton import Skeleton


def columns_of(objectives: Iterable[Objective]) -> Ints:
    """(k, 2) the (bin, column) pairs whose rates some of them, of one skeleton, depend on."""
    return np.unique(np.concatenate([objective.columns_needed for objective in objectives]), axis=0)


@dataclass(frozen=True, eq=False)
class Objective:
    """The product of a skeleton with a formula, by observations.

    Attributes:
        skeleton: states, transitions and the channel.
        product: of the skeleton's graph, every transition of any matrix included, with the formula; its start
            states are those of the skeleton.
        row: (r,) channel row that each alternative draws its observation from; -1 where the next state does not
            depend on what is observed. A chain has one alternative for each product state, r = p.
        following: (r, observations * outcomes) product state that each observation leads to with each outcome of
            what the world draws; `ACCEPT` and `REJECT` lead to themselves.
        moving: (r,) channel row that each alternative draws that outcome from; any where all lead to one state.
        most: what none of its numbers can exceed.
        plain: whether its numbers are probabilities of a formula, of which bounds over all matrices are known; see
            `verifier.analysis.objective` for the others.
        slopes: whether derivatives of its numbers are known.
        effort: how much more work it is than the probability of its formula, about.
    """

    skeleton: Skeleton
    product: Product
    row: Ints
    following: Ints
    moving: Ints

    most: ClassVar[float] = 1.0
    plain: ClassVar[bool] = True
    slopes: ClassVar[bool] = True
    _effort: ClassVar[int] = 1

    @property
    def effort(self) -> int:
        """See above."""
        return self._effort

    @property
    def state_count(self) -> int:
        """Number of product states, p."""
        return self.product.state_count

    @property
    def whole(self) -> Objective:
        """The objective with all choices of a world that keeps to some of them here."""
        return self

    @property
    def owner(self) -> Ints:
        """(r,) the product state of each alternative, increasing."""
        return np.arange(self.state_count)

    @property
    def sources(self) -> Ints:
        """(q,) the alternative behind each transition of the product."""
        return self.product.sources

    @property
    def chances(self) -> Floats:
        """(r, outcomes) how likely each outcome of what the world draws is in each alternative."""
        return self.skeleton.channel.chances()[self.moving]

    def mean_behind(self, worth: Floats, states: Ints) -> Floats:
        """(k, observations) what each observation is worth in k product states: the mean, over what the world draws,
        of the (p,) worth of the states that it leads to."""
        chances = self.chances[states]
        shape = len(states), len(self.skeleton.channel.observations), chances.shape[1]
        return np.asarray((worth[self.following[states]].reshape(shape) * chances[:, None]).sum(axis=2))

    @property
    def columns_needed(self) -> Ints:
        """(k, 2) the (bin, column) pairs whose rates its numbers depend on."""
        return self.skeleton.columns_needed()

    def ranges(self, side: str) -> bool:
        """Whether a bound of its probability from one side, "lower" or "upper", is about all its alternatives."""
        return True

    def is_undecided(self, rates: Floats) -> bool:
        """Whether its numbers are not known for (bins, predicted, true) rates like these; never for a chain."""
        return False

    def probabilities(self, rates: Floats, *, roughly: bool = False) -> BatchResult:
        """The formula's probability from every initial state, for (M, bins, predicted, true) rates.

        `roughly` as for `satisfaction_probabilities`.
        """
        values = self.skeleton.entry_values(rates)
        return satisfaction_probabilities(self.product, values, self.skeleton.entry, roughly=roughly)


def build_objective(
    skeleton: Skeleton, formula: Node, propositions: Mapping[str, Node], max_states: int
) -> Objective:
    """The product of a skeleton with a formula.

    Args:
        skeleton: of one planner, environment and set of constants.
        formula: over proposition names, `true`, `false`, connectives and temporal operators.
        propositions: name -> the state condition it stands for.
        max_states: most product states to build.

    Raises:
        NoAnswerError: the product or the formula's progression would be larger.
    """
    product = product_of(skeleton, skeleton.indptr, formula, propositions, max_states)
    return Objective(skeleton, product, *by_observation(skeleton, product))


def product_of(
    skeleton: Skeleton, indptr: Ints, formula: Node, propositions: Mapping[str, Node], max_states: int
) -> Product:
    """The product of a formula with a graph on the states of a skeleton, whose rows start at `indptr`; errors as
    `build_objective`."""
    labels = {name: skeleton.mask_of(node) for name, node in propositions.items()}
    window = long_window(formula, labels, indptr, skeleton.indices)
    if window is not None and window.has_no_product:
        raise NoAnswerError(
            f"the formula has about {window.obligations} obligations, one for each step left; the limit is "
            f"{MOST_OBLIGATIONS}",
            hint="shorten the window of the bounded operator; `verify run` and `compare` count its steps instead, "
            "on chains",
        )
    return build_product(indptr, skeleton.indices, labels, formula, skeleton.starts, max_states=max_states)


def by_observation(
    skeleton: Skeleton, product: Product, owner: Ints | None = None, sources: Ints | None = None
) -> tuple[Ints, Ints, Ints]:
    """`row`, `following` and `moving` of `Objective`.

    Where the world decides, `owner` has the product state of each alternative, and `sources` the alternative of each
    product transition.
    """
    owner = np.arange(product.state_count) if owner is None else owner
    sources = product.sources if sources is None else sources
    led, drawn = led_by_observation(skeleton, len(owner), sources, skeleton.entry[product.edge], product.indices)
    following, moving = np.where(led < 0, owner[:, None], led), np.maximum(drawn, 0)
    by_outcome = following.reshape(len(following), len(skeleton.channel.observations), -1)
    depends = (by_outcome != by_outcome[:, :1]).any(axis=(1, 2))
    return np.where(depends, moving, -1), following, moving


def led_by_observation(
    skeleton: Skeleton, count: int, sources: Ints, entry: Ints, targets: Ints
) -> tuple[Ints, Ints]:
    """(count, observations * outcomes) where each observation leads, and (count,) the row of the channel that it is
    drawn from; -1 for nowhere, and for none.

    Args:
        sources, entry, targets: of each transition.
    """
    width = skeleton.entry_observations.shape[1]
    # The last entry is the constant 1: every observation leads there.
    told = np.concatenate([skeleton.entry_observations, np.ones((1, width), dtype=bool)])
    led, row = np.full((count, width), -1, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    for observation in range(width):
        along = told[entry, observation]
        led[sources[along], observation] = targets[along]
    drawn = entry < len(skeleton.entry_row)
    row[sources[drawn]] = skeleton.entry_row[entry[drawn]]
    return led, row


_NUMBERS_AT_ONCE = 2**23


@dataclass(frozen=True, eq=False)
class Conditional(Objective):
    """P(A given B): the objective itself is A and B, `given` is B."""

    given: Objective

    plain: ClassVar[bool] = False
    _effort: ClassVar[int] = 2

    def probabilities(self, rates: Floats, *, roughly: bool = False) -> BatchResult:
        """As `Objective.probabilities`, of P(A and B) / P(B).

        Raises:
            NoAnswerError: B has probability 0 for some of the matrices.
        """
        both, given = super().probabilities(rates, roughly=roughly), self.given.probabilities(rates, roughly=roughly)
        if not np.all(given.probability > 0):
            raise NoAnswerError(
                "what is given has probability 0 for a matrix that was drawn: nothing follows from it"
            )
        value = np.minimum(both.probability / given.probability, 1.0)
        error = (both.error_bound + given.error_bound) / given.probability
        return without_steps(value, error)


class OfGains(Objective):
    """What is said of `gains`, which may depend on reports that transitions do not depend on."""

    gains: Gains

    most: ClassVar[float] = math.inf
    plain: ClassVar[bool] = False

    @property
    def columns_needed(self) -> Ints:
        """As `Objective.columns_needed`."""
        return np.unique(np.concatenate([super().columns_needed, self.gains.columns_needed()]), axis=0)


@dataclass(frozen=True, eq=False)
class Gained(OfGains):
    """What is gained until the objective's formula `F condition` holds, or in so many steps."""

    gains: Gains
    steps: int | None

    @property
    def effort(self) -> int:
        """See `Objective`."""
        return 2 if self.steps is None else max(1, self.steps)

    def probabilities(self, rates: Floats, *, roughly: bool = False) -> BatchResult:
        """As `Objective.probabilities`, of what is gained; infinite where the condition may never hold."""
        return _in_parts(self, rates, lambda part: self._gained(part, roughly=roughly))

    def _gained(self, rates: Floats, *, roughly: bool) -> BatchResult:
        skeleton, values = self.skeleton, self.skeleton.entry_values(rates)
        gains = self.gains.values(rates)
        if self.steps is not None:
            total = gained(steps_of(skeleton, values), gains, self.steps)[skeleton.starts].T
            return without_steps(total, total)
        return expected_gains(
            self.product,
            values,
            np.ascontiguousarray(gains.T),
            skeleton.entry,
            gain_error=self.gains.relative_error,
            roughly=roughly,
        )


@dataclass(frozen=True, eq=False)
class Quantile(Objective):
    """The time by which the objective's formula `F condition` holds with probability `level`; steps take `step_s`."""

    condition: Node
    level: Fraction
    step_s: Fraction

    most: ClassVar[float] = math.inf
    plain: ClassVar[bool] = False
    _effort: ClassVar[int] = 50

    def probabilities(self, rates: Floats, *, roughly: bool = False) -> BatchResult:
        """As `Objective.probabilities`, of the time; infinite where none is enough."""
        return _in_parts(self, rates, self._quantiles)

    def _quantiles(self, rates: Floats) -> BatchResult:
        skeleton, values = self.skeleton, self.skeleton.entry_values(rates)
        reached = Objective.probabilities(self, rates)
        goal = skeleton.mask_of(self.condition)
        times = quantiles(steps_of(skeleton, values), goal, skeleton.starts, self.level, reached.probability)
        value = np.where(times == NEVER, np.inf, times * float(self.step_s))
        return without_steps(value)


def steps_of(skeleton: Skeleton, values: Floats) -> Steps:
    """One step of the chains with these (M, entries) values; of a world that decides, of each of its choices."""
    return Steps(skeleton.indptr, skeleton.indices, values.T, skeleton.entry)


def _in_parts(objective: Objective, rates: Floats, solve: Callable[[Floats], BatchResult]) -> BatchResult:
    """The results of some matrices at a time: numbers are needed for each transition, or state, of each."""
    size = max(1, _NUMBERS_AT_ONCE // len(objective.skeleton.indices))
    parts = [solve(rates[low : low + size]) for low in range(0, len(rates), size)]
    return BatchResult(
        *(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(BatchResult))
    )


def without_steps(value: Floats, error: Floats | None = None) -> BatchResult:
    """A result of which nobody asks how many steps were taken; an `error` of 0 is what the graph alone decides, and 1
    where none is given."""
    zero = np.zeros_like(value)
    return BatchResult(value, zero + 1 if error is None else error, zero, zero, value, value)
