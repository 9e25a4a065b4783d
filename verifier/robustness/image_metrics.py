"""Which objects are found, with which score, and which detections are false, whatever the threshold will be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verifier.base.arrays import Floats, Ints, Mask
from verifier.perception.detections.columns import Boxes, DetectionSet
from verifier.perception.matching import MatchingPolicy, match


@dataclass(frozen=True, eq=False)
class Judged:
    """What matching says of each object and each false positive, and in which frame it is.

    Attributes:
        hit: (n,) score of the detection that found each object that can be judged; -inf: none.
        hit_frame: (n,)
        false: (m,) scores of the detections that explain no object.
        false_frame: (m,)
        images: number of frames.
    """

    hit: Floats
    hit_frame: Ints
    false: Floats
    false_frame: Ints
    images: int


def judged(data: DetectionSet, policy: MatchingPolicy) -> Judged:
    """Match, and tell hits from false positives.

    What has no box of the kind that is compared cannot be judged: it is neither found nor missed, neither right nor
    wrong. A detection in a region to ignore (`MatchingPolicy.ignore_overlap`) is no false positive.

    Raises:
        UsageError: as `verifier.perception.matching.match`.
    """
    matches = match(data, policy)
    score = np.asarray(data.detections.score)
    by = matches.detection_of
    hit = np.full(len(by), -np.inf)
    hit[by >= 0] = score[by[by >= 0]]
    objects = _has_box(data.annotations, policy)
    false = (matches.annotation_of < 0) & ~matches.ignored & _has_box(data.detections, policy)
    return Judged(
        hit[objects],
        data.annotations.frame[objects],
        score[false],
        data.detections.frame[false],
        data.frame_count,
    )


def _has_box(boxes: Boxes, policy: MatchingPolicy) -> Mask:
    box: Floats | None = getattr(boxes, policy.column)
    return np.zeros(len(boxes), dtype=np.bool_) if box is None else np.asarray(~np.isnan(box).any(axis=1))
