"""How fast the closed loop and RobROC are, and with how much memory; see `test_benchmarks.py`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.benchmark
CASES = Path(__file__).resolve().parent / "closedloop_cases.py"


def measured(case: str) -> dict[str, float | str]:
    """The figures of one case, from a process of its own."""
    done = subprocess.run(
        [sys.executable, str(CASES), case], capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, float | str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("case", "least"), [("whole_study_in_steps", 100), ("whole_study_in_events", 100), ("crowded_logs", 20)]
)
def test_driving_beside_plain_python(case: str, least: float) -> None:
    found = measured(case)
    ours, plain, peak = (float(found[name]) for name in ("ours_s", "peer_s", "peak_mib"))
    print(
        f"\n{case}: ours {ours:.3g} s, plain Python {plain:.4g} s, speed-up {plain / ours:.0f} "
        f"(target >= {least:g}); peak {peak:.0f} MiB (target <= 2048 MiB); {found['detail']}"
    )
    assert plain / ours >= least
    assert peak <= 2048


@pytest.mark.parametrize("case", ["long_curves", "long_curves_unordered"])
def test_the_worst_case_of_long_curves_beside_one_sort(case: str) -> None:
    found = measured(case)
    ours, sort = float(found["ours_s"]), float(found["peer_s"])
    promised = case == "long_curves"  # points in any order need sorts of their own
    print(
        f"\nRobROC of two curves of 10^5 points: {ours * 1e3:.1f} ms, one sort {sort * 1e3:.1f} ms, "
        f"ratio {ours / sort:.2f} ({'target <= 5' if promised else 'no target'}); {found['detail']}"
    )
    assert not promised or ours / sort <= 5
