"""nuScenes: a hand-made miniature of the official tables, and the real scene in its compact form."""

import json
import math
import shutil

import numpy as np
import pytest

from verifier.base.errors import InputError
from verifier.perception.detections import Reading, class_map, distance, read_detections
from verifier.perception.detections.filters import keep_attribute
from verifier.perception.detections.nuscenes import nuscenes

STRAIGHT = [1.0, 0, 0, 0]
QUARTER = [math.sqrt(0.5), 0, 0, math.sqrt(0.5)]  # x turns to y


def tables():
    """Two scenes; in the second frame of the first the ego stands at (100, 200, 0) and looks along global y."""
    sample = [("s1", "c0", 1_500_000), ("s0", "c0", 1_000_000), ("s2", "c1", 9_000_000)]
    poses = {"s0": ([0, 0, 0], STRAIGHT), "s1": ([100, 200, 0], QUARTER), "s2": ([0, 0, 0], STRAIGHT)}
    data = [("s0", "k1", True), *((token, "k0", True) for token, *_ in sample), ("s0", "k0", False)]
    common = {"visibility_token": "4", "num_lidar_pts": 3, "num_radar_pts": 2, "size": [1.9, 4.5, 1.6]}
    return {
        "scene": [{"token": "c0", "name": "scene-0001"}, {"token": "c1", "name": "scene-0002"}],
        "sample": [{"token": t, "scene_token": c, "timestamp": at} for t, c, at in sample],
        "sensor": [{"token": "e0", "channel": "LIDAR_TOP"}, {"token": "e1", "channel": "CAM_FRONT"}],
        "calibrated_sensor": [{"token": "k0", "sensor_token": "e0"}, {"token": "k1", "sensor_token": "e1"}],
        "ego_pose": [{"token": t, "translation": p[0], "rotation": p[1]} for t, p in poses.items()],
        "sample_data": [
            {
                "token": f"d{n}",
                "sample_token": t,
                "ego_pose_token": t,
                "calibrated_sensor_token": k,
                "is_key_frame": yes,
            }
            for n, (t, k, yes) in enumerate(data)
        ],
        "category": [{"token": "g0", "name": "vehicle.car"}, {"token": "g1", "name": "animal"}],
        "instance": [{"token": "i0", "category_token": "g0"}, {"token": "i1", "category_token": "g1"}],
        "sample_annotation": [
            {"token": "a0", "sample_token": "s0", "instance_token": "i0", "translation": [98, 210, 1]}
            | {"rotation": QUARTER, "prev": "", "next": "a1", **common},
            {"token": "a1", "sample_token": "s1", "instance_token": "i0", "translation": [98, 212, 1]}
            | {"rotation": QUARTER, "prev": "a0", "next": "", **common},
            {"token": "a2", "sample_token": "s2", "instance_token": "i1", "translation": [5, 5, 1]}
            | {"rotation": STRAIGHT, "prev": "", "next": "", **common, "visibility_token": ""},
        ],
    }


def detection(token, translation, rotation, score=0.5, name="car"):
    return {
        "sample_token": token,
        "translation": translation,
        "size": [2.0, 4.0, 1.5],
        "rotation": rotation,
        "velocity": [float("nan"), 0.0],
        "detection_name": name,
        "detection_score": score,
        "attribute_name": "",
    }


@pytest.fixture
def folder(tmp_path):
    for name, table in tables().items():
        (tmp_path / f"{name}.json").write_text(json.dumps(table))
    results = {"s0": [], "s1": [detection("s1", [97, 215, 0.5], STRAIGHT)], "s2": []}
    (tmp_path / "results.json").write_text(json.dumps({"meta": {}, "results": results}))
    return tmp_path


