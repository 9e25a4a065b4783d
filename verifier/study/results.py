"""What a run found: its document, as values.

Equal inputs give equal bytes: the document holds no times, no absolute paths and no user names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, TypeAlias

from verifier.analysis.channel_test import Channel
from verifier.analysis.planning import EvidencePlan
from verifier.analysis.tipping import TippingPoints
from verifier.base.arrays import grouped
from verifier.base.documents import (
    Condition,
    Count,
    Derives,
    Exact,
    Limits,
    Magnitude,
    MisfitError,
    derived,
    fraction_text,
)
from verifier.base.documents import InputFile as InputFile
from verifier.base.numbers import decimal_text
from verifier.checking.verdicts import Verdict, condition_over, verdict_over, worst_verdict
from verifier.study.points import (
    Judged,
    JudgedResult,
    Numbers,
    Point,
    ProfileMean,
    WorldDecisions,
    refuse_other_means,
    uncertainty_columns,
)
from verifier.study.records import Gates, MatricesRecord, SettingsRecord

InputRole: TypeAlias = Literal["spec", "model", "planner", "confusion", "record"]
"""A record, of single objects, tells explanations which frames to name."""


@dataclass(frozen=True)
class RunInput(InputFile):
    """A file that a run was made from."""

    role: InputRole


@dataclass(frozen=True)
class _Under:
    """A planner."""

    planner: str


@dataclass(frozen=True, kw_only=True)
class Finished(Numbers, _Under):
    """A scenario of a requirement without an answer that was finished, for the measured matrix alone."""


AskedText = Annotated[str, Limits(pattern=r"^(P|R|T)(min|max)?(\{.+\})?$")]
Comparison: TypeAlias = Literal[">=", ">", "<=", "<"]


@dataclass(frozen=True)
class Target:
    """What is asked of a probability, `P >= 19/20`, or of another number, `T <= 12`."""

    comparison: Comparison
    probability: Exact

    def __post_init__(self) -> None:
        if self.probability < 0:
            raise MisfitError(["probability"], "expected a probability from 0 to 1")

    @property
    def is_upper(self) -> bool:
        """Whether it limits from above."""
        return self.comparison in ("<=", "<")

    def __str__(self) -> str:
        return f"{self.comparison} {decimal_text(self.probability)}"


@dataclass(frozen=True)
class StrategyEnds:
    """Range of a probability over all strategies that win the same game as a synthesised planner."""

    smallest: float
    largest: float


class Asked:
    """What asks a number of a formula."""

    formula: str
    asked: AskedText
    target: Target | None

    @property
    def is_upper(self) -> bool:
        """Whether the target limits the probability from above."""
        return self.target is not None and self.target.is_upper

    @property
    def is_plain(self) -> bool:
        """Whether it asks the probability of one formula: slopes, bounds and certificates are known for these."""
        return self.asked.startswith("P") and ") given (" not in self.formula


def refuse_no_probability(target: Target | None) -> None:
    """Refuse a target that no probability can be compared with; MisfitError."""
    if target is not None and target.probability > 1:
        raise MisfitError(["target", "probability"], "expected a probability from 0 to 1")


@dataclass(frozen=True, kw_only=True)
class RequirementResult(Judged, Asked, Derives):
    """One requirement under one planner, over all its scenarios.

    Attributes:
        formula: the requirement's formula, fully parenthesised.
        asked: the number that it asks: `P`, `R{reward}`, `T` or `T{level}`, with `min` or `max` where it is written.
        target: None for `P = ?`.
        verdict: the worst over the scenarios that are not vacuous, if there are any.
        condition: what must be true for the verdict to hold.
        worst: number of the worst scenario.
        points: one per scenario, in the order of the grid; never empty.
        weights: what each scenario counts for in the mean over the profile, 1 together for each value of the swept
            constants; empty where the mean is not asked for.
        means: the means, one per value of the swept constants.
        strategies: one per scenario, where that was asked for.
        world: what a world that decides does, where that was asked for.
        additional_data: what would decide it, where it is inconclusive and that is known.
        tipping_points: how wrong the assumptions of its bounds may be, where that is known.
    """

    name: str
    planner: str
    formula: str
    asked: AskedText = "P"
    target: Target | None
    verdict: Verdict = derived(lambda result: verdict_over(point.verdict for point in result.points), refused=False)
    condition: Condition | None = derived(
        lambda result: condition_over(result.verdict, ((point.verdict, point.condition) for point in result.points)),
        refused=False,
    )
    worst: Count = derived(lambda result: result.worst_of(range(len(result.points))), refused=False)
    points: Annotated[tuple[Point, ...], Limits(min_length=1)]
    weights: tuple[Exact, ...] = ()
    means: tuple[ProfileMean, ...] = ()
    strategies: tuple[StrategyEnds, ...] | None = None
    world: WorldDecisions | None = None
    additional_data: EvidencePlan | None = None
    tipping_points: TippingPoints | None = None

    def __post_init__(self) -> None:
        if self.strategies is not None and len(self.strategies) != len(self.points):
            raise MisfitError(["strategies"], "expected one entry per point")
        refuse_other_means(self.weights, self.points, self.means)
        if self.asked.startswith("P"):
            refuse_no_probability(self.target)
            for at, point in enumerate(self.points):
                if point.uncertainty is not None and max(point.uncertainty.interval.ends) > 1:
                    raise MisfitError(["points", at, "uncertainty", "interval"], "expected probabilities from 0 to 1")
        super().__post_init__()

    def least(self, among: Iterable[int]) -> int:
        """Of some scenarios the one that is farthest on the wrong side of the target, or of any there might be."""
        pick = max if self.is_upper else min
        return pick(among, key=lambda at: self.points[at].value)

    def worst_of(self, among: Sequence[int]) -> int:
        """Of some scenarios the one with the worst verdict; of several of these as `least`."""
        verdict = verdict_over(self.points[at].verdict for at in among)
        return self.least(at for at in among if self.points[at].verdict is verdict)

    @property
    def worst_point(self) -> Point:
        """The worst scenario."""
        return self.points[self.worst]

    @property
    def best_point(self) -> Point:
        """The scenario with the probability at the other end."""
        pick = min if self.is_upper else max
        return pick(self.points, key=lambda point: point.value)

    @property
    def threshold(self) -> Fraction | None:
        """The probability that is asked for."""
        return None if self.target is None else self.target.probability

    @property
    def target_text(self) -> str:
        """The target for people: `>= 0.95`."""
        profile = " over profile" if self.means else ""
        return f"= ?{profile}" if self.target is None else str(self.target)

    @property
    def asked_text(self) -> str:
        """What is asked, for people: `T <= 12 s`."""
        text = f"{self.asked} {self.target_text}"
        return text if self.target is None else self.with_unit(text)

    @property
    def question(self) -> str:
        """The requirement as a spec writes it: `T <= 12 [ F ended ]`."""
        return f"{self.asked} {self.target_text} [ {self.formula} ]"

    @property
    def unit(self) -> str:
        """Of its numbers: `s` for times, else nothing."""
        return "s" if self.asked.startswith("T") else ""

    def with_unit(self, text: str) -> str:
        """A number of it with its unit."""
        return f"{text} {self.unit}" if self.unit and text != "inf" else text


@dataclass(frozen=True)
class Unanswered:
    """A requirement that has no answer within the limits of time, memory and size, or none at all.

    Attributes:
        name, formula: its name, and its formula fully parenthesised.
        reason: which limit, in which chain, and what to do; or why nothing can be known.
        finished: the scenarios that were finished: none is judged.
        asked: as in `RequirementResult`.
    """

    name: str
    formula: str
    reason: str
    finished: tuple[Finished, ...]
    asked: AskedText = "P"

    @property
    def remark(self) -> str:
        """For readers of the numbers."""
        return f"{self.name}: no answer. {' '.join(self.reason.split())}"


@dataclass(frozen=True)
class Engines:
    """Which engine's numbers are reported, and how far the other one is from them."""

    reported: Literal["storm"]
    second: Literal["batch"]
    largest_difference: Magnitude


