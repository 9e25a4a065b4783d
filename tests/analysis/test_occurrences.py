"""The frames behind a matrix cell: by hand, and for every cell of random countings."""

from dataclasses import replace

import numpy as np
import pytest
from counting_scenes import BY_CLASS, BY_SET, FRAMES, OBJECTS, REPORTS, TWO_METRES, rules, scenes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_counter import detection_set

from verifier.analysis.sensitivity.occurrences import (
    _places,
    _sets,
    _told,
    _told_of_group,
    document_bins,
    occurrences,
)
from verifier.base.errors import InputError, UsageError
from verifier.perception.confusion.bins import Bins, Variable
from verifier.perception.confusion.counting import confusion_counts, count_and_observe
from verifier.perception.confusion.record import read_record, record_table, write_record
from verifier.perception.matching import MatchingPolicy

EMPTY, PED, OBS = frozenset(), frozenset({"ped"}), frozenset({"obs"})


def counted(scene, rule, path, policy=TWO_METRES):
    """The counts of a scene as a document holds them, and its record read back."""
    data = detection_set(*scene)
    count, observed = count_and_observe(data, policy, rule)
    write_record([record_table(data, rule, observed)], path)
    return confusion_counts(count, rule, policy), read_record(path)


def frames_of(record, rows):
    return record["frame"][rows].tolist()


def test_the_scene_that_is_counted_by_hand(tmp_path):
    rule = replace(BY_CLASS, unmatched="own_bin")
    counts, record = counted((FRAMES, OBJECTS, REPORTS), rule, tmp_path / "r.csv")
    ask = {"record": record, "bins": counts.bins, "labelling": "class", "classes": frozenset({"ped", "obs"})}
    near, far = (document_bins(counts.bins, {}, k) for k in (0, 1))
    (missed,) = occurrences(**ask, inside=near, true=PED, predicted=EMPTY)
    assert (record["frame"][missed], record["line"][missed], record["distance_m"][missed]) == ("A/000000", 2, 8.0)
    (confused,) = occurrences(**ask, inside=far, true=OBS, predicted=PED)
    assert (record["line"][confused], record["report_line"][confused]) == (3, 3)
    # Frame 1: obs (.4) and ped (.3) where there is no object: the surest counts.
    (alarm,) = occurrences(**ask, inside=far, true=EMPTY, predicted=OBS)
    assert (record["frame"][alarm], record["score"][alarm]) == ("A/000001", 0.4)
    assert len(occurrences(**ask, inside=far, true=EMPTY, predicted=PED)) == 0
    # With the sum over all bins both misses of pedestrians are one cell.
    everywhere = document_bins(counts.bins, {})
    assert frames_of(record, occurrences(**ask, inside=everywhere, true=PED, predicted=PED)) == ["A/000000"]
    # At a threshold of .95 nothing is reported any more.
    assert len(occurrences(**ask, inside=everywhere, true=PED, predicted=EMPTY, threshold=0.95)) == 2


def test_frames_by_the_sets_that_stand_and_are_reported(tmp_path):
    counts, record = counted((FRAMES, OBJECTS, REPORTS), BY_SET, tmp_path / "r.csv")
    ask = {"record": record, "bins": counts.bins, "labelling": "proposition", "classes": frozenset({"ped", "obs"})}
    # In bin 0 of frame 0 stand two pedestrians, one of them reported: the set {ped} is reported.
    rows = occurrences(**ask, inside=np.array([0]), true=PED, predicted=PED)
    assert frames_of(record, rows) == ["A/000000"]
    rows = occurrences(**ask, inside=np.array([1]), true=OBS, predicted=PED)
    assert frames_of(record, rows) == ["A/000000"]
    with pytest.raises(ValueError, match="no row"):
        occurrences(**ask, inside=np.array([1]), true=EMPTY, predicted=EMPTY)


def check_every_cell(counts, record, where, threshold=-np.inf):
    matrices = counts.matrices(where)
    for at in [*range(matrices.bin_count), None]:
        inside = document_bins(counts.bins, where, at)
        table = matrices.counts.sum(axis=0) if at is None else matrices.counts[at]
        for i, predicted in enumerate(matrices.labels):
            for j, true in enumerate(matrices.labels):
                if true or predicted:
                    rows = occurrences(
                        record, counts.bins, inside, true, predicted, matrices.labelling, matrices.classes, threshold
                    )
                    assert len(rows) == table[i, j], (at, predicted, true)
                    assert len(np.unique(rows)) == len(rows)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(scenes(), rules(), st.sampled_from(["greedy", "optimal"]), st.data())
def test_every_cell_has_as_many_items_as_it_counts(tmp_path, scene, rule, assignment, data):
    counts, record = counted(scene, rule, tmp_path / "r.csv", MatchingPolicy("centre_bev", 2.0, assignment))
    chosen = [each for each in rule.bins.variables if data.draw(st.booleans())]
    where = {each.name: each.bin_text(data.draw(st.integers(0, each.count - 1))) for each in chosen}
    check_every_cell(counts, record, where)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(scenes(), rules(("class", "proposition")), st.sampled_from([(0.1, 0.3), (0.2, 0.25, 0.5)]))
