"""Which detector one would choose, and whether that changes: under mutation, and with the metric.

A *flip* is a change of the best detector between two rows: from the baseline to a mutation or group of the same
metric, or from one metric to another in the same row. With a bootstrap each flip has a probability: the share of
draws in which no detector is best in both. A flip with a probability near 1/2 depends on which logs were driven.
The choice is among the detectors that have an area in both rows; where there is no other, there is no choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from verifier.closedloop.comparison import MetricTable, Row, winners


@dataclass(frozen=True)
class Flip:
    """Two rows, and whether one would choose differently by them.

    Attributes:
        metrics, rows: names, first and second.
        best: the best detectors in either row of those in both, several where areas are equal.
        flips: no detector is best in both.
        probability: of that, over the draws; None without a bootstrap.
    """

    metrics: tuple[str, str]
    rows: tuple[str, str]
    best: tuple[tuple[str, ...], tuple[str, ...]]
    flips: bool
    probability: float | None


def flips_under_mutation(table: MetricTable) -> list[Flip]:
    """From the baseline to each other row of a table."""
    return [flip for each in table.rows[1:] for flip in _flips(table, table.rows[0], table, each)]


def flips_between_metrics(tables: Sequence[MetricTable]) -> list[Flip]:
    """From each metric to the last one, row by row; rows that both have, of the same detectors."""
    if not tables:
        return []
    last = {each.name: each for each in tables[-1].rows}
    return [
        flip
        for table in tables[:-1]
        if table.detectors == tables[-1].detectors
        for row in table.rows
        if row.name in last and row.conditions == last[row.name].conditions
        for flip in _flips(table, row, tables[-1], last[row.name])
    ]


def _flips(first: MetricTable, row: Row, second: MetricTable, other: Row) -> list[Flip]:
    """Whether the choice changes; nothing where the rows share fewer than two detectors."""
    there = {each.detector for each in other.cells}
    common = [each.detector for each in row.cells if each.detector in there]
    if len(common) < 2:
        return []
    probability = None
    if row.drawn is not None and other.drawn is not None:
        own = winners(row.drawn[[first.detectors.index(each) for each in common]])
        others = winners(other.drawn[[second.detectors.index(each) for each in common]])
        known = np.flatnonzero(own.any(axis=0) & others.any(axis=0))
        both = np.any(own[:, known] & others[:, known], axis=0)
        probability = float(np.mean(~both)) if len(known) else None
    best = row.best_of(common), other.best_of(common)
    names = (first.metric, second.metric), (row.name, other.name)
    return [Flip(*names, best, not set(best[0]) & set(best[1]), probability)]
