"""Annotations and detections in CSV or Parquet files with named columns (`tablefiles` lists the names)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from verifier.base.errors import InputError, Place, UsageError, shown, unknown_name
from verifier.perception.detections.assembly import assemble
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.reading import Reading
from verifier.perception.detections.rows import Material
from verifier.perception.detections.sources import digest_record
from verifier.perception.detections.tablefiles import (
    ASSUMED_ZERO,
    CENTRE,
    NAMES,
    NamedTable,
    frame_keys,
    frames_of,
    looked_up,
    read_named,
    rows_of,
)

REQUIRED = ("frame", "class")
REQUIRED_SCORED = ("frame", "class", "score")


def tables(
    annotations: str | Path,
    detections: str | Path,
    reading: Reading | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    detection_columns: Mapping[str, str] | None = None,
    frames: str | Path | None = None,
) -> DetectionSet:
    """One file of annotations and one of detections, CSV or Parquet.

    `columns` gives the files' own names for `frame`, `class`, ... where they differ; `detection_columns` those of the
    detections, if different. `frames` is a file with the columns `frame` (and `sequence`) that lists every frame,
    those without objects too. Without it the frames are those with an annotation, and a detection elsewhere is in
    an unknown frame.

    Raises:
        InputError: a file cannot be read, with file and line; see also `reading.IGNORABLE`.
        UsageError: `columns` names something that does not exist.
    """
    columns = check_columns(columns or {})
    detection_columns = columns if detection_columns is None else check_columns(detection_columns)
    truth, truth_raw = read_named(annotations, columns, REQUIRED)
    found, found_raw = read_named(detections, detection_columns, REQUIRED_SCORED)
    records = [
        digest_record("annotations", annotations, truth_raw),
        digest_record("detections", detections, found_raw),
    ]
    truth_codes, keys = frame_keys(truth)
    if frames is not None:
        wanted = {name: own for name, own in columns.items() if name in ("frame", "sequence")}
        listed, listed_raw = read_named(frames, wanted, ("frame",))
        records.append(digest_record("frames", frames, listed_raw))
        all_keys = _each_once(listed)
    else:
        all_keys = keys
    index = {key: number for number, key in enumerate(all_keys)}
    found_codes, found_keys = frame_keys(found)
    material = Material(
        "table",
        frames_of(all_keys),
        rows_of(truth, looked_up(truth_codes, keys, index), 0, scored=False),
        rows_of(found, looked_up(found_codes, found_keys, index), 1, scored=True),
        (str(annotations), str(detections)),
        records,
        notes={
            "columns": dict(columns),
            "frames_given": frames is not None,
            "assumed_zero": {"annotations": assumed_zero(truth), "detections": assumed_zero(found)},
        },
    )
    return assemble(material, reading or Reading())


def assumed_zero(named: NamedTable) -> list[str]:
    """The numbers of a box in the ego frame that the file does not give and that are taken as 0."""
    if not all(named.has(name) for name in CENTRE):
        return []
    return [name for name in ASSUMED_ZERO if not named.has(name)]


def check_columns(columns: Mapping[str, str]) -> Mapping[str, str]:
    """`columns`, if it names what exists and no column of the file twice."""
    for name in columns:
        if name not in NAMES:
            message, hint = unknown_name("column", name, NAMES)
            raise UsageError(f"{message}\n  hint: {hint}")
    if len(set(columns.values())) != len(columns):
        raise UsageError("one column of the file is named for two purposes")
    return columns


def _each_once(listed: NamedTable) -> list[tuple[str, str]]:
    codes, keys = frame_keys(listed)
    if len(keys) != len(listed):
        counts = np.bincount(codes)
        row = int(np.flatnonzero(codes == int((counts > 1).argmax()))[1])
        sequence, name = keys[int(codes[row])]
        where = f" of sequence {shown(sequence)}" if sequence else ""
        raise InputError(f"frame {shown(name)}{where} occurs twice", Place(listed.file, int(listed.line[row])))
    return keys
