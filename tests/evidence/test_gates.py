"""The gates of `verify run`: by hand, against `verify compare`, and on the command line."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
import scipy.integrate
import scipy.stats
from document_edits import summed
from made_runs import BOUNDS, CONFIDENCE
from report_documents import CURVES
from run_documents import channel
from small_bundles import write_inputs
from typed_runs import channel_of, point_of, requirement_of, run_of_requirements, settings_of, uncertainty_of

from verifier.analysis.vacuity import Vacuity
from verifier.base.errors import ExitCode
from verifier.cli import main
from verifier.evidence.consistency import read_document
from verifier.questions.compare.floor import floor_of
from verifier.study.points import FreeBounds

SPEC = "specs/car_pedestrian.ltl"
BY_CLASS, BY_SET = "examples/nuscenes_yolov3_class.json", "examples/nuscenes_yolov3_proposition.json"
STOPS = ["--requirement", "stops_for_pedestrians", "--env", "ped"]


def point(probability, low, high, environment="ped", exact=None, error=0.0):
    # Interval ends 0.01 within the bounds; what drawing leaves open of them reaches 0.005 further out.
    ranges = (low + 0.005, low + 0.015), (high - 0.015, high - 0.005)
    sure = uncertainty_of((low + 0.01, high - 0.01), (low, high), ranges)
    return point_of(probability, environment, width=error, exact=exact, uncertainty=sure)


def requirement(*points, comparison=">=", target=Fraction(1, 2)):
    return requirement_of(*points, comparison=comparison, target=target)


def run_of(*requirements, source, p_value=0.4, strict=False, assume_memoryless=False, conditional=False):
    """A run whose verdicts come from `source`, over bounds without a condition; see `channel` for the p-value."""
    by_items = {"tier": "independent_items", "largest_drive": None, "conditional": True}
    by_items |= {"condition": "items are independent", "name": "95 % confidence bounds (if items are independent)"}
    confidence = CONFIDENCE | {"bounds": BOUNDS | (by_items if conditional else {}), "interval": "bootstrap"}
    chosen = {"verdict_from": source, "strict": strict, "assume_memoryless": assume_memoryless}
    settings = settings_of(**chosen, confidence=confidence)
    return run_of_requirements(*requirements, settings=settings, channel=channel_of(channel(p_value)))


# Two scenarios: P = 0.9 within [0.7, 0.95] and P = 0.85 within [0.8, 0.9]. The second has the smaller P, the first
# the smaller confidence bound.
BOTH = point(0.9, 0.7, 0.95), point(0.85, 0.8, 0.9, "obs")


@pytest.mark.parametrize(
    ("source", "value", "scenario"),
    [("point", 0.85, "obs x=1"), ("bounds", 0.7, "ped x=1"), ("interval", 0.705, "ped x=1")],
)
def test_the_worst_scenario_is_that_of_what_counts(source, value, scenario):
    (held,) = floor_of(run_of(requirement(*BOTH), source=source), Fraction(1, 2)).requirements
    assert (held.value, held.scenario, held.failed) == (pytest.approx(value, abs=1e-15), scenario, False)


@pytest.mark.parametrize(
    ("source", "least", "failed"),
    [
        ("point", "0.86", True),
        ("point", "0.84", False),
        ("bounds", "0.71", True),
        ("bounds", "0.69", False),
        ("interval", "0.71", True),
        ("interval", "0.70", False),
    ],
)
def test_below_is_below(source, least, failed):
    assert floor_of(run_of(requirement(*BOTH), source=source), Fraction(least)).failed is failed


@pytest.mark.parametrize("comparison", ["<=", "<"])
def test_where_little_is_asked_for_the_complement_counts(comparison):
    # P <= 1/20 [F crash] with P = 0.01 within [0, 0.04]: without a crash 0.99, for certain 0.96.
    mine = [requirement(point(0.01, 0.0, 0.04), comparison=comparison, target=Fraction(1, 20))]
    assert floor_of(run_of(*mine, source="point"), Fraction("0.99")).requirements[0].value == 0.99
    assert not floor_of(run_of(*mine, source="point"), Fraction("0.98")).failed
    assert floor_of(run_of(*mine, source="point"), Fraction("0.995")).failed
    assert floor_of(run_of(*mine, source="bounds"), Fraction("0.97")).failed
    assert not floor_of(run_of(*mine, source="bounds"), Fraction("0.95")).failed


def test_a_probability_on_the_floor_is_not_below_it_for_rounding():
    # 0.3 is a double below 3/10; with its numerical bounds it may be 3/10, and exactly it is.
    third = Fraction(3, 10)
    assert Fraction(0.3) < third
    assert floor_of(run_of(requirement(point(0.3, 0.1, 0.5)), source="point"), third).failed
    assert not floor_of(run_of(requirement(point(0.3, 0.1, 0.5, error=1e-12)), source="point"), third).failed
    assert not floor_of(run_of(requirement(point(0.3, 0.1, 0.5, exact=third)), source="point"), third).failed


def test_no_floor_at_0_and_no_bounds_that_are_not_there():
    with pytest.raises(ValueError, match="above 0"):
        floor_of(run_of(requirement(*BOTH), source="point"), Fraction(0))
    plain = point_of(0.5)
    with pytest.raises(ValueError, match="no bounds"):
        floor_of(run_of(requirement(plain), source="bounds"), Fraction(1, 2))


DRAWN = replace(point(0.9, 0.7, 0.95), draws=("ped",))


@pytest.mark.parametrize("source", ["bounds", "interval", "point"])
def test_a_number_of_a_chain_that_the_data_contradict_passes_nothing(source):
    """However large it is, and where it is too small the number alone is the reason."""
    (held,) = floor_of(run_of(requirement(DRAWN), source=source, p_value=0.0001), Fraction(1, 2)).requirements
    assert (held.failed, held.condition) == (True, None)
    assert held.reason == "the data contradict a memoryless detector (ped, p = 0.0001)"
    (held,) = floor_of(run_of(requirement(DRAWN), source=source, p_value=0.0001), Fraction(99, 100)).requirements
    assert (held.failed, held.reason) == (True, "")
    (held,) = floor_of(run_of(requirement(DRAWN), source=source, p_value=0.4), Fraction(1, 2)).requirements
    # An interval from resampled drives is approximate, and what passes by it passes on that condition.
    condition = "if drives are independent (approximate: Bayesian bootstrap)" if source == "interval" else None
    assert (held.failed, held.condition, held.reason) == (False, condition, "")


def test_what_is_assumed_by_name_passes_on_its_condition():
    contradicted = run_of(requirement(DRAWN), source="bounds", p_value=0.0001, assume_memoryless=True)
    (held,) = floor_of(contradicted, Fraction(1, 2)).requirements
    assert (held.failed, held.reason) == (False, "")
    assert held.condition == "if the detector is memoryless (assumed; the data contradict it for ped, p = 0.0001)"
    (held,) = floor_of(run_of(requirement(DRAWN), source="bounds", p_value=None), Fraction(1, 2)).requirements
    assert (held.failed, held.condition) == (False, "if the detector is memoryless (not tested)")
    (held,) = floor_of(run_of(requirement(DRAWN), source="bounds", conditional=True), Fraction(1, 2)).requirements
    assert (held.failed, held.condition) == (False, "if items are independent")


def test_a_strict_gate_accepts_no_condition():
    (held,) = floor_of(
        run_of(requirement(DRAWN), source="bounds", p_value=None, strict=True), Fraction(1, 2)
    ).requirements
    assert (held.failed, held.condition) == (True, None)
    assert held.reason == "--strict refuses a condition: if the detector is memoryless (not tested)"


def test_what_holds_whatever_is_predicted_needs_no_detector():
    certain = replace(point(1.0, 0.7, 1.0), draws=("ped",), whatever_predicted=1)
    (held,) = floor_of(run_of(requirement(certain), source="bounds", p_value=0.0001), Fraction(99, 100)).requirements
    assert (held.failed, held.condition, held.reason) == (False, None, "")


@pytest.mark.parametrize(
    ("ends", "comparison", "least", "failed", "value"),
    [
        ((0.6, 0.99), ">=", "0.55", False, 0.6),
        ((0.6, 0.99), ">=", "0.65", True, 0.7),
        ((0.0, 0.5), ">=", "0.55", True, 0.5),
        ((0.0, 0.5), ">=", "0.45", True, 0.7),
        ((0.01, 0.4), "<=", "0.55", False, 0.6),
        ((0.5, 1.0), "<=", "0.55", True, 0.5),
    ],
)
def test_bounds_whatever_the_dependence_pass_a_floor_that_they_reach(ends, comparison, least, failed, value):
    """Of a detector that the data contradict: P = 0.9 within [0.7, 0.95], or its complement, shows nothing."""
    about = DRAWN if comparison == ">=" else replace(point(0.1, 0.05, 0.3), draws=("ped",))
    free = replace(about, dependence_free=FreeBounds(*ends, 4, 9, (0.0, 0.0), "measured"))
    found = run_of(requirement(free, comparison=comparison), source="bounds", p_value=0.0001)
    (held,) = floor_of(found, Fraction(least)).requirements
    assert (held.failed, held.value, held.condition) == (failed, pytest.approx(value, abs=1e-15), None)
    assert bool(held.reason) == (failed and value == 0.7)  # what decides nothing leaves the number that shows nothing


def test_bounds_whatever_the_dependence_keep_their_condition():
    """What they assume of the data stands beside what passes by them, and a strict gate refuses it."""
    free = replace(DRAWN, dependence_free=FreeBounds(0.6, 1.0, 4, 9, (0.0, 0.0), "confidence_region"))
    for strict in (False, True):
        found = run_of(requirement(free), source="bounds", p_value=0.0001, conditional=True, strict=strict)
        (held,) = floor_of(found, Fraction(11, 20)).requirements
        assert (held.failed, held.condition) == (strict, None if strict else "if items are independent")
        assert held.reason == ("--strict refuses a condition: if items are independent" if strict else "")


def test_a_vacuous_scenario_shows_nothing():
    over = (Vacuity("ended", "the episode is over before it begins"),)
    empty = replace(point(1.0, 0.9, 1.0, "obs"), vacuity=over)
    (held,) = floor_of(run_of(requirement(DRAWN, empty), source="bounds"), Fraction(1, 2)).requirements
    assert (held.failed, held.scenario) == (False, "ped x=1")
    (held,) = floor_of(run_of(requirement(empty), source="bounds"), Fraction(1, 2)).requirements
    assert (held.failed, held.reason) == (True, "vacuous: the episode is over before it begins")


@pytest.fixture
def run(root, monkeypatch, capfd):
    """Run `verify run` in the project's folder; exit code, standard output and standard error."""
    monkeypatch.chdir(root)

    def call(*arguments, cm=BY_CLASS):
        code = main(["run", SPEC, "--cm", cm, *map(str, arguments)])
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return call


