"""Matching: the conventions by hand, then all policies against the slow matcher on random scenes."""

import math
from contextlib import ExitStack
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shorthands import match_count
from slow_matcher import Thing, best_matchings, crowded_scene, detection_set, pairs_of, slow_ignored, slow_match

import verifier.perception.matching.candidates
import verifier.perception.matching.matches
from verifier.base.errors import LimitError, UsageError
from verifier.perception.detections.columns import Boxes
from verifier.perception.matching import CONVENTIONS, MatchingPolicy, convention, match
from verifier.perception.matching.policy import iou_2d, iou_3d, iou_bev

GREEDY = MatchingPolicy("iou_2d", 0.25)


def annotation(*box, frame=0, label=0):
    return Thing(frame, label, box)


def detection(*box, frame=0, label=0, score=1.0):
    return Thing(frame, label, box, score)


def matched(annotations, detections, policy, regions=None, width=4):
    frames = max((thing.frame for thing in [*annotations, *detections]), default=0) + 1
    return match(detection_set(annotations, detections, frames, width, regions), policy)


# By hand. A row of boxes 4 high; two of them shifted by s share 4 - s of 4 + s columns.

LEFT, RIGHT = annotation(0, 0, 4, 4), annotation(2, 0, 6, 4)


def test_the_surest_detection_chooses_first_and_the_other_takes_what_is_left():
    # Both cover RIGHT best; IoU of the second with LEFT: shift 1, 3/5. The first (score .9) lies exactly on RIGHT.
    found = matched([LEFT, RIGHT], [detection(1, 0, 5, 4, score=0.5), detection(2, 0, 6, 4, score=0.9)], GREEDY)
    assert found.annotation_of.tolist() == [0, 1]
    assert found.detection_of.tolist() == [0, 1]
    assert found.affinity.tolist() == [3 / 5, 1]


def test_a_surer_detection_takes_an_object_from_a_better_placed_one():
    boxes = [detection(0, 0, 4, 4, score=0.5), detection(1, 0, 5, 4, score=0.9)]
    assert matched([LEFT], boxes, GREEDY).annotation_of.tolist() == [-1, 0]
    assert matched([LEFT], boxes, replace(GREEDY, order="affinity")).annotation_of.tolist() == [0, -1]
    assert matched([LEFT], boxes, replace(GREEDY, order="annotation")).annotation_of.tolist() == [0, -1]
    assert matched([LEFT], boxes, replace(GREEDY, assignment="optimal")).annotation_of.tolist() == [0, -1]


def test_every_detection_of_one_object_but_one_is_a_duplicate():
    found = matched([LEFT], [detection(0, 0, 4, 4, score=s) for s in (0.1, 0.7, 0.4)], GREEDY)
    assert found.annotation_of.tolist() == [-1, 0, -1]
    assert found.nearest.tolist() == [0, 0, 0]
    assert np.isnan(found.affinity[[0, 2]]).all()
    assert match_count(found) == 1


def test_greedy_strands_a_detection_that_optimal_assignment_serves():
    # The surer one covers both and prefers RIGHT (shift 0 against 2/6), the only object of the other (shift 2).
    boxes = [detection(2, 0, 6, 4, score=0.9), detection(4, 0, 8, 4, score=0.1)]
    assert matched([LEFT, RIGHT], boxes, GREEDY).annotation_of.tolist() == [1, -1]
    assert matched([LEFT, RIGHT], boxes, replace(GREEDY, assignment="optimal")).annotation_of.tolist() == [0, 1]


def test_a_detection_whose_best_object_is_taken_moves_on_unless_only_the_best_counts():
    boxes = [detection(2, 0, 6, 4, score=0.9), detection(2, 0, 6, 4, score=0.1)]
    assert matched([LEFT, RIGHT], boxes, GREEDY).annotation_of.tolist() == [1, 0]
    assert matched([LEFT, RIGHT], boxes, replace(GREEDY, only_best=True)).annotation_of.tolist() == [1, -1]


