"""Pictures of an assessment: change of performance against distance, margins against the level of a disturbance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from verifier.base.errors import UsageError
from verifier.robustness.assessment.circumstances import EXPOSURE, LIKELIHOOD, SEVERITY
from verifier.robustness.assessment.result import AssessmentResult, SystemResult
from verifier.telling.figures.drawing import plain, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 12
MARKS = "osD^vPX*"
RISKS = ""
"""In the place of a distance: the chart of the factors of significance."""


def assess_figure(result: AssessmentResult) -> Figure:
    """A row per system with assessed circumstances: exposure, likelihood, severity; one per distance: |change| with
    epsilon(d) above it; one per degradation: its margins.

    Raises:
        UsageError: nothing to draw, or too much.
    """
    panels = _panels(result)
    if not 0 < len(panels) <= MOST_PANELS:
        raise UsageError(f"--plot: {len(panels)} panels to draw; 1 to {MOST_PANELS} are. Choose with --system")
    figure, axes = subplots(len(panels), 1, figsize=(7.2, 3.4 * len(panels)), squeeze=False)
    for axis, (system, rule) in zip(axes[:, 0], panels, strict=True):
        if rule == RISKS:
            _draw_risks(axis, system)
        elif rule is None:
            _draw_margins(axis, system)
        else:
            _draw_relation(axis, system, rule)
    figure.tight_layout()
    return figure


def _panels(result: AssessmentResult) -> list[tuple[SystemResult, str | None]]:
    """System and distance of each picture; no distance for the margins of a degradation."""
    found: list[tuple[SystemResult, str | None]] = []
    for system in result.systems:
        if any(each.risk for each in system.assessment.circumstances):
            found.append((system, RISKS))
        names = dict.fromkeys(one.distance_name for each in system.targets for one in each.outcomes)
        found += [(system, name) for name in names]
        if system.degradation is not None:
            found.append((system, None))
    return found


def _draw_relation(axis: Axes, system: SystemResult, name: str) -> None:
    tolerance = system.assessment.rules[name].tolerance
    outcomes = [one for each in system.targets for one in each.outcomes if one.distance_name == name]
    farthest = max([float(one.distance) for one in outcomes] + [0.0])
    if tolerance is not None:
        start, pieces = 0.0, tolerance.pieces
        bounds = [float(each.up_to) for each in pieces if each.up_to is not None]
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
    axis.set_xlabel(plain(f"distance d by {name}"))
    axis.set_ylabel("|change| of performance")
    axis.set_ylim(bottom=0)
    axis.grid(True, linewidth=0.3)
    axis.legend(fontsize="small", frameon=False)
    axis.set_title(plain(f"{system.assessment.title}: robust where no mark is above its tolerance"), fontsize="small")


def _draw_risks(axis: Axes, system: SystemResult) -> None:
    """Exposure to the right, severity upwards, likelihood as the size of a mark, significance as its colour."""
    assessed = [(each.name, each.risk) for each in system.assessment.circumstances if each.risk is not None]
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


def _draw_margins(axis: Axes, system: SystemResult) -> None:
    asked, result = system.assessment.degradation, system.degradation
    if asked is None or result is None:
        raise ValueError("a system without a degradation")
    places = np.arange(len(result.levels))
    for number, (each, one) in enumerate(zip(result.criteria, result.breaks, strict=True)):
        margins = [math.nan if margin is None else margin for margin in each.margins]
        style = MARKS[number % len(MARKS)] + "-"
        line = axis.plot(places, margins, style, mfc="none", lw=1.0, label=plain(f"{each.name}: {each.limit}"))
        if one.fails_at is not None:
            at = result.levels.index(one.fails_at)
            axis.plot(at, margins[at], "x", color=line[0].get_color(), markersize=10)
    axis.axhline(0, color="black", linewidth=0.8)
    axis.set_xticks(places, ["∞" if math.isinf(each) else f"{each:g}" for each in result.levels])
    unit = f" ({asked.unit})" if asked.unit else ""
    axis.set_xlabel(plain(f"{asked.parameter}{unit}, the mildest level first"))
    axis.set_ylabel("margin")
    axis.grid(True, linewidth=0.3)
    axis.legend(fontsize="small", frameon=False)
    axis.set_title(plain(f"{system.assessment.title}: fails below 0, first at the cross"), fontsize="small")
