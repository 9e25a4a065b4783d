"""Chains of detectors with memory: against an oracle in fractions, the plain definition, and their laws."""

import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from context_cases import document, drawn_document, files_of, latch, systems_of, tracked_document
from plain_memory import histories

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.errors import InputError, LimitError, NoAnswerError, Place, UsageError
from verifier.checking.settings import EngineSettings
from verifier.cli import main
from verifier.perception.confusion import EMPTY
from verifier.perception.confusion.context_selection import divided_matrices
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.document_reader import DocumentReader
from verifier.pipeline import verify_spec
from verifier.study.options import RunOptions
from verifier.systems.channel import Channel
from verifier.systems.contexts import _after_reports, _Branches, _Walk
from verifier.systems.reader import read_model
from verifier.systems.scene import SkeletonOptions
from verifier.systems.settings import Limits
from verifier.systems.skeleton import build_skeleton

EXACT = RunOptions(confidence=None, engines=EngineSettings(exact=True))


@pytest.fixture(scope="module")
def systems(shared):
    return systems_of(shared)


def check_case(folder, case, policies):
    formulas = [answer["formula"] for answer in case["answers"]]
    files = files_of(folder, case["model"], document(case), case["environment"], formulas)
    contexts = Contexts(case["contexts"]["kind"], case["contexts"]["cap"])
    keys = {"start": "start", "right": f"all right*{contexts.cap}", "wrong": f"all wrong*{contexts.cap}"}
    for policy in policies:
        options = replace(EXACT, memory=str(contexts), initial_context=policy)
        key = keys.get(policy, "memoryless")
        if policy == "none":
            options = replace(EXACT, memory="none")
        result = verify_spec(*files, options)
        for answer, requirement in zip(case["answers"], result.requirements, strict=True):
            point, expected = requirement.points[0], Fraction(answer[key]["fraction"])
            assert point.exact == expected, (case["name"], policy, answer["formula"])
            assert abs(point.probability - expected) <= 1e-9
            assert abs(point.second_engine - expected) <= 1e-9


@pytest.mark.parametrize("number", range(9))
def test_systems_have_the_probabilities_of_the_oracle(number, systems, tmp_path):
    check_case(tmp_path, systems[number], [("start", "right", "wrong")[number % 3]])


@pytest.mark.slow
@pytest.mark.parametrize("number", range(9))
def test_systems_have_all_probabilities_of_the_oracle(number, systems, tmp_path):
    check_case(tmp_path, systems[number], ["start", "right", "wrong", "none"])


# Reports of a short episode are kept in the state: h has a bit for `sees(ped)` and one for `sees(obs)` of every step.
HISTORY = """
initial = "t = 0 & h = 0"
terminal = "t = 3"
[variables]
t = { range = [0, 3], next = "t + 1" }
h = { range = [0, 63], next = "4 * h + note" }
[inputs]
note = { range = [0, 3] }
[planners.driver]
rules = [
    { when = "sees(ped) & sees(obs)", set = { note = 3 } },
    { when = "sees(ped)", set = { note = 2 } },
    { when = "sees(obs)", set = { note = 1 } },
    { when = "true", set = { note = 0 } },
]
[environments]
"""
PED, OBS, NOTHING, BOTH = frozenset({"ped"}), frozenset({"obs"}), frozenset(), frozenset({"ped", "obs"})


def remembering(folder, environment, written, options, model=HISTORY):
    """The matrices divided by context, and what a planner does with them."""
    (folder / "m.toml").write_text(model + f"here = [{environment}]\n")
    counts = DocumentReader("c.json").counts(written)
    matrices = divided_matrices(counts.matrices(), counts.by_context, "error")
    system = read_model(folder / "m.toml").instantiate()
    options = SkeletonOptions(**options)
    return matrices, build_skeleton(system, system.planners["driver"], "here", matrices, options)


def ends(folder, environment, written, options):
    """History -> probability at the end, exactly, by walking the chain, all of whose states are met."""
    from verifier.chains.chain import filled_counts, markov_chain

    matrices, skeleton = remembering(folder, environment, written, options)
    chain = markov_chain(skeleton, filled_counts(skeleton, matrices, "error"), {}, exact=True)
    now, found, met = {int(chain.initial[0]): Fraction(1)}, {}, set()
    while now:
        met |= now.keys()
        following = {}
        for state, weight in now.items():
            if skeleton.terminal[state]:
                key = int(skeleton.valuations["h"][state])
                found[key] = found.get(key, 0) + weight
                continue
            for edge in range(chain.indptr[state], chain.indptr[state + 1]):
                after = int(chain.indices[edge])
                following[after] = following.get(after, 0) + weight * chain.fractions[edge]
        now = following
    assert len(met) == skeleton.state_count
    return found, skeleton


def expected_ends(steps, columns, contexts, begun=()):
    found = {}
    for told, weight in histories(steps, columns, contexts.kind, contexts.cap, begun).items():
        number = 0
        for seen in told:
            number = 4 * number + 2 * ("ped" in seen) + ("obs" in seen)
        found[number] = found.get(number, 0) + weight
    return found


KINDS = [Contexts("run", 2), Contexts("last", 2)]


@pytest.mark.parametrize("contexts", KINDS, ids=str)
def test_two_objects_each_remember_their_own_outcomes(contexts, tmp_path, monkeypatch):
    written, columns = drawn_document([PED, OBS, NOTHING], contexts, "class", 2, 1)
    environment = '{ class = "ped", distance_m = "5 + 5 * t" }, { class = "obs", distance_m = 15 }'
    steps = [[("ped", int(5 + 5 * t >= 10), PED), ("obs", 1, OBS)] for t in range(3)]
    assert ends(tmp_path, environment, written, {})[0] == expected_ends(steps, columns, contexts)
    begun = [False] * contexts.cap
    monkeypatch.setattr("verifier.systems.contexts._BLOCK", 1)  # one state after the other
    found = ends(tmp_path, environment, written, {"initial_context": "wrong"})[0]
    assert found == expected_ends(steps, columns, contexts, begun)


