"""Counts by track: against a plain count in fractions, by hand, on KITTI, through documents, and what is refused."""

import json
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import jsonschema
import numpy as np
import pytest
from counting_scenes import PLAIN, TWO_METRES
from hypothesis import given
from hypothesis import strategies as st
from plain_counter import Object, Report, detection_set, plain_tracks
from shorthands import count_detections
from tracked_scenes import THRESHOLDS, same_tracks, tracked

from verifier.base.errors import InputError
from verifier.evidence.documents import schema_of
from verifier.perception.confusion.bins import Bins, Variable
from verifier.perception.confusion.counting import confusion_counts
from verifier.perception.confusion.document import confusion_text, read_confusion, read_counts, write_confusion
from verifier.perception.confusion.document_reader import DocumentReader
from verifier.perception.confusion.merging import merge
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.tally import Tally
from verifier.perception.confusion.tracks import (
    Tracks,
    family_of_tracks,
    fault_of_tracks,
    frame_numbers,
    joined_tracks,
    track_numbers,
)
from verifier.perception.detections import Reading, class_map, keep_scores, read_detections
from verifier.perception.matching import MatchingPolicy, match

SCHEMA = schema_of("verifier.confusion")
CLASSES = ("ped", "obs")


def matched_at(scene, policy, threshold):
    frames, objects, reports = scene
    kept = [each for each in reports if each.score >= threshold]
    found = match(detection_set(frames, objects, kept), policy)
    return kept, {d: a for d, a in enumerate(found.annotation_of.tolist()) if a >= 0}


def as_counters(table, sequences, labels, shape, member=0):
    """The shares and numbers of a table as `plain_tracks` gives them."""

    def at(bin_of):
        return tuple(int(k) for k in np.unravel_index(bin_of, shape))

    shares = {
        (sequences[s], at(b), labels[predicted], next(iter(labels[true]))): share
        for (s, b, predicted, true), share in zip(table.index.tolist(), table.shares[:, member].tolist(), strict=True)
        if share
    }
    numbers = {
        (sequences[s], at(b), next(iter(labels[true]))): number
        for (s, b, true), number in zip(table.columns.tolist(), table.track_counts.tolist(), strict=True)
    }
    return shares, numbers


@given(tracked())
def test_tracks_are_counted_as_defined(case):
    scene, rule, policy = case
    frames, objects, _ = scene
    found = count_detections(detection_set(*scene), policy, rule)
    if all(each.track < 0 for each in objects):
        assert found.tracks is None
        return
    for member, threshold in enumerate(THRESHOLDS):
        kept, matched = matched_at(scene, policy, threshold)
        for summed_over, table in found.tracks.tables():

            def collapsed(place, over=summed_over):
                return tuple(0 if each else at for each, at in zip(over, place, strict=True))

            plain = PLAIN[rule.bins.variables]
            shares, numbers = plain_tracks(frames, objects, kept, matched, plain, collapsed)
            mine, mine_numbers = as_counters(table, found.sequences, rule.labels, rule.bins.shape, member)
            assert mine_numbers == numbers
            assert mine.keys() == shares.keys()
            assert all(abs(mine[key] - share) < 1e-12 for key, share in shares.items())


@pytest.mark.parametrize(
    ("frames", "tracks", "numbers"),  # frames 0 and 1 are of sequence A, 2 of B: track 3 of A is not track 3 of B
    [
        ([0, 0, 1, 1, 1], [3, 4, 3, -1, 3], [0, 1, 0, -1, 0]),
        ([0, 1, 2, 2], [3.0, 3.0, 3.0, np.nan], [0, 0, 1, -1]),
        ([0, 1, 2, 2], [0, 5, 5, 0], [0, 1, 3, 2]),
        ([0, 1, 2, 2], ["b", "a", "b", ""], [1, 0, 2, -1]),
        ([0, 1, 2, 2, 0], [" ", "nan", "None", "7", "n"], [-1, -1, -1, 1, 0]),
        ([0, 2], np.array([None, "x"], dtype=object), [-1, 0]),
        ([0, 2], [-1, -1], [-1, -1]),
    ],
)
def test_tracks_are_those_of_their_sequence(frames, tracks, numbers):
    data = detection_set(["A", "A", "B"], [Object(frame, "ped", 5) for frame in frames], [])
    annotations = replace(data.annotations, attributes={"track": np.array(tracks)})
    assert track_numbers(annotations, data.frame_sequence).tolist() == numbers


