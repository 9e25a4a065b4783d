"""What a run found, as values that give their JSON document; its schema is `run.schema.json` beside this file.

Equal inputs give equal bytes: the document holds no times, no absolute paths and no user names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from verifier.analysis.planning import EvidencePlan
from verifier.analysis.tipping import TippingPoints
from verifier.analysis.vacuity import Vacuity
from verifier.base.documents import InputFile as InputFile
from verifier.base.documents import json_values
from verifier.base.files import document_text
from verifier.base.numbers import decimal_text
from verifier.base.result import Result
from verifier.checking.verdicts import Reason, Verdict, condition_over, verdict_over, verdict_text, worst_verdict

SCHEMA_NAME = "verifier.run"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Scenario:
    """One point of the grid: planner, values of the swept constants, true environment, initial state."""

    planner: str
    swept: Mapping[str, int | Fraction]
    environment: str
    initial: Mapping[str, int]

    def __str__(self) -> str:
        parts = [self.environment]
        parts += [f"{name}={decimal_text(value)}" for name, value in self.swept.items()]
        parts += [f"{name}={value}" for name, value in self.initial.items()]
        return " ".join(parts)


@dataclass(frozen=True)
class Sureness:
    """How sure the data make us of one probability.

    Attributes:
        level: of the interval and of the confidence bounds.
        kind: of the interval, "credible" or "bootstrap"; see `verifier.analysis.intervals.intervals.Interval`.
        lower, upper: the interval.
        lower_range, upper_range: what drawing leaves open of its ends.
        draws: how many matrices were drawn for it.
        bounds_lower, bounds_upper: confidence bounds; all of a run hold at once, unless the tier is approximate.
        attained_lower, attained_upper: probabilities that single matrices within the confidence region have.
        conservative: whether the confidence bounds are known to be wider than what some matrices attain.
        tier: what the confidence bounds assume, see `verifier.analysis.intervals.tiers`.
    """

    level: float
    kind: str
    lower: float
    upper: float
    lower_range: tuple[float, float]
    upper_range: tuple[float, float]
    draws: int
    bounds_lower: float
    bounds_upper: float
    attained_lower: float
    attained_upper: float
    conservative: bool
    tier: str

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "level": self.level,
            "interval": {
                "kind": self.kind,
                "lower": self.lower,
                "upper": self.upper,
                "lower_range": list(self.lower_range),
                "upper_range": list(self.upper_range),
                "draws": self.draws,
            },
            "confidence_bounds": {
                "lower": self.bounds_lower,
                "upper": self.bounds_upper,
                "attained_lower": self.attained_lower,
                "attained_upper": self.attained_upper,
                "conservative": self.conservative,
                "tier": self.tier,
            },
        }


@dataclass(frozen=True)
class Point:
    """The probability of one requirement in one scenario.

    Attributes:
        probability: Storm's value.
        lower, upper: numerical bounds, solving and rounding included; the data's uncertainty is not in them.
        exact: the value as a fraction, or None.
        second: the batch engine's value.
        verdict: what is known about the target, from the bounds that the run was asked to hold against it.
        sureness: how sure the data make us; None where that was not asked for.
        basis, condition, reason: what the verdict rests on, see `verifier.checking.verdicts.Decision`.
        draws: names of the classes whose columns the chain draws from: those that the channel test is about.
        whatever_predicted: the probability, 0 or 1, where every detector gives the same; else None.
        vacuity: why the requirement says nothing here; mostly nothing.
    """

    scenario: Scenario
    probability: float
    lower: float
    upper: float
    exact: Fraction | None
    second: float
    verdict: Verdict
    sureness: Sureness | None = None
    basis: str | None = None
    condition: str | None = None
    reason: Reason | None = None
    draws: tuple[str, ...] = ()
    whatever_predicted: int | None = None
    vacuity: tuple[Vacuity, ...] = ()

    @property
    def verdict_text(self) -> str:
        """The verdict with its condition, for people."""
        return verdict_text(self.verdict.value, self.condition)


@dataclass(frozen=True)
class RequirementResult:
    """One requirement under one planner, over all its scenarios.

    Attributes:
        formula: the requirement's formula, fully parenthesised.
        comparison, target: `P >= target` and so on; comparison "=" and target None for `P = ?`.
        points: one per scenario, in the order of the grid; never empty.
        strategies: smallest and largest probability over every strategy that wins the same game as the
            synthesised planner, per scenario, where that was asked for.
        evidence: what would decide it, where it is inconclusive and that is known.
        tipping: how wrong the assumptions of its bounds may be, where that is known.
    """

    name: str
    planner: str
    formula: str
    comparison: str
    target: Fraction | None
    points: tuple[Point, ...]
    strategies: tuple[tuple[float, float], ...] | None = None
    evidence: EvidencePlan | None = None
    tipping: TippingPoints | None = None

    @property
    def verdict(self) -> Verdict:
        """The worst verdict over the scenarios that are not vacuous, if there are any."""
        return verdict_over(point.verdict for point in self.points)

    @property
    def condition(self) -> str | None:
        """What must be true for the verdict to hold."""
        return condition_over(self.verdict, ((point.verdict, point.condition) for point in self.points))

    @property
    def verdict_text(self) -> str:
        """The verdict with its condition, for people."""
        return verdict_text(self.verdict.value, self.condition)

    @property
    def worst(self) -> Point:
        """The scenario with the worst verdict; of several the one with the least probability, or with the greatest
        where the target is an upper limit."""
        worst = [point for point in self.points if point.verdict is self.verdict]
        pick = max if self.comparison in ("<=", "<") else min
        return pick(worst, key=lambda point: point.probability if point.exact is None else point.exact)

    @property
    def best(self) -> Point:
        """The scenario at the other end."""
        pick = min if self.comparison in ("<=", "<") else max
        return pick(self.points, key=lambda point: point.probability if point.exact is None else point.exact)

    @property
    def target_text(self) -> str:
        """The target for people: `>= 0.95`."""
        return "= ?" if self.target is None else f"{self.comparison} {decimal_text(self.target)}"


@dataclass(frozen=True)
class Unanswered:
    """A requirement that has no answer within the limits of time, memory and size.

    Attributes:
        requirement, formula: its name, and its formula fully parenthesised.
        reason: which limit, in which chain, and what to do.
        points: the scenarios that were finished, for the measured matrix alone: none is judged.
    """

    requirement: str
    formula: str
    reason: str
    points: tuple[Point, ...]

    @property
    def remark(self) -> str:
        """For readers of the numbers."""
        return f"{self.requirement}: no answer within the limits. {' '.join(self.reason.split())}"

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        points = [{"planner": point.scenario.planner, **_numbers_document(point)} for point in self.points]
        return {"name": self.requirement, "formula": self.formula, "reason": self.reason, "finished": points}


@dataclass(frozen=True, repr=False)
class RunResult(Result):
    """Everything one `verify run` found.

    Attributes:
        title: what the matrices are, for people.
        inputs: the files that went in.
        settings: every choice that can change a number, by name.
        requirements: per planner, in the order of the spec.
        versions: of this program and of what it computed with.
        remarks: what a reader must know to read the numbers rightly.
        matrices: what the matrices are and how they were made; empty where that is not said.
        channel: the test of the memoryless channel, see `verifier.analysis.channel_test.channel_document`.
        unanswered: what has no answer within the limits; also among the remarks.
    """

    title: str
    inputs: tuple[InputFile, ...]
    settings: Mapping[str, Any]
    requirements: tuple[RequirementResult, ...]
    versions: Mapping[str, str]
    remarks: tuple[str, ...]
    matrices: Mapping[str, Any] = field(default_factory=dict)
    channel: Mapping[str, Any] = field(default_factory=dict)
    unanswered: tuple[Unanswered, ...] = ()

    TOLD = "verifier.telling.run:run_table"
    DRAWN = "verifier.telling.figures.run:figure_of_run"

    @property
    def headline(self) -> str:
        """Title and verdict."""
        return f"{self.title}: {self.verdict_text}"

    @property
    def largest_difference(self) -> float:
        """Between the two engines, over all points."""
        return max(abs(point.probability - point.second) for each in self.requirements for point in each.points)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict over all requirements."""
        missing = [Verdict.NO_ANSWER] if self.unanswered else []
        return worst_verdict([*missing, *(each.verdict for each in self.requirements)])

    @property
    def condition(self) -> str | None:
        """What must be true for the verdict to hold."""
        return condition_over(self.verdict, ((each.verdict, each.condition) for each in self.requirements))

    @property
    def verdict_text(self) -> str:
        """The verdict with its condition, for people."""
        return verdict_text(self.verdict.value, self.condition)

    def document(self) -> dict[str, Any]:
        """The JSON document of the run."""
        return {
            "schema": SCHEMA_NAME,
            "version": SCHEMA_VERSION,
            "title": self.title,
            "verdict": self.verdict.value,
            "condition": self.condition,
            "inputs": json_values(self.inputs),
            **({"matrices": dict(self.matrices)} if self.matrices else {}),
            "settings": dict(self.settings),
            **({"channel": dict(self.channel)} if self.channel else {}),
            "versions": dict(self.versions),
            "engines": engines_record([self]),
            "remarks": list(self.remarks),
            "requirements": [_requirement_document(each) for each in self.requirements],
            **({"unanswered": [each.document() for each in self.unanswered]} if self.unanswered else {}),
        }

    def json_text(self) -> str:
        """The document as text."""
        return document_text(self.document())

    def rows(self) -> Iterator[dict[str, str | int | float]]:
        """One flat row per requirement and scenario, with the same columns throughout."""
        for each in self.requirements:
            for point in each.points:
                yield {
                    "requirement": each.name,
                    "planner": each.planner,
                    "environment": point.scenario.environment,
                    **{f"constant_{name}": decimal_text(value) for name, value in point.scenario.swept.items()},
                    **{f"initial_{name}": value for name, value in point.scenario.initial.items()},
                    "probability": point.probability,
                    "lower": point.lower,
                    "upper": point.upper,
                    "exact": "" if point.exact is None else fraction_text(point.exact),
                    "second_engine": point.second,
                    **_sureness_columns(point.sureness),
                    "comparison": "" if each.target is None else each.comparison,
                    "target": "" if each.target is None else decimal_text(each.target),
                    "verdict": point.verdict.value,
                    "condition": point.condition or "",
                    "basis": point.basis or "",
                }


