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

from verifier.base.documents import Share
from verifier.closedloop.comparison import MetricTable, winners


@dataclass(frozen=True)
class Choice:
    """The best detectors by a row of a metric, several where areas are equal."""

    metric: str
    row: str
    best: tuple[str, ...]


@dataclass(frozen=True)
class Flip:
    """Whether one would choose differently by two rows.

    Attributes:
        from_, to: what one would choose of the detectors that both rows have.
        flips: no detector is best in both.
        probability: of that, over the draws; None without a bootstrap.
    """

    from_: Choice
    to: Choice
    flips: bool
    probability: Share | None


def flips_under_mutation(table: MetricTable) -> list[Flip]:
    """From the baseline to each other row of a table."""
    return [flip for at in range(1, len(table.rows)) for flip in _flips(table, 0, table, at)]


def flips_between_metrics(tables: Sequence[MetricTable]) -> list[Flip]:
    """From each metric to the last one, row by row; rows that both have, of the same detectors."""
    if not tables:
        return []
    last = {row.name: at for at, row in enumerate(tables[-1].rows)}
    return [
        flip
        for table in tables[:-1]
        if table.detectors == tables[-1].detectors
        for at, row in enumerate(table.rows)
        if row.name in last and row.conditions == tables[-1].rows[last[row.name]].conditions
        for flip in _flips(table, at, tables[-1], last[row.name])
    ]


def _flips(first: MetricTable, at: int, second: MetricTable, there: int) -> list[Flip]:
    """Whether the choice changes from a row to one there; nothing where they share fewer than two detectors."""
    row, other = first.rows[at], second.rows[there]
    known = {each.detector for each in other.cells}
    common = [each.detector for each in row.cells if each.detector in known]
    if len(common) < 2:
        return []
    probability = None
    if first.drawn is not None and second.drawn is not None:
        own = winners(first.drawn[at, [first.detectors.index(each) for each in common]])
        others = winners(second.drawn[there, [second.detectors.index(each) for each in common]])
        decided = np.flatnonzero(own.any(axis=0) & others.any(axis=0))
        both = np.any(own[:, decided] & others[:, decided], axis=0)
        probability = float(np.mean(~both)) if len(decided) else None
    ends = (
        Choice(first.metric, row.name, row.best_of(common)),
        Choice(second.metric, other.name, other.best_of(common)),
    )
    return [Flip(*ends, not set(ends[0].best) & set(ends[1].best), probability)]
