"""Distances of rectangles from the ground: by hand, by projecting forward, from every calibration, and into a run."""

import csv
import itertools
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from verifier.base.errors import ExitCode, InputError, UsageError
from verifier.cli import main
from verifier.perception.confusion.document import read_counts
from verifier.perception.detections import Reading, class_map, distance, keep_scores, read_detections, with_ground
from verifier.perception.detections.arrays import from_arrays
from verifier.perception.detections.cameras import FARTHEST_M, foot_centres, ground_distances, in_space, read_cameras
from verifier.perception.detections.distances import reported_distance
from verifier.perception.matching import MatchingPolicy, match

HEAD = "fx,fy,cx,cy,height_m"
LEVEL = f"{HEAD}\n1000,1000,500,300,1.5\n"
"""1.5 m above the ground: a foot 100 pixels below the horizon at 300 is 15 m ahead, 100 pixels right are 1.5 m."""


def rectangles(*boxes, frames=("a",), **more):
    """A set of rectangles, which are annotations as well as detections."""
    frame = np.arange(len(boxes)) % len(frames)
    columns = {"frame": frame, "class": np.zeros(len(boxes)), "box_2d": np.array(boxes, dtype=float)}
    return from_arrays(["ped"], frames, columns, {**columns, "score": np.ones(len(boxes))}, **more)


def table(folder, text, name="cameras.csv"):
    (folder / name).write_text(text)
    return folder / name


def test_by_hand(tmp_path):
    data = rectangles((580, 300, 620, 400), (480, 280, 520, 310))
    cameras = read_cameras(table(tmp_path, LEVEL), data).take(data.annotations.frame)
    centres = foot_centres(data.annotations.box_2d, cameras)
    # As tall as 100 pixels at 15 m: 1.5 m, so its centre is 0.75 m up; 30 pixels at 150 m are 4.5 m.
    assert np.allclose(centres, [[15, -1.5, 0.75], [150, 0, 2.25]], atol=1e-9)
    away = {
        "forward": [15, 150],
        "ground_plane": [math.hypot(15, 1.5), 150],
        "given": [math.hypot(15, 1.5), 150],
        "euclidean_3d": [math.hypot(15, 1.5, 0.75), math.hypot(150, 2.25)],
    }
    for measure, expected in away.items():
        found = with_ground(data, tmp_path / "cameras.csv", measure)
        assert np.allclose(reported_distance(found.detections, measure), expected)
        assert np.allclose(distance(found.annotations, "given"), expected)


def test_a_foot_at_or_above_the_horizon_is_as_far_as_can_be(tmp_path):
    data = rectangles((480, 200, 520, 300), (480, 200, 520, 250), (480, 200, 520, 301))
    found = with_ground(data, table(tmp_path, LEVEL), "forward")
    assert found.detections.distance_m.tolist() == [FARTHEST_M] * 3  # 1 pixel below: 1500 m
    assert found.origin["projected"]["detections"] == {"placed": 3, "farthest": 3}


