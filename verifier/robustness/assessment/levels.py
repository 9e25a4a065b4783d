"""Making the data of every level of a disturbance: mutate, detect, count. See `level_recipe`.

For each level a folder with `annotations.json` and `detections.json` (COCO), and what is asked for of
`confusion_LEVEL.json`, `pairs_LEVEL.csv` and `curves_LEVEL.json`, in the formats that `verify run`, `verify
collision` and `verify robroc` read; with `keep_images` also the images.

* Matrices are counted from the operating point of the detector on, matched as COCO does but with classes left free,
  so that a confusion of classes shows.
* A report has no distance of its own here. As in Pezzementi et al. 2021 (section 6.1.1) it is the median over the
  rows of its rectangle of the median depth of each row, by the depth of the image before it was degraded.
* The trade-off curve is ROC A of the same paper (eqs. 8 and 9): recall against false positives per image, over
  sensitivities that are standardized on the source images and kept.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from verifier.base.arrays import Floats, Ints
from verifier.base.errors import InputError, Place, UsageError, unknown_name
from verifier.base.files import write_bytes, write_text
from verifier.closedloop.closed_loop_curve import standard_sensitivities
from verifier.closedloop.comparison import BASELINE, NamedCurve
from verifier.closedloop.curvefiles import curves_json
from verifier.closedloop.curves import judged_curve
from verifier.closedloop.detection_outcomes import Judged
from verifier.closedloop.roboticizer import Standardizer, localize
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.choices import Filters, count_job, default_measure
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.document import write_confusion
from verifier.perception.confusion.rules import CountingRule
from verifier.perception.detections import ClassMap
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.distances import distance
from verifier.perception.matching import MatchingPolicy, match
from verifier.robustness.adr import AdrSettings, detection_rates, pick_thresholds
from verifier.robustness.assessment.definition import DetectorChoice
from verifier.robustness.assessment.degradation import Degradation, Level
from verifier.robustness.assessment.detected import measured
from verifier.robustness.assessment.follow_up import Progress, changed, no_progress, png_bytes
from verifier.robustness.assessment.level_draws import ADR, drawn_curve, drawn_metrics, weights_of
from verifier.robustness.assessment.level_recipe import Counting, LevelRecipe
from verifier.robustness.assessment.made_files import new_folder, write_coco
from verifier.robustness.assessment.scenes import MovedBoxes, Scenes, by_frame, moved_truth
from verifier.robustness.detection_metrics import TABLE_6, judged
from verifier.robustness.detectors import Detector, Image, run_detector, with_detections
from verifier.robustness.mutators import AnyMutation, Frame, needs_depth

ROC = "roc_a"
KNOWN = ("precision", "recall", *TABLE_6, ADR)
"""The metrics that are measured at every level."""
PLAIN_CAMERA = np.eye(3)
"""Depth alone is asked of the localizer, and no camera changes it."""


@dataclass(frozen=True)
class UnderTest:
    """The detector, opened, with what is known of it from the source images.

    Attributes:
        source: annotations and detections of the source images.
        lowest_score: its operating point; None where every detection counts.
        cache: folder where detections are kept; None for none.
        class_map: from its classes to those of the annotations; None where they have equal names.
    """

    choice: DetectorChoice
    detector: Detector
    source: DetectionSet
    lowest_score: float | None
    cache: Path | None = None
    class_map: ClassMap | None = None


def made_levels(
    asked: Degradation, scenes: Scenes, under_test: UnderTest, folder: Path, progress: Progress = no_progress
) -> Degradation:
    """The degradation with the data of its levels, written below `folder`, which is made.

    Raises:
        InputError: an image cannot be read, does not fit the mutation, or a file cannot be written.
        UsageError: a metric that is not measured here, distances that are not known, a library that is missing.
    """
    recipe = asked.recipe
    if recipe is None:
        raise ValueError("a degradation whose data are given")
    makers = _Makers(asked, recipe, scenes, under_test, weights_of(len(scenes.files), recipe.seed))
    levels = []
    for number, level in enumerate(progress(asked.levels, "levels")):
        own = folder / f"{number:02d}_{asked.parameter_slug}_{level.at:g}"
        new_folder(own)
        levels.append(makers.made(level, own, progress))
    return replace(asked, levels=tuple(levels), recipe=None)


def check_levels(asked: Degradation, scenes: Scenes, policy: MatchingPolicy) -> None:
    """What can be seen before an image is made.

    Raises:
        InputError: objects in no bin.
        UsageError: something is asked for that is not made here, or not from these images.
    """
    for name in asked.allowed_change:
        if name not in KNOWN:
            message, hint = unknown_name("metric", name, KNOWN)
            raise UsageError(f"degradation: {message}\n  hint: {hint}")
    mutations = [asked.recipe.mutation(each.at, each.unchanged) for each in asked.levels if asked.recipe is not None]
    if scenes.depth is None and any(each is not None and needs_depth(each) for each in mutations):
        raise UsageError(
            "degradation: the mutation needs depth\n  hint: depth = { folder = ... } in the table 'source'"
        )
    if asked.trade_off is not None and asked.trade_off.metric != ROC:
        raise UsageError(
            f"degradation: the curve that is made is '{ROC}', and '{asked.trade_off.metric}' is asked for"
        )
    if needs_distances(asked) and (scenes.depth is None or scenes.depth.folder is None):
        raise UsageError(
            "degradation: pairs, and false positives in matrices, need depth maps: how far away does a report lie?\n"
            "  hint: depth = { folder = ... } in the table 'source'"
        )
    counting = None if asked.recipe is None else asked.recipe.counting
    if asked.run is not None and counting is not None and scenes.truth is not None:
        check_counting(scenes.truth, counting, policy)


def needs_distances(asked: Degradation) -> bool:
    """Whether it must be known how far away the detector's reports lie."""
    counting = None if asked.recipe is None else asked.recipe.counting
    counts_alarms = asked.run is not None and counting is not None and counting.unmatched != "drop"
    return counts_alarms or asked.collision is not None


