"""The rate of an unwanted event per hour: probability per encounter times encounters per hour, summed.

    rate = sum_e ( max_s P(event in one encounter of scenario s of environment e) ) * (encounters of e per hour)

The worst scenario of an environment stands for all its encounters, so the rate is that of the worst mix of scenarios:
its upper end holds for every mix, its lower end, and with it the verdict "violated", for the worst mix alone.
ISO 21448:2022, Annex C (informative) sets such a rate of hazardous behaviour against an acceptance criterion. A
criterion for harm has to be turned into one for the event first: not every event ends in harm.

Intervals. The bounds of the probabilities and the intervals of the exposures each miss with a small probability; that
all hold, and so the rate lies between the sums of the products of their ends, fails with at most the sum of these
(Bonferroni). The confidence bounds of a run hold all at once, so they count once; statistical intervals, and bounds
from resampled drives, hold one by one, and each of them counts, unless the bounds of a region show that no report can
matter there. (A bootstrap interval without a width, of items without an error, is not certain.) Ends are computed as
fractions and rounded outwards.

The verdict on a criterion follows the rule of the run (`verifier.checking.verdicts.decide`): a rate from a chain
whose detector the data contradict decides nothing, unless that was assumed by name or bounds however reports depend
on each other decide, and a condition of the run's bounds is one of the rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import get_args

from verifier.base.errors import UsageError, unknown_name
from verifier.base.numbers import significant
from verifier.checking.verdicts import Decision, Verdict
from verifier.evidence.documents import Document
from verifier.evidence.rates.demonstration import LEAST_CONFIDENCE, encounters_needed, hours_needed
from verifier.evidence.rates.exposure import (
    FREE,
    Chance,
    Exposure,
    Grounds,
    RateSource,
    chances,
    requirement_of,
    unwanted,
)
from verifier.evidence.settings import Event
from verifier.study.options import VerdictSource
from verifier.study.records import SettingsRecord
from verifier.study.results import RunResult

EVERY = "every"
"""Name of an exposure to encounters of any environment; each is taken to be of the worst."""
USUAL_ERROR = Fraction(1, 20)
"""Of the intervals of counted exposures, all together, where the result has no level that could be copied."""


@dataclass(frozen=True)
class Acceptance:
    """At most so many events per hour.

    Attributes:
        per_hour: above 0.
        source: where the criterion comes from; empty where that is not said.
    """

    per_hour: Fraction
    source: str = ""

    def __post_init__(self) -> None:
        if not self.per_hour > 0:
            raise ValueError("an acceptance criterion is a rate above 0")


@dataclass(frozen=True)
class Bounds:
    """An interval for the rate, and what its level is made of.

    Attributes:
        source: of the bounds of the probabilities.
        lower, upper: events per hour.
        error_probability, error_exposure: the parts of 1 - level; the first is None where the data's uncertainty is
            left out (source "point").
        assumes: what must be true for the interval to hold beside the model of the system, in words.
    """

    source: RateSource
    lower: Fraction
    upper: Fraction
    error_probability: Fraction | None
    error_exposure: Fraction
    assumes: tuple[str, ...] = ()

    @property
    def level(self) -> Fraction | None:
        """1 - both errors; None where the data's uncertainty is left out."""
        return None if self.error_probability is None else 1 - self.error_probability - self.error_exposure


@dataclass(frozen=True)
class Term:
    """One summand.

    Attributes:
        environment: its name, or `EVERY`.
        worst: the scenario with the greatest probability of the event.
        scenarios: how many the maximum is over.
        exposure: encounters per hour.
        ends: of the exposure's interval, per hour.
    """

    environment: str
    worst: Chance
    scenarios: int
    exposure: Exposure
    ends: tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Demonstration:
    """Testing that would show the criterion without any model.

    Attributes:
        confidence: of the demonstration.
        events: how many may be seen.
        hours: of driving; at the criterion's rate.
        encounters: in the mix of the exposures, taken at their upper ends; None where there are none.
    """

    confidence: Fraction
    events: int
    hours: Fraction
    encounters: int | None


@dataclass(frozen=True)
class HazardRate:
    """The rate of an unwanted event.

    Attributes:
        run: name and SHA-256 of the document of the run.
        requirement, planner, event: what happens.
        terms: the summands.
        rate: best estimate, per hour; None where an exposure is only stated as an interval.
        bounds: the interval that the verdict comes from.
        other: intervals from the other sources that the run has.
        decision: what the bounds say about the criterion, by the rule that the run decides by.
        acceptance: the criterion, if any.
        demonstration: what would show the criterion by testing, where there is one.
        left_out: environments of the run that were not asked for; their events are not in the rate.
    """

    run: tuple[str, str]
    requirement: str
    planner: str
    event: Event
    terms: tuple[Term, ...]
    rate: Fraction | None
    bounds: Bounds
    other: tuple[Bounds, ...]
    decision: Decision
    acceptance: Acceptance | None = None
    demonstration: Demonstration | None = None
    left_out: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """That of `decision`."""
        return self.decision.verdict