def test_a_rectangle_has_a_point_in_space_where_it_stands_or_as_deep_as_it_is(tmp_path):
    data = rectangles((580, 300, 620, 400), (480, 200, 520, 250), (0, 0, 9, 999), (480, 280, 520, 310))
    known = np.full((4, 7), np.nan)
    known[2] = 7, 2, 1, 4, 2, 1.5, 0.1
    annotations = replace(data.annotations, box_3d=known, distance_m=np.array([15.0, 20, 30, 10]))
    data = data.change(annotations=annotations, detections=replace(data.detections, box_2d=None))
    cameras = read_cameras(table(tmp_path, LEVEL), data)
    cameras = replace(cameras, direction=2 * cameras.direction)  # directions of any length
    sizeless = [0] * 4
    nowhere = [math.nan] * 7
    standing = [[15, -1.5, 0.75, *sizeless], nowhere, known[2], [150, 0, 2.25, *sizeless]]
    found = in_space(data, cameras)
    assert np.allclose(found.annotations.box_3d, standing, equal_nan=True)
    assert np.isnan(found.detections.box_3d).all()
    # The centre of the second is 75 pixels above the axis: 1.5 m in 20 m.
    deep = [[15, -1.5, 0.75, *sizeless], [20, 0, 3, *sizeless], known[2], [10, 0, 1.55, *sizeless]]
    assert np.allclose(in_space(data, cameras, deep=True).annotations.box_3d, deep, equal_nan=True)
    unknown = data.change(annotations=replace(annotations, box_3d=None, distance_m=None))
    assert np.isnan(in_space(unknown, cameras, deep=True).annotations.box_3d).all()
    # 15 m further back the first lies beside the ego, not ahead of it; turned down by 30 degrees, lower and nearer.
    pose = cameras.pose
    behind = replace(cameras, pose=replace(pose, translation=pose.translation - [15, 0, 0]))
    assert np.isnan(in_space(unknown.change(annotations=annotations), behind, deep=True).annotations.box_3d[0]).all()
    near = replace(cameras, pose=replace(pose, translation=pose.translation - [14.5, 0, 0]))
    assert in_space(unknown.change(annotations=annotations), near, deep=True).annotations.box_3d[0, 0] == 0.5
    down = read_cameras(table(tmp_path, f"{HEAD},pitch_deg\n1000,1000,500,240,1.5,30\n"), data)
    x, _, z, *_ = in_space(data, down, deep=True).annotations.box_3d[3]
    ahead, below = 10.0, 10 * (295 - 240) / 1000
    turn = math.radians(30)
    assert [x, z] == pytest.approx(
        [ahead * math.cos(turn) - below * math.sin(turn), 1.5 - ahead * math.sin(turn) - below * math.cos(turn)]
    )


@given(
    st.floats(2, 80), st.floats(-10, 10), st.floats(0.5, 3), st.floats(-8, 8), st.floats(-5, 5), st.floats(0.8, 3),
    st.floats(-2, 2),
)  # fmt: skip
def test_what_is_projected_forward_comes_back(tmp_path_factory, x, y, tall, pitch, roll, height, ahead):
    """A point on the ground seen by a camera that is turned: pixels by scipy's rotations, back by ours."""
    turned = Rotation.from_euler("YX", [pitch, roll], degrees=True)  # intrinsic: down, then about the own axis ahead

    def pixel(up):
        ahead_of, left, above = turned.inv().apply([x - ahead, y, up - height])
        return 900 - 1000 * left / ahead_of, 400 - 1100 * above / ahead_of, ahead_of

    (u, v, depth), (_, top, _) = pixel(0), pixel(tall)
    row = f"1000,1100,900,400,{height},{pitch},{roll},{ahead}"
    cameras = table(tmp_path_factory.getbasetemp(), f"{HEAD},pitch_deg,roll_deg,x_m\n{row}\n")
    if depth <= 0.1 or top > v:
        return
    data = rectangles((u - 5, top, u + 5, v))
    centre = foot_centres(data.annotations.box_2d, read_cameras(cameras, data))
    assert np.allclose(centre[0, :2], [x, y], atol=1e-6)
    if pitch == roll == 0:
        assert math.isclose(centre[0, 2], tall / 2, abs_tol=1e-6)


def test_cameras_of_frames_and_sequences(tmp_path):
    box = (490, 300, 510, 400)
    data = rectangles(box, box, frames=("d/a.png", "e/b.png"), sequences=("d", "e"))
    for column, names in (("sequence", "de"), ("frame", ("a", "b.png")), ("frame", ("d/a.png", "b"))):
        text = f"{HEAD},{column}\n" + "".join(f"1000,1000,500,300,{k + 1},{name}\n" for k, name in enumerate(names))
        found = with_ground(data, table(tmp_path, text), "forward")
        assert np.allclose(found.detections.distance_m, [10, 20])


def test_calibration_files_of_kitti(tmp_path):
    """P2 = K [I | t] with t = (0.06, 0, 0.003) for f = 700: its centre is (-0.06, 0, -0.003) of camera 0."""
    (tmp_path / "calib").mkdir()
    rows = ["P0: " + "9 " * 12, "P2: 700 0 600 43.8 0 700 170 0.51 0 0 1 0.003", "R0_rect: 1"]
    (tmp_path / "calib/000001.txt").write_text("\n".join(rows) + "\n")
    # Right 2 m, down 1.65 m, ahead 11 m from camera 0.
    depth = 11 + 0.003
    foot = (700 * (2 + 0.06) / depth + 600, 700 * 1.65 / depth + 170)
    data = rectangles((foot[0] - 9, 160, foot[0] + 9, foot[1]), frames=("000001",))
    for measure, expected in (("forward", 11), ("ground_plane", math.hypot(11, 2))):
        found = with_ground(data, tmp_path / "calib", measure)
        assert math.isclose(found.detections.distance_m[0], expected, abs_tol=1e-9)


