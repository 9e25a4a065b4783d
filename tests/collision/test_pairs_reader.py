"""Pairs from tables, from records of `verify confusion`, and straight from detections; and what is refused, word for
word."""

import datetime
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_boxes import iou_2d, iou_3d
from plain_counter import detection_set

from verifier.base.errors import InputError, UsageError
from verifier.cli import main
from verifier.collision.pairs_of_detections import highest_in_both, pairs_of_detections
from verifier.collision.pairs_reader import on_common_images, read_pairs, read_record
from verifier.perception.detections import DetectionSet
from verifier.perception.detections.columns import Boxes
from verifier.perception.matching import MatchingPolicy

# Four images: two pairs in a; one pair and one object without a report in b; nothing in c; one pair in d.
TABLE = """\
image,true_m,predicted_m,class,score
a,10.5,11,Car,0.9
a,20,18.5,Pedestrian,0.8
b,5,6,Car,0.7

b,40,,Car,
c,,,,
d,0,0,Car,1
"""
HEAD = "image,true_m,predicted_m\n"


def written(tmp_path, text, name="pairs.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_table_by_hand(tmp_path):
    found = read_pairs(written(tmp_path, TABLE))
    assert found.pairs.true_m.tolist() == [10.5, 20, 5, 0]
    assert found.pairs.predicted_m.tolist() == [11, 18.5, 6, 0]
    assert found.pairs.image.tolist() == [0, 0, 1, 3]
    assert found.pairs.image_names == ("a", "b", "c", "d")
    assert found.pairs.per_image.tolist() == [2, 1, 0, 1]
    assert found.missed_m.tolist() == [40]
    assert found.pairs.title == "pairs"
    numbers = {name: found.origin[name] for name in ("images", "objects", "pairs", "without_distance", "behind")}
    assert numbers == {"images": 4, "objects": 5, "pairs": 4, "without_distance": 0, "behind": 0}
    assert found.origin["name"] == "pairs.csv"
    assert len(found.origin["sha256"]) == 64


def test_one_class_leaves_the_images_of_the_others(tmp_path):
    found = read_pairs(written(tmp_path, TABLE), classes=("Pedestrian",), title="people")
    assert (found.pairs.true_m.tolist(), found.pairs.image.tolist(), found.pairs.image_count) == ([20], [0], 4)
    assert found.pairs.title == "people"
    both = read_pairs(written(tmp_path, TABLE), classes=("Pedestrian", "Car"))
    assert len(both.pairs) == 4


def test_images_that_no_line_names_are_counted(tmp_path):
    found = read_pairs(written(tmp_path, TABLE), image_count=10)
    assert found.pairs.image_count == 10
    assert found.pairs.count_distribution.tolist() == [7, 2, 1]
    with pytest.raises(UsageError, match=r"^3 images are too few: .*pairs.csv names 4$"):
        read_pairs(written(tmp_path, TABLE), image_count=3)


def test_negative_reports_are_what_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, HEAD + "a,4,-1\nb,2,3\n")
    with pytest.raises(InputError) as caught:
        read_pairs("pairs.csv")
    assert str(caught.value) == (
        "pairs.csv:2: predicted_m: expected a distance from 0 to 100000 m, got -1\n"
        "  hint: name what a report below 0 is: zero or left_out"
    )
    zero = read_pairs("pairs.csv", negative_reports="zero")
    assert zero.pairs.predicted_m.tolist() == [0, 3]
    without = read_pairs("pairs.csv", negative_reports="left_out")
    assert (without.pairs.predicted_m.tolist(), without.missed_m.tolist()) == ([3], [])
    assert without.pairs.image_count == 2
    assert [each.origin["negative_reports"] for each in (zero, without)] == [1, 1]


def test_two_sources_share_their_images_by_name(tmp_path):
    first = read_pairs(written(tmp_path, HEAD + "a,1,1\nb,2,\n", "first.csv"), image_count=5)
    second = read_pairs(written(tmp_path, HEAD + "c,3,4\nb,2,3\nb,5,6\n", "second.csv"), image_count=4)
    one, other = on_common_images([first, second])
    assert one.pairs.image_names == other.pairs.image_names
    assert one.pairs.image_names[:3] == ("a", "b", "c")
    assert (one.pairs.image_count, other.pairs.image_count) == (5, 5)
    assert (one.pairs.image.tolist(), one.missed_image.tolist()) == ([0], [1])
    assert other.pairs.image.tolist() == [2, 1, 1]
    assert other.pairs.count_distribution.tolist() == [3, 1, 1]


