"""The decision process of all winning strategies, against their plain enumeration."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from verifier.base.errors import InputError, LimitError, NoAnswerError, UsageError
from verifier.chains.chain import decision_process, filled_counts, markov_chain
from verifier.language.expressions import parse_expression
from verifier.perception.confusion import EMPTY, ConfusionMatrices
from verifier.systems.reader import read_model
from verifier.systems.scene import SkeletonOptions, set_scene
from verifier.systems.settings import Limits
from verifier.systems.skeleton import build_skeleton
from verifier.systems.strategies import build_strategies, winning_starts

PED = frozenset({"ped"})
OBSERVATIONS = (EMPTY, PED)

MODEL = """
initial = "{initial}"
terminal = "{terminal}"
admissible = "{admissible}"
[variables]
x = {{ range = [0, 3], next = "{next}" }}
[inputs]
u = {{ range = [0, {top}] }}
[environments]
ped = [{{ class = "ped", distance_m = "x" }}]
nobody = [{{ class = "empty", distance_m = "x" }}]
[planners.walker]
kind = "synthesis"
formula = "{formula}"
rules = [{{ when = "sees(ped)", set = {{ u = 0 }} }}, {{ when = "true", set = {{ u = 1 }} }}]
"""
# In the first bin (x < 2) 3 of 4 pedestrians are reported, in the second 1 of 3.
COUNTS = np.array([[[3, 0], [1, 1]], [[1, 0], [2, 1]]], dtype=np.int64)
MATRICES = ConfusionMatrices("class", OBSERVATIONS[::-1], np.array([0.0, 2.0, 4.0]), COUNTS)
REPORTED = [Fraction(3, 4), Fraction(3, 4), Fraction(1, 3), Fraction(1, 3)]


def system_of(folder, **parts):
    defaults = {"initial": "x = 0", "terminal": "x = 3", "admissible": "true", "next": "min(x + u, 3)", "top": 2}
    path = folder / "walker.toml"
    path.write_text(MODEL.format(**{**defaults, **parts}))
    return read_model(path).instantiate()


def strategies_of(system, **options):
    return build_strategies(set_scene(system, system.planners["walker"], "ped", MATRICES, SkeletonOptions(**options)))


def process_of(system, conditions):
    """The decision process with a label for each condition."""
    strategies = strategies_of(system)
    labels = {name: strategies.choices.mask_of(parse_expression(text)) for name, text in conditions.items()}
    return decision_process(strategies, filled_counts(strategies.choices, MATRICES, "error"), labels)


def combinations(strategies):
    """x -> the list of (next x when nothing is reported, next x when ped is), or (x,) where the episode is over."""
    choices = strategies.choices
    x = choices.valuations["x"].tolist()
    found = {}
    for state, here in enumerate(x):
        found[here] = []
        for row in range(strategies.choice_starts[state], strategies.choice_starts[state + 1]):
            told = {}
            for k in range(choices.indptr[row], choices.indptr[row + 1]):
                target, entry = x[choices.indices[k]], choices.entry[k]
                if entry == len(choices.entry_row):
                    told = {None: target}
                else:
                    assert choices.entry_row[entry] < len(choices.channel.bins)
                    told.update(dict.fromkeys(np.flatnonzero(choices.entry_observations[entry]).tolist(), target))
            found[here].append(tuple(told[key] for key in sorted(told)) if None not in told else (here,))
    return found


def test_combinations_by_hand(tmp_path):
    # Never enter 1 while a pedestrian is reported; always allowed otherwise. From 0 with up to two steps:
    # nothing reported, 0, 1 or 2 may be next; ped reported, 0 or 2. From 2: 2 or 3 in either case. From 1, a report
    # of ped finds the promise broken already, and the rule says u = 0; otherwise 1, 2 or 3.
    found = combinations(strategies_of(system_of(tmp_path, formula="G !(ped & x = 1)")))
    assert {x: sorted(each) for x, each in found.items()} == {
        0: [(0, 0), (0, 2), (1, 0), (1, 2), (2, 0), (2, 2)],
        1: [(1, 1), (2, 1), (3, 1)],
        2: [(2, 2), (2, 3), (3, 2), (3, 3)],
        3: [(3,)],
    }
    # With up to three steps and nothing to avoid, 0 has more moves than any other: four, whatever is reported.
    found = combinations(strategies_of(system_of(tmp_path, formula="G x >= 0", top=3)))
    assert sorted(found[0]) == list(itertools.product(range(4), repeat=2))


def test_a_start_wins_by_what_stands_there(tmp_path):
    system = system_of(tmp_path, formula="G !(ped & x < 2)", initial="true")
    starts = {
        name: winning_starts(set_scene(system, system.planners["walker"], name, MATRICES))
        for name in ("ped", "nobody")
    }
    assert {name: each.tolist() for name, each in starts.items()} == {"ped": [0, 0, 1, 1], "nobody": [1] * 4}


def test_states_that_no_strategy_reaches_are_left_out(tmp_path):
    system = system_of(tmp_path, formula="G x != 1 & G x != 2", admissible="u != 1")
    # From 0 the only moves are to 0 and 2, and 2 is never allowed: the strategies stay.
    assert combinations(strategies_of(system)) == {0: [(0, 0)]}


def test_a_goal_that_every_choice_reaches_is_accepted(tmp_path):
    found = combinations(strategies_of(system_of(tmp_path, formula="F x = 3", admissible="u >= 1")))
    assert {x: sorted(each) for x, each in found.items()} == {
        0: [(1, 1), (1, 2), (2, 1), (2, 2)],
        1: [(2, 2), (2, 3), (3, 2), (3, 3)],
        2: [(3, 3)],
        3: [(3,)],
    }


def test_a_goal_before_which_strategies_may_circle_is_refused(tmp_path):
    with pytest.raises(UsageError, match="its winning moves may circle before the goal"):
        strategies_of(system_of(tmp_path, formula="F x = 3"))  # u = 0 stays in place


def test_planners_without_choice_are_refused(tmp_path):
    system = system_of(tmp_path, formula="F x = 3")
    planner = replace(system.planners["walker"], kind="rules")
    with pytest.raises(UsageError, match="planner 'walker' is not synthesised"):
        build_strategies(set_scene(system, planner, "ped", MATRICES))


def test_too_many_combinations_are_refused(tmp_path):
    system = system_of(tmp_path, formula="G x >= 0")
    # 9 combinations in 0, 9 in 1, 4 in 2 and 1 in 3.
    with pytest.raises(LimitError, match=r"have 23 combinations of moves over 4 states; the limits are 22 and"):
        strategies_of(system, limits=Limits(states=22))
    strategies_of(system, limits=Limits(states=23))
    # Each has 120 bytes, and 80 for each of two observations.
    with pytest.raises(LimitError, match="have 23 combinations of moves"):
        strategies_of(system, limits=Limits(memory_bytes=23 * 280 - 1))
    strategies_of(system, limits=Limits(memory_bytes=23 * 280))


def test_what_chooses_among_moves_is_refused_above_the_limits_only(tmp_path, monkeypatch):
    def skeleton_of(system, **limits):
        return build_skeleton(
            system, system.planners["walker"], "ped", MATRICES, SkeletonOptions(limits=Limits(**limits))
        )

    # Each of 4 states has 120 bytes, 20 for x, and first 48 for each input, then 80 for each of 2 observations.
    for top, needed in ((4, 4 * (120 + 20 + 5 * 48)), (2, 4 * (120 + 20 + 2 * 80))):
        system = system_of(tmp_path, formula="G x >= 0", top=top)
        skeleton_of(system, states=4, memory_bytes=needed)
        with pytest.raises(
            NoAnswerError, match=r"with 2 observations on 4 states needs about 1\.[0-9]* KiB; the limit"
        ):
            skeleton_of(system, memory_bytes=needed - 1)
    with pytest.raises(NoAnswerError, match=r"the model has 4 states \(x: 4\); the limit is 3\n"):
        skeleton_of(system, states=3)
    monkeypatch.setattr("verifier.systems.scene.LARGEST_INPUT_COUNT", 3)
    skeleton_of(system)
    monkeypatch.setattr("verifier.systems.scene.LARGEST_INPUT_COUNT", 2)
    with pytest.raises(LimitError, match="would choose among 3 combinations of inputs; at most 2 are tried"):
        skeleton_of(system)
    text = (tmp_path / "walker.toml").read_text().replace("u = { range = [0, 2]", "u = { range = [0, 1]")
    for last, message in ((2**31 - 2, "the model has 2147483647 .* the limit is 2147483646"), (2**31 - 3, "needs")):
        (tmp_path / "walker.toml").write_text(text.replace("x = { range = [0, 3]", f"x = {{ range = [0, {last}]"))
        with pytest.raises(NoAnswerError, match=message):
            skeleton_of(read_model(tmp_path / "walker.toml").instantiate(), states=2**40)


NEXT = {
    "min(x + u, 3)": lambda x, u: min(x + u, 3),
    "(x + u) % 4": lambda x, u: (x + u) % 4,
    "(x + 2 * u + 1) % 4": lambda x, u: (x + 2 * u + 1) % 4,
    "max(x - u, 0)": lambda x, u: max(x - u, 0),
    "x * u": lambda x, u: x * u,
    "3 - x * u": lambda x, u: 3 - x * u,
}
ADMISSIBLE = {
    "true": lambda x, u: True,
    "u <= x + 1": lambda x, u: u <= x + 1,
    "u != x - 2": lambda x, u: u != x - 2,
}


def one_of(states):
    return " | ".join(f"x = {state}" for state in sorted(states)) or "false"


@st.composite
def walks(draw):
    states = st.sets(st.integers(0, 3))
    return {
        "next": draw(st.sampled_from(sorted(NEXT))),
        "admissible": draw(st.sampled_from(sorted(ADMISSIBLE))),
        "top": draw(st.integers(1, 2)),
        "initial": draw(st.sets(st.integers(0, 3), min_size=1)),
        "terminal": draw(st.one_of(st.just({3}), states)),
        "allowed": (draw(states) | draw(states), draw(states) | draw(states)),
    }


def built(walk, folder):
    whenever, with_ped = (one_of(each) for each in walk["allowed"])
    parts = {name: walk[name] for name in ("next", "admissible", "top")}
    parts |= {name: one_of(walk[name]) for name in ("initial", "terminal")}
    return system_of(folder, formula=f"G (ped | {whenever}) & G (!ped | {with_ped})", **parts)


def enumerated(walk):
    """What `combinations` must find, by trying everything; None where the rules leave a reached state stuck."""
    moves = {}
    for x in range(4):
        tried = {u: NEXT[walk["next"]](x, u) for u in range(walk["top"] + 1) if ADMISSIBLE[walk["admissible"]](x, u)}
        moves[x] = {u: target for u, target in tried.items() if 0 <= target <= 3}
    options = []
    for allowed, rule in zip(walk["allowed"], (1, 0), strict=True):
        kept = set(allowed)
        while True:
            fewer = {x for x in kept if x in walk["terminal"] or set(moves[x].values()) & kept}
            if fewer == kept:
                break
            kept = fewer
        options.append({x: set(moves[x].values()) & kept if x in kept else {moves[x].get(rule)} for x in range(4)})
    found, pending = {}, list(walk["initial"])
    while pending:
        x = pending.pop()
        if x in found:
            continue
        found[x] = (
            [(x,)] if x in walk["terminal"] else sorted(itertools.product(*(each[x] for each in options)), key=str)
        )
        targets = set(itertools.chain(*found[x]))
        if None in targets:
            return None
        pending += targets
    return found


@given(walks())
def test_the_process_holds_exactly_the_combinations_of_winning_moves(tmp_path_factory, walk):
    system, expected = built(walk, tmp_path_factory.mktemp("walks")), enumerated(walk)
    if expected is None:
        with pytest.raises(InputError, match="has no valid step"):
            strategies_of(system)
        return
    found = combinations(strategies_of(system))
    assert {x: sorted(each) for x, each in found.items()} == {x: sorted(each) for x, each in expected.items()}


def distribution(here, targets):
    """Where a combination of moves leads from `here`: next x -> probability."""
    weights = {}
    for target, weight in zip(targets, (1 - REPORTED[here], REPORTED[here]), strict=False):
        weights[target] = weights.get(target, 0) + (1 if len(targets) == 1 else weight)
    return weights


@given(walks())
def test_the_process_has_the_detectors_probabilities(tmp_path_factory, walk):
    expected = enumerated(walk)
    assume(expected is not None)
    process = process_of(built(walk, tmp_path_factory.mktemp("walks")), {"low": "x < 2"})
    x = process.valuations["x"].tolist()
    assert process.labels["low"].tolist() == [each < 2 for each in x]
    assert {x[s] for s in process.initial} == walk["initial"]
    for state, here in enumerate(x):
        rows = []
        for row in range(process.choice_starts[state], process.choice_starts[state + 1]):
            span = range(process.indptr[row], process.indptr[row + 1])
            rows.append([(x[process.indices[k]], round(float(process.probabilities[k]), 12)) for k in span])
        wanted = [
            [(target, round(float(weight), 12)) for target, weight in sorted(distribution(here, targets).items())]
            for targets in expected[here]
        ]
        assert sorted(map(sorted, rows)) == sorted(wanted)


@given(walks())
def test_the_controller_is_one_of_the_strategies(tmp_path_factory, walk):
    expected = enumerated(walk)
    assume(expected is not None)
    system = built(walk, tmp_path_factory.mktemp("walks"))
    skeleton = build_skeleton(system, system.planners["walker"], "ped", MATRICES)
    chain = markov_chain(skeleton, COUNTS, {}, exact=True)
    x = chain.valuations["x"].tolist()
    for state, here in enumerate(x):
        span = range(chain.indptr[state], chain.indptr[state + 1])
        row = {x[chain.indices[k]]: chain.fractions[k] for k in span}
        assert row in [distribution(here, targets) for targets in expected[here]]
