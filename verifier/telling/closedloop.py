"""Trade-off areas and decisions as tables that a person reads."""

from __future__ import annotations

import math
from collections.abc import Sequence

from verifier.base.errors import one_line
from verifier.closedloop.comparison import Cell, MetricTable, Row
from verifier.closedloop.decisions import Flip
from verifier.closedloop.trade_offs import TradeOffs

PLAIN = "\x1b[0m"
SHADES = ((0.95, "\x1b[32m"), (0.8, "\x1b[92m"), (0.6, "\x1b[33m"), (0.3, "\x1b[91m"), (-1.0, "\x1b[31m"))
"""Least robustness -> colour, warm where the area is lost."""
TITLES = {
    "roc_a": "ROC A: recall against false positives per image, all logs",
    "roc_b": "ROC B: recall in positive logs against false positives in negative logs",
    "roboticizer": "Roboticizer: people and false positives within 10 m, localized within 1 m",
    "pathifier": "Pathifier: people and false positives on the path, with their urgency",
    "safety_radius": "Safety radius: never in motion within it, against time lost",
    "closed_loop": "Closed loop: share of runs that stop no later than the reference vehicle (ground-truth "
    "perception), against time lost",
    "verified": "Verified: probability of the safety requirement against that of the progress requirement",
}


def trade_off_tables(result: TradeOffs, *, colour: bool = False) -> str:
    """The tables of `verify closed-loop` and `verify robroc`: areas, intervals, decisions, remarks."""
    lines = [one_line(result.title), *_head(result)]
    for table in result.tables:
        lines += ["", TITLES.get(table.metric, one_line(table.metric))]
        lines += _area_lines(table, colour)
    lines += ["", *_legend(result)]
    if any(len(each.detectors) > 1 for each in result.tables):
        lines += ["", "Which detector has the greatest area:", *_decision_lines(result)]
        between = [each for each in result.between_metrics if each.flips]
        if len(result.tables) > 1:
            lines += ["", *_between_lines(between, result)]
    lines += ["", *_second_lines(result), *(f"note: {one_line(each)}" for each in result.remarks)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _head(result: TradeOffs) -> list[str]:
    lines = []
    if result.logs is not None:
        lines.append(f"{result.logs.positive} positive and {result.logs.negative} negative logs")
    choices = result.settings
    if "control_radius_m" in choices:
        vehicle = choices["vehicle"]
        lines.append(
            f"control radius {choices['control_radius_m']:g} m, safety radius {choices['safety_radius_m']:g} m; "
            f"top speed {vehicle['top_speed_mps']:g} m/s, {vehicle['a_min_mps2']:g} and "
            f"{vehicle['a_max_mps2']:g} m/s^2; {choices['engine']}, {vehicle['between_images']}, "
            f"{vehicle['too_close']}"
        )
    if "safety" in choices:
        lines.append(f"safety: {choices['safety']}, efficiency: {choices['progress']}")
    return lines


def _area_lines(table: MetricTable, colour: bool) -> list[str]:
    header = ["", *map(one_line, table.detectors)]
    rows, shades = [], []
    for row in table.rows:
        cells = {each.detector: each for each in row.cells}
        rows.append([one_line(row.name), *(_area_text(row, cells.get(each)) for each in table.detectors)])
        shades.append([_shade(row, cells.get(each)) for each in table.detectors])
    if table.means:
        means = {each.detector: each for each in table.means}
        texts = [f"{means[each].area:.3f} {_ratio(means[each].relative)}" if each in means else "-"
                 for each in table.detectors]  # fmt: skip
        rows.append(["mean of areas", *texts])
        shades.append([""] * len(texts))
    lines = _grid(header, rows, shades if colour else None)
    if any(each.area_interval for row in table.rows for each in row.cells):
        intervals = []
        for row in table.rows:
            cells = {each.detector: each for each in row.cells}
            intervals.append([one_line(row.name), *(_interval_text(cells.get(each)) for each in table.detectors)])
        lines += ["", "bootstrap over logs:", *_grid(header, intervals, None)]
    return lines


def _area_text(row: Row, cell: Cell | None) -> str:
    if cell is None:
        return "-"
    mark = "*" if cell.detector in row.best else " "
    if row.kind == "baseline":
        return f"{cell.area:.3f}{mark}"
    return f"{cell.area:.3f}{mark}{_ratio(cell.robustness)}"


def _interval_text(cell: Cell | None) -> str:
    if cell is None or cell.area_interval is None or math.isnan(cell.area_interval[0]):
        return "-"
    low, high = cell.area_interval
    return f"{low:.3f}-{high:.3f}"


def _ratio(value: float) -> str:
    return "(-)" if math.isnan(value) else f"({value:.2f})"


def _shade(row: Row, cell: Cell | None) -> str:
    if cell is None or row.kind == "baseline" or math.isnan(cell.robustness):
        return ""
    return next(colour for least, colour in SHADES if cell.robustness >= least)


def _grid(header: Sequence[str], rows: Sequence[Sequence[str]], shades: Sequence[Sequence[str]] | None) -> list[str]:
    """Aligned columns under a header and a rule; the cells but the first coloured by `shades`."""
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(header, widths, strict=True)).rstrip()]
    lines.append("  ".join("-" * width for width in widths))
    for number, row in enumerate(rows):
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        if shades is not None:
            colours = ["", *shades[number]]
            padded = [f"{shade}{cell}{PLAIN}" if shade else cell for cell, shade in zip(padded, colours, strict=True)]
        lines.append("  ".join(padded).rstrip())
    return lines


