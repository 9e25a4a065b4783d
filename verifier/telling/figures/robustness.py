"""Pictures of robustness: rates as in Pezzementi et al. 2018 (Figures 4, 5, 7 and 8, Table IV), and assessments."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from verifier.base.arrays import Floats
from verifier.base.errors import UsageError
from verifier.base.numbers import fixed
from verifier.closedloop.comparison import BASELINE
from verifier.robustness.assessment.circumstances import EXPOSURE, LIKELIHOOD, SEVERITY, Risk
from verifier.robustness.assessment.document import AssessResult, CriterionRecord, SystemRecord
from verifier.robustness.brackets import along
from verifier.robustness.predicting import PredictResult
from verifier.robustness.rates import CURVE, AdrResult
from verifier.telling.figures.drawing import MOST_ROWS, framed, plain, shades, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKS = ((0.1, "^", 13), (0.01, "*", 11), (0.001, "o", 3))
"""Sensitivities that are marked: false positives per baseline image, as in the paper; and how large, so that marks at
one place are all seen."""
COLUMNS = 2


def curves_figure(result: AdrResult) -> Figure:
    """Miss rate against false positives per image, a panel for each of the first conditions, the baseline first."""
    conditions = result.conditions[:MOST_ROWS]
    figure, axes, panels = _panels_of(conditions)
    colours = dict(zip(result.detectors, shades(len(result.detectors)), strict=True))
    for axis, condition in zip(panels, conditions, strict=True):
        for row in (rate for rate in result.rates if rate.condition == condition and rate.curve_miss_rates):
            reach = np.maximum(row.curve_false_positives, 1 / (2 * row.images))  # 0 has no place on a log axis
            missed = np.array(row.curve_miss_rates)
            axis.step(reach, missed, where="post", color=colours[row.detector], label=plain(row.detector))
            for level, mark, size in MARKS:
                at = int(np.abs(np.log(CURVE / level)).argmin())
                own = {"color": colours[row.detector], "markeredgecolor": "white", "markeredgewidth": 0.5}
                axis.plot(reach[at], missed[at], mark, markersize=size, **own)
        axis.set(xscale="log", ylim=(-0.02, 1.02))
        axis.set_xlabel("false positives per image", fontsize="small")
    ends = np.log10([axis.get_xlim() for axis in panels])
    for axis in panels:  # whole decades, the same in all, and no numbers between them, which would overlap
        axis.set_xlim(10.0 ** np.floor(ends.min()), 10.0 ** np.ceil(ends.max()))
        axis.xaxis.set_minor_formatter("")
    for axis in axes[:, 0]:
        axis.set_ylabel("miss rate", fontsize="small")
    for level, mark, size in MARKS:
        axes[0][0].plot([], [], mark, color="0.4", markersize=size, label=f"set at {level:g} in the baseline")
    axes[0][0].legend(fontsize="x-small")
    figure.tight_layout()
    return figure


def objects_figure(result: AdrResult) -> Figure:
    """The false-positive rate that each object requires, before and after each mutation, as Figure 6 tells of single
    ones; beyond the line of the axes stand objects that no sensitivity finds."""
    conditions = [name for name in result.conditions if any(rate.condition == name for rate in result.required)]
    conditions = conditions[:MOST_ROWS]
    if not conditions:
        raise UsageError("--plot-objects: there is no condition beside the baseline whose objects can be recognised")
    figure, axes, panels = _panels_of(conditions)
    colours = dict(zip(result.detectors, shades(len(result.detectors)), strict=True))
    least = min(1 / (2 * row.images) for row in result.rates)  # stands for 0
    rates = [
        rate for required_rate in result.required for rate in (required_rate.before, required_rate.after) if rate
    ]
    never = 3 * max([least, *rates])
    for axis, condition in zip(panels, conditions, strict=True):
        for name, colour in colours.items():
            own = [rate for rate in result.required if (rate.condition, rate.detector) == (condition, name)]
            before, after = (
                [never if rate is None else max(rate, least) for rate in side]
                for side in ([rate.before for rate in own], [rate.after for rate in own])
            )
            axis.plot(before, after, "o", color=colour, markersize=4, alpha=0.6, label=plain(name))
        axis.plot([least, never], [least, never], color="0.6", linewidth=0.8)
        for line in (axis.axvline, axis.axhline):
            line(never / 1.7, color="0.6", linewidth=0.8, linestyle=":")
        axis.set(xscale="log", yscale="log", xlim=(least / 1.5, never * 1.5), ylim=(least / 1.5, never * 1.5))
        axis.set_xlabel("required before (false positives per image)", fontsize="small")
    for axis in axes[:, 0]:
        axis.set_ylabel("required after", fontsize="small")
    axes[0][0].legend(fontsize="x-small", title="beyond the dotted lines: never found", title_fontsize="x-small")
    figure.tight_layout()
    return figure


def _panels_of(conditions: Sequence[str]) -> tuple[Figure, Any, list[Axes]]:
    """A figure with a panel for each condition under its name: all axes, and those of the conditions."""
    lines, columns = -(-len(conditions) // COLUMNS), min(COLUMNS, len(conditions))
    figure, axes = subplots(lines, columns, figsize=(3.6 * columns, 3 * lines + 0.4), squeeze=False, sharey=True)
    panels = list(axes.flat[: len(conditions)])
    for axis, condition in zip(panels, conditions, strict=True):
        axis.set_title(plain(condition), fontsize="small")
    for axis in axes.flat[len(conditions) :]:
        axis.set_visible(False)
    return figure, axes, panels


def table_figure(result: AdrResult) -> Figure:
    """Table IV: ADR as numbers, coloured by the share of the detector's own baseline."""
    cells = {(rate.condition, rate.detector): rate for rate in result.rates}
    rates = [[cells.get((condition, name)) for name in result.detectors] for condition in result.conditions]
    shares = np.array(
        [[np.nan if rate is None or rate.normalised is None else rate.normalised for rate in row] for row in rates]
    )
    texts = [["-" if rate is None or rate.adr is None else fixed(rate.adr, 2) for rate in row] for row in rates]
    size = 3.4 + 1.1 * len(result.detectors), max(0.28 * len(rates) + 1.4, 3)  # the colour bar has a label
    figure, axes = subplots(1, 1, figsize=size, squeeze=False)
    drawn = share_grid(axes[0][0], shares, texts, result.conditions, result.detectors)
    figure.colorbar(drawn, ax=axes[0][0], label=f"ADR / ADR of the {BASELINE}")
    figure.tight_layout()
    return figure


