"""The score of a detector: its expected loss under a weight h of distances and speeds (Xu et al., WSC 2021, eq. (2)).

    L = sum h(y, v) loss(y, v) = above O + below U,    O = sum h (lambda - lambda*)+,    U = sum h (lambda* - lambda)+

with h a distribution over the points of the grid. The paper ranks by U, the slope of L / alpha in beta / alpha.

The oracle detector, which reports every true distance, and what a detector loses beside it.

lambda* is *estimated*, from the same pairs with the true distance in place of the reported one and the same kernel
widths: what the kernel blurs is then blurred in both, and not charged to the detector (Xu et al., WSC 2021, Sec. 4).

    loss(y, v) = alpha (lambda - lambda*)   where lambda > lambda*  ("above" the oracle)
                 beta  (lambda* - lambda)   where lambda < lambda*  ("below" the oracle)        alpha << beta

**Which side is the dangerous one.** The paper calls "below" underestimated danger and gives it the heavy weight beta.
But a detector that reports every object 5 m too far has lambda(y) = [y - 5 <= S] >= [y <= S] = lambda*(y): it lies
*above* the oracle wherever it differs, since what it reports at y is nearer in truth. The error that the paper's
introduction calls the dangerous one, an object nearer than perceived, is thus the one with the light weight in its
formula. The default is the formula as printed; `heavy="above"` puts beta on reports that are too far.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from verifier.base.arrays import Floats, Mask
from verifier.base.errors import UsageError
from verifier.collision.estimator import CollisionMap, Grid, filled
from verifier.collision.pairs import Pairs
from verifier.collision.settings import Heavy


@dataclass(frozen=True)
class Penalty:
    """The weights of the loss.

    Attributes:
        alpha: weight of the light side.
        beta: weight of the heavy side.
        heavy: which side has beta: "below" the oracle, as the paper prints it, or "above" it; see the module.

    Raises:
        UsageError: a weight that is negative or not finite, both 0, or a ratio beyond all numbers.
    """

    alpha: float = 1.0
    beta: float = 10.0
    heavy: Heavy = "below"

    def __post_init__(self) -> None:
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            if not math.isfinite(value) or value < 0:
                raise UsageError(f"{name} must be at least 0, got {value:g}")
        if self.alpha == self.beta == 0:
            raise UsageError("alpha and beta cannot both be 0")
        if self.alpha and not math.isfinite(self.beta / self.alpha):
            raise UsageError(f"beta / alpha is too large for a number: {self.beta:g} / {self.alpha:g}")

    @property
    def above(self) -> float:
        """Weight of lambda - lambda* where it is positive."""
        return self.alpha if self.heavy == "below" else self.beta

    @property
    def below(self) -> float:
        """Weight of lambda* - lambda where it is positive."""
        return self.beta if self.heavy == "below" else self.alpha

    def loss(self, probability: Floats, oracle: Floats) -> Floats:
        """The loss of each point, in the arrays' shape; NaN where either is not defined."""
        excess = probability - oracle
        return np.where(excess > 0, self.above * excess, -self.below * excess)


PRINTED = Penalty()
"""The scores' default: beta = 10 alpha, below the oracle is heavy."""
EVEN = Penalty(1.0, 1.0)
"""Both sides alike: "closer to the oracle", as in the comparison of two detectors (Fig. 5)."""


def oracle_map(pairs: Pairs, of: CollisionMap) -> CollisionMap:
    """lambda* on the grid of a map of these pairs, with that map's kernel widths."""
    if not len(pairs):
        return of
    return replace(filled(of, pairs, oracle=True), title=f"oracle of {of.title}" if of.title else "oracle")


LARGEST_WEIGHT = 1e100
"""Of a row of a profile; sums of larger ones could overflow."""


