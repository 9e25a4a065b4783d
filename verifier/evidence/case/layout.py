"""Where the elements of a case are drawn: what supports a goal stands below it, one step to the right; contexts,
solutions and counter goals stand beside it, and counter solutions beside their counter goals as far as there is room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
        placed, edges: what is drawn.
        anchors: of the element on top: the middle of its upper edge, and of its lower one.
    """

    width: float
    height: float
    placed: tuple[Placed, ...]
    edges: tuple[Edge, ...]
    anchors: tuple[Point, Point] = field(default=((0.0, 0.0), (0.0, 0.0)))

    def moved(self, x: float, y: float) -> Drawing:
        """The same, so much further right and down."""
        return Drawing(
            self.width + x,
            self.height + y,
            tuple(replace(shape, x=shape.x + x, y=shape.y + y) for shape in self.placed),
            tuple(replace(edge, points=tuple((a + x, b + y) for a, b in edge.points)) for edge in self.edges),
            tuple((a + x, b + y) for a, b in self.anchors),  # type: ignore[arg-type]
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

    def block(self, element: Element, stubs: Sequence[str] | None = None, *, again: bool = False) -> Drawing:
        """An element, what stands beside it, and below it what supports it.

        Args:
            element: on top.
            stubs: of what supports it only these, each alone; None for all, with what belongs to them.
            again: whether what stands beside it is drawn elsewhere.
        """
        main = shape_of(element)
        placed, edges, side_width, side_height = self._side(main, [] if again else self.beside(element))
        height = max(main.height + (DIAMOND_PX if element.undeveloped else 0), side_height)
        width = main.width + (GAP_PX + side_width if side_width else 0)
        placed.insert(0, Placed(main, 0, 0))
        for child in (self.known[name] for name in (element.supported_by if stubs is None else stubs)):
            if child.kind in SOLUTIONS:
                continue
            inner = self.block(child) if stubs is None else self.block(child, (), again=True)
            inner = inner.moved(INDENT_PX, height + STEP_PX)
            placed += inner.placed
            entry = inner.placed[0]
            trunk = INDENT_PX / 2
            middle = entry.y + entry.shape.height / 2
            left = INDENT_PX + (12.0 if child.kind is Kind.STRATEGY else 0.0)
            edges += [*inner.edges, Edge("supported_by", ((trunk, main.height), (trunk, middle), (left, middle)))]
            width, height = max(width, inner.width), inner.height
        centre = main.width / 2
        return Drawing(width, height, tuple(placed), tuple(edges), ((centre, 0.0), (centre, main.height)))

    def flanked(self, element: Element, around: Sequence[tuple[EdgeKind, Element]] | None = None) -> Drawing:
        """An element with what stands beside it, or `around` of that, on both sides, about equally high; counter
        goals on the right."""
        main, around = shape_of(element), self.beside(element) if around is None else list(around)
        heights = [0.0 if kind == "challenges" else shape_of(element).height + 12 for kind, element in around]
        split = min(range(len(around) + 1), key=lambda at: abs(sum(heights[:at]) - sum(heights[at:])))
        left = [pair for pair in around[:split] if pair[0] != "challenges"]
        right = around[split:] + [pair for pair in around[:split] if pair[0] == "challenges"]
        placed, edges, right_width, right_height = self._side(main, right)
        mirrored, lines, left_width, left_height = self._side(main, left)
        shift = left_width + GAP_PX if left else 0.0
        height = max(main.height, left_height, right_height)
        top = (height - main.height) / 2
        body = [Placed(main, shift, top)]
        up_right, up_left = (height - right_height) / 2, (height - left_height) / 2
        body += [replace(shape, x=shape.x + shift, y=shape.y + up_right) for shape in placed]
        edges = [_shifted(edge, shift, up_right, main, top, False) for edge in edges]
        for shape in mirrored:
            x = shift + main.width - shape.x - shape.shape.width
            body.append(replace(shape, x=x, y=shape.y + up_left))
        edges += [_shifted(line, shift, up_left, main, top, True) for line in lines]
        centre = shift + main.width / 2
        width = shift + main.width + (GAP_PX + right_width if right_width else 0)
        return Drawing(width, height, tuple(body), tuple(edges), ((centre, top), (centre, top + main.height)))

    def _side(
        self, main: Shape, around: Sequence[tuple[EdgeKind, Element]]
    ) -> tuple[list[Placed], list[Edge], float, float]:
        """Shapes beside a main one at (0, 0), to its right, and the lines to them."""
        placed: list[Placed] = []
        edges: list[Edge] = []
        y, width = 0.0, 0.0
        x = main.width + GAP_PX
        for kind, element in around:
            shape = shape_of(element)
            placed.append(Placed(shape, x, y))
            middle = y + shape.height / 2
            edges.append(_beside(kind, main, x, middle))
            bottom, right = self._solutions(placed[-1], placed, edges)
            y += max(shape.height, bottom - y) + 12
            width = max(width, right - x)
            for against in self._challengers(element.id):
                other = shape_of(against)
                placed.append(Placed(other, x + GAP_PX, y))
                start = (x + GAP_PX / 2, y + other.height / 2)
                edges.append(Edge("challenges", ((x + GAP_PX, start[1]), start, (start[0], y - 12))))
                bottom, right = self._solutions(placed[-1], placed, edges)
                y += max(other.height, bottom - y) + 12
                width = max(width, right - x)
        return placed, edges, width, max(y - 12, 0.0)

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


def _shifted(edge: Edge, shift: float, up: float, main: Shape, top: float, mirror: bool) -> Edge:
    """A line of `_side` where the main shape stands at (shift, top) and the others start at the height `up`."""
    points = []
    for x, y in edge.points:
        at_main = x <= main.width
        in_bus = edge.points.index((x, y)) in ((1,) if edge.kind != "challenges" else (2,)) and len(edge.points) == 4
        below = y + (top if at_main or in_bus else up)
        points.append((shift + (main.width - x if mirror else x), below))
    return Edge(edge.kind, tuple(points))
