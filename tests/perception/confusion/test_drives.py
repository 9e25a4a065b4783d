"""Drives by name: tables, counts regrouped against a count of renamed sequences, and refusals."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from counting_scenes import LEFTOVER, PLAIN, TWO_METRES, scenes
from hypothesis import given
from hypothesis import strategies as st
from plain_counter import Object, Report, detection_set
from shorthands import count_detections, of_sequences
from tracked_scenes import same_tracks

from verifier.analysis.intervals.drive_items import drive_items
from verifier.base.errors import InputError
from verifier.cli import main
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.context_counts import Memory, with_contexts
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.counting import confusion_counts, count_and_observe
from verifier.perception.confusion.document import read_counts
from verifier.perception.confusion.drives import frames_in_drives, read_drives, sequences_in_drives
from verifier.perception.confusion.record import read_record
from verifier.perception.confusion.replay import replay_record
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.detections import Reading, class_map, read_detections
from verifier.perception.settings import ReplaySettings

DRIVES = {"A": "monday", "B": "tuesday", "C": "monday"}


def table(folder, text, name="drives.csv"):
    (folder / name).write_text(text)
    return read_drives(folder / name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("drives.csv", "sequence,drive\nA,monday\n\nB,tuesday\nC, monday\n"),
        ("drives.tsv", "drive\tsequence\nmonday\tA\ntuesday\tB\nmonday\tC\n"),
    ],
)
def test_columns_come_in_any_order(tmp_path, name, text):
    found = table(tmp_path, text, name)
    assert (found.of, dict(found.drives)) == ("sequence", DRIVES)
    drives, number = found.drives_of(["C", "B", "A"])
    assert (drives, number.tolist()) == (("monday", "tuesday"), [0, 1, 0])


def test_frames_of_sequences_are_named_by_both(tmp_path):
    found = table(tmp_path, "sequence;frame;drive\nA;000001;x\nA;000002;y\n")
    assert (found.of, dict(found.drives)) == ("frame", {"A/000001": "x", "A/000002": "y"})


REFUSED = [
    ("sequence,drive\nA,x\nA,y\n", "drives.csv:3: the sequence 'A' has a row already, in line 2"),
    ("sequence,drive\nA,x\nB\n", "drives.csv:3: expected 2 cells, found 1"),
    ("sequence,drive\n,x\n", "drives.csv:2: the name of a sequence is empty"),
    ("sequence,drive\nA, \n", "drives.csv:2: expected the name of a drive, got ''"),
    ("sequence,site\nA,x\n", "drives.csv:1: expected the columns of a table of drives, got 'sequence,site'"),
    ("", "drives.csv:1: expected the columns of a table of drives, got ''"),
    ("sequence,drive\n", "drives.csv: no row in it"),
    ("\n\n", "drives.csv:1: expected the columns of a table of drives, got ''"),
    ("sequence,frame,drive\nA,,x\n", "drives.csv:2: the name of a frame is empty"),
    ("frame,drive,drive\nA,x,x\n", "drives.csv:1: expected the columns of a table of drives"),
    ("drive\nx\n", "drives.csv:1: expected the columns of a table of drives, got 'drive'"),
    ("sequence,drive\nA,x\x01\n", "drives.csv:2: expected the name of a drive, got 'x\\x01'"),
    ('sequence,drive\n"A,x\n', "drives.csv:2: not a readable CSV file: unexpected end of data"),
    ("frame,drive\nA,x\n\nB,y\nA,z\n", "drives.csv:5: the frame 'A' has a row already, in line 2"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=[each[1][:40] for each in REFUSED])
def test_tables_that_are_none_are_refused_with_their_line(tmp_path, monkeypatch, text, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "drives.csv").write_text(text)
    with pytest.raises(InputError) as caught:
        read_drives("drives.csv")
    assert str(caught.value).startswith(words)


def test_every_name_has_a_row_and_every_row_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.csv").write_text("sequence,drive\nA,x\nB,x\n")
    found = read_drives("d.csv")
    with pytest.raises(InputError, match=r"^d\.csv:3: there is no sequence 'B' in the data"):
        found.drives_of(["A"])
    with pytest.raises(InputError, match=r"^d\.csv: no row for the sequence 'C', and 1 more"):
        found.drives_of(["A", "B", "C", "D"])
    with pytest.raises(InputError, match=r"^d\.csv: no row for the sequence 'C'\n"):
        found.drives_of(["A", "B", "C"])


def test_counts_by_context_and_what_is_said_of_their_source_go_into_drives(tmp_path):
    frames = ["A", "A", "B", "B", "C"]
    objects, reports = [Object(k, "ped", 5, track=1) for k in range(5)], [Report(k, "ped", 5) for k in (0, 3, 4)]
    rule = CountingRule("class", ("ped",), Bins((0.0, 10.0)), "ground_plane")
    data = detection_set(frames, objects, reports, ("ped",))
    found, observed = count_and_observe(data, TWO_METRES, rule)
    counts = with_contexts(
        confusion_counts(found, rule, TWO_METRES), data, observed, rule, Memory(Contexts("run", 1), seed=None)
    )
    drives = table(tmp_path, "sequence,drive\n" + "".join(f"{name},{drive}\n" for name, drive in DRIVES.items()))
    for source, told in ((None, {}), ({"files": 2}, {"files": 2}), ("by hand", {"of": "by hand"})):
        grouped = sequences_in_drives(replace(counts, metadata={} if source is None else {"source": source}), drives)
        assert grouped.metadata["source"] == {**told, "drives": drives.record()}
        # monday is A and C: rw and r; tuesday is B: wr.
        tally = grouped.by_context.tally
        assert np.column_stack([tally.index, tally.counts]).tolist() == [
            [0, 0, 0, 0, 2], [0, 1, 1, 0, 1], [1, 0, 1, 0, 1], [1, 2, 0, 0, 1],
        ]  # fmt: skip
        assert grouped.sequences.frames.tolist() == [3, 2]
    bare = replace(counts, sequences=None, by_context=replace(counts.by_context, tally=None))
    with pytest.raises(InputError, match="the matrices have no counts by sequence, so they cannot be grouped"):
        sequences_in_drives(bare, drives)
    with pytest.raises(InputError, match="the frames are counted already: expected drives by sequence"):
        sequences_in_drives(counts, replace(drives, of="frame"))


@st.composite
def tracked(draw):
    frames, objects, reports = draw(scenes())
    objects = [replace(each, track=draw(st.integers(-1, 1))) for each in objects]
    variables = draw(st.sampled_from([key for key in PLAIN if not any(each.name == "sequence" for each in key)]))
    bins = Bins((0.0, 5.0, 10.0, 20.0), variables)
    return (frames, objects, reports), CountingRule("class", ("ped", "obs"), bins, "ground_plane", draw(LEFTOVER),
                                                    outside="drop", thresholds=(0.15, 0.35))  # fmt: skip


def counted(data, rule):
    return confusion_counts(count_detections(data, TWO_METRES, rule), rule, TWO_METRES)


@given(tracked())
def test_drives_are_what_counting_sequences_of_these_names_gives(tmp_path_factory, case):
    """The same scene with its sequences renamed; their tracks are kept apart by numbers of their own."""
    (frames, objects, reports), rule = case
    drives = table(tmp_path_factory.getbasetemp(), "sequence,drive\n" + "".join(
        f"{name},{DRIVES[name]}\n" for name in dict.fromkeys(frames)
    ))  # fmt: skip
    by_frame = table(tmp_path_factory.getbasetemp(), "frame,drive\n" + "".join(
        f"{name}/{number:06},{DRIVES[name]}\n" for number, name in enumerate(frames)
    ))  # fmt: skip
    own = [
        replace(each, track=each.track if each.track < 0 else 10 * each.track + "ABC".index(frames[each.frame]))
        for each in objects
    ]
    expected = counted(detection_set([DRIVES[name] for name in frames], own, reports), rule)
    data = detection_set(frames, objects, reports)
    for found in (
        sequences_in_drives(counted(data, rule), drives),
        counted(frames_in_drives(data, by_frame), rule),
    ):
        assert np.array_equal(found.counts, expected.counts)
        assert found.sequences.names == expected.sequences.names
        assert found.sequences.frames.tolist() == expected.sequences.frames.tolist()
        assert np.array_equal(of_sequences(found), of_sequences(expected))
        assert (found.sequences.tracks is None) == (expected.sequences.tracks is None)
        if found.sequences.tracks is not None:
            same_tracks(found.sequences.tracks, expected.sequences.tracks)


def test_images_without_sequences_get_drives(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    line = "Pedestrian 0 0 0 10 10 30 60 1.7 0.6 0.6 1 1.6 8 0"
    for folder, text in (("label", line), ("found", f"{line} 0.9")):
        (tmp_path / folder).mkdir()
        for name in ("000008", "000019", "000020"):
            (tmp_path / folder / f"{name}.txt").write_text(text + "\n")
    data = ["confusion", "--format", "kitti_object", "--annotations", "label", "--detections", "found"]
    (tmp_path / "drives.csv").write_text("frame,drive\n000008,a\n000019,b\n000020,a\n")
    assert main([*data, "--groups", "drives.csv", "-o", "counts.json"]) == 0
    found = read_counts("counts.json")
    assert (found.sequences.names, found.sequences.frames.tolist()) == (("a", "b"), [2, 1])
    assert found.metadata["source"]["drives"]["of"] == "frame"
    assert main([*data, "-o", "unknown.json"]) == 0  # not one drive: nothing is known of how the images were taken
    assert read_counts("unknown.json").sequences is None
    capfd.readouterr()
    (tmp_path / "drives.csv").write_text("frame,drive\n000008,a\n000019,b\n")
    assert main([*data, "--groups", "drives.csv"]) == 4
    assert "drives.csv: no row for the frame '000020'" in capfd.readouterr().err


def test_merged_sequences_get_drives(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    head = "sequence,frame,class,x,y"
    for drive in "ABC":
        (tmp_path / "truth.csv").write_text(f"{head}\n{drive},0,ped,5,0\n")
        (tmp_path / "found.csv").write_text(f"{head},score\n{drive},0,ped,5,0,0.9\n")
        data = ["--format", "table", "--annotations", "truth.csv", "--detections", "found.csv", "--bins", "0,10"]
        assert main(["confusion", *data, "-o", f"{drive}.json"]) == 0
    (tmp_path / "drives.csv").write_text("sequence,drive\nA,x\nB,y\nC,x\n")
    files = ["A.json", "B.json", "C.json"]
    assert main(["confusion", "merge", *files, "--groups", "drives.csv", "-o", "all.json"]) == 0
    found = read_counts("all.json")
    assert (found.sequences.names, found.sequences.frames.tolist()) == (("x", "y"), [2, 1])
    assert found.metadata["source"]["drives"]["name"] == "drives.csv"
    assert len(found.metadata["source"]["merged"]) == 3
    capfd.readouterr()
    assert main(["confusion", "merge", *files[:2], "--groups", "drives.csv", "-o", "two.json"]) == 4
    assert "drives.csv:4: there is no sequence 'C' in the data" in capfd.readouterr().err
    assert not (tmp_path / "two.json").exists()
    (tmp_path / "frames.csv").write_text("frame,drive\n0,x\n")
    assert main(["confusion", "merge", *files[:2], "--groups", "frames.csv"]) == 4
    assert "frames.csv: the frames are counted already" in capfd.readouterr().err
    # One sequence in two files is refused before drives are looked at.
    (tmp_path / "again.json").write_text((tmp_path / "A.json").read_text() + "\n")
    assert main(["confusion", "merge", "A.json", "again.json", "--groups", "drives.csv"]) == 4
    assert "sequence 'A' is in an earlier file, too" in capfd.readouterr().err


VALID = Path(__file__).resolve().parents[2] / "data/invalid/detections"
FORMS = sorted(path.name for path in VALID.iterdir() if (path / "valid").is_dir())


def one(folder, name):
    return str(next((VALID / folder / "valid").glob(f"{name}*")))


@pytest.mark.parametrize("form", FORMS)
def test_frames_of_every_format_get_drives_and_keep_them(form, tmp_path, monkeypatch, capfd):
    """Each frame its own drive: in the matrices, in the record, and after merging."""
    monkeypatch.chdir(tmp_path)
    paths = one(form, "annotations"), one(form, "detections")
    own_map = class_map({"human.*": "person", "vehicle.*": "car", "*": "ignore"})
    data = read_detections(form, *paths, Reading(class_map=own_map if form == "nuscenes" else None))
    drive_of = {name: f"drive {number}" for number, name in enumerate(data.frame_name)}
    (tmp_path / "d.csv").write_text("frame,drive\n" + "".join(f"{k},{v}\n" for k, v in drive_of.items()))
    frames = data.annotations.frame.tolist()
    options = ["--accept", "nothing-matched", "--groups", "d.csv", "--record", "r.csv", "-o", "c.json"]
    if form in ("bdd100k", "coco", "cvat", "mot", "voc", "yolo"):
        key = "track" if form == "mot" else "id"
        numbers = data.annotations.attributes[key].astype(int).tolist()
        rows = [f"{data.frame_name[at]},{number},5\n" for at, number in zip(frames, numbers, strict=True)]
        (tmp_path / "away.csv").write_text(f"frame,{key},distance_m\n" + "".join(rows))
        options += ["--distance-file", "away.csv", "--distance-key", key]
    assert main(["confusion", "--format", form, "--annotations", paths[0], "--detections", paths[1], *options]) == 0
    found = read_counts("c.json")
    assert found.sequences.names == tuple(drive_of.values())
    assert of_sequences(found).sum() == found.counts.sum()
    resampled = drive_items(found.sequences, found.bins.count, len(found.labels))
    assert resampled.names == tuple(drive_of.values())
    assert np.array_equal(resampled.table.sum(axis=0), found.counts[0])
    record = read_record("r.csv")
    assert dict(zip(record["frame"].tolist(), record["drive"].tolist(), strict=True)) == drive_of
    # The same frames again as other drives: drives are added, none is lost.
    assert main(["confusion", "merge", "c.json", "c.json", "--same-sequences", "rename", "-o", "two.json"]) == 4
    capfd.readouterr()
    (tmp_path / "d.csv").write_text("frame,drive\n" + "".join(f"{k},again\n" for k in drive_of))
    (tmp_path / "c.json").rename("first.json")
    assert main(["confusion", "--format", form, "--annotations", paths[0], "--detections", paths[1], *options]) == 0
    assert main(["confusion", "merge", "first.json", "c.json", "-o", "two.json"]) == 0
    both = read_counts("two.json").sequences
    assert both.names == (*drive_of.values(), "again")
    assert both.frames.tolist() == [1] * len(drive_of) + [len(drive_of)]


def test_a_replay_leaves_out_whole_drives(tmp_path, monkeypatch):
    """Four sequences of one track each; a table makes two drives of them, in a count at once and in a stream."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{s},{k},ped,5,0" for s in "ABCD" for k in range(3)]
    for name, head, more in (
        ("t", "sequence,frame,class,x,y,track", ",7"),
        ("f", "sequence,frame,class,x,y,score", ",1"),
    ):
        (tmp_path / f"{name}.csv").write_text("\n".join([head, *(row + more for row in rows)]) + "\n")
    (tmp_path / "d.csv").write_text("sequence,drive\nA,x\nB,x\nC,y\nD,y\n")
    asked = ReplaySettings(record="r.csv", true_class="ped", range="0..10", frames=2, bins="0,10")
    data = ["confusion", "--format", "table", "--annotations", "t.csv", "--detections", "f.csv", "--bins", "0,10"]
    for options, drives in (([], 4), (["--groups", "d.csv"], 2)):
        assert main([*data, "--record", "r.csv", *options]) == 0
        found = replay_record(asked)
        assert (found.windows, found.sequences) == (4, drives)
    for name in "tf":
        table_of = pyarrow.csv.read_csv(f"{name}.csv")
        pyarrow.parquet.write_table(table_of, f"{name}.parquet")
    streamed = [each.replace(".csv", ".parquet") for each in data]
    (tmp_path / "classes.txt").write_text("* -> ped\n")
    assert main([*streamed, "--stream", "--class-map", "classes.txt", "--groups", "d.csv", "--record", "s.csv"]) == 0
    record = read_record("s.csv")
    assert set(zip(record["sequence"].tolist(), record["drive"].tolist(), strict=True)) == {
        ("A", "x"), ("B", "x"), ("C", "y"), ("D", "y")
    }  # fmt: skip
