"""Odd data are refused or said, and what is said travels into results; rates by item, track and drive."""

import json
import math
import re
import string
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from counting_scenes import TWO_METRES
from hypothesis import given
from plain_counter import Object, Report, detection_set
from shorthands import count_detections
from tracked_scenes import tracked

from verifier.base.documents import json_values
from verifier.base.errors import InputError
from verifier.cli import main
from verifier.perception.confusion import EMPTY
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.counting import confusion_counts
from verifier.perception.confusion.counts import ConfusionCounts, Sequences
from verifier.perception.confusion.document import read_confusion, write_confusion
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.sanity import (
    left_out_texts,
    rate_differences,
    refuse_absurd,
    remark,
    remark_texts,
    sanity_remarks,
    weighted_rates,
    with_reading,
    with_sanity,
)
from verifier.perception.confusion.tally import Tally
from verifier.study.provenance import matrices_record

TRUTH = "sequence,frame,class,x,y\na,0,ped,5,0\na,1,ped,5,0\n"


def count(folder, truth, found, *options):
    (folder / "truth.csv").write_text(truth)
    (folder / "found.csv").write_text("sequence,frame,class,x,y,score\n" + found)
    data = ["--format", "table", "--annotations", "truth.csv", "--detections", "found.csv", "--bins", "0,10"]
    return main(["confusion", *data, *options, "-o", "counts.json"])


@pytest.mark.parametrize(
    ("found", "options", "kind", "words"),
    [
        ("a,0,ped,50,0,0.9\n", [], "nothing-matched", "none of the 2 annotated objects is matched with a detection"),
        ("a,0,ped,5,0,0.9\n", ["--min-score", "0.95"], "nothing-matched",
         "none of the 2 annotated objects is matched with a detection"),
        ("a,0,ped,5,0,0.9\n", ["--outside", "drop", "--bins", "20,30"], "no-annotations",
         "no annotated object is counted"),
    ],
)  # fmt: skip
def test_absurd_data_are_refused_unless_accepted(tmp_path, monkeypatch, capfd, found, options, kind, words):
    monkeypatch.chdir(tmp_path)
    assert count(tmp_path, TRUTH, found, *options) == 4
    refused = capfd.readouterr()
    assert refused.err.startswith(f"verify: {words}")
    assert f"--accept {kind}" in refused.err
    assert not (tmp_path / "counts.json").exists()
    assert count(tmp_path, TRUTH, found, *options, "--accept", kind) == 0
    assert f"note: {words}" in capfd.readouterr().out
    remarks = json.loads((tmp_path / "counts.json").read_text())["remarks"]
    assert [each["kind"] for each in remarks] == [kind]
    record = matrices_record(read_confusion("counts.json"))
    assert json_values(record.remarks) == remarks


def counted_coco(folder, capfd, *options, found=None, truth=None):
    """Exit code, output and errors of a count of the two hand-written COCO files."""
    valid = Path(__file__).resolve().parents[2] / "data/invalid/detections/coco/valid"
    for name, edit in (("annotations.json", truth), ("detections.json", found)):
        text = (valid / name).read_text()
        (folder / name).write_text(edit(text) if edit else text)
    data = ["--format", "coco", "--annotations", "annotations.json", "--detections", "detections.json"]
    code = main(["confusion", *data, "--bins", "0,inf", *options])
    return code, *capfd.readouterr()


