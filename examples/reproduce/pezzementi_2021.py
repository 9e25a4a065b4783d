"""Tables and figures of Pezzementi et al. 2021, Perception robustness testing (Field Robotics).

The logs and detections of the paper are not published. With logs of your own (as for verify closed-loop, with sources
named DETECTOR or DETECTOR@MUTATION) the same figures and tables are made of them: each table in the paper's order of
all its mutations, as CSV and as a picture, with "no data" where the logs have none. The paper gives no radii; 2 m and
1.5 m are taken here. Table 8 is of logs in which people, too, are placed by their rectangles, as the folder `logs`
that verify campaign writes.

  python examples/reproduce/pezzementi_2021.py OUTPUT [--logs FOLDER] [--logs-2d FOLDER]
                                                      [--images FOLDER --depth FOLDER]
"""

import math
import re
import sys
from dataclasses import replace

import numpy as np
from parts import mutated, options, reproduce, write_figure, write_rows

import verifier
from verifier.closedloop.comparison import Row
from verifier.robustness.mutators.batch_result import folder_name
from verifier.robustness.mutators.sweeps import published
from verifier.robustness.rates import published_severities
from verifier.telling.figures.closedloop import curves_figure, table_figure
from verifier.telling.figures.drawing import plain, subplots, wrapped

LOGS = "needs --logs FOLDER; the paper's logs and detections are not published"
SIMPLE = [
    *(f"gaussian_blur:sigma_px={each}" for each in (1.5, 2, 2.5, 3)),
    *(f"alpha_blend:alpha={each}" for each in (0.1, 0.25, 0.5, 0.75)),
    *(f"channel_dropout:channel={each}" for each in ("Cb", "Cr", "R", "G", "B")),
]
HAZE = [f"haze:visibility_m={each}" for each in (978, 326, 97.8)]
DEFOCUS = [f"defocus:kappa_m_px={kappa},focus_m={focus}" for kappa in (2.0, 2.8) for focus in (1, 2, 5)]
NO_DATA = "no data"
PLACED = "people and detections are placed by their rectangles"  # as logs say that verify campaign wrote
METRICS = {"5": "roc_a", "6": "roc_b", "7": "roboticizer", "9": "pathifier", "10": "closed_loop"}
STRIPES = ("roc_b", "roboticizer", "pathifier", "closed_loop")  # of a cell of tables 3 and 4, from left to right
ONE_STAGE = re.compile("ssd|yolo|retina", re.IGNORECASE)
CURVES = {  # of figures 8 to 11: metric, and what the paper shows
    8: ("pathifier", "MS-CNN", "channel_dropout:channel=G"),
    9: ("closed_loop", "SSD w/ MobileNet", "gaussian_blur:sigma_px=1"),
    10: ("closed_loop", "Faster R-CNN w/ ResNet-101", "channel_dropout:channel=Cb"),
    11: ("roboticizer", "SSD w/ Inception", "gaussian_blur:sigma_px=1"),
}
BRAKING_MPS2, MOST_MPS = 15 * 0.3048, 3.0  # 15 ft/s^2


def parameters(output):
    """Table 1: the mutations by depth; the visibility is 3.912 / beta."""
    rows = [["haze", f"beta = {beta} 1/m", f"visibility {3.912 / beta:.4g} m"] for beta in (0.04, 0.012, 0.004)]
    rows += [["defocus", f"kappa = {kappa} m px", f"focus {focus} m"] for kappa in (2.0, 2.8) for focus in (1, 2, 5)]
    return write_rows(output / "table_1.csv", ["mutation", "parameter", "and"], rows)


def stopping(output):
    """Footnote 5 and equation 7: the distance from which the vehicle drives at full speed."""
    rows = [[d / 10, min(math.sqrt(2 * BRAKING_MPS2 * d / 10), MOST_MPS)] for d in range(21)]
    file = write_rows(output / "equation_7.csv", ["distance (m)", "safe speed (m/s)"], rows)
    return f"{file}; full speed from {MOST_MPS**2 / (2 * BRAKING_MPS2):.3f} m on"


