"""The metamorphic relation: is the change of performance small enough for the distance of the data?

Wozniak, Segura and Mazo 2024, Sec. 5.8, eq. of Task 7 and Box 7, with x the source and x' the target:

    for all (x, x'):  |P_x - P_x'| <= epsilon(d(x, x'))

The detector is robust only if this holds for every performance metric that was chosen, and under every distance that
has a tolerance. The relation is two-sided, as the paper has it: a performance that *rises* by more than epsilon
violates it as well, and the outcome says so.

"Globally robust" there means for all pairs of sets of circumstances; what is checked are the pairs that were given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from verifier.checking.verdicts import Verdict
from verifier.robustness.assessment.circumstances import Circumstance
from verifier.robustness.assessment.measures import DatasetDistance, DistanceRule
from verifier.robustness.assessment.performance import Performance


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
                name,
                rule.name,
                source.values[name],
                target.values[name],
                away,
                scale,
                rule.tolerance(away) * scale,
            )


def least_scale(circumstances: Sequence[Circumstance]) -> Fraction:
    """The scale for data that hold all of these circumstances: the strictest one rules; 1 where there is none."""
    return min((each.tolerance_scale for each in circumstances), default=Fraction(1))
