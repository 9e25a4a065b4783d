"""How different two images are: MSE, PSNR and SSIM, on grey levels. M14 of Wozniak, Segura and Mazo 2024, Table 7.

Colour images are compared by their luma, .299 R + .587 G + .114 B (ITU-R BT.601), not rounded.

    MSE  = mean (x - y)^2                         grey levels squared
    PSNR = 10 log10(255^2 / MSE)                  decibels; infinite for equal images
    SSIM = mean of (2 mx my + C1)(2 sxy + C2) / ((mx^2 + my^2 + C1)(sx^2 + sy^2 + C2))

with mx, sx^2, sxy the mean, variance and covariance under a circular Gaussian window of 11 x 11 pixels, sigma 1.5,
sum 1, C1 = (.01 * 255)^2, C2 = (.03 * 255)^2, and the mean over every place where the window lies within the
image (Wang, Bovik, Sheikh and Simoncelli 2004, Sec. III-B and C). Easily confused with the SSIM of uniform 7 x 7
windows and sample covariances, which is what some libraries compute unless told otherwise.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import correlate1d

from verifier.base.arrays import Floats

Pixels = NDArray[np.uint8]

SSIM_WINDOW = 11
SSIM_SIGMA = 1.5
_LUMA = (0.299, 0.587, 0.114)
_C1, _C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2


def luma(image: Pixels) -> Floats:
    """(H, W) grey levels of an image (H, W) or (H, W, 3) RGB.

    Raises:
        ValueError: another shape or type.
    """
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] != 3):
        raise ValueError(f"expected an image (H, W) or (H, W, 3) of uint8, got {image.shape} of {image.dtype}")
    if image.ndim == 2:
        return image.astype(np.float64)
    found: Floats = image @ np.array(_LUMA)
    return found


def mse(one: Floats, other: Floats) -> float:
    """Mean squared error of two images (H, W); ValueError for different shapes."""
    _check_alike(one, other)
    return float(np.mean((one - other) ** 2))


def psnr(one: Floats, other: Floats) -> float:
    """Peak signal-to-noise ratio in dB of two images (H, W); infinite for equal ones."""
    error = mse(one, other)
    return 10 * math.log10(255**2 / error) if error else math.inf


def ssim(one: Floats, other: Floats) -> float:
    """Mean structural similarity of two images (H, W), at most 1; 1 for equal ones.

    Raises:
        ValueError: different shapes, or smaller than the window.
    """
    _check_alike(one, other)
    if min(one.shape) < SSIM_WINDOW:
        raise ValueError(f"SSIM needs images of {SSIM_WINDOW} x {SSIM_WINDOW} pixels at least")
    mean_one, mean_other = _blurred(one), _blurred(other)
    variance_one = _blurred(one * one) - mean_one**2
    variance_other = _blurred(other * other) - mean_other**2
    covariance = _blurred(one * other) - mean_one * mean_other
    above = (2 * mean_one * mean_other + _C1) * (2 * covariance + _C2)
    below = (mean_one**2 + mean_other**2 + _C1) * (variance_one + variance_other + _C2)
    return float(np.mean(above / below))


def _blurred(image: Floats) -> Floats:
    """The weighted mean at every place where the window lies within the image."""
    half = SSIM_WINDOW // 2
    weights = np.exp(-(np.arange(-half, half + 1) ** 2) / (2 * SSIM_SIGMA**2))
    weights /= weights.sum()
    rows: Floats = correlate1d(image, weights, axis=0)[half:-half]
    found: Floats = correlate1d(rows, weights, axis=1)[:, half:-half]
    return found


def _check_alike(one: Floats, other: Floats) -> None:
    if one.shape != other.shape or one.ndim != 2 or not one.size:
        raise ValueError(f"expected two images of one size, got {_size(one)} and {_size(other)}")


def _size(image: Floats) -> str:
    return " x ".join(map(str, image.shape[1::-1])) + " pixels" if image.ndim == 2 else str(image.shape)
