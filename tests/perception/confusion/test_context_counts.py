"""Counts by context of one scene with all that can happen, against the definition; tests, sets and limits by hand."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from plain_counter import Object, Report, detection_set

from verifier.base.errors import InputError, LimitError, UsageError
from verifier.perception.confusion import context_counts
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.context_counts import (
    Memory,
    _histories,
    _sets_of_tracks,
    counter_of,
    with_contexts,
)
from verifier.perception.confusion.context_selection import Begun, Part
from verifier.perception.confusion.contexts import Contexts, OfTracks
from verifier.perception.confusion.counting import confusion_counts, count_and_observe
from verifier.perception.confusion.dependence import residual_test
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.matching import MatchingPolicy

POLICY = MatchingPolicy("centre_bev", 2.0)
RUN = Contexts("run", 2)
EDGES = (0.0, 5.0, 10.0, 20.0)


def scene(sequences):
    """A frame of each of these sequences; two tracks of each class with gaps, also beyond the bins; false alarms."""
    rng = np.random.default_rng(12)
    frames = list(sequences)
    there = [
        (frame, kind, track)
        for frame, kind, track in product(range(len(frames)), ("ped", "obs"), (-1, 0, 1))
        if rng.random() < (0.3 if track < 0 else 0.8)
    ]
    places = [(5 + 5 * track + 6 * (kind == "obs") + int(rng.integers(-1, 6)), 2 * track) for _, kind, track in there]
    objects = [
        Object(frame, kind, *place, int(rng.integers(0, 3)), track)
        for (frame, kind, track), place in zip(there, places, strict=True)
    ]
    reports = [
        Report(each.frame, each.kind if rng.random() < 0.8 else "ped", each.x, each.y, round(float(rng.random()), 3))
        for each in objects
        if rng.random() < 0.6
    ]
    reports += [
        Report(int(rng.integers(0, len(frames))), "obs", int(rng.integers(1, 19)), -9, round(float(rng.random()), 3))
        for _ in range(12)
    ]
    return frames, objects, reports


SCENE, LONG = scene("AAAAAABBBCDD"), scene("A" * 25 + "B" * 20)


def rule_of(labelling="class", leftover="own_bin", variables=(), thresholds=None, classes=("ped", "obs")):
    return CountingRule(
        labelling, classes, Bins(EDGES, variables), "ground_plane", leftover, leftover, "drop", thresholds=thresholds
    )


def counter(rule, memory, data=None, part=None):
    data = detection_set(*SCENE) if data is None else data
    return counter_of(data, count_and_observe(data, POLICY, rule)[1], rule, memory, part)


def test_sets_go_on_whatever_others_do():
    """A ped of one track for two frames, beyond it another one in each frame; none is reported. A part for each."""
    rule, memory, begun, told = rule_of("proposition", "drop"), Memory(RUN), Begun(), []
    for frame in (0, 1):
        data = detection_set(["A"], [Object(0, "ped", 7, track=1), Object(0, "ped", 15, track=2 + frame)], [])
        part = Part(begun, np.array([frame]), np.array([0]), ("A",), 0)
        finer = counter(rule, memory, data, part).tally().index[:, 1]
        told.append([RUN.names[at % 6] for at in finer if at >= 6 and at % 6 < 5])
        begun = part.after
    assert told == [["start", "start"], ["wrong*1", "start"]]


def test_objects_are_known_by_track_and_class_if_they_have_a_column():
    frames, objects, reports = ["A", "B"], [], []
    for frame, kind, track in ((0, "ped", 4), (0, "obs", 4), (0, "ped", -1), (1, "ped", 4), (1, "obs", 9)):
        objects.append(Object(frame, kind, 5.0, track=track))
    data = detection_set(frames, objects, reports)
    # Tracks 4 of A, 4 of B, 9 of B are 0, 1, 2; two classes.
    assert counter(rule_of(), Memory(RUN), data).identity.tolist() == [0, 1, -1, 2, 5]
    sets = rule_of("proposition", classes=("ped",))
    assert counter(sets, Memory(RUN), data).identity.tolist() == [0, -1, -1, 1, -1]
    for policies, counted in ((("drop", "drop"), False), (("own_bin", "drop"), True), (("drop", "own_bin"), True)):
        rule = replace(rule_of(), unmatched=policies[0], duplicates=policies[1])
        assert counter(rule, Memory(RUN), data).false_positives is counted


@pytest.mark.parametrize("gaps", ["break", "hold", "miss"])
def test_the_contexts_of_each_class_are_tested_on_its_items(gaps):
    """Strata by bin and context, histories of the last 20 reports: the same numbers by a loop over the tracks."""
    frames, objects, _ = LONG
    observed = count_and_observe(detection_set(*LONG), POLICY, rule_of())[1]
    right = (observed.scene.objects.reported == observed.scene.objects.label).tolist()
    number = [frames[: at + 1].count(name) - 1 for at, name in enumerate(frames)]
    series = [(frames[each.frame], each.track, each.kind) for each in objects]
    asked = counter(rule_of(), Memory(RUN, gaps), detection_set(*LONG))
    found = {(test.label, test.contexts): test for test in asked.tests()}
    assert list(found) == [(kind, contexts) for contexts in ("none", "run:1", "run:2") for kind in ("ped", "obs")]
    for (kind, text), test in found.items():
        contexts, rows = Contexts.parsed(text), []
        for at, each in enumerate(objects):
            if each.kind != kind or each.track < 0 or observed.objects.bin[at] < 0:
                continue
            own = [k for k in range(len(objects)) if series[k] == series[at] and objects[k].frame < each.frame]
            outcomes, last = [], None
            for k in [*own, at]:
                missing = 0 if last is None else number[objects[k].frame] - last - 1
                outcomes = [] if missing and gaps == "break" else outcomes + [0] * missing * (gaps == "miss")
                last = number[objects[k].frame]
                if k != at:
                    outcomes.append(int(right[k]))
            share = float(np.mean([not right[k] for k in own[-20:]])) if own else 0.0
            rows.append((100 * int(observed.objects.bin[at]) + contexts.after(outcomes), int(right[at]), share))
        stratum, outcome, history = (np.array(column) for column in zip(*rows, strict=True))
        z, p_value, permutations = residual_test(stratum, outcome, history, 0)
        assert (test.z, test.p_value) == (pytest.approx(z), p_value)
        assert test.permutations == permutations
    assert asked.tracks().keys() == {"ped", "obs"}
    rows = [k for k in range(len(objects)) if objects[k].kind == "ped" and objects[k].track >= 0]
    keys = sorted({series[k] for k in rows})
    assert asked.tracks()["ped"] == OfTracks.of(
        np.array([keys.index(series[k]) for k in rows]), np.array([number[objects[k].frame] for k in rows]),
        np.array([right[k] for k in rows]), gaps,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "seed", "tests", "tracks"),
    [
        (rule_of(), 0, True, True),
        (rule_of(), None, False, True),
        (rule_of(thresholds=(0.3,)), 0, False, False),
        (rule_of("proposition"), 0, False, False),
    ],
)
def test_what_is_tested_and_told_of_tracks(rule, seed, tests, tracks):
    asked = counter(rule, Memory(RUN, seed=seed))
    assert (next(asked.tests(), None) is not None, asked.tracks() is not None) == (tests, tracks)


def test_sets_of_tracks_have_a_number_each():
    sets = [{1}, {2}, {1, 2}, {1, 3}, {2}, {1, 2}, {-1, 1}, {1, 2, 3}, {3}, {2, 3}]
    item, track = (
        np.array(column) for column in zip(*((k, at) for k, own in enumerate(sets) for at in own), strict=True)
    )
    shuffled = np.random.default_rng(0).permutation(len(item))
    number, whole = _sets_of_tracks(item[shuffled], track[shuffled], len(sets))
    assert whole.tolist() == [min(own) >= 0 for own in sets]
    for one, other in product(np.flatnonzero(whole).tolist(), repeat=2):
        assert (number[one] == number[other]) == (sets[one] == sets[other])
    nothing = np.zeros(0, dtype=np.int64)
    assert [each.tolist() for each in _sets_of_tracks(nothing, nothing, 0)] == [[], []]


def test_histories_look_back_on_twenty_reports_of_the_track():
    right = np.array([0] * 3 + [1] * 20 + [0, 0], dtype=np.int64)
    for begin in (0, 1):  # of the first and of a later series
        series = np.append([0] * begin, np.full(25, 7)).astype(np.int64)
        number = np.append([0] * begin, np.arange(25)).astype(np.int64)
        found = _histories(series, number, np.append([0] * begin, right).astype(np.int64))[begin:]
        assert found[:5] == pytest.approx([0, 1, 1, 1, 3 / 4])
        assert found[20:] == pytest.approx([3 / 20, 2 / 20, 1 / 20, 0, 1 / 20])


def test_tables_by_context_have_a_largest_size(monkeypatch):
    rule, memory = rule_of(thresholds=(0.1, 0.2, 0.3)), Memory(RUN)  # 3 x 3 bins x 6 contexts x 3^2
    monkeypatch.setattr(context_counts, "LARGEST_TABLE", 486)
    counter(rule, memory)
    monkeypatch.setattr(context_counts, "LARGEST_TABLE", 485)
    with pytest.raises(
        LimitError, match=r"^3 thresholds x 3 bins x 6 contexts x 3\^2 labels are 486 counts; at most 485"
    ):
        counter(rule, memory)
    # One class without contexts: 3 bins x 2 x 2^2 = 24 counts of 9 frames, each with 3 places.
    data = detection_set(["A"] * 9, [Object(0, "ped", 5, track=1)], [], ("ped",))
    rule, memory = rule_of(classes=("ped",)), Memory(Contexts())
    monkeypatch.setattr(context_counts, "LARGEST_TABLE", 27)
    assert counter(rule, memory, data).tally().counts.sum() == 27
    monkeypatch.setattr(context_counts, "LARGEST_TABLE", 26)
    with pytest.raises(LimitError, match=r"^9 frames x 3 places of column 'empty' are too many to follow"):
        counter(rule, memory, data).tally()


def test_what_has_no_contexts_is_refused():
    there = [(0, 5, 0), (0, 9, 1), (1, 5, 1), (1, 9, 1)]
    data = detection_set(["A", "A"], [Object(frame, "ped", x, track=track) for frame, x, track in there], [])
    with pytest.raises(InputError) as caught:
        _ = counter(rule_of(), Memory(RUN), data).identity
    assert str(caught.value) == (
        "truth.txt:3: track 1 has two objects of class 'ped' in frame 'A/000001', here and on line 4\n"
        "  hint: a track is one object: give them different tracks, or count without --memory"
    )
    with pytest.raises(UsageError, match="--memory: under this matching each threshold has matches of its own"):
        counter_of(data, None, rule_of(thresholds=(0.1, 0.2)), Memory(RUN))


def test_counts_without_sequences_have_no_tally_by_context():
    data, rule = detection_set(*SCENE), rule_of()
    found, observed = count_and_observe(data, POLICY, rule)
    counts = confusion_counts(found, rule, POLICY)
    made = with_contexts(counts, data, observed, rule, Memory(RUN, "hold", 0.5)).by_context
    assert (made.gaps, made.period_s, made.units, len(made.tests)) == ("hold", 0.5, None, 6)
    bare = with_contexts(replace(counts, sequences=None), data, observed, rule, Memory(RUN)).by_context
    assert (bare.tally, made.tally is None) == (None, False)
    assert bare.counts.sum() == made.counts.sum() == counts.counts.sum()
