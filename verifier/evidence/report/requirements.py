"""The section of one requirement: how likely it is met, how sure that is, what would decide it."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from verifier.analysis.channel_test import channel_test, detector_text
from verifier.analysis.intervals.tiers import BoundsBasis
from verifier.base.arrays import grouped
from verifier.base.numbers import error_text, exact_or_number, interval_text, level_text, number_text, rounded
from verifier.base.words import counted, some_of
from verifier.checking.verdicts import Verdict
from verifier.evidence.documents import Document
from verifier.evidence.report.subjects import Subject
from verifier.questions.require.require_result import Answer
from verifier.study.points import Point, Uncertainty
from verifier.study.records import SettingsRecord
from verifier.telling.blocks import Block, Cell, Figure, Fold, Paragraph, Section, Table, facts, name_text
from verifier.telling.failing import cause_lines, failing_blocks
from verifier.telling.grounds import (
    asked_text,
    free_text,
    marked_verdict,
    needed_text,
    reason_text,
    scenario_text,
    sentence,
    tipping_sentences,
    vacuity_text,
    why,
)
from verifier.telling.pictures import Line, plot, ruler
from verifier.telling.questions import answer_blocks, answer_text, improving_blocks, improving_sentence
from verifier.telling.run import probability_text
from verifier.telling.run_summary import farthest, says_what_decides, unplanned

MOST_OPEN = 20
"""Scenarios up to which their table is open."""


def requirement_section(subject: Subject, heading: str) -> Section:
    """Everything that the documents say of one requirement."""
    blocks: list[Block] = [
        Paragraph(verdict_sentence(subject)),
        Paragraph(subject.result.question, "formula"),
        *([Figure(_ruler(subject), _ruler_caption(subject))] if subject.result.asked.startswith("P") else []),
        _numbers(subject),
        *(Paragraph(text, "note") for text in _notes(subject)),
        *_scenario_blocks(subject),
    ]
    return Section(heading, tuple(blocks), tuple(explained_sections(subject)), subject.id, subject.told)


def verdict_sentence(subject: Subject, whose: str = "") -> str:
    """The verdict and what it rests on, in words; `whose` follows the requirement's name."""
    name, asked, worst = name_text(subject.result.name) + whose, subject.result.target, subject.result.worst_point
    if asked is None:
        return f"{name} has no target. {_range_sentence(subject)}"
    result, wanted = subject.result, asked_text(asked)
    must = f"have a probability of {wanted}" if result.is_plain else f"have {result.asked} {result.with_unit(wanted)}"
    number = result.with_unit(probability_text(worst, asked.probability))
    where = f"in the worst of {len(result.points)} scenarios ({scenario_text(worst)})"
    where = where if len(result.points) > 1 else f"in the scenario {scenario_text(worst)}"
    measured = f"{name} must {must}. With the rates as measured it is {number} {where}"
    bounds = held_against(subject.settings, worst)
    reason = why(worst) if subject.result.verdict in (Verdict.INCONCLUSIVE, Verdict.VACUOUS) else ""
    if worst.decided_free is not None:
        told = free_text(worst.decided_free)
        return f"{measured}; {told}{_on_condition(subject)}{f'. Vacuous: {reason}' if reason else ''}."
    if worst.basis == "any_dependence":
        return f"{measured}; that holds whatever the detector predicts{f'. Vacuous: {reason}' if reason else ''}."
    if reason:
        return f"{measured}. It is {subject.result.verdict.value}: {reason}."
    if bounds is None:
        return f"{measured}{_on_condition(subject)}."
    lower, upper, decided, open_still = bounds
    if subject.result.verdict is Verdict.INCONCLUSIVE:
        return f"{measured}; {open_still} {interval_text(lower, upper)}, which does not decide it."
    from_below = (subject.result.verdict is Verdict.SATISFIED) != asked.is_upper
    end, side = (lower, "at least") if from_below else (upper, "at most")
    shown = rounded(end, up=not from_below, target=asked.probability)
    return f"{measured}; {decided} {side} {shown}{_on_condition(subject)}."


