"""ASAM OpenLABEL: objects, frames and coordinate systems by hand, and what is refused."""

import json
import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from verifier.base.errors import InputError
from verifier.perception.detections.openlabel import openlabel

CUBOID = [3, 0, 1, 0, 0, 0, 4, 2, 1.5]
BOX = {"name": "b", "val": [10, 20, 8, 6]}


def document(*objects, frames=None, systems=None, moves=None, known=None):
    """One frame with these `object_data`; `frames` in its place."""
    listed = {str(number): {"object_data": data} for number, data in enumerate(objects)}
    properties = {"frame_properties": {"transforms": moves}} if moves else {}
    root = {"objects": known or {str(number): {"type": "car"} for number in range(len(listed) or 3)}}
    root["frames"] = {"0": {"objects": listed, **properties}} if frames is None else frames
    return {"openlabel": root | ({"coordinate_systems": systems} if systems else {})}


def read(folder, truth, seen=None, **options):
    none = {"openlabel": {"objects": {}, "frames": {"0": {}}}}
    for name, content in (("t.json", truth), ("s.json", seen or none)):
        (folder / name).write_text(json.dumps(content))
    return openlabel(folder / "t.json", folder / "s.json", **options)


def test_rectangles_and_attributes(tmp_path):
    """What the object and its shapes say; the later one counts. An object without a shape is none."""
    told = {"num": [{"name": "far", "val": 9}, {"name": "n", "val": 1}], "boolean": [{"name": "wet", "val": True}]}
    shape = BOX | {
        "attributes": {"num": [{"name": "n", "val": 2}, {"val": 3}, 4], "text": [{"name": "t", "val": "x"}]}
    }
    truth = document({"bbox": [shape], **told}, {}, {"bbox": [BOX | {"val": None}]}, {"bbox": [], "cuboid": None})
    found = {"bbox": [BOX], "num": [{"name": "sure", "val": 0.5}]}
    data = read(tmp_path, truth, document(found), columns={"distance_m": "far", "score": "sure"})
    assert data.annotations.box_2d.tolist() == data.detections.box_2d.tolist() == [[6, 17, 14, 23]]
    assert (data.annotations.distance_m.tolist(), data.detections.score.tolist()) == ([9], [0.5])
    attributes = {name: column.tolist() for name, column in data.annotations.attributes.items()}
    assert attributes == {"n": [2], "wet": [1], "track": [0], "id": [1]}


def test_frames_come_in_the_order_of_their_numbers(tmp_path):
    """A file without frames is one; several files are sequences."""
    one = {"objects": {"0": {"object_data": {"bbox": [BOX]}}}}
    data = read(tmp_path, document(frames={"10": one, "9": {}, "2": one}))
    assert data.frame_name == ("000002", "000009", "000010")
    assert (data.annotations.frame.tolist(), data.annotations.line.tolist()) == ([0, 2], [1, 2])
    known = {"0": {"type": "car", "object_data": {"bbox": [BOX], "cuboid": [{"val": CUBOID}]}}}
    alone = {"openlabel": {"objects": known}}
    data = read(tmp_path, alone)
    assert (data.frame_name, data.annotations.box_2d.tolist()) == (("t",), [[6, 17, 14, 23]])
    assert data.annotations.box_3d.tolist() == [[3, 0, 1, 4, 2, 1.5, 0]]
    for folder in ("t", "s"):
        (tmp_path / folder).mkdir()
    for name in ("t/a", "t/b", "s/a", "s/b"):
        scored = {"bbox": [BOX], "num": [{"name": "score", "val": 0.5}]}
        (tmp_path / f"{name}.json").write_text(json.dumps(document(scored)))
    data = openlabel(tmp_path / "t", tmp_path / "s")
    assert data.frame_name == ("a/000000", "b/000000")
    assert (data.detections.frame.tolist(), data.annotations.file.tolist()) == ([0, 1], [0, 1])
    assert data.annotations.attributes["track"].tolist() == [0, 1]


def rigid(turn, place):
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = turn.as_matrix(), place
    return matrix


TURN, PLACE = Rotation.from_euler("xyz", [0.2, -0.3, 1.1]), [1.5, 0.2, 1.7]
POSES = {
    "matrix": {"matrix4x4": rigid(TURN, PLACE).ravel().tolist()},
    "rows": {"matrix4x4": rigid(TURN, PLACE).tolist()},
    "quaternion": {"quaternion": TURN.as_quat().tolist(), "translation": PLACE},
    "angles": {"euler_angles": TURN.as_euler("ZYX").tolist(), "translation": PLACE},
    "sequence": {"euler_angles": TURN.as_euler("XYZ").tolist(), "sequence": "xyz", "translation": PLACE},
    "other": {"euler_angles": TURN.as_euler("YZX").tolist(), "sequence": "YZX", "translation": PLACE},
}


