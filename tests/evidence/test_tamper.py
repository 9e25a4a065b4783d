"""Whatever is done to a bundle is found, and the file is named; what was forged throughout, only by the digest."""

import hashlib
import json
import re
from collections import defaultdict

import numpy as np
import pytest
from forged_bundles import certificate, forged, rewritten
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_bundles import MATRICES, write_inputs, write_trap

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.checksums import with_checksums
from verifier.cli import main
from verifier.evidence.bundle.archive import write_bundle
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.evidence.bundle.check import check_bundle, check_files
from verifier.evidence.bundle.derived_artefacts import derived_row
from verifier.evidence.bundle.manifest import check_hashes, read_manifest
from verifier.study.options import RunOptions

pytestmark = pytest.mark.usefixtures("results_made_once")

FEW = RunOptions(confidence=ConfidenceSettings(draws=500))
CONTEXT = """
[exposure.ped]
encounters = 240
hours = 20
[exposure.empty]
per_hour = 100
"""
RUN = "results/run.json"
MATRICES_FILE = "inputs/matrices/matrices.json"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "case.toml").write_text(CONTEXT)
    return make_bundle(Sources(*write_inputs(folder), folder / "case.toml"), FEW)


def flipped(raw, at):
    return raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]


def with_another_digit(raw):
    """The last digit of the file is another one."""
    at = max(k for k, byte in enumerate(raw) if chr(byte).isdigit())
    return raw[:at] + bytes([(raw[at] - ord("0") + 1) % 10 + ord("0")]) + raw[at + 1 :]


