"""Parts that the documents of questions share; they are as in the document of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal

from verifier.analysis.vacuity import Vacuity
from verifier.base.documents import Condition, Count, FractionText, InputFile, Limits, Magnitude
from verifier.base.numbers import decimal_text
from verifier.checking.verdicts import Basis, Reason, Verdict
from verifier.perception.confusion.document_types import FalseAlarms
from verifier.perception.settings import Labelling
from verifier.study.results import Point, point_document

NumberText = Annotated[str, Limits(pattern=r"^-?[0-9]+(\.[0-9]+)?(/[0-9]+)?$")]
"""Exact: a decimal or a fraction."""


@dataclass(frozen=True)
class QuestionInput(InputFile):
    """A file that went in."""

    role: Literal["spec", "model", "confusion", "record"]


@dataclass(frozen=True)
class Engines:
    """Which engine's probabilities are reported, and how far the other one is from them at most."""

    reported: Literal["storm"]
    second: Literal["batch"]
    largest_difference: Magnitude

    @classmethod
    def of(cls, points: tuple[PointRecord, ...]) -> Engines:
        """Over some points, at least one."""
        furthest = max(abs(point.probability - point.second_engine) for point in points)
        return cls("storm", "batch", furthest)


@dataclass(frozen=True, kw_only=True)
class MatricesRecord:
    """What matrices are and how they were made, as far as their file says it.

    Attributes:
        bins: of distance, as text.
        items: in all columns together.
        sequences: that are counted apart; None where none are.
        matching: the policy that decided which detection explains which object.
        dependence: whether successive frames depend on each other.
    """

    labelling: Labelling
    labels: tuple[str, ...]
    bins: tuple[str, ...]
    items: Count
    sequences: int | None
    distance: Any = None
    matching: Any = None
    false_alarms: FalseAlarms | None = None
    grouping: Any = None
    score_threshold: Any = None
    where: Any = None
    mix: Any = None
    dependence: Any = None
    remarks: Any = None
    source: Any = None


Comparison = Annotated[str, Limits(pattern="^(>=|>|<=|<)$")]


class Target:
    """What is asked of a probability, as far as it follows from `comparison` and `probability`."""

    comparison: str
    probability: str

    @property
    def fraction(self) -> Fraction:
        """The probability as a number."""
        return Fraction(self.probability)

    @property
    def is_upper(self) -> bool:
        """Whether large probabilities are the bad ones."""
        return self.comparison in ("<=", "<")

    @property
    def text(self) -> str:
        """For people: `P >= 0.95`."""
        return f"P {self.comparison} {decimal_text(self.probability)}"


@dataclass(frozen=True)
class Asked(Target):
    """The target of a requirement."""

    comparison: Comparison
    probability: FractionText


@dataclass(frozen=True, kw_only=True)
class PointRecord:
    """The probability of one requirement in one scenario.

    Attributes:
        constants: the swept ones.
        probability: by Storm.
        lower, upper: numerical bounds: solving and rounding, nothing statistical.
        second_engine: the batch engine's value.
        exact: the value as a fraction, where it is known.
        basis, condition, reason: what the verdict rests on, see `verifier.checking.verdicts.Decision`.
        draws: classes whose columns the chain draws from, empty for false alarms.
        whatever_predicted: the probability, where every detector gives the same.
        vacuity: why the requirement says nothing here.
        sureness: how sure the data make us, as in the document of a run; None where that was not asked for.
    """

    environment: str
    constants: Mapping[str, str]
    initial: Mapping[str, int]
    probability: float
    lower: float
    upper: float
    second_engine: float
    exact: FractionText | None = None
    verdict: Verdict
    basis: Basis | None
    condition: Condition | None
    reason: Reason | None
    draws: tuple[str, ...]
    whatever_predicted: Literal[0, 1] | None = None
    vacuity: tuple[Vacuity, ...] = ()
    sureness: Any = None

    @classmethod
    def of(cls, point: Point) -> PointRecord:
        """That of a point of a run."""
        typed = {name: getattr(point, name) for name in ("verdict", "reason", "draws", "vacuity")}
        return cls(**{**point_document(point), **typed})

    @property
    def scenario(self) -> str:
        """Environment, swept constants and initial state: `ped vmax=1 x=1 v=1`."""
        values = (*self.constants.items(), *self.initial.items())
        return " ".join([self.environment, *(f"{name}={value}" for name, value in values)])
