"""`verify closed-loop` and `verify robroc`: numbers worked out by hand, outputs, and bad input."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from dask_clusters import cluster
from small_logs import made_logs, straight
from typed_documents import read_back

from verifier.base.errors import ExitCode
from verifier.cli import main
from verifier.closedloop.logfiles import write_logs
from verifier.perception.confusion.document import read_counts, write_confusion

# Two logs towards a person at 33 m (with a control radius of 2 m in the way from 31 m on), two free ones of 40 m; an
# image per metre. Images: 0-29, 30-59, 60-100, 101-141.
DRIVES = {
    "person 1": (True, straight(30)),
    "person 2": (True, straight(30)),
    "free 1": (False, straight(41)),
    "free 2": (False, straight(41)),
}
PEOPLE = [(image, 33, 0) for image in range(60)]


def sees(images, strength):
    return [(image, strength, 33, 0) for image in images]


# At 10 m of "free 1" a false positive 1.5 m ahead: the vehicle is inside, and stops within 0.984 m.
ALARM = (70, 0.5, 11.5, 0)
REPORTS = {
    "good": sees(range(60), 0.9),
    "good@fog": sees(range(30), 0.9),
    "jumpy": [*sees(range(60), 0.4), ALARM],
    "jumpy@fog": sees(range(60), 0.4),
}
# Ten validation images with one false positive of 0.5: strength 0.9 is standardized to 0, 0.4 and 0.5 to 0.1.
VALIDATION = made_logs({"v": (False, straight(10))}, [], {"good": [(0, 0.5, 0, 9)], "jumpy": [(0, 0.5, 0, 9)]})
# Free: 5455/381 s; stopping once and starting again 500/381 s more. "jumpy" finds the person from 0.1 on, when the
# alarm counts, too: area 2 * 5455 / (2 * 5455 + 500) = 1091/1141.
JUMPY = float(Fraction(1091, 1141))


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_logs(made_logs(DRIVES, PEOPLE, REPORTS), "logs")
    write_logs(VALIDATION, "validation")
    return tmp_path


USUAL = ["closed-loop", "logs", "--validation", "validation", "--control-radius", "2", "--match-distance", "1",
         "--safety-radius", "1.5",
         "--engine", "events", "--levels", "9", "--draws", "50"]  # fmt: skip


def result(capsys, *arguments):
    assert main([*arguments, "--json"]) == ExitCode.SATISFIED
    document = json.loads(capsys.readouterr().out)
    read_back(document)
    return document


def areas(document, metric="closed_loop"):
    (table,) = [each for each in document["metrics"] if each["metric"] == metric]
    return {(row["name"], cell["detector"]): cell["area"] for row in table["rows"] for cell in row["cells"]}


def test_areas_by_hand(data, capsys):
    document = result(capsys, *USUAL)
    assert areas(document) == {
        ("baseline", "good"): 1,
        ("baseline", "jumpy"): pytest.approx(JUMPY, abs=1e-12),
        ("fog", "good"): 0.5,
        ("fog", "jumpy"): pytest.approx(JUMPY, abs=1e-12),
    }
    closed = document["metrics"][-1]
    fog = {each["detector"]: each for each in closed["rows"][1]["cells"]}
    assert fog["good"]["robustness"] == fog["good"]["own_area"] == 0.5
    assert (fog["jumpy"]["robustness"], fog["jumpy"]["own_area"]) == (1, 1)
    assert [row["best"] for row in closed["rows"]] == [["good"], ["jumpy"]]
    means = {each["detector"]: each["area"] for each in closed["means"]}
    assert means == {"good": 0.5, "jumpy": 1}
    (flip,) = [each for each in document["flips"]["under_mutation"] if each["to"]["metric"] == "closed_loop"]
    assert flip["flips"]
    assert document["logs"] == {
        "positive": 2, "negative": 2, "truth_never_stops": [], "truth_breaks_safety_radius": []
    }  # fmt: skip
    assert document["second_engine"]["engine"] == "steps"
    # "good" under fog is safe in one of two logs: drawn twice, once or never, 1, 1/2 or 0; "jumpy" stays above 0.9
    # and is best but where the safe log is drawn twice, which happens in a quarter of all draws.
    low, high = fog["good"]["area_interval"]
    assert (low, high) == (0, 1)
    assert 0.5 < fog["jumpy"]["best_probability"] < 0.95


def test_with_time_steps_both_engines_are_in_every_interval(data, capsys):
    """As a document: what is read back, and that each cell encloses its area with the step and without it."""
    exact = result(capsys, *USUAL, "--draws", "50")
    stepped = result(capsys, *USUAL, "--draws", "50", "--engine", "steps", "--step", "0.5")
    read_back(stepped)
    of_loop = [
        next(table for table in each["metrics"] if table["metric"] == "closed_loop") for each in (stepped, exact)
    ]
    cells = [[cell for row in table["rows"] for cell in row["cells"]] for table in of_loop]
    assert any(own["step_error"] > 0 for own in cells[0])
    for own, other in zip(*cells, strict=True):
        assert own["step_error"] == pytest.approx(abs(own["area"] - other["area"]), abs=1e-12)
        low, high = own["area_interval"]
        assert low <= min(own["area"], other["area"]) <= max(own["area"], other["area"]) <= high
        assert "step_error" not in other
    for own, other in zip(*(table["rows"] for table in of_loop), strict=True):
        assert own["best_without_step"] == other["best"]


def test_the_stop_cost_and_the_readings_reach_the_simulator(data, capsys):
    dear = result(capsys, *USUAL, "--stop-cost", "10")
    exact = Fraction(10910, 10910 + 500 + 3810)
    assert areas(dear)["baseline", "jumpy"] == pytest.approx(float(exact), abs=1e-12)
    assert dear["settings"]["stop_cost_s"] == 10
    # Held, the distance at the image of 30 m (the last before the person) is never 0: nobody ever stops (A10).
    held = result(capsys, *USUAL, "--between-images", "hold", "--too-close", "zero_distance")
    assert held["logs"]["truth_never_stops"] == ["person 1", "person 2"]
    assert any("never stops in 2 positive logs (person 1, person 2)" in each for each in held["remarks"])
    assert held["not_defined"] == [
        {"metric": "closed_loop", "reason": "the reference vehicle stops in no positive log"}
    ]
    assert "closed_loop" not in [table["metric"] for table in held["metrics"]]
    # It says so wherever it is told: on the terminal, in rows, and with the curves, which take the notes along.
    never = [*USUAL, "--between-images", "hold", "--too-close", "zero_distance"]
    assert main([*never, "--csv", "rows.csv", "--curves", "curves.json"]) == ExitCode.SATISFIED
    assert ": not defined, the reference vehicle stops in no positive log\n" in capsys.readouterr().out
    rows = list(csv.DictReader(Path("rows.csv").read_text().splitlines()))
    assert [row["kind"] for row in rows if row["metric"] == "closed_loop"] == ["not defined"]
    again = result(capsys, "robroc", "curves.json")
    assert (
        again["remarks"][0] == "curves.json: closed_loop: not defined, the reference vehicle stops in no positive log"
    )
    assert [f"curves.json: {remark}" for remark in held["remarks"]] == again["remarks"][1:]
    assert main([*never, "--curves", "curves.csv"]) == ExitCode.SATISFIED
    capsys.readouterr()
    of_csv = result(capsys, "robroc", "curves.csv")
    assert [each.replace(".csv: ", ".json: ") for each in of_csv["remarks"]] == again["remarks"]
    assert [row["remarks"] for row in rows if row["metric"] == "closed_loop"] == [
        "the reference vehicle stops in no positive log"
    ]
    # Nor does it keep the safety radius then: the vehicle drives on, past the person.
    assert held["logs"]["truth_breaks_safety_radius"] == ["person 1", "person 2"]
    assert areas(held, "safety_radius")["baseline", "good"] == 0


def test_the_choices_of_the_image_metrics_reach_them(data, capsys):
    # "jumpy": one false positive in the 82 images of the free logs, from 0.1 on, where it also finds everybody:
    # efficiency 1 - (1 / 82) / 0.1, and with twice that limit 1 - (1 / 82) / 0.2.
    roc = [*USUAL, "--metric", "roc_b"]
    for more, limit in (([], 0.1), (["--fpr-max", "0.2"], 0.2)):
        assert areas(result(capsys, *roc, *more), "roc_b")["baseline", "jumpy"] == pytest.approx(1 - 1 / 82 / limit)
    # Two logs that begin 4 m ahead of the person's disc; "late" misses their first frames and finds the two others.
    drives = {name: (each[0], straight(3, 27) if each[0] else each[1]) for name, each in DRIVES.items()}
    reports = {"late": [(image, 0.9, 33, 0) for image in (1, 2, 4, 5)]}
    write_logs(made_logs(drives, [(image, 33, 0) for image in range(6)], reports), "other")
    write_logs(made_logs({"v": (False, straight(10))}, [], {"late": []}), "nothing")
    path = ["closed-loop", "other", "--validation", "nothing", *USUAL[4:], "--metric", "pathifier"]
    assert areas(result(capsys, *path), "pathifier")["baseline", "late"] == 1
    counted = result(capsys, *path, "--first-frame", "counted")
    assert areas(counted, "pathifier")["baseline", "late"] == pytest.approx(4 / 6)
    both = [*USUAL, "--match-iou", "0.5"]
    assert "--match-distance and --match-iou" in complaint(capsys, ExitCode.USAGE, *both)


def test_every_metric_and_every_output(data, capsys):
    every = ("closed_loop", "roc_a", "pathifier", "roc_b", "safety_radius", "roboticizer")
    metrics = [f"--metric={each}" for each in every]
    outputs = ["--output", "a.json", "--csv", "a.csv", "--curves", "curves.json", "--plot", "a.png"]
    more = ["--plot-table", "a.svg", "--severity", "fog=mild", "--group", "dark=fog", "--trace", "person 1,good,0.1"]
    assert main([*USUAL, *metrics, *outputs, *more, "trace.csv"]) == ExitCode.SATISFIED
    printed = capsys.readouterr().out
    document = json.loads(Path("a.json").read_text())
    read_back(document)
    assert [each["metric"] for each in document["metrics"]] == [
        "roc_a", "roc_b", "roboticizer", "pathifier", "safety_radius", "closed_loop"
    ]  # fmt: skip
    assert "logs: good, jumpy" in printed
    assert "dark           0.500 (0.50)  0.956*(1.00)" in printed
    assert "The second engine (steps: time steps)" in printed
    rows = list(csv.DictReader(Path("a.csv").read_text().splitlines()))
    assert len(rows) == 6 * 3 * 2
    assert {row["row"] for row in rows} == {"baseline", "fog", "dark"}
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in Path("a.svg").read_bytes()
    steps = list(csv.DictReader(Path("trace.csv").read_text().splitlines()))
    assert float(steps[1]["speed_mps"]) == pytest.approx(0.0762)
    assert steps[-1]["stopped"] == "True"
    assert 31 <= float(steps[-1]["position_m"]) < 31.15

    # The curves that were written give the same areas again.
    again = result(capsys, "robroc", "curves.json", "--group", "dark=fog")
    for metric in every:
        assert areas(again, metric) == pytest.approx(areas(document, metric), abs=1e-15)


def test_a_trace_of_the_truth(data, capsys):
    assert main([*USUAL, "--trace", "person 2,truth", "t.csv"]) == ExitCode.SATISFIED
    steps = list(csv.DictReader(Path("t.csv").read_text().splitlines()))
    assert float(steps[-1]["position_m"]) == pytest.approx(31, abs=0.15)


def test_logs_standardized_by_themselves_say_so(data, capsys):
    usual = [each if each != "validation" else "self" for each in USUAL]
    document = result(capsys, *usual)
    assert any("of the evaluated logs themselves" in each for each in document["remarks"])
    assert document["settings"]["validation"] == "self"
    assert {each["role"] for each in document["inputs"]} == {"logs"}


def complaint(capsys, code, *arguments):
    assert main(list(arguments)) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--severity", "fgo=mild"], "severity: unknown condition 'fgo'\n  hint: did you mean 'fog'?"),
        (["--severity", "fog=bad"], "fog is 'bad'; expected mild or severe"),
        (["--severity", "fog"], "--severity: expected CONDITION=KIND, got 'fog'"),
        (["--group", "dark=night"], "group 'dark': unknown condition 'night'"),
        (["--group", "fog=fog"], "a group cannot have the name of a condition, 'fog'"),
        (["--start-speed", "4"], "start_speed_mps must lie in 0..3"),
        (["--lowest", "2"], "0 < lowest < highest"),
        (["--plot", "a.gif"], "--plot: expected a file name ending in .png, .svg, .pdf"),
        (["--plot", "a.png", "--plot-row", "fgo"], "unknown condition or group 'fgo'"),
        (["--plot", "a.png", "--plot-detector", "x"], "unknown detector 'x'"),
        (["--trace", "person 3,good,0.1", "t.csv"], "unknown log 'person 3'"),
        (["--trace", "person 1,bad,0.1", "t.csv"], "unknown source of detections 'bad'"),
        (["--trace", "person 1,good", "t.csv"], "--trace: expected LOG,SOURCE,SENSITIVITY or LOG,truth"),
        (["--csv", "logs/logs.csv"], "--csv: logs/logs.csv is an input of this run"),
        (["--curves", "logs/detections/good.csv"], "--curves: logs/detections/good.csv is an input"),
        (["--trace", "person 1,truth", "validation/people.csv"], "--trace: validation/people.csv is an input"),
        (["--output", "a.json", "--csv", "a.json"], "--output and --csv would be written to the same file"),
    ],
)
def test_arguments_that_do_not_fit(data, capsys, more, message):
    assert message in complaint(capsys, ExitCode.USAGE, *USUAL, *more)
    assert not [each.name for each in data.iterdir() if each.name not in ("logs", "validation")]


def test_what_has_to_be_named(data, capsys):
    given = ["closed-loop", "logs", "--validation", "self", "--control-radius", "2", "--safety-radius", "1"]
    for at, message in ((2, "--validation self"), (4, "--control-radius M"), (6, "--safety-radius M")):
        assert message in complaint(capsys, ExitCode.USAGE, *given[:at], *given[at + 2 :])
    assert "no rectangles in the image: say from which" in complaint(capsys, ExitCode.USAGE, *given)
    big = [*given[:-1], "2", "--match-distance", "1"]
    assert "0 < safety radius < control radius" in complaint(capsys, ExitCode.USAGE, *big)


@pytest.mark.parametrize("option", ["--control-radius=0", "--levels=1", "--draws=-1", "--confidence=1", "--step=inf"])
def test_numbers_out_of_range(data, capsys, option):
    with pytest.raises(SystemExit) as ended:
        main([*USUAL, option])
    assert ended.value.code == ExitCode.USAGE
    assert "expected a" in capsys.readouterr().err


def test_logs_that_do_not_do(data, capsys):
    def refusal(code, **changes):
        name = f"other {len(list(data.iterdir()))}"
        given = {"drives": DRIVES, "people": PEOPLE, "reports": REPORTS, **changes}
        write_logs(made_logs(given["drives"], given["people"], given["reports"]), name)
        return complaint(capsys, code, "closed-loop", name, *USUAL[2:])

    assert "no such folder" in complaint(capsys, ExitCode.BAD_INPUT, "closed-loop", "nowhere", *USUAL[2:])
    assert "hold no detections" in refusal(ExitCode.USAGE, reports={})
    assert "no source 'good' with" in refusal(ExitCode.USAGE, reports={"good@fog": []})
    assert "expected DETECTOR or DETECTOR@CONDITION" in refusal(ExitCode.USAGE, reports={"good": [], "@fog": []})
    assert "unknown source of detections 'other'" in refusal(ExitCode.USAGE, reports={"other": []})
    free = {name: each for name, each in DRIVES.items() if not each[0]}
    assert "no positive log, so safety is undefined" in refusal(
        ExitCode.BAD_INPUT, drives=free, people=[], reports={"good": []}
    )
    blocked = {name: (True, drive) for name, (_, drive) in DRIVES.items()}
    assert "no negative log, so efficiency is undefined" in refusal(ExitCode.BAD_INPUT, drives=blocked)
    assert "somebody blocks the path" in refusal(ExitCode.BAD_INPUT, people=[*PEOPLE, (60, 5, 0)])


def test_few_logs_of_a_kind(data, capsys):
    drives = {name: DRIVES[name] for name in ("person 1", "free 1")}
    reports = {"good": sees(range(30), 0.9)}
    write_logs(made_logs(drives, PEOPLE[:30], reports), "two")
    document = result(capsys, "closed-loop", "two", *USUAL[2:])
    assert any("no bootstrap: it needs 2 positive and 2 negative logs" in each for each in document["remarks"])
    cell = document["metrics"][0]["rows"][0]["cells"][0]
    assert cell["area_interval"] == pytest.approx([0.025, 1])  # one of one
    assert "best_probability" not in cell


def test_people_without_a_position_are_told(data, capsys):
    people = [*PEOPLE[:-1], (PEOPLE[-1][0], np.nan, np.nan)]
    write_logs(made_logs(DRIVES, people, {"good": sees(range(30), 0.9)}), "some")
    told = result(capsys, "closed-loop", "some", *USUAL[2:])["remarks"]
    assert f"1 of {len(people)} people have no position: only ROC A and B ask whether they are found" in told


# --- robroc


def curve_rows(*curves):
    lines = ["detector,condition,sensitivity,safety,efficiency"]
    lines += [f"{name},{tau},{safety},{efficiency}" for name, points in curves for tau, safety, efficiency in points]
    return "\n".join(lines) + "\n"


def test_robroc_of_files_by_hand(tmp_path, monkeypatch, capsys):
    # Algorithm 1 by hand, see tests/closedloop/test_robroc.py: area 1/4 of 5/8.
    monkeypatch.chdir(tmp_path)
    baseline, fog = [(1, 0.25, 1), (3, 0.75, 0.5)], [(2, 0.5, 0.75), (3, 1, 0.25)]
    Path("a.csv").write_text(curve_rows(("d,baseline", baseline), ("d,fog", fog)))
    Path("b.csv").write_text(curve_rows(("e,baseline", [(1, 0.5, 0.5)])))
    document = result(capsys, "robroc", "a.csv", "b.csv", "--severity", "fog=severe")
    assert areas(document, "trade_off") == {("baseline", "d"): 0.5, ("baseline", "e"): 0.25, ("fog", "d"): 0.25}
    assert [each["name"] for each in document["inputs"]] == ["a.csv", "b.csv"]
    assert main(["robroc", "a.csv", "b.csv", "--plot", "p.png", "--plot-table", "t.png"]) == ExitCode.SATISFIED
    printed = capsys.readouterr().out
    assert "fog            0.250*(0.50)  -" in printed
    assert Path("p.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name files of curves, or --spec"),
        (["a.csv", "--spec", "s.ltl"], "name files of curves, or --spec"),
        (["a.csv", "--cm", "x.json"], "--cm belongs to --spec"),
        (["--spec", "s.ltl", "--safety", "a"], "--spec needs --safety NAME, --progress NAME and at least one --cm"),
        (["--spec", "s.ltl", "--safety", "a", "--progress", "b", "--cm", "=x"], "--cm: expected FILE or NAME=FILE"),
        (
            ["--spec", "s", "--safety", "a", "--progress", "b", "--cm", "x=1", "--cm", "x=2"],
            "--cm: two are called 'x'",
        ),
        (["a.csv", "--severity", "fog=mild"], "severity: unknown condition 'fog'"),
        (["a.csv", "a.csv"], "two curves for detector 'd' under condition 'baseline'"),
        (["a.csv", "--output", "a.csv"], "--output: a.csv is an input of this run"),
    ],
)
def test_robroc_arguments_that_do_not_fit(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(curve_rows(("d,baseline", [(1, 0.5, 1)])))
    assert message in complaint(capsys, ExitCode.USAGE, "robroc", *arguments)


def test_one_detector_is_no_choice_and_sensitivities_may_be_negative(tmp_path, capsys):
    (tmp_path / "a.csv").write_text(curve_rows(("d,baseline", [(-2, 0.5, 1), (-1, 1, 0.5)])))
    document = result(capsys, "robroc", str(tmp_path / "a.csv"))
    assert document["metrics"][0]["curves"][0]["sensitivity"] == [-2, -1]
    assert main(["robroc", str(tmp_path / "a.csv")]) == ExitCode.SATISFIED
    assert "Which detector" not in capsys.readouterr().out


def test_robroc_of_a_faulty_file_names_the_place(tmp_path, capsys):
    (tmp_path / "a.csv").write_text(curve_rows(("d,baseline", [(1, 0.5, 1), (2, "?", 1)])))
    assert "a.csv:3: safety: expected a finite number, got '?'" in complaint(
        capsys, ExitCode.BAD_INPUT, "robroc", str(tmp_path / "a.csv")
    )


# --- verified curves


@pytest.fixture
def families(root, tmp_path, monkeypatch):
    """Families over the thresholds 0.25 and 0.75 from the published matrices; at 0.75 half of what is found is lost.

    In the second one ("fog") a third is lost at 0.25.
    """
    monkeypatch.chdir(root)
    counts = read_counts("examples/nuscenes_yolov3_class.json")
    empty = counts.labels.index(frozenset())

    def weaker(share):
        table = counts.counts[0].copy()
        for column in range(table.shape[-1]):
            if column != empty:
                lost = table[:, :, column] // share
                lost[:, empty] = 0
                table[:, :, column] -= lost
                table[:, empty, column] += lost.sum(axis=1)
        return table

    for name, members in (("clear", (counts.counts[0], weaker(2))), ("fog", (weaker(3), weaker(2)))):
        family = replace(counts, thresholds=(0.25, 0.75), counts=np.stack(members), sequences=None)
        write_confusion(family, tmp_path / f"{name}.json")
    return tmp_path


VERIFIED = ["robroc", "--spec", "specs/car_pedestrian.ltl", "--safety", "stops_for_pedestrians", "--progress",
            "stops_only_for_pedestrians", "--env", "ped"]  # fmt: skip


def test_verified_curves_by_hand(families, capsys):
    given = ["--cm", f"yolo={families / 'clear.json'}", "--cm", f"yolo@fog={families / 'fog.json'}"]
    document = result(capsys, *VERIFIED, *given)
    # At walking pace the car needs one detection within ten metres: P is the recall there, 31/158, and with half of
    # the 31 lost (15) 16/158, with a third lost (10) 21/158. Nothing keeps the car from driving on: efficiency 1.
    clear, fog = document["metrics"][0]["curves"]
    assert clear["sensitivity"] == fog["sensitivity"] == [0.5, 0]
    assert clear["safety"] == pytest.approx([31 / 158, 16 / 158], abs=1e-12)
    assert fog["safety"] == pytest.approx([21 / 158, 16 / 158], abs=1e-12)
    assert clear["efficiency"] == fog["efficiency"] == [1, 1]
    assert areas(document, "verified") == {
        ("baseline", "yolo"): pytest.approx(31 / 158, abs=1e-12),
        ("fog", "yolo"): pytest.approx(21 / 158, abs=1e-12),
    }
    assert {each["role"] for each in document["inputs"]} == {"spec", "model", "confusion"}
    assert document["settings"]["sensitivity"] == "highest score threshold (0.75) - score threshold"
    assert document["versions"]["storm"]
    engines = document["settings"]["engines"]
    assert (engines["reported"], engines["second"]) == ("storm", "batch")
    assert 0 <= engines["largest_difference"] < 1e-12
    assert document["settings"]["matrices"].keys() == {"yolo", "yolo@fog"}
    assert document["settings"]["matrices"]["yolo"]["matching"].startswith("2-D IoU >= 0.7")
    assert document["settings"]["matrices"]["yolo"]["false_positives"] == "dropped"


def test_verified_curves_are_those_of_verify_run(families, capsys):
    document = result(capsys, *VERIFIED, "--cm", str(families / "fog.json"))
    (curve,) = document["metrics"][0]["curves"]
    assert curve["detector"] == "fog"
    for threshold, safety in zip((0.25, 0.75), curve["safety"], strict=True):
        run = ["run", VERIFIED[2], "--cm", str(families / "fog.json"), "--env", "ped", "--json"]
        main([*run, "--score-threshold", str(threshold)])
        found = {each["name"]: each for each in json.loads(capsys.readouterr().out)["requirements"]}
        assert safety == found["stops_for_pedestrians"]["points"][0]["probability"]


def test_verified_curves_that_cannot_be_made(families, capsys, tmp_path):
    def refusal(code, *changes, cm="clear.json"):
        arguments = list(VERIFIED)
        for old, new in changes:
            arguments[arguments.index(old)] = new
        return complaint(capsys, code, *arguments, "--cm", str(families / cm))

    assert "unknown requirement 'stops'\n  hint: " in refusal(ExitCode.USAGE, ("stops_for_pedestrians", "stops"))
    spec = tmp_path / "small.ltl"
    model = Path("models/car_pedestrian.toml").resolve()
    spec.write_text(f'model "{model}"\nplanner published\nrare: P <= 0.1 [ F at_line ]\nb: P = ? [ F at_line ]\n')
    changes = [(VERIFIED[2], str(spec)), ("stops_for_pedestrians", "rare"), ("stops_only_for_pedestrians", "b")]
    assert "rare asks for a small probability" in refusal(ExitCode.USAGE, *changes)
    write_confusion(read_counts("examples/nuscenes_yolov3_class.json"), families / "single.json")
    assert "no family over score thresholds" in refusal(ExitCode.BAD_INPUT, cm="single.json")
    every = [*VERIFIED, "--planner", "all", "--cm", str(families / "clear.json")]
    assert "a curve is of one: --planner NAME" in complaint(capsys, ExitCode.USAGE, *every)


def test_odd_names_are_shown_letter_by_letter(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    odd = "cost $x^{ \x1b[2J"
    points = [(1, 0.5, 1), (2, 0.7, 0.4)]
    Path("a.csv").write_text(curve_rows((f"{odd},baseline", points), (f"{odd},{odd}", points)))
    for name in ("p.svg", "t.svg"):
        option = "--plot" if name == "p.svg" else "--plot-table"
        assert main(["robroc", "a.csv", option, name]) == ExitCode.SATISFIED
        assert Path(name).stat().st_size > 1000
    assert "\x1b" not in capsys.readouterr().out


def test_workers_drive_the_same_curves(data, capsys):
    outputs = ["--csv", "rows.csv", "--curves", "curves.json", "--output", "found.json"]
    made = []
    with cluster(2, processes=False) as address:
        for more in ([], ["--scheduler", address]):
            assert main([*USUAL, *outputs, *more]) == ExitCode.SATISFIED
            made.append([Path(name).read_bytes() for name in ("rows.csv", "curves.json", "found.json")])
            told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("tcp://127.0.0.1:")]
            assert sum(int(line.split(": ")[1].split(" blocks")[0]) for line in told) == (4 if more else 0)
    assert made[0] == made[1]
