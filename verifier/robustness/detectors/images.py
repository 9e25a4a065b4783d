"""Images from files: one reader for detectors, mutators and whatever compares images; all see the same pixels.

What could be understood in two ways is refused and not decided here.
"""

import io
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from verifier.base.errors import InputError, LimitError, Place, shown
from verifier.base.files import read_bytes
from verifier.base.libraries import library
from verifier.robustness.detectors.protocol import Image

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
        found = "too many" if size is None else size[1]
        raise LimitError(f"an image of {found} pixels; at most {MOST_PIXELS} are read", place) from None
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