def _legend(result: TradeOffs) -> list[str]:
    lines = ["area of the worst case of baseline and condition (share of the baseline's area); * greatest of the row"]
    if any(each.means for each in result.tables):
        lines.append("mean of areas: of the conditions' own curves (mPC, rPC), where gains offset losses")
    return lines


def _decision_lines(result: TradeOffs) -> list[str]:
    drawn = any(row.drawn is not None for table in result.tables for row in table.rows)
    header = ["metric", "row", "best", *(["P(best)"] if drawn else []), "changes", *(["P(change)"] if drawn else [])]
    flips = {(each.metrics[1], each.rows[1]): each for each in result.under_mutation}
    rows = []
    for table in result.tables:
        for row in table.rows:
            flip = flips.get((table.metric, row.name))
            chance = [_probability_text(_best_probability(row))] if drawn else []
            change = [] if not drawn else [_probability_text(None if flip is None else flip.probability)]
            rows.append(
                [one_line(table.metric), one_line(row.name), _names(row.best), *chance,
                 "" if flip is None else ("yes" if flip.flips else "no"), *change]
            )  # fmt: skip
    return _grid(header, rows, None)


def _best_probability(row: Row) -> float | None:
    chances = [each.best_probability for each in row.cells if each.detector in row.best]
    known = [each for each in chances if each is not None and not math.isnan(each)]
    return sum(known) if known else None


def _between_lines(changing: Sequence[Flip], result: TradeOffs) -> list[str]:
    last = result.tables[-1].metric
    if not changing:
        return [f"Every metric chooses the same detector as {last}, in every row."]
    rows = [
        [one_line(each.rows[0]), one_line(each.metrics[0]), _names(each.best[0]), _names(each.best[1]),
         _probability_text(each.probability)]
        for each in changing
    ]  # fmt: skip
    header = ["row", "metric", "best by it", f"best by {last}", "P(change)"]
    return [f"Where another metric chooses otherwise than {last}:", *_grid(header, rows, None)]


def _names(names: Sequence[str]) -> str:
    return ", ".join(map(one_line, names))


def _probability_text(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.2f}"


def _second_lines(result: TradeOffs) -> list[str]:
    second = result.second
    if second is None:
        return []
    what = "no time step" if second.engine == "events" else "time steps"
    return [
        f"The second engine ({second.engine}: {what}) gives closed-loop areas that differ by at most "
        f"{second.largest_area_difference:.2g}; it judges {second.safety_differs} of {second.runs} positive runs "
        "otherwise."
    ]
