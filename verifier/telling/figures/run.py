"""Satisfaction probability against the initial state, one line per value of a swept constant.

For the car and pedestrian that is figure 8 of Badithela et al. 2022: initial speed on the x axis, one line per
maximal speed, the distance-free (canonical) matrix beside those by distance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from verifier.base.errors import UsageError, one_line
from verifier.base.numbers import level_text
from verifier.study.points import FreeBounds, Point, PointBounds, PointInterval
from verifier.study.results import RequirementResult, RunResult
from verifier.telling.figures.drawing import MOST_ROWS, shades, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def figure_of_run(result: RunResult, scale: str = "linear") -> Figure:
    """One panel per requirement and planner; see `run_figure`."""
    return run_figure([("", result)], scale)


def run_figure(panels: Sequence[tuple[str, RunResult]], scale: str = "linear") -> Figure:
    """one row of panels per requirement and planner, one column per result.

    Args:
        panels: (heading, result), results over the same grid.
        scale: of the probabilities, "linear" or "log"; a logarithmic one leaves out probabilities of 0.
    """
    rows = len(panels[0][1].requirements)
    if rows > MOST_ROWS:
        raise UsageError(
            f"--plot: {rows} rows of panels (requirements x planners); at most {MOST_ROWS} are drawn. "
            "Choose with --requirement and --planner"
        )
    figure, axes = subplots(
        rows,
        len(panels),
        figsize=(5.2 * len(panels) + 1.2, 3.1 * rows + 0.7),
        squeeze=False,
        sharex=True,
        sharey="row",
    )
    many = len({each.planner for each in panels[0][1].requirements}) > 1
    for column, (heading, result) in enumerate(panels):
        for row, each in enumerate(result.requirements):
            title = f"{each.name}, {each.planner}" if many else each.name
            _draw(axes[row][column], each, f"{title}\n{heading}" if heading else title)
            axes[row][column].set_xlabel(_axes_of(each)[0][0] if row == rows - 1 else "")
    for row in range(rows):
        label = _y_label(panels[0][1], panels[0][1].requirements[row])
        axes[row][0].set_ylabel(label, fontsize="small")
        axes[row][0].set_yscale(scale)
        if scale == "linear":  # the axis is shared along the row, so its top is that of the largest panel
            axes[row][0].set_ylim(bottom=0)
    handles, labels = axes[0][0].get_legend_handles_labels()
    if len(labels) > 1:
        figure.legend(handles, labels, loc="center right", frameon=False, fontsize="small")
    height_in = figure.get_size_inches()[1]
    figure.suptitle(
        one_line(panels[0][1].title), fontsize="medium", parse_math=False, y=1 - 0.12 / height_in, va="top"
    )
    figure.tight_layout(rect=(0, 0, 0.9 if len(labels) > 1 else 1, 1 - 0.3 / height_in))
    return figure


def _y_label(result: RunResult, each: RequirementResult) -> str:
    found = result.settings.confidence
    unit = f" in {each.unit}" if each.unit else ""
    what = "bands" if any(point.dependence_free for point in each.points) else "interval"
    return f"{each.asked}{unit} (worst environment)" + (f", {level_text(found.level)} {what}" if found else "")


def _draw(axis: Axes, each: RequirementResult, title: str) -> None:
    from matplotlib.ticker import MaxNLocator

    lines = _lines(each)
    colours = shades(len(lines))
    for (label, points), colour in zip(lines.items(), colours, strict=True):
        places = [place for place, _ in points]
        values = [point.probability for _, point in points]
        axis.plot(places, values, marker="o", markersize=4, linewidth=1.2, label=label, color=colour)
        for (low, high), width in _bands([point for _, point in points]):
            axis.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)
            axis.vlines(places, low, high, color=colour, alpha=0.5, linewidth=width)
    if any(point.dependence_free for point in each.points):
        title = f"{title}\nfrom wide to narrow: whatever the dependence, confidence bounds, interval"
    if each.threshold is not None:
        axis.axhline(float(each.threshold), color="0.4", linestyle="--", linewidth=0.9)
        axis.text(0.01, float(each.threshold), f" {each.target_text}", transform=axis.get_yaxis_transform(),
                  va="bottom", fontsize="x-small", color="0.3")  # fmt: skip
    axis.set_title(title, fontsize="small")
    axis.grid(True, linewidth=0.3)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _bands(points: Sequence[Point]) -> Iterator[tuple[tuple[list[float], list[float]], float]]:
    """Lower and upper ends along a line, and how wide each is drawn, outermost first, of what all points have.

    The statistical interval; where bounds whatever the dependence were asked for, these and the confidence bounds,
    too. They overlap, so that what all of them allow is darkest.
    """
    free = [point.dependence_free for point in points]
    bounds = [None if each.uncertainty is None else each.uncertainty.confidence_bounds for each in points]
    interval = [None if each.uncertainty is None else each.uncertainty.interval for each in points]
    tiers: tuple[Sequence[FreeBounds | PointBounds | PointInterval | None], ...] = (interval,)
    if any(free):
        tiers = free, bounds, interval
    for width, tier in zip((1.0, 2.5, 4.5), tiers, strict=False):
        known = [each for each in tier if each is not None]
        if len(known) == len(points):
            yield ([each.lower for each in known], [each.upper for each in known]), width


def _axes_of(each: RequirementResult) -> list[tuple[str, Callable[[Point], float]]]:
    """What differs between the points, environments apart: variables of the initial state, then swept constants.

    The first is the x axis; every combination of the others is a line.
    """
    first = each.points[0]
    getters: list[tuple[str, Callable[[Point], float]]] = [
        *((f"initial {name}", lambda point, of=name: float(point.initial[of])) for name in first.initial),
        *((name, lambda point, of=name: float(Fraction(point.constants[of]))) for name in first.constants),
    ]
    varying = [(name, get) for name, get in getters if len({get(point) for point in each.points}) > 1]
    return varying or getters[:1]


def _lines(each: RequirementResult) -> dict[str, list[tuple[float, Point]]]:
    """Label -> (place on the x axis, point of the worst environment), in order."""
    (_, place), *others = _axes_of(each)
    sign = -1 if each.is_upper else 1
    lines: dict[str, dict[float, Point]] = {}
    for point in each.points:
        label = ", ".join(f"{name} = {get(point):g}" for name, get in others)
        line = lines.setdefault(label, {})
        x = place(point)
        line[x] = min(line.get(x, point), point, key=lambda found: sign * found.probability)
    return {label: sorted(line.items(), key=lambda pair: pair[0]) for label, line in lines.items()}
