"""Mutations from text: one, or a sweep over values of its parameters.

haze:visibility_m=97.8                         one
haze:visibility_m=978,326,97.8                 three
defocus:kappa_m_px=2,2.8,focus_m=1,2,5         every combination: six, the last parameter changing fastest
gaussian_blur:sigma_px=0.5..3/6                six values, evenly spaced
haze:visibility_m=50..1000/10/log              ten values, evenly spaced in their logarithm
jpeg:quality=10..15                            whole numbers: six values
rotation:angle_deg=-20..20/5+jpeg:quality=20   steps one after the other
"""

from __future__ import annotations

import itertools
import math
import re
import sys
from collections.abc import Sequence

import numpy as np

from verifier.base.errors import LimitError, UsageError, shown, unknown_name
from verifier.robustness.mutators.catalogue import MUTATORS, Parameter, Plain
from verifier.robustness.mutators.mutation import AnyMutation, Composition, Mutation

MOST_MUTATIONS = 10_000
RANGE = re.compile(r"(?P<low>[^/]+?)\.\.(?P<high>[^/]+)(/(?P<count>[0-9]{1,9})(?P<log>/log)?)?")


def parse_mutation(text: str) -> AnyMutation:
    """The one mutation that a text stands for.

    Raises:
        UsageError: it stands for none, or for several.
    """
    found = parse_sweep(text)
    if len(found) > 1:
        raise UsageError(f"mutation {shown(text)}: expected one value for each parameter; this is a sweep")
    return found[0]


def parse_sweep(text: str) -> tuple[AnyMutation, ...]:
    """The mutations that a text stands for, in order, each once.

    Raises:
        UsageError: an unknown name, a value that is not allowed.
        LimitError: more than `MOST_MUTATIONS`.
    """
    steps = [_step(part, text) for part in re.split(r"\s*\+\s*(?=[A-Za-z_])", text.strip())]
    count = math.prod(len(step) for step in steps)
    _check_count(count, text)
    found: list[AnyMutation] = []
    for chosen in itertools.product(*steps):
        found.append(chosen[0] if len(chosen) == 1 else Composition(chosen))
    return tuple(dict.fromkeys(found))


def _step(text: str, whole: str) -> list[Mutation]:
    name, _, listed = text.partition(":")
    name = name.strip()
    if name not in MUTATORS:
        message, hint = unknown_name("mutation", name, MUTATORS)
        raise UsageError(f"mutation {shown(whole)}: {message}\n  hint: {hint}")
    values = _values(name, listed, whole)
    _check_count(math.prod(len(each) for each in values.values()), whole)
    try:
        return [
            Mutation(name, dict(zip(values, chosen, strict=True))) for chosen in itertools.product(*values.values())
        ]
    except ValueError as error:
        raise UsageError(f"mutation {shown(whole)}: {error}") from None


def _values(name: str, listed: str, whole: str) -> dict[str, Sequence[Plain]]:
    """The values given for each parameter; what has no name of its own belongs to the parameter before it."""
    known = {each.name: each for each in MUTATORS[name].parameters}
    found: dict[str, list[Plain]] = {}
    current = None
    for token in listed.split(",") if listed.strip() else []:
        parameter, equals, value = (part.strip() for part in token.rpartition("="))
        if equals:
            if parameter in found:
                raise UsageError(f"mutation {shown(whole)}: {parameter} is given twice")
            if parameter not in known:
                message, hint = unknown_name(f"parameter of {name}", parameter, known)
                raise UsageError(f"mutation {shown(whole)}: {message}\n  hint: {hint}")
            current = parameter
        if current is None or not value:
            raise UsageError(
                f"mutation {shown(whole)}: expected NAME:PARAMETER=VALUE,..., found {shown(token)}\n"
                f"  hint: parameters of {name}: {', '.join(known) or 'none'}"
            )
        found.setdefault(current, []).extend(_read(value, known[current], whole))
    return dict(found)


def _read(text: str, parameter: Parameter, whole: str) -> list[Plain]:
    """One value, or those of a range."""
    if parameter.choices:
        return [text]
    wanted = f"mutation {shown(whole)}: {parameter.name}: expected {parameter.expected}"
    ranged = RANGE.fullmatch(text)
    try:
        if ranged is None:
            return [_number(text)]
        low, high = _number(ranged["low"]), _number(ranged["high"])
    except ValueError:
        raise UsageError(f"{wanted}, got {shown(text)}") from None
    if not low < high:
        raise UsageError(f"{wanted}; a range goes from less to more, got {shown(text)}")
    if ranged["count"] is None:
        if not isinstance(low, int) or not isinstance(high, int):
            raise UsageError(f"{wanted}; say how many, as in {text}/5")
        _check_count(high - low + 1, whole)
        return list(range(low, high + 1))
    count = int(ranged["count"])
    _check_count(count, whole)
    if count < 2 or (ranged["log"] and low <= 0):
        raise UsageError(f"{wanted}; a range has two values or more, and with /log positive ends, got {shown(text)}")
    spaced = np.geomspace(low, high, count) if ranged["log"] else np.linspace(low, high, count)
    return [float(value) for value in spaced]


def _number(text: str) -> int | float:
    """A whole number or another; ValueError where it is none, or too large for one."""
    try:
        number: int | float = int(text)
    except ValueError:
        number = float(text)
    if not abs(number) <= sys.float_info.max:
        raise ValueError(text)
    return number


def _check_count(count: int, text: str) -> None:
    if count > MOST_MUTATIONS:
        raise LimitError(f"mutation {shown(text)}: {count} mutations; at most {MOST_MUTATIONS} are made")