ALTERATIONS = {
    "first byte": lambda raw: flipped(raw, 0),
    "middle byte": lambda raw: flipped(raw, len(raw) // 2),
    "last byte": lambda raw: flipped(raw, len(raw) - 1),
    "one digit": with_another_digit,
    "truncated": lambda raw: raw[:-1],
    "empty": lambda raw: b"",
    "one byte more": lambda raw: raw + b"\n",
    "line endings": lambda raw: raw.replace(b"\n", b"\r\n"),
    "byte order mark": lambda raw: b"\xef\xbb\xbf" + raw,
}


def named(report, path):
    """The findings that name the file; the bundle must not pass."""
    assert not report.sound
    assert report.exit_code == 4
    found = [each for each in report.findings if each.file == path]
    assert found, [str(each) for each in report.findings]
    return found


def test_the_bundle_itself_is_sound(bundle):
    assert check_files("b", bundle.files).findings == ()
    assert any(path.startswith("rates/") for path in bundle.files)
    assert any(path.startswith("report/") for path in bundle.files)
    assert any(path.startswith("case/") for path in bundle.files)


@pytest.mark.parametrize(
    "alteration",
    [
        name if name in ("one digit", "truncated") else pytest.param(name, marks=pytest.mark.slow)
        for name in ALTERATIONS
    ],
)
def test_every_file_altered_in_any_way_is_found_and_named(alteration, bundle):
    manifest = read_manifest(bundle.files["manifest.json"])
    for path, raw in bundle.files.items():
        altered = ALTERATIONS[alteration](raw)
        assert altered != raw, path
        files = {**bundle.files, path: altered}
        if path == "manifest.json" or derived_row(path) is None:
            found = named(check_files("b", files), path)
        else:
            found = check_hashes(files, manifest)
            assert {each.file for each in found} == {path}
        assert str(found[0]).startswith(path)


def test_an_altered_derived_file_is_the_only_one_named_and_the_place_is_told(bundle, request):
    derived = [path for path in bundle.files if derived_row(path) is not None]
    assert len(derived) >= 15
    for path in derived if request.config.getoption("--slow") else derived[::4]:
        report = check_files("b", {**bundle.files, path: with_another_digit(bundle.files[path])})
        assert {each.file for each in named(report, path)} == {path}
        assert all(each.file == path for each in report.findings), path
        assert any(each.where for each in report.findings), path


def test_every_file_removed_added_renamed_or_exchanged_is_found_and_named(bundle):
    paths = sorted(bundle.files)
    manifest = read_manifest(bundle.files["manifest.json"])
    for path, other in zip(paths, [*paths[1:], paths[0]], strict=True):
        rest = {each: raw for each, raw in bundle.files.items() if each != path}
        if derived_row(path) is None or path in ("manifest.json", "trace.csv", "rates/01_stops.json"):
            named(check_files("b", rest), path)
        if path == "manifest.json":
            continue
        assert [each.file for each in check_hashes(rest, manifest)] == [path]
        renamed = check_hashes({**rest, f"{path}.bak": bundle.files[path]}, manifest)
        assert {each.file for each in renamed} == {path, f"{path}.bak"}
        # Chains on which another policy changes nothing have equal certificates.
        equal = [each for each, raw in bundle.files.items() if raw == bundle.files[path]]
        assert any(f"the content of {each}" in one.found for one in renamed for each in equal)
        if other != "manifest.json":
            exchanged = {**bundle.files, path: bundle.files[other], other: bundle.files[path]}
            assert {each.file for each in check_hashes(exchanged, manifest)} == {path, other}
    for added in ("more.txt", "results/another.json", "certificates/block001_requirement01_lower_02.json"):
        named(check_files("b", {**bundle.files, added: bundle.files[RUN]}), added)


def test_one_digit_of_one_count_is_named_with_its_place_and_what_it_was(bundle, tmp_path, capsys):
    raw = bundle.files[MATRICES_FILE]
    files = {**bundle.files, MATRICES_FILE: raw.replace(b"[100, 90]", b"[100, 96]")}
    found = named(check_files("b", files), MATRICES_FILE)
    assert [(each.where, each.found, each.expected) for each in found if each.where] == [
        ("/bins/0/counts/1/1", "96", "90")
    ]
    write_bundle(files, tmp_path / "b.zip")
    assert main(["evidence", "check", str(tmp_path / "b.zip")]) == 4
    out = capsys.readouterr().out
    assert f"WRONG {MATRICES_FILE}: /bins/0/counts/1/1: found 96; expected 90" in out
    assert "files: NOT intact" in out


# What follows is an attacker who knows the format: after each change the hashes are made to fit, so that only what
# the files say can betray it.


def where(report):
    assert not report.sound
    return {(each.file, each.where) for each in report.findings}


def test_a_forgery_of_nothing_is_the_bundle(bundle):
    assert forged(bundle, {}, derive=True) == bundle.files


def test_a_count_that_is_changed_together_with_all_hashes_is_found_by_the_results(bundle):
    altered = bundle.files[MATRICES_FILE].replace(b"90", b"96")
    changes = {MATRICES_FILE: altered}
    report = check_files("b", forged(bundle, changes, derive=True))
    assert (RUN, "/inputs/2/sha256") in where(report)
    # Results that repeat how many items there are are corrected, and name the altered matrices.
    old, new = (hashlib.sha256(raw).hexdigest().encode() for raw in (bundle.files[MATRICES_FILE], altered))
    results = {path: raw for path, raw in bundle.files.items() if path.startswith("results/")}
    for path, raw in results.items():
        text = raw.replace(old, new).replace(b'"items": 500,', b'"items": 506,').decode()
        changes[path] = with_checksums(text).encode()
    report = check_files("b", forged(bundle, changes, derive=True))
    assert (RUN, "/requirements/1/points/1/probability") in where(report)
    proof = "certificates/block002_requirement02_lower_01.json"
    (found,) = [each for each in report.findings if each.file == proof]
    assert (found.where, found.found) == ("/region/columns/0/counts/0/1", "90")
    assert found.expected.startswith("96")


def point(run):
    return run["requirements"][0]["points"][0]


def bounds(run):
    return point(run)["uncertainty"]["confidence_bounds"]


@pytest.mark.every(4)
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda run: point(run).update(probability=0.94), "/points/0/probability"),
        (lambda run: point(run).update(second_engine=0.94), "/points/0/second_engine"),
        (lambda run: point(run).update(lower=0.93), "/points/0/lower"),
        (lambda run: bounds(run).update(lower=0.95), "/lower"),
        (lambda run: bounds(run).update(lower=0.90), "/lower"),
        (lambda run: bounds(run).update(upper=1.0), "/upper"),
        (lambda run: point(run)["uncertainty"].update(level=0.99), "/uncertainty/level"),
        (lambda run: run["requirements"][1].update(verdict="satisfied"), "/requirements/1/verdict"),
        (lambda run: run["requirements"][1]["points"][1].update(verdict="satisfied"), "/points/1/verdict"),
        (lambda run: run["requirements"][1].update(worst=0), "/requirements/1/worst"),
        (lambda run: run.update(verdict="satisfied"), "/verdict"),
        (lambda run: run["engines"].update(largest_difference=1.0), "/engines/largest_difference"),
        (lambda run: run["requirements"][0]["target"].update(probability="1/2"), "/target/probability"),
        (lambda run: run["requirements"][0].update(name="halts"), "/requirements/0/name"),
        (lambda run: run["requirements"][0].update(formula="G (s = 0)"), "/requirements/0/formula"),
        (lambda run: run["requirements"].pop(1), "/requirements/1/name"),
        (lambda run: run["settings"].update(false_positives="ignore"), "/settings/false_positives"),
        (lambda run: run["matrices"].update(items=5000), "/matrices/items"),
    ],
)
def test_a_run_that_says_anything_else_is_found_without_its_hash(change, expected, bundle):
    report = check_files("b", forged(bundle, {RUN: rewritten(bundle.files[RUN], change)}))
    assert any(file == RUN and place.endswith(expected) for file, place in where(report)), where(report)


