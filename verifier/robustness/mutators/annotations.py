"""Annotations that move along with their images: read by the readers of detections, written as COCO.

Only what lies in the image moves: boxes in the image. Boxes in space and distances stay as they were.

`annotations.json` holds the images, the objects and, with `iscrowd`, the regions to ignore; an object's distance is
in `distance_m`, where it is known. A region for every class stands there once per class. `detections.json` holds
results. `verify confusion --format coco --distance-field distance_m` reads both.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from verifier.base.arrays import Floats, Ints
from verifier.base.errors import InputError, Place, shown
from verifier.base.files import read_json, write_text
from verifier.perception.detections import Reading, read_class_map, read_detections
from verifier.perception.detections.columns import ANY_CLASS, NO_SEQUENCE, Boxes, DetectionSet, no_boxes
from verifier.perception.detections.distances import distance
from verifier.perception.detections.formats import recognised
from verifier.perception.detections.sources import read_source
from verifier.robustness.mutators.frames import Frame

ANNOTATIONS_FILE = "annotations.json"
DETECTIONS_FILE = "detections.json"
DISTANCE_FIELD = "distance_m"
ANNOTATION_FORMATS = ("coco", "kitti_object", "table")
"""Those of which a frame is an image by itself."""


@dataclass(frozen=True)
class AnnotationFiles:
    """The objects in the source images, which move along with what moves the image.

    Attributes:
        file: what its reader takes; a path as in the file.
        class_map: file of a class map, None to keep the names of the data set.
        distance_field: of COCO annotations, the field with the distance in metres.
        frames: of a table, the file that lists all frames.
    """

    format: str
    file: str
    class_map: str | None = None
    distance_field: str | None = None
    frames: str | None = None

    @classmethod
    def recognised(cls, file: str) -> AnnotationFiles:
        """By what the file is; InputError where it is none of `ANNOTATION_FORMATS`."""
        name, _ = recognised(file)
        if name not in ANNOTATION_FORMATS:
            raise InputError(f"annotations as {name}; expected {', '.join(ANNOTATION_FORMATS)}", Place(file))
        listed = read_json(file)[0].get("annotations") if name == "coco" else None
        entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
        return cls(
            name, file, distance_field=DISTANCE_FIELD if any(DISTANCE_FIELD in one for one in entries) else None
        )


@dataclass(frozen=True, eq=False)
class MovedBoxes:
    """Where the boxes of one image are after a mutation.

    Attributes:
        source: of the image it was made from.
        size: height and width of the new image.
        kept: which boxes of the frame of the source are still in the image.
        boxes: (n, 4) where they are.
    """

    name: str
    source: str
    size: tuple[int, int]
    kept: Ints
    boxes: Floats

    @classmethod
    def of(cls, name: str, source: str, frame: Frame) -> MovedBoxes:
        """Those of a frame after its mutation."""
        kept = np.zeros(0, np.int64) if frame.kept is None else frame.kept
        return cls(name, source, frame.size, kept, np.zeros((0, 4)) if frame.boxes is None else frame.boxes)


@dataclass(frozen=True, eq=False)
class Annotations:
    """The objects in images.

    Attributes:
        truth: its frames are called as the images and in their order, and it has no detections.
        image_ids, category_ids: that a COCO file has for the images and classes; empty where it has none.
        strangers: how many frames with annotations are none of the images.
        sizes: height and width of the images, where a COCO file says them.
    """

    truth: DetectionSet
    image_ids: Mapping[str, object] = field(default_factory=dict)
    category_ids: Mapping[str, object] = field(default_factory=dict)
    strangers: int = 0
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    _rows: Mapping[str, tuple[Ints, Ints]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        own = [by_frame(part, self.truth.frame_count) for part in (self.truth.annotations, self._regions)]
        object.__setattr__(self, "_rows", dict(zip(self.truth.frame_name, zip(*own, strict=True), strict=True)))

    @property
    def _regions(self) -> Boxes:
        return self.truth.ignored or no_boxes()

    def knows(self, name: str) -> bool:
        """Whether the image of this name is one of them."""
        return name in self._rows

    def rows(self, name: str) -> tuple[Ints, Ints]:
        """The rows of the objects of an image among the annotations, and of its regions among those to ignore."""
        return self._rows[name]

    def boxes(self, name: str) -> Floats:
        """(n, 4) the boxes in an image, those of objects first and then those of regions."""
        objects, regions = self.rows(name)
        return np.vstack([_rectangles(self.truth.annotations)[objects], _rectangles(self._regions)[regions]])

    def moved(self, images: Sequence[MovedBoxes]) -> DetectionSet:
        """The annotations of the new images, in their order: those of the sources, moved along.

        What left the image is gone.
        """
        truth = self.truth
        taken: list[list[Ints]] = [[], []]
        boxes: list[list[Floats]] = [[], []]
        counts: list[list[int]] = [[], []]
        for image in images:
            own = self.rows(image.source)
            is_object = image.kept < len(own[0])
            for kind, mask in enumerate((is_object, ~is_object)):
                taken[kind].append(own[kind][image.kept[mask] - kind * len(own[0])])
                boxes[kind].append(image.boxes[mask])
                counts[kind].append(int(mask.sum()))
        objects, regions = (
            _resized(
                of.take(np.concatenate([np.zeros(0, np.int64), *taken[kind]])),
                np.repeat(np.arange(len(images)), counts[kind]),
                np.concatenate([np.zeros((0, 4)), *boxes[kind]]),
            )
            for kind, of in enumerate((truth.annotations, self._regions))
        )
        return truth.change(
            frame_sequence=np.zeros(len(images), np.int32),
            frame_name=tuple(image.name for image in images),
            annotations=objects,
            ignored=None if truth.ignored is None else regions,
            detections=no_boxes(scored=True),
        )

    def ids_of(self, images: Sequence[MovedBoxes]) -> dict[str, object]:
        """Those of the new images: the ids of their sources."""
        return {image.name: self.image_ids[image.source] for image in images} if self.image_ids else {}


def _resized(boxes: Boxes, frame: Ints, box_2d: Floats) -> Boxes:
    """The boxes elsewhere; of one that has another size than it had, the area of its mask is not known any more."""
    attributes = dict(boxes.attributes)
    if "area" in attributes and boxes.box_2d is not None:
        same = np.isclose(box_2d[:, 2:] - box_2d[:, :2], boxes.box_2d[:, 2:] - boxes.box_2d[:, :2]).all(axis=1)
        attributes["area"] = np.where(same, attributes["area"].astype(np.float64), np.nan)
    return replace(boxes, frame=frame, box_2d=box_2d, attributes=attributes)


def by_frame(boxes: Boxes, frames: int) -> list[Ints]:
    """The rows of each frame."""
    order = np.argsort(boxes.frame, kind="stable")
    return np.split(order, np.cumsum(np.bincount(boxes.frame, minlength=frames))[:-1])


def _rectangles(boxes: Boxes) -> Floats:
    """(n, 4); a set without any box has none."""
    return np.zeros((0, 4)) if boxes.box_2d is None else np.asarray(boxes.box_2d)


def read_annotations(
    given: AnnotationFiles, folder: Path, called: Mapping[str, str], partly: bool = False
) -> Annotations:
    """The annotations of images.

    Args:
        given: names the files.
        folder: where its paths start from.
        called: by what a frame can be called, the name of the image; images in their order.
        partly: whether frames without images, and images without frames, are left out and not refused; all images
            are in a table, which does not list those without objects.

    Raises:
        InputError: a file that cannot be read, images and annotations that do not belong together.
    """
    detections, place = _read(given, folder), Place(str(folder / given.file))
    names = list(dict.fromkeys(called.values()))
    renamed = [called.get(name) for name in detections.frame_name]
    for frame, image in zip(detections.frame_name, renamed, strict=True):
        if image is None and not partly:
            raise InputError(f"frame {shown(frame)} has no image in the source folder", place)
    for name in sorted({*names}.difference(map(str, renamed))):
        if not partly:
            hint = "list all frames in a file: frames = ..." if given.format == "table" else None
            raise InputError(f"the image {shown(name)} has no frame in the annotations", place, hint)
        if given.format != "table":
            names.remove(name)
    known = [name for name in renamed if name is not None]
    if renamed and not known:
        message = f"they know no image of this batch: its first is called {shown(next(iter(called)))}"
        hint = "an image is called by its path below the folder that is named"
        raise InputError(f"{message}, theirs {shown(min(detections.frame_name))}", place, hint)
    if len(set(known)) < len(known):
        raise InputError("two frames belong to one image", place)
    boxes = detections.annotations
    if (len(boxes) or not partly) and (boxes.box_2d is None or np.isnan(boxes.box_2d).any()):
        raise InputError("an annotation has no rectangle in its image, so that it cannot move along", place)
    images, categories, sizes = dict[str, object](), dict[str, object](), dict[str, tuple[int, int]]()
    if given.format == "coco":  # its frames are its images, in their order
        document, _ = read_json(folder / given.file)
        listed = {name: entry for name, entry in zip(renamed, document["images"], strict=True) if name is not None}
        images = {name: entry["id"] for name, entry in listed.items()}
        said = {name: (entry.get("height"), entry.get("width")) for name, entry in listed.items()}
        sizes = {name: size for name, size in said.items() if all(isinstance(one, int) and one > 0 for one in size)}
        if given.class_map is None:
            categories = {entry["name"]: entry["id"] for entry in reversed(document["categories"])}
    stray = {frame for frame, name in enumerate(renamed) if name is None}
    strangers = len(stray.intersection(detections.annotations.frame.tolist()))
    return Annotations(_in_order(detections, renamed, names), images, categories, strangers, sizes)


def _read(given: AnnotationFiles, folder: Path) -> DetectionSet:
    mapping = None if given.class_map is None else read_class_map(folder / given.class_map)
    options = {} if given.distance_field is None else {"distance_field": given.distance_field}
    if given.frames is not None:
        options["frames"] = str(folder / given.frames)
    path = folder / given.file
    with tempfile.TemporaryDirectory() as nothing:
        no_reports = _without_reports(given.format, path, Path(nothing))
        try:
            return read_detections(given.format, path, no_reports, Reading(mapping), **options)
        except InputError as error:
            if error.hint is None or "--ignore" not in error.hint:
                raise
            raise InputError(error.message, error.place, "correct the file of annotations") from None


def _without_reports(kind: str, annotations: Path, folder: Path) -> Path:
    """Results in which nothing is detected, for the readers, which ask for some."""
    if kind == "coco":
        (folder / "none.json").write_text("[]")
        return folder / "none.json"
    if kind == "table":
        (folder / "none.csv").write_text("frame,class,score\n")
        return folder / "none.csv"
    for member in read_source(annotations, "annotations").members:
        (folder / f"{member.stem}.txt").write_text("")
    return folder


def _in_order(detections: DetectionSet, renamed: Sequence[str | None], names: Sequence[str]) -> DetectionSet:
    """The frames called as their images and in their order, in no sequence, without a trace of empty results."""
    number = {name: at for at, name in enumerate(names)}
    place = np.array([-1 if name is None else number[name] for name in renamed], dtype=np.int64)
    sources = [entry for entry in detections.origin.get("sources", []) if entry.get("role") != "detections"]
    ignored = detections.ignored
    return detections.change(
        sequences=(NO_SEQUENCE,),
        frame_sequence=np.zeros(len(names), np.int32),
        frame_name=tuple(names),
        annotations=_placed(detections.annotations, place),
        detections=no_boxes(scored=True),
        ignored=None if ignored is None else _placed(ignored, place),
        origin={**detections.origin, "sources": sources},
    )


def _placed(boxes: Boxes, place: Ints) -> Boxes:
    frame = place[boxes.frame]
    order = np.argsort(frame, kind="stable")
    order = order[frame[order] >= 0]
    return replace(boxes.take(order), frame=frame[order])


def write_coco(
    folder: Path,
    data: DetectionSet,
    sizes: Mapping[str, tuple[int, int]],
    measure: str | None,
    detected: bool,
    image_ids: Mapping[str, object] = MappingProxyType({}),
    category_ids: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Write the annotations, and the detections if there was a detector.

    Args:
        folder: where to.
        data: with rectangles.
        sizes: height and width of the image of each frame.
        measure: of the distances that are written; None for none.
        detected: whether there are results to write.
        image_ids, category_ids: of frames and classes; numbers from 1 for those that it lacks.

    Raises:
        InputError: a file cannot be written.
    """
    images = _numbers(data.frame_name, image_ids)
    categories = _numbers(data.classes, category_ids)
    away = None if measure is None else distance(data.annotations, measure)
    objects = _rows(data.annotations, images, categories, crowd=0)
    if away is not None:
        for entry, metres in zip(objects, away.tolist(), strict=True):
            if metres == metres:  # NaN: not known
                entry[DISTANCE_FIELD] = metres
    regions = [] if data.ignored is None else _rows(data.ignored, images, categories, crowd=1)
    known = [entry.get("id") for entry in (*objects, *regions)]
    if None in known or len(set(known)) < len(known):
        known = list(range(1, len(known) + 1))
    document = {
        "images": [
            {"id": number, "file_name": name, "width": sizes[name][1], "height": sizes[name][0]}
            for name, number in zip(data.frame_name, images, strict=True)
        ],
        "categories": [{"id": number, "name": name} for name, number in zip(data.classes, categories, strict=True)],
        "annotations": [{**entry, "id": number} for number, entry in zip(known, (*objects, *regions), strict=True)],
    }
    write_text(folder / ANNOTATIONS_FILE, _text(document))
    if detected:
        write_text(folder / DETECTIONS_FILE, _lines(_rows(data.detections, images, categories)))


