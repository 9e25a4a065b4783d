"""Two real detectors and two planners compared draw by draw: the example's whole path on the KITTI drives."""

import subprocess
import sys


def test_two_detectors_on_kitti_are_compared(root, shared, tmp_path):
    data = shared / "data/kitti_tracking"
    plot = tmp_path / "plot.png"
    found = subprocess.run(
        [
            sys.executable,
            str(root / "examples/08_which_detector.py"),
            *map(str, (data / "label_02", data / "det_pointrcnn", data / "det_rrc2d", plot)),
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert found.stderr == ""
    lines = found.stdout.splitlines()
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
    assert plot.stat().st_size > 10_000
