"""A Markov chain that exists is stochastic, and everything about it fits together."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from verifier.chains.chain import DecisionProcess, MarkovChain

GOOD = MarkovChain(
    indptr=np.array([0, 2, 3]),
    indices=np.array([0, 1, 1]),
    probabilities=np.array([0.25, 0.75, 1.0]),
    labels={"goal": np.array([False, True])},
    initial=np.array([0]),
    fractions=(Fraction(1, 4), Fraction(3, 4), Fraction(1)),
    valuations={"x": np.array([0, 7])},
)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("probabilities", np.array([0.25, 0.7, 1.0]), "row 0 does not sum to 1"),
        ("probabilities", np.array([0.25, 0.75, 1.2]), "row 1 does not sum to 1"),
        ("probabilities", np.array([-0.25, 1.25, 1.0]), "above 0"),
        ("probabilities", np.array([0.0, 1.0, 1.0]), "above 0"),
        ("probabilities", np.array([np.nan, 0.75, 1.0]), "above 0"),
        ("probabilities", np.array([1.0]), "one probability"),
        ("fractions", (Fraction(1, 4), Fraction(1, 4), Fraction(1)), "row 0 does not sum to exactly 1"),
        ("fractions", (Fraction(1, 4), Fraction(3, 4), Fraction(1, 2)), "row 1 does not sum to exactly 1"),
        ("fractions", (Fraction(1),), "one fraction"),
        ("indices", np.array([1, 0, 1]), "increase strictly"),
        ("indices", np.array([0, 0, 1]), "increase strictly"),
        ("indices", np.array([0, 2, 1]), "a successor that is a state"),
        ("indptr", np.array([0, 3, 3]), "leave no row empty"),
        ("indptr", np.array([0, 2, 2]), "leave no row empty"),
        ("initial", np.array([], dtype=np.int64), "initial states"),
        ("initial", np.array([2]), "initial states"),
        ("initial", np.array([-1, 0]), "initial states"),
        ("initial", np.array([0, 2]), "initial states"),
        ("initial", np.array([1, 0]), "strictly increasing"),
        ("labels", {"goal": np.array([True])}, "one truth value per state"),
        ("labels", {"goal": np.array([0, 1])}, "one truth value per state"),
        ("valuations", {"x": np.array([0])}, "one integer per state"),
    ],
)
def test_what_does_not_hold_together_is_refused(field, value, message):
    with pytest.raises(ValueError, match=message):
        replace(GOOD, **{field: value})


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("choice_starts", [0, 2, 2, 4], "leave no state empty"),
        ("choice_starts", [0, 2, 3, 5], "number of choices"),
        ("choice_starts", [1, 2, 3, 4], "begin at 0"),
        ("choice_starts", [0], "begin at 0"),
        ("indptr", [0, 2, 2, 4, 5], "leave no row empty"),
        ("indices", [2, 1, 0, 1, 2], "increase strictly within a row"),
        ("initial", [3], "must be states"),
    ],
)
def test_choices_that_do_not_hold_together_are_refused(field, value, message):
    """State 0 has two choices (evens to 1 or 2; stay), 1 and 2 have one each (stay)."""
    rows = {"choice_starts": [0, 2, 3, 4], "indptr": [0, 2, 3, 4, 5], "indices": [1, 2, 0, 1, 2], "initial": [0, 2]}
    probabilities, labels = np.array([0.5, 0.5, 1.0, 1.0, 1.0]), {"goal": np.array([False, True, False])}
    process = DecisionProcess(**{k: np.array(v) for k, v in rows.items()}, probabilities=probabilities, labels=labels)
    assert (process.state_count, process.choice_count, process.transition_count) == (3, 4, 5)
    with pytest.raises(ValueError, match=message):
        replace(process, **{field: np.array(value)})


def test_a_chain_is_a_graph_of_networkx():
    graph = GOOD.graph()
    assert dict(graph.nodes(data=True)) == {
        0: {"labels": [], "initial": True, "x": 0},
        1: {"labels": ["goal"], "initial": False, "x": 7},
    }
    assert {(a, b): edge["probability"] for a, b, edge in graph.edges(data=True)} == {
        (0, 0): 0.25,
        (0, 1): 0.75,
        (1, 1): 1.0,
    }


def test_deliberate_rounding_is_the_one_exception_and_has_its_limit():
    rounded = np.array([0.2, 0.7, 1.0])
    assert replace(GOOD, probabilities=rounded, fractions=None, rounding_defect=0.11).state_count == 2
    with pytest.raises(ValueError, match="row 0 does not sum to 1"):
        replace(GOOD, probabilities=rounded, fractions=None, rounding_defect=0.09)


def test_the_limits_themselves_are_allowed():
    loop = MarkovChain(np.array([0, 1]), np.array([0]), np.array([1.0]), {}, np.array([0]))
    assert loop.state_count == 1
    # A sum that is off by exactly what it may be, 1/2 - 1e-12 and the tolerance of 1e-12; and by a little more.
    for least, fits in ((0.5, True), (0.5 - 2**-52, False)):
        changes = {"probabilities": np.array([least]), "rounding_defect": 0.5 - 1e-12}
        if fits:
            replace(loop, **changes)
        else:
            with pytest.raises(ValueError, match="does not sum to 1"):
                replace(loop, **changes)
