"""Point spreads of many widths from a few: what makes depth-varying blur fast, and how far it is off.

A point spread of standard deviation rho is the Gaussian sampled at whole offsets, normalised:

    g_rho(d) = exp(-|d|^2 / (2 rho^2)) / sum over all e of exp(-|e|^2 / (2 rho^2)),   g_0 = 1 at d = 0

Light scattered by a different g_rho from every pixel cannot be had from one convolution. But over a range of rho the
functions g_rho lie close to a space of few dimensions: with K of them, at well-chosen widths rho_k, and weights w_k
found by least squares,

    g_rho(d) = sum over k of w_k(rho) g_rho_k(d)  +  an error that falls about threefold with every further k,

so that the whole is K ordinary blurs of images weighted by w_k(rho). `Layers` holds such weights together with a
bound on the error: the sum over all offsets d of the largest error that any rho of the range makes there. No image
and no map of depths can do worse than that.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from verifier.base.arrays import Floats

SHARE_CUT, SHARE_TABLE = 0.5, 0.2
"""Of the tolerated error: about what ends the kernels where they are small, and what the steps of the table take."""
BEYOND_CUT = 1.5
"""Standard deviations beyond the end of the widest kernel up to which the error is summed."""
FEWEST_POINTS, MOST_POINTS = 33, 1025
POINTS_SHARE = 0.79
"""Of the tolerated error; where the fit is better, what is missing are points, not layers."""
MOST_LAYERS = 60
BLOCK = 512
"""Offsets worked on at a time."""
BEND_PX = 0.45
"""Up to about here a point spread hardly changes with its width; above, it changes with the width's logarithm."""
SHARP_PX = 0.45
"""A range that begins below has the unblurred image, which costs no blur, among its layers."""
FIRST_BLUR_PX, FIRST_BLUR_SHARE = 0.48, 0.7
"""Where the blurred layers of such a range begin: at the first in pixels, or that share of the widest."""
COORDINATE_PX = 3.0
ONE_WIDTH = 1e-9
"""Between coordinates; far below what float32 tells apart."""
SMALLEST_MODE = 1e-14
"""Of the largest eigenvalue of the normal equations; smaller ones would bring little but large weights."""


@dataclass(frozen=True, eq=False)
class Layers:
    """K point spreads and how to mix any other of the range from them.

    Attributes:
        kernels: K one-dimensional kernels (2 r + 1,), each the point spread across and down; of length 1 where it is
            the unblurred image.
        low: coordinate of the first column of the table; the coordinate of a width is `coordinate(rho)`.
        step: of the coordinate, from column to column.
        weights: (K, N) float32, the table: the weights at each coordinate.
        errors: (r + 1,) for offsets so many lines up, or down: the sum over the offsets to the side of the largest
            error of the mixture at the nearest column. To second order in the distance of the points where it was
            evaluated.
    """

    kernels: tuple[Floats, ...]
    low: float
    step: float
    weights: NDArray[np.float32]
    errors: Floats

    @property
    def error(self) -> float:
        """The sum over all offsets."""
        return _total(self.errors)

    @property
    def largest_weight(self) -> float:
        """The largest sum of absolute weights: how much rounding is magnified."""
        return float(np.abs(self.weights).sum(axis=0).max())


def coordinate(width_px: Floats) -> Floats:
    """Where in the table a width stands: rho / (rho + 3), cheap, and fine where point spreads change fast."""
    return width_px / (width_px + COORDINATE_PX)


