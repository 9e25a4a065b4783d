"""The oracle, the loss, weights and scores."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import UsageError
from verifier.collision.estimator import BrakingPolicy, EstimatorSettings, Grid, collision_map
from verifier.collision.pairs import Pairs
from verifier.collision.score import (
    EVEN,
    PRINTED,
    Penalty,
    Score,
    Weight,
    common_points,
    oracle_map,
    score,
    weight_on,
)

POLICY = BrakingPolicy(6.86, 0.1)
SQUARE = Grid(np.array([10.0, 20.0]), np.array([5.0, 10.0]))


def test_loss_by_hand():
    # lambda .5, lambda* .2: above by .3; lambda .1, lambda* .3: below by .2.
    probability, oracle = np.array([0.5, 0.1, 0.4, math.nan]), np.array([0.2, 0.3, 0.4, 0.5])
    assert PRINTED.loss(probability, oracle)[:3] == pytest.approx([0.3, 2.0, 0.0])
    assert Penalty(1, 10, "above").loss(probability, oracle)[:3] == pytest.approx([3.0, 0.2, 0.0])
    assert EVEN.loss(probability, oracle)[:3] == pytest.approx([0.3, 0.2, 0.0])
    assert math.isnan(EVEN.loss(probability, oracle)[3])
    assert np.all(PRINTED.loss(oracle, oracle) == 0)


@pytest.mark.parametrize(
    ("penalty", "message"),
    [
        ({"alpha": -1.0}, "alpha must be at least 0, got -1"),
        ({"beta": math.inf}, "beta must be at least 0, got inf"),
        ({"alpha": 0.0, "beta": 0.0}, "alpha and beta cannot both be 0"),
    ],
)
def test_penalties_that_are_none(penalty, message):
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        Penalty(**penalty)


def shifted(metres):
    """400 single objects, reported `metres` too far."""
    true = np.linspace(8, 60, 400)
    return Pairs(true, true + metres, np.arange(400), 400)


@pytest.mark.parametrize("metres", [3.0, -3.0])
def test_which_side_is_the_dangerous_one(metres):
    # Reported 3 m too far: what is reported at y is at y - 3, so lambda(y) = lambda*(y - 3) >= lambda*(y): above the
    # oracle everywhere. Reported too near: below it. The printed formula is heavy below.
    grid = Grid(np.linspace(12, 50, 40), np.linspace(8, 22, 15))
    settings = EstimatorSettings("fixed", width_m=1.0)
    found = collision_map(shifted(metres), grid, POLICY, settings)
    oracle = oracle_map(shifted(metres), found)
    parts = score(found.probability, oracle.probability, Weight.uniform(grid))
    assert parts.covered == pytest.approx(1)
    too_far, too_near = (parts.above, parts.below) if metres > 0 else (parts.below, parts.above)
    assert too_far > 0.02
    assert too_near < 1e-9
    assert parts.value(Penalty(1, 10, "below")) == pytest.approx(parts.above + 10 * parts.below)
    assert parts.value(Penalty(1, 10, "above")) == pytest.approx(10 * parts.above + parts.below)


def test_a_perfect_detector_loses_nothing():
    pairs = shifted(0.0)
    found = collision_map(pairs, SQUARE, POLICY)
    oracle = oracle_map(pairs, found)
    assert np.array_equal(found.probability, oracle.probability, equal_nan=True)
    assert oracle.title == "oracle"
    assert score(found.probability, oracle.probability, Weight.uniform(SQUARE)).value(PRINTED) == 0


def test_score_by_hand():
    probability = np.array([[0.5, 0.1], [0.7, math.nan]])
    oracle = np.array([[0.2, 0.3], [0.7, 0.9]])
    # Three points of equal weight: above .3, below .2, equal.
    uniform = score(probability, oracle, Weight.uniform(SQUARE))
    assert (uniform.above, uniform.below, uniform.covered) == pytest.approx((0.1, 0.2 / 3, 0.75))
    assert uniform.value(PRINTED) == pytest.approx(0.1 + 2 / 3)
    # Weights 1, 3, 0, 4, as counts: of the defined ones 1/4 and 3/4.
    weight = Weight.profile(SQUARE, [(10, 5, 1), (10, 10, 3), (20, 10, 4)])
    assert weight.share.tolist() == [[0.125, 0.375], [0.0, 0.5]]
    weighted = score(probability, oracle, weight)
    assert (weighted.above, weighted.below, weighted.covered) == pytest.approx((0.3 / 4, 0.2 * 3 / 4, 0.5))
    among = np.array([[True, False], [True, True]])
    fewer = score(probability, oracle, weight, among)
    assert (fewer.above, fewer.below, fewer.covered) == pytest.approx((0.3, 0.0, 0.125))


def test_score_without_a_defined_point():
    nothing = score(np.full((2, 2), math.nan), np.zeros((2, 2)), Weight.uniform(SQUARE))
    assert nothing.covered == 0
    assert math.isnan(nothing.value(PRINTED))
    # Weight only where nothing is defined.
    half = np.array([[0.5, 0.5], [math.nan, math.nan]])
    assert math.isnan(score(half, half, Weight.profile(SQUARE, [(20, 5, 1)])).above)


def test_the_slope_of_the_papers_score_is_the_part_below():
    # "L is a linear function of the ratio beta / alpha" (Sec. 5.5).
    parts = Score(0.04, 0.0325, 1.0)
    values = [parts.value(Penalty(1, ratio)) for ratio in (1, 2, 10)]
    assert np.diff(values) == pytest.approx([0.0325, 8 * 0.0325])


@given(st.lists(st.tuples(st.sampled_from([10.0, 20.0]), st.sampled_from([5.0, 10.0]), st.floats(0, 9)), min_size=1))
def test_profiles_add_up(rows):
    total = sum(row[2] for row in rows)
    if total > 1e-9:
        weight = Weight.profile(SQUARE, rows)
        assert weight.share.sum() == pytest.approx(1)
        mine = sum(row[2] for row in rows if row[:2] == (20.0, 5.0))
        assert weight.share[1, 0] == pytest.approx(mine / total)


def test_profile_rows_go_to_the_nearest_point():
    # Half a step beyond the ends is still on the grid: 5..25 m and 2.5..12.5 m/s.
    weight = Weight.profile(SQUARE, [(14.9, 5, 1), (15.1, 12.5, 2), (5, 2.5, 1)])
    assert weight.share.tolist() == [[0.5, 0.0], [0.0, 0.5]]
    # Each end has the margin of the step next to it: 5 below, 10 above.
    uneven = Grid(np.array([10.0, 20.0, 40.0]), np.array([5.0]))
    assert Weight.profile(uneven, [(5, 5, 1), (50, 5, 3)]).share.tolist() == [[0.25], [0.0], [0.75]]
    for beyond in (4.9, 50.1):
        with pytest.raises(UsageError, match="is not on the grid"):
            Weight.profile(uneven, [(beyond, 5, 1)])
    # A single point has no step: rounding alone is allowed for, on either side.
    point = Grid(np.array([10.0]), np.array([5.0]))
    for off in (-4e-10, 0, 4e-10):
        assert Weight.profile(point, [(10 * (1 + off), 5 * (1 - off), 3)]).share.tolist() == [[1.0]]
        with pytest.raises(UsageError, match="is not on the grid"):
            Weight.profile(point, [(10 * (1 + 4 * off) + (off == 0), 5, 3)])


def test_the_largest_weight_and_none_at_all_are_weights():
    weight = Weight.profile(SQUARE, [(10, 5, 1e100), (20, 5, 0)])
    assert weight.share.tolist() == [[1.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [(10, 5, 1), (25.1, 5, 1)],
            "row 2 of the profile: distance 25.1 m, speed 5 m/s is not on the grid, 10..20 m and 5..10 m/s",
        ),
        (
            [(10, 2.4, 1)],
            "row 1 of the profile: distance 10 m, speed 2.4 m/s is not on the grid, 10..20 m and 5..10 m/s",
        ),
        (
            [(math.nan, 5, 1)],
            "row 1 of the profile: distance nan m, speed 5 m/s is not on the grid, 10..20 m and 5..10 m/s",
        ),
        ([(10, 5, -1)], "row 1 of the profile: expected a weight from 0 to 1e+100, got -1"),
        ([(10, 5, math.nan)], "row 1 of the profile: expected a weight from 0 to 1e+100, got nan"),
        ([(10, 5, 0)], "the weights of the profile add up to nothing"),
        ([], "the weights of the profile add up to nothing"),
        ([(10, 5, 1), (10, 5, 1e101)], "row 2 of the profile: expected a weight from 0 to 1e+100, got 1e+101"),
    ],
)
def test_profiles_that_are_none(rows, message):
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        Weight.profile(SQUARE, rows)


def test_what_is_said_where_no_weight_is():
    assert weight_on(SQUARE, None).name == "uniform"
    found = collision_map(shifted(1.0), SQUARE, POLICY)
    assert common_points([found, found]).all()
