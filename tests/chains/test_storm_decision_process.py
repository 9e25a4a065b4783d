"""A decision process that exists is well-formed."""

from dataclasses import FrozenInstanceError, replace
from fractions import Fraction as Fr

import numpy as np
import pytest

from verifier.chains.chain import DecisionProcess


def ints(*values):
    return np.array(values, dtype=np.int64)


@pytest.fixture
def process():
    """State 0 has two choices (evens to 1 or 2; stay), 1 and 2 have one each (stay)."""
    return DecisionProcess(
        choice_starts=ints(0, 2, 3, 4),
        indptr=ints(0, 2, 3, 4, 5),
        indices=ints(1, 2, 0, 1, 2),
        probabilities=np.array([0.5, 0.5, 1.0, 1.0, 1.0]),
        labels={"goal": np.array([False, True, False])},
        initial=ints(0, 2),
        fractions=(Fr(1, 2), Fr(1, 2), Fr(1), Fr(1), Fr(1)),
        valuations={"x": ints(7, 8, 9)},
    )


def test_counts(process):
    assert (process.state_count, process.choice_count, process.transition_count) == (3, 4, 5)
    with pytest.raises(FrozenInstanceError):
        process.initial = ints(1)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("choice_starts", ints(0, 2, 2, 4), "leave no state empty"),
        ("choice_starts", ints(0, 2, 3, 5), "number of choices"),
        ("choice_starts", ints(1, 2, 3, 4), "begin at 0"),
        ("choice_starts", ints(0), "begin at 0"),
        ("indptr", ints(0, 2, 3, 4, 4), "number of transitions"),
        ("indptr", ints(0, 2, 2, 4, 5), "leave no row empty"),
        ("indices", ints(1, 2, 0, 1, 3), "a successor that is a state"),
        ("indices", ints(1, 2, -1, 1, 2), "a successor that is a state"),
        ("indices", ints(2, 1, 0, 1, 2), "increase strictly within a row"),
        ("indices", ints(1, 1, 0, 1, 2), "increase strictly within a row"),
        ("probabilities", np.array([0.5, 0.5, 1.0, 1.0]), "one probability"),
        ("probabilities", np.array([0.5, 0.5, 1.0, 1.0, 0.9]), "row 3 does not sum to 1"),
        ("probabilities", np.array([1.5, -0.5, 1.0, 1.0, 1.0]), "above 0"),
        ("probabilities", np.array([0.5, 0.5, 1.0, 1.0, np.nan]), "above 0"),
        ("fractions", (Fr(1, 2), Fr(1, 3), Fr(1), Fr(1), Fr(1)), "row 0 does not sum to exactly 1"),
        ("fractions", (Fr(1, 2), Fr(1, 2), Fr(1), Fr(1)), "one fraction"),
        ("labels", {"goal": np.array([False, True])}, "one truth value per state"),
        ("labels", {"goal": ints(0, 1, 0)}, "one truth value per state"),
        ("initial", ints(), "there must be one"),
        ("initial", ints(3), "must be states"),
        ("initial", ints(2, 0), "increasing order"),
        ("initial", ints(0, 0), "increasing order"),
        ("valuations", {"x": ints(1, 2)}, "one integer per state"),
        ("valuations", {"x": np.array([1.0, 2.0, 3.0])}, "one integer per state"),
    ],
)
def test_what_does_not_hold_together_is_refused(process, field, value, message):
    with pytest.raises(ValueError, match=message):
        replace(process, **{field: value})
