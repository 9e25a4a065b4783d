"""Reachable states by hand: what is met counts, ranges do not; defaults, the else rule, tables of environments."""

from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from verifier.base.errors import InputError, NoAnswerError, UsageError
from verifier.chains.chain import markov_chain
from verifier.language.expressions import parse_expression
from verifier.language.expressions.syntax import Number, Operation, atoms_in
from verifier.perception.confusion import EMPTY, ConfusionMatrices
from verifier.systems import exploration
from verifier.systems.exploration import Known, where_possible
from verifier.systems.reader import read_model
from verifier.systems.scene import SkeletonOptions
from verifier.systems.settings import Limits
from verifier.systems.skeleton import build_skeleton

PED = frozenset({"ped"})
# Nearer than 10 m a pedestrian is seen 3 times in 4, beyond 1 time in 2.
MATRICES = ConfusionMatrices(
    "class", (PED, EMPTY), np.array([0.0, 10, np.inf]), np.array([[[3, 0], [1, 1]], [[1, 0], [1, 1]]])
)

WALK = """
initial = "x = 0 & t = 0"
terminal = "x >= goal"
[constants]
goal = 2
[variables]
x = { range = [0, 1000000000], next = "x + step" }
t = { range = [0, 1000000000], next = "t + 1" }
[inputs]
step = { range = [0, 2], default = "1 + x % 2" }
[labels]
late = "t > 2"
[environments]
ped = [{ class = "ped", distance_m = "12 - 4 * x" }]
[environments.far]
objects = [{ class = "ped", distance_m = "12 + x" }]
set = { goal = 1 }
next = { t = "min(t + 2, 3)" }
labels = { late = "t > 0" }
[planners.walker]
rules = [
    { when = "sees(ped) & x = 0", set = { step = 0 } },
    { when = "t >= 1", set = {} },
    { set = { step = "ite(x > 0, 2 // x, 1)" } },
]
"""


def model_of(folder, *changes, text=WALK):
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = folder / "walk.toml"
    path.write_text(text)
    return read_model(path)


def skeleton_of(model, environment="ped", **options):
    system = model.inside(environment).instantiate()
    return build_skeleton(system, system.planners["walker"], environment, MATRICES, SkeletonOptions(**options))


def rows_of(skeleton):
    chain = markov_chain(skeleton, MATRICES.counts, {}, exact=True)
    states = list(zip(*(chain.valuations[name].tolist() for name in ("x", "t")), strict=True))
    return {
        state: {states[chain.indices[k]]: chain.fractions[k] for k in range(*chain.indptr[number : number + 2])}
        for number, state in enumerate(states)
    }


@pytest.fixture
def short(tmp_path):
    # Without an end of t the walker could stand at 0 for ever; here the run ends at t = 3.
    return model_of(tmp_path, ('"x >= goal"', '"x >= goal | t = 3"'))


def test_a_chain_of_10_to_the_18_valuations_is_what_can_be_reached(short):
    # At x = 0 (12 m) a report, 1/2, means to stay; else one step. From x = 1 the default is two steps, whatever is
    # reported: to 3, which is beyond the goal. At t >= 1 the second rule applies: step = 1 + x % 2.
    half = Fraction(1, 2)
    assert rows_of(skeleton_of(short)) == {
        (0, 0): {(0, 1): half, (1, 1): half},
        (0, 1): {(0, 2): half, (1, 2): half},
        (0, 2): {(0, 3): half, (1, 3): half},
        (0, 3): {(0, 3): 1},
        (1, 1): {(3, 2): 1},
        (1, 2): {(3, 3): 1},
        (1, 3): {(1, 3): 1},
        (3, 2): {(3, 2): 1},
        (3, 3): {(3, 3): 1},
    }


