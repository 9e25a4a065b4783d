"""Mutations of single pixels: brightness, contrast, alpha blend, channel drop-out, JPEG.

Sources: Pezzementi et al. 2018 (SSRR), section III-A, and 2021 (Field Robotics), section 5.1.

Mutations that draw at random: salt and pepper, signal-dependent noise, shifted lines.

Everything random comes from the generator that is passed in: equal generators give equal images. Source of the first
two: Pezzementi et al. 2018 (SSRR), section III-A.5 and III-A.7; of the third: Wozniak et al. 2024, box 1.

Haze by depth: what is far away takes on the colour of the air.

    H(x) = I(x) T(x) + h (1 - T(x)),   T(x) = exp(-beta D(x))

Source: Pezzementi et al. 2018 (SSRR), equations 1 and 2, and 2021 (Field Robotics), equations 1 and 2. Koschmieder's
law ties the scattering coefficient beta to the visibility u_V, at which 2 % of the contrast is left:
beta u_V = 3.912.
Not to be confused with `alpha_blend`, which hazes everything alike.
"""

import io
import math
from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from verifier.base.libraries import library
from verifier.robustness.mutators.frames import Metres, Pixels, by_strips
from verifier.robustness.mutators.geometric import gaussian_kernel

Channel: TypeAlias = Literal["R", "G", "B", "Cb", "Cr"]
CHANNELS: tuple[Channel, ...] = get_args(Channel)
HAZE_COLOUR = (205, 208, 211)
"""Red, green, blue: "a gray color similar to fog" (both papers)."""
RED_SHARE, BLUE_SHARE = 0.299, 0.114
"""Of the luma Y of JFIF (ITU-R BT.601, full range); the rest is green."""


def brightness(pixels: Pixels, factor: float) -> Pixels:
    """Every channel times `factor`, cut off at 255 (2018, III-A.2)."""
    return np.asarray(library("cv2").convertScaleAbs(pixels, alpha=factor))


def contrast(pixels: Pixels, factor: float, about: float | None = None) -> Pixels:
    """Distances from the level `about` times `factor`: (I - m) factor + m.

    m is `about`, or the mean of all pixels and channels where that is None. Hendrycks and Dietterich (2019) take the
    mean of each channel instead, which also changes colours.
    """
    cv2 = library("cv2")
    level = sum(cv2.sumElems(pixels)[:3]) / pixels.size if about is None else about
    # Not convertScaleAbs: it would turn levels below 0 into their absolute value.
    return np.asarray(cv2.addWeighted(pixels, factor, pixels, 0, (1 - factor) * level))


def alpha_blend(pixels: Pixels, alpha: float, colour: Sequence[int] = HAZE_COLOUR) -> Pixels:
    """(1 - alpha) I + alpha h with one colour h everywhere: haze without depth (2018, III-A.3; 2021, 5.1.2).

    `alpha` is the weight of the colour, so 0 is the identity and 1 nothing but haze: detection rates fall with it in
    table IV of the 2018 paper.
    """
    cv2 = library("cv2")
    line = np.tile(np.array(colour, np.uint8), pixels.shape[1])

    def blended(strip: Pixels, _: slice) -> Pixels:
        solid = np.broadcast_to(line, (len(strip), len(line))).reshape(strip.shape)
        return np.asarray(cv2.addWeighted(strip, 1 - alpha, solid, alpha, 0))

    return by_strips(pixels, blended)


def channel_dropout(pixels: Pixels, channel: Channel) -> Pixels:
    """A channel set to 0: R, G or B of RGB, Cb or Cr of YCbCr (2018, III-A.6; 2021, 5.1.3).

    YCbCr is that of JFIF: Y = 0.299 R + 0.587 G + 0.114 B, Cb = 128 + (B - Y) / 1.772, Cr = 128 + (R - Y) / 1.402.
    The value is 0, not the neutral 128: losing a chroma channel is a strong colour cast. Y and the other chroma
    channel are kept as real numbers; only the final red, green and blue are cut off and rounded.
    """
    if channel in ("R", "G", "B"):
        out = pixels.copy()
        out[..., "RGB".index(channel)] = 0
        return out
    cv2 = library("cv2")
    rows = _without_chroma(channel).astype(np.float32)

    def dropped(strip: Pixels, _: slice) -> Pixels:
        linear = cv2.transform(strip.astype(np.float32), rows)  # of uint8 it would be 10-bit fixed point
        return np.asarray(cv2.addWeighted(linear, 1, linear, 0, 0, dtype=cv2.CV_8U))

    return by_strips(pixels, dropped)


def _without_chroma(channel: Channel) -> NDArray[np.float64]:
    """(3, 4) what red, green and blue become, from (R, G, B, 1), when Cb or Cr is 0."""
    luma = np.array([RED_SHARE, 1 - RED_SHARE - BLUE_SHARE, BLUE_SHARE, 0])
    red, blue = np.eye(4)[0], np.eye(4)[2]
    if channel == "Cb":
        blue = luma - 128 * 2 * (1 - BLUE_SHARE) * np.eye(4)[3]
    else:
        red = luma - 128 * 2 * (1 - RED_SHARE) * np.eye(4)[3]
    green = (luma - RED_SHARE * red - BLUE_SHARE * blue) / luma[1]
    return np.stack([red, green, blue])


def jpeg(pixels: Pixels, quality: int) -> Pixels:
    """Standard JPEG compression as the Python Imaging Library does it, and decompression (2018, III-A.4).

    Its usual settings apply: quantisation tables scaled by `quality`, up to 95 (more turns parts of JPEG off), chroma
    at half the resolution. The bits can differ between versions of libjpeg.
    """
    images = library("PIL.Image")
    stream = io.BytesIO()
    images.fromarray(pixels).save(stream, "JPEG", quality=quality)
    with images.open(stream) as image:
        return np.array(image)


