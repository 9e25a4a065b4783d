"""Waymo and Argoverse: tables by hand, of one box each where nothing else is said."""

import math

import numpy as np
import pandas as pd
import pytest

from verifier.base.errors import InputError
from verifier.perception.detections.argoverse import argoverse, logs_of_files
from verifier.perception.detections.waymo import TYPES, component_folder, poses_folder, waymo

LIDAR, CAMERA = "[LiDARBoxComponent].", "[CameraBoxComponent]."


def lidar(rows=1, **more):
    """Boxes 1, 2, ... m ahead, of every kind in turn."""
    number = np.arange(rows)
    place = {"center.x": number + 1.0, "center.y": 2.0, "center.z": 3.0, "size.x": 4.0, "size.y": 1.5, "size.z": 1.25}
    columns = {"key.segment_context_name": "s", "key.frame_timestamp_micros": number}
    columns |= {f"{LIDAR}box.{name}": value for name, value in (place | {"heading": 0.5}).items()}
    return pd.DataFrame(columns | {f"{LIDAR}type": number % len(TYPES)} | more)


def test_boxes_of_waymo(tmp_path):
    more = {f"{LIDAR}num_lidar_points_in_box": 7, f"{LIDAR}difficulty_level.detection": 2, f"{LIDAR}speed.x": 3.0}
    truth = lidar(5, **more, **{f"{LIDAR}speed.y": -4.0, "key.laser_object_id": list("abcaa")})
    truth.to_parquet(tmp_path / "t.parquet")
    lidar(5, score=0.5).to_parquet(tmp_path / "s.parquet")
    data = waymo(tmp_path / "t.parquet", tmp_path / "s.parquet")
    assert data.annotations.box_3d.tolist() == [[at + 1, 2, 3, 4, 1.5, 1.25, 0.5] for at in range(5)]
    assert [data.classes[k] for k in data.annotations.label] == list(TYPES)
    assert (data.frame_name, data.annotations.line.tolist()) == (tuple(f"s/{k}" for k in range(5)), [1, 2, 3, 4, 5])
    attributes = {name: column.tolist() for name, column in data.annotations.attributes.items()}
    assert attributes == {"track": [0, 1, 2, 0, 0], "num_points": [7] * 5, "difficulty": [2] * 5, "speed": [5] * 5}
    lidar(1, **{f"{LIDAR}speed.x": 3.0}).to_parquet(tmp_path / "t.parquet")
    lidar(1, score=0.5, **{f"{LIDAR}type": [5]}).to_parquet(tmp_path / "s.parquet")
    with pytest.raises(InputError, match=r"s\.parquet:1: type: expected 0 to 4, got 5"):
        waymo(tmp_path / "t.parquet", tmp_path / "s.parquet")
    lidar(1, score=0.5).to_parquet(tmp_path / "s.parquet")
    assert "speed" not in waymo(tmp_path / "t.parquet", tmp_path / "s.parquet").annotations.attributes


def test_rectangles_of_waymo(tmp_path):
    columns = {"key.segment_context_name": "s", "key.frame_timestamp_micros": [7, 7], "key.camera_name": [1, 2]}
    columns |= {f"{CAMERA}box.center.x": [50.0, 60.0], f"{CAMERA}box.center.y": 40.0, f"{CAMERA}box.size.x": 20.0}
    columns |= {f"{CAMERA}box.size.y": 10.0, f"{CAMERA}type": [1, 2], "key.camera_object_id": ["a", "b"]}
    truth = pd.DataFrame(columns)
    truth.to_parquet(tmp_path / "t.parquet")
    truth.assign(sure=0.5).to_parquet(tmp_path / "s.parquet")
    data = waymo(tmp_path / "t.parquet", tmp_path / "s.parquet", columns={"score": "sure"})
    assert data.annotations.box_2d.tolist() == data.detections.box_2d.tolist() == [[40, 35, 60, 45], [50, 35, 70, 45]]
    assert (data.frame_name, data.annotations.attributes["track"].tolist()) == (("s/1/7", "s/2/7"), [0, 1])
    truth.drop(columns="key.camera_name").to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"t\.parquet: no column 'key\.camera_name'"):
        waymo(tmp_path / "t.parquet", tmp_path / "s.parquet", columns={"score": "sure"})


def test_folders_of_waymo(tmp_path):
    """Boxes in space come before rectangles; frames are those of poses of the same segments, by number."""
    for name in ("both/lidar_box", "both/camera_box", "one/camera_box", "none"):
        (tmp_path / name).mkdir(parents=True)
    found = [component_folder(tmp_path / name).relative_to(tmp_path).as_posix() for name in ("both", "one", "none")]
    assert found == ["both/lidar_box", "one/camera_box", "none"]
    assert poses_folder(tmp_path / "both") is None
    (tmp_path / "both/vehicle_pose").mkdir()
    assert (
        poses_folder(tmp_path / "both") == poses_folder(tmp_path / "both/lidar_box") == tmp_path / "both/vehicle_pose"
    )
    lidar(2).to_parquet(tmp_path / "both/lidar_box/s.parquet")
    keys = {"key.segment_context_name": "s", "key.frame_timestamp_micros": [10, 0, 9]}
    for name in ("s", "t"):
        pd.DataFrame(keys).assign(**{"key.segment_context_name": name}).to_parquet(
            tmp_path / f"both/vehicle_pose/{name}.parquet"
        )
    lidar(1, score=0.5).to_parquet(tmp_path / "s.parquet")
    data = waymo(tmp_path / "both", tmp_path / "s.parquet")
    assert data.frame_name == ("s/0", "s/1", "s/9", "s/10")
    assert [source["role"] for source in data.origin["sources"]] == ["annotations", "detections", "frames"]
    (tmp_path / "both/vehicle_pose").rename(tmp_path / "both/other")
    assert waymo(tmp_path / "both", tmp_path / "s.parquet").frame_name == ("s/0", "s/1")


