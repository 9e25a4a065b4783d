"""Distinct codes, by a table and by sorting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.systems.reachability import distinct


@pytest.mark.parametrize("bound", [8, 2**62])
def test_by_hand(bound):
    codes, position = distinct(np.array([5, 2, 5, 7]), bound)
    assert codes.tolist() == [2, 5, 7]
    assert position.tolist() == [1, 0, 1, 2]


@given(st.lists(st.integers(0, 30)), st.sampled_from([31, 2**40]))
def test_positions_lead_back_to_the_codes(values, bound):
    codes, position = distinct(np.array(values, dtype=np.int64), bound)
    assert codes.tolist() == sorted(set(values))
    assert codes[position].tolist() == values