def nuscenes_tables(folder):
    """One camera 1.5 m up and 1.7 m ahead of the ego's origin that looks straight ahead, and a LiDAR."""
    folder.mkdir()
    matrix = [[1000, 0, 500], [0, 1000, 300], [0, 0, 1]]
    ahead = [0.5, -0.5, 0.5, -0.5]  # right, down, forward -> forward, left, up
    tables = {
        "sensor": [{"token": "e0", "channel": "LIDAR_TOP"}, {"token": "e1", "channel": "CAM_FRONT"},
                   {"token": "e2", "channel": "CAM_BACK"}],
        "calibrated_sensor": [
            {"token": "k0", "sensor_token": "e0", "translation": [1, 0, 2], "rotation": [1, 0, 0, 0],
             "camera_intrinsic": []},
            {"token": "k1", "sensor_token": "e1", "translation": [1.7, 0, 1.5], "rotation": ahead,
             "camera_intrinsic": matrix},
            {"token": "k2", "sensor_token": "e2", "translation": [0.5, 0, 1.5], "rotation": [0.5, -0.5, -0.5, 0.5],
             "camera_intrinsic": matrix},
            {"token": "k3", "sensor_token": "e1", "translation": [9, 0, 9], "rotation": ahead,
             "camera_intrinsic": matrix},
        ],
        "sample_data": [
            {"token": "d0", "sample_token": "s0", "calibrated_sensor_token": "k0", "is_key_frame": True,
             "filename": "samples/LIDAR_TOP/x.bin"},
            {"token": "d1", "sample_token": "s0", "calibrated_sensor_token": "k1", "is_key_frame": True,
             "filename": "samples/CAM_FRONT/x.jpg"},
            {"token": "d2", "sample_token": "s0", "calibrated_sensor_token": "k2", "is_key_frame": True,
             "filename": "samples/CAM_BACK/x.jpg"},
            {"token": "d3", "sample_token": "s0", "calibrated_sensor_token": "k3", "is_key_frame": False,
             "filename": "sweeps/CAM_FRONT/y.jpg"},
        ],
    }  # fmt: skip
    for name, rows in tables.items():
        (folder / f"{name}.json").write_text(json.dumps(rows))
    compact = {"sample_token": "s0", "cam_front": {
        "cam2ego_translation": [1.7, 0, 1.5], "cam2ego_rotation_wxyz": ahead, "intrinsic": matrix}}  # fmt: skip
    (folder / "gt.json").write_text(json.dumps([compact]))
    return folder


def test_calibrations_of_nuscenes(tmp_path):
    folder = nuscenes_tables(tmp_path / "v1.0")
    for frame in ("s0", "samples/CAM_FRONT/x.jpg"):
        found = with_ground(rectangles((580, 300, 620, 400), frames=(frame,)), folder, "forward")
        assert np.allclose(found.detections.distance_m, 15 + 1.7)
    # The camera that looks back from 0.5 m sees what is 15 m behind it, 14.5 m from the ego's origin.
    back = rectangles((480, 300, 520, 400), frames=("samples/CAM_BACK/x.jpg",))
    assert np.allclose(with_ground(back, folder, "ground_plane").detections.distance_m, 14.5)
    assert np.isnan(with_ground(back, folder, "forward").detections.distance_m).all()
    found = with_ground(rectangles((580, 300, 620, 400), frames=("s0",)), folder / "gt.json", "forward")
    assert np.allclose(found.detections.distance_m, 15 + 1.7)


@pytest.mark.parametrize(
    "matrix",
    ["[[1, 2, 3]]", "[[1, 2], [3]]", f"[[1{'0' * 350}, 2, 3], [4, 5, 6], [7, 8, 9]]", '[["a"]]', "null", '"x"', "[]"],
)
def test_tables_of_nuscenes_with_another_matrix_are_refused(tmp_path, matrix):
    folder = nuscenes_tables(tmp_path / "v1.0")
    path = folder / "calibrated_sensor.json"
    cameras = json.loads(path.read_text())
    cameras[1]["camera_intrinsic"] = json.loads(matrix)
    path.write_text(json.dumps(cameras))
    with pytest.raises(InputError, match="/1/camera_intrinsic: expected 3 rows of 3 numbers"):
        read_cameras(folder, rectangles((1, 1, 2, 2), frames=("s0",)))


