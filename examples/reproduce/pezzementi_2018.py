"""Tables and figures of Pezzementi et al. 2018, Putting image manipulations in context (IEEE SSRR 2018).

Table IV, as printed, stands in average_detection_rates.json beside this file; the regressions of figures 7 and 8
follow from it. Figures 1 to 3 are made of any images, those by depth with depth maps FRAME.npy in metres. With
annotations (COCO) and a folder of detections DETECTOR.json and DETECTOR@MUTATION.json (mutations as verify mutate
names them or their folders) table IV and figures 4 to 6 are made of these. The distributions of figure 8 need
annotations, images and depth maps.

  python examples/reproduce/pezzementi_2018.py OUTPUT [--images FOLDER [--depth FOLDER]]
                                                      [--annotations FILE --detections FOLDER]
"""

import json
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from parts import mutated, options, reproduce, write_figure, write_rows
from PIL import Image

from verifier.robustness.campaign.definition import AnnotationFiles, DataFiles
from verifier.robustness.campaign.result import EDGES, magnitudes
from verifier.robustness.campaign.scenes import open_scenes
from verifier.robustness.mutators import Frame, apply, needs_depth
from verifier.robustness.mutators.batch_result import folder_name
from verifier.robustness.mutators.frames import DepthSource
from verifier.robustness.mutators.mutation import generator_for
from verifier.robustness.mutators.sweeps import published
from verifier.robustness.prediction import AdrTable, predict
from verifier.robustness.rates import adr_result
from verifier.robustness.settings import RatesSettings
from verifier.telling.figures.drawing import plain, subplots
from verifier.telling.figures.robustness import curves_figure, share_grid

PUBLISHED = Path(__file__).with_name("average_detection_rates.json")
NO_DATA = "no data"
MOST_PICTURES = 6
DATA = "--annotations FILE and --detections FOLDER; the paper's images of NREC and its detections are not published"
FOCAL_M, F_NUMBER, PIXEL_M = 2.5e-3, 1.4, 1.24e-6  # the camera of table III
SIMPLE = [
    "gaussian_blur:sigma_px=3", "brightness:factor=2", "alpha_blend:alpha=0.5", "jpeg:quality=10",
    "salt_and_pepper:share=0.05", "channel_dropout:channel=Cb",
    "additive_noise:constant_sd=15,signal_sd=0.5,exponent=0.5",
]  # fmt: skip
PREDICTED = {"defocus": "gaussian_blur", "haze": "alpha_blend"}
MAGNITUDES = {"defocus": ("sigma_px", " px"), "haze": ("alpha", "")}
DEFOCUS_AND_HAZE = [each for each in published("published-2018") if each.steps[0].name in PREDICTED]
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
    figure, axes = subplots(1, 2, figsize=(9, 4), layout="constrained")
    rows, told = [], []
    for axis, (target, simple) in zip(axes, PREDICTED.items(), strict=True):
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


