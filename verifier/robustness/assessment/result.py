"""The metamorphic relation: is the change of performance small enough for the distance of the data?

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
from typing import Annotated, Any, TypeAlias

from verifier.base.documents import Count, InputFile, Limits, Magnitude, Share
from verifier.checking.verdicts import Verdict
from verifier.robustness.assessment.degradation import CriterionName, Degradation, SureOrder, in_order, surely_before
from verifier.robustness.assessment.measures import DatasetDistance, DistanceRule
from verifier.robustness.brackets import Break, Criterion, break_of
from verifier.robustness.detection_metrics import Performance

Told: TypeAlias = Annotated[str, Limits(pattern="^(satisfied|violated|inconclusive|no target)$")]


@dataclass(frozen=True)
class Outcome:
    """The relation for one metric, one distance and one target data set; the verdict is of the exact numbers.

    Attributes:
        metric, distance_name: what was compared, and how far apart the data are by what.
        source, target: P_x and P_x'.
        change: M18, |P_x - P_x'|.
        distance: d.
        scale: what the tolerance is multiplied by (Circumstance.tolerance_scale).
        tolerance: epsilon(d), times the scale.
    """

    metric: str
    distance_name: str
    source: Share
    target: Share
    change: Share
    distance: Magnitude
    scale: Annotated[float, Limits(gt=0)]
    tolerance: Magnitude
    verdict: Told


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
        before, after = source.values[name], target.values[name]
        for rule in rules.values():
            away = distances[rule.name].distance if rule.name in distances else None
            if rule.tolerance is None or away is None:
                continue
            change, accepted = abs(before - after), rule.tolerance(away) * scale
            verdict = Verdict.SATISFIED if change <= accepted else Verdict.VIOLATED
            shares = float(before), float(after), float(change)
            yield Outcome(name, rule.name, *shares, float(away), float(scale), float(accepted), verdict.value)


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