@pytest.mark.parametrize(
    ("names", "numbers"),
    [
        (["A/000003", "A/000004", "A/000007"], [0, 1, 4]),  # frames that are not listed leave a gap
        (["A/10", "A/30", "A/20"], [0, 2, 1]),  # every tenth frame
        (["cam_3_1.png", "cam_3_2.png", "cam_3_4.png"], [0, 1, 3]),
        (["100017", "100500", "101001"], [0, 1, 2]),  # time stamps: in their order
        (["1000", "400", "701"], [2, 0, 1]),
        (["3f9a", "77b2", "0c1d"], [0, 1, 2]),  # tokens: in the order of the list
        (["b", "a"], [0, 1]),
        (["7"], [0]),
        (["0", str(10**40)], [0, 1]),
        (["0", "1", str(2**62 - 1)], [0, 1, 2**62 - 1]),  # a grid up to what a number of 64 bits can hold
        (["0", "1", str(2**62)], [0, 1, 2]),
        (["a1", "b3"], [0, 1]),  # two cameras
        (["a1x", "a3y"], [0, 1]),
        (["a1x", "a3x", "token"], [0, 1, 2]),
        (["3", "7", "5"], [0, 2, 1]),
        (["3", "10", "5"], [0, 2, 1]),  # by 2 and 5: on no grid
        (["1", "4", "10"], [0, 1, 3]),
        ([str(2**62 + at) for at in (0, 1, 3)], [0, 1, 3]),
        ([str(2**40 * at) for at in (0, 1, 3)], [0, 1, 3]),
        (["a1", "b3", "b4"], [0, 1, 2]),
        (["a\nb1", "a\nb2", "a\nb4"], [0, 1, 3]),
        (["\u0661", "\u0662", "\u0664"], [0, 1, 2]),  # digits of another script are no numbers
    ],
)
def test_frames_are_numbered_by_their_names_where_these_are_numbers(names, numbers):
    assert frame_numbers(names, np.zeros(len(names), np.int32)).tolist() == numbers


def test_each_sequence_is_numbered_on_its_own():
    names = ["A/5", "B/20", "A/6", "B/10", "C/x"]
    assert frame_numbers(names, np.array([0, 1, 0, 1, 2], np.int32)).tolist() == [0, 1, 1, 0, 0]
    names = ["A/5", "B/7", "B/9", "B/8"]
    assert frame_numbers(names, np.array([0, 1, 1, 1], np.int32)).tolist() == [0, 0, 2, 1]
    assert frame_numbers([], np.zeros(0, np.int32)).tolist() == []


# By hand. Bins [0, 10) and [10, 20) m, one drive of four frames. Track 1, a pedestrian, is at 5, 5, 5, 15 m and is
# reported as ped, not at all, as obs, as ped. Track 2, a pedestrian at 15 m in frame 0 only, is not reported. A
# pedestrian at 8 m in frame 1 has no track and is reported.
HAND = (
    ["A"] * 4,
    [Object(0, "ped", 5, track=1), Object(1, "ped", 5, track=1), Object(2, "ped", 5, track=1),
     Object(3, "ped", 15, track=1), Object(0, "ped", 15, track=2), Object(1, "ped", 8, track=-1)],
    [Report(0, "ped", 5), Report(2, "obs", 5), Report(3, "ped", 15), Report(1, "ped", 8)],
)  # fmt: skip
THIRD = 1 / 3


def hand_counts():
    rule = CountingRule("class", CLASSES, Bins((0.0, 10.0, 20.0)), "ground_plane", outside="drop")
    policy = MatchingPolicy("centre_bev", 2.0)
    return confusion_counts(count_detections(detection_set(*HAND), policy, rule), rule, policy)


def test_tracks_by_hand():
    tracks = hand_counts().sequences.tracks
    # ped, obs, empty are labels 0, 1, 2. Near: track 1 gives a third to each label, the lone object 1 to ped.
    assert tracks.columns.tolist() == [[0, 0, 0], [0, 1, 0]]
    assert tracks.track_counts.tolist() == [2, 2]
    assert tracks.index.tolist() == [[0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 2, 0], [0, 1, 0, 0], [0, 1, 2, 0]]
    assert tracks.shares[:, 0].tolist() == [1 + THIRD, THIRD, THIRD, 1.0, 1.0]
    # Over both bins there are three tracks, not four: track 1 has four frames, two of them ped.
    whole = hand_counts().by_sequence().canonical().tracks
    assert (whole.columns.tolist(), whole.track_counts.tolist()) == ([[0, 0, 0]], [3])
    assert whole.shares[:, 0].tolist() == [1.5, 0.25, 1.25]


