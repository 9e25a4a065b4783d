"""nuScenes and FieldSAFE from the recorded files to the curves: three sources each, a hundred sensitivities."""

import json
import math
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from judged_curves import pathifier_curve, roboticizer_curve, roc_a, roc_b
from plain_curves import Plain
from real_logs import READING, TWO_METRES, counted, field_logs, scene_counts, scene_logs

from verifier.closedloop.cutting import in_view, positive_by_path, windows
from verifier.closedloop.fieldsafe import Drawing, drawn_detections
from verifier.closedloop.logs import person_matches, standardizer_of
from verifier.closedloop.pathifier import PathSettings, courses
from verifier.perception.detections import read_detections

TAU = np.geomspace(1e-4, 1.0, 100)
CEILING = 1.0
"""False positives per image: the paper's 0.1 leaves little of these detectors, which were made for recall."""


@pytest.fixture(scope="module")
def scene(shared):
    return shared / "data/nuscenes_mini_val/scene-0916"


@pytest.fixture(scope="module")
def nuscenes(scene):
    """The scene for validation, the scene in eight logs, and the control radius.

    Nobody comes within 3 m of the car's path, so the radius is that of a wide street.
    """
    logs = scene_logs(scene)
    return logs, positive_by_path(windows(logs, 2.4), 6.0, PathSettings()), 6.0


def channels(shared, scene):
    """Counts of pedestrians by distance: two detectors on nuScenes, one on KITTI, each at about 25 thresholds."""
    for name in ("centerpoint", "megvii"):
        yield name, scene_counts(scene, name)
    kitti = shared / "data/kitti_tracking"
    paths = kitti / "label_02", kitti / "det_pointrcnn"
    data = read_detections("kitti_tracking", *paths, READING, frames=kitti / "sequences.csv")
    yield "pointrcnn", counted(data, "pointrcnn")


@pytest.fixture(scope="module")
def fieldsafe(shared, scene):
    """The drive with drawn detections for validation, again in 48 logs, and the control radius."""
    drives = [in_view(field_logs(shared / "data/fieldsafe"), math.pi / 4)] * 2
    for number, (name, counts) in enumerate(channels(shared, scene)):
        drives = [
            drawn_detections(
                each, counts, "ped", np.random.default_rng([seed, number]), name, Drawing(empty_columns="neighbour")
            )
            for seed, each in enumerate(drives)
        ]
    return drives[0], positive_by_path(windows(drives[1], 6.0), 2.0, PathSettings()), 2.0


@pytest.mark.parametrize("data", ["nuscenes", "fieldsafe"])
def test_curves_of_real_logs(data, request):
    """All four curves at a hundred sensitivities; at some of them as the definitions count, image by image."""
    validation, logs, radius = request.getfixturevalue(data)
    assert 0 < logs.positive.sum() < logs.log_count
    assert len(logs.detections) == 3
    to_the_last_pose = PathSettings(extension_m=0)
    for source in logs.detections:
        standard = standardizer_of(validation, source, TWO_METRES)
        curves = [
            roc_a(logs, source, standard, TAU, TWO_METRES, CEILING),
            roc_b(logs, source, standard, TAU, TWO_METRES, CEILING),
            roboticizer_curve(logs, source, standard, TAU, CEILING),
            pathifier_curve(logs, source, standard, TAU, radius, "forgiven", CEILING, to_the_last_pose),
        ]
        for curve in curves:
            assert (np.diff(curve.safety) >= 0).all()
            assert (np.diff(curve.efficiency) <= 0).all()
        false, images = standard.false_positives.tolist(), validation.image_count
        for at in (70, 99):
            rate = cache(lambda x, f=false, n=images: sum(each >= x for each in f) / n)
            plain = Plain(logs, source, rate, TAU[at], radius)
            expected = [
                plain.roc_a(2.0, CEILING),
                plain.roc_b(2.0, CEILING),
                plain.roboticizer(1.0, 0, 10, CEILING),
                plain.pathifier((0, 2), (2, 5), True, CEILING),
            ]
            found = [(curve.safety[at], curve.efficiency[at]) for curve in curves]
            assert np.array(found) == pytest.approx(np.array(expected), abs=1e-12)
        assert curves[0].safety[-1] > curves[0].safety[0] or source == "pointpillars_trelpy"  # two reports, all sure


@pytest.mark.parametrize("data", ["nuscenes", "fieldsafe"])
def test_courses_of_real_logs(data, request):
    validation, logs, radius = request.getfixturevalue(data)
    for source in logs.detections:
        found = courses(logs, source, standardizer_of(validation, source, TWO_METRES), radius)
        assert [course.positive for course in found] == logs.positive.tolist()
        assert [len(course.image_s_m) for course in found] == np.bincount(logs.image_log).tolist()
        # People block the path of positive logs, and of no other.
        assert [len(course.truth_image) > 0 for course in found] == logs.positive.tolist()
        # What is driven is what lies between the poses, and the extension.
        for log, course in enumerate(found):
            points = logs.position_m[logs.image_log == log]
            driven = sum(math.dist(a, b) for a, b in pairwise(points))
            assert course.end_s_m == pytest.approx(driven + 10)


@pytest.mark.parametrize(
    ("source", "score", "recall", "rate"),
    [
        ("centerpoint", 0.3, 0.963, 5.15),
        ("centerpoint", 0.5, 0.883, 1.29),
        ("megvii", 0.3, 0.671, 0.63),
        ("megvii", 0.5, 0.135, 0.07),
    ],
)
def test_statistics_of_the_scene(nuscenes, scene, source, score, recall, rate):
    """Recall and false positives per frame as counted by others, of people with at least one LiDAR point."""
    boxes = [box for frame in json.loads((scene / "gt.json").read_text()) for box in frame["boxes"]]
    seen = np.array([box["num_lidar_pts"] > 0 for box in boxes if box["name"] == "pedestrian"])
    logs = nuscenes[0]
    logs = replace(logs, person_image=logs.person_image[seen], person_m=logs.person_m[seen])
    assert len(logs.person_m) == 401
    standard = standardizer_of(logs, source, TWO_METRES)
    assert round(float(standard(score)), 2) == rate
    matched = person_matches(logs, source, TWO_METRES).detection_of
    found = np.count_nonzero(logs.source(source).strength[matched[matched >= 0]] >= score)
    assert round(found / 401, 3) == recall
    # The level of that score lets through what is surer than the next false positive below it, too.
    level = float(standard(score))
    curve = roc_a(logs, source, standard, [level], TWO_METRES)
    exceeded = np.count_nonzero(logs.source(source).strength[matched[matched >= 0]] > standard.raw_threshold(level))
    assert curve.safety[0] == exceeded / 401 >= found / 401


def test_what_fieldsafe_says_of_itself(fieldsafe):
    remarks = fieldsafe[1].remarks
    assert sum("are no detector's: they are drawn at random" in each for each in remarks) == 3
    assert "only what lies within 45 degrees of the heading is looked at" in remarks
    assert "within the control radius of 2 m" in remarks[-1]
