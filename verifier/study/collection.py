"""What was found in the cases of a study, collected per planner and requirement, with verdicts."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.channel_test import ClassTest, channel_test
from verifier.analysis.confidence import Confidence
from verifier.analysis.objective import Objective
from verifier.analysis.planning import Question, additional_data
from verifier.analysis.settings import ConfidenceSettings
from verifier.analysis.tipping import tipping_points
from verifier.analysis.vacuity import Vacuity
from verifier.base.errors import LimitError
from verifier.checking.enclosure import TwoEngineValues
from verifier.checking.verdicts import Decision, Verdict, WithinBounds, decide, verdict_of
from verifier.language.specs.specification import Requirement
from verifier.study.case import Case, Study
from verifier.study.model_checks import Look
from verifier.study.optima import StrategyRange
from verifier.study.options import VerdictSource
from verifier.study.points import FreeBounds, Numbers, Point, PointBounds, PointInterval, RatesOf, Uncertainty
from verifier.study.profile import Profile
from verifier.study.records import SettingsRecord
from verifier.study.results import Finished, RequirementResult, StrategyEnds, Target, Unanswered

if TYPE_CHECKING:  # linear programs take long to load
    from verifier.analysis.dependence_free import FreeBounds as ProvenBounds

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
        look: what the chain shows of the model.
        free: for each requirement and initial state of the block without memory proven bounds whatever the
            dependence; empty where not asked for.
    """

    case: Case
    values: tuple[TwoEngineValues, ...]
    whatever: tuple[tuple[Literal[0, 1] | None, ...], ...]
    strategies: tuple[StrategyRange, ...]
    remarks: tuple[str, ...]
    vacuity: tuple[tuple[tuple[Vacuity, ...], ...], ...]
    notes: tuple[str, ...]
    refused: Mapping[int, LimitError] = field(default_factory=dict)
    look: Look | None = None
    free: tuple[tuple[ProvenBounds, ...], ...] = ()

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
        tests: of the classes that the chains draw, see `class_tests`.
    """

    settings: SettingsRecord
    tests: Sequence[ClassTest]

    def decision(self, point: Point, target: Target | None, model: Verdict | None = None) -> Decision:
        """The verdict of a point; `model` is what the memoryless chain says, where its numbers do not say that."""
        if target is None:
            return Decision(Verdict.NO_TARGET)
        asked, whatever = (target.comparison, target.probability), point.whatever_predicted
        unbounded = point.uncertainty is not None and point.uncertainty.confidence_bounds is None
        source: VerdictSource | None = "interval" if unbounded and self.settings.verdict_from == "bounds" else None
        known = Verdict.INCONCLUSIVE if whatever is None else verdict_of(whatever, whatever, *asked)
        free, condition = point.dependence_free, None
        boxed = source is None and self.settings.tier == "rate_box"
        if free is not None and known is Verdict.INCONCLUSIVE:
            known = free.verdict(*asked)
            condition = self.settings.assumption("bounds") if free.rates != "measured" else None
        return decide(
            model or verdict_of(*point.ends(self.settings.verdict_from), *asked),
            known,
            replace(channel_test(self.tests, point.draws), boxed=boxed),
            self.settings.assumption(source),
            self.settings.rule,
            vacuous=bool(point.vacuity),
            whatever_if=condition,
        )


def collected(
    requirements: Sequence[Requirement],
    cases: Sequence[CheckedCase],
    evidence: Sequence[tuple[Confidence, ...] | None],
    judging: Judging | None = None,
    profiles: Mapping[tuple[str, str], Profile] = MappingProxyType({}),
) -> tuple[RequirementResult, ...]:
    """One result per planner and requirement, in the order of the grid.

    Args:
        cases: what both engines say in each.
        evidence: for each case how sure the data make its requirements; None where that was not asked for.
        judging: what decides verdicts; None for the numbers of the chain alone, without a question whether the data
            allow it.
        profiles: of the requirements that ask for a mean, by planner and name.
    """
    results = []
    for planner in dict.fromkeys(checked.case.planner.name for checked in cases):
        mine = [pair for pair in zip(cases, evidence, strict=True) if pair[0].case.planner.name == planner]
        for number, requirement in enumerate(requirements):
            points = tuple(
                point for checked, sure in mine for point in _points(checked, sure, number, requirement, judging)
            )
            profile = profiles.get((planner, requirement.name))
            results.append(
                RequirementResult(
                    name=requirement.name,
                    planner=planner,
                    formula=requirement.formula_text,
                    asked=str(requirement.asked),
                    target=target_of(requirement),
                    points=points,
                    weights=() if profile is None else profile.weights,
                    means=() if profile is None else profile.means(points),
                    strategies=_strategies([checked for checked, _ in mine], number),
                )
            )
    return tuple(results)


def forgetful_starts(case: Case) -> tuple[int, ...]:
    """For each initial state the start of the block without memory, which knows no contexts there."""
    number = {tuple(initial.values()): k for k, initial in enumerate(case.forgetful.initial_states)}
    kept = len(case.system.variables)
    return tuple(number[tuple(initial.values())[:kept]] for initial in case.initial_states)


def _free(checked: CheckedCase, number: int) -> Iterator[FreeBounds | None]:
    """At each initial state."""
    if not checked.free:
        yield from (None for _ in checked.case.initial_states)
        return
    rates = rates_of(checked.case.study)
    for bounds in (checked.free[number][start] for start in forgetful_starts(checked.case)):
        yield FreeBounds.rounded(bounds.lower, bounds.upper, bounds.horizon, bounds.flows, bounds.undecided, rates)


def rates_of(study: Study) -> RatesOf:
    """What bounds whatever the dependence are bounds over."""
    if study.data is None:
        return "measured"
    return "confidence_region" if study.data.box is None else "rate_box"


def target_of(requirement: Requirement) -> Target | None:
    """What a requirement asks, as documents have it."""
    comparison: Any = requirement.comparison
    return None if requirement.target is None else Target(comparison, requirement.target)


def _strategies(cases: Sequence[CheckedCase], number: int) -> tuple[StrategyEnds, ...] | None:
    if not all(checked.strategies for checked in cases):
        return None
    ranges = [checked.strategies[number] for checked in cases]
    ends = ((strategy_range.smallest.tolist(), strategy_range.largest.tolist()) for strategy_range in ranges)
    return tuple(StrategyEnds(*pair) for smallest, largest in ends for pair in zip(smallest, largest, strict=True))


def _points(
    checked: CheckedCase,
    sure: tuple[Confidence, ...] | None,
    number: int,
    requirement: Requirement,
    judging: Judging | None,
) -> Iterable[Point]:
    case, target = checked.case, target_of(requirement)
    told = zip(_numbers(checked, number), case.beginnings, _free(checked, number), strict=True)
    for numbers, (_, parts), free in told:
        k, whatever = next(iter(parts)), {checked.whatever[number][part] for part in parts}
        point = Point(
            **vars(numbers),
            **vars(Decision(Verdict.NO_TARGET)),
            draws=tuple(case.draws),
            whatever_predicted=whatever.pop() if len(whatever) == 1 else None,
            vacuity=checked.vacuity[number][k],
            uncertainty=None if sure is None else _uncertainty(sure[number], k),
            dependence_free=free,
        )
        if judging is not None:
            point = point.decided(judging.decision(point, target))
        elif target is not None:
            point = point.decided(Decision(verdict_of(*point.ends("point"), target.comparison, target.probability)))
        yield point


def _numbers(checked: CheckedCase, number: int) -> Iterator[Numbers]:
    """Those at each initial state."""
    values, case = checked.values[number], checked.case
    for initial, parts in case.beginnings:
        yield Numbers(
            environment=case.environment,
            constants=case.constants,
            initial=initial,
            probability=_mean(values.probability, parts),
            lower=_mean(values.lower, parts, -math.inf),
            upper=_mean(values.upper, parts, math.inf),
            second_engine=_mean(values.second, parts),
            exact=_exact_mean(values.fractions, parts),
        )


def _mean(values: NDArray[np.float64], parts: Mapping[int, Fraction], outwards: float | None = None) -> float:
    """Of some values by their weights, rounded outwards; of a single one itself."""
    if len(parts) == 1:
        return float(values[next(iter(parts))])
    mean = float(sum(weight * Fraction(float(values[k])) for k, weight in parts.items()))
    return mean if outwards is None else min(max(math.nextafter(mean, outwards), 0.0), 1.0)


def _exact_mean(values: Sequence[Fraction | None] | None, parts: Mapping[int, Fraction]) -> Fraction | None:
    if values is None or len(parts) == 1:
        return None if values is None else values[next(iter(parts))]
    known = [(weight, values[k]) for k, weight in parts.items()]
    return sum((weight * value for weight, value in known if value is not None), Fraction(0))


def unanswered_requirement(
    requirement: Requirement, cases: Sequence[CheckedCase], number: int, reason: str
) -> Unanswered:
    """A requirement of a study, with the scenarios that were finished."""
    finished = tuple(
        Finished(planner=checked.case.planner.name, **vars(numbers))
        for checked in cases
        if number in checked.answered
        for numbers in _numbers(checked, checked.answered.index(number))
    )
    return Unanswered(requirement.name, requirement.formula_text, reason, finished, str(requirement.asked))


def _uncertainty(sure: Confidence, k: int) -> Uncertainty:
    """That of initial state k."""
    bounds = sure.bounds
    return Uncertainty(
        sure.interval.level,
        PointInterval.of(sure.interval, k),
        None
        if bounds is None
        else PointBounds(
            float(bounds.lower[k]),
            float(bounds.upper[k]),
            float(bounds.lower_attained[k]),
            float(bounds.upper_attained[k]),
            bool(bounds.conservative),
            sure.tier,
        ),
    )


def interval_remarks(results: Iterable[RequirementResult]) -> list[str]:
    """Say where a statistical interval excludes the probability beside it, and why that is no contradiction."""
    beside = [
        (result, point)
        for result in results
        for point in result.points
        if point.uncertainty is not None
        and not (point.uncertainty.interval.lower <= point.upper and point.lower <= point.uncertainty.interval.upper)
    ]
    named = [f"{result.name}, planner {result.planner}, {point.scenario}" for result, point in beside]
    return outside_remarks(beside[0][0].asked, named) if beside else []


def outside_remarks(asked: str, named: Sequence[str]) -> list[str]:
    """Why what is named has a P, or what else is asked for, outside of its interval."""
    example = named[0] + (f" and {len(named) - 1} more" if len(named) > 1 else "")
    return [
        f"{asked} lies outside its interval ({example}): {asked} is for the matrix as measured, in which errors that "
        "were not counted have rate 0, and the interval allows for errors that have not been seen yet"
    ]


def unbounded_remarks(results: Iterable[RequirementResult], settings: SettingsRecord) -> list[str]:
    """Name what has intervals and no confidence bounds."""
    if settings.confidence is None:
        return []
    named = dict.fromkeys(
        f"{result.name} ({result.asked_text})" for result in results if not result.is_plain or result.means
    )
    judged = ", and verdicts on them are from their intervals" if settings.verdict_from == "bounds" else ""
    if not named:
        return []
    return [
        f"no confidence bounds over all matrices for {', '.join(named)}: they are known for probabilities of "
        f"formulas in single scenarios{judged}"
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
            plan = None
            if result.verdict is Verdict.INCONCLUSIVE:
                known = None if data.drives is None else len(data.drives.names)
                plan = additional_data(asked[0], data.intervals, asked[1], known, study.matrices.bin_text)
            # A chain that is too large cannot be asked often.
            tipping = tipping_points(asked[0], data, asked[1]) if asked[0].state_count <= LARGEST_TIPPED else None
            result = replace(result, additional_data=plan, tipping_points=tipping)
        planned.append(result)
    return tuple(planned)


def _worst_question(
    result: RequirementResult, study: Study, settings: ConfidenceSettings
) -> tuple[Objective, Question] | None:
    """What bounds decide, or fail to decide, in the worst scenario; None where they have no say in it."""
    worst = result.worst_point
    other = worst.reason is not None and not isinstance(worst.reason, WithinBounds)
    if result.target is None or not result.is_plain:
        return None
    if worst.basis == "any_dependence" or other or result.verdict is Verdict.VACUOUS:
        return None
    case, initial = study.place_of(result.planner, worst)
    number = [requirement.name for requirement in study.requirements].index(result.name)
    if case.window(number) is not None:  # asked many times, it would take too long
        return None
    objective = case.objective(number)
    question = Question(initial, result.target.comparison, result.target.probability, settings.semantics)
    asked = objective.state_count <= LARGEST_PLANNED and not objective.is_undecided(study.measured.rates)
    return (objective, question) if asked else None
