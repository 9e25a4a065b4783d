"""nuScenes scenes in one JSON file each: boxes in the LiDAR frame with the poses that lead to the ego frame.

A list of frames: `sample_token`, `timestamp_us`, `lidar2ego_translation`, `lidar2ego_rotation_wxyz`, `ego2global_*`,
`cam_front` (`cam2ego_*`), and `boxes`: `name`, `box_lidar`,
`velocity`, `num_lidar_pts`, `num_radar_pts`. `box_lidar` is x, y, z of the centre, width, length, height and a
heading in the convention of MMDetection3D before version 1.0, which is -yaw - pi/2.

Detections are an official results file (`nuscenes`), or a folder of comma-separated files, one per class and named
after it (`Car.txt`), in the format of AB3DMOT (`kitti`) and in the CAM_FRONT camera frame.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place
from verifier.perception.detections.assembly import Rows, assemble
from verifier.perception.detections.columns import UNKNOWN_FRAME, DetectionSet, Frames, codes
from verifier.perception.detections.kitti import AB3DMOT, image_boxes, space_boxes
from verifier.perception.detections.nuscenes import EGO, poses, result_rows
from verifier.perception.detections.sources import (
    Elements,
    Reading,
    digest_record,
    elements,
    load_json,
    nested,
    read_source,
)
from verifier.perception.detections.texttables import Layout, read_tables


def nuscenes_compact(annotations: str | Path, detections: str | Path, reading: Reading | None = None) -> DetectionSet:
    """One scene; its sequence is named after the folder of the file. Frames are named by their sample tokens.

    Class names are those of the file; those of result files are their names in lower case. Attributes of
    annotations: `num_lidar_pts`, `num_radar_pts`, `num_points`, `speed` (m/s, NaN where unknown).

    Raises:
        InputError: a file cannot be read, with its JSON pointer or line; see also `sources.IGNORABLE`.
    """
    document, raw = load_json(annotations)
    file = str(annotations)
    listed = elements(document, file, "frames")
    tokens, index = listed.texts("sample_token"), listed.index("sample_token")
    if not tokens:
        raise InputError("no frame in it", Place(file))
    truth = _annotations(listed)
    rows, answered, record = _detections(listed, index, detections)
    sequence = Path(annotations).absolute().parent.name or "scene"
    return assemble(
        "nuscenes_compact",
        Frames.of(tokens, [sequence] * len(tokens)),
        truth,
        rows,
        [digest_record("annotations", annotations, raw), record],
        reading,
        tuple(sorted({*truth.names, *rows.names})),
        answered=answered,
        answers=detections,
        notes={"ego": EGO},
    )


def cameras(frames: Elements) -> Elements:
    """The front camera of each frame of a file."""
    return Elements(frames.values("cam_front"), frames.file, "cameras", lambda row: f"/{row}/cam_front")


def _annotations(frames: Elements) -> Rows:
    items, frame = nested(frames.values("boxes"), frames.file, "boxes", lambda row: f"{frames.pointer(row)}/boxes")
    x, y, z, width, length, height, turn = items.vectors("box_lidar", 7).T
    yaw = -turn - np.pi / 2
    heading = np.column_stack([np.cos(yaw), np.sin(yaw), np.zeros_like(yaw)])
    ego_from_lidar = poses(frames, "lidar2ego_", "_wxyz").take(frame)
    box = ego_from_lidar.boxes(np.column_stack([x, y, z]), np.column_stack([length, width, height]), heading)
    lidar, radar = items.numbers("num_lidar_pts"), items.numbers("num_radar_pts")
    speed = np.linalg.norm(items.vectors("velocity", 2, unknown=True), axis=1)
    attributes = {"num_lidar_pts": lidar, "num_radar_pts": radar, "num_points": lidar + radar, "speed": speed}
    return Rows.of(
        items,
        (frame, lambda row: f"frame {int(frame[row])}"),
        codes(items.texts("name")),
        box_3d=box,
        attributes=attributes,
    )


def _detections(
    frames: Elements, index: Mapping[str, int], path: str | Path
) -> tuple[Rows, NDArray[np.bool_] | None, dict[str, object]]:
    """The detections, which frames have an entry (None: the format does not say), and what is recorded of them."""
    if Path(path).is_file() and Path(path).suffix == ".json":
        document, raw = load_json(path)
        moves = poses(frames, "ego2global_", "_wxyz")
        rows, answered = result_rows(document, raw, str(path), index, moves.inverse())
        return rows, answered, digest_record("detections", path, raw)
    source = read_source(path, "detections")
    table = read_tables(source.members, [Layout(AB3DMOT, ",")])
    number = table.columns["frame"]
    known = (number >= 0) & (number < len(index))
    frame = np.where(known, number, UNKNOWN_FRAME).astype(np.int64)
    box_2d, no_box_2d = image_boxes(table)
    # As if the camera's image were taken when the LiDAR's sweep ends. The files of AB3DMOT were made that way: taken
    # so, their boxes lie 0.1 m from the annotated cars on average, and 0.2 m with the ego's motion between the times.
    box_3d, no_box_3d = space_boxes(table, poses(cameras(frames), "cam2ego_", "_wxyz").take(frame))
    rows = table.rows(
        (frame, lambda row: f"frame {int(number[row])}"),
        (table.file.astype(np.int64), tuple(member.stem.lower() for member in source.members)),
        box_2d=box_2d,
        box_3d=box_3d,
        no_box_2d=no_box_2d,
        no_box_3d=no_box_3d,
    )
    return rows, None, source.record
