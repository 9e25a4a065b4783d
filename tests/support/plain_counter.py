"""Counting as the definitions are written, one frame and one bin at a time: an oracle for the package.

A scene is a list of frames (the name of the sequence of each), a list of `Object` and a list of `Report`; which
report belongs to which object is given. Bins are tuples: the distance bin, then the bin of each further variable.
Nothing is shared with the package but the two classes that hold the arrays.
"""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from verifier.perception.detections.columns import Boxes, DetectionSet

CLASSES = ("ped", "obs")
EMPTY = frozenset()


@dataclass(frozen=True)
class Object:
    """Something annotated: its frame, class and place on the ground, and the number of its track (-1: none)."""

    frame: int
    kind: str
    x: float
    y: float = 0.0
    occluded: int = 0
    track: int = -1


@dataclass(frozen=True)
class Report:
    """A detection."""

    frame: int
    kind: str
    x: float
    y: float = 0.0
    score: float = 1.0


def detection_set(frames, objects, reports, classes=CLASSES):
    """The scene as the package holds it; names sequences in the order of their first frame."""
    sequences = tuple(dict.fromkeys(frames))
    attributes = {"occluded": np.array([each.occluded for each in objects], dtype=int)}
    if any(each.track >= 0 for each in objects):
        attributes["track"] = np.array([each.track for each in objects], dtype=int)
    return DetectionSet(
        classes=classes,
        sequences=sequences,
        frame_sequence=np.array([sequences.index(name) for name in frames]),
        frame_name=tuple(f"{name}/{number:06}" for number, name in enumerate(frames)),
        annotations=_boxes(objects, classes, attributes),
        detections=_boxes(reports, classes, {}, np.array([each.score for each in reports], dtype=float)),
        ignored=None,
        files=("truth.txt", "found.txt"),
    )


def _boxes(things, classes, attributes, score=None):
    box = np.array([(each.x, each.y, 0, 1, 1, 1, 0) for each in things], dtype=float).reshape(-1, 7)
    return Boxes(
        frame=np.array([each.frame for each in things], dtype=int),
        label=np.array([classes.index(each.kind) for each in things], dtype=int),
        score=score,
        box_2d=None,
        box_3d=box,
        distance_m=None,
        attributes=attributes,
        line=np.arange(1, len(things) + 1),
        file=np.full(len(things), 0 if score is None else 1),
    )


@dataclass(frozen=True)
class Plain:
    """A way of counting, written out.

    `distance_bin(metres)` gives a bin or None; `place_bins(thing, frame)` the bins of place and frame variables,
    `object_bins(object)` those of variables that only objects have. Each gives a tuple, or None when a value is in
    no bin. `all_place_bins(sequence)` and `all_object_bins` list what could be. All in the order place, object.
    """

    distance_bin: callable
    distance_count: int
    place_bins: callable = lambda thing, sequence: ()
    object_bins: callable = lambda thing: ()
    all_place_bins: callable = lambda sequence: [()]
    all_object_bins: tuple = ((),)


