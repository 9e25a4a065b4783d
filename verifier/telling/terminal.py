"""Sections of a page on a terminal: plain lines without control characters."""

import itertools
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from verifier.base.errors import one_line
from verifier.telling.blocks import Block, Cell, Figure, Fold, Listing, Paragraph, Row, Section, Table

PLAIN = "\x1b[0m"
SHADES = ((0.95, "\x1b[32m"), (0.8, "\x1b[92m"), (0.6, "\x1b[33m"), (0.3, "\x1b[91m"), (-1.0, "\x1b[31m"))
"""Least share -> colour, warm where little is left."""


def section_lines(section: Section, *, columns: int | None = None) -> Iterator[str]:
    """A section under its heading; those below it follow."""
    title = one_line(section.title)
    yield title
    yield "=" * len(title)
    yield from blocks_lines(section.blocks, columns=columns)
    for inner in section.sections:
        yield ""
        yield from section_lines(inner, columns=columns)


def blocks_lines(blocks: Iterable[Block], *, colour: bool = False, columns: int | None = None) -> Iterator[str]:
    """Blocks below each other; what has a caption stands apart, and with `colour` cells with a share are coloured.
    Tables wider than `columns` have their cells broken."""
    before = False
    for at, block in enumerate(blocks):
        apart = isinstance(block, Table) and bool(block.caption)
        if at and (apart or before):
            yield ""
        yield from block_lines(block, colour=colour, columns=columns)
        before = apart


def block_lines(block: Block, *, colour: bool = False, columns: int | None = None) -> Iterator[str]:
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
            shades = list(map(_shades, block.rows)) if colour else None
            header = [*map(one_line, block.header or ("what", "value"))]
            lines = aligned(header, rows)
            if columns is not None and max(map(len, lines)) > columns:
                lines = narrowed(header, rows, columns)
            elif shades:
                lines = aligned(header, rows, shades)
            yield from lines
        case Figure():
            yield one_line(block.caption)
        case Fold():
            yield one_line(block.summary)
            yield from blocks_lines(block.blocks, colour=colour, columns=columns)


def _shades(row: Row) -> list[str]:
    shares = (cell.heat if isinstance(cell, Cell) else None for cell in row)
    return ["" if share is None else next(colour for least, colour in SHADES if share >= least) for share in shares]


def narrowed(header: Sequence[str], rows: Sequence[Sequence[str]], columns: int) -> list[str]:
    """As `aligned`, with the cells of wide columns broken at spaces until lines have at most so many columns; a word
    that is too long stays whole."""
    cells = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    least = [
        max(len(word) for cell in column for word in (cell.split() or [""])) for column in zip(*cells, strict=True)
    ]
    while sum(widths) + 2 * len(widths) - 2 > columns and widths != least:
        widest = max(range(len(widths)), key=lambda k: (widths[k] > least[k], widths[k]))
        widths[widest] -= 1
    lines = []
    for row in cells:
        parts = [textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False)
                 for cell, width in zip(row, widths, strict=True)]  # fmt: skip
        for each in itertools.zip_longest(*parts, fillvalue=""):
            lines.append("  ".join(map(str.ljust, each, widths)).rstrip())
        if row is header:
            lines.append("  ".join("-" * width for width in widths))
    return lines


def aligned(
    header: Sequence[str], rows: Sequence[Sequence[str]], shades: Sequence[Sequence[str]] | None = None
) -> list[str]:
    """Left-aligned columns, two spaces apart, under a header and a rule; `shades` are colours of the cells."""
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in [header, *rows]]
    for row, colours in zip(padded[1:], shades or (), strict=False):
        row[:] = [f"{shade}{cell}{PLAIN}" if shade else cell for cell, shade in zip(row, colours, strict=True)]
    padded.insert(1, ["-" * width for width in widths])
    return ["  ".join(row).rstrip() for row in padded]