def _sureness_columns(sureness: Sureness | None) -> dict[str, float]:
    if sureness is None:
        return {}
    return {
        "level": sureness.level,
        "interval_lower": sureness.lower,
        "interval_upper": sureness.upper,
        "bounds_lower": sureness.bounds_lower,
        "bounds_upper": sureness.bounds_upper,
    }


def engines_record(results: Iterable[RunResult]) -> dict[str, Any]:
    """Which engine's numbers are reported, and how far the other one is from them over one or more runs."""
    furthest = max(each.largest_difference for each in results)
    return {"reported": "storm", "second": "batch", "largest_difference": furthest}


def _requirement_document(each: RequirementResult) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": each.name,
        "planner": each.planner,
        "formula": each.formula,
        "target": None if each.target is None else {"comparison": each.comparison, "probability": str(each.target)},
        "verdict": each.verdict.value,
        "condition": each.condition,
        "worst": each.points.index(each.worst),
        "points": [point_document(point) for point in each.points],
    }
    if each.strategies is not None:
        document["strategies"] = [{"smallest": low, "largest": high} for low, high in each.strategies]
    if each.evidence is not None:
        document["evidence_needed"] = each.evidence.document()
    if each.tipping is not None:
        document["tipping_points"] = each.tipping.document()
    return document


