"""Which pairs of a detection and an annotation may match, and which of them do.

Two tools that "match detections with objects" seldom mean the same thing, and their confusion matrices differ on the
same boxes. A `MatchingPolicy` says every choice by name. A *pair* is a detection and an annotation of one frame whose
affinity reaches the threshold. Greedy matching walks through the pairs in an order and takes each pair whose
detection and annotation are both still free. The order makes the convention:

* `score`: pairs by falling score of the detection, then by falling affinity. So the surest detection chooses first,
  and each takes its best still free object (COCO, nuScenes).
* `affinity`: the most alike pair first, whatever its score (supervision, Ultralytics).
* `annotation`: annotations in the order of the file, each takes its most alike still free detection (KITTI).

The conventions, each read from the program that defines it:

| name | order | affinity reaches | equal scores | equal affinity | classes | other |
|---|---|---|---|---|---|---|
| coco: pycocotools `COCOeval.evaluateImg` | score | IoU >= t | first | last | same | regions to ignore |
| nuscenes: devkit `eval/detection/algo.py: accumulate` | score | distance < t | last | first | same | |
| kitti: `evaluate_object.cpp: computeStatistics` | annotation | IoU > t | - | first | same | regions to ignore |
| pascal_voc: VOCdevkit `VOCevaldet.m` | score | IoU >= t | first | first | same | `only_best` |
| supervision: `ConfusionMatrix` since 0.26 | affinity | IoU > t | - | first | same first | |

What they do beside matching (regions aside) is not matching and not done here: COCO keeps the 100 surest detections
of a class and image, KITTI leaves out small and occluded objects and counts Van as neither, PASCAL VOC leaves out
difficult objects.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from verifier.base.errors import UsageError, unknown_name
from verifier.perception.settings import Affinity, Assignment

Order: TypeAlias = Literal["score", "affinity", "annotation"]
Tie: TypeAlias = Literal["first", "last"]


@dataclass(frozen=True)
class MatchingPolicy:
    """Every choice that decides which detection matches which annotation.

    Attributes:
        affinity: what is compared: IoU of image rectangles (`iou_2d`), of rotated ground-plane rectangles
            (`iou_bev`) or of upright boxes (`iou_3d`); distance of centres in the image (`centre_2d`, pixels), in
            the ground plane (`centre_bev`, m) or in space (`centre_3d`, m).
        threshold: a pair needs IoU >= threshold, in (0, 1], or distance <= threshold, in m or pixels, from 0.
        assignment: `greedy`; or `optimal`: as many pairs as possible, and among these choices the greatest sum of
            IoU or the least sum of distances (Kuhn 1955). Among equally good choices an optimal assignment takes
            one, always the same for the same input; only a star (one detection with several annotations or the
            reverse) has a stated rule, that of `order="affinity"`.
        class_aware: a pair needs equal classes. A matrix that shows confusions of classes needs False.
        order: how greedy matching walks through the pairs, see above. `affinity` breaks ties by falling score,
            then as `score_ties` and `affinity_ties` say.
        same_class_first: greedy without `class_aware`: all pairs of equal classes come before all others.
        only_best: greedy: a detection whose best annotation is taken gets none (a duplicate in the sense of
            PASCAL VOC), in place of its next best.
        strict: a pair needs IoU > threshold, or distance < threshold.
        score_ties: of detections with equal scores (`order="annotation"`: equally alike, whatever their scores),
            the `first` or the `last` of the input comes first.
        affinity_ties: of annotations equally alike, the `first` or the `last` of the input comes first.
        ignore_overlap: an unmatched detection of which at least this part (of its image rectangle) lies in one
            region to ignore is `ignored`: neither match nor false positive. None: the regions play no part.
    """

    affinity: Affinity
    threshold: float
    assignment: Assignment = "greedy"
    class_aware: bool = False
    order: Order = "score"
    same_class_first: bool = False
    only_best: bool = False
    strict: bool = False
    score_ties: Tie = "first"
    affinity_ties: Tie = "first"
    ignore_overlap: float | None = None

    def __post_init__(self) -> None:
        options = {"affinity": get_args(Affinity), "assignment": get_args(Assignment), "order": get_args(Order)}
        for name, known in {**options, "score_ties": get_args(Tie), "affinity_ties": get_args(Tie)}.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}")
        if self.by_distance and not 0 <= self.threshold < math.inf:
            raise ValueError(f"a distance threshold must be finite and at least 0, got {self.threshold}")
        if not self.by_distance and not 0 < self.threshold <= 1:
            raise ValueError(f"an IoU threshold must lie in (0, 1], got {self.threshold}")
        if self.ignore_overlap is not None and not 0 < self.ignore_overlap <= 1:
            raise ValueError(f"ignore_overlap must lie in (0, 1], got {self.ignore_overlap}")
        if self.class_aware and self.same_class_first:
            raise ValueError("same_class_first says nothing where only equal classes match")
        if self.assignment == "optimal" and (self.order != "score" or self.only_best or self.same_class_first):
            raise ValueError("order, only_best and same_class_first are choices of greedy matching")

    @property
    def by_distance(self) -> bool:
        """Whether less affinity value is better: a distance, not an IoU."""
        return self.affinity.startswith("centre")

    @property
    def column(self) -> Literal["box_2d", "box_3d"]:
        """The column of `Boxes` that is compared."""
        return "box_2d" if self.affinity in ("iou_2d", "centre_2d") else "box_3d"

    def record(self) -> dict[str, Any]:
        """Every choice as JSON values, to be kept beside the counts; `MatchingPolicy(**record)` is equal."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


CONVENTIONS: Mapping[str, MatchingPolicy] = MappingProxyType(
    {
        "coco": MatchingPolicy("iou_2d", 0.5, class_aware=True, affinity_ties="last", ignore_overlap=0.5),
        "nuscenes": MatchingPolicy("centre_bev", 2.0, class_aware=True, strict=True, score_ties="last"),
        "kitti": MatchingPolicy("iou_2d", 0.5, class_aware=True, order="annotation", strict=True, ignore_overlap=0.5),
        "pascal_voc": MatchingPolicy("iou_2d", 0.5, class_aware=True, only_best=True),
        "supervision": MatchingPolicy("iou_2d", 0.5, order="affinity", same_class_first=True, strict=True),
    }
)
"""Policies of published programs, with their usual affinity and threshold."""


def usual_threshold(affinity: Affinity) -> float:
    """Least IoU, or largest distance in pixels or metres, where only the affinity is named."""
    return {"centre_2d": 20.0, "centre_bev": 2.0, "centre_3d": 2.0}.get(affinity, 0.5)


def convention(name: str, **changes: Any) -> MatchingPolicy:
    """The policy of a published program, with some choices replaced.

    >>> convention("nuscenes", threshold=4.0).threshold
    4.0

    Raises:
        UsageError: no convention of that name.
        ValueError: a choice that does not exist or does not fit the others.
    """
    if name not in CONVENTIONS:
        message, hint = unknown_name("matching convention", name, CONVENTIONS)
        raise UsageError(f"{message} ({hint})")
    return replace(CONVENTIONS[name], **changes)
