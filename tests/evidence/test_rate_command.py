"""`verify evidence rate` on the command line."""

import json

import pytest
from run_documents import point, requirement, run
from small_bundles import MATRICES, MODEL, write_inputs

from verifier.cli import main
from verifier.evidence.consistency import read_document

FREE_SPEC = 'model "../models/two_looks.toml"\nenvironments ped\nstops: P >= 0.5 [ F s = 1 ]\n'
FREE_MATRICES = MATRICES | {
    "false_positives": "dropped", "bins": [{"distance_m": [0, 10], "counts": [[3000, 0], [1000, 0]]}],
}  # fmt: skip


@pytest.fixture
def result(tmp_path):
    def points(*verdicts):
        first, second = verdicts
        return [point(0.8125, first, (0.75, 0.875)), point(1.0, second, (1.0, 1.0), environment="obs")]

    asked, open_question = points("violated", "satisfied"), points("no target", "no target")
    content = run([requirement("stops", asked), requirement("counts", open_question, None)]).content
    path = tmp_path / "result.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def rate(*words):
    return main(["evidence", "rate", *map(str, words)])


def test_a_count_against_a_criterion(result, tmp_path, capsys):
    target = tmp_path / "rate.json"
    words = (result, "--requirement", "stops", "--encounters", 240, "--hours", 20, "--accept", "1e-7/h", "-o", target)
    assert rate(*words) == 1
    told = capsys.readouterr().out
    # Garwood for 240 in 20 h: [10.5297, 13.6182] per hour; times [1/8, 1/4], rounded outwards.
    assert "240 encounters in 20 h" in told
    assert (
        "confidence bounds [1.316, 3.405] at 90 % (error budget: 0.05 probabilities, 0.05 exposure); assumes that "
        "drives are independent and none holds more than 40 items of a column" in told
    )
    assert "2.99573e+07 hours" in told
    assert told.endswith("acceptance criterion: not met\n")
    document = read_document(target)
    assert document.kind == "rate"
    assert document.content["command"][:4] == ["verify", "evidence", "rate", "result.json"]
    assert document.content["inputs"][0]["name"] == "result.json"


def test_a_result_whose_verdicts_do_not_follow_from_it_gives_no_rate(result, capsys):
    content = json.loads(result.read_text())
    for point_found in content["requirements"][0]["points"]:
        point_found["condition"] = "if items are independent"
    result.write_text(json.dumps(content))
    assert rate(result, "--requirement", "stops", "--exposure", "12/h") == 4
    told = capsys.readouterr()
    assert (told.out, "/requirements/0/points/0/condition: expected null" in told.err) == ("", True)


def test_json_is_the_same_wherever_it_goes(result, tmp_path, capsys):
    words = (result, "--requirement", "stops", "--exposure", "12/h")
    assert rate(*words, "--json") == 0
    printed = capsys.readouterr().out
    assert rate(*words, "-o", tmp_path / "rate.json") == 0
    assert (tmp_path / "rate.json").read_text(encoding="utf-8") == printed
    assert json.loads(printed)["verdict"] == "no target"


@pytest.mark.parametrize(("accept", "code"), [("3/h", 0), ("2/h", 3), ("1/h", 1)])
def test_exit_codes(result, accept, code):
    assert rate(result, "--requirement", "stops", "--exposure", "12/h", "--accept", accept) == code


def test_environments_and_intervals(result, capsys):
    words = ("--exposure", "ped=10..14/h", "--exposure", "obs=0.5e1/h", "--exposure-level", "0.99")
    assert rate(result, "--requirement", "stops", *words) == 0
    told = capsys.readouterr().out
    assert "10 to 14/h, as stated, at level 0.99" in told
    assert "confidence bounds [1.25, 3.5] at 94 % (error budget: 0.05 probabilities, 0.01 exposure)" in told


