"""The whole story: from a spec and confusion matrices to verdicts.

    spec + model + matrices -> study of cases -> skeleton -> chain -> both engines -> evidence -> verdicts

`verify_spec` is that story; `check_case` is its middle, from a skeleton to what both engines say.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from verifier.analysis.channel_test import Channel
from verifier.analysis.confidence import Confidence, Data, confidence
from verifier.analysis.robust.any_dependence import any_dependence
from verifier.analysis.robust.step_counting import refuse_uncountable
from verifier.analysis.step_counts import StepCount
from verifier.base.blocks import HERE, Pool
from verifier.base.budget import Clock, memory_limit
from verifier.base.errors import EngineError, LimitError, NoAnswerError
from verifier.chains import DecisionProcess
from verifier.checking.enclosure import TwoEngineValues
from verifier.checking.process import StormProcess, own_storm
from verifier.language.expressions import to_text
from verifier.study.case import Case, Study
from verifier.study.collection import (
    CheckedCase,
    Judging,
    collected,
    interval_remarks,
    unanswered_requirement,
    unbounded_remarks,
    with_plans,
)
from verifier.study.inputs import read_inputs, refuse_others
from verifier.study.model_checks import look_at, model_remarks
from verifier.study.optima import StrategyRange, answers_of, optima_of, strategy_ranges
from verifier.study.options import RunOptions, clock_of
from verifier.study.profile import Profile, profiles
from verifier.study.provenance import (
    case_remarks,
    grid_remarks,
    input_files,
    matrices_record,
    noted,
    program_versions,
    run_remarks,
    run_settings,
)
from verifier.study.results import RunResult, Unanswered
from verifier.study.world_decisions import with_decisions
from verifier.systems.model import SystemModel

Progress: TypeAlias = Callable[[list[Case]], Iterable[Case]]
AnyError = TypeVar("AnyError", bound=EngineError | LimitError)


def verify_spec(
    spec_path: str | Path,
    confusion_path: str | Path,
    options: RunOptions = RunOptions(),
    progress: Progress = iter,
    system: SystemModel | None = None,
    scheduler: str | None = None,
) -> RunResult:
    """Check every requirement of a spec in every scenario.

    Args:
        spec_path: a `.ltl` file; it names the system model.
        confusion_path: a confusion document.
        options: see `RunOptions`.
        progress: wraps the list of cases, for a progress bar.
        system: the model that the spec names, with further planners.
        scheduler: who computes, see `Pool`.

    Raises:
        VerifierError: see `verifier.base.errors`; each says what to do.
    """
    options = options.by_default()
    # Storm starts at once, so that it loads while files are read.
    with StormProcess() as storm, Pool(scheduler, options.limits.memory_bytes) as pool:
        study = Study.of(read_inputs(spec_path, confusion_path, options, system), options)
        return verified(study, storm, progress, pool=pool)


def verified(
    study: Study, storm: StormProcess, progress: Progress = iter, *, partial: bool = False, pool: Pool = HERE
) -> RunResult:
    """As `verify_spec`, for a study and a worker that runs; `partial` and `pool` as for `checked_study`."""
    with memory_limit(study.options.limits.memory_bytes):
        return result_of(checked_study(study, storm, progress, partial=partial, pool=pool), study.options)


@dataclass(frozen=True, eq=False)
class CheckedStudy:
    """What was computed in every case of a study; it does not depend on what decides verdicts.

    Attributes:
        study: with the requirements that have an answer in all cases.
        cases: what both engines say in each of them.
        evidence: for each case how sure the data make that; None where nothing says.
        storm: version of the model checker.
        unanswered: the requirements that have no answer.
        profiles: of the requirements that ask for a mean, by planner and name.
    """

    study: Study
    cases: tuple[CheckedCase, ...]
    evidence: tuple[tuple[Confidence, ...] | None, ...]
    storm: str
    unanswered: tuple[Unanswered, ...] = ()
    profiles: Mapping[tuple[str, str], Profile] = field(default_factory=dict)


def checked_study(
    study: Study, storm: StormProcess, progress: Progress = iter, *, partial: bool = False, pool: Pool = HERE
) -> CheckedStudy:
    """Both engines' values in every case, and how sure the data make them.

    Args:
        study: what is asked.
        storm, progress: as for `verified`.
        partial: go on without the requirements that have no answer within the limits, as long as one has.
        pool: who computes; elsewhere each case has a Storm of its own, and is built there again.

    Raises:
        VerifierError: as `verify_spec`; NoAnswerError where there is no answer.
    """
    begun, clock = time.monotonic(), clock_of(study.options, len(study.requirements) * len(study.cases))
    every = list(study.cases)
    checking = functools.partial(checked_parts, study, storm if pool.is_here else None, partial)
    cases = tuple(map(put_back, progress(every), pool.map(checking, range(len(every)))))
    study, cases, unanswered = _answered(study, cases, partial=partial)
    clock.spend(time.monotonic() - begun)
    evidence: tuple[tuple[Confidence, ...] | None, ...] = (None,) * len(cases)
    if study.bounded:
        with clock.running("intervals and bounds over all matrices: --point-only leaves them out. It"):
            judged = pool.map(functools.partial(_evidence_of, study, study.data), range(len(cases)))
            evidence = tuple(own for _, own in zip(progress(list(study.cases)), judged, strict=True))
            weighed = profiles(study, study.data)
    else:
        weighed = profiles(study, None)
    if study.options.dependence_free:
        from verifier.study.free import free_bounds  # linear programs take long to load

        with clock.running("bounds whatever the dependence: --horizon bounds their size. They"):
            free = tuple(map(free_bounds, progress([checked_case.case for checked_case in cases])))
        cases = tuple(replace(checked_case, free=own) for checked_case, own in zip(cases, free, strict=True))
    return CheckedStudy(study, cases, evidence, storm.storm_version(), unanswered, weighed)


def checked_parts(study: Study, storm: StormProcess | None, partial: bool, number: int) -> dict[str, Any]:
    """What is found of a case, without the case itself, for `put_back`; by the own Storm of who gets none."""
    checked = check_case(study.cases[number], storm or own_storm(), partial=partial)
    return {field.name: getattr(checked, field.name) for field in fields(checked) if field.name != "case"}


def put_back(case: Case, sent: Mapping[str, Any]) -> CheckedCase:
    """What was found of a case, with the case."""
    numbers = range(len(case.study.requirements))
    return CheckedCase(case.asking(number for number in numbers if number not in sent["refused"]), **sent)


def _evidence_of(study: Study, data: Data | None, number: int) -> tuple[Confidence, ...] | None:
    """How sure the data, which are those of all cases, make every requirement of one."""
    settings = study.options.confidence
    return None if data is None or settings is None else confidence(study.cases[number].objectives, data, settings)


def check_case(case: Case, storm: StormProcess, *, partial: bool = False) -> CheckedCase:
    """Build the chain of one case and have both engines check every requirement on it.

    Args:
        case: of a study.
        storm: a running worker.
        partial: accept requirements without an answer within the limits; see `CheckedCase.refused`.

    Raises:
        VerifierError: as `build_skeleton` and `answers_within_limits`; NoAnswerError for a requirement without an
            answer, unless `partial`.
    """
    study, conditions = case.study, case.study.conditions
    options = study.options
    clock = Clock(options.engines.timeout_s)  # building the chain takes time from each formula
    begun = time.monotonic()
    with clock.running("building the chain"):
        model = case.process(conditions) if case.decides else case.chain(conditions)
    with _explained(case):
        if isinstance(model, DecisionProcess):
            answers = optima_of(case, model, conditions, storm, clock.spent_s)
        else:
            answers = answers_of(case, model, conditions, storm, clock.spent_s)
    refused = {number: _told(case, answer) for number, answer in enumerate(answers) if isinstance(answer, LimitError)}
    if refused and not partial:
        raise next(iter(refused.values()))
    values = tuple(answer for answer in answers if not isinstance(answer, LimitError))
    case = case.asking(number for number in range(len(answers)) if number not in refused)
    strategies: tuple[StrategyRange, ...] = ()
    if options.strategies and case.planner.kind == "synthesis":
        refuse_others(case.study.requirements, "--strategies")
        with _explained(case):
            strategies = strategy_ranges(case, storm)
    look, whole = look_at(case), clock_of(study.options, len(study.requirements))
    whole.spend(time.monotonic() - begun)
    with whole.running(f"{case}: looking for vacuous requirements"):
        vacuity, notes = tuple(finding.vacuity for finding in case.findings), case.notes
    whatever, unknown = _whatever_predicted(case, values, whole)
    remarks = (*case_remarks(case, values, strategies), *unknown)
    return CheckedCase(case, values, whatever, strategies, remarks, vacuity, notes, refused, look)


def _whatever_predicted(
    case: Case, values: Sequence[TwoEngineValues], clock: Clock
) -> tuple[tuple[tuple[Literal[0, 1] | None, ...], ...], list[str]]:
    """For each requirement and initial state the probability, 0 or 1, where it does not depend on what the detector
    predicts; and what was not found out."""
    whatever, unknown = [], []
    for number, (requirement, value) in enumerate(zip(case.study.requirements, values, strict=True)):
        try:
            with clock.running("looking at all detectors"):
                whatever.append(_whatever(case, number, value))
        except (NoAnswerError, MemoryError):
            whatever.append((None,) * len(value.probability))
            unknown.append(
                f"{case}: {requirement.name}: not found out within the limits: whether the detector matters at all"
            )
    return tuple(whatever), unknown


def _whatever(case: Case, number: int, values: TwoEngineValues) -> tuple[Literal[0, 1] | None, ...]:
    """Only what is 0 or 1 with the given matrices can be; rounded transitions are no probabilities of the system.
    Where steps are counted there is no product to tell, and errors that last no longer are an assumption."""
    options = case.study.options
    told = case.study.requirements[number].is_plain and not values.counted and options.decimals is None
    if options.persist is not None or not told or not np.isin(values.probability, (0, 1)).any():
        return (None,) * len(values.probability)
    bounds = any_dependence(case.objective(number), case.study.measured)
    return tuple(low if low == high else None for low, high in bounds.tolist())


@contextlib.contextmanager
def _explained(case: Case) -> Iterator[None]:
    """Say where an engine failed, and what the proposition names in its message stand for."""
    try:
        yield
    except (EngineError, LimitError) as error:
        raise _told(case, error) from None


def _told(case: Case, error: AnyError) -> AnyError:
    named = {name: node for name, node in case.study.conditions.items() if name in str(error)}
    legend = "".join(f"\n  {name} is {to_text(node)}" for name, node in named.items())
    return type(error)(f"{case}: {error}{legend}")


def _answered(
    study: Study, cases: Sequence[CheckedCase], *, partial: bool
) -> tuple[Study, tuple[CheckedCase, ...], tuple[Unanswered, ...]]:
    """Study and cases with the requirements that are answered everywhere, and the others.

    Raises:
        NoAnswerError: there are others, and `partial` is not asked for or nothing else is left.
    """
    reasons: dict[int, LimitError] = {}
    for case in cases:
        reasons = {**(_uncounted(case) if study.bounded else {}), **case.refused, **reasons}
    if reasons and (not partial or len(reasons) == len(study.requirements)):
        raise next(iter(reasons.values()))
    unanswered = tuple(
        unanswered_requirement(study.requirements[number], cases, number, str(reason))
        for number, reason in sorted(reasons.items())
    )
    kept = study.asking(number for number in range(len(study.requirements)) if number not in reasons)
    return kept, tuple(case.without(reasons) for case in cases), unanswered


def _uncounted(checked: CheckedCase) -> dict[int, LimitError]:
    """Number of a requirement whose steps are counted for the measured matrix only -> why not for all."""
    refusals: dict[int, LimitError] = {}
    for place, (number, values) in enumerate(zip(checked.answered, checked.values, strict=True)):
        if not values.counted:
            continue
        alone = checked.case.asking([place])
        try:
            if alone.window(0) is None:
                raise NoAnswerError("more than the probability of one formula is asked, or the world decides")
            region = None if alone.study.data is None else alone.study.data.region(alone.skeleton)
            (objective,) = alone.objectives
            if region is not None and isinstance(objective, StepCount):
                refuse_uncountable(objective, region)
        except NoAnswerError as error:
            name, reason = alone.study.requirements[0].name, str(error).partition("\n")[0]
            refusals[number] = NoAnswerError(
                f"{name}: its steps are counted for the measured matrix, and cannot be for all: {reason}",
                hint="--point-only gives the number for the measured matrix alone; or shorten the windows",
            )
    return refusals


def result_of(checked: CheckedStudy, options: RunOptions) -> RunResult:
    """Verdicts, and what would decide more.

    Args:
        checked: what was computed under these options, or under ones that differ in what decides verdicts only.
        options: of the run.
    """
    study, inputs = checked.study, checked.study.inputs
    settings = run_settings(study, options, study.data)
    judging = Judging(settings, study.tests)
    results = collected(study.requirements, checked.cases, checked.evidence, judging, checked.profiles)
    if settings.verdict_from == "bounds":
        results = with_plans(results, study)
    if options.strategies and inputs.model.decides:
        results = with_decisions(results, study)
    return RunResult(
        title=inputs.title,
        inputs=input_files(inputs.spec, inputs.model, inputs.confusion),
        settings=settings,
        requirements=results,
        versions={**program_versions(), "storm": checked.storm},
        remarks=(
            *interval_remarks(results),
            *unbounded_remarks(results, settings),
            *run_remarks(
                inputs.confusion.matrices,
                options,
                [text for checked_case in checked.cases for text in checked_case.case.assumed],
                [
                    *grid_remarks(study.grid, options.false_positives, study.matrices),
                    *model_remarks([look for look in (case.look for case in checked.cases) if look is not None]),
                    *(text for checked_case in checked.cases for text in checked_case.remarks),
                    *noted((checked_case.case, checked_case.notes) for checked_case in checked.cases),
                ],
                study.data,
                study.tests,
                study.divided,
            ),
            *(requirement.remark for requirement in checked.unanswered),
        ),
        matrices=matrices_record(inputs.confusion, study.divided),
        channel=Channel(classes=study.tests),
        unanswered=checked.unanswered,
    )
