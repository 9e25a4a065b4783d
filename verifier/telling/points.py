"""Points of the documents of questions as a person reads them."""

from __future__ import annotations

from fractions import Fraction

from verifier.base.numbers import exact_or_number
from verifier.questions.parts import PointRecord
from verifier.telling.wording import LONGEST_EXACT, name_text


def probability_text(point: PointRecord, target: Fraction | None = None) -> str:
    """P: exact where it is a short fraction, else with the digits that tell it from the target and from 1."""
    short = point.exact is not None and len(point.exact) < LONGEST_EXACT
    return exact_or_number(point.probability, Fraction(point.exact) if short and point.exact else None, target)


def scenario_text(point: PointRecord) -> str:
    """Environment, swept constants and initial state."""
    values = {**point.constants, **point.initial}
    return " ".join(
        [name_text(point.environment), *(f"{name_text(name)}={name_text(values[name])}" for name in values)]
    )
