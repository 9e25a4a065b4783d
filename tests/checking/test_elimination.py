"""Which eliminations stayed clear of underflow, by hand, and what they solve."""

import numpy as np
import pytest

from verifier.checking.elimination import SAFE, Band, eliminate

EVERY = np.array([[i, j] for i in range(3) for j in range(3) if i != j]).T


def solved_on_array(inside, exits, right):
    """Solutions, and whether no number came below `SAFE`."""
    found, safe = eliminate(np.concatenate([exits[:, None], right[:, None], inside], axis=1)[:, :, None], 1)
    return found[:, 0, 0], bool(safe[0])


def solved_in_band(inside, exits, right):
    band = Band(np.arange(3), 2)
    beside = np.stack([exits, right], axis=1)[:, :, None]
    found, safe = band.eliminate(*EVERY, inside[*EVERY][:, None], beside)
    return found[:, 0, 0], bool(safe[0])


@pytest.mark.parametrize("solved", [solved_on_array, solved_in_band])
@pytest.mark.parametrize(
    ("back", "entering", "exit_and_right", "safe"),
    [
        (2.0**-469, (1, 2.0**-500), (1, 1), True),  # just `SAFE`
        (2.0**-470, (1, 2.0**-500), (1, 1), False),
        (2.0**-470, (2.0**-500, 1), (1, 1), False),
        (2.0**-480, (1, 1), (1, 1), True),
        (2.0**-480, (0, 1), (1, 1), True),  # nothing enters from state 0
        (0, (1, 2.0**-900), (1, 1), True),  # nothing leads back
        (1, (1, 1), (1, 2.0**-980), False),
        (1, (1, 1), (2.0**-980, 1), False),
        (1, (1, 1), (1, 0), True),
        (1, (1, 1), (0, 1), True),
    ],
)
def test_the_least_product_of_what_enters_and_what_leads_on_is_safe(solved, back, entering, exit_and_right, safe):
    # State 2 goes first: it leads back to state 0 with `back`, and states 0 and 1 enter it with `entering`. States 0
    # and 1 lead to each other with 1, and out with 1.
    inside = np.array([[0, 1, entering[0]], [1, 0, entering[1]], [back, 0, 0]], dtype=float)
    exits, right = np.array([1.0, 1.0, exit_and_right[0]]), np.array([1.0, 2.0, exit_and_right[1]])
    found, clear = solved(inside.copy(), exits.copy(), right.copy())
    assert SAFE == 2.0**-969
    assert clear == safe
    if safe:
        expected = np.linalg.solve(np.diag(exits + inside.sum(axis=1)) - inside, right)
        assert found == pytest.approx(expected, rel=1e-12)