def compact_camera(height="1", turn="1", focal="1000"):
    pose = f'"cam2ego_translation": [0, 0, {height}], "cam2ego_rotation_wxyz": [{turn}, 0, 0, 0]'
    matrix = f'"intrinsic": [[{focal}, 0, 500], [0, 1000, 300], [0, 0, 1]]'
    return f'[{{"sample_token": "a", "cam_front": {{{pose}, {matrix}}}}}]'


BROKEN = [
    ("c.csv", "fx,fy,cx,cy\n1,1,1,1\n", "c.csv:1: no column 'height_m'"),
    ("c.csv", f"{HEAD}\n0,1000,500,300,1.5\n",
     "c.csv: camera 1: a camera needs a focal length in pixels and a height above the ground in metres"),
    ("c.csv", f"{HEAD}\n1000,1000,500,300,-1.5\n", "c.csv: camera 1: a camera needs"),
    ("c.csv", f"{HEAD}\n1000,1000,500,300,nan\n", "c.csv:2: height_m: expected a finite number, got nan"),
    ("c.csv", f"{HEAD}\n1000,1000,500,300,0\n", "c.csv: camera 1: a camera needs"),
    ("c.csv", f"{HEAD},frame\n1,1,1,1,1,a\n1,0,1,1,1,b\n", "c.csv: camera 2: a camera needs"),
    ("c.csv", f"{HEAD},frame,sequence\n1,1,1,1,1,a,b\n", "c.csv: expected one row, or a column"),
    ("c.csv", f"{HEAD},frame\n1,1,1,1,1,b\n1,1,1,1,1,a\n1,1,1,1,1,a\n", "c.csv:4: frame 'a' has a row already"),
    ("c.csv", f"{HEAD},focal\n1000,1000,500,300,1.5,3\n", "c.csv:1: unknown column 'focal'"),
    ("c.csv", f"{HEAD}\n1000,1000,500,300,1.5\n1000,1000,500,300,1.5\n",
     "c.csv: expected one row, or a column 'frame' or 'sequence' that says what each is of"),
    ("c.csv", f"{HEAD},frame\n1,1,1,1,1,a\n1,1,1,1,1,a\n", "c.csv:3: frame 'a' has a row already"),
    ("c.csv", f"{HEAD},frame\n1,1,1,1,1,b\n",
     "c.csv: no camera for frame 'a'\n  hint: the file has, for example, 'b'"),
    ("c.txt", "P0: 1 2 3\n", "c.txt: expected a line 'P2:' with 12 numbers, as in KITTI's calibration files"),
    ("c.txt", "P2: 1 2 3\n", "c.txt: expected a line 'P2:'"),
    ("c.txt", "P2: " + "0 " * 12 + "\n", "c.txt: camera 1: a camera needs"),
    ("c.json", '[{"sample_token": "a", "cam_front": {}}]', "c.json: /0/cam_front: missing key 'cam2ego_translation'"),
    ("c.json", '[{"sample_token": "a", "cam_front": {"cam2ego_translation": [0, 0, 1], "cam2ego_rotation_wxyz": '
     '[1, 0, 0, 0], "intrinsic": [1]}}]', "c.json: intrinsic: expected 3 rows of 3 numbers in each"),
    ("c.json", compact_camera(height="Infinity"), "c.json: camera 1: a camera needs"),
    ("c.json", compact_camera(turn="Infinity"), "c.json: camera 1: a camera needs"),
    ("c.json", compact_camera(focal="Infinity"), "c.json: camera 1: a camera needs"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "words"), BROKEN, ids=[each[2][:60] for each in BROKEN])
def test_calibrations_that_are_none_are_refused(tmp_path, monkeypatch, name, text, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match="^" + re.escape(words)):
        read_cameras(name, rectangles((1, 1, 2, 2)))


