"""How fast confidence bounds are: `pytest tests/benchmarks --benchmark -s` prints the ratios."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).resolve().parent / "robust_cases.py"


@pytest.mark.benchmark
@pytest.mark.parametrize("case", ["corridor", "grid"])
def test_bounds_on_a_hundred_thousand_states(case):
    command = [sys.executable, str(CASES), case]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    ratio = found["ours_s"] / found["peer_s"]
    print(
        f"\nconfidence bounds, {case} of 10^5 states: ours {found['ours_s']:.2f} s, one sparse solve "
        f"{found['peer_s']:.3f} s, ratio {ratio:.1f} (target <= 20); peak {found['peak_mib']:.0f} MiB; "
        f"{found['detail']}"
    )
    assert ratio <= 20
