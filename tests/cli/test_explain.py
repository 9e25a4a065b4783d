"""`verify explain` as a user meets it: what it says, its document, its pictures, and what is refused."""

import csv
import json
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from drive_tables import write_drives
from matrix_documents import write_matrices
from typed_documents import read_back

from verifier.base.errors import ExitCode
from verifier.cli import main
from verifier.perception.confusion import read_confusion
from verifier.telling import failing

SPEC = "specs/car_pedestrian.ltl"
BY_CLASS = "examples/nuscenes_yolov3_class.json"
BY_SET = "examples/nuscenes_yolov3_proposition.json"
FAST = ("--point-only",)
FEEDBACK = ("--planner", "feedback", "--set", "vmax=3", "--requirement", "stops_for_pedestrians")


@pytest.fixture
def run(shipped):
    return shipped("explain")


@pytest.fixture
def spec_of(root, tmp_path):
    """Write a spec of the shipped system with these requirements."""

    def write(*requirements):
        head = f'model "{(root / "models/car_pedestrian.toml").as_posix()}"\nplanner feedback\nset vmax = 1\n'
        (tmp_path / "own.ltl").write_text(head + "\n".join(requirements) + "\n")
        return tmp_path / "own.ltl"

    return write


def document(run, *arguments, **files):
    code, out, err = run(*arguments, "--json", **files)
    assert err == ""
    found = json.loads(out)
    assert code == {"satisfied": 0, "no target": 0, "violated": 1, "inconclusive": 3, "vacuous": 3}[found["verdict"]]
    return found


def test_how_it_fails_in_words(run):
    # The feedback planner brakes from v = 3 at cell 49; it must see the pedestrian there and twice behind, and recall
    # within 10 m is 31/158: so it is lost at the first, second or third look with 127/158 (31/158)^k.
    code, out, err = run(*FEEDBACK, *FAST)
    assert (code, err) == (ExitCode.VIOLATED, "")
    lines = out.splitlines()
    head = "stops_for_pedestrians, planner feedback: P >= 0.95, violated, if the detector is memoryless (not tested)"
    assert head in lines
    (number,) = [line for line in lines if line.startswith("P = ")]
    assert number.startswith("P = 0.0075529 (+- ")
    assert number.endswith("in the worst scenario, ped x=1 v=3")
    at = lines.index("The formula fails with probability 0.992447.")
    missed = "ped in [0, 10) m reported as empty"
    assert lines[at + 1] == f"* Cause of 100 % of the violation: {missed} (if correct, P would be 1)."
    assert lines[at + 2].startswith("A detection error counts where, with the correct one in its place, ")
    assert lines[at + 4 : at + 10] == [
        "Violating paths, grouped by detection errors: 1 pattern.",
        f"1. Probability 0.992447, 100 % of it: {missed}.",
        "A run of it, with probability 0.803797 = 127/158, from x = 1, v = 3:",
        "* Steps 1 to 16: what is reported makes no difference. Then x = 49, v = 3.",
        "* Step 17: ped in [0, 10) m is there, and no ped is reported (probability 0.803797). Then x = 52, v = 3. "
        "From here the violation is unavoidable; the steps below are the most likely ones.",
        "* Steps 18 to 19: ped in [0, 10) m is there, and no ped is reported (probability 0.803797 in each step). "
        "Then x "
        "= 58, v = 3.",
    ]
    assert not any("3937/24964" in line for line in lines)  # the same at another moment
    all_runs = run(*FEEDBACK, *FAST, "--members", "9")[1].splitlines()
    assert "A run of it, with probability 0.157707 = 3937/24964, from x = 1, v = 3:" in all_runs
    assert "With perfect perception P would be 1." in lines
    assert lines[-1] == "verdict: violated, if the detector is memoryless (not tested)"


def test_full_paths_are_told_apart_up_to_the_violation(run):
    _, out, _ = run(*FEEDBACK, *FAST, "--full-paths")
    assert "A run of it, with probability 0.519326, from x = 1, v = 3:" in out  # (127/158)^3


def test_intervals_stand_beside_the_number(run):
    lines = run(*FEEDBACK, "--draws", "200")[1].splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("P = "))
    assert lines[at + 1].startswith("95 % credible interval [0.0")
    assert lines[at + 2].startswith("95 % confidence bounds (if items are independent) [0.00")


