"""How fast mutations are: `pytest tests/benchmarks/test_mutators.py --benchmark -s` prints the table of ratios."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cv2", reason="opencv-python-headless is not installed")

CASES = Path(__file__).resolve().parent / "mutator_cases.py"
MOST_OF_THE_FASTEST_PEER = 2.0
MOST_OF_A_BLUR = 20.0


def measured(case: str) -> list[dict[str, Any]]:
    """The rows of a case, from a process of its own in which every library keeps to one thread."""
    command, alone = [sys.executable, str(CASES), case], {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=alone, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return rows


@pytest.mark.benchmark
def test_every_mutator_is_at_most_twice_as_slow_as_the_fastest_peer() -> None:
    ratios = {}
    for row in measured("simple"):
        ratios[row["mutation"]] = row["ours_s"] / min(row["peers_s"].values())
        peers = ", ".join(f"{name} {1e3 * seconds:.2f}" for name, seconds in row["peers_s"].items())
        print(
            f"\n{row['mutation']}: ours {1e3 * row['ours_s']:.2f} ms, {peers}; ratio {ratios[row['mutation']]:.2f}",
            end="",
        )
    print(f"\nlargest ratio {max(ratios.values()):.2f} (target <= {MOST_OF_THE_FASTEST_PEER:g})")
    assert {name: ratio for name, ratio in ratios.items() if ratio > MOST_OF_THE_FASTEST_PEER} == {}


@pytest.mark.benchmark
def test_defocus_takes_at_most_twenty_blurs() -> None:
    ratios = {}
    for row in measured("out_of_focus"):
        ours, blur, exact = row["ours_s"], row["peers_s"]["blur of bytes"], row["peers_s"]["blur of float32"]
        ratios[row["mutation"]] = ours / blur
        print(
            f"\n{row['mutation']}: ours {1e3 * ours:.2f} ms, one blur with {row['widest_px']:.2f} px of bytes "
            f"{1e3 * blur:.2f} ms, ratio {ours / blur:.1f}; of float32 {1e3 * exact:.2f} ms, {ours / exact:.1f}",
            end="",
        )
    print(f"\nlargest ratio {max(ratios.values()):.1f} (target <= {MOST_OF_A_BLUR:g})")
    assert {name: ratio for name, ratio in ratios.items() if ratio > MOST_OF_A_BLUR} == {}
