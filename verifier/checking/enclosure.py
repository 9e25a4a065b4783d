"""What both engines prove about one probability, as one interval; and when they contradict each other.

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
from fractions import Fraction

import numpy as np

from verifier.base.arrays import ROUNDOFF, Floats
from verifier.base.errors import EngineError
from verifier.chains.chain import MarkovChain
from verifier.checking.batch import BatchResult
from verifier.checking.values import CheckedValues
from verifier.language.expressions import to_text
from verifier.language.expressions.syntax import Node

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