def weights(pixels=None):
    """Figure 8: the weights of the blurs with which defocus is predicted, and of alpha blends for haze; below them
    the shares of the pixels in objects' rectangles by the blur or blend that they get, by `pixels` (condition)."""
    table, families = read_published()
    known = {each.condition: each for each in pixels or ()}

    def make(output):
        rows, shares, none = [], [], 0
        figure, axes = subplots(2, 2, figsize=(9.5, 7.2), layout="constrained")
        for (above, below), (target, simple) in zip(axes.T, PREDICTED.items(), strict=True):
            found = predict(table, families[target], families[simple])
            told = found.weights_of_all.round(3).tolist()
            for name, own in zip(found.targets, told, strict=True):
                rows += [[name, feature, weight] for feature, weight in zip(found.features, own, strict=True)]
            texts = [[f"{each:.2f}" if each else "" for each in own] for own in told]
            share_grid(above, np.array(told), texts, found.targets, found.features)
            above.set_title(f"weights of {target} from {simple.replace('_', ' ')}", fontsize="small")
            parameter, unit = MAGNITUDES[target]
            edges = EDGES[parameter]
            bins = [f"{low:.2g}-{high:.2g}{unit}" for low, high in pairwise(edges)]
            of_target = [each for each in DEFOCUS_AND_HAZE if each.steps[0].name == target]
            measured = [known.get(folder_name(each)) for each in of_target]
            none += sum(each is None for each in measured)
            values = [[np.nan] * len(bins) if each is None else list(each.shares) for each in measured]
            texts = [[f"{share:.2f}" if share else "" for share in own] for own in values]
            for each, text in zip(measured, texts, strict=True):
                if each is None:  # once in a row, where there is room
                    text[:] = [NO_DATA if at == len(bins) // 2 else "" for at in range(len(bins))]
            shares += [
                [name, each, NO_DATA if np.isnan(share) else round(share, 4)]
                for name, own in zip(found.targets, values, strict=True)
                for each, share in zip(bins, own, strict=True)
            ]
            share_grid(below, np.array(values), texts, found.targets, bins)
            below.set_title(f"share of the pixels of people, by {parameter.partition('_')[0]}", fontsize="small")
        files = [write_rows(output / "figure_8.csv", ["predicted", "from", "weight"], rows)]
        files += [write_rows(output / "figure_8_pixels.csv", ["mutation", "magnitude", "share of pixels"], shares)]
        told = f"; distributions: {NO_DATA} for {none} of {len(DEFOCUS_AND_HAZE)} mutations" if none else ""
        lacking = "" if pixels is not None else ", they need --images, --depth and --annotations"
        return f"{', '.join(files)}, {write_figure(figure, output / 'figure_8.png')}{told}{lacking}"

    return make


def pixels_of(annotations, images, depth):
    """The magnitudes of blur and blend that defocus and haze have in the rectangles of the annotations."""
    source = DataFiles(str(images), depth=DepthSource(depth), annotations=AnnotationFiles("coco", str(annotations)))
    scenes = open_scenes(source, Path.cwd(), "--images")
    return list(magnitudes(scenes, {folder_name(each): each for each in DEFOCUS_AND_HAZE}))


def rates_of(annotations, folder):
    """What verify adr says of the detections of a folder; its conditions by the text of their mutation."""
    texts = {name: each.text for each in published("published-2018") for name in (each.text, folder_name(each))}
    files = {path.stem: path for path in sorted(folder.glob("*.json"))}
    named = tuple(f"{name}={path}" for name, path in files.items())
    choices = RatesSettings(format="coco", annotations=(str(annotations),), detections=named, objects="objects.csv")
    found = adr_result(choices)  # which writes no file
    called = {each: texts.get(each, each) for each in found.conditions}
    parts = {
        part: tuple(replace(each, condition=called[each.condition]) for each in getattr(found, part))
        for part in ("rates", "required")
    }
    return replace(found, conditions=tuple(called.values()), **parts)


def sheet(output, rows, detectors, rates, baseline):
    """Table IV: ADR by mutation and detector, coloured by the share of the baseline; what is not there says so."""
    texts = [[NO_DATA if value is None else f"{value:.2f}" for value in each] for each in rates]
    shares = [
        [np.nan if value is None or not whole else value / whole for value, whole in zip(each, baseline, strict=True)]
        for each in rates
    ]
    figure, axes = subplots(figsize=(4.2 + 0.62 * len(detectors), 0.2 * len(rows) + 1.6), layout="constrained")
    drawn = share_grid(axes, np.array(shares, float), texts, rows, detectors)
    figure.colorbar(drawn, ax=axes, label="ADR / ADR of the baseline", aspect=40)
    table = [[row, *each] for row, each in zip(rows, texts, strict=True)]
    file = write_rows(output / "table_4.csv", ["mutation", *detectors], table)
    return f"{file}, {write_figure(figure, output / 'table_4.png')}"


def as_printed(output):
    """Table IV from the numbers of the paper."""
    table, families = read_published()
    rows = [f"{family}: {name}" for family, names in families.items() for name in names]
    told = sheet(output, ["baseline", *rows], table.detectors, [table.baseline, *table.adr], table.baseline)
    return f"{told}, as printed, with 0.63 for the baseline of Deformable R-FCN"


def measured(found):
    """Table IV of detections of one's own, in the paper's order, other conditions after that."""
    every = dict.fromkeys(["baseline", *(each.text for each in published("published-2018")), *found.conditions])

    def make(output):
        cells = {(each.condition, each.detector): each.adr for each in found.rates}
        rates = [[cells.get((row, name)) for name in found.detectors] for row in every]
        none = sum(value is None for each in rates for value in each)
        told = sheet(output, list(every), found.detectors, rates, rates[0])
        return f"{told}; {NO_DATA} for {none} of {len(every) * len(found.detectors)} cells"

    return make


def missed(found, number, conditions):
    """Figures 4 and 5: miss rate against false positives per image."""
    chosen = [each for each in conditions if each in found.conditions]
    if not chosen:
        return f"{NO_DATA} of {conditions[0]} and the like"

    def make(output):
        figure = curves_figure(replace(found, conditions=tuple(chosen)))
        lacking = len(conditions) - len(chosen)
        told = f"; {NO_DATA} of {lacking} of {len(conditions)} conditions" if lacking else ""
        return f"{write_figure(figure, output / f'figure_{number}.png')}{told}"

    return make


def changed(found, annotations, images, depth):
    """Figure 6: the objects whose required rate of false positives per image grows most, before and after."""
    texts = {each.text: each for each in published("published-2018") if depth is not None or not needs_depth(each)}
    lowest = min(1 / (2 * row.images) for row in found.rates)  # stands for a rate of 0
    grown = [
        (np.log10(max(each.after, lowest) / max(each.before, lowest)), each)
        for each in found.required
        if each.condition in texts and None not in (each.before, each.after) and each.after > each.before
    ]
    grown = sorted(grown, key=lambda pair: -pair[0])[:MOST_PICTURES]
    if not grown:
        return f"{NO_DATA}: no object whose required rate grows under a mutation that can be made"
    boxes = {str(each["id"]): each["bbox"] for each in json.loads(Path(annotations).read_text())["annotations"]}

    def make(output):
        figure, axes = subplots(len(grown), 2, figsize=(7.2, 2.4 * len(grown)), squeeze=False, layout="constrained")
        for (before, after), (orders, each) in zip(axes, grown, strict=True):
            stem = Path(each.image).stem
            pixels = np.asarray(Image.open(images / each.image).convert("RGB"))
            frame = Frame(pixels, np.load(depth / f"{stem}.npy") if needs_depth(texts[each.condition]) else None)
            made = apply(texts[each.condition], frame, generator_for(0, stem, texts[each.condition])).pixels
            for axis, picture, name, rate in (
                (before, pixels, "as taken", each.before),
                (after, made, each.condition, each.after),
            ):
                left, top, width, height = boxes[each.object]
                axis.imshow(picture)
                axis.plot(
                    left + np.array([0, 1, 1, 0, 0]) * width, top + np.array([0, 0, 1, 1, 0]) * height, "#e69f00"
                )
                axis.set_title(f"{plain(name)}: {rate:.3g} per image", fontsize="small")
                axis.set_axis_off()
            before.text(0, 1.18, plain(f"{each.detector}, {each.image}: {orders:.1f} orders of magnitude"),
                        transform=before.transAxes, fontsize="small", fontweight="bold")  # fmt: skip
        return f"{write_figure(figure, output / 'figure_6.png')}, {len(grown)} objects"

    return make


def main(words=None):
    """Make what can be made."""
    more = {
        "images": "folder of images",
        "depth": "folder of their depth maps",
        "annotations": "ground truth of the images (COCO)",
        "detections": "folder of detections DETECTOR.json and DETECTOR@MUTATION.json",
    }
    given = options(__doc__.splitlines()[0], **more).parse_args(words)
    found = None
    if given.annotations is not None and given.detections is not None:
        found = rates_of(given.annotations, given.detections)

    def pictures(number, mutations, by_depth):
        if given.images is None or (by_depth and given.depth is None):
            return f"needs --images FOLDER{' and --depth FOLDER' if by_depth else ''}; the paper's images are NREC's"
        depth = given.depth if by_depth else None
        return lambda output: mutated(given.images, depth, mutations, output / f"figure_{number}")

    pixels, here = None, (given.annotations, given.images, given.depth)
    if None not in here:
        pixels = pixels_of(*(each.absolute() for each in here))
    needed = f"needs {DATA}"
    figure_6 = f"{needed}, and --images FOLDER"
    if found is not None and given.images is not None:
        figure_6 = changed(found, given.annotations, given.images, given.depth)
    blurred = [f"defocus:kappa_m_px=3.6,focus_m={focus}" for focus in (10, 5, 2, 1)]
    return reproduce(
        __doc__.splitlines()[0],
        {
            "table I": "a list of detectors, without numbers",
            "table II": parameters,
            "table III": camera,
            "table IV": as_printed if found is None else measured(found),
            "figure 1": pictures(1, SIMPLE, False),
            "figure 2": pictures(2, HAZE, True),
            "figure 3": pictures(3, DEFOCUS, True),
            "figure 4": needed if found is None else missed(found, 4, ["baseline"]),
            "figure 5": needed if found is None else missed(found, 5, blurred),
            "figure 6": figure_6,
            "figure 7": regressions,
            "figure 8": weights(pixels),
        },
        given.output,
    )


if __name__ == "__main__":
    sys.exit(not main())
