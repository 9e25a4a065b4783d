"""The most probable violating runs from one initial state, put together from the parts that `verify explain` uses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.counterexamples.runs import (
    Run,
    RunGraph,
    prospects,
    violation_probability,
    with_exact,
)
from verifier.analysis.objective import Objective
from verifier.analysis.sensitivity.adjoint import Values


@dataclass(frozen=True, eq=False)
class Counterexamples:
    """The most probable violating runs from one initial state, most probable first.

    Attributes:
        runs: as many as were asked for, or all there are.
        complete: whether there are no others.
        total: probability that the requirement's formula fails (with `satisfying`: holds), by the batch engine.
        total_error: how far `total` can be off numerically.
        satisfying: whether the runs satisfy the formula, because the requirement is `P <= target`.
        exact: entry of the skeleton -> its exact probability, for every entry that occurs; None without counts.
    """

    runs: tuple[Run, ...]
    complete: bool
    total: float
    total_error: float
    satisfying: bool
    exact: Mapping[int, Fraction] | None

    @property
    def covered(self) -> float:
        """The share of the violation that the runs account for; NaN where there is none."""
        return math.fsum(run.probability for run in self.runs) / self.total if self.total > 0 else math.nan


def counterexamples(
    objective: Objective,
    values: Values,
    start: int,
    count: int,
    *,
    satisfying: bool = False,
    whole: bool = False,
    counts: NDArray[np.int64] | None = None,
) -> Counterexamples:
    """The `count` most probable violating runs from an initial state.

    Args:
        objective, values: formula, skeleton and one family of matrices.
        start: number of the initial state.
        count: of runs, at least 1.
        satisfying: look for runs that satisfy the formula.
        whole: count whole runs, not only their steps up to where they are irrevocable.
        counts: (bins, predicted, true) int64 behind `values.rates`, for exact fractions.

    Raises:
        EngineError, LimitError: from the batch engine.
    """
    graph = RunGraph(objective, values, prospects(objective, values, satisfying))
    (runs,), exact = with_exact(objective.skeleton, [graph.runs(start, count, whole)], counts)
    total, error = violation_probability(objective, values.rates, start, satisfying)
    return Counterexamples(tuple(runs), len(runs) < count, total, error, satisfying, exact)
