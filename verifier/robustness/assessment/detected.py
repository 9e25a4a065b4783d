"""Performance measured here: from annotations and detections of a data set to the metrics of Table 6 (Task 5)."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from verifier.base.errors import UsageError
from verifier.perception.detections import Reading, read_class_map, read_detections
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.matching import CONVENTIONS, MatchingPolicy
from verifier.robustness.assessment.definition import Assessment, DataSet
from verifier.robustness.assessment.measures import COUNTS, Performance
from verifier.robustness.detection_metrics import TABLE_6, coco_metrics, count_hits


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
    files = data.detections
    if files is None:
        return data
    mapping = None if files.class_map is None else read_class_map(folder / files.class_map)
    paths = folder / files.annotations, folder / files.detections
    found = read_detections(files.format, *paths, Reading(mapping))
    policy = replace(CONVENTIONS["coco"], threshold=float(files.iou))
    least = None if files.min_score is None else float(files.min_score)
    return replace(data, performance=measured(found, metrics, policy, least))


def measured(
    found: DetectionSet, metrics: Sequence[str], policy: MatchingPolicy, lowest_score: float | None
) -> Performance:
    """Counts, precision and recall from the lowest score on, and COCO's metrics where one is chosen.

    COCO's metrics take all detections, whatever their score, and match as COCO does.

    Raises:
        UsageError: a library that is missing, or boxes that the data do not have.
    """
    hits = count_hits(found, policy, lowest_score)
    kinds = hits.true_positives, hits.false_positives, hits.false_negatives
    counts = {name: sum(each) for name, each in zip(COUNTS, kinds, strict=True)}
    values: dict[str, Fraction] = {}
    if any(name in TABLE_6 for name in metrics):
        values = {name: Fraction(value) for name, value in coco_metrics(found).named.items()}
    return Performance(values, counts)
