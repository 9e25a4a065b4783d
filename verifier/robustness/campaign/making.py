"""One condition of a campaign: images mutated, put through detectors, localized, counted, written as files.

For each condition a folder with `annotations.json` and `detections.json` (COCO; images, categories and objects have
the ids and file names of the source), and what is asked for of matrices, pairs and a trade-off curve, in the formats
that `verify run`, `verify collision` and `verify robroc` read; with `keep_images` also the images.

* Matrices are counted from the operating point of the detector on, matched as COCO does but with classes left free,
  so that a confusion of classes shows.
* A report has no distance of its own here. As in Pezzementi et al. 2021 (section 6.1.1) it is the median over the
  rows of its rectangle of the median depth of each row, by the depth of the image before it was degraded.
* The trade-off curve is ROC A of the same paper (eqs. 8 and 9): recall against false positives per image, over
  sensitivities that are standardized on the source images and kept.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from verifier.base.arrays import Floats, Ints
from verifier.base.errors import InputError, Place, UsageError
from verifier.base.files import write_text
from verifier.base.numbers import exact_text
from verifier.closedloop.closed_loop_curve import judged_sums, standard_sensitivities
from verifier.closedloop.comparison import NamedCurve
from verifier.closedloop.curvefiles import REMARKS, curves_json, with_remarks
from verifier.closedloop.curves import FPR_MAX
from verifier.closedloop.detection_outcomes import Judged
from verifier.closedloop.logs import Standardizer
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.choices import count_job, default_measure
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.document import write_confusion
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.confusion.sanity import remark, with_sanity
from verifier.perception.detections import ClassMap, keep_scores
from verifier.perception.detections.columns import Boxes, DetectionSet
from verifier.perception.detections.depth import box_depth
from verifier.perception.detections.distances import distance
from verifier.perception.matching import MatchingPolicy, match
from verifier.robustness.adr import LEVELS, AdrSettings, detection_rates, pick_thresholds
from verifier.robustness.campaign.definition import Counting, DetectorChoice, Made
from verifier.robustness.campaign.scenes import Scenes
from verifier.robustness.detection_metrics import TABLE_6, judged, measured
from verifier.robustness.detectors import Detector
from verifier.robustness.draws import ADR, drawn_metrics
from verifier.robustness.mutators import AnyMutation
from verifier.robustness.mutators.annotations import by_frame

ROC = "roc_a"
KNOWN = ("precision", "recall", *TABLE_6, ADR)
"""The metrics that are measured under every condition."""
BY_MEDIAN = "reported distances are median depths of rectangles, of the images before they were degraded"


@dataclass(frozen=True)
class UnderTest:
    """The detector, opened, with what is known of it from the source images.

    Attributes:
        source: annotations and detections of the source images.
        lowest_score: its operating point; None where every detection counts.
        class_map: from its classes to those of the annotations; None where they have equal names.
    """

    choice: DetectorChoice
    detector: Detector
    source: DetectionSet
    lowest_score: float | None
    class_map: ClassMap | None = None


@dataclass(frozen=True)
class Wanted:
    """What is made of what a detector reports.

    Attributes:
        metrics: of `KNOWN`.
        counting: of matrices and pairs; None where neither is made.
        curve: what the detector is called in a trade-off curve; None for no curve.
        weights: (draws, images) of the draws; None for none.
    """

    metrics: tuple[str, ...] = ()
    counting: Counting | None = None
    matrices: bool = False
    pairs: bool = False
    curve: str | None = None
    adr_levels: tuple[float, ...] = LEVELS
    most_false_positives: float = FPR_MAX
    weights: Ints | None = None

    @property
    def distances(self) -> bool:
        """Whether it must be known how far away reports lie."""
        counting = self.counting
        return self.pairs or (self.matrices and counting is not None and counting.unmatched != "drop")


@dataclass(frozen=True)
class Maker:
    """Makes of what one detector reports under a mutation what is wanted."""

    wanted: Wanted
    scenes: Scenes
    under_test: UnderTest

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of the files must know."""
        how = (BY_MEDIAN,) if self.wanted.distances else ()
        return *how, *depth_remarks(self.scenes), *operating_remarks(self.under_test.choice, self.under_test.source)

    def made(
        self, data: DetectionSet, mutation: AnyMutation | None, folder: Path, told: tuple[str, str, str]
    ) -> Made:
        """The files in `folder`, and the numbers.

        Args:
            data: annotations and detections.
            told: title of matrices, name of the condition in a curve, and what stands behind the names of files.
        """
        title, condition, suffix = told
        wanted = self.wanted
        product = Made(performance=self._performance(data), drawn=self._drawn(data))
        if wanted.curve is not None:
            curves, drawn = self._curve(data, condition, folder / f"curves{suffix}.json", title)
            product = replace(product, curves=curves, drawn_curve=drawn)
        least = self.under_test.lowest_score
        counted = data if least is None else keep_scores(data, least)
        if wanted.distances:
            away = localized(self.scenes, counted.detections, mutation)
            counted = counted.change(detections=replace(counted.detections, distance_m=away))
        if wanted.matrices and wanted.counting is not None:
            path = folder / f"confusion{suffix}.json"
            counts = matrices_of(counted, wanted.counting, self.under_test.choice.policy, title)
            write_confusion(with_sanity(counts, [remark("campaign", name) for name in self.remarks]), path)
            product = replace(product, confusion=str(path.absolute()))
        if wanted.pairs:
            measure = measure_of(wanted.counting, data)
            pairs, empty = self._pairs(counted, measure, folder / f"pairs{suffix}.csv")
            product = replace(product, pairs=pairs, without_pairs=empty)
        return product

    def _performance(self, data: DetectionSet) -> dict[str, Fraction | None]:
        names = self.wanted.metrics
        if not len(data.annotations):  # a mutation can move everything out of the images
            return dict.fromkeys(names)
        choice = self.under_test.choice
        performance = dict(measured(data, names, choice.policy, self.under_test.lowest_score).values)
        if ADR in names:
            settings = AdrSettings(self.wanted.adr_levels, choice.policy)
            rates = detection_rates(data, pick_thresholds(self.under_test.source, settings), settings)
            performance[ADR] = Fraction(sum(rates.hits), rates.objects * len(rates.hits))
        return {name: performance.get(name) for name in names}

    def _drawn(self, data: DetectionSet) -> dict[str, Floats]:
        """The metrics on drawn images."""
        if self.wanted.weights is None:
            return {}
        choice, least = self.under_test.choice, self.under_test.lowest_score
        how = choice.policy, least, self.wanted.adr_levels, self.wanted.weights
        return drawn_metrics(data, self.under_test.source, self.wanted.metrics, *how)

    def _pairs(self, data: DetectionSet, measure: str, path: Path) -> tuple[str, bool]:
        """The file of pairs, and whether it holds none."""
        report = match(data, self.under_test.choice.policy).detection_of
        away = distance(data.annotations, measure)
        predicted = np.full(len(report), np.nan)
        predicted[report >= 0] = distance(data.detections, "given")[report[report >= 0]]
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("image", "true_m", "predicted_m", "class", *([REMARKS] if self.remarks else [])))
        rows = []
        for row, frame in enumerate(data.annotations.frame.tolist()):
            numbers = ("" if np.isnan(number) else repr(float(number)) for number in (away[row], predicted[row]))
            rows.append([data.frame_name[frame], *numbers, data.classes[data.annotations.label[row]]])
        writer.writerows(with_remarks(rows, self.remarks))
        write_text(path, stream.getvalue())
        return str(path.absolute()), not (~np.isnan(predicted) & ~np.isnan(away)).any()

    def _curve(
        self, data: DetectionSet, condition: str, path: Path, about: str
    ) -> tuple[str, tuple[Floats, Floats] | None]:
        """The file of the curve, and the curve on drawn images."""
        judgement = judged(data, self.under_test.choice.policy)
        if not len(judgement.hit):
            raise InputError(
                f"{about}: no annotated object is left in the images, so there is no trade-off curve",
                Place(str(path.parent)),
                "ask for milder levels, or for no trade_off",
            )
        source = judged(self.under_test.source, self.under_test.choice.policy)
        table = Standardizer.from_validation(source.false, source.images)
        never = judgement.hit == -np.inf
        hits = np.where(never, np.inf, table(np.where(never, 0.0, judgement.hit)))
        logs = np.ones(judgement.images, np.int64)  # every image is a log
        one = Judged(hits, judgement.hit_frame, table(judgement.false), judgement.false_frame, logs)
        most, weights = self.wanted.most_false_positives, self.wanted.weights
        # As the paper's 100, up to the rate at which efficiency is 0 where that is higher.
        sensitivities = standard_sensitivities(highest=max(1.0, most))
        sums = judged_sums(one, sensitivities, np.ones(judgement.images, np.bool_), most)
        named = NamedCurve(ROC, self.wanted.curve or "", condition, sums.curve)
        write_text(path, curves_json([named], "", self.remarks))
        return str(path.absolute()), None if weights is None else sums.drawn(weights.astype(float))


