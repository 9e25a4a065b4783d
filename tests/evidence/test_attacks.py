"""Lies that fit together, told by somebody who knows the code, and hostile files: what a plain check finds."""

import errno
import json
import re
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from forged_bundles import forged, rewritten
from small_bundles import MATRICES, write_inputs

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.errors import InputError, LimitError, UsageError
from verifier.cli import main
from verifier.cli.terminal import progress_bar
from verifier.evidence.bundle import build as building
from verifier.evidence.bundle import contents
from verifier.evidence.bundle.archive import read_bundle, write_bundle, zip_bytes
from verifier.evidence.bundle.build import Sources, build_bundle, make_bundle
from verifier.evidence.bundle.check import check_bundle, check_files
from verifier.evidence.bundle.making import Planned
from verifier.pipeline import check_case
from verifier.study.options import RunOptions

pytestmark = pytest.mark.usefixtures("results_made_once")

FEW = RunOptions(confidence=ConfidenceSettings(draws=500))
RUN, EXPLAIN, REQUIRE = "results/run.json", "results/explain.json", "results/require/01_stops.json"
OTHER = "results/alternatives/false_positives_ignore.json"
# 9 of 10 pedestrians seen: 1 - 1/100 by the point, and 20 of them settle nothing.
THIN = {**MATRICES, "bins": [{"distance_m": [0, 10], "counts": [[18, 0], [2, 20]]}]}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return make_bundle(Sources(*write_inputs(tmp_path_factory.mktemp("inputs"), matrices=THIN)), FEW)


@pytest.fixture(scope="module")
def sound(bundle):
    """What a check says of it."""
    report = check_files("b", bundle.files)
    assert report.sound
    return report


SAME_NUMBERS = [RUN, EXPLAIN, *(f"results/alternatives/verdict_from_{each}.json" for each in ("interval", "point"))]


def first(explanations):
    return explanations["explanations"][0]


def violation(explanations):
    return first(explanations)["violation"]


def wider(run):
    point = first(run)["point"] if "explanations" in run else run["requirements"][0]["points"][0]
    interval = point["uncertainty"]["interval"]
    interval.update(lower=0.99 * interval["lower"], lower_range=[0.99 * end for end in interval["lower_range"]])


def found_in(report):
    assert not report.sound
    return {(each.file, each.where) for each in report.findings}


def edited(bundle, paths, change):
    """The bundle with one change to several of its results."""
    return forged(bundle, {path: rewritten(bundle.files[path], change) for path in paths})


def without_bounds(content):
    """What a run without intervals and confidence bounds would say: verdicts by the point."""
    for each in content["requirements"]:
        each.pop("additional_data", None)
        for point in each["points"]:
            del point["uncertainty"]
            if each["target"] is not None:
                met = point["probability"] >= 0.9
                point["verdict"] = "satisfied" if met else "violated"
        if each["target"] is not None:
            each["verdict"] = min((point["verdict"] for point in each["points"]), key="violated satisfied".index)


def test_a_verdict_cannot_be_had_by_leaving_out_the_bounds_that_decide_it(bundle):
    assert json.loads(bundle.files[RUN])["requirements"][0]["verdict"] == "inconclusive"
    found = found_in(check_files("b", edited(bundle, [RUN, OTHER], without_bounds)))
    assert {(path, "/requirements/0/points/0/uncertainty") for path in (RUN, OTHER)} <= found


def test_an_exact_value_that_nobody_asked_for_decides_nothing(bundle):
    def with_fraction(content):
        content["requirements"][0]["points"][0]["exact"] = "99/100"

    assert (RUN, "/requirements/0/points/0/exact") in found_in(check_files("b", edited(bundle, [RUN], with_fraction)))


def test_a_remark_that_a_doubt_follows_from_cannot_be_left_out(tmp_path):
    matrices = {**THIN, "bins": [{"distance_m": [0, 10], "counts": [[18, 0], [2, 20]]}], "false_positives": "dropped"}
    built = make_bundle(Sources(*write_inputs(tmp_path, matrices=matrices)), FEW)
    assert "false positives not modelled" in built.files["trace.csv"].decode()

    def silent(content):
        content["remarks"] = [each for each in content["remarks"] if "no false positives" not in each]

    runs = [path for path in built.files if path in (RUN, EXPLAIN) or path.startswith("results/alternatives/")]
    report = check_files("b", edited(built, runs, silent))
    assert (RUN, "/remarks") in found_in(report)
    assert any("unmatched detections" in each.expected for each in report.findings)


