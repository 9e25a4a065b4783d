"""Logs of nuScenes, KITTI tracking and FieldSAFE, against what other people made of the same files."""

import csv
import json
import math
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from real_logs import DETECTORS, field_logs, scene_logs

from verifier.base.documents import read_document
from verifier.base.errors import InputError, UsageError
from verifier.cli import main
from verifier.closedloop.fieldsafe import _utm, fieldsafe_logs
from verifier.closedloop.from_sets import Placing, kitti_tracking_logs, nuscenes_logs
from verifier.closedloop.logfiles import read_logs, write_logs
from verifier.closedloop.logs import LogLimits
from verifier.closedloop.request import logs_and_validation
from verifier.closedloop.settings import ClosedLoopSettings
from verifier.closedloop.trade_offs import TradeOffsResult


@pytest.fixture(scope="module")
def scene(shared):
    return shared / "data/nuscenes_mini_val/scene-0916"


@pytest.fixture(scope="module")
def nuscenes(scene):
    return scene_logs(scene)


def in_vehicle(logs, image, point):
    """(n, 2) points ahead and to the left of the vehicle."""
    x, y = (point - logs.position_m[image]).T
    cos, sin = np.cos(logs.heading_rad[image]), np.sin(logs.heading_rad[image])
    return np.column_stack([x * cos + y * sin, y * cos - x * sin])


def test_nuscenes_poses(nuscenes, scene):
    frames = json.loads((scene / "gt.json").read_text())
    assert nuscenes.names == ("scene-0916",)
    assert nuscenes.image_count == len(frames) == 41
    times = [frame["timestamp_us"] for frame in frames]
    assert nuscenes.time_s.tolist() == [(time - times[0]) / 1e6 for time in times]
    step = np.diff(nuscenes.position_m, axis=0)
    assert np.hypot(*step.T).sum() == pytest.approx(93.442, abs=1e-3)  # by hand from ego2global
    # The vehicle drives where it looks: its heading is the direction from the pose before to the one after.
    east, north = (nuscenes.position_m[2:] - nuscenes.position_m[:-2]).T
    off = np.angle(np.exp(1j * (np.arctan2(north, east) - nuscenes.heading_rad[1:-1])))
    assert np.abs(off).max() < math.radians(5)


