"""`verify run` where the world decides: least and greatest probabilities, their bounds, and refusals."""

import json
import math
from dataclasses import replace
from fractions import Fraction as Fr

import pytest
from scipy.stats import beta
from world_specs import matrices_of, spec_of

from verifier.base.errors import InputError, NoAnswerError
from verifier.checking.settings import EngineSettings
from verifier.checking.verdicts import Verdict
from verifier.cli import main
from verifier.pipeline import verify_spec
from verifier.study.options import RunOptions, Selection

POINT = RunOptions(confidence=None)
ASKED = ("no_hit", "can_hit", "lucky", "both", "order", "slowest")


@pytest.fixture(scope="module")
def crossing(shared, tmp_path_factory):
    folder, target = shared / "oracles/worlds/crossing_adversarial", tmp_path_factory.mktemp("crossing")
    return spec_of(folder, target, ASKED), matrices_of(folder, target), folder


def test_every_number_of_the_oracle_by_both_engines(crossing):
    spec, matrices, folder = crossing
    values = {each["requirement"]: each for each in json.loads((folder / "values.json").read_text())["values"]}
    result = verify_spec(spec, matrices, POINT)
    assert [each.name for each in result.requirements] == list(ASKED)
    for each in result.requirements:
        point, wanted = each.worst_point, values[each.name]
        assert each.asked == wanted["asked"]
        exact = float(Fr(wanted["exact"]))
        assert math.isclose(point.probability, exact, rel_tol=1e-9)
        assert math.isclose(point.second_engine, exact, rel_tol=1e-9)
        assert point.lower <= exact <= point.upper
        assert point.upper - point.lower < 1e-9
    assert not any("one engine" in remark for remark in result.remarks)
    assert any("the world decides 'walk', 'stumble'" in remark for remark in result.remarks)


def test_exact_fractions_are_those_of_the_oracle(crossing):
    spec, matrices, folder = crossing
    values = {each["requirement"]: each for each in json.loads((folder / "values.json").read_text())["values"]}
    options = RunOptions(confidence=None, engines=EngineSettings(exact=True))
    for each in verify_spec(spec, matrices, options).requirements:
        assert each.worst_point.exact == Fr(values[each.name]["exact"])


MODEL = """
initial = "x = 0"
terminal = "x >= 2"
[variables]
x = { range = [0, 3], next = "ite(u = 1, 2, ite(push = 1, 3, 1))" }
[world]
push = { range = [0, 1] }
[inputs]
u = { range = [0, 1], default = 0 }
[labels]
stopped = "x = 2"
lost = "x = 3"
[environments]
ped = [{ class = "ped", distance_m = 5 }]
[planners.walker]
rules = [{ when = "sees(ped)", set = { u = 1 } }, {}]
"""
# The pedestrian is reported with 3/4. The world may wait once in x = 0 and once in x = 1, or end the episode in 3.
# Stopped: at once with 3/4; else, if it waits for ever, surely in the end; if it pushes at once, never again.
COUNTS = [[3, 0], [1, 1]]


def files(folder, requirements, model=MODEL, counts=COUNTS):
    (folder / "model.toml").write_text(model)
    (folder / "spec.ltl").write_text('model "model.toml"\n' + requirements)
    document = {"schema": "verifier.confusion", "version": 1, "labelling": "class", "axes": ["predicted", "true"]}
    document |= {"labels": ["ped", "empty"], "false_positives": "counted"}
    (folder / "cm.json").write_text(json.dumps(document | {"bins": [{"distance_m": [0, 10], "counts": counts}]}))
    return folder / "spec.ltl", folder / "cm.json"


def found(folder, requirements, options=POINT, **more):
    return {each.name: each for each in verify_spec(*files(folder, requirements, **more), options).requirements}


def test_what_plain_p_means_where_the_world_decides(tmp_path):
    asked = found(
        tmp_path,
        """
        most: P >= 0.9 [ F stopped ]
        little: P <= 0.2 [ F lost ]
        open: P = ? [ F stopped ]
        some: Pmax >= 0.9 [ F stopped ]
        over: P > 0.75 [ F stopped ]
        """,
    )
    told = {name: (each.asked, each.worst_point.probability) for name, each in asked.items()}
    # It waits in x = 0, then in x = 1 for ever: the pedestrian is reported at some time, and P = 1.
    assert told == {
        "most": ("Pmin", 0.75),
        "little": ("Pmax", 0.25),
        "open_min": ("Pmin", 0.75),
        "open_max": ("Pmax", 1.0),
        "some": ("Pmax", 1.0),
        "over": ("Pmin", 0.75),
    }
    verdicts = {name: each.verdict for name, each in asked.items() if each.target is not None}
    assert verdicts == {
        "most": Verdict.VIOLATED,
        "little": Verdict.VIOLATED,
        "some": Verdict.SATISFIED,
        "over": Verdict.VIOLATED,
    }


