"""What a mutation changes: the pixels of an image, with the depth and the boxes that belong to them.

Pixels are `(H, W, 3)` uint8, red, green, blue. Pixel (i, j) covers the square [j, j + 1) x [i, i + 1): its centre is
at (j + 0.5, i + 0.5), and the image at [0, W] x [0, H]. Boxes and depth follow the same frame.

A mutation computes in floating point and rounds once, to the nearest grey level, ties to even; rotation and chromatic
aberration interpolate in whole numbers and round ties up. Levels beyond 0 and 255 are cut off. Arithmetic in float32
moves a value by less than 0.001 before it is rounded, so what is that close to a tie may be rounded either way.

The depth that belongs to images: where it comes from, what of it is sky, and how much of it is a guess.

Haze and defocus need the depth of every pixel. Maps of LiDAR, stereo (disparities) and networks for one camera are
read; what they do not know is a named policy's sky, infinitely far away, or filled in by a named method. The papers
smooth depth before haze, which carries the sky about eight pixels into what stands before it.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from verifier.base.documents import Count, Limits, Magnitude
from verifier.base.errors import InputError, Place
from verifier.base.words import percent
from verifier.perception.detections.columns import faulty_boxes
from verifier.perception.detections.depth import UNITS_PER_M, depth_file, depth_map
from verifier.perception.detections.distances import LARGEST_M
from verifier.perception.settings import IMAGE_SUFFIXES
from verifier.robustness.detectors.protocol import read_image
from verifier.robustness.mutators.imagefiles import densify
from verifier.robustness.settings import Densifying

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
        given = f"{pixels.dtype} of shape {pixels.shape}" if isinstance(pixels, np.ndarray) else type(pixels).__name__
        raise ValueError(f"expected pixels (H, W, 3) uint8, got {given}")
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
    check_size("depth map", depth, pixels.shape[:2])
    depth = depth.astype(np.float64, copy=False)
    if not (depth.min() > 0 and depth.max() <= LARGEST_M):  # NaN is neither
        bad = ~((depth > 0) & (depth <= LARGEST_M))
        row, column = (int(number) for number in np.unravel_index(bad.argmax(), depth.shape))
        raise InputError(
            f"the depth at pixel ({column}, {row}), counted from 0, is {depth[row, column]:g} m; expected a positive "
            f"number up to {LARGEST_M:g}; {int(bad.sum())} of {bad.size} pixels have none",
            hint="where 0 means unknown, fill the map first: `densify`, or --densify on the command line",
        )
    return depth


def check_size(what: str, given: NDArray[Any], size: tuple[int, ...], place: Place | None = None) -> None:
    """Refuse what has other sides than its image, of `size` (H, W); InputError."""
    if given.shape != size:
        sides, image = (" x ".join(map(str, shape[::-1])) for shape in (given.shape, size))
        raise InputError(f"the {what} has {sides} pixels, the image {image}", place)


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


@dataclass(frozen=True, eq=False)
class DepthMap:
    """What is known of the depth of one image: (H, W) metres, 0 where unknown, and the SHA-256 of that."""

    depth_m: Metres
    sha256: str

    @property
    def known(self) -> float:
        """The share of pixels with a known depth."""
        return float(np.count_nonzero(self.depth_m)) / self.depth_m.size


DISTANCES_M = (0.0, 10.0, 20.0, 40.0, 80.0, LARGEST_M)
"""Between these the result says how many depths are a guess; at the last, which stands for infinity, is the sky."""
BESIDE_PX = 10
"""Columns to each side in which a known depth tells a horizon prior that something stands there."""


@dataclass(frozen=True)
class GuessedDepths:
    """Pixels from `low_m` to below `high_m` (None: the sky), and how many of these depths nobody measured."""

    low_m: float
    high_m: float | None
    pixels: Count
    guessed: Count


def guessed_depths(known_m: Metres, filled_m: Metres) -> tuple[GuessedDepths, ...]:
    """The pixels of a map (H, W) by distance as filled in; 0 in `known_m` means unknown."""
    which = np.digitize(filled_m, DISTANCES_M[1:])
    pixels, guessed = (
        np.bincount(array, minlength=len(DISTANCES_M)) for array in (which.ravel(), which[known_m == 0])
    )
    rows = zip(DISTANCES_M, (*DISTANCES_M[1:], None), pixels.tolist(), guessed.tolist(), strict=True)
    return tuple(GuessedDepths(*row) for row in rows)


def guessed_text(maps: Iterable[Sequence[GuessedDepths]]) -> str:
    """How many of the pixels of all maps are guessed, by distance; empty where there are none."""
    told = []
    for alike in zip(*(depths for depths in maps if depths), strict=True):
        pixels, guessed = sum(depths.pixels for depths in alike), sum(depths.guessed for depths in alike)
        low, high = alike[0].low_m, alike[0].high_m
        where = (
            "in the sky" if high is None else f"from {low:g} m on" if high == LARGEST_M else f"{low:g} to {high:g} m"
        )
        told += [f"{where} {percent(guessed / pixels, 3)} of {pixels}"] if pixels else []
    return f"pixels with a guessed depth: {', '.join(told)}" if told else ""


@dataclass(frozen=True)
class Sky:
    """The policy by which pixels of unknown depth are sky, infinitely far away; known depths stay.

    * `mask`: a semantic mask says so, NAME.png in a folder (8 bits; what is not 0 is sky).
    * `horizon`: above the horizon, a share of the image's height from its upper edge, all is sky that lies above
      every known depth of its column and of the `BESIDE_PX` columns to each side. What stands higher than the top
      beam of a LiDAR is sky by this prior, however near.
    """

    masks: Path | None = None
    horizon: float | None = None

    @classmethod
    def of(cls, text: str) -> "Sky":
        """The policy "mask:FOLDER" or "horizon:SHARE".

        Raises:
            ValueError: neither.
        """
        policy, _, given = text.partition(":")
        if policy == "mask" and given.strip():
            return cls(masks=Path(given))
        try:
            share = float(given) if policy == "horizon" else math.nan
        except ValueError:
            share = math.nan
        if not 0 < share <= 1:
            raise ValueError(
                f"expected mask:FOLDER or horizon:SHARE with a share of the height in 0..1, got {text!r}"
            )
        return cls(horizon=share)

    @property
    def text(self) -> str:
        """As it is given, without folders above that of the masks."""
        return f"horizon:{self.horizon:g}" if self.masks is None else f"mask:{self.masks.name}"

    def pixels(self, name: str, depth_m: Metres) -> NDArray[np.bool_]:
        """(H, W) which pixels of a map, 0 where unknown, are sky.

        Raises:
            InputError: no mask of this image, or one that does not fit.
        """
        unknown = depth_m == 0
        if self.masks is not None:
            parts = PurePosixPath(name)
            stem = parts.with_suffix("") if parts.suffix.lower() in IMAGE_SUFFIXES else parts
            path = self.masks / f"{stem}.png"
            mask = np.asarray(read_image(path).pixels.any(axis=2))
            check_size("mask", mask, depth_m.shape, Place(str(path)))
            return np.asarray(unknown & mask)
        assert self.horizon is not None  # one of both is given
        beside = maximum_filter1d(~unknown, 2 * BESIDE_PX + 1, axis=1, mode="constant")
        free = ~np.logical_or.accumulate(beside, axis=0)
        free[math.ceil(self.horizon * len(free)) :] = False
        return np.asarray(free)


@dataclass(frozen=True)
class DepthRecord:
    """As `DepthSource`, for documents: of the folder its name alone, and the scale only with a folder."""

    folder: str | None
    constant_m: Annotated[float, Limits(gt=0)] | None
    scale: Annotated[float, Limits(gt=0)] | None
    densify: Densifying | None
    inverse: Annotated[float, Limits(gt=0)] | None = None
    sky: str | None = None


@dataclass(frozen=True)
class DepthSource:
    """Where depth comes from: a folder of maps (see `depth_map`), or one depth for every pixel.

    Attributes:
        folder: of the maps, NAME.npy in metres or NAME.png, 16 bit; 0 is an unknown depth.
        constant_m: metres, instead of a folder.
        scale: units of a 16-bit map in a metre.
        densify: how unknown depths are filled; None: a map with unknown depths is refused.
        inverse: where the maps hold disparities or inverse depths, see `depth_map`.
        sky: which unknown depths are infinite, before the others are filled.

    Raises:
        ValueError: not exactly one of `folder` and `constant_m`, or a constant that is no depth.
    """

    folder: Path | None = None
    constant_m: Magnitude | None = None
    scale: Annotated[float, Limits(gt=0)] = UNITS_PER_M
    densify: Densifying | None = None
    inverse: Annotated[float, Limits(gt=0)] | None = None
    sky: Sky | None = None

    def __post_init__(self) -> None:
        if (self.folder is None) == (self.constant_m is None):
            raise ValueError("expected a folder of depth maps or a constant depth")
        if self.constant_m is not None and not 0 < self.constant_m <= LARGEST_M:
            raise ValueError(f"expected metres above 0 and up to {LARGEST_M:g}, got {self.constant_m:g}")

    def measured(self, name: str, size: tuple[int, int]) -> Metres:
        """(H, W) the depth of the image called `name`, 0 where unknown; `size` is its height and width.

        Raises:
            InputError: no map, an unreadable one, or one of another size.
        """
        if self.folder is None:
            return np.full(size, self.constant_m, np.float64)
        try:
            depth = depth_map(self.folder, name, self.scale, self.inverse)
        except InputError as error:  # where an image is the subject, it must be said that this is another file
            which = "" if "depth map" in error.message else "depth map: "
            raise InputError(f"{which}{error.message}", error.place, error.hint) from None
        check_size("depth map", depth, size, Place(str(depth_file(self.folder, name))))
        return depth

    def read(self, name: str, size: tuple[int, int]) -> DepthMap:
        """What is known of the depth of an image; arguments as of `measured`.

        Raises:
            InputError: as `measured`, or unknown depths that are not to be filled.
        """
        depth = self.measured(name, size)
        unknown = depth.size - np.count_nonzero(depth)
        if unknown and not self.guesses:
            raise _unknown(unknown, depth)
        height, width = depth.shape
        digest = hashlib.sha256(f"{height} {width} metres float64\n".encode())
        digest.update(np.ascontiguousarray(depth, "<f8").data)
        return DepthMap(depth, digest.hexdigest())

    @property
    def guesses(self) -> bool:
        """Whether it gives pixels a depth that nobody measured."""
        return self.densify is not None or self.sky is not None

    def within(self, root: Path) -> "DepthSource":
        """The same with folders that start from `root`."""
        sky = self.sky if self.sky is None or self.sky.masks is None else Sky(root / self.sky.masks)
        return replace(self, folder=None if self.folder is None else root / self.folder, sky=sky)

    def filled(self, name: str, depth_m: Metres) -> Metres:
        """The depth of every pixel of the image called `name`, from what is known of it.

        Raises:
            InputError: no depth is known at all; depths that are unknown and not to be filled; a mask that is none.
        """
        sky = np.zeros(depth_m.shape, bool) if self.sky is None else self.sky.pixels(name, depth_m)
        if self.densify is not None and not (sky | (depth_m > 0)).all():
            depth_m = densify(depth_m, self.densify)
        depth_m = np.where(sky, LARGEST_M, depth_m)
        if unknown := depth_m.size - np.count_nonzero(depth_m):
            raise _unknown(unknown, depth_m)
        return depth_m

    @property
    def record(self) -> DepthRecord:
        """For documents."""
        folder = None if self.folder is None else self.folder.name
        scale = None if self.folder is None else self.scale
        sky = None if self.sky is None else self.sky.text
        return DepthRecord(folder, self.constant_m, scale, self.densify, self.inverse, sky)


def _unknown(count: int | np.integer, depth_m: Metres) -> InputError:
    return InputError(
        f"the depth of {count} of {depth_m.size} pixels is unknown, 0 in the map",
        hint="--densify fills them, by a method that you choose (in files: densify)",
    )