@pytest.mark.every(2)
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda run: run["steps"][0]["after"].update(x=2), "/steps/0/after"),
        (lambda run: run["initial"].update(x=1), "/initial"),
        (lambda run: run["steps"][0].update(probability="1/3"), "/steps/0/probability"),
        (lambda run: run.update(probability=run["probability"] / 2), "/probability"),
        (lambda run: run.update(replayed="steps"), "/replayed"),
        (lambda run: run["steps"].pop(), ""),
    ],
)
def test_a_counterexample_that_is_none_is_found_by_its_replay(change, expected, bundle):
    def altered(content):
        change(content["explanations"][0]["violation"]["patterns"][0]["members"][0])

    path = "results/explain.json"
    report = check_files("b", forged(bundle, {path: rewritten(bundle.files[path], altered)}))
    at = f"/explanations/0/violation/patterns/0/members/0{expected}"
    assert any(file == path and place.startswith(at) for file, place in where(report)), where(report)


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda lost: lost["causes"][0].update(corrected=0.99), "/causes/0/corrected"),
        (lambda lost: lost["causes"][0].update(probability=lost["causes"][0]["probability"] / 2), "/causes"),
        (lambda lost: lost["causes"][0].update(detection_errors=[]), "/causes/0/detection_errors"),
        (lambda lost: lost["causes"].clear(), "/causes"),
        (lambda lost: lost["detection_errors"][0].update(corrected=0.5), "/detection_errors/0/corrected"),
        (lambda lost: lost["detection_errors"][0].update(bin=9), "/detection_errors/0"),
        (lambda lost: lost["causes"][0].update(detection_errors=[7]), "/causes/0/detection_errors"),
        (lambda lost: lost["corrections"][0].update(corrected=0.5), "/corrections/0/corrected"),
        (lambda lost: lost["patterns"][0].update(steps=[]), "/patterns/0/steps"),
    ],
)
def test_a_cause_that_is_none_is_found(change, expected, bundle):
    path = "results/explain.json"
    raw = rewritten(bundle.files[path], lambda content: change(content["explanations"][0]["violation"]))
    report = check_files("b", forged(bundle, {path: raw}))
    at = f"/explanations/0/violation{expected}"
    assert any(file == path and place.startswith(at) for file, place in where(report)), where(report)


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda each: each["claimed"].__setitem__(0, 0.95), "claims the bound 0.95"),
        (lambda each: each["boxes"][0]["value"].__setitem__(each["subject"]["starts"][0], 0.0), "its best choice"),
        (
            lambda each: each["region"]["columns"][0]["lower"].__setitem__(0, 740_000_000),
            "do not follow from its counts",
        ),
        (lambda each: each["region"]["evidence"].update(alpha="1/2"), "1/20"),
        (lambda each: each["region"]["evidence"].update(events=1), "as the inputs give it"),
        (lambda each: each["region"]["columns"][0]["counts"][0].__setitem__(0, 3000), "300, as the inputs give it"),
        (lambda each: each["region"].update(evidence=None), "as the inputs give it"),
        (lambda each: each["subject"].update(formula="G p0"), "as the inputs give it"),
        (lambda each: each["subject"]["starts"].__setitem__(0, 1), "as the inputs give it"),
        (lambda each: each["subject"]["following"][-1].__setitem__(0, 1), "as the inputs give it"),
    ],
)
def test_a_certificate_that_proves_something_else_is_found(change, match, bundle):
    changes = certificate(bundle, change)
    report = check_files("b", forged(bundle, changes))
    (path,) = changes
    assert any(each.file == path and match in str(each) for each in report.findings), list(map(str, report.findings))


