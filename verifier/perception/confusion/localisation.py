"""Errors of reported distances: of matched objects, the distance bin reported against the true one."""

from dataclasses import replace

import numpy as np

from verifier.base.errors import InputError, UsageError
from verifier.perception.confusion.counting import Observed
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.sanity import remark, with_sanity
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.distances import reported_distance


def with_localisation(
    counts: ConfusionCounts, data: DetectionSet, observed: Observed | None, rule: CountingRule
) -> ConfusionCounts:
    """The counts with the key `localisation`: matched objects of all classes by reported and true distance bin.

    A report in no bin, or without a distance, is left out, with a remark that says how many.

    Raises:
        InputError: no matched detection has a distance.
        UsageError: a family over score thresholds, or an item is no single object.
    """
    if rule.thresholds is not None or observed is None or rule.labelling == "proposition":
        raise UsageError("--localisation counts single objects at one score threshold")
    matched = np.flatnonzero((observed.matches.detection_of >= 0) & (observed.objects.bin >= 0))
    reports = data.detections.take(observed.matches.detection_of[matched])
    reported = rule.bins.distance_bins(reported_distance(reports, rule.measure))
    true = rule.bins.distance_bins(observed.objects.distance_m[matched])
    known = reported >= 0
    if len(matched) and not known.any():
        hint = (
            "detections have distances by boxes in space, --calibration, --depth-folder or --detection-distance-field"
        )
        raise InputError("no detection of a matched object has a distance in a bin", hint=hint)
    table = np.zeros((rule.bins.shape[0],) * 2, dtype=np.int64)
    np.add.at(table, (reported[known], true[known]), 1)
    left_out = int((~known).sum())
    text = f"{left_out} of {len(known)} matched objects are reported in no distance bin; localisation leaves them out"
    found = {"localisation": {"axes": ["reported", "true"], "counts": table.tolist()}}
    counts = replace(counts, metadata={**counts.metadata, **(found if known.any() else {})})
    return with_sanity(counts, [remark("not-localised", text)]) if left_out else counts
