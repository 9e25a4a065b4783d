"""How a requirement fails: its causes, the patterns of losing runs in words, and the state map."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from verifier.base.documents import Content
from verifier.base.numbers import number_text
from verifier.base.words import listed
from verifier.evidence.documents import Document
from verifier.evidence.report.subjects import Subject
from verifier.telling.blocks import Block, Cell, Figure, Fold, Listing, Paragraph, Row, Section, Table
from verifier.telling.causes import (
    HOW_CAUSES_COUNT,
    cause_lines,
    correction_text,
    pattern_text,
    patterns_text,
    report_text,
    violation_text,
)
from verifier.telling.pictures import Line, chart, plot
from verifier.telling.wording import name_text, sentence, state_text

MOST_FRAMES = 20
MOST_MAP_ROWS = 400
"""Cells of a state map up to which its numbers are also given as a table."""


def failing_sections(subject: Subject) -> Iterator[Section]:
    """One section per explanation; none says that it was not explained."""
    for document, part in subject.explained:
        blocks: list[Block] = [*_causes(document, part), *_patterns(document, part), *_map(part)]
        more = f" ({document.name})" if len(subject.explained) > 1 else ""
        yield Section(f"How it fails{more}", tuple(blocks), listed=False)


def failing_sentence(subject: Subject) -> str | None:
    """What it is lost by first of all, in one sentence; None where that is not known."""
    for document, part in subject.explained:
        for line in cause_lines(document.content, part):
            return f"{line}."
    return None


def _causes(document: Document, part: Content) -> Iterator[Block]:
    yield Paragraph(violation_text(part))
    lines = tuple(f"{line}." for line in cause_lines(document.content, part))
    if not lines:
        return
    yield Listing(lines)
    yield Paragraph(HOW_CAUSES_COUNT, "note")
    if best := correction_text(document.content, part):
        yield Paragraph(f"{best}.")
    for kind in part["violation"]["wrong_reports"]:
        if kind.get("in_record"):
            yield Fold(
                f"Frames with {report_text(document.content, kind)}: {kind['in_record']} in the record",
                (_frames(kind.get("frames", [])),),
            )


def _patterns(document: Document, part: Content) -> Iterator[Block]:
    found = part["violation"]
    if not found["patterns"]:
        return
    yield Paragraph(f"{patterns_text(part)}.")
    for number, pattern in enumerate(found["patterns"], start=1):
        yield Paragraph(f"{number}. {sentence(pattern_text(document.content, part, pattern))}.")
        for run in pattern["members"]:
            yield from _run(document, run)
    if any(run["replayed"] != "whole" for pattern in found["patterns"] for run in pattern["members"]):
        yield Paragraph(
            "Some runs are too long for the formula to be evaluated on them once more; their steps were.", "note"
        )


def _run(document: Document, run: Content) -> Iterator[Block]:
    yield Paragraph(
        f"A run of it, with probability {number_text(run['probability'])}, from {state_text(run['initial'])}:"
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