def point_document(point: Point) -> dict[str, Any]:
    """A point as JSON values, the same in every document."""
    document = _numbers_document(point) | {
        "verdict": point.verdict.value,
        "basis": point.basis,
        "condition": point.condition,
        "reason": json_values(point.reason),
        "draws": list(point.draws),
    }
    if point.whatever_predicted is not None:
        document["whatever_predicted"] = point.whatever_predicted
    if point.vacuity:
        document["vacuity"] = [{"kind": why.kind, "text": why.text} for why in point.vacuity]
    if point.sureness is not None:
        document["sureness"] = point.sureness.document()
    return document


def _numbers_document(point: Point) -> dict[str, Any]:
    """Where a point is, and what both engines say there."""
    exact = {} if point.exact is None else {"exact": fraction_text(point.exact)}
    return {
        "environment": point.scenario.environment,
        "constants": {name: decimal_text(value) for name, value in point.scenario.swept.items()},
        "initial": dict(point.scenario.initial),
        "probability": point.probability,
        "lower": point.lower,
        "upper": point.upper,
        "second_engine": point.second,
        **exact,
    }


def fraction_text(value: Fraction) -> str:
    """`str(value)`, however many digits it has; Python refuses to write integers of more than 4300."""
    parts = (value.numerator,) if value.denominator == 1 else (value.numerator, value.denominator)
    return "/".join(format(Decimal(part), "f") for part in parts)
