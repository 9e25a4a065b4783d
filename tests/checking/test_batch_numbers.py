"""Many matrices at once, and the bounds the batch engine states, against exact elimination with fractions."""

from __future__ import annotations

import gc
import random
from dataclasses import replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from exact_oracle import reach_probabilities
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_ltl import F, G, U, X, a, b, neg, op, random_formula
from slow_chains import ladder, walk, walk_probability
from small_chains import chain_of

from verifier.chains.chain import MarkovChain
from verifier.checking import batch, linear
from verifier.checking.batch import check, satisfaction_probabilities
from verifier.checking.plan import Plan
from verifier.checking.product import build_product

half = Fraction(1, 2)


def product_of(chain, formula):
    return build_product(chain.indptr, chain.indices, chain.labels, formula, chain.initial)


def exact_of_doubles(chain, target: set[int]) -> list[Fraction]:
    """P(F target) in the chain whose rows are the given doubles, divided by their exact sums."""
    rows = []
    for state in range(chain.state_count):
        row = slice(chain.indptr[state], chain.indptr[state + 1])
        weights = [Fraction(p) for p in chain.probabilities[row].tolist()]
        shares = [weight / sum(weights) for weight in weights]
        rows.append(dict(zip(chain.indices[row].tolist(), shares, strict=True)))
    return reach_probabilities(rows, target)


@st.composite
def fraction_chains(draw):
    """2..9 states with exact rows, some of them extremely uneven; state 0 absorbs with label a, state 1 without."""
    n = draw(st.integers(2, 9))
    rows = [{0: Fraction(1)}, {1: Fraction(1)}]
    weights = st.one_of(st.integers(1, 9), st.integers(1, 9).map(lambda w: Fraction(w, 10**9)))
    for _ in range(2, n):
        row = draw(st.dictionaries(st.integers(0, n - 1), weights, min_size=1, max_size=4))
        rows.append({target: Fraction(weight) / sum(row.values()) for target, weight in sorted(row.items())})
    return rows


def check_bounds(rows) -> None:
    n = len(rows)
    chain = chain_of(rows, {"a": {0}}, initial=range(n))
    result = check(chain, F(a))
    solved, true = exact_of_doubles(chain, {0}), reach_probabilities(rows, {0})
    for state in range(n):
        value, error = Fraction(result.probability[0, state]), Fraction(result.error_bound[0, state])
        assert abs(value - solved[state]) <= error
        assert abs(solved[state] - true[state]) <= Fraction(result.representation_bound[0, state])
        assert error <= Fraction(1, 10**9)  # a bound of 1 would hold as well


@given(fraction_chains())
@example([{0: Fraction(1)}, {1: Fraction(1)}, {0: Fraction(1, 3), 1: Fraction(1, 3), 2: Fraction(1, 3)}])
def test_bounds_hold_the_exact_solution(rows):
    check_bounds(rows)


@pytest.mark.slow
@given(fraction_chains())
@settings(max_examples=3000)
def test_bounds_hold_the_exact_solution_slow(rows):
    check_bounds(rows)


def test_relative_accuracy_of_a_nearly_absorbing_self_loop():
    # The doubles nearest to 1 - 1e-15 and to the exits do not sum to 1 exactly. Leaving in proportion to the exits
    # does not care; 1 - p_ss would be off by 10%.
    exits = [1e-15 / 3, 2e-15 / 3]
    chain = chain_of([{0: 1 - 1e-15, 1: exits[0], 2: exits[1]}, {1: 1}, {2: 1}], {"a": {1}})
    result = check(chain, F(a))
    exact = Fraction(exits[0]) / (Fraction(exits[0]) + Fraction(exits[1]))
    assert abs(Fraction(result.probability[0, 0]) - exact) <= Fraction(result.error_bound[0, 0])
    assert result.error_bound[0, 0] < 1e-15


def test_a_component_too_large_for_elimination():
    # Fair gambler's ruin on 0..400: P(reach 400 from i) = i/400, expected jumps i (400 - i). Sparse factorisation.
    n = 401
    rows = [{0: 1}, *({i - 1: half, i + 1: half} for i in range(1, n - 1)), {n - 1: 1}]
    chain = chain_of(rows, {"a": {n - 1}}, initial=range(n))
    result = check(chain, F(a))
    exact = np.arange(n) / 400
    assert np.all(np.abs(result.probability[0] - exact) <= result.error_bound[0] + 2**-53)
    assert result.error_bound.max() < 1e-9
    jumps = np.arange(n) * (400.0 - np.arange(n))
    assert np.all(result.expected_steps[0] >= jumps * (1 - 1e-12))
    assert np.all(result.expected_steps[0] <= jumps * (1 + 1e-6) + 1e-6)