def test_as_many_states_are_made_as_the_limit_says(tmp_path, monkeypatch):
    written, _ = drawn_document([PED, OBS, NOTHING], KINDS[0], "class", 2, 1)
    environment = '{ class = "ped", distance_m = "5 + 5 * t" }, { class = "obs", distance_m = 15 }'
    count = ends(tmp_path, environment, written, {})[1].state_count
    same = ends(tmp_path, environment, written, {"limits": Limits(states=count)})[1]
    assert same.state_count == count
    with pytest.raises(NoAnswerError, match=f"there are more than {count - 1} states"):
        ends(tmp_path, environment, written, {"limits": Limits(states=count - 1)})
    # Each has 120 bytes, and 80 for each branch with each of two outcomes of what the world draws.
    world = "[world]\nw = { range = [0, 1], probability = { 1 = 0.5, 0 = 0.5 } }\n"
    drawing = HISTORY.replace("[planners", world + "[planners").replace("4 * h + note", "4 * h + note * w")
    branches = (1 + 3) ** 2  # of two objects, each not there or reported as one of three
    count = remembering(tmp_path, environment, written, {}, drawing)[1].state_count
    needed = count * (120 + 80 * branches * 2)
    remembering(tmp_path, environment, written, {"limits": Limits(memory_bytes=needed)}, drawing)
    with pytest.raises(NoAnswerError, match=f"there are more than {count - 1} states"):
        remembering(tmp_path, environment, written, {"limits": Limits(memory_bytes=needed - 1)}, drawing)
    monkeypatch.setattr("verifier.systems.contexts.MOST_BRANCHES", branches)
    remembering(tmp_path, environment, written, {})
    monkeypatch.setattr("verifier.systems.contexts.MOST_BRANCHES", branches - 1)
    with pytest.raises(LimitError, match=f"more than {branches - 1} branches"):
        remembering(tmp_path, environment, written, {})


@pytest.mark.parametrize("contexts", KINDS, ids=str)
def test_objects_of_a_bin_remember_as_long_as_they_stand_together(contexts, tmp_path):
    written, columns = drawn_document([PED, OBS, BOTH, NOTHING], contexts, "proposition", 2, 2)
    # The pedestrian joins the obstacle in the last step: both begin again.
    environment = '{ class = "ped", distance_m = "t >= 2 ? 15 : 5" }, { class = "obs", distance_m = 15 }'
    environment = environment.replace('"t >= 2 ? 15 : 5"', '"5 + 5 * t"')
    apart, together = [("ped", 0, PED), ("obs", 1, OBS)], [("both", 1, BOTH)]
    found, skeleton = ends(tmp_path, environment, written, {})
    assert found == expected_ends([apart, together, together], columns, contexts)
    assert skeleton.forgets


@pytest.mark.parametrize("contexts", KINDS, ids=str)
def test_false_positives_remember_at_their_place(contexts, tmp_path):
    written, columns = drawn_document([PED, OBS, NOTHING], contexts, "class", 2, 3)
    environment = '{ class = "empty", distance_m = "5 + 5 * t" }'
    place = [[("place", int(t > 0), NOTHING)] for t in range(3)]
    assert ends(tmp_path, environment, written, {})[0] == expected_ends(place, columns, contexts)
    # Beside an object the place is the bin: what was remembered in another one is forgotten.
    environment = '{ class = "ped", distance_m = "5 + 5 * t" }'
    beside = [[("ped", int(t > 0), PED), (f"bin {int(t > 0)}", int(t > 0), NOTHING)] for t in range(3)]
    found, skeleton = ends(tmp_path, environment, written, {"false_positives": "background"})
    assert found == expected_ends(beside, columns, contexts)
    assert skeleton.forgets


# The last report is kept in the state: p for `sees(ped)`, o for `sees(obs)`.
LAST_REPORT = """
initial = "t = 0 & p = 0 & o = 0"
terminal = "t = 3"
[variables]
t = { range = [0, 3], next = "t + 1" }
p = { range = [0, 1], next = "saw_ped" }
o = { range = [0, 1], next = "saw_obs" }
[inputs]
saw_ped = { range = [0, 1] }
saw_obs = { range = [0, 1] }
[planners.driver]
rules = [
    { when = "sees(ped) & sees(obs)", set = { saw_ped = 1, saw_obs = 1 } },
    { when = "sees(ped)", set = { saw_ped = 1, saw_obs = 0 } },
    { when = "sees(obs)", set = { saw_ped = 0, saw_obs = 1 } },
    { when = "true", set = { saw_ped = 0, saw_obs = 0 } },
]
[environments]
"""
FORMULAS = {
    "F (p = 1 & o = 1)": lambda p, o: any(map(min, p, o)),
    "G !(p = 1 & o = 1)": lambda p, o: not any(map(min, p, o)),
    "F (p = 1 & X p = 1)": lambda p, o: any(map(min, p, p[1:])),
    "p = 0 U o = 1": lambda p, o: any(o[k] and not any(p[:k]) for k in range(len(o))),
    "F G o = 0": lambda p, o: o[-1] == 0,
    "G (o = 1 -> F p = 1)": lambda p, o: all(any(p[k:]) for k in range(len(o)) if o[k]),
    "o = 0 W p = 1": lambda p, o: not any(o) or any(p[k] and not any(o[:k]) for k in range(len(o))),
    "X X (p = 0 | o = 0)": lambda p, o: not (p[2] and o[2]),
}
"""Whether they hold of what was seen: nothing at first, each frame's report after it, the last one for ever."""
TWO = '{ class = "ped", distance_m = "5 + 5 * t" }, { class = "obs", distance_m = 15 }'
SYSTEMS = {
    "two objects": ("class", TWO, [[("ped", int(t > 0), PED), ("obs", 1, OBS)] for t in range(3)]),
    "joined": ("proposition", TWO, [[("ped", 0, PED), ("obs", 1, OBS)], *[[("both", 1, BOTH)]] * 2]),
    "no object": ("class", '{ class = "empty", distance_m = 5 }', [[("place", 0, NOTHING)]] * 3),
}