def _on_condition(subject: Subject) -> str:
    """The condition of a verdict, to end a sentence with."""
    return "" if subject.result.condition is None else f", {subject.result.condition}"


def _notes(subject: Subject) -> Iterator[str]:
    """What is vacuous, what would decide, and how wrong the assumptions may be before the verdict falls."""
    vacuous = (point for point in subject.result.points if point.vacuity)
    for text, scenarios in grouped((vacuity_text(point), scenario_text(point)) for point in vacuous).items():
        yield f"Vacuous in {some_of(scenarios)}: {text}."
    yield from deciding_sentences(subject)
    yield from (f"In the worst scenario: {text}." for text in tipping_sentences(subject.result.tipping_points))


def _range_sentence(subject: Subject) -> str:
    result = subject.result
    values = sorted(result.points, key=lambda point: point.probability)
    low, high = values[0], values[-1]
    least, most = (result.with_unit(probability_text(point)) for point in (low, high))
    weighed = (
        result.with_unit(exact_or_number(mean.probability, mean.exact))
        + ("" if mean.interval is None else f" (interval {interval_text(mean.interval.lower, mean.interval.upper)})")
        for mean in result.means
    )
    mean = f" Over the profile it is {', '.join(weighed)}." if result.means else ""
    if low.probability == high.probability:
        return f"{result.asked} is {least} in {counted(len(values), 'scenario')}.{mean}"
    return f"{result.asked} goes from {least} ({scenario_text(low)}) to {most} ({scenario_text(high)}).{mean}"


def held_against(settings: SettingsRecord, point: Point) -> tuple[float, float, str, str] | None:
    """The bounds that were compared with the target, and how a sentence names them where they decide and where not.

    None: P itself was compared with it.
    """
    sure, kind = point.uncertainty, settings.verdict_from
    if sure is None or kind == "point":
        return None
    lower, upper = point.bounds(kind)
    level = level_text(sure.level)
    if kind == "interval" or sure.confidence_bounds is None:
        name = f"the {level} {sure.interval.kind} interval, with what its draws leave open,"
        return lower, upper, f"by {name} it is", f"{name} is"
    return lower, upper, f"with {level} confidence it is", f"the {settings.bounds_name} are"


def deciding_sentences(subject: Subject) -> Iterator[str]:
    """What would decide an inconclusive requirement."""
    needed = subject.result.additional_data
    if subject.result.verdict is not Verdict.INCONCLUSIVE or reason_text(subject.result.worst_point.reason):
        return
    if needed is None:
        if says_what_decides(subject.settings):
            yield f"No amount of further data is known to decide it: {unplanned(subject.settings)}."
        return
    would = f"About {needed_text(needed)} would decide it, if the rates stay what they are"
    if needed.drives is None:
        would += ": " + ", ".join(
            f"{column.further} with true {name_text(column.true)} in {name_text(column.bin)} (now {column.items})"
            for column in needed.columns
        )
    decided = interval_text(needed.lower, needed.upper)
    yield f"{would}. The confidence bounds would be {decided}, and the requirement {needed.verdict.value}."


def _numbers(subject: Subject) -> Table:
    worst, rests_on = subject.result.worst_point, subject.settings.bounds
    widest, free = farthest(worst), worst.dependence_free
    margin = f"{error_text(widest)} at most, by solving and rounding"
    margin = margin if widest else "nothing: decided on the graph of these matrices"
    return facts(
        "Numbers of the worst scenario",
        ("Target", subject.result.asked_text),
        (subject.result.asked, subject.result.with_unit(probability_text(worst, subject.result.threshold))),
        ("Numerically off by", margin if worst.exact is None else "nothing: exact"),
        ("Second engine", number_text(worst.second_engine)),
        *([] if worst.uncertainty is None or rests_on is None else _uncertainty_facts(worst.uncertainty, rests_on)),
        None if free is None else ("However reports depend on each other", free_text(free)),
        ("Verdict", marked_verdict(worst)),
        None if worst.basis is None else ("It rests on", _basis_text(subject)),
        ("Planner", name_text(subject.result.planner)),
        ("Worst scenario", scenario_text(worst)),
        _strategies(subject),
        ("From", subject.document.name),
    )