def test_the_threshold_belongs_to_the_pairs_unless_strict():
    # Shift 2: 2/6 of the columns is below one half; shift 4/3 would be a half. Halves: 4x4 against its half 4x2.
    half = detection(0, 0, 4, 2)
    assert match_count(matched([LEFT], [half], convention("coco"))) == 1
    assert match_count(matched([LEFT], [half], convention("kitti"))) == 0
    car = Thing(0, 0, (10, 3, 0, 4, 2, 1, 0))
    two_metres_off = Thing(0, 0, (12, 3, 0, 4, 2, 1, 0), 0.5)
    assert match_count(matched([car], [two_metres_off], MatchingPolicy("centre_bev", 2.0), width=7)) == 1
    assert match_count(matched([car], [two_metres_off], convention("nuscenes"), width=7)) == 0


def test_classes():
    annotations = [annotation(0, 0, 4, 4, label=0), annotation(1, 0, 5, 4, label=1)]
    boxes = [detection(0, 0, 4, 4, label=1)]
    assert matched(annotations, boxes, GREEDY).annotation_of.tolist() == [0]
    assert matched(annotations, boxes, replace(GREEDY, class_aware=True)).annotation_of.tolist() == [1]
    assert matched(annotations, boxes, replace(GREEDY, same_class_first=True)).annotation_of.tolist() == [1]
    assert matched(annotations[:1], boxes, replace(GREEDY, same_class_first=True)).annotation_of.tolist() == [0]
    assert matched(annotations[:1], boxes, replace(GREEDY, class_aware=True)).annotation_of.tolist() == [-1]


@pytest.mark.parametrize("name", CONVENTIONS)
def test_only_supervision_matches_unequal_classes(name):
    policy = convention(name, affinity="iou_2d", threshold=0.5)
    found = matched([annotation(0, 0, 4, 4, label=1)], [detection(0, 0, 4, 4)], policy)
    assert found.annotation_of.tolist() == [0 if name == "supervision" else -1]


@pytest.mark.parametrize(
    ("truth", "seen", "policy"),
    [
        ((-12, 0, 4, 4), (0, 0, 4, 4), GREEDY),  # a quarter, as far to the left as can be; and upwards
        ((0, -12, 4, 4), (0, 0, 4, 4), GREEDY),
        ((0, 0, 4, 4), (0, 0, 4, 4), replace(GREEDY, threshold=1.0)),  # nowhere else
        ((-2, -2, 2, 2), (-2, -2, 2, 2), MatchingPolicy("centre_2d", 0.0)),
    ],
)
def test_a_pair_at_the_edge_of_its_window_is_compared(truth, seen, policy):
    assert matched([annotation(*truth)], [detection(*seen)], policy).annotation_of.tolist() == [0]


def test_frames_stay_apart_where_coordinates_are_large():
    objects = [annotation(x, 0, x + 4, 4, frame=frame) for frame in (0, 1) for x in (0, 1e12)]
    seen = [replace(thing, score=0.5) for thing in objects]
    assert matched(objects, seen, GREEDY).annotation_of.tolist() == [0, 1, 2, 3]


def test_a_detection_where_nothing_is_annotated_matches_nothing():
    assert matched([], [detection(0, 0, 4, 4)], GREEDY).annotation_of.tolist() == [-1]


def test_ties():
    twins = [annotation(0, 0, 4, 4), annotation(0, 0, 4, 4)]
    equal = [detection(0, 0, 4, 4), detection(0, 0, 4, 4)]
    for name, by_detection in {"coco": [1, 0], "nuscenes": [1, 0], "kitti": [0, 1], "pascal_voc": [0, -1]}.items():
        policy = replace(CONVENTIONS[name], affinity="iou_2d", threshold=0.5)
        assert matched(twins, equal, policy).annotation_of.tolist() == by_detection, name
    # COCO's first detection takes the last object; nuScenes' last detection takes the first object.
    assert matched(twins, equal[:1], convention("coco")).detection_of.tolist() == [-1, 0]
    assert matched(twins[:1], equal, convention("coco")).detection_of.tolist() == [0]
    nuscenes = convention("nuscenes", affinity="centre_2d")
    assert matched(twins, equal[:1], nuscenes).detection_of.tolist() == [0, -1]
    assert matched(twins[:1], equal, nuscenes).detection_of.tolist() == [1]


