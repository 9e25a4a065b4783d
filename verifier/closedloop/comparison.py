"""Detectors under conditions, by one metric: the tables of Pezzementi et al. 2021 (Tables 5-10), and what to choose.

A table has a column per detector and these rows: the baseline; each mutation, as the worst case (RobROC) of it and
the baseline; groups of mutations, as the worst case over all of them ("Any", "AnyMild"). A cell holds the area and
its ratio to the baseline's, the robustness. Beside them stands the mean over mutations of the plain areas (mPC and
rPC of Michaelis et al. 2019), which asks how well a detector does on average and lets gains offset losses.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats
from verifier.base.errors import UsageError, shown, unknown_name
from verifier.base.statistics import percentile_ends
from verifier.closedloop.bootstrap import Draws, LogSums
from verifier.closedloop.curves import TradeOffCurve
from verifier.closedloop.robroc import area, areas, robroc, robustness, worst_case

BASELINE = "baseline"
EQUAL = 1e-12
"""Areas that differ by less are equal: the order in which sums are rounded must not choose a detector."""
RowKind: TypeAlias = Literal["baseline", "condition", "group"]
_Entry: TypeAlias = tuple[str, RowKind, tuple[str, ...]]
"""Name, kind and conditions of a row."""


@dataclass(frozen=True, eq=False)
class NamedCurve:
    """A curve of one metric, detector and condition.

    Attributes:
        severity: of the condition, as "mild" or "severe"; "" where nothing is said.
        sums: what each log adds, for the bootstrap; None where that is not known.
    """

    metric: str
    detector: str
    condition: str
    curve: TradeOffCurve
    severity: str = ""
    sums: LogSums | None = None


@dataclass(frozen=True)
class Cell:
    """One detector in one row.

    Attributes:
        area: of the worst case.
        robustness: by the baseline's area; NaN where that is 0.
        own_area: of the condition's curve alone; None in rows of several conditions.
        area_interval, robustness_interval: bootstrap over logs, or None.
        best_probability: share of the draws in which no detector of the row has more, ties shared; or None.
    """

    detector: str
    area: float
    robustness: float
    own_area: float | None
    area_interval: tuple[float, float] | None = None
    robustness_interval: tuple[float, float] | None = None
    best_probability: float | None = None


@dataclass(frozen=True, eq=False)
class Row:
    """One row of a table.

    Attributes:
        conditions: that the worst case is over, the baseline first.
        cells: one per detector that has all of them.
        drawn: (D, B) areas of the table's detectors in each draw, NaN where there is none; None without a bootstrap.
    """

    name: str
    kind: RowKind
    conditions: tuple[str, ...]
    cells: tuple[Cell, ...]
    drawn: Floats | None = None

    @property
    def best(self) -> tuple[str, ...]:
        """The detectors with the greatest area; more than one only where areas are equal."""
        return self.best_of([each.detector for each in self.cells])

    def best_of(self, detectors: Collection[str]) -> tuple[str, ...]:
        """The best among these."""
        cells = [each for each in self.cells if each.detector in detectors]
        greatest = max((each.area for each in cells), default=0.0)
        return tuple(each.detector for each in cells if each.area > greatest - EQUAL)


def winners(drawn: Floats) -> NDArray[np.bool_]:
    """(D, B) which of D detectors are best in each draw, by (D, B) areas; none where all areas are NaN."""
    areas_or_none = np.where(np.isnan(drawn), -np.inf, drawn)
    greatest = areas_or_none.max(axis=0)
    best: NDArray[np.bool_] = (areas_or_none > greatest - EQUAL) & (greatest > -np.inf)
    return best


@dataclass(frozen=True)
class Mean:
    """Mean over mutations for one detector: of the plain areas, and that by the baseline's (rPC)."""

    detector: str
    area: float
    relative: float


@dataclass(frozen=True, eq=False)
class MetricTable:
    """All detectors and conditions by one metric.

    Attributes:
        detectors, conditions: in the order in which they were first named, the baseline first.
        severities: of the conditions.
        rows: baseline, conditions, groups.
        means: one per detector that has every condition; empty without mutations.
        curves: by detector and condition.
    """

    metric: str
    detectors: tuple[str, ...]
    conditions: tuple[str, ...]
    severities: Mapping[str, str]
    rows: tuple[Row, ...]
    means: tuple[Mean, ...]
    curves: Mapping[tuple[str, str], NamedCurve]

    def worst(self, detector: str, row: Row) -> TradeOffCurve:
        """The curve behind a cell."""
        return robroc([self.curves[detector, each].curve for each in row.conditions])