# P is 31/158 = 0.196203 by class, and 22/85 = 0.258824 by set.
def test_a_floor_between_bound_and_probability_fails_by_the_bound_alone(run):
    free = ["--requirement", "all_three", "--env", "ped"]
    code, out, _ = run(*free, "--fail-under", "0.19", "--verdict-from", "point")
    assert (code, "Gate, no requirement under 0.19 (P itself): passed" in out) == (ExitCode.SATISFIED, True)
    code, out, _ = run(*free, "--fail-under", "0.19")
    assert code == ExitCode.VIOLATED
    assert "Gate, no requirement under 0.19 (confidence bounds): failed by 1" in out
    assert re.search(r"^all_three +published +ped x=1 v=1 +0.12.*failed$", out, re.MULTILINE)


def test_earlier_matrices_are_verified_and_drawn_together(run, tmp_path):
    path = tmp_path / "run.json"
    free = ["--requirement", "all_three", "--env", "ped", "--draws", "2000"]
    code, out, _ = run(*free, "--baseline", BY_SET, "--max-drop", "0.06", "--output", path)
    assert code == ExitCode.VIOLATED
    assert "Gate, no drop by more than 0.06 against nuscenes_yolov3_proposition.json: failed by 1" in out
    assert re.search(r"all_three +published +0.258824 +0.196203 +\+0.0626 +0.\d+ +failed$", out, re.MULTILINE)
    gate = read_document(path).content["gates"]["regression"]
    (drop,) = gate["drops"]
    assert drop["drop"] == pytest.approx(float(Fraction(22, 85) - Fraction(31, 158)), abs=1e-12)
    # By class 31 of 158 reports of pedestrians are "ped", one label of three; by set 22 of 85, two labels of four.
    # With the prior of Jeffreys, half an item per label, P is Beta distributed, the two independently.
    now, before = scipy.stats.beta(31.5, 128), scipy.stats.beta(23, 64)
    expected = scipy.integrate.quad(lambda value: now.pdf(value) * before.sf(value + 0.06), 0, 0.94)[0]
    assert drop["chance"] == pytest.approx(expected, abs=0.05)  # 2000 draws: standard deviation 0.011
    code, _, _ = run(*free, "--baseline", BY_SET, "--max-drop", "0.07")
    assert code == ExitCode.SATISFIED


