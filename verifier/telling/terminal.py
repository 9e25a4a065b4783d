"""Sections of a page on a terminal: plain lines without control characters, as wide as it is or `COLUMNS` says.

Where neither is known, as in a pipe, lines have at most 100 columns.
"""

import itertools
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from verifier.base.errors import one_line
from verifier.telling.blocks import Block, Cell, Figure, Fold, Listing, Paragraph, Row, Section, Table

PLAIN = "\x1b[0m"
HARD_SPACE = "\N{NO-BREAK SPACE}"
SHADES = ((0.95, "\x1b[32m"), (0.8, "\x1b[92m"), (0.6, "\x1b[33m"), (0.3, "\x1b[91m"), (-1.0, "\x1b[31m"))
"""Least share -> colour, warm where little is left."""
FEWEST_COLUMNS = 40
LONGEST_WORD = 20
"""Letters of a word that is never broken in a table."""
DEEPEST = 4
"""Columns by which lines are set in; by more only what goes on in a cell of a table."""
KEPT_WHOLE = re.compile(r"(?<=[<>]=) |(?<=[\d.],) (?=[-\d.einf]+[\])])")
"""Spaces inside targets and intervals, at which cells are not broken."""


def text_of(lines: Iterable[str]) -> str:
    """Lines as a text; those that are too wide go on below, set in by two columns, but for rows of tables."""
    width = columns()
    parts = []
    for line in lines:
        inner = line.lstrip()
        indent = len(line) - len(inner)
        whole = len(line) <= width or "  " in inner or indent > DEEPEST
        parts += [line] if whole else _broken(line, width, " " * (indent + 2))
    return "\n".join(parts) + "\n"


def _broken(text: str, width: int, before: str = "", *, words: bool = False) -> list[str]:
    if len(text) <= width:
        return [text]
    hyphens = words and max(map(len, text.split(" "))) > width  # a name is broken there before anywhere else
    return textwrap.wrap(text, width, subsequent_indent=before, break_long_words=words, break_on_hyphens=hyphens)


def columns() -> int:
    """That lines may have."""
    return max(FEWEST_COLUMNS, shutil.get_terminal_size((100, 24)).columns)


def section_lines(section: Section) -> Iterator[str]:
    """A section under its heading; those below it follow."""
    title = one_line(section.title)
    yield title
    yield "=" * len(title)
    yield from blocks_lines(section.blocks)
    for inner in section.sections:
        yield ""
        yield from section_lines(inner)


def blocks_lines(blocks: Iterable[Block], *, colour: bool = False) -> Iterator[str]:
    """Blocks below each other; what has a caption stands apart, and with `colour` cells with a share are coloured."""
    before = False
    for at, block in enumerate(blocks):
        apart = isinstance(block, Table) and bool(block.caption)
        if at and (apart or before):
            yield ""
        yield from block_lines(block, colour=colour)
        before = apart


def told_text(title: str, blocks: Iterable[Block], remarks: Iterable[str], colour: bool = False) -> str:
    """What a result says: its title, blocks, and remarks as notes; `colour` as for `blocks_lines`."""
    lines = blocks_lines([Paragraph(title), *blocks], colour=colour)
    return text_of([*lines, *(f"note: {one_line(remark)}" for remark in remarks)])


def block_lines(block: Block, *, colour: bool = False) -> Iterator[str]:
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
            yield from aligned(header, rows, shades)
        case Figure():
            yield one_line(block.caption)
        case Fold():
            yield one_line(block.summary)
            yield from blocks_lines(block.blocks, colour=colour)


def _shades(row: Row) -> list[str]:
    shares = (cell.heat if isinstance(cell, Cell) else None for cell in row)
    return ["" if share is None else next(colour for least, colour in SHADES if share >= least) for share in shares]


def _fitting(cells: Sequence[Sequence[str]], longest: int | None = None) -> tuple[list[int], bool]:
    """Widths of columns, the widest of which are narrowed to what their words need, at most `longest`, and whether
    they fit."""
    columns_of = list(zip(*cells, strict=True))
    room = columns() - 2 * len(columns_of) + 2
    widths = [max(map(len, column)) for column in columns_of]
    if sum(widths) <= room:
        return widths, True
    least = [max(len(word) for cell in column for word in cell.split(" ")) for column in columns_of]
    least = [min(width, longest or width) for width in least]
    widths = [max(min(width, room), need) for width, need in zip(widths, least, strict=True)]
    while sum(widths) > room and widths != least:
        widest = max(range(len(widths)), key=lambda k: (widths[k] > least[k], widths[k]))
        widths[widest] -= 1
    return widths, sum(widths) <= room


def aligned(
    header: Sequence[str], rows: Sequence[Sequence[str]], shades: Sequence[Sequence[str]] | None = None
) -> list[str]:
    """Left-aligned columns, two spaces apart, under a header and a rule; `shades` are colours of the cells.

    Where that is wider than `columns`, cells of wide columns are broken at spaces; only if nothing else helps in
    targets and intervals, and at last in words of more than `LONGEST_WORD` letters.
    """
    plain = [list(row) for row in [header, *rows]]
    whole = [[KEPT_WHOLE.sub(HARD_SPACE, cell) for cell in row] for row in plain]
    for cells, longest in ((whole, None), (plain, None), (plain, LONGEST_WORD)):
        widths, fits = _fitting(cells, longest)
        if fits:
            break
    lines = []
    for at, row in enumerate(cells):
        colours = shades[at - 1] if shades and at else [""] * len(row)
        parts = [_broken(cell, width, words=True) for cell, width in zip(row, widths, strict=True)]
        for line in itertools.zip_longest(*parts, fillvalue=""):
            padded = map(str.ljust, line, widths)
            shaded = (f"{shade}{cell}{PLAIN}" if shade else cell for shade, cell in zip(colours, padded, strict=True))
            lines.append("  ".join(shaded).rstrip().replace(HARD_SPACE, " "))
        if at == 0:
            lines.append("  ".join("-" * width for width in widths).rstrip())
    return lines
