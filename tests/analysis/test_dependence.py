"""Dependence between successive frames: hand-solved, against enumeration, real drives, and what the document says."""

import itertools
import json
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

import jsonschema
import numpy as np
import pytest
from counting_scenes import BINS, TWO_METRES
from hypothesis import given
from hypothesis import strategies as st
from plain_counter import Object, Report, detection_set
from scipy.stats import binomtest, kstest

from verifier.analysis.channel_test import Untested, class_tests, dependence_remark
from verifier.base.documents import json_values, read_document
from verifier.base.errors import InputError
from verifier.evidence.documents import schema_of
from verifier.perception.confusion import dependence as module
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.choices import count_job, dependence_document, track_outcomes
from verifier.perception.confusion.counting import count_and_observe
from verifier.perception.confusion.dependence import Outcomes, dependence, residual_test
from verifier.perception.confusion.document import confusion_text
from verifier.perception.confusion.document_dependence import Dependence
from verifier.perception.confusion.document_reader import DocumentReader
from verifier.perception.confusion.merging import merge
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.detections import Reading, class_map, read_detections
from verifier.perception.matching import MatchingPolicy

SCHEMA = schema_of("verifier.confusion")


def outcomes_of(tracks, strata=None, labels=None, thresholds=1):
    """From one list of (frame, level) per track; strata and labels by track, 0 where not given."""
    rows = [(track, frame, level) for track, listed in enumerate(tracks) for frame, level in listed]
    track, frame, level = (np.array(each, dtype=np.int64) for each in zip(*rows, strict=True))
    strata, labels = (np.array(each or [0] * len(tracks))[track] for each in (strata, labels))
    return Outcomes(track, frame, labels, strata, level, thresholds)


def seen(text):
    """Levels of successive frames: `.` is reported, `x` missed, a blank not annotated."""
    return [(frame, int(sign == ".")) for frame, sign in enumerate(text) if sign != " "]


def only(outcomes, **settings):
    ((found,),) = dependence(outcomes, ["ped"], **settings)
    return found


# ------------------------------------------------------------------------------------------------ hand-solved


def test_one_track_by_hand():
    # Misses in frames 0 and 1 of four: one joint miss in three pairs. Of the C(4, 2) = 6 places for two misses, three
    # are neighbours: p = 1/2. Mean: 3 pairs * (2 * 1) / (4 * 3) = 1/2. After a miss come frames 1 (missed) and 2
    # (not). One run of length 2; the mean number of runs is 2 - 1/2, and 2 / (3/2) = 4/3.
    found = only(outcomes_of([seen("xx..")]))
    assert (found.objects, found.misses, found.pairs, found.after_miss, found.joint_misses) == (4, 2, 3, 2, 1)
    assert found.expected_joint_misses == pytest.approx(1 / 2, abs=1e-15)
    assert (found.miss_after_miss, found.expected_miss_after_miss) == (1 / 2, 1 / 2)
    assert (found.mean_run, found.expected_mean_run) == (2, pytest.approx(4 / 3, abs=1e-15))
    assert found.permutations == 9999
    assert binomtest(round(found.p_value * 10_000) - 1, 9999, 0.5).pvalue > 1e-4


def test_frames_that_do_not_follow_each_other_are_no_pair():
    found = only(outcomes_of([seen("xx xx"), seen("x"), seen("x  x.")]))
    # Pairs: frames 0-1 and 3-4 of the first track, 3-4 of the last; runs: xx, xx, x, x, x.
    assert (found.pairs, found.joint_misses, found.after_miss, found.misses) == (3, 2, 3, 7)
    assert found.mean_run == 7 / 5
    assert dependence(outcomes_of([[(0, 0)], [(1, 0)]]), ["ped"]) == ((),)