def engines_over(points: Iterable[Numbers]) -> Engines:
    """Those of some points, at least one."""
    return Engines("storm", "batch", max(point.difference for point in points))


def engines_of(runs: Iterable[RunResult]) -> Engines:
    """Over all points of some runs."""
    return engines_over(point for run in runs for requirement in run.requirements for point in requirement.points)


@dataclass(frozen=True, repr=False, kw_only=True)
class RunResult(Derives, JudgedResult):
    """Everything one `verify run` found.

    Attributes:
        command: that made it, inputs by name without folders; empty where a program called.
        gates: what was asked for beside the targets.
        title: what the matrices are, for people.
        verdict: the worst over all requirements; without an answer where one has none, unless another is violated.
        condition: what must be true for the verdict to hold.
        inputs, matrices: the files that went in; what the matrices are and how they were made.
        settings: every choice that can change a number.
        channel: the test of the memoryless channel.
        versions: of this program and of what it computed with.
        remarks: what a reader must know to read the numbers rightly.
        requirements: per planner, in the order of the spec.
        unanswered: what has no answer within the limits; also among the remarks.
    """

    schema: ClassVar[str] = "verifier.run"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    gates: Gates | None = None
    title: str
    verdict: Verdict = derived(lambda run: _verdict(run), refused=False)
    condition: Condition | None = derived(
        lambda run: condition_over(
            run.verdict, ((requirement.verdict, requirement.condition) for requirement in run.requirements)
        ),
        refused=False,
    )
    inputs: tuple[RunInput, ...]
    matrices: MatricesRecord | None = None
    settings: SettingsRecord
    channel: Channel
    versions: Mapping[str, str]
    engines: Engines = derived(lambda run: engines_of([run]), refused=False)
    remarks: tuple[str, ...]
    requirements: Annotated[tuple[RequirementResult, ...], Limits(min_length=1)]
    unanswered: Annotated[tuple[Unanswered, ...], Limits(min_length=1)] = ()

    TOLD = "verifier.telling.run:run_table"
    DRAWN = "verifier.telling.figures.run:figure_of_run"
    NAMED_BY = ("requirement", "planner")
    METRICS = ("probability", "interval_lower", "interval_upper", "bounds_lower", "bounds_upper")

    def measured_rows(self) -> Iterator[dict[str, str | int | float]]:
        """The row of the worst scenario of each requirement, or of its mean over the profile, for each value of swept
        constants."""
        for requirement in self.requirements:
            swept = grouped((tuple(point.constants.items()), at) for at, point in enumerate(requirement.points))
            worst = ((requirement, requirement.points[requirement.worst_of(among)]) for among in swept.values())
            yield from self._mean_rows(requirement) if requirement.means else self._rows(worst)

    def rows(self) -> Iterator[dict[str, str | int | float]]:
        """One flat row per requirement and scenario, and mean over the profile, with the same columns throughout."""
        for requirement in self.requirements:
            yield from self._rows((requirement, point) for point in requirement.points)
            yield from self._mean_rows(requirement)

    def _mean_rows(self, requirement: RequirementResult) -> Iterator[dict[str, str | int | float]]:
        (like,) = self._rows([(requirement, requirement.worst_point)])
        apart = ("initial_", "interval_", "bounds_", "any_dependence_", "environment", "second_engine")
        for mean in requirement.means:
            ends = mean.interval
            yield {name: "" if name.startswith(apart) else value for name, value in like.items()} | {
                "asked": f"{requirement.asked} over profile",
                **{f"constant_{name}": value for name, value in mean.constants.items()},
                "probability": mean.probability,
                "lower": mean.lower,
                "upper": mean.upper,
                "exact": "" if mean.exact is None else fraction_text(mean.exact),
                **({} if ends is None else {"interval_lower": ends.lower, "interval_upper": ends.upper}),
                "verdict": requirement.verdict.value,
            }

    def _rows(self, points: Iterable[tuple[RequirementResult, Point]]) -> Iterator[dict[str, str | int | float]]:
        remembered = self.settings.memory
        memory = {} if remembered is None else {"memory": remembered, "memory_test": self.channel.test}
        for requirement, point in points:
            yield {
                "requirement": requirement.name,
                "planner": requirement.planner,
                "asked": requirement.asked,
                "unit": requirement.unit,
                "environment": point.environment,
                **{f"constant_{name}": value for name, value in point.constants.items()},
                **{f"initial_{name}": value for name, value in point.initial.items()},
                "probability": point.probability,
                "lower": point.lower,
                "upper": point.upper,
                "exact": "" if point.exact is None else fraction_text(point.exact),
                "second_engine": point.second_engine,
                **uncertainty_columns(point),
                **memory,
                "comparison": "" if requirement.target is None else requirement.target.comparison,
                "target": "" if requirement.target is None else decimal_text(requirement.target.probability),
                "verdict": point.verdict.value,
                "condition": point.condition or "",
                "basis": point.basis or "",
            }


def _verdict(run: RunResult) -> Verdict:
    missing = [Verdict.NO_ANSWER] if run.unanswered else []
    return worst_verdict([*missing, *(requirement.verdict for requirement in run.requirements)])