def localized(scenes: Scenes, boxes: Boxes, mutation: AnyMutation | None) -> Floats:
    """(n,) depth in metres of rectangles, by that of the image before it was degraded; NaN where it is not known."""
    box, away = boxes.box_2d, np.full(len(boxes), np.nan)
    if not len(boxes):  # nothing is reported, as in dense haze
        return away
    assert box is not None  # a detector reports rectangles
    for name, rows in zip(scenes.files, by_frame(boxes, len(scenes.files)), strict=True):
        if len(rows):
            depth = scenes.moved_depth_m(name, mutation)
            away[rows] = [box_depth(depth, one) for one in box[rows]]
    return away


def depth_remarks(scenes: Scenes) -> Iterator[str]:
    """Where depths were not measured."""
    depth = scenes.depth
    if depth is not None and depth.folder is None:
        yield f"every pixel was assumed to be {depth.constant_m:g} m away: haze and defocus are the same everywhere"
    if depth is not None and depth.densify is not None:
        yield f"depths between those that are known were filled in by the method '{depth.densify}'"


def operating_remarks(choice: DetectorChoice, source: DetectionSet) -> Iterator[str]:
    """Where the source images do not settle the operating point that is asked for."""
    rate, images = choice.false_positives_per_image, source.frame_count
    if rate is None:
        return
    if rate * images < 1:
        yield (
            f"operating point: {exact_text(rate)} false positives per image cannot be distinguished from none with "
            f"{images} source images; the score is that above that of every false positive"
        )
    if choice.threshold(source) is None:
        yield (
            f"operating point: with all that it reports on the source images the detector has no more than "
            f"{exact_text(rate)} false positives per image, so every detection counts; it would have more if it "
            "were set to report lower scores"
        )