def test_a_remark_that_does_not_follow_from_the_inputs_is_said_not_to_be_checked(bundle, sound):
    def added(content):
        content["remarks"].append("Storm was in good form")

    report = check_files("b", edited(bundle, [RUN, EXPLAIN], added))
    known = re.compile(f"(?P<count>[0-9]+) remarks of {RUN}, which only the model checker")
    (before,), (after,) = (
        [int(found["count"]) for each in listed if (found := known.match(each))]
        for listed in (sound.unchecked, report.unchecked)
    )
    assert after == before + 1


TOLD = [RUN, EXPLAIN, REQUIRE, OTHER]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda each: each.update(title="somebody else's matrices"), "/title"),
        (lambda each: each["versions"].pop("storm"), "/versions/"),
        (lambda each: each["versions"].update(verifier="9.9"), "/versions/verifier"),
        (lambda each: each.update(command=["verify", "run", "--level", "0.999"]), "/command"),
    ],
)
def test_what_stands_around_the_numbers_must_be_right_in_every_result(change, where, bundle):
    found = found_in(check_files("b", edited(bundle, TOLD, change)))
    assert {*TOLD} <= {file for file, place in found if place.startswith(where)}, found


@pytest.mark.every(3)
@pytest.mark.parametrize("path", TOLD)
def test_a_result_that_leaves_out_a_setting_is_refused(path, bundle):
    found = found_in(check_files("b", edited(bundle, [path], lambda each: each["settings"].pop("initial"))))
    assert any(file == path and place.startswith("/settings") for file, place in found), found


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda each, point: each["channel"].update(test="not_contradicted", classes=[]), "/channel"),
        (lambda each, point: each["settings"].update(strict=True), "/settings/strict"),
        (
            lambda each, point: each["settings"]["confidence"]["bounds"].update(conditional=False),
            "/settings/confidence",
        ),
        (lambda each, point: point.update(draws=[]), "/requirements/0/points/0/draws"),
        (lambda each, point: point.update(whatever_predicted=1), "/requirements/0/points/0/whatever_predicted"),
        (lambda each, point: point.update(condition="if the moon is full"), "/requirements/0/points/0/condition"),
        (lambda each, point: point.update(basis="any_dependence"), "/requirements/0/points/0/basis"),
        (
            lambda each, point: point.update(vacuity=[{"kind": "ended", "text": "over"}]),
            "/requirements/0/points/0/vacuity",
        ),
    ],
    ids=["channel", "strict", "conditional", "draws", "whatever", "condition", "basis", "vacuity"],
)
def test_what_a_verdict_rests_on_must_follow_from_the_inputs(change, where, bundle):
    """Otherwise a conditional verdict could be shown as one without a condition."""

    def changed(content):
        change(content, content["requirements"][0]["points"][0])

    report = check_files("b", edited(bundle, [RUN], changed))
    assert any(file == RUN and place.startswith(where) for file, place in found_in(report)), found_in(report)


def test_gates_that_nobody_set_are_no_part_of_a_run(bundle):
    def gated(content):
        entry = {"requirement": "stops", "planner": "careful", "scenario": "ped", "value": 0.99, "failed": False}
        entry |= {"condition": None, "reason": ""}
        floor = {"least": "0.9", "from": "point", "failed": False, "requirements": [entry]}
        content["gates"] = {"fail_under": floor}

    assert (RUN, "/gates") in found_in(check_files("b", edited(bundle, [RUN], gated)))


