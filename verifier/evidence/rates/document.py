"""The rate of an unwanted event as a document."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from verifier.base.documents import Condition, Count, FractionText, InputFile, Limits, Magnitude, Share
from verifier.base.version import __version__
from verifier.checking.verdicts import Basis, Reason, Verdict
from verifier.evidence.rates.exposure import FREE, Exposure, RateSource, float_above, float_below
from verifier.evidence.rates.hazard import Bounds, Demonstration, HazardRate, Term
from verifier.evidence.settings import Event


@dataclass(frozen=True)
class RateInput(InputFile):
    """The document of the run, the context of the case where it was read, and matrices where items were counted."""

    role: Literal["result", "context", "confusion"]


@dataclass(frozen=True)
class RateBounds:
    """An interval of events per hour, its ends rounded outwards; otherwise as `hazard.Bounds`."""

    source: RateSource
    lower: float
    upper: Magnitude
    level: float | None
    error_probability: float | None
    error_exposure: Magnitude
    assumes: tuple[str, ...]


@dataclass(frozen=True)
class RateExposure:
    """Encounters per hour.

    Attributes:
        kind: how they were stated.
        encounters, hours: of a count.
        level: of a stated interval; None where it is said to hold for certain.
        per_hour: the best estimate; None for a stated interval.
        lower, upper: the interval that was used, rounded outwards.
        source: where they come from; empty where that is not said.
    """

    kind: Literal["number", "interval", "count"]
    encounters: Count | None
    hours: FractionText | None
    level: float | None
    per_hour: Magnitude | None
    lower: float
    upper: Magnitude
    source: str


@dataclass(frozen=True)
class RateTerm:
    """One summand: the probability of the event in one encounter of the worst of some scenarios, and how often."""

    environment: str
    worst_scenario: str
    scenarios: Annotated[int, Limits(ge=1)]
    probability: Share
    exposure: RateExposure


@dataclass(frozen=True)
class RateAcceptance:
    """At most so many events per hour, and who says so."""

    per_hour: FractionText
    source: str


@dataclass(frozen=True)
class RateDemonstration:
    """Testing that would show the criterion without any model, as `hazard.Demonstration`."""

    confidence: Share
    events: Count
    hours: Annotated[float, Limits(gt=0)]
    encounters: Count | None


@dataclass(frozen=True, kw_only=True)
class RateResult:
    """Result of `verify evidence rate`.

    Attributes:
        command: that made it, inputs by name without folders.
        verdict, condition, basis, reason: on the acceptance criterion, see `verifier.checking.verdicts.Decision`.
        event: what happens to the requirement's formula.
        per_hour: best estimate; None where an exposure has none.
        bounds: those of the source that decides the run, and what the verdict comes from unless its basis is another.
        left_out: environments of the run that are not in the rate.
    """

    schema: ClassVar[str] = "verifier.rate"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    verdict: Verdict
    condition: Condition | None
    basis: Basis | None
    reason: Reason | None
    inputs: Annotated[tuple[RateInput, ...], Limits(min_length=1)]
    versions: Mapping[str, str]
    requirement: str
    planner: str
    event: Event
    per_hour: Magnitude | None
    bounds: RateBounds
    other_bounds: tuple[RateBounds, ...]
    terms: Annotated[tuple[RateTerm, ...], Limits(min_length=1)]
    left_out: tuple[str, ...]
    acceptance: RateAcceptance | None
    demonstration: RateDemonstration | None

    @property
    def free(self) -> RateBounds | None:
        """The bounds however reports depend on each other; None where there are none."""
        return next((each for each in self.other_bounds if each.source == FREE), None)

    @property
    def decisive(self) -> RateBounds:
        """The bounds that the verdict rests on."""
        return self.free if self.basis == FREE and self.free is not None else self.bounds


def rate_document(found: HazardRate, context: tuple[str, str] | None = None) -> RateResult:
    """The document of a rate.

    Args:
        found: the rate.
        context: name and SHA-256 of the file of the case's context, where it was read.
    """
    accepted, shown = found.acceptance, found.demonstration
    return RateResult(
        verdict=found.verdict,
        condition=found.decision.condition,
        basis=found.decision.basis,
        reason=found.decision.reason,
        inputs=(RateInput("result", *found.run), *(() if context is None else (RateInput("context", *context),))),
        versions={"verifier": __version__},
        requirement=found.requirement,
        planner=found.planner,
        event=found.event,
        per_hour=_rounded(found.rate),
        bounds=_bounds(found.bounds),
        other_bounds=tuple(map(_bounds, found.other)),
        terms=tuple(map(_term, found.terms)),
        left_out=found.left_out,
        acceptance=None if accepted is None else RateAcceptance(str(accepted.per_hour), accepted.source),
        demonstration=None if shown is None else _demonstration(shown),
    )


def _bounds(bounds: Bounds) -> RateBounds:
    return RateBounds(
        bounds.source,
        float_below(bounds.lower),
        float_above(bounds.upper),
        _rounded(bounds.level),
        _rounded(bounds.error_probability),
        float(bounds.error_exposure),
        bounds.assumes,
    )


def _term(term: Term) -> RateTerm:
    worst = term.worst
    exposure = exposure_told(term.exposure, term.ends)
    return RateTerm(term.environment, worst.scenario, term.scenarios, float(worst.probability), exposure)


def exposure_told(exposure: Exposure, ends: tuple[Fraction, Fraction]) -> RateExposure:
    """An exposure with the ends of its interval."""
    return RateExposure(
        kind="count" if exposure.is_count else "number" if exposure.lower == exposure.upper else "interval",
        encounters=exposure.encounters,
        hours=None if exposure.hours is None else str(exposure.hours),
        level=_rounded(exposure.level),
        per_hour=_rounded(exposure.rate),
        lower=float_below(ends[0]),
        upper=float_above(ends[1]),
        source=exposure.source,
    )


def _demonstration(found: Demonstration) -> RateDemonstration:
    return RateDemonstration(float(found.confidence), found.events, float_above(found.hours), found.encounters)


def _rounded(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
