"""Annotations and detections of a made data set as COCO files, so that others can judge them again.

`annotations.json` holds the images, the objects and, with `iscrowd`, the regions to ignore; an object's distance is
in `distance_m`, where it is known. A region for every class stands there once per class. `detections.json` holds
results. `verify confusion --format coco --distance-field distance_m` reads both.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from verifier.base.errors import InputError, Place
from verifier.base.files import make_folder, write_text
from verifier.perception.detections.columns import ANY_CLASS, Boxes, DetectionSet
from verifier.perception.detections.distances import distance

ANNOTATIONS_FILE = "annotations.json"
DETECTIONS_FILE = "detections.json"
DISTANCE_FIELD = "distance_m"


def new_folder(path: Path) -> None:
    """Make a folder, or take one that is empty.

    Raises:
        InputError: it cannot be made, or holds something.
    """
    make_folder(path)
    try:
        empty = not any(path.iterdir())
    except OSError as error:
        raise InputError(f"the folder cannot be read: {error.strerror}", Place(str(path))) from None
    if not empty:
        raise InputError(
            "expected a new or empty folder: old files would mix with those that are made", Place(str(path))
        )


def write_coco(
    folder: Path, data: DetectionSet, sizes: Mapping[str, tuple[int, int]], measure: str | None, detected: bool
) -> None:
    """Write the annotations, and the detections if there was a detector.

    Args:
        folder: where to.
        data: with rectangles.
        sizes: height and width of the image of each frame.
        measure: of the distances that are written; None for none.
        detected: whether there are results to write.

    Raises:
        InputError: a file cannot be written.
    """
    away = None if measure is None else distance(data.annotations, measure)
    objects = _objects(data.annotations, len(data.classes), crowd=0)
    if away is not None:
        for each, metres in zip(objects, away.tolist(), strict=True):
            if metres == metres:  # NaN: not known
                each[DISTANCE_FIELD] = metres
    regions = [] if data.ignored is None else _objects(data.ignored, len(data.classes), crowd=1)
    document = {
        "images": [
            {"id": number, "file_name": name, "width": sizes[name][1], "height": sizes[name][0]}
            for number, name in enumerate(data.frame_name, 1)
        ],
        "categories": [{"id": number, "name": name} for number, name in enumerate(data.classes, 1)],
        "annotations": [{"id": number, **each} for number, each in enumerate([*objects, *regions], 1)],
    }
    write_text(folder / ANNOTATIONS_FILE, _text(document))
    if detected:
        write_text(folder / DETECTIONS_FILE, _lines(_results(data.detections)))


def _objects(boxes: Boxes, classes: int, crowd: int) -> list[dict[str, Any]]:
    found = []
    given = boxes.attributes.get("area")
    masks = [math.nan] * len(boxes) if given is None else given.astype(np.float64).tolist()
    rows = zip(boxes.frame.tolist(), boxes.label.tolist(), _rectangles(boxes), masks, strict=True)
    for frame, label, box, mask in rows:
        for category in range(classes) if label == ANY_CLASS else (label,):
            area = box[2] * box[3] if math.isnan(mask) else mask  # COCO's sizes are those of masks
            found.append(
                {"image_id": frame + 1, "category_id": category + 1, "bbox": box, "area": area, "iscrowd": crowd}
            )
    return found


def _results(boxes: Boxes) -> list[dict[str, Any]]:
    assert boxes.score is not None  # detections have scores
    rows = zip(boxes.frame.tolist(), boxes.label.tolist(), _rectangles(boxes), boxes.score.tolist(), strict=True)
    return [
        {"image_id": frame + 1, "category_id": label + 1, "bbox": box, "score": score}
        for frame, label, box, score in rows
    ]


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
