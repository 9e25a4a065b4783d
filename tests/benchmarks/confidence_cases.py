"""What each benchmark of statistical intervals measures; to be run as `cases.py` is."""

from __future__ import annotations

import dataclasses
import itertools
import json
import sys
import time

import numpy as np
from cases import Measured, labels_of, peak_mib, shipped_grid, skeleton_of
from numpy.typing import NDArray

from verifier.analysis.intervals.drawing import matrix_draws, probability_draws
from verifier.analysis.intervals.intervals import Interval, PercentileStream, measured
from verifier.analysis.objective import Objective, build_objective
from verifier.chains.chain import MarkovChain
from verifier.checking.process import StormProcess
from verifier.checking.two_engines import abstracted

DRAWS = 10_000
STORM_DRAWS = 20


def draws_of_the_figure() -> Measured:
    """95 % intervals of the 55-point figure from 10,000 draws of the matrices, skeletons and products included.

    Published planner, vmax = 1 to 10, every initial speed, all three requirements at once, a pedestrian, matrices by
    distance. The peer is a running Storm that is given the chain of every draw; from the first draws, scaled up.
    """
    sweep = {"vmax": tuple(range(1, 11))}
    grid, matrices = shipped_grid(planners=("published",), sweeps=sweep, requirements=("all_three",))
    data = measured(matrices)
    (formula,) = abstracted([each.formula for each in grid.requirements])

    def ours() -> list[tuple[Objective, Interval]]:
        found = []
        for block in grid.blocks:
            skeleton = skeleton_of(block, grid, matrices)
            objective = build_objective(skeleton, formula.formula, formula.propositions, 10**7)
            stream = PercentileStream(DRAWS, len(skeleton.starts), 0.95, "credible")
            draws = matrix_draws(data, skeleton.columns_needed(), count=DRAWS)
            for probabilities in probability_draws(objective, draws):
                stream.add(probabilities)
            found.append((objective, stream.interval()))
        return found

    started = time.perf_counter()
    found = ours()
    ours_s, peak = time.perf_counter() - started, peak_mib()
    if sum(len(interval.lower) for _, interval in found) != 55:
        raise ValueError("the figure has another number of points")
    peer_s = 0.0
    with StormProcess() as storm:
        storm.storm_version()
        for objective, _ in found:
            labels, texts = labels_of(objective.skeleton, grid)
            draws = matrix_draws(data, objective.skeleton.columns_needed(), count=DRAWS)
            slice_of_draws = next(draws)[:STORM_DRAWS]
            (expected,) = itertools.islice(probability_draws(objective, [slice_of_draws]), 1)
            chains = chains_of(objective, labels, slice_of_draws)
            started = time.perf_counter()
            answers = [storm.check(chain, texts)[0].value for chain in chains]
            peer_s += time.perf_counter() - started
            if np.abs(np.array(answers) - expected).max() > 1e-9:
                raise ValueError("Storm and the batch engine disagree")
    scaled = peer_s * DRAWS / STORM_DRAWS
    return Measured(ours_s, scaled, peak, f"55 points, {DRAWS} draws; Storm from {STORM_DRAWS} draws of each chain")


def chains_of(
    objective: Objective, labels: dict[str, NDArray[np.bool_]], rates: NDArray[np.float64]
) -> list[MarkovChain]:
    """The chain of each draw; posterior draws have no zeros, so that all have the skeleton's transitions."""
    skeleton = objective.skeleton
    filled = skeleton.fill(rates)
    parts = (skeleton.indptr, skeleton.indices)
    return [MarkovChain(*parts, np.ascontiguousarray(each), labels, skeleton.starts) for each in filled]


CASES = {"draws_of_the_figure": draws_of_the_figure}


if __name__ == "__main__":
    print(json.dumps(dataclasses.asdict(CASES[sys.argv[1]]())))
