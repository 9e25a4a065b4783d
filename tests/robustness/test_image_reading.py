"""Image files as detectors, mutators and measures read them: one reader, which refuses what has two meanings."""

import io
import re
import struct
import zlib

import numpy as np
import pytest

pytest.importorskip("PIL", reason="pillow is not installed")
from PIL import Image

from verifier.base.errors import InputError
from verifier.robustness.detectors.protocol import read_image


def picture(height=8, width=12):
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)


def oriented(value):
    exif = Image.Exif()
    exif[0x0112] = value
    return exif


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".tif", ".webp"])
@pytest.mark.parametrize("value", range(2, 9))
def test_a_tag_that_turns_the_image_is_refused_in_every_format(tmp_path, suffix, value):
    path = tmp_path / f"turned{suffix}"
    Image.fromarray(picture()).save(path, exif=oriented(value))
    with pytest.raises(InputError, match=f"its EXIF orientation is {value}: some programs turn it, others do not"):
        read_image(path)


@pytest.mark.parametrize("value", [0, 1, 9, 65535])
def test_a_tag_by_which_nobody_turns_changes_nothing(tmp_path, value):
    path = tmp_path / "upright.png"
    Image.fromarray(picture()).save(path, exif=oriented(value))
    assert np.array_equal(read_image(path).pixels, picture())


def test_a_tag_that_nobody_can_read_changes_nothing(tmp_path):
    path = tmp_path / "junk.webp"
    Image.fromarray(picture()).save(path, lossless=True, exif=b"Exif\0\0no such thing as a header")
    assert np.array_equal(read_image(path).pixels, picture())


def test_a_broken_image_with_a_tag_behind_its_pixels_is_not_read_half(tmp_path):
    """What fails while the tag is looked for is a fault of the pixels, and must not be taken for a missing tag."""
    stream = io.BytesIO()
    Image.fromarray(picture(64, 64)).save(stream, "PNG", exif=oriented(1))
    raw = stream.getvalue()
    exif = chunk(b"eXIf", oriented(1).tobytes()[6:])
    assert exif in raw
    bare = raw.replace(exif, b"")
    start = bare.index(b"IDAT") + 4
    broken = bare[: start + 3000] + bytes(40) + bare[start + 3040 :]
    (tmp_path / "broken.png").write_bytes(broken[: -len(chunk(b"IEND", b""))] + exif + chunk(b"IEND", b""))
    with pytest.raises(InputError, match="not a readable image"):
        read_image(tmp_path / "broken.png")


def test_messages_are_equal_in_every_run(tmp_path):
    (tmp_path / "words.png").write_text("no pixels")
    said = set()
    for _ in range(3):
        with pytest.raises(InputError) as caught:
            read_image(tmp_path / "words.png")
        said.add(caught.value.message)
    assert said == {"not a readable image: of no known format"}
    assert not re.search("0x", said.pop())
