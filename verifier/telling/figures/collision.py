"""Collision studies as pictures, like figures 3 to 5 of Xu et al. (WSC 2021): speed to the right, distance up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from verifier.base.errors import one_line
from verifier.base.numbers import significant
from verifier.base.words import percent
from verifier.collision.comparison import THRESHOLD, Area
from verifier.collision.intervals import IntervalKind
from verifier.collision.result import CollisionResult
from verifier.collision.study import DetectorResult, PolicyResult
from verifier.telling.figures.drawing import check_panels, framed, subplots, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 48
UNDEFINED = "0.8"
AREA_COLOURS = {Area.UNDEFINED: UNDEFINED, Area.FIRST: "#e69f00", Area.SECOND: "#785ef0", Area.EITHER: "#009e73",
                Area.TIED: "white"}  # fmt: skip
INTERVAL_LINES = {
    IntervalKind.SUBSAMPLING: ("#d55e00", "--"),
    IntervalKind.EXACT_MONOTONE: ("0.4", "-."),
    IntervalKind.PERCENTILE: ("#cc79a7", ":"),
}
"""Ends of the other intervals, as lines, so that one band alone is filled: that to trust."""
LINE_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f7f7f")


def map_figure(result: CollisionResult) -> Figure:
    """Figure 3: lambda of each detector (columns) under each policy (rows), with the black curve y = S(v)."""
    rows, columns = len(result.policies), len(result.detectors)
    figure, axes = _panels(rows, columns, 3.5, 3.1, extra_in=0.7)
    drawn = None
    for row, policy in enumerate(result.policies):
        for column, detector in enumerate(policy.detectors):
            axis = axes[row][column]
            drawn = _heat(axis, result, detector.map.clipped, "RdYlBu_r", 0.0, 1.0)
            _stopping_curve(axis, result, policy)
            axis.set_title(f"{one_line(detector.map.title)}, {_braking(policy)}", fontsize="small", parse_math=False)
    _label_grid(axes, result)
    assert drawn is not None  # a study has a policy and a detector
    bar = figure.colorbar(drawn, ax=axes.ravel().tolist(), fraction=0.05, pad=0.02)
    bar.set_label("probability of collision", fontsize="small")
    bar.ax.tick_params(labelsize="x-small")
    _legend_below(figure, [(UNDEFINED, "not defined")])
    return figure


def intervals_figure(result: CollisionResult) -> Figure:
    """Figure 4: lambda against the reported distance at the speeds shown, with intervals of every kind."""
    shown = result.settings.shown_mps
    items = [(policy, detector) for policy in result.policies for detector in policy.detectors]
    figure, axes = _panels(len(items), len(shown), 4.3, 2.7)
    for row, (policy, detector) in enumerate(items):
        for column, speed in enumerate(shown):
            _intervals(axes[row][column], detector, speed)
            heading = f"{detector.map.title}, {_braking(policy)}, {_speed(result, speed)}"
            axes[row][column].set_title(wrapped(heading, 44), fontsize="small")
            axes[row][column].set_ylabel("probability of collision" if column == 0 else "", fontsize="small")
            axes[row][column].set_xlabel("reported distance (m)" if row == len(items) - 1 else "", fontsize="small")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize="small")
    return figure


def comparison_figure(result: CollisionResult) -> Figure:
    """Figure 5: which of two detectors is closer to its oracle where, beside the p-values of either kind."""
    from matplotlib.colors import ListedColormap

    items = [(policy, compared) for policy in result.policies for compared in policy.comparisons]
    titles = ["by subsampling", *(["by bootstrap"] if items[0][1].bootstrap_p is not None else [])]
    figure, axes = _panels(len(items), 1 + len(titles), 4.0, 3.1, extra_in=0.5)
    areas = ListedColormap([AREA_COLOURS[area] for area in Area])
    for row, (policy, compared) in enumerate(items):
        names = [one_line(policy.detectors[at].map.title) for at in (compared.first, compared.second)]
        _heat(axes[row][0], result, compared.comparison.area.astype(np.float64), areas, -0.5, len(Area) - 0.5)
        for axis, table in zip(axes[row][1:], (compared.comparison.p_value, compared.bootstrap_p), strict=False):
            drawn = _heat(axis, result, np.asarray(table), "viridis", 0.0, 0.5)
        for axis in axes[row]:
            _stopping_curve(axis, result, policy)
        axes[row][0].set_title(
            f"orange: {names[0]}, purple: {names[1]}\n{_braking(policy)}", fontsize="small", parse_math=False
        )
        for axis, title in zip(axes[row][1:], titles, strict=True):
            axis.set_title(f"p-value of what the colour says,\n{title}", fontsize="small")
        thin = compared.comparison.thin_share
        if thin > 0:
            axes[row][1].set_title(
                f"p-value by subsampling; too few subsamples\nhave a value at {percent(thin, 2)} of the points",
                fontsize="small",
            )
        bar = figure.colorbar(drawn, ax=axes[row][-1], fraction=0.05, pad=0.02, extend="max")
        bar.ax.tick_params(labelsize="x-small")
    labels = [
        (AREA_COLOURS[Area.FIRST], "the first is closer to its oracle"),
        (AREA_COLOURS[Area.SECOND], "the second is"),
        (AREA_COLOURS[Area.EITHER], f"both within {THRESHOLD:g}"),
        (UNDEFINED, "not defined"),
    ]
    _label_grid(axes, result)
    _legend_below(figure, labels)
    return figure


def ranking_figure(result: CollisionResult) -> Figure:
    """Scores against beta / alpha with intervals, and how often each detector is the best in the bootstrap."""
    policies = [policy for policy in result.policies if policy.ranking is not None]
    figure, axes = _panels(len(policies), 2, 4.6, 3.1)
    ratios = np.geomspace(0.1, 100, 61)
    for row, policy in enumerate(policies):
        ranking = policy.ranking
        assert ranking is not None  # chosen so above
        left, right = axes[row]
        losses = np.array([ranking.losses(ratio) for ratio in ratios])
        ends = [ranking.interval(ratio) for ratio in ratios]
        shares = np.array([ranking.best_share(ratio) for ratio in ratios])
        for number, title in enumerate(ranking.titles):
            colour = LINE_COLOURS[number % len(LINE_COLOURS)]
            left.plot(ratios, losses[:, number], color=colour, label=one_line(title))
            left.fill_between(
                ratios,
                [lower[number] for lower, _ in ends],
                [upper[number] for _, upper in ends],
                color=colour,
                alpha=0.25,
                linewidth=0,
            )
            right.plot(ratios, shares[:, number], color=colour)
        left.set_yscale("log")
        right.set_ylim(-0.02, 1.02)
        for axis, text in ((left, "score L / alpha"), (right, "share of replicates in which it is the best")):
            axis.set_xscale("log")
            framed(axis, f"beta / alpha, beta weighing {ranking.heavy} the oracle", text, _braking(policy))
            axis.tick_params(labelsize="x-small")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize="small")
    return figure


def closed_loop_figure(result: CollisionResult) -> Figure:
    """How much one report differs from the closed loop: probabilities against the initial speed."""
    items = [
        (policy, detector) for policy in result.policies for detector in policy.detectors if detector.loop is not None
    ]
    columns = min(len(items), 2)
    figure, axes = _panels(-(-len(items) // columns), columns, 5.0, 3.4)
    for axis in axes.ravel()[len(items) :]:
        axis.set_visible(False)
    for axis, (policy, detector) in zip(axes.ravel(), items, strict=False):
        _closed_loop(axis, result, detector)
        assert detector.loop is not None  # chosen so above
        axis.set_title(
            f"{one_line(detector.map.title)}, {_braking(policy)}, first report at {detector.loop.first_report_m:g} m",
            fontsize="small",
            parse_math=False,
        )
    handles, labels = axes.ravel()[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    return figure


def _panels(rows: int, columns: int, width_in: float, height_in: float, extra_in: float = 0.0) -> tuple[Figure, Any]:
    """A figure and its panels (rows, columns)."""
    check_panels(rows * columns, "panels", MOST_PANELS)
    size = (width_in * columns + extra_in, height_in * rows + 0.6)
    return subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")


def _heat(axis: Axes, result: CollisionResult, values: np.ndarray, colours: Any, low: float, high: float) -> Any:
    """Values (Y, V) over speeds and distances; grey where they are NaN."""
    grid = result.settings.grid
    axis.set_facecolor(UNDEFINED)
    speeds, distances = grid.speeds_mps / result.unit_mps, grid.distances_m
    drawn = axis.pcolormesh(
        _edges(speeds), _edges(distances), np.ma.masked_invalid(values), cmap=colours, vmin=low, vmax=high,
        rasterized=True,
    )  # fmt: skip
    axis.tick_params(labelsize="x-small")
    return drawn


def _edges(values: np.ndarray) -> np.ndarray:
    """(n + 1,) borders half-way between the values; a single value gets one unit."""
    if len(values) == 1:
        return np.array([values[0] - 0.5, values[0] + 0.5])
    middle = (values[:-1] + values[1:]) / 2
    return np.concatenate([[values[0] - (middle[0] - values[0])], middle, [values[-1] + (values[-1] - middle[-1])]])


def _stopping_curve(axis: Axes, result: CollisionResult, policy: PolicyResult) -> None:
    limits = axis.get_xlim(), axis.get_ylim()
    low, high = (limit * result.unit_mps for limit in limits[0])
    speeds = np.linspace(max(low, 0.0), high, 200)
    axis.plot(speeds / result.unit_mps, policy.policy.stopping_distance_m(speeds), color="black", linewidth=1.3)
    axis.set_xlim(limits[0])
    axis.set_ylim(limits[1])


def _label_grid(axes: np.ndarray, result: CollisionResult) -> None:
    for axis in axes[-1]:
        axis.set_xlabel(f"speed v ({result.settings.speed_unit})", fontsize="small")
    for axis in axes[:, 0]:
        axis.set_ylabel("reported distance y (m)", fontsize="small")


def _intervals(axis: Axes, result: DetectorResult, speed: float) -> None:
    chart, sure = result.map, result.confidence
    v = int(np.flatnonzero(chart.grid.speeds_mps == speed)[0])
    distances = chart.grid.distances_m
    lower, upper = (np.clip(ends[:, v], 0, 1) for ends in sure.trusted)
    axis.fill_between(
        distances, lower, upper, color="#56b4e9", alpha=0.5, linewidth=0, label="the recommended interval"
    )
    axis.vlines(distances, lower, upper, color="#56b4e9", linewidth=0.6)  # also where a neighbour has none
    for kind, (colour, line) in INTERVAL_LINES.items():
        if kind in sure.intervals:
            for ends, label in zip(sure.intervals[kind].clipped, (kind.value.replace("_", " "), None), strict=True):
                axis.plot(distances, ends[:, v], color=colour, linestyle=line, linewidth=0.9, label=label)
    axis.plot(distances, chart.clipped[:, v], color="black", linewidth=1.6, label="estimate")
    stopping = float(chart.stopping_m[v])
    if distances[0] <= stopping <= distances[-1]:
        axis.axvline(stopping, color="0.5", linestyle="--", linewidth=0.9, label="y = S(v)")
    axis.set_ylim(-0.03, 1.03)
    axis.grid(True, linewidth=0.3)
    axis.tick_params(labelsize="x-small")


def _closed_loop(axis: Axes, result: CollisionResult, detector: DetectorResult) -> None:
    loop, chart = detector.loop, detector.map
    assert loop is not None  # drawn only where there is one
    speeds = np.array([point.speed_mps for point in loop.points]) / result.unit_mps
    y = np.flatnonzero(chart.grid.distances_m == loop.first_report_m)
    if len(y):
        own = chart.grid.speeds_mps / result.unit_mps
        here = (own >= speeds.min()) & (own <= speeds.max())
        label = "the map: nearest of several objects, one report"
        axis.plot(own[here], chart.clipped[y[0], here], color="0.6", linewidth=3, label=label)
    axis.plot(speeds, [point.one_shot for point in loop.points], color="black", marker="o", markersize=3,
              label="one report, one object: stopping no longer possible")  # fmt: skip
    axis.plot(speeds, [point.closer for point in loop.points], color="#d62728", marker="o", markersize=3,
              label="closed loop, every report drawn independently (Storm)")  # fmt: skip
    ends = [point.interval for point in loop.points if point.interval is not None]
    if ends:
        lower, upper = zip(*ends, strict=True)
        axis.fill_between(speeds, lower, upper, color="#d62728", alpha=0.2, linewidth=0)
    axis.set_ylim(-0.03, 1.03)
    near_m = 0.0 if result.settings.loop is None else result.settings.loop.drive.near_m
    what = "of collision" if near_m == 0 else f"of coming closer than {near_m:g} m"
    framed(axis, f"initial speed ({result.settings.speed_unit})", f"probability {what}")
    axis.tick_params(labelsize="x-small")


def _legend_below(figure: Figure, entries: list[tuple[str, str]]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Patch(facecolor=colour, edgecolor="0.4", linewidth=0.4, label=label) for colour, label in entries
    ]
    handles.append(Line2D([], [], color="black", linewidth=1.3, label="y = S(v)"))
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False, fontsize="small")


def _braking(policy: PolicyResult) -> str:
    return f"a = {policy.policy.deceleration_mps2:g} m/s²"


def _speed(result: CollisionResult, speed_mps: float) -> str:
    return f"{significant(speed_mps / result.unit_mps, 4)} {result.settings.speed_unit}"