@pytest.mark.parametrize("contexts", KINDS, ids=str)
@pytest.mark.parametrize("name", SYSTEMS)
def test_formulas_have_the_probability_of_the_histories_that_meet_them(name, contexts, tmp_path):
    labelling, objects, steps = SYSTEMS[name]
    labels = [PED, OBS, BOTH, NOTHING] if labelling == "proposition" else [PED, OBS, NOTHING]
    written, columns = drawn_document(labels, contexts, labelling, 2, 7)
    files = files_of(tmp_path, f"{LAST_REPORT}here = [{objects}]\n", written, "here", FORMULAS)
    expected = dict.fromkeys(FORMULAS, Fraction(0))
    for told, weight in histories(steps, columns, contexts.kind, contexts.cap).items():
        p, o = ([0, *(int(label in seen) for seen in told)] for label in ("ped", "obs"))
        for formula, holds in FORMULAS.items():
            expected[formula] += weight * bool(holds([*p, p[-1]], [*o, o[-1]]))
    result = verify_spec(*files, replace(EXACT, memory=str(contexts)))
    for formula, requirement in zip(FORMULAS, result.requirements, strict=True):
        (point,) = requirement.points
        assert point.exact == expected[formula], formula
        assert abs(point.probability - point.exact) <= 1e-9
        assert abs(point.second_engine - point.exact) <= 1e-9


def test_an_object_that_was_not_there_begins_again(tmp_path):
    contexts = KINDS[0]
    written, columns = drawn_document([PED, OBS, NOTHING], contexts, "class", 2, 4)
    environment = '{ class = "ped", distance_m = 5, when = "t != 1" }'
    there = [("ped", 0, PED)]
    found, skeleton = ends(tmp_path, environment, written, {})
    assert found == expected_ends([there, [], there], columns, contexts)
    assert "context of ped" in skeleton.valuations
    assert not skeleton.forgets


@pytest.mark.parametrize("distance_m", [5, 15])
def test_who_else_is_there_matters_in_the_same_bin_only(distance_m, tmp_path):
    contexts = KINDS[0]
    written, columns = drawn_document([PED, OBS, BOTH, NOTHING], contexts, "proposition", 2, 4)
    environment = (
        f'{{ class = "obs", distance_m = {distance_m}, when = "t != 1" }}, {{ class = "ped", distance_m = 5 }}'
    )
    found, skeleton = ends(tmp_path, environment, written, {})
    if distance_m == 5:
        steps = [[("both", 0, BOTH)], [("ped", 0, PED)], [("both again", 0, BOTH)]]
    else:
        steps = [[("obs", 1, OBS), ("ped", 0, PED)], [("ped", 0, PED)], [("obs again", 1, OBS), ("ped", 0, PED)]]
    assert found == expected_ends(steps, columns, contexts)
    assert not skeleton.forgets


def test_a_class_that_no_rule_asks_about_is_remembered(tmp_path):
    """Whether an obstacle is reported as one is remembered, although the planner is told the same as of nothing."""
    written, _ = drawn_document([PED, OBS, NOTHING], KINDS[0], "class", 2, 8)
    asks_ped = HISTORY.replace('{ when = "sees(ped) & sees(obs)", set = { note = 3 } },', "")
    asks_ped = asks_ped.replace('{ when = "sees(obs)", set = { note = 1 } },', "")
    _, skeleton = remembering(tmp_path, '{ class = "obs", distance_m = 15 }', written, {}, asks_ped)
    seen = [{"ped", "obs reported as ped"}, {"obs reported as obs"}, {"obs reported as empty"}]
    assert set(skeleton.channel.observations) == {NOTHING, *map(frozenset, seen)}


def walk_of(who, following, row, ended=(), *, contexts=None, most=99, frames=2):
    """Draws of which each may be of several objects, under way in so many frames of two reports each."""
    who, row, channel = np.array(who), np.array(row), SimpleNamespace(outcome_count=1)
    branches = SimpleNamespace(who=who, possible=np.ones((len(who), 1), dtype=bool), channel=channel)
    told = np.zeros((frames, 1), dtype=np.int64)
    ended = np.array(ended or [False] * len(row))
    return _Walk(
        *(contexts or SimpleNamespace(count=1), branches, np.array(following)[:, None], row, ended, most, Place()),
        *(told, np.zeros((2 if frames > 1 else 0, 2), dtype=np.int64)),
    )


@pytest.mark.parametrize("who", [[[1], [2]], [[2], [1]]])
def test_one_state_of_many_under_way_forgets(who):
    """Of five states one leads to another object; each may be in either of two frames, after either of two reports
    in the first. In a sixth nothing is drawn."""
    walk = walk_of(who, [0, 1, 2, 3, 3, 3], [0, 0, 0, 1, 0, 0], [False] * 5 + [True])
    nodes = np.arange(6 * walk.within)
    alone = [node for node in nodes.tolist() if walk.forgets(np.array([node]))]
    assert alone == [4 * walk.within + 2, 4 * walk.within + 3]  # in the last frame
    for node in alone:
        for other in nodes.tolist():
            assert walk.forgets(np.array([other, node]))
    assert not walk.forgets(np.setdiff1d(nodes, alone))


