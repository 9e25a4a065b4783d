"""`verify require` as a user meets it: answers that a later run confirms, and clear words where there is none."""

import csv
import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from run_documents import channel
from typed_documents import read_back
from typed_runs import channel_of, point_of, settings_of

from verifier.analysis.channel_test import channel_condition, channel_test
from verifier.base.errors import ExitCode
from verifier.checking.verdicts import Verdict, verdict_text
from verifier.perception.confusion import read_confusion
from verifier.pipeline import verify_spec
from verifier.questions.require.require_result import (
    Answer,
    AskedRequirement,
    Outcome,
    RequireResult,
    RequireSettings,
)
from verifier.study.inputs import Selection
from verifier.study.options import RunOptions
from verifier.study.results import engines_over

SPEC = "specs/car_pedestrian.ltl"
BY_CLASS = "examples/nuscenes_yolov3_class.json"
BY_SET = "examples/nuscenes_yolov3_proposition.json"
STOPS = ("--requirement", "stops_for_pedestrians")

SCENE = """
initial = "s = 0"
terminal = "s > 0"
[variables]
s = { range = [0, 2], next = "go" }
[inputs]
go = { range = [1, 2] }
[environments]
ped = [{ class = "ped", distance_m = 5 }]
nobody = [{ class = "empty", distance_m = 5 }]
[planners.attentive]
rules = [{ when = "sees(ped)", set = { go = 1 } }, { when = "true", set = { go = 2 } }]
[planners.blind]
rules = [{ when = "sees(ped)", set = { go = 2 } }, { when = "true", set = { go = 2 } }]
"""
"""One look at a pedestrian 5 m away: s = 1 is to stop, s = 2 to go on."""


@pytest.fixture
def require(shipped):
    return shipped("require")


@pytest.fixture
def scene(tmp_path):
    """A function that writes the scene with a spec of these lines and gives the spec's path."""

    def write(*lines, model=SCENE):
        (tmp_path / "scene.toml").write_text(model)
        path = tmp_path / "scene.ltl"
        path.write_text("\n".join(['model "scene.toml"', *lines]) + "\n")
        return path

    return write


def document(require, *arguments, **files):
    code, out, err = require(*arguments, "--json", **files)
    assert err == ""
    return code, json.loads(out)


def answer(require, *arguments, **files):
    code, found = document(require, *arguments, **files)
    (one,) = found["answers"]
    return code, one


# ------------------------------------------------------------------------------------------ answers by hand


def test_a_verdict_that_takes_the_data_as_exact_says_so_in_every_output(require, root, tmp_path):
    requirement = "stops_only_for_pedestrians"
    run = verify_spec(root / SPEC, root / BY_CLASS, RunOptions(Selection(requirements=(requirement,))))
    (judged,) = run.requirements
    assert judged.verdict is Verdict.INCONCLUSIVE
    _, told, _ = require("--requirement", requirement, "-o", tmp_path / "required.json")
    assert "satisfied" in told
    assert "inconclusive" not in told
    said = "take the measured rates as exact"
    assert said in told
    assert said in (tmp_path / "required.json").read_text()


def test_one_look_needs_the_recall_that_the_target_names(require, scene):
    # P = recall of ped in [0, 10) m, measured 31/158.
    spec = scene("planner attentive", "environments ped", "stops: P >= 0.95 [ F s = 1 ]")
    code, found = answer(require, spec=spec)
    assert code == ExitCode.SATISFIED
    assert (found["outcome"], found["value"], found["met_as_measured"]) == ("found", "0.95", False)
    (cell,) = found["cells"]
    assert cell == {
        "bin": "[0, 10) m",
        "label": "ped",
        "measured": {"hits": 31, "items": 158, "recall": 31 / 158},
        "required": "0.95",
    }
    assert found["at_value"]["exact"] == "19/20"
    assert found["measured"]["exact"] == "31/158"
    assert found["perfect"]["exact"] == "1"


