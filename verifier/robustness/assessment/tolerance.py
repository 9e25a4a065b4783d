"""The tolerance epsilon(d): the greatest change of performance that is accepted at a distance d of the data.

Wozniak, Segura and Mazo 2024, Sec. 5.8 and Box 7: a piecewise linear function. It need not be continuous; a piece
holds up to its end and including it, so the breakpoint belongs to the lower piece. For instance

    epsilon(d) = .01 for d <= .25, d beyond       Tolerance((Piece(0, .01, up_to=.25), Piece(1, 0)))

Everything is exact: `Fraction` in, `Fraction` out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from verifier.base.numbers import exact_text


@dataclass(frozen=True)
class Piece:
    """slope * d + constant, up to and including `up_to`; without an end where that is None."""

    slope: Fraction
    constant: Fraction
    up_to: Fraction | None = None

    def __call__(self, distance: Fraction) -> Fraction:
        """The value at a distance."""
        return self.slope * distance + self.constant

    def __str__(self) -> str:
        """The rule for people: `0.01`, `d`, `2 d + 0.1`."""
        if self.slope == 0:
            return exact_text(self.constant)
        factor = {1: "d", -1: "-d"}.get(int(self.slope) if self.slope.denominator == 1 else 0)
        rising = factor or f"{exact_text(self.slope)} d"
        if self.constant == 0:
            return rising
        return f"{rising} {'+' if self.constant > 0 else '-'} {exact_text(abs(self.constant))}"


@dataclass(frozen=True)
class Tolerance:
    """Pieces in order of their ends; only the last has none, so that every distance from 0 has its piece.

    Raises:
        ValueError: no piece, ends not increasing from above 0, an end missing or too many, or a value below 0
            somewhere: then nothing could be robust there.
    """

    pieces: tuple[Piece, ...]

    def __post_init__(self) -> None:
        if not self.pieces:
            raise ValueError("expected at least one piece")
        start = Fraction(0)
        for number, piece in enumerate(self.pieces):
            last = number == len(self.pieces) - 1
            if (piece.up_to is None) != last:
                raise ValueError(
                    "the last piece has no end: distances beyond need a tolerance too" if last else
                    f"piece {number + 1} has no end, and others follow"
                )  # fmt: skip
            if piece.up_to is not None and piece.up_to <= start and not (number == 0 and piece.up_to == 0):
                raise ValueError(f"piece {number + 1} ends at {exact_text(piece.up_to)}, not after where it begins")
            ends = [start] if piece.up_to is None else [start, piece.up_to]
            if any(piece(end) < 0 for end in ends) or (last and piece.slope < 0):
                raise ValueError(f"piece {number + 1} falls below 0")
            start = piece.up_to if piece.up_to is not None else start

    @classmethod
    def told(cls, pieces: Iterable[tuple[float, float, float | None]]) -> Tolerance:
        """That of (slope, constant, up_to) as a document spells them; errors as above."""
        exact = ([None if each is None else Fraction(repr(each)) for each in piece] for piece in pieces)
        return cls(tuple(Piece(slope or Fraction(0), constant or Fraction(0), end) for slope, constant, end in exact))

    def __call__(self, distance: Fraction) -> Fraction:
        """The tolerance at a distance from 0; ValueError for a negative one.

        >>> flat, rising = Piece(Fraction(0), Fraction("0.01"), Fraction("0.25")), Piece(Fraction(1), Fraction(0))
        >>> box_7 = Tolerance((flat, rising))
        >>> box_7(Fraction("0.25")), box_7(Fraction("0.26"))
        (Fraction(1, 100), Fraction(13, 50))
        """
        if distance < 0:
            raise ValueError(f"expected a distance from 0, got {float(distance)}")
        return next(each(distance) for each in self.pieces if each.up_to is None or distance <= each.up_to)

    def __str__(self) -> str:
        """The rule for people: `0.01 if d <= 0.25, else d`."""
        if len(self.pieces) == 1:
            return str(self.pieces[0])
        ends = [f"{each} if d <= {exact_text(each.up_to)}" for each in self.pieces if each.up_to is not None]
        return f"{', '.join(ends)}, else {self.pieces[-1]}"