@pytest.mark.usefixtures("made_anew")
def test_a_trap_about_which_the_solver_lied_is_refused(tmp_path, monkeypatch):
    """P = 0 for every matrix with misses; the lie is that who goes round forever comes to stand still."""
    inputs = write_trap(tmp_path)
    honest = make_bundle(Sources(*inputs), FEW)
    assert bounds(json.loads(honest.files[RUN]))["lower"] == 0
    report = check_files("b", honest.files)
    assert report.findings == ()
    # Two bounds, in the run and under two other rules for verdicts; four numbers of a point there, under two other
    # policies, and at three recalls.
    assert report.numbers.proven == 2 * 3 + 4 * (5 + 3)
    monkeypatch.setattr("verifier.analysis.robust.graph.recurrences", lambda *given: None)
    monkeypatch.setattr("verifier.analysis.robust.graph._other_value", lambda *given: ({}, 0))
    monkeypatch.setattr("verifier.analysis.robust.graph.component_values", lambda *given: np.array([True]))
    monkeypatch.setattr("verifier.analysis.robust.staying.Provable.__call__", lambda *given: True)
    monkeypatch.setattr("verifier.analysis.robust.solutions._refuse_outside", lambda *given: None)
    monkeypatch.setattr("verifier.evidence.consistency.CHECKS", defaultdict(lambda: lambda document: iter(())))
    made = make_bundle(Sources(*inputs), FEW)
    monkeypatch.undo()
    assert bounds(json.loads(made.files[RUN]))["lower"] == 1
    report = check_files("b", made.files)
    path = "certificates/block001_requirement01_lower_01.json"
    assert report.exit_code == 4
    (finding,) = [finding for finding in report.findings if finding.file == path]
    assert finding.where == "/boxes/0, state 0"
    assert finding.found == "who stays in the component may decide against the bound"


def test_rates_fixed_by_convention_are_those_of_the_inputs(tmp_path):
    """Where nothing is ever reported, the column "empty" is a convention of counting."""
    without = {
        **MATRICES, "bins": [{"distance_m": [0, 10], "counts": [[300, 0], [100, 90]]}], "false_positives": "dropped"
    }  # fmt: skip
    made = make_bundle(Sources(*write_inputs(tmp_path, matrices=without)), FEW)
    assert check_files("b", made.files).sound
    path = "certificates/block002_requirement01_lower_01.json"

    def other(content):
        (column,) = (each for each in content["region"]["columns"] if each["true"] == 1)
        assert column["counts"] is None
        assert column["lower"] == column["upper"] == [0, 10**9]
        column["lower"] = column["upper"] = [10**9, 0]

    report = check_files("b", forged(made, certificate(made, other, path)))
    assert any(each.file == path and "/lower" in each.where for each in report.findings)


