"""What a growing disturbance does to the system, as sentences and tables."""

from __future__ import annotations

import math
from collections.abc import Iterator

from verifier.cli.assess_blocks import Block, Table
from verifier.robustness.assessment.degradation import Break, Criterion, Degradation
from verifier.robustness.assessment.result import SystemResult

ALONG = {
    "linear": "the level",
    "log": "the logarithm of the level",
    "reciprocal": "the reciprocal of the level",
}


def degradation_blocks(found: SystemResult) -> Iterator[Block]:
    """The criteria by level, where each breaks, and which of them saw it first."""
    asked, result = found.assessment.degradation, found.degradation
    if asked is None or result is None:
        return
    levels = [level_text(asked, each) for each in result.levels]
    yield f"{asked.parameter}, the mildest level first:"
    yield Table(
        ("kind", "criterion", "asked", *levels),
        tuple((each.kind, each.name, each.limit, *_cells(each)) for each in result.criteria),
    )
    for each in result.breaks:
        yield _break_sentence(asked, each)
    seen = result.seen
    if seen:
        for number, group in enumerate(seen):
            at = level_text(asked, group[0].fails_at)
            names = ", ".join(f"{each.name} ({each.kind})" for each in group)
            yield f"{'First' if number == 0 else 'Then'} to fail, at {at}: {names}."
        yield (
            f"Places between tested levels are interpolated: margins on a straight line in {ALONG[asked.scale]}. "
            "Only the tested levels say who was first."
        )
    else:
        yield "Nothing fails at any tested level."


def _cells(each: Criterion) -> Iterator[str]:
    notes = each.notes or ("",) * len(each.values)
    for value, margin, note in zip(each.values, each.margins, notes, strict=True):
        if value is None or margin is None:
            yield "not defined"
        else:
            told = f"{value:.6g}" + (f" {note}" if note else "")
            yield f"{told} fails" if each.fails(margin) else told


def _break_sentence(asked: Degradation, each: Break) -> str:
    again = "; it holds again at a severer level" if each.recovers else ""
    passed = f" ({each.undefined} of the levels have no value)" if each.undefined else ""
    if each.fails_at is None:
        held = "has no value" if each.holds_at is None else f"holds up to {level_text(asked, each.holds_at)}"
        return f"{each.name}: {held}{passed}."
    if each.holds_at is None:
        return f"{each.name}: fails at the mildest level, {level_text(asked, each.fails_at)}, already{again}{passed}."
    between = f"between {level_text(asked, each.holds_at)} and {level_text(asked, each.fails_at)}"
    if each.place is None:
        return f"{each.name}: breaks {between}{again}{passed}."
    return f"{each.name}: breaks at {level_text(asked, each.place)} (interpolated {between}){again}{passed}."


def level_text(asked: Degradation, level: float | None) -> str:
    """A level with its parameter and unit: `visibility 210 m`."""
    number = "infinite" if level is not None and math.isinf(level) else f"{level:.4g}"
    return f"{asked.parameter} {number}" + (f" {asked.unit}" if asked.unit and number != "infinite" else "")
