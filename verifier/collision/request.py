"""What `verify collision` is asked for: the detectors that its choices name, and everything found about them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from verifier.base.blocks import HERE, Pool
from verifier.base.errors import UsageError
from verifier.base.files import named_file
from verifier.base.numbers import significant
from verifier.base.statistics import few_units_note
from verifier.base.words import percent
from verifier.checking.process import StormProcess
from verifier.collision.document import ClosedLoop
from verifier.collision.kernel import Reason
from verifier.collision.pairs_of_detections import pairs_of_detections
from verifier.collision.pairs_reader import ReadPairs, read_pairs, read_record
from verifier.collision.result import CollisionResult
from verifier.collision.settings import CollisionSettings
from verifier.collision.study import DetectorResult, PolicyResult, Stages, StudySettings, collision_study, unwatched
from verifier.collision.study_settings import study_settings
from verifier.collision.trust import REFUTED, Independence
from verifier.perception.detections import Reading, keep_scores, read_class_map, read_detections
from verifier.perception.detections.formats import FORMATS
from verifier.perception.matching import MatchingPolicy, usual_threshold
from verifier.study.provenance import program_versions


def collision_result(settings: CollisionSettings, stages: Stages = unwatched) -> CollisionResult:
    """Everything that `verify collision` finds.

    Args:
        settings: every choice; outputs that they name are not written.
        stages: told of progress, see `verifier.collision.study.collision_study`.

    Raises:
        VerifierError: see `verifier.base.errors`; each says what to do.
    """
    with Pool(settings.scheduler) as pool:
        return CollisionRequest(settings).result(stages, pool)


class CollisionRequest:
    """A study that settings ask for, step by step: its choices are checked at once, its data read when asked for.

    Attributes:
        settings: every choice, as it was made.
        study: the choices of the study itself.

    Raises:
        UsageError, InputError: as `verifier.collision.study_settings.study_settings`.
    """

    def __init__(self, settings: CollisionSettings) -> None:
        self.settings = settings
        self.study = study_settings(settings)

    @cached_property
    def detectors(self) -> tuple[ReadPairs, ...]:
        """The pairs of every detector, read once; UsageError, InputError."""
        detectors = tuple(_detectors(self.settings))
        titles = [detector.pairs.title for detector in detectors]
        if len(set(titles)) < len(titles):
            raise UsageError(f"two detectors have one name: {', '.join(titles)}")
        return detectors

    def result(self, stages: Stages = unwatched, pool: Pool = HERE) -> CollisionResult:
        """Everything found; see `collision_result` and `collision_study`."""
        detectors = self.detectors
        with contextlib.ExitStack() as stack:
            storm = stack.enter_context(StormProcess()) if self.study.loop is not None else None
            policies = collision_study(detectors, self.study, storm, stages, pool)
            storm_version = {} if storm is None else {"storm": storm.storm_version()}
        return CollisionResult(
            self.settings.title or ", ".join(detector.pairs.title for detector in detectors),
            detectors,
            self.study,
            policies,
            {**program_versions(), **storm_version},
            study_remarks(detectors, self.study, policies),
        )


def _detectors(settings: CollisionSettings) -> Iterator[ReadPairs]:
    """The pairs of every detector that the settings name."""
    sources = {"--pairs": settings.tables, "--record": settings.record, "--detections": settings.detections}
    if not any(sources.values()):
        raise UsageError(
            "name the data: PAIRS.csv, --pairs NAME=FILE, --record FILE, or --format NAME --annotations PATH "
            "--detections PATH"
        )
    named = _named(sources)
    for name, path in named["--pairs"]:
        yield _table(settings, name, path)
    for name, path in named["--record"]:
        if settings.distance is None:
            raise UsageError(
                "--record: name the measure of distance that verify confusion counted with: --distance MEASURE "
                "(its default is euclidean_3d); the record does not say"
            )
        yield read_record(
            path, settings.distance, classes=settings.classes, same_class=settings.same_class, title=name
        )
    for name, path in named["--detections"]:
        yield _detected(settings, name or Path(path).stem, path)


def _named(sources: Mapping[str, Sequence[str]]) -> dict[str, list[tuple[str, str]]]:
    """For each option (name, path) of its detectors; the name is empty for a path alone.

    Raises:
        UsageError: there are several detectors, and one has no name.
    """
    several = sum(map(len, sources.values())) > 1
    named = {option: [named_file(option, text) for text in texts] for option, texts in sources.items()}
    for option, files in named.items():
        for name, path in files:
            if several and not name:
                raise UsageError(f"with several detectors each needs a name: {option} NAME={path}")
    return named


def _table(settings: CollisionSettings, name: str, path: str) -> ReadPairs:
    return read_pairs(
        path,
        classes=settings.classes,
        image_count=settings.images,
        columns=settings.column,
        negative_reports=settings.negative_reports,
        title=name,
    )


def _detected(settings: CollisionSettings, name: str, path: str) -> ReadPairs:
    if settings.format is None or settings.annotations is None:
        raise UsageError("--detections goes with --format NAME and --annotations PATH")
    options: dict[str, object] = {} if settings.frames is None else {"frames": settings.frames}
    if settings.column and "columns" in FORMATS[settings.format].options:
        options["columns"] = settings.column
    how = Reading(
        None if settings.class_map is None else read_class_map(settings.class_map),
        tuple(settings.ignore),
        sequences=tuple(settings.sequence) or None,
    )
    data = read_detections(settings.format, settings.annotations, path, how, **options)
    if settings.min_score is not None:
        data = keep_scores(data, settings.min_score)
    policy = None
    if settings.affinity is not None:
        threshold = settings.match_threshold
        if threshold is None:
            threshold = usual_threshold(settings.affinity)
        try:
            policy = MatchingPolicy(settings.affinity, threshold)
        except ValueError as error:
            raise UsageError(f"matching: {error}") from None
    return pairs_of_detections(
        data,
        classes=settings.classes,
        measure=settings.distance or "ground_plane",
        policy=policy,
        same_class=settings.same_class,
        title=name,
    )


def study_remarks(
    sources: Sequence[ReadPairs], settings: StudySettings, policies: Sequence[PolicyResult]
) -> tuple[str, ...]:
    """Remarks on the data, the estimate, the comparisons and the closed loop, without repetitions."""
    remarks: list[str] = []
    for pairs in sources:
        remarks += _of_data(pairs)
    for result in policies[0].detectors:
        if result.confidence.independence.refuted:
            remarks.append(f"{result.map.title}: {independence_text(result.confidence.independence)}")
    for policy in policies:
        for result in policy.detectors:
            remarks += _of_map(result)
            if result.loop is not None:
                remarks += _of_loop(result.loop, result.map.title, settings)
    if len(sources) > 1:
        remarks += _of_comparison(sources, settings, policies)
    return tuple(dict.fromkeys(remarks))


def _of_data(pairs: ReadPairs) -> Iterator[str]:
    title, origin = pairs.pairs.title, pairs.origin
    yield from (f"{title}: {text}" for text in origin.get("remarks", ()))
    if origin.get("overlapping_in_image"):
        yield (
            f"{title}: {origin['overlapping_in_image']} objects have a report in the image that is too far off in "
            "space to overlap, and so make no pair by the paper's rule; large errors are left out. A matching by "
            "image rectangles keeps them"
        )
    if origin.get("reports_of_two_objects"):
        number = origin["reports_of_two_objects"]
        yield f"{title}: {number} pairs have a report that is the best of a second object, too, and in both pairs"
    if origin.get("drives"):
        drives = "one drive" if origin["drives"] == 1 else f"{origin['drives']} drives"
        yield (
            f"{title}: the {origin['images']} images are frames of {drives}. Frames that follow each other are "
            "alike, but every interval that does not resample drives assumes independent images, or pairs: it is too "
            f"narrow{'; drives are ' + few if (few := few_units_note(origin['drives'], 'drive')) else ''}"
        )
    if origin.get("measure") not in (None, "given"):
        yield (
            f"{title}: distances are to the centres of boxes. A surface is nearer by up to half the object's length: "
            "take that off the distances, or keep it as a margin"
        )
    if origin.get("without_distance"):
        yield f"{title}: {origin['without_distance']} objects of unknown distance are left out"
    if origin.get("behind"):
        yield f"{title}: {origin['behind']} objects behind the ego, or reported there, are left out"
    if origin.get("negative_reports"):
        policy = {"zero": "taken as 0", "left_out": "left out with their objects"}
        yield f"{title}: reports below 0 m, {policy[origin['negative_reports_are']]}: {origin['negative_reports']}"


def independence_text(independence: Independence) -> str:
    """What the tests of the assumption of the estimator say."""
    if not independence.permutations:
        return "independence of pairs and their number: not tested, each image has one pair"
    said = {
        "pairs of one image of each other": independence.pairs,
        "pairs of their number per image": independence.number,
    }
    said |= {} if independence.drives is None else {"images of one drive of each other": independence.drives}
    parts = [
        f"{what}: "
        + ("not tested" if p is None else f"{'refuted' if p <= REFUTED else 'not refuted'} (p = {significant(p)})")
        for what, p in said.items()
    ]
    return "independence that the estimate assumes, of " + "; of ".join(parts)


def _of_map(result: DetectorResult) -> Iterator[str]:
    chart = result.map
    if chart.oversmooths:
        times = chart.width_m / chart.cross_validated_m
        yield (
            f"{chart.title}: the kernel is {significant(chart.width_m)} m wide, {significant(times)} times the width "
            "that forecasts best. Oversmoothing: near y = S(v) the estimate is biased towards 0.5, and subsampling "
            "intervals rarely cover the true value"
        )
    if chart.narrowest:
        yield (
            f"{chart.title}: cross-validation took the narrowest kernel that it tries, {significant(chart.width_m)} "
            "m. Either the probability changes within so little, or pairs are near copies of each other, such as "
            "frames of one drive: then the kernel is too narrow, and the map shows single drives. Compare with a "
            "kernel of a stated width"
        )
    lower, upper = result.confidence.trusted
    outside = int(np.sum((chart.probability < lower) | (chart.probability > upper)))
    if outside:
        yield (
            f"{chart.title}: at {outside} of {chart.reason.size} points the estimate lies outside of the interval to "
            "trust. The exact intervals look at each image's nearest object alone; the estimate weights all pairs "
            "equally and ignores how many share an image"
        )
    for reason, count in Reason.counted(chart.reason).items():
        if reason is Reason.DEFINED:
            continue
        yield f"{chart.title}: at {count} of {chart.reason.size} points no probability is given: {reason.text}"
    if chart.settings.two_bandwidths and bool(np.any((chart.probability < 0) | (chart.probability > 1))):
        yield f"{chart.title}: with two bandwidths the estimate leaves [0, 1] at some points"


def _of_loop(loop: ClosedLoop, title: str, settings: StudySettings) -> Iterator[str]:
    assert settings.loop is not None  # there is a loop, so it was asked for
    if loop.borrowed_bins:
        bins = settings.loop.channel.bins_text(loop.borrowed_bins)
        yield f"{title}: closed loop: no object in the bins {bins}; reports there are those of the nearest bin"
    if not loop.missed:
        yield (
            f"{title}: closed loop: the data name no object without a report, so after the first report one comes in "
            "every period"
        )
    yield (
        "closed loop: every report is drawn independently of those before; errors that last are not in the numbers. "
        "They hold for objects that are reported at all"
    )


def _of_comparison(
    sources: Sequence[ReadPairs], settings: StudySettings, policies: Sequence[PolicyResult]
) -> Iterator[str]:
    for compared in policies[0].comparisons:
        comparison = compared.comparison
        names = f"{sources[compared.first].pairs.title} and {sources[compared.second].pairs.title}"
        if comparison.thin_share > 0:
            yield (
                f"{names}: at {percent(comparison.thin_share, 2)} of the points compared more than a fifth of the "
                f"subsamples of {comparison.subsample_size} have no value; they count against the claim. Take "
                "larger ones"
            )
        if comparison.common_objects < comparison.objects / 2:
            yield (
                f"{names}: {comparison.common_objects} of {comparison.objects} objects have a pair of both; the "
                "detectors are compared on largely different objects"
            )
    if settings.estimator.two_bandwidths:
        yield "with two bandwidths images cannot be resampled: there is no ranking"
    elif settings.penalty.heavy == "below":
        yield (
            "scores: beta weighs lambda below the oracle's, as the paper prints it. A detector that reports objects "
            "too far away lies above the oracle; '--heavy above' weighs that side"
        )
    else:
        yield (
            "scores: beta weighs lambda above the oracle's, where a detector lies that reports objects too far away; "
            "the paper prints the other side"
        )
