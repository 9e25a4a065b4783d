"""Explanations and required recalls, told once: the output of their commands, and what a report says of them."""

from collections.abc import Iterator
from fractions import Fraction

from verifier.base.errors import one_line
from verifier.base.numbers import decimal_text, fixed, interval_text, level_text, number_text, signed, significant
from verifier.base.words import listed, percent, some_of
from verifier.checking.verdicts import Verdict
from verifier.questions.explain.explain_result import Explained, ExplainResult
from verifier.questions.require.require_result import Answer, Outcome, RequireResult
from verifier.study.points import Point
from verifier.telling.blocks import Block, Cell, Paragraph, Row, Section, Table, name_text
from verifier.telling.failing import cause_blocks, pattern_blocks, world_blocks
from verifier.telling.grounds import (
    assumed_text,
    bounds_told,
    channel_lines,
    difference_text,
    free_text,
    marked_verdict,
    reason_text,
    scenario_text,
    sentence,
    vacuity_text,
)
from verifier.telling.run import bound_text, choices_made, probability_text
from verifier.telling.run_summary import evidence_lines, remark_lines
from verifier.telling.terminal import blocks_lines, section_lines, text_of

MOST_LISTED = 10
"""Gaps, and cells that limit a recall, which are told."""


def explain_table(result: ExplainResult) -> str:
    """The output of `verify explain`, requirement by requirement; the maps are in its picture."""
    planners = list(dict.fromkeys(explained.planner for explained in result.explanations))
    lines = [one_line(result.title), *choices_made(result, planners)]
    for explained in result.explanations:
        lines += ["", *section_lines(_headed(result, explained))]
        for blocks in (
            world_blocks(explained),
            cause_blocks(result, explained),
            pattern_blocks(result, explained),
            _fixes(result, explained),
            _label_more(result, explained),
            _moves(result, explained),
        ):
            part_lines = list(blocks_lines(blocks))
            lines += ["", *part_lines] if part_lines else []
    lines += evidence_lines(result, [(explained, explained.point) for explained in result.explanations])
    difference = difference_text(result.engines.largest_difference)
    lines += ["", f"Probabilities by Storm {result.versions['storm']} and by a second engine; {difference}."]
    lines += remark_lines(result.remarks)
    return text_of([*lines, f"verdict: {one_line(result.verdict_text)}"])


def _headed(result: ExplainResult, explained: Explained) -> Section:
    """The requirement, its probability, and what its verdict rests on."""
    point, target = explained.point, explained.target
    asked = f"{explained.asked} = ?" if target is None else f"{explained.asked} {target}"
    number = probability_text(point, None if target is None else target.probability)
    texts = [f"{explained.asked} = {number} ({bound_text(point)}) in the worst scenario, {scenario_text(point)}"]
    sure, rests_on = point.uncertainty, result.settings.bounds
    if sure is not None and rests_on is not None:
        both = (sure.interval, sure.confidence_bounds)
        interval, bounds = (interval_text(ends.lower, ends.upper) for ends in both if ends is not None)
        name, gap, assumed = bounds_told(rests_on).partition("; ")
        texts += [f"{level_text(sure.level)} {sure.interval.kind} interval {interval}"]
        texts += [f"{name} {bounds}{gap}{assumed}"]
    texts += (
        [f"not decided by these numbers: {text}"] if (text := reason_text(point.reason, point.probability)) else []
    )
    texts += [f"vacuous: {text}"] if (text := vacuity_text(point)) else []
    if point.decided_free is not None:
        texts.append(free_text(point.decided_free))
    elif point.basis == "any_dependence":
        texts.append("it holds whatever the detector predicts")
    head = f"{explained.name}, planner {explained.planner}: {asked}, {marked_verdict(point)}"
    return Section(head, tuple(map(Paragraph, texts)))


def improving_blocks(result: ExplainResult, explained: Explained) -> Iterator[Block]:
    """What would help: types of detection errors to fix, columns to label more, and what P depends on."""
    yield from _fixes(result, explained)
    yield from _label_more(result, explained)
    yield from _moves(result, explained)


def improving_sentence(result: ExplainResult, explained: Explained) -> str | None:
    """What would help most, in one sentence; None where nothing is wrong."""
    if explained.fixes:
        best = explained.fixes[0]
        return (
            f"If true {name_text(best.true)} in {name_text(result.bins[best.bin])} were never reported as "
            f"{name_text(best.reported)}, P would be {number_text(best.probability)}."
        )
    if explained.verdict is not Verdict.VIOLATED:
        return None
    perfect = number_text(explained.perfect_perception)
    return f"No single type of detection error changes P; with perfect perception it would be {perfect}."


def _fixes(result: ExplainResult, explained: Explained) -> Iterator[Block]:
    perfect = f"With perfect perception P would be {number_text(explained.perfect_perception)}."
    if not explained.fixes:
        yield Paragraph(f"No single type of detection error changes P. {perfect}")
        return
    rows = tuple(
        (
            *_place(result, fix.true, fix.bin),
            name_text(fix.reported),
            Cell(significant(fix.rate, 4), fix.rate),
            Cell(number_text(fix.probability), fix.probability),
            Cell(f"{signed(fix.first_order, 3)}{' (may jump)' if fix.jumps else ''}", fix.first_order),
        )
        for fix in explained.fixes
    )
    yield Paragraph(perfect)
    header = ("true", "distance", "reported as", "rate", "P if corrected", "change of P to first order")
    yield Table("Improvements: P if one type of detection error were eliminated", header, rows, sortable=True)


def _label_more(result: ExplainResult, explained: Explained) -> Iterator[Block]:
    columns, most = explained.label_more, result.explain.rows
    if not columns:
        yield Paragraph("Data collection: no column with data influences P to first order.")
        return
    rows = tuple(
        (
            *_place(result, column.true, column.bin),
            Cell(str(column.items), column.items),
            Cell(percent(column.share_of_variance), column.share_of_variance),
            Cell(f"{significant(column.p_range)} ({name_text(column.p_range_of)})", column.p_range),
        )
        for column in columns[:most]
    )
    level = level_text(result.explain.level)
    header = ("true", "distance", "items", "share of variance", f"P over the {level} interval of a cell")
    more = f" (first {most} of {len(columns)})" if len(columns) > most else ""
    deviation = f"P has a standard deviation of about {significant(explained.posterior_deviation)}, to first order"
    assumed = explained.posterior_deviation_assumes
    yield Table(
        f"Data collection{more}: share of the posterior variance of P; {deviation}, {assumed}",
        header,
        rows,
        sortable=True,
    )


def _moves(result: ExplainResult, explained: Explained) -> Iterator[Block]:
    if not explained.moves:
        yield Paragraph("Sensitivity: P does not change with the matrices, to first order.")
        return
    rows = tuple(
        (
            *_place(result, move.true, move.bin),
            f"{name_text(move.from_)} -> {name_text(move.to)}",
            Cell(f"{signed(move.slope, 4)}{' (may jump)' if move.jumps else ''}", move.slope),
            Cell(significant(move.rate_from, 4), move.rate_from),
            Cell(significant(move.rate_to, 4), move.rate_to),
        )
        for move in explained.moves
    )
    header = ("true", "distance", "reports moved", "dP per unit", "rate from", "rate to")
    yield Table(
        "Sensitivity: change of P per unit of rate moved from one predicted label to another",
        header,
        rows,
        sortable=True,
    )


def _place(result: ExplainResult, true: str, at: int) -> tuple[str, Cell]:
    return name_text(true), Cell(name_text(result.bins[at]), at)


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
