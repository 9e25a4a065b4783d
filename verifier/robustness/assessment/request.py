"""What `verify assess` asks for, from its settings: read, make the data where that is asked for, judge.

    assessment file -> plan -> checks -> data that are made -> distances and degradation -> judgement

All systems are checked before anything is made of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from verifier.base.errors import InputError, Place, UsageError, unknown_name
from verifier.robustness.assessment.datasets import computed_distances, input_records, source_names
from verifier.robustness.assessment.definition import Assessment
from verifier.robustness.assessment.detected import with_measured
from verifier.robustness.assessment.follow_up import Progress, no_progress
from verifier.robustness.assessment.judgement import assess
from verifier.robustness.assessment.making import Workshop, check_made, make
from verifier.robustness.assessment.plan import Plan, follow_up_plan
from verifier.robustness.assessment.reader import AssessmentFile, read_assessment
from verifier.robustness.assessment.result import AssessmentResult, SystemResult
from verifier.robustness.assessment.scenes import Scenes
from verifier.robustness.settings import AssessSettings
from verifier.study.provenance import installed_versions, program_versions

PACKAGES = ("onnxruntime", "opencv-python-headless", "opencv-python", "pillow", "pycocotools")
"""What images are read, changed, searched and judged with, under the names it is installed by."""


def assessed(settings: AssessSettings, progress: Progress = no_progress) -> AssessmentResult:
    """Assess the systems of a file; data are made below the folder `settings.make` where one is named.

    Args:
        settings: of `verify assess`; of the outputs only `plan` plays a part: it must be one that can be drawn.
        progress: wraps what is worked on, with what it is called in the plural.

    Raises:
        UsageError: choices that do not go together, a system that the file does not have, nothing to make.
        InputError: files that cannot be read or do not belong together.
        VerifierError: as checking the requirements of a degradation raises.
    """
    _check_cache(settings)
    file = read_assessment(settings.file)
    chosen = tuple(_chosen(settings, file))
    folder = Path(settings.file).absolute().parent
    if settings.cache is not None and settings.make is None:
        raise UsageError("--cache keeps detections, which are made with --make")
    if settings.plan is not None and not any(system.follow_up for system in chosen):
        raise UsageError("--plan: no system that is assessed has a table 'follow_up'")
    prepared = [_prepared(system, folder, settings) for system in chosen]  # before anything is made
    systems = tuple(_judged(system, folder, settings, progress) for system in prepared)
    assessment_file = {"role": "assessment", "name": PurePath(file.name).name, "sha256": file.sha256}
    inputs = [record for system in systems for record in input_records(system.assessment, folder)]
    versions = program_versions() | installed_versions(() if settings.make is None else PACKAGES)
    return AssessmentResult(file.title, (assessment_file, *inputs), systems, versions)


@dataclass(frozen=True)
class _Prepared:
    """A system, its plan, and the source images where something is to be made of them."""

    assessment: Assessment
    plan: Plan | None
    scenes: Scenes | None


def _check_cache(settings: AssessSettings) -> None:
    if settings.cache is not None and Path(settings.cache).exists() and not Path(settings.cache).is_dir():
        raise InputError("--cache: expected a folder, found a file", Place(settings.cache))


def _chosen(settings: AssessSettings, file: AssessmentFile) -> Iterator[Assessment]:
    known = {assessment.key: assessment for assessment in file.assessments}
    for name in settings.system:
        if name not in known:
            message, hint = unknown_name("system", name, known)
            raise UsageError(f"--system: {message} ({hint})")
    return (each for key, each in known.items() if not settings.system or key in settings.system)


def _prepared(assessment: Assessment, folder: Path, settings: AssessSettings) -> _Prepared:
    plan = _plan(assessment, folder)
    if settings.make is None:
        return _Prepared(assessment, plan, None)
    scenes = check_made(assessment, plan, folder, Path(settings.make) / assessment.key)
    if assessment.degradation is not None and assessment.degradation.run is not None:
        from verifier.robustness.assessment.criteria import check_run

        check_run(assessment.degradation.run, folder)
    return _Prepared(assessment, plan, scenes)


def _judged(system: _Prepared, folder: Path, settings: AssessSettings, progress: Progress) -> SystemResult:
    assessment, made = system.assessment, None
    if system.scenes is not None:
        cache = None if settings.cache is None else Path(settings.cache)
        workshop = Workshop(Path(settings.make or "") / assessment.key, cache, progress)
        assessment, made = make(assessment, system.plan, system.scenes, folder, workshop)
    assessment = with_measured(assessment, folder)
    computed = computed_distances(assessment, folder)
    degradation = None
    if assessment.degradation is not None and assessment.degradation.recipe is None:
        from verifier.robustness.assessment.criteria import degradation_of  # Storm is loaded only where it is asked

        degradation = degradation_of(assessment, folder, progress)
    return assess(assessment, computed, system.plan, degradation, made)


def _plan(assessment: Assessment, folder: Path) -> Plan | None:
    asked = assessment.follow_up
    if asked is None:
        return None
    return follow_up_plan(
        assessment.circumstances,
        source_names(assessment, folder),
        occurrence=assessment.occurrence,
        proportions=asked.proportions,
        size=asked.size,
        seed=asked.seed,
    )