def test_a_strict_target_needs_one_part_more(require, scene):
    spec = scene("planner attentive", "environments ped", "stops: P > 0.95 [ F s = 1 ]")
    assert answer(require, spec=spec)[1]["value"] == "0.950001"
    assert answer(require, "--decimals", "3", spec=spec)[1]["value"] == "0.951"


def test_an_upper_limit_is_met_from_the_other_side(require, scene):
    spec = scene("planner attentive", "environments ped", "goes_on: P <= 0.25 [ F s = 2 ]")
    code, found = answer(require, "--floor", spec=spec)
    assert (code, found["value"]) == (ExitCode.SATISFIED, "0.75")
    assert found["floor"]["floors"] in (["0.75"], ["0.750001"])
    assert found["floor"]["proven"] <= 0.25
    assert found["floor"]["checked"]


def test_a_factor_on_the_miss_rate(require, scene):
    # 1 - f 127/158 >= 0.95 exactly when f <= 7.9/127 = 0.0622047...
    spec = scene("planner attentive", "environments ped", "stops: P >= 0.95 [ F s = 1 ]")
    _, found = answer(require, "--mode", "factor", spec=spec)
    # Rounded up, the recall is 0.95 for a factor a little beyond.
    assert float(Fraction(found["value"])) == pytest.approx(7.9 / 127, abs=2e-6)
    assert found["cells"][0]["required"] == "0.95"


def test_walking_pace_needs_one_detection_and_speed_needs_three(require):
    # The feedback planner at initial speed v needs v detections in [0, 10) m: r^3 >= 0.95 for v up to 3.
    _, one = answer(require, *STOPS, "--planner", "feedback", "--set", "vmax=1")
    assert one["value"] == "0.95"
    _, three = answer(require, *STOPS, "--planner", "feedback", "--set", "vmax=3")
    least = next(k for k in range(950_000, 10**6) if Fraction(k, 10**6) ** 3 >= Fraction(95, 100))
    assert Fraction(three["value"]) == Fraction(least, 10**6)
    assert three["at_value"]["initial"]["v"] == 3


def test_every_planner_and_every_swept_value_has_an_answer(require):
    planners = ("--planner", "feedback", "--planner", "correct")
    code, found = document(require, *STOPS, *planners, "--env", "ped", "--sweep", "vmax=1..3")
    assert code == ExitCode.SATISFIED
    places = {(each["planner"], each["constants"]["vmax"]): float(each["value"]) for each in found["answers"]}
    assert len(places) == 6
    assert places["feedback", "1"] < places["feedback", "2"] < places["feedback", "3"]
    assert {places["correct", vmax] for vmax in "123"} == {0.95}


def test_bins_share_the_burden_by_their_prices(require, tmp_path):
    # The published planner at vmax = 3 needs one detection in [50, 60) m and two in [0, 10) m: P = r^2 q.
    prices = tmp_path / "prices.csv"
    prices.write_text("distance_m,price\n0,1\n55,1\n")
    _, found = answer(require, *STOPS, "--set", "vmax=3", "--cost", prices)
    near, far = (Fraction(cell["required"]) for cell in found["cells"])
    assert near**2 * far >= Fraction(95, 100)
    # A gain near counts twice, so near is perfect and far takes what is left.
    assert (near, far) == (1, Fraction(95, 100))
    prices.write_text("distance_m,price,class\n0,10,ped\n55,1,ped\n")
    _, dear = answer(require, *STOPS, "--set", "vmax=3", "--cost", prices)
    near, far = (float(cell["required"]) for cell in dear["cells"])
    assert far == pytest.approx(1, abs=2e-6)
    assert near == pytest.approx(0.95**0.5, abs=2e-6)
    assert float(Fraction(dear["value"])) == pytest.approx(10 * (0.95**0.5 - 31 / 158) + 1 - 10 / 858, abs=3e-5)


