"""Numbers that differ from those that follow: (element, what is wrong).

Whatever a result states twice, or computes from what it also states, is computed again beside these. What it only
declares (a name, a count, a setting) has nothing to be compared with. Whoever reads stops at the first element.
"""

import math
from collections.abc import Collection, Container, Hashable, Iterable, Sequence
from typing import Any

from verifier.evidence.resting import ROUNDING, Misfits


def near(one: float, other: float, least: float = ROUNDING) -> bool:
    """Whether two numbers are equal up to rounding, or are no more than `least` apart."""
    return math.isclose(one, other, rel_tol=ROUNDING, abs_tol=least)


def misfits(where: str, found: Any, follows: Any, least: float = ROUNDING) -> Misfits:
    """Where JSON values differ from those that follow, numbers by more than rounding; `least` as for `near`."""
    if isinstance(found, dict) and isinstance(follows, dict) and found.keys() == follows.keys():
        for key, value in follows.items():
            yield from misfits(f"{where}/{key}", found[key], value, least)
    elif isinstance(found, list) and isinstance(follows, list) and len(found) == len(follows):
        for k, value in enumerate(follows):
            yield from misfits(f"{where}/{k}", found[k], value, least)
    elif not (found == follows or (type(found) is type(follows) is float and near(found, follows, least))):
        yield (
            where,
            f"expected {str(follows)[:200]}, which follows from the numbers beside it, got {str(found)[:200]}",
        )


def ordered(
    where: str, ends: Sequence[float | None] | None, low: float = -math.inf, high: float = math.inf
) -> Misfits:
    """Of an interval: its ends in their order, and within what it may be."""
    if ends is not None and None not in ends:
        lower, upper = (end for end in ends if end is not None)
        if not low - ROUNDING <= lower <= upper + ROUNDING <= high + 2 * ROUNDING:
            yield where, f"expected a lower and an upper end from {low:g} to {high:g}, got {lower} and {upper}"


def shares(where: str, rows: Sequence[Sequence[float | None]]) -> Misfits:
    """Of a table: the rows in which something is neither a probability nor null."""
    for k, row in enumerate(rows):
        if not all(value is None or -ROUNDING <= value <= 1 + ROUNDING for value in row):
            yield f"{where}/{k}", "expected probabilities"


def once(where: str, parts: Iterable[Hashable]) -> Misfits:
    """Of a list: the first element that is in it twice."""
    seen = set[Hashable]()
    for k, part in enumerate(parts):
        if part in seen:
            yield f"{where}/{k}", "expected it once"
            return
        seen.add(part)


def known_names(content: Any, keys: Container[str], names: Collection[str], where: str = "") -> Misfits:
    """Of JSON values: the texts below some keys, wherever these stand, that are none of the names."""
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        if isinstance(value, dict | list):
            yield from known_names(value, keys, names, f"{where}/{key}")
        elif key in keys and value not in names:
            yield f"{where}/{key}", f"expected one of {', '.join(names)}, got {value}"