@pytest.mark.every(2)
@pytest.mark.parametrize("n", [400, 1100, 3000])
def test_a_walk_that_drifts_away_from_its_exits(n):
    # 3^200 and more jumps until it leaves, with 3000 states more than the largest double. A factorisation in doubles
    # is singular; elimination subtracts nothing.
    up = [Fraction(3 if i < n // 2 else 1, 4) for i in range(n + 1)]
    result = check(chain_of(walk(up), {"a": {n}}, initial=[1, n // 2, n - 1]), F(a))
    for k, exact in enumerate(walk_probability(up, start) for start in (1, n // 2, n - 1)):
        assert abs(Fraction(result.probability[0, k]) - exact) <= Fraction(result.error_bound[0, k])
    assert result.error_bound.max() < 1e-9


def test_the_bound_says_so_when_nothing_is_certain():
    # A hub that 1,100 spokes fall back to with all but 1e-20: too many for the array, no narrow band, and the
    # factorisation cannot tell 1 - 1e-20 from 1 when spokes follow each other before one of them leaves.
    k, q = 1100, Fraction(1, 10**20)
    result = check(chain_of(ladder(k, q), {"a": {k}}, initial=[0]), F(a))
    assert result.error_bound[0, 0] == 1
    assert (result.lower[0, 0], result.upper[0, 0]) == (0, 1)


def test_the_same_walk_with_few_states():
    # By symmetry about 1/2.
    rows = [
        {0: 1},
        *({i - 1: 0.25 if i < 20 else 0.75, i + 1: 0.75 if i < 20 else 0.25} for i in range(1, 40)),
        {40: 1},
    ]
    rows[20] = {19: 0.5, 21: 0.5}
    result = check(chain_of(rows, {"a": {40}}, initial=[20]), F(a))
    assert abs(result.probability[0, 0] - 0.5) <= result.error_bound[0, 0] < 1e-10


def random_values(chain, count: int, rng: np.random.Generator, zeros: float = 0.0) -> np.ndarray:
    weights = rng.random((count, chain.transition_count))
    weights[rng.random(weights.shape) < zeros] = 0
    rows = np.repeat(np.arange(chain.state_count), np.diff(chain.indptr))
    first = chain.indptr[:-1]
    empty = np.add.reduceat(weights, first, axis=1) == 0
    weights[:, first] += empty
    return weights / np.add.reduceat(weights, first, axis=1)[:, rows]


def random_chain(seed: int):
    rng = random.Random(seed)
    n = rng.randint(3, 12)
    rows = [dict.fromkeys(rng.sample(range(n), rng.randint(1, 3)), Fraction(1)) for _ in range(n)]
    rows = [{target: Fraction(1, len(row)) for target in row} for row in rows]
    labels = {name: {s for s in range(n) if rng.random() < 0.4} for name in "abc"}
    return chain_of(rows, labels, initial=range(n)), random_formula(rng, 3)


@pytest.mark.every(2)
@pytest.mark.parametrize("seed", range(40))
def test_many_matrices_at_once_equal_one_at_a_time(seed):
    chain, formula = random_chain(seed)
    product = product_of(chain, formula)
    values = random_values(chain, 25, np.random.default_rng(seed), zeros=0.2 if seed % 2 else 0.0)
    together = satisfaction_probabilities(product, values)
    other_layout = satisfaction_probabilities(product, np.asfortranarray(values))
    assert together.probability.shape == (25, chain.state_count)
    for matrix in range(25):
        alone = satisfaction_probabilities(product, values[matrix])
        bound = alone.error_bound[0] + together.error_bound[matrix]
        assert np.all(np.abs(alone.probability[0] - together.probability[matrix]) <= bound)
        assert np.all(np.abs(alone.probability[0] - other_layout.probability[matrix]) <= bound)


@pytest.mark.parametrize("seed", range(40))
def test_a_transition_of_probability_zero_is_as_good_as_absent(seed):
    chain, formula = random_chain(seed)
    values = random_values(chain, 1, np.random.default_rng(seed), zeros=0.4)[0]
    rows = [
        {
            int(chain.indices[k]): float(values[k])
            for k in range(chain.indptr[s], chain.indptr[s + 1])
            if values[k] > 0
        }
        for s in range(chain.state_count)
    ]
    labels = {name: set(np.flatnonzero(mask).tolist()) for name, mask in chain.labels.items()}
    without = check(chain_of(rows, labels, initial=range(chain.state_count)), formula)
    with_zeros = satisfaction_probabilities(product_of(chain, formula), values)
    assert np.allclose(without.probability, with_zeros.probability, rtol=0, atol=1e-12)


def test_a_zero_changes_the_graph():
    # 0 -> 0, 1, 2; 1 has a and returns to 0 or stays; 2 absorbs. Transitions in order: 00 01 02, 10 11, 22.
    chain = chain_of([{0: 0.25, 1: 0.25, 2: 0.5}, {0: 0.5, 1: 0.5}, {2: 1}], {"a": {1}})
    values = np.array(
        [
            [0.25, 0.25, 0.50, 0.5, 0.5, 1],  # sooner or later in 2
            [0.50, 0.50, 0.00, 0.5, 0.5, 1],  # never in 2: a again and again
            [1.00, 0.00, 0.00, 0.5, 0.5, 1],  # stays in 0
            [0.25, 0.25, 0.50, 0.0, 1.0, 1],  # 1 absorbs: 1/3 against 2/3
        ]
    )
    result = satisfaction_probabilities(product_of(chain, G(F(a))), values)
    assert result.probability[:3, 0].tolist() == [0, 1, 0]
    assert abs(result.probability[3, 0] - 1 / 3) < 1e-15
    eventually = satisfaction_probabilities(product_of(chain, F(a)), values)
    assert np.allclose(eventually.probability[:, 0], [1 / 3, 1, 0, 1 / 3], rtol=0, atol=1e-15)
    assert eventually.probability[1:3, 0].tolist() == [1, 0]


def test_rounded_rows_give_a_bracket():
    # 0 stays with .3333, goes to a with .3333, to the trap with .3333: the row misses 1 by 1e-4.
    # P(F a) solves x = .3333 x + .3333: 3333/6667; the same for the trap, so the bracket is 3333/6667 .. 3334/6667.
    p = 0.3333
    chain = chain_of([{0: p, 1: p, 2: p}, {1: 1}, {2: 1}], {"a": {1}}, defect=1.01e-4)
    result = check(chain, F(a))
    assert abs(result.probability[0, 0] - 3333 / 6667) < 1e-15
    assert abs(result.lower[0, 0] - 3333 / 6667) < 1e-14
    assert abs(result.upper[0, 0] - 3334 / 6667) < 1e-14
    # Too much: rows of .3334 give 3334/6666 and 1 - 3334/6666 = 3332/6666.
    p = 0.3334
    result = check(chain_of([{0: p, 1: p, 2: p}, {1: 1}, {2: 1}], {"a": {1}}, defect=2.01e-4), F(a))
    assert abs(result.lower[0, 0] - 3332 / 6666) < 1e-14
    assert abs(result.upper[0, 0] - 3334 / 6666) < 1e-14


def test_rounded_rows_of_what_cannot_be_missed_are_not_sure():
    # Of 0.3 that stay and 0.6 that enter the goal, 6/7 are accepted as given; none is rejected, so it may be 1.
    for label, lower, upper in (({1}, 6 / 7, 1), (set(), 0, 1 / 7)):
        result = check(chain_of([{0: 0.3, 1: 0.6}, {1: 1}], {"a": label}, defect=0.11), F(a))
        assert (result.probability[0, 0], result.lower[0, 0]) == pytest.approx((lower, lower), rel=1e-15, abs=0)
        assert result.upper[0, 0] == pytest.approx(upper, rel=1e-14, abs=0)
        assert np.isposinf(result.representation_bound).all()


def solution(value, error):
    """What a solver may say of three initial states."""
    return linear.Solution(np.array([value]), np.array([error]), np.array([error]) * 2, np.array([[2.0, 6.0, 4.0]]))


def test_enclosures_by_hand():
    made = batch._enclosure(solution([-0.25, 1.5, 0.5], [0.125, 0.75, 0.25]))
    expected = {
        "probability": [0, 1, 0.5],
        "error_bound": [0.125, 0.75, 0.25],
        "representation_bound": [0.25, 1, 0.5],
        "lower": [0, 0.75, 0.25],
        "upper": [-0.125, 1, 0.75],
    }
    assert {name: array[0].tolist() for name, array in vars(made).items() if name in expected} == expected
    assert made.expected_steps.tolist() == [[2, 6, 4]]
    assert batch._enclosure(solution([0, 1, 0.5], [9, 9, 9])).error_bound.tolist() == [[1, 1, 1]]
    # Accepted with 1/4, 1/2, 3/4 and rejected with 1/2, 1/2, 1/2.
    accept, reject = solution([0.25, 0.5, 0.75], [0.125, 0.125, 0.0625]), solution([0.5] * 3, [0.125, 0.25, 0.125])
    reject = replace(reject, steps=np.array([[1.0, 7, 5]]))
    made = batch._bracket(accept, reject)
    expected = {
        "probability": [0.25, 0.5, 0.75],
        "error_bound": [0.125, 0.125, 0.0625],
        "representation_bound": [np.inf] * 3,
        "expected_steps": [2, 7, 5],
        "lower": [0.125, 0.25, 0.375],
        "upper": [0.625, 0.75, 0.8125],
    }
    assert {name: array[0].tolist() for name, array in vars(made).items()} == expected


def test_rounded_rows_in_a_cycle_are_solved_as_given():
    # x0 = .5 x1 + .25, x1 = .4999 x0: x0 = .25 / (1 - .24995).
    chain = chain_of([{1: 0.5, 2: 0.25, 3: 0.25}, {0: 0.4999, 3: 0.5}, {2: 1}, {3: 1}], {"a": {2}}, defect=1.01e-4)
    result = check(chain, F(a))
    assert abs(result.probability[0, 0] - 0.25 / (1 - 0.24995)) <= result.error_bound[0, 0] + 1e-16
    assert result.error_bound[0, 0] < 1e-14


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[0.5, 0.5, 1.0, 1.0, 0.0]], "shape"),
        ([[0.5, 0.4, 1.0, 1.0]], "row 0 of array 0 misses the sum 1"),
        ([[0.5, 0.5, 1.0, 1.0], [0.5, 0.5, 1.0, 0.9]], "row 2 of array 1 misses the sum 1"),
        ([[1.5, -0.5, 1.0, 1.0]], "negative or no number"),
        ([[np.nan, 0.5, 1.0, 1.0]], "negative or no number"),
        ([[0.0, 0.0, 1.0, 1.0]], "row 0 of array 0"),
        ([[0.5, 0.75, 1.0, 1.0]], "row 0 of array 0 misses the sum 1 by 0.25"),
        ([[0.5, 0.625, 1.0, 1.25], [0.5, 0.25, 1.5, 1.0]], "row 1 of array 1 misses the sum 1 by 0.5"),
        ([[[0.5, 0.5, 1.0, 1.0]]], r"shape \(1, 1, 4\) do not fit 4"),
    ],
)
def test_values_that_are_no_probabilities_are_refused(values, message, monkeypatch):
    chain = chain_of([{1: 0.5, 2: 0.5}, {1: 1}, {2: 1}], {"a": {1}})
    for at_once in (batch._SUMS_AT_ONCE, 1):
        monkeypatch.setattr(batch, "_SUMS_AT_ONCE", at_once)
        with pytest.raises(ValueError, match=message if at_once > 1 else "misses|shape|negative"):
            satisfaction_probabilities(product_of(chain, F(a)), np.array(values))


@pytest.mark.parametrize("last", [0.75, 1.25])
def test_a_row_may_miss_the_sum_1_by_the_tolerance(last):
    product = product_of(chain_of([{1: 0.5, 2: 0.5}, {1: 1}, {2: 1}], {"a": {1}}), F(a))
    values, entry = np.array([[0.5, 0.5, 1.0, last]]), np.arange(4)
    batch._check_stochastic(product, values, entry, 0.25)
    with pytest.raises(ValueError, match="row 2 of array 0 misses"):
        batch._check_stochastic(product, values, entry, 0.25 - 2.0**-54)


def test_a_rough_value_is_given_only_where_one_is_asked_for(monkeypatch):
    asked, solve = [], batch.solve
    monkeypatch.setattr(batch, "solve", lambda *args, **how: asked.append(how["roughly"]) or solve(*args, **how))
    chain = chain_of([{0: 0.5, 1: 0.5}, {1: 1}], {"a": {1}})
    for more in ({}, {"roughly": True}):
        satisfaction_probabilities(product_of(chain, F(a)), chain.probabilities, **more)
    assert asked == [False, True]


def test_no_matrix_at_all():
    chain = chain_of([{1: 0.5, 2: 0.5}, {1: 1}, {2: 1}], {"a": {1}})
    result = satisfaction_probabilities(product_of(chain, F(a)), np.zeros((0, 4)))
    assert result.probability.shape == (0, 1)


def test_levels_and_sparse_factorisation_agree_on_a_long_chain():
    # A long corridor: forward with 1 - 2^-10, into the trap with 2^-10. More levels than one matrix is worth.
    n, q = 3000, 2.0**-10
    rows: list[dict[int, float]] = [{i + 1: 1 - q, n + 1: q} for i in range(n)]
    chain = chain_of([*rows, {n: 1}, {n + 1: 1}], {"a": {n}}, initial=[0, n - 5])
    product = product_of(chain, F(a))
    values = np.repeat(chain.probabilities[None], 3, axis=0)
    exact = np.array([float((1 - Fraction(q)) ** n), float((1 - Fraction(q)) ** 5)])
    for selected in (values[:1], values):
        result = satisfaction_probabilities(product, selected)
        assert np.all(np.abs(result.probability - exact) <= result.error_bound + exact * 2.0**-52)
        assert result.error_bound.max() < 1e-11


@pytest.mark.parametrize("forwards", [True, False])
def test_many_levels_solved_together_are_relatively_accurate(forwards, monkeypatch):
    """Substitution: 300 states, each to others of higher (lower) numbers, and a goal of some 1e-60."""
    monkeypatch.setattr("verifier.checking.plan.levels", lambda *graph: None)
    rng = np.random.default_rng(7)
    n = 300
    rows: list[dict[int, float]] = []
    for state in range(n):
        ahead = rng.choice(np.arange(state + 1, min(state + 6, n + 1)), size=min(3, n - state), replace=False)
        weights = rng.random(len(ahead)) + 1e-3
        rows.append(dict(zip(ahead.tolist(), (0.3 * weights / weights.sum()).tolist(), strict=True)) | {n + 1: 0.7})
    rows += [{n: 1}, {n + 1: 1}]
    if not forwards:
        rows = [{n + 1 - target: p for target, p in row.items()} for row in reversed(rows)]
    goal, trap = (n, n + 1) if forwards else (1, 0)
    starts = [0, 1, 150, n - 1] if forwards else [2, 151, n, n + 1]
    chain = chain_of(rows, {"a": {goal}}, initial=starts)
    with localcontext(Context(prec=120)):  # of the doubles, far more digits than they have
        exact = {goal: Decimal(1), trap: Decimal(0)}
        for state in range(n - 1, -1, -1) if forwards else range(2, n + 2):
            row = {target: Decimal(p) for target, p in rows[state].items()}
            exact[state] = sum(p * exact[target] for target, p in row.items()) / sum(row.values())
    result = check(chain, F(a))
    for value, error, start in zip(result.probability[0], result.error_bound[0], starts, strict=True):
        assert abs(Decimal(float(value)) - exact[start]) <= Decimal(float(error)), start
        assert error <= 1e-12 * value
    assert 0 < result.probability[0].min() < 1e-30


def test_formulas_of_every_kind_on_a_forward_chain():
    # 0 -> 1 or 2 -> 3 -> 3: two paths, 0 1 3 3 .. with 1/4 and 0 2 3 3 .. with 3/4; a in 1, b in 3.
    rows = [{1: Fraction(1, 4), 2: Fraction(3, 4)}, {3: 1}, {3: 1}, {3: 1}]
    chain = chain_of(rows, {"a": {1}, "b": {3}})
    for formula, expected in [
        (F(a), 0.25),
        (X(neg(a)), 0.75),
        (X(U(a, b)), 0.25),
        (op("->", F(a), G(b)), 0.75),
        (G(F(b)), 1),
        (F(op("&", a, X(G(b)))), 0.25),
    ]:
        assert check(chain, formula).probability[0, 0] == expected


def test_missing_transitions_of_a_forward_chain():
    # Every state moves to later ones or stays; a at the last state but one. Each matrix lacks other transitions, and
    # some rows keep their self-loop only, which makes the state a trap (pattern by pattern) or changes nothing.
    rng = np.random.default_rng(5)
    n = 12
    targets = [{s, s + 1, min(s + 2, n - 1), min(s + 3, n - 1)} for s in range(n - 2)]
    rows = [dict.fromkeys(row, 1 / len(row)) for row in targets]
    chain = chain_of([*rows, {n - 2: 1}, {n - 1: 1}], {"a": {n - 2}, "b": {3}}, initial=[0, 1, 4])
    values = random_values(chain, 60, rng, zeros=0.3)
    for formula, target in ((F(a), {n - 2}), (G(neg(a)), None)):
        result = satisfaction_probabilities(product_of(chain, formula), values)
        for matrix in range(len(values)):
            exact_rows = []
            for s in range(n):
                row = range(chain.indptr[s], chain.indptr[s + 1])
                weights = {int(chain.indices[k]): Fraction(values[matrix, k]) for k in row}
                exact_rows.append({t: weight / sum(weights.values()) for t, weight in weights.items()})
            exact = reach_probabilities(exact_rows, {n - 2})
            for column, state in enumerate(chain.initial.tolist()):
                expected = exact[state] if target else 1 - exact[state]
                value = Fraction(result.probability[matrix, column])
                assert abs(value - expected) <= Fraction(result.error_bound[matrix, column])
                assert result.error_bound[matrix, column] < 1e-13


def test_transitions_that_share_a_probability():
    # p and 1 - p, at every step of a walk 0 -> 1 -> 2 that falls into 3: P(F a) = p^2, for three values of p.
    chain = chain_of([{1: 0.5, 3: 0.5}, {2: 0.5, 3: 0.5}, {2: 1}, {3: 1}], {"a": {2}})
    product = product_of(chain, F(a))
    values = np.array([[0.5, 0.5, 1.0], [0.25, 0.75, 1.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    result = satisfaction_probabilities(product, values, np.array([0, 1, 0, 1, 2, 2]))
    assert result.probability[:, 0].tolist() == [0.25, 0.0625, 1, 0]


@pytest.mark.parametrize("entry", [[0, 1, 0, 1, 2, 3], [0, 1, 0, 1, 2, -1], [0, 1, 0, 1, 2], [0, 1, 0, 1, 2, 2, 2]])
def test_transitions_of_no_given_probability_are_refused(entry):
    chain = chain_of([{1: 0.5, 3: 0.5}, {2: 0.5, 3: 0.5}, {2: 1}, {3: 1}], {"a": {2}})
    with pytest.raises(ValueError, match=r"shape \(1, 3\) do not fit 6 transitions"):
        satisfaction_probabilities(product_of(chain, F(a)), np.array([[0.5, 0.5, 1.0]]), np.array(entry))


def test_rows_that_are_alike_are_summed_once():
    # Of three numbers: rows of 2 alone, of 0 and 1, of 1 and 0, of 1 alone, of 0, 1 and 1, and again.
    rows = [[2], [0, 1], [1, 0], [1], [0, 1, 1], [0, 1], [2], [1, 0], [1], [0, 1, 1], *[[2]] * 14]
    indptr, entry = np.cumsum([0, *map(len, rows)]), np.concatenate(rows)
    for shape in ((15, 3), (16, 4)):
        chosen, entries, starts = batch._different_rows(indptr, entry, shape)
        assert (chosen.tolist(), entries.tolist(), starts.tolist()) == (
            list(range(24)),
            entry.tolist(),
            indptr.tolist(),
        )
    chosen, entries, starts = batch._different_rows(indptr, entry, (16, 3))
    assert sorted(chosen.tolist()) == [0, 1, 2, 3, 4]
    assert [entries[low:high].tolist() for low, high in pairwise(starts)] == [rows[row] for row in chosen.tolist()]


def test_a_missing_transition_in_a_bottom_component():
    # 0 -> 1 <-> 2 with self-loops at 1 and 2; a in 1. Outside the bottom component nothing changes.
    chain = chain_of([{1: 1}, {1: 0.5, 2: 0.5}, {1: 0.5, 2: 0.5}], {"a": {1}})
    values = np.array([[1, 0.5, 0.5, 0.5, 0.5], [1, 1, 0, 0.5, 0.5], [1, 0.5, 0.5, 0, 1], [1, 0, 1, 1, 0]])
    for formula, expected in (
        (F(G(a)), [0, 1, 0, 0]),
        (G(F(a)), [1, 1, 0, 1]),
        (F(G(op("->", a, X(neg(a))))), [0, 0, 1, 1]),
    ):
        result = satisfaction_probabilities(product_of(chain, formula), values)
        assert result.probability[:, 0].tolist() == expected


@pytest.mark.parametrize(
    ("k", "q"),
    [
        (2, Fraction(1, 10)),
        (50, Fraction(1, 10**6)),  # q^k = 1e-300
        (53, Fraction(1, 10**6)),  # 1e-318, no longer a normal double
        (54, Fraction(1, 10**6)),  # 1e-324, no double but 0
        (60, Fraction(1, 10**6)),
        (4, Fraction(1, 10**160)),
        (199, Fraction(1, 10)),
        (199, Fraction(1, 40)),
        (199, Fraction(1, 41)),
        (199, Fraction(1, 42)),
        (199, Fraction(1, 43)),
        (200, Fraction(1, 10**300)),  # 1e-60000
    ],
)
@pytest.mark.filterwarnings("error")
def test_leaving_a_component_is_rarer_than_the_smallest_double(k, q):
    chain = chain_of(ladder(k, q), {"a": {k}}, initial=sorted({0, 1, k - 1}))
    result = check(chain, F(a))
    assert np.all(np.abs(result.probability - 0.3) <= result.error_bound + result.representation_bound)
    assert np.all((result.lower - result.representation_bound <= 0.3) & (result.upper >= result.probability))
    assert result.error_bound.max() < 1e-8
    assert result.representation_bound.max() < 1e-12


@pytest.mark.filterwarnings("error")
def test_only_some_of_many_matrices_are_out_of_range():
    # 30 rungs, q^k from 2^-30 to 1e-600; the order must survive.
    shares = [Fraction(1, 2), Fraction(1, 10**20), Fraction(1, 3), Fraction(1, 10**12), Fraction(9, 10)]
    chain = chain_of(ladder(30, Fraction(1, 2)), {"a": {30}})
    values = np.array([chain_of(ladder(30, q)).probabilities for q in shares])
    result = satisfaction_probabilities(product_of(chain, F(a)), values)
    assert np.all(np.abs(result.probability - 0.3) <= result.error_bound + result.representation_bound)
    assert result.error_bound.max() < 1e-10


@pytest.mark.filterwarnings("error")
def test_two_ladders_of_one_level_only_one_of_them_out_of_range():
    # 0 -> either of two ladders of 10 rungs, of q = 1/2 and of q = 1e-40 (q^k = 1e-400): solved side by side.
    k = 10
    rows: list[dict[int, Fraction]] = [{1: half, 1 + k: half}]
    for first, q in ((1, half), (1 + k, Fraction(1, 10**40))):
        for rung in range(k):
            last = {1 + 2 * k: q * Fraction(3, 10), 2 + 2 * k: q * Fraction(7, 10)}
            rows.append({first: 1 - q, **(last if rung == k - 1 else {first + rung + 1: q})})
    rows += [{1 + 2 * k: Fraction(1)}, {2 + 2 * k: Fraction(1)}]
    result = check(chain_of(rows, {"a": {1 + 2 * k}}, initial=[0, 1, 1 + k]), F(a))
    assert np.all(np.abs(result.probability - 0.3) <= result.error_bound + result.representation_bound)
    assert result.error_bound.max() < 1e-10


@pytest.mark.filterwarnings("error")
def test_a_small_value_beyond_a_rare_exit():
    # 0 <-> 1, out of 1 with 1e-300 into 2, from there 1e-20 into the goal: 1e-20 from each, while the product
    # 1e-320 of exit and value is far from relatively accurate.
    rare, small = Fraction(1, 10**300), Fraction(1, 10**20)
    rows = [{1: Fraction(1)}, {0: 1 - rare, 2: rare}, {3: small, 4: 1 - small}, {3: Fraction(1)}, {4: Fraction(1)}]
    result = check(chain_of(rows, {"a": {3}}, initial=[0, 1, 2]), F(a))
    assert np.all(np.abs(result.probability - 1e-20) <= result.error_bound + result.representation_bound)
    assert np.all(result.error_bound <= 1e-21)
    # With an exit of 1e-320 the doubles cannot tell, and the bound has to say so.
    rare = Fraction(1, 10**320)
    rows[1] = {0: 1 - rare, 2: rare}
    result = check(chain_of(rows, {"a": {3}}, initial=[0, 1]), F(a))
    assert np.all(np.isfinite(result.probability) & (result.probability >= 0) & (result.probability <= 1))
    assert np.all(np.abs(result.probability - 1e-20) <= result.error_bound)


@pytest.mark.parametrize("q", [half, Fraction(1, 10), Fraction(1, 43), Fraction(1, 10**6)])
@pytest.mark.filterwarnings("error")
def test_a_rare_exit_from_a_component_too_large_for_elimination(q):
    # q^k is 1e-75 or less, with 1e-6 no double: no factorisation in doubles can know, but elimination does.
    k = 250
    result = check(chain_of(ladder(k, q), {"a": {k}}, initial=[0, 1, k - 1]), F(a))
    assert np.all(np.abs(result.probability - 0.3) <= result.error_bound + result.representation_bound)
    assert result.error_bound.max() < 1e-9
    assert result.representation_bound.max() < 1e-12


rare = Fraction(1, 10**200)


@st.composite
def rare_chains(draw):
    """3..6 states with exact rows of weights down to 1e-200; state 0 absorbs with label a, state 1 without."""
    n = draw(st.integers(3, 6))
    rows = [{0: Fraction(1)}, {1: Fraction(1)}]
    weights = st.builds(lambda w, e: Fraction(w, 10**e), st.integers(1, 9), st.sampled_from([0, 5, 90, 200]))
    for _ in range(2, n):
        row = draw(st.dictionaries(st.integers(0, n - 1), weights, min_size=1, max_size=4))
        if sum(row.values()) < Fraction(1, 100):  # so that every probability is a normal double
            row[draw(st.integers(0, n - 1))] = Fraction(1)
        rows.append({target: Fraction(weight) / sum(row.values()) for target, weight in sorted(row.items())})
    return rows


@given(rare_chains())
@example([{0: Fraction(1)}, {1: Fraction(1)}, {0: rare, 1: 1 - rare}, {1: 1 - rare, 2: rare}])  # 1e-400 from the last
@example(
    [
        {0: Fraction(1)},
        {1: Fraction(1)},
        {0: rare, 3: 1 - rare},
        {1: rare, 2: 1 - 2 * rare, 4: rare},
        {0: rare, 3: 1 - rare},
    ]
)
def test_bounds_hold_the_exact_solution_of_rare_events(rows):
    check_bounds(rows)


@pytest.mark.slow
@given(rare_chains())
@settings(max_examples=5000)
def test_bounds_hold_the_exact_solution_of_rare_events_slow(rows):
    check_bounds(rows)


@pytest.mark.parametrize(
    ("value", "roughly", "most"),
    [
        (0.5, False, 2.0**-33),
        (-0.5, False, 2.0**-33),
        (4.0, False, 2.0**-31),
        (2.0**-40, False, 2.0**-60),  # a small value keeps 20 bits
        (0.0, False, 2.0**-900),
        (0.5, True, 2.0**-27),
        (2.0**-40, True, 2.0**-27),
        (4.0, True, 2.0**-25),
    ],
)
def test_a_bound_is_coarse_beyond_what_is_said(value, roughly, most):
    errors = np.array([most, most * (1 + 2.0**-50), np.inf, np.nan])
    assert linear._coarse(np.full(4, value), errors, roughly).tolist() == [False, True, True, True]


def test_no_large_system_outlives_its_solution():
    # A plan and what its solutions share know each other: kept, they would stay until cycles are looked for.
    size = 30_000
    steps = np.arange(size - 1)
    chain = MarkovChain(
        np.concatenate([[0], np.cumsum(np.r_[np.full(size - 2, 2), 1, 1])]),
        np.concatenate(
            [np.stack([steps[:-1] + 1, np.full(size - 2, size - 1)], axis=1).ravel(), [size - 1, size - 1]]
        ),
        np.concatenate([np.full(2 * (size - 2), 0.5), [1.0, 1.0]]),
        {"a": np.arange(size) == size - 2},
        np.array([0]),
    )
    gc.collect()
    gc.disable()
    try:
        check(chain, F(a))
        assert not [each for each in gc.get_objects() if isinstance(each, Plan) and each.size > size // 2]
    finally:
        gc.enable()