def test_what_has_a_place_keeps_it(tmp_path):
    """One detection has a box in space and one has none; of annotations one distance is known: none is placed."""
    box = (580, 300, 620, 400)
    data = rectangles(box, box)
    space = np.array([[5, 0, 0, 1, 1, 1, 0], [np.nan] * 7])
    data = data.change(
        detections=replace(data.detections, box_3d=space),
        annotations=replace(data.annotations, distance_m=np.array([np.nan, 9])),
    )
    found = with_ground(data, table(tmp_path, LEVEL), "given")
    assert found.annotations is data.annotations
    assert found.origin["projected"]["detections"] == {"placed": 2, "farthest": 0}
    assert found.detections.distance_m[1] == pytest.approx(math.hypot(15, 1.5))
    # 512 pixels, 2 m up: a foot 128 pixels below the horizon is 8 m ahead.
    for back, forward in ((8, 0), (7.5, 0.5), (9, math.nan)):
        cameras = table(tmp_path, f"{HEAD},x_m\n512,512,512,256,2,{-back}\n")
        away = with_ground(rectangles((500, 256, 524, 384)), cameras, "forward").detections.distance_m
        assert np.array_equal(away, [forward], equal_nan=True)
    assert with_ground(rectangles(), table(tmp_path, LEVEL), "given").origin["projected"]["detections"]["placed"] == 0


def test_detections_with_boxes_in_space_are_not_projected(tmp_path):
    columns = {"frame": [0], "class": [0], "box_3d": [[5, 0, 0, 1, 1, 1, 0]]}
    data = from_arrays(["ped"], ["a"], columns, {**columns, "score": [1]})
    with pytest.raises(UsageError, match="the detections have boxes in the ego frame"):
        with_ground(data, table(tmp_path, LEVEL), "forward")


def street(folder, reported_shift=0):
    """COCO of 40 frames of the level camera: even ones have vehicles at 5, 15, 30 and 50 m, all detected; odd ones
    are empty, and in 10 of them a detection stands 8 m ahead. `reported_shift` lowers every detection by pixels."""
    images = [{"id": k, "file_name": f"{k}.png"} for k in range(40)]
    truth, found = [], []
    for k in range(40):
        objects = [(100 * n, 1500 / z) for n, z in enumerate((5, 15, 30, 50))] if k % 2 == 0 else []
        alarms = [(600, 1500 / 8)] if k % 4 == 1 else []
        for left, low in objects:
            truth.append({"id": len(truth), "image_id": k, "category_id": 1, "bbox": [left, 200, 60, 100 + low]})
        for left, low in objects + alarms:
            box = [left, 200, 60, 100 + low + reported_shift]
            found.append({"image_id": k, "category_id": 1, "bbox": box, "score": 0.9})
    document = {"images": images, "categories": [{"id": 1, "name": "vehicle"}], "annotations": truth}
    (folder / "truth.json").write_text(json.dumps(document))
    (folder / "found.json").write_text(json.dumps(found))
    table(folder, LEVEL)
    return ["confusion", "--format", "coco", "--annotations", "truth.json", "--detections", "found.json",
            "--calibration", "cameras.csv", "--bins", "0,10,20,40,60"]  # fmt: skip


def test_false_alarms_of_a_camera_reach_the_verdict(root, tmp_path, monkeypatch, capfd):
    """From rectangles to a verdict: "keeps its speed on an empty road" holds without false alarms, and fails with."""
    monkeypatch.chdir(tmp_path)
    command = street(tmp_path)
    model = root / "verifier/manual/models/phantom_braking.toml"
    (tmp_path / "s.ltl").write_text(f'model "{model}"\nno_phantom: P >= 0.9 [ G v >= 4 ]\n')
    run = ["run", "s.ltl", "--env", "empty_road", "--point-only", "--empty-columns", "prior", "--cm"]
    assert main([*command, "-o", "without.json"]) == 0
    assert main([*command, "--unmatched", "own_bin", "--localisation", "-o", "with.json"]) == 0
    document = json.loads((tmp_path / "with.json").read_text())
    empty = [bin_["counts"][0][1] for bin_ in document["bins"]]
    assert empty == [10, 0, 0, 0]  # 8 m ahead
    assert document["localisation"]["counts"] == np.diag([20] * 4).tolist()
    assert [each["kind"] for each in document["remarks"]] == ["projected-annotations"]
    assert document["source"]["projected"]["detections"] == {"placed": 90, "farthest": 0}
    assert main([*run, "without.json"]) == ExitCode.SATISFIED
    assert main([*run, "with.json"]) == ExitCode.VIOLATED


