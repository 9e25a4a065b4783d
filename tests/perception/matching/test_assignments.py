"""Orders and assignments at their edges: by hand, and against definitions that need no blocks, rounds or tables."""

import numpy as np
import pytest
from slow_matcher import Thing, detection_set

from verifier.base.errors import LimitError
from verifier.perception.matching import MatchingPolicy, match
from verifier.perception.matching import candidates as candidates_module
from verifier.perception.matching import matches as module
from verifier.perception.matching.matches import _sorted, greedy, optimal
from verifier.perception.matching.policy import iou_3d


@pytest.mark.parametrize("seed", range(20))
def test_keys_are_sorted_as_by_numpy(seed):
    # Of few ties only these are sorted again, of many all.
    rng = np.random.default_rng(seed)
    n, most = int(rng.integers(0, 40)), int(rng.choice([2, 30, 1000]))
    keys = [rng.permutation(n), *rng.integers(0, most, (int(rng.integers(1, 4)), n)).astype(float)]
    assert _sorted(keys).tolist() == np.lexsort(keys).tolist()


def test_the_last_key_is_the_first_to_sort_by():
    keys = [np.arange(10), np.arange(10), np.array([5, 0, 1, 2, 3, 4, 6, 7, 8, 9])]
    assert _sorted(keys).tolist() == [1, 2, 3, 4, 5, 0, 6, 7, 8, 9]


@pytest.mark.parametrize("rounds", [0, 1, 32])
def test_walking_and_rounds_take_the_same_pairs(rounds, monkeypatch):
    monkeypatch.setattr(module, "ROUNDS", rounds)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        pairs = rng.permutation([(d, a) for d in range(5) for a in range(5) if rng.random() < 0.6]).reshape(-1, 2)
        walked: dict[int, int] = {}
        for d, a in pairs.tolist():
            if d not in walked and a not in walked.values():
                walked[d] = a
        of_detection, of_annotation = np.full(5, -1), np.full(5, -1)
        greedy(*pairs.T, of_detection, of_annotation)
        assert {d: a for d, a in enumerate(of_detection.tolist()) if a >= 0} == walked
        assert {d: a for a, d in enumerate(of_annotation.tolist()) if d >= 0} == walked


def test_no_more_is_assigned_than_can_be(monkeypatch):
    # Detection 0 is alike all three annotations, and annotation 0 all detections: two pairs of the table's three.
    pairs = np.array([0, 0, 0, 1, 2]), np.array([0, 1, 2, 0, 0]), np.array([0, 0.5, 0.25, 0.5, 0.25])
    for largest in (9, 8):
        monkeypatch.setattr(module, "LARGEST_TABLE", largest)
        of_detection, of_annotation = np.full(3, -1), np.full(3, -1)
        if largest == 9:
            optimal(*pairs, of_detection, of_annotation)
            assert (of_detection.tolist(), of_annotation.tolist()) == ([2, -1, 0], [2, -1, 0])
        else:
            with pytest.raises(LimitError, match="a table of 9 entries exceeds the limit of 8"):
                optimal(*pairs, of_detection, of_annotation)


def places(*metres, scored=False):
    return [Thing(0, 0, (x, 0, 0, 1, 1, 1, 0), *([0.5] if scored else [])) for x in metres]


def test_one_more_pair_outweighs_metres():
    # 9 and 9 m are two pairs, 0 m is one; the pair of 18 m does not count.
    data = detection_set(places(0, 9), places(0, -9, scored=True), 1, 7, None)
    found = match(data, MatchingPolicy("centre_bev", 10.0, assignment="optimal"))
    assert found.annotation_of.tolist() == [1, 0]


def test_of_equal_detections_of_one_object_the_surer_is_assigned():
    rectangle = (0, 0, 4, 4)
    boxes = [Thing(0, 0, rectangle, score) for score in (0.1, 0.9, 0.5)]
    data = detection_set([Thing(0, 0, rectangle)], boxes, 1, 4, None)
    found = match(data, MatchingPolicy("iou_2d", 0.5, assignment="optimal"))
    assert found.annotation_of.tolist() == [-1, 0, -1]


@pytest.mark.parametrize("block", [1, 3, 5, 2**15])
def test_frames_are_matched_the_same_in_blocks_of_any_size(block, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", block)
    monkeypatch.setattr(candidates_module, "BLOCK", block)
    frames, rectangle = range(7), (0, 0, 4, 4)
    boxes = [Thing(frame, 0, rectangle, score) for frame in frames for score in (0.5, 0.9)]
    data = detection_set([Thing(frame, 0, rectangle) for frame in frames], boxes, 7, 4, None)
    found = match(data, MatchingPolicy("iou_2d", 0.5))
    assert found.annotation_of.tolist() == [k for frame in frames for k in (-1, frame)]


@pytest.mark.parametrize(("strict", "ignored"), [(False, True), (True, False)])
def test_half_in_a_region_is_enough_unless_strict(strict, ignored):
    data = detection_set([], [Thing(0, 0, (0, 0, 4, 4), 0.5)], 1, 4, [Thing(0, 0, (2, 0, 90, 90))])
    found = match(data, MatchingPolicy("iou_2d", 0.5, strict=strict, ignore_overlap=0.5))
    assert found.ignored.tolist() == [ignored]


def test_all_of_a_detection_may_be_asked_to_lie_in_a_region():
    assert MatchingPolicy("iou_2d", 0.5, ignore_overlap=1.0).ignore_overlap == 1


def test_a_box_within_a_higher_one_shares_its_height_and_no_more():
    z = np.random.default_rng(2).uniform(-9, 9, 500)
    inner, outer = np.zeros((500, 7)), np.zeros((500, 7))
    inner[:, 2], outer[:, 2], inner[:, 3:5], outer[:, 3:5], inner[:, 5], outer[:, 5] = z, z, 2, 2, 1.1, 9
    assert (z + 0.55 - (z - 0.55) > 1.1).any()  # as the difference of two sums it may be more
    volume = np.array([2.0 * 2 * 1.1, 2.0 * 2 * 9])
    for a, b in ((inner, outer), (outer, inner)):
        assert (iou_3d(a, b) <= volume[0] / (volume[1] + volume[0] - volume[0])).all()