def test_the_document_follows_its_schema_and_its_numbers_are_exact(run):
    found = document(run, *FEEDBACK, *FAST, "--exact", "--members", "9")
    read_back(found)
    (each,) = found["explanations"]
    r = Fraction(31, 158)
    assert Fraction(each["point"]["exact"]) == r**3
    ((pattern,), (cause,), (kind,)) = (each["violation"][name] for name in ("patterns", "causes", "detection_errors"))
    assert (kind["bin"], kind["true"], kind["reported"], kind["items"]) == (0, "ped", "empty", 127)
    assert (cause["detection_errors"], cause["others"], cause["corrected"]) == ([0], False, 1)
    assert cause["probability"] == pytest.approx(float(1 - r**3), rel=1e-12)
    assert pattern["steps"] == [[[0]]]
    assert pattern["probability"] == pytest.approx(float(1 - r**3), rel=1e-12)
    ways = pattern["members"]
    assert each["violation"]["complete"]
    assert pattern["complete"]
    assert each["violation"]["covered"] == pytest.approx(1, rel=1e-12)
    assert [way["probability"] for way in ways] == [float((1 - r) * r**k) for k in range(3)]
    for way in ways:
        product = Fraction(1)
        for step in way["steps"][: way["counted_steps"]]:
            product *= Fraction(step["probability"])
        assert float(product) == way["probability"]
        assert way["replayed"] == "whole"
        assert way["steps"][way["irrevocable_after"] - 1]["chance"] == 0
    # P = r^3: 3 r^2 less for each unit of mass that moves from the correct report to another.
    (column,) = each["gradient"]
    assert (column["bin"], column["true"]) == (0, "ped")
    assert column["slopes"] == pytest.approx([0, *[-3 * float(r) ** 2] * 2], rel=1e-12)
    (fix,) = each["fixes"]
    assert (fix["reported"], fix["probability"]) == ("empty", 1)
    assert fix["first_order"] == pytest.approx(float((1 - r) * 3 * r**2), rel=1e-12)
    # Jeffreys: A = 158 + 3/2, m = 31.5/A, variance (3 r^2)^2 m (1 - m) / (A + 1).
    m = 31.5 / 159.5
    assert each["posterior_deviation"] == pytest.approx(3 * float(r) ** 2 * (m * (1 - m) / 160.5) ** 0.5, rel=1e-10)
    assert each["map"]["variables"] == ["x", "v"]


def test_equal_inputs_give_equal_bytes(run, tmp_path, root):
    asked = ("--planner", "published", "--planner", "correct", "--draws", "200", "--env", "ped", "--json")
    asked += ("--requirement", "stops_for_pedestrians")
    _, first, _ = run(*asked)
    _, again, _ = run(*asked, "--output", tmp_path / "e.json")
    assert first == again == (tmp_path / "e.json").read_text()
    read_back(json.loads(first))
    assert str(root) not in first


def test_the_numbers_and_verdicts_are_those_of_verify_run(run, capfd):
    asked = ("--planner", "feedback", "--draws", "200", "--requirement", "stops_only_for_pedestrians", "--json")
    found = document(run, *asked)
    main(["run", SPEC, "--cm", BY_CLASS, *asked])
    other = json.loads(capfd.readouterr().out)
    assert found["verdict"] == other["verdict"]
    for mine, theirs in zip(found["explanations"], other["requirements"], strict=True):
        assert mine["verdict"] == theirs["verdict"]
        assert mine["point"] in theirs["points"]


def test_what_holds_for_certain_has_no_violating_run_and_still_hangs_on_something(run):
    # No obstacle within 10 m was ever reported as a pedestrian: P = 1 where an obstacle stands, until one is.
    code, out, _ = run("--planner", "feedback", "--requirement", "stops_only_for_pedestrians", *FAST)
    assert code == ExitCode.SATISFIED
    assert "P = 1 (exact for the measured matrix) in the worst scenario, obs x=1 v=1" in out
    assert "There is no run on which the formula fails: with these matrices none has a positive probability." in out
    assert "obs   [0, 10) m  ped -> obs     +1           0          0.2065" in out


def test_what_fails_whatever_is_reported_says_so(run, street):
    code, out, _ = run("--planner", "bold", *FAST, **street)
    assert code == ExitCode.VIOLATED
    assert "The formula fails whatever the detector reports." in out
    told = (
        "no detection error; the planner and the dynamics violate the requirement (with perfect perception P "
        "would be 0)"
    )
    assert f"* Cause of 100 % of the violation: {told}." in out
    assert "1. Probability 1, 100 % of it: no detection error counted." in out


