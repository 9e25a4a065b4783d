"""How often encounters come: a number, an interval, or a count over hours.

A count of k encounters in T hours is taken as Poisson with mean (rate * T): encounters come one by one, at a constant
rate, independently of each other. Its two-sided interval at level 1 - a is Garwood's (Fiducial limits for the Poisson
distribution, Biometrika 28, 1936), the exact one, which inverts the two tails at a / 2 each:

    lower = G^-1(a / 2; k) / T   (0 for k = 0),      upper = G^-1(1 - a / 2; k + 1) / T

with G(x; s) the distribution function of the gamma distribution of shape s. It holds the true rate in at least the
share 1 - a of repetitions, whatever the rate is.

The probability of the unwanted event in one encounter, read from the document of a run.

One encounter is one episode of the system model: from an initial state until it ends. The unwanted event is that the
requirement is not met; where its target is an upper limit (P <= p) the formula says what is unwanted, and the event
is that it holds. `P = ?` does not say, and then the event must be named.

What a rate rests on: what its run says about data and detector behind the scenarios that it is made from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Literal, TypeAlias, get_args

from scipy.special import gammainccinv, gammaincinv

from verifier.analysis.channel_test import channel_condition, channel_test
from verifier.base.errors import UsageError, unknown_error
from verifier.base.numbers import significant
from verifier.base.words import counted
from verifier.checking.enclosure import doubles_around
from verifier.checking.verdicts import Decision, Verdict, decide, verdict_of
from verifier.evidence.documents import Document
from verifier.evidence.settings import Event
from verifier.study.options import VerdictSource
from verifier.study.points import Point, RatesOf
from verifier.study.results import RequirementResult, RunResult

RateSource: TypeAlias = VerdictSource | Literal["any_dependence"]
"""Of the bounds of probabilities; the last are those however reports depend on each other."""
FREE: Final = "any_dependence"
LARGEST_COUNT = 10**9
SLACK = Fraction(1, 2**36)
"""Relative: what the ends of a counted interval are moved outwards, far more than their quantiles are off by."""


@dataclass(frozen=True)
class Exposure:
    """Encounters per hour: a number, an interval, or a count over hours.

    Attributes:
        lower, upper: ends of a stated interval; equal to the rate where a single number is stated, None for a count.
        rate: encounters per hour, the best estimate; None where only an interval is stated.
        level: how sure the stated interval is; None where its ends are said to hold for certain.
        encounters, hours: of a count.
        source: where it comes from; empty where that is not said.

    Raises:
        ValueError: a number out of range.
    """

    lower: Fraction | None = None
    upper: Fraction | None = None
    rate: Fraction | None = None
    level: Fraction | None = None
    encounters: int | None = None
    hours: Fraction | None = None
    source: str = ""

    def __post_init__(self) -> None:
        is_count = self.encounters is not None and self.hours is not None
        is_interval = self.lower is not None and self.upper is not None
        if is_count == is_interval or (self.encounters is None) != (self.hours is None):
            raise ValueError("an exposure is a number, an interval, or encounters over hours")
        if self.lower is not None and self.upper is not None and not 0 <= self.lower <= self.upper:
            raise ValueError("the ends of an exposure must be numbers from 0, the lower one not above the upper one")
        if self.hours is not None and not self.hours > 0:
            raise ValueError("encounters are counted over more than 0 hours")
        if self.encounters is not None and not 0 <= self.encounters <= LARGEST_COUNT:
            raise ValueError(f"expected a number of encounters from 0 to {LARGEST_COUNT}")
        if self.level is not None and (is_count or not 0 < self.level < 1):
            raise ValueError("the level of a stated interval lies between 0 and 1")

    @classmethod
    def stated(cls, per_hour: Fraction, source: str = "") -> Exposure:
        """So many encounters per hour, taken as true."""
        return cls(per_hour, per_hour, per_hour, source=source)

    @classmethod
    def counted(cls, encounters: int, hours: Fraction, source: str = "") -> Exposure:
        """So many encounters counted in so many hours."""
        rate = Fraction(encounters) / hours if hours > 0 else None
        return cls(rate=rate, encounters=encounters, hours=hours, source=source)

    @property
    def is_count(self) -> bool:
        """Whether its interval is made from a count, at whatever level is asked."""
        return self.encounters is not None

    def error(self, share: Fraction) -> Fraction:
        """How often its interval may miss the true rate, where a count is given the error `share`."""
        if self.is_count:
            return share
        return Fraction(0) if self.level is None else 1 - self.level

    def interval(self, share: Fraction) -> tuple[Fraction, Fraction]:
        """Lower and upper end, per hour, missing the true rate at most as often as `error(share)`.

        Raises:
            ValueError: a count, and `share` does not lie between 0 and 1.
        """
        if self.encounters is None or self.hours is None:
            assert self.lower is not None
            assert self.upper is not None
            return self.lower, self.upper
        lower, upper = garwood(self.encounters, share)
        return lower / self.hours, upper / self.hours

    def __str__(self) -> str:
        if self.encounters is not None and self.hours is not None:
            return f"{counted(self.encounters, 'encounter')} in {number(self.hours)} h"
        if self.rate is not None:
            return f"{number(self.rate)}/h, as stated"
        level = "for certain" if self.level is None else f"at level {number(self.level)}"
        return f"{number(self.lower)} to {number(self.upper)}/h, as stated, {level}"


def garwood(count: int, error: Fraction) -> tuple[Fraction, Fraction]:
    """Ends of the exact two-sided interval for the mean of a Poisson distribution of which `count` was drawn.

    Raises:
        ValueError: the error does not lie between 0 and 1.

    >>> tuple(round(float(end), 4) for end in garwood(0, Fraction(1, 20)))
    (0.0, 3.6889)
    """
    if not 0 < error < 1 or not 0 <= count <= LARGEST_COUNT:
        raise ValueError("expected a count and an error between 0 and 1")
    tail = float(error / 2)
    lower = Fraction(float(gammaincinv(count, tail))) * (1 - SLACK) if count else Fraction(0)
    return lower, Fraction(float(gammainccinv(count + 1, tail))) * (1 + SLACK)


def number(value: Fraction | None) -> str:
    """A number for people: short where it is exact in ten digits, else rounded to six."""
    if value is None:
        return "unknown"
    short = significant(float(value), 10)
    return short if float(short) == float(value) else significant(float(value), 6)


def float_below(value: Fraction) -> float:
    """The largest double that is not above `value`."""
    return doubles_around(value)[0]


def float_above(value: Fraction) -> float:
    """The smallest double that is not below `value`."""
    return doubles_around(value)[1]


@dataclass(frozen=True)
class Chance:
    """The probability of the event in one scenario.

    Attributes:
        environment, scenario: where; the scenario in words.
        probability: of the event for the given matrices.
        bounds: source -> (lower, upper): "point" holds the numerical bounds, "bounds" and "interval" are there
            where the run has them; the interval as far as its draws determine its ends. So are bounds however reports
            depend on each other, as "any_dependence".
        whatever: what the probability lies between, whatever the detector predicts.
        draws: classes that the chain draws.
        vacuous: whether the check says nothing about the system in this scenario.
        free_rates: what bounds however reports depend on each other are bounds over; None where there are none.
    """

    environment: str
    scenario: str
    probability: Fraction
    bounds: Mapping[RateSource, tuple[Fraction, Fraction]]
    whatever: tuple[Fraction, Fraction]
    draws: tuple[str, ...]
    vacuous: bool
    free_rates: RatesOf | None = None


def requirement_of(run: Document, name: str, planner: str | None) -> RequirementResult:
    """The requirement of a run document, by its name and, where there are several, by planner.

    Raises:
        UsageError: no such requirement or planner, several planners and none named, or not the document of a run.
    """
    if run.kind != "run":
        raise UsageError(f"{run.name} is the result of verify {run.kind}; a rate is made from that of verify run")
    result: RunResult = run.result
    named = [requirement for requirement in result.requirements if requirement.name == name]
    if not named:
        raise unknown_error("requirement", name, [requirement.name for requirement in result.requirements])
    planners = [requirement.planner for requirement in named]
    if planner is None and len(named) > 1:
        raise UsageError(f"{name} was checked under several planners; name one of {', '.join(planners)} (--planner)")
    chosen = [requirement for requirement in named if planner in (None, requirement.planner)]
    if not chosen:
        raise unknown_error("planner", str(planner), planners)
    return chosen[0]


def unwanted(requirement: RequirementResult, event: Event | None) -> Event:
    """Which event is meant: the one that is named, or the one that the target is about.

    Raises:
        UsageError: no target, and no event named; an event that is least probable at the end that was asked for.
    """
    if not requirement.is_plain:
        said = "rates are of events, whose probability a formula has"
        raise UsageError(f"{requirement.name} asks {requirement.asked}: {said}")
    if event is None and requirement.target is None:
        hint = "  hint: --event violated, or --event satisfied"
        raise UsageError(f"{requirement.name} has no target, so it does not say what is unwanted\n{hint}")
    chosen: Event = event or ("satisfied" if requirement.is_upper else "violated")
    if requirement.asked == ("Pmax" if chosen == "violated" else "Pmin"):
        worse = "Pmin" if chosen == "violated" else "Pmax"
        said = f"where the world decides, '{chosen}' is most probable at {worse}; ask that"
        raise UsageError(f"{requirement.name} asks {requirement.asked}: {said}")
    return chosen


def chances(requirement: RequirementResult, event: Event) -> tuple[Chance, ...]:
    """The probability of the event in each scenario, in the order of the document."""
    return tuple(_chance(point, event) for point in requirement.points)


def _chance(point: Point, event: Event) -> Chance:
    def of_event(low: Any, high: Any) -> tuple[Fraction, Fraction]:
        return (low, high) if event == "satisfied" else (1 - high, 1 - low)

    known, free = point.whatever_predicted, point.dependence_free
    whatever = of_event(Fraction(known or 0), Fraction(1 if known is None else known))
    sources: tuple[VerdictSource, ...] = ("point",) if point.uncertainty is None else get_args(VerdictSource)
    bounds = dict[RateSource, tuple[Fraction, Fraction]]((name, of_event(*point.ends(name))) for name in sources)
    if free is not None:
        bounds[FREE] = whatever if known is not None else of_event(Fraction(free.lower), Fraction(free.upper))
    value, vacuous = point.value if event == "satisfied" else 1 - point.value, bool(point.vacuity)
    rates = None if free is None else free.rates
    return Chance(point.environment, point.scenario, value, bounds, whatever, point.draws, vacuous, rates)


class Grounds:
    """What the run says about the data and the detector behind some of its scenarios."""

    def __init__(self, run: RunResult, used: Sequence[Chance]) -> None:
        """`used` are the scenarios of the run that a rate is made from."""
        self._settings = run.settings
        self._vacuous = all(chance.vacuous for chance in used)
        drawn = sorted({name for chance in used if chance.whatever[0] < chance.whatever[1] for name in chance.draws})
        self._channel = channel_test(run.channel.classes, drawn)
        self.free_of_data = {chance.free_rates for chance in used} <= {None, "measured"}
        """Whether bounds however reports depend on each other are not over rates that the data leave."""

    def _boxed(self, source: RateSource) -> bool:
        """Whether bounds hold whatever the detector remembers, within a stated box of rates."""
        return source == "bounds" and self._settings.tier == "rate_box"

    def assumes(self, source: RateSource) -> tuple[str, ...]:
        """What an interval assumes about data and detector."""
        rests_on, condition = self._settings.bounds, channel_condition(self._channel)
        if source == FREE:
            return () if rests_on is None or self.free_of_data else (rests_on.condition,)
        if self._boxed(source):
            condition = None
        assumption = rests_on.condition if source == "bounds" and rests_on else self._settings.assumption(source)
        return tuple(text for text in (assumption, condition and condition.removeprefix("if ")) if text)

    def decision(
        self,
        source: VerdictSource,
        bounds: tuple[Fraction, Fraction],
        whatever: tuple[Fraction, Fraction],
        free: tuple[Fraction, Fraction] | None,
        limit: Fraction | None,
    ) -> Decision:
        """The verdict on a criterion.

        Args:
            whatever: what it lies between whatever the detector predicts.
            free: the same however reports depend on each other; None where that is not known.
            limit: the greatest rate that is accepted; None for no criterion.
        """
        known, condition = verdict_of(*whatever, "<=", limit), None
        if free is not None and known is Verdict.INCONCLUSIVE:
            known = verdict_of(*free, "<=", limit)
            condition = None if self.free_of_data else self._settings.assumption("bounds")
        by_numbers, channel = verdict_of(*bounds, "<=", limit), replace(self._channel, boxed=self._boxed(source))
        rule = self._settings.assumption(source), self._settings.rule
        return decide(by_numbers, known, channel, *rule, vacuous=self._vacuous, whatever_if=condition)
