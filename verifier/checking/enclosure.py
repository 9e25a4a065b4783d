"""What an engine answers, one number per initial state with bounds, and what both prove, as one interval.

**The enclosure is the intersection** of what both engines prove, and holds the reported value. Why it holds the true
one: the batch engine's bounds are proven with all rounding counted (`linear`). Storm's are those of a sound iteration
x -> P x in doubles, whose roundings Storm does not count. In a row of d transitions they change the sum by a factor
within 1 +- (2d+4) u, u = 2^-53, and Storm takes rows as they are, which sum to 1 only within d u. Together that is
at most (3d+6) u, as values are at most 1. Storm's lower bounds l are iterates from below, each at most (3d+6) u
above P applied to the one before. So, by induction, l exceeds the solution by at most (3d+6) u (I + Q + Q^2 + ...)
1, which is (3d+6) u times the expected number of steps until the value is decided, which the batch engine bounds.
Storm's upper bounds h are checked to satisfy P h <= h as computed, and miss by no more for the same reason. So the
bounds hold when moved outwards by that, the `rounding_of_iteration`, and by `BOUND_ROUNDOFF` for complements. Two
intervals that both hold the true value intersect. If they do not, an engine is wrong: that is an error which names
both.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import ROUNDOFF, Floats
from verifier.base.errors import EngineError, NoAnswerError
from verifier.chains.chain import MarkovChain
from verifier.checking.batch import BatchResult
from verifier.language.expressions import to_text
from verifier.language.expressions.syntax import Node

PROBABILITY_TOLERANCE = 1e-9
"""How far from [0, 1], or outside its own bounds, a probability may lie through rounding and iteration alone."""


ONE_ENGINE = "one engine"
"""How the remark of a number begins that no second engine confirms."""


class NoProbabilityError(EngineError):
    """An engine answered what cannot be a probability."""


def alone(
    failure: EngineError | NoAnswerError, reported: str = "are the batch engine's value and its proven bounds"
) -> str:
    """The remark of a number of the batch engine, for which Storm has no answer, and why."""
    reason = failure.message if isinstance(failure, NoAnswerError) else str(failure)
    return f"{ONE_ENGINE}: {reason}. Reported {reported}"


@dataclass(frozen=True, eq=False)
class CheckedValues:
    """Probabilities of one formula, or gains, at the m initial states of a model, in increasing order of the states.

    An answer is refused, never repaired: nothing is clamped to [0, 1] or moved between its bounds.

    Attributes:
        value: (m,) float64, the probabilities; rounded from `fractions` when there are any.
        lower: (m,) float64 or None, lower bounds of the probabilities in the chain with the given doubles.
        upper: (m,) float64 or None, upper bounds; given exactly when `lower` is. Both hold up to the rounding
            of double arithmetic (some 1e-16 per operation), which no engine here encloses.
        fractions: the probabilities without any error, or None when the engine computed with doubles.
        engine: what computed them, as a person would cite it, for example "Storm 2.0.0 (exact)".
        most: what none of them can exceed: 1 for probabilities, infinity for gains.

    Raises:
        EngineError: a value is no number, lies outside [0, 1] or its bounds by more than
            `PROBABILITY_TOLERANCE`, or a lower bound exceeds its upper bound.
        ValueError: the arrays do not fit together. It is an error of the program.
    """

    value: NDArray[np.float64]
    lower: NDArray[np.float64] | None
    upper: NDArray[np.float64] | None
    fractions: tuple[Fraction, ...] | None
    engine: str
    most: float = 1.0

    def __post_init__(self) -> None:
        if (self.lower is None) != (self.upper is None):
            raise ValueError("bounds come in pairs")
        for array in (self.value, self.lower, self.upper):
            if array is not None and (array.shape != (len(self.value),) or array.dtype != np.float64):
                raise ValueError("every initial state needs one double for its value and for each of its bounds")
        self._check_probabilities("a probability" if self.most == 1 else "a gain", self.value)
        if self.lower is not None and self.upper is not None:
            self._check_bounds(self.lower, self.upper)
        if self.fractions is not None:
            self._check_fractions(self.fractions)

    def _check_probabilities(self, kind: str, array: NDArray[np.float64]) -> None:
        # Written so that NaN, for which every comparison is false, counts as a fault.
        wrong = ~((array >= -PROBABILITY_TOLERANCE) & (array <= self.most + PROBABILITY_TOLERANCE))
        if np.any(wrong):
            raise NoProbabilityError(f"{self.engine} answered {array[wrong.argmax()]} for {kind}")

    def _check_bounds(self, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> None:
        self._check_probabilities("a lower bound of a probability", lower)
        self._check_probabilities("an upper bound of a probability", upper)
        wrong = lower > upper
        if np.any(wrong):
            at = int(wrong.argmax())
            raise EngineError(f"{self.engine} answered the bounds {lower[at]} and {upper[at]}, in the wrong order")
        slack = PROBABILITY_TOLERANCE * np.maximum(1, np.nan_to_num(self.value))  # finite beside an infinite value
        wrong = (self.value < lower - slack) | (self.value > upper + slack)
        if np.any(wrong):
            at = int(wrong.argmax())
            bounds = f"[{lower[at]}, {upper[at]}]"
            raise EngineError(f"{self.engine} answered {self.value[at]}, outside its own bounds {bounds}")

    def _check_fractions(self, fractions: tuple[Fraction, ...]) -> None:
        if len(fractions) != len(self.value):
            raise ValueError("every initial state needs one fraction")
        for fraction, rounded in zip(fractions, self.value.tolist(), strict=True):
            if not 0 <= fraction <= self.most:
                raise EngineError(f"{self.engine} answered an exact probability outside [0, 1], about {rounded}")
            if float(fraction) != rounded:
                raise ValueError("values must be their fractions, rounded to the nearest double")


@dataclass(frozen=True, eq=False)
class TwoEngineValues:
    """What both engines say about one formula, or about what is gained, at the m initial states.

    Attributes:
        probability: (m,) Storm's value; the batch engine's where `remark` says so.
        lower, upper: (m,) bounds of the true value, which also hold `probability`: what both engines prove, widened
            by how far rounding the chain's probabilities to doubles can move the value. Equal to the value in exact
            mode; the doubles around it where exact arithmetic was only used to settle a point.
        fractions: the exact values, or None; None too for one that is infinite.
        second: (m,) the batch engine's value.
        engine: what computed `probability`, for citing.
        remark: what a reader must know about how it was computed, if anything.
        counted: whether steps were counted because the product is out of reach, for intervals and bounds as well.
    """

    probability: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    fractions: tuple[Fraction | None, ...] | None
    second: NDArray[np.float64]
    engine: str
    remark: str | None = None
    counted: bool = False


BOUND_ROUNDOFF = 2.0**-49
"""How far Storm's bounds can miss: it forms P(G p) as 1 - P(F !p), rounded, and then gives bounds without width."""

