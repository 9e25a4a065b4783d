"""Counting: a scene counted by hand for every labelling and policy, then random scenes against the plain counter."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from counting_scenes import (
    BOTH,
    BY_CLASS,
    BY_SET,
    EDGES,
    FRAMES,
    LEFTOVER,
    OBJECTS,
    OBS,
    PED,
    PLAIN,
    POLICIES,
    REPORTS,
    TWO_METRES,
    as_counter,
    rules,
    scenes,
)  # fmt: skip
from hypothesis import given
from hypothesis import strategies as st
from plain_counter import EMPTY, Object, Report, detection_set, plain_count
from shorthands import count_detections, of_sequences

from verifier.base.errors import InputError, LimitError, UsageError
from verifier.perception.confusion import counting
from verifier.perception.confusion.bins import Bins, Variable
from verifier.perception.confusion.counting import (
    NO_TRACKS_IN_PARTS,
    accumulate,
    confusion_counts,
    count,
    count_and_observe,
    localised,
    nothing_counted,
    takes_surest_first,
    with_localisation,
)
from verifier.perception.confusion.merging import merge
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.matching import MatchingPolicy, match


def counted(rule, policy=TWO_METRES, frames=FRAMES, objects=OBJECTS, reports=REPORTS):
    return confusion_counts(count_detections(detection_set(frames, objects, reports), policy, rule), rule, policy)


def tables(rule):
    found = counted(rule)
    assert found.thresholds is None
    return found.counts[0].tolist()


def test_class_labelled_by_hand():
    # Rows predicted, columns true: ped, obs, empty. Bin 0: ped at 5 seen, ped at 8 missed; empty in frames 1 and 2.
    # Bin 1: obs at 12 called ped, obs at 10 seen; empty in frame 1.
    assert BY_CLASS.labels == (PED, OBS, EMPTY)
    assert tables(BY_CLASS) == [[[1, 0, 0], [0, 0, 0], [1, 0, 2]], [[0, 1, 0], [0, 1, 0], [0, 0, 1]]]


def test_false_positives_in_their_own_bin_by_hand():
    # Frame 1, bin 1: two false positives, one item, reported as the surer one (obs). Frame 2: the duplicate at 9 m
    # lies in bin 0, where there is no object; in the bin of its object something does, so it is no false positive
    # there.
    drop, own, nearest = "drop", "own_bin", "nearest_bin"
    quiet = [[1, 0, 0], [0, 0, 0], [1, 0, 2]]
    alarm = [[1, 0, 0], [0, 0, 1], [1, 0, 1]]
    busy = [[0, 1, 0], [0, 1, 1], [0, 0, 0]]
    assert tables(replace(BY_CLASS, unmatched=own, duplicates=drop)) == [quiet, busy]
    assert tables(replace(BY_CLASS, unmatched=own, duplicates=own)) == [alarm, busy]
    assert tables(replace(BY_CLASS, unmatched=own, duplicates=nearest)) == [quiet, busy]
    assert tables(replace(BY_CLASS, unmatched=drop, duplicates=own)) == [alarm, [[0, 1, 0], [0, 1, 0], [0, 0, 1]]]


def test_proposition_labelled_by_hand():
    # Labels ped, obs, {ped, obs}, empty. Bin 0: frame 0 {ped} -> {ped}; frames 1, 2 empty.
    # Bin 1: frame 0 {obs} -> {ped}; frame 1 empty; frame 2 {obs} -> {obs}.
    assert BY_SET.labels == (PED, OBS, BOTH, EMPTY)
    first = [[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 2]]
    assert tables(BY_SET) == [first, [[0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]]
    # Own bin: frame 1 reports both classes in bin 1, frame 2 obs in bin 0.
    alarm = [[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 1]]
    busy = [[0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert tables(replace(BY_SET, unmatched="own_bin", duplicates="own_bin")) == [alarm, busy]
    # Nearest bin: the duplicate of frame 2 says obs once more where obs is reported anyway.
    assert tables(replace(BY_SET, unmatched="own_bin", duplicates="nearest_bin")) == [first, busy]


def test_propositions_of_one_class_see_the_other_class_as_nothing():
    # Bin 1: frame 0 has obs only, which is reported as ped: nothing true, ped reported? No: the report belongs to an
    # object that is no proposition here, so it is dropped with it. All three frames have nothing there.
    rule = replace(BY_SET, classes=("ped",))
    assert tables(rule) == [[[1, 0], [0, 2]], [[0, 0], [0, 3]]]


def test_groups_by_hand():
    # The two pedestrians of frame 0, at 5 and 8 m, are one item with a gap of 3 m: seen, because one of them is.
    rule = replace(BY_CLASS, labelling="group", gap_m=3.0)
    assert tables(rule) == [[[1, 0, 0], [0, 0, 0], [0, 0, 2]], [[0, 1, 0], [0, 1, 0], [0, 0, 1]]]
    assert tables(replace(rule, gap_m=2.9)) == tables(BY_CLASS)


def test_thresholds_by_hand():
    # Scores .9, .8, .7 belong to the three reported objects, so each threshold above them takes one away.
    found = counted(replace(BY_CLASS, thresholds=(0.1, 0.75, 0.85, 0.95)))
    at = [found.member(threshold).counts[0].tolist() for threshold in (0.1, 0.75, 0.85, 0.95)]
    empty = [[0, 0, 0], [0, 0, 0]]
    assert at[0] == tables(BY_CLASS)
    assert at[1] == [[[1, 0, 0], [0, 0, 0], [1, 0, 2]], [[0, 1, 0], [0, 0, 0], [0, 1, 1]]]
    assert at[2] == [[[1, 0, 0], [0, 0, 0], [1, 0, 2]], [*empty, [0, 2, 1]]]
    assert at[3] == [[*empty, [2, 0, 2]], [*empty, [0, 2, 1]]]


def test_a_variable_of_objects_splits_columns_and_leaves_column_empty_alone():
    rule = replace(
        BY_CLASS, bins=Bins((0.0, 10.0, 20.0), (Variable("occluded", groups=(("0", ("0",)), ("1", ("1",)))),))
    )
    found = counted(rule)
    assert found.counts[0].tolist() == [
        [[1, 0, 0], [0, 0, 0], [0, 0, 2]],
        [[0, 0, 0], [0, 0, 0], [1, 0, 2]],
        [[0, 1, 0], [0, 1, 0], [0, 0, 1]],
        [[0, 0, 0], [0, 0, 0], [0, 0, 1]],
    ]
    assert found.matrices().counts.tolist() == tables(BY_CLASS)
    hidden = found.matrices({"occluded": "1"})
    assert hidden.counts.tolist() == [[[0, 0, 0], [0, 0, 0], [1, 0, 2]], [[0, 0, 0], [0, 0, 0], [0, 0, 1]]]
    assert hidden.metadata["where"] == {"occluded": "1"}


def test_a_variable_of_frames_splits_the_frames():
    by_drive = Variable("sequence", groups=(("first", ("A*",)), ("rest", ("*",))))
    found = counted(replace(BY_CLASS, bins=Bins((0.0, 10.0, 20.0), (by_drive,))))
    assert found.matrices({"sequence": "first"}).counts.tolist() == [
        [[1, 0, 0], [0, 0, 0], [1, 0, 1]],
        [[0, 1, 0], [0, 0, 0], [0, 0, 1]],
    ]
    assert found.matrices({"sequence": "rest"}).counts.tolist() == [
        [[0, 0, 0], [0, 0, 0], [0, 0, 1]],
        [[0, 0, 0], [0, 1, 0], [0, 0, 0]],
    ]
    assert found.matrices().counts.tolist() == tables(BY_CLASS)


def test_counts_by_sequence_and_totals_by_hand():
    found = counted(BY_CLASS)
    assert (found.sequences.names, found.sequences.frames.tolist()) == (("A", "B"), [2, 1])
    assert of_sequences(found)[1, 0].tolist() == [
        [[0, 0, 0], [0, 0, 0], [0, 0, 1]],
        [[0, 0, 0], [0, 1, 0], [0, 0, 0]],
    ]
    assert found.metadata["totals"] == {
        "frames": 3,
        "annotations": 4,
        "detections": 7,
        "matched": 3,
        "unmatched": 2,
        "duplicates": 2,
        "ignored": 0,
        "outside_bins": 0,
    }


def test_objects_in_no_bin_are_refused_or_dropped():
    far = [*OBJECTS, Object(1, "ped", 20)]
    with pytest.raises(InputError) as caught:
        counted(BY_CLASS, objects=far)
    assert str(caught.value) == (
        "truth.txt:5: 1 of 5 annotated objects lie in no bin; the first is a 'ped' at 20 m\n"
        "  hint: end the distance edges with inf (an overflow bin), add bins, filter the data, or use --outside drop"
    )
    dropped = counted(replace(BY_CLASS, outside="drop"), objects=far)
    assert dropped.counts[0].tolist() == tables(BY_CLASS)
    assert dropped.metadata["totals"]["outside_bins"] == 1
    overflow = counted(replace(BY_CLASS, bins=Bins((0.0, 10.0, 20.0, math.inf))), objects=far)
    assert overflow.counts[0, 2].tolist() == [[0, 0, 0], [0, 0, 0], [1, 0, 2]]


def test_an_object_that_is_dropped_for_another_variable_still_stands_where_it_stands():
    plain_sight = Variable("occluded", groups=(("0", ("0",)),))
    rule = replace(BY_CLASS, bins=Bins((0.0, 10.0, 20.0), (plain_sight,)), outside="drop")
    alone = counted(rule, objects=[Object(1, "ped", 5, occluded=2)], reports=[])
    assert alone.counts[0].tolist() == [[[0, 0, 0], [0, 0, 0], [0, 0, 2]], [[0, 0, 0], [0, 0, 0], [0, 0, 3]]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"classes": ("ped",)}, "the data has classes that get no column: obs"),
        ({"bins": Bins((0.0, 10.0), (Variable("sequence", groups=(("a", ("A",)),)),)), "outside": "error"},
         "sequence 'B' falls in no bin"),
        ({"bins": Bins((0.0, 100.0), (Variable("weather", groups=(("dry", ("0",)),)),))},
         "unknown attribute of the annotations 'weather'"),
    ],
)  # fmt: skip
def test_rules_that_do_not_fit_are_refused(change, words):
    with pytest.raises((UsageError, InputError)) as caught:
        counted(replace(BY_CLASS, **change), objects=[Object(0, "ped", 5)])
    assert words in str(caught.value)


def test_more_classes_than_a_number_has_bits():
    # COCO has 80; labels of one class are no sets.
    rule = CountingRule("class", tuple(f"class {k}" for k in range(80)), Bins((0.0, np.inf)))
    assert confusion_counts(nothing_counted(rule), rule, TWO_METRES).counts.shape == (1, 1, 81, 81)
    assert rule.labels == (*(frozenset({name}) for name in rule.classes), frozenset())


def test_propositions_refuse_variables_of_objects_and_too_many_classes():
    occluded = Variable("occluded", edges=(0.0, 1.0, 3.0))
    with pytest.raises(UsageError, match="'occluded' belongs to an object"):
        replace(BY_SET, bins=Bins((0.0, 10.0), (occluded,)))
    with pytest.raises(UsageError, match="9 classes have 512 sets"):
        replace(BY_SET, classes=tuple("abcdefghi"))


def test_a_false_positive_without_a_distance_has_no_bin():
    data = detection_set(FRAMES, OBJECTS, REPORTS)
    box = data.detections.box_3d.copy()
    box[3] = np.nan
    data = data.change(detections=replace(data.detections, box_3d=box))
    matches = match(data, TWO_METRES)
    with pytest.raises(InputError, match=r"found\.txt:4: a detection that matches nothing has no distance"):
        count(data, matches, replace(BY_CLASS, unmatched="own_bin"))
    assert count(data, matches, BY_CLASS).totals["unmatched"] == 2


@pytest.mark.parametrize(
    ("assignment", "order", "same_class_first", "surest_first"),
    [
        ("greedy", "score", False, True),
        ("greedy", "score", True, False),
        ("greedy", "affinity", False, False),
        ("greedy", "annotation", False, False),
        ("optimal", "score", False, False),
    ],
)
def test_only_where_the_surest_come_first_is_a_family_matched_once(assignment, order, same_class_first, surest_first):
    policy = MatchingPolicy("centre_bev", 2.0, assignment, order=order, same_class_first=same_class_first)
    assert takes_surest_first(policy) is surest_first
    family, data = replace(BY_CLASS, thresholds=(0.1, 0.6)), detection_set(FRAMES, OBJECTS, REPORTS)
    assert (count_and_observe(data, policy, family)[1] is not None) is surest_first


def test_what_is_seen_of_each_object_and_counted_of_a_family():
    rule = replace(BY_SET, classes=("ped",), thresholds=(0.35, 0.75), unmatched="own_bin", duplicates="own_bin")
    found, observed = count_and_observe(detection_set(FRAMES, OBJECTS, REPORTS), TWO_METRES, rule)
    objects = observed.scene.objects
    assert objects.label.tolist() == [0, 0, -1, -1]  # the other class is no proposition
    assert objects.reported.tolist() == [0, -1, 0, -1]
    assert objects.level.tolist() == [2, 0, 2, 1]
    assert objects.score.tolist() == [0.9, -math.inf, 0.8, 0.7]
    # Of scores from .35 on: three are matched, .4 is near nothing, .5 a duplicate; .3 and .2 take no part.
    told = {"detections": 5, "matched": 3, "unmatched": 1, "duplicates": 1, "ignored": 0}
    assert {name: found.totals[name] for name in told} == told
    assert observed.leftover.tolist() == [1, 3]
    nothing = count_and_observe(detection_set(FRAMES, OBJECTS, []), TWO_METRES, rule)[1].scene.objects
    assert (nothing.reported.tolist(), nothing.level.tolist()) == ([-1] * 4, [0] * 4)
    assert nothing.score.tolist() == [-math.inf] * 4


def moved(data, rows, value=np.nan):
    box = data.annotations.box_3d.copy()
    box[rows] = value
    return data.change(annotations=replace(data.annotations, box_3d=box))


def test_objects_without_a_distance_are_dropped_unless_none_has_one():
    data, rule = detection_set(FRAMES, OBJECTS, REPORTS), replace(BY_CLASS, outside="drop")
    assert count_detections(moved(data, [1]), TWO_METRES, rule).totals["outside_bins"] == 1
    with pytest.raises(InputError, match="none of the 4 annotated objects has a distance"):
        count_detections(moved(data, slice(None)), TWO_METRES, rule)
    with pytest.raises(UsageError, match="groups need the position of every object"):
        count_detections(moved(data, [1]), TWO_METRES, replace(rule, labelling="group", gap_m=1.0))


def test_groups_are_linked_on_the_ground():
    """Two pedestrians 3 m apart and one of them 9 m higher, as on a bridge."""
    rule = replace(BY_CLASS, labelling="group", gap_m=3.0, measure="ground_plane")
    data = moved(detection_set(FRAMES, OBJECTS, REPORTS), (1, 2), 9)
    found = count_and_observe(data, TWO_METRES, rule)[1]
    assert found.group.tolist() == [0, 0, 1, 2]


def test_parts_are_added_with_their_tables_of_distances_and_say_that_tracks_are_lost():
    none = nothing_counted(BY_CLASS)
    assert (none.sequences, none.frames.tolist(), set(none.totals.values())) == ((), [], {0})
    tracked = [replace(each, track=number) for number, each in enumerate(OBJECTS[:3])]
    with_tracks = count_detections(detection_set(FRAMES, tracked, REPORTS), TWO_METRES, BY_CLASS)
    bare = replace(with_tracks, tracks=None)
    empty = replace(bare, totals=dict.fromkeys(bare.totals, 0))
    said = replace(bare, remarks=({"kind": "other", "text": "x"}, NO_TRACKS_IN_PARTS))
    for parts, whole, kept, remarks in (
        ([with_tracks], True, True, ()),
        ([with_tracks, empty], True, True, ()),  # a part without objects has no tracks to lack
        ([with_tracks, bare], True, False, (NO_TRACKS_IN_PARTS,)),
        ([with_tracks, with_tracks], False, False, (NO_TRACKS_IN_PARTS,)),
        ([bare, bare], True, False, ()),
        ([said, said, bare], False, False, (NO_TRACKS_IN_PARTS,)),
        ([replace(bare, remarks=said.remarks[:1])], True, False, ()),
    ):
        found = accumulate(parts, whole)
        assert (found.tracks is not None, found.remarks) == (kept, remarks)
        assert found.localised is None
    tables = [np.array([[1, 2], [3, 4], [5, 6]]), np.array([[10, 0], [0, 0], [0, 7]])]
    added = accumulate([none, *(replace(bare, localised=table) for table in tables)])
    assert added.localised.tolist() == [[11, 2], [3, 4], [5, 13]]


@pytest.mark.parametrize(
    ("tracks", "said"),
    [
        ((3, -1, -1, -1), ["2 objects have no track; counted by track, each is a track of one frame"]),
        ((3, -1, 4, -1), ["1 objects have no track; counted by track, each is a track of one frame"]),
        ((3, 3, 3, -1), []),  # the last is in no bin
        ((-1, -1, -1, -1), None),
    ],
)
def test_objects_without_a_track_are_said(tracks, said):
    places = (("obs", 5), ("ped", 8), ("obs", 12), ("ped", 25))
    objects = [Object(k, kind, x, track=at) for k, ((kind, x), at) in enumerate(zip(places, tracks, strict=True))]
    data, rule = detection_set(["A"] * 4, objects, []), replace(BY_CLASS, outside="drop")
    numbers = np.array(tracks)  # a column of tracks without any is as good as none
    data = data.change(annotations=replace(data.annotations, attributes={"track": numbers}))
    found = count_detections(data, TWO_METRES, rule)
    assert (None if found.tracks is None else [each["text"] for each in found.remarks]) == said
    assert found.tracks is not None or found.remarks == ()


def test_a_table_has_a_largest_size(monkeypatch):
    rule = replace(BY_CLASS, thresholds=(0.1, 0.2, 0.3))  # 3 thresholds x 2 bins x 3^2 labels
    monkeypatch.setattr(counting, "LARGEST_TABLE", 54)
    assert counted(rule).counts.size == 54
    monkeypatch.setattr(counting, "LARGEST_TABLE", 53)
    with pytest.raises(LimitError, match=r"^3 thresholds x 2 bins x 3\^2 labels are 54 counts; at most 53 are kept"):
        counted(rule)
    monkeypatch.undo()
    rule = CountingRule("class", ("ped",), Bins(tuple(map(float, range(100_001)))), thresholds=tuple(range(672)))
    with pytest.raises(LimitError, match="268800000 counts; at most 268435456 are kept"):
        confusion_counts(nothing_counted(rule), rule, TWO_METRES)


def test_reported_distances_by_hand():
    """Each in a frame of its own: right, too near, in its bin, beyond the bins; one beyond the bins; one missed."""
    places = [(5, 5), (11, 9.5), (15, 15), (19, 20.5), (20.5, 19.5), (8, None)]
    objects = [Object(k, "ped", true) for k, (true, _) in enumerate(places)]
    reports = [Report(k, "ped", told) for k, (_, told) in enumerate(places) if told is not None]
    data, rule = detection_set(["A"] * 6, objects, reports), replace(BY_CLASS, outside="drop")
    found, observed = count_and_observe(data, TWO_METRES, rule)
    table = localised(data, observed, rule)
    assert table.tolist() == [[1, 1], [0, 1], [0, 1]]  # reported in [0, 10), [10, 20), neither
    sets = replace(rule, labelling="proposition")
    for seen, asked in ((None, rule), (observed, replace(rule, thresholds=(0.5,))), (observed, sets)):
        with pytest.raises(UsageError, match="--localisation counts single objects at one score threshold"):
            localised(data, seen, asked)
    counts = confusion_counts(found, rule, TWO_METRES)
    said = "1 of 4 matched objects are reported in no distance bin; localisation leaves them out"
    for known, told, remarks in (
        (table, [[1, 1], [0, 1]], [said]),
        (np.array([[2, 0], [1, 0], [0, 0]]), [[2, 0], [1, 0]], []),
        (np.zeros((3, 2), dtype=np.int64), None, []),
    ):
        made = with_localisation(counts, known)
        assert made.metadata.get("localisation") == (told and {"axes": ["reported", "true"], "counts": told})
        texts = [each["text"] for each in made.metadata.get("remarks", []) if each["kind"] == "not-localised"]
        assert texts == remarks
    with pytest.raises(InputError, match="no detection of a matched object has a distance in a bin"):
        with_localisation(counts, np.array([[0, 0], [0, 0], [1, 2]]))


# Laws on random scenes.


def expected(scene, rule, policy, threshold=-math.inf):
    frames, objects, reports = scene
    kept = [each for each in reports if each.score >= threshold]
    matches = match(detection_set(frames, objects, kept), policy)
    matched = {d: a for d, a in enumerate(matches.annotation_of.tolist()) if a >= 0}
    nearest = {d: a for d, a in enumerate(matches.nearest.tolist()) if a >= 0}
    return plain_count(
        frames,
        objects,
        kept,
        matched,
        nearest,
        PLAIN[rule.bins.variables],
        labelling=rule.labelling,
        unmatched=rule.unmatched,
        duplicates=rule.duplicates,
        gap=rule.gap_m,
    )


@given(scenes(), rules(), POLICIES)
def test_counts_equal_those_of_the_plain_counter(scene, rule, policy):
    found = count_detections(detection_set(*scene), policy, rule)
    assert as_counter(found.tally, found.sequences, rule) == expected(scene, rule, policy)


THRESHOLDS = st.lists(st.sampled_from([0.05, 0.1, 0.15, 0.3, 0.45, 0.5, 0.6]), unique=True, min_size=1).map(sorted)
ANY_POLICY = st.one_of(
    POLICIES, st.just(MatchingPolicy("centre_bev", 4.0, order="affinity", same_class_first=True)),
    st.just(MatchingPolicy("centre_bev", 4.0, order="annotation")),
    st.just(MatchingPolicy("centre_bev", 4.0, only_best=True)),
)  # fmt: skip


@given(scenes(), rules(), ANY_POLICY, THRESHOLDS)
def test_a_family_equals_separate_runs(scene, rule, policy, thresholds):
    family = replace(rule, thresholds=tuple(thresholds))
    together = count_detections(detection_set(*scene), policy, family)
    whole = confusion_counts(together, family, policy)
    for member, threshold in enumerate(thresholds):
        assert as_counter(together.tally, together.sequences, rule, member) == expected(
            scene, rule, policy, threshold
        )
        frames, objects, reports = scene
        kept = detection_set(frames, objects, [each for each in reports if each.score >= threshold])
        alone = confusion_counts(count_detections(kept, policy, rule), rule, policy)
        chosen = whole.member(threshold)
        assert np.array_equal(chosen.counts, alone.counts)
        assert np.array_equal(chosen.sequences.tally.index, alone.sequences.tally.index)
        assert np.array_equal(chosen.sequences.tally.counts, alone.sequences.tally.counts)


@given(scenes(), rules(("class",)), POLICIES)
def test_columns_sum_to_objects_and_column_empty_to_frames(scene, rule, policy):
    rule = replace(rule, bins=Bins((0.0, 5.0, math.inf)))
    frames, objects, _ = scene
    found = count_detections(detection_set(*scene), policy, rule)
    table = found.tally.dense(2, 3)[0]
    assert table.sum() == len(objects) + sum(
        not any((math.hypot(each.x, each.y) >= 5) == far for each in objects if each.frame == frame)
        for frame in range(len(frames))
        for far in (False, True)
    )
    for column, kind in enumerate(("ped", "obs")):
        assert table[:, :, column].sum() == sum(each.kind == kind for each in objects)


@given(scenes(), rules(("proposition",)), POLICIES)
def test_every_proposition_matrix_sums_to_the_frames(scene, rule, policy):
    rule = replace(rule, bins=Bins(EDGES))
    table = count_detections(detection_set(*scene), policy, rule).tally.dense(3, 4)[0]
    assert table.sum(axis=(1, 2)).tolist() == [len(scene[0])] * 3


@given(scenes(), rules(), POLICIES, st.data())
def test_counting_parts_and_merging_equals_counting_together(scene, rule, policy, data):
    frames, objects, reports = scene
    cut = data.draw(st.integers(0, len(frames)))
    parts = []
    for low, high in ((0, cut), (cut, len(frames))):
        inside = [[replace(each, frame=each.frame - low) for each in things if low <= each.frame < high]
                  for things in (objects, reports)]  # fmt: skip
        parts.append(count_detections(detection_set(frames[low:high], *inside), policy, rule))
    together = count_detections(detection_set(*scene), policy, rule)
    added = accumulate(parts)
    assert as_counter(added.tally, added.sequences, rule) == as_counter(together.tally, together.sequences, rule)
    assert added.totals == together.totals
    files = [confusion_counts(part, rule, policy) for part in parts]
    merged, whole = merge(files, ["a.json", "b.json"], "add"), confusion_counts(together, rule, policy)
    assert np.array_equal(merged.counts, whole.counts)
    assert merged.metadata["totals"] == whole.metadata["totals"]
    assert dict(zip(merged.sequences.names, merged.sequences.frames.tolist(), strict=True)) == Counter(frames)


@given(scenes(), rules(), POLICIES)
def test_the_canonical_matrix_is_the_sum_over_bins(scene, rule, policy):
    found = confusion_counts(count_detections(detection_set(*scene), policy, rule), rule, policy)
    matrices = found.matrices()
    assert matrices.canonical().counts.tolist() == [matrices.counts.sum(axis=0).tolist()]
    if all(each.scope != "object" for each in rule.bins.variables):
        assert np.array_equal(matrices.canonical().counts[0], found.counts.sum(axis=(0, 1)))


@given(scenes(), st.sampled_from(["class", "group"]), LEFTOVER, LEFTOVER, POLICIES)
def test_summing_over_occlusion_gives_what_counting_without_it_gives(scene, labelling, unmatched, duplicates, policy):
    rule = CountingRule(labelling, ("ped", "obs"), Bins(EDGES), "ground_plane", unmatched, duplicates, "drop",
                        3.0 if labelling == "group" else None)  # fmt: skip
    fine = replace(rule, bins=Bins(EDGES, (Variable("occluded", edges=(0.0, 1.0, 2.0, 3.0)),)))
    data = detection_set(*scene)
    one, other = (confusion_counts(count_detections(data, policy, each), each, policy) for each in (rule, fine))
    assert np.array_equal(one.matrices().counts, other.matrices().counts)