def compare(
    curves: Sequence[NamedCurve], groups: Mapping[str, Sequence[str]] | None = None, draws: Draws | None = None
) -> MetricTable:
    """The table of one metric.

    Args:
        curves: of one metric; every detector needs the condition "baseline".
        groups: name -> mutations, beside "Any" (all of them) and "AnyMild" (those of severity "mild").
        draws: for intervals; every curve then needs its sums.

    Raises:
        UsageError: a curve is there twice, a baseline is missing, a group names an unknown condition.
    """
    named = {(each.detector, each.condition): each for each in curves}
    if len(named) < len(curves):
        keys = [(each.detector, each.condition) for each in curves]
        detector, condition = next(key for key in keys if keys.count(key) > 1)
        raise UsageError(f"two curves for detector {shown(detector)} under condition {shown(condition)}")
    detectors = tuple(dict.fromkeys(each.detector for each in curves))
    for each in detectors:
        if (each, BASELINE) not in named:
            raise UsageError(f"detector {shown(each)} has no curve for the condition '{BASELINE}'")
    conditions = tuple(dict.fromkeys([BASELINE, *(each.condition for each in curves)]))
    severities = {each.condition: each.severity for each in curves}
    plan = _plan(conditions, severities, groups or {})
    columns = [_column(each, plan, named, draws) for each in detectors]
    return MetricTable(
        curves[0].metric,
        detectors,
        conditions,
        severities,
        tuple(_row(entry, at, columns, draws) for at, entry in enumerate(plan)),
        tuple(_means(detectors, conditions[1:], named)),
        named,
    )


def _plan(
    conditions: tuple[str, ...], severities: Mapping[str, str], groups: Mapping[str, Sequence[str]]
) -> list[_Entry]:
    mutations = conditions[1:]
    plan: list[_Entry] = [(BASELINE, "baseline", (BASELINE,))]
    plan += [(each, "condition", (BASELINE, each)) for each in mutations]
    mild = tuple(each for each in mutations if severities[each] == "mild")
    wanted: dict[str, Sequence[str]] = {"Any": mutations} if len(mutations) > 1 else {}
    if mild and len(mild) < len(mutations):
        wanted["AnyMild"] = mild
    for name, members in {**wanted, **groups}.items():
        if name in conditions:
            raise UsageError(f"a group cannot have the name of a condition, {shown(name)}")
        for each in members:
            if each not in mutations:
                message, hint = unknown_name("condition", each, mutations)
                raise UsageError(f"group {shown(name)}: {message} ({hint})")
        plan.append((name, "group", (BASELINE, *members)))
    return plan


@dataclass(frozen=True, eq=False)
class _Column:
    """A detector's cells, None where it lacks a condition, and (rows, B) areas in every draw."""

    cells: list[Cell | None]
    drawn: Floats


def _column(
    detector: str, plan: Sequence[_Entry], named: Mapping[tuple[str, str], NamedCurve], draws: Draws | None
) -> _Column:
    own = {condition: each for (name, condition), each in named.items() if name == detector}
    baseline = area(own[BASELINE].curve)
    resampled = {} if draws is None else {name: _drawn(each, draws) for name, each in own.items()}
    drawn = np.full((len(plan), 0 if draws is None else len(draws.weights)), np.nan)
    cells: list[Cell | None] = []
    for at, (_, kind, conditions) in enumerate(plan):
        if any(each not in own for each in conditions):
            cells.append(None)
            continue
        worst = area(robroc([own[each].curve for each in conditions]))
        alone = None if kind == "group" else area(own[conditions[-1]].curve)
        cells.append(Cell(detector, worst, robustness(worst, baseline), alone))
        if draws is not None:
            levels = [own[each].curve.sensitivity for each in conditions]
            safety, efficiency = zip(*(resampled[each] for each in conditions), strict=True)
            drawn[at] = areas(*worst_case(levels, safety, efficiency)[1:])
    return _Column(cells, drawn)


def _drawn(each: NamedCurve, draws: Draws) -> tuple[Floats, Floats]:
    if each.sums is None:
        raise ValueError(f"the logs behind the curve of {each.detector!r} under {each.condition!r} are not known")
    return each.sums.drawn(draws.weights)


def _row(entry: _Entry, at: int, columns: Sequence[_Column], draws: Draws | None) -> Row:
    cells = [column.cells[at] for column in columns]
    if draws is None:
        return Row(*entry, tuple(each for each in cells if each is not None))
    drawn = np.stack([each.drawn[at] for each in columns])
    best = winners(drawn)
    known = best.any(axis=0)
    shares = best[:, known] / best[:, known].sum(axis=0)
    found = []
    for number, (cell, column) in enumerate(zip(cells, columns, strict=True)):
        if cell is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = column.drawn[at] / column.drawn[0]
            found.append(
                replace(
                    cell,
                    area_interval=percentile_ends(column.drawn[at], draws.confidence),
                    robustness_interval=percentile_ends(ratio, draws.confidence),
                    best_probability=float(shares[number].mean()) if shares.size else math.nan,
                )
            )
    return Row(*entry, tuple(found), drawn)


def _means(
    detectors: tuple[str, ...], mutations: tuple[str, ...], named: Mapping[tuple[str, str], NamedCurve]
) -> list[Mean]:
    found = []
    for each in detectors:
        own = [area(named[each, condition].curve) for condition in mutations if (each, condition) in named]
        if own and len(own) == len(mutations):
            mean = math.fsum(own) / len(own)
            found.append(Mean(each, mean, robustness(mean, area(named[each, BASELINE].curve))))
    return found
