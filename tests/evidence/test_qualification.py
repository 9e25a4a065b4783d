"""The tool qualification kit: no gaps, a suite that finds faults, a report that says what ran, and known problems."""

import copy
import json
from fractions import Fraction
from pathlib import Path

import pytest
from html_reading import read_page

from verifier.base.errors import ExitCode
from verifier.base.libraries import __version__
from verifier.cli import main
from verifier.cli.verbs import VERBS
from verifier.evidence import identity
from verifier.evidence.qualification.generated import CHECKS
from verifier.evidence.qualification.kit import (
    GUIDE_WORDS,
    QualificationResult,
    SuiteRecord,
    gaps,
    kit_tables,
    listed_versions,
    problems_of,
    value_at,
)
from verifier.evidence.qualification.pages import kit_page
from verifier.evidence.qualification.suite import FAULTS, Bench, DepartureError, compare
from verifier.telling.markdown import markdown_text

TESTS = {each["id"]: each for each in kit_tables()["test"]}
QUICK = ("T-check-1", "T-read-3", "T-bounds-2", "T-rate-4", "T-collision-1", "T-images-3", "T-service-1")


@pytest.fixture
def bench():
    return Bench(main, kit_tables(), CHECKS)


def result(*tests, **more):
    record = {"requirement": "R-check-1", "method": "m", "about": "a", "told": ""}
    found = [
        SuiteRecord(id=f"T-{k}", feature=feature, state=state, **record) for k, (feature, state) in enumerate(tests)
    ]
    plain = {"platform": "p", "day": "2026-05-04", "by": "", "asil": None, "kit": "0" * 64, "whole": True, "gaps": ()}
    return QualificationResult(tool=identity.tool_identity(), tests=tuple(found), **plain | more)


def test_the_kit_of_this_version_has_no_gaps():
    assert list(gaps(kit_tables(), VERBS)) == []
    assert {each["check"] for each in TESTS.values() if "check" in each} == set(CHECKS)
    assert all(set(fault.found_by) <= set(TESTS) for fault in FAULTS)
    assert all(each["versions"] for each in kit_tables()["problem"])


def broken(change):
    tables = copy.deepcopy(dict(kit_tables()))
    change(tables)
    return list(gaps(tables, VERBS))


def of(tables, kind, name):
    return next(each for each in tables[kind] if each["id"] == name)


@pytest.mark.parametrize("word", GUIDE_WORDS)
def test_a_feature_without_a_hazard_line_fails_the_release(word):
    assert broken(lambda t: of(t, "feature", "bounds")["hazards"].pop(word)) == [
        f"feature bounds: no hazard line '{word}'"
    ]


def test_a_feature_or_use_case_that_leads_nowhere_fails_the_release():
    def without_test(tables):
        tables["test"] = [each for each in tables["test"] if each["requirement"] != "R-memory-1"]

    def in_no_use_case(tables):
        for each in tables["use_case"]:
            each["features"] = [name for name in each["features"] if name != "rates"]

    assert broken(without_test) == ["requirement R-memory-1: no test"]
    assert broken(lambda t: of(t, "feature", "rates").pop("used")) == ["feature rates: no query for known problems"]
    assert broken(lambda t: of(t, "use_case", "U6").update(features=[])) == [
        "use case U6: without feature, or with an unknown one", "feature bounds: in no use case",
    ][::-1]  # fmt: skip
    assert "feature rates: in no use case" in broken(in_no_use_case)
    assert broken(lambda t: of(t, "use_case", "U6").update(tcl=1)) == ["use case U6: TCL 1, by TI and TD 3"]
    assert broken(lambda t: of(t, "problem", "KP-3").update(workaround="")) == [
        "known problem KP-3: without query, effect or workaround"
    ]
    assert broken(lambda t: of(t, "feature", "compare").update(commands=[])) == ["command compare: in no feature"]
    assert list(gaps(kit_tables(), [*VERBS, "fly"])) == ["command fly: in no feature"]


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(each, marks=pytest.mark.slow) for each in TESTS
                                            if each not in QUICK)])  # fmt: skip
def test_the_suite_passes(name, bench):
    found = bench.record(TESTS[name])
    assert (found.state, found.told) in {("passed", ""), ("not run", found.told)}
    # Nothing but the list of an installer may be missing where the whole suite of tests is installed.
    assert found.state == "passed" or name == "T-service-4"


@pytest.mark.slow
def test_every_command_is_run_by_a_test_of_its_feature(bench):
    """What a row of the kit says is tested: with the commands that are typed, whatever the row says."""
    typed = []
    recording = Bench(lambda words: typed.append(" ".join(words)) or main(words), kit_tables(), CHECKS)
    for feature in kit_tables()["feature"]:
        del typed[:]
        for each in TESTS.values():
            if each["requirement"] in feature["requirements"] and each.get("check") != "seeded_faults":
                recording.record(each)
        untried = [name for name in feature["commands"] if not any(words.startswith(name) for words in typed)]
        # What init writes is run by tests of other features, and qualify is what runs all of them.
        assert untried == (["init", "qualify"] if feature["id"] == "service" else [])


