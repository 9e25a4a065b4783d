"""Mutations from text: one, or a sweep over values of its parameters.

haze:visibility_m=97.8                         one
haze:visibility_m=978,326,97.8                 three
defocus:kappa_m_px=2,2.8,focus_m=1,2,5         every combination: six, the last parameter changing fastest
gaussian_blur:sigma_px=0.5..3/6                six values, evenly spaced
haze:visibility_m=50..1000/10/log              ten values, evenly spaced in their logarithm
jpeg:quality=10..15                            whole numbers: six values
rotation:angle_deg=-20..20/5+jpeg:quality=20   steps one after the other

The mutations of the two papers, as their lists print them, and the mild and severe groups of the second.

* `published-2021`: the 22 of Pezzementi et al. 2021, section 5 and table 1. Section 5.3 puts them into groups. It
  prints "u_f 1 and (kappa 2; kappa 3.6)" for severe defocus, but 3.6 was not run; both constants that were are severe
  at 1 m.
* `published-2018`: the rows of table IV of Pezzementi et al. 2018.
* `published-2018-text`: section III and table II of the same paper, which differ: blur up to 2.5 only, alpha 0.875
  instead of 0.1 and 0.25, JPEG also at 60, 10 % of salt and pepper, defocus without 10 m. Noise has no numbers there.
"""

import itertools
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, get_args

import numpy as np

from verifier.base.errors import LimitError, UsageError, shown, unknown_error
from verifier.closedloop.settings import Severity
from verifier.robustness.mutators.catalogue import MUTATORS, Parameter, Plain
from verifier.robustness.mutators.mutation import AnyMutation, Composition, Mutation

MOST_MUTATIONS = 10_000
RANGE = re.compile(r"(?P<low>[^/]+?)\.\.(?P<high>[^/]+)(/(?P<count>[0-9]{1,9})(?P<log>/log)?)?")


def parse_mutation(text: str) -> AnyMutation:
    """The one mutation that a text stands for.

    Raises:
        UsageError: it stands for none, or for several.
    """
    mutations = parse_sweep(text)
    if len(mutations) > 1:
        raise UsageError(f"mutation {shown(text)}: expected one value for each parameter; this is a sweep")
    return mutations[0]


def parse_sweep(text: str) -> tuple[AnyMutation, ...]:
    """The mutations that a text stands for, in order, each once.

    Raises:
        UsageError: an unknown name, a value that is not allowed.
        LimitError: more than `MOST_MUTATIONS`.
    """
    steps = [_step(part, text) for part in re.split(r"\s*\+\s*(?=[A-Za-z_])", text.strip())]
    count = math.prod(len(step) for step in steps)
    _check_count(count, text)
    mutations: list[AnyMutation] = []
    for chosen in itertools.product(*steps):
        mutations.append(chosen[0] if len(chosen) == 1 else Composition(chosen))
    return tuple(dict.fromkeys(mutations))


def _step(text: str, whole: str) -> list[Mutation]:
    name, _, listed = text.partition(":")
    name = name.strip()
    if name not in MUTATORS:
        raise unknown_error("mutation", name, MUTATORS, f"mutation {shown(whole)}: ")
    values = _values(name, listed, whole)
    _check_count(math.prod(len(value) for value in values.values()), whole)
    try:
        return [
            Mutation(name, dict(zip(values, chosen, strict=True))) for chosen in itertools.product(*values.values())
        ]
    except ValueError as error:
        raise UsageError(f"mutation {shown(whole)}: {error}") from None


def _values(name: str, listed: str, whole: str) -> dict[str, Sequence[Plain]]:
    """The values given for each parameter; what has no name of its own belongs to the parameter before it."""
    known = {parameter.name: parameter for parameter in MUTATORS[name].parameters}
    given: dict[str, list[Plain]] = {}
    current = None
    for token in listed.split(",") if listed.strip() else []:
        parameter, equals, value = (part.strip() for part in token.rpartition("="))
        if equals:
            if parameter in given:
                raise UsageError(f"mutation {shown(whole)}: {parameter} is given twice")
            if parameter not in known:
                raise unknown_error(f"parameter of {name}", parameter, known, f"mutation {shown(whole)}: ")
            current = parameter
        if current is None or not value:
            raise UsageError(
                f"mutation {shown(whole)}: expected NAME:PARAMETER=VALUE,..., found {shown(token)}\n"
                f"  hint: parameters of {name}: {', '.join(known) or 'none'}"
            )
        given.setdefault(current, []).extend(_read(value, known[current], whole))
    return dict(given)


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


