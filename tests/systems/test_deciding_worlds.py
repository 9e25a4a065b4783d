"""Worlds that decide: against the reference's decision process, by hand, and refusals."""

import importlib.util
import json
import math
from fractions import Fraction as Fr

import numpy as np
import pytest
from interval_iteration import optimal_probabilities
from matrix_documents import write_matrices
from world_specs import matrices_of

from verifier.base.errors import InputError, LimitError, NoAnswerError
from verifier.chains.chain import decision_process
from verifier.checking.process import StormProcess
from verifier.language.expressions import parse_expression
from verifier.language.ltl import parse_formula, to_storm
from verifier.perception.confusion import read_confusion
from verifier.systems.reader import read_model
from verifier.systems.scene import SkeletonOptions, set_scene
from verifier.systems.settings import Limits
from verifier.systems.skeleton import build_skeleton
from verifier.systems.space import World, _extreme_points
from verifier.systems.strategies import build_decisions

# Each formula over state conditions, as the spec of the reference has them.
CROSSING = {
    "no_hit": ("G !hit", {"hit": "hit"}, "Pmin"),
    "can_hit": ("F hit", {"hit": "hit"}, "Pmax"),
    "lucky": ("G !hit", {"hit": "hit"}, "Pmax"),
}


def process_of(model, matrices, conditions, exact=False, **options):
    system = read_model(model).inside("ped").instantiate()
    planner, options = next(iter(system.planners.values())), SkeletonOptions(**options)
    built = build_decisions(set_scene(system, planner, "ped", matrices, options))
    labels = {name: built.choices.mask_of(parse_expression(text)) for name, text in conditions.items()}
    return decision_process(built, matrices.counts, labels, exact=exact)


def test_a_pedestrian_who_waits_and_stumbles_as_badly_as_it_can(shared, tmp_path):
    folder = shared / "oracles/worlds/crossing_adversarial"
    expected = {each["requirement"]: each for each in json.loads((folder / "values.json").read_text())["values"]}
    matrices = read_confusion(matrices_of(folder, tmp_path)).matrices
    with StormProcess() as storm:
        for name, (formula, conditions, asked) in CROSSING.items():
            process = process_of(folder / "model.toml", matrices, conditions)
            wanted = float(expected[name]["value"])
            assert process.state_count == expected[name]["states"] == 317
            node = parse_formula(formula)
            found = storm.check(process, [to_storm(node)], operator=f"{asked}=?")[0].value
            assert math.isclose(found[0], wanted, rel_tol=1e-9), name
            low, high = optimal_probabilities(process, node, asked == "Pmax")
            assert low[0] - 1e-9 <= wanted <= high[0] + 1e-9


def test_choices_are_those_of_the_reference(shared, tmp_path):
    folder = shared / "oracles/worlds/crossing_adversarial"
    matrices = read_confusion(matrices_of(folder, tmp_path)).matrices
    process = process_of(folder / "model.toml", matrices, {}, exact=True)

    spec = importlib.util.spec_from_file_location("world_reference", shared / "oracles/worlds/reference.py")
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    slow = reference.Model(folder, "ped")
    places = [(x, v, y) for x in range(41) for v in range(5) for y in range(7)]
    conditions = [reference.compiled(f"x = {x} & v = {v} & y = {y}") for x, v, y in places]
    rows, _, truths, _ = slow.explore("x = 0 & v = 4 & y = 0", conditions)
    place = [places[truth.index(True)] for truth in truths]
    wanted = {
        place[k]: {frozenset((place[t], p) for t, p in row.items()) for row in own} for k, own in enumerate(rows)
    }
    mine = list(zip(*(process.valuations[name].tolist() for name in "xvy"), strict=True))
    found = {}
    for state, where in enumerate(mine):
        for choice in range(*process.choice_starts[state : state + 2]):
            ends = range(*process.indptr[choice : choice + 2])
            found.setdefault(where, set()).add(
                frozenset((mine[process.indices[k]], process.fractions[k]) for k in ends)
            )
    assert found == wanted