@pytest.mark.parametrize("source", ["gt", *DETECTORS])
def test_nuscenes_points(nuscenes, scene, source):
    """As many as in the table of the same scene, and about where it says: its plane is the vehicle's, which tilts
    against the ground, so that heights of some metres move points by centimetres."""
    with (scene / "flat_ego.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["source"] == source and row["class"] == "pedestrian"]
    expected = np.array([[float(row[name]) for name in ("frame", "x_ego_m", "y_ego_m")] for row in rows])
    if source == "gt":
        image, point = nuscenes.person_image, nuscenes.person_m
        with_points = [box for frame in json.loads((scene / "gt.json").read_text()) for box in frame["boxes"]]
        assert sum(box["name"] == "pedestrian" for box in with_points) == len(image)
    else:
        found = nuscenes.source(source)
        image, point = found.image, found.point_m
        scores = sorted(round(float(row["score"]), 4) for row in rows)
        assert sorted(found.strength.round(4).tolist()) == pytest.approx(scores, abs=2e-4)
    assert len(image) == len(rows)
    mine = np.column_stack([image, in_vehicle(nuscenes, image, point)])
    gaps = []
    for frame in range(41):
        here, there = mine[image == frame, 1:], expected[expected[:, 0] == frame, 1:]
        assert len(here) == len(there)
        if len(here):
            gaps += np.hypot(*(here[:, None] - there[None]).transpose(2, 0, 1)).min(axis=1).tolist()
    assert np.median(gaps) < 0.05
    assert max(gaps) < 0.5


def matrix(quaternion):
    """Rotation of a quaternion w, x, y, z: the products q i q*, q j q*, q k q* by Hamilton's rules."""
    w, x, y, z = quaternion

    def times(a, b):
        return (
            a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
            a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
            a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
            a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
        )

    turned = [times(times((w, x, y, z), unit), (w, -x, -y, -z))[1:] for unit in np.eye(4)[1:]]
    return np.array(turned).T / (w * w + x * x + y * y + z * z)


def test_nuscenes_points_by_the_poses(nuscenes, scene):
    """From the sensors' frames to the ground, one box after the other."""
    frames = json.loads((scene / "gt.json").read_text())
    origin = np.array(frames[0]["ego2global_translation"])
    boxes = [(frame, box) for frame in frames for box in frame["boxes"] if box["name"] == "pedestrian"]
    assert len(boxes) == len(nuscenes.person_m) > 400
    lines = (scene / "det_centerpoint/Pedestrian.txt").read_text().splitlines()
    reports = [list(map(float, line.split(","))) for line in lines]
    pairs = [(frame, "lidar2ego", box["box_lidar"][:3]) for frame, box in boxes]
    for row in reports[:200]:
        frame, (height, _, _, x, y, z) = frames[int(row[0])], row[7:13]
        pairs.append((frame, "cam2ego", (x, y - height / 2, z)))
    expected = []
    for frame, name, point in pairs:
        sensor = frame if name == "lidar2ego" else frame["cam_front"]
        ego = matrix(sensor[f"{name}_rotation_wxyz"]) @ point + sensor[f"{name}_translation"]
        place = matrix(frame["ego2global_rotation_wxyz"]) @ ego + frame["ego2global_translation"] - origin
        expected.append(place[:2])
    found = np.concatenate([nuscenes.person_m, nuscenes.source("centerpoint").point_m[:200]])
    assert np.abs(found - np.array(expected)).max() < 1e-9


def test_nuscenes_written_and_read_back(nuscenes, tmp_path):
    write_logs(nuscenes, tmp_path / "logs", "parquet")
    again = read_logs(tmp_path / "logs")
    for name in DETECTORS:
        assert np.array_equal(again.source(name).point_m, nuscenes.source(name).point_m)
    assert np.array_equal(again.position_m, nuscenes.position_m)


def test_nuscenes_that_is_refused(scene, tmp_path):
    frames = json.loads((scene / "gt.json").read_text())[:4]
    found = {"a": scene / "det_centerpoint"}

    def read(change=lambda frames: None, **more):
        changed = json.loads(json.dumps(frames))
        change(changed)
        (tmp_path / "gt.json").write_text(json.dumps(changed))
        return nuscenes_logs(tmp_path / "gt.json", found, ignore=("unknown_frames",), **more)

    assert read().image_count == 4

    def swap(frames):
        frames[2]["timestamp_us"] = frames[1]["timestamp_us"]

    def gap(frames):
        frames[3]["timestamp_us"] += 10_000_000

    def jump(frames):
        frames[2]["ego2global_translation"][0] += 1000

    with pytest.raises(InputError, match=r"gt\.json: /2/timestamp_us: \d+ is not later than"):
        read(swap)
    with pytest.raises(InputError, match=r"image 3 .*: 10\.4004 s after the one before"):
        read(gap)
    assert read(gap, limits=LogLimits(longest_gap_s=11)).image_count == 4
    with pytest.raises(InputError, match="m/s"):
        read(jump)
    with pytest.raises(UsageError, match="name the classes"):
        nuscenes_logs(scene / "gt.json", found, people=())
    assert len(read(people=("*",)).person_image) == sum(len(frame["boxes"]) for frame in frames)


def test_sources_over_other_frames(scene, tmp_path):
    results = json.loads((scene / "det_pointpillars_trelpy.json").read_text())
    results["results"].pop(next(iter(results["results"])))
    (tmp_path / "fewer.json").write_text(json.dumps(results))
    sources = {"a": scene / "det_centerpoint", "b": tmp_path / "fewer.json"}
    with pytest.raises(InputError, match="source 'b' answers 40 frames, the first source 41"):
        nuscenes_logs(scene / "gt.json", sources, ignore=("missing_frames", "unknown_frames"))


def test_kitti_tracking(shared):
    folder = shared / "data/kitti_tracking"
    sources = {"pointrcnn": folder / "det_pointrcnn"}
    logs = kitti_tracking_logs(folder / "label_02", sources, 3.0, folder / "sequences.csv", ("0013", "0016"))
    with (folder / "sequences.csv").open() as file:
        frames = {row["seq"]: int(row["n_frames"]) for row in csv.DictReader(file)}
    assert logs.names == ("0013", "0016")
    assert np.bincount(logs.image_log).tolist() == [frames["0013"], frames["0016"]]
    assert (
        logs.remarks[0] == "the vehicle is assumed to drive straight ahead at 3 m/s: KITTI tracking has no ego pose"
    )
    at = int(logs.first_image[1]) + 25
    assert logs.time_s[at] == 2.5
    assert logs.position_m[at].tolist() == [7.5, 0]
    # Frame 25 of the label file: x right, z forward in the camera frame.
    lines = [line.split() for line in (folder / "label_02/0016.txt").read_text().splitlines()]
    labels = [line for line in lines if line[0] == "25" and line[2] in ("Pedestrian", "Person")]
    expected = sorted((7.5 + float(line[15]), -float(line[13])) for line in labels)
    found = sorted(map(tuple, logs.person_m[logs.person_image == at].tolist()))
    assert len(found) > 3
    assert np.array(found) == pytest.approx(np.array(expected), abs=1e-9)
    lines = [line.split(",") for line in (folder / "det_pointrcnn/Pedestrian/0016.txt").read_text().splitlines()]
    reports = sorted((7.5 + float(line[12]), -float(line[10]), float(line[6])) for line in lines if line[0] == "25")
    source = logs.source("pointrcnn")
    rows = source.image == at
    mine = sorted(zip(*source.point_m[rows].T.tolist(), source.strength[rows].tolist(), strict=True))
    assert np.array(mine) == pytest.approx(np.array(reports), abs=1e-9)
    assert source.box_2d is not None
    assert logs.person_box_2d is not None


def test_kitti_at_rest(shared):
    folder = shared / "data/kitti_tracking"
    sources = {"pointrcnn": folder / "det_pointrcnn"}
    logs = kitti_tracking_logs(folder / "label_02", sources, 0.0, folder / "sequences.csv", ("0016",))
    assert not logs.position_m.any()


def test_kitti_that_is_refused(shared):
    folder = shared / "data/kitti_tracking"
    with pytest.raises(UsageError, match="'rrc' have no boxes in space"):
        kitti_tracking_logs(
            folder / "label_02", {"rrc": folder / "det_rrc2d"}, 3.0, folder / "sequences.csv", ("0016",)
        )


@pytest.fixture(scope="module")
def field(shared):
    return shared / "data/fieldsafe"


@pytest.fixture(scope="module")
def derived(field):
    """The table of tractor and people that was made of the same files, by time."""
    with (field / "tractor_people_5hz.csv").open() as file:
        rows = list(csv.DictReader(file))
    columns = ("t_s", "tractor_e", "tractor_n", "tractor_heading", "person_e", "person_n", "track_id")
    return {name: np.array([float(row[name]) for row in rows]) for name in columns}


def test_fieldsafe_against_the_derived_table(field, derived):
    logs = field_logs(field, smoothing_s=1e-6)  # that table has the GPS track as it is
    assert np.bincount(logs.person_image).tolist() == [4] * logs.image_count
    assert (logs.names, logs.positive.tolist()) == (("fieldsafe",), [True])
    times = np.unique(derived["t_s"])
    first = np.flatnonzero(derived["track_id"] == 0)
    rows = first[1 : 1 + logs.image_count]  # its first frame lies before the first position of the GPS
    assert logs.image_count >= len(times) - 2
    assert np.diff(logs.time_s) == pytest.approx(np.diff(derived["t_s"][rows]), abs=2e-3)
    tractor = np.column_stack([derived["tractor_e"], derived["tractor_n"]])[rows]
    shift = np.median(tractor - logs.position_m, axis=0)
    assert np.abs(tractor - shift - logs.position_m).max() < 0.002  # the table is rounded to millimetres
    for track in range(4):
        people = np.column_stack([derived["person_e"], derived["person_n"]])[derived["track_id"] == track]
        mine = logs.person_m.reshape(4, -1, 2)[track]  # the file has one track after the other
        assert np.abs(mine - (people[1 : 1 + logs.image_count] - shift)).max() < 0.002


def test_fieldsafe_smoothed(field, derived):
    rough, logs = field_logs(field, smoothing_s=1e-6), field_logs(field)
    # Centimetres of jitter go: steps of 0.2 s vary less from one to the next, and stay about 0.48 m.
    steps = [np.hypot(*np.diff(each.position_m, axis=0).T) for each in (rough, logs)]
    assert np.diff(steps[1]).std() < np.diff(steps[0]).std() / 3
    assert np.median(steps[1]) == pytest.approx(np.median(steps[0]), rel=0.02)
    # Its heading is that of the table, which took it from the track smoothed over 0.6 s. The first image that has
    # 0.3 s of the track before it is the fourth.
    heading = derived["tractor_heading"][derived["track_id"] == 0][3 : 3 + logs.image_count]
    off = np.degrees(np.abs(np.angle(np.exp(1j * (heading - logs.heading_rad)))))
    assert np.median(off) < 0.1
    assert off.max() < 5


def test_every_nth_frame(field):
    assert field_logs(field, every=25).image_count == pytest.approx(289, abs=1)


def meridian_utm(latitude_deg, longitude_deg):
    """UTM of zone 32 by its definition: on the central meridian north is 0.9996 times the arc of the meridian, and
    east + i north is an analytic function of longitude + i isometric latitude (complex Newton and Gauss-Legendre)."""
    flattening = 1 / 298.257223563
    square = flattening * (2 - flattening)
    e = math.sqrt(square)

    def isometric(phi):
        return np.arctanh(np.sin(phi)) - e * np.arctanh(e * np.sin(phi))

    phi0 = math.radians(latitude_deg)
    target = isometric(phi0) + 1j * math.radians(longitude_deg - 9)
    phi = complex(phi0)
    for _ in range(20):
        slope = (1 - square) / ((1 - square * np.sin(phi) ** 2) * np.cos(phi))
        phi -= (isometric(phi) - target) / slope
    nodes, weights = np.polynomial.legendre.leggauss(60)
    along = phi * (nodes + 1) / 2
    arc = phi / 2 * np.sum(weights * 6378137.0 * (1 - square) / (1 - square * np.sin(along) ** 2) ** 1.5)
    return 500_000 + 0.9996 * arc.imag, 0.9996 * arc.real


@pytest.mark.parametrize(
    ("latitude", "longitude"), [(56.066, 8.389), (0.5, 9.0), (45.0, 6.1), (70.0, 11.9), (30.0, 9.5)]
)
def test_utm_against_its_definition(latitude, longitude):
    found = _utm(np.array([latitude]), np.array([longitude]))[0]
    assert found == pytest.approx(meridian_utm(latitude, longitude), abs=1e-6)


def test_utm_against_the_markers(field):
    """The tractor drives where the markers of the field are: within some hundred metres of each."""
    markers = [line.split(";") for line in (field / "gps_marker_positions.csv").read_text().splitlines()[1:]]
    places = np.array([[float(row[3]), float(row[4])] for row in markers])
    tractor = _utm(np.array([56.0661]), np.array([8.3887]))[0]
    assert np.hypot(*(places - tractor).T).max() < 500


# A field of one's own: one degree of longitude is about 62 km at 56 degrees, one of latitude 111 km.
PEOPLE = "track_id,x,y,frame,timestamp,lost,label\n"
FIXES = "clock,lat,lon\n"
MATRIX = "0,-50,310000000\n50,0,-23000000\n0,0,1\n"


def own_field(tmp_path, people=None, fixes=None, matrix=MATRIX):
    if people is None:
        rows = [
            f"0,1000,2000,{k},{k / 25},0,human\n1,0,0,{k},{k / 25},1,human\n2,5,5,{k},{k / 25},0,drone\n"
            for k in range(51)
        ]
        people = PEOPLE + "".join(rows)
    if fixes is None:
        fixes = FIXES + "".join(f"{t / 10},{56 + t * 1e-6},8.4\n" for t in range(-10, 31))
    paths = [tmp_path / name for name in ("people.csv", "fixes.csv", "matrix.csv")]
    for path, text in zip(paths, (people, fixes, matrix), strict=True):
        path.write_text(text)
    return fieldsafe_logs(*paths)


def test_a_field_made_by_hand(tmp_path):
    logs = own_field(tmp_path)
    assert logs.image_count == 11
    assert logs.time_s == pytest.approx([k / 5 for k in range(11)])
    # Northwards by 1e-5 degrees a second: 1.113 m; UTM's scale and convergence 0.6 degrees west of its meridian.
    assert logs.heading_rad == pytest.approx([math.pi / 2] * 11, abs=0.01)
    assert np.hypot(*logs.position_m[-1]) == pytest.approx(2 * 1.1132, rel=2e-3)
    assert np.bincount(logs.person_image).tolist() == [1] * 11  # neither the lost one nor the drone
    assert np.ptp(logs.person_m, axis=0).tolist() == pytest.approx([0, 0], abs=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fixes": FIXES + "0,56,8\n"}, r"fixes\.csv: 1 positions; expected at least two"),
        ({"fixes": FIXES + "0,56,8\n1,56,8\n0.5,56,8\n"}, r"fixes\.csv:4: the clock goes back by 0\.5 s"),
        ({"fixes": FIXES + "0,56,8\n1,56,8\n5,56,8\n"}, r"fixes\.csv:4: no position for 4 s"),
        ({"fixes": FIXES + "0,56,8\n1,56,\n"}, r"fixes\.csv:3: lon: expected a finite number"),
        ({"fixes": FIXES + "100,56,8\n101,56,8\n"}, "no frame lies within the time of the positions"),
        ({"people": PEOPLE}, r"people\.csv: no frame in it"),
        ({"people": PEOPLE + "0,1,1,0,1.5,0,human\n1,1,1,0,1.6,0,human\n"}, r"people\.csv:3: another time than"),
        ({"people": PEOPLE + "0,1,1,0,1.5,0,human\n0,1,1,1,1.5,0,human\n"}, r"people\.csv:3: a later frame, but no"),
        ({"matrix": "1,2\n3,4\n"}, r"matrix\.csv: expected three rows of three numbers"),
        ({"matrix": "1,2,3\n3,4,x\n0,0,1\n"}, r"matrix\.csv: expected three rows"),
        ({"matrix": "1,2,3\n3,4,5\n0,1,1\n"}, r"matrix\.csv: expected three rows"),
        ({"matrix": "1,2,3\n2,4,5\n0,0,1\n"}, r"matrix\.csv: the matrix cannot be inverted"),
    ],
)
def test_fields_that_are_refused(tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        own_field(tmp_path, **change)


def test_a_tractor_that_stops_keeps_its_heading(tmp_path):
    fixes = FIXES + "".join(f"{t / 10},{56 + min(t, 5) * 1e-6 * 2},8.4\n" for t in range(-10, 31))
    logs = own_field(tmp_path, fixes=fixes)
    assert logs.heading_rad == pytest.approx([math.pi / 2] * 11, abs=0.01)
    assert np.hypot(*(logs.position_m[-1] - logs.position_m[-3])) == pytest.approx(0, abs=1e-6)


def test_an_archive_with_two_files(tmp_path, field):
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.csv", PEOPLE)
        archive.writestr("b.csv", PEOPLE)
    with pytest.raises(InputError, match="expected one CSV file, found 2"):
        fieldsafe_logs(
            tmp_path / "two.zip",
            field / "tractor_gps_coordinates.csv.zip",
            field / "utm2PixelsTransformMatrix.csv",
        )


def kitti_drive(folder):
    """Three frames of one sequence: a person 8 m ahead and 1 m to the right, seen in rectangles only; then nobody."""
    (folder / "label_02").mkdir()
    (folder / "rrc/Pedestrian").mkdir(parents=True)
    focal, centre_x, centre_y, height_m = 500.0, 320.0, 240.0, 1.5
    labels, found = [], []
    for frame, ahead in ((0, 8.0), (1, 7.7)):
        u, foot = centre_x + focal * 1.0 / ahead, centre_y + focal * height_m / ahead
        box = f"{u - 20} {foot - 100} {u + 20} {foot}"
        labels.append(f"{frame} 1 Pedestrian 0 0 0 {box} 1.7 0.6 0.6 1.0 1.65 {ahead} 0")
        found.append(f"{frame} 1 Pedestrian -1 -1 -10 {box} -1 -1 -1 -1000 -1000 -1000 -10 0.9")
    found.append("2 1 Pedestrian -1 -1 -10 10 20 30 60 -1 -1 -1 -1000 -1000 -1000 -10 0.8")  # its foot is in the sky
    (folder / "label_02/0000.txt").write_text("\n".join(labels) + "\n")
    (folder / "rrc/0000.txt").write_text("\n".join(found) + "\n")
    (folder / "frames.csv").write_text("seq,n_frames\n0000,3\n")
    (folder / "camera.csv").write_text(f"fx,fy,cx,cy,height_m\n{focal},{focal},{centre_x},{centre_y},{height_m}\n")
    return folder


def test_rectangles_are_placed_on_the_ground_or_by_depth(tmp_path):
    folder = kitti_drive(tmp_path)
    given = folder / "label_02", {"rrc": folder / "rrc"}, 3.0, folder / "frames.csv"
    logs = kitti_tracking_logs(*given, placing=Placing(str(folder / "camera.csv")))
    # The vehicle is at 0.3 m when it takes the second image: 0.3 + 7.7 = 8 m, and 1 m to the right.
    assert logs.source("rrc").point_m[:2] == pytest.approx(np.array([[8.0, -1.0], [8.0, -1.0]]), abs=1e-9)
    assert np.isnan(logs.source("rrc").point_m[2]).all()
    assert "rrc: 1 of 3 detections have no place: they stop nobody" in logs.remarks
    depth = folder / "depth/0000"
    depth.mkdir(parents=True)
    for frame in range(3):
        np.save(depth / f"{frame:06d}.npy", np.full((480, 640), 6.0))
    deep = kitti_tracking_logs(*given, placing=Placing(str(folder / "camera.csv"), str(folder / "depth")))
    # At 6 m the middle of a rectangle 1 m to the right at 8 m is 6/8 m to the right.
    assert deep.source("rrc").point_m[0] == pytest.approx([6.0, -6 / 8], abs=1e-9)
    assert deep.person_m == pytest.approx(logs.person_m)  # people have boxes in space


def test_the_extension_of_the_path_says_which_logs_are_positive(tmp_path):
    """Somebody 8 m ahead of a drive of 0.6 m: on the path that goes on for 10 m, beyond the one that does for 3 m."""
    folder = kitti_drive(tmp_path)
    chosen = ClosedLoopSettings(
        logs=f"{folder}/label_02",
        format="kitti_tracking",
        detections=(f"rrc={folder}/rrc",),
        frames=f"{folder}/frames.csv",
        calibration=f"{folder}/camera.csv",
        speed=3.0,
        validation="self",
        control_radius=2.0,
        safety_radius=1.0,
    )
    for extension, positive in ((10.0, True), (3.0, False)):
        logs, _ = logs_and_validation(replace(chosen, path_extension=extension))
        assert logs.positive.tolist() == [positive]


def test_people_whose_feet_stand_on_no_ground_are_refused_by_name(tmp_path):
    folder = kitti_drive(tmp_path)
    nowhere = "-1 -1 -1 -1000 -1000 -1000 -10"
    labels = [f"0 1 Pedestrian 0 0 0 300 200 340 330 {nowhere}", f"2 1 Pedestrian 0 0 0 300 100 340 200 {nowhere}"]
    (folder / "label_02/0000.txt").write_text("\n".join(labels) + "\n")
    with pytest.raises(InputError, match="1 of 2 people have no place, the first in frame '0000/000002'"):
        kitti_tracking_logs(
            folder / "label_02",
            {"rrc": folder / "rrc"},
            3.0,
            folder / "frames.csv",
            placing=Placing(str(folder / "camera.csv")),
        )


def test_rocs_ask_for_no_positions_and_give_what_they_give_with_them(tmp_path, capsys):
    folder = kitti_drive(tmp_path)
    files = ["closed-loop", f"{folder}/label_02", "--format", "kitti_tracking", "--detections", f"rrc={folder}/rrc"]
    files += ["--frames", f"{folder}/frames.csv", "--validation", "self", "--draws", "0", "--json"]
    assert main([*files, "--metric", "roc_a"]) == 0
    (alone,) = json.loads(capsys.readouterr().out)["metrics"]
    placed = [
        "--speed",
        "3",
        "--calibration",
        f"{folder}/camera.csv",
        "--control-radius",
        "2",
        "--safety-radius",
        "1",
    ]
    assert main([*files, *placed, "--metric", "roc_a"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert read_document(TradeOffsResult, document, "loop.json").inputs[-1].role == "calibration"
    assert str(folder) not in json.dumps({**document, "command": []})
    (beside,) = document["metrics"]
    assert alone["rows"] == beside["rows"]
    # Two people are found without a false positive, which comes at 1/3 per image, where efficiency is 0.
    assert alone["rows"][0]["cells"][0]["area"] == 1
    for more, complaint in (
        ([], "needs --speed"),
        (["--speed", "3"], "name the control radius"),
        (["--metric", "roboticizer", "--speed", "3"], "have no boxes in space"),
        (["--metric", "roc_a", "--depth-folder", "depth"], "--depth-folder needs --calibration"),
    ):
        assert main([*files, *more]) == 2
        assert complaint in capsys.readouterr().err
