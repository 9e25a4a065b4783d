"""Waymo Open Dataset, perception, version 2: Parquet by component (Sun et al. 2020;
`waymo_open_dataset.v2.perception.box`).

    lidar_box/SEGMENT.parquet     key.segment_context_name, key.frame_timestamp_micros, key.laser_object_id,
                                  [LiDARBoxComponent].box.center.x ... .box.size.z, .box.heading, .type
    camera_box/SEGMENT.parquet    the same keys with key.camera_name, [CameraBoxComponent].box.center.x ... .type
    vehicle_pose/SEGMENT.parquet  one row for each frame

Boxes of `lidar_box` stand in the frame of the vehicle. Where a folder has both components, those of `lidar_box` are
read; name the other to read rectangles, whose frames are the images of each camera. Detections have the columns of
the same component and `score`. Frames are those of `vehicle_pose` beside the annotations, and those with an
annotation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from verifier.base.errors import InputError, Place
from verifier.base.libraries import library
from verifier.base.tables import arrow_table
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.sources import Member, Reading, Source, read_source
from verifier.perception.detections.tablefiles import (
    BOX_2D,
    BOX_3D,
    NamedTable,
    check_columns,
    frame_keys,
    joined_tables,
    renamed,
    table_set,
)

TYPES = ("UNKNOWN", "VEHICLE", "PEDESTRIAN", "SIGN", "CYCLIST")
"""`BoxType` without TYPE_, by number."""
KEYS = {"sequence": "key.segment_context_name", "frame": "key.frame_timestamp_micros"}
LIDAR, CAMERA = "LiDARBoxComponent", "CameraBoxComponent"
CENTRE_SIZE = (
    "box.center.x",
    "box.center.y",
    "box.center.z",
    "box.size.x",
    "box.size.y",
    "box.size.z",
    "box.heading",
)
ATTRIBUTES = {"num_points": "num_lidar_points_in_box", "difficulty": "difficulty_level.detection"}
SPEED = ("speed.x", "speed.y")


def waymo(
    annotations: str | Path,
    detections: str | Path,
    reading: Reading | None = None,
    *,
    columns: Mapping[str, str] | None = None,
) -> DetectionSet:
    """Parquet files, or folders or zip archives of them, or the folder of all components.

    Attributes of annotations: `track`, and where given `num_points`, `difficulty`, `speed` (m/s). `columns` says
    which column of the detections is `score`.

    Raises:
        InputError: a file cannot be read, with file and row (from 1); see also `sources.IGNORABLE`.
    """
    score = check_columns(columns or {}).get("score", "score")
    folder = Path(annotations)
    truth = read_source(component_folder(folder), "annotations", ".parquet")
    source = read_source(component_folder(Path(detections)), "detections", ".parquet")
    labels = _table(truth, str(annotations), None)
    _, keys = frame_keys(labels)
    records = [truth.record, source.record]
    beside = poses_folder(folder)
    if beside is not None and labels.has("x"):
        poses = read_source(beside, "frames", ".parquet")
        records.append(poses.record)
        own = {member.stem for member in truth.members}
        for member in poses.members:
            if member.stem in own:
                table, line = arrow_table(member.raw, member.name, {})
                table = renamed(table, KEYS, list(KEYS), member.name)
                keys += frame_keys(NamedTable(table, line, member.name))[1]
    ordered = sorted(dict.fromkeys(keys), key=lambda key: (key[0], len(key[1]), key[1]))
    return table_set("waymo", labels, _table(source, str(detections), score), ordered, reading, records)


def component_folder(path: Path) -> Path:
    """Where the boxes are of a folder of all components."""
    return next((path / name for name in ("lidar_box", "camera_box") if (path / name).is_dir()), path)


def poses_folder(annotations: Path) -> Path | None:
    """What lists the frames, in the folder of the annotations or beside it."""
    beside = (path / "vehicle_pose" for path in (annotations, annotations.parent))
    return next((path for path in beside if path.is_dir()), None)


def _table(source: Source, path: str, score: str | None) -> NamedTable:
    return joined_tables([_part(member, score) for member in source.members], path)


def _part(member: Member, score: str | None) -> NamedTable:
    """A file with the columns of tables; `score` is the column of scores of detections."""
    arrow = library("pyarrow")
    table, line = arrow_table(member.raw, member.name, {})
    component = next((name for name in (LIDAR, CAMERA) if f"[{name}].type" in table.column_names), LIDAR)
    names = [f"[{component}].{name}" for name in CENTRE_SIZE if component == LIDAR or name[-1] in "xy"]
    needed = [*KEYS.values(), f"[{component}].type", *names, *([score] if score else [])]
    needed += ["key.camera_name"] if component == CAMERA else []
    for name in needed:
        if name not in table.column_names:
            hint = "lidar_box and camera_box have it; of the detections, --column score=NAME names the scores"
            raise InputError(f"no column '{name}'", Place(member.name), hint)
    named = NamedTable(table, line, member.name)
    box = np.column_stack([named.numbers(name)[0] for name in names])
    kind, _ = named.numbers(f"[{component}].type")
    if (bad := ~np.isin(kind, np.arange(len(TYPES)))).any():
        row = int(bad.argmax())
        raise InputError(
            f"type: expected 0 to {len(TYPES) - 1}, got {kind[row]:g}", Place(member.name, int(line[row]))
        )
    columns: dict[str, Any] = {name: table[own].cast(arrow.string()) for name, own in KEYS.items()}
    columns["class"] = arrow.array([TYPES[k] for k in kind.astype(int).tolist()], arrow.string())
    if component == LIDAR:
        columns |= {name: arrow.array(box[:, k]) for k, name in enumerate(BOX_3D)}
    else:
        corners = np.column_stack([box[:, :2] - box[:, 2:] / 2, box[:, :2] + box[:, 2:] / 2])
        columns |= {name: arrow.array(corners[:, k]) for k, name in enumerate(BOX_2D)}
        cameras = table["key.camera_name"].cast(arrow.string())
        pairs = zip(columns["frame"].to_pylist(), cameras.to_pylist(), strict=True)
        columns["frame"] = arrow.array([f"{camera}/{stamp}" for stamp, camera in pairs], arrow.string())
    if score:
        return replace(named, table=arrow.table(columns | {"score": table[score]}))
    key = "key.laser_object_id" if component == LIDAR else "key.camera_object_id"
    said = {"track": key} | {name: f"[{component}].{own}" for name, own in ATTRIBUTES.items()}
    columns |= {name: table[own] for name, own in said.items() if own in table.column_names}
    speed = [f"[{component}].{name}" for name in SPEED]
    if all(name in table.column_names for name in speed):
        columns["speed"] = arrow.array(np.hypot(*(named.numbers(name)[0] for name in speed)))
    return replace(named, table=arrow.table(columns))
