"""What `verify compare` found: the values that are its document.

In all tables of a spec the configurations stand in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from verifier.analysis.channel_test import Channel
from verifier.analysis.comparison import RankingChange
from verifier.analysis.settings import IntervalKind
from verifier.base.documents import Condition, Count, Exact, Limits, NumberText, Share
from verifier.base.errors import ExitCode
from verifier.base.numbers import decimal_text
from verifier.base.result import Result
from verifier.base.words import counted
from verifier.checking.verdicts import Verdict
from verifier.questions.compare.metric_tables import ClassMetrics, Reversal
from verifier.study.points import Judged, Point, ProfileMean, refuse_other_means
from verifier.study.records import DropGate, MatricesRecord, SettingsRecord
from verifier.study.results import Asked, AskedText, Engines, RunInput, Target

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
        kind: of the statistical interval.
        channel: the test of the memoryless detector.
    """

    detector: str
    kind: IntervalKind
    reason: str
    channel: Channel


@dataclass(frozen=True)
class ScoreInterval:
    """Of the worst probability of a configuration: from the draws, or the confidence bounds of its scenario."""

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
        confidence_bounds: of the worst point, from which the verdict is; None where the point estimate decides.
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
    confidence_bounds: ScoreInterval | None = None

    def __post_init__(self) -> None:
        refuse_other_means(self.weights, self.points, self.means)

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
        probability: Storm's, `[place][configuration]`.
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
class RequirementComparison(Asked):
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


@dataclass(frozen=True)
class Detector:
    """A file of matrices: its name as the user calls it, their title, and how they were made."""

    name: str
    title: str
    matrices: MatricesRecord | None = None


@dataclass(frozen=True, kw_only=True)
class CompareChoices:
    """Every choice that can change a number.

    Attributes:
        pareto: two requirements that are looked at together.
        max_drop: largest drop against the baseline that is allowed; None without one.
        best_planner: steps within which the episodes of the best possible planner end; None where it was left out.
        specs: name of a spec -> name of a detector -> the choices of its runs.
    """

    pareto: tuple[str, str] | None
    max_drop: NumberText | None
    best_planner: Annotated[int, Limits(ge=1)] | None = None
    specs: Mapping[str, Mapping[str, SettingsRecord]]


@dataclass(frozen=True, kw_only=True, repr=False)
class CompareResult(Result):
    """Everything one `verify compare` found.

    Attributes:
        command: that made it, inputs by name without folders.
        inputs: the files that went in; the matrices in the order of `detectors`.
        settings: every choice that can change a number, by name; per spec under its name.
        versions: of this program and of what it computed with.
        draws: how many, of each configuration.
        remarks: what a reader must know to read the numbers rightly.
        gate: what became of the baseline; None without one.
    """

    schema: ClassVar[str] = "verifier.compare"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    inputs: tuple[RunInput, ...]
    detectors: tuple[Detector, ...]
    settings: CompareChoices
    versions: Mapping[str, str]
    engines: Engines
    draws: Annotated[int, Limits(ge=1)]
    level: Annotated[float, Limits(gt=0, le=1)]
    remarks: tuple[str, ...]
    specs: Annotated[tuple[SpecComparison, ...], Limits(min_length=1)]
    gate: DropGate | None

    TOLD = "verifier.telling.compare:compare_table"
    DRAWN = "verifier.telling.figures.questions:compare_figure"
    NAMED_BY = ("spec", "requirement", "detector", "planner")
    METRICS = ("probability", "interval_lower", "interval_upper")

    @property
    def headline(self) -> str:
        """What was compared."""
        return f"{', '.join(detector.name for detector in self.detectors)} under {counted(len(self.specs), 'spec')}"

    @property
    def exit_code(self) -> ExitCode:
        """1 when the gate is closed; else 0, for to compare is not to judge."""
        return ExitCode.VIOLATED if self.gate is not None and self.gate.failed else ExitCode.SATISFIED

    def rows(self) -> Iterator[dict[str, str | int | float]]:
        """One flat row per spec, requirement and configuration, with the same columns throughout."""
        labels = list(dict.fromkeys(metric.label for spec in self.specs for metric in spec.metrics))
        for spec in self.specs:
            for requirement in spec.requirements:
                target = requirement.target
                reach = {reach.detector: reach for reach in requirement.reach}
                for k, entry in enumerate(requirement.entries):
                    yield {
                        "spec": spec.spec,
                        "requirement": requirement.name,
                        "detector": entry.detector,
                        "planner": entry.planner,
                        "comparison": "" if target is None else target.comparison,
                        "target": "" if target is None else decimal_text(target.probability),
                        "probability": entry.probability,
                        "scenario": "profile" if entry.means else entry.worst_point.scenario,
                        "verdict": entry.verdict.value,
                        "condition": entry.condition or "",
                        "level": self.level,
                        "interval_lower": entry.interval.lower,
                        "interval_upper": entry.interval.upper,
                        "bounds_lower": "" if entry.confidence_bounds is None else entry.confidence_bounds.lower,
                        "bounds_upper": "" if entry.confidence_bounds is None else entry.confidence_bounds.upper,
                        "best": entry.best,
                        "reach_lower": reach[entry.detector].lower if reach else "",
                        "reach_upper": reach[entry.detector].upper if reach else "",
                        **_pareto_columns(spec.pareto, requirement.name, k),
                        **dict(_metric_columns(spec.metrics, entry.detector, labels)),
                    }


def _metric_columns(
    metrics: Sequence[ClassMetrics], detector: str, labels: Sequence[str]
) -> Iterator[tuple[str, str | float]]:
    """The detection metrics of each class of the detector; empty where there is nothing to count."""
    own = {metric.label: metric for metric in metrics if metric.detector == detector}
    for label in labels:
        for name in ("average_precision", "recall", "precision", "recall_that_matters"):
            measure = getattr(own.get(label), name, None)
            for end in ("value", "lower", "upper"):
                value = getattr(measure, end, None)
                yield f"{name}_{label}{'' if end == 'value' else '_' + end}", "" if value is None else value


def _pareto_columns(pareto: ParetoView | None, requirement: str, configuration: int) -> dict[str, str | float]:
    if pareto is None or requirement not in (pareto.first, pareto.second):
        return {"pareto": "", "pareto_chance": ""}
    kind = "non-dominated" if pareto.non_dominated[configuration] else "dominated"
    return {"pareto": kind, "pareto_chance": pareto.chances[configuration]}
