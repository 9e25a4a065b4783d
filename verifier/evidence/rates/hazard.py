"""The rate of an unwanted event per hour: probability per encounter times encounters per hour, summed.

    rate = sum_e ( max_s P(event in one encounter of scenario s of environment e) ) * (encounters of e per hour)

The worst scenario of an environment stands for all its encounters, so the rate is that of the worst mix of scenarios:
its upper end holds for every mix, its lower end, and with it the verdict "violated", for the worst mix alone.
ISO 21448:2022, Annex C (informative) sets such a rate of hazardous behaviour against an acceptance criterion. A
criterion for harm has to be turned into one for the event first: not every event ends in harm.

Intervals. The bounds of the probabilities and the intervals of the exposures each miss with a small probability; that
all hold, and so the rate lies between the sums of the products of their ends, fails with at most the sum of these
(Bonferroni). The confidence bounds of a run hold all at once, so they count once; statistical intervals, and bounds
from randomly weighted drives, hold one by one, and each of them counts, unless the bounds of a region show that no
report can matter there. (A bootstrap interval without a width, of items without an error, is not certain.) Ends are
computed as fractions and rounded outwards.

The verdict on a criterion follows the rule of the run (`verifier.checking.verdicts.decide`): a rate from a chain
whose detector the data contradict decides nothing, unless that was assumed by name or bounds however reports depend
on each other decide, and a condition of the run's bounds is one of the rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import get_args

from verifier.base.errors import UsageError, unknown_error
from verifier.base.libraries import __version__
from verifier.base.numbers import significant
from verifier.evidence.documents import Document
from verifier.evidence.rates.document import (
    LEAST_CONFIDENCE,
    Acceptance,
    RateBounds,
    RateDemonstration,
    RateInput,
    RateResult,
    RateTerm,
    encounters_needed,
    exposure_told,
    hours_needed,
    nearest,
)
from verifier.evidence.rates.exposure import (
    FREE,
    Chance,
    Exposure,
    Grounds,
    RateSource,
    chances,
    float_above,
    float_below,
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
    """

    requirement: str
    planner: str | None = None
    event: Event | None = None
    environments: tuple[str, ...] = ()
    acceptance: Acceptance | None = None
    confidence: Fraction | None = None
    demonstrate_at: Fraction = Fraction(19, 20)

    def __post_init__(self) -> None:
        if not LEAST_CONFIDENCE <= self.demonstrate_at <= 1 - LEAST_CONFIDENCE:
            least = float(LEAST_CONFIDENCE)
            raise UsageError(f"a demonstration has a confidence of at least {least:g} and at most 1 - {least:g}")


def hazard_rate(
    run: Document, asked: RateQuestion, exposures: Mapping[str, Exposure], context: tuple[str, str] | None = None
) -> RateResult:
    """The rate of the unwanted event.

    Args:
        run: the document of a `verify run`.
        exposures: environment -> its encounters per hour; or one named `EVERY`, for all encounters.
        context: name and SHA-256 of the file of the case's context, where it was read.

    Raises:
        UsageError: an unknown name, an environment without exposure, or a confidence that cannot be reached.
        LimitError: a demonstration out of reach of the arithmetic.
    """
    requirement = requirement_of(run, asked.requirement, asked.planner)
    event = unwanted(requirement, asked.event)
    all_chances = chances(requirement, event)
    grouped = by_exposure(all_chances, asked.environments, exposures)
    result: RunResult = run.result
    settings = result.settings
    level = None if settings.confidence is None else Fraction(repr(settings.confidence.level))
    everything = [chance for group in grouped.values() for chance in group]
    sources = [source for source in get_args(VerdictSource) if all(source in chance.bounds for chance in everything)]
    chosen: VerdictSource = settings.verdict_from if settings.verdict_from in sources else "point"
    used = [exposures[name] for name in grouped]
    errors: dict[RateSource, _Errors] = {
        source: _errors(chances_to_miss(everything, source, settings), used, source, level, asked.confidence)
        for source in sources
    }
    if not errors[chosen].reachable:
        raise UsageError(
            f"the {chosen} bounds of the probabilities miss with up to "
            f"{significant(float(errors[chosen].probability or 0))}, which leaves nothing for the exposure\n"
            "  hint: a lower --confidence here, a higher one in verify run, or fewer scenarios"
        )
    grounds = Grounds(result, everything)
    if all(FREE in chance.bounds for chance in everything):
        missed = None if grounds.free_of_data or level is None else 1 - level
        errors[FREE] = replace(errors[chosen], probability=missed)
    met = {
        source: [(exposures[name].interval(missing.share), group) for name, group in grouped.items()]
        for source, missing in errors.items()
        if missing.reachable
    }
    ends = {source: summed(terms, source) for source, terms in met.items()}
    bounds = {end: _bounds(end, *ends[end], errors[end], grounds.assumes(end)) for end in ends}
    share, accepted = errors[chosen].share, asked.acceptance
    whatever = summed(met[chosen], None)
    terms = []
    for name, group in grouped.items():
        worst, told = _worst(group), exposure_told(exposures[name], exposures[name].interval(share))
        terms.append(RateTerm(name, worst.scenario, len(group), float(worst.probability), told))
    limit = None if accepted is None else accepted.per_hour
    decision = grounds.decision(chosen, ends[chosen], whatever, ends.get(FREE), limit)
    return RateResult(
        **vars(decision),
        inputs=(
            RateInput("result", run.name, run.sha256),
            *(() if context is None else (RateInput("context", *context),)),
        ),
        versions={"verifier": __version__},
        requirement=requirement.name,
        planner=requirement.planner,
        event=event,
        per_hour=nearest(_best(grouped, exposures)),
        bounds=bounds[chosen],
        other_bounds=tuple(bound for source, bound in bounds.items() if source not in (chosen, "point")),
        terms=tuple(terms),
        left_out=tuple(name for name in _environments(all_chances) if name not in _environments(everything)),
        acceptance=accepted,
        demonstration=None if accepted is None else _demonstration(asked, accepted, used, share),
    )


