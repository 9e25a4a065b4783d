"""Hits, precision, recall and the COCO metrics: by hand, and against a second computation of the 101 recalls."""

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import lane_set
from slow_matcher import crowded_scene, detection_set

from verifier.base.errors import InputError, UsageError
from verifier.perception.detections.arrays import from_arrays
from verifier.perception.matching import MatchingPolicy, convention, match
from verifier.robustness.detection_metrics import Performance, coco_metrics, count_hits

CLASSES = ("person", "car")


def near(value):
    """pycocotools adds 2.2e-16 to the denominator of every precision."""
    return pytest.approx(value, abs=1e-14)


def boxes(objects, detections, area=None, region=None, classes=("person",), frames=1):
    """A set from (box, label) and (box, score, label), all in frame 0."""
    truth = {
        "frame": [0] * len(objects),
        "class": [label for _, label in objects],
        "box_2d": np.array([box for box, _ in objects], dtype=float).reshape(-1, 4),
    }
    if area is not None:
        truth["area"] = area
    if region is not None:
        truth["region"] = region
    found = {
        "frame": [0] * len(detections),
        "class": [label for _, _, label in detections],
        "score": [score for _, score, _ in detections],
        "box_2d": np.array([box for box, _, _ in detections], dtype=float).reshape(-1, 4),
    }
    return from_arrays(classes, [str(i) for i in range(frames)], truth, found)


# Hits


def test_hits_by_hand():
    # Two people and a car. Person 0 is found twice (one duplicate), person 1 is reported as a car, the car is missed.
    data = lane_set(
        2,
        [(0, 0, 0), (0, 1, 0), (1, 0, 1)],
        [(0, 0, 0.9, 0), (0, 0, 0.8, 0), (0, 1, 0.7, 1), (1, 5, 0.6, 0)],
        CLASSES,
    )
    found = count_hits(data)
    assert found == {"TP": 1, "FP": 3, "FN": 2}
    assert Performance(counts=found).values == {"precision": Fraction(1, 4), "recall": Fraction(1, 3)}


def test_matched_with_the_wrong_class_is_false_and_missed():
    # Class-free: the car report takes person 1, and neither counts as right.
    data = lane_set(1, [(0, 0, 0), (0, 1, 0)], [(0, 0, 0.9, 0), (0, 1, 0.7, 1)], CLASSES)
    assert count_hits(data, MatchingPolicy("iou_2d", 0.5)) == {"TP": 1, "FP": 1, "FN": 1}


def test_the_lowest_score_and_regions():
    data = boxes(
        [((0, 0, 10, 10), 0), ((50, 0, 90, 40), 0)],
        [((0, 0, 10, 10), 0.5, 0), ((60, 5, 70, 15), 0.9, 0), ((200, 0, 210, 10), 0.4, 0)],
        region=[0, 1],
    )
    assert count_hits(data) == {"TP": 1, "FP": 1, "FN": 0}
    assert count_hits(data, lowest_score=0.5) == {"TP": 1, "FP": 0, "FN": 0}
    assert Performance(counts=count_hits(data, lowest_score=0.6)).values == {"recall": 0}
    assert Performance(counts=count_hits(boxes([], [((0, 0, 10, 10), 1.0, 0)]))).values == {"precision": 0}


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_counts_add_up(seed, class_aware):
    annotations, detections = crowded_scene(seed % 1000, 6)
    data = detection_set(annotations, detections, 6)
    found = count_hits(data, MatchingPolicy("iou_2d", 0.25, class_aware=class_aware))
    assert found["TP"] + found["FN"] == len(data.annotations)
    assert found["TP"] + found["FP"] == len(data.detections)


# COCO

coco = pytest.importorskip("pycocotools", reason="pycocotools is not installed")


def test_perfect():
    # 10 x 10 is small: nothing of medium or large size is there to be found.
    found = coco_metrics(boxes([((0, 0, 10, 10), 0)], [((0, 0, 10, 10), 0.3, 0)]))
    assert (found["AP"], found["AP0.5"], found["AP0.75"], found["AP_S"]) == near((1, 1, 1, 1))
    assert (found["AR1"], found["AR10"], found["AR100"], found["AR_S"]) == (1, 1, 1, 1)
    assert not {"AP_M", "AP_L", "AR_M", "AR_L"} & set(found)


