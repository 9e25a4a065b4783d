"""Where the elements of a case are drawn: what supports a goal stands below it, one step to the right; contexts,
solutions and counter goals stand beside it, and counter solutions beside their counter goals as far as there is room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from verifier.evidence.case.elements import Case, Element, Kind
from verifier.evidence.case.shapes import DIAMOND_PX, TALLEST_PX, Shape, shape_of

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
        return Drawing(
            self.width + x,
            self.height + y,
            tuple(replace(shape, x=shape.x + x, y=shape.y + y) for shape in self.placed),
            tuple(replace(edge, points=tuple((a + x, b + y) for a, b in edge.points)) for edge in self.edges),
        )


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
            placed.append(Placed(shape, x, y))
            edges.append(_beside(kind, main, x, y + shape.height / 2))
            bottom, right = self._solutions(placed[-1], placed, edges)
            y += max(shape.height, bottom - y) + 12
            width = max(width, right)
            for against in self._challengers(other.id):
                shape = shape_of(against)
                placed.append(Placed(shape, x + GAP_PX, y))
                start = (x + GAP_PX / 2, y + shape.height / 2)
                edges.append(Edge("challenges", ((x + GAP_PX, start[1]), start, (start[0], y - 12))))
                bottom, right = self._solutions(placed[-1], placed, edges)
                y += max(shape.height, bottom - y) + 12
                width = max(width, right)
        height = max(main.height + (DIAMOND_PX if element.undeveloped else 0), y - 12)
        return Drawing(width, height, tuple(placed), tuple(edges))

    def _solutions(self, counter: Placed, placed: list[Placed], edges: list[Edge]) -> tuple[float, float]:
        """Counter solutions to the right of their counter goal, as far as there is room; gives bottom and right."""
        start = counter.x + counter.shape.width, counter.y + counter.shape.height / 2
        x, y, right = start[0] + GAP_PX, counter.y, start[0]
        for name in counter.shape.element.supported_by if counter.shape.element.kind is Kind.COUNTER_GOAL else ():
            shape = shape_of(self.known[name])
            if x + shape.width > self._doubts or y - counter.y + shape.height > 1.3 * TALLEST_PX:
                continue
            placed.append(Placed(shape, x, y))
            edges.append(Edge("supported_by", (start, (x, y + shape.height / 2))))
            y, right = y + shape.height + 12, max(right, x + shape.width)
        return y - 12, right


def _beside(kind: EdgeKind, main: Shape, x: float, middle: float) -> Edge:
    """From the right edge of a main shape to the left edge of another; a challenge goes the other way."""
    edge = main.width - (12.0 if main.element.kind is Kind.STRATEGY else 0.0)
    if kind == "challenges":
        bus, start = x - 12, main.height * 0.8
        return Edge(kind, ((x, middle), (bus, middle), (bus, start), (edge, start)))
    bus, start = x - 24, main.height * 0.45
    return Edge(kind, ((edge, start), (bus, start), (bus, middle), (x, middle)))
