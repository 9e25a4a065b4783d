"""Chains with loops, clocks and rare ways out: every bound is tight and holds the exact fraction."""

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from exact_oracle import reach_probabilities
from random_ltl import F, a
from slow_chains import drawn_chain, reach_by_elimination, walk, walk_probability
from small_chains import chain_of, check_formulas

from verifier.checking.batch import check, satisfaction_probabilities
from verifier.checking.product import build_product
from verifier.language.ltl import parse_formula

WIDTH = 1e-9


def held(rows, initial) -> bool:
    """Check the batch engine on F target from these states; whether some probability is neither 0 nor 1."""
    target = len(rows) - 2
    exact = reach_by_elimination(rows, target)
    result = check(chain_of(rows, {"a": {target}}, initial=initial), F(a))
    for k, state in enumerate(initial):
        error = Fraction(result.error_bound[0, k]) + Fraction(result.representation_bound[0, k])
        assert abs(Fraction(result.probability[0, k]) - exact[state]) <= error
        assert result.upper[0, k] - result.lower[0, k] + 2 * result.representation_bound[0, k] <= WIDTH
    return any(0 < exact[state] < 1 for state in initial)


def search(first: int, count: int, most_states: int, asked: int = 6) -> int:
    """How many of `count` drawn chains have a probability that is neither 0 nor 1."""
    telling = 0
    for seed in range(first, first + count):
        rows = drawn_chain(random.Random(seed), most_states)
        telling += held(rows, range(0, len(rows), max(1, len(rows) // asked)))
    return telling


def test_the_two_exact_eliminations_agree():
    for seed in range(60):
        rows = drawn_chain(random.Random(seed), 12)
        assert reach_by_elimination(rows, len(rows) - 2) == reach_probabilities(rows, {len(rows) - 2})


def test_bounds_of_drawn_chains(thorough):
    share = 1 if thorough else 1 / 4
    assert search(0, int(300 * share), 12) > 150 * share
    assert search(10_000, int(40 * share), 60) > 20 * share
    assert search(20_000, int(5 * share), 300) >= 1


@pytest.mark.slow
def test_bounds_of_ten_thousand_drawn_chains():
    assert search(100_000, 8800, 20) > 5000
    assert search(200_000, 1000, 60) > 600
    assert search(300_000, 200, 300) > 120


def both_engines_hold(storm, rows) -> None:
    target = len(rows) - 2
    shares = [row[state] for row in rows for state in sorted(row)]
    chain = chain_of(rows, {"a": {target}}, initial=[0, target // 2])
    exact = reach_by_elimination(rows, target)
    (found,) = check_formulas(
        chain, [parse_formula("F a")], storm, exact_chain=lambda: replace(chain, fractions=tuple(shares))
    )
    for k, state in enumerate(chain.initial.tolist()):
        assert Fraction(found.lower[k]) <= exact[state] <= Fraction(found.upper[k])
        assert found.lower[k] <= found.probability[k] <= found.upper[k]
        assert found.upper[k] - found.lower[k] <= WIDTH
    assert found.remark is None


def test_both_engines_on_drawn_chains(storm, thorough):
    for seed in range(40 if thorough else 24):
        both_engines_hold(storm, drawn_chain(random.Random(seed), 12))
    for seed in range(40_000, 40_006 if thorough else 40_003):
        both_engines_hold(storm, drawn_chain(random.Random(seed), 60))


@pytest.mark.slow
def test_both_engines_on_many_drawn_chains(storm):
    for seed in range(1000, 2000):
        both_engines_hold(storm, drawn_chain(random.Random(seed), random.Random(seed).choice([12, 30, 60])))


def test_a_retry_of_one_in_a_trillion(storm):
    # 0 <-> 1 until, once in 1e12 rounds, one third of the ways out leads to the goal. Doubles keep four digits of
    # 1 - 1e-12, so Storm's number in doubles is off by 1e-4; the fractions settle it.
    rare = Fraction(1, 10**12)
    rows = [{1: 1 - rare, 2: rare / 3, 3: 2 * rare / 3}, {0: Fraction(1)}, {2: Fraction(1)}, {3: Fraction(1)}]
    both_engines_hold(storm, rows)


def test_without_fractions_the_batch_engine_answers_alone(storm):
    rare = Fraction(1, 10**12)
    rows = [{1: 1 - rare, 2: rare / 3, 3: 2 * rare / 3}, {0: Fraction(1)}, {2: Fraction(1)}, {3: Fraction(1)}]
    (found,) = check_formulas(chain_of(rows, {"a": {2}}), [parse_formula("F a")], storm)
    assert Fraction(found.lower[0]) <= Fraction(1, 3) <= Fraction(found.upper[0])
    assert found.upper[0] - found.lower[0] < 1e-14
    assert found.engine == "batch engine"
    assert found.remark.startswith("one engine: Storm")


def grid(side: int) -> list[dict[int, Fraction]]:
    """A walk on a square: left and right reflect, the top is the goal, the bottom is not."""
    rows: list[dict[int, Fraction]] = []
    goal, lost = side * side, side * side + 1
    for state in range(side * side):
        line, column = divmod(state, side)
        row: dict[int, Fraction] = {}
        up = state - side if line else goal
        down = state + side if line + 1 < side else lost
        left = state - 1 if column else state
        right = state + 1 if column + 1 < side else state
        for target in (up, down, left, right):
            row[target] = row.get(target, Fraction(0)) + Fraction(1, 4)
        rows.append(row)
    return [*rows, {goal: Fraction(1)}, {lost: Fraction(1)}]


@pytest.mark.parametrize("side", [40, pytest.param(316, marks=pytest.mark.slow)])
def test_a_grid_in_one_component(storm, side):
    # By symmetry the column plays no role: gambler's ruin on the lines, of which line l is side - l from losing.
    lines = [0, side // 2, side - 1]
    chain = chain_of(grid(side), {"a": {side * side}}, initial=[line * side for line in lines])
    (found,) = check_formulas(chain, [parse_formula("F a")], storm)
    for k, line in enumerate(lines):
        exact = Fraction(side - line, side + 1)
        assert Fraction(found.lower[k]) <= exact <= Fraction(found.upper[k])
    assert np.max(found.upper - found.lower) <= WIDTH


def test_values_far_below_the_absolute_bound_keep_their_digits():
    # Ruin of 2,000 against odds of 3 to 5 in a component too large for elimination: 1e-222.
    up = [Fraction(3, 8)] * 2001
    result = check(chain_of(walk(up), {"a": {2000}}, initial=[1000]), F(a))
    exact = walk_probability(up, 1000)
    assert abs(Fraction(result.probability[0, 0]) - exact) <= Fraction(result.error_bound[0, 0]) < exact / 10**10


def test_draws_of_a_long_walk_are_close_to_the_exact_values():
    # Solved within the band, roughly: 1e-8 is promised; small values keep their size.
    n, shares = 240, [Fraction(k, 64) for k in range(12, 53)]
    chain = chain_of(walk([Fraction(1, 2)] * (n + 1)), {"a": {n}}, initial=[1, n // 2, n - 1])
    product = build_product(chain.indptr, chain.indices, chain.labels, F(a), chain.initial)
    sources = np.repeat(np.arange(chain.state_count), np.diff(chain.indptr))
    rises, falls = chain.indices > sources, chain.indices < sources
    values = np.array([np.where(rises, float(p), np.where(falls, float(1 - p), 1.0)) for p in shares * 2])
    found = satisfaction_probabilities(product, values, roughly=True)
    for row, share in enumerate(shares * 2):
        for column, state in enumerate(chain.initial.tolist()):
            exact = walk_probability([share] * (n + 1), state)
            distance = abs(Fraction(found.probability[row, column]) - exact)
            assert distance <= Fraction(found.error_bound[row, column]) <= Fraction(1, 10**8)
            assert distance <= exact / 10**6
