"""Explanations as text that a person reads."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from fractions import Fraction

from verifier.analysis.counterexamples.explanation import Explanation, Step, ToldRun
from verifier.analysis.counterexamples.replay import Replay
from verifier.base.documents import Content
from verifier.base.errors import one_line
from verifier.base.numbers import interval_text, level_text
from verifier.perception.confusion.matrices import Label, label_text
from verifier.questions.explain.explain_result import Counted, Explained, ExplainResult, Frame
from verifier.study.points import Point
from verifier.telling.causes import (
    HOW_CAUSES_COUNT,
    cause_lines,
    correction_text,
    deviation_text,
    pattern_text,
    patterns_text,
    report_text,
    violation_text,
)
from verifier.telling.grounds import bounds_told, marked_verdict, reason_text, vacuity_text
from verifier.telling.run import bound_text, choices_made, probability_text
from verifier.telling.run_summary import evidence_lines, remark_lines
from verifier.telling.terminal import aligned

LARGEST_DENOMINATOR = 10**6
MOST_FRAMES = 3
"""Frames that are printed for each kind of wrong report; the JSON document names more."""


def explain_table(result: ExplainResult) -> str:
    """Everything that was found, requirement by requirement."""
    run = result.run
    planners = list(dict.fromkeys(each.planner for each in run.requirements))
    lines = [one_line(run.title), *choices_made(run, planners)]
    content = result.document()
    for each, part in zip(result.explained, content["explanations"], strict=True):
        lines += ["", *_requirement_lines(each, result, content, part)]
    lines += evidence_lines(run)
    lines += ["", f"Probabilities by Storm {run.versions['storm']}; the second engine differs by at most "]
    lines[-1] += f"{run.engines.largest_difference:.1e}."
    lines += remark_lines(run.remarks)
    return "\n".join([*lines, f"verdict: {one_line(run.verdict_text)}"]) + "\n"


def _requirement_lines(each: Explained, result: ExplainResult, content: Content, part: Content) -> list[str]:
    point, target = each.point, each.result.threshold
    asked = "P = ?" if target is None else f"P {each.result.target_text}"
    head = f"{each.result.name}, planner {each.result.planner}: {asked}, {one_line(marked_verdict(point))}"
    number = f"P = {probability_text(point, target)} ({bound_text(point)}) in the worst scenario, {point.scenario}"
    lines = [
        head,
        "=" * len(head),
        number,
        *_sureness_lines(point, result),
        *_why_lines(point),
        "",
        *_failure_lines(each, content, part),
    ]
    lines += _fix_lines(each.explanation, result)
    lines += _column_lines(each.explanation, result, deviation_text(part))
    return [*lines, *_move_lines(each.explanation, result)]


def _why_lines(point: Point) -> list[str]:
    """What the verdict rests on beside its numbers, and why it is open or vacuous."""
    lines = (
        [f"not decided by these numbers: {one_line(text)}"]
        if (text := reason_text(point.reason, point.probability))
        else []
    )
    lines += [f"vacuous: {one_line(text)}"] if (text := vacuity_text(point)) else []
    return lines + (["it holds whatever the detector predicts"] if point.basis == "any_dependence" else [])


def _sureness_lines(point: Point, result: ExplainResult) -> list[str]:
    found = point.sureness
    rests_on = result.run.settings.bounds
    if found is None or rests_on is None:
        return []
    interval, bounds = (interval_text(ends.lower, ends.upper) for ends in (found.interval, found.confidence_bounds))
    name, gap, assumed = bounds_told(rests_on).partition("; ")
    return [
        f"{level_text(found.level)} {found.interval.kind} interval {interval}",
        f"{name} {bounds}{gap}{assumed}",
    ]


def _failure_lines(each: Explained, content: Content, part: Content) -> list[str]:
    found = each.explanation
    if not found.patterns:
        return [violation_text(part)]
    lines = [violation_text(part), *(f"  {line}" for line in cause_lines(content, part)), HOW_CAUSES_COUNT]
    lines += [f"{best}."] if (best := correction_text(content, part)) else []
    for counted, kind in zip(each.counted, part["violation"]["wrong_reports"], strict=True):
        lines += _frame_lines(counted, report_text(content, kind))
    lines += ["", patterns_text(part)]
    for number, (told, pattern) in enumerate(zip(found.patterns, part["violation"]["patterns"], strict=True), 1):
        lines.append(f"  {number}. {pattern_text(content, part, pattern)}")
        for run in told.members:
            lines += _run_lines(run, found.asked, content, alone=told.complete and len(told.members) == 1)
    if any(run.replayed is not Replay.WHOLE for told in found.patterns for run in told.members):
        lines.append("Some runs are too long for the formula to be evaluated on them once more; their steps were.")
    return lines


def _run_lines(run: ToldRun, asked: frozenset[str], content: Content, *, alone: bool) -> list[str]:
    kind = "the only run" if alone else "a run"
    lines = [f"     {kind}, probability {run.probability:.6g}{_fraction_text(run.exact)}:"]
    lines.append(f"     {'start':<10}{_state_text(run.initial)}")
    at = 0
    for length, step in _stretches(run):
        first = at + 1
        at += length
        when = f"step {at}" if length == 1 else f"{first}-{at}"
        told = _report_text(step[0], asked, length > 1, content)
        lines.append(f"     {when:<10}{_state_text(step[1].after)}   {told}")
        if at == run.irrevocable:
            lines.append("     lost: nothing can help any more" + ("; most likely" if at < len(run.steps) else ""))
    return lines


def _stretches(run: ToldRun) -> list[tuple[int, tuple[Step, Step]]]:
    """Steps in which the same was there and was reported, as one: their number, the first and the last of them.

    A step on which nothing hung is like every other such step, whatever was reported.
    """
    keys = [
        (k >= run.irrevocable, step.matters, (step.there, step.told) if step.matters else None)
        for k, step in enumerate(run.steps)
    ]
    found = []
    for _, group in itertools.groupby(zip(keys, run.steps, strict=True), key=lambda pair: pair[0]):
        steps = [step for _, step in group]
        found.append((len(steps), (steps[0], steps[-1])))
    return found


def _report_text(step: Step, asked: frozenset[str], several: bool, content: Content) -> str:
    if not step.matters:
        return "whatever is reported" if step.there else "nobody looks"
    there = " and ".join(f"{_thing_text(label)} in {content['bins'][at]}" for label, at in step.there)
    told = " / ".join(_told_text(label, asked) for label, _ in step.told)
    rate = sum(rate for _, rate in step.told)
    return f"{there}; reported: {told} ({rate:.4g}{' each' if several else ''})"


def _thing_text(label: Label) -> str:
    return "nothing" if not label else " and ".join(sorted(label))


def _told_text(label: Label, asked: frozenset[str]) -> str:
    """What the planner was told of the classes that it asks about."""
    return " and ".join(sorted(label)) if label else f"no {' or '.join(sorted(asked))}"


def _state_text(values: Mapping[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


def _fraction_text(exact: Fraction | None) -> str:
    if exact is None or exact.denominator == 1 or exact.denominator > LARGEST_DENOMINATOR:
        return ""
    return f" = {exact}"


def _frame_lines(counted: Counted, what: str) -> list[str]:
    if counted.occurrences is None:
        return []
    frames = (f"    {_frame_text(each)}" for each in counted.frames[:MOST_FRAMES])
    return [f"  {what}: {counted.occurrences} in the record", *frames]


def _frame_text(frame: Frame) -> str:
    parts = [frame.frame]
    parts += [] if frame.distance_m is None else [f"{frame.distance_m:.1f} m"]
    parts += [f"{frame.file}:{frame.line}"] if frame.file else []
    parts += [f"{frame.report_file}:{frame.report_line}"] if frame.report_file else []
    return one_line(", ".join(parts))


def _fix_lines(found: Explanation, result: ExplainResult) -> list[str]:
    perfect = f"With perfect perception P = {found.fixes.perfect:.6g}."
    most = int(result.settings["moves"])
    rows = [
        [
            *_place(fix.true, fix.bin, result),
            label_text(result.labels[fix.predicted]),
            f"{fix.rate:.4g}",
            f"{fix.probability:.6g}",
            f"{fix.first_order:+.3g}",
            "may jump" if fix.jumps else "",
        ]
        for fix in found.fixes.single[:most]
    ]
    if not rows:
        return ["", f"What to fix first: no single kind of wrong report changes P. {perfect}"]
    header = ["true", "bin", "reported", "rate", "P if corrected", "to first order", ""]
    return [
        "",
        f"What to fix first: P if one kind of wrong report were correct instead. {perfect}",
        *aligned(header, rows),
    ]


def _column_lines(found: Explanation, result: ExplainResult, deviation: str) -> list[str]:
    columns, most = found.columns, int(result.settings["moves"])
    if not len(columns.bins):
        return ["", "Where to label more: no column with data has an influence to first order."]
    rows = [
        [
            *_place(int(columns.columns[k]), int(columns.bins[k]), result),
            str(int(columns.items[k])),
            f"{100 * columns.share[k]:.3g} %",
            f"{columns.swing[k]:.3g} ({label_text(result.labels[columns.cell[k]])})",
        ]
        for k in range(min(most, len(columns.bins)))
    ]
    level = level_text(float(result.settings["level"]))
    header = ["true", "bin", "items", "share of variance", f"P over the {level} interval of a cell"]
    return ["", f"Where to label more: {deviation}", *aligned(header, rows)]


def _move_lines(found: Explanation, result: ExplainResult) -> list[str]:
    if not found.moves:
        return ["", "What it hangs on: P does not change with the matrices, to first order."]
    rows = [
        [
            *_place(move.true, move.bin, result),
            f"{label_text(result.labels[move.source])} -> {label_text(result.labels[move.target])}",
            f"{move.slope:+.4g}" + (", may jump" if move.jumps else ""),
            f"{move.available:.4g}",
            f"{move.returning:.4g}",
        ]
        for move in found.moves
    ]
    header = ["true", "bin", "reports moved", "dP per unit", "rate from", "rate to"]
    return ["", "What it hangs on: dP per unit of mass moved within a column", *aligned(header, rows)]


def _place(true: int, at: int, result: ExplainResult) -> tuple[str, str]:
    return label_text(result.labels[true]), result.bins[at]
