"""Indicators as a document, what was counted in the field, and what a test valid at every look says of it.

UL 4600, clause 16; ISO 21448, clause 13; ISO/PAS 8800, clause 14 (to be confirmed against the licensed texts).
"""

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeAlias

from verifier.analysis.sequential import log_against_rate, log_against_share
from verifier.base.documents import Count, InputFile, Level, Limits, Magnitude, MisfitError
from verifier.base.errors import ExitCode, InputError, Place, shown, unknown_name
from verifier.base.files import read_text
from verifier.base.numbers import significant
from verifier.evidence.declarations import DayText, day_in, rows_of

COLUMNS, DATE = ("metric", "count", "of"), "date"
LARGEST = 10**12
_FAR = 300.0
Falls: TypeAlias = Literal["requirement", "rate"]
"""What falls when it fires: that the requirements are met, or what is said of them per hour."""


@dataclass(frozen=True, kw_only=True)
class Indicator:
    """One claim about what is counted in the field.

    Attributes:
        metric: what is counted, as the file of the field names it.
        kind: a share of items, or a rate per hour.
        side, threshold: what is claimed of it.
        requirements, falls: what falls when it is contradicted.
        measure: how to count: what an item is, and which count.
        source: where the threshold comes from.
        least: items or hours after which a `departure` is found with probability .9; None if beyond reach.
        action: what to do when it fires.
    """

    metric: Annotated[str, Limits(min_length=1)]
    kind: Literal["share", "rate"]
    side: Literal["at_least", "at_most"]
    threshold: Magnitude
    departure: str
    requirements: tuple[str, ...]
    falls: Falls
    measure: str
    source: str
    least: float | None
    action: str

    def __post_init__(self) -> None:
        low, share = self.side == "at_least", self.kind == "share"
        possible = 0 < self.threshold <= 1 if low else 0 <= self.threshold < 1
        if not (possible if share else not low and self.threshold > 0):
            of_share = f"a share {'above 0' if low else 'below 1'}"
            said = f"expected {of_share if share else 'at most a rate above 0'}, which can be contradicted"
            raise MisfitError(["threshold"], f"{said}, got {self.threshold:g}")

    @property
    def told(self) -> str:
        """For people: `recall ped [0, 10) m at least 0.95`."""
        unit = " per hour" if self.kind == "rate" else ""
        return f"{self.metric} {self.side.replace('_', ' ')} {significant(self.threshold, 6)}{unit}"

    def evidence(self, count: float, of: float) -> float:
        """Log of the evidence against it."""
        if self.kind == "rate":
            return log_against_rate(count, of, self.threshold)
        if self.side == "at_least":
            return log_against_share(count, of, self.threshold)
        return log_against_share(of - count, of, 1 - self.threshold)


@dataclass(frozen=True, kw_only=True)
class SpiResult:
    """The indicators of a case; each is tested at its own level."""

    schema: ClassVar[str] = "verifier.spi"
    version: ClassVar[int] = 1
    title: str
    level: Level
    indicators: tuple[Indicator, ...]


@dataclass(frozen=True)
class FieldRow:
    """What was counted since the row of the same metric before: `count` of so many items, or in so many hours,
    until the day `dated`, where that is stated."""

    metric: str
    count: float
    of: float
    dated: datetime.date | None = None


@dataclass(frozen=True, kw_only=True)
class IndicatorFound:
    """What the field says of one indicator.

    Attributes:
        looks, count, of: rows and their sums.
        evidence_log10: the most that there was at any look; it fires at -log10(1 - level).
        fired_at: look at which it fired, from 1; None where it did not.
        fired_on: the day of that look, if it is stated.
    """

    indicator: Indicator
    looks: Count
    count: float
    of: float
    evidence_log10: float
    fired_at: int | None
    fired_on: DayText | None = None

    @property
    def fired_told(self) -> str:
        """When it fired: `fired at look 2, 2026-05-04`."""
        return f"fired at look {self.fired_at}{f', {self.fired_on}' if self.fired_on else ''}"

    @property
    def state(self) -> str:
        """For people."""
        if self.fired_at is not None:
            return "fired"
        return "not contradicted" if self.looks else "no data"


