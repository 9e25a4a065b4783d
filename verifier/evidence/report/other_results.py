"""Results beside the verified requirements: collision maps, trade-off curves, robustness, mutated images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType

from verifier.base.words import counted, listed, percent
from verifier.closedloop.curvefiles import Curve
from verifier.closedloop.trade_offs import CurvePoints, FlipRecord, TradeOffCell, TradeOffsResult
from verifier.evidence.documents import Document
from verifier.robustness.assessment.document import AssessResult, DegradationRecord
from verifier.robustness.mutators.batch_result import MutateResult
from verifier.telling.blocks import Block, Cell, Figure, Fold, Paragraph, Row, Section, Table
from verifier.telling.collision import collision_blocks, collision_sentence
from verifier.telling.pictures import Line, plot
from verifier.telling.wording import name_text

MOST_CURVES = 12
MOST_CURVE_ROWS = 400
"""Points of curves up to which they are also given as a table."""
HELD = MappingProxyType(
    {
        "violated": "performance changes by more than the tolerance allows",
        "satisfied": "no change of performance is above its tolerance",
        "inconclusive": "undecided",
    }
)


def wing_section(document: Document, anchor: str) -> Section:
    """The section of a document that verifies no requirement."""
    kinds = {
        "collision": ("Probability of collision", _collision),
        "trade_offs": ("Safety against efficiency", _trade_offs),
        "curves": ("Safety against efficiency", _given_curves),
        "assess": ("Robustness", _assess),
        "mutate": ("Mutated images", _mutate),
    }
    title, blocks = kinds.get(document.kind, (document.kind, _other))
    return Section(
        f"{title}: {document.name}",
        tuple(blocks(document)),
        id=anchor,
    )


def wing_sentences(document: Document) -> Iterator[tuple[str, str]]:
    """What such a document says, for the summary."""
    if document.kind == "assess":
        for system in document.result.systems:
            held = HELD.get(system.verdict, "no tolerance was given")
            yield f"Robustness of {name_text(system.title)}: {held}.", system.verdict
    elif document.kind == "trade_offs":
        for table in document.result.metrics:
            rows = [
                f"{listed([name_text(n) for n in row.best], 'or')} ({name_text(row.name)})" for row in table.rows[:6]
            ]
            yield f"Best by {name_text(table.metric)}: {'; '.join(rows)}.", ""
    elif document.kind == "collision":
        yield collision_sentence(document.result), ""
    elif document.kind == "mutate":
        yield f"{counted(document.result.counts.written, 'mutated image')} written.", ""


def _collision(document: Document) -> Iterator[Block]:
    yield from collision_blocks(document.result)


def _other(document: Document) -> Iterator[Block]:
    yield Paragraph(f"A document titled {name_text(document.content.get('title', 'nothing'))}; see its file.")


def _trade_offs(document: Document) -> Iterator[Block]:
    result: TradeOffsResult = document.result
    for table in result.metrics:
        names = table.detectors
        header = ("conditions", *(name_text(name) for name in names), "best")
        rows: tuple[Row, ...] = tuple(
            (
                f"{name_text(row.name)} ({row.kind})",
                *(_area(row.cells, name) for name in names),
                listed([name_text(name) for name in row.best], "or"),
            )
            for row in table.rows
        )
        yield Table(f"Area under the worst case, {name_text(table.metric)}", header, rows, sortable=True)
        yield from _curves_figure(table.curves, name_text(table.metric))
    for kind, flips in (
        ("under mutation", result.flips.under_mutation),
        ("between metrics", result.flips.between_metrics),
    ):
        yield from (Paragraph(_flip_text(kind, flip), "note") for flip in flips if flip.flips)


def _area(cells: Sequence[TradeOffCell], name: str) -> Cell:
    found = [cell for cell in cells if cell.detector == name]
    if not found:
        return Cell("none")
    area, kept = found[0].area, found[0].robustness
    return Cell(f"{area:.4g}" + ("" if kept is None else f" ({percent(kept, 3)} of the baseline)"), area)


def _flip_text(kind: str, flip: FlipRecord) -> str:
    ends = [
        f"{listed([name_text(name) for name in each.best], 'or')} under {name_text(each.row)} by "
        f"{name_text(each.metric)}"
        for each in (flip.from_, flip.to)
    ]
    chance = "" if flip.probability is None else f" (probability {flip.probability:.2g})"
    return f"The choice changes {kind}: best is {ends[0]}, but {ends[1]}{chance}."


def _given_curves(document: Document) -> Iterator[Block]:
    yield from _curves_figure(document.result.curves, "given curves")


def _curves_figure(curves: Sequence[Curve | CurvePoints], what: str) -> Iterator[Block]:
    lines = [
        Line(
            f"{name_text(curve.detector)}, {name_text(curve.condition)}",
            sorted(zip(curve.efficiency, curve.safety, strict=True)),
        )
        for curve in curves[:MOST_CURVES]
    ]
    more = f" The first {MOST_CURVES} of {len(curves)} curves." if len(curves) > MOST_CURVES else ""
    title = f"Safety against efficiency, {what}"
    yield Figure(plot(lines, ("efficiency", "safety"), title), f"{title}.{more}")
    if sum(len(line.points) for line in lines) <= MOST_CURVE_ROWS:
        rows = tuple((line.name, Cell(f"{x:.4g}", x), Cell(f"{y:.4g}", y)) for line in lines for x, y in line.points)
        table = Table(f"{title}: the points", ("curve", "efficiency", "safety"), rows, sortable=True)
        yield Fold("The curves as a table", (table,), printed=False)


def _assess(document: Document) -> Iterator[Block]:
    result: AssessResult = document.result
    for system in result.systems:
        title = name_text(system.title)
        for target in system.targets:
            rows = tuple(
                (
                    name_text(each.metric),
                    Cell(f"{each.source:.4g}", each.source),
                    Cell(f"{each.target:.4g}", each.target),
                    Cell(f"{each.change:.4g}", each.change),
                    Cell(f"{each.tolerance:.4g}", each.tolerance),
                    Cell(f"{each.distance:.4g} ({name_text(each.distance_name)})", each.distance),
                    Cell(each.verdict, verdict=each.verdict),
                )
                for each in target.outcomes
            )
            header = ("metric", "source data", "target data", "change", "accepted", "distance", "verdict")
            if rows:
                yield Table(
                    f"{title}: change of performance on {name_text(target.name)}", header, rows, sortable=True
                )
        if system.priorities:
            names = [name_text(each) for each in system.priorities]
            yield Paragraph(f"{title}: test cases are missing for {listed(names)}, the first one first.")
        yield from _degradation(system.degradation, title)


def _degradation(found: DegradationRecord | None, title: str) -> Iterator[Block]:
    if found is None:
        return
    unit = f" [{name_text(found.unit)}]" if found.unit else ""
    rows = tuple(
        (
            f"{each.kind} {name_text(each.name)}",
            name_text(each.limit),
            *(
                "at none" if level is None else str(level)
                for level in (each.break_.holds_at, each.break_.fails_at, each.break_.sure_at)
            ),
        )
        for each in found.criteria
    )
    caption = f"{title}: from which {name_text(found.parameter)}{unit} on each criterion fails"
    yield Table(caption, ("criterion", "limit", "holds at", "fails at", "confirmed to fail at"), rows, sortable=True)


def _mutate(document: Document) -> Iterator[Block]:
    result: MutateResult = document.result
    counts = result.counts
    yield Paragraph(
        f"{counted(counts.images, 'image')}, {counts.unreadable} of them unreadable; "
        f"{counts.written} written, {counts.failures} failed."
    )
    rows = tuple((name_text(each.text), name_text(each.folder)) for each in result.mutations)
    yield Table("Mutations", ("mutation", "folder"), rows)
