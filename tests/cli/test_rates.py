"""`verify adr` and `verify predict` as people use them: by hand, against the parts, and Table IV of the paper."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

from verifier.base.documents import read_document
from verifier.base.errors import ExitCode
from verifier.cli import main
from verifier.perception.detections import read_detections
from verifier.perception.matching import MatchingPolicy
from verifier.robustness.adr import AdrSettings
from verifier.robustness.draws import adr_intervals
from verifier.robustness.mutators.batch_result import folder_name
from verifier.robustness.mutators.sweeps import published
from verifier.robustness.predicting import PredictResult
from verifier.robustness.prediction import AdrTable, predict
from verifier.robustness.rates import AdrResult, published_order, published_severities
from verifier.telling.figures.robustness import curves_figure, prediction_figure, table_figure, weights_figure

# Four objects in images 0 to 3 of ten; false positives lie far off. Worked out in tests/robustness/test_adr.py.
CLEAR = [(0, 0, 0.9), (1, 0, 0.7), (2, 0, 0.4), (5, 3, 0.8), (6, 3, 0.6), (0, 3, 0.5)]
DARK = [(0, 0, 0.65), (1, 0, 0.45), (2, 0, 0.15), (5, 3, 0.55), (6, 3, 0.35), (0, 3, 0.25)]
LEVELS = ["--level", "0.05", "--level", "0.1", "--level", "0.25", "--level", "0.5"]


def coco(folder, found, name):
    """Results of boxes 10 pixels wide in lanes 50 pixels apart."""
    rows = [
        {"image_id": image, "category_id": 1, "bbox": [50 * lane, 0, 10, 10], "score": score}
        for image, lane, score in found
    ]
    (folder / name).write_text(json.dumps(rows))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    boxes = [
        {"id": 7 + image, "image_id": image, "category_id": 1, "bbox": [0, 0, 10, 10], "area": 100, "iscrowd": 0}
        for image in range(4)
    ]
    images = [{"id": image, "file_name": f"{image}.png", "width": 200, "height": 20} for image in range(10)]
    truth = {"images": images, "categories": [{"id": 1, "name": "ped"}], "annotations": boxes}
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    coco(tmp_path, CLEAR, "clear.json")
    coco(tmp_path, DARK, "dark.json")
    return tmp_path


ADR = ["adr", "--annotations", "truth.json", "--detections", "a=clear.json", "--detections", "a@dark=dark.json"]


def test_by_hand(folder, capsys):
    assert main([*ADR, *LEVELS, "-o", "adr.json", "--objects", "objects.csv", "--csv", "rows.csv"]) == 0
    found = read_document(AdrResult, json.loads((folder / "adr.json").read_text()), "adr.json")
    clear, dark = found.rates
    assert (clear.adr, clear.normalised) == (0.5, 1)
    assert (dark.adr, dark.normalised) == (5 / 16, 5 / 8)
    assert dark.false_positive_rates == (0, 0, 0.1, 0.3)
    at = {level: place for place, level in enumerate(np.geomspace(1e-4, 1, 101).round(12).tolist())}
    assert clear.curve_miss_rates[at[0.1]] == 1 / 2  # above .6: .9 and .7 of four
    assert dark.curve_miss_rates[at[0.1]] == 3 / 4  # above .6: .65
    assert clear.curve_false_positives[at[0.1]] == 0.1
    assert dark.curve_miss_rates[-1] == 1 / 4
    # st of .9 is 0, of .65 one of ten; .7 one, .45 three; .4 and .15 three; the fourth is not found at all.
    rows = list(csv.DictReader((folder / "objects.csv").read_text().splitlines()))
    assert [(each["image"], each["object"], each["before"], each["after"]) for each in rows] == [
        ("0.png", "7", "0.0", "0.1"),
        ("1.png", "8", "0.1", "0.3"),
        ("2.png", "9", "0.3", "0.3"),
        ("3.png", "10", "", ""),
    ]
    out = capsys.readouterr().out
    assert "0.312" in out
    assert "(0.62)" in out
    assert "1 of 4 rates of false positives cannot be distinguished from none" in out


def test_intervals_are_those_of_the_part(folder):
    assert main([*ADR, *LEVELS, "-o", "adr.json", "--draws", "200", "--confidence", "0.9", "--seed", "4"]) == 0
    rows = json.loads((folder / "adr.json").read_text())["rates"]
    data = {name: read_detections("coco", "truth.json", f"{name}.json") for name in ("clear", "dark")}
    settings = AdrSettings((0.05, 0.1, 0.25, 0.5), MatchingPolicy("iou_2d", 0.5, class_aware=True))
    found = adr_intervals(
        data["clear"], {"dark": data["dark"]}, np.random.default_rng(4), settings, draws=200, confidence=0.9
    )
    assert tuple(rows[1]["adr_interval"]) == found["dark"].adr
    assert tuple(rows[1]["normalised_interval"]) == found["dark"].normalised


def test_what_is_not_defined_is_told_and_not_a_number(folder, capsys):
    coco(folder, [(5, 3, 0.95)], "blind.json")
    assert main(["adr", "--annotations", "truth.json", "--detections", "b=blind.json", "-o", "adr.json"]) == 0
    (row,) = json.loads((folder / "adr.json").read_text())["rates"]
    assert row["adr"] == 0
    assert row["normalised"] is None
    assert "b: nothing is found in the baseline, so there is no normalised ADR" in capsys.readouterr().out
    moved = json.loads((folder / "truth.json").read_text()) | {"annotations": []}
    (folder / "gone.json").write_text(json.dumps(moved))
    assert main([*ADR, "--annotations", "dark=gone.json", "--draws", "0"]) == 0
    out = capsys.readouterr().out
    assert "not defined" in out
    assert "under dark no object is left that can be judged" in out


def test_what_no_image_shows_is_in_the_interval_and_few_images_are_noted(folder):
    import verifier

    coco(folder, [(image, 0, 0.9) for image in range(4)], "perfect.json")
    found = verifier.adr(["truth.json"], {"a": "perfect.json", "a@dark": "dark.json"}, draws=20)
    truth = json.loads(Path("truth.json").read_text())
    images = len({each["image_id"] for each in truth["annotations"]})
    assert found.rates[0].adr == 1
    assert found.rates[0].adr_interval == pytest.approx((0.025 ** (1 / images), 1))  # as for n of n
    assert found.rates[0].normalised_interval == (1, 1)  # by definition
    assert not any("drawn from only" in each for each in found.remarks)
    truth["images"] = truth["images"][:6]
    Path("few.json").write_text(json.dumps(truth))
    found = verifier.adr(["few.json"], {"a": "perfect.json"}, draws=20)
    assert "a: ADR is drawn from only 6 frames: the intervals are themselves uncertain" in found.remarks
    assert "a: ADR is drawn from only 6 frames" in json.loads(found.json_text())["remarks"][-2]


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--annotations", "fog=truth.json"], "no source has the condition 'fog'"),
        (
            ["--detections", "b@dark=dark.json"],
            "there is no source 'b' with the detections",
        ),
        (["--annotations", "dark=other.json"], "a: the images under dark are not those of the baseline"),
        (["--level", "0.1", "--level", "0.05"], "increasing, positive levels"),
        (["--detections", "a=dark.json"], "two are called 'a'"),
        (["--iou", "0"], "above 0, at most 1"),
    ],
)
def test_refusals(folder, capsys, more, complaint):
    other = json.loads((folder / "truth.json").read_text())
    other["images"][0]["file_name"] = "other.png"
    (folder / "other.json").write_text(json.dumps(other))
    try:
        code = main([*ADR, *more])
    except SystemExit as ended:
        code = ended.code
    assert code in (ExitCode.USAGE, ExitCode.BAD_INPUT)
    assert complaint in capsys.readouterr().err


def test_published_order_and_severities():
    named = [folder_name(each) for each in published("published-2021")]
    assert published_order([*sorted(named), "own"]) == [*named, "own"]
    of_2018 = [each.text for each in published("published-2018")]
    assert published_order(sorted(of_2018)) == of_2018
    severe = {folder_name(each) for each in published("published-2021", "severe")}
    found = published_severities([*named, "own"])
    assert {name for name, kind in found.items() if kind == "severe"} == severe
    assert found.keys() == set(named)


@pytest.fixture(scope="module")
def table_iv(root, tmp_path_factory):
    """Table IV as printed, as a table of `verify predict`."""
    told = json.loads((root / "examples/reproduce/average_detection_rates.json").read_text())
    names = {"defocus": "defocus", "gaussian_blur": "gaussian_blur", "haze": "haze", "alpha_blend": "alpha_blend"}
    path = tmp_path_factory.mktemp("table") / "table.csv"
    with path.open("w") as stream:
        writer = csv.writer(stream)
        writer.writerow(["condition", *told["detectors"]])
        writer.writerow(["baseline", *told["baseline"]])
        for family in names:
            writer.writerows([f"{family} {name}", *rates] for name, rates in told[family].items())
    return path, told


def test_table_iv_is_predicted(table_iv, tmp_path, capsys):
    path, told = table_iv
    target = tmp_path / "predict.json"
    command = ["predict", str(path), "--baseline", "Deformable R-FCN=0.63", "-o", str(target)]
    assert main([*command, "--plot", str(tmp_path / "a.svg"), "--plot-weights", str(tmp_path / "b.svg")]) == 0
    found = read_document(PredictResult, json.loads(target.read_text()), "predict.json")
    defocus, haze = found.models
    # The numbers of tests/robustness/test_prediction.py, worked out there.
    assert defocus.pooled_r_squared == pytest.approx(0.991, abs=5e-4)
    assert haze.pooled_r_squared == pytest.approx(0.893, abs=5e-4)
    assert haze.r_squared["R-FCN w/ Resnet 101"] == pytest.approx(-2.233, abs=5e-4)
    assert all(each.interval is not None and each.interval[0] <= each.interval[1] for each in defocus.predictions)
    rates = {"defocus": told["defocus"], "gaussian_blur": told["gaussian_blur"]}
    rows = {f"{family} {name}": each for family, own in rates.items() for name, each in own.items()}
    table = AdrTable(tuple(told["detectors"]), told["baseline"], tuple(rows), list(rows.values()))
    table = table.with_baseline("Deformable R-FCN", 0.63)
    own = predict(table, *([each for each in rows if each.startswith(start)] for start in ("defocus", "gaussian")))
    assert [each.predicted for each in defocus.predictions] == own.predicted.reshape(-1).tolist()
    assert "pooled" in capsys.readouterr().out


def test_an_empty_cell_is_predicted_and_told(table_iv, tmp_path, capsys):
    lines = table_iv[0].read_text().splitlines()
    place = next(at for at, line in enumerate(lines) if line.startswith("haze"))
    cells = lines[place].split(",")
    lines[place] = ",".join([*cells[:-1], ""])
    (tmp_path / "holed.csv").write_text("\n".join(lines))
    assert main(["predict", str(tmp_path / "holed.csv"), "--pair", "haze=alpha_blend", "--confidence", "0.95"]) == 0
    out = capsys.readouterr().out
    assert "not measured" in out
    assert "not defined" in out  # eight detectors are too few for 0.95
    assert "intervals at 0.95 need more detectors" in out


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "expected the header condition,DETECTOR"),
        ("condition,a,a\n", "different names"),
        ("condition,a\nbaseline\n", "expected 2 cells, found 1"),
        ("condition,a\nbaseline," + 200_000 * "1" + "\n", "not a readable CSV file: field larger than field limit"),
        ("condition,a\nbaseline,nan\n", "a: expected an ADR from 0 to 1, got 'nan'"),
        ("condition,a\nbaseline,\n", "expected an ADR from 0 to 1, got ''"),
        ("condition,a\nhaze x,1.5\n", "or an empty cell, got '1.5'"),
        ("condition,a\nhaze x,.5\nhaze x,.5\n", "occurs twice"),
        ("condition,a\nhaze x,.5\n", "no row has the condition 'baseline'"),
        ("condition,a\nbaseline,0\nhaze,.5\nalpha_blend,.5\n", "the baseline of 'a' is 0"),
        ("condition,a\nbaseline,.5\nhaze,.5\nalpha_blend,.5\n", "leaving a detector out needs another one"),
        ("condition,a\nbaseline,.5\n", "nothing to predict"),
    ],
)
def test_tables_that_are_none(tmp_path, capsys, text, complaint):
    (tmp_path / "bad.csv").write_text(text)
    assert main(["predict", str(tmp_path / "bad.csv")]) == ExitCode.BAD_INPUT
    told = capsys.readouterr().err
    assert f"{tmp_path / 'bad.csv'}:" in told
    assert complaint in told


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda rows: rows.pop(0), "no ADR of 'a' under 'baseline'"),
        (lambda rows: rows[0].update(adr=None), "no ADR of 'a' under 'baseline'"),
        (lambda rows: rows[0].update(detector="other"), "under 'baseline'"),
        (lambda rows: rows.append(rows[0]), "occurs twice"),
    ],
)
def test_documents_whose_rows_do_not_fit(folder, tmp_path, capsys, change, complaint):
    import verifier

    found = verifier.adr(["truth.json"], {"a": "clear.json", "a@dark": "dark.json"}, draws=0)
    document = json.loads(found.json_text())
    change(document["rates"])
    (tmp_path / "bad.json").write_text(json.dumps(document))
    assert main(["predict", str(tmp_path / "bad.json"), "--pair", "dark=dark"]) == ExitCode.BAD_INPUT
    assert complaint in capsys.readouterr().err


def test_a_mutation_is_not_predicted_from_itself_and_no_interval_promises_nothing(tmp_path, capsys):
    text = "condition,a,b,c\nbaseline,.6,.5,.8\nalpha_blend,.5,.4,.7\nhaze,.4,.3,.5\n"
    (tmp_path / "rates.csv").write_text(text)
    rates = str(tmp_path / "rates.csv")
    assert main(["predict", rates, "--pair", "haze=haze"]) == ExitCode.USAGE
    assert "--pair haze=haze: 'haze' would be predicted from itself" in capsys.readouterr().err
    assert main(["predict", rates]) == 0  # two other detectors are too few for 80 %
    assert "jackknife" not in capsys.readouterr().out
    assert main(["predict", rates, "--confidence", "0.5"]) == 0
    assert "50 % prediction intervals" in (told := capsys.readouterr().out)
    assert "with no probability that is proven" in told


def test_pictures_show_every_detector_and_condition(folder, table_iv, tmp_path):
    import verifier

    found = verifier.adr(["truth.json"], {"a": "clear.json", "a@dark": "dark.json"}, draws=50)
    figure = curves_figure(found)
    assert [axis.get_title() for axis in figure.axes if axis.get_visible()] == ["baseline", "dark"]
    limits = np.array([axis.get_xlim() for axis in figure.axes if axis.get_visible()])
    assert (limits == limits[0]).all()
    assert np.log10(limits[0]) == pytest.approx(np.log10(limits[0]).round(), abs=1e-12)
    figure.draw_without_rendering()
    assert not any(each.get_text() for each in figure.axes[0].xaxis.get_minorticklabels())
    table = table_figure(found)
    table.draw_without_rendering()
    label = table.axes[1].yaxis.label.get_window_extent()
    assert label.y0 >= 0
    assert label.y1 <= table.bbox.height
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == ["a", *(f"set at {level} in the baseline" for level in ("0.1", "0.01", "0.001"))]
    texts = [each.get_text() for each in table_figure(found).axes[0].texts]
    assert texts == [f"{each.adr:.2f}" for each in found.rates]
    predicted = verifier.predict(table_iv[0])
    assert len(prediction_figure(predicted).axes) == 2
    for axis, model in zip(weights_figure(predicted).axes, predicted.models, strict=True):
        assert axis.images[0].get_array().tolist() == [list(row) for row in model.weights]
    assert predicted.frame().attrs["headline"].startswith("Prediction from table.csv: defocus from gaussian_blur")
    assert all(math.isfinite(each) for each in predicted.metrics().values())
