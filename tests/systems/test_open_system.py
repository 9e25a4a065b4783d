"""A system without its planner, against a plain enumeration of a world that draws within intervals and decides."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from verifier.base.errors import NoAnswerError, UsageError
from verifier.language.expressions import parse_expression
from verifier.perception.confusion import EMPTY, ConfusionMatrices, rates
from verifier.systems.open_system import is_seen, open_system
from verifier.systems.reader import read_model
from verifier.systems.scene import SkeletonOptions
from verifier.systems.settings import Limits

# A pedestrian is reported 3 times in 4, and 1 time in 8 where there is none.
MATRICES = ConfusionMatrices("class", (frozenset({"ped"}), EMPTY), np.array([0.0, 10]), np.array([[[3, 1], [1, 7]]]))
WINDY = """
initial = "x = 0"
terminal = "x = 3"
admissible = "x + go <= 3"
[constants]
most = 0.5
[variables]
x = { range = [0, 3], next = "x + go + ite(go = 3, gust, 0)" }
y = { range = [0, 2], next = "ite(push = 1, gust, max(y - gust, 0))" }
[inputs]
go = { range = [0, 3], default = 0 }
[world]
push = { range = [0, 2], admissible = "ite(x = 2, push = 1, push = 0 | push = 1 & y > 0)" }
gust = { range = [0, 1], probability = { 0 = ["ite(y = 0, 1, 0.25)", "ite(calm, 1, most)"], 1 = "rest" } }
[labels]
calm = "y = 0"
[environments]
ped = [{ class = "ped", distance_m = 5 }]
[environments.nobody]
objects = [{ class = "empty", distance_m = 5 }]
[planners.p]
rules = [{ when = "sees(ped)", set = { go = 1 } }, { set = {} }]
"""
OUTCOMES = list(itertools.product(range(3), range(2)))  # push, gust


def systems_of(folder, *changes, text=WINDY):
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "m.toml").write_text(text)
    model = read_model(folder / "m.toml")
    return {name: model.inside(name).instantiate() for name in ("ped", "nobody")}


def moves_of(x, y):
    """Outcome -> chance for each thing that the world may do in a state."""
    ends = {1: Fraction(1)} if y == 0 else {1: Fraction(1, 4), 2: Fraction(1, 2)}
    pushes = [1] if x == 2 else [0, 1] if y > 0 else [0]
    return [
        {outcome: chance for outcome, chance in (((push, 0), calm), ((push, 1), 1 - calm)) if chance}
        for push in pushes
        for calm in ends.values()
    ]


def led(x, y, go):
    """Outcome -> the next state, as the first that can come where it cannot; -1 where x would be too large."""
    can = list(dict.fromkeys(outcome for move in moves_of(x, y) for outcome in move))
    if x + go > 3 or (go == 3 and any(gust for _, gust in can)):
        return dict.fromkeys(OUTCOMES, -1)
    to = {(push, gust): (x + go, gust if push == 1 else max(y - gust, 0)) for push, gust in OUTCOMES}
    return {outcome: to[outcome if outcome in can else min(can)] for outcome in OUTCOMES}


def test_every_state_move_and_chance_of_a_world_that_draws_and_decides(tmp_path):
    systems = systems_of(tmp_path, ('"x = 0"', '"x = 0 & y != 1"'))
    system = open_system(systems, MATRICES)
    states = list(zip(*(system.valuations[name].tolist() for name in ("x", "y")), strict=True))
    assert [states[start] for start in system.starts] == [(0, 0), (0, 2)]
    met = frontier = {(0, 0), (0, 2)}
    while frontier:
        moving = ((x, y) for x, y in frontier if x < 3)
        frontier = {to for state in moving for go in range(4) for to in led(*state, go).values()} - met - {-1}
        met = met | frontier
    assert set(states) == met
    assert system.state_count == len(states) == len(met)
    assert system.following.shape == (len(met), 4, len(OUTCOMES))
    for number, (x, y) in enumerate(states):
        assert system.ended[number] == (x == 3)
        moves = [{(0, 0): Fraction(1)}] if x == 3 else moves_of(x, y)
        chances = {tuple(float(move.get(outcome, 0)) for outcome in OUTCOMES) for move in moves}
        assert set(map(tuple, system.chances[number].tolist())) == chances
        for go in range(4):
            wanted = [(x, y)] * len(OUTCOMES) if x == 3 else list(led(x, y, go).values())
            found = system.following[number, go].tolist()
            assert [to if to == -1 else states[to] for to in found] == wanted, (x, y, go)
    assert system.chances.shape[1] == 4  # two decisions, with two ends of the interval


def test_what_is_reported_and_what_holds_in_each_environment(tmp_path):
    of_nobody = ("[environments.nobody]", '[environments.nobody]\nlabels = { short = "x <= 2" }')
    text = WINDY.replace('calm = "y = 0"', 'calm = "y = 0"\nshort = "x <= 1"')
    system = open_system(systems_of(tmp_path, of_nobody, text=text), MATRICES)
    assert system.environments == ("ped", "nobody")
    assert [len(observation) for observation in system.observations] == [0, 1]
    told = system.reported(rates(MATRICES.counts))
    for of_environment, seen in zip(told, (3 / 4, 1 / 8), strict=True):
        for ended, row in zip(system.ended.tolist(), of_environment.tolist(), strict=True):
            assert row == ([0, 0] if ended else [1 - seen, seen])
    near = parse_expression("ped & short | empty & short & x > 0")
    x = system.valuations["x"]
    assert system.mask_of(near, "ped").tolist() == (x <= 1).tolist()
    assert system.mask_of(near, "nobody").tolist() == ((x == 1) | (x == 2)).tolist()


def test_environments_that_begin_or_draw_otherwise_are_refused(tmp_path):
    systems = systems_of(tmp_path)
    initial = SkeletonOptions(initial=parse_expression("ped & y = 0 | !ped & y = 1"))
    with pytest.raises(UsageError, match="runs begin in different states there"):
        open_system(systems, MATRICES, initial)
    labels = ("[planners.p]", 'labels = { calm = "y != 1" }\n[planners.p]')
    with pytest.raises(UsageError, match="'world' differs there: name one of them"):
        open_system(systems_of(tmp_path, labels), MATRICES)


def test_staying_is_a_choice_where_a_rule_stays(tmp_path):
    systems = systems_of(tmp_path, ("set = { go = 1 }", "stay = true"), text=PLAIN)
    system = open_system({"ped": systems["ped"]}, MATRICES)
    assert sorted(system.valuations["x"].tolist()) == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    x = system.valuations["x"].reshape(-1, 1)
    to = np.add(x, [0, 1, 2, 3, 0])
    leads = np.where(x == 3, x, np.where(to > 3, -1, to))
    found = system.following[..., 0]
    assert np.where(found < 0, -1, x[found, 0]).tolist() == leads.tolist()
    assert system.chances.tolist() == [[[1]]] * 12
    assert [system.valuations["x"][start] for start in system.starts] == [0] * 3


def test_limits_count_what_is_reached(tmp_path):
    systems = systems_of(tmp_path)
    count = open_system(systems, MATRICES).state_count
    moves = count * 4 * len(OUTCOMES) * 40
    options = SkeletonOptions(limits=Limits(states=count, memory_bytes=moves))
    assert open_system(systems, MATRICES, options).state_count == count
    for limits, message in (
        (Limits(states=count - 1), rf"more than {count - 1} states are reachable \(stopped at depth 2; 2 new"),
        (Limits(memory_bytes=moves - 1), "what all inputs lead to needs about"),
    ):
        with pytest.raises(NoAnswerError, match=message):
            open_system(systems, MATRICES, SkeletonOptions(limits=limits))


PLAIN = WINDY[: WINDY.index("[world]")].replace(" + ite(go = 3, gust, 0)", "").replace(
    "ite(push = 1, gust, max(y - gust, 0))", "y"
) + WINDY[WINDY.index("[labels]") :]  # fmt: skip
DRAWN = WINDY.replace('["ite(y = 0, 1, 0.25)", "ite(calm, 1, most)"]', '"most"').replace(
    'push = { range = [0, 2], admissible = "ite(x = 2, push = 1, push = 0 | push = 1 & y > 0)" }',
    'push = { range = [0, 2], probability = { 1 = 1 } }',
).replace(')" }', ')", hidden = false }')  # fmt: skip


@pytest.mark.parametrize(
    ("text", "of_nobody", "seen"),
    [
        (PLAIN, "", True),
        (DRAWN, "", True),
        (WINDY, "", False),  # it decides
        (PLAIN.replace("go = {", "unused = { range = [0, 1], default = 0 }\ngo = {"), "", True),
        (PLAIN.replace("y = { range = [0, 2]", "y = { range = [0, 2], hidden = true"), "", False),
        (DRAWN.replace('gust, 0)", hidden = false', 'gust, 0)"'), "", False),  # what the world moves is
        (PLAIN.replace("range = [0, 3]", 'range = [0, "3 + most - most"]'), "set = { most = 1 }", True),
        (PLAIN.replace("range = [0, 3]", 'range = [0, "3 + 2 * most"]'), "set = { most = 1 }", False),
        (PLAIN, 'next = { y = "2 - y" }', False),
        (PLAIN, 'initial = "y = 0"', False),
        (PLAIN, 'terminal = "x = 2"', False),
        (PLAIN, "weight = 2", True),
        (PLAIN, "set = { most = 1 }", True),
        (DRAWN, "set = { most = 1 }", False),
    ],
)
def test_planners_see_all_where_nothing_is_hidden_and_environments_move_alike(tmp_path, text, of_nobody, seen):
    systems = systems_of(tmp_path, ("[planners.p]", f"{of_nobody}\n[planners.p]"), text=text)
    assert is_seen(systems) is seen
