"""Names, counts and lists as a person reads them."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from verifier.base.errors import one_line
from verifier.base.numbers import interval_text, rounded, significant

DIGITS = 6
"""Of a probability, or of what it is away from 1, in an argument: it has no room for the values themselves."""
LONGEST_NAME = 120
"""Characters of a name that are shown; a longer one is cut, and says how long it is."""


def clipped(text: str, longest: int = LONGEST_NAME) -> str:
    """A text of a file on one line, without control characters or marks that turn the writing direction."""
    clean = one_line(" ".join(text.split()) if text.strip() else text)
    return clean if len(clean) <= longest else f"{clean[:longest]}... ({len(text)} characters)"


def bounds_text(lower: float, upper: float) -> str:
    """An interval of probabilities, its ends rounded outwards."""
    return interval_text(lower, upper, DIGITS)


def probability_text(value: float) -> str:
    """A probability, rounded to the nearest."""
    return rounded(value, up=None, digits=DIGITS)


def rate_interval_text(lower: float, upper: float) -> str:
    """An interval of rates per hour with four significant digits, its ends rounded outwards.

    >>> rate_interval_text(0.000123456, 12.0)
    '[0.0001234, 12]'
    """
    ways = (Context(prec=4, rounding=way) for way in (ROUND_FLOOR, ROUND_CEILING))
    ends = [way.create_decimal(Decimal(repr(end))) for way, end in zip(ways, (lower, upper), strict=True)]
    parts = [significant(float(end), 4) for end in ends]
    return parts[0] if lower == upper and parts[0] == parts[1] else f"[{parts[0]}, {parts[1]}]"


def some_of(parts: Sequence[str], most: int = 4) -> str:
    """Some texts, and how many more there are; each may have commas."""
    return first_of(parts, most, "; ", ";")


def first_of(names: Sequence[str], most: int = 4, between: str = ", ", then: str = "") -> str:
    """Likewise of names: `a, b and 3 more`."""
    return between.join(names[:most]) + (f"{then} and {len(names) - most} more" if len(names) > most else "")


def counted(number: int, one: str, more: str | None = None) -> str:
    """A number and what it counts.

    >>> counted(1, "requirement"), counted(0, "requirement"), counted(2, "matrix", "matrices")
    ('1 requirement', '0 requirements', '2 matrices')
    """
    return f"{number} {one if number == 1 else more or one + 's'}"


def percent(share: float, digits: int = 4) -> str:
    """A share for people.

    >>> percent(0.95), percent(0.999), percent(1)
    ('95 %', '99.9 %', '100 %')
    """
    return f"{significant(100 * share, digits)} %"


def listed(texts: Sequence[str], word: str = "and") -> str:
    """Texts as a list in a sentence.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"], "or")
    ('a', 'a and b', 'a, b or c')
    """
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} {word} {texts[-1]}"
