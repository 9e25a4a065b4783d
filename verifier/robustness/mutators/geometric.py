"""Mutations that move what is seen: rotation and truncation. Boxes, and depth where it is known, move along.

Source: Wozniak et al. 2024 (Electronics 13(7), 1368), boxes 1 and 3.

Where each pixel of a turned or scaled image comes from, on a grid of 1/32 pixel.

OpenCV interpolates bilinearly with weights of five binary places a side. Given positions on that grid it is exact up
to 255 / 2^15, so the positions are put there here, as part of the definition: each is off by at most 1/64 + 1/65536
pixel. At the sharp edges of photographs that makes up to five grey levels against positions that are not rounded, as
much as OpenCV's own functions for turning an image are off, which round on the way.

Mutations of a neighbourhood that do not need depth: Gaussian blur, motion blur, pixelation, chromatic aberration.

At the edge the image is mirrored about its outermost pixels (dcb|abcd|cba), as OpenCV does unless told otherwise;
chromatic aberration repeats the outermost pixels where its enlarged planes end.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from verifier.base.libraries import library
from verifier.robustness.mutators.frames import Frame, Pixels, strips

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


def rotate(pixels: Pixels, angle_deg: float) -> Pixels:
    """Turned about the centre, counter-clockwise as seen, on a canvas of the same size; what comes in is black.

    Bilinear interpolation, with source positions on a grid of 1/32 pixel; beyond the edge the image is black.
    """
    cv2 = library("cv2")
    whole, parts = turning_maps(pixels.shape[0], pixels.shape[1], angle_deg)
    return np.asarray(cv2.remap(pixels, whole, parts, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT))


def rotate_frame(frame: Frame, angle_deg: float) -> Frame:
    """`rotate` for pixels, depth and boxes.

    Depth is that of the nearest pixel; where there is none, that of the nearest pixel of the edge. A box becomes the
    smallest upright box around its turned corners, cut to the image: larger than the object it was drawn around.
    Boxes without area inside the image are left out.
    """
    height, width = frame.size
    turned = replace(frame, pixels=rotate(frame.pixels, angle_deg), depth_m=None)
    if frame.depth_m is not None:
        whole, parts = turning_maps(height, width, angle_deg)
        column = np.clip(whole[..., 0] + (parts & 31 >= 16), 0, width - 1)
        row = np.clip(whole[..., 1] + (parts >> 5 >= 16), 0, height - 1)
        turned = replace(turned, depth_m=frame.depth_m[row, column])
    if frame.boxes is None:
        return turned
    cosine, sine = cosine_and_sine(angle_deg)
    corners = frame.boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2) - (width / 2, height / 2)
    back = np.array([[cosine, -sine], [sine, cosine]])
    corners = corners @ back + (width / 2, height / 2)
    return _with_boxes(turned, np.hstack([corners.min(axis=1), corners.max(axis=1)]), (0, 0, width, height))


def truncate_frame(
    frame: Frame, left: float = 0.0, top: float = 0.0, right: float = 0.0, bottom: float = 0.0
) -> Frame:
    """The given shares of width and height are lost on each side: black, on a canvas of the same size.

    Lost columns and rows are whole: round(share W), ties to even. Boxes are cut to what is left; those without area
    there are left out.

    Raises:
        ValueError: nothing is left.
    """
    height, width = frame.size
    x0, y0 = round(left * width), round(top * height)
    x1, y1 = width - round(right * width), height - round(bottom * height)
    if x0 >= x1 or y0 >= y1:
        raise ValueError(f"nothing is left of an image of {width} x {height} pixels")
    seen = (slice(y0, y1), slice(x0, x1))
    pixels = np.zeros_like(frame.pixels)
    pixels[seen] = frame.pixels[seen]
    cut = replace(frame, pixels=pixels)
    return cut if frame.boxes is None else _with_boxes(cut, frame.boxes, (x0, y0, x1, y1))


def _with_boxes(frame: Frame, boxes: NDArray[np.float64], seen: tuple[int, int, int, int]) -> Frame:
    """The frame with new boxes, cut to the region that is seen; without those that have no area there."""
    cut = np.clip(boxes, (seen[0], seen[1]) * 2, (seen[2], seen[3]) * 2)
    there = (cut[:, 2] > cut[:, 0]) & (cut[:, 3] > cut[:, 1])
    assert frame.kept is not None  # goes with boxes
    return replace(frame, boxes=cut[there], kept=frame.kept[there])


REACH = 4.0
"""Standard deviations at which a Gaussian kernel ends; what is left out could change a level by 0.03 at most."""
WIDEST_SIGMA_PX = 500.0
LONGEST_PATH_PX = 500.0
LARGEST_BLOCK_PX = 256
ROUNDING = 1e-14
"""Weights below this are what rounding leaves of 0."""


def gaussian_kernel(sigma_px: float, reach: float = REACH) -> NDArray[np.float64]:
    """(2 r + 1,) samples of exp(-x^2 / (2 sigma^2)) at whole x over their sum; r = ceil(reach sigma), sigma > 0."""
    radius = int(np.ceil(reach * sigma_px))
    places = np.arange(-radius, radius + 1) / sigma_px
    kernel = np.exp(-(places**2) / 2)
    return np.asarray(kernel / kernel.sum())


def gaussian_blur(pixels: Pixels, sigma_px: float) -> Pixels:
    """Convolution with a sampled, normalised Gaussian (2018, III-A.1; 2021, 5.1.1); sigma 0 is the identity.

    More exact than OpenCV's own blur of eight-bit images, whose kernel has eight binary places and ends at 3 sigma:
    that is off by up to two grey levels.
    """
    return pixels.copy() if sigma_px == 0 else _blurred(pixels, sigma_px)


def _blurred(image: NDArray[np.generic], sigma_px: float) -> Pixels:
    """Blurred in float32 and rounded; `image` (H, W) or (H, W, C) of uint8 or float32."""
    cv2 = library("cv2")
    kernel = gaussian_kernel(sigma_px)
    # A kernel that sums to 1 exactly could make OpenCV compute with whole numbers of eight binary places.
    across, down = (kernel * 2).astype(np.float32), (kernel / 2).astype(np.float32)
    return np.asarray(cv2.sepFilter2D(image, cv2.CV_8U, across, down, borderType=cv2.BORDER_REFLECT_101))


def motion_blur(pixels: Pixels, length_px: float, angle_deg: float = 0.0) -> Pixels:
    """The mean over a straight, even motion: the integral of I(x - t u) over t from -L/2 to L/2, divided by L.

    u points to the right and, with a positive angle, upwards; the image between pixels is interpolated bilinearly,
    so the kernel is the integral of the two hat functions along the segment, taken exactly.
    """
    if length_px == 0:
        return pixels.copy()
    cv2 = library("cv2")
    kernel = motion_kernel(length_px, angle_deg)
    return np.asarray(cv2.filter2D(pixels, cv2.CV_8U, kernel.astype(np.float32), borderType=cv2.BORDER_REFLECT_101))


def motion_kernel(length_px: float, angle_deg: float) -> NDArray[np.float64]:
    """(2 r + 1, 2 c + 1) weight of each offset (down, right); they sum to 1 and are symmetric about the centre.

    Between two neighbouring whole coordinates of the path, a product of two hats is a quadratic polynomial of t,
    which Simpson's rule integrates exactly.
    """
    angle = np.deg2rad(angle_deg)
    right, down = np.cos(angle), -np.sin(angle)
    half = length_px / 2
    breaks = [-half, 0.0, half]  # the path crosses whole coordinates in the middle, and where |t step| is whole
    for step in (abs(right), abs(down)):
        whole = np.arange(1, int(step * half) + 1)
        breaks += (whole / step).tolist() + (-whole / step).tolist()
    times = np.unique(np.clip(breaks, -half, half))
    middle = (times[1:] + times[:-1]) / 2
    at = np.stack([times[:-1], middle, times[1:]])
    weight = np.diff(times) * np.array([[1], [4], [1]]) / (6 * length_px)
    columns, rows = (int(np.ceil(abs(step) * half)) + 1 for step in (right, down))
    kernel = np.zeros((2 * rows + 1, 2 * columns + 1))
    x, y = at * right + columns, at * down + rows
    left, top = (np.floor(axis[1]).astype(int) for axis in (x, y))  # one cell for the whole of each piece
    for row in (top, top + 1):
        for column in (left, left + 1):
            share = weight * (1 - abs(x - column)) * (1 - abs(y - row))
            np.add.at(kernel, (row, column), share.sum(axis=0))
    kernel[kernel < ROUNDING] = 0  # would be multiplied with like any other weight
    return kernel


def pixelation(pixels: Pixels, block_px: int) -> Pixels:
    """Every block of block x block pixels, counted from the left upper corner, becomes its mean; 1 is the identity.

    Blocks at the right and the lower edge may be smaller; their mean is over the pixels that they have. A block is up
    to `LARGEST_BLOCK_PX`: sums of more would not be exact in float32.
    """
    cv2 = library("cv2")
    height, width = pixels.shape[:2]
    sums = cv2.boxFilter(
        pixels, cv2.CV_32F, (block_px, block_px), anchor=(0, 0), normalize=False, borderType=cv2.BORDER_CONSTANT
    )[::block_px, ::block_px].astype(np.float64)
    tall = np.minimum(block_px, height - np.arange(0, height, block_px))
    wide = np.minimum(block_px, width - np.arange(0, width, block_px))
    means = np.rint(sums / np.outer(tall, wide)[..., np.newaxis]).astype(np.uint8)
    size = (means.shape[1] * block_px, means.shape[0] * block_px)
    return np.ascontiguousarray(cv2.resize(means, size, interpolation=cv2.INTER_NEAREST)[:height, :width])


def chromatic_aberration(pixels: Pixels, expansion: float, sigma_px: float = 0.0) -> Pixels:
    """Red enlarged about the image centre by 1 + expansion, blue made smaller by the same factor, both blurred.

    Lateral aberration is the difference in scale, longitudinal the blur: Gaussian with `sigma_px`, after scaling.
    Green stays. Source coordinates are rounded to 1/32 pixel. The name and the two effects are from Wozniak et al.
    2024, box 6, whose single parameter is not defined there.
    """
    cv2 = library("cv2")
    out = pixels.copy()
    for channel, factor in ((0, 1 + expansion), (2, 1 / (1 + expansion))):
        # In float32 as long as something follows, so that rounding happens once.
        plane = np.ascontiguousarray(pixels[..., channel], np.float32 if sigma_px else np.uint8)
        whole, parts = scaling_maps(plane.shape[0], plane.shape[1], factor)
        plane = cv2.remap(plane, whole, parts, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        out[..., channel] = _blurred(plane, sigma_px) if sigma_px else plane
    return out
