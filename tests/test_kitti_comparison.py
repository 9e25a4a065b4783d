"""Two real detectors on the KITTI drives: the whole path of two examples, and average precision beside P."""

import json
import runpy
import sys

import pytest

from verifier.cli import main


@pytest.fixture
def printed(root, shared, tmp_path, monkeypatch, capfd):
    """The lines that an example prints about both detectors; its picture is written."""

    def run(name):
        data, plot = shared / "data/kitti_tracking", tmp_path / "plot.png"
        files = (data / "label_02", data / "det_pointrcnn", data / "det_rrc2d", plot)
        monkeypatch.setattr(sys, "argv", [name, *map(str, files)])
        runpy.run_path(str(root / "examples" / name), run_name="__main__")
        found = capfd.readouterr()
        assert found.err == ""
        assert plot.stat().st_size > 10_000
        return found.out.splitlines()

    return run


def test_two_detectors_on_kitti(printed):
    lines = printed("05_two_detectors_on_kitti.py")
    probabilities = {name: [float(p) for p in line.split(":")[1].split()] for name, line in
                     (("lidar", lines[1]), ("camera", lines[3]))}  # fmt: skip
    # At walking pace P is the recall in the first bin, 2 m before the crosswalk; speed needs more of them in a row.
    assert probabilities["lidar"][0] > probabilities["camera"][0] > 0.5
    for falling in probabilities.values():
        assert falling == sorted(falling, reverse=True)


def test_two_detectors_on_kitti_are_compared(printed):
    lines = printed("08_which_detector.py")
    worst = {line.split("  ")[1]: float(line.split()[2]) for line in lines[1:5]}
    assert max(worst, key=worst.get) == "PointRCNN, cautious"
    assert min(worst, key=worst.get) == "RRC, feedback"
    # The planners see the same reports, so one is better than the other in every draw. Nearby the lidar's detector
    # sees nine pedestrians of ten and the camera's not six, in four drives: likely, and not settled.
    chances = {line[2:34].strip(): [float(chance) for chance in line[34:].split()] for line in lines[6:10]}
    own, itself, feedback, cautious = chances["PointRCNN, cautious"]
    assert (own, itself) == (1.0, 0.5)
    assert 0.95 < feedback <= 1
    assert 0.7 < cautious < 0.95


def test_average_precision_and_p_rank_the_two_detectors_on_pedestrians_otherwise(shared, root, tmp_path, capfd):
    """From the published results to P with AP beside it: RRC has the better AP, PointRCNN the better P, and the bin
    nearest to the car, where it sees more, is what P depends on."""
    data, files = shared / "data/kitti_tracking", []
    (tmp_path / "classes.txt").write_text("Pedestrian -> ped\nPerson* -> ped\nDontCare -> dont_care\n* -> ignore\n")
    unseen = [part for drive in ("0001", "0004", "0007", "0015") for part in ("--sequence", drive)]
    for name, folder in (("PointRCNN", "det_pointrcnn"), ("RRC", "det_rrc2d")):
        paths = ["--annotations", str(data / "label_02"), "--detections", str(data / folder)]
        matching = ["--affinity", "iou_2d", "--match-threshold", "0.5", "--bins", "0,10,20,30,40,50,inf"]
        output = [
            "--class-map",
            str(tmp_path / "classes.txt"),
            "--average-precision",
            "-o",
            f"{tmp_path}/{name}.json",
        ]
        assert main(["confusion", "--format", "kitti_tracking", *paths, *unseen, *matching, *output]) == 0
        files += ["--cm", f"{name}={tmp_path}/{name}.json"]
    capfd.readouterr()
    choices = ["--metrics", "--env", "ped", "--planner", "feedback", "--set", "vmax=1", "--draws", "400", "--json"]
    spec = str(root / "specs/car_pedestrian.ltl")
    assert main(["compare", spec, *files, *choices, "--requirement", "stops_for_pedestrians"]) == 0
    (found,) = json.loads(capfd.readouterr().out)["specs"]
    (asked,) = found["requirements"]
    p = {each["detector"]: each["points"][each["worst"]]["probability"] for each in asked["entries"]}
    ap = {each["detector"]: each["average_precision"]["value"] for each in found["metrics"]}
    near = {each["detector"]: each["bins"][0]["recall"]["value"] for each in found["metrics"]}
    assert (ap["PointRCNN"], ap["RRC"]) == pytest.approx((0.6226, 0.6438), abs=2e-3)
    assert p["PointRCNN"] > p["RRC"] + 0.2
    (reversal,) = asked["reversals"]
    assert (reversal["first"], reversal["second"]) == ("PointRCNN", "RRC")
    assert [each["bin"] for each in reversal["bins"]] == ["[0, 10) m"]
    # The nearest bin alone decides: each has the other's P with the other's rates there.
    assert reversal["bins"][0]["first"] == pytest.approx(p["RRC"], abs=1e-9)
    assert reversal["bins"][0]["second"] == pytest.approx(p["PointRCNN"], abs=1e-9)
    assert near["PointRCNN"] > near["RRC"] + 0.25
    assert [each["matters"] for each in found["metrics"][0]["bins"]] == [True] + [False] * 5
    assert [len(each["drives"]) for each in found["metrics"]] == [4, 4]