def test_two_strata_by_hand():
    # A track crosses from stratum 0 (1 miss among 3 objects) to stratum 1 (2 misses among 4). The pair across has
    # chance 1/3 * 2/4 = 1/6; within stratum 0 there are 2 pairs of chance 0 (one miss), within stratum 1 3 pairs of
    # chance (2 * 1) / (4 * 3). Mean: 1/6 + 1/2 = 2/3. The miss in frame 2 is followed by frame 3, where the matrices
    # say 2/4; that in frame 3 by frame 4 (2/4), that in frame 4 by frame 5 (2/4).
    track = seen("..xxx..")
    outcomes = outcomes_of([track])
    found = only(replace(outcomes, stratum=np.array([0, 0, 0, 1, 1, 1, 1])))
    assert (found.pairs, found.after_miss, found.joint_misses) == (6, 3, 2)
    assert found.expected_joint_misses == pytest.approx(2 / 3, abs=1e-15)
    assert found.expected_miss_after_miss == 1 / 2
    # Joint misses are two only if the miss of stratum 0 is last (1/3) and those of stratum 1 are its first two (1/6).
    assert binomtest(round(found.p_value * 10_000) - 1, 9999, 1 / 18).pvalue > 1e-4


def test_classes_are_tested_apart_and_those_without_a_pair_left_out():
    outcomes = outcomes_of([seen("xx.."), seen("x.x."), seen("x x")], [0, 1, 2], [0, 2, 1])
    ((ped, obs),) = dependence(outcomes, ["ped", "car", "obs"])
    assert (ped.label, ped.joint_misses, obs.label, obs.joint_misses) == ("ped", 1, "obs", 0)
    assert (obs.p_value, obs.miss_after_miss, obs.mean_run) == (1, 0, 1)


def test_without_a_miss_there_is_nothing_to_follow():
    found = only(outcomes_of([seen("....")]))
    assert (found.p_value, found.miss_after_miss, found.expected_miss_after_miss) == (1, None, None)
    assert (found.mean_run, found.expected_mean_run, found.expected_joint_misses) == (None, None, 0)
    everything = only(outcomes_of([seen("xxxx")]))
    assert (everything.p_value, everything.miss_after_miss, everything.expected_miss_after_miss) == (1, 1, 1)
    assert (everything.mean_run, everything.expected_mean_run) == (4, 4)


# ------------------------------------------------------------------------------------------------ laws


TRACK = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=4)


@given(st.lists(TRACK, min_size=1, max_size=2))
def test_mean_and_p_value_agree_with_enumeration(tracks):
    # Every row has a stratum and a level from 0 to 2; frames follow each other. All permutations within strata.
    rows = [(t, f, s, v) for t, listed in enumerate(tracks) for f, (s, v) in enumerate(listed)]
    track, frame, stratum, level = (np.array(each) for each in zip(*rows, strict=True))
    outcomes = Outcomes(track, frame, np.zeros_like(track), stratum, level, 2)
    pairs = [(i, i + 1) for i in range(len(rows) - 1) if rows[i][0] == rows[i + 1][0]]
    members = [[i for i, row in enumerate(rows) if row[2] == s] for s in (0, 1)]
    counts = defaultdict(list)
    for orders in itertools.product(*(itertools.permutations(each) for each in members)):
        moved = level.copy()
        for own, order in zip(members, orders, strict=True):
            moved[own] = level[list(order)]
        for threshold in (0, 1):
            counts[threshold].append(sum(moved[i] <= threshold and moved[j] <= threshold for i, j in pairs))
    found = dependence(outcomes, ["ped"])
    assert len(found) == 2
    for threshold, listed in counts.items():
        if not pairs:
            assert found[threshold] == ()
            continue
        (one,) = found[threshold]
        assert one.joint_misses == listed[0]  # the identity comes first
        assert one.expected_joint_misses == pytest.approx(float(Fraction(sum(listed), len(listed))), abs=1e-12)
        exact = sum(each >= listed[0] for each in listed) / len(listed)
        assert binomtest(round(one.p_value * 10_000) - 1, 9999, exact).pvalue > 1e-6


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 3)), min_size=1, max_size=5))
def test_the_residual_test_agrees_with_enumeration(rows):
    # Outcomes permuted within strata beside histories that stay: sum over wrong ones, in quarters.
    stratum, right, history = np.array(rows).T
    members = [np.flatnonzero(stratum == own) for own in (0, 1)]
    sums = []
    for orders in itertools.product(*(itertools.permutations(own) for own in members)):
        moved = right.copy()
        for own, order in zip(members, orders, strict=True):
            moved[own] = right[list(order)]
        sums.append(sum(Fraction(int(h), 4) for h, one in zip(history, moved, strict=True) if not one))
    mean = sum(sums) / len(sums)
    variance = sum((each - mean) ** 2 for each in sums) / len(sums)
    z, p_value, number = residual_test(stratum + 4, right, history / 4)
    assert z == (pytest.approx(float(sums[0] - mean) / float(variance) ** 0.5) if variance else None)
    exact = sum(each >= sums[0] for each in sums) / len(sums)
    assert p_value == 1 if exact == 1 else binomtest(round(p_value * 10_000) - 1, number, exact).pvalue > 1e-6