def test_half_found():
    # Recall stops at 1/2 with precision 1: 51 of the 101 recalls 0, .01, ..., 1 are reached.
    data = boxes([((0, 0, 10, 10), 0), ((50, 0, 60, 10), 0)], [((0, 0, 10, 10), 0.3, 0)])
    assert coco_metrics(data)["AP"] == near(51 / 101)
    assert coco_metrics(data)["AR100"] == 0.5


def test_a_surer_false_positive_halves_the_precision():
    data = boxes([((0, 0, 10, 10), 0)], [((50, 0, 60, 10), 0.9, 0), ((0, 0, 10, 10), 0.8, 0)])
    found = coco_metrics(data)
    assert (found["AP"], found["AR1"], found["AR10"]) == near((0.5, 0, 1))  # with one detection: only the false one


def test_a_less_sure_false_positive_costs_nothing():
    data = boxes([((0, 0, 10, 10), 0)], [((50, 0, 60, 10), 0.7, 0), ((0, 0, 10, 10), 0.8, 0)])
    assert coco_metrics(data)["AP"] == near(1)


def test_a_loose_box_reaches_some_of_the_thresholds():
    # 10 x 62 of 10 x 100: IoU .62 reaches .50, .55, .60 and misses .65 to .95.
    found = coco_metrics(boxes([((0, 0, 10, 100), 0)], [((0, 0, 10, 62), 0.3, 0)]))
    assert found["AP"] == near(3 / 10)
    assert (found["AP0.5"], found["AP0.75"]) == near((1, 0))
    assert found["AR100"] == near(3 / 10)


def test_sizes():
    # 40 x 40 is medium, and small by the area of its mask where that is given; 100 x 100 is large.
    objects = [((0, 0, 40, 40), 0), ((200, 0, 300, 100), 0)]
    reports = [((0, 0, 40, 40), 0.9, 0)]
    own = coco_metrics(boxes(objects, reports))
    assert (own["AP_M"], own["AP_L"]) == near((1, 0))
    assert "AP_S" not in own
    mask = coco_metrics(boxes(objects, reports, area=[1000.0, math.nan]))
    assert (mask["AP_S"], mask["AP_L"]) == near((1, 0))
    assert "AP_M" not in mask


def test_a_class_without_objects_does_not_count():
    data = boxes([((0, 0, 10, 10), 0)], [((0, 0, 10, 10), 0.3, 0), ((0, 0, 10, 10), 0.3, 1)], classes=CLASSES)
    assert coco_metrics(data)["AP"] == near(1)


def test_detections_in_a_region_are_not_judged():
    objects = [((0, 0, 10, 10), 0), ((50, 0, 90, 40), 0)]
    reports = [((60, 5, 70, 15), 0.9, 0), ((0, 0, 10, 10), 0.5, 0)]
    assert coco_metrics(boxes(objects, reports, region=[0, 1]))["AP"] == near(1)
    assert coco_metrics(boxes(objects[:1], reports))["AP"] == near(0.5)


def test_a_region_of_no_class_is_one_of_every_class():
    objects = [((0, 0, 10, 10), 0), ((0, 0, 10, 10), 1), ((50, 0, 90, 40), 0)]
    reports = [((60, 5, 70, 15), 0.9, 0), ((60, 5, 70, 15), 0.9, 1)]
    reports += [((0, 0, 10, 10), 0.5, 0), ((0, 0, 10, 10), 0.5, 1)]
    data = boxes(objects, reports, region=[0, 0, 1], classes=CLASSES)
    assert coco_metrics(data)["AP"] == pytest.approx(
        0.75
    )  # the car's report in the person's region is false: (1 + 1/2)/2
    regions = data.ignored.take(np.arange(1))
    everywhere = type(regions)(**{**vars(regions), "label": np.array([-1], dtype=np.int32)})
    assert coco_metrics(data.change(ignored=everywhere))["AP"] == near(1)


def test_nothing_found_and_nothing_printed(capfd):
    assert coco_metrics(boxes([((0, 0, 10, 10), 0)], []))["AP"] == 0
    assert capfd.readouterr().out == ""