def test_a_requirement_that_asks_for_both_ends_must_not_take_a_name(tmp_path):
    with pytest.raises(InputError, match="rename open_max, which is another requirement"):
        found(tmp_path, "open: P = ? [ F stopped ]\nopen_max: P = ? [ F lost ]")


def test_a_selected_requirement_gives_both_ends(tmp_path):
    options = replace(POINT, selection=Selection(requirements=("open",)))
    asked = found(tmp_path, "open: P = ? [ F stopped ]\nother: P = ? [ F lost ]", options)
    assert list(asked) == ["open_min", "open_max"]


def test_bounds_hold_what_any_matrix_within_them_gives(tmp_path):
    # P(stopped) is q for the least and 1 for the greatest value, q the rate of reports. Bounds of q by Clopper and
    # Pearson at one event: [0.025, 0.975] quantiles of Beta(30, 11) and Beta(31, 10).
    options = RunOptions()
    asked = found(tmp_path, "open: P = ? [ F stopped ]", options, counts=[[30, 0], [10, 1]])
    low, high = asked["open_min"].worst_point, asked["open_max"].worst_point
    bounds = low.uncertainty.confidence_bounds
    assert bounds.lower == pytest.approx(beta.ppf(0.025, 30, 11), abs=1e-6)
    assert bounds.upper == pytest.approx(beta.ppf(0.975, 31, 10), abs=1e-6)
    assert low.uncertainty.interval.lower == pytest.approx(beta.ppf(0.025, 30.5, 10.5), abs=0.01)
    assert low.uncertainty.interval.upper == pytest.approx(beta.ppf(0.975, 30.5, 10.5), abs=0.01)
    assert high.uncertainty.confidence_bounds.lower == high.uncertainty.confidence_bounds.upper == 1.0
    assert high.whatever_predicted is None or high.probability == high.whatever_predicted


def test_what_is_not_known_where_the_world_decides_has_no_answer(tmp_path):
    for asked in ("F lost given G F stopped", "F<=3 lost given F stopped", "X lost given F stopped"):
        with pytest.raises(NoAnswerError, match="only 'F a given F b' is known where the world decides"):
            verify_spec(*files(tmp_path, f"late: P = ? [ {asked} ]"), POINT)
    with pytest.raises(NoAnswerError, match=r"'F \(x = 0 & x = 1\)' has probability 0: nothing is known"):
        verify_spec(*files(tmp_path, "never: P = ? [ F stopped given F (x = 0 & x = 1) ]"), POINT)


@pytest.mark.parametrize("exact", [False, True])
def test_conditional_probabilities_where_the_world_decides(exact, tmp_path):
    spec = """
        then: P = ? [ F stopped given F x = 1 ]
        waited: P = ? [ F x = 1 given F stopped ]
        apart: P = ? [ F lost given F stopped ]
        """
    asked = found(tmp_path, spec, options=RunOptions(confidence=None, engines=EngineSettings(exact=exact)))
    told = {name: each.worst_point.probability for name, each in asked.items()}
    assert told == {
        "then_min": pytest.approx(0.75, abs=1e-12),  # in x = 1 it pushes at once
        "then_max": pytest.approx(1.0, abs=1e-12),
        "waited_min": pytest.approx(0.0, abs=1e-12),  # it pushes in x = 0
        "waited_max": pytest.approx(0.25, abs=1e-12),  # it waits for ever; pushing in x = 1 gives 3/16 of 15/16
        "apart_min": 0.0,
        "apart_max": 0.0,
    }
    if exact:
        assert asked["waited_max"].worst_point.exact == Fr(1, 4)


GAINING = MODEL.replace(
    "[labels]",
    """[rewards]
asked = "ite(x = 1, 2, 1)"
moved = "push"
[labels]""",
)


def test_times_and_gains_where_the_world_decides(tmp_path):
    # Until the end: at once with 3/4, else in x = 1, where it may wait for the next report, 4/3 on average.
    spec = """
        time: T = ? [ F ended ]
        gain: R{asked} <= 2 [ F ended ]
        never: T = ? [ F stopped ]
        """
    asked = found(tmp_path, spec, model="step_s = 0.5\n" + GAINING)
    told = {name: (each.asked, each.worst_point.probability) for name, each in asked.items()}
    assert told["time_min"] == ("Tmin", pytest.approx(0.5))
    assert told["time_max"] == ("Tmax", pytest.approx(0.5 * (1 + 1 / 4 * 4 / 3)))
    assert told["gain"] == ("Rmax{asked}", pytest.approx(1 + 2 / 4 * 4 / 3))
    # The world may let it be stopped surely, in 4/3 steps on average, or never.
    assert told["never_min"] == ("Tmin", pytest.approx(0.5 * (1 + 1 / 4 * 4 / 3)))
    assert told["never_max"] == ("Tmax", math.inf)
    assert asked["gain"].verdict is Verdict.SATISFIED
    with pytest.raises(NoAnswerError, match=r"rewards that read what a deciding world does \(push\) are not"):
        found(tmp_path, "gain: R{moved} <= 2 [ F ended ]", model=GAINING)


