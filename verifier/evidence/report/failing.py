"""How a requirement fails: its most probable violating runs in words, the state map, the cells where it is lost."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from verifier.evidence.documents import Content, Document
from verifier.evidence.report.blocks import Block, Cell, Figure, Fold, Listing, Paragraph, Row, Section, Table
from verifier.evidence.report.pictures import Line, chart, plot
from verifier.evidence.report.subjects import Subject
from verifier.evidence.report.wording import listed, name_text, percent, state_text
from verifier.evidence.rounding import number_text
from verifier.evidence.words import counted

MOST_FRAMES = 20
MOST_MAP_ROWS = 400
"""Cells of a state map up to which its numbers are also given as a table."""


def failing_sections(subject: Subject) -> Iterator[Section]:
    """One section per explanation; none says that it was not explained."""
    for document, part in subject.explained:
        blocks: list[Block] = [*_runs(document, part), *_cells(document, part), *_map(part)]
        more = f" ({document.name})" if len(subject.explained) > 1 else ""
        yield Section(f"How it fails{more}", tuple(blocks), listed=False)


def failing_sentence(subject: Subject) -> str | None:
    """Where it is mostly lost, in one sentence; None where that is not known."""
    for document, part in subject.explained:
        cells = part["critical_cells"]
        if cells:
            first = max(cells, key=lambda cell: cell["decisive"])
            return (
                f"It is lost mostly when {_report(document, first)} ({percent(first['decisive'])} of the violation)."
            )
        runs = part["violation"]["runs"]
        if runs and runs[0]["irrevocable_after"] == 0:
            return "It is lost from the start, whatever the detector reports."
    return None


def _report(document: Document, cell: Content) -> str:
    where = name_text(document.content["bins"][cell["bin"]])
    return f"true {name_text(cell['true'])} in {where} is reported as {name_text(cell['reported'])}"


def _runs(document: Document, part: Content) -> Iterator[Block]:
    found = part["violation"]
    verb = "holds" if found["satisfies_the_formula"] else "fails"
    runs = found["runs"]
    if not runs:
        yield Paragraph(
            f"There is no run on which the formula {verb}: with these matrices none has a positive probability."
        )
        return
    kind = "run" if document.content["explain"]["whole_runs"] else "way"
    lead = f"The formula {verb} with probability {number_text(found['probability'])}"
    if found["complete"]:
        yield Paragraph(f"{lead}, in {counted(len(runs), kind)}:")
    else:
        share = percent(found["covered"] or 0.0)
        yield Paragraph(f"{lead}; the most probable {counted(len(runs), kind)} make up {share} of it:")
    for number, run in enumerate(runs, start=1):
        yield from _run(document, run, number)
    if any(run["replayed"] != "whole" for run in runs):
        yield Paragraph(
            "Some runs are too long for the formula to be evaluated on them once more; their steps were.", "note"
        )


def _run(document: Document, run: Content, number: int) -> Iterator[Block]:
    yield Paragraph(
        f"{number}. With probability {number_text(run['probability'])} ({percent(run['share'])} of it), from "
        f"{state_text(run['initial'])}:"
    )
    items, at = [], 0
    for steps in _stretches(run):
        first, at = at + 1, at + len(steps)
        when = f"Step {at}" if len(steps) == 1 else f"Steps {first} to {at}"
        items.append(f"{when}: {_told(document, steps)} Then {state_text(steps[-1]['after'])}.")
        if at == run["irrevocable_after"]:
            items[-1] += " From here nothing can help any more."
    if run["irrevocable_after"] == 0:
        items.insert(0, "From the start nothing can help.")
    yield Listing(tuple(items))


def _stretches(run: Content) -> Iterator[list[Content]]:
    """Steps in which the same was there and was reported, as one; a step on which nothing hung is like any other."""
    for _, group in itertools.groupby(enumerate(run["steps"]), key=lambda pair: _alike(run, *pair)):
        yield [step for _, step in group]


def _alike(run: Content, at: int, step: Content) -> tuple[object, ...]:
    what = (repr(step["there"]), repr(step["reported"])) if step["matters"] else None
    return at >= run["irrevocable_after"], step["matters"], what


def _told(document: Document, steps: list[Content]) -> str:
    first = steps[0]
    if not first["matters"]:
        return "what is reported makes no difference." if first["there"] else "the detector is not asked."
    there = listed(
        [
            f"{name_text(each['label'])} in {name_text(document.content['bins'][each['bin']])}"
            for each in first["there"]
        ]
    )
    told = listed([_classes(each["classes"]) for each in first["reported"]], "or")
    rate = sum(each["probability"] for each in first["reported"])
    each = " in each step" if len(steps) > 1 else ""
    return f"{there or 'nothing'} is there, and {told} is reported (chance {number_text(rate)}{each})."


def _classes(names: list[str]) -> str:
    return listed([name_text(name) for name in names]) if names else "nothing that the planner asks about"


def _cells(document: Document, part: Content) -> Iterator[Block]:
    cells = part["critical_cells"]
    if not cells:
        return
    header = (
        "lost when true",
        "distance",
        "is reported as",
        "share of violation",
        "rate",
        "times counted",
        "per violating run",
    )
    rows = tuple(
        (
            name_text(cell["true"]),
            Cell(name_text(document.content["bins"][cell["bin"]]), cell["bin"]),
            name_text(cell["reported"]),
            Cell(percent(cell["decisive"]), cell["decisive"], heat=cell["decisive"]),
            Cell(f"{cell['rate']:.4g}", cell["rate"]),
            Cell(str(cell["items"]), cell["items"]),
            Cell(f"{cell['expected']:.3g}", cell["expected"]),
        )
        for cell in cells
    )
    yield Table("Critical cells: the report after which nothing can help any more", header, rows, sortable=True)
    for cell in cells:
        if cell.get("in_record"):
            yield Fold(
                f"Frames in which {_report(document, cell)}: {cell['in_record']} in the record",
                (_frames(cell.get("frames", [])),),
            )


def _frames(frames: list[Mapping[str, Any]]) -> Table:
    header = ("sequence", "frame", "distance", "annotation", "detection")
    rows = tuple(
        (
            name_text(each["sequence"]),
            name_text(each["frame"]),
            "not known" if each["distance_m"] is None else f"{each['distance_m']:.1f} m",
            f"{name_text(each['file'])}:{each['line']}" if each["file"] else "none",
            f"{name_text(each['report_file'])}:{each['report_line']}" if each["report_file"] else "none",
        )
        for each in frames[:MOST_FRAMES]
    )
    more = f"; {len(frames) - MOST_FRAMES} more in the document" if len(frames) > MOST_FRAMES else ""
    return Table(f"Frames{more}", header, rows)


def _map(part: Content) -> Iterator[Block]:
    found = part["map"]
    if found is None:
        return
    names = [name_text(name) for name in found["variables"]]
    worst = "largest" if found["worst_is_largest"] else "smallest"
    title = f"P for runs that start in a state, by {listed(names)}, in {name_text(part['point']['environment'])}"
    if len(names) == 1:
        pairs = zip(found["values"][0], found["probability"], strict=True)
        points = [(float(x), float(p)) for x, p in pairs if p is not None]
        yield Figure(plot([Line("P", points)], (names[0], "P"), title), f"{title}. Of several states the {worst} P.")
        return
    table = np.array([[np.nan if p is None else float(p) for p in row] for row in found["probability"]])
    across, up = found["values"]
    picture = chart(table, (across, up), (names[0], names[1]), title, worst_is_largest=found["worst_is_largest"])
    yield Figure(picture, f"{title}. Grey: no run comes here. Of several states the {worst} P is shown.")
    if table.size <= MOST_MAP_ROWS:
        yield Fold("The map as a table", (_map_table(found, names),), printed=False)


def _map_table(found: Content, names: list[str]) -> Table:
    header = (f"{names[0]} \\ {names[1]}", *map(str, found["values"][1]))
    rows: tuple[Row, ...] = tuple(
        (
            str(value),
            *(
                Cell("none") if p is None else Cell(f"{p:.4g}", p, heat=p if found["worst_is_largest"] else 1 - p)
                for p in row
            ),
        )
        for value, row in zip(found["values"][0], found["probability"], strict=True)
    )
    return Table("P by state; the darker, the worse", header, rows)
