"""The rate of an unwanted event as a document."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from verifier.base.documents import Condition, Count, FractionText, InputFile, Limits, Magnitude, Share
from verifier.checking.verdicts import Basis, Reason, Verdict
from verifier.evidence.rates.exposure import FREE, Exposure, RateSource, float_above, float_below
from verifier.evidence.settings import Event


@dataclass(frozen=True)
class RateInput(InputFile):
    """The document of the run, the context of the case where it was read, and matrices where items were counted."""

    role: Literal["result", "context", "confusion"]


@dataclass(frozen=True)
class RateBounds:
    """An interval of events per hour, its ends rounded outwards, and what its level is made of.

    Attributes:
        source: of the bounds of the probabilities.
        level: 1 - both errors; None where the data's uncertainty is left out.
        error_probability, error_exposure: the parts of 1 - level; the first is None where the data's uncertainty is
            left out (source "point").
        assumes: what must be true for the interval to hold beside the model of the system, in words.
    """

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
    """Testing that would show the criterion without any model.

    Attributes:
        confidence: of the demonstration.
        events: how many may be seen.
        hours: of driving; at the criterion's rate.
        encounters: in the mix of the exposures, taken at their upper ends; None where there are none.
    """

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


def exposure_told(exposure: Exposure, ends: tuple[Fraction, Fraction]) -> RateExposure:
    """An exposure with the ends of its interval."""
    return RateExposure(
        kind="count" if exposure.is_count else "number" if exposure.lower == exposure.upper else "interval",
        encounters=exposure.encounters,
        hours=None if exposure.hours is None else str(exposure.hours),
        level=nearest(exposure.level),
        per_hour=nearest(exposure.rate),
        lower=float_below(ends[0]),
        upper=float_above(ends[1]),
        source=exposure.source,
    )


def nearest(value: Fraction | None) -> float | None:
    """The nearest double; None for none."""
    return None if value is None else float(value)