def average_precision(data, label, threshold):
    """The 101-point AP of one class at one IoU, from our own matching: precision made not to rise with recall."""
    matches = match(data, convention("coco", threshold=threshold))
    mine = np.flatnonzero((data.detections.label == label) & ~matches.ignored)
    mine = mine[np.argsort(-data.detections.score[mine], kind="stable")]
    hit = np.cumsum(matches.annotation_of[mine] >= 0)
    count = int((data.annotations.label == label).sum())
    total = 0.0
    for point in range(101):
        reaching = [hit[k] / (k + 1) for k in range(len(mine)) if hit[k] / count >= point / 100 - 1e-12]
        total += max(reaching, default=0.0)
    return total / 101, (hit[-1] / count if len(mine) else 0.0)


@pytest.mark.every(2)
@pytest.mark.parametrize("seed", range(4))
def test_coco_is_that_of_a_second_computation(seed):
    annotations, detections = crowded_scene(seed, 30)
    rng = np.random.default_rng(seed)
    # No two detections equally sure: across images pycocotools orders those by image.
    scores = rng.permutation(len(detections)) / len(detections)
    things = [
        type(each)(each.frame, each.label, each.box, float(s)) for each, s in zip(detections, scores, strict=True)
    ]
    data = detection_set(annotations, things, 30)
    found = coco_metrics(data)
    expected = [[average_precision(data, label, 0.5 + 0.05 * k) for k in range(10)] for label in range(2)]
    table = np.array(expected)
    assert table[..., 0].mean() > 0.01
    assert found["AP"] == pytest.approx(table[..., 0].mean(), abs=1e-9)
    assert found["AP0.5"] == pytest.approx(table[:, 0, 0].mean(), abs=1e-9)
    assert found["AP0.75"] == pytest.approx(table[:, 5, 0].mean(), abs=1e-9)
    assert found["AR100"] == pytest.approx(table[..., 1].mean(), abs=1e-9)


def test_real_detections_of_kitti(shared):
    # RRC, a camera detector, on a drive of KITTI: COCO's recall at IoU .5 is the one that counting hits gives.
    from verifier.perception.detections import Reading, class_map, read_detections

    folder = shared / "data/kitti_tracking"
    rules = class_map({"Pedestrian": "person", "DontCare": "dont_care", "*": "ignore"})
    data = read_detections(
        "kitti_tracking", folder / "label_02", folder / "det_rrc2d", Reading(rules, sequences=("0016",))
    )
    found, counted = coco_metrics(data), count_hits(data)
    assert found["AP"] < found["AP0.5"]
    assert 0.5 < found["AP0.5"] < Performance(counts=counted).values["recall"] < 1
    one, _ = average_precision(data, 0, 0.5)
    assert found["AP0.5"] == pytest.approx(one, abs=2e-3)  # scores of two decimals tie


# What is refused


def test_data_that_cannot_be_judged():
    with pytest.raises(InputError, match="no images, or no annotated object"):
        coco_metrics(boxes([], []))
    nowhere = from_arrays(["a"], ["0"], {"frame": [0], "class": [0]}, {"frame": [0], "class": [0], "score": [0.5]})
    with pytest.raises(UsageError, match="rectangles in the image, which the annotations do not all have"):
        coco_metrics(nowhere)
    with pytest.raises(UsageError, match="image rectangles"):
        count_hits(nowhere)


def test_without_pycocotools(monkeypatch):
    monkeypatch.setitem(sys.modules, "pycocotools.coco", None)
    with pytest.raises(UsageError, match="this needs the library pycocotools\n  hint: pip install '\\.\\[coco\\]'"):
        coco_metrics(boxes([((0, 0, 10, 10), 0)], []))


def test_the_names_of_table_6():
    found = coco_metrics(boxes([((0, 0, 10, 10), 0)], [((0, 0, 10, 10), 0.3, 0)]))
    assert set(found) == {
        "AP",
        "AP0.5",
        "AP0.75",
        "AP_S",
        "AR1",
        "AR10",
        "AR100",
        "AR_S",
    }  # nothing else is there
    assert list(found.values()) == near([1.0] * 8)
