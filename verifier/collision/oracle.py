"""The oracle detector, which reports every true distance, and what a detector loses beside it.

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
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from verifier.base.arrays import Floats
from verifier.base.errors import UsageError
from verifier.collision.estimator import CollisionMap, filled
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
        UsageError: a weight that is negative or not finite, both 0, a ratio beyond all numbers, or an unknown side.
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
        if self.heavy not in get_args(Heavy):
            raise UsageError(f"the heavy side is 'below' or 'above' the oracle, got '{self.heavy}'")

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
    """lambda* on the grid of a map of these pairs, with that map's kernel widths; its density is of true distances.

    Raises:
        ValueError: the map was made from other pairs.
    """
    if not len(pairs):
        return of
    return replace(filled(of, of.sample(pairs).as_oracle()), title=f"oracle of {of.title}" if of.title else "oracle")
