"""Average precision of each class under the matching of the matrices, with intervals from drives drawn again.

A detection matched with an object of its class is a true positive; one that is not, and that no region excuses, a
false positive; an object that no detection of its class is matched with is missed. Precision is interpolated at the
101 recalls 0, 0.01, ..., 1 as COCO does (Lin et al. 2014), by `COCOeval.accumulate` of pycocotools. Under COCO's own
matching (`--convention coco`) this is COCO's AP at that IoU; under centre distances it is much as that of nuScenes
(Caesar et al. 2020), which leaves recalls below 0.1 out.

Intervals: drives, or frames where no drives are known, are drawn with replacement (Efron 1979); percentiles of draws,
no closer than so few with objects allow (`verifier.base.statistics.reaching`).

Easily confused: the COCO benchmark's AP, a mean over ten IoU thresholds (`verifier.robustness.detection_metrics`).
"""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints, grouped
from verifier.base.libraries import library
from verifier.base.statistics import drawn_with_replacement, few_units_note, percentile_ends, reaching
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.document_types import AveragePrecision, ClassPrecision
from verifier.perception.confusion.drives import DriveTable
from verifier.perception.confusion.sanity import remark, with_sanity
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.matching import Matches

DRAWN_ENTRIES = 2_000_000
"""Numbers of a table held at a time: 16 MB."""
RECALLS = np.linspace(0.0, 1.0, 101)
"""Where precision is interpolated."""
LEVEL, MOST_DRAWS, FEWEST_DRIVES = 0.95, 1000, 2
DRAWN_UNITS = 20_000_000
"""Units times draws, at most: 160 MB."""