HALF = math.sqrt(0.5)


def cuboid(rows=1, **more):
    """Boxes 1, 2, ... m ahead that look to the left."""
    number = np.arange(rows)
    columns = {"timestamp_ns": number, "category": "CAR", "length_m": 4.0, "width_m": 1.5, "height_m": 1.25}
    columns |= {"qw": HALF, "qx": 0.0, "qy": 0.0, "qz": HALF, "tx_m": number + 1.0, "ty_m": 2.0, "tz_m": 3.0}
    return pd.DataFrame(columns | more)


def write(folder, **tables):
    for name, table in tables.items():
        path = folder / f"{name.replace('__', '/')}.feather"
        path.parent.mkdir(parents=True, exist_ok=True)
        table.to_feather(path)
    return folder


def test_boxes_of_argoverse(tmp_path):
    write(
        tmp_path,
        a__annotations=cuboid(2, track_uuid=[None, "y"], num_interior_pts=5),
        s=cuboid(1, score=0.5, log_id="a"),
    )
    for truth in ("a", "a/annotations.feather"):
        data = argoverse(tmp_path / truth, tmp_path / "s.feather")
        assert data.annotations.box_3d == pytest.approx(
            np.array([[at + 1, 2, 3, 4, 1.5, 1.25, math.pi / 2] for at in range(2)])
        )
        attributes = {name: column.tolist() for name, column in data.annotations.attributes.items()}
        assert attributes == {"track": [-1, 0], "num_points": [5, 5]}
        assert (data.frame_name, data.detections.frame.tolist()) == (("a/0", "a/1"), [0])
    assert logs_of_files([tmp_path / "a/annotations.feather", tmp_path / "s.feather"], "x") == ["a", "s"]


def test_logs_of_argoverse(tmp_path):
    """Detections of a log are in the file of its name, or folder; sweeps come by number."""
    tables = {f"t__{log}__annotations": cuboid(1) for log in "ab"}
    seen = {"s__a": cuboid(1, score=0.5), "s__b": cuboid(1, score=0.25)}
    sweeps = {f"t__{log}__sensors__lidar__{stamp}": cuboid(1) for log in "ac" for stamp in (10, 9)}
    write(tmp_path, **tables, **seen, **sweeps)
    data = argoverse(tmp_path / "t", tmp_path / "s")
    assert data.frame_name == ("a/0", "a/9", "a/10", "b/0")
    assert (data.detections.frame.tolist(), data.detections.score.tolist()) == ([0, 3], [0.5, 0.25])
    write(tmp_path, d__a__annotations=cuboid(1, score=0.5), d__b__annotations=cuboid(1, score=0.25))
    again = argoverse(tmp_path / "t", tmp_path / "d")
    assert again.detections.frame.tolist() == [0, 3]
    data = argoverse(tmp_path / "t/a", tmp_path / "s/a.feather")
    assert data.frame_name == ("a/0", "a/9", "a/10")


def test_poses_of_argoverse(tmp_path):
    """The vehicle stands at (100, 200, 1) and looks to the left: what is 10 m to the left there is 10 m ahead."""
    pose = {"timestamp_ns": [0, 1], "qw": [HALF, 1], "qx": 0.0, "qy": 0.0, "qz": [HALF, 0]}
    pose |= {"tx_m": [100.0, 0], "ty_m": [200.0, 0], "tz_m": [1.0, 0]}
    city = cuboid(2, score=0.5, tx_m=[98.0, 1], ty_m=[210.0, 2], log_id="a")
    write(tmp_path, a__annotations=cuboid(2), a__city_SE3_egovehicle=pd.DataFrame(pose), s=city)
    for truth in ("a", "a/annotations.feather"):
        data = argoverse(tmp_path / truth, tmp_path / "s.feather", detection_frame="city")
        expected = [[10, 2, 2, 4, 1.5, 1.25, 0], [1, 2, 3, 4, 1.5, 1.25, math.pi / 2]]
        assert data.detections.box_3d == pytest.approx(np.array(expected), abs=1e-12)
        assert [source["role"] for source in data.origin["sources"]] == ["annotations", "detections", "poses"]
    write(tmp_path, s=city.assign(timestamp_ns=[0, 5]))
    with pytest.raises(InputError, match=r"s\.feather:2: no pose of the vehicle in log 'a' at 5\n"):
        argoverse(tmp_path / "a", tmp_path / "s.feather", detection_frame="city")