def test_what_fails_for_certain_as_measured_is_not_said_to_fail_whatever_is_reported(run, tmp_path):
    # No pedestrian was taken for an obstacle so far, but a planner that asks for obstacles would stop for that one.
    (tmp_path / "own.toml").write_text("""
initial = "s = 0"
terminal = "s > 0"
[variables]
s = { range = [0, 2], next = "go" }
[inputs]
go = { range = [0, 2], default = 1 }
[environments]
ped = [{ class = "ped", distance_m = 5 }]
[planners.own]
rules = [{ when = "sees(obs)", set = { go = 2 } }]
""")
    (tmp_path / "own.ltl").write_text('model "own.toml"\nstops: P >= 0.9 [ F s = 2 ]\n')
    _, out, _ = run(spec=str(tmp_path / "own.ltl"))
    assert "bounds (if items are independent) [0, 0.0" in out
    assert "The formula fails with probability 1, with the measured matrices and with perfect perception." in out


def test_what_an_error_fails_in_the_end_is_lost_by_the_error(run):
    # Without an end P is 0 for any recall below 1, and 1 with perfect perception.
    code, out, _ = run("--endless", "--requirement", "stops_for_pedestrians", "--env", "ped", *FAST)
    assert code == ExitCode.VIOLATED
    missed = "ped in [0, 10) m reported as empty"
    assert f"* Cause of 100 % of the violation: {missed} (if correct, P would be 1)." in out.splitlines()
    assert f"1. Probability 1, 100 % of it: {missed}." in out.splitlines()


FACTS = ["ped", "sees(car, within = 20)", "count(ped) = 1", "count(ped) = 2", "count(ped) = 3", "report(light) = *",
         "report(light) = red", "report(b, within = 10) = *", "frame 2: car"]  # fmt: skip


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (["ped", "sees(car, within = 20)"], "ped and car within 20 m"),
        (["count(ped) = 1"], "ped once"),
        (["count(ped) = 2"], "ped twice"),
        (["count(ped) = 3"], "ped 3 times or more often"),
        (["report(light) = *"], "light as another class"),
        (["report(light) = *", "report(light) = red"], "light as red"),
        (["report(b, within = 10) = *"], "a report of b within 10 m"),
        (["frame 2: car"], "car in frame 2"),
        ([], "nothing"),
        (["count(ped) = many"], "ped as many"),  # of a document that somebody edited
    ],
)
def test_what_a_planner_was_told_in_words(told, text):
    assert failing._classes_text(SimpleNamespace(asks_about=FACTS), told) == text


def test_a_planner_that_counts_is_explained(root, capsys):
    spec, matrices = root / "specs/phantom_braking.ltl", root / "models/phantom_braking.json"
    code = main(["explain", str(spec), "--cm", str(matrices), "--requirement", "hard", *FAST])
    out = capsys.readouterr().out
    assert code == 0
    assert "and nothing or vehicle once is reported (probability 0.968271 in each step)" in out
    assert "vehicle once and vehicle within 40 m; or" in out


def test_with_an_upper_limit_the_runs_on_which_the_formula_holds_are_told(run, spec_of):
    spec = spec_of("runs_through: P <= 0.1 [ F (ped & x > stop_cell) ]")
    code, out, _ = run("--env", "ped", *FAST, spec=spec)
    assert code == ExitCode.VIOLATED
    assert "The formula holds with probability 0.803797." in out
    told = "ped in [0, 10) m reported as empty (if correct, P would be 0)"
    assert f"* Cause of 100 % of the violation: {told}." in out
    assert "ped   [0, 10) m  empty        0.8038  0               -0.804" in out
    assert "With perfect perception P would be 0." in out


def test_runs_that_end_in_a_bottom_component_are_replayed_too(run, spec_of):
    found = document(run, "--endless", "--env", "ped", *FAST, spec=spec_of("again: P >= 0.5 [ G F (x = 1) ]"))
    (each,) = found["explanations"]
    assert each["violation"]["probability"] == 1
    assert {way["replayed"] for way in each["violation"]["patterns"][0]["members"]} == {"whole"}


