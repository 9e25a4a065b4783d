"""How intervals and guaranteed bounds are made, as one value."""

from __future__ import annotations

from dataclasses import dataclass

from verifier.analysis.intervals import LARGEST_DRAWS, check_draws, check_level
from verifier.analysis.posterior import Prior, prior_weight
from verifier.analysis.robust import Semantics


@dataclass(frozen=True)
class ConfidenceSettings:
    """How intervals and bounds are made.

    Attributes:
        level: of both.
        interval: one of `verifier.analysis.bootstrap.CHOICES`.
        prior: see `verifier.analysis.posterior.prior_weight`.
        draws: how many matrices to draw for the interval; None for as many as the chain can afford.
        seed: of the draws.
        semantics: of the guaranteed bounds, see `guaranteed_bounds`.

    Raises:
        UsageError: a level, prior or number of draws that cannot be.
    """

    level: float = 0.95
    interval: str = "auto"
    prior: Prior = "jeffreys"
    draws: int | None = None
    seed: int = 0
    semantics: Semantics = "every_state"

    def __post_init__(self) -> None:
        check_level(self.level)
        prior_weight(self.prior)
        if self.draws is not None:
            check_draws(self.draws, LARGEST_DRAWS)
