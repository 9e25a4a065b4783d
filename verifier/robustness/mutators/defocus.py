"""Defocus by depth: every point of the scene is spread out by how far it is out of focus.

    F(x) = sum over y of I(y) g(x, y)  /  sum over y of g(x, y)

where g(., y) is the Gaussian point spread around the source y with standard deviation, in pixels,

    rho(y) = kappa |D(y) - u_f| / (D(y) u_f)

and sums to 1 over all whole offsets: "the proportion of their color information that is delivered". D is the depth,
u_f the distance in focus, kappa the camera constant in metres times pixels. What leaves the image is lost, nothing
comes in from outside, and a uniform image stays as it is. Gathering instead of scattering (the width of the receiving
pixel) would make another image: it does not blur a near object's edge over what is behind it.

Source: Pezzementi et al. 2018 (SSRR), equations 3 and 4, and 2021 (Field Robotics), equations 3 to 6.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import LimitError
from verifier.robustness.mutators.frames import Metres, Pixels, check_pixels, checked_depth
from verifier.robustness.mutators.lens import Lens, exact_sums, terms_of_a_sum
from verifier.robustness.mutators.scattering import scatter
from verifier.robustness.mutators.spread import layers_for

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
        InputError: depth of another size than the image, zero, negative or not finite.
        LimitError: a point spread wider than `LARGEST_SPREAD_PX`.
        ValueError: a negative or infinite kappa, a focus that is not positive or beyond 1e5 m, or no image.
    """
    return defocus_with_bound(pixels, depth_m, kappa_m_px, focus_m)[0]


def defocus_with_bound(pixels: Pixels, depth_m: Metres, kappa_m_px: float, focus_m: float) -> tuple[Pixels, float]:
    """`defocus`, and by how many grey levels it can differ from the definition before it is rounded.

    With D~(x) the sum of point spreads that x receives and e(d) the largest error of one at offset d, the result F~
    obeys F~(x) - F(x) = sum over y of (I(y) - F(x)) (error of y's at x) / D~(x). So the difference is at most 255
    times the sum of e over the offsets from which x receives anything, divided by D~(x). Where that and the rounding
    of float32 exceed `LARGEST_ERROR`, because what is around is much more out of focus and scatters little light to
    x, the sums of the definition are added up term by term, unless more layers are cheaper.
    """
    check_pixels(pixels)
    depth = checked_depth(depth_m, pixels)
    lens = Lens(kappa_m_px, focus_m)
    low, high = lens.range_px(depth)
    if high > LARGEST_SPREAD_PX:
        raise LimitError(
            f"depths from {depth.min():g} to {depth.max():g} m spread points by up to {high:.4g} pixels with kappa "
            f"{kappa_m_px:g} and focus {focus_m:g} m; at most {LARGEST_SPREAD_PX:g} are computed"
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