def test_certificates_that_are_missing_exchanged_or_doubled_are_found(bundle):
    first, other = (f"certificates/block001_requirement0{k}_lower_01.json" for k in (1, 3))
    report = check_files("b", forged(bundle, {}, removed=[first]))
    assert (RUN, "/requirements/0/points/0/uncertainty/confidence_bounds/lower") in where(report)
    exchanged = {first: bundle.files[other], other: bundle.files[first]}
    assert {file for file, _ in where(check_files("b", forged(bundle, exchanged)))} >= {first, other}
    second = first.replace("_01.json", "_02.json")
    report = check_files("b", forged(bundle, {second: bundle.files[first]}))
    assert (second, "/claimed/0") in where(report)


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda each: each["claimed"].__setitem__(0, 0.95), "claims the bound 0.95"),
        (lambda each: each["boxes"][0]["value"].__setitem__(each["subject"]["starts"][0], 0), "its best choice"),
        (lambda each: each["boxes"][0].update(unit=2**129), "without any probability"),
        (lambda each: each["region"]["columns"][0].update(unit=5), "4, as the inputs give it"),
        (lambda each: each["region"]["columns"][0]["lower"].__setitem__(0, 2), "3, as the inputs give it"),
        (lambda each: each["subject"]["following"][-1].__setitem__(0, 1), "as the inputs give it"),
        (lambda each: each["subject"]["formula"][0].__setitem__(0, "fails"), "as the inputs give it"),
        (lambda each: each.update(side="upper"), ""),
    ],
)
def test_a_certificate_of_a_probability_that_proves_something_else_is_found(change, match, bundle):
    path = "certificates/block001_requirement01_point_lower_01.json"
    report = check_files("b", forged(bundle, certificate(bundle, change, path)))
    assert any(each.file == path and match in str(each) for each in report.findings), list(map(str, report.findings))


@pytest.mark.every(2)
@pytest.mark.parametrize(
    "path",
    [
        "certificates/block001_requirement01_point_lower_01.json",
        "certificates/false_positives_ignore-block002_requirement03_point_upper_01.json",
        "certificates/require01_answer01_perfect-block001_requirement01_point_upper_01.json",
    ],
)
def test_a_certificate_of_a_probability_that_is_missing_or_stands_elsewhere_is_found(path, bundle):
    assert (path, "") in where(check_files("b", forged(bundle, {}, removed=[path])))
    for elsewhere in ("answer01", "answer07"), ("block00", "block01"), ("ignore", "other"), ("_01.json", "_02.json"):
        other = path.replace(*elsewhere)
        if other != path:
            assert (other, "") in where(check_files("b", forged(bundle, {other: bundle.files[path]})))


@pytest.mark.every(4)
@pytest.mark.parametrize("point", ["measured", "at_value", "perfect"])
@pytest.mark.parametrize("name", ["probability", "lower", "second_engine"])
def test_another_probability_in_an_answer_about_recall_is_found(point, name, bundle):
    path = "results/require/01_stops.json"

    def altered(content):
        content["answers"][0][point][name] -= 0.01

    report = check_files("b", forged(bundle, {path: rewritten(bundle.files[path], altered)}))
    assert any(file == path and f"/{point}" in place for file, place in where(report)), where(report)


def test_what_only_repeating_everything_can_find_is_found_then(bundle):
    def narrowed(run):
        interval = run["requirements"][0]["points"][0]["uncertainty"]["interval"]
        interval.update(lower=0.93, lower_range=[0.93, 0.93])

    path = "results/require/01_stops.json"
    document = {"schema": "verifier.omitted", "version": 1, "omitted": [{"path": path, "reason": "no need"}]}
    pretext = {"results/omitted.json": (json.dumps(document, indent=2) + "\n").encode()}
    files = forged(bundle, {RUN: rewritten(bundle.files[RUN], narrowed), **pretext}, removed=[path], derive=True)
    lenient = where(check_files("b", files))
    assert any(file.startswith("results/") and "uncertainty/interval" in place for file, place in lenient)
    assert (path, "") not in lenient
    report = check_files("b", files, recompute=True)
    assert (RUN, "/requirements/0/points/0/uncertainty/interval/lower") in where(report)
    assert (path, "") in where(report)


