"""Memory, trackers and frames by hand, and trackers against their definition written out with lists."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from matrix_documents import write_matrices

from verifier.base.errors import InputError
from verifier.chains.chain import markov_chain
from verifier.language.expressions import parse_expression
from verifier.perception.confusion import EMPTY, ConfusionMatrices
from verifier.study.case import Study
from verifier.study.inputs import read_inputs
from verifier.study.options import RunOptions
from verifier.systems.observation import remembered, tracked
from verifier.systems.reader import read_model
from verifier.systems.scene import SkeletonOptions
from verifier.systems.skeleton import build_skeleton

PED = frozenset({"ped"})
MATRICES = ConfusionMatrices("class", (PED, EMPTY), np.array([0.0, 10]), np.array([[[6, 0], [4, 1]]]))
P = Fraction(6, 10)

STOP = """
step_s = 1.5
frame_s = FRAME
initial = "x = 0"
terminal = "x >= 5"
[variables]
x = { range = [0, 9], next = "x + step" }
[inputs]
step = { range = [0, 9], default = 1 }
[environments]
here = [{ class = "ped", name = "walker", distance_m = 5 }]
[planners.driver]
"""


def model_of(folder, planner, frame_s=1.5):
    path = folder / "stop.toml"
    path.write_text(STOP.replace("FRAME", str(frame_s)) + planner)
    return read_model(path)


def ends(folder, planner, frame_s=1.5):
    """x at the end -> probability, by walking the chain in fractions."""
    system = model_of(folder, planner, frame_s).instantiate()
    skeleton = build_skeleton(system, system.planners["driver"], "here", MATRICES, SkeletonOptions())
    chain = markov_chain(skeleton, MATRICES.counts, {}, exact=True)
    now, found = {int(chain.initial[0]): Fraction(1)}, {}
    while now:
        following = {}
        for state, probability in now.items():
            if skeleton.terminal[state]:
                x = int(skeleton.valuations["x"][state])
                found[x] = found.get(x, 0) + probability
                continue
            for k in range(*chain.indptr[state : state + 2]):
                target = int(chain.indices[k])
                following[target] = following.get(target, 0) + probability * chain.fractions[k]
        now = following
    return found


def test_memory_keeps_what_rules_set_and_is_read_before_it_is_set(tmp_path):
    # Two reports in a row stop the car at 9; `seen` counts them, and a miss sets it back.
    planner = """
    memory = { seen = { range = [0, 2], initial = 0 } }
    rules = [
        { when = "sees(ped) & seen = 1", set = { step = "9 - x", seen = "seen + 1" } },
        { when = "sees(ped)", set = { seen = "seen + 1" } },
        { set = { seen = 0 } },
    ]"""
    runs = itertools.product([True, False], repeat=5)
    stopped = sum(
        P ** sum(run) * (1 - P) ** (5 - sum(run)) for run in runs if any(a and b for a, b in itertools.pairwise(run))
    )
    assert ends(tmp_path, planner) == {9: stopped, 5: 1 - stopped}


def test_a_tracker_of_one_of_one_is_the_report_itself(tmp_path):
    raw = 'rules = [{ when = "sees(ped) & x >= 2", set = { step = 3 } }]'
    of = 'trackers = { ped = { of = "sees(ped)", confirm = [1, 1], delete = [1, 1] } }\n'
    assert ends(tmp_path, of + raw.replace("sees(ped)", "confirmed(ped)")) == ends(tmp_path, raw)


def test_two_of_two_confirm(tmp_path):
    planner = """
    trackers = { ped = { of = "report(walker) = ped & x < 4", confirm = [2, 2], delete = [2, 2] } }
    rules = [{ when = "confirmed(ped) & x = 2", set = { step = 7 } }]"""
    # At x = 2 three results have been seen; confirmed after two hits in a row, and one miss does not delete.
    assert ends(tmp_path, planner) == {9: P * P + (1 - P) * P * P, 5: 1 - P * P - (1 - P) * P * P}


def test_what_is_remembered_and_reported_of_one_frame(tmp_path):
    planner = """
    memory = { seen = { range = ["0 - 1", 2], initial = 1 } }
    trackers = { t = { of = "sees(ped)", confirm = [2, 3], delete = [1, 2] } }
    rules = [{ when = "sees(ped) & confirmed(t)", set = { seen = 2 } }]"""
    system = model_of(tmp_path, planner).instantiate()
    driver = system.planners["driver"]
    assert [((part.name, part.low, part.high), first) for part, first in remembered(system, driver)] == [
        (("seen", -1, 2), 1),
        (("t_confirmed", 0, 1), 0),
        (("t_recent", 0, 3), 0),
    ]
    skeleton = build_skeleton(system, driver, "here", MATRICES, SkeletonOptions())
    assert skeleton.channel.observations == (frozenset(), PED)


@pytest.mark.parametrize(("low", "high", "up", "down"), [(0, 4, 1, 0), (-4, 0, 0, -4), (-2, 3, 3, 2)])
def test_log_odds_are_read_as_they_are_written(tmp_path, low, high, up, down):
    odds = f"hit = 2, miss = -3, range = [{low}, {high}], confirm = {up}, delete = {down}"
    planner = f'trackers = {{ t = {{ of = "sees(ped)", log_odds = {{ {odds} }} }} }}\nrules = [{{ set = {{}} }}]'
    (found,) = model_of(tmp_path, planner).planners["driver"].trackers
    assert (found.confirm, found.delete, found.log_odds) == ((up, up), (down, down), (2, -3))
    assert (found.levels, found.start) == ((low, high), 0)


def by_definition(tracker, results):
    """(confirmed, last results as bits or level) after some results, with lists."""
    q = 0
    if tracker.log_odds is not None:
        level, (low, high), (hit, miss) = tracker.start, tracker.levels, tracker.log_odds
        for b in results:
            level = max(low, min(high, level + (hit if b else miss)))
            q = int(level > tracker.delete[0]) if q else int(level >= tracker.confirm[0])
        return q, level
    (m, n), (m_, n_) = tracker.confirm, tracker.delete
    h = [0] * (n - 1)
    for b in results:
        h = [*h, b]
        if q == 0 and sum(h) >= m:
            q, h = 1, [1] * (n_ - 1)
        elif q == 1 and len(h) - sum(h) >= m_:
            q, h = 0, [0] * (n - 1)
        else:
            h = h[1:]
    return q, int("".join(map(str, ["0", *h])), 2)


ODDS = "{ hit = 2, miss = -1, range = [-2, 5], confirm = 3, delete = -1, start = -1 }"


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "kind",
    [f"confirm = [{c}], delete = [{d}]" for c in ("1, 1", "2, 3", "3, 5", "1, 4") for d in ("1, 1", "2, 2", "3, 5")]
    + [f"log_odds = {ODDS}", "log_odds = { hit = 1, miss = -3, range = [0, 4], confirm = 2, delete = 0 }"],
)  # fmt: skip
def test_trackers_do_what_their_definition_says(tmp_path, kind):
    rules = 'rules = [{ when = "confirmed(t)" }]'
    system = model_of(tmp_path, f'trackers = {{ t = {{ of = "sees(ped)", {kind} }} }}\n{rules}').instantiate()
    planner = system.planners["driver"]
    (tracker,) = planner.trackers
    for results in itertools.product([0, 1], repeat=9):
        values = {"x": np.array([0]), "t_confirmed": np.array([0]), "t_recent": np.array([tracker.start])}
        # Four frames in one step, then one frame in each of five.
        for part in (results[:4], *([b] for b in results[4:])):
            values |= tracked(system, planner, [PED if b else EMPTY for b in part], values, 1)
        found = int(values["t_confirmed"][0]), int(values["t_recent"][0])
        assert found == by_definition(tracker, results)
        assert values["confirmed(t)"].tolist() == [found[0] == 1]


@pytest.mark.parametrize(
    ("reading", "frames", "expected"),
    [
        ('"last"', 3, P),
        ('"any"', 3, 1 - (1 - P) ** 3),
        ('"all"', 3, P**3),
        ('"all"', 2, P**2),
        ("[2, 3]", 3, 3 * P**2 * (1 - P) + P**3),
        ("[1, 3]", 3, 1 - (1 - P) ** 3),
    ],
)
@pytest.mark.parametrize(
    "tracking", ["", 'trackers = { t = { of = "sees(ped)", confirm = [1, 1], delete = [1, 1] } }']
)
def test_what_sees_means_of_some_frames(tmp_path, reading, frames, expected, tracking):
    rules = '{ when = "sees(ped)", set = { step = 9 } }, { set = { step = 5 } }'
    planner = f"reading = {reading}\n{tracking}\nrules = [{rules}]"
    assert ends(tmp_path, planner, 1.5 / frames) == {9: expected, 5: 1 - expected}


def test_trackers_see_every_frame_and_counts_the_last(tmp_path):
    planner = """
    trackers = { ped = { of = "sees(ped)", confirm = [3, 3], delete = [1, 1] } }
    rules = [
        { when = "confirmed(ped)", set = { step = 9 } },
        { when = "count(ped) = 1", set = { step = 8 } },
        { set = { step = 7 } },
    ]"""
    assert ends(tmp_path, planner, 0.5) == {9: P**3, 8: P - P**3, 7: 1 - P}


def test_a_spec_may_name_memory_that_all_its_planners_have(tmp_path):
    memory = "memory = { seen = { range = [0, 1], initial = 0 } }\n"
    rules = 'rules = [{ when = "sees(ped)", set = { seen = 1 } }]'
    model_of(tmp_path, f"{memory}{rules}\n[planners.other]\n{rules.replace(', set = { seen = 1 }', '')}")
    write_matrices(tmp_path / "cm.json", [[6, 0], [4, 1]], false_positives="counted")
    spec = tmp_path / "s.ltl"
    spec.write_text('model "stop.toml"\nplanner driver\nmet: P = ? [ F seen = 1 ]\n')
    options = RunOptions(confidence=None)
    (case,) = Study.of(read_inputs(spec, tmp_path / "cm.json", options), options).cases
    assert case.initial_states == ({"x": 0},)
    assert case.skeleton.mask_of(parse_expression("seen = 1")).sum() == 5
    spec.write_text(spec.read_text().replace("planner driver", "planner driver, other"))
    with pytest.raises(InputError, match="unknown name 'seen'"):
        read_inputs(spec, tmp_path / "cm.json", options)


SEES = 'rules = [{ when = "sees(ped)" }]'


@pytest.mark.parametrize(
    ("planner", "frame_s", "message"),
    [
        (SEES, 0.6, "step_s / frame_s = 2.5: expected a whole number of frames per step"),
        (f"reading = [1, 2]\n{SEES}", 0.5, "expected [h, 3], as many frames as a step has, got [1, 2]"),
        (f'reading = "some"\n{SEES}', 0.5, "expected one of last, any, all"),
        (
            'reading = "any"\nrules = [{ when = "count(ped) = 1" }]',
            0.5,
            'count(ped) means the last frame; reading = "any" goes with sees only',
        ),
        (
            'reading = "all"\nrules = [{ when = "report(walker) = ped" }]',
            0.5,
            ': report(walker) means the last frame; reading = "all" goes with sees only',
        ),
        (
            'reading = "all"\nrules = [{ when = "report(walker, within = 10) = ped" }]',
            0.5,
            ': report(walker, within = 10) means the last frame; reading = "all" goes with sees only',
        ),
        (
            'reading = "all"\nrules = [{ when = "count(ped, within = 10) = 1" }]',
            0.5,
            ': count(ped, within = 10) means the last frame; reading = "all" goes with sees only',
        ),
        ('rules = [{ when = "confirmed(ped)" }]', 1.5, "unknown tracker 'ped'"),
        ('trackers = { t = { of = "sees(ped)", confirm = [3, 2], delete = [1, 1] } }\n' + SEES, 1.5, "from 1 to 2"),
        ('trackers = { t = { of = "sees(ped)", confirm = [1, 2] } }\n' + SEES, 1.5, "either 'confirm' and 'delete'"),
        (
            'trackers = { t = { of = "sees(ped) & confirmed(t)", confirm = [1, 1], delete = [1, 1] } }\n' + SEES,
            1.5,
            "a tracker is of what is reported, not of confirmed(...)",
        ),
        (
            "memory = { t_confirmed = { range = [0, 1], initial = 0 } }\n"
            'trackers = { t = { of = "x = 0", confirm = [1, 1], delete = [1, 1] } }\n' + SEES,
            1.5,
            "'t_confirmed' is declared already, as two things of the planner",
        ),
        ("memory = { x = { range = [0, 1], initial = 0 } }\n" + SEES, 1.5, "'x' is declared already, as a variable"),
        ('memory = { m = { range = ["y", 1], initial = 0 } }\n' + SEES, 1.5, "memory.m.range[0]: unknown name 'y'"),
        ('memory = { m = { range = [0, "y"], initial = 0 } }\n' + SEES, 1.5, "memory.m.range[1]: unknown name 'y'"),
        ('memory = { m = { range = [0, 1], initial = "y" } }\n' + SEES, 1.5, "memory.m.initial: unknown name 'y'"),
        ("memory = { m = { range = [0, 1], initial = 2 } }\n" + SEES, 1.5, "'m' begins with 2, outside 0..1"),
        (
            'memory = { m = { range = [0, 1], initial = 0 } }\nrules = [{ set = { m = "m + 1" } }]',
            1.5,
            "m = 2, expected a whole number in 0..1",
        ),
        (
            'trackers = { t = { of = "sees(ped)", confirm = [1, 2, 3], delete = [1, 1] } }\n' + SEES,
            1.5,
            "expected [m, n], m of the last n, got [1, 2, 3]",
        ),
        *(
            (
                f"trackers = {{ t = {{ of = \"sees(ped)\", log_odds = {{ hit = 1, miss = -1, {odds} }} }} }}\n{SEES}",
                1.5,
                message,
            )
            for odds, message in (
                ("range = [2, 1], confirm = 2, delete = 1", "expected [low, high], got [2, 1]"),
                ("range = [0, 4, 5], confirm = 2, delete = 1", "expected [low, high], got [0, 4, 5]"),
                ("range = [0, 4], confirm = 0, delete = 0", "trackers.t.log_odds.confirm: "),
                ("range = [0, 0], confirm = 0, delete = 0", "trackers.t.log_odds.confirm: "),
                ("range = [0, 4], confirm = 2, delete = 2", "trackers.t.log_odds.delete: "),
                ("range = [1, 4], confirm = 2, delete = 1", "it starts at 0, outside 1..4"),
                ("range = [-4, -1], confirm = -1, delete = -2", "it starts at 0, outside -4..-1"),
            )
        ),
        ('kind = "synthesis"\nreading = "any"\nrules = []', 1.5, "'reading' goes with kind"),
    ],
)  # fmt: skip
def test_mistakes_are_named(tmp_path, planner, frame_s, message):
    with pytest.raises(InputError) as caught:
        ends(tmp_path, planner, frame_s)
    assert message in str(caught.value)
