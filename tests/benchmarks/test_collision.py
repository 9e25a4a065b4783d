"""How fast collision maps and their intervals are, and with how much memory: `--benchmark -s` prints a line each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.benchmark
CASES = Path(__file__).resolve().parent / "collision_cases.py"


def measured(case, what, peer, target=""):
    """The figures of a case, measured in a process of its own.

    One thread each: threads that wait for each other make scipy's many small products ten times slower on a busy
    machine, which would flatter us.
    """
    environment = {**os.environ, **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")}
    command = [sys.executable, str(CASES), case]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    speedup = found["peer_s"] / found["ours_s"]
    print(
        f"\n{what}: ours {found['ours_s']:.3g} s, {peer} {found['peer_s']:.3g} s, speed-up {speedup:.3g} "
        f"({target or 'no target'}); peak {found['peak_mib']:.0f} MiB (target < 1024 MiB); {found['detail']}"
    )
    assert found["peak_mib"] < 1024
    return speedup


def test_map_with_all_subsamples_is_200_times_faster_than_a_loop():
    what = "100 x 100 points, 20,000 pairs, Algorithm 1"
    assert measured("map_with_intervals", what, "looping scipy's gaussian_kde", "target >= 200") >= 200


def test_map_against_scipy_used_well():
    measured("map_without_loop", "the same", "gaussian_kde per speed and subsample", "no target")


def test_a_million_pairs_stay_within_a_gibibyte():
    measured("million_pairs", "100 x 100 points, a million pairs, Algorithm 1", "sorting them 100 times")


def test_bootstrap_is_faster_than_a_thousand_maps():
    what = "bootstrap of 1,000 replicates, 100 x 100 points, 20,000 pairs"
    assert measured("all_intervals", what, "as many maps", "target >= 3") >= 3
