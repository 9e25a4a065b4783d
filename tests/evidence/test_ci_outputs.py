"""The outputs for continuous integration of a real run, as independent readers see them, and the example workflow."""

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from verifier.base.errors import ExitCode
from verifier.cli import main
from verifier.evidence.consistency import read_document
from verifier.evidence.sarif import requirement_places
from verifier.language.specs import read_spec

SPEC, CM, MODEL = "specs/car_pedestrian.ltl", "examples/nuscenes_yolov3_class.json", "models/car_pedestrian.toml"
NAMES = {"--output": "run.json", "--junit": "run.xml", "--sarif": "run.sarif", "--in-toto": "run.intoto.json"}
FAST, FASTEST = ["--draws", "100"], ["--point-only", "--env", "obs"]


def outputs(folder):
    return [each for option, name in NAMES.items() for each in (option, str(folder / name))]


@pytest.fixture(scope="module")
def made(root, tmp_path_factory):
    """A folder with every output of one run of the published matrices."""
    folder = tmp_path_factory.mktemp("outputs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.delenv("SOURCE_DATE_EPOCH", raising=False)
        assert main(["run", SPEC, "--cm", CM, *FAST, *outputs(folder)]) == ExitCode.VIOLATED
    return folder


def test_junit_has_every_requirement_in_every_scenario(made):
    junitparser = pytest.importorskip("junitparser")
    read = junitparser.JUnitXml.fromfile(str(made / "run.xml"))
    points = [
        (each["name"], point["verdict"])
        for each in read_document(made / "run.json").content["requirements"]
        for point in each["points"]
    ]
    cases = [(case.name.partition(" ")[0], case) for suite in read for case in suite]
    assert sorted(name for name, _ in cases) == sorted(name for name, _ in points)
    verdicts = [verdict for _, verdict in points]
    assert read.failures == verdicts.count("violated") + verdicts.count("inconclusive")
    assert read.skipped == verdicts.count("no target") + verdicts.count("vacuous")
    assert read.tests == len(points)
    assert {case.classname for _, case in cases} == {"car_pedestrian.published"}
    assert sum(case.time for _, case in cases) == pytest.approx(read.time, abs=1e-4)
    assert 0 < read.time < 600


def test_sarif_points_at_the_requirement(made, root):
    (run,) = json.loads((made / "run.sarif").read_text())["runs"]
    found = {}
    lines = (root / SPEC).read_text().split("\n")
    for result in run["results"]:
        physical = result["locations"][0]["physicalLocation"]
        assert physical["artifactLocation"]["uri"] == SPEC
        line = lines[physical["region"]["startLine"] - 1]
        assert line[physical["region"]["startColumn"] - 1 :].startswith(result["ruleId"])
        found[result["ruleId"]] = result["level"]
    assert found == {"stops_only_for_pedestrians": "warning", "stops_for_pedestrians": "error"}
    assert run["properties"]["resultSha256"] == hashlib.sha256((made / "run.json").read_bytes()).hexdigest()


def test_the_statement_is_about_matrices_and_model(made, root):
    found = json.loads((made / "run.intoto.json").read_text())
    digests = {each["name"]: each["digest"]["sha256"] for each in found["subject"]}
    assert digests == {
        Path(each).name: hashlib.sha256((root / each).read_bytes()).hexdigest() for each in (CM, MODEL)
    }
    assert found["predicate"]["result"] == "FAILED"
    result = found["predicate"]["configuration"][-1]
    assert result["digest"]["sha256"] == hashlib.sha256((made / "run.json").read_bytes()).hexdigest()
    assert result["annotations"]["command"][:2] == ["verify", "run"]


def test_with_a_source_date_bytes_are_repeated_elsewhere(made, root, tmp_path, monkeypatch, capsys):
    for folder in ("specs", "models", "examples"):
        shutil.copytree(root / folder, tmp_path / "copy" / folder, ignore=shutil.ignore_patterns("*.py"))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    written = []
    for number, home in enumerate((root, tmp_path / "copy")):
        monkeypatch.chdir(home)
        monkeypatch.setenv("HOME", str(home))
        (tmp_path / str(number)).mkdir()
        main(["run", SPEC, "--cm", str(home / CM) if number else CM, *FAST, *outputs(tmp_path / str(number))])
        written.append({name: (tmp_path / str(number) / name).read_bytes() for name in NAMES.values()})
    assert written[0] == written[1]
    timed = {name: (made / name).read_bytes() for name in NAMES.values()}
    assert {name for name in NAMES.values() if written[0][name] != timed[name]} == {"run.xml"}
    assert all(suite.get("time") is None for suite in ET.fromstring(written[0]["run.xml"]).iter())


def test_a_spec_outside_the_folder_is_named_without_its_folders(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main(["run", str(root / SPEC), "--cm", str(root / CM), *FASTEST, "--sarif", "found.sarif"])
    text = Path("found.sarif").read_text()
    assert "car_pedestrian.ltl" in text
    assert str(root) not in text


def test_the_column_is_that_of_the_name(tmp_path, root):
    model = (root / MODEL).as_posix()
    path = tmp_path / "two.ltl"
    path.write_text(
        f'model "{model}"\nplanner published\n\n  // one: P = ?\n  one: P = ? [ F v = 0 ]\ntwo: P = ?[\n F v = 1]\n'
    )
    ends = {"one_min": (5, 3), "one_max": (5, 3), "two_min": (6, 1), "two_max": (6, 1)}
    assert requirement_places(read_spec(path)) == {"one": (5, 3), "two": (6, 1), **ends}


def test_outputs_for_continuous_integration_need_no_further_library(root, tmp_path, monkeypatch):
    monkeypatch.chdir(root)
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    words = ["run", SPEC, "--cm", CM, *FASTEST, "--junit", str(tmp_path / "a.xml")]
    assert main(words) in (ExitCode.SATISFIED, ExitCode.INCONCLUSIVE)
    assert (tmp_path / "a.xml").stat().st_size > 0


def step(workflow, name):
    """The shell lines of a step of a workflow file."""
    lines = workflow.split("\n")
    at = lines.index(f"      - name: {name}")
    assert lines[at + 1] == "        run: |"
    taken = []
    for line in lines[at + 2 :]:
        if not line.startswith(" " * 10):
            break
        taken.append(line)
    return textwrap.dedent("\n".join(taken))


def test_the_example_workflow_runs(root, tmp_path, monkeypatch):
    workflow = (root / "examples" / "ci_workflow.yml").read_text()
    for folder in ("specs", "models", "examples"):
        shutil.copytree(root / folder, tmp_path / folder)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = step(workflow, "Verify")
    assert command.startswith("verify run ")
    done = subprocess.run(
        ["bash", "-e", "-c", command],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "no requirement under 0.999 (confidence bounds): passed" in done.stdout
    assert "no drop by more than 0.01 against nuscenes_yolov3_proposition.json: passed" in done.stdout
    assert {each.name for each in tmp_path.glob("verify.*")} == {
        *("verify.json", "verify.xml", "verify.sarif", "verify.intoto.json")
    }
    assert json.loads((tmp_path / "verify.intoto.json").read_text())["predicate"]["result"] == "PASSED"
    monkeypatch.chdir(tmp_path)
    worse = command.replace("never_stalls_early", "stops_for_pedestrians").replace("\\\n", " ")
    assert main(shlex.split(worse)[1:]) == ExitCode.VIOLATED


def test_every_chain_of_a_sweep_is_a_suite_with_its_time(root, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(root)
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    swept = ["--sweep", "vmax=1..2", "--env", "ped", "--env", "obs", "--requirement", "all_three", "--point-only"]
    main(["run", SPEC, "--cm", CM, *swept, "--junit", str(tmp_path / "a.xml"), "--fail-under", "0.001"])
    suites = ET.parse(tmp_path / "a.xml").getroot().findall("testsuite")
    names = [f"published, {environment} vmax={vmax}" for vmax in (1, 2) for environment in ("ped", "obs")]
    assert [each.get("name") for each in suites] == [*names, "gates"]
    assert all(float(each.get("time")) > 0 for each in suites[:-1])
    assert [each.get("tests") for each in suites] == ["1", "1", "2", "2", "1"]  # vmax=2: two initial speeds


def test_a_hostile_name_of_a_spec_is_written_out(root, tmp_path, monkeypatch, capsys):
    for folder in ("specs", "models"):
        shutil.copytree(root / folder, tmp_path / folder)
    spec = Path("specs") / "a\x1b[2J\u202e<b> {0}](x).ltl"
    monkeypatch.chdir(tmp_path)
    shutil.copy(SPEC, spec)
    main(["run", str(spec), "--cm", str(root / CM), *FASTEST, *outputs(tmp_path)])
    texts = {name: (tmp_path / name).read_text() for name in NAMES.values()}
    assert all(text.isprintable() for text in "".join(texts.values()).split("\n"))
    assert {each.get("classname") for each in ET.fromstring(texts["run.xml"]).iter("testcase")} == {
        "a\\x1b[2J\\u202e<b> {0}](x).published"
    }
    (run,) = json.loads(texts["run.sarif"])["runs"]
    assert run["artifacts"][0]["location"]["uri"] == "specs/a%1B%5B2J%E2%80%AE%3Cb%3E%20%7B0%7D%5D%28x%29.ltl"
    assert json.loads(texts["run.json"])["command"][2] == spec.name  # JSON escapes what it must


COMMANDS = {
    "run": ("-o", "--csv", "--junit", "--sarif", "--in-toto"),
    "explain": ("-o",),
    "require": ("-o", "--csv"),
    "compare": ("-o", "--csv"),
    "robroc": ("-o", "--csv"),
}


@pytest.mark.parametrize(("verb", "option"), [(verb, each) for verb, options in COMMANDS.items() for each in options])
def test_the_model_that_the_spec_names_is_not_overwritten(root, tmp_path, capsys, verb, option):
    for name in (SPEC, MODEL):
        (tmp_path / name).parent.mkdir()
        shutil.copy(root / name, tmp_path / name)
    before = (tmp_path / MODEL).read_bytes()
    (tmp_path / "link").symlink_to(tmp_path / MODEL)
    more = {
        "require": ["--requirement", "stops_for_pedestrians"],
        "robroc": ["--safety", "stops_for_pedestrians", "--progress", "stops_only_for_pedestrians"],
    }.get(verb, [])
    spec = ["--spec"] if verb == "robroc" else []
    cm = str(root / CM) if verb in ("run", "explain", "require") else f"now={root / CM}"
    for target in (MODEL, "link"):
        code = main([verb, *spec, str(tmp_path / SPEC), "--cm", cm, *more, option, str(tmp_path / target)])
        assert (code, "is an input of" in capsys.readouterr().err) == (ExitCode.USAGE, True)
    assert (tmp_path / MODEL).read_bytes() == before


@pytest.mark.parametrize("text", ["nonsense", "", "-1", "1.5", "99999999999999", "\u0663"])
def test_a_source_date_that_is_none_is_refused(root, monkeypatch, capsys, text):
    monkeypatch.chdir(root)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", text)
    assert main(["run", SPEC, "--cm", CM, *FAST]) == ExitCode.USAGE
    assert "SOURCE_DATE_EPOCH: expected seconds since 1970 as a whole number" in capsys.readouterr().err


def test_files_of_one_name_are_two_subjects(root, tmp_path):
    """Model and matrices may have one name in two folders; a statement about one of them would be half of it."""
    for source, target in ((SPEC, SPEC), (MODEL, MODEL), (CM, "matrices/car_pedestrian.toml")):
        (tmp_path / target).parent.mkdir(exist_ok=True)
        shutil.copy(root / source, tmp_path / target)
    path = tmp_path / "statement.json"
    cm = tmp_path / "matrices/car_pedestrian.toml"
    main(["run", str(tmp_path / SPEC), "--cm", str(cm), *FASTEST, "--in-toto", str(path)])
    found = json.loads(path.read_text())
    hashes = {hashlib.sha256((root / name).read_bytes()).hexdigest() for name in (CM, MODEL)}
    assert {each["digest"]["sha256"] for each in found["subject"]} == hashes
    assert len({each["name"] for each in found["subject"]}) == 2
