"""Choices of inputs that end where nothing is admissible, against the largest set that closes under its choices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import LimitError, UsageError
from verifier.systems.open_system import _choices, _without_dead_ends
from verifier.systems.reader import read_model


def kept(following):
    """{(state, choice)} that can be made for ever: states without one are taken away, one after the other."""
    alive = set(range(len(following)))
    while True:
        good = {
            (state, choice)
            for state in alive
            for choice, led in enumerate(following[state])
            if all(target in alive for target in led)  # -1, nothing admissible, is no state
        }
        left = {state for state, _ in good}
        if left == alive:
            return good
        alive = left


@st.composite
def moves(draw):
    """(n, choices, outcomes): where each leads, or -1."""
    count = draw(st.integers(1, 5))
    shape = count, draw(st.integers(1, 3)), draw(st.integers(1, 3))
    size = shape[0] * shape[1] * shape[2]
    led = draw(st.lists(st.sampled_from([-1, *range(count)]), min_size=size, max_size=size))
    return np.array(led, dtype=np.int64).reshape(shape)


@given(moves(), st.data())
def test_only_choices_that_lead_to_no_dead_end_are_left(following, data):
    good = kept(following.tolist())
    states = {state for state, _ in good}
    starts = np.array(data.draw(st.lists(st.integers(0, len(following) - 1), min_size=1, max_size=3)))
    if not set(starts.tolist()) <= states:
        with pytest.raises(UsageError, match="from some initial state every choice of inputs ends"):
            _without_dead_ends(following, starts)
        return
    left = _without_dead_ends(following, starts)
    for state, choice in np.ndindex(*following.shape[:2]):
        if (state, choice) in good:
            assert left[state, choice].tolist() == following[state, choice].tolist()
        else:
            assert left[state, choice].tolist() == [-1] * following.shape[2]


def test_an_outcome_that_leads_into_a_dead_end_closes_the_choice():
    following = np.array([[[1, 2], [0, 0]], [[-1, -1], [-1, -1]], [[2, 2], [0, 2]]])
    assert _without_dead_ends(following, np.array([0])).tolist() == [
        [[-1, -1], [0, 0]],
        [[-1, -1], [-1, -1]],
        [[2, 2], [0, 2]],
    ]
    with pytest.raises(UsageError, match="from some initial state every choice"):
        _without_dead_ends(following, np.array([0, 1]))


@pytest.mark.parametrize("most", [9_999, 10_000])
def test_ten_thousand_combinations_of_inputs_are_tried_and_no_more(most, tmp_path):
    model = tmp_path / "m.toml"
    model.write_text(f"""
initial = "x = 0"
[variables]
x = {{ range = [0, 1], next = "x" }}
[inputs]
push = {{ range = [0, {most}] }}
[environments]
nobody = [{{ class = "empty", distance_m = 3 }}]
[planners.p]
rules = [{{ set = {{ push = 0 }} }}]
""")
    system = read_model(model).instantiate()
    if most == 9_999:
        assert [choice["push"] for choice in _choices(system)] == list(range(10_000))
    else:
        with pytest.raises(LimitError, match="10001 combinations of inputs"):
            _choices(system)
