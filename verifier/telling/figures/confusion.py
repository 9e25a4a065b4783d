"""Figures of detectors: recall against distance with Wilson's 95 % intervals, recalls that are required, misses by
what went before, and P by how long errors may persist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from verifier.perception.confusion.counts import ConfusionCounts, ContextCounts
from verifier.perception.confusion.matrices import EMPTY, ConfusionMatrices, label_text
from verifier.perception.confusion.sanity import class_names, recalls, wilson
from verifier.telling.figures.drawing import check_panels, framed, plain, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from verifier.questions.require.require_result import RequireResult
    from verifier.study.results import RunResult


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
        of_class = [recall for recall in recalls(matrices) if recall.name == name and recall.items]
        share = np.array([recall.hits / recall.items for recall in of_class])
        low, high = (np.array([getattr(recall, end) for recall in of_class]) for end in ("low", "high"))
        # Side by side within the bin, so that the intervals of several classes can be told apart.
        shift = (number - (len(names) - 1) / 2) * 0.5 / max(len(names), 1)
        at = np.array([recall.bin for recall in of_class], dtype=int)
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
    axis.set_ylim(-0.02, 1.02)
    axis.set_xlim(matrices.edges_m[0], middle[-1] + half[-1])
    title = matrices.title or "Recall, with 95 % intervals for independent items"
    framed(axis, "distance of the true object (m)", "recall", title)
    if names:
        axis.legend(frameon=False, fontsize="small")
    figure.tight_layout()
    return figure


def require_figure(result: RequireResult) -> Figure:
    """Measured and required recall of each cell, one picture per planner and value of swept constants."""
    height = sum(1.2 + 0.28 * len(answer.cells) for answer in result.answers)
    figure, axes = subplots(len(result.answers), squeeze=False, figsize=(6.4, height))
    for answer, axis in zip(result.answers, axes[:, 0], strict=True):
        at = np.arange(len(answer.cells))
        axis.barh(at, [cell.measured.recall for cell in answer.cells], color="#b8c4d0", label="measured")
        asked = [(k, float(Fraction(cell.required))) for k, cell in enumerate(answer.cells) if cell.required]
        if asked:
            places, required = zip(*asked, strict=True)
            axis.plot(required, places, "|", markersize=14, color="#8a1210", label="required")
        axis.set_yticks(at, [plain(f"{cell.label}, {cell.bin}") for cell in answer.cells], fontsize="x-small")
        axis.invert_yaxis()
        axis.set_xlabel("recall")
        axis.set_xlim(0, 1.02)
        swept = "".join(f", {name} = {value}" for name, value in answer.constants.items())
        axis.set_title(plain(f"{result.requirement.name}, planner {answer.planner}{swept}"), fontsize="small")
        axis.legend(fontsize="x-small", loc="lower left")
    figure.tight_layout()
    return figure


def _places(edges_m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Middle and half width of each bin in metres."""
    ends = edges_m.copy()
    if np.isinf(ends[-1]):
        ends[-1] = ends[-2] + (ends[-2] - ends[-3] if len(ends) > 2 else 10.0)
    return (ends[:-1] + ends[1:]) / 2, np.diff(ends) / 2


MARKERS = "os^Dv<>p*hXd"
"""Beside colours, so that lines are told apart without these."""
FEWEST = 5
"""Items of a context that is drawn: intervals of fewer cover the panel."""


def runs_figure(counts: ConfusionCounts) -> Figure:
    """One panel per true label with tracks: the share of wrong reports by the length of the current run, per bin.

    Args:
        counts: with counts by run; of a family the lowest threshold is drawn.
    """
    by_context = counts.by_context
    if by_context is None or by_context.contexts.kind != "run":
        raise ValueError("the counts are not by run")
    drawn = [
        number
        for number, label in enumerate(counts.labels)
        if label != EMPTY and by_context.counts[0, :, :-1, :, number].any()
    ]
    figure, axes = subplots(len(drawn), 1, figsize=(7.6, 3.3 * len(drawn) + 0.3), squeeze=False, sharex=True)
    for axis, number in zip(axes[:, 0], drawn, strict=True):
        _run_lengths(axis, counts, by_context, number)
    axes[-1][0].set_xlabel(
        f"right or wrong reports in a row just before (the last: {by_context.contexts.cap} or more)"
    )
    axes[0][0].legend(frameon=False, fontsize="x-small", title="bin", title_fontsize="x-small", ncols=2)
    figure.suptitle(
        f"Missed or misreported by what went before ({by_context.contexts}), 95 % intervals for independent items",
        fontsize="small",
    )
    figure.tight_layout()
    return figure


