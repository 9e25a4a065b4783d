"""Whether the parts of a rate follow from each other."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from verifier.base.errors import LimitError
from verifier.evidence.following.numbers import Misfits, misfits, near, ordered
from verifier.evidence.points import ROUNDING

if TYPE_CHECKING:
    from verifier.evidence.rates.document import RateResult


def rate_misfits(rate: RateResult) -> Misfits:
    """Bounds that exposures allow, levels, and what a demonstration asks for."""
    from verifier.evidence.rates.demonstration import encounters_needed, hours_needed

    most = math.fsum(term.exposure.upper for term in rate.terms)
    bounds = [("/bounds", rate.bounds), *((f"/other_bounds/{k}", told) for k, told in enumerate(rate.other_bounds))]
    for where, told in bounds:
        yield from ordered(f"{where}/upper", (told.lower, told.upper), 0, most * (1 + ROUNDING))
        for name in ("level", "error_probability", "error_exposure"):
            if not 0 <= (getattr(told, name) or 0) <= 1:
                yield f"{where}/{name}", f"expected a level from 0 to 1, got {getattr(told, name)}"
        if (told.error_probability is None) != (told.level is None):
            yield f"{where}/level", "expected a level, and the error of the probabilities, or neither"
        held = rate.per_hour is None or told.source == "interval" or near(rate.per_hour, told.lower)
        if not held and not told.lower <= (rate.per_hour or 0) <= told.upper * (1 + ROUNDING):
            yield f"{where}/upper", f"expected bounds of the rate, {rate.per_hour}"
    for k, term in enumerate(rate.terms):
        yield from ordered(f"/terms/{k}/exposure/lower", (term.exposure.lower, term.exposure.upper), 0)
        if not 0 <= (term.exposure.level or 0) <= 1:
            yield f"/terms/{k}/exposure/level", "expected a level from 0 to 1"
        counted = (term.exposure.encounters is None, term.exposure.hours is None)
        if counted != ((term.exposure.kind != "count"),) * 2:
            yield f"/terms/{k}/exposure/kind", "expected encounters and hours of a count, and of nothing else"
    known = None not in (term.exposure.per_hour for term in rate.terms)
    if known != (rate.per_hour is not None):
        yield "/per_hour", "expected a rate where each exposure has one, and nowhere else"
    yield from _counted(rate)
    if rate.demonstration is not None and rate.acceptance is not None:
        shown, accepted = rate.demonstration, Fraction(rate.acceptance.per_hour)
        asked = Fraction(repr(shown.confidence)), shown.events
        try:
            hours = float(hours_needed(accepted, *asked))
            count = encounters_needed(accepted / Fraction(most), *asked) if most else None
        except (LimitError, ValueError) as error:
            yield "/demonstration/confidence", str(error)
            return
        yield from misfits("/demonstration/hours", shown.hours, hours)
        apart = abs((shown.encounters or 0) - (count or 0))
        if (shown.encounters is None) != (count is None) or apart > 1 + ROUNDING * (count or 0):
            yield "/demonstration/encounters", f"expected {count}, got {shown.encounters}"
    elif (rate.demonstration is None) != (rate.acceptance is None):
        yield "/acceptance", "expected a criterion with what would demonstrate it, or neither"


def _counted(rate: RateResult) -> Misfits:
    """The interval of a count of encounters follows from its share of the error that exposures are allowed."""
    from verifier.evidence.rates.exposure import garwood

    counted = [(k, term.exposure) for k, term in enumerate(rate.terms) if term.exposure.kind == "count"]
    stated = math.fsum(1 - term.exposure.level for term in rate.terms if term.exposure.level is not None)
    share = (rate.bounds.error_exposure - stated) / max(len(counted), 1)
    if counted and not 0 < share < 1:
        yield "/bounds/error_exposure", "expected an error that leaves something for each count"
        return
    for k, exposure in counted:
        hours = float(Fraction(exposure.hours or 1))
        ends = (float(end) / hours for end in garwood(exposure.encounters or 0, Fraction(share)))
        for name, end in zip(("lower", "upper"), ends, strict=True):
            yield from misfits(f"/terms/{k}/exposure/{name}", getattr(exposure, name), end)
