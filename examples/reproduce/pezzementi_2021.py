"""Tables and figures of Pezzementi et al. 2021, Perception robustness testing (Field Robotics).

The logs and detections of the paper are not published. With logs of your own (as for verify closed-loop) the same
figures and tables are made of them. The paper gives no radii; 2 m and 1.5 m are taken here.

  python examples/reproduce/pezzementi_2021.py OUTPUT [--logs FOLDER] [--images FOLDER --depth FOLDER]
"""

import math
import sys

from parts import mutated, options, reproduce, write_figure, write_rows

import verifier

LOGS = "needs --logs FOLDER; the paper's logs and detections are not published"
SIMPLE = [
    *(f"gaussian_blur:sigma_px={each}" for each in (1.5, 2, 2.5, 3)),
    *(f"alpha_blend:alpha={each}" for each in (0.1, 0.25, 0.5, 0.75)),
    *(f"channel_dropout:channel={each}" for each in ("Cb", "Cr", "R", "G", "B")),
]
HAZE = [f"haze:visibility_m={each}" for each in (978, 326, 97.8)]
DEFOCUS = [f"defocus:kappa_m_px={kappa},focus_m={focus}" for kappa in (2.0, 2.8) for focus in (1, 2, 5)]
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


def main(words=None):
    """Make what can be made."""
    more = {"logs": "folder of recorded drives", "images": "folder of images", "depth": "folder of their depth maps"}
    given = options(__doc__.splitlines()[0], **more).parse_args(words)
    found = None
    if given.logs is not None:
        found = verifier.drive_logs(
            given.logs, validation="self", control_radius=2, safety_radius=1.5, match_distance=1, draws=200
        )
    metrics = [] if found is None else [table.metric for table in found.tables]

    def pictures(number, mutations, by_depth):
        if given.images is None or (by_depth and given.depth is None):
            return f"needs --images FOLDER{' and --depth FOLDER' if by_depth else ''}; the paper's images are NREC's"
        depth = given.depth if by_depth else None
        return lambda output: mutated(given.images, depth, mutations, output / f"figure_{number}")

    def curves(output):
        return f"{write_figure(found.plot(), output / 'figures_8_to_11.png')}, by {', '.join(metrics)}"

    def areas(number, metric):
        def make(output):
            rows = [row for row in found.rows() if row["metric"] == metric]
            return write_rows(output / f"table_{number}.csv", [*rows[0]], [[*row.values()] for row in rows])

        return make if metric in metrics else LOGS if found is None else f"the logs have nothing to judge by {metric}"

    tables = {"5": "roc_a", "6": "roc_b", "7": "roboticizer", "9": "pathifier", "10": "closed_loop"}
    return reproduce(
        __doc__.splitlines()[0],
        {
            **dict.fromkeys(("figure 1", "figure 2", "figure 6", "figure 7"), "a photograph or a drawing"),
            "figure 3": pictures(3, SIMPLE, False),
            "figure 4": pictures(4, HAZE, True),
            "figure 5": pictures(5, DEFOCUS, True),
            **{f"figure {number}": curves if found is not None else LOGS for number in (8, 9, 10, 11)},
            "equation 7": stopping,
            "table 1": parameters,
            "table 2": "a list of detectors, without numbers",
            **dict.fromkeys(("table 3", "table 4"), "colours for the numbers of tables 6, 7, 9 and 10"),
            **{f"table {number}": areas(number, metric) for number, metric in tables.items()},
            "table 8": "needs distances that detectors of image rectangles were given by a depth camera",
        },
        given.output,
    )


if __name__ == "__main__":
    sys.exit(not main())
