"""Pictures of trade-offs: curves as in Figures 8-11 and tables as in Tables 5-10 of Pezzementi et al. 2021."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import UsageError, one_line, unknown_name
from verifier.base.numbers import fixed, significant
from verifier.closedloop.comparison import MetricTable, Row
from verifier.closedloop.curves import TradeOffCurve, area
from verifier.closedloop.trade_offs import TradeOffs
from verifier.telling.figures.drawing import MOST_ROWS, check_panels, plain, subplots, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKS = "osD^v"
STYLES = (
    ("baseline", {"color": "#56b4e9", "linestyle": "-", "linewidth": 5.0}),
    ("condition", {"color": "#d55e00", "linestyle": "-", "linewidth": 2.4}),
    ("worst case", {"color": "black", "linestyle": "--", "linewidth": 1.1}),
)
"""From wide and light to thin and dark, so that of equal lines each is seen; colours of Okabe and Ito (2008)."""
WIDTH_IN, TABLE_IN, CELL_IN = 7.2, 11.0, 0.46
"""Of curves, of all tables beside each other, and of a number in them."""
_Curve: TypeAlias = tuple[str, TradeOffCurve, dict[str, Any]]
"""Name, curve and style."""


def curves_figure(result: TradeOffs, detectors: Sequence[str] = (), rows: Sequence[str] = ()) -> Figure:
    """Safety and efficiency against sensitivity, and against each other: by every metric, or by the last if many.

    Args:
        detectors: only these; empty for all.
        rows: conditions or groups; empty for each detector's least robust condition.

    Raises:
        UsageError: an unknown name, or too many panels.
    """
    last = _panels(result.tables[-1], detectors, rows)
    check_panels(len(last), "rows of panels (detectors x conditions)", choose="--plot-detector and --plot-row")
    tables = result.tables if len(last) * len(result.tables) <= MOST_ROWS else result.tables[-1:]
    lines = [
        (table, detector, known, _curves(table, detector, known))
        for detector, row in last
        for table in tables
        for known in table.rows
        if known.name == row.name and any(cell.detector == detector for cell in known.cells)
    ]
    marked = _marked([curve for *_, curves in lines for curve in curves])
    figure, axes = subplots(
        len(lines), 3, figsize=(WIDTH_IN, 2.1 * len(lines) + 1.0), squeeze=False, layout="constrained"
    )
    for panels, (table, detector, row, curves) in zip(axes, lines, strict=True):
        _draw_levels(panels, curves, marked)
        _draw_trade_off(panels[2], curves, marked)
        heading = f"{table.metric.replace('_', ' ')}: {detector}, {row.name}"
        panels[0].set_title(wrapped(heading, 60), fontsize="small", loc="left", fontweight="bold")
        told = ", ".join(fixed(area(curve), 3) for _, curve, _ in curves)
        panels[2].set_title(f"areas {told}", fontsize="small", loc="right")
    for axis in axes[-1][:2]:
        axis.set_xlabel(_level_name(result), fontsize="small")
    axes[-1][2].set_xlabel("efficiency", fontsize="small")
    figure.suptitle(wrapped(f"{result.title} (areas in the order of the legend)", 90), fontsize="small")
    _legend(figure, lines[0][3], marked)
    return figure


def _legend(figure: Figure, curves: Sequence[_Curve], marked: NDArray[np.float64]) -> None:
    """What each line and each mark means, below all panels."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=name, **style) for (name, style), _ in zip(_named(curves), curves, strict=True)]
    handles += [
        Line2D([], [], marker=mark, linestyle="", color="0.25", mfc="none", label=f"at {significant(at)}")
        for mark, at in zip(MARKS, marked, strict=False)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize="small")


def _named(curves: Sequence[_Curve]) -> list[tuple[str, dict[str, Any]]]:
    """The kinds of the curves drawn, which headings name, with their styles."""
    colours = {style["color"] for _, _, style in curves}
    return [(name, style) for name, style in STYLES if style["color"] in colours]


