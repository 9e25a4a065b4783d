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
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.base.files import decoded, read_text
from verifier.perception.detections.sources import digest_record
from verifier.perception.detections.tablefiles import BOX_2D
from verifier.robustness.mutators.coco_annotations import read_coco
from verifier.robustness.mutators.kitti_annotations import read_kitti
from verifier.robustness.mutators.moving import (
    MOVED_ALONG,
    AnnotationKind,
    Annotations,
    Moved,
    box_of,
    frame_name,
    image_name,
    with_box,
)


@dataclass(frozen=True, eq=False)
class BoxTable:
    """A CSV table with the columns `frame`, `x1`, `y1`, `x2`, `y2` and any others; a frame without rows is empty.

    Attributes:
        record: of the file.
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
