"""What the benchmarks of 10^6 states measure, in CPU seconds of all processes; to be run as `cases.py` is."""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

from cases import CONFUSION, Measured, corridor, peak_mib  # noqa: E402
from outside import descendants, verify_command, watched  # noqa: E402

from verifier.base.budget import memory_limit  # noqa: E402
from verifier.chains.chain import (  # noqa: E402
    MarkovChain,
    filled_counts,
    markov_chain,
)
from verifier.checking.batch import check  # noqa: E402
from verifier.checking.process import StormProcess  # noqa: E402
from verifier.language.expressions.syntax import Name, Temporal  # noqa: E402
from verifier.manual.pages import write_system  # noqa: E402
from verifier.perception.confusion import read_confusion  # noqa: E402
from verifier.systems.reader import read_model  # noqa: E402
from verifier.systems.skeleton import build_skeleton  # noqa: E402

ROUNDS = 5
DRAWS = 301
TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """Of this process and all below it that still run."""
    found = time.process_time()
    for pid in descendants(os.getpid()):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        found += (int(fields[11]) + int(fields[12])) / TICK
    return found


def cpu_of_children() -> float:
    """Of the processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def spent(function: Callable[[], object]) -> float:
    begun = cpu_seconds()
    function()
    return cpu_seconds() - begun


def long_chain() -> MarkovChain:
    """The corridor of 10^6 states, with a goal 90,000 steps away."""
    build, matrices = corridor("rules")
    skeleton = build()
    goal = (skeleton.valuations["x"] == 90_900) & (skeleton.valuations["v"] == 1)
    return markov_chain(skeleton, filled_counts(skeleton, matrices, "error"), {"goal": goal})


def one_check() -> Measured:
    """Reaching the goal: the batch engine with its bounds of the error, against a running Storm's check, both within
    limits of memory as in a run."""
    chain, formula = long_chain(), Temporal("F", (Name("goal"),))
    with StormProcess() as storm, memory_limit(1 << 34):
        found = check(chain, formula)
        peak = peak_mib()
        (answer,) = storm.check(chain, ['F ("goal")'])
        if np.abs(answer.value - found.probability[0]).max() > 1e-9:
            raise ValueError("Storm and the batch engine disagree")
        rounds = [
            (spent(lambda: check(chain, formula)), spent(lambda: storm.check(chain, ['F ("goal")'])))
            for _ in range(ROUNDS)
        ]
    ours_s, peer_s = map(statistics.median, zip(*rounds, strict=True))
    error = found.error_bound.max()
    detail = f"{chain.state_count} states, probability {answer.value[0]:.4g}, error at most {error:.1g}"
    return Measured(ours_s, peer_s, peak, detail)


SPEC = """model "{model}"
in_time: P >= 0.5 [ F (x = 90900 & v = 1) ]
"""


def whole_run() -> Measured:
    """`verify run` with intervals from 301 draws and bounds, memory of all its processes; and what one check of the
    same chain by a running Storm would take 301 times, once for each draw."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "corridor.ltl").write_text(SPEC.format(model=HERE / "corridor.toml"))
        options = ("--planner", "rules", "--draws", DRAWS, "--timeout", 3600)
        before = cpu_of_children()
        run = watched(verify_command("run", "corridor.ltl", "--cm", CONFUSION, *options), folder, 3600)
        ours_s = cpu_of_children() - before
    if run.code != 1 or "credible interval" not in run.out:
        raise ValueError(f"verify run ended with {run.code}: {run.out} {run.err}")
    chain = long_chain()
    with StormProcess() as storm:
        storm.check(chain, ['F ("goal")'])
        peer_s = statistics.median(spent(lambda: storm.check(chain, ['F ("goal")'])) for _ in range(ROUNDS))
    return Measured(ours_s, DRAWS * peer_s, run.peak_bytes / 2**20, f"{chain.state_count} states, {DRAWS} draws")


def cruise_control() -> Measured:
    """`verify run` on the gallery's car that follows another at 10 Hz, five requirements in one environment, with
    intervals and bounds; and building its skeleton of 677,919 states."""
    with tempfile.TemporaryDirectory() as name:
        write_system("acc", name)
        before = cpu_of_children()
        run = watched(verify_command("run", "acc.ltl", "--cm", "acc.json", "--env", "brakes_early"), Path(name), 3600)
        ours_s = cpu_of_children() - before
        if run.code != 0 or "credible interval" not in run.out:
            raise ValueError(f"verify run ended with {run.code}: {run.out} {run.err}")
        system = read_model(Path(name) / "acc.toml").instantiate()
        matrices, found = read_confusion(Path(name) / "acc.json").matrices, []
        build_s = spent(
            lambda: found.append(build_skeleton(system, system.planners["acc"], "brakes_early", matrices))
        )
    built = f"{found[0].state_count} states built in {build_s:.1f} CPU s, {peak_mib():.0f} MiB"
    return Measured(ours_s, build_s, run.peak_bytes / 2**20, built)


CASES = {"one_check": one_check, "whole_run": whole_run, "cruise_control": cruise_control}

if __name__ == "__main__":
    print(json.dumps(dataclasses.asdict(CASES[sys.argv[1]]())))
