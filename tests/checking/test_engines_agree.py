"""Four ways to one number: Storm, Storm with rational numbers, the batch engine, and the meaning on a single word."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from formula_strategies import formulas
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from small_chains import chain_of, check_formulas

from verifier.base.errors import NoAnswerError
from verifier.checking.settings import EngineSettings
from verifier.checking.two_engines import abstracted
from verifier.language.ltl import holds_on_lasso

NAMES = ("a", "b", "c")


@st.composite
def chains(draw, largest=6, deterministic=False):
    """Random chains with fractions of small denominators; every state is asked about."""
    n = draw(st.integers(1, largest))
    rows = []
    for _ in range(n):
        width = 1 if deterministic else draw(st.integers(1, min(n, 3)))
        successors = sorted(draw(st.permutations(range(n)))[:width])
        parts = draw(st.lists(st.integers(1, 5), min_size=width, max_size=width))
        rows.append({t: Fraction(part, sum(parts)) for t, part in zip(successors, parts, strict=True)})
    labels = {name: np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n))) for name in NAMES}
    return chain_of(rows, labels, range(n), exact=True)


def on_chain(chain, formula):
    """The formula over proposition names, and the chain labelled with them."""
    (abstract,) = abstracted([formula])
    n = chain.state_count

    def mask(node):
        letters = [frozenset(name for name in NAMES if chain.labels[name][s]) for s in range(n)]
        return np.array([holds_on_lasso(node, [], [letter]) for letter in letters])

    labels = {name: mask(node) for name, node in abstract.propositions.items()}
    return replace(chain, labels=labels), abstract.formula


def checked(chain, formula, storm, exact=False):
    """What both engines say; formulas whose automaton Storm does not finish in a minute are left to others."""
    try:
        return check_formulas(chain, [formula], storm, EngineSettings(exact=exact, timeout_s=60))[0]
    except NoAnswerError:
        assume(False)


def all_engines_agree(chain, formula, storm):
    labelled, over_names = on_chain(chain, formula)
    found, exact = checked(labelled, over_names, storm), checked(labelled, over_names, storm, exact=True)
    assert exact.fractions is not None
    for k in range(chain.state_count):
        true = float(exact.fractions[k])
        assert abs(found.probability[k] - true) <= 1e-9
        assert abs(found.second[k] - true) <= 1e-9
        # The stated bounds hold against the exact value, not merely against the other engine.
        assert found.lower[k] <= exact.fractions[k] <= found.upper[k]


def lasso_of(chain, start):
    """(prefix, loop) of the only run of a deterministic chain, as letters."""
    seen, path = {}, [start]
    while path[-1] not in seen:
        seen[path[-1]] = len(path) - 1
        path.append(int(chain.indices[path[-1]]))
    letters = [frozenset(name for name in NAMES if chain.labels[name][s]) for s in path[:-1]]
    return letters[: seen[path[-1]]], letters[seen[path[-1]] :]


def single_words_agree(chain, formula, storm):
    labelled, over_names = on_chain(chain, formula)
    found = checked(labelled, over_names, storm)
    for start in range(chain.state_count):
        expected = float(holds_on_lasso(formula, *lasso_of(chain, start)))
        assert found.probability[start] == expected
        assert found.second[start] == expected


@given(chain=chains(), formula=formulas(NAMES, max_depth=4))
def test_storm_exact_storm_and_the_batch_engine_agree(storm, chain, formula):
    all_engines_agree(chain, formula, storm)


@given(chain=chains(deterministic=True), formula=formulas(NAMES, max_depth=4))
def test_on_a_single_word_every_engine_says_what_the_definition_says(storm, chain, formula):
    single_words_agree(chain, formula, storm)


@pytest.mark.slow
@settings(max_examples=3000)
@given(chain=chains(largest=8), formula=formulas(NAMES, max_depth=4))
def test_storm_exact_storm_and_the_batch_engine_agree_at_length(storm, chain, formula):
    all_engines_agree(chain, formula, storm)


@pytest.mark.slow
@settings(max_examples=3000)
@given(chain=chains(largest=8, deterministic=True), formula=formulas(NAMES, max_depth=4))
def test_on_a_single_word_every_engine_says_what_the_definition_says_at_length(storm, chain, formula):
    single_words_agree(chain, formula, storm)