def test_objects_outside_all_bins_are_no_errors_of_distance(tmp_path, monkeypatch, capfd):
    """Bins end at 20 m, and 30 m and 50 m are left out; so are detections beyond a range, by their own distance."""
    monkeypatch.chdir(tmp_path)
    command = street(tmp_path)
    bins = ["--bins", "0,10,20", "--outside", "drop", "--localisation", "--unmatched", "own_bin", "-o", "c.json"]
    assert main([*command, *bins]) == 0
    found = read_counts("c.json")
    assert found.metadata["localisation"]["counts"] == [[20, 0], [0, 20]]
    assert found.metadata["totals"]["detections"] == 90
    # Reported 25 pixels lower, 30 m is 20 m: a bin that there is, but not one of its object.
    street(tmp_path, reported_shift=25)
    assert main([*command, *bins, "--bins", "0,10,25"]) == 0
    assert read_counts("c.json").metadata["localisation"]["counts"] == [[20, 0], [0, 20]]
    street(tmp_path)
    # From 10 m on: the vehicles at 5 m and the false alarms at 8 m are gone.
    assert main([*command, *bins, "--range", "10..40"]) == 0
    found = read_counts("c.json")
    assert found.metadata["totals"]["detections"] == 40
    assert found.counts[0, :, 0, 1].tolist() == [0, 0]


