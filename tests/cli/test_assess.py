"""`verify assess` as a user meets it: tables, report, documents, pictures, exit codes, and what it refuses."""

import csv
import json
import math
from functools import partial

import numpy as np
import pytest
from matrix_documents import write_matrices
from typed_documents import read_back

from verifier.base.errors import ExitCode
from verifier.robustness.assessment.datasets import computed_distances, ssim
from verifier.robustness.assessment.making import make_follow_up
from verifier.robustness.assessment.plan import follow_up_plan
from verifier.robustness.assessment.reader import read_assessment
from verifier.robustness.campaign.scenes import open_scenes

EXAMPLE = "examples/12_robustness_assessment.toml"
ROBUST = """\
[systems.car]
title = "A car | <b>"
[[systems.car.circumstances]]
name = "fog"
frequency = 1
source_frequency = 0
transformation = { mutation = "brightness", factor = { low = 0.5, high = 0.9 } }
[systems.car.distances.ssim]
tolerance = 0.1
[systems.car.source]
performance = { AP = 0.5 }
count = 3
[systems.car.follow_up]
[[systems.car.targets]]
name = "in fog"
performance = { AP = 0.45 }
distances = { ssim = 0.2 }
"""


@pytest.fixture
def run(root, monkeypatch, verify):
    """Run `verify assess` in the project's folder; exit code, standard output, standard error."""
    monkeypatch.chdir(root)

    return partial(verify, "assess")


@pytest.fixture
def robust(tmp_path):
    path = tmp_path / "robust.toml"
    path.write_text(ROBUST)
    return path


def squeezed(text):
    return [" ".join(line.split()) for line in text.splitlines()]


def test_the_paper_s_systems_on_a_terminal(run):
    code, out, err = run(EXAMPLE)
    assert (code, err) == (ExitCode.VIOLATED, "")
    lines = squeezed(out)
    for wanted in (
        "Some pixel lines may be shifted M2 0.2 0 0.2",
        "The cross-section may be truncated M2 0.15 0.1 0.05",
        "The frequencies in use sum to 1.",
        "The camera has a very low shutter speed 1 Rare 2 Unlikely 5 Catastrophic 10",
        "source 0.564 0.51 0.526 0.396 0.34",
        "target 0.498 0.384 0.414 0.264 0.246",
        "mean ssim 1 0.904 0.777 0.733 0.711 0.697",
        "distance ssim 0 0.096 0.223 0.267 0.289 0.303",
        "cw_ssim 0.01 if d <= 0.25, else d",
        "target AP 0.094 cw_ssim 0.154 0.01 violated",
        "target precision 0.066 cw_ssim 0.154 0.01 violated",
        "target recall 0.126 cw_ssim 0.154 0.01 violated",
        "Medical Diagnosis System (MDS): not globally robust",
    ):
        assert wanted in lines
    assert lines[-1] == "verdict: violated"


def test_the_six_questions_are_the_headings_in_order(run, tmp_path):
    report = tmp_path / "report.md"
    code, _, _ = run(EXAMPLE, "--markdown", report, "--system", "mds")
    assert code == ExitCode.VIOLATED
    headings = [line for line in report.read_text().splitlines() if line.startswith("### ")]
    assert [each[4:7] for each in headings[:6]] == ["Q1.", "Q2.", "Q3.", "Q4.", "Q5.", "Q6."]
    assert "### In the words of ISO/IEC 24029" in headings


def test_a_robust_detector_exits_with_0_and_markdown_shows_names_letter_by_letter(run, robust, tmp_path):
    report = tmp_path / "report.md"
    code, out, _ = run(robust, "--markdown", report)
    assert code == ExitCode.SATISFIED
    assert "in fog: robust." in out
    assert r"## A car \| \<b\>" in report.read_text()


def test_names_are_no_links_in_markdown(run, robust, tmp_path):
    robust.write_text(ROBUST.replace("A car | <b>", "http://x &amp;"))
    report = tmp_path / "report.md"
    run(robust, "--markdown", report)
    assert r"## http\://x \&amp;" in report.read_text()


def test_an_unknown_distance_is_inconclusive(run, robust):
    robust.write_text(ROBUST.replace("distances = { ssim = 0.2 }", ""))
    code, out, _ = run(robust)
    assert code == ExitCode.INCONCLUSIVE
    assert "not decided" in out


