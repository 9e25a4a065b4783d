"""Explanations as pictures: what each probability depends on, and the chance from every state.

Left, bins against cells: how much P changes when a unit of a column's mass moves from the correct report to this one.
Right, P of the formula for runs that start in a state, over one or two variables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import UsageError, one_line
from verifier.base.numbers import significant
from verifier.questions.explain.explain_result import Explained, ExplainResult, MapRecord
from verifier.telling.figures.drawing import MOST_ROWS, subplots

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
    if rows > MOST_ROWS:
        raise UsageError(
            f"--plot: {rows} requirements (each with each planner); at most {MOST_ROWS} are drawn. Choose with "
            "--requirement and --planner"
        )
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
        axis.set_xlabel(record.variables[0])
        axis.set_ylabel("P")
        axis.set_ylim(-0.02, 1.02)
        axis.grid(True, linewidth=0.3)
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