@pytest.mark.parametrize("about", ["binomial ends two per cent too high", "no evidence against an indicator"])
def test_a_fault_in_the_program_is_found_and_gone_again(about, bench):
    (fault,) = [each for each in FAULTS if each.about == about]
    for name in fault.found_by:
        with fault.put_in():
            assert bench.record(TESTS[name]).state == "failed"
        assert bench.record(TESTS[name]).state == "passed"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda each: each.about)
def test_every_fault_has_its_place_in_the_program(fault):
    """Functions move; what puts the fault in finds them where they are called."""
    with fault.put_in():
        pass


@pytest.mark.parametrize(
    ("found", "expected", "fits"),
    [
        (0.9375, {"value": "15/16", "within": 0}, True),
        (0.9376, {"value": "15/16", "within": 1e-5}, False),
        (0.93751, {"value": "15/16", "within": 1e-4, "side": "below"}, False),
        (0.93749, {"value": "15/16", "within": 1e-4, "side": "above"}, False),
        ("0.683773", {"value": "0.683772", "within": 2e-6, "side": "above"}, True),
        (None, {"value": "1", "within": 1}, False),
        (float("nan"), {"value": "1", "within": 1}, False),
        ([[1, 0]], {"value": "[[1, 0]]"}, True),
        ("satisfied", {"value": "violated"}, False),
    ],
)
def test_what_is_expected_of_a_value(found, expected, fits):
    try:
        compare(found, {"path": "/p", **expected})
    except DepartureError:
        assert not fits
    else:
        assert fits


def test_bounds_of_the_suite_are_those_of_the_binomial():
    """The number that T-bounds-1 expects, with as many digits as fractions give: l = 0.0125^(1/400)."""
    (expected,) = [each for each in TESTS["T-bounds-1"]["expect"] if each.get("side")]
    low, high = Fraction(0), Fraction(1)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if middle**400 <= Fraction(1, 80) else (low, middle)
    assert abs(1 - (1 - low) ** 2 - Fraction(expected["value"])) < Fraction(1, 10**15)


def test_the_command_writes_report_and_kit_and_says_what_was_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["--test", "T-read-3", "--test", "T-service-1", "--by", "N. N.", "--asil", "D", "--kit", "kit.html"]
    assert main(["qualify", *words, "-o", "q.json"]) == ExitCode.INCONCLUSIVE  # not the whole suite
    assert "2 features partly run" in capsys.readouterr().out
    content = json.loads((tmp_path / "q.json").read_text())
    assert [each["state"] for each in content["tests"]] == ["passed", "passed"]
    assert (content["by"], content["asil"], content["whole"], content["gaps"]) == ("N. N.", "D", False, [])
    page = read_page((tmp_path / "kit.html").read_text())
    text = (tmp_path / "kit.html").read_text()
    assert page is not None
    for number in range(1, 12):
        assert f">{number} " in text
    assert "N. N." in text
    assert "T-read-3 (passed)" in text
    assert "T-check-1 (not asked for)" in text


def test_whatever_does_not_pass_is_told_with_its_features():
    done = result(("check", "passed"), ("read", "passed"))
    assert (done.exit_code, done.features) == (ExitCode.SATISFIED, {"check": "passed", "read": "passed"})
    assert result(("check", "passed"), ("check", "not run")).exit_code == ExitCode.INCONCLUSIVE
    failed = result(("check", "passed"), ("check", "not run"), ("check", "failed"))
    assert (failed.exit_code, failed.features) == (ExitCode.VIOLATED, {"check": "failed"})
    assert result(("check", "passed"), gaps=("g",)).exit_code == ExitCode.VIOLATED
    assert result(("check", "passed"), whole=False).exit_code == ExitCode.INCONCLUSIVE
    text = markdown_text(kit_page(failed, kit_tables()))
    assert "Not qualified in this environment: check" in text
    assert "not stated" in text
    assert "Not claimed: no log of use is kept" in text