def plain_count(frames, objects, reports, matched, nearest, plain, *, labelling, threshold=-math.inf,
                unmatched="drop", duplicates="drop", gap=None, classes=CLASSES):  # fmt: skip
    """Counter of (sequence, bin, reported set, true set).

    `matched`: {report: object}; `nearest`: {report: object} of all reports in reach of an object.
    """
    found = Counter()
    for frame, sequence in enumerate(frames):
        here = [k for k, each in enumerate(objects) if each.frame == frame]
        report_of = {a: d for d, a in matched.items() if reports[d].score >= threshold}
        extra = [
            d for d, each in enumerate(reports)
            if each.frame == frame and each.score >= threshold and d not in matched
        ]  # fmt: skip
        placed = [
            (d, _extra_place(d, sequence, objects, reports, nearest, plain, unmatched, duplicates)) for d in extra
        ]
        standing = {place for k in here if (place := _place(objects[k], sequence, plain)) is not None}
        all_places = [(k, *more) for k in range(plain.distance_count) for more in plain.all_place_bins(sequence)]
        if labelling == "proposition":
            for place in all_places:
                true = {objects[k].kind for k in here if _place(objects[k], sequence, plain) == place}
                told = {
                    reports[report_of[k]].kind
                    for k in here
                    if objects[k].kind in classes and _place(objects[k], sequence, plain) == place and k in report_of
                }
                told |= {reports[d].kind for d, at in placed if at == place}
                found[sequence, place, frozenset(told & set(classes)), frozenset(true & set(classes))] += 1
            continue
        for item in _items(here, objects, gap):
            first = min(item, key=lambda k: (_metres(objects[k]), k))
            place, bins = _place(objects[first], sequence, plain), plain.object_bins(objects[first])
            if place is not None and bins is not None:
                told = _told(item, objects, reports, report_of)
                found[sequence, (*place, *bins), told, frozenset({objects[first].kind})] += 1
        for place in all_places:
            if place not in standing:
                alarms = [d for d, at in placed if at == place]
                told = EMPTY
                if alarms:
                    told = frozenset({reports[min(alarms, key=lambda d: (-reports[d].score, d))].kind})
                for bins in plain.all_object_bins:
                    found[sequence, (*place, *bins), told, EMPTY] += 1
    return found


def plain_tracks(frames, objects, reports, matched, plain, bins_of, threshold=-math.inf):
    """Shares and numbers of tracks in exact fractions, as class-labelled matrices count them.

    Args:
        bins_of: bin -> what stands for it; bins of one name are counted together.

    Returns:
        {(sequence, name of bins, reported set, class): sum of shares} and {(sequence, name, class): tracks}.
    """
    report_of = {a: d for d, a in matched.items() if reports[d].score >= threshold}
    told = {}
    for k, each in enumerate(objects):
        sequence = frames[each.frame]
        place, bins = _place(each, sequence, plain), plain.object_bins(each)
        if place is not None and bins is not None:
            track = ("alone", k) if each.track < 0 else each.track
            visit = told.setdefault((sequence, bins_of((*place, *bins)), each.kind, track), [])
            visit.append(_told([k], objects, reports, report_of))
    shares, numbers = Counter(), Counter()
    for (sequence, name, kind, _), labels in told.items():
        numbers[sequence, name, kind] += 1
        for label in labels:
            shares[sequence, name, label, kind] += Fraction(1, len(labels))
    return shares, numbers


def _metres(thing):
    return math.dist((thing.x, thing.y), (0, 0))


def _place(thing, sequence, plain):
    first, more = plain.distance_bin(_metres(thing)), plain.place_bins(thing, sequence)
    return None if first is None or more is None else (first, *more)


def _extra_place(d, sequence, objects, reports, nearest, plain, unmatched, duplicates):
    policy = duplicates if d in nearest else unmatched
    if policy == "drop":
        return None
    if policy == "nearest_bin" and d in nearest:
        return _place(objects[nearest[d]], sequence, plain)
    return _place(reports[d], sequence, plain)


def _told(item, objects, reports, report_of):
    """What an item is reported as: its own class if a member is, else the surest report of a member."""
    told = [(report_of[k], k) for k in item if k in report_of]
    if not told:
        return EMPTY
    if any(reports[d].kind == objects[k].kind for d, k in told):
        return frozenset({objects[item[0]].kind})
    surest, _ = min(told, key=lambda pair: (-reports[pair[0]].score, pair[1]))
    return frozenset({reports[surest].kind})


def _items(here, objects, gap):
    """Lists of objects that are one item: each alone, or linked by gaps."""
    if gap is None:
        return [[k] for k in here]
    rest, items = list(here), []
    while rest:
        item = [rest.pop(0)]
        for k in item:
            near = [
                other for other in rest
                if objects[other].kind == objects[k].kind
                and (objects[other].x - objects[k].x) ** 2 + (objects[other].y - objects[k].y) ** 2 <= gap**2
            ]  # fmt: skip
            rest = [other for other in rest if other not in near]
            item += near
        items.append(item)
    return items