@dataclass(frozen=True, kw_only=True)
class SpiCheckResult:
    """Result of `verify spi check`.

    Attributes:
        inputs: the indicators and the file of the field.
    """

    schema: ClassVar[str] = "verifier.spi_check"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[InputFile, ...]
    title: str
    level: Level
    found: tuple[IndicatorFound, ...]

    @property
    def exit_code(self) -> ExitCode:
        """Violated where one fired, inconclusive where one has no data, or there is none."""
        states = {indicator.state for indicator in self.found}
        if "fired" in states:
            return ExitCode.VIOLATED
        return ExitCode.INCONCLUSIVE if "no data" in states or not states else ExitCode.SATISFIED


def read_field(path: str | Path) -> tuple[FieldRow, ...]:
    """The rows of a CSV file with the columns metric, count, of, and perhaps date; InputError with its line."""
    return field_rows(read_text(path)[0], path)


def field_rows(text: str, path: str | Path) -> tuple[FieldRow, ...]:
    """As `read_field`, for the text of the file."""
    rows, last = list[FieldRow](), dict[str, datetime.date]()
    for row, place in rows_of(text, path, COLUMNS, (DATE,)):
        one = _row(row, place)
        if one.dated is not None and one.dated < last.get(one.metric, one.dated):
            found = f"found {one.dated} behind {last[one.metric]}"
            raise InputError(f"expected the looks of {one.metric} in their order, {found}", place)
        if one.dated is not None:
            last[one.metric] = one.dated
        rows.append(one)
    return tuple(rows)


def _row(row: Mapping[str, str], place: Place) -> FieldRow:
    try:
        count, of = float(row["count"]), float(row["of"])
    except ValueError:
        said = f"expected a metric and two numbers, found {shown(','.join(row.values()))}"
        raise InputError(said, place) from None
    if not (0 <= count <= LARGEST and 0 < of <= LARGEST) or count % 1:
        raise InputError("expected a whole count from 0, of a number of items or hours above 0", place)
    return FieldRow(row["metric"], count, of, day_in(row[DATE], place) if row[DATE] else None)


def tested(spi: SpiResult, rows: Sequence[FieldRow], file: str) -> tuple[IndicatorFound, ...]:
    """What the field says of each indicator.

    Raises:
        InputError: a metric that no indicator is about, or of a share more counts than items, or a part of an item.
    """
    metrics = {indicator.metric: indicator.kind for indicator in spi.indicators}
    for row in rows:
        if row.metric not in metrics:
            message, hint = unknown_name("metric", row.metric, metrics)
            raise InputError(message, Place(file), hint)
        if metrics[row.metric] == "share" and (row.count > row.of or row.of % 1):
            observed = f"found {significant(row.count, 10)} of {significant(row.of, 10)}"
            said = f"{shown(row.metric)}: expected a count of at most as many items, a whole number, {observed}"
            raise InputError(said, Place(file))
    by_metric = {name: [row for row in rows if row.metric == name] for name in metrics}
    return tuple(_tested(indicator, by_metric[indicator.metric], spi.level) for indicator in spi.indicators)


def _tested(indicator: Indicator, rows: Sequence[FieldRow], level: float) -> IndicatorFound:
    count, of, most, fired, day = 0.0, 0.0, 0.0, None, None
    for look, row in enumerate(rows, 1):
        count, of = count + row.count, of + row.of
        most = max(most, min(indicator.evidence(count, of) / math.log(10), _FAR))
        if fired is None and most >= -math.log10(1 - level):
            fired, day = look, None if row.dated is None else str(row.dated)
    return IndicatorFound(
        indicator=indicator, looks=len(rows), count=count, of=of, evidence_log10=most, fired_at=fired, fired_on=day
    )
