"""Mutations of single pixels: brightness, contrast, alpha blend, channel drop-out, JPEG.

Sources: Pezzementi et al. 2018 (SSRR), section III-A, and 2021 (Field Robotics), section 5.1.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from verifier.base.libraries import library
from verifier.robustness.mutators.frames import Pixels, by_strips, check_pixels

Channel: TypeAlias = Literal["R", "G", "B", "Cb", "Cr"]
CHANNELS: tuple[Channel, ...] = get_args(Channel)
HAZE_COLOUR = (205, 208, 211)
"""Red, green, blue: "a gray color similar to fog" (both papers)."""
RED_SHARE, BLUE_SHARE = 0.299, 0.114
"""Of the luma Y of JFIF (ITU-R BT.601, full range); the rest is green."""


def brightness(pixels: Pixels, factor: float) -> Pixels:
    """Every channel times `factor`, cut off at 255 (2018, III-A.2).

    Raises:
        ValueError: a negative factor, or no image.
    """
    check_pixels(pixels)
    if not 0 <= factor < np.inf:
        raise ValueError(f"expected a finite factor from 0, got {factor}")
    cv2 = library("cv2")
    scaled: Pixels = cv2.convertScaleAbs(pixels, alpha=factor)
    return scaled


def contrast(pixels: Pixels, factor: float, about: float | None = None) -> Pixels:
    """Distances from the level `about` times `factor`: (I - m) factor + m.

    m is `about`, or the mean of all pixels and channels where that is None. Hendrycks and Dietterich (2019) take the
    mean of each channel instead, which also changes colours.

    Raises:
        ValueError: a negative factor, a level outside 0..255, or no image.
    """
    check_pixels(pixels)
    if not 0 <= factor < np.inf or (about is not None and not 0 <= about <= 255):
        raise ValueError(f"expected a finite factor from 0 and a level in 0..255, got {factor} and {about}")
    cv2 = library("cv2")
    level = sum(cv2.sumElems(pixels)[:3]) / pixels.size if about is None else about
    # Not convertScaleAbs: it would turn levels below 0 into their absolute value.
    stretched: Pixels = cv2.addWeighted(pixels, factor, pixels, 0, (1 - factor) * level)
    return stretched


def alpha_blend(pixels: Pixels, alpha: float, colour: Sequence[int] = HAZE_COLOUR) -> Pixels:
    """(1 - alpha) I + alpha h with one colour h everywhere: haze without depth (2018, III-A.3; 2021, 5.1.2).

    `alpha` is the weight of the colour, so 0 is the identity and 1 nothing but haze: detection rates fall with it in
    table IV of the 2018 paper.

    Raises:
        ValueError: alpha outside 0..1, a colour that is not three levels in 0..255, or no image.
    """
    check_pixels(pixels)
    if not 0 <= alpha <= 1:
        raise ValueError(f"expected alpha in 0..1, got {alpha}")
    cv2 = library("cv2")
    line = np.tile(checked_colour(colour), pixels.shape[1])

    def blended(strip: Pixels, _: slice) -> Pixels:
        solid = np.broadcast_to(line, (len(strip), len(line))).reshape(strip.shape)
        mixed: Pixels = cv2.addWeighted(strip, 1 - alpha, solid, alpha, 0)
        return mixed

    return by_strips(pixels, blended)


def checked_colour(colour: Sequence[int]) -> Pixels:
    """(3,) levels of red, green and blue; ValueError unless they are three whole numbers in 0..255."""
    levels = np.asarray(colour)
    if levels.shape != (3,) or levels.dtype.kind not in "iu" or levels.min() < 0 or levels.max() > 255:
        raise ValueError(f"expected three whole levels in 0..255, got {colour!r}")
    return levels.astype(np.uint8)


def channel_dropout(pixels: Pixels, channel: Channel) -> Pixels:
    """A channel set to 0: R, G or B of RGB, Cb or Cr of YCbCr (2018, III-A.6; 2021, 5.1.3).

    YCbCr is that of JFIF: Y = 0.299 R + 0.587 G + 0.114 B, Cb = 128 + (B - Y) / 1.772, Cr = 128 + (R - Y) / 1.402.
    The value is 0, not the neutral 128: losing a chroma channel is a strong colour cast. Y and the other chroma
    channel are kept as real numbers; only the final red, green and blue are cut off and rounded.

    Raises:
        ValueError: another channel, or no image.
    """
    check_pixels(pixels)
    if channel not in CHANNELS:
        raise ValueError(f"expected a channel of {', '.join(CHANNELS)}, got {channel!r}")
    if channel in ("R", "G", "B"):
        out = pixels.copy()
        out[..., "RGB".index(channel)] = 0
        return out
    cv2 = library("cv2")
    rows = _without_chroma(channel).astype(np.float32)

    def dropped(strip: Pixels, _: slice) -> Pixels:
        linear = cv2.transform(strip.astype(np.float32), rows)  # of uint8 it would be 10-bit fixed point
        rounded: Pixels = cv2.addWeighted(linear, 1, linear, 0, 0, dtype=cv2.CV_8U)
        return rounded

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

    Its usual settings apply: quantisation tables scaled by `quality`, chroma at half the resolution. The bits can
    differ between versions of libjpeg.

    Raises:
        ValueError: a quality outside 1..95 (more turns parts of JPEG off), or no image.
    """
    check_pixels(pixels)
    if not 1 <= quality <= 95 or quality != int(quality):
        raise ValueError(f"expected a whole quality in 1..95, got {quality}")
    images = library("PIL.Image")
    stream = io.BytesIO()
    images.fromarray(pixels).save(stream, "JPEG", quality=int(quality))
    with images.open(stream) as image:
        return np.array(image)
