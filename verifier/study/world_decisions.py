"""What a world that decides does to give a requirement its value in a scenario, and the chain that this leaves."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from verifier.analysis.objective import Objective, build_objective
from verifier.analysis.robust.optimum import Bracket, Optimum
from verifier.analysis.robust.world_strategy import kept_strategy, world_strategy
from verifier.base.arrays import ROUNDOFF
from verifier.base.budget import array_bytes
from verifier.base.errors import EngineError
from verifier.checking.batch import check
from verifier.checking.enclosure import AGREEMENT
from verifier.perception.confusion import rates
from verifier.study.case import Case, Study
from verifier.study.points import DecidedState, Point, WorldDecisions
from verifier.study.results import RequirementResult

MOST_TOLD = 20
"""States in which what the world decides is told."""


def with_decisions(results: Sequence[RequirementResult], study: Study) -> tuple[RequirementResult, ...]:
    """The results, with what the world does in the worst scenario of each; errors as `confirmed_decisions`."""
    return tuple(
        replace(result, world=confirmed_decisions(result, result.worst_point, study) if result.is_plain else None)
        for result in results
    )


def confirmed_decisions(result: RequirementResult, point: Point, study: Study) -> WorldDecisions | None:
    """What the world does in a scenario of a requirement; None where it decides nothing.

    Raises:
        EngineError: the chain that these decisions leave has another probability than the point.
        LimitError: as `world_strategy`.
    """
    decisions = decisions_at(result.name, result.planner, point, study)
    if decisions is not None and not abs(decisions.probability - point.probability) <= AGREEMENT:
        raise EngineError(
            f"{result.name}: the decisions that should give {point.probability!r} give {decisions.probability!r}"
        )
    return decisions


def objective_left(case: Case, number: int) -> Objective:
    """A requirement on the chain that is left while the world keeps to what gives the requirement its value with the
    measured matrices; where it decides nothing, on the chain that there is.

    Raises:
        LimitError: as `build_objective`.
    """
    if not case.decides:
        return case.objective(number)
    objective, asked = case.objective(number), case.study.formulas[number]
    assert isinstance(objective, Optimum)
    left = kept_strategy(case.choices, objective, _bracket(case, objective)).skeleton
    return build_objective(left, asked.formula, asked.propositions, case.study.options.engines.product_states)


def decisions_at(name: str, planner: str, point: Point, study: Study) -> WorldDecisions | None:
    """As `confirmed_decisions`, whatever the probability of the point is said to be."""
    case, start = study.place_of(planner, point)
    if not case.decides:
        return None
    number = [requirement.name for requirement in study.requirements].index(name)
    key = ("decisions", start, case.objective(number), case.counts.tobytes())
    return study.cache.kept(key, lambda: _decisions(case, number, start))


def _decisions(case: Case, number: int, start: int) -> WorldDecisions:
    """What the world does for a requirement from an initial state, by its number."""
    study = case.study
    objective, choices, formula = case.objective(number), case.choices, study.formulas[number]
    assert isinstance(objective, Optimum)
    assert choices.name is not None
    labels = {name: choices.choices.mask_of(node) for name, node in formula.propositions.items()}
    bracket, measured = _bracket(case, objective), rates(case.counts)
    strategy = world_strategy(choices, objective, bracket, measured, labels, start)
    again = float(check(strategy.chain, formula.formula).probability[0, 0])
    deciding = np.flatnonzero((strategy.options > 1) & (strategy.visits > 0))
    # Finite numbers first: they tell how the world gets to where it has won.
    order = np.where(np.isinf(strategy.visits), 0, strategy.visits)[deciding]
    most = deciding[np.argsort(-order, kind="stable")][:MOST_TOLD].tolist()
    told = tuple(
        DecidedState(
            {name: int(value[at]) for name, value in strategy.chain.valuations.items()},
            _joined([choices.names[int(choices.name[choice])] for choice in strategy.choices[at]]),
            float(strategy.visits[at]),
        )
        for at in most
    )
    return WorldDecisions(again, len(deciding), told)


def _bracket(case: Case, objective: Optimum) -> Bracket:
    """The values of a requirement with the measured matrices, made once."""
    return case.study.cache.kept(
        ("bracket", objective, case.counts.tobytes()),
        lambda: objective.bracket(rates(case.counts), ROUNDOFF * objective.skeleton.channel.rounding_steps),
        array_bytes,
    )


def _joined(named: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What the world does where it takes several choices in turn."""
    return {name: " or ".join(dict.fromkeys(entry[name] for entry in named)) for name in named[0]}
