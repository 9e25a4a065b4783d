"""How wrong an assumption may be before a verdict falls: the largest correlation, and the largest shift of rates.

Both make the bounds wider the larger they are, so the largest with which a verdict stands is found by bisection. It
is searched among multiples of a step, and is the last of them that was seen to stand: what is between it and the next
is not looked at.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from verifier.analysis.confidence import Data
from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.intervals.intervals import alpha_of
from verifier.analysis.intervals.rate_intervals import RateIntervals
from verifier.analysis.objective import Objective
from verifier.analysis.planning import Question, stands, verdict_from
from verifier.base.documents import Share
from verifier.checking.verdicts import Verdict

STEPS = 1000
"""A tipping point is a multiple of 1/STEPS."""


@dataclass(frozen=True)
class TippingPoints:
    """How far from what is assumed the data may be before a verdict falls, in the worst scenario.

    Attributes:
        largest_icc: the largest intraclass correlation within drives at which the verdict for independent items
            stands; None where drives are not known, or nothing is decided even then.
        largest_shift: the largest shift of the rates of all observations at which the verdict of the run's bounds
            without any shift stands; None where nothing is decided even then.
        shift_verdict: that verdict; the run's own may be open, at a larger shift.
    """

    largest_icc: Share | None
    icc_verdict: Verdict | None
    largest_shift: Share | None
    shift_verdict: Verdict | None

    def __post_init__(self) -> None:
        for largest, verdict in ((self.largest_icc, self.icc_verdict), (self.largest_shift, self.shift_verdict)):
            if (largest is None) != (verdict is None):
                raise ValueError("a correlation, or a shift, belongs to a verdict")


def tipping_points(objective: Objective, data: Data, question: Question) -> TippingPoints | None:
    """How wrong what is assumed may be before the verdict falls; None where nothing is known of it.

    Raises:
        EngineError, LimitError: as `robust_bounds`.
    """
    by_icc: tuple[Fraction, Verdict] | tuple[None, None] = (None, None)
    if data.drives is not None and data.drives.weights == "item":
        by_icc = last_standing(objective, question, lambda icc: with_icc(data, icc))
    by_shift = last_standing(objective, question, lambda shift: with_shift(data, shift))
    if by_icc[1] is None and by_shift[1] is None:
        return None
    icc, shift = (None if at is None else float(at) for at, _ in (by_icc, by_shift))
    return TippingPoints(icc, by_icc[1], shift, by_shift[1])


def last_standing(
    objective: Objective, question: Question, assumed: Callable[[Fraction], RateIntervals]
) -> tuple[Fraction, Verdict] | tuple[None, None]:
    """The largest correlation, or shift, at which the verdict without any stands, and that verdict.

    Args:
        objective, question: what is decided.
        assumed: the intervals of all rates for a correlation or shift from 0 to 1.

    Returns:
        (None, None) where nothing is decided even at 0.
    """
    _, verdict = verdict_from(objective, assumed(Fraction(0)), question)
    if verdict not in (Verdict.SATISFIED, Verdict.VIOLATED):
        return None, None
    return largest(lambda value: stands(objective, assumed(value), question, verdict)), verdict


def largest(stands_at: Callable[[Fraction], bool]) -> Fraction:
    """The largest number from 0 to 1, in `STEPS` steps, at which something stands that does at 0."""
    if stands_at(Fraction(1)):
        return Fraction(1)
    falls = bisect_left(range(1, STEPS), True, key=lambda step: not stands_at(Fraction(step, STEPS)))
    return Fraction(falls, STEPS)  # the step before the first at which it falls


def with_icc(data: Data, icc: Fraction) -> RateIntervals:
    """The intervals if the items of one drive are correlated with an intraclass correlation of at most `icc`.

    Raises:
        ValueError: drives are not known, or bounds come from draws.
    """
    intervals = _of(data)
    if data.drives is None or data.drives.weights != "item":
        raise ValueError("a correlation within drives needs items by drive")
    alpha = alpha_of(data.basis.level) / data.basis.families
    alpha /= data.basis.looks  # betting may hold at every look; this does not
    return replace(intervals, tier="icc_at_most", drives=data.drives, largest=None, icc=icc, alpha=alpha)


def with_shift(data: Data, shift: Fraction) -> RateIntervals:
    """The intervals if every rate of the operation lies within `shift` of that of the data; errors as for an ICC."""
    return replace(_of(data), shift=int(shift * UNIT))


def _of(data: Data) -> RateIntervals:
    if data.intervals is None:
        raise ValueError("bounds from draws have no intervals of rates")
    return data.intervals
