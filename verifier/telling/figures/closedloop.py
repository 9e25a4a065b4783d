"""Pictures of trade-offs: curves as in Figures 8-11 and tables as in Tables 5-10 of Pezzementi et al. 2021."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import UsageError, one_line, unknown_name
from verifier.closedloop.comparison import MetricTable, Row
from verifier.closedloop.curves import TradeOffCurve, area
from verifier.closedloop.trade_offs import TradeOffs
from verifier.telling.figures.drawing import plain, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ROWS = 16
MARKS = "osD^v"
STYLES = (
    ("baseline", {"color": "tab:green", "linestyle": "-"}),
    ("condition", {"color": "tab:purple", "linestyle": "--"}),
    ("worst case", {"color": "black", "linestyle": ":"}),
)
"""Colours and lines that stay apart in print and for readers who see colours otherwise."""
_Curve: TypeAlias = tuple[str, TradeOffCurve, dict[str, Any]]
"""Name, curve and style."""


def curves_figure(result: TradeOffs, detectors: Sequence[str] = (), rows: Sequence[str] = ()) -> Figure:
    """Curves of the last metric: safety and efficiency against sensitivity, and against each other.

    Args:
        detectors: only these; empty for all.
        rows: conditions or groups; empty for each detector's least robust condition.

    Raises:
        UsageError: an unknown name, or too many panels.
    """
    table = result.tables[-1]
    panels = _panels(table, detectors, rows)
    if len(panels) > MOST_ROWS:
        raise UsageError(
            f"--plot: {len(panels)} rows of panels (detectors x conditions); at most {MOST_ROWS} are drawn. "
            "Choose with --plot-detector and --plot-row"
        )
    figure, axes = subplots(len(panels), 2, figsize=(9.6, 3.3 * len(panels) + 0.5), squeeze=False)
    for (left, right), (detector, row) in zip(axes, panels, strict=True):
        curves = _curves(table, detector, row)
        _draw_levels(left, curves)
        _draw_trade_off(right, curves)
        left.set_ylabel("safety (thick), efficiency (thin)", fontsize="small")
        left.set_title(one_line(f"{detector}, {row.name}"), fontsize="small", parse_math=False)
        right.set_title(
            "areas: " + ", ".join(f"{name} {area(curve):.3f}" for name, curve, _ in curves), fontsize="small"
        )
    axes[-1][0].set_xlabel(_level_name(result))
    axes[-1][1].set_xlabel("efficiency")
    heading = one_line(f"{result.title}: {table.metric.replace('_', ' ')}")
    height_in = figure.get_size_inches()[1]
    figure.suptitle(heading, fontsize="medium", parse_math=False, y=1 - 0.12 / height_in, va="top")
    figure.tight_layout()
    return figure


def table_figure(result: TradeOffs) -> Figure:
    """One table per metric: areas as numbers; the baseline's row grey by area, the others coloured by robustness."""
    widest = max(len(each.detectors) for each in result.tables)
    heights = [len(each.rows) for each in result.tables]
    size = (2.4 + 1.05 * widest + 0.9, 0.26 * sum(heights) + 1.5 * len(heights))
    figure, axes = subplots(
        len(result.tables), 1, figsize=size, squeeze=False, gridspec_kw={"height_ratios": heights}
    )
    shown: Any = None
    for axis, table in zip(axes[:, 0], result.tables, strict=True):
        shown = _draw_table(axis, table)
    edge = 1 - 0.85 / size[0]
    figure.tight_layout(rect=(0, 0, edge, 1))
    bar = figure.colorbar(shown, cax=figure.add_axes((edge + 0.1 / size[0], 0.15, 0.15 / size[0], 0.7)))
    bar.set_label("worst case / baseline", fontsize="small")
    bar.ax.tick_params(labelsize="small")
    return figure


def _panels(table: MetricTable, detectors: Sequence[str], rows: Sequence[str]) -> list[tuple[str, Row]]:
    known = {row.name: row for row in table.rows}
    for given, names, kind in ((detectors, table.detectors, "detector"), (rows, known, "condition or group")):
        for name in given:
            if name not in names:
                message, hint = unknown_name(kind, name, names)
                raise UsageError(f"--plot: {message} ({hint})")
    found = []
    for detector in detectors or table.detectors:
        chosen = [known[name] for name in rows] or [_least_robust(table, detector)]
        found += [(detector, row) for row in chosen if any(each.detector == detector for each in row.cells)]
    if not found:
        raise UsageError("--plot: no detector that is asked for has a curve in a row that is asked for")
    return found


def _least_robust(table: MetricTable, detector: str) -> Row:
    areas = {
        row.name: cell.area
        for row in table.rows
        for cell in row.cells
        if row.kind == "condition" and cell.detector == detector
    }
    name = min(areas, key=lambda each: areas[each]) if areas else table.rows[0].name
    return next(row for row in table.rows if row.name == name)


