"""Steps of a chain by hand: what is gained in some, and when a goal is reached, in doubles and beyond doubt."""

import math
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from small_chains import chain_of

from verifier.base.errors import NoAnswerError
from verifier.checking import stepping
from verifier.checking.stepping import NEVER, Steps, _cyclic, _Masses, exact_quantiles, gained, quantiles

QUARTER, HALF = Fraction(1, 4), Fraction(1, 2)
WAIT = [{0: 3 * QUARTER, 1: QUARTER}, {1: 1}]  # not over after k steps with (3/4)^k
LOST = [{0: HALF, 1: QUARTER, 2: QUARTER}, {1: 1}, {2: 1}]  # over with 1/2 at last: lost is (1 - 2^-k)/2


def steps_of(rows, *others):
    """The chain of some rows, and of others with the same transitions, side by side."""
    chains = [chain_of(each) for each in (rows, *others)]
    values = np.stack([chain.probabilities for chain in chains], axis=1)
    return Steps(chains[0].indptr, chains[0].indices, values, np.arange(len(values)))


def exactly(rows, goal, level, value_error=2.0**-53, reach=None, exact=True, initial=(0,)):
    """The quantiles, or what was asked in vain."""
    chain = chain_of(rows, initial=initial)
    fractions = tuple(Fraction(row[target]) for row in rows for target in sorted(row))
    asked = []

    def surely():
        asked.append(reach)
        return reach

    mask = np.isin(np.arange(len(rows)), goal)
    found = exact_quantiles(
        chain, mask, level, value_error, surely, (lambda: replace(chain, fractions=fractions)) if exact else None
    )
    return (found.tolist(), len(asked)) if reach else found.tolist()


def test_a_step_of_one_chain_and_of_several():
    rows, others = [{0: 0.25, 1: 0.75}, {0: 1}], [{0: 0.5, 1: 0.5}, {0: 1}]
    assert steps_of(rows).of(np.array([[4.0], [8.0]])).tolist() == [[7], [4]]
    assert steps_of(rows, others).of(np.array([[4.0, 4.0], [8.0, 2.0]])).tolist() == [[7, 3], [4, 4]]
    # Two states with rows of three: the best of two in the first, and what it gains in one, two and three steps.
    several = Steps(np.array([0, 1, 2, 3]), np.array([0, 1, 1]), np.array([[1.0, 1.0]]), np.zeros(3, dtype=np.int64))
    gains = np.array([[1.0, 0.0], [3.0, 1.0]])
    for count, expected in ((0, [[0, 0], [0, 0]]), (1, gains.tolist()), (2, [[4, 1], [6, 2]]), (3, [[7, 2], [9, 3]])):
        made = gained(several, gains, count, lambda rows: np.stack([rows[:2].max(axis=0), rows[2]]))
        assert made.tolist() == expected
    assert gained(steps_of([{1: 1}, {1: 1}]), np.array([[2.0], [0.0]]), 10**9).tolist() == [[2], [0]]


def test_rounding_of_the_widest_row_in_one_step_more():
    rounding, moved = steps_of([{0: 0.5, 1: 0.25, 2: 0.25}, {1: 1}, {2: 1}]).error_after(9, 0.25)
    assert rounding == pytest.approx(1.01 * 10 * (3 * 3 + 6) * 2.0**-53, rel=1e-12, abs=0)
    assert moved == pytest.approx(math.exp(2.525) - 1, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("rows", "goal", "cyclic"),
    [
        (WAIT, [1], [True, False]),
        (LOST, [1], [True, False, False]),
        (LOST, [2], [True, False, False]),
        ([{1: 1}, {2: 1}, {2: 1}], [2], [False] * 3),
        ([{1: HALF, 2: HALF}, {1: HALF, 2: HALF}, {0: 1}], [2], [True, True, False]),
        ([{1: HALF, 3: HALF}, {0: 1}, {2: 1}, {3: 1}], [2], [False] * 4),  # the goal is not reached at all
        ([{1: 1}, {2: HALF, 3: HALF}, {1: 1}, {4: 1}, {4: 1}], [4], [True, True, True, False, False]),
    ],
)
def test_states_from_which_a_cycle_may_be_passed(rows, goal, cyclic):
    chain = chain_of(rows)
    assert _cyclic(chain.indptr, chain.indices, np.isin(np.arange(len(rows)), goal)).tolist() == cyclic


@pytest.mark.parametrize(
    ("level", "probability", "expected"),
    [
        # The goal, two steps to it, a wait for 1/2 or 1/4 in a step, and a state that loses half of what it has.
        (Fraction(3, 4), None, [[0, 2, 2, NEVER], [0, 2, 5, NEVER]]),
        (HALF, None, [[0, 2, 1, 1], [0, 2, 3, 1]]),
        (Fraction(1), None, [[0, 2, NEVER, NEVER]] * 2),
        (Fraction(9, 16), [1.0, 1, 1, 0.6], [[0, 2, 2, NEVER], [0, 2, 3, NEVER]]),  # what is left stays for ever
        (Fraction(3, 4), [1.0, 1, 0.75, 0.5], [[0, 2, NEVER, NEVER]] * 2),
        (Fraction(3, 4), [1.0, 0.75, 0.8, 0.5], [[0, 2, 2, NEVER], [0, 2, 5, NEVER]]),
        (Fraction(3, 4), [1.0, 0.7, 0.8, 0.5], [[0, NEVER, 2, NEVER], [0, NEVER, 5, NEVER]]),
    ],
)
def test_quantiles_of_several_chains(level, probability, expected):
    rows, others = (
        [{0: 1}, {5: 1}, {0: part, 2: 1 - part}, {0: HALF, 4: HALF}, {4: 1}, {0: 1}] for part in (HALF, QUARTER)
    )
    probability = np.array([probability or [1.0, 1, 1, 0.5]] * 2)
    goal = np.arange(6) == 0
    assert quantiles(steps_of(rows, others), goal, np.arange(4), level, probability).tolist() == expected
    if probability[0, 2] == 1:
        assert exactly(rows, [0], level, reach=[Fraction(1)] * 3 + [HALF], initial=range(4))[0] == expected[0]


