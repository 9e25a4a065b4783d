"""An assurance case on sheets of A4, landscape: an index, then every module, so that its texts can be read on paper.

A sheet has elements of one module, `MOST_NODES` at most, in texts of 7 points at least; that decides how much fits.
What is argued elsewhere stands as a stub that names the sheet, and its module where that is another one (an away
goal). Doubts stand beside what they challenge; solutions lead to their files.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from verifier.evidence.case.elements import Case, Element, all_below, modules_of, points_of
from verifier.evidence.case.layout import DIAMOND_PX, GAP_PX, SOLUTIONS, Drawing, Edge, Maker
from verifier.evidence.case.svg import LEAST_PT, PX_PER_MM, body, claim_points, definitions, escaped, legend

PAPER_MM, MARGINS_MM = (297.0, 210.0), 12.0
MOST_NODES = 15
HEAD_PX, FOOT_PX, POINTER_PX = 34.0, 96.0, 18.0
EDGE_PX = 1.0
"""Half of the line around an element."""
PAGE_PX, HEIGHT_PX = ((side - 2 * MARGINS_MM) * PX_PER_MM for side in PAPER_MM)
WIDTH_PX, ROOM_PX = PAGE_PX - 2 * EDGE_PX, HEIGHT_PX - HEAD_PX - FOOT_PX
"""Width and height for elements, between the line on top and what the signs mean."""
LONGEST_CLAIM = 200
"""Characters of a claim in the index."""


@dataclass(frozen=True)
class Part:
    """A piece of the drawing.

    Attributes:
        main: identifier of the element that is argued here; empty where it only goes on here.
        stubs: what stands here alone, and is argued elsewhere.
    """

    drawing: Drawing
    main: str = ""
    stubs: tuple[str, ...] = ()

    @property
    def nodes(self) -> int:
        """How many elements are drawn."""
        return len(self.drawing.placed)


@dataclass
class Sheet:
    """The parts of a module on one sheet, each with its upper left corner."""

    module: str
    parts: list[tuple[Part, float, float]] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0
    bottom: float = 0.0

    def takes(self, part: Part) -> bool:
        """Put a part where there is room; whether there is."""
        if self.parts and sum(part.nodes for part, _, _ in self.parts) + part.nodes > MOST_NODES:
            return False
        x, y = (self.x, self.y) if self.x + part.drawing.width <= WIDTH_PX else (0.0, self.bottom)
        if self.parts and y + part.drawing.height > ROOM_PX:
            return False
        self.parts.append((part, x, y))
        self.x, self.y = x + part.drawing.width + GAP_PX, y
        self.bottom = max(self.bottom, y + part.drawing.height + GAP_PX)
        return True


def gsn_html(case: Case, identity: str = "") -> str:
    """The sheets of a case as an HTML page, to be printed on A4; `identity` of the document stands on each."""
    plan, title = _Plan.of(case), escaped(case.title)
    size = f'width="{round(PAGE_PX / PX_PER_MM, 1)}mm" viewBox="0 0 {round(PAGE_PX)} {round(HEIGHT_PX)}"'
    lines = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f"<title>{title}</title>",
        f"<style>@page{{size:A4 landscape;margin:{MARGINS_MM}mm}}body{{margin:0}}main svg{{display:block;"
        "break-before:page;max-width:100%;height:auto;margin:auto}main svg.once{break-before:auto;position:absolute;"
        "left:-9999px}h1{font:bold 12pt sans-serif}table{border-collapse:collapse;width:100%}"
        f"td,th{{border:1px solid #999;padding:2px 4px;text-align:left;vertical-align:top}}"
        f"td,th,p{{font:{LEAST_PT + 1}pt sans-serif}}"
        "td:first-child{white-space:nowrap}thead{break-after:avoid}tr{break-inside:avoid}</style>\n</head>\n<body>",
        f'<main><h1>{title}</h1>\n<p>{escaped(identity)}</p>\n<svg class="once" width="0" height="0" '
        'aria-hidden="true">',
        *definitions(),
        "</svg>",
        *_index(case, plan),
    ]
    for number, (told, drawn) in enumerate(plan.drawn(identity), 1):
        head = f'<svg id="sheet{number}" xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{told}">'
        lines += [head, *drawn, "</svg>"]
    return "\n".join([*lines, "</main>\n</body>\n</html>"]) + "\n"


def gsn_svg(case: Case) -> str:
    """The same sheets, one below the other, as the text of an SVG file that needs nothing but itself."""
    plan, width = _Plan.of(case), round(PAGE_PX)
    height, summary = round(HEIGHT_PX) * len(plan.sheets), f"Top goal {case.top.id}: {case.top.told}. {case.top.note}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'role="img" aria-labelledby="case-title case-description">',
        f'<title id="case-title">{escaped(case.title)}</title>',
        f'<desc id="case-description">{escaped(summary)}</desc>',
        *definitions(),
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for number, (_, drawn) in enumerate(plan.drawn(""), 1):
        head = f'<g id="sheet{number}" transform="translate(0 {round(HEIGHT_PX) * (number - 1)})">'
        lines += [head, *drawn, "</g>"]
    return "\n".join([*lines, "</svg>"]) + "\n"


@dataclass(frozen=True)
class _Plan:
    """What is drawn where.

    Attributes:
        homes: element -> its module.
        numbers: what is argued somewhere -> number of the sheet, from 1.
    """

    case: Case
    sheets: tuple[Sheet, ...]
    homes: Mapping[str, str]
    numbers: Mapping[str, int]

    @classmethod
    def of(cls, case: Case) -> Self:
        modules, maker = modules_of(case), Maker(case, WIDTH_PX)
        parts = {name: _parts(case, maker, elements) for name, elements in modules.items()}
        drawn = {placed.shape.element.id for row in parts.values() for part in row for placed in part.drawing.placed}
        for name, elements in modules.items():
            rest = (element for element in elements if element.id not in drawn)
            parts[name] += [Part(maker.head(element, maker.beside(element))) for element in rest]
        sheets = tuple(sheet for name, some in parts.items() for sheet in _sheets(name, some))
        numbers = {part.main: at for at, sheet in enumerate(sheets, 1) for part, _, _ in sheet.parts if part.main}
        homes = {element.id: name for name, elements in modules.items() for element in elements}
        return cls(case, sheets, homes, numbers)

    def drawn(self, identity: str) -> Iterator[tuple[str, list[str]]]:
        """What each sheet is called, and its markup."""
        points, signs = points_of(self.case), list(legend(HEIGHT_PX - FOOT_PX + 16, WIDTH_PX))
        for number, sheet in enumerate(self.sheets, 1):
            told = f"{escaped(self.case.title)}, module {escaped(sheet.module)}, sheet {number} of {len(self.sheets)}"
            lines = [f'<text class="id" x="0" y="14">{told}</text>']
            lines.append(f'<text x="{round(WIDTH_PX)}" y="14" text-anchor="end">{escaped(identity)}</text>')
            for part, x, y in sheet.parts:
                lines.append(f'<g transform="translate({round(x + EDGE_PX, 1)} {round(HEAD_PX + y, 1)})">')
                lines += [*body(part.drawing), *claim_points(part.drawing, points)]
                lines += [*_pointers(part, sheet.module, self), "</g>"]
            yield told, [*lines, *signs]


def _index(case: Case, plan: _Plan) -> Iterator[str]:
    """Every module with the claims that it begins with, its sheets, and what it refers to in others."""
    homes, numbers = plan.homes, plan.numbers
    yield "<table><thead><tr><th>module</th><th>claims</th><th>sheets</th><th>refers to</th></tr></thead><tbody>"
    for name in dict.fromkeys(homes.values()):
        mine = [element for element in case.elements if homes[element.id] == name]
        below = {one for element in mine for one in element.supported_by}
        heads = [element for element in mine if element.status is not None and element.id not in below]
        claims = "<br>".join(f"{one.id}, {escaped(one.told)}: {escaped(one.text[:LONGEST_CLAIM])}" for one in heads)
        on = [at for at, sheet in enumerate(plan.sheets, 1) if sheet.module == name]
        links = ", ".join(f'<a href="#sheet{at}">{at}</a>' for at in on)
        away = [one for element in mine for one in element.supported_by if homes[one] != name and one in numbers]
        told = ", ".join(f"{one} in {homes[one]}, sheet {numbers[one]}" for one in dict.fromkeys(away)) or "-"
        yield f"<tr><td>{escaped(name)}</td><td>{claims}</td><td>{links}</td><td>{told}</td></tr>"
    yield "</tbody></table>"


def _sheets(module: str, parts: Sequence[Part]) -> Iterator[Sheet]:
    """All parts of a module, as many on each sheet as have room."""
    sheet = Sheet(module)
    for part in parts:
        if not sheet.takes(part):
            yield sheet
            sheet = Sheet(module)
            sheet.takes(part)
    if sheet.parts:
        yield sheet


def _parts(case: Case, maker: Maker, elements: Sequence[Element]) -> list[Part]:
    """A module in parts; of a stub with nothing beside it or below there is no more than the stub."""
    known, mine = case.by_id, {element.id for element in elements}
    below = {name for element in elements for name in element.supported_by}
    waiting = [element for element in elements if element.status is not None and element.id not in below]
    parts: list[Part] = []
    while waiting:
        element = waiting.pop(0)
        inner = [name for name in element.supported_by if known[name].kind not in SOLUTIONS]
        whole = Part(maker.block(element), element.id)
        argued = {name for name in all_below(case, [element.id]) if known[name].status is not None}
        if _fits(whole) and argued <= mine:
            parts.append(whole)
            continue
        parts += _cut(maker, element, inner)
        more = (known[name] for name in inner if name in mine)
        waiting = [element for element in more if element.supported_by or maker.beside(element)] + waiting
    return parts


def _fits(part: Part) -> bool:
    return part.drawing.width <= WIDTH_PX and part.drawing.height <= ROOM_PX and part.nodes <= MOST_NODES


def _cut(maker: Maker, element: Element, inner: Sequence[str]) -> Iterator[Part]:
    """An element, with what stands beside it and then its supports as stubs, on as many parts as they need."""
    around, first = maker.beside(element), True
    while around or inner or first:
        count = min(len(around), MOST_NODES - 1)
        while count > 1 and not _fits(Part(maker.head(element, around[:count]))):
            count -= 1
        drawn, around = maker.head(element, around[:count]), around[count:]
        stubs, row = ((), drawn) if around else _row(maker, drawn, inner)
        yield Part(row, element.id if first else "", stubs)
        inner, first = inner[len(stubs) :], False


def _row(maker: Maker, head: Drawing, inner: Sequence[str]) -> tuple[tuple[str, ...], Drawing]:
    """As many stubs in a row under an element as have room, one at least where it stands alone."""
    shapes = [maker.head(maker.known[name]) for name in inner[:MOST_NODES]]
    for count in range(min(len(inner), MOST_NODES - len(head.placed)), 0, -1):
        drawn = _under(head, shapes[:count])
        if _fits(Part(drawn)):
            return tuple(inner[:count]), drawn
    return ((inner[0],), shapes[0]) if inner and len(head.placed) == 1 else ((), head)


def _under(head: Drawing, stubs: Sequence[Drawing]) -> Drawing:
    """Stubs in a row under an element, with the lines to them."""
    row = sum(stub.width for stub in stubs) + GAP_PX * (len(stubs) - 1)
    width, start = max(row, head.width), head.anchors[1]
    middle = min(max(start[0] - row / 2, 0.0), width - row)
    top, line = head.height + GAP_PX, head.height + GAP_PX / 2
    placed, edges, x, height = list(head.placed), list(head.edges), middle, 0.0
    for stub in stubs:
        moved = stub.moved(x, top)
        end = moved.anchors[0]
        placed += moved.placed
        edges.append(Edge("supported_by", (start, (start[0], line), (end[0], line), end)))
        x, height = moved.width + GAP_PX, max(height, moved.height)
    return replace(head, width=width, height=height + POINTER_PX, placed=tuple(placed), edges=tuple(edges))


def _pointers(part: Part, module: str, plan: _Plan) -> Iterator[str]:
    """On which sheet each stub goes on, and in which module where that is another."""
    homes, numbers = plan.homes, plan.numbers
    for placed in part.drawing.placed:
        name = placed.shape.element.id
        if name in part.stubs and name in numbers:
            mark = DIAMOND_PX if placed.shape.element.undeveloped else 0.0
            x, y = placed.x + placed.shape.width, mark + placed.y + placed.shape.height + POINTER_PX - 4
            away = "" if homes[name] == module else f"in {escaped(homes[name])}, "
            text = f"{away}on sheet {numbers[name]}"
            at = f'x="{x:.1f}" y="{y:.1f}" text-anchor="end"'
            yield f'<a href="#sheet{numbers[name]}"><text class="id" {at}>{text}</text></a>'