def test_images_without_distances_name_the_ways_to_get_some(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    for options in ([], ["--outside", "drop"]):
        code, _, err = counted_coco(tmp_path, capfd, *options)
        assert code == 4
        assert err.startswith("verify: annotations.json: none of the 2 annotated objects has a distance\n  hint: ")
        for way in ("--distance-field NAME", "--distance-file FILE", "--depth-folder DIR"):
            assert way in err
    # One distance that is unknown is an object in no bin, as before.
    code, _, err = counted_coco(
        tmp_path, capfd, "--distance-field", "distance", truth=lambda text: text.replace(', "distance": 30', "")
    )
    assert code == 4
    assert "1 of 2 annotated objects lie in no bin; the first is a 'car' without a distance" in err


def test_frames_that_do_not_match_are_called_so(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    far = {1: 7, 2: 8}
    code, _, err = counted_coco(
        tmp_path, capfd, "--distance-field", "distance",
        found=lambda text: re.sub('"image_id": ([12])', lambda hit: f'"image_id": {far[int(hit[1])]}', text),
    )  # fmt: skip
    assert code == 4
    assert err.startswith(
        "verify: detections.json: /0: the frames do not match: none of 2 detections stands in a frame of the ground "
        "truth; the first stands in image 7, the first frame there is 'a.png'"
    )
    # A table of distances of other frames, with ids that begin again in each: nothing occurs twice.
    (tmp_path / "away.csv").write_text("frame,id,distance_m\n000001,10,4\n000002,10,5\n")
    code, _, err = counted_coco(tmp_path, capfd, "--distance-file", "away.csv")
    assert code == 4
    assert err.startswith(
        "verify: away.csv:2: the frames do not match: none of 2 rows is of a frame of the annotations; the first, id "
        "10 in frame '000001'\n  hint: the first frame of the annotations is 'a.png'"
    )
    for name in ("label", "found"):
        (tmp_path / name).mkdir()
    for number in range(3):
        (tmp_path / f"label/00000{number}.txt").write_text("Car 0 0 0 1 1 9 9 1.5 1.6 4 1 1.6 8 0\n")
        (tmp_path / f"found/{number}.txt").write_text("")
    data = ["--format", "kitti_object", "--annotations", "label", "--detections", "found"]
    assert main(["confusion", *data]) == 4
    assert (
        "found: no entry for any of the 3 frames of the ground truth; the first is '000000'" in capfd.readouterr().err
    )


def test_what_the_class_map_leaves_out_is_told_with_numbers(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    away = ["--distance-field", "distance", "--class-map", "map.txt"]
    (tmp_path / "map.txt").write_text("person -> ped\n* -> ignore\n")
    code, out, _ = counted_coco(tmp_path, capfd, *away)
    assert code == 0
    assert "note: the class map leaves out 1 annotations: car (1)" in out
    assert "note: the class map leaves out 1 detections: car (1)" in out
    (tmp_path / "map.txt").write_text("boat -> ped\n* -> ignore\n")
    code, _, err = counted_coco(tmp_path, capfd, *away)
    assert code == 4
    assert err.startswith("verify: no annotated object is counted")
    assert "the class map leaves out 2 annotations: car (1), person (1)" in err
    (tmp_path / "map.txt").write_text("* -> ignore\n")
    code, _, err = counted_coco(tmp_path, capfd, *away)
    assert code == 4
    assert err == (
        "verify: no rule of the class map names a class: every rule leaves its objects out\n"
        "  hint: classes of the annotations: car, person\n"
    )


def test_records_of_classes_left_out_that_people_wrote_say_nothing():
    for strange in (None, [], {"source": 3}, {"source": {"classes_left_out": {"annotations": {"a": 1, "b": "1"}}}}):
        assert list(left_out_texts(strange or {})) == []


def drives_of(*items):
    """Counts of drives, each with so many pedestrians seen and missed at 5 m, and as many frames."""
    frames, objects, reports = [], [], []
    for number, (seen, missed) in enumerate(items):
        for at in range(seen + missed):
            objects.append(Object(len(frames), "ped", 5))
            reports += [Report(len(frames), "ped", 5)] * (at < seen)
            frames.append(f"drive {number}")
    rule = CountingRule("class", ("ped", "obs"), Bins((0.0, 10.0)), "ground_plane", outside="drop")
    return confusion_counts(
        count_detections(detection_set(frames, objects, reports), TWO_METRES, rule), rule, TWO_METRES
    )


def plain_rates(sequences, bins, labels):
    """Rates by weight as fractions, drive by drive."""
    items = defaultdict(Fraction)
    for (drive, at, predicted, true), (number,) in zip(
        sequences.tally.index.tolist(), sequences.tally.counts.tolist(), strict=True
    ):
        items[drive, at, predicted, true] += number
    rates = {}
    drives = range(len(sequences.names))
    for at in range(bins):
        for true in range(labels):
            held = [sum(items[drive, at, predicted, true] for predicted in range(labels)) for drive in drives]
            for predicted in range(labels):
                told = [items[drive, at, predicted, true] for drive in drives]
                if sum(held):
                    shares = [x / n for x, n in zip(told, held, strict=True) if n]
                    rates[at, predicted, true] = sum(told) / sum(held), sum(shares) / len(shares)
    return rates


@given(tracked())
def test_rates_by_item_and_drive_are_as_defined(case):
    scene, rule, policy = case
    counts = confusion_counts(count_detections(detection_set(*scene), policy, rule), rule, policy).member(0.15)
    found = weighted_rates(counts.sequences, counts.bins.count, 3)
    expected = plain_rates(counts.sequences, counts.bins.count, 3)
    for place in np.ndindex(found.item.shape):
        if place in expected:
            item, drive = expected[place]
            assert math.isclose(found.item[place], item, abs_tol=1e-12)
            assert math.isclose(found.drive[place], drive, abs_tol=1e-12)
        else:
            assert math.isnan(found.item[place])
            assert math.isnan(found.drive[place])


def test_rates_that_depend_on_what_is_drawn_are_shown(tmp_path, monkeypatch, capfd):
    """Drive a: one pedestrian for eight frames, always seen. Drive b: two pedestrians for one frame each, missed."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"a,{k},ped,5,0,1\n" for k in range(8)) + "b,0,ped,5,0,1\nb,0,ped,8,0,2\n"
    assert count(tmp_path, f"sequence,frame,class,x,y,track\n{rows}",
                 "".join(f"a,{k},ped,5,0,0.9\n" for k in range(8))) == 0  # fmt: skip
    table = [" ".join(line.split()) for line in capfd.readouterr().out.splitlines()]
    assert "rate of a random item track drive" in table
    assert "ped in [0, 10) m reported as ped 0.800 0.333 0.500" in table
    found = read_confusion("counts.json").sequences
    (difference,) = rate_differences(found, 1, 2)
    assert (difference.bin, difference.predicted, difference.true) == (0, 0, 0)
    assert (difference.item, round(difference.track, 12), difference.drive) == (0.8, 0.333333333333, 0.5)
    assert rate_differences(found, 1, 2, 0.5) == []
    write_confusion(drives_of((9, 1), (89, 11)), "even.json")
    assert len(rate_differences(read_confusion("even.json").sequences, 1, 3)) == 0


def test_kitti_pedestrians_depend_on_the_weight(shared, tmp_path, monkeypatch, capfd):
    """Open drives, PointRCNN from score 2, within 10 m: item rate .81 or so, another by drive; both printed."""
    folder = shared / "data/kitti_tracking"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "classes.txt").write_text("Pedestrian -> ped\nDontCare -> dont_care\n* -> ignore\n")
    assert main(["confusion", "--format", "kitti_tracking", "--annotations", str(folder / "label_02"), "--detections",
                 str(folder / "det_pointrcnn"), "--class-map", "classes.txt", "--min-score", "2", "--bins",
                 "0,10,inf", "--distance", "ground_plane", "-o", "counts.json"]) == 0  # fmt: skip
    table = [" ".join(line.split()) for line in capfd.readouterr().out.splitlines()]
    found = read_confusion("counts.json")
    item, drive = plain_rates(found.sequences, 2, 2)[0, 0, 0]
    assert abs(item - drive) > 0.02
    (line,) = [line.split() for line in table if line.startswith("ped in [0, 10) m reported as")]
    assert (line[8], line[10]) == (f"{float(item):.3f}", f"{float(drive):.3f}")


PED, OBS = frozenset({"ped"}), frozenset({"obs"})


def counts_of(labels, cells, bins=1, drives=3, metadata=None):
    """Counts of drives A, B, ...; `cells` {(drive, bin, predicted, true): numbers at each threshold}."""
    index = np.array(sorted(cells), dtype=np.int64).reshape(-1, 4)
    members = len(next(iter(cells.values()), [0]))
    numbers = np.array([cells[tuple(row)] for row in index.tolist()], dtype=np.int64)
    tally = Tally(index, numbers.reshape(len(index), members))
    sequences = Sequences(tuple(string.ascii_letters.swapcase()[:drives]), np.ones(drives, dtype=np.int64), tally)
    edges = tuple(10.0 * k for k in range(bins + 1))
    thresholds = None if members == 1 else tuple(range(members))
    table = tally.dense(bins, len(labels))
    return ConfusionCounts("class", labels, Bins(edges), thresholds, table, sequences, "", metadata or {})


BY_CLASS, BY_SET = (EMPTY, PED, OBS), (PED, EMPTY, OBS, PED | OBS)
NO_ITEM = ("no-annotations", "no annotated object is counted: every column but 'empty' is without items")


def most(many, share, number, of, drive="B", enough=3):
    text = f"one drive holds most items in {many} of {enough} columns with at least 30: '{drive}' holds {share} % of "
    return "largest-drive", f"{text}the {number} items of {of} m"


@pytest.mark.parametrize(
    ("labels", "cells", "remarks"),
    [
        (BY_CLASS, {}, [NO_ITEM]),
        (BY_CLASS, {(0, 0, 0, 0): [50], (0, 0, 1, 0): [2]}, [NO_ITEM]),
        (BY_CLASS, {(0, 0, 0, 1): [3], (1, 1, 0, 2): [2], (0, 0, 1, 0): [2]},
         [("nothing-matched", "none of the 5 annotated objects is matched with a detection")]),
        # Of a family the lowest threshold is looked at: there one is matched.
        (BY_CLASS, {(0, 0, 0, 1): [3, 4], (0, 0, 1, 1): [1, 0]}, []),
        (BY_CLASS, {(0, 0, 0, 1): [3], (0, 0, 2, 2): [1], (0, 1, 0, 1): [4]},
         [("never-reported", "ped is never reported, and 7 items of it are there")]),
        # A class that is not there is not missed. Of sets: obs is there in two columns, reported in none.
        (BY_CLASS, {(0, 0, 1, 1): [3]}, []),
        (BY_SET, {(0, 0, 0, 0): [3], (0, 0, 0, 3): [2], (0, 0, 1, 2): [4]},
         [("never-reported", "obs is never reported, and 6 items of it are there")]),
        # ped near: 40 of 60 are B's, obs far: 60 of 90 are B's; the larger of equal shares is told. Column "empty"
        # and 29 obs near, all of one drive, say nothing, and half is not most.
        (BY_CLASS, {(0, 0, 1, 1): [20], (1, 0, 1, 1): [40], (0, 1, 2, 2): [30], (1, 1, 2, 2): [60],
                    (2, 0, 0, 0): [900], (0, 0, 2, 2): [29], (0, 1, 1, 1): [15], (2, 1, 0, 1): [15]},
         [most(2, 67, 90, "obs in [10, 20)")]),
        (BY_CLASS, {(0, 0, 1, 1): [30], (1, 0, 1, 1): [60], (0, 1, 2, 2): [20], (1, 1, 2, 2): [40]},
         [most(2, 67, 90, "ped in [0, 10)", enough=2)]),
        # A larger share with fewer items; reported and missed ones are both its items.
        (BY_CLASS, {(0, 0, 1, 1): [30], (1, 0, 1, 1): [60], (0, 1, 2, 2): [9], (2, 1, 2, 2): [11],
                    (2, 1, 0, 2): [10]},
         [most(2, 70, 30, "obs in [10, 20)", "C", 2)]),
        (BY_CLASS, {(0, 0, 1, 1): [15], (1, 0, 0, 1): [15]}, []),
        # Of 40 drives: columns without an object are none of those with enough.
        (BY_CLASS, {(0, 0, 1, 1): [31], (39, 0, 0, 0): [9]}, [most(1, 100, 31, "ped in [0, 10)", "A", 1)]),
    ],
)  # fmt: skip
def test_what_is_odd_about_counts(labels, cells, remarks):
    counts = counts_of(labels, cells, 2, max((drive for drive, *_ in cells), default=2) + 1)
    assert [tuple(entry.values()) for entry in sanity_remarks(counts)] == remarks
    assert list(sanity_remarks(replace(counts, sequences=None))) == [
        {"kind": kind, "text": text} for kind, text in remarks if kind != "largest-drive"
    ]


def test_remarks_are_found_again_and_others_kept_once():
    kept, stale, made = (remark(kind, "text") for kind in ("unit-of-depth", "never-reported", "made"))
    counts = counts_of(BY_CLASS, {(0, 0, 0, 0): [5]}, metadata={"title": "t", "remarks": [kept, stale, kept]})
    assert with_sanity(counts, [made, kept]).metadata == {"title": "t", "remarks": [remark(*NO_ITEM), kept, made]}
    assert remark_texts(with_sanity(counts).metadata) == [NO_ITEM[1], "text"]
    fine = counts_of(BY_CLASS, {(0, 0, 1, 1): [5]}, metadata={"remarks": [stale]})
    assert (with_sanity(fine).metadata, remark_texts({})) == ({}, [])
    assert with_reading(fine) is fine
    projected = replace(fine, metadata={"source": {"projected": {"annotations": 3}}})
    assert with_reading(projected).metadata["remarks"] == [remark(
        "projected-annotations",
        "the annotations have no distance of their own: theirs is that of their foot on the ground, too",
    )]  # fmt: skip


LEFT_OUT = {"source": {"classes_left_out": {"annotations": {"a": 2}, "detections": {"b": 3}}}}


@pytest.mark.parametrize(
    ("kind", "metadata", "hint"),
    [
        ("no-annotations", {}, "look at the class map, the filters and the paths"),
        ("no-annotations", LEFT_OUT,
         "look at the class map, the filters and the paths (the class map leaves out 2 annotations: a (2))"),
        ("nothing-matched", LEFT_OUT,
         "annotations and detections may be of other frames, or in other coordinates or units"),
    ],
)  # fmt: skip
def test_absurd_counts_are_refused_with_what_may_have_caused_them(kind, metadata, hint):
    metadata = {**metadata, "remarks": [remark("largest-drive", "no matter"), remark(kind, "odd")]}
    with pytest.raises(InputError) as caught:
        refuse_absurd(metadata, ["implausible-depth"])
    assert str(caught.value) == f"odd\n  hint: {hint}; if it is really so: --accept {kind}"
    refuse_absurd(metadata, [kind])
    refuse_absurd({}, [])


@pytest.mark.parametrize("number", [1, 6, 7])
def test_six_classes_that_are_left_out_are_named(number):
    classes = {name: 2**at for at, name in enumerate("gfedcba"[:number])}
    told = ", ".join(f"{name} ({many})" for name, many in list(reversed(classes.items()))[:6])
    told += " and 1 more classes" * (number > 6)
    (text,) = left_out_texts({"source": {"classes_left_out": {"detections": classes}}})
    assert text == f"the class map leaves out {2**number - 1} detections: {told}"
