"""What is left of a system while the world does what gives it an optimum, by hand."""

from fractions import Fraction

import numpy as np
import pytest
from deciding_objectives import LABELS, Deciding
from small_objectives import channel_of

from verifier.analysis.robust import world_strategy as module
from verifier.analysis.robust.world_strategy import kept_strategy, world_strategy
from verifier.chains.chain import MarkovChain

F = Fraction
ON_THE_WAY, BACK, GOAL, LOST = 1, 0, 2, 3
ROUNDING = 2.0**-50


def world_of(*ways, starts=(0, 1)):
    """States 2 and 3 have ended, the first with p; each way by its state and where nothing, a and b lead to. Nothing
    is reported with 1/2, a and b with 1/4 each, in state 0, from the column of a; in state 1 b never is."""
    world = Deciding(np.random.default_rng(0))
    rows = [*ways, (GOAL, [GOAL] * 3), (LOST, [LOST] * 3)]
    world.owner = np.array([state for state, _ in rows])
    world.following = np.array([led for _, led in rows])
    world.channel = channel_of(LABELS, [[0], [0]], [[2], [1]], [frozenset(label) for label in LABELS])
    world.over, world.row = world.owner >= 2, 1 - world.owner % 2
    world.true_in, world.states, world.starts = {"p": [GOAL]}, 4, np.array(starts)
    rates = np.zeros((1, 3, 3))
    rates[0, 0] = 1
    rates[0, :, 1], rates[0, :, 2] = [0.5, 0.25, 0.25], [0.25, 0.75, 0]
    return world, rates


WAYS = (
    (0, [GOAL, ON_THE_WAY, LOST]),  # choice 0
    (0, [ON_THE_WAY] * 3),
    (0, [0] * 3),
    (1, [BACK] * 3),  # choice 3
    (1, [GOAL, LOST, LOST]),
    (1, [LOST, LOST, GOAL]),
)


def rows_of(chain):
    for low, high in zip(chain.indptr, chain.indptr[1:], strict=False):
        yield dict(zip(chain.indices[low:high].tolist(), chain.probabilities[low:high].tolist(), strict=True))


@pytest.mark.parametrize(
    ("ways", "greatest", "start", "value", "expected"),
    [
        # v0 = 1/2 + v1 / 4 and v1 = v0, which beats 1/2: 0 is visited 1 / (1 - 1/4) times.
        (WAYS, True, 0, [2 / 3, 2 / 3], {0: ((0,), {1: 0.25, 2: 0.5, 3: 0.25}, 4 / 3, 3), 1: ((3,), {0: 1}, 1 / 3, 3),
                   2: ((6,), {2: 1}, 0, 1), 3: ((7,), {3: 1}, 0, 1)}),
        (WAYS, True, 1, [2 / 3, 2 / 3], {0: ((0,), {1: 0.25, 2: 0.5, 3: 0.25}, 4 / 3, 3), 1: ((3,), {0: 1}, 4 / 3, 3),
                   2: ((6,), {2: 1}, 0, 1), 3: ((7,), {3: 1}, 0, 1)}),
        # Two ways of staying in 0, each as often.
        (WAYS, False, 0, [0, 0], {0: ((1, 2), {0: 0.5, 1: 0.5}, np.inf, 3), 1: ((3,), {0: 1}, np.inf, 3)}),
        # In 1 nothing is reported with 1/4, and b never is.
        ([WAYS[0], WAYS[4]], True, 0, [9 / 16, 1 / 4], {
            0: ((0,), {1: 0.25, 2: 0.5, 3: 0.25}, 1, 1), 1: ((1,), {2: 0.25, 3: 0.75}, 1 / 4, 1),
            2: ((2,), {2: 1}, 0, 1), 3: ((3,), {3: 1}, 0, 1)}),
        ([WAYS[0], (1, [GOAL, GOAL, LOST])], True, 1, [3 / 4, 1], {
            1: ((1,), {2: 1}, 1, 1), 2: ((2,), {2: 1}, 0, 1)}),
    ],
)  # fmt: skip
def test_a_strategy_by_hand(ways, greatest, start, value, expected):
    """Of each state the choices, where they lead, visits and options."""
    world, rates = world_of(*ways)
    optimum = world.optimum("F p", greatest)
    bracket = optimum.bracket(rates, ROUNDING)
    assert bracket.value == pytest.approx(value, abs=1e-12)
    found = world_strategy(world.choices, optimum, bracket, rates, world.labels, start)
    state, visits = found.state.tolist(), found.visits.tolist()
    rows = [{state[place]: weight for place, weight in row.items()} for row in rows_of(found.chain)]
    told = dict(zip(state, zip(found.choices, rows, visits, found.options.tolist(), strict=True), strict=True))
    assert {k: (*row[:2], pytest.approx(row[2]), row[3]) for k, row in expected.items()} == told
    assert found.chain.initial.tolist() == [state.index(start)]
    assert found.chain.labels["p"].tolist() == [k == GOAL for k in state]
    assert found.chain.valuations["s"].tolist() == state


