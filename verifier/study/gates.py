"""Gates of a run for continuous integration: what was asked for beside the targets of the spec, and what failed."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated

from verifier.base.documents import (
    ALWAYS,
    Condition,
    Derives,
    Limits,
    MisfitError,
    NumberText,
    Sha256,
    Share,
    derived,
    fraction_of,
)
from verifier.study.options import VerdictSource

DropRule = Annotated[str, Limits(pattern="^(point|probability:[0-9/.e-]+)$")]
"""What a drop is judged by: the probabilities of the given matrices, or its chance."""


def _check_share(name: str, text: str) -> None:
    """Refuse a text that is no probability."""
    try:
        value = fraction_of(text)
    except ValueError:
        raise MisfitError([name], f"expected a fraction, got {text!r}") from None
    if not 0 <= value <= 1:
        raise MisfitError([name], "expected a probability from 0 to 1")


@dataclass(frozen=True)
class Held:
    """What counts of one requirement under one planner.

    Attributes:
        scenario: the one with the least `value`; of those that are not vacuous, where there are any.
        value: P of the good event, or the bound of it that counts.
        failed: whether it is below the floor, or not shown. A probability without a bound from the data must be below
            for certain, beyond its numerical bounds.
        condition: what must be true for a requirement that passed; None where nothing is assumed.
        reason: why a number that is large enough shows nothing; empty otherwise.
    """

    requirement: str
    planner: str
    scenario: str
    value: float
    failed: bool
    condition: Condition | None = field(default=None, metadata=ALWAYS)
    reason: str = field(default="", metadata=ALWAYS)


@dataclass(frozen=True, kw_only=True)
class Floor(Derives):
    """Every requirement compared with a least probability.

    Attributes:
        least: what every requirement must reach, above 0 and at most 1.
        from_: what counts.
        failed: whether some requirement does not reach it.
        requirements: one per requirement and planner.
    """

    least: str
    from_: VerdictSource
    failed: bool = derived(lambda floor: any(held.failed for held in floor.requirements))
    requirements: tuple[Held, ...]

    def __post_init__(self) -> None:
        _check_share("least", self.least)
        super().__post_init__()


@dataclass(frozen=True)
class BaselineFile:
    """The earlier result, or the earlier matrices: name without folders and SHA-256."""

    name: str
    sha256: Sha256


@dataclass(frozen=True, kw_only=True)
class Drop:
    """What became of one requirement.

    Attributes:
        detector: by name; empty for a run, which has one.
        before, now: worst probabilities.
        drop: how much worse it is now; negative where it is better.
        failed: whether it is larger than allowed, by the rule of the gate.
        chance: that it is larger than allowed, from common draws; None where the earlier matrices are not drawn.
    """

    spec: str
    requirement: str
    detector: str = ""
    planner: str
    before: Share
    now: Share
    drop: float
    failed: bool
    chance: Share | None


@dataclass(frozen=True, kw_only=True)
class DropGate(Derives):
    """Every requirement compared with an earlier result.

    Attributes:
        max_drop: largest drop that is allowed.
        drop_from: what a drop is judged by.
        failed: whether some requirement dropped by more.
    """

    baseline: BaselineFile
    max_drop: NumberText
    drop_from: DropRule
    failed: bool = derived(lambda gate: any(drop.failed for drop in gate.drops))
    drops: Annotated[tuple[Drop, ...], Limits(min_length=1)]

    def __post_init__(self) -> None:
        _check_share("max_drop", self.max_drop)
        if self.drop_from != "point":
            _check_share("drop_from", self.drop_from.removeprefix("probability:"))
        super().__post_init__()

    @property
    def least_chance(self) -> Fraction | None:
        """The probability of a larger drop from which on it counts; None where the point estimates decide."""
        return None if self.drop_from == "point" else fraction_of(self.drop_from.removeprefix("probability:"))


@dataclass(frozen=True)
class NewRequirement:
    """A requirement that the baseline does not have."""

    requirement: str
    planner: str


@dataclass(frozen=True, kw_only=True)
class Regression(DropGate):
    """The gate of a run. `compared`: what was compared, in words."""

    compared: str
    not_in_baseline: tuple[NewRequirement, ...]


@dataclass(frozen=True)
class Gates:
    """The gates that were asked for; None where one was not."""

    fail_under: Floor | None = None
    regression: Regression | None = None

    def __post_init__(self) -> None:
        if self.fail_under is None and self.regression is None:
            raise ValueError("expected a gate")

    @property
    def failed(self) -> bool:
        """Whether one is closed."""
        return any(gate is not None and gate.failed for gate in (self.fail_under, self.regression))
