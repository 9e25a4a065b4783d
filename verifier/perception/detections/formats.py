"""The formats by name: one way in for the command line, whatever the data set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from verifier.base.errors import InputError, check_known
from verifier.perception.detections.argoverse import argoverse
from verifier.perception.detections.bdd100k import bdd100k
from verifier.perception.detections.coco import coco
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.cvat import cvat
from verifier.perception.detections.fiftyone import fiftyone
from verifier.perception.detections.kitti import kitti_object, kitti_tracking
from verifier.perception.detections.mot import mot
from verifier.perception.detections.nuscenes import nuscenes
from verifier.perception.detections.nuscenes_compact import nuscenes_compact
from verifier.perception.detections.openlabel import openlabel
from verifier.perception.detections.recognition import recognised
from verifier.perception.detections.sources import Reading
from verifier.perception.detections.tablefiles import tables
from verifier.perception.detections.voc import voc
from verifier.perception.detections.waymo import waymo
from verifier.perception.detections.yolo import yolo


@dataclass(frozen=True)
class Format:
    """A format: what it is, its reader (annotations, detections, reading, **options), and the options it takes."""

    title: str
    reader: Callable[..., DetectionSet]
    options: tuple[str, ...] = ()


def auto(
    annotations: str | Path, detections: str | Path, reading: Reading | None = None, **options: Any
) -> DetectionSet:
    """The data in the format that the annotations show; `origin["recognised"]` says which, and by what.

    Raises:
        InputError: as the format's reader, saying how the format was recognised; none is.
    """
    name, seen = recognised(annotations)
    told = f"read as {name}: {seen}"
    try:
        data = read_detections(name, annotations, detections, reading, **options)
    except InputError as error:
        hint = f"{error.hint}; " if error.hint else ""
        raise InputError(error.message, error.place, f"{hint}{told}; --format NAME says otherwise") from None
    return data.change(origin={**data.origin, "recognised": told})


COLUMNS = ("columns", "detection_columns")
"""Options of tables: what their columns mean."""
_NAMED = {
    "kitti_object": Format("KITTI object: folders or zip archives of label and result files", kitti_object),
    "kitti_tracking": Format(
        "KITTI tracking: folders or zip archives, one file per sequence", kitti_tracking, ("frames",)
    ),
    "nuscenes": Format("nuScenes: the folder of the official tables, and official results", nuscenes),
    "nuscenes_compact": Format("nuScenes: one scene with its poses in one file", nuscenes_compact),
    "coco": Format("COCO: annotations and results", coco, ("distance_field", "detection_distance_field")),
    "fiftyone": Format(
        "FiftyOne: JSON of samples with ground_truth and predictions",
        fiftyone,
        ("distance_field", "detection_distance_field"),
    ),
    "mot": Format("MOTChallenge: folders or zip archives of sequences", mot, ("detected_class",)),
    "yolo": Format(
        "Ultralytics YOLO: labels with data.yaml, and labels or predictions.json",
        yolo,
        ("image_size", "first_category", "detection_distance_field"),
    ),
    "voc": Format("Pascal VOC: XML files, and XML files with scores or result files", voc),
    "argoverse": Format(
        "Argoverse 2: logs with annotations.feather, and detections", argoverse, ("detection_frame",)
    ),
    "waymo": Format("Waymo Open Dataset v2: Parquet files of lidar_box or camera_box", waymo, ("columns",)),
    "bdd100k": Format("BDD100K and Scalabel: JSON frames with labels", bdd100k, ("columns",)),
    "openlabel": Format("ASAM OpenLABEL: JSON", openlabel, ("columns",)),
    "cvat": Format("CVAT: XML of images or videos", cvat, ("columns",)),
    "table": Format("CSV or Parquet with named columns", tables, ("frames", *COLUMNS)),
}
OPTIONS = tuple(dict.fromkeys(option for chosen in _NAMED.values() for option in chosen.options))
"""Every option of a reader."""
FORMATS = {"auto": Format("recognised by the annotations", auto, OPTIONS), **_NAMED}


def read_detections(
    format_name: str,
    annotations: str | Path,
    detections: str | Path,
    reading: Reading | None = None,
    **options: Any,
) -> DetectionSet:
    """Annotations and detections in a named format.

    Raises:
        UsageError: there is no such format, or it has no such option.
        InputError: as the format's reader.
    """
    check_known("format", format_name, FORMATS)
    chosen = FORMATS[format_name]
    for name in options:
        check_known(f"option of the format '{format_name}'", name, chosen.options)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows or is no number is refused, naming its place
        return chosen.reader(annotations, detections, reading, **options)
