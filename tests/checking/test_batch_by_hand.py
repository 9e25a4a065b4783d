"""The batch engine on chains solved by hand; every expected value is an exact fraction with its derivation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from counted_work import calls_of
from random_ltl import F, G, U, X, a, b, neg, op, temporal
from small_chains import chain_of

from verifier.checking.batch import check
from verifier.language.expressions.syntax import FALSE, TRUE, Node, conjunction

half = Fraction(1, 2)


def probability(chain, formula: Node) -> list[float]:
    result = check(chain, formula)
    assert result.error_bound.max() < 1e-12
    assert np.all(result.lower <= result.probability)
    assert np.all(result.probability <= result.upper)
    return result.probability[0].tolist()


def close(value: float, exact: Fraction) -> bool:
    return abs(Fraction(value) - exact) <= Fraction(1, 10**14)


def test_gamblers_ruin():
    # Win a unit with p = 2/5, lose one with q = 3/5, stop at 0 and 4. From i: (1 - (q/p)^i) / (1 - (q/p)^4), so
    # with q/p = 3/2: (1 - 9/4) / (1 - 81/16) = (5/4) / (65/16) = 4/13 from 2.
    p, q = Fraction(2, 5), Fraction(3, 5)
    rows = [{0: 1}, {0: q, 2: p}, {1: q, 3: p}, {2: q, 4: p}, {4: 1}]
    chain = chain_of(rows, {"a": {4}}, initial=[0, 1, 2, 3, 4])
    expected = [Fraction(0), Fraction(8, 65), Fraction(4, 13), Fraction(38, 65), Fraction(1)]
    assert all(map(close, probability(chain, F(a)), expected))
    assert probability(chain, F(a))[0] == 0
    assert probability(chain, F(a))[4] == 1
    assert all(map(close, probability(chain, G(neg(a))), [1 - x for x in expected]))


@pytest.mark.parametrize("lone", [0, 1, 2])
def test_a_pair_of_states_beside_others_that_lead_nowhere_else(lone):
    # 0 and 1 lead to each other and out, each with 1/2: x = 1/2 + y/2, y = x/2, so 2/3 and 1/3; others out with 1/4.
    states = [0, 1, *range(2, 2 + lone)]
    good, bad = 2 + lone, 3 + lone
    rows = [{1: half, good: half}, {0: half, bad: half}]
    rows += [{good: Fraction(1, 4), bad: Fraction(3, 4)} for _ in range(lone)] + [{good: 1}, {bad: 1}]
    found = probability(chain_of(rows, {"a": {good}}, initial=states), F(a))
    assert all(map(close, found, [Fraction(2, 3), Fraction(1, 3), *[Fraction(1, 4)] * lone]))


def test_self_loop_is_a_geometric_wait():
    # Stay with 1/2, go to a with 1/8, to the trap with 3/8: a with (1/8) / (1/8 + 3/8) = 1/4.
    rows = [{0: half, 1: Fraction(1, 8), 2: Fraction(3, 8)}, {1: 1}, {2: 1}]
    chain = chain_of(rows, {"a": {1}})
    assert probability(chain, F(a)) == [0.25]
    # F<=k a: a at step 1..k, sum of (1/2)^(i-1)/8 = (1 - (1/2)^k)/4.
    for k in (0, 1, 2, 7, 40):
        assert close(probability(chain, F(a, (0, k)))[0], (1 - half**k) / 4)
    # F[2,3] a: still reached at 3, for a is absorbing; that is a within 3 steps.
    assert close(probability(chain, F(a, (2, 3)))[0], (1 - half**3) / 4)
    # (!a) U[2,3] a: first reached at step 2 or 3: 1/16 + 1/32.
    assert close(probability(chain, U(neg(a), a, (2, 3)))[0], Fraction(3, 32))


@pytest.mark.parametrize("p", [0.5, 0.25, 2.0**-20])
def test_bounded_reachability_closed_form(p):
    # 1 - (1-p)^k; p and 1-p are doubles, so the closed form is exact for the chain given.
    chain = chain_of([{0: 1 - p, 1: p}, {1: 1}], {"a": {1}})
    for k in (1, 10, 200):
        exact = 1 - (1 - Fraction(p)) ** k
        value = probability(chain, F(a, (0, k)))[0]
        assert abs(Fraction(value) - exact) <= exact * Fraction(1, 10**12)


def test_two_heads_in_a_row():
    # Fair coin until heads-heads or three tails altogether: states by (tails so far, last was heads).
    # h(t, fresh) = 1/2 h(t, heads) + 1/2 h(t+1, fresh), h(t, heads) = 1/2 + 1/2 h(t+1, fresh):
    # h(2, fresh) = 1/4, h(2, heads) = 1/2; h(1, fresh) = 1/4 + 3/4 * 1/4 = 7/16;
    # h(0, fresh) = 1/4 + 3/4 * 7/16 = 37/64.
    rows = [
        {1: half, 2: half},  # 0 tails, fresh
        {6: half, 2: half},  # 0 tails, heads
        {3: half, 4: half},  # 1 tail, fresh
        {6: half, 4: half},  # 1 tail, heads
        {5: half, 7: half},  # 2 tails, fresh
        {6: half, 7: half},  # 2 tails, heads
        {6: 1},
        {7: 1},
    ]
    assert probability(chain_of(rows, {"a": {6}}), F(a)) == [37 / 64]
    # Without labels for the pattern: heads are states 1, 3, 5, 6; two in a row before the end is F (a & X a).
    heads = chain_of([*rows[:6], {7: 1}, {7: 1}], {"a": {1, 3, 5, 6}})
    assert probability(heads, F(op("&", a, X(a)))) == [37 / 64]


ergodic = chain_of([{0: half, 1: half}, {0: Fraction(1, 3), 1: Fraction(2, 3)}], {"a": {0}, "b": {1}}, initial=[0, 1])


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (G(F(a)), [1, 1]),
        (F(G(a)), [0, 0]),
        (G(F(op("&", a, X(a)))), [1, 1]),
        (G(F(op("&", a, X(op("&", a, X(b)))))), [1, 1]),
        (F(G(op("->", a, X(b)))), [0, 0]),
        (G(op("->", a, F(b))), [1, 1]),
        (op("<->", G(F(a)), G(F(b))), [1, 1]),
        (op("xor", G(F(a)), F(G(neg(b)))), [1, 1]),
        (G(op("xor", a, b)), [1, 1]),
        (U(G(F(a)), op("&", b, F(G(b)))), [0, 0]),
        (X(G(F(a)), 5), [1, 1]),
        # a U (X a): from 1, X a at once or never, 1/3. From 0: X a at once (1/2), or else from 1: 1/2 + 1/2 * 1/3.
        (U(a, X(a)), [Fraction(2, 3), Fraction(1, 3)]),
        # a & X b: from 0 with 1/2, never from 1.
        (op("&", a, X(b)), [Fraction(1, 2), 0]),
        # The second truth value in a bottom component: (a & X b) | (b & G F a).
        (op("|", op("&", a, X(b)), op("&", b, G(F(a)))), [Fraction(1, 2), 1]),
        # X X a: from 0: 1/2*1/2 + 1/2*1/3 = 5/12; from 1: 1/3*1/2 + 2/3*1/3 = 7/18.
        (X(a, 2), [Fraction(5, 12), Fraction(7, 18)]),
        (G(F(a, (0, 200))), [0, 0]),
        (G(F(a, (3, 7))), [0, 0]),
        (F(G(b, (0, 200))), [1, 1]),
        (F(G(b, (5, 20))), [1, 1]),
        (G(F(G(b, (0, 30)))), [1, 1]),
        (G(F(U(a, b, (2, 4)))), [1, 1]),
        (F(G(op("|", a, op("|", X(a), X(a, 2))))), [0, 0]),
        # At position 0 only: (a U b) | G a is certain, a R b means b until a with both, or always b.
        (temporal("W", a, b), [1, 1]),
        (temporal("R", a, b), [0, 0]),
        (temporal("M", op("|", a, b), TRUE), [1, 1]),
        (TRUE, [1, 1]),
        (FALSE, [0, 0]),
        (a, [1, 0]),
    ],
)
def test_ergodic_chain_of_two_states(formula, expected):
    assert all(map(close, probability(ergodic, formula), map(Fraction, expected)))


def test_periodic_component_is_decided_on_its_graph():
    # a b a b ...: a holds exactly at every second position; G (a <-> X X a) is certain, F G (a -> X a) impossible.
    chain = chain_of([{1: 1}, {0: 1}], {"a": {0}})
    assert probability(chain, G(op("<->", a, X(a, 2)))) == [1]
    assert probability(chain, F(G(op("->", a, X(a))))) == [0]
    assert probability(chain, G(F(op("&", a, X(a, 3))))) == [0]
    assert probability(chain, G(F(op("&", a, X(a, 4))))) == [1]


def test_an_until_that_may_hold_or_fail_in_a_recurrent_state():
    # 0 (a) goes to 1 (b) or to 2 (neither), both return: at 0, a U b holds with 1/2, again and again.
    chain = chain_of([{1: half, 2: half}, {0: 1}, {0: 1}], {"a": {0}, "b": {1}})
    assert probability(chain, G(F(op("&", a, U(a, b))))) == [1]
    assert probability(chain, G(F(op("&", a, neg(U(a, b)))))) == [1]
    assert probability(chain, F(G(op("->", a, U(a, b))))) == [0]
    assert probability(chain, F(G(op("<->", op("&", a, U(a, b)), op("&", a, X(b)))))) == [1]
    # b U (a U b) holds in 1 at once, and in 0 when a U b does: two nested levels of splitting.
    assert probability(chain, F(G(op("->", U(b, U(a, b)), op("|", b, X(b)))))) == [1]
    assert probability(chain, U(a, b)) == [0.5]


def test_value_between_zero_and_one_from_choosing_a_component():
    # 0 goes to the recurrent pair {1, 2} with 1/3 and to the absorbing 3 with 2/3.
    rows = [{1: Fraction(1, 3), 3: Fraction(2, 3)}, {1: half, 2: half}, {1: 1}, {3: 1}]
    chain = chain_of(rows, {"a": {1, 3}, "b": {2}})
    assert close(probability(chain, G(F(b)))[0], Fraction(1, 3))
    assert close(probability(chain, F(G(a)))[0], Fraction(2, 3))
    # b U (a & X b) holds at a visit of 1 that is followed by 2: infinitely often in {1, 2} only.
    assert close(probability(chain, G(F(U(b, op("&", a, X(b))))))[0], Fraction(1, 3))


def test_until_with_a_lower_bound_demands_its_left_side_from_the_start():
    # A state with b that absorbs: false U[1,2] b is false, though b holds throughout.
    chain = chain_of([{0: 1}], {"a": {0}, "b": {0}})
    assert probability(chain, U(neg(a), b, (2, 4))) == [0]
    assert probability(chain, U(neg(a), b, (0, 4))) == [1]


def test_very_small_probabilities_keep_their_relative_accuracy():
    # Thirty steps that each succeed with 2^-40: 2^-1000, about 1e-301 (doubles end at 1e-308); times 3 below.
    p = 2.0**-40
    rows: list[dict[int, float]] = [{i + 1: p, 26: 1 - p} for i in range(25)]
    chain = chain_of([*rows, {25: 1}, {26: 1}], {"a": {25}})
    result = check(chain, F(a))
    assert result.probability[0, 0] == 2.0**-1000
    assert 0 < result.error_bound[0, 0] < 2.0**-1000 * 1e-13
    assert result.representation_bound[0, 0] < 2.0**-1000 * 1e-13


def test_an_almost_absorbing_state_is_left_in_the_right_proportions():
    # p_ss = 1 - 2^-50 (a double): the exits 2^-52 and 3 * 2^-52 are taken with 1/4 and 3/4.
    exits = {1: 2.0**-52, 2: 3 * 2.0**-52}
    chain = chain_of([{0: 1 - 2.0**-50, **exits}, {1: 1}, {2: 1}], {"a": {1}})
    assert probability(chain, F(a)) == [0.25]


def test_an_almost_closed_pair_is_left_in_the_right_proportions():
    # 0 <-> 1 for ages; 0 leaves to a with e, 1 leaves to the trap with 2e, e = 2^-50. By balance of the pair
    # x0 = e + (1-e) x1, x1 = (1-2e) x0, so x0 = e / (1 - (1-e)(1-2e)) = 1 / (3 - 2e).
    e = 2.0**-50
    chain = chain_of([{1: 1 - e, 2: e}, {0: 1 - 2 * e, 3: 2 * e}, {2: 1}, {3: 1}], {"a": {2}})
    result = check(chain, F(a))
    exact = 1 / (3 - 2 * Fraction(e))
    assert abs(Fraction(result.probability[0, 0]) - exact) <= Fraction(result.error_bound[0, 0]) < Fraction(1, 10**13)


def test_large_windows_take_little_work_in_a_small_component():
    n = 40
    rows = [{(i + 1) % n: half, i: half} for i in range(n)]
    chain = chain_of(rows, {"a": {0}, "b": {n // 2}})
    # Staying 200 times is possible everywhere, so every deadline is missed sooner or later, and met as well.
    cases = [
        (G(op("->", a, F(b, (0, 200)))), 0),
        (G(F(op("&", a, F(b, (0, 200))))), 1),
        (G(F(op("&", a, G(neg(b), (0, 200))))), 1),
        (F(G(F(a, (0, 200)))), 0),
    ]
    found = []
    work = calls_of(lambda: found.extend(probability(chain, formula) for formula, _ in cases))
    assert found == [[value] for _, value in cases]
    assert work < 500_000  # not some for each of 200 steps, 40 states and 200 obligations


def test_many_requirements_together():
    # Two absorbing ends; the conjunction of ten formulas that hold exactly in the left one.
    chain = chain_of([{1: Fraction(1, 4), 2: Fraction(3, 4)}, {1: 1}, {2: 1}], {"a": {1}, "b": {0, 2}})
    formula = conjunction(tuple(F(G(X(a, i))) for i in range(1, 11)))
    assert probability(chain, formula) == [0.25]
