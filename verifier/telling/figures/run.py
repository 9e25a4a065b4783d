"""Satisfaction probability against the initial state, one line per value of a swept constant.

For the car and pedestrian that is figure 8 of Badithela et al. 2022: initial speed on the x axis, one line per
maximal speed, the distance-free (canonical) matrix beside those by distance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from verifier.base.numbers import level_text
from verifier.study.points import FreeBounds, Point, PointBounds, PointInterval
from verifier.study.results import RequirementResult, RunResult
from verifier.telling.figures.drawing import check_panels, shades, subplots, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKS = "osD^vPX*"


def figure_of_run(result: RunResult, scale: str = "linear") -> Figure:
    """One panel per requirement and planner; see `run_figure`."""
    return run_figure([("", result)], scale)


def run_figure(panels: Sequence[tuple[str, RunResult]], scale: str = "linear") -> Figure:
    """One row of panels per requirement and planner, one column per result; of one requirement two beside each other.

    Args:
        panels: (heading, result), results over the same grid.
        scale: of the probabilities, "linear" or "log"; a logarithmic one leaves out probabilities of 0.
    """
    rows = len(panels[0][1].requirements)
    check_panels(rows, "rows of panels (requirements x planners)", choose="--requirement and --planner")
    columns = min(2, len(panels)) if rows == 1 else len(panels)
    lines = -(-rows * len(panels) // columns)
    size = (3.6 * columns + 0.9, 2.6 * lines + 0.7)
    figure, axes = subplots(
        lines,
        columns,
        figsize=size,
        squeeze=False,
        sharex=True,
        sharey="all" if rows == 1 else "row",
        layout="constrained",
    )
    many = len({requirement.planner for requirement in panels[0][1].requirements}) > 1
    for column, (heading, result) in enumerate(panels):
        for row, requirement in enumerate(result.requirements):
            title = f"{requirement.name}, {requirement.planner}" if many else requirement.name
            line, place = (column // columns, column % columns) if rows == 1 else (row, column)
            _draw(
                axes[line][place], requirement, wrapped(title, 48) + (f"\n{wrapped(heading, 48)}" if heading else "")
            )
            axes[line][place].set_xlabel(_axes_of(requirement)[0][0] if line == lines - 1 else "", fontsize="small")
    for row in range(lines):
        label = wrapped(_y_label(panels[0][1], panels[0][1].requirements[min(row, rows - 1)]), 44)
        axes[row][0].set_ylabel(label, fontsize="small")
        axes[row][0].set_yscale(scale)
        if scale == "linear":  # the axis is shared along the row, so its top is that of the largest panel
            axes[row][0].set_ylim(bottom=0)
    handles, labels = axes[0][0].get_legend_handles_labels()
    if len(labels) > 1:
        figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize="small")
    figure.suptitle(wrapped(panels[0][1].title, 26 * columns + 14), fontsize="medium")
    return figure


def _y_label(result: RunResult, requirement: RequirementResult) -> str:
    confidence = result.settings.confidence
    unit = f" in {requirement.unit}" if requirement.unit else ""
    what = "bands" if any(point.dependence_free for point in requirement.points) else "interval"
    return f"{requirement.asked}{unit} (worst environment)" + (
        f", {level_text(confidence.level)} {what}" if confidence else ""
    )


def _draw(axis: Axes, requirement: RequirementResult, title: str) -> None:
    from matplotlib.ticker import MaxNLocator

    lines = _lines(requirement)
    colours, widths = shades(len(lines)), np.linspace(3.6 if len(lines) > 1 else 1.2, 0.9, len(lines))
    for number, ((label, points), colour) in enumerate(zip(lines.items(), colours, strict=True)):
        places = [place for place, _ in points]
        values = [point.probability for _, point in points]
        width = float(widths[number])  # from wide to narrow, so that of equal lines each is seen
        mark = MARKS[number % len(MARKS)]
        axis.plot(places, values, mark, ls="-", ms=3 + width, mfc="none", lw=width, label=label, color=colour)
        for (low, high), thick in _bands([point for _, point in points]):
            axis.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)
            axis.vlines(places, low, high, color=colour, alpha=0.5, linewidth=thick)
    if any(point.dependence_free for point in requirement.points):
        title = f"{title}\nfrom wide to narrow: whatever the dependence, confidence bounds, interval"
    if requirement.threshold is not None:
        target = float(requirement.threshold)
        axis.axhline(target, color="0.4", linestyle="--", linewidth=0.9)
        axis.text(0.01, target, f" {requirement.target_text}", transform=axis.get_yaxis_transform(), va="bottom",
                  fontsize="x-small", color="0.3")  # fmt: skip
    axis.set_title(title, fontsize="small")
    axis.grid(True, linewidth=0.3)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _bands(points: Sequence[Point]) -> Iterator[tuple[tuple[list[float], list[float]], float]]:
    """Lower and upper ends along a line, and how wide each is drawn, outermost first, of what all points have.

    The statistical interval; where bounds whatever the dependence were asked for, these and the confidence bounds,
    too. They overlap, so that what all of them allow is darkest.
    """
    free = [point.dependence_free for point in points]
    bounds = [None if point.uncertainty is None else point.uncertainty.confidence_bounds for point in points]
    interval = [None if point.uncertainty is None else point.uncertainty.interval for point in points]
    tiers: tuple[Sequence[FreeBounds | PointBounds | PointInterval | None], ...] = (interval,)
    if any(free):
        tiers = free, bounds, interval
    for width, tier in zip((1.0, 2.5, 4.5), tiers, strict=False):
        known = [ends for ends in tier if ends is not None]
        if len(known) == len(points):
            yield ([ends.lower for ends in known], [ends.upper for ends in known]), width


def _axes_of(requirement: RequirementResult) -> list[tuple[str, Callable[[Point], float]]]:
    """What differs between the points, environments apart: variables of the initial state, then swept constants.

    The first is the x axis; every combination of the others is a line.
    """
    first = requirement.points[0]
    getters: list[tuple[str, Callable[[Point], float]]] = [
        *((f"initial {name}", lambda point, of=name: float(point.initial[of])) for name in first.initial),
        *((name, lambda point, of=name: float(Fraction(point.constants[of]))) for name in first.constants),
    ]
    varying = [(name, get) for name, get in getters if len({get(point) for point in requirement.points}) > 1]
    return varying or getters[:1]


def _lines(requirement: RequirementResult) -> dict[str, list[tuple[float, Point]]]:
    """Label -> (place on the x axis, point of the worst environment), in order."""
    (_, place), *others = _axes_of(requirement)
    sign = -1 if requirement.is_upper else 1
    lines: dict[str, dict[float, Point]] = {}
    for point in requirement.points:
        label = ", ".join(f"{name} = {get(point):g}" for name, get in others)
        line = lines.setdefault(label, {})
        x = place(point)
        line[x] = min(line.get(x, point), point, key=lambda point: sign * point.probability)
    return {label: sorted(line.items(), key=lambda pair: pair[0]) for label, line in lines.items()}
