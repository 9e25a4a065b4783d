"""The record: from its rows alone, read as text, the counts can be made again exactly."""

import csv
import math
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pyarrow.parquet
import pytest
from counting_scenes import BY_CLASS, FRAMES, OBJECTS, REPORTS, TWO_METRES, as_counter, rules, scenes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_counter import EMPTY, detection_set

from verifier.base.errors import InputError, UsageError, VerifierError
from verifier.perception.confusion import record as recording
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.counting import count_and_observe
from verifier.perception.confusion.drives import DriveTable
from verifier.perception.confusion.record import (
    COLUMNS,
    check_record_target,
    join_records,
    read_record,
    record_table,
    write_record,
)
from verifier.perception.matching import MatchingPolicy


def recorded(scene, rule, path, policy=TWO_METRES):
    data = detection_set(*scene)
    counted, observed = count_and_observe(data, policy, rule)
    write_record([record_table(data, rule, observed)], path)
    return counted


def rows_of(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_a_record_by_hand(tmp_path):
    path = tmp_path / "record.csv"
    recorded((FRAMES, OBJECTS, REPORTS), replace(BY_CLASS, unmatched="own_bin"), path)
    found = rows_of(path)
    assert tuple(found[0]) == COLUMNS
    assert Counter(row["kind"] for row in found) == {"frame": 3, "object": 4, "unmatched": 2, "duplicate": 2}
    wanted = ("frame", "bin", "true", "predicted", "score", "file", "line", "report_line", "report_x_m", "affinity")
    objects = [[row[name] for name in wanted] for row in found if row["kind"] == "object"]
    assert objects == [
        ["A/000000", "0", "ped", "ped", "0.9", "truth.txt", "1", "1", "5.0", "0.0"],
        ["A/000000", "0", "ped", "empty", "", "truth.txt", "2", "-1", "", ""],
        ["A/000000", "1", "obs", "ped", "0.8", "truth.txt", "3", "3", "13.0", "1.0"],
        ["B/000002", "1", "obs", "obs", "0.7", "truth.txt", "4", "6", "10.0", "0.0"],
    ]
    leftovers = [[row[name] for name in ("kind", "frame", "bin", "true", "predicted", "distance_m", "report_line")]
                 for row in found if row["kind"] in ("unmatched", "duplicate")]  # fmt: skip
    assert leftovers == [
        ["duplicate", "A/000000", "-1", "empty", "ped", "5.5", "2"],
        ["unmatched", "A/000001", "1", "empty", "obs", "15.0", "4"],
        ["unmatched", "A/000001", "1", "empty", "ped", "16.0", "5"],
        ["duplicate", "B/000002", "-1", "empty", "obs", "9.0", "7"],
    ]


@pytest.mark.parametrize(
    ("track", "texts"),
    [
        ([3, 4, 3, 3], ["3", "4", "3", "3"]),
        ([3.0, np.nan, 7.0, 0.0], ["3", "", "7", "0"]),
        (["p1", "p2", "", "c 3"], ["p1", "p2", "", "c 3"]),
        ([0.5, 1.0, 2.0, 3.0], ["0.5", "1.0", "2.0", "3.0"]),
    ],
)
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_objects_are_written_with_their_tracks(tmp_path, track, texts, ending):
    data = detection_set(FRAMES, OBJECTS, REPORTS)
    data = data.change(annotations=replace(data.annotations, attributes={"track": np.array(track)}))
    _, observed = count_and_observe(data, TWO_METRES, BY_CLASS)
    path = tmp_path / f"record{ending}"
    write_record([record_table(data, BY_CLASS, observed)], path)
    rows = rows_of(path) if ending == ".csv" else pyarrow.parquet.read_table(path).to_pylist()
    assert [row["track"] for row in rows if row["kind"] == "object"] == texts
    assert {row["track"] for row in rows if row["kind"] != "object"} == {""}


def recounted(rows, rule, threshold=-math.inf):
    """Counts from the rows of a record, in plain Python. No variables beside distance and those of objects."""
    found = Counter()
    by_frame = defaultdict(list)
    sequences = {row["frame"]: row["sequence"] for row in rows if row["kind"] == "frame"}
    for row in rows:
        by_frame[row["frame"]].append(row)
    inner = math.prod(rule.bins.shape[1:])
    for frame, here in by_frame.items():
        sequence = sequences[frame]
        objects = [row for row in here if row["kind"] == "object"]
        extra = [
            row for row in here if row["kind"] in ("unmatched", "duplicate") and float(row["score"]) >= threshold
        ]
        for first in range(0, rule.bins.count, inner):
            standing = [row for row in objects if row["place"] == str(first)]
            alarms = [row for row in extra if row["place"] == str(first)]
            if rule.labelling == "proposition":
                told = {told_of(row, threshold) for row in [*standing, *alarms]} - {"empty"}
                found[sequence, first, frozenset(told), frozenset(row["true"] for row in standing)] += 1
            elif not standing:
                told = max(alarms, key=lambda row: float(row["score"]))["predicted"] if alarms else "empty"
                for at in range(first, first + inner):
                    found[sequence, at, label(told), EMPTY] += 1
        if rule.labelling != "proposition":
            for members in items_of(objects):
                nearest = min(members, key=lambda row: float(row["distance_m"]))
                told = [row for row in members if told_of(row, threshold) != "empty"]
                if any(row["predicted"] == row["true"] for row in told):
                    name = nearest["true"]
                else:
                    name = max(told, key=lambda row: float(row["score"]))["predicted"] if told else "empty"
                if nearest["bin"] != "-1":
                    found[sequence, int(nearest["bin"]), label(name), label(nearest["true"])] += 1
    return found


def told_of(row, threshold):
    return row["predicted"] if row["score"] and float(row["score"]) >= threshold else "empty"


def label(name):
    return EMPTY if name == "empty" else frozenset({name})


def items_of(objects):
    groups = defaultdict(list)
    for number, row in enumerate(objects):
        groups[row["group"] if row["group"] != "-1" else f"alone {number}"].append(row)
    return groups.values()


def flat(counted, rule, member=0):
    return Counter({
        (sequence, sum(k * math.prod(rule.bins.shape[axis + 1 :]) for axis, k in enumerate(at)), told, true): count
        for (sequence, at, told, true), count in as_counter(counted.tally, counted.sequences, rule, member).items()
    })  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(scenes(), rules(), st.sampled_from(["greedy", "optimal"]))
def test_counts_are_made_again_from_the_record(tmp_path, scene, rule, assignment):
    if any(each.scope != "object" for each in rule.bins.variables):
        rule = replace(rule, bins=Bins(rule.bins.edges_m))
    path = tmp_path / "record.csv"
    counted = recorded(scene, rule, path, MatchingPolicy("centre_bev", 2.0, assignment))
    assert recounted(rows_of(path), rule) == flat(counted, rule)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(scenes(), rules(("class", "proposition")), st.sampled_from([(0.1, 0.3), (0.2, 0.25, 0.5)]))
def test_one_record_holds_the_whole_family(tmp_path, scene, rule, thresholds):
    rule = replace(rule, bins=Bins(rule.bins.edges_m), thresholds=thresholds)
    path = tmp_path / "record.csv"
    counted = recorded(scene, rule, path)
    rows = rows_of(path)
    for member, threshold in enumerate(thresholds):
        assert recounted(rows, rule, threshold) == flat(counted, rule, member)


def test_parquet_and_csv_hold_the_same(tmp_path):
    scene, rule = (FRAMES, OBJECTS, REPORTS), replace(BY_CLASS, unmatched="own_bin")
    recorded(scene, rule, tmp_path / "record.csv")
    recorded(scene, rule, tmp_path / "record.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "record.parquet").to_pylist()
    text = [{name: "" if value is None else str(value) for name, value in row.items()} for row in table]
    assert text == rows_of(tmp_path / "record.csv")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_parts_are_joined_in_order(tmp_path, ending):
    data = detection_set(FRAMES, OBJECTS, REPORTS)
    _, observed = count_and_observe(data, TWO_METRES, BY_CLASS)
    table = record_table(data, BY_CLASS, observed)
    parts = [tmp_path / f"{number}{ending}" for number in range(2)]
    for part in parts:
        write_record([table], part)
    join_records(parts, tmp_path / f"joined{ending}")
    write_record([table, table], tmp_path / f"whole{ending}")
    if ending == ".csv":
        assert (tmp_path / "joined.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    else:
        one, other = (pyarrow.parquet.read_table(tmp_path / f"{name}.parquet") for name in ("joined", "whole"))
        assert one.equals(other)


def test_a_record_has_a_known_ending():
    with pytest.raises(UsageError, match=r"ending in \.csv, \.parquet, got record\.txt"):
        check_record_target("record.txt")


def whole_record(frames=FRAMES, objects=OBJECTS, reports=REPORTS, rule=BY_CLASS, drives=None, change=None):
    """The columns of a record; `change` is of what was observed."""
    data = detection_set(frames, objects, reports)
    _, observed = count_and_observe(data, TWO_METRES, rule)
    return record_table(data, rule, observed if change is None else change(observed), drives)


@pytest.mark.parametrize(
    ("of", "drives", "first"),
    [
        ("sequence", {"A": "one", "B": "two"}, ["one", "one", "two"]),
        ("sequence", {"B": "two"}, ["", "", "two"]),
        ("frame", {"A/000001": "x", "B/000002": "y"}, ["", "x", "y"]),
    ],
)
def test_drives_are_those_of_the_table(of, drives, first):
    table = whole_record(drives=DriveTable(of, drives, {}, "d.csv", ""))
    objects = [[first[at] for at in (0, 0, 0, 2)], [first[at] for at in (0, 1, 1, 2)]]
    assert table["drive"].tolist() == [*first, *objects[0], *objects[1]]
    assert whole_record()["drive"].tolist() == [*"AAB", *"AAAB", *"AAAB"]


def test_kinds_and_reports_below_every_threshold():
    assert whole_record()["kind"].tolist()[7:] == ["duplicate", "unmatched", "unmatched", "duplicate"]
    ignored = np.isin(np.arange(7), [1, 3])  # the duplicate in frame 0, and obs at 15 in frame 1
    changed = whole_record(
        change=lambda observed: replace(observed, matches=replace(observed.matches, ignored=ignored))
    )
    assert changed["kind"].tolist()[7:] == ["ignored", "ignored", "unmatched", "duplicate"]
    # From .4 on: obs at 15 just takes part; ped at 16 and obs at 9 do not, and from .75 on obs at 10 is not seen.
    assert whole_record(rule=replace(BY_CLASS, thresholds=(0.4, 0.6)))["report_line"].tolist()[3:] == [
        1,
        -1,
        3,
        6,
        2,
        4,
    ]
    family = whole_record(rule=replace(BY_CLASS, thresholds=(0.75, 0.9)))
    assert (family["predicted"].tolist()[3:], family["report_line"].tolist()[3:]) == (
        ["ped", "empty", "ped", "empty"], [1, -1, 3, -1]
    )  # fmt: skip
    assert family["affinity"].tolist()[3:] == pytest.approx([0, math.nan, 1, math.nan], nan_ok=True)


def test_scenes_with_nothing_in_them():
    bare = whole_record(objects=[], reports=[])
    assert (bare["kind"].tolist(), bare["sequence"].tolist()) == (["frame"] * 3, [*"AAB"])
    for name in ("bin", "place", "group", "line", "report_line"):
        assert bare[name].tolist() == [-1] * 3
    unseen = whole_record(reports=[])
    assert np.isnan(unseen["affinity"]).all()
    assert np.isnan(unseen["score"]).all()
    assert unseen["predicted"].tolist() == ["empty"] * 7
    assert unseen["true"].tolist() == [*["empty"] * 3, "ped", "ped", "obs", "obs"]
    alone = whole_record(objects=[])
    assert alone["kind"].tolist()[3:] == ["unmatched"] * 7
    assert alone["line"].tolist() == [-1] * 10


RECORD_HEAD = "kind,sequence,frame,bin,place,distance_m,true,predicted,score,group,file,line,report_file,report_line"
OBJECT_ROW = "object,A,f,0,0,5,ped,empty,,-1,t.txt,1,,-1"


def test_records_are_read_with_what_is_asked_for(tmp_path):
    path = tmp_path / "record.csv"
    path.write_text(f"{RECORD_HEAD},drive,track,true_x1,more\n{OBJECT_ROW},one,7,3.5,\n{OBJECT_ROW},two,,,x\n")
    record = read_record(path, tracks=True, boxes=True)
    assert len(record) == 2
    assert (record["drive"].tolist(), record["track"].tolist()) == (["one", "two"], ["7", ""])
    assert record["true_x1"].tolist() == pytest.approx([3.5, math.nan], nan_ok=True)
    assert np.isnan(record["report_y2"]).tolist() == [True, True]
    assert (record["line"].tolist(), record["distance_m"].tolist(), record.file) == ([1, 1], [5, 5], str(path))
    bare = tmp_path / "bare.CSV"
    bare.write_text(f"{RECORD_HEAD}\n{OBJECT_ROW}\n")
    record = read_record(bare)
    assert (record["drive"].tolist(), "track" in record.columns, "true_x1" in record.columns) == (["A"], False, False)


@pytest.mark.parametrize(
    ("name", "rows", "words"),
    [
        ("r.txt", OBJECT_ROW, "a record ends in .csv or .parquet, got 'r.txt'"),
        ("r.csv", f"{OBJECT_ROW}\n{OBJECT_ROW.replace('object', 'thing')}",
         "r.csv:3: kind: expected one of frame, object, unmatched, duplicate, ignored, got 'thing'"),
        ("r.csv", OBJECT_ROW.replace("0,0,5", "0,0.5,5"), "r.csv:2: place: "),
    ],
)  # fmt: skip
def test_records_that_cannot_be_are_refused(tmp_path, monkeypatch, name, rows, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(f"{RECORD_HEAD}\n{rows}\n")
    with pytest.raises(VerifierError) as caught:
        read_record(name)
    assert str(caught.value).startswith(words)


def test_a_record_in_no_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be written: No such file or directory"):
        join_records([], tmp_path / "none" / "whole.csv")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_part_that_is_missing_leaves_nothing_behind(tmp_path, ending):
    target = tmp_path / f"whole{ending}"
    with pytest.raises(InputError) as caught:
        join_records([tmp_path / f"none{ending}"], target)
    assert str(caught.value).startswith(f"{target}: cannot be written: ")
    assert list(tmp_path.iterdir()) == []


def test_endings_of_records_in_capitals(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(recording, "library", asked.append)
    for name in ("a.CSV", "b.csv", "a.Parquet", "a.parquet"):
        check_record_target(tmp_path / name)
    assert asked == ["pyarrow.parquet"] * 2
    table = whole_record()
    write_record([table], tmp_path / "a.CSV")
    write_record([table], tmp_path / "b.csv")
    assert (tmp_path / "a.CSV").read_bytes() == (tmp_path / "b.csv").read_bytes()
