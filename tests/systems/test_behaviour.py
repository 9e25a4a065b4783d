"""Rules, pick orders and runs, against plain Python over one state at a time."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.language.ltl import parse_formula
from verifier.perception.confusion import EMPTY
from verifier.systems.behaviour import input_choices, questions_of, rules_behaviour, runs_behaviour
from verifier.systems.reader import read_model
from verifier.systems.space import StateSpace

PED, OBS = frozenset({"ped"}), frozenset({"obs"})
OBSERVATIONS = (EMPTY, OBS, PED, PED | OBS)
STATES = list(itertools.product(range(-2, 3), range(3)))

# Two variables, one of them with negative values, and two inputs.
ROOM = """
initial = "true"
terminal = "{terminal}"
admissible = "u + w <= 1 & (x < 2 | u <= 0)"
[variables]
x = {{ range = [-2, 2], next = "x + u" }}
y = {{ range = [0, 2], next = "(y + w) % 3" }}
[inputs]
u = {{ range = [-1, 1] }}
w = {{ range = [0, 1] }}
[environments]
ped = [{{ class = "ped", distance_m = 1 }}, {{ class = "obs", distance_m = 1 }}]
[planners.mover]
kind = "runs"
pick = "{pick}"
runs = [
    {{ when = "sees(ped) & ({when})", reach = "{reach}", through = "{through}" }},
    {{ when = "sees(obs)", set = {{ u = "1 - y", w = "y % 2" }} }},
]
rules = [
    {{ when = "sees(obs) & y = 0", set = {{ u = 0, w = 1 }} }},
    {{ when = "x > 0", set = {{ u = "-1", w = "(x + y) % 2" }} }},
    {{ when = "y = 1", stay = true }},
    {{ when = "sees(ped) | x = -2", set = {{ u = "x + 2", w = 0 }} }},
]
"""
CONDITIONS = {
    "x = 2 & y = 2": lambda x, y: x == 2 and y == 2,
    "x = 0": lambda x, y: x == 0,
    "y < 2 | x < 0": lambda x, y: y < 2 or x < 0,
    "x != y": lambda x, y: x != y,
    "x + y = 2": lambda x, y: x + y == 2,
    "true": lambda x, y: True,
    "false": lambda x, y: False,
}
CONDITION = st.sampled_from(sorted(CONDITIONS))
PICK = st.sampled_from(["lsb_first", "lowest", "highest"])
ROOMS = st.fixed_dictionaries(
    {"terminal": CONDITION, "when": CONDITION, "reach": CONDITION, "through": CONDITION, "pick": PICK}
)


def system_of(folder, **parts):
    path = folder / "room.toml"
    path.write_text(ROOM.format(**parts))
    return read_model(path).instantiate()


def moved(state, u, w):
    """The next state, or None where the inputs are not allowed."""
    x, y = state
    following = (x + u, (y + w) % 3)
    allowed = -1 <= u <= 1 and 0 <= w <= 1 and u + w <= 1 and (x < 2 or u <= 0)
    return following if allowed and following in STATES else None


def by_rules(state, seen):
    x, y = state
    if "obs" in seen and y == 0:
        return moved(state, 0, 1)
    if x > 0:
        return moved(state, -1, (x + y) % 2)
    if y == 1:
        return state
    if "ped" in seen or x == -2:
        return moved(state, x + 2, 0)
    return None


def in_states(numbers):
    return [None if number < 0 else STATES[number] for number in numbers]


def test_the_first_rule_that_holds_decides(tmp_path):
    system = system_of(tmp_path, terminal="false", when="true", reach="true", through="true", pick="lowest")
    space = StateSpace(system.variables)
    found = rules_behaviour(system, space, system.planners["mover"], OBSERVATIONS)
    for observation, column in zip(OBSERVATIONS, found.T.tolist(), strict=True):
        assert in_states(column) == [by_rules(state, observation) for state in STATES]


@pytest.mark.parametrize(
    ("pick", "order"),
    [
        # u = -1, 0, 1 are 0, 1, 2 above the low end: 00, 01, 10 read from the least bit are 0, 2, 1.
        ("lsb_first", [(-1, 0), (-1, 1), (1, 0), (1, 1), (0, 0), (0, 1)]),
        ("lowest", [(-1, 0), (-1, 1), (0, 0), (0, 1), (1, 0), (1, 1)]),
        ("highest", [(1, 1), (1, 0), (0, 1), (0, 0), (-1, 1), (-1, 0)]),
    ],
)
def test_pick_orders_by_hand(tmp_path, pick, order):
    system = system_of(tmp_path, terminal="false", when="true", reach="true", through="true", pick=pick)
    assert [(each["u"], each["w"]) for each in input_choices(system, pick)] == order


def test_the_published_order_of_speeds(root):
    # 0..10 in four bits, the least first: 0, 8, 4, 2, 10, 6, 1, 9, 5, 3, 7.
    system = read_model(root / "models/car_pedestrian.toml").instantiate()
    assert [each["speed"] for each in input_choices(system, "lsb_first")] == [0, 8, 4, 2, 10, 6, 1, 9, 5, 3, 7]


def test_a_planner_that_is_computed_asks_what_its_formula_speaks_of(tmp_path):
    system = system_of(tmp_path, terminal="false", when="true", reach="true", through="true", pick="lowest")
    deaf, formula = replace(system.planners["mover"], rules=(), runs=()), parse_formula("G !(ped & x = 2)")
    computed = replace(deaf, kind="synthesis")
    cases = [(deaf, formula), (computed, None), (computed, formula)]
    assert [questions_of(system, *each).classes for each in cases] == [set(), set(), {"ped"}]


def reach_step(room, order):
    """state -> next state of the run towards `reach`, by rounds over sets; None where it does not lead on."""
    goal = {state for state in STATES if CONDITIONS[room["reach"]](*state)}
    terminal = {state for state in STATES if CONDITIONS[room["terminal"]](*state)}
    through = {state for state in STATES if CONDITIONS[room["through"]](*state)} - terminal
    leading = set(goal)
    while True:
        more = {s for s in through if any(moved(s, *inputs) in leading for inputs in order)} | leading
        if more == leading:
            break
        leading = more
    step = dict.fromkeys(STATES)
    for state in leading:
        step[state] = next((moved(state, *inputs) for inputs in order if moved(state, *inputs) in leading), None)
    return {state: state if state in goal else step[state] for state in STATES}


@given(ROOMS)
def test_runs_are_followed_where_the_state_lies_on_them(tmp_path_factory, room):
    system = system_of(tmp_path_factory.mktemp("rooms"), **room)
    space, planner = StateSpace(system.variables), system.planners["mover"]
    starts = np.array([0, 4, 7, 14])
    found = runs_behaviour(
        system, space, planner, OBSERVATIONS, starts, np.array(space.where(system.terminal), dtype=bool)
    )
    assert found.memory_of_start.tolist() == [0, 1, 2, 3]
    order = [(each["u"], each["w"]) for each in input_choices(system, room["pick"])]
    reaching = reach_step(room, order)
    setting = {(x, y): moved((x, y), 1 - y, y % 2) for x, y in STATES}
    for memory, start in enumerate(starts):
        for column, seen in enumerate(OBSERVATIONS):
            on_run = {}
            for name, step in (("reach", reaching), ("set", setting)):
                state, on_run[name] = STATES[start], set()
                while state is not None and state not in on_run[name]:
                    on_run[name].add(state)
                    state = step[state]
            expected = []
            for state in STATES:
                run = None
                if "ped" in seen and CONDITIONS[room["when"]](*state):
                    run, step = "reach", reaching
                elif "obs" in seen:
                    run, step = "set", setting
                follows = run is not None and state in on_run[run] and step[state] is not None
                expected.append(step[state] if follows else by_rules(state, seen))
            assert in_states(found.following[memory, :, column].tolist()) == expected


def test_a_run_of_100000_steps_is_followed_at_once_to_its_end_in_the_first_state(tmp_path):
    path = tmp_path / "road.toml"
    path.write_text(
        """
        initial = "x = 100000"
        [variables]
        x = { range = [0, 100000], next = "max(x - 1, 0)" }
        [environments]
        empty = [{ class = "empty", distance_m = 1 }]
        [planners.driver]
        kind = "runs"
        runs = [{ when = "true", reach = "x = 0", through = "true" }]
        rules = []
        """
    )
    system = read_model(path).instantiate()
    space = StateSpace(system.variables)
    nowhere = np.zeros(space.size, dtype=bool)
    found = runs_behaviour(system, space, system.planners["driver"], (EMPTY,), np.array([100_000]), nowhere)
    assert np.array_equal(found.following[0, :, 0], np.maximum(np.arange(100_001) - 1, 0))
