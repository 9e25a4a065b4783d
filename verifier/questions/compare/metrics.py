"""Detection metrics beside P, and which bins explain that P ranks two detectors otherwise than average precision.

Recall and precision are of items, as the matrices count them: recall is the share of the items of a class that are
reported as it, precision the share of the items reported as it that are it, where false positives are counted.
Intervals: drives drawn with replacement where there are several (Efron 1979; no closer than so few allow), else
Wilson's for independent items. False positives, the same in all bins that only objects have, count once.

A bin explains a reversed ranking by what P becomes when one detector's rates in it are the other's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from verifier.analysis.intervals.drive_items import drive_items
from verifier.analysis.objective import Objective
from verifier.base.arrays import Floats, Ints
from verifier.base.statistics import drawn_with_replacement, few_units_note, percentile_ends, reaching
from verifier.perception.confusion.document_types import AveragePrecision
from verifier.perception.confusion.matrices import EMPTY, ConfusionMatrices
from verifier.perception.confusion.sanity import wilson
from verifier.questions.compare.compare_result import Configuration, RequirementComparison
from verifier.questions.compare.metric_tables import (
    BinEffect,
    BinMetrics,
    ClassMetrics,
    DriveMetrics,
    Estimate,
    Reversal,
)
from verifier.study.case import Study

DRAWS = 1000
SMALLEST_EFFECT = 1e-9
"""Of P; below it lie rounding and what the second engine leaves open."""


@dataclass(eq=False)
class Swaps:
    """P of configurations with the rates of another detector in one bin, and the columns that decide P.

    Attributes:
        worst: (requirement, configuration, other detector) -> (bins,) of the worst scenario, times the sign.
        columns: (bin, column) of the matrices that any chain depends on, contexts put together.
    """

    studies: Mapping[str, Study]
    worst: dict[tuple[int, int, str], Floats] = field(default_factory=dict)
    columns: set[tuple[int, int]] = field(default_factory=set)

    def add(self, requirement: int, configuration: int, detector: str, objective: Objective, sign: int) -> None:
        """Take one block of scenarios of a configuration; `sign` is 1 if larger probabilities are better, else -1."""
        matrices = self.studies[detector].matrices
        contexts = matrices.bin_count // matrices.whole.bin_count
        columns = objective.skeleton.columns_needed()
        self.columns |= {(int(at) // contexts, int(column)) for at, column in columns}
        needed = sorted({int(at) // contexts for at, _ in columns})
        own = self.studies[detector].measured.rates
        for other, study in self.studies.items():
            if other == detector or not _alike(matrices, study.matrices):
                continue
            rates = np.repeat(own[None], len(needed) + 1, axis=0)
            for row, at in enumerate(needed):
                part = slice(at * contexts, (at + 1) * contexts)
                rates[row, part] = study.measured.rates[part]
            scores = (sign * objective.probabilities(rates).probability).min(axis=1)
            known = np.full(matrices.whole.bin_count, scores[-1])
            known[needed] = scores[:-1]
            key = (requirement, configuration, other)
            self.worst[key] = np.minimum(self.worst[key], known) if key in self.worst else known


def _alike(first: ConfusionMatrices, second: ConfusionMatrices) -> bool:
    same = first.labels == second.labels and first.variables == second.variables
    return same and first.shape == second.shape and bool(np.array_equal(first.edges_m, second.edges_m))


def class_metrics(studies: Mapping[str, Study], swaps: Swaps, seed: int) -> tuple[ClassMetrics, ...]:
    """The metrics of each class of each detector, in the order of detectors, then of labels."""
    return tuple(
        metrics for name, study in studies.items() for metrics in _of_detector(name, study, swaps.columns, seed)
    )


def _of_detector(detector: str, study: Study, needed: set[tuple[int, int]], seed: int) -> Iterator[ClassMetrics]:
    file, matrices = study.inputs.confusion, study.matrices.whole
    told: AveragePrecision | None = matrices.metadata.get("average_precision")
    by_class = {} if told is None else {precision.label: precision for precision in told.classes}
    drives: tuple[str, ...] = ()
    table = matrices.counts[None]
    if file.sequences is not None and len(file.sequences.names) > 1:
        drives = file.sequences.names
        table = drive_items(file.sequences, matrices.bin_count, len(matrices.labels)).table
    weights = drawn_with_replacement(len(table), DRAWS, np.random.default_rng(seed))
    every = list(range(matrices.bin_count))
    first = matrices.place_of(np.array(every)) == every
    table = np.where(first[:, None, None] | np.array([label != EMPTY for label in matrices.labels]), table, 0)
    counted = matrices.metadata.get("false_positives") == "counted"
    own = counted and first.all()
    for name in sorted(matrices.classes):
        has = np.array([name in label for label in matrices.labels])
        hits = table[:, :, has][..., has].sum(axis=(2, 3))  # (drives, bins)
        there, reported = table[..., has].sum(axis=(2, 3)), table[:, :, has].sum(axis=(2, 3))
        matters = [any((at, int(column)) in needed for column in np.flatnonzero(has)) for at in every]

        def share(whole: Ints, bins: Sequence[int], hits: Ints = hits) -> Estimate:
            return _estimate(hits[:, bins].sum(axis=1), whole[:, bins].sum(axis=1), weights)

        ap = by_class.get(name)
        yield ClassMetrics(
            detector,
            name,
            None if ap is None else Estimate(ap.objects, ap.value, ap.lower, ap.upper),
            share(there, every),
            share(reported, every) if counted else None,
            share(there, [at for at in every if matters[at]]),
            tuple(
                BinMetrics(
                    matrices.bin_text(at), matters[at], share(there, [at]), share(reported, [at]) if own else None
                )
                for at in every
            ),
            tuple(
                DriveMetrics(
                    drive,
                    int(there[k].sum()),
                    _share(int(hits[k].sum()), int(there[k].sum())),
                    _share(int(hits[k].sum()), int(reported[k].sum())) if counted else None,
                    ap.sequences[k] if ap is not None and ap.sequences else None,
                )
                for k, drive in enumerate(drives)
            ),
        )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _estimate(hits: Ints, whole: Ints, weights: Ints) -> Estimate:
    """Of the sums over drives (d,), with an interval."""
    items = int(whole.sum())
    if not items:
        return Estimate(0, None, None, None)
    if len(hits) > 1:
        with np.errstate(invalid="ignore"):
            drawn = percentile_ends((weights @ hits) / (weights @ whole), 0.95)
        ends = reaching(drawn, int(hits.sum()) / items, whole) or (None, None)
    else:
        ends = wilson(int(hits[0]), items)
    return Estimate(items, int(hits.sum()) / items, *ends)


def interval_remark(study: Study) -> str:
    """Where the intervals of metrics come from."""
    drives = study.inputs.confusion.sequences
    if drives is None or len(drives.names) < 2:
        return "metrics: 95 % intervals are Wilson's, of items assumed to be independent (not tested)"
    note, count = few_units_note(len(drives.names), "drive"), len(drives.names)
    told = f"metrics: 95 % intervals are of {count} drives drawn with replacement, no closer than these allow"
    return told if note is None else f"{told}; {note}"


def reversals(
    requirement: RequirementComparison,
    index: int,
    configurations: Sequence[Configuration],
    metrics: Sequence[ClassMetrics],
    swaps: Swaps,
) -> tuple[Reversal, ...]:
    """Where two detectors under one planner are ranked by P otherwise than by the average precision of a class."""
    sign = -1 if requirement.is_upper else 1
    precision = {
        (metric.detector, metric.label): metric.average_precision.value
        for metric in metrics
        if metric.average_precision is not None and any(every.matters for every in metric.bins)
    }
    texts = [bin_metrics.bin for bin_metrics in metrics[0].bins]
    inversions = []
    for pair in combinations(range(len(configurations)), 2):
        i, j = sorted(pair, key=lambda k: -sign * requirement.entries[k].probability)
        first, second = configurations[i], configurations[j]
        if first.planner != second.planner or (index, i, second.detector) not in swaps.worst:
            continue
        p, q = (requirement.entries[k].probability for k in (i, j))
        if p == q:
            continue
        there, back = sign * swaps.worst[index, i, second.detector], sign * swaps.worst[index, j, first.detector]
        effect = sign * ((p - there) + (back - q))
        order = [int(at) for at in np.argsort(-effect, kind="stable") if abs(effect[at]) > SMALLEST_EFFECT]
        bins = tuple(BinEffect(texts[at], _in_unit(there[at]), _in_unit(back[at])) for at in order)
        for label in sorted({label for _, label in precision}):
            a, b = (precision.get((configuration.detector, label)) for configuration in (first, second))
            if a is not None and b is not None and a < b:
                inversions.append(Reversal(first.planner, label, first.detector, second.detector, a, b, bins))
    return tuple(inversions)


def _in_unit(value: float) -> float:
    """A probability of the second engine without the rounding that takes it out of [0, 1]."""
    return min(max(float(value), 0.0), 1.0)
