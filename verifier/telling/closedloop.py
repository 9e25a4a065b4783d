"""Trade-off areas and decisions, told once: on the terminals of `verify closed-loop` and `robroc`, and in reports."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from verifier.base.numbers import fixed, interval_text, significant
from verifier.base.words import listed
from verifier.closedloop.comparison import Cell as AreaCell
from verifier.closedloop.comparison import Row as AreaRow
from verifier.closedloop.curvefiles import Curve
from verifier.closedloop.trade_offs import NOT_DEFINED, CurvePoints, TradeOffs, TradeOffsResult, TradeOffTable
from verifier.telling.blocks import Block, Cell, Figure, Fold, Paragraph, Row, Table, name_text
from verifier.telling.pictures import Line, plot
from verifier.telling.terminal import told_text

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
MOST_ROWS = 6
"""Rows of a metric of which a summary says which detector is best."""
MOST_CURVES = 12
MOST_CURVE_ROWS = 400
"""Points of curves up to which they are also given as a table."""


def trade_off_tables(result: TradeOffs, *, colour: bool = False) -> str:
    """The tables of `verify closed-loop` and `verify robroc`: areas, intervals, decisions, remarks."""
    study = result.document()
    return told_text(study.title, trade_off_blocks(study, pictures=False), study.remarks, colour)


def trade_off_sentences(study: TradeOffsResult) -> Iterator[str]:
    """Which detectors are best by each metric, for a summary."""
    for table in study.metrics:
        rows = [f"{listed(_names(row.best), 'or')} ({name_text(row.name)})" for row in table.rows[:MOST_ROWS]]
        yield f"Best by {name_text(table.metric)}: {'; '.join(rows)}."
    for undefined in study.not_defined:
        yield f"Best by {name_text(undefined.metric)}: {NOT_DEFINED}, {undefined.reason}."


def trade_off_blocks(study: TradeOffsResult, *, pictures: bool = True) -> Iterator[Block]:
    """The areas by each metric, what one would choose by them, and how far the engines are apart.

    Args:
        study: to be told.
        pictures: whether the curves are drawn, and their numbers shown on request.
    """
    yield from map(Paragraph, _head(study))
    for table in study.metrics:
        title = TITLES.get(table.metric, name_text(table.metric))
        yield _areas(title, table)
        if any(cell.area_interval is not None for row in table.rows for cell in row.cells):
            intervals = [_cells_of(row, table, _interval) for row in table.rows]
            yield _table(
                "Bootstrap over logs: intervals of these areas, no closer than so few allow", table, intervals
            )
        if pictures:
            yield from curve_blocks(table.curves, name_text(table.metric))
    for undefined in study.not_defined:
        yield Paragraph(
            f"{TITLES.get(undefined.metric, name_text(undefined.metric))}: {NOT_DEFINED}, {undefined.reason}"
        )
    yield from (Paragraph(text, "note") for text in _legend(study))
    if any(len(table.detectors) > 1 for table in study.metrics):
        yield _decisions(study)
        if len(study.metrics) > 1:
            yield _between(study)
    if study.second_engine is not None:
        second = study.second_engine
        what = "no time step" if second.engine == "events" else "time steps"
        yield Paragraph(
            f"The second engine ({second.engine}: {what}) gives closed-loop areas that differ by at most "
            f"{significant(second.largest_area_difference, 2)}; it judges {second.safety_differs} of {second.runs} "
            "positive runs otherwise.",
            "note",
        )


def _head(study: TradeOffsResult) -> Iterator[str]:
    if study.logs is not None:
        yield f"{study.logs.positive} positive and {study.logs.negative} negative logs"
    choices = study.settings
    if "control_radius_m" in choices:
        vehicle = choices["vehicle"]
        yield (
            f"control radius {choices['control_radius_m']:g} m, safety radius {choices['safety_radius_m']:g} m; top "
            f"speed {vehicle['top_speed_mps']:g} m/s, {vehicle['a_min_mps2']:g} and {vehicle['a_max_mps2']:g} m/s^2; "
            f"{choices['engine']}, {vehicle['between_images']}, {vehicle['too_close']}"
        )
    if "safety" in choices:
        yield f"safety: {choices['safety']}, efficiency: {choices['progress']}"


def _areas(title: str, table: TradeOffTable) -> Table:
    rows = [_cells_of(row, table, _area) for row in table.rows]
    if table.means:
        means = {mean.detector: mean for mean in table.means}
        texts = (
            "-" if mean is None else Cell(f"{fixed(mean.area, 3)} {_ratio(mean.relative)}", mean.area)
            for mean in (means.get(name) for name in table.detectors)
        )
        rows.append(("mean of areas", *texts))
    return _table(title, table, rows)


def _table(caption: str, table: TradeOffTable, rows: Sequence[Row]) -> Table:
    return Table(caption, ("conditions", *_names(table.detectors)), tuple(rows), sortable=True)


def _cells_of(row: AreaRow, table: TradeOffTable, told: Callable[[AreaRow, AreaCell], Cell]) -> Row:
    cells = {cell.detector: told(row, cell) for cell in row.cells}
    return (name_text(row.name), *(cells.get(name, "-") for name in table.detectors))


def _area(row: AreaRow, cell: AreaCell) -> Cell:
    mark = ("*" if cell.detector in row.best else " ") + "!" * (cell.detector in row.flipped)
    if row.kind == "baseline":
        return Cell(f"{fixed(cell.area, 3)}{mark}", cell.area)
    return Cell(f"{fixed(cell.area, 3)}{mark}{_ratio(cell.robustness)}", cell.area, heat=cell.robustness)


def _interval(row: AreaRow, cell: AreaCell) -> Cell:
    low, high = cell.area_interval or (None, None)
    return Cell("-") if low is None or high is None else Cell(interval_text(low, high), low)


def _ratio(value: float | None) -> str:
    return "(-)" if value is None else f"({fixed(value, 2)})"


def _legend(study: TradeOffsResult) -> Iterator[str]:
    yield "area of the worst case of baseline and condition (share of the baseline's area); * greatest of the row"
    if any(row.flipped for table in study.metrics for row in table.rows):
        yield "! greatest, or not, by the time step alone: without one it is the other way round"
    if any(row.best_without_step is not None for table in study.metrics for row in table.rows):
        yield "intervals and P(best) are of the engines with and without a time step together"
    if any(cell.best_interval for table in study.metrics for row in table.rows for cell in row.cells):
        yield "interval of P(best): what the draws of as many other logs might say"
    if any(table.means for table in study.metrics):
        yield "mean of areas: of the conditions' own curves (mPC, rPC), where gains offset losses"


def _decisions(study: TradeOffsResult) -> Table:
    drawn = any(cell.area_interval for table in study.metrics for row in table.rows for cell in row.cells)
    flips = {(flip.to.metric, flip.to.row): flip for flip in study.flips.under_mutation}
    rows: list[Row] = []
    for table in study.metrics:
        for row in table.rows:
            flip = flips.get((table.metric, row.name))
            chances = [_best_chance(row), _chance(None if flip is None else flip.probability)]
            change = "" if flip is None else "yes" if flip.flips else "no"
            known = (name_text(table.metric), name_text(row.name), ", ".join(_names(row.best)))
            rows.append((*known, chances[0], change, chances[1]) if drawn else (*known, change))
    header = ("metric", "row", "best", *(("P(best)", "changes", "P(change)") if drawn else ("changes",)))
    return Table("Which detector has the greatest area", header, tuple(rows), sortable=True)


def _best_chance(row: AreaRow) -> Cell:
    """The chance of the best, with its interval where that is one detector."""
    best = [cell for cell in row.cells if cell.detector in row.best and cell.best_probability is not None]
    told = _chance(sum(cell.best_probability or 0 for cell in best) if best else None)
    ends = best[0].best_interval if len(best) == 1 else None
    return told if ends is None else replace(told, text=f"{told.text} {interval_text(*ends, 2)}")


def _between(study: TradeOffsResult) -> Block:
    last = study.metrics[-1].metric
    changing = [flip for flip in study.flips.between_metrics if flip.flips]
    if not changing:
        return Paragraph(f"Every metric chooses the same detector as {last}, in every row.")
    rows: tuple[Row, ...] = tuple(
        (
            *map(name_text, (flip.from_.row, flip.from_.metric)),
            *(", ".join(_names(choice.best)) for choice in (flip.from_, flip.to)),
            _chance(flip.probability),
        )
        for flip in changing
    )
    header = ("row", "metric", "best by it", f"best by {last}", "P(change)")
    return Table(f"Where another metric chooses otherwise than {last}", header, rows, sortable=True)


def _names(names: Sequence[str]) -> list[str]:
    return [name_text(name) for name in names]


def _chance(value: float | None) -> Cell:
    return Cell("") if value is None else Cell(fixed(value, 2), value)


def curve_blocks(curves: Sequence[Curve | CurvePoints], what: str) -> Iterator[Block]:
    """Some curves as a picture, and their points as a table on request."""
    lines = [
        Line(
            f"{name_text(curve.detector)}, {name_text(curve.condition)}",
            sorted(zip(curve.efficiency, curve.safety, strict=True)),
        )
        for curve in curves[:MOST_CURVES]
    ]
    more = f" The first {MOST_CURVES} of {len(curves)} curves." if len(curves) > MOST_CURVES else ""
    title = f"Safety against efficiency, {what}"
    yield Figure(plot(lines, ("efficiency", "safety"), title), f"{title}.{more}")
    if sum(len(line.points) for line in lines) <= MOST_CURVE_ROWS:
        rows = tuple(
            (line.name, Cell(significant(x, 4), x), Cell(significant(y, 4), y))
            for line in lines
            for x, y in line.points
        )
        table = Table(f"{title}: the points", ("curve", "efficiency", "safety"), rows, sortable=True)
        yield Fold("The curves as a table", (table,), printed=False)