def test_tables_of_tracks_by_hand():
    rows, columns = np.array([[0, 0, 0, 0], [0, 0, 2, 0], [0, 1, 2, 0]]), np.array([[0, 0, 0], [0, 1, 0]])
    shares, numbers = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]), np.array([2, 1])
    whole = Tracks(
        np.array([[0, 0, 0, 0], [0, 0, 2, 0]]), np.array([[1.0, 0.0], [1.0, 2.0]]), columns[:1], numbers[:1]
    )
    tracks = Tracks(rows, shares, columns, numbers, {(True,): whole})
    for wrong in ({"index": rows[:2]}, {"index": rows[:, :3]}, {"columns": columns[:1]}, {"columns": columns[:, :2]}):
        with pytest.raises(ValueError, match="differ in number from their shares or counts"):
            replace(tracks, **wrong)
    members = [tracks.member(at) for at in (0, 1)]
    assert [each.index.tolist() for each in members] == [rows[:2].tolist(), rows[1:].tolist()]
    assert [each.shares[:, 0].tolist() for each in members] == [[1, 0.5], [0.5, 1]]
    assert [each.sums[(True,)].index[:, 2].tolist() for each in members] == [[0, 2], [2]]
    same_tracks(family_of_tracks(members), tracks)
    same_tracks(family_of_tracks(members[:1]), members[0])
    same_tracks(joined_tracks([tracks]), tracks)
    own = tracks.canonical()
    assert [(key, table.shares is whole.shares) for key, table in own.tables()] == [((False,), True), ((True,), True)]
    # Of sequences 0 and 1 that become one: three and one are four, in each table.
    both = joined_tracks([tracks, tracks.renumbered(np.array([1]))])
    assert both.columns.tolist() == [[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]]
    one = both.renumbered(np.array([3, 3]))
    assert (one.columns[:, 0].tolist(), one.track_counts.tolist()) == ([3, 3], [4, 2])
    assert one.shares.tolist() == (2 * shares).tolist()
    assert (one.sums[(True,)].track_counts.tolist(), one.sums[(True,)].shares.tolist()) == ([4], [[2, 0], [2, 4]])


def test_objects_without_a_track_are_tracks_of_their_own():
    objects = [Object(0, "ped", 5, track=k) for k in (4, 8, -1, -1)]
    rule = CountingRule("class", CLASSES, Bins((0.0, 10.0)))
    tracks = count_detections(detection_set(["A"], objects, []), TWO_METRES, rule).tracks
    assert (tracks.track_counts.tolist(), tracks.shares.tolist()) == ([4], [[4.0]])


@pytest.mark.parametrize(
    ("shares", "numbers", "fault"),  # of 500 items reported as ped and 700 as nothing
    [
        ([400 + 4e-7, 600], 1000, None),  # rounded: within a billionth of 1000
        ([400 - 9e-7, 600], 1000, None),
        (
            [400 + 2e-6, 600],
            1000,
            (7, (False,), [0, -1, 0], "shares add up to 1000.000002, of 1000 tracks with 1200"),
        ),
        ([400, 600 - 2e-6], 1000, (7, (False,), [0, -1, 0], "shares add up to 999.999998, of 1000 tracks with 1200")),
        ([500 + 4e-7, 500], 1000, None),
        ([500 + 6e-7, 500], 1000, (7, (False,), [0, 0, 0], "500.0000006 tracks are reported so, of 500 items")),
        ([500, 700], 1200, None),
        ([400, 0], 400, (7, (False,), [0, 2, 0], "0 tracks are reported so, of 700 items")),
    ],
)
def test_shares_fit_the_counts_up_to_rounding(shares, numbers, fault):
    index = np.array([[7, 0, 0, 0], [7, 0, 2, 0]])
    whole = Tracks(index, np.array(shares, dtype=float)[:, None], np.array([[7, 0, 0]]), np.array([numbers]))
    items = Tally(np.append(index, [[7, 0, 2, 2]], axis=0), np.array([[500], [700], [9]]))
    found = fault_of_tracks(replace(whole, sums={(True,): whole}), items, (1,), 2)
    if fault is None:
        assert found is None
    else:
        assert (found[:3], found[3].startswith(fault[3])) == (fault[:3], True)