def test_every_cell_of_every_member_of_a_family(tmp_path, scene, rule, thresholds):
    rule = replace(rule, bins=Bins(rule.bins.edges_m), thresholds=thresholds)
    counts, record = counted(scene, rule, tmp_path / "r.csv")
    for threshold in thresholds:
        check_every_cell(counts.member(threshold), record, {}, threshold)


def test_csv_and_parquet_are_read_alike(tmp_path):
    data = detection_set(FRAMES, OBJECTS, REPORTS)
    _, observed = count_and_observe(data, TWO_METRES, BY_CLASS)
    tables = [record_table(data, BY_CLASS, observed)]
    found = []
    for name in ("r.csv", "r.parquet"):
        write_record(tables, tmp_path / name)
        found.append(read_record(tmp_path / name))
    for name in found[0].columns:
        np.testing.assert_array_equal(found[0][name], found[1][name])
    assert len(found[0]) == 11


HEAD = "kind,sequence,frame,bin,place,distance_m,true,predicted,score,group,file,line,report_file,report_line"
ROW = "object,A,A/0,0,0,5.0,ped,empty,,-1,t.txt,1,,-1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": the file is empty; expected a line with the names of the columns"),
        ("kind,bin\n", ":1: no column 'sequence'"),
        (HEAD.replace("place", "bin"), ":1: the column 'bin' occurs twice"),
        (f"{HEAD}\n{ROW},1", ":2: found 15 cells, expected 14"),
        (f"{HEAD}\n{ROW}\n{ROW.replace(',0,0,', ',zero,0,')}", ":3: bin: expected a whole number, got 'zero'"),
        (f"{HEAD}\n{ROW.replace('5.0', 'near')}", ":2: distance_m: expected a number, got 'near'"),
        (f"{HEAD}\n{ROW.replace('object', 'thing')}", ":2: kind: expected one of frame, object"),
        (f"{HEAD}\n{ROW.replace(',1,,', ',99999999999999999999,,')}", ":2: line: expected a whole number"),
    ],
)
def test_bad_records_are_refused_with_their_place(tmp_path, text, message):
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(InputError) as caught:
        read_record(tmp_path / "r.csv")
    assert f"r.csv{message}" in str(caught.value)


def test_files_that_are_no_records(tmp_path):
    (tmp_path / "r.parquet").write_bytes(b"no parquet")
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read_record(tmp_path / "r.parquet")
    with pytest.raises(InputError, match="no such file"):
        read_record(tmp_path / "none.parquet")
    with pytest.raises(UsageError, match=r"ends in \.csv or \.parquet"):
        read_record(tmp_path / "r.txt")


def test_places_of_bins_leave_out_what_only_objects_have():
    groups = (("seen", ("0",)), ("hidden", ("1",)))
    for name, places in (("occluded", [0, 2]), ("sequence", [1, 3])):
        bins = Bins((0.0, 10.0, 20.0), (Variable(name, groups=groups),))
        assert _places(bins, np.array([1, 3])).tolist() == places


@pytest.mark.parametrize(
    ("told", "score", "expected"),
    [
        (["empty", "obs", "car"], [0.0, 0.3, 0.9], "car"),  # the surest
        (["empty", "obs", "car"], [0.0, 0.9, 0.3], "obs"),
        (["empty", "obs", "car"], [0.0, 0.3, 0.3], "obs"),  # the first
        (["ped", "obs", "car"], [0.1, 0.9, 0.3], "ped"),  # itself, however unsure
        (["empty", "empty", "empty"], [0.9, 0.8, 0.7], "empty"),
    ],
)
def test_a_group_is_told_as_itself_or_as_the_surest_of_its_reports(told, score, expected):
    record = {"score": np.array(score)}
    assert _told_of_group(record, np.arange(3), np.array(told, dtype=object), "ped") == expected


def test_sets_hold_objects_of_their_classes_only():
    """At place 0 a pedestrian, and a tram that does not count; at place 1 a second report of some pedestrian."""
    kinds = [("object", 0, "ped"), ("object", 0, "tram"), ("unmatched", 0, ""), ("duplicate", 1, "ped")]
    names = [(name, object) for name in ("kind", "place", "true", "sequence", "frame")]
    record, told = np.array([(*kind, "A", 0) for kind in kinds], dtype=names), np.array(["ped", "obs", "obs", "obs"])
    record["place"] = record["place"].astype(int)
    for true, predicted, expected in ((PED, PED | OBS, [0]), (EMPTY, OBS, [3]), (PED, OBS, []), (EMPTY, EMPTY, [])):
        assert _sets(record, np.arange(2), told, true, predicted, PED | OBS).tolist() == expected


def test_without_a_threshold_every_report_counts_also_one_without_a_score():
    record = {"predicted": np.array(["ped", "car", "car"], dtype=object), "score": np.array([np.nan, 0.5, 0.4])}
    for threshold, expected in ((-np.inf, ["ped", "car", "car"]), (0.5, ["empty", "car", "empty"])):
        assert _told(record, threshold).tolist() == expected


def test_where_must_name_a_bin():
    bins = Bins((0.0, 10.0, 20.0), (Variable("occluded", groups=(("seen", ("0",)), ("hidden", ("1",)))),))
    assert document_bins(bins, {"occluded": "hidden"}, 1).tolist() == [3]
    assert document_bins(bins, {}, 1).tolist() == [2, 3]
    with pytest.raises(UsageError, match="has no bin for"):
        document_bins(bins, {"occluded": "x"}, 1)