def _run_lengths(axis: Axes, counts: ConfusionCounts, by_context: ContextCounts, number: int) -> None:
    """One line per bin: wrong runs to the left, the longest first; no outcome in the middle; right runs."""
    from matplotlib import colormaps

    cap, own = by_context.contexts.cap, by_context.counts[0, :, :-1, :, number]
    order = [*range(2 * cap, cap, -1), by_context.contexts.start, *range(1, cap + 1)]
    items, right = own.sum(axis=2)[:, order], own[:, :, number][:, order]
    shown = np.flatnonzero((items >= FEWEST).any(axis=1)).tolist()
    for line, at in enumerate(shown):
        known = items[at] >= FEWEST  # a line is broken where a context has fewer
        share = np.where(known, 1 - right[at] / np.maximum(items[at], 1), np.nan)
        wrong = (items - right)[at].tolist()
        ends = np.array([wilson(*row) for row in zip(wrong, items[at].tolist(), strict=True)])
        shift = (line - (len(shown) - 1) / 2) * 0.5 / max(len(shown), 1)
        axis.errorbar(
            np.arange(-cap, cap + 1) + shift, share, yerr=np.abs(ends.T - share), markersize=4, capsize=2,
            linewidth=1, color=colormaps["viridis"](0.9 * line / max(len(shown) - 1, 1)), label=counts.bins.text(at),
            marker=MARKERS[line % len(MARKERS)],
        )  # fmt: skip
    axis.axvspan(-0.5, 0.5, color="0.93", zorder=0)
    ticks = list(range(-cap, cap + 1))
    axis.set_xticks(ticks, [f"{-at} wrong" if at < 0 else f"{at} right" if at else "none" for at in ticks])
    axis.tick_params(axis="x", labelrotation=60, labelsize="x-small")
    axis.set_ylim(-0.02, 1.02)
    framed(axis, y=f"wrong, of {label_text(counts.labels[number])}")


def persistence_figure(results: Mapping[int, RunResult], seen: int, title: str) -> Figure:
    """One panel per requirement and planner: confidence bounds of its worst scenario by how long errors may last.

    Args:
        results: of `--persist`, by the number of frames.
        seen: the longest run of errors that the data show.
        title: above all panels.

    Raises:
        UsageError: too many panels.
    """
    lengths = sorted(results)
    rows = [(requirement.name, requirement.planner) for requirement in results[lengths[0]].requirements]
    check_panels(len(rows), "panels", choose="--requirement")
    figure, axes = subplots(len(rows), 1, figsize=(6.4, 2.7 * len(rows) + 0.6), squeeze=False, sharex=True)
    for number, (axis, (name, planner)) in enumerate(zip(axes[:, 0], rows, strict=True)):
        ends = [_worst_ends(results[length], number) for length in lengths]
        low, high = (np.array([pair[k] for pair in ends]) for k in (0, 1))
        axis.fill_between(lengths, low, high, step="mid", color="#0072b2", alpha=0.25, linewidth=0)
        for values, marker, what in ((high, "v", "upper"), (low, "^", "lower")):
            axis.plot(lengths, values, marker=marker, markersize=4, linewidth=1, drawstyle="steps-mid",
                      color="#0072b2", label=f"{what} end")  # fmt: skip
        if seen > lengths[0]:
            axis.axvspan(lengths[0] - 0.5, min(seen, lengths[-1] + 1) - 0.5, facecolor="0.93", edgecolor="0.7",
                         hatch="//", linewidth=0.5, zorder=0, label="the data show longer runs")  # fmt: skip
        threshold = results[lengths[0]].requirements[number].threshold
        if threshold is not None:
            axis.axhline(float(threshold), color="0.3", linestyle="--", linewidth=0.9, label="target")
        axis.set_ylim(-0.03, 1.03)
        axis.set_xlim(lengths[0] - 0.5, lengths[-1] + 0.5)
        framed(axis, y="P, confidence bounds", title=f"{name}, {planner}")
    axes[0][0].legend(framealpha=0.9, fontsize="x-small", loc="best")
    axes[-1][0].set_xlabel("frames that errors about an object may last")
    figure.suptitle(title, fontsize="medium", parse_math=False)
    figure.tight_layout()
    return figure


def _worst_ends(result: RunResult, number: int) -> tuple[float, float]:
    """Confidence bounds of the scenario that is worst by the end that decides; [0, 1] where there are none."""
    entry = result.requirements[number]
    bounds = [None if point.uncertainty is None else point.uncertainty.confidence_bounds for point in entry.points]
    ends = [(0.0, 1.0) if bound is None else (bound.lower, bound.upper) for bound in bounds]
    return max(ends, key=lambda pair: pair[1]) if entry.is_upper else min(ends, key=lambda pair: pair[0])


def swept_lengths(longest: int, most: int = 20) -> Sequence[int]:
    """The lengths up to the longest for which P is computed: all of them, or so many spread evenly.

    >>> list(swept_lengths(4)), list(swept_lengths(50, 5))
    ([1, 2, 3, 4], [1, 13, 26, 38, 50])
    """
    return [int(number) for number in np.unique(np.rint(np.linspace(1, longest, min(longest, most))))]
