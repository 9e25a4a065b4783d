"""The estimator beside other engines, and what must hold for all data."""

from __future__ import annotations

import math

import numpy as np
import pytest
from collision_strategies import distances, grid_of, metres, some_pairs, speeds
from hypothesis import given
from hypothesis import strategies as st
from plain_collision import collision_probability, normal_reference
from scipy import stats

from verifier.collision import kernel
from verifier.collision.estimator import BrakingPolicy, EstimatorSettings, Grid, collision_map
from verifier.collision.kernel import CONSTANTS, Reason, WidthRule, cross_validated_constant, spread_m
from verifier.collision.pairs import Pairs
from verifier.collision.score import oracle_map

POLICY = BrakingPolicy(6.86, 0.1)


@given(some_pairs(), distances, speeds, st.floats(0.5, 20))
def test_agrees_with_the_formula_written_out(pairs, y, v, width):
    found = collision_map(pairs, grid_of(y, v), POLICY, EstimatorSettings("fixed", width_m=width))
    rows = list(zip(pairs.true_m.tolist(), pairs.predicted_m.tolist(), strict=True))
    for i, j in np.ndindex(found.probability.shape):
        if found.reason[i, j] == Reason.DEFINED:
            expected = collision_probability(
                rows, pairs.per_image.tolist(), y[i], found.stopping_m[j], (width, width)
            )
            assert found.probability[i, j] == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(some_pairs(smallest=3), distances, speeds, st.floats(0.2, 3))
def test_two_widths_agree_with_the_formula_written_out(pairs, y, v, constant):
    chosen = EstimatorSettings("normal_reference", constant=constant, two_bandwidths=True, reach=2.0)
    found = collision_map(pairs, grid_of(y, v), POLICY, chosen)
    rows = list(zip(pairs.true_m.tolist(), pairs.predicted_m.tolist(), strict=True))
    for i, j in np.ndindex(found.probability.shape):
        if found.reason[i, j] == Reason.DEFINED:
            stopping = found.stopping_m[j]
            every = normal_reference([reported for _, reported in rows], constant)
            far = [reported for true, reported in rows if true > stopping]
            own = normal_reference(far, constant) if far else 1.0
            expected = collision_probability(rows, pairs.per_image.tolist(), y[i], stopping, (every, own))
            assert found.probability[i, j] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(some_pairs(smallest=0), distances, speeds, st.sampled_from(["normal_reference", "cross_validated"]))
def test_probabilities_are_in_the_unit_interval_with_one_width(pairs, y, v, bandwidth):
    for found in (
        collision_map(pairs, grid_of(y, v), POLICY, EstimatorSettings(bandwidth)),
        collision_map(pairs, grid_of(y, v), POLICY, EstimatorSettings("fixed", width_m=0.7, reach=math.inf)),
    ):
        defined = found.reason == Reason.DEFINED
        assert np.array_equal(np.isnan(found.probability), ~defined)
        assert np.all((found.probability[defined] >= 0) & (found.probability[defined] <= 1))
        # Faster is never safer.
        assert np.all(np.diff(found.probability, axis=1)[defined.all(axis=1)] >= 0)
        if len(pairs):
            oracle = oracle_map(pairs, found).probability
            assert np.all((oracle >= 0) & (oracle <= 1) | np.isnan(oracle))


@given(some_pairs(smallest=2), distances, speeds, st.randoms(use_true_random=False))
def test_order_of_pairs_and_empty_images_do_not_matter(pairs, y, v, random):
    order = list(range(len(pairs)))
    random.shuffle(order)
    shuffled = Pairs(pairs.true_m[order], pairs.predicted_m[order], pairs.image[order], pairs.image_count + 3)
    first, second = (collision_map(each, grid_of(y, v), POLICY) for each in (pairs, shuffled))
    np.testing.assert_allclose(first.probability, second.probability, rtol=1e-9, atol=1e-12)


@given(some_pairs(smallest=2), distances, speeds, st.floats(0.3, 5))
def test_all_data_twice_say_the_same(pairs, y, v, width):
    twice = Pairs(
        np.tile(pairs.true_m, 2),
        np.tile(pairs.predicted_m, 2),
        np.concatenate([pairs.image, pairs.image + pairs.image_count]),
        2 * pairs.image_count,
    )
    # One copy's mass is at least that of one pair where the first is defined; twice it may be defined further out.
    chosen = EstimatorSettings("fixed", width_m=width)
    first, second = (collision_map(each, grid_of(y, v), POLICY, chosen).probability for each in (pairs, twice))
    known = np.isfinite(first)
    np.testing.assert_allclose(first[known], second[known], rtol=1e-9, atol=1e-12)