def test_the_labels_of_proposition_matrices(require):
    _, found = answer(require, *STOPS, "--class", "ped", cm=BY_SET)
    assert found["cells"][0]["measured"] == {"hits": 22, "items": 85, "recall": 22 / 85}
    code, _, err = require(*STOPS, "--class", "obs+pde", cm=BY_SET)
    assert code == ExitCode.USAGE
    assert "unknown true label 'obs+pde'" in err
    assert "{obs, ped}" in err


# ------------------------------------------------------------------------------------------ confirmed by a run


@pytest.mark.parametrize("planner", ["published", "feedback", "cautious"])
def test_verify_run_confirms_the_answer_and_refutes_one_part_less(require, root, tmp_path, planner):
    from verifier.perception.confusion import write_confusion

    arguments = [*STOPS, "--planner", planner, "--set", "vmax=3", "--env", "ped"]
    _, found = answer(require, *arguments)
    file = read_confusion(root / BY_CLASS).matrices
    verdicts = []
    for less in (0, 1):
        counts = file.counts.copy()
        for cell in found["cells"]:
            at = [file.bin_text(k) for k in range(file.bin_count)].index(cell["bin"])
            part = round(Fraction(cell["required"]) * 10**6) - less
            assert cell["label"] == "ped"
            # The published matrices never take a pedestrian for an obstacle but once, in [10, 20) m.
            assert counts[at, 1, 0] == 0
            counts[at, :, 0] = [part, 0, 10**6 - part]
        write_confusion(type(file)(file.labelling, file.labels, file.edges_m, counts), tmp_path / "found.json")
        selection = Selection((planner,), ("ped",), None, {"vmax": 3}, {}, ("stops_for_pedestrians",))
        result = verify_spec(root / SPEC, tmp_path / "found.json", RunOptions(selection))
        points = result.requirements[0].points
        verdicts.append(min(point.probability for point in points) >= 0.95 - 1e-12)
    assert verdicts == [True, False]


def test_the_certified_floor_holds_for_matrices_that_never_were_measured(require, root, tmp_path):
    from verifier.perception.confusion import write_confusion

    # A detector that takes every obstacle that it misses for a pedestrian: as measured none does.
    arguments = ["--requirement", "stops_only_for_pedestrians", "--env", "obs", "--planner", "correct"]
    _, found = answer(require, *arguments, "--floor")
    assert found["value"] == "0"  # in the measured proportions a missed obstacle is never reported as a pedestrian
    (floor,) = found["floor"]["floors"]
    assert Fraction(floor) in (Fraction(999, 1000), Fraction(999_001, 10**6))
    file = read_confusion(root / BY_CLASS).matrices
    for part, holds in ((round(Fraction(floor) * 10**6), True), (998_000, False)):
        counts = file.counts.copy()
        counts[:, :, 1] = [10**6 - part, part, 0]
        write_confusion(type(file)(file.labelling, file.labels, file.edges_m, counts), tmp_path / "worst.json")
        selection = Selection(("correct",), ("obs",), None, {}, {}, ("stops_only_for_pedestrians",))
        result = verify_spec(root / SPEC, tmp_path / "worst.json", RunOptions(selection))
        assert (min(point.probability for point in result.requirements[0].points) >= 0.999 - 1e-12) == holds


# ------------------------------------------------------------------------------------------ no answer


def test_a_blind_planner_is_the_limit(require, scene):
    spec = scene("planner blind", "environments ped", "stops: P >= 0.95 [ F s = 1 ]")
    code, found = answer(require, spec=spec)
    assert (code, found["outcome"]) == (ExitCode.VIOLATED, "independent")
    assert found["planner_is_limit"]
    _, out, _ = require(spec=spec)
    assert "this requirement does not depend on the selected recalls" in out
    assert "The limit is planner blind: with perfect perception P = 0 at the worst" in out


