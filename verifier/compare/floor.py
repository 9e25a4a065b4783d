"""A gate for continuous integration: every requirement must hold with at least some probability.

What counts is the worst scenario of each requirement, and of it what the run holds against targets: the guaranteed
bound, the end of the statistical interval, or the probability itself. Where the target is an upper limit
(`P <= 0.01 [F crash]`) the good event is that the formula does not hold, and 1 - P counts. A requirement without a
target counts as if more were better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from verifier.results import Point, RequirementResult
from verifier.scenarios import number_text


@dataclass(frozen=True)
class Held:
    """What counts of one requirement under one planner.

    Attributes:
        scenario: the one with the least `value`.
        value: P of the good event, or the bound of it that counts.
        failed: whether it is below the floor. A probability without a bound from the data must be below for certain,
            beyond its numerical bounds.
    """

    requirement: str
    planner: str
    scenario: str
    value: float
    failed: bool

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Floor:
    """Every requirement held against a least probability.

    Attributes:
        least: what every requirement must reach, above 0 and at most 1.
        source: what counts, one of `verifier.options.VERDICT_SOURCES`.
        held: one per requirement and planner.
    """

    least: Fraction
    source: str
    held: tuple[Held, ...]

    @property
    def failed(self) -> bool:
        """Whether some requirement does not reach it."""
        return any(each.failed for each in self.held)

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "least": number_text(self.least),
            "from": self.source,
            "failed": self.failed,
            "requirements": [each.document() for each in self.held],
        }


def floor_of(requirements: Sequence[RequirementResult], least: Fraction, source: str) -> Floor:
    """Hold every requirement against a least probability.

    Args:
        requirements: of a run.
        least: above 0 and at most 1.
        source: one of `verifier.options.VERDICT_SOURCES`.

    Raises:
        ValueError: `least` is no such probability, or a point has no bounds from the data and they are asked for.
    """
    if not 0 < least <= 1:
        raise ValueError(f"expected a probability above 0, got {least}")
    return Floor(least, source, tuple(_held(each, least, source) for each in requirements))


def _held(each: RequirementResult, least: Fraction, source: str) -> Held:
    small_is_good = each.comparison in ("<=", "<")
    ends = [_ends(point, source, small_is_good) for point in each.points]
    worst = min(range(len(ends)), key=lambda at: ends[at][0])
    return Held(
        each.name,
        each.planner,
        str(each.points[worst].scenario),
        float(ends[worst][0]),
        any(decisive < least for _, decisive in ends),
    )


def _ends(point: Point, source: str, small_is_good: bool) -> tuple[Fraction, Fraction]:
    """What counts of a point, and the number that must not be below the floor."""
    if source == "point":
        value = Fraction(point.probability) if point.exact is None else point.exact
        bound = Fraction(point.lower if small_is_good else point.upper) if point.exact is None else point.exact
    else:
        if point.sureness is None:
            raise ValueError("the points have no bounds from the data")
        found = point.sureness
        if source == "guaranteed":
            value = Fraction(found.guaranteed_upper if small_is_good else found.guaranteed_lower)
        else:
            value = Fraction(found.upper_range[1] if small_is_good else found.lower_range[0])
        bound = value
    return (1 - value, 1 - bound) if small_is_good else (value, bound)
