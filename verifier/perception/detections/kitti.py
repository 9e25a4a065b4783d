"""KITTI object and KITTI tracking: labels, official result files, and two formats of published detections.

The ego frame is the rectified camera 0: distances are from the camera, as in KITTI's own evaluation. Columns are
those of the object and tracking development kits (Geiger, Lenz and Urtasun, CVPR 2012):

    object    type truncated occluded alpha x1 y1 x2 y2 h w l x y z rotation_y [score]
    tracking  frame track type truncated occluded alpha x1 y1 x2 y2 h w l x y z rotation_y [score]

`DontCare` labels mark image regions where objects were not annotated: they become regions of every class
(`Reading.dont_care`). Published detections, comma separated, one file per sequence:

    frame, type id, x1, y1, x2, y2, score, h, w, l, x, y, z, rotation_y, alpha     (AB3DMOT, Weng et al. 2020)
    frame, x1, y1, x2, y2, score                                                   (two-dimensional, DeepFusionMOT)

and one file for all images (Frustum PointNets, Qi et al. 2018): image, type id, score, x1, y1, x2, y2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, check_known, shown
from verifier.base.files import read_text
from verifier.perception.detections.assembly import Rows, assemble
from verifier.perception.detections.columns import (
    NO_SEQUENCE,
    Coded,
    DetectionSet,
    Frames,
    LookedUp,
    codes,
    frames_at,
    numbered_frames,
)
from verifier.perception.detections.distances import Motion, camera_boxes, ego_from_camera
from verifier.perception.detections.sources import Reading, Source, by_name, read_source
from verifier.perception.detections.texttables import Kind, Layout, TextTable, read_tables

CLASSES = ("Car", "Van", "Truck", "Pedestrian", "Person_sitting", "Person", "Cyclist", "Tram", "Misc")
TYPE_IDS = {1: "Pedestrian", 2: "Car", 3: "Cyclist"}
DONT_CARE_TYPE = "DontCare"
EGO = "rectified camera 0: x forward, y left, z up"

BOX: dict[str, Kind] = dict.fromkeys(("x1", "y1", "x2", "y2"), "number")
SIZE: dict[str, Kind] = dict.fromkeys(("h", "w", "l", "x", "y", "z", "rotation_y"), "number")
STATE: dict[str, Kind] = dict.fromkeys(("truncated", "occluded", "alpha"), "finite")
OBJECT: dict[str, Kind] = {"type": "text", **STATE, **BOX, **SIZE}
TRACKING: dict[str, Kind] = {"frame": "whole", "track": "whole", **OBJECT}
SCORE: dict[str, Kind] = {"score": "number"}
AB3DMOT: dict[str, Kind] = {"frame": "whole", "type_id": "whole", **BOX, **SCORE, **SIZE, "alpha": "number"}
FLAT: dict[str, Kind] = {"frame": "whole", **BOX, **SCORE}
IMAGES: dict[str, Kind] = {"image": "text", "type_id": "whole", **SCORE, **BOX}


def kitti_object(annotations: str | Path, detections: str | Path, reading: Reading | None = None) -> DetectionSet:
    """KITTI object: a folder or zip archive of labels and one of results, one file per image.

    Frames are the images that have a label file; they belong to no sequence. Every image needs a
    result file (an empty one for no detection), or `missing_frames` is ignored. `detections` may also be one file
    of the form of Frustum PointNets, which lists only images with detections.

    Raises:
        InputError: a file cannot be read, with file, line and column; see also `sources.IGNORABLE`.
    """
    reading = reading or Reading()
    truth = read_source(annotations, "annotations")
    source = read_source(detections, "detections")
    frames = Frames.of(_stems(truth), [NO_SEQUENCE] * len(truth.members))
    own = {name: number for number, name in enumerate(frames.names)}
    labels = read_tables(truth.members, [Layout(OBJECT)])
    results = read_tables(source.members, [Layout(OBJECT | SCORE), Layout(IMAGES)])
    index, answered = reading.frame_index(own), None
    if "image" in results.columns:
        found = results.frames_named(index, "image", lambda name: Path(name).stem)
    else:
        answered = np.isin(np.arange(len(frames.names)), frames_at(index, _stems(source)))
        found = results.frames_of_files(index, "frame")
    return assemble(
        "kitti_object",
        frames,
        _rows(labels, labels.frames_of_files(own, "frame")),
        _rows(results, found),
        [truth.record, source.record],
        reading,
        CLASSES,
        answered=answered,
        answers=detections,
        notes={"ego": EGO},
    )


def kitti_tracking(
    annotations: str | Path,
    detections: str | Path,
    reading: Reading | None = None,
    *,
    frames: str | Path | Mapping[str, int] | None = None,
) -> DetectionSet:
    """KITTI tracking: a folder or zip archive of labels, one file per sequence, and one of detections.

    Detections stand in `SSSS.txt` or in a folder per class, `Car/SSSS.txt`. `frames` says how many frames each
    sequence has (they count from 0): a mapping, a CSV file with the columns seq and n_frames, or KITTI's
    `evaluate_tracking.seqmap`. Without it a sequence ends with its last label, so that later frames without
    objects are missed. Frames are named "SSSS/FFFFFF". A sequence needs at least one file of detections.

    Raises:
        InputError: a file cannot be read, with file, line and column; see also `sources.IGNORABLE`.
        UsageError: `reading.sequences` names one that is not there.
    """
    reading = reading or Reading()
    truth = read_source(annotations, "annotations")
    for name in reading.sequences or ():
        check_known("sequence", name, _stems(truth))
    truth = _of_sequences(truth, reading.sequences)
    detected = _of_sequences(read_source(detections, "detections"), reading.sequences)
    labels = read_tables(truth.members, [Layout(TRACKING)])
    results = read_tables(detected.members, [Layout(TRACKING | SCORE), Layout(AB3DMOT, ","), Layout(FLAT, ",")])
    all_frames = _sequence_frames(truth, labels, frames)
    stems = {member.stem for member in detected.members}
    answered = np.array([name in stems for name in all_frames.sequences], dtype=bool)[all_frames.sequence]
    return assemble(
        "kitti_tracking",
        all_frames,
        _rows(labels, labels.frames(all_frames, 0, lambda member: member.stem)),
        _rows(results, results.frames(all_frames, 0, lambda member: member.stem)),
        [truth.record, detected.record],
        reading,
        CLASSES,
        answered=answered,
        answers=detections,
        notes={"ego": EGO, "frames_given": frames is not None},
        unlisted=frames is None,
    )


def image_boxes(table: TextTable) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Boxes (n, 4) in the image, and which rows have none (n,): KITTI then writes -1 for each number."""
    box = table.stack("x1", "y1", "x2", "y2")
    absent: NDArray[np.bool_] = np.asarray((box == -1).all(axis=1))
    box[absent] = np.nan
    return box, absent


