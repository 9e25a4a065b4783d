"""The cheapest improvement: closed forms, a brute-force grid, and the gradient in the recalls."""

import math
from dataclasses import fields
from fractions import Fraction
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recall_cases import MILLION, binary, cells_of, chance, problem
from small_objectives import channel_of, objective_of, random_objective, random_rates

from verifier.analysis.objective import Objective
from verifier.analysis.recall import least_cost as searching
from verifier.analysis.recall.least_cost import Improvement, _local_minimum, _slack, least_cost
from verifier.analysis.recall.requirements import Problem, Target


def improvement(objectives, recalls, comparison, target, costs, whole=MILLION):
    cells = cells_of(*((b, 1) for b in range(len(recalls))))
    task = problem(objectives, binary(*map(float, recalls)), comparison, target)
    return Improvement(task, cells, tuple(map(Fraction, recalls)), tuple(map(Fraction, costs)), whole)


def test_two_bins_share_the_burden_as_their_prices_say():
    # Minimise r1 + 4 r2 subject to r1 r2 = 0.36: r1 = sqrt(0.36 * 4) > 1, so r1 = 1 and r2 = 0.36,
    # in six decimals: r2 = 0.360001, and r1 = 0.999998 is the least with r1 r2 > 0.36 ...
    task = improvement([chance([0, 1])], ["0.3", "0.3"], ">", "0.36", [1, 4])
    assert least_cost(task) == [999_998, 360_001]
    # ... and with prices 1 and 9/4 below the corner: r1 = sqrt(.36 * 9/4) = 0.9, r2 = 0.4.
    task = improvement([chance([0, 1])], ["0.3", "0.3"], ">", "0.36", [1, Fraction(9, 4)])
    found = least_cost(task)
    assert found == pytest.approx([900_000, 400_000], abs=1000)
    assert found[0] * found[1] > 360_000_000_000
    # The price is flat around the minimum: 0.6 + 0.9/4 = 0.825.
    assert float(task.cost(found)) == pytest.approx(0.825, abs=3e-6)


def test_nothing_is_improved_that_is_good_enough():
    task = improvement([chance([0, 1])], ["0.75", "0.75"], ">=", "0.5", [1, 1])
    assert least_cost(task) == [750_000, 750_000]
    assert task.cost([750_000, 750_000]) == 0


def test_an_unaffordable_cell_is_left_alone():
    # r1 r2 >= 0.45 with r1 = 0.9 measured and dear: r2 = 0.5.
    task = improvement([chance([0, 1])], ["0.9", "0.1"], ">", "0.45", [1000, 1])
    assert least_cost(task) == pytest.approx([900_000, 500_001], abs=1)


@pytest.mark.parametrize(
    ("comparison", "target", "expected"),
    [(">=", 1, [MILLION, MILLION]), (">", 1, None), (">=", 0, [250_000, 250_000]), ("<", 0, None)],
)
def test_targets_0_and_1(comparison, target, expected):
    task = improvement([chance([0, 1])], ["0.25", "0.25"], comparison, target, [1, 1])
    assert least_cost(task, rng=np.random.default_rng(1)) == expected


def test_only_the_bins_that_matter_are_raised_for_certainty():
    # P = r1: P >= 1 needs recall 1 in bin 0 only, although bin 1 costs less.
    task = improvement([chance([0]), chance([0])], ["0.25", "0.25"], ">=", 1, [5, 1])
    assert least_cost(task) == [MILLION, 250_000]


def test_an_upper_limit():
    # P(F bad) = 1 - r1 r2 < 0.19: r1 = r2 = 0.9 at equal prices.
    task = improvement([chance([0, 1], "F bad")], ["0.5", "0.5"], "<", "0.19", [1, 1])
    found = least_cost(task)
    assert float(task.cost(found)) == pytest.approx(0.8, abs=3e-6)


def test_from_nearly_nothing():
    # Ten bins of recall 0.01: P = 1e-20 to begin with; equal prices share equally, r = 0.9^(1/10).
    task = improvement([chance(range(10))], ["0.01"] * 10, ">=", "0.9", [1] * 10)
    found = least_cost(task)
    assert float(task.cost(found)) == pytest.approx(10 * (0.9**0.1 - 0.01), abs=2e-5)


def check_that_no_point_of_a_grid_is_cheaper(seed):
    rng = np.random.default_rng(seed)
    objective = random_objective(rng, ["F q", "G !p", "p U q"][seed % 3])
    measured = random_rates(rng, 2, 3)
    cells = cells_of((0, 1), (1, 2))
    target = Target([">=", "<="][seed % 2], Fraction(int(rng.integers(1, 32)), 32))
    own = tuple(Fraction(float(each)) for each in cells.of(measured))
    task = Improvement(Problem((objective,), measured, target), cells, own, (Fraction(1), Fraction(2)), 1000)
    found = least_cost(task, rng=rng)
    low = task.least
    steps = [np.unique(np.linspace(least, 1000, 25).round().astype(np.int64)) for least in low]
    points = np.array([(a, b) for a in steps[0] for b in steps[1]])
    good = points[task.met(points)]
    if found is None:
        assert len(good) == 0
    else:
        assert task.met(np.array([found]))[0]
        assert all(task.cost(found) <= task.cost(point.tolist()) + Fraction(2, 100) for point in good)