AGREEMENT = 1e-9
"""What the engines may differ by: Storm's value of an LTL formula, which comes without bounds, from the batch
engine's enclosure in absolute terms; bounds from bounds relative to the probability."""


def rounding_of_iteration(chain: MarkovChain, batch: BatchResult) -> Floats:
    """(m,) how far the rounding of doubles may move the bounds of an iteration; infinite where nothing is known."""
    widest = int(np.diff(chain.indptr).max())
    moved: Floats = (3 * widest + 6) * ROUNDOFF * batch.expected_steps[0]
    return moved


def intersection(formula: Node, bounds: CheckedValues, batch: BatchResult, moved: Floats) -> tuple[Floats, Floats]:
    """(m,) lower and upper ends of what both engines prove for the doubles of the chain.

    Where the intervals miss each other by less than `AGREEMENT` relative to the probability, the batch engine's
    stands alone.

    Args:
        formula: for the message.
        bounds: Storm's, if it gave any.
        batch: the batch engine's enclosure.
        moved: (m,) how far rounding may have moved Storm's bounds.

    Raises:
        EngineError: the intervals do not intersect; the message names both.
    """
    low, high = batch.lower[0], batch.upper[0]
    if bounds.lower is not None and bounds.upper is not None:
        storm_low, storm_high = bounds.lower - moved - BOUND_ROUNDOFF, bounds.upper + moved + BOUND_ROUNDOFF
        gap = np.maximum(storm_low - high, low - storm_high)
        excess = gap - AGREEMENT * np.maximum(np.abs(bounds.upper), np.abs(high))
        if np.any(~(excess <= 0)):
            at = int(np.argmax(excess))
            raise EngineError(
                f"the engines disagree on {to_text(formula)} at initial state {at}: {bounds.engine} gives the bounds "
                f"{float(bounds.lower[at])!r} to {float(bounds.upper[at])!r}, the batch engine {float(low[at])!r} to "
                f"{float(high[at])!r}"
            )
        meet = gap <= 0
        low = np.where(meet, np.maximum(low, storm_low), low)
        high = np.where(meet, np.minimum(high, storm_high), high)
    return low, high


def outwards(bound: Floats, by: Floats, most: float = 1.0) -> Floats:
    """`bound + by` rounded away from the value it bounds, within [0, most]; unchanged where nothing can be off."""
    moved = np.nextafter(bound + by, np.where(np.signbit(by), -np.inf, np.inf))
    return np.where(by == 0, bound, np.minimum(np.maximum(moved, 0.0), most))


def doubles_around(number: Fraction) -> tuple[float, float]:
    """The greatest double that is not above, and the least that is not below."""
    near = float(number)
    if Fraction(near) == number:
        return near, near
    other = math.nextafter(near, math.inf if Fraction(near) < number else -math.inf)
    return min(near, other), max(near, other)


def holds(lower: Floats, upper: Floats, target: Fraction | None) -> bool:
    """Whether some interval of (m,) ends does not tell on which side of the target its value is."""
    if target is None:
        return False
    below, above = doubles_around(target)
    return bool(np.any((lower < upper) & (lower <= above) & (upper >= below)))


def apart(answer: CheckedValues, batch: BatchResult) -> Floats:
    """(m,) how far Storm's values lie outside the batch engine's enclosure."""
    distance: Floats = np.maximum(answer.value - batch.upper[0], batch.lower[0] - answer.value)
    return distance


def refuse_disagreement(formula: Node, answer: CheckedValues, batch: BatchResult, allowed: Floats) -> None:
    """Raise an EngineError with both numbers where Storm's value is further outside than `allowed`, (m,)."""
    excess = apart(answer, batch) - allowed
    if np.any(~(excess <= 0)):
        at = int(np.argmax(excess))
        raise EngineError(
            f"the engines disagree on {to_text(formula)} at initial state {at}: {answer.engine} says "
            f"{float(answer.value[at])!r}, the batch engine says {float(batch.probability[0, at])!r} "
            f"(bounds {float(batch.lower[0, at])!r} to {float(batch.upper[0, at])!r})"
        )
