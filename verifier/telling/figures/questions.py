"""Pictures of answers: what each probability depends on, and comparisons of planners and detectors."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.sensitivity.state_map import MapRecord
from verifier.base.errors import UsageError, one_line
from verifier.base.numbers import fixed, level_text, significant
from verifier.questions.compare.compare_result import (
    CompareResult,
    Curve,
    ParetoView,
    RequirementComparison,
    SpecComparison,
)
from verifier.questions.explain.explain_result import Explained, ExplainResult
from verifier.telling.compare import short_name
from verifier.telling.figures.drawing import check_panels, framed, shades, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_WRITTEN = 120
"""Cells of a heat map into which numbers are written; more would not be legible."""
MOST_CELLS = 24
"""Cells of a column that are drawn side by side: those with the steepest slopes."""
MOST_LEVEL = 6
"""Cells up to which their names stand level beside each other."""
MOST_BINS = 60
"""Distance bins up to which each is named."""
TALLEST_IN = 14.0
"""Inches of one row."""


def explain_figure(result: ExplainResult) -> Figure:
    """one row per requirement that was explained.

    Args:
        result: with a map in every explanation, or in none.

    Raises:
        UsageError: more rows than can be drawn.
    """
    rows = len(result.explanations)
    check_panels(rows, "requirements (each with each planner)", choose="--requirement and --planner")
    height = min(max(2.6, 0.28 * len(result.bins) + 1.1) + 0.7 * (len(result.labels) > 3), TALLEST_IN)
    figure, axes = subplots(rows, 2, figsize=(12.5, height * rows + 0.5), squeeze=False)
    for explained, (left, right) in zip(result.explanations, axes, strict=True):
        _draw_gradient(figure, left, explained, result)
        _draw_map(figure, right, explained)
    figure.suptitle(one_line(result.title), fontsize="medium", parse_math=False)
    figure.tight_layout()
    return figure


def _draw_gradient(figure: Figure, axis: Axes, explained: Explained, result: ExplainResult) -> None:
    """Bins against the cells of the columns that the chain draws from."""
    names = result.labels
    used = [name for name in names if name in {column.true for column in explained.gradient}]
    cells = [(true, told) for true in used for told in names if told != true]
    table = np.full((len(result.bins), len(cells)), np.nan)
    for column in explained.gradient:
        for told, slope in zip(names, column.slopes, strict=True):
            if told != column.true:
                table[column.bin, cells.index((column.true, told))] = slope
    if len(cells) > MOST_CELLS:
        steepest = np.sort(np.argsort(-np.nanmax(np.abs(table), axis=0), kind="stable")[:MOST_CELLS])
        cells, table = [cells[at] for at in steepest], table[:, steepest]
    limit = float(np.nanmax(np.abs(table), initial=0.0)) or 1.0
    image = axis.imshow(table, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
    if len(cells) <= MOST_LEVEL:
        axis.set_xticks(range(len(cells)), [f"{true}\nas {told}" for true, told in cells], fontsize="small")
    else:
        slanted = [f"{true} as {told}" for true, told in cells]
        axis.set_xticks(range(len(cells)), slanted, fontsize="small", rotation=30, ha="right")
    if len(result.bins) <= MOST_BINS:
        axis.set_yticks(range(len(result.bins)), result.bins, fontsize="small")
    else:
        axis.set_ylabel("distance bin")
    if table.size <= MOST_WRITTEN:
        _write_numbers(axis, table, limit)
    axis.set_facecolor("0.9")
    what = "dP per unit of mass moved from the correct report; grey: never drawn from"
    axis.set_title(f"{_title(explained)}\n{what}", fontsize="small")
    figure.colorbar(image, ax=axis, fraction=0.046)


def _write_numbers(axis: Axes, table: NDArray[np.float64], limit: float) -> None:
    for (row, column), value in np.ndenumerate(table):
        if np.isfinite(value):
            colour = "white" if abs(value) > 0.6 * limit else "black"
            text = "0" if value == 0 else significant(value, 2)
            axis.text(column, row, text, ha="center", va="center", fontsize="x-small", color=colour)


def _title(explained: Explained) -> str:
    point = explained.point
    return f"{explained.name}, {explained.planner}, {point.scenario}: P = {significant(point.probability, 4)}"


def _draw_map(figure: Figure, axis: Axes, explained: Explained) -> None:
    from matplotlib.ticker import MaxNLocator

    record = explained.map
    if record is None:
        axis.set_visible(False)
        return
    point = explained.point
    swept = "".join(f", {name} = {value}" for name, value in point.constants.items())
    note = "worst over the other variables" if len(record.variables) == 1 else "grey: no run comes here"
    where = f"{point.environment}{swept}; {note}"
    axis.set_title(f"{explained.name}: P for runs that start in a state\n{where}", fontsize="small")
    probability = np.array(record.probability, dtype=float)  # None becomes NaN
    if len(record.variables) == 1:
        axis.plot(record.values[0], probability, marker="o", markersize=4, linestyle=":", linewidth=0.8)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.set_ylim(-0.02, 1.02)
        framed(axis, record.variables[0], "P")
        return
    image = axis.imshow(
        probability.T, origin="lower", aspect="auto", cmap="viridis", vmin=0, vmax=1, extent=_extent(record),
        interpolation="nearest",
    )  # fmt: skip
    axis.set_facecolor("0.9")
    axis.set_xlabel(record.variables[0])
    axis.set_ylabel(record.variables[1])
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.yaxis.set_major_locator(MaxNLocator(integer=True))
    figure.colorbar(image, ax=axis, fraction=0.046)


def _extent(record: MapRecord) -> tuple[float, float, float, float]:
    """Whole numbers in the middle of their pixels."""
    (left, right), (low, high) = ((float(value[0]) - 0.5, float(value[-1]) + 0.5) for value in record.values)
    return left, right, low, high


Panel: TypeAlias = "Callable[[Axes], None]"

COLUMNS = 2
MOST_PANELS = 24
MOST_CONTENDERS = 24
MARKERS = "osD^vP*X<>hp"


def compare_figure(result: CompareResult) -> Figure:
    """for each requirement its configurations and its curves, then the Pareto views.

    Raises:
        UsageError: more panels or configurations than can be told apart.
    """
    panels = [panel for spec in result.specs for panel in _panels(spec, len(result.specs) > 1, result.level)]
    most = max(len(spec.configurations) for spec in result.specs)
    if len(panels) > MOST_PANELS or most > MOST_CONTENDERS:
        raise UsageError(
            f"--plot: {len(panels)} panels of {most} configurations; at most {MOST_PANELS} of {MOST_CONTENDERS} are "
            "drawn. Choose with --requirement, --planner and --sweep"
        )
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    height = max(3.2, 0.9 + 0.24 * most)
    figure, axes = subplots(rows, columns, figsize=(4.2 * columns, height * rows), squeeze=False)
    for axis, panel in zip(axes.ravel(), panels, strict=False):
        panel(axis)
    for axis in axes.ravel()[len(panels) :]:
        axis.set_axis_off()
    figure.tight_layout()
    return figure


def _panels(spec: SpecComparison, many: bool, level: float) -> list[Panel]:
    before = f"{spec.spec}: " if many else ""
    panels: list[Panel] = []
    for requirement in spec.requirements:
        panels.append(partial(_draw_entries, spec, requirement, before, level))
        panels += [partial(_draw_curve, spec, requirement, curve, before, level) for curve in requirement.curves]
    if spec.pareto is not None:
        panels.append(partial(_draw_pareto, spec, spec.pareto, before))
    return panels


def _draw_entries(
    spec: SpecComparison, requirement: RequirementComparison, before: str, level: float, axis: Axes
) -> None:
    """One row per configuration: Storm's probability as a dot, the interval as a line, the bounds as a thin one."""
    count, mean = len(requirement.entries), requirement.over_profile  # bounds are of one scenario
    for k, (entry, colour) in enumerate(zip(requirement.entries, shades(count), strict=True)):
        for ends, width in ((None if mean else entry.confidence_bounds, 0.8), (entry.interval, 2.2)):
            if ends is not None:
                line = [ends.lower, ends.upper]
                axis.plot(line, [k, k], color=colour, linewidth=width, solid_capstyle="butt")
        axis.plot([entry.probability], [k], marker=_marker(k), color=colour, markersize=6)
    axis.set_yticks(range(count), [short_name(spec.configurations, k) for k in range(count)], fontsize="small")
    axis.set_ylim(count - 0.5, -0.5)
    axis.set_xlim(-0.02, 1.02)
    if requirement.target is not None:
        axis.axvline(float(requirement.target.probability), color="0.4", linestyle="--", linewidth=0.9)
    what = "mean over the profile" if mean else "worst scenario"
    bounded = not mean and any(entry.confidence_bounds is not None for entry in requirement.entries)
    thin = "; thin: bounds" if bounded else ""
    axis.set_xlabel(f"probability ({what}), {level_text(level)} interval{thin}", fontsize="small")
    axis.set_title(
        one_line(f"{before}{requirement.name}: {requirement.target_text}"), fontsize="small", parse_math=False
    )
    axis.grid(True, axis="x", linewidth=0.3)


