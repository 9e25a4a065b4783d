"""The tables of a comparison, as values: who is compared, how likely each is the best, and along which axes.

In all tables of a spec the contenders stand in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from verifier.analysis.channel_test import Channel
from verifier.analysis.comparison import Flip
from verifier.base.documents import json_values
from verifier.base.numbers import decimal_text
from verifier.checking.verdicts import Verdict, condition_over, verdict_over, verdict_text
from verifier.study.points import Point
from verifier.study.results import point_document


@dataclass(frozen=True)
class Contender:
    """A detector with a planner."""

    detector: str
    planner: str

    def __str__(self) -> str:
        return f"{self.detector}, {self.planner}"


@dataclass(frozen=True)
class Drawn:
    """How a detector's matrices were drawn for one spec.

    Attributes:
        detector: its name.
        kind: "credible" (posterior) or "bootstrap" (drives resampled).
        reason: why.
        channel: the test of the memoryless detector.
    """

    detector: str
    kind: str
    reason: str
    channel: Channel


@dataclass(frozen=True)
class Entry:
    """One contender under one requirement.

    Attributes:
        contender: who.
        points: Storm's probability in every scenario.
        worst: position of the worst point.
        lower, upper: interval of the worst probability, from the draws.
        best: chance that no other contender is better.
    """

    contender: Contender
    points: tuple[Point, ...]
    worst: int
    lower: float
    upper: float
    best: float

    @property
    def worst_point(self) -> Point:
        """The scenario whose probability counts."""
        return self.points[self.worst]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict over the scenarios that are not vacuous, if there are any."""
        return verdict_over(each.verdict for each in self.points)

    @property
    def condition(self) -> str | None:
        """What must be true for the verdict to hold."""
        return condition_over(self.verdict, ((each.verdict, each.condition) for each in self.points))

    @property
    def verdict_text(self) -> str:
        """The verdict with its condition, for people."""
        return verdict_text(self.verdict.value, self.condition)


@dataclass(frozen=True)
class Course:
    """The contenders along an axis: the worst probability of each at every place.

    Attributes:
        axis: a swept constant, `initial NAME`, or `initial distance (m)`.
        places: values on the axis, increasing.
        probability: Storm's, [place][contender]; None where a contender has no scenario.
        lower, upper: intervals, likewise.
        flips: where two contenders change places.
    """

    axis: str
    places: tuple[Fraction, ...]
    probability: tuple[tuple[float | None, ...], ...]
    lower: tuple[tuple[float | None, ...], ...]
    upper: tuple[tuple[float | None, ...], ...]
    flips: tuple[Flip, ...]


@dataclass(frozen=True)
class RequirementComparison:
    """One requirement of one spec.

    Attributes:
        entries: one per contender; in all tables contenders stand in this order.
        better: chance that the contender of the row is better than that of the column.
        courses: one per axis on which the scenarios differ.
    """

    name: str
    formula: str
    comparison: str
    target: Fraction | None
    entries: tuple[Entry, ...]
    better: tuple[tuple[float, ...], ...]
    courses: tuple[Course, ...]

    @property
    def larger_is_better(self) -> bool:
        """False where the target is an upper limit."""
        return self.comparison not in ("<=", "<")

    @property
    def target_text(self) -> str:
        """The target for people: `>= 0.95`."""
        return "= ?" if self.target is None else f"{self.comparison} {decimal_text(self.target)}"


@dataclass(frozen=True)
class ParetoView:
    """Two requirements at once.

    Attributes:
        first, second: their names.
        non_dominated: for each contender whether no other is at least as good in both and better in one, with the
            measured matrices.
        chances: of that, over the draws.
    """

    first: str
    second: str
    non_dominated: tuple[bool, ...]
    chances: tuple[float, ...]


@dataclass(frozen=True)
class SpecComparison:
    """All requirements of one spec, with how each detector was drawn for it."""

    spec: str
    contenders: tuple[Contender, ...]
    drawn: tuple[Drawn, ...]
    requirements: tuple[RequirementComparison, ...]
    pareto: ParetoView | None

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        pareto = self.pareto
        return {
            "spec": self.spec,
            "contenders": [{"detector": each.detector, "planner": each.planner} for each in self.contenders],
            "drawn": [
                {
                    "detector": each.detector,
                    "kind": each.kind,
                    "reason": each.reason,
                    "channel": json_values(each.channel),
                }
                for each in self.drawn
            ],
            "requirements": [_requirement_document(each) for each in self.requirements],
            "pareto": None
            if pareto is None
            else {
                "first": pareto.first,
                "second": pareto.second,
                "non_dominated": list(pareto.non_dominated),
                "chances": list(pareto.chances),
            },
        }


def _requirement_document(each: RequirementComparison) -> dict[str, Any]:
    return {
        "name": each.name,
        "formula": each.formula,
        "target": None if each.target is None else {"comparison": each.comparison, "probability": str(each.target)},
        "entries": [
            {
                "detector": entry.contender.detector,
                "planner": entry.contender.planner,
                "verdict": entry.verdict.value,
                "condition": entry.condition,
                "worst": entry.worst,
                "interval": {"lower": entry.lower, "upper": entry.upper},
                "best": entry.best,
                "points": [point_document(point) for point in entry.points],
            }
            for entry in each.entries
        ],
        "better": [list(row) for row in each.better],
        "courses": [_course_document(course) for course in each.courses],
    }


def _course_document(course: Course) -> dict[str, Any]:
    return {
        "axis": course.axis,
        "places": [decimal_text(place) for place in course.places],
        "probability": [list(row) for row in course.probability],
        "lower": [list(row) for row in course.lower],
        "upper": [list(row) for row in course.upper],
        "flips": [
            {
                "first": flip.first,
                "second": flip.second,
                "before": flip.before,
                "after": flip.after,
                "first_ahead": flip.first_ahead,
                "second_ahead": flip.second_ahead,
            }
            for flip in course.flips
        ],
    }
