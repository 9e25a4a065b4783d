"""Random worlds against the reference's slow reading in exact fractions: x and v after each of some steps."""

import importlib.util
import json
import random
import re
from fractions import Fraction

import numpy as np
import pytest
from matrix_documents import document_of

from verifier.base.arrays import rows_of
from verifier.chains.chain import decision_process, markov_chain
from verifier.language.expressions import parse_expression
from verifier.perception.confusion import read_confusion
from verifier.systems import exploration
from verifier.systems.reader import read_model
from verifier.systems.scene import set_scene
from verifier.systems.skeleton import build_skeleton
from verifier.systems.strategies import build_decisions

CLASSES = ("ped", "car")
STEPS = 5
FIRST = "x = 0 & v = 0", "x = 0 & v = 0 & y = 1"
PLACES = [(x, v) for x in range(10) for v in range(3)]


@pytest.fixture(scope="session")
def reference(shared):
    spec = importlib.util.spec_from_file_location("world_reference", shared / "oracles/worlds/reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def condition(rng, hidden=False):
    hidden = ["y < 2", "y = 3 | x > 2", "x + y != 4"] if hidden else []
    return rng.choice(["x < 3", "x % 2 = 0", "v = 1 | x > 4", "v != 2", "x + v < 6", "true", "true", *hidden])


def obj(rng, name, draws):
    kind, moved = f'"{rng.choice(CLASSES)}"', "y" if draws and rng.random() < 0.5 else "x"
    if rng.random() < 0.4:
        kind = f'{{ ped = "{moved} < 3", car = "{moved} >= 3" }}'
    when = f', when = "{condition(rng, draws)}"' if rng.random() < 0.6 else ""
    distance = f"({rng.randrange(9)} + {rng.randrange(3)} * {moved}) % 10"
    return f'{{ name = "{name}", class = {kind}{when}, distance_m = "{distance}" }}'


def drawing(rng):
    """Lines for what moves at random, with probabilities of 0 and 1 in some states, and the next v."""
    walk = rng.choice(
        ['0 = "ite(x < 3, 0.25, 0.5)", 1 = 0.25, 2 = "rest"', '2 = "0.2 * y", 1 = "rest"', '0 = 0.7, 2 = "0.3"']
    )
    gust = rng.choice(['1 = "0.25 * v", 0 = "rest"', '1 = "ite(y < 2, 0, 1)", 0 = "rest"', '0 = 0.5, 1 = "rest"'])
    moved = rng.choice(["(y + walk) % 4", "ite(gust = 1, 0, min(y + walk, 3))", "min(max(y - walk, 0) + gust, 3)"])
    v = rng.choice(["u", "ite(gust = 1, max(u - 1, 0), u)", "min(u + walk // 2, 2)"])
    lines = ["[world]", f"walk = {{ range = [0, 2], probability = {{ {walk} }} }}"]
    lines += [f"gust = {{ range = [0, 1], probability = {{ {gust} }} }}"]
    return [f'y = {{ range = [0, 3], next = "{moved}" }}', *lines], v


def atom(rng, names, last):
    within = rng.choice(["", ", within = 4", ", within = 10"])
    asked = [f"sees({rng.choice(CLASSES)}{within})", f"sees({rng.choice(CLASSES)})"]
    if last:
        asked.append(f"count({rng.choice(CLASSES)}{within}) {rng.choice(['>=', '='])} {rng.randrange(1, 3)}")
        asked += [
            f"report({name}{within}) {rng.choice(['=', '!='])} {rng.choice((*CLASSES, 'empty'))}" for name in names
        ]
    return rng.choice(asked)


def deciding(rng):
    """As `drawing`, where the world decides one input among those that are admissible, and the end of an interval."""
    admissible = rng.choice(["true", "walk <= 1 | x < 2", "walk != 1 | y < 2", "walk + v <= 3"])
    ends = rng.choice(["[0.1, 0.4]", "[0, 0.5]", '["0.1 * v", "0.5"]', "[0.25, 0.25]", "[0, 1]"])
    moved = rng.choice(["(y + walk) % 4", "ite(gust = 1, 0, min(y + walk, 3))"])
    lines = ["[world]", f'walk = {{ range = [0, 2], admissible = "{admissible}" }}']
    lines += [f'gust = {{ range = [0, 1], probability = {{ 1 = {ends}, 0 = "rest" }} }}']
    v = rng.choice(["u", "ite(gust = 1, max(u - 1, 0), u)"])
    return [f'y = {{ range = [0, 3], next = "{moved}" }}', *lines], v


def world(rng, draws, motion=drawing):
    """A model and a confusion document."""
    names = ["a", "b"][: rng.randrange(1, 3)]
    frames, viewed = rng.choice([1, 1, 2]), rng.random() < 0.4
    reading = rng.choice(["last", "last", "any"])
    memory, tracker = rng.random() < 0.5, rng.random() < 0.5 and frames == 1
    moving, v = motion(rng) if draws else ([], "u")
    lines = [f"step_s = {frames}", "frame_s = 1", f'initial = "{FIRST[draws]}"', 'terminal = "x >= 6"']
    lines += ["[variables]", 'x = { range = [0, 9], next = "min(x + v, 9)" }']
    lines += [f'v = {{ range = [0, 2], next = "{v}", hidden = false }}', *moving]
    lines += [
        "[inputs]",
        f'u = {{ range = [0, 2], default = "{rng.choice(["1", "min(v + 1, 2)", "ite(v = 0, 2, v - 1)"])}" }}',
    ]
    lines += ["[field_of_view]", "distance_m = [0, 10]"] * viewed
    lines += ["[environments]", f"here = [{', '.join(obj(rng, name, draws) for name in names)}]", "[planners.p]"]
    lines += [f'reading = "{reading}"'] if reading != "last" else []
    lines += ["memory = { m = { range = [0, 2], initial = 1 } }"] * memory
    odds = "log_odds = { hit = 2, miss = -1, range = [-2, 3], confirm = 2, delete = 0 }"
    kind = rng.choice(["confirm = [2, 3], delete = [2, 2]", "confirm = [1, 2], delete = [1, 1]", odds])
    lines += [f'trackers = {{ t = {{ of = "{atom(rng, names, True)}", {kind} }} }}'] * tracker
    rules = []
    for _ in range(rng.randrange(2, 5)):
        parts = [atom(rng, names, reading == "last"), condition(rng)]
        parts += ["m = 1"] * (memory and rng.random() < 0.5) + ["confirmed(t)"] * (tracker and rng.random() < 0.6)
        sets = [f"u = {rng.randrange(3)}"] + ['m = "(m + 1) % 3"'] * (memory and rng.random() < 0.7)
        when, values = " & ".join(f"({part})" for part in parts), ", ".join(sets)
        rules.append(f'{{ when = "{when}", set = {{ {values} }} }}')
    lines += [f"rules = [{', '.join(rules)}]"]
    column = lambda: [rng.randrange(1, 8) for _ in range(3)]  # noqa: E731
    counts = ([list(row) for row in zip(column(), column(), column(), strict=True)] for _ in range(3))
    about = {"labels": ["ped", "car", "empty"], "edges": (0, 4, 7, 10), "false_positives": "counted"}
    return "\n".join(lines), document_of(*counts, **about)


def walked(rows, first, value):
    """For each step (x, v) -> probability; `rows` are state -> {state: probability}."""
    now, found = {first: Fraction(1)}, []
    for _ in range(STEPS):
        following = {}
        for state, probability in now.items():
            for target, share in rows[state].items():
                following[target] = following.get(target, 0) + probability * share
        now, places = following, {}
        for state, probability in now.items():
            places[value[state]] = places.get(value[state], 0) + probability
        found.append({x: p for x, p in places.items() if p})
    return found


def enriched(rng, model, document, draws):
    """A world whose environment is a table, with constants, labels about who is there, bins of objects, and errors of
    reported distances: the model, and the document in the formats of the reference and of the program."""
    names, objects = re.findall(r'name = "(\w)"', model), re.search(r"^here = (\[.*\])$", model, re.M)[1]
    hiding = ["ite(x < 3, 0, 1)", "x % 2", "1", "ite(v = 1, 1, 0)", *(["min(y, 1)"] if draws else [])]
    occluded, seen = rng.random() < 0.5, rng.random() < 0.6
    if occluded:
        at = lambda found: f'{found[0]}, at = {{ occlusion = "{rng.choice(hiding)}" }}'  # noqa: E731
        objects = re.sub(r'distance_m = "[^"]*"', at, objects)
    table = ["[environments.here]", f"objects = {objects}"]
    table += [f"set = {{ k = {rng.randrange(3)} }}"] * (rng.random() < 0.5)
    table += ['next = { x = "min(x + v + k // 2, 9)" }'] * (rng.random() < 0.5)
    table += ['labels = { far = "x > 3 + k" }'] * (rng.random() < 0.4)
    model = re.sub(r"^\[environments\]\nhere = .*$", "\n".join(table), model, flags=re.M)
    labels = ["[constants]", "k = 1", "[labels]", 'far = "x > 4"', f'near = "present({rng.choice(names)})"']
    model = model.replace("[variables]", "\n".join([*labels, "[variables]"])).replace("(true)", "(far | x < 2)", 1)
    if seen:
        model = model.replace('"min(x + v, 9)"', '"min(x + v + ite(near, 1, 0), 9)", hidden = false')
        model = model.replace('"x >= 6"', '"x >= 6 | near & x = 5"')
    if rng.random() < 0.6:
        counts = [[rng.randrange(6) + (k == j) for j in range(3)] for k in range(3)]
        document["localisation"] = {"axes": ["reported", "true"], "counts": counts}
    theirs = ours = document
    if occluded:
        split = [(each["distance_m"], [0, 1], each["counts"]) for each in document["bins"]]
        split += [(m, [1, 2], [[rng.randrange(1, 8), rng.randrange(1, 8), row[2]] for row in c]) for m, _, c in split]
        split.sort(key=lambda each: each[:2])
        document["variables"] = [{"name": "occlusion", "of": "object", "edges": [0, 1, 2]}]
        theirs = document | {"bins": [{"distance_m": m, "occlusion": o, "counts": c} for m, o, c in split]}
        ours = document | {"bins": [{"distance_m": m, "where": {"occlusion": o}, "counts": c} for m, o, c in split]}
    return model, theirs, ours


def check(reference, folder, seed, draws=False, *, rich=False):
    """Whether something random happened."""
    rng = random.Random(seed)
    model, theirs = world(rng, draws)
    model, theirs, ours = enriched(rng, model, theirs, draws) if rich else (model, theirs, theirs)
    (folder / "model.toml").write_text(model)
    (folder / "cm.json").write_text(json.dumps(theirs))
    slow = reference.Model(folder, "here", "p")
    rows, _, truths, _ = slow.explore(FIRST[draws], [reference.compiled(f"x = {x} & v = {v}") for x, v in PLACES])
    expected = walked([row for (row,) in rows], 0, [PLACES[truth.index(True)] for truth in truths])
    (folder / "cm.json").write_text(json.dumps(ours))
    matrices = read_confusion(folder / "cm.json", kept=[each["name"] for each in ours.get("variables", [])]).matrices
    system = read_model(folder / "model.toml").inside("here").instantiate()
    skeleton = build_skeleton(system, system.planners["p"], "here", matrices)
    chain = markov_chain(skeleton, matrices.counts, {}, exact=True)
    found = [
        {int(chain.indices[k]): chain.fractions[k] for k in range(*chain.indptr[state : state + 2])}
        for state in range(chain.state_count)
    ]
    values = list(zip(*(skeleton.valuations[name].tolist() for name in "xv"), strict=True))
    assert walked(found, int(chain.initial[0]), values) == expected, f"seed {seed}:\n{model}"
    return any(len(places) > 1 for places in expected)


def test_random_worlds_are_read_as_the_reference_reads_them(reference, tmp_path):
    assert sum(check(reference, tmp_path, seed) for seed in (*range(9), *range(10, 20))) >= 10  # 9 is large


def test_random_worlds_explored_step_by_step(reference, tmp_path, monkeypatch):
    monkeypatch.setattr(exploration, "_all_at_once", lambda scene: None)
    assert sum(check(reference, tmp_path, seed) for seed in range(100, 108)) >= 4


def is_small(seed, draws):
    """Whether few enough reports come in a step for the reference to take no time."""
    model, _ = world(random.Random(seed), draws)
    return "step_s = 1" in model or ('name = "b"' not in model and "field_of_view" not in model)


@pytest.mark.parametrize("draws", [False, True])
def test_random_worlds_with_tables_labels_bins_of_objects_and_errors_of_distances(
    reference, tmp_path, thorough, draws
):
    seeds = [seed for seed in range(60 if thorough else 10) if is_small(seed, draws)]
    assert sum(check(reference, tmp_path, seed, draws, rich=True) for seed in seeds) >= len(seeds) / 2


def test_random_worlds_that_draw(reference, tmp_path):
    assert sum(check(reference, tmp_path, seed, draws=True) for seed in range(5)) >= 4


def test_random_worlds_that_draw_explored_step_by_step(reference, tmp_path, monkeypatch):
    monkeypatch.setattr(exploration, "_all_at_once", lambda scene: None)
    assert sum(check(reference, tmp_path, seed, draws=True) for seed in range(100, 105)) >= 4


def optima(rows, goal, first=0):
    """The least and the greatest probability of coming to a goal within STEPS steps from a state.

    Args:
        rows: state -> for each choice {state: probability}.
        goal: the states of the goal.
    """
    found = []
    for best in (min, max):
        value = {state: Fraction(state in goal) for state in rows}
        for _ in range(STEPS):
            value = {
                state: Fraction(1)
                if state in goal
                else best(sum(p * value[t] for t, p in own.items()) for own in each)
                for state, each in rows.items()
            }
        found.append(value[first])
    return found


def choices_at(place, rows):
    """Place of a state -> its choices, each what it leads to with which probability."""
    return {
        place[k]: {frozenset((place[t], p) for t, p in own.items() if p) for own in each} for k, each in rows.items()
    }


GOALS = ("x = 3 & v = 1", "x >= 5", "x > 3 & y != 1", "x = 2 | x = 4")


def check_choices(reference, folder, seed):
    """How many optima are neither 0 nor 1; they are those of the reference, whose choices ours are."""
    model, document = world(random.Random(seed), True, deciding)
    (folder / "model.toml").write_text(model)
    (folder / "cm.json").write_text(json.dumps(document))
    slow = reference.Model(folder, "here", "p")
    texts = [f"x = {x} & v = {v} & y = {y}" for x, v in PLACES for y in range(4)]
    rows, _, truths, _ = slow.explore(FIRST[1], list(map(reference.compiled, (*GOALS, *texts))))
    matrices = read_confusion(folder / "cm.json").matrices
    system = read_model(folder / "model.toml").inside("here").instantiate()
    built = build_decisions(set_scene(system, system.planners["p"], "here", matrices))
    labels = {text: built.choices.mask_of(parse_expression(text)) for text in GOALS}
    process = decision_process(built, matrices.counts, labels, exact=True)
    mine = {state: [] for state in range(process.state_count)}
    for choice, state in enumerate(rows_of(process.choice_starts).tolist()):
        ends = range(*process.indptr[choice : choice + 2])
        mine[state].append({int(process.indices[k]): process.fractions[k] for k in ends})
    (first,) = process.initial.tolist()
    opened = 0
    for number, text in enumerate(GOALS):
        wanted = optima(dict(enumerate(rows)), {k for k, truth in enumerate(truths) if truth[number]})
        assert optima(mine, set(np.flatnonzero(labels[text]).tolist()), first) == wanted, f"seed {seed}:\n{model}"
        opened += sum(0 < each < 1 for each in wanted)
    place = [truth.index(True, len(GOALS)) for truth in truths]
    if len(set(place)) == len(place):  # nothing is remembered, so a state is its place
        named = list(zip(*(process.valuations[name].tolist() for name in "xvy"), strict=True))
        where = [texts.index(f"x = {x} & v = {v} & y = {y}") + len(GOALS) for x, v, y in named]
        assert choices_at(where, mine) == choices_at(place, dict(enumerate(rows))), f"seed {seed}:\n{model}"
    return opened


def test_random_worlds_that_decide(reference, tmp_path):
    assert sum(check_choices(reference, tmp_path, seed) for seed in (0, 12, 13, 14)) >= 28  # small ones


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_random_worlds_that_decide(reference, tmp_path, part):
    assert sum(check_choices(reference, tmp_path, 1000 + 100 * part + k) for k in range(100)) >= 4 * 100


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
@pytest.mark.parametrize("draws", [False, True])
def test_many_random_worlds(reference, tmp_path, draws, part):
    seeds = range(1000 + 250 * part, 1250 + 250 * part)
    assert sum(check(reference, tmp_path, seed, draws) for seed in seeds) >= len(seeds) / 2