MODEL = """
initial = "x = 0 & y = 0"
terminal = "x = 2"
[variables]
x = { range = [0, 2], next = "x + 1" }
y = { range = [0, 2], next = "min(y + push * slips, 2)" }
[world]
push = { range = [0, 2], admissible = "push <= x + 1" }
slips = { range = [0, 1], probability = { 1 = ["0.1", "0.2 * push"], 0 = "rest" } }
[environments]
ped = [{ class = "ped", distance_m = 5 }]
[planners.walker]
rules = [{ when = "sees(ped)", set = {} }, {}]
"""


def written(folder, text=MODEL):
    (folder / "model.toml").write_text(text)
    matrices = write_matrices(folder / "cm.json", [[1, 0], [1, 1]], false_positives="counted")
    return folder / "model.toml", read_confusion(matrices).matrices


def test_intervals_may_depend_on_what_is_decided(tmp_path):
    # push = 0 would have the interval 0.1 to 0, so it is not admissible here. From x = 0 push = 1 is the only choice,
    # which slips with 0.1 to 0.2; from x = 1 push = 2 slips with 0.1 to 0.4.
    text = MODEL.replace("push <= x + 1", "push >= 1 & push <= x + 1")
    path, matrices = written(tmp_path, text)
    process = process_of(path, matrices, {"far": "y = 2"}, exact=True)
    node = parse_formula("F far")
    # y = 2 at the end: slip twice, or once with push = 2.
    least, most = Fr(1, 10) * Fr(1, 10), Fr(1, 5) * Fr(2, 5) + Fr(4, 5) * Fr(2, 5)
    for greatest, wanted in ((False, least), (True, most)):
        low, high = optimal_probabilities(process, node, greatest)
        assert low[0] <= float(wanted) + 1e-12
        assert high[0] >= float(wanted) - 1e-12
    assert np.all(np.diff(process.choice_starts) >= 1)


@pytest.mark.parametrize(
    ("ends", "points"),
    [
        ([(Fr(1, 10), Fr(1, 5)), (Fr(0), Fr(1))], {(Fr(1, 10), Fr(9, 10)), (Fr(1, 5), Fr(4, 5))}),
        ([(Fr(1, 3), Fr(1, 3)), (Fr(2, 3), Fr(2, 3))], {(Fr(1, 3), Fr(2, 3))}),
        ([(Fr(0), Fr(1))] * 3, {(Fr(1), Fr(0), Fr(0)), (Fr(0), Fr(1), Fr(0)), (Fr(0), Fr(0), Fr(1))}),
        ([(Fr(1, 2), Fr(3, 4))] * 2, {(Fr(1, 2), Fr(1, 2))}),
        ([(Fr(0), Fr(1))], {(Fr(1),)}),
    ],
)
def test_extreme_points_by_hand(ends, points):
    assert set(_extreme_points(ends)) == points


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("push <= x + 1", "push > 2", "in state x = 0, y = 0 the world has no admissible move; terminal states"),
        ("push <= x + 1", "true", "the interval of 'slips = 1' is 0.1 to 0"),
        ('["0.1", "0.2 * push"], 0 = "rest"', '0.6, 0 = [0.45, 1]',
         "no probabilities of 'slips' lie in the intervals: the lower ends sum to 1.05"),
        ('["0.1", "0.2 * push"], 0 = "rest"', '[0.1, 0.2], 0 = [0.1, 0.5]',
         "no probabilities of 'slips' lie in the intervals: the upper ends sum to 0.7"),
        ('["0.1", "0.2 * push"]', '[0.5, 1.5]', "the probability of 'slips = 1' is 1.5, outside 0..1"),
        ('["0.1", "0.2 * push"]', '[-0.5, 0.5]', "the probability of 'slips = 1' is -0.5, outside 0..1"),
        ("push <= x + 1", "slips = 0", "'slips' is an input of the world, which cannot be used here"),
    ],
)  # fmt: skip
def test_what_a_world_cannot_decide_is_refused(tmp_path, old, new, message):
    path, matrices = written(tmp_path, MODEL.replace(old, new))
    with pytest.raises(InputError) as caught:
        process_of(path, matrices, {})
    assert message in str(caught.value)


def test_there_is_no_single_chain(tmp_path):
    path, matrices = written(tmp_path)
    system = read_model(path).inside("ped").instantiate()
    with pytest.raises(NoAnswerError, match="the world decides 'push', 'slips': a probability has"):
        build_skeleton(system, system.planners["walker"], "ped", matrices)


