"""`verify campaign`: every number is that of the single command on the files that it wrote; what is kept is kept."""

import csv
import html
import json
import re
import shutil

import numpy as np
import pytest
from dask_clusters import Killer, cluster
from made_campaign import FILE, write_streets
from single_commands import (
    files_of,
    same_ap_and_recall,
    same_areas,
    same_lambda,
    same_matrices_and_probabilities,
    same_rates,
)

from verifier.base.blocks import Pool
from verifier.base.documents import read_document
from verifier.base.errors import ExitCode
from verifier.cli import main
from verifier.pipeline import verified
from verifier.robustness.campaign import looking
from verifier.robustness.campaign.file import read_campaign
from verifier.robustness.campaign.result import CampaignDocument
from verifier.robustness.campaign.running import campaign_result
from verifier.robustness.campaign.scenes import open_scenes
from verifier.robustness.mutators.frames import DepthSource

pytest.importorskip("cv2", reason="opencv-python-headless is not installed")
pytest.importorskip("pycocotools", reason="pycocotools is not installed")
CONDITIONS = ("baseline", "haze-visibility_m_978", "haze-visibility_m_97.8")
HAZY = CONDITIONS[2]


@pytest.fixture(scope="module")
def streets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streets")
    write_streets(folder, 6)
    truth = json.loads((folder / "truth.json").read_text())
    # Ids and names as data sets have them: not from 1, not in the order of the names, categories of an own list.
    new = {image["id"]: 900 - 7 * image["id"] for image in truth["images"]}
    for image in truth["images"]:
        image["id"] = new[image["id"]]
    for each in truth["annotations"]:
        each.update(image_id=new[each["image_id"]], category_id=18, id=each["id"] + 5000)
    truth["categories"] = [{"id": 18, "name": "ped"}]
    (folder / "truth.json").write_text(json.dumps(truth))
    return folder


@pytest.fixture(scope="module")
def made(streets):
    """The folder that one campaign made, and its document."""
    target = streets / "made"
    # Six images decide nothing: the worst verdict is inconclusive, as that of `verify run` on the same matrices.
    assert main(["campaign", str(streets / "campaign.toml"), "-o", str(target)]) == ExitCode.INCONCLUSIVE
    document = json.loads((target / "campaign.json").read_text())
    return target, read_document(CampaignDocument, document, "campaign.json")


@pytest.fixture
def seeded(made, tmp_path):
    """A folder in which images that were put through the detector before are found again."""
    (tmp_path / "out/conditions").mkdir(parents=True)
    shutil.copytree(made[0] / "cache", tmp_path / "out/cache")
    return tmp_path / "out"


def row_of(made, condition):
    return next(each for each in made[1].campaign if each.condition == condition)


def test_every_condition_has_a_row_and_groups_have_theirs(made):
    names = [each.condition for each in made[1].campaign]
    assert names == [*CONDITIONS, "Any", "AnyMild", "AnySevere"]
    assert [row_of(made, name).severity for name in CONDITIONS] == ["", "mild", "severe"]
    assert row_of(made, HAZY).mutation == "haze:visibility_m=97.8"
    report = (made[0] / "report.html").read_text()
    assert "HOG on drawn streets" in report
    assert "AP is COCO's: the mean over IoU .50 to .95" in html.unescape(report)
    assert all(html.escape(each) in report for each in made[1].remarks)  # what a reader must know goes along
    rows = list(csv.DictReader((made[0] / "campaign.csv").read_text().splitlines()))
    assert [each["condition"] for each in rows] == names