def with_average_precision(
    counts: ConfusionCounts,
    data: DetectionSet,
    matches: Matches,
    classes: Sequence[str],
    table: DriveTable | None = None,
    seed: int = 0,
) -> ConfusionCounts:
    """The counts with the key `average_precision`.

    Args:
        counts: of the data.
        data, matches: what was counted, in the drives of the counts but for `table`.
        classes: of the matrices.
        table: drives of the sequences.
        seed: of the draws.

    Raises:
        UsageError: pycocotools is missing.
    """
    names: Sequence[str] = data.sequences
    drive = np.asarray(data.frame_sequence, dtype=np.int64)
    if table is not None:
        names, number = table.drives_of(data.sequences)
        drive = number[drive]
    by_drive = len(names) >= FEWEST_DRIVES
    unit, units = (drive, len(names)) if by_drive else (np.arange(data.frame_count), data.frame_count)
    draws = max(1, min(MOST_DRAWS, DRAWN_UNITS // units))
    weights = drawn_with_replacement(units, draws, np.random.default_rng(seed))
    precisions = []
    for name in classes:
        label = data.classes.index(name)
        entries = _entries(data, matches, label, unit, units)
        objects = sum(len(entry["gtIgnore"]) for entry in entries)
        every = drawn_class(entries, [0], len(data.detections), weights, precise=True)
        drawn, value = percentile_ends(every, LEVEL), _average(entries)
        there = np.array([len(entry["gtIgnore"]) for entry in entries])
        ends = (None if value is None else reaching(drawn, value, there, confidence=LEVEL)) or (None, None)
        of_unit = grouped((entry["image_id"], entry) for entry in entries)
        named = range(units) if by_drive and counts.sequences is not None else ()
        own = [_average(of_unit.get(number, ())) for number in named]
        precisions.append(ClassPrecision(name, objects, value, ends[0], ends[1], tuple(own)))
    record = AveragePrecision("drive" if by_drive else "frame", LEVEL, draws, seed, tuple(precisions))
    counts = replace(counts, metadata={**counts.metadata, "average_precision": record})
    note = few_units_note(units, record.unit)
    return counts if note is None else with_sanity(counts, [remark("few-units", f"average precision is {note}")])


def _entries(data: DetectionSet, matches: Matches, label: int, unit: Ints, units: int) -> list[dict[str, Any]]:
    """One entry of `COCOeval.evalImgs` for each unit that has objects or detections of a class."""
    mine = np.flatnonzero(data.detections.label == label)
    by = matches.annotation_of[mine]
    right = by >= 0
    right[right] = data.annotations.label[by[right]] == label
    ignored = matches.ignored[mine] & ~right
    of_object = unit[data.annotations.frame[data.annotations.label == label]]
    there = np.bincount(of_object, minlength=units)
    of_unit = unit[data.detections.frame[mine]]
    order = np.argsort(of_unit, kind="stable")
    scores = np.asarray(data.detections.score)[mine]
    entries = []
    for number in np.unique(np.append(of_object, of_unit)).tolist():
        rows = order[slice(*np.searchsorted(of_unit[order], [number, number + 1]))]
        entries.append(
            {
                "image_id": number,
                "dtScores": scores[rows],
                "dtMatches": right[rows][None],
                "dtIgnore": ignored[rows][None],
                "gtIgnore": np.zeros(there[number], dtype=np.int64),
            }
        )
    return entries


def _average(entries: Sequence[dict[str, Any]]) -> float | None:
    """AP by pycocotools, of one class; None without an object."""
    if not any(len(entry["gtIgnore"]) for entry in entries):
        return None
    evaluator = library("pycocotools.cocoeval")
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = evaluator.COCOeval(iouType="bbox")
        told = evaluation.params
        told.imgIds, told.catIds = list(range(len(entries))), [0]
        told.iouThrs, told.areaRng, told.areaRngLbl = np.array([0.5]), [[0, 1e10]], ["all"]
        told.maxDets = [sum(len(entry["dtScores"]) for entry in entries)]
        evaluation._paramsEval, evaluation.evalImgs = copy.deepcopy(told), list(entries)
        evaluation.accumulate()
    precision = evaluation.eval["precision"]
    return float(np.mean(np.where(precision > 1 - 1e-15, 1.0, precision)))  # it adds 2.2e-16 to what it divides by


def drawn_class(entries: list[Any], rows: list[int], most: int, weights: Ints, *, precise: bool) -> Floats:
    """(draws,) average precision, or recall, of a class over the IoU thresholds in `rows`; NaN without an object."""
    wanted = np.zeros(weights.shape[1], np.int64)
    for entry in entries:
        wanted[entry["image_id"]] = np.count_nonzero(~np.asarray(entry["gtIgnore"], np.bool_))
    objects = weights @ wanted
    scores = [np.asarray(entry["dtScores"], np.float64)[:most] for entry in entries]
    order = np.argsort(-np.concatenate([np.zeros(0), *scores]), kind="mergesort")
    image = np.repeat([entry["image_id"] for entry in entries], [len(score) for score in scores]).astype(np.int64)[
        order
    ]
    value = np.zeros(len(weights))
    for row in rows if len(order) else ():
        matched, ignored = (
            np.concatenate([np.asarray(entry[key])[row, :most] for entry in entries]).astype(np.bool_)[order]
            for key in ("dtMatches", "dtIgnore")
        )
        kept = np.flatnonzero(~ignored)
        if not precise:
            hits = weights @ np.bincount(image[kept][matched[kept]], minlength=weights.shape[1])
            value += hits / np.maximum(objects, 1) / len(rows)
            continue
        step = max(1, DRAWN_ENTRIES // max(len(kept), 1))
        for begin in range(0, len(weights), step):
            part = slice(begin, begin + step)
            value[part] += _precision(weights[part][:, image[kept]], matched[kept], objects[part]) / len(rows)
    return np.where(objects > 0, value, np.nan)


def _precision(weight: Ints, hit: NDArray[np.bool_], objects: Ints) -> Floats:
    """(draws,) precision interpolated at 101 recalls; `weight` (draws, detections), the surest detection first."""
    if not weight.shape[1]:
        return np.zeros(len(weight))
    hits = np.cumsum(weight * hit, axis=1)
    everything = np.cumsum(weight, axis=1)
    precision = np.divide(hits, everything, out=np.zeros(hits.shape), where=everything > 0)
    best = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    # At so many hits recall reaches each of pycocotools' thresholds, which are not quite j/100: as it compares them.
    # Then one search in all draws at once, in whole numbers that keep the draws apart.
    total = np.maximum(objects, 1)[:, np.newaxis]
    needed = np.floor(RECALLS * total).astype(np.int64)  # no more than that, and at most one less
    needed += needed / total < RECALLS
    apart = np.arange(len(weight))[:, np.newaxis] * (1 + int(objects.max()))  # of which no more are hit
    place = np.searchsorted((hits + apart).ravel(), (needed + apart).ravel()).reshape(needed.shape)
    place -= np.arange(len(weight))[:, np.newaxis] * hits.shape[1]
    reached: Floats = np.take_along_axis(np.pad(best, ((0, 0), (0, 1))), place, axis=1)  # 0 beyond the last
    mean: Floats = reached.mean(axis=1)
    return mean