def test_distances_that_annotations_have_are_kept(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    command = street(tmp_path)
    truth = json.loads((tmp_path / "truth.json").read_text())
    for each in truth["annotations"]:
        each["z"] = 55
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    assert main([*command, "--distance-field", "z", "--localisation", "-o", "c.json"]) == 0
    found = read_counts("c.json")
    assert np.array(found.metadata["localisation"]["counts"])[:, 3].tolist() == [20, 20, 20, 20]
    assert "remarks" not in found.metadata or "projected-annotations" not in str(found.metadata["remarks"])


def test_a_field_of_the_results_gives_distances(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    command = street(tmp_path)
    found = json.loads((tmp_path / "found.json").read_text())
    for each in found:
        each["z"] = 1500 / (each["bbox"][3] - 100) + 5
    (tmp_path / "found.json").write_text(json.dumps(found))
    by_field = [*command, "--detection-distance-field", "z", "--unmatched", "own_bin", "--localisation"]
    assert main(by_field) == ExitCode.USAGE
    assert "both --calibration and --detection-distance-field" in capfd.readouterr().err
    at = by_field.index("--calibration")
    truth = json.loads((tmp_path / "truth.json").read_text())
    for each in truth["annotations"]:
        each["z"] = 1500 / (each["bbox"][3] - 100)
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    assert main([*by_field[:at], *by_field[at + 2 :], "--distance-field", "z", "-o", "c.json"]) == 0
    document = read_counts("c.json")
    assert document.counts[0, :, 0, 1].tolist() == [0, 10, 0, 0]  # the field says 13 m
    expected = np.diag([0, 20, 20, 20])  # 5 m, 15 m, 30 m and 50 m are 10, 20, 35 and 55 m there
    expected[1, 0], expected[2, 1], expected[1, 1] = 20, 20, 0
    assert document.metadata["localisation"]["counts"] == expected.tolist()
    wrong = [*by_field[:at], *by_field[at + 2 :], "--distance-field", "z"]
    wrong[wrong.index("--detection-distance-field") + 1] = "depth"
    assert main(wrong) == ExitCode.BAD_INPUT
    assert "found.json: no detection has a field 'depth'" in capfd.readouterr().err


def test_objects_in_space_and_rectangles_are_counted_together(tmp_path, monkeypatch, capfd):
    """KITTI labels with boxes in space against a detector of rectangles: unmatched ones lie where their foot is."""
    monkeypatch.chdir(tmp_path)
    for name in ("label", "found", "calib"):
        (tmp_path / name).mkdir()
    foot = 170 + 700 * 1.65 / 12
    (tmp_path / "label/0.txt").write_text(f"Car 0 0 0 600 150 650 {foot} 1.5 1.6 4 0 1.65 14 0\n")
    space = "-1 -1 -1 -1000 -1000 -1000 -10"
    lines = [f"Car -1 -1 -10 600 150 650 {foot} {space} 0.9", f"Car -1 -1 -10 100 150 150 {170 + 70} {space} 0.8"]
    (tmp_path / "found/0.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "calib/0.txt").write_text("P2: 700 0 600 0 0 700 170 0 0 0 1 0\n")
    command = ["confusion", "--format", "kitti_object", "--annotations", "label", "--detections", "found",
               "--bins", "0,10,13,15,inf", "--distance", "forward", "--classes", "Car,Van,Truck,Pedestrian,"
               "Person_sitting,Person,Cyclist,Tram,Misc", "--unmatched", "own_bin"]  # fmt: skip
    assert main(command) == ExitCode.BAD_INPUT
    assert "a detection that matches nothing has no distance" in capfd.readouterr().err
    assert main([*command, "--calibration", "calib", "--localisation", "-o", "c.json"]) == 0
    found = read_counts("c.json")
    assert found.counts[0, :, 0, 0].tolist() == [0, 0, 1, 0]  # the car, centre at 14 m
    assert found.counts[0, :, 0, -1].tolist() == [0, 0, 0, 1]  # 700 * 1.65 / 70 = 16.5 m
    assert np.argwhere(np.array(found.metadata["localisation"]["counts"])).tolist() == [[1, 2]]  # its foot at 12 m
    # A range takes out what lies beyond it by its foot.
    assert main([*command, "--calibration", "calib", "--range", "0..16", "-o", "c.json"]) == 0
    assert read_counts("c.json").metadata["totals"]["detections"] == 1


EDGES_M = (0, 10, 20, 30, 40, 50, 60, 80)


def errors_on_the_ground(folder):
    """Class, true distance ahead and reported distance of every object that the RRC detector finds."""
    rules = class_map({"Car": "car", "Pedestrian": "pedestrian", "DontCare": "dont_care", "*": "ignore"})
    data = read_detections("kitti_tracking", folder / "label_02", folder / "det_rrc2d", Reading(class_map=rules))
    data = with_ground(data, folder / "calib", "forward")
    by = match(data, MatchingPolicy("iou_2d", 0.5, class_aware=True)).detection_of
    found = data.annotations.take(by >= 0)
    reported = reported_distance(data.detections, "forward")[by[by >= 0]]
    return np.array(data.classes)[found.label], distance(found, "forward"), reported


def errors_of_the_network(path):
    """The same of a file whose predictions are cut to whole metres: half a metre more is meant."""
    with path.open() as stream:
        rows = list(csv.DictReader(stream))
    true, reported = ([float(row[name]) for row in rows] for name in ("z_true", "z_pred_int"))
    return np.array([row["cls"].lower() for row in rows]), np.array(true), np.array(reported) + 0.5


def cells(kind, true, reported, name, low, high):
    inside = (kind == name) & (true >= low) & (true < high)
    error = reported[inside] - true[inside]
    few, middle, many = np.quantile(error, [0.1, 0.5, 0.9])
    right = np.mean((reported[inside] >= low) & (reported[inside] < high))
    return [f"{inside.sum()}", f"{middle:+.1f} [{few:+.1f}, {many:+.1f}]", f"{right:.2f}"]


def test_the_errors_on_kitti_are_those_of_the_manual(root, shared):
    page = (root / "verifier/manual/pages/matrices.md").read_text()
    printed = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if " m |" in line]
    ground = errors_on_the_ground(shared / "data/kitti_tracking")
    network = errors_of_the_network(shared / "data/kitti_distance_regression/predictions_joined.csv")
    made = [
        [f"{name}, {low} to {high} m", *cells(*ground, name, low, high), *cells(*network, name, low, high)]
        for name in ("car", "pedestrian")
        for low, high in itertools.pairwise(EDGES_M)
    ]
    assert printed == made


def test_boxes_of_nuscenes_project_to_where_they_are(shared):
    """Rectangles of CenterPoint's own boxes in space: near the camera, the ground gives the boxes' distance back."""
    folder = shared / "data/nuscenes_mini_val/scene-0916"
    data = read_detections("nuscenes_compact", folder / "gt.json", folder / "det_centerpoint")
    boxes = keep_scores(data, 0.3).detections
    away = ground_distances(boxes, read_cameras(folder / "gt.json", data), "forward")
    true = distance(boxes, "forward")
    cars = (boxes.label == data.classes.index("car")) & (true > 0) & (true < 20) & ~np.isnan(away)
    assert cars.sum() > 50
    assert abs(np.median(away[cars] - true[cars])) < 1.5