def driven(folder, *metrics):
    """What the logs say of every detector under every mutation, by these metrics, or all that they define."""
    sources = [path.stem for kind in ("csv", "parquet") for path in (folder / "detections").glob(f"*.{kind}")]
    conditions = {name.partition("@")[2] for name in sources if "@" in name}
    severity = published_severities(sorted(conditions))
    severe = tuple(name for name, kind in severity.items() if kind == "severe")
    return verifier.drive_logs(
        folder, validation="self", control_radius=2, safety_radius=1.5, match_distance=1, draws=200,
        metric=metrics or tuple(METRICS.values()), severity=severity, group={"AnySevere": severe} if severe else {},
    )  # fmt: skip


def lines(tables):
    """The rows of the paper's tables: name and what the logs may call it; other conditions of the logs after that."""
    every = {each.text: {each.text, folder_name(each)} for each in published("published-2021")}
    found = dict.fromkeys(row.name for table in tables for row in table.rows if row.kind != "group")
    known = set().union(*every.values(), {"baseline"})
    own = {name: {name} for name in found if name not in known}
    return {"baseline": {"baseline"}, **every, **own, **{name: {name} for name in ("Any", "AnyMild", "AnySevere")}}


def cell(table, names, detector):
    """A detector's cell in the row that is called by one of the names; None where there are no data."""
    cells = (each for row in table.rows if row.name in names for each in row.cells if each.detector == detector)
    return next(cells, None)


def sheet(found, number, table, remark=""):
    """One of tables 5 to 10: the areas of a metric, as CSV and as a picture."""

    def make(output):
        rows = lines(found.tables)
        cells = {row: [cell(table, names, each) for each in table.detectors] for row, names in rows.items()}
        texts = [[row, *(NO_DATA if one is None else one.area for one in each)] for row, each in cells.items()]
        files = [write_rows(output / f"table_{number}.csv", [f"{table.metric}{remark}", *table.detectors], texts)]
        none = Row("", "condition", (), (), ())
        whole = [next((each for each in table.rows if each.name in names), none) for names in rows.values()]
        whole = [replace(each, name=name) for each, name in zip(whole, rows, strict=True)]
        figure = table_figure(replace(found, tables=(replace(table, rows=tuple(whole)),)))
        for text in figure.axes[0].texts:
            if text.get_text() == "-":
                text.set(text=NO_DATA, fontsize="xx-small")
        if remark:
            figure.suptitle(wrapped(remark.removeprefix("; "), 50), fontsize="x-small")
        files.append(write_figure(figure, output / f"table_{number}.png"))
        lacking = sum(one is None for each in cells.values() for one in each)
        return f"{', '.join(files)}; {NO_DATA} for {lacking} of {len(rows) * len(table.detectors)} cells{remark}"

    return make


def stripes(found, detectors, path):
    """Tables 3 and 4: in each cell a colour per metric, of robustness, or of the area in the baseline (grey)."""
    from matplotlib import colormaps

    tables = {table.metric: table for table in found.tables}
    rows = lines(found.tables)
    shades = np.ones((len(rows), len(STRIPES) * len(detectors), 3))
    figure, axes = subplots(figsize=(2.6 + 1.0 * len(detectors), 0.2 * len(rows) + 1.4), layout="constrained")
    for y, (row, names) in enumerate(rows.items()):
        for x, detector in enumerate(detectors):
            for k, metric in enumerate(STRIPES):
                one = cell(tables[metric], names, detector) if metric in tables else None
                value = None if one is None else one.area if row == "baseline" else one.robustness
                if value is None:
                    axes.plot(len(STRIPES) * x + k, y, "x", color="0.6", markersize=4)
                else:
                    colours = colormaps["Greys" if row == "baseline" else "viridis"]
                    shades[y, len(STRIPES) * x + k] = colours(0.4 * value if row == "baseline" else value)[:3]
    drawn = axes.imshow(shades, aspect="auto", cmap="viridis", vmin=0, vmax=1)
    for x in range(1, len(detectors)):
        axes.axvline(len(STRIPES) * x - 0.5, color="white", linewidth=3)
    axes.set_yticks(range(len(rows)), [plain(row) for row in rows], fontsize="x-small")
    middles = [len(STRIPES) * (x + 0.5) - 0.5 for x in range(len(detectors))]
    axes.set_xticks(middles, [plain(each) for each in detectors], fontsize="x-small", rotation=30, ha="left")
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    named = "ROC_B, Roboticizer,\nPathifier, Closed Loop"
    axes.set_xlabel(f"each cell:\n{named}\n(\u00d7: {NO_DATA})", fontsize="x-small")
    figure.colorbar(drawn, ax=axes, label="worst case / baseline", aspect=40)
    return write_figure(figure, path)