def test_a_chain_that_is_over_at_once_has_a_state_and_no_context(tmp_path):
    written, _ = drawn_document([PED, OBS, NOTHING], KINDS[0], "class", 2, 6)
    over = HISTORY.replace("t = 0 & h = 0", "t = 3 & h = 0")
    _, skeleton = remembering(tmp_path, '{ class = "ped", distance_m = 5 }', written, {}, over)
    assert (skeleton.state_count, skeleton.forgets) == (1, False)


def test_states_with_contexts_are_numbered_within_62_bits():
    four = SimpleNamespace(count=4)
    assert walk_of([[1] * 30], [0] * 3, [0] * 3, contexts=four, frames=1).within == 1
    for draws, states, frames in ((31, 1, 1), (30, 4, 1), (30, 1, 2)):  # 4^31 is 2^62, and two frames of two reports
        with pytest.raises(NoAnswerError, match=r"there are more than 2\^62 states"):
            walk_of([[1] * draws], [0] * states, [0] * states, contexts=four, frames=frames)


def test_every_context_is_begun_with_up_to_the_limit():
    for most in (10, 9):  # of two states with a draw that remembers, and of one without
        walk = walk_of([[1], [0]], [0] * 3, [0, 1, 0], contexts=Contexts("run", 2), most=most + 1, frames=1)
        if most == 10:
            assert walk.begun(np.arange(3), "worst").tolist() == [*range(5), 5, *range(10, 15)]
            continue
        with pytest.raises(NoAnswerError, match="there are more than 10 states"):
            walk.begun(np.arange(3), "worst")


def test_initial_contexts_weigh_as_often_as_they_were_counted(tmp_path):
    contexts = Contexts("run", 1)
    written, _ = drawn_document([PED, OBS, NOTHING], contexts, "class", 2, 9)
    elsewhere, there = (each["contexts"] for each in written["bins"])
    for matrix in (*elsewhere.values(), *there.values()):
        for row in matrix:
            row[1] = 0  # no obstacle was counted, and so none is on a track
    for row in there["wrong*1"]:
        row[0] = 0
    items = [sum(row[0] for row in there[name]) for name in contexts.names]
    environment = """{ class = "ped", distance_m = 15 }, { class = "obs", distance_m = 5 },
        { class = "ped", distance_m = 5, when = "t > 0" }""".replace("\n", "")
    begun = HISTORY.replace('"t = 0 & h = 0"', '"(t = 0 | t = 3) & h = 0"')

    def weights():
        for each in written["bins"]:
            each["counts"] = np.sum(list(each["contexts"].values()), axis=0).tolist()
        _, skeleton = remembering(tmp_path, environment, written, {"initial_context": "counted"}, begun)
        held, time = (skeleton.valuations[name][skeleton.starts] for name in ("context of ped", "t"))
        return dict(zip(zip(time.tolist(), held.tolist(), strict=True), skeleton.start_weights, strict=True))

    total = sum(items)
    assert weights() == {
        (0, 0): Fraction(items[0], total), (0, 1): Fraction(items[1], total), (0, 2): 0, (3, 0): 1,
    }  # fmt: skip
    for name in ("start", "right*1"):
        for row in there[name]:
            row[0] = 0
    said = "--initial-context counted: no item of true label ped in [10, 20) m is on a track"
    with pytest.raises(InputError, match=re.escape(said)):
        weights()


def test_a_class_without_tracks_has_no_memory(tmp_path):
    contexts = KINDS[0]
    written, columns = drawn_document([PED, OBS, NOTHING], contexts, "class", 2, 5)
    for at, each in enumerate(written["bins"]):
        moved = np.zeros((3, 3), dtype=int)
        for matrix in each["contexts"].values():
            for row, lost in zip(matrix, moved, strict=True):
                lost[1], row[1] = lost[1] + row[1], 0
        each["contexts"]["untracked"] = moved.tolist()
        total = Fraction(int(moved[:, 1].sum()))
        column = {label: int(moved[k, 1]) / total for k, label in enumerate([PED, OBS, NOTHING])}
        columns |= {(at, OBS, name): column for name in contexts.names}
    environment = '{ class = "ped", distance_m = 5 }, { class = "obs", distance_m = 15 }'
    found, skeleton = ends(tmp_path, environment, written, {})
    assert found == expected_ends([[("ped", 0, PED), ("obs", 1, OBS)]] * 3, columns, contexts)
    assert not skeleton.valuations["context of obs"].any()
    assert not skeleton.forgets


def test_the_worst_context_is_among_the_initial_states(systems, tmp_path):
    case = systems[1]
    files = files_of(tmp_path, case["model"], document(case), case["environment"], ["F stopped"])
    contexts = Contexts("run", case["contexts"]["cap"])
    result = verify_spec(*files, replace(EXACT, memory=str(contexts), initial_context="worst"))
    points = result.requirements[0].points
    assert [point.initial["context of ped"] for point in points] == list(range(contexts.count))
    told = ", ".join(f"{number} {name}" for number, name in enumerate(contexts.names))
    assert f"every context is one to begin with, by its number: {told}" in result.remarks
    for policy in ("start", "right", "wrong"):
        (alone,) = (
            verify_spec(*files, replace(EXACT, memory=str(contexts), initial_context=policy)).requirements[0].points
        )
        assert alone.exact in [point.exact for point in points]


