"""What `verify report` refuses, in words that name the element, and that nothing is written then."""

import copy
import json
import os
from fractions import Fraction
from pathlib import Path

import pytest
from made_runs import document_of, every_verdict, on_grid
from report_documents import document, documents, path
from run_documents import matrices

from verifier.base.errors import ExitCode, InputError
from verifier.cli import main
from verifier.evidence.documents import Document
from verifier.evidence.report import csv_report, html_report, markdown_report


def run(capsys, *words):
    code = main(["report", *map(str, words)])
    return code, capsys.readouterr()


def test_all_three_formats_are_written_and_the_exit_code_is_0_whatever_the_verdicts(tmp_path, capsys):
    targets = [tmp_path / name for name in ("r.html", "r.md", "r.csv")]
    code, said = run(capsys, path("run"), path("by_class"), *(f"--output={each}" for each in targets), "--title=T")
    assert code == ExitCode.SATISFIED
    assert said.out.splitlines() == [f"wrote {each}" for each in targets]
    found = documents("run", "by_class")
    assert targets[0].read_text() == html_report(found, "T")
    assert targets[1].read_text() == markdown_report(found, "T")
    assert targets[2].read_text() == csv_report(found)
    assert sorted(tmp_path.iterdir()) == sorted(targets)


LOST = ("explanations", 1, "violation")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"version": 2}, "/version: not a document of schema verifier.run"),
        ({"verdict": "fine"}, "/verdict: not a document of schema verifier.run"),
        ({"more": 1}, "'more' was unexpected"),
    ],
)
def test_what_is_no_document_of_this_program_is_refused_by_element(change, told, tmp_path, capsys):
    source = tmp_path / "run.json"
    source.write_text(json.dumps(every_verdict() | change))
    code, said = run(capsys, source, "-o", tmp_path / "r.html")
    assert code == ExitCode.BAD_INPUT
    assert told in said.err
    assert "run.json" in said.err
    assert list(tmp_path.iterdir()) == [source]


def test_one_document_twice_is_refused(tmp_path, capsys):
    other = tmp_path / "copy.json"
    other.write_bytes(Path(path("run")).read_bytes())
    code, said = run(capsys, path("run"), other, "-o", tmp_path / "r.html")
    assert code == ExitCode.BAD_INPUT
    assert "copy.json: the same document as 'run.json': equal bytes" in said.err


def test_an_output_is_no_input(tmp_path, capsys):
    source = tmp_path / "run.html"
    source.write_text(json.dumps(every_verdict()))
    before = source.read_bytes()
    os.link(source, tmp_path / "link.html")
    for target in (source, tmp_path / "link.html"):
        code, said = run(capsys, source, "-o", target)
        assert code == ExitCode.USAGE
        assert "is an input of this report" in said.err
    assert source.read_bytes() == before


def test_outputs_that_cannot_be_written_are_refused_before_anything_is_read(tmp_path, capsys):
    (tmp_path / "folder.html").mkdir()
    for target, told in (
        (tmp_path / "none" / "r.html", "cannot be written"),
        (tmp_path / "folder.html", "cannot be written"),
    ):
        code, said = run(capsys, tmp_path / "absent.json", "-o", target)
        assert code == ExitCode.BAD_INPUT
        assert told in said.err
    for words, told in (
        (["-o", "r.pdf"], "ending in .html, .md, .csv"),
        (["-o", ""], "ending in .html, .md, .csv"),
        (["-o", tmp_path / "a.md", "-o", tmp_path / "b" / ".." / "a.md"], "same file"),
        (["-o", tmp_path / "a.md", "--title", " "], "--title"),
    ):
        (tmp_path / "b").mkdir(exist_ok=True)
        code, said = run(capsys, tmp_path / "absent.json", *words)
        assert code == ExitCode.USAGE
        assert told in said.err


def changed(name, *steps, value):
    """A document with one element replaced, as if it had passed its schema."""
    content = copy.deepcopy(document(name).content)
    place = content
    for step in steps[:-1]:
        place = place[step]
    if value is None:
        del place[steps[-1]]
    else:
        place[steps[-1]] = value
    return Document(f"{name}.json", document(name).kind, content, "0" * 64)


POINT = ("requirements", 1, "points", 0)
BASIS = ("settings", "confidence", "bounds")
FIRST = ("specs", 0, "requirements", 1)


