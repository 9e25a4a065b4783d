"""The cheapest improvement: closed forms, a brute-force grid, and the gradient in the recalls."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recall_cases import MILLION, binary, cells_of, chance, problem
from small_objectives import random_objective, random_rates

from verifier.analysis.recall.least_cost import Improvement, _slack, least_cost
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


@settings(max_examples=5)
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


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="a price from 0"):
        improvement([chance([0])], ["0.5"], ">=", "0.5", [-1])
    with pytest.raises(ValueError, match="between 0 and 1"):
        improvement([chance([0])], ["1.5"], ">=", "0.5", [1])
