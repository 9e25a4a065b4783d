"""What would help a requirement: kinds of wrong reports to fix, columns to label more, the recall it asks for."""

from __future__ import annotations

from collections.abc import Iterator

from verifier.base.documents import Content
from verifier.base.numbers import level_text, number_text
from verifier.base.words import percent
from verifier.evidence.documents import Document
from verifier.evidence.report.subjects import Subject
from verifier.telling.blocks import Block, Cell, Paragraph, Table
from verifier.telling.causes import deviation_text
from verifier.telling.require import answer_blocks, answer_text
from verifier.telling.wording import name_text, sentence

MOST_ROWS = 10


def improving_blocks(subject: Subject) -> Iterator[Block]:
    """What explanations and answers say would help; nothing where neither was given."""
    for document, part in subject.explained:
        yield from _fixes(document, part)
        yield from _label_more(document, part)
    for document, answer in subject.answers:
        yield from answer_blocks(document.result, answer, document.name)


def improving_sentence(subject: Subject) -> str | None:
    """What would help most, in one sentence; None where that is not known."""
    sentences = []
    for document, part in subject.explained[:1]:
        fixes = part["fixes"]
        if fixes:
            best = fixes[0]
            where = name_text(document.content["bins"][best["bin"]])
            sentences.append(
                f"If true {name_text(best['true'])} in {where} were never reported as {name_text(best['reported'])}, "
                f"P would be {number_text(best['probability'])}."
            )
        elif subject.verdict == "violated":
            perfect = number_text(part["perfect_perception"])
            sentences.append(
                f"No single kind of wrong report changes P; with perfect perception it would be {perfect}."
            )
    for document, answer in subject.answers[:1]:
        sentences.append(f"{sentence(answer_text(document.result, answer))}.")
    return " ".join(sentences) or None


def _fixes(document: Document, part: Content) -> Iterator[Block]:
    perfect = f"With perfect perception P would be {number_text(part['perfect_perception'])}."
    if not part["fixes"]:
        yield Paragraph(f"No single kind of wrong report changes P. {perfect}")
        return
    rows = tuple(
        (
            name_text(fix["true"]),
            Cell(name_text(document.content["bins"][fix["bin"]]), fix["bin"]),
            name_text(fix["reported"]),
            Cell(f"{fix['rate']:.4g}", fix["rate"]),
            Cell(number_text(fix["probability"]), fix["probability"]),
            Cell(f"{fix['first_order']:+.3g}{' (may jump)' if fix['jumps'] else ''}", fix["first_order"]),
        )
        for fix in part["fixes"][:MOST_ROWS]
    )
    yield Paragraph(perfect)
    header = ("true", "distance", "reported as", "rate", "P if corrected", "change of P to first order")
    yield Table(f"What to fix first{_more(part['fixes'])}", header, rows, sortable=True)


def _label_more(document: Document, part: Content) -> Iterator[Block]:
    if not part["label_more"]:
        return
    rows = tuple(
        (
            name_text(each["true"]),
            Cell(name_text(document.content["bins"][each["bin"]]), each["bin"]),
            Cell(str(each["items"]), each["items"]),
            Cell(percent(each["share_of_variance"]), each["share_of_variance"]),
            Cell(f"{each['swing']:.3g} ({name_text(each['swing_of'])})", each["swing"]),
        )
        for each in part["label_more"][:MOST_ROWS]
    )
    level = level_text(document.content["explain"]["level"])
    header = ("true", "distance", "items", "share of variance", f"P over the {level} interval of a cell")
    title = f"Where to label more{_more(part['label_more'])}: {deviation_text(part)}"
    yield Table(title, header, rows, sortable=True)


def _more(rows: list[Content]) -> str:
    return f" (first {MOST_ROWS} of {len(rows)})" if len(rows) > MOST_ROWS else ""
