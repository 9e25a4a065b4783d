"""Residuals in twice the digits, and the proof of a bound, against fractions."""

from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from verifier.checking.refinement import Equations, _product, _proven_bound, refined

numbers = st.floats(0, 1) | st.floats(0.25, 0.25 + 1e-12) | st.floats(0, 1e-200)
weights = st.floats(1e-300, 1) | st.floats(1e-13, 1e-11)


@given(
    st.lists(numbers, min_size=4, max_size=4),
    st.lists(numbers, min_size=4, max_size=4),
    st.lists(weights, min_size=5, max_size=5),
)
def test_a_residual_is_as_close_as_it_says(high, low, weight):
    # Two states with three and two edges, among them to each other and to both slots.
    row_start, target = np.array([0, 3, 5]), np.array([1, 2, 3, 0, 2])
    small = [part * 2.0**-53 for part in low[:2]] + [0.0, 0.0]
    values = [*high[:2], 1.0, 0.0]
    equations = Equations(row_start, target, np.array(weight)[:, None])
    result, slack = equations.residual(np.array(values)[:, None], np.array(small)[:, None])
    exact = [Fraction(a) + Fraction(b) for a, b in zip(values, small, strict=True)]
    for row in range(2):
        edges = range(row_start[row], row_start[row + 1])
        total = sum(Fraction(weight[e]) * (exact[target[e]] - exact[row]) for e in edges)
        assert abs(Fraction(result[row, 0]) - total) <= Fraction(slack[row, 0])
        assert slack[row, 0] <= 1e-15


def one_state(*answers):
    """What is proven for B = 1 and a residual of 1 with these solutions in turn."""
    given_answers = iter(answers)
    equations = Equations(np.array([0, 2]), np.array([1, 2]), np.full((2, 1), 0.5))
    return _proven_bound(equations, np.ones((1, 1)), lambda _: np.full((1, 1), next(given_answers, 0.0)))[0, 0]


def test_a_bound_is_proven_with_rounding_on_the_other_side():
    # Against 1, itself enlarged by 2^-50: no more than that is not enough, a little more is.
    assert np.isinf(one_state(1 + 2.0**-50))
    assert np.isinf(one_state(0.5))
    assert 1 < one_state(1 + 2.0**-40) < 1 + 2.0**-39
    assert 1 < one_state(0.5, 0.75) < 1.26
    assert np.isinf(one_state(np.nan))
    # What is proven is enlarged for what `low` may hold, and so is the sum with what the value itself leaves out.
    assert one_state(2.0) == 2 + 2.0**-49
    equations = Equations(np.array([0, 2]), np.array([1, 2]), np.full((2, 1), 0.5))
    found = refined(equations, np.array([[0.5], [1.0], [0.0]]), np.ones_like)
    assert (found.value[0, 0], found.error[0, 0]) == (0.5, 1 + 2.0**-49)


def test_bounds_of_several_matrices_are_proven_one_after_the_other():
    # The first at 2 in round one; the other is asked for 4 * 1, then for what 1/2 leaves of that, and proven at 3/2.
    equations, asked = Equations(np.array([0, 2]), np.array([1, 2]), np.full((2, 2), 0.5)), []
    answers = iter([[2.0, 0.5], [9.0, 1.0], [9.0, 9.0]])

    def solve(right):
        asked.append(right[0, 1])
        return np.array([next(answers)])

    assert _proven_bound(equations, np.ones((1, 2)), solve).tolist() == [[2 + 2.0**-49, 1.5 + 1.5 * 2.0**-50]]
    assert asked == [4 + 2.0**-48, 3.5 + 2.0**-48]
    assert np.isfinite(one_state(1 + 5 * 2.0**-52))  # what is left of that by half a unit is just enough


def test_a_bound_is_proven_in_every_row():
    # Two states, each left with 1/2 to each slot: 2 is enough in the one, and 1/2 not in the other.
    equations = Equations(np.array([0, 2, 4]), np.array([2, 3, 2, 3]), np.full((4, 1), 0.5))
    for answer, proven in (([2.0, 0.5], False), ([0.5, 2.0], False), ([2.0, 2.0], True)):
        solve = iter([np.array(answer)[:, None]])
        found = _proven_bound(equations, np.ones((2, 1)), lambda _, solve=solve: next(solve, np.zeros((2, 1))))
        assert np.isfinite(found).tolist() == [[proven]] * 2


@given(st.floats(1, 2), st.floats(1e-100, 1e100))
@example(float.fromhex("0x1.b1743faccda8bp0"), float.fromhex("0x1.0c525999e3efdp0"))  # halves of 27 bits overlap
def test_a_product_and_its_error_are_exact(first, second):
    for factor in (1.0, 1 / 3, 0.1, 2.0**-52 + 1):
        total, error = _product(np.float64(first * factor), np.float64(second))
        assert Fraction(float(total)) + Fraction(float(error)) == Fraction(first * factor) * Fraction(second)


