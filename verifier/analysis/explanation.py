"""One requirement in one scenario explained: how it fails, what that hangs on, and what to do about it.

`explain` puts the analyses together; everything here is values, and `verifier.explain` chooses what is explained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.adjoint import Values, state_values
from verifier.analysis.counterexamples import Counterexamples, Run, counterexamples, exact_probability
from verifier.analysis.critical import CellShares, cell_shares
from verifier.analysis.measured import Measured
from verifier.analysis.objective import Objective
from verifier.analysis.priorities import ColumnShares, Fixes, column_shares, fixes
from verifier.analysis.replay import Replay, replay
from verifier.analysis.sensitivity import Move, Sensitivity, moves, sensitivity
from verifier.analysis.state_map import StateMap, state_map
from verifier.checking.requirements import AbstractFormula
from verifier.confusion.matrices import Label


@dataclass(frozen=True)
class ExplainSettings:
    """How much is said.

    Attributes:
        runs: most violating runs to tell.
        whole_runs: count whole runs, not only their steps up to where they are irrevocable.
        moves: most moves and fixes to list.
        level: of the intervals of single cells, strictly between 0 and 1.
        prior: items per label of the Dirichlet prior, above 0.
        variables: one or two that the map is drawn over; empty for the first two of the model.
        with_map: whether to draw the map.
    """

    runs: int = 5
    whole_runs: bool = False
    moves: int = 10
    level: float = 0.95
    prior: float = 0.5
    variables: tuple[str, ...] = ()
    with_map: bool = True

    def __post_init__(self) -> None:
        if self.runs < 1 or self.moves < 1:
            raise ValueError("at least one run and one move are told")


DEFAULT_SETTINGS = ExplainSettings()


@dataclass(frozen=True)
class Step:
    """One step of a run.

    Attributes:
        before, after: variable -> value.
        there: true label and distance bin of everything that was looked at.
        told: the observations with which the planner takes this step, each with its probability.
        matters: whether another observation would have led elsewhere.
        probability: of the step; `exact` the same as a fraction, or None.
        chance: of meeting the formula after the step.
    """

    before: Mapping[str, int]
    after: Mapping[str, int]
    there: tuple[tuple[Label, int], ...]
    told: tuple[tuple[Label, float], ...]
    matters: bool
    probability: float
    exact: Fraction | None
    chance: float


@dataclass(frozen=True)
class ToldRun:
    """A violating run for people.

    Attributes:
        initial: variable -> value at the beginning.
        steps: in order.
        counted: the first so many steps are what `probability` is the probability of.
        irrevocable: after so many steps the violation is certain.
        share: of the whole violation.
        replayed: what of the run was checked by going through it again.
    """

    initial: Mapping[str, int]
    steps: tuple[Step, ...]
    counted: int
    irrevocable: int
    probability: float
    exact: Fraction | None
    share: float
    replayed: Replay


@dataclass(frozen=True, eq=False)
class Explanation:
    """Everything about one requirement in one scenario.

    Attributes:
        asked: the classes that the planner asks about.
        satisfying: the requirement is `P <= target`, so runs that satisfy the formula violate it.
        violation: probability of that; `violation_error` how far it can be off numerically.
        runs: the most probable violating runs; `complete` whether there are no others.
        covered: the share of the violation that they account for; NaN where there is none.
        cells: what each matrix cell has to do with the violation; None where there is none.
        sensitivity, moves, columns, fixes: see there.
        map: the chance from every state, or None.
    """

    asked: frozenset[str]
    satisfying: bool
    violation: float
    violation_error: float
    runs: tuple[ToldRun, ...]
    complete: bool
    covered: float
    cells: CellShares | None
    sensitivity: Sensitivity
    moves: tuple[Move, ...]
    columns: ColumnShares
    fixes: Fixes
    map: StateMap | None


def explain(
    objective: Objective,
    formula: AbstractFormula,
    data: Measured,
    counts: NDArray[np.int64],
    start: int,
    satisfying: bool = False,
    settings: ExplainSettings = DEFAULT_SETTINGS,
    max_states: int = 50_000_000,
) -> Explanation:
    """Explain one objective from one initial state.

    Args:
        objective: `formula` on a skeleton.
        formula: with its propositions, to replay runs and to draw the map.
        data: the matrices.
        counts: (bins, predicted, true) counts behind `data.rates`, for exact fractions.
        start: number of the initial state.
        satisfying: see `Explanation`.
        settings: see `ExplainSettings`.
        max_states: most product states to build for the map.

    Raises:
        EngineError, LimitError: from the engines.
        UsageError: the variables of the map are not the model's.
    """
    values = state_values(objective, data.rates)
    found = counterexamples(
        objective, values, start, settings.runs, satisfying=satisfying, whole=settings.whole_runs, counts=counts
    )
    derivatives = sensitivity(objective, data.rates, start)
    drawn = None
    if settings.with_map:
        drawn = state_map(
            objective.skeleton,
            formula.formula,
            formula.propositions,
            data.rates,
            settings.variables,
            largest=satisfying,
            max_states=max_states,
        )
    return Explanation(
        frozenset().union(*objective.skeleton.channel.observations),
        satisfying,
        found.total,
        found.total_error,
        tuple(_told(objective, values, run, found, formula) for run in found.runs),
        found.complete,
        found.covered,
        cell_shares(objective, values, start, satisfying) if found.total > 0 else None,
        derivatives,
        moves(derivatives, settings.moves),
        column_shares(derivatives, data, settings.level, settings.prior),
        fixes(objective, derivatives, data, start, raising=not satisfying),
        drawn,
    )


def _told(
    objective: Objective, values: Values, run: Run, found: Counterexamples, formula: AbstractFormula
) -> ToldRun:
    skeleton = objective.skeleton
    checked = replay(
        objective,
        values,
        run,
        formula.formula,
        formula.propositions,
        satisfying=found.satisfying,
        exact=found.exact,
    )
    names = tuple(skeleton.valuations)
    columns = [skeleton.valuations[name][run.states].tolist() for name in names]
    valuations = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    rows = skeleton.channel.weights(values.rates)
    probability = skeleton.entry_values(values.rates)
    chance = values.value[run.nodes[1:]].tolist()
    steps = []
    for k, entry in enumerate(skeleton.entry[run.transitions].tolist()):
        steps.append(
            Step(
                valuations[k],
                valuations[k + 1],
                *_seen(objective, rows, entry),
                float(probability[entry]),
                None if found.exact is None else found.exact[entry],
                chance[k],
            )
        )
    exact = None if found.exact is None else exact_probability(skeleton, run, found.exact)
    share = run.probability / found.total
    return ToldRun(valuations[0], tuple(steps), run.counted, run.irrevocable, run.probability, exact, share, checked)


def _seen(
    objective: Objective, rows: NDArray[np.float64], entry: int
) -> tuple[tuple[tuple[Label, int], ...], tuple[tuple[Label, float], ...], bool]:
    """What was there, what was reported, and whether that made a difference."""
    skeleton, channel = objective.skeleton, objective.skeleton.channel
    if entry == len(skeleton.entry_row):  # the episode is over: nobody looks
        return (), (), False
    row, told = int(skeleton.entry_row[entry]), skeleton.entry_observations[entry]
    drawn = zip(channel.columns[row].tolist(), channel.bins[row].tolist(), strict=True)
    there = tuple((channel.labels[column], bin_) for column, bin_ in drawn if column >= 0)
    reported = tuple(
        (channel.observations[k], float(rows[row, k])) for k in np.flatnonzero(told).tolist() if rows[row, k] > 0
    )
    return there, reported, not bool(told.all())
