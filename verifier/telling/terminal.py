"""Sections of a page on a terminal: plain lines without control characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from verifier.base.errors import one_line
from verifier.telling.blocks import Block, Cell, Figure, Fold, Listing, Paragraph, Section, Table


def section_lines(section: Section) -> Iterator[str]:
    """A section under its heading; those below it follow."""
    title = one_line(section.title)
    yield title
    yield "=" * len(title)
    for block in section.blocks:
        yield from block_lines(block)
    for inner in section.sections:
        yield ""
        yield from section_lines(inner)


def block_lines(block: Block) -> Iterator[str]:
    """A paragraph in one line, a list, or a table; of a picture its caption."""
    match block:
        case Paragraph():
            yield one_line(block.text)
        case Listing():
            for at, item in enumerate(block.items, start=1):
                yield f"{f'{at}.' if block.ordered else '*'} {one_line(item)}"
        case Table():
            rows = [[one_line(cell.text if isinstance(cell, Cell) else cell) for cell in row] for row in block.rows]
            yield from aligned([*map(one_line, block.header or ("what", "value"))], rows)
        case Figure():
            yield one_line(block.caption)
        case Fold():
            yield one_line(block.summary)
            for inner in block.blocks:
                yield from block_lines(inner)


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Left-aligned columns, two spaces apart, under a header and a rule."""
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [header, *rows]]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return [line.rstrip() for line in lines]