@pytest.mark.parametrize("raw", [lambda raw: raw + b" ", lambda raw: b"\xef\xbb\xbf" + raw, lambda raw: b" " + raw])
def test_a_result_in_other_bytes_hides_nothing(raw, bundle):
    report = check_files("b", forged(bundle, {path: raw(bundle.files[path]) for path in TOLD}))
    assert {each.file for each in report.findings if "other bytes" in each.found} == {*TOLD}


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("path", "change", "where"),
    [
        (EXPLAIN, lambda each: each["remarks"].pop(), "/remarks/"),
        (EXPLAIN, lambda each: each["engines"].update(reported="oracle"), "/engines/reported"),
        (EXPLAIN, lambda each: each["labels"].reverse(), "/labels/0"),
        (EXPLAIN, lambda each: each["bins"].pop(), "/bins"),
        (EXPLAIN, lambda each: first(each).pop("additional_data"), "/explanations/0/additional_data"),
        (EXPLAIN, lambda each: violation(each)["patterns"].clear(), "/explanations/0/violation"),
        (EXPLAIN, lambda each: violation(each).update(covered=0.5), "/explanations/0/violation"),
        (EXPLAIN, lambda each: violation(each).update(error=0), "/explanations/0/violation/err"),
        (EXPLAIN, lambda each: violation(each).update(probability=0.5), "/explanations/0/violation/probability"),
        (
            EXPLAIN,
            lambda each: violation(each)["patterns"][0].update(share=0.01),
            "/explanations/0/violation/patterns/0/share",
        ),
        (REQUIRE, lambda each: each["answers"].clear(), "/answers"),
        (REQUIRE, lambda each: each["answers"][0].update(planner="bold"), "/answers/0/planner"),
        (REQUIRE, lambda each: each["answers"][0]["measured"].update(probability=0.98), "/answers/0/measured"),
        (REQUIRE, lambda each: each["versions"].update(numpy="0.1"), "/versions/numpy"),
        (REQUIRE, lambda each: each["settings"].update(initial_context="worst"), "/settings/initial_context"),
        (REQUIRE, lambda each: each["settings"].update(memory=None), "/settings/memory"),  # as nobody writes it
    ],
)
def test_explanations_and_required_recalls_must_fit_the_run(path, change, where, bundle):
    report = check_files("b", edited(bundle, [path], change))
    assert any(file == path and place.startswith(where) for file, place in found_in(report)), found_in(report)


def test_a_run_by_another_source_of_verdicts_has_the_numbers_of_the_run(bundle):
    path = "results/alternatives/verdict_from_interval.json"

    def narrowed(content):
        content["requirements"][1]["points"][0]["uncertainty"]["interval"].update(upper_range=[0.5, 0.51])

    def older(content):
        content["versions"]["scipy"] = "0.1"

    changes = {path: narrowed, OTHER: older}
    files = forged(bundle, {name: rewritten(bundle.files[name], change) for name, change in changes.items()})
    place = (path, "/requirements/1/points/0/uncertainty/interval/upper_range/1")
    assert {place, (OTHER, "/versions/scipy")} <= found_in(check_files("b", files))


def test_the_text_says_what_verdicts_rest_on_that_were_not_checked(bundle, sound):
    told = "\n".join(sound.unchecked)
    assert "whether another policy gives another verdict" in told
    for words in ("statistical intervals", "likelier ones", "curves over recalls"):
        assert words not in told
    assert "whether the inputs are true" in told
    settled = "\n".join(check_files("b", bundle.files, recompute=True).unchecked)
    assert "whether the inputs are true" in settled
    for word in ("another policy", "statistical intervals", "likelier"):
        assert word not in settled


def test_intervals_explanations_and_curves_are_made_again_without_being_asked(bundle, sound, monkeypatch):
    def graded(limit, value):
        with monkeypatch.context() as patched:
            patched.setattr(contents, limit, value)
            report = check_files("b", bundle.files)
            return report.numbers, "\n".join(report.unchecked)

    whole = sound.numbers
    drawn, told = graded("CHEAP_DRAWS", 0)
    assert "statistical intervals and verdicts that rest on them, how far" in told
    points = sum(len(each["points"]) for each in json.loads(bundle.files[RUN])["requirements"])
    # Six ends of each interval, under five rules.
    assert (whole.recomputed - drawn.recomputed, drawn.by_hash - whole.by_hash) == (30 * points, 30 * points)
    light, told = graded("CHEAP", 0)
    assert "curves over recalls, of explanations all but the states" in told
    curve = json.loads(bundle.files[REQUIRE])["answers"][0]["curve"]
    explanation = contents.numbers_in(json.loads(bundle.files[EXPLAIN]))
    assert whole.recomputed - light.recomputed == len(curve) + explanation


@pytest.mark.parametrize(
    ("paths", "change", "where"),
    [
        (SAME_NUMBERS, wider, "/requirements/0/points/0"),
        ([EXPLAIN], lambda each: first(each)["map"]["probability"][0].__setitem__(0, 0.5), "/explanations/0/map"),
        ([EXPLAIN], lambda each: first(each).update(posterior_deviation=0.25), "/explanations/0/posterior_deviation"),
        ([REQUIRE], lambda each: each["answers"][0]["curve"][1].__setitem__(1, 0.5), "/answers/0/curve/1/1"),
    ],
    ids=["interval", "map", "deviation", "curve"],
)
def test_what_only_making_it_again_can_tell_is_found_by_every_check(paths, change, where, bundle):
    report = check_files("b", edited(bundle, paths, change))
    assert any(file in paths and place.startswith(where) for file, place in found_in(report)), found_in(report)


