"""What a check reports: for machines, about given results, within limits, and where another machine rounds."""

import hashlib
import json
import os
import time

import pytest
from document_edits import summed
from memory_checks import in_a_new_process, too_little_for_a_check
from small_bundles import MODEL, write_inputs
from typed_documents import read_back

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.errors import LimitError, NoAnswerError
from verifier.cli import main
from verifier.cli.evidence import check_text
from verifier.evidence.bundle.archive import ReadingLimits, write_bundle
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.evidence.bundle.check import CheckLimits, check_bundle, check_files
from verifier.evidence.bundle.contents import check_recomputed
from verifier.evidence.bundle.derived_artefacts import derived_row
from verifier.evidence.bundle.layout import input_paths
from verifier.evidence.bundle.parts import read_parts
from verifier.evidence.bundle.request import Request, request_of, unpacked_inputs
from verifier.evidence.findings import CheckReport, Finding, Grades, Log, Misstated, RequirementVerdict
from verifier.language.specs import read_spec
from verifier.study.case import Study
from verifier.study.options import RunOptions
from verifier.systems.settings import Limits

FEW = RunOptions(confidence=ConfidenceSettings(draws=500))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return make_bundle(Sources(*write_inputs(tmp_path_factory.mktemp("inputs"))), FEW)


def test_manifest_and_report_keep_to_their_schemas(built, root, tmp_path, capsys):
    read_back(json.loads(built.files["manifest.json"]))
    write_bundle(built.files, tmp_path / "b.zip")
    assert main(["evidence", "check", str(tmp_path / "b.zip"), "--json", "--digest", built.digest]) == 0
    passed = json.loads(capsys.readouterr().out)
    read_back(passed)
    assert (passed["bundle"], passed["digest"], passed["digest_demanded"], passed["intact"]) == (
        "b.zip",
        built.digest,
        True,
        True,
    )
    assert passed["verdict"] == "inconclusive"
    assert [row["requirement"] for row in passed["requirements"]] == ["stops", "drives_on", "asked"]
    assert passed["command"] == ["verify", "evidence", "check", "b.zip", "--digest", built.digest]
    assert passed["versions"].keys() == {"verifier", "python", "numpy", "scipy", "stormpy"}
    write_bundle({**built.files, "trace.csv": b""}, tmp_path / "c")
    assert main(["evidence", "check", str(tmp_path / "c"), "--json"]) == 4
    wrong = json.loads(capsys.readouterr().out)
    read_back(wrong)
    assert {each["file"] for each in wrong["findings"]} == {"trace.csv"}


