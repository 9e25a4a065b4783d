"""Exact numbers in documents: texts that state a fraction or a decimal, however many digits it has."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

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
    top, slash, bottom = text.partition("/")
    try:
        return Fraction(text) if len(text) < 4000 else Fraction(_long(top), _long(bottom) if slash else 1)
    except ZeroDivisionError:
        raise ValueError("expected a fraction whose denominator is not 0") from None


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
NumberText = Annotated[str, _Text(r"^-?[0-9]+(\.[0-9]+)?(/[0-9]+)?$", _stated)]
"""Exact: a decimal or a fraction."""


def _long(digits: str) -> int:
    """A whole number piece by piece: Python decodes no more than 4300 digits at once."""
    sign, digits = (-1, digits[1:]) if digits.startswith("-") else (1, digits)
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError("no whole number")
    value = 0
    for start in range(0, len(digits), 4000):
        piece = digits[start : start + 4000]
        value = value * 10 ** len(piece) + int(piece)
    return sign * value
