"""From real detections of two detectors to two verdicts: the example's whole path on the KITTI drives."""

import subprocess
import sys


def test_two_detectors_on_kitti(root, shared, tmp_path):
    data = shared / "data/kitti_tracking"
    plot = tmp_path / "plot.png"
    found = subprocess.run(
        [
            sys.executable,
            str(root / "examples/05_two_detectors_on_kitti.py"),
            *map(str, (data / "label_02", data / "det_pointrcnn", data / "det_rrc2d", plot)),
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert found.stderr == ""
    lines = found.stdout.splitlines()
    probabilities = {name: [float(p) for p in line.split(":")[1].split()] for name, line in
                     (("lidar", lines[1]), ("camera", lines[3]))}  # fmt: skip
    # At walking pace P is the recall in the first bin, 2 m before the crosswalk; speed needs more of them in a row.
    assert probabilities["lidar"][0] > probabilities["camera"][0] > 0.5
    for falling in probabilities.values():
        assert falling == sorted(falling, reverse=True)
    assert plot.stat().st_size > 10_000
