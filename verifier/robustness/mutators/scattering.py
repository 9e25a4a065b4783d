"""Sums of point spreads whose width differs from pixel to pixel, by blurring a few weighted copies of the image."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.libraries import library
from verifier.robustness.mutators.frames import Metres, Pixels
from verifier.robustness.mutators.lens import Lens
from verifier.robustness.mutators.spread import COORDINATE_PX, Layers

Numbers: TypeAlias = NDArray[np.float32]
Places: TypeAlias = NDArray[np.intp]
FEWEST_ROWS = 96
"""Rows made at a time, or six times the radius of the widest point spread if that is more."""


def scatter(
    pixels: Pixels, depth: Metres, lens: Lens, layers: Layers, enough: float
) -> tuple[Pixels, Places, Numbers]:
    """The image put together from all layers; where (n, 2) its D~ is not `enough`, row and column; and D~ there (n,).

    D~ counts beside the share of the errors that can reach a pixel: near the edge of the image there is less of both.
    What is compared, and returned, is D~ over that share.

    Made in strips of rows, on as many threads as OpenCV may use (`cv2.setNumThreads`).
    """
    cv2 = library("cv2")
    height = len(depth)
    made_of = _Mixture(lens, tuple(kernel.astype(np.float32) for kernel in layers.kernels), layers)
    tall = min(max(FEWEST_ROWS, 6 * made_of.radius), height)
    shares = [_inside(layers.errors, side) for side in depth.shape]
    out = np.empty_like(pixels)

    def make(top: int) -> tuple[Places, Numbers]:
        rows = slice(top, min(top + tall, height))
        received = _strip(pixels, depth, rows, made_of, out[rows])
        if received.min() < enough:
            received /= np.minimum.outer(shares[0][rows], shares[1])
        dark = received < enough
        if not dark.any():  # far cheaper than looking for where
            return np.zeros((0, 2), np.intp), np.zeros(0, np.float32)
        return np.argwhere(dark) + np.array([top, 0]), received[dark]

    tops = range(0, height, tall)
    threads = min(cv2.getNumThreads(), len(tops))
    if threads < 2:
        found = [make(top) for top in tops]
    else:
        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(make, tops))
    return out, np.concatenate([each[0] for each in found]), np.concatenate([each[1] for each in found])


@dataclass(frozen=True, eq=False)
class _Mixture:
    """A lens, and layers with their kernels in float32."""

    lens: Lens
    kernels: tuple[Numbers, ...]
    layers: Layers

    @property
    def radius(self) -> int:
        return max(len(kernel) // 2 for kernel in self.kernels)


def _strip(pixels: Pixels, depth: Metres, rows: slice, mixture: _Mixture, out: Pixels) -> Numbers:
    """Put some rows of the result into `out`; gives their D~.

    The rows above and below scatter into them, too; rows outside the image hold nothing. Red, green, blue and the
    ones that add up to D~ lie below each other, so that one call blurs them all: what it carries from one to the next
    ends up in rows that are not used.
    """
    radius, tall = mixture.radius, rows.stop - rows.start
    # One block of memory, which the system hands out in large pages.
    work = np.empty((15, tall + 2 * radius, depth.shape[1]), np.float32)
    totals, weighted, blurred, sources = work[:4], work[4:8], work[8:12], work[12:]
    seen = slice(max(rows.start - radius, 0), min(rows.stop + radius, len(depth)))
    there = slice(seen.start - rows.start + radius, seen.stop - rows.start + radius)
    for outside in (slice(there.start), slice(there.stop, None)):
        sources[:, outside] = 0
        totals[:, outside] = 0
        weighted[:, outside] = 0
    _fill(sources[:, there], pixels[seen])
    places = _columns(depth[seen], mixture.lens, mixture.layers)
    for number, kernel in enumerate(mixture.kernels):
        first, sharp = number == 0, len(kernel) == 1
        layer = totals if first and sharp else weighted
        np.take(mixture.layers.weights[number], places, out=layer[3, there], mode="wrap")  # the fastest mode
        np.multiply(sources, layer[3], out=layer[:3])
        if not sharp:
            layer = totals if first else blurred
            _blur(weighted, kernel, layer)
        if not first:
            np.add(totals, layer, out=totals)
    inner = totals[:, radius : radius + tall]
    _divide(inner, out)
    received: Numbers = inner[3]
    return received


def _fill(sources: Numbers, pixels: Pixels) -> None:
    cv2 = library("cv2")
    for source, channel in zip(sources, cv2.split(pixels), strict=True):
        np.copyto(source, channel)


def _blur(planes: Numbers, kernel: Numbers, out: Numbers) -> None:
    """Blur (4, h, W) as one image of 4 h rows."""
    cv2 = library("cv2")
    flat, into = (each.reshape(-1, planes.shape[2]) for each in (planes, out))
    cv2.sepFilter2D(flat, -1, kernel, kernel, into, borderType=cv2.BORDER_CONSTANT)


def _columns(depth: Metres, lens: Lens, layers: Layers) -> NDArray[np.intp]:
    """(h, W) the column of the table of weights that is nearest to the spread of each pixel."""
    far = depth.astype(np.float32)
    near = np.subtract(depth, lens.focus_m, out=np.empty_like(far), casting="same_kind")  # before digits are lost
    far *= np.float32(lens.focus_m * COORDINATE_PX)
    np.abs(near, out=near)
    near *= np.float32(lens.kappa_m_px)
    far += near
    near /= far  # the coordinate rho / (rho + 3), without a division of its own for rho
    near -= np.float32(layers.low - layers.step / 2)
    near *= np.float32(1 / layers.step)
    np.clip(near, 0, layers.weights.shape[1] - 1, out=near)  # in a narrow range rounding can lead out of it
    return near.astype(np.intp)


def _divide(totals: Numbers, out: Pixels) -> None:
    """Put the sums for red, green and blue over those for 1, rounded, into `out` (h, W, 3)."""
    cv2 = library("cv2")
    cv2.merge([cv2.divide(total, totals[3], dtype=cv2.CV_8U) for total in totals[:3]], out)


def _inside(errors: NDArray[np.float64], side: int) -> NDArray[np.float64]:
    """(side,) for each line of an image, the share of `errors` at the offsets that lead to a line of the image."""
    steps = np.arange(side)
    sums = np.cumsum(errors)
    up, down = (sums[np.minimum(reach, len(errors) - 1)] for reach in (steps, steps[::-1]))
    total = 2 * sums[-1] - errors[0]
    return np.asarray((up + down - errors[0]) / total) if total > 0 else np.ones(side)
