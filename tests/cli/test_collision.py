"""`verify collision` as a user meets it: tables, documents, pictures, exit codes, and what it refuses."""

import csv
import json
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from typed_documents import read_back

from verifier.base.errors import ExitCode
from verifier.cli import main
from verifier.cli.terminal import Bars, progress_bar

# Twenty images with an object at 5 m and twenty with one at 15 m, each reported where it is. S(25 mph) = 10.22 m.
PERFECT = "image,true_m,predicted_m\n" + "".join(
    f"{number},{distance},{distance}\n" for number in range(40) for distance in [5 if number < 20 else 15]
)
SMALL = ["--distances", "5,15", "--speeds", "25 mph", "--bandwidth", "0.1", "--bootstrap", "0"]


def noisy(seed, bias, spread, images=120):
    """A table of made-up pairs: one or two objects in each image, one in ten without a report."""
    rng = np.random.default_rng(seed)
    rows = ["image,true_m,predicted_m"]
    for image in range(images):
        for _ in range(rng.integers(1, 3)):
            true = rng.uniform(1, 40)
            report = max(true * (1 + spread * rng.standard_normal()) + bias, 0)
            rows.append(f"{image},{true:.3f},{report:.3f}" if rng.random() > 0.1 else f"{image},{true:.3f},")
    return "\n".join(rows) + "\n"


@pytest.fixture
def run(tmp_path, monkeypatch, verify):
    """Run `verify collision` in a folder with some tables; exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "perfect.csv").write_text(PERFECT)
    (tmp_path / "far.csv").write_text(noisy(1, 1.5, 0.05))
    (tmp_path / "wide.csv").write_text(noisy(1, 0.0, 0.2))

    return partial(verify, "collision")


def test_the_table_of_a_perfect_detector(run):
    # Twenty of twenty collide at 5 m, none of twenty at 15 m: exact ends 0.05^(1/20) = 0.861 and 1 - 0.861 = 0.139.
    code, out, err = run("perfect.csv", *SMALL)
    assert (code, err) == (0, "")
    assert (
        out
        == """\
perfect
perfect, independence of pairs and their number: not tested, each image has one pair.
* perfect: 40 pairs of 40 objects, 40 images
* The oracle reports every true distance; it is estimated from the same pairs. Above the oracle: how much more \
probable a collision is with the detector, given what is reported, on average over distances and speeds; below: how \
much less. Covered: the share of the weight where both are defined.
* One report: the car brakes or keeps its speed by the first report alone. Closed loop: it decides again with every \
report, until it stands or has come too close; by Storm.

Detectors, braking with 6.86 m/s² after 0.1 s: S(25 mph) = 10.22 m
detector  pairs  images  kernel  above the oracle  below the oracle  covered
--------  -----  ------  ------  ----------------  ----------------  -------
perfect   40     40      0.1 m   0                 0                 100 %

perfect: probability of collision, given the reported distance and the speed; 95 % intervals
reported  25 mph  recommended interval       all points at once
--------  ------  -------------------------  ------------------
5 m       1       [0.831, 1] exact_monotone  [0.803, 1]
15 m      0       [0, 0.169] exact_monotone  [0, 0.197]

