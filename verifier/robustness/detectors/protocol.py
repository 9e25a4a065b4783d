"""What a detector under test is: images in, rectangles with scores and labels out.

A detector has three things: `classes`, the names its labels point at; `identity`, JSON values that name everything
its output depends on beside the pixels; and the call itself. Equal identities mean equal outputs for equal images:
that is what lets outputs be kept (`run`) and what stands in the evidence for which detector was tested.

Non-maximum suppression: of detections that overlap, the surest stays (Dalal 2006, PhD thesis, section 5.1).

Greedy: detections by falling score; each stays unless its IoU with one that stays exceeds the threshold. A detection
that was itself suppressed suppresses nothing.

Images from files: one reader for detectors, mutators and whatever compares images; all see the same pixels.

What could be understood in two ways is refused and not decided here.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import check_shapes, freeze
from verifier.base.errors import InputError, LimitError, Place, shown
from verifier.base.files import read_bytes
from verifier.base.libraries import library
from verifier.perception.detections.columns import faulty_boxes
from verifier.perception.matching.policy import iou_2d


@dataclass(frozen=True, eq=False)
class Image:
    """One image: its name, by which messages and stored detections know it, and its pixels (H, W, 3) uint8, RGB.

    Raises:
        ValueError: the pixels have another shape or type, or there are none.
    """

    name: str
    pixels: NDArray[np.uint8]

    def __post_init__(self) -> None:
        shape, kind = self.pixels.shape, self.pixels.dtype
        if self.pixels.ndim != 3 or shape[2] != 3 or kind != np.uint8 or not self.pixels.size:
            raise ValueError(f"image {self.name!r}: expected (H, W, 3) uint8, got {kind} of shape {shape}")

    @property
    def size(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return self.pixels.shape[0], self.pixels.shape[1]


@dataclass(frozen=True, eq=False)
class Detections:
    """What a detector reports in one image; n rows in any order.

    Attributes:
        box_2d: (n, 4) left, top, right, bottom in pixels of the image; pixel (i, j) covers [j, j + 1) x [i, i + 1).
            A rectangle may reach beyond the image.
        score: (n,) finite, greater is surer; a probability, a margin, or any other scale.
        label: (n,) index into the classes of the detector.

    Raises:
        ValueError: lengths differ, a box or score is not finite, a box has a negative size, a label is negative.
    """

    box_2d: NDArray[np.float64]
    score: NDArray[np.float64]
    label: NDArray[np.int64]

    def __post_init__(self) -> None:
        freeze(self, {"box_2d": np.float64, "score": np.float64, "label": np.int64})
        n = len(self.score)
        check_shapes(self, {"box_2d": (n, 4), "score": (n,), "label": (n,)})
        if np.isnan(self.box_2d).any() or faulty_boxes(self.box_2d).any():
            raise ValueError("a box is not finite or has a negative size")
        if not np.isfinite(self.score).all():
            raise ValueError("a score is not finite")
        if (self.label < 0).any():
            raise ValueError("a label is negative")

    def __len__(self) -> int:
        return len(self.score)

    def take(self, rows: NDArray[Any]) -> Detections:
        """The detections at `rows`: indices in the order wanted, or a mask (n,)."""
        return Detections(self.box_2d[rows], self.score[rows], self.label[rows])


NOTHING = Detections(np.zeros((0, 4)), np.zeros(0), np.zeros(0, np.int64))
"""No detections."""


class Detector(Protocol):
    """What every adapter is; anything with these three can be tested."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the labels, in order."""

    @property
    def identity(self) -> Mapping[str, object]:
        """JSON values that name everything the output depends on beside the image: weights, settings, versions."""

    def __call__(self, images: Sequence[Image]) -> list[Detections]:
        """The detections of each image, in the order of the images.

        Raises:
            InputError: the model's output is not what was declared, or is not finite.
        """


def suppressed(detections: Detections, iou: float, per_class: bool = True) -> Detections:
    """The detections that stay, by falling score; equal scores by label and box, so that input order is no matter.

    Args:
        detections: of one image.
        iou: in [0, 1]; an overlap of exactly so much does not suppress.
        per_class: whether only detections of the same label suppress each other.

    Raises:
        ValueError: the threshold lies outside [0, 1].
    """
    if not 0 <= iou <= 1:
        raise ValueError(f"expected an IoU in [0, 1], got {iou}")
    detections = detections.take(surest_first(detections))
    waiting = np.arange(len(detections))
    stays = []
    while len(waiting):
        first, waiting = waiting[0], waiting[1:]
        stays.append(first)
        box = np.broadcast_to(detections.box_2d[first], (len(waiting), 4))
        covered = iou_2d(detections.box_2d[waiting], box) > iou
        if per_class:
            covered &= detections.label[waiting] == detections.label[first]
        waiting = waiting[~covered]
    return detections.take(np.array(stays, dtype=np.int64))


