"""Pairs of true and predicted distance straight from annotations and detections.

The paper's rule (Xu et al., WSC 2021, Sec. 3.2): a labelled object and "an object predicted by A which has the
highest 2D and 3D Intersection over Union overlap with it". Here: of all detections of the image, one has the highest
IoU of image rectangles with the object and the highest IoU of boxes in space, and both are above 0. No floor of the
IoU is stated, and classes play no part. Nothing forbids that one detection is the best for two objects; how often
that happens is counted.

**What the rule hides.** Boxes whose distances differ by more than their lengths do not overlap in space. A report
that is off by more than about the size of the object makes no pair, so large errors, the dangerous ones, are left
out of the estimate. `overlapping_in_image` counts such objects; a matching policy that compares image rectangles
keeps them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from verifier.base.arrays import Ints, Mask
from verifier.base.errors import UsageError, check_known
from verifier.collision.pairs_reader import Objects, ReadPairs, made_pairs
from verifier.perception.detections import DetectionSet, distance
from verifier.perception.matching import MatchingPolicy, match
from verifier.perception.matching.candidates import Windows, candidates
from verifier.perception.matching.policy import iou_2d, iou_3d

DRIVEN = ("kitti_tracking", "nuscenes", "nuscenes_compact", "mot")
"""Formats whose frames follow each other in drives."""


def pairs_of_detections(
    data: DetectionSet,
    *,
    classes: Sequence[str] = (),
    measure: str = "ground_plane",
    policy: MatchingPolicy | None = None,
    same_class: bool = False,
    title: str = "",
) -> ReadPairs:
    """The pairs of a data set; every frame is an image.

    Args:
        data: annotations and detections.
        classes: only objects of these classes; all if empty.
        measure: of both distances, a name that `verifier.perception.detections.distance` knows.
        policy: how objects and detections are matched; None for the paper's rule.
        same_class: a report of another class is no report.

    Raises:
        UsageError: no such class or measure, or boxes that the rule compares are missing.
        InputError: no pair is left.
    """
    for name in classes:
        check_known("class", name, data.classes)
    notes: dict[str, object]
    if policy is None:
        partner, in_image = highest_in_both(data)
        notes = {"matching": "highest_in_both"}
    else:
        partner, in_image = match(data, policy).detection_of, None
        notes = {"matching": policy.record()}
    labels = [data.classes.index(name) for name in classes] or range(len(data.classes))
    rows = np.flatnonzero(np.isin(data.annotations.label, list(labels)))
    report = partner[rows]
    if same_class:
        same = data.detections.label[report] == data.annotations.label[rows] if len(data.detections) else report >= 0
        report = np.where((report >= 0) & same, report, -1)
    taken = report[report >= 0]
    notes |= {"classes": list(classes), "same_class": same_class, "measure": measure}
    notes |= {"reports_of_two_objects": len(taken) - len(np.unique(taken))}
    if in_image is not None:
        notes["overlapping_in_image"] = int(np.count_nonzero(in_image[rows] & (report < 0)))
    away = distance(data.detections, measure)
    predicted = np.full(len(rows), np.nan)
    predicted[report >= 0] = away[taken]
    if np.isnan(away[taken]).any():
        raise UsageError(f"a matched detection has no distance by the measure '{measure}'")
    objects = Objects(
        data.annotations.frame[rows], distance(data.annotations, measure)[rows], predicted, data.frame_name
    )
    driven = data.origin.get("format") in DRIVEN
    notes |= {"drives": len(data.sequences)} if driven else {}
    made = made_pairs(objects, title, {**data.origin, **notes}, title or "the detections")
    return replace(made, pairs=replace(made.pairs, drive=data.frame_sequence.astype(np.int64))) if driven else made


def highest_in_both(data: DetectionSet) -> tuple[Ints, Mask]:
    """(n,) the detection that the paper's rule pairs with each annotation, -1 for none; (n,) whether any detection
    overlaps it in the image. Of detections with equal overlaps the first is taken.

    Raises:
        UsageError: the annotations or the detections lack image rectangles or boxes in space.
    """
    annotations, detections = data.annotations, data.detections
    for what, boxes in (("annotations", annotations), ("detections", detections)):
        for kind, column in (("image rectangles", boxes.box_2d), ("boxes in space", boxes.box_3d)):
            if column is None and len(boxes):
                raise UsageError(
                    f"the paper's rule compares {kind}, which the {what} do not have; name another matching"
                )
    best = np.full(len(annotations), -1, dtype=np.int64)
    in_image = np.zeros(len(annotations), dtype=bool)
    for rows, reports in _candidates(data):
        assert annotations.box_2d is not None  # there is a pair, so there are boxes
        assert annotations.box_3d is not None
        assert detections.box_2d is not None
        assert detections.box_3d is not None
        flat = iou_2d(annotations.box_2d[rows], detections.box_2d[reports])
        solid = iou_3d(annotations.box_3d[rows], detections.box_3d[reports])
        firsts = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]])
        sizes = np.diff(np.r_[firsts, len(rows)])
        highest = [np.repeat(np.fmax.reduceat(values, firsts), sizes) for values in (flat, solid)]
        agreed = (flat > 0) & (solid > 0) & (flat == highest[0]) & (solid == highest[1])
        chosen = np.flatnonzero(agreed)[::-1]  # where an index repeats, the last value assigned stays
        best[rows[chosen]] = reports[chosen]
        in_image[rows[firsts]] = highest[0][firsts] > 0
    return best, in_image


def _candidates(data: DetectionSet) -> Iterator[tuple[Ints, Ints]]:
    """Every annotation with every detection of its frame, the pairs of an annotation together, in blocks."""
    rows, reports = data.annotations.frame, data.detections.frame
    nowhere, far = np.zeros(len(reports)), np.full(len(rows), np.inf)
    everywhere = Windows((nowhere, nowhere), (-far, -far), (far, far))
    pool = candidates(rows, reports, everywhere)
    yield from pool.pairs(0, len(pool.detections))
