"""The rate of an unwanted event as a document.

How many encounters, or hours, of testing without an event would show an acceptance criterion without any model.

If every encounter ends in an event with probability p or more, independently of the others, then n encounters show no
event with at most the probability (1 - p)^n. Where that is at most a, they show "less than p" at the confidence 1 - a
(the upper limit of Clopper and Pearson, Biometrika 26, 1934, solved for n):

    n >= ln(a) / ln(1 - p),

which is about 3 / p for a = 0.05: the rule of three. For a rate r per hour and events that come as a Poisson process,
T hours do if exp(-r T) <= a. ISO 21448:2022, Annex C (informative) derives the length of a validation from an
acceptance criterion in this way.

Logarithms have `DIGITS` decimal digits, so that a whole number is not missed by a rounding error.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from verifier.base.documents import (
    Condition,
    Count,
    FractionText,
    InputFile,
    Limits,
    Magnitude,
    Share,
    Stated,
    fraction_of,
)
from verifier.base.errors import LimitError
from verifier.base.numbers import significant
from verifier.checking.verdicts import Basis, Reason, Verdict
from verifier.evidence.rates.exposure import FREE, Exposure, RateSource, float_above, float_below
from verifier.evidence.settings import Event

DIGITS = 60
LEAST_PROBABILITY = Fraction(1, 10**20)
LEAST_CONFIDENCE = Fraction(1, 10**6)
CLOSE = Decimal("1e-20")
_PRECISE = Context(prec=DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX)
MOST_EXACT = 2000
"""Encounters up to which one that is as `CLOSE` to a whole number is compared in fractions: it may be equal to it."""


def encounters_needed(probability: Fraction, confidence: Fraction) -> int:
    """The least n from 1 on with (1 - p)^n <= 1 - confidence.

    Args:
        probability: p, of an event in one encounter, to be shown not to be reached; from 1 on there is nothing to
            show, which takes 0 encounters.
        confidence: from `LEAST_CONFIDENCE` to below 1.

    Raises:
        LimitError: a probability below `LEAST_PROBABILITY`.
        ValueError: a number out of range.

    >>> encounters_needed(Fraction(1, 100), Fraction(95, 100))
    299
    """
    _check(probability, confidence)
    if probability >= 1:
        return 0
    with localcontext(_PRECISE):
        needed = _decimal(1 - confidence).ln() / _decimal(1 - probability).ln()
        whole = int(needed.to_integral_value())
        if 1 <= whole <= MOST_EXACT and abs(needed - whole) <= CLOSE:
            return whole if (1 - probability) ** whole <= 1 - confidence else whole + 1
        return max(math.ceil(needed), 1)


def hours_needed(rate: Fraction, confidence: Fraction) -> Fraction:
    """The least T with exp(-rate * T) <= 1 - confidence, or up to one part in 10^12 more.

    Args:
        rate: events per hour, above 0.
        confidence: as `encounters_needed`.

    Raises:
        LimitError, ValueError: as `encounters_needed`.
    """
    _check(rate, confidence)
    with localcontext(_PRECISE):
        return Fraction(-_decimal(1 - confidence).ln()) * (1 + Fraction(1, 10**15)) / rate


def _check(least: Fraction, confidence: Fraction) -> None:
    if not LEAST_CONFIDENCE <= confidence < 1 or not least > 0:
        raise ValueError("expected a probability above 0 and a confidence below 1")
    if least < LEAST_PROBABILITY:
        said = f"an event of {significant(float(least))} cannot be shown"
        raise LimitError(f"{said}; at least {float(LEAST_PROBABILITY):g}")


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


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
class Acceptance:
    """At most so many events per hour, above 0, and who says so; empty where that is not said."""

    per_hour: Stated
    source: str

    def __post_init__(self) -> None:
        if not self.per_hour > 0:
            raise ValueError("expected a criterion above 0")


@dataclass(frozen=True)
class RateDemonstration:
    """Testing without an event that would show the criterion without any model.

    Attributes:
        confidence: of the demonstration.
        hours: of driving; at the criterion's rate.
        encounters: in the mix of the exposures, taken at their upper ends; None where there are none.
    """

    confidence: Share
    hours: Annotated[float, Limits(gt=0)]
    encounters: Count | None
    events: Annotated[int, Limits(ge=0, le=0)] = 0  # of a document that the first release wrote


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
    acceptance: Acceptance | None
    demonstration: RateDemonstration | None

    @property
    def free(self) -> RateBounds | None:
        """The bounds however reports depend on each other; None where there are none."""
        return next((other_bound for other_bound in self.other_bounds if other_bound.source == FREE), None)

    @property
    def decisive(self) -> RateBounds:
        """The bounds that the verdict rests on."""
        return self.free if self.basis == FREE and self.free is not None else self.bounds


def exposure_told(exposure: Exposure, ends: tuple[Fraction, Fraction]) -> RateExposure:
    """An exposure with the ends of its interval."""
    return RateExposure(
        kind="count" if exposure.is_count else "interval" if exposure.rate is None else "number",
        encounters=exposure.encounters,
        hours=None if exposure.hours is None else str(exposure.hours),
        level=nearest(exposure.level),
        per_hour=nearest(exposure.rate),
        lower=float_below(ends[0]),
        upper=float_above(ends[1]),
        source=exposure.source,
    )


def exposure_in(told: RateExposure) -> Exposure:
    """An exposure as a document has it; ValueError of one that none can be."""
    if told.encounters is not None and told.hours is not None:
        return Exposure.counted(told.encounters, fraction_of(told.hours), told.source)
    rate = None if told.per_hour is None else Fraction(told.per_hour)
    level = None if told.level is None else Fraction(repr(told.level))
    return Exposure(Fraction(told.lower), Fraction(told.upper), rate, level, source=told.source)


def nearest(value: Fraction | None) -> float | None:
    """The nearest double; None for none."""
    return None if value is None else float(value)
