"""How intervals and confidence bounds are made, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from verifier.analysis.intervals.intervals import LARGEST_DRAWS, check_draws, check_level
from verifier.analysis.intervals.posterior import Prior, prior_weight
from verifier.analysis.intervals.tiers import BOUNDS, WEIGHTS, Weights
from verifier.analysis.robust.solutions import Semantics
from verifier.base.errors import UsageError, shown

MOST_LOOKS = 10**6


@dataclass(frozen=True)
class ConfidenceSettings:
    """How intervals and bounds are made.

    Attributes:
        level: of both.
        interval: one of `interval_choice.CHOICES`.
        prior: see `verifier.analysis.intervals.posterior.prior_weight`.
        draws: how many matrices to draw for the interval; None for as many as the chain can afford.
        seed: of the draws.
        semantics: of the confidence bounds, see `robust_bounds`.
        bounds: one of `analysis.intervals.tiers.BOUNDS`; "auto" is drives where the file knows them, else items.
        weights: what a rate is the rate of, see `verifier.analysis.intervals.drive_items`.
        largest_drive: the most items (or encounters) of a column that any drive may hold; None for the most seen.
        icc_at_most: intraclass correlation up to which the bounds hold.
        assume_independent_items: bounds by items, though the file knows drives.
        looks: how often the data are looked at while they grow.
        shift: see `verifier.analysis.intervals.tiers.BoundsBasis`.

    Raises:
        UsageError: a value that cannot be, or two that exclude each other.
    """

    level: float = 0.95
    interval: str = "auto"
    prior: Prior = "jeffreys"
    draws: int | None = None
    seed: int = 0
    semantics: Semantics = "every_state"
    bounds: str = "auto"
    weights: Weights = "item"
    largest_drive: int | None = None
    icc_at_most: Fraction | None = None
    assume_independent_items: bool = False
    looks: int = 1
    shift: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        check_level(self.level)
        prior_weight(self.prior)
        if self.draws is not None:
            check_draws(self.draws, LARGEST_DRAWS)
        for value, known, what in ((self.bounds, BOUNDS, "bounds"), (self.weights, WEIGHTS, "weights")):
            if value not in known:
                raise UsageError(f"unknown {what} {shown(value)}; known: {', '.join(known)}")
        if self.largest_drive is not None and self.largest_drive < 1:
            raise UsageError(f"expected a largest drive of at least one item, got {self.largest_drive}")
        if self.icc_at_most is not None and not 0 <= self.icc_at_most <= 1:
            raise UsageError(f"an intraclass correlation lies between 0 and 1, got {float(self.icc_at_most):g}")
        if not 1 <= self.looks <= MOST_LOOKS:
            raise UsageError(f"expected 1 to {MOST_LOOKS} looks, got {self.looks}")
        if not 0 <= self.shift <= 1:
            raise UsageError(f"rates shift by at most 0 to 1, got {float(self.shift):g}")
        self._check_together()

    def _check_together(self) -> None:
        """Refuse options of different tiers."""
        by_items = self.bounds == "items" or self.assume_independent_items or self.icc_at_most is not None
        chosen = [
            name
            for name, given in (
                (f"--bounds {self.bounds}", self.bounds in ("drives", "approximate")),
                ("--icc-at-most", self.icc_at_most is not None),
                ("--assume-independent-items", self.assume_independent_items),
            )
            if given
        ]
        if len(chosen) > 1:
            raise UsageError(f"{' and '.join(chosen)} are different assumptions: name one of them")
        if by_items and self.weights != "item":
            raise UsageError(f"--weights {self.weights} needs bounds by drives: --bounds drives or approximate")
        if self.largest_drive is not None and (by_items or self.bounds == "approximate" or self.weights == "drive"):
            raise UsageError("--largest-drive is for bounds by drives that count items or encounters")
        if self.shift and self.bounds == "approximate":
            raise UsageError("--shift widens intervals of rates, and --bounds approximate has none: leave one out")