def _environments(chances: Sequence[Chance]) -> list[str]:
    return list(dict.fromkeys(chance.environment for chance in chances))


def by_exposure(
    chances: Sequence[Chance], environments: Sequence[str], exposures: Mapping[str, Exposure]
) -> dict[str, list[Chance]]:
    """The scenarios that each exposure is about."""
    known = _environments(chances)
    for name in [*environments, *exposures]:
        if name not in known and not (name == EVERY and name in exposures):
            raise unknown_error("environment", name, known)
    used = [name for name in known if not environments or name in environments]
    if EVERY in exposures:
        if len(exposures) > 1:
            raise UsageError("an exposure to every encounter leaves no room for one to a single environment")
        return {EVERY: [chance for chance in chances if chance.environment in used]}
    missing = [name for name in used if name not in exposures]
    if missing:
        hint = "  hint: say how often each environment is met; 0 if never"
        raise UsageError(f"no exposure is given for {', '.join(missing)}\n{hint}")
    return {name: [chance for chance in chances if chance.environment == name] for name in used}


@dataclass(frozen=True)
class _Errors:
    """How often the bounds of the probabilities (None: not said), the intervals of all exposures and the interval of
    each of `counts` counted exposures may miss; and the confidence that is asked for."""

    probability: Fraction | None
    exposure: Fraction
    share: Fraction
    counts: int
    confidence: Fraction | None

    @property
    def reachable(self) -> bool:
        """Whether that leaves the confidence, and something for each count."""
        total = self.exposure + (self.probability or 0)
        held = self.confidence is None or total <= 1 - self.confidence
        return total < 1 and (self.share > 0 or not self.counts) and held


def chances_to_miss(everything: Sequence[Chance], source: VerdictSource, settings: SettingsRecord) -> int:
    """How many times the level of single intervals can fail: confidence bounds fail together, unless they are from
    randomly weighted drives."""
    if source == "point":
        return 1
    weighted = settings.tier == "approximate"
    if source == "bounds" and not weighted:
        return 1
    known = [chance.whatever if weighted else chance.bounds["bounds"] for chance in everything]
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
    stated = sum((exposure.error(Fraction(0)) for exposure in used), Fraction(0))
    counts = sum(exposure.is_count for exposure in used)
    if confidence is not None:
        left = 1 - confidence - stated - (own or 0)
    else:
        left = USUAL_ERROR if level is None else 1 - level
    share = left / counts if counts else Fraction(0)
    return _Errors(own, stated + share * counts, share, counts, confidence)


def _bounds(
    source: RateSource, lower: Fraction, upper: Fraction, errors: _Errors, assumes: tuple[str, ...]
) -> RateBounds:
    level = None if errors.probability is None else 1 - errors.probability - errors.exposure
    missing = nearest(errors.probability), float(errors.exposure)
    return RateBounds(source, float_below(lower), float_above(upper), nearest(level), *missing, assumes)


def summed(
    terms: Iterable[tuple[tuple[Fraction, Fraction], Sequence[Chance]]], source: RateSource | None
) -> tuple[Fraction, Fraction]:
    """The sums of the products of the ends of exposures and of the probabilities of their worst scenarios; without a
    source of those ends that hold whatever the detector predicts."""
    lower = upper = Fraction(0)
    for (low, high), group in terms:
        ends = [chance.whatever if source is None else chance.bounds[source] for chance in group]
        lower += low * max(least for least, _ in ends)
        upper += high * max(most for _, most in ends)
    return lower, upper


def _worst(group: Sequence[Chance]) -> Chance:
    return max(group, key=lambda chance: chance.probability)


def _best(grouped: Mapping[str, Sequence[Chance]], exposures: Mapping[str, Exposure]) -> Fraction | None:
    """The best estimate; None where an exposure is only stated as an interval."""
    rate = Fraction(0)
    for name, group in grouped.items():
        met = exposures[name].rate
        if met is None:
            return None
        rate += _worst(group).probability * met
    return rate


def _demonstration(
    asked: RateQuestion, acceptance: Acceptance, exposures: Sequence[Exposure], share: Fraction
) -> RateDemonstration:
    met = sum((exposure.interval(share)[1] for exposure in exposures), Fraction(0))
    hours = float_above(hours_needed(acceptance.per_hour, asked.demonstrate_at))
    encounters = None if met == 0 else encounters_needed(acceptance.per_hour / met, asked.demonstrate_at)
    return RateDemonstration(float(asked.demonstrate_at), hours, encounters)