def test_too_much_memory_is_refused_with_its_size(tmp_path):
    written, _ = drawn_document([PED, OBS, NOTHING], KINDS[0], "class", 2, 6)
    environment = '{ class = "ped", distance_m = 5 }, { class = "obs", distance_m = 15 }'
    with pytest.raises(NoAnswerError, match=r"128 states x 5 contexts|85 states x 5 contexts of each of 2 objects"):
        ends(tmp_path, environment, written, {"limits": Limits(states=100)})
    many = ", ".join(f'{{ class = "ped", distance_m = {k} }}' for k in range(1, 9))
    with pytest.raises(LimitError, match="more than 4096 branches"):
        ends(tmp_path, many, written, {})


def without(case, at, column, context):
    """The document with the items of a column and context untracked."""
    found = json.loads(json.dumps(document(case)))
    own = found["bins"][at]["contexts"]
    lost = [[0] * len(case["labels"]) for _ in case["labels"]]
    for row, moved in zip(own[context], lost, strict=True):
        moved[column], row[column] = row[column], 0
    own["untracked"] = lost
    return found


def test_contexts_without_items_are_filled_as_the_policy_says(systems):
    case = systems[1]
    counts = DocumentReader("c.json").counts(without(case, 0, 0, "wrong*2"))
    cap = case["contexts"]["cap"]
    assert cap == 3

    def column(policy, context="wrong*2"):
        matrices = divided_matrices(counts.matrices(), counts.by_context, policy)
        filled = matrices.without_empty_columns("error")[0].reshape(len(case["bins"]), -1, 2, 2)
        return filled[0, Contexts("run", cap).names.index(context), :, 0].tolist()

    own = case["bins"][0]["contexts"]
    pooled = [
        sum(each["contexts"].get("wrong*2", [[0] * 2] * 2)[row][0] for each in case["bins"][1:]) for row in (0, 1)
    ]
    assert column("backoff") == [row[0] for row in own["wrong*1"]]
    assert column("pool") == pooled
    assert column("prior") == [1, 1]
    assert column("error") == [0, 0]
    assert column("backoff", "wrong*3") == [row[0] for row in own["wrong*3"]]
    matrices = divided_matrices(counts.matrices(), counts.by_context, "backoff")
    assert matrices.filled_from(Contexts("run", cap).names.index("wrong*2"), 0) == "wrong*1"
    pooling = divided_matrices(counts.matrices(), counts.by_context, "pool")
    assert pooling.filled_from(Contexts("run", cap).names.index("wrong*2"), 0) == "wrong*2 of all bins"


def test_filled_contexts_are_named(systems, tmp_path):
    case = systems[1]
    files = files_of(tmp_path, case["model"], without(case, 0, 0, "wrong*2"), case["environment"], ["F stopped"])
    told = verify_spec(*files, replace(EXACT, memory="run:3")).remarks
    assert any("true label ped in bin [0, 8) m, after wrong*2, from wrong*1" in each for each in told)
    with pytest.raises(InputError, match=r"no items with true label ped in bin \[0, 8\) m, after wrong\*2"):
        verify_spec(*files, replace(EXACT, memory="run:3", empty_contexts="error"))


REFUSED = {
    "run:9": "cannot be had from matrices counted with run:3",
    "last:2": "cannot be had from matrices counted with run:3",
    "auto": "--memory auto compares contexts by sequence|contexts are compared by sequence",
    "nonsense": "expected contexts",
}


@pytest.mark.parametrize("asked", REFUSED)
def test_memory_that_cannot_be_had_is_refused(asked, systems, tmp_path):
    case = systems[1]
    files = files_of(tmp_path, case["model"], document(case), case["environment"], ["F stopped"])
    with pytest.raises(UsageError, match=REFUSED[asked]):
        verify_spec(*files, replace(EXACT, memory=asked))


def test_a_mean_over_contexts_has_points_only(systems, tmp_path):
    with pytest.raises(UsageError, match="--initial-context counted: intervals and bounds are not known"):
        RunOptions(memory="run:3", initial_context="counted")
    case = systems[5]
    files = files_of(tmp_path, case["model"], document(case), case["environment"], ["F stopped"])
    every = verify_spec(*files, replace(EXACT, memory="run:2", initial_context="worst")).requirements[0].points
    (point,) = verify_spec(*files, replace(EXACT, memory="run:2", initial_context="counted")).requirements[0].points
    # At first they are 18 and 24 m away, in the second bin: contexts are weighed by the product of their items there.
    names, total, there = Contexts("run", 2).names, Fraction(0), case["bins"][1]["contexts"]
    items = {
        name: [sum(row[case["labels"].index(name)] for row in there.get(context, [])) for context in names]
        for name in ("ped", "obs")
    }
    for each in every:
        share = [Fraction(own[each.initial[f"context of {name}"]], sum(own)) for name, own in items.items()]
        total += share[0] * share[1] * each.exact
    assert point.exact == total