def test_boxes_are_brought_into_the_ego_frame_by_hand(folder):
    found = nuscenes(folder, folder / "results.json")
    assert found.sequences == ("scene-0001", "scene-0002")
    assert found.frame_name == ("s0", "s1", "s2")  # by time within the scene, not as listed
    assert found.annotations.frame.tolist() == [0, 1]
    # Frame s0: the global frame itself. Width 1.9, length 4.5: the length lies along the turned x.
    assert found.annotations.box_3d[0] == pytest.approx([98, 210, 1, 4.5, 1.9, 1.6, math.pi / 2])
    # Frame s1: 12 m along global y is ahead; 2 m less along global x is to the left. The car looks ahead.
    assert found.annotations.box_3d[1] == pytest.approx([12, 2, 1, 4.5, 1.9, 1.6, 0], abs=1e-12)
    # The detection: 15 m ahead, 3 m to the left, looking along global x, which is to the right.
    assert found.detections.frame.tolist() == [1]
    assert found.detections.box_3d[0] == pytest.approx([15, 3, 0.5, 4.0, 2.0, 1.5, -math.pi / 2])
    assert found.origin["classes_left_out"]["annotations"] == {"animal": 1}
    attributes = {name: column.tolist() for name, column in found.annotations.attributes.items()}
    assert attributes.pop("speed") == pytest.approx([4.0, 4.0])  # 2 m in half a second
    assert attributes == {
        "track": [0, 0],
        "num_lidar_pts": [3, 3],
        "num_radar_pts": [2, 2],
        "num_points": [5, 5],
        "visibility": [4, 4],
    }


def test_speeds_are_over_ground_and_between_near_frames(folder):
    """Frames at most 1.5 s apart, 3 s over two steps; a second sample at the time of the first says nothing."""
    times = {"s0": 0, "s1": 1.5, "s2": 3, "s3": 4.6, "s4": 6.2, "s5": 0, "s6": 1}
    centres = [[0, 0, 0], [3, 4, 9], [9, 12, 0], [9, 12, 0], [9, 12, 0], [3, 4, 0]]
    chains = [["s0", "s1", "s2", "s3", "s4"], ["s0", "s5"], ["s6", "s0"], ["s6"]]
    table = tables()
    rows, common = [], table["sample_annotation"][0]
    for number, chain in enumerate(chains):
        for at, sample in enumerate(chain):
            near = {
                "prev": f"{number}.{at - 1}" if at else "",
                "next": f"{number}.{at + 1}" if sample != chain[-1] else "",
            }
            place = centres[5] if number and at else centres[at]
            rows.append(common | near | {"token": f"{number}.{at}", "sample_token": sample, "translation": place})
    every = {
        "sample": [{"token": t, "scene_token": "c0", "timestamp": int(at * 1e6)} for t, at in times.items()],
        "sample_data": [
            table["sample_data"][1] | {"token": t, "sample_token": t, "ego_pose_token": "s0"} for t in times
        ],
        "sample_annotation": rows,
    }
    for name, own in every.items():
        (folder / f"{name}.json").write_text(json.dumps(own))
    (folder / "results.json").write_text(json.dumps({"results": {token: [] for token in times}}))
    truth = nuscenes(folder, folder / "results.json").annotations
    # 5 m in 1.5 s, 15 m in 3 s; 10 m in 3.1 s and 0 m in 1.6 s are too long ago; no time, and back in time.
    expected = [5 / 1.5, 15 / 3, *[np.nan] * 3, *[np.nan] * 5]
    assert np.array_equal(truth.attributes["speed"][np.argsort(truth.line)], expected, equal_nan=True)


def test_each_detection_is_of_its_entry(folder):
    """Also behind an entry whose sample is in no table."""
    entries = {"zz": [detection("zz", [0, 0, 0], STRAIGHT)], "s1": [detection("s0", [97, 215, 0.5], STRAIGHT)]}
    (folder / "results.json").write_text(json.dumps({"results": {"s0": [], "s2": [], **entries}}))
    with pytest.raises(InputError, match="/results/s1/0/sample_token: expected the token of its entry, got 's0'"):
        nuscenes(folder, folder / "results.json", Reading(ignore=("unknown_frames",)))
    entries["s1"][0]["sample_token"] = "s1"
    (folder / "results.json").write_text(json.dumps({"results": {"s0": [], "s2": [], **entries}}))
    found = nuscenes(folder, folder / "results.json", Reading(ignore=("unknown_frames",)))
    assert (found.detections.frame.tolist(), found.origin["ignored"]) == ([1], {"unknown_frames": 1})