def test_what_the_world_does_is_told_and_gives_the_value_again(tmp_path):
    asked = found(tmp_path, "open: P = ? [ F stopped ]", replace(POINT, strategies=True))
    least, greatest = asked["open_min"].world, asked["open_max"].world
    # To make it fail it pushes at once; to make it hold it never does.
    assert (least.probability, least.states) == (0.75, 1)
    assert [(each.state, each.decides, each.visits) for each in least.decided] == [({"x": 0}, {"push": "1"}, 1.0)]
    assert greatest.probability == pytest.approx(1.0, abs=1e-12)
    assert greatest.states == 2
    assert {each.state["x"]: each.decides["push"] for each in greatest.decided} == {0: "0", 1: "0"}
    # From x = 1 on the pedestrian is missed with 1/4 in each step, after having been missed once.
    assert [each.visits for each in greatest.decided] == pytest.approx([1.0, 1 / 3])


@pytest.mark.parametrize(
    ("verb", "options"),
    [("explain", ("--cm",)), ("require", ("--requirement", "most", "--cm")), ("compare", ("--cm", "one={cm}"))],
)
def test_commands_about_chains_refuse_it_by_name(tmp_path, verb, options, capsys):
    spec, matrices = files(tmp_path, "most: P >= 0.9 [ F stopped ]")
    given = [*options, str(matrices)] if options[-1] == "--cm" else [each.format(cm=matrices) for each in options]
    assert main([verb, str(spec), *given]) == 2
    assert "the world decides 'push'" in capsys.readouterr().err


@pytest.mark.parametrize("exact", [False, True])
def test_quantiles_and_gains_of_some_steps_where_the_world_decides(exact, tmp_path):
    # Stopped within k steps: at best 1 - 1/4^k, as the world waits; at worst 3/4, as it pushes at once. It has ended
    # after one step if the world pushes, and is still going on after k steps with 1/4^k if it waits.
    spec = """
        soon: T{0.9} = ? [ F stopped ]
        over: T{0.95} = ? [ F ended ]
        sure: T{1} = ? [ F ended ]
        exactly: T{0.75} = ? [ F stopped ]
        first: R{asked} = ? [ C<=2 ]
        late: T{0.99} <= 1 [ F ended ]
        """
    options = RunOptions(confidence=None, engines=EngineSettings(exact=exact))
    asked = found(tmp_path, spec, options=options, model="step_s = 0.5\n" + GAINING)
    told = {name: (each.asked, each.worst_point.probability) for name, each in asked.items()}
    assert told == {
        "soon_min": ("Tmin{0.9}", 1.0),
        "soon_max": ("Tmax{0.9}", math.inf),
        "over_min": ("Tmin{0.95}", 0.5),
        "over_max": ("Tmax{0.95}", 1.5),
        "sure_min": ("Tmin{1}", 0.5),
        "sure_max": ("Tmax{1}", math.inf),
        "exactly_min": ("Tmin{0.75}", 0.5),
        "exactly_max": ("Tmax{0.75}", 0.5),
        "first_min": ("Rmin{asked}", 1.0),  # in x = 0
        "first_max": ("Rmax{asked}", 1.5),  # and in x = 1, where it is with 1/4
        "late": ("Tmax{0.99}", 2.0),  # 1/4^4 < 1/100
    }
    assert asked["late"].verdict is Verdict.VIOLATED


def test_intervals_of_quantiles_and_gains_of_some_steps(tmp_path):
    asked = found(
        tmp_path,
        "over: T{0.95} <= 9 [ F ended ]\nfirst: R{asked} <= 9 [ C<=2 ]",
        options=RunOptions(),
        model="step_s = 0.5\n" + GAINING,
        counts=[[30, 0], [10, 1]],
    )
    first, over = asked["first"].worst_point.uncertainty, asked["over"].worst_point.uncertainty
    # 1 + 2 (1 - q) at the ends of q, the rate of reports; k with (1 - q)^k <= 1/20.
    ends = beta.ppf([0.975, 0.025], 30.5, 10.5)
    assert (first.interval.lower, first.interval.upper) == pytest.approx(1 + 2 * (1 - ends), abs=0.02)
    steps = [math.ceil(math.log(0.05) / math.log(1 - q)) for q in ends]
    assert (over.interval.lower, over.interval.upper) == tuple(0.5 * k for k in steps)
