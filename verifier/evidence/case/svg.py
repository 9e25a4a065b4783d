"""The elements of an assurance case as SVG that needs nothing but itself, with the shapes of the GSN standard.

Statuses are told by words and colours, defeat by a cross as well. Every text is escaped; whatever stands in a name,
it stays a text.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from xml.sax.saxutils import escape

from verifier.base.errors import one_line
from verifier.evidence.case.elements import Kind
from verifier.evidence.case.layout import DIAMOND_PX, FONT_PX, LINE_PX, SLANT_PX, Drawing, Edge, Placed, wrapped
from verifier.evidence.status import Status

LEAST_PT = 7.0
"""Height of the smallest text on paper."""
PX_PER_MM = FONT_PX / LEAST_PT * 72 / 25.4
"""Pixels of the drawing on a millimetre of paper."""
CLAIM_PX = 12.0
"""How far along its line an assurance claim point stands."""
COLOURS = {
    Status.SUPPORTED: ("#1b6b2f", "#eef7f0"),
    Status.CONDITIONAL: ("#1d4f91", "#eef3fa"),
    Status.VACUOUS: ("#4a4a4a", "#f5f5f5"),
    Status.UNDEVELOPED: ("#4a4a4a", "#f5f5f5"),
    Status.DEFEATED: ("#7a1a68", "#f9eef7"),
    Status.INCONCLUSIVE: ("#7a4d00", "#fdf5e6"),
    Status.VIOLATED: ("#a4161a", "#fdeeee"),
}
"""Status -> colour of its line and words, and of its ground."""
_COUNTER = ("#7a1a68", "#ffffff")
_PLAIN = ("#333333", "#ffffff")
STYLE = """
text{font-family:Verdana,'DejaVu Sans',Arial,sans-serif;font-size:12px;fill:#111}
.id{font-weight:bold}.note{fill:#333}.amlas{fill:#333;font-style:italic}.status{font-weight:bold}
.line{fill:none;stroke:#333;stroke-width:1.2}
.challenges{stroke:#7a1a68;stroke-dasharray:6 4}
"""


_MARKERS = (("supported_by", "#333", "#333"), ("in_context_of", "#fff", "#333"), ("challenges", "#7a1a68", "#7a1a68"))


def definitions() -> list[str]:
    """The style and the arrows that a drawing needs once in a document."""
    markers = (
        f'<marker id="{name}" viewBox="0 0 12 10" refX="11" refY="5" markerWidth="11" markerHeight="9" '
        f'orient="auto-start-reverse" markerUnits="userSpaceOnUse"><path d="M1 1L11 5L1 9z" fill="{fill}" '
        f'stroke="{stroke}"/></marker>'
        for name, fill, stroke in _MARKERS
    )
    return [f"<style>{STYLE}</style>", "<defs>", *markers, "</defs>"]


def body(drawing: Drawing) -> Iterator[str]:
    """Lines and shapes of a drawing; what points at a file is a link to it from a folder beside it."""
    yield from (_line(edge) for edge in drawing.edges)
    for placed in drawing.placed:
        link = escaped(f"../{placed.shape.element.url}")
        linked = (f'<a href="{link}">', *_element(placed), "</a>")
        yield from linked if placed.shape.element.url else _element(placed)


def claim_points(drawing: Drawing, points: Mapping[str, Mapping[str, Sequence[str]]]) -> Iterator[str]:
    """Assurance claim points: black squares on the lines that they are on, or at the corner of their element.

    Beside a line that goes sideways their names are written downwards: there is no room for them across.
    """
    at = {placed.shape.element.id: placed for placed in drawing.placed}
    lines = [edge.points for edge in drawing.edges if edge.kind == "supported_by"]
    lines.sort(key=lambda line: line[0][1])  # from the top
    for placed in (placed for placed in drawing.placed if placed.shape.element.id in points):
        marks: dict[tuple[float, float, float], list[str]] = {}
        for name, related in points[placed.shape.element.id].items():
            near = [at[other] for other in related if other in at]
            starting = (line for line in lines if _touches(placed, line[0]))
            ends = [line for line in starting if any(_touches(other, line[-1]) for other in near)]
            if placed in near:
                marks.setdefault((placed.x + placed.shape.width - 5, placed.y + 5, 0.0), []).append(name)
            elif ends:
                sideways = ends[0][1][0] - ends[0][0][0]
                marks.setdefault((*_along(ends[0], CLAIM_PX), sideways), []).append(name)
        for (x, y, sideways), names in marks.items():
            mark = f'<rect x="{round(x - 5, 1)}" y="{round(y - 5, 1)}" width="10" height="10" fill="#111"/>'
            a, b, turned = round(x + 8, 1), round(y + 4, 1), ""
            if sideways:
                a, b = round(x - math.copysign(4, sideways) - 4, 1), round(y + 8, 1)
                turned = f' transform="rotate(90 {a} {b})"'
            label = f'<text class="id" x="{a}" y="{b}"{turned}>{", ".join(names)}</text>'
            yield f"<g>{mark}{label}</g>"


def _touches(placed: Placed, point: tuple[float, float]) -> bool:
    (x, y), shape = point, placed.shape
    return -13 <= x - placed.x <= shape.width + 13 and -2 <= y - placed.y <= shape.height + 2


def _along(line: Sequence[tuple[float, float]], far: float) -> tuple[float, float]:
    """The point of a line that is so far from its start, or its end where it is shorter."""
    for (x, y), (a, b) in pairwise(line):
        length = math.dist((x, y), (a, b))
        if far <= length:
            return x + (a - x) * far / length, y + (b - y) * far / length
        far -= length
    return line[-1]


def _line(edge: Edge) -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in edge.points)
    extra = " challenges" if edge.kind == "challenges" else ""
    return f'<polyline class="line{extra}" points="{points}" marker-end="url(#{edge.kind})"/>'


def _element(placed: Placed) -> Iterator[str]:
    element = placed.shape.element
    plain = _COUNTER if element.kind in (Kind.COUNTER_GOAL, Kind.COUNTER_SOLUTION) else _PLAIN
    line, ground = plain if element.status is None else COLOURS[element.status]
    whole = f"{element.id}: {element.text}" + (f" {element.note}" if element.note else "")
    yield f'<g fill="{ground}" stroke="{line}" stroke-width="1.6"><title>{escaped(whole)}</title>'
    yield from _outline(placed)
    if element.undeveloped:
        x, y = placed.x + placed.shape.width / 2, placed.y + placed.shape.height
        half = DIAMOND_PX / 2
        yield _polygon(((x, y), (x + half, y + half), (x, y + 2 * half), (x - half, y + half)), ' fill="#ffffff"')
    if element.defeated:
        x, y, right, below = placed.x, placed.y, placed.x + placed.shape.width, placed.y + placed.shape.height
        yield (
            f'<path d="M{x:.1f} {y:.1f}L{right:.1f} {below:.1f}M{right:.1f} {y:.1f}L{x:.1f} {below:.1f}" '
            'stroke="#7a1a68" stroke-opacity="0.3" stroke-width="2.5"/>'
        )
    yield "</g>"
    yield from _words(placed, line)


def _polygon(points: Sequence[tuple[float, float]], more: str = "") -> str:
    return f'<polygon points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"{more}/>'


def _outline(placed: Placed) -> Iterator[str]:
    kind, (x, y) = placed.shape.element.kind, (placed.x, placed.y)
    width, height = placed.shape.width, placed.shape.height
    if kind in (Kind.GOAL, Kind.COUNTER_GOAL):
        yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
    elif kind is Kind.STRATEGY:
        right, below, slant = x + width, y + height, SLANT_PX
        yield _polygon(((x + slant, y), (right, y), (right - slant, below), (x, below)))
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


def legend(y: float, width: float) -> Iterator[str]:
    """What the signs mean, from the height `y` on, in lines of at most `width`."""
    shapes = (
        "Goal: rectangle. Strategy: parallelogram. Context: rounded. Assumption, justification: ellipse with A, J. "
        "Solution: circle. Diamond: undeveloped. Cross: defeated."
    )
    lines = (
        "Filled arrow: supported by. Hollow arrow: in context of. Dashed arrow: challenges. Black square: assurance "
        "claim point (ACP). Counter goals (CG) name their counter solutions (CSn), which may stand elsewhere."
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
