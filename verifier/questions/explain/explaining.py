"""From a spec and confusion matrices to explanations: the numbers as `verify run` gives them, then why.

`explain_spec` is that story: every requirement is checked in every scenario, and its worst one is explained.
"""

import hashlib
import math
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.counterexamples.explanation import DEFAULT_SETTINGS, Explanation, explain
from verifier.analysis.counterexamples.patterns import DetectionError
from verifier.analysis.intervals.intervals import Measured
from verifier.analysis.objective import Objective
from verifier.analysis.sensitivity.occurrences import document_bins, occurrences
from verifier.analysis.sensitivity.priorities import column_shares, sensitivity
from verifier.analysis.sensitivity.state_map import map_variables
from verifier.analysis.settings import ExplainSettings
from verifier.base.budget import memory_limit
from verifier.base.errors import EngineError, InputError, Place, UsageError
from verifier.base.result import recorded
from verifier.checking.enclosure import AGREEMENT
from verifier.checking.process import StormProcess
from verifier.perception.confusion import ConfusionMatrices
from verifier.perception.confusion.bins import Bins
from verifier.perception.confusion.document import read_counts
from verifier.perception.confusion.matrices import Label, label_text
from verifier.perception.confusion.record import Record, read_record
from verifier.pipeline import Progress, checked_study, result_of
from verifier.questions.explain.explain_result import DetectionErrors, ExplainChoices, ExplainResult, Frame
from verifier.questions.explain.records import counted_record, explained_record
from verifier.study.case import Case, Study
from verifier.study.inputs import read_inputs, refuse_others
from verifier.study.options import MIX_ELSEWHERE, RunOptions, clock_of
from verifier.study.points import Point
from verifier.study.results import RequirementResult, RunInput, RunResult
from verifier.study.world_decisions import confirmed_decisions, objective_left
from verifier.systems.model import SystemModel

MOST_FRAMES = 5
"""Frames that are named for each type of detection error."""
MOST_TIED = 20
"""Equally bad scenarios among which the one that hangs most on the matrices is looked for."""


@dataclass(frozen=True, eq=False)
class Traced:
    """A record of the counting, with the bins of the document that it belongs to."""

    record: Record
    bins: Bins
    file: RunInput


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


def read_traced(record_path: str | Path, confusion_path: str | Path, *, boxes: bool = False) -> Traced:
    """The record, with its boxes where asked for, and the bins of the document; errors as the two readers."""
    record = read_record(record_path, boxes=boxes)
    digest = hashlib.sha256()
    with Path(record_path).open("rb") as stream:
        while block := stream.read(2**20):
            digest.update(block)
    return Traced(
        record, read_counts(confusion_path).bins, RunInput.of("record", str(record_path), digest.hexdigest())
    )


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
    if options.mix is not None:
        raise UsageError(MIX_ELSEWHERE)
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
            _with_frames(counted_record(kind, explanation, items), kind.report, study.matrices, options, traced)
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
    options.refuse_bounds_of_run("verify explain")
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


def _with_frames(
    counted: DetectionErrors,
    report: DetectionError,
    matrices: ConfusionMatrices,
    options: RunOptions,
    traced: Traced | None,
) -> DetectionErrors:
    """The kind with the frames in which it happened, where there is a record that can tell."""
    if traced is None:
        return counted
    record = traced.record
    rows = rows_behind(
        report.bin, matrices.labels[report.true], matrices.labels[report.predicted], matrices, options, traced
    )
    if len(rows) > counted.items:
        raise InputError(
            f"true label {counted.true} is reported as {counted.reported} {len(rows)} times in bin "
            f"{matrices.bin_text(report.bin)}, and {counted.items} times in the matrices",
            Place(record.file),
            "name the record of the counting that gave these matrices",
        )
    return replace(counted, in_record=len(rows), frames=tuple(_frame(record, row) for row in rows[:MOST_FRAMES]))


def rows_behind(
    place: int, true: Label, predicted: Label, matrices: ConfusionMatrices, options: RunOptions, traced: Traced
) -> NDArray[np.int64]:
    """The rows of a record that name the items of a cell: of the bin `place` of the matrices and two labels."""
    at = np.unravel_index(place, matrices.shape)
    kept = {variable.name: variable.bin_text(int(k)) for variable, k in zip(matrices.variables, at[1:], strict=True)}
    return occurrences(
        traced.record,
        traced.bins,
        document_bins(traced.bins, {**options.where, **kept}, None if options.canonical else int(at[0])),
        true,
        predicted,
        matrices.labelling,
        matrices.classes,
        -math.inf if options.score_threshold is None else options.score_threshold,
    )


def _frame(record: Record, row: NDArray[np.int64]) -> Frame:
    distance = float(record["distance_m"][row])
    return Frame(
        str(record["sequence"][row]),
        str(record["frame"][row]),
        None if math.isnan(distance) else distance,
        short_path(str(record["file"][row])),
        int(record["line"][row]),
        short_path(str(record["report_file"][row])),
        int(record["report_line"][row]),
    )


def short_path(path: str) -> str:
    """A file and its folder: enough to find it, and the same wherever the data lie."""
    return "/".join(PurePath(path).parts[-2:])