def _curves(table: MetricTable, detector: str, row: Row) -> list[_Curve]:
    """Name, curve and style: the baseline, the condition where there is one, and the worst case."""
    baseline = table.curves[detector, row.conditions[0]].curve
    found = [(STYLES[0][0], baseline, STYLES[0][1])]
    if row.kind == "condition":
        found.append((plain(row.name), table.curves[detector, row.conditions[1]].curve, STYLES[1][1]))
    if row.kind != "baseline":
        found.append((STYLES[2][0], table.worst(detector, row), STYLES[2][1]))
    return found


def _sorted(curve: TradeOffCurve) -> tuple[NDArray[np.float64], ...]:
    order = np.argsort(curve.sensitivity)
    return curve.sensitivity[order], curve.safety[order], curve.efficiency[order]


def _draw_levels(axis: Axes, curves: Sequence[_Curve]) -> None:
    """Safety (thick) and efficiency (thin) against sensitivity; the panel beside it names colours and lines."""
    for _, curve, style in curves:
        level, safety, efficiency = _sorted(curve)
        axis.plot(level, safety, linewidth=2.4, **style)
        axis.plot(level, efficiency, linewidth=0.8, **style)
    levels = np.concatenate([curve.sensitivity for _, curve, _ in curves])
    if levels.min() > 0 and levels.max() / levels.min() > 20:
        axis.set_xscale("log")
    for mark, at in zip(MARKS, _marked(curves), strict=False):
        axis.axvline(at, color="0.7", linewidth=0.6, zorder=0)
        axis.plot(at, 1.06, mark, markersize=5, color="0.35", mfc="none", clip_on=False)
    axis.set_ylim(-0.03, 1.12)
    axis.grid(True, axis="y", linewidth=0.3)


def _draw_trade_off(axis: Axes, curves: Sequence[_Curve]) -> None:
    """The points, the outline of the area under them, and marks where the curves have the same sensitivity."""
    for name, curve, style in curves:
        along, up = _outline(curve)
        axis.plot(along, up, linewidth=1.6, label=name, **style)
        axis.plot(curve.efficiency, curve.safety, ".", markersize=2.5, color=style["color"])
    for mark, at in zip(MARKS, _marked(curves), strict=False):
        for _, curve, style in curves:
            here = np.flatnonzero(curve.sensitivity == at)
            axis.plot(
                curve.efficiency[here], curve.safety[here], mark, markersize=6, color=style["color"], mfc="none"
            )
    axis.set_xlim(-0.03, 1.03)
    axis.set_ylim(-0.03, 1.12)
    axis.set_ylabel("safety", fontsize="small")
    axis.grid(True, linewidth=0.3)
    axis.legend(fontsize="x-small", frameon=False, loc="lower left")


def _outline(curve: TradeOffCurve) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Corners of the union of the rectangles under the points, from the right end down to the axis on the left."""
    order = np.argsort(-curve.efficiency, kind="stable")
    right, height = curve.efficiency[order], np.maximum.accumulate(curve.safety[order])
    along = np.concatenate([[right[0]], np.repeat(right, 2)[1:], [0.0]])
    return along, np.concatenate([[0.0], np.repeat(height, 2)])


def _marked(curves: Sequence[_Curve]) -> NDArray[np.float64]:
    """Some sensitivities at which every curve was tried, spread along the last curve."""
    common = curves[0][1].sensitivity
    for _, curve, _ in curves[1:]:
        common = np.intersect1d(common, curve.sensitivity)
    level, safety, efficiency = _sorted(curves[-1][1])
    chosen = np.isin(level, common)
    if np.count_nonzero(chosen) <= len(MARKS):
        return np.array(level[chosen])
    moved = np.abs(np.diff(safety[chosen])) + np.abs(np.diff(efficiency[chosen]))
    way = np.append(0.0, np.cumsum(moved))
    at = np.searchsorted(way, np.linspace(0, way[-1], len(MARKS)))
    found: NDArray[np.float64] = np.unique(level[chosen][np.minimum(at, len(way) - 1)])
    return found


def _level_name(result: TradeOffs) -> str:
    if "control_radius_m" in result.settings:
        return "sensitivity (false positives per image, nominal)"
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
            axis.text(column, at, f"{cell.area:.2f}", ha="center", va="center", fontsize="small",
                      fontweight="bold" if cell.detector in row.best else "normal",
                      color="white" if dark else "black")  # fmt: skip
    axis.imshow(baseline, cmap="Greys", vmin=0, vmax=2.5, aspect="auto")
    shown = axis.imshow(others, cmap="viridis", vmin=0, vmax=1, aspect="auto")
    axis.set_xticks(range(len(table.detectors)), [plain(each) for each in table.detectors], fontsize="small")
    axis.set_yticks(range(len(table.rows)), [plain(row.name) for row in table.rows], fontsize="small")
    axis.xaxis.tick_top()
    if len(table.detectors) > 6:
        for label in axis.get_xticklabels():
            label.set(rotation=40, ha="left", rotation_mode="anchor")
    axis.axhline(0.5, color="white", linewidth=3)
    axis.set_title(one_line(table.metric.replace("_", " ")), fontsize="medium", parse_math=False)
    axis.tick_params(length=0)
    for side in axis.spines.values():
        side.set_visible(False)
    return shown