@pytest.mark.parametrize("separator", [";", "\t", ","])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_separators_line_ends_quotes_and_own_names(tmp_path, separator, end):
    rows = [["who", "frame", "z_pred", "z"], ['"Car, red"', " 7 ", "1e1", "+9.5"], ["x", "8", "2", "3"]]
    rows = [[cell.replace(",", separator) for cell in row] for row in rows]
    path = written(tmp_path, end.join(separator.join(row) for row in rows) + end)
    found = read_pairs(path, columns={"image": "frame", "true_m": "z", "predicted_m": "z_pred"})
    assert found.pairs.true_m.tolist() == [9.5, 3]
    assert found.pairs.predicted_m.tolist() == [10, 2]
    assert found.pairs.image_names == ("7", "8")


def test_parquet_holds_the_same(tmp_path):
    columns = {
        "image": pyarrow.array([1, 1, 2, 3]),
        "true_m": [10.5, 20.0, None, 1.0],
        "predicted_m": [11.0, None, None, 2.0],
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "pairs.parquet")
    found = read_pairs(tmp_path / "pairs.parquet")
    assert found.pairs.true_m.tolist() == [10.5, 1]
    assert found.pairs.image_names == ("1", "2", "3")
    assert found.missed_m.tolist() == [20]


@pytest.mark.parametrize(
    "odd",
    [{"a": 1.0}, [2.0], [1.0, 2.0], True, datetime.date(2020, 1, 2)],
    ids=["structure", "list of one", "list", "truth", "date"],
)
def test_parquet_columns_of_other_things_than_numbers_are_refused_at_their_cell(odd, tmp_path):
    columns = {"image": ["1", "2"], "true_m": [odd, None], "predicted_m": [4.0, 5.0]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "pairs.parquet")
    with pytest.raises(InputError, match="column 'true_m': expected numbers, got"):
        read_pairs(tmp_path / "pairs.parquet")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "pairs.csv: the file is empty; expected a line with the names of the columns"),
        ("image,true_m,predicted\na,1,2\n",
         "pairs.csv:1: no column 'predicted_m'\n"
         "  hint: did you mean 'predicted'? the file has: image, true_m, predicted"),
        ("image,true_m,true_m,predicted_m\n", "pairs.csv:1: the column 'true_m' occurs twice"),
        (HEAD, "pairs.csv: no pair of a true and a predicted distance"),
        (HEAD + "a,1,\n", "pairs.csv: no pair of a true and a predicted distance"),
        (HEAD + "a,1,2\nb,1\n", "pairs.csv:3: found 2 cells, expected 3"),
        (HEAD + "a,1,2\nb,1,2 m\n", "pairs.csv:3: predicted_m: expected a finite number, got '2 m'"),
        (HEAD + '"a,b",nan,2\n', "pairs.csv:2: true_m: expected a finite number, got nan"),
        (HEAD + "a,1_0,2\n", "pairs.csv:2: true_m: expected a finite number, got '1_0'"),
        (HEAD + "a,1,inf\n", "pairs.csv:2: predicted_m: expected a finite number, got inf"),
        (HEAD + "a,-1,2\n", "pairs.csv:2: true_m: expected a distance from 0 to 100000 m, got -1"),
        (HEAD + "a,1,123456\n", "pairs.csv:2: predicted_m: expected a distance from 0 to 100000 m, got 123456"),
        (HEAD + "a,,2\n", "pairs.csv:2: a predicted distance without a true one is no pair"),
        (HEAD + ",1,2\n", "pairs.csv:2: image: the cell is empty"),
        (HEAD + "b,1,2\n  ,1,2\n", "pairs.csv:3: image: expected a name, got '', a missing value"),
        (HEAD + '"a\nb",1,2\n', "pairs.csv: a quoted cell goes over several lines"),
        (HEAD + '"a,1,2\n', "pairs.csv:2: found 1 cells, expected 3"),
    ],
)  # fmt: skip
def test_faulty_tables_are_refused_with_their_place(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_pairs("pairs.csv")
    assert str(caught.value) == message


def test_unknown_classes_and_columns_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, TABLE)
    with pytest.raises(UsageError) as caught:
        read_pairs("pairs.csv", classes=("car",))
    assert str(caught.value) == (
        "unknown class 'car' in pairs.csv\n  hint: did you mean 'Car'? known: Car, Pedestrian"
    )
    with pytest.raises(UsageError) as caught:
        read_pairs("pairs.csv", columns={"true": "true_m"})
    assert str(caught.value) == (
        "unknown column 'true'\n  hint: did you mean 'true_m'? known: class, image, predicted_m, true_m"
    )