def layers_for(low_px: float, high_px: float, tolerance: float) -> Layers:
    """Layers for all widths in low..high, no more than needed for an error of at most `tolerance`.

    Raises:
        ValueError: not 0 <= low <= high, no tolerance in (0, 1), or one that cannot be met.
    """
    if not 0 <= low_px <= high_px < np.inf or not 0 < tolerance < 1:
        raise ValueError(f"expected 0 <= low <= high and a tolerance in (0, 1), got {low_px}, {high_px}, {tolerance}")
    length = float(np.diff(_bend(np.array([low_px, high_px])))[0])
    reach = float(np.sqrt(-2 * np.log(SHARE_CUT * tolerance / (1 + length))))
    radius = int(np.ceil((reach + BEYOND_CUT) * high_px)) + 1
    ends = coordinate(np.array([low_px, high_px]))
    points = FEWEST_POINTS if ends[1] - ends[0] > ONE_WIDTH else 1
    count = 1 if points == 1 else _fewest_layers(length, low_px < SHARP_PX)
    while count <= MOST_LAYERS and points <= MOST_POINTS:
        grid = np.linspace(ends[0], ends[1], 2 * points - 1)  # points of the fit, and the middles between them
        spreads = _halves(COORDINATE_PX * grid / (1 - grid), radius)
        basis = _halves(_nodes(low_px, high_px, count), radius, reach)
        spline = _spline(_fitted(spreads[::2], basis))
        fit, errors = _errors(spreads, basis, _mixed(spline, 2), (1 - SHARE_TABLE) * tolerance)
        if _total(errors) <= (1 - SHARE_TABLE) * tolerance:
            changes = _changes(spreads)
            steps = max(1, int(np.ceil(_total(changes) / (SHARE_TABLE * tolerance))))
            table = np.stack([_mixed(spline[:, [k]], steps)[0].astype(np.float32) for k in range(count)])
            step = float(ends[1] - ends[0]) / (table.shape[1] - 1) if table.shape[1] > 1 else 1.0
            kernels = tuple(_whole(half) for half in basis)
            return Layers(kernels, float(ends[0]), step, table, errors + changes / steps)
        if fit > POINTS_SHARE * tolerance:  # the error falls by less than fivefold with each layer
            count += max(1, int(np.log(fit / tolerance) / np.log(5)))
        else:
            points = 2 * points - 1
    raise ValueError(f"no mixture is within {tolerance:g} of all point spreads in {low_px}..{high_px}")


def _fewest_layers(length: float, sharp: bool) -> int:
    """About how many layers a range needs that is so long on the scale of `_bend`; where too few, more follow."""
    if sharp:
        return 2 if length < 0.08 else 3 + int(max(0.0, 4 * length - 0.3))
    return 3 + int(3.5 * length)


def _bend(width_px: Floats) -> Floats:
    """log(1 + (rho / BEND_PX)^4) / 4: a scale on which layers lie about evenly."""
    return np.asarray(np.log1p((width_px / BEND_PX) ** 4) / 4)


def _halves(widths_px: Floats, radius: int, reach: float = np.inf) -> Floats:
    """(P, radius + 1) one-dimensional point spreads at offsets 0, 1, ...; cut off after `reach` deviations."""
    places = np.arange(radius + 1.0)
    wide = np.maximum(widths_px, 1e-3)[:, np.newaxis]  # at whole offsets the same as 0
    halves = np.exp(-0.5 * (places / wide) ** 2)
    halves[places > np.ceil(reach * wide)] = 0
    return np.asarray(halves / (2 * halves.sum(axis=1, keepdims=True) - halves[:, :1]))


def _whole(half: Floats) -> Floats:
    """The kernel (2 r + 1,) of which `half` holds the offsets from 0 on, without the zeros at its ends."""
    half = half[: int(np.flatnonzero(half)[-1]) + 1]
    return np.concatenate([half[:0:-1], half])


def _nodes(low_px: float, high_px: float, count: int) -> Floats:
    """(K,) widths: zeros of a Chebyshev polynomial over the range, and 0 where the range begins near it."""
    if low_px == high_px or count == 1:
        return np.array([high_px])
    sharp = low_px < SHARP_PX
    first = min(FIRST_BLUR_PX, FIRST_BLUR_SHARE * high_px) if sharp else low_px
    ends = _bend(np.array([first, high_px]))
    inner = count - 1 if sharp else count
    share = (1 - np.cos(np.pi * (np.arange(inner) + 0.5) / inner)) / 2
    nodes = BEND_PX * np.expm1(4 * (ends[0] + (ends[1] - ends[0]) * share)) ** 0.25
    return np.append(0.0, nodes) if sharp else nodes


