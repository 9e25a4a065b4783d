"""From a spec, matrices and a question to the least recall that meets a requirement.

    spec + model + matrices -> products of every scenario -> path of matrices -> search -> Storm at the answer

`require` is that story. The search runs on the batch engine; every probability that is reported is Storm's, on the
chain of the matrices in question, and on small chains it is an exact fraction.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import TypeAlias

from verifier.analysis.channel_test import Channel, channel_condition, channel_test, drawn_together
from verifier.base.arrays import grouped
from verifier.base.budget import memory_limit
from verifier.base.errors import UsageError
from verifier.checking.process import StormProcess
from verifier.language.expressions import to_text
from verifier.language.specs import Requirement
from verifier.questions.require.answers import Curve, Situation, answer, curve_of
from verifier.questions.require.question import Question
from verifier.questions.require.require_result import (
    Answer,
    AskedRequirement,
    FloorAsked,
    RequireResult,
    RequireSettings,
)
from verifier.study.case import Case, Study
from verifier.study.collection import target_of
from verifier.study.inputs import ends_of, read_inputs, refuse_others
from verifier.study.options import RunOptions, clock_of
from verifier.study.provenance import (
    grid_remarks,
    input_files,
    matrices_record,
    program_versions,
    run_remarks,
    run_settings,
)
from verifier.study.records import SettingsRecord
from verifier.study.results import engines_over
from verifier.systems.model import SystemModel

Progress: TypeAlias = Callable[[Sequence[tuple[Case, ...]]], Iterable[tuple[Case, ...]]]

_EXACTLY_MEASURED = (
    "P, verdicts and required recalls take the measured rates as exact: what the data leave open is in the bounds of "
    "verify run"
)


def require(
    spec_path: str | FilePath,
    confusion_path: str | FilePath,
    question: Question,
    options: RunOptions = RunOptions(),
    progress: Progress = iter,
    system: SystemModel | None = None,
) -> RequireResult:
    """What perception must do for one requirement of a spec.

    Args:
        spec_path: a `.ltl` file; it names the system model.
        confusion_path: a confusion document; its rates are what every search starts from.
        options: see `RunOptions`; its requirements must not name another one.
        progress: wraps the planners (with their swept constants), for a progress bar.
        system: as in `verify_spec`.

    Raises:
        VerifierError: see `verifier.base.errors`; each says what to do.
    """
    options = options.by_default()
    with StormProcess() as storm, memory_limit(options.limits.memory_bytes):
        study = Study.of(read_inputs(spec_path, confusion_path, options, system), options)
        return required(study, question, storm, progress)


def required(study: Study, question: Question, storm: StormProcess, progress: Progress = iter) -> RequireResult:
    """As `require`, for a study and a worker that runs."""
    study, requirement = _asking(study, question)
    options, inputs, name = study.options, study.inputs, requirement.name
    chosen = question.in_question(study.matrices)
    answers: list[Answer] = []
    assumed: list[str] = []
    said = [_EXACTLY_MEASURED, *grid_remarks(study.grid, options.false_positives, study.matrices)]
    clock = clock_of(study.options, len(study.cases))
    for cases in progress(_by_planner(study)):
        with clock.running(f"the search for what {name} requires"):
            situation = Situation.of(cases)
            as_measured, remarks = situation.check(situation.counts, storm)
            condition = channel_condition(channel_test(study.tests, drawn_together(case.draws for case in cases)))
            answers.append(answer(situation, question, chosen, as_measured, storm, condition))
        assumed += [text for case in cases for text in case.assumed]
        said += remarks
    target = target_of(requirement)
    assert target is not None  # `_with_target` refuses a requirement without one
    return RequireResult(
        title=inputs.title,
        inputs=input_files(inputs.spec, inputs.model, inputs.confusion),
        matrices=matrices_record(inputs.confusion, study.divided),
        channel=Channel(classes=study.tests),
        settings=_settings(run_settings(study, options, None), question),
        versions={**program_versions(), "storm": storm.storm_version()},
        engines=engines_over(point for answer in answers for point in answer.points),
        remarks=run_remarks(inputs.confusion.matrices, options, assumed, said, None, study.tests, study.divided),
        requirement=AskedRequirement(
            name=name,
            formula=to_text(requirement.formula, parenthesise=True),
            asked=str(requirement.asked),
            comparison=target.comparison,
            probability=target.probability,
        ),
        mode=question.mode,
        answers=tuple(answers),
    )


def curves_of(study: Study, question: Question) -> list[Curve]:
    """The curve of each answer of `required`, by the batch engine alone."""
    study, _ = _asking(study, question)
    chosen = question.in_question(study.matrices)
    return [curve_of(Situation.of(cases), question, chosen) for cases in _by_planner(study)]


def _asking(study: Study, question: Question) -> tuple[Study, Requirement]:
    """The study of the one requirement that is asked about, and that with the target; UsageError."""
    _refuse_what_does_not_fit(study.options)
    name = _requirement_name(study, question)
    selection = replace(study.options.selection, requirements=(name,))
    study = study.under(replace(study.options, selection=selection))
    refuse_others(study.requirements, "verify require")
    (asked,) = (requirement for requirement in study.inputs.spec.requirements if requirement.name == name)
    requirement, *_ = ends_of(_with_target(asked, question), study.inputs.model)
    study = study.asking([0])
    return replace(study, grid=replace(study.grid, requirements=(requirement,))), requirement


def _refuse_what_does_not_fit(options: RunOptions) -> None:
    options.refuse_what_a_run_alone_has("verify require")
    if options.initial_context == "counted":
        raise UsageError(
            "--initial-context counted: contexts are as frequent as with the measured recalls, and others are looked "
            "for: name another"
        )
    if options.decimals is not None:
        raise UsageError("recalls are searched for on unrounded transitions: leave out --round-transitions")
    if options.strategies:
        raise UsageError("the range over all winning strategies belongs to verify run: leave out --strategies")


def _requirement_name(study: Study, question: Question) -> str:
    """The one requirement that is asked about."""
    asked = [question.requirement] if question.requirement else []
    named = dict.fromkeys((*study.options.selection.requirements, *asked))
    known = [requirement.name for requirement in study.inputs.spec.requirements]
    if len(named) > 1 or (not named and len(known) != 1):
        listed = ", ".join(known)
        raise UsageError(f"select one requirement with --requirement NAME; available: {listed}")
    return next(iter(named), known[0] if known else "")


def _with_target(requirement: Requirement, question: Question) -> Requirement:
    """The requirement with the target that is asked about."""
    target = question.target
    if target is not None:
        return replace(requirement, comparison=target.comparison, target=target.probability)
    if requirement.target is None:
        raise UsageError(
            f"requirement '{requirement.name}' is P = ? and has no target: name one, as --target 0.95 or "
            "--target '<= 0.01'"
        )
    return requirement


def _by_planner(study: Study) -> list[tuple[Case, ...]]:
    """The cases of each planner and value of the swept constants, over all environments."""
    groups = grouped(((case.planner.name, tuple(case.swept.items())), case) for case in study.cases)
    return [tuple(cases) for cases in groups.values()]


def _settings(run: SettingsRecord, question: Question) -> RequireSettings:
    return RequireSettings(
        **vars(run),
        floor=FloorAsked(question.rest, question.semantics) if question.floor else None,
        seed=question.seed if question.mode == "cost" else None,
        **{
            name: getattr(question, name)
            for name in ("labels", "distances_m", "contexts", "prices", "decimals", "grid")
        },
    )