@pytest.mark.parametrize(
    ("cm", "options"),
    [
        (BY_CLASS, ["--canonical", "--sweep", "vmax=1..2"]),
        (BY_SET, []),
        (BY_CLASS, ["--false-positives", "background"]),
    ],
)
def test_other_matrices_and_scenarios(run, cm, options):
    found = document(run, "--planner", "published", *FAST, *options, cm=cm)
    read_back(found)
    for each in found["explanations"]:
        assert each["violation"]["probability"] == pytest.approx(1 - each["point"]["probability"], abs=1e-9)
        total = each["violation"]["probability"]
        added = math.fsum([each["violation"]["rest"], *(one["probability"] for one in each["violation"]["causes"])])
        assert abs(added - total) <= 1e-12
        for one in each["violation"]["detection_errors"]:
            assert one["true"] != one["reported"]


def test_columns_without_items_have_no_data_behind_them(run, tmp_path, root):
    found = json.loads((root / BY_CLASS).read_text())
    for row in found["bins"][5]["counts"]:
        row[0] = 0
    (tmp_path / "holes.json").write_text(json.dumps(found))
    asked = ("--planner", "published", "--set", "vmax=3", "--env", "ped", "--requirement", "all_three", *FAST)
    code, _, err = run(*asked, cm=tmp_path / "holes.json")
    assert code == ExitCode.BAD_INPUT
    assert "--empty-columns" in err
    (each,) = document(run, *asked, "--empty-columns", "neighbour", cm=tmp_path / "holes.json")["explanations"]
    first = each["label_more"][0]
    assert (first["bin"], first["true"], first["items"]) == (5, "ped", 0)
    assert first["p_range"] > 0


# Two objects.

STREET = """
name = "street"
source = "made up"
initial = "x = 0"
terminal = "x > 0"

[variables]
x = { range = [0, 2], next = "2 - stop" }

[inputs]
stop = { range = [0, 1] }

[environments]
both = [{ class = "ped", distance_m = "5" }, { class = "truck", distance_m = "15" }]

[planners.either]
rules = [{ when = "sees(ped) | sees(truck)", set = { stop = 1 } }, { when = "true", set = { stop = 0 } }]

[planners.needs_both]
rules = [{ when = "sees(ped) & sees(truck)", set = { stop = 1 } }, { when = "true", set = { stop = 0 } }]

[planners.for_trucks]
rules = [{ when = "sees(truck)", set = { stop = 1 } }, { when = "true", set = { stop = 0 } }]

[planners.bold]
rules = [{ when = "true", set = { stop = 0 } }]
"""
PED = {"bin": 0, "true": "ped", "reported": "empty"}
TRUCK = {"bin": 1, "true": "truck", "reported": "empty"}


@pytest.fixture
def street(tmp_path):
    """One look at a pedestrian, missed with 1/4, and behind it a truck, missed with 1/3; the car should stop."""
    (tmp_path / "street.toml").write_text(STREET)
    (tmp_path / "street.ltl").write_text('model "street.toml"\nstops: P >= 0.99 [ F x = 1 ]\n')
    counts = ([[30, 0, 0], [0, 40, 0], [10, 0, 40]], [[40, 0, 0], [0, 20, 0], [0, 10, 40]])
    write_matrices(tmp_path / "street.json", *counts, labels=["ped", "truck", "empty"], title="made up")
    return {"spec": tmp_path / "street.ltl", "cm": tmp_path / "street.json"}


@pytest.mark.parametrize(
    ("planner", "expected", "corrected"),
    [
        ("either", {("ped", "truck"): Fraction(1, 12)}, [1]),
        (
            "needs_both",
            {("truck",): Fraction(1, 4), ("ped",): Fraction(1, 6), ("ped", "truck"): Fraction(1, 12)},
            [Fraction(3, 4), Fraction(2, 3), 1],
        ),
        ("for_trucks", {("truck",): Fraction(1, 3)}, [1]),
        ("bold", {(): Fraction(1)}, [0]),
    ],
)
def test_causes_of_two_objects_are_joint_where_both_reports_were_needed(run, street, planner, expected, corrected):
    (each,) = document(run, "--planner", planner, *FAST, "--exact", **street)["explanations"]
    found = each["violation"]
    kinds = [{name: kind[name] for name in PED} for kind in found["detection_errors"]]
    assert all(kind in (PED, TRUCK) for kind in kinds)
    causes = {tuple(kinds[k]["true"] for k in cause["detection_errors"]): cause for cause in found["causes"]}
    assert {name: cause["probability"] for name, cause in causes.items()} == pytest.approx(
        {name: float(p) for name, p in expected.items()}, rel=1e-12
    )
    assert list(causes) == list(expected)  # the most probable first
    exact = 1 - Fraction(each["point"]["exact"])
    assert sum(expected.values()) == exact
    assert abs(math.fsum(cause["share"] for cause in found["causes"]) - 1) <= 1e-12
    assert [cause["corrected"] for cause in found["causes"]] == pytest.approx(list(map(float, corrected)), rel=1e-12)


