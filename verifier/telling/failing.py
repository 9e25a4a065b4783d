"""How requirements fail, told once: causes, violating paths, state maps, and what a world that decides does."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from verifier.analysis.counterexamples.explanation import PatternRecord, RunRecord, StepRecord
from verifier.analysis.counterexamples.patterns import CauseRecord, CorrectionRecord
from verifier.analysis.sensitivity.state_map import MapRecord
from verifier.base.numbers import fixed, number_text, significant
from verifier.base.words import counted, listed, percent
from verifier.questions.explain.explain_result import (
    DetectionErrors,
    Explained,
    ExplainResult,
    Frame,
)
from verifier.systems.channel import FRAME
from verifier.telling.blocks import Block, Cell, Figure, Fold, Listing, Paragraph, Row, Table, name_text
from verifier.telling.grounds import decided_lines, sentence, state_text, world_aim
from verifier.telling.pictures import Line, chart, plot

LARGEST_DENOMINATOR = 10**6
MOST_FRAMES = 20
MOST_MAP_ROWS = 400
"""Cells of a state map up to which its numbers are also given as a table."""
MOST_REPORTS = 6
"""Of what the planner may have been told in a step, so much is named."""
HOW_CAUSES_COUNT = (
    "A detection error counts where, with the correct one in its place, a violation was less probable (on average "
    "of the measured detector and a perfect one from there on). Each violating path counts once, for all detection "
    "errors that counted on it together."
)

_FACT = re.compile(
    r"(?:frame (?P<frame>\d+): )?(?:(?P<atom>sees|count|report)\((?P<name>[^,()]+)"
    r"(?:, within = (?P<within>[^()]+))?\)(?: = (?P<value>.+))?|(?P<plain>.+))",
    re.DOTALL,
)
"""What a planner may be told, as `verifier.systems.observation` writes it."""


def failing_blocks(result: ExplainResult, explained: Explained) -> Iterator[Block]:
    """How a requirement fails: its causes, the patterns of violating paths in words, and the state map."""
    yield from world_blocks(explained)
    yield from cause_blocks(result, explained)
    yield from pattern_blocks(result, explained)
    if explained.map is not None:
        yield from _map(explained, explained.map)


def world_blocks(explained: Explained) -> Iterator[Block]:
    """What the world does in the scenario explained; nothing where it decides nothing."""
    decisions = explained.world
    if decisions is None:
        return
    if not decisions.decided:
        yield Paragraph("The world decides, and nothing that it decides matters here.")
        return
    yield Paragraph(
        f"The world decides. How it {world_aim(explained.asked)} most often ({explained.asked} = "
        f"{number_text(decisions.probability)}; it decides in {counted(decisions.states, 'state')}):"
    )
    yield Listing(tuple(decided_lines(decisions)))
    end = "most" if explained.asked.endswith("min") else "least"
    yield Paragraph(
        "All that follows is about the chain that is left while the world does so. With other matrices, or with "
        f"correct reports, it might do something else: then P is at {end} what is said here.",
        "note",
    )


def cause_blocks(result: ExplainResult, explained: Explained) -> Iterator[Block]:
    """The violation and its causes, with the frames in which detection errors really happened."""
    yield Paragraph(_violation_text(explained))
    lines = tuple(f"{line}." for line in cause_lines(result, explained))
    if not lines:
        return
    yield Listing(lines)
    yield Paragraph(HOW_CAUSES_COUNT, "note")
    if best := _correction_text(result, explained):
        yield Paragraph(best)
    for kind in explained.violation.detection_errors:
        if kind.in_record:
            summary = f"Frames with {_report_text(result, kind)}: {kind.in_record} in the record"
            yield Fold(summary, (_frames(kind.frames or ()),))


def _violation_text(explained: Explained) -> str:
    """How probable the violation is, as a sentence."""
    violation = explained.violation
    verb = "holds" if violation.satisfies_the_formula else "fails"
    if not violation.patterns:
        return f"There is no run on which the formula {verb}: with these matrices none has a positive probability."
    if violation.is_certain and explained.point.whatever_predicted is not None:
        return f"The formula {verb} whatever the detector reports."
    if violation.is_certain:
        return f"The formula {verb} with probability 1, with the measured matrices and with perfect perception."
    return f"The formula {verb} with probability {number_text(violation.probability)}."


def cause_lines(result: ExplainResult, explained: Explained) -> Iterator[str]:
    """One line for each cause, the most probable first; their shares add up to the whole violation."""
    violation = explained.violation
    for cause in violation.causes:
        yield f"Cause of {percent(cause.share)} of the violation: {_cause_text(result, explained, cause)}"
    if violation.rest > 0:
        share = percent(violation.rest / violation.probability)
        yield f"Cause of {share} of the violation: other sets of detection errors, each less probable"


def _cause_text(result: ExplainResult, explained: Explained, cause: CauseRecord) -> str:
    kinds = _kinds(explained, cause)
    if not kinds and not cause.others:
        perfect = number_text(explained.perfect_perception)
        return (
            "no detection error; the planner and the dynamics violate the requirement (with perfect perception P "
            f"would be {perfect})"
        )
    told = [_report_text(result, kind) for kind in kinds] + ["further detection errors"] * cause.others
    corrected = number_text(cause.corrected)
    if len(told) == 1:
        return f"{told[0]} (if correct, P would be {corrected})"
    alone = listed([number_text(kind.corrected) for kind in kinds], "or")
    single = f"; if only {'the first' if len(kinds) == 1 else 'one of them'}, {alone}" if kinds else ""
    return f"{listed(told)} together (if all were correct, P would be {corrected}{single})"


def _correction_text(result: ExplainResult, explained: Explained) -> str | None:
    """Which correction of one kind, of two, and so on gains most; None where more than one kind gains no more."""
    best = explained.violation.corrections
    told = [
        f"{'one kind' if len(one.detection_errors) == 1 else counted(len(one.detection_errors), 'kind')}, "
        f"{listed([_report_text(result, kind) for kind in _kinds(explained, one)])}: P would be "
        f"{number_text(one.corrected)}"
        for one in best
    ]
    return f"Corrections that gain most. Of {'; of '.join(told)}." if len(best) > 1 else None


def _kinds(explained: Explained, named: CauseRecord | CorrectionRecord) -> list[DetectionErrors]:
    return [explained.violation.detection_errors[number] for number in named.detection_errors]


def _report_text(result: ExplainResult, kind: DetectionErrors, reported: str = "") -> str:
    """A type of detection error: `ped in [0, 10) m reported as empty`."""
    where = name_text(result.bins[kind.bin])
    return f"{name_text(kind.true)} in {where} reported as {reported or name_text(kind.reported)}"


def _frames(frames: Sequence[Frame]) -> Table:
    header = ("sequence", "frame", "distance", "annotation", "detection")
    rows = tuple(
        (
            name_text(frame.sequence),
            name_text(frame.frame),
            "not known" if frame.distance_m is None else f"{fixed(frame.distance_m, 1)} m",
            f"{name_text(frame.file)}:{frame.line}" if frame.file else "none",
            f"{name_text(frame.report_file)}:{frame.report_line}" if frame.report_file else "none",
        )
        for frame in frames[:MOST_FRAMES]
    )
    more = f"; {len(frames) - MOST_FRAMES} more in the document" if len(frames) > MOST_FRAMES else ""
    return Table(f"Frames{more}", header, rows)


def pattern_blocks(result: ExplainResult, explained: Explained) -> Iterator[Block]:
    """The patterns of violating paths, each with its runs step by step."""
    violation = explained.violation
    if not violation.patterns:
        return
    yield Paragraph(f"{_patterns_text(explained)}.")
    for number, pattern in enumerate(violation.patterns, start=1):
        yield Paragraph(f"{number}. {sentence(_pattern_text(result, explained, pattern))}.")
        for run in pattern.members:
            alone = pattern.complete and len(pattern.members) == 1
            exact = run.exact
            short = exact is not None and 1 < exact.denominator <= LARGEST_DENOMINATOR
            probability = f"{number_text(run.probability)}{f' = {exact}' if short else ''}"
            start = f"with probability {probability}, from {state_text(run.initial, result.channel.contexts)}"
            yield Paragraph(f"{'The only run' if alone else 'A run'} of it, {start}:")
            yield Listing(tuple(_run_items(result, explained, run)))
    if any(run.replayed != "whole" for pattern in violation.patterns for run in pattern.members):
        yield Paragraph(
            "Some paths are too long to evaluate the formula on them again; their steps were replayed.", "note"
        )


def _patterns_text(explained: Explained) -> str:
    """How many patterns are listed, and what share of the violation they are."""
    violation = explained.violation
    many = counted(len(violation.patterns), "pattern")
    if violation.complete:
        return f"Violating paths, grouped by detection errors: {many}"
    which = "most probable" if violation.ranked else "probable (others may be more so)"
    return (
        f"Violating paths, grouped by detection errors: the {which} {many}, {percent(violation.covered or 0.0)} of "
        "the violation"
    )


def _pattern_text(result: ExplainResult, explained: Explained, pattern: PatternRecord) -> str:
    """A pattern with its total probability: what counted on its steps, in order."""
    kinds = explained.violation.detection_errors
    steps = [_counted_text(result, [[kinds[k] for k in reports] for reports in step]) for step in pattern.steps]
    told = ", then ".join(steps) or "no detection error counted"
    return f"probability {number_text(pattern.probability)}, {percent(pattern.share)} of it: {told}"


def _counted_text(result: ExplainResult, alternatives: Sequence[Sequence[DetectionErrors]]) -> str:
    """What may have counted on a step; one object reported in one of several wrong ways is told at once."""
    single = [reports[0] for reports in alternatives if len(reports) == 1]
    if len({(kind.bin, kind.true) for kind in single}) == 1 and len(single) == len(alternatives):
        return _report_text(result, single[0], listed([name_text(kind.reported) for kind in single], "or"))
    return " or ".join(
        listed([_report_text(result, kind) for kind in reports]) or "no detection error" for reports in alternatives
    )


def _run_items(result: ExplainResult, explained: Explained, run: RunRecord) -> Iterator[str]:
    if run.irrevocable_after == 0:
        yield "The violation is unavoidable from the start."
    at, unit = 0, "frame" if FRAME in run.initial else "step"
    for steps in _stretches(run):
        first, at = at + 1, at + len(steps)
        when = f"{sentence(unit)} {at}" if len(steps) == 1 else f"{sentence(unit)}s {first} to {at}"
        lost = " From here the violation is unavoidable" if at == run.irrevocable_after else ""
        likely = f"; the {unit}s below are the most likely ones" if lost and at < len(run.steps) else ""
        told = _stretch_text(result, explained, steps, unit)
        after = state_text(steps[-1].after, result.channel.contexts)
        yield f"{when}: {told} Then {after}.{lost}{likely}{'.' if lost else ''}"


def _stretches(run: RunRecord) -> Iterator[list[StepRecord]]:
    """Steps in which the same was there and was reported, as one; a step on which nothing hung is like any other."""
    for _, group in itertools.groupby(enumerate(run.steps), key=lambda pair: _alike(run, *pair)):
        yield [step for _, step in group]


def _alike(run: RunRecord, at: int, step: StepRecord) -> tuple[object, ...]:
    what = (step.there, step.reported) if step.matters else None
    return at >= run.irrevocable_after, step.matters, what


def _stretch_text(result: ExplainResult, explained: Explained, steps: Sequence[StepRecord], unit: str) -> str:
    first = steps[0]
    if not first.matters:
        return "what is reported makes no difference." if first.there else "the detector is not asked."
    there = Counter(f"{name_text(thing.label)} in {name_text(result.bins[thing.bin])}" for thing in first.there)
    things = [thing if times == 1 else f"{thing} ({times} times)" for thing, times in there.items()]
    likeliest = sorted(first.reported, key=lambda report: -report.probability)[:MOST_REPORTS]
    told = [_classes_text(explained, report.classes) for report in first.reported if report in likeliest]
    others = len(first.reported) - len(told)
    told += [f"{others} less probable combinations"] if others else []
    combined = "; or ".join(told) if any(" and " in name for name in told) else listed(told, "or")
    rate = number_text(sum(report.probability for report in first.reported))
    often = f" in each {unit}" if len(steps) > 1 else ""
    again = _again_text(result, explained, first)
    seen = f"{listed(things) or 'nothing'} {'are' if there.total() > 1 else 'is'} there"
    return f"{seen}, and {combined} is reported{again} (probability {rate}{often})."


def _again_text(result: ExplainResult, explained: Explained, step: StepRecord) -> str:
    """How often in a row the only object is missed, where the detector remembers runs of errors; else nothing."""
    run = re.search(r"after wrong\*(\d+)$", result.bins[step.there[0].bin]) if len(step.there) == 1 else None
    if run is None or step.there[0].label not in explained.asks_about:
        return ""
    if any(step.there[0].label in report.classes for report in step.reported):
        return ""
    number = int(run[1]) + 1
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    least = "at least " if result.channel.contexts == f"run:{run[1]}" else ""
    return f", for {least}the {number}{ending} time in a row"


def _classes_text(explained: Explained, classes: Sequence[str]) -> str:
    """What the planner was told of the classes that it asks about."""
    told = [text for fact in classes if (text := _fact_text(fact, classes, explained.asks_about))]
    if told:
        return listed(told)
    plain = all(name == _fact(name)["plain"] for name in explained.asks_about)
    return f"no {listed([name_text(name) for name in explained.asks_about], 'or')}" if plain else "nothing"


def _fact(fact: str) -> re.Match[str]:
    match = _FACT.fullmatch(fact)
    assert match is not None
    return match


def _fact_text(fact: str, told: Sequence[str], asked: Sequence[str]) -> str:
    """What the planner was told, in words; nothing where another fact says more."""
    parts, what = _fact(fact), fact.rpartition(" = ")[0]
    alike = [name.removeprefix(f"{what} = ") for name in asked if name.startswith(f"{what} = ")]
    name, near = name_text(parts["plain"] or parts["name"]), f" within {parts['within']} m" if parts["within"] else ""
    frame = f" in frame {parts['frame']}" if parts["frame"] else ""
    value = parts["value"]
    if parts["atom"] == "count" and value and value.isdecimal():
        often = {"1": "once", "2": "twice"}.get(value, f"{value} times")
        # Counting may end at the largest number.
        more = "" if any(name.isdecimal() and int(name) > int(value) for name in alike) else " or more often"
        return f"{name} {often}{more}{near}{frame}"
    if value == "*":
        if any(name != fact and name.startswith(f"{what} = ") for name in told):
            return ""
        return f"{name} as another class{near}{frame}" if len(alike) > 1 else f"a report of {name}{near}{frame}"
    return f"{name}{f' as {name_text(value)}' if value else ''}{near}{frame}"


def _map(explained: Explained, record: MapRecord) -> Iterator[Block]:
    names = [name_text(name) for name in record.variables]
    worst = "largest" if record.worst_is_largest else "smallest"
    title = f"P for runs that start in a state, by {listed(names)}, in {name_text(explained.point.environment)}"
    table = np.array(record.probability, dtype=float)  # None becomes NaN
    if len(names) == 1:
        points = [(float(x), float(p)) for x, p in zip(record.values[0], table, strict=True) if not np.isnan(p)]
        yield Figure(plot([Line("P", points)], (names[0], "P"), title), f"{title}. Of several states the {worst} P.")
        return
    across, up = record.values
    picture = chart(table, (across, up), (names[0], names[1]), title, worst_is_largest=record.worst_is_largest)
    yield Figure(picture, f"{title}. Grey: no run comes here. Of several states the {worst} P is shown.")
    if table.size <= MOST_MAP_ROWS:
        yield Fold("The map as a table", (_map_table(record, names, table.tolist()),), printed=False)


def _map_table(record: MapRecord, names: Sequence[str], table: Sequence[Sequence[float]]) -> Table:
    header = (f"{names[0]} \\ {names[1]}", *map(str, record.values[1]))
    rows: tuple[Row, ...] = tuple(
        (str(value), *(_map_cell(record, p) for p in row)) for value, row in zip(record.values[0], table, strict=True)
    )
    return Table("P by state; the darker, the worse", header, rows)


def _map_cell(record: MapRecord, p: float) -> Cell:
    return Cell("none") if np.isnan(p) else Cell(significant(p, 4), p, heat=p if record.worst_is_largest else 1 - p)
