"""Results beside the verified requirements: collision maps, trade-off curves, robustness, mutated images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import MappingProxyType

from verifier.base.words import counted, listed
from verifier.evidence.documents import Document
from verifier.robustness.assessment.document import AssessResult, DegradationRecord
from verifier.robustness.mutators.batch_result import MutateResult
from verifier.telling.blocks import Block, Cell, Paragraph, Section, Table
from verifier.telling.closedloop import curve_blocks, trade_off_blocks, trade_off_sentences
from verifier.telling.collision import collision_blocks, collision_sentence
from verifier.telling.wording import name_text

HELD = MappingProxyType(
    {
        "violated": "performance changes by more than the tolerance allows",
        "satisfied": "no change of performance is above its tolerance",
        "inconclusive": "undecided",
    }
)


def wing_section(document: Document, anchor: str) -> Section:
    """The section of a document that verifies no requirement."""
    kinds: dict[str, tuple[str, Callable[[Document], Iterable[Block]]]] = {
        "collision": ("Probability of collision", lambda each: collision_blocks(each.result)),
        "trade_offs": ("Safety against efficiency", lambda each: trade_off_blocks(each.result)),
        "curves": ("Safety against efficiency", lambda each: curve_blocks(each.result.curves, "given curves")),
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
        yield from ((text, "") for text in trade_off_sentences(document.result))
    elif document.kind == "collision":
        yield collision_sentence(document.result), ""
    elif document.kind == "mutate":
        yield f"{counted(document.result.counts.written, 'mutated image')} written.", ""


def _other(document: Document) -> Iterator[Block]:
    yield Paragraph(f"A document titled {name_text(document.content.get('title', 'nothing'))}; see its file.")


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