def test_a_family_is_tested_as_each_of_its_members_would_be():
    rng = np.random.default_rng(1)
    level = rng.integers(0, 4, 60)
    rows = [np.repeat(np.arange(6), 10), np.tile(np.arange(10), 6), np.zeros(60, int), rng.integers(0, 3, 60)]
    family = dependence(Outcomes(*rows, level, 3), ["ped"])
    for threshold, (found,) in enumerate(family):
        alone = only(Outcomes(*rows, (level > threshold).astype(int), 1))
        assert replace(found, p_value=1) == replace(alone, p_value=1)
        assert found.p_value == pytest.approx(alone.p_value, abs=0.03)


def independent(rng, tracks=20, frames=15):
    """Outcomes of a channel without memory, with misses of .7 in stratum 0 and .1 in stratum 1."""
    track, frame = np.repeat(np.arange(tracks), frames), np.tile(np.arange(frames), tracks)
    stratum = (frame >= rng.integers(3, 12, tracks)[track]).astype(int)
    level = (rng.random(tracks * frames) >= np.where(stratum == 0, 0.7, 0.1)).astype(int)
    return Outcomes(track, frame, np.zeros_like(track), stratum, level)


def test_a_channel_without_memory_is_not_rejected_more_often_than_it_says(monkeypatch):
    # Far frames are missed far more often, so misses do cluster along each track; within a stratum they do not.
    monkeypatch.setattr(module, "MOST_PERMUTATIONS", 199)
    rng = np.random.default_rng(11)
    p_values = np.array([only(independent(rng), seed=k).p_value for k in range(400)])
    # p-values are uniform on 1/200, ..., 1 but for ties, which make them larger.
    assert kstest(p_values, "uniform", alternative="greater").pvalue > 1e-3
    assert np.count_nonzero(p_values <= 0.05) <= 36  # 20 on average, standard deviation 4.4
    assert np.count_nonzero(p_values <= 0.05) >= 5  # the test has not lost its power to ties
    pooled = [replace(each, stratum=np.zeros_like(each.stratum)) for each in (independent(rng) for _ in range(9))]
    assert max(only(each).p_value for each in pooled) < 0.05  # that is what the strata are for


def test_misses_that_stick_are_found():
    # A chain: after a miss a miss with .8, after a report a miss with .1; 1/3 of all frames are missed.
    rng = np.random.default_rng(2)
    level = np.ones((30, 20), dtype=int)
    level[:, 0] = rng.random(30) >= 1 / 3
    for k in range(1, 20):
        level[:, k] = rng.random(30) >= np.where(level[:, k - 1] == 0, 0.8, 0.1)
    rows = [np.repeat(np.arange(30), 20), np.tile(np.arange(20), 30)]
    found = only(Outcomes(*rows, np.zeros(600, int), np.zeros(600, int), level.ravel()))
    assert found.p_value == 1 / 10_000
    assert found.miss_after_miss == pytest.approx(0.8, abs=0.06)
    assert found.expected_miss_after_miss == pytest.approx(1 / 3, abs=0.06)
    assert found.mean_run > 2.5 > 2 > found.expected_mean_run


def test_the_same_seed_gives_the_same_p_value_and_large_data_fewer_permutations(monkeypatch):
    outcomes = independent(np.random.default_rng(3))
    assert only(outcomes, seed=1) == only(outcomes, seed=1)
    assert only(outcomes, seed=1) != only(outcomes, seed=2)
    monkeypatch.setattr(module, "WORK", 300 * 500)
    assert only(outcomes).permutations == 500
    monkeypatch.setattr(module, "WORK", 1)
    assert only(outcomes).permutations == 199