def _fitted(spreads: Floats, basis: Floats) -> Floats:
    """(P, K) weights by least squares over all offsets, by the normal equations of the basis scaled to unit length.

    Point spreads are products, so that sums over two dimensions are squares of sums over one. `einsum` keeps to one
    thread, which for sizes like these is the fastest.
    """
    double = np.where(np.arange(basis.shape[1]) == 0, 1.0, 2.0)
    normal = np.einsum("kd,jd,d->kj", basis, basis, double) ** 2
    size = np.sqrt(np.diag(normal))
    right = np.einsum("kd,pd,d->kp", basis, spreads, double) ** 2 / size[:, np.newaxis]
    values, vectors = np.linalg.eigh(normal / np.outer(size, size))
    kept = values > SMALLEST_MODE * values[-1]
    modes = vectors[:, kept]
    return np.asarray(np.einsum("pm,jm->pj", np.einsum("kp,km->pm", right, modes) / values[kept], modes) / size)


def _spline(weights: Floats) -> Floats:
    """(4, K, P) coefficients of the cubic splines through (P, K) weights from each point on; constant at the last."""
    pieces = np.zeros((4, weights.shape[1], len(weights)))
    if len(weights) > 1:
        pieces[:, :, :-1] = CubicSpline(np.arange(len(weights)), weights).c.transpose(0, 2, 1)
    pieces[3, :, -1] = weights[-1]
    return pieces


def _mixed(spline: Floats, steps: int) -> Floats:
    """(K, steps (P - 1) + 1) weights at the points, and `steps` for each way from one to the next."""
    pieces = spline[..., np.newaxis]
    share = np.arange(steps) / steps
    between = pieces[0] * share
    for lower in pieces[1:3]:
        between += lower
        between *= share
    between += pieces[3]
    return np.asarray(between.reshape(len(between), -1)[:, : (spline.shape[2] - 1) * steps + 1])


def _errors(spreads: Floats, basis: Floats, mixed: Floats, enough: float) -> tuple[float, Floats]:
    """The sum over all offsets of the largest error at the points of the fit; and as in `Layers`, at any width.

    Stops where the first is beyond `enough`.
    """
    fit, errors = 0.0, np.zeros(basis.shape[1])
    for y, x in _offsets(basis.shape[1]):
        wrong = spreads[:, y] * spreads[:, x] - mixed.T @ (basis[:, y] * basis[:, x])
        bent = np.abs(np.diff(wrong, 2, axis=0)).max(axis=0, initial=0) / 8
        _put(errors, y, x, np.abs(wrong).max(axis=0) + bent)
        at_points = np.zeros_like(errors)
        _put(at_points, y, x, np.abs(wrong[::2]).max(axis=0))
        fit += _total(at_points)
        if fit > enough:
            break
    return fit, errors


def _changes(spreads: Floats) -> Floats:
    """As the errors of `Layers`, the largest change from one point to the next: twice what half a step makes."""
    changes = np.zeros(spreads.shape[1])
    for y, x in _offsets(spreads.shape[1]):
        steps = np.diff(spreads[:, y] * spreads[:, x], axis=0)
        _put(changes, y, x, np.abs(steps).max(axis=0, initial=0))
    return changes


def _offsets(count: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Offsets (y, x) with 0 <= x <= y < count in blocks; the others are their mirror images."""
    y, x = np.tril_indices(count)
    for first in range(0, len(y), BLOCK):
        yield y[first : first + BLOCK], x[first : first + BLOCK]


def _put(lines: Floats, y: NDArray[np.intp], x: NDArray[np.intp], values: Floats) -> None:
    """Add values at offsets (y, x), x <= y, and their mirror images to the sums of the lines they lie in."""
    lines += np.bincount(y, values * np.where(x == 0, 1, 2), len(lines))
    off = x < y
    lines += np.bincount(x[off], 2 * values[off], len(lines))


def _total(lines: Floats) -> float:
    """The sum over all offsets, from the sums over those 0, 1, ... lines up or down."""
    return float(2 * lines.sum() - lines[0])
