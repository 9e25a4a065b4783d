"""What is wrong with the numbers of one point, a requirement in a scenario: where they do not fit together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from verifier.base.documents import fraction_of
from verifier.base.errors import shown
from verifier.study.points import FreeBounds, Numbers, Point, Uncertainty
from verifier.study.records import ConfidenceRecord, SettingsRecord

ROUNDING = 1e-9
"""By which a value may stand outside its bounds, or 0..1, because it was rounded."""
SOLVING = 1e-6
"""By which the value of a single matrix may stand outside its bounds, because it was solved for in doubles."""


def is_probability(value: Any) -> bool:
    """A number from 0 to 1, up to rounding."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -ROUNDING <= value <= 1 + ROUNDING


def contradictions(point: Point, settings: SettingsRecord | None, asked: str = "P") -> Iterator[tuple[str, str]]:
    """(element below the point, what is wrong) where its numbers do not fit together.

    Args:
        point: of a document, its numbers finite.
        settings: of its run; None for a point without intervals and bounds whose probabilities were not rounded.
        asked: what its requirement asks.
    """
    rounded = settings is not None and settings.round_transitions is not None
    apart = list(numbers_apart(point, rounded=rounded, asked=asked))
    yield from apart
    if apart:
        return
    confidence = None if settings is None else settings.confidence
    if point.uncertainty is not None and confidence is None:
        yield "/uncertainty", "expected none, as the settings have no confidence"
    elif point.uncertainty is not None and confidence is not None:
        yield from _disordered(point.uncertainty, confidence, free=rounded or not asked.startswith("P"))
    if point.dependence_free is not None:
        bounded = None if settings is None else confidence is not None and not rounded
        yield from free_apart(point.dependence_free, point.probability, bounded=bounded, rounded=rounded)
    value, whatever = point.probability, point.whatever_predicted
    if whatever is not None and abs(whatever - value) > ROUNDING:
        yield "/whatever_predicted", f"expected the probability, {value}, or nothing"


def free_apart(free: FreeBounds, value: float, *, bounded: bool | None, rounded: bool) -> Iterator[tuple[str, str]]:
    """(element below the point, what is wrong) of bounds whatever the dependence; `bounded` is whether the run bounds
    rates, None where that is not known."""
    where = "/dependence_free"
    if free.lower > free.upper:
        yield f"{where}/lower", f"expected at most the upper bound, {free.upper}, got {free.lower}"
    for k, left in enumerate(free.undecided):
        if not -SOLVING <= left <= 1 + SOLVING:
            yield f"{where}/undecided/{k}", f"expected a probability, got {left}"
    expected = "confidence_region" if bounded else "measured"
    if bounded is not None and free.rates != expected:
        yield f"{where}/rates", f"expected {expected}, as in the settings of the run, got {free.rates}"
    elif free.rates == "measured" and not rounded and not free.lower - SOLVING <= value <= free.upper + SOLVING:
        within = f"{free.lower} to {free.upper}"
        yield "/probability", f"expected a value within the bounds whatever the dependence, {within}, got {value}"


def numbers_apart(point: Numbers, *, rounded: bool, asked: str = "P") -> Iterator[tuple[str, str]]:
    """As `contradictions`, of the numbers of both engines alone; `rounded` ones are no probabilities."""
    free = rounded or not asked.startswith("P")
    for name, text in point.constants.items():
        try:
            fraction_of(text)
        except ValueError as error:
            yield f"/constants/{name}", f"expected a number: {error}"
    value = point.probability
    for name in ("probability", "lower", "upper", "second_engine"):
        if not free and not is_probability(getattr(point, name)):
            yield f"/{name}", f"expected a probability, got {getattr(point, name)}"
    slack = ROUNDING * max(1, abs(value)) if math.isfinite(value) else 0
    if not point.lower - slack <= value <= point.upper + slack:
        yield "/probability", f"expected a value within its own bounds, {point.lower} to {point.upper}"
    if point.lower > point.upper:
        yield "/lower", f"expected at most the upper bound, {point.upper}, got {point.lower}"
    if point.exact is not None:
        for name in ("probability", "lower", "upper"):
            number = getattr(point, name)
            # A mean over initial states is one of rounded numbers, and may be the double beside.
            if math.isinf(number) or abs(point.exact - Fraction(number)) > Fraction(2 * math.ulp(number)):
                yield f"/{name}", f"expected what the fraction {shown(str(point.exact))} rounds to, got {number}"


def _disordered(sure: Uncertainty, asked: ConfidenceRecord, *, free: bool) -> Iterator[tuple[str, str]]:
    interval, bounds = sure.interval, sure.confidence_bounds
    for kind, ends in (("interval", interval), ("confidence_bounds", bounds)):
        if ends is not None and ends.lower > ends.upper:
            yield f"/uncertainty/{kind}", f"expected the lower end below the upper, got {ends.lower}, {ends.upper}"
    for end, value, (low, high) in (
        ("lower", interval.lower, interval.lower_range),
        ("upper", interval.upper, interval.upper_range),
    ):
        if not low <= value <= high or not (free or (is_probability(low) and is_probability(high))):
            yield f"/uncertainty/interval/{end}_range", f"expected a range that holds the end, {value}"
        attained = value if bounds is None else getattr(bounds, f"attained_{end}")
        if bounds is not None and not bounds.lower - SOLVING <= attained <= bounds.upper + SOLVING:
            within = f"expected a value within the bounds, {bounds.lower} to {bounds.upper}, got"
            yield f"/uncertainty/confidence_bounds/attained_{end}", f"{within} {attained}"
    tier = asked.bounds.tier
    for name, told, expected in (
        ("level", sure.level, asked.level),
        ("interval/kind", interval.kind, asked.interval),
        ("interval/draws", interval.draws, asked.draws),
        ("confidence_bounds/tier", tier if bounds is None else bounds.tier, tier),
    ):
        if told != expected:
            yield f"/uncertainty/{name}", f"expected {expected}, as in the settings of the run, got {told}"