def table_figure(result: TradeOffs) -> Figure:
    """One table per metric: areas as numbers; the baseline's row grey by area, the others coloured by robustness."""
    widest = max(len(table.detectors) for table in result.tables)
    longest = max((len(row.name) for table in result.tables for row in table.rows), default=0)
    margin_in, each_in = 0.4 + 0.075 * min(longest, 60), CELL_IN * widest + 0.5
    columns = max(1, min(len(result.tables), int((TABLE_IN - margin_in) / each_in)))
    lines = -(-len(result.tables) // columns)
    tall_in = max(0.2 * max(len(table.rows) for table in result.tables) + 1.1, 2.8)
    size = (margin_in + each_in * columns + 0.7, tall_in * lines)
    figure, axes = subplots(lines, columns, figsize=size, squeeze=False, layout="constrained")
    for axis in axes.ravel()[len(result.tables) :]:
        axis.set_visible(False)
    shown: Any = None
    for number, (axis, table) in enumerate(zip(axes.ravel(), result.tables, strict=False)):
        shown = _draw_table(axis, table)
        names = [[row.name for row in table.rows] for table in result.tables[max(number - 1, 0) : number + 1]]
        if number % columns and names[0] == names[1]:
            axis.set_yticklabels([])
    bar = figure.colorbar(shown, ax=axes.ravel().tolist(), aspect=40, pad=0.01, shrink=min(1.0, 3 / size[1]))
    bar.set_label("worst case / baseline (bold: best)", fontsize="small")
    bar.ax.tick_params(labelsize="small")
    return figure


def _panels(table: MetricTable, detectors: Sequence[str], rows: Sequence[str]) -> list[tuple[str, Row]]:
    known = {row.name: row for row in table.rows}
    for given, names, kind in ((detectors, table.detectors, "detector"), (rows, known, "condition or group")):
        for name in given:
            if name not in names:
                message, hint = unknown_name(kind, name, names)
                raise UsageError(f"--plot: {message} ({hint})")
    panels = []
    for detector in detectors or table.detectors:
        chosen = [known[name] for name in rows] or [_least_robust(table, detector)]
        panels += [(detector, row) for row in chosen if any(cell.detector == detector for cell in row.cells)]
    if not panels:
        raise UsageError("--plot: no detector that is asked for has a curve in a row that is asked for")
    return panels


def _least_robust(table: MetricTable, detector: str) -> Row:
    areas = {
        row.name: cell.area
        for row in table.rows
        for cell in row.cells
        if row.kind == "condition" and cell.detector == detector
    }
    name = min(areas, key=lambda name: areas[name]) if areas else table.rows[0].name
    return next(row for row in table.rows if row.name == name)


def _curves(table: MetricTable, detector: str, row: Row) -> list[_Curve]:
    """Name, curve and style: the baseline, the condition where there is one, and the worst case."""
    baseline = table.curves[detector, row.conditions[0]].curve
    curves = [(STYLES[0][0], baseline, STYLES[0][1])]
    if row.kind == "condition":
        curves.append((plain(row.name), table.curves[detector, row.conditions[1]].curve, STYLES[1][1]))
    if row.kind != "baseline":
        curves.append((STYLES[2][0], table.worst(detector, row), STYLES[2][1]))
    return curves


def _sorted(curve: TradeOffCurve) -> tuple[NDArray[np.float64], ...]:
    order = np.argsort(curve.sensitivity)
    return curve.sensitivity[order], curve.safety[order], curve.efficiency[order]


def _draw_levels(axes: Sequence[Axes], curves: Sequence[_Curve], marked: NDArray[np.float64]) -> None:
    """Safety, and beside it efficiency, against sensitivity: each value holds from its level to the next."""
    levels = np.concatenate([curve.sensitivity for _, curve, _ in curves])
    wide = levels.min() > 0 and levels.max() / levels.min() > 20
    for axis, name in zip(axes, ("safety", "efficiency"), strict=False):
        for _, curve, style in curves:
            level, safety, efficiency = _sorted(curve)
            value = safety if name == "safety" else efficiency
            axis.plot(level, value, drawstyle="steps-post", **style)
            for mark, at in zip(MARKS, marked, strict=False):
                here = level == at
                axis.plot(level[here], value[here], mark, markersize=6, color=style["color"], mfc="none")
        axis.set_xscale("log" if wide else "linear")
        _framed(axis, name)


def _draw_trade_off(axis: Axes, curves: Sequence[_Curve], marked: NDArray[np.float64]) -> None:
    """The points, the outline of the area under them, and marks where the curves have the same sensitivity."""
    for _, curve, style in curves:
        along, up = _outline(curve)
        axis.plot(along, up, **style)
        axis.plot(curve.efficiency, curve.safety, ".", markersize=2.5, color=style["color"])
        for mark, at in zip(MARKS, marked, strict=False):
            here = np.flatnonzero(curve.sensitivity == at)
            axis.plot(
                curve.efficiency[here], curve.safety[here], mark, markersize=6, color=style["color"], mfc="none"
            )
    axis.set_xlim(-0.04, 1.04)
    _framed(axis, "safety")


def _framed(axis: Axes, name: str) -> None:
    axis.set_ylim(-0.04, 1.06)
    axis.set_ylabel(name, fontsize="small", labelpad=3)
    axis.tick_params(labelsize="x-small")
    axis.grid(True, linewidth=0.3)


def _outline(curve: TradeOffCurve) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Corners of the union of the rectangles under the points, from the right end down to the axis on the left."""
    order = np.argsort(-curve.efficiency, kind="stable")
    right, height = curve.efficiency[order], np.maximum.accumulate(curve.safety[order])
    along = np.concatenate([[right[0]], np.repeat(right, 2)[1:], [0.0]])
    return along, np.concatenate([[0.0], np.repeat(height, 2)])


def _marked(curves: Sequence[_Curve]) -> NDArray[np.float64]:
    """Some sensitivities at which every curve was tried, from the least to the greatest."""
    common = np.unique(curves[0][1].sensitivity)
    for _, curve, _ in curves[1:]:
        common = np.intersect1d(common, curve.sensitivity)
    chosen = np.linspace(0, len(common) - 1, min(len(MARKS), len(common))).round().astype(int)
    return np.asarray(common[chosen])


def _level_name(result: TradeOffs) -> str:
    if "control_radius_m" in result.settings:
        return "sensitivity\n(nominal false positives per image)"
    return str(result.settings.get("sensitivity", "sensitivity"))


def _draw_table(axis: Axes, table: MetricTable) -> Any:
    baseline, others = (np.full((len(table.rows), len(table.detectors)), np.nan) for _ in range(2))
    for at, row in enumerate(table.rows):
        for cell in row.cells:
            column = table.detectors.index(cell.detector)
            (baseline if row.kind == "baseline" else others)[at, column] = (
                cell.area if row.kind == "baseline" else cell.robustness
            )
            dark = row.kind != "baseline" and cell.robustness is not None and cell.robustness < 0.35
            axis.text(column, at, fixed(cell.area, 2), ha="center", va="center", fontsize="x-small",
                      fontweight="bold" if cell.detector in row.best else "normal",
                      color="white" if dark else "black")  # fmt: skip
    for at, column in np.argwhere(np.isnan(baseline) & np.isnan(others)).tolist():
        if not any(cell.detector == table.detectors[column] for cell in table.rows[at].cells):
            axis.text(column, at, "-", ha="center", va="center", fontsize="x-small", color="0.5")  # no data
    axis.imshow(baseline, cmap="Greys", vmin=0, vmax=2.5, aspect="auto")
    shown = axis.imshow(others, cmap="viridis", vmin=0, vmax=1, aspect="auto")
    axis.set_xticks(range(len(table.detectors)), [plain(detector) for detector in table.detectors], fontsize="small")
    axis.set_yticks(range(len(table.rows)), [wrapped(row.name, 60) for row in table.rows], fontsize="x-small")
    axis.xaxis.tick_top()
    if any(len(detector) > 5 for detector in table.detectors):
        for label in axis.get_xticklabels():
            label.set(rotation=40, ha="left", rotation_mode="anchor")
    axis.axhline(0.5, color="white", linewidth=3)
    axis.set_title(one_line(table.metric.replace("_", " ")), fontsize="medium", parse_math=False)
    axis.tick_params(length=0)
    for side in axis.spines.values():
        side.set_visible(False)
    return shown
