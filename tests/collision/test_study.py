"""The study: what its parts are made from, and on real detectors of the KITTI benchmark."""

import json

import numpy as np
import pytest
from plain_collision import collision_probability
from typed_documents import read_back

from verifier.base.errors import UsageError
from verifier.cli import main
from verifier.collision.estimator import BrakingPolicy, EstimatorSettings, Grid, collision_map, speed_mps
from verifier.collision.pairs import Pairs, joined
from verifier.collision.pairs_of_detections import pairs_of_detections
from verifier.collision.pairs_reader import ReadPairs, read_pairs
from verifier.collision.request import study_remarks
from verifier.collision.study import StudySettings, collision_study
from verifier.perception.detections import read_detections
from verifier.perception.matching import MatchingPolicy

GRID = Grid(np.arange(2.0, 40.0, 4.0), np.array([speed_mps(each, "mph") for each in (15, 25, 40)]))
BRAKING = BrakingPolicy(6.86, 0.1)


def made(title, seed, bias, first=0, count=200):
    """One object in each of the images named `first`, `first + 1`, ..."""
    rng = np.random.default_rng(seed)
    true_m = rng.uniform(1, 40, count)
    predicted_m = np.maximum(true_m * rng.normal(1, 0.1, count) + bias, 0)
    names = tuple(str(first + number) for number in range(count))
    pairs = Pairs(true_m, predicted_m, np.arange(count), count, title, names)
    return ReadPairs(pairs, np.zeros(0), np.zeros(0, dtype=np.int64), {}, count)


def test_images_are_shared_by_name_and_progress_is_told():
    told = []

    def stages(name):
        told.append(name)
        return lambda done, total: told.append((done, total)) if done == total else None

    settings = StudySettings(GRID, (BRAKING,), bootstrap=5, ranking=5)
    (found,) = collision_study([made("a", 1, 0.0), made("b", 2, 1.0, first=150)], settings, stages=stages)
    assert [name for name in told if isinstance(name, str)] == ["a, intervals", "b, intervals", "a against b",
                                                                "a against b, bootstrap", "ranking"]  # fmt: skip
    assert told.count((10, 10)) >= 4
    # 350 images together; in those of the other detector this one has no object.
    assert [each.map.image_count for each in found.detectors] == [350, 350]
    assert found.combination.chosen_on + found.combination.scored_on == 350
    alone = collision_map(made("a", 1, 0.0).pairs, GRID, BRAKING)
    assert np.array_equal(found.detectors[0].map.probability, alone.probability, equal_nan=True)


def test_objects_are_the_same_up_to_a_millimetre():
    # Written with three decimals, a distance is off by up to half a millimetre.
    exact = np.array([3.00049, 3.00249, 8.5, 8.5])
    image = np.zeros(4, dtype=np.int64)
    first = Pairs(exact, exact, image, 1)
    second = Pairs(np.array([8.5, 8.5, 3.002, 3.0]), exact, image, 1)
    joint = joined([first, second])
    assert joint.pair_of.tolist() == [[0, 1, 2, 3], [3, 2, 0, 1]]
    # 1.1 mm from every distance of the first.
    apart = Pairs(np.array([2.99939, 3.00359, 8.4989, 8.5011]), exact, image, 1)
    assert joined([first, apart]).common_objects == 0


def test_a_single_detector_is_not_compared():
    (found,) = collision_study([made("a", 1, 0.0)], StudySettings(GRID, (BRAKING,), bootstrap=0))
    assert (found.comparisons, found.ranking, found.combination) == ((), None, None)
    assert found.detectors[0].loop is None
    score = found.detectors[0].score
    assert score.above >= 0
    assert score.below >= 0


def test_what_does_not_fit_is_refused():
    with pytest.raises(UsageError, match="the bootstrap goes with one bandwidth"):
        StudySettings(GRID, (BRAKING,), estimator=EstimatorSettings(two_bandwidths=True))


# Real detectors. Numbers of objects and signs of mean errors are those of the data's own description: M3D-RPN reports
# cars and pedestrians 0.4 to 0.8 m too far, the regression 1 m too near.
# The regression reports z, the distance forward: it is set beside the true z, and M3D-RPN is measured forward, too.
CSV_COLUMNS = {"image": "image_id", "true_m": "z_true", "predicted_m": "z_pred_int", "class": "cls"}


@pytest.fixture(scope="module")
def kitti(shared):
    return shared / "data"


@pytest.fixture(scope="module")
def m3d(kitti):
    folder = kitti / "kitti_object_val"
    return read_detections("kitti_object", folder / "label_2.zip", folder / "det_m3d_rpn.zip")


def regression(kitti):
    path = kitti / "kitti_distance_regression/predictions_joined.csv"
    return read_pairs(path, classes=("Car",), columns=CSV_COLUMNS, negative_reports="zero", title="regression")


def test_the_papers_rule_on_kitti_leaves_large_errors_out(m3d):
    for name, objects in (("Car", 8322), ("Pedestrian", 580)):
        strict = pairs_of_detections(m3d, classes=(name,), title=name)
        by_image = pairs_of_detections(m3d, classes=(name,), policy=MatchingPolicy("iou_2d", 0.5), title=name)
        errors = [each.pairs.predicted_m - each.pairs.true_m for each in (strict, by_image)]
        assert strict.origin["objects"] == by_image.origin["objects"] == objects
        assert strict.pairs.image_count == 1876
        assert np.std(errors[0]) < 0.7 * np.std(errors[1])
        assert np.abs(errors[0]).max() < np.abs(errors[1]).max()
        assert 0.3 < np.mean(errors[1]) < 1.0


