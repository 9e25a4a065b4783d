"""COCO: an annotation file and a results file (Lin et al. 2014; cocodataset.org, "data format" and "results format").

Boxes are x, y, width, height in pixels. Annotations with `iscrowd` or `ignore` are regions where detections are not
judged. COCO knows no distances: they come from a field of the annotations, from a file
(`given.with_distances`), or from depth maps (`depth.with_depth`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, shown
from verifier.base.libraries import library
from verifier.perception.detections.assembly import Rows, assemble
from verifier.perception.detections.columns import NO_SEQUENCE, DetectionSet, Frames, codes, frames_at
from verifier.perception.detections.sources import Elements, Reading, digest_record, elements, load_json


def coco(
    annotations: Any,
    results: Any,
    reading: Reading | None = None,
    *,
    distance_field: str | None = None,
    detection_distance_field: str | None = None,
) -> DetectionSet:
    """COCO annotations and results: files, or `pycocotools.coco.COCO` (results: of `loadRes`, or its list).

    Frames are the images, in the order of the file, named by `file_name` (by their id where names are missing or
    not unique); the sequence of an image is the folder in its name, or "coco". `distance_field` names the field of
    the annotations that holds the distance in metres; an annotation without it has an unknown distance.
    `detection_distance_field` names that of the results. Attributes of annotations: `id`, `area` where given.

    Raises:
        InputError: a file cannot be read, with its JSON pointer; see also `sources.IGNORABLE`.
    """
    document, file, truth_record = _document(annotations, "annotations")
    images = elements(document, file, "images", "images")
    frames, index = _frames(images)
    categories = elements(document, file, "categories", "categories")
    names = dict(zip(categories.index("id"), categories.texts("name"), strict=True))
    items = elements(document, file, "annotations", "annotations")
    truth = _annotation_columns(result_rows(items, index, names, scored=False), items, distance_field)
    found_document, found_file, found_record = _document(results, "detections")
    items = elements(found_document, found_file, "detections", "annotations" if hasattr(results, "dataset") else "")
    wanted = (reading or Reading()).frame_index(index, frames.names)
    return assemble(
        "coco",
        frames,
        truth,
        distances_of(result_rows(items, wanted, names), items, detection_distance_field),
        [*truth_record, *found_record],
        reading,
        tuple(dict.fromkeys(names.values())),
        notes={"distance_field": distance_field, "detection_distance_field": detection_distance_field},
    )


def _document(given: Any, role: str) -> tuple[Any, str, list[dict[str, object]]]:
    """The document of a file or of an object in memory, its name for messages, and what is recorded of it."""
    if isinstance(given, str | Path):
        document, raw = load_json(given)
        return document, str(given), [digest_record(role, given, raw)]
    orjson, place = library("orjson"), Place(f"<{role}>")
    try:
        raw = orjson.dumps(getattr(given, "dataset", given), option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError as error:
        raise InputError(f"expected what COCO files hold: {error}", place) from None
    return orjson.loads(raw), str(place), []


def _frames(images: Elements) -> tuple[Frames, dict[Any, int]]:
    index = images.index("id")
    files = images.texts("file_name", "")
    named = all(files) and len(set(files)) == len(files)
    folders = (str(PurePosixPath(name).parent) if "/" in name else NO_SEQUENCE for name in files)
    return Frames.of(files if named else map(str, index), folders), index


def result_rows(items: Elements, index: Mapping[Any, int], names: Mapping[Any, str], scored: bool = True) -> Rows:
    """The rows of results (or annotations), by the frame of each `image_id` and the name of each `category_id`."""
    images = items.ids("image_id")
    x, y, width, height = items.vectors("bbox", 4).T
    return Rows.of(
        items,
        (frames_at(index, images), lambda row: f"image {shown(images[row])}"),
        codes(names.get(category, f"category {category}") for category in items.ids("category_id")),
        score=items.numbers("score") if scored else None,
        box_2d=np.column_stack([x, y, x + width, y + height]),
    )


def _annotation_columns(rows: Rows, items: Elements, distance_field: str | None) -> Rows:
    region = (items.whole("iscrowd", 0) != 0) | (items.whole("ignore", 0) != 0)
    attributes: dict[str, NDArray[Any]] = {"area": items.numbers("area", np.nan)}
    if set(map(type, items.values("id", 0))) <= {int}:
        attributes["id"] = items.whole("id", 0)
    return distances_of(replace(rows, region=region, attributes=attributes), items, distance_field)


def distances_of(rows: Rows, items: Elements, field: str | None) -> Rows:
    """The rows with the metres under `field`, NaN where an element has none; as they are without a field.

    Raises:
        InputError: no element has it, or it is no number.
    """
    if field is None:
        return rows
    metres = items.numbers(field, np.nan)
    if len(metres) and np.isnan(metres).all():
        kind = "annotation" if rows.score is None else "detection"
        raise InputError(f"no {kind} has a field {shown(field)}", Place(items.file))
    return replace(rows, distance_m=metres)
