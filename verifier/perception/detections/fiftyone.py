"""FiftyOne: the JSON of samples that `dataset.export(..., dataset_type=fiftyone.types.FiftyOneDataset)` or
`dataset.write_json` writes (docs.voxel51.com, "Exporting datasets" and "Detections").

A sample holds its detections under the name of a field; a bounding box is left, top, width, height in parts of the
image, whose size stands in the sample's `metadata`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np

from verifier.base.errors import InputError, Place
from verifier.perception.detections.assembly import Rows, assemble
from verifier.perception.detections.coco import distances_of
from verifier.perception.detections.columns import NO_SEQUENCE, DetectionSet, Frames, codes, frames_at
from verifier.perception.detections.sources import Elements, Reading, digest_record, elements, load_json, nested

TRUTH, FOUND, DISTANCE = "ground_truth", "predictions", "distance_m"


def fiftyone(
    annotations: str | Path,
    detections: str | Path,
    reading: Reading | None = None,
    *,
    distance_field: str | None = None,
    detection_distance_field: str | None = None,
) -> DetectionSet:
    """Samples with the fields `ground_truth` and `predictions`, of one file or of two with the same samples.

    Frames are the samples of the annotations, named by `filepath`; their sequences are its folders where there are
    several. Distances in metres are under `distance_field` of a detection, else under `distance_m` where one has it.
    Boxes with `iscrowd` are regions where detections are not judged.

    Raises:
        InputError: a file cannot be read, with its JSON pointer; see also `sources.IGNORABLE`.
    """
    document, raw = load_json(annotations)
    samples = elements(document, str(annotations), "samples", "samples")
    names = samples.texts("filepath")
    frames = _frames(names)
    index = samples.index("filepath")
    truth, items = _rows(samples, index, TRUTH)
    if distance_field is None and any(DISTANCE in item for item in items.items):
        distance_field = DISTANCE
    region = items.whole("iscrowd", 0) != 0
    truth = distances_of(replace(truth, region=region if region.any() else None), items, distance_field)
    other, found_raw = load_json(detections)
    reported = elements(other, str(detections), "samples", "samples")
    rows, items = _rows(reported, (reading or Reading()).frame_index(index), FOUND)
    rows = distances_of(rows, items, detection_distance_field)
    records = [digest_record("annotations", annotations, raw), digest_record("detections", detections, found_raw)]
    notes = {"distance_field": distance_field, "detection_distance_field": detection_distance_field}
    return assemble("fiftyone", frames, truth, rows, records, reading, notes=notes)


def _frames(names: list[str]) -> Frames:
    folders = [str(PurePosixPath(name).parent) for name in names]
    several = len(set(folders)) > 1
    return Frames.of(names, folders if several else [NO_SEQUENCE] * len(names))


def _rows(samples: Elements, index: Mapping[str, int], field: str) -> tuple[Rows, Elements]:
    """The detections under a field, in pixels."""
    names = samples.texts("filepath")
    if not any(field in sample for sample in samples.items):
        raise InputError(f"no sample has the field '{field}'", Place(samples.file))
    lists = []
    for row, sample in enumerate(samples.items):
        holder = sample.get(field) or {"detections": []}
        lists.append(holder.get("detections") if isinstance(holder, dict) else None)
        if not isinstance(lists[-1], list):
            raise samples.fail(row, field, "expected an object with a list of detections")
    items, at = nested(lists, samples.file, "detections", lambda row: f"{samples.pointer(row)}/{field}/detections")
    size = np.array([_size(samples, row) for row in dict.fromkeys(at.tolist())]).reshape(-1, 2)
    size = size[np.unique(at, return_inverse=True)[1]]
    left, top, width, height = (items.vectors("bounding_box", 4) * size[:, [0, 1, 0, 1]]).T
    rows = Rows.of(
        items,
        (frames_at(index, names)[at], lambda row: f"sample {names[at[row]]}"),
        codes(items.texts("label")),
        score=items.numbers("confidence") if field == FOUND else None,
        box_2d=np.column_stack([left, top, left + width, top + height]),
    )
    return rows, items


def _size(samples: Elements, row: int) -> list[int]:
    metadata = samples.items[row].get("metadata")
    told = [metadata.get(name) for name in ("width", "height")] if isinstance(metadata, dict) else []
    size = [number for number in told if type(number) is int and number > 0]
    if len(size) != 2:
        raise InputError(
            "a sample with detections needs 'metadata' with width and height",
            Place(samples.file, path=samples.pointer(row)),
            "dataset.compute_metadata() before the export",
        )
    return size