@given(tracked())
def test_a_document_with_tracks_reads_back(case):
    scene, rule, policy = case
    counts = confusion_counts(count_detections(detection_set(*scene), policy, rule), rule, policy)
    text = confusion_text(counts)
    document = json.loads(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    again = DocumentReader("a.json").counts(document)
    assert confusion_text(again) == text
    assert document["version"] == (1 if counts.sequences.tracks is None and "remarks" not in document else 2)
    if counts.sequences.tracks is not None:
        for (_, one), (_, other) in zip(
            counts.sequences.tracks.tables(), again.sequences.tracks.tables(), strict=True
        ):
            assert np.array_equal(one.shares, other.shares)
        same_tracks(counts.sequences.tracks, again.sequences.tracks)


@given(tracked(), st.data())
def test_choosing_bins_and_members_is_counting_them_alone(case, data):
    scene, rule, policy = case
    frames, objects, _ = scene
    counts = confusion_counts(count_detections(detection_set(*scene), policy, rule), rule, policy)
    if counts.sequences.tracks is None:
        return
    member = data.draw(st.integers(0, 2))
    kept, matched = matched_at(scene, policy, THRESHOLDS[member])
    chosen = {each.name: data.draw(st.sampled_from([None, 0, 1, "apart"])) for each in rule.bins.variables}
    where = {each.name: each.bin_text(chosen[each.name]) for each in rule.bins.variables
             if chosen[each.name] in (0, 1)}  # fmt: skip
    apart = [name for name, at in chosen.items() if at == "apart"]
    found = counts.member(THRESHOLDS[member]).by_sequence(where, apart)
    plain, wanted = PLAIN[rule.bins.variables], list(chosen.values())
    sizes = [each.count for each in rule.bins.variables if each.name in apart]
    for drives, over_distance in ((found, False), *([] if apart else [(found.canonical(), True)])):

        def name(place, over=over_distance):
            inside = all(at in (None, "apart", own) for at, own in zip(wanted, place[1:], strict=True))
            further = [own for at, own in zip(wanted, place[1:], strict=True) if at == "apart"]
            return (0 if over else place[0], *further) if inside else None

        shares, numbers = plain_tracks(frames, objects, kept, matched, plain, name)
        shape = (1,) if over_distance else (3, *sizes)
        mine, mine_numbers = as_counters(drives.tracks, found.names, rule.labels, shape)
        assert mine_numbers == {key: value for key, value in numbers.items() if key[1] is not None}
        shares = {key: value for key, value in shares.items() if key[1] is not None}
        assert mine.keys() == shares.keys()
        assert all(abs(mine[key] - share) < 1e-12 for key, share in shares.items())


def part(scene, names):
    """The frames of some sequences alone, each frame with its objects and reports."""
    frames, objects, reports = scene
    number = {at: k for k, at in enumerate([k for k, name in enumerate(frames) if name in names])}
    return (
        [frames[at] for at in number],
        [replace(each, frame=number[each.frame]) for each in objects if each.frame in number],
        [replace(each, frame=number[each.frame]) for each in reports if each.frame in number],
    )


@given(tracked())
def test_files_of_different_sequences_merge_to_one_count_of_all(case):
    scene, rule, policy = case
    halves = [part(scene, names) for names in ({"A"}, {"B", "C"})]
    if any(all(each.track < 0 for each in half[1]) for half in halves):
        return
    counted = [
        confusion_counts(count_detections(detection_set(*half), policy, rule), rule, policy)
        for half in (*halves, ([*halves[0][0], *halves[1][0]], *joined(halves)))
    ]
    merged = merge(counted[:2], ["a.json", "b.json"])
    assert merged.sequences.names == counted[2].sequences.names
    same_tracks(merged.sequences.tracks, counted[2].sequences.tracks)
    assert merge(counted[:2], ["a.json", "b.json"], "add").sequences.tracks is None
    bare = replace(counted[1], sequences=replace(counted[1].sequences, tracks=None))
    assert merge([counted[0], bare], ["a.json", "b.json"]).sequences.tracks is None


def joined(halves):
    moved = len(halves[0][0])
    return tuple([*halves[0][k], *(replace(each, frame=each.frame + moved) for each in halves[1][k])] for k in (1, 2))


@pytest.mark.parametrize("labelling", ["proposition", "group"])
def test_items_that_are_no_single_objects_have_no_tracks(labelling):
    gap = 1.0 if labelling == "group" else None
    rule = CountingRule(labelling, CLASSES, Bins((0.0, 10.0, 20.0)), "ground_plane", outside="drop", gap_m=gap)
    found = count_detections(detection_set(*HAND), TWO_METRES, rule)
    assert found.tracks is None
    tracks = hand_counts().sequences.tracks
    counts = confusion_counts(found, rule, TWO_METRES)
    with pytest.raises(ValueError, match="is no track"):
        replace(counts, sequences=replace(counts.sequences, tracks=tracks))


def hand_document():
    document = json.loads(confusion_text(hand_counts()))
    assert [each["text"] for each in document.pop("remarks")] == [
        "1 objects have no track; counted by track, each is a track of one frame"
    ]
    return document


def test_the_document_says_what_the_hand_count_says():
    (sequence,) = hand_document()["sequences"]
    assert sequence["tracks"] == {
        "columns": [[0, 0, 2], [1, 0, 2], [None, 0, 3]],
        "shares": [
            [0, 0, 0, 1 + THIRD], [0, 1, 0, THIRD], [0, 2, 0, THIRD], [1, 0, 0, 1], [1, 2, 0, 1],
            [None, 0, 0, 1.5], [None, 1, 0, 0.25], [None, 2, 0, 1.25],
        ],
    }  # fmt: skip


def test_all_sequences_have_tracks_or_none():
    document = hand_document()
    document["sequences"].append({"name": "B", "frames": 1, "counts": []})
    with pytest.raises(
        InputError, match="/sequences/1: expected an object with 'name', 'frames', 'counts' and 'tracks'"
    ):
        DocumentReader("a.json").counts(document)
    document = hand_document()
    del document["sequences"][0]["tracks"]
    assert DocumentReader("a.json").counts(document).sequences.tracks is None
    document["version"] = 1
    assert json.loads(confusion_text(DocumentReader("a.json").counts(document))) == document
    document["remarks"] = []
    with pytest.raises(InputError, match="/remarks: unknown key 'remarks'"):
        DocumentReader("a.json").counts(document)


@pytest.mark.parametrize("lowest", [0.0, 2.0])
def test_tracks_of_kitti(shared, tmp_path, lowest):
    """PointRCNN on open drives, from the label files line by line; matches are the package's own."""
    folder = shared / "data/kitti_tracking"
    names = {"Pedestrian": "ped", "Car": "obs"}
    rules = class_map([*names.items(), ("*", "ignore")])
    source = ("kitti_tracking", folder / "label_02", folder / "det_pointrcnn", Reading(rules))
    data = keep_scores(read_detections(*source, frames=folder / "sequences.csv"), lowest)
    edges = (0.0, 10.0, 20.0, 40.0, math.inf)
    hidden = Variable("occluded", groups=(("seen", ("0",)), ("hidden", ("1", "2", "3", "-1"))))
    rule = CountingRule("class", ("ped", "obs"), Bins(edges, (hidden,)), "ground_plane")
    policy = MatchingPolicy("centre_bev", 2.0, class_aware=True)
    path = tmp_path / "kitti.json"
    write_confusion(confusion_counts(count_detections(data, policy, rule), rule, policy), path)
    found = read_confusion(path).sequences

    explained = match(data, policy).detection_of
    rows = {(data.files[f], line): k for k, (f, line) in
            enumerate(zip(data.annotations.file.tolist(), data.annotations.line.tolist(), strict=True))}  # fmt: skip
    visits = {}
    for label_file in sorted((folder / "label_02").glob("*.txt")):
        for line, text in enumerate(label_file.read_text().splitlines(), 1):
            words = text.split()
            if words[2] in names:
                metres = math.hypot(float(words[13]), float(words[15]))
                near = max(k for k in range(4) if edges[k] <= metres)
                row = rows[str(label_file), line]
                told = data.classes[data.detections.label[explained[row]]] if explained[row] >= 0 else None
                key = (label_file.stem, near, names[words[2]], words[1])
                visits.setdefault(key, []).append(told)
    shares, numbers = Counter(), Counter()
    for (drive, near, kind, _), told in visits.items():
        numbers[drive, (near,), kind] += 1
        for each in told:
            shares[drive, (near,), frozenset({each} - {None}), kind] += Fraction(1, len(told))
    mine, mine_numbers = as_counters(found.tracks, found.names, rule.labels, (4,))
    assert mine_numbers == numbers
    assert mine.keys() == shares.keys()
    assert all(abs(mine[key] - share) < 1e-9 for key, share in shares.items())
    assert sum(number for (_, near, kind), number in numbers.items() if near == (0,) and kind == "ped") > 20
    assert read_counts(path).sequences.tracks.shares.shape[1] == 1
