"""Triggering conditions, told once: on the terminal of `verify evidence triggers` and in reports."""

from collections.abc import Iterator
from typing import get_args

from verifier.base.words import bounds_text, counted, listed, some_of
from verifier.checking.verdicts import Verdict
from verifier.evidence.triggers import Sort, Trigger, TriggersResult
from verifier.telling.blocks import Block, Cell, Listing, Paragraph, Section, Table
from verifier.telling.grounds import name_text, told_verdict
from verifier.telling.terminal import blocks_lines

CLAIM = "the known triggering conditions are acceptable"


def triggers_table(study: TriggersResult) -> str:
    """The output of `verify evidence triggers`."""
    return "\n".join(blocks_lines(triggers_blocks(study))) + "\n"


def triggers_section(study: TriggersResult, document: str, anchor: str) -> Section:
    """The same in a report."""
    blocks = tuple(triggers_blocks(study))
    return Section(f"Triggering conditions: {document}", blocks, id=anchor, verdict=told_verdict(study))


def triggers_sentence(study: TriggersResult) -> str:
    """How many conditions are known as what."""
    counts = [(sort, sum(each.sort == sort for each in study.triggers)) for sort in get_args(Sort)]
    parts = listed([f"{count} {sort}" for sort, count in counts if count])
    return f"{counted(len(study.triggers), 'triggering condition')}: {parts}."


def triggers_blocks(study: TriggersResult) -> Iterator[Block]:
    """Every condition once, what each requirement is in it, what is missing, and which conditions came together."""
    header = ("condition", "known as", "part", "data", "items", "drives", "source", "effect")
    yield Table("Triggering conditions", header, tuple(map(_row, study.triggers)), sortable=True)
    judged = [(each, one) for each in study.triggers for one in each.judged]
    if judged:
        header = ("condition", "requirement", "asked", "P", "bounds", "worst scenario", "verdict", "to decide it")
        rows = tuple(
            (
                name_text(each.name),
                name_text(one.requirement) + (f", planner {name_text(one.planner)}" if one.planner else ""),
                name_text(one.asked),
                Cell(f"{one.probability:.9g}", one.probability),
                bounds_text(one.lower, one.upper),
                name_text(one.scenario),
                Cell(told_verdict(one), None, told_verdict(one)),
                name_text(one.needed or "-"),
            )
            for each, one in judged
        )
        yield Table("What is known in each", header, rows, sortable=True)
    missing = [name_text(each.name) for each in study.triggers if each.sort == "no data"]
    if missing:
        yield Paragraph(f"no data, in the operational design domain: {some_of(missing, 12)}", "note")
    yield from _pairs(study)
    verdict = "open" if study.verdict is Verdict.INCONCLUSIVE else told_verdict(study)
    yield Paragraph(f"{triggers_sentence(study)} That {CLAIM}: {verdict}")


def _row(each: Trigger) -> tuple[Cell | str, ...]:
    data = name_text(each.matrices) or "none"
    data += "".join(f", {name_text(name)} {name_text(value)}" for name, value in each.where.items())
    data += f" ({name_text(each.severity)})" if each.severity else ""
    items = {} if each.items is None else each.items
    sort = f"excluded by {name_text(each.excluded_by)}" if each.excluded_by else each.sort
    return (
        f"{name_text(each.name)}: {name_text(each.text)}",
        sort,
        each.part or "-",
        data,
        ", ".join(f"{name_text(name)} {count}" for name, count in items.items()) or "-",
        "-" if each.drives is None else str(each.drives),
        name_text(each.source) or "-",
        name_text(each.effect) or "-",
    )


def _pairs(study: TriggersResult) -> Iterator[Block]:
    """Which two conditions were seen together, as a matrix; the pairs that never were, by name."""
    known = {(each.first, each.second): each.items for each in study.pairs if each.items is not None}
    names = [each.name for each in study.triggers if any(each.name in pair for pair in known)]
    if names:
        rows = tuple(
            (
                name_text(one),
                *(
                    "-" if (found := known.get((one, other), known.get((other, one)))) is None else str(found)
                    for other in names
                ),
            )
            for one in names
        )
        yield Table("Objects in both of two conditions", ("condition", *map(name_text, names)), rows)
    empty = [f"{name_text(first)} with {name_text(second)}" for (first, second), items in known.items() if not items]
    if empty:
        yield Paragraph("never seen together:")
        yield Listing(tuple(empty))
    unknown = len(study.pairs) - len(known)
    if unknown:
        yield Paragraph(f"of {counted(unknown, 'pair')} it is not known how often they come together", "note")
