"""Numbers and names of documents as a person reads them. Nothing is rounded towards a better verdict."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from verifier.base.numbers import decimal_text
from verifier.study.points import Numbers
from verifier.study.results import Target

LONGEST_NAME = 120
"""Characters of a name that are shown where it is used; longer ones are listed in full at the end of the page."""
SHOWN_IN_FULL = frozenset({"formula", "remarks", "reason", "notes", "synthesised_from"})
"""Keys of documents whose texts are sentences or formulas: they are never shortened."""


def name_text(name: object) -> str:
    """A name, shortened where it is very long so that two different ones stay different.

    >>> name_text("ped"), name_text("n" * 10_000)[-44:]
    ('ped', 'nnnn... (10000 characters, SHA-256 f2ac4367)')
    """
    text = str(name)
    if len(text) <= LONGEST_NAME:
        return text
    return f"{text[: LONGEST_NAME - 40]}... ({len(text)} characters, SHA-256 {_digest(text)})"


def long_names(value: Any) -> Iterator[str]:
    """Every text in JSON values that `name_text` would shorten and that is no sentence, also among the keys."""
    if isinstance(value, str):
        if len(value) > LONGEST_NAME:
            yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from long_names(key)
            if key not in SHOWN_IN_FULL:
                yield from long_names(inner)
    elif isinstance(value, list):
        if value and isinstance(value[0], int | float):
            return
        for inner in value:
            yield from long_names(inner)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def asked_text(target: Target) -> str:
    """The target in words: `at least 0.95`."""
    words = {">=": "at least", ">": "more than", "<=": "at most", "<": "less than"}
    return f"{words[target.comparison]} {decimal_text(target.probability)}"


def difference_text(difference: float) -> str:
    """How far two engines are apart.

    >>> difference_text(0.0), difference_text(2.5e-16)
    ('they do not differ', 'they differ by at most 2.5e-16')
    """
    return "they do not differ" if difference == 0 else f"they differ by at most {difference:.1e}"


def chance_text(chance: float) -> str:
    """A chance with three digits; `<0.01` and `>0.99` where it is not quite 0 or 1."""
    if 0 < chance < 0.01:
        return "<0.01"
    if 0.99 < chance < 1:
        return ">0.99"
    return f"{chance:.3g}"


def scenario_text(point: Numbers) -> str:
    """Environment, swept constants and initial state of a point."""
    values = {**point.constants, **point.initial}
    parts = (f"{name_text(name)}={name_text(value)}" for name, value in values.items())
    return " ".join([name_text(point.environment), *parts])


def state_text(values: Mapping[str, int]) -> str:
    """A state of the system."""
    return ", ".join(f"{name_text(name)} = {value}" for name, value in values.items())


def sentence(text: str) -> str:
    """With a capital letter in front."""
    return text[:1].upper() + text[1:]
