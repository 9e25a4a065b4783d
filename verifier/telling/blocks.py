"""What a page is made of, whatever it is written in: sections of paragraphs, lists, tables and pictures.

All text here is plain text as it stands in the documents. Only the writers (`html`, `markdown`) know what has to be
escaped, and they escape everything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

LONGEST_NAME = 120
"""Characters of a name that are shown where it is used; longer ones are listed in full at the end of the page."""


def name_text(name: object) -> str:
    """A name, shortened where it is very long so that two different ones stay different.

    >>> name_text("ped"), name_text("n" * 10_000)[-44:]
    ('ped', 'nnnn... (10000 characters, SHA-256 f2ac4367)')
    """
    text = str(name)
    if len(text) <= LONGEST_NAME:
        return text
    return f"{text[: LONGEST_NAME - 40]}... ({len(text)} characters, SHA-256 {_digest(text)})"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table that is more than text.

    Attributes:
        order: what the column is sorted by; None: by the text.
        verdict: a verdict to mark the text as, or "".
        heat: share from 0 to 1 that the background shows; None for none.
        link: the id of a section that the text leads to, or "".
    """

    text: str
    order: float | None = None
    verdict: str = ""
    heat: float | None = None
    link: str = ""


Row: TypeAlias = "tuple[Cell | str, ...]"


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first cell of a row is its heading.

    Attributes:
        caption: what the rows are; empty where a paragraph before it says it.
        header: names of the columns; empty for a table of facts, whose rows are a name and its value.
        rows: each as long as the header.
        sortable: whether a reader may want another order.
        side: whether another table may stand beside it.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[Row, ...]
    sortable: bool = False
    side: bool = False

    def __post_init__(self) -> None:
        width = len(self.header) or 2
        if any(len(row) != width for row in self.rows):
            raise ValueError(f"table {self.caption!r}: every row needs {width} cells")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph.

    Attributes:
        kind: "" for prose, "lead" for what must be read first, "note" for what qualifies a number, "formula",
            "verdict" with the verdict before it, or "overall" with the verdict after it.
        verdict: that verdict, which a condition may follow behind a comma, or "".
    """

    text: str
    kind: str = ""
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """A list; `ordered` where the order says something."""

    items: tuple[str, ...]
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture.

    Attributes:
        svg: an `<svg>` element made by `verifier.telling.pictures`, its texts escaped.
        caption: what it shows; where there is no picture, this stands alone.
    """

    svg: str
    caption: str


@dataclass(frozen=True, slots=True)
class Photo:
    """A photograph as the bytes of a JPEG file: `told` to those who do not see it, and its caption."""

    jpeg: bytes
    told: str
    caption: str


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks that are shown on request.

    Attributes:
        summary: what there is to be shown.
        printed: whether they are also on paper; what a picture shows is not.
    """

    summary: str
    blocks: tuple[Block, ...]
    printed: bool = True


Block: TypeAlias = "Paragraph | Listing | Table | Figure | Photo | Fold"


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it.

    Attributes:
        sections: below it, after the blocks.
        id: by which others lead to it; "" for none.
        verdict: shown beside the heading, with its condition, or "".
        listed: whether the table of contents names it.
    """

    title: str
    blocks: tuple[Block, ...] = ()
    sections: tuple[Section, ...] = ()
    id: str = ""
    verdict: str = ""
    listed: bool = True


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report.

    Attributes:
        source: what it was made from.
        identity: what tells it from all others, on every printed page; empty for the title alone.
    """

    title: str
    sections: tuple[Section, ...]
    source: str = "the documents listed under Provenance"
    identity: str = ""


def facts(caption: str, *pairs: tuple[str, Cell | str] | None) -> Table:
    """A table of names and values, without those that are None."""
    return Table(caption, (), tuple(pair for pair in pairs if pair is not None))


def told(blocks: Iterable[Block | str]) -> tuple[Block, ...]:
    """Blocks, of which a text is a paragraph."""
    return tuple(Paragraph(block) if isinstance(block, str) else block for block in blocks)