def test_an_infeasible_requirement_names_planner_and_best_value(require, scene):
    model = SCENE.replace('{ when = "sees(ped)", set = { go = 2 } }', '{ when = "!sees(ped)", set = { go = 1 } }')
    spec = scene("planner blind", "environments ped", "stops: P >= 0.95 [ F s = 1 ]", model=model)
    # This planner stops when it sees nobody: P = 1 - recall is met by the blind only.
    code, found = answer(require, spec=spec)
    assert (code, found["outcome"]) == (ExitCode.VIOLATED, "only in gaps")
    assert found["gaps"] == [["0", "0.05"]] or found["gaps"] == [["0", "0.049999"]]
    assert found["planner_is_limit"]
    code, out, _ = require("--floor", spec=spec)
    assert code == ExitCode.VIOLATED
    assert "The limit is planner blind: with perfect perception P = 0 at the worst" in out
    assert "Certified floor: none" in out


@pytest.fixture
def alarms(tmp_path, root):
    """Matrices with false positives in the first bin: nobody is there, and a pedestrian is reported in 1 of 10."""
    data = json.loads((root / BY_CLASS).read_text())
    data["bins"][0]["counts"] = [[31, 0, 1], [0, 191, 0], [127, 734, 9]]
    data["false_positives"] = "counted"
    (tmp_path / "alarms.json").write_text(json.dumps(data))
    return tmp_path / "alarms.json"


def test_what_is_not_in_question_may_be_the_limit(require, scene, alarms):
    spec = scene("planner attentive", "right: P >= 0.95 [ (ped -> F s = 1) & (!ped -> F s = 2) ]")
    code, found = answer(require, spec=spec, cm=alarms)
    assert (code, found["outcome"], found["planner_is_limit"]) == (ExitCode.VIOLATED, "infeasible", False)
    assert found["others"] == ["empty in [0, 10) m"]
    assert found["at_value"]["exact"] == "9/10"
    assert found["perfect"]["exact"] == "1"
    _, out, _ = require(spec=spec, cm=alarms)
    assert "The limit is outside the selected recalls: empty in [0, 10) m" in out


def test_what_stays_as_it_is_may_lie_exactly_on_the_target(require, scene, alarms):
    # P = 9/10 is exactly enough, which numerical bounds cannot say. With a pedestrian there P = recall.
    spec = scene("planner attentive", "right: P >= 0.9 [ (ped -> F s = 1) & (!ped -> F s = 2) ]")
    code, found = answer(require, spec=spec, cm=alarms)
    assert (code, found["value"]) == (ExitCode.SATISFIED, "0.9")
    assert found["at_value"]["exact"] == "9/10"


def test_targets_0_and_1(require, tmp_path):
    asked = (*STOPS, "--planner", "correct", "--env", "ped", "--target")
    for target, place in (("0", "0"), ("1", "1"), ("> 0", "0.000001")):
        code, found = answer(require, *asked, target, "--floor")
        assert (code, found["value"]) == (ExitCode.SATISFIED, place), target
    for target, side in (("> 1", "above 1"), ("< 0", "below 0")):  # neither planner nor perception is to blame
        code, out, _ = require(*asked, target, "-o", tmp_path / "required.json")
        assert f"The limit is the target: no probability is {side}.\n" in out
        (found,) = json.loads((tmp_path / "required.json").read_text())["answers"]
        assert (code, found["outcome"]) == (ExitCode.VIOLATED, "infeasible")
    # Large probabilities are the bad ones now, and every recall but perfect recall keeps P below 1.
    code, found = answer(require, *asked, "< 1")
    assert (code, found["outcome"]) == (ExitCode.VIOLATED, "only in gaps")
    assert found["gaps"] == [["0", "0.999999"]]


# ------------------------------------------------------------------------------------------ outputs and bad input