def space_boxes(table: TextTable, motion: Motion) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Boxes (n, 7) in the ego frame, given the motion ego_from_camera of each row, and which rows have none (n,).

    KITTI writes -1 or -1000 for each of height, width and length where there is no box.
    """
    size = table.stack("h", "w", "l")
    turn = table.columns["rotation_y"]
    box = motion.boxes(*camera_boxes(table.stack("x", "y", "z"), size, turn))
    # The heading hides an angle in degrees; with its whole turns it reaches the check for plausible ones.
    box[:, 6] += 2 * np.pi * np.trunc(turn / (2 * np.pi))
    absent: NDArray[np.bool_] = np.asarray(np.isin(size, (-1.0, -1000.0)).all(axis=1))
    box[absent] = np.nan
    return box, absent


def _rows(table: TextTable, frames: LookedUp) -> Rows:
    box_2d, no_box_2d = image_boxes(table)
    box_3d, no_box_3d = space_boxes(table, ego_from_camera(len(table))) if "h" in table.columns else (None, None)
    label, names = _classes(table)
    scored = "score" in table.columns
    region = label == names.index(DONT_CARE_TYPE) if DONT_CARE_TYPE in names else np.zeros(len(table), dtype=bool)
    kept = () if scored else ("truncated", "occluded", "alpha", "track")
    return table.rows(
        frames,
        (label, names),
        box_2d=box_2d,
        box_3d=box_3d,
        attributes={name: table.columns[name] for name in kept if name in table.columns},
        no_box_2d=no_box_2d,
        no_box_3d=no_box_3d,
        region=None if scored else region,
        any_class=None if scored else region,
    )


def _classes(table: TextTable) -> Coded:
    """The class of each row: from its column, else from its type id, else from the folder of its file."""
    if "type" in table.columns:
        return table.columns["type"], table.names["type"]
    if "type_id" in table.columns:
        _check_folders(table)
        return table.classes("type_id", TYPE_IDS, "type")
    for member in table.members:
        if not member.folder:
            raise InputError(
                "no column says the class and the file stands in no folder named after one", Place(member.name)
            )
    folder, names = codes(member.folder for member in table.members)
    return folder[table.file], names


def _check_folders(table: TextTable) -> None:
    """A file in a folder named after a class holds objects of that class only."""
    ids = {name: number for number, name in TYPE_IDS.items()}
    wanted, own = table.of_files(ids, lambda member: member.folder), table.columns["type_id"]
    wrong = (wanted > 0) & (wanted != own)
    if wrong.any():
        row = int(wrong.argmax())
        folder = table.member(row).folder
        raise InputError(
            f"type id {int(own[row])} in the folder {shown(folder)}, whose type id is {ids[folder]}", table.place(row)
        )


def _stems(source: Source) -> tuple[str, ...]:
    return tuple(by_name(source.members, "frame"))


def _of_sequences(source: Source, wanted: tuple[str, ...] | None) -> Source:
    if wanted is None:
        return source
    return Source(tuple(member for member in source.members if member.stem in wanted), source.record)


def _sequence_frames(truth: Source, labels: TextTable, given: str | Path | Mapping[str, int] | None) -> Frames:
    """All frames, as many of each sequence as are given, else up to the last with a label."""
    names = _stems(truth)
    if given is None:
        counts = np.zeros(len(names), dtype=np.int64)
        np.maximum.at(counts, labels.file, labels.columns["frame"].astype(np.int64) + 1)
    else:
        lengths = dict(given) if isinstance(given, Mapping) else _lengths(given)
        for member in truth.members:
            if member.stem not in lengths:
                raise InputError(
                    f"the number of frames of sequence {shown(member.stem)} is not given", Place(member.name)
                )
        counts = np.array([lengths[name] for name in names], dtype=np.int64)
    return numbered_frames(names, counts, 0, Place(truth.members[0].name))


def _lengths(path: str | Path) -> dict[str, int]:
    """Frames per sequence, from a CSV file with seq and n_frames or from a seqmap ("0000 empty 000000 000154")."""
    text, _ = read_text(path)
    lengths: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.replace(",", " ").split()
        if not fields or (number == 1 and fields[0] == "seq"):
            continue
        count = fields[3] if len(fields) == 4 and "," not in line else fields[1] if len(fields) > 1 else ""
        place = Place(str(path), number, text=line)
        if not re.fullmatch(r"\d{1,9}", count, re.ASCII):
            raise InputError("expected 'sequence,frames' or 'sequence empty 000000 FRAMES'", place)
        if fields[0] in lengths:
            raise InputError(f"sequence {shown(fields[0])} occurs twice", place)
        lengths[fields[0]] = int(count)
    return lengths