def _draw_curve(
    spec: SpecComparison, requirement: RequirementComparison, curve: Curve, before: str, level: float, axis: Axes
) -> None:
    """One line per configuration with its interval as a band."""
    colours = shades(len(spec.configurations))
    for k, colour in enumerate(colours):
        known = [at for at, row in enumerate(curve.probability) if row[k] is not None]
        places = [float(Fraction(curve.places[at])) for at in known]
        low, high = ([_number(table[at][k]) for at in known] for table in (curve.lower, curve.upper))
        axis.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)
        values = [_number(curve.probability[at][k]) for at in known]
        name = short_name(spec.configurations, k)
        axis.plot(places, values, marker=_marker(k), markersize=4, linewidth=1.2, color=colour, label=name)
    if requirement.target is not None:
        axis.axhline(float(requirement.target.probability), color="0.4", linestyle="--", linewidth=0.9)
    if all(Fraction(place).denominator == 1 for place in curve.places):
        from matplotlib.ticker import MaxNLocator

        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_ylim(-0.02, 1.02)
    framed(axis, curve.axis, f"probability, {level_text(level)} band", f"{before}{requirement.name}")
    if len(spec.configurations) > 1:
        axis.legend(frameon=False, fontsize="x-small")


def _draw_pareto(spec: SpecComparison, pareto: ParetoView, before: str, axis: Axes) -> None:
    """Two requirements as coordinates; non-dominated configurations filled, with their chance of being so."""
    known = {requirement.name: requirement for requirement in spec.requirements}
    first, second = known[pareto.first], known[pareto.second]
    for k, colour in enumerate(shades(len(spec.configurations))):
        one, other = first.entries[k], second.entries[k]
        x, y = one.probability, other.probability
        axis.plot([one.interval.lower, one.interval.upper], [y, y], color=colour, linewidth=0.8, alpha=0.6)
        axis.plot([x, x], [other.interval.lower, other.interval.upper], color=colour, linewidth=0.8, alpha=0.6)
        face = colour if pareto.non_dominated[k] else "white"
        label = f"{short_name(spec.configurations, k)} ({fixed(pareto.chances[k], 2)})"
        axis.plot([x], [y], marker=_marker(k), color=colour, markerfacecolor=face, linestyle="", label=label)
    axis.margins(0.08)
    framed(axis, f"P {first.name}", f"P {second.name}", f"{before}filled: non-dominated (probability)")
    axis.legend(frameon=False, fontsize="x-small")


def _marker(k: int) -> str:
    return MARKERS[k % len(MARKERS)]


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
