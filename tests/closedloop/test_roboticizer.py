"""Localizer and sensitivity standardizer: by hand, by their definitions, and on KITTI's depth images."""

import math
import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image
from small_logs import HAND, made_logs

from verifier.base.errors import UsageError
from verifier.closedloop.roboticizer import Standardizer, localize, standardizer_of
from verifier.perception.detections import read_detections, with_depth
from verifier.perception.matching import MatchingPolicy

CAMERA = np.array([[4.0, 0, 3], [0, 2, 2], [0, 0, 1]])

# Metres; 0 is unknown.
DEPTH = np.array(
    [
        [10, 10, 10, 40, 40, 40],
        [10, 12, 14, 40, 0, 0],
        [10, 0, 20, 40, 0, 0],
        [0, 0, 0, 40, 0, 0],
        [5, 6, 7, 8, 0, 0],
    ],
    dtype=float,
)
UNKNOWN = [math.nan] * 3


@pytest.mark.parametrize(
    ("box", "point"),
    [
        # Rows 10 | 12 | (10 + 20) / 2 = 15: 12. Centre (1.5, 1.5): x = 12 (1.5 - 3) / 4, y = 12 (1.5 - 2) / 2.
        ((0, 0, 3, 3), [-4.5, -3, 12]),
        # Row 2: 15, row 3 is unknown, row 4: 6; their mean 10.5. Centre (1.5, 3.5).
        ((0, 2, 3, 5), [-3.9375, 7.875, 10.5]),
        # It touches columns 2 and 3 of row 0: (10 + 40) / 2. Centre (3, 0.5): on the axis.
        ((2.9, 0.4, 3.1, 0.6), [0, -18.75, 25]),
        # Cut to rows 3 and 4, columns 0 and 1: 5.5. The centre is that of the whole rectangle, (-2, 6).
        ((-6, 3, 2, 9), [-6.875, 11, 5.5]),
        ((4, 2, 6, 4), UNKNOWN),  # no depth known
        ((6, 0, 8, 2), UNKNOWN),  # outside
        ((math.nan,) * 4, UNKNOWN),  # no rectangle
        ((3, 4, 3, 4), [0, 8, 8]),  # no area: the pixel it lies in; y = 8 (4 - 2) / 2
    ],
)
def test_localizing_by_hand(box, point):
    assert localize(DEPTH, np.array([box], dtype=float), CAMERA)[0].tolist() == pytest.approx(point, nan_ok=True)


def test_unknown_depth_may_be_nan():
    boxes = np.array([(0, 0, 3, 3), (0, 2, 3, 5), (4, 2, 6, 4)], dtype=float)
    with_nan = np.where(DEPTH > 0, DEPTH, np.nan)
    assert np.array_equal(localize(with_nan, boxes, CAMERA), localize(DEPTH, boxes, CAMERA), equal_nan=True)
    assert localize(DEPTH, np.zeros((0, 4)), CAMERA).shape == (0, 3)


@given(
    arrays(
        np.float64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.sampled_from([0.0, 1.0, 2.5, 9.0])
    ),
    st.tuples(*[st.integers(-2, 7)] * 2),
    st.tuples(*[st.integers(1, 5)] * 2),
)
def test_the_depth_against_its_definition(depth, low, size):
    left, top = low
    right, bottom = left + size[0], top + size[1]
    height, width = depth.shape
    medians = []
    for row in range(max(top, 0), min(bottom, height)):
        known = [depth[row, column] for column in range(max(left, 0), min(right, width)) if depth[row, column] > 0]
        if known:
            medians.append(statistics.median(known))
    expected = statistics.median(medians) if medians else math.nan
    found = localize(depth, np.array([(left, top, right, bottom)], dtype=float), CAMERA)
    assert found[0, 2] == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth_m": np.array([[-1.0]])}, "negative or infinite"),
        ({"depth_m": np.array([[np.inf]])}, "negative or infinite"),
        ({"box_2d": np.zeros((2, 3))}, "shapes"),
        ({"camera": np.eye(4)}, "shapes"),
        ({"camera": np.array([[4.0, 1, 3], [0, 2, 2], [0, 0, 1]])}, "intrinsics"),
        ({"camera": np.diag([0.0, 2, 1])}, "intrinsics"),
    ],
)
def test_what_cannot_be_localized_in(change, message):
    arguments = {"depth_m": DEPTH, "box_2d": np.zeros((1, 4)), "camera": CAMERA} | change
    with pytest.raises(ValueError, match=message):
        localize(**arguments)


def test_kitti_depth_images(shared, tmp_path):
    """The depths are those of `with_depth`, and the points lie where the labels say, as far as LiDAR can tell."""
    folder = shared / "data/images_kitti_depth"
    (tmp_path / "found").mkdir()
    for label in (folder / "label_2").iterdir():
        (tmp_path / "found" / label.name).write_text("")
    data = with_depth(
        read_detections("kitti_object", folder / "label_2", tmp_path / "found"),
        folder / "sparse_depth",
        ignore=("unknown_depth",),
    )
    boxes, aside = data.annotations, []
    assert len(boxes) == 10
    for frame, name in enumerate(data.frame_name):
        depth = np.asarray(Image.open(folder / "sparse_depth" / f"{name}.png"), dtype=np.float64) / 256
        lines = (folder / "calib" / f"{name}.txt").read_text().splitlines()
        p2 = np.array(next(line for line in lines if line.startswith("P2:")).split()[1:], dtype=float).reshape(3, 4)
        rows = np.flatnonzero(boxes.frame == frame)
        points = localize(depth, boxes.box_2d[rows], p2[:, :3])
        assert points[:, 2].tolist() == boxes.distance_m[rows].tolist()
        # The labels: camera right = - ego left. Compared by bearing, which the depth does not change.
        truth = -boxes.box_3d[rows, 1] / boxes.box_3d[rows, 0]
        aside += (np.abs(points[:, 0] / points[:, 2] - truth)).tolist()
    assert np.median(aside) < 0.02  # radians; half a car at 40 m


