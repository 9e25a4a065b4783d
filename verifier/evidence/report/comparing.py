"""Results of `verify compare`: which planner and which detector, how sure that is, and the gate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from verifier.analysis.channel_test import Channel
from verifier.analysis.intervals.tiers import BoundsBasis
from verifier.base.documents import Content, read_document
from verifier.base.numbers import decimal_text, interval_text, level_text, number_text, target_text
from verifier.base.words import listed
from verifier.checking.verdicts import verdict_text
from verifier.evidence.documents import Document
from verifier.evidence.report.gates import drops_table, regression_sentence
from verifier.evidence.report.pictures import Line, plot
from verifier.evidence.report.wording import name_text, scenario_text
from verifier.study.gates import DropGate
from verifier.study.points import Point
from verifier.telling.blocks import Block, Cell, Figure, Fold, Paragraph, Row, Section, Table
from verifier.telling.grounds import bounds_told, channel_lines
from verifier.telling.run import probability_text

MOST_LINES = 8
MOST_ROWS = 400
"""Points of a picture up to which they are also given as a table."""


def compare_section(document: Document, anchor: str) -> Section:
    """One table per spec and requirement, and what the gate says."""
    content = document.content
    blocks: list[Block] = []
    for spec in content["specs"]:
        for each in spec["requirements"]:
            blocks += _requirement(each, spec, content)
        blocks += _pareto(spec)
    if content["gate"] is not None:
        gate = read_document(DropGate, content["gate"], document.name, "/gate")
        blocks.append(drops_table(gate, f"Drop against {name_text(gate.baseline.name)}"))
    blocks.append(
        Paragraph(f"Chances and intervals are from {content['draws']} common draws of the matrices.", "note")
    )
    blocks += [Paragraph(each, "note") for each in _assumptions(content)]
    return Section(f"Comparison: {document.name}", tuple(blocks), id=anchor)


def _assumptions(content: Content) -> Iterator[str]:
    """What verdicts and chances assume of each detector."""
    for spec in content["specs"]:
        for drawn in spec["drawn"]:
            told = "; ".join(channel_lines(read_document(Channel, drawn["channel"], "")))
            if told:
                where = f"{name_text(spec['spec'])}, {name_text(drawn['detector'])}"
                yield f"{where}: assumes a memoryless detector. Test of successive frames: {told}."
    names = dict.fromkeys(
        f"Verdicts use the {bounds_told(read_document(BoundsBasis, each['confidence']['bounds'], ''))}."
        for spec in content["settings"]["specs"].values()
        for each in spec.values()
        if each["verdict_from"] == "bounds"
    )
    yield from names


def compare_sentences(document: Document) -> Iterator[tuple[str, str]]:
    """Who is ahead in each requirement, and whether the gate failed."""
    for spec in document.content["specs"]:
        for each in spec["requirements"][:4]:
            if not each["entries"]:
                continue
            yield f"Comparison {document.name}, {name_text(each['name'])}: {_ahead(each['entries'])}.", ""
    if document.content["gate"] is not None:
        yield regression_sentence(document, read_document(DropGate, document.content["gate"], document.name))


def _ahead(entries: Sequence[Content]) -> str:
    """The contender with the best chance of being the best; none where several have the same."""
    top = max(entry["best"] for entry in entries)
    best = [entry for entry in entries if entry["best"] == top]
    if len(best) > 1:
        return f"{len(best)} of {len(entries)} contenders are equally good"
    p = number_text(best[0]["points"][best[0]["worst"]]["probability"])
    verdict = (
        "" if best[0]["verdict"] == "no target" else f", {verdict_text(best[0]['verdict'], best[0]['condition'])}"
    )
    return f"{_contender(best[0])} is the best with chance {top:.2g}: P {p}{verdict}"


def _contender(entry: Content) -> str:
    return f"{name_text(entry['detector'])}, planner {name_text(entry['planner'])}"


def _requirement(each: Content, spec: Content, content: Content) -> Iterator[Block]:
    yield Paragraph(f"{name_text(spec['spec'])}, {name_text(each['name'])}:", "lead")
    yield Paragraph(f"P {target_text(each['target'])} [ {each['formula']} ]", "formula")
    target = None if each["target"] is None else Fraction(each["target"]["probability"])
    interval = f"{level_text(content['level'])} interval"
    header = ("detector", "planner", "P", interval, "chance to be best", "worst scenario", "verdict")
    rows: list[Row] = []
    for entry in each["entries"]:
        worst, ends = read_document(Point, entry["points"][entry["worst"]], ""), entry["interval"]
        rows.append(
            (
                name_text(entry["detector"]),
                name_text(entry["planner"]),
                Cell(probability_text(worst, target), worst.probability),
                Cell(interval_text(ends["lower"], ends["upper"]), ends["lower"]),
                Cell(f"{entry['best']:.3g}", entry["best"], heat=entry["best"]),
                scenario_text(worst),
                Cell(verdict_text(entry["verdict"], entry["condition"]), verdict=entry["verdict"]),
            )
        )
    yield Table(f"Contenders for {name_text(each['name'])}", header, tuple(rows), sortable=True)
    for course in each["courses"]:
        yield from _course(course, each, spec, None if target is None else float(target))
        yield from _flips(course, spec)


def _course(course: Content, each: Content, spec: Content, target: float | None) -> Iterator[Block]:
    """P of every contender along what was swept, as a picture and as a table."""
    lines = []
    columns = (zip(*course[name], strict=True) for name in ("probability", "lower", "upper"))
    places = [float(Fraction(place)) for place in course["places"]]
    for contender, p, low, high in zip(spec["contenders"], *columns, strict=True):
        known = [k for k, value in enumerate(p) if None not in (value, low[k], high[k])]
        band = [(places[k], low[k], high[k]) for k in known]
        lines.append(Line(_short(contender, spec), [(places[k], p[k]) for k in known], band))
    axis = name_text(course["axis"])
    title = f"P of {name_text(each['name'])} against {axis}"
    more = f" The first {MOST_LINES} of {len(lines)} contenders." if len(lines) > MOST_LINES else ""
    yield Figure(plot(lines[:MOST_LINES], (axis, "P"), title, target), f"{title}; bands: intervals.{more}")
    rows = tuple(
        (line.name, Cell(f"{x:.6g}", x), Cell(number_text(p), p), Cell(interval_text(low, high), low))
        for line in lines
        for (x, p), (_, low, high) in zip(line.points, line.band, strict=True)
    )
    if len(rows) <= MOST_ROWS:
        table = Table(f"{title}: the points", ("contender", axis, "P", "interval"), rows, sortable=True)
        yield Fold("The picture as a table", (table,), printed=False)


def _short(contender: Content, spec: Content) -> str:
    """Detector and planner, as far as they differ between the contenders."""
    names = ("detector", "planner")
    differ = [name for name in names if len({each[name] for each in spec["contenders"]}) > 1] or names[:1]
    return ", ".join(name_text(contender[name]) for name in differ)


def _flips(course: Content, spec: Content) -> Iterator[Block]:
    for flip in course["flips"][:6]:
        first, second = (_contender(spec["contenders"][flip[name]]) for name in ("first", "second"))
        before, after = (decimal_text(course["places"][flip[name]]) for name in ("before", "after"))
        yield Paragraph(
            f"The order changes along {name_text(course['axis'])}: {first} is ahead at {before} (chance "
            f"{flip['first_ahead']:.2g}), {second} at {after} ({flip['second_ahead']:.2g}).",
            "note",
        )


def _pareto(spec: Content) -> Iterator[Block]:
    found = spec["pareto"]
    if found is None:
        return
    names: Sequence[str] = [
        f"{_contender(contender)} (chance {chance:.2g})"
        for contender, good, chance in zip(spec["contenders"], found["non_dominated"], found["chances"], strict=True)
        if good
    ]
    both = f"{name_text(found['first'])} and {name_text(found['second'])}"
    yield Paragraph(f"{both} together: not dominated {'is' if len(names) == 1 else 'are'} {listed(names)}.")
