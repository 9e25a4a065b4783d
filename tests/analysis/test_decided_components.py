"""Where nature can stay for ever, and what it can make of a formula there: all sets of states, one by one."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from interval_models import Model, random_model, region_of
from random_steps import OfOneRow, random_step

from verifier.analysis.intervals.drive_items import UNIT
from verifier.analysis.robust import graph
from verifier.analysis.robust.graph import decided_components
from verifier.analysis.robust.region import NOTHING_TOLD, Told
from verifier.analysis.robust.step import UncertainStep, uncertain_step

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


def system_of(seed, formula, ended=1):
    """A random objective, its step, and for each product state the sets of states that its choices lead to."""
    model = random_model(np.random.default_rng(seed), states=4, labels=3, zeros=0.7, width=0.9, ended=ended)
    objective, step = model.stepped(formula)
    leads = [
        {frozenset(step.following[row, list(ends)].tolist()) for ends in OfOneRow(step, row).ends()}
        for row in range(len(step.owner))
    ]
    return model, objective, step, leads


def largest_parts(leads, states):
    """The maximal sets of some states in which nature can stay, visiting all again and again; and all such sets."""
    parts = [
        frozenset(part)
        for size in range(1, len(states) + 1)
        for part in itertools.combinations(states, size)
        if staying(leads, frozenset(part))
    ]
    return [part for part in parts if not any(part < other for other in parts)], parts


@pytest.mark.parametrize("seed", range(40))
def test_end_components_among_some_states(seed):
    rng = np.random.default_rng([seed, 78])
    *_, step, leads = system_of([seed, 78], "G F p", ended=seed % 2)
    for among in (rng.random(step.state_count) < 0.8, np.arange(step.state_count) > 1):
        largest, _ = largest_parts(leads, np.flatnonzero(among).tolist())
        of = graph.end_components(step, among).tolist()
        found = {frozenset(state for state, own in enumerate(of) if own == k) for k in set(of) - {-1}}
        assert found == set(largest)
        assert set(of) - {-1} == set(range(len(largest)))


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("seed", range(8))
def test_what_nature_can_make_of_a_formula_where_it_stays(seed, formula):
    model, objective, step, leads = system_of([seed, 77], formula)
    inner = range(2, step.state_count)
    largest, parts = largest_parts(leads, inner)
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
    assert told.fail_assumed.tolist() == told.hold_assumed.tolist() == [False] * (len(largest) + 2)
    asked = []
    proven = decided_components(objective, step, lambda inside, holds: asked.append(len(inside)) or True)
    assert min(asked, default=2) >= 2  # of single states there is nothing to prove
    assert all(np.array_equal(getattr(told, name), getattr(proven, name)) for name in ("can_fail", "can_hold"))
    for (number, holds), way in told.ways.items():
        members = frozenset(way)
        assert {numbers[state] for state in members} == {number}
        assert numbers.count(number) > 1
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
        ("G F p", 0, None, True, True, False, False, []),
        ("G (p | !p)", 0, [], False, True, False, False, []),  # nothing is to come, or may go wrong
        ("F (p & !p)", 0, [], True, False, False, False, []),
        ("G F (p | !p)", None, [], True, True, True, False, [True]),
        ("G F (p | !p)", None, [True], False, True, False, False, [True]),
        ("F G (p & !p)", None, [], True, True, False, True, [False]),
        ("F G (p & !p)", None, [False], True, False, False, False, [False]),
        ("G F (p | X p)", None, [], True, True, False, False, []),
        ("G F (p | X p)", 9, [], True, True, False, False, []),  # three ways on from each of two states
        ("G F (p | X p)", 8, [], True, True, True, False, []),
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


@pytest.mark.parametrize(
    ("following", "bounds", "components"),
    [
        ([[1, 1], [0, 0]], {0: FREE, 1: FREE}, [{0, 1}]),  # one after the other
        ([[1, 1], [1, 1]], {0: FREE, 1: FREE}, [{1}]),
        ([[0, 1], [2, 2], [1, 1]], dict.fromkeys(range(3), FREE), [{0}, {1, 2}]),
        ([[1, 2], [0, 0], [2, 2]], {0: [(0, 1), (1, 1)], 1: FREE, 2: FREE}, [{2}]),  # some of it must leave
        ([[1, 2], [2, 0], [0, 1]], dict.fromkeys(range(3), FREE), [{0, 1, 2}]),
        # What is left once some cannot stay falls apart.
        (
            [[1, 1], [0, 2], [3, 3], [2, 1], [4, 4]],
            {0: FREE, 1: FREE, 2: FREE, 3: FREE, 4: FREE},
            [{0, 1, 2, 3}, {4}],
        ),
        (
            [[1, 0], [2, 4], [1, 2], [3, 3], [3, 3]],
            {0: FREE, 1: [(0, 1), (0.5, 1)], 2: FREE, 3: FREE, 4: FREE},
            [{0}, {2}, {3}],
        ),
    ],
)
def test_end_components_by_hand(following, bounds, components):
    bounds = {state: [tuple(map(Fraction, ends)) for ends in column] for state, column in bounds.items()}
    model = Model(TWO, following, {"p": {0}}, bounds, tuple(range(len(following))))
    objective = model.objective("G F (p | X p)")
    step = uncertain_step(objective, region_of(objective, {(s, 1): column for s, column in bounds.items()}))
    of, state = graph.end_components(step), objective.product.state
    numbers = [sorted(set(of[state == k].tolist())) for k in range(len(following))]
    assert sorted(map(sorted, components)) == sorted(
        sorted(k for k, own in enumerate(numbers) if number in own) for number in set(of[2:].tolist()) - {-1}
    )
    assert sorted(set(of.tolist()) - {-1}) == list(range(int(of.max()) + 1))


HELD = [(Fraction(1, 10), 1), (0, 1)]


@pytest.mark.parametrize(
    ("following", "bounds", "formula", "most", "fails", "holds", "assumed"),
    [
        # State 0 goes to 1 surely, state 1 stays, goes back, or does either: three ways.
        ([[1, 1], [0, 1]], [FREE, FREE], "G F (p | X p)", 3, True, True, False),
        ([[1, 1], [0, 1]], [FREE, FREE], "G F (p | X p)", 2, True, True, True),
        ([[1, 1], [0, 1]], [FREE, FREE], "F G (!p & X !p)", 3, True, True, False),
        # It goes back with some chance, and may stay: two ways, of which none avoids state 0.
        ([[1, 1], [0, 1]], [FREE, HELD], "G F (p | X p)", 2, False, True, False),
        ([[1, 1], [0, 1]], [FREE, HELD], "G F (p | X p)", 1, True, True, True),
        # Nothing can be refused: there is one way.
        ([[1, 1], [0, 1]], [FREE, [(Fraction(1, 2), Fraction(1, 2))] * 2], "G F (p | X p)", 0, False, True, False),
    ],
)
def test_ways_of_staying_are_counted(following, bounds, formula, most, fails, holds, assumed, monkeypatch):
    model = Model(TWO, following, {"p": {0}}, dict(enumerate(bounds)))
    objective = model.objective(formula)
    step = uncertain_step(objective, region_of(objective, {(k, 1): column for k, column in enumerate(bounds)}))
    told = decided_components(objective, step, None, most)
    number = told.of[objective.product.start[0]]
    assert (told.can_fail[number], told.can_hold[number]) == (fails, holds)
    assert (told.fail_assumed[number] or told.hold_assumed[number]) == assumed
    if most == 3:  # of two states
        for moves in (6, 5):
            monkeypatch.setattr(graph, "MOST_MOVES", moves)
            objective = model.objective(formula)
            told = decided_components(objective, step, None, most)
            assert (told.fail_assumed[number] or told.hold_assumed[number]) == (moves < 6)


@pytest.mark.parametrize(("most", "assumed"), [(4, 0), (3, 1), (1, 2)])
def test_ways_of_staying_are_counted_for_all_components_together(most, assumed):
    """Two components of two ways each, which are all tried, as neither avoids the states with p."""
    following, bounds = [[1, 1], [0, 1], [3, 3], [2, 3]], {0: FREE, 1: HELD, 2: FREE, 3: HELD}
    model = Model(TWO, following, {"p": {0, 2}}, bounds, (0, 2))
    objective = model.objective("G F (p | X p)")
    region = region_of(objective, {(state, 1): column for state, column in bounds.items()})
    told = decided_components(objective, uncertain_step(objective, region), None, most)
    assert told.fail_assumed.sum() == assumed


def test_so_many_ways_are_tried_at_most(monkeypatch):
    asked = []
    monkeypatch.setattr(graph, "_other_value", lambda *given: asked.append(given[-2:]) or ({}, given[-2]))
    model = Model(TWO, [[0, 1], [0, 1]], {"p": {0}}, {0: FREE, 1: FREE})
    objective = model.objective("G F (p | X p)")
    decided_components(objective, uncertain_step(objective, model.region(objective)))
    assert asked == [(0, 1024)]


def test_the_way_that_gives_another_value_is_told_with_how_many_were_tried():
    """State 1 goes back to 0, or does both, or stays, in this order; only the last leaves p out, with 0 behind it."""
    model = Model(TWO, [[1, 1], [0, 1]], {"p": {0}}, {0: FREE, 1: FREE})
    objective = model.objective("G F (p | X p)")
    step = uncertain_step(objective, region_of(objective, {(0, 1): FREE, (1, 1): FREE}))
    of, start = graph.end_components(step), int(objective.product.start[0])
    inside = np.flatnonzero(of == of[start])
    goes, stays = sorted(inside.tolist(), key=lambda state: objective.product.state[state])
    assert graph._other_value(objective, step, inside, True, 10, 99) == ({stays: frozenset({stays})}, 13)
    both = {goes: frozenset({stays}), stays: frozenset({goes})}
    assert graph._other_value(objective, step, inside, False, 10, 99) == (both, 11)
    component, values = graph._bottom_values(objective, inside, np.array([goes, stays]), np.array([stays, stays]))
    assert component.tolist() == [0 if state == stays else -1 for state in inside.tolist()]
    assert values.tolist() == [False]


@pytest.mark.parametrize("seed", range(30))
def test_states_that_choices_in_some_rows_lead_to(seed):
    rng = np.random.default_rng([seed, 79])
    step = random_step(rng)
    inside = rng.random((2, step.following.shape[1])) < 0.8
    expected = set()
    for row in range(2):  # nature may mix them
        allowed = frozenset(np.flatnonzero(inside[row]).tolist())
        own = {
            frozenset(step.following[row, list(ends)].tolist())
            for ends in OfOneRow(step, row).ends()
            if ends <= allowed
        }
        expected |= own | {before | now for before in expected for now in own}
    reduced = graph._reduced_moves(step, [0, 1], inside, 10**6)
    assert len(reduced) == len(expected)
    assert set(reduced) == expected
    assert not expected or graph._reduced_moves(step, [0, 1], inside, len(expected) - 1) is None


def test_more_sets_of_states_than_may_be_looked_at_are_none():
    """Two rows without draws, to states 5 and 6: to one, to the other, or to either."""
    nothing = np.zeros((2, 0), dtype=np.int64)
    none = np.zeros((1, 1), dtype=np.int64)
    step = UncertainStep(
        np.array([[5], [6]]), np.ones((2, 1)), nothing, none, none, NOTHING_TOLD, nothing, (), np.zeros(2, int)
    )
    inside = np.ones((2, 1), dtype=bool)
    assert graph._reduced_moves(step, [0, 1], inside, 3) == [frozenset({5}), frozenset({6}), frozenset({5, 6})]
    assert graph._reduced_moves(step, [0, 1], inside, 2) is None


@pytest.mark.parametrize(
    ("often", "first", "least"),
    [
        ([[1, 0], [1, 0]], [0, UNIT], 15),  # three sets behind either report: 3, 3, and 9 for both
        ([[1, 1], [1, 0]], [UNIT, 0], 3),  # three behind the one way of the one report, and one behind the other way
    ],
)
def test_sets_of_reports_are_looked_at_up_to_a_limit(often, first, least):
    """Two draws of two reports, the second free: nothing or b, after a or b; what is told adds up."""
    then = np.array([[0, 1, 2], [1, 1, 3], [2, 3, 2], [3, 3, 3]])  # nothing, a, b, both
    report = (
        np.array([[[0, 1], [2, 1]], [[0, 2], [0, 2]]]) if least == 15 else np.array([[[1, 1], [2, 2]], [[0, 2]] * 2])
    )
    told = Told(np.arange(2), np.array([[0, 1]]), report, np.array(often), then)
    lower, upper = np.array([[first[0], 0], [0, 0]]), np.full((2, 2), UNIT)
    step = UncertainStep(
        np.arange(4)[None],
        np.ones((1, 1)),
        np.array([[0, 1]]),
        lower,
        upper,
        told,
        told.kind,
        ((0,), (0, 1, 2)),
        np.zeros(1, int),
    )
    inside = np.ones(4, dtype=bool)
    sets = {frozenset({0}), frozenset({2}), frozenset({0, 2})}
    assert graph._reports(step, 0, 1, 0, inside, 3) == sets
    for limit in (2, least - 1):
        assert graph._reports(step, 0, 0, 0, inside, limit) is None
    found = graph._reports(step, 0, 0, 0, inside, least)
    if least == 3:
        assert found == {frozenset({1, 2}), frozenset({3, 2}), frozenset({1, 2, 3})}
    else:
        after = {frozenset({1}), frozenset({3}), frozenset({1, 3})}
        assert found == sets | after | {one | other for one in sets for other in after}


def test_alternatives_that_cannot_stay_are_no_other_ways_of_staying():
    """State 2 goes to 3 or, by another alternative, away; 3 goes back: there is one way to stay."""
    nothing, none = np.zeros((6, 0), dtype=np.int64), np.zeros((1, 1), dtype=np.int64)
    step = UncertainStep(
        np.array([[0], [1], [3], [4], [2], [4]]), np.ones((6, 1)), nothing, none, none, NOTHING_TOLD, nothing, (),
        np.array([0, 1, 2, 2, 3, 4]),
    )  # fmt: skip
    assert graph._other_value(None, step, np.array([2, 3]), True, 0, 0) == ({}, 0)


def test_reports_that_cannot_be_are_no_other_ways_of_staying():
    """State 0 stays or goes on, with one half each, and never is told b, which state 1 always is."""
    half, bounds = (Fraction(1, 2), Fraction(1, 2)), [(0, 0), (0, 0), (1, 1)]
    model = Model((*TWO, ("b",)), [[1, 0, 2], [2, 2, 0], [2] * 3], {"p": {0}}, {0: [half, half, (0, 0)], 1: bounds})
    objective = model.objective("G F (p | X p)")
    step = uncertain_step(objective, region_of(objective, {(0, 1): model.bounds[0], (1, 1): bounds}))
    of = graph.end_components(step)
    inside = np.flatnonzero(of == of[objective.product.start[0]])
    assert set(objective.product.state[inside].tolist()) == {0, 1}
    assert graph._other_value(objective, step, inside, True, 0, 0) == ({}, 0)
