"""What a growing disturbance does to the system, as sentences and tables."""

from __future__ import annotations

from collections.abc import Iterator

from verifier.base.words import percent
from verifier.robustness.assessment.document import CriterionRecord, DegradationRecord, Level
from verifier.robustness.assessment.level_draws import CONFIDENCE
from verifier.telling.blocks import Block, Table

ALONG = {
    "linear": "the level",
    "log": "the logarithm of the level",
    "reciprocal": "the reciprocal of the level",
}


def degradation_blocks(found: DegradationRecord) -> Iterator[Block | str]:
    """The criteria by level, where each breaks, and which of them saw it first."""
    levels = [level_text(found, each) for each in found.levels]
    yield f"{found.parameter}, the mildest level first:"
    yield Table(
        "",
        ("kind", "criterion", "asked", *levels),
        tuple((each.kind, each.name, each.limit, *_cells(each)) for each in found.criteria),
    )
    if _are_judged(found):
        yield (
            f"In brackets: what can be said at {percent(CONFIDENCE, 2)} confidence with the number of images taken "
            "into account, of every number by itself. Images are assumed to be independent of each other."
        )
    for each in found.criteria:
        yield _break_sentence(found, each)
    yield from _order_blocks(found)


def _are_judged(found: DegradationRecord) -> bool:
    """Whether the data behind the numbers are known."""
    return any(verdict is not None for each in found.criteria for verdict in each.verdicts)


def _order_blocks(found: DegradationRecord) -> Iterator[Block | str]:
    """Who failed first: by the numbers, and by what the number of images leaves no doubt of."""
    breaks = {(each.kind, each.name): each.break_ for each in found.criteria}
    if found.seen:
        for number, group in enumerate(found.seen):
            at = level_text(found, breaks[group[0].kind, group[0].name].fails_at)
            names = ", ".join(f"{each.name} ({each.kind})" for each in group)
            yield f"{'First' if number == 0 else 'Then'} to fail, at {at}: {names}."
        yield (
            f"Places between tested levels are interpolated: margins on a straight line in {ALONG[found.scale]}. "
            "Only the tested levels say who was first."
        )
        yield from _sure_order(found)
    else:
        yield "Nothing fails at any tested level."


def _sure_order(found: DegradationRecord) -> Iterator[str]:
    """What of the order is more than the luck of these images."""
    if not _are_judged(found):
        yield "The uncertainty of the order is not known: the numbers were given without the data behind them."
        return
    for earlier in dict.fromkeys(order.earlier for order in found.surely_before):
        after = (order.later for order in found.surely_before if order.earlier == earlier)
        later = ", ".join(f"{other.name} ({other.kind})" for other in after)
        yield f"Confirmed by the image sample: {earlier.name} ({earlier.kind}) fails before {later}."
    if not found.surely_before:
        yield "The image sample is too small to say which criterion fails first."


def _cells(each: CriterionRecord) -> Iterator[str]:
    for value, margin, verdict in zip(each.values, each.margins, each.verdicts, strict=True):
        if value is None or margin is None:
            yield "not defined"
        else:
            told = f"{value:.6g}" + (f" ({verdict})" if verdict else "")
            yield f"{told} fails" if each.fails(margin) else told


def _break_sentence(found: DegradationRecord, each: CriterionRecord) -> str:
    one = each.break_
    passed = f" ({one.undefined} of the levels have no value)" if one.undefined else ""
    if one.fails_at is None:
        held = "has no value" if one.holds_at is None else f"holds up to {level_text(found, one.holds_at)}"
        return f"{each.name}: {held}{passed}."
    start, there = each.values[0], each.values[found.levels.index(one.fails_at)]
    # What is accepted of a metric has two sides: it may fail by being better than at the mildest level.
    better = each.kind == "metric" and start is not None and there is not None and there > start
    again = "; it is better there, not worse" if better else ""
    again += "; it holds again at a severer level" if one.recovers else ""
    if any(each.verdicts) and one.sure_at is None:
        again += "; not confirmed at any level (too few images)"
    elif any(each.verdicts):
        again += f"; confirmed at {percent(CONFIDENCE, 2)} confidence from {level_text(found, one.sure_at)} on"
    if one.holds_at is None:
        return f"{each.name}: fails at the mildest level, {level_text(found, one.fails_at)}, already{again}{passed}."
    between = f"between {level_text(found, one.holds_at)} and {level_text(found, one.fails_at)}"
    if one.interpolated is None:
        return f"{each.name}: breaks {between}{again}{passed}."
    place = level_text(found, one.interpolated)
    return f"{each.name}: breaks at {place} (interpolated {between}){again}{passed}."


def level_text(found: DegradationRecord, level: Level) -> str:
    """A level with its parameter and unit: `visibility 210 m`."""
    if level is None:
        raise ValueError("no level")
    if level == "inf":
        return f"{found.parameter} infinite"
    number = f"{level:.4g}" if abs(level) < 1e4 else f"{level:.0f}"
    return f"{found.parameter} {number}" + (f" {found.unit}" if found.unit else "")