def test_from_a_context(result, tmp_path, capsys):
    context = tmp_path / "case.toml"
    context.write_text("[exposure.every]\nper_hour = 12\n[acceptance.stops]\nper_hour = 3", encoding="utf-8")
    assert rate(result, "--requirement", "stops", "--context", context, "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["verdict"], content["acceptance"]["per_hour"]) == ("satisfied", "3")
    assert [each["role"] for each in content["inputs"]] == ["result", "context"]


def test_a_context_may_tell_of_more_environments(result, tmp_path, capsys):
    context = tmp_path / "case.toml"
    text = "[exposure.ped]\nper_hour = 12\n[exposure.obs]\nper_hour = 1\n[exposure.sky]\nper_hour = 9"
    context.write_text(text, encoding="utf-8")
    assert rate(result, "--requirement", "stops", "--context", context) == 0
    context.write_text("[exposure.ped]\nper_hour = 12\n[exposure.sky]\nper_hour = 9", encoding="utf-8")
    assert rate(result, "--requirement", "stops", "--context", context) == 2
    assert "no exposure is given for obs" in capsys.readouterr().err


def test_what_the_rate_is_about_is_said(result, capsys):
    words = (result, "--requirement", "stops", "--exposure", "12/h")
    rate(*words)
    told = capsys.readouterr().out
    assert "\nassumes the worst scenario in every encounter (upper estimate for any other mix)\n" in told
    assert "left out" not in told
    rate(*words, "--env", "obs", "--accept", "1/h")
    told = capsys.readouterr().out
    assert "any other mix" not in told
    assert "\nwithout what happens in ped, left out as asked\n" in told
    rate(*words, "--accept", "1/h")
    assert "encounters if no more come per hour than the upper ends, without an event" in capsys.readouterr().out


def test_a_criterion_of_the_context_is_about_failures(result, tmp_path, capsys):
    context = tmp_path / "case.toml"
    context.write_text("[exposure.every]\nper_hour = 12\n[acceptance.stops]\nper_hour = 30", encoding="utf-8")
    words = (result, "--requirement", "stops", "--context", context)
    assert rate(*words, "--event", "violated") == 0
    assert rate(*words, "--event", "satisfied") == 2
    assert "the acceptance criterion of the context is about how often it fails" in capsys.readouterr().err
    assert rate(*words, "--event", "satisfied", "--accept", "30/h") == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--requirement", "stop"), "did you mean 'stops'"),
        (("--requirement", "counts", "--exposure", "1/h"), "does not say what is unwanted"),
        (("--requirement", "stops"), "missing exposure: give --exposure, or --encounters with --hours, or --context"),
        (("--requirement", "stops", "--exposure", "12"), "expected a rate per hour"),
        (("--requirement", "stops", "--exposure", "14..10/h"), "the lower end comes first"),
        (("--requirement", "stops", "--exposure", "ped=1/h"), "no exposure is given for obs"),
        (("--requirement", "stops", "--exposure", "1/h", "--exposure", "2/h"), "every environment once"),
        (("--requirement", "stops", "--encounters", "3"), "belong together"),
        (
            ("--requirement", "stops", "--exposure", "1/h", "--test-confidence", "0.9"),
            "--test-confidence is about",
        ),
        (("--requirement", "stops", "--encounters", "-3", "--hours", "1"), "whole number from 0"),
        (("--requirement", "stops", "--encounters", "3", "--hours", "0"), "more than 0 hours"),
        (("--requirement", "stops", "--encounters", "3", "--hours", "1", "--exposure", "1/h"), "either --exposure"),
        (("--requirement", "stops", "--exposure", "1/h", "--exposure-level", "0.9"), "belongs to a stated interval"),
        (("--requirement", "stops", "--exposure", "1/h", "--accept", "0/h"), "can never be shown"),
        (("--requirement", "stops", "--exposure", "1/h", "--test-confidence", f"0.{'9' * 25}"), "at most 1 - 1e-06"),
        (("--requirement", "stops", "--exposure", "1/h", "--accept", "1"), "expected a rate per hour"),
        (("--requirement", "stops", "--exposure", "1/h", "--confidence", "1"), "strictly between"),
        (("--requirement", "stops", "--exposure", "1/h", "--confidence", "x"), "expected a number"),
        (("--requirement", "stops", "--exposure", "1/h", "--confidence", "0.99"), "leaves nothing"),
    ],
)
def test_wrong_usage(result, capsys, words, message):
    if words == ("--requirement", "stop"):
        words = (*words, "--exposure", "1/h")
    assert rate(result, *words) == 2
    assert message in capsys.readouterr().err


def test_files_that_are_not_accepted(result, tmp_path, capsys):
    words = ("--requirement", "stops", "--exposure", "1/h")
    assert rate(tmp_path / "none.json", *words) == 4
    assert rate(result, *words, "-o", tmp_path / "no" / "folder.json") == 4
    assert rate(result, *words, "-o", result) == 2
    (tmp_path / "other.json").write_text('{"schema": "verifier.runs"}', encoding="utf-8")
    assert rate(tmp_path / "other.json", *words) == 4
    assert "did you mean 'verifier.run'" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


def test_a_rate_of_a_run_with_bounds_whatever_the_dependence(tmp_path, capsys):
    """Two looks of which one is enough, 4000 people of whom 1000 are missed: P lies in [3/4, 1], so of the twelve
    encounters of an hour three fail at most."""
    spec, matrices = write_inputs(tmp_path, FREE_SPEC, FREE_MATRICES, MODEL)
    asked = ["run", spec, "--cm", matrices, "--dependence-free", "--point-only", "-o", tmp_path / "run.json"]
    assert main(list(map(str, asked))) == 0
    words = (tmp_path / "run.json", "--requirement", "stops", "--exposure", "12/h", "-o", tmp_path / "rate.json")
    assert rate(*words, "--accept", "3.01/h") == 0
    told = capsys.readouterr().out
    assert "however reports depend on each other [0, 3" in told
    found = read_document(tmp_path / "rate.json").content
    assert (found["verdict"], found["basis"], found["bounds"]["source"]) == ("satisfied", "any_dependence", "point")
    (free,) = found["other_bounds"]
    assert (free["source"], free["lower"], free["level"]) == ("any_dependence", 0, None)
    assert 3 <= free["upper"] <= 3 + 12e-6
    assert (
        main(["report", str(tmp_path / "rate.json"), str(tmp_path / "run.json"), "-o", str(tmp_path / "r.md")]) == 0
    )
    assert "(however reports depend on each other)" in (tmp_path / "r.md").read_text()
    # The memoryless chain has 3/4 per hour, which data of unknown tracks leave untested.
    assert rate(*words, "--accept", "2/h") == 0
    assert read_document(tmp_path / "rate.json").content["basis"] == "memoryless"
