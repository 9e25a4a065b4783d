"""The result of a run as a person reads it: its table, and its gates for continuous integration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from verifier.base.errors import one_line
from verifier.base.numbers import (
    decimal_text,
    error_text,
    exact_or_number,
    interval_text,
    level_text,
    number_text,
    signed,
)
from verifier.base.words import bounds_text, counted
from verifier.checking.verdicts import Verdict
from verifier.study.points import Point, ProfileMean, WorldDecisions
from verifier.study.records import Drop, DropGate, Floor, Gates, Held
from verifier.study.results import RequirementResult, RunResult
from verifier.telling.blocks import Block, Cell, Paragraph, Row, Section, Table, name_text
from verifier.telling.grounds import chance_text, decided_lines, told_verdict, world_aim
from verifier.telling.run_summary import decision_lines, evidence_lines, farthest, summary_lines, tipping_lines
from verifier.telling.terminal import aligned, blocks_lines, text_of

if TYPE_CHECKING:
    from verifier.questions.explain.explain_result import ExplainResult

NOT_KNOWN = "-"
"""In place of confidence bounds, where there are none."""
SWITCHES = ("canonical", "endless", "exact", "strict", "assume_memoryless", "assume_contexts")


def run_table(result: RunResult, *, points: bool = False) -> str:
    """The output of `verify run`: a table of the worst scenario of each requirement, or with `points` of every one,
    its cells broken where its lines would be wider than `columns`; then what follows from it, and the gates.

    A requirement without a target has no worst scenario: its least and its greatest number are shown, or the mean
    over the profile where that is asked for.
    """
    planners = list(dict.fromkeys(requirement.planner for requirement in result.requirements))
    lines = [one_line(result.title), *choices_made(result, planners), ""]
    plain = all(requirement.asked == "P" for requirement in result.requirements)
    header = [
        "requirement",
        "target",
        "P" if plain else "value",
        *_bounds_header(result),
        "scenario" if points else "worst scenario",
    ]
    header.append("verdict")
    rows = [
        [
            *([requirement.planner] if len(planners) > 1 else []),
            requirement.name,
            requirement.target_text if plain else requirement.asked_text,
            *cells,
        ]
        for requirement in result.requirements
        for cells in _cells(requirement, points)
    ]
    header = [*(["planner"] if len(planners) > 1 else []), *header]
    lines += aligned(header, rows)
    lines += _strategy_lines(result)
    lines += decision_lines(result)
    lines += evidence_lines(result, [(asked, asked.worst_point) for asked in result.requirements])
    lines += tipping_lines(result)
    lines += ["", *summary_lines(result)]
    lines += [] if result.gates is None else ["", *blocks_lines(_gate_blocks(result.gates, result))]
    return text_of(lines)


def _cells(requirement: RequirementResult, points: bool) -> list[list[str]]:
    """P, bound, scenario and verdict of each row of a requirement."""
    if requirement.means and not points:
        return [_mean_cells(requirement, mean) for mean in requirement.means]
    if points:
        chosen = [("", point, told_verdict(point)) for point in requirement.points]
    elif requirement.target is None and probability_text(requirement.best_point) != probability_text(
        requirement.worst_point
    ):
        chosen = [
            ("min: ", requirement.worst_point, requirement.verdict_text),
            ("max: ", requirement.best_point, requirement.verdict_text),
        ]
    else:
        chosen = [("", requirement.worst_point, requirement.verdict_text)]
    return [
        [
            requirement.with_unit(probability_text(point, requirement.threshold)),
            *_bounds(point),
            f"{which}{point.scenario}",
            one_line(verdict) + mark,
        ]
        for which, point, verdict in chosen
        for mark in [" (vacuous)" if point.vacuity and not verdict.startswith(Verdict.VACUOUS.value) else ""]
    ]


def _bounds_header(result: RunResult) -> list[str]:
    confidence = result.settings.confidence
    if confidence is None:
        return ["numerical error"]
    level = level_text(confidence.level)
    bounds = "bounds of the rate box" if confidence.bounds.box is not None else f"{level} confidence bounds"
    return [f"{level} {confidence.interval} interval", bounds]


def _bounds(point: Point) -> list[str]:
    uncertainty = point.uncertainty
    if uncertainty is None:
        return [bound_text(point)]
    both = (uncertainty.interval, uncertainty.confidence_bounds)
    return [NOT_KNOWN if ends is None else interval_text(ends.lower, ends.upper) for ends in both]


def _mean_cells(requirement: RequirementResult, mean: ProfileMean) -> list[str]:
    """The cells of a mean over the profile."""
    off = max(mean.upper - mean.probability, mean.probability - mean.lower) if mean.lower < mean.upper else 0.0
    bounds = ["exact" if mean.exact is not None else f"+- {error_text(off)}"]
    if mean.interval is not None:
        bounds = [interval_text(mean.interval.lower, mean.interval.upper), NOT_KNOWN]
    constants = "".join(f" {name}={value}" for name, value in mean.constants.items())
    number = requirement.with_unit(
        exact_or_number(mean.probability, mean.exact, least=6 if mean.interval is None else 3)
    )
    return [number, *bounds, f"profile{constants}", requirement.verdict_text]


def choices_made(result: RunResult | ExplainResult, planners: Sequence[str]) -> list[str]:
    """The files that went in, and every choice that is not the default."""
    word = "planner" if len(planners) == 1 else "planners"
    lines = [f"{', '.join(one_line(file.name) for file in result.inputs)}; {word} {', '.join(planners)}"]
    settings = result.settings
    choices = [f"{name} = {value}" for name, value in settings.set_.items()]
    choices += [f"where {name} = {one_line(value)}" for name, value in settings.where.items()]
    choices += [f"initially {settings.initial}"] if settings.initial is not None else []
    choices += [name.replace("_", " ") for name in SWITCHES if getattr(settings, name)]
    choices += [f"score threshold {settings.score_threshold:g}"] if settings.score_threshold is not None else []
    choices += [f"empty columns: {settings.empty_columns}"] if settings.empty_columns != "error" else []
    choices += [f"false positives: {settings.false_positives}"] if settings.false_positives != "as_counted" else []
    if settings.memory is not None:
        beginning = f", beginning with {settings.initial_context}" if settings.initial_context != "start" else ""
        choices.append(f"memory {settings.memory}{beginning}")
        choices += [f"empty contexts: {settings.empty_contexts}"] if settings.empty_contexts != "backoff" else []
    decimals = settings.round_transitions
    choices += [f"transitions rounded to {decimals} decimals"] if decimals is not None else []
    if settings.confidence is not None and settings.verdict_from != "bounds":
        choices.append(f"verdicts from the {settings.verdict_from}")
    return [*lines, f"with {', '.join(choices)}"] if choices else lines


def probability_text(point: Point, target: Fraction | None = None) -> str:
    """A probability with three digits where it has an interval, else with six; more where they are needed to tell it
    from the target or from 1. As a fraction where that is exact and short.
    """
    return exact_or_number(point.probability, point.exact, target, 6 if point.uncertainty is None else 3)


def bound_text(point: Point) -> str:
    """How far the probability can be off numerically: `+- 3e-13`, `exact`, or not at all where the graph decides."""
    if point.exact is not None:
        return "exact"
    widest = farthest(point)
    return "exact for the measured matrix" if widest == 0 else f"+- {error_text(widest)}"


def _strategy_lines(result: RunResult) -> list[str]:
    lines: list[str] = []
    for requirement in result.requirements:
        if requirement.strategies is not None:
            ends = requirement.strategies[requirement.worst]
            lines.append(
                f"{requirement.name}, planner {requirement.planner}, {requirement.worst_point.scenario}: range of P "
                f"over all winning strategies: {bounds_text(ends.smallest, ends.largest)}"
            )
        if requirement.world is not None:
            lines += _world_lines(requirement, requirement.world)
    return ["", *lines] if lines else []


def _world_lines(requirement: RequirementResult, decisions: WorldDecisions) -> list[str]:
    """What the world decides to give a requirement its value, most visited states first."""
    place = f"{requirement.name}, planner {requirement.planner}, {requirement.worst_point.scenario}"
    if not decisions.decided:
        return [f"{place}: nothing the world decides matters"]
    return [
        f"{place}: how the world {world_aim(requirement.asked)} most often ({requirement.asked} = "
        f"{number_text(decisions.probability)}; it decides in {counted(decisions.states, 'state')}):",
        *(f"  {line}" for line in decided_lines(decisions)),
    ]


COUNTED = {"bounds": "confidence bounds", "interval": "ends of intervals", "point": "P itself"}
"""What a floor is held against."""


def _gate_blocks(gates: Gates, result: RunResult, document: str = "") -> Iterator[Block]:
    """What each gate asked for, whether it failed, and what became of every requirement."""
    for sentence, verdict in gate_sentences(gates, document):
        yield Paragraph(sentence, "verdict", verdict)
    others = dict.fromkeys(
        f"{requirement.name} ({requirement.question})"
        for requirement in result.requirements
        if not requirement.is_plain
    )
    if others:
        listed = ", ".join(map(name_text, others))
        yield Paragraph(f"gates are for probabilities of formulas; not held: {listed}", "note")
    if (floor := gates.fail_under) is not None:
        yield _floor_table(floor)
        told = dict.fromkeys(held.condition for held in floor.requirements if not held.failed and held.condition)
        for condition in told:
            yield Paragraph(f"what passed holds {one_line(condition)}", "note")
    if (gate := gates.regression) is not None:
        yield from drop_blocks(gate)
        yield Paragraph(f"compared: {gate.compared}", "note")
        if gate.not_in_baseline:
            names = ", ".join(f"{name_text(new.requirement)} (planner {name_text(new.planner)})"
                              for new in gate.not_in_baseline)  # fmt: skip
            yield Paragraph(f"not in the baseline, not compared: {names}", "note")


def gates_section(gates: Gates, result: RunResult, document: str, anchor: str) -> Section:
    """The same in a report."""
    return Section(f"Gates: {document}", tuple(_gate_blocks(gates, result, document)), id=anchor)


def gate_sentences(gates: Gates, document: str) -> Iterator[tuple[str, str]]:
    """Whether each gate of a run failed, and what it takes for failed."""
    name = f"Gate of {document}" if document else "Gate"
    if gates.fail_under is not None:
        yield f"{name}, {_floor_text(gates.fail_under)}", gate_verdict(failed=gates.fail_under.failed)
    if gates.regression is not None:
        yield f"{name}, {drop_gate_text(gates.regression)}", gate_verdict(failed=gates.regression.failed)


def gate_verdict(*, failed: bool) -> str:
    """A gate as a verdict."""
    return "violated" if failed else "satisfied"


def drop_gate_text(gate: DropGate) -> str:
    """What is allowed against which baseline, and whether that is kept."""
    allowed = decimal_text(gate.max_drop)
    return f"no drop by more than {allowed} against {name_text(gate.baseline.name)}: {_outcome(gate.drops)}"


def _rule_words(least_chance: Fraction | None) -> str:
    """The rule of a gate."""
    if least_chance is None:
        return "by the point estimates; their statistical uncertainty is ignored (point)"
    return f"where the probability of that is {decimal_text(least_chance)} or more, by common draws of the matrices"


def drop_blocks(gate: DropGate) -> Iterator[Block]:
    """What each requirement was and is, whether that is too large a drop, and by which rule."""
    rows = tuple(
        (
            name_text(drop.spec),
            name_text(drop.requirement),
            ", ".join(name_text(name) for name in (drop.detector, drop.planner) if name),
            Cell(number_text(drop.before), drop.before),
            Cell(number_text(drop.now), drop.now),
            Cell("0" if drop.drop == 0 else signed(drop.drop, 3), drop.drop),
            Cell("not known" if drop.chance is None else chance_text(drop.chance), drop.chance),
            _state(failed=drop.failed),
        )
        for drop in gate.drops
    )
    header = ("spec", "requirement", "of", "before", "now", "drop", "probability of more than allowed", "gate")
    caption = f"Drop against {name_text(gate.baseline.name)}; allowed is {decimal_text(gate.max_drop)}"
    yield Table(caption, header, rows, sortable=True)
    yield Paragraph(f"A drop counts {_rule_words(gate.least_chance)}.", "note")


def _floor_text(floor: Floor) -> str:
    return f"no requirement under {name_text(floor.least)} ({COUNTED[floor.from_]}): {_outcome(floor.requirements)}"


def _outcome(parts: Sequence[Drop | Held]) -> str:
    failed = sum(part.failed for part in parts)
    return f"failed by {failed}" if failed else "passed"


def _floor_table(floor: Floor) -> Table:
    rows: tuple[Row, ...] = tuple(
        (
            *map(name_text, (held.requirement, held.planner, held.scenario)),
            Cell(number_text(held.value), held.value),
            held.condition or held.reason or "-",
            _state(failed=held.failed),
        )
        for held in floor.requirements
    )
    header = ("requirement", "planner", "scenario", "value", "condition, or why not shown", "gate")
    caption = f"At least {name_text(floor.least)} is asked of every requirement ({COUNTED[floor.from_]})"
    return Table(caption, header, rows, sortable=True)


def _state(*, failed: bool) -> Cell:
    return Cell("failed" if failed else "passed", verdict=gate_verdict(failed=failed))
