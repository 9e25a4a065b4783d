"""Tails of the binomial distribution, decided exactly however many items there are.

    Pr(Bin(n, p) >= x) = C(n, x) p^x (1 - p)^(n - x) * (1 + r_1 + r_1 r_2 + ...)

    with r_j = (n - x - j + 1) p / ((x + j)(1 - p)).

The fraction has about 30 n bits where p is a number of billionths, too many for large n. So every factor is rounded
up to 256 bits, and so is the sum, whose rest is bounded by a geometric series: the ratios r_j fall. What comes out is
an upper bound that exceeds the tail by less than one part in 10^20 for up to 10^9 items.
"""

from __future__ import annotations

from fractions import Fraction

from verifier.errors import LimitError

BILLION = 10**9
MOST_ITEMS = 5_000_000
"""Items of the rarer kind; the binomial coefficient takes a multiplication for each."""
_BITS = 256


def tail_is_at_most(total: int, least: int, billionths: int, bound: Fraction) -> bool:
    """Whether Pr(Bin(total, billionths / 10^9) >= least) <= bound.

    True is a proof. False may also mean that the tail is within one part in 10^20 of the bound, or at least 1/2.

    Raises:
        LimitError: more than `MOST_ITEMS` of the rarer kind.
        ValueError: numbers out of range.
    """
    if not (0 <= least <= total and 0 <= billionths <= BILLION and bound > 0):
        raise ValueError("expected 0 <= least <= total, a rate from 0 to 1 and a bound above 0")
    if least == 0 or billionths == BILLION:
        return bound >= 1
    if billionths == 0:
        return True
    if (total - least) * billionths >= (least + 1) * (BILLION - billionths):
        return bound >= 1  # the median is not below `least`, so the tail is at least 1/2
    term = _times(_coefficient(total, least), _power(billionths, least))
    mantissa, exponent = _times(term, _power(BILLION - billionths, total - least))
    mantissa *= _series(total, least, billionths)
    exponent -= _BITS
    # mantissa * 2^exponent <= bound, in whole numbers
    left, right = mantissa * bound.denominator, bound.numerator
    return left << exponent <= right if exponent >= 0 else left <= right << -exponent


def _series(total: int, least: int, billionths: int) -> int:
    """1 + r_1 + r_1 r_2 + ..., rounded up to a whole number of 2^-_BITS."""
    term = result = 1 << _BITS
    above = least + 1
    while True:
        up, down = (total - above + 1) * billionths, above * (BILLION - billionths)
        if term < 1 << (_BITS - 100) or up == 0:
            return result + term * up // (down - up) + 1
        term = -(-term * up // down)
        result += term
        above += 1


def _coefficient(total: int, least: int) -> tuple[int, int]:
    """An upper bound on the number of ways to choose `least` of `total`."""
    fewer = min(least, total - least)
    if fewer > MOST_ITEMS:
        raise LimitError(
            f"the interval of {least} of {total} items cannot be checked: at most {MOST_ITEMS} of the rarer kind"
        )
    number = (1, 0)
    for k in range(1, fewer + 1):
        mantissa, exponent = number
        if mantissa.bit_length() < 2 * _BITS:
            mantissa, exponent = mantissa << 2 * _BITS, exponent - 2 * _BITS
        number = _rounded_up(-(-mantissa * (total - fewer + k) // k), exponent)
    return number


def _power(billionths: int, count: int) -> tuple[int, int]:
    """An upper bound on (billionths / 10^9) ** count."""
    base = _rounded_up(-(-(billionths << 2 * _BITS) // BILLION), -2 * _BITS)
    result = (1, 0)
    while count:
        if count & 1:
            result = _times(result, base)
        base = _times(base, base)
        count >>= 1
    return result


def _times(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    return _rounded_up(first[0] * second[0], first[1] + second[1])


def _rounded_up(mantissa: int, exponent: int) -> tuple[int, int]:
    """mantissa * 2^exponent with at most _BITS + 1 bits, not smaller."""
    extra = mantissa.bit_length() - _BITS
    return (mantissa, exponent) if extra <= 0 else (-(-mantissa >> extra), exponent + extra)