def test_unit_of_length_does_not_matter():
    rng = np.random.default_rng(3)
    true = rng.gamma(3, 8, 200)
    image = rng.integers(0, 80, 200)
    pairs = Pairs(true, true * rng.uniform(0.8, 1.2, 200), image, 80)
    feet = Pairs(pairs.true_m / 0.3048, pairs.predicted_m / 0.3048, image, 80)
    y, v = np.arange(2.0, 50), np.arange(1.0, 30)
    here = collision_map(pairs, Grid(y, v), BrakingPolicy(6.86, 0.1)).probability
    there = collision_map(feet, Grid(y / 0.3048, v / 0.3048), BrakingPolicy(6.86 / 0.3048, 0.1)).probability
    np.testing.assert_allclose(here, there, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("two", [False, True])
def test_densities_agree_with_scipy(two):
    rng = np.random.default_rng(5)
    true = rng.gamma(3, 8, 400)
    pairs = Pairs(true, true * rng.uniform(0.5, 1.5, 400), np.arange(400), 400)
    grid = Grid(np.linspace(3, 45, 15), np.linspace(3, 25, 6))
    found = collision_map(pairs, grid, POLICY, EstimatorSettings("normal_reference", two_bandwidths=two))

    def kde(values, width):
        return stats.gaussian_kde(values, bw_method=width / np.std(values, ddof=1))(grid.distances_m)

    every = kde(pairs.predicted_m, found.width_m)
    for at, stopping in enumerate(found.stopping_m):
        far = pairs.predicted_m[pairs.true_m > stopping]
        width = normal_reference(far.tolist(), 1.06) if two else found.width_m
        # Every image has one object, so r2 = 1.
        expected = 1 - kde(far, width) * len(far) / 400 / every
        np.testing.assert_allclose(found.probability[:, at], expected, rtol=1e-9, atol=1e-12)


def test_blocks_do_not_matter(monkeypatch):
    rng = np.random.default_rng(8)
    pairs = Pairs(rng.gamma(3, 8, 300), rng.gamma(3, 8, 300), rng.integers(0, 150, 300), 150)
    grid = Grid(np.linspace(1, 50, 37), np.linspace(1, 30, 11))
    whole = collision_map(pairs, grid, POLICY)
    monkeypatch.setattr(kernel, "BLOCK_BYTES", 8 * 700 * 5)
    assert kernel.rows_per_block(1, 300, 11) == 5
    pieces = collision_map(pairs, grid, POLICY)
    assert np.array_equal(whole.probability, pieces.probability, equal_nan=True)


@given(st.lists(metres, min_size=2, max_size=40))
def test_spread_is_that_of_the_textbook(values):
    array = np.array([*values, -np.inf, -np.inf])[None, :]
    expected = min(np.std(values, ddof=1), np.subtract(*np.percentile(values, [75, 25])) / 1.349)
    assert spread_m(array, np.array([len(values)]))[0] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_widths_of_rows_with_few_values():
    rows = np.array([[-np.inf, -np.inf], [4.0, -np.inf], [4.0, 4.0], [3.0, 5.0]])
    widths = WidthRule(1.0).widths_m(rows, np.array([0, 1, 2, 2]))
    # Of 3 and 5: sd = sqrt(2), quartiles 3.5 and 4.5.
    assert np.isnan(widths[:2]).all()
    assert widths[2:].tolist() == [0, pytest.approx(1 / 1.349 * 2**-0.2)]
    fixed = WidthRule.fixed(2.0, 32).widths_m(rows, np.array([0, 1, 2, 2]))
    # 32^(1/5) = 2: from 32 values to one, the width doubles.
    assert np.isnan(fixed[0])
    assert fixed[1:].tolist() == pytest.approx([4.0, 4 * 2**-0.2, 4 * 2**-0.2])


def test_cross_validation_finds_the_best_leave_one_out_forecasts():
    # The same choice without bins and transforms: every pair is forecast from all others, one after the other.
    rng = np.random.default_rng(11)
    for sigma in (0.6, 0.3):
        true = rng.gamma(3, 8, 120)
        reported = true * np.exp(sigma * rng.standard_normal(120))
        unit = normal_reference(reported.tolist(), 1.0)
        thresholds = np.quantile(true, np.arange(1, 16) / 16)
        losses = []
        for constant in CONSTANTS:
            loss = 0.0
            for i in range(120):
                others = np.arange(120) != i
                weight = np.exp(-0.5 * ((reported[i] - reported[others]) / (constant * unit)) ** 2)
                for threshold in thresholds:
                    event = true[others] > threshold
                    known = weight.sum() > 1e-6
                    forecast = weight @ event / weight.sum() if known else np.mean(true > threshold)
                    loss += ((true[i] > threshold) - forecast) ** 2
            losses.append(loss)
        pairs = Pairs(true, reported, np.arange(120), 120)
        assert cross_validated_constant(pairs) == CONSTANTS[int(np.argmin(losses))]


def test_the_flag_of_a_kernel_that_blurs():
    rng = np.random.default_rng(2)
    true = rng.gamma(3, 8, 2000)
    pairs = Pairs(true, true * np.exp(0.05 * rng.standard_normal(2000)), np.arange(2000), 2000)
    grid = Grid(np.array([10.0]), np.array([10.0]))
    rule = collision_map(pairs, grid, POLICY, EstimatorSettings("normal_reference"))
    assert rule.oversmooths
    assert rule.width_m > 4 * rule.cross_validated_m
    best = collision_map(pairs, grid, POLICY)
    assert best.width_m == best.cross_validated_m == rule.cross_validated_m
    assert not best.oversmooths
