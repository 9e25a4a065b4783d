"""`verify run` where the world decides: least and greatest probabilities, their bounds, and refusals."""

import json
import math
from dataclasses import replace
from fractions import Fraction as Fr

import pytest
from document_edits import summed
from matrix_documents import write_matrices
from scipy.stats import beta
from small_bundles import WALKER_MODEL
from world_specs import matrices_of, spec_of

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.errors import InputError, NoAnswerError
from verifier.checking.settings import EngineSettings
from verifier.checking.verdicts import Verdict
from verifier.cli import main
from verifier.pipeline import verify_spec
from verifier.questions.compare.comparing import compare
from verifier.questions.compare.gating import CompareOptions
from verifier.questions.explain.explaining import explain_spec
from verifier.questions.require.question import Question
from verifier.questions.require.requiring import require
from verifier.questions.settings import target_of
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


# The pedestrian is reported with 3/4. The world may wait once in x = 0 and once in x = 1, or end the episode in 3.
# Stopped: at once with 3/4; else, if it waits for ever, surely in the end; if it pushes at once, never again.
COUNTS = [[3, 0], [1, 1]]


def files(folder, requirements, model=WALKER_MODEL, counts=COUNTS):
    (folder / "model.toml").write_text(model)
    (folder / "spec.ltl").write_text('model "model.toml"\n' + requirements)
    return folder / "spec.ltl", write_matrices(folder / "cm.json", counts, false_positives="counted")


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