def test_the_document_matches_its_schema_and_the_table_has_its_rows(require, tmp_path):
    arguments = [*STOPS, "--planner", "all", "--env", "ped", "--set", "vmax=2", "--floor"]
    _, found = document(require, *arguments, "--csv", tmp_path / "a.csv")
    read_back(found)
    rows = list(csv.DictReader((tmp_path / "a.csv").open()))
    assert {row["planner"] for row in rows} == {"published", "feedback", "correct", "cautious"}
    assert all(Fraction(row["required_recall"]) <= Fraction(row["certified_floor"]) for row in rows)
    for mode in ("factor", "cost"):
        _, found = document(require, *STOPS, "--env", "ped", "--mode", mode)
        read_back(found)


def test_the_curve_is_that_of_the_matrices_along_the_search(require, scene):
    spec = scene("planner attentive", "environments ped", "stops: P >= 0.95 [ F s = 1 ]")
    _, found = answer(require, "--grid", "11", spec=spec)
    places, values = zip(*found["curve"], strict=True)
    assert [float(Fraction(place)) for place in places] == pytest.approx(np.linspace(0, 1, 11))
    assert values == pytest.approx(np.linspace(0, 1, 11))


USAGE = [
    ([], "select one requirement with --requirement NAME; available: stops_only_for_pedestrians"),
    ([*STOPS, "--requirement", "all_three"], "select one requirement with --requirement NAME"),
    (["--requirement", "all_three"], "requirement 'all_three' is P = ? and has no target"),
    (["--requirement", "all_tree"], "unknown requirement 'all_tree': did you mean 'all_three'?"),
    ([*STOPS, "--target", "1.5"], "--target: a probability is at most 1, got '1.5'"),
    ([*STOPS, "--target", "often"], "--target: expected a probability"),
    ([*STOPS, "--target", "1/0"], "--target: expected a probability"),
    ([*STOPS, "--class", "pde"], "unknown true label 'pde': did you mean 'ped'?"),
    ([*STOPS, "--bin", "400"], "no distance bin holds 400 m; they cover 0 to 100 m"),
    ([*STOPS, "--bin=-3"], "--bin: expected a distance in metres from 0, got -3"),
    ([*STOPS, "--mode", "cell", "--set", "vmax=3"], "mode 'cell' asks about one cell"),
    ([*STOPS, "--mode", "bin", "--set", "vmax=3"], "mode 'bin' asks about one bin"),
    ([*STOPS, "--decimals", "0"], "recalls have 1 to 9 decimals, got 0"),
    ([*STOPS, "--grid", "1"], "the search starts from 2 to 100001 points, got 1"),
    ([*STOPS, "--seed", "0"], "--seed belongs to --mode cost"),
    ([*STOPS, "--mode", "cost", "--seed=-1"], "a seed is a whole number from 0, got -1"),
    ([*STOPS, "--round-transitions", "4"], "recalls are searched for on unrounded transitions"),
    ([*STOPS, "--strategies"], "the range over all winning strategies belongs to verify run"),
    ([*STOPS, "--initial", "x = 3"], "no state satisfies the initial condition"),
    ([*STOPS, "--env", "pde"], "unknown environment 'pde'"),
    ([*STOPS, "--mode", "factor", "--cost", "prices.csv"], "--cost belongs to --mode cost, not to --mode factor"),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE, ids=[" ".join(a) or "nothing" for a, _ in USAGE])
def test_wrong_usage_says_what_is_there(require, arguments, message):
    code, out, err = require(*arguments)
    assert (code, out) == (ExitCode.USAGE, "")
    assert err.startswith(f"verify: {message}")
    assert "Traceback" not in err


