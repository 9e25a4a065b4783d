"""A contact sheet: a few images, each unchanged and under a few mutations, side by side, to be looked at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, one_line
from verifier.base.libraries import library
from verifier.robustness.detectors.images import read_image
from verifier.robustness.mutators.batch_result import BatchSettings, ImageResult
from verifier.robustness.mutators.frames import Pixels
from verifier.robustness.mutators.imagefiles import ImageFile
from verifier.robustness.mutators.outputs import png_bytes

MOST_ROWS, MOST_COLUMNS = 8, 49
CELL_PX, CAPTION_PX, GAP_PX = 320, 14, 4
"""Of a picture's width and, three times as much, its height; of the caption's height; between pictures."""
A_LINE = 6
"""Pictures beside each other; the mutations of one image take as many lines as they need."""
BOX_COLOUR = (255, 220, 0)


def contact_sheet(
    images: Sequence[ImageFile], results: Sequence[ImageResult], settings: BatchSettings, folder: Path
) -> bytes:
    """The PNG file: the first `MOST_ROWS` images, each with up to `MOST_COLUMNS` - 1 mutations, captions and boxes.

    All pictures of an image have the same scale. Pictures are made smaller by averaging, which hides noise and blur
    of a pixel or less; a mutation that could not be applied to an image is left out there. An image that the
    annotations do not know has no boxes.

    Raises:
        InputError: a file has gone since it was written.
    """
    blocks = []
    shown = [pair for pair in zip(images, results, strict=True) if pair[1].size is not None][:MOST_ROWS]
    for image, result in shown:
        plain = read_image(image.path).pixels
        scale = min(1.0, CELL_PX / plain.shape[1], 3 * CELL_PX / plain.shape[0])
        moved = dict(result.moved)
        cells = [_cell(image.name, plain, _boxes(image.name, result, settings), scale)]
        for output in result.outputs[: MOST_COLUMNS - 1]:
            boxes = moved[output.mutation].boxes if output.mutation in moved else None
            caption = settings.mutations[output.mutation].text
            cells.append(_cell(caption, read_image(folder / output.path).pixels, boxes, scale))
        blocks.append(_block(cells))
    width = max((block.shape[1] for block in blocks), default=CELL_PX)
    padded = [_padded(block, block.shape[0] + GAP_PX, width) for block in blocks]
    return png_bytes(np.vstack(padded) if padded else np.full((CAPTION_PX, CELL_PX, 3), 255, np.uint8))


def _boxes(name: str, result: ImageResult, settings: BatchSettings) -> NDArray[np.float64] | None:
    """The boxes of an image before any mutation."""
    if settings.annotations is None or result.size is None:
        return None
    try:
        return settings.annotations.boxes_of(name, result.size)
    except InputError:
        return None  # that is among the failures


def _block(cells: Sequence[Pixels]) -> Pixels:
    """The pictures of one image, `A_LINE` beside each other."""
    lines = []
    for first in range(0, len(cells), A_LINE):
        line = cells[first : first + A_LINE]
        tall = max(cell.shape[0] for cell in line)
        lines.append(np.hstack([_padded(cell, tall, cell.shape[1] + GAP_PX) for cell in line]))
    wide = max(line.shape[1] for line in lines)
    return np.vstack([_padded(line, line.shape[0], wide) for line in lines])


def _padded(picture: Pixels, height: int, width: int) -> Pixels:
    """The picture on white, at the upper left."""
    more = ((0, height - picture.shape[0]), (0, width - picture.shape[1]), (0, 0))
    return np.pad(picture, more, constant_values=255)


def _cell(caption: str, pixels: Pixels, boxes: NDArray[np.float64] | None, scale: float) -> Pixels:
    """(h, `CELL_PX`, 3): the caption above the picture at this scale."""
    images, drawing = library("PIL.Image"), library("PIL.ImageDraw")
    picture = images.fromarray(pixels)
    if scale < 1:
        size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
        picture = picture.resize(size, images.BOX)
    pen = drawing.Draw(picture)
    for left, top, right, bottom in () if boxes is None else (boxes * scale).tolist():
        pen.rectangle((left, top, max(left, right - 1), max(top, bottom - 1)), outline=BOX_COLOUR)
    cell = images.new("RGB", (CELL_PX, picture.height + CAPTION_PX), "white")
    text = one_line(caption).encode("ascii", "replace").decode().replace(":", ": ")  # the font hides a colon at a t
    drawing.Draw(cell).text((2, 1), text[: CELL_PX // 6], fill="black")
    cell.paste(picture, (0, CAPTION_PX))
    return np.asarray(cell)
