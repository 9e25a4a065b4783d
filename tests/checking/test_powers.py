"""Parts of counting steps, by hand: what it would take, and by how much the true probabilities may move a result."""

import numpy as np
import pytest
from small_chains import chain_of

from verifier.base.errors import NoAnswerError
from verifier.checking.powers import SubChain, _is_faster_squared, _Problem, _squared


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


def test_a_margin_for_the_digits_by_hand():
    # Half of the way on leads to 1, half stays: 3/4 after two steps. Each step moves it by 1/2: 1/2 + 1/4, as
    # 3/8 with the scale 1/2. Of that 2^-50 + 2^-64 are left out at most, and it is rounded by 16 units at most.
    half = chain_of([{0: 0.5, 1: 0.5}, {1: 1.0}])
    all_of_it = SubChain(half, np.arange(2), np.array([0, 0, 1]), half.indices, np.arange(3), np.zeros(2, dtype=bool))
    for ends in (0.0, 1.0):
        f = np.array([ends])
        problem = _Problem(all_of_it, np.arange(2), np.array([0, 0]), np.array([0, 1]), f, f, np.array([0.5]))
        (low,), (high,), (moved,) = _squared(problem, 2)
        exact, left_out = 0.75 + ends / 4, 2.0**-50 + 2.0**-64
        assert exact - 1.01 * left_out <= low <= exact - 0.99 * left_out
        assert min(exact + 0.99 * left_out, 1) <= high <= exact + 1.01 * left_out
        assert 2 * left_out + 0.75 * 2.0**-49 - 2.0**-53 <= moved - 0.75 <= 2 * left_out + 0.75 * 2.0**-49 + 2.0**-53
