"""The counts that example 15 holds are those of the data: recounted, its bundle tells the same."""

import re
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
    expected = "".join(line.removeprefix("#").removeprefix(" ") for line in promised.splitlines(keepends=True))
    mine, others = without_doubts(found.stdout), without_doubts(expected)
    # Drive by drive the bounds are those of drives, and four of them are few: they do not decide what items do.
    differing = [pair for pair in zip(mine[0], others[0], strict=True) if pair[0] != pair[1]]
    line = "stops_for_pedestrians       {:<13} P = 0.8556"
    assert differing == [(line.format("inconclusive"), line.format("violated"))]
    assert [doubts - others for doubts, others in zip(mine[1], others[1], strict=True)] == [
        {"few drives"},
        {"few drives", "too few items"},
    ]
    assert all(doubts >= others for doubts, others in zip(mine[1], others[1], strict=True))


def without_doubts(text):
    """The lines that name no doubt, and the names of the doubts about each requirement that has some."""
    doubts, lines = [], []
    for line in text.splitlines():
        numbered = re.fullmatch(r"  D\d+ (.*)", line)
        if numbered is None:
            lines.append(line)
            doubts.append(set())
        else:
            doubts[-1].add(numbered[1])
    return lines, [names for names in doubts if names]