def test_ids_and_file_names_are_those_of_the_source(streets, made, capsys):
    """Results that another tool wrote for the source are those of the annotations that were made: nothing is
    renumbered, so that recall is not 0."""
    original = json.loads((streets / "truth.json").read_text())
    written = json.loads((made[0] / "hog" / HAZY / "annotations.json").read_text())
    for key in ("image", "categorie", "annotation"):
        assert {each["id"] for each in written[f"{key}s"]} == {each["id"] for each in original[f"{key}s"]}
    names = {each["id"]: each["file_name"] for each in original["images"]}
    assert {each["id"]: each["file_name"] for each in written["images"]} == names
    theirs = [{**each, "score": 0.9} for each in original["annotations"]]
    (streets / "theirs.json").write_text(json.dumps(theirs))
    annotations = str(made[0] / "hog/baseline/annotations.json")
    files = ["--annotations", annotations, "--detections", f"x={streets / 'theirs.json'}"]
    assert main(["adr", "--format", "coco", *files, "--draws", "0", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["rates"]
    assert found["adr"] == 1


@pytest.mark.parametrize("condition", CONDITIONS)
def test_matrices_and_probabilities_are_those_of_the_commands(streets, made, condition, tmp_path):
    counting = ["--bins", "0,9,inf", "--min-score", "0.5", "--accept", "nothing-matched"]
    same_matrices_and_probabilities(streets / "car.ltl", made[0], row_of(made, condition), tmp_path, *counting)


def test_rates_are_those_of_verify_adr(made, capsys):
    rows = [row_of(made, name) for name in CONDITIONS]
    same_rates(made[0], rows, capsys, "--level", "0.2", "--level", "0.5", "--draws", "100")


def test_every_object_has_a_point_for_the_rate_it_requires(made, tmp_path):
    """Before against after, a panel for each mutation; the baseline alone has none."""
    pytest.importorskip("matplotlib")
    command = ["adr", "--format", "coco", "--draws", "0", "--annotations", files_of(made[0], "hog", "baseline")[1]]
    for name in CONDITIONS:
        at = "" if name == "baseline" else f"@{name}"
        command += ["--detections", f"hog{at}={files_of(made[0], 'hog', name)[3]}"]
    path = tmp_path / "objects.svg"
    assert main([*command, "--plot-objects", str(path)]) == 0
    text = path.read_text()
    assert all(name in text for name in CONDITIONS[1:])
    objects = len(json.loads((made[0] / "hog/baseline/annotations.json").read_text())["annotations"])
    (points,) = {
        len(re.findall("<use ", part)) for part in re.findall(r"<g clip-path[^>]*>(.*?)</g>", text, re.DOTALL)
    }
    assert points == objects
    assert main([*command[:9], "--plot-objects", str(tmp_path / "none.svg")]) == ExitCode.USAGE


@pytest.mark.parametrize("condition", CONDITIONS)
def test_ap_and_recall_are_those_of_the_definition(made, condition):
    same_ap_and_recall(made[0], row_of(made, condition), 0.5)


def test_ap_and_recall_have_intervals_that_so_few_images_allow(streets, made):
    """Six images, some without people: what n of n leave open is in every interval, and recall's by plain loops."""
    truth = json.loads((streets / "truth.json").read_text())
    images = len({each["image_id"] for each in truth["annotations"]})
    unseen = 1 - 0.025 ** (1 / images)
    for condition in CONDITIONS:
        row = row_of(made, condition)
        for value, ends in (
            (row.recall, row.recall_interval),
            (row.average_precision, row.average_precision_interval),
        ):
            assert ends[0] <= max(0, value - unseen) + 1e-12
            assert ends[1] >= min(1, value + unseen) - 1e-12
            assert 0 <= ends[0] <= value <= ends[1] <= 1
    (flat,) = [each for each in csv.DictReader((made[0] / "campaign.csv").open()) if each["condition"] == "baseline"]
    assert float(flat["recall_lower"]) == row_of(made, "baseline").recall_interval[0]


def test_areas_are_those_of_verify_closed_loop(made, capsys):
    metrics = list(row_of(made, "baseline").area)
    assert metrics[:2] == ["roc_a", "roc_b"]
    assert metrics[-1] == "safety_radius"
    # The drives of a second each end before the reference vehicle has to stop: that is said, and no area is made up.
    assert made[1].not_defined == {"closed_loop": "the reference vehicle stops in no positive log"}
    assert "closed_loop is not defined: the reference vehicle stops in no positive log" in made[1].remarks
    radii = ["--control-radius", "2", "--safety-radius", "1.5", "--draws", "0"]
    kinds = ["--group", f"AnySevere={HAZY}", "--severity", "haze-visibility_m_978=mild"]
    same_areas(made[0], made[1].campaign, capsys, *radii, *kinds)


def test_lambda_is_that_of_verify_collision(made, capsys):
    same_lambda(made[0], row_of(made, "baseline"), capsys, "--distances", "8", "--speeds", "10 m/s")


def test_what_p_assumes_is_told(made):
    assert "P assumes what DETECTOR/CONDITION/run.json says of it, such as a memoryless detector" in made[1].remarks


def test_people_stand_where_the_depth_of_their_rectangles_says(streets, made):
    """The median over rows of the median depth of each row, along the ray of the middle of the rectangle."""
    truth = json.loads((made[0] / "hog/baseline/annotations.json").read_text())
    name_of = {each["id"]: each["file_name"] for each in truth["images"]}
    rows = list(csv.DictReader((made[0] / "logs/people.csv").read_text().splitlines()))
    assert len(rows) == len(truth["annotations"])
    wanted = []
    for each in truth["annotations"]:
        stem = name_of[each["image_id"]].removesuffix(".png")
        number = int(stem.removeprefix("street")) - 1
        x, y, width, height = map(int, each["bbox"])
        depth = np.load(streets / "depth" / f"{stem}.npy")
        z = np.median(
            [np.median(depth[row, max(x, 0) : x + width]) for row in range(max(y, 0), min(y + height, 200))]
        )
        wanted.append((f"drive{number // 3}", (number % 3) / 2 + z, -z * (x + width / 2 - 160) / 250))
    found = [(each["log"], float(each["x_m"]), float(each["y_m"])) for each in rows]
    for (log, x, y), (there, ahead, left) in zip(sorted(found), sorted(wanted), strict=True):
        assert (log, x, y) == (there, pytest.approx(ahead), pytest.approx(left))


def test_magnitudes_in_people_by_plain_loops(streets, made):
    """Of the pixels of people, the share whose depth z is blended by 1 - exp(-3.912 z / visibility) in each tenth."""
    original = json.loads((streets / "truth.json").read_text())
    name_of = {each["id"]: each["file_name"] for each in original["images"]}
    for told, visibility in zip(made[1].magnitudes, (978, 97.8), strict=True):
        tenths, pixels = [0] * 10, 0
        for each in original["annotations"]:
            depth = np.load(streets / "depth" / name_of[each["image_id"]].replace(".png", ".npy"))
            x, y, width, height = map(int, each["bbox"])
            for z in depth[max(y, 0) : y + height, max(x, 0) : x + width].ravel().tolist():
                tenths[int(10 * (1 - np.exp(-3.912 * z / visibility)))] += 1
                pixels += 1
        assert told.pixels == pixels > 0
        assert told.shares == pytest.approx([count / pixels for count in tenths])


def test_what_is_right_is_kept_and_the_rest_is_made_again(streets, made, tmp_path, capsys, monkeypatch):
    target = tmp_path / "again"
    shutil.copytree(made[0], target)
    shutil.rmtree(target / "cache")
    checked = []
    monkeypatch.setattr(
        "verifier.pipeline.verified", lambda study, storm: checked.append(study) or verified(study, storm)
    )
    spoilt, whole = (target / "hog" / name / "detections.json" for name in (HAZY, "baseline"))
    spoilt.write_text("[]\n")
    before = whole.stat().st_mtime_ns
    assert main(["campaign", str(streets / "campaign.toml"), "-o", str(target), "--json"]) == ExitCode.INCONCLUSIVE
    shown = capsys.readouterr()
    assert shown.out == (made[0] / "campaign.json").read_text()
    assert not checked  # the matrices are the same again, so P is kept
    assert shown.err.splitlines()[-1] == "verify: 3 of 3 conditions"
    assert whole.stat().st_mtime_ns == before
    assert spoilt.read_text() == (made[0] / "hog" / HAZY / "detections.json").read_text()
    assert len(list((target / "cache").rglob("*.json"))) == 6  # six images, of one condition
    records = sorted((target / "conditions" / "runs").iterdir())
    assert [each.name for each in records] == sorted(f"hog@{name}.json" for name in CONDITIONS)
    records[0].write_text(records[0].read_text().replace('"key": "', '"key": "0'))
    records[1].write_text("{")
    assert main(["campaign", str(streets / "campaign.toml"), "-o", str(target), "--json"]) == ExitCode.INCONCLUSIVE
    assert capsys.readouterr().out == shown.out
    assert len(checked) == 2  # what was made from something else, and what cannot be read


def bytes_below(folder, *but):
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in but)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.mark.slow
def test_workers_make_the_same_files_though_one_is_killed(streets, made, tmp_path, monkeypatch):
    monkeypatch.setattr(looking, "BATCH", 1)  # two images are a block
    with cluster(2) as address, Pool(address) as pool:
        killer = Killer(address, [0.0])

        def watch(done, count):
            for number, name in enumerate(done):
                killer(number, count)
                yield name

        campaign_result(str(streets / "campaign.toml"), str(tmp_path), pool, watch)
    assert len(killer.killed) == 1
    assert sum(each.blocks for each in pool.shares) == 9
    own = ("campaign.json", "campaign.csv", "adr.json", "closed_loop.json", "report.html", "run.json")
    assert bytes_below(tmp_path, *own) == bytes_below(made[0], *own)


def test_jobs_are_workers_too_and_a_broken_image_is_named(streets, made, seeded, tmp_path, capsys):
    for name in ("campaign.toml", "camera.csv", "car.ltl", "car.toml", "poses.csv", "truth.json"):
        shutil.copy(streets / name, tmp_path)
    for name in ("images", "depth"):
        shutil.copytree(streets / name, tmp_path / name)
    command = ["campaign", str(tmp_path / "campaign.toml"), "-o", str(seeded), "--json"]
    image = sorted((tmp_path / "images").iterdir())[4]
    whole = image.read_bytes()
    image.write_bytes(whole[: len(whole) // 2])
    with cluster(1, processes=False) as address:
        assert main([*command, "--scheduler", address]) == ExitCode.BAD_INPUT
        assert image.name in capsys.readouterr().err
        image.write_bytes(whole)
        assert main([*command, "--jobs", address]) == ExitCode.INCONCLUSIVE
    shown = capsys.readouterr()
    assert json.loads(shown.out)["campaign"] == json.loads((made[0] / "campaign.json").read_text())["campaign"]
    assert next(line for line in shown.err.splitlines() if line.endswith("GiB")).startswith("tcp://127.0.0.1:")
    assert main(command) == ExitCode.INCONCLUSIVE  # nothing is left to be done, and nobody did it
    assert "GiB" not in capsys.readouterr().err


def test_where_nothing_is_reported_lambda_is_not_defined_and_the_worst_verdict_counts(streets, seeded, capsys):
    """From a score on that nothing reaches, and in haze of 1 m, where nothing has a rectangle to be placed by; with a
    target that no detector meets: violated, as `verify run` says of the matrices of the same condition."""
    (streets / "strict.ltl").write_text((streets / "car.ltl").read_text() + "never: P <= 0 [ true ]\n")
    text = FILE.replace("min_score = 0.5", "min_score = 50").replace("car.ltl", "strict.ltl")
    (streets / "strict.toml").write_text(text.replace("978,97.8", "978,1"))
    assert main(["campaign", str(streets / "strict.toml"), "-o", str(seeded)]) == ExitCode.VIOLATED
    found = json.loads((seeded / "campaign.json").read_text())
    conditions = "baseline, haze-visibility_m_978, haze-visibility_m_1"
    assert any(f"hog: lambda is not defined under {conditions}: " in each for each in found["remarks"])
    assert "lambda is not defined" in capsys.readouterr().out
    (dense,) = [each for each in found["campaign"] if each["condition"] == "haze-visibility_m_1"]
    assert (dense["recall"], dense["adr"]) == (0, 0)
    matrices = seeded / "hog/baseline/confusion.json"
    assert main(["run", str(streets / "strict.ltl"), "--cm", str(matrices)]) == ExitCode.VIOLATED


def test_remarks_travel_with_pairs_curves_and_matrices(made, capsys):
    """A new document says again what a file that it is made from says."""
    told = "reported distances are median depths of rectangles"
    folder = made[0] / "hog/baseline"
    assert any(told in each for each in made[1].remarks)
    pairs = ["collision", str(folder / "pairs.csv"), "--distances", "8", "--speeds", "36 km/h", "--bootstrap", "0"]
    assert main([*pairs, "--json"]) == 0
    assert any(told in each for each in json.loads(capsys.readouterr().out)["remarks"])


def test_an_own_folder_is_not_filled(streets, capsys):
    (streets / "mine").mkdir(exist_ok=True)
    (streets / "mine/letter.txt").write_text("dear")
    assert main(["campaign", str(streets / "campaign.toml"), "-o", str(streets / "mine")]) == ExitCode.BAD_INPUT
    assert "that of an earlier run" in capsys.readouterr().err
    assert main(["campaign", str(streets / "campaign.toml"), "-o", str(streets / "images/out")]) == ExitCode.USAGE
    assert [path.name for path in (streets / "mine").iterdir()] == ["letter.txt"]


def test_without_poses_the_rocs_are_made_and_what_moves_people_in_the_image_has_no_areas(streets, seeded, capsys):
    """Logs know people where they were: boxes that are turned would be compared with boxes that are not."""
    text = FILE[: FILE.index("[counting]")].replace('calibration = "camera.csv"\nposes = "poses.csv"\n', "")
    text = text.replace(
        'sweep = ["haze:visibility_m=978,97.8', 'sweep = ["rotation:angle_deg=3", "haze:visibility_m=978'
    )
    (streets / "turned.toml").write_text(text)
    assert main(["campaign", str(streets / "turned.toml"), "-o", str(seeded)]) == 0  # no requirement
    rows = {each["condition"]: each for each in json.loads((seeded / "campaign.json").read_text())["campaign"]}
    assert "area" not in rows["rotation-angle_deg_3"]
    assert rows["rotation-angle_deg_3"]["recall"] > 0.3  # by the boxes that were turned along
    for name in ("baseline", "haze-visibility_m_978"):
        assert rows[name]["area"].keys() == {"roc_a", "roc_b"}
    told = capsys.readouterr().out
    assert "every image is a log of its own" in told
    assert "rotation-angle_deg_3 moves what is seen: it has no trade-off areas" in told


# --- files that are none --------------------------------------------------------------------------------------------

HOSTILE = [
    ("", "missing key 'data'"),
    ("x = [", "not TOML"),
    ("\x00", "NUL byte"),
    (FILE.replace('kind = "hog"', 'kind = "hug"'), "expected one of hog, cascade, onnx, got 'hug'"),
    (FILE.replace("[detectors.hog]", '[detectors."a@b"]'), "has no '@'"),
    (FILE.replace("[detectors.hog]", '[detectors."../up"]'), "no '/'"),
    (FILE.replace("978,97.8", "978,-1"), "mutations.sweep[0]: mutation"),
    (FILE.replace('sweep = ["haze', 'sweep = ["blur'), "unknown mutation 'blur'"),
    (FILE.replace('sweep = [', 'list = "published-1999"\nsweep = ['), "expected one of published-2021"),
    (FILE.replace('"truth.json"', '"missing.json"'), "missing.json"),
    (FILE.replace('"images"', '"nowhere"'), "nowhere"),
    (FILE.replace('folder = "depth"', 'folder = "images"'), "expected a 16-bit grey image"),
    (FILE.replace('"camera.csv"', '"no.csv"'), "no.csv: no such file"),
    (FILE.replace('"poses.csv"', '"camera.csv"'), "frame"),
    (FILE.replace("control_radius = 2", "control_radius = 1"), "safety radius < control radius"),
    (FILE.replace("control_radius = 2\n", ""), "name the control radius"),
    (FILE.replace("control_radius = 2", "control_radius = [2]"), "control_radius: expected one value, got"),
    (FILE.replace("draws = 0", "draws = []"), "draws: expected one value, got []"),
    (FILE.replace('poses = "poses.csv"\n', ""), "needs 'poses' and 'calibration'"),
    (FILE.replace("[0, 9, inf]", "[9, 0]"), "increasing edges"),
    (FILE.replace("[counting]\nedges_m = [0, 9, inf]\n", ""), "the table 'counting'"),
    (FILE.replace("[0, 9, inf]", "[0, 2]"), "give other edges_m"),
    (FILE.replace('spec = "car.ltl"', 'spec = "car.toml"'), "car.toml"),
    (FILE.replace('spec = "car.ltl"', 'spec = "car.ltl"\nplanner = "wild"'), "unknown planner 'wild'"),
    (FILE.replace('class = "ped"', 'class = "tree"'), "detectors.hog: unknown class of the detector 'tree'"),
    (FILE.replace('depth = { folder = "depth" }', 'depth = { constant_m = 30 }'), "needs depth maps"),
    (FILE.replace('depth = { folder = "depth" }\n', ""), "needs depth"),
    (FILE.replace("level = [0.2, 0.5]", "level = [-1]"), "expected a number above 0"),
    (FILE.replace("level = [0.2, 0.5]", "level = [0.5, 0.2]"), "adr: expected increasing"),
    (FILE.replace('"depth" }', '"depth", sky = "top" }'), "expected mask:FOLDER or horizon:SHARE"),
    (FILE.replace('"depth" }', '"depth", sky = "mask:nowhere" }'), "nowhere/street1.png"),
    (FILE.replace('"depth" }', '"depth", inverse = 0 }'), "expected a number above 0, got 0"),
    (FILE.replace('folder = "depth" }', 'constant_m = 9, sky = "horizon:0.4" }'), "'sky' goes with a folder"),
    (FILE + "\n[extra]\n", "unknown key 'extra'"),
    (FILE.replace("seed", "seed") + "\n[mutations.more]\n", "more"),
    (FILE.replace("[mutations]", "[mutations]\nseed = 99999999999999999999999"), "whole number"),
    (FILE.replace("[mutations]", "[mutations]\nseverity = { fog = 'mild' }"), "no mutation has a folder"),
    *((FILE.replace(".hog]", f".{name}]"), "cannot be called as a") for name in ("conditions", "Logs", "cache")),
    (FILE.replace(".hog]", '."a\\\\b"]'), "no '\\'"),
    (FILE.replace(".hog]", '.""]'), "cannot be a name"),
    (FILE.replace("978,97.8", "nan"), "expected a number above 0, got 'nan'"),
    (FILE.replace("978,97.8", "1..1e9/100000000"), "at most 10000"),
    (FILE.replace('sweep = ["haze:visibility_m=978,97.8"]', "sweep = []"), "missing key 'sweep'"),
    (FILE.replace('sweep = ["haze:visibility_m=978,97.8"]', "sweep = [7]"), "expected a text in quotes, got 7"),
    (FILE.replace("draws = 100", "draws = true"), "expected a whole number"),
    (FILE.replace("control_radius = 2", "control_radius = inf"), "expected a finite number"),
    (FILE.replace("[0, 9, inf]", "[0, nan]"), "expected a finite number, got nan"),
    (FILE.replace("distance_m = 8", "distance_m = nan"), "expected a number from 0, got nan"),
    (FILE.replace("speed_mps = 10", "speed_mps = 1e308"), "exponent up to 300"),
    (FILE.replace("reaction_s = 0.1", "reaction_s = -1"), "expected a number from 0, got -1"),
    (FILE.replace("min_score = 0.5", "min_score = 0.5\nfalse_positives_per_image = 0.1"), "not both"),
    (FILE.replace('"truth.json"', '"."'), "expected a file, found a directory"),
    (FILE.replace('"truth.json"', '"images/street1.png"'), "expected UTF-8"),
    (FILE.replace('"coco"', '"kitti_tracking"'), "expected one of coco, kitti_object, table"),
    (FILE.replace('= "distance_m"', '= "nothing"'), "no annotation has a field 'nothing'"),
    (FILE.replace('"HOG on drawn streets"', '"\\u001b[31m"'), "expected printable text"),
    (FILE.replace('spec = "car.ltl"', 'spec = "car.ltl"\nenvironments = ["moon"]'), "unknown environment 'moon'"),
    (FILE.replace('poses = "poses.csv"', 'poses = "truth.json"'), "unknown column"),
    (FILE.replace('calibration = "camera.csv"', 'calibration = "poses.csv"'), "unknown column 'log'"),
    (FILE.replace('poses = "poses.csv"', 'poses = "poses.csv"\npeople = ["nobody"]'), "unknown class 'nobody'"),
    (FILE.replace('poses = "poses.csv"', 'poses = "poses.csv"\npeople = 5'), "expected a list"),
    (FILE * 2, "not TOML"),
    (FILE + "\nseed = " + "9" * 5000, "the number is too long"),
    (FILE + "\n" + "[x" * 5000, "not TOML"),
]  # fmt: skip


def test_guessed_depths_are_told_by_distance(tmp_path, monkeypatch):
    """Of 200 x 320 pixels the upper 60 rows are unknown, and below every third column, which are of the road."""
    write_streets(tmp_path, 1)
    path = tmp_path / "depth/street1.npy"
    depth = np.load(path)
    depth[:60] = 0
    depth[60:, ::3] = 0
    np.save(path, depth)
    text = FILE.replace('"depth" }', '"depth", densify = "nearest", sky = "horizon:0.3" }')
    (tmp_path / "campaign.toml").write_text(text)
    campaign = read_campaign(tmp_path / "campaign.toml")
    scenes = open_scenes(campaign.data, tmp_path, "data")
    fill, times = DepthSource.filled, []
    monkeypatch.setattr(DepthSource, "filled", lambda *given: times.append(given[1]) or fill(*given))
    filled = scenes.depth_m("street1.png", (200, 320))
    assert (filled[:60] == 1e5).all()
    assert np.array_equal(filled[60:, 1::3], depth[60:, 1::3])
    assert np.array_equal(filled[60:, 3::3] == filled[60:, 2:-1:3], np.ones((140, 106), bool))
    told = scenes.guessed()
    assert told.startswith("pixels with a guessed depth: 0 to 10 m ")
    assert told.endswith("in the sky 100 % of 19200")
    assert scenes.frame("street1.png", deep=True).depth_m is not None
    assert scenes.moved_depth_m("street1.png", None) is filled
    assert times == ["street1.png"]  # once, whoever asks


@pytest.mark.parametrize(("text", "complaint"), HOSTILE, ids=range(len(HOSTILE)))
def test_files_that_are_none_are_refused_before_anything_is_made(streets, tmp_path, capsys, text, complaint):
    (streets / "bad.toml").write_text(text)
    code = main(["campaign", str(streets / "bad.toml"), "-o", str(tmp_path / "out")])
    shown = capsys.readouterr()
    assert code in (ExitCode.USAGE, ExitCode.BAD_INPUT), shown.err
    assert complaint in shown.err
    assert "internal error" not in shown.err
    assert shown.out == ""
    assert not list(tmp_path.glob("out/hog"))


def test_all_problems_of_a_file_are_told_at_once_with_line_and_key(streets, capsys):
    text = FILE.replace('kind = "hog"', 'kind = "hug"').replace("distance_m = 8", "distance_m = 0")
    text = text.replace('spec = "car.ltl"', "").replace("draws = 0", "drows = 0").replace("[0, 9, inf]", '"x"')
    (streets / "bad.toml").write_text(text)
    assert main(["campaign", str(streets / "bad.toml")]) == ExitCode.BAD_INPUT
    told = capsys.readouterr().err
    lines = text.splitlines()
    for key, found in (
        ("detectors.hog.kind", 'kind = "hug"'),
        ("run", "[run]"),
        ("collision.distance_m", "distance_m = 0"),
        ("closed_loop.drows", "drows = 0"),
        ("counting.edges_m", 'edges_m = "x"'),
    ):
        assert f"bad.toml:{lines.index(found) + 1}: {key}: " in told
    assert "bad.toml: 5 problems" in told


def test_two_files_that_are_missing_are_told_at_once(streets, capsys):
    (streets / "bad.toml").write_text(FILE.replace('"camera.csv"', '"no.csv"').replace('"car.ltl"', '"no.ltl"'))
    assert main(["campaign", str(streets / "bad.toml")]) == ExitCode.BAD_INPUT
    told = capsys.readouterr().err
    assert "no.csv" in told
    assert "no.ltl" in told


def test_poses_that_do_not_fit(streets, tmp_path, capsys):
    rows = (streets / "poses.csv").read_text().splitlines()
    for changed, complaint in (
        (rows[:-1], "the image 'street6.png' has no pose"),
        ([*rows, rows[-1]], "occurs twice"),
        ([*rows[:2], rows[2].replace("0.5,0.5", "0.0,0.5"), *rows[3:]], "has the time of another one"),
    ):
        (streets / "odd.csv").write_text("\n".join(changed) + "\n")
        (streets / "odd.toml").write_text(FILE.replace('"poses.csv"', '"odd.csv"'))
        assert main(["campaign", str(streets / "odd.toml"), "-o", str(streets / "made_oddly")]) == ExitCode.BAD_INPUT
        assert complaint in capsys.readouterr().err
