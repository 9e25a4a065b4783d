"""Defocus by depth: every point of the scene is spread out by how far it is out of focus.

    F(x) = sum over y of I(y) g(x, y)  /  sum over y of g(x, y)

where g(., y) is the Gaussian point spread around the source y with standard deviation, in pixels,

    rho(y) = kappa |D(y) - u_f| / (D(y) u_f)

and sums to 1 over all whole offsets: "the proportion of their color information that is delivered". D is the depth,
u_f the distance in focus, kappa the camera constant in metres times pixels. What leaves the image is lost, nothing
comes in from outside, and a uniform image stays as it is. Gathering instead of scattering (the width of the receiving
pixel) would make another image: it does not blur a near object's edge over what is behind it.

Source: Pezzementi et al. 2018 (SSRR), equations 3 and 4, and 2021 (Field Robotics), equations 3 to 6.

How far each pixel of a scene is out of focus, and the sums of the defocus equation, term by term.

`exact_sums` is the definition itself, for a few pixels; for whole images it would take minutes.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats
from verifier.base.errors import LimitError
from verifier.base.libraries import library
from verifier.base.numbers import significant
from verifier.robustness.mutators.frames import Metres, Pixels
from verifier.robustness.mutators.spread import COORDINATE_PX, Layers, layers_for

REACH = 6.5
"""Standard deviations after which a point spread is not summed; less than 1e-8 of it is left."""
BLOCK = 20_000
"""Terms worked on at a time, so that they stay in the processor's cache."""
NARROW_PX = 0.6
"""Below, a point spread is normalised by its sum; above, by Poisson's formula. Both need few terms here."""


