"""How well a detector does on one set of images: hits and misses, precision and recall, and the COCO metrics.

* A **true positive** is a detection matched with an object of its class; every other detection is a **false
  positive** (unless it lies in a region to ignore), every other object a **false negative** (Wozniak et al. 2024,
  section 2.1: IoU from a threshold on, and the right class). Precision is TP / (TP + FP), recall TP / (TP + FN).
* **COCO**: average precision (AP) is the mean of the interpolated precision at the 101 recalls 0, .01, ..., 1,
  averaged over classes and over the IoU thresholds .50, .55, ..., .95; average recall (AR) is the greatest recall
  with so many detections per image, averaged likewise (Lin et al. 2014; cocodataset.org, "detection evaluation").
* **Performance** on a data set is numbers in 0..1 by the names of Wozniak et al. 2024, Table 6. Counts of true
  positives, false positives and false negatives (M7 to M9) give precision and recall (M10, M11) exactly.

Easily confused: AP at IoU .5 (PASCAL VOC) with AP over .50:.95; and COCO's matching, which keeps the 100 surest
detections of a class and image, with a `MatchingPolicy`.
"""

import contextlib
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import InputError, UsageError
from verifier.base.libraries import library
from verifier.base.numbers import significant
from verifier.perception.detections.columns import ANY_CLASS, Boxes, DetectionSet
from verifier.perception.detections.filters import keep_scores
from verifier.perception.matching import CONVENTIONS, Matches, MatchingPolicy, match

COCO_SIZES = ("all", "small", "medium", "large")
"""Areas: all, below 32^2, from 32^2 to 96^2, above 96^2 square pixels."""
COCO_MOST = (1, 10, 100)
"""Detections of a class and image that count, for average recall."""
TABLE_6 = ("AP", "AP0.5", "AP0.75", "AP_S", "AP_M", "AP_L", "AR1", "AR10", "AR100", "AR_S", "AR_M", "AR_L")
"""The names of the COCO metrics in Wozniak et al. 2024 (M12, M13); S, M and L are small, medium and large objects."""
COUNTS = ("TP", "FP", "FN")


@dataclass(frozen=True)
class Performance:
    """What a detector achieves on one data set.

    Attributes:
        values: metric -> value in 0..1.
        counts: TP, FP and FN where they are known, all three or none.

    Raises:
        ValueError: counts that are not three, or a precision or recall beside counts that give another one.
    """

    values: Mapping[str, Fraction] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.counts and set(self.counts) != set(COUNTS):
            raise ValueError("expected counts of TP, FP and FN, each from 0")
        derived = self._derived()
        for name, value in derived.items():
            if name in self.values and self.values[name] != value:
                raise ValueError(
                    f"{name}: the counts give {significant(float(value), 6)}, and "
                    f"{float(self.values[name]):g} is given"
                )
        object.__setattr__(self, "values", MappingProxyType({**derived, **self.values}))
        object.__setattr__(self, "counts", MappingProxyType(dict(self.counts)))

    def _derived(self) -> dict[str, Fraction]:
        """Precision and recall from the counts; none where nothing was detected, or nothing is there."""
        if not self.counts:
            return {}
        hits, false_positives, misses = (self.counts[name] for name in COUNTS)
        shares = {}
        if hits + false_positives:
            shares["precision"] = Fraction(hits, hits + false_positives)
        if hits + misses:
            shares["recall"] = Fraction(hits, hits + misses)
        return shares


def measured(
    data: DetectionSet, names: Sequence[str], policy: MatchingPolicy, lowest_score: float | None
) -> Performance:
    """Counts, precision and recall from the lowest score on, and COCO's metrics where one is chosen.

    COCO's metrics take all detections, whatever their score, and match as COCO does.

    Raises:
        UsageError: a library that is missing, or boxes that the data do not have.
    """
    values: dict[str, Fraction] = {}
    if any(name in TABLE_6 for name in names):
        values = {name: Fraction(value) for name, value in coco_metrics(data).items()}
    return Performance(values, count_hits(data, policy, lowest_score))


def count_hits(
    data: DetectionSet, policy: MatchingPolicy | None = None, lowest_score: float | None = None
) -> dict[str, int]:
    """Match the detections that reach a score with the objects, and count TP, FP and FN.

    Without class-aware matching a detection matched with an object of another class is a false positive of its own
    class, and the object a false negative of its.

    Args:
        data: annotations and detections.
        policy: None: as COCO matches at IoU .5.
        lowest_score: detections below do not take part.

    Raises:
        UsageError: the policy compares boxes that the data does not have.
    """
    data, matches, right = right_detections(data, policy or CONVENTIONS["coco"], lowest_score)
    hits = int(np.count_nonzero(right))
    wrong = int(np.count_nonzero(~right & ~matches.ignored))
    return dict(zip(COUNTS, (hits, wrong, len(data.annotations) - hits), strict=True))


def right_detections(
    data: DetectionSet, policy: MatchingPolicy, lowest_score: float | None
) -> tuple[DetectionSet, Matches, NDArray[np.bool_]]:
    """The data with the detections that take part, how these match, and (n,) which match an object of their class.

    Raises:
        UsageError: as `count_hits`.
    """
    if lowest_score is not None:
        data = keep_scores(data, lowest_score)
    matches = match(data, policy)
    right = matches.annotation_of >= 0
    right[right] = data.annotations.label[matches.annotation_of[right]] == data.detections.label[right]
    return data, matches, right