def test_a_poor_solver_is_refined_to_the_nearest_double_and_a_useless_one_proves_nothing():
    # 1/3 of the way out leads to the goal, from both of two states that lead to each other.
    weight = np.array([0.5, 1 / 16, 1 / 8, 0.5, 1 / 16, 1 / 8])[:, None]
    equations = Equations(np.array([0, 3, 6]), np.array([1, 2, 3, 0, 2, 3]), weight)
    matrix = np.array([[0.6875, -0.5], [-0.5, 0.6875]])
    start = np.array([0.3, 0.4, 1.0, 0.0])[:, None]
    found = refined(equations, start, lambda right: 1.001 * np.linalg.solve(matrix, right))
    assert np.all(np.abs(found.value[:2, 0] - 1 / 3) <= 2.0**-53)
    for value, error in zip(found.value[:2, 0], found.error[:2, 0], strict=True):
        assert abs(Fraction(value) - Fraction(1, 3)) <= Fraction(error) < Fraction(1, 10**16)
    assert found.error[2:, 0].tolist() == [0, 0]
    assert np.all(np.isinf(refined(equations, start, lambda right: -right).error[:2]))


def test_rounding_by_hand():
    # In units of 2^-60, two edges of probability 1/4 from a value of 1 + 2, to 2^60 + 4 and to -2^60 + 0. Rounding
    # the differences loses -1 of each. The remainder is (-1 + 4 - 2)/4 + (-1 + 0 - 2)/4 = -1/2, of the size
    # (1 + 4 + 2)/4 + (1 + 0 + 2)/4 = 5/2; two edges: 2^-53 (1/2 + (4 * 2 + 8) 5/2).
    small = 2.0**-60
    equations = Equations(np.array([0, 2]), np.array([1, 2]), np.full((2, 1), 0.25))
    high, low = np.array([[small], [1.0], [-1.0]]), small * np.array([[2.0], [4.0], [0.0]])
    result, slack = equations.residual(high, low)
    assert result[0, 0] == -small / 2
    assert 40.5 <= slack[0, 0] / (small * 2.0**-53) <= 40.5 * (1 + 1e-9)
    # (1 + 2^-30)^2 loses 2^-60, a sum with 2^-60 as much; -(1 + 2^-29) leaves both. Three edges: 1 + 4 * 3 + 8.
    equations = Equations(np.array([0, 3]), np.array([1, 2, 3]), np.array([[1 + 2.0**-30], [1.0], [1.0]]))
    high = np.array([[0.0], [1 + 2.0**-30], [small], [-1 - 2.0**-29]])
    result, slack = equations.residual(high, np.zeros((4, 1)))
    assert result[0, 0] == 2 * small
    assert slack[0, 0] == 21 * 2.0**-53 * 2 * small * (1 + 2.0**-40)
    assert equations.residual(np.zeros((4, 1)), np.zeros((4, 1)))[1].tolist() == [[3 * 2.0**-1022]]


def test_a_residual_begins_with_what_is_gained():
    # A state that gains 3 and leaves with 1/4 + 1/4 to the slots of 0: 3 - 1/2 x, nothing left at 6.
    equations = Equations(np.array([0, 2]), np.array([1, 2]), np.full((2, 1), 0.25), np.array([[3.0]]))
    for value, left in ((6.0, 0.0), (4.0, 1.0), (10.0, -2.0)):
        result, slack = equations.residual(np.array([[value], [0], [0]]), np.zeros((3, 1)), equations.gains)
        assert (result.tolist(), float(slack[0, 0]) < 1e-15) == ([[left]], True)
    found = refined(equations, np.array([[4.0], [0], [0]]), lambda right: 1.9 * right)
    assert abs(Fraction(found.value[0, 0]) - 6) <= Fraction(found.error[0, 0])
    assert 0 < found.error[0, 0] < 1e-14


def test_only_what_more_than_halves_the_largest_residual_is_taken():
    # Two states that are decided in one step, each way with 1/2: the residual is the distance from 1/2.
    equations = Equations(np.array([0, 2, 4]), np.array([2, 3, 2, 3]), np.full((4, 1), 0.5))
    start = np.array([[0.375], [0.25], [1.0], [0.0]])
    for parts in ([2.4, 2.4], [0.5, 0.5], [1, 0.45]):  # of the distance; left is more, just half, .55 of one
        found = refined(equations, start, lambda right, parts=parts: right * np.array(parts)[:, None])
        assert found.value.tolist() == start.tolist()
        assert np.all(found.error[:2, 0] >= [0.125, 0.25])
    for part in (0.55, 1.45):
        found = refined(equations, start, lambda right, part=part: part * right)
        assert np.all(np.abs(found.value[:2] - 0.5) < 0.001)


def test_what_is_no_better_stays_until_a_later_round_betters_it():
    # Two matrices of one state that leaves with 1/2 each way: the first is solved at once, the other in round two.
    equations = Equations(np.array([0, 2]), np.array([1, 2]), np.full((2, 2), 0.5))
    parts = iter([[1.0, 0.0]])
    start = np.array([[0.25, 0.125], [1.0, 1.0], [0.0, 0.0]])
    found = refined(equations, start, lambda right: right * np.array(next(parts, [1.0, 1.0])))
    assert found.value[0].tolist() == [0.5, 0.5]
    assert np.all(found.error[0] < 1e-30)