def test_the_paired_test_is_that_of_compare(run, root, tmp_path, monkeypatch, capfd):
    free = ["--requirement", "all_three", "--env", "ped", "--draws", "500"]
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    run("--requirement", "all_three", "--env", "ped", "--output", old, cm=BY_SET)
    run(*free, "--baseline", BY_SET, "--max-drop", "0.06", "--output", new)
    detectors = ["--cm", f"baseline={BY_SET}", "--cm", f"now={BY_CLASS}"]
    code = main(["compare", SPEC, *detectors, *free, "--baseline", str(old), "--max-drop", "0.06", "--json"])
    assert code == ExitCode.VIOLATED
    (expected,) = json.loads(capfd.readouterr().out)["gate"]["drops"]
    (found,) = json.loads(new.read_text())["gates"]["regression"]["drops"]
    assert found == {name: value for name, value in expected.items() if name != "detector"}


def test_a_drop_may_be_judged_by_its_chance(run, tmp_path):
    """The drop is 0.0626 and larger than 0.01 with the chance 0.845: it is there, and it is not all but sure."""
    free = [
        "--requirement",
        "all_three",
        "--env",
        "ped",
        "--draws",
        "2000",
        "--baseline",
        BY_SET,
        "--max-drop",
        "1e-2",
    ]
    judged = {rule: run(*free, "--drop-from", rule, "--output", tmp_path / "run.json") for rule in RULES}
    assert {rule: code for rule, (code, _, _) in judged.items()} == RULES
    for rule, (_, out, _) in judged.items():
        words = "by the point estimates; their statistical uncertainty is ignored (point)"
        if rule != "point":
            words = f"where the probability of that is {rule.removeprefix('probability:')} or more, by common draws"
        assert f"A drop counts {words}" in out
    gate = read_document(tmp_path / "run.json").content["gates"]["regression"]
    assert (gate["drop_from"], gate["failed"], gate["drops"][0]["failed"]) == ("probability:0.95", False, False)
    assert 0.8 < gate["drops"][0]["chance"] < 0.89
    assert run(*free)[0] == ExitCode.VIOLATED  # point, unless said otherwise
    same = [*free[:6], "--baseline", BY_CLASS, "--max-drop", "0", "--drop-from", "probability:0.01"]
    code, out, _ = run(*same)
    assert (code, "the matrices are the same, so every drop is 0 in every draw" in out) == (ExitCode.SATISFIED, True)
    code, out, err = run(*free[:4], "--draws", "150", *free[6:], "--drop-from", "probability:0.95")
    assert (code, out) == (ExitCode.USAGE, "")
    assert "150 draws do not tell a probability of 0.95 from others; it takes 200 (--draws)" in err


