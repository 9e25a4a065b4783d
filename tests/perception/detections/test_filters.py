"""Distances and filters, by hand."""

import math

import numpy as np
import pytest

from verifier.base.errors import UsageError
from verifier.perception.detections import keep_scores
from verifier.perception.detections.arrays import from_arrays
from verifier.perception.detections.filters import keep_attribute, keep_field_of_view, keep_range

SIZE = [4.0, 2.0, 1.5, 0.0]
CENTRES = [[3, 4, 12], [30, 0, 0], [0, 10, 0], [-5, 0, 0]]  # 13, 30, 10 and 5 m away
UNKNOWN = [math.nan] * 7


@pytest.fixture
def data():
    boxes = [[*centre, *SIZE] for centre in CENTRES]
    annotations = {
        "frame": [0, 0, 1, 1, 1],
        "class": [0, 1, 0, 0, 0],
        "box_3d": [*boxes, UNKNOWN],
        "distance_m": [1, 2, 3, 4, math.nan],
        "occluded": [0, 1, 2, 3, math.nan],
    }
    detections = {"frame": [0, 1, 1], "class": [0, 0, 0], "score": [0.2, 0.5, 0.9], "box_3d": [*boxes[:2], UNKNOWN]}
    return from_arrays(["ped", "car"], ["f0", "f1"], annotations, detections)


def test_scores(data):
    found = keep_scores(data, 0.5)
    assert found.detections.score.tolist() == [0.5, 0.9]
    assert found.origin["filters"] == [{"filter": "score", "lowest": 0.5, "detections": 1}]
    assert data.origin["filters"] == []


def test_ranges_are_half_open_and_what_they_take_out_is_ignored(data):
    found = keep_range(data, "euclidean_3d", 5, 13)
    assert found.annotations.line.tolist() == [3, 4, 5]  # 10 m, 5 m, unknown
    assert found.ignored.line.tolist() == [1, 2]
    assert found.ignored.label.tolist() == [0, 1]
    assert found.detections.line.tolist() == [3]
    entry = {"filter": "range", "measure": "euclidean_3d", "lowest_m": 5, "highest_m": 13}
    assert found.origin["filters"] == [{**entry, "removed": "ignore", "annotations": 2, "detections": 2}]


def test_fields_of_view(data):
    found = keep_field_of_view(data, 60, removed="drop")
    assert found.annotations.line.tolist() == [1, 2, 5]  # 53 degrees, 0 degrees, unknown
    assert found.ignored is None
    assert found.origin["filters"][0]["annotations"] == 2
    assert keep_field_of_view(data, 50).annotations.line.tolist() == [2, 5]


def test_attributes_and_filters_in_a_row(data):
    found = keep_attribute(keep_attribute(data, "occluded", highest=1), "occluded", lowest=1)
    assert found.annotations.line.tolist() == [2, 5]
    assert sorted(found.ignored.line.tolist()) == [1, 3, 4]
    assert [each["annotations"] for each in found.origin["filters"]] == [2, 1]
    assert found.origin["filters"][0] == {
        "filter": "attribute",
        "name": "occluded",
        "highest": 1,
        "removed": "ignore",
        "annotations": 2,
    }
    assert len(found.detections) == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda data: keep_attribute(data, "ocluded"), "did you mean 'occluded'"),
        (lambda data: keep_attribute(data, "occluded", 2, 1), "no number lies"),
        (lambda data: keep_range(data, "forward", 2, 2), "is empty"),
        (lambda data: keep_range(data, "forward", 2, math.nan), "is empty"),
        (lambda data: keep_range(data, "forward", math.nan, 2), "not a number"),
        (lambda data: keep_scores(data, math.nan), "not a number"),
        (lambda data: keep_field_of_view(data, 0), "half angle of a field of view lies in"),
        (lambda data: keep_field_of_view(data, 180.5), "half angle of a field of view lies in"),
    ],
)
def test_filters_that_make_no_sense_are_refused(data, call, message):
    with pytest.raises(UsageError, match=message):
        call(data)


def test_nothing_is_lost(data):
    found = keep_range(data, "ground_plane", 0, 8)
    rows = np.concatenate([found.annotations.line, found.ignored.line])
    assert sorted(rows.tolist()) == [1, 2, 3, 4, 5]


def test_what_lies_on_the_edge_of_a_filter_stays(data):
    # The third object lies at 90 degrees, the fourth at 180; the second is occluded by 1.
    assert keep_field_of_view(data, 0.5).annotations.line.tolist() == [2, 5]
    assert keep_field_of_view(data, 90).annotations.line.tolist() == [1, 2, 3, 5]
    assert keep_field_of_view(data, 180).annotations.line.tolist() == [1, 2, 3, 4, 5]
    assert keep_attribute(data, "occluded", 1, 1).annotations.line.tolist() == [2, 5]