def test_reasons_for_leaving_out_what_is_not_left_out_are_found(bundle):
    paths = ("results/require/09_other.json", "certificates/block001_requirement01", "certificates/block009")
    omitted = [{"path": path, "reason": "why not"} for path in paths]
    document = {"schema": "verifier.omitted", "version": 1, "omitted": omitted}
    raw = (json.dumps(document, indent=2) + "\n").encode()
    report = check_files("b", forged(bundle, {"results/omitted.json": raw}))
    for path in paths:
        assert any(each.file == "results/omitted.json" and path in each.found for each in report.findings)


def test_a_result_cannot_be_left_out_silently(bundle):
    path = "results/require/01_stops.json"
    report = check_files("b", forged(bundle, {}, removed=[path]))
    assert (path, "") in where(report)


def test_a_whole_bundle_about_other_inputs_is_sound_and_the_digest_tells_it_apart(bundle, tmp_path, capsys):
    better = {**MATRICES, "bins": [{"distance_m": [0, 10], "counts": [[400, 0], [0, 1000]]}]}
    other = make_bundle(Sources(*write_inputs(tmp_path, matrices=better)), FEW)
    assert other.verdict == "satisfied"
    write_bundle(other.files, tmp_path / "b.zip")
    report = check_bundle(tmp_path / "b.zip")
    assert report.sound
    assert any("authenticity" in each for each in report.unchecked)
    assert main(["evidence", "check", str(tmp_path / "b.zip"), "--digest", bundle.digest]) == 4
    assert f"expected {bundle.digest}, the digest demanded" in capsys.readouterr().out
    assert main(["evidence", "check", str(tmp_path / "b.zip"), "--digest", other.digest.upper()]) == 0
    assert "authenticity" not in capsys.readouterr().out


def test_our_own_contradiction_is_no_tampering(bundle, monkeypatch):
    def wrong(run):
        run["requirements"][0]["points"][0].update(second_engine=0.94)

    files = forged(bundle, {RUN: rewritten(bundle.files[RUN], wrong)})
    digest = hashlib.sha256(files["manifest.json"]).hexdigest()
    assert check_files("b", files).exit_code == 4
    assert check_files("b", files, digest).exit_code == 5  # these are the files that were vouched for
    altered = {**bundle.files, "trace.csv": b""}
    assert check_files("b", altered, bundle.digest).exit_code == 4  # and this one is not


def test_a_bundle_of_another_version_says_so(bundle):
    manifest = json.loads(bundle.files["manifest.json"])
    del manifest["content_sha256"]
    manifest["verifier"] = "9.9"
    told = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    manifest["content_sha256"] = hashlib.sha256(told.encode()).hexdigest()
    raw = (json.dumps(manifest, indent=2) + "\n").encode()
    found = named(check_files("b", {**bundle.files, "manifest.json": raw}), "manifest.json")
    assert any("check it with the version named" in each.expected for each in found)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_flipped_bytes_of_any_input_or_result_are_found(data, bundle):
    path = data.draw(st.sampled_from(sorted(path for path in bundle.files if derived_row(path) is None)))
    raw = bytearray(bundle.files[path])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at] ^= data.draw(st.integers(1, 255))
    if bytes(raw) != bundle.files[path]:
        named(check_files("b", {**bundle.files, path: bytes(raw)}), path)


def test_findings_are_single_lines_whatever_a_file_holds(bundle, tmp_path, capsys):
    hostile = b'{"\\u202e\\n\x1b[2J": "</script>"}'
    write_bundle({**bundle.files, "request.json": hostile}, tmp_path / "b.zip")
    assert main(["evidence", "check", str(tmp_path / "b.zip")]) == 4
    lines = capsys.readouterr().out.splitlines()
    begin = r"(b\.zip|files: |WRONG|checked|not checked|verdict|\d+ finding|the bundle)"
    assert all(re.match(begin, line) for line in lines)
    assert not any(character in line for line in lines for character in "\x1b\u202e")
