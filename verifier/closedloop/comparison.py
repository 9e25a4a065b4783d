"""Detectors under conditions, by one metric: the tables of Pezzementi et al. 2021 (Tables 5-10), and what to choose.

A table has a column per detector and these rows: the baseline; each mutation, as the worst case (RobROC) of it and
the baseline; groups of mutations, as the worst case over all of them ("Any", "AnyMild"). A cell holds the area and
its ratio to the baseline's, the robustness. Beside them stands the mean over mutations of the plain areas (mPC and
rPC of Michaelis et al. 2019), which asks how well a detector does on average and lets gains offset losses.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from verifier.base.arrays import Floats, Mask
from verifier.base.documents import Magnitude, Share
from verifier.base.errors import UsageError, shown, unknown_error
from verifier.base.statistics import chance_ends, effective_number, percentile_ends, reaching, reaching_ratio, unseen
from verifier.closedloop.closed_loop_curve import Draws, LogSums
from verifier.closedloop.curves import TradeOffCurve, area, areas, robroc, robustness, worst_case

BASELINE = "baseline"
EQUAL = 1e-12
"""Areas that differ by less are equal: the order in which sums are rounded must not choose a detector."""
RowKind: TypeAlias = Literal["baseline", "condition", "group"]
Ends: TypeAlias = tuple[Magnitude | None, Magnitude | None]
"""Of an interval; None for an end that is not defined."""
_Entry: TypeAlias = tuple[str, RowKind, tuple[str, ...]]
"""Name, kind and conditions of a row."""


@dataclass(frozen=True, eq=False)
class NamedCurve:
    """A curve of one metric, detector and condition.

    Attributes:
        severity: of the condition, as "mild" or "severe"; "" where nothing is said.
        sums: what each log adds, for the bootstrap; None where that is not known.
        limit: the same without a time step; None where no step was taken, or that is not known.
    """

    metric: str
    detector: str
    condition: str
    curve: TradeOffCurve
    severity: str = ""
    sums: LogSums | None = None
    limit: LogSums | None = None


@dataclass(frozen=True)
class Cell:
    """One detector in one row; None for what is not defined.

    Attributes:
        area: of the worst case.
        robustness: by the baseline's area, unless that is 0.
        own_area: of the condition's curve alone; None in rows of several conditions.
        area_interval, robustness_interval: bootstrap over logs, no narrower than so few logs that say something
            allow (`verifier.base.statistics.reaching`), and of both engines where a time step was taken; or None.
        best_probability: share of the draws in which no detector of the row has more, ties shared; where a time step
            was taken half of the draws are without it; or None.
        best_interval: of that chance on other logs, as many as these (`verifier.base.statistics.chance_ends`).
        step_error: by how much the area differs without the time step; None where none was taken.
    """

    detector: str
    area: Magnitude
    robustness: Magnitude | None
    own_area: Magnitude | None = None
    area_interval: Ends | None = None
    robustness_interval: Ends | None = None
    best_probability: Share | None = None
    best_interval: tuple[Share, Share] | None = None
    step_error: Magnitude | None = None


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Attributes:
        conditions: that the worst case is over, the baseline first.
        best: the detectors with the greatest area; more than one only where areas are equal.
        cells: one per detector that has all of them.
        best_without_step: as `best` without the time step; None where none was taken.
    """

    name: str
    kind: RowKind
    conditions: tuple[str, ...]
    best: tuple[str, ...]
    cells: tuple[Cell, ...]
    best_without_step: tuple[str, ...] | None = None

    @property
    def flipped(self) -> frozenset[str]:
        """The detectors that are best, or not, only by the time step."""
        return frozenset() if self.best_without_step is None else frozenset(self.best) ^ set(self.best_without_step)

    def best_of(self, detectors: Collection[str]) -> tuple[str, ...]:
        """The best among these."""
        return _best({cell.detector: cell.area for cell in self.cells if cell.detector in detectors})


def _best(of: Mapping[str, float]) -> tuple[str, ...]:
    greatest = max(of.values(), default=0.0)
    return tuple(name for name, value in of.items() if value > greatest - EQUAL)


def winners(drawn: Floats) -> Mask:
    """(D, B) which of D detectors are best in each draw, by (D, B) areas; none where all areas are NaN."""
    areas_or_none = np.where(np.isnan(drawn), -np.inf, drawn)
    greatest = areas_or_none.max(axis=0)
    best: Mask = (areas_or_none > greatest - EQUAL) & (greatest > -np.inf)
    return best


@dataclass(frozen=True)
class MeanArea:
    """Over the mutations, of the areas of a detector's own curves (mPC), and that by the baseline's (rPC)."""

    detector: str
    area: Magnitude
    relative: Magnitude | None