GAINING = WALKER_MODEL.replace(
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


EVEN = [[3, 10], [1, 90]]


def explained(folder, requirements, counts=EVEN):
    paths = files(folder, requirements, counts=counts)
    return {each.name: each for each in explain_spec(*paths, POINT).explanations}


def test_explanations_are_of_what_the_world_does_to_make_it_fail(tmp_path):
    asked = explained(
        tmp_path, "most: P >= 0.9 [ F stopped ]\nlittle: P <= 0.2 [ F lost ]\nsome: P = ? [ F stopped ]"
    )
    told = {name: (each.asked, each.violation.satisfies_the_formula) for name, each in asked.items()}
    assert told == {
        "most": ("Pmin", False), "little": ("Pmax", True), "some_min": ("Pmin", False), "some_max": ("Pmax", False),
    }  # fmt: skip
    for name in ("most", "little", "some_min"):  # it pushes at once, and the pedestrian is missed with 1/4
        found = asked[name]
        assert [(each.state, each.decides) for each in found.world.decided] == [({"x": 0}, {"push": "1"})]
        assert found.violation.probability == pytest.approx(1 / 4, abs=1e-12)
        (cause,), (pattern,) = found.violation.causes, found.violation.patterns
        (kind,) = found.violation.detection_errors
        assert (kind.true, kind.reported, cause.share) == ("ped", "empty", 1.0)
        (run,) = pattern.members
        assert [step.after for step in run.steps] == [{"x": 3}]
        assert (run.exact, run.replayed) == (Fr(1, 4), "whole")
        assert found.perfect_perception == pytest.approx(float(name != "little"))
        # One unit more of reports is one less of what is lost.
        (slopes,) = found.gradient
        assert slopes.slopes[1] == pytest.approx(-1 if name != "little" else 1)
    # Where it helps, nothing is lost: it waits, in x = 0 and in x = 1.
    assert asked["some_max"].violation.patterns == ()
    assert asked["some_max"].world.probability == pytest.approx(1.0)


def test_an_explanation_says_what_the_world_does(tmp_path, capsys):
    spec, matrices = files(tmp_path, "most: P >= 0.9 [ F stopped ]", counts=EVEN)
    assert main(["explain", str(spec), "--cm", str(matrices), "--point-only", "-o", str(tmp_path / "e.json")]) == 1
    shown = capsys.readouterr().out
    assert "most, planner walker: Pmin >= 0.9, violated" in shown
    assert "The world decides. How it makes it fail most often (Pmin = 0.75; it decides in 1 state):" in shown
    assert "* x = 0: push = 1 (visited 1 times)" in shown
    assert main(["report", str(tmp_path / "e.json"), "-o", str(tmp_path / "r.md")]) == 0
    report = (tmp_path / "r.md").read_text()
    assert "How it makes it fail most often" in report
    document = json.loads((tmp_path / "e.json").read_text())
    assert document["explanations"][0]["world"]["decided"][0]["decides"] == {"push": "1"}
    document["explanations"][0]["world"]["probability"] = 0.8
    (tmp_path / "e.json").write_text(json.dumps(summed(document)))
    assert main(["report", str(tmp_path / "e.json"), "-o", str(tmp_path / "other.md")]) == 4
    assert "/explanations/0/world/probability: expected 0.75" in capsys.readouterr().err


def least_recall(folder, requirement, target=None, **more):
    question = Question(target=target and target_of(target), **more)
    (found,) = require(*files(folder, requirement, counts=EVEN), question).answers
    return found


def test_what_recall_is_needed_where_the_world_decides(tmp_path):
    # The least probability of stopping is the recall q; the greatest of being lost 1 - q; the world can let it be
    # stopped surely as soon as it is reported at all.
    found = least_recall(tmp_path, "most: P >= 0.9 [ F stopped ]", floor=True)
    assert (found.value, found.met_as_measured, found.at_value.exact) == ("0.9", False, Fr(9, 10))
    assert found.floor.checked
    assert Fr(9, 10) <= Fr(found.floor.floors[0]) <= Fr(900001, 10**6)
    assert least_recall(tmp_path, "little: P <= 0.2 [ F lost ]").value == "0.8"
    assert least_recall(tmp_path, "some: P = ? [ F stopped ]", ">= 0.8").value == "0.8"
    assert least_recall(tmp_path, "some: P = ? [ F lost ]", "<= 0.3").value == "0.7"
    assert least_recall(tmp_path, "lucky: Pmax >= 0.9 [ F stopped ]").value == "0.000001"
    cheapest = least_recall(tmp_path, "most: P >= 0.9 [ F stopped ]", mode="cost")
    assert [cell.required for cell in cheapest.cells] == ["0.9"]
    assert least_recall(tmp_path, "never: P >= 0.5 [ F (stopped & lost) ]").outcome.value == "independent"


def test_detectors_are_compared_where_the_world_decides(tmp_path, capsys):
    spec, matrices = files(tmp_path, "most: P >= 0.9 [ F stopped ]\nsome: P = ? [ F stopped ]")
    text = json.loads(matrices.read_text())
    text["bins"][0]["counts"] = [[95, 0], [5, 1]]
    (tmp_path / "better.json").write_text(json.dumps(text))
    detectors = {"one": matrices, "two": tmp_path / "better.json"}
    (compared,) = compare(
        [spec], detectors, CompareOptions(), RunOptions(confidence=ConfidenceSettings(draws=400))
    ).specs
    told = {
        (each.name, each.target_text, entry.detector): entry.points[0].probability
        for each in compared.requirements
        for entry in each.entries
    }
    assert told == {
        ("most", "Pmin >= 0.9", "one"): 0.75,
        ("most", "Pmin >= 0.9", "two"): 0.95,
        ("some_min", "Pmin = ?", "one"): 0.75,
        ("some_min", "Pmin = ?", "two"): 0.95,
        ("some_max", "Pmax = ?", "one"): 1.0,
        ("some_max", "Pmax = ?", "two"): 1.0,
    }


def test_gates_hold_where_the_world_decides(tmp_path, capsys):
    spec, matrices = files(tmp_path, "most: P >= 0.7 [ F stopped ]")
    command = ["run", str(spec), "--cm", str(matrices), "--point-only", "--assume-memoryless"]
    assert main([*command, "-o", str(tmp_path / "old.json"), "--fail-under", "0.75"]) == 0
    assert main([*command, "--fail-under", "0.76"]) == 1
    text = json.loads(matrices.read_text())
    text["bins"][0]["counts"] = [[72, 0], [28, 1]]
    matrices.write_text(json.dumps(text))
    baseline = ["--baseline", str(tmp_path / "old.json")]
    assert main([*command, *baseline, "--max-drop", "0.03"]) == 0
    assert main([*command, *baseline, "--max-drop", "0.02"]) == 1
    spec.write_text(spec.read_text().replace("P >=", "Pmax >="))
    assert main([*command, *baseline, "--max-drop", "0.03"]) == 4
    assert "another formula: 'Pmin [ F stopped ]'" in capsys.readouterr().err


def test_the_best_possible_planner_against_a_world_that_decides(tmp_path, capsys):
    # Who always sets u is never pushed; the walker of the model is with 1/4.
    spec, matrices = files(tmp_path, "most: P >= 0.9 [ F stopped ]\nlittle: P <= 0.2 [ F lost ]")
    command = ["compare", str(spec), "--cm", f"one={matrices}", "--best-planner", "3", "--draws", "20", "--json"]
    assert main(command) == 0
    rows = json.loads(capsys.readouterr().out)["specs"][0]["requirements"]
    assert [each["entries"][0]["points"][0]["probability"] for each in rows] == [0.75, 0.25]
    ends = [(each["reach"][0]["lower"], each["reach"][0]["upper"]) for each in rows]
    assert ends == [(pytest.approx(1, abs=1e-9), 1), (0, pytest.approx(0, abs=1e-9))]
    spec.write_text(spec.read_text().replace("P >=", "Pmax >="))
    assert main(command) == 2
    assert "'most' asks what this world may do for it" in capsys.readouterr().err


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
        lucky: Tmin{0.95} <= 0.5 [ F ended ]
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
        "lucky": ("Tmin{0.95}", 0.5),
    }
    assert (asked["late"].verdict, asked["lucky"].verdict) == (Verdict.VIOLATED, Verdict.SATISFIED)


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
