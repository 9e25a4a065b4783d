"""The simulated vehicle and its safe speed (Pezzementi et al. 2021, Sec. 6.3, eq. 7).

The vehicle is locked to its path; only its speed changes, and it changes at the greatest rate towards the safe speed:
the greatest speed from which the vehicle can still stop within the pathified distance. The paper leaves two points
open, and both readings of each are here:

* `between_images`: `continuous`: the distance shrinks as the vehicle drives on, until it reaches the next image.
  `hold`: the safe speed is found once, when an image is reached, and held until the next ("a target safe speed from
  the last captured image" to the letter); stops then lie up to one image's spacing beyond the boundary.
* `too_close`: `cannot_stop`: safe speed 0 as soon as v^2 / (2 |a_min|) exceeds the distance. `zero_distance`: only
  at distance 0.

Under `hold` with `cannot_stop` a slower vehicle may pass a detection at which a faster one stops, so more detections
need not mean an earlier stop. Under the other three combinations they never make the vehicle faster.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from verifier.closedloop.settings import BetweenImages, TooClose

LEAST = 1e-6
"""Of speeds, rates and steps in SI units; their greatest is its inverse. Beyond, squares lose their meaning."""


@dataclass(frozen=True)
class VehicleSettings:
    """Limits of the vehicle, the time step, and how eq. (7) is read; the defaults are the paper's numbers.

    Attributes:
        top_speed_mps: S_max, 1e-6..1e6 as the rates and the step.
        a_min_mps2: greatest deceleration as a negative acceleration.
        a_max_mps2: greatest acceleration.
        dt_s: time step of the step engine.
        start_speed_mps: speed at the start of every log, 0..S_max. The paper does not give it.

    Raises:
        ValueError: a value is outside its range.
    """

    top_speed_mps: float = 3.0
    a_min_mps2: float = -4.572
    a_max_mps2: float = 1.524
    dt_s: float = 0.05
    start_speed_mps: float = 0.0
    between_images: BetweenImages = "continuous"
    too_close: TooClose = "cannot_stop"

    def __post_init__(self) -> None:
        for name, sign in (("top_speed_mps", 1), ("a_min_mps2", -1), ("a_max_mps2", 1), ("dt_s", 1)):
            value = getattr(self, name)
            if not LEAST <= sign * value <= 1 / LEAST:
                low, high = sorted((sign * LEAST, sign / LEAST))
                raise ValueError(f"{name} must lie in {low:g}..{high:g}, got {value:g}")
        if not 0 <= self.start_speed_mps <= self.top_speed_mps:
            raise ValueError(f"start_speed_mps must lie in 0..{self.top_speed_mps:g}, got {self.start_speed_mps}")
        for name, known in (("between_images", get_args(BetweenImages)), ("too_close", get_args(TooClose))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}")

    @property
    def braking_mps2(self) -> float:
        """|a_min|."""
        return -self.a_min_mps2

    @property
    def full_speed_distance_m(self) -> float:
        """From this distance on the safe speed is S_max: S_max^2 / (2 |a_min|), 0.984 m with the defaults."""
        return self.top_speed_mps**2 / (2 * self.braking_mps2)

    def record(self) -> dict[str, Any]:
        """Every setting by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def safe_speed_mps(
    distance_m: NDArray[np.float64], speed_mps: NDArray[np.float64], vehicle: VehicleSettings
) -> NDArray[np.float64]:
    """Eq. (7): min(sqrt(2 |a_min| d), S_max), and 0 where `too_close` says that it cannot be achieved.

    Args:
        distance_m: (...) left to the nearest positive detection; inf where there is none.
        speed_mps: (...) of the vehicle; only `cannot_stop` asks for it.
    """
    squared = (2 * vehicle.braking_mps2) * distance_m
    safe = np.minimum(np.sqrt(squared), vehicle.top_speed_mps)
    if vehicle.too_close == "cannot_stop":
        safe[speed_mps * speed_mps > squared] = 0.0
    return safe
