"""Boxes, tables and figures of Wozniak, Segura and Mazo 2024, Robustness assessment (Electronics 13(7), 1368).

What the paper states of its two systems stands in examples/12_robustness_assessment.toml; the boxes follow from it.

  python examples/reproduce/wozniak_2024.py OUTPUT
"""

import sys

from parts import ROOT, options, reproduce, write_figure, write_rows

import verifier
from verifier.robustness.assessment.reader import read_assessment

STATED = ROOT / "examples/12_robustness_assessment.toml"


def main(words=None):
    """Make what can be made."""
    given = options(__doc__.splitlines()[0]).parse_args(words)
    mds, rms = read_assessment(STATED).assessments
    found = verifier.assess(STATED)
    targets = [target for system in found.systems for target in system.targets]

    def frequencies(output):
        rows = [
            [each.label, *(float(share) for share in (each.frequency, each.source_frequency, each.missing))]
            for each in mds.circumstances
        ]
        return write_rows(output / "boxes_1_and_3.csv", ["circumstance", "in use", "in the data", "missing"], rows)

    def significance(output):
        rows = [[each.label, *each.risk.words, int(each.significance)] for each in rms.circumstances if each.risk]
        header = ["circumstance", "exposure", "likelihood", "severity", "significance"]
        return f"{write_rows(output / 'box_2.csv', header, rows)}; {rows[0][0]}: {rows[0][-1]}"

    def transformations(output):
        rows = [[each.label, str(each.transformation)] for each in rms.circumstances if each.transformation]
        return write_rows(output / "box_4.csv", ["circumstance", "transformation"], rows)

    def performance(output):
        measured = targets[0].performance
        rows = [[name, float(value), float(measured[name])] for name, value in mds.source.performance.values.items()]
        return write_rows(output / "box_5.csv", ["metric", "source", "target"], rows)

    def distances(output):
        (sweep,) = rms.sweeps
        rows = [
            [float(setting), float(each.distances["ssim"].similarity), float(each.distances["ssim"].distance)]
            for setting, each in zip(sweep.settings, sweep.targets, strict=True)
        ]
        return write_rows(output / "box_6.csv", ["aberration", "SSIM", "distance"], rows)

    def verdict(output):
        rows = [[*row.values()] for row in found.rows()]
        file = write_rows(output / "box_7.csv", [*next(iter(found.rows()))], rows)
        return f"{file}, {write_figure(found.plot(), output / 'box_7.png')}; {found.verdict.value}"

    scheme = "questions and names of metrics, without numbers"
    return reproduce(
        __doc__.splitlines()[0],
        {
            "box 1": frequencies,
            "box 2": significance,
            "box 3": frequencies,
            "box 4": transformations,
            "box 5": performance,
            "box 6": distances,
            "box 7": verdict,
            **{f"table {number}": scheme for number in (1, 2, 4, 6, 7, 8)},
            "table 3": "circumstances in words; those with numbers are in boxes 1 and 3",
            "table 5": "the scales of exposure, likelihood and severity, which box 2 uses",
            **{f"figure {number}": "a photograph or a drawing" for number in (1, 2, 3, 4, 5)},
            "figure 6": "images of the two companies, which are not published",
        },
        given.output,
    )


if __name__ == "__main__":
    sys.exit(not main())