def test_correcting_the_first_cause_gains_what_is_said_in_both_engines(run, street, tmp_path, capfd):
    asked = ("--planner", "needs_both")
    (each,) = document(run, *asked, *FAST, **street)["explanations"]
    (first, *_) = each["violation"]["causes"]
    matrices = json.loads(street["cm"].read_text())
    for number in first["detection_errors"]:
        kind = each["violation"]["detection_errors"][number]
        counts, names = matrices["bins"][kind["bin"]]["counts"], matrices["labels"]
        true, reported = names.index(kind["true"]), names.index(kind["reported"])
        counts[true][true] += counts[reported][true]
        counts[reported][true] = 0
    (tmp_path / "corrected.json").write_text(json.dumps(matrices))
    main(["run", str(street["spec"]), "--cm", str(tmp_path / "corrected.json"), *asked, *FAST, "--json"])
    ((point,),) = ([*one["points"]] for one in json.loads(capfd.readouterr().out)["requirements"])
    assert first["corrected"] == pytest.approx(point["probability"], abs=1e-12)  # Storm
    assert first["corrected"] == pytest.approx(point["second_engine"], abs=1e-12)
    assert first["corrected"] == pytest.approx(3 / 4, abs=1e-12)


def test_explanation_report_and_assurance_case_say_the_same(run, street, tmp_path, capfd):
    _, out, _ = run("--planner", "either", *FAST, "-o", tmp_path / "explain.json", **street)
    told = (
        "Cause of 100 % of the violation: ped in [0, 10) m reported as empty and truck in [10, 20) m reported as "
        "empty together (if all were correct, P would be 1; if only one of them, 1 or 1)"
    )
    assert f"* {told}." in out.splitlines()
    spec, cm = (str(street[name]) for name in ("spec", "cm"))
    main(["run", spec, "--cm", cm, "--planner", "either", *FAST, "-o", str(tmp_path / "run.json")])
    main(["report", str(tmp_path / "run.json"), str(tmp_path / "explain.json"), "-o", str(tmp_path / "page.md")])
    page = (tmp_path / "page.md").read_text().replace("\\", "")
    assert page.count(f"{told}.") == 2  # in the summary and where it is explained
    main(["evidence", "build", spec, "--cm", cm, "--planner", "either", *FAST, "-o", str(tmp_path / "bundle")])
    goals = "".join(path.read_text() for path in (tmp_path / "bundle").rglob("*.yaml"))
    assert f"How it fails: {told}" in " ".join(goals.split())
    main(["evidence", "check", str(tmp_path / "bundle")])
    assert "1 violating runs replayed on the rebuilt system, 1 with the formula" in capfd.readouterr().out


def test_the_standard_deviation_says_what_it_assumes(run):
    _, out, err = run(*FEEDBACK, *FAST)
    assert "P has a standard deviation of about 0.00363, to first order, if items are independent" in out, err
    (each,) = document(run, *FEEDBACK, *FAST)["explanations"]
    assert each["posterior_deviation_assumes"] == "if items are independent"


# Pictures.


@pytest.mark.parametrize("ending", ["pdf", *(pytest.param(each, marks=pytest.mark.slow) for each in ("png", "svg"))])
def test_pictures_are_drawn_and_stable(run, tmp_path, ending):
    for name in ("a", "b"):
        run(*FEEDBACK, *FAST, "--plot", tmp_path / f"{name}.{ending}")
    first = (tmp_path / f"a.{ending}").read_bytes()
    assert len(first) > 10_000
    assert first == (tmp_path / f"b.{ending}").read_bytes()


def test_a_map_over_one_variable_can_be_drawn(run, tmp_path):
    (each,) = document(run, *FEEDBACK, *FAST, "--map", "v", "--plot", tmp_path / "a.png")["explanations"]
    assert (tmp_path / "a.png").stat().st_size > 10_000
    assert each["map"]["variables"] == ["v"]
    assert each["map"]["values"] == [[0, 1, 2, 3]]


