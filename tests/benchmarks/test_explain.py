"""How fast explanations are: `pytest tests/benchmarks/test_explain.py --benchmark -s` prints a line for each case.

Every case of `explain_cases.py` is measured in a process of its own, ours and the peer in turn.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def measured(case: str) -> dict[str, float | str]:
    """The figures of one case, from a process of its own."""
    command = [sys.executable, str(HERE / "explain_cases.py"), case]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    found: dict[str, float | str] = json.loads(done.stdout)
    return found


@pytest.mark.benchmark
@pytest.mark.parametrize("case", ["gradients_shipped", "gradients_large", "gradients_jumping"])
def test_all_gradients_cost_at_most_five_checks(case: str) -> None:
    found = measured(case)
    ours, peer = float(found["ours_s"]), float(found["peer_s"])
    print(
        f"\nall gradients of one requirement: ours {ours:.4g} s, the batch engine's check {peer:.4g} s, "
        f"ratio {ours / peer:.3g} (target <= 5); peak {float(found['peak_mib']):.0f} MiB; {found['detail']}"
    )
    assert ours <= 5 * peer


@pytest.mark.benchmark
def test_the_hundred_most_probable_runs_of_a_large_chain() -> None:
    found = measured("most_probable_runs")
    ours, peer = float(found["ours_s"]), float(found["peer_s"])
    print(
        f"\n100 most probable violating runs: ours {ours:.4g} s (target <= 5 s), Storm's paths alone {peer:.4g} s, "
        f"ratio {ours / peer:.3g} (no target); peak {float(found['peak_mib']):.0f} MiB; {found['detail']}"
    )
    assert ours <= 5
