"""Annotations and detections of a made data set as COCO files, so that others can judge them again.

`annotations.json` holds the images, the objects and, with `iscrowd`, the regions to ignore; an object's distance is
in `distance_m`, where it is known. A region for every class stands there once per class. `detections.json` holds
results. `verify confusion --format coco --distance-field distance_m` reads both.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from verifier.base.errors import InputError, Place, UsageError
from verifier.base.files import make_folder, write_text
from verifier.perception.detections.columns import ANY_CLASS, Boxes, DetectionSet
from verifier.perception.detections.distances import distance

ANNOTATIONS_FILE = "annotations.json"
DETECTIONS_FILE = "detections.json"
DISTANCE_FIELD = "distance_m"


def check_new(path: Path, hint: str | None = None) -> None:
    """Refuse what is no folder, and a folder that holds something or cannot be read; InputError."""
    if path.exists() and not path.is_dir():
        raise InputError("the folder cannot be made: it is a file", Place(str(path)))
    try:
        full = path.is_dir() and any(path.iterdir())
    except OSError as error:
        raise InputError(f"the folder cannot be read: {error.strerror}", Place(str(path))) from None
    if full:
        message = "expected a new or empty folder: old files would mix with those that are made"
        raise InputError(message, Place(str(path)), hint)


def check_outside(option: str, target: Path, inputs: Path) -> None:
    """Refuse a folder for outputs that lies in one of inputs; UsageError."""
    if target.resolve().is_relative_to(inputs.resolve()):
        raise UsageError(f"{option}: {target} lies in {inputs}, a folder of inputs, which would change")


def new_folder(path: Path) -> None:
    """Make a folder, or take one that is empty.

    Raises:
        InputError: it cannot be made, or holds something.
    """
    check_new(path)
    make_folder(path)


def write_coco(
    folder: Path,
    data: DetectionSet,
    sizes: Mapping[str, tuple[int, int]],
    measure: str | None,
    detected: bool,
    image_ids: Mapping[str, Any] = MappingProxyType({}),
    category_ids: Mapping[str, Any] = MappingProxyType({}),
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
        for each, metres in zip(objects, away.tolist(), strict=True):
            if metres == metres:  # NaN: not known
                each[DISTANCE_FIELD] = metres
    regions = [] if data.ignored is None else _rows(data.ignored, images, categories, crowd=1)
    known = [each.get("id") for each in (*objects, *regions)]
    if None in known or len(set(known)) < len(known):
        known = list(range(1, len(known) + 1))
    document = {
        "images": [
            {"id": number, "file_name": name, "width": sizes[name][1], "height": sizes[name][0]}
            for name, number in zip(data.frame_name, images, strict=True)
        ],
        "categories": [{"id": number, "name": name} for name, number in zip(data.classes, categories, strict=True)],
        "annotations": [{**each, "id": number} for number, each in zip(known, (*objects, *regions), strict=True)],
    }
    write_text(folder / ANNOTATIONS_FILE, _text(document))
    if detected:
        write_text(folder / DETECTIONS_FILE, _lines(_rows(data.detections, images, categories)))


def _numbers(names: Sequence[str], known: Mapping[str, Any]) -> list[Any]:
    """Known ids of the names, or all counted from 1 where one is not known."""
    return [known[name] for name in names] if all(name in known for name in names) else [*range(1, len(names) + 1)]


def _rows(boxes: Boxes, images: list[Any], categories: list[Any], crowd: int | None = None) -> list[dict[str, Any]]:
    """Objects or, with `crowd` 1, regions to ignore; without it results, which have scores."""
    found = []
    attributes = {name: boxes.attributes[name].tolist() for name in ("id", "area") if name in boxes.attributes}
    rows = zip(boxes.frame.tolist(), boxes.label.tolist(), _rectangles(boxes), strict=True)
    for row, (frame, label, box) in enumerate(rows):
        for category in categories if label == ANY_CLASS else (categories[label],):
            one: dict[str, Any] = {"image_id": images[frame], "category_id": category, "bbox": box}
            if crowd is None:
                assert boxes.score is not None  # detections have scores
                found.append({**one, "score": float(boxes.score[row])})
                continue
            area = float(attributes["area"][row]) if "area" in attributes else math.nan
            one["area"] = box[2] * box[3] if math.isnan(area) else area  # COCO's sizes are those of masks
            found.append({"id": attributes["id"][row] if "id" in attributes else None, **one, "iscrowd": crowd})
    return found


def _rectangles(boxes: Boxes) -> list[list[float]]:
    """Left, top, width, height."""
    box = np.zeros((len(boxes), 4)) if boxes.box_2d is None else boxes.box_2d
    found: list[list[float]] = np.hstack([box[:, :2], box[:, 2:] - box[:, :2]]).tolist()
    return found


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
    return "[\n" + ",\n".join(json.dumps(each, ensure_ascii=False, allow_nan=False) for each in items) + "\n]\n"
