"""Which detection explains which person, per image of some logs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import UsageError
from verifier.closedloop.logs import Logs
from verifier.perception.detections.columns import Boxes, DetectionSet
from verifier.perception.matching import MatchingPolicy, match

IOU_HALF = MatchingPolicy("iou_2d", 0.5)
"""IoU of image rectangles from 0.5, the surest detection chooses first. The paper does not state its threshold."""
AFFINITIES = ("iou_2d", "centre_2d", "centre_bev")


@dataclass(frozen=True, eq=False)
class PersonMatches:
    """The result of matching one source.

    What has no rectangle (or, compared by points, no point) cannot be judged: it is neither found nor missed, neither
    right nor wrong.

    Attributes:
        detection_of: (P,) the detection of each sighting, -1 if none.
        false: (D,) detections that can be judged and match no person: false positives.
        judged: (P,) sightings that can be judged.
    """

    detection_of: Ints
    false: Mask
    judged: Mask


def person_matches(logs: Logs, source: str, policy: MatchingPolicy = IOU_HALF) -> PersonMatches:
    """Match the detections of a source with the people of each image.

    The surest detection chooses first, so that the matches at any threshold are those of this one matching whose
    detection reaches it: a weaker detection never changes what a stronger one has.

    Args:
        logs: with rectangles for the affinities `iou_2d` and `centre_2d`, with points for `centre_bev`.
        source: of `logs.detections`.
        policy: greedy, by score.

    Raises:
        UsageError: no such source, the policy compares what the logs do not have, or it has another order.
    """
    found = logs.source(source)
    if policy.assignment != "greedy" or policy.order != "score":
        raise UsageError(
            "a trade-off curve needs a matching in which the detection with the highest score chooses first: "
            "assignment 'greedy' and order 'score'"
        )
    if policy.affinity not in AFFINITIES:
        raise UsageError(f"logs have rectangles and points: affinity must be one of {', '.join(AFFINITIES)}")
    people = _boxes(logs.person_image, None, logs.person_box_2d, logs.person_m)
    reported = _boxes(found.image, found.strength, found.box_2d, found.point_m)
    images = tuple(map(str, range(logs.image_count)))
    frames = np.zeros(logs.image_count, dtype=np.int32)
    data = DetectionSet(("person",), ("logs",), frames, images, people, reported, None, ("logs",))
    matches = match(data, policy)
    false = (matches.annotation_of < 0) & _has_box(reported, policy)
    return PersonMatches(matches.detection_of, false, _has_box(people, policy))


def _boxes(image: Ints, strength: Floats | None, box_2d: Floats | None, point_m: Floats) -> Boxes:
    n = len(image)
    # A point is a box without size; only its centre on the ground is ever compared.
    upright = np.column_stack([point_m, np.zeros((n, 5))])
    upright[np.isnan(point_m).any(axis=1)] = np.nan
    none, short = np.zeros(n, np.int64), np.zeros(n, np.int32)
    return Boxes(image, short, strength, box_2d, upright, None, {}, none, short)


def _has_box(boxes: Boxes, policy: MatchingPolicy) -> Mask:
    box: Floats | None = getattr(boxes, policy.column)
    known = np.zeros(len(boxes), dtype=np.bool_)
    return known if box is None else np.asarray(~np.isnan(box).any(axis=1))
