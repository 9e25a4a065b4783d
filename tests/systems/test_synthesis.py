"""Winning regions and synthesised controllers, against games solved by hand and by trying every strategy."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import InputError
from verifier.language.expressions import parse_expression, to_text
from verifier.language.ltl import parse_formula
from verifier.perception.confusion import EMPTY
from verifier.systems.behaviour import Moves
from verifier.systems.model import BoundedVariable
from verifier.systems.reader import read_model
from verifier.systems.space import StateSpace
from verifier.systems.synthesis import Objective, objective_of, safe_moves, synthesised_behaviour, winning

PED, OBS = frozenset({"ped"}), frozenset({"obs"})


def game(*choices):
    """Moves of a game on states 0, 1, 2, ...: one row per choice, None where it cannot be taken."""
    return Moves(np.array([[-1 if target is None else target for target in row] for row in choices]))


def line(n):
    return StateSpace((BoundedVariable("x", 0, n - 1),))


def one_of(states):
    """The condition that holds in exactly these states."""
    return parse_expression(" | ".join(f"x = {state}" for state in sorted(states)) or "false")


def won(moves, always, goal=None):
    space = line(moves.following.shape[1])
    return winning(space, moves, Objective(one_of(always), None if goal is None else one_of(goal)))


def states_of(mask):
    return set(np.flatnonzero(mask).tolist())


def moves_of(winning_moves):
    """Pairs (state, next state) of the winning moves."""
    return {
        (state, row[state])
        for row in winning_moves.following.tolist()
        for state in range(len(row))
        if row[state] >= 0
    }


# 0 -> 1 -> 2 -> 3 -> 3, and from 1 one may step aside to 4, which only loops; from 2 back to 1.
FORK = game([1, 2, 3, 3, 4], [None, 4, 1, None, None])


def test_staying_safe_by_hand():
    # Keep out of 3: from 2 go back to 1, from 1 to 2 or aside; the step from 2 to 3 is the only losing one.
    found = won(FORK, {0, 1, 2, 4})
    assert states_of(found.region) == {0, 1, 2, 4}
    assert moves_of(found.moves) == {(0, 1), (1, 2), (1, 4), (2, 1), (4, 4)}
    # Keep out of 3 and 4: going to and fro between 1 and 2.
    found = won(FORK, {0, 1, 2})
    assert states_of(found.region) == {0, 1, 2}
    assert moves_of(found.moves) == {(0, 1), (1, 2), (2, 1)}
    # Keep out of 1: nothing that has to pass it is safe, and 2 can go on to 3.
    found = won(FORK, {0, 2, 3, 4})
    assert states_of(found.region) == {2, 3, 4}
    assert moves_of(found.moves) == {(2, 3), (3, 3), (4, 4)}
    assert found.moves_terminate()


def test_a_state_without_moves_is_not_safe():
    # 1 can do nothing, so neither 1 nor 0, which can only go there, has an infinite run.
    assert states_of(won(game([1, None, 2]), {0, 1, 2}).region) == {2}


def test_a_long_fall_is_one_search():
    # 200,000 states in a row that lead out of what is allowed at the very end.
    n = 200_000
    moves = Moves(np.minimum(np.arange(n) + 1, n - 1)[np.newaxis])
    allowed = np.arange(n) < n - 1
    assert not safe_moves(moves, allowed)[1].any()
    assert safe_moves(moves, np.ones(n, dtype=bool))[1].all()


def test_reaching_by_hand():
    # To 3, anywhere allowed: 4 is lost, and from 1 only the step to 2 wins. To and fro between 1 and 2 may circle.
    found = won(FORK, {0, 1, 2, 3, 4}, {3})
    assert states_of(found.region) == {0, 1, 2, 3}
    assert moves_of(found.moves) == {(0, 1), (1, 2), (2, 3), (2, 1), (3, 3)}
    assert not found.moves_terminate()
    # To 4 without 2 on the way: 0 and 1, and no circle is left.
    found = won(FORK, {0, 1, 4}, {4})
    assert states_of(found.region) == {0, 1, 4}
    assert moves_of(found.moves) == {(0, 1), (1, 4), (4, 4)}
    assert found.moves_terminate()


def test_after_the_goal_only_safety_is_kept():
    # 0 -> 1 -> 2 -> 3 -> 3, and 2 may leave to 4, which is not allowed. The goal 1 is passed once and never again:
    # 2 and 3 cannot reach it, but from 1 on the run must still keep out of 4.
    found = won(game([1, 2, 3, 3, 4], [None, None, 4, None, None]), {0, 1, 2, 3}, {1})
    assert states_of(found.region) == {0, 1}
    assert moves_of(found.moves) == {(0, 1), (1, 2), (2, 3), (3, 3)}
    assert found.moves_terminate()
    assert not found.goal_is_forgotten()
    # 0 -> 1 -> 0: from the goal 1 back to where it is still ahead.
    assert won(game([1, 0, 2]), {0, 1, 2}, {1}).goal_is_forgotten()


@pytest.mark.parametrize(
    ("formula", "always", "goal"),
    [
        ("G x < 3", "x < 3", None),
        ("F x = 3", "true", "x = 3"),
        ("G x < 3 & F x = 2", "x < 3", "x = 2"),
        ("!(F x = 1)", "!(x = 1)", None),
        ("!(G x = 1)", "true", "!(x = 1)"),
        ("!(F x = 1 | F x = 2)", "!(x = 2) & !(x = 1)", None),
        ("!(G x < 3 -> F x = 2)", "!(x = 2) & x < 3", None),
        ("G (x < 3 & G x > 0)", "x > 0 & x < 3", None),
        ("!(F (x = 1 | F x = 2))", "!(x = 2) & !(x = 1)", None),
        ("G x < 3 & G x < 3", "x < 3", None),
        ("F x = 2 & F x = 2", "true", "x = 2"),
        ("G (x = 1 -> x < 2)", "x = 1 -> x < 2", None),
        ("true -> F x = 2", "true", "x = 2"),
        ("false -> F G x = 2", "true", None),
        ("F x = 2 | (false & G F x = 1)", "true", "x = 2"),
        ("(true <-> F x = 2) & (G x = 1 xor true)", None, None),
        ("true <-> F x = 2", "true", "x = 2"),
        ("false <-> F x = 2", "!(x = 2)", None),
        ("G x = 1 xor true", "true", "!(x = 1)"),
        ("(F x = 1 -> false) & true", "!(x = 1)", None),
        ("(false xor true) & !!(G x = 1)", "x = 1", None),
        ("F<=3 true & G[2,5] true & X true", "true", None),
        ("true", "true", None),
        ("G false", "false", None),
        ("F x = 1 & false", "false", None),
    ],
)
def test_the_fragment(formula, always, goal):
    node = parse_formula(formula)
    if always is None:  # two different goals
        with pytest.raises(InputError, match=r"cannot serve two goals: (x = 2|!\(x = 1\)); "):
            objective_of(node)
        return
    found = objective_of(node)
    assert (to_text(found.always), found.goal and to_text(found.goal)) == (
        to_text(parse_expression(always)),
        goal and to_text(parse_expression(goal)),
    )


@pytest.mark.parametrize(
    "formula",
    [
        "G F x = 1",
        "F G x = 1",
        "x = 1 U x = 2",
        "x = 1",
        "X x = 1",
        "F<=3 x = 1",
        "G<=3 x = 1",
        "G (x = 1 -> F x = 2)",
        "G (x = 1 | G x = 2)",
        "!(F (x = 1 & F x = 2))",
        "G x = 1 | G x = 2",
        "x = 1 -> F x = 2",
        "!(G x = 1 & F x = 2)",
        "F x = 1 <-> F x = 2",
        "x = 1 W x = 2",
    ],
)
def test_what_is_outside_the_fragment_is_refused(formula):
    with pytest.raises(InputError, match="no controller is synthesised from"):
        objective_of(parse_formula(formula))


def test_a_goal_a_long_way_off_is_one_search(tmp_path):
    # Standing still is as safe as moving on; only moving on comes nearer. Passing the goal is allowed, too.
    path = tmp_path / "road.toml"
    path.write_text(
        """
        initial = "x = 0"
        [variables]
        x = { range = [0, 100000], next = "min(x + u, 100000)" }
        [inputs]
        u = { range = [0, 1] }
        [environments]
        empty = [{ class = "empty", distance_m = 1 }]
        [planners.driver]
        kind = "synthesis"
        formula = "F x = 99000"
        rules = []
        """
    )
    system = read_model(path).instantiate()
    space, planner = StateSpace(system.variables), system.planners["driver"]
    nowhere = np.zeros(space.size, dtype=bool)
    following = synthesised_behaviour(system, space, planner, planner.formula, (EMPTY,), nowhere)[:, 0]
    # Up to 98,999 one cell on; at the goal and after it the least input, which is to stay.
    x = np.arange(space.size)
    assert np.array_equal(following, np.where(x < 99_000, x + 1, x))


# Random games, every memoryless strategy tried. Memory does not help for G p & F q: a shortest way to q, then any
# safe move, is a strategy that looks at the state only.
@st.composite
def games(draw):
    n = draw(st.integers(1, 5))
    targets = st.one_of(st.none(), st.integers(0, n - 1), st.integers(0, n - 1))
    rows = draw(st.lists(st.lists(targets, min_size=n, max_size=n), min_size=1, max_size=3))
    states = st.sets(st.integers(0, n - 1))
    return rows, draw(states), draw(st.one_of(st.none(), states))


def selections(options):
    """Every way to take one of the options of each state; None where it has none."""
    return itertools.product(*(sorted(each) or [None] for each in options))


def meets(strategy, start, always, goal):
    """Whether the run of a strategy from `start` goes on, stays in `always`, and passes `goal` if there is one."""
    run = [start]
    while len(run) <= len(strategy):
        following = strategy[run[-1]]
        if following is None:
            return False
        run.append(following)
    return set(run) <= always and (goal is None or bool(set(run) & goal))


@given(games())
def test_the_region_is_where_some_strategy_wins(sample):
    rows, always, goal = sample
    options = [{row[s] for row in rows if row[s] is not None} for s in range(len(rows[0]))]
    strategies = list(selections(options))
    expected = {s for s in range(len(options)) if any(meets(each, s, always, goal) for each in strategies)}
    assert states_of(won(game(*rows), always, goal).region) == expected


@given(games())
def test_winning_moves_are_those_that_win(sample):
    rows, always, goal = sample
    found = won(game(*rows), always, goal)
    region, n = states_of(found.region), len(rows[0])
    taken = moves_of(found.moves)
    options = [{target for source, target in taken if source == s} for s in range(n)]
    every_selection_wins = all(meets(each, s, always, goal) for each in selections(options) for s in region)
    assert found.moves_terminate() == every_selection_wins
    # Forgotten is a goal from which winning moves lead back to where it was still ahead.
    after = states_of(found.goal)
    for _ in range(n):
        after |= {target for source, target in taken if source in after}
    assert found.goal_is_forgotten() == bool(after & (region - states_of(found.goal)))
    # No winning move is left out: before the goal exactly the moves back into the region.
    for s in region - states_of(found.goal) if goal is not None else region:
        assert options[s] == {row[s] for row in rows if row[s] in region}


# A walker with two inputs on a board with negative coordinates. Each condition: as text, and as a function.
BOARD = """
initial = "true"
terminal = "{terminal}"
admissible = "{admissible}"
[variables]
x = {{ range = [-2, 2], next = "{next_x}" }}
y = {{ range = [0, 2], next = "{next_y}" }}
[inputs]
u = {{ range = [-1, 1] }}
w = {{ range = [0, 1] }}
[environments]
both = [{{ class = "ped", distance_m = 1 }}, {{ class = "obs", distance_m = "y" }}]
[planners.walker]
kind = "synthesis"
pick = "{pick}"
formula = "{formula}"
rules = [{{ when = "sees(ped) & x < 0", set = {{ u = 1, w = 0 }} }}, {{ when = "true", set = {{ u = 0, w = 1 }} }}]
"""
STATES = list(itertools.product(range(-2, 3), range(3)))
INPUTS = list(itertools.product(range(-1, 2), range(2)))
CONDITIONS = {
    "x < 2": lambda x, y: x < 2,
    "x >= 0 | y = 1": lambda x, y: x >= 0 or y == 1,
    "x != y": lambda x, y: x != y,
    "y > 0": lambda x, y: y > 0,
    "x = -2": lambda x, y: x == -2,
    "x = 1 & y = 2": lambda x, y: x == 1 and y == 2,
    "true": lambda x, y: True,
    "false": lambda x, y: False,
}
ADMISSIBLE = {
    "true": lambda x, y, u, w: True,
    "u + w <= 1": lambda x, y, u, w: u + w <= 1,
    "u >= x - 1": lambda x, y, u, w: u >= x - 1,
    "w = 0 | y < 2": lambda x, y, u, w: w == 0 or y < 2,
}
NEXT_X = {
    "x + u": lambda x, y, u, w: x + u,
    "min(x + u * y, 2)": lambda x, y, u, w: min(x + u * y, 2),
    "max(x - w, -2)": lambda x, y, u, w: max(x - w, -2),
}
NEXT_Y = {
    "(y + w) % 3": lambda x, y, u, w: (y + w) % 3,
    "y": lambda x, y, u, w: y,
    "abs(u)": lambda x, y, u, w: abs(u),
}
# What is asked for, as text, and under (ped, obs) as (always, goal) with True and None for "nothing".
FORMULAS = {
    "G {p}": lambda ped, obs: ("p", None),
    "ped -> F {q}": lambda ped, obs: (None, "q") if ped else (None, None),
    "G (!ped | {p}) & (obs -> F {q})": lambda ped, obs: ("p" if ped else None, "q" if obs else None),
    "G (empty -> {p}) & F {q}": lambda ped, obs: (None if ped or obs else "p", "q"),
    "!(F !({p}) | (ped & G !({q})))": lambda ped, obs: ("p", "q" if ped else None),
    "G {p} & (ped <-> F {q})": lambda ped, obs: ("p", "q") if ped else ("p and not q", None),
}
ORDERS = {
    # By hand: -1, 0, 1 are 0, 1, 2 above the low end, in two bits; 00, 01, 10 mirrored are 0, 2, 1.
    "lsb_first": [(-1, 0), (-1, 1), (1, 0), (1, 1), (0, 0), (0, 1)],
    "lowest": [(-1, 0), (-1, 1), (0, 0), (0, 1), (1, 0), (1, 1)],
    "highest": [(1, 1), (1, 0), (0, 1), (0, 0), (-1, 1), (-1, 0)],
}


@st.composite
def boards(draw):
    return {
        name: draw(st.sampled_from(sorted(table)))
        for name, table in {
            "terminal": CONDITIONS,
            "admissible": ADMISSIBLE,
            "next_x": NEXT_X,
            "next_y": NEXT_Y,
            "p": CONDITIONS,
            "q": CONDITIONS,
            "formula": FORMULAS,
            "pick": ORDERS,
        }.items()
    }


def plain_moves(board, state):
    """Inputs -> next state, in the order of `INPUTS`; only valid ones."""
    if CONDITIONS[board["terminal"]](*state):
        return dict.fromkeys(INPUTS, state)
    found = {}
    for inputs in INPUTS:
        following = tuple(
            table[board[name]](*state, *inputs) for name, table in (("next_x", NEXT_X), ("next_y", NEXT_Y))
        )
        if ADMISSIBLE[board["admissible"]](*state, *inputs) and following in STATES:
            found[inputs] = following
    return found


def plain_game(board, always, goal):
    """Safe states and winning region by rounds over dictionaries; `always` and `goal` are sets of states."""
    targets = {state: set(plain_moves(board, state).values()) for state in STATES}
    safe = set(always)
    while True:
        fewer = {state for state in safe if targets[state] & safe}
        if fewer == safe:
            break
        safe = fewer
    if goal is None:
        return safe, safe
    region = safe & goal
    while True:
        more = region | {state for state in safe if targets[state] & region}
        if more == region:
            return safe, region
        region = more


def wanted(board, ped, obs):
    """(always, goal) as sets of states, from the table of formulas."""
    p, q = ({s for s in STATES if CONDITIONS[board[name]](*s)} for name in ("p", "q"))
    always, goal = FORMULAS[board["formula"]](ped, obs)
    named = {"p": p, "p and not q": p - q, None: set(STATES)}
    return named[always], q if goal else None


def controllers(board, folder):
    """Observation -> state -> next state, by the code under test."""
    path = folder / "board.toml"
    formula = board["formula"].format(p=f"({board['p']})", q=f"({board['q']})")
    path.write_text(BOARD.format(**{**board, "formula": formula}))
    system = read_model(path).instantiate()
    space, planner = StateSpace(system.variables), system.planners["walker"]
    observations = (EMPTY, PED, OBS, PED | OBS)
    terminal = np.array(space.where(system.terminal))
    following = synthesised_behaviour(system, space, planner, planner.formula, observations, terminal)
    assert [tuple(each) for each in zip(*(v.tolist() for v in space.valuations().values()), strict=True)] == STATES
    return {
        observation: {s: STATES[t] if t >= 0 else None for s, t in zip(STATES, column, strict=True)}
        for observation, column in zip(observations, following.T.tolist(), strict=True)
    }


@given(boards())
def test_the_controller_keeps_its_promise_from_every_state_that_can(tmp_path_factory, board):
    for observation, step in controllers(board, tmp_path_factory.mktemp("boards")).items():
        always, goal = wanted(board, "ped" in observation, "obs" in observation)
        _, region = plain_game(board, always, goal)
        for start in region:
            run = [start]
            for _ in STATES:
                assert step[run[-1]] in plain_moves(board, run[-1]).values()
                run.append(step[run[-1]])
            assert set(run) <= always
            assert goal is None or set(run) & goal


@given(boards())
def test_the_pick_decides_among_moves_that_keep_the_promise(tmp_path_factory, board):
    for observation, step in controllers(board, tmp_path_factory.mktemp("boards")).items():
        always, goal = wanted(board, "ped" in observation, "obs" in observation)
        if goal is not None:
            continue
        safe, _ = plain_game(board, always, None)
        for state in STATES:
            moves = plain_moves(board, state)
            if state in safe:
                first = next(inputs for inputs in ORDERS[board["pick"]] if moves.get(inputs) in safe)
                assert step[state] == moves[first]
            elif not CONDITIONS[board["terminal"]](*state):
                rule = (1, 0) if "ped" in observation and state[0] < 0 else (0, 1)
                assert step[state] == moves.get(rule)


def test_two_goals_are_refused_with_the_planners_place(tmp_path):
    board = {"terminal": "false", "admissible": "true", "next_x": "x", "next_y": "y", "pick": "lowest"}
    path = tmp_path / "board.toml"
    path.write_text(BOARD.format(**board, formula="F x = 1 & (ped -> F x = 2)"))
    system = read_model(path).instantiate()
    space, planner = StateSpace(system.variables), system.planners["walker"]
    nowhere = np.zeros(space.size, dtype=bool)
    synthesised_behaviour(system, space, planner, planner.formula, (EMPTY, OBS), nowhere)
    with pytest.raises(InputError) as caught:
        synthesised_behaviour(system, space, planner, planner.formula, (PED,), nowhere)
    assert str(caught.value) == (
        f"{path}:13: planners.walker: a controller without memory cannot serve two goals: x = 2; x = 1\n"
        "  hint: synthesise from one goal and any number of always-requirements"
    )