@dataclass(frozen=True)
class Lens:
    """Camera constant in metres times pixels, and the distance in focus in metres."""

    kappa_m_px: float
    focus_m: float

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
    sums = np.empty((3, len(places)))
    at_a_time = max(1, BLOCK // len(square))
    for first in range(0, len(places), at_a_time):
        some = slice(first, first + at_a_time)
        rows, columns = places[some, 0, np.newaxis] + y, places[some, 1, np.newaxis] + x
        inside = (rows >= 0) & (rows < depth.shape[0]) & (columns >= 0) & (columns < depth.shape[1])
        rows, columns = np.where(inside, rows, 0), np.where(inside, columns, 0)
        received = _point_spread(square, lens.spread_px(depth[rows, columns])) * inside
        colours = np.einsum("nm,nmc->cn", received, pixels[rows, columns].astype(np.float64))
        sums[:, some] = colours / received.sum(axis=1)
    return sums


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


LARGEST_SPREAD_PX = 50.0
"""Over ten times the widest of the papers: 3.6, at infinity with kappa 3.6 and focus 1 m."""
LARGEST_ERROR = 0.49
"""Grey levels before rounding by which the result may differ from the definition; see `defocus_with_bound`."""
LAYERS_SHARE = 0.98
"""Of `LARGEST_ERROR`, what the mixture of layers may take; the rest is for rounding in float32."""
USUAL_SUMS = (0.7, 0.3, 0.1)
"""Sums of received point spreads, beside how many there can be, above which layers are to be good enough."""
TERM_IN_TAPS = 120
"""How many steps of blurring at a pixel take as long as a term of an exact sum."""
SHARPEST_PX = 0.02
"""Point spreads up to here are 0 in doubles at every pixel but their own."""


def camera_constant(focal_length_m: float, f_number: float, pixel_width_m: float) -> float:
    """kappa = f^2 / (N gamma) in metres times pixels, from focal length f, f-number N and pixel width gamma.

    The 2018 paper prints gamma f^2 / N, which is not in metres times pixels and gives 5.5e-12 for its table III; with
    gamma in the denominator that table gives 3.6, the largest constant used there.

    >>> round(camera_constant(2.5e-3, 1.4, 1.24e-6), 4)
    3.6002

    Raises:
        ValueError: a value that is not positive and finite.
    """
    if not all(0 < value < math.inf for value in (focal_length_m, f_number, pixel_width_m)):
        raise ValueError(f"expected positive numbers, got {focal_length_m}, {f_number}, {pixel_width_m}")
    return focal_length_m**2 / (f_number * pixel_width_m)


def defocus(pixels: Pixels, depth_m: Metres, kappa_m_px: float, focus_m: float) -> Pixels:
    """The image out of focus; where the depth is `focus_m`, or with kappa 0, it is the identity.

    Raises:
        LimitError: a point spread wider than `LARGEST_SPREAD_PX`.
    """
    return defocus_with_bound(pixels, depth_m, kappa_m_px, focus_m)[0]


def defocus_with_bound(pixels: Pixels, depth: Metres, kappa_m_px: float, focus_m: float) -> tuple[Pixels, float]:
    """`defocus`, and by how many grey levels it can differ from the definition before it is rounded.

    With D~(x) the sum of point spreads that x receives and e(d) the largest error of one at offset d, the result F~
    obeys F~(x) - F(x) = sum over y of (I(y) - F(x)) (error of y's at x) / D~(x). So the difference is at most 255
    times the sum of e over the offsets from which x receives anything, divided by D~(x). Where that and the rounding
    of float32 exceed `LARGEST_ERROR`, because what is around is much more out of focus and scatters little light to
    x, the sums of the definition are added up term by term, unless more layers are cheaper.
    """
    lens = Lens(kappa_m_px, focus_m)
    low, high = lens.range_px(depth)
    if high > LARGEST_SPREAD_PX:
        raise LimitError(
            f"depths from {depth.min():g} to {depth.max():g} m spread points by up to {significant(high, 4)} pixels "
            f"with kappa {kappa_m_px:g} and focus {focus_m:g} m; at most {LARGEST_SPREAD_PX:g} are computed"
        )
    if high <= SHARPEST_PX:
        return pixels.copy(), 0.0
    usual: float | None = USUAL_SUMS[0]
    while usual is not None:
        layers = layers_for(low, high, LAYERS_SHARE * LARGEST_ERROR / 255 * usual)
        enough = 255 * (layers.error + 4 * float(np.finfo(np.float32).eps) * layers.largest_weight) / LARGEST_ERROR
        made, dark, received = scatter(pixels, depth, lens, layers, enough)
        blurs = depth.size * sum(len(kernel) for kernel in layers.kernels)
        usual = _better(received, usual, blurs / (TERM_IN_TAPS * terms_of_a_sum(high, depth.shape)))
    for channel, values in enumerate(exact_sums(pixels, depth, lens, high, dark)):
        made[dark[:, 0], dark[:, 1], channel] = np.rint(values)
    return made, LARGEST_ERROR


def _better(received: NDArray[np.float32], usual: float, blurs_in_sums: float) -> float | None:
    """The one of `USUAL_SUMS` after `usual` for which to start again; None if exact sums are cheaper.

    `received` is that of the pixels that need exact sums now, and `blurs_in_sums` the price of starting again.
    """
    best, cheapest = None, float(len(received))
    for lower in USUAL_SUMS[USUAL_SUMS.index(usual) + 1 :]:
        price = blurs_in_sums + np.count_nonzero(received < lower)
        if price < cheapest:
            best, cheapest = lower, price
    return best


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
    kernels = tuple(kernel.astype(np.float32) for kernel in layers.kernels)
    tall = min(max(FEWEST_ROWS, 6 * max(len(kernel) // 2 for kernel in kernels)), height)
    shares = [_inside(layers.errors, side) for side in depth.shape]
    out = np.empty_like(pixels)

    def make(top: int) -> tuple[Places, Numbers]:
        rows = slice(top, min(top + tall, height))
        received = _strip(pixels, depth, rows, kernels, lens, layers, out[rows])
        if received.min() < enough:
            received /= np.minimum.outer(shares[0][rows], shares[1])
        dark = received < enough
        if not dark.any():  # far cheaper than looking for where
            return np.zeros((0, 2), np.intp), np.zeros(0, np.float32)
        return np.argwhere(dark) + np.array([top, 0]), received[dark]

    tops = range(0, height, tall)
    threads = min(cv2.getNumThreads(), len(tops))
    if threads < 2:
        parts = [make(top) for top in tops]
    else:
        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(make, tops))
    return out, np.concatenate([array[0] for array in parts]), np.concatenate([array[1] for array in parts])


def _strip(
    pixels: Pixels, depth: Metres, rows: slice, kernels: tuple[Numbers, ...], lens: Lens, layers: Layers, out: Pixels
) -> Numbers:
    """Put some rows of the result into `out`; gives their D~.

    The rows above and below scatter into them, too; rows outside the image hold nothing. Red, green, blue and the
    ones that add up to D~ lie below each other, so that one call blurs them all: what it carries from one to the next
    ends up in rows that are not used.
    """
    cv2 = library("cv2")
    radius, tall = max(len(kernel) // 2 for kernel in kernels), rows.stop - rows.start
    # One block of memory, which the system hands out in large pages.
    work = np.empty((15, tall + 2 * radius, depth.shape[1]), np.float32)
    totals, weighted, blurred, sources = work[:4], work[4:8], work[8:12], work[12:]
    seen = slice(max(rows.start - radius, 0), min(rows.stop + radius, len(depth)))
    there = slice(seen.start - rows.start + radius, seen.stop - rows.start + radius)
    for outside in (slice(there.start), slice(there.stop, None)):
        sources[:, outside] = 0
        totals[:, outside] = 0
        weighted[:, outside] = 0
    for source, channel in zip(sources[:, there], cv2.split(pixels[seen]), strict=True):
        np.copyto(source, channel)
    places = _columns(depth[seen], lens, layers)
    for number, kernel in enumerate(kernels):
        first, sharp = number == 0, len(kernel) == 1
        layer = totals if first and sharp else weighted
        np.take(layers.weights[number], places, out=layer[3, there], mode="wrap")  # the fastest mode
        np.multiply(sources, layer[3], out=layer[:3])
        if not sharp:
            layer = totals if first else blurred
            _blur(weighted, kernel, layer)
        if not first:
            np.add(totals, layer, out=totals)
    inner = totals[:, radius : radius + tall]
    cv2.merge([cv2.divide(total, inner[3], dtype=cv2.CV_8U) for total in inner[:3]], out)
    return np.asarray(inner[3])


def _blur(planes: Numbers, kernel: Numbers, out: Numbers) -> None:
    """Blur (4, h, W) as one image of 4 h rows."""
    cv2 = library("cv2")
    flat, into = (array.reshape(-1, planes.shape[2]) for array in (planes, out))
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


def _inside(errors: NDArray[np.float64], side: int) -> NDArray[np.float64]:
    """(side,) for each line of an image, the share of `errors` at the offsets that lead to a line of the image."""
    steps = np.arange(side)
    sums = np.cumsum(errors)
    up, down = (sums[np.minimum(reach, len(errors) - 1)] for reach in (steps, steps[::-1]))
    total = 2 * sums[-1] - errors[0]
    return np.asarray((up + down - errors[0]) / total) if total > 0 else np.ones(side)
