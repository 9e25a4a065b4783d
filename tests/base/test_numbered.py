"""Distinct codes, by a table and by sorting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.arrays import numbered, numbered_rows


@pytest.mark.parametrize("bound", [8, 2**62])
def test_by_hand(bound):
    codes, position = numbered(np.array([5, 2, 5, 7]), bound)
    assert codes.tolist() == [2, 5, 7]
    assert position.tolist() == [1, 0, 1, 2]


@given(st.lists(st.integers(0, 30)), st.sampled_from([31, 2**40]))
def test_positions_lead_back_to_the_codes(values, bound):
    codes, position = numbered(np.array(values, dtype=np.int64), bound)
    assert codes.tolist() == sorted(set(values))
    assert codes[position].tolist() == values


@given(st.lists(st.tuples(*[st.sampled_from([0, 1, 2, 5, 2**40])] * 5), min_size=1, max_size=20))
def test_rows_are_numbered_in_their_order(rows):
    # Five columns of so many codes would outgrow an integer if they were numbered at once.
    number, first = numbered_rows(np.array(rows, dtype=np.int64).T, len(rows))
    assert [sorted(set(rows)).index(row) for row in rows] == number.tolist()
    assert [rows.index(row) for row in sorted(set(rows))] == first.tolist()
