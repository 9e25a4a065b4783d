"""Annotations that move along with their images: read once, written for every mutation in the format they came in.

| given | format | written to |
|---|---|---|
| a file .csv | table with the columns `frame`, `x1`, `y1`, `x2`, `y2` and any others | MUTATION/annotations.csv |
| a file .json | COCO | MUTATION/annotations.json |
| a folder | KITTI labels, object or tracking | MUTATION/labels/NAME.txt |

Only what lies in the image moves: boxes in the image. Boxes in space, distances and all other fields are copied as
they stand; what `truncated` says is what it was before. A box that did not move is written as it was read, letter by
letter; one that moved is written with all its digits; one without area in the mutated image is left out. Where an
image is named with its suffix, it has that of the mutated image, .png.

Labels of KITTI that move along with their images: one file for each image (object) or sequence (tracking).

An image called NAME has its labels in NAME.txt (15 columns, 16 with a score). In tracking labels (17 or 18 columns)
the image SEQUENCE/NUMBER has the lines of SEQUENCE.txt that begin with its number. `DontCare` regions move, too.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.base.files import decoded, read_text
from verifier.perception.detections.sources import Member, digest_record, read_source
from verifier.perception.detections.tablefiles import BOX_2D
from verifier.robustness.mutators.coco_annotations import (
    AnnotationKind,
    Annotations,
    Found,
    Moved,
    box_of,
    by_frame,
    frame_name,
    image_name,
    read_coco,
    with_box,
)


@dataclass(frozen=True, eq=False)
class BoxTable(Annotations):
    """A CSV table with the columns `frame`, `x1`, `y1`, `x2`, `y2` and any others; a frame without rows is empty.

    Attributes:
        header: the names of the columns; `rows` are the cells, as read.
    """

    header: tuple[str, ...]
    kind: ClassVar[AnnotationKind] = "table"

    def files(self, moved: Sequence[Moved]) -> Iterator[tuple[str, str]]:
        """One table; rows without a box are copied."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(self.header)
        places = [self.header.index(name) for name in BOX_2D]
        frame = self.header.index("frame")
        for box in (box for box in moved if self.knows(box.name)):
            before = self.boxes[box.name]
            boxed = np.flatnonzero(~np.isnan(before).any(axis=1))
            now = dict(zip(boxed[box.kept].tolist(), box.boxes.tolist(), strict=True))
            for row, cells in enumerate(map(list, self.rows[box.name])):
                cells[frame] = image_name(cells[frame])
                if row in now:
                    writer.writerow(with_box(cells, places, before[row], now[row]))
                elif np.isnan(before[row]).all():
                    writer.writerow(cells)
        yield "annotations.csv", stream.getvalue()


def read_annotations(path: str | Path) -> Annotations:
    """Annotations by what the path is; the format is recognised as the table above says.

    Raises:
        InputError: with the place in the file: missing, unreadable, damaged, a box that is none.
        UsageError: neither a folder nor a file .csv or .json.
    """
    target = Path(path)
    if target.is_dir():
        return read_kitti(target)
    if not target.exists():
        raise InputError("no such file or folder", Place(str(path)))
    if target.suffix.lower() == ".csv":
        return read_table(target)
    if target.suffix.lower() == ".json":
        return read_coco(target)
    raise UsageError(f"annotations: expected a folder of KITTI labels, a table .csv or COCO .json, got {path}")


def read_table(path: str | Path) -> BoxTable:
    """A table of boxes; the frame of an image may be given with or without its suffix.

    Raises:
        InputError: with file and line: a column is missing or there twice, a row has more or fewer cells, a box is
            none.
    """
    _, raw = read_text(path)
    text = decoded(raw, Place(str(path)))
    lines = csv.reader(io.StringIO(text, newline=""))
    entries: Found = {}
    try:
        header = _header(tuple(next(lines, [])), Place(str(path), 1))
        at = [header.index(name) for name in BOX_2D]
        for cells in lines:
            if not cells:
                continue
            place = Place(str(path), lines.line_num)
            if len(cells) != len(header):
                raise InputError(f"{len(cells)} cells; expected {len(header)}", place)
            given = [cells[number] for number in at]
            box = box_of(given, place) if any(name.strip() for name in given) else [np.nan] * 4
            entries.setdefault(frame_name(cells[header.index("frame")]), []).append((cells, box))
    except csv.Error as error:
        raise InputError(f"not a readable table: {error}", Place(str(path), lines.line_num)) from None
    return BoxTable(digest_record("annotations", path, raw), *by_frame(entries), header)


