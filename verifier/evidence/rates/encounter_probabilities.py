"""The probability of the unwanted event in one encounter, read from the document of a run.

One encounter is one episode of the system model: from an initial state until it ends. The unwanted event is that the
requirement is not met; where its target is an upper limit (P <= p) the formula says what is unwanted, and the event
is that it holds. `P = ?` does not say, and then the event must be named.

What a rate rests on: what its run says about data and detector behind the scenarios that it is made from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, get_args

from verifier.analysis.channel_test import channel_condition, channel_test
from verifier.base.errors import UsageError, unknown_name
from verifier.checking.verdicts import Decision, decide, verdict_of
from verifier.evidence.documents import Document
from verifier.evidence.settings import Event
from verifier.study.options import VerdictSource
from verifier.study.points import Point
from verifier.study.results import RequirementResult, RunResult


@dataclass(frozen=True)
class Chance:
    """The probability of the event in one scenario.

    Attributes:
        environment, scenario: where; the scenario in words.
        probability: of the event for the given matrices.
        bounds: source -> (lower, upper): "point" holds the numerical bounds, "bounds" and "interval" are there
            where the run has them; the interval as far as its draws determine its ends.
        whatever: what the probability lies between, whatever the detector predicts.
        draws: classes that the chain draws.
        vacuous: whether the check says nothing about the system in this scenario.
    """

    environment: str
    scenario: str
    probability: Fraction
    bounds: Mapping[VerdictSource, tuple[Fraction, Fraction]]
    whatever: tuple[Fraction, Fraction]
    draws: tuple[str, ...]
    vacuous: bool


def requirement_of(run: Document, name: str, planner: str | None) -> RequirementResult:
    """The requirement of a run document, by its name and, where there are several, by planner.

    Raises:
        UsageError: no such requirement or planner, several planners and none named, or not the document of a run.
    """
    if run.kind != "run":
        raise UsageError(f"{run.name} is the result of verify {run.kind}; a rate is made from that of verify run")
    result: RunResult = run.result
    named = [each for each in result.requirements if each.name == name]
    if not named:
        message, hint = unknown_name("requirement", name, [each.name for each in result.requirements])
        raise UsageError(f"{message}\n  hint: {hint}")
    planners = [each.planner for each in named]
    if planner is None and len(named) > 1:
        raise UsageError(f"{name} was checked under several planners; name one of {', '.join(planners)} (--planner)")
    chosen = [each for each in named if planner in (None, each.planner)]
    if not chosen:
        message, hint = unknown_name("planner", str(planner), planners)
        raise UsageError(f"{message}\n  hint: {hint}")
    return chosen[0]


def unwanted(requirement: RequirementResult, event: Event | None) -> Event:
    """Which event is meant: the one that is named, or the one that the target is about.

    Raises:
        UsageError: no target, and no event named; an event that is least probable at the end that was asked for.
    """
    if not requirement.is_plain:
        message = f"{requirement.name} asks {requirement.asked}: rates are of events, whose probability a formula has"
        raise UsageError(message)
    if event is None and requirement.target is None:
        raise UsageError(
            f"{requirement.name} has no target, so it does not say what is unwanted\n"
            "  hint: --event violated, or --event satisfied"
        )
    chosen: Event = event or ("satisfied" if requirement.is_upper else "violated")
    if requirement.asked == ("Pmax" if chosen == "violated" else "Pmin"):
        worse = "Pmin" if chosen == "violated" else "Pmax"
        raise UsageError(
            f"{requirement.name} asks {requirement.asked}: where the world decides, '{chosen}' is most probable at "
            f"{worse}; ask that"
        )
    return chosen


def chances(requirement: RequirementResult, event: Event) -> tuple[Chance, ...]:
    """The probability of the event in each scenario, in the order of the document."""
    return tuple(_chance(point, event) for point in requirement.points)


def _chance(point: Point, event: Event) -> Chance:
    def of_event(low: Any, high: Any) -> tuple[Fraction, Fraction]:
        return (low, high) if event == "satisfied" else (1 - high, 1 - low)

    known = point.whatever_predicted
    sources: tuple[VerdictSource, ...] = ("point",) if point.uncertainty is None else get_args(VerdictSource)
    return Chance(
        point.environment,
        point.scenario,
        point.value if event == "satisfied" else 1 - point.value,
        {source: of_event(*point.ends(source)) for source in sources},
        of_event(Fraction(known or 0), Fraction(1 if known is None else known)),
        point.draws,
        bool(point.vacuity),
    )


class Grounds:
    """What the run says about the data and the detector behind some of its scenarios."""

    def __init__(self, run: RunResult, used: Sequence[Chance]) -> None:
        """`used` are the scenarios of the run that a rate is made from."""
        self._settings = run.settings
        self._vacuous = all(each.vacuous for each in used)
        drawn = sorted({name for each in used if each.whatever[0] < each.whatever[1] for name in each.draws})
        self._channel = channel_test(run.channel.classes, drawn)

    def assumes(self, source: VerdictSource) -> tuple[str, ...]:
        """What an interval assumes about data and detector."""
        rests_on, condition = self._settings.bounds, channel_condition(self._channel)
        found = rests_on.condition if source == "bounds" and rests_on else self._settings.assumption(source)
        return tuple(text for text in (found, condition and condition.removeprefix("if ")) if text)

    def decision(
        self,
        source: VerdictSource,
        bounds: tuple[Fraction, Fraction],
        whatever: tuple[Fraction, Fraction],
        limit: Fraction | None,
    ) -> Decision:
        """The verdict on a criterion.

        Args:
            source: of the bounds.
            bounds: of the rate.
            whatever: what it lies between whatever the detector predicts.
            limit: the greatest rate that is accepted; None for no criterion.
        """
        return decide(
            verdict_of(*bounds, "<=", limit),
            verdict_of(*whatever, "<=", limit),
            self._channel,
            self._settings.assumption(source),
            self._settings.rule,
            vacuous=self._vacuous,
        )
