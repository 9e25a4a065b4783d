"""Parts of counting steps, by hand: what it would take, and by how much the true probabilities may move a result."""

import numpy as np
import pytest
from small_chains import chain_of

from verifier.base.errors import NoAnswerError
from verifier.checking.powers import SubChain, _is_faster_squared, _Problem, _problem, _squared, _step_by_step


def sized(count, edges):
    """A problem of which only the size counts."""
    chain = SubChain(*(None,) * 6)
    none, ends = np.zeros(edges, dtype=np.int64), np.zeros(count)
    return _Problem(chain, none, none, none, ends, ends, ends)


@pytest.mark.parametrize(
    ("count", "edges", "steps", "seconds"),
    [
        # A step: 10^-5 s, and 2 * 10^-8 s for each of 6000 + 4000. Squared, 4002^3 * 28 * 20 * 2 * 10^-10: > 7000 s.
        (4000, 6000, 10**6, "2.1e+02"),
        # 100^3 products of digits, 7 * 8 / 2 of them that count, for each of 21 bits: 1.2 * 10^8 at 2 * 10^-10 s.
        (98, 1000, 2**20, "0.12"),
    ],
)
def test_the_faster_way_is_told_by_its_time(count, edges, steps, seconds):
    with pytest.raises(NoAnswerError, match=f"about {seconds} s; 0.1 s are left".replace("+", r"\+")):
        _is_faster_squared(sized(count, edges), steps, 0.1)
    assert _is_faster_squared(sized(count, edges), steps, None) is (count == 98)


def coin(ends, moved):
    """Half of the way on leads to 1, half stays: 1/2 + 1/4 after two steps, and 1/4 of what is at its end."""
    half = chain_of([{0: 0.5, 1: 0.5}, {1: 1.0}])
    all_of_it = SubChain(half, np.arange(2), np.array([0, 0, 1]), half.indices, np.arange(3), np.zeros(2, dtype=bool))
    f = np.array([ends])
    return _Problem(all_of_it, np.arange(2), np.array([0, 0]), np.array([0, 1]), f, f, np.array([moved]))


UNIT = 2.0**-53


def test_steps_one_by_one_are_widened_by_their_roundings():
    # 2 steps and 2 more, of 2 * 2 + 4 roundings each and 1 % more: 32.3 units, of 3/4. Each step moves it by 1/16.
    (low,), (high,), (moved,) = _step_by_step(coin(0.0, 1 / 16), 2, 2, 1.0)
    assert 24 * UNIT <= 0.75 - low <= 25 * UNIT
    assert 24 * UNIT <= high - 0.75 <= 25 * UNIT
    assert 0 <= moved - 1.5 / 16 <= 4 * UNIT
    assert _step_by_step(coin(0.0, 1 / 16), 2, 3, 0.2) is None


def test_what_is_left_once_it_is_negligible_may_be_all_or_nothing():
    # Of ten steps two are taken, with 1/4 left: 3/4 to 1. The others move it by 2/16 * (1/4 + 1/16 + ..) at most.
    (low,), (high,), (moved,) = _step_by_step(coin(0.0, 1 / 16), 2, 10, 0.25)
    assert (low, high) == pytest.approx((0.75, 1.0), abs=1e-14)
    assert moved == pytest.approx(1.5 / 16 + 2 / 16 / 3, rel=1e-12)


def test_how_far_a_row_may_be_moved_by_its_largest_entry():
    # An error of 1/16 for each: (2 * 1/4 + 4/16) / 15, and 1 / 15 at most.
    chain = chain_of([{0: 0.75, 1: 0.25}, {0: 0.5, 1: 0.5}, {2: 1.0}])
    whole = SubChain(chain, np.arange(3), np.repeat(np.arange(3), [2, 2, 1]), chain.indices, np.arange(5), None)
    found = _problem(whole, np.arange(2), np.array([False, False, True]), (np.zeros(3), np.ones(3)), 1 / 16)
    assert found.moved == pytest.approx([0.75 / 15, 1 / 15], rel=1e-15)


def test_a_margin_for_the_digits_by_hand():
    # Each step moves it by 1/2: 1/2 + 1/4, as
    # 3/8 with the scale 1/2. Of that 2^-50 + 2^-64 are left out at most, and it is rounded by 16 units at most.
    for ends in (0.0, 1.0):
        (low,), (high,), (moved,) = _squared(coin(ends, 0.5), 2)
        exact, left_out = 0.75 + ends / 4, 2.0**-50 + 2.0**-64
        assert exact - 1.01 * left_out <= low <= exact - 0.99 * left_out
        assert min(exact + 0.99 * left_out, 1) <= high <= exact + 1.01 * left_out
        assert 2 * left_out + 0.75 * 2.0**-49 - 2.0**-53 <= moved - 0.75 <= 2 * left_out + 0.75 * 2.0**-49 + 2.0**-53
