"""How large an element is drawn: its text wrapped, and the shape that holds it.

Widths of characters are estimates for the usual sans-serif fonts, on the wide side, so that text stays within its
shape whatever font a reader has. Shapes are those of the GSN standard: goals are rectangles, strategies
parallelograms, contexts rounded rectangles, assumptions and justifications ellipses with an A or J beside them,
solutions circles; a diamond below marks what is undeveloped.
"""

import math
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from verifier.base.errors import one_line
from verifier.evidence.case.elements import Element, Kind

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
