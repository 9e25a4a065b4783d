"""What an assessment found, as values: frozen and complete; `verifier.robustness.assessment.document` tells them.

The metamorphic relation: is the change of performance small enough for the distance of the data?

Wozniak, Segura and Mazo 2024, Sec. 5.8, eq. of Task 7 and Box 7, with x the source and x' the target:

    for all (x, x'):  |P_x - P_x'| <= epsilon(d(x, x'))

The detector is robust only if this holds for every performance metric that was chosen, and under every distance that
has a tolerance. The relation is two-sided, as the paper has it: a performance that *rises* by more than epsilon
violates it as well, and the outcome says so.

"Globally robust" there means for all pairs of sets of circumstances; what is checked are the pairs that were given.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from verifier.base.documents import Count, InputFile
from verifier.base.result import Result
from verifier.checking.verdicts import Verdict, worst_verdict
from verifier.robustness.assessment.definition import Assessment, DataSet
from verifier.robustness.assessment.degradation import CriterionName, Degradation, SureOrder, in_order, surely_before
from verifier.robustness.assessment.measures import DatasetDistance, DistanceRule
from verifier.robustness.assessment.plan import Plan
from verifier.robustness.brackets import Break, Criterion, break_of
from verifier.robustness.detection_metrics import Performance


@dataclass(frozen=True)
class Outcome:
    """The relation for one metric, one distance and one target data set.

    Attributes:
        metric, distance_name: what was compared, and how far apart the data are by what.
        source, target: P_x and P_x'.
        distance: d.
        scale: what the tolerance is multiplied by (Circumstance.tolerance_scale).
        tolerance: epsilon(d), times the scale.
    """

    metric: str
    distance_name: str
    source: Fraction
    target: Fraction
    distance: Fraction
    scale: Fraction
    tolerance: Fraction

    @property
    def change(self) -> Fraction:
        """M18, |P_x - P_x'|."""
        return abs(self.source - self.target)

    @property
    def margin(self) -> Fraction:
        """What is left of the tolerance; negative where the relation is violated."""
        return self.tolerance - self.change

    @property
    def holds(self) -> bool:
        """Whether the relation holds."""
        return self.margin >= 0

    @property
    def verdict(self) -> Verdict:
        """Satisfied or violated."""
        return Verdict.SATISFIED if self.holds else Verdict.VIOLATED

    @property
    def rises(self) -> bool:
        """Whether performance is better on the target data than on the source data."""
        return self.target > self.source


def outcomes(
    metrics: Sequence[str],
    source: Performance,
    target: Performance,
    rules: Mapping[str, DistanceRule],
    distances: Mapping[str, DatasetDistance],
    scale: Fraction,
) -> Iterator[Outcome]:
    """Every metric under every distance that has a tolerance and a value, metrics first.

    Raises:
        ValueError: a metric that one of the two performances does not have.
    """
    for name in metrics:
        for performance in (source, target):
            if name not in performance.values:
                raise ValueError(f"no value of {name}")
        for rule in rules.values():
            if rule.tolerance is None or rule.name not in distances:
                continue
            away = distances[rule.name].distance
            if away is None:
                continue
            yield Outcome(
                name, rule.name, source.values[name], target.values[name], away, scale, rule.tolerance(away) * scale
            )


@dataclass(frozen=True)
class TargetResult:
    """One target data set against the source.

    Attributes:
        distances: by name, given or computed.
        outcomes: of the relation, per metric and distance.
        unchecked: distances with a tolerance that the relation could not be checked with, for want of a value.
    """

    target: DataSet
    distances: Mapping[str, DatasetDistance]
    outcomes: tuple[Outcome, ...]
    unchecked: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Satisfied only if the relation holds for every metric and distance, and could be checked for all."""
        left = [Verdict.INCONCLUSIVE] if self.unchecked else []
        return worst_verdict([*left, *(outcome.verdict for outcome in self.outcomes)])


@dataclass(frozen=True)
class DegradationResult:
    """What the levels of a disturbance showed.

    Attributes:
        criteria: with one value per level.
        settings: how the requirements were checked, by name; None where none were.
        remarks: what a reader must know to read the numbers rightly.
    """

    degradation: Degradation
    criteria: tuple[Criterion, ...]
    inputs: tuple[InputFile, ...] = ()
    settings: Mapping[str, Any] | None = None
    remarks: tuple[str, ...] = ()

    @property
    def levels(self) -> tuple[float, ...]:
        """From the mildest on."""
        return tuple(level.at for level in self.degradation.levels)

    @property
    def breaks(self) -> tuple[Break, ...]:
        """One per criterion."""
        return tuple(break_of(criterion, self.levels, self.degradation.scale) for criterion in self.criteria)

    @property
    def seen(self) -> tuple[tuple[CriterionName, ...], ...]:
        """Those that break, grouped: who saw it first, who next."""
        return in_order(self.breaks, self.levels)

    @property
    def surely_before(self) -> tuple[SureOrder, ...]:
        """Pairs of which the number of images leaves no doubt."""
        return surely_before(self.criteria)


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
class SystemResult:
    """Everything found about one system.

    Attributes:
        targets: in the order of the file, those of sweeps last.
        plan: of the follow-up test cases, where one was asked for.
        degradation: where one was asked for.
        remarks: what a reader must know to read the numbers rightly.
        made: what was made here; None where all data were given.
    """

    assessment: Assessment
    targets: tuple[TargetResult, ...]
    plan: Plan | None = None
    degradation: DegradationResult | None = None
    remarks: tuple[str, ...] = ()
    made: MadeHere | None = None

    @property
    def verdict(self) -> Verdict:
        """The worst over the target data sets; no target where no tolerance was given."""
        return worst_verdict(target.verdict for target in self.targets)


@dataclass(frozen=True, repr=False)
class AssessmentResult(Result):
    """Everything one `verify assess` found."""

    title: str
    inputs: tuple[InputFile, ...]
    systems: tuple[SystemResult, ...]
    versions: Mapping[str, str]

    TOLD = "verifier.telling.robustness:assess_tables"
    DRAWN = "verifier.telling.figures.robustness:assess_figure"
    NAMED_BY = ("system", "data_set", "metric", "distance_by")
    METRICS = ("change", "distance", "tolerance")
    WRITTEN = "verifier.robustness.assessment.document:assess_document"

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
                        "system": system.assessment.title,
                        "data_set": target.target.name,
                        "metric": outcome.metric,
                        "change": float(outcome.change),
                        "distance_by": outcome.distance_name,
                        "distance": float(outcome.distance),
                        "tolerance": float(outcome.tolerance),
                        "verdict": outcome.verdict.value,
                    }

    @property
    def verdict(self) -> Verdict:
        """The worst over the systems."""
        return worst_verdict(system.verdict for system in self.systems)
