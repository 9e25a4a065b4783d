"""From a spec and confusion matrices to explanations: the numbers as `verify run` gives them, then why.

`explain_spec` is that story: every requirement is checked in every scenario, and its worst one is explained.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from verifier.analysis.counterexamples.explanation import (
    DEFAULT_SETTINGS,
    Explanation,
    Kind,
    explain,
)
from verifier.analysis.intervals.intervals import Measured
from verifier.analysis.objective import Objective
from verifier.analysis.sensitivity.priorities import column_shares, sensitivity
from verifier.analysis.sensitivity.state_map import map_variables
from verifier.analysis.settings import ExplainSettings
from verifier.base.budget import memory_limit
from verifier.base.errors import EngineError, UsageError
from verifier.base.result import recorded
from verifier.checking.enclosure import AGREEMENT
from verifier.checking.process import StormProcess
from verifier.perception.confusion import ConfusionMatrices
from verifier.perception.confusion.matrices import label_text
from verifier.pipeline import Progress, checked_study, result_of
from verifier.questions.explain.explain_result import (
    DEVIATION_ASSUMES,
    ColumnRecord,
    DetectionErrors,
    ExplainChoices,
    Explained,
    ExplainResult,
    GradientRecord,
    Violation,
)
from verifier.questions.explain.frames import Traced, read_traced, with_frames
from verifier.study.case import Case, Study
from verifier.study.inputs import read_inputs, refuse_others
from verifier.study.options import RunOptions, clock_of
from verifier.study.points import Point, WorldDecisions
from verifier.study.results import RequirementResult, RunResult
from verifier.study.world_decisions import confirmed_decisions, objective_left
from verifier.systems.model import SystemModel

MOST_TIED = 20
"""Equally bad scenarios among which the one that hangs most on the matrices is looked for."""


def explain_spec(
    spec_path: str | Path,
    confusion_path: str | Path,
    options: RunOptions = RunOptions(),
    settings: ExplainSettings = DEFAULT_SETTINGS,
    record_path: str | Path | None = None,
    progress: Progress = iter,
    system: SystemModel | None = None,
) -> ExplainResult:
    """Check every requirement of a spec in every scenario, and explain the worst one of each.

    Args:
        spec_path, confusion_path, options, progress, system: as in `verify_spec`.
        record_path: the per-object record of the counting that gave the matrices, to name the frames.

    Raises:
        VerifierError: see `verifier.base.errors`; each says what to do.
    """
    options = options.by_default() if record_path is None else options
    with StormProcess() as storm, memory_limit(options.limits.memory_bytes):
        inputs = read_inputs(spec_path, confusion_path, options, system)
        traced = None if record_path is None else read_traced(record_path, confusion_path)
        return explained(Study.of(inputs, options), settings, storm, traced, progress)


def explained(
    study: Study,
    settings: ExplainSettings,
    storm: StormProcess | None,
    traced: Traced | None = None,
    progress: Progress = iter,
    run: RunResult | None = None,
) -> ExplainResult:
    """As `explain_spec`, for a study and a worker that runs; `run` is the run, if that is known, without a worker."""
    options = study.options
    refuse_others(study.requirements, "verify explain")
    if options.decimals is not None:
        raise UsageError("what a probability depends on is not computed for rounded transitions")
    _refuse_memory(options, traced)
    if settings.with_map:  # before anything is computed
        map_variables([variable.name for variable in study.inputs.model.variables], settings.variables)
    if run is None:
        assert storm is not None
        run = result_of(checked_study(study, storm, progress), options)
    # Whatever the rates are rates of: what is counted, and labelled more, are items.
    items = study.inputs.matrices(replace(options, confidence=None, point_weights="item"))
    names = tuple(label_text(label) for label in study.matrices.labels)
    told = []
    clock = clock_of(study.options, len(run.requirements))
    for result in run.requirements:
        with clock.running(f"explaining {result.name}"):
            point, explanation = _explain_worst(result, study, items, settings)
        counted = [
            with_frames(counted_record(kind, explanation, items), kind.report, study.matrices, options, traced)
            for kind in explanation.kinds
        ]
        world = confirmed_decisions(result, point, study)
        told.append(explained_record(result, point, explanation, counted, names, settings.rows, world))
    return recorded(
        ExplainResult,
        run,
        command=(),
        verdict=run.verdict,
        inputs=run.inputs if traced is None else (*run.inputs, traced.file),
        explain=recorded(ExplainChoices, settings, map=tuple(settings.variables) if settings.with_map else None),
        labels=names,
        bins=tuple(study.matrices.bin_text(index) for index in range(study.matrices.bin_count)),
        explanations=tuple(told),
    )


def _refuse_memory(options: RunOptions, traced: Traced | None) -> None:
    """Refuse what is not known of detectors with memory; UsageError."""
    if options.initial_context == "counted":
        raise UsageError("--initial-context counted: verify explain follows runs from one context: name another")
    options.refuse_what_a_run_alone_has("verify explain")
    if options.remembers and traced is not None:
        raise UsageError("--record names frames by bin, and with --memory causes are by context: leave out one")


def _explain_worst(
    result: RequirementResult, study: Study, items: ConfusionMatrices, settings: ExplainSettings
) -> tuple[Point, Explanation]:
    """The worst scenario of a requirement, explained; where the world decides, on the chain that it leaves.

    Of equally bad ones, as when a requirement is met for certain in several, it is the one whose probability hangs
    most on the matrices: there a better count could change it.
    """
    data = replace(study.measured, counts=items.counts)
    number = [requirement.name for requirement in study.requirements].index(result.name)
    tied, widest = _tied(result, study), -1.0
    for candidate in tied:
        placed, initial = study.place_of(result.planner, candidate)
        left = objective_left(placed, number)
        spread = _deviation(left, initial, data, settings) if len(tied) > 1 else 0.0
        if spread > widest:
            point, case, start, widest, objective = candidate, placed, initial, spread, left
    explanation = explain(
        objective,
        study.formulas[number],
        data,
        case.counts,
        start,
        satisfying=result.is_upper,
        settings=settings,
        max_states=study.options.engines.product_states,
    )
    if not math.isclose(explanation.sensitivity.probability, point.probability, rel_tol=0, abs_tol=AGREEMENT):
        raise EngineError(
            f"the adjoint solve gives {explanation.sensitivity.probability!r} for {result.name}, {point.scenario}; "
            f"Storm gives {point.probability!r}"
        )
    return point, explanation


def _tied(result: RequirementResult, study: Study) -> list[Point]:
    """The worst point, and of other cases one point each that is as bad; at most `MOST_TIED`.

    As bad is what the numerical bounds cannot tell from the worst.
    """
    tied: dict[Case, Point] = {}
    worst = result.worst_point
    for point in [worst, *result.points]:
        as_bad = point.lower <= worst.upper and point.upper >= worst.lower
        if as_bad and point.verdict is worst.verdict:
            tied.setdefault(study.place_of(result.planner, point)[0], point)
    return list(tied.values())[:MOST_TIED]


def _deviation(objective: Objective, start: int, data: Measured, settings: ExplainSettings) -> float:
    """Standard deviation of the probability from an initial state under the posterior, to first order."""
    derivatives = sensitivity(objective, data.rates, start)
    return column_shares(derivatives, data, settings.level, settings.prior).deviation


def explained_record(
    result: RequirementResult,
    point: Point,
    explanation: Explanation,
    counted: Sequence[DetectionErrors],
    names: Sequence[str],
    most: int,
    world: WorldDecisions | None = None,
) -> Explained:
    """The record of one requirement.

    Args:
        result: over all its scenarios.
        point: the scenario explained: the worst.
        explanation: the explanation.
        counted: the types of detection errors of the explanation, in its order.
        names: texts of the labels of the matrices.
        most: corrections of single kinds that are told.
        world: what a world that decides does there.
    """
    return recorded(
        Explained,
        result,
        verdict=result.verdict,
        world=world,
        point=point,
        asks_about=tuple(sorted(explanation.asked)),
        violation=recorded(
            Violation,
            explanation,
            satisfies_the_formula=explanation.satisfying,
            probability=explanation.violation,
            error=explanation.violation_error,
            detection_errors=tuple(counted),
        ),
        perfect_perception=explanation.fixes.perfect,
        fixes=explanation.fixes.single[:most],
        moves=explanation.moves,
        label_more=_columns(explanation, names),
        posterior_deviation=explanation.columns.deviation,
        posterior_deviation_assumes=DEVIATION_ASSUMES,
        gradient=_gradient(explanation, names),
        jumps=tuple(
            (at, predicted, true) for at, predicted, true in np.argwhere(explanation.sensitivity.jumps).tolist()
        ),
        map=explanation.map,
    )


def counted_record(kind: Kind, explanation: Explanation, matrices: ConfusionMatrices) -> DetectionErrors:
    """A type of detection error of an explanation, as the matrices count it."""
    report = kind.report
    cell = (report.bin, report.predicted, report.true)
    return recorded(
        DetectionErrors,
        kind,
        bin=report.bin,
        true=label_text(matrices.labels[report.true]),
        reported=label_text(matrices.labels[report.predicted]),
        rate=float(explanation.sensitivity.rates[cell]),
        items=int(matrices.counts[cell]),
    )


def _columns(explanation: Explanation, names: Sequence[str]) -> tuple[ColumnRecord, ...]:
    shares = explanation.columns
    return tuple(
        ColumnRecord(
            int(shares.bins[k]),
            names[shares.columns[k]],
            int(shares.items[k]),
            float(shares.share[k]),
            float(shares.p_range[k]),
            names[shares.cell[k]],
        )
        for k in range(len(shares.bins))
    )


def _gradient(explanation: Explanation, names: Sequence[str]) -> tuple[GradientRecord, ...]:
    sensitivity = explanation.sensitivity
    change = sensitivity.against(np.arange(len(names)))
    return tuple(
        GradientRecord(at, names[true], tuple(change[at, :, true].tolist()))
        for at, true in sensitivity.columns.tolist()
    )