def test_how_many_permutations_there_are_and_how_many_at_a_time(monkeypatch):
    # 5 * 10^7 outcomes are permuted, of a residual test 5 * 10^6, and 2^22 at a time; few permutations are 199 and
    # many 9999. Nothing is missed in all these tracks of one frame, so nothing is to be permuted.
    at_once, permuted = [], module._permuted
    monkeypatch.setattr(module, "_permuted", lambda *given: at_once.append(given[2]) or permuted(*given))

    def number_of(n):
        track = np.r_[0, np.arange(n - 1)]
        zeros = np.zeros(n, int)
        found = only(Outcomes(track, np.r_[1, np.zeros(n - 1, int)], zeros, zeros, zeros + 1))
        return found.permutations, residual_test(zeros, zeros + 1, zeros + 0.5)[2]

    assert [number_of(n) for n in (5, 2500, 50_000)] == [(9999, 9999), (9999, 2000), (1000, 199)]
    assert at_once == [2**22 // n for n in (5, 5, 2500, 2500, 50_000, 50_000)]
    # What is counted of a permutation may be more than its outcomes: 4 thresholds and none, 2 bins, none and all.
    columns = [np.array(each) for each in ([0] * 5, range(5), [0] * 5, [0, 0, 1, 1, 1], [4] * 5)]
    dependence(Outcomes(*columns, 4, columns[3]), ["ped", "car", "obs"])
    assert at_once[6:] == [2**22 // (3 * 4 * 5)]
    for name, number in (("_NUMBERS_AT_ONCE", 1), ("MOST_PERMUTATIONS", 9)):
        monkeypatch.setattr(module, name, number)
    number_of(5)
    assert at_once[7:] == [1, 1]


def test_outcomes_that_are_all_the_same_take_no_draws():
    mixed = outcomes_of([seen(".x..x.xx.."), seen("x.x")], strata=[1, 2])
    more = outcomes_of([seen(".x..x.xx.."), seen("x.x"), seen("...")], strata=[1, 2, 0])
    draws, others = (
        np.concatenate(list(module._permuted(each, 20, 7, np.random.default_rng(2)))) for each in (mixed, more)
    )
    assert draws.shape == (20, 13)
    assert (others[:, :3] == 1).all()
    assert np.array_equal(others[:, 3:], draws)
    assert len({tuple(row) for row in draws.tolist()}) > 15


@pytest.mark.parametrize(
    ("tracks", "strata", "expected"),
    [
        (["xx"], [0], 1),  # 1 of 1 that are left
        (["x."], [0], 0),
        (["..", "x"], [0, 0], 0),  # a pair without a miss in three items with one
        (["xx", "."], [0, 0], 2 / 3 * 1 / 2),
        (["xxx.", ".x"], [0, 0], 4 * (4 / 6 * 3 / 5)),
    ],
)
def test_joint_misses_that_the_matrices_expect(tracks, strata, expected):
    found = only(outcomes_of([seen(track) for track in tracks], strata))
    assert found.expected_joint_misses == pytest.approx(expected, abs=1e-15)
    assert str(found.expected_joint_misses)[0] != "-"


def test_numbers_that_do_not_fit_together_are_refused():
    columns = [np.array([0, 0]), np.array([0, 1]), np.array([0, 0]), np.array([0, 0])]
    with pytest.raises(ValueError, match="differ in length"):
        Outcomes(*columns, np.array([1]))
    with pytest.raises(ValueError, match="numbers from 0"):
        Outcomes(*columns, np.array([2, 0]))
    with pytest.raises(ValueError, match="numbers from 0"):
        Outcomes(np.array([-1, 0]), *columns[1:], np.array([1, 0]))


# ------------------------------------------------------------------------------------------ detections to document


def tracked(frames, tracks, sequences=("A", "A", "B"), places=None, reports=()):
    """Pedestrians in these frames, 5 m ahead unless a place is given, with these tracks."""
    places = places or [5] * len(frames)
    stood = enumerate(zip(frames, places, strict=True))
    objects = [Object(frame, "ped", place, 3 * k) for k, (frame, place) in stood]
    data = detection_set(list(sequences), objects, list(reports))
    return data.change(annotations=replace(data.annotations, attributes={"track": np.array(tracks)}))


RULE = CountingRule("class", ("ped", "obs"), BINS)
# One pedestrian in five frames at 5, 5, 15, 15 and 15 m. Seen in frames 0 and 4; in frame 2 taken for an obstacle.
WALK = tracked(
    [0, 1, 2, 3, 4],
    [7] * 5,
    ["A"] * 5,
    [5, 5, 15, 15, 15],
    [Report(0, "ped", 5, 0, score=0.9), Report(2, "obs", 15, 6, score=0.8), Report(4, "ped", 15, 12, score=0.4)],
)


def observed(data, rule=RULE):
    return count_and_observe(data, TWO_METRES, rule)[1]


def test_a_wrong_class_is_a_miss_and_bins_are_strata():
    found = track_outcomes(WALK, observed(WALK), RULE)
    assert found.track.tolist() == [0] * 5
    assert found.frame.tolist() == [0, 1, 2, 3, 4]
    assert found.level.tolist() == [1, 0, 0, 0, 1]
    assert found.stratum.tolist() == [0, 0, 2, 2, 2]
    ((ped,),) = dependence(found, RULE.classes)
    # Pairs 0-1, 1-2, 2-3, 3-4, joint 1-2 and 2-3. Misses: 1 of 2 in bin 0, 2 of 3 in bin 1. Mean: 0, 1/2 * 2/3, and
    # twice (2 * 1) / (3 * 2), which is 1.
    assert (ped.label, ped.pairs, ped.joint_misses, ped.after_miss) == ("ped", 4, 2, 3)
    assert ped.expected_joint_misses == pytest.approx(1, abs=1e-15)
    assert ped.expected_miss_after_miss == pytest.approx(2 / 3, abs=1e-15)


def test_a_family_has_one_test_for_each_threshold():
    rule = replace(RULE, thresholds=(0.3, 0.5))
    found = dependence_document(WALK, observed(WALK, rule), rule)
    # At 0.5 the report of frame 4 is gone: misses in frames 1 to 4, three joint misses.
    assert [each.classes[0].joint_misses for each in found] == [2, 3]
    counts, _ = count_job(WALK, TWO_METRES, rule)
    counts = replace(counts, metadata={**counts.metadata, "dependence": found})
    document = json.loads(confusion_text(counts))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    again = DocumentReader("a.json").counts(document)
    assert again.member(0.5).metadata["dependence"] == found[1]
    with pytest.raises(InputError, match="/dependence: expected a list of 2 tests, one per score threshold"):
        DocumentReader("a.json").counts({**document, "dependence": json_values(found[:1])})


def test_without_tracks_or_pairs_nothing_is_said():
    data = tracked([0, 2], [1, 1])  # frames of different sequences
    assert dependence_document(data, observed(data), RULE) is None
    bare = data.change(annotations=replace(data.annotations, attributes={}))
    assert dependence_document(bare, observed(bare), RULE) is None
    far = tracked([0, 1], [1, 1], places=[5, 25])  # the second lies in no bin
    rule = replace(RULE, outside="drop")
    assert dependence_document(far, observed(far, rule), rule) is None


def test_the_document_says_it_and_reads_back():
    counts, found = count_job(WALK, TWO_METRES, RULE)
    counts = replace(counts, metadata={**counts.metadata, "dependence": dependence_document(WALK, found, RULE)})
    text = confusion_text(counts)
    document = json.loads(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    again = DocumentReader("a.json").counts(document)
    assert confusion_text(again) == text
    assert again.matrices().metadata["dependence"].classes[0].joint_misses == 2
    both = merge([again, again], ["a", "b"], "add").metadata["dependence"]
    assert both.classes[0].joint_misses == 4


def document(**changes):
    values = {
        "label": "ped", "objects": 5, "misses": 3, "pairs": 4, "after_miss": 3, "joint_misses": 2,
        "expected_joint_misses": 1.0, "miss_after_miss": 2 / 3, "expected_miss_after_miss": 0.25, "mean_run": 3.0,
        "expected_mean_run": 1.5, "p_value": 0.004, "permutations": 999,
    }  # fmt: skip
    return {"seed": 0, "classes": [{**values, **changes}]}


WHOLE = {
    "schema": "verifier.confusion", "version": 1, "labelling": "class", "axes": ["predicted", "true"],
    "labels": ["ped", "empty"], "bins": [{"distance_m": [0, 10], "counts": [[3, 1], [0, 5]]}],
}  # fmt: skip

BROKEN = [
    ([], "/dependence: [] is not of type 'object'"),
    ({"seed": 0}, "/dependence: 'classes' is a required property"),
    ({"seed": -1, "classes": []}, "/dependence/seed: input should be greater than or equal to 0, got -1"),
    ({"seed": None, "classes": []}, "/dependence/seed: expected an integer from 0, got null"),
    ({"seed": 0, "classes": [3]}, "/dependence/classes/0: 3 is not of type 'object'"),
    (document(label=3), "/dependence/classes/0/label: 3 is not of type 'string'"),
    (document(pairs=1.5), "/dependence/classes/0/pairs: 1.5 is not of type 'integer'"),
    (document(pairs=6), "/dependence/classes/0/pairs: expected at most 5, from the numbers beside it, got 6"),
    (document(misses=True), "/dependence/classes/0/misses: True is not of type 'integer'"),
    (document(p_value=1.5), "/dependence/classes/0/p_value: input should be less than or equal to 1, got 1.5"),
    (document(miss_after_miss=None), "/dependence/classes/0/miss_after_miss: expected 0.666"),
    (document(mean_run="x"), "/dependence/classes/0/mean_run: 'x' is not of type 'number'"),
    (
        document(mean_run=2.0),
        "/dependence/classes/0/mean_run: expected 3.0, which follows from the numbers",
    ),
    (document(expected_mean_run=1.0), "/dependence/classes/0/expected_mean_run: expected 1.5, which follows"),
    (
        document(after_miss=0, joint_misses=0),
        "/dependence/classes/0/expected_miss_after_miss: expected null, got",
    ),
]


@pytest.mark.parametrize(("value", "words"), BROKEN, ids=[words[:60] for _, words in BROKEN])
def test_faulty_tests_are_refused(value, words):
    DocumentReader("a.json").counts({**WHOLE, "dependence": document()})
    with pytest.raises(InputError) as caught:
        DocumentReader("a.json").counts({**WHOLE, "dependence": value})
    assert words in str(caught.value)


def said(*changes):
    classes = [document(**change)["classes"][0] for change in changes]
    return read_document(Dependence, {"seed": 0, "classes": classes}, "a.json")


def test_the_remark_is_plain():
    assert dependence_remark(said({}).classes) == (
        "warning: memoryless assumption rejected: after a missed ped the next frame misses it with probability 0.67, "
        "not 0.25 (2 of 3 frame pairs, p = 0.004). P and bounds may be wrong in either direction."
    )
    two = said({}, {"label": "obs"})
    assert dependence_remark(two.classes).count("after a missed") == 2
    assert dependence_remark(class_tests(two, None, {"obs": [0]})).count("after a missed obs") == 1
    assert class_tests(two, None, {"car": [0]}) == (Untested(label="car"),)
    assert dependence_remark(said({"p_value": 0.01}).classes) is None
    assert dependence_remark([]) is None


def test_real_detectors_have_a_memory(shared):
    folder = shared / "data/kitti_tracking"
    reading = Reading(class_map=class_map({"Pedestrian": "ped", "DontCare": "dont_care", "*": "ignore"}))
    data = read_detections("kitti_tracking", folder / "label_02", folder / "det_pointrcnn", reading)
    rule = CountingRule("class", ("ped",), Bins((0.0, 10.0, 20.0, 30.0, float("inf"))), "ground_plane")
    counts, found = count_job(data, MatchingPolicy("centre_bev", 2.0), rule)
    (ped,) = dependence_document(data, found, rule).classes
    misses = counts.matrices().counts[:, 1, 0].sum()
    assert ped.misses == misses
    assert ped.p_value == 1 / (1 + ped.permutations)
    assert ped.miss_after_miss > 2 * ped.expected_miss_after_miss
    assert ped.mean_run > 2 * ped.expected_mean_run
    # Without the permutations: joint misses counted from the labels' own track numbers, in plain Python.
    level = np.where(found.scene.objects.reported == found.scene.objects.label, found.scene.objects.level, 0)
    rows = zip(
        data.frame_sequence[data.annotations.frame].tolist(),
        data.annotations.attributes["track"].tolist(),
        data.annotations.frame.tolist(),
        level.tolist(),
        strict=True,
    )
    missed = {(sequence, track, frame) for sequence, track, frame, at in rows if at == 0}
    assert ped.joint_misses == sum((s, t, f + 1) in missed for s, t, f in missed)
