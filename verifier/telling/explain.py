"""Explanations, told once: the output of `verify explain`, and what a report says would help."""

from collections.abc import Iterator

from verifier.base.errors import one_line
from verifier.base.numbers import interval_text, level_text, number_text, signed, significant
from verifier.base.words import percent
from verifier.checking.verdicts import Verdict, WithinBounds
from verifier.questions.explain.explain_result import Explained, ExplainResult
from verifier.telling.blocks import Block, Cell, Paragraph, Section, Table
from verifier.telling.failing import cause_blocks, pattern_blocks, world_blocks
from verifier.telling.grounds import (
    bounds_told,
    difference_text,
    free_text,
    marked_verdict,
    name_text,
    reason_text,
    scenario_text,
    vacuity_text,
)
from verifier.telling.run import bound_text, choices_made, probability_text
from verifier.telling.run_summary import evidence_line, remark_lines, says_what_decides
from verifier.telling.terminal import blocks_lines, section_lines, text_of


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
    lines += _evidence_lines(result)
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


def _evidence_lines(result: ExplainResult) -> list[str]:
    """What would decide each requirement that the confidence bounds leave open, a blank line first."""
    lines = []
    for explained in result.explanations:
        reason, plan = explained.point.reason, explained.additional_data
        if explained.verdict is Verdict.INCONCLUSIVE and (reason is None or isinstance(reason, WithinBounds)):
            where = f"{explained.name}, planner {explained.planner}, {explained.point.scenario}"
            mixed = result.matrices is not None and result.matrices.mix is not None
            lines.append(evidence_line(where, plan, result.settings, mixed=mixed))
    return ["", *lines] if lines and says_what_decides(result.settings) else []


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
