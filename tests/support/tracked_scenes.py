"""Random scenes in which objects have tracks, with a family of thresholds; and whether two counts by track agree."""

from dataclasses import replace

import numpy as np
from counting_scenes import EDGES, LEFTOVER, PLAIN, scenes
from hypothesis import strategies as st
from plain_counter import CLASSES

from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.matching import MatchingPolicy

THRESHOLDS = (0.15, 0.25, 0.45)


@st.composite
def tracked(draw):
    """A scene in which objects have tracks, a rule with a family, and a policy."""
    frames, objects, reports = draw(scenes())
    tracks = st.integers(-1, 2)
    objects = [replace(each, track=draw(tracks)) for each in objects]
    variables = draw(st.sampled_from(list(PLAIN)))
    rule = CountingRule(
        "class", CLASSES, Bins(EDGES, variables), "ground_plane", draw(LEFTOVER), "drop", "drop", None, THRESHOLDS
    )
    policy = MatchingPolicy("centre_bev", 2.0, draw(st.sampled_from(["greedy", "optimal"])))
    return (frames, objects, reports), rule, policy


def same_tracks(first, second):
    assert dict(first.tables()).keys() == dict(second.tables()).keys()
    for (_, one), (_, other) in zip(first.tables(), second.tables(), strict=True):
        assert one.index.tolist() == other.index.tolist()
        assert one.columns.tolist() == other.columns.tolist()
        assert one.track_counts.tolist() == other.track_counts.tolist()
        assert np.allclose(one.shares, other.shares, rtol=0, atol=1e-12)