def test_an_environment_has_its_own_constants_moves_and_labels(short):
    # The goal is 1 there, time goes by twos up to 3, and the pedestrian stands beyond 10 m.
    skeleton, half = skeleton_of(short, "far"), Fraction(1, 2)
    assert rows_of(skeleton) == {
        (0, 0): {(0, 2): half, (1, 2): half},
        (0, 2): {(0, 3): half, (1, 3): half},
        (0, 3): {(0, 3): 1},
        (1, 2): {(1, 2): 1},
        (1, 3): {(1, 3): 1},
    }
    assert skeleton.mask_of(parse_expression("late")).tolist() == [False, True, True, True, True]
    late = skeleton_of(short).mask_of(parse_expression("late"))
    assert late.tolist() == [False, False, False, True, False, False, True, False, True]


def test_initial_and_terminal_of_an_environment(tmp_path):
    table = '[environments.far]\ninitial = "t = 7"\nterminal = "t = 8"'
    model = model_of(tmp_path, ("[environments.far]", table), ("x = 0 & t = 0", "x = 0 & t >= 6 & t <= 8"),
                     ("min(t + 2, 3)", "t + 1"))  # fmt: skip
    assert rows_of(skeleton_of(model, "far")).keys() == {(0, 7), (0, 8), (1, 8)}


def test_settings_stand_above_what_an_environment_sets(short):
    assert short.inside("far").instantiate().constants["goal"] == 1
    assert short.inside("far").instantiate({"goal": 5}).constants["goal"] == 5
    assert short.inside("ped") is short


def test_what_stands_there_and_what_it_weighs_are_of_the_environment(tmp_path):
    changes = (
        ('next = "t + 1"', 'next = "t + ite(present(ped), 1, 2)"'),
        ('terminal = "x >= goal"', 'terminal = "x >= goal"\nweight = 2'),
    )
    model = model_of(tmp_path, *changes)
    assert not any(atoms_in(variable.next) for variable in model.inside("ped").variables)
    assert model.inside("far").weight == Number(2)
    assert "weight" not in model.inside("far").moved
    heavy = model_of(tmp_path, *changes, ("[environments.far]", "[environments.far]\nweight = 3"))
    assert heavy.inside("far").weight == Operation("*", (Number(2), Number(3)))
    assert heavy.inside("far").moved["weight"] == "environments.far.weight"
    assert heavy.inside("ped").weight == Number(2)


def test_looking_at_all_valuations_and_going_step_by_step_agree(tmp_path, monkeypatch):
    small = model_of(tmp_path, ('"x >= goal"', '"x >= goal | t = 9"'), text=WALK.replace("1000000000", "40"))
    whole = rows_of(skeleton_of(small))
    monkeypatch.setattr(exploration, "_all_at_once", lambda scene: None)
    assert rows_of(skeleton_of(small)) == whole


