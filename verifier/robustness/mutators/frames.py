"""What a mutation changes: the pixels of an image, with the depth and the boxes that belong to them.

Pixels are `(H, W, 3)` uint8, red, green, blue. Pixel (i, j) covers the square [j, j + 1) x [i, i + 1): its centre is
at (j + 0.5, i + 0.5), and the image at [0, W] x [0, H]. Boxes and depth follow the same frame.

A mutation computes in floating point and rounds once, to the nearest grey level, ties to even; rotation and chromatic
aberration interpolate in whole numbers and round ties up. Levels beyond 0 and 255 are cut off. Arithmetic in float32
moves a value by less than 0.001 before it is rounded, so what is that close to a tie may be rounded either way.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError
from verifier.perception.detections.columns import faulty_boxes
from verifier.perception.detections.distances import LARGEST_M

Pixels: TypeAlias = NDArray[np.uint8]
Metres: TypeAlias = NDArray[np.float64]
LONGEST_SIDE = 16_000
"""Pixels; the corners of a turned image still have positions that OpenCV holds in 16 bits."""
STRIP = 64
"""Rows worked on at a time, so that the values in floating point stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Frame:
    """An image and what belongs to its pixels.

    Attributes:
        pixels: (H, W, 3) uint8, RGB.
        depth_m: (H, W) metres along the optical axis, positive and finite, or None where it is not known.
        boxes: (n, 4) left, top, right, bottom in pixels, or None.
        kept: (n,) which of the boxes of the first frame these are, increasing; filled in where it is not given.

    Raises:
        ValueError: an array has another shape or type, a box is not finite or of negative size.
        InputError: a depth that is none.
    """

    pixels: Pixels
    depth_m: Metres | None = None
    boxes: NDArray[np.float64] | None = None
    kept: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        check_pixels(self.pixels)
        if self.depth_m is not None:
            object.__setattr__(self, "depth_m", checked_depth(self.depth_m, self.pixels))
        if self.boxes is None:
            if self.kept is not None:
                raise ValueError("`kept` goes with boxes")
            return
        boxes = np.array(self.boxes, np.float64)
        if boxes.ndim != 2 or boxes.shape[1] != 4:
            raise ValueError(f"boxes have shape {boxes.shape}, expected (n, 4)")
        if np.isnan(boxes).any() or faulty_boxes(boxes).any():
            raise ValueError("a box is not finite or has a negative size")
        kept = np.arange(len(boxes)) if self.kept is None else np.array(self.kept, np.int64)
        if kept.shape != (len(boxes),):
            raise ValueError(f"{len(boxes)} boxes, `kept` of shape {kept.shape}")
        object.__setattr__(self, "boxes", boxes)
        object.__setattr__(self, "kept", kept)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return self.pixels.shape[0], self.pixels.shape[1]


def check_pixels(pixels: NDArray[Any]) -> None:
    """Refuse what is no (H, W, 3) uint8 image: a ValueError; one with a side above `LONGEST_SIDE`: an InputError."""
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
        found = f"{pixels.dtype} of shape {pixels.shape}" if isinstance(pixels, np.ndarray) else type(pixels).__name__
        raise ValueError(f"expected pixels (H, W, 3) uint8, got {found}")
    if not pixels.size:
        raise ValueError(f"an image without pixels, shape {pixels.shape}")
    if max(pixels.shape) > LONGEST_SIDE:
        raise InputError(f"an image of {pixels.shape[1]} x {pixels.shape[0]} pixels; at most {LONGEST_SIDE} a side")


def checked_depth(depth_m: NDArray[Any], pixels: Pixels) -> Metres:
    """The depth of every pixel in metres as float64.

    Raises:
        InputError: another size than the image; a depth that is not positive, not finite or above `LARGEST_M`.
        ValueError: no numbers.
    """
    depth = np.asarray(depth_m)
    if depth.dtype.kind not in "fiu":
        raise ValueError(f"expected depth in metres, got {depth.dtype}")
    height, width = pixels.shape[:2]
    if depth.shape != (height, width):
        found = " x ".join(str(side) for side in depth.shape[::-1])
        raise InputError(f"the depth map has {found} pixels, the image {width} x {height}")
    depth = depth.astype(np.float64, copy=False)
    if not (depth.min() > 0 and depth.max() <= LARGEST_M):  # NaN is neither
        bad = ~((depth > 0) & (depth <= LARGEST_M))
        row, column = (int(each) for each in np.unravel_index(bad.argmax(), depth.shape))
        raise InputError(
            f"the depth at pixel ({column}, {row}), counted from 0, is {depth[row, column]:g} m; expected a positive "
            f"number up to {LARGEST_M:g}; {int(bad.sum())} of {bad.size} pixels have none",
            hint="where 0 means unknown, fill the map first: `densify`, or --densify on the command line",
        )
    return depth


def strips(height: int) -> Iterator[slice]:
    """The rows of an image, `STRIP` at a time."""
    for top in range(0, height, STRIP):
        yield slice(top, min(top + STRIP, height))


def by_strips(pixels: Pixels, change: Callable[[Pixels, slice], Pixels]) -> Pixels:
    """An image put together from what `change` makes of each strip; `change` gets the strip and its rows."""
    out = np.empty(pixels.shape, np.uint8)
    for rows in strips(pixels.shape[0]):
        out[rows] = change(pixels[rows], rows)
    return out
