"""MOTChallenge: ground truth and detections of pedestrians in video (Milan et al. 2016, MOT16, sections 3 and 4).

    gt.txt   frame, track, left, top, width, height, flag, class, visibility       (MOT16 and later)
    gt.txt   frame, track, left, top, width, height, flag, x, y, z                 (2D MOT 2015: pedestrians)
    det.txt  frame, track, left, top, width, height, score [, x, y, z]

Frames count from 1. The flag 0 marks annotations that are not to be judged: they become regions. Distances come
from a file (`given.with_distances`, by `track`).
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place
from verifier.base.files import read_text
from verifier.perception.detections.assembly import Rows, assemble
from verifier.perception.detections.columns import Coded, DetectionSet, Frames, numbered_frames
from verifier.perception.detections.sources import Member, Reading, Source, by_name, read_source
from verifier.perception.detections.texttables import Kind, Layout, TextTable, read_tables

CLASSES = {
    1: "pedestrian",
    2: "person_on_vehicle",
    3: "car",
    4: "bicycle",
    5: "motorbike",
    6: "non_motorized_vehicle",
    7: "static_person",
    8: "distractor",
    9: "occluder",
    10: "occluder_on_ground",
    11: "occluder_full",
    12: "reflection",
    13: "crowd",
}
BOX: dict[str, Kind] = {"frame": "whole", "track": "whole"}
BOX |= dict.fromkeys(("left", "top", "width", "height"), "number")
PLACE: dict[str, Kind] = dict.fromkeys(("x", "y", "z"), "number")
FLAG: dict[str, Kind] = {"flag": "finite"}
SCORE: dict[str, Kind] = {"score": "number"}
CLASS: dict[str, Kind] = {"class": "whole", "visibility": "finite"}


def mot(
    annotations: str | Path,
    detections: str | Path,
    reading: Reading | None = None,
    *,
    detected_class: str = "pedestrian",
) -> DetectionSet:
    """MOTChallenge sequences: `SEQ/gt/gt.txt` and `SEQ/det/det.txt`, or `SEQ.txt`, in folders or zip archives.

    The number of frames comes from `SEQ/seqinfo.ini`; without one a sequence ends with its last annotation. Frames
    are named "SEQ/FFFFFF". All detections are of `detected_class`. Attributes of annotations: `track`, `visibility`
    (0 to 1).

    Raises:
        InputError: a file cannot be read, with file, line and column; see also `sources.IGNORABLE`.
    """
    truth = _select(read_source(annotations, "annotations"), "gt", reading)
    source = _select(read_source(detections, "detections"), "det", reading)
    labels = read_tables(truth.members, [Layout(BOX | FLAG | CLASS, ","), Layout(BOX | FLAG | PLACE, ",")])
    results = read_tables(source.members, [Layout(BOX | SCORE | PLACE, ","), Layout(BOX | SCORE, ",")])
    frames = _frames(truth, labels, Path(annotations))
    detected = {_sequence_of(member) for member in source.members}
    return assemble(
        "mot",
        frames,
        _rows(labels, frames, _classes(labels), labels.columns["flag"] == 0),
        _rows(results, frames, (np.zeros(len(results), dtype=np.int64), (detected_class,)), None),
        [truth.record, source.record],
        reading,
        tuple(CLASSES.values()),
        answered=np.array([name in detected for name in frames.sequences], dtype=bool)[frames.sequence],
        answers=detections,
        notes={"detected_class": detected_class},
    )


def _select(source: Source, kind: str, reading: Reading | None) -> Source:
    """The files `SEQ/kind/kind.txt`, or all files where there is none; each sequence once."""
    nested = [member for member in source.members if member.stem == kind]
    members = nested or list(source.members)
    if reading is not None and reading.sequences is not None:
        members = [member for member in members if _sequence_of(member) in reading.sequences]
    return Source(tuple(by_name(members, "sequence", _sequence_of).values()), source.record)


def sequences_of_files(paths: Sequence[Path], role: str) -> list[str | None]:
    """The sequence of each file of annotations or detections; None of those that `mot` leaves out."""
    kind = "gt" if role == "annotations" else "det"
    nested = any(path.stem == kind for path in paths)
    return [None if nested and path.stem != kind else _sequence_of_path(path) for path in paths]


def _sequence_of(member: Member) -> str:
    return _sequence_of_path(Path(member.name))


def _sequence_of_path(path: Path) -> str:
    """`SEQ` of `SEQ/gt/gt.txt`, `SEQ/det/det.txt` or `SEQ.txt`."""
    if path.stem in ("gt", "det"):
        parts = path.absolute().parts[:-1]
        return parts[-2] if parts[-1] == path.stem else parts[-1]
    return path.stem


def _classes(labels: TextTable) -> Coded:
    if "class" not in labels.columns:
        return np.zeros(len(labels), dtype=np.int64), (CLASSES[1],)
    return labels.classes("class", CLASSES)


def _frames(truth: Source, labels: TextTable, folder: Path) -> Frames:
    names = tuple(_sequence_of(member) for member in truth.members)
    counts = np.zeros(len(names), dtype=np.int64)
    np.maximum.at(counts, labels.file, labels.columns["frame"].astype(np.int64))
    for position, name in enumerate(names):
        counts[position] = _stated_length(folder, name) or counts[position]
    return numbered_frames(names, counts, 1, Place(str(folder)))


def _stated_length(folder: Path, name: str) -> int | None:
    """seqLength of the sequence's seqinfo.ini, if there is one."""
    for path in (folder / name / "seqinfo.ini", folder / "seqinfo.ini", folder.parent.parent / "seqinfo.ini"):
        if path.is_file():
            text, _ = read_text(path)
            length = re.search(r"^\s*seqLength\s*=\s*(\d{1,9})\s*$", text, re.MULTILINE | re.ASCII)
            if length is None:
                raise InputError("expected a line 'seqLength=NUMBER'", Place(str(path)))
            return int(length.group(1))
    return None


def _rows(table: TextTable, frames: Frames, classes: Coded, region: NDArray[np.bool_] | None) -> Rows:
    left, top, width, height = table.stack("left", "top", "width", "height").T
    kept = () if region is None else ("track", "visibility")
    return table.rows(
        table.frames(frames, 1, _sequence_of),
        classes,
        box_2d=np.column_stack([left, top, left + width, top + height]),
        attributes={name: table.columns[name] for name in kept if name in table.columns},
        region=region,
    )
