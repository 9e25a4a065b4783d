"""How far each pixel of a scene is out of focus, and the sums of the defocus equation, term by term.

`exact_sums` is the definition itself, for a few pixels; for whole images it would take minutes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats
from verifier.perception.detections.stated_distances import LARGEST_M
from verifier.robustness.mutators.frames import Metres, Pixels

REACH = 6.5
"""Standard deviations after which a point spread is not summed; less than 1e-8 of it is left."""
BLOCK = 20_000
"""Terms worked on at a time, so that they stay in the processor's cache."""
NARROW_PX = 0.6
"""Below, a point spread is normalised by its sum; above, by Poisson's formula. Both need few terms here."""


@dataclass(frozen=True)
class Lens:
    """Camera constant in metres times pixels, and the distance in focus in metres.

    Raises:
        ValueError: a negative or infinite constant, a focus that is not positive or beyond `LARGEST_M`.
    """

    kappa_m_px: float
    focus_m: float

    def __post_init__(self) -> None:
        if not 0 <= self.kappa_m_px < math.inf or not 0 < self.focus_m <= LARGEST_M:
            raise ValueError(
                f"expected kappa from 0 and a positive focus up to {LARGEST_M:g} m, got {self.kappa_m_px} and "
                f"{self.focus_m}"
            )

    def spread_px(self, depth_m: NDArray[np.float64]) -> NDArray[np.float64]:
        """rho = kappa |D - u_f| / (D u_f)."""
        return np.asarray(self.kappa_m_px * np.abs(depth_m - self.focus_m) / (depth_m * self.focus_m))

    def range_px(self, depth_m: Metres) -> tuple[float, float]:
        """The least and the greatest spread at depths in the range of a map: rho falls to the focus, then rises."""
        ends = np.array([depth_m.min(), depth_m.max()])
        low, high = sorted(self.spread_px(ends).tolist())
        return (0.0 if ends[0] <= self.focus_m <= ends[1] else low), high


def terms_of_a_sum(widest_px: float, size: tuple[int, ...]) -> int:
    """How many pixels of an image can scatter to one, if the widest spread of the scene is `widest_px`."""
    return math.prod(2 * reach + 1 for reach in _reaches(widest_px, size))


def _reaches(widest_px: float, size: tuple[int, ...]) -> list[int]:
    """How many lines, and how many columns, away from a pixel its sources can be."""
    return [min(math.ceil(REACH * widest_px), side - 1) for side in size]


def exact_sums(pixels: Pixels, depth: Metres, lens: Lens, widest_px: float, places: NDArray[np.intp]) -> Floats:
    """(3, n) red, green and blue, not rounded, at `places` (n, 2), row and column; all sums in float64."""
    down, right = _reaches(widest_px, depth.shape)
    y, x = (offset.ravel() for offset in np.mgrid[-down : down + 1, -right : right + 1])
    square = (y**2 + x**2).astype(np.float64)
    found = np.empty((3, len(places)))
    at_a_time = max(1, BLOCK // len(square))
    for first in range(0, len(places), at_a_time):
        some = slice(first, first + at_a_time)
        rows, columns = places[some, 0, np.newaxis] + y, places[some, 1, np.newaxis] + x
        inside = (rows >= 0) & (rows < depth.shape[0]) & (columns >= 0) & (columns < depth.shape[1])
        rows, columns = np.where(inside, rows, 0), np.where(inside, columns, 0)
        received = _point_spread(square, lens.spread_px(depth[rows, columns])) * inside
        colours = np.einsum("nm,nmc->cn", received, pixels[rows, columns].astype(np.float64))
        found[:, some] = colours / received.sum(axis=1)
    return found


def _point_spread(square: Floats, spread_px: Floats) -> Floats:
    """g at squared offsets (m,) for spreads (n, m): exp(-|d|^2 / (2 rho^2)) over its sum at all whole offsets.

    The sum is that of a line squared: 1 + 2 (q + q^4 + q^9 + ...) with q = exp(-1 / (2 rho^2)), which for wide
    spreads is rho sqrt(2 pi) (1 + 2 exp(-2 pi^2 rho^2) + ...) by Poisson's formula.
    """
    width = np.maximum(spread_px, 1e-2)  # at whole offsets the same as 0
    rate = -0.5 / width**2
    q = np.exp(rate)
    to_4 = q * q * q * q
    narrow = 1 + 2 * (q + to_4 * (1 + to_4 * q * (1 + to_4 * q * q * q)))
    wide = width * math.sqrt(2 * math.pi) * (1 + 2 * np.exp(-2 * (np.pi * width) ** 2))
    return np.asarray(np.exp(rate * square) / np.where(width < NARROW_PX, narrow, wide) ** 2)
