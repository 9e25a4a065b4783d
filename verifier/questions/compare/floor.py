"""A gate for continuous integration: every requirement must hold with at least some probability.

What counts is the worst scenario of each requirement, and of it what the run holds against targets: the confidence
bound, the end of the statistical interval, or the probability itself. Where the target is an upper limit
(`P <= 0.01 [F crash]`) the good event is that the formula does not hold, and 1 - P counts. A requirement without a
target counts as if more were better.

A number from a chain whose memoryless detector the data contradict shows nothing, however large it is: such a
requirement fails the gate, unless it holds whatever the detector predicts, bounds whatever the dependence reach the
floor (`--dependence-free`), or the assumption was accepted by name (`--assume-memoryless`). With `--strict` so does
one that rests on a condition. A vacuous scenario shows nothing either: a requirement that is vacuous in all of its
scenarios fails.
"""

from fractions import Fraction
from typing import Any

from verifier.analysis.channel_test import contradicted_text
from verifier.base.numbers import decimal_text
from verifier.checking.verdicts import Decision, Refused, Verdict, WithinBounds, condition_over, verdict_over
from verifier.study.collection import Judging
from verifier.study.options import VerdictSource
from verifier.study.points import Point
from verifier.study.records import Floor, Held
from verifier.study.results import RequirementResult, RunResult, Target


def floor_of(run: RunResult, least: Fraction) -> Floor:
    """Hold every requirement of a run that asks the probability of a formula against a least probability.

    Args:
        run: its settings say what counts of a point, and which assumptions are accepted.
        least: above 0 and at most 1.

    Raises:
        ValueError: `least` is no such probability, or a point has no bounds from the data and they are asked for.
    """
    if not 0 < least <= 1:
        raise ValueError(f"expected a probability above 0, got {least}")
    held = tuple(_held(requirement, least, run) for requirement in run.requirements if requirement.is_plain)
    return Floor(least=decimal_text(least), from_=run.settings.verdict_from, requirements=held)


def _held(requirement: RequirementResult, least: Fraction, run: RunResult) -> Held:
    small_is_good, source = requirement.is_upper, run.settings.verdict_from
    decisions = [_decision(point, least, small_is_good, run) for point in requirement.points]
    verdict = verdict_over(decision.verdict for decision in decisions)
    counted = [at for at, decision in enumerate(decisions) if decision.verdict is not Verdict.VACUOUS] or range(
        len(decisions)
    )
    values = {at: _counts(decisions[at], requirement.points[at], source, small_is_good) for at in counted}
    worst = min(counted, key=lambda at: values[at])
    reasons = dict.fromkeys(_reason(decisions[at], requirement.points[at]) for at in counted)
    return Held(
        requirement.name,
        requirement.planner,
        requirement.points[worst].scenario,
        float(values[worst]),
        verdict is not Verdict.SATISFIED,
        condition_over(verdict, ((decision.verdict, decision.condition) for decision in decisions)),
        "; ".join(reason for reason in reasons if reason),
    )


def _decision(point: Point, least: Fraction, small_is_good: bool, run: RunResult) -> Decision:
    """Whether a point is shown to reach the floor, by the rule that verdicts follow."""
    decisive = _ends(point, run.settings.verdict_from, small_is_good)[1]
    asked = Target("<=", 1 - least) if small_is_good else Target(">=", least)
    return Judging(run.settings, run.channel.classes).decision(point, asked, _reaches(decisive, least))


def _counts(decision: Decision, point: Point, source: VerdictSource, small_is_good: bool) -> Any:
    """The number that was held against the floor: where bounds whatever the dependence decided, their end."""
    free = point.decided(decision).decided_free
    if free is None:
        return _ends(point, source, small_is_good)[0]
    ends = (1 - free.upper, 1 - free.lower) if small_is_good else (free.lower, free.upper)
    return ends[1 if decision.verdict is Verdict.VIOLATED else 0]


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
    return contradicted_text(reason.label, reason.p_value, reason.contexts)


def _ends(point: Point, source: VerdictSource, small_is_good: bool) -> tuple[Any, Any]:
    """What counts of a point, and the number that must not be below the floor."""
    if source == "point":
        value, bound = point.value, point.ends(source)[0 if small_is_good else 1]
    else:
        if point.uncertainty is None:
            raise ValueError("the points have no bounds from the data")
        value = bound = point.ends(source)[1 if small_is_good else 0]
    return (1 - value, 1 - bound) if small_is_good else (value, bound)
