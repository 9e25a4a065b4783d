"""Matching as the rules are written, one frame and one pair at a time, in exact numbers: an oracle for the package.

A scene is a list of annotations and a list of detections: objects with `frame`, `label`, `score` and `box`, a
rectangle or box with whole coordinates or None. The rules of a policy are read from its fields; nothing else is
shared with the package. Distances are compared as their squares, so no comparison is rounded.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import plain_boxes

from verifier.perception.detections.columns import Boxes, DetectionSet

CLASSES = ("car", "ped")


@dataclass(frozen=True)
class Thing:
    """One annotation, detection or region to ignore."""

    frame: int
    label: int
    box: Any
    score: float = 0.0


def affinity(policy, detection, annotation):
    """How alike two things are, greater is more alike: the IoU, or minus the squared distance."""
    a, b = detection.box, annotation.box
    if policy.affinity == "iou_2d":
        return plain_boxes.iou_2d(a, b)
    if policy.affinity == "iou_bev":
        return plain_boxes.iou_bev((*a[:6], 1, 0), (*b[:6], 1, 0))
    if policy.affinity == "iou_3d":
        return plain_boxes.iou_3d((*a[:6], 1, 0), (*b[:6], 1, 0))
    if policy.affinity == "centre_2d":
        centre = [(Fraction(box[0] + box[2], 2), Fraction(box[1] + box[3], 2)) for box in (a, b)]
        return -plain_boxes.squared_distance(*centre)
    size = 3 if policy.affinity == "centre_3d" else 2
    return -plain_boxes.squared_distance(a[:size], b[:size])


def reaches(policy, value):
    limit = Fraction(policy.threshold)
    if policy.affinity.startswith("centre"):
        limit = -(limit**2)
    return value > limit if policy.strict else value >= limit


def pairs_of(policy, annotations, detections):
    """{(detection, annotation): affinity} of all pairs that may match."""
    found = {}
    for d, detection in enumerate(detections):
        for a, annotation in enumerate(annotations):
            together = detection.frame == annotation.frame and None not in (detection.box, annotation.box)
            if not together or (policy.class_aware and detection.label != annotation.label):
                continue
            value = affinity(policy, detection, annotation)
            if reaches(policy, value):
                found[d, a] = value
    return found


def best_annotation(policy, pairs, detection, allowed):
    """The most alike annotation of a detection among those allowed, or None."""
    choices = [a for d, a in pairs if d == detection and a in allowed]
    if not choices:
        return None
    greatest = max(pairs[detection, a] for a in choices)
    equal = [a for a in choices if pairs[detection, a] == greatest]
    return min(equal) if policy.affinity_ties == "first" else max(equal)


def by_falling_score(policy, detections):
    sign = 1 if policy.score_ties == "first" else -1
    return sorted(range(len(detections)), key=lambda d: (-detections[d].score, sign * d))


def slow_match(policy, annotations, detections):
    """{detection: annotation} and {detection: most alike annotation}, by the greedy rules."""
    pairs = pairs_of(policy, annotations, detections)
    everything = set(range(len(annotations)))
    nearest = {d: best_annotation(policy, pairs, d, everything) for d, _ in pairs}
    if policy.only_best:
        pairs = {(d, a): value for (d, a), value in pairs.items() if nearest[d] == a}
    matched = {}
    for stage in ("same", "other") if policy.same_class_first else ("any",):
        now = {
            (d, a): value
            for (d, a), value in pairs.items()
            if stage == "any" or (detections[d].label == annotations[a].label) == (stage == "same")
        }
        {"score": surest_first, "affinity": most_alike_first, "annotation": annotations_first}[policy.order](
            policy, now, annotations, detections, matched
        )
    return matched, nearest


def surest_first(policy, pairs, annotations, detections, matched):
    """Each detection, the surest first, takes its most alike annotation that is still free."""
    for d in by_falling_score(policy, detections):
        if d not in matched:
            free = set(range(len(annotations))) - set(matched.values())
            choice = best_annotation(policy, pairs, d, free)
            if choice is not None:
                matched[d] = choice


def annotations_first(policy, pairs, annotations, detections, matched):
    """Each annotation, in the order of the input, takes its most alike detection that is still free."""
    for a in range(len(annotations)):
        if a in matched.values():
            continue
        free = [d for d in range(len(detections)) if d not in matched and (d, a) in pairs]
        if policy.score_ties == "last":
            free.reverse()
        if free:
            matched[max(free, key=lambda d: pairs[d, a])] = a  # max keeps the first of equals


def most_alike_first(policy, pairs, annotations, detections, matched):
    """Again and again the most alike pair of a free detection and a free annotation."""
    surest = by_falling_score(policy, detections)
    while True:
        free = [(d, a) for d, a in pairs if d not in matched and a not in matched.values()]
        if not free:
            return
        greatest = max(pairs[pair] for pair in free)
        equal = [pair for pair in free if pairs[pair] == greatest]
        d = min((pair[0] for pair in equal), key=surest.index)
        choices = [a for e, a in equal if e == d]
        matched[d] = min(choices) if policy.affinity_ties == "first" else max(choices)


def best_matchings(pairs, reward):
    """(number of pairs, sum of rewards) of the best one-to-one matching, by trying them all."""
    if not pairs:
        return 0, 0.0
    d, _ = pairs[0]
    best = best_matchings([pair for pair in pairs if pair[0] != d], reward)
    for pair in pairs:
        if pair[0] == d:
            rest = best_matchings([p for p in pairs if p[0] != d and p[1] != pair[1]], reward)
            best = max(best, (rest[0] + 1, rest[1] + reward[pair]))
    return best


def slow_ignored(policy, detections, regions, matched):
    """Detections that are unmatched and lie in a region, by counting the unit squares they share."""
    found = set()
    for d, detection in enumerate(detections):
        for region in regions:
            if d in matched or region.frame != detection.frame or detection.box is None:
                continue
            if policy.class_aware and region.label not in (-1, detection.label):
                continue
            x0, y0, x1, y1 = detection.box
            squares = [(x, y) for x in range(x0, x1) for y in range(y0, y1)]
            left, top, right, bottom = region.box
            inside = sum(left <= x < right and top <= y < bottom for x, y in squares)
            part = Fraction(inside, len(squares)) if squares else Fraction(0)
            if part > policy.ignore_overlap or (part == policy.ignore_overlap and not policy.strict):
                found.add(d)
    return found


def columns(things, width, scored):
    """The `Boxes` of a list of things; width 4 makes `box_2d`, width 7 `box_3d`."""
    box = np.full((len(things), width), np.nan)
    for row, thing in enumerate(things):
        if thing.box is not None:
            box[row] = thing.box
    n = len(things)
    return Boxes(
        frame=np.array([thing.frame for thing in things], dtype=np.int64),
        label=np.array([thing.label for thing in things], dtype=np.int32),
        score=np.array([thing.score for thing in things], dtype=np.float64) if scored else None,
        box_2d=box if width == 4 else None,
        box_3d=box if width == 7 else None,
        distance_m=None,
        attributes={},
        line=np.arange(1, n + 1),
        file=np.zeros(n, dtype=np.int32),
    )


def detection_set(annotations, detections, frames, width=4, regions=None, classes=CLASSES):
    """A `DetectionSet` of one sequence of `frames` frames."""
    return DetectionSet(
        classes=classes,
        sequences=("drive",),
        frame_sequence=np.zeros(frames, dtype=np.int32),
        frame_name=tuple(f"{i:06d}" for i in range(frames)),
        annotations=columns(annotations, width, scored=False),
        detections=columns(detections, width, scored=True),
        ignored=None if regions is None else columns(regions, width, scored=False),
        files=("made.up",),
    )


def crowded_scene(seed, frames=40, width=4):
    """Annotations and detections in a small field, rows in no order: many pairs, ties and long chains of competition.

    Whole coordinates, scores in eighths. Half of the detections lie where an annotation lies, or about
    there.
    """
    rng = np.random.default_rng(seed)

    def made(frame, x, y, w, h, score=0.0):
        box = (x, y, x + w, y + h) if width == 4 else (x, y, rng.integers(0, 2), w, h, rng.integers(1, 3), 0)
        return Thing(int(frame), int(rng.integers(2)), tuple(int(value) for value in box), score)

    places = [(*rng.integers([0, 0, 1, 1], [16, 8, 9, 9]),) for _ in range(frames * 12)]
    annotations = [made(rng.integers(frames), *place) for place in places]
    detections = []
    for i in range(frames * 20):
        score = int(rng.integers(8)) / 8
        if i % 2:
            detections.append(made(rng.integers(frames), *rng.integers([0, 0, 1, 1], [16, 8, 9, 9]), score))
        else:
            copied = int(rng.integers(len(places)))
            x, y, w, h = np.array(places[copied]) + rng.integers(0, 2) * rng.integers(-1, 2, 4)
            detections.append(made(annotations[copied].frame, x, y, max(w, 1), max(h, 1), score))
    return annotations, detections