def surest_first(detections: Detections) -> NDArray[np.int64]:
    """(n,) rows by falling score, then label, then box: the same order whatever the order of the input."""
    return np.lexsort([*detections.box_2d.T[::-1], detections.label, -detections.score])


TAKEN_AS = {"RGB": "as it is", "L": "grey, repeated in all three channels", "P": "colours of its palette"}
"""The kinds of image (modes of Pillow) that are read, and how; others would need a choice that is not ours."""
MOST_PIXELS = 80_000_000
"""Of one image: about a gigabyte while it is worked on. A file declares its size before it is unfolded."""
SIXTEEN = ";16"
"""In what Pillow calls the pixels in a file of 16 bits; of colours it would keep the upper eight and not say so."""
ORIENTATION = 0x0112
"""The EXIF tag that says how an image is to be turned before it is looked at."""
TURNED = range(2, 9)
"""Its values that turn or mirror; 1 says not at all, and no program turns by any other."""
_PIXELS = re.compile(r"(\d+) pixels")  # in what Pillow says when it refuses to unfold an image at all
# What Pillow raises on bytes that are no image, or half of one.
DAMAGED = (ValueError, TypeError, OSError, EOFError, OverflowError, SyntaxError, struct.error, zlib.error)


def read_image(path: str | Path) -> Image:
    """An image file as RGB, eight bits a channel. Its name is the path as given.

    Raises:
        InputError: missing, unreadable, truncated; of a kind that `TAKEN_AS` does not list, or of sixteen bits a
            channel; several pictures in one file; a tag that says the image is to be turned, which some programs do
            and others do not, so that boxes could belong to either.
        LimitError: more than `MOST_PIXELS`, by the size that the file declares.
    """
    place = Place(str(path))
    images = library("PIL.Image")
    raw = read_bytes(path)
    if not raw:
        raise InputError("not a readable image: the file is empty", place)
    try:
        with images.open(io.BytesIO(raw)) as opened:
            _check(opened, raw, place)
            return Image(str(path), np.asarray(opened.convert("RGB")))
    except images.DecompressionBombError as error:
        size = _PIXELS.search(str(error))
        count = "too many" if size is None else size[1]
        raise LimitError(f"an image of {count} pixels; at most {MOST_PIXELS} are read", place) from None
    except images.UnidentifiedImageError:  # its text has an address in memory, another one in every run
        raise InputError("not a readable image: of no known format", place) from None
    except DAMAGED as error:
        reason = shown(str(error) or type(error).__name__, 120)
        raise InputError(f"not a readable image: {reason}", place) from None


def _check(opened: Any, raw: bytes, place: Place) -> None:
    """Refuse, by what the head of the file says, an image that is too large or that could be misunderstood."""
    width, height = opened.size
    if width * height > MOST_PIXELS:
        raise LimitError(
            f"an image of {width} x {height} = {width * height} pixels; at most {MOST_PIXELS} are read", place
        )
    if SIXTEEN in str(opened.tile):
        raise InputError("expected eight bits a channel, found sixteen", place, "convert it first")
    pictures = getattr(opened, "n_frames", 1)
    if pictures > 1:
        raise InputError(f"{pictures} pictures in one file; expected one", place, "write each to a file of its own")
    turned = _orientation(opened, raw)
    if turned in TURNED:
        raise InputError(
            f"its EXIF orientation is {turned}: some programs turn it, others do not, and boxes would not fit both",
            place,
            "turn the pixels once and remove the tag first",
        )
    kind, clear = opened.mode, "transparency" in opened.info
    if kind not in TAKEN_AS or clear:
        more = " with transparency" if clear else ""
        raise InputError(
            f"expected an RGB or grey image of eight bits a channel, found mode {kind}{more}",
            place,
            "convert it first",
        )


def _orientation(opened: Any, raw: bytes) -> Any:
    """The EXIF orientation; None where there is none or nobody could read it."""
    if opened.format == "PNG":
        if not any(mark in raw for mark in (b"eXIf", b"Raw profile type exif", b"XML:com.")):
            return None
        opened.load()  # the tag may stand behind the pixels; what is wrong with these must not be taken for its fault
    try:
        return opened.getexif().get(ORIENTATION)
    except DAMAGED:
        return None


def image_size(path: str | Path) -> tuple[int, int] | None:
    """Height and width by the beginning of an image file; None for what is no image, which `read_image` tells of.

    Raises:
        UsageError: the library that reads images is missing.
    """
    images = library("PIL.Image")
    try:
        with images.open(path) as opened:
            width, height = opened.size
    except (*DAMAGED, images.DecompressionBombError):
        return None
    return int(height), int(width)