def main(words=None):
    """Make what can be made."""
    more = {
        "logs": "folder of recorded drives",
        "logs-2d": "folder of drives with people placed by their rectangles",
        "images": "folder of images",
        "depth": "folder of their depth maps",
    }
    given = options(__doc__.splitlines()[0], **more).parse_args(words)
    found = None if given.logs is None else driven(given.logs)
    tables = {} if found is None else {table.metric: table for table in found.tables}
    flat = None if given.logs_2d is None else driven(given.logs_2d, "roboticizer")

    def pictures(number, mutations, by_depth):
        if given.images is None or (by_depth and given.depth is None):
            return f"needs --images FOLDER{' and --depth FOLDER' if by_depth else ''}; the paper's images are NREC's"
        depth = given.depth if by_depth else None
        return lambda output: mutated(given.images, depth, mutations, output / f"figure_{number}")

    def lacking(metric):
        return LOGS if found is None else f"the logs have nothing to judge by {metric}"

    def curves(number):
        metric, detector, mutation = CURVES[number]
        if metric not in tables:
            return lacking(metric)
        table = tables[metric]

        def make(output):
            same = [each for each in table.detectors if each.lower() == detector.lower()] or [table.detectors[0]]
            called = {row.name for row in table.rows} & {mutation, mutation.replace(":", "-").replace("=", "_")}
            figure = curves_figure(replace(found, tables=(table,)), same, sorted(called))
            as_printed = same[0].lower() == detector.lower() and bool(called)
            told = "" if as_printed else f"; {NO_DATA} of {detector} under {mutation}"
            return f"{write_figure(figure, output / f'figure_{number}.png')}, {metric} of {same[0]}{told}"

        return make

    def areas(number, metric):
        return sheet(found, number, tables[metric]) if metric in tables else lacking(metric)

    def placed():
        """Table 8: as table 7, with people where their rectangles and the depth say."""
        if flat is not None:
            as_said = any(each.startswith(PLACED) for each in flat.remarks)
            return sheet(flat, 8, flat.tables[0], "" if as_said else "; that people are placed so is not said there")
        if "roboticizer" not in tables:
            return LOGS.replace("--logs", "--logs-2d")
        no_rows = replace(tables["roboticizer"], rows=())
        why = "; needs --logs-2d FOLDER, where people, too, are placed by their rectangles and a depth camera"
        return sheet(found, 8, no_rows, why)

    def striped(number, one_stage):
        names = dict.fromkeys(name for table in tables.values() for name in table.detectors)
        chosen = [name for name in names if bool(ONE_STAGE.search(name)) is one_stage]
        if not chosen:
            return (
                LOGS if found is None else f"{NO_DATA}: no detector of {'one stage' if one_stage else 'two stages'}"
            )
        return lambda output: stripes(found, chosen, output / f"table_{number}.png")

    return reproduce(
        __doc__.splitlines()[0],
        {
            **dict.fromkeys(("figure 1", "figure 2", "figure 6", "figure 7"), "a photograph or a drawing"),
            "figure 3": pictures(3, SIMPLE, False),
            "figure 4": pictures(4, HAZE, True),
            "figure 5": pictures(5, DEFOCUS, True),
            **{f"figure {number}": curves(number) for number in CURVES},
            "equation 7": stopping,
            "table 1": parameters,
            "table 2": "a list of detectors, without numbers",
            "table 3": striped(3, True),
            "table 4": striped(4, False),
            **{f"table {number}": areas(number, METRICS[number]) for number in ("5", "6", "7")},
            "table 8": placed(),
            **{f"table {number}": areas(number, METRICS[number]) for number in ("9", "10")},
        },
        given.output,
    )


if __name__ == "__main__":
    sys.exit(not main())
