"""Mutated images as PNG files: each carries a key of everything it was made from, and is written all or nothing.

By the key an interrupted batch finds again what it already made, and does not take a file for its own that was made
with another seed, from another depth map or by another version.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
from pathlib import Path

from verifier.base.errors import InputError, Place
from verifier.base.files import write_bytes
from verifier.base.libraries import library
from verifier.robustness.mutators.frames import Pixels
from verifier.robustness.mutators.mutation import AnyMutation, is_random

COMPRESSION = 3
"""Of PNG, 0 to 9: twice as fast as the usual 6 and a few per cent larger."""
KEYWORD = "verifier.mutate"
"""Of the text in a PNG file that holds its key."""
HOPELESS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
"""Errors after which no later file could be written either."""


class DiskFullError(InputError):
    """A file cannot be written, and no other could be."""


def output_key(mutation: AnyMutation, inputs: tuple[str, str], seed: int, name: str, programs: str) -> str:
    """The SHA-256 of what a file is made from; `inputs` are the digests of the image and of its depth ("" if none).

    Seed and name of the image count where something is drawn.
    """
    drawn = [seed, name] if is_random(mutation) else []
    parts = [mutation.document(), *inputs, drawn, programs]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def png_bytes(pixels: Pixels, key: str | None = None) -> bytes:
    """The image as the bytes of a PNG file, with a key if there is one."""
    info = library("PIL.PngImagePlugin").PngInfo()
    if key is not None:
        info.add_text(KEYWORD, key)
    stream = io.BytesIO()
    library("PIL.Image").fromarray(pixels).save(stream, "PNG", compress_level=COMPRESSION, pnginfo=info)
    return stream.getvalue()


def kept_bytes(path: Path, key: str) -> bytes | None:
    """The bytes of the file if it is whole, by its checksums, and has this key."""
    images = library("PIL.Image")
    try:
        raw = path.read_bytes()
        with images.open(io.BytesIO(raw), formats=("PNG",)) as opened:
            found = opened.info.get(KEYWORD)
            opened.verify()
    except (OSError, SyntaxError, ValueError, EOFError, images.DecompressionBombError):
        return None
    return raw if found == key else None


def write_output(path: Path, data: bytes) -> None:
    """Write a file and the folders above it.

    Raises:
        DiskFullError: see `HOPELESS`.
        InputError: this one file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, data)
    except OSError as error:
        raise _failure(error, f"the folder cannot be made: {error.strerror}", path.parent) from None
    except InputError as error:
        raise _failure(error.__context__, error.message, path) from None


def _failure(cause: BaseException | None, message: str, path: Path) -> InputError:
    if isinstance(cause, OSError) and cause.errno in HOPELESS:
        hint = "what is there is whole; with --resume another run goes on from it"
        return DiskFullError(message, Place(str(path)), hint)
    return InputError(message, Place(str(path)))
