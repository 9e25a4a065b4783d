"""Bounds of the batch engine's solver, by hand: in units of 2^-53, which is one rounding."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from verifier.base.errors import EngineError
from verifier.checking import component_solving as level_solving
from verifier.checking import linear
from verifier.checking.component_solving import BlockSolver, LevelEquation
from verifier.checking.elimination import Band
from verifier.checking.linear import _System
from verifier.checking.plan import Block, Plan

UNIT = 2.0**-53


def pair():
    """State 0 leads to state 1 with 1/4 and to each slot with 1/8, state 1 to state 0 and to the goal with 1/4; half
    of the time they stay, without an edge."""
    lists = ([0, 1], [0, 3, 5], [1, 2, 3, 0, 2], range(5), [-1, -1], [0, 1])
    return Plan(*(np.array(each, dtype=np.int64) for each in lists), (Block(0, 0, 1, 2, 0, 5),))


WEIGHTS = np.array([[0.25], [0.125], [0.125], [0.25], [0.25]])


def judged(x, jumps, gains=None, weights=WEIGHTS):
    """The largest residual, and what bounds the jumps from both states and from any, for values and jumps given."""
    system = _System(pair(), np.arange(5), True, 1)
    values = np.array([[*x, gains is None, 0], [*jumps, 0, 0]], dtype=np.float64).T[:, :, None]
    gained = None if gains is None else np.array(gains)[:, None]
    residual, both, farthest = system._certificate(system._equation(weights), values, gained)
    return residual[0], (*both[:, 0].tolist(), farthest[0])


def test_a_residual_is_the_largest_one_with_its_rounding():
    # Twice 3 edges and 6 more roundings of the sum; the largest is at state 0 in the first two, then at state 1.
    assert judged([0.5, 0.75], [2, 2])[0] == 0.125 + 12 * UNIT * 0.625
    assert judged([0.625, 0.8125], [2, 2])[0] == 0.03125 + 12 * UNIT * 0.65625
    assert judged([0.5, 0.5], [2, 2], gains=[0.125, 0.25])[0] == 0.25 + 12 * UNIT * 0.75
    assert judged([0, 0], [2, 2], gains=[0, 0])[0] == 3 * 2.0**-1074
    assert judged([2, 4], [2, 2], gains=[0.25, 1.5])[0] == 0.5 + 12 * UNIT * 2.5  # 2.5 and 4


def test_jumps_below_0_in_any_state_certify_nothing():
    # With slots of -10 every state pays enough, whatever is said of the states themselves.
    system = _System(pair(), np.arange(5), True, 1)
    for first, second, certified in ((1.0, 2.0, True), (-1.0, 2.0, False), (2.0, -1.0, False)):
        values = np.array([[0.5, 0.5, 1, 0], [first, second, -10, -10]]).T[:, :, None]
        _, jumps, farthest = system._certificate(system._equation(WEIGHTS), values, None)
        assert (np.isfinite(jumps).tolist(), np.isfinite(farthest).tolist()) == ([[certified]] * 2, [certified])


def test_what_underflows_in_a_residual_grows_with_the_largest_value():
    # Nothing leads to the goal, whose value is 4; 3 edges.
    system, values = _System(pair(), np.arange(5), True, 1), np.array([[0, 0, 4, 0], [2.0, 2, 0, 0]]).T[:, :, None]
    equation = system._equation(np.array([[0.25], [0.0], [0.25], [0.5], [0.0]]))
    assert system._certificate(equation, values, None)[0].tolist() == [3 * 4 * 2.0**-1074]


def test_jumps_are_certified_by_what_every_step_pays():
    # Of 2 at both states 1 is paid, but for 12 roundings, and 3 * 2^-50 for what underflows; the rest is rounded up.
    assert judged([0.5, 0.5], [2, 2])[1] == (2 + 96 * UNIT,) * 3
    # Of 5/2 and 9/4 state 1 pays 1 with 12 roundings of 5/4; in all 15 + 24 + 12.
    for found, jumps in zip(judged([0.5, 0.5], [2.5, 2.25])[1], (2.5, 2.25, 2.5), strict=True):
        assert jumps * (1 + 50 * UNIT) <= found <= jumps * (1 + 52 * UNIT)
    assert judged([0.5, 0.5], [4, 4])[1] == pytest.approx((4, 4, 4))  # 2 is paid, and counts as 1
    # Where a 16th leads to the other state, 3/4 at both pay all but a 16th of that: 16/15 is the most from anywhere.
    rare = np.array([[0.0625], [0.5], [0.4375], [0.0625], [0.9375]])
    assert judged([0.5, 0.5], [0.75, 0.75], weights=rare)[1] == pytest.approx([16 / 15] * 3, rel=1e-12, abs=0)
    # At least half has to be paid everywhere.
    least = 1 + 60 * UNIT
    assert np.all(np.isfinite(judged([0.5, 0.5], [least, least])[1]))
    for jumps in ([least - 2 * UNIT] * 2, [2, 1.25], [1.25, 2], [-2, -3]):
        assert judged([0.5, 0.5], jumps)[1] == (np.inf,) * 3


def test_moving_the_probabilities_moves_the_largest_value_that_may_be(monkeypatch):
    # Each of 2 states is left by probabilities off by 1/9, a factor of 10/8 each: 25/16 - 1 of a value of 1/4 +- 1/4.
    monkeypatch.setattr(_System, "_refined", lambda self, *more: (np.full((2, 1), 0.25), np.full((2, 1), 0.25)))
    found = linear.solve(pair(), WEIGHTS.T, np.arange(5), stochastic=True, value_error=1 / 9)
    assert found.representation == pytest.approx(0.5 * 9 / 16, rel=1e-12, abs=0)


def test_moving_a_probability_moves_the_smallest_value_by_no_less_than_that(monkeypatch):
    # The product with the factor's distance from 1 is far below all doubles, and rounds to 0.
    smallest = np.full((2, 1), 2.0**-1074)
    monkeypatch.setattr(_System, "_refined", lambda self, *more: (smallest, 0 * smallest))
    for off, moved in ((1e-9, 2.0**-1074), (0.0, 0.0)):
        found = linear.solve(pair(), WEIGHTS.T, np.arange(5), stochastic=True, value_error=off)
        assert found.representation.tolist() == [[moved, moved]]


def test_moving_the_probabilities_moves_gains_by_the_largest_in_each_jump():
    # With 1/4 of what leaves a state leading to the other, x = 1/4 + y/4 and y = x/4 are 4/15 and 1/15; 4/3 jumps are
    # made. Changed by 1 +- 10^-9 each moves 2 * 10^-9 of 4/15 at most, by 1 +- 1/9 a quarter of it (10/8 - 1); and
    # no value moves by more than the factors of 2 states, 4 * 10^-9 and 25/16 - 1.
    weights = np.array([[0.125, 0.25, 0.125, 0.125, 0.375]] * 2)
    gains = np.array([[0.125, 0.0], [1.25, 0.0]])
    for off, by_jump, by_states in ((1e-9, 2e-9, 4e-9), (1 / 9, 1 / 4, 9 / 16)):
        found = linear.solve(pair(), weights, np.arange(5), stochastic=True, value_error=off, gains=gains)
        assert found.value[0] == pytest.approx([4 / 15, 1 / 15], rel=1e-15, abs=0)
        assert found.steps[0] == pytest.approx([8 / 3] * 2, rel=1e-12, abs=0)
        assert found.representation[0] == pytest.approx([4 / 15 * by_jump * 4 / 3, 1 / 15 * by_states], rel=1e-6)
        assert found.value[1] == pytest.approx(10 * found.value[0], rel=1e-15, abs=0)
        assert found.representation[1] == pytest.approx(10 * found.representation[0], rel=1e-6)


def test_the_largest_gain_is_counted_with_what_it_may_lack(monkeypatch):
    # The same, of 1/4 and 1/16: 1/64 is left open in state 0, so that no value is above 1/4 + 4/3 of that.
    def rough(self, x, right, matrices=None):
        x[:2, 0, 0], x[:2, 1, 0] = [0.25, 0.0625], 4 / 3

    monkeypatch.setattr(linear.Equation, "solve", rough)
    monkeypatch.setattr(_System, "_relative_bound", lambda self, equation, value: np.full((2, 1), np.inf))
    monkeypatch.setattr(_System, "_refined", lambda self, equation, x, gains, known, at_once: known)
    weights, gains = np.array([[0.125, 0.25, 0.125, 0.125, 0.375]]), np.array([[0.125, 0.0]])
    found = linear.solve(pair(), weights, np.arange(5), stochastic=True, value_error=1e-9, gains=gains)
    assert found.error[0] == pytest.approx([1 / 48, 1 / 48], rel=1e-9)
    assert found.representation[0, 0] == pytest.approx((1 / 4 + 1 / 48) * 2e-9 * 4 / 3, rel=1e-6)


def test_a_matrix_is_refined_for_any_initial_state(monkeypatch):
    asked = []

    def recorded(equations, value, solve):
        asked.append(value.shape)
        return refined(equations, value, solve)

    refined = linear.refined
    monkeypatch.setattr(linear, "refined", recorded)
    for coarse, expected in (([True, False], [(4, 1)]), ([False, True], [(4, 1)]), ([False, False], [])):
        asked.clear()
        judged = np.array(coarse)[:, None]
        monkeypatch.setattr(linear, "_coarse", lambda value, error, roughly, judged=judged: judged & (not roughly))
        found = linear.solve(pair(), WEIGHTS.T, np.arange(5), stochastic=True)
        assert (asked, found.value[0]) == (expected, pytest.approx([2 / 3, 5 / 6]))


def pair_and_one():
    """The pair, and a state on its own that leads to state 0 and to no goal."""
    lists = (range(3), [0, 3, 5, 7], [1, 3, 4, 0, 3, 0, 4], range(7), [-1] * 3, [0, 2])
    blocks = (Block(0, 0, 1, 2, 0, 5), Block(1, 2, 1, 1, 5, 7))
    return Plan(*(np.array(each, dtype=np.int64) for each in lists), blocks)


def test_underflow_is_counted_by_the_widest_row_and_the_largest_component():
    # 3 states, 3 edges and components of 2; a single state with one edge.
    system = _System(pair_and_one(), np.arange(7), True, 1)
    found = system._underflow(system._equation(np.array([0.25, 0.125, 0.125, 0.25, 0.25, 0.5, 0.5])[:, None]))
    assert found.tolist() == [3 * (3 + 2 + 2) * 2.0**-1074 / 0.125]
    lists = ([0], [0, 1], [1], [0], [-1], [0])
    one = Plan(*(np.array(each, dtype=np.int64) for each in lists), (Block(0, 0, 1, 1, 0, 1),))
    system = _System(one, np.arange(1), True, 1)
    assert system._underflow(system._equation(np.ones((1, 1)))).tolist() == [(1 + 1 + 2) * 2.0**-1074]


@pytest.mark.parametrize(("limit", "stochastic", "again"), [(1, True, [2]), (2, True, []), (1, False, [])])
def test_what_stays_coarse_in_a_large_component_is_solved_again(monkeypatch, limit, stochastic, again):
    # The last state stands alone. Of three matrices the last is good enough, and of the second every bound but one.
    plan, solved = pair_and_one(), []

    def chosen(number, errors):
        made = np.arange(2.0 * len(errors)).reshape(-1, 2) / 16 + number
        return linear.Solution(made, np.array(errors), made + 2, np.full(made.shape, 9.0 - number))

    def in_chunks(system, values, gains, value_error, memory_bytes):
        solved.append((values[:, 0].tolist(), gains[:, 0].tolist()))
        errors = [[0.25, 0.5], [0.0, 0.25], [0.0, 0.0]] if len(solved) == 1 else [[0.125, 0.5], [0.125, 0.0]]
        return chosen(len(solved), errors)

    monkeypatch.setattr(linear, "DENSE_LIMIT", limit)
    monkeypatch.setattr(linear, "_in_chunks", in_chunks)
    values = np.arange(21.0).reshape(3, 7)
    found = linear.solve(plan, values, np.arange(7), stochastic=stochastic, gains=np.arange(3.0)[:, None])
    assert solved == [([0, 7, 14], [0, 1, 2]), *[([0, 7], [0, 1]) for _ in again]]
    first, second = chosen(1, [[0.0] * 2] * 3), chosen(2, [[0.0] * 2] * 2)
    better = np.array([[True, False], [False, True], [False, False]]) & bool(again)
    other = {name: np.concatenate([each, each[:1]]) for name, each in vars(second).items()}
    assert found.error.tolist() == ([[0.125, 0.5], [0, 0], [0, 0]] if again else [[0.25, 0.5], [0, 0.25], [0, 0]])
    for name in ("value", "representation"):
        assert getattr(found, name).tolist() == np.where(better, other[name], getattr(first, name)).tolist()
    assert found.steps.tolist() == [[7.0 if again else 8.0] * 2] * 2 + [[8.0] * 2]  # the fewer of both


def test_transitions_of_probability_0_do_not_underflow():
    # 2 states, 3 edges and components of 2; the least probability of leaving them, or a state, is 1/8.
    system = _System(pair(), np.arange(5), True, 1)
    found = system._underflow(system._equation(np.array([[0.25], [0.125], [0.0], [0.25], [0.25]])))
    assert found.tolist() == [2 * (3 + 2 + 2) * 2.0**-1074 / 0.125]


def test_a_relative_bound_is_one_below_the_value_itself(monkeypatch):
    # Rounding may be a factor of 3/2, and of more than 2 in state 1. Underflow comes to the value and to the bound.
    system = _System(pair(), np.arange(5), True, 1)
    system._roundings = np.log([1.5, 2.5, 1.0, 1.0]) / (1.1 * UNIT)
    monkeypatch.setattr(system, "_underflow", lambda equation: np.array([0.125, 0.0]))
    found = system._relative_bound(system._equation(WEIGHTS), np.array([[0.25, 0.0], [0.5, 0.5]]))
    assert found == pytest.approx(np.array([[0.375 / 2 + 0.125, 0], [np.inf, np.inf]]), rel=1e-12, abs=0)


def test_a_state_that_is_never_left_is_refused():
    lists = ([0, 1], [0, 3, 5], [1, 2, 3, 0, 2], range(5), [5, 6], [0, 1])
    plan = Plan(*(np.array(each, dtype=np.int64) for each in lists), (Block(0, 0, 1, 2, 0, 5),))
    system = _System(plan, np.arange(7), False, 1)
    for stay, refused in (([0.5, 0.75], False), ([1.0, 0.5], True), ([0.5, 1.0], True)):
        with pytest.raises(EngineError, match="self-loop of probability 1") if refused else nullcontext():
            weight, leave = system._weights(np.concatenate([WEIGHTS, np.array(stay)[:, None]]))
            assert (weight.tolist(), leave[:, 0].tolist()) == (WEIGHTS.tolist(), [0.5, 0.25])


def test_one_value_beyond_the_range_of_doubles_is_enough_to_be_refused():
    # 10^308 is gained in each of 16 steps in state 1, and 1 in state 0.
    plan = replace(chain_of_two(), start=np.array([0, 1]))
    values = np.array([[0.5, 0.5, 2.0**-6, 2.0**-6, 2.0**-5]])
    for gain, refused in ((1e308, True), (1e306, False)):
        with np.errstate(all="ignore"), pytest.raises(EngineError) if refused else nullcontext():
            linear.solve(plan, values, np.arange(5), stochastic=True, gains=np.array([[1.0, gain]]))


def test_what_is_decided_from_the_start_has_no_error():
    assert not _System(pair(), np.arange(5), True, 1)._roughly
    for plan in (replace(pair(), start=np.array([2, 3])), replace(chain_of_two(), start=np.array([2, 3]))):
        for gains, value in ((None, [1, 0]), (np.ones((1, 2)), [0, np.inf])):
            values = np.array([[0.5, 0.5, 0.25, 0.25, 0.5]])
            found = linear.solve(plan, values, np.arange(5), stochastic=True, gains=gains)
            assert (found.value.tolist(), found.error.tolist()) == ([value], [[0, 0]])
            assert found.representation.tolist() == [[0, 0]]


def test_underflow_grows_by_level_where_rows_sum_to_more():
    # Rows in two levels; 2 states with at most 3 edges, alone in their components.
    system = _System(chain_of_two(), np.arange(5), False, 1)
    for share, growth in ((1.0, 2**2), (0.25, 1)):  # rows of 2, and of 1/2
        found = system._underflow(system._equation(share * np.array([1.0, 1.0, 1.0, 0.5, 0.5])[:, None]))
        assert found.tolist() == [2 * (3 + 1 + 2) * growth * 2.0**-1074]


@pytest.mark.parametrize(("infinity", "taken_as", "residual"), [(np.inf, 1, 3 / 16), (-np.inf, 0, 13 / 16)])
def test_what_no_number_came_of_is_bounded_by_its_residual(monkeypatch, infinity, taken_as, residual):
    # Where an infinite value came of state 1 it is taken as 1 or 0, and 0.625/2 + 1/2 is right, with 2 jumps to go.
    def infinite(self, x, right, matrices=None):
        x[:2, 0, 0], x[:2, 1, 0] = [0.625, infinity], 2

    monkeypatch.setattr(linear.Equation, "solve", infinite)
    monkeypatch.setattr(_System, "_refined", lambda self, equation, x, gains, known, at_once: known)
    found = linear.solve(pair(), WEIGHTS.T, np.arange(5), stochastic=True)
    assert found.value.tolist() == [[0.625, taken_as]]
    assert found.error[0] == pytest.approx([2 * residual] * 2, rel=1e-12, abs=0)


def test_so_many_matrices_are_solved_at_once_as_there_is_memory_for(monkeypatch):
    # Of each matrix 5 probabilities, 5 * 2 numbers of 5 edges, 5 of 2 states, and 3 * 10 to eliminate: 8 bytes each.
    system, sizes = _System(pair(), np.arange(5), True, 9), []
    assert system.bytes_per_matrix(5, False) == system.bytes_to_refine(5) == 8 * (5 + 50 + 10 + 30)
    solve = _System.solve

    def solved(self, values, value_error, gains, at_once):
        sizes.append((values.shape[1], at_once))
        return solve(self, values, value_error, gains, at_once)

    monkeypatch.setattr(_System, "solve", solved)
    for room, expected in (
        (760 * 4, [(3, 4)] * 3),
        (760 * 9, [(9, 9)]),
        (760 * 9 - 1, [(5, 8), (4, 8)]),
        (1, [(1, 1)] * 9),
    ):
        sizes.clear()
        found = linear.solve(pair(), np.tile(WEIGHTS.T, (9, 1)), np.arange(5), stochastic=True, memory_bytes=room)
        assert sizes == expected
        assert found.value.shape == (9, 2)


def chain_of_two():
    """State 1 leads to state 0 and to both slots, state 0 to both slots."""
    lists = ([0, 1], [0, 2, 5], [2, 3, 0, 2, 3], range(5), [-1, -1], [1])
    blocks = (Block(0, 0, 1, 1, 0, 2), Block(1, 1, 1, 1, 2, 5))
    return Plan(*(np.array(each, dtype=np.int64) for each in lists), blocks)


def test_a_chain_without_loops_needs_memory_for_its_values_only():
    # 5 probabilities, 2 numbers for each of 2 states and 4 for each edge of the larger level; 2 more for gains.
    system = _System(chain_of_two(), np.arange(5), True, 1)
    assert system.bytes_per_matrix(5, False) == 8 * (5 + 4 + 12)
    assert system.bytes_per_matrix(5, True) == 8 * (5 + 4 + 12 + 2)
    assert system.bytes_to_refine(5) == 8 * (5 + 5 * 5 + 5 * 2 + 0)
    assert system.most_at_once == (1 << 17) * 2 // 5
    found = linear.solve(chain_of_two(), np.array([[0.5, 0.5, 0.25, 0.25, 0.5]]), np.arange(5), stochastic=True)
    assert found.value.tolist() == [[0.375]]
    assert found.steps.tolist() == [[2 + 2.0**-49]]  # 2^-50 of it for rounding
    # Twice 2 edges and 2 more roundings of the one level, twice 3 and 2 of the other.
    assert found.error[0, 0] == pytest.approx(0.375 * 1.1 * 14 * UNIT, rel=1e-9)
    assert found.representation[0, 0] == pytest.approx(0.375 * 4 * UNIT, rel=1e-9)


@pytest.mark.parametrize("thorough", [False, True])
@pytest.mark.parametrize("roughly", [False, True])
@pytest.mark.parametrize(
    ("block", "width", "matrices", "at_first", "rough", "at_last"),
    [
        # of one state; else (edges 0 to 5 of the pair lead both ways, 0 to 3 up, 3 to 4 down) on a full array up to
        # 200 states, thoroughly 1000; within a band of less than a quarter of at least 24 states where that is so
        (Block(0, 0, 9, 1, 0, 5), 0, 1, "single", "single", "single"),
        (Block(0, 0, 1, 200, 0, 3), 50, 1, "elimination", "elimination", "elimination"),
        (Block(0, 0, 1, 201, 0, 3), 0, 99, "substitution", "substitution", "substitution"),
        (Block(0, 0, 1, 201, 3, 4), 0, 99, "substitution", "substitution", "substitution"),
        (Block(0, 0, 1, 201, 3, 5), 51, 99, "factorisation", "factorisation", "elimination"),
        (Block(0, 0, 2, 1000, 0, 5), 1, 99, "factorisation", "factorisation", "elimination"),
        (Block(0, 0, 1, 1001, 0, 5), 251, 99, "factorisation", "factorisation", "factorisation"),
        (Block(0, 0, 2, 1001, 0, 5), 1, 99, "factorisation", "factorisation", "factorisation"),
        (Block(0, 0, 1, 23, 0, 5), 1, 99, "elimination", "elimination", "elimination"),
        (Block(0, 0, 1, 24, 0, 5), 5, 1, "narrow", "narrow", "narrow"),
        (Block(0, 0, 1, 24, 0, 5), 6, 1, "elimination", "elimination", "elimination"),
        (Block(0, 0, 2, 24, 0, 5), 5, 1, "elimination", "elimination", "elimination"),
        (Block(0, 0, 1, 200, 0, 5), 16, 49, "narrow", "narrow", "narrow"),
        (Block(0, 0, 1, 200, 0, 5), 17, 50, "elimination", "elimination", "narrow"),
        (Block(0, 0, 1, 201, 0, 5), 16, 49, "factorisation", "factorisation", "narrow"),
        (Block(0, 0, 1, 201, 0, 5), 16, 50, "narrow", "band", "narrow"),
        (Block(0, 0, 1, 201, 0, 5), 17, 50, "factorisation", "factorisation", "narrow"),
        (Block(0, 0, 1, 10**4, 0, 5), 1000, 1, "factorisation", "factorisation", "narrow"),
        (Block(0, 0, 1, 10**4, 0, 5), 1001, 1, "factorisation", "factorisation", "factorisation"),
    ],
)
def test_how_a_component_is_solved(monkeypatch, block, width, matrices, at_first, rough, at_last, thorough, roughly):
    solver = BlockSolver(
        pair(), stochastic=True, matrices=1, thorough=False, **({"roughly": True} if roughly else {})
    )
    monkeypatch.setattr(Band, "of", lambda size, sources, targets: Band(np.arange(size), width))
    expected = at_last if thorough else rough if roughly else at_first
    if expected == at_last == "narrow" and roughly and thorough and block.size > 1000:
        expected = "band"
    method = solver._method(block, True, matrices, thorough)
    assert (method, list(solver.bands)) == (
        ("elimination", [0]) if expected == "narrow" else (expected, [0] if expected == "band" else [])
    )
    assert solver._method(block, False, matrices, thorough) == ("single" if block.size == 1 else "factorisation")


@pytest.mark.parametrize(("size", "width"), [(2, 1), (3, 2), (9, 8), (9, 1), (70, 6)])
def test_every_rounding_of_an_elimination_is_in_its_bound(size, width):
    """Two factors for each state that a removed one changes, and for the first weights, of at most 5 edges here."""
    solver = BlockSolver(pair(), stochastic=True, matrices=1, thorough=False)
    if width < size - 1:
        solver.bands[0] = Band(np.arange(size), width)
    of_sum = next(n for n in range(9) if 2**n >= width + 1) + 6
    changed = sum(min(removed, width) for removed in range(size))
    put_back = size * (width + 3)
    found = solver._roundings(Block(0, 0, 1, size, 0, 5 * size), "elimination", 5)
    counted = 2 * size * (5 + 2) + 2 * changed * of_sum + put_back
    assert found == counted + (0 if width == size - 1 else 2 * of_sum * (size * width - changed))


def plan_of(targets, *blocks):
    """A plan of states that lead to these, asked about the last of them; blocks are level, first, count and size."""
    starts = np.cumsum([0, *map(len, targets)])
    count = len(targets)
    lists = (range(count), starts, np.concatenate(targets), range(starts[-1]), [-1] * count, [count - 1])
    edges = [starts[[first, first + components * size]].tolist() for _, first, components, size in blocks]
    made = tuple(Block(*block, *ends) for block, ends in zip(blocks, edges, strict=True))
    return Plan(*(np.array(column, dtype=np.int64) for column in lists), made)


def three_levels():
    """The pair, and two states that lead to the slots only; one that leads to the pair, another pair; one above."""
    targets = [[1, 8, 9], [0, 8], [8, 8, 9], [8, 8, 8], [0], [6, 8], [5, 2], [4, 5]]
    return plan_of(targets, (0, 0, 1, 2), (0, 2, 2, 1), (1, 4, 1, 1), (1, 5, 1, 2), (2, 7, 1, 1))


@pytest.mark.parametrize("method", ["elimination", "factorisation", "band", "substitution", "several"])
def test_every_way_solves_the_equations_behind_other_blocks(monkeypatch, method):
    plan = {
        "substitution": plan_of([[4, 5], [0, 4], [1, 0, 5], [2, 1]], (0, 0, 1, 1), (1, 1, 1, 3)),
        "several": plan_of([[5, 6], [2, 0, 5], [1, 6], [4, 0], [3, 0, 6]], (0, 0, 1, 1), (1, 1, 2, 2)),
    }.get(method, three_levels())
    rng = np.random.default_rng(5)
    weight = rng.random((len(plan.edge), 3))
    solver = BlockSolver(plan, stochastic=True, matrices=3, thorough=False)
    leave, right = level_solving.add_up(solver.row_sum, weight), rng.random((plan.size, 2, 3))
    made = method if method != "several" else "elimination"
    solver.methods = ["single" if block.size == 1 else made for block in plan.blocks]
    if method == "band":
        solver.bands = {block.first: Band(np.array([1, 0]), 1) for block in plan.blocks if block.size == 2}
    inner = [solver.inner(block) for block in plan.blocks]
    if method == "elimination":
        assert [array.tolist() for array in inner[3]] == [[True, False, True, False], [0, 1], [1, 0]]
    equation = level_solving.Equation(solver, weight, leave)
    assert equation.least_leave.tolist() == np.minimum(leave.min(axis=0), 1).tolist()
    assert level_solving.Equation(solver, weight, leave + 2).least_leave.tolist() == [1] * 3
    for matrices in (None, np.array([2]), np.array([1, 0])):
        numbers = np.arange(3) if matrices is None else matrices
        x = np.zeros((plan.size + 2, 2, len(numbers)))
        x[plan.size, 0] = 1
        equation.solve(x, right[:, :, numbers], matrices)
        for place, number in enumerate(numbers.tolist()):
            rows = np.zeros((plan.size, plan.size + 2))
            np.add.at(rows, (solver.row_of_edge, plan.target), weight[:, number])
            left = np.diag(leave[:, number]) - rows[:, : plan.size]
            for column, into in enumerate((rows[:, plan.size], 0)):
                expected = np.linalg.solve(left, into + right[:, column, number])
                assert x[: plan.size, column, place] == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("safe", "again", "results"),
    [
        ([True, False, False], [([[2, 3], [5, 6]], [8, 9])], [1, 7, 7]),
        ([True] * 3, [], [1] * 3),
        ([False, True, True], [([[1], [4]], [7])], [7, 1, 1]),
    ],
)
def test_only_what_underflows_in_a_band_is_eliminated_again(safe, again, results):
    class Recorded:
        def eliminate(self, source, target, weight, beside):
            return np.ones((2, 1, 3)), np.array(safe)

        def eliminate_without_underflow(self, source, target, weight, beside):
            asked.append((weight.tolist(), beside[0, 0].tolist()))
            return np.full((2, 1, weight.shape[1]), 7.0)

    asked: list[object] = []
    entries = np.array([0, 1]), np.array([1, 0]), np.array([[1.0, 2, 3], [4, 5, 6]])
    beside = np.tile(np.array([7.0, 8, 9]), (2, 2, 1))
    found = level_solving._eliminate_block(Block(0, 0, 1, 2, 0, 2), entries, beside, Recorded())
    assert (found[1, 0].tolist(), asked) == (results, again)


def test_roundings_and_states_add_up_along_the_levels():
    # A single state of d edges has 2 d + 2; the pairs of 3 and of 2 edges, by the bound above, 42 and 38.
    solver = BlockSolver(three_levels(), stochastic=True, matrices=1, thorough=False)
    pairs = [2 * 2 * (d + 2) + 2 * 1 * (1 + 6) + 2 * (1 + 3) for d in (3, 2)]
    roundings, powers = solver.exponents()
    on_top = [pairs[0] + 4, pairs[0] + pairs[1], pairs[0] + pairs[1]]
    assert roundings.tolist() == [pairs[0]] * 2 + [8, 8] + on_top + [on_top[1] + 6, 0, 0]
    assert powers.tolist() == [2, 2, 1, 1, 3, 4, 4, 5, 0, 0]
    assert solver.most_edges == [3, 3, 1, 2, 2]
    assert solver.exits().tolist() == [1, 2, 4, 13, 15]
    assert solver._roundings(Block(0, 0, 1, 7, 0, 5), "substitution", 3) == (2 * 3 + 2) * 7
    solver = BlockSolver(three_levels(), stochastic=False, matrices=1, thorough=False)
    assert solver.exponents()[0].tolist() == [np.inf] * 2 + [8, 8] + [np.inf] * 4 + [0, 0]
    assert solver.exits().tolist() == []
    nothing = Plan(*(np.array(each, dtype=np.int64) for each in ([], [0], [], [], [], [1])), ())
    solver = BlockSolver(nothing, stochastic=True, matrices=1, thorough=False)
    assert [numbers.tolist() for numbers in solver.exponents()] == [[0, 0]] * 2
    assert solver.numbers_per_matrix(2) == 0


def test_numbers_that_a_component_needs_by_how_it_is_solved():
    solver = BlockSolver(three_levels(), stochastic=True, matrices=1, thorough=False)
    solver.plan = replace(solver.plan, blocks=(Block(0, 0, 3, 4, 0, 2), Block(0, 12, 1, 5, 2, 3)))
    for methods, numbers in (
        (["single", "single"], 0),
        (["elimination", "single"], 3 * 4 * (4 + 1 + 2)),
        (["single", "elimination"], 5 * (5 + 1 + 2)),
        (["substitution", "elimination"], 60 * 3 * 4),
        (["elimination", "factorisation"], 60 * 5),
    ):
        solver.methods = methods
        assert solver.numbers_per_matrix(2) == numbers
    solver.bands[12] = Band(np.arange(5), 20)
    for method in ("elimination", "band"):
        solver.methods = ["single", method]
        assert solver.numbers_per_matrix(2) == 5 * (2 * 20 + 4 + 3 * 2)


@pytest.mark.parametrize("few", [300, 5, 0])
def test_terms_are_added_up_by_the_state_of_their_edge(monkeypatch, few):
    monkeypatch.setattr(level_solving, "FEW_EDGES", few)
    solver = BlockSolver(three_levels(), stochastic=True, matrices=1, thorough=False)
    for number, expected in enumerate([[[7], [24]], [[7], [56]], [[1]], [[3], [12]], [[3]]]):
        block = solver.plan.blocks[number]
        terms = 2.0 ** np.arange(block.last_edge - block.first_edge)[:, None] * [1.0, 3.0]
        for _ in range(2):
            assert solver.added(number, terms[:, None]).tolist() == [[[low, 3 * low]] for [low] in expected]


def test_the_edges_of_some_matrices_of_a_chain_without_loops():
    solver = BlockSolver(chain_of_two(), stochastic=True, matrices=2, thorough=False)
    values, entry = np.array([[0.5, 0.125], [0.5, 0.875], [0.0, 0.25]]), np.array([0, 1, 2, 0, 2])
    found = LevelEquation(solver, values, entry).weight_of(np.array([1]))
    assert found.tolist() == [[0.125], [0.875], [0.25], [0.125], [0.25]]


@pytest.mark.parametrize("at_once", [4096, 2])
@pytest.mark.parametrize("few", [300, 3, 0])
def test_levels_by_hand(monkeypatch, at_once, few):
    # States 0 and 1 lead to both slots, state 2 to state 0, state 3 to states 0 and 1, the last to state 3.
    monkeypatch.setattr(level_solving, "_LEFT_AT_ONCE", at_once)
    monkeypatch.setattr(level_solving, "FEW_EDGES", few)
    lists = (range(6), [0, 2, 4, 5, 7, 9, 11], [6, 7, 6, 7, 0, 0, 1, 3, 7, 3, 7], range(11), [-1] * 6, [4, 5])
    blocks = (Block(0, 0, 2, 1, 0, 4), Block(1, 2, 2, 1, 4, 7), Block(2, 4, 2, 1, 7, 11))
    plan = Plan(*(np.array(each, dtype=np.int64) for each in lists), blocks)
    first = [0.75, 0.25, 0.125, 0.375, 0.5, 0.25, 0.25]  # left with 1, 1/2, 1/2 and 1/2
    other = [0.125, 0.125, 0.25, 0.75, 2.0**-10, 0.5, 0.5]  # with 1/4, 1, 2^-10 and 1
    third = [0.0625, 0.0625, 0.125, 0.375, 0.25, 0.5, 0.5]  # with 1/8, 1/2, 1/4 and 1
    values = np.array([[*each, 0.5, 0.5, 0.25, 0.75] for each in (first, other, third)]).T
    made = LevelEquation(BlockSolver(plan, stochastic=True, matrices=3, thorough=False), values, np.arange(11))
    x = np.full((8, 1, 3), np.nan)
    x[6:, 0] = [[1], [0]]
    made.solve(x, None)
    assert x[:4, 0].T.tolist() == [[0.75, 0.25, 0.75, 0.5], [0.5, 0.25, 0.5, 0.375], [0.5, 0.25, 0.5, 0.375]]
    assert made.least_leave.tolist() == [0.5, 2.0**-10, 0.125]
    assert x[4:6, 0].T.tolist() == [[0.25, 0.125], [0.1875, 0.09375], [0.1875, 0.09375]]
    made.solve(x[:, :, :1], np.full((6, 1, 1), 0.25), np.array([0]))
    assert x[:6, 0, 0].tolist() == [1, 0.75, 1.5, 1.375, 0.9375, 0.59375]
    assert made.least_leave.tolist() == [0.5, 2.0**-10, 0.125]
