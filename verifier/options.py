"""Every choice of a run beside its files, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from verifier.checking.requirements import EngineSettings
from verifier.scenarios import Selection
from verifier.systems.scene import Limits


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
        engines: how to check.
        limits: when to refuse a model.
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
    engines: EngineSettings = EngineSettings()
    limits: Limits = Limits()