@settings(max_examples=3)
@given(st.integers(0, 10_000))
def test_no_point_of_a_grid_is_cheaper(seed):
    check_that_no_point_of_a_grid_is_cheaper(seed)


@pytest.mark.slow
@settings(max_examples=80)
@given(st.integers(0, 10_000))
def test_no_point_of_a_grid_is_cheaper_at_length(seed):
    check_that_no_point_of_a_grid_is_cheaper(seed)


@given(st.integers(0, 10_000))
def test_the_gradient_in_the_recalls_is_that_of_finite_differences(seed):
    rng = np.random.default_rng(seed)
    objective = random_objective(rng, "F q", draws=1 + seed % 2)
    measured = random_rates(rng, 2, 3)
    cells = cells_of((0, 1), (1, 2))
    target = Target([">=", "<="][seed % 2], Fraction(1, 2))
    task = Improvement(Problem((objective,), measured, target), cells, (Fraction(0),) * 2, (Fraction(1),) * 2, 1000)
    recall = rng.uniform(0.2, 0.8, 2)
    slack, slope = _slack(task, recall)
    for cell in range(2):
        step = 1e-6 * np.eye(2)[cell]
        difference = (_slack(task, recall + step)[0] - _slack(task, recall - step)[0]) / 2e-6
        certain = slack < -600  # the logarithm of 0, floored
        assert slope[~certain, cell] == pytest.approx(difference[~certain], rel=1e-4, abs=1e-6)


def test_the_chance_of_being_right_and_its_slopes_by_hand(monkeypatch):
    # From state 0 it is right with r0 r1, from state 1 with r1; d log(r0 r1) = 1/r0, 1/r1.
    cells, recall = cells_of((0, 1), (1, 1)), np.array([0.5, 0.75])
    following = [[3, 1], [3, 2], [2, 2], [3, 3]]
    channel = channel_of([(), ("a",)], [[0], [1]], [[1], [1]])
    true_in = {"good": {2}, "bad": {3}}
    for formula, comparison, target, asked in (("F good", ">=", "0.2", 0.2), ("F bad", "<=", "0.2", 0.8)):
        one = objective_of(channel, following, [0, 1, 0, 0], true_in, formula, starts=(0, 1), ended=(2, 3))
        task = Improvement(problem([one], binary(0.1, 0.1), comparison, target), cells, (0, 0), (1, 1), 10)
        both = [math.log(0.375 / asked), math.log(0.75 / asked)], [[2, 4 / 3], [0, 4 / 3]]
        for most, rows in ((2, slice(2)), (1, slice(1))):  # beyond, the worst start alone
            monkeypatch.setattr(searching, "MOST_CONSTRAINTS", most)
            slack, slope = _slack(task, recall)
            assert slack == pytest.approx(both[0][rows], rel=1e-12)
            assert slope == pytest.approx(np.array(both[1][rows]), rel=1e-12)


def test_at_a_recall_of_1_what_would_be_lost_of_it_is_as_measured():
    # Told as b it is lost; of what is not told as a, measured are 3/4 as b and 1/4 as nothing. P = 1 - (1 - r) 3/4.
    channel = channel_of([(), ("a",), ("b",)], [[0]], [[1]], [frozenset(), frozenset("a"), frozenset("b")])
    one = objective_of(channel, [[2, 2, 1], [1] * 3, [2] * 3], [0] * 3, {"bad": {1}}, "G !bad", ended=(1, 2))
    measured = np.array([[[1, 0.1, 0], [0, 0.6, 0], [0, 0.3, 1]]])
    task = Improvement(
        Problem((one,), measured, Target(">=", Fraction(1, 2))), cells_of((0, 1)), (Fraction(3, 5),), (1,), 10
    )
    for recall in (0.8, 1.0):
        slack, slope = _slack(task, np.array([recall]))
        right = 1 - (1 - recall) * 0.75
        assert (slack[0], slope[0, 0]) == pytest.approx((math.log(2 * right), 0.75 / right), rel=1e-12)


@pytest.mark.parametrize("scale", [10**-13, 1, 10**13])
def test_the_scale_of_prices_does_not_matter(scale):
    task = improvement(
        [chance([0, 1])], ["0.3", "0.3"], ">", "0.36", [Fraction(scale), Fraction(9, 4) * Fraction(scale)]
    )
    assert _local_minimum(task, np.array([0.7, 0.8])) == pytest.approx([900_000, 400_000], abs=20)
    one = improvement([chance([0])], ["0.3"], ">=", "0.5", [Fraction(scale)], whole=3)
    assert _local_minimum(one, np.array([1.0])).tolist() == [2]  # 3/2, rounded up
    assert least_cost(improvement([chance([0])], ["0.3"], ">=", "0.5", [0], whole=3)) == [2]


