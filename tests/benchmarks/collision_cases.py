"""What the benchmarks of collision maps measure; to be run as `cases.py` is."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import time
from collections.abc import Callable

import numpy as np
from cases import Measured, alternately, peak_mib
from numpy.typing import NDArray
from scipy.stats import gaussian_kde

from verifier.collision.estimator import BrakingPolicy, EstimatorSettings, Grid, collision_map
from verifier.collision.intervals import exact_interval
from verifier.collision.pairs import Pairs
from verifier.collision.resampling import Subsampling, bootstrap_interval, subsampling_interval

GRID = Grid(np.linspace(1, 50, 100), np.linspace(5, 75, 100) * 0.44704)
POLICY = BrakingPolicy(6.86, 0.1)
NORMAL_REFERENCE = EstimatorSettings("normal_reference")
PAIRS = 20_000
POINTS = 40
"""Points of the grid that the loop is measured on, spread over it."""
SUBSAMPLES = 8
"""Subsamples that the loop is measured on."""


def made_up(pairs: int) -> Pairs:
    """Objects 2.65 to an image, reported with an error of 12 %."""
    rng = np.random.default_rng(1)
    true = rng.gamma(3, 8, pairs)
    images = round(pairs / 2.65)
    reported = true * np.exp(0.12 * rng.standard_normal(pairs))
    return Pairs(true, reported, np.sort(rng.integers(0, images, pairs)), images)


def looped(
    true: NDArray[np.float64], reported: NDArray[np.float64], per_image: NDArray[np.int64], y: float, s: float
) -> float:
    """Equation (1) at one point with scipy's kernel density estimates, as Algorithm 1 is written down."""
    spread = min(np.std(reported, ddof=1), float(np.subtract(*np.percentile(reported, [75, 25]))) / 1.349)
    width = 1.06 * spread * len(reported) ** -0.2
    far = reported[true > s]
    every = gaussian_kde(reported, bw_method=width / np.std(reported, ddof=1))
    if len(far) < 2:
        raise ValueError("scipy needs two values")
    beyond = gaussian_kde(far, bw_method=width / np.std(far, ddof=1))
    r1 = beyond(y)[0] * len(far) / len(reported) / every(y)[0]
    p, q = np.mean((true > s) & (reported >= y)), np.mean(reported >= y)
    m = np.arange(len(per_image))[1:]
    return float(1 - r1 * (m * per_image[1:] * p ** (m - 1)).sum() / (m * per_image[1:] * q ** (m - 1)).sum())


def loop(pairs: Pairs) -> tuple[float, float]:
    """Seconds of the loop for one point: of all pairs, and of one subsample. Its values must be ours."""
    rng = np.random.default_rng(3)
    stopping = POLICY.stopping_distance_m(GRID.speeds_mps)
    points = [
        (int(i), int(j)) for i, j in zip(rng.integers(0, 100, POINTS), rng.integers(0, 60, POINTS), strict=True)
    ]
    ours = collision_map(pairs, GRID, POLICY, NORMAL_REFERENCE)
    counts = pairs.count_distribution
    started = time.perf_counter()
    theirs = [looped(pairs.true_m, pairs.predicted_m, counts, GRID.distances_m[i], stopping[j]) for i, j in points]
    full_s = (time.perf_counter() - started) / POINTS
    if not np.allclose(theirs, [ours.probability[point] for point in points], rtol=1e-8, atol=1e-10):
        raise ValueError("scipy's densities give other probabilities")
    drawn = Subsampling().draw(len(pairs), rng)[:SUBSAMPLES]
    started = time.perf_counter()
    for row in drawn:
        for i, j in points:
            looped(pairs.true_m[row], pairs.predicted_m[row], counts, GRID.distances_m[i], stopping[j])
    return full_s, (time.perf_counter() - started) / (POINTS * SUBSAMPLES)


