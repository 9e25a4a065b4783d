"""Mutations that move what is seen: rotation and truncation. Boxes, and depth where it is known, move along.

Source: Wozniak et al. 2024 (Electronics 13(7), 1368), boxes 1 and 3.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from verifier.base.libraries import library
from verifier.robustness.mutators.frames import Frame, Pixels, check_pixels
from verifier.robustness.mutators.sampling import cosine_and_sine, turning_maps

Canvas: TypeAlias = Literal["kept", "cropped"]


def rotate(pixels: Pixels, angle_deg: float) -> Pixels:
    """Turned about the centre, counter-clockwise as seen, on a canvas of the same size; what comes in is black.

    Bilinear interpolation, with source positions on a grid of 1/32 pixel; beyond the edge the image is black.

    Raises:
        ValueError: an infinite angle, or no image.
    """
    check_pixels(pixels)
    if not np.isfinite(angle_deg):
        raise ValueError(f"expected a finite angle in degrees, got {angle_deg}")
    cv2 = library("cv2")
    whole, parts = turning_maps(pixels.shape[0], pixels.shape[1], angle_deg)
    turned: Pixels = cv2.remap(pixels, whole, parts, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT)
    return turned


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
    frame: Frame,
    left: float = 0.0,
    top: float = 0.0,
    right: float = 0.0,
    bottom: float = 0.0,
    canvas: Canvas = "kept",
) -> Frame:
    """The given shares of width and height are lost on each side.

    Lost columns and rows are whole: round(share W), ties to even. With the canvas "kept" they are black; with
    "cropped" the image is smaller, and depth and boxes count from its new corner. Boxes are cut to what is left;
    those without area there are left out.

    Raises:
        ValueError: a share outside 0..1, nothing left, another canvas.
    """
    shares = (left, top, right, bottom)
    if canvas not in get_args(Canvas) or not all(0 <= share <= 1 for share in shares):
        raise ValueError(f"expected shares in 0..1 and a canvas kept or cropped, got {shares} and {canvas!r}")
    height, width = frame.size
    x0, y0 = round(left * width), round(top * height)
    x1, y1 = width - round(right * width), height - round(bottom * height)
    if x0 >= x1 or y0 >= y1:
        raise ValueError(f"nothing is left of an image of {width} x {height} pixels")
    seen = (slice(y0, y1), slice(x0, x1))
    if canvas == "cropped":
        depth = None if frame.depth_m is None else frame.depth_m[seen].copy()
        cut = replace(frame, pixels=frame.pixels[seen].copy(), depth_m=depth)
        shift = np.array([x0, y0, x0, y0])
        moved = None if frame.boxes is None else frame.boxes - shift
        return cut if moved is None else _with_boxes(cut, moved, (0, 0, x1 - x0, y1 - y0))
    pixels = np.zeros_like(frame.pixels)
    pixels[seen] = frame.pixels[seen]
    cut = frame.with_pixels(pixels)
    return cut if frame.boxes is None else _with_boxes(cut, frame.boxes, (x0, y0, x1, y1))


def _with_boxes(frame: Frame, boxes: NDArray[np.float64], seen: tuple[int, int, int, int]) -> Frame:
    """The frame with new boxes, cut to the region that is seen; without those that have no area there."""
    cut = np.clip(boxes, (seen[0], seen[1]) * 2, (seen[2], seen[3]) * 2)
    there = (cut[:, 2] > cut[:, 0]) & (cut[:, 3] > cut[:, 1])
    assert frame.kept is not None  # goes with boxes
    return replace(frame, boxes=cut[there], kept=frame.kept[there])
