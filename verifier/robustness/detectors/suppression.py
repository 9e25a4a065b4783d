"""Non-maximum suppression: of detections that overlap, the surest stays (Dalal 2006, PhD thesis, section 5.1).

Greedy: detections by falling score; each stays unless its IoU with one that stays exceeds the threshold. A detection
that was itself suppressed suppresses nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from verifier.perception.matching.affinity import iou_2d
from verifier.robustness.detectors.protocol import Detections


def suppressed(found: Detections, iou: float, per_class: bool = True) -> Detections:
    """The detections that stay, by falling score; equal scores by label and box, so that input order is no matter.

    Args:
        found: of one image.
        iou: in [0, 1]; an overlap of exactly so much does not suppress.
        per_class: whether only detections of the same label suppress each other.

    Raises:
        ValueError: the threshold lies outside [0, 1].
    """
    if not 0 <= iou <= 1:
        raise ValueError(f"expected an IoU in [0, 1], got {iou}")
    found = found.take(surest_first(found))
    waiting = np.arange(len(found))
    stays = []
    while len(waiting):
        first, waiting = waiting[0], waiting[1:]
        stays.append(first)
        box = np.broadcast_to(found.box_2d[first], (len(waiting), 4))
        covered = iou_2d(found.box_2d[waiting], box) > iou
        if per_class:
            covered &= found.label[waiting] == found.label[first]
        waiting = waiting[~covered]
    return found.take(np.array(stays, dtype=np.int64))


def surest_first(found: Detections) -> NDArray[np.int64]:
    """(n,) rows by falling score, then label, then box: the same order whatever the order of the input."""
    return np.lexsort([*found.box_2d.T[::-1], found.label, -found.score])
