"""CSV and Parquet with named columns, at once and as a stream."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import InputError, UsageError
from verifier.perception.detections import Reading, Tables, class_map, distance, read_detections, stream_tables
from verifier.perception.detections.tablefiles import frames_of, tables

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

TRUTH = """\
drive,frame,class,x,y,rain,note,region
a,10,ped,3,4,0.5,"wet, cold",0
a,9,car,30,0,,dry,0

b,9,ped,,,0,dry,1
"""
SEEN = "drive,frame,class,score,x1,y1,x2,y2\nb,9,ped,0.5,1,2,3,4\na,10,car,0.25,,,,\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "truth.csv").write_text(TRUTH)
    (tmp_path / "seen.csv").write_text(SEEN)
    return tmp_path / "truth.csv", tmp_path / "seen.csv"


def test_a_csv_file_by_hand(files):
    found = tables(*files, columns={"sequence": "drive"})
    assert found.sequences == ("a", "b")
    assert found.frame_name == ("a/10", "a/9", "b/9")
    assert found.classes == ("car", "ped")
    truth = found.annotations
    assert distance(truth, "ground_plane").tolist() == [5, 30]
    assert truth.line.tolist() == [2, 3]
    assert truth.attributes["rain"].tolist()[0] == 0.5
    assert math.isnan(truth.attributes["rain"][1])
    assert set(truth.attributes) == {"rain"}  # the note is no number
    assert (found.ignored.line.tolist(), np.isnan(found.ignored.box_3d).all()) == ([5], True)
    assert found.detections.frame.tolist() == [2, 0]
    assert found.detections.box_2d[0].tolist() == [1, 2, 3, 4]
    assert np.isnan(found.detections.box_2d[1]).all()
    assert found.origin["assumed_zero"] == {
        "annotations": ["z", "length", "width", "height", "yaw"],
        "detections": [],
    }


def test_parts_of_boxes(tmp_path):
    """A box needs its four edges, or x and y; one whose cells are all empty is none."""
    truth, seen = "frame,class,x1,y1,x2{}\na,ped,1,2,3{}\nb,ped,1,2,3{}\n", "frame,class,score,{}\na,ped,0.5,{}\n"

    def read(head, first, second, columns, values):
        (tmp_path / "t.csv").write_text(truth.format(head, first, second))
        (tmp_path / "s.csv").write_text(seen.format(columns, values))
        return tables(tmp_path / "t.csv", tmp_path / "s.csv")

    found = read("", "", "", "x,yaw", "1,2")
    assert (found.annotations.box_2d, found.detections.box_3d) == (None, None)
    assert found.origin["assumed_zero"] == {"annotations": [], "detections": []}
    found = read(",y2", ",4", ",4", "x,y,yaw", "1,2,3")
    assert found.annotations.box_2d.tolist() == [[1, 2, 3, 4]] * 2
    with pytest.raises(InputError, match=r"t\.csv:3: annotation with box_2d .* no finite number"):
        read(",y2", ",4", ",", "x,y", "1,2")


def test_frames_that_are_listed(tmp_path):
    """Each once; one without a sequence stands in none."""
    (tmp_path / "f.csv").write_text("frame\na\nb\nb\na\nb\n")
    (tmp_path / "t.csv").write_text("frame,class,score\na,ped,1\n")
    with pytest.raises(InputError, match=r"f\.csv:5: frame 'a' occurs twice"):
        tables(tmp_path / "t.csv", tmp_path / "t.csv", frames=tmp_path / "f.csv")
    (tmp_path / "f.csv").write_text("sequence,frame\ns,a\nt,a\nt,b\nt,b\n")
    (tmp_path / "t.csv").write_text("sequence,frame,class,score\ns,a,ped,1\n")
    with pytest.raises(InputError, match=r"f\.csv:5: frame 'b' of sequence 't' occurs twice"):
        tables(tmp_path / "t.csv", tmp_path / "t.csv", frames=tmp_path / "f.csv")
    found = frames_of([("d", 1), (None, 2), ("", "3"), ("d", "x"), ("e", 4)])
    assert (found.names, found.sequences) == (("d/1", "2", "3", "d/x", "e/4"), ("d", "(no sequence)", "e"))
    assert found.sequence.tolist() == [0, 1, 1, 0, 2]


@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators_windows_lines_and_a_byte_order_mark(tmp_path, separator):
    text = "frame,class,score,x,y\n1,ped,0.5,1,2\n".replace(",", separator).replace("\n", "\r\n")
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    found = tables(tmp_path / "a.csv", tmp_path / "a.csv")
    assert found.frame_name == ("1",)
    assert found.detections.box_3d[0].tolist() == [1, 2, 0, 0, 0, 0, 0]


def test_frames_without_objects_are_listed_in_a_file(files, tmp_path):
    (tmp_path / "frames.csv").write_text("drive,frame\na,9\na,10\na,11\nb,9\n")
    found = tables(*files, columns={"sequence": "drive"}, frames=tmp_path / "frames.csv")
    assert found.frame_name == ("a/9", "a/10", "a/11", "b/9")
    assert found.annotations.frame.tolist() == [1, 0]


def test_a_table_of_pandas(tmp_path):
    """Rows count from 1, whatever the index; columns of codes are those of texts; of no rows no type is known."""
    pandas = pytest.importorskip("pandas")
    rows = {"frame": ["b", "a"], "class": ["ped", "car"], "track": ["t", "s"], "x": [1, 2], "y": [0, 0], "id": [7, 8]}
    plain = pandas.DataFrame(rows, index=[5, 6])
    coded = plain.astype(dict.fromkeys(("frame", "class", "track"), "category"))
    none = pandas.DataFrame({"frame": [], "class": [], "score": []})
    for truth in (plain, coded):
        found = tables(truth, none.astype(object))
        assert (found.frame_name, found.annotations.line.tolist()) == (("b", "a"), [1, 2])
        assert [found.classes[k] for k in found.annotations.label] == ["ped", "car"]
        attributes = {name: column.tolist() for name, column in found.annotations.attributes.items()}
        assert attributes == {"track": ["t", "s"], "id": [7, 8]}
        truth.to_parquet(tmp_path / "t.parquet")
        again = tables(tmp_path / "t.parquet", none)
        assert again.annotations.attributes["track"].tolist() == ["t", "s"]
    with pytest.raises(
        InputError, match="<annotations>: column 'frame': expected names or whole numbers, got double"
    ):
        tables(plain.assign(frame=0.5), none)


def test_options_that_do_not_exist(files):
    with pytest.raises(UsageError, match="unknown column 'clas'\n  hint: did you mean 'class'"):
        tables(*files, columns={"clas": "kind"})
    with pytest.raises(UsageError, match="for two purposes"):
        tables(*files, columns={"x": "a", "y": "a"})
    with pytest.raises(UsageError, match="unknown format 'coko'"):
        read_detections("coko", *files)
    with pytest.raises(UsageError, match="unknown option of the format 'coco' 'frames'"):
        read_detections("coco", *files, frames="x")
    with pytest.raises(UsageError, match="unknown sequence 'c'"):
        tables(*files, Reading(sequences=("c",)), columns={"sequence": "drive"})
    with pytest.raises(UsageError, match="unknown kind of fault to ignore 'unknown_frame'"):
        Reading(ignore=("unknown_frame",))


def test_the_published_table_of_the_scene(shared, tmp_path):
    # One file holds ground truth and three detectors; ranges are given beside positions.
    path = shared / "data/nuscenes_mini_val/scene-0916/flat_ego.csv"
    lines = path.read_text().splitlines()
    for source in ("gt", "centerpoint"):
        chosen = [line for line in lines[1:] if line.split(",")[1] == source]
        (tmp_path / f"{source}.csv").write_text("\n".join([lines[0], *chosen]) + "\n")
    columns = {"x": "x_ego_m", "y": "y_ego_m", "distance_m": "range_m"}
    reading = Reading(class_map=class_map({"pedestrian": "ped", "*": "obs"}))
    found = tables(tmp_path / "gt.csv", tmp_path / "centerpoint.csv", reading, columns=columns)
    assert (len(found.annotations), len(found.detections), found.frame_count) == (2424, 6215, 41)
    given, computed = (distance(found.annotations, measure) for measure in ("given", "ground_plane"))
    assert np.abs(given - computed).max() < 0.0015  # three decimals each


def write(path, rows, scored, kind):
    frame = arrow.int64() if kind == "numbers" else arrow.string()
    columns = {
        "sequence": arrow.array([sequence for sequence, *_ in rows], arrow.string()),
        "frame": arrow.array([number if kind == "numbers" else f"{number:03d}" for _, number, *_ in rows], frame),
        "class": arrow.array([name for *_, name, _ in rows], arrow.string()).dictionary_encode(),
        "x": arrow.array([x for *_, x in rows], arrow.float32()),
        "y": arrow.array([0.0] * len(rows), arrow.float64()),
    }
    if kind == "codes":
        columns |= {name: columns[name].dictionary_encode() for name in ("sequence", "frame")}
    if scored:
        columns["score"] = arrow.array([0.5] * len(rows), arrow.float64())
    parquet.write_table(arrow.table(columns), path, row_group_size=3)


ROW = st.tuples(
    st.sampled_from(["a", "b"]), st.integers(0, 12), st.sampled_from(["ped", "car"]), st.integers(1, 90).map(float)
)


@given(
    st.lists(ROW, max_size=30),
    st.lists(ROW, max_size=30),
    st.integers(1, 12),
    st.sampled_from(["numbers", "names", "codes"]),
)
def test_a_stream_has_the_same_objects_as_reading_at_once(tmp_path_factory, truth, seen, size, kind):
    folder = tmp_path_factory.mktemp("stream")
    truth, seen = sorted(truth), sorted(seen)
    write(folder / "t.parquet", truth, False, kind)
    write(folder / "d.parquet", seen, True, kind)
    frames = sorted({row[:2] for row in truth + seen} | {("b", 20)})
    write(folder / "f.parquet", [(*frame, "ped", 1.0) for frame in frames], False, kind)
    paths, listed = (folder / "t.parquet", folder / "d.parquet"), folder / "f.parquet"
    whole = tables(*paths, Reading(class_map=class_map({"*": "any"})), frames=listed)
    read = Tables.of(*paths, frames=listed)
    chunks = list(stream_tables(read, Reading(class_map=class_map({"*": "any"})), rows_per_chunk=size))
    assert [name for chunk in chunks for name in chunk.data.frame_name] == list(whole.frame_name)
    for side in ("annotations", "detections"):
        streamed = [row for chunk in chunks for row in listed_rows(chunk.data, side)]
        assert streamed == listed_rows(whole, side)
    assert chunks[-1].rows_done == chunks[-1].rows_total == len(truth) + len(seen) + len(frames)
    if len(chunks) > 1:
        rest = list(
            stream_tables(
                read,
                Reading(class_map=class_map({"*": "any"})),
                rows_per_chunk=size + 3,
                after=chunks[0].last_frame,
            )
        )
        names = [name for chunk in rest for name in chunk.data.frame_name]
        assert names == list(whole.frame_name)[len(chunks[0].data.frame_name) :]
        assert sum(len(chunk.data.detections) for chunk in rest) == len(seen) - len(chunks[0].data.detections)


def listed_rows(data, side):
    """Frame, position and row of each object."""
    boxes = getattr(data, side)
    ahead = [] if boxes.box_3d is None else boxes.box_3d[:, 0].tolist()
    names = [data.frame_name[frame] for frame in boxes.frame]
    return list(zip(names, ahead, boxes.line.tolist(), strict=True))


def test_streams_that_are_refused(tmp_path):
    rows = [("a", 2, "ped", 1.0), ("a", 1, "ped", 1.0)]
    write(tmp_path / "wrong.parquet", rows, True, "numbers")
    write(tmp_path / "right.parquet", sorted(rows), True, "numbers")
    write(tmp_path / "names.parquet", sorted(rows), True, "names")
    right = tmp_path / "right.parquet"
    with pytest.raises(UsageError, match="streaming needs a class map"):
        next(stream_tables(Tables.of(right, right)))
    with pytest.raises(InputError, match="parquet:2: frame 'a/1' comes after 'a/2'"):
        next(stream_tables(Tables.of(right, tmp_path / "wrong.parquet"), classes=("ped",)))
    with pytest.raises(InputError, match=r"named by names within sequences named by names, in .*by whole numbers"):
        next(stream_tables(Tables.of(right, tmp_path / "names.parquet"), classes=("ped",)))
    with pytest.raises(InputError, match="no frame named 'a/7'"):
        list(stream_tables(Tables.of(right, right), classes=("ped",), after="a/7"))
    with pytest.raises(InputError, match="no such file"):
        next(stream_tables(Tables.of(tmp_path / "none.parquet", right), classes=("ped",)))
    assert [chunk.last_frame for chunk in stream_tables(Tables.of(right, right), classes=("ped",))] == ["a/2"]
    assert list(stream_tables(Tables.of(right, right), classes=("ped",), after="a/2")) == []
