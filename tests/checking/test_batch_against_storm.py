"""Random chains and random LTL: the batch engine, Storm, and on lassos the definition of LTL, agree."""

from __future__ import annotations

import random

import numpy as np
import pytest
from exact_oracle import holds_on_lasso
from hypothesis import given, settings
from hypothesis import strategies as st
from random_ltl import formulas, random_formula
from storm_reference import storm_probabilities, storm_text

from verifier.checking.batch import satisfaction_probabilities
from verifier.checking.product import build_product


def random_chain(rng: random.Random):
    """A dense matrix of 1..8 states with small-denominator rows, and three random labels."""
    n = rng.randint(1, 8)
    matrix = np.zeros((n, n))
    for state in range(n):
        targets = rng.sample(range(n), rng.randint(1, min(n, 3)))
        if rng.random() < 0.3:  # some chains have many components, others one
            targets = [target for target in targets if target >= state] or [state]
        weights = np.array([float(rng.randint(1, 5)) for _ in targets])
        matrix[state, targets] = weights / weights.sum()
    return matrix, {name: np.array([rng.random() < 0.5 for _ in range(n)]) for name in "abc"}


def batch_probabilities(matrix, labels, formula):
    sources, targets = np.nonzero(matrix)
    n = len(matrix)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=n))])
    product = build_product(indptr, targets.astype(np.int64), labels, formula, np.arange(n))
    result = satisfaction_probabilities(product, matrix[sources, targets])
    assert result.error_bound.max() < 1e-10
    return result.probability[0]


def compare_with_storm(seeds: range) -> int:
    """Compare one chain and formula for each seed; how many had a probability strictly between 0 and 1."""
    proper = 0
    for seed in seeds:
        rng = random.Random(seed)
        matrix, labels = random_chain(rng)
        formula = random_formula(rng)
        ours = batch_probabilities(matrix, labels, formula)
        theirs = storm_probabilities(matrix, labels, formula)
        assert np.abs(ours - theirs).max() <= 1e-9, (seed, storm_text(formula), ours, theirs)
        proper += bool(np.any((theirs > 1e-6) & (theirs < 1 - 1e-6)))
    return proper


# Seeds, not a search: some formulas take Storm minutes, and a test must not meet one by chance.
def test_random_formulas_agree_with_storm():
    assert compare_with_storm(range(150)) >= 20


@pytest.mark.slow
def test_random_formulas_agree_with_storm_slow():
    assert compare_with_storm(range(1000, 5000)) >= 500


letters = st.frozensets(st.sampled_from("abc"))


def compare_on_lasso(formula, stem, loop):
    word = [*stem, *loop]
    n = len(word)
    matrix = np.zeros((n, n))
    matrix[np.arange(n - 1), np.arange(1, n)] = 1
    matrix[n - 1, len(stem)] = 1
    labels = {name: np.array([name in letter for letter in word]) for name in "abc"}
    expected = holds_on_lasso(formula, stem, loop)
    assert batch_probabilities(matrix, labels, formula)[0] == expected


@given(formulas(3), st.lists(letters, max_size=4), st.lists(letters, min_size=1, max_size=5))
def test_deterministic_lassos_agree_with_the_definition(formula, stem, loop):
    compare_on_lasso(formula, stem, loop)


@pytest.mark.slow
@given(formulas(4), st.lists(letters, max_size=4), st.lists(letters, min_size=1, max_size=6))
@settings(max_examples=3000)
def test_deterministic_lassos_agree_with_the_definition_slow(formula, stem, loop):
    compare_on_lasso(formula, stem, loop)
