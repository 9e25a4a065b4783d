"""Sections of a page on a terminal: plain lines without control characters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from verifier.base.errors import one_line
from verifier.telling.blocks import Block, Cell, Figure, Fold, Listing, Paragraph, Section, Table


def section_lines(section: Section) -> Iterator[str]:
    """A section under its heading; those below it follow."""
    title = one_line(section.title)
    yield title
    yield "=" * len(title)
    yield from blocks_lines(section.blocks)
    for inner in section.sections:
        yield ""
        yield from section_lines(inner)


def blocks_lines(blocks: Iterable[Block]) -> Iterator[str]:
    """Blocks below each other; what has a caption stands apart."""
    before = False
    for at, block in enumerate(blocks):
        apart = isinstance(block, Table) and bool(block.caption)
        if at and (apart or before):
            yield ""
        yield from block_lines(block)
        before = apart


def block_lines(block: Block) -> Iterator[str]:
    """A paragraph in one line, a list, or a table below its caption; of a picture its caption."""
    match block:
        case Paragraph():
            yield one_line(block.text)
        case Listing():
            for at, item in enumerate(block.items, start=1):
                yield f"{f'{at}.' if block.ordered else '*'} {one_line(item)}"
        case Table():
            if block.caption:
                yield one_line(block.caption)
            rows = [[one_line(cell.text if isinstance(cell, Cell) else cell) for cell in row] for row in block.rows]
            yield from aligned([*map(one_line, block.header or ("what", "value"))], rows)
        case Figure():
            yield one_line(block.caption)
        case Fold():
            yield one_line(block.summary)
            yield from blocks_lines(block.blocks)


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Left-aligned columns, two spaces apart, under a header and a rule."""
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [header, *rows]]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return [line.rstrip() for line in lines]
