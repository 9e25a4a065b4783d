"""The confusion matrices: what they are, who used them, recall by distance, every matrix with counts and rates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from verifier.base.words import listed
from verifier.evidence.documents import Document
from verifier.evidence.report.subjects import confusion_inputs, matrices_of
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.document_reader import DocumentReader
from verifier.telling.blocks import Block, Fold, Paragraph, Section, Table, facts
from verifier.telling.confusion import matrix_blocks
from verifier.telling.wording import name_text

MOST_OPEN = 4
"""Matrices of a document that are open; the others are shown on request."""
MOST_CELLS = 20_000
"""Cells of a document's matrices that are written out."""


def matrices_section(documents: Sequence[Document]) -> Section:
    """One section per confusion document, and which matrices are not at hand."""
    given = matrices_of(documents)
    used: dict[str, list[Document]] = {}
    missing: dict[str, list[str]] = {}
    for each in documents:
        for source in confusion_inputs(each):
            if source["sha256"] in given:
                used.setdefault(source["sha256"], []).append(each)
            else:
                missing.setdefault(f"{name_text(source['name'])} (SHA-256 {source['sha256']})", []).append(each.name)
    blocks: list[Block] = [
        Paragraph(f"Not among the documents: {source}, used by {listed(list(dict.fromkeys(names)))}.", "note")
        for source, names in missing.items()
    ]
    if not given:
        blocks.insert(0, Paragraph("No confusion matrices were given to this report."))
    sections = tuple(
        _document_section(each, used.get(digest, []), f"m{k}")
        for k, (digest, each) in enumerate(given.items(), start=1)
    )
    return Section("Matrices", tuple(blocks), sections, "matrices")


def _document_section(document: Document, users: list[Document], anchor: str) -> Section:
    whole = DocumentReader(document.name).counts(dict(document.content))
    threshold = None if whole.thresholds is None else whole.thresholds[_member(whole.thresholds, users)]
    blocks: list[Block] = [_about(document, whole, users)]
    if whole.thresholds is not None and threshold is not None:
        family = f"A family over {len(whole.thresholds)} score thresholds; shown for {threshold:g}."
        blocks.append(Paragraph(family, "note"))
    shown = max(1, min(whole.bins.count, MOST_CELLS // max(1, len(whole.labels) ** 2)))
    recall, *tables = matrix_blocks(whole if threshold is None else whole.member(threshold), shown)
    blocks.append(recall)
    blocks.append(
        Paragraph("In each matrix the rows are reports and the columns true labels; a column's rates sum to 1.")
    )
    blocks += tables[:MOST_OPEN]
    if tables[MOST_OPEN:]:
        blocks.append(Fold(f"{len(tables) - MOST_OPEN} more matrices", tuple(tables[MOST_OPEN:])))
    if shown < whole.bins.count:
        blocks.append(Paragraph(f"{whole.bins.count - shown} more matrices are in {document.name}.", "note"))
    title = name_text(whole.title or document.name)
    return Section(title, tuple(blocks), id=anchor)


def _member(thresholds: Sequence[float], users: Sequence[Document]) -> int:
    """Which member of a family a run used; the first where none says."""
    chosen = [user.content["settings"].get("score_threshold") for user in users]
    return next((thresholds.index(threshold) for threshold in chosen if threshold in thresholds), 0)


def _about(document: Document, whole: ConfusionCounts, users: Sequence[Document]) -> Table:
    content = document.content
    items = "one item per frame" if whole.labelling == "proposition" else f"one item per {whole.labelling}"
    items = items.replace("per class", "per object")
    by = listed(list(dict.fromkeys(each.name for each in users))) if users else "no result among the documents"
    sequences = content.get("sequences")
    return facts(
        "About these matrices",
        ("File", document.name),
        ("SHA-256", document.sha256),
        ("Used by", by),
        ("Labelling", f"{whole.labelling}: {items}"),
        ("Distance", plain(content["distance"])) if "distance" in content else None,
        ("Matching", plain(content["matching"])) if "matching" in content else ("Matching", "not stated"),
        ("Unmatched detections", plain(content.get("false_positives", "not stated"))),
        ("Drives counted apart", "not stated" if sequences is None else str(len(sequences))),
        ("Source", plain(content["source"])) if "source" in content else ("Source", "not stated"),
        ("Notes", plain(content["notes"])) if content.get("notes") else None,
    )


def plain(value: Any) -> str:
    """JSON values as a person reads them: `unit: m; of: true object`."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "; ".join(f"{name_text(key)}: {plain(inner)}" for key, inner in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(plain(inner) for inner in value) or "none"
    return "none" if value is None else json.dumps(value)
