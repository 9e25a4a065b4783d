"""How far a vehicle travels until it stands: reaction, then constant deceleration.

    S(v) = v^2 / (2 a) + t v        (Xu et al., WSC 2021, Sec. 3.2)

An object at distance d is hit iff the vehicle needs more room than there is, d < S(v).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from verifier.base.arrays import Floats
from verifier.base.errors import UsageError, check_known

SPEED_UNITS: Mapping[str, Fraction] = MappingProxyType(
    {"m/s": Fraction(1), "km/h": Fraction(5, 18), "mph": Fraction(44704, 100000), "kn": Fraction(1852, 3600)}
)
"""Metres per second in one unit of speed, exact: a mile has 1609.344 m, a nautical mile 1852 m."""


def speed_mps(value: float, unit: str) -> float:
    """A speed in metres per second.

    >>> speed_mps(25, "mph")
    11.176

    Raises:
        UsageError: an unknown unit; a speed that is negative or not finite.
    """
    check_known("unit of speed", unit, SPEED_UNITS)
    if not math.isfinite(value) or value < 0:
        raise UsageError(f"a speed must be finite and at least 0, got {value:g} {unit}")
    return float(Fraction(value) * SPEED_UNITS[unit])


@dataclass(frozen=True)
class BrakingPolicy:
    """Drive on for `reaction_s`, then brake with the constant `deceleration_mps2`.

    Raises:
        UsageError: the deceleration is not positive, the reaction time negative, or one of them not finite.
    """

    deceleration_mps2: float
    reaction_s: float = 0.1

    def __post_init__(self) -> None:
        if not math.isfinite(self.deceleration_mps2) or self.deceleration_mps2 <= 0:
            raise UsageError(
                f"the deceleration must be positive, got {self.deceleration_mps2:g} m/s^2: speed falls by it"
            )
        if not math.isfinite(self.reaction_s) or self.reaction_s < 0:
            raise UsageError(f"the reaction time must be at least 0, got {self.reaction_s:g} s")

    def stopping_distance_m(self, speed_mps: ArrayLike) -> Floats:
        """S(v) of each speed, in the shape of `speed_mps`.

        >>> BrakingPolicy(6.86, 0.1).stopping_distance_m([0, 11.176]).round(3).tolist()
        [0.0, 10.221]

        Raises:
            UsageError: a distance is too large for a number.
            ValueError: a speed is negative or NaN.
        """
        speed = np.asarray(speed_mps, dtype=np.float64)
        if not np.all(speed >= 0):
            raise ValueError("speeds must be at least 0")
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            distance = np.asarray(speed * speed / (2 * self.deceleration_mps2) + self.reaction_s * speed)
        lost = ~np.isfinite(distance)
        if lost.any():
            raise UsageError(
                f"the stopping distance from {speed[lost].min():g} m/s is too large for a number: deceleration "
                f"{self.deceleration_mps2:g} m/s^2, reaction time {self.reaction_s:g} s"
            )
        return distance
