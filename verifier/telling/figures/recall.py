"""Recall against distance, one line per class, with Wilson's 95 % intervals; and recalls that are required."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.matrices import ConfusionMatrices
from verifier.perception.confusion.recall import class_names, recalls
from verifier.telling.figures.drawing import plain, subplots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from verifier.questions.require.require_result import RequireResult


def figure_of_counts(counts: ConfusionCounts) -> Figure:
    """The recall of counts, of a family over score thresholds that at the lowest."""
    lowest = counts if counts.thresholds is None else counts.member(counts.thresholds[0])
    return recall_figure(lowest.matrices())


def recall_figure(matrices: ConfusionMatrices) -> Figure:
    """The recall of every class in every bin that has items of it.

    An interval is that of independent items. A last bin without end is drawn as wide as the one before it.
    """
    from matplotlib import colormaps

    names = class_names(matrices)
    figure, axis = subplots(figsize=(6.4, 3.8))
    colours = colormaps["viridis"](np.linspace(0, 0.85, max(len(names), 1)))
    middle, half = _places(matrices.edges_m)
    for number, name in enumerate(names):
        found = [each for each in recalls(matrices) if each.name == name and each.items]
        share = np.array([each.hits / each.items for each in found])
        low, high = (np.array([getattr(each, end) for each in found]) for end in ("low", "high"))
        # Side by side within the bin, so that the intervals of several classes can be told apart.
        shift = (number - (len(names) - 1) / 2) * 0.5 / max(len(names), 1)
        at = np.array([each.bin for each in found], dtype=int)
        axis.errorbar(
            middle[at] + shift * half[at],
            share,
            yerr=np.stack([share - low, high - share]).clip(0),
            marker="o",
            markersize=4,
            linewidth=1.2,
            capsize=2,
            label=name,
            color=colours[number],
        )
    axis.set_xlabel("distance of the true object (m)")
    axis.set_ylabel("recall")
    axis.set_ylim(-0.02, 1.02)
    axis.set_xlim(matrices.edges_m[0], middle[-1] + half[-1])
    axis.grid(True, linewidth=0.3)
    axis.set_title(matrices.title or "Recall, with 95 % intervals for independent items", fontsize="small")
    if names:
        axis.legend(frameon=False, fontsize="small")
    figure.tight_layout()
    return figure


def require_figure(result: RequireResult) -> Figure:
    """Measured and required recall of each cell, one picture per planner and value of swept constants."""
    figure, axes = subplots(
        len(result.answers), squeeze=False, figsize=(6.4, 1.2 + 2.4 * len(result.answers)), sharey=True
    )
    for answer, axis in zip(result.answers, axes[:, 0], strict=True):
        at = np.arange(len(answer.cells))
        axis.bar(at, [each.measured.recall for each in answer.cells], color="#b8c4d0", label="measured")
        asked = [(k, float(Fraction(each.required))) for k, each in enumerate(answer.cells) if each.required]
        if asked:
            places, required = zip(*asked, strict=True)
            axis.plot(places, required, "_", markersize=24, color="#8a1210", label="required")
        names = [plain(f"{each.label}\n{each.bin}") for each in answer.cells]
        axis.set_xticks(at, names, fontsize="x-small")
        axis.set_ylabel("recall")
        axis.set_ylim(0, 1.02)
        swept = "".join(f", {name} = {value}" for name, value in answer.constants.items())
        axis.set_title(plain(f"{result.requirement.name}, planner {answer.planner}{swept}"), fontsize="small")
        axis.legend(frameon=False, fontsize="small")
    figure.tight_layout()
    return figure


def _places(edges_m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Middle and half width of each bin in metres."""
    ends = edges_m.copy()
    if np.isinf(ends[-1]):
        ends[-1] = ends[-2] + (ends[-2] - ends[-3] if len(ends) > 2 else 10.0)
    return (ends[:-1] + ends[1:]) / 2, np.diff(ends) / 2