def test_the_document_follows_its_schema(run):
    code, out, _ = run(EXAMPLE, "--json")
    assert code == ExitCode.VIOLATED
    document = json.loads(out)
    read_back(document)
    mds = document["systems"][0]
    assert [each["change"] for each in mds["targets"][0]["outcomes"]] == [0.094, 0.066, 0.126]


def test_one_system_of_several(run):
    code, out, _ = run(EXAMPLE, "--system", "rms")
    assert code == ExitCode.SATISFIED
    assert "Medical" not in out
    code, _, err = run(EXAMPLE, "--system", "rns")
    assert code == ExitCode.USAGE
    assert "did you mean 'rms'?" in err


def test_pictures(run, robust, tmp_path, thorough):
    for ending, start in (("svg", b"<?xml"), *thorough * (("png", b"\x89PNG"), ("pdf", b"%PDF"))):
        path = tmp_path / f"plot.{ending}"
        code, _, err = run(robust, "--plot", path)
        assert (code, err) == (0, "")
        assert path.read_bytes().startswith(start)


# --- what it refuses --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["none.toml"], ExitCode.BAD_INPUT, "no such file"),
        ([], ExitCode.USAGE, "ASSESSMENT"),
        ([EXAMPLE, "--plot", "x.gif"], ExitCode.USAGE, "expected a file name ending in"),
        ([EXAMPLE, "--output", "x.out", "--markdown", "x.out"], ExitCode.USAGE, "same file"),
        (["README.md"], ExitCode.BAD_INPUT, "not TOML"),
    ],
)
def test_refused(run, root, arguments, code, message):
    before = (root / EXAMPLE).read_bytes()
    found, out, err = run(*arguments)
    assert found == code
    assert message in err
    assert "Traceback" not in err
    assert out == ""
    assert (root / EXAMPLE).read_bytes() == before
    assert not any((root / name).exists() for name in ("x.json", "x.png", "x.out"))


def test_nothing_to_draw(run, tmp_path):
    (tmp_path / "a.toml").write_text('[systems.a]\ncircumstances = [{ name = "fog" }]\n')
    code, _, err = run(tmp_path / "a.toml", "--plot", tmp_path / "a.png")
    assert (code, "0 panels" in err) == (ExitCode.USAGE, True)
    assert not (tmp_path / "a.png").exists()


def test_what_a_plan_lacks_names_file_and_system(run, robust):
    lacking = ROBUST.replace("count = 3\n", ""), ROBUST.replace("transformation =", "# ")
    for text, message in zip(lacking, ("needs 'images' or 'count'", "'fog' has no transformation"), strict=True):
        robust.write_text(text)
        code, _, err = run(robust)
        assert code == ExitCode.BAD_INPUT
        assert f"{robust}: systems.car.follow_up: " in err
        assert message in err


def test_bad_numbers_name_their_line_and_write_nothing(run, robust, tmp_path):
    robust.write_text(ROBUST.replace("AP = 0.45", "AP = 45"))
    code, _, err = run(robust, "--output", tmp_path / "out.json")
    assert code == ExitCode.BAD_INPUT
    assert "robust.toml:16: systems.car.targets[0].performance.AP: expected a number from 0 to 1, got 45" in err
    assert not (tmp_path / "out.json").exists()


# --- images -----------------------------------------------------------------------------------------------------


def picture(path, pixels):
    pillow = pytest.importorskip("PIL.Image")
    pillow.fromarray(pixels).save(path)


@pytest.fixture
def images(tmp_path):
    """Three source images of 64 x 48 pixels, and an assessment of them."""
    rng = np.random.default_rng(0)
    (tmp_path / "source").mkdir()
    for name in "abc":
        picture(tmp_path / "source" / f"{name}.png", rng.integers(0, 256, (48, 64, 3), dtype=np.uint8))
    text = ROBUST.replace("distances = { ssim = 0.2 }", 'images = "target"').replace("count = 3", 'images = "source"')
    text = text.replace(
        "tolerance = 0.1\n", "tolerance = 0.1\n[systems.car.distances.mse]\n[systems.car.distances.psnr]\n"
    )
    path = tmp_path / "images.toml"
    path.write_text(text)
    return path


