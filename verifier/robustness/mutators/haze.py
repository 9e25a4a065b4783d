"""Haze by depth: what is far away takes on the colour of the air.

    H(x) = I(x) T(x) + h (1 - T(x)),   T(x) = exp(-beta D(x))

Source: Pezzementi et al. 2018 (SSRR), equations 1 and 2, and 2021 (Field Robotics), equations 1 and 2. Koschmieder's
law ties the scattering coefficient beta to the visibility u_V, at which 2 % of the contrast is left:
beta u_V = 3.912.
Not to be confused with `alpha_blend`, which hazes everything alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from verifier.base.libraries import library
from verifier.robustness.mutators.blurs import gaussian_kernel
from verifier.robustness.mutators.frames import Metres, Pixels, by_strips, check_pixels, checked_depth
from verifier.robustness.mutators.photometric import HAZE_COLOUR, checked_colour

KOSCHMIEDER = 3.912
"""-ln 0.02, as the papers round it."""
DEPTH_SIGMA_PX = 2.0
"""Standard deviation of the Gaussian that smooths the depth, "to soften discontinuity effects"."""
DEPTH_REACH = 7.0
"""Standard deviations at which it ends: 1e-11 is left out, of a sky that may be 1e5 m away."""


def extinction_per_m(visibility_m: float) -> float:
    """beta = 3.912 / u_V; 0 for infinite visibility.

    >>> [round(extinction_per_m(visibility_m), 6) for visibility_m in (97.8, 326, 978, math.inf)]
    [0.04, 0.012, 0.004, 0.0]

    Raises:
        ValueError: a visibility that is not positive.
    """
    if not visibility_m > 0:
        raise ValueError(f"expected a positive visibility in metres, got {visibility_m}")
    return KOSCHMIEDER / visibility_m


def haze(pixels: Pixels, depth_m: Metres, beta_per_m: float, colour: Sequence[int] = HAZE_COLOUR) -> Pixels:
    """The image in haze of scattering coefficient `beta_per_m`; 0 is the identity.

    D is the depth (H, W) in metres, smoothed by a Gaussian with a standard deviation of two pixels, mirrored at the
    edge as in `gaussian_blur`.

    Raises:
        InputError: depth of another size than the image, zero, negative or not finite.
        ValueError: a negative or infinite coefficient, a colour that is none, or no image.
    """
    check_pixels(pixels)
    if not 0 <= beta_per_m < math.inf:
        raise ValueError(f"expected a finite scattering coefficient from 0, got {beta_per_m}")
    cv2 = library("cv2")
    depth = checked_depth(depth_m, pixels)
    kernel = gaussian_kernel(DEPTH_SIGMA_PX, DEPTH_REACH).astype(np.float32)
    smooth = cv2.sepFilter2D(depth.astype(np.float32), cv2.CV_32F, kernel, kernel, borderType=cv2.BORDER_REFLECT_101)
    levels = np.tile(checked_colour(colour).astype(np.float32), pixels.shape[1])

    def hazed(strip: Pixels, rows: slice) -> Pixels:
        through = _seen_through(smooth[rows], beta_per_m)
        solid = np.broadcast_to(levels, (len(strip), len(levels))).reshape(strip.shape)
        contrast = cv2.subtract(strip, solid, dtype=cv2.CV_32F)
        rounded: Pixels = cv2.add(cv2.multiply(contrast, through), solid, dtype=cv2.CV_8U)
        return rounded

    return by_strips(pixels, hazed)


def _seen_through(depth: NDArray[np.float32], beta_per_m: float) -> NDArray[np.float32]:
    """(h, W, 3) the share of light that arrives, the same for every channel."""
    cv2 = library("cv2")
    one = cv2.exp(depth * np.float32(-beta_per_m))
    three: NDArray[np.float32] = cv2.merge([one, one, one])
    return three
