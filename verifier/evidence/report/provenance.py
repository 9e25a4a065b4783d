"""Where everything comes from: documents, inputs, versions, settings and commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from verifier.base.words import counted
from verifier.evidence.documents import Document
from verifier.evidence.report.matrices import plain
from verifier.telling.blocks import Block, Fold, Listing, Paragraph, Row, Section, Table, facts
from verifier.telling.wording import LONGEST_NAME, difference_text, long_names, name_text

MOST_NAMES = 50


def provenance_section(documents: Sequence[Document]) -> Section:
    """Every file that this report rests on, by hash, and every choice that was made."""
    blocks: list[Block] = [
        Table(
            "Documents of this report",
            ("document", "kind", "title", "SHA-256"),
            tuple(
                (each.name, each.kind.replace("_", " "), name_text(each.content.get("title", "none")), each.sha256)
                for each in documents
            ),
        )
    ]
    rows = tuple(_input_rows(documents))
    if rows:
        blocks.append(Table("Files they were made from", ("file", "role", "SHA-256", "used by"), rows))
    blocks += [*_versions(documents), *_engines(documents)]
    blocks += [block for each in documents for block in _made(each)]
    return Section("Provenance", tuple(blocks), tuple(_names_section(documents)), "provenance")


def _input_rows(documents: Sequence[Document]) -> Iterator[Row]:
    found: dict[tuple[str, str, str], list[str]] = {}
    for each in documents:
        for file in each.content.get("inputs", ()):
            key = file.get("name", file.get("title", "none")), file.get("role", "data"), file.get("sha256", "none")
            found.setdefault(key, []).append(each.name)
    for (name, role, digest), names in found.items():
        yield name_text(name), role, digest, ", ".join(dict.fromkeys(names))


def _versions(documents: Sequence[Document]) -> Iterator[Block]:
    found: dict[str, dict[str, list[str]]] = {}
    for each in documents:
        for name, version in each.content.get("versions", {}).items():
            found.setdefault(name, {}).setdefault(version, []).append(each.name)
    if not found:
        return
    pairs = []
    for name, versions in found.items():
        several = len(versions) > 1
        text = "; ".join(f"{name_text(v)} ({', '.join(n)})" if several else name_text(v) for v, n in versions.items())
        pairs.append((name_text(name), text))
    yield facts("Versions", *pairs)


def _engines(documents: Sequence[Document]) -> Iterator[Block]:
    pairs = [
        (each.name, f"Storm, and the batch engine; {difference_text(engines['largest_difference'])}")
        for each in documents
        if (engines := each.content.get("engines")) is not None
    ]
    if pairs:
        yield facts("Engines", *pairs)


def _made(document: Document) -> Iterator[Block]:
    """The command and the settings that a document was made with."""
    command = document.content.get("command")
    pairs = (
        [] if command is None else [("command", plain(command) if isinstance(command, str) else shlex.join(command))]
    )
    pairs += [(name_text(name), plain(value)) for name, value in document.content.get("settings", {}).items()]
    if pairs:
        yield Fold(f"Settings of {document.name}", (facts(f"Settings of {document.name}", *pairs),))


def _names_section(documents: Sequence[Document]) -> Iterator[Section]:
    """Names that were shortened, in full."""
    names = list(dict.fromkeys(name for each in documents for name in long_names(each.content)))
    names += [each.name for each in documents if len(each.name) > LONGEST_NAME and each.name not in names]
    if not names:
        return
    shown = tuple(f"{name_text(name)[-18:]} {name}" for name in names[:MOST_NAMES])
    blocks: list[Block] = [Listing(shown)]
    if len(names) > MOST_NAMES:
        blocks.append(Paragraph(f"{len(names) - MOST_NAMES} more are in the documents.", "note"))
    yield Section("Long names and texts in full", (Fold(counted(len(names), "text"), tuple(blocks)),), listed=False)
