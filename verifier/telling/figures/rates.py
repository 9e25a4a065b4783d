"""Pictures of detection rates under mutations: as Figures 4, 5, 7 and 8 and Table IV of Pezzementi et al. 2018."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from verifier.base.arrays import Floats
from verifier.base.errors import UsageError
from verifier.base.numbers import fixed
from verifier.closedloop.comparison import BASELINE
from verifier.robustness.predicting import PredictResult
from verifier.robustness.rates import CURVE, AdrResult
from verifier.telling.figures.drawing import MOST_ROWS, plain, shades, subplots

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