@pytest.mark.parametrize(
    ("point", "costs", "expected"),
    [
        ([4, 9], [1, 2], [4, 9]),  # 36: as good as it gets, one cell at a time
        ([8, 8], [1, 2], [8, 5]),  # the dearest first: 8 4.5, then 7.2 5
        ([8, 8], [2, 1], [5, 8]),
        ([3, 6], [1, 2], [5, 8]),  # on the line to (10, 10) lie (4, 7) with 28 and (5, 8) with 40
        ([0, 12], [2, 1], [4, 9]),  # begun within the bounds, in (1, 10)
        ([10, 10], [1, 1], [4, 9]),
    ],
)
def test_points_are_polished_on_the_line_and_cell_by_cell(point, costs, expected):
    task = improvement([chance([0, 1])], ["0.1", "0.2"], ">", "0.3599", costs, whole=10)
    assert searching._polished(task, np.array(point)) == expected


@given(st.sets(st.integers(0, 300)), st.integers(0, 300), st.integers(0, 300))
def test_the_least_that_meets_it_is_found_where_it_is_a_step_and_else_the_end_of_one(missed, low, high):
    low, high = sorted((low, high))
    met = np.isin(np.arange(301), list(missed), invert=True)
    task = SimpleNamespace(met=lambda points: met[points[:, 0]])
    found = searching._least_met(task, lambda part: np.array([part]), low, high)
    assert (found is None) == (not met[high])
    assert found is None or (met[found] and (found == low or not met[found - 1]))
    met = np.arange(301) >= low
    assert searching._least_met(task, lambda part: np.array([part]), 0, high) == low
    assert searching._least_met(task, lambda part: np.array([part]), high, high) == high


class Flat(Objective):
    slopes: ClassVar[bool] = False


@pytest.mark.parametrize(
    ("comparison", "target", "flat", "followed"),
    [(">=", 0.5, 0, True), (">=", 0.5, 1, False), (">=", 1, 0, False), ("<", 0, 0, False)],
)
def test_slopes_are_followed_where_all_are_known_and_logarithms_have_some(
    comparison, target, flat, followed, monkeypatch
):
    seen, one = [], chance([0])
    monkeypatch.setattr(searching, "_local_minimum", lambda task, start: seen.append(start) or start)
    kinds = [one, Flat(**{field.name: getattr(one, field.name) for field in fields(Objective)}) if flat else one]
    least_cost(improvement(kinds, [0.2], comparison, target, [1], whole=10))
    assert bool(seen) == followed


def test_starts_that_lead_to_the_same_place_are_followed_once(monkeypatch):
    tried, begun = [], []
    monkeypatch.setattr(
        searching, "_local_minimum", lambda task, at: begun.append(at) or np.rint(at * MILLION).astype(int)
    )
    monkeypatch.setattr(searching, "_polished", lambda task, point: tried.append(point.tolist()))
    task = improvement([chance([0, 1])], ["0.25", "1"], ">=", "0.5", [1, 1])
    begin = [[400_100, 400_000], [400_400, 400_300], [402_000, 400_000]]  # within a thousandth, or not
    assert least_cost(task, begin, np.random.default_rng(0)) is None
    assert tried[:4] == [[MILLION, MILLION], [250_000, MILLION], [400_400, 400_300], [402_000, 400_000]]
    assert len(begun) == 2 + len(begin) + searching.RANDOM_STARTS
    drawn = np.array(begun[-searching.RANDOM_STARTS :])
    assert np.all((drawn >= [0.25, 1]) & (drawn <= 1))
    assert len(np.unique(drawn[:, 0])) == len(drawn)


@pytest.mark.parametrize(
    ("recalls", "costs", "whole", "message"),
    [
        (["0.5", "0.5"], [1, -1], 10, "a price from 0"),
        (["0.5", "0.5"], [1], 10, "a price from 0"),
        (["0.5", "0.5"], [1, 1], 0, "a price from 0"),
        (["0.5", "1.5"], [1, 1], 10, "between 0 and 1"),
        (["-0.5", "0.5"], [1, 1], 10, "between 0 and 1"),
        (["0", "1"], [0, 1], 1, None),
    ],
)
def test_what_cannot_be_is_refused(recalls, costs, whole, message):
    ask = [problem([chance([0, 1])], binary(0.5, 0.5), ">=", "0.5"), cells_of((0, 1), (1, 1))]
    ask += [tuple(map(Fraction, recalls)), tuple(map(Fraction, costs)), whole]
    if message is None:
        assert Improvement(*ask).least.tolist() == [0, 1]
    else:
        with pytest.raises(ValueError, match=message):
            Improvement(*ask)
