"""Exact numbers as people write them."""

from __future__ import annotations

from fractions import Fraction


def decimal_text(value: Fraction) -> str:
    """All digits of a decimal fraction; six significant ones, marked by `~`, of any other.

    >>> decimal_text(Fraction("0.564") - Fraction("0.498")), decimal_text(Fraction(1, 3)), decimal_text(Fraction(10))
    ('0.066', '~0.333333', '10')
    """
    places = _places(value.denominator)
    if places is None or places > 12:
        return f"~{float(value):.6g}"
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    whole, decimals = digits[: len(digits) - places], digits[len(digits) - places :]
    return ("-" if value < 0 else "") + (f"{whole}.{decimals}" if places else whole)


def _places(denominator: int) -> int | None:
    """Least number of decimal places, None where no number of them is enough."""
    twos = fives = 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    return max(twos, fives) if denominator == 1 else None
