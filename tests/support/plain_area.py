"""Worst cases and areas of trade-off curves written out point by point: the independent definition."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

Point = tuple[float, float, float]


def worst_case(curves: Sequence[Sequence[Point]]) -> list[Point]:
    """Algorithm 1 of Pezzementi et al. 2021 for curves of (sensitivity, safety, efficiency)."""
    found = []
    for tau in sorted({point[0] for curve in curves for point in curve}):
        safety, efficiency = [], []
        for curve in curves:
            before = [point for point in curve if point[0] <= tau]
            after = [point for point in curve if point[0] >= tau]
            for side, pick in ((before, max), (after, min)):
                nearest = pick(side, key=lambda point: point[0]) if side else (tau, 0, 0)
                safety.append(nearest[1])
                efficiency.append(nearest[2])
        found.append((tau, min(safety), min(efficiency)))
    return found


def rectangle_area(points: Sequence[Point]) -> Fraction:
    """Area of the union of [0, E] x [0, S]: cell by cell of the grid that all corners span, exactly."""
    xs = sorted({Fraction(0), *(Fraction(point[2]) for point in points)})
    ys = sorted({Fraction(0), *(Fraction(point[1]) for point in points)})
    total = Fraction(0)
    for left, right in itertools.pairwise(xs):
        for low, high in itertools.pairwise(ys):
            if any(point[2] >= right and point[1] >= high for point in points):
                total += (right - left) * (high - low)
    return total
