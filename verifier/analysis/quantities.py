"""What requirements ask beside the probability of a formula, for many matrices at once.

Each is an `Objective` whose `probabilities` are its numbers, so that draws of matrices give it an interval as they
give one to a probability. What needs slopes, or bounds over all matrices, is known for probabilities only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar

import numpy as np

from verifier.analysis.objective import Objective
from verifier.base.arrays import Floats, Ints
from verifier.base.errors import NoAnswerError
from verifier.checking.batch import BatchResult, expected_gains
from verifier.checking.stepping import NEVER, Steps, gained, quantiles
from verifier.language.expressions.syntax import Node
from verifier.systems.rewards import Gains

_NUMBERS_AT_ONCE = 2**23
_QUANTILE_EFFORT = 50
"""A quantile takes about so many times what a probability does."""


@dataclass(frozen=True, eq=False)
class Conditional(Objective):
    """P(A given B): the objective itself is A and B, `given` is B."""

    given: Objective

    most: ClassVar[float] = 1.0
    plain: ClassVar[bool] = False

    @property
    def effort(self) -> int:
        """See `Objective`."""
        return 2

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
        return _only(value, error)


@dataclass(frozen=True, eq=False)
class Gained(Objective):
    """What is gained until the objective's formula `F condition` holds, or in so many steps."""

    gains: Gains
    steps: int | None

    most: ClassVar[float] = math.inf
    plain: ClassVar[bool] = False

    @property
    def effort(self) -> int:
        """See `Objective`."""
        return 2 if self.steps is None else max(1, self.steps)

    @property
    def columns_needed(self) -> Ints:
        """As `Objective.columns_needed`: gains may depend on reports that transitions do not depend on."""
        return np.unique(np.concatenate([super().columns_needed, self.gains.columns_needed()]), axis=0)

    def probabilities(self, rates: Floats, *, roughly: bool = False) -> BatchResult:
        """As `Objective.probabilities`, of what is gained; infinite where the condition may never hold."""
        return _in_parts(self, rates, lambda part: self._gained(part, roughly=roughly))

    def _gained(self, rates: Floats, *, roughly: bool) -> BatchResult:
        skeleton, values = self.skeleton, self.skeleton.entry_values(rates)
        gains = self.gains.values(rates)
        if self.steps is not None:
            steps = Steps(skeleton.indptr, skeleton.indices, values.T, skeleton.entry)
            found = gained(steps, gains, self.steps)[skeleton.starts].T
            return _only(found, found)
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

    @property
    def effort(self) -> int:
        """See `Objective`."""
        return _QUANTILE_EFFORT

    def probabilities(self, rates: Floats, *, roughly: bool = False) -> BatchResult:
        """As `Objective.probabilities`, of the time; infinite where none is enough."""
        return _in_parts(self, rates, self._quantiles)

    def _quantiles(self, rates: Floats) -> BatchResult:
        skeleton, values = self.skeleton, self.skeleton.entry_values(rates)
        reached = Objective.probabilities(self, rates)
        goal = skeleton.mask_of(self.condition)
        steps = Steps(skeleton.indptr, skeleton.indices, values.T, skeleton.entry)
        found = quantiles(steps, goal, skeleton.starts, self.level, reached.probability)
        value = np.where(found == NEVER, np.inf, found * float(self.step_s))
        return _only(value, np.ones_like(value))


def _in_parts(objective: Objective, rates: Floats, solve: Callable[[Floats], BatchResult]) -> BatchResult:
    """The results of some matrices at a time: numbers are needed for each transition, or state, of each."""
    size = max(1, _NUMBERS_AT_ONCE // len(objective.skeleton.indices))
    parts = [solve(rates[low : low + size]) for low in range(0, len(rates), size)]
    return BatchResult(
        *(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(BatchResult))
    )


def _only(value: Floats, error: Floats) -> BatchResult:
    """A result of which nobody asks how many steps were taken; an `error` of 0 is what the graph alone decides."""
    zero = np.zeros_like(value)
    return BatchResult(value, error, zero, zero, zero, value, value)
