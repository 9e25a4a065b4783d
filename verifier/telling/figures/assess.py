"""Pictures of an assessment: change of performance against distance, and each criterion against the level."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from verifier.base.errors import UsageError
from verifier.robustness.assessment.circumstances import EXPOSURE, LIKELIHOOD, SEVERITY
from verifier.robustness.assessment.result import AssessmentResult, SystemResult
from verifier.robustness.brackets import Criterion, along
from verifier.telling.figures.drawing import plain, subplots, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 24
MARKS = "osD^vPX*"
RISKS = ""
"""In the place of a distance: the chart of the factors of significance."""


def assess_figure(result: AssessmentResult) -> Figure:
    """Factors of significance per system with assessed circumstances; |change| with epsilon(d) above it per distance;
    each criterion of a degradation with its target.

    Raises:
        UsageError: nothing to draw, or too much.
    """
    panels = _panels(result)
    if not 0 < len(panels) <= MOST_PANELS:
        raise UsageError(f"--plot: {len(panels)} panels to draw; 1 to {MOST_PANELS} are. Choose with --system")
    columns = 1 if any(rule == RISKS for _, rule in panels) else min(2, len(panels))
    lines, width_in = -(-len(panels) // columns), 7.2 if columns == 1 else 8.4
    figure, axes = subplots(lines, columns, figsize=(width_in, 3.2 * lines), squeeze=False, layout="constrained")
    for axis, (system, rule) in zip(axes.ravel(), panels, strict=False):
        if rule == RISKS:
            _draw_risks(axis, system)
        elif isinstance(rule, str):
            _draw_relation(axis, system, rule)
        else:
            _draw_criterion(axis, system, rule)
    for axis in axes.ravel()[len(panels) :]:
        axis.set_visible(False)
    return figure


def _panels(result: AssessmentResult) -> list[tuple[SystemResult, str | Criterion]]:
    """System and distance, or criterion of its degradation, of each picture."""
    panels: list[tuple[SystemResult, str | Criterion]] = []
    for system in result.systems:
        if any(circumstance.risk for circumstance in system.assessment.circumstances):
            panels.append((system, RISKS))
        names = dict.fromkeys(one.distance_name for target in system.targets for one in target.outcomes)
        panels += [(system, name) for name in names]
        if system.degradation is not None:
            panels += [(system, criterion) for criterion in system.degradation.criteria]
    return panels


def _draw_relation(axis: Axes, system: SystemResult, name: str) -> None:
    tolerance = system.assessment.rules[name].tolerance
    outcomes = [one for target in system.targets for one in target.outcomes if one.distance_name == name]
    farthest = max([float(one.distance) for one in outcomes] + [0.0])
    if tolerance is not None:
        start, pieces = 0.0, tolerance.pieces
        bounds = [float(piece.up_to) for piece in pieces if piece.up_to is not None]
        farthest = max([farthest, *bounds]) * 1.25 or 1.0
        for number, piece in enumerate(pieces):
            end = farthest if piece.up_to is None else float(piece.up_to)
            ends = np.array([start, end])
            label = "tolerance" if number == 0 else None
            axis.plot(ends, float(piece.slope) * ends + float(piece.constant), color="black", lw=1.2, label=label)
            start = end
    for number, metric in enumerate(dict.fromkeys(one.metric for one in outcomes)):
        points = [(float(one.distance), float(one.change)) for one in outcomes if one.metric == metric]
        axis.plot(*zip(*points, strict=True), MARKS[number % len(MARKS)], label=plain(metric), mfc="none")
    scaled = [(float(one.distance), float(one.tolerance)) for one in outcomes if one.scale != 1]
    if scaled:
        axis.plot(*zip(*scaled, strict=True), "_", color="black", markersize=14, label="tolerance where it is scaled")
    axis.set_xlabel(plain(f"distance d by {name}"), fontsize="small")
    axis.set_ylabel("|change| of performance")
    axis.set_ylim(bottom=0)
    axis.grid(True, linewidth=0.3)
    axis.legend(fontsize="small", frameon=False)
    title = f"{system.assessment.title}: robust where no mark is above its tolerance"
    axis.set_title(wrapped(title, 52), fontsize="small")


def _draw_risks(axis: Axes, system: SystemResult) -> None:
    """Exposure to the right, severity upwards, likelihood as the size of a mark, significance as its colour."""
    assessed = [
        (circumstance.name, circumstance.risk)
        for circumstance in system.assessment.circumstances
        if circumstance.risk is not None
    ]
    cells: dict[tuple[int, int], int] = {}
    xs, ys = [], []
    for name, risk in assessed:
        at = cells.setdefault((risk.exposure, risk.severity), 0)
        cells[risk.exposure, risk.severity] += 1
        xs.append(risk.exposure)
        ys.append(risk.severity - 0.28 * at)  # the next one of equal factors stands below
        axis.annotate(plain(f"{name} ({risk.significance})"), (xs[-1], ys[-1]), (6, 4), textcoords="offset points",
                      fontsize="x-small")  # fmt: skip
    sizes = [40 * risk.likelihood for _, risk in assessed]
    colours = [risk.significance for _, risk in assessed]
    marks = axis.scatter(xs, ys, sizes, colours, cmap="cividis_r", vmin=1, vmax=125, edgecolors="black", lw=0.6)
    axis.figure.colorbar(marks, ax=axis, label="significance")
    for number, word in enumerate(LIKELIHOOD, 1):
        axis.scatter([], [], 40 * number, color="none", edgecolors="black", label=f"{number} {word}")
    axis.set_xticks(range(1, 6), [f"{at} {word}" for at, word in enumerate(EXPOSURE, 1)], fontsize="x-small")
    axis.set_yticks(range(1, 6), [f"{at} {word}" for at, word in enumerate(SEVERITY, 1)], fontsize="x-small")
    axis.set_xlim(0.5, 5.9)
    axis.set_ylim(0.5, 5.7)
    axis.set_xlabel("exposure")
    axis.set_ylabel("severity")
    axis.grid(True, linewidth=0.3)
    words = axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncol=5, fontsize="x-small", frameon=False)
    words.set_title("likelihood")
    words.get_title().set_fontsize("x-small")
    axis.set_title(plain(f"{system.assessment.title}: exposure x likelihood x severity"), fontsize="small")


def _draw_criterion(axis: Axes, system: SystemResult, criterion: Criterion) -> None:
    """The number at each level, on the scale of the disturbance, with its interval and the target."""
    asked, result = system.assessment.degradation, system.degradation
    if asked is None or result is None:
        raise ValueError("a system without a degradation")
    at = np.array([along(level, asked.scale) for level in result.levels])
    at = at if np.isfinite(at).all() else np.arange(len(at), dtype=np.float64)
    values = np.array([math.nan if value is None else value for value in criterion.values])
    margins = np.array([math.nan if margin is None else margin for margin in criterion.margins])
    start = values[0] if criterion.kind == "metric" else 0.0  # its intervals are of the change from the mildest level
    ends = np.array(
        [(math.nan, math.nan) if one is None else one for one in criterion.intervals or (None,) * len(at)]
    )
    if np.isfinite(ends).any():
        axis.fill_between(at, *(start + ends).T, color="#56b4e9", alpha=0.35, linewidth=0, label="interval")
        axis.vlines(at, *(start + ends).T, color="#0072b2", alpha=0.6, linewidth=1)
    axis.plot(at, values, "o:", color="#0072b2", markersize=4, linewidth=1, label="from these images")
    broken = result.breaks[result.criteria.index(criterion)]
    if broken.holds_at is not None and broken.fails_at is not None:
        bracket = (at[result.levels.index(level)] for level in (broken.holds_at, broken.fails_at))
        axis.axvspan(*bracket, color="0.85", zorder=0, label="breaks in here")
    failing = [criterion.fails(margin) for margin in margins]
    if any(failing):
        axis.plot(at[failing], values[failing], "x", color="#d55e00", markersize=10, markeredgewidth=2, label="fails")
    upper = "at most" in criterion.limit or "<" in criterion.limit
    targets = values + margins if upper else values - margins
    if criterion.kind == "metric":
        targets = np.array([start - margins[0], start + margins[0]])
    for number, target in enumerate(np.unique(np.round(targets[np.isfinite(targets)], 12))):
        axis.axhline(target, color="black", linestyle="--", linewidth=1, label=None if number else "target")
    shown = ["\u221e" if math.isinf(level) else f"{level:g}" for level in result.levels]
    axis.set_xticks(at, shown, rotation=45, fontsize="x-small")
    unit = f" ({asked.unit})" if asked.unit else ""
    axis.set_xlabel(plain(f"{asked.parameter}{unit}, {asked.scale} scale"), fontsize="small")
    axis.set_ylabel({"requirement": "P", "collision": "lambda"}.get(criterion.kind, "value"), fontsize="small")
    axis.tick_params(axis="y", labelsize="x-small")
    axis.grid(True, linewidth=0.3)
    axis.legend(fontsize="x-small", frameon=False)
    axis.set_title(wrapped(f"{criterion.name}: {criterion.limit}", 52), fontsize="small")
