"""What `verify assess` asks for, from its settings: read, make the data where that is asked for, judge.

    assessment file -> plan -> checks -> data that are made -> distances and degradation -> judgement

All systems are checked before anything is made of one.

The assessment of one system: distances, the metamorphic relation, the verdict, and what a reader must know.

circumstances -> missing test cases -> plan -> performance and distances -> relation per metric -> verdict
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from verifier.base.blocks import HERE, Pool
from verifier.base.documents import InputFile
from verifier.base.errors import InputError, Place, UsageError, unknown_name
from verifier.base.numbers import exact_text
from verifier.base.statistics import FEW_UNITS, few_units_note
from verifier.checking.verdicts import Verdict, worst_verdict
from verifier.robustness.assessment.circumstances import Circumstance
from verifier.robustness.assessment.datasets import computed_distances, input_records, source_names
from verifier.robustness.assessment.definition import Assessment, DataSet
from verifier.robustness.assessment.document import (
    AssessResult,
    DegradationRecord,
    MadeHere,
    SystemRecord,
    TargetRecord,
    degradation_record,
    system_record,
    target_record,
)
from verifier.robustness.assessment.making import Workshop, check_made, make
from verifier.robustness.assessment.measures import DatasetDistance, outcomes
from verifier.robustness.assessment.plan import Plan, follow_up_plan
from verifier.robustness.assessment.reader import AssessmentFile, read_assessment
from verifier.robustness.assessment.samples import with_measured, with_samples
from verifier.robustness.campaign.detecting import PACKAGES
from verifier.robustness.campaign.looking import Progress, no_progress
from verifier.robustness.campaign.scenes import Scenes
from verifier.robustness.settings import AssessSettings
from verifier.study.provenance import installed_versions, program_versions


def assessed(settings: AssessSettings, progress: Progress = no_progress, pool: Pool = HERE) -> AssessResult:
    """Assess the systems of a file; data are made below the folder `settings.make` where one is named.

    Args:
        settings: of `verify assess`; outputs play no part.
        progress: wraps what is worked on, with what it is called in the plural.
        pool: who mutates images and looks at them, where data are made.

    Raises:
        UsageError: choices that do not go together, a system that the file does not have, nothing to make.
        InputError: files that cannot be read or do not belong together.
        VerifierError: as checking the requirements of a degradation raises.
    """
    if settings.cache is not None and Path(settings.cache).exists() and not Path(settings.cache).is_dir():
        raise InputError("--cache: expected a folder, found a file", Place(settings.cache))
    file = read_assessment(settings.file)
    folder = Path(settings.file).absolute().parent
    chosen = tuple(with_samples(assessment, folder) for assessment in _chosen(settings, file))
    if settings.cache is not None and settings.make is None:
        raise UsageError("--cache keeps detections, which are made with --make")
    if settings.refine and (settings.make is None or all(assessment.recipe is None for assessment in chosen)):
        raise UsageError("--refine makes levels: it needs --make and a degradation with a transformation")
    prepared = [_prepared(system, folder, settings) for system in chosen]  # before anything is made
    systems = tuple(_with_verdicts(system, folder, settings, progress, pool) for system in prepared)
    assessment_file = InputFile.of("assessment", file.name, file.sha256)
    inputs = [record for one, _ in systems for record in input_records(one, folder)]
    extractors = any(rule.extractor for system in chosen for rule in system.rules.values())
    used = (*(() if settings.make is None else PACKAGES), *(("torch", "torchvision") if extractors else ()))
    versions = program_versions() | installed_versions(used)
    records = tuple(record for _, record in systems)
    return AssessResult(
        title=file.title,
        verdict=worst_verdict(record.verdict for record in records),
        inputs=(assessment_file, *inputs),
        versions=versions,
        grid={record.key: tuple(target.name for target in record.targets) for record in records},
        systems=records,
    )


@dataclass(frozen=True)
class _Prepared:
    """A system, its plan, and the source images where something is to be made of them."""

    assessment: Assessment
    plan: Plan | None
    scenes: Scenes | None


def _chosen(settings: AssessSettings, file: AssessmentFile) -> Iterator[Assessment]:
    known = {assessment.key: assessment for assessment in file.assessments}
    for name in settings.system:
        if name not in known:
            message, hint = unknown_name("system", name, known)
            raise UsageError(f"--system: {message} ({hint})")
    return (assessment for key, assessment in known.items() if not settings.system or key in settings.system)


def _prepared(assessment: Assessment, folder: Path, settings: AssessSettings) -> _Prepared:
    try:
        plan = _plan(assessment, folder)
    except UsageError as error:  # what only a plan needs
        place = Place(settings.file, path=f"systems.{assessment.key}.follow_up")
        raise InputError(str(error), place) from None
    if settings.make is None:
        return _Prepared(assessment, plan, None)
    scenes = check_made(assessment, plan, folder, Path(settings.make) / assessment.key)
    if assessment.degradation is not None and assessment.degradation.run is not None:
        from verifier.robustness.campaign.judging import check_run

        check_run(assessment.degradation.run, folder)
    return _Prepared(assessment, plan, scenes)


def _with_verdicts(
    system: _Prepared, folder: Path, settings: AssessSettings, progress: Progress, pool: Pool
) -> tuple[Assessment, SystemRecord]:
    """The assessment with what was made, and what was found."""
    assessment, made, workshop, said = system.assessment, None, None, tuple[str, ...]()
    if system.scenes is not None:
        cache = None if settings.cache is None else Path(settings.cache)
        target = Path(settings.make or "") / assessment.key
        workshop = Workshop(target, cache, progress, refine=settings.refine, pool=pool)
        assessment, made, said = make(assessment, system.plan, system.scenes, folder, workshop)
    assessment = with_measured(assessment, folder)
    computed = computed_distances(assessment, folder)
    degradation, asked = None, assessment.degradation
    if asked is not None and asked.recipe is None:
        from verifier.robustness.assessment.criteria import criteria_of  # Storm is loaded only where it is asked

        judged = criteria_of(asked, folder, progress, None if workshop is None else workshop.runs)
        degradation = degradation_record(asked, judged.criteria, judged.inputs, judged.settings, judged.remarks)
    return assessment, assess(assessment, computed, system.plan, degradation, made, said)


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


def assess(
    assessment: Assessment,
    computed: Mapping[str, Mapping[str, DatasetDistance]] | None = None,
    plan: Plan | None = None,
    degradation: DegradationRecord | None = None,
    made: MadeHere | None = None,
    said: tuple[str, ...] = (),
) -> SystemRecord:
    """Judge one system.

    Args:
        computed: by target and distance what was computed from images or features; a given number goes before it.
        plan: of the follow-up test cases, if one was drawn.
        degradation: what growing disturbances showed, if that was asked for.
        made: what was made for it, if anything was.
        said: what a reader must know of that.
    """
    metrics = computed or {}
    targets = tuple(_judged(assessment, target, metrics.get(target.name, {})) for target in assessment.all_targets())
    remarks = (
        *_definition_remarks(assessment),
        *_outcome_remarks(assessment, targets),
        *_making_remarks(assessment, made),
        *said,
    )
    return system_record(assessment, targets, plan, degradation, made, remarks)


def _judged(assessment: Assessment, target: DataSet, computed: Mapping[str, DatasetDistance]) -> TargetRecord:
    known = {**computed, **target.distances}
    distances = {name: known[name] for name in assessment.rules if name in known}
    source = assessment.source.performance
    if source is None or target.performance is None:
        return target_record(target, distances)
    scales = (circumstance.scale(assessment.tolerance_scaling) for circumstance in assessment.shown_in(target))
    scale = min(scales, default=Fraction(1))  # of data that hold several circumstances the strictest one rules
    metric_outcomes = outcomes(assessment.metrics, source, target.performance, assessment.rules, distances, scale)
    unchecked = tuple(
        name
        for name, rule in assessment.rules.items()
        if rule.tolerance is not None and (name not in distances or distances[name].distance is None)
    )
    return target_record(target, distances, tuple(metric_outcomes), unchecked)


def _definition_remarks(assessment: Assessment) -> Iterator[str]:
    consequences = {
        "frequency": "no frequency in use; its share of follow-up test cases is not known",
        "source_frequency": "no frequency in the source data; what is missing is not known",
        "risk": "no assessed significance; it comes last in the priorities",
        "transformation": "no transformation; no follow-up image can be made for it",
    }
    counted = [
        counted for one in assessment.circumstances for counted in (one.counted, one.source_counted) if counted
    ]
    few = few_units_note(min((images_of.images for images_of in counted), default=FEW_UNITS), "image")
    if counted:
        yield (
            "frequencies that were counted are those of a labelled sample, with exact 95 % intervals for images "
            f"drawn independently (not tested){'; ' + few if few else ''}"
        )
    if assessment.tolerance_scaling == "stated" and any(
        circumstance.risk for circumstance in assessment.circumstances
    ):
        yield 'significance orders test cases here; with tolerance_scaling = "significance" it tightens epsilon, too'
    for field, told in consequences.items():
        without = [circumstance for circumstance in assessment.circumstances if getattr(circumstance, field) is None]
        if without:
            yield f"{_listed(without)}: {told}"
    total = assessment.total_frequency
    if assessment.occurrence == "exclusive" and assessment.circumstances and total < 1:
        yield (
            f"the circumstances exclude each other and sum to {exact_text(total)}, not 1: in the rest of use "
            "none is met, and the target data show only these, in proportion"
        )


def _outcome_remarks(assessment: Assessment, targets: tuple[TargetRecord, ...]) -> Iterator[str]:
    for target in targets:
        for name in target.unchecked:
            yield f"{target.name}: no distance by {name}, so the relation could not be checked with it"
        for outcome in target.outcomes:
            if outcome.target > outcome.source and outcome.verdict is Verdict.VIOLATED:
                yield (
                    f"{target.name}: {outcome.metric} is better on the target data, which violates the "
                    "relation "
                    "as well: it asks for no change, not for a good performance"
                )
    source = assessment.source.performance
    if source is not None and any(target.outcomes for target in targets):
        for name in assessment.metrics:
            if source.values[name] == 0:
                yield f"{name} is 0 on the source data: it cannot fall, so that the relation says nothing by it"
    measured = [target for target in targets if target.performance is not None]
    if measured and not any(rule.tolerance is not None for rule in assessment.rules.values()):
        yield "no distance has a tolerance: changes of performance are listed and not judged"
    if any(target.outcomes for target in targets):
        yield (
            "the relation asks for all pairs of sets of circumstances, and those listed here are checked: a "
            "violation refutes robustness; a relation that holds here proves nothing for other data"
        )


def _making_remarks(assessment: Assessment, made: MadeHere | None) -> Iterator[str]:
    asked = assessment.degradation
    if made is None and assessment.detector is not None:
        yield "the detector was not run: it is when data are made"
    if made is None and asked is not None and asked.recipe is not None:
        yield f"the levels of {asked.parameter} were not made, so nothing is known of them"
    if made is not None and made.follow_up_images and assessment.detector is None:
        yield "follow-up images were made, and no detector is named that could be run on them"


def _listed(circumstances: list[Circumstance]) -> str:
    names = [circumstance.name for circumstance in circumstances]
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
