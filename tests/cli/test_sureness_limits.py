"""How sure a run is, asked in ways that cannot be, or with too little to say it."""

import json
import re

import pytest
from typed_documents import read_back

from verifier.base.errors import ExitCode
from verifier.base.numbers import level_text
from verifier.cli import main

SPEC = "specs/car_pedestrian.ltl"
BY_CLASS = "examples/nuscenes_yolov3_class.json"
STOPS = ("--env", "ped", "--requirement", "stops_for_pedestrians")


@pytest.fixture
def run(shipped):
    return lambda command, *arguments, **files: shipped(command)(*arguments, **files)


@pytest.mark.parametrize("command", ["run", "explain", "compare"])
@pytest.mark.parametrize("draws", [10**9 + 1, 2**63 - 1, 10**26])
def test_more_draws_than_anyone_can_wait_for_are_refused_before_a_file_is_read(run, command, draws):
    code, out, err = run(command, "--draws", draws, cm="there is no such file.json")
    assert (code, out) == (ExitCode.USAGE, "")
    assert f"at most {10**9} draws" in err


@pytest.mark.parametrize("source", ["bounds", "interval"])
@pytest.mark.parametrize("without", [("--point-only",), ("--round-transitions", "3")])
def test_a_verdict_cannot_come_from_what_is_left_out(run, source, without):
    code, out, err = run("run", *STOPS, "--verdict-from", source, *without)
    assert (code, out) == (ExitCode.USAGE, "")
    assert f"--verdict-from {source} needs what {without[0]} leaves out" in err
    code, _, _ = run("run", *STOPS, "--verdict-from", "point", *without)
    assert code == ExitCode.VIOLATED


def test_too_few_draws_decide_nothing(run):
    # P = 31/158 is far below .95, and so is any draw; but one draw says nothing of where a 95 % interval ends.
    code, out, _ = run("run", *STOPS, "--verdict-from", "interval", "--draws", "1")
    assert code == ExitCode.INCONCLUSIVE
    assert "note: 1 draw is too few for the ends of a 95 % interval; use --draws 301 or more" in out
    assert "estimated; 1 draw is too few for the ends of a 95 % interval; use --draws 301 or more." in out
    # (1 - .025)^301 < .0005 < (1 - .025)^300.
    code, out, _ = run("run", *STOPS, "--verdict-from", "interval", "--draws", "301")
    assert code == ExitCode.VIOLATED
    assert "too few for the ends" not in out


def test_what_holds_for_certain_needs_no_draw(run):
    code, out, _ = run(
        "run", "--requirement", "never_stalls_early", "--verdict-from", "interval", "--draws", "1", "--json"
    )
    assert code == ExitCode.SATISFIED
    for point in json.loads(out)["requirements"][0]["points"]:
        found = point["uncertainty"]["interval"]
        assert found["lower_range"] == found["upper_range"] == [1, 1]


def test_what_data_would_decide_is_said_only_where_it_was_looked_for(run):
    arguments = ("--env", "obs", "--requirement", "stops_only_for_pedestrians")
    code, out, _ = run("run", *arguments)
    assert code == ExitCode.INCONCLUSIVE
    assert "more items with true class obs" in out
    code, out, _ = run("run", *arguments, "--verdict-from", "interval")
    assert code == ExitCode.INCONCLUSIVE
    assert "To decide" not in out


@pytest.mark.parametrize("command", ["run", "explain"])
@pytest.mark.parametrize("semantics", ["per_state", "shared_matrix"])
def test_bounds_where_no_report_matters_at_all(run, command, semantics):
    # Nothing stands there and false positives are ignored: no column is drawn from, and P = 1 for certain.
    code, out, err = run(
        command,
        *("--env", "empty", "--requirement", "stops_only_for_pedestrians", "--false-positives", "ignore"),
        *("--semantics", semantics, "--json"),
    )
    assert (code, err) == (ExitCode.SATISFIED, "")
    found = json.loads(out)
    point = found["explanations"][0]["point"] if command == "explain" else found["requirements"][0]["points"][0]
    assert (
        point["uncertainty"]["confidence_bounds"]["lower"] == point["uncertainty"]["confidence_bounds"]["upper"] == 1
    )


def test_an_explanation_of_what_is_inconclusive_follows_its_schema(run, root):
    code, out, _ = run("explain", "--env", "obs", "--requirement", "stops_only_for_pedestrians", "--json")
    assert code == ExitCode.INCONCLUSIVE
    found = json.loads(out)
    assert found["explanations"][0]["additional_data"]["verdict"] == "satisfied"
    read_back(found)


def test_a_comparison_says_whose_matrices_are_empty(root, monkeypatch, capfd, tmp_path):
    monkeypatch.chdir(root)
    document = json.loads((root / BY_CLASS).read_text())
    for row in document["bins"][0]["counts"]:
        row[0] = 0
    (tmp_path / "holes.json").write_text(json.dumps(document))
    code = main(["compare", SPEC, "--cm", f"fine={BY_CLASS}", "--cm", f"holes={tmp_path / 'holes.json'}"])
    assert code == ExitCode.BAD_INPUT
    assert "detector holes: no items with true label ped in bin [0, 10) m" in capfd.readouterr().err


def test_an_interval_is_written_alike_by_run_and_compare(run):
    # The same draws; the ends are rounded outwards, and 0.9999995 is not 1.
    arguments = ("--env", "obs", "--requirement", "stops_only_for_pedestrians", "--draws", "400")
    _, ran, _ = run("run", *arguments)
    _, compared, _ = run("compare", *arguments)
    (interval,) = re.findall(r"\[0\.99\d+, 0\.99999\d+\]", ran)
    assert interval in compared


def test_levels_are_written_short():
    assert [level_text(each) for each in (0.5, 0.95, 0.9999999999999999)] == ["50 %", "95 %", "99.99999999999999 %"]
    assert [level_text(each) for each in (0.001, 1e-12, 1e-300, 5e-324)] == [
        "0.1 %",
        "1e-10 %",
        "1e-298 %",
        "5e-322 %",
    ]
