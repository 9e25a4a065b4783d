"""What `verify collision` is asked for: the detectors that its choices name, and everything found about them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from verifier.base.errors import UsageError
from verifier.base.options import named_file
from verifier.checking.process import StormProcess
from verifier.collision.pairs_of_detections import pairs_of_detections
from verifier.collision.pairs_reader import ReadPairs, read_pairs, read_record
from verifier.collision.remarks import study_remarks
from verifier.collision.result import CollisionResult
from verifier.collision.settings import CollisionSettings
from verifier.collision.study import Stages, collision_study, unwatched
from verifier.collision.study_settings import study_settings
from verifier.perception.detections import Reading, keep_scores, read_class_map, read_detections
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
    return CollisionRequest(settings).result(stages)


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

    def result(self, stages: Stages = unwatched) -> CollisionResult:
        """Everything found; see `collision_result`."""
        detectors = self.detectors
        with contextlib.ExitStack() as stack:
            storm = stack.enter_context(StormProcess()) if self.study.loop is not None else None
            policies = collision_study(detectors, self.study, storm, stages)
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
    options: dict[str, Any] = {} if settings.frames is None else {"frames": settings.frames}
    if settings.column and settings.format == "table":
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
    elif settings.match_threshold is not None:
        raise UsageError("--match-threshold goes with --affinity")
    return pairs_of_detections(
        data,
        classes=settings.classes,
        measure=settings.distance or "ground_plane",
        policy=policy,
        same_class=settings.same_class,
        title=name,
    )
