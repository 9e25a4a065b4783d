"""The words for what can be chosen of a system: constants, sweeps, initial states, false positives, limits.

Only light modules are imported.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from verifier.base.errors import UsageError, shown
from verifier.base.options import Option, above_0, pair, whole_above_0

if TYPE_CHECKING:
    from verifier.language.expressions.syntax import Node

FalsePositives: TypeAlias = Literal["as_counted", "ignore", "background"]
"""Use of the column 'empty', see `verifier.systems.channel.FALSE_POSITIVE_POLICIES`."""
InitialContext: TypeAlias = Literal["start", "counted", "right", "wrong", "worst"]
"""What a detector remembers when a run begins, see `verifier.systems.contexts`."""
LARGEST_SWEEP = 10_000


def memory_bytes(text: str) -> int:
    """Bytes of GiB as a text, for `Option.parse`."""
    return int(min(float(above_0(text)), 2.0**30) * 2**30)


MostStates = Annotated[int, Option("largest number of states", name="max-states", metavar="N", parse=whole_above_0)]
MostMemory = Annotated[
    int,
    Option(
        "memory limit of all processes together, beyond the program itself",
        name="max-memory",
        metavar="GIB",
        parse=memory_bytes,
        spell=lambda count: repr(count / 2**30),
        default="16",
    ),
]


@dataclass(frozen=True)
class Limits:
    """What may be built: states before reachability, and bytes of memory at the peak of building."""

    states: MostStates = 50_000_000
    memory_bytes: MostMemory = 16 * 2**30


def initial_condition(text: str) -> Node:
    """A condition that narrows the initial states; InputError as `verifier.language.expressions.parse_expression`."""
    from verifier.language.expressions import Source, parse_expression

    return parse_expression(text, Source(text, "--initial"))


def condition_text(condition: Node) -> str:
    """What `initial_condition` reads."""
    from verifier.language.expressions import to_text

    return to_text(condition, parenthesise=True)


def constant(text: str) -> tuple[str, int | Fraction | str]:
    """Name and value of NAME=VALUE: a constant, or a word as of PLANNER.pick=RULE; UsageError."""
    name, value = pair("--set", "NAME=VALUE", text)
    number = _number(value)
    return name, value if number is None else number


def sweep(text: str) -> tuple[str, tuple[int | Fraction, ...]]:
    """Name and values of NAME=LOW..HIGH or NAME=VALUE,VALUE,...; UsageError."""
    name, _, listed = text.partition("=")
    refusal = UsageError(f"--sweep: expected NAME=LOW..HIGH or NAME=VALUE,VALUE,..., got {shown(text)}")
    if not name.strip():
        raise refusal
    ends = re.fullmatch(r"\s*(-?\d{1,15})\s*\.\.\s*(-?\d{1,15})\s*", listed)
    if ends:
        low, high = int(ends[1]), int(ends[2])
        if low > high or high - low >= LARGEST_SWEEP:
            raise UsageError(f"--sweep: expected 1 to {LARGEST_SWEEP} values, got {shown(text)}")
        return name.strip(), tuple(range(low, high + 1))
    values = [_number(part) for part in listed.split(",")]
    numbers = tuple(value for value in values if value is not None)
    if len(numbers) != len(values):
        raise refusal
    if len(set(numbers)) < len(numbers):
        raise UsageError(f"--sweep: a value occurs twice in {shown(text)}")
    return name.strip(), numbers


def fraction_from_0_to_1(text: str) -> Fraction:
    """A number from 0 to 1, its decimal digits taken exactly, for `Option.parse`."""
    number = _number(f"0{text}" if text.startswith(".") else text)
    if number is None or not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 1, got {text!r}")
    return Fraction(number)


def _number(text: str) -> int | Fraction | None:
    """An exact number as `3`, `0.25` or `1/3`; None when it is none."""
    if not re.fullmatch(r"-?\d{1,30}(\.\d{1,30})?(/\d{1,30})?", text.strip()):
        return None
    top, _, bottom = text.strip().partition("/")
    if bottom and int(bottom) == 0:
        return None
    value = Fraction(top) / int(bottom or 1)
    return value.numerator if value.denominator == 1 else value