def salt_and_pepper(pixels: Pixels, share: float, rng: np.random.Generator) -> Pixels:
    """round(share H W) pixels drawn without replacement; each becomes black or white, all channels, evens odds.

    The number of pixels is exact ("the percentage of affected pixels was set to"), not a probability for each; a
    share that ends halfway rounds to even.
    """
    count = pixels.shape[0] * pixels.shape[1]
    chosen = rng.choice(count, round(share * count), replace=False, shuffle=False)
    out = pixels.copy()
    out.reshape(count, 3)[chosen] = 255 * rng.integers(0, 2, len(chosen), np.uint8)[:, np.newaxis]
    return out


def additive_noise(
    pixels: Pixels, constant_sd: float, signal_sd: float, exponent: float, rng: np.random.Generator
) -> Pixels:
    """P + P^psi N(0, zeta_u^2) + N(0, zeta_w^2) for every pixel and channel on its own, on the scale 0..255.

    `constant_sd` is zeta_w, `signal_sd` zeta_u, `exponent` psi; where P = 0, P^psi is 0, or 1 if psi = 0. The two
    terms are independent, so their sum is drawn at once: normal with variance P^(2 psi) zeta_u^2 + zeta_w^2.
    """
    cv2 = library("cv2")
    levels = np.arange(256.0)
    spread = np.hypot(signal_sd * levels**exponent, constant_sd).astype(np.float32)

    def noisy(strip: Pixels, _: slice) -> Pixels:
        noise = _normal(strip.size, rng).reshape(strip.shape)
        noise *= cv2.LUT(strip, spread)
        return np.asarray(cv2.add(strip, noise, dtype=cv2.CV_8U))

    return by_strips(pixels, noisy)


def _normal(count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Independent standard normal numbers, by Box and Muller (1958); beyond 5.8 standard deviations there are none.

    About three times as fast as the generator's own, whose method does not use vector instructions.
    """
    cv2 = library("cv2")
    half = count // 2 + 1
    uniform = rng.random((2, half), np.float32)
    np.subtract(1, uniform[0], out=uniform[0])  # in (0, 1], so that its logarithm exists
    length = cv2.sqrt(cv2.log(uniform[0]) * -2)
    across, along = cv2.polarToCart(length, (uniform[1] * np.float32(2 * np.pi)).reshape(length.shape))
    both: NDArray[np.float32] = np.concatenate([across.ravel(), along.ravel()])
    return both[:count]


def shifted_lines(pixels: Pixels, share: float, most_px: int, rng: np.random.Generator) -> Pixels:
    """round(share H) lines drawn without replacement, each moved sideways by 1..`most_px` pixels, left or right.

    Every step is equally likely. What leaves a line on one side comes in on the other, as when the start of a scan
    line is read too early or too late. Boxes stay where they are.

    Raises:
        ValueError: a step beyond W - 1 of an image with W > 1.
    """
    height, width = pixels.shape[:2]
    if most_px >= max(width, 2):
        raise ValueError(f"expected whole pixels from 1 and below the width {width}, got {most_px}")
    lines = rng.choice(height, round(share * height), replace=False, shuffle=False)
    steps = rng.integers(1, most_px, len(lines), endpoint=True) * (2 * rng.integers(0, 2, len(lines)) - 1)
    twice = np.concatenate([pixels[lines]] * 2, axis=1).reshape(len(lines), 6 * width)
    shifted = np.lib.stride_tricks.sliding_window_view(twice, 3 * width, axis=1)[
        range(len(lines)), 3 * (-steps % width)
    ]
    out = pixels.copy()
    out[lines] = shifted.reshape(len(lines), width, 3)
    return out


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
    """
    return KOSCHMIEDER / visibility_m


def scattering_per_m(visibility_m: float = math.inf, beta_per_m: float | None = None) -> float:
    """beta, which one of both gives."""
    return extinction_per_m(visibility_m) if beta_per_m is None else beta_per_m


def haze(pixels: Pixels, depth_m: Metres, beta_per_m: float, colour: Sequence[int] = HAZE_COLOUR) -> Pixels:
    """The image in haze of scattering coefficient `beta_per_m`; 0 is the identity.

    D is the depth (H, W) in metres, smoothed by a Gaussian with a standard deviation of two pixels, mirrored at the
    edge as in `gaussian_blur`.
    """
    cv2 = library("cv2")
    kernel = gaussian_kernel(DEPTH_SIGMA_PX, DEPTH_REACH).astype(np.float32)
    far = depth_m.astype(np.float32)
    smooth = cv2.sepFilter2D(far, cv2.CV_32F, kernel, kernel, borderType=cv2.BORDER_REFLECT_101)
    levels = np.tile(np.array(colour, np.float32), pixels.shape[1])

    def hazed(strip: Pixels, rows: slice) -> Pixels:
        one = cv2.exp(smooth[rows] * np.float32(-beta_per_m))
        through = cv2.merge([one, one, one])  # the share of light that arrives, the same for every channel
        solid = np.broadcast_to(levels, (len(strip), len(levels))).reshape(strip.shape)
        contrast = cv2.subtract(strip, solid, dtype=cv2.CV_32F)
        return np.asarray(cv2.add(cv2.multiply(contrast, through), solid, dtype=cv2.CV_8U))

    return by_strips(pixels, hazed)
