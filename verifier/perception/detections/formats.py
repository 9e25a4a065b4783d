"""The formats by name, one way in for the command line, whatever the data set; and by what stands in the annotations,
never by the name of a folder alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from verifier.base.errors import InputError, Place, check_known, shown
from verifier.base.files import read_bytes
from verifier.base.libraries import library
from verifier.base.tables import FEATHER, NUMBER, PARQUET
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
from verifier.perception.detections.sources import Member, NoFilesError, Reading, read_source
from verifier.perception.detections.tablefiles import tables
from verifier.perception.detections.texttables import WHOLE
from verifier.perception.detections.voc import voc
from verifier.perception.detections.waymo import waymo
from verifier.perception.detections.yolo import yolo

TABLES = (".csv", ".tsv", *PARQUET)


def recognised(annotations: str | Path) -> tuple[str, str]:
    """The name of the format, and what was seen of it.

    Raises:
        InputError: nothing there, unreadable, or of no known format, saying what was seen.
    """
    path = Path(annotations)
    suffix = path.suffix.lower()
    if not path.exists():
        raise InputError("no such file or folder", Place(str(annotations)))
    if (path / "sample_annotation.json").is_file():
        return "nuscenes", "a folder with the table sample_annotation.json"
    if suffix in PARQUET and (seen := _of_parquet(path)):
        return "waymo", seen
    if suffix in TABLES:
        return "table", f"a file {suffix}"
    if suffix == FEATHER:
        return "argoverse", f"a file {suffix}"
    if suffix in (".yaml", ".yml"):
        return "yolo", f"a file {suffix}"
    if suffix == ".json":
        return _of_json([Member(str(annotations), path.stem, "", read_bytes(path))])
    if any(path.rglob("annotations.feather")):
        return "argoverse", "files annotations.feather"
    if (first := next(iter(sorted(path.rglob("*.parquet"))), None)) is not None and (seen := _of_parquet(first)):
        return "waymo", seen
    for wanted, find in ((".xml", _of_xml), (".txt", _of_text), (".json", _of_json)):
        try:
            members = read_source(annotations, "annotations", wanted).members
        except NoFilesError:
            continue
        if wanted in Path(members[0].name).suffix.lower():
            return find(members)
    raise _unrecognised("neither .txt, .xml nor .json files, and no known file", str(annotations))


def _unrecognised(seen: str, file: str) -> InputError:
    return InputError(f"the format is not recognised: {seen}", Place(file), "name it with --format")


def _of_json(members: Sequence[Member]) -> tuple[str, str]:
    raw = members[0].raw
    if raw.lstrip()[:1] == b"{" and all(key in raw for key in (b'"images"', b'"annotations"', b'"categories"')):
        return "coco", "a JSON object with images, annotations and categories"
    if raw.lstrip()[:1] == b"{" and all(key in raw for key in (b'"samples"', b'"filepath"', b'"bounding_box"')):
        return "fiftyone", "a JSON object with samples that have a filepath"
    if raw.lstrip()[:1] == b"{" and b'"openlabel"' in raw[:200]:
        return "openlabel", "a JSON object with openlabel"
    if b'"labels"' in raw and b'"box2d"' in raw:
        return "bdd100k", "JSON frames with labels that have a box2d"
    if raw.lstrip()[:1] == b"[" and all(key in raw for key in (b'"sample_token"', b'"cam_front"', b'"boxes"')):
        return "nuscenes_compact", "a JSON list of frames with sample_token, cam_front and boxes"
    seen = "JSON, but neither COCO, FiftyOne, OpenLABEL, BDD100K nor a scene of nuScenes"
    raise _unrecognised(seen, members[0].name)


def _of_xml(members: Sequence[Member]) -> tuple[str, str]:
    if any(re.search(rb"<annotation[\s>]", member.raw) for member in members):
        return "voc", f"XML files with the element 'annotation', as {members[0].name}"
    if any(re.search(rb"<annotations[\s>]", member.raw) for member in members):
        return "cvat", f"XML files with the element 'annotations', as {members[0].name}"
    seen = "XML without the element 'annotation' of Pascal VOC or 'annotations' of CVAT"
    raise _unrecognised(seen, members[0].name)


def _of_parquet(path: Path) -> str | None:
    """What shows a component of Waymo v2: the names of its columns, without its rows."""
    arrow = library("pyarrow")
    try:
        names = library("pyarrow.parquet").read_schema(path).names
    except (arrow.ArrowException, OSError):
        return None
    wanted = "key.segment_context_name"
    return f"Parquet files with the column {wanted}, as {path.name}" if wanted in names else None


def _of_text(members: Sequence[Member]) -> tuple[str, str]:
    """By the number and kind of the columns of the first line that is not blank."""
    if any(Path(member.name).parts[-2:] == ("gt", "gt.txt") for member in members):
        return "mot", "files gt/gt.txt"
    for member in members:
        for line in member.raw.decode(errors="replace").splitlines():
            if line.strip():
                return _of_line(line, member.name)
    raise _unrecognised(f"all {len(members)} text files are empty", members[0].name)


def _of_line(line: str, file: str) -> tuple[str, str]:
    fields, commas = line.split(), line.split(",")
    whole = [WHOLE.fullmatch(field) is not None for field in fields]
    numbers = [NUMBER.fullmatch(field) is not None for field in fields]
    if len(fields) == 15 and not numbers[0] and all(numbers[1:]):
        return "kitti_object", f"a class and 14 numbers in a line of {file}"
    if len(fields) == 17 and whole[0] and whole[1] and not numbers[2] and all(numbers[3:]):
        return "kitti_tracking", f"frame, track, class and 14 numbers in a line of {file}"
    if len(fields) == 5 and whole[0] and all(numbers):
        return "yolo", f"a class and 4 numbers in a line of {file}"
    if len(commas) in (9, 10) and all(NUMBER.fullmatch(comma.strip()) for comma in commas):
        return "mot", f"{len(commas)} numbers with commas in a line of {file}"
    raise _unrecognised(f"a line such as {shown(line)}", file)


@dataclass(frozen=True)
class Format:
    """A format: its reader (annotations, detections, reading, **options), and the options it takes."""

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


_FIELDS = ("distance_field", "detection_distance_field")
_NAMED = {
    "kitti_object": Format(kitti_object),
    "kitti_tracking": Format(kitti_tracking, ("frames",)),
    "nuscenes": Format(nuscenes),
    "nuscenes_compact": Format(nuscenes_compact),
    "coco": Format(coco, _FIELDS),
    "fiftyone": Format(fiftyone, _FIELDS),
    "mot": Format(mot, ("detected_class",)),
    "yolo": Format(yolo, ("image_size", "first_category", "detection_distance_field")),
    "voc": Format(voc),
    "argoverse": Format(argoverse, ("detection_frame",)),
    "waymo": Format(waymo, ("columns",)),
    "bdd100k": Format(bdd100k, ("columns",)),
    "openlabel": Format(openlabel, ("columns",)),
    "cvat": Format(cvat, ("columns",)),
    "table": Format(tables, ("frames", "columns")),
}
OPTIONS = tuple(dict.fromkeys(option for chosen in _NAMED.values() for option in chosen.options))
"""Every option of a reader."""
FORMATS = {"auto": Format(auto, OPTIONS), **_NAMED}


def read_detections(
    format_name: str, annotations: str | Path, detections: str | Path, reading: Reading | None = None, **options: Any
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
