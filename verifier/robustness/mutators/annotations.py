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
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.base.files import decoded, read_text
from verifier.perception.detections.sources import Member, digest_record, read_source
from verifier.perception.detections.tablefiles import BOX_2D
from verifier.robustness.mutators.coco_annotations import (
    MOVED_ALONG,
    AnnotationKind,
    Annotations,
    Moved,
    box_of,
    frame_name,
    image_name,
    read_coco,
    with_box,
)


@dataclass(frozen=True, eq=False)
class BoxTable:
    """A CSV table with the columns `frame`, `x1`, `y1`, `x2`, `y2` and any others; a frame without rows is empty.

    Attributes:
        header: the names of the columns.
        rows: the cells of each row, as read.
        of: the rows of each frame.
        boxes: (n, 4) of each row; NaN where all four cells are empty.
    """

    record: Mapping[str, Any]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    of: Mapping[str, NDArray[np.int64]]
    boxes: NDArray[np.float64]
    kind: ClassVar[AnnotationKind] = "table"
    note = MOVED_ALONG

    @property
    def frames(self) -> Collection[str]:
        """Those with rows."""
        return self.of.keys()

    def knows(self, name: str) -> bool:
        """Whether there are rows of the image called `name`."""
        return name in self.of

    def boxes_of(self, name: str, size: tuple[int, int]) -> NDArray[np.float64]:
        """(n, 4) the boxes in the image called `name`."""
        return self.boxes[self._with_box(name)]

    def strangers(self, names: frozenset[str]) -> int:
        """How many frames with annotations are none of these images."""
        return len(self.of.keys() - names)

    def files(self, moved: Sequence[Moved]) -> Iterator[tuple[str, str]]:
        """One table; rows without a box are copied."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(self.header)
        places = [self.header.index(name) for name in BOX_2D]
        frame = self.header.index("frame")
        for each in moved:
            rows = self._with_box(each.name)
            now = dict(zip(rows[each.kept].tolist(), each.boxes.tolist(), strict=True))
            for row in self.of.get(each.name, np.zeros(0, np.int64)).tolist():
                cells = list(self.rows[row])
                cells[frame] = image_name(cells[frame])
                if row in now:
                    writer.writerow(with_box(cells, places, self.boxes[row], now[row]))
                elif np.isnan(self.boxes[row]).all():
                    writer.writerow(cells)
        yield "annotations.csv", stream.getvalue()

    def _with_box(self, name: str) -> NDArray[np.int64]:
        rows = self.of.get(name, np.zeros(0, np.int64))
        return rows[~np.isnan(self.boxes[rows]).any(axis=1)]


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
    rows: list[tuple[str, ...]] = []
    boxes: list[list[float]] = []
    of: dict[str, list[int]] = {}
    try:
        header = _header(tuple(next(lines, [])), Place(str(path), 1))
        at = [header.index(name) for name in BOX_2D]
        for cells in lines:
            if not cells:
                continue
            place = Place(str(path), lines.line_num)
            if len(cells) != len(header):
                raise InputError(f"{len(cells)} cells; expected {len(header)}", place)
            given = [cells[each] for each in at]
            boxes.append([np.nan] * 4 if not any(each.strip() for each in given) else box_of(given, place))
            of.setdefault(frame_name(cells[header.index("frame")]), []).append(len(rows))
            rows.append(tuple(cells))
    except csv.Error as error:
        raise InputError(f"not a readable table: {error}", Place(str(path), lines.line_num)) from None
    return BoxTable(
        digest_record("annotations", path, raw),
        header,
        tuple(rows),
        {name: np.array(numbers, np.int64) for name, numbers in of.items()},
        np.array(boxes, np.float64).reshape(-1, 4),
    )


def _header(header: tuple[str, ...], place: Place) -> tuple[str, ...]:
    for name in ("frame", *BOX_2D):
        if header.count(name) != 1:
            found = "there are several" if name in header else f"there is none among {shown(', '.join(header), 120)}"
            raise InputError(f"expected one column {name}; {found}", place)
    return header


OBJECT_COLUMNS, TRACKING_COLUMNS = (15, 16), (17, 18)
OBJECT_BOX, TRACKING_BOX = (4, 5, 6, 7), (6, 7, 8, 9)
FRAME_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, eq=False)
class KittiLabels:
    """Labels by frame name.

    Attributes:
        tracking: whether each file holds a sequence.
        rows: the fields of the lines of each frame; without lines for an image without objects.
        boxes: (n, 4) of these.
        sequences: of tracking labels: the names of the files, which know frames without lines, too.
    """

    record: Mapping[str, Any]
    tracking: bool
    rows: Mapping[str, tuple[tuple[str, ...], ...]]
    boxes: Mapping[str, NDArray[np.float64]]
    sequences: frozenset[str]
    note = MOVED_ALONG

    @property
    def kind(self) -> AnnotationKind:
        """The name of the format."""
        return "kitti_tracking" if self.tracking else "kitti_object"

    @property
    def frames(self) -> Collection[str]:
        """Those with labels or, of images, with an empty file."""
        return self.rows.keys()

    def knows(self, name: str) -> bool:
        """Whether there is a file for the image called `name`."""
        frame = self._frame(name)
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
        return self.boxes.get(self._frame(name), np.zeros((0, 4)))

    def strangers(self, names: frozenset[str]) -> int:
        """How many frames with labels are none of these images."""
        return len(self.rows.keys() - {self._frame(name) for name in names})

    def files(self, moved: Sequence[Moved]) -> Iterator[tuple[str, str]]:
        """labels/NAME.txt for each image, or labels/SEQUENCE.txt for all of a sequence."""
        texts: dict[str, list[str]] = {}
        places = TRACKING_BOX if self.tracking else OBJECT_BOX
        for each in moved:
            frame = self._frame(each.name)
            lines = texts.setdefault(frame.rpartition("/")[0] if self.tracking else frame, [])
            rows, before = self.rows.get(frame, ()), self.boxes_of(each.name, each.before)
            for old, box in zip(each.kept.tolist(), each.boxes.tolist(), strict=True):
                lines.append(" ".join(with_box(rows[old], places, before[old], box)) + "\n")
        for name, lines in texts.items():
            yield f"labels/{name}.txt", "".join(lines)

    def _frame(self, name: str) -> str:
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
    counts = {len(fields) for _, found in lines for _, fields in found}
    tracking = bool(counts) and counts <= set(TRACKING_COLUMNS)
    known = TRACKING_COLUMNS if tracking else OBJECT_COLUMNS
    rows: dict[str, list[tuple[str, ...]]] = {}
    boxes: dict[str, list[list[float]]] = {}
    for member, found in lines:
        stem = member.name.removeprefix(f"{folder}/").removesuffix(".txt")
        if not tracking:
            rows[stem], boxes[stem] = [], []
        for number, fields in found:
            place = Place(member.name, number)
            if len(fields) not in known:
                raise InputError(
                    f"{len(fields)} fields; expected 15 or 16 in every line (labels of images), or 17 or 18 "
                    "(of sequences)",
                    place,
                )
            frame = f"{stem}/{_frame_number(fields[0], place)}" if tracking else stem
            rows.setdefault(frame, []).append(fields)
            at = TRACKING_BOX if tracking else OBJECT_BOX
            boxes.setdefault(frame, []).append(box_of([fields[each] for each in at], place))
    return KittiLabels(
        source.record,
        tracking,
        {frame: tuple(each) for frame, each in rows.items()},
        {frame: np.array(each, np.float64).reshape(-1, 4) for frame, each in boxes.items()},
        frozenset(member.name.removeprefix(f"{folder}/").removesuffix(".txt") for member, _ in lines),
    )


def _lines(member: Member) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Number and fields of each line that is not blank."""
    for number, line in enumerate(decoded(member.raw, Place(member.name)).split("\n"), start=1):
        fields = tuple(line.split())
        if fields:
            yield number, fields


def _frame_number(text: str, place: Place) -> int:
    if not FRAME_NUMBER.fullmatch(text):
        raise InputError(f"expected the number of a frame, got {shown(text)}", place)
    return int(text)
