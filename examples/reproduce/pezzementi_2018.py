"""Tables and figures of Pezzementi et al. 2018, Putting image manipulations in context (IEEE SSRR 2018).

Table IV, as printed, stands in average_detection_rates.json beside this file; the regressions of figures 7 and 8
follow from it. Figures 1 to 3 are made of any images, those by depth with depth maps FRAME.npy in metres.

  python examples/reproduce/pezzementi_2018.py OUTPUT [--images FOLDER [--depth FOLDER]]
"""

import json
import sys
from pathlib import Path

from parts import mutated, options, reproduce, write_figure, write_rows

from verifier.robustness.prediction import AdrTable, predict
from verifier.telling.figures.drawing import subplots

PUBLISHED = Path(__file__).with_name("average_detection_rates.json")
DATA = "the agricultural images of NREC with eight detectors, whose detections are not published"
FOCAL_M, F_NUMBER, PIXEL_M = 2.5e-3, 1.4, 1.24e-6  # the camera of table III
SIMPLE = [
    "gaussian_blur:sigma_px=3", "brightness:factor=2", "alpha_blend:alpha=0.5", "jpeg:quality=10",
    "salt_and_pepper:share=0.05", "channel_dropout:channel=Cb",
    "additive_noise:constant_sd=15,signal_sd=0.5,exponent=0.5",
]  # fmt: skip
HAZE = [f"haze:visibility_m={each}" for each in (978, 326, 97.8)]
DEFOCUS = [f"defocus:kappa_m_px={kappa},focus_m={focus}" for kappa in (2.0, 3.6) for focus in (1, 2, 5, 10)]


def read_published():
    """The table of average detection rates, with the baseline that its column demands; and its families."""
    told = json.loads(PUBLISHED.read_text())
    families = {name: rates for name, rates in told.items() if isinstance(rates, dict)}
    rows = {name: rates for family in families.values() for name, rates in family.items()}
    table = AdrTable(tuple(told["detectors"]), told["baseline"], tuple(rows), list(rows.values()))
    return table.with_baseline("Deformable R-FCN", 0.63), {name: [*family] for name, family in families.items()}


def camera(output):
    """Table III: the camera constant, which is f^2 / (N gamma) in metres times pixels."""
    kappa = FOCAL_M**2 / (F_NUMBER * PIXEL_M)
    rows = [["focal length (m)", FOCAL_M], ["f-number", F_NUMBER], ["pixel (m)", PIXEL_M], ["kappa (m px)", kappa]]
    return f"{write_rows(output / 'table_3.csv', ['parameter', 'value'], rows)}, kappa = {kappa:.3f} m px"


def parameters(output):
    """Table II: scattering coefficients of haze with their visibilities, 3.912 / beta."""
    rows = [[beta, 3.912 / beta] for beta in (0.04, 0.012, 0.004)]
    return write_rows(output / "table_2.csv", ["beta (1/m)", "visibility (m)"], rows)


def regressions(output):
    """Figure 7: defocus predicted from blur, and haze from alpha blend, for each detector from all others."""
    table, families = read_published()
    figure, axes = subplots(1, 2, figsize=(9, 4))
    rows, told = [], []
    for axis, target, simple in zip(axes, ("defocus", "haze"), ("gaussian_blur", "alpha_blend"), strict=True):
        found = predict(table, families[target], families[simple])
        for name, observed, predicted in zip(found.detectors, found.observed.T, found.predicted.T, strict=True):
            axis.plot(observed, predicted, "o", markersize=3, label=name)
            rows.append([target, name, round(found.r_squared[name], 3)])
        axis.plot([0, 1.1], [0, 1.1], color="0.6", linewidth=0.8)
        axis.set(xlabel="observed", ylabel="predicted", title=f"{target} from {simple}")
        told.append(f"{target} R^2 = {found.pooled_r_squared:.3f}")
    axes[1].legend(fontsize="x-small")
    files = [write_figure(figure, output / "figure_7.png")]
    files.append(write_rows(output / "figure_7.csv", ["predicted", "detector", "R^2"], rows))
    return f"{', '.join(files)}; {', '.join(told)}"


def weights(output):
    """Figure 8: the weights of the blurs with which defocus is predicted, and of alpha blends for haze."""
    table, families = read_published()
    rows = []
    for target, simple in (("defocus", "gaussian_blur"), ("haze", "alpha_blend")):
        found = predict(table, families[target], families[simple])
        for name, own in zip(found.targets, found.weights_of_all.round(3).tolist(), strict=True):
            rows += [[name, feature, weight] for feature, weight in zip(found.features, own, strict=True)]
    return write_rows(output / "figure_8.csv", ["predicted", "from", "weight"], rows)


def main(words=None):
    """Make what can be made."""
    more = {"images": "folder of images", "depth": "folder of their depth maps"}
    given = options(__doc__.splitlines()[0], **more).parse_args(words)

    def pictures(number, mutations, by_depth):
        if given.images is None or (by_depth and given.depth is None):
            return f"needs --images FOLDER{' and --depth FOLDER' if by_depth else ''}; the paper's images are NREC's"
        depth = given.depth if by_depth else None
        return lambda output: mutated(given.images, depth, mutations, output / f"figure_{number}")

    return reproduce(
        __doc__.splitlines()[0],
        {
            "table I": "a list of detectors, without numbers",
            "table II": parameters,
            "table III": camera,
            "table IV": f"needs {DATA}; its numbers as printed are in {PUBLISHED.name}",
            "figure 1": pictures(1, SIMPLE, False),
            "figure 2": pictures(2, HAZE, True),
            "figure 3": pictures(3, DEFOCUS, True),
            "figure 4": f"needs {DATA}",
            "figure 5": f"needs {DATA}",
            "figure 6": f"needs {DATA}",
            "figure 7": regressions,
            "figure 8": weights,
        },
        given.output,
    )


if __name__ == "__main__":
    sys.exit(not main())
