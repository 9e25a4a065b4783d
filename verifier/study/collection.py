"""What was found in the cases of a study, collected per planner and requirement, with verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from verifier.analysis.channel_test import ClassTest, channel_test
from verifier.analysis.confidence import Confidence, Data
from verifier.analysis.intervals.rate_intervals import RateIntervals
from verifier.analysis.objective import Objective
from verifier.analysis.planning import EvidencePlan, Question, evidence_needed
from verifier.analysis.settings import ConfidenceSettings
from verifier.analysis.tipping import tipping_points
from verifier.analysis.vacuity import Vacuity
from verifier.base.errors import LimitError
from verifier.checking.strategies import StrategyRange
from verifier.checking.values import TwoEngineValues
from verifier.checking.verdicts import Decision, Verdict, VerdictRule, WithinBounds, decide, verdict_of
from verifier.language.expressions import to_text
from verifier.language.specs.specification import Requirement
from verifier.perception.confusion import ConfusionMatrices
from verifier.perception.confusion.matrices import label_text
from verifier.study.case import Case, Study
from verifier.study.options import RunOptions
from verifier.study.provenance import data_assumption
from verifier.study.results import Point, RequirementResult, Scenario, Sureness, Unanswered

LARGEST_TIPPED = 2_000
"""Product states; tipping points are searched for with some twenty bounds each."""
LARGEST_PLANNED = 200_000
"""Product states; further evidence is not planned for larger chains, which take long to bound again and again."""


@dataclass(frozen=True, eq=False)
class CheckedCase:
    """What was found in one case.

    Attributes:
        case: of a study with the requirements that have an answer.
        values: for each requirement what both engines say at the initial states.
        whatever: for each requirement and initial state the probability, 0 or 1, where every detector gives the
            same; else None.
        strategies: for each requirement the range over all winning strategies, where that was asked for.
        remarks: what a reader must know about single requirements or initial states.
        vacuity: for each requirement, for each initial state, why the requirement is vacuous there; mostly ().
        notes: for each requirement that is not vacuous throughout, what is constant in it.
        refused: number of a requirement -> why it has no answer; what is said of each requirement leaves it out.
    """

    case: Case
    values: tuple[TwoEngineValues, ...]
    whatever: tuple[tuple[int | None, ...], ...]
    strategies: tuple[StrategyRange, ...]
    remarks: tuple[str, ...]
    vacuity: tuple[tuple[tuple[Vacuity, ...], ...], ...]
    notes: tuple[str, ...]
    refused: Mapping[int, LimitError] = field(default_factory=dict)

    @property
    def answered(self) -> tuple[int, ...]:
        """The numbers of the requirements that `values` are about, in the study that was checked."""
        count = len(self.values) + len(self.refused)
        return tuple(number for number in range(count) if number not in self.refused)

    def without(self, left_out: Collection[int]) -> CheckedCase:
        """The same without some requirements, all that are refused among them."""
        if not left_out:
            return self
        kept = [place for place, number in enumerate(self.answered) if number not in left_out]
        return replace(
            self,
            case=self.case.asking(kept),
            values=tuple(self.values[place] for place in kept),
            whatever=tuple(self.whatever[place] for place in kept),
            strategies=tuple(self.strategies[place] for place in kept) if self.strategies else (),
            vacuity=tuple(self.vacuity[place] for place in kept),
            refused={},
        )


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
        self, model: Verdict, requirement: Requirement, found: CheckedCase, whatever: int | None, *, vacuous: bool
    ) -> Decision:
        """The verdict of a point, from what its numbers say; `whatever` as `Point.whatever_predicted`."""
        known = Verdict.INCONCLUSIVE
        if whatever is not None:
            known = verdict_of(whatever, whatever, requirement.comparison, requirement.target)
        channel = channel_test(self.tests, found.case.draws)
        return decide(model, known, channel, self.assumption, self.rule, vacuous=vacuous)


def collected(
    requirements: Sequence[Requirement],
    cases: Sequence[CheckedCase],
    evidence: Sequence[tuple[Confidence, ...] | None],
    judging: Judging | None = None,
) -> tuple[RequirementResult, ...]:
    """One result per planner and requirement, in the order of the grid.

    Args:
        requirements: of the study.
        cases: what both engines say in each.
        evidence: for each case how sure the data make its requirements; None where that was not asked for.
        judging: what decides verdicts; None for the numbers of the chain alone, without a question whether the data
            allow it.
    """
    results = []
    for planner in dict.fromkeys(checked.case.planner.name for checked in cases):
        mine = [pair for pair in zip(cases, evidence, strict=True) if pair[0].case.planner.name == planner]
        for number, requirement in enumerate(requirements):
            points = tuple(
                point for checked, sure in mine for point in _points(checked, sure, number, requirement, judging)
            )
            results.append(
                RequirementResult(
                    requirement.name,
                    planner,
                    to_text(requirement.formula, parenthesise=True),
                    requirement.comparison,
                    requirement.target,
                    points,
                    _strategies([checked for checked, _ in mine], number),
                )
            )
    return tuple(results)


def _strategies(cases: Sequence[CheckedCase], number: int) -> tuple[tuple[float, float], ...] | None:
    if not all(checked.strategies for checked in cases):
        return None
    ranges = [checked.strategies[number] for checked in cases]
    return tuple(pair for each in ranges for pair in zip(each.smallest.tolist(), each.largest.tolist(), strict=True))


def _points(
    checked: CheckedCase,
    sure: tuple[Confidence, ...] | None,
    number: int,
    requirement: Requirement,
    judging: Judging | None,
) -> Iterable[Point]:
    values, case = checked.values[number], checked.case
    verdict_from = "point" if judging is None else judging.verdict_from
    for k, initial in enumerate(case.initial_states):
        exact = None if values.fractions is None else values.fractions[k]
        lower, upper = float(values.lower[k]), float(values.upper[k])
        sureness = None if sure is None else _sureness(sure[number], k)
        ends: tuple[float | Fraction, float | Fraction] = (lower, upper) if exact is None else (exact, exact)
        if sureness is not None and verdict_from == "bounds":
            ends = (sureness.bounds_lower, sureness.bounds_upper)
        elif sureness is not None and verdict_from == "interval":
            # Not the ends themselves: those are simulated, and other draws would give others.
            ends = (sureness.lower_range[0], sureness.upper_range[1])
        model = verdict_of(*ends, requirement.comparison, requirement.target)
        whatever, vacuity, decision = checked.whatever[number][k], checked.vacuity[number][k], Decision(model)
        if judging is not None:
            decision = judging.decision(model, requirement, checked, whatever, vacuous=bool(vacuity))
        yield Point(
            Scenario(case.planner.name, case.swept, case.environment, initial),
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
            tuple(case.draws),
            whatever,
            vacuity,
        )


def unanswered_requirement(
    requirement: Requirement, cases: Sequence[CheckedCase], number: int, reason: str
) -> Unanswered:
    """A requirement of a study, with the scenarios that were finished."""
    points = [
        point
        for checked in cases
        if number in checked.answered
        for point in _points(checked, None, checked.answered.index(number), requirement, None)
    ]
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


def with_plans(results: Sequence[RequirementResult], study: Study) -> tuple[RequirementResult, ...]:
    """The results, with the further data that would decide those whose bounds do not, and how wrong the assumptions
    of the others may be; both in the worst scenario."""
    data, settings = study.data, study.options.confidence
    if data is None or data.intervals is None or settings is None:
        return tuple(results)
    planned = []
    for result in results:
        asked = _worst_question(result, study, settings)
        if asked is not None:
            plan = _plan(result, *asked, data.intervals, study.matrices, data)
            # A chain that is too large cannot be asked often.
            tipping = tipping_points(asked[0], data, asked[1]) if asked[0].state_count <= LARGEST_TIPPED else None
            result = replace(result, evidence=plan, tipping=tipping)
        planned.append(result)
    return tuple(planned)


def _worst_question(
    result: RequirementResult, study: Study, settings: ConfidenceSettings
) -> tuple[Objective, Question] | None:
    """What bounds decide, or fail to decide, in the worst scenario; None where they have no say in it."""
    worst = result.worst
    other = worst.reason is not None and not isinstance(worst.reason, WithinBounds)
    if result.target is None or worst.basis == "any_dependence" or other or result.verdict is Verdict.VACUOUS:
        return None
    case, initial = study.place_of(worst.scenario)
    number = [requirement.name for requirement in study.requirements].index(result.name)
    objective = case.objective(number)
    question = Question(initial, result.comparison, result.target, settings.semantics)
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
