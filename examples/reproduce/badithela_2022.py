"""Figures of Badithela, Wongpiromsarn and Murray 2022, Evaluation metrics for object detection (arXiv:2210.10298).

Their confusion matrices of YOLOv3 on nuScenes stand in examples/; everything that follows from them is made here.

  python examples/reproduce/badithela_2022.py OUTPUT [--speeds 1..10]
"""

import sys

from parts import ROOT, options, reproduce, write_figure, write_rows

import verifier
from verifier.perception.confusion import read_confusion
from verifier.perception.confusion.matrices import label_text
from verifier.telling.figures.run import run_figure

MATRICES = {labelling: ROOT / f"examples/nuscenes_yolov3_{labelling}.json" for labelling in ("class", "proposition")}
DRAWING = "a drawing"


def matrix(labelling, number):
    """The matrix of the nearest distance bin, rows predicted and columns true (figures 6 and 7)."""

    def make(output):
        matrices = read_confusion(MATRICES[labelling]).matrices
        names = [label_text(label) for label in matrices.labels]
        rows = [[name, *row] for name, row in zip(names, matrices.counts[0].tolist(), strict=True)]
        file = write_rows(output / f"figure_{number}.csv", ["predicted", *(f"true {name}" for name in names)], rows)
        return f"{file}, {labelling}-labelled counts in {matrices.bin_text(0)}"

    return make


def probabilities(speeds):
    """P of all three requirements against the initial speed, one line per maximal speed (figure 8)."""

    def make(output):
        panels, told = [], []
        for labelling, file in MATRICES.items():
            for canonical in (True, False):
                found = verifier.run(
                    ROOT / "specs/car_pedestrian.ltl",
                    file,
                    environment="ped",
                    requirement="all_three",
                    sweep=f"vmax={speeds}",
                    canonical=canonical,
                    point_only=True,
                )
                matrices = "one matrix" if canonical else "by distance"
                panels.append((f"{labelling}-labelled, {matrices}", found))
                slowest = next(row["probability"] for row in found.rows() if row["constant_vmax"] == "1")
                told.append(f"{labelling} {matrices} {slowest:.4f}")
        write_figure(run_figure(panels, "log"), output / "figure_8.png")
        return f"figure_8.png; at vmax = 1: {', '.join(told)}"

    return make


def main(words=None):
    """Make what can be made."""
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--speeds", default="1..10", help="maximal speeds of figure 8 (default: 1..10)")
    given = parser.parse_args(words)
    return reproduce(
        __doc__.splitlines()[0],
        {
            "figure 1": DRAWING,
            "figure 2": DRAWING,
            "figure 3": "the scheme of a matrix, without numbers",
            "figure 4": "an image of nuScenes with boxes of YOLOv3, whose detections are not published",
            "figure 5": "an image of nuScenes with its annotations; the data set is for registered users",
            "figure 6": matrix("class", 6),
            "figure 7": matrix("proposition", 7),
            "figure 8": probabilities(given.speeds),
        },
        given.output,
    )


if __name__ == "__main__":
    sys.exit(not main())