RULES = {
    "point": ExitCode.VIOLATED,
    "probability:0.05": ExitCode.VIOLATED,
    "probability:0.8": ExitCode.VIOLATED,
    "probability:0.95": ExitCode.SATISFIED,
}


def test_a_baseline_that_asked_otherwise_is_refused(run, tmp_path):
    old = tmp_path / "old.json"
    run(*STOPS, "--output", old)
    document = json.loads(old.read_text())
    (asked,) = document["requirements"]
    for change, message in (
        ({"formula": "F at_line"}, "the requirement of the baseline is another formula: 'F at_line'"),
        ({"target": {"comparison": "<=", "probability": "1/10000"}}, "limits on different sides"),
    ):
        old.write_text(json.dumps(summed(document | {"requirements": [asked | change]})))
        code, out, err = run(*STOPS, "--baseline", old, "--max-drop", "0.5")
        assert (code, out, message in err) == (ExitCode.BAD_INPUT, "", True)
    old.write_text(json.dumps(document))
    code, _, err = run(*STOPS, "--baseline", old, "--max-drop", "0.5", "--drop-from", "probability:0.9")
    assert (code, "records probabilities and has no matrices to draw" in err) == (ExitCode.USAGE, True)


def test_an_earlier_run_is_compared_by_what_it_recorded(run, tmp_path):
    old = tmp_path / "old.json"
    run(*STOPS, "--output", old, cm=BY_SET)
    code, out, _ = run("--env", "ped", "--baseline", old, "--max-drop", "0.05")
    assert code == ExitCode.VIOLATED
    row = r"stops_for_pedestrians +published +0.258824 +0.196203 +\+0.0626 +not known +failed$"
    assert re.search(row, out, re.MULTILINE)
    assert "compared: worst probabilities found here and those that the baseline records; no draws" in out
    assert "not in the baseline, not compared: stops_only_for_pedestrians (planner published), " in out
    code, out, _ = run(*STOPS, "--baseline", old, "--max-drop", "0.05", cm=BY_SET)
    assert "Gate, no drop by more than 0.05 against old.json: passed" in out
    assert code == ExitCode.VIOLATED  # of the target of the spec, which is a matter apart


