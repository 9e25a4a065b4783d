"""Numbers of results as a person reads them. Nothing is rounded towards a better verdict.

Exact numbers in documents are texts that state a fraction or a decimal, however many digits it has.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any

LARGEST_NUMBER = 1e300
"""In size; a larger one is no count, length or probability of anything, neither given nor in a result."""
LARGEST_DENOMINATOR = 10**12
MOST_DECIMALS = 12
LARGEST_ROUNDED = 1e6
"""What is larger is no probability and stands as it is."""
SMALLEST_WRITTEN_OUT = Decimal("0.0001")
_WAYS = {True: ROUND_CEILING, False: ROUND_FLOOR, None: ROUND_HALF_EVEN}


def rounded(value: float, *, up: bool | None, digits: int = 3, target: Fraction | None = None) -> str:
    """A probability with so many digits of what it is away from 0 or from 1, whichever is nearer.

    More digits are shown where fewer would move it to a target or across it.

    Args:
        value: the probability.
        up: whether to round up or down; None for to the nearest.
        target: what it is compared with, if anything.

    >>> rounded(0.2917741, up=True), rounded(0.94999961, up=True, target=Fraction(19, 20))
    ('0.292', '0.9499997')
    """
    if math.isinf(value):
        return "inf"
    exact = Decimal(repr(float(value)))  # as documents spell it: the double next to 0.3 is 0.3, not just below
    away = min(abs(exact), abs(1 - exact))
    if abs(value) > LARGEST_ROUNDED:
        return repr(value)

    def moved(shown: Decimal) -> bool:
        return target is not None and _side(Fraction(shown), target) != _side(Fraction(exact), target)

    for decimals in range(max(digits, digits - 1 - away.adjusted()), MOST_DECIMALS + 1):
        shown = exact.quantize(Decimal("1").scaleb(-decimals), _WAYS[up])
        if not moved(shown):
            few = abs(exact) < SMALLEST_WRITTEN_OUT
            return f"{float(shown):.{MOST_DECIMALS}g}" if few else f"{shown:f}".rstrip("0").rstrip(".")
    shown = exact.quantize(Decimal("1").scaleb(exact.adjusted() - digits + 1), _WAYS[up])
    return repr(value) if value > 0.5 or moved(shown) else f"{shown:.{digits}g}"


def interval_text(lower: float, upper: float, digits: int = 3) -> str:
    """An interval of probabilities, its ends rounded outwards as by `rounded`, with equally many decimals if few.

    >>> interval_text(0.14, 0.262), interval_text(0.19620253, 0.99991234), interval_text(0.1962025316455696, 1, 6)
    ('[0.140, 0.262]', '[0.196, 0.9999124]', '[0.196202, 1]')
    """
    ends = [rounded(lower, up=False, digits=digits), rounded(upper, up=True, digits=digits)]
    decimals = max(len(end.partition(".")[2]) for end in ends)
    if decimals <= digits + 1 and "e-" not in "".join(ends):
        ends = [end.ljust(end.find(".") + 1 + decimals, "0") if "." in end else end for end in ends]
    return f"[{', '.join(ends)}]"


def number_text(number: float, target: Fraction | None = None, least: int = 6) -> str:
    """Six significant digits, or as few as `least`, and more where fewer would move it to or across the target or 1.

    Near 1 four digits of what is missing there: one more than ends of intervals have (`rounded`), so that a printed
    probability does not leave its printed bounds.

    >>> number_text(0.1962025316455696), number_text(0.99995549), number_text(0.9999999955)
    ('0.196203', '0.99995549', '0.9999999955')
    """
    if math.isinf(number):
        return "inf"
    value, missing = Fraction(number), 1 - Decimal(repr(float(number)))
    fewest = 3 - missing.adjusted() if 0 < missing < Decimal("0.5") else 0
    for digits in (least, 6, 9, 12, 17):
        text = f"{number:.{max(digits, min(fewest, 17))}g}"
        if all(_side(Fraction(text), name) == _side(value, name) for name in (1, target) if name is not None):
            break
    return text


def exact_or_number(number: float, exact: Fraction | None, target: Fraction | None = None, least: int = 6) -> str:
    """A probability as a fraction where it is exact and short, else as by `number_text`.

    >>> exact_or_number(0.75, Fraction(3, 4)), exact_or_number(0.9999999, None)
    ('3/4 = 0.75', '0.9999999')
    """
    if exact is not None and exact.denominator < LARGEST_DENOMINATOR:
        return f"{exact} = {number:.6g}" if exact.denominator > 1 else str(exact)
    return number_text(number, target, least)


def level_text(level: float) -> str:
    """A level for people, all its digits: it is never called 100 %.

    >>> level_text(0.95), level_text(0.999), level_text(1e-12)
    ('95 %', '99.9 %', '1e-10 %')
    """
    share = (Decimal(repr(level)) * 100).normalize()
    return f"{share:f} %" if share.adjusted() >= -MOST_DECIMALS / 2 else f"{share:.3g} %"


def decimal_text(value: int | str | Fraction) -> str:
    """A number, or the text of a decimal or a fraction: a decimal where up to 12 decimals do, else a fraction.

    >>> decimal_text("19/20"), decimal_text("1/3"), decimal_text("0.950001")
    ('0.95', '1/3', '0.950001')
    """
    number = Fraction(value)
    scaled = number * 10**MOST_DECIMALS
    if number.denominator == 1 or scaled.denominator != 1:
        return str(number)
    whole, rest = divmod(abs(scaled.numerator), 10**MOST_DECIMALS)
    return f"{'-' if number < 0 else ''}{whole}.{rest:0{MOST_DECIMALS}d}".rstrip("0")


def exact_text(value: Fraction) -> str:
    """All digits of a decimal of up to 12 decimals; six significant ones, marked by `~`, of any other number.

    >>> exact_text(Fraction("0.564") - Fraction("0.498")), exact_text(Fraction(1, 3))
    ('0.066', '~0.333333')
    """
    text = decimal_text(value)
    return f"~{float(value):.6g}" if "/" in text else text


def short_text(number: str | Fraction) -> str:
    """A decimal or a fraction, or its text in a document, with six significant digits."""
    return f"{float(Fraction(number)):.6g}"


def number_words(value: float) -> str:
    """A number as people write it."""
    return f"{value:g}".replace("e-0", "e-") if isinstance(value, float) else str(value)


def significant(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, three where nothing asks for more."""
    return f"{value:.{digits}g}"