Recommended interval, over 2 points:
* 100 %: exact_monotone: fewer than 10 independent images near this distance collide, or fewer than 10 do not
Intervals: what each covers and assumes:
* exact_window: the probability of collision averaged over a window of reported distances; images independent of \
each other
* exact_monotone: the probability of collision at the reported distance; images independent of each other, and a \
probability that does not rise with the reported distance
* exact_simultaneous: the probability of collision at all reported distances and speeds at once; images independent \
of each other, and a probability that does not rise with the reported distance
* subsampling: the probability of collision at the reported distance; many pairs, independent of each other, and a \
kernel narrow beside the error
"""
    )


TWO = ["--pairs", "far=far.csv", "--pairs", "wide=wide.csv", "--distances", "4..36:4", "--speeds", "10..50:10 mph",
       "--bootstrap", "20", "--ranking-replicates", "20"]  # fmt: skip
LOOP = ["--closed-loop", "24", "--empty-bins", "neighbour"]


def test_the_document_holds_everything(run, tmp_path):
    arguments = [*TWO, *LOOP, "--deceleration", "3.92", "--deceleration", "6.86", "--seed", "5"]
    code, out, err = run(*arguments, "--json", "--output", "result.json", "--csv", "result.csv")
    assert (code, err) == (0, "")
    assert out == (tmp_path / "result.json").read_text()
    document = json.loads(out)
    read_back(document)
    assert str(tmp_path) not in out
    assert [each["deceleration_mps2"] for each in document["policies"]] == [3.92, 6.86]
    assert [each["title"] for each in document["inputs"]] == ["far", "wide"]
    first = document["policies"][0]
    assert [each["title"] for each in first["detectors"]] == ["far", "wide"]
    assert {each["kind"] for each in first["detectors"][0]["intervals"]} == {
        "subsampling", "bootstrap_percentile", "exact_window", "exact_monotone",
        "exact_simultaneous",
    }  # fmt: skip
    for each in first["detectors"]:
        for point in each["closed_loop"]["points"]:
            assert point["one_shot"] - 1e-12 <= point["closer"] <= 1
            assert point["lower"] <= point["closer"] <= point["upper"]
            assert abs(point["closer"] - point["second_engine"]) < 1e-9
    rows = list(csv.DictReader((tmp_path / "result.csv").open()))
    assert len(rows) == 2 * 2 * 9 * 5
    # A row of the table is an entry of the document.
    row = next(r for r in rows if (r["detector"], r["distance_m"], r["deceleration_mps2"]) == ("wide", "8.0", "6.86"))
    at = document["grid"]["distances_m"].index(8.0), document["grid"]["speeds_mps"].index(float(row["speed_mps"]))
    assert float(row["probability"]) == document["policies"][1]["detectors"][1]["probability"][at[0]][at[1]]


def test_another_seed_changes_what_is_drawn_and_nothing_else(run):
    one, other = (json.loads(run(*TWO, "--json", "--seed", seed)[1])["policies"][0] for seed in (1, 2))
    for a, b in zip(one["detectors"], other["detectors"], strict=True):
        assert (a["probability"], a["oracle"]) == (b["probability"], b["oracle"])
        assert a["intervals"] != b["intervals"]
    assert one["ranking"]["scores"] == other["ranking"]["scores"]
    assert one["ranking"]["ratios"] != other["ranking"]["ratios"]


def test_the_tables_of_two_detectors(run):
    code, out, err = run(*TWO, *LOOP)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "far, wide"
    assert sum(line.startswith("Ranking: L / alpha = above + ratio x below") for line in lines) == 1
    assert any(line.startswith("far (first) against wide (second): ") for line in lines)
    assert any(line.startswith("Combination, each point to the detector closer to its oracle") for line in lines)
    assert sum("closed loop from a first report at 24 m, a report every 0.1 s" in line for line in lines) == 2
    # What is reported too far away lies above the oracle: beta on that side turns the order round.
    assert ranked(out, "far", "wide") == ["far", "wide"]
    heavy = run(*TWO, "--heavy", "above")[1]
    assert ranked(heavy, "far", "wide") == ["wide", "far"]
    assert "Ranking: L / alpha = below + ratio x above" in heavy
    assert "'--heavy above' weighs that side" in out
    assert "the paper prints the other side" in heavy


def test_other_ways_of_driving(run):
    def points(*arguments):
        document = json.loads(run("far.csv", *LOOP, "--loop-speeds", "15,30 mph", "--bootstrap", "0", "--json",
                                  *arguments)[1])  # fmt: skip
        return document["policies"][0]["detectors"][0]["closed_loop"]["points"]

    # A margin of 3 m covers reports that are 1.5 m too far.
    wide = points("--margin", "3")[0]["closer"]
    assert wide < 0.05 < points()[0]["closer"]
    # To keep 2 m is harder than not to collide, and twice as many reports help.
    assert points("--near", "2", "--margin", "3")[0]["closer"] > wide
    assert points("--margin", "3", "--period", "0.05")[0]["closer"] <= wide


def ranked(out, *names):
    """The order at the ratio of the penalties, 10 where none is asked for."""
    lines = (line.split() for line in out[out.index("Ranking:") :].splitlines())
    row = next(words for words in lines if words[:1] == ["10"])
    return [word.rstrip(",") for word in row[1 : 1 + len(names)]]


def test_reports_that_are_too_far_are_ranked_last_where_they_weigh(run):
    # The one detector reports 1.5 m too far: nearly all of its difference lies above the oracle.
    document = json.loads(run(*TWO, "--json", "--heavy", "above")[1])
    ranking = document["policies"][0]["ranking"]
    far, wide = ranking["scores"]
    assert far["above"] > 3 * far["below"]
    assert far["above"] > wide["above"]
    assert ranking["ratios"][-1]["order"] == [1, 0]
    below = json.loads(run(*TWO, "--json")[1])["policies"][0]["ranking"]
    assert below["ratios"][-1]["order"] == [0, 1]
    assert below["scores"] == ranking["scores"]


PICTURES = ["--plot", "--plot-intervals", "--plot-comparison", "--plot-ranking", "--plot-closed-loop"]


def test_pictures_are_written_and_stable(run, tmp_path):
    endings = ["svg", "svg", "png", "pdf", "svg"]
    targets = [
        word for name, ending in zip(PICTURES, endings, strict=True) for word in (name, f"{name[2:]}.{ending}")
    ]
    few = [*TWO[:6], "--speeds", "20..40:20 mph", *TWO[8:]]
    code, _, err = run(*few, *LOOP, *targets)
    assert (code, err) == (0, "")
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.suffix != ".csv"}
    assert len(made) == len(PICTURES)
    assert all(len(picture) > 10_000 for picture in made.values())
    run(*few, "--plot", "again.svg")
    assert (tmp_path / "again.svg").read_bytes() == made["plot.svg"]


def test_two_bandwidths_are_not_resampled(run):
    document = json.loads(run(*TWO[:-4], "--two-bandwidths", "--json")[1])
    found = document["policies"][0]
    assert (found["ranking"], found["comparisons"][0]["bootstrap_p_value"]) == (None, None)
    assert "with two bandwidths images cannot be resampled: there is no ranking" in document["remarks"]
    code, out, err = run(*TWO[:-4], "--two-bandwidths", "--plot-ranking", "ranking.svg")
    assert (code, out) == (ExitCode.USAGE, "")
    assert err == "verify: --plot-ranking: with two bandwidths there is no ranking\n"


def test_an_operational_profile_weighs_the_score(run, tmp_path):
    (tmp_path / "profile.csv").write_text("distance_m,speed_kmh,weight\n8,32.2,3\n12,32.2,1\n")
    document = json.loads(run(*TWO, "--weight", "profile.csv", "--json")[1])
    found = document["policies"][0]
    assert document["settings"]["weight"].startswith("profile.csv (sha256 ")
    grid = document["grid"]
    at = [grid["distances_m"].index(each) for each in (8.0, 12.0)]
    v = int(np.argmin(np.abs(np.array(grid["speeds_mps"]) - 32.2 / 3.6)))
    detector = found["detectors"][1]
    excess = [detector["probability"][y][v] - detector["oracle"][y][v] for y in at]
    assert detector["score"]["above"] == pytest.approx(0.75 * max(excess[0], 0) + 0.25 * max(excess[1], 0), abs=1e-12)
    assert detector["score"]["below"] == pytest.approx(
        0.75 * max(-excess[0], 0) + 0.25 * max(-excess[1], 0), abs=1e-12
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("distance_m,speed,weight\n", "profile.csv:1: expected one column of speeds, found none\n"
         "  hint: name it speed_mps, speed_kmh, speed_mph, speed_kn: the name says the unit"),
        ("distance_m,speed_mps,speed_mph,weight\n",
         "profile.csv:1: expected one column of speeds, found speed_mps, speed_mph\n"
         "  hint: name it speed_mps, speed_kmh, speed_mph, speed_kn: the name says the unit"),
        ("distance_m,speed_mph,weight\n8,20,-1\n",
         "profile.csv:2: weight: expected a number from 0, got -1"),
        ("distance_m,speed_mph,weight\n8,,1\n",
         "profile.csv:2: speed_mph: expected a finite number, got an empty cell"),
        ("distance_m,speed_mph,weight\n80,20,1\n",
         "row 1 of the profile: distance 80 m, speed 8.9408 m/s is not on the grid, 4..36 m and 4.4704..22.352 m/s"),
    ],
)  # fmt: skip
def test_faulty_profiles_are_refused(run, tmp_path, text, message):
    (tmp_path / "profile.csv").write_text(text)
    code, out, err = run(*TWO, "--weight", "profile.csv")
    assert code in (ExitCode.BAD_INPUT, ExitCode.USAGE)
    assert (out, err) == ("", f"verify: {message}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name the data: PAIRS.csv, --pairs NAME=FILE, --record FILE, or --format NAME --annotations PATH "
         "--detections PATH"),
        (["perfect.csv", "--speeds", "5..75"], "--speeds: expected a range and one unit of m/s, km/h, mph, kn, "
         "both in quotes as '5..75 mph', got '5..75'"),
        (["perfect.csv", "--speeds", "5 mph..75 km/h"],
         "--speeds: expected a range and one unit of m/s, km/h, mph, kn, both in quotes as '5..75 mph', got "
         "'5 mph..75 km/h'"),
        (["perfect.csv", "--speeds", "5..75 furlongs"],
         "--speeds: expected a range and one unit of m/s, km/h, mph, kn, both in quotes as '5..75 mph', got "
         "'5..75 furlongs'"),
        (["perfect.csv", "--speeds", "-5..75 mph"], "a speed must be finite and at least 0, got -5 mph"),
        (["perfect.csv", "--distances", "1..50:0.3"],
         "--distances: '1..50:0.3' does not go from low to high in whole steps"),
        (["perfect.csv", "--distances", "5,3"], "--distances: expected rising numbers, got '5,3'"),
        (["perfect.csv", "--distances", "near"], "--distances: expected LOW..HIGH, LOW..HIGH:STEP or numbers by "
         "commas, got 'near'"),
        (["perfect.csv", "--distances", "0..2000000"], "--distances: '0..2000000' has more than 1000000 values"),
        (["perfect.csv", "--at", "26.5 mph"], "--at: 11.8466 m/s is not a speed of the grid, --speeds '5..75 mph'"),
        (["perfect.csv", "--deceleration", "-6.86"],
         "the deceleration must be positive, got -6.86 m/s^2: speed falls by it"),
        (["perfect.csv", "--deceleration", "4", "--deceleration", "4.0"], "--deceleration: a value is given twice"),
        (["perfect.csv", "--reaction", "-1"], "the reaction time must be at least 0, got -1 s"),
        (["perfect.csv", "--bandwidth", "wide"],
         "--bandwidth: expected cross_validated, normal_reference or metres, got 'wide'"),
        (["perfect.csv", "--bandwidth", "0"], "the kernel width must be positive, got 0 m"),
        (["perfect.csv", "--constant", "2"], "--constant goes with --bandwidth normal_reference"),
        (["perfect.csv", "--level", "1.5"], "the confidence level must be between 0 and 1, got 1.5"),
        (["perfect.csv", "--alpha-loss", "-1"], "alpha must be at least 0, got -1"),
        (["perfect.csv", "--subsamples", "0"], "the number of the subsamples must be at least 1, got 0"),
        (["perfect.csv", "--bootstrap", "-1"], "--bootstrap: expected a whole number from 0, got -1"),
        (["perfect.csv", "--seed", "-1"], "--seed: expected a whole number from 0, got -1"),
        (["perfect.csv", "--images", "3"], "3 images are too few: perfect.csv names 40"),
        (["perfect.csv", "--class", "Car"], "perfect.csv:1: no column 'class'\n"
         "  hint: the file has: image, true_m, predicted_m"),
        (["perfect.csv", "--pairs", "b=far.csv"],
         "with several detectors each needs a name: --pairs NAME=perfect.csv"),
        (["--pairs", "a=far.csv", "--pairs", "a=wide.csv"], "two detectors have one name: a, a"),
        (["--pairs", "a=none.csv"], "none.csv: no such file"),
        (["--record", "far.csv"], "--record: name the measure of distance that verify confusion counted with: "
         "--distance MEASURE (its default is euclidean_3d); the record does not say"),
        (["perfect.csv", "--distance", "forward"], "--distance goes with --record or --detections"),
        (["perfect.csv", "--min-score", "0"], "--min-score belongs to --detections"),
        (["--record", "far.csv", "--images", "9"], "--images goes with tables of pairs"),
        (["perfect.csv", "--margin", "1"], "--margin belongs to --closed-loop"),
        (["--detections", "far.csv"], "--detections goes with --format NAME and --annotations PATH"),
        (["perfect.csv", "--plot", "a.jpg"], "--plot: expected a file name ending in .png, .svg, .pdf, got a.jpg"),
        (["perfect.csv", "--plot-comparison", "map.png"], "--plot-comparison needs two detectors or more"),
        (["perfect.csv", "--plot-closed-loop", "map.png"], "--plot-closed-loop belongs to --closed-loop"),
        (["perfect.csv", "--output", "no/such.json"],
         "no/such.json: cannot be written: no such folder, or a folder itself"),
        (["--pairs", "a=far.csv", "--output", "far.csv"], "--output: far.csv is an input of this run"),
        (["perfect.csv", "--output", "a.json", "--csv", "a.json"],
         "--output and --csv would be written to the same file"),
        (["perfect.csv", "--closed-loop", "90", "--bandwidth", "0.5"],
         "perfect: no pair is reported within 3 m of the first report at 90 m"),
        (["perfect.csv", "--closed-loop", "15"],
         "perfect: no object in the bins [0, 2) m, [2, 4) m, [6, 8) m, [8, 10) m and 2 more of the true distance, "
         "which the vehicle drives through\n"
         "  hint: use wider bins (--bin), or name what to assume there (--empty-bins neighbour)"),
        (["perfect.csv", "--closed-loop", "15", "--reaction", "0.25", "--period", "0.1"],
         "a reaction time of 0.25 s is no whole number of periods of 0.1 s"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_and_nothing_is_written(run, tmp_path, arguments, message):
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    code, out, err = run(*arguments)
    assert (out, err) == ("", f"verify: {message}\n")
    assert code in (ExitCode.USAGE, ExitCode.BAD_INPUT)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_degenerate_data_give_no_numbers_and_say_why(run, tmp_path):
    (tmp_path / "one.csv").write_text("image,true_m,predicted_m\na,10,10\n")
    (tmp_path / "equal.csv").write_text("image,true_m,predicted_m\na,10,10\nb,9,10\nc,11,10\n")
    for name, why in (("one", "the reported distances have no spread"), ("equal", "the reported distances have no")):
        code, out, err = run(f"{name}.csv", "--json", "--bootstrap", "0")
        assert (code, err) == (0, "")
        document = json.loads(out)
        table = document["policies"][0]["detectors"][0]["probability"]
        assert {each for row in table for each in row} == {None}
        assert any(why in remark for remark in document["remarks"])
        assert "-" in run(f"{name}.csv", "--bootstrap", "0")[1]
    # Beyond the data, and a vehicle that stands.
    document = json.loads(run("perfect.csv", "--distances", "5,15,90", "--speeds", "0,25 mph", "--bandwidth", "1",
                              "--bootstrap", "0", "--json")[1])  # fmt: skip
    found = document["policies"][0]["detectors"][0]
    assert found["probability"] == [[0, 1], [0, 0], [None, None]]
    reason = document["codes"]["reason"][str(found["reason"][2][0])]
    assert reason == "no distance was reported near this one"


def test_a_record_of_the_counts_is_read(run, tmp_path, capfd):
    rng = np.random.default_rng(0)
    true = rng.uniform(2, 30, 60)
    truth = "".join(f"{number},ped,{x:.2f},0\n" for number, x in enumerate(true))
    found = "".join(f"{number},ped,0.9,{x + 0.5:.2f},0\n" for number, x in enumerate(true))
    (tmp_path / "truth.csv").write_text("frame,class,x,y\n" + truth)
    (tmp_path / "found.csv").write_text("frame,class,score,x,y\n" + found)
    counting = "confusion --format table --annotations truth.csv --detections found.csv --record record.csv"
    assert main(counting.split()) == 0
    capfd.readouterr()
    code, out, err = run("--record", "mine=record.csv", "--distance", "euclidean_3d", "--class", "ped", "--json")
    assert (code, err) == (0, "")
    (read,) = json.loads(out)["inputs"]
    assert (read["title"], read["format"], read["pairs"], read["images"]) == ("mine", "record", 60, 60)
    # The same detections without the record, matched by the centres on the ground.
    code, out, err = run("--format", "table", "--annotations", "truth.csv", "--detections", "found.csv",
                         "--affinity", "centre_bev", "--json")  # fmt: skip
    assert (code, err) == (0, "")
    assert json.loads(out)["inputs"][0]["matching"]["threshold"] == 2.0
    code, _, err = run("--format", "table", "--annotations", "truth.csv", "--detections", "found.csv")
    assert code == ExitCode.USAGE
    assert err == (
        "verify: the paper's rule compares image rectangles, which the annotations do not have; name another "
        "matching\n"
    )


def test_help_is_fast(root):
    command = (
        "import sys; from verifier.cli import main\ntry:\n main(['collision', '--help'])\nexcept SystemExit: pass\n"
    )
    command += "assert 'numpy' not in sys.modules and 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", command], check=True, capture_output=True, cwd=root, timeout=60)


def test_progress_is_shown_where_somebody_looks(run, monkeypatch):
    code, out, err = run(*TWO, *LOOP)
    assert (code, err) == (0, "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    code, watched, _ = run(*TWO, *LOOP)
    assert (code, watched) == (0, out)


def test_without_a_terminal_progress_is_told_in_a_plain_line_now_and_then(monkeypatch, capfd):
    now = [0.0]
    monkeypatch.setattr("verifier.cli.terminal.time.monotonic", lambda: now[0])
    for _ in progress_bar("abcdef"):
        now[0] += 20
    with Bars() as bars:
        told = bars("rows")
        now[0] += 40
        told(7, 0)  # how many there are is not known yet
    assert capfd.readouterr().err.splitlines() == [
        "verify: 2 of 6 chains, about 80 s left",
        "verify: 4 of 6 chains, about 40 s left",
        "verify: 7 of ? rows",
    ]


def test_each_stage_has_a_bar_of_its_own(monkeypatch, capfd):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Bars() as bars:
        told = bars("first")
        told(1, 4)
        bar = bars._bar
        assert (bar.n, bar.total, bar.desc) == (1, 4, "first")
        bars("second")
        assert bar.disable
        assert bars._bar.desc == "second"
    assert bars._bar is None