def test_the_same_matrices_and_runs_without_draws_compare_points(run):
    without = {
        "the matrices are the same": ["--baseline", BY_CLASS],
        "without draws": ["--baseline", BY_SET, "--point-only"],
    }
    for words, arguments in without.items():
        _, out, _ = run(*STOPS, "--max-drop", "0.1", *arguments)
        assert f"both verified here{',' if words == 'without draws' else ';'} {words}" in out
        assert "passed" in out


def test_a_closed_gate_is_in_every_output(run, tmp_path):
    names = {"--junit": "j.xml", "--sarif": "s.sarif", "--in-toto": "i.json"}
    outputs = [each for option, name in names.items() for each in (option, tmp_path / name)]
    code, _, _ = run("--requirement", "all_three", "--env", "ped", "--fail-under", "0.5", *outputs)
    assert code == ExitCode.VIOLATED
    assert '<failure type="fail_under" message="0.12' in (tmp_path / "j.xml").read_text()
    (result,) = json.loads((tmp_path / "s.sarif").read_text())["runs"][0]["results"]
    assert result["properties"] == {"gate": "fail_under"}
    line = result["locations"][0]["physicalLocation"]["region"]["startLine"]
    assert (tmp_path / "s.sarif").read_text().count(SPEC) == 2
    assert Path(SPEC).read_text().split("\n")[line - 1].startswith("all_three:")
    assert json.loads((tmp_path / "i.json").read_text())["predicate"]["result"] == "FAILED"