def test_what_was_built_as_json(root, tmp_path, capsys):
    """The digest is the SHA-256 of the manifest that lies there, and the rows are the requirements of the spec."""
    spec, matrices = write_inputs(tmp_path)
    command = ["evidence", "build", str(spec), "--cm", str(matrices), "--draws", "200"]
    assert main([*command, "-o", str(tmp_path / "b"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    read_back(told)
    there = [each for each in (tmp_path / "b").rglob("*") if each.is_file()]
    assert told["digest"] == hashlib.sha256((tmp_path / "b/manifest.json").read_bytes()).hexdigest()
    assert (told["files"], told["bytes"]) == (len(there), sum(each.stat().st_size for each in there))
    assert [each["requirement"] for each in told["requirements"]] == ["stops", "drives_on", "asked"]
    assert told["requirements"][2]["status"] == "reported"
    assert told["command"] == [
        "verify",
        "evidence",
        "build",
        "two_looks.ltl",
        "--cm",
        "matrices.json",
        "--draws",
        "200",
    ]
    assert main([*command, "-o", str(tmp_path / "again")]) == 0  # how it is shown changes no byte of the bundle
    assert f"digest: {told['digest']}" in capsys.readouterr().out


def test_what_cannot_be_read_is_exit_code_4_and_wrong_usage_2(tmp_path, capsys):
    (tmp_path / "b.zip").write_bytes(b"nothing")
    assert main(["evidence", "check", str(tmp_path / "b.zip")]) == 4
    assert "no sound zip archive" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["evidence", "check", str(tmp_path / "empty")]) == 4
    assert "WRONG manifest.json: found nothing" in capsys.readouterr().out
    for wrong in (["--digest", "abc"], ["--digest"], ["--max-states", "0"]):
        with pytest.raises(SystemExit) as stopped:
            main(["evidence", "check", str(tmp_path / "b.zip"), *wrong])
        assert stopped.value.code == 2


def test_a_given_result_is_put_in_validated_and_not_vouched_for(built, tmp_path, capsys):
    spec, matrices = write_inputs(tmp_path)
    command = ["require", str(spec), "--cm", str(matrices), "--requirement", "stops", "--floor"]
    assert main([*command, "--output", str(tmp_path / "floor.json")]) == 0
    build = ["evidence", "build", str(spec), "--cm", str(matrices), "--point-only", "--requirement", "stops"]
    given = ["--with", str(tmp_path / "floor.json")]
    assert main([*build, *given, "-o", str(tmp_path / "b")]) == 0
    floor = (tmp_path / "floor.json").read_bytes()
    assert (tmp_path / "b/inputs/given/floor.json").read_bytes() == floor
    report = check_bundle(tmp_path / "b")
    assert report.sound
    told = "inputs/given/floor.json, which is validated and not verified here: it was made elsewhere"
    assert told in report.unchecked
    (tmp_path / "b/inputs/given/floor.json").write_bytes(floor.replace(b'"items": 400', b'"items": 401', 1))
    found = [each for each in check_bundle(tmp_path / "b").findings if each.where]
    assert [(each.file, each.found, each.expected) for each in found] == [("inputs/given/floor.json", "401", "400")]
    (tmp_path / "again").mkdir()
    (tmp_path / "again/floor.json").write_bytes(floor)
    capsys.readouterr()
    two = [*build, *given, "--with", str(tmp_path / "again/floor.json"), "-o", str(tmp_path / "c")]
    assert main(two) == 4
    assert "two given results are called floor.json" in capsys.readouterr().err
    (tmp_path / "wrong.json").write_text('{"schema": "verifier.runs"}')
    assert main([*build, "--with", str(tmp_path / "wrong.json"), "-o", str(tmp_path / "c")]) == 4
    assert "did you mean 'verifier.run'?" in capsys.readouterr().err
    assert not (tmp_path / "c").exists()


def test_a_given_rate_is_computed_again_beside_its_run_and_says_so_without(tmp_path, capsys):
    spec, matrices = map(str, write_inputs(tmp_path))
    run, rate, forged = (str(tmp_path / f"{name}.json") for name in ("run", "rate", "forged"))
    assert main(["run", spec, "--cm", matrices, "--draws", "20", "--output", run]) in (0, 1, 3)
    words = ["--requirement", "stops", "--exposure", "1/h", "--output", rate]
    assert main(["evidence", "rate", run, *words]) in (0, 1, 3)
    content = json.loads((tmp_path / "rate.json").read_text())
    content["terms"][0]["worst_scenario"] += " and another"  # of which nothing else in the document speaks
    (tmp_path / "forged.json").write_text(json.dumps(summed(content)))
    build = ["evidence", "build", spec, "--cm", matrices, "--point-only", "--requirement", "stops"]
    for given, alone in (([forged], True), ([rate, run], False)):
        bundle = tmp_path / f"b{len(list(tmp_path.iterdir()))}"
        named = [word for each in given for word in ("--with", each)]
        assert main([*build, *named, "-o", str(bundle)]) == 0
        report = check_bundle(bundle)
        assert report.sound
        said = [each for each in report.unchecked if "were not computed again" in each]
        assert len(said) == alone
        assert all(each.startswith("inputs/given/forged.json: ") for each in said)
    capsys.readouterr()
    assert main([*build, "--with", forged, "--with", run, "-o", str(tmp_path / "no")]) == 4
    assert "/terms/0/worst_scenario: expected" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(("up", "spec_path", "model_path"), [
    ("", "inputs/specs/two_looks.ltl", "inputs/specs/two_looks.toml"),
    ("deep/", "inputs/specs/two_looks.ltl", "inputs/specs/deep/two_looks.toml"),
    ("../../models/", "inputs/specs/specs/two_looks.ltl", "inputs/models/two_looks.toml"),
])  # fmt: skip
def test_the_copied_spec_finds_the_copied_model_wherever_it_lay(up, spec_path, model_path, tmp_path):
    spec, matrices = write_inputs(tmp_path / "a/b")
    place = spec.parent / f"{up}two_looks.toml"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(MODEL)
    spec.write_text(spec.read_text().replace("../models/", up))
    found = input_paths(read_spec(spec), matrices, None, ())
    assert list(found) == [spec_path, model_path, "inputs/matrices/matrices.json"]
    files = {path: file.read_bytes() for path, file in found.items()}
    with unpacked_inputs(files, Request(**dict(zip(("spec", "model", "matrices"), found, strict=True)))) as read:
        assert read.inputs.model.sha256 == hashlib.sha256(MODEL.encode()).hexdigest()


def test_a_model_by_an_absolute_path_and_names_that_no_bundle_has_are_refused(tmp_path, capsys):
    spec, matrices = write_inputs(tmp_path)
    build = ["evidence", "build", str(spec), "--cm", str(matrices), "-o", str(tmp_path / "b")]
    text = spec.read_text()
    spec.write_text(text.replace("../models/two_looks.toml", str(tmp_path / "models/two_looks.toml")))
    assert main(build) == 4
    assert "absolute path" in capsys.readouterr().err
    spec.write_text(text)
    odd = tmp_path / "odd:\x1bname.json"
    os.link(matrices, odd)
    assert main([*build[:4], str(odd), *build[5:]]) == 4
    assert "a character that not every system accepts" in capsys.readouterr().err


def test_limits_of_a_check_hold(built, tmp_path):
    write_bundle(built.files, tmp_path / "b")
    with pytest.raises(LimitError):
        check_bundle(tmp_path / "b", limits=CheckLimits(reading=ReadingLimits(files=10)))


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize(
    "limits",
    [
        CheckLimits(system=Limits(states=2)),
        CheckLimits(timeout_s=1e-3),
    ],
    ids=["states", "time"],
)
def test_a_check_whose_limits_are_too_small_says_nothing_against_the_bundle(built, limits, recompute):
    with pytest.raises(NoAnswerError, match="limit") as told:
        check_files("b", built.files, recompute=recompute, limits=limits)
    assert told.value.exit_code == 6


@pytest.mark.parametrize("recompute", [False, True])
def test_a_check_with_too_little_memory_says_nothing_against_the_bundle(built, recompute):
    in_a_new_process(too_little_for_a_check, dict(built.files), recompute)


def test_numbers_that_come_out_otherwise_within_the_limits_say_nothing_against_the_bundle(built, monkeypatch):
    """As if Storm had no time for the run: the other engine answers alone, and says so."""
    slow = iter([True] * 12)
    monkeypatch.setattr(
        "verifier.checking.process._deadline", lambda timeout_s: time.monotonic() + (0 if next(slow, False) else 600)
    )
    with pytest.raises(NoAnswerError, match=r"limits of this check.*took longer than the limit") as told:
        check_files("b", built.files, recompute=True)
    assert told.value.exit_code == 6


def test_what_was_found_before_the_limits_were_reached_is_wrong_all_the_same(built):
    derived = next(path for path in built.files if derived_row(path) is not None)
    report = check_files("b", {**built.files, derived: b"{}"}, limits=CheckLimits(system=Limits(states=2)))
    assert report.exit_code == 4
    assert {each.file for each in report.findings} == {derived}
    assert any(said.startswith("what is beyond the limits of this check") for said in report.unchecked)


def test_the_command_ends_without_an_answer_where_its_limits_are_too_small(built, tmp_path, capsys):
    write_bundle(built.files, tmp_path / "b")
    assert main(["evidence", "check", str(tmp_path / "b"), "--timeout", "0.001"]) == 6
    out, err = capsys.readouterr()
    assert "WRONG" not in out
    assert "--timeout" in err


def test_last_digits_and_library_versions_may_differ_on_another_machine(built):
    """As if the bundle came from elsewhere: its results say other last digits and versions than we compute."""
    files = {path: raw for path, raw in built.files.items() if derived_row(path) is None}
    content = json.loads(files["results/run.json"])
    interval = content["requirements"][0]["points"][0]["uncertainty"]["interval"]
    interval["lower"] *= 1 + 1e-12
    content["versions"]["numpy"] = "1.0"
    files["results/run.json"] = (json.dumps(summed(content), indent=2) + "\n").encode()
    request = request_of(json.loads(files["request.json"]))
    with unpacked_inputs(files, request) as read:
        rebuilt = Study.of(read.inputs, request.options)
        log = Log()
        check_recomputed(read_parts(request, read, rebuilt, files), log)
    assert log.findings == []
    assert any(each.startswith("the last digits of 1 numbers") for each in log.unchecked)
    assert any("with numpy" in each for each in log.unchecked)


def last_lines(findings=(), grades=None):
    stops = RequirementVerdict("stops", "careful", "satisfied", "conditional on A1")
    drives_on = RequirementVerdict("drives_on", "careful", "inconclusive", "")
    report = CheckReport(
        bundle="b",
        digest="0" * 64,
        digest_demanded=False,
        findings=findings,
        checked=(),
        unchecked=("this",),
        verdict="inconclusive",
        requirements=(stops, drives_on),
        numbers=grades,
        status="" if findings else "status: inconclusive: drives_on",
    )
    return check_text(report).splitlines()[2 + len(findings) :]


def test_the_last_lines_say_the_status_first_and_then_how_numbers_were_checked():
    status = [
        "verdict of the run: inconclusive",
        "requirement stops, planner careful: satisfied; status: conditional on A1",
        "requirement drives_on, planner careful: inconclusive",
    ]
    assert last_lines(grades=Grades(36, 120, 749)) == [
        *status,
        "files: intact",
        "numbers in the results: 36 proven, 120 recomputed, 749 compared only by hash",
        "status: inconclusive: drives_on",
    ]
    assert last_lines(grades=Grades(36, 869, 0))[-3:-1] == [
        "numbers in the results: 36 proven, 869 recomputed, 0 compared only by hash",
        "every number proven or recomputed",
    ]
    wrong = Misstated("results/run.json", "/verdict", "satisfied", "violated")
    assert last_lines((wrong,)) == [*status, "files: intact", "1 finding: the results are not confirmed"]
    bytes_differ = Finding("trace.csv", "", "other bytes", "those of the manifest")
    assert last_lines((bytes_differ, wrong))[-2:] == [
        "files: NOT intact",
        "2 findings: the results are not confirmed",
    ]


def test_all_numbers_are_recomputed_by_a_check_recomputed(built):
    lenient, strict = (check_files("b", built.files, recompute=recompute).numbers for recompute in (False, True))
    bounds = 2 * 3 * 2 * 3  # 2 blocks, 3 requirements, 2 sides, in the run and under two other rules for verdicts
    points = 2 * 3 * 5 + 5  # the same blocks and requirements under all five rules, and five with other recalls
    assert lenient.proven == strict.proven == bounds + 4 * points
    assert lenient.by_hash > 0
    assert strict == Grades(lenient.proven, lenient.recomputed + lenient.by_hash, 0)
