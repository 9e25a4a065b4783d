"""How large an element is drawn: its text wrapped, and the shape that holds it.

Widths of characters are estimates for the usual sans-serif fonts, on the wide side, so that text stays within its
shape whatever font a reader has. Shapes are those of the GSN standard: goals are rectangles, strategies
parallelograms, contexts rounded rectangles, assumptions and justifications ellipses with an A or J beside them,
solutions circles; a diamond below marks what is undeveloped.

Where the elements of a case are drawn: what supports a goal stands below it, one step to the right; contexts,
solutions and counter goals stand beside it, and counter solutions beside their counter goals as far as there is room.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

from verifier.base.errors import one_line
from verifier.evidence.case.elements import Case, Element, Kind

FONT_PX, LINE_PX = 12.0, 15.5
MAIN_PX, SIDE_PX, CIRCLE_PX = 300.0, 250.0, 132.0
SLANT_PX, DIAMOND_PX, PADDING_PX = 24.0, 20.0, 10.0
INSCRIBED = (0.78, 0.62)
"""Width and height, as shares, of a rectangle that fits into an ellipse: 0.78^2 + 0.62^2 < 1."""
TALLEST_PX = 500.0
"""Height from which on a shape is made wider."""
LONGEST_TEXT = 700
"""Characters that are drawn of one element; the whole text is in its title."""

_NARROW, _WIDE = frozenset("iljtfrI.,:;'|!()[]{} -/\\\"`"), frozenset("mwMW@%&<>=+~#_")
_HASH = re.compile(r"\b[0-9a-f]{64}\b")


@dataclass(frozen=True)
class Shape:
    """An element at its size.

    Attributes:
        element: what is drawn.
        width, height: in px.
        lines: (text, style) from top to bottom; styles are "id", "text", "note", "amlas" and "status".
    """

    element: Element
    width: float
    height: float
    lines: tuple[tuple[str, str], ...]


@lru_cache(maxsize=10_000)
def shape_of(element: Element) -> Shape:
    """The shape of an element, large enough for its text."""
    if element.kind in (Kind.SOLUTION, Kind.COUNTER_SOLUTION):
        return _circle(element)
    least = SIDE_PX if element.kind in (Kind.CONTEXT, Kind.COUNTER_GOAL) else MAIN_PX
    oval = element.kind in (Kind.ASSUMPTION, Kind.JUSTIFICATION)
    shapes = (_wide(element, (SIDE_PX + 40 if oval else least) * factor, oval) for factor in (1.0, 1.4, 1.8))
    return next((shape for shape in shapes if shape.height <= TALLEST_PX), None) or _wide(element, 2.4 * least, oval)


def _wide(element: Element, width: float, oval: bool) -> Shape:
    """An element of a width, as high as its text needs, in an ellipse or with straight sides."""
    inner = width - 2 * PADDING_PX - (2 * SLANT_PX if element.kind is Kind.STRATEGY else 0)
    lines = _lines(element, width * INSCRIBED[0] if oval else inner)
    high = len(lines) * LINE_PX
    return Shape(element, width, high / INSCRIBED[1] + PADDING_PX if oval else high + 2 * PADDING_PX, lines)


def text_width(text: str) -> float:
    """Width in px of a text at the usual size, rather too large than too small."""
    return FONT_PX * sum(_em(character) for character in text)


def wrapped(text: str, width: float) -> list[str]:
    """Lines of at most `width` px; words that are longer are broken."""
    lines: list[str] = []
    line, used = "", 0.0
    for word in one_line(" ".join(text.split())).split(" "):
        size = text_width(word)
        space = text_width(" ") if line else 0.0
        if line and used + space + size > width:
            lines.append(line)
            line, used, space = "", 0.0, 0.0
        if size > width:
            pieces = _broken(word, width)
            lines += pieces[:-1]
            word, size = pieces[-1], text_width(pieces[-1])
        line, used = f"{line} {word}" if line else word, used + space + size
    return [*lines, line] if line else lines


def _broken(word: str, width: float) -> list[str]:
    pieces, piece, used = [], "", 0.0
    for character in word:
        size = FONT_PX * _em(character)
        if piece and used + size > width:
            cut = max(piece.rfind(mark) for mark in "_-/.:,;") + 1
            cut = cut if cut > len(piece) / 2 else len(piece)
            pieces.append(piece[:cut])
            piece = piece[cut:]
            used = text_width(piece)
        piece, used = piece + character, used + size
    return [*pieces, piece]


def _em(character: str) -> float:
    if character in _NARROW:
        return 0.41
    if character in _WIDE:
        return 0.98
    if unicodedata.east_asian_width(character) in ("W", "F"):
        return 1.05
    if ord(character) > 0x2FF:
        return 0.0 if unicodedata.combining(character) else 0.95
    return 0.73 if character.isupper() else 0.64


def _lines(element: Element, width: float) -> tuple[tuple[str, str], ...]:
    parts = [("id", element.id), ("text", _short(element.text))]
    if element.note:
        parts.append(("note", _short(element.note)))
    if element.kind is Kind.COUNTER_GOAL and element.supported_by:
        parts.append(("note", f"Supported by {', '.join(element.supported_by)}"))
    if element.amlas:
        parts.append(("amlas", f"AMLAS: {element.amlas}"))
    if element.status is not None:
        also = ", defeated" if element.defeated and element.status.value != "defeated" else ""
        parts.append(("status", f"{element.told}{also}"))
    if element.grade is not None:
        parts.append(("note", f"Evidence: {element.grade.value}"))
    parts += [("status", _short(name)) for name in element.review]
    return tuple((line, style) for style, text in parts for line in wrapped(text, width))


def _short(text: str) -> str:
    text = _HASH.sub(lambda match: f"{match[0][:12]}...", text)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."


def _circle(element: Element) -> Shape:
    size = CIRCLE_PX
    while True:
        lines = _lines(element, size * INSCRIBED[0])
        needed = len(lines) * LINE_PX / INSCRIBED[1]
        if needed <= size:
            return Shape(element, size, size, lines)
        size = max(size + 8, math.sqrt(size * needed))


Point: TypeAlias = tuple[float, float]
EdgeKind: TypeAlias = Literal["supported_by", "in_context_of", "challenges"]

GAP_PX, STEP_PX, INDENT_PX = 40.0, 24.0, 36.0
SOLUTIONS = (Kind.SOLUTION, Kind.COUNTER_SOLUTION)


@dataclass(frozen=True)
class Placed:
    """A shape and its upper left corner."""

    shape: Shape
    x: float
    y: float


@dataclass(frozen=True)
class Edge:
    """A line through points, its arrow at the last."""

    kind: EdgeKind
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Drawing:
    """Everything at its place.

    Attributes:
        width, height: in px.
        placed, edges: what is drawn, the element on top first.
    """

    width: float
    height: float
    placed: tuple[Placed, ...]
    edges: tuple[Edge, ...]

    @property
    def anchors(self) -> tuple[Point, Point]:
        """The middle of the upper edge of the element on top, and of its lower one."""
        top = self.placed[0]
        centre = top.x + top.shape.width / 2
        return (centre, top.y), (centre, top.y + top.shape.height)

    def moved(self, x: float, y: float) -> Drawing:
        """The same, so much further right and down."""
        placed = tuple(replace(shape, x=shape.x + x, y=shape.y + y) for shape in self.placed)
        edges = tuple(replace(edge, points=tuple((a + x, b + y) for a, b in edge.points)) for edge in self.edges)
        return Drawing(self.width + x, self.height + y, placed, edges)


class Maker:
    """Blocks of one case; counter solutions stand beside their counter goals as far as `doubts` px."""

    def __init__(self, case: Case, doubts: float) -> None:
        self.known, self._doubts, self._challengers = case.by_id, doubts, case.challengers

    def beside(self, element: Element) -> list[tuple[EdgeKind, Element]]:
        """What stands beside an element: contexts, solutions, counter goals, and what speaks against its contexts."""
        contexts = [self.known[name] for name in element.in_context_of]
        edges: list[tuple[EdgeKind, Element]] = [("in_context_of", context) for context in contexts]
        supports = (self.known[name] for name in element.supported_by)
        edges += [("supported_by", support) for support in supports if support.kind in SOLUTIONS]
        edges += [("challenges", challenger) for challenger in self._challengers(element.id)]
        return edges

    def block(self, element: Element) -> Drawing:
        """An element, what stands beside it, and below it what supports it."""
        head = self.head(element, self.beside(element))
        placed, edges, width, height = list(head.placed), list(head.edges), head.width, head.height
        for child in (self.known[name] for name in element.supported_by):
            if child.kind in SOLUTIONS:
                continue
            inner = self.block(child).moved(INDENT_PX, height + STEP_PX)
            placed += inner.placed
            entry = inner.placed[0]
            trunk = INDENT_PX / 2
            middle = entry.y + entry.shape.height / 2
            left = INDENT_PX + (12.0 if child.kind is Kind.STRATEGY else 0.0)
            way = ((trunk, placed[0].shape.height), (trunk, middle), (left, middle))
            edges += [*inner.edges, Edge("supported_by", way)]
            width, height = max(width, inner.width), inner.height
        return Drawing(width, height, tuple(placed), tuple(edges))

    def head(self, element: Element, around: Sequence[tuple[EdgeKind, Element]] = ()) -> Drawing:
        """An element with this of what stands beside it, to its right."""
        main = shape_of(element)
        placed, edges = [Placed(main, 0, 0)], list[Edge]()
        x, y, width = main.width + GAP_PX, 0.0, main.width
        for kind, other in around:
            shape = shape_of(other)
            edges.append(_beside(kind, main, x, y + shape.height / 2))
            y, right = self._put(Placed(shape, x, y), placed, edges)
            width = max(width, right)
            for against in self._challengers(other.id):
                shape = shape_of(against)
                start = (x + GAP_PX / 2, y + shape.height / 2)
                edges.append(Edge("challenges", ((x + GAP_PX, start[1]), start, (start[0], y - 12))))
                y, right = self._put(Placed(shape, x + GAP_PX, y), placed, edges)
                width = max(width, right)
        height = max(main.height + (DIAMOND_PX if element.undeveloped else 0), y - 12)
        return Drawing(width, height, tuple(placed), tuple(edges))

    def _put(self, counter: Placed, placed: list[Placed], edges: list[Edge]) -> tuple[float, float]:
        """A shape, and counter solutions to the right of their counter goal, as far as there is room; gives where the
        next shape stands, and the right end."""
        placed.append(counter)
        start = counter.x + counter.shape.width, counter.y + counter.shape.height / 2
        x, y, right = start[0] + GAP_PX, counter.y, start[0]
        for name in counter.shape.element.supported_by if counter.shape.element.kind is Kind.COUNTER_GOAL else ():
            shape = shape_of(self.known[name])
            if x + shape.width > self._doubts or y - counter.y + shape.height > 1.3 * TALLEST_PX:
                continue
            placed.append(Placed(shape, x, y))
            edges.append(Edge("supported_by", (start, (x, y + shape.height / 2))))
            y, right = y + shape.height + 12, max(right, x + shape.width)
        return max(y, counter.y + counter.shape.height + 12), right


def _beside(kind: EdgeKind, main: Shape, x: float, middle: float) -> Edge:
    """From the right edge of a main shape to the left edge of another; a challenge goes the other way."""
    edge = main.width - (12.0 if main.element.kind is Kind.STRATEGY else 0.0)
    if kind == "challenges":
        bus, start = x - 12, main.height * 0.8
        return Edge(kind, ((x, middle), (bus, middle), (bus, start), (edge, start)))
    bus, start = x - 24, main.height * 0.45
    return Edge(kind, ((edge, start), (bus, start), (bus, middle), (x, middle)))
