"""Gates for continuous integration: what was asked for beside the targets of the spec, and what failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from verifier.base.numbers import number_text
from verifier.base.words import counted, listed
from verifier.evidence.documents import Document
from verifier.study.gates import DropGate, Floor, Gates
from verifier.telling.blocks import Block, Cell, Paragraph, Section, Table
from verifier.telling.wording import name_text


def gates_section(document: Document, gates: Gates, anchor: str) -> Section:
    """The gates of a run: which requirements stay under a limit, and which dropped against a baseline."""
    blocks: list[Block] = [
        Paragraph(sentence, "verdict", verdict) for sentence, verdict in gate_sentences(document, gates)
    ]
    if gates.fail_under is not None:
        blocks.append(_least_table(gates.fail_under))
    if gates.regression is not None:
        found = gates.regression
        blocks.append(drops_table(found, f"Drop against {name_text(found.baseline.name)}"))
        blocks.append(Paragraph(f"Compared: {found.compared}", "note"))
        new = [f"{name_text(each.requirement)} ({name_text(each.planner)})" for each in found.not_in_baseline]
        if new:
            blocks.append(Paragraph(f"Not in the baseline: {listed(new)}.", "note"))
    return Section(f"Gates: {document.name}", tuple(blocks), id=anchor)


def gate_sentences(document: Document, gates: Gates) -> Iterator[tuple[str, str]]:
    """Whether each gate of a run failed, and what it takes for failed."""
    if gates.fail_under is not None:
        found = gates.fail_under
        failed = [held for held in found.requirements if held.failed]
        what = f"Gate of {document.name}: {_counted(failed, found.requirements)} under {name_text(found.least)}"
        reasons = dict.fromkeys(held.reason for held in failed if held.reason)
        conditions = dict.fromkeys(held.condition for held in found.requirements if held.condition)
        more = f" Not shown: {listed(list(reasons))}." if reasons else ""
        more += f" What passed holds {listed(list(conditions))}." if conditions and not found.failed else ""
        yield f"{what} ({found.from_}).{more}", gate_verdict(failed=found.failed)
    if gates.regression is not None:
        yield regression_sentence(document, gates.regression)


def regression_sentence(document: Document, gate: DropGate) -> tuple[str, str]:
    """Whether a gate against a baseline failed."""
    failed = [drop for drop in gate.drops if drop.failed]
    return (
        f"Gate of {document.name} against {name_text(gate.baseline.name)}: {_counted(failed, gate.drops)} "
        f"worse by more than {name_text(gate.max_drop)}, {_rule(gate.drop_from)}.",
        gate_verdict(failed=gate.failed),
    )


def _rule(drop_from: str) -> str:
    """What a drop is judged by."""
    if drop_from == "point":
        return "by the probabilities of the given matrices (their statistical uncertainty is ignored)"
    return f"with a probability of at least {name_text(drop_from.partition(':')[2])}"


def gate_verdict(*, failed: bool) -> str:
    """A gate as a verdict."""
    return "violated" if failed else "satisfied"


def _counted(failed: Sequence[object], every: Sequence[object]) -> str:
    return f"{len(failed) or 'none'} of {counted(len(every), 'result')} {'are' if len(failed) > 1 else 'is'}"


def _least_table(found: Floor) -> Table:
    rows = tuple(
        (
            name_text(held.requirement),
            name_text(held.planner),
            name_text(held.scenario),
            Cell(number_text(held.value), held.value),
            held.condition or held.reason or "-",
            _state(failed=held.failed),
        )
        for held in found.requirements
    )
    caption = f"At least {name_text(found.least)} is asked of every requirement ({found.from_})"
    return Table(
        caption,
        ("requirement", "planner", "scenario", "value", "condition, or why not shown", "gate"),
        rows,
        sortable=True,
    )


def drops_table(gate: DropGate, caption: str) -> Table:
    """What each requirement was and is, and whether that is too large a drop."""
    rows = tuple(
        (
            name_text(drop.requirement),
            ", ".join(name_text(name) for name in (drop.detector, drop.planner) if name),
            Cell(number_text(drop.before), drop.before),
            Cell(number_text(drop.now), drop.now),
            Cell(f"{drop.drop:+.3g}", drop.drop),
            Cell("not known" if drop.chance is None else f"{drop.chance:.3g}", drop.chance),
            _state(failed=drop.failed),
        )
        for drop in gate.drops
    )
    header = ("requirement", "of", "before", "now", "drop", "probability of more than allowed", "gate")
    return Table(f"{caption}; allowed is {name_text(gate.max_drop)}", header, rows, sortable=True)


def _state(*, failed: bool) -> Cell:
    return Cell("failed" if failed else "passed", verdict=gate_verdict(failed=failed))
