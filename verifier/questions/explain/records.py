"""An explanation as a part of the document of `verify explain`: numbers of bins and labels become names."""

from collections.abc import Mapping, Sequence

import numpy as np

from verifier.analysis.counterexamples.explanation import Explanation, Kind, ToldCause, ToldPattern
from verifier.analysis.counterexamples.patterns import DetectionError
from verifier.analysis.sensitivity.state_map import StateMap
from verifier.base.result import plain, recorded
from verifier.perception.confusion import ConfusionMatrices
from verifier.perception.confusion.matrices import label_text
from verifier.questions.explain.explain_result import (
    DEVIATION_ASSUMES,
    CauseRecord,
    ColumnRecord,
    CorrectionRecord,
    DetectionErrors,
    Explained,
    FixRecord,
    GradientRecord,
    MapRecord,
    MoveRecord,
    PatternRecord,
    Violation,
)
from verifier.study.points import Point, WorldDecisions
from verifier.study.results import RequirementResult


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
    number = {kind.report: place for place, kind in enumerate(explanation.kinds)}
    return recorded(
        Explained,
        result,
        verdict=result.verdict,
        world=world,
        point=point,
        asks_about=tuple(sorted(explanation.asked)),
        violation=_violation(explanation, counted, number),
        perfect_perception=explanation.fixes.perfect,
        fixes=tuple(
            recorded(FixRecord, fix, true=names[fix.true], reported=names[fix.predicted])
            for fix in explanation.fixes.single[:most]
        ),
        moves=tuple(
            recorded(
                MoveRecord,
                move,
                true=names[move.true],
                from_=names[move.source],
                to=names[move.target],
                rate_from=move.available,
                rate_to=move.returning,
            )
            for move in explanation.moves
        ),
        label_more=_columns(explanation, names),
        posterior_deviation=explanation.columns.deviation,
        posterior_deviation_assumes=DEVIATION_ASSUMES,
        gradient=_gradient(explanation, names),
        jumps=tuple(
            (at, predicted, true) for at, predicted, true in np.argwhere(explanation.sensitivity.jumps).tolist()
        ),
        map=None if explanation.map is None else _map(explanation.map),
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


def _violation(
    explanation: Explanation, counted: Sequence[DetectionErrors], number: Mapping[DetectionError, int]
) -> Violation:
    return recorded(
        Violation,
        explanation,
        satisfies_the_formula=explanation.satisfying,
        probability=explanation.violation,
        error=explanation.violation_error,
        detection_errors=tuple(counted),
        causes=tuple(_cause(cause, number, explanation.violation) for cause in explanation.causes),
        corrections=tuple(
            CorrectionRecord(tuple(number[report] for report in best.reports), best.corrected)
            for best in explanation.corrections
        ),
        patterns=tuple(_pattern(pattern, number, explanation.violation) for pattern in explanation.patterns),
    )


def _cause(told: ToldCause, number: Mapping[DetectionError, int], total: float) -> CauseRecord:
    cause = told.cause
    reports = tuple(number[report] for report in cause.reports)
    return CauseRecord(reports, cause.others, cause.probability, cause.probability / total, told.corrected)


def _pattern(told: ToldPattern, number: Mapping[DetectionError, int], total: float) -> PatternRecord:
    steps = tuple(
        tuple(sorted(tuple(sorted(number[report] for report in reports)) for reports in alternatives))
        for alternatives in told.pattern.steps
    )
    probability = told.pattern.probability
    return PatternRecord(steps, probability, probability / total, told.members, told.complete)


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


def _map(state_map: StateMap) -> MapRecord:
    values = tuple(tuple(axis.tolist()) for axis in state_map.values)
    return MapRecord(state_map.variables, values, state_map.largest, plain(state_map.probability))
