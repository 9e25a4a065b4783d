"""What the blocks of a grid found, collected per planner and requirement, with verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from verifier.analysis.confidence import Confidence, Data
from verifier.analysis.dependence.channel_test import ClassTest, channel_test
from verifier.analysis.intervals.rate_intervals import RateIntervals
from verifier.analysis.objective import Objective
from verifier.analysis.planning import EvidencePlan, Question, evidence_needed
from verifier.analysis.settings import ConfidenceSettings
from verifier.analysis.tipping import tipping_points
from verifier.blocks import CheckedBlock
from verifier.checking.verdicts import Decision, Verdict, VerdictRule, WithinBounds, decide, verdict_of
from verifier.language.expressions import to_text
from verifier.language.specs.specification import Requirement
from verifier.options import RunOptions
from verifier.perception.confusion import ConfusionMatrices
from verifier.perception.confusion.matrices import label_text
from verifier.provenance import data_assumption
from verifier.results import Point, RequirementResult, Scenario, Sureness, Unanswered
from verifier.scenarios import Block, Grid

LARGEST_TIPPED = 2_000
"""Product states; tipping points are searched for with some twenty bounds each."""
LARGEST_PLANNED = 200_000
"""Product states; further evidence is not planned for larger chains, which take long to bound again and again."""


@dataclass(frozen=True)
class Judging:
    """What decides a verdict, beside the numbers of its point.

    Attributes:
        verdict_from: one of `VERDICT_SOURCES`.
        rule: which assumptions are accepted.
        assumption: what the numbers assume about the data, see `data_assumption`.
        tests: of the classes that the chains draw, see `class_tests`.
    """

    verdict_from: str
    rule: VerdictRule
    assumption: str | None
    tests: Sequence[ClassTest]

    @classmethod
    def of(cls, settings: Mapping[str, Any], options: RunOptions, tests: Sequence[ClassTest]) -> Judging:
        """From the settings of a run, as its document has them, and its options."""
        return cls(settings["verdict_from"], options.verdict_rule, data_assumption(settings), tests)

    def decision(
        self, model: Verdict, requirement: Requirement, found: CheckedBlock, whatever: int | None, *, vacuous: bool
    ) -> Decision:
        """The verdict of a point, from what its numbers say; `whatever` as `Point.whatever_predicted`."""
        known = Verdict.INCONCLUSIVE
        if whatever is not None:
            known = verdict_of(whatever, whatever, requirement.comparison, requirement.target)
        channel = channel_test(self.tests, found.draws)
        return decide(model, known, channel, self.assumption, self.rule, vacuous=vacuous)


def collected(
    grid: Grid,
    found: Sequence[CheckedBlock],
    sure: Sequence[tuple[Confidence, ...] | None],
    judging: Judging | None = None,
) -> tuple[RequirementResult, ...]:
    """One result per planner and requirement, in the order of the grid.

    Args:
        grid: what was asked.
        found: what both engines say, per block.
        sure: how sure each requirement is, per block; None where that was not asked for.
        judging: what decides verdicts; None for the numbers of the chain alone, without a question whether the data
            allow it.
    """
    results = []
    for planner in dict.fromkeys(each.block.planner.name for each in found):
        mine = [pair for pair in zip(found, sure, strict=True) if pair[0].block.planner.name == planner]
        for index, requirement in enumerate(grid.requirements):
            points = tuple(point for block, how in mine for point in _points(block, how, index, grid, judging))
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
    found: CheckedBlock,
    sure: tuple[Confidence, ...] | None,
    index: int,
    grid: Grid,
    judging: Judging | None,
) -> Iterable[Point]:
    values, requirement, block = found.values[index], grid.requirements[index], found.block
    verdict_from = "point" if judging is None else judging.verdict_from
    for k, initial in enumerate(found.initial):
        exact = None if values.fractions is None else values.fractions[k]
        lower, upper = float(values.lower[k]), float(values.upper[k])
        sureness = None if sure is None else _sureness(sure[index], k)
        ends: tuple[float | Fraction, float | Fraction] = (lower, upper) if exact is None else (exact, exact)
        if sureness is not None and verdict_from == "bounds":
            ends = (sureness.bounds_lower, sureness.bounds_upper)
        elif sureness is not None and verdict_from == "interval":
            # Not the ends themselves: those are simulated, and other draws would give others.
            ends = (sureness.lower_range[0], sureness.upper_range[1])
        model, whatever = verdict_of(*ends, requirement.comparison, requirement.target), found.whatever[index][k]
        vacuity, decision = found.vacuity[index][k], Decision(model)
        if judging is not None:
            decision = judging.decision(model, requirement, found, whatever, vacuous=bool(vacuity))
        yield Point(
            Scenario(block.planner.name, block.swept, block.environment, initial),
            float(values.probability[k]),
            lower,
            upper,
            exact,
            float(values.second[k]),
            decision.verdict,
            sureness,
            decision.basis,
            decision.condition,
            decision.reason,
            tuple(found.draws),
            whatever,
            vacuity,
        )


def unanswered_requirement(grid: Grid, found: Sequence[CheckedBlock], index: int, reason: str) -> Unanswered:
    """Requirement number `index` of the grid, with the scenarios that were finished."""
    requirement = grid.requirements[index]
    alone = replace(grid, requirements=(requirement,))
    others = set(range(len(grid.requirements))) - {index}
    blocks = [block.without(others) for block in found if index in block.answered]
    points = [point for block in blocks for point in _points(block, None, 0, alone, None)]
    formula = to_text(requirement.formula, parenthesise=True)
    return Unanswered(requirement.name, formula, reason, tuple(points))


def _sureness(sure: Confidence, k: int) -> Sureness:
    """That of initial state k."""
    interval, bounds = sure.interval, sure.bounds
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
        sure.tier,
    )


def interval_remarks(results: Iterable[RequirementResult]) -> list[str]:
    """Say where a statistical interval excludes the probability beside it, and why that is no contradiction."""
    beside = [
        (each, point)
        for each in results
        for point in each.points
        if point.sureness is not None and not point.sureness.lower <= point.probability <= point.sureness.upper
    ]
    if not beside:
        return []
    result, point = beside[0]
    example = f"{result.name}, planner {result.planner}, {point.scenario}"
    example += f" and {len(beside) - 1} more" if len(beside) > 1 else ""
    return [
        f"P lies outside its interval ({example}): P is for the matrix as measured, in which errors that were not "
        "counted have rate 0, and the interval allows for errors that have not been seen yet"
    ]


def with_plans(
    results: Sequence[RequirementResult],
    grid: Grid,
    matrices: ConfusionMatrices,
    objectives: Callable[[Block], Sequence[Objective]],
    data: Data,
    settings: ConfidenceSettings,
) -> tuple[RequirementResult, ...]:
    """The results, with the further data that would decide those whose bounds do not, and how wrong the assumptions
    of the others may be; both in the worst scenario.

    Args:
        results: from `collected`.
        grid: what was asked.
        matrices: for the names of columns and bins.
        objectives: gives those of a block, one per requirement.
        data, settings: of the intervals.
    """

    def asked(result: RequirementResult) -> tuple[Objective, Question] | None:
        return _worst_question(result, grid, objectives, settings)

    return tuple(
        result
        if data.intervals is None or (found := asked(result)) is None
        else replace(
            result,
            evidence=_plan(result, *found, data.intervals, matrices, data),
            # A chain that is too large cannot be asked often.
            tipping=tipping_points(found[0], data, found[1]) if found[0].state_count <= LARGEST_TIPPED else None,
        )
        for result in results
    )


def _worst_question(
    result: RequirementResult,
    grid: Grid,
    objectives: Callable[[Block], Sequence[Objective]],
    settings: ConfidenceSettings,
) -> tuple[Objective, Question] | None:
    """What bounds decide, or fail to decide, in the worst scenario; None where they have no say in it."""
    worst = result.worst
    other = worst.reason is not None and not isinstance(worst.reason, WithinBounds)
    if result.target is None or worst.basis == "any_dependence" or other or result.verdict is Verdict.VACUOUS:
        return None
    scenario = worst.scenario
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
    objective = objectives(block)[[each.name for each in grid.requirements].index(result.name)]
    question = Question(alike.index(scenario.initial), result.comparison, result.target, settings.semantics)
    return (objective, question) if objective.state_count <= LARGEST_PLANNED else None


def _plan(
    result: RequirementResult,
    objective: Objective,
    question: Question,
    intervals: RateIntervals,
    matrices: ConfusionMatrices,
    data: Data,
) -> EvidencePlan | None:
    if result.verdict is not Verdict.INCONCLUSIVE:
        return None
    known = None if data.drives is None else len(data.drives.names)
    found = evidence_needed(objective, intervals, question, known)
    if found is None:
        return None
    rows = zip(found.columns.tolist(), found.items.tolist(), found.further.tolist(), strict=True)
    columns = tuple(
        (label_text(matrices.labels[column]), matrices.bin_text(at), items, further)
        for (at, column), items, further in rows
    )
    return EvidencePlan(columns, found.lower, found.upper, found.verdict, found.drives)