def test_what_is_about_memory_needs_one(systems, tmp_path):
    case = systems[1]
    spec, matrices = files_of(tmp_path, case["model"], document(case), case["environment"], ["F stopped"])
    for option in ({"initial_context": "wrong"}, {"empty_contexts": "prior"}, {"assume_contexts": True}):
        with pytest.raises(UsageError, match="is about a detector with memory, and here it has none"):
            verify_spec(spec, matrices, replace(EXACT, memory="none", **option))
    plain = {key: value for key, value in document(case).items() if key != "contexts"}
    plain["bins"] = [{key: value for key, value in each.items() if key != "contexts"} for each in case["bins"]]
    matrices.write_text(json.dumps(plain))
    with pytest.raises(UsageError, match="are not counted by context"):
        verify_spec(spec, matrices, replace(EXACT, memory="run:3"))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--mix", "mix.toml"), "with --mix, for weights of bins are of single reports, and contexts go on from bin"),
        (("--weights", "track"), "with --weights track, for shares of tracks are not counted by context"),
        (("--strategies",), "with --strategies, for strategies are looked for against memoryless detectors"),
    ],
)
@pytest.mark.parametrize("memory", [("--memory", "run:3"), ("--persist", "3")])
def test_what_is_not_known_with_memory_is_refused_with_its_reason(memory, more, why, systems, tmp_path, capsys):
    case = systems[1]
    found = document(case)
    found["variables"] = [{"name": "light", "of": "object", "values": {"day": ["0"], "night": ["1"]}}]
    found["bins"] = [{**each, "where": {"light": name}} for each in case["bins"] for name in ("day", "night")]
    spec, matrices = files_of(tmp_path, case["model"], found, case["environment"], ["F stopped"])
    (tmp_path / "mix.toml").write_text('variable = "light"\n[weights]\nday = 0.5\nnight = 0.5\n')
    more = [str(tmp_path / each) if each.endswith(".toml") else each for each in more]
    assert main(["run", str(spec), "--cm", str(matrices), *memory, *more]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert f"--memory is not known together {why}" in told
    assert "name --memory none, or leave that out" in told


def test_steps_and_frames_must_last_as_long(systems, tmp_path):
    case = systems[1]
    found = document(case)
    found["contexts"]["period_s"] = 0.1
    for step, says in (("0.5", "counted every 0.1 s, and the model takes a report every 0.5 s"), ("0.1", None)):
        files = files_of(tmp_path, f"step_s = {step}\n" + case["model"], found, case["environment"], ["F stopped"])
        if says is None:
            assert verify_spec(*files, replace(EXACT, memory="run:3")).settings.memory == "run:3"
            continue
        with pytest.raises(UsageError, match=says):
            verify_spec(*files, replace(EXACT, memory="run:3"))


@pytest.mark.parametrize("number", [0, 4])
def test_without_memory_contexts_of_the_file_change_nothing(number, systems, tmp_path):
    """Of a file with contexts and of one that never had any: every bit of probabilities, intervals and bounds."""
    case, found = systems[number], []
    formulas = [answer["formula"] for answer in case["answers"]]
    for name in ("with", "without"):
        folder, counts = tmp_path / name, document(case)
        if name == "without":
            del counts["contexts"]
            counts["version"] = 1
            for each in counts["bins"]:
                del each["contexts"]
        folder.mkdir()
        files = files_of(folder, case["model"], counts, case["environment"], formulas)
        options = RunOptions(memory="none", confidence=ConfidenceSettings(draws=300))
        found.append(verify_spec(*files, options).requirements)
    assert found[0] == found[1]


@pytest.mark.parametrize("detector", ["pointrcnn", "rrc"])
@pytest.mark.parametrize("model", ["none", "last:1", "run:5", "run:10"])
def test_the_latch_on_real_tracks(model, detector, shared, tmp_path):
    oracles = shared / "oracles/memory"
    if not oracles.exists():
        pytest.skip(f"{oracles} is not there")
    rows_of = json.loads((oracles / "kitti_contexts.json").read_text())["detectors"][detector]["ped"]["models"]
    known = json.loads((oracles / "latch.json").read_text())["detectors"][detector]
    if model == "none":  # counted by any contexts, which are summed
        rows = {"start": np.sum(list(rows_of["run:5 gaps=break"][1].values()), axis=0).tolist()}
        files = files_of(tmp_path, latch(), tracked_document(rows, Contexts("run", 5)), "ped", ["F seen = 1"])
        (point,) = verify_spec(*files, replace(EXACT, memory="none")).requirements[0].points
        assert point.exact == Fraction(known["memoryless"]["P_brakes"])
        return
    expected, contexts = known[model], Contexts.parsed(model)
    letters = {"hit*1": "r", "miss*1": "w"} if contexts.kind == "last" else {}
    rows = {
        letters.get(name, name.replace("hit", "right").replace("miss", "wrong")): row
        for name, row in rows_of[f"{model} gaps=break"][1].items()
    }
    files = files_of(tmp_path, latch(), tracked_document(rows, contexts), "ped", ["G seen = 0"])
    (start,) = verify_spec(*files, replace(EXACT, memory=model)).requirements[0].points
    assert start.exact == Fraction(expected["start"]["fraction_no_report"])
    (counted,) = verify_spec(*files, replace(EXACT, memory=model, initial_context="counted")).requirements[0].points
    assert counted.probability == pytest.approx(expected["as counted"]["P_no_report"], rel=1e-12)
    beside = math.ulp(counted.probability)  # a mean of doubles
    assert abs(float(counted.exact) - counted.probability) <= beside
    every = verify_spec(*files, replace(EXACT, memory=model, initial_context="worst")).requirements[0].points
    assert max(point.probability for point in every) == pytest.approx(expected["worst"]["P_no_report"], rel=1e-12)


LIKELY = {"start": [1, 2000], "right*1": [1, 3000], "wrong*1": [500, 1500]}


def judged(folder, p_value, replays=(), **options):
    """The requirement that a pedestrian is noticed, where the contexts are tested with these p-values."""
    tests, more = [], {}
    if p_value is not None:
        tests = [{"label": "ped", "contexts": "run:1", "z": 3.0, "p_value": p_value, "permutations": 999}]
    if replays:
        seen = {"confirm": "3/3", "range": "10..20", "frames": 30, "tracks": 15, "not_confirmed": 3, "expected": 0.25}
        named = [{"label": "ped", "contexts": contexts, **seen, "p_value": p} for contexts, p in replays]
        more = {"replays": named}
    written = tracked_document(LIKELY, Contexts("run", 1), tests=tests, **more)
    spec, matrices = files_of(folder, latch(), written, "ped", ["F seen = 1"])
    spec.write_text(spec.read_text().replace("P = ?", "P >= 0.5"))
    result = verify_spec(spec, matrices, RunOptions(memory="run:1", **options))
    return result, result.requirements[0].points[0]


def test_contexts_that_the_data_do_not_contradict_decide(tmp_path):
    result, point = judged(tmp_path, 0.5)
    assert (point.verdict.value, point.basis) == ("satisfied", "contexts")
    assert (result.channel.test, result.channel.contexts) == ("not_contradicted", "run:1")


@pytest.mark.parametrize(
    ("replays", "p_value"),
    [
        ([("run:1", 0.004)], 0.004),
        ([("run:1", 0.9), ("run:1", 0.004)], 0.008),  # the least of two
        ([("run:1", 0.9), ("run:1", 0.004), ("last:1", 0.3)], 0.012),  # which are the same contexts
        ([("run:1", 0.9), ("none", 1e-9)], 0.9),  # what is predicted without memory is not asked
    ],
)
def test_replays_on_real_tracks_contradict_contexts(replays, p_value, tmp_path):
    result, point = judged(tmp_path, 0.5, replays)
    (test,) = result.channel.classes
    assert (test.p_value, test.replay.p_value) == (0.5, pytest.approx(p_value))
    if p_value < 0.01:
        assert (point.verdict.value, point.reason.kind) == ("inconclusive", "dependence")
        assert point.reason.p_value == pytest.approx(p_value)
        told = (
            "replayed on 15 tracks in 10..20 m, 3/3 reports in 30 frames did not come on 3, and were to fail on 0.25"
        )
        assert any(told in remark for remark in result.remarks)
        _, point = judged(tmp_path, 0.5, replays, assume_contexts=True)
        assert point.basis == "assumed"
    else:
        assert (point.verdict.value, point.basis) == ("satisfied", "contexts")
    tested, _ = judged(tmp_path, None, replays)
    assert tested.channel.test == result.channel.test


def test_contradicted_contexts_decide_nothing_unless_assumed(tmp_path):
    result, point = judged(tmp_path, 0.001)
    assert point.verdict.value == "inconclusive"
    assert (point.reason.kind, point.reason.contexts, point.reason.p_value) == ("dependence", "run:1", 0.001)
    assert any("errors of ped depend on more of the past than run:1" in remark for remark in result.remarks)
    _, unmoved = judged(tmp_path, 0.001, assume_memoryless=True)
    assert unmoved.verdict.value == "inconclusive"
    _, assumed = judged(tmp_path, 0.001, assume_contexts=True)
    assert (assumed.verdict.value, assumed.basis) == ("satisfied", "assumed")
    assert "the detector remembers run:1 and nothing else (assumed; the data contradict it" in assumed.condition


def test_contexts_without_a_test_are_a_condition(tmp_path):
    _, point = judged(tmp_path, None)
    assert point.verdict.value == "satisfied"
    assert point.condition.endswith("the detector remembers run:1 and nothing else (not tested)")
    _, refused = judged(tmp_path, None, strict=True)
    assert (refused.verdict.value, refused.reason.kind) == ("inconclusive", "untested")


def persisting(folder, longest, frames, first=(7000, 93000), **options):
    """The run of a latch over so many frames, if errors last so long; of 100,000 looks without one before 7 % err."""
    rows = {"start": [*first], "right*1": [7000, 93000], "wrong*1": [0, 7000]}
    model = latch(frames)
    spec, matrices = files_of(folder, model, tracked_document(rows, Contexts("run", 1)), "ped", ["F seen = 1"])
    spec.write_text(spec.read_text().replace("P = ?", "P >= 0.9"))
    return verify_spec(spec, matrices, RunOptions(persist=longest, **options)).requirements[0].points[0]


@pytest.mark.parametrize("frames", [1, 3, 5, 6])
def test_a_miss_persists_as_long_as_it_may(frames, tmp_path):
    # By hand: an approach of up to five frames is missed whole if the first is; the sixth frame reports for certain.
    point = persisting(tmp_path, 5, frames)
    bounds = point.uncertainty.confidence_bounds
    if frames > 5:
        assert (bounds.lower, bounds.upper) == (1, 1)
    else:
        assert 0.925 < bounds.lower < 0.93
        assert bounds.upper == 1 if frames > 1 else 0.93 < bounds.upper < 0.935
    assert (point.verdict.value, point.basis) == ("satisfied", "assumed")
    assert "no error lasts longer than 5 frames and they begin as counted (assumed)" in point.condition


def test_errors_at_first_sight_have_rates_of_their_own(tmp_path):
    """A detector that misses 40 % at first sight and 7 % later is one whose errors begin as counted."""
    bounds = persisting(tmp_path, 5, 3, (4000, 6000)).uncertainty.confidence_bounds
    assert 0.58 < bounds.lower < 0.6  # and not 0.89, as of the first looks and all others together
    assert bounds.upper == 1
    unseen = persisting(tmp_path, 5, 3, (0, 0)).uncertainty.confidence_bounds
    assert (unseen.lower, unseen.upper) == (0, 1)  # nobody saw a first look


def test_data_that_show_longer_misses_refuse_shorter_ones(tmp_path):
    rows = {"start": [1, 9], "right*1": [2, 90], "wrong*1": [2, 1], "wrong*2": [1, 1], "wrong*3": [0, 1]}
    model = latch(4)

    def run(rows, head=None, **options):
        written = tracked_document(rows, Contexts("run", 3), **(head or {}))
        return verify_spec(*files_of(tmp_path, model, written, "ped", ["F seen = 1"]), RunOptions(**options))

    with pytest.raises(UsageError, match="--persist 2: the data show 3 wrong reports in a row; name a longer time"):
        run(rows, persist=2)
    assert run(rows, persist=3).settings.memory == "persist:3"
    with pytest.raises(UsageError, match="--persist 51: expected a length from 1 to 50"):
        run(rows, persist=51)
    assert run(rows, persist=2, assume_persistence=True).settings.memory == "persist:2"
    with pytest.raises(UsageError, match="--persist 40: the data show 4 wrong reports in a row or more; verify"):
        run({**rows, "wrong*3": [1, 1]}, persist=40)
    # The file may know the longest run, beyond the cap of its contexts and of any.
    told = {"tracks": {"ped": {"longest_wrong_run": 154, "with_drive": [3, 12], "later": [56, 78]}}}
    with pytest.raises(
        UsageError, match="--persist 40: the data show 154 wrong reports in a row; name a longer time"
    ):
        run({**rows, "wrong*3": [1, 1]}, told, persist=40)
    told["tracks"]["ped"]["longest_wrong_run"] = 40
    assert run({**rows, "wrong*3": [1, 1]}, told, persist=40).settings.memory == "persist:40"
    for option in ({"memory": "run:3"}, {"verdict_from": "point"}, {"strict": True}):
        with pytest.raises(UsageError, match="--persist bounds what errors may do in each state"):
            run(rows, persist=3, **option)
    with pytest.raises(UsageError, match="--assume-persistence belongs to --persist"):
        run(rows, assume_persistence=True)


def test_explanations_name_the_context_of_each_miss(systems, tmp_path, capsys):
    rows = {"start": [1, 3], "right*1": [1, 9], "wrong*1": [6, 4], "wrong*2": [9, 1]}
    model, written = latch(3), tracked_document(rows, Contexts("run", 2))
    spec, matrices = files_of(tmp_path, model, written, "ped", ["F seen = 1"])
    asked = ["explain", str(spec), "--cm", str(matrices), "--memory", "run:2", "--point-only"]
    assert main(asked) == 0
    told = capsys.readouterr().out
    for context in ("at start", "after wrong*1", "after wrong*2"):
        assert f"ped in [10, 20) m, {context} reported as empty" in told
    # Missed at first (1/4), once more (6/10), and a third time (9/10): the only way to fail.
    assert "The formula fails with probability 0.135." in told
    assert "and no ped is reported (probability 0.25). Then t = 1, seen = 0, context of ped = wrong*1" in told
    assert "after wrong*1 is there, and no ped is reported, for the 2nd time in a row (probability 0.6)" in told
    assert "and no ped is reported, for at least the 3rd time in a row (probability 0.9)" in told
    assert "P would be 1" in told
    assert main([*asked, "--initial-context", "counted"]) == 2
    assert "verify explain follows runs from one context" in capsys.readouterr().err
    assert main([*asked[:4], "--persist", "4", "--assume-persistence"]) == 2
    assert "--persist gives bounds alone and belongs to verify run" in capsys.readouterr().err


TRACKED = """
initial = "t = 0 & seen = 0"
terminal = "t = 20"
[variables]
t = { range = [0, 20], next = "t + 1" }
seen = { range = [0, 1], next = "max(seen, note)" }
[inputs]
note = { range = [0, 1] }
[environments]
ped = [{ class = "ped", distance_m = 15 }]
[planners.driver]
trackers = { walker = { of = "sees(ped)", confirm = CONFIRM, delete = [1, 1] } }
rules = [{ when = "confirmed(walker)", set = { note = 1 } }, { when = "true", set = { note = 0 } }]
"""
UNCONFIRMED = {
    # M of N: not confirmed within 20 frames under last:1 and run:5, computed elsewhere from the same counts
    (1, 1): ("0.008", "0.069"),
    (2, 3): ("0.017", "0.092"),
    (3, 5): ("0.0334", "0.1200"),
    (3, 3): ("0.036", "0.135"),
}


@pytest.mark.parametrize("confirm", UNCONFIRMED, ids=str)
def test_trackers_read_reports_with_memory(confirm, shared, tmp_path):
    path = shared / "oracles/memory/kitti_contexts.json"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    counted = json.loads(path.read_text())["detectors"]["rrc"]["ped"]["models"]["run:5 gaps=break"][1]
    rows = {name.replace("hit", "right").replace("miss", "wrong"): row for name, row in counted.items()}
    written = tracked_document(rows, Contexts("run", 5))
    files = files_of(tmp_path, TRACKED.replace("CONFIRM", str(list(confirm))), written, "ped", ["G seen = 0"])
    for memory, expected in zip(("last:1", "run:5"), UNCONFIRMED[confirm], strict=True):
        options = RunOptions(memory=memory, initial_context="counted", confidence=None)
        (point,) = verify_spec(*files, options).requirements[0].points
        assert f"{point.probability:.{len(expected) - 2}f}" == expected


def test_branches_of_one_draw_by_hand():
    # It is told or not, each a group of labels of its own: before the draw, told, and not told. What was told is not
    # untold: nothing is there for both.
    ped, one = frozenset({"ped"}), np.zeros((1, 1), dtype=np.int64)
    told, then = np.array([[[1, 0]]]), np.array([[0, 1], [1, 1]])
    plain = Channel((ped, EMPTY), (frozenset(), ped), one, one, told, then, names=("walker",), who=one)
    branches = _Branches.of(plain, np.array([True, False]))
    assert branches.observation.tolist() == [0, 1, 0]
    assert branches.channel.told.tolist() == [[[0, 1]]]
    assert branches.channel.then.tolist() == [[1, 2], [1, -1], [1, 2]]
    # What cannot be reported begins no branch.
    impossible = SimpleNamespace(then=np.array([[1, -1], [1, 1]]))
    assert _after_reports(impossible, {(0, 1, 0): 0, (0, 2, 1): 1}, 1) == {(0, (0,)): 0, (1, (1,)): 1}