@pytest.mark.parametrize("pose", POSES)
@pytest.mark.parametrize("way", ["parent", "moves", "back", "twice"])
def test_cuboids_are_taken_into_the_frame_of_the_vehicle(tmp_path, pose, way):
    """By a pose of a parent, by a move of the frame, by one the other way, and by one after the other."""
    systems, moves = {"car": {"type": "local_cs"}, "lidar": {"type": "sensor_cs"}, "base": {"type": "x"}, "n": 3}, {}
    expected = rigid(TURN, PLACE)
    if way == "parent":
        systems["lidar"] |= {"parent": "car", "pose_wrt_parent": POSES[pose]}
    elif way == "moves":
        moves = {"m": {"src": "lidar", "dst": "car", "transform_src_to_dst": POSES[pose]}, "n": 3}
    elif way == "back":
        moves = {"m": {"src": "car", "dst": "lidar", "transform_src_to_dst": POSES[pose]}}
        expected = np.linalg.inv(expected)
    else:
        systems["lidar"] |= {"parent": "base", "pose_wrt_parent": POSES[pose]}
        systems["car"] |= {
            "parent": "base",
            "pose_wrt_parent": {"translation": [5, 6, 7], "quaternion": [0, 0, 0, 1]},
        }
        expected = rigid(Rotation.identity(), [-5, -6, -7]) @ expected
    own = Rotation.from_euler("xyz", [0.1, 0.4, -0.7])
    shapes = [{"val": [*CUBOID[:3], *told, *CUBOID[6:]]} for told in (own.as_euler("xyz"), own.as_quat())]
    there = [{"cuboid": [shape | {"coordinate_system": "lidar"}]} for shape in shapes]
    here = [{"cuboid": [shape | own]} for shape, own in zip(shapes, ({}, {"coordinate_system": "car"}), strict=True)]
    data = read(tmp_path, document(*there, *here, systems=systems, moves=moves))
    for matrix, rows in ((expected, data.annotations.box_3d[:2]), (np.eye(4), data.annotations.box_3d[2:])):
        ahead = matrix[:3, :3] @ own.as_matrix()[:, 0]
        place = (matrix @ [3, 0, 1, 1])[:3]
        for row in rows:
            assert row == pytest.approx([*place, 4, 2, 1.5, math.atan2(ahead[1], ahead[0])])


NO_POSE = "expected matrix4x4 of a rigid motion, or a translation with a quaternion"
NO_WAY = "the coordinate system 'lidar' has no pose that leads to the vehicle's\n  hint: a coordinate system of type"
WRONG = {
    "scaled": {"matrix4x4": np.diag([1.01, 1.01, 1.01, 1]).tolist()},
    "mirrored": {"matrix4x4": np.diag([1, -1, 1, 1]).tolist()},
    "by columns": {"matrix4x4": rigid(TURN, PLACE).T.tolist()},
    "not finite": {"matrix4x4": [[1, 0, 0, math.inf], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]},
    "fifteen": {"matrix4x4": [1] * 15},
    "of two": {"translation": [1, 2], "quaternion": [0, 0, 0, 1]},
    "no turn": {"translation": [1, 2, 3]},
    "two angles": {"translation": [1, 2, 3], "euler_angles": [1, 2]},
    "no axis": {"translation": [1, 2, 3], "euler_angles": [1, 2, 3], "sequence": "ABC"},
    "a number": 3,
}


@pytest.mark.parametrize("pose", WRONG)
def test_poses_that_are_no_rigid_motion(tmp_path, pose):
    lidar = {"type": "sensor_cs", "parent": "car", "pose_wrt_parent": WRONG[pose]}
    shape = {"val": CUBOID, "coordinate_system": "lidar"}
    with pytest.raises(InputError, match=f"/openlabel/coordinate_systems/lidar: {NO_POSE}"):
        read(tmp_path, document({"cuboid": [shape]}, systems={"car": {"type": "local_cs"}, "lidar": lidar}))
    lidar["pose_wrt_parent"] = {"matrix4x4": np.diag([1.0004, 1, 1, 1]).tolist()}  # as rounding may leave it
    data = read(tmp_path, document({"cuboid": [shape]}, systems={"car": {"type": "local"}, "lidar": lidar}))
    assert data.annotations.box_3d[0] == pytest.approx([3, 0, 1, 4, 2, 1.5, 0], abs=0.01)


LOCAL, SENSOR = {"type": "local_cs"}, {"type": "sensor_cs"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"openlabel": {"objects": 3, "frames": {"0": {}}}},
            "/openlabel: expected an object with the object 'objects'",
        ),
        (document(frames={"9" * 12: {}}), "/openlabel/frames: expected the number of a frame, got '999999999999'"),
        (document(frames={"0": 3}), "/openlabel/frames: expected an object with the object '0'"),
        (document({}, known={"0": {"type": 3}}), "/openlabel/frames/0/objects/0: no object '0' with a type under"),
        (document({"bbox": 3}), "/object_data/bbox: expected a list of objects"),
        (document({"bbox": [BOX, 3]}), "/object_data/bbox: expected a list of objects"),
        (document({"bbox": [BOX, BOX]}), "/object_data/bbox: 2 of one object"),
        (document({"bbox": [{"val": [1, 2, 3]}]}), "/bbox/0/val: expected 4 numbers, got [1, 2, 3]"),
        (document({"bbox": [{"val": [1, 2, 3, True]}]}), "/bbox/0/val: expected 4 numbers, got [1, 2, 3, True]"),
        (document({"bbox": [{"val": [1, 2, 3, 1e300]}]}), "/bbox/0/val: expected 4 numbers, got [1, 2, 3, 1e+300]"),
        (document({"bbox": [{"val": "1234"}]}), "/bbox/0/val: expected 4 numbers, got '1234'"),
        (document({"cuboid": [{"val": CUBOID[1:]}]}), "/cuboid/0/val: expected 9 or 10 numbers"),
        (document({"cuboid": [{"val": [*CUBOID, 1, 1]}]}), "/cuboid/0/val: expected 9 or 10 numbers"),
        (
            document({"cuboid": [{"val": CUBOID, "coordinate_system": 3}]}),
            "/coordinate_system: expected a name, got 3",
        ),
        (
            document(
                {"cuboid": [{"val": CUBOID, "coordinate_system": "lidar"}]}, systems={"c": LOCAL, "lidar": SENSOR}
            ),
            NO_WAY,
        ),
    ],
)
def test_documents_that_are_refused(tmp_path, content, message):
    with pytest.raises(InputError) as caught:
        read(tmp_path, content)
    assert message in str(caught.value)
