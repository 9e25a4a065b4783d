"""Numbers of documents in words, and texts of files made harmless."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

from verifier.errors import one_line

LONGEST_NAME = 120
"""Characters of a name that are shown; a longer one is cut, and says how long it is."""
_DIGITS = 6


def name_text(text: str, longest: int = LONGEST_NAME) -> str:
    """A text of a file on one line, without control characters or marks that turn the writing direction."""
    clean = one_line(" ".join(text.split()) if text.strip() else text)
    return clean if len(clean) <= longest else f"{clean[:longest]}... ({len(text)} characters)"


def interval_text(lower: float, upper: float) -> str:
    """An interval of probabilities, its ends rounded outwards.

    >>> interval_text(0.1962025316455696, 0.99999999)
    '[0.196202, 0.99999999]'
    """
    return f"[{_rounded(lower, ROUND_FLOOR)}, {_rounded(upper, ROUND_CEILING)}]"


def probability_text(value: float) -> str:
    """A probability with six significant digits of itself or of its distance to 1."""
    return _rounded(value, "ROUND_HALF_EVEN")


def target_text(target: Mapping[str, Any] | None) -> str:
    """A target of a document: `P >= 0.95`."""
    if target is None:
        return "P = ?"
    value = Fraction(target["probability"])
    text = f"{float(value):.12g}"
    return f"P {target['comparison']} {text if Fraction(text) == value else value}"


def rate_text(lower: float, upper: float) -> str:
    """An interval of rates per hour with four significant digits, its ends rounded outwards.

    >>> rate_text(0.000123456, 12.0)
    '[0.0001234, 12]'
    """
    ends = ((lower, ROUND_FLOOR), (upper, ROUND_CEILING))
    parts = [f"{float(Context(prec=4, rounding=way).create_decimal(Decimal(repr(end)))):.4g}" for end, way in ends]
    return parts[0] if lower == upper and parts[0] == parts[1] else f"[{parts[0]}, {parts[1]}]"


def listed(parts: Sequence[str], most: int = 4) -> str:
    """Some texts, and how many more there are."""
    rest = len(parts) - most
    return "; ".join(parts[:most]) + (f"; and {rest} more" if rest > 0 else "")


def counted(count: int, noun: str) -> str:
    """`1 scenario`, `2 scenarios`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _rounded(value: float, direction: str) -> str:
    """Rounded to six significant digits of what a probability is away from 0 or from 1, whichever is nearer."""
    exact = Decimal(repr(float(value)))  # as the document spells it
    near_one = Decimal("0.5") < exact < 1
    if near_one:
        turned = {ROUND_FLOOR: ROUND_CEILING, ROUND_CEILING: ROUND_FLOOR}.get(direction, direction)
        exact = 1 - Context(prec=_DIGITS, rounding=turned).create_decimal(Context(prec=400).subtract(1, exact))
    else:
        exact = Context(prec=_DIGITS, rounding=direction).create_decimal(exact)
    text = f"{exact.normalize():f}"
    return text if len(text) <= 14 else f"{float(exact):.6g}"
