"""Boxes and sets are valid from birth."""

from dataclasses import replace

import numpy as np
import pytest

from verifier.base.errors import LimitError, Place
from verifier.perception.detections import DetectionSet, columns
from verifier.perception.detections.columns import Boxes, faulty_boxes, joined, ledger, no_boxes

BOX = [10.0, -2, 0, 4, 2, 1.5, 0.1]


def boxes(n=2, **changes):
    columns = {
        "frame": np.arange(n),
        "label": np.zeros(n, int),
        "score": np.linspace(0.5, 1, n),
        "box_2d": np.array([[1.0, 2, 3, 4]] * n),
        "box_3d": np.array([BOX] * n),
        "distance_m": None,
        "attributes": {"track": np.arange(n)},
        "line": np.arange(1, n + 1),
        "file": np.zeros(n, int),
    }
    return Boxes(**{**columns, **changes})


def whole(**changes):
    columns = {
        "classes": ("ped", "car"),
        "sequences": ("a", "b"),
        "frame_sequence": np.array([0, 1]),
        "frame_name": ("a/0", "b/0"),
        "annotations": boxes(score=None),
        "detections": boxes(),
        "ignored": None,
        "files": ("truth.txt",),
        "origin": {},
    }
    return DetectionSet(**{**columns, **changes})


NAN = np.nan


def test_boxes_are_in_space_unless_all_are_unknown():
    unknown = np.full((2, 7), NAN)
    one = unknown.copy()
    one[1] = BOX
    told = {"none": None, "all": unknown, "one": one}
    assert {name: boxes(box_3d=box).in_space for name, box in told.items()} == {
        "none": False,
        "all": False,
        "one": True,
    }
    assert boxes(0, box_2d=np.zeros((0, 4)), box_3d=np.zeros((0, 7))).in_space  # a column for them


@pytest.mark.parametrize(
    ("box", "bad"),
    [
        (BOX, False),
        ([NAN] * 7, False),
        ([NAN, *BOX[1:]], True),
        ([*BOX[:6], NAN], True),
        ([np.inf, *BOX[1:]], True),
        ([*BOX[:3], -1, 2, 1, 0], True),
        ([*BOX[:3], 0, 0, 0, 0], False),
        ([1.0, 2, 3, 4], False),
        ([3.0, 2, 1, 4], True),
        ([1.0, 4, 3, 2], True),
        ([1.0, 2, 1, 2], False),
        ([NAN, 2, 3, 4], True),
        ([1.0, 2, np.inf, 4], True),
    ],
)
def test_faulty_boxes(box, bad):
    assert faulty_boxes(np.array([box])).tolist() == [bad]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": np.zeros(3)}, "label has shape"),
        ({"box_2d": np.zeros((2, 7))}, "box_2d has shape"),
        ({"box_3d": np.zeros((2, 4))}, "box_3d has shape"),
        ({"attributes": {"track": np.zeros(1)}}, "track has shape"),
        ({"box_3d": np.array([BOX, [*BOX[:3], -1, 1, 1, 0]])}, "box_3d: row 1"),
        ({"score": np.array([0.5, NAN])}, "score is not finite"),
        ({"distance_m": np.array([0.5, -1])}, "distance is negative"),
        ({"distance_m": np.array([0.5, np.inf])}, "distance is negative or infinite"),
        ({"frame": np.array([-1, 0])}, "indices from 0"),
    ],
)
def test_boxes_that_cannot_be_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        boxes(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classes": ("ped", "ped")}, "class name occurs twice"),
        ({"frame_name": ("a", "a")}, "frame name occurs twice"),
        ({"frame_name": ("a",)}, "differ in length"),
        ({"frame_sequence": np.array([0, 2])}, "frame_sequence has an index outside"),
        ({"annotations": boxes(label=np.array([0, 2]))}, "annotations.label"),
        ({"annotations": boxes(label=np.array([0, -1]))}, "annotations.label"),
        ({"detections": boxes(frame=np.array([0, 2]))}, "detections.frame"),
        ({"detections": boxes(file=np.array([0, 1]))}, "detections.file"),
        ({"detections": boxes(score=None)}, "no scores"),
        ({"ignored": boxes(label=np.array([0, -2]))}, "ignored.label"),
    ],
)
def test_sets_that_cannot_be_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        whole(**changes)


def test_arrays_cannot_be_written_and_stay_the_callers():
    mine = np.array([0.25, 0.75])
    found = boxes(score=mine)
    with pytest.raises(ValueError, match="read-only"):
        found.score[0] = 1
    with pytest.raises(TypeError):
        found.attributes["new"] = mine
    mine[0] = 0.5  # still the caller's to write
    assert whole(ignored=boxes(label=np.array([-1, 0]))).frame_count == 2


def test_take_keeps_rows_together():
    found = boxes(4).take(np.array([3, 1]))
    assert found.frame.tolist() == [3, 1]
    assert found.line.tolist() == [4, 2]
    assert found.attributes["track"].tolist() == [3, 1]
    assert found.score.tolist() == pytest.approx([1, 2 / 3])
    assert len(boxes(4).take(np.array([True, False, False, True]))) == 2


def test_joined_fills_what_a_part_has_not():
    found = joined([boxes(1), boxes(2, box_3d=None, attributes={"id": np.array([5, 6])})])
    assert found.frame.tolist() == [0, 0, 1]
    assert np.isnan(found.box_3d).all(axis=1).tolist() == [False, True, True]
    assert found.attributes["id"].tolist()[1:] == [5, 6]
    assert np.isnan(found.attributes["track"][1:]).all()
    assert len(joined([no_boxes(), no_boxes()])) == 0
    with pytest.raises(ValueError, match="have none"):
        joined([boxes(1), replace(boxes(1), score=None)])


def test_a_column_that_a_part_has_not_is_unknown_there():
    has = {"box_2d": np.zeros((1, 4)), "box_3d": np.zeros((1, 7)), "distance_m": np.zeros(1)}
    found = joined([boxes(1, **has), boxes(2, **dict.fromkeys(has))])
    for name, value in has.items():
        column = getattr(found, name)
        assert column.shape == (3, *value.shape[1:])
        assert np.isnan(column[1:]).all()
        assert (column[:1] == value).all()
    scored = no_boxes(scored=True)
    assert joined([scored]) is scored
    assert joined([]).score is None


def test_what_is_left_out_and_what_is_kept_is_what_was_read():
    read, faulty, elsewhere, unused, regions = ledger(100, 60, 40, 16, 3).values()
    assert (read, faulty, elsewhere, unused, regions) == (100, 40, 20, 21, 3)
    assert read - faulty - elsewhere - unused - regions == 16


def test_so_many_frames_are_numbered_and_no_more(monkeypatch):
    monkeypatch.setattr(columns, "MOST_FRAMES", 3)
    found = columns.numbered_frames(("a", "b"), np.array([1, 2]), 5, Place("f"))
    assert found.names == ("a/000005", "b/000005", "b/000006")
    assert found.sequence.tolist() == [0, 1, 1]
    with pytest.raises(LimitError, match="4 frames, at most 3 are read"):
        columns.numbered_frames(("a", "b"), np.array([2, 2]), 5, Place("f"))
