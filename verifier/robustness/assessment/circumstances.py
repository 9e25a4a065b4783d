"""Target circumstances: how often they are met, how much depends on them, and which test cases are missing.

Tasks 1 to 3 of Wozniak, Segura and Mazo 2024 (Electronics 13(7), 1368), Tables 2, 4 and 5, Boxes 1 to 3:

    significance (M6) = exposure (M3) x likelihood (M4) x severity (M5), each from 1 to 5, so 1 to 125
    missing           = max(0, target frequency - source frequency)

A frequency is a probability (M1) or a relative frequency (M2). What the source data hold more often than the target
asks is not missing: the difference is cut at 0. All numbers are exact fractions.

Significance is not a probability and not a risk in the sense of ISO 26262: it orders test cases.

What turns a source image into a follow-up image in some circumstance: a named mutation and its parameters.

Mutations and parameters are those of `verifier.robustness.mutators.MUTATORS`. A transformation may leave parameters
open, as the paper's are; then it can be reported and planned, but no image can be made with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Annotated, Literal, TypeAlias

import numpy as np

from verifier.base.documents import Count, Derives, Limits, Share, derived
from verifier.base.errors import unknown_name
from verifier.base.statistics import clopper_pearson
from verifier.robustness.campaign.definition import ExactShare
from verifier.robustness.mutators import MUTATORS, Mutation
from verifier.robustness.mutators.catalogue import Plain


@dataclass(frozen=True)
class Span:
    """A parameter that differs from image to image: drawn evenly from low..high; whole numbers if both ends are.

    Raises:
        ValueError: the ends are not finite or not in order.
    """

    low: int | float
    high: int | float

    def __post_init__(self) -> None:
        if not -np.inf < self.low <= self.high < np.inf:
            raise ValueError(f"expected finite ends in order, got {self.low} and {self.high}")

    def drawn(self, rng: np.random.Generator) -> int | float:
        """One value."""
        if isinstance(self.low, int) and isinstance(self.high, int):
            return int(rng.integers(self.low, self.high, endpoint=True))
        return float(rng.uniform(self.low, self.high))


@dataclass(frozen=True)
class Transformation:
    """A mutation by name, with parameters that are fixed or drawn for every image.

    Raises:
        ValueError: no mutation of that name, a parameter that it does not have, or a value that is not allowed.
    """

    mutation: str
    parameters: Mapping[str, Plain | Span] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fault = fault_of(self.mutation, self.parameters)
        if fault is not None:
            raise ValueError(fault[1] if fault[2] is None else f"{fault[1]} ({fault[2]})")
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))

    @property
    def lacks(self) -> str | None:
        """What must still be said before an image can be made; None where nothing is open."""
        try:
            # A value within the span is allowed where its ends are, which was checked.
            low = {
                name: parameter.low if isinstance(parameter, Span) else parameter
                for name, parameter in self.parameters.items()
            }
            Mutation(self.mutation, low)
        except ValueError as error:
            return str(error)
        return None

    @property
    def made(self) -> Mutation:
        """The mutation, where nothing is drawn; ValueError where something is still open."""
        return Mutation(self.mutation, self.parameters)  # type: ignore[arg-type]  # a span is no value there

    def drawn(self, rng: np.random.Generator) -> "Transformation":
        """The one for an image: what has a span is drawn, in the order of the parameters."""
        given = self.parameters.items()
        return replace(
            self, parameters={name: value.drawn(rng) if isinstance(value, Span) else value for name, value in given}
        )

    def __str__(self) -> str:
        parts = [
            f"{name}={value.low}..{value.high}" if isinstance(value, Span) else f"{name}={value}"
            for name, value in self.parameters.items()
        ]
        return f"{self.mutation}({', '.join(parts)})" if parts else self.mutation


def fault_of(
    mutation: str, parameters: Mapping[str, Plain | Span], variable: str | None = None
) -> tuple[str, str, str | None] | None:
    """What is wrong with a transformation: key ("mutation" or a parameter), message and hint; None for nothing.

    Parameters that are missing are not wrong here, see `Transformation.lacks`; nor is the word `variable` as a value.
    """
    if mutation not in MUTATORS:
        return ("mutation", *unknown_name("mutation", mutation, MUTATORS))
    mutator = MUTATORS[mutation]
    known = {parameter.name: parameter for parameter in mutator.parameters}
    for name, value in parameters.items():
        if name not in known:
            return (name, *unknown_name(f"parameter of {mutation}", name, known))
        for end in (value.low, value.high) if isinstance(value, Span) else (value,) if value != variable else ():
            try:
                known[name].checked(end)
            except ValueError as error:
                return name, str(error), None
        if (
            isinstance(value, Span)
            and known[name].whole
            and not (isinstance(value.low, int) and isinstance(value.high, int))
        ):
            return name, f"{name}: expected whole ends, between which whole numbers are drawn", None
    both = [name for name in mutator.either if name in parameters]
    if len(both) > 1:
        return both[1], f"give one of {', '.join(mutator.either)}", None
    return None


EXPOSURE = ("Rare", "Unusual", "Occasional", "Frequent", "Continuous")
LIKELIHOOD = ("Rare", "Unlikely", "Possible", "Likely", "Certain")
SEVERITY = ("Insignificant", "Minor", "Marginal", "Critical", "Catastrophic")
"""Table 5: what the values 1 to 5 mean."""
Grade: TypeAlias = Annotated[int, Limits(ge=1, le=5)]


@dataclass(frozen=True)
class Risk:
    """The three factors of significance, each 1 to 5 as in Table 5."""

    exposure: Grade
    likelihood: Grade
    severity: Grade

    @property
    def significance(self) -> int:
        """M6, 1 to 125.

        >>> Risk(exposure=1, likelihood=2, severity=5).significance
        10
        """
        return self.exposure * self.likelihood * self.severity

    @property
    def words(self) -> tuple[str, str, str]:
        """The three factors in the words of Table 5."""
        return EXPOSURE[self.exposure - 1], LIKELIHOOD[self.likelihood - 1], SEVERITY[self.severity - 1]


@dataclass(frozen=True)
class Counted(Derives):
    """So many images of a labelled sample show it; with the exact 95 % interval of the share, if independent."""

    shown: Count
    images: Annotated[int, Limits(ge=1)]
    interval: tuple[Share, Share] = derived(lambda counted: _interval(counted), refused=False)


def _interval(counted: Counted) -> tuple[float, float]:
    low, high = clopper_pearson(np.array([counted.shown]), np.array([counted.images]), 0.025)
    return float(low[0]), float(high[0])


Scaling: TypeAlias = Literal["stated", "significance"]
MOST_SIGNIFICANT = 125


@dataclass(frozen=True)
class Circumstance:
    """One target circumstance.

    Attributes:
        name: short, for tables; unique in an assessment.
        measure: "probability" (M1) or "relative frequency" (M2); what `frequency` is.
        frequency: how often it is met in use, in 0..1; None where nobody said.
        source_frequency: relative frequency in the source data; None where nobody said.
        risk: the factors of significance; None where nobody assessed them.
        transformation: what turns a source image into one in this circumstance; None where there is none.
        tolerance_scale: what the greatest accepted change of performance is multiplied by here; positive.
        part_of: circumstances of another point of view that this one belongs to (Table 3).
        counted, source_counted: what the frequencies were counted from; None where they were stated.
    """

    name: str
    description: str = ""
    measure: str = "relative frequency"
    frequency: ExactShare | None = None
    source_frequency: ExactShare | None = None
    risk: Risk | None = None
    transformation: Transformation | None = None
    tolerance_scale: Annotated[Fraction, Limits(gt=0)] = Fraction(1)
    part_of: tuple[str, ...] = ()
    counted: Counted | None = None
    source_counted: Counted | None = None

    @property
    def label(self) -> str:
        """What a report calls it: the description where there is one."""
        return self.description or self.name

    @property
    def significance(self) -> int | None:
        """M6; None where the factors were not assessed."""
        return None if self.risk is None else self.risk.significance

    def scale(self, by: Scaling) -> Fraction:
        """What the accepted change is multiplied by: the stated scale, and by significance (126 - M6) / 125 of it.

        The paper asks for a smaller change where more depends on it (Sec. 5.2) and gives no rule; this one leaves
        the least significant circumstance as it is, and falls evenly to 1/125.

        >>> Circumstance("fog", risk=Risk(1, 2, 5)).scale("significance")
        Fraction(116, 125)
        """
        return self.tolerance_scale * tightening(self.significance, by)

    @property
    def missing(self) -> Fraction | None:
        """The share of follow-up test cases that the source data lack; None where a frequency is not known."""
        if self.frequency is None or self.source_frequency is None:
            return None
        return max(Fraction(0), self.frequency - self.source_frequency)


def tightening(significance: int | None, by: Scaling) -> Fraction:
    """The factor of `Circumstance.scale` that significance makes; 1 where nobody assessed it, or it is not asked."""
    if by == "stated" or significance is None:
        return Fraction(1)
    return Fraction(MOST_SIGNIFICANT + 1 - significance, MOST_SIGNIFICANT)


def priorities(circumstances: Sequence[Circumstance]) -> tuple[Circumstance, ...]:
    """The circumstances that follow-up test cases are missing for, the most significant first.

    Of equal significance the one that lacks more comes first, then the earlier one. Those without an assessed
    significance come last; those of which nobody knows what is missing count as lacking nothing known and stand
    after their equals. What lacks nothing is left out.
    """
    lacking = [
        circumstance for circumstance in circumstances if circumstance.missing is None or circumstance.missing > 0
    ]
    return tuple(
        sorted(
            lacking,
            key=lambda circumstance: (-(circumstance.significance or 0), -(circumstance.missing or Fraction(0))),
        )
    )
