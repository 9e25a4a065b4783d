"""What perception must do, as text that a person reads."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from verifier.base.errors import one_line
from verifier.base.numbers import decimal_text
from verifier.questions.require.require_result import Answer, Outcome, RequireResult
from verifier.study.points import Point
from verifier.telling.grounds import channel_lines
from verifier.telling.run import probability_text
from verifier.telling.run_summary import remark_lines
from verifier.telling.terminal import aligned

MOST_GAPS = 4


def require_table(result: RequireResult) -> str:
    """The output of `verify require`: per planner the answer in words, and a table of its cells."""
    lines = [one_line(result.title), ", ".join(one_line(each.name) for each in result.inputs), ""]
    lines.append(f"{result.requirement}: {result.target_text} [ {result.formula} ]")
    for each in result.answers:
        lines += ["", *_answer_lines(result, each)]
    lines += ["", *_notes(result)]
    return "\n".join(lines) + "\n"


def _answer_lines(result: RequireResult, answer: Answer) -> Iterator[str]:
    swept = "".join(f", {name} = {decimal_text(value)}" for name, value in answer.swept.items())
    condition = "" if answer.condition is None else f", {one_line(answer.condition)}"
    yield f"planner {answer.planner}{swept}: {_headline(result, answer)}{condition}"
    yield f"  as measured   {_point_text(result, answer, answer.measured)}"
    if answer.at_place is not None:
        kind = "as required   " if answer.outcome is Outcome.FOUND else "closest       "
        yield f"  {kind}{_point_text(result, answer, answer.at_place)}"
    yield f"  all perfect   {_point_text(result, answer, answer.perfect)}"
    if answer.outcome is not Outcome.FOUND and not answer.met_as_measured:
        yield f"  {_limit(result, answer)}"
    for low, high in answer.gaps[:MOST_GAPS]:
        what = "factors" if result.mode == "factor" else "recalls"
        yield f"  also met for {what} from {decimal_text(low)} to {decimal_text(high)}, but not right above"
    if len(answer.gaps) > MOST_GAPS:
        yield f"  and in {len(answer.gaps) - MOST_GAPS} further stretches"
    if answer.cells:
        yield from ("  " + line for line in _cell_table(answer))
    if answer.box is not None:
        yield f"  {_box_text(result, answer)}"


def _headline(result: RequireResult, answer: Answer) -> str:
    place = None if answer.place is None else decimal_text(answer.place)
    match answer.outcome:
        case Outcome.INDEPENDENT:
            return "the recalls in question make no difference to this requirement"
        case Outcome.INFEASIBLE:
            return "no recall in question meets the requirement"
        case Outcome.ONLY_IN_GAPS:
            return "met for some recalls, but not up to perfect recall"
    if result.mode == "factor":
        return f"every miss rate times {place} at most"
    if result.mode == "cost":
        return f"cheapest improvement found, price {place}"
    return f"recall {place} at least" + (" in every cell" if len(answer.cells) > 1 else "")


def _limit(result: RequireResult, answer: Answer) -> str:
    """Why there is no answer."""
    if (result.comparison == ">" and result.target == 1) or (result.comparison == "<" and result.target == 0):
        return f"the limit is the target: no probability is {'above 1' if result.target else 'below 0'}"
    if answer.planner_is_limit:
        value = probability_text(answer.perfect)
        return f"the limit is planner {answer.planner}: with perfect perception P = {value} at the worst"
    if answer.others:
        return f"the limit is what was not in question: {_listed(answer.others)}"
    return "perfect perception meets it, but not on the way that was searched"


def _listed(texts: tuple[str, ...], most: int = 6) -> str:
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(one_line(each) for each in texts[:most]) + more


def _point_text(result: RequireResult, answer: Answer, point: Point) -> str:
    how = "exact" if point.exact is not None else "Storm"
    return (
        f"P = {probability_text(point, result.target)} ({how}) {one_line(answer.told(point))}; worst {point.scenario}"
    )


def _cell_table(answer: Answer) -> list[str]:
    floors = answer.box.floors if answer.box is not None else None
    header = ["bin", "true", "measured", "required", "to gain", *(["certified"] if floors is not None else [])]
    rows = []
    for k, each in enumerate(answer.cells):
        required = "-" if each.required is None else decimal_text(each.required)
        gain = "-" if each.required is None else _signed(each.required - each.measured)
        floor = [] if floors is None else [decimal_text(floors[k])]
        share = f"{float(each.measured):.4f} ({each.hits} of {each.items})"
        rows.append([each.bin, one_line(each.label), share, required, gain, *floor])
    return aligned(header, rows)


def _signed(value: Fraction) -> str:
    return "met" if value <= 0 else f"+{float(value):.4f}"


def _box_text(result: RequireResult, answer: Answer) -> str:
    box = answer.box
    assert box is not None
    rest = "everything else free" if box.rest == "free" else "all other columns as measured"
    side = "at most" if result.comparison in ("<=", "<") else "at least"
    held = "checked in rational arithmetic" if box.checked else "not checked in rational arithmetic"
    proof = f"P is {side} {box.proven:.6g} ({held})"
    if box.floors is None:
        return f"certified floor: none; even with recall 1, {rest}, only this is known: {proof}"
    floors = {decimal_text(each) for each in box.floors}
    what = f"recall >= {floors.pop()} in every cell" if len(floors) == 1 else "every recall above its floor"
    return f"certified floor: for every matrix with {what}, {rest}, {proof}"


def _notes(result: RequireResult) -> Iterator[str]:
    yield "Where a recall changes, the rest of its column keeps its proportions."
    decimals = result.settings["decimals"]
    yield f"Recalls are rounded up to {decimals} decimals. Between the recalls that were tried P is not known."
    if result.mode == "cost":
        yield "The price is the least that was found from several starts, not a proven minimum."
    yield "Assumes a memoryless detector. Test of successive frames:"
    yield from (f"  {one_line(line)}" for line in channel_lines(result.channel))
    yield from remark_lines(result.remarks)
