"""Performance measured here: from annotations and detections of a data set to the metrics of Table 6 (Task 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from verifier.detections import Reading, read_class_map, read_detections
from verifier.detections.columns import DetectionSet
from verifier.errors import UsageError
from verifier.matching import CONVENTIONS, MatchingPolicy
from verifier.robustness.assessment.definition import Assessment, DataSet, DetectionFiles
from verifier.robustness.assessment.performance import METRICS, Performance
from verifier.robustness.detection_metrics import coco_metrics, count_hits

COCO = tuple(name for name, number in METRICS.items() if number in ("M12", "M13"))


def with_measured(assessment: Assessment, folder: Path) -> Assessment:
    """The assessment with the performance of every data set whose detections are given.

    The metrics that were chosen are measured; without a choice precision and recall, which then are the choice.

    Args:
        assessment: names files and metrics.
        folder: where its paths start from.

    Raises:
        InputError: files that cannot be read.
        UsageError: a chosen metric that is not defined on a data set, or a library that is missing.
    """
    data = (assessment.source, *assessment.targets)
    if not any(each.detections is not None for each in data):
        return assessment
    metrics = assessment.metrics or ("precision", "recall")
    source, *targets = (_measured(each, metrics, folder) for each in data)
    try:
        return replace(assessment, source=source, targets=tuple(targets), metrics=metrics)
    except ValueError as error:
        raise UsageError(f"{assessment.key}: {error}") from None


def _measured(data: DataSet, metrics: tuple[str, ...], folder: Path) -> DataSet:
    if data.detections is None:
        return data
    return replace(data, performance=performance_of(data.detections, metrics, folder))


def performance_of(files: DetectionFiles, metrics: tuple[str, ...], folder: Path) -> Performance:
    """Counts, precision and recall from the score that the files name, and COCO's metrics where one is chosen.

    COCO's metrics take all detections, whatever their score; as COCO matches them.

    Raises:
        InputError, UsageError: as reading and matching.
    """
    mapping = None if files.class_map is None else read_class_map(folder / files.class_map)
    paths = folder / files.annotations, folder / files.detections
    found = read_detections(files.format, *paths, Reading(mapping))
    policy = replace(CONVENTIONS["coco"], threshold=float(files.iou))
    return measured(found, metrics, policy, None if files.min_score is None else float(files.min_score))


def measured(
    found: DetectionSet, metrics: Sequence[str], policy: MatchingPolicy, lowest_score: float | None
) -> Performance:
    """The same of data in memory; detections below the score count for COCO's metrics alone.

    Raises:
        UsageError: a library that is missing, or boxes that the data do not have.
    """
    hits = count_hits(found, policy, lowest_score)
    kinds = hits.true_positives, hits.false_positives, hits.false_negatives
    counts = {name: sum(each) for name, each in zip(("TP", "FP", "FN"), kinds, strict=True)}
    values: dict[str, Fraction] = {}
    if any(name in COCO for name in metrics):
        values = {name: Fraction(value) for name, value in coco_metrics(found).named.items()}
    return Performance(values, counts)