def test_ties_among_the_detections_of_an_object():
    equal = [detection(0, 0, 4, 4, score=0.1), detection(0, 0, 4, 4, score=0.9)]
    assert matched([LEFT], equal, convention("kitti")).detection_of.tolist() == [0]
    assert matched([LEFT], equal, convention("kitti", score_ties="last")).detection_of.tolist() == [1]
    assert matched([LEFT], equal, replace(GREEDY, order="affinity")).detection_of.tolist() == [1]


def test_detections_in_a_region_to_ignore_are_neither_match_nor_false_positive():
    crowd = [annotation(0, 0, 100, 100, label=-1)]
    boxes = [detection(0, 0, 4, 4), detection(50, 50, 60, 60), detection(95, 95, 105, 105), detection(200, 0, 210, 9)]
    found = matched([LEFT], boxes, convention("coco"), regions=crowd)
    assert found.annotation_of.tolist() == [0, -1, -1, -1]
    assert found.ignored.tolist() == [False, True, False, False]
    assert matched([LEFT], boxes, GREEDY, regions=crowd).ignored.tolist() == [False] * 4
    other_class = [replace(crowd[0], label=1)]
    assert not matched([LEFT], boxes, convention("coco"), regions=other_class).ignored.any()
    class_agnostic = replace(GREEDY, ignore_overlap=0.5)
    assert matched([LEFT], boxes, class_agnostic, regions=other_class).ignored.tolist() == [False, True, False, False]


@pytest.mark.parametrize("policy", CONVENTIONS.values(), ids=CONVENTIONS.keys())
def test_nothing_matches_nothing(policy):
    width = 4 if policy.column == "box_2d" else 7
    for annotations, boxes in (([], []), ([Thing(0, 0, None)], []), ([], [Thing(0, 0, None, 0.5)])):
        found = matched(annotations, boxes, policy, width=width)
        assert match_count(found) == 0
        assert len(found.detection_of) == len(annotations)
        assert len(found.annotation_of) == len(found.nearest) == len(found.ignored) == len(boxes)


@pytest.mark.filterwarnings("error")
def test_boxes_beyond_all_measure_match_nothing_and_say_nothing():
    huge = [annotation(-1.5e308, 0, -1e308, 4), annotation(1e308, 0, 1.5e308, 4), annotation(0, 0, 4, 4)]
    boxes = [detection(-1.5e308, 0, -1e308, 4), detection(0, 0, 4, 4)]
    assert matched(huge, boxes, GREEDY).annotation_of.tolist() == [-1, 2]
    assert match_count(matched(huge[:1], boxes[:1], MatchingPolicy("centre_2d", 1e308))) == 1
    # Coordinates whose difference overflows leave no window, but frames stay apart.
    elsewhere = [annotation(50, 0, 54, 4, frame=1)]
    there = [detection(0, 0, 4, 4, frame=1), detection(50, 0, 54, 4, frame=0)]
    assert match_count(matched([*huge, *elsewhere], there, GREEDY)) == 0


# Refusals.