@pytest.mark.parametrize(
    ("translation", "rotation"),
    [
        ([0, 0, math.inf], STRAIGHT),
        ([0, 0, 0], [0, 0, 0, 0]),
        ([0, 0, 0], [math.inf, 0, 0, 0]),
        ([math.nan] * 3, STRAIGHT),
    ],
)
def test_poses_that_are_none(folder, translation, rotation):
    poses = tables()["ego_pose"]
    poses[1] |= {"translation": translation, "rotation": rotation}
    (folder / "ego_pose.json").write_text(json.dumps(poses))
    with pytest.raises(
        InputError, match=r"ego_pose.json: /1: the pose of 'translation' and 'rotation' is not finite"
    ):
        nuscenes(folder, folder / "results.json")


def test_scenes_and_class_maps(folder):
    rules = class_map({"vehicle.*": "obs", "car": "obs", "animal": "animal"})
    found = nuscenes(folder, folder / "results.json", Reading(class_map=rules, sequences=("scene-0002",)))
    assert (found.sequences, found.frame_name) == (("scene-0002",), ("s2",))
    assert [found.classes[label] for label in found.annotations.label] == ["animal"]
    assert np.isnan(found.annotations.attributes["visibility"]).all()
    assert np.isnan(found.annotations.attributes["speed"]).all()
    assert len(found.detections) == 0


def test_real_boxes_are_where_the_published_table_has_them(shared):
    # The table gives metres to three decimals. For the files of AB3DMOT, which give two, it has the middle of the
    # bottom face where we have the centre: with the camera's pitch of 0.5 degrees, up to 2 cm (trailers, 4 m high).
    pandas = pytest.importorskip("pandas")
    scene = shared / "data/nuscenes_mini_val/scene-0916"
    table = pandas.read_csv(scene / "flat_ego.csv")
    for source, path, gap in (
        ("gt", "det_megvii", 0.0006),
        ("pointpillars_trelpy", "det_pointpillars_trelpy.json", 0.0006),
        ("centerpoint", "det_centerpoint", 0.02),
        ("megvii", "det_megvii", 0.02),
    ):
        found = read_detections("nuscenes_compact", scene / "gt.json", scene / path)
        boxes = found.annotations if source == "gt" else found.detections
        rows = table[table.source == source]
        for name in rows["class"].unique():
            mine = boxes.take(boxes.label == found.classes.index(name))
            theirs = rows[rows["class"] == name]
            assert mine.frame.tolist() == theirs.frame.tolist()
            assert np.abs(mine.box_3d[:, :2] - theirs[["x_ego_m", "y_ego_m"]].to_numpy()).max() < gap


def test_real_counts_are_the_published_ones(shared, tmp_path):
    scene = shared / "data/nuscenes_mini_val/scene-0916"
    found = read_detections("nuscenes_compact", scene / "gt.json", scene / "det_centerpoint")
    seen = keep_attribute(found, "num_lidar_pts", lowest=1, removed="drop")
    edges = [0, 10, 20, 30, 40, 50, 60, 80]
    counts = {}
    for name in ("pedestrian", "car"):
        boxes = seen.annotations.take(seen.annotations.label == seen.classes.index(name))
        counts[name] = (len(boxes), np.histogram(distance(boxes, "ground_plane"), edges)[0].tolist())
    assert counts == {
        "pedestrian": (401, [90, 198, 93, 14, 3, 3, 0]),
        "car": (1208, [112, 347, 412, 211, 82, 26, 17]),
    }
    assert seen.frame_count == 41
    assert (seen.sequences, len(seen.detections)) == (("scene-0916",), 6215)
    zipped = shutil.make_archive(str(tmp_path / "det"), "zip", scene / "det_centerpoint")
    assert len(read_detections("nuscenes_compact", scene / "gt.json", zipped).detections) == len(found.detections)


