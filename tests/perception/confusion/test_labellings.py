"""How objects, reports and leftover detections become items: each function on a scene that is written out by hand."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from plain_counter import Object, Report, detection_set

from verifier.base.errors import InputError, UsageError
from verifier.perception.confusion.bins import Bins, Variable
from verifier.perception.confusion.labellings import (
    Scene,
    Seen,
    class_items,
    group_items,
    linked_groups,
    proposition_items,
    proposition_sets,
    spread_in_place,
    surest_leftovers,
)
from verifier.perception.confusion.places import Located, bearing_deg, check_inside, frame_parts, layout, locate
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.tally import Items, counted

DRIVE = Variable("sequence", groups=(("a", ("A*",)), ("other", ("*",))))
SPEED = Variable("speed", edges=(0.0, 1.0, 2.0))
NEAR_AND_FAR = Bins((0.0, 10.0, 20.0), (SPEED,))


@pytest.mark.parametrize(
    ("variables", "place_of", "places", "spread", "frame_part"),
    [
        ((), [0, 1], [0, 1], [[0], [1]], [0, 0]),
        ((SPEED,), [0, 0, 2, 2], [0, 2], [[0, 1], [2, 3]], [0, 0]),
        ((DRIVE,), [0, 1, 2, 3], [0, 1, 2, 3], [[0], [1], [2], [3]], [0, 1, 0, 1]),
        ((DRIVE, SPEED), [0, 0, 2, 2, 4, 4, 6, 6], [0, 2, 4, 6], [[0, 1], [2, 3], [4, 5], [6, 7]], [0, 1, 0, 1]),
        ((SPEED, DRIVE), [0, 1, 0, 1, 4, 5, 4, 5], [0, 1, 4, 5], [[0, 2], [1, 3], [4, 6], [5, 7]], [0, 1, 0, 1]),
    ],
)
def test_the_places_among_bins(variables, place_of, places, spread, frame_part):
    laid = layout(Bins((0.0, 10.0, 20.0), variables))
    parts = (laid.place_of, laid.places, laid.spread, laid.frame_part)
    assert [part.tolist() for part in parts] == [place_of, places, spread, frame_part]


def test_items_of_places_are_repeated_in_their_bins():
    laid = layout(NEAR_AND_FAR)
    items = Items(np.array([[3, 2, 1, 0], [4, 0, 0, 1]]), np.array([0, 1]), np.array([1, 2]), np.array([5, 6]))
    spread = spread_in_place(items, laid)
    assert spread.index.tolist() == [[3, 2, 1, 0], [3, 3, 1, 0], [4, 0, 0, 1], [4, 1, 0, 1]]
    assert [spread.low.tolist(), spread.high.tolist(), spread.weight.tolist()] == [
        [0, 0, 1, 1], [1, 1, 2, 2], [5, 5, 6, 6]
    ]  # fmt: skip
    # Each bin is numbered three times: number 7 is the second of bin 2, number 2 the third of bin 0.
    finer = Items(np.array([[3, 7, 1, 0], [4, 2, 0, 1]]), items.low, items.high, items.weight)
    assert spread_in_place(finer, laid, 3).index[:, 1].tolist() == [7, 10, 2, 5]


def seen(*rows):
    """Rows (frame, label, bin, place, reported, level, score)."""
    columns = np.array(rows, dtype=float).reshape(-1, 7).T
    return Seen(*(column.astype(np.int64) for column in columns[:6]), columns[6])


# Three thresholds. Frames 0 and 1 are of drive 0, frame 2 of drive 1. Bins: near slow 0, near fast 1, far slow 2, far
# fast 3; places: near 0, far 2.
#   frame 0: ped near slow, reported as ped at two thresholds; obs far fast, as ped at one.
#   frame 1: ped near, of unknown speed and so in no bin, not reported.
#   frame 2: nothing. Leftovers: ped near at one threshold and obs near at two, surer; ped far at all three.
#   frame 0, too: a leftover near, where something stands, and obs far in frame 1, at two.
OBJECTS = seen(
    (0, 0, 0, 0, 0, 2, 0.6), (0, 1, 3, 2, 0, 1, 0.4), (1, 0, -1, 0, -1, 0, -np.inf)
)  # fmt: skip
LEFTOVERS = seen(
    (2, 0, 0, 0, 0, 1, 0.3), (2, 1, 0, 0, 1, 2, 0.5), (2, 0, 2, 2, 0, 3, 0.9), (0, 1, 0, 0, 1, 3, 0.8),
    (1, 1, 2, 2, 1, 2, 0.5),
)  # fmt: skip
SCENE = Scene(OBJECTS, LEFTOVERS, np.array([0, 0, 1]), np.array([[2, 0, 2, 0], [1, 0, 1, 0]]), layout(NEAR_AND_FAR))
RULE = CountingRule("class", ("ped", "obs"), NEAR_AND_FAR, thresholds=(0.2, 0.5, 0.8))
PED, OBS, EMPTY = range(3)


def cells(items, thresholds=3):
    """{(drive, bin, predicted, true): number at each threshold}"""
    tally = counted(items, thresholds)
    return {tuple(row): numbers for row, numbers in zip(tally.index.tolist(), tally.counts.tolist(), strict=True)}


# Column "empty", in both bins of each place. Drive 0, near: something stands in both frames. Far: frame 1 alone.
NOTHING_THERE = {
    (0, 2, OBS, EMPTY): [1, 1, 0], (0, 2, EMPTY, EMPTY): [0, 0, 1], (0, 3, OBS, EMPTY): [1, 1, 0],
    (0, 3, EMPTY, EMPTY): [0, 0, 1], (1, 0, OBS, EMPTY): [1, 1, 0], (1, 0, EMPTY, EMPTY): [0, 0, 1],
    (1, 1, OBS, EMPTY): [1, 1, 0], (1, 1, EMPTY, EMPTY): [0, 0, 1], (1, 2, PED, EMPTY): [1, 1, 1],
    (1, 3, PED, EMPTY): [1, 1, 1],
}  # fmt: skip


def test_classes_by_hand():
    assert cells(class_items(SCENE, RULE)) == {
        (0, 0, PED, PED): [1, 1, 0], (0, 0, EMPTY, PED): [0, 0, 1], (0, 3, PED, OBS): [1, 0, 0],
        (0, 3, EMPTY, OBS): [0, 1, 1], **NOTHING_THERE,
    }  # fmt: skip
    # Frames without anything at all: two of three far away and one near, in each bin of the place.
    bare = Scene(seen(), seen(), SCENE.sequence, np.array([[1, 0, 2, 0], [0, 0, 1, 0]]), SCENE.layout)
    assert cells(class_items(bare, RULE)) == {
        (0, 0, EMPTY, EMPTY): [1] * 3, (0, 1, EMPTY, EMPTY): [1] * 3, (0, 2, EMPTY, EMPTY): [2] * 3,
        (0, 3, EMPTY, EMPTY): [2] * 3, (1, 2, EMPTY, EMPTY): [1] * 3, (1, 3, EMPTY, EMPTY): [1] * 3,
    }  # fmt: skip


def test_the_surest_leftover_of_each_free_place():
    keys, chosen = surest_leftovers(SCENE, np.array([0, 2, 4]))  # frame 0 near and far, frame 1 near
    assert (keys.tolist(), chosen.reported.tolist(), chosen.score.tolist()) == (
        [6, 8, 10],
        [1, 1, 0],
        [0.5, 0.5, 0.9],
    )
    keys, chosen = surest_leftovers(SCENE, np.array([], dtype=np.int64))
    assert (keys.tolist(), chosen.reported.tolist()) == ([0, 6, 8, 10], [1, 1, 1, 0])
    for taken, free in (([10], [0, 6, 8]), ([0, 10], [6, 8]), ([11], [0, 6, 8, 10])):
        assert surest_leftovers(SCENE, np.array(taken))[0].tolist() == free
    # Of equally sure ones the first.
    even = Scene(
        seen(), seen(*((0, k, 0, 0, k, 3, 0.5) for k in (1, 0))), SCENE.sequence, SCENE.frames_at, SCENE.layout
    )
    assert surest_leftovers(even, np.array([], dtype=np.int64))[1].reported.tolist() == [1]


@pytest.mark.parametrize(
    ("members", "distances", "rows"),
    [
        # The nearest says where; right at the highest level of a member, above that as the surest.
        ([(0, 0, 2, 2, 0, 1, 0.3), (0, 0, 1, 0, 0, 2, 0.5)], [12, 8],
         {(0, 1, PED, PED): [1, 1, 0], (0, 1, EMPTY, PED): [0, 0, 1]}),
        # One is right at one threshold; the surest report is wrong, at two.
        ([(0, 0, 0, 0, 0, 1, 0.3), (0, 0, 2, 2, 1, 2, 0.5)], [8, 12],
         {(0, 0, PED, PED): [1, 0, 0], (0, 0, OBS, PED): [0, 1, 0], (0, 0, EMPTY, PED): [0, 0, 1]}),
        # A report of a class that is not counted, and none: all wrong, then nothing.
        ([(0, 0, 0, 0, -1, 0, -np.inf), (0, 0, 1, 0, 1, 3, 0.9)], [8, 8], {(0, 0, OBS, PED): [1, 1, 1]}),
        ([(0, 0, 0, 0, -1, 0, -np.inf)], [8], {(0, 0, EMPTY, PED): [1, 1, 1]}),
        ([(0, 1, 0, 0, 0, 2, 0.5)], [8], {(0, 0, PED, OBS): [1, 1, 0], (0, 0, EMPTY, OBS): [0, 0, 1]}),
        # The nearest lies in no bin.
        ([(0, 0, -1, 0, 0, 3, 0.9), (0, 0, 2, 2, 0, 3, 0.9)], [8, 12], {}),
    ],
)  # fmt: skip
def test_groups_by_hand(members, distances, rows):
    """The group in question is the second of two; the first is an obs far away, reported so at all thresholds."""
    objects = seen((1, 1, 3, 2, 1, 3, 0.9), *members)
    none = np.zeros((2, 4), dtype=np.int64)
    none[0] = [2, 0, 2, 0]
    scene = Scene(objects, seen(), SCENE.sequence, none, SCENE.layout)
    group = np.array([0, *[1] * len(members)])
    rule = CountingRule("group", ("ped", "obs"), NEAR_AND_FAR, gap_m=1.0, thresholds=(0.2, 0.5, 0.8))
    found = cells(group_items(scene, rule, group, np.array([15.0, *distances])))
    assert len(group_items(replace(scene, objects=seen()), rule, group[:0], np.zeros(0))[0].index) == 0
    assert {key: numbers for key, numbers in found.items() if key[3] != EMPTY} == {(0, 3, OBS, OBS): [1] * 3, **rows}


SETS = CountingRule("proposition", ("ped", "obs"), Bins((0.0, 10.0, 20.0)), thresholds=(0.2, 0.5, 0.8))
ONLY_PED, ONLY_OBS, BOTH, NO_CLASS = range(4)
# Frame 0 near: ped, and obs reported as ped at two; and ped left over at one, obs left over at three. Frame 1 far: an
# object of another class, and a leftover of another class: neither is anything.
# Frame 2 far: obs left over at two; near: ped at one.
THINGS = Scene(
    seen((0, 0, 0, 0, -1, 0, -np.inf), (0, 1, 0, 0, 0, 2, 0.6), (1, -1, 1, 1, 0, 3, 0.9), (0, 1, 1, -1, 1, 3, 0.9)),
    seen((0, 0, 0, 0, 0, 1, 0.3), (0, 1, 0, 0, 1, 3, 0.9), (1, -1, 1, 1, -1, 3, 0.9), (2, 1, 1, 1, 1, 2, 0.5),
         (2, 0, 0, 0, 0, 1, 0.3)),
    np.array([0, 0, 1]), np.array([[2, 2], [1, 1]]), layout(Bins((0.0, 10.0, 20.0))),
)  # fmt: skip


def test_propositions_by_hand():
    sets = proposition_sets(THINGS, SETS)
    assert [sets.frame.tolist(), sets.place.tolist(), sets.true.tolist()] == [
        [0, 2, 2], [0, 0, 1], [BOTH, NO_CLASS, NO_CLASS]
    ]  # fmt: skip

    assert (sets.level.tolist(), sets.bits.tolist()) == ([[2, 3], [1, 0], [0, 2]], [1, 2])
    assert [sets.reported(threshold).tolist() for threshold in range(3)] == [
        [BOTH, ONLY_PED, ONLY_OBS], [BOTH, NO_CLASS, ONLY_OBS], [ONLY_OBS, NO_CLASS, NO_CLASS]
    ]  # fmt: skip
    assert (sets.object_rows.tolist(), sets.object_at.tolist()) == ([0, 1], [0, 0])
    assert cells(proposition_items(THINGS, SETS)) == {
        (0, 0, BOTH, BOTH): [1, 1, 0], (0, 0, ONLY_OBS, BOTH): [0, 0, 1],
        (1, 1, ONLY_OBS, NO_CLASS): [1, 1, 0], (1, 1, NO_CLASS, NO_CLASS): [0, 0, 1],
        (0, 0, NO_CLASS, NO_CLASS): [1] * 3, (0, 1, NO_CLASS, NO_CLASS): [2] * 3,
        (1, 0, ONLY_PED, NO_CLASS): [1, 0, 0], (1, 0, NO_CLASS, NO_CLASS): [0, 1, 1],
    }  # fmt: skip


@pytest.mark.parametrize("gap", [0.0, 1.0, 2.5])
def test_objects_linked_by_gaps(gap):
    frame = np.array([0, 0, 0, 0, 1, 0, 0])
    label = np.array([0, 0, 0, 1, 0, 0, 0])
    centre = np.array([[0, 0], [1, 0], [1, 2.5], [1, 0], [1, 0], [30, 0], [30, 0]], dtype=float)
    group = linked_groups(frame, label, centre, gap)
    linked = {0.0: [{0}, {1}, {2}], 1.0: [{0, 1}, {2}], 2.5: [{0, 1, 2}]}[gap]
    sets = {frozenset(np.flatnonzero(group == number).tolist()) for number in range(group.max() + 1)}
    assert sets == set(map(frozenset, [*linked, {3}, {4}, {5, 6}]))
    assert Counter(group.tolist()).keys() == set(range(len(sets)))
    assert group.dtype == np.int64


def test_groups_of_nothing_and_without_a_place():
    assert linked_groups(np.array([]), np.array([]), np.zeros((0, 2)), 1.0).tolist() == []
    with pytest.raises(
        UsageError, match=r"groups need the position of every object: some annotations have no 3-D box"
    ):
        linked_groups(np.zeros(2), np.zeros(2), np.array([[0, 0], [0, np.nan]]), 1.0)


# Where boxes lie: by distance, bearing, drive and occlusion.
BEARING = Variable("bearing_deg", edges=(-180.0, 0.0, 180.0))
NOT_B = Variable("sequence", groups=(("a", ("A*",)), ("c", ("C",))))
OCCLUDED = Variable("occluded", groups=(("no", ("0",)), ("yes", ("1",))))
BY_ALL = CountingRule("class", ("ped", "obs"), Bins((0.0, 10.0, 20.0), (BEARING, OCCLUDED, NOT_B)), "ground_plane")
PLACED = detection_set(
    ["C", "B", "A1"],
    [Object(0, "ped", 0, 5), Object(2, "obs", -15, 0, occluded=1), Object(2, "ped", 0, -5, occluded=7),
     Object(1, "ped", 5), Object(2, "ped", 25)],
    [Report(0, "ped", 0, 5), Report(2, "obs", -15), Report(1, "ped", 5)],
)  # fmt: skip


def test_where_objects_and_detections_lie():
    # Number of a bin: 8 distance + 4 bearing + 2 occluded + sequence; its place is the one of occluded 0.
    assert bearing_deg(PLACED.annotations).tolist() == [90, -180, -90, 0, 0]
    assert frame_parts(PLACED, BY_ALL.bins).tolist() == [1, -1, 0]
    assert frame_parts(PLACED, NEAR_AND_FAR).tolist() == [0, 0, 0]
    objects = locate(PLACED, PLACED.annotations, BY_ALL, objects=True)
    assert objects.distance_m.tolist() == [5, 15, 5, 5, 25]
    assert (objects.bin.tolist(), objects.place.tolist()) == ([5, 10, -1, -1, -1], [5, 8, 0, -1, -1])
    reports = locate(PLACED, PLACED.detections, BY_ALL, objects=False)
    assert (reports.bin.tolist(), reports.place.tolist()) == ([5, 8, -1], [5, 8, -1])
    with pytest.raises(InputError, match=re.escape(
        "truth.txt:3: 3 of 5 annotated objects lie in no bin; the first is a 'ped' at 5 m\n  hint: end the distance "
        "edges with inf (an overflow bin), add bins, filter the data, or use --outside drop"
    )):  # fmt: skip
        check_inside(PLACED, objects)


def test_attributes_that_the_annotations_do_not_have():
    rule = CountingRule("class", ("ped", "obs"), NEAR_AND_FAR, "ground_plane")
    with pytest.raises(
        InputError, match=r"unknown attribute of the annotations 'speed'.*\n.*; also known: bearing_deg"
    ):
        locate(PLACED, PLACED.annotations, rule, objects=True)
    nothing = detection_set(["A"], [], [])
    assert locate(nothing, nothing.annotations, rule, objects=True).bin.tolist() == []
    check_inside(nothing, locate(nothing, nothing.annotations, rule, objects=True))


@pytest.mark.parametrize(
    ("distance_m", "bins", "words"),
    [
        ([np.nan, 1, 1, 1, 1], [-1, 0, 0, 0, 0], "truth.txt:1: 1 of 5 annotated objects lie in no bin; the first "
         "is a 'ped' without a distance\n"),
        ([1, np.nan, 1.25, 1, 1], [0, 0, -1, -1, 0], "truth.txt:3: 2 of 5 annotated objects lie in no bin; the first "
         "is a 'ped' at 1.25 m\n"),
        ([np.nan] * 5, [0, -1, -1, -1, -1], "truth.txt: none of the 5 annotated objects has a distance\n  hint: "),
    ],
)  # fmt: skip
def test_objects_in_no_bin_are_refused(distance_m, bins, words):
    with pytest.raises(InputError) as caught:
        check_inside(PLACED, Located(np.array(distance_m), np.array(bins), np.array(bins)))
    assert str(caught.value).startswith(words)
    check_inside(PLACED, Located(np.array(distance_m), np.zeros(5, np.int64), np.array(bins)))