def test_too_many_rows_are_refused(run, tmp_path, spec_of):
    spec = spec_of(*(f"r{k}: P = ? [ F (x > {k + 2}) ]" for k in range(20)))
    code, _, err = run("--env", "ped", *FAST, "--plot", tmp_path / "a.png", spec=spec)
    assert code == ExitCode.USAGE
    assert "at most 16 are drawn" in err
    assert not (tmp_path / "a.png").exists()


# Frames.


def recorded(folder, missed=127):
    """A record whose objects in bin 0 are the pedestrians of the shipped matrices: 31 seen, 127 missed."""
    head = "kind sequence frame bin place distance_m true predicted score group file line report_file report_line"
    rows = []
    for number in range(31 + missed):
        what = ["object", "drive", f"drive/{number:06}", 0, 0, 5.0, "ped"]
        told = ["ped", 0.9, -1] if number < 31 else ["empty", "", -1]
        report = ["/data/found/boxes.txt", number + 1] if number < 31 else ["", -1]
        rows.append([*what, *told, "/data/truth/labels.txt", number + 1, *report])
    with (folder / "record.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([head.split(), *rows])
    return folder / "record.csv"


def test_detection_errors_come_with_their_frames(run, tmp_path):
    record = recorded(tmp_path)
    _, out, _ = run(*FEEDBACK, *FAST, "--record", record)
    assert "Frames with ped in [0, 10) m reported as empty: 127 in the record" in out
    assert any(
        line.split() == ["drive", "drive/000031", "5.0", "m", "truth/labels.txt:32", "none"]
        for line in out.splitlines()
    )
    found = document(run, *FEEDBACK, *FAST, "--record", record)
    read_back(found)
    assert [each["role"] for each in found["inputs"]] == ["spec", "model", "confusion", "record"]
    (cell,) = found["explanations"][0]["violation"]["detection_errors"]
    assert cell["in_record"] == cell["items"] == 127
    assert [each["frame"] for each in cell["frames"]] == [f"drive/{k:06}" for k in range(31, 36)]
    assert {each["file"] for each in cell["frames"]} == {"truth/labels.txt"}


def test_a_record_of_other_matrices_is_refused(run, tmp_path):
    code, out, err = run(*FEEDBACK, *FAST, "--record", recorded(tmp_path, missed=128))
    assert (code, out) == (ExitCode.BAD_INPUT, "")
    assert "128 times in bin [0, 10) m, and 127 times in the matrices" in err


KITTI_CLASSES = "Pedestrian -> ped\nPerson* -> ped\nCar -> obs\nVan -> obs\nDontCare -> dont_care\n* -> ignore\n"
KITTI_OPTIONS = (
    "--sequence 0001 --sequence 0004 --sequence 0007 --sequence 0015 --bins 0,10,20,30,40,50,inf --affinity "
    "centre_bev --match-threshold 2 --distance ground_plane --unmatched own_bin"
)


def test_real_frames_of_kitti(run, shared, tmp_path, capfd):
    data = shared / "data/kitti_tracking"
    (tmp_path / "classes.txt").write_text(KITTI_CLASSES)
    files = {"annotations": data / "label_02", "detections": data / "det_pointrcnn", "class-map": "classes.txt"}
    files |= {"output": "p.json", "record": "p.parquet"}
    named = [word for name, path in files.items() for word in (f"--{name}", str(tmp_path / path))]
    assert main(["confusion", "--format", "kitti_tracking", *named, *KITTI_OPTIONS.split()]) == 0
    capfd.readouterr()
    asked = ("--planner", "feedback", "--set", "vmax=4", *FAST, "--record", tmp_path / "p.parquet")
    found = document(run, *asked, cm=tmp_path / "p.json")
    assert str(shared) not in json.dumps(found)
    by_name = {each["name"]: each["violation"]["detection_errors"] for each in found["explanations"]}
    for cell in (cell for cells in by_name.values() for cell in cells):
        assert cell["in_record"] == cell["items"]
    # Where nobody stands a pedestrian is reported in one frame of ten: such alarms come with their detections.
    (alarm,) = by_name["stops_only_for_pedestrians"]
    assert (alarm["true"], alarm["reported"]) == ("empty", "ped")
    assert all(each["report_file"].startswith("Pedestrian/") for each in alarm["frames"])
    # A miss is an annotated person of that very frame.
    first = by_name["stops_for_pedestrians"][0]["frames"][0]
    words = (data / first["file"]).read_text().splitlines()[first["line"] - 1].split()
    assert words[2] in ("Pedestrian", "Person_sitting", "Person")
    assert int(words[0]) == int(first["frame"].split("/")[1])


# What is refused.


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--requirement", "nothing"], ExitCode.USAGE, "unknown requirement 'nothing'"),
        (["--map", "x,y"], ExitCode.USAGE, "unknown variable 'y'"),
        (["--map", "x,v,x"], ExitCode.USAGE, "one or two different variables"),
        (["--map", ","], ExitCode.USAGE, "unknown variable ''"),
        (["--record", "none.csv"], ExitCode.BAD_INPUT, "none.csv: no such file"),
        (["--record", "specs/car_pedestrian.ltl"], ExitCode.USAGE, "a record ends in .csv or .parquet"),
        (["--plot", "heat.txt"], ExitCode.USAGE, "ending in .png, .svg, .pdf"),
        (["--output", "none/e.json"], ExitCode.BAD_INPUT, "no such folder"),
        (["--round-transitions", "4"], ExitCode.USAGE, "not computed for rounded transitions"),
        (["--initial", "x = 5"], ExitCode.USAGE, "no state satisfies the initial condition"),
        (["--output", BY_CLASS], ExitCode.USAGE, "is an input of this run"),
    ],
)
def test_bad_input(run, root, arguments, code, message):
    before = (root / BY_CLASS).read_bytes()
    found, out, err = run(*FEEDBACK, *FAST, *arguments)
    assert (found, out) == (code, "")
    assert message in err
    assert "Traceback" not in err
    assert (root / BY_CLASS).read_bytes() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["--patterns", "0"],
        ["--members", "x"],
        ["--rows", "-1"],
        ["--confidence", "1"],
        ["--prior", "0"],
        ["--draws", "0"],
    ],
)
def test_arguments_that_cannot_be(run, arguments):
    code, _, err = run(*arguments)
    assert (code, "see verify explain --help" in err) == (ExitCode.USAGE, True)


