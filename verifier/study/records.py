"""What a result records beside its numbers, as its document has it: choices and matrices; and the gates of a run for
continuous integration, what was asked for beside the targets of the spec, and what failed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any

from verifier.analysis.intervals.tiers import BoundsBasis
from verifier.analysis.settings import INTERVALS, IntervalKind, Prior, Semantics
from verifier.base.documents import (
    ALWAYS,
    Condition,
    Count,
    Derives,
    Level,
    Limits,
    MisfitError,
    NumberText,
    Sha256,
    Share,
    derived,
    fraction_of,
)
from verifier.checking.verdicts import VerdictRule
from verifier.perception.confusion.document_dependence import Dependence
from verifier.perception.confusion.document_types import RemarkRecord, UsedContexts
from verifier.perception.settings import EmptyColumns, EmptyContexts, FalsePositiveCounting, Labelling
from verifier.study.options import VerdictSource
from verifier.systems.model_parts import PlannerKind
from verifier.systems.settings import FalsePositives, InitialContext


@dataclass(frozen=True, kw_only=True)
class MatricesRecord:
    """What the matrices are, and in the words of their own file how they were made, as far as it says that.

    Attributes:
        bins: of distance.
        items: in all columns together.
        sequences: that are counted apart; None where none are.
        matching: the policy that decided which detection explains which object.
        false_positives, grouping: what became of unmatched detections, and which objects were grouped.
        score_threshold, where: the member of a family, and the bins, that were chosen.
        dependence: whether successive frames depend on each other.
        contexts: what a detector with memory remembers, and whether the data contradict that.
    """

    labelling: Labelling
    labels: tuple[str, ...]
    bins: tuple[str, ...]
    items: Count
    sequences: Count | None
    distance: Any = None
    matching: Any = None
    false_positives: FalsePositiveCounting | None = None
    grouping: Any = None
    score_threshold: Any = None
    where: Any = None
    mix: Any = None
    localisation: Any = None
    dependence: Dependence | None = None
    contexts: UsedContexts | None = None
    remarks: tuple[RemarkRecord, ...] = ()
    source: Any = None


@dataclass(frozen=True)
class PlannerRecord:
    """How a planner was made, and which of several winning moves a synthesised one takes.

    Attributes:
        table: hash of what a planner from elsewhere does in every reached state under every observation.
    """

    kind: PlannerKind
    pick: str
    table: Sha256 | None = None


@dataclass(frozen=True, kw_only=True)
class ConfidenceRecord:
    """How intervals and confidence bounds were made.

    Attributes:
        reason: why this interval.
        prior: weight of each label, by name or as a number.
        draws: matrices drawn for the interval.
        events: rates that are bounded, all at once.
        bounds: what the confidence bounds rest on.
    """

    level: Level
    interval: IntervalKind
    reason: str
    prior: Prior
    draws: Annotated[int, Limits(ge=1)]
    seed: int
    semantics: Semantics
    events: Count
    bounds: BoundsBasis

    def __post_init__(self) -> None:
        if self.bounds.level != self.level:
            raise MisfitError(
                ["bounds", "level"], f"expected {self.level}, that of the intervals, got {self.bounds.level}"
            )


@dataclass(frozen=True, kw_only=True)
class SettingsRecord:
    """Every choice of a run that can change a number.

    Attributes:
        environments_left_out: environments that the spec asks for and the command left out.
        set_: what the spec and the command line set.
        constants: those that are the same in every scenario.
        synthesised_from: the formula of synthesised planners without one of their own.
        round_transitions: decimals of the transition probabilities; None for all.
        verdict_from: what is compared with the targets.
        strict: a verdict that would carry a condition is inconclusive.
        assume_memoryless: the memoryless channel is assumed where the data do not test or even contradict it.
        assume_contexts: the same of a detector with memory.
        memory: what the detector remembers of each object.
        initial_context: what it remembers at the initial states.
        empty_contexts: rates of a context without items.
        confidence: None for no intervals and bounds.
    """

    environments_left_out: tuple[str, ...] = ()
    planners: Mapping[str, PlannerRecord]
    environments: tuple[str, ...]
    set_: Mapping[str, str]
    constants: Mapping[str, str]
    synthesised_from: str | None
    initial: str | None
    where: Mapping[str, str]
    score_threshold: float | None
    canonical: bool
    empty_columns: EmptyColumns
    false_positives: FalsePositives
    endless: bool
    round_transitions: int | None
    exact: bool
    verdict_from: VerdictSource
    strict: bool
    assume_memoryless: bool
    confidence: ConfidenceRecord | None
    assume_contexts: bool = False
    memory: str | None = None
    initial_context: InitialContext | None = None
    empty_contexts: EmptyContexts | None = None

    @property
    def rule(self) -> VerdictRule:
        """Which assumptions a verdict may rest on."""
        return VerdictRule(self.strict, self.assume_memoryless, self.assume_contexts)

    @property
    def bounds(self) -> BoundsBasis | None:
        """What the confidence bounds rest on; None where there are none."""
        return None if self.confidence is None else self.confidence.bounds

    @property
    def tier(self) -> str:
        """That of the confidence bounds; empty where there are none."""
        return "" if self.bounds is None else self.bounds.tier

    @property
    def bounds_name(self) -> str:
        """The confidence bounds for people, with level and tier; empty where there are none."""
        return "" if self.bounds is None else self.bounds.name

    def assumption(self, source: VerdictSource | None = None) -> str | None:
        """What the numbers that decide verdicts assume about the data, where that is a condition of the verdicts.

        Args:
            source: what decides; that of the run if left out.
        """
        confidence, source = self.confidence, source or self.verdict_from
        if confidence is None or source == "point":
            return None
        if source == "interval":
            return INTERVALS[confidence.interval].condition(confidence.bounds.unit)
        return confidence.bounds.condition if confidence.bounds.conditional else None


DropRule = Annotated[str, Limits(pattern="^(point|probability:[0-9/.e-]+)$")]
"""What a drop is judged by: the probabilities of the given matrices, or its chance."""


def _check_share(name: str, text: str) -> None:
    """Refuse a text that is no probability."""
    try:
        value = fraction_of(text)
    except ValueError:
        raise MisfitError([name], f"expected a fraction, got {text!r}") from None
    if not 0 <= value <= 1:
        raise MisfitError([name], "expected a probability from 0 to 1")


@dataclass(frozen=True)
class Held:
    """What counts of one requirement under one planner.

    Attributes:
        scenario: the one with the least `value`; of those that are not vacuous, where there are any.
        value: P of the good event, or the bound of it that counts.
        failed: whether it is below the floor, or not shown. A probability without a bound from the data must be below
            for certain, beyond its numerical bounds.
        condition: what must be true for a requirement that passed; None where nothing is assumed.
        reason: why a number that is large enough shows nothing; empty otherwise.
    """

    requirement: str
    planner: str
    scenario: str
    value: float
    failed: bool
    condition: Condition | None = field(default=None, metadata=ALWAYS)
    reason: str = field(default="", metadata=ALWAYS)


@dataclass(frozen=True, kw_only=True)
class Floor(Derives):
    """Every requirement compared with a least probability.

    Attributes:
        least: what every requirement must reach, above 0 and at most 1.
        from_: what counts.
        failed: whether some requirement does not reach it.
        requirements: one per requirement and planner.
    """

    least: str
    from_: VerdictSource
    failed: bool = derived(lambda floor: any(held.failed for held in floor.requirements))
    requirements: tuple[Held, ...]

    def __post_init__(self) -> None:
        _check_share("least", self.least)
        super().__post_init__()


@dataclass(frozen=True)
class BaselineFile:
    """The earlier result, or the earlier matrices: name without folders and SHA-256."""

    name: str
    sha256: Sha256


@dataclass(frozen=True, kw_only=True)
class Drop:
    """What became of one requirement.

    Attributes:
        detector: by name; empty for a run, which has one.
        before, now: worst probabilities.
        drop: how much worse it is now; negative where it is better.
        failed: whether it is larger than allowed, by the rule of the gate.
        chance: that it is larger than allowed, from common draws; None where the earlier matrices are not drawn.
    """

    spec: str
    requirement: str
    detector: str = ""
    planner: str
    before: Share
    now: Share
    drop: float
    failed: bool
    chance: Share | None


@dataclass(frozen=True, kw_only=True)
class DropGate(Derives):
    """Every requirement compared with an earlier result.

    Attributes:
        max_drop: largest drop that is allowed.
        drop_from: what a drop is judged by.
        failed: whether some requirement dropped by more.
    """

    baseline: BaselineFile
    max_drop: NumberText
    drop_from: DropRule
    failed: bool = derived(lambda gate: any(drop.failed for drop in gate.drops))
    drops: Annotated[tuple[Drop, ...], Limits(min_length=1)]

    def __post_init__(self) -> None:
        _check_share("max_drop", self.max_drop)
        if self.drop_from != "point":
            _check_share("drop_from", self.drop_from.removeprefix("probability:"))
        super().__post_init__()

    @property
    def least_chance(self) -> Fraction | None:
        """The probability of a larger drop from which on it counts; None where the point estimates decide."""
        return None if self.drop_from == "point" else fraction_of(self.drop_from.removeprefix("probability:"))


@dataclass(frozen=True)
class NewRequirement:
    """A requirement that the baseline does not have."""

    requirement: str
    planner: str


@dataclass(frozen=True, kw_only=True)
class Regression(DropGate):
    """The gate of a run. `compared`: what was compared, in words."""

    compared: str
    not_in_baseline: tuple[NewRequirement, ...]


@dataclass(frozen=True)
class Gates:
    """The gates that were asked for; None where one was not."""

    fail_under: Floor | None = None
    regression: Regression | None = None

    def __post_init__(self) -> None:
        if self.fail_under is None and self.regression is None:
            raise ValueError("expected a gate")

    @property
    def failed(self) -> bool:
        """Whether one is closed."""
        return any(gate is not None and gate.failed for gate in (self.fail_under, self.regression))