def _header(header: tuple[str, ...], place: Place) -> tuple[str, ...]:
    for name in ("frame", *BOX_2D):
        if header.count(name) != 1:
            flaw = "there are several" if name in header else f"there is none among {shown(', '.join(header), 120)}"
            raise InputError(f"expected one column {name}; {flaw}", place)
    return header


OBJECT_COLUMNS, TRACKING_COLUMNS = (15, 16), (17, 18)
OBJECT_BOX, TRACKING_BOX = (4, 5, 6, 7), (6, 7, 8, 9)
FRAME_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, eq=False)
class KittiLabels(Annotations):
    """Labels whose `rows` are the fields of a line; an image without objects has an empty file.

    Attributes:
        tracking: whether each file holds a sequence.
        sequences: of tracking labels: the names of the files, which know frames without lines, too.
    """

    tracking: bool
    sequences: frozenset[str]

    @property
    def kind(self) -> AnnotationKind:
        """The name of the format."""
        return "kitti_tracking" if self.tracking else "kitti_object"

    def knows(self, name: str) -> bool:
        """Whether there is a file for the image called `name`."""
        frame = self.frame(name)
        return frame.rpartition("/")[0] in self.sequences if self.tracking else frame in self.rows

    def boxes_of(self, name: str, size: tuple[int, int]) -> NDArray[np.float64]:
        """(n, 4) the boxes in the image called `name`.

        Raises:
            InputError: there is no file for it.
        """
        if not self.knows(name) and self.tracking:
            raise InputError(f"no labels of the sequence of {shown(name)}; expected images named SEQUENCE/NUMBER")
        if not self.knows(name):
            raise InputError(f"no labels {shown(name + '.txt')}; an image without objects has an empty file")
        return super().boxes_of(name, size)

    def files(self, moved: Sequence[Moved]) -> Iterator[tuple[str, str]]:
        """labels/NAME.txt for each image, or labels/SEQUENCE.txt for all of a sequence."""
        texts: dict[str, list[str]] = {}
        places = TRACKING_BOX if self.tracking else OBJECT_BOX
        for image in moved:
            frame = self.frame(image.name)
            lines = texts.setdefault(frame.rpartition("/")[0] if self.tracking else frame, [])
            rows, before = self.rows.get(frame, ()), self.boxes_of(image.name, image.before)
            for old, box in zip(image.kept.tolist(), image.boxes.tolist(), strict=True):
                lines.append(" ".join(with_box(rows[old], places, before[old], box)) + "\n")
        for name, lines in texts.items():
            yield f"labels/{name}.txt", "".join(lines)

    def frame(self, name: str) -> str:
        """The name under which labels are kept: of tracking labels with the number of the frame as a number."""
        sequence, _, number = name.rpartition("/")
        return f"{sequence}/{int(number)}" if self.tracking and FRAME_NUMBER.fullmatch(number) else name


def read_kitti(folder: Path) -> KittiLabels:
    """The labels of a folder.

    Raises:
        InputError: with file and line: no labels, another number of fields, a box that is none.
    """
    source = read_source(folder, "annotations")
    lines = [(member, list(_lines(member))) for member in source.members]
    counts = {len(fields) for _, numbered in lines for _, fields in numbered}
    tracking = bool(counts) and counts <= set(TRACKING_COLUMNS)
    known = TRACKING_COLUMNS if tracking else OBJECT_COLUMNS
    at = TRACKING_BOX if tracking else OBJECT_BOX
    labels: Found = {}
    stems = [member.name.removeprefix(f"{folder}/").removesuffix(".txt") for member, _ in lines]
    for stem, (member, numbered) in zip(stems, lines, strict=True):
        if not tracking:
            labels[stem] = []
        for number, fields in numbered:
            place = Place(member.name, number)
            if len(fields) not in known:
                raise InputError(
                    f"{len(fields)} fields; expected 15 or 16 in every line (labels of images), or 17 or 18 "
                    "(of sequences)",
                    place,
                )
            if tracking and not FRAME_NUMBER.fullmatch(fields[0]):
                raise InputError(f"expected the number of a frame, got {shown(fields[0])}", place)
            frame = f"{stem}/{int(fields[0])}" if tracking else stem
            labels.setdefault(frame, []).append((fields, box_of([fields[number] for number in at], place)))
    return KittiLabels(source.record, *by_frame(labels), tracking, frozenset(stems))


def _lines(member: Member) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Number and fields of each line that is not blank."""
    for number, line in enumerate(decoded(member.raw, Place(member.name)).split("\n"), start=1):
        fields = tuple(line.split())
        if fields:
            yield number, fields