def test_an_empty_file_is_no_record(run, tmp_path):
    (tmp_path / "r.csv").write_text("")
    code, out, err = run(*FEEDBACK, *FAST, "--record", tmp_path / "r.csv")
    assert (code, out) == (ExitCode.BAD_INPUT, "")
    assert "r.csv: the file is empty; expected a line with the names of the columns" in err


def test_an_inconclusive_requirement_says_what_would_decide_it(run):
    _, out, _ = run("--requirement", "stops_only_for_pedestrians", "--env", "obs")
    assert "more items with true class obs in [0, 10) m (now 925), assuming unchanged rates" in out


def test_items_are_items_whatever_the_rates_are_rates_of(run, root, tmp_path):
    matrices = read_confusion(root / BY_CLASS).matrices
    counts = np.stack([matrices.counts, 2 * matrices.counts])
    labels = [next(iter(label)) if label else "empty" for label in matrices.labels]
    drives = write_drives(tmp_path / "drives.json", counts, labels, matrices.edges_m.tolist())
    chosen = ("--requirement", "stops_for_pedestrians", "--env", "ped", "--draws", "400")
    by_item, by_drive = (
        document(run, *chosen, "--weights", weights, cm=drives)["explanations"][0] for weights in ("item", "drive")
    )
    for found in (by_item, by_drive):
        assert [cell["items"] for cell in found["violation"]["detection_errors"]] == [3 * 127]
    assert [one["items"] for one in by_drive["label_more"]] == [one["items"] for one in by_item["label_more"]]
    assert by_drive["posterior_deviation"] == pytest.approx(by_item["posterior_deviation"])  # drives are alike


def test_two_objects_are_there_and_one_is(root, monkeypatch, capsys):
    monkeypatch.chdir(root / "models")
    asked = ["../specs/warehouse.ltl", "--cm", "warehouse.json", "--requirement", "no_crash", "--env", "both"]
    assert main(["explain", *asked, "--point-only", "--patterns", "1"]) == ExitCode.SATISFIED
    told = " ".join(capsys.readouterr().out.split())
    assert "person in [0, 4) m, occlusion [0, 1) and forklift in [4, 12) m, occlusion [0, 1) are there, and" in told
    assert "Step 8: forklift in [4, 12) m, occlusion [0, 1) is there, and nothing is reported" in told