def test_a_fault_in_a_state_that_nothing_reaches_is_no_fault(tmp_path):
    # 12 // (3 - x) has no value at x = 3, where no run goes on.
    changes = [("x + step", "x + min(step, 12 // (3 - x))"), ('"x >= goal"', '"x >= goal | t = 3"')]
    small = model_of(tmp_path, *changes, text=WALK.replace("1000000000", "5"))
    assert len(rows_of(skeleton_of(small))) == 9
    with pytest.raises(InputError, match="division by zero"):
        skeleton_of(small, initial=None, endless=True)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "{ set = { step",
            '{ stay = true },\n    { set = { step',
            "walk.toml:21: planners.walker.rules[3]: rules[3] is never reached: rules[2] has no 'when'",
        ),
        (", default = \"1 + x % 2\"", "", "expected a value for step; got none"),
        ('"1 + x % 2"', '"1 + sees(ped)"', "expected a number, found a condition"),
        ('"1 + x % 2"', "true", "expected a number, found a condition"),
        ("set = { goal = 1 }", "set = { gaol = 1 }", "unknown constant 'gaol'"),
        ("set = { goal = 1 }", 'set = { goal = "x" }', "'x' is a variable, which cannot be used here"),
        ("next = { t =", "next = { u =", "unknown variable 'u'"),
        ("labels = { late", "labels = { lat", "unknown label 'lat'"),
        ("set = { goal = 1 }", "sett = { goal = 1 }", "unknown key 'sett'"),
        ('objects = [{ class = "ped", distance_m = "12 + x" }]', "", "'objects'"),
    ],
)  # fmt: skip
def test_models_with_mistakes_in_the_new_keys_are_refused(tmp_path, monkeypatch, old, new, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        model_of(tmp_path, (old, new))
    assert message in str(caught.value)


def test_no_rule_and_no_default(tmp_path):
    text = WALK.replace(', default = "1 + x % 2"', "").replace('{ when = "t >= 1", set = {} },', "")
    model = model_of(tmp_path, ("{ set = { step", '{ when = "x = 1", set = { step'), text=text)
    with pytest.raises(
        InputError, match=r"no rule applies in state x = 0, t = 0 on report \{\}, and 'step' has no default"
    ):
        skeleton_of(model)


def test_a_next_value_out_of_range_names_the_state(tmp_path):
    model = model_of(tmp_path, ('"x + step"', '"x - 2 * step"'))
    with pytest.raises(InputError, match=r"in state x = 0, t = 0 the next 'x' is -2, outside 0..1000000000"):
        skeleton_of(model)


def test_more_states_than_allowed(tmp_path):
    model = model_of(tmp_path, ('"x >= goal"', '"false"'), ("x % 2", "(x + t) % 2"))
    text = r"more than 100 states are reachable \(stopped at depth \d+; \d+ new in the last step\)"
    with pytest.raises(NoAnswerError, match=text) as caught:
        skeleton_of(model, limits=Limits(states=100))
    assert caught.value.hint.startswith("the variables with most values: ")
    with pytest.raises(
        NoAnswerError, match=r"on \d+ reachable states needs about [\d.]+ KiB; the limit is 97\.66 KiB"
    ):
        skeleton_of(model, limits=Limits(memory_bytes=100_000))


def test_limits_count_what_is_reached_where_the_space_is_small(tmp_path, monkeypatch):
    small = model_of(tmp_path, ('"x >= goal"', '"x >= goal | t = 3"'), text=WALK.replace("1000000000", "40"))
    assert len(rows_of(skeleton_of(small, limits=Limits(states=9)))) == 9
    with pytest.raises(NoAnswerError, match=r"more than 8 states are reachable \(stopped at depth 3; 3 new"):
        skeleton_of(small, limits=Limits(states=8))
    needed = 9 * (120 + 2 * 20 + 2 * 80)  # two variables, two observations
    assert len(rows_of(skeleton_of(small, limits=Limits(memory_bytes=needed)))) == 9
    with pytest.raises(NoAnswerError, match=r"on 9 reachable states needs about 2\.812 KiB"):
        skeleton_of(small, limits=Limits(memory_bytes=needed - 1))
    monkeypatch.setattr(exploration, "_all_at_once", lambda scene: None)  # and step by step
    assert len(rows_of(skeleton_of(small, limits=Limits(states=9)))) == 9


def test_what_is_known_lies_in_few_parts_each_more_than_twice_as_large_as_the_next():
    rng, known, every = np.random.default_rng(3), Known(), np.arange(0)
    for size in rng.integers(1, 40, 60).tolist():
        fresh = np.setdiff1d(rng.integers(0, 5000, size), every)
        every = np.union1d(every, fresh)
        known.add(fresh)
        assert all(len(before) > 2 * len(after) for before, after in pairwise(known.parts))
        assert known.count == len(every)
        assert np.array_equal(known.unknown_among(np.arange(5000)), np.setdiff1d(np.arange(5000), every))
    known = Known()
    for first, size in ((0, 9), (9, 4), (13, 1)):
        known.add(np.arange(first, first + size))
    assert [len(part) for part in known.parts] == [9, 4, 1]
    known.add(np.array([14]))
    assert np.array_equal(known.parts, [np.arange(15)])


def test_initial_is_solved_by_its_conjuncts(tmp_path, monkeypatch):
    model = model_of(tmp_path, ("x = 0 & t = 0", "x <= 2 * 3 & 4 <= x & x != 5 & t = 10 / 5"))
    skeleton = skeleton_of(model)
    starts = [{name: int(value[k]) for name, value in skeleton.valuations.items()} for k in skeleton.starts]
    assert starts == [{"x": 4, "t": 2}, {"x": 6, "t": 2}]
    for nothing in ("x = 0.5 & t = 0", "x >= 7 & x <= 6 & t = 0", "x = 0 & t = 0 & x != t"):
        with pytest.raises(UsageError, match="no state satisfies the initial condition"):
            skeleton_of(model, initial=parse_expression(nothing))
    monkeypatch.setattr("verifier.systems.scene.MOST_CANDIDATES", 3)
    assert len(skeleton_of(model).starts) == 2
    monkeypatch.setattr("verifier.systems.scene.MOST_CANDIDATES", 2)
    with pytest.raises(InputError, match=r"initial leaves 3 candidates; fix variables: x = 4"):
        skeleton_of(model)
    monkeypatch.undo()
    with pytest.raises(InputError, match=r"initial leaves 1e\+07 candidates; fix variables: t = 1"):
        skeleton_of(model_of(tmp_path, ("x = 0 & t = 0", "x = 0 & t >= 1 & t <= 10000001")))
    wide = model_of(tmp_path, ("x = 0 & t = 0", "x = 0"))
    with pytest.raises(InputError, match=r"initial leaves 1e\+09 candidates; fix variables: t = 0"):
        skeleton_of(wide)


@pytest.mark.parametrize("comes", [True, False])
def test_what_is_impossible_leads_where_the_first_that_is_possible_leads(comes):
    # Of three observations with two outcomes each; in the first state the first outcome and the first observation
    # are impossible, in the second the last two observations.
    possible = np.array([[True, False, False], [False, True, True]])
    scene = SimpleNamespace(
        observations=range(3),
        world=SimpleNamespace(outcomes=range(2), can_occur=np.array([[True, True], [False, True]])),
        comes_and_goes=comes,
        channel_at=lambda values, ended, moved: (SimpleNamespace(possible=possible), moved),
    )
    moved = np.array([[0, 1, 2, 3, 4, 5], [10, 11, 12, 13, 14, 15]])
    led = where_possible(scene, moved, {}, np.array([1, 0])).tolist()
    assert led == ([[3, 3, 3, 3, 5, 5], [10, 11] * 3] if comes else [[1, 1, 3, 3, 5, 5], [10, 11, 12, 13, 14, 15]])
    assert where_possible(scene, moved[:0], {}, np.zeros(0, dtype=np.int64)).shape == (0, 6)


def test_a_space_beyond_64_bits(tmp_path):
    more = "".join(f'{name} = {{ range = [-3, 2000000000], next = "{name} + 1" }}\n' for name in "abc")
    text = WALK.replace("[inputs]", f"{more}[inputs]").replace('t = 0"', 't = 0 & a = 1 & b = 2 & c = -3"')
    skeleton = skeleton_of(model_of(tmp_path, ('"x >= goal"', '"x >= goal | t = 3"'), text=text))
    assert skeleton.state_count == 9
    assert np.array_equal(skeleton.valuations["c"], skeleton.valuations["t"] - 3)
    with pytest.raises(NoAnswerError) as caught:
        skeleton_of(model_of(tmp_path, ('"x >= goal"', '"x >= goal | t = 3"'), text=text), limits=Limits(states=8))
    # t, a, b and c have four values each, and x three; t comes first.
    assert "the variables with most values: t 4, a 4, b 4; narrow them" in caught.value.hint