def test_frames_of_one_drive_are_not_independent(kitti):
    scene = kitti / "nuscenes_mini_val/scene-0916"
    found = []
    for name in ("centerpoint", "megvii"):
        data = read_detections("nuscenes_compact", scene / "gt.json", scene / f"det_{name}")
        found.append(
            pairs_of_detections(data, classes=("car",), policy=MatchingPolicy("centre_bev", 2.0), title=name)
        )
    settings = StudySettings(GRID, (BRAKING,), bootstrap=0, ranking=10)
    policies = collision_study(found, settings)
    remarks = study_remarks(found, settings, policies)
    assert any("the 41 images are frames of one drive" in each for each in remarks)
    # Both saw the same objects, nearly all of them, and neither is far from its oracle.
    comparison = policies[0].comparisons[0].comparison
    assert comparison.common_objects > 0.8 * comparison.objects
    assert all(each.score.above + each.score.below < 0.02 for each in policies[0].detectors)


@pytest.mark.parametrize("name", ["Car", "Pedestrian"])
@pytest.mark.parametrize("deceleration", [3.92, 6.86])
def test_lambda_on_kitti_is_equation_1_term_by_term(m3d, name, deceleration):
    found = pairs_of_detections(m3d, classes=(name,), policy=MatchingPolicy("iou_2d", 0.5), title=name).pairs
    chart = collision_map(found, GRID, BrakingPolicy(deceleration, 0.1))
    pairs = list(zip(found.true_m.tolist(), found.predicted_m.tolist(), strict=True))
    widths = (chart.width_m, chart.width_m)
    for y, v in ((1, 0), (2, 1), (4, 1), (6, 2), (8, 2)):
        if np.isfinite(chart.probability[y, v]):
            plain = collision_probability(
                pairs, found.per_image.tolist(), float(GRID.distances_m[y]), float(chart.stopping_m[v]), widths
            )
            assert chart.probability[y, v] == pytest.approx(plain, abs=1e-9)
    # Far on either side of y = S(v) the map is certain.
    away = GRID.distances_m[:, None] - chart.stopping_m
    defined = np.isfinite(chart.probability)
    assert np.all(chart.probability[defined & (away > 15)] < 0.05)
    assert np.all(chart.probability[defined & (away < -15)] > 0.95)


def test_a_study_of_two_detectors_on_kitti(kitti, root, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    folder = kitti / "kitti_object_val"
    arguments = ["collision", "--format", "kitti_object", "--annotations", folder / "label_2.zip",
                 "--detections", f"M3D-RPN={folder / 'det_m3d_rpn.zip'}", "--class", "Car", "--distance", "forward",
                 "--pairs", f"regression={kitti / 'kitti_distance_regression/predictions_joined.csv'}",
                 "--negative-reports", "zero", "--deceleration", "3.92", "--deceleration", "6.86",
                 "--bootstrap", "0", "--ranking-replicates", "20", "--closed-loop", "38", "--empty-bins", "neighbour",
                 "--loop-speeds", "15..35:10 mph", "--distances", "1..49:2", "--speeds", "5..75:5 mph",
                 "--output", "study.json"]  # fmt: skip
    arguments += [word for ours, own in CSV_COLUMNS.items() for word in ("--column", f"{ours}={own}")]
    assert main([str(each) for each in arguments]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    document = json.loads((tmp_path / "study.json").read_text())
    read_back(document)
    assert [(each["title"], each["objects"]) for each in document["inputs"]] == [
        ("regression", 1630),
        ("M3D-RPN", 8322),
    ]
    for policy in document["policies"]:
        near, far = (each["score"] for each in policy["detectors"])
        # Reports that are too far lie above the oracle, reports that are too near below it.
        assert far["above"] > far["below"]
        assert near["below"] > near["above"]
        # Of the regression's cars in images of both, M3D-RPN has a pair for 632: plain loops over images find as
        # many, no two distances differ by 1e-6 to 5e-3 m, boxes of pairs overlap by at least 1.5 mm on each of the
        # four axes that could separate them, and those of other reports in the image are at least 15 mm apart.
        assert policy["comparisons"][0]["common_objects"] == 632
        ratios = {each["ratio"]: each for each in policy["ranking"]["ratios"]}
        # M3D-RPN differs less from its oracle wherever both sides weigh alike or "below" weighs more.
        assert all(ratios[ratio]["order"][0] == 1 for ratio in (1.0, 10.0, 100.0))
        assert all(ratios[ratio]["best_share"][1] > 0.9 for ratio in (1.0, 10.0, 100.0))
        for each in policy["detectors"]:
            for point in each["closed_loop"]["points"]:
                assert point["closer"] >= point["one_shot"] - 1e-12
                assert abs(point["closer"] - point["second_engine"]) < 1e-9
    # M3D-RPN reports too far, so the last reports come too late for a planner without a margin; one report says
    # nothing of that.
    loop = document["policies"][1]["detectors"][1]["closed_loop"]["points"]
    assert loop[1]["one_shot"] < 0.01
    assert loop[1]["closer"] > 0.3
    assert "large errors are left out" in out