def test_plan_first_images_second_distances_third(run, images, tmp_path):
    (car,) = read_assessment(images).assessments
    plan = follow_up_plan(car.circumstances, ["a.png", "b.png", "c.png"], size=5, occurrence="independent")
    target = tmp_path / "target"
    target.mkdir()
    assert len(make_follow_up(plan, open_scenes(car.source.files, tmp_path, "car"), target)) == 5
    with (target / "pairs.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["source"] for row in rows] == [each.source for each in plan.images]
    found = computed_distances(car, tmp_path)["in fog"]
    assert (found["ssim"].pairs, found["ssim"].given) == (5, False)
    # The same by hand, from the files.
    pillow = pytest.importorskip("PIL.Image")
    grey = np.array([0.299, 0.587, 0.114])
    similar, errors = [], []
    for row in rows:
        one = np.asarray(pillow.open(tmp_path / "source" / row["source"])) @ grey
        other = np.asarray(pillow.open(target / row["target"])) @ grey
        similar.append(ssim(one, other))
        errors.append(((one - other) ** 2).mean())
    assert float(found["ssim"].distance) == pytest.approx(1 - np.mean(similar), rel=1e-12)
    assert float(found["mse"].distance) == pytest.approx(np.mean(errors), rel=1e-12)
    assert found["psnr"].distance is None
    assert float(found["psnr"].similarity) == pytest.approx(np.mean([10 * math.log10(65025 / e) for e in errors]))
    code, out, _ = run(images)
    assert code in (ExitCode.SATISFIED, ExitCode.VIOLATED)
    assert "1 - mean SSIM (M14)" in out


def test_the_images_of_a_plan_are_the_same_again(images, tmp_path):
    (car,) = read_assessment(images).assessments
    plan = follow_up_plan(car.circumstances, ["a.png", "b.png", "c.png"], occurrence="independent", seed=7)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        make_follow_up(plan, open_scenes(car.source.files, tmp_path, "car"), tmp_path / name)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_equal_images_have_distance_0_and_infinite_psnr(run, images, tmp_path):
    images.write_text(images.read_text().replace('images = "target"', 'images = "source"'))
    code, _, _ = run(images, "--output", tmp_path / "out.json")
    assert code == ExitCode.SATISFIED
    found = json.loads((tmp_path / "out.json").read_text())["systems"][0]["targets"][0]["distances"]
    assert found["ssim"]["distance"] == found["mse"]["distance"] == 0
    assert found["psnr"] == {"distance": None, "similarity": None, "given": False, "pairs": 3, "deviation": None}


def test_images_that_do_not_fit(run, images, tmp_path):
    target = tmp_path / "target"

    def refused(message):
        code, _, err = run(images)
        assert code == ExitCode.BAD_INPUT
        assert message in err
        assert "Traceback" not in err

    refused("cannot be read as a folder")
    target.mkdir()
    refused("no image in this folder")
    picture(target / "z.png", np.zeros((48, 64, 3), np.uint8))
    refused("no source image 'z'")
    (target / "z.png").rename(target / "a.png")
    picture(target / "b.png", np.zeros((48, 60, 3), np.uint8))
    refused("b.png: ssim with b.png: expected two images of one size, got 64 x 48 pixels and 60 x 48 pixels")
    picture(target / "b.png", np.zeros((48, 64, 4), np.uint8))
    refused("mode RGBA")
    (target / "b.png").write_bytes((target / "a.png").read_bytes()[:60])
    refused("not a readable image")
    (target / "b.png").unlink()
    (target / "a.jpg").write_bytes((target / "a.png").read_bytes())
    refused("two images of one name")
    (target / "a.jpg").unlink()
    (target / "pairs.csv").write_text("target,source\n")
    refused("no line for a.png")
    (target / "pairs.csv").write_text("target,image\na.png,a.png\n")
    refused("pairs.csv:1: no column 'source'")
    (target / "pairs.csv").write_text("target,source\na.png,a.png\na.png,b.png\n")
    refused("pairs.csv:3: 'a.png' has two lines")


def test_small_images_name_the_level_of_cw_ssim(run, images, tmp_path):
    text = images.read_text().replace("distances.mse]", "distances.cw_ssim]").replace('"target"', '"source"')
    images.write_text(text)
    code, _, err = run(images)
    assert code == ExitCode.BAD_INPUT
    assert "CW-SSIM at level 6 needs images of 193 x 193 pixels" in err
    images.write_text(text.replace("distances.cw_ssim]", "distances.cw_ssim]\nlevel = 3"))
    code, _, _ = run(images)
    assert code == ExitCode.SATISFIED


def test_follow_up_images_never_mix_with_others(images, tmp_path):
    from verifier.base.errors import InputError

    (car,) = read_assessment(images).assessments
    plan = follow_up_plan(car.circumstances, ["a.png"], occurrence="independent")
    with pytest.raises(InputError, match="empty folder"):
        make_follow_up(plan, open_scenes(car.source.files, tmp_path, "car"), tmp_path / "source")


def test_features_from_tables(run, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "one.npy", rng.standard_normal((30, 4)))
    np.save(tmp_path / "two.npy", rng.standard_normal((30, 4)) + 1)
    kinds = ("frechet", "euclidean", "cosine", "single", "complete", "average", "centroid")
    text = "[systems.car.source]\nfeatures = 'one.npy'\n[[systems.car.targets]]\nname = 't'\nfeatures = 'two.npy'\n"
    path = tmp_path / "features.toml"
    path.write_text("".join(f"[systems.car.distances.{kind}]\n" for kind in kinds) + text)
    code, out, err = run(path)
    assert (code, err) == (0, "")
    for number in ("(M15)", "(M16)", "(M17)"):
        assert number in out
    np.save(tmp_path / "two.npy", np.zeros((30, 3)))
    code, _, err = run(path)
    assert code == ExitCode.BAD_INPUT
    assert "frechet with one.npy" in err


# --- detections -------------------------------------------------------------------------------------------------


def coco_files(folder, name, boxes):
    """Two images with a car each of 40 x 40 pixels; detections as (image, left edge, score)."""
    annotated = {
        "images": [{"id": number, "file_name": f"{number}.png", "width": 200, "height": 100} for number in (1, 2)],
        "categories": [{"id": 1, "name": "car"}],
        "annotations": [
            {"id": number, "image_id": number, "category_id": 1, "bbox": [10, 10, 40, 40], "area": 1600, "iscrowd": 0}
            for number in (1, 2)
        ],
    }
    found = [
        {"image_id": image, "category_id": 1, "bbox": [left, 10, 40, 40], "score": score}
        for image, left, score in boxes
    ]
    (folder / "truth.json").write_text(json.dumps(annotated))
    (folder / f"{name}.json").write_text(json.dumps(found))


@pytest.fixture
def detected(tmp_path):
    """Source: both cars found, and one false positive. Target: one of two found, and that shifted to IoU 30 / 50."""
    coco_files(tmp_path, "clear", [(1, 10, 0.9), (2, 10, 0.8), (2, 120, 0.7), (1, 120, 0.1)])
    coco_files(tmp_path, "fog", [(1, 20, 0.9)])
    files = 'detections = {{ format = "coco", annotations = "truth.json", detections = "{}.json", min_score = 0.5 }}'
    text = ROBUST.replace("performance = { AP = 0.5 }", files.format("clear"))
    path = tmp_path / "detected.toml"
    path.write_text(text.replace("performance = { AP = 0.45 }", files.format("fog")))
    return path


def test_performance_from_detections(run, detected, tmp_path):
    code, _, err = run(detected, "--output", tmp_path / "out.json")
    assert (code, err) == (ExitCode.VIOLATED, "")
    found = json.loads((tmp_path / "out.json").read_text())["systems"][0]
    assert found["metrics"] == ["precision", "recall"]
    # Source: TP 2, FP 1 (the one of score .1 does not count), FN 0. Target: IoU 30 * 40 / (50 * 40) = .6.
    assert found["source"]["performance"] == {
        "TP": 2,
        "FP": 1,
        "FN": 0,
        "precision": pytest.approx(2 / 3),
        "recall": 1,
    }
    assert found["targets"][0]["performance"] == {"TP": 1, "FP": 0, "FN": 1, "precision": 1, "recall": 0.5}
    inputs = json.loads((tmp_path / "out.json").read_text())["inputs"]
    assert {(each["role"], each["name"]) for each in inputs} == {
        ("assessment", "detected.toml"),
        ("annotations of source", "truth.json"),
        ("detections of source", "clear.json"),
        ("annotations of in fog", "truth.json"),
        ("detections of in fog", "fog.json"),
    }
    detected.write_text(detected.read_text().replace('"fog.json"', '"fog.json", iou = 0.7'))
    run(detected, "--output", tmp_path / "out.json")
    found = json.loads((tmp_path / "out.json").read_text())["systems"][0]
    assert found["targets"][0]["performance"] == {"TP": 0, "FP": 1, "FN": 2, "precision": 0, "recall": 0}


def test_coco_metrics_from_detections(run, detected, tmp_path):
    pytest.importorskip("pycocotools")
    text = detected.read_text().replace('title = "A car | <b>"', 'title = "A car"\nmetrics = ["AP0.5", "AP"]')
    detected.write_text(text)
    code, _, err = run(detected, "--output", tmp_path / "out.json")
    assert (code, err) == (ExitCode.VIOLATED, "")
    found = json.loads((tmp_path / "out.json").read_text())["systems"][0]
    assert found["source"]["performance"]["AP0.5"] == pytest.approx(1)
    # One of two objects found: precision 1 up to recall .5, which are 51 of the 101 recalls. IoU .6 reaches the
    # thresholds .50, .55, .60: three of ten.
    target = found["targets"][0]["performance"]
    assert target["AP0.5"] == pytest.approx(51 / 101)
    assert target["AP"] == pytest.approx(0.3 * 51 / 101)


def test_detections_that_cannot_be_used(run, detected):
    text = detected.read_text()
    for old, new, message in (
        ('"fog.json"', '"none.json"', "no such file"),
        ('format = "coco"', 'format = "cocoa"', "did you mean 'coco'?"),
        ("min_score = 0.5", "iou = 0", "above 0"),
        ("count = 3", "count = 3\nperformance = { AP = 0.5 }", "not both"),
    ):
        detected.write_text(text.replace(old, new))
        code, _, err = run(detected)
        assert code == ExitCode.BAD_INPUT
        assert message in err
    detected.write_text(text.replace('title = "A car | <b>"', 'metrics = ["accuracy"]'))
    code, _, err = run(detected)
    assert code == ExitCode.USAGE
    assert "no value of accuracy" in err


# --- what a disturbance does to the system ----------------------------------------------------------------------


def matrices(path, recall):
    """Every pedestrian and obstacle is seen with this chance, at every distance, of 4000 items each."""
    hits = round(4000 * recall)
    about = {"title": path.stem, "distance": {"unit": "m"}, "matching": "made up", "false_positives": "dropped"}
    counts = [[hits, 0, 0], [0, hits, 0], [4000 - hits, 4000 - hits, 4000]]
    write_matrices(path, counts, labels=["ped", "obs", "empty"], edges=(0, 100), **about)


def curves(path, factor):
    curve = {
        "metric": "closed_loop", "detector": "d", "condition": "c", "sensitivity": [1, 2],
        "safety": [0.5 * factor, 1.0 * factor], "efficiency": [1.0, 0.5],
    }  # fmt: skip
    path.write_text(json.dumps({"schema": "verifier.curves", "version": 1, "curves": [curve]}))


def pairs(path, error_m):
    """Cars every metre, reported `error_m` too far away."""
    rows = [f"{number},{at},{at + error_m}" for number, at in enumerate(np.repeat(np.arange(5.0, 60.0), 20))]
    path.write_text("\n".join(["image,true_m,predicted_m", *rows]) + "\n")


@pytest.fixture
def degrading(root, tmp_path):
    """Recall .99, .97, .90, .60 at visibility infinite, 800, 400, 200 m."""
    text = f"""\
[systems.car.degradation]
parameter = "visibility"
unit = "m"
scale = "reciprocal"
allowed_change = {{ AP = 0.05 }}
run = {{ spec = "{root}/specs/car_pedestrian.ltl", planner = "published", environments = ["ped"] }}
collision = {{ distance_m = 20, speed_mps = 14, deceleration_mps2 = 6.86, reaction_s = 0.1, at_most = 0.5 }}
trade_off = {{ detector = "d", metric = "closed_loop", at_least = 0.8 }}
"""
    for level, recall, average, error_m in (
        ("inf", 0.99, 0.5, 0), ("800", 0.97, 0.49, 0), ("400", 0.9, 0.47, 0), ("200", 0.6, 0.41, 10),
    ):  # fmt: skip
        matrices(tmp_path / f"{level}.json", recall)
        curves(tmp_path / f"{level}_curves.json", recall / 0.99)
        pairs(tmp_path / f"{level}.csv", error_m)
        text += (
            f"[[systems.car.degradation.levels]]\nat = {level}\nperformance = {{ AP = {average} }}\n"
            f'confusion = "{level}.json"\npairs = "{level}.csv"\ncurves = "{level}_curves.json"\n'
        )
    path = tmp_path / "degradation.toml"
    path.write_text(text)
    return path


def test_where_each_requirement_breaks_and_who_saw_it_first(run, root, degrading, tmp_path):
    code, out, err = run(degrading, "--output", tmp_path / "out.json", "--plot", tmp_path / "plot.png")
    assert (code, err) == (0, "")
    document = json.loads((tmp_path / "out.json").read_text())
    read_back(document)
    found = document["systems"][0]["degradation"]
    assert found["levels"] == ["inf", 800, 400, 200]
    by_name = {each["name"]: each for each in found["criteria"]}
    # One look decides: P is the recall.
    stops = by_name["stops_for_pedestrians"]
    assert stops["values"] == pytest.approx([0.99, 0.97, 0.9, 0.6], abs=1e-12)
    assert (stops["break"]["holds_at"], stops["break"]["fails_at"]) == (800, 400)
    assert (stops["break"]["sure_until"], stops["break"]["sure_at"]) == (800, 400)
    assert stops["break"]["can_narrow"]
    # Only a pedestrian stands there, which meets the first requirement whatever the car does.
    assert by_name["stops_only_for_pedestrians"]["verdicts"] == ["vacuous"] * 4
    assert (by_name["AP"]["break"]["holds_at"], by_name["AP"]["break"]["fails_at"]) == (400, 200)
    # All safety shrinks by one factor, so does the area: .6 / .99 at 200 m, .9 / .99 at 400 m.
    share = by_name["RobROC by baseline, d, closed_loop"]
    assert share["values"] == pytest.approx([1, 97 / 99, 90 / 99, 60 / 99])
    # S(14 m/s) = 14^2 / (2 * 6.86) + 1.4 = 15.69 m. What is reported at 20 m stands there, or at 10 m.
    assert by_name["lambda(20 m, 14 m/s)"]["values"] == pytest.approx([0, 0, 0, 1], abs=0.02)
    assert [[each["name"] for each in group] for group in found["seen"]] == [
        ["stops_for_pedestrians"],
        ["AP", "lambda(20 m, 14 m/s)", "RobROC by baseline, d, closed_loop"],
    ]
    told = "breaks between visibility 800 m and visibility 400 m (1/visibility 0.00125 to 0.0025 per m); confirmed"
    assert f"stops_for_pedestrians: {told} at 95 % confidence to hold up to visibility 800 m and to fail" in out
    assert "First to fail, at visibility 400 m: stops_for_pedestrians (requirement)." in out
    assert (tmp_path / "plot.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("400.json", "{", "not JSON"),
        ("400.csv", "image,true_m\n", "predicted_m"),
        ("400_curves.json", "[]", "not of type 'object'"),
    ],
)
def test_bad_files_of_a_level(run, degrading, tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    code, _, err = run(degrading, "--output", tmp_path / "out.json")
    assert code == ExitCode.BAD_INPUT
    assert message in err
    assert name in err
    assert not (tmp_path / "out.json").exists()


def test_a_curve_that_is_not_there(run, degrading):
    degrading.write_text(degrading.read_text().replace('detector = "d"', 'detector = "e"'))
    code, _, err = run(degrading)
    assert code == ExitCode.BAD_INPUT
    assert "expected one curve of e closed_loop for this level, found 0" in err
