"""Where nature can stay for ever, and what it can make of a formula there: all sets of states, one by one."""

import itertools

import numpy as np
import pytest
from interval_models import Model, random_model
from random_steps import OfOneRow

from verifier.analysis.robust import graph
from verifier.analysis.robust.graph import decided_components
from verifier.analysis.robust.step import uncertain_step

FORMULAS = {  # what the states that are visited again and again make of it, in sets of those with p and with q
    "G F p": lambda s, p, q: bool(s & p),
    "F G p": lambda s, p, q: s <= p,
    "(G F p) & (F G !q)": lambda s, p, q: bool(s & p) and not s & q,
    "(G F p) -> (G F q)": lambda s, p, q: not s & p or bool(s & q),
    "(G F (p | X p)) | (G F (q | X q))": lambda s, p, q: bool(s & (p | q)),
    "(G F (p | X p)) & (G F (q | X q))": lambda s, p, q: bool(s & p) and bool(s & q),
    "!((G F (p | X p)) & (G F (q | X q)))": lambda s, p, q: not (s & p and s & q),
    "F p": lambda s, p, q: False,  # while it is open
    "G p": lambda s, p, q: True,
    "p U q": lambda s, p, q: False,
}


def connected(ahead):
    """Whether all states lead to all by these edges, and to no others."""
    reach = {state: set(ends) for state, ends in ahead.items()}
    for _ in ahead:
        reach = {state: ends.union(*(reach.get(end, set()) for end in ends)) for state, ends in reach.items()}
    return all(ends == set(ahead) for ends in reach.values())


def staying(leads, states):
    """Whether nature can stay in these states and visit all again and again."""
    return connected({state: set().union(*(ends for ends in leads[state] if ends <= states)) for state in states})


def system_of(seed, formula):
    """A random objective, its step, and for each product state the sets of states that its choices lead to."""
    model = random_model(np.random.default_rng(seed), states=4, labels=3, zeros=0.7, width=0.9, ended=1)
    objective = model.objective(formula)
    step = uncertain_step(objective, model.region(objective))
    leads = [
        {frozenset(step.following[row, list(ends)].tolist()) for ends in OfOneRow(step, row).ends()}
        for row in range(len(step.owner))
    ]
    return model, objective, step, leads


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("seed", range(8))
def test_what_nature_can_make_of_a_formula_where_it_stays(seed, formula):
    model, objective, step, leads = system_of([seed, 77], formula)
    inner = range(2, step.state_count)
    parts = [
        frozenset(part)
        for size in range(1, len(inner) + 1)
        for part in itertools.combinations(inner, size)
        if staying(leads, frozenset(part))
    ]
    largest = [part for part in parts if not any(part < other for other in parts)]
    told = decided_components(objective, step)
    numbers = told.of.tolist()
    assert {frozenset(s for s in inner if numbers[s] == k) for k in set(numbers[2:]) - {-1}} == set(largest)
    assert sorted(set(numbers) - {-1}) == list(range(len(largest) + 2))
    for state, fails in ((0, True), (1, False)):  # `false` and `true`
        assert (told.can_fail[numbers[state]], told.can_hold[numbers[state]]) == (fails, not fails)
    meets = {
        part: FORMULAS[formula](
            {int(objective.product.state[s]) for s in part}, model.true_in["p"], model.true_in["q"]
        )
        for part in parts
    }
    for whole in largest:
        number = numbers[min(whole)]
        inside = {meets[part] for part in parts if part <= whole}
        assert (told.can_hold[number], told.can_fail[number]) == (True in inside, False in inside)
    assert not np.any(told.fail_assumed | told.hold_assumed)
    for (number, holds), way in told.ways.items():
        members = frozenset(way)
        assert {numbers[state] for state in members} == {number}
        assert connected({s: set().union(*(ends for ends in leads[s] if ends <= led)) for s, led in way.items()})
        assert meets[members] is holds
    for whole in largest:  # where not all ways together give it, one is told
        for holds in {meets[part] for part in parts if part <= whole} - {meets[whole]}:
            assert (numbers[min(whole)], holds) in told.ways


FREE = [(0, 1), (0, 1)]
TWO = ((), ("a",))


@pytest.mark.parametrize(
    ("formula", "most", "proven", "fails", "holds", "fail_assumed", "hold_assumed", "asked"),
    [
        # States 0 and 1, of which 0 has p, lead to each other; state 1 can refuse to go back, and 0 to stay.
        ("G F p", None, None, True, True, False, False, []),
        ("G F p", None, [], True, True, False, False, []),
        ("G F (p | !p)", None, [], True, True, True, False, [True]),
        ("G F (p | !p)", None, [True], False, True, False, False, [True]),
        ("F G (p & !p)", None, [], True, True, False, True, [False]),
        ("F G (p & !p)", None, [False], True, False, False, False, [False]),
        ("G F (p | X p)", None, [], True, True, False, False, []),
        ("G F (p | X p)", 0, [], True, True, True, False, []),
        ("G F (p | X p)", 0, None, True, True, True, False, []),
        ("F G (p & X p)", 0, None, True, True, False, True, []),
        ("G F (p | X !p)", None, [], True, True, True, False, [True]),
        ("G F (p | X !p)", None, [True], False, True, False, False, [True]),
        ("G F (p | X !p)", None, None, False, True, False, False, []),
        ("F G (p & X !p)", None, [], True, True, False, True, [False]),
        ("F G (p & X !p)", None, [False], True, False, False, False, [False]),
    ],
)
def test_what_cannot_be_proven_is_assumed(formula, most, proven, fails, holds, fail_assumed, hold_assumed, asked):
    """`proven` are the answers, whether it holds, that can be shown; `asked` those that are asked for."""
    objective = Model(TWO, [[0, 1], [0, 1]], {"p": {0}}, {0: FREE, 1: FREE}).objective(formula)
    model = Model(TWO, [[0, 1], [0, 1]], {"p": {0}}, {0: FREE, 1: FREE})
    step = uncertain_step(objective, model.region(objective))
    given = []

    def proves(inside, holds):
        given.append(holds)
        assert inside.tolist() == np.flatnonzero(told_of == told_of[objective.product.start[0]]).tolist()
        return holds in proven

    told_of = graph.end_components(step)
    told = decided_components(objective, step, None if proven is None else proves, most)
    number = told.of[objective.product.start[0]]
    assert given == asked
    assert [bool(x[number]) for x in (told.can_fail, told.can_hold, told.fail_assumed, told.hold_assumed)] == [
        fails, holds, fail_assumed, hold_assumed
    ]  # fmt: skip
