"""The sensitivity standardizer: by hand, and by its definition."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_logs import HAND, made_logs

from verifier.base.errors import UsageError
from verifier.closedloop.logs import Standardizer, standardizer_of
from verifier.perception.matching import MatchingPolicy

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


def test_what_cannot_be_standardized():
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
