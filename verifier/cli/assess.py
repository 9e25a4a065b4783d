"""The command `verify assess`: read, judge, print and write. Nothing is computed here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from verifier.base.errors import InputError, Place, UsageError, unknown_name
from verifier.base.files import document_text, write_bytes, write_text
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.targets import check_targets
from verifier.cli.terminal import progress_bar
from verifier.provenance import installed_versions, program_versions
from verifier.robustness.assessment.datasets import computed_distances, input_records, source_names
from verifier.robustness.assessment.definition import Assessment
from verifier.robustness.assessment.detected import with_measured
from verifier.robustness.assessment.document import assess_document
from verifier.robustness.assessment.making import Workshop, check_made, make
from verifier.robustness.assessment.plan import Plan, follow_up_plan
from verifier.robustness.assessment.reader import AssessmentFile, read_assessment
from verifier.robustness.assessment.result import AssessmentResult, SystemResult
from verifier.robustness.assessment.scenes import Scenes
from verifier.robustness.assessment.story import assess
from verifier.robustness.settings import AssessSettings
from verifier.telling.assess import assess_markdown, assess_tables
from verifier.telling.figures.drawing import figure_bytes

PACKAGES = ("onnxruntime", "opencv-python-headless", "opencv-python", "pillow", "pycocotools")
"""What images are read, changed, searched and judged with, under the names it is installed by."""


def assess_command(arguments: AssessSettings, command: Command) -> int:
    """Run `verify assess` and give its exit code."""
    _check_folders(arguments)
    check_targets(arguments, "assessment")
    file = read_assessment(arguments.file)
    chosen = tuple(_chosen(arguments, file))
    folder = Path(arguments.file).absolute().parent
    if arguments.cache is not None and arguments.make is None:
        raise UsageError("--cache keeps detections, which are made with --make")
    if arguments.plan is not None and not any(each.follow_up for each in chosen):
        raise UsageError("--plan: no system that is assessed has a table 'follow_up'")
    prepared = [_prepared(each, folder, arguments) for each in chosen]  # before anything is made
    systems = tuple(_system(each, folder, arguments) for each in prepared)
    assessment_file = {"role": "assessment", "name": PurePath(file.name).name, "sha256": file.sha256}
    judged = [each.assessment for each in systems]
    inputs = (assessment_file, *(record for each in judged for record in input_records(each, folder)))
    versions = program_versions() | installed_versions(() if arguments.make is None else PACKAGES)
    result = AssessmentResult(file.title, inputs, systems, versions)
    _give(arguments, result, command)
    return int(result.verdict.exit_code)


def _chosen(arguments: AssessSettings, file: AssessmentFile) -> Iterator[Assessment]:
    known = {each.key: each for each in file.assessments}
    for name in arguments.system:
        if name not in known:
            message, hint = unknown_name("system", name, known)
            raise UsageError(f"--system: {message} ({hint})")
    return (each for each in file.assessments if not arguments.system or each.key in arguments.system)


@dataclass(frozen=True)
class _Prepared:
    """A system, its plan, and the source images where something is to be made of them."""

    assessment: Assessment
    plan: Plan | None
    scenes: Scenes | None


def _prepared(given: Assessment, folder: Path, arguments: AssessSettings) -> _Prepared:
    plan = _plan(given, folder)
    if arguments.make is None:
        return _Prepared(given, plan, None)
    scenes = check_made(given, plan, folder, Path(arguments.make) / given.key)
    if given.degradation is not None and given.degradation.run is not None:
        from verifier.cli.assess_criteria import check_run

        check_run(given.degradation.run, folder)
    return _Prepared(given, plan, scenes)


def _system(each: _Prepared, folder: Path, arguments: AssessSettings) -> SystemResult:
    assessment, here = each.assessment, None
    if each.scenes is not None:
        cache = None if arguments.cache is None else Path(arguments.cache)
        workshop = Workshop(Path(arguments.make or "") / assessment.key, cache, progress_bar)
        assessment, here = make(assessment, each.plan, each.scenes, folder, workshop)
    assessment = with_measured(assessment, folder)
    computed = computed_distances(assessment, folder)
    degradation = None
    if assessment.degradation is not None and assessment.degradation.recipe is None:
        from verifier.cli.assess_criteria import degradation_of  # Storm is loaded only where it is asked

        degradation = degradation_of(assessment, folder)
    return assess(assessment, computed, each.plan, degradation, here)


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


def _give(arguments: AssessSettings, result: AssessmentResult, command: Command) -> None:
    """Everything is made before anything is written."""
    texts = {}
    document = with_provenance(document_text(assess_document(result)), command)
    if arguments.output is not None:
        texts[arguments.output] = document
    if arguments.markdown is not None:
        texts[arguments.markdown] = assess_markdown(result)
    if arguments.plan is not None:
        texts[arguments.plan] = _plans_text(result)
    picture = b""
    if arguments.plot is not None:
        from verifier.telling.figures.assess import assess_figure

        picture = figure_bytes(assess_figure(result), arguments.plot)
    printed = document if arguments.json else assess_tables(result)
    for path, text in texts.items():
        write_text(path, text)
    if arguments.plot is not None:
        write_bytes(arguments.plot, picture)
    print(printed, end="")


def _plans_text(result: AssessmentResult) -> str:
    plans = {each.assessment.key: each.plan.document() for each in result.systems if each.plan is not None}
    document = {"schema": "verifier.follow_up_plan", "version": 1, "title": result.title, "systems": plans}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _check_folders(arguments: AssessSettings) -> None:
    """Refuse folders that are files, or that an output would lie in the way of, before anything is computed."""
    if arguments.cache is not None and Path(arguments.cache).exists() and not Path(arguments.cache).is_dir():
        raise InputError("--cache: expected a folder, found a file", Place(arguments.cache))
    made = None if arguments.make is None else Path(arguments.make).resolve()
    for name in ("output", "markdown", "plan", "plot"):
        target = getattr(arguments, name)
        if made is not None and target is not None and Path(target).resolve() in (made, *made.parents):
            raise UsageError(f"--{name}: {target} is or holds the folder of --make")