@dataclass(frozen=True, eq=False)
class Weight:
    """How much each point of a grid matters.

    Attributes:
        share: (Y, V) at least 0, with sum 1.
    """

    share: Floats
    name: str

    @classmethod
    def uniform(cls, grid: Grid) -> Weight:
        """Every point of the grid alike."""
        return cls(np.full(grid.shape, 1 / (grid.shape[0] * grid.shape[1])), "uniform")

    @classmethod
    def profile(cls, grid: Grid, rows: Sequence[tuple[float, float, float]], name: str = "profile") -> Weight:
        """An operational profile: how often which distance and speed occur.

        Each row counts for the point of the grid nearest to it, in distance and in speed; rows of one point add up.
        Weights are relative, such as hours or counts: they are divided by their sum.

        Args:
            rows: (distance in m, speed in m/s, weight).

        Raises:
            UsageError: a row is not on the grid, further out than half a step; a weight is negative or not finite;
                all are 0.
        """
        share = np.zeros(grid.shape)
        for number, (distance, speed, weight) in enumerate(rows, start=1):
            if not 0 <= weight <= LARGEST_WEIGHT:
                raise UsageError(
                    f"row {number} of the profile: expected a weight from 0 to {LARGEST_WEIGHT:g}, got {weight:g}"
                )
            at = _nearest(grid.distances_m, distance), _nearest(grid.speeds_mps, speed)
            if None in at:
                raise UsageError(
                    f"row {number} of the profile: distance {distance:g} m, speed {speed:g} m/s is not on the grid, "
                    f"{_range(grid.distances_m)} m and {_range(grid.speeds_mps)} m/s"
                )
            share[at] += weight
        total = math.fsum(share.ravel().tolist())
        if total == 0:
            raise UsageError("the weights of the profile add up to nothing")
        return cls(share / total, name)


@dataclass(frozen=True)
class Score:
    """The two parts of a detector's score.

    Attributes:
        above: O, mean of (lambda - lambda*) where it is positive, over the points that are defined.
        below: U, mean of (lambda* - lambda) where it is positive.
        covered: share of the weight on points where both are defined; the means are over that share.
    """

    above: float
    below: float
    covered: float

    def value(self, penalty: Penalty) -> float:
        """L."""
        return penalty.above * self.above + penalty.below * self.below


def score(probability: Floats, oracle: Floats, weight: Weight, among: Mask | None = None) -> Score:
    """O and U of one detector; NaN where no point with weight is defined.

    Args:
        probability: (Y, V) lambda.
        oracle: (Y, V) lambda*.
        weight: h.
        among: (Y, V) points to look at, for instance those where every detector is defined; all by default.
    """
    excess = probability - oracle
    used = np.isfinite(excess) if among is None else np.isfinite(excess) & among
    covered = float(weight.share[used].sum())
    if covered == 0:
        return Score(np.nan, np.nan, 0.0)
    above = float(weight.share[used] @ np.maximum(excess[used], 0.0)) / covered
    below = float(weight.share[used] @ np.maximum(-excess[used], 0.0)) / covered
    return Score(above, below, covered)


def weight_on(grid: Grid, weight: Weight | None) -> Weight:
    """The weight, uniform where none is given."""
    return Weight.uniform(grid) if weight is None else weight


def common_points(maps: Sequence[CollisionMap]) -> Mask:
    """(Y, V) where every map, all of one grid, is defined."""
    return np.asarray(np.all([np.isfinite(collision_map.probability) for collision_map in maps], axis=0))


def _nearest(values: Floats, value: float) -> int | None:
    """Index of the nearest of rising values; None further outside than half the outermost step."""
    steps = np.diff(values)
    low, high = (steps[0] / 2, steps[-1] / 2) if len(steps) else (1e-9 * values[0], 1e-9 * values[0])
    if not values[0] - low <= value <= values[-1] + high:
        return None
    return int(np.argmin(np.abs(values - value)))


def _range(values: Floats) -> str:
    return f"{values[0]:g}..{values[-1]:g}"