PRICES = [
    ("", "the file is empty; expected a line with the names of the columns"),
    ("metres,price\n0,1\n", "unknown column 'metres'"),
    ("distance_m,label\n0,1\n", "unknown column 'label'"),
    ("distance_m\n0\n", "no column 'price'"),
    ("distance_m,price\n", "there is no price in the file"),
    ("distance_m,price\n0,free\n", "expected a price from 0 to 1e9, got 'free'"),
    ("distance_m,price\n0,-1\n", "expected a price from 0 to 1e9, got '-1'"),
    ("distance_m,price\n0,1e999999999\n", "expected a price from 0 to 1e9"),
    ("distance_m,price\nnan,1\n", "expected a finite number, got nan"),
    ("distance_m,price\n-1,1\n", "expected a distance in metres from 0 to 1e9, got -1"),
    ("distance_m,price\n0,1,2\n", "found 3 cells, expected 2"),
]


@pytest.mark.parametrize(("text", "message"), PRICES, ids=[repr(text)[:40] for text, _ in PRICES])
def test_bad_prices_are_refused_with_their_place(require, tmp_path, text, message):
    path = tmp_path / "prices.csv"
    path.write_text(text)
    code, out, err = require(*STOPS, "--cost", path)
    assert (code, out) == (ExitCode.BAD_INPUT, "")
    assert message in err
    assert "prices.csv" in err


def test_a_bin_without_a_price_is_named(require, tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("distance_m,price\n0,1\n")
    code, _, err = require(*STOPS, "--set", "vmax=3", "--cost", path)
    assert code == ExitCode.USAGE
    assert "the prices name none for ped in bin [50, 60) m" in err


def test_a_column_without_items_is_refused_until_a_policy_is_named(require, root, tmp_path):
    data = json.loads((root / BY_CLASS).read_text())
    for row in data["bins"][0]["counts"]:
        row[0] = 0
    path = tmp_path / "hole.json"
    path.write_text(json.dumps(data))
    code, _, err = require(*STOPS, cm=path)
    assert (code, "no items with true label ped in bin [0, 10) m" in err) == (ExitCode.BAD_INPUT, True)
    code, found = document(require, *STOPS, "--empty-columns", "prior", cm=path)
    assert (code, found["answers"][0]["value"]) == (ExitCode.SATISFIED, "0.95")
    assert "rates filled in by policy 'prior'" in " ".join(found["remarks"])


@pytest.mark.parametrize(
    ("p_value", "chosen", "code"),
    [
        (0.4, {}, ExitCode.SATISFIED),
        (None, {}, ExitCode.SATISFIED),
        (None, {"strict": True}, ExitCode.INCONCLUSIVE),
        (0.0001, {}, ExitCode.INCONCLUSIVE),
        (0.0001, {"assume_memoryless": True}, ExitCode.SATISFIED),
    ],
)
def test_an_answer_on_a_contradicted_channel_decides_nothing_unless_it_is_assumed(p_value, chosen, code):
    tests = channel_of(channel(p_value))
    condition = channel_condition(channel_test(tests.classes))
    assert (condition is None) == (p_value == 0.4)
    point = point_of(0.96, verdict=Verdict.SATISFIED, draws=("ped",))
    perfect = replace(point)
    answer = Answer(
        planner="p",
        constants={},
        outcome=Outcome.FOUND,
        condition=condition,
        met_as_measured=True,
        planner_is_limit=False,
        value="0.9",
        cells=(),
        gaps=(),
        curve=(),
        measured=point,
        at_value=point,
        perfect=perfect,
        floor=None,
        others=(),
    )
    found = RequireResult(
        title="t",
        inputs=(),
        channel=tests,
        settings=RequireSettings(
            **vars(settings_of(**chosen)),
            labels=(),
            distances_m=(),
            prices=None,
            floor=None,
            decimals=2,
            grid=2,
            seed=None,
        ),
        versions={},
        engines=engines_over(answer.points),
        remarks=(),
        requirement=AskedRequirement("r", "a", ">=", Fraction(9, 10)),
        mode="common",
        answers=(answer,),
    )
    assert found.exit_code is code
    assert answer.told(replace(point, whatever_predicted=1)) == "satisfied"
    assert answer.told(perfect) == "satisfied"
    assert answer.told(point) == verdict_text("satisfied", condition)
