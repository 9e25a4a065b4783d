"""What a world that decides does to give a requirement its value, in the worst scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from verifier.analysis.robust.optimum import Optimum
from verifier.analysis.robust.world_strategy import world_strategy
from verifier.base.arrays import ROUNDOFF
from verifier.base.errors import EngineError
from verifier.checking.batch import check
from verifier.checking.enclosure import AGREEMENT
from verifier.perception.confusion import rates
from verifier.study.case import Study
from verifier.study.points import DecidedState, WorldDecisions
from verifier.study.results import RequirementResult

MOST_TOLD = 20
"""States in which what the world decides is told."""


def with_decisions(results: Sequence[RequirementResult], study: Study) -> tuple[RequirementResult, ...]:
    """The results, with what the world does in the worst scenario of each.

    Raises:
        EngineError: the chain that these decisions leave has another probability.
        LimitError: as `world_strategy`.
    """
    return tuple(replace(result, world=_decisions(result, study)) for result in results)


def _decisions(result: RequirementResult, study: Study) -> WorldDecisions | None:
    case, start = study.place_of(result.planner, result.worst_point)
    number = [requirement.name for requirement in study.requirements].index(result.name)
    if not case.decides or not result.is_plain:
        return None
    objective, choices, formula = case.objective(number), case.choices, study.formulas[number]
    assert isinstance(objective, Optimum)
    assert choices.name is not None
    measured = rates(case.counts)
    bracket = objective.bracket(measured, ROUNDOFF * objective.skeleton.channel.rounding_steps)
    labels = {name: choices.choices.mask_of(node) for name, node in formula.propositions.items()}
    found = world_strategy(choices, objective, bracket, measured, labels, start)
    again = float(check(found.chain, formula.formula).probability[0, 0])
    if not abs(again - result.worst_point.probability) <= AGREEMENT:
        raise EngineError(
            f"{result.name}: the decisions that should give {result.worst_point.probability!r} give {again!r}"
        )
    deciding = np.flatnonzero((found.options > 1) & (found.visits > 0))
    # Finite numbers first: they tell how the world gets to where it has won.
    order = np.where(np.isinf(found.visits), 0, found.visits)[deciding]
    most = deciding[np.argsort(-order, kind="stable")][:MOST_TOLD].tolist()
    told = tuple(
        DecidedState(
            {name: int(value[at]) for name, value in found.chain.valuations.items()},
            _joined([choices.names[int(choices.name[choice])] for choice in found.choices[at]]),
            float(found.visits[at]),
        )
        for at in most
    )
    return WorldDecisions(again, len(deciding), told)


def _joined(named: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What the world does where it takes several choices in turn."""
    return {name: " or ".join(dict.fromkeys(each[name] for each in named)) for name in named[0]}