def test_real_headings_of_detector_and_ground_truth_agree(shared):
    # Two conventions that have nothing in common lead to the ego frame; cars 2 m apart at most look the same way.
    scene = shared / "data/nuscenes_mini_val/scene-0916"
    found = read_detections("nuscenes_compact", scene / "gt.json", scene / "det_centerpoint")
    car = found.classes.index("car")
    truth, seen = found.annotations, found.detections
    gaps, heights = [], []
    for row in np.flatnonzero((seen.label == car) & (seen.score > 0.6)):
        near = np.flatnonzero((truth.frame == seen.frame[row]) & (truth.label == car))
        away = np.linalg.norm(truth.box_3d[near, :2] - seen.box_3d[row, :2], axis=1)
        if len(away) and away.min() < 1:
            other = truth.box_3d[near[away.argmin()]]
            gaps.append(abs(math.remainder(other[6] - seen.box_3d[row, 6], 2 * math.pi)))
            heights.append(other[2] - seen.box_3d[row, 2])
    assert len(gaps) > 800
    assert np.median(gaps) < math.radians(2.5)
    assert abs(np.median(heights)) < 0.1


def test_points_of_the_compact_form(tmp_path):
    pose = {f"{name}_{part}": value for name in ("lidar2ego", "ego2global")
            for part, value in (("translation", [0, 0, 0]), ("rotation_wxyz", STRAIGHT))}  # fmt: skip
    box = {"name": "car", "box_lidar": [10, 2, -1, 1.9, 4.5, 1.6, 0.1], "velocity": [3, 4], "num_lidar_pts": 5}
    frame = {"sample_token": "s", "cam_front": {}, "boxes": [box | {"num_radar_pts": 2}], **pose}
    (tmp_path / "gt.json").write_text(json.dumps([frame]))
    (tmp_path / "found.json").write_text(json.dumps({"results": {"s": []}}))
    truth = read_detections("nuscenes_compact", tmp_path / "gt.json", tmp_path / "found.json").annotations
    attributes = {name: column.tolist() for name, column in truth.attributes.items()}
    assert attributes == {"num_lidar_pts": [5], "num_radar_pts": [2], "num_points": [7], "speed": [5]}
    assert truth.box_3d[0] == pytest.approx([10, 2, -1, 4.5, 1.9, 1.6, -0.1 - math.pi / 2])


@pytest.mark.parametrize("unknown", [None, [None, None], [math.nan, math.nan], [0.5, None]])
def test_an_unknown_velocity_is_an_unknown_speed(shared, tmp_path, unknown):
    scene = shared / "data/nuscenes_mini_val/scene-0916"
    frames = json.loads((scene / "gt.json").read_text())
    row = next(row for row, frame in enumerate(frames) if len(frame["boxes"]) > 1)
    frames[row]["boxes"][0]["velocity"] = unknown
    frames[row]["boxes"][1]["velocity"] = [3.0, 4]
    (tmp_path / "gt.json").write_text(json.dumps(frames))
    found = read_detections("nuscenes_compact", tmp_path / "gt.json", scene / "det_centerpoint").annotations
    speeds = found.attributes["speed"][np.flatnonzero(found.frame == row)]
    assert math.isnan(speeds[0])
    assert speeds[1] == 5


def test_what_is_no_velocity_is_refused(shared, tmp_path):
    scene = shared / "data/nuscenes_mini_val/scene-0916"
    frames = json.loads((scene / "gt.json").read_text())
    row = next(row for row, frame in enumerate(frames) if frame["boxes"])
    frames[row]["boxes"][0]["velocity"] = [1.0, "fast"]
    (tmp_path / "gt.json").write_text(json.dumps(frames))
    with pytest.raises(InputError, match=rf"/{row}/boxes/0/velocity: expected a list of 2 numbers, got"):
        read_detections("nuscenes_compact", tmp_path / "gt.json", scene / "det_centerpoint")
