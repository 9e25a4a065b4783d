"""The bootstrap over images, beside maps of really resampled data."""

from __future__ import annotations

import numpy as np
from collision_strategies import distances, grid_of, some_pairs, speeds
from collision_world import WIDE
from hypothesis import given
from hypothesis import strategies as st

from verifier.collision import resampling
from verifier.collision.estimator import BrakingPolicy, EstimatorSettings, Grid, collision_map
from verifier.collision.intervals import IntervalKind, end_quantiles
from verifier.collision.pairs import Pairs
from verifier.collision.resampling import Weighted, bootstrap_interval, image_draws
from verifier.collision.score import oracle_map

POLICY = BrakingPolicy(6.86, 0.1)
GRID = Grid(np.array([8.0, 14.0, 25.0]), np.array([25, 40]) * 0.44704)


def resampled(pairs, draws):
    """The pairs of images that are drawn so many times, each time as an image of its own."""
    image = np.repeat(np.arange(pairs.image_count), draws)
    rows = [np.flatnonzero(pairs.image == each) for each in image]
    index = np.concatenate([*rows, np.empty(0, dtype=np.int64)])
    number = np.repeat(np.arange(len(image)), [len(each) for each in rows])
    return Pairs(pairs.true_m[index], pairs.predicted_m[index], number, max(len(image), 1))


@given(some_pairs(), distances, speeds, st.floats(0.5, 10), st.data())
def test_a_replicate_is_the_map_of_its_images(pairs, y, v, width, data):
    draws = np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=pairs.image_count, max_size=pairs.image_count)), dtype=np.uint8
    )
    settings = EstimatorSettings("fixed", width_m=width)
    of = collision_map(pairs, grid_of(y, v), POLICY, settings)
    again = resampled(pairs, draws)
    expected = collision_map(again, of.grid, POLICY, settings)
    weighted = Weighted.of(pairs, of)
    found = weighted.estimates(of.grid.distances_m, draws[None])[0]
    np.testing.assert_allclose(found, expected.probability, rtol=1e-9, atol=1e-11)
    # The oracle keeps the widths of the map that it belongs to.
    found = weighted.as_oracle().estimates(of.grid.distances_m, draws[None])[0]
    np.testing.assert_allclose(found, oracle_map(again, expected).probability, rtol=1e-9, atol=1e-11)


def test_a_pair_on_the_stopping_distance_collides():
    # S(v) = v^2 = 9 exactly; the pair with D = 9 is no survivor. Equal weights at y = 10: lambda = 1 - 1/2 r2, and
    # with single objects p = 1/2, q = 1, r2 = 1.
    pairs = Pairs(np.array([9.0, 12.0]), np.array([10.0, 10.0]), np.array([0, 1]), 2)
    settings = EstimatorSettings("fixed", width_m=1.0)
    of = collision_map(pairs, Grid(np.array([10.0]), np.array([3.0])), BrakingPolicy(0.5, 0.0), settings)
    assert Weighted.of(pairs, of).estimates(np.array([10.0]), np.ones((1, 2), dtype=np.uint8)).item() == 0.5
    assert of.probability.item() == 0.5


def test_intervals_are_quantiles_of_the_replicates(monkeypatch):
    pairs = WIDE.draw(200, np.random.default_rng(1))
    of = collision_map(pairs, GRID, POLICY)
    draws = image_draws(pairs.image_count, 50, np.random.default_rng(2))
    assert (draws.sum(axis=1) == 200).all()
    low, high = end_quantiles(Weighted.of(pairs, of).estimates(GRID.distances_m, draws), 0.8)
    monkeypatch.setattr(resampling, "BLOCK_BYTES", 8 * 3 * (50 * 2 + len(pairs)))
    seen = []
    percentile = bootstrap_interval(
        pairs,
        of,
        rng=np.random.default_rng(2),
        level=0.8,
        replicates=50,
        progress=lambda *done: seen.append(done),
    )
    assert seen == [(1, 3), (2, 3), (3, 3)]
    np.testing.assert_allclose(percentile.lower, low, rtol=1e-9)
    np.testing.assert_allclose(percentile.upper, high, rtol=1e-9)
    assert (percentile.kind, percentile.resamples) == (IntervalKind.PERCENTILE, 50)


def test_nothing_without_estimate():
    one = Pairs(np.array([9.0]), np.array([10.0]), np.array([0]), 1)
    found = bootstrap_interval(one, collision_map(one, GRID, POLICY), rng=np.random.default_rng(0))
    assert np.isnan(found.lower).all()
    assert np.isnan(found.upper).all()


def test_replicates_without_value_count_as_the_worst():
    # Two images: a replicate of the second alone has nothing near y = 8; one in four has the first not at all.
    pairs = Pairs(np.array([5.0, 40.0]), np.array([8.0, 40.0]), np.array([0, 1]), 2)
    of = collision_map(pairs, GRID, POLICY, EstimatorSettings("fixed", width_m=1.0))
    percentile = bootstrap_interval(pairs, of, rng=np.random.default_rng(0), replicates=400)
    # Defined ones are all 1 at 25 mph, D = 5 < 10.2; undefined ones count as 0 below.
    assert percentile.lower[0, 0] == 0
    assert percentile.upper[0, 0] == 1
