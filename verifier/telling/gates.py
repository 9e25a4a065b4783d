"""Gates for continuous integration, told once: what was asked for beside the targets of the spec, and what failed."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from verifier.base.errors import one_line
from verifier.base.numbers import decimal_text, number_text, signed, significant
from verifier.study.gates import Drop, DropGate, Floor, Gates, Held, Regression
from verifier.study.results import RunResult
from verifier.telling.blocks import Block, Cell, Paragraph, Row, Section, Table
from verifier.telling.grounds import chance_text, name_text

COUNTED = {"bounds": "confidence bounds", "interval": "ends of intervals", "point": "P itself"}
"""What a floor is held against."""


def gate_lines(gates: Gates, result: RunResult) -> Iterator[str]:
    """The gates of a run on a terminal."""
    yield from _unheld(result)
    if gates.fail_under is not None:
        yield f"gate, {_floor_text(gates.fail_under)}"
        for held in gates.fail_under.requirements:
            if held.failed:
                why = f"; not shown: {one_line(held.reason)}" if held.reason else ""
                value = number_text(held.value)
                yield f"  {held.requirement}, planner {held.planner}: {value} in {held.scenario}{why}"
        yield from (f"  {text}" for text in _conditions(gates.fail_under))
    if gates.regression is not None:
        gate = gates.regression
        yield f"gate, {drop_gate_text(gate)}"
        yield f"  a drop counts {rule_words(gate.least_chance)}"
        yield f"  compared: {gate.compared}"
        yield from (f"  {_drop_text(drop, gate.max_drop)}" for drop in gate.drops if drop.failed)
        yield from (f"  {text}" for text in _new(gate))


def gates_section(gates: Gates, result: RunResult, document: str, anchor: str) -> Section:
    """The same in a report."""
    blocks: list[Block] = [
        Paragraph(sentence, "verdict", verdict) for sentence, verdict in gate_sentences(gates, document)
    ]
    blocks += [Paragraph(text, "note") for text in _unheld(result)]
    if gates.fail_under is not None:
        blocks.append(_floor_table(gates.fail_under))
        blocks += [Paragraph(text, "note") for text in _conditions(gates.fail_under)]
    if gates.regression is not None:
        gate = gates.regression
        blocks += [drops_table(gate), Paragraph(f"A drop counts {rule_words(gate.least_chance)}.", "note")]
        blocks += [Paragraph(text, "note") for text in (f"compared: {gate.compared}", *_new(gate))]
    return Section(f"Gates: {document}", tuple(blocks), id=anchor)


def gate_sentences(gates: Gates, document: str) -> Iterator[tuple[str, str]]:
    """Whether each gate of a run failed, and what it takes for failed."""
    if gates.fail_under is not None:
        yield f"Gate of {document}, {_floor_text(gates.fail_under)}", gate_verdict(failed=gates.fail_under.failed)
    if gates.regression is not None:
        gate = gates.regression
        yield f"Gate of {document}, {drop_gate_text(gate)}", gate_verdict(failed=gate.failed)


def gate_verdict(*, failed: bool) -> str:
    """A gate as a verdict."""
    return "violated" if failed else "satisfied"


def drop_gate_text(gate: DropGate) -> str:
    """What is allowed against which baseline, and whether that is kept."""
    allowed = decimal_text(gate.max_drop)
    return f"no drop by more than {allowed} against {name_text(gate.baseline.name)}: {_outcome(gate.drops)}"


def rule_words(least_chance: Fraction | None) -> str:
    """The rule of a gate."""
    if least_chance is None:
        return "by the point estimates; their statistical uncertainty is ignored (point)"
    return f"where the probability of that is {decimal_text(least_chance)} or more, by common draws of the matrices"


def drops_table(gate: DropGate) -> Table:
    """What each requirement was and is, and whether that is too large a drop."""
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
    return Table(caption, header, rows, sortable=True)


def _floor_text(floor: Floor) -> str:
    return f"no requirement under {name_text(floor.least)} ({COUNTED[floor.from_]}): {_outcome(floor.requirements)}"


def _outcome(parts: Sequence[Drop | Held]) -> str:
    failed = sum(part.failed for part in parts)
    return f"failed by {failed}" if failed else "passed"


def _unheld(result: RunResult) -> Iterator[str]:
    others = dict.fromkeys(
        f"{requirement.name} ({requirement.question})"
        for requirement in result.requirements
        if not requirement.is_plain
    )
    if others:
        yield f"gates are for probabilities of formulas; not held: {', '.join(map(name_text, others))}"


def _conditions(floor: Floor) -> Iterator[str]:
    told = dict.fromkeys(held.condition for held in floor.requirements if not held.failed and held.condition)
    return (f"what passed holds {one_line(condition)}" for condition in told)


def _new(gate: Regression) -> Iterator[str]:
    if gate.not_in_baseline:
        names = ", ".join(f"{name_text(new.requirement)} (planner {name_text(new.planner)})"
                          for new in gate.not_in_baseline)  # fmt: skip
        yield f"not in the baseline, not compared: {names}"


def _drop_text(drop: Drop, allowed: str) -> str:
    chance = f"; posterior probability of a drop above {allowed}: {significant(drop.chance or 0)}"
    if drop.chance is None:
        chance = ""
    return (
        f"{drop.requirement}, planner {drop.planner}: worse by {significant(drop.drop, 6)}, P from "
        f"{number_text(drop.before)} to {number_text(drop.now)}{chance}"
    )


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
