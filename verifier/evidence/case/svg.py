"""An assurance case as a drawing: SVG that needs nothing but itself, with the shapes of the GSN standard.

Statuses are told by words and colours, defeat by a cross as well. Every text is escaped; whatever stands in a name,
it stays a text.

An assurance case as the YAML that gsn2x reads (J. Wolf, gsn2x; its documentation, chapters "Syntax in YAML",
"Checks" and "Dialectic Extension").

Every text is a double-quoted scalar, so nothing in it can be read as anything else. gsn2x makes links of what looks
like one, wherever it stands; a name from a file shall not become one, so its `://` is parted.

An assurance case on sheets of A4: the drawing cut into parts that fit, so that its texts can be read on paper.

What does not fit on a sheet with all that supports it names its supports and the sheets on which they are. Texts are
7 points high at least; that decides how much fits.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from xml.sax.saxutils import escape

from verifier.base.errors import one_line
from verifier.evidence.case.elements import Case, Element, Kind
from verifier.evidence.case.layout import (
    DIAMOND_PX,
    FONT_PX,
    GAP_PX,
    LINE_PX,
    MARGIN_PX,
    SLANT_PX,
    SOLUTIONS,
    Drawing,
    Edge,
    Maker,
    Placed,
    laid_out,
    shape_of,
    shelf,
    wrapped,
)
from verifier.evidence.status import Status

HEAD_PX, FOOT_PX = 56.0, 96.0
COLOURS = MappingProxyType(
    {
        Status.SUPPORTED: ("#1b6b2f", "#eef7f0"),
        Status.CONDITIONAL: ("#1d4f91", "#eef3fa"),
        Status.VACUOUS: ("#4a4a4a", "#f5f5f5"),
        Status.UNDEVELOPED: ("#4a4a4a", "#f5f5f5"),
        Status.DEFEATED: ("#7a1a68", "#f9eef7"),
        Status.INCONCLUSIVE: ("#7a4d00", "#fdf5e6"),
        Status.VIOLATED: ("#a4161a", "#fdeeee"),
    }
)
"""Status -> colour of its line and words, and of its ground."""
_COUNTER = ("#7a1a68", "#ffffff")
_PLAIN = ("#333333", "#ffffff")
STYLE = """
text{font-family:Verdana,'DejaVu Sans',Arial,sans-serif;font-size:12px;fill:#111}
.id{font-weight:bold}.note{fill:#333}.amlas{fill:#333;font-style:italic}.status{font-weight:bold}
.head{font-size:18px;font-weight:bold}.line{fill:none;stroke:#333;stroke-width:1.2}
.challenges{stroke:#7a1a68;stroke-dasharray:6 4}
"""


def gsn_svg(case: Case) -> str:
    """The drawing of a case, as the text of an SVG file."""
    drawing = laid_out(case)
    width, height = round(drawing.width), round(HEAD_PX + drawing.height + FOOT_PX)
    summary = f"Top goal {case.top.id}: {case.top.told}. {case.top.note}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'role="img" aria-labelledby="case-title case-description">',
        f'<title id="case-title">{escaped(case.title)}</title>',
        f'<desc id="case-description">{escaped(summary)}</desc>',
        *definitions(),
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text class="head" x="24" y="34">{escaped(case.title)}</text>',
        f'<g transform="translate(0 {HEAD_PX:g})">',
        *body(drawing),
        "</g>",
        '<g transform="translate(24 0)">',
        *legend(height - FOOT_PX + 30, max(width, 1000)),
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


_MARKERS = (("supported_by", "#333", "#333"), ("in_context_of", "#fff", "#333"), ("challenges", "#7a1a68", "#7a1a68"))


def _marker(name: str, fill: str, stroke: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 12 10" refX="11" refY="5" markerWidth="11" markerHeight="9" '
        f'orient="auto-start-reverse" markerUnits="userSpaceOnUse"><path d="M1 1L11 5L1 9z" fill="{fill}" '
        f'stroke="{stroke}"/></marker>'
    )


def definitions() -> list[str]:
    """The style and the arrows that a drawing needs once in a document."""
    return [
        f"<style>{STYLE}</style>",
        "<defs>",
        *(_marker(name, fill, stroke) for name, fill, stroke in _MARKERS),
        "</defs>",
    ]


def body(drawing: Drawing) -> Iterator[str]:
    """Lines and shapes of a drawing."""
    yield from (_line(each) for each in drawing.edges)
    for each in drawing.placed:
        yield from _element(each)


def _line(edge: Edge) -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in edge.points)
    extra = " challenges" if edge.kind == "challenges" else ""
    return f'<polyline class="line{extra}" points="{points}" marker-end="url(#{edge.kind})"/>'


def _element(placed: Placed) -> Iterator[str]:
    element = placed.shape.element
    line, ground = _colours(element)
    whole = f"{element.id}: {element.text}" + (f" {element.note}" if element.note else "")
    yield f'<g fill="{ground}" stroke="{line}" stroke-width="1.6"><title>{escaped(whole)}</title>'
    yield from _outline(placed)
    if element.undeveloped:
        x, y = placed.x + placed.shape.width / 2, placed.y + placed.shape.height
        half = DIAMOND_PX / 2
        points = (
            f"{x:.1f},{y:.1f} {x + half:.1f},{y + half:.1f} {x:.1f},{y + 2 * half:.1f} {x - half:.1f},{y + half:.1f}"
        )
        yield f'<polygon points="{points}" fill="#ffffff"/>'
    if element.defeated:
        x, y, right, below = placed.x, placed.y, placed.x + placed.shape.width, placed.y + placed.shape.height
        yield (
            f'<path d="M{x:.1f} {y:.1f}L{right:.1f} {below:.1f}M{right:.1f} {y:.1f}L{x:.1f} {below:.1f}" '
            'stroke="#7a1a68" stroke-opacity="0.3" stroke-width="2.5"/>'
        )
    yield "</g>"
    yield from _words(placed, line)


def _outline(placed: Placed) -> Iterator[str]:
    kind, (x, y) = placed.shape.element.kind, (placed.x, placed.y)
    width, height = placed.shape.width, placed.shape.height
    if kind in (Kind.GOAL, Kind.COUNTER_GOAL):
        yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
    elif kind is Kind.STRATEGY:
        right, below, slant = x + width, y + height, SLANT_PX
        points = ((x + slant, y), (right, y), (right - slant, below), (x, below))
        yield f'<polygon points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}"/>'
    elif kind is Kind.CONTEXT:
        radius = min(height / 2, 18)
        yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:.1f}"/>'
    else:
        half, tall = width / 2, height / 2
        yield f'<ellipse cx="{x + half:.1f}" cy="{y + tall:.1f}" rx="{half:.1f}" ry="{tall:.1f}"/>'


def _words(placed: Placed, colour: str) -> Iterator[str]:
    shape = placed.shape
    round_shape = shape.element.kind not in (Kind.GOAL, Kind.COUNTER_GOAL, Kind.STRATEGY, Kind.CONTEXT)
    middle = placed.x + shape.width / 2
    x = middle if round_shape else placed.x + (SLANT_PX + 10 if shape.element.kind is Kind.STRATEGY else 10)
    anchor = ' text-anchor="middle"' if round_shape else ""
    y = placed.y + (shape.height - len(shape.lines) * LINE_PX) / 2 + FONT_PX
    for number, (text, style) in enumerate(shape.lines):
        ink = f' style="fill:{colour}"' if style == "status" else ""
        yield f'<text class="{style}" x="{x:.1f}" y="{y + number * LINE_PX:.1f}"{anchor}{ink}>{escaped(text)}</text>'
    if shape.element.kind in (Kind.ASSUMPTION, Kind.JUSTIFICATION):
        yield (
            f'<text class="id" x="{placed.x + shape.width * 0.93:.1f}" y="{placed.y + shape.height * 0.95:.1f}">'
            f"{shape.element.kind.value}</text>"
        )


def _colours(element: Element) -> tuple[str, str]:
    if element.status is not None:
        return COLOURS[element.status]
    return _COUNTER if element.kind in (Kind.COUNTER_GOAL, Kind.COUNTER_SOLUTION) else _PLAIN


def legend(y: float, width: float) -> Iterator[str]:
    """What the signs mean, from the height `y` on, in lines of at most `width`."""
    shapes = (
        "Goal: rectangle. Strategy: parallelogram. Context: rounded. Assumption, justification: ellipse with A, J. "
        "Solution: circle. Diamond: undeveloped. Cross: defeated."
    )
    lines = (
        "Filled arrow: supported by. Hollow arrow: in context of. Dashed arrow: challenges. Counter solutions (CSn) "
        "stand at the end; counter goals (CG) name them."
    )
    for line in (*wrapped(shapes, width - 24), *wrapped(lines, width - 24)):
        yield f'<text x="0" y="{y:.1f}">{escaped(line)}</text>'
        y += LINE_PX
    x, y = 0.0, y - 2 * LINE_PX
    for status, (colour, ground) in COLOURS.items():
        colours = f'fill="{ground}" stroke="{colour}" stroke-width="1.6"'
        yield f'<rect x="{x:.1f}" y="{y + 26:.1f}" width="14" height="14" {colours}/>'
        yield f'<text class="status" x="{x + 20:.1f}" y="{y + 37:.1f}" style="fill:{colour}">{status.value}</text>'
        x += 130


def escaped(text: str) -> str:
    """Escaped, on one line, without control characters or marks that turn the writing direction."""
    return escape(one_line(" ".join(text.split())), {'"': "&quot;", "'": "&#39;"})


PAPER_MM, MARGINS_MM = (210.0, 297.0), 12.0
LEAST_PT = 7.0
"""Height of the smallest text."""
PX_PER_MM = FONT_PX / LEAST_PT * 72 / 25.4
"""Pixels of the drawing on a millimetre of paper."""
SHEET_HEAD_PX, SHEET_FOOT_PX = 34.0, 110.0
WIDTH_PX, HEIGHT_PX = ((side - 2 * MARGINS_MM) * PX_PER_MM for side in PAPER_MM)
ROOM_PX = HEIGHT_PX - SHEET_HEAD_PX - SHEET_FOOT_PX
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
            lines.append(f'<g transform="translate(0 {SHEET_HEAD_PX + y:.1f})">')
            lines += [*body(part.drawing), *_pointers(part, page_of), "</g>"]
        lines += [*legend(HEIGHT_PX - SHEET_FOOT_PX + 16, WIDTH_PX), "</svg>"]
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
