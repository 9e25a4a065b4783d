"""One job of counting: filters, matching, counting, as the document records them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from verifier.perception.confusion.counting import Observed, confusion_counts, count_and_observe
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.filters import keep_attribute, keep_field_of_view, keep_range, keep_scores
from verifier.perception.matching import MatchingPolicy
from verifier.perception.settings import Removed


@dataclass(frozen=True)
class Filters:
    """What is taken out of the data before it is matched; each filter records what it took out.

    Attributes:
        lowest_score: of detections.
        range_m: (low, high) by `measure`.
        measure: of distance, for the range.
        half_angle_deg: field of view to each side of straight ahead.
        attributes: (name, lowest, highest) of annotations.
        removed: whether annotations taken out become regions to ignore, or are gone.
    """

    lowest_score: float | None = None
    range_m: tuple[float, float] | None = None
    measure: str = "euclidean_3d"
    half_angle_deg: float | None = None
    attributes: tuple[tuple[str, float, float], ...] = ()
    removed: Removed = "ignore"

    def __call__(self, data: DetectionSet) -> DetectionSet:
        """The data that remains; errors as in `verifier.perception.detections.filters`."""
        if self.lowest_score is not None:
            data = keep_scores(data, self.lowest_score)
        if self.range_m is not None:
            data = keep_range(data, self.measure, *self.range_m, removed=self.removed)
        if self.half_angle_deg is not None:
            data = keep_field_of_view(data, self.half_angle_deg, self.removed)
        for name, lowest, highest in self.attributes:
            data = keep_attribute(data, name, lowest, highest, self.removed)
        return data


def default_measure(data: DetectionSet) -> str:
    """The distance of the paper where objects have boxes in the ego frame, else the one the data itself gives."""
    boxes = data.annotations
    return "given" if not boxes.in_space and boxes.distance_m is not None else "euclidean_3d"


def default_policy(data: DetectionSet) -> MatchingPolicy:
    """Centres within 2 m on the ground where both sides have boxes in the ego frame, else image IoU from 0.5.

    Both are class-agnostic and greedy: the most usual choice for either kind of box (nuScenes, PASCAL VOC). Where the
    data has regions not to judge and image rectangles, a detection that lies half in one is no false positive
    (KITTI).
    """
    in_space = data.annotations.in_space and data.detections.in_space
    regions = data.ignored is not None and data.ignored.box_2d is not None and data.detections.box_2d is not None
    policy = MatchingPolicy("centre_bev", 2.0) if in_space else MatchingPolicy("iou_2d", 0.5)
    return replace(policy, ignore_overlap=0.5) if regions else policy


def count_job(
    data: DetectionSet, policy: MatchingPolicy, rule: CountingRule, title: str = ""
) -> tuple[ConfusionCounts, Observed | None]:
    """The document of filtered data, and what was seen of each object (None: see `count_and_observe`)."""
    counted, observed = count_and_observe(data, policy, rule)
    return confusion_counts(counted, rule, policy, dict(data.origin), title), observed
