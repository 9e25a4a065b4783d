"""From an assessment file to its data: follow-up images, detections on source and target, and degraded levels.

    source images -> plan -> follow-up images -> detector on both -> performance
                  -> mutated at every level   -> detector         -> matrices, pairs, curves

Everything lies below one folder, which is new or empty. The follow-up images are one PNG per planned image,
`000017_NAME.png` for number 17 from the source image NAME, and `pairs.csv` is written last: a folder that has it is
complete.

    SYSTEM/source/       annotations.json, detections.json
    SYSTEM/follow_up/    000000_NAME.png ..., pairs.csv, annotations.json, detections.json
    SYSTEM/levels/NN_PARAMETER_LEVEL/     see `levels`

Equal files, images and seeds give equal bytes; with a cache of detections a run that was stopped is soon caught up.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from verifier.base.blocks import Pool
from verifier.base.errors import InputError, Place, UsageError
from verifier.base.files import write_bytes, write_text
from verifier.perception.confusion.choices import default_measure
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.depth import depth_file
from verifier.robustness.adr import AdrSettings, pick_thresholds
from verifier.robustness.assessment.circumstances import Circumstance
from verifier.robustness.assessment.datasets import PAIRS_FILE
from verifier.robustness.assessment.definition import Assessment, DataSet, changed
from verifier.robustness.assessment.degradation import Degradation
from verifier.robustness.assessment.document import MadeHere
from verifier.robustness.assessment.levels import check_levels, made_levels, wanted_of
from verifier.robustness.assessment.plan import Plan, PlannedImage
from verifier.robustness.brackets import gaps
from verifier.robustness.campaign.definition import DataFiles, DetectorChoice
from verifier.robustness.campaign.detecting import check_detector, check_places
from verifier.robustness.campaign.looking import (
    Condition,
    Looking,
    Opened,
    Progress,
    Sources,
    check_new,
    check_outside,
    mutated_frame,
    new_folder,
    no_progress,
)
from verifier.robustness.campaign.making import UnderTest, depth_remarks, operating_remarks
from verifier.robustness.campaign.scenes import Scenes, open_scenes
from verifier.robustness.detection_metrics import measured
from verifier.robustness.detectors import Detector, Image, read_image, run_detector, with_detections
from verifier.robustness.detectors.run import identity_digest
from verifier.robustness.draws import ADR
from verifier.robustness.mutators import MUTATORS, Composition, Frame, needs_depth
from verifier.robustness.mutators.annotations import MovedBoxes, write_coco
from verifier.robustness.mutators.batch import png_bytes
from verifier.robustness.rates import threshold_remarks
from verifier.study.results import RunResult

FOLLOW_UP = "follow-up"
"""What the target data set that is made is called."""
DEFINED = "choose metrics that are defined where nothing is detected, such as recall and AP"
_AS_FOLDER = re.compile(r"[A-Za-z0-9_-]+\Z")


@dataclass(frozen=True)
class Workshop:
    """Where data are made.

    Attributes:
        target: the folder of one system; made here.
        cache: a folder where detections are kept, None for none.
        progress: for progress bars.
        detector: takes the place of the one that the file names, for detectors that no file can name.
        refine: levels of a degradation that are made beside those of the file, where criteria break; at most.
        runs: of requirements, by the file of their matrices: what a level gave is not checked again.
        pool: who looks at images.
    """

    target: Path
    cache: Path | None = None
    progress: Progress = no_progress
    detector: Detector | None = None
    refine: int = 0
    runs: dict[str, RunResult] = field(default_factory=dict)
    pool: Pool = field(default_factory=Pool)


def check_made(assessment: Assessment, plan: Plan | None, folder: Path, target: Path | None = None) -> Scenes:
    """The source images, if everything can be made of them, as far as that can be seen beforehand.

    Args:
        assessment: what is asked for.
        plan: of the follow-up images; None for none.
        folder: where paths of the assessment start from.
        target: where data will be made; None where it is new for sure.

    Raises:
        InputError: files that cannot be read or do not belong together.
        UsageError: nothing to make, or something that cannot be made.
    """
    asked, recipe = assessment.degradation, assessment.recipe
    if plan is None and recipe is None and assessment.detector is None:
        raise UsageError(f"{assessment.key}: nothing to make: no follow-up, no detector, no levels of a degradation")
    if not _AS_FOLDER.match(assessment.key):
        raise UsageError(f"{assessment.key}: the name of a system is that of its folder: letters, digits, _ and -")
    if target is not None:
        _check_target(target, assessment, folder)
    if plan is not None:
        check_complete(assessment.circumstances)
        if any(target.name == FOLLOW_UP for target in assessment.all_targets()):
            raise UsageError(f"{assessment.key}: a target is called '{FOLLOW_UP}', as the one that is made")
    if recipe is not None and assessment.detector is None:
        raise UsageError(
            f"{assessment.key}: the levels of a degradation are made with a detector: its table 'detector'"
        )
    scenes = open_scenes(assessment.source.files, folder, assessment.key)
    if assessment.source.files.annotations is not None:
        check_places(scenes, assessment.source.files.annotations, folder)
    if assessment.detector is not None:
        check_detector(assessment.detector, scenes, folder)
        if asked is not None and recipe is not None:
            check_levels(asked, scenes, assessment.detector.policy)
    _check_depth_files(assessment, plan, scenes)
    return scenes


def make(
    assessment: Assessment, plan: Plan | None, scenes: Scenes, folder: Path, workshop: Workshop
) -> tuple[Assessment, MadeHere, tuple[str, ...]]:
    """Make what the assessment asks for.

    Args:
        assessment: as `check_made` has checked it.
        plan: of the follow-up images; None for none.
        scenes: the source images.
        folder: where paths of the assessment start from.
        workshop: where to, and how.

    Returns:
        The assessment with performance, a target data set and levels in place of how to make them; what was made; and
        what a reader must know of it.

    Raises:
        InputError: an image cannot be read or does not fit its mutation, or a file cannot be written (disk full);
            what was written until then is whole.
        UsageError: a metric that is not measured, or a library that is missing.
    """
    new_folder(workshop.target)
    choice, under_test, looking = assessment.detector, None, None
    if choice is not None:
        under_test, looking = _on_source(assessment, choice, scenes, folder, workshop)
    made = assessment
    if under_test is not None:
        metrics = assessment.metrics or ("precision", "recall")
        source = _performed(made.source, under_test.source, under_test, metrics)
        made = changed(made, DEFINED, metrics=metrics, source=source)
    images = 0
    if plan is not None:
        target, images = _follow_up(made, plan, scenes, under_test, workshop)
        made = changed(made, DEFINED, targets=(*made.targets, target))
    asked = made.degradation
    if asked is not None and asked.recipe is not None and under_test is not None and looking is not None:
        levels = workshop.target / "levels"

        def wanted(done: Degradation) -> dict[tuple[float, float], float]:
            from verifier.robustness.assessment.criteria import criteria_of  # Storm is loaded where it is asked

            levels = [level.at for level in done.levels]
            judged = criteria_of(done, folder, runs=workshop.runs)
            widths = (gaps(one, levels, done.scale) for one in judged.criteria)
            return {gap: width for entry in widths for gap, width in entry.items()}

        refine = (workshop.refine, wanted) if workshop.refine else None
        done = made_levels(asked, looking, under_test, levels, workshop.cache, refine)
        made = changed(made, DEFINED, degradation=done)
    identity = None if under_test is None else MappingProxyType(dict(under_test.detector.identity))
    made_here = MadeHere(identity, None if under_test is None else under_test.lowest_score, images)
    return made, made_here, tuple(_remarks(assessment, scenes, plan, under_test))


def _remarks(
    assessment: Assessment, scenes: Scenes, plan: Plan | None, under_test: UnderTest | None
) -> Iterator[str]:
    yield from depth_remarks(scenes)
    if plan is not None and under_test is not None:
        made = {one.mutation for image in plan.images for one in image.transformations}
        if "rotation" in made:
            yield (
                "in images that were turned, a box is the smallest upright one around the turned corners, larger "
                "than the object: part of what IoU and AP lose there is the box's, not the detector's"
            )
        if any(MUTATORS[name].moves for name in made):
            yield "what left the image is no object there; what its edge cuts still counts, however little is left"
    if under_test is not None:
        yield from operating_remarks(under_test.choice, under_test.source)
    asked, recipe = assessment.degradation, assessment.recipe
    if asked is not None and recipe is not None and ADR in asked.allowed_change and under_test is not None:
        settings = AdrSettings(recipe.adr_levels, under_test.choice.policy)
        yield from threshold_remarks(pick_thresholds(under_test.source, settings))


def _on_source(
    assessment: Assessment, choice: DetectorChoice, scenes: Scenes, folder: Path, workshop: Workshop
) -> tuple[UnderTest, Looking]:
    """The detector on the images as they were taken, and what goes on to look."""
    detector, class_map = workshop.detector or choice.opened(folder), choice.mapped(folder)
    new_folder(workshop.target / "source")
    sources = None
    if workshop.detector is None:  # one that no file names is here alone
        given, identities = assessment.source.files, (identity_digest(detector.identity),)
        sources = Sources(given, folder, assessment.key, (choice,), identities)
    looking = Looking(Opened(scenes, (detector,)), class_map, sources, workshop.pool, workshop.progress)
    data = looking.at(Condition(None, 0, workshop.cache), workshop.target / "source")
    return UnderTest(choice, detector, data, choice.threshold(data), class_map), looking


def _follow_up(
    assessment: Assessment, plan: Plan, scenes: Scenes, under_test: UnderTest | None, workshop: Workshop
) -> tuple[DataSet, int]:
    """The target data set: its images, and what the detector makes of them, read back from their files."""
    folder = workshop.target / "follow_up"
    moved = make_follow_up(plan, scenes, folder, workshop.progress)
    names = tuple(share.circumstance for share in plan.summary.shares if share.images)
    target = DataSet(FOLLOW_UP, names, files=DataFiles(images=str(folder.absolute())))
    if scenes.annotated is None:
        return target, len(moved)
    truth = scenes.annotated.moved(moved)
    if under_test is None:
        _write(folder, truth, moved, detected=False)
        return target, len(moved)
    images = (Image(name.name, read_image(folder / name.name).pixels) for name in workshop.progress(moved, "images"))
    run = run_detector(under_test.detector, images, workshop.cache)
    data = with_detections(truth, run, under_test.class_map)
    _write(folder, data, moved, detected=True)
    return _performed(target, data, under_test, assessment.metrics), len(moved)


def _performed(target: DataSet, data: DetectionSet, under_test: UnderTest, metrics: tuple[str, ...]) -> DataSet:
    return replace(target, performance=measured(data, metrics, under_test.choice.policy, under_test.lowest_score))


def _write(folder: Path, data: DetectionSet, moved: tuple[MovedBoxes, ...], detected: bool) -> None:
    write_coco(folder, data, {boxes.name: boxes.size for boxes in moved}, default_measure(data), detected)


def _check_depth_files(assessment: Assessment, plan: Plan | None, scenes: Scenes) -> None:
    """Look for the depth map of every image, where they will be needed; InputError for one that is not there."""
    given = scenes.depth
    if given is None or given.folder is None:
        return
    needed: set[str] = set()
    for image in () if plan is None else plan.images:
        if image.source not in needed and any(MUTATORS[one.mutation].needs_depth for one in image.transformations):
            needed.add(image.source)
    asked = assessment.degradation
    if asked is not None and (wanted_of(asked).distances or asked.needs_depth):
        needed.update(scenes.files)
    if needed and not given.folder.is_dir():
        raise InputError("no such folder", Place(str(given.folder)))
    for name in sorted(needed):
        depth_file(given.folder, name)


def _check_target(target: Path, assessment: Assessment, folder: Path) -> None:
    """Refuse a folder for what is made that holds something, or lies where inputs are read from."""
    check_new(
        target, "name another folder, or remove this one; with --cache no image is put through the detector again"
    )
    files = assessment.source.files
    for name in (files.images, None if files.depth is None else files.depth.folder):
        if name is not None:
            check_outside("--make", target, folder / name)


def make_follow_up(
    plan: Plan, scenes: Scenes, target: Path, progress: Progress = no_progress
) -> tuple[MovedBoxes, ...]:
    """Make every image of the plan; the mutations of an image are applied in their order, with its own seed.

    Args:
        plan: its source names are those of `scenes`.
        scenes: the source images.
        target: a folder that is new or empty.
        progress: for a progress bar.

    Returns:
        The images that were made, in their order, with the boxes of what stands in them.

    Raises:
        InputError: a source image or its depth cannot be read, a mutation does not fit it, or the folder cannot be
            made or holds something, which would count as follow-up test cases.
        UsageError: the library that writes images is missing.
    """
    new_folder(target)
    digits = max(6, len(str(len(plan.images))))
    made, rows = [], []
    for image in progress(plan.images, "images"):
        name = f"{image.number:0{digits}d}_{Path(image.source).stem}.png"
        frame = _mutated(image, scenes)
        write_bytes(target / name, png_bytes(frame.pixels))
        made.append(MovedBoxes.of(name, image.source, frame))
        rows.append((name, image.source, "; ".join(image.circumstances)))
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([("target", "source", "circumstances"), *rows])
    write_text(target / PAIRS_FILE, stream.getvalue())
    return tuple(made)


def check_complete(circumstances: Iterable[Circumstance]) -> None:
    """Refuse transformations with which no image can be made.

    Raises:
        UsageError: a parameter is missing.
    """
    for circumstance in circumstances:
        if circumstance.transformation is not None and circumstance.transformation.lacks is not None:
            raise UsageError(
                f"circumstance '{circumstance.name}': no image can be made with this transformation\n"
                f"  hint: {circumstance.transformation.lacks}"
            )


def _mutated(image: PlannedImage, scenes: Scenes) -> Frame:
    path = scenes.files[image.source]
    try:
        mutation = Composition(tuple(one.made for one in image.transformations))
    except ValueError as error:
        raise InputError(str(error), Place(str(path))) from None
    rng = np.random.default_rng([image.seed[0], 2, image.seed[1]])
    return mutated_frame(scenes.frame(image.source, deep=needs_depth(mutation)), mutation, rng, path)
