"""Argoverse 2, sensor data set (Wilson et al. 2021; av2-api, `av2.evaluation.detection.eval` and
`av2.structures.cuboid`).

    LOG/annotations.feather            timestamp_ns, track_uuid, category, length_m, width_m, height_m, qw, qx, qy,
    qz,
                                       tx_m, ty_m, tz_m, num_interior_pts
    LOG/city_SE3_egovehicle.feather    timestamp_ns, qw, qx, qy, qz, tx_m, ty_m, tz_m
    detections.feather                 the columns of a box, timestamp_ns, category, score, log_id

Frames are the sweeps with an annotation, and those in `LOG/sensors/lidar/*.feather` where they are there; sequences
are the logs. Boxes stand in the frame of the vehicle; those of detectors that report in the frame of the city are
brought into it by the poses of the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from verifier.base.arrays import Floats
from verifier.base.errors import InputError, Place, shown
from verifier.base.libraries import library
from verifier.base.tables import arrow_table
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.distances import Motion, motion, rotations
from verifier.perception.detections.sources import Member, Reading, Source, read_source
from verifier.perception.detections.tablefiles import (
    BOX_3D,
    NamedTable,
    frame_keys,
    joined_tables,
    renamed,
    table_set,
)
from verifier.perception.settings import EgoOrCity

TURN = ("qw", "qx", "qy", "qz")
PLACE = ("tx_m", "ty_m", "tz_m")
OWN = {"frame": "timestamp_ns", "class": "category", "x": PLACE[0], "y": PLACE[1], "z": PLACE[2]}
OWN |= {"length": "length_m", "width": "width_m", "height": "height_m"}


def argoverse(
    annotations: str | Path,
    detections: str | Path,
    reading: Reading | None = None,
    *,
    detection_frame: EgoOrCity = "ego",
) -> DetectionSet:
    """A log, a folder or a zip archive of logs; and a file of detections, or one for each log.

    Of detections without the column `log_id` the log is the name of the file. Attributes of
    annotations: `track`, `num_points`. `detection_frame` is the frame of the detections: "ego", or "city".

    Raises:
        InputError: a file cannot be read, with file and row (from 1); see also `sources.IGNORABLE`.
    """
    truth = read_source(annotations, "annotations", "annotations.feather")
    source = read_source(detections, "detections", ".feather")
    records = [truth.record, source.record]
    whole = Path(annotations).absolute()
    alone = (whole if whole.is_dir() else whole.parent).name
    city = None
    if detection_frame == "city":
        poses = read_source(annotations if whole.is_dir() else whole.parent, "poses", "city_SE3_egovehicle.feather")
        city = _Poses.of(poses, alone)
        records.append(poses.record)
    labels = _table(truth, str(annotations), alone)
    _, keys = frame_keys(labels)
    logs = {member.folder or alone for member in truth.members}
    sweeps = [(path.parents[2].name, path.stem) for path in whole.rglob("sensors/lidar/*.feather")]
    sweeps = [sweep for sweep in sweeps if sweep[0] in logs]  # of others nobody said what is in them
    return table_set(
        "argoverse",
        labels,
        _table(source, str(detections), None, city),
        sorted(dict.fromkeys([*keys, *sweeps]), key=lambda key: (key[0], len(key[1]), key[1])),
        reading,
        records,
        notes={"detection_frame": detection_frame},
    )


def logs_of_files(paths: Sequence[Path], role: str) -> list[str | None]:
    """The log of each file of annotations, or of detections that are a file for each log."""
    return [path.absolute().parent.name if path.stem == "annotations" else path.stem for path in paths]


@dataclass(frozen=True, eq=False)
class _Poses:
    """The frame of the vehicle from that of the city, by log and time stamp."""

    row: Mapping[tuple[str, str], int]
    ego_from_city: Motion

    @classmethod
    def of(cls, source: Source, alone: str) -> _Poses:
        stamp = {"frame": "timestamp_ns"}
        parts = [_named(member, ["frame", *TURN, *PLACE], stamp)[0] for member in source.members]
        keys = [
            (member.folder or alone, time)
            for member, part in zip(source.members, parts, strict=True)
            for time in part.table["frame"].cast("string").to_pylist()
        ]
        quaternion, place = (np.concatenate([_stack(part, names) for part in parts]) for names in (TURN, PLACE))
        return cls({key: row for row, key in enumerate(keys)}, motion(place, quaternion).inverse())

    def boxes(self, named: NamedTable, sequence: list[str], box: Floats, heading: Floats) -> Floats:
        """(n, 7) boxes in the frame of the vehicle, from those (n, 7) in that of the city and their headings (n,
        3)."""
        keys = list(zip(sequence, named.table["frame"].cast("string").to_pylist(), strict=True))
        for (log, stamp), line in zip(keys, named.line.tolist(), strict=True):
            if (log, stamp) not in self.row:
                message = f"no pose of the vehicle in log {shown(log)} at {stamp}"
                raise InputError(message, Place(named.file, line), "poses: city_SE3_egovehicle.feather")
        rows = np.array([self.row[key] for key in keys], dtype=np.int64)
        return self.ego_from_city.take(rows).boxes(box[:, :3], box[:, 3:6], heading)


def _named(member: Member, required: list[str], own: Mapping[str, str]) -> tuple[NamedTable, Any]:
    """A file with the columns of tables, and with its own."""
    table, line = arrow_table(member.raw, member.name, {})
    own = {**own, **({"sequence": "log_id"} if "log_id" in table.column_names else {})}
    return NamedTable(renamed(table, own, required, member.name), line, member.name), table


def _stack(named: NamedTable, names: tuple[str, ...]) -> Floats:
    return np.column_stack([named.numbers(name)[0] for name in names])


def _table(source: Source, path: str, alone: str | None, city: _Poses | None = None) -> NamedTable:
    """The rows of all files, with yaws; `alone` is the log of annotations that stand in no folder."""
    arrow = library("pyarrow")
    parts = []
    for member in source.members:
        named, raw = _named(member, [*OWN, *TURN, *(["score"] if alone is None else [])], OWN)
        columns = {name: named.table[name] for name in named.table.column_names if name not in TURN}
        if not named.has("sequence"):
            log = member.folder or alone if alone or member.stem == "annotations" else member.stem
            columns["sequence"] = arrow.array([log] * len(named), arrow.string())
        heading = rotations(_stack(named, TURN))[:, :, 0]
        box = np.column_stack([_stack(named, BOX_3D[:6]), np.arctan2(heading[:, 1], heading[:, 0])])
        if city is not None:
            box = city.boxes(named, columns["sequence"].to_pylist(), box, heading)
        columns |= {name: arrow.array(box[:, k]) for k, name in enumerate(BOX_3D)}
        if "track_uuid" in raw.column_names:
            columns["track"] = raw["track_uuid"]
        if "num_interior_pts" in columns:
            columns["num_points"] = columns.pop("num_interior_pts")
        parts.append(replace(named, table=arrow.table(columns)))
    return joined_tables(parts, path)
