"""The batch engine given few probabilities and, for each transition, which of them it has."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_ltl import F, U, a, b, neg
from small_chains import chain_of

from verifier.checking.batch import satisfaction_probabilities
from verifier.checking.product import build_product

# 0 -> 1, 2;  1 -> 0, 3;  2 -> 2, 3;  3 and 4 stay;  5 -> 3, 4. Every state that moves does so with p and 1 - p.
ROWS = [{1: 0.5, 2: 0.5}, {0: 0.5, 3: 0.5}, {2: 0.5, 3: 0.5}, {3: 1}, {4: 1}, {3: 0.5, 4: 0.5}]
CHAIN = chain_of(ROWS, {"a": {3}, "b": {1}}, initial=[0, 5])
ENTRY = np.array([0, 1, 1, 0, 1, 0, 2, 2, 0, 1])


def product_of(formula):
    return build_product(CHAIN.indptr, CHAIN.indices, CHAIN.labels, formula, CHAIN.initial)


def test_by_hand():
    # From 5 the goal 3 is reached with p; from 0 almost surely, unless p = 0: then 0 -> 2 -> 2 for ever.
    values = np.array([[p, 1 - p, 1.0] for p in (0.25, 0.5, 0.0)])
    found = satisfaction_probabilities(product_of(F(a)), values, ENTRY)
    assert np.array_equal(found.probability, [[1, 0.25], [1, 0.5], [0, 0]])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=4), st.sampled_from([F(a), U(neg(b), a), F(b)]))
def test_it_is_the_same_as_one_probability_for_each_transition(chances, formula):
    values = np.array([[p, 1 - p, 1.0] for p in chances])
    product = product_of(formula)
    shared = satisfaction_probabilities(product, values, ENTRY)
    own = satisfaction_probabilities(product, values[:, ENTRY])
    for name in ("probability", "error_bound", "representation_bound", "expected_steps", "lower", "upper"):
        assert np.array_equal(getattr(shared, name), getattr(own, name)), name


def test_a_probability_that_no_transition_has_may_be_zero():
    values = np.array([[0.25, 0.75, 1.0, 0.0]])
    assert satisfaction_probabilities(product_of(F(a)), values, ENTRY).probability[0, 1] == 0.25


@pytest.mark.parametrize(
    ("width", "entry"),
    [(2, ENTRY), (3, ENTRY[:-1]), (3, ENTRY - 1), (3, None)],
    ids=["too few probabilities", "too few transitions", "a negative place", "no places"],
)
def test_arrays_that_do_not_fit_are_refused(width, entry):
    with pytest.raises(ValueError, match="do not fit 10 transitions"):
        satisfaction_probabilities(product_of(F(a)), np.full((1, width), 0.5), entry)


def test_rows_that_do_not_sum_to_one_are_named():
    with pytest.raises(ValueError, match=r"row 0 of array 1 misses the sum 1 by 0\.25"):
        satisfaction_probabilities(product_of(F(a)), np.array([[0.5, 0.5, 1], [0.5, 0.25, 1]]), ENTRY)


def test_of_many_like_rows_the_one_that_differs_is_named():
    # 40 states lead on or to the last one; of 20 matrices the seventh has another chance to end in state 20 alone.
    rows = [{x + 1: 0.5, 39: 0.5} for x in range(38)] + [{39: 1}] * 2
    chain = chain_of(rows, {"a": {30}})
    entry = np.array([0, 1] * 20 + [0, 3] + [0, 1] * 17 + [2, 2])
    product = build_product(chain.indptr, chain.indices, chain.labels, F(a), chain.initial)
    values = np.tile([0.5, 0.5, 1.0, 0.5], (20, 1))
    found = satisfaction_probabilities(product, values, entry)
    assert np.array_equal(found.probability[:, 0], [0.5**30] * 20)
    values[6, 3] = 0.25
    with pytest.raises(ValueError, match=r"row 20 of array 6 misses the sum 1 by 0\.25"):
        satisfaction_probabilities(product, values, entry)