def map_with_intervals() -> Measured:
    """lambda and Algorithm 1 on 100 x 100 points, 20,000 pairs, all 141 subsamples, against the loop, scaled up."""
    pairs = made_up(PAIRS)

    def ours() -> None:
        of = collision_map(pairs, GRID, POLICY, NORMAL_REFERENCE)
        subsampling_interval(pairs, of, rng=np.random.default_rng(1))

    ours()
    peak = peak_mib()
    (ours_s,) = alternately(5, ours)
    full_s, one_s = loop(pairs)
    root = math.isqrt(PAIRS)
    peer_s = GRID.shape[0] * GRID.shape[1] * (full_s + root * one_s)
    detail = f"{root} subsamples; the loop measured on {POINTS} points and {SUBSAMPLES} subsamples, values equal"
    return Measured(ours_s, peer_s, peak, detail)


def map_without_loop() -> Measured:
    """The same against scipy used well: one density of all and one of the far per subsample and speed."""
    pairs = made_up(PAIRS)
    stopping = POLICY.stopping_distance_m(GRID.speeds_mps)

    def ours() -> None:
        of = collision_map(pairs, GRID, POLICY, NORMAL_REFERENCE)
        subsampling_interval(pairs, of, rng=np.random.default_rng(1))

    def densities(true: NDArray[np.float64], reported: NDArray[np.float64], speeds: NDArray[np.float64]) -> None:
        gaussian_kde(reported)(GRID.distances_m)
        for each in speeds:
            gaussian_kde(reported[true > each])(GRID.distances_m)

    ours()
    peak = peak_mib()
    (ours_s,) = alternately(5, ours)
    row = Subsampling().draw(PAIRS, np.random.default_rng(3))[0]
    some = stopping[::20]
    started = time.perf_counter()
    densities(pairs.true_m, pairs.predicted_m, some)
    full_s = (time.perf_counter() - started) * 20
    started = time.perf_counter()
    densities(pairs.true_m[row], pairs.predicted_m[row], stopping[:50])
    one_s = (time.perf_counter() - started) * 2
    return Measured(ours_s, full_s + math.isqrt(PAIRS) * one_s, peak, "densities only, no r2, no sorting; scaled up")


def million_pairs() -> Measured:
    """A million pairs and 1000 subsamples on the same grid, against sorting the pairs 100 times."""
    pairs = made_up(1_000_000)

    def ours() -> None:
        of = collision_map(pairs, GRID, POLICY)
        subsampling_interval(pairs, of, rng=np.random.default_rng(1))

    started = time.perf_counter()
    ours()
    ours_s = time.perf_counter() - started
    (sort_s,) = alternately(3, lambda: np.argsort(pairs.true_m))
    return Measured(ours_s, 100 * sort_s, peak_mib(), "1,000 subsamples of 1,000")


def all_intervals() -> Measured:
    """Bootstrap of 1,000 replicates and exact intervals of 20,000 pairs, against 1,000 maps one after the other."""
    pairs = made_up(PAIRS)
    of = collision_map(pairs, GRID, POLICY)
    fixed = EstimatorSettings("fixed", width_m=of.width_m)
    started = time.perf_counter()
    bootstrap_interval(pairs, of, rng=np.random.default_rng(1), replicates=1000)
    exact_interval(pairs, GRID, POLICY)
    ours_s = time.perf_counter() - started
    peak = peak_mib()
    (one_s,) = alternately(3, lambda: collision_map(pairs, GRID, POLICY, fixed))
    return Measured(ours_s, 1000 * one_s, peak, "one map measured and taken a thousand times")


CASES: dict[str, Callable[[], Measured]] = {
    "map_with_intervals": map_with_intervals,
    "map_without_loop": map_without_loop,
    "million_pairs": million_pairs,
    "all_intervals": all_intervals,
}

if __name__ == "__main__":
    print(json.dumps(dataclasses.asdict(CASES[sys.argv[1]]())))