@dataclass(frozen=True)
class RateQuestion:
    """What is asked of a run beside its exposures.

    Attributes:
        requirement, planner: which; the planner may be left out where the run has one.
        event: the unwanted one; None for the one that the target is about.
        environments: only these; empty for all.
        acceptance: the criterion, if any.
        confidence: least level of the whole interval; None for what the parts give by themselves. Counted exposures
            get what the probabilities leave.
        demonstrate_at: confidence of a demonstration by testing.
        events: how many events such a demonstration may see.
    """

    requirement: str
    planner: str | None = None
    event: Event | None = None
    environments: tuple[str, ...] = ()
    acceptance: Acceptance | None = None
    confidence: Fraction | None = None
    demonstrate_at: Fraction = Fraction(19, 20)
    events: int = 0

    def __post_init__(self) -> None:
        for level in (self.confidence, self.demonstrate_at):
            if level is not None and not 0 < level < 1:
                raise UsageError(f"a level lies strictly between 0 and 1, not {float(level):g}")
        if not LEAST_CONFIDENCE <= self.demonstrate_at <= 1 - LEAST_CONFIDENCE:
            least = float(LEAST_CONFIDENCE)
            raise UsageError(f"a demonstration has a confidence of at least {least:g} and at most 1 - {least:g}")


def hazard_rate(run: Document, asked: RateQuestion, exposures: Mapping[str, Exposure]) -> HazardRate:
    """The rate of the unwanted event.

    Args:
        run: the document of a `verify run`.
        asked: which requirement, and against what.
        exposures: environment -> its encounters per hour; or one named `EVERY`, for all encounters.

    Raises:
        UsageError: an unknown name, an environment without exposure, or a confidence that cannot be reached.
        LimitError: a demonstration out of reach of the arithmetic.
    """
    requirement = requirement_of(run, asked.requirement, asked.planner)
    event = unwanted(requirement, asked.event)
    found = chances(requirement, event)
    grouped = by_exposure(found, asked.environments, exposures)
    result: RunResult = run.result
    settings = result.settings
    level = None if settings.confidence is None else Fraction(repr(settings.confidence.level))
    everything = [chance for group in grouped.values() for chance in group]
    sources = [source for source in get_args(VerdictSource) if all(source in each.bounds for each in everything)]
    chosen: VerdictSource = settings.verdict_from if settings.verdict_from in sources else "point"
    used = [exposures[name] for name in grouped]
    errors: dict[RateSource, _Errors] = {
        each: _errors(chances_to_miss(everything, each, settings), used, each, level, asked.confidence)
        for each in sources
    }
    _check_reachable(chosen, errors[chosen])
    grounds = Grounds(result, everything)
    if all(FREE in each.bounds for each in everything):
        errors[FREE] = errors[chosen].of(
            None if grounds.free_of_data or level is None else 1 - level, asked.confidence
        )
    terms = tuple(_term(name, group, exposures[name], errors[chosen].share) for name, group in grouped.items())
    bounds = {
        each: replace(_bounds(grouped, exposures, each, missing), assumes=grounds.assumes(each))
        for each, missing in errors.items()
        if missing.reachable
    }
    whatever = _summed(grouped, exposures, errors[chosen].share, lambda chance: chance.whatever)
    return HazardRate(
        (run.name, run.sha256),
        requirement.name,
        requirement.planner,
        event,
        terms,
        _best(terms),
        bounds[chosen],
        tuple(each for source, each in bounds.items() if source not in (chosen, "point")),
        grounds.decision(
            chosen,
            (bounds[chosen].lower, bounds[chosen].upper),
            whatever,
            (bounds[FREE].lower, bounds[FREE].upper) if FREE in bounds else None,
            None if asked.acceptance is None else asked.acceptance.per_hour,
        ),
        asked.acceptance,
        None if asked.acceptance is None else _demonstration(asked, asked.acceptance, terms),
        tuple(name for name in _environments(found) if name not in _environments(everything)),
    )


def _environments(found: Sequence[Chance]) -> list[str]:
    return list(dict.fromkeys(each.environment for each in found))