def share_grid(
    axis: Axes, shares: Floats, texts: list[list[str]], rows: Sequence[str], columns: Sequence[str]
) -> Any:
    """A table coloured by shares from 0 to 1 (NaN: not coloured); the picture that a colour bar is made for."""
    drawn = axis.imshow(shares, cmap="cividis", vmin=0, vmax=1, aspect="auto")
    for (y, x), share in np.ndenumerate(shares):
        colour = "white" if share < 0.5 else "black"
        axis.text(x, y, texts[y][x], ha="center", va="center", fontsize="x-small", color=colour)
    axis.set_xticks(
        range(len(columns)), [plain(column) for column in columns], rotation=30, ha="right", fontsize="x-small"
    )
    axis.set_yticks(range(len(rows)), [plain(row) for row in rows], fontsize="x-small")
    return drawn


def prediction_figure(result: PredictResult) -> Figure:
    """Figure 7: predicted against observed, with prediction intervals, a panel for each pair."""
    count = len(result.models)
    figure, axes = subplots(1, count, figsize=(4.6 * count, 4.4), squeeze=False)
    styles = zip(
        result.baseline, shades(len(result.baseline)), itertools.cycle("os^Dv*PX")
    )  # told apart without colour
    looks = {name: (colour, mark) for name, colour, mark in styles}
    for axis, model in zip(axes[0], result.models, strict=True):
        known = [
            (prediction, prediction.observed) for prediction in model.predictions if prediction.observed is not None
        ]
        top = max([1.0, *(value for rate, observed in known for value in (rate.predicted, observed))]) * 1.05
        axis.plot([0, top], [0, top], color="0.6", linewidth=0.8)
        for name, (colour, mark) in looks.items():
            own = [(rate, observed) for rate, observed in known if rate.detector == name]
            places, predicted = [observed for _, observed in own], [rate.predicted for rate, _ in own]
            axis.plot(places, predicted, mark, color=colour, markersize=5, label=plain(name))
            for rate, observed in own:
                if rate.interval is not None:
                    axis.plot([observed, observed], rate.interval, color=colour, linewidth=0.6)
        axis.set(xlabel="observed ADR / baseline", ylabel="predicted", xlim=(0, top))
        axis.set_title(plain(f"{model.target} from {model.simple}"), fontsize="small")
        axis.legend(fontsize="x-small")
    figure.tight_layout()
    return figure


def weights_figure(result: PredictResult) -> Figure:
    """Figure 8: the weight of each simple mutation in the model of each contextual one."""
    most = max(len(model.targets) for model in result.models)
    wide = sum(len(model.features) for model in result.models)
    size = (3.4 * len(result.models) + 0.6 * wide, 0.28 * most + 2)
    figure, axes = subplots(1, len(result.models), figsize=size, squeeze=False)
    for axis, model in zip(axes[0], result.models, strict=True):
        texts = [[fixed(value, 2) if value else "" for value in row] for row in model.weights]
        share_grid(axis, np.array(model.weights), texts, model.targets, model.features)
        axis.set_title(plain(f"weights of {model.target} from {model.simple}, all detectors"), fontsize="small")
    figure.tight_layout()
    return figure


