"""`verify closed-loop` on the files of other data sets: small ones made by hand, and the recorded ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typed_documents import read_back

from verifier.base.errors import ExitCode
from verifier.cli import main
from verifier.closedloop.fieldsafe import _utm
from verifier.closedloop.logfiles import read_logs
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.document import write_confusion

COMMON = ["--control-radius", "2", "--safety-radius", "1.5", "--match-distance", "1", "--levels", "9", "--draws", "0"]
LABELS = (frozenset({"ped"}), frozenset())


def result(capsys, *arguments):
    assert main(["closed-loop", *arguments, "--json"]) == ExitCode.SATISFIED
    document = json.loads(capsys.readouterr().out)
    read_back(document)
    return document


def areas(document, metric="closed_loop"):
    (table,) = [each for each in document["metrics"] if each["metric"] == metric]
    return {(row["name"], cell["detector"]): cell["area"] for row in table["rows"] for cell in row["cells"]}


def complaint(capsys, code, *arguments):
    assert main(["closed-loop", *arguments]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err


# --- FieldSAFE. A tractor drives north at 2 m/s for 40 s; somebody stands on its way, 30 m from its start.


def counts_file(path, found, alarms=0, labels=LABELS):
    """Of ten people so many are reported, and so many false positives in ten empty images; one bin up to 100 m."""
    size = len(labels)
    table = np.zeros((1, 1, size, size), dtype=np.int64)
    table[0, 0, 0, 0], table[0, 0, -1, 0] = found, 10 - found
    table[0, 0, 0, -1], table[0, 0, -1, -1] = alarms, 10 - alarms
    write_confusion(ConfusionCounts("class", labels, Bins((0.0, 100.0)), None, table), path)


@pytest.fixture
def field(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    metre = 1 / 111_300
    fixes = [f"{t / 5},{56 + 0.4 * t * metre!r},8.4" for t in range(-5, 206)]
    Path("gps.csv").write_text("\n".join(["clock,lat,lon", *fixes]) + "\n")
    ((east, north),) = _utm(np.array([56 + 30 * metre]), np.array([8.4])).tolist()
    x, y = 50 * east - 23_000_000, 310_000_000 - 50 * north
    seen = [f"0,{x!r},{y!r},{k},{k / 25},0,human" for k in range(1001)]
    Path("people.csv").write_text("\n".join(["track_id,x,y,frame,timestamp,lost,label", *seen]) + "\n")
    Path("matrix.csv").write_text("0,-50,310000000\n50,0,-23000000\n0,0,1\n")
    for name, found, alarms in (("sharp", 10, 0), ("blind", 0, 0), ("half", 5, 2)):
        counts_file(tmp_path / f"{name}.json", found, alarms)
    return tmp_path


FIELD = ["people.csv", "--format", "fieldsafe", "--positions", "gps.csv", "--matrix", "matrix.csv", "--window", "10",
         *COMMON]  # fmt: skip


def test_a_field_by_hand(field, capsys):
    # Four pieces of 20 m. From the first one the straight extension leads to 30 m, in the second the person stands:
    # positive. Behind the person the way is free.
    given = ["--cm", "sharp.json", "--cm", "none=blind.json", "--cm", "sharp@fog=blind.json", "--validation", "drawn"]
    document = result(capsys, *FIELD, *given)
    assert document["logs"] == {
        "positive": 2, "negative": 2, "truth_never_stops": [], "truth_breaks_safety_radius": []
    }  # fmt: skip
    for metric in ("closed_loop", "safety_radius"):
        assert areas(document, metric) == {("baseline", "sharp"): 1, ("baseline", "none"): 0, ("fog", "sharp"): 0}
    assert {(each["role"], each["name"]) for each in document["inputs"]} == {
        ("logs", "people.csv"), ("positions", "gps.csv"), ("matrix", "matrix.csv"),
        ("confusion", "sharp.json"), ("confusion", "blind.json"),
    }  # fmt: skip
    settings = document["settings"]
    assert (settings["format"], settings["validation"], settings["window_s"]) == ("fieldsafe", "drawn", 10)
    assert (settings["every"], settings["field_of_view_deg"]) == (5, 45)
    remarks = document["remarks"]
    assert any(
        "the detections of source 'none' are no detector's: they are drawn at random" in each for each in remarks
    )
    assert any("all sources are drawn from the same random numbers" in each for each in remarks)
    assert any("validation logs: detections drawn independently on the same drive" in each for each in remarks)


def test_the_seed_decides_what_is_drawn(field, capsys):
    given = [*FIELD, "--cm", "half.json", "--validation", "drawn", "--metric", "roc_a"]
    first, again, other = (result(capsys, *given, "--seed", seed) for seed in ("0", "0", "1"))
    assert first == again
    assert first["metrics"] != other["metrics"]


def test_logs_are_written_and_read_back(field, capsys):
    given = [*FIELD, "--cm", "half.json", "--validation", "self", "--position-error", "0.1"]
    document = result(capsys, *given, "--write-logs", "tables")
    logs = read_logs("tables")
    assert logs.names == ("fieldsafe/1", "fieldsafe/2", "fieldsafe/3", "fieldsafe/4")
    again = result(capsys, "tables", *COMMON, "--validation", "self")
    assert again["metrics"] == document["metrics"]
    assert set(again["remarks"]) == set(document["remarks"])
    assert "--write-logs: 'tables' exists already" in complaint(
        capsys, ExitCode.USAGE, *given, "--write-logs", "tables"
    )


def test_who_is_out_of_view_is_not_seen(field, capsys):
    given = [*FIELD, "--cm", "sharp.json", "--validation", "self", "--metric", "closed_loop"]
    # Only 5 m far: the person comes into view at 25 m, in the second piece. From the others nobody is in the way.
    near = result(capsys, *given, "--range", "5")
    assert near["logs"]["positive"] == 1
    assert any("within 45 degrees of the heading and 5 m is looked at" in each for each in near["remarks"])
    everywhere = result(capsys, *given, "--field-of-view", "180")
    assert not any("is looked at" in each for each in everywhere["remarks"])


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (["--cm", "sharp.json", "--speed", "1"], 2, "--speed belongs to --format kitti_tracking, not to fieldsafe"),
        (["--cm", "sharp.json", "--detections", "a=b"], 2, "--detections belongs to --format nuscenes or kitti"),
        ([], 2, "--format fieldsafe needs --cm"),
        (["--cm", "=sharp.json"], 2, "--cm: expected FILE or NAME=FILE, got '=sharp.json'"),
        (["--cm", "sharp.json", "--cm", "sharp=half.json"], 2, "--cm: two are called 'sharp'"),
        (["--cm", "two.json"], 2, "say which class are people: --class NAME; it has car, ped"),
        (["--cm", "two.json", "--class", "pde"], 2, "unknown class of the confusion file 'pde'"),
        (["--cm", "nowhere.json"], 4, "nowhere.json: no such file"),
        (["--cm", "people.csv"], 4, "people.csv"),
        (["--cm", "sharp.json", "--matrix", "gps.csv"], 4, "gps.csv: expected three rows of three numbers"),
        (["--cm", "sharp.json", "--matrix", "none.csv"], 4, "none.csv: no such file"),
        (["--cm", "sharp.json", "--positions", "."], 4, "expected one CSV file, found 3"),
        (["--cm", "sharp.json", "--greatest-speed", "1"], 4, "that is faster than 1 m/s"),
        (["--cm", "sharp.json", "--longest-gap", "0.1"], 4, "no position for 0.2 s"),
        (["--cm", "sharp.json", "--output", "gps.csv"], 2, "--output: gps.csv is an input of this run"),
        (["--cm", "sharp.json", "--csv", "sharp.json"], 2, "--csv: sharp.json is an input of this run"),
        (["--cm", "sharp.json", "--write-logs", "gps.csv"], 2, "--write-logs: 'gps.csv' exists already"),
        (["--cm", "sharp.json", "--window", "100"], 4, "there is no negative log"),
        (["--cm", "sharp@fog=sharp.json"], 2, "there is no source 'sharp' with the detections on the images"),
    ],
)
def test_fields_that_are_refused(field, capsys, change, code, message):
    counts_file(field / "two.json", 5, 0, (LABELS[0], frozenset({"car"}), LABELS[1]))
    before = sorted(field.rglob("*"))
    assert message in complaint(capsys, code, *FIELD, "--validation", "self", *change)
    assert sorted(field.rglob("*")) == before


def test_bins_without_items_need_a_policy(field, capsys):
    counts_file(field / "known.json", 10)
    table = np.zeros((1, 2, 2, 2), dtype=np.int64)
    table[0, 0] = [[10, 0], [0, 10]]
    write_confusion(ConfusionCounts("class", LABELS, Bins((0.0, 10.0, 100.0)), None, table), field / "gaps.json")
    given = [*FIELD, "--cm", "gaps.json", "--validation", "self", "--metric", "closed_loop"]
    assert "[10, 100) m: the confusion file has no item" in complaint(capsys, ExitCode.BAD_INPUT, *given)
    document = result(capsys, *given, "--empty-columns", "neighbour")
    assert areas(document)["baseline", "gaps"] == 1
    assert any("bins without items follow policy 'neighbour'" in each for each in document["remarks"])


# --- KITTI tracking. Two sequences of 12 m at 3 m/s; in the first somebody stands 10 m ahead of its start.


@pytest.fixture
def kitti(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("label_02", "sees/Pedestrian", "blind/Pedestrian"):
        Path(folder).mkdir(parents=True)
    ahead = [10 - 0.3 * frame for frame in range(41)]
    size = "1.7 0.6 0.8"
    labels = [f"{k} 0 Pedestrian 0 0 0 1 1 9 9 {size} 0 1.7 {z!r} 0" for k, z in enumerate(ahead)]
    reports = [f"{k},1,1,1,9,9,5.0,{size.replace(' ', ',')},0,1.7,{z!r},0,0" for k, z in enumerate(ahead)]
    Path("label_02/0000.txt").write_text("\n".join(labels) + "\n")
    Path("label_02/0001.txt").write_text("")
    Path("frames.csv").write_text("seq,n_frames\n0000,41\n0001,41\n")
    for name, rows in (("sees", reports), ("blind", [])):
        Path(name, "Pedestrian/0000.txt").write_text("".join(f"{row}\n" for row in rows))
        Path(name, "Pedestrian/0001.txt").write_text("")
    return tmp_path


KITTI = ["label_02", "--format", "kitti_tracking", "--detections", "sees=sees", "--detections", "blind=blind",
         "--frames", "frames.csv", "--validation", "self", *COMMON]  # fmt: skip


def test_kitti_by_hand(kitti, capsys):
    document = result(capsys, *KITTI, "--speed", "3")
    assert (document["logs"]["positive"], document["logs"]["negative"]) == (1, 1)
    assert areas(document) == {("baseline", "sees"): 1, ("baseline", "blind"): 0}
    assert areas(document, "safety_radius") == {("baseline", "sees"): 1, ("baseline", "blind"): 0}
    assert any("straight ahead at 3 m/s: KITTI tracking has no ego pose" in each for each in document["remarks"])
    assert document["settings"]["speed_mps"] == 3
    assert {each["name"] for each in document["inputs"] if each["role"] == "detections"} == {
        f"{name}/Pedestrian/{sequence}.txt" for name in ("sees", "blind") for sequence in ("0000", "0001")
    }
    # Of the second sequence alone nothing is positive.
    alone = complaint(capsys, ExitCode.BAD_INPUT, *KITTI, "--speed", "3", "--sequence", "0001")
    assert "there is no positive log" in alone


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ([], 2, "--format kitti_tracking needs --speed"),
        (["--speed", "3", "--cm", "a.json"], 2, "--cm belongs to --format fieldsafe, not to kitti_tracking"),
        (["--speed", "3", "--longest-gap", "1"], 2, "--longest-gap belongs to --format tables or nuscenes or"),
        (["--speed", "3", "--validation", "drawn"], 2, "--validation drawn belongs to --format fieldsafe"),
        (["--speed", "3", "--detections", "sees"], 2, "--detections: two are called 'sees'"),
        (["--speed", "3", "--detections", "c=nowhere"], 4, "nowhere: no such file"),
        (["--speed", "3", "--frames", "sees"], 4, "sees: expected a file, found a directory"),
        (["--speed", "3", "--people", "Pedestrain"], 4, "there is no positive log"),
        (["--speed", "3", "--ignore", "everything"], 2, "unknown kind of fault to ignore 'everything'"),
        (["--speed", "3", "--output", "sees/Pedestrian/0000.txt"], 2, "is an input of this run"),
        (["--speed", "3", "--sequence", "0007"], 2, "unknown sequence '0007'"),
    ],
)
def test_kitti_that_is_refused(kitti, capsys, change, code, message):
    assert message in complaint(capsys, code, *KITTI, *change)


def test_options_of_other_formats_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    given = ["logs", *COMMON, "--validation", "self", "--window", "5"]
    assert "--window belongs to --format nuscenes or kitti_tracking or fieldsafe, not to tables" in complaint(
        capsys, ExitCode.USAGE, *given
    )
    with pytest.raises(SystemExit):
        main(["closed-loop", "logs", "--format", "kitti_tracking", "--field-of-view", "181"])


# --- nuScenes, recorded


def test_the_scene_of_nuscenes(shared, capsys):
    """The same as the reader's logs, cut and sorted, through files."""
    scene = shared / "data/nuscenes_mini_val/scene-0916"
    detectors = {"centerpoint": "det_centerpoint", "pointpillars": "det_pointpillars_trelpy.json"}
    given = [f"--detections={name}={scene / path}" for name, path in detectors.items()]
    radii = ["--control-radius", "6", "--safety-radius", "4", "--match-distance", "2", "--draws", "20"]
    more = ["--format", "nuscenes", "--window", "2.4", "--validation", "self", *given, *radii]
    document = result(capsys, str(scene / "gt.json"), *more)
    assert (document["logs"]["positive"], document["logs"]["negative"]) == (3, 5)
    assert [each["metric"] for each in document["metrics"]][-2:] == ["safety_radius", "closed_loop"]
    assert document["settings"]["detections"] == list(detectors)
    roles = [each["role"] for each in document["inputs"]]
    assert roles.count("logs") == 1
    assert roles.count("detections") > 2
    assert str(shared) not in json.dumps(document)