# Validation: five images, false positives of these strengths. st(x) = number of strengths >= x, over 5.
TABLE = Standardizer.from_validation([0.9, 0.2, 0.5, 0.5], 5)


@pytest.mark.parametrize(
    ("strength", "expected"),
    [
        (1.0, Fraction(0)),  # above every false positive
        (math.nextafter(0.9, 1), Fraction(0)),
        (0.9, Fraction(1, 5)),
        (0.6, Fraction(1, 5)),
        (0.5, Fraction(3, 5)),  # both ties count
        (math.nextafter(0.5, 1), Fraction(1, 5)),
        (0.2, Fraction(4, 5)),
        (0.1, Fraction(4, 5)),  # below all of them
        (-math.inf, Fraction(4, 5)),
        (math.inf, Fraction(0)),
    ],
)
def test_standardized_by_hand(strength, expected):
    assert TABLE(strength) == float(expected)
    assert TABLE([[strength]]).tolist() == [[float(expected)]]


def test_more_false_positives_than_images():
    assert Standardizer.from_validation([1, 2, 3, 4, 5, 6], 2)([0, 3.5, 7]).tolist() == [3, 1.5, 0]


def test_no_false_positive_at_all():
    perfect = Standardizer.from_validation([], 7)
    assert perfect([-5, 0, 5]).tolist() == [0, 0, 0]
    assert perfect.raw_threshold(0) == -math.inf


SCORES = st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.4, 0.5, 2.0]), max_size=12)


@given(SCORES, st.integers(1, 9), SCORES, st.floats(0, 3))
def test_standardized_against_counting(false, images, strengths, tau):
    table = Standardizer.from_validation(false, images)
    expected = [sum(each >= strength for each in false) / images for strength in strengths]
    assert table(strengths).tolist() == expected
    # The raw threshold lets the same detections through.
    exceeded = table.raw_threshold(tau)
    for strength, sensitivity in zip(strengths, expected, strict=True):
        assert (strength > exceeded) == (sensitivity <= tau)


@given(SCORES, st.integers(1, 30))
def test_the_threshold_at_each_level_of_the_table(false, images):
    """At k false positives per `images` images, a detection takes part with at most k of them at or above it."""
    table = Standardizer.from_validation(false, images)
    for allowed in range(len(false) + 2):
        exceeded = table.raw_threshold(allowed / images)
        assert sum(each > exceeded for each in false) <= allowed
        assert exceeded == -math.inf or sum(each >= exceeded for each in false) > allowed


@pytest.mark.parametrize(
    ("strengths", "images", "message"),
    [([math.nan], 3, "numbers"), ([1.0], 0, "at least one"), ([1.0], -1, "at least one")],
)
def test_a_table_is_checked(strengths, images, message):
    with pytest.raises(ValueError, match=message):
        Standardizer.from_validation(strengths, images)
    with pytest.raises(ValueError, match="do not decrease"):
        Standardizer(np.array([2.0, 1.0]), 1)


def test_what_cannot_be_standardized():
    with pytest.raises(ValueError, match="not a number"):
        TABLE([0.1, math.nan])
    for wrong in (-0.1, math.nan):
        with pytest.raises(ValueError, match="sensitivity from 0"):
            TABLE.raw_threshold(wrong)


def test_the_table_of_logs():
    # Within 2 m of the person: .9, .5 and .3. The other five are false positives, on ten images.
    table = standardizer_of(HAND, "a", MatchingPolicy("centre_bev", 2.0))
    assert table.false_positives.tolist() == [0.4, 0.6, 0.7, 0.8, 0.95]
    assert table([0.95, 0.8, 0.75, 0.1]).tolist() == [0.1, 0.2, 0.2, 0.5]


def test_a_detection_that_cannot_be_judged_is_no_false_positive():
    logs = made_logs({"log": (False, [(0, 0)])}, [], [(0, 0.9, math.nan, math.nan), (0, 0.8, 3, 3)])
    assert standardizer_of(logs, "a", MatchingPolicy("centre_bev", 2.0)).false_positives.tolist() == [0.8]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (MatchingPolicy("centre_bev", 2.0, assignment="optimal"), "the highest score chooses first"),
        (MatchingPolicy("centre_bev", 2.0, order="affinity"), "the highest score chooses first"),
        (MatchingPolicy("iou_bev", 0.5), "affinity must be one of iou_2d, centre_2d, centre_bev"),
        (MatchingPolicy("iou_2d", 0.5), "compares image rectangles"),
    ],
)
def test_policies_that_do_not_fit(policy, message):
    with pytest.raises(UsageError, match=message):
        standardizer_of(HAND, "a", policy)
