"""Objects gathered one by one as a table: which columns it has, and how objects are numbered."""

import pytest

from verifier.base.errors import InputError
from verifier.perception.detections.gathered import Gathered
from verifier.perception.detections.sources import Member, Source


def table(objects, columns=(), *, scored=False):
    """The columns by name of objects in frames: (frame, attributes) each."""
    gathered = Gathered("a.json", Source((Member("a.json", "a", "", b""),), {}), scored)
    for row, (frame, attributes) in enumerate(objects):
        gathered.add(0, 0, f"/{row}", {"frame": frame, "class": "ped"}, attributes)
    return gathered.table(dict(columns)).table.to_pydict()


def test_annotations_are_numbered_in_their_frames_unless_they_have_numbers():
    assert table([("f", {}), ("g", {}), ("f", {})])["id"] == [1, 1, 2]
    assert table([("f", {"id": 7}), ("f", {"id": 5})])["id"] == [7, 5]
    assert "id" not in table([("f", {"score": 0.5})], scored=True)


def test_of_no_objects_there_are_the_columns_that_are_needed():
    assert table([]) == {"frame": [], "class": [], "id": []}
    assert table([], scored=True) == {"frame": [], "class": [], "score": []}
    assert table([], {"distance_m": "range"}) == table([])  # a file without objects has no column to be missing


def test_columns_of_the_file_are_those_of_annotations_and_of_detections_if_they_have_them():
    far = {"range": 9.0, "sure": 0.5}
    assert table([("f", far)], {"distance_m": "range"})["distance_m"] == [9]
    assert table([("f", far)], {"score": "sure", "distance_m": "range"}, scored=True)["score"] == [0.5]
    assert "distance_m" not in table([("f", {"score": 0.5})], {"distance_m": "range"}, scored=True)
    assert "score" not in table([("f", far)], {"score": "sure"})  # that of detections only
    with pytest.raises(InputError, match="no column 'range'"):
        table([("f", {})], {"distance_m": "range"})
    for columns, missing in (({}, "score"), ({"score": "sure"}, "sure")):
        with pytest.raises(InputError, match=f"no column '{missing}'"):
            table([("f", {})], columns, scored=True)


def test_a_confidence_is_a_score_where_there_is_no_other():
    assert table([("f", {"confidence": 0.25})], scored=True)["score"] == [0.25]
    assert table([("f", {"confidence": 0.25, "score": 0.5})], scored=True)["score"] == [0.5]
