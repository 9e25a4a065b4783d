"""What `verify closed-loop` and `verify robroc` found, as one frozen value with its JSON document.

The document is byte-stable: equal inputs give equal bytes. It holds no times, no absolute paths and no user names.

Which detector one would choose, and whether that changes: under mutation, and with the metric.

A *flip* is a change of the best detector between two rows: from the baseline to a mutation or group of the same
metric, or from one metric to another in the same row. With a bootstrap each flip has a probability: the share of
draws in which no detector is best in both. A flip with a probability near 1/2 depends on which logs were driven.
The choice is among the detectors that have an area in both rows; where there is no other, there is no choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, get_args

import numpy as np

from verifier.base.documents import Count, InputFile, Limits, Magnitude, Share
from verifier.base.files import document_text
from verifier.base.result import Result, recorded
from verifier.closedloop.comparison import Cell, MeanArea, MetricTable, NamedCurve, Row, winners
from verifier.closedloop.curves import area
from verifier.closedloop.settings import EngineName, Severity


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
    known = {cell.detector for cell in other.cells}
    common = [cell.detector for cell in row.cells if cell.detector in known]
    if len(common) < 2:
        return []
    probability = None
    if first.drawn is not None and second.drawn is not None:
        own = winners(first.drawn[at, [first.detectors.index(name) for name in common]])
        others = winners(second.drawn[there, [second.detectors.index(name) for name in common]])
        # Where only one of the metrics takes a time step, it has the same draws once more, without the step.
        count = max(own.shape[1], others.shape[1])
        own, others = (np.tile(mask, (1, count // mask.shape[1] if count else 1)) for mask in (own, others))
        decided = np.flatnonzero(own.any(axis=0) & others.any(axis=0))
        both = np.any(own[:, decided] & others[:, decided], axis=0)
        probability = float(np.mean(~both)) if len(decided) else None
    ends = (
        Choice(first.metric, row.name, row.best_of(common)),
        Choice(second.metric, other.name, other.best_of(common)),
    )
    return [Flip(*ends, not set(ends[0].best) & set(ends[1].best), probability)]


ROLES = (
    "logs", "validation", "detections", "frames", "positions", "matrix", "calibration", "depth", "curves", "spec",
    "model", "confusion"
)  # fmt: skip
"""Of files that went in."""


@dataclass(frozen=True)
class LogsUsed:
    """What the curves were made from.

    Attributes:
        positive, negative: how many logs of each kind.
        truth_never_stops: positive logs in which the reference vehicle never stops; they are safe by definition.
        truth_breaks_safety_radius: positive logs in which the reference vehicle moves within the safety radius of
            a person.
    """

    positive: Count
    negative: Count
    truth_never_stops: tuple[str, ...]
    truth_breaks_safety_radius: tuple[str, ...]


@dataclass(frozen=True)
class SecondEngine:
    """How the closed-loop curves differ when the other engine drives.

    Attributes:
        engine: the name of the other one.
        largest_area_difference: over detectors and conditions, of the area of each curve.
        runs: positive logs x levels x sources that both engines drove.
        safety_differs: in how many of them only one of the two says safe.
    """

    engine: EngineName
    largest_area_difference: Magnitude
    runs: Count
    safety_differs: Count


@dataclass(frozen=True)
class TradeOffInput(InputFile):
    """A file that went in."""

    role: Annotated[str, Limits(pattern=f"^({'|'.join(ROLES)})$")]


@dataclass(frozen=True)
class NamedCondition:
    """A condition and its severity, empty where nothing is said."""

    name: str
    severity: Annotated[str, Limits(pattern=f"^({'|'.join(get_args(Severity))})?$")]


@dataclass(frozen=True)
class CurvePoints:
    """A curve, and the area below it."""

    detector: str
    condition: str
    area: Magnitude
    sensitivity: tuple[float, ...]
    safety: tuple[Share, ...]
    efficiency: tuple[Share, ...]


@dataclass(frozen=True)
class TradeOffTable:
    """All detectors and conditions by one metric, see `verifier.closedloop.comparison.MetricTable`."""

    metric: str
    detectors: tuple[str, ...]
    conditions: tuple[NamedCondition, ...]
    rows: tuple[Row, ...]
    means: tuple[MeanArea, ...]
    curves: tuple[CurvePoints, ...]


NOT_DEFINED = "not defined"


@dataclass(frozen=True)
class UndefinedMetric:
    """A metric that has no value for the logs, whatever the detector, and why."""

    metric: str
    reason: str

    def __str__(self) -> str:
        return f"{self.metric}: {NOT_DEFINED}, {self.reason}"


@dataclass(frozen=True)
class Flips:
    """Of choices, from the baseline to other rows and from one metric to the last."""

    under_mutation: tuple[Flip, ...]
    between_metrics: tuple[Flip, ...]


@dataclass(frozen=True, kw_only=True)
class TradeOffsResult:
    """Result of `verify closed-loop` and of `verify robroc`; as `TradeOffs`."""

    schema: ClassVar[str] = "verifier.trade_offs"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    title: str
    inputs: tuple[TradeOffInput, ...]
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    remarks: tuple[str, ...]
    metrics: Annotated[tuple[TradeOffTable, ...], Limits(min_length=1)]
    not_defined: tuple[UndefinedMetric, ...] = ()
    flips: Flips
    logs: LogsUsed | None = None
    second_engine: SecondEngine | None = None


@dataclass(frozen=True, eq=False)
class CurveSet:
    """Curves that were read or verified, and where they come from; the other fields are those of `TradeOffs`."""

    title: str
    curves: Sequence[NamedCurve]
    inputs: tuple[TradeOffInput, ...]
    versions: Mapping[str, str]
    settings: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class TradeOffs(Result):
    """Everything found about some detectors.

    Attributes:
        inputs: the files that went in: role, name without folders, and the SHA-256 of their bytes.
        settings: every choice that can change a number, by name.
        versions: of this program and of what it computed with.
        remarks: what a reader must know to read the numbers rightly.
        tables: one per metric, the most contextual last.
        not_defined: metrics without a table, and why.
        logs: what the curves were made from, where that is known.
        second: how the other engine differs, where the loop was driven.
    """

    title: str
    inputs: tuple[TradeOffInput, ...]
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    remarks: tuple[str, ...]
    tables: tuple[MetricTable, ...]
    logs: LogsUsed | None = None
    second: SecondEngine | None = None
    not_defined: tuple[UndefinedMetric, ...] = ()

    TOLD = "verifier.telling.closedloop:trade_off_tables"
    DRAWN = "verifier.telling.figures.closedloop:curves_figure"
    FURTHER = ("plot_table",)
    NAMED_BY = ("metric", "row", "detector")
    METRICS = ("area", "robustness")

    @property
    def headline(self) -> str:
        """The title, and what was judged by."""
        return f"{self.title}, by {', '.join(table.metric for table in self.tables)}"

    def document(self) -> TradeOffsResult:
        """The document."""
        return recorded(
            TradeOffsResult,
            self,
            metrics=tuple(map(_table, self.tables)),
            flips=Flips(
                tuple(flip for table in self.tables for flip in flips_under_mutation(table)),
                tuple(flips_between_metrics(self.tables)),
            ),
            second_engine=self.second,
        )

    def json_text(self) -> str:
        """The document as text."""
        return document_text(self.document())

    def rows(self) -> Iterator[dict[str, str | float]]:
        """One flat row per metric, row of its table and detector, with the same columns throughout; one without
        numbers, of kind "not defined", per metric that has no value."""
        for table in self.tables:
            for row in table.rows:
                for cell in row.cells:
                    yield _flat(table.metric, row, cell)
        for metric in self.not_defined:
            yield _flat(metric.metric, None, None) | {"remarks": metric.reason}


def _table(table: MetricTable) -> TradeOffTable:
    return recorded(
        TradeOffTable,
        table,
        conditions=tuple(
            NamedCondition(condition, table.severities.get(condition, "")) for condition in table.conditions
        ),
        curves=tuple(
            recorded(CurvePoints, curve, curve.curve, area=area(curve.curve)) for curve in table.curves.values()
        ),
    )


def _flat(metric: str, row: Row | None, cell: Cell | None) -> dict[str, str | float]:
    numbers: dict[str, float | None] = {}
    for name in ("area", "robustness"):
        lower, upper = getattr(cell, f"{name}_interval", None) or (None, None)
        numbers |= {name: getattr(cell, name, None), f"{name}_lower": lower, f"{name}_upper": upper}
    numbers |= {name: getattr(cell, name, None) for name in ("own_area", "best_probability", "step_error")}
    numbers["best_lower"], numbers["best_upper"] = getattr(cell, "best_interval", None) or (None, None)
    return {
        "metric": metric,
        "row": "" if row is None else row.name,
        "kind": NOT_DEFINED if row is None else row.kind,
        "detector": "" if cell is None else cell.detector,
        **{name: "" if value is None else value for name, value in numbers.items()},
        "best": "" if row is None or cell is None else int(cell.detector in row.best),
        "remarks": "best, or not, by the time step alone" if row and cell and cell.detector in row.flipped else "",
    }