GROUPS = (*get_args(Severity), "any")


@dataclass(frozen=True)
class Published:
    """A mutation of a paper and its group there; None where the paper has no groups."""

    mutation: Mutation
    group: Severity | None


def published(name: str, group: str = "any") -> tuple[Mutation, ...]:
    """The mutations of a list of `PUBLISHED`, or those of one group.

    Raises:
        ValueError: no such list or group, or a list without groups.
    """
    if name not in PUBLISHED:
        raise ValueError(f"expected a list of {', '.join(PUBLISHED)}, got {shown(name)}")
    if group not in GROUPS:
        raise ValueError(f"expected a group of {', '.join(GROUPS)}, got {shown(group)}")
    if group != "any" and any(published.group is None for published in PUBLISHED[name]):
        raise ValueError(f"{name} has no groups")
    return tuple(published.mutation for published in PUBLISHED[name] if group in ("any", published.group))


def _severe(mutation: Mutation) -> bool:
    """Section 5.3 of the 2021 paper."""
    given: Mapping[str, Any] = mutation.parameters
    return bool(
        (mutation.name == "gaussian_blur" and given["sigma_px"] >= 2.5)
        or (mutation.name == "alpha_blend" and given["alpha"] >= 0.5)
        or mutation.name == "channel_dropout"
        or (mutation.name == "haze" and given["visibility_m"] == 97.8)
        or (mutation.name == "defocus" and given["focus_m"] == 1)
    )


_OF_2021 = (
    "gaussian_blur:sigma_px=1.5,2,2.5,3",
    "alpha_blend:alpha=0.1,0.25,0.5,0.75",
    "channel_dropout:channel=Cb,Cr,R,G,B",
    "haze:visibility_m=978,326,97.8",
    "defocus:kappa_m_px=2,2.8,focus_m=1,2,5",
)
"""Of haze the visibilities u_V for beta = 0.004, 0.012 and 0.04 per metre."""
_TABLE_OF_2018 = (
    "defocus:kappa_m_px=2,2.8,3.6,focus_m=10,5,2,1",
    "gaussian_blur:sigma_px=0.5,1,1.5,2,2.5,3",
    "haze:visibility_m=978,326,97.8",
    "alpha_blend:alpha=0.1,0.25,0.5,0.75",
    "jpeg:quality=40,20,10",
    "brightness:factor=2,1.33,1.14,0.88,0.75,0.5",
    "salt_and_pepper:share=0.01,0.02,0.05",
    "channel_dropout:channel=Cb,Cr,R,G,B",
    "additive_noise:constant_sd=5,signal_sd=0.5,exponent=0.5,0.7",
    "additive_noise:constant_sd=5,signal_sd=1.5,exponent=0.5",
    "additive_noise:constant_sd=15,signal_sd=0.5,exponent=0.5",
    "additive_noise:constant_sd=5,signal_sd=2.5,exponent=0.5",
)
_TEXT_OF_2018 = (
    "gaussian_blur:sigma_px=0.5,1,1.5,2,2.5",
    "brightness:factor=0.5,0.75,0.875,1.143,1.333,2",
    "alpha_blend:alpha=0.5,0.75,0.875",
    "jpeg:quality=60,40,20,10",
    "salt_and_pepper:share=0.01,0.02,0.05,0.1",
    "channel_dropout:channel=R,G,B,Cb,Cr",
    "haze:visibility_m=97.8,326,978",
    "defocus:kappa_m_px=2,2.8,3.6,focus_m=1,2,5",
)


def _published(texts: Iterable[str], grouped: bool = False) -> tuple[Published, ...]:
    mutations = (step for text in texts for composition in parse_sweep(text) for step in composition.steps)
    return tuple(
        Published(mutation, ("severe" if _severe(mutation) else "mild") if grouped else None)
        for mutation in mutations
    )


PUBLISHED: Mapping[str, tuple[Published, ...]] = MappingProxyType(
    {
        "published-2021": _published(_OF_2021, grouped=True),
        "published-2018": _published(_TABLE_OF_2018),
        "published-2018-text": _published(_TEXT_OF_2018),
    }
)
"""The lists by name."""