def signed(value: float, digits: int = 3) -> str:
    """A change, with its sign."""
    return f"{value:+.{digits}g}"


def fixed(value: float, decimals: int) -> str:
    """A number of a column whose numbers all have so many decimals."""
    return f"{value:.{decimals}f}"


def p_value_text(value: float) -> str:
    """A p value: two digits; more would say that the test is exact."""
    return f"{value:.2g}"


def power_text(exponent: float) -> str:
    """10 to a power, written out below 10^9."""
    return f"{10**exponent:.4g}" if exponent < 9 else f"1e{exponent:.0f}"


def error_text(value: float) -> str:
    """A numerical error, as a power of ten with two digits."""
    return f"{value:.1e}"


def memory_text(count: int) -> str:
    """Bytes for people, in the largest unit of which there is a tenth, so that small numbers are not shown as 0.

    >>> memory_text(16 * 2**30), memory_text(2**29), memory_text(3 * 2**19), memory_text(10)
    ('16 GiB', '0.5 GiB', '1.5 MiB', '10 bytes')
    """
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if 10 * count >= size:
            return f"{count / size:.4g} {unit}" if count < 9999 * size else f"{count / size:.0f} {unit}"
    return f"{count} bytes"


def _side(value: Fraction, target: Fraction | int) -> int:
    return (value > target) - (value < target)


def extreme_numbers(value: Any, pointer: str = "") -> Iterator[tuple[str, float | int]]:
    """Where JSON values hold NaN, or a number beyond `LARGEST_NUMBER`: JSON pointer and number."""
    if isinstance(value, float | int):
        if not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:  # nor is NaN
            yield pointer, value
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            kind = type(inner)  # most are plain, and a call for each takes long
            if kind is not str and not (
                (kind is float or kind is int) and -LARGEST_NUMBER <= inner <= LARGEST_NUMBER
            ):
                yield from extreme_numbers(inner, f"{pointer}/{key}")


LONGEST_FRACTION = 1_000_000
"""Characters of a fraction that are read."""


def fraction_text(value: Fraction) -> str:
    """`str(value)`, however many digits it has; Python refuses to write integers of more than 4300."""
    parts = (value.numerator,) if value.denominator == 1 else (value.numerator, value.denominator)
    return "/".join(format(Decimal(part), "f") for part in parts)


def fraction_of(text: str) -> Fraction:
    """A decimal or a fraction of documents, however many digits an exact probability has.

    Raises:
        ValueError: it is none, its denominator is 0, or it is longer than any that is written.
    """
    if len(text) > LONGEST_FRACTION:
        raise ValueError(f"expected a fraction of at most {LONGEST_FRACTION} characters")
    return (_fraction_of_few if len(text) <= _FEW_SIGNS else _fraction_of)(text)


def _fraction_of(text: str) -> Fraction:
    top, slash, bottom = text.partition("/")
    value, decimals = _decimal(top)
    below, further = _decimal(bottom) if slash else (1, 0)
    if below == 0:
        raise ValueError("expected a fraction whose denominator is not 0")
    return Fraction(value * 10**further, below * 10**decimals)


_FEW_SIGNS = 40
_fraction_of_few = lru_cache(maxsize=10_000)(_fraction_of)  # a document says the same ones again and again


def _stated(text: str) -> str:
    """The text of a finite number; ValueError where it is none."""
    try:
        float(fraction_of(text))
    except OverflowError:
        raise ValueError("expected a number that a double is near to") from None
    return text


@dataclass(frozen=True)
class _Text:
    """For pydantic: a number is a text of this pattern in JSON, which `read` makes a value of."""

    pattern: str
    read: Callable[[str], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self.read, core_schema.str_schema(pattern=self.pattern))


Exact = Annotated[Fraction, _Text("^-?[0-9]+(/[0-9]+)?$", fraction_of)]
FractionText = Annotated[str, _Text("^[0-9]+(/[0-9]+)?$", _stated)]
Stated = Annotated[Fraction, _Text("^[0-9]+(/[0-9]+)?$", lambda text: fraction_of(_stated(text)))]
NumberText = Annotated[str, _Text(r"^-?[0-9]+(\.[0-9]+)?(/[0-9]+)?$", _stated)]
"""Exact: a decimal or a fraction."""


def _decimal(text: str) -> tuple[int, int]:
    """The digits of a decimal as a whole number, and how many of them are decimals. Piece by piece: Python decodes no
    more than 4300 digits at once."""
    whole, _, decimals = text.removeprefix("-").partition(".")
    digits, value = whole + decimals, 0
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError("expected a decimal number, or a fraction of two")
    for start in range(0, len(digits), 4000):
        piece = digits[start : start + 4000]
        value = value * 10 ** len(piece) + int(piece)
    return -value if text.startswith("-") else value, len(decimals)
