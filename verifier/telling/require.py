"""What perception must do, told once: on the terminal of `verify require` and in reports."""

from collections.abc import Iterator
from fractions import Fraction

from verifier.base.errors import one_line
from verifier.base.numbers import decimal_text, fixed, number_text
from verifier.base.words import listed, some_of
from verifier.questions.require.require_result import Answer, Outcome, RequireResult
from verifier.study.points import Point
from verifier.telling.blocks import Block, Cell, Paragraph, Row, Table
from verifier.telling.grounds import assumed_text, channel_lines, name_text, scenario_text, sentence
from verifier.telling.run import probability_text
from verifier.telling.run_summary import remark_lines
from verifier.telling.terminal import blocks_lines, text_of

MOST_LISTED = 10


def require_table(result: RequireResult) -> str:
    """The output of `verify require`: per planner the answer in words, and a table of its cells."""
    lines = [one_line(result.title), ", ".join(one_line(file.name) for file in result.inputs), ""]
    lines.append(
        one_line(f"{result.requirement.name}: {result.requirement.question} [ {result.requirement.formula} ]")
    )
    for answer in result.answers:
        lines += ["", *blocks_lines(answer_blocks(result, answer))]
    lines += ["", *_notes(result)]
    return text_of(lines)


def answer_blocks(result: RequireResult, answer: Answer, file: str = "") -> Iterator[Block]:
    """What recall a requirement asks of the detector under one planner; `file` is where that is said."""
    yield Paragraph(f"{_planner_text(answer)}: {answer_text(result, answer)}{f' ({file})' if file else ''}.")
    yield _points_table(result, answer)
    if answer.outcome is not Outcome.FOUND and not answer.met_as_measured:
        yield Paragraph(f"{sentence(_limit_text(result, answer))}.", "note")
    if answer.cells:
        yield _cell_table(answer)
    if answer.gaps:
        yield Paragraph(_gaps_text(result, answer), "note")
    if answer.floor is not None:
        yield Paragraph(_floor_text(result, answer), "note")


def answer_text(result: RequireResult, answer: Answer) -> str:
    """What the requirement asks for, with what that assumes of the detector."""
    condition = "" if answer.condition is None else f", {answer.condition}"
    return f"{_headline(result, answer)}{condition}"


def asks_for_recall(answer: Answer) -> bool:
    """Whether any cell must have a recall above 0."""
    return any(Fraction(cell.required or 0) > 0 for cell in answer.cells)


def _planner_text(answer: Answer) -> str:
    swept = "".join(f", {name_text(name)} = {value}" for name, value in answer.constants.items())
    return f"Planner {name_text(answer.planner)}{swept}"


def _headline(result: RequireResult, answer: Answer) -> str:
    match answer.outcome:
        case Outcome.INDEPENDENT:
            return "this requirement does not depend on the selected recalls"
        case Outcome.INFEASIBLE:
            return "no value of the selected recalls meets this requirement"
        case Outcome.ONLY_IN_GAPS:
            return "this requirement is met for some recalls, but not up to perfect recall"
    if answer.cells and not asks_for_recall(answer):
        return "recall 0 suffices for this requirement: its verdict says nothing about the detector"
    match result.mode:
        case "factor":
            return f"this requirement asks for every miss rate times {answer.value} at most"
        case "cost":
            return f"the cheapest improvement found that meets this requirement has the price {answer.value}"
    many = " in every selected cell" if len(answer.cells) > 1 else ""
    return f"this requirement asks for a recall of at least {answer.value}{many}"


def _points_table(result: RequireResult, answer: Answer) -> Table:
    is_found = answer.outcome is Outcome.FOUND
    closest = () if answer.at_value is None else (("as required" if is_found else "closest", answer.at_value),)
    points = (("as measured", answer.measured), *closest, ("all perfect", answer.perfect))
    rows = tuple(_point_row(result, answer, name, point) for name, point in points)
    return Table("P with the detector", ("detector", "P", "by", "worst scenario", "verdict"), rows)