@dataclass(frozen=True, eq=False)
class MetricTable:
    """All detectors and conditions by one metric.

    Attributes:
        detectors, conditions: in the order in which they were first named, the baseline first.
        rows: baseline, conditions, groups.
        drawn: (R, D, B) areas of every row and detector in each draw, NaN where there is none; None without a
            bootstrap. Where a time step was taken, so many more without it.
        means: one per detector that has every condition; empty without mutations.
        curves: by detector and condition.
    """

    metric: str
    detectors: tuple[str, ...]
    conditions: tuple[str, ...]
    severities: Mapping[str, str]
    rows: tuple[Row, ...]
    drawn: Floats | None
    means: tuple[MeanArea, ...]
    curves: Mapping[tuple[str, str], NamedCurve]

    def worst(self, detector: str, row: Row) -> TradeOffCurve:
        """The curve behind a cell."""
        return robroc([self.curves[detector, condition].curve for condition in row.conditions])


def compare(
    curves: Sequence[NamedCurve], groups: Mapping[str, Sequence[str]] | None = None, draws: Draws | None = None
) -> MetricTable:
    """The table of one metric.

    Args:
        curves: of one metric; every detector needs the condition "baseline".
        groups: name -> mutations, beside "Any" (all of them) and "AnyMild" (those of severity "mild").
        draws: for intervals; every curve then needs its sums.

    Raises:
        UsageError: a curve is there twice, a baseline is missing, a condition has two severities, a group names an
            unknown condition.
    """
    named = {(curve.detector, curve.condition): curve for curve in curves}
    if len(named) < len(curves):
        keys = [(curve.detector, curve.condition) for curve in curves]
        detector, condition = next(key for key in keys if keys.count(key) > 1)
        raise UsageError(f"two curves for detector {shown(detector)} under condition {shown(condition)}")
    detectors = tuple(dict.fromkeys(curve.detector for curve in curves))
    for name in detectors:
        if (name, BASELINE) not in named:
            raise UsageError(f"detector {shown(name)} has no curve for the condition '{BASELINE}'")
    conditions = tuple(dict.fromkeys([BASELINE, *(curve.condition for curve in curves)]))
    severities: dict[str, str] = {}
    for curve in curves:
        told = severities.setdefault(curve.condition, curve.severity)
        if told != curve.severity:
            both = " and ".join(shown(name) if name else "of no severity" for name in (told, curve.severity))
            raise UsageError(f"condition {shown(curve.condition)} is {both}: a condition has one severity")
    plan = _plan(conditions, severities, groups or {})
    columns = [_column(detector, plan, named, draws) for detector in detectors]
    return MetricTable(
        curves[0].metric,
        detectors,
        conditions,
        severities,
        tuple(_row(entry, at, columns, draws) for at, entry in enumerate(plan)),
        None if draws is None else np.stack([column.drawn for column in columns], axis=1),
        tuple(_means(detectors, conditions[1:], named)),
        named,
    )


def _plan(
    conditions: tuple[str, ...], severities: Mapping[str, str], groups: Mapping[str, Sequence[str]]
) -> list[_Entry]:
    mutations = conditions[1:]
    plan: list[_Entry] = [(BASELINE, "baseline", (BASELINE,))]
    plan += [(mutation, "condition", (BASELINE, mutation)) for mutation in mutations]
    mild = tuple(mutation for mutation in mutations if severities[mutation] == "mild")
    wanted: dict[str, Sequence[str]] = {"Any": mutations} if len(mutations) > 1 else {}
    if mild and len(mild) < len(mutations):
        wanted["AnyMild"] = mild
    for name, members in {**wanted, **groups}.items():
        if name in conditions:
            raise UsageError(f"a group cannot have the name of a condition, {shown(name)}")
        for member in members:
            if member not in mutations:
                raise unknown_error("condition", member, mutations, before=f"group {shown(name)}: ")
        plan.append((name, "group", (BASELINE, *members)))
    return plan


@dataclass(frozen=True, eq=False)
class _Column:
    """A detector's baseline area, its cells, None where it lacks a condition, (rows, B) areas in every draw, areas
    without the time step, and the weights of the logs that say something: of the kind of which most may be unseen."""

    baseline: float
    cells: list[Cell | None]
    drawn: Floats
    limits: list[float | None]
    logs: list[Floats]