def test_an_internal_error_of_the_program_is_a_failed_test(bench):
    found = bench.record({**TESTS["T-service-1"], "check": "no such check"})
    assert (found.state, found.told) == ("failed", "KeyError: 'no such check'")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["qualify", "--test", "T-check"], ExitCode.USAGE, "unknown test 'T-check'"),
        (["qualify", "--kit", "kit.pdf"], ExitCode.USAGE, "--kit: expected a file name ending in .html, .md"),
        (["qualify", "--asil", "E"], ExitCode.USAGE, "invalid choice: 'E'"),
        (["known-problems", "nowhere.json"], ExitCode.BAD_INPUT, "nowhere.json"),
        (["known-problems", "list.json"], ExitCode.BAD_INPUT, "expected a bundle, or a document of this program"),
        (["known-problems", "empty"], ExitCode.BAD_INPUT, "empty"),
    ],
)
def test_what_does_not_fit_is_refused(words, code, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("list.json").write_text("[]")
    Path("empty").mkdir()
    try:
        found = main(words)
    except SystemExit as stop:
        found = stop.code
    assert found == code
    assert said in capsys.readouterr().err


def document(path, schema, version=__version__, **content):
    path.write_text(json.dumps({"schema": schema, "versions": {"verifier": version}, **content}))
    return str(path)


def test_known_problems_are_those_of_what_was_used_in_this_version(tmp_path):
    path = tmp_path / "r.json"
    run = {"settings": {"confidence": {"bounds": {"tier": "independent_items"}}}}
    drives = {"settings": {"confidence": {"bounds": {"tier": "independent_drives"}}}}

    def ids(*words, **content):
        return {each["id"] for each in problems_of(document(path, *words, **content))[0]}

    of_run = ids("verifier.run", **run)
    assert ids("verifier.run", **drives) == of_run - {"KP-8"} < of_run
    assert ids("verifier.run", version="9.9.9", **run) == set()
    assert ids("verifier.collision") == {"KP-6"}
    own_bin = ids("verifier.confusion", matching={"unmatched": "own_bin"})
    assert ids("verifier.confusion", matching={"unmatched": "drop"}) == own_bin - {"KP-3"} < own_bin
    before = ids("verifier.confusion", version="0.1.0.dev1", matching={"unmatched": "own_bin"})
    assert (before - own_bin, own_bin - before) == ({"KP-7"}, {"KP-9"})
    for matching in ({"unmatched": "own_bin"}, {"unmatched": "drop"}):
        of_counts = ids("verifier.confusion", matching=matching)
        assert ids("verifier.run", **run, matrices={"matching": matching}) == of_run | of_counts > of_run
    assert (
        ids("verifier.run", **run, matrices={"labelling": "class"}) == of_run
    )  # nobody counted them with this program


@pytest.mark.parametrize("version", ["9.9.9", "0.0.7"])
def test_of_a_version_without_a_list_nothing_is_said_to_be_fine(version, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    document(tmp_path / "r.json", "verifier.qualification", version=version)
    assert main(["known-problems", "r.json", "-o", "told.json"]) == ExitCode.INCONCLUSIVE
    said = capsys.readouterr().out
    assert f"no list of the problems of version {version}" in said
    assert "no known problem" not in said
    assert json.loads((tmp_path / "told.json").read_text())["unlisted"] == [version]


def test_the_list_knows_this_version_and_each_release(root):
    assert {__version__, *(path.stem for path in (root / "tests/data/releases").glob("*.zip"))} <= listed_versions()


def test_a_feature_of_which_not_all_tests_ran_is_not_said_to_have_passed(capsys):
    assert main(["qualify", "--test", "T-service-1"]) == ExitCode.INCONCLUSIVE
    said = capsys.readouterr().out
    assert "1 feature partly run" in said
    assert "Not qualified in this environment: service" in said


def test_a_pointer_that_leads_nowhere_gives_nothing():
    content = {"a": [{"b": 1}]}
    found = [value_at(content, pointer) for pointer in ("/a/0/b", "/a/1/b", "/a/x", "/a/0/b/c", "")]
    assert found == [1, None, None, None, content]


def test_installed_files_are_compared_with_the_list_of_the_installer(tmp_path, monkeypatch):
    """A distribution as an installer leaves it, then with a file altered, one more and one less."""
    package, info = tmp_path / "verifier", tmp_path / "verify_perception-1.dist-info"
    for folder in (package / "evidence", info):
        folder.mkdir(parents=True)
    own = package / "evidence/identity.py"
    for file in (own, package / "a.py", package / "b.py"):
        file.write_text(file.name)
    files = sorted(path for path in package.rglob("*.py"))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: verify-perception\nVersion: 1\n")
    rows = [
        f"{path.relative_to(tmp_path)},sha256={identity._recorded_mark(path)},{path.stat().st_size}" for path in files
    ]
    (info / "RECORD").write_text("\n".join([*rows, f"{info.name}/RECORD,,", ""]))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(identity, "_PACKAGE", package)
    assert identity.installed_differences() is None  # this module is another file than the recorded one
    monkeypatch.setattr(identity, "__file__", str(own))
    assert identity.installed_differences() == ()
    (package / "a.py").write_text("altered")
    (package / "c.py").write_text("more")
    (package / "b.py").unlink()
    assert identity.installed_differences() == ("a.py", "b.py", "c.py")