@dataclass(frozen=True)
class _Makers:
    """What makes the data of every level; `weights` (draws, images) of the draws, None for too few images."""

    asked: Degradation
    recipe: LevelRecipe
    scenes: Scenes
    under_test: UnderTest
    weights: Ints | None

    def made(self, level: Level, folder: Path, progress: Progress) -> Level:
        """One level's data in its folder, and the level that names them."""
        mutation = self.recipe.mutation(level.at, level.unchanged)
        moved: list[MovedBoxes] = []
        run = run_detector(
            self.under_test.detector,
            self._images(mutation, folder, moved, progress),
            self.under_test.cache,
        )
        data = with_detections(moved_truth(self.scenes, moved), run, self.under_test.class_map)
        measure = measure_of(self.recipe.counting, data)
        write_coco(folder, data, {each.name: each.size for each in moved}, measure, detected=True)
        found = replace(level, unchanged=False, performance=self._performance(data))
        found = replace(found, drawn=self._drawn(data), images=data.frame_count)
        if self.asked.trade_off is not None:
            curves, drawn = self._curve(data, level, folder / f"curves_{level.at:g}.json")
            found = replace(found, curves=curves, drawn_curve=drawn)
        counted = Filters(lowest_score=self.under_test.lowest_score)(data)
        if needs_distances(self.asked):
            counted = self._localized(counted, mutation)
        if self.asked.run is not None:
            path = folder / f"confusion_{level.at:g}.json"
            found = replace(found, confusion=self._confusion(counted, path, level))
        if self.asked.collision is not None:
            pairs, empty = self._pairs(counted, measure, folder / f"pairs_{level.at:g}.csv")
            found = replace(found, pairs=pairs, without_pairs=empty)
        return found

    def _images(
        self, mutation: AnyMutation | None, folder: Path, moved: list[MovedBoxes], progress: Progress
    ) -> Iterator[Image]:
        """The images of a level, one at a time; where their boxes are is noted in `moved`."""
        for number, name in enumerate(progress(tuple(self.scenes.files), "images")):
            frame = self._frame(number, name, mutation, deep=mutation is not None and needs_depth(mutation))
            own = f"{Path(name).stem}.png"
            moved.append(MovedBoxes.of(own, name, frame))
            if self.recipe.keep_images:
                write_bytes(folder / own, png_bytes(frame.pixels))
            yield Image(own, frame.pixels)

    def _frame(self, number: int, name: str, mutation: AnyMutation | None, *, deep: bool) -> Frame:
        frame = self.scenes.frame(name, deep=deep)
        if mutation is None:
            return frame
        rng = np.random.default_rng([self.recipe.seed, 3, number])
        return changed(frame, mutation, rng, self.scenes.files[name])

    def _performance(self, data: DetectionSet) -> dict[str, Fraction | None]:
        names = tuple(self.asked.allowed_change)
        if not len(data.annotations):  # a mutation can move everything out of the images
            return dict.fromkeys(names)
        choice = self.under_test.choice
        found: dict[str, Fraction | None] = dict(
            measured(data, names, choice.policy, self.under_test.lowest_score).values
        )
        if ADR in names:
            settings = AdrSettings(self.recipe.adr_levels, choice.policy)
            rates = detection_rates(data, pick_thresholds(self.under_test.source, settings), settings)
            found[ADR] = Fraction(sum(rates.found), rates.objects * len(rates.found))
        return {name: found.get(name) for name in names}

    def _drawn(self, data: DetectionSet) -> dict[str, Floats]:
        """The metrics on drawn images."""
        if self.weights is None:
            return {}
        names, source = tuple(self.asked.allowed_change), self.under_test.source
        policy, least = self.under_test.choice.policy, self.under_test.lowest_score
        return drawn_metrics(data, source, names, policy, least, self.recipe.adr_levels, self.weights)

    def _confusion(self, data: DetectionSet, path: Path, level: Level) -> str:
        if self.recipe.counting is None:
            raise ValueError("matrices without bins")  # refused when the degradation was made
        title = f"{self.asked.parameter} {level.at:g} {self.asked.unit}".rstrip()
        write_confusion(matrices_of(data, self.recipe.counting, self.under_test.choice.policy, title), path)
        return str(path.absolute())

    def _localized(self, data: DetectionSet, mutation: AnyMutation | None) -> DetectionSet:
        """The detections with their distances, by the depth of the image before it was degraded."""
        box = data.detections.box_2d
        assert box is not None  # a detector reports rectangles
        away = np.full(len(box), np.nan)
        for name, rows in zip(self.scenes.files, by_frame(data.detections, data.frame_count), strict=True):
            if len(rows):
                away[rows] = localize(self.scenes.moved_depth_m(name, mutation), box[rows], PLAIN_CAMERA)[:, 2]
        return data.change(detections=replace(data.detections, distance_m=away))

    def _pairs(self, data: DetectionSet, measure: str, path: Path) -> tuple[str, bool]:
        """The file of pairs, and whether it holds none."""
        report = match(data, self.under_test.choice.policy).detection_of
        away = distance(data.annotations, measure)
        predicted = np.full(len(report), np.nan)
        predicted[report >= 0] = distance(data.detections, "given")[report[report >= 0]]
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("image", "true_m", "predicted_m", "class"))
        for row, frame in enumerate(data.annotations.frame.tolist()):
            numbers = ("" if np.isnan(each) else repr(float(each)) for each in (away[row], predicted[row]))
            writer.writerow((data.frame_name[frame], *numbers, data.classes[data.annotations.label[row]]))
        write_text(path, stream.getvalue())
        return str(path.absolute()), not (~np.isnan(predicted) & ~np.isnan(away)).any()

    def _curve(self, data: DetectionSet, level: Level, path: Path) -> tuple[str, tuple[Floats, Floats] | None]:
        """The file of the curve, and the curve on drawn images."""
        limit = self.asked.trade_off
        if limit is None:
            raise ValueError("a curve that nobody asked for")
        found = judged(data, self.under_test.choice.policy)
        if not len(found.hit):
            raise InputError(
                f"{self.asked.parameter} {level.at:g}: no annotated object is left in the images, so there is no "
                "trade-off curve",
                Place(str(path.parent)),
                "ask for milder levels, or for no trade_off",
            )
        source = judged(self.under_test.source, self.under_test.choice.policy)
        table = Standardizer.from_validation(source.false, source.images)
        never = found.hit == -np.inf
        hits = np.where(never, np.inf, table(np.where(never, 0.0, found.hit)))
        logs = np.ones(found.images, np.int64)  # every image is a log
        one = Judged(hits, found.hit_frame, table(found.false), found.false_frame, logs)
        most = self.recipe.most_false_positives
        curve = judged_curve(one, self._sensitivities(), most)
        drawn = None if self.weights is None else drawn_curve(one, self._sensitivities(), most, self.weights)
        first = level is self.asked.levels[0]
        condition = BASELINE if first else f"{self.asked.parameter} {level.at:g}"
        write_text(path, curves_json([NamedCurve(ROC, limit.detector, condition, curve)]))
        return str(path.absolute()), drawn

    def _sensitivities(self) -> Floats:
        """As the paper's 100, up to the rate at which efficiency is 0 where that is higher."""
        return standard_sensitivities(highest=max(1.0, self.recipe.most_false_positives))


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


def check_counting(truth: DetectionSet, counting: Counting, policy: MatchingPolicy) -> None:
    """Refuse, before an image is made, what counting the annotations alone refuses.

    Raises:
        InputError, UsageError: as `matrices_of`.
    """
    try:
        matrices_of(truth, counting, policy, "")
    except UsageError as error:
        raise UsageError(str(error) if str(error).startswith("counting: ") else f"counting: {error}") from None
    except InputError as error:
        if error.hint is not None and "--outside" in error.hint:
            raise InputError(error.message, error.place, 'give other edges_m, or outside = "drop"') from None
        raise
