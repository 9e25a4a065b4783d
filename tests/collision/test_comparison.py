"""Comparing, ranking and combining detectors."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from collision_world import WIDE, World, speed_from
from scipy import stats

from verifier.base.errors import UsageError
from verifier.collision import kernel, resampling
from verifier.collision.comparison import Area, areas, bootstrap_p_values, compare, p_values
from verifier.collision.document import Crossing
from verifier.collision.estimator import BrakingPolicy, EstimatorSettings, Grid, collision_map, with_common_width
from verifier.collision.pairs import Pairs, split
from verifier.collision.ranking import Ranking, combine, rank, trusted
from verifier.collision.resampling import Subsampling
from verifier.collision.score import EVEN, Score, Weight, oracle_map, score

POLICY = BrakingPolicy(6.86, 0.1)
GRID = Grid(np.arange(8.0, 32, 4), np.array([20, 25, 33]) * 0.44704)
BAD, GOOD = World(0.5), World(0.1)


def both(images=800, seed=1):
    """A bad and a good detector on the same objects."""
    rng = np.random.default_rng(seed)
    bad = BAD.draw(images, rng)
    return bad, Pairs(bad.true_m, GOOD.report(bad.true_m, rng), bad.image, images)


def apart(images=600, seed=1, world=WIDE):
    """Two detectors with equal errors on images of their own."""
    rng = np.random.default_rng(seed)
    first, second = world.draw(images, rng), world.draw(images, rng)
    return (
        Pairs(first.true_m, first.predicted_m, first.image, 2 * images),
        Pairs(second.true_m, second.predicted_m, second.image + images, 2 * images),
    )


def test_areas_by_hand():
    first = np.array([0.01, 0.04, 0.20, 0.10, 0.06, math.nan, 0.049])
    second = np.array([0.02, 0.06, 0.10, 0.20, 0.06, 0.01, 0.049])
    expected = [Area.EITHER, Area.FIRST, Area.SECOND, Area.FIRST, Area.TIED, Area.UNDEFINED, Area.EITHER]
    assert areas(np.stack([first, second]), 0.05).tolist() == expected
    assert all(area.text for area in Area)


def test_p_values_by_hand():
    # theta_n = -1/4, tau_b / tau_n = 1/2: roots / tau_n = (theta_b + 1/4)/2 = -3/8, -1/4, 0, 1/8 and none.
    # At or below -1/4: two, and the one without a value: 3/5.
    theta_b = np.array([-1.0, -0.75, -0.25, 0.0, math.nan])
    assert p_values(np.float64(-0.25), theta_b, 0.5) == 0.6
    # theta_n = -7/8: roots (theta_b + 7/8)/2 = -1/16, 1/16, ...: none, but the missing one.
    assert p_values(np.float64(-0.875), theta_b, 0.5) == 0.2
    # Never 0: 1/s.
    assert p_values(np.float64(-0.875), theta_b[:4], 0.5) == 0.25
    # For theta > 0 with signs changed: theta_n = 1/4, theta_b = 1, 3/4, 1/4, 0.
    assert p_values(-np.float64(0.25), -np.array([1.0, 0.75, 0.25, 0.0]), 0.5) == 0.5


def test_the_better_detector_is_found():
    bad, good = both()
    found = compare(bad, good, GRID, POLICY, rng=np.random.default_rng(2))
    assert found.common_objects == found.objects == len(bad)
    assert found.subsamples == found.subsample_size == math.isqrt(len(bad))
    assert set(np.unique(found.area)) <= {Area.SECOND, Area.EITHER}
    sure = found.area == Area.SECOND
    assert sure.sum() >= 5
    assert np.median(found.p_value[sure]) < 0.05
    # The other way round the colours change and the p-values stay.
    turned = compare(good, bad, GRID, POLICY, rng=np.random.default_rng(2))
    assert np.array_equal(turned.area == Area.FIRST, sure)
    np.testing.assert_allclose(turned.p_value, found.p_value)
    # Bootstrap p-values say so too.
    by_images = bootstrap_p_values(bad, good, found, rng=np.random.default_rng(3), replicates=100)
    assert np.median(by_images[sure]) < 0.05
    assert by_images.min() >= 0.01


def test_one_kernel_for_both():
    bad, good = both()
    found = compare(bad, good, GRID, POLICY, rng=np.random.default_rng(2))
    own = [collision_map(each, GRID, POLICY).width_m for each in (bad, good)]
    assert [each.width_m for each in found.maps] == pytest.approx([min(own)] * 2, rel=1e-12, abs=0)
    assert own[0] > 1.3 * own[1]
    two = with_common_width((bad, good), GRID, POLICY, EstimatorSettings(two_bandwidths=True))
    assert two[0].width_m > 1.3 * two[1].width_m


def test_a_detector_beside_itself_is_tied():
    bad, _ = both(200)
    found = compare(bad, bad, GRID, POLICY, rng=np.random.default_rng(2), threshold=0.0)
    assert set(np.unique(found.area)) == {Area.TIED}
    assert np.isnan(found.p_value).all()


def test_blocks_do_not_matter(monkeypatch):
    bad, good = both(200)
    whole = compare(bad, good, GRID, POLICY, rng=np.random.default_rng(2))
    monkeypatch.setattr(kernel, "BLOCK_BYTES", 8 * 500)
    seen = []
    pieces = compare(bad, good, GRID, POLICY, rng=np.random.default_rng(2), progress=lambda *done: seen.append(done))
    assert seen[-1] == (6, 6)
    assert len(seen) == 6
    np.testing.assert_allclose(whole.p_value, pieces.p_value)


def test_p_values_from_subsamples_one_by_one():
    # Single objects (r2 = 1), a fixed width: every subsample is a data set of its own, with the width that its size
    # asks for, and the p-values of all three colours can be counted.
    rng = np.random.default_rng(8)
    true = rng.gamma(3, 8, 300)
    first, second = (Pairs(true, w.report(true, rng), np.arange(300), 300) for w in (World(0.3), World(0.3)))
    settings = EstimatorSettings("fixed", width_m=1.0)
    found = compare(
        first, second, GRID, POLICY, settings, rng=np.random.default_rng(5), subsampling=Subsampling(60, 25)
    )
    assert set(np.unique(found.area)) == {Area.FIRST, Area.SECOND, Area.EITHER}

    def losses(rows, width):
        by_detector = []
        for each in (first, second):
            image = np.arange(len(rows))
            of = collision_map(
                Pairs(true[rows], each.predicted_m[rows], image, len(rows)),
                GRID,
                POLICY,
                EstimatorSettings("fixed", width_m=width),
            ).probability
            oracle = collision_map(
                Pairs(true[rows], true[rows], image, len(rows)),
                GRID,
                POLICY,
                EstimatorSettings("fixed", width_m=width),
            ).probability
            by_detector.append(np.abs(of - oracle))
        return by_detector

    def theta(area, one, other):
        return {Area.FIRST: one - other, Area.SECOND: other - one, Area.EITHER: max(one, other) - 0.05}[area]

    drawn = Subsampling(60, 25).draw(300, np.random.default_rng(5))
    sampled = [losses(rows, 5**0.2) for rows in drawn]  # (300 / 60)^(1/5) m
    every = losses(np.arange(300), 1.0)
    np.testing.assert_allclose(found.losses, every, atol=1e-12)
    for point in np.ndindex(GRID.shape):
        area = Area(found.area[point])
        theta_n = theta(area, every[0][point], every[1][point])
        roots = [theta(area, one[point], other[point]) - theta_n for one, other in sampled]
        against = sum(not 0.2**0.4 * root > theta_n for root in roots)
        assert found.p_value[point] == max(against, 1) / 25


def test_a_subsample_of_everything_has_no_root():
    # b = n: theta_b = theta_n and the roots are 0; p = share of 0 <= theta_n < 0: none, so 1/s.
    bad, good = both(200)
    every = Subsampling(size=len(bad), count=3)
    found = compare(bad, good, GRID, POLICY, rng=np.random.default_rng(2), subsampling=every, threshold=0.0)
    np.testing.assert_allclose(found.p_value[found.area != Area.TIED], 1 / 3)
    assert np.isnan(found.p_value[found.area == Area.TIED]).all()
    assert np.sum(found.area != Area.TIED) > 10


def test_objects_of_one_detector_only_count():
    bad, good = both(400)
    few = Pairs(good.true_m[::2], good.predicted_m[::2], good.image[::2], good.image_count)
    found = compare(bad, few, GRID, POLICY, rng=np.random.default_rng(2))
    assert found.objects == len(bad)
    assert found.common_objects == len(few)
    assert np.isfinite(found.p_value).all()


def p_of_first(found):
    """p-value of "the first is better" at the only point."""
    value = found.p_value[0, 0]
    return value if found.area[0, 0] == Area.FIRST else 1 - value


def test_p_values_are_uniform_where_neither_is_better(thorough):
    # Equal errors on images of their own: theta = 0. Without a threshold the point is FIRST or SECOND.
    # Where the losses come near 0 or the kernel of a subsample reaches far, more subsamples are needed: see the table
    # of the slow suite.
    grid = Grid(np.array([20.0]), np.array([40 * 0.44704]))
    settings = EstimatorSettings("fixed", width_m=0.7)
    found = []
    for seed in range(120 if thorough else 30):
        first, second = apart(seed=seed)
        rng = np.random.default_rng(seed)
        found.append(p_of_first(compare(first, second, grid, POLICY, settings, rng=rng, threshold=0.0)))
    assert stats.kstest(found, "uniform").pvalue > 0.01
    assert 0.04 <= np.mean(np.array(found) <= 0.1) <= 0.18


def test_a_detector_without_spread_has_the_kernel_of_the_other():
    bad, _ = both(50)
    rng = np.random.default_rng(0)
    same = Pairs(bad.true_m, np.full(len(bad), 9.0), bad.image, 50)
    found = compare(bad, same, GRID, POLICY, rng=rng)
    # The reports of one detector have no spread, but the other's kernel serves both.
    assert found.maps[1].width_m == pytest.approx(found.maps[0].width_m)


def lines(*scores, above=None, below=None, heavy="below"):
    count = len(scores)
    empty = np.zeros((0, count))
    return Ranking(
        tuple("abc"[:count]),
        tuple(Score(*each, 1.0) for each in scores),
        empty if above is None else np.array(above),
        empty if below is None else np.array(below),
        heavy,
        0.9,
        "uniform",
    )


def test_crossings_by_hand():
    # a: .02 + .05 r, b: .04 + .01 r, c: .06 + .02 r. a = b at .02 = .04 r, r = 1/2; a = c at .04 = .03 r, r = 4/3;
    # b is below c for every r > 0.
    ranking = lines((0.02, 0.05), (0.04, 0.01), (0.06, 0.02))
    assert ranking.crossings() == (
        Crossing(pytest.approx(0.5), 0, 1),
        Crossing(pytest.approx(4 / 3), 0, 2),
    )
    assert ranking.order(0.4) == (0, 1, 2)
    assert ranking.order(1.0) == (1, 0, 2)
    assert ranking.order(2.0) == (1, 2, 0)
    assert ranking.losses(10.0) == pytest.approx([0.52, 0.14, 0.26])
    # With "above" heavy, a is .05 + .02 r, b .01 + .04 r: b up to r = 2, a beyond.
    turned = lines((0.02, 0.05), (0.04, 0.01), heavy="above")
    assert turned.crossings() == (Crossing(pytest.approx(2.0), 1, 0),)
    assert turned.losses(1.0) == pytest.approx([0.07, 0.05])


def test_replicates_by_hand():
    # Base .02 and .04 throughout; slopes of a .05, .05, .01, missing; of b .01.
    ranking = lines(
        (0.02, 0.05),
        (0.04, 0.01),
        above=[[0.02, 0.04], [0.02, 0.04], [0.02, 0.04], [math.nan, 0.04]],
        below=[[0.05, 0.01], [0.05, 0.01], [0.01, 0.01], [0.05, 0.01]],
    )
    # At ratio 1: a .07, .07, .03; b .05 throughout.
    assert ranking.best_share(1.0) == pytest.approx([1 / 3, 2 / 3])
    low, high = ranking.interval(1.0)
    assert low == pytest.approx([0.03, 0.05])
    assert high == pytest.approx([0.07, 0.05])
    found = ranking.crossing_replicates(ranking.crossings()[0])
    assert found[:2] == pytest.approx([0.5, 0.5])
    assert np.isnan(found[2:]).all()
    none = lines((0.02, 0.05), (0.04, 0.01))
    assert np.isnan(none.best_share(1.0)).all()
    assert np.isnan(none.interval(1.0)[0]).all()


def test_equals_share_a_replicate():
    ranking = lines((0.1, 0.0), (0.1, 0.0), above=[[0.1, 0.1], [0.1, 0.2]], below=[[0.0, 0.0], [0.0, 0.0]])
    assert ranking.best_share(5.0) == pytest.approx([0.75, 0.25])
    assert ranking.crossings() == ()


def test_ranking_of_a_bad_and_a_good_detector():
    bad, good = both()
    seen = []
    ranking = rank(
        (bad, good),
        GRID,
        POLICY,
        rng=np.random.default_rng(3),
        replicates=60,
        progress=lambda *done: seen.append(done),
    )
    assert seen[-1] == (6, 6)
    for ratio in (0.0, 1.0, 10.0):
        assert ranking.order(ratio) == (1, 0)
        assert ranking.best_share(ratio).tolist() == [0, 1]
        low, high = ranking.interval(ratio)
        assert np.all(low <= high)
        assert np.all((low < ranking.losses(ratio) + 0.02) & (high > ranking.losses(ratio) - 0.02))
    # The scores are those of the maps.
    found = compare(bad, good, GRID, POLICY, rng=np.random.default_rng(2))
    excess = found.maps[0].probability - oracle_map(bad, found.maps[0]).probability
    assert ranking.scores[0].above == pytest.approx(np.maximum(excess, 0).mean())
    assert ranking.scores[0].below == pytest.approx(np.maximum(-excess, 0).mean())


def test_replicates_do_not_depend_on_blocks(monkeypatch):
    bad, good = both(100)
    whole = rank((bad, good), GRID, POLICY, rng=np.random.default_rng(3), replicates=10)
    monkeypatch.setattr(resampling, "BLOCK_BYTES", 8 * 3 * (4 * 10 * 3 + len(bad)))
    pieces = rank((bad, good), GRID, POLICY, rng=np.random.default_rng(3), replicates=10)
    np.testing.assert_allclose(whole.above, pieces.above)
    np.testing.assert_allclose(whole.below, pieces.below)


def test_what_cannot_be_ranked():
    rng = np.random.default_rng(0)
    one = Pairs(np.array([9.0]), np.array([10.0]), np.array([0]), 50)
    with pytest.raises(
        UsageError, match=re.escape("detector 1 cannot be resampled: its reported distances have no spread")
    ):
        rank((one, one), GRID, POLICY, rng=rng)


def test_trusted_by_hand():
    probabilities = np.array([[[0.5, math.nan, math.nan, 0.3]], [[0.4, 0.9, math.nan, 0.3]]])
    oracles = np.array([[[0.2, 0.5, 0.5, 0.2]], [[0.2, 0.5, 0.5, 0.2]]])
    assert trusted(probabilities, oracles).tolist() == [[1, 1, -1, 0]]
    # .5 and .1 beside .2: above by .3, below by .1.
    assert trusted(np.array([[[0.5]], [[0.1]]]), np.full((2, 1, 1), 0.2)).tolist() == [[1]]


def test_each_detector_is_trusted_where_it_is_good():
    # The first is good up to 20 m and bad beyond, the second the other way round.
    rng = np.random.default_rng(6)
    base = BAD.draw(4000, rng)
    good, bad = GOOD.report(base.true_m, rng), BAD.report(base.true_m, rng)
    near = base.true_m < 20
    first = Pairs(base.true_m, np.where(near, good, bad), base.image, 4000)
    second = Pairs(base.true_m, np.where(near, bad, good), base.image, 4000)
    grid = Grid(np.arange(8.0, 44, 2), speed_from(POLICY, np.arange(8.0, 40, 4)))
    found = combine((first, second), grid, POLICY, rng=np.random.default_rng(1))
    assert (found.chosen_on, found.scored_on) == (2000, 2000)
    assert {0, 1} <= set(np.unique(found.choice))
    assert found.combined.value(EVEN) < 0.9 * min(each.value(EVEN) for each in found.single)
    # What is scored are maps of the held-out half, and their patchwork.
    _, held_out = split(4000, 0.5, np.random.default_rng(1))
    for pairs, each in zip((first, second), found.single, strict=True):
        kept = pairs.take(held_out)
        maps = with_common_width((first.take(held_out), second.take(held_out)), grid, POLICY, EstimatorSettings())
        of = maps[0 if pairs is first else 1]
        oracle = oracle_map(kept, of)
        alone = score(of.probability, oracle.probability, Weight.uniform(grid))
        assert (each.above, each.below) == pytest.approx((alone.above, alone.below))
    excess = found.probability - found.oracle
    assert found.combined.above == pytest.approx(np.nanmean(np.maximum(excess, 0)))
    assert found.combined.covered == pytest.approx(1)


def test_choosing_among_equals_gains_nothing_on_other_images(thorough):
    # On the images chosen on, the smaller of two noisy losses looks better than either; on others it is not.
    gains = []
    for seed in range(12 if thorough else 8):
        first, second = apart(400, seed)
        found = combine((first, second), GRID, POLICY, rng=np.random.default_rng(seed))
        gains.append(np.mean([each.value(EVEN) for each in found.single]) - found.combined.value(EVEN))
    assert abs(np.mean(gains)) < 3 * np.std(gains) / len(gains) ** 0.5 + 1e-3


def test_points_without_a_choice_are_left_out():
    bad, good = both(60)
    grid = Grid(np.array([10.0, 14.0, 500.0]), np.array([10.0, 12.0]))
    found = combine((bad, good), grid, POLICY, rng=np.random.default_rng(1), weight=Weight.uniform(grid))
    assert found.choice[2].tolist() == [-1, -1]
    assert np.isnan(found.probability[2]).all()
    assert found.combined.covered == pytest.approx(2 / 3)
    assert found.single[0].covered == found.combined.covered
