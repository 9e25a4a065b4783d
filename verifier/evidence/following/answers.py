"""Whether the parts of a document about required recalls follow from each other."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from verifier.base.errors import shown
from verifier.checking.verdicts import Verdict
from verifier.evidence.following.numbers import Misfits, misfits, ordered
from verifier.evidence.points import ROUNDING, SOLVING
from verifier.questions.require.question import MOST_DECIMALS

if TYPE_CHECKING:
    from verifier.questions.require.require_result import Answer, RequireResult


def require_misfits(result: RequireResult) -> Misfits:
    """What an answer says of its own points, and the recalls that its value stands for."""
    decimals = result.settings.get("decimals")
    if type(decimals) is not int or not 1 <= decimals <= MOST_DECIMALS:
        yield "/settings/decimals", f"expected a whole number from 1 to {MOST_DECIMALS}, got {shown(decimals)}"
        return
    for at, answer in enumerate(result.answers):
        where = f"/answers/{at}"
        stated = {
            "met_as_measured": answer.measured.verdict is Verdict.SATISFIED,
            "planner_is_limit": answer.perfect.verdict is Verdict.VIOLATED,
        }
        for name, follows in stated.items():
            yield from misfits(f"{where}/{name}", getattr(answer, name), follows)
        yield from _outcome(where, answer)
        for name in ("gaps", "curve"):
            places = [Fraction(each[0]) for each in getattr(answer, name)]
            if sorted(set(places)) != sorted(places) or any(place < 0 for place in places):
                yield f"{where}/{name}", "expected each place once, from 0 on"
        for k, (low, high) in enumerate(answer.gaps):
            yield from ordered(f"{where}/gaps/{k}", (float(Fraction(low)), float(Fraction(high))), 0)
        yield from _recalls(where, answer, result.mode, 10**decimals)
        yield from _target(where, answer, result)


def _outcome(where: str, answer: Answer) -> Misfits:
    """What there is with each outcome."""
    found, independent = answer.outcome.value == "found", answer.outcome.value == "independent"
    if (answer.value is not None) != found:
        yield f"{where}/value", f"expected {'a value' if found else 'none'}, as the outcome is {answer.outcome.value}"
    for name, there in (("at_value", answer.at_value is not None), ("cells", bool(answer.cells))):
        if there == independent:
            yield f"{where}/{name}", f"expected {'nothing' if there else 'something'}: {answer.outcome.value}"
    for k, cell in enumerate(answer.cells):
        if (cell.required is not None) != found:
            yield (
                f"{where}/cells/{k}/required",
                f"expected a recall where there is a value, and {cell.required} is not",
            )
        if cell.required is not None and not 0 <= Fraction(cell.required) <= 1:
            yield f"{where}/cells/{k}/required", f"expected a recall from 0 to 1, got {cell.required}"
    told = answer.at_value
    if found and told is not None and told.verdict not in (Verdict.SATISFIED, Verdict.INCONCLUSIVE):
        yield (
            f"{where}/at_value/verdict",
            f"expected satisfied or inconclusive where one is found, got {told.verdict}",
        )
    if told is not None and answer.value is not None:
        for k, (place, value) in enumerate(answer.curve):
            if Fraction(place) == Fraction(answer.value) and abs(value - told.probability) > SOLVING:
                yield f"{where}/curve/{k}/1", f"expected {told.probability}, as at the value"


def _recalls(where: str, answer: Answer, mode: str, whole: int) -> Misfits:
    """The recalls of the cells: all the value, or 1 less the value times the measured misses, in parts of 1/whole."""
    if answer.value is None or mode == "cost":
        return
    value = Fraction(answer.value)
    for k, cell in enumerate(answer.cells):
        follows = value
        if mode == "factor":
            follows = Fraction(whole - math.floor(value * whole * (1 - cell.measured.exact)), whole)
        if cell.required is not None and abs(Fraction(cell.required) - follows) > ROUNDING:
            yield f"{where}/cells/{k}/required", f"expected {float(follows)}, which follows from the value {value}"


def _target(where: str, answer: Answer, result: RequireResult) -> Misfits:
    """The value is the first from which on all that was tried meets the target."""
    if answer.value is None or result.mode == "cost":
        return
    target, value, sign = result.requirement.target, Fraction(answer.value), -1 if result.mode == "factor" else 1
    goal, side = float(target.probability), -1 if target.is_upper else 1
    before = [each for each in answer.curve if sign * (Fraction(each[0]) - value) < 0]
    nearest = max(before, key=lambda each: sign * Fraction(each[0]), default=None)
    if nearest is not None and side * (nearest[1] - goal) > SOLVING:
        yield "/requirement/probability", f"expected a target that {nearest[0]} does not meet, as a value is {value}"
    for k, (place, told) in enumerate(answer.curve):
        if sign * (Fraction(place) - value) >= 0 and side * (told - goal) < -SOLVING:
            yield f"{where}/curve/{k}/1", f"expected what meets the target, as from the value {value} on"