def _uncertainty_facts(sure: Uncertainty, rests_on: BoundsBasis) -> Iterator[tuple[str, str]]:
    interval, bounds = sure.interval, sure.confidence_bounds
    told = f"{interval_text(interval.lower, interval.upper)} ({interval.draws} draws)"
    yield f"{level_text(sure.level)} {interval.kind} interval", told
    if bounds is None:
        yield rests_on.name, "none: they are known for probabilities of formulas"
        return
    wider = " (known to be wider than needed)" if bounds.conservative else ""
    yield rests_on.name, interval_text(bounds.lower, bounds.upper) + wider
    yield "Attained by single matrices", interval_text(bounds.attained_lower, bounds.attained_upper)
    yield "The bounds assume", rests_on.condition


def _basis_text(subject: Subject) -> str:
    """What the verdict of the worst scenario rests on, for people."""
    basis = subject.result.worst_point.basis
    if subject.result.worst_point.decided_free is not None:
        return "the rates of single reports only: it holds however reports depend on each other"
    if basis == "any_dependence":
        return "no assumption about the detector: it holds whatever is predicted"
    channel = channel_test(subject.channel.classes, subject.result.worst_point.draws)
    known = {"contradicted": "which these data contradict", "untested": "which these data do not test"}
    said = known.get(channel.test, "which these data do not contradict")
    return f"{detector_text(channel.contexts)}, {said}{'; assumed by name' if basis == 'assumed' else ''}"


def _strategies(subject: Subject) -> tuple[str, str] | None:
    if subject.result.strategies is None:
        return None
    ends = subject.result.strategies[subject.result.worst]
    return "Over every winning strategy", interval_text(ends.smallest, ends.largest)


def _ruler(subject: Subject) -> str:
    worst, sure, target = subject.result.worst_point, subject.result.worst_point.uncertainty, subject.result.threshold
    interval, bounds = (
        None if ends is None else (ends.lower, ends.upper)
        for ends in ((None, None) if sure is None else (sure.interval, sure.confidence_bounds))
    )
    label = f"P {number_text(worst.probability)}, target {subject.result.target_text}"
    return ruler(worst.probability, interval, bounds, None if target is None else float(target), label)


def _ruler_caption(subject: Subject) -> str:
    parts = ["Dot: P."]
    if subject.result.worst_point.uncertainty is not None:
        parts.append("Dark bar: interval. Light bar: confidence bounds.")
    if subject.result.target is not None:
        parts.append("Dashed: target.")
    return " ".join(parts)


def _scenario_blocks(subject: Subject) -> Iterator[Block]:
    """Every scenario as a row, and P along what differs between them."""
    points = subject.result.points
    if len(points) == 1:
        return
    if (picture := _course(subject)) is not None:
        yield picture
    table = scenario_table(subject)
    yield table if len(points) <= MOST_OPEN else Fold(f"All {len(points)} scenarios", (table,))


def scenario_table(subject: Subject) -> Table:
    """One row per scenario."""
    sure = next((point.uncertainty for point in subject.result.points if point.uncertainty is not None), None)
    header = ["scenario", f"{subject.result.asked} in s" if subject.result.unit else subject.result.asked]
    if sure is not None:
        header += [f"{level_text(sure.level)} {sure.interval.kind}", subject.settings.bounds_name]
    rows = []
    for point in subject.result.points:
        row = [Cell(scenario_text(point)), Cell(probability_text(point, subject.result.threshold), point.probability)]
        if sure is not None:
            row += uncertainty_cells(point)
        rows.append((*row, Cell(marked_verdict(point), verdict=point.verdict.value)))
    return Table("Scenarios", (*header, "verdict"), tuple(rows), sortable=True)


