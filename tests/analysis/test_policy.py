"""Policy iteration on small systems that are solved by hand, in fractions."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from verifier.analysis.robust import policy as module
from verifier.analysis.robust.policy import PolicySearch, make_nodes
from verifier.analysis.robust.region import Told
from verifier.analysis.robust.step import UncertainStep
from verifier.base.errors import EngineError

F = Fraction
BILLION = 10**9
LOST, GOAL = (0, 0, 0, 1), (1, 1, 1, 1)
"""Rows (state, where the first report leads, where the second does, least rate, greatest rate of the first)."""


def step_of(*rows):
    """One draw of two reports in each row; before it nothing was reported."""
    rows = [(state, one, other, F(low), F(high)) for state, one, other, low, high in rows]
    zero = np.zeros((len(rows), 1), dtype=np.int64)
    one = np.array([[[0, 1]]])
    told = Told(np.array([0, 1]), zero, one, np.array([[1]]), np.array([[1, 2], [-1, -1], [-1, -1]]))
    ends = np.array([[[low, 1 - high], [high, 1 - low]] for *_, low, high in rows]) * BILLION
    return UncertainStep(
        following=np.array([[one, one, other] for _, one, other, *_ in rows]),
        motion=np.ones((len(rows), 1)),
        columns=np.arange(len(rows))[:, None],
        lower=ends[:, 0].astype(np.int64),
        upper=ends[:, 1].astype(np.int64),
        told=told,
        kind=zero,
        before=((0,),),
        owner=np.array([state for state, *_ in rows]),
    )


def search_of(rows, together=(), guide=None):
    """A search over the states behind the first two, some of which are one node."""
    step = step_of((0, *LOST), (1, *GOAL), *rows)
    component = np.full(step.state_count, -1)
    component[list(together)] = 0
    nodes = make_nodes(step, component)
    return PolicySearch(step, nodes, np.arange(2, step.state_count), guide), step, nodes


def goal_of(step):
    return (np.arange(step.state_count) == 1).astype(float)


Q = F(1, 4)
DOWN = [(2, 0, 1, Q, F(1, 2)), (3, 2, 1, F(1, 2), F(3, 4))]
"""No run comes back: x2 = 3/4, x3 = x2 / 2 + 1/2 = 7/8."""
UP = [(2, 1, 3, Q, F(1, 2)), (3, 1, 0, Q, F(1, 2))]
"""x3 = 1/2, x2 = 1/2 + x3 / 2 = 3/4."""
ROUND = [(2, 1, 3, Q, F(1, 2)), (3, 0, 2, Q, F(1, 2))]
"""x2 = 1/2 + x3 / 2 = 4/5, x3 = 3/4 x2 = 3/5."""
CHOICE = [(2, 0, 1, F(2, 5), 1), (2, 0, 1, Q, 1), (2, 0, 1, F(1, 2), 1), (3, 0, 2, F(1, 2), 1), (3, 0, 2, F(1, 5), 1)]
"""Of three alternatives the second, then the second of two: x2 = 3/4, x3 = 4/5 x2 = 3/5."""
FIXED = [(2, 2, 1, Q, Q), (3, 0, 2, F(1, 2), F(1, 2)), (4, 3, 2, F(1, 2), F(1, 2))]
"""Nothing is to be chosen: x2 = 1, as it leads back until it leads to 1, x3 = 1/2, x4 = 3/4."""
BY_AND_BY = [(2, 0, 1, Q, Q), (3, 0, 1, F(3, 8), F(3, 8)), (3, 4, 4, 0, 1), (4, 0, 1, Q, F(3, 4))]
"""Once 4 has its 3/4, 3 is led there, while 2 has what it had."""
LOOP = [(2, 2, 1, 0, 1)]
"""To come back to where one is decides nothing: the best guess must not be to stay."""
STAYING = [*ROUND, (4, 5, 2, F(1, 2), 1), (5, 4, 1, F(3, 4), 1)]
"""4 and 5 can be stayed in for ever, so they are left for what is best, however seldom that can be: x4 = x5 = 1."""
STAYING_LESS = [*ROUND, (4, 5, 2, F(1, 2), 1), (5, 4, 3, 0, 1)]
"""The same for the 4/5 of 2, which 4 leads to with 1/2 at most, and not for the 3/5 of 3."""


@pytest.mark.parametrize(
    ("rows", "together", "cost", "expected"),
    [
        (DOWN, (), 0, [F(3, 4), F(7, 8)]),
        (UP, (), 0, [F(3, 4), F(1, 2)]),
        (ROUND, (), 0, [F(4, 5), F(3, 5)]),
        (CHOICE, (), 0, [F(3, 4), F(3, 5)]),
        (FIXED, (), 0, [1, F(1, 2), F(3, 4)]),
        ([(2, 1, 0, F(1, BILLION), F(3, BILLION))], (), 0, [F(3, BILLION)]),
        (BY_AND_BY, (), 0, [F(3, 4), F(3, 4), F(3, 4)]),
        (LOOP, (), 0, [1]),
        (STAYING, (4, 5), 0, [F(4, 5), F(3, 5), 1, 1]),
        (STAYING_LESS, (4, 5), 0, [F(4, 5), F(3, 5), F(4, 5), F(4, 5)]),
        # With costs: x3 = 1/2 + 1/16, x2 = 1/2 + x3 / 2 + 1/16; and what reaches 1 has the value 1.
        (UP, (), F(1, 16), [F(27, 32), F(9, 16)]),
        (DOWN, (), F(1, 16), [F(13, 16), F(31, 32)]),
        (DOWN, (), F(1, 8), [F(7, 8), 1]),
        # x2 = 5/8 + x3 / 2 = 11/10, held at 1, with x3 = 3/4 x2 + 1/8 of before: enough, and no choice is better.
        (ROUND, (), F(1, 8), [1, F(19, 20)]),
        # x2 = 33/64 + x3 / 2, x3 = 3/4 x2 + 1/64.
        (ROUND, (), F(1, 64), [F(67, 80), F(103, 160)]),
        (STAYING_LESS, (4, 5), F(1, 64), [F(67, 80), F(103, 160), F(273, 320), F(273, 320)]),
    ],
)
@pytest.mark.parametrize("guided", [False, True])
def test_values_are_those_of_the_best_choices(rows, together, cost, expected, guided):
    plain, step, _ = search_of(rows, together)
    guide = None
    if guided:
        guide = plain.optimum(goal_of(step), np.zeros(step.state_count))
        plain = search_of(rows, together, guide)[0]
    value = plain.optimum(goal_of(step), np.full(step.state_count, float(cost)))
    assert value == pytest.approx(np.array([0, 1, *expected], dtype=float), abs=1e-14, rel=1e-13)
    if rows is FIXED or (guided and not (together or cost)):
        assert plain.iterations == 1
    assert plain.iterations <= 6
    # What stands for the unknown states before is not read.
    again = search_of(rows, together, guide)[0].optimum(
        np.minimum(goal_of(step) + np.arange(step.state_count), 1), np.full(step.state_count, float(cost))
    )
    assert again == pytest.approx(value, abs=1e-14)


@pytest.mark.parametrize(
    ("rows", "starts", "steps", "burden"),
    [
        # With costs of 1/64: b2 = c, b3 = c + b2 / 2 and so on.
        (DOWN, [3], [F(1, 2), 1], F(3, 2)),
        (UP, [2], [1, F(1, 2)], F(3, 2)),
        (UP, [2, 3], [F(1, 2), F(3, 4)], F(3, 2)),
        (ROUND, [2], [F(8, 5), F(4, 5)], F(14, 5)),
        (ROUND, [1, 3], [F(3, 5), F(4, 5)], F(14, 5)),
        (ROUND, [0, 1], [0, 0], F(14, 5)),
        (CHOICE, [3], [0, F(4, 5), 0, 0, 1], F(9, 5)),
        (STAYING_LESS, [4], [F(8, 5), F(4, 5), 2, 0], F(17, 5)),
    ],
)
def test_steps_and_costs_of_the_best_policy(rows, starts, steps, burden):
    """Expected visits of each row: of 2 in `ROUND`, n2 = 1 + 3/4 n3 and n3 = n2 / 2; 4 is left with 1/2 a step."""
    search, step, _ = search_of(rows, (4, 5) if rows is STAYING_LESS else ())
    value = search.optimum(goal_of(step), np.zeros(step.state_count))
    found = search.steps_from(np.array(starts))
    assert found == pytest.approx(np.array([0, 0, *steps], dtype=float), abs=1e-14)
    cost = np.full(step.state_count, 1 / 64)
    assert search.burden(cost, value) == pytest.approx(float(burden / 64), abs=1e-14)


def test_the_burden_of_what_has_reached_1_is_what_it_lacked():
    """2 has 4/5 without costs, 1 with them: b2 = 1/5, b3 = 1/8 + 3/4 b2."""
    search, step, _ = search_of(ROUND)
    value = search.optimum(goal_of(step), np.zeros(step.state_count))
    cost = np.full(step.state_count, 1 / 8)
    search.optimum(value, cost)
    assert search.burden(cost, value) == pytest.approx(11 / 40, abs=1e-14)
    assert search.steps_from(np.array([3])) == pytest.approx([0, 0, 6 / 5, 8 / 5], abs=1e-14)  # of no costs again


def test_all_that_has_reached_1_is_taken_out_of_the_equations():
    """x2 = 1 + x3 / 2 and x3 = 3/4 x2 + 1/2, held at 1: they lacked 1/5 and 2/5. If 2 alone pays, so they do, too."""
    for cost in ([0, 0, 1 / 2, 1 / 2], [0, 0, 1 / 2, 0]):
        search, step, _ = search_of(ROUND)
        value = search.optimum(goal_of(step), np.zeros(4))
        assert search.optimum(value, np.array(cost)).tolist() == [0, 1, 1, 1]
        assert search.burden(np.array(cost), value) == pytest.approx(2 / 5, abs=1e-14)


def test_what_is_held_at_1_is_worth_no_more_for_others():
    """2 would have 9/8 when the better choice of 3 is taken up: x3 = 1/2 + 1/8."""
    search, step, _ = search_of([(2, 1, 1, 0, 1), (3, 2, 0, Q, F(1, 2))])
    assert search.optimum(goal_of(step), np.full(4, 1 / 8)) == pytest.approx([0, 1, 1, 5 / 8])


def test_choices_are_looked_at_again_once_a_value_is_held_at_1():
    """As long as 2 has 9/8, 3 is better led to 4, which has half of it; then 13/20 at once are better than 5/8."""
    once = F(7, 20)
    search, step, _ = search_of(
        [(2, 1, 1, 0, 1), (3, 0, 1, once, once), (3, 4, 4, 0, 1), (4, 2, 0, F(1, 2), F(1, 2))]
    )
    assert search.optimum(goal_of(step), np.full(5, 1 / 8)) == pytest.approx([0, 1, 1, 31 / 40, 5 / 8])


@pytest.mark.parametrize(
    ("many", "roughly", "expected"),
    [(2, [True], [F(8, 13), F(5, 13)]), (2, [], [F(4, 5), F(3, 5)]), (3, [True], [F(4, 5), F(3, 5)])],
)
def test_large_problems_may_be_solved_roughly(many, roughly, expected, monkeypatch):
    """Where no gain is enough, the first policy is kept: x2 = 3/8 + 5/8 x3 and x3 = 5/8 x2."""
    monkeypatch.setattr(module, "_MANY", many)
    monkeypatch.setattr(module, "_ROUGH", 2.0**10)
    search, step, _ = search_of(ROUND)
    value = search.optimum(goal_of(step), np.zeros(4), *roughly)
    assert value[2:] == pytest.approx(np.array(expected, dtype=float), abs=1e-14)


def test_nothing_is_sought_where_all_is_known():
    step = step_of((0, *LOST), (1, *GOAL))
    search = PolicySearch(step, make_nodes(step, np.full(2, -1)), np.arange(0))
    value = search.optimum(goal_of(step), np.zeros(2))
    assert (value.tolist(), search.iterations, search.burden(np.ones(2), value)) == ([0, 1], 0, 0)
    assert search.steps_from(np.arange(2)).tolist() == [0, 0]


def test_nodes_are_ranked_so_that_moves_go_one_way():
    """A move that no choice makes does not count: 3 never leads to 2."""
    _, _, nodes = search_of([(2, 3, 1, Q, F(1, 2)), (3, 2, 0, 0, 0), (4, 5, 3, 0, 1), (5, 4, 4, 0, 1)], (4, 5))
    assert nodes.of.tolist() == [0, 1, 2, 3, 4, 4]
    assert nodes.component.tolist() == [False] * 4 + [True] * 2
    moves = sorted({*zip(nodes.sources.tolist(), nodes.targets.tolist(), strict=True)})
    assert moves == [(0, 0), (1, 1), (2, 1), (2, 3), (3, 0), (4, 3), (4, 5), (5, 4)]
    assert sorted(nodes.order.tolist()) == [*range(6)]
    ahead = {(s, t) for s, t in moves if nodes.of[s] != nodes.of[t] and nodes.order[s] > nodes.order[t]}
    assert ahead in ({(2, 1), (2, 3), (3, 0), (4, 3)}, set())


def test_a_search_goes_on_where_it_stopped(monkeypatch):
    """An earlier factorisation is corrected where few nodes were switched since, to the same values."""
    rng = np.random.default_rng(5)
    size = 60
    rows = [
        (s, int(rng.integers(size)), int(rng.integers(2)), F(int(rng.integers(1, 3)), 8), F(7, 8))
        for s in range(2, size)
    ]
    rows += [(s, int(rng.integers(size)), int(rng.integers(2)), Q, F(1, 2)) for s in range(2, size)]
    rows.sort(key=lambda row: row[0])
    search, step, nodes = search_of(rows)
    values = search.optimum(goal_of(step), np.zeros(size))
    factorised, solver = [], module.splu
    monkeypatch.setattr(module, "splu", lambda *a, **k: (factorised.append(1), solver(*a, **k))[1])
    monkeypatch.setattr(module, "_FEW", 0.0)
    other = PolicySearch(step, nodes, np.arange(2, size))
    assert other.optimum(goal_of(step), np.zeros(size)) == pytest.approx(values, abs=1e-13)
    assert len(factorised) == other.iterations
    # Against value iteration from below.
    below = goal_of(step)
    for _ in range(2000):
        best = np.zeros(size)
        np.maximum.at(best, step.owner, step.greatest(below[step.following])[0])
        below = best
    assert values == pytest.approx(below, abs=1e-12)


@pytest.mark.parametrize(("before", "excess", "more"), [(8, 2, 0.5), (4, 2, 1), (6, 3, np.log(3) / np.log(2))])
def test_corrections_still_to_do(before, excess, more):
    assert module._still_to_do(before, excess) == pytest.approx(more)


@pytest.mark.parametrize(
    ("residual", "off", "worth", "expected"),
    [
        # What solves is off by a factor: of 1 it leaves 1 - 1/off, and an excess of its residual / (1 + value).
        (2.0**-46, 1, 16, 1.0),
        (1.0, 1, 16, 0.0),  # as good as it is
        (0.9, 1, 16, 1.0),
        # Halved each time: 1024, 341, 146, 68, ... Of 146 after 341 it would take 5.9 corrections more.
        (2.0**-10, 2, 6, 1 - 2.0**-10),
        (2.0**-10, 2, 5.8, None),
        # By a quarter each time: 2 and 1.2 shrink enough, 1.2 to 0.78 is enough; 8 and 4.8, 3.13 does not.
        (0.5, 4, 16, 1 - 0.75**2),
        (0.125, 4, 16, None),
    ],
)
def test_an_earlier_factorisation_is_corrected_while_it_pays(residual, off, worth, expected, monkeypatch):
    monkeypatch.setattr(module, "_WORTH", worth)
    search, _, _ = search_of(ROUND)
    search._solver, search._switched = SimpleNamespace(solve=lambda rest: rest / off), 1
    ones = np.ones(10)
    value = search._corrected(np.eye(10), ones, 0 * ones, residual)
    assert value is None if expected is None else value == pytest.approx(expected * ones)


@pytest.mark.parametrize(("switched", "tried"), [(0, False), (1, True), (2, False)])
def test_it_is_corrected_where_few_nodes_were_switched(switched, tried):
    """Up to a tenth of them."""
    search, _, _ = search_of(ROUND)
    ones = np.ones(10)
    assert search._corrected(np.eye(10), ones, ones, 1.0) is None
    search._solver, search._switched = SimpleNamespace(), switched
    assert (search._corrected(np.eye(10), ones, ones, 1.0) is not None) == tried


def test_equations_without_a_solution_are_refused():
    """Two states that lead to each other for ever; and one that leads to itself, beside one that does not."""
    for rows, message in (
        ([(2, 3, 3, 0, 1), (3, 2, 2, 0, 1)], "the equations of 2 product states are singular"),
        ([(2, 2, 2, 0, 1), (3, 0, 1, Q, Q)], "the equations of 2 product states are singular in doubles"),
    ):
        search, step, _ = search_of(rows)
        with np.errstate(invalid="ignore"), pytest.raises(EngineError, match=message):
            search.optimum(goal_of(step), np.zeros(4))
