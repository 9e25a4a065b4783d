"""COCO: an annotation file and a results file (Lin et al. 2014; cocodataset.org, "data format" and "results format").

Boxes are x, y, width, height in pixels. Annotations with `iscrowd` or `ignore` are regions where detections are not
judged. COCO knows no distances: they come from a field of the annotations, from a file
(`given.with_distances`), or from depth maps (`depth.with_depth`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import repeat
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, shown
from verifier.base.libraries import library
from verifier.perception.detections.assembly import UNKNOWN_FRAME, Frames, Material, Rows, assemble
from verifier.perception.detections.columns import NO_SEQUENCE, DetectionSet
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
    names = _unique(categories, "id", dict(zip(_ids(categories, "id"), categories.texts("name"), strict=True)))
    truth = result_rows(elements(document, file, "annotations", "annotations"), index, names, 0, scored=False)
    truth = _annotation_columns(truth, document["annotations"], file, distance_field)
    found_document, found_file, found_record = _document(results, "detections")
    items = elements(found_document, found_file, "detections", "annotations" if hasattr(results, "dataset") else "")
    wanted = (reading or Reading()).frame_index(index, frames.names)
    rows = distances_of(result_rows(items, wanted, names, 1), items, detection_distance_field)
    material = Material(
        "coco",
        frames,
        truth,
        rows,
        (file, found_file),
        [*truth_record, *found_record],
        tuple(dict.fromkeys(names.values())),
        notes={"distance_field": distance_field, "detection_distance_field": detection_distance_field},
    )
    return assemble(material, reading or Reading())


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
    ids = _ids(images, "id")
    index = _unique(images, "id", {number: frame for frame, number in enumerate(ids)})
    files = images.texts("file_name", "")
    named = all(files) and len(set(files)) == len(files)
    names = tuple(files) if named else tuple(map(str, ids))
    folders = [str(PurePosixPath(name).parent) if "/" in name else NO_SEQUENCE for name in files]
    sequences = tuple(dict.fromkeys(folders))
    codes = {name: code for code, name in enumerate(sequences)}
    sequence = np.fromiter((codes[folder] for folder in folders), np.int32, len(folders))
    return Frames(names, sequence, sequences), index


def _unique(items: Elements, key: str, index: dict[Any, Any]) -> dict[Any, Any]:
    """`index`, whose keys are the values under `key`, if each occurs once."""
    if len(index) == len(items):
        return index
    seen: set[Any] = set()
    for row, value in enumerate(items.values(key)):
        if value in seen:
            raise items.fail(row, key, f"the {key} {shown(value)} occurs twice")
        seen.add(value)
    return index


def _ids(items: Elements, key: str) -> list[Any]:
    ids = items.values(key)
    if not set(map(type, ids)) <= {int, str}:
        row = next(row for row, value in enumerate(ids) if type(value) not in (int, str))
        raise items.fail(row, key, f"expected a whole number or a string, got {shown(ids[row])}")
    return ids


def result_rows(
    items: Elements, index: Mapping[Any, int], names: Mapping[Any, str], file: int, scored: bool = True
) -> Rows:
    """The rows of results (or annotations), by the frame of each `image_id` and the name of each `category_id`."""
    images = _ids(items, "image_id")
    frame = np.fromiter(map(index.get, images, repeat(UNKNOWN_FRAME)), np.int64, len(images))
    categories = _ids(items, "category_id")
    used = dict.fromkeys(categories)
    code = {category: number for number, category in enumerate(used)}
    x, y, width, height = items.vectors("bbox", 4).T
    return Rows(
        frame,
        np.fromiter(map(code.__getitem__, categories), np.int64, len(categories)),
        tuple(names.get(category, f"category {category}") for category in used),
        np.arange(1, len(items) + 1),
        np.full(len(items), file, np.int32),
        lambda row: f"image {shown(images[row])}",
        items.numbers("score") if scored else None,
        box_2d=np.column_stack([x, y, x + width, y + height]),
        pointer=items.pointer,
    )


def _annotation_columns(rows: Rows, document: Any, file: str, distance_field: str | None) -> Rows:
    items = Elements(document, file, "annotations", lambda row: f"/annotations/{row}")
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
