"""Measures of distance, and distances from a file of their own, by hand."""

import numpy as np
import pytest

from verifier.base.errors import InputError, UsageError
from verifier.perception.detections import distance, with_distances
from verifier.perception.detections.arrays import from_arrays
from verifier.perception.detections.classmap import only_files
from verifier.perception.detections.distances import reported_distance, sequences_named

NAN = float("nan")


def annotated(frames=("a", "b", "c"), sequences=None, **columns):
    """Three annotations: 1 and 2 in the first frame, another 1 in the third."""
    truth = {"frame": [0, 0, 2], "class": [0] * 3, "id": [1, 2, 1], **columns}
    return from_arrays(["ped"], frames, truth, {"frame": [], "class": [], "score": []}, sequences=sequences)


def test_measures_by_hand():
    """A box 2 m ahead, 3 m left and 6 m up is 7 m away; one without a box is as far as is said."""
    box = [[2, 3, 6, 1, 1, 1, 0], [-2, 0, 0, 1, 1, 1, 0], [NAN] * 7]
    boxes = annotated(box_3d=box, distance_m=[1, NAN, 9]).annotations
    for measure, expected in (
        ("euclidean_3d", [7, 2, NAN]),
        ("ground_plane", [13**0.5, 2, NAN]),
        ("forward", [2, -2, NAN]),
        ("given", [1, NAN, 9]),
    ):
        assert np.array_equal(distance(boxes, measure), expected, equal_nan=True)
        known = [own if own == own else said for own, said in zip(expected, [1, NAN, 9], strict=True)]
        assert np.array_equal(reported_distance(boxes, measure), known, equal_nan=True)
    with pytest.raises(UsageError, match="distance measure"):
        distance(boxes, "far")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("", [NAN, NAN, NAN]),
        ("a,2,5\nc,1,7", [NAN, 5, 7]),
        ("c,1,1e5\na,1,0", [0, NAN, 1e5]),
        ("c,1,7\na,1,5\na,2,6", [5, 6, 7]),
        ("a,1,100001", "far.csv:2: id 1 in frame 'a': expected a distance in metres, got 100001"),
        ("c,1,1\na,1,2\nc,1,3", "far.csv:4: id 1 in frame 'c' occurs twice"),
        ("a,2,2\na,1,2\na,1,3\na,2,3", "far.csv:4: id 1 in frame 'a' occurs twice"),
        ("x,1,5", "far.csv:2: no annotation with id 1 in frame 'x'"),
        ("a,9,5\na,8,6", "far.csv:2: no annotation with id 9 in frame 'a'\n  hint: this frame has the id 1, 2"),
        ("a,1,5\nx,1,6", "far.csv:3: no annotation with id 1 in frame 'x'"),
        ("c,2,5\na,1,5", "far.csv:2: no annotation with id 2 in frame 'c'\n  hint: this frame has the id 1"),
        (
            "x,1,5\ny,1,6",
            "far.csv:2: the frames do not match: none of 2 rows is of a frame of the annotations; the first, id 1 in "
            "frame 'x'\n  hint: the first frame of the annotations is 'a'",
        ),
    ],
)
def test_distances_from_a_file(rows, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "far.csv").write_text(f"frame,id,distance_m\n{rows}\n")
    if isinstance(expected, str):
        with pytest.raises(InputError) as caught:
            with_distances(annotated(), "far.csv", "id")
        assert str(caught.value) == expected
        return
    data = with_distances(annotated(), "far.csv", "id")
    assert np.array_equal(data.annotations.distance_m, expected, equal_nan=True)
    assert data.origin["distances"]["unknown"] == sum(value != value for value in expected)
    own = with_distances(annotated(distance_m=[3, NAN, 4]), "far.csv", "id").annotations.distance_m
    kept = [new if new == new else old for new, old in zip(expected, [3, NAN, 4], strict=True)]
    assert np.array_equal(own, kept, equal_nan=True)


def test_a_part_leaves_out_rows_of_other_sequences(tmp_path, monkeypatch):
    """A wrong row of an own sequence, and of a frame without one, is still refused."""
    monkeypatch.chdir(tmp_path)
    data = annotated(("s/a", "s/b", "c"), ["s", "s", "(no sequence)"])
    for rows, expected in (
        ("t/x,1,5\nc,1,7\ns/a,2,6\nt/x,1,5", [NAN, 6, 7]),
        ("t/x,1,5", [NAN] * 3),
        ("", [NAN] * 3),
        ("t/x,1,5\ns/z,1,5\ns/a,1,6", "far.csv:3: no annotation with id 1 in frame 's/z'"),
    ):
        (tmp_path / "far.csv").write_text(f"frame,id,distance_m\n{rows}\n")
        with only_files(()):
            if isinstance(expected, str):
                with pytest.raises(InputError) as caught:
                    with_distances(data, "far.csv", "id")
                assert str(caught.value) == expected
            else:
                own = with_distances(data, "far.csv", "id").annotations.distance_m
                assert np.array_equal(own, expected, equal_nan=True)


def test_sequences_that_a_file_names(tmp_path, monkeypatch):
    """Each with what is wrong with its first row, if nobody has it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "far.csv").write_text("sequence,frame,id,distance_m\nt,y,3,1\ns,a,1,2\nt,x,2,3\ns,a,2,4\n")
    assert {name: str(error) for name, error in sequences_named("far.csv", "id").items()} == {
        "t": "far.csv:2: no annotation with id 3 in frame 't/y'",
        "s": "far.csv:3: no annotation with id 1 in frame 's/a'",
    }
    (tmp_path / "far.csv").write_text("frame,id,distance_m\nu/v/y,3,1\n")
    assert list(sequences_named("far.csv", "id")) == ["u/v"]