def _numbers(names: Sequence[str], known: Mapping[str, object]) -> list[Any]:
    """Known ids of the names, or all counted from 1 where one is not known."""
    return [known[name] for name in names] if all(name in known for name in names) else [*range(1, len(names) + 1)]


def _rows(
    boxes: Boxes, images: list[Any], categories: list[Any], crowd: int | None = None
) -> list[dict[str, object]]:
    """Objects or, with `crowd` 1, regions to ignore; without it results, which have scores."""
    entries = []
    attributes = {name: boxes.attributes[name].tolist() for name in ("id", "area") if name in boxes.attributes}
    rows = zip(boxes.frame.tolist(), boxes.label.tolist(), _corner_and_size(boxes), strict=True)
    for row, (frame, label, box) in enumerate(rows):
        for category in categories if label == ANY_CLASS else (categories[label],):
            one: dict[str, object] = {"image_id": images[frame], "category_id": category, "bbox": box}
            if crowd is None:
                assert boxes.score is not None  # detections have scores
                entries.append({**one, "score": float(boxes.score[row])})
                continue
            area = float(attributes["area"][row]) if "area" in attributes else math.nan
            one["area"] = box[2] * box[3] if math.isnan(area) else area  # COCO's sizes are those of masks
            entries.append({"id": attributes["id"][row] if "id" in attributes else None, **one, "iscrowd": crowd})
    return entries


def _corner_and_size(boxes: Boxes) -> list[list[float]]:
    """Left, top, width, height."""
    box = np.zeros((len(boxes), 4)) if boxes.box_2d is None else boxes.box_2d
    rectangles: list[list[float]] = np.hstack([box[:, :2], box[:, 2:] - box[:, :2]]).tolist()
    return rectangles


def _text(document: Mapping[str, Sequence[Any]]) -> str:
    return (
        "{\n"
        + ",\n".join(f"{json.dumps(key)}: {_lines(value).rstrip()}" for key, value in document.items())
        + "\n}\n"
    )


def _lines(items: Sequence[Any]) -> str:
    """A JSON list, one item per line."""
    if not items:
        return "[]\n"
    return "[\n" + ",\n".join(json.dumps(item, ensure_ascii=False, allow_nan=False) for item in items) + "\n]\n"