def test_what_the_gates_do_not_look_at_is_said_by_every_reader(tmp_path, monkeypatch, capfd):
    question = "other: P = ? [ F s = 1 given F x = 1 ]"
    spec, matrices = write_inputs(
        tmp_path, f'model "../models/two_looks.toml"\nmine: P = ? [ F s = 1 ]\n{question}\n'
    )
    monkeypatch.chdir(tmp_path)
    run = ["run", str(spec), "--cm", str(matrices), "--env", "ped", "--point-only", "--fail-under", "0.5"]
    assert main([*run, "-o", "run.json"]) == 0
    said = "gates are for probabilities of formulas; not held: other (P = ? [ (F (s = 1)) given (F (x = 1)) ])"
    assert said in capfd.readouterr().out
    for name in ("report.md", "report.html"):
        assert main(["report", "run.json", "-o", name]) == 0
        section = Path(name).read_text().partition("Gates: ")[2]
        assert "gates are for probabilities of formulas; not held: other" in section, name


MATRICES = ["--max-drop", "0.1", "--baseline", BY_SET]
REFUSED = [
    (["--max-drop", "0.1"], ExitCode.USAGE, "--max-drop belongs to --baseline"),
    (["--baseline", BY_SET], ExitCode.USAGE, "--baseline belongs to --max-drop"),
    (["--fail-under", "0"], ExitCode.USAGE, "--fail-under: every probability is at least 0"),
    (["--fail-under", "95"], ExitCode.USAGE, "--fail-under: expected a number from 0 to 1, got '95'"),
    (["--fail-under", "nan"], ExitCode.USAGE, "--fail-under: expected a number from 0 to 1"),
    (["--max-drop=-1", "--baseline", BY_SET], ExitCode.USAGE, "--max-drop: expected a number from 0 to 1"),
    (["--max-drop", BY_SET], ExitCode.USAGE, f"hint: as --max-drop 0.01 --baseline {BY_SET}"),
    (["--max-drop", "0.1", "--max-drop", "old.json"], ExitCode.USAGE, "--max-drop 0.01 --baseline old.json"),
    (["--drop-from", "point"], ExitCode.USAGE, "--drop-from belongs to --max-drop"),
    (["--drop-from", "luck", *MATRICES], ExitCode.USAGE, "--drop-from: expected point, or probability:C"),
    (["--drop-from", "probability:1", *MATRICES], ExitCode.USAGE, "lies strictly between 0 and 1"),
    (
        ["--drop-from", "probability:nan", *MATRICES],
        ExitCode.USAGE,
        "--drop-from probability: expected a number from 0 to 1",
    ),
    (
        ["--drop-from", "probability:0.9", "--point-only", *MATRICES],
        ExitCode.USAGE,
        "--drop-from probability takes draws",
    ),
    (["--max-drop", "0", "--baseline", "none.json"], ExitCode.BAD_INPUT, "none.json: no such file"),
    (["--max-drop", "0", "--baseline", SPEC], ExitCode.BAD_INPUT, "not JSON"),
    (["--junit", "nowhere/j.xml"], ExitCode.BAD_INPUT, "nowhere/j.xml: cannot be written"),
    (["--sarif", SPEC], ExitCode.USAGE, "--sarif: specs/car_pedestrian.ltl is an input of this run"),
    (["--in-toto", "/tmp/a", "--junit", "/tmp/a"], ExitCode.USAGE, "--junit and --in-toto would be written to"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), REFUSED, ids=[" ".join(each[0]) for each in REFUSED])
def test_what_cannot_be_is_refused_before_anything_is_computed(run, monkeypatch, arguments, code, message):
    monkeypatch.setattr("verifier.cli.run.verified", None)  # would fail if it were called
    found, out, err = run(*arguments)
    assert (found, out) == (code, "")
    assert message in err


def test_a_baseline_over_other_scenarios_is_refused(run, tmp_path):
    old = tmp_path / "old.json"
    run("--requirement", "all_three", "--env", "ped", "--output", old)
    code, out, err = run("--requirement", "all_three", "--env", "obs", "--baseline", old, "--max-drop", "0.1")
    assert (code, out) == (ExitCode.BAD_INPUT, "")
    assert "the baseline is over other scenarios" in err
    old.write_text(json.dumps(CURVES))
    code, _, err = run("--baseline", old, "--max-drop", "0.1")
    assert (code, "expected the JSON of a verify run" in err) == (ExitCode.BAD_INPUT, True)
