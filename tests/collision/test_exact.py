"""Exact binomial intervals, and which recommended interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from collision_strategies import distances, grid_of, some_pairs, speeds
from collision_world import SHARP, WIDE, speed_from
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from verifier.base.statistics import clopper_pearson
from verifier.collision.estimator import BrakingPolicy, EstimatorSettings, Grid, collision_map
from verifier.collision.intervals import BY_DRIVES, IntervalKind, exact_interval, image_minima, window_counts
from verifier.collision.pairs import Pairs
from verifier.collision.trust import Trust, confidence, contradicted

POLICY = BrakingPolicy(6.86, 0.1)


def clopper_pearson_of(events, trials, level):
    low, high = clopper_pearson(np.array([events]), np.array([trials]), (1 - level) / 2)
    return float(low[0]), float(high[0])


def test_clopper_pearson_by_hand():
    # No event in 10: the upper end solves (1 - p)^10 = .05. All: p^10 = .05. One in one, level .8: p = .1.
    assert clopper_pearson_of(0, 10, 0.9) == (0.0, pytest.approx(1 - 0.05**0.1, rel=1e-12, abs=0))
    assert clopper_pearson_of(10, 10, 0.9) == (pytest.approx(0.05**0.1, rel=1e-12, abs=0), 1.0)
    assert clopper_pearson_of(1, 1, 0.8) == (pytest.approx(0.1, rel=1e-12, abs=0), 1.0)
    # One in two, level .5: lower 1 - (1 - p)^2 = .25, upper 1 - p^2 = .25.
    assert clopper_pearson_of(1, 2, 0.5) == pytest.approx((1 - math.sqrt(0.75), math.sqrt(0.75)), rel=1e-12, abs=0)
    assert clopper_pearson_of(0, 0, 0.9) == (0.0, 1.0)


@given(st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.01, 0.999))
def test_clopper_pearson_agrees_with_scipy(counts, level):
    events, trials = counts
    if trials:
        expected = stats.binomtest(events, trials).proportion_ci(level, method="exact")
        assert clopper_pearson_of(events, trials, level) == pytest.approx(tuple(expected), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("trials", [5, 30])
def test_clopper_pearson_covers_for_every_probability(trials):
    # The coverage at p is a sum over outcomes: exact, no drawing.
    low, high = clopper_pearson(np.arange(trials + 1), np.full(trials + 1, trials), 0.05)
    for p in np.linspace(0.001, 0.999, 997):
        covering = stats.binom.pmf(np.arange(trials + 1), trials, p)[(low <= p) & (p <= high)].sum()
        assert covering >= 0.9


def test_clopper_pearson_of_nonsense():
    with pytest.raises(ValueError, match="expected 0 <= events <= trials"):
        clopper_pearson_of(3, 2, 0.9)


def test_nearest_of_each_image():
    pairs = Pairs(
        np.array([5.0, 9, 7, 3]), np.array([8.0, 6, 7.5, 2]), np.array([2, 0, 2, 0]), 4
    )  # image 0: true 9, 3, reported 6, 2; image 2: true 5, 7, reported 8, 7.5; 1 and 3 have none
    reported, true = image_minima(pairs)
    assert reported.tolist() == [2.0, 7.5]
    assert true.tolist() == [3.0, 5.0]


@given(some_pairs(smallest=0), distances, speeds, st.floats(0, 5), st.floats(0, 5))
def test_windows_agree_with_looking_at_every_image(pairs, y, v, before, after):
    grid = grid_of(y, v)
    images, collisions = window_counts(pairs, grid, POLICY, before, after)
    minima = []
    for image in range(pairs.image_count):
        mine = [i for i in range(len(pairs)) if pairs.image[i] == image]
        if mine:
            minima.append((min(pairs.predicted_m[i] for i in mine), min(pairs.true_m[i] for i in mine)))
    for i, distance in enumerate(y):
        near = [true for reported, true in minima if distance - before <= reported <= distance + after]
        assert images[i] == len(near)
        for j, stopping in enumerate(POLICY.stopping_distance_m(v)):
            assert collisions[i, j] == sum(true <= stopping for true in near)


# Ten images with one object: reported 1 .. 10, nearer than S(v) = 5.5 iff reported at 5 or nearer.
STEP = Pairs(np.arange(1.0, 11), np.arange(1.0, 11), np.arange(10), 10)
FIVE_AND_A_HALF = speed_from(POLICY, 5.5)


def test_exact_intervals_by_hand():
    grid = Grid(np.array([2.0, 5.0, 20.0]), np.array([FIVE_AND_A_HALF]))
    window = exact_interval(STEP, grid, POLICY, IntervalKind.EXACT_WINDOW, level=0.9, window_m=4.0)
    # Around 2: images 1..4, all collide; around 5: 3..7, three of five; around 20: none.
    assert window.lower[:, 0].tolist() == [pytest.approx(0.05**0.25), clopper_pearson_of(3, 5, 0.9)[0], 0.0]
    assert window.upper[:, 0].tolist() == [1.0, clopper_pearson_of(3, 5, 0.9)[1], 1.0]
    monotone = exact_interval(STEP, grid, POLICY, level=0.9, window_m=4.0)
    # Lower ends from [2, 6]: four of five, [5, 9]: one of five; upper ends from [1, 5]: five of five, and [-2, 2].
    assert monotone.lower[:, 0].tolist() == [clopper_pearson_of(4, 5, 0.9)[0], clopper_pearson_of(1, 5, 0.9)[0], 0.0]
    assert monotone.upper[:, 0].tolist() == [1.0, 1.0, 1.0]
    far = exact_interval(STEP, Grid(np.array([10.0]), np.array([FIVE_AND_A_HALF])), POLICY, window_m=4.0)
    # [6, 10] before it: none of five.
    assert far.upper[0, 0] == pytest.approx(1 - 0.025**0.2)
    assert far.resamples == 0


@pytest.mark.parametrize("world", [WIDE, SHARP])
def test_exact_monotone_covers_with_few_images(world):
    # 40 images: no asymptotics. 300 data sets at 12 points; the standard error of one point's share is .017.
    grid = Grid(np.array([6.0, 10, 14, 20, 30, 40]), np.array([25, 40]) * 0.44704)
    truth = world.probabilities(grid.distances_m, POLICY.stopping_distance_m(grid.speeds_mps))
    assert np.all(np.diff(truth, axis=0) <= 1e-12), "the world must be monotone"
    truth = truth.clip(0, 1)  # off by rounding where nearly 0 or 1
    rng = np.random.default_rng(1)
    hits = []
    for _ in range(300):
        found = exact_interval(world.draw(40, rng), grid, POLICY, window_m=4.0)
        hits.append((found.lower <= truth) & (truth <= found.upper))
    assert np.mean(hits, axis=0).min() >= 0.9 - 3 * 0.017


def test_a_rising_share_of_collisions_is_noticed():
    y = np.arange(2.0, 40, 2)
    images = np.full(len(y), 30)
    # Falling from all to none, and the other way round.
    falling = np.where(y < 20, 30, 0)[:, None]
    assert contradicted(y, images, falling).tolist() == [False]
    assert contradicted(y, images, 30 - falling).tolist() == [True]
    # Chance alone: two windows of 30 images with 3 and 6 collisions.
    assert contradicted(np.array([5.0, 10]), np.array([30, 30]), np.array([[3], [6]])).tolist() == [False]
    # Of three, the last two overlap; the first and the last do not, and agree.
    three = contradicted(np.array([5.0, 8, 9]), np.array([30, 30, 30]), np.array([[30], [0], [30]]))
    assert three.tolist() == [False]
    # Windows that overlap share images: no contradiction between them.
    assert contradicted(np.array([5.0, 6]), np.array([30, 30]), np.array([[0], [30]])).tolist() == [False]


def confidence_of(pairs, distances_m, speeds_mps, settings=None, **options):
    of = collision_map(pairs, grid_of(distances_m, speeds_mps), POLICY, settings or EstimatorSettings())
    return of, confidence(pairs, of, seed=3, **options)


def test_trust_in_a_wide_and_a_sharp_world():
    rng = np.random.default_rng(5)
    v = [25 * 0.44704]
    _, found = confidence_of(WIDE.draw(1500, rng), [2.0, 12.0, 90.0], v)
    assert [Trust(code) for code in found.trust[:, 0]] == [Trust.NEAR_ZERO, Trust.SUBSAMPLING, Trust.FEW_IMAGES]
    assert {kind.value for kind in found.intervals} == {
        "subsampling", "exact_window", "exact_monotone", "exact_simultaneous",
    }  # fmt: skip
    lower, upper = found.trusted
    assert lower[1, 0] == found.intervals[IntervalKind.SUBSAMPLING].lower[1, 0]
    assert upper[0, 0] == found.intervals[IntervalKind.EXACT_MONOTONE].upper[0, 0]
    sharp = SHARP.draw(1500, rng)
    _, found = confidence_of(sharp, [7.0, 10.0, 30.0], v)
    assert [Trust(code) for code in found.trust[:, 0]] == [Trust.FEW_IMAGES, Trust.SUBSAMPLING, Trust.FEW_IMAGES]
    of, found = confidence_of(sharp, [10.0, 30.0], v, EstimatorSettings("normal_reference"))
    assert of.oversmooths
    assert Trust.counted(found.trust) == {Trust.OVERSMOOTHED: 2}
    assert found.images[0] == window_counts(sharp, of.grid, POLICY, 1.0, 1.0)[0][0]


def test_trust_without_estimate_and_where_the_share_rises():
    one = Pairs(np.array([9.0]), np.array([10.0]), np.array([0]), 1)
    _, found = confidence_of(one, [10.0], [5.0])
    assert Trust.counted(found.trust) == {Trust.NOT_ESTIMATED: 1}
    # Of one image within the window before y = 10 none collides: [0, .975].
    assert [end[0, 0] for end in found.trusted] == [0.0, pytest.approx(0.975)]
    # A detector that reports far objects near and near ones far.
    true = np.linspace(1, 50, 800)
    turned = Pairs(true, 51 - true, np.arange(800), 800)
    _, found = confidence_of(turned, [10.0, 25.0, 40.0], [15.0])
    assert set(Trust.counted(found.trust)) <= {Trust.RISING, Trust.SUBSAMPLING}
    assert found.trust[0, 0] == Trust.RISING
    assert Trust.RISING.kind is IntervalKind.EXACT_WINDOW


def test_kinds_do_not_disturb_each_other():
    pairs = WIDE.draw(200, np.random.default_rng(4))
    _, few = confidence_of(pairs, [10.0, 20.0], [10.0])
    _, many = confidence_of(pairs, [10.0, 20.0], [10.0], replicates=20)
    subsampling = IntervalKind.SUBSAMPLING
    assert np.array_equal(few.intervals[subsampling].lower, many.intervals[subsampling].lower)
    of_drives = {IntervalKind.BY_DRIVE, *BY_DRIVES.values()}
    assert set(many.intervals) == set(IntervalKind) - of_drives  # no drives are known


@pytest.mark.parametrize("kind", list(IntervalKind))
def test_every_kind_says_what_it_is(kind):
    assert kind.covers
    assert kind.assumes


@pytest.mark.parametrize("trust", list(Trust))
def test_every_code_says_why(trust):
    assert trust.text
    assert trust.kind in IntervalKind