def uncertainty_cells(point: Point) -> list[Cell]:
    """Interval and confidence bounds of a point, empty where it has none."""
    sure = point.uncertainty
    if sure is None:
        return [Cell("none"), Cell("none")]
    return [
        Cell("none") if ends is None else Cell(interval_text(ends.lower, ends.upper), ends.lower)
        for ends in (sure.interval, sure.confidence_bounds)
    ]


def _course(subject: Subject) -> Figure | None:
    """P against the first thing that differs, one line for each environment and combination of the others."""
    axis = _differing(subject.result.points)
    if axis is None or not subject.result.asked.startswith("P"):
        return None
    name, value_of, others = axis
    lines: dict[str, list[tuple[float, Point]]] = {}
    for point in subject.result.points:
        label = ", ".join([name_text(point.environment), *(f"{key}={get(point)}" for key, get in others)])
        lines.setdefault(label, []).append((value_of(point), point))
    drawn = [_line(label, sorted(points, key=lambda pair: pair[0])) for label, points in lines.items()]
    if max(len(line.points) for line in drawn) < 2:
        return None
    title = f"P of {name_text(subject.result.name)} against {name}"
    target = subject.result.threshold
    picture = plot(drawn, (name, "P"), title, None if target is None else float(target))
    return Figure(picture, f"{title}; bands: interval where there is one. The numbers are in the table of scenarios.")


def _differing(points: Sequence[Point]) -> Any:
    """What differs between points with several numbers: (name, getter, other names with getters)."""
    kinds = [("initial", name) for name in points[0].initial] + [("constants", name) for name in points[0].constants]
    values = {key: {_value(point, *key) for point in points} for key in kinds}
    varying = [
        (name_text(name), lambda point, kind=kind, name=name: _value(point, kind, name))
        for (kind, name), found in values.items()
        if len(found) > 1
    ]
    return (*varying[0], varying[1:]) if varying and not any(None in found for found in values.values()) else None


def _value(point: Point, kind: str, name: str) -> float | None:
    """A value as a number, also where it is a fraction in words; None where the point has none or it is no number."""
    try:
        return float(Fraction(getattr(point, kind)[name]))
    except (KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError):
        return None


def _line(label: str, points: list[tuple[float, Point]]) -> Line:
    sure = [(x, point.uncertainty.interval) for x, point in points if point.uncertainty is not None]
    band = [(x, interval.lower, interval.upper) for x, interval in sure]
    return Line(label, [(x, point.probability) for x, point in points], band if len(band) == len(points) else ())


def answers_section(pairs: Sequence[tuple[Document, Answer]]) -> Iterator[Section]:
    """What recall requirements ask for that no run among the documents verifies."""
    if not pairs:
        return
    blocks: list[Block] = []
    for document, answer in pairs:
        asked = document.result.requirement
        blocks.append(Paragraph(f"{name_text(asked.name)}: {asked.question}", "lead"))
        blocks += answer_blocks(document.result, answer, document.name)
    yield Section("What recall is asked for", tuple(blocks), id="asked")


def explained_sections(subject: Subject) -> Iterator[Section]:
    """How it fails, once per explanation, and what to improve; none where nothing of that is known."""
    for document, explained in subject.explained:
        more = f" ({document.name})" if len(subject.explained) > 1 else ""
        yield Section(f"How it fails{more}", tuple(failing_blocks(document.result, explained)), listed=False)
    helping: list[Block] = []
    for document, explained in subject.explained:
        helping += improving_blocks(document.result, explained)
    for document, answer in subject.answers:
        helping += answer_blocks(document.result, answer, document.name)
    if helping:
        yield Section("What to improve", tuple(helping), listed=False)


def explained_sentences(subject: Subject) -> Iterator[str]:
    """What it is lost by first of all, and what would help most, a sentence for each as far as they are known."""
    for document, explained in subject.explained:
        first = next(cause_lines(document.result, explained), None)
        if first is not None:
            yield f"{first}."
            break
    told = [improving_sentence(document.result, explained) for document, explained in subject.explained[:1]]
    told += [f"{sentence(answer_text(document.result, answer))}." for document, answer in subject.answers[:1]]
    helping = " ".join(text for text in told if text is not None)
    if helping:
        yield helping
