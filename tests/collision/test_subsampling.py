"""Algorithm 1: order of the quantiles, coverage, undefined subsamples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from collision_world import WIDE
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import LimitError, UsageError
from verifier.collision import kernel, resampling
from verifier.collision.estimator import BrakingPolicy, EstimatorSettings, Grid, collision_map
from verifier.collision.intervals import IntervalKind, end_quantiles, order_ranks
from verifier.collision.pairs import Pairs
from verifier.collision.resampling import Subsampling, subsampling_ends, subsampling_interval

POLICY = BrakingPolicy(6.86, 0.1)
GRID = Grid(np.array([10.0, 14.0, 20.0]), np.array([25, 33]) * 0.44704)


def swapped_quantiles(estimate_n, estimates_b, level, ratio):
    """The mistake: L_.05 makes the lower end."""
    low, high = end_quantiles(estimates_b, level)
    return estimate_n - ratio * (low - estimate_n), estimate_n - ratio * (high - estimate_n)


def unreflected_quantiles(estimate_n, estimates_b, level, ratio):
    """Another mistake: the ends in the right order, but added instead of subtracted."""
    low, high = end_quantiles(estimates_b, level)
    return estimate_n + ratio * (low - estimate_n), estimate_n + ratio * (high - estimate_n)


def skewed_case(ends):
    # lambda_n = 1/2, tau_b / tau_n = 1/2, subsamples 0.50, 0.51, ..., 0.69 in any order: order statistics of ranks
    # ceil(.05 * 20) = 1 and ceil(.95 * 20) = 19 are 0.50 and 0.68, L / tau_n = 0 and 0.09.
    estimates = np.random.default_rng(0).permutation(0.5 + np.arange(20) / 100)
    return ends(np.float64(0.5), estimates, 0.9, 0.5)


def test_ends_by_hand():
    assert skewed_case(subsampling_ends) == pytest.approx((0.41, 0.5))


@pytest.mark.parametrize("mistake", [swapped_quantiles, unreflected_quantiles])
def test_the_case_by_hand_sees_both_mistakes(mistake):
    assert skewed_case(mistake) != pytest.approx((0.41, 0.5))


def coverage(repetitions, images=1200):
    """Share of intervals that cover the true lambda, over the grid."""
    truth = WIDE.probabilities(GRID.distances_m, POLICY.stopping_distance_m(GRID.speeds_mps))
    rng = np.random.default_rng(17)
    hits = []
    for _ in range(repetitions):
        pairs = WIDE.draw(images, rng)
        found = subsampling_interval(pairs, collision_map(pairs, GRID, POLICY), rng=rng)
        hits.append((found.lower <= truth) & (truth <= found.upper))
    return float(np.mean(hits))


def test_coverage_in_a_wide_world(thorough):
    assert 0.85 <= coverage(60 if thorough else 30) <= 0.95


def test_coverage_sees_swapped_quantiles(monkeypatch):
    monkeypatch.setattr(resampling, "subsampling_ends", swapped_quantiles)
    assert coverage(5) < 0.1


@given(st.integers(1, 2000), st.integers(1, 999).map(lambda k: k / 1000))
def test_ranks_are_those_of_the_decimal_level(count, level):
    low, high = order_ranks(level, count)
    thousandths = round(level * 1000)
    # ceil(p s) - 1 in whole numbers, p = (1000 -+ thousandths) / 2000.
    assert high == -(-(1000 + thousandths) * count // 2000) - 1
    assert low == -(-(1000 - thousandths) * count // 2000) - 1
    assert 0 <= low <= high < count


def test_an_undefined_value_counts_as_the_worst():
    values = np.array([0.2, np.nan, 0.4, 0.6, 0.5])
    # Level 0.6 of 5: ranks ceil(.2 * 5) = 1 and ceil(.8 * 5) = 4. With 0: 0, .2, .4, ...; with 1: ..., .5, .6, 1.
    low, high = end_quantiles(values[:, None], 0.6)
    assert (low[0], high[0]) == (0.0, 0.6)
    low, high = end_quantiles(values[[0, 2, 3, 4], None], 0.5)
    # Without NaN, level .5 of 4: ranks ceil(.25 * 4) = 1 and ceil(.75 * 4) = 3.
    assert (low[0], high[0]) == (0.2, 0.5)


def test_subsamples_are_root_n_without_replacement():
    drawn = Subsampling().draw(150, np.random.default_rng(1))
    assert drawn.shape == (12, 12)
    assert all(len(set(row)) == 12 for row in drawn.tolist())
    assert Subsampling(size=7, count=3).draw(10, np.random.default_rng(1)).shape == (3, 7)
    with pytest.raises(UsageError, match=r"^a subsample of 11 cannot be drawn from 10$"):
        Subsampling(size=11).draw(10, np.random.default_rng(1))
    with pytest.raises(UsageError, match=r"^the size of the subsamples must be at least 1, got 0$"):
        Subsampling(size=0)
    with pytest.raises(UsageError, match=r"^the number of the subsamples must be at least 1, got -1$"):
        Subsampling(count=-1)


@pytest.mark.parametrize("two", [False, True])
def test_every_subsample_is_an_estimate_of_its_own(two, monkeypatch):
    # With one subsample all ranks are its own: the ends are lambda_n - (b/n)^(2/5) (lambda_b - lambda_n). lambda_b is
    # the map of those pairs alone, but with the images of the full data (c_m = images with m pairs).
    rng = np.random.default_rng(4)
    pairs = WIDE.draw(60, rng)
    of = collision_map(pairs, GRID, POLICY, EstimatorSettings("normal_reference", two_bandwidths=two))
    found = subsampling_interval(pairs, of, rng=np.random.default_rng(9), subsampling=Subsampling(40, 1))
    chosen = Subsampling(40, 1).draw(len(pairs), np.random.default_rng(9))[0]
    one = kernel.samples_of(
        pairs.true_m[None, chosen],
        pairs.predicted_m[None, chosen],
        pairs.count_distribution,
        of.stopping_m,
        of.rule,
        two,
    )
    alone = kernel.estimate(one, GRID.distances_m, 3.0)[0][0]
    expected = of.probability - (40 / len(pairs)) ** 0.4 * (alone - of.probability)
    np.testing.assert_allclose(found.lower, expected, rtol=1e-12)
    np.testing.assert_allclose(found.upper, expected, rtol=1e-12)
    assert found.kind is IntervalKind.SUBSAMPLING
    assert found.resamples == 1
    again = collision_map(
        Pairs(pairs.true_m[chosen], pairs.predicted_m[chosen], np.arange(40), 40),
        GRID,
        POLICY,
        EstimatorSettings("normal_reference", two_bandwidths=two),
    )
    # The map of the 40 pairs as single objects has r2 = 1, the subsample has the images' r2 <= 1: lambda is larger.
    assert np.all(alone >= again.probability - 1e-12)
    assert float(one.widths_m[0]) == again.width_m


def test_a_fixed_width_grows_in_subsamples():
    pairs = WIDE.draw(60, np.random.default_rng(4))
    of = collision_map(pairs, GRID, POLICY, EstimatorSettings("fixed", width_m=2.0))
    widths = of.rule.widths_m(np.zeros((1, 40)), np.array([40]))
    assert widths[0] == pytest.approx(2 * (len(pairs) / 40) ** 0.2, rel=1e-12, abs=0)


def test_equal_seeds_give_equal_intervals_whatever_the_blocks(monkeypatch):
    pairs = WIDE.draw(300, np.random.default_rng(4))
    of = collision_map(pairs, GRID, POLICY)
    first = subsampling_interval(pairs, of, rng=np.random.default_rng(1))
    seen = []
    monkeypatch.setattr(kernel, "BLOCK_BYTES", 8 * 300)
    second = subsampling_interval(pairs, of, rng=np.random.default_rng(1), progress=lambda *done: seen.append(done))
    assert np.array_equal(first.lower, second.lower)
    assert np.array_equal(first.upper, second.upper)
    assert seen == [(1, 3), (2, 3), (3, 3)]
    other = subsampling_interval(pairs, of, rng=np.random.default_rng(2))
    assert not np.array_equal(first.lower, other.lower)


def test_undefined_subsamples_only_widen():
    pairs = WIDE.draw(300, np.random.default_rng(4))
    grid = Grid(np.array([10.0, 60.0]), np.array([10.0, 25.0]))
    strict = collision_map(pairs, grid, POLICY, EstimatorSettings(reach=1.0))
    loose = collision_map(pairs, grid, POLICY, EstimatorSettings(reach=math.inf))
    narrow = subsampling_interval(pairs, loose, rng=np.random.default_rng(1))
    wide = subsampling_interval(pairs, strict, rng=np.random.default_rng(1))
    assert np.array_equal(strict.probability, loose.probability)
    assert np.all(wide.lower <= narrow.lower)
    assert np.all(wide.upper >= narrow.upper)
    assert wide.upper[1, 1] > narrow.upper[1, 1]


def test_where_there_is_no_estimate_there_is_no_interval():
    one = Pairs(np.array([9.0]), np.array([10.0]), np.array([0]), 1)
    found = subsampling_interval(one, collision_map(one, GRID, POLICY), rng=np.random.default_rng(0))
    assert np.isnan(found.lower).all()
    none = Pairs(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64), 1)
    found = subsampling_interval(none, collision_map(none, GRID, POLICY), rng=np.random.default_rng(0))
    assert np.isnan(found.upper).all()
    assert found.resamples == 0


def test_too_many_subsamples_are_refused_before_they_are_drawn():
    pairs = WIDE.draw(300, np.random.default_rng(4))
    of = collision_map(pairs, GRID, POLICY)
    with pytest.raises(LimitError, match=r"^this would need about [\d.]+ [GM]iB; the limit is 1 GiB"):
        subsampling_interval(
            pairs, of, rng=np.random.default_rng(0), subsampling=Subsampling(size=100, count=1_000_000)
        )
