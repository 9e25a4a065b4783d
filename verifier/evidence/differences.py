"""Where two versions of a file, or of what it says, differ: by JSON pointer, or by line."""

import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from verifier.base.checksums import KEY
from verifier.base.documents import json_values
from verifier.base.errors import InputError, Place, pointer_part, shown
from verifier.base.files import decoded, json_value
from verifier.checking.enclosure import AGREEMENT
from verifier.evidence.findings import Finding, Log, Misstated
from verifier.study.points import WorldDecisions

MOST = 20
"""Differences of one file that are listed one by one."""
LONGEST_SHOWN = 80
NOTHING = "nothing"


def leaves(content: Any) -> Iterator[tuple[str, str]]:
    """(JSON pointer, JSON text) of every value without values inside, in the order of the document."""
    pending: list[tuple[str, Any]] = [("", content)]
    while pending:
        pointer, value = pending.pop()
        inner: list[tuple[str, Any]] = []
        if isinstance(value, dict):
            inner = [(f"{pointer}/{pointer_part(key)}", part) for key, part in value.items()]
        elif isinstance(value, list):
            inner = [(f"{pointer}/{k}", part) for k, part in enumerate(value)]
        if inner:
            pending += reversed(inner)
        else:
            is_number = type(value) is int or (type(value) is float and math.isfinite(value))
            yield pointer or "/", repr(value) if is_number else json.dumps(value)  # most are: `dumps` takes longer


def parts_of(raw: bytes, name: str) -> list[tuple[str, str]] | None:
    """What a file can be compared by: the leaves of a JSON file, the lines of another text; None for other files."""
    place = Place(name)
    try:
        text = decoded(raw, place)
        if name.endswith((".json", ".sarif")):
            return list(leaves(json_value(text, place)))
    except InputError:
        return None
    return [(f"line {k}", line) for k, line in enumerate(text.split("\n"), 1)]


def differences(actual: bytes, expected: bytes, name: str, kind: type[Finding] = Finding) -> list[Finding]:
    """Where the bytes found differ from those expected, as findings; empty only if they are equal."""
    if actual == expected:
        return []
    mine, other = parts_of(actual, name), parts_of(expected, name)
    if mine is not None and other is not None and (apart := _by_part(mine, other, name, kind)):
        return apart
    least = min(len(actual), len(expected))  # they say the same in other bytes, or are no text
    at = next((k for k in range(least) if actual[k] != expected[k]), least)
    raws = (actual, expected)
    here, there = (f"{raw[at : at + 8]!r}" if at < len(raw) else "the end of the file" for raw in raws)
    return [kind(name, f"byte {at}", here, there)]


def differing(path: str, actual: object, expected: object, why: str = "", pointer: str = "") -> list[Finding]:
    """Where two values differ, typed ones or those of JSON, as findings about what a document says.

    Args:
        actual, expected: the values, or parts of them that have to be equal.
        why: follows what was expected: ", as in the spec".
        pointer: where in the document both stand.
    """
    mine, other = json_values(actual), json_values(expected)
    if json.dumps(mine) == json.dumps(other):
        return []
    apart = _by_part(list(leaves(mine)), list(leaves(other)), path, Misstated)
    return [replace(one, where=pointer + one.where, expected=one.expected + why) for one in apart]


def findings_of(actual: bytes, expected: bytes, name: str, kind: type[Finding] = Finding) -> list[Finding]:
    """The same as findings, at most `MOST` and one that counts the others."""
    return first_of(differences(actual, expected, name, kind), "differences", kind)


def first_of(every: list[Finding], what: str, kind: type[Finding] = Finding) -> list[Finding]:
    """Of findings about one file the first `MOST`, and one that counts the others."""
    left = len(every) - MOST
    rest = [kind(every[0].file, "", f"{left} more {what}", "none")] if left > 0 else []
    return every[:MOST] + rest


def _by_part(
    mine: list[tuple[str, str]], other: list[tuple[str, str]], file: str, kind: type[Finding]
) -> list[Finding]:
    actual, expected = dict(mine), dict(other)
    pairs = {name: (actual.get(name), expected.get(name)) for name in {**expected, **actual}}
    apart = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    return [kind(file, name, _text(here), _text(there)) for name, (here, there) in apart.items()]


def _text(value: str | None) -> str:
    return NOTHING if value is None else shown(value, LONGEST_SHOWN)[1:-1] or "an empty line"


_NEARLY_NOTHING = 1e-13
"""What numbers near 0 may differ by, such as differences between engines."""


def compared(old: bytes, new: bytes, path: str, log: Log) -> int:
    """Report where a result that was made again differs; how many numbers differ in their last digits only.

    Another processor or another version of a numerical library rounds differently; so do versions that are stated.
    Proofs rest on such numbers, differ with them, and hold all the same; they are not compared here.
    """
    rounded = 0
    for difference in differences(old, new, path, Misstated):
        if difference.where.startswith(f"/{KEY}/"):  # they follow from what else differs
            continue
        close = _close(difference)
        rounded += close
        if difference.where.startswith("/versions/"):
            made = f"{difference.where.removeprefix('/versions/')} {difference.found}, which made it"
            log.unchecked.append(f"{path} with {made}; here it is {difference.expected}")
        elif not close:
            log.findings.append(difference)
    return rounded


def _close(difference: Finding) -> bool:
    """Whether two numbers with a decimal point differ in their last digits only."""
    try:
        one, other = float(difference.found), float(difference.expected)
    except ValueError:
        return False
    point = all("." in text or "e" in text for text in (difference.found, difference.expected))
    return point and abs(one - other) <= max(AGREEMENT * max(abs(one), abs(other)), _NEARLY_NOTHING)


def wrong_decisions(
    path: str, stated: WorldDecisions | None, again: WorldDecisions | None, pointer: str
) -> list[Finding]:
    """What is not so; numbers may differ in their last digits."""
    if stated is not None and again is not None:
        known = itertools.zip_longest(stated.decided[: len(again.decided)], again.decided)
        decided = (
            state if mine is None else replace(state, visits=_rounded(mine.visits, state.visits))
            for mine, state in known
        )
        probability = _rounded(stated.probability, again.probability)
        again = replace(again, probability=probability, decided=tuple(decided))
    return differing(path, {"world": stated}, {"world": again}, ", computed again from the inputs", pointer)


def _rounded(stated: float, computed: float) -> float:
    """The number that is stated, where the computed one differs from it in its last digits only."""
    return stated if abs(stated - computed) <= AGREEMENT * max(abs(computed), 1) else computed
