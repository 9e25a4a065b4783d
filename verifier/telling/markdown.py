"""A page as Markdown (GitHub's dialect): text that is shown letter by letter, whatever it holds."""

import re
from collections.abc import Iterator

from verifier.base.errors import one_line
from verifier.telling.blocks import Block, Cell, Figure, Fold, Listing, Page, Paragraph, Photo, Row, Section, Table

SPECIAL = re.compile(r"[\\`*_\[\]<>|~#&$@!]")
LINKS = re.compile(r"(?i)(:)(?=//)|(?<=www)(\.)")
AT_START = re.compile(r"^(\s*)([-+=]|\d+(?=[.)]))")
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")


def markdown_text(page: Page) -> str:
    """The whole file."""
    lines = [f"# {escaped(page.title)}"]
    for section in page.sections:
        lines += section_lines(section, 2)
    return "\n".join(lines) + "\n"


def escaped(text: str, *, begins: bool = True) -> str:
    r"""Text that Markdown shows letter by letter, in one line; `begins` where it stands at the start of a line.

    >>> escaped("a_b <c> | d"), escaped("1. http://x")
    ('a\\_b \\<c\\> \\| d', '1\\. http\\://x')
    """
    shown = SPECIAL.sub(r"\\\g<0>", text if text.isprintable() else one_line(text))
    shown = LINKS.sub(r"\\\g<0>", shown)
    if begins:
        shown = AT_START.sub(_escaped_start, shown)
    return f"\u2068{shown}\u2069" if RIGHT_TO_LEFT.search(shown) else shown


def _escaped_start(match: re.Match[str]) -> str:
    """What would begin a list or a heading at the start of a line."""
    space, mark = match.groups()
    return f"{space}\\{mark}" if not mark.isdigit() else f"{space}{mark}\\"


def section_lines(section: Section, level: int) -> Iterator[str]:
    """A section under a heading of this level, and those below it."""
    verdict = f": **{section.verdict}**" if section.verdict else ""
    yield ""
    yield f"{'#' * min(level, 6)} {escaped(section.title)}{verdict}"
    for block in section.blocks:
        yield from _block(block)
    for inner in section.sections:
        yield from section_lines(inner, level + 1)


def _block(block: Block) -> Iterator[str]:
    yield ""
    match block:
        case Paragraph():
            yield _paragraph(block)
        case Listing():
            for at, item in enumerate(block.items, start=1):
                yield f"{f'{at}.' if block.ordered else '*'} {escaped(item)}"
        case Table():
            yield from _table(block)
        case Figure() | Photo():
            yield f"*Picture in the HTML report: {escaped(block.caption)}*"
        case Fold():
            yield f"**{escaped(block.summary)}**"
            for inner in block.blocks:
                yield from _block(inner)


def _paragraph(block: Paragraph) -> str:
    text = escaped(block.text)
    if block.kind == "overall":
        return f"**{text} {block.verdict}**"
    if block.kind == "verdict" and block.verdict:
        return f"**{block.verdict}**: {text}"
    if block.kind in ("lead", "note"):
        return f"**{text}**" if block.kind == "lead" else f"> {text}"
    return text


def _table(table: Table) -> Iterator[str]:
    header = table.header or ("what", "value")
    if table.caption:
        yield f"**{escaped(table.caption)}**"
        yield ""
    yield f"| {' | '.join(escaped(name) for name in header)} |"
    yield "|" + " --- |" * len(header)
    yield from (_row(row) for row in table.rows)


def _row(row: Row) -> str:
    texts = [escaped(cell.text if isinstance(cell, Cell) else cell, begins=False) or " " for cell in row]
    return f"| {' | '.join(texts)} |"
