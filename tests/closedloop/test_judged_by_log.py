"""What each log adds to the curves of the four context levels: a draw is the curve of the drawn logs."""

from __future__ import annotations

import numpy as np
import pytest
from small_logs import HAND, made_logs, straight

from verifier.closedloop.closed_loop_curve import LoopSettings, draw_logs, judged_sums
from verifier.closedloop.detection_outcomes import judge_pathifier, judge_roboticizer, judge_roc_a, judge_roc_b
from verifier.closedloop.logs import Detections, Logs, Standardizer
from verifier.closedloop.pathifier import Radii
from verifier.closedloop.study import study
from verifier.closedloop.study_settings import METRICS, StudySettings
from verifier.closedloop.traces import VehicleSettings
from verifier.perception.matching import MatchingPolicy

ONE_METRE = MatchingPolicy("centre_bev", 1.0)
STANDARD = Standardizer.from_validation(np.linspace(0.05, 0.95, 19), 40)
LEVELS = np.array([0.3, 0.02, 0.1, 0.5])  # in any order

JUDGES = {
    "roc_a": lambda logs: judge_roc_a(logs, "a", STANDARD, ONE_METRE),
    "roc_b": lambda logs: judge_roc_b(logs, "a", STANDARD, ONE_METRE),
    "roboticizer": lambda logs: judge_roboticizer(logs, "a", STANDARD),
    "pathifier": lambda logs: judge_pathifier(logs, "a", STANDARD, 2.0),
}


def drives():
    """Three logs towards a person at 8 m and three free ones, with reports that come and go."""
    rng = np.random.default_rng(5)
    made = {f"{kind} {k}": (kind == "person", straight(7)) for kind in ("person", "free") for k in range(3)}
    people = [(image, 8, rng.normal(0, 0.1)) for image in range(21)]
    seen = [(image, rng.random(), 8 + rng.normal(0, 0.5), rng.normal(0, 0.5)) for image in range(21)]
    alarms = [(int(image), rng.random(), image % 7 + 6 * rng.random(), 0) for image in rng.integers(0, 42, 40)]
    return made_logs(made, people, seen + alarms)


def repeated(logs, times):
    """The logs, each as often as `times` says, as if each had been driven so often."""
    chosen = [log for log, count in enumerate(times) for _ in range(int(count))]
    images = [np.flatnonzero(logs.image_log == log) for log in chosen]
    starts = np.cumsum([0, *map(len, images)])

    def rows(image):
        found = [
            (row, start + int(image[row] - own[0]))
            for own, start in zip(images, starts.tolist(), strict=False)
            for row in np.flatnonzero(np.isin(image, own)).tolist()
        ]
        return np.array([row for row, _ in found], dtype=int), np.array([at for _, at in found], dtype=np.int64)

    order = np.concatenate(images)
    people, person_image = rows(logs.person_image)
    reports, image = rows(logs.detections["a"].image)
    found = logs.detections["a"]
    return Logs(
        tuple(f"{number} {logs.names[log]}" for number, log in enumerate(chosen)),
        np.array([logs.positive[log] for log in chosen]),
        np.repeat(np.arange(len(chosen)), list(map(len, images))),
        logs.time_s[order],
        logs.position_m[order],
        None,
        person_image,
        logs.person_m[people],
        {"a": Detections(image, found.strength[reports], found.point_m[reports])},
    )


@pytest.mark.parametrize("metric", JUDGES)
def test_a_draw_is_the_curve_of_the_drawn_logs(metric):
    logs = drives()
    judge = JUDGES[metric]
    sums = judged_sums(judge(logs), LEVELS, logs.positive, 0.4)
    assert len(set(sums.curve.safety.tolist())) > 1
    assert len(set(sums.curve.efficiency.tolist())) > 1
    weights = draw_logs(logs.positive, 12, np.random.default_rng(3))
    safety, efficiency = sums.drawn(weights)
    for draw in range(12):
        again = repeated(logs, weights[draw])
        curve = judged_sums(judge(again), LEVELS, again.positive, 0.4).curve
        assert safety[draw].tolist() == pytest.approx(curve.safety.tolist())
        assert efficiency[draw].tolist() == pytest.approx(curve.efficiency.tolist())


def test_sums_by_hand():
    # HAND (see there): the person is met at strengths .9 (image 1), .5 (image 2), .3 (image 4); the alarms of
    # "nobody" have .6, .7, .4 and, off the path, .95. With st(x) = 1 - x an alarm of .7 is raised from 0.3 on.
    unit = Standardizer.from_validation(np.arange(0.005, 1, 0.01), 100)
    judged = judge_pathifier(HAND, "a", unit, 2.0)
    levels = np.array([0.05, 0.35, 0.65])
    # Frames with the person in [0, 5): all five, one log. Alarms: .6 at 1 m (strict); .7 at 2 m and .4 at 2.5 m in
    # the lenient bin, so that the second counts from the weaker on, 0.6.
    assert judged.wanted_by_log().tolist() == [5, 0]
    assert judged.images.tolist() == [0, 5]
    assert judged.alarms_by_log(levels).tolist() == [[0, 0, 0], [0, 0, 2]]
    assert judged.found_by_log(levels)[1].tolist() == [0, 0, 0]
    curve = judged_sums(judged, levels, HAND.positive, 1.0).curve
    assert (judged.found_by_log(levels)[0] / 5).tolist() == curve.safety.tolist()
    assert curve.efficiency.tolist() == [1, 1, 1 - 2 / 5]


def test_a_study_has_intervals_for_every_metric():
    loop = LoopSettings(VehicleSettings())
    settings = StudySettings(Radii(2.0, 1.5), loop, np.sort(LEVELS), METRICS, policy=ONE_METRE, draws=30)
    found = study(drives(), None, settings)
    for table in found.tables:
        (cell,) = table.rows[0].cells
        low, high = cell.area_interval
        assert 0 <= low <= high <= 1 + 1e-12
        assert cell.best_probability == 1
