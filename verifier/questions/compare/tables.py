"""The tables of a comparison, as parts of its document: who is compared, who is likely the best, along which axes.

In all tables of a spec the configurations stand in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from verifier.analysis.channel_test import Channel
from verifier.analysis.comparison import RankingChange
from verifier.analysis.intervals.intervals import Kind
from verifier.base.documents import Condition, Count, Exact, Limits, MisfitError, NumberText, Share
from verifier.checking.verdicts import Verdict, condition_over, verdict_over
from verifier.study.points import Judged, Point
from verifier.study.profile import Profile
from verifier.study.results import AskedText, ProfileMean, Target, refuse_other_means

Row = tuple[Share | None, ...]
"""One number per configuration; None where it has no scenario."""


@dataclass(frozen=True)
class Configuration:
    """A detector with a planner."""

    detector: str
    planner: str

    def __str__(self) -> str:
        return f"{self.detector}, {self.planner}"


@dataclass(frozen=True)
class Drawn:
    """How a detector's matrices were drawn for one spec.

    Attributes:
        kind: posterior, or drives resampled.
        channel: the test of the memoryless detector.
    """

    detector: str
    kind: Kind
    reason: str
    channel: Channel


@dataclass(frozen=True)
class ScoreInterval:
    """Of the worst probability of a configuration, from the draws."""

    lower: Share
    upper: Share


@dataclass(frozen=True)
class Entry(Judged):
    """One configuration under one requirement.

    Attributes:
        verdict, condition: over the scenarios that are not vacuous, if there are any.
        worst: position of the worst point.
        best: chance that no other configuration is better; ties are shared.
        points: Storm's probability in every scenario.
        weights: what each counts for, where the mean over the profile is asked for.
        means: one per value of the swept constants, likewise; the worst of them is compared.
    """

    detector: str
    planner: str
    verdict: Verdict
    condition: Condition | None
    worst: Count
    interval: ScoreInterval
    best: Share
    points: Annotated[tuple[Point, ...], Limits(min_length=1)]
    weights: tuple[Exact, ...] = ()
    means: tuple[ProfileMean, ...] = ()

    def __post_init__(self) -> None:
        refuse_other_means(self.weights, self.points, self.means)

    @classmethod
    def of(
        cls,
        configuration: Configuration,
        points: tuple[Point, ...],
        worst: int,
        interval: ScoreInterval,
        best: float,
        profile: Profile | None = None,
    ) -> Entry:
        """With the verdict over the points."""
        verdict = verdict_over(point.verdict for point in points)
        condition = condition_over(verdict, ((point.verdict, point.condition) for point in points))
        weights, means = ((), ()) if profile is None else (profile.weights, profile.means(points))
        who = configuration.detector, configuration.planner
        return cls(*who, verdict, condition, worst, interval, best, points, weights, means)

    @property
    def worst_point(self) -> Point:
        """The scenario with the worst probability."""
        return self.points[self.worst]

    @property
    def probability(self) -> float:
        """What is compared: of the worst scenario, or the least mean over the profile."""
        return min((mean.probability for mean in self.means), default=self.worst_point.probability)


@dataclass(frozen=True)
class Curve:
    """The configurations along an axis: the worst probability of each at every place.

    Attributes:
        axis: a swept constant, `initial NAME`, or `initial distance (m)`.
        places: values on the axis, increasing.
        probability: Storm's, [place][configuration].
        lower, upper: intervals, likewise.
        ranking_changes: where two configurations change places.
    """

    axis: str
    places: Annotated[tuple[NumberText, ...], Limits(min_length=2)]
    probability: tuple[Row, ...]
    lower: tuple[Row, ...]
    upper: tuple[Row, ...]
    ranking_changes: tuple[RankingChange, ...]


@dataclass(frozen=True)
class Reach:
    """What the best possible planner reaches with a detector, in its worst scenario or in the mean over the profile.

    It sees the state and the reports but is not told the environment, and may remember everything and draw lots.

    Attributes:
        lower, upper: some planner reaches the one that is worse, none a better one than the other.
        constants, initial: of that scenario; no initial state where it is a mean over these.
        weights: of the environments, against which the bound that none exceeds was found; or those of the profile.
        steps: after at most so many every episode has ended, or is lost.
        all_end: whether every episode ends by then.
    """

    detector: str
    lower: Share
    upper: Share
    constants: Mapping[str, str]
    initial: Mapping[str, int]
    weights: Mapping[str, Share]
    steps: Count
    all_end: bool


@dataclass(frozen=True)
class Estimate:
    """A share of so many items (of average precision: objects), with an interval; None where there are none.

    Attributes:
        lower, upper: 95 % interval: of drives drawn again where there are several, else of independent items.
    """

    items: Count
    value: Share | None
    lower: Share | None
    upper: Share | None

    def __post_init__(self) -> None:
        if (self.value is None) != (self.items == 0):
            raise MisfitError(["value"], f"expected {'a number' if self.items else 'null'}")
        if (self.lower is None) != (self.upper is None) or (self.lower or 0) > (self.upper or 0):
            raise MisfitError(["lower"], "expected both ends of an interval, or none")


@dataclass(frozen=True)
class BinMetrics:
    """A class in one bin.

    Attributes:
        matters: whether P of any requirement depends on rates of the class there.
        precision: None where false positives are not counted.
    """

    bin: str
    matters: bool
    recall: Estimate
    precision: Estimate | None


@dataclass(frozen=True)
class DriveMetrics:
    """A class in one drive; None where there is nothing to count."""

    drive: str
    items: Count
    recall: Share | None
    precision: Share | None
    average_precision: Share | None


@dataclass(frozen=True)
class ClassMetrics:
    """Detection metrics of one class of a detector.

    Attributes:
        average_precision: None where the matrices were counted without.
        recall_that_matters: within the bins that matter, put together.
    """

    detector: str
    label: str
    average_precision: Estimate | None
    recall: Estimate
    precision: Estimate | None
    recall_that_matters: Estimate
    bins: tuple[BinMetrics, ...]
    drives: tuple[DriveMetrics, ...]


@dataclass(frozen=True)
class BinEffect:
    """P of two detectors when one has the rates of the other in one bin.

    Attributes:
        first: P of the first with the rates of the second there; `second` the other way round.
    """

    bin: str
    first: Share
    second: Share


@dataclass(frozen=True)
class Reversal:
    """Two detectors of which the first has the better P and the lower average precision of a class.

    Attributes:
        bins: those that change P, the one that explains most first.
    """

    planner: str
    label: str
    first: str
    second: str
    first_average_precision: Share
    second_average_precision: Share
    bins: tuple[BinEffect, ...]

    def __post_init__(self) -> None:
        if self.first_average_precision >= self.second_average_precision:
            raise MisfitError(["first_average_precision"], "expected less than that of the second detector")


@dataclass(frozen=True)
class RequirementComparison:
    """One requirement of one spec.

    Attributes:
        entries: one per configuration; in all tables configurations stand in this order.
        better: chance that the configuration of the row is better than that of the column.
        curves: one per axis on which the scenarios differ.
        reach: of the best possible planner, for each detector; none where that was not asked for.
        asked: as in the document of a run.
        reversals: where average precision ranks two detectors the other way; none unless metrics were asked for.
    """

    name: str
    formula: str
    target: Target | None
    entries: tuple[Entry, ...]
    better: tuple[tuple[Share, ...], ...]
    curves: tuple[Curve, ...]
    reach: tuple[Reach, ...] = ()
    asked: AskedText = "P"
    reversals: tuple[Reversal, ...] = ()

    @property
    def larger_is_better(self) -> bool:
        """False where the target is an upper limit."""
        return self.target is None or not self.target.is_upper

    @property
    def target_text(self) -> str:
        """The target for people: `P >= 0.95`."""
        profile = " over profile" if self.over_profile else ""
        return f"{self.asked} {'= ?' if self.target is None else self.target}{profile}"

    @property
    def over_profile(self) -> bool:
        """Whether means over the profile are compared, and not the worst scenarios."""
        return bool(self.entries[0].means)


@dataclass(frozen=True)
class ParetoView:
    """Two requirements at once.

    Attributes:
        non_dominated: for each configuration whether no other is at least as good in both and better in one, with the
            measured matrices.
        chances: of that, over the draws.
    """

    first: str
    second: str
    non_dominated: tuple[bool, ...]
    chances: tuple[Share, ...]


@dataclass(frozen=True)
class SpecComparison:
    """All requirements of one spec, how each detector was drawn for it, and detection metrics where asked for."""

    spec: str
    configurations: tuple[Configuration, ...]
    drawn: tuple[Drawn, ...]
    requirements: tuple[RequirementComparison, ...]
    pareto: ParetoView | None
    metrics: tuple[ClassMetrics, ...] = ()