def test_too_many_ends_of_intervals_are_refused_before_they_are_combined(tmp_path):
    values = ", ".join(f"{k} = [0.001, 0.1]" for k in range(40))
    path, matrices = written(tmp_path, MODEL.replace('1 = ["0.1", "0.2 * push"], 0 = "rest"', values).replace(
        "slips = { range = [0, 1]", "slips = { range = [0, 39]"))  # fmt: skip
    with pytest.raises(
        LimitError, match=f"'slips' has {40 * 2**40} combinations of the ends of its intervals; at most"
    ):
        process_of(path, matrices, {})


def test_too_many_combinations_are_refused_before_they_are_made(tmp_path):
    path, matrices = written(tmp_path, MODEL.replace("push = { range = [0, 2]", "push = { range = [0, 1000000000]"))
    with pytest.raises(LimitError, match="the world has 1000000001 combinations of decided values; at most 10000"):
        process_of(path, matrices, {})


def test_as_many_combinations_as_allowed_are_tried(tmp_path, monkeypatch):
    path, matrices = written(tmp_path, MODEL.replace("push <= x + 1", "push >= 1 & push <= x + 1"))
    # Two values, each of which may be what is left while the other is at one of two ends; three values are decided.
    monkeypatch.setattr("verifier.systems.space.MOST_COMBINATIONS", 8)
    assert process_of(path, matrices, {}).state_count == 6
    monkeypatch.setattr("verifier.systems.space.MOST_COMBINATIONS", 7)
    with pytest.raises(LimitError, match="'slips' has 8 combinations of the ends of its intervals; at most 7"):
        process_of(path, matrices, {})
    monkeypatch.setattr("verifier.systems.space.MOST_COMBINATIONS", 3)
    assert [each["push"] for each in World(read_model(path).inside("ped").instantiate()).choices] == [0, 1, 2]


def test_it_is_told_how_far_the_states_were_followed(tmp_path):
    path, matrices = written(tmp_path, MODEL.replace("push <= x + 1", "push >= 1 & push <= x + 1"))
    with pytest.raises(NoAnswerError, match=r"more than 2 states are reachable \(stopped at depth 1; 2 new in the"):
        process_of(path, matrices, {}, limits=Limits(states=2))
    with pytest.raises(NoAnswerError, match=r"more than 5 states are reachable \(stopped at depth 2; 3 new in the"):
        process_of(path, matrices, {}, limits=Limits(states=5))


def test_what_the_world_does_in_a_choice_is_told(tmp_path):
    path, matrices = written(tmp_path, MODEL.replace("push <= x + 1", "push >= 1 & push <= x + 1"))
    system = read_model(path).inside("ped").instantiate()
    built = build_decisions(set_scene(system, system.planners["walker"], "ped", matrices))
    found = {}
    for state, place in enumerate(zip(*(built.choices.valuations[name].tolist() for name in "xy"), strict=True)):
        own = built.name[range(*built.choice_starts[state : state + 2])]
        found[place] = [", ".join(f"{key} = {value}" for key, value in built.names[k].items()) for k in own]
    ends = [f"slips = 1 with {end}" for end in (0.1, 0.2, 0.4)]  # and 0 with the rest
    before = [f"push = 1, {ends[0]}", f"push = 1, {ends[1]}"]
    behind = [*before, f"push = 2, {ends[0]}", f"push = 2, {ends[2]}"]
    assert found == {(0, 0): before, (1, 0): behind, (1, 1): behind, **{(2, y): [""] for y in range(3)}}


def test_an_outcome_is_possible_where_some_distribution_has_it(tmp_path):
    text = MODEL.replace('["0.1", "0.2 * push"]', '["0", "ite(x = 1, 0, 0.5)"]')
    world = World(read_model(written(tmp_path, text)[0]).inside("ped").instantiate())
    found = world.possible({"x": np.array([0, 1]), "y": np.array([0, 0])}, 2, choice=0)
    assert [outcome["slips"] for outcome in world.outcomes] == [1, 0]
    assert found.tolist() == [[True, True], [False, True]]
