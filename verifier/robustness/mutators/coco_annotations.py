"""COCO annotations that move along with their images.

For a mutation, `images` holds those that were made, with `file_name` NAME.png and their height and width; of other
keys of the document nothing is changed. Where a box moved or the image has another size, `segmentation` and
`keypoints` would lie beside the object and are left out, and `area` is that of the new box: COCO's evaluation sorts
objects by it.

Boxes that move along with their images: what every format of annotations has in common.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, shown
from verifier.base.files import read_json
from verifier.perception.detections.columns import faulty_boxes
from verifier.perception.detections.sources import digest_record
from verifier.perception.settings import IMAGE_SUFFIXES

SHAPES = ("segmentation", "keypoints", "num_keypoints")
FARTHEST_PX = 1e9


MOVED_ALONG = "boxes in the image move along; boxes in space and all other fields are as they were"
"""What whoever uses moved annotations must know."""
NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?\s*", re.ASCII)
"""A coordinate as text; Python itself would take 1_0 for 10."""


@dataclass(frozen=True, eq=False)
class Moved:
    """The boxes of one image after a mutation.

    Attributes:
        before: height and width of the image.
        size: height and width of the mutated image.
        kept: (m,) which of the image's boxes are left, increasing.
        boxes: (m, 4) where these are now.
    """

    name: str
    before: tuple[int, int]
    size: tuple[int, int]
    kept: NDArray[np.int64]
    boxes: NDArray[np.float64]


AnnotationKind: TypeAlias = Literal["table", "coco", "kitti_object", "kitti_tracking"]


@dataclass(frozen=True, eq=False)
class Annotations:
    """Annotations of many images; a class for each format.

    Attributes:
        record: of what was read: role, name, number of files, SHA-256.
        rows: for each frame, what stands in the file for each of its objects; empty for an image without objects.
        boxes: (n, 4) of these in the image: left, top, right, bottom; NaN where one has none.
        note: what moves along and what does not.
    """

    record: Mapping[str, Any]
    rows: Mapping[str, tuple[Any, ...]]
    boxes: Mapping[str, NDArray[np.float64]]
    note: ClassVar[str] = MOVED_ALONG

    @property
    def kind(self) -> AnnotationKind:
        """The name of the format."""
        raise NotImplementedError

    @property
    def frames(self) -> Collection[str]:
        """The names of the images that it has."""
        return self.rows.keys()

    def frame(self, name: str) -> str:
        """The name under which the image called `name` is kept."""
        return name

    def knows(self, name: str) -> bool:
        """Whether the image called `name` is one of them."""
        return self.frame(name) in self.rows

    def boxes_of(self, name: str, size: tuple[int, int]) -> NDArray[np.float64]:
        """(n, 4) the boxes in the image called `name` of this height and width.

        Raises:
            InputError: the annotations do not know this image, or say that it has another size.
        """
        boxes = self.boxes.get(self.frame(name), np.zeros((0, 4)))
        return boxes[~np.isnan(boxes).any(axis=1)]

    def strangers(self, names: frozenset[str]) -> int:
        """How many frames with annotations are none of these images."""
        return sum(bool(self.rows[frame]) for frame in self.rows.keys() - {self.frame(name) for name in names})

    def files(self, moved: Sequence[Moved]) -> Iterator[tuple[str, str]]:
        """The files for the images of one mutation that were made: path below its folder, and text."""
        raise NotImplementedError


Found: TypeAlias = dict[str, list[tuple[Any, list[float]]]]
"""For each frame, what stands for each of its objects, and its box."""


def by_frame(entries: Found) -> tuple[dict[str, tuple[Any, ...]], dict[str, NDArray[np.float64]]]:
    """The rows and boxes of `Annotations`."""
    rows = {frame: tuple(row for row, _ in group) for frame, group in entries.items()}
    boxes = {frame: np.array([box for _, box in row], np.float64).reshape(-1, 4) for frame, row in entries.items()}
    return rows, boxes


def box_of(cells: Sequence[Any], place: Place) -> list[float]:
    """A box from the texts or numbers left, top, right, bottom.

    Raises:
        InputError: it is none.
    """
    readable = all(NUMBER.fullmatch(cell) if isinstance(cell, str) else True for cell in cells)
    try:
        box = [float(cell) if readable else np.nan for cell in cells]
    except (TypeError, ValueError, OverflowError):
        box = [np.nan] * 4
    if np.isnan(box).any() or faulty_boxes(np.array([box])).any():
        raise InputError(f"expected a box x1 <= x2, y1 <= y2, got {', '.join(map(shown, cells))}", place)
    return box


def with_box(
    cells: Sequence[str], places: Sequence[int], before: NDArray[np.float64], now: Sequence[float]
) -> list[str]:
    """The cells of a row with a box that moved, or as they were if it did not."""
    made = list(cells)
    if list(now) != before.tolist():
        for place, value in zip(places, now, strict=True):
            made[place] = repr(float(value))
    return made


def frame_name(name: str) -> str:
    """The name of a frame without the suffix of an image."""
    suffix = Path(name).suffix
    return name.removesuffix(suffix) if suffix.lower() in IMAGE_SUFFIXES else name


def image_name(name: str) -> str:
    """The name of a frame where it names the file of its image: that of the mutated image."""
    frame = frame_name(name)
    return name if frame == name else f"{frame}.png"


@dataclass(frozen=True, eq=False)
class CocoAnnotations(Annotations):
    """A COCO document, whose `rows` are places in its `annotations`.

    Attributes:
        image_of: the place in `images` of each frame.
    """

    document: Mapping[str, Any]
    image_of: Mapping[str, int]
    kind: ClassVar[AnnotationKind] = "coco"
    note = (
        "boxes in the image move along; where one moved, segmentation and keypoints are left out and area is that of "
        "the box; all other fields are as they were"
    )

    def boxes_of(self, name: str, size: tuple[int, int]) -> NDArray[np.float64]:
        """(n, 4) the boxes in the image called `name` of this height and width.

        Raises:
            InputError: it is not among the images of the document, or has another size there.
        """
        if name not in self.image_of:
            raise InputError(f"the annotations have no image with the file_name {shown(name)}")
        image = self.document["images"][self.image_of[name]]
        declared = image.get("height"), image.get("width")
        if all(type(side) in (int, float) for side in declared) and declared != size:
            actual = f"an image of {size[1]} x {size[0]} pixels"
            raise InputError(f"{actual}; its annotations are of one of {declared[1]:g} x {declared[0]:g}")
        return self.boxes[name]

    def files(self, moved: Sequence[Moved]) -> Iterator[tuple[str, str]]:
        """One document."""
        images, entries = [], []
        for changed_image in moved:
            image = self.document["images"][self.image_of[changed_image.name]]
            height, width = changed_image.size
            resized = changed_image.before != changed_image.size
            images.append({**image, "file_name": f"{changed_image.name}.png", "height": height, "width": width})
            rows, before = self.rows[changed_image.name], self.boxes[changed_image.name]
            for old, box in zip(changed_image.kept.tolist(), changed_image.boxes.tolist(), strict=True):
                annotation = self.document["annotations"][rows[old]]
                changed = box != before[old].tolist()
                entries.append((rows[old], _moved(annotation, box, changed) if changed or resized else annotation))
        made = {
            **self.document,
            "images": images,
            "annotations": [entry for _, entry in sorted(entries, key=itemgetter(0))],
        }
        yield "annotations.json", json.dumps(made, ensure_ascii=False) + "\n"


def _moved(annotation: Mapping[str, object], box: Sequence[float], changed: bool) -> dict[str, object]:
    made = {key: value for key, value in annotation.items() if key not in SHAPES}
    if changed:
        left, top, right, bottom = box
        made["bbox"] = [left, top, right - left, bottom - top]
    if "area" in made and changed:
        made["area"] = (box[2] - box[0]) * (box[3] - box[1])
    return made


def read_coco(path: Path) -> CocoAnnotations:
    """A COCO document.

    Raises:
        InputError: with the JSON pointer of what is missing or no box.
    """
    document, raw = read_json(path)
    images = _objects(document, "images", path)
    image_of: dict[str, int] = {}
    names: dict[Any, str] = {}
    for place, image in enumerate(images):
        at = Place(str(path), path=f"/images/{place}")
        name, key = image.get("file_name"), image.get("id")
        if not isinstance(name, str) or not name or type(key) not in (int, str):
            raise InputError("expected an image with an id and a file_name", at)
        if frame_name(name) in image_of or key in names:
            raise InputError(f"the image {shown(name)} or its id {shown(key)} is there twice", at)
        names[key] = frame_name(name)
        image_of[frame_name(name)] = place
    entries: Found = {name: [] for name in image_of}
    for place, annotation in enumerate(_objects(document, "annotations", path)):
        at = Place(str(path), path=f"/annotations/{place}")
        key, given = annotation.get("image_id"), annotation.get("bbox")
        if type(key) not in (int, str) or key not in names:
            raise InputError(f"image_id: there is no image {shown(key)}", at)
        if not isinstance(given, list) or len(given) != 4 or not all(map(_is_pixel, given)):
            raise InputError(f"bbox: expected four numbers x, y, width, height, got {shown(given)}", at)
        x, y, width, height = given
        entries[names[key]].append((place, box_of([x, y, x + width, y + height], at)))
    return CocoAnnotations(digest_record("annotations", path, raw), *by_frame(entries), document, image_of)


def _is_pixel(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= FARTHEST_PX


def _objects(document: Any, key: str, path: Path) -> list[dict[str, object]]:
    objects = document.get(key) if isinstance(document, dict) else None
    if not isinstance(objects, list):
        raise InputError(f"expected an object with a list '{key}'", Place(str(path)))
    for place, value in enumerate(objects):
        if not isinstance(value, dict):
            raise InputError("expected an object", Place(str(path), path=f"/{key}/{place}"))
    return objects
