"""The frames behind detection errors as a page: each with its boxes drawn, and a close-up of the error."""

import io
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from verifier.base.errors import unknown_error
from verifier.base.libraries import library
from verifier.base.words import counted, first_of, listed, percent
from verifier.perception.confusion.record import Record
from verifier.perception.confusion.rules import EMPTY_NAME
from verifier.questions.explain.frames import CellSheet, Mark, Shot
from verifier.robustness.detectors.protocol import read_image
from verifier.telling.blocks import Block, Page, Paragraph, Photo, Section, name_text

WIDTH, CLOSE_UP = 720, 300
"""Of a picture, and the height of the close-up below it, in pixels."""
AROUND = 3.0
"""Height of the close-up, in heights of what it shows."""
LEAST = 90
"""And at least, in pixels of the image."""
TRUTH, DETECTION = "#35b6ff", "#ffa01f"
COARSE = 6
"""Squares across a box that was made unrecognisable."""
MOST_DRIVES = 8
"""Drives whose numbers are told."""


def contact_sheet_page(
    title: str, sheets: Sequence[CellSheet], bins: Sequence[str], record: Record, blurred: Collection[str]
) -> Page:
    """The page.

    Args:
        title: of the explanation.
        sheets: the frames, by type of detection error.
        bins: texts of the bins of the matrices.
        record: of the counting, which knows the classes.
        blurred: classes whose boxes are made unrecognisable.

    Raises:
        UsageError: there is no such class, or pillow is missing; InputError, LimitError: an image is refused.
    """
    known = {str(name) for label in ("true", "predicted") for name in record[label]} - {EMPTY_NAME}
    for name in blurred:
        if name not in known:
            raise unknown_error("class", name, sorted(known), before="--blur: ")
    first = [
        Paragraph(
            "Ground truth: whole blue lines. Detections: broken orange lines. Thick lines belong to the detection "
            "errors of the section. Below each frame is a close-up. Drives with most of these errors come first.",
            "lead",
        ),
        Paragraph(_privacy(blurred), "note"),
    ]
    sections = [Section("Frames behind detection errors", tuple(first), id="frames")]
    sections += [_section(sheet, bins, blurred, f"c{k}") for k, sheet in enumerate(sheets, start=1)]
    return Page(f"Contact sheet: {name_text(title)}", tuple(sections), f"the images and {name_text(record.file)}")


def _privacy(blurred: Collection[str]) -> str:
    if not blurred:
        return (
            "Nothing was blurred. Faces and number plates may be recognisable: see to them before you pass this on."
        )
    return (
        f"Boxes of {listed(sorted(blurred))} were made unrecognisable. What has no box was not: look for faces and "
        "number plates before you pass this on."
    )


def _section(sheet: CellSheet, bins: Sequence[str], blurred: Collection[str], anchor: str) -> Section:
    error = sheet.error
    reasons = [f"{name_text(name)} ({name_text(planner)}, {percent(share)})" for name, planner, share in sheet.behind]
    drives = first_of([f"{name_text(drive)} {count}" for drive, count in sheet.drives], MOST_DRIVES)
    blocks: list[Block] = [
        Paragraph(f"In causes of the violation of {listed(reasons)}; the share is that of these causes."),
        Paragraph(
            f"{counted(error.in_record or 0, 'such error')} in {counted(sheet.frames, 'frame')}, "
            f"{sheet.with_image} with an image; {len(sheet.shots)} shown. By drive: {drives}."
            if sheet.frames
            else "No such error was counted: a policy or the prior gives this rate."
        ),
    ]
    for shot in sheet.shots:
        caption = f"Drive {shot.drive}, frame {shot.frame}: {'; '.join(shot.errors)}."
        if not any(mark.behind for mark in shot.marks):
            caption += " Not drawn: the record has no rectangle of it in the image."
        blocks.append(Photo(drawn(shot, blurred), f"Frame {shot.frame}, boxes drawn", caption))
    return Section(f"{error.true} in {bins[error.bin]} reported as {error.reported}", tuple(blocks), id=anchor)


