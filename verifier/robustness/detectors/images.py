"""Images from files, one at a time, for frames that a data set names."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

import numpy as np

from verifier.detections.sources import read_bytes
from verifier.errors import InputError, Place, shown
from verifier.robustness.detectors.protocol import Image
from verifier.robustness.libraries import library

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")
TAKEN_AS = {"RGB": "as it is", "L": "grey, repeated in all three channels", "P": "colours of its palette"}
"""The kinds of image (modes of Pillow) that are read, and how; others would need a choice that is not ours."""
# What Pillow raises on bytes that are no image, or half of one.
DAMAGED = (ValueError, TypeError, OSError, EOFError, OverflowError, SyntaxError, struct.error, zlib.error)


def read_images(folder: str | Path, names: Iterable[str]) -> Iterator[Image]:
    """The image of each frame, in order, one in memory at a time.

    The image of the frame NAME is `folder`/NAME, or NAME with one of `SUFFIXES`; separators `/` are sub-folders.

    Raises:
        InputError: no image or several of a frame; see also `read_image`.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError("no such folder", Place(str(folder)))
    for name in names:
        yield Image(name, read_image(_file(root, name)).pixels)


def read_image(path: str | Path) -> Image:
    """An image file as RGB, eight bits a channel, as it is stored: an orientation tag turns nothing.

    Its name is the path as given.

    Raises:
        InputError: missing, unreadable, truncated, or of a kind that `TAKEN_AS` does not list.
    """
    place = Place(str(path))
    images = library("PIL.Image")
    raw = read_bytes(path)
    try:
        with images.open(io.BytesIO(raw)) as opened:
            mode = opened.mode
            if mode in TAKEN_AS and "transparency" not in opened.info:
                return Image(str(path), np.asarray(opened.convert("RGB")))
    except (*DAMAGED, images.DecompressionBombError) as error:
        reason = shown(str(error) or type(error).__name__, 120)
        raise InputError(f"not a readable image: {reason}", place) from None
    kind = f"mode {mode}" + (" with transparency" if mode in TAKEN_AS else "")
    raise InputError(
        f"expected an RGB or grey image of eight bits a channel, found {kind}", place, "convert it first"
    )


def _file(folder: Path, name: str) -> Path:
    """The one image of the frame `name`; never a file above `folder`."""
    place = Place(str(folder))
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts or "\\" in name or "\0" in name or not parts.name:
        raise InputError(f"frame {shown(name)}: the name does not lead to a file inside the folder", place)
    try:
        if parts.suffix.lower() in SUFFIXES and (folder / name).is_file():
            return folder / name
        found = [path for suffix in SUFFIXES if (path := folder / f"{name}{suffix}").is_file()]
    except OSError as error:
        raise InputError(f"frame {shown(name)}: {error.strerror}", place) from None
    if not found:
        raise InputError(f"frame {shown(name)} has no image", place, f"looked for {', '.join(SUFFIXES)}")
    if len(found) > 1:
        raise InputError(f"frame {shown(name)} has a second image, {found[0].name}", Place(str(found[1])))
    return found[0]