# One drive, three frames. Frame 0: a ped at (3, 4), 5 m away, reported at (6, 8); an obs at (30, 0) reported as ped
# at (33, 0). Frame 1: a ped at (12, 5) that nothing reports. Frame 2 is empty.
TRUTH = "frame,class,x,y,z\n0,ped,3,4,0\n0,obs,30,0,0\n1,ped,12,5,0\n"
FOUND = "frame,class,score,x,y,z\n0,ped,0.9,6,8,12\n0,ped,0.8,33,0,4\n"
FRAMES = "frame\n0\n1\n2\n"


@pytest.fixture
def record(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    for name, text in (("truth.csv", TRUTH), ("found.csv", FOUND), ("frames.csv", FRAMES)):
        (tmp_path / name).write_text(text)

    def make(measure, name="record.csv"):
        arguments = "confusion --format table --annotations truth.csv --detections found.csv --frames frames.csv"
        arguments += f" --match-threshold 10 --distance {measure} --record {name}"
        assert main(arguments.split()) == 0
        capfd.readouterr()
        return name

    return make


# sqrt(6^2 + 8^2) = 10 and with z = 12: sqrt(100 + 144) = 15.62; sqrt(33^2 + 4^2) = 33.24.
@pytest.mark.parametrize(
    ("measure", "true_m", "predicted_m", "missed_m"),
    [
        ("ground_plane", [5, 30], [10, 33], [13]),
        ("euclidean_3d", [5, 30], [244**0.5, 1105**0.5], [13]),
        ("forward", [3, 30], [6, 33], [12]),
    ],
)
@pytest.mark.parametrize("name", ["record.csv", "record.parquet"])
def test_a_record_by_hand(record, measure, true_m, predicted_m, missed_m, name):
    found = read_record(record(measure, name), measure)
    assert found.pairs.true_m.tolist() == true_m
    assert found.pairs.predicted_m.tolist() == pytest.approx(predicted_m, rel=1e-15, abs=0)
    assert found.missed_m.tolist() == missed_m
    assert found.pairs.per_image.tolist() == [2, 0, 0]
    assert (found.origin["format"], found.origin["measure"]) == ("record", measure)


def test_classes_of_a_record(record):
    name = record("ground_plane")
    people = read_record(name, "ground_plane", classes=("ped",))
    assert (people.pairs.true_m.tolist(), people.missed_m.tolist()) == ([5], [13])
    assert people.pairs.image_count == 3
    strict = read_record(name, "ground_plane", same_class=True)
    assert (strict.pairs.true_m.tolist(), strict.missed_m.tolist()) == ([5], [30, 13])
    with pytest.raises(UsageError, match=r"unknown class 'pde' in record\.csv\n  hint: did you mean 'ped'"):
        read_record(name, "ground_plane", classes=("pde",))
    with pytest.raises(UsageError, match="unknown distance measure of a record 'given'\n  hint: known: euclidean_3d"):
        read_record(name, "given")


def changed(name, old, new):
    path = Path(name)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_faulty_records_are_refused(record):
    name = record("ground_plane")
    changed(name, "\nframe,(no sequence),(no sequence),0,", "\nframe,(no sequence),(no sequence),1,")
    with pytest.raises(InputError, match=r"^record.csv:3: frame '1' has two rows"):
        read_record(name, "ground_plane")
    name = record("ground_plane")
    changed(name, "\nframe,(no sequence),(no sequence),1,", "\nother,(no sequence),(no sequence),1,")
    with pytest.raises(InputError, match=r"^record.csv:7: an object in frame '1', which has no row of its own"):
        read_record(name, "ground_plane")
    name = record("ground_plane")
    changed(name, ",6.0,8.0,12.0,", ",,8.0,12.0,")
    with pytest.raises(InputError, match=r"^record.csv:5: the report has no box in space"):
        read_record(name, "ground_plane")
    name = record("ground_plane")
    changed(name, ",6.0,8.0,12.0,", ",6e200,8.0,12.0,")
    with pytest.raises(InputError, match=r"^record.csv:5: the report is too far away for a distance"):
        read_record(name, "ground_plane")
    name = record("ground_plane")
    changed(name, "kind,", "sort,")
    with pytest.raises(InputError, match=r"^record.csv:1: no column 'kind'"):
        read_record(name, "ground_plane")


def boxes(rows, classes, scored):
    """Boxes from (frame, class, left, top, right, bottom, x, y, length, width); height 1 on the ground."""
    n = len(rows)
    columns = list(zip(*rows, strict=True)) if rows else [[] for _ in range(10)]
    flat = np.array(columns[2:6], dtype=float).T
    x, y, length, width = (np.array(column, dtype=float) for column in columns[6:])
    solid = np.column_stack([x, y, np.zeros(n), length, width, np.ones(n), np.zeros(n)])
    label = np.array([classes.index(name) for name in columns[1]], dtype=np.int32)
    return Boxes(
        np.array(columns[0], dtype=np.int64), label, np.ones(n) if scored else None, flat, solid, None, {},
        np.arange(1, n + 1), np.zeros(n, np.int32),
    )  # fmt: skip


def scene(annotations, detections, frames=2):
    classes = ("car", "ped")
    return DetectionSet(
        classes, ("s",), np.zeros(frames, np.int32), tuple(map(str, range(frames))),
        boxes(annotations, classes, False), boxes(detections, classes, True), None, ("f",),
    )  # fmt: skip


def test_the_papers_rule_by_hand():
    annotations = [
        (0, "car", 0, 0, 10, 10, 10, 0, 4, 2),  # report 1 is the best in the image and in space
        (0, "car", 20, 0, 30, 10, 30, 0, 4, 2),  # report 2 is the best in the image, report 3 in space: no pair
        (0, "ped", 50, 0, 60, 10, 50, 0, 1, 1),  # report 4 overlaps in the image, but not in space
        (1, "car", 0, 0, 10, 10, 20, 0, 4, 2),  # report 5 is the best of this one
        (1, "car", 2, 0, 12, 10, 22, 0, 4, 2),  # ... and of this one
        (1, "ped", 90, 0, 95, 10, 70, 0, 1, 1),  # nothing near
    ]
    detections = [
        (0, "car", 0, 0, 10, 9, 11, 0, 4, 2),
        (0, "ped", 0, 0, 10, 10, 10.5, 0, 4, 2),
        (0, "car", 20, 0, 30, 10, 31, 0, 4, 2),
        (0, "car", 20, 0, 29, 10, 30, 0, 4, 2),
        (0, "ped", 50, 0, 60, 10, 53, 0, 1, 1),
        (1, "car", 1, 0, 11, 10, 21, 0, 4, 2),
    ]
    found, in_image = highest_in_both(scene(annotations, detections))
    assert found.tolist() == [1, -1, -1, 5, 5, -1]
    assert in_image.tolist() == [True, True, True, True, True, False]
    read = pairs_of_detections(scene(annotations, detections), title="made up")
    assert read.pairs.true_m.tolist() == [10, 20, 22]
    assert read.pairs.predicted_m.tolist() == [10.5, 21, 21]
    assert read.pairs.image.tolist() == [0, 1, 1]
    assert read.missed_m.tolist() == [30, 50, 70]
    notes = {name: read.origin[name] for name in ("matching", "reports_of_two_objects", "overlapping_in_image")}
    assert notes == {"matching": "highest_in_both", "reports_of_two_objects": 1, "overlapping_in_image": 2}
    strict = pairs_of_detections(scene(annotations, detections), same_class=True)
    assert strict.pairs.true_m.tolist() == [20, 22]
    people = pairs_of_detections(
        scene(annotations, detections), classes=("ped",), policy=MatchingPolicy("iou_2d", 0.5), measure="forward"
    )
    assert (people.pairs.true_m.tolist(), people.pairs.predicted_m.tolist()) == ([50], [53])
    assert people.origin["matching"]["affinity"] == "iou_2d"
    assert "overlapping_in_image" not in people.origin


def plain_rule(annotations, detections):
    """The detection with the highest of both overlaps, in plain Python with exact geometry."""
    found = []
    for a in annotations:
        flat, solid = [], []
        for d in detections:
            same = a[0] == d[0]
            flat.append(iou_2d(a[2:6], d[2:6]) if same else 0)
            solid.append(iou_3d(*((r[6], r[7], 0, r[8], r[9], 1, 1, 0) for r in (a, d))) if same else 0)
        best = [k for k in range(len(detections)) if flat[k] == max(flat) > 0 and solid[k] == max(solid) > 0]
        found.append(best[0] if best else -1)
    return found


places = st.tuples(
    st.integers(0, 1),
    st.sampled_from(["car", "ped"]),
    st.integers(0, 6),
    st.integers(0, 4),
    st.integers(0, 8),
    st.integers(0, 4),
).map(lambda p: (p[0], p[1], p[2], p[3], p[2] + 4, p[3] + 4, p[4], p[5], 4, 2))


@given(st.lists(places, max_size=6), st.lists(places, min_size=1, max_size=6))
def test_the_papers_rule_against_a_plain_one(annotations, detections):
    # All boxes have one size with sides of whole numbers, so equal overlaps are equal in floating point, too.
    found, _ = highest_in_both(scene(annotations, detections))
    assert found.tolist() == plain_rule(annotations, detections)


def test_objects_behind_or_without_a_distance_are_counted_and_left_out():
    annotations = [(0, "car", 0, 0, 9, 9, 10, 0, 4, 2), (0, "car", 20, 0, 29, 9, -10, 0, 4, 2),
                   (1, "car", 0, 0, 9, 9, 1, 0, 4, 2)]  # fmt: skip
    detections = [(0, "car", 0, 0, 9, 9, 11, 0, 4, 2), (0, "car", 20, 0, 29, 9, -9, 0, 4, 2),
                  (1, "car", 0, 0, 9, 9, -1, 0, 4, 2)]  # fmt: skip
    read = pairs_of_detections(scene(annotations, detections), measure="forward")
    assert (read.pairs.true_m.tolist(), read.missed_m.tolist()) == ([10], [])
    assert (read.origin["behind"], read.origin["objects"]) == (2, 1)


def test_what_detections_lack_is_said():
    data = detection_set(("A/000000",), [], [])
    with pytest.raises(InputError, match=r"^nothing: no pair of a true and a predicted distance$"):
        pairs_of_detections(data, title="nothing")
    data = scene([(0, "car", 0, 0, 9, 9, 10, 0, 4, 2)], [(0, "car", 0, 0, 9, 9, 10, 0, 4, 2)])
    flat = data.change(detections=without(data.detections, "box_3d"))
    with pytest.raises(UsageError) as caught:
        pairs_of_detections(flat)
    assert str(caught.value) == (
        "the paper's rule compares boxes in space, which the detections do not have; name another matching"
    )
    with pytest.raises(UsageError, match="a matched detection has no distance by the measure 'ground_plane'"):
        pairs_of_detections(flat, policy=MatchingPolicy("iou_2d", 0.5))
    with pytest.raises(UsageError, match="unknown class 'cra'\n  hint: did you mean 'car'"):
        pairs_of_detections(data, classes=("cra",))


def without(boxes, column):
    return replace(boxes, **{column: None})


def test_drives_and_remarks_are_read_where_they_stand(tmp_path):
    """A remark in any cell is repeated; drives say which images are resampled together."""
    text = HEAD.strip() + ",drive,remarks\na,5,6,x,depths were filled in\nb,9,8,y,\nb,12,12,y,\nc,,,x,twice said\n"
    found = read_pairs(written(tmp_path, text))
    assert found.pairs.drive.tolist() == [0, 1, 0]
    assert (found.origin["drives"], found.origin["remarks"]) == (2, ["depths were filled in", "twice said"])
    assert found.pairs.take(np.array([1, 2])).drive.tolist() == [1, 0]
    plain = read_pairs(written(tmp_path, HEAD + "a,5,6\n"))
    assert (len(plain.pairs.drive), "remarks" in plain.origin, "drives" in plain.origin) == (0, False, False)
    pyarrow.parquet.write_table(
        pyarrow.table(
            {"image": ["a", "b"], "true_m": [5.0, 9.0], "predicted_m": [6.0, 8.0], "remarks": ["so", None]}
        ),
        tmp_path / "pairs.parquet",
    )
    assert read_pairs(tmp_path / "pairs.parquet").origin["remarks"] == ["so"]


@pytest.mark.parametrize(
    ("rows", "more", "complaint"),
    [
        ("a,5,6,x\na,9,8,y\n", {}, "pairs.csv:3: an image in two drives"),
        ("a,5,6,x\nb,9,8,\n", {}, "drive: the cell is empty"),
        ("a,5,6,x\n", {"image_count": 4}, "every image needs a row, with a drive"),
    ],
)
def test_drives_that_are_none(tmp_path, rows, more, complaint):
    with pytest.raises((InputError, UsageError)) as found:
        read_pairs(written(tmp_path, HEAD.strip() + ",drive\n" + rows), **more)
    assert complaint in str(found.value)