def _column(
    detector: str, plan: Sequence[_Entry], named: Mapping[tuple[str, str], NamedCurve], draws: Draws | None
) -> _Column:
    own = {condition: curve for (name, condition), curve in named.items() if name == detector}
    baseline = area(own[BASELINE].curve)
    stepped = all(curve.limit is not None for curve in own.values())
    resampled = {} if draws is None else {name: _drawn(curve, draws, stepped) for name, curve in own.items()}
    drawn = np.full((len(plan), 0 if draws is None else len(draws.weights) * (1 + stepped)), np.nan)
    cells, limits, logs = list[Cell | None](), list[float | None](), list[Floats]()
    for at, (_, kind, conditions) in enumerate(plan):
        there = [own[condition] for condition in conditions if condition in own]
        weights = [own for curve in there if curve.sums is not None for own in curve.sums.informative]
        logs.append(max(weights, key=lambda own: unseen(own, 0.95), default=np.zeros(0)))
        limits.append(
            area(robroc([curve.limit.curve for curve in there if curve.limit is not None])) if stepped else None
        )
        if len(there) < len(conditions):
            cells.append(None)
            continue
        worst, limit = area(robroc([curve.curve for curve in there])), limits[-1]
        alone = None if kind == "group" else area(there[-1].curve)
        error = None if limit is None else abs(worst - limit)
        cells.append(Cell(detector, worst, robustness(worst, baseline), alone, step_error=error))
        if draws is not None:
            levels = [curve.curve.sensitivity for curve in there]
            safety, efficiency = zip(*(resampled[condition] for condition in conditions), strict=True)
            drawn[at] = areas(*worst_case(levels, safety, efficiency)[1:])
    return _Column(baseline, cells, drawn, limits, logs)


def _drawn(curve: NamedCurve, draws: Draws, stepped: bool) -> tuple[Floats, Floats]:
    """Safety and efficiency in every draw; where a step was taken, then in every draw without it."""
    if curve.sums is None:
        raise ValueError(f"the logs behind the curve of {curve.detector!r} under {curve.condition!r} are not known")
    both = [sums.drawn(draws.weights) for sums in (curve.sums, curve.limit if stepped else None) if sums is not None]
    return np.concatenate([safety for safety, _ in both]), np.concatenate([efficiency for _, efficiency in both])


def _row(entry: _Entry, at: int, columns: Sequence[_Column], draws: Draws | None) -> Row:
    cells = [column.cells[at] for column in columns]
    given = [cell for cell in cells if cell is not None]
    if draws is not None:
        best = winners(np.stack([column.drawn[at] for column in columns]))
        known = best.any(axis=0)
        shares = best[:, known] / best[:, known].sum(axis=0)
        given = [
            _with_draws(cell, column, at, share, draws, len(given) - 1)
            for cell, column, share in zip(cells, columns, shares, strict=True)
            if cell is not None
        ]
    limits = {
        cell.detector: limit
        for cell, column in zip(cells, columns, strict=True)
        if cell is not None and (limit := column.limits[at]) is not None
    }
    best_areas = _best({cell.detector: cell.area for cell in given})
    return Row(*entry, best_areas, tuple(given), _best(limits) if given and len(limits) == len(given) else None)


def _with_draws(cell: Cell, column: _Column, at: int, best: Floats, draws: Draws, rivals: int) -> Cell:
    """A cell with what the draws say of it; `best` is its share of being best in each draw that has a best."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = column.drawn[at] / column.drawn[0]
    area_ends, ends = _ends(column.drawn[at], cell.area, draws), _ends(ratio, cell.robustness, draws)
    chance = float(best.mean()) if best.size else None
    robust: Ends | None = (1.0, 1.0)  # of the baseline, by definition
    if at and cell.robustness is not None:
        robust = reaching_ratio(ends, cell.area, column.baseline, column.logs[at], 1.0, draws.confidence)
    return replace(
        cell,
        area_interval=reaching(area_ends, cell.area, column.logs[at], confidence=draws.confidence) or (None, None),
        robustness_interval=robust if robust is not None and cell.robustness is not None else (None, None),
        best_probability=chance,
        best_interval=None
        if chance is None or rivals == 0
        else chance_ends(chance, effective_number(column.logs[at]), draws.confidence),
    )


def _ends(drawn: Floats, value: float | None, draws: Draws) -> tuple[float, float]:
    """Of the draws, of both engines together; the value where nothing was drawn."""
    if not len(drawn):
        return (math.nan, math.nan) if value is None else (value, value)
    both = [percentile_ends(array, draws.confidence) for array in np.split(drawn, len(drawn) // len(draws.weights))]
    return min(low for low, _ in both), max(high for _, high in both)


def _means(
    detectors: tuple[str, ...], mutations: tuple[str, ...], named: Mapping[tuple[str, str], NamedCurve]
) -> list[MeanArea]:
    mean_areas = []
    for detector in detectors:
        own = [area(named[detector, condition].curve) for condition in mutations if (detector, condition) in named]
        if own and len(own) == len(mutations):
            mean = math.fsum(own) / len(own)
            mean_areas.append(MeanArea(detector, mean, robustness(mean, area(named[detector, BASELINE].curve))))
    return mean_areas
