"""What one requirement asks in one scenario, mostly a probability, as documents have it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from verifier.analysis.intervals.tiers import Tier
from verifier.analysis.settings import IntervalKind
from verifier.analysis.vacuity import Vacuity
from verifier.base.documents import Condition, Count, Exact, Extended, Level, Limits, MisfitError, Share
from verifier.base.result import Result
from verifier.checking.verdicts import Basis, Decision, Reason, Verdict, verdict_of, verdict_text
from verifier.study.options import VerdictSource

if TYPE_CHECKING:  # linear programs take long to load
    from verifier.analysis.intervals.intervals import Interval


class Judged:
    """What has a verdict, which a condition may belong to."""

    verdict: Verdict
    condition: Condition | None

    @property
    def verdict_text(self) -> str:
        """The verdict with its condition, for people."""
        return verdict_text(self.verdict.value, self.condition)


class JudgedResult(Judged, Result):
    """A result with a title and a verdict."""

    title: str

    @property
    def headline(self) -> str:
        """Title and verdict."""
        return f"{self.title}: {self.verdict_text}"


@dataclass(frozen=True)
class PointInterval:
    """The statistical interval of one number.

    Attributes:
        kind: see `verifier.analysis.intervals.intervals.Interval`.
        lower_range, upper_range: what drawing leaves open of them.
        draws: how many matrices were drawn for it.
    """

    kind: IntervalKind
    lower: Extended
    upper: Extended
    lower_range: tuple[Extended, Extended]
    upper_range: tuple[Extended, Extended]
    draws: Annotated[int, Limits(ge=1)]

    @classmethod
    def of(cls, interval: Interval, k: int = 0) -> PointInterval:
        """That of initial state k."""
        (low, least), (high, most) = interval.lower_range[k].tolist(), interval.upper_range[k].tolist()
        ends = float(interval.lower[k]), float(interval.upper[k])
        return cls(interval.kind, *ends, (low, least), (high, most), interval.draws or 0)

    @property
    def ends(self) -> tuple[float, ...]:
        """All of them."""
        return self.lower, self.upper, *self.lower_range, *self.upper_range


@dataclass(frozen=True)
class PointBounds:
    """The confidence bounds of one probability.

    Attributes:
        lower, upper: all of a run hold at once, unless the tier is approximate.
        attained_lower, attained_upper: probabilities that single matrices within the confidence region have.
        conservative: whether they are known to be wider than what some matrices attain.
        tier: what they assume, see `verifier.analysis.intervals.tiers`.
    """

    lower: Share
    upper: Share
    attained_lower: float
    attained_upper: float
    conservative: bool
    tier: Tier


@dataclass(frozen=True)
class Uncertainty:
    """How sure the data make us of one number; `level` is that of the interval and of the confidence bounds.

    There are bounds for probabilities of formulas only.
    """

    level: Level
    interval: PointInterval
    confidence_bounds: PointBounds | None = None


@dataclass(frozen=True)
class DecidedState:
    """What the world decides in one state.

    Attributes:
        state: variable -> value.
        decides: input of the world -> its value; "1 with 0.2" for a probability that is known up to an interval.
        visits: how often the state is expected to be visited before all is decided; infinite where the world has its
            way as long as it decides so.
    """

    state: Mapping[str, int]
    decides: Mapping[str, str]
    visits: Extended


@dataclass(frozen=True)
class WorldDecisions:
    """What a world that decides does in the worst scenario to give the requirement its value.

    Attributes:
        probability: under these decisions, computed once more on the Markov chain that they leave.
        states: in how many states of that chain it decides between several things.
        decided: those of them that are visited most.
    """

    probability: Share
    states: Count
    decided: tuple[DecidedState, ...]


def exactly(number: float) -> Fraction | float:
    """It as a fraction, unless it is infinite."""
    return number if math.isinf(number) else Fraction(number)


def block_text(environment: str, constants: Mapping[str, str]) -> str:
    """A environment and swept constants, which make one Markov chain: `ped vmax=1`."""
    return " ".join([environment, *(f"{name}={value}" for name, value in constants.items())])


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """What both engines say of one requirement in one scenario.

    Attributes:
        environment, constants, initial: environment, values of the swept constants, initial state.
        probability: Storm's value: the probability, or what else is asked (`RequirementResult.asked`); infinite where
            a condition that ends gains or time may never hold.
        lower, upper: numerical bounds, solving and rounding included; the data's uncertainty is not in them.
        second_engine: the batch engine's value.
        exact: the value as a fraction, or None.
    """

    environment: str
    constants: Mapping[str, str]
    initial: Mapping[str, int]
    probability: Extended
    lower: Extended
    upper: Extended
    second_engine: Extended
    exact: Exact | None = None

    @property
    def block(self) -> str:
        """What makes its Markov chain: `ped vmax=1`."""
        return block_text(self.environment, self.constants)

    @property
    def scenario(self) -> str:
        """In words, its initial state last: `ped vmax=1 x=1 v=1`."""
        return " ".join([self.block, *(f"{name}={value}" for name, value in self.initial.items())])

    @property
    def place(self) -> tuple[Any, ...]:
        """What tells its scenario from all others under the same planner."""
        return self.environment, *(tuple(sorted(part.items())) for part in (self.constants, self.initial))

    @property
    def value(self) -> Any:
        """The probability as a fraction, exact where that is known; a float where it is infinite."""
        return exactly(self.probability) if self.exact is None else self.exact

    @property
    def difference(self) -> float:
        """Between the two engines."""
        return 0.0 if self.probability == self.second_engine else abs(self.probability - self.second_engine)


RatesOf: TypeAlias = Literal["confidence_region", "rate_box", "measured"]


@dataclass(frozen=True)
class FreeBounds:
    """Bounds on one probability however reports depend on each other, see `verifier.analysis.dependence_free`.

    Attributes:
        lower, upper: proven, rounded outwards.
        horizon: steps that were looked at.
        flows: variables of the linear program.
        undecided: what is not decided within these steps, in the optimum of the lower and of the upper end.
        rates: of what: the confidence region of the data, a stated box, or the measured matrix alone.
    """

    lower: Share
    upper: Share
    horizon: Count
    flows: Count
    undecided: tuple[float, float]
    rates: RatesOf

    @classmethod
    def rounded(
        cls,
        lower: Fraction,
        upper: Fraction,
        horizon: int,
        flows: int,
        undecided: tuple[float, float],
        rates: RatesOf,
    ) -> FreeBounds:
        """Bounds that were proven, as documents have them; the ends are rounded outwards."""
        return cls(_below(lower), -_below(-upper), horizon, flows, undecided, rates)

    def verdict(self, comparison: str, target: Fraction) -> Verdict:
        """What they say about a target."""
        return verdict_of(self.lower, self.upper, comparison, target)


def _below(number: Fraction) -> float:
    """The greatest double that is not above it."""
    near = float(number)
    return near if Fraction(near) <= number else math.nextafter(near, -math.inf)


@dataclass(frozen=True, kw_only=True)
class Point(Numbers):
    """The probability of one requirement in one scenario, and the verdict.

    Attributes:
        verdict: what is known about the target, from the bounds that the run was asked to hold against it.
        basis, condition, reason: what the verdict rests on, see `verifier.checking.verdicts.Decision`.
        draws: names of the classes whose columns the chain draws from: those that the channel test is about.
        whatever_predicted: the probability where every detector gives the same; else None.
        vacuity: why the requirement says nothing here; mostly nothing.
        uncertainty: how sure the data make us; None where that was not asked for.
        dependence_free: bounds however reports depend on each other; None where they were not asked for.
    """

    verdict: Verdict
    basis: Basis | None
    condition: Condition | None
    reason: Reason | None
    draws: tuple[str, ...]
    whatever_predicted: Literal[0, 1] | None = None
    vacuity: Annotated[tuple[Vacuity, ...], Limits(min_length=1)] = ()
    uncertainty: Uncertainty | None = None
    dependence_free: FreeBounds | None = None

    @property
    def decided_free(self) -> FreeBounds | None:
        """The bounds however reports depend on each other, where the verdict rests on them; else None."""
        rests = self.basis == "any_dependence" and self.whatever_predicted is None
        return self.dependence_free if rests else None

    @property
    def decision(self) -> Decision:
        """The verdict with what it rests on."""
        return Decision(self.verdict, self.basis, self.condition, self.reason)

    def decided(self, decision: Decision) -> Point:
        """The same numbers with another verdict."""
        return replace(self, **vars(decision))

    def bounds(self, source: VerdictSource) -> tuple[float, float]:
        """The bounds that are compared with the target, where there is no exact probability.

        Of an interval not its ends, which are simulated, but all that other draws might have made of them. Without
        intervals and bounds the numerical ones count, whatever was asked for.
        """
        if self.uncertainty is None or source == "point":
            return self.lower, self.upper
        if source == "interval" or self.uncertainty.confidence_bounds is None:
            return self.uncertainty.interval.lower_range[0], self.uncertainty.interval.upper_range[1]
        return self.uncertainty.confidence_bounds.lower, self.uncertainty.confidence_bounds.upper

    def ends(self, source: VerdictSource) -> tuple[Fraction | float, Fraction | float]:
        """As `bounds`, as fractions where finite; where P itself is compared with the target, exactly, twice that."""
        if self.exact is not None and (self.uncertainty is None or source == "point"):
            return self.exact, self.exact
        lower, upper = self.bounds(source)
        return exactly(lower), exactly(upper)


def uncertainty_columns(point: Point) -> dict[str, float | str]:
    """Interval and bounds of a point as columns of a flat row."""
    uncertainty, free = point.uncertainty, point.dependence_free
    both = {} if free is None else {"any_dependence_lower": free.lower, "any_dependence_upper": free.upper}
    if uncertainty is None:
        return {**both}
    bounds = uncertainty.confidence_bounds
    return {
        "level": uncertainty.level,
        "interval_lower": uncertainty.interval.lower,
        "interval_upper": uncertainty.interval.upper,
        "bounds_lower": "" if bounds is None else bounds.lower,
        "bounds_upper": "" if bounds is None else bounds.upper,
        **both,
    }


@dataclass(frozen=True, kw_only=True)
class ProfileMean:
    """The mean of a number over all scenarios, by their weights.

    Attributes:
        constants: values of the swept constants.
        probability, lower, upper: the mean, and its numerical bounds.
        exact: as a fraction, or None.
        interval: from draws of the matrices that all scenarios share; None where that was not asked for.
    """

    constants: Mapping[str, str]
    probability: Extended
    lower: Extended
    upper: Extended
    exact: Exact | None = None
    interval: PointInterval | None = None


def refuse_other_means(weights: Sequence[Fraction], points: Sequence[Point], means: Sequence[ProfileMean]) -> None:
    """Refuse means that are not those of the points by their weights; MisfitError."""
    if len(weights) != len(points) * bool(means):
        raise MisfitError(["weights"], "expected one entry per point beside means")
    for at, mean in enumerate(means):
        told = zip(weights, points, strict=True)
        here = [(weight, point.value) for weight, point in told if point.constants == mean.constants]
        if sum(weight for weight, _ in here) != 1:
            raise MisfitError(["weights"], "expected weights that add up to 1 for each mean")
        if float(sum(weight * value for weight, value in here if weight)) != mean.probability:
            raise MisfitError(["means", at, "probability"], "expected the mean of the points by their weights")
