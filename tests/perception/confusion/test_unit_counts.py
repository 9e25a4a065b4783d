"""Counts by track or frame of a scene by hand."""

from dataclasses import replace

import numpy as np
import pytest
from plain_counter import Object, detection_set

from verifier.base.errors import UsageError
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.context_counts import Memory
from verifier.perception.confusion.contexts import Contexts
from verifier.perception.confusion.counting import confusion_counts, count_and_observe
from verifier.perception.confusion.drives import with_units
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.matching import MatchingPolicy


@pytest.mark.parametrize(
    ("units", "names", "frames", "rows"),
    [
        # Of A what has no track, ped, obs and the far bin, which is free; of B ped, obs and the far bin.
        ("track", ["A#0", "A#1", "A#2", "A#3", "B#0", "B#1", "B#2"], [1, 2, 1, 2, 1, 1, 1],
         [[0, 0, 2, 0, 1], [1, 0, 2, 0, 2], [2, 0, 2, 1, 1], [3, 1, 2, 2, 2], [4, 0, 2, 0, 1], [5, 0, 2, 1, 1],
          [6, 1, 2, 2, 1]]),
        ("frame", ["A#0", "A#1", "B#0"], [1, 1, 1],
         [[0, 0, 2, 0, 2], [0, 1, 2, 2, 1], [1, 0, 2, 0, 1], [1, 0, 2, 1, 1], [1, 1, 2, 2, 1], [2, 0, 2, 0, 1],
          [2, 0, 2, 1, 1], [2, 1, 2, 2, 1]]),
    ],
)  # fmt: skip
def test_units_by_hand(units, names, frames, rows):
    """Nothing is reported of a ped in both frames of A and an obs in its second, of one track, of another ped in the
    first, which has none, and of a ped and an obs in B; all at 5 m."""
    there = [(0, "ped", 4), (1, "ped", 4), (1, "obs", 4), (0, "ped", -1), (2, "ped", 4), (2, "obs", 9)]
    data = detection_set(["A", "A", "B"], [Object(frame, kind, 5, track=track) for frame, kind, track in there], [])
    rule, policy = CountingRule("class", ("ped", "obs"), Bins((0.0, 10.0, 20.0))), MatchingPolicy("centre_bev", 2.0)
    found, observed = count_and_observe(data, policy, rule)
    counts = confusion_counts(found, rule, policy)
    divided = with_units(counts, data, observed, rule, Memory(Contexts("run", 1), units=units))
    assert (list(divided.sequences.names), divided.sequences.frames.tolist()) == (names, frames)
    tally = divided.sequences.tally
    assert np.column_stack([tally.index, tally.counts]).tolist() == rows
    assert np.array_equal(divided.by_context.tally.coarser_bins(divided.by_context.per_bin).counts, tally.counts)
    assert divided.by_context.units == units
    sets = replace(rule, labelling="proposition")
    if units == "track":
        with pytest.raises(UsageError, match="--units track: a set of objects is of several tracks"):
            with_units(counts, data, observed, sets, Memory(Contexts("run", 1), units="track"))


def test_a_free_place_and_a_track_are_units_apart():
    rule, policy = CountingRule("class", ("ped",), Bins((0.0, 10.0, 20.0))), MatchingPolicy("centre_bev", 2.0)
    for there, rows in ((5, [[0, 0, 1, 0, 1], [1, 1, 1, 1, 1]]), (15, [[0, 1, 1, 0, 1], [1, 0, 1, 1, 1]])):
        data = detection_set(["A"], [Object(0, "ped", there, track=1)], [], ("ped",))
        found, observed = count_and_observe(data, policy, rule)
        counts = confusion_counts(found, rule, policy)
        divided = with_units(counts, data, observed, rule, Memory(Contexts("run", 1), units="track"))
        assert divided.sequences.names == ("A#0", "A#1")
        assert np.column_stack([divided.sequences.tally.index, divided.sequences.tally.counts]).tolist() == rows
