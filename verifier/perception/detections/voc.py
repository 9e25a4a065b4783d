"""Pascal VOC: one XML file per image (Everingham et al. 2010; devkit of VOC 2012), and detections in two forms.

    Annotations/a.xml        object/name, object/bndbox/xmin, ymin, xmax, ymax, object/difficult, truncated, occluded
    results/a.xml            the same, with object/score (or confidence)
    comp3_det_val_person.txt image score xmin ymin xmax ymax; the class is what follows the last "_"

Frames are the images that have an annotation file, named by it without suffix. Corners are as written: VOC counts
pixels from 1, most tools that write such files from 0. Objects marked `difficult` are regions not judged, as in the
devkit. An image without detections needs no file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from verifier.base.errors import InputError, Place, shown
from verifier.base.tables import NUMBER
from verifier.perception.detections.assembly import Rows, assemble
from verifier.perception.detections.columns import DetectionSet, codes, frames_at
from verifier.perception.detections.gathered import SCORES, Element, image_frames, walk_xml
from verifier.perception.detections.sources import Member, NoFilesError, Reading, Source, read_source
from verifier.perception.detections.texttables import Kind, Layout, read_tables

OBJECT = "annotation/object"
CORNERS = tuple(f"bndbox/{name}" for name in ("xmin", "ymin", "xmax", "ymax"))
FLAGS = ("difficult", "truncated", "occluded")
KNOWN = ("name", *CORNERS, *FLAGS, *SCORES)
RESULTS: dict[str, Kind] = {"image": "text", "score": "number"}
RESULTS |= dict.fromkeys(("xmin", "ymin", "xmax", "ymax"), "number")


def voc(annotations: str | Path, detections: str | Path, reading: Reading | None = None) -> DetectionSet:
    """A folder or zip archive of XML files, and one of XML files with scores or of result files.

    Attributes of annotations: `id`, the number of the object in its file, `truncated`, `occluded` (NaN if not said).

    Raises:
        InputError: a file cannot be read, with file and line; see also `sources.IGNORABLE`.
    """
    truth = read_source(annotations, "annotations", ".xml")
    frames = image_frames(truth.members)
    index = {name: at for at, name in enumerate(frames.names)}
    wanted = (reading or Reading()).frame_index(index)
    source = _detected(detections)
    if source.members[0].name.lower().endswith(".xml"):
        image_frames(source.members)  # refuses two files of one image
        rows = _of_xml(source, wanted, scored=True)
    else:
        rows = _of_results(source, wanted)
    return assemble("voc", frames, _of_xml(truth, index), rows, [truth.record, source.record], reading)


def _detected(path: str | Path) -> Source:
    try:
        return read_source(path, "detections", ".xml")
    except NoFilesError:
        return read_source(path, "detections")


@dataclass
class _Objects:
    """The objects of one file: the line of each, and the texts of its elements with their lines."""

    file: str
    lines: list[int] = field(default_factory=list)
    texts: list[dict[str, tuple[str, int]]] = field(default_factory=list)

    def begin(self, element: Element) -> None:
        """A new object, if it is one."""
        if element.path == OBJECT:
            self.lines.append(element.line)
            self.texts.append({})

    def end(self, element: Element) -> None:
        """Keep what is said of the object."""
        name = element.path.removeprefix(f"{OBJECT}/")
        if name in KNOWN:
            if name in self.texts[-1]:
                raise InputError(f"a second '{name}' in one object", Place(self.file, element.line))
            self.texts[-1][name] = (element.text, element.line)

    def number(self, at: int, name: str, missing: float | None = None) -> float:
        """The number under a name of object `at`; `missing` where it has none, and an error without that."""
        text, line = self.texts[at].get(name, ("", self.lines[at]))
        if name not in self.texts[at] and missing is not None:
            return missing
        if name not in self.texts[at]:
            raise InputError(f"an object without '{name}'", Place(self.file, line))
        if not NUMBER.fullmatch(text):
            raise InputError(f"{name}: expected a number, got {shown(text)}", Place(self.file, line))
        return float(text)

    def name(self, at: int) -> str:
        """The class of object `at`."""
        text, line = self.texts[at].get("name", ("", self.lines[at]))
        if not text:
            raise InputError("an object without 'name'", Place(self.file, line))
        return text


def _of_xml(source: Source, index: Mapping[str, int], scored: bool = False) -> Rows:
    read = []
    for member in source.members:
        read.append(_Objects(member.name))
        walk_xml(member, "annotation", "Pascal VOC", read[-1].begin, read[-1].end)
    pairs = [(file, at) for file, objects in enumerate(read) for at in range(len(objects.texts))]
    label, names = codes(read[file].name(at) for file, at in pairs)
    box = np.array([[read[file].number(at, name) for name in CORNERS] for file, at in pairs]).reshape(-1, 4)
    file_of = np.array([file for file, _ in pairs], dtype=np.int32)
    stems = frames_at(index, (member.stem for member in source.members))
    flags = {name: np.array([read[f].number(at, name, np.nan) for f, at in pairs]) for name in FLAGS}
    score = None
    if scored:
        named = [SCORES[1] if SCORES[1] in read[file].texts[at] else SCORES[0] for file, at in pairs]
        score = np.array([read[f].number(at, name) for (f, at), name in zip(pairs, named, strict=True)], dtype=float)
    attributes = {"id": np.array([at + 1 for _, at in pairs], dtype=np.int64), **flags}
    difficult = attributes.pop("difficult")
    return Rows(
        stems[file_of],
        label,
        names,
        np.array([read[file].lines[at] for file, at in pairs], dtype=np.int64),
        file_of,
        tuple(member.name for member in source.members),
        lambda row: f"image {shown(source.members[int(file_of[row])].stem)}",
        score,
        box,
        attributes={} if scored else attributes,
        region=None if scored else np.nan_to_num(difficult) != 0,
    )


def _of_results(source: Source, index: Mapping[str, int]) -> Rows:
    table = read_tables(source.members, [Layout(RESULTS)])
    label, names = codes(_class_of(member) for member in source.members)
    box = table.stack("xmin", "ymin", "xmax", "ymax")
    return table.rows(table.frames_named(index, "image"), (label[table.file], names), box_2d=box)


def _class_of(member: Member) -> str:
    named = re.fullmatch(r".+_(?:det|cls)_[^_]+_(.+)", member.stem)
    return named[1] if named else member.stem.rpartition("_")[2]
