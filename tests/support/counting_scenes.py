"""A scene that is counted by hand, and random scenes with random rules of counting."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from plain_counter import Object, Plain, Report

from verifier.perception.confusion.bins import Bins, Variable
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.matching import MatchingPolicy

TWO_METRES = MatchingPolicy("centre_bev", 2.0)
PED, OBS = frozenset({"ped"}), frozenset({"obs"})
BOTH = PED | OBS

# By hand. Two bins, [0, 10) and [10, 20) m; three frames, the first two of sequence A, the third of B.
#
#   frame 0 (A)  ped at 5, reported as ped at 5 (.9) and once more at 5.5 (.5, a duplicate)
#                ped at 8, not reported          obs at 12, reported as ped at 13 (.8)
#   frame 1 (A)  nothing; obs reported at 15 (.4) and ped reported at 16 (.3): false positives in bin 1
#   frame 2 (B)  obs at 10 (the edge belongs to bin 1), reported as obs at 10 (.7);
#                obs reported at 9 (.2): in reach of that object, so a duplicate, and it lies in bin 0
FRAMES = ["A", "A", "B"]
OBJECTS = [Object(0, "ped", 5), Object(0, "ped", 8, occluded=1), Object(0, "obs", 12), Object(2, "obs", 10)]
REPORTS = [
    Report(0, "ped", 5, score=0.9),
    Report(0, "ped", 5.5, score=0.5),
    Report(0, "ped", 13, score=0.8),
    Report(1, "obs", 15, score=0.4),
    Report(1, "ped", 16, score=0.3),
    Report(2, "obs", 10, score=0.7),
    Report(2, "obs", 9, score=0.2),
]
BINS = Bins((0.0, 10.0, 20.0))
BY_CLASS = CountingRule("class", ("ped", "obs"), BINS)
BY_SET = replace(BY_CLASS, labelling="proposition")


# Random scenes. Coordinates are small integers, so that ties and edges happen.

COORDINATES = st.tuples(st.integers(-30, 30), st.integers(-4, 4))
SCORES = st.sampled_from([0.1, 0.2, 0.3, 0.4, 0.5])


@st.composite
def scenes(draw):
    frames = draw(st.lists(st.sampled_from(["A", "B", "C"]), min_size=1, max_size=5))
    kind, frame = st.sampled_from(["ped", "obs"]), st.integers(0, len(frames) - 1)
    objects = draw(st.lists(st.tuples(frame, kind, COORDINATES, st.integers(0, 2)), max_size=9))
    reports = draw(st.lists(st.tuples(frame, kind, COORDINATES, SCORES), max_size=9))
    found = [Object(f, k, *at, occluded) for f, k, at, occluded in objects]
    # Half of the reports lie on or beside an object, so that most scenes have matches and duplicates.
    told = []
    for f, k, at, score in reports:
        if objects and draw(st.booleans()):
            base = draw(st.sampled_from(found))
            told.append(Report(base.frame, k, base.x + at[1] / 2, base.y, score))
        else:
            told.append(Report(f, k, *at, score))
    return frames, found, told


POLICIES = st.builds(
    MatchingPolicy,
    st.just("centre_bev"),
    st.sampled_from([1.0, 2.0, 4.0]),
    st.sampled_from(["greedy", "optimal"]),
    class_aware=st.booleans(),
)
LEFTOVER = st.sampled_from(["drop", "own_bin", "nearest_bin"])
EDGES = (0.0, 5.0, 10.0, 20.0)
OCCLUDED = Variable("occluded", groups=(("seen", ("0",)), ("hidden", ("1",))))
DRIVE = Variable("sequence", groups=(("a", ("A",)), ("other", ("B", "C"))))
BEARING = Variable("bearing_deg", edges=(-180.0, -90.0, 0.0, 90.0, 180.0))


def distance_bin(metres):
    return next((k for k in range(3) if EDGES[k] <= metres < EDGES[k + 1]), None)


def bearing_bin(thing):
    turn = math.degrees(math.atan2(thing.y, thing.x))
    return 0 if turn == 180 else int((turn + 180) // 90)


PLAIN = {
    (): Plain(distance_bin, 3),
    (OCCLUDED,): Plain(
        distance_bin,
        3,
        object_bins=lambda thing: None if thing.occluded > 1 else (thing.occluded,),
        all_object_bins=((0,), (1,)),
    ),
    (DRIVE,): Plain(
        distance_bin,
        3,
        place_bins=lambda thing, sequence: (int(sequence != "A"),),
        all_place_bins=lambda sequence: [(int(sequence != "A"),)],
    ),
    (DRIVE, BEARING): Plain(
        distance_bin,
        3,
        place_bins=lambda thing, sequence: (int(sequence != "A"), bearing_bin(thing)),
        all_place_bins=lambda sequence: [(int(sequence != "A"), k) for k in range(4)],
    ),
}


@st.composite
def rules(draw, labellings=("class", "proposition", "group")):
    labelling = draw(st.sampled_from(labellings))
    variables = draw(st.sampled_from([key for key in PLAIN if labelling != "proposition" or key != (OCCLUDED,)]))
    return CountingRule(
        labelling,
        ("ped", "obs"),
        Bins(EDGES, variables),
        "ground_plane",
        draw(LEFTOVER),
        draw(LEFTOVER),
        "drop",
        draw(st.sampled_from([0.0, 2.0, 5.0, 50.0])) if labelling == "group" else None,
    )


def as_counter(tally, sequences, rule, member=0):
    """{(sequence, bin, reported, true): count} of the cells that are not zero."""
    found = Counter()
    for (sequence, at, predicted, true), counts in zip(tally.index.tolist(), tally.counts.tolist(), strict=True):
        place = tuple(int(k) for k in np.unravel_index(at, rule.bins.shape))
        if counts[member]:
            found[sequences[sequence], place, rule.labels[predicted], rule.labels[true]] = counts[member]
    return found
