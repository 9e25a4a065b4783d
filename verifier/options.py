"""Every choice of a run beside its files, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from verifier.analysis.intervals.tiers import Weights
from verifier.analysis.settings import ConfidenceSettings
from verifier.base.errors import UsageError
from verifier.checking.results import EngineSettings
from verifier.checking.verdicts import VerdictRule
from verifier.scenarios import Selection
from verifier.systems.scene import Limits

VERDICT_SOURCES = {
    "bounds": "the bounds that no matrix within the confidence region goes beyond",
    "interval": "the statistical interval, as far as the draws determine its ends",
    "point": "the probability for the given matrices, with its numerical bounds",
}
"""What can be held against a target."""
MIX_ELSEWHERE = "--mix belongs to verify run: here the matrices are drawn or taken apart as they were counted"


@dataclass(frozen=True)
class RunOptions:
    """Every choice of a run beside its files; the defaults are those of the command line.

    Attributes:
        selection: planners, environments, initial states, constants.
        where: bins of further variables of the matrices to use; they are summed over the others.
        score_threshold: which matrices of a family over score thresholds.
        mix: file with weights of the bins of a further variable; None to sum over them as counted.
        canonical: use the sum of the matrices over all bins.
        empty_columns: a policy of `EMPTY_COLUMN_POLICIES`.
        false_alarms: a policy of `FALSE_ALARM_POLICIES`.
        endless: leave the model's terminal states out.
        decimals: round transition probabilities to so many decimals.
        strategies: for synthesised planners also find the range over all winning strategies.
        confidence: how to make intervals and confidence bounds; None for none. Rounded transitions get none: their
            values are no probabilities of the system.
        verdict_from: one of `VERDICT_SOURCES`; without `confidence` it is the point.
        strict: a verdict that would carry a condition is inconclusive.
        assume_memoryless: assume the memoryless channel where the data do not test or even contradict it.
        point_weights: of the rates where there is no `confidence`; otherwise they have its weights.
        engines: how to check.
        limits: when to refuse a model.

    Raises:
        UsageError: an unknown source of verdicts; strict, and assuming something all the same.
    """

    selection: Selection = field(default_factory=Selection)
    where: Mapping[str, str] = field(default_factory=dict)
    score_threshold: float | None = None
    mix: str | None = None
    canonical: bool = False
    empty_columns: str = "error"
    false_alarms: str = "as_counted"
    endless: bool = False
    decimals: int | None = None
    strategies: bool = False
    confidence: ConfidenceSettings | None = ConfidenceSettings()
    verdict_from: str = "bounds"
    strict: bool = False
    assume_memoryless: bool = False
    point_weights: Weights = "item"
    engines: EngineSettings = EngineSettings()
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if self.verdict_from not in VERDICT_SOURCES:
            raise UsageError(f"unknown source of verdicts {self.verdict_from!r}; known: {', '.join(VERDICT_SOURCES)}")
        if self.strict and self.assume_memoryless:
            raise UsageError(
                "--strict accepts no verdict with a condition, and --assume-memoryless gives verdicts one: name one "
                "of the two"
            )

    @property
    def weights(self) -> Weights:
        """What the rates are rates of, see `verifier.analysis.intervals.drive_items`."""
        return self.point_weights if self.confidence is None else self.confidence.weights

    def point_alone(self) -> RunOptions:
        """The same without intervals and ranges; the rates keep their weights."""
        return replace(self, confidence=None, verdict_from="point", strategies=False, point_weights=self.weights)

    @property
    def verdict_rule(self) -> VerdictRule:
        """Which assumptions a verdict may rest on."""
        return VerdictRule(self.strict, self.assume_memoryless)
