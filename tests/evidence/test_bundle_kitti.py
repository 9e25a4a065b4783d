"""The counts that example 15 holds are those of the data: counted anew, its bundle tells the same."""

import subprocess
import sys


def test_the_counts_of_the_kitti_example_are_those_of_the_data(root, shared):
    data = shared / "data/kitti_tracking"
    example = root / "examples/15_evidence_for_kitti.py"
    folders = [str(data / name) for name in ("label_02", "det_pointrcnn", "det_rrc2d")]
    found = subprocess.run(
        [sys.executable, str(example), *folders], capture_output=True, text=True, timeout=120, check=False
    )
    assert found.stderr == ""
    _, _, promised = example.read_text().partition("# Expected output:\n")
    assert found.stdout == "".join(
        line.removeprefix("#").removeprefix(" ") for line in promised.splitlines(keepends=True)
    )