def measure_of(counting: Counting | None, data: DetectionSet) -> str:
    """The measure of distance; UsageError where no annotation has a distance by it."""
    measure = (None if counting is None else counting.measure) or default_measure(data)
    if counting is not None and len(data.annotations) and np.isnan(distance(data.annotations, measure)).all():
        raise UsageError(
            f"counting: the annotations have no distance by the measure '{measure}'\n"
            "  hint: name distance_field, or annotations with boxes in space"
        )
    return measure


def matrices_of(data: DetectionSet, counting: Counting, policy: MatchingPolicy, title: str) -> ConfusionCounts:
    """The matrices of detections that count; matched without regard to classes, so that a confusion of them shows.

    Raises:
        InputError, UsageError: distances that are not known, objects in no bin, classes without a column.
    """
    measure = measure_of(counting, data)
    if (
        counting.unmatched != "drop"
    ):  # a false positive lies where the localizer says, an object where it is annotated
        away = distance(data.annotations, measure)
        data = data.change(
            annotations=replace(data.annotations, distance_m=away),
            origin={**data.origin, "distances": {"annotations": measure, "detections": "depth of the image"}},
        )
        measure = "given"
    rule = CountingRule(
        counting.labelling,
        counting.classes or data.classes,
        Bins(counting.edges_m),
        measure,
        counting.unmatched,
        counting.unmatched,
        counting.outside,
    )
    return count_job(data, replace(policy, class_aware=False), rule, title)[0]
