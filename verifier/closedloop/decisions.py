"""Which detector one would choose, and whether that changes: under mutation, and with the metric.

A *flip* is a change of the best detector between two rows: from the baseline to a mutation or group of the same
metric, or from one metric to another in the same row. With a bootstrap each flip has a probability: the share of
draws in which no detector is best in both. A flip with a probability near 1/2 hangs on which logs were driven.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from verifier.closedloop.comparison import MetricTable, Row


@dataclass(frozen=True)
class Flip:
    """Two rows, and whether one would choose differently by them.

    Attributes:
        metrics, rows: names, first and second.
        best: the best detectors of both, several where areas are equal.
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
    return [_flip(table, table.rows[0], table, each) for each in table.rows[1:]]


def flips_between_metrics(tables: Sequence[MetricTable]) -> list[Flip]:
    """From each metric to the last one, row by row; rows that both have, of the same detectors."""
    if not tables:
        return []
    last = {each.name: each for each in tables[-1].rows}
    return [
        _flip(table, row, tables[-1], last[row.name])
        for table in tables[:-1]
        if table.detectors == tables[-1].detectors
        for row in table.rows
        if row.name in last and row.conditions == last[row.name].conditions
    ]


def _flip(first: MetricTable, row: Row, second: MetricTable, other: Row) -> Flip:
    probability = None
    if row.winners is not None and other.winners is not None:
        known = np.flatnonzero(row.winners.any(axis=0) & other.winners.any(axis=0))
        both = np.any(row.winners[:, known] & other.winners[:, known], axis=0)
        probability = float(np.mean(~both)) if len(known) else None
    return Flip(
        (first.metric, second.metric),
        (row.name, other.name),
        (row.best, other.best),
        not set(row.best) & set(other.best),
        probability,
    )
