"""The document of an assessment: byte-stable, without times, absolute paths and user names."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias

from verifier.base.documents import Count, Extended, InputFile, Limits, Magnitude, Share
from verifier.base.result import Result, recorded
from verifier.checking.verdicts import Verdict, worst_verdict
from verifier.robustness.assessment.circumstances import Circumstance, Counted, Grade, Scaling, priorities
from verifier.robustness.assessment.definition import Assessment, DataSet, Sweep
from verifier.robustness.assessment.degradation import (
    CriterionName,
    Degradation,
    SureOrder,
    in_order,
    surely_before,
)
from verifier.robustness.assessment.measures import DatasetDistance, DistanceRule, Outcome
from verifier.robustness.assessment.plan import Occurrence, Plan, PlanSummary
from verifier.robustness.brackets import Break, Criterion, Scale, break_of

Performance: TypeAlias = Mapping[str, Count | Magnitude]
"""Metric -> value in 0..1; TP, FP and FN are counts."""


@dataclass(frozen=True)
class CircumstanceRecord:
    """As `verifier.robustness.assessment.circumstances.Circumstance`; None for what nobody stated."""

    name: str
    description: str
    measure: Annotated[str, Limits(pattern="^(probability|relative frequency)$")]
    frequency: Share | None
    source_frequency: Share | None
    missing: Share | None
    exposure: Grade | None
    likelihood: Grade | None
    severity: Grade | None
    significance: Annotated[int, Limits(ge=1, le=125)] | None
    tolerance_scale: Annotated[float, Limits(gt=0)]
    transformation: str | None
    part_of: tuple[str, ...]
    counted: Counted | None = None
    source_counted: Counted | None = None


@dataclass(frozen=True)
class TolerancePiece:
    """A straight line of the accepted change over the distance, up to a distance; None for all."""

    slope: float
    constant: float
    up_to: float | None


@dataclass(frozen=True)
class RuleRecord:
    """A distance, how it is measured, and the change of performance that is accepted."""

    name: str
    measure: str
    tolerance: tuple[TolerancePiece, ...] | None
    extractor: str | None = None


@dataclass(frozen=True)
class SourceRecord:
    """The source data."""

    performance: Performance | None


@dataclass(frozen=True)
class DistanceRecord:
    """As `verifier.robustness.assessment.measures.DatasetDistance`."""

    distance: Magnitude | None
    similarity: float | None
    given: bool
    pairs: Annotated[int, Limits(ge=1)] | None
    deviation: Magnitude | None


@dataclass(frozen=True)
class TargetRecord:
    """One target data set against the source."""

    name: str
    circumstances: tuple[str, ...]
    verdict: Verdict
    performance: Performance | None
    distances: Mapping[str, DistanceRecord]
    unchecked: tuple[str, ...]
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class SweepRecord:
    """A parameter of a transformation, its settings, and the target data set of each."""

    name: str
    parameter: str
    settings: tuple[float, ...]
    targets: tuple[str, ...]


@dataclass(frozen=True)
class CriterionRecord(Criterion):
    """A criterion, and where it breaks."""

    break_: Break


@dataclass(frozen=True)
class DegradationRecord:
    """What the levels of a disturbance showed, from the mildest on.

    Attributes:
        settings: how the requirements were checked, by name; None where none were.
        seen: the criteria that fail, grouped by the first level where they do; the first group saw it first.
    """

    parameter: str
    unit: str
    scale: Scale
    levels: Annotated[tuple[Extended, ...], Limits(min_length=2)]
    inputs: tuple[InputFile, ...]
    settings: Mapping[str, Any] | None
    remarks: tuple[str, ...]
    criteria: tuple[CriterionRecord, ...]
    seen: tuple[tuple[CriterionName, ...], ...]
    surely_before: tuple[SureOrder, ...]


@dataclass(frozen=True)
class MadeHere:
    """What was made for this assessment, and with what.

    Attributes:
        detector: the identity of the one that was run; None where none was.
        lowest_score: from which score on a detection counts; None where every detection does, or none was run.
    """

    detector: Mapping[str, Any] | None
    lowest_score: float | None
    follow_up_images: Count


@dataclass(frozen=True)
class SystemRecord:
    """Everything found about one system; its targets are in the order of the file, those of sweeps last."""

    key: str
    title: str
    citation: str
    verdict: Verdict
    remarks: tuple[str, ...]
    viewpoint: str
    perspectives: Mapping[str, tuple[str, ...]]
    occurrence: Occurrence
    circumstances: tuple[CircumstanceRecord, ...]
    priorities: tuple[str, ...]
    metrics: tuple[str, ...]
    rules: tuple[RuleRecord, ...]
    source: SourceRecord
    targets: tuple[TargetRecord, ...]
    sweeps: tuple[SweepRecord, ...]
    plan: PlanSummary | None
    made: MadeHere | None
    degradation: DegradationRecord | None
    tolerance_scaling: Scaling = "stated"


@dataclass(frozen=True, kw_only=True, repr=False)
class AssessResult(Result):
    """Everything one `verify assess` found; `grid` names each system with its data sets, none of which may be left
    out."""

    schema: ClassVar[str] = "verifier.assess"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    title: str
    verdict: Verdict
    inputs: tuple[InputFile, ...]
    versions: Mapping[str, str]
    grid: Mapping[str, tuple[str, ...]]
    systems: Annotated[tuple[SystemRecord, ...], Limits(min_length=1)]

    TOLD = "verifier.telling.robustness:assess_tables"
    DRAWN = "verifier.telling.figures.robustness:assess_figure"
    NAMED_BY = ("system", "data_set", "metric", "distance_by")
    METRICS = ("change", "distance", "tolerance")

    @property
    def headline(self) -> str:
        """Title and verdict."""
        return f"{self.title}: {self.verdict.value}"

    @property
    def remarks(self) -> tuple[str, ...]:  # type: ignore[override]
        """Those of all systems."""
        return tuple(remark for system in self.systems for remark in system.remarks)

    def rows(self) -> Iterator[dict[str, str | float]]:
        """One row per system, data set and metric that was compared with a tolerance."""
        for system in self.systems:
            for target in system.targets:
                for outcome in target.outcomes:
                    yield {
                        "system": system.title,
                        "data_set": target.name,
                        "metric": outcome.metric,
                        "change": outcome.change,
                        "distance_by": outcome.distance_name,
                        "distance": outcome.distance,
                        "tolerance": outcome.tolerance,
                        "verdict": outcome.verdict.value,
                    }


def system_record(
    given: Assessment,
    targets: tuple[TargetRecord, ...],
    plan: Plan | None,
    degradation: DegradationRecord | None,
    made: MadeHere | None,
    remarks: tuple[str, ...],
) -> SystemRecord:
    """What was found about one system; its verdict is the worst over the target data sets."""
    return recorded(
        SystemRecord,
        given,
        verdict=worst_verdict(target.verdict for target in targets),
        remarks=remarks,
        made=made,
        circumstances=tuple(map(_circumstance, given.circumstances)),
        priorities=tuple(priority.name for priority in priorities(given.circumstances)),
        rules=tuple(recorded(RuleRecord, rule, tolerance=_tolerance(rule)) for rule in given.rules.values()),
        source=SourceRecord(_performance(given.source)),
        targets=targets,
        sweeps=tuple(map(_sweep, given.sweeps)),
        plan=None if plan is None else plan.summary,
        degradation=degradation,
    )


def _circumstance(circumstance: Circumstance) -> CircumstanceRecord:
    return recorded(
        CircumstanceRecord,
        circumstance,
        **{name: getattr(circumstance.risk, name, None) for name in ("exposure", "likelihood", "severity")},
        transformation=None if circumstance.transformation is None else str(circumstance.transformation),
    )


def _tolerance(rule: DistanceRule) -> tuple[TolerancePiece, ...] | None:
    if rule.tolerance is None:
        return None
    return tuple(recorded(TolerancePiece, piece) for piece in rule.tolerance.pieces)


def _performance(data: DataSet) -> Performance | None:
    if data.performance is None:
        return None
    return {**data.performance.counts, **{name: float(value) for name, value in data.performance.values.items()}}


def _sweep(sweep: Sweep) -> SweepRecord:
    names = tuple(target.name for target in sweep.targets)
    return recorded(SweepRecord, sweep, settings=tuple(map(float, sweep.settings)), targets=names)


def target_record(
    target: DataSet,
    distances: Mapping[str, DatasetDistance],
    outcomes: tuple[Outcome, ...] = (),
    unchecked: tuple[str, ...] = (),
) -> TargetRecord:
    """One target data set against the source.

    Its verdict is "satisfied" only if the relation holds for every metric and distance, and could be checked for all.
    """
    left = [Verdict.INCONCLUSIVE] if unchecked else []
    return recorded(
        TargetRecord,
        target,
        verdict=worst_verdict([*left, *(outcome.verdict for outcome in outcomes)]),
        performance=_performance(target),
        distances={name: recorded(DistanceRecord, distance) for name, distance in distances.items()},
        unchecked=unchecked,
        outcomes=outcomes,
    )


def degradation_record(
    asked: Degradation,
    criteria: Sequence[Criterion],
    inputs: tuple[InputFile, ...],
    settings: Mapping[str, Any] | None,
    remarks: tuple[str, ...],
) -> DegradationRecord:
    """What the levels of a disturbance showed: with where each criterion breaks, and which saw it first."""
    levels = [level.at for level in asked.levels]
    breaks = [break_of(criterion, levels, asked.scale) for criterion in criteria]
    return recorded(
        DegradationRecord,
        asked,
        levels=tuple(levels),
        inputs=inputs,
        settings=settings,
        remarks=remarks,
        criteria=tuple(
            recorded(CriterionRecord, criterion, break_=own) for criterion, own in zip(criteria, breaks, strict=True)
        ),
        seen=in_order(criteria, breaks, levels),
        surely_before=surely_before(criteria),
    )