def coco_metrics(data: DetectionSet) -> dict[str, float]:
    """The COCO metrics of `TABLE_6` that have an object of their kind, in [0, 1].

    They are computed by pycocotools (whose greatest precision is 1 - 2.2e-16: it keeps 0 / 0 away).

    The area of an object is its attribute `area` where the data has one (COCO: the area of the mask), else that of
    its rectangle. Regions not to be judged are COCO's crowds; a region of no class is one of every class.

    Raises:
        UsageError: objects or detections without rectangles in the image, or pycocotools is missing.
        InputError: there are no images, or no object to find.
    """
    evaluation = coco_evaluation(data)
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation.accumulate()
    # (IoU, recall, class, area, most) and (IoU, class, area, most); -1 where a class has no object of that area.
    precision, recall = (np.asarray(evaluation.eval[name], dtype=np.float64) for name in ("precision", "recall"))
    at = {round(iou * 100): row for row, iou in enumerate(evaluation.params.iouThrs.tolist())}
    sizes = [name[0].upper() for name in COCO_SIZES]
    metrics = {
        "AP": _mean(precision[..., 0, -1]),
        "AP0.5": _mean(precision[at[50], ..., 0, -1]),
        "AP0.75": _mean(precision[at[75], ..., 0, -1]),
        **{f"AP_{name}": _mean(precision[..., area, -1]) for area, name in enumerate(sizes) if area},
        **{f"AR{most}": _mean(recall[..., 0, place]) for place, most in enumerate(COCO_MOST)},
        **{f"AR_{name}": _mean(recall[..., area, -1]) for area, name in enumerate(sizes) if area},
    }
    return {name: value for name, value in metrics.items() if not math.isnan(value)}


def coco_evaluation(data: DetectionSet) -> Any:
    """pycocotools' evaluation of every image, before anything is summed over images; errors as `coco_metrics`.

    Its images and categories are numbered as frames and classes.
    """
    if not data.frame_count or not len(data.annotations):
        raise InputError("no images, or no annotated object, so that precision and recall are not defined")
    coco, evaluator = library("pycocotools.coco"), library("pycocotools.cocoeval")
    truth = _index(coco, data, _truth_entries(data))
    detections = _index(coco, data, _entries(data.detections, "detections", None, 0))
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = evaluator.COCOeval(truth, detections, "bbox")
        evaluation.params.maxDets = list(COCO_MOST)
        evaluation.evaluate()
    return evaluation


def _truth_entries(data: DetectionSet) -> list[dict[str, object]]:
    area = data.annotations.attributes.get("area")
    entries = _entries(data.annotations, "annotations", area, 0)
    if data.ignored is None or data.ignored.box_2d is None:
        return entries
    known = data.ignored.take(np.flatnonzero(~np.isnan(data.ignored.box_2d).any(axis=1)))
    everywhere = known.label == ANY_CLASS
    regions = _entries(known.take(~everywhere), "regions", None, 1)
    for label in range(len(data.classes)):
        regions += _entries(known.take(everywhere), "regions", None, 1, label)
    return entries + regions


def _entries(
    boxes: Boxes, what: str, area: NDArray[Any] | None, crowd: int, label: int | None = None
) -> list[dict[str, object]]:
    """COCO's dictionaries; ids are given later."""
    if not len(boxes):
        return []
    box = boxes.box_2d
    if box is None or np.isnan(box).any():
        raise UsageError(f"the COCO metrics compare rectangles in the image, which the {what} do not all have")
    size = box[:, 2:] - box[:, :2]
    own = size.prod(axis=1)
    if area is not None:
        given = area.astype(np.float64)
        own = np.where(np.isnan(given), own, given)
    columns = zip(
        boxes.frame.tolist(),
        boxes.label.tolist(),
        np.hstack([box[:, :2], size]).tolist(),
        own.tolist(),
        (np.zeros(len(boxes)) if boxes.score is None else boxes.score).tolist(),
        strict=True,
    )
    return [
        {
            "image_id": frame,
            "category_id": own_label if label is None else label,
            "bbox": corner,
            "area": space,
            "iscrowd": crowd,
            "score": score,
        }
        for frame, own_label, corner, space, score in columns
    ]


def _index(coco: Any, data: DetectionSet, entries: list[dict[str, object]]) -> Any:
    made = coco.COCO()
    made.dataset = {
        "images": [{"id": frame} for frame in range(data.frame_count)],
        "categories": [{"id": label} for label in range(len(data.classes))],
        # From 1: pycocotools takes the id 0 for "not matched".
        "annotations": [{"id": number, **entry} for number, entry in enumerate(entries, 1)],
    }
    with contextlib.redirect_stdout(io.StringIO()):
        made.createIndex()
    return made


def _mean(values: Floats) -> float:
    known = values[values > -1]
    return float(known.mean()) if len(known) else float("nan")


@dataclass(frozen=True, eq=False)
class Judged:
    """What matching says of each object and each false positive, and in which frame it is.

    Attributes:
        hit: (n,) score of the detection that found each object that can be judged; -inf: none.
        hit_frame, hit_row: (n,) frame, and row among the annotations.
        false: (m,) scores of the detections that explain no object.
        false_frame: (m,)
        images: number of frames.
    """

    hit: Floats
    hit_frame: Ints
    hit_row: Ints
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
        np.flatnonzero(objects),
        score[false],
        data.detections.frame[false],
        data.frame_count,
    )


def _has_box(boxes: Boxes, policy: MatchingPolicy) -> Mask:
    box: Floats | None = getattr(boxes, policy.column)
    return np.zeros(len(boxes), dtype=np.bool_) if box is None else np.asarray(~np.isnan(box).any(axis=1))