def test_a_formula_that_is_decided_at_once_leaves_the_system():
    """Nothing is to be chosen: the first choice of each state is taken."""
    world, rates = world_of(*WAYS, starts=(2, 0, 1))
    optimum = world.optimum("p | X p", True)
    kept = kept_strategy(world.choices, optimum, optimum.bracket(rates, ROUNDING))
    # From 0 the best is to look for p at once, with 1/2; what comes then is of no account, and so from 1.
    starts = kept.skeleton.starts
    assert [kept.state[k] for k in starts] == [2, 0, 1]
    assert [kept.choices[k] for k in starts] == [(6,), (0,), (4,)]
    assert [kept.decided[k] for k in starts] == [True, False, False]
    first = {0: 0, 1: 3, 2: 6, 3: 7}
    for place, state in enumerate(kept.state.tolist()):
        if kept.decided[place]:
            assert (kept.choices[place], kept.options[place], kept.won[place]) == ((first[state],), 1, True)
    assert kept.skeleton.valuations["s"].tolist() == kept.state.tolist()
    assert kept.skeleton.terminal.tolist() == [state >= 2 for state in kept.state.tolist()]


def test_what_is_decided_is_told_apart():
    """p lies in 1, from where the first choice leads back to 0, which is not as it was."""
    world, rates = world_of(*WAYS, starts=(0,))
    world.true_in["p"] = [ON_THE_WAY]
    optimum = world.optimum("F p", True)
    kept = kept_strategy(world.choices, optimum, optimum.bracket(rates, ROUNDING))
    assert sorted(zip(kept.state.tolist(), kept.decided.tolist(), strict=True)) == [
        (0, False), (0, True), (1, True), (2, True), (3, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("over", "initial", "expected"),
    [
        ([2], 0, [F(8, 7), F(4, 7), 0, 0]),  # n0 = 1 + n1 / 4 and n1 = n0 / 2
        ([2], 1, [F(2, 7), F(8, 7), 0, 0]),
        ([2], 2, [0, 0, 0, 0]),
        ([2], 3, [0, 0, 0, 0]),
        ([1, 2], 0, [1, 0, 0, 0]),
        ([3], 0, [F(8, 7), F(4, 7), 0, 0]),
        ([], 0, [0, 0, 0, 0]),
    ],
)
def test_visits_before_all_is_over(over, initial, expected):
    chain = MarkovChain(
        np.array([0, 2, 4, 5, 6]), np.array([1, 2, 0, 3, 2, 3]), np.array([0.5, 0.5, 0.25, 0.75, 1, 1]),
        {}, np.array([initial]),
    )  # fmt: skip
    assert module._visits(chain, np.isin(np.arange(4), over)) == pytest.approx(
        [float(n) for n in expected], abs=1e-15
    )


def test_ways_that_are_taken_each_as_often_are_one_more_draw():
    """Rows of 1/3 and 2/3, and of 0 and 1: of two ways each outcome is half as likely, of one it is as it was, and of
    three ways of the first row a third; a place without a way is not drawn."""
    channel = channel_of(LABELS[:2], [[0], [0]], [[1], [1]])
    moving = channel.moved_by(np.array([[F(1, 3), F(2, 3)], [0, 1]], dtype=object))
    target = np.arange(24).reshape(6, 4)  # of two observations with two outcomes
    following, mixed, rows = module._mixed(
        [np.array([0, 1]), np.array([2]), np.array([3, 4, 5])], target, np.array([0, 1, 1, 0, 0, 0]), moving
    )
    assert rows.tolist() == [0, 1, 2]
    assert mixed.chances(np.dtype(object)).tolist() == [
        [F(1, 6), 0, 0, F(1, 3), F(1, 2), 0], [0, 0, 0, 1, 0, 0], [F(1, 9)] * 3 + [F(2, 9)] * 3,
    ]  # fmt: skip
    assert following.tolist() == [
        [0, 4, 0, 1, 5, 1, 2, 6, 2, 3, 7, 3],
        [8, 8, 8, 9, 9, 9, 10, 10, 10, 11, 11, 11],
        [12, 16, 20, 13, 17, 21, 14, 18, 22, 15, 19, 23],
    ]
    for alone in ([np.array([1]), np.array([3])],):
        following, same, rows = module._mixed(alone, target, np.array([0, 1, 1, 0, 0, 0]), moving)
        assert (following.tolist(), same, rows.tolist()) == ([[4, 5, 6, 7], [12, 13, 14, 15]], moving, [1, 0])
