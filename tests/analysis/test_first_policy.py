"""The policy to begin with, by hand: from where all is decided back, and circles after some rounds."""

import numpy as np
import pytest

from verifier.analysis.robust import policy as module
from verifier.analysis.robust.policy import first_policy


def policy_of(goal, *alternatives):
    """For each state its alternatives, each as target -> weight, with the goal as a set of states."""
    first = np.cumsum([0, *map(len, alternatives)])
    ways = [way for own in alternatives for way in own]
    behind = np.repeat(np.arange(len(ways)), [len(way) for way in ways])
    targets = np.array([state for way in ways for state in way], dtype=np.int64)
    weights = np.array([weight for way in ways for weight in way.values()], dtype=np.float64)
    met = np.isin(np.arange(len(alternatives)), sorted(goal))
    chosen = first_policy(first, behind, targets, weights, met)
    assert all(low <= own < high for own, low, high in zip(chosen, first[:-1], first[1:], strict=True))
    return (chosen - first[:-1]).tolist()


STAY = [{0: 1.0}], [{1: 1.0}]
"""State 0 is lost, state 1 is the goal."""


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        # 3/4 beats 1/4 and 1/2, wherever it stands; of equal ones the first is taken.
        ([[{0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}, {0: 0.5, 1: 0.5}]], [1]),
        ([[{0: 0.5, 1: 0.5}, {0: 1.0}, {0: 0.25, 1: 0.75}]], [2]),
        ([[{0: 0.5, 1: 0.5}, {0: 1.0}]], [0]),
        ([[{0: 0.5, 1: 0.5}, {1: 0.5, 0: 0.5}]], [0]),
        # What a state is worth is known when those before it are looked at: 2 is worth 3/4, 3 is worth 1/2.
        ([[{0: 0.25, 1: 0.75}], [{0: 0.5, 1: 0.5}], [{3: 1.0}, {2: 1.0}, {0: 0.375, 1: 0.625}]], [0, 0, 1]),
        # The same with the states the other way round.
        ([[{4: 1.0}, {3: 1.0}, {0: 0.375, 1: 0.625}], [{0: 0.25, 1: 0.75}], [{0: 0.5, 1: 0.5}]], [1, 0, 0]),
        # A circle is looked at again: 2 hears from 3 in the second round that it is worth 3/4, more than 5/8.
        ([[{0: 0.375, 1: 0.625}, {3: 1.0}], [{0: 0.25, 1: 0.75}, {2: 1.0}]], [1, 0]),
        # So it is where a state without a circle is looked at together with it.
        ([[{0: 0.375, 1: 0.625}, {3: 1.0}], [{0: 0.25, 1: 0.75}, {2: 1.0}], [{1: 1.0}]], [1, 0, 0]),
        # The circle's value is not that of its first rounds: 2 comes back to itself until it has won.
        ([[{0: 0.25, 1: 0.75}, {2: 0.75, 1: 0.25}]], [1]),
        # Two circles beside each other; of equal ones in a circle that which wins, not that which goes on.
        ([[{3: 1.0}], [{2: 1.0}, {0: 0.5, 1: 0.5}], [{5: 1.0}, {0: 1.0}], [{0: 0.5, 1: 0.5}, {4: 1.0}]],
         [0, 1, 0, 0]),
    ],
)  # fmt: skip
def test_the_best_alternative_is_taken(states, expected):
    assert policy_of({1}, *STAY, *states) == [0, 0, *expected]


def test_a_state_of_the_goal_keeps_its_first_alternative():
    assert policy_of({1, 2}, *STAY, [{0: 1.0}, {1: 1.0}], [{0: 1.0}, {2: 1.0}]) == [0, 0, 0, 1]
    assert policy_of({0, 1}, *STAY) == [0, 0]


def test_a_state_without_transitions_keeps_its_alternative():
    assert policy_of({1}, *STAY, [{}], [{2: 1.0}, {1: 1.0}]) == [0, 0, 0, 1]


def test_rounds_and_levels_are_limited(monkeypatch):
    """After one round 3/4 in sight is more than the 1/4 of what comes back; and a deep graph is left as it is.

    A transition of weight 0 leads nowhere, so it makes no circle: what it leads from is looked at in its turn.
    """
    circle, broken = [{0: 0.25, 1: 0.75}, {2: 0.75, 1: 0.25}], ([{0: 1.0}, {3: 1.0}], [{1: 1.0, 2: 0.0}])
    deep = [{0: 1.0}, {1: 1.0}], [{0: 1.0}, {2: 1.0}]
    assert policy_of({1}, *STAY, *deep) == [0, 0, 1, 1]
    monkeypatch.setattr(module, "MOST_ROUNDS", 1)
    assert policy_of({1}, *STAY, circle) == [0, 0, 0]
    assert policy_of({1}, *STAY, *broken) == [0, 0, 1, 0]
    monkeypatch.setattr(module, "MOST_LEVELS", 1)
    assert policy_of({1}, *STAY, *deep) == [0, 0, 0, 0]
