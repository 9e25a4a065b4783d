"""What `verify closed-loop` and `verify robroc` found, as one frozen value with its JSON document.

The document is byte-stable: equal inputs give equal bytes. It holds no times, no absolute paths and no user names.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, TypeAlias

from verifier.base.documents import Count, InputFile, Limits, Magnitude, Share
from verifier.base.files import document_text
from verifier.base.result import Result
from verifier.closedloop.comparison import Cell, MetricTable, NamedCurve, Row, RowKind
from verifier.closedloop.decisions import Flip, flips_between_metrics, flips_under_mutation
from verifier.closedloop.robroc import area
from verifier.closedloop.settings import EngineName

ROLES = (
    "logs", "validation", "detections", "frames", "positions", "matrix", "curves", "spec", "model", "confusion"
)  # fmt: skip
"""Of files that went in."""
Ends: TypeAlias = tuple[Magnitude | None, Magnitude | None]
"""Of an interval; None for an end that is not defined."""


@dataclass(frozen=True)
class LogsUsed:
    """What the curves were made from.

    Attributes:
        positive, negative: how many logs of each kind.
        truth_never_stops: positive logs in which the reference vehicle never stops; they are safe by definition.
        truth_breaks_safety_radius: positive logs in which the reference vehicle moves within the safety radius of
            a person.
        left_out: logs that were left out because the reference vehicle never stops in them.
    """

    positive: Count
    negative: Count
    truth_never_stops: tuple[str, ...]
    truth_breaks_safety_radius: tuple[str, ...]
    left_out: tuple[str, ...]


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
    severity: str


@dataclass(frozen=True)
class TradeOffCell:
    """One detector in one row, see `verifier.closedloop.comparison.Cell`; None for what is not defined."""

    detector: str
    area: Magnitude
    robustness: Magnitude | None
    own_area: Magnitude | None = None
    area_interval: Ends | None = None
    robustness_interval: Ends | None = None
    best_probability: Share | None = None


@dataclass(frozen=True)
class TradeOffRow:
    """One row of a table; the worst case is over its conditions, and several are best where areas are equal."""

    name: str
    kind: RowKind
    conditions: tuple[str, ...]
    best: tuple[str, ...]
    cells: tuple[TradeOffCell, ...]


@dataclass(frozen=True)
class MeanArea:
    """Over the mutations, of the areas of a detector's own curves (mPC), and that by the baseline's (rPC)."""

    detector: str
    area: Magnitude
    relative: Magnitude | None


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
    rows: tuple[TradeOffRow, ...]
    means: tuple[MeanArea, ...]
    curves: tuple[CurvePoints, ...]


@dataclass(frozen=True)
class Choice:
    """The best detectors by a row of a metric."""

    metric: str
    row: str
    best: tuple[str, ...]


@dataclass(frozen=True)
class FlipRecord:
    """Whether one would choose differently by two rows, and the chance of that; None without a bootstrap."""

    from_: Choice
    to: Choice
    flips: bool
    probability: Share | None


@dataclass(frozen=True)
class Flips:
    """Of choices, from the baseline to other rows and from one metric to the last."""

    under_mutation: tuple[FlipRecord, ...]
    between_metrics: tuple[FlipRecord, ...]


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
    flips: Flips
    logs: LogsUsed | None = None
    second_engine: SecondEngine | None = None


@dataclass(frozen=True, eq=False)
class CurveSet:
    """Curves that were read or verified, and where they come from; the other fields are those of `TradeOffs`."""

    title: str
    curves: Sequence[NamedCurve]
    inputs: tuple[Mapping[str, str], ...]
    versions: Mapping[str, str]
    settings: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class TradeOffs(Result):
    """Everything found about some detectors.

    Attributes:
        title: for people.
        inputs: the files that went in: role, name without folders, and the SHA-256 of their bytes.
        settings: every choice that can change a number, by name.
        versions: of this program and of what it computed with.
        remarks: what a reader must know to read the numbers rightly.
        tables: one per metric, the most contextual last.
        logs: what the curves were made from, where that is known.
        second: how the other engine differs, where the loop was driven.
    """

    title: str
    inputs: tuple[Mapping[str, str], ...]
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    remarks: tuple[str, ...]
    tables: tuple[MetricTable, ...]
    logs: LogsUsed | None = None
    second: SecondEngine | None = None

    TOLD = "verifier.telling.closedloop:trade_off_tables"
    DRAWN = "verifier.telling.figures.closedloop:curves_figure"

    @property
    def headline(self) -> str:
        """The title, and what was judged by."""
        return f"{self.title}, by {', '.join(table.metric for table in self.tables)}"

    @property
    def under_mutation(self) -> list[Flip]:
        """How the choice changes from the baseline to every other row, metric by metric."""
        return [each for table in self.tables for each in flips_under_mutation(table)]

    @property
    def between_metrics(self) -> list[Flip]:
        """How the choice changes from each metric to the last, row by row."""
        return flips_between_metrics(self.tables)

    def document(self) -> TradeOffsResult:
        """The document."""
        return TradeOffsResult(
            title=self.title,
            inputs=tuple(TradeOffInput(**each) for each in self.inputs),
            settings=self.settings,
            versions=self.versions,
            remarks=self.remarks,
            metrics=tuple(map(_table, self.tables)),
            flips=Flips(tuple(map(_flip, self.under_mutation)), tuple(map(_flip, self.between_metrics))),
            logs=self.logs,
            second_engine=self.second,
        )

    def json_text(self) -> str:
        """The document as text."""
        return document_text(self.document())

    def rows(self) -> Iterator[dict[str, str | float]]:
        """One flat row per metric, row of its table and detector, with the same columns throughout."""
        for table in self.tables:
            for row in table.rows:
                for cell in row.cells:
                    yield _flat(table, row, cell)


def _table(table: MetricTable) -> TradeOffTable:
    return TradeOffTable(
        table.metric,
        table.detectors,
        tuple(NamedCondition(each, table.severities.get(each, "")) for each in table.conditions),
        tuple(
            TradeOffRow(each.name, each.kind, each.conditions, each.best, tuple(map(_cell, each.cells)))
            for each in table.rows
        ),
        tuple(MeanArea(each.detector, each.area, _number(each.relative)) for each in table.means),
        tuple(map(_curve, table.curves.values())),
    )


def _cell(cell: Cell) -> TradeOffCell:
    found = TradeOffCell(cell.detector, cell.area, _number(cell.robustness), cell.own_area)
    if cell.area_interval is None or cell.robustness_interval is None:
        return found
    return replace(
        found,
        area_interval=_ends(cell.area_interval),
        robustness_interval=_ends(cell.robustness_interval),
        best_probability=_number(cell.best_probability),
    )


def _ends(interval: tuple[float, float]) -> Ends:
    return _number(interval[0]), _number(interval[1])


def _curve(each: NamedCurve) -> CurvePoints:
    points = (tuple(getattr(each.curve, name).tolist()) for name in ("sensitivity", "safety", "efficiency"))
    return CurvePoints(each.detector, each.condition, area(each.curve), *points)


def _flip(each: Flip) -> FlipRecord:
    first, second = (Choice(*chosen) for chosen in zip(each.metrics, each.rows, each.best, strict=True))
    return FlipRecord(first, second, each.flips, _number(each.probability))


def _flat(table: MetricTable, row: Row, cell: Cell) -> dict[str, str | float]:
    area_low, area_high = cell.area_interval or (math.nan, math.nan)
    low, high = cell.robustness_interval or (math.nan, math.nan)
    numbers = {
        "area": cell.area,
        "area_lower": area_low,
        "area_upper": area_high,
        "robustness": cell.robustness,
        "robustness_lower": low,
        "robustness_upper": high,
        "own_area": math.nan if cell.own_area is None else cell.own_area,
        "best_probability": math.nan if cell.best_probability is None else cell.best_probability,
    }
    return {
        "metric": table.metric,
        "row": row.name,
        "kind": row.kind,
        "detector": cell.detector,
        **{name: "" if math.isnan(value) else value for name, value in numbers.items()},
        "best": int(cell.detector in row.best),
    }


def _number(value: float | None) -> float | None:
    """JSON has no NaN: what is undefined is null."""
    return None if value is None or math.isnan(value) else value