def by_exposure(
    found: Sequence[Chance], environments: Sequence[str], exposures: Mapping[str, Exposure]
) -> dict[str, list[Chance]]:
    """The scenarios that each exposure is about."""
    known = _environments(found)
    for name in [*environments, *exposures]:
        if name not in known and not (name == EVERY and name in exposures):
            message, hint = unknown_name("environment", name, known)
            raise UsageError(f"{message}\n  hint: {hint}")
    used = [name for name in known if not environments or name in environments]
    if EVERY in exposures:
        if len(exposures) > 1:
            raise UsageError("an exposure to every encounter leaves no room for one to a single environment")
        return {EVERY: [each for each in found if each.environment in used]}
    missing = [name for name in used if name not in exposures]
    if missing:
        raise UsageError(
            f"no exposure is given for {', '.join(missing)}\n"
            "  hint: say how often each environment is met; 0 if never"
        )
    return {name: [each for each in found if each.environment == name] for name in used}


@dataclass(frozen=True)
class _Errors:
    """How often the bounds of the probabilities (None: not said), the intervals of all exposures and the interval of
    each counted exposure may miss."""

    probability: Fraction | None
    exposure: Fraction
    share: Fraction
    reachable: bool

    def of(self, probability: Fraction | None, confidence: Fraction | None) -> _Errors:
        """With the same exposures, and other bounds of the probabilities."""
        total = self.exposure + (probability or 0)
        reachable = total < 1 and (confidence is None or total <= 1 - confidence)
        return replace(self, probability=probability, reachable=reachable)


def chances_to_miss(everything: Sequence[Chance], source: VerdictSource, settings: SettingsRecord) -> int:
    """How many times the level of single intervals can fail: confidence bounds fail together, unless they are from
    resampled drives."""
    if source == "point":
        return 1
    resampled = settings.tier == "approximate"
    if source == "bounds" and not resampled:
        return 1
    known = [each.whatever if resampled else each.bounds["bounds"] for each in everything]
    return sum(low < high for low, high in known)


def _errors(
    chances_to_miss: int,
    used: Sequence[Exposure],
    source: VerdictSource,
    level: Fraction | None,
    confidence: Fraction | None,
) -> _Errors:
    own = None if source == "point" or level is None else 1 - level
    if own is not None:
        own *= chances_to_miss
    stated = sum((each.error(Fraction(0)) for each in used), Fraction(0))
    counts = sum(each.is_count for each in used)
    if confidence is not None:
        left = 1 - confidence - stated - (own or 0)
    else:
        left = USUAL_ERROR if level is None else 1 - level
    exposed = stated + (left if counts else 0)
    total = exposed + (own or 0)
    reachable = total < 1 and (left > 0 or not counts) and (confidence is None or total <= 1 - confidence)
    return _Errors(own, exposed, left / counts if counts else Fraction(0), reachable)


def _check_reachable(source: VerdictSource, errors: _Errors) -> None:
    if not errors.reachable:
        raise UsageError(
            f"the {source} bounds of the probabilities miss with up to "
            f"{significant(float(errors.probability or 0))}, which leaves nothing for the exposure\n"
            "  hint: a lower --confidence here, a higher one in verify run, or fewer scenarios"
        )


def _bounds(
    grouped: Mapping[str, Sequence[Chance]], exposures: Mapping[str, Exposure], source: RateSource, errors: _Errors
) -> Bounds:
    lower, upper = _summed(grouped, exposures, errors.share, lambda chance: chance.bounds[source])
    return Bounds(source, lower, upper, errors.probability, errors.exposure)


def _summed(
    grouped: Mapping[str, Sequence[Chance]],
    exposures: Mapping[str, Exposure],
    share: Fraction,
    ends: Callable[[Chance], tuple[Fraction, Fraction]],
) -> tuple[Fraction, Fraction]:
    """The sums of the products of the ends of probabilities and exposures."""
    lower = upper = Fraction(0)
    for name, group in grouped.items():
        low, high = exposures[name].interval(share)
        lower += low * max(ends(chance)[0] for chance in group)
        upper += high * max(ends(chance)[1] for chance in group)
    return lower, upper


def _term(name: str, group: Sequence[Chance], exposure: Exposure, share: Fraction) -> Term:
    worst = max(group, key=lambda each: each.probability)
    return Term(name, worst, len(group), exposure, exposure.interval(share))


def _best(terms: Sequence[Term]) -> Fraction | None:
    rate = Fraction(0)
    for term in terms:
        if term.exposure.rate is None:
            return None
        rate += term.worst.probability * term.exposure.rate
    return rate


def _demonstration(asked: RateQuestion, acceptance: Acceptance, terms: Sequence[Term]) -> Demonstration:
    met = sum((term.ends[1] for term in terms), Fraction(0))
    return Demonstration(
        asked.demonstrate_at,
        asked.events,
        hours_needed(acceptance.per_hour, asked.demonstrate_at, asked.events),
        None if met == 0 else encounters_needed(acceptance.per_hour / met, asked.demonstrate_at, asked.events),
    )
