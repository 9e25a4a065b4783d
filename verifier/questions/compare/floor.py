"""A gate for continuous integration: every requirement must hold with at least some probability.

What counts is the worst scenario of each requirement, and of it what the run holds against targets: the confidence
bound, the end of the statistical interval, or the probability itself. Where the target is an upper limit
(`P <= 0.01 [F crash]`) the good event is that the formula does not hold, and 1 - P counts. A requirement without a
target counts as if more were better.

A number from a chain whose memoryless detector the data contradict shows nothing, however large it is: such a
requirement fails the gate, unless it holds whatever the detector predicts or the assumption was accepted by name
(`--assume-memoryless`). With `--strict` so does one that rests on a condition. A vacuous scenario shows nothing
either: a requirement that is vacuous in all of its scenarios fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from verifier.analysis.channel_test import channel_test, contradicted_text
from verifier.base.numbers import decimal_text
from verifier.checking.verdicts import (
    Decision,
    Refused,
    Verdict,
    VerdictRule,
    WithinBounds,
    condition_over,
    decide,
    verdict_over,
)
from verifier.study.provenance import data_assumption
from verifier.study.results import Point, RequirementResult, RunResult


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
    condition: str | None = None
    reason: str = ""

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Floor:
    """Every requirement held against a least probability.

    Attributes:
        least: what every requirement must reach, above 0 and at most 1.
        source: what counts, one of `verifier.study.options.VERDICT_SOURCES`.
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
            "least": decimal_text(self.least),
            "from": self.source,
            "failed": self.failed,
            "requirements": [each.document() for each in self.held],
        }


def floor_of(run: RunResult, least: Fraction) -> Floor:
    """Hold every requirement of a run against a least probability.

    Args:
        run: its settings say what counts of a point, and which assumptions are accepted.
        least: above 0 and at most 1.

    Raises:
        ValueError: `least` is no such probability, or a point has no bounds from the data and they are asked for.
    """
    if not 0 < least <= 1:
        raise ValueError(f"expected a probability above 0, got {least}")
    return Floor(least, run.settings["verdict_from"], tuple(_held(each, least, run) for each in run.requirements))


def _held(each: RequirementResult, least: Fraction, run: RunResult) -> Held:
    small_is_good, source = each.comparison in ("<=", "<"), run.settings["verdict_from"]
    decisions = [_decision(point, least, small_is_good, run) for point in each.points]
    verdict = verdict_over(decision.verdict for decision in decisions)
    counted = [at for at, found in enumerate(decisions) if found.verdict is not Verdict.VACUOUS] or range(
        len(decisions)
    )
    worst = min(counted, key=lambda at: _ends(each.points[at], source, small_is_good)[0])
    reasons = dict.fromkeys(_reason(decisions[at], each.points[at]) for at in counted)
    return Held(
        each.name,
        each.planner,
        str(each.points[worst].scenario),
        float(_ends(each.points[worst], source, small_is_good)[0]),
        verdict is not Verdict.SATISFIED,
        condition_over(verdict, ((found.verdict, found.condition) for found in decisions)),
        "; ".join(reason for reason in reasons if reason),
    )


def _decision(point: Point, least: Fraction, small_is_good: bool, run: RunResult) -> Decision:
    """Whether a point is shown to reach the floor, by the rule that verdicts follow."""
    settings, known = run.settings, point.whatever_predicted
    decisive = _ends(point, settings["verdict_from"], small_is_good)[1]
    whatever = Verdict.INCONCLUSIVE
    if known is not None:
        whatever = _reaches(Fraction(1 - known if small_is_good else known), least)
    return decide(
        _reaches(decisive, least),
        whatever,
        channel_test(run.channel["classes"], point.draws),
        data_assumption(settings),
        VerdictRule(settings["strict"], settings["assume_memoryless"]),
        vacuous=bool(point.vacuity),
    )


def _reaches(value: Fraction, least: Fraction) -> Verdict:
    return Verdict.SATISFIED if value >= least else Verdict.VIOLATED


def _reason(decision: Decision, point: Point) -> str:
    """Why a number that is large enough shows nothing; empty where it is too small, or shows something."""
    if decision.verdict is Verdict.VACUOUS:
        return "vacuous: " + "; ".join(why.text for why in point.vacuity)
    reason = decision.reason
    if reason is None or isinstance(reason, WithinBounds) or reason.model_verdict != Verdict.SATISFIED.value:
        return ""
    if isinstance(reason, Refused):
        return f"--strict refuses a condition: {reason.condition}"
    return contradicted_text(reason.label, reason.p_value)


def _ends(point: Point, source: str, small_is_good: bool) -> tuple[Fraction, Fraction]:
    """What counts of a point, and the number that must not be below the floor."""
    if source == "point":
        value = Fraction(point.probability) if point.exact is None else point.exact
        bound = Fraction(point.lower if small_is_good else point.upper) if point.exact is None else point.exact
    else:
        if point.sureness is None:
            raise ValueError("the points have no bounds from the data")
        found = point.sureness
        if source == "bounds":
            value = Fraction(found.bounds_upper if small_is_good else found.bounds_lower)
        else:
            value = Fraction(found.upper_range[1] if small_is_good else found.lower_range[0])
        bound = value
    return (1 - value, 1 - bound) if small_is_good else (value, bound)