@pytest.mark.parametrize(
    ("files", "match"),
    [
        ({"matrices": "results/run.json"}, "does not lie in inputs/"),
        ({"given": ["inputs/matrices/matrices.json"]}, "one file named as two inputs"),
    ],
)
def test_a_request_cannot_pass_off_one_file_as_another(files, match, bundle):
    raw = rewritten(bundle.files["request.json"], lambda each: each.update(files))
    report = check_files("b", forged(bundle, {"request.json": raw}))
    assert any(match in each.found for each in report.findings)


def test_files_that_are_handed_over_cannot_lead_outside_either(bundle, tmp_path):
    name = f"../{tmp_path.name}/evil"
    with pytest.raises(InputError, match="leads elsewhere"):
        check_files("b", {**bundle.files, name: b"evil"})


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "trick",
    [
        b'{"a": 1, "a": 2}',
        b"[" * 100_000,
        b'{"probability": NaN}',
        b"9" * 5000,
        b"1e999999",
        b'"\\ud800"',
        b"\xff\xfe{\x00}\x00",
        b"\x00",
        b"null",
        b"[]",
    ],
)
def test_json_tricks_end_in_a_finding(trick, bundle):
    for path in ("request.json", RUN, "results/omitted.json", "certificates/block001_requirement01_lower_01.json"):
        report = check_files("b", forged(bundle, {path: trick}))
        assert report.exit_code == 4, path
    assert check_files("b", {**bundle.files, "manifest.json": trick}).exit_code == 4


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1", "true", "null", "[]", "9" * 399])
def test_numbers_that_are_none_end_in_a_finding(number, bundle):
    raw = bundle.files[RUN].replace(b'"probability": 0.99,', f'"probability": {number},'.encode(), 1)
    assert raw != bundle.files[RUN]
    assert check_files("b", forged(bundle, {RUN: raw})).exit_code == 4


def test_a_given_result_cannot_pass_for_one_of_the_bundle(tmp_path, bundle):
    """A run of the same name, by another policy, is told by its folder."""
    (tmp_path / "run.json").write_bytes(bundle.files[OTHER])
    sources = Sources(*write_inputs(tmp_path, matrices=THIN), given=[tmp_path / "run.json"])
    made = make_bundle(sources, replace(FEW, confidence=None, verdict_from="point"))
    report = made.files["report/report.md"].decode()
    assert "| given/run.json |" in report.replace("\\", "")
    assert check_files("b", made.files).sound


@pytest.mark.usefixtures("made_anew")
def test_runs_that_differ_in_what_decides_a_verdict_only_are_computed_once(tmp_path, monkeypatch):
    cases = []

    def counted(case, *rest, **options):
        cases.append(str(case))
        return check_case(case, *rest, **options)

    monkeypatch.setattr("verifier.pipeline.check_case", counted)
    made = make_bundle(Sources(*write_inputs(tmp_path)), FEW)
    assert sum(path.startswith("results/alternatives/") for path in made.files) == 4
    # Two environments, as asked and under the two other uses of column "empty".
    assert len(cases) == 2 * 3


def test_a_directory_of_an_archive_is_not_read_before_it_is_known_to_be_small(tmp_path):
    entry = struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, *[0] * 7, 1, *[0] * 6) + b"a"
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, len(entry) * 200_000, 0, 0)
    (tmp_path / "b.zip").write_bytes(entry * 200_000 + end)
    with pytest.raises(LimitError, match="a directory of 9400000 bytes"):
        read_bundle(tmp_path / "b.zip")


def test_an_archive_cannot_name_another_directory_by_zip64(tmp_path):
    raw = zip_bytes({"a": b"1"})
    at = raw.index(b"PK\5\6")
    (tmp_path / "b.zip").write_bytes(raw[:at] + struct.pack("<4sIQI", b"PK\6\7", 0, 0, 1) + raw[at:])
    with pytest.raises(InputError, match="zip64"):
        read_bundle(tmp_path / "b.zip")


CONTEXTS = {
    "exposure to one environment of two": ("[exposure.ped]\nper_hour = 1\n", "no exposure is given for empty"),
    "unknown environment": ("[exposure.pde]\nper_hour = 1\n", "did you mean 'ped'?"),
    "unknown requirement": ("[acceptance.stop]\nper_hour = 1\n", "did you mean 'stops'?"),
    "every and one": ("[exposure.every]\nper_hour = 1\n[exposure.ped]\nper_hour = 1\n", "leaves no room"),
}


