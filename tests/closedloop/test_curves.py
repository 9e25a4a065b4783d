"""Trade-off curves: by hand, against counting one threshold and one image at a time, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from judged_curves import pathifier_curve, roboticizer_curve, roc_a, roc_b
from plain_curves import Plain
from small_logs import HAND, made_detections, made_logs, random_logs, straight

from verifier.base.errors import InputError, UsageError
from verifier.closedloop.curves import TradeOffCurve
from verifier.closedloop.logs import Detections, Standardizer
from verifier.closedloop.pathifier import PathSettings
from verifier.perception.matching import MatchingPolicy

TWO_METRES = MatchingPolicy("centre_bev", 2.0)
LEVELS = [0.1, 0.2, 0.4, 0.6, 0.8, 1.0]
# Strengths of `HAND` and their sensitivities: .95 .9 .8 -> .2, .7 -> .4, .6 .5 -> .6, .4 .3 -> .8.
STANDARD = Standardizer.from_validation([0.95, 0.7, 0.6, 0.4], 5)


def points(curve):
    assert curve.sensitivity.tolist() == LEVELS
    return curve.safety.tolist(), curve.efficiency.tolist()


def same(curve, safety, efficiency):
    found = points(curve)
    return found[0] == pytest.approx(safety, abs=1e-15) and found[1] == pytest.approx(efficiency, abs=1e-15)


def test_roc_a_by_hand():
    # Found, of five sightings: image 1 from .2, image 2 from .6, image 4 from .8. False positives on ten images:
    # image 3 from .2, 9 from .2, 6 from .4, 5 from .6, 7 from .8. With at most 1 per image E = 1 - rate.
    curve = roc_a(HAND, "a", STANDARD, LEVELS, TWO_METRES, fpr_max=1.0)
    assert same(curve, [0, 0.2, 0.2, 0.4, 0.6, 0.6], [1, 0.8, 0.7, 0.6, 0.5, 0.5])
    # The paper's ceiling of 0.1 per image.
    assert same(roc_a(HAND, "a", STANDARD, LEVELS, TWO_METRES), [0, 0.2, 0.2, 0.4, 0.6, 0.6], [1, 0, 0, 0, 0, 0])


def test_roc_b_by_hand():
    # Only the five images of the log "nobody" count: 9 from .2, 6 from .4, 5 from .6, 7 from .8.
    curve = roc_b(HAND, "a", STANDARD, LEVELS, TWO_METRES, fpr_max=1.0)
    assert same(curve, [0, 0.2, 0.2, 0.4, 0.6, 0.6], [1, 0.8, 0.6, 0.4, 0.2, 0.2])
    # A second, weaker false positive in image 9 changes ROC_A alone.
    more = with_rows(HAND, [(9, 0.95, 4, 10), (9, 0.5, 4, 20)])
    assert roc_b(more, "b", STANDARD, LEVELS, TWO_METRES, 1.0).efficiency.tolist() == [1, 0.8, 0.8, 0.8, 0.8, 0.8]
    assert roc_a(more, "b", STANDARD, LEVELS, TWO_METRES, 1.0).efficiency.tolist() == [1, 0.9, 0.9, 0.8, 0.8, 0.8]


def test_people_beside_the_path_of_a_negative_log():
    # (9, 3) is 3 m beside the path. ROC_A counts the sighting, ROC_B only those of positive logs; a report of it is
    # no false positive in either.
    logs = made_logs(
        {"person": (True, straight(2)), "nobody": (False, straight(2))},
        [(0, 5, 0), (2, 9, 3)],
        [(2, 0.95, 9, 3), (0, 0.7, 5, 0)],
    )
    assert same(roc_a(logs, "a", STANDARD, LEVELS, TWO_METRES), [0, 0.5, 1, 1, 1, 1], [1] * 6)
    assert same(roc_b(logs, "a", STANDARD, LEVELS, TWO_METRES), [0, 0, 1, 1, 1, 1], [1] * 6)
    assert same(roboticizer_curve(logs, "a", STANDARD, LEVELS), [0, 0, 1, 1, 1, 1], [1] * 6)


def test_roc_by_rectangles():
    # One report in each of images 0 to 2. The IoU of (0, 0, 10, 10) with (0, 0, 10, 5) is 1/2, which reaches 0.5;
    # with (0, 0, 10, 4.9) it does not.
    boxes = np.array([[0, 0, 10, 5], [0, 0, 10, 4.9], [0, 0, 10, 10]], dtype=float)
    unknown = np.full((3, 2), np.nan)
    logs = made_logs(
        {"person": (True, straight(2)), "nobody": (False, straight(2))},
        [(0, 5, 0), (1, 5, 0)],
        person_box_2d=np.array([[0, 0, 10, 10]] * 2, dtype=float),
        detections={"a": Detections(np.array([0, 1, 2]), np.array([0.9, 0.7, 0.6]), unknown, boxes)},
    )
    assert same(roc_a(logs, "a", STANDARD, LEVELS, fpr_max=1.0), [0] + [0.5] * 5, [1, 1, 0.75, 0.5, 0.5, 0.5])
    assert same(roc_b(logs, "a", STANDARD, LEVELS, fpr_max=1.0), [0] + [0.5] * 5, [1, 1, 1, 0.5, 0.5, 0.5])
    # Not localized, they neither find anybody near nor block the way.
    assert same(roboticizer_curve(logs, "a", STANDARD, LEVELS), [0] * 6, [1] * 6)
    assert same(pathifier_curve(logs, "a", STANDARD, LEVELS, 2.0), [0.5] * 6, [1] * 6)


def test_what_cannot_be_judged_is_left_out():
    logs = made_logs(
        {"person": (True, straight(2)), "nobody": (False, straight(1))},
        [(0, 5, 0), (1, math.nan, math.nan)],
        [(0, 0.95, 5, 0), (2, 0.95, math.nan, math.nan)],
    )
    for curve in (roc_a, roc_b):
        assert same(curve(logs, "a", STANDARD, LEVELS, TWO_METRES), [0, 1, 1, 1, 1, 1], [1] * 6)
    assert same(roboticizer_curve(logs, "a", STANDARD, LEVELS), [0, 1, 1, 1, 1, 1], [1] * 6)


def test_roboticizer_by_hand():
    # People at 5, 4, 3, 2, 1 m, reports of them 0, 0.5 and 0.5 m away. In the log "nobody" 3, 4 and 4.5 m ahead; the
    # one 10 m away lies outside [0, 10).
    curve = roboticizer_curve(HAND, "a", STANDARD, LEVELS, fpr_max=1.0)
    assert same(curve, [0, 0.2, 0.2, 0.4, 0.6, 0.6], [1, 1, 0.8, 0.6, 0.4, 0.4])


def test_a_metre_away_is_within_a_metre():
    logs = made_logs({"person": (True, straight(1)), "nobody": (False, straight(1))}, [(0, 5, 0)], [(0, 0.95, 5, 1)])
    assert roboticizer_curve(logs, "a", STANDARD, [1]).safety.tolist() == [1]


def test_the_nearest_counts():
    # (3, 0) is missed, (0, 6) is found, (20, 0) is too far, in one image.
    logs = made_logs(
        {"person": (True, straight(1)), "nobody": (False, straight(1))},
        [(0, 20, 0), (0, 0, 6), (0, 3, 0)],
        [(0, 0.95, 0, 6)],
    )
    assert roboticizer_curve(logs, "a", STANDARD, [1]).safety.tolist() == [0]


def test_pathifier_by_hand():
    # Images 0 and 1 are lenient (3 and 2 m), 2 to 4 strict. 0: no report, but the first of its log: forgiven.
    # 1: its own report (2 m <= 2 m) from .2. 2: from .6. 3: the report is 4 m away, beyond the person: never.
    # 4: from .8. In "nobody": 5 strict from .6; 6 lenient from .4, but 5 has none in that bin; 7 lenient from .8,
    # with 6 before it: the weaker, .8.
    curve = pathifier_curve(HAND, "a", STANDARD, LEVELS, 2.0, fpr_max=1.0)
    assert same(curve, [0.2, 0.4, 0.4, 0.6, 0.8, 0.8], [1, 1, 1, 0.8, 0.6, 0.6])
    # Counted, image 0 is a miss.
    curve = pathifier_curve(HAND, "a", STANDARD, LEVELS, 2.0, "counted", fpr_max=1.0)
    assert same(curve, [0, 0.2, 0.2, 0.4, 0.6, 0.6], [1, 1, 1, 0.8, 0.6, 0.6])
    # Efficiency by the paper's ceiling of 0.1.
    assert pathifier_curve(HAND, "a", STANDARD, LEVELS, 2.0).efficiency.tolist() == [1, 1, 1, 0, 0, 0]


def with_rows(logs, rows):
    return logs.with_source("b", made_detections(rows))


def pathified(rows, first="forgiven"):
    curve = pathifier_curve(with_rows(HAND, rows), "b", STANDARD, LEVELS, 2.0, first, 1.0)
    return [round(5 * each, 9) for each in curve.safety], [round(5 - 5 * each, 9) for each in curve.efficiency]


def test_a_miss_in_the_lenient_bin_is_healed_by_the_frame_before():
    # Image 0 finds the person from .2 (3 m <= 3 m), image 1 does not: both lenient frames are right.
    assert pathified([(0, 0.95, 5, 0)], "counted")[0] == [0, 2, 2, 2, 2, 2]
    # The stronger of the two frames: .2 before, .8 now.
    assert pathified([(0, 0.95, 5, 0), (1, 0.3, 5, 0)], "counted")[0] == [0, 2, 2, 2, 2, 2]
    # The frame after does not heal: image 0 stays a miss.
    assert pathified([(1, 0.95, 5, 0)], "counted")[0] == [0, 1, 1, 1, 1, 1]
    # In the strict bin nothing heals: image 1 is right, image 2 is not.
    assert pathified([(1, 0.95, 5, 0)])[0] == [1, 2, 2, 2, 2, 2]


def test_a_false_positive_in_the_lenient_bin_needs_one_before():
    # 2.5 m ahead, in the bin [2, 5): once does not count, twice counts as the weaker one.
    assert pathified([(7, 0.95, 6.5, 0)])[1] == [0, 0, 0, 0, 0, 0]
    assert pathified([(7, 0.95, 6.5, 0), (8, 0.7, 7.5, 0)])[1] == [0, 0, 1, 1, 1, 1]
    assert pathified([(7, 0.3, 6.5, 0), (8, 0.95, 7.5, 0)])[1] == [0, 0, 0, 0, 1, 1]
    # They need not have to do with each other, but there must be no frame between them.
    assert pathified([(7, 0.95, 6.5, 0), (8, 0.95, 9.9, 0)])[1] == [0, 1, 1, 1, 1, 1]
    assert pathified([(7, 0.95, 6.5, 0), (9, 0.95, 8.5, 0)])[1] == [0, 0, 0, 0, 0, 0]
    # A strict one before does not make a lenient one count.
    assert pathified([(6, 0.95, 3.5, 0), (7, 0.95, 6.5, 0)])[1] == [0, 1, 1, 1, 1, 1]
    # The first frame of the log, which the log "person" before it has nothing to do with.
    assert pathified([(4, 0.95, 8, 0), (5, 0.95, 4.5, 0)])[1] == [0, 0, 0, 0, 0, 0]
    assert pathified([(5, 0.95, 4.5, 0)], "counted")[1] == [0, 1, 1, 1, 1, 1]
    # The stronger of the two bins: lenient from .8, strict from .4.
    assert pathified([(7, 0.3, 6.5, 0), (8, 0.3, 7.5, 0), (8, 0.7, 6, 0)])[1] == [0, 0, 1, 1, 1, 1]


def test_a_person_that_comes_into_the_way():
    # Somebody steps in front of the vehicle 2.5 m ahead of image 1; before, nobody was in the way to be missed.
    logs = made_logs({"person": (True, straight(2)), "nobody": (False, straight(2))}, [(0, 5, 9), (1, 5.5, 0)])
    assert pathifier_curve(logs, "a", STANDARD, [1], 2.0).safety.tolist() == [1]
    assert pathifier_curve(logs, "a", STANDARD, [1], 2.0, "counted").safety.tolist() == [0]


def test_a_lucky_detection_counts_as_found():
    # Footnote 6: whatever blocks the path no later than the person does. Image 2: the person 1 m, (3, -1) 0 m ahead.
    assert pathified([(2, 0.95, 3, -1)])[0] == [1, 2, 2, 2, 2, 2]
    assert pathified([(2, 0.95, 3, -3)])[0] == [1, 1, 1, 1, 1, 1]  # beside the path


def test_frames_beyond_the_bins_do_not_count():
    # 6 m ahead is neither strict nor lenient; but it is a frame in which the person can be found or missed.
    logs = made_logs({"person": (True, straight(3)), "nobody": (False, straight(2))}, [(k, 8, 0) for k in range(3)])
    curve = pathifier_curve(logs, "a", STANDARD, [1], 2.0)
    assert curve.safety.tolist() == [0]  # image 2, 4 m ahead, and image 1 before it, 5 m ahead: twice missed
    assert pathifier_curve(with_rows(logs, [(1, 1, 8, 0)]), "b", STANDARD, [1], 2.0).safety.tolist() == [1]


TAUS = [0.0, 0.05, 0.2, 0.35, 0.6, 1.0, 3.0]
SETTINGS = PathSettings(extension_m=0)


@given(random_logs(), st.lists(st.sampled_from([0.15, 0.2, 0.4, 0.6]), max_size=6), st.integers(1, 4))
def test_against_plain_counting(logs, false, images):
    assume(len(logs.person_image) and not logs.positive.all())
    standardizer = Standardizer.from_validation(false, images)

    def standard(strength):
        return sum(each >= strength for each in false) / images

    found = {
        "a": roc_a(logs, "a", standardizer, TAUS, TWO_METRES, 0.7),
        "b": roc_b(logs, "a", standardizer, TAUS, TWO_METRES, 0.7),
    }
    for at, tau in enumerate(TAUS):
        plain = Plain(logs, "a", standard, tau)
        for name, curve in found.items():
            safety, efficiency = plain.roc_a(2.0, 0.7) if name == "a" else plain.roc_b(2.0, 0.7)
            assert curve.safety[at] == pytest.approx(safety, abs=1e-12)
            assert curve.efficiency[at] == pytest.approx(efficiency, abs=1e-12)


@given(random_logs())
def test_roboticizer_against_plain_counting(logs):
    plain = [Plain(logs, "a", lambda x: 1 - x, tau) for tau in TAUS]
    expected = [each.roboticizer(1.0, 0, 10, 0.7) for each in plain]
    compare(expected, lambda: roboticizer_curve(logs, "a", ONE_MINUS, TAUS, 0.7))


@given(random_logs(), st.booleans(), st.integers(1, 3))
def test_pathifier_against_plain_counting(logs, forgiven, radius):
    first = "forgiven" if forgiven else "counted"
    plain = [Plain(logs, "a", lambda x: 1 - x, tau, radius) for tau in TAUS]
    expected = [each.pathifier((0, 2), (2, 5), forgiven, 0.7) for each in plain]
    compare(expected, lambda: pathifier_curve(logs, "a", ONE_MINUS, TAUS, radius, first, 0.7, SETTINGS))


# st(x) = 1 - x at the strengths 0.1, ..., 0.6 of random logs: ten false positives on ten images, below 0.1 each step.
ONE_MINUS = Standardizer.from_validation([0.05, *np.arange(1, 10) / 10 + 0.05], 10)


def compare(expected, curve):
    if expected[0][0] is None or expected[0][1] is None:
        with pytest.raises(InputError, match="is not defined"):
            curve()
        return
    found = curve()
    assert found.safety.tolist() == pytest.approx([safety for safety, _ in expected], abs=1e-12)
    assert found.efficiency.tolist() == pytest.approx([efficiency for _, efficiency in expected], abs=1e-12)


CURVES = {
    "roc_a": lambda logs: roc_a(logs, "a", STANDARD, LEVELS, TWO_METRES),
    "roc_b": lambda logs: roc_b(logs, "a", STANDARD, LEVELS, TWO_METRES),
    "roboticizer": lambda logs: roboticizer_curve(logs, "a", STANDARD, LEVELS),
    "pathifier": lambda logs: pathifier_curve(logs, "a", STANDARD, LEVELS, 2.0),
}


@pytest.mark.parametrize("name", CURVES)
def test_the_order_of_rows_and_a_larger_sensitivity(name):
    curve = CURVES[name](HAND)
    assert (np.diff(curve.safety) >= 0).all()
    assert (np.diff(curve.efficiency) <= 0).all()
    shuffled = HAND.detections["a"].take(np.array([4, 2, 0, 6, 7, 1, 3, 5]))
    again = CURVES[name](replace(HAND, detections={"a": shuffled}))
    assert points(again) == points(curve)


@pytest.mark.parametrize("name", CURVES)
def test_logs_that_define_no_curve(name):
    nobody = replace(HAND, person_image=np.zeros(0, np.int64), person_m=np.zeros((0, 2)))
    with pytest.raises(InputError, match="safety is not defined"):
        CURVES[name](nobody)
    if name != "roc_a":
        with pytest.raises(InputError, match="no negative log, so that efficiency is not defined"):
            CURVES[name](replace(HAND, positive=np.array([True, True])))
    with pytest.raises(UsageError, match="unknown source"):
        CURVES[name](replace(HAND, detections={}))


def test_a_source_that_reports_nothing():
    silent = replace(HAND, detections={"a": made_detections([])})
    for curve in CURVES.values():
        found = curve(silent)
        assert found.efficiency.tolist() == [1] * 6
        assert found.safety.tolist() == [0.2 if curve is CURVES["pathifier"] else 0] * 6  # a first frame is forgiven


def test_somebody_in_the_way_of_a_negative_log():
    wrong = replace(HAND, positive=np.array([False, True]))
    with pytest.raises(InputError, match="'person' is negative"):
        CURVES["pathifier"](wrong)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (([], [], []), "k >= 1"),
        (([0.1], [0.5, 0.5], [0.5]), "safety has shape"),
        (([[0.1]], [[0.5]], [[0.5]]), "sensitivity has shape"),
        (([0.1, 0.1], [0.5, 0.5], [0.5, 0.5]), "occurs twice"),
        (([math.nan], [0.5], [0.5]), "sensitivity is not finite"),
        (([math.inf], [0.5], [0.5]), "sensitivity is not finite"),
        (([0.1], [1.1], [0.5]), r"safety: a value lies outside \[0, 1\]"),
        (([0.1], [0.5], [math.nan]), r"efficiency: a value lies outside \[0, 1\]"),
        (([0.1], [0.5], [-1e-9]), r"efficiency: a value lies outside \[0, 1\]"),
    ],
)
def test_a_curve_is_valid_from_birth(fields, message):
    with pytest.raises(ValueError, match=message):
        TradeOffCurve(*map(np.array, fields))


def test_a_curve_keeps_its_own_numbers():
    safety = np.array([0.5, 1.0])
    curve = TradeOffCurve(np.array([2.0, 1.0]), safety, [0, 1])
    safety[0] = 7
    assert curve.safety.tolist() == [0.5, 1]
    with pytest.raises(ValueError, match="read-only"):
        curve.safety[0] = 0.7
