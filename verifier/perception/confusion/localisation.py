"""Errors of reported distances: of matched objects, the distance bin reported against the true one."""

from dataclasses import replace

import numpy as np

from verifier.base.arrays import Ints
from verifier.base.errors import InputError, UsageError
from verifier.perception.confusion.counting import Observed
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.sanity import remark, with_sanity
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.distances import reported_distance


def localised(data: DetectionSet, observed: Observed | None, rule: CountingRule) -> Ints:
    """(bins + 1, bins) matched objects by the distance bin reported, last those reported in none, and the true one.

    Raises:
        UsageError: a family over score thresholds, or an item is no single object.
    """
    if rule.thresholds is not None or observed is None or rule.labelling == "proposition":
        raise UsageError("--localisation counts single objects at one score threshold")
    matched = np.flatnonzero((observed.matches.detection_of >= 0) & (observed.objects.bin >= 0))
    reports = data.detections.take(observed.matches.detection_of[matched])
    reported = rule.bins.distance_bins(reported_distance(reports, rule.measure))
    bins = rule.bins.shape[0]
    table = np.zeros((bins + 1, bins), dtype=np.int64)
    true = rule.bins.distance_bins(observed.objects.distance_m[matched])
    np.add.at(table, (np.where(reported >= 0, reported, bins), true), 1)
    return table


def with_localisation(counts: ConfusionCounts, table: Ints) -> ConfusionCounts:
    """The counts with the key `localisation`, made from `localised`, and a remark on how many objects it leaves out.

    Raises:
        InputError: no matched detection has a distance.
    """
    matched, left_out = int(table.sum()), int(table[-1].sum())
    if matched and matched == left_out:
        hint = (
            "detections have distances by boxes in space, --calibration, --depth-folder or --detection-distance-field"
        )
        raise InputError("no detection of a matched object has a distance in a bin", hint=hint)
    text = f"{left_out} of {matched} matched objects are reported in no distance bin; localisation leaves them out"
    found = {"localisation": {"axes": ["reported", "true"], "counts": table[:-1].tolist()}}
    counts = replace(counts, metadata={**counts.metadata, **(found if matched else {})})
    return with_sanity(counts, [remark("not-localised", text)]) if left_out else counts
