"""`verify collision` with options and data at the edge of what can be: refused clearly, or answered in full."""

import json
from functools import partial

import numpy as np
import pytest
from typed_documents import read_back

from verifier.base.errors import ExitCode

SMALL = ["--distances", "5,15", "--speeds", "25 mph", "--bootstrap", "0"]


def table(seed, bias, spread, images=150):
    """Made-up pairs: one or two objects in each image."""
    rng = np.random.default_rng(seed)
    rows = ["image,true_m,predicted_m"]
    for image in range(images):
        for _ in range(rng.integers(1, 3)):
            true = rng.uniform(1, 40)
            rows.append(f"{image},{true:.3f},{max(true * (1 + spread * rng.standard_normal()) + bias, 0):.3f}")
    return "\n".join(rows) + "\n"


@pytest.fixture
def run(tmp_path, monkeypatch, verify):
    """Run `verify collision` in a folder with two tables; exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "far.csv").write_text(table(1, 1.5, 0.05))
    (tmp_path / "wide.csv").write_text(table(1, 0.0, 0.2))

    return partial(verify, "collision")


LOOP = ["--closed-loop", "20", "--empty-bins", "neighbour", "--loop-speeds", "20 mph"]
TWO = ["--pairs", "far=far.csv", "--pairs", "wide=wide.csv"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.csv", "--level", "nan"], "the confidence level must be between 0 and 1, got nan"),
        (["far.csv", "--ranking-replicates", "9"], "--ranking-replicates goes with two detectors or more"),
        ([*TWO, "--alpha-loss", "1e-308"], "beta / alpha is too large for a number: 10 / 1e-308"),
        # 11.176^2 / 2e-308 is beyond double precision.
        (["far.csv", "--deceleration", "1e-308"],
         "the stopping distance from 11.176 m/s is too large for a number: deceleration 1e-308 m/s^2, reaction time "
         "0.1 s"),
        (["far.csv", "--reaction", "1e308"],
         "the stopping distance from 11.176 m/s is too large for a number: deceleration 6.86 m/s^2, reaction time "
         "1e+308 s"),
        (["far.csv", "--distances", "..5"],
         "--distances: expected LOW..HIGH, LOW..HIGH:STEP or numbers by commas, got '..5'"),
        (["far.csv", *LOOP, "--period", "1e308"], "period_s: expected a number from 1e-09 to 1e+06, got 1e+308"),
        (["far.csv", *LOOP, "--near", "1e308"], "near_m: expected a number from 0 to 1e+06, got 1e+308"),
    ],
)  # fmt: skip
def test_numbers_out_of_range_are_refused(run, arguments, message):
    assert run(*SMALL, *arguments) == (ExitCode.USAGE, "", f"verify: {message}\n")


def test_images_without_number_are_refused_before_they_are_named(run):
    # A name for each of 10^9 images would take some 10^11 bytes.
    code, out, err = run("far.csv", *SMALL, "--images", "1000000000")
    assert (code, out) == (ExitCode.BAD_INPUT, "")
    assert err == "verify: 1000000000 images are too many; at most 2000000 are counted\n"
    assert run("far.csv", *SMALL, "--images", "3000")[0] == 0


def test_a_result_inside_a_folder_of_annotations_would_overwrite_one(run, tmp_path):
    folder = tmp_path / "label_2"
    folder.mkdir()
    (folder / "000000.txt").write_text("kept")
    code, out, err = run("--format", "kitti_object", "--annotations", "label_2", "--detections", "label_2",
                         "--output", "label_2/000000.txt")  # fmt: skip
    assert (code, out) == (ExitCode.USAGE, "")
    assert err == "verify: --output: label_2/000000.txt is in an input of this run, label_2\n"
    assert (folder / "000000.txt").read_text() == "kept"


def test_a_detector_without_spread_is_named(run, tmp_path):
    (tmp_path / "equal.csv").write_text("image,true_m,predicted_m\n0,10,10\n1,9,10\n2,11,10\n")
    code, out, err = run("--pairs", "equal=equal.csv", "--pairs", "same=equal.csv", *SMALL)
    assert (code, out) == (ExitCode.USAGE, "")
    assert err == "verify: equal cannot be resampled: its reported distances have no spread\n"


def test_ends_that_cross_are_not_trusted(run, root, tmp_path):
    # Seven images reported near 12.5 m do not collide, seven near 14.5 m do. With lambda falling, the first say at
    # 13 m at most 1 - 0.025^(1/7) = 0.41, the others at least 0.025^(1/7) = 0.59: no probability is both. Seven are
    # too few for a contradiction beyond chance over the whole grid.
    rows = [(20.0, 12.5)] * 7 + [(5.0, 14.5)] * 7 + [(5.0, 5.0)] * 15 + [(30.0, 30.0)] * 15
    lines = [f"{at},{true},{reported + 0.01 * (at % 7):.2f}" for at, (true, reported) in enumerate(rows)]
    (tmp_path / "crossed.csv").write_text("\n".join(["image,true_m,predicted_m", *lines]) + "\n")
    code, out, err = run("crossed.csv", "--distances", "5..30", "--speeds", "25 mph", "--bootstrap", "0", "--json",
                         "--plot-intervals", "crossed.png")  # fmt: skip
    assert (code, err) == (0, "")
    document = json.loads(out)
    read_back(document)
    found = document["policies"][0]["detectors"][0]
    at = document["grid"]["distances_m"].index(13.0)
    monotone = next(each for each in found["intervals"] if each["kind"] == "exact_monotone")
    assert monotone["lower"][at][0] == pytest.approx(0.025 ** (1 / 7))
    assert monotone["upper"][at][0] == pytest.approx(1 - 0.025 ** (1 / 7))
    trusted = document["codes"]["trust"][str(found["trust"][at][0])]
    assert (
        trusted == "exact_window: the ends of the exact monotone interval cross: a share that falls does not fit here"
    )


def test_the_narrowest_kernel_is_not_trusted(run, tmp_path):
    # A parked car seen in fifty frames: every pair has near copies that forecast it, whatever the error is.
    rng = np.random.default_rng(3)
    places = [(rng.uniform(1, 40), rng.normal(0, 3)) for _ in range(60)]
    rows = ["image,true_m,predicted_m"]
    for image in range(50 * len(places)):
        true, error = places[image % len(places)]
        rows.append(f"{image},{true + rng.normal(0, 0.001):.4f},{max(true + error, 0) + rng.uniform(0, 0.001):.4f}")
    (tmp_path / "parked.csv").write_text("\n".join(rows) + "\n")
    code, out, err = run("parked.csv", "--distances", "1..40", "--speeds", "25,40 mph", "--bootstrap", "0", "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert any(
        each.startswith("parked: cross-validation took the narrowest kernel that it tries")
        for each in document["remarks"]
    )
    # Subsampling is trusted nowhere.
    assert not any(code == 0 for row in document["policies"][0]["detectors"][0]["trust"] for code in row)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--bandwidth", "normal_reference", "--constant", "1e-300"],
        ["--bandwidth", "normal_reference", "--constant", "1e250"],
        ["--level", "1e-300"],
        ["--deceleration", "1e300"],
        ["--subsamples", "1", "--subsample-size", "1"],
    ],
)
def test_extreme_but_possible_numbers_give_a_valid_document(run, root, arguments):
    code, out, err = run("far.csv", *SMALL[:-2], "--bootstrap", "3", "--json", *arguments)
    assert (code, err) == (0, "")
    read_back(json.loads(out))


def test_the_bytes_do_not_depend_on_the_folder(run, tmp_path, monkeypatch):
    texts = []
    for name in ("one", "other folder"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "far.csv").write_bytes((tmp_path / "far.csv").read_bytes())
        monkeypatch.chdir(folder)
        texts.append(run(folder / "far.csv", *SMALL, "--json")[1])
    assert texts[0] == texts[1] != ""


def test_an_interrupted_run_leaves_nothing(run, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("verifier.collision.study.closed_loop_intervals", interrupted)
    before = sorted(tmp_path.iterdir())
    outputs = ["--output", "found.json", "--csv", "found.csv"]
    found = run("far.csv", "--distances", "5,15", "--bootstrap", "3", *LOOP, *outputs)
    assert found == (130, "", "verify: interrupted\n")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("cells", [[True, False, True], np.array(["2020-01-01"] * 3, dtype="datetime64[us]")])
def test_columns_of_something_else_are_no_distances(run, tmp_path, cells):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"image": ["a", "b", "c"], "true_m": cells, "predicted_m": [5.0, 6.0, 7.0]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "odd.parquet")
    code, out, err = run("odd.parquet", *SMALL)
    assert (code, out) == (ExitCode.BAD_INPUT, "")
    assert err.startswith("verify: odd.parquet: column 'true_m': expected numbers, got ")
