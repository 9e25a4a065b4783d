"""How fast, against whom, and with how much memory: `pytest tests/benchmarks --benchmark -s` prints a line for each.

Every case of `cases.py` and `detection_cases.py` is measured in a process of its own, so that its memory is its own.
The ratio is ours to the peer's, measured in turn in the same process; a speed-up has it the other way round.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
DETECTIONS = "detection_cases.py"


@dataclass(frozen=True)
class Benchmark:
    """A case and what it must reach; None where nothing was promised.

    Attributes:
        case: its name in `file`.
        what: for the printed line.
        peer: what it is compared with.
        seconds: most seconds of ours.
        ratio: most of ours / peer, or with `speedup` least of peer / ours.
        file: where the case is.
    """

    case: str
    what: str
    peer: str
    seconds: float | None = None
    ratio: float | None = None
    speedup: bool = False
    file: str = "cases.py"


BENCHMARKS = [
    Benchmark("whole_process", "(a) verify run, whole process", "importing its libraries", ratio=4),
    Benchmark("figure", "(b) figure of 55 points", "55 checks by a running Storm", seconds=3),
    Benchmark("figure_with_both_matrices", "(b) figure, both matrices", "110 checks by a running Storm", seconds=6),
    Benchmark("million_states", "(c) skeleton of 10^6 states", "copying its arrays", seconds=2),
    Benchmark("refilled", "(c) refilling that skeleton", "copying its values", ratio=10),
    Benchmark("handed_over", "(d) 10^6 states to Storm", "writing and reading the bytes", seconds=0.6),
    Benchmark("many_matrices", "(e) 10,000 matrices", "as many Storm calls", ratio=50, speedup=True),
    Benchmark("many_matrices_feedback", "(e) 10,000 matrices", "as many Storm calls", ratio=50, speedup=True),
    Benchmark("one_check", "10^6 states, CPU s", "one check by Storm", ratio=3, file="large_cases.py"),
    Benchmark("random_walk", "batch engine, one component", "one check by Storm", speedup=True),
    Benchmark("deciding_world", "LTL where the world decides", "Storm", ratio=5),
    Benchmark("planner_table", "a planner of 5,856 rows", "pandas reading and joining them", seconds=2, ratio=30),
    Benchmark("remembered", "a pedestrian remembered by run:5", "the same without memory", ratio=15),
    Benchmark("texts", "DRN and PRISM of 10^5 states", "writing the bytes"),
    Benchmark("images_and_a_sort", "image detections to counts", "a lexsort of them", ratio=6, file=DETECTIONS),
    Benchmark(
        "images_and_supervision", "images as in COCO val", "supervision", ratio=4, speedup=True, file=DETECTIONS
    ),
    Benchmark("crowded_images_and_supervision", "crowded images", "supervision", speedup=True, file=DETECTIONS),
    *(
        Benchmark(f"coco_and_{name}", "COCO files to counts, whole process", name, speedup=True, file=DETECTIONS)
        for name in ("supervision", "pycocotools", "hotcoco")
    ),
    Benchmark(
        "kitti_and_imports", "KITTI to counts, whole process", "importing its libraries", ratio=3.2, file=DETECTIONS
    ),
    Benchmark(
        *("nuscenes_and_the_devkit", "frames as in nuScenes val", "the devkit's accumulate"),
        ratio=30,
        speedup=True,
        file=DETECTIONS,
    ),
    Benchmark("killed_stream", "a stream killed five times", "the same, not killed", file=DETECTIONS),
    Benchmark(
        "killed_remembered_stream",
        "a stream with contexts killed five times",
        "the same, not killed",
        file=DETECTIONS,
    ),
]


def measured(case: str, file: str = "cases.py", most_s: float = 300) -> dict[str, float | str]:
    """The figures of one case, from a process of its own; skips where what it is compared with is not installed."""
    command = [sys.executable, str(HERE / file), case]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=most_s)
    assert done.returncode == 0, done.stderr
    found: dict[str, float | str] = json.loads(done.stdout)
    if "skipped" in found:
        pytest.skip(str(found["skipped"]))
    return found


@pytest.mark.benchmark
@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda each: each.case)
def test_time(benchmark: Benchmark) -> None:
    found = measured(benchmark.case, benchmark.file)
    ours, peer = float(found["ours_s"]), float(found["peer_s"])
    ratio = peer / ours if benchmark.speedup else ours / peer
    sign, kind = (">=", "speed-up") if benchmark.speedup else ("<=", "ratio")
    promised = [] if benchmark.ratio is None else [f"target {sign} {benchmark.ratio:g}"]
    promised += [] if benchmark.seconds is None else [f"target <= {benchmark.seconds:g} s"]
    print(
        f"\n{benchmark.what}: ours {ours:.4g} s, {benchmark.peer} {peer:.4g} s, {kind} {ratio:.3g} "
        f"({', '.join(promised) or 'no target'}); peak {float(found['peak_mib']):.0f} MiB; {found['detail']}"
    )
    assert benchmark.seconds is None or ours <= benchmark.seconds
    if benchmark.ratio is not None:
        assert ratio >= benchmark.ratio if benchmark.speedup else ratio <= benchmark.ratio


@pytest.mark.benchmark
@pytest.mark.parametrize("planner", ["rules", "runs", "synthesis"])
def test_memory_stays_below_what_the_limits_predict(planner: str) -> None:
    found = measured(f"memory_{planner}")
    needed, predicted = float(found["ours_s"]), float(found["peer_s"])
    print(
        f"\n(f) memory for 10^6 states, planner of kind {planner}, {found['detail']}: "
        f"{needed / 2**20:.0f} MiB of {predicted / 2**20:.0f} MiB predicted, ratio {needed / predicted:.2f} (<= 1)"
    )
    assert needed <= predicted


@pytest.mark.benchmark
def test_a_run_on_a_million_states_with_confidence() -> None:
    found = measured("whole_run", "large_cases.py", 3600)
    ours, peer, peak = (float(found[name]) for name in ("ours_s", "peer_s", "peak_mib"))
    print(
        f"\nverify run, {found['detail']}: {ours:.1f} CPU s (target <= 90), as many checks by a running Storm "
        f"{peer:.0f}, ratio {ours / peer:.2f}; {peak * 2**20 / 1e9:.2f} GB resident (target <= 2)"
    )
    assert ours <= 90
    assert peak * 2**20 <= 2e9


@pytest.mark.benchmark
def test_a_run_on_cruise_control_at_ten_hertz() -> None:
    found = measured("cruise_control", "large_cases.py", 3600)
    ours, built, peak = (float(found[name]) for name in ("ours_s", "peer_s", "peak_mib"))
    print(f"\nverify run, {found['detail']} (target <= 8 s): {ours:.1f} CPU s (target <= 60); {peak:.0f} MiB in all")
    assert ours <= 60
    assert built <= 8


@pytest.mark.benchmark
@pytest.mark.parametrize(
    ("small_case", "large_case", "most"),
    [
        ("stream_of_a_million", "stream_of_twenty_millions", 25),
        ("remembered_stream_of_a_million", "remembered_stream_of_five_millions", math.inf),
    ],
)
def test_counting_a_stream_needs_the_same_memory_whatever_its_size(
    small_case: str, large_case: str, most: float
) -> None:
    small = measured(small_case, DETECTIONS)
    large = measured(large_case, DETECTIONS, 1200)
    for each in (small, large):
        ours, peer, peak = (float(each[name]) for name in ("ours_s", "peer_s", "peak_mib"))
        print(
            f"\ncounting from Parquet: ours {ours:.4g} CPU s, reading the files {peer:.4g}, ratio {ours / peer:.3g} "
            f"(target <= {most:g}); peak {peak:.0f} MiB (target < 1024 MiB); {each['detail']}"
        )
        assert ours <= most * peer
    growth = float(large["peak_mib"]) / float(small["peak_mib"])
    print(f"memory from {small_case} to {large_case}: ratio {growth:.3f} (target <= 1.2)")
    assert growth <= 1.2
    assert float(large["peak_mib"]) < 1024
