"""Complex-wavelet structural similarity (CW-SSIM): similarity of phases, which small shifts and turns hardly change.

Sampat, Wang, Gupta, Bovik and Markey 2009 (IEEE Trans. Image Processing 18(11), eq. (10) and Sec. IV):

    S(cx, cy) = (2 |sum cx cy*| + K) / (sum |cx|^2 + sum |cy|^2 + K)

over windows of 7 x 7 coefficients of one oriented band; the map of S is averaged with a Gaussian weight whose sigma
is a quarter of the band's height, then over all orientations. The coefficients are those of the complex steerable
pyramid (Portilla and Simoncelli 2000) at its coarsest scale, 6 scales and 16 orientations there. In polar frequency,
r = 1 where the shorter of period and axis meet, H(x) = cos(pi/2 x) with x cut to -1..0, and L = sqrt(1 - H^2),

    band(r, t) = L(log2 r) prod_{j < level} L(log2 r + j) * H(log2 r + level) * A(t - pi b / B)
    A(t) proportional to cos(t)^(B - 1) where cos(t) > 0, else 0        one-sided: the coefficients are complex

sampled 2^(level - 1) times coarser than the image. The constant component belongs to no band.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import fft2, fftshift, ifft2, ifftshift
from scipy.ndimage import uniform_filter

from verifier.base.arrays import Floats

Complexes = NDArray[np.complex128]


@dataclass(frozen=True)
class CwSsimSettings:
    """Which band and how it is compared.

    Attributes:
        level: scale of the pyramid, 1 the finest; band-pass around a period of 2^(level + 1) pixels.
        orientations: B.
        window: side of the windows, in coefficients.
        constant: K, grey levels squared per coefficient; what keeps windows without structure from counting.

    Raises:
        ValueError: out of range.
    """

    level: int = 6
    orientations: int = 16
    window: int = 7
    constant: float = 0.01

    def __post_init__(self) -> None:
        if not 1 <= self.level <= 12 or not 1 <= self.orientations <= 32 or self.window < 1 or self.window % 2 == 0:
            raise ValueError("expected level 1..12, 1..32 orientations, and an odd window")
        if not 0 <= self.constant < math.inf:
            raise ValueError("expected a constant from 0")

    @property
    def least_side(self) -> int:
        """Pixels that the shorter side of an image must have, so that a window fits into the band."""
        side = self.window
        for _ in range(self.level - 1):
            side = 2 * side - 1
        return side


DEFAULT = CwSsimSettings()


def cw_ssim(one: Floats, other: Floats, settings: CwSsimSettings = DEFAULT) -> float:
    """CW-SSIM of two images (H, W) of grey levels, in 0..1; 1 for equal ones.

    Raises:
        ValueError: different shapes, or too small for the scale; or windows without structure and K = 0.
    """
    if one.shape != other.shape or one.ndim != 2:
        raise ValueError(f"expected two images of one size, got {one.shape} and {other.shape}")
    if min(one.shape) < settings.least_side:
        raise ValueError(
            f"CW-SSIM at level {settings.level} needs images of {settings.least_side} x {settings.least_side} pixels "
            "at least"
        )
    pairs = zip(bands(one, settings), bands(other, settings), strict=True)
    return float(np.mean([_similarity(first, second, settings) for first, second in pairs]))


def bands(image: Floats, settings: CwSsimSettings = DEFAULT) -> list[Complexes]:
    """The complex coefficients of every orientation at the level, in grey levels."""
    spectrum = fftshift(fft2(image))
    rows, columns = (_axis(length, settings.level) for length in image.shape)
    y, x = rows[1][:, None], columns[1][None, :]
    spectrum = spectrum[rows[0], columns[0]]
    scale = spectrum.size / image.size  # a coarser sampling, not a change of contrast
    spectrum = spectrum * _radial(np.hypot(x, y), settings.level) * scale
    angle = np.arctan2(y, x)
    found = []
    for number in range(settings.orientations):
        turned = np.cos(angle - math.pi * number / settings.orientations)
        mask = np.where(turned > 0, turned, 0.0) ** (settings.orientations - 1) * (turned > 0)
        coefficients: Complexes = ifft2(ifftshift(spectrum * mask))
        found.append(coefficients * _gain(settings.orientations))
    return found


def _axis(length: int, level: int) -> tuple[slice, Floats]:
    """Which frequencies of a side the band can hold, and these frequencies; 1 is half the sampling rate."""
    kept = length
    for _ in range(level - 1):
        kept = (kept + 1) // 2
    centre = length // 2
    first = centre - kept // 2
    frequencies = (np.arange(length) - centre) / (length / 2)
    return slice(first, first + kept), frequencies[first : first + kept]


def _radial(radius: Floats, level: int) -> Floats:
    with np.errstate(divide="ignore"):
        octave = np.log2(radius)
    found = _high(octave + level)
    for number in range(level):
        found = found * np.sqrt(1 - _high(octave + number) ** 2)
    return np.where(radius > 0, found, 0.0)


def _high(octave: Floats) -> Floats:
    """H: 0 an octave below and further down, 1 from 0 on."""
    cut = np.clip(octave, -1.0, 0.0)
    return np.where(cut <= -1.0, 0.0, np.cos(math.pi / 2 * cut))


def _gain(orientations: int) -> float:
    """The factor with which the real parts of all orientations, squared, pass the whole of every frequency."""
    order = orientations - 1
    return 2 * math.sqrt(4.0**order * math.factorial(order) ** 2 / (orientations * math.factorial(2 * order)))


def _similarity(first: Complexes, second: Complexes, settings: CwSsimSettings) -> float:
    window = settings.window
    product = first * np.conj(second)
    cross = np.hypot(_sums(product.real, window), _sums(product.imag, window))
    power = _sums(first.real**2 + first.imag**2 + second.real**2 + second.imag**2, window)
    below = power + settings.constant * window**2
    if not np.all(below > 0):
        raise ValueError("windows without any structure: choose a constant above 0")
    chart = (2 * cross + settings.constant * window**2) / below
    weight = _weight(chart.shape, first.shape[0] / 4)
    return float((chart * weight).sum())


def _sums(values: Floats, window: int) -> Floats:
    """Sums over every window that lies within the band."""
    half = window // 2
    means: Floats = uniform_filter(values, window, mode="constant")
    inner = means[half : means.shape[0] - half, half : means.shape[1] - half]
    return inner * window**2


def _weight(shape: tuple[int, ...], sigma: float) -> Floats:
    y, x = (np.arange(length) - (length - 1) / 2 for length in shape)
    weight = np.exp(-(y[:, None] ** 2 + x[None, :] ** 2) / (2 * sigma**2))
    found: Floats = weight / weight.sum()
    return found
