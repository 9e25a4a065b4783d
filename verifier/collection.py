"""What the blocks of a grid found, collected per planner and requirement, with verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from verifier.analysis.confidence import Confidence, Data
from verifier.analysis.objective import Objective
from verifier.analysis.planning import Question, evidence_needed
from verifier.analysis.settings import ConfidenceSettings
from verifier.blocks import CheckedBlock
from verifier.checking.verdicts import Verdict, verdict_of
from verifier.confusion import ConfusionMatrices
from verifier.confusion.matrices import label_text
from verifier.expressions import to_text
from verifier.results import EvidencePlan, Point, RequirementResult, Scenario, Sureness
from verifier.scenarios import Block, Grid

LARGEST_PLANNED = 200_000
"""Product states; further evidence is not planned for larger chains, which take long to bound again and again."""


def collected(
    grid: Grid, found: Sequence[CheckedBlock], sure: Sequence[tuple[Confidence, ...] | None], verdict_from: str
) -> tuple[RequirementResult, ...]:
    """One result per planner and requirement, in the order of the grid.

    Args:
        grid: what was asked.
        found: what both engines say, per block.
        sure: how sure each requirement is, per block; None where that was not asked for.
        verdict_from: one of `VERDICT_SOURCES`.
    """
    results = []
    for planner in dict.fromkeys(each.block.planner.name for each in found):
        mine = [pair for pair in zip(found, sure, strict=True) if pair[0].block.planner.name == planner]
        for index, requirement in enumerate(grid.requirements):
            points = tuple(point for block, how in mine for point in _points(block, how, index, grid, verdict_from))
            results.append(
                RequirementResult(
                    requirement.name,
                    planner,
                    to_text(requirement.formula, parenthesise=True),
                    requirement.comparison,
                    requirement.target,
                    points,
                    _strategies([block for block, _ in mine], index),
                )
            )
    return tuple(results)


def _strategies(found: Sequence[CheckedBlock], index: int) -> tuple[tuple[float, float], ...] | None:
    if not all(each.strategies for each in found):
        return None
    ranges = [each.strategies[index] for each in found]
    return tuple(pair for each in ranges for pair in zip(each.smallest.tolist(), each.largest.tolist(), strict=True))


def _points(
    found: CheckedBlock, sure: tuple[Confidence, ...] | None, index: int, grid: Grid, verdict_from: str
) -> Iterable[Point]:
    values, requirement, block = found.values[index], grid.requirements[index], found.block
    for k, initial in enumerate(found.initial):
        exact = None if values.fractions is None else values.fractions[k]
        lower, upper = float(values.lower[k]), float(values.upper[k])
        sureness = None if sure is None else _sureness(sure[index], k)
        ends: tuple[float | Fraction, float | Fraction] = (lower, upper) if exact is None else (exact, exact)
        if sureness is not None and verdict_from == "guaranteed":
            ends = (sureness.guaranteed_lower, sureness.guaranteed_upper)
        elif sureness is not None and verdict_from == "interval":
            # Not the ends themselves: those are simulated, and other draws would give others.
            ends = (sureness.lower_range[0], sureness.upper_range[1])
        yield Point(
            Scenario(block.planner.name, block.swept, block.environment, initial),
            float(values.probability[k]),
            lower,
            upper,
            exact,
            float(values.second[k]),
            verdict_of(*ends, requirement.comparison, requirement.target),
            sureness,
        )


def _sureness(sure: Confidence, k: int) -> Sureness:
    """That of initial state k."""
    interval, bounds = sure.interval, sure.guaranteed
    return Sureness(
        interval.level,
        interval.kind,
        float(interval.lower[k]),
        float(interval.upper[k]),
        (float(interval.lower_range[k, 0]), float(interval.lower_range[k, 1])),
        (float(interval.upper_range[k, 0]), float(interval.upper_range[k, 1])),
        interval.draws or 0,
        float(bounds.lower[k]),
        float(bounds.upper[k]),
        float(bounds.lower_attained[k]),
        float(bounds.upper_attained[k]),
        bool(bounds.conservative),
    )


def with_plans(
    results: Sequence[RequirementResult],
    grid: Grid,
    matrices: ConfusionMatrices,
    objectives: Callable[[Block], Sequence[Objective]],
    data: Data,
    settings: ConfidenceSettings,
) -> tuple[RequirementResult, ...]:
    """The results, inconclusive ones with the further items that would decide them in their worst scenario.

    Args:
        results: from `collected`.
        grid: what was asked.
        matrices: for the names of columns and bins.
        objectives: gives those of a block, one per requirement.
        data, settings: of the intervals.
    """
    return tuple(
        replace(each, evidence=_plan(each, grid, matrices, objectives, data, settings))
        if each.verdict is Verdict.INCONCLUSIVE
        else each
        for each in results
    )


def _plan(
    result: RequirementResult,
    grid: Grid,
    matrices: ConfusionMatrices,
    objectives: Callable[[Block], Sequence[Objective]],
    data: Data,
    settings: ConfidenceSettings,
) -> EvidencePlan | None:
    scenario = result.worst.scenario
    (block,) = [
        each
        for each in grid.blocks
        if (each.planner.name, each.swept, each.environment)
        == (scenario.planner, scenario.swept, scenario.environment)
    ]
    alike = [
        each.scenario.initial
        for each in result.points
        if (each.scenario.swept, each.scenario.environment) == (scenario.swept, scenario.environment)
    ]
    index = [each.name for each in grid.requirements].index(result.name)
    objective = objectives(block)[index]
    if result.target is None or objective.state_count > LARGEST_PLANNED:
        return None
    start = alike.index(scenario.initial)
    question = Question(start, result.comparison, result.target, settings.level, data.events, settings.semantics)
    found = evidence_needed(objective, data.measured, question)
    if found is None:
        return None
    rows = zip(found.columns.tolist(), found.items.tolist(), found.further.tolist(), strict=True)
    columns = tuple(
        (label_text(matrices.labels[column]), matrices.bin_text(at), items, further)
        for (at, column), items, further in rows
    )
    return EvidencePlan(columns, found.lower, found.upper, found.verdict)
