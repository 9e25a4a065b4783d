"""Closed-loop control without a time step: the limit of the step engine for dt -> 0, in closed form.

The acceleration only ever is a_max, 0 or a_min, so speed squared is piecewise linear in position (v^2 = v0^2 + 2 a s)
and all that happens between two images is at most: accelerate, keep top speed, brake. Under `continuous` the safe
speed is the parabola v^2 = 2 |a_min| (x - s) before an obstacle that ends the way at x. Below it the vehicle
accelerates; on it braking at |a_min| stays on it and comes to rest at x; above it braking comes to rest beyond x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats
from verifier.closedloop.fleet import Fleet
from verifier.closedloop.vehicle import VehicleSettings, safe_speed_mps


@dataclass(frozen=True, eq=False)
class ExactMotion:
    """At a constant rate from `speed` to `target`, then at the target; time in seconds.

    Attributes:
        speed, target: (r,) m/s.
        rate: (r,) m/s^2, towards the target.
    """

    speed: Floats
    target: Floats
    rate: Floats

    def time_to_target(self) -> Floats:
        """See `Motion`."""
        return (self.target - self.speed) / self.rate

    def distance(self, time: Floats) -> Floats:
        """See `Motion`."""
        ramp_s = np.minimum(time, self.time_to_target())
        return ramp_s * (self.speed + 0.5 * self.rate * ramp_s) + (time - ramp_s) * self.target

    def speed_after(self, time: Floats) -> Floats:
        """See `Motion`."""
        return np.where(time >= self.time_to_target(), self.target, self.speed + self.rate * time)

    def time_to(self, metres: Floats) -> Floats:
        """See `Motion`."""
        until = self.time_to_target()
        beyond = metres - self.distance(until)
        with np.errstate(divide="ignore", invalid="ignore"):
            early = 2 * metres / (self.speed + np.sqrt(np.maximum(self.speed**2 + 2 * self.rate * metres, 0)))
            late = until + np.where(self.target > 0, beyond / self.target, np.inf)
        return np.where(beyond > 0, late, np.minimum(early, until))


@dataclass(frozen=True)
class EventEngine:
    """The engine that goes from image to image; its unit of time is the second."""

    vehicle: VehicleSettings

    @property
    def unit_s(self) -> float:
        """See `Engine`."""
        return 1.0

    @property
    def near_m(self) -> float:
        """See `Engine`."""
        return 0.0

    def motion(self, speed: Floats, target: Floats) -> ExactMotion:
        """See `Engine`."""
        rate = np.where(target > speed, self.vehicle.a_max_mps2, self.vehicle.a_min_mps2)
        return ExactMotion(speed, target, rate)

    def approach(self, fleet: Fleet) -> NDArray[np.bool_]:
        """To the next image, or to rest."""
        resting = np.zeros(len(fleet.until_m), dtype=bool)
        at = np.flatnonzero(np.isfinite(fleet.until_m))
        if self.vehicle.between_images == "hold":
            target = safe_speed_mps(fleet.seen_m[at], fleet.speed_mps[at], self.vehicle)
            resting[at] = fleet.steer(at, target)
            return resting
        here, until, obstacle = fleet.position_m[at], fleet.until_m[at], fleet.obstacle_m[at]
        found = _follow(here, fleet.speed_mps[at], obstacle, until, self.vehicle)
        fleet.position_m[at], fleet.speed_mps[at] = found.position_m, found.speed_mps
        fleet.time[at] += found.time_s
        resting[at] = found.rest
        return resting


@dataclass(frozen=True, eq=False)
class _Followed:
    position_m: Floats
    speed_mps: Floats
    time_s: Floats
    rest: NDArray[np.bool_]


def _follow(
    start_m: Floats, speed: Floats, obstacle_m: Floats, until_m: Floats, vehicle: VehicleSettings
) -> _Followed:
    """Drive towards (r,) obstacles up to (r,) next places: accelerate, keep top speed, brake.

    Whether eq. (7) gives 0 or less than the speed above the parabola makes no difference: both brake at |a_min|.
    """
    up, down, top = vehicle.a_max_mps2, vehicle.braking_mps2, vehicle.top_speed_mps
    squared = speed * speed
    free = squared < 2 * down * np.maximum(obstacle_m - start_m, 0)
    # Accelerate to the parabola, to top speed, or to the next place, whichever comes first.
    to_parabola = (2 * down * (obstacle_m - start_m) - squared) / (2 * (up + down))
    to_top = (top**2 - squared) / (2 * up)
    first_m = np.where(free, np.minimum(np.minimum(to_parabola, to_top), until_m - start_m), 0.0)
    at_top = free & (to_top <= first_m)
    faster = np.where(at_top, top, np.sqrt(squared + 2 * up * first_m))
    faster = np.where(free, faster, speed)
    time_s = (faster - speed) / up
    # Keep top speed until the parabola or the next place.
    brake_m = np.where(at_top, np.clip(obstacle_m - vehicle.full_speed_distance_m, start_m + first_m, until_m), 0.0)
    brake_m = np.where(at_top, brake_m, start_m + first_m)
    time_s += (brake_m - (start_m + first_m)) / top
    # Brake. On the parabola that ends at the obstacle; from above it beyond.
    still = brake_m + faster * faster / (2 * down)
    still = np.where(free, obstacle_m, still)
    rest = still < until_m
    slower = np.sqrt(np.maximum(faster * faster - 2 * down * (until_m - brake_m), 0))
    slower = np.where(rest, 0.0, slower)
    time_s += (faster - slower) / down
    return _Followed(np.where(rest, still, until_m), slower, time_s, rest)
