"""How wrong an assumption may be before a verdict falls: the largest correlation, and the largest shift of rates.

Both make the bounds wider the larger they are, so the largest with which a verdict stands is found by bisection. It
is searched among multiples of a step, and is the last of them that was seen to stand: what is between it and the next
is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from verifier.analysis.confidence import Data
from verifier.analysis.intervals.betting import UNIT
from verifier.analysis.intervals.intervals import alpha_of
from verifier.analysis.intervals.rate_intervals import RateIntervals
from verifier.analysis.objective import Objective
from verifier.analysis.planning import Question
from verifier.analysis.robust.region import region_of
from verifier.analysis.robust.solutions import Effort, robust_bounds
from verifier.checking.verdicts import Verdict, verdict_of

STEPS = 1000
"""A tipping point is a multiple of 1/STEPS."""


@dataclass(frozen=True)
class TippingPoints:
    """How far from what is assumed the data may be before a verdict falls, in the worst scenario.

    Attributes:
        icc: the largest intraclass correlation within drives at which the verdict for independent items stands; None
            where drives are not known, or nothing is decided even then.
        icc_verdict: that verdict.
        shift: the largest shift of the rates of all observations at which the verdict of the run's bounds without any
            shift stands; None where nothing is decided even then.
        shift_verdict: that verdict; the run's own may be open, at a larger shift.
    """

    icc: Fraction | None
    icc_verdict: Verdict | None
    shift: Fraction | None
    shift_verdict: Verdict | None

    def __post_init__(self) -> None:
        if (self.icc is None) != (self.icc_verdict is None) or (self.shift is None) != (self.shift_verdict is None):
            raise ValueError("a correlation, or a shift, belongs to a verdict")

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "largest_icc": None if self.icc is None else float(self.icc),
            "icc_verdict": None if self.icc_verdict is None else self.icc_verdict.value,
            "largest_shift": None if self.shift is None else float(self.shift),
            "shift_verdict": None if self.shift_verdict is None else self.shift_verdict.value,
        }


def largest_icc(verdict_at: Callable[[Fraction], Verdict]) -> Fraction | None:
    """The largest intraclass correlation at which the verdict for independent items stands.

    Args:
        verdict_at: the verdict from bounds for items with a correlation of at most this, `verdict_with_icc`.

    Returns:
        From 0 to 1; None where nothing is decided even for independent items.
    """
    return _largest(verdict_at)


def largest_shift(verdict_at: Callable[[Fraction], Verdict]) -> Fraction | None:
    """The largest shift of all rates at which the verdict without one stands.

    Args:
        verdict_at: the verdict from bounds that are widened by this, `verdict_with_shift`.

    Returns:
        From 0 to 1; None where nothing is decided even without a shift.
    """
    return _largest(verdict_at)


def verdict_with_icc(objective: Objective, data: Data, question: Question, icc: Fraction) -> Verdict:
    """The verdict if the items of one drive are correlated with an intraclass correlation of at most `icc`.

    Raises:
        ValueError: drives are not known, or bounds come from draws.
        EngineError, LimitError: as `robust_bounds`.
    """
    intervals = _of(data)
    if data.drives is None or data.drives.weights != "item":
        raise ValueError("a correlation within drives needs items by drive")
    alpha = alpha_of(data.basis.level) / data.basis.looks  # betting may hold at every look; this does not
    assumed = replace(intervals, tier="icc_at_most", drives=data.drives, largest=None, icc=icc, alpha=alpha)
    return _verdict(objective, assumed, question)


def verdict_with_shift(objective: Objective, data: Data, question: Question, shift: Fraction) -> Verdict:
    """The verdict if every rate of the operation lies within `shift` of that of the data; errors as for an ICC."""
    return _verdict(objective, replace(_of(data), shift=int(shift * UNIT)), question)


def _of(data: Data) -> RateIntervals:
    if data.intervals is None:
        raise ValueError("bounds from draws have no intervals of rates")
    return data.intervals


def _verdict(objective: Objective, intervals: RateIntervals, question: Question) -> Verdict:
    effort = Effort(attained=question.semantics == "one_matrix", certificates=False)
    found = robust_bounds(objective, region_of(objective.skeleton, intervals), question.semantics, effort)
    ends = float(found.lower[question.start]), float(found.upper[question.start])
    return verdict_of(*ends, question.comparison, question.target)


def _largest(verdict_at: Callable[[Fraction], Verdict]) -> Fraction | None:
    verdict = verdict_at(Fraction(0))
    if verdict not in (Verdict.SATISFIED, Verdict.VIOLATED):
        return None
    if verdict_at(Fraction(1)) is verdict:
        return Fraction(1)
    stands, falls = 0, STEPS
    while falls - stands > 1:
        middle = (stands + falls) // 2
        stands, falls = (middle, falls) if verdict_at(Fraction(middle, STEPS)) is verdict else (stands, middle)
    return Fraction(stands, STEPS)
