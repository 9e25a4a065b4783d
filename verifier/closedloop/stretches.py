"""Stepping towards a speed that does not change, many steps at once.

The step engine moves the vehicle by time steps of constant acceleration (so within a step the distance is the mean of
both speeds times dt). While the safe speed stays what it is, the speeds are an arithmetic sequence with one shorter
last step, so the state after n steps has a closed form, and so has the first n at which a position is reached.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verifier.base.arrays import Floats
from verifier.closedloop.vehicle import VehicleSettings

NEAR = 1e-9
"""Part of a step; what remains is rounding and needs no step of its own.

With the paper's numbers braking for one step undoes exactly three steps of acceleration, so whether the vehicle then
stands would otherwise be decided by the last bit.
"""


@dataclass(frozen=True, eq=False)
class Ramp:
    """Steps from `speed` to `target`: all but the last change the speed by `change`, then it stays at the target.

    Attributes:
        speed, target: (r,) m/s.
        change: (r,) m/s per step, positive or negative.
        count: (r,) float, steps until the target is reached; 0 where the speed is the target.
        way_m: (r,) the way in these steps.
        dt_s: time step.
    """

    speed: Floats
    target: Floats
    change: Floats
    count: Floats
    way_m: Floats
    dt_s: float

    def distance(self, time: Floats) -> Floats:
        """(r,) metres after so many steps."""
        changing = self.dt_s * time * (self.speed + 0.5 * self.change * time)
        at_target = self.way_m + self.dt_s * self.target * (time - self.count)
        return np.where(time < self.count, changing, at_target)

    def time_to_target(self) -> Floats:
        """(r,) steps until the target is reached."""
        return self.count

    def speed_after(self, time: Floats) -> Floats:
        """(r,) m/s after so many steps."""
        return np.where(time >= self.count, self.target, self.speed + self.change * time)

    def time_to(self, metres: Floats) -> Floats:
        """(r,) the fewest steps that lead at least so far; inf where the vehicle comes to rest before.

        Args:
            metres: (r,) above 0.
        """
        # While the speed changes: speed t + change t^2 / (2 dt) = metres, solved without cancellation.
        double_rate = 2 / self.dt_s * self.change
        beyond = metres - self.way_m
        with np.errstate(divide="ignore", invalid="ignore"):
            ramp_s = 2 * metres / (self.speed + np.sqrt(np.maximum(self.speed**2 + double_rate * metres, 0)))
            late = self.count + np.ceil(beyond / (self.dt_s * self.target))
        # The parabola holds up to the last, shorter step; whatever lies beyond it is reached in that step.
        early = np.minimum(np.ceil(ramp_s / self.dt_s), self.count)
        steps = np.where(beyond > 0, late, early)
        steps[(beyond > 0) & (self.target == 0)] = np.inf
        return self._corrected(steps, metres)

    def _corrected(self, steps: Floats, metres: Floats) -> Floats:
        """One more or one fewer where rounding put the ceiling beside the fewest."""
        found = np.isfinite(steps)
        some = np.where(found, steps, 0.0)
        fewer = np.maximum(some - 1, 0)
        steps[found & (self.distance(some) < metres)] += 1
        enough = found & (self.distance(fewer) >= metres)
        steps[enough] = fewer[enough]
        return steps


def ramp(speed: Floats, target: Floats, vehicle: VehicleSettings) -> Ramp:
    """The steps from (r,) speeds to (r,) targets at the greatest rates."""
    dt_s = vehicle.dt_s
    change = np.where(target > speed, vehicle.a_max_mps2, -vehicle.braking_mps2) * dt_s
    count = np.maximum(np.ceil((target - speed) / change - NEAR), 0.0)
    full = np.maximum(count - 1, 0.0)
    before = speed + change * full
    last_m = np.where(count > 0, 0.5 * dt_s * (before + target), 0.0)
    return Ramp(speed, target, change, count, dt_s * full * (speed + 0.5 * change * full) + last_m, dt_s)