@pytest.mark.parametrize(("most", "enough"), [(5, True), (4, False)])
def test_no_more_steps_than_the_limit(monkeypatch, most, enough):
    monkeypatch.setattr(stepping, "MOST_STEPS", most)
    level = 1 - Fraction(5, 17)  # between (3/4)^5 and (3/4)^4
    for ask in (
        lambda: exactly(WAIT, [1], level, initial=(0, 1)),
        lambda: quantiles(steps_of(WAIT), np.arange(2) == 1, np.arange(2), level, np.ones((1, 2))).tolist()[0],
    ):
        with nullcontext() if enough else pytest.raises(NoAnswerError, match="quantile lies behind 4 steps"):
            assert ask() == [5, 0]


@pytest.mark.parametrize(
    ("rest", "steps"),
    [(0.5799, 2), (0.5797, "2"), (0.5453, "3"), (0.5451, 3), (0.75 * 1.0205, 1), (0.75 * 1.0203, "1")],
)
def test_fractions_are_asked_only_where_the_doubles_may_be_wrong(rest, steps):
    # Probabilities off by 1/100: (3/4)^2 lies between 0.545195 and 0.579805, e^0.0303 - 1 of it to each side.
    if isinstance(steps, str):
        with pytest.raises(NoAnswerError, match="too close to its level to be told in doubles"):
            exactly(WAIT, [1], 1 - Fraction(rest), value_error=0.01, exact=False)
    exact = isinstance(steps, str)
    found, _ = exactly(WAIT, [1], 1 - Fraction(rest), value_error=0.01, reach=[Fraction(1)] * 2, exact=exact)
    assert found == [int(steps)]


def test_fractions_are_asked_at_the_very_ends_of_what_doubles_may_be():
    # Beyond the upper end two steps are enough, and below the lower one they are not.
    off, unit = sum(steps_of(WAIT).error_after(2, 2.0**-53)), Fraction(1, 2**200)
    high, low = (Fraction(9, 16) * Fraction(1 + side * off) for side in (1, -1))
    for rest, steps in (
        (high, [2]),
        (high - unit, None),
        (low, None),
        (low - unit, [3]),
        (Fraction(0.5625 + 1e-13), [2]),
    ):
        with nullcontext() if steps else pytest.raises(NoAnswerError, match="too close"):
            assert exactly(WAIT, [1], 1 - rest, exact=False) == steps


def test_levels_at_and_beside_what_is_reached(monkeypatch):
    # What is lost exceeds 1/4 after two steps: then it is known that 3/4 is never reached.
    for most, known in ((1, False), (2, True)):
        monkeypatch.setattr(stepping, "MOST_STEPS", most)
        with nullcontext() if known else pytest.raises(NoAnswerError):
            assert exactly(LOST, [1], Fraction(3, 4)) == [NEVER]
    monkeypatch.setattr(stepping, "MOST_STEPS", 100)
    reach = [HALF, Fraction(1), Fraction(0)]
    assert exactly(LOST, [1], HALF, reach=reach) == ([NEVER], 1)
    # (1 - 2^-k)/2 is reached: at 2^-60 less by 59 steps, and beyond the doubles of a half.
    assert exactly(LOST, [1], HALF - Fraction(1, 2**60), reach=reach) == ([59], 1)
    assert exactly(LOST, [1], HALF + Fraction(1, 2**60), reach=reach) == ([NEVER], 1)
    # Two states side by side, of which each waits; one reaches all, and the other half.
    both = [{0: HALF, 1: HALF}, {1: 1}, {1: QUARTER, 2: HALF, 3: QUARTER}, {3: 1}]
    assert exactly(both, [1], HALF, reach=[Fraction(1), HALF], initial=(0, 2)) == ([1, NEVER], 1)
    assert exactly(both, [1], Fraction(7, 8), initial=(0, 1, 2, 3)) == [3, 0, NEVER, NEVER]


def test_what_is_left_in_fractions_and_how_long_they_may_be():
    chain = chain_of(LOST)
    masses = _Masses(replace(chain, fractions=(HALF, QUARTER, QUARTER, 1, 1)), np.array([False, True, False]), 0)
    assert [masses.left_after(k) for k in (0, 1, 1, 3)] == [1, Fraction(3, 4), Fraction(3, 4), Fraction(9, 16)]
    assert _Masses(masses._chain, np.array([True, False, False]), 0).left_after(2) == 0
    lasting = replace(chain_of([{0: 1}]), fractions=(Fraction(1),))
    for bits, refused in ((10**8, False), (10**8 + 1, True)):
        masses = _Masses(lasting, np.array([False]), 0)
        masses._masses[0] = Fraction(1, 1 << (bits - 1))
        with pytest.raises(NoAnswerError, match="within the limits") if refused else nullcontext():
            assert masses.left_after(1).denominator.bit_length() == bits
