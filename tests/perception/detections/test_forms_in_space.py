"""The same boxes in space in four forms: equal matrices, each from detections to a verdict; what each form means."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from scipy.spatial.transform import Rotation

from verifier.base.errors import ExitCode
from verifier.cli import main
from verifier.perception.confusion.document import read_counts
from verifier.perception.detections import read_detections

CLASSES = ("VEHICLE", "PEDESTRIAN")
DRIVES, STAMPS = ("a", "b"), tuple(10**9 + 10**8 * k for k in range(6))
BOX = ("x", "y", "z", "length", "width", "height", "yaw")
SIZE = {"VEHICLE": (4.5, 1.8, 1.5), "PEDESTRIAN": (0.8, 0.8, 1.8)}
SENSOR = Rotation.from_euler("xyz", [0.02, -0.03, 0.4]), np.array([1.5, 0.2, 1.7])


def scene():
    """Boxes in the frame of the vehicle, and what a detector reports of most of them, and of nothing."""
    random = np.random.default_rng(3)
    rows = []
    for drive in DRIVES:
        for stamp in STAMPS:
            for track in range(3):
                kind = CLASSES[track % 2]
                place = [10 + 18 * track + random.uniform(-3, 3), random.uniform(-4, 4), random.uniform(0.5, 1)]
                rows.append((drive, stamp, track, kind, *place, *SIZE[kind], random.uniform(-3, 3)))
    truth = pd.DataFrame(rows, columns=["sequence", "frame", "track", "class", *BOX])
    found = truth[random.random(len(truth)) < 0.8].drop(columns="track").copy()
    found["x"] += random.uniform(-0.3, 0.3, len(found))
    found.loc[random.random(len(found)) < 0.2, "class"] = "PEDESTRIAN"
    nothing = found.iloc[::7].assign(y=40.0)
    found = pd.concat([found, nothing], ignore_index=True)
    return truth, found.assign(score=np.round(random.uniform(0.1, 0.9, len(found)), 2))


TRUTH, FOUND = scene()


def write_table(folder):
    TRUTH.to_csv(folder / "truth.csv", index=False)
    FOUND.to_csv(folder / "found.csv", index=False)


def quaternions(yaw):
    return {"qw": np.cos(yaw / 2), "qx": 0 * yaw, "qy": 0 * yaw, "qz": np.sin(yaw / 2)}


def argoverse_table(frame):
    """The columns of Argoverse, with the yaw as a quaternion."""
    own = {"x": "tx_m", "y": "ty_m", "z": "tz_m", "length": "length_m", "width": "width_m", "height": "height_m"}
    table = frame.rename(columns={"frame": "timestamp_ns", "class": "category"} | own).drop(
        columns=["yaw", "sequence"]
    )
    if "track" in table:
        table["track_uuid"] = [f"t{k}" for k in table.pop("track")]
        table["num_interior_pts"] = 9
    return table.assign(**quaternions(frame["yaw"].to_numpy()))


def write_argoverse(folder):
    for drive in DRIVES:
        (folder / "val" / drive).mkdir(parents=True)
        part = argoverse_table(TRUTH[TRUTH["sequence"] == drive])
        pa.feather.write_feather(pa.Table.from_pandas(part), folder / "val" / drive / "annotations.feather")
    found = argoverse_table(FOUND).assign(log_id=FOUND["sequence"])
    pa.feather.write_feather(pa.Table.from_pandas(found), folder / "found.feather")


def waymo_table(frame):
    name = "[LiDARBoxComponent]."
    place = {"x": "box.center.x", "y": "box.center.y", "z": "box.center.z", "length": "box.size.x"}
    place |= {"width": "box.size.y", "height": "box.size.z", "yaw": "box.heading"}
    own = {"sequence": "key.segment_context_name", "frame": "key.frame_timestamp_micros"}
    table = frame.rename(columns=own | {ours: name + theirs for ours, theirs in place.items()})
    table[f"{name}type"] = np.array([1 + CLASSES.index(each) for each in table.pop("class")], dtype=np.int8)
    if "track" in table:
        table["key.laser_object_id"] = [f"t{k}" for k in table.pop("track")]
        table[f"{name}num_lidar_points_in_box"] = 9
        table[f"{name}speed.x"], table[f"{name}speed.y"] = 3.0, -4.0
    return table


def write_waymo(folder):
    (folder / "waymo/lidar_box").mkdir(parents=True)
    for drive in DRIVES:
        part = waymo_table(TRUTH[TRUTH["sequence"] == drive])
        part.to_parquet(folder / f"waymo/lidar_box/{drive}.parquet", index=False)
    waymo_table(FOUND).to_parquet(folder / "waymo_found.parquet", index=False)


def cuboid(row, system, quaternion):
    """A box of the vehicle's frame as OpenLABEL has it, in that frame or in that of a tilted sensor."""
    turn, place = Rotation.from_euler("z", row.yaw), np.array([row.x, row.y, row.z])
    if system != "vehicle-iso8855":
        turn, place = SENSOR[0].inv() * turn, SENSOR[0].inv().apply(place - SENSOR[1])
    told = turn.as_quat() if quaternion else turn.as_euler("xyz")
    values = [*place, *told, row.length, row.width, row.height]
    return {"name": "shape3D", "val": list(map(float, values)), "coordinate_system": system}


