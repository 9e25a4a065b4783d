"""What a risk is computed from, as people state it and runs found it, and as its document has it.

Shares and factors are as exact as they are stated; probabilities and encounters per hour are rounded outwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal, TypeAlias

from verifier.base.documents import Count, Exact, FractionText, Level, Limits, Sha256, Share
from verifier.evidence.rates.document import RateExposure
from verifier.evidence.settings import Event

Source: TypeAlias = Literal["bounds", "interval"]
"""Of the ends of probabilities."""
MOST_CONDITIONS = 50
UNLISTED = "no listed condition"
CHAIN = ("exposed", "uncontrolled", "severe")
"""From hazardous behaviour to harm: somebody is exposed to it, it is not controlled, the harm is severe."""


@dataclass(frozen=True, kw_only=True)
class RiskShare:
    """A share, or a factor, between two ends.

    Attributes:
        name: of the condition, or one of `CHAIN`.
        part: what it is called among the parts of the error.
        error: how often the interval may miss; 0 where it is said to hold for certain.
        source: where it comes from; empty where that is not said.
    """

    name: str
    lower: Exact
    upper: Exact
    part: str
    error: Exact
    source: str

    def __post_init__(self) -> None:
        if not (0 <= self.lower <= self.upper <= 1 and 0 <= self.error < 1):
            raise ValueError("expected a share between two ends in order, from 0 to 1")

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """Lower and upper."""
        return self.lower, self.upper


@dataclass(frozen=True, kw_only=True)
class RiskUnlisted:
    """The share of encounters in no listed condition, in which the event is taken to happen.

    Attributes:
        classified, left_over: encounters that were sorted into conditions, and those that fit none; None where the
            share is stated, or is not.
        upper: at most this share; 1 where nothing is stated.
        part, error, source: as in `RiskShare`.
    """

    classified: Count | None = None
    left_over: Count | None = None
    upper: Share = 1.0
    part: str = "unlisted encounters"
    error: Exact = Fraction(0)
    source: str = ""

    def __post_init__(self) -> None:
        if (self.classified is None) != (self.left_over is None) or (self.left_over or 0) > (self.classified or 0):
            raise ValueError("expected encounters that were classified, and those of them left over, or neither")

    @property
    def estimate(self) -> Fraction | None:
        """The share that was counted; None where only its upper end is stated."""
        if self.classified and self.left_over is not None:
            return Fraction(self.left_over, self.classified)
        return Fraction(0) if self.upper == 0 else None


@dataclass(frozen=True, kw_only=True)
class RiskEnvironment:
    """How often an environment ("every" for all) is met, and in which conditions.

    Attributes:
        exposure: encounters per hour.
        part, error: of its interval, as in `RiskShare`.
        unlisted: the share of encounters in no condition.
        shares: of the others, one for each condition.
        initial: of the scenarios, where they are stated.
    """

    name: str
    exposure: RateExposure
    part: str
    error: Exact
    unlisted: RiskUnlisted
    shares: Annotated[tuple[RiskShare, ...], Limits(min_length=1)]
    initial: tuple[RiskShare, ...] = ()

    def __post_init__(self) -> None:
        if len(self.shares) > MOST_CONDITIONS:
            raise ValueError(f"expected at most {MOST_CONDITIONS} conditions")


@dataclass(frozen=True, kw_only=True)
class RiskRun:
    """A run that probabilities are from: the document, and the source of their ends.

    Attributes:
        level: of its intervals.
        times: how many times that level can miss; confidence bounds miss together, once.
    """

    name: str
    sha256: Sha256
    source: Source
    level: Level
    times: Count

    @property
    def error(self) -> Fraction:
        """How often its intervals may miss, all together."""
        return self.times * (1 - Fraction(repr(self.level)))


@dataclass(frozen=True, kw_only=True)
class RiskCondition:
    """A condition, with the matrices that were counted in it; empty and None where there are none."""

    name: str
    matrices: str = ""
    sha256: Sha256 | None = None


@dataclass(frozen=True, kw_only=True)
class RiskCell:
    """The probability of the event in one encounter, in one environment and condition.

    Attributes:
        lower, upper: over the initial states, mixed as stated, else from the least to the worst.
        estimate: with the rates as measured, in the stated mix or the worst state; None where nothing is known.
        scenario: the worst one.
        run: number of the run, from 0; None where nothing is known.
        unknown: why nothing is known, and 0 to 1 is taken; empty where something is.
    """

    environment: str
    condition: str
    lower: Share = 0.0
    upper: Share = 1.0
    estimate: Share | None = None
    scenario: str = ""
    run: Count | None = None
    unknown: str = ""

    def __post_init__(self) -> None:
        if self.lower > self.upper or (self.run is None) != (self.unknown != ""):
            raise ValueError("expected ends in order, with a run, or else the reason why nothing is known")
        if self.unknown and (self.lower, self.upper, self.estimate) != (0, 1, None):
            raise ValueError("expected 0 to 1 where nothing is known")


@dataclass(frozen=True, kw_only=True)
class RiskHazard:
    """One hazard: an event, and its way to harm.

    Attributes:
        name, severity, source: as stated.
        requirement, planner, event: what happens.
        environments: those in which it can.
        left_out: the other ones of its runs.
        assumes: on what the numbers of the runs are conditional.
        chain: the factors of `CHAIN` that are stated; the others are 1.
        accepted: harm per hour that is accepted; None for no criterion.
        cells: one for each environment and condition, in their orders.
    """

    name: str
    requirement: str
    planner: str = ""
    event: Event = "violated"
    severity: str = ""
    source: str = ""
    environments: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    assumes: tuple[str, ...] = ()
    chain: tuple[RiskShare, ...] = ()
    accepted: FractionText | None = None
    cells: tuple[RiskCell, ...] = ()

    def __post_init__(self) -> None:
        if [each.name for each in self.chain] != [name for name in CHAIN if name in {one.name for one in self.chain}]:
            raise ValueError(f"expected factors among {', '.join(CHAIN)}, each once and in this order")