@pytest.mark.parametrize(
    ("name", "steps", "value", "pointer"),
    [
        ("run", ("requirements", 1, "worst"), 99, "/requirements/1/worst"),
        (
            "run",
            ("requirements", 1, "points", 0, "probability"),
            float("nan"),
            "/requirements/1/points/0/probability",
        ),
        ("run", ("requirements", 1, "points", 0, "probability"), 1.5, "/requirements/1/points/0/probability"),
        ("run", ("requirements", 1, "points", 0, "exact"), "1/0", "/requirements/1/points/0/exact"),
        ("run", ("requirements", 1, "target", "probability"), "3/2", "/requirements/1/target/probability"),
        ("run", ("requirements", 1, "strategies"), [], "/requirements/1/strategies"),
        ("run", ("verdict",), "satisfied", "/verdict"),
        ("run", ("requirements", 1, "verdict"), "satisfied", "/requirements/1/verdict"),
        ("run", ("requirements", 1, "worst"), 1, "/requirements/1/worst"),
        ("run", (*POINT, "lower"), 0.9, "/requirements/1/points/0/probability"),
        ("run", (*POINT, "second_engine"), 0.9, "/requirements/1/points/0/second_engine"),
        ("run", (*POINT, "exact"), "1/2", "/requirements/1/points/0/exact"),
        ("run", (*POINT, "exact"), "1" * 5000 + "/" + "x" * 5000, "/requirements/1/points/0/exact"),
        (
            "run",
            (*POINT, "uncertainty", "confidence_bounds", "lower"),
            0.5,
            "/requirements/1/points/0/uncertainty/confidence_bounds",
        ),
        ("run", (*POINT, "uncertainty", "interval", "upper"), 0.01, "/requirements/1/points/0/uncertainty/interval"),
        ("run", (*POINT, "uncertainty", "confidence_bounds", "upper"), 0.97, "/requirements/1/points/0/verdict"),
        ("run", (*BASIS, "tier"), "independent_drives", "/settings/confidence/bounds"),
        ("run", (*BASIS, "conditional"), False, "/settings/confidence/bounds/conditional"),
        ("run", (*BASIS, "name"), "95 % confidence bounds", "/settings/confidence/bounds/name"),
        ("run", (*BASIS, "every_look"), True, "/settings/confidence/bounds/every_look"),
        ("run", (*BASIS, "shift"), 0.1, "/settings/confidence/bounds/condition"),
        ("run", (*BASIS, "level"), 0.99, "/settings/confidence/bounds/name"),
        ("run", (*BASIS[:-1], "level"), 0.99, "/settings/confidence/bounds/level"),
        ("explain", (*BASIS, "conditional"), False, "/settings/confidence/bounds/conditional"),
        ("explain", ("explanations", 1, "verdict"), "satisfied", "/explanations/1/verdict"),
        ("require", ("answers", 0, "measured", "verdict"), "satisfied", "/answers/0/measured/verdict"),
        ("rate", ("acceptance", "per_hour"), "9" * 400, "/acceptance/per_hour"),
        ("explain", ("settings", "empty_columns"), None, "/settings"),
        ("explain", ("engines", "largest_difference"), "x", "/engines/largest_difference"),
        ("explain", ("explanations", 1, "point", "verdict"), "fine", "/explanations/1/point/verdict"),
        ("explain", ("explanations", 1, "target"), {"comparison": ">="}, "/explanations/1/target"),
        ("explain", (*LOST, "detection_errors", 0, "bin"), 10, "/explanations/1/violation/detection_errors/0/bin"),
        (
            "explain",
            (*LOST, "causes", 0, "detection_errors", 0),
            1,
            "/explanations/1/violation/causes/0/detection_errors/0",
        ),
        ("explain", (*LOST, "causes", 0, "probability"), 0.5, "/explanations/1/violation/causes"),
        ("explain", (*LOST, "rest"), 0.1, "/explanations/1/violation/causes"),
        ("explain", (*LOST, "causes", 0, "share"), 0.5, "/explanations/1/violation/causes/0/share"),
        ("explain", (*LOST, "patterns", 0, "steps", 0), [[3]], "/explanations/1/violation/patterns/0/steps/0/0/0"),
        ("explain", ("explanations", 1, "map", "probability", 3), [0.5], "/explanations/1/map/probability/3"),
        ("explain", ("explanations", 1, "map", "probability", 3, 0), "x", "/explanations/1/map/probability/3"),
        ("explain", ("explanations", 1, "map", "values", 0), [1], "/explanations/1/map/probability"),
        ("require", ("requirement", "probability"), "1/0", "/requirement/probability"),
        ("require", ("settings", "constants"), [1], "/settings/constants"),
        ("require", ("settings", "strict"), "yes", "/settings/strict"),
        ("require", ("answers", 0, "cells", 0, "measured", "hits"), 999, "/answers/0/cells/0/measured/hits"),
        ("require", ("answers", 0, "cells", 0, "required"), "1/0", "/answers/0/cells/0/required"),
        ("require", ("answers", 0, "floor", "floors"), [], "/answers/0/floor/floors"),
        ("require", ("answers", 0, "value"), "1/0", "/answers/0/value"),
        ("compare", (*FIRST, "entries", 0, "worst"), 99, "/specs/0/requirements/1/entries/0/worst"),
        ("compare", (*FIRST, "entries"), [], "/specs/0/requirements/1/entries"),
        ("collision", ("policies", 0, "detectors", 0, "probability"), [], "/policies/0/detectors/0/probability"),
        ("collision", ("settings", "shown_mps", 0), 0.123, "/settings/shown_mps/0"),
        ("curves", ("curves", 0, "safety"), [0.5], "/curves/0"),
        ("robroc", ("metrics", 0, "curves", 0, "safety"), [0.5], "/metrics/0/curves/0"),
        ("rate", ("acceptance", "per_hour"), "1/0", "/acceptance/per_hour"),
        ("rate", ("terms", 0, "exposure", "hours"), "1/0", "/terms/0/exposure/hours"),
        (
            "collision",
            ("policies", 0, "detectors", 0, "probability", 2, 0),
            7,
            "/policies/0/detectors/0/probability/2/0",
        ),
        ("by_class", ("bins", 0, "counts", 0, 0), -1, "/bins/0/counts/0/0"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused_by_element(name, steps, value, pointer):
    """These pass the schemas, or would if the schemas of parts were looked at alone."""
    with pytest.raises(InputError) as caught:
        html_report([changed(name, *steps, value=value)])
    assert caught.value.place.path == pointer
    assert caught.value.place.file == f"{name}.json"


def test_intervals_of_points_need_those_of_the_run():
    content = copy.deepcopy(document("run").content)
    content["settings"]["confidence"] = None
    with pytest.raises(InputError, match="/requirements/0/points/0/uncertainty: "):
        markdown_report([Document("run.json", "run", content, "0" * 64)])


def test_a_verdict_that_does_not_follow_from_its_numbers_is_refused_however_consistently_it_was_changed():
    """P is at most 0.292, and at least 0.95 was asked for."""
    content = copy.deepcopy(document("run").content)
    asked = content["requirements"][1]
    asked["verdict"], content["verdict"], content["condition"] = "satisfied", "inconclusive", None
    for each in asked["points"]:
        each["verdict"] = "satisfied"
    with pytest.raises(
        InputError, match='expected "violated", which follows from the numbers beside it, found "satisfied"'
    ):
        html_report([Document("run.json", "run", content, "0" * 64)])


def test_exact_probabilities_may_have_any_number_of_digits():
    """Python itself decodes no more than 4300 at once; 10^6000 / (4 * 10^6000) is 1/4."""
    content = on_grid(every_verdict())
    content["settings"]["exact"] = True
    for each in (point for asked in content["requirements"] for point in asked["points"]):
        each["exact"] = str(Fraction(each["probability"]))
    content["requirements"][0]["points"][1]["exact"] = "1" + "0" * 6000 + "/4" + "0" * 6000
    assert html_report([document_of(content)])


@pytest.mark.parametrize("value", [10**380, -(10**380), 1e301, float("nan"), float("-inf")])
def test_numbers_that_nothing_can_be_are_refused_by_element(value):
    """JSON allows whole numbers that no float is near to; pictures and tables would fail on them."""
    content = copy.deepcopy(document("sweep").content)
    content["requirements"][2]["points"][1]["initial"]["x"] = value
    with pytest.raises(InputError, match="expected a number, got") as caught:
        html_report([Document("sweep.json", "run", content, "0" * 64)])
    assert caught.value.place.path == "/requirements/2/points/1/initial/x"


def test_the_unchanged_documents_pass():
    for name in (
        "run",
        "explain",
        "require",
        "compare",
        "collision",
        "curves",
        "robroc",
        "by_class",
        "assess",
        "rate",
    ):
        assert html_report([document(name)])


def test_what_matrices_remark_is_told():
    text = "one drive holds most items"
    content = matrices(version=2, remarks=[{"kind": "largest-drive", "text": text}])
    assert f"* {text} (a.json)" in markdown_report([content])


def test_a_bound_of_another_tier_than_the_run_says_is_refused():
    """The assumption of a bound stands beside it, and is that of the run."""
    content = copy.deepcopy(every_verdict())
    points = [point for each in content["requirements"] for point in each["points"] if "uncertainty" in point]
    points[0]["uncertainty"]["confidence_bounds"]["tier"] = "independent_items"
    with pytest.raises(InputError, match="expected independent_drives, as in the settings of the run"):
        html_report([document_of(content)])
