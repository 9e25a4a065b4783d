"""Mutations that draw at random: salt and pepper, signal-dependent noise, shifted lines.

Everything random comes from the generator that is passed in: equal generators give equal images. Source of the first
two: Pezzementi et al. 2018 (SSRR), section III-A.5 and III-A.7; of the third: Wozniak et al. 2024, box 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from verifier.base.libraries import library
from verifier.robustness.mutators.frames import Pixels, by_strips, check_pixels


def salt_and_pepper(pixels: Pixels, share: float, rng: np.random.Generator) -> Pixels:
    """round(share H W) pixels drawn without replacement; each becomes black or white, all channels, evens odds.

    The number of pixels is exact ("the percentage of affected pixels was set to"), not a probability for each; a
    share that ends halfway rounds to even.

    Raises:
        ValueError: a share outside 0..1, or no image.
    """
    check_pixels(pixels)
    _check_share(share)
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

    Raises:
        ValueError: a negative or infinite parameter, or no image.
    """
    check_pixels(pixels)
    for value in (constant_sd, signal_sd, exponent):
        if not 0 <= value < np.inf:
            raise ValueError(f"expected finite parameters from 0, got {constant_sd}, {signal_sd}, {exponent}")
    cv2 = library("cv2")
    levels = np.arange(256.0)
    spread = np.hypot(signal_sd * levels**exponent, constant_sd).astype(np.float32)

    def noisy(strip: Pixels, _: slice) -> Pixels:
        noise = _normal(strip.size, rng).reshape(strip.shape)
        noise *= cv2.LUT(strip, spread)
        rounded: Pixels = cv2.add(strip, noise, dtype=cv2.CV_8U)
        return rounded

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
        ValueError: a share outside 0..1, a step that is not in 1..W - 1 of an image with W > 1, or no image.
    """
    check_pixels(pixels)
    _check_share(share)
    height, width = pixels.shape[:2]
    if not 1 <= most_px < max(width, 2) or most_px != int(most_px):
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


def _check_share(share: float) -> None:
    if not 0 <= share <= 1:
        raise ValueError(f"expected a share in 0..1, got {share}")
