"""Every choice of a run beside its files, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from verifier.analysis.settings import ConfidenceSettings
from verifier.checking.requirements import EngineSettings
from verifier.errors import UsageError
from verifier.scenarios import Selection
from verifier.systems.scene import Limits

VERDICT_SOURCES = {
    "guaranteed": "the bounds that no matrix within the confidence region goes beyond",
    "interval": "the statistical interval, as far as the draws determine its ends",
    "point": "the probability for the given matrices, with its numerical bounds",
}
"""What can be held against a target."""


@dataclass(frozen=True)
class RunOptions:
    """Every choice of a run beside its files; the defaults are those of the command line.

    Attributes:
        selection: planners, environments, initial states, constants.
        where: bins of further variables of the matrices to use; they are summed over the others.
        score_threshold: which matrices of a family over score thresholds.
        canonical: use the sum of the matrices over all bins.
        empty_columns: a policy of `EMPTY_COLUMN_POLICIES`.
        false_alarms: a policy of `FALSE_ALARM_POLICIES`.
        endless: leave the model's terminal states out.
        decimals: round transition probabilities to so many decimals.
        strategies: for synthesised planners also find the range over all winning strategies.
        confidence: how to make intervals and guaranteed bounds; None for none. Rounded transitions get none: their
            values are no probabilities of the system.
        verdict_from: one of `VERDICT_SOURCES`; without `confidence` it is the point.
        engines: how to check.
        limits: when to refuse a model.

    Raises:
        UsageError: an unknown source of verdicts.
    """

    selection: Selection = field(default_factory=Selection)
    where: Mapping[str, str] = field(default_factory=dict)
    score_threshold: float | None = None
    canonical: bool = False
    empty_columns: str = "error"
    false_alarms: str = "as_counted"
    endless: bool = False
    decimals: int | None = None
    strategies: bool = False
    confidence: ConfidenceSettings | None = ConfidenceSettings()
    verdict_from: str = "guaranteed"
    engines: EngineSettings = EngineSettings()
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if self.verdict_from not in VERDICT_SOURCES:
            raise UsageError(f"unknown source of verdicts {self.verdict_from!r}; known: {', '.join(VERDICT_SOURCES)}")
