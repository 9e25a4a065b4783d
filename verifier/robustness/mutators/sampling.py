"""Where each pixel of a turned or scaled image comes from, on a grid of 1/32 pixel.

OpenCV interpolates bilinearly with weights of five binary places a side. Given positions on that grid it is exact up
to 255 / 2^15, so the positions are put there here, as part of the definition: each is off by at most 1/64 + 1/65536
pixel. At the sharp edges of photographs that makes up to five grey levels against positions that are not rounded, as
much as OpenCV's own functions for turning an image are off, which round on the way.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from verifier.robustness.mutators.frames import strips

FINE = 2**16
"""Parts of a pixel in which the terms of a position are rounded before they are added."""
TO_32 = 11
"""Binary places from there to 1/32 pixel."""
HALF = 2 ** (TO_32 - 1)


def cosine_and_sine(angle_deg: float) -> tuple[float, float]:
    """Exact for whole quarter turns."""
    quarters, rest = divmod(angle_deg, 90)
    cosine, sine = math.cos(math.radians(rest)), math.sin(math.radians(rest))
    for _ in range(int(quarters) % 4):
        cosine, sine = -sine, cosine
    return cosine, sine


def turning_maps(height: int, width: int, angle_deg: float) -> tuple[NDArray[np.int16], NDArray[np.uint16]]:
    """For an image turned counter-clockwise, as seen, about its centre: the source position of every pixel.

    Returns the whole parts (H, W, 2) of column and row, and the place (H, W) within the cell, as `cv2.remap` takes
    them.
    """
    cosine, sine = cosine_and_sine(angle_deg)
    x, y = _from_centre(width), _from_centre(height)
    along, across = _fine(cosine * x + (width - 1) / 2), _fine(sine * x)
    left, top = _fine(-sine * y) + HALF, _fine(cosine * y + (height - 1) / 2) + HALF
    whole, parts = _empty_maps(height, width)
    for rows in strips(height):
        columns = np.add.outer(left[rows], along) >> TO_32
        lines = np.add.outer(top[rows], across) >> TO_32
        _put(whole[rows], parts[rows], columns, lines)
    return whole, parts


def scaling_maps(height: int, width: int, factor: float) -> tuple[NDArray[np.int16], NDArray[np.uint16]]:
    """For an image enlarged by `factor` about its centre; see `turning_maps`."""
    columns = (_fine(_from_centre(width) / factor + (width - 1) / 2) + HALF) >> TO_32
    lines = (_fine(_from_centre(height) / factor + (height - 1) / 2) + HALF) >> TO_32
    whole, parts = _empty_maps(height, width)
    _put(whole, parts, columns, lines[:, np.newaxis])
    return whole, parts


def _from_centre(side: int) -> NDArray[np.float64]:
    return np.arange(float(side)) - (side - 1) / 2


def _fine(position: NDArray[np.float64]) -> NDArray[np.int32]:
    return np.rint(position * FINE).astype(np.int32)


def _empty_maps(height: int, width: int) -> tuple[NDArray[np.int16], NDArray[np.uint16]]:
    return np.empty((height, width, 2), np.int16), np.empty((height, width), np.uint16)


def _put(
    whole: NDArray[np.int16], parts: NDArray[np.uint16], columns: NDArray[np.int32], lines: NDArray[np.int32]
) -> None:
    """Put positions in 1/32 pixel, as they are or broadcast, into the maps."""
    whole[..., 0], whole[..., 1] = columns >> 5, lines >> 5
    parts[...] = (lines & 31) << 5 | columns & 31