def _point_row(result: RequireResult, answer: Answer, name: str, point: Point) -> Row:
    return (
        name,
        Cell(probability_text(point, result.requirement.probability), point.probability),
        "exact" if point.exact is not None else "Storm",
        scenario_text(point),
        Cell(answer.told(point), verdict=point.verdict.value),
    )


def _limit_text(result: RequireResult, answer: Answer) -> str:
    """Why there is no answer."""
    asked = result.requirement
    for comparison, end, side in ((">", 1, "above 1"), ("<", 0, "below 0")):
        if asked.comparison == comparison and asked.probability == end:
            return f"the limit is the target: no probability is {side}"
    if answer.planner_is_limit:
        value = probability_text(answer.perfect)
        return f"the limit is planner {name_text(answer.planner)}: with perfect perception P = {value} at the worst"
    if answer.others:
        return (
            f"the limit is outside the selected recalls: {some_of(list(map(name_text, answer.others)), MOST_LISTED)}"
        )
    return "met with perfect perception, but not by raising these recalls in this mode"


def _gaps_text(result: RequireResult, answer: Answer) -> str:
    what = "factors" if result.mode == "factor" else "recalls"
    shown = listed([f"{low} to {high}" for low, high in answer.gaps[:MOST_LISTED]])
    more = len(answer.gaps) - MOST_LISTED
    rest = f" and in {more} further stretches" if more > 0 else ""
    return f"Also met for {what} from {shown}{rest}, but not right above."


def _cell_table(answer: Answer) -> Table:
    floors = None if answer.floor is None else answer.floor.floors
    rows = []
    for at, cell in enumerate(answer.cells):
        measured, gain = cell.measured, cell.gain
        row = [
            Cell(name_text(cell.label)),
            Cell(name_text(cell.bin), at),
            Cell(fixed(measured.recall, 4), measured.recall),
            Cell(f"{measured.hits} of {measured.items}", measured.items),
            _number_cell(cell.required, "none found"),
            Cell("-") if gain is None else Cell("met" if gain <= 0 else f"+{fixed(float(gain), 4)}", float(gain)),
        ]
        rows.append((*row, _number_cell(floors[at])) if floors else tuple(row))
    header = ("true", "distance", "measured recall", "items", "required", "to gain")
    return Table("Recall by cell", (*header, "certified floor") if floors else header, tuple(rows), sortable=True)


def _number_cell(text: str | None, none: str = "-") -> Cell:
    return Cell(none) if text is None else Cell(decimal_text(text), float(Fraction(text)))


def _floor_text(result: RequireResult, answer: Answer) -> str:
    box = answer.floor
    assert box is not None
    rest = "for any values of all other rates" if box.rest == "free" else "all other columns as measured"
    side = "at most" if result.requirement.target.is_upper else "at least"
    held = "checked in rational arithmetic" if box.checked else "not checked in rational arithmetic"
    proof = f"P is {side} {number_text(box.proven)} ({held})"
    if box.floors is None:
        return f"Certified floor: none. Even with recall 1, {rest}, only this is known: {proof}."
    floors = dict.fromkeys(box.floors)
    what = f"recall >= {box.floors[0]} in every cell" if len(floors) == 1 else "every recall above its floor"
    return f"Certified floor: for every matrix with {what}, {rest}, {proof}."


def _notes(result: RequireResult) -> Iterator[str]:
    yield "When a recall changes, the other rates of its column are scaled proportionally."
    decimals = result.settings.decimals
    yield f"Recalls are rounded up to {decimals} decimals. P was evaluated only at the listed recalls."
    if result.mode == "cost":
        yield "The price is the least that was found from several starts, not a proven minimum."
    yield f"Assumes {assumed_text(result.channel)}:"
    yield from (f"  {one_line(line)}" for line in channel_lines(result.channel))
    yield from remark_lines(result.remarks)