MOST_PANELS = 24
SIGNS = "osD^vPX*"
"""Of metrics, in turn."""
RISKS = ""
"""In the place of a distance: the chart of the factors of significance."""


def assess_figure(result: AssessResult) -> Figure:
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


def _panels(result: AssessResult) -> list[tuple[SystemRecord, str | CriterionRecord]]:
    """System and distance, or criterion of its degradation, of each picture."""
    panels: list[tuple[SystemRecord, str | CriterionRecord]] = []
    for system in result.systems:
        if any(circumstance.significance for circumstance in system.circumstances):
            panels.append((system, RISKS))
        names = dict.fromkeys(one.distance_name for target in system.targets for one in target.outcomes)
        panels += [(system, name) for name in names]
        if system.degradation is not None:
            panels += [(system, criterion) for criterion in system.degradation.criteria]
    return panels


def _draw_relation(axis: Axes, system: SystemRecord, name: str) -> None:
    pieces = next(rule.tolerance for rule in system.rules if rule.name == name)
    outcomes = [one for target in system.targets for one in target.outcomes if one.distance_name == name]
    farthest = max([one.distance for one in outcomes] + [0.0])
    if pieces is not None:
        start = 0.0
        bounds = [piece.up_to for piece in pieces if piece.up_to is not None]
        farthest = max([farthest, *bounds]) * 1.25 or 1.0
        for number, piece in enumerate(pieces):
            end = farthest if piece.up_to is None else piece.up_to
            ends = np.array([start, end])
            label = "tolerance" if number == 0 else None
            axis.plot(ends, piece.slope * ends + piece.constant, color="black", lw=1.2, label=label)
            start = end
    for number, metric in enumerate(dict.fromkeys(one.metric for one in outcomes)):
        points = [(one.distance, one.change) for one in outcomes if one.metric == metric]
        axis.plot(*zip(*points, strict=True), SIGNS[number % len(SIGNS)], label=plain(metric), mfc="none")
    scaled = [(one.distance, one.tolerance) for one in outcomes if one.scale != 1]
    if scaled:
        axis.plot(*zip(*scaled, strict=True), "_", color="black", markersize=14, label="tolerance where it is scaled")
    axis.set_ylim(bottom=0)
    axis.legend(fontsize="small", frameon=False)
    title = f"{system.title}: robust where no mark is above its tolerance"
    framed(axis, f"distance d by {name}", "|change| of performance", title, 52)


def _draw_risks(axis: Axes, system: SystemRecord) -> None:
    """Exposure to the right, severity upwards, likelihood as the size of a mark, significance as its colour."""
    assessed = [
        (one.name, Risk(one.exposure, one.likelihood or 0, one.severity or 0))
        for one in system.circumstances
        if one.exposure is not None
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
    framed(axis, "exposure", "severity", f"{system.title}: exposure x likelihood x severity")
    words = axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncol=5, fontsize="x-small", frameon=False)
    words.set_title("likelihood")
    words.get_title().set_fontsize("x-small")


def _draw_criterion(axis: Axes, system: SystemRecord, criterion: CriterionRecord) -> None:
    """The number at each level, on the scale of the disturbance, with its interval and the target."""
    asked = system.degradation
    if asked is None:
        raise ValueError("a system without a degradation")
    at = np.array([along(level, asked.scale) for level in asked.levels])
    at = at if np.isfinite(at).all() else np.arange(len(at), dtype=np.float64)
    values = np.array([math.nan if value is None else value for value in criterion.values])
    margins = np.array([math.nan if margin is None else margin for margin in criterion.margins])
    start = values[0] if criterion.kind == "metric" else 0.0  # its intervals are of the change from the mildest level
    ends = np.array([(math.nan, math.nan) if one is None else one for one in criterion.intervals])
    if np.isfinite(ends).any():
        axis.fill_between(at, *(start + ends).T, color="#56b4e9", alpha=0.35, linewidth=0, label="interval")
        axis.vlines(at, *(start + ends).T, color="#0072b2", alpha=0.6, linewidth=1)
    axis.plot(at, values, "o:", color="#0072b2", markersize=4, linewidth=1, label="from these images")
    broken = criterion.break_
    if broken.holds_at is not None and broken.fails_at is not None:
        bracket = (at[asked.levels.index(level)] for level in (broken.holds_at, broken.fails_at))
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
    shown = ["\u221e" if math.isinf(level) else f"{level:g}" for level in asked.levels]
    axis.set_xticks(at, shown, rotation=45, fontsize="x-small")
    unit = f" ({asked.unit})" if asked.unit else ""
    what = {"requirement": "P", "collision": "lambda"}.get(criterion.kind, "value")
    framed(axis, f"{asked.parameter}{unit}, {asked.scale} scale", what, f"{criterion.name}: {criterion.limit}", 52)
    axis.tick_params(axis="y", labelsize="x-small")
    axis.legend(fontsize="x-small", frameon=False)
