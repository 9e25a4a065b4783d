"""Pictures of comparisons: probabilities with their intervals, curves along sweeps, two requirements at once."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from verifier.base.errors import UsageError, one_line
from verifier.base.numbers import fixed, level_text
from verifier.questions.compare.compare_result import (
    CompareResult,
    Curve,
    ParetoView,
    RequirementComparison,
    SpecComparison,
)
from verifier.telling.compare import short_name
from verifier.telling.figures.drawing import shades, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Panel: TypeAlias = "Callable[[Axes], None]"

COLUMNS = 2
MOST_PANELS = 24
MOST_CONTENDERS = 24
MARKERS = "osD^vP*X<>hp"


def compare_figure(result: CompareResult) -> Figure:
    """for each requirement its configurations and its curves, then the Pareto views.

    Raises:
        UsageError: more panels or configurations than can be told apart.
    """
    panels = [panel for spec in result.specs for panel in _panels(spec, len(result.specs) > 1, result.level)]
    most = max(len(spec.configurations) for spec in result.specs)
    if len(panels) > MOST_PANELS or most > MOST_CONTENDERS:
        raise UsageError(
            f"--plot: {len(panels)} panels of {most} configurations; at most {MOST_PANELS} of {MOST_CONTENDERS} are "
            "drawn. Choose with --requirement, --planner and --sweep"
        )
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    height = max(3.2, 0.9 + 0.24 * most)
    figure, axes = subplots(rows, columns, figsize=(4.2 * columns, height * rows), squeeze=False)
    for axis, panel in zip(axes.ravel(), panels, strict=False):
        panel(axis)
    for axis in axes.ravel()[len(panels) :]:
        axis.set_axis_off()
    figure.tight_layout()
    return figure


def _panels(spec: SpecComparison, many: bool, level: float) -> list[Panel]:
    before = f"{spec.spec}: " if many else ""
    panels: list[Panel] = []
    for requirement in spec.requirements:
        panels.append(partial(_draw_entries, spec, requirement, before, level))
        panels += [partial(_draw_curve, spec, requirement, curve, before, level) for curve in requirement.curves]
    if spec.pareto is not None:
        panels.append(partial(_draw_pareto, spec, spec.pareto, before))
    return panels


def _draw_entries(
    spec: SpecComparison, requirement: RequirementComparison, before: str, level: float, axis: Axes
) -> None:
    """One row per configuration: Storm's probability as a dot, the interval as a line."""
    count = len(requirement.entries)
    for k, (entry, colour) in enumerate(zip(requirement.entries, shades(count), strict=True)):
        axis.plot(
            [entry.interval.lower, entry.interval.upper], [k, k], color=colour, linewidth=2.2, solid_capstyle="butt"
        )
        axis.plot([entry.worst_point.probability], [k], marker=_marker(k), color=colour, markersize=6)
    axis.set_yticks(range(count), [short_name(spec.configurations, k) for k in range(count)], fontsize="small")
    axis.set_ylim(count - 0.5, -0.5)
    axis.set_xlim(-0.02, 1.02)
    if requirement.target is not None:
        axis.axvline(float(requirement.target.probability), color="0.4", linestyle="--", linewidth=0.9)
    axis.set_xlabel(f"probability (worst scenario), {level_text(level)} interval", fontsize="small")
    axis.set_title(
        one_line(f"{before}{requirement.name}: {requirement.target_text}"), fontsize="small", parse_math=False
    )
    axis.grid(True, axis="x", linewidth=0.3)


def _draw_curve(
    spec: SpecComparison, requirement: RequirementComparison, curve: Curve, before: str, level: float, axis: Axes
) -> None:
    """One line per configuration with its interval as a band."""
    colours = shades(len(spec.configurations))
    for k, colour in enumerate(colours):
        known = [at for at, row in enumerate(curve.probability) if row[k] is not None]
        places = [float(Fraction(curve.places[at])) for at in known]
        low, high = ([_number(table[at][k]) for at in known] for table in (curve.lower, curve.upper))
        axis.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)
        values = [_number(curve.probability[at][k]) for at in known]
        name = short_name(spec.configurations, k)
        axis.plot(places, values, marker=_marker(k), markersize=4, linewidth=1.2, color=colour, label=name)
    if requirement.target is not None:
        axis.axhline(float(requirement.target.probability), color="0.4", linestyle="--", linewidth=0.9)
    if all(Fraction(place).denominator == 1 for place in curve.places):
        from matplotlib.ticker import MaxNLocator

        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_ylim(-0.02, 1.02)
    axis.set_xlabel(one_line(curve.axis), fontsize="small", parse_math=False)
    axis.set_ylabel(f"probability, {level_text(level)} band", fontsize="small")
    axis.set_title(one_line(f"{before}{requirement.name}"), fontsize="small", parse_math=False)
    axis.grid(True, linewidth=0.3)
    if len(spec.configurations) > 1:
        axis.legend(frameon=False, fontsize="x-small")


def _draw_pareto(spec: SpecComparison, pareto: ParetoView, before: str, axis: Axes) -> None:
    """Two requirements as coordinates; non-dominated configurations filled, with their chance of being so."""
    known = {requirement.name: requirement for requirement in spec.requirements}
    first, second = known[pareto.first], known[pareto.second]
    for k, colour in enumerate(shades(len(spec.configurations))):
        one, other = first.entries[k], second.entries[k]
        x, y = one.worst_point.probability, other.worst_point.probability
        axis.plot([one.interval.lower, one.interval.upper], [y, y], color=colour, linewidth=0.8, alpha=0.6)
        axis.plot([x, x], [other.interval.lower, other.interval.upper], color=colour, linewidth=0.8, alpha=0.6)
        face = colour if pareto.non_dominated[k] else "white"
        label = f"{short_name(spec.configurations, k)} ({fixed(pareto.chances[k], 2)})"
        axis.plot([x], [y], marker=_marker(k), color=colour, markerfacecolor=face, linestyle="", label=label)
    axis.margins(0.08)
    axis.set_xlabel(one_line(f"P {first.name}"), fontsize="small", parse_math=False)
    axis.set_ylabel(one_line(f"P {second.name}"), fontsize="small", parse_math=False)
    axis.set_title(one_line(f"{before}filled: non-dominated (probability)"), fontsize="small", parse_math=False)
    axis.grid(True, linewidth=0.3)
    axis.legend(frameon=False, fontsize="x-small")


def _marker(k: int) -> str:
    return MARKERS[k % len(MARKERS)]


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
