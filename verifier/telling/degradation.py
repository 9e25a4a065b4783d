"""What a growing disturbance does to the system, as sentences and tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from verifier.base.words import percent
from verifier.robustness.assessment.breaks import Break, Criterion
from verifier.robustness.assessment.degradation import Degradation
from verifier.robustness.assessment.level_draws import CONFIDENCE
from verifier.robustness.assessment.result import DegradationResult, SystemResult
from verifier.telling.blocks import Block, Table

ALONG = {
    "linear": "the level",
    "log": "the logarithm of the level",
    "reciprocal": "the reciprocal of the level",
}


def degradation_blocks(found: SystemResult) -> Iterator[Block | str]:
    """The criteria by level, where each breaks, and which of them saw it first."""
    asked, result = found.assessment.degradation, found.degradation
    if asked is None or result is None:
        return
    levels = [level_text(asked, each) for each in result.levels]
    yield f"{asked.parameter}, the mildest level first:"
    yield Table(
        "",
        ("kind", "criterion", "asked", *levels),
        tuple((each.kind, each.name, each.limit, *_cells(each)) for each in result.criteria),
    )
    if any(verdict is not None for each in result.criteria for verdict in each.verdicts):
        yield (
            f"In brackets: what can be said at {percent(CONFIDENCE, 2)} confidence with the number of images taken "
            "into account, of every number by itself. Images are assumed to be independent of each other."
        )
    for each, one in zip(result.criteria, result.breaks, strict=True):
        yield _break_sentence(asked, each, one, better=_is_better(each, one, result.levels))
    yield from _order_blocks(asked, result)


def _order_blocks(asked: Degradation, result: DegradationResult) -> Iterator[Block | str]:
    """Who failed first: by the numbers, and by what the number of images leaves no doubt of."""
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
        yield from _sure_order(result)
    else:
        yield "Nothing fails at any tested level."


def _sure_order(result: DegradationResult) -> Iterator[str]:
    """What of the order is more than the luck of these images."""
    if not any(verdict is not None for each in result.criteria for verdict in each.verdicts):
        yield "The uncertainty of the order is not known: the numbers were given without the data behind them."
        return
    pairs = result.surely_before
    for earlier in dict.fromkeys(one for one, _ in pairs):
        later = ", ".join(f"{other.name} ({other.kind})" for one, other in pairs if one is earlier)
        yield f"Confirmed by the image sample: {earlier.name} ({earlier.kind}) fails before {later}."
    if not pairs:
        yield "The image sample is too small to say which criterion fails first."


def _cells(each: Criterion) -> Iterator[str]:
    verdicts = each.verdicts or (None,) * len(each.values)
    for value, margin, verdict in zip(each.values, each.margins, verdicts, strict=True):
        if value is None or margin is None:
            yield "not defined"
        else:
            told = f"{value:.6g}" + (f" ({verdict.value})" if verdict else "")
            yield f"{told} fails" if each.fails(margin) else told


def _is_better(each: Criterion, one: Break, levels: Sequence[float]) -> bool:
    """Whether a metric fails by being better than at the mildest level: what is accepted has two sides."""
    if each.kind != "metric" or one.fails_at is None:
        return False
    start, there = each.values[0], each.values[levels.index(one.fails_at)]
    return start is not None and there is not None and there > start


def _how_sure(asked: Degradation, criterion: Criterion, each: Break) -> str:
    """Whether the failure is more than the luck of these images."""
    if each.fails_at is None or not any(criterion.verdicts):
        return ""
    if each.sure_at is None:
        return "; not confirmed at any level (too few images)"
    return f"; confirmed at {percent(CONFIDENCE, 2)} confidence from {level_text(asked, each.sure_at)} on"


def _break_sentence(asked: Degradation, criterion: Criterion, each: Break, *, better: bool) -> str:
    again = "; it is better there, not worse" if better else ""
    again += "; it holds again at a severer level" if each.recovers else ""
    again += _how_sure(asked, criterion, each)
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
    if level is None:
        raise ValueError("no level")
    number = "infinite" if math.isinf(level) else f"{level:.4g}" if abs(level) < 1e4 else f"{level:.0f}"
    return f"{asked.parameter} {number}" + (f" {asked.unit}" if asked.unit and number != "infinite" else "")