def write_openlabel(folder, system="lidar"):
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = SENSOR[0].as_matrix(), SENSOR[1]
    pose = {"matrix4x4": matrix.ravel().tolist()}
    systems = {
        "vehicle-iso8855": {"type": "local_cs", "parent": "", "children": ["lidar"]},
        "lidar": {"type": "sensor_cs", "parent": "vehicle-iso8855", "pose_wrt_parent": pose},
    }
    for name, table in (("openlabel", TRUTH), ("openlabel_found", FOUND)):
        (folder / name).mkdir()
        for drive in DRIVES:
            objects, frames = {}, {str(k): {"objects": {}} for k in range(len(STAMPS))}
            for number, row in enumerate(
                table[table["sequence"] == drive].rename(columns={"class": "kind"}).itertuples()
            ):
                objects[str(number)] = {"name": f"o{number}", "type": row.kind}
                data = {"cuboid": [cuboid(row, system, number % 2)]}
                if name == "openlabel_found":
                    data["num"] = [{"name": "confidence", "val": row.score}]
                frames[str(STAMPS.index(row.frame))]["objects"][str(number)] = {"object_data": data}
            document = {"objects": objects, "coordinate_systems": systems, "frames": frames}
            (folder / name / f"{drive}.json").write_text(json.dumps({"openlabel": document}))


FORMS = {
    "table": (write_table, "truth.csv", "found.csv"),
    "argoverse": (write_argoverse, "val", "found.feather"),
    "waymo": (write_waymo, "waymo", "waymo_found.parquet"),
    "openlabel": (write_openlabel, "openlabel", "openlabel_found"),
}


def confusion(form, *options, name=None):
    _, truth, found = FORMS[form]
    return ["confusion", "--format", name or form, "--annotations", truth, "--detections", found, "--unmatched",
            "own_bin", "--bins", "0,20,40,60,inf", "--localisation", *options, "-o", "c.json"]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_each_form_gives_the_same_matrices_and_a_verdict(form, root, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path)
    if form != "table":
        FORMS[form][0](tmp_path)
    assert main(confusion("table")) == 0
    expected = read_counts("c.json")
    assert (expected.counts[0].sum(axis=0)[:, :2].sum(), expected.counts[0].sum(axis=0)[2, :2].min() > 0) == (
        36,
        True,
    )
    assert main(confusion(form, name="auto")) == 0
    assert f"note: read as {form}: " in capfd.readouterr().out
    found = read_counts("c.json")
    assert found.labels == expected.labels
    assert np.array_equal(found.counts, expected.counts)
    for key in ("totals", "localisation"):
        assert found.metadata[key] == expected.metadata[key]
    assert found.sequences.names == DRIVES
    (tmp_path / "map.txt").write_text("* -> vehicle\n")
    assert main(confusion(form, "--class-map", "map.txt")) == 0
    model = root / "verifier/manual/models/phantom_braking.toml"
    (tmp_path / "s.ltl").write_text(f'model "{model}"\nno_phantom: P >= 0.9 [ G v >= 4 ]\n')
    run = ["run", "s.ltl", "--cm", "c.json", "--env", "empty_road", "--point-only", "--empty-columns", "prior"]
    assert main(run) == ExitCode.VIOLATED


