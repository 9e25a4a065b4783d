"""What the benchmarks of explanations measure. `python explain_cases.py NAME` measures one and prints it as JSON."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

from cases import CONFUSION, Measured, alternately, peak_mib, shipped_grid, skeleton_of  # noqa: E402
from violating_runs import counterexamples  # noqa: E402

from verifier.analysis.objective import Objective, build_objective  # noqa: E402
from verifier.analysis.sensitivity.adjoint import state_values  # noqa: E402
from verifier.analysis.sensitivity.priorities import sensitivity  # noqa: E402
from verifier.checking.two_engines import abstracted  # noqa: E402
from verifier.language.expressions import Source, parse_expression  # noqa: E402
from verifier.language.ltl import parse_formula  # noqa: E402
from verifier.perception.confusion import ConfusionMatrices, rates, read_confusion  # noqa: E402
from verifier.systems.reader import read_model  # noqa: E402
from verifier.systems.scene import SkeletonOptions  # noqa: E402
from verifier.systems.skeleton import build_skeleton  # noqa: E402

STATES = 100_000
RUNS = 100


def corridor(formula: str, endless: bool = False) -> tuple[Objective, ConfusionMatrices]:
    """A formula on the corridor of 10^5 states (cells times speeds), three observations, matrices of real counts."""
    system = read_model(HERE / "corridor.toml").instantiate({"cells": STATES // 11 + 1})
    matrices = read_confusion(CONFUSION).matrices
    options = SkeletonOptions(initial=parse_expression("x = 1", Source("x = 1", "")), endless=endless)
    skeleton = build_skeleton(system, system.planners["rules"], "ped", matrices, options)
    (found,) = abstracted([parse_formula(formula)])
    return build_objective(skeleton, found.formula, found.propositions, 10**8), matrices


def gradients_shipped() -> Measured:
    """All gradients of a requirement on the shipped system, against the batch engine's check of it."""
    grid, matrices = shipped_grid(planners=("published",), settings={"vmax": 10}, requirements=("all_three",))
    skeleton = skeleton_of(grid.blocks[0], grid, matrices)
    (found,) = abstracted([grid.requirements[0].formula])
    return _gradients(build_objective(skeleton, found.formula, found.propositions, 10**8), matrices, 15)


def gradients_large() -> Measured:
    """The same on 10^5 states."""
    return _gradients(*corridor("G !(x = 9000)"), 5)


def gradients_jumping() -> Measured:
    """The same where runs never end: a bottom component draws reports, and at a rate of 0 P may jump."""
    return _gradients(*corridor("(G !(x = 9000)) & G F (v = 0)", endless=True), 5)


def _gradients(objective: Objective, matrices: ConfusionMatrices, rounds: int) -> Measured:
    point = rates(matrices.counts)
    found = sensitivity(objective, point, 0)
    checked = objective.probabilities(point[np.newaxis]).probability[0, 0]
    if abs(found.probability - checked) > 1e-9:
        raise ValueError("the adjoint solve and the batch engine disagree")
    peak = peak_mib()
    ours_s, peer_s = alternately(
        rounds, lambda: sensitivity(objective, point, 0), lambda: objective.probabilities(point[np.newaxis])
    )
    steep = int(np.count_nonzero(found.slopes))
    jumps = int(np.count_nonzero(found.jumps))
    detail = f"{objective.state_count} product states, {steep} cells with a slope, {jumps} jumps, P = {checked:.4g}"
    return Measured(ours_s, peer_s, peak, detail)


def most_probable_runs() -> Measured:
    """The 100 most probable violating runs on 10^5 states, values solved, against Storm's own generator of the most
    probable paths, its model being there."""
    from stormpy.developer.utility import ShortestPathsGenerator

    objective, matrices = corridor("G !(x = 9000)")
    counts = matrices.counts
    point = rates(counts)

    def ours() -> list[float]:
        values = state_values(objective, point)
        found = counterexamples(objective, values, 0, RUNS, whole=True, counts=counts)
        return [run.probability for run in found.runs]

    probabilities = ours()
    peak = peak_mib()
    model = _storm_model(objective, point)

    def peer() -> list[float]:
        found = ShortestPathsGenerator[float](model, "bad")
        return [found.get_distance(k) for k in range(1, RUNS + 1)]

    if not np.allclose(probabilities, peer(), rtol=1e-9, atol=0):
        raise ValueError("Storm finds other paths")
    ours_s, peer_s = alternately(3, ours, peer)
    steps = max(run.steps for run in counterexamples(objective, state_values(objective, point), 0, 1).runs)
    return Measured(ours_s, peer_s, peak, f"{objective.state_count} product states, runs of about {steps} steps")


def _storm_model(objective: Objective, point: np.ndarray) -> object:
    """The chain with the label bad, as Storm holds it."""
    import stormpy
    from stormpy.developer import LogLevel, set_log_level

    from verifier.chains.chain import MarkovChain
    from verifier.chains.umb import write_umb

    set_log_level(LogLevel.OFF)
    skeleton = objective.skeleton
    values = skeleton.fill(point)
    kept = values > 0
    per_row = np.bincount(
        np.repeat(np.arange(skeleton.state_count), np.diff(skeleton.indptr))[kept], minlength=skeleton.state_count
    )
    chain = MarkovChain(
        indptr=np.concatenate([[0], np.cumsum(per_row)]),
        indices=skeleton.indices[kept],
        probabilities=values[kept],
        labels={"bad": skeleton.valuations["x"] == 9000},
        initial=skeleton.starts[:1],
    )
    path = Path("/dev/shm" if Path("/dev/shm").is_dir() else ".") / "verifier-explain-benchmark.umb"
    try:
        write_umb(chain, path, valuations=False, storm_padding=True)
        return stormpy.build_model_from_umb(str(path))
    finally:
        path.unlink(missing_ok=True)


CASES: dict[str, Callable[[], Measured]] = {
    "gradients_shipped": gradients_shipped,
    "gradients_large": gradients_large,
    "gradients_jumping": gradients_jumping,
    "most_probable_runs": most_probable_runs,
}

if __name__ == "__main__":
    print(json.dumps(dataclasses.asdict(CASES[sys.argv[1]]())))
