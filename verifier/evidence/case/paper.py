"""An assurance case on sheets of A4: the drawing cut into parts that fit, so that its texts can be read on paper.

What does not fit on a sheet with all that supports it names its supports and the sheets on which they are. Texts are
7 points high at least; that decides how much fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from verifier.evidence.case.elements import Case, Element
from verifier.evidence.case.layout import (
    FONT_PX,
    GAP_PX,
    MARGIN_PX,
    SOLUTIONS,
    Drawing,
    Maker,
    Placed,
    shape_of,
    shelf,
)
from verifier.evidence.case.svg import body, definitions, escaped, legend

PAPER_MM, MARGINS_MM = (210.0, 297.0), 12.0
LEAST_PT = 7.0
"""Height of the smallest text."""
PX_PER_MM = FONT_PX / LEAST_PT * 72 / 25.4
"""Pixels of the drawing on a millimetre of paper."""
HEAD_PX, FOOT_PX = 34.0, 110.0
WIDTH_PX, HEIGHT_PX = ((side - 2 * MARGINS_MM) * PX_PER_MM for side in PAPER_MM)
ROOM_PX = HEIGHT_PX - HEAD_PX - FOOT_PX
"""Height for a part, between the line on top and what the signs mean."""


@dataclass(frozen=True)
class Part:
    """A piece of the drawing: `stubs` stand on it alone, with what supports them elsewhere."""

    drawing: Drawing
    main: str = ""
    stubs: tuple[str, ...] = ()


def gsn_html(case: Case) -> str:
    """The sheets of a case as an HTML page, to be printed on A4; each with its number and the title."""
    sheets = list(_sheets(_parts(case)))
    page_of = {part.main: number for number, sheet in enumerate(sheets, 1) for part, _ in sheet if part.main}
    title = escaped(case.title)
    size = f'width="{WIDTH_PX / PX_PER_MM:.1f}mm" viewBox="0 0 {WIDTH_PX:.0f} {HEIGHT_PX:.0f}"'
    lines = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f"<title>Assurance case: {title}</title>",
        f"<style>@page{{size:A4;margin:{MARGINS_MM:g}mm}}body{{margin:0}}main svg{{display:block;break-after:page;"
        "max-width:100%;height:auto;margin:auto}main svg:last-child{break-after:auto}h1,.once{position:absolute;"
        "left:-9999px}"
        "</style>\n</head>\n<body>",
        f'<main><h1>Assurance case: {title}</h1>\n<svg class="once" width="0" height="0" aria-hidden="true">',
        *definitions(),
        "</svg>",
    ]
    for number, sheet in enumerate(sheets, 1):
        lines.append(
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="Sheet {number}: {title}">'
        )
        lines.append(f'<text class="id" x="0" y="14">{title}, sheet {number} of {len(sheets)}</text>')
        for part, y in sheet:
            lines.append(f'<g transform="translate(0 {HEAD_PX + y:.1f})">')
            lines += [*body(part.drawing), *_pointers(part, page_of), "</g>"]
        lines += [*legend(HEIGHT_PX - FOOT_PX + 16, WIDTH_PX), "</svg>"]
    return "\n".join([*lines, "</main>\n</body>\n</html>"]) + "\n"


def _parts(case: Case) -> list[Part]:
    """The whole case in parts, the top goal first; every element stands in one of them at least."""
    maker, known = Maker(case), case.by_id
    parts: list[Part] = []
    waiting = [case.top]
    while waiting:
        element = waiting.pop(0)
        whole = maker.block(element)
        if _fits(whole):
            parts.append(Part(whole, element.id))
            continue
        below = [name for name in element.supported_by if known[name].kind not in SOLUTIONS]
        parts += _cut(maker, element, below)
        waiting = [known[name] for name in below] + waiting
    drawn = {placed.shape.element.id for part in parts for placed in part.drawing.placed}
    rest = [shape_of(each) for each in case.elements if each.id not in drawn]
    rows: dict[float, list[Placed]] = {}
    for placed in shelf(rest, WIDTH_PX, 0.0):
        rows.setdefault(placed.y, []).append(placed)
    for y, row in rows.items():
        tall = max(each.shape.height for each in row)
        parts.append(Part(Drawing(WIDTH_PX, y + tall, tuple(row), ()).moved(-MARGIN_PX, -y)))
    return parts


def _fits(drawing: Drawing) -> bool:
    return drawing.width <= WIDTH_PX and drawing.height <= ROOM_PX


def _cut(maker: Maker, element: Element, below: list[str]) -> Iterator[Part]:
    """An element with its supports as stubs, on as many parts as they need."""
    whole = maker.block(element, below)
    if _fits(whole):
        yield Part(whole, element.id, tuple(below))
        return
    around = maker.flanked(element)
    yield Part(around if around.width <= WIDTH_PX else maker.block(element, ()), element.id)
    while below:
        count = len(below)
        while count > 1 and not _fits(maker.block(element, below[:count], again=True)):
            count -= 1
        yield Part(maker.block(element, below[:count], again=True), "", tuple(below[:count]))
        below = below[count:]


def _sheets(parts: list[Part]) -> Iterator[list[tuple[Part, float]]]:
    """Parts with their heights on a sheet, as many on each as have room."""
    sheet: list[tuple[Part, float]] = []
    y = 0.0
    for part in parts:
        if sheet and y + part.drawing.height > ROOM_PX:
            yield sheet
            sheet, y = [], 0.0
        sheet.append((part, y))
        y += part.drawing.height + GAP_PX
    if sheet:
        yield sheet


def _pointers(part: Part, page_of: dict[str, int]) -> Iterator[str]:
    """On which sheet each stub goes on."""
    for placed in part.drawing.placed:
        if placed.shape.element.id in part.stubs:
            x, y = placed.x + placed.shape.width + 8, placed.y + placed.shape.height / 2
            yield f'<text class="id" x="{x:.1f}" y="{y:.1f}">on sheet {page_of[placed.shape.element.id]}</text>'
