"""What the settings of `verify confusion` choose: filters, matching, and the rule of counting."""

import math
from dataclasses import replace

import pytest

from verifier.base.errors import UsageError
from verifier.perception.confusion.bins import Bins, parse_variable
from verifier.perception.confusion.choices import (
    counting_rule,
    default_measure,
    default_policy,
    filtered,
    matching_policy,
)
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.detections.arrays import from_arrays
from verifier.perception.detections.filters import keep_attribute, keep_field_of_view, keep_range, keep_scores
from verifier.perception.matching import CONVENTIONS, MatchingPolicy, convention
from verifier.perception.settings import CountSettings

USUAL = MatchingPolicy("iou_2d", 0.5, ignore_overlap=0.5)
IN_IMAGE = {"frame": [0], "class": [0], "box_2d": [[0, 0, 9, 9]]}
IN_SPACE = {"frame": [0], "class": [0], "box_3d": [[5, 0, 0, 4, 2, 1, 0]]}


def data(annotations, detections):
    given = annotations if "box_3d" in annotations else annotations | {"distance_m": [5]}
    return from_arrays(["a"], ["0"], given, detections | {"score": [0.5] * len(detections["frame"])})


def test_without_a_choice_nothing_is_filtered():
    scene = data(IN_SPACE, IN_SPACE)
    assert filtered(CountSettings(), scene, "given") is scene


def test_every_filter_is_that_of_its_settings():
    choices = {"min": ("width=2", "age=3.5"), "max": ("height=9", "width=4"), "min_score": 0.25, "range": "1..80"}
    scene = data(IN_SPACE | {"width": [2], "age": [4], "height": [9]}, IN_SPACE)
    for removed in ("drop", "ignore"):
        settings = CountSettings(**choices, field_of_view=40.0, filtered=removed)
        expected = keep_range(keep_scores(scene, 0.25), "forward", 1, 80, removed)
        expected = keep_field_of_view(expected, 40, removed)
        for name, bounds in (("width", (2, 4)), ("age", (3.5,)), ("height", (-math.inf, 9))):
            expected = keep_attribute(expected, name, *bounds, removed=removed)
        assert filtered(settings, scene, "forward").origin == expected.origin


@pytest.mark.parametrize(
    ("settings", "policy"),
    [
        ({}, USUAL),
        ({"convention": "nuscenes"}, CONVENTIONS["nuscenes"]),
        (
            {"convention": "nuscenes", "affinity": "centre_2d"},
            convention("nuscenes", affinity="centre_2d", threshold=20),
        ),
        ({"match_threshold": 0.7, "affinity": "iou_2d"}, MatchingPolicy("iou_2d", 0.7, ignore_overlap=0.5)),
        ({"affinity": "centre_bev"}, MatchingPolicy("centre_bev", 2, ignore_overlap=0.5)),
        ({"affinity": "centre_3d", "match_threshold": 3}, MatchingPolicy("centre_3d", 3, ignore_overlap=0.5)),
        ({"assignment": "optimal", "class_aware": True}, replace(USUAL, assignment="optimal", class_aware=True)),
        ({"convention": "coco", "class_aware": False}, convention("coco", class_aware=False)),
        ({"ignore_overlap": "none"}, MatchingPolicy("iou_2d", 0.5)),
        ({"ignore_overlap": "0.3"}, MatchingPolicy("iou_2d", 0.5, ignore_overlap=0.3)),
    ],
)  # fmt: skip
def test_a_policy_is_the_usual_or_named_one_with_what_is_chosen(settings, policy):
    assert matching_policy(CountSettings(**settings), USUAL) == policy


def test_an_affinity_that_is_the_conventions_own_keeps_its_threshold():
    usual = MatchingPolicy("iou_2d", 0.3)
    assert matching_policy(CountSettings(affinity="iou_2d"), usual) == usual
    assert matching_policy(CountSettings(affinity="iou_3d"), usual) == MatchingPolicy("iou_3d", 0.5)


def test_a_rule_is_that_of_its_settings():
    settings = CountSettings(
        bins="0,10,20",
        by=("occluded=0,1",),
        labelling="group",
        unmatched="own_bin",
        duplicates="own_bin",
        outside="drop",
        gap=2.0,
        min_score=0.25,
        score_thresholds="0.25,0.5",
    )
    bins = Bins((0.0, 10.0, 20.0), (parse_variable("occluded=0,1"),))
    expected = CountingRule("group", ("a", "b"), bins, "given", "own_bin", "own_bin", "drop", 2.0, (0.25, 0.5))
    assert counting_rule(settings, ("a", "b"), "given") == expected


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_score": 0.3, "score_thresholds": "0.25,0.5"}, "--min-score would leave out detections"),
        ({"score_thresholds": "0.25,high"}, "--score-thresholds: expected a number, got 'high'"),
        ({"score_thresholds": "nan"}, "--score-thresholds: expected a number, got 'nan'"),
    ],
)
def test_scores_that_make_no_rule_are_refused(settings, message):
    with pytest.raises(UsageError, match=message):
        counting_rule(CountSettings(bins="0,10", **settings), ("a",), "given")


@pytest.mark.parametrize(
    ("annotations", "detections", "regions", "measure", "policy"),
    [
        (IN_IMAGE, IN_IMAGE, None, "given", MatchingPolicy("iou_2d", 0.5)),
        (IN_IMAGE, IN_IMAGE, IN_IMAGE, "given", MatchingPolicy("iou_2d", 0.5, ignore_overlap=0.5)),
        (IN_SPACE, IN_SPACE, None, "euclidean_3d", MatchingPolicy("centre_bev", 2.0)),
        (IN_SPACE, IN_SPACE, IN_IMAGE, "euclidean_3d", MatchingPolicy("centre_bev", 2.0)),
        (IN_SPACE | IN_IMAGE, IN_IMAGE, None, "euclidean_3d", MatchingPolicy("iou_2d", 0.5)),
        (IN_SPACE, {"frame": [], "class": []}, None, "euclidean_3d", MatchingPolicy("centre_bev", 2.0)),
    ],
)
def test_what_is_usual_depends_on_the_boxes(annotations, detections, regions, measure, policy):
    ignored = None if regions is None else data(regions, IN_IMAGE).annotations
    scene = replace(data(annotations, detections), ignored=ignored)
    assert default_measure(scene) == measure
    assert default_policy(scene) == policy
