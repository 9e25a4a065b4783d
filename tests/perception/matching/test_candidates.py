"""Which pairs are compared: windows by hand, and all pairs within them, no more and no fewer."""

import numpy as np
import pytest

import verifier.perception.matching.candidates as module
from verifier.perception.matching import MatchingPolicy
from verifier.perception.matching.candidates import (
    Windows,
    _cut,
    _runs,
    candidates,
    centres,
    reach,
)

# Of rectangles: left, top, right, bottom. In space: x, y, z, length, width, height, yaw; half diagonals 2.5 and 5.
RECTANGLE = np.array([[10.0, 20, 14, 22]])
BOX, OTHERS = np.array([[-7.0, 9, 0, 3, 4, 1, 0]]), np.array([[1.0, 2, 0, 6, 8, 1, 0], [3.0, 4, 0, 1, 1, 1, 0]])


@pytest.mark.parametrize(
    ("affinity", "threshold", "detection", "annotation", "before", "behind"),
    [
        # IoU of .25 of sides 4 and 2: three quarters of a side behind the corner, and three sides before it.
        ("iou_2d", 0.25, RECTANGLE, RECTANGLE, (12, 6), (3, 1.5)),
        ("iou_bev", 0.25, BOX, OTHERS, (7.5, 7.5), (7.5, 7.5)),
        ("iou_3d", 0.25, BOX, OTHERS, (7.5, 7.5), (7.5, 7.5)),
        ("centre_bev", 2.0, BOX[:, :2], OTHERS[:, :2], (2, 2), (2, 2)),
    ],
)
def test_windows_by_hand(affinity, threshold, detection, annotation, before, behind):
    found = reach(MatchingPolicy(affinity, threshold), detection, annotation)
    for axis in (0, 1):
        middle = detection[0, axis]
        slack = 1e-9 * (abs(middle) + before[axis] + behind[axis])  # more than rounding can do
        assert found.key[axis].tolist() == annotation[:, axis].tolist()
        assert found.low[axis].tolist() == pytest.approx([middle - before[axis] - slack], rel=0, abs=1e-12)
        assert found.high[axis].tolist() == pytest.approx([middle + behind[axis] + slack], rel=0, abs=1e-12)


def compared(detection_group, annotation_group, windows):
    """The pairs, each once, from blocks that follow each other."""
    found = candidates(detection_group, annotation_group, windows)
    assert (np.diff(found.ends) > 0).all()  # each of its detections has some
    groups = [set(detection_group[found.detections[begin:end]].tolist()) for begin, end in found.blocks()]
    assert sum(map(len, groups)) == len(set().union(*groups))  # blocks hold whole groups
    for (begin, end), own in zip(found.blocks(), groups, strict=True):
        assert len(own) == 1 or found.ends[end] - found.ends[begin] <= module.BLOCK
    pairs = [
        pair
        for begin, end in found.blocks()
        for some in found.pairs(begin, end)
        for pair in zip(*(rows.tolist() for rows in some), strict=True)
    ]
    assert len(set(pairs)) == len(pairs)
    return set(pairs)


def expected(detection_group, annotation_group, windows):
    """The pairs within both windows, of which the first is that of the least or greatest key where all lie beside."""
    known = windows.key[0][~np.isnan(windows.key[0])]
    ends = [np.clip(side[0], known.min(initial=99), known.max(initial=-99)) for side in (windows.low, windows.high)]
    windows = Windows(windows.key, (ends[0], windows.low[1]), (ends[1], windows.high[1]))
    return {
        (d, a)
        for d, one in enumerate(detection_group.tolist())
        for a, other in enumerate(annotation_group.tolist())
        if one == other and all(windows.low[k][d] <= windows.key[k][a] <= windows.high[k][d] for k in (0, 1))
    }


@pytest.mark.parametrize("seed", range(60))
def test_pairs_are_those_within_both_windows(seed, monkeypatch):
    # Whole numbers, so that keys lie on the ends of windows; some boxes are unknown, some groups have one side only.
    monkeypatch.setattr(module, "BLOCK", (3, 8, 2**15)[seed % 3])
    rng = np.random.default_rng(seed)
    m, n, groups = int(rng.integers(0, 12)), int(rng.integers(0, 12)) * (seed > 3), int(rng.integers(1, 5))
    detection_group, annotation_group = rng.integers(0, groups, m), rng.integers(0, groups, n) + seed % 2
    low = rng.integers(-6, 7, (2, m)).astype(float)
    high, key = low + rng.integers(0, 6, (2, m)), rng.integers(-6, 7, (2, n)).astype(float)
    for axes, count in ((low, m), (key, n)):
        axes[0, rng.random(count) < 0.1] = np.nan
    given = detection_group, annotation_group, Windows(tuple(key), tuple(low), tuple(high))
    assert compared(*given) == expected(*given)


def test_keys_too_far_apart_to_be_numbered_are_compared_within_their_groups():
    key, flat, group = np.array([-1e308, 0, 1e308]), np.zeros(3), np.array([0, 1, 1])
    given = group, group, Windows((key, flat), (key - 1, flat), (key + 1, flat))
    assert expected(*given) <= compared(*given) <= {(0, 0), (1, 1), (1, 2), (2, 1), (2, 2)}


def test_no_pair_is_lost_where_group_and_key_are_rounded_as_one_number():
    # The greatest key of a group and the least of the next become numbers that may be rounded to the same.
    rng = np.random.default_rng(5)
    for span in rng.uniform(1e7, 1e8, 300):
        group, key = np.array([0, 1]) + int(rng.integers(10**8, 10**9)), np.array([span, 0.0]) - rng.uniform(0, 2e8)
        begin, end = _runs(key, group, key, key, group)
        assert (begin <= [0, 1]).all(), span
        assert (end > [0, 1]).all(), span
    key = np.array([4e9, 0])
    begin, end = _runs(key, np.array([0, 1]), key - 0.5, key + 0.5, np.array([0, 1]))
    assert (begin.tolist(), end.tolist()) == ([0, 1], [1, 2])
    key, group = np.array([1e12, 1e12 + 1]), np.array([0, 0])
    begin, end = _runs(key, group, key, key, group)
    assert (begin.tolist(), end.tolist()) == ([0, 1], [1, 2])


def test_centres_by_hand():
    box = np.array([[1.0, 2, 4, 8, 16, 32, 64]])
    for affinity, own, centre in (
        ("centre_2d", box[:, :4], [2.5, 5]),
        ("centre_bev", box, [1, 2]),
        ("centre_3d", box, [1, 2, 4]),
    ):
        assert centres(MatchingPolicy(affinity, 1.0), own).tolist() == [centre]


def test_neighbouring_borders_are_joined_up_to_a_block(monkeypatch):
    # Pairs up to each border: 0, 3, 5, 9, 20, 21. A range of more than 5 is one of two neighbours.
    monkeypatch.setattr(module, "BLOCK", 5)
    ends, borders = np.array([0, 1, 3, 5, 6, 9, 20, 21]), np.array([0, 2, 3, 5, 6, 7])
    assert list(_cut(ends, borders)) == [(0, 3), (3, 5), (5, 6), (6, 7)]
    assert list(_cut(ends, borders[:1])) == []