def test_a_policy_needs_the_boxes_it_compares():
    with pytest.raises(UsageError, match=r"boxes in space \(box_3d\), which the annotations do not have"):
        matched([LEFT], [detection(0, 0, 4, 4)], MatchingPolicy("iou_3d", 0.5))
    with pytest.raises(UsageError, match=r"image rectangles \(box_2d\), which the detections do not have"):
        matched([], [Thing(0, 0, (0, 0, 0, 1, 1, 1, 0), 0.5)], MatchingPolicy("iou_2d", 0.5), width=7)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threshold": 0.0}, r"IoU threshold must lie in \(0, 1\]"),
        ({"threshold": 1.5}, r"IoU threshold must lie in \(0, 1\]"),
        ({"threshold": math.nan}, r"IoU threshold must lie in \(0, 1\]"),
        ({"affinity": "centre_bev", "threshold": -1.0}, "distance threshold must be finite and at least 0"),
        ({"affinity": "centre_bev", "threshold": math.inf}, "distance threshold must be finite and at least 0"),
        ({"affinity": "giou"}, "affinity must be one of iou_2d, .*got 'giou'"),
        ({"order": "random"}, "order must be one of"),
        ({"assignment": "hungarian"}, "assignment must be one of greedy, optimal"),
        ({"score_ties": "any"}, "score_ties must be one of first, last"),
        ({"ignore_overlap": 0.0}, r"ignore_overlap must lie in \(0, 1\]"),
        ({"ignore_overlap": 1.5}, r"ignore_overlap must lie in \(0, 1\]"),
        ({"class_aware": True, "same_class_first": True}, "same_class_first says nothing"),
        ({"assignment": "optimal", "only_best": True}, "are choices of greedy matching"),
        ({"assignment": "optimal", "order": "affinity"}, "are choices of greedy matching"),
    ],
)
def test_a_policy_is_valid_from_birth(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(GREEDY, **changes)


def test_conventions_by_name():
    assert convention("nuscenes", threshold=4.0) == MatchingPolicy(
        "centre_bev", 4.0, class_aware=True, strict=True, score_ties="last"
    )
    with pytest.raises(UsageError, match=r"unknown matching convention 'cocoo'.*did you mean 'coco'"):
        convention("cocoo")


@pytest.mark.parametrize("policy", CONVENTIONS.values(), ids=CONVENTIONS.keys())
def test_a_policy_is_recorded_completely(policy):
    assert MatchingPolicy(**policy.record()) == policy


def test_optimal_assignment_of_too_many_boxes_is_refused():
    boxes = [detection(0, 0, 4, 4) for _ in range(4)]
    with (
        mock.patch.object(verifier.perception.matching.matches, "LARGEST_TABLE", 7),
        pytest.raises(LimitError, match="4 detections and 2 annotations compete in one frame; a table of 8 entries"),
    ):
        matched([LEFT, RIGHT], boxes, replace(GREEDY, assignment="optimal"))


# Against the slow matcher.

place, size = st.integers(0, 4), st.integers(0, 4)
rectangle = st.tuples(place, place, size, size).map(lambda t: (t[0], t[1], t[0] + t[2], t[1] + t[3]))
upright = st.tuples(place, place, st.integers(0, 1), size, size, st.integers(0, 2)).map(lambda t: (*t, 0))
frame, label = st.integers(0, 2), st.integers(0, 1)
score = st.sampled_from([-1.0, 0.25, 0.5, 0.75])


def things(box, scores, most):
    box = st.one_of(box, box, box, box, box, box, box, st.none())
    return st.lists(st.builds(Thing, frame, label, box, scores), max_size=most)


@st.composite
def policies(draw, width, assignment="greedy"):
    name = draw(
        st.sampled_from(["iou_2d", "centre_2d"] if width == 4 else ["iou_bev", "iou_3d", "centre_bev", "centre_3d"])
    )
    by_distance = name.startswith("centre")
    classes = draw(st.sampled_from(["any", "same", "same_first"] if assignment == "greedy" else ["any", "same"]))
    choices = {}
    if assignment == "greedy":
        choices = {
            "order": draw(st.sampled_from(["score", "affinity", "annotation"])),
            "only_best": draw(st.booleans()),
            "same_class_first": classes == "same_first",
        }
    return MatchingPolicy(
        name,
        draw(st.sampled_from([0.0, 1.0, 2.0, 2.5, 100.0] if by_distance else [0.0625, 0.125, 0.25, 0.5, 1.0])),
        assignment,
        class_aware=classes == "same",
        strict=draw(st.booleans()),
        score_ties=draw(st.sampled_from(["first", "last"])),
        affinity_ties=draw(st.sampled_from(["first", "last"])),
        ignore_overlap=draw(st.sampled_from([None, 0.25, 0.5, 1.0])) if width == 4 else None,
        **choices,
    )


@st.composite
def scenes(draw, assignment="greedy", most=9):
    width = draw(st.sampled_from([4, 7]))
    box = rectangle if width == 4 else upright
    regions = st.lists(st.builds(Thing, frame, st.integers(-1, 1), rectangle), max_size=3)
    return (
        width,
        draw(policies(width, assignment)),
        draw(things(box, st.just(0.0), most)),
        draw(things(box, score, most)),
        draw(regions) if width == 4 else None,
    )


blocks = st.sampled_from([1, 5, verifier.perception.matching.candidates.BLOCK])
rounds = st.sampled_from([0, 1, verifier.perception.matching.matches.ROUNDS])


def work_sizes(block):
    """Pairs compared and pairs assigned at a time."""
    together = ExitStack()
    for module in (verifier.perception.matching.candidates, verifier.perception.matching.matches):
        together.enter_context(mock.patch.object(module, "BLOCK", block))
    return together


def check_greedy(scene, block, most_rounds):
    width, policy, annotations, detections, regions = scene
    data = detection_set(annotations, detections, 3, width, regions)
    with (
        work_sizes(block),
        mock.patch.object(verifier.perception.matching.matches, "ROUNDS", most_rounds),
    ):
        found = match(data, policy)
    expected, nearest = slow_match(policy, annotations, detections)
    pairs = pairs_of(policy, annotations, detections)
    assert {d: a for d, a in enumerate(found.annotation_of.tolist()) if a >= 0} == expected
    assert {a: d for a, d in enumerate(found.detection_of.tolist()) if d >= 0} == {a: d for d, a in expected.items()}
    assert {d: a for d, a in enumerate(found.nearest.tolist()) if a >= 0} == nearest
    for d, value in enumerate(found.affinity.tolist()):
        exact = float(pairs[d, expected[d]]) if d in expected else math.nan
        assert value == pytest.approx(
            math.sqrt(-exact) if policy.by_distance else exact, rel=1e-15, abs=0, nan_ok=True
        )
    ignored = set() if policy.ignore_overlap is None else slow_ignored(policy, detections, regions, expected)
    assert set(np.flatnonzero(found.ignored)) == ignored


def check_optimal(scene, block):
    width, policy, annotations, detections, _ = scene
    with work_sizes(block):
        found = match(detection_set(annotations, detections, 3, width), policy)
    pairs = pairs_of(policy, annotations, detections)
    reward = {pair: -math.sqrt(-value) if policy.by_distance else float(value) for pair, value in pairs.items()}
    chosen = [(d, a) for d, a in enumerate(found.annotation_of.tolist()) if a >= 0]
    assert set(chosen) <= set(pairs)
    assert [found.detection_of[a] for _, a in chosen] == [d for d, _ in chosen]
    count, total = best_matchings(sorted(pairs), reward)
    assert len(chosen) == count == np.count_nonzero(found.detection_of >= 0)
    assert sum(reward[pair] for pair in chosen) == pytest.approx(total, abs=1e-12)


@given(scenes(), blocks, rounds)
def test_greedy_matching_agrees_with_the_rules(scene, block, most_rounds):
    check_greedy(scene, block, most_rounds)


@given(scenes("optimal", most=6), blocks)
def test_optimal_assignment_is_the_best_of_all(scene, block):
    check_optimal(scene, block)


@pytest.mark.slow
@settings(max_examples=8000)
@given(scenes(), blocks, rounds)
def test_greedy_matching_agrees_with_the_rules_on_thousands_of_scenes(scene, block, most_rounds):
    check_greedy(scene, block, most_rounds)


@pytest.mark.slow
@settings(max_examples=3000)
@given(scenes("optimal", most=7), blocks)
def test_optimal_assignment_is_the_best_of_all_on_thousands_of_scenes(scene, block):
    check_optimal(scene, block)


@pytest.mark.parametrize("name", CONVENTIONS)
def test_conventions_agree_with_the_rules_on_crowded_frames(name):
    policy = CONVENTIONS[name]
    policy = replace(policy, threshold=2.5 if policy.by_distance else 0.125, ignore_overlap=None)
    width = 4 if policy.column == "box_2d" else 7
    annotations, detections = crowded_scene(1, 20, width)
    found = match(detection_set(annotations, detections, 20, width), policy)
    expected, nearest = slow_match(policy, annotations, detections)
    assert len(expected) > 100
    assert {d: a for d, a in enumerate(found.annotation_of.tolist()) if a >= 0} == expected
    assert {d: a for d, a in enumerate(found.nearest.tolist()) if a >= 0} == nearest


@pytest.mark.parametrize("affinity", ["iou_bev", "iou_3d"])
@pytest.mark.parametrize(("place", "size"), [((11, 0), (4, 1)), ((0, 11), (1, 4))])
def test_a_small_box_at_the_end_of_a_long_one_is_near_it(affinity, place, size):
    # The last of 20 metres: an IoU of 1 / (20 + 4 - 1), though the centres are 11 m apart; the one seen or the other.
    long = (0, 0, 0, *(20 if each == 4 else 1 for each in size), 1, 0)
    small = (*place, 0, *size, 1, 0)
    others = [Thing(0, 0, (far, far, 0, 1, 1, 1, 0)) for far in (-99, 99)]
    for truth, seen in ((long, small), (small, long)):
        found = matched(
            [Thing(0, 0, truth), *others], [Thing(0, 0, seen, 0.5)], MatchingPolicy(affinity, 0.04), width=7
        )
        assert found.affinity.tolist() == [1 / 23]


def test_the_detections_of_a_frame_are_matched_together_however_few_are_compared_at_a_time():
    # In every frame but the first the last of three detections of one object is the surest.
    objects = [annotation(0, 0, 4, 4, frame=frame) for frame in range(3)]
    seen = [detection(0, 0, 4, 4, frame=k // 3, score=k % 3 if k >= 3 else 3 - k) for k in range(9)]
    with work_sizes(1):
        assert matched(objects, seen, GREEDY).annotation_of.tolist() == [0, -1, -1, -1, -1, 1, -1, -1, 2]


def test_each_frame_has_an_optimal_assignment_of_its_own():
    objects = [replace(each, frame=frame) for frame in range(3) for each in (LEFT, RIGHT)]
    seen = [replace(each, score=0.5) for each in objects]
    found = matched(objects, seen, replace(GREEDY, assignment="optimal"))
    assert found.annotation_of.tolist() == [0, 1, 2, 3, 4, 5]


def test_regions_to_ignore_need_rectangles_of_detections_that_are_not_matched_alone():
    policy = MatchingPolicy("iou_3d", 0.5, ignore_overlap=0.5)
    here, there = Thing(0, 0, (5, 0, 0, 4, 2, 1, 0), 0.5), Thing(0, 0, (50, 0, 0, 4, 2, 1, 0), 0.5)
    none, some = (detection_set([], [], 1, 4, regions).ignored for regions in ([], [LEFT]))
    one, two = (detection_set([here], seen, 1, 7) for seen in ([here], [here, there]))
    for data, regions in ((one, some), (two, none), (two, None)):
        assert not match(data.change(ignored=regions), policy).ignored.any()
    with pytest.raises(UsageError, match="image rectangles"):
        match(two.change(ignored=some), policy)


# Laws.


@given(scenes(), st.randoms(use_true_random=False))
def test_frames_do_not_influence_each_other(scene, random):
    width, policy, annotations, detections, _ = scene
    together = match(detection_set(annotations, detections, 3, width), policy)
    for one in range(3):
        mine = [i for i, thing in enumerate(annotations) if thing.frame == one]
        ours = [i for i, thing in enumerate(detections) if thing.frame == one]
        alone = match(detection_set([annotations[i] for i in mine], [detections[i] for i in ours], 3, width), policy)
        expected = [mine[a] if a >= 0 else -1 for a in alone.annotation_of]
        assert together.annotation_of[ours].tolist() == expected


def test_a_frame_of_many_competing_boxes_is_settled_in_order():
    # Detection i lies half on object i - 1, which it prefers, and half on object i; the surer detection i - 1 decides
    # what is left to it: a chain of 3000 links, which is settled one link at a time.
    n = 3000
    annotations = [annotation(4 * i, 0, 4 * i + 4, 4) for i in range(n)]
    detections = [detection(4 * i - 2, 0, 4 * i + 2, 4, score=(n - i) / n) for i in range(n)]
    found = matched(annotations, detections, MatchingPolicy("iou_2d", 0.25))
    assert found.annotation_of.tolist() == list(range(n))


def test_far_apart_groups_and_coordinates_lose_no_pairs():
    # Group numbers and coordinates so large that their sum is rounded to about 0.1.
    rng = np.random.default_rng(5)
    far = [Thing(int(f), 0, (1e9 + x, 1e9 + x, 1e9 + x + 2, 1e9 + x + 2)) for f, x in enumerate(rng.random(999))]
    near = [Thing(thing.frame, 0, thing.box, 0.5) for thing in far]
    outlier = [Thing(0, 0, (-1e12, 0, -1e12 + 1, 1))]
    found = matched([*far, *outlier], near, MatchingPolicy("iou_2d", 0.99))
    assert found.annotation_of.tolist() == list(range(999))


@pytest.mark.parametrize(
    ("affinity", "threshold"),
    [
        *[("iou_2d", 0.02), ("iou_2d", 0.7), ("iou_bev", 0.02), ("iou_bev", 0.5), ("iou_3d", 0.02)],
        *[("centre_2d", 1.5), ("centre_bev", 1.5), ("centre_3d", 1.5)],
    ],
)
def test_no_pair_is_lost_by_comparing_only_neighbours(affinity, threshold):
    # Boxes of very different sizes, turned in all directions: small ones in the corners of large ones among them.
    rng = np.random.default_rng(8)
    frames, width = 4, 4 if affinity.endswith("2d") else 7

    def some(count):
        size = np.exp(rng.normal(0, 1, (count, 3)))
        place = rng.uniform(0, 9, (count, 3))
        box = np.hstack([place, size, rng.uniform(-4, 4, (count, 1))])
        if width == 4:
            box = np.hstack([place[:, :2], place[:, :2] + size[:, :2]])
        return [Thing(int(rng.integers(frames)), 0, tuple(row), rng.random()) for row in box.tolist()]

    annotations, detections = some(200), some(300)
    near = [tuple(np.array(thing.box) + rng.uniform(0, 0.02, width)) for thing in annotations]
    detections += [replace(thing, box=box, score=0.5) for thing, box in zip(annotations, near, strict=True)]
    policy = MatchingPolicy(affinity, threshold)
    kernel = {"iou_2d": iou_2d, "iou_bev": iou_bev, "iou_3d": iou_3d}.get(affinity)
    truth = np.array([thing.box for thing in annotations])
    together = np.array([thing.frame for thing in annotations])
    expected = []
    for thing in detections:
        mine = np.tile(thing.box, (len(truth), 1))
        if kernel:
            value = kernel(mine, truth)
        else:
            centres = [(box[:, :2] + box[:, 2:]) / 2 if width == 4 else box[:, :3] for box in (mine, truth)]
            axes = 3 if affinity == "centre_3d" else 2
            value = -np.linalg.norm(centres[0][:, :axes] - centres[1][:, :axes], axis=1)
        value[together != thing.frame] = -np.inf
        reaches = value.max() >= (threshold if kernel else -threshold)
        expected.append(int(value.argmax()) if reaches else -1)
    assert sum(a >= 0 for a in expected) > 40
    assert matched(annotations, detections, policy, width=width).nearest.tolist() == expected


@pytest.mark.parametrize("used", [69_990, 12])
def test_many_frames(used):
    # Frame numbers beyond 16 bits, most of them or a few in use, rows in no order: each frame matches its own object,
    # and the detections in ten frames without objects match none.
    frames = 70_000
    rng = np.random.default_rng(6)
    chosen = rng.permutation(frames)
    order = rng.permutation(used + 10)
    same = dict.fromkeys(("box_3d", "distance_m")) | {"attributes": {}}

    def boxes(frame, score):
        rows = len(frame)
        box, none = np.tile([0.0, 0.0, 4.0, 4.0], (rows, 1)), np.zeros(rows, dtype=np.int32)
        return Boxes(frame=frame, label=none, score=score, box_2d=box, line=none + 1, file=none, **same)

    nothing = detection_set([], [], frames)
    truth, found = boxes(chosen[:used], None), boxes(chosen[order], rng.random(used + 10))
    matches = match(nothing.change(annotations=truth, detections=found), GREEDY)
    assert matches.annotation_of.tolist() == np.where(order < used, order, -1).tolist()