def drawn(shot: Shot, blurred: Collection[str] = ()) -> bytes:
    """A frame with its boxes, and below it the close-up, as a JPEG file; arguments and errors as of the page."""
    images = library("PIL.Image")
    frame = images.fromarray(read_image(shot.image).pixels)
    for mark in shot.marks:
        if mark.label in blurred:
            _coarsen(images, frame, mark.box)
    whole = frame.resize((WIDTH, max(1, round(frame.height * WIDTH / frame.width))))
    _draw(whole, shot.marks, WIDTH / frame.width, (0.0, 0.0))
    parts = [whole]
    boxes = [mark.box for mark in shot.marks if mark.behind]
    if boxes:
        left, top, width, height = _window(boxes, frame.size)
        close = frame.crop((left, top, left + width, top + height)).resize((WIDTH, CLOSE_UP))
        _draw(close, shot.marks, WIDTH / width, (left, top))
        parts.append(close)
    sheet = images.new("RGB", (WIDTH, sum(part.height for part in parts)))
    for at, part in enumerate(parts):
        sheet.paste(part, (0, at * whole.height))
    stream = io.BytesIO()
    sheet.save(stream, "JPEG", quality=85)
    return stream.getvalue()


def _coarsen(images: Any, frame: Any, box: Sequence[float]) -> None:
    """Replace what is in a box by a few squares, each of the mean colour of what it covers."""
    left, top = (max(0, int(side)) for side in box[:2])
    right, bottom = min(frame.width, int(box[2]) + 1), min(frame.height, int(box[3]) + 1)
    if left < right and top < bottom:
        tall = max(1, round(COARSE * (bottom - top) / (right - left)))
        few = frame.crop((left, top, right, bottom)).resize((COARSE, min(tall, 4 * COARSE)), images.Resampling.BOX)
        frame.paste(few.resize((right - left, bottom - top), images.Resampling.NEAREST), (left, top))


def _window(boxes: Sequence[Sequence[float]], size: tuple[int, int]) -> tuple[float, float, float, float]:
    """Left, top, width and height of the close-up of boxes, within the image where that is possible."""
    sides = list(zip(*boxes, strict=True))
    left, top, right, bottom = min(sides[0]), min(sides[1]), max(sides[2]), max(sides[3])
    shape = WIDTH / CLOSE_UP
    height = max(AROUND * (bottom - top), 1.5 * (right - left) / shape, LEAST)
    height = min(height, size[1], size[0] / shape)
    width = height * shape
    x = min(max((left + right - width) / 2, 0.0), size[0] - width)
    y = min(max((top + bottom - height) / 2, 0.0), size[1] - height)
    return x, y, width, height


def _draw(picture: Any, marks: Iterable[Mark], scale: float, origin: tuple[float, float]) -> None:
    """Draw boxes on a part of a frame: `scale` pixels for each of the frame's, from `origin` on."""
    pen = library("PIL.ImageDraw").Draw(picture)
    font = library("PIL.ImageFont").load_default(15)
    for mark in marks:
        left, right = ((side - origin[0]) * scale for side in mark.box[::2])
        top, bottom = ((side - origin[1]) * scale for side in mark.box[1::2])
        colour, width = TRUTH if mark.truth else DETECTION, 3 if mark.behind else 1
        for line in _lines(left, top, right, bottom, whole=mark.truth):
            pen.line(line, fill=colour, width=width)
        if mark.behind:
            at = (left, top - 18) if mark.truth else (left, bottom + 2)
            pen.rectangle(pen.textbbox(at, mark.name, font=font), fill="#000000")
            pen.text(at, mark.name, fill=colour, font=font)


def _lines(left: float, top: float, right: float, bottom: float, *, whole: bool) -> Iterator[tuple[float, ...]]:
    """The sides of a box; of a broken one its dashes."""
    for ax, ay, bx, by in (
        (left, top, right, top),
        (right, top, right, bottom),
        (right, bottom, left, bottom),
        (left, bottom, left, top),
    ):
        parts = 1 if whole else max(1, int((abs(bx - ax) + abs(by - ay)) // 6)) | 1
        for k in range(0, parts, 2):
            start, end = k / parts, (k + 1) / parts
            yield ax + (bx - ax) * start, ay + (by - ay) * start, ax + (bx - ax) * end, ay + (by - ay) * end