def test_headings_and_attributes_are_those_that_were_written(tmp_path):
    """Yaws of quaternions and of cuboids seen by a tilted sensor, to 1e-9; lidar points, speeds, tracks."""
    for form in FORMS:
        FORMS[form][0](tmp_path)
    for form, (_, truth, found) in FORMS.items():
        data = read_detections(form, tmp_path / truth, tmp_path / found)
        order = np.argsort([f"{data.frame_name[f]} {x:08.4f}" for f, x in
                            zip(data.annotations.frame, data.annotations.box_3d[:, 0], strict=True)])  # fmt: skip
        boxes = data.annotations.box_3d[order]
        expected = TRUTH.sort_values(["sequence", "frame", "x"])[list(BOX)].to_numpy()
        turn = np.angle(np.exp(1j * (boxes[:, 6] - expected[:, 6])))
        assert np.abs(boxes[:, :6] - expected[:, :6]).max() < 1e-9, form
        # A box seven numbers of which turn about z keeps its yaw where the sensor is tilted, to rounding.
        assert np.abs(turn).max() < 1e-9, form
        attributes = data.annotations.attributes
        assert len(set(attributes["track"].tolist())) in (3, len(TRUTH))
        if form in ("argoverse", "waymo"):
            assert set(attributes["num_points"]) == {9}
        if form == "waymo":
            assert set(attributes["speed"]) == {5}


def poses(drive):
    """The vehicle in the city: it drives, turns, and pitches."""
    number = np.arange(len(STAMPS))
    turn = Rotation.from_euler("zyx", np.column_stack([0.3 * number, 0.02 * number, 0 * number]))
    return turn, np.column_stack([100 + 2 * number, 50 - number, 0.1 * number + (drive == "b")])


def write_city(folder):
    """The detections of `write_argoverse` in the frame of the city, with the poses of each log."""
    found = pd.read_feather(folder / "found.feather")
    for drive in DRIVES:
        turn, place = poses(drive)
        x, y, z, w = turn.as_quat().T
        table = pd.DataFrame({"timestamp_ns": STAMPS, "qw": w, "qx": x, "qy": y, "qz": z})
        table[["tx_m", "ty_m", "tz_m"]] = place
        table.to_feather(folder / "val" / drive / "city_SE3_egovehicle.feather")
        rows = found["log_id"] == drive
        at = [STAMPS.index(each) for each in found.loc[rows, "timestamp_ns"]]
        own = Rotation.from_quat(found.loc[rows, ["qx", "qy", "qz", "qw"]].to_numpy(copy=True))
        found.loc[rows, ["qx", "qy", "qz", "qw"]] = (turn[at] * own).as_quat()
        centre = found.loc[rows, ["tx_m", "ty_m", "tz_m"]].to_numpy(copy=True)
        found.loc[rows, ["tx_m", "ty_m", "tz_m"]] = turn[at].apply(centre) + place[at]
    found.to_feather(folder / "city.feather")


def test_detections_in_the_frame_of_the_city_are_those_in_that_of_the_vehicle(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_argoverse(tmp_path)
    write_city(tmp_path)
    plain = read_detections("argoverse", "val", "found.feather").detections.box_3d
    city = read_detections("argoverse", "val", "city.feather", detection_frame="city").detections.box_3d
    assert np.abs(city[:, :6] - plain[:, :6]).max() < 1e-9
    assert np.abs(np.angle(np.exp(1j * (city[:, 6] - plain[:, 6])))).max() < 1e-9


def test_no_detections_and_no_track(tmp_path, monkeypatch):
    """A detector that reports nothing writes tables whose columns have no type; a track may be unknown."""
    monkeypatch.chdir(tmp_path)
    write_argoverse(tmp_path)
    pd.DataFrame({name: [] for name in pd.read_feather("found.feather")}).to_feather("none.feather")
    truth = pd.read_feather("val/a/annotations.feather").assign(track_uuid=None)
    truth.to_feather("val/a/annotations.feather")
    data = read_detections("argoverse", "val/a", "none.feather")
    assert (len(data.annotations), len(data.detections)) == (18, 0)
    assert set(data.annotations.attributes["track"]) == {-1}
