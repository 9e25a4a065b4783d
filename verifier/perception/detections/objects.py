"""What other libraries hold in memory: pandas, torchmetrics, supervision, MAITE, pycocotools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.perception.detections.arrays import FILES, from_dicts, from_maite, from_supervision
from verifier.perception.detections.coco import coco
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.sources import Reading
from verifier.perception.detections.tablefiles import tables


def from_objects(
    annotations: Any,
    detections: Any,
    reading: Reading | None = None,
    *,
    names: Sequence[str] | None = None,
    sequences: Sequence[str] | None = None,
    **options: Any,
) -> DetectionSet:
    """A set from objects of another library; the kind of the annotations says which.

    * pandas: a `DataFrame` with the columns of tables, and another of detections;
    * torchmetrics: one dictionary per image with `boxes`, `labels`, `scores` (arrays or tensors), see `from_dicts`;
    * supervision: one `Detections` per image, or a `DetectionDataset`, see `from_supervision`;
    * MAITE: one target per image, see `from_maite`;
    * pycocotools: a `COCO`, and of detections that of `loadRes` or the list that it takes.

    Args:
        annotations: a mapping from the names of images, or a sequence, whose images are named by their numbers.
        detections: of the same images in the same order, or a mapping from their names.
        reading: settings of all readers.
        names: of the labels, by their number.
        sequences: the drive of each image.
        options: of the reader of tables or of COCO.

    Raises:
        InputError: an object of none of these kinds, images that differ; otherwise as the reader.
        UsageError: `names` or `sequences` of tables or of COCO.
    """
    whole = isinstance(getattr(annotations, "dataset", None), dict) or hasattr(annotations, "columns")
    if whole and (names is not None or sequences is not None):
        raise UsageError("names and sequences are of one object for each image; tables and COCO have their own")
    if isinstance(getattr(annotations, "dataset", None), dict):
        return coco(annotations, detections, reading, **options)
    if names is None:
        names = getattr(annotations, "classes", None)
    annotations, detections = (_listed(each) for each in (annotations, detections))
    if not isinstance(annotations, Mapping | Sequence) or isinstance(annotations, str):
        return tables(annotations, detections, reading, **options)
    frames = list(map(str, annotations if isinstance(annotations, Mapping) else range(len(annotations))))
    truth = list(annotations.values() if isinstance(annotations, Mapping) else annotations)
    found = _in_order(annotations, detections)
    if all(hasattr(each, "xyxy") for each in (*truth, *found)):
        return from_supervision(names, frames, truth, found, reading, sequences=sequences)
    if names is None:
        raise InputError("the labels have no names", Place(FILES[0]), "name what the labels mean: names=[...]")
    if all(isinstance(each, Mapping) for each in (*truth, *found)):
        return from_dicts(names, frames, truth, found, reading, sequences=sequences)
    if all(hasattr(each, "boxes") and hasattr(each, "labels") for each in (*truth, *found)):
        return from_maite(dict(enumerate(names)), frames, truth, found, reading, sequences=sequences)
    known = "dictionaries, supervision.Detections or MAITE targets"
    kinds = sorted({type(each).__name__ for each in (*truth, *found)})
    raise InputError(f"expected {known}, got {', '.join(kinds)}", Place(FILES[0]))


def _listed(given: Any) -> Any:
    """The annotations of a `supervision.DetectionDataset`; anything else as it is."""
    inside = getattr(given, "annotations", None)
    return inside if isinstance(inside, Mapping) and hasattr(given, "classes") else given


def _in_order(annotations: Any, detections: Any) -> list[Any]:
    """The detections of each image of the annotations."""
    if isinstance(detections, Sequence) and not isinstance(detections, str):
        return list(detections)
    if not isinstance(detections, Mapping):
        message = f"expected one object for each image, got {type(detections).__name__}"
        raise InputError(message, Place(FILES[1]))
    if not isinstance(annotations, Mapping):
        raise InputError("the images have names and those of the annotations have none", Place(FILES[1]))
    for one, other, text in ((detections, annotations, "annotations"), (annotations, detections, "detections")):
        missing = next((name for name in one if name not in other), None)
        if missing is not None:
            raise InputError(f"no {text} of the image {shown(missing)}", Place(FILES[text == "detections"]))
    return [detections[name] for name in annotations]