@pytest.mark.parametrize("case", CONTEXTS)
def test_a_context_that_does_not_fit_is_refused_before_anything_is_computed(case, tmp_path, monkeypatch, capsys):
    text, match = CONTEXTS[case]
    spec, matrices = write_inputs(tmp_path)
    (tmp_path / "case.toml").write_text(text)
    monkeypatch.setattr(building, "make_results", nothing_is_computed)
    build = ["evidence", "build", str(spec), "--cm", str(matrices), "--context", str(tmp_path / "case.toml")]
    assert main([*build, "-o", str(tmp_path / "b")]) == 4
    complaint = capsys.readouterr().err
    assert match in complaint
    assert complaint.startswith(f"verify: {tmp_path / 'case.toml'}: ")
    assert "inputs/" not in complaint


def nothing_is_computed(*_):
    raise AssertionError("computed")


def test_a_rate_out_of_reach_is_left_out_with_the_reason(tmp_path, capsys):
    """Two intervals of level 1/2 may both miss: nothing is left for the exposure."""
    spec, matrices = write_inputs(tmp_path)
    (tmp_path / "case.toml").write_text("[exposure.every]\nencounters = 3\nhours = 2\n")
    build = ["evidence", "build", str(spec), "--cm", str(matrices), "--context", str(tmp_path / "case.toml")]
    build += ["--confidence", "0.4", "--verdict-from", "interval", "--draws", "500"]
    assert main([*build, "-o", str(tmp_path / "b")]) == 0
    assert "omitted: rates/02_drives_on.json: the interval bounds" in capsys.readouterr().out
    omitted = json.loads((tmp_path / "b/rates/omitted.json").read_text())["omitted"]
    assert [each["path"] for each in omitted] == ["rates/01_stops.json", "rates/02_drives_on.json"]
    assert "omitted: the interval bounds" in (tmp_path / "b/trace.csv").read_text()
    assert check_bundle(tmp_path / "b").sound


@pytest.mark.parametrize(
    ("place", "date", "match"),
    [("/proc/b.zip", "1", "cannot be written"), ("b.zip", "yesterday", "SOURCE_DATE_EPOCH")],
)
def test_where_and_when_are_refused_before_anything_is_computed(place, date, match, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", date)
    monkeypatch.setattr(building, "make_results", nothing_is_computed)
    with pytest.raises((InputError, UsageError), match=match):
        build_bundle(Sources(*write_inputs(tmp_path)), tmp_path / place)


def test_a_model_that_lies_in_the_target_is_not_overwritten(tmp_path, bundle):
    spec, matrices = write_inputs(tmp_path)
    write_bundle(
        {**bundle.files, "two_looks.toml": (tmp_path / "models/two_looks.toml").read_bytes()}, tmp_path / "b"
    )
    spec.write_text(spec.read_text().replace("../models/", "../b/"))
    with pytest.raises(UsageError, match="an input, lies there"):
        build_bundle(Sources(spec, matrices), tmp_path / "b", FEW, force=True)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("name", ["b", "b.zip"])
def test_a_full_disk_or_an_interrupt_leaves_what_was_there(name, error, tmp_path, monkeypatch, bundle):
    write_bundle(bundle.files, tmp_path / name)
    written = []

    def write(self, data):
        written.append(self)
        if len(written) > 3:
            raise error
        return len(data)

    def sync(_):
        raise error

    monkeypatch.setattr(Path, "write_bytes", write)
    monkeypatch.setattr("os.fsync", sync)
    with pytest.raises((InputError, KeyboardInterrupt)):
        write_bundle({**bundle.files, "more.txt": b""}, tmp_path / name, force=True)
    monkeypatch.undo()
    assert [each.name for each in tmp_path.iterdir()] == [name]
    assert read_bundle(tmp_path / name) == dict(sorted(bundle.files.items()))


def test_progress_goes_over_results_and_then_over_blocks(tmp_path, monkeypatch):
    seen = []

    def progress(steps):
        seen.append([each.path if isinstance(each, Planned) else each[0] for each in steps])
        return steps

    spec, matrices = write_inputs(tmp_path)
    one = replace(FEW, selection=replace(FEW.selection, requirements=("stops",)))
    build_bundle(Sources(spec, matrices), tmp_path / "b", one, progress=progress)
    assert seen[0][0] == RUN
    assert seen[0][-2:] == [0, 1]
    check_bundle(tmp_path / "b", recompute=True, progress=progress)
    assert seen[1] == seen[0]
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert type(progress_bar([1, 2])).__name__ == "tqdm"
    assert list(progress_bar([1, 2])) == [1, 2]
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)
    assert type(progress_bar([1, 2])).__name__ == "generator"  # plain lines after half a minute
    assert list(progress_bar([1, 2])) == [1, 2]
