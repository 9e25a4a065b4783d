"""Closed-loop control by time steps, as in Pezzementi et al. 2021, Sec. 6.3: all runs of a batch at once.

At every step of dt = 50 ms the safe speed of eq. (7) is found and the speed moves towards it at the greatest rate.
Within a step the acceleration is constant, so the distance is the mean of both speeds times dt. The loop is over time
only; stretches in which the safe speed cannot change are taken in one go (see `traces`), which gives the same
states. `traces` records every single step; events need no time step at all.

Closed-loop control without a time step: the limit of the step engine for dt -> 0, in closed form.

The acceleration only ever is a_max, 0 or a_min, so speed squared is piecewise linear in position (v^2 = v0^2 + 2 a s)
and all that happens between two images is at most: accelerate, keep top speed, brake. Under `continuous` the safe
speed is the parabola v^2 = 2 |a_min| (x - s) before an obstacle that ends the way at x. Below it the vehicle
accelerates; on it braking at |a_min| stays on it and comes to rest at x; above it braking comes to rest beyond x.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import LimitError
from verifier.base.numbers import significant
from verifier.closedloop.fleet import Engine, Fleet, make_batch
from verifier.closedloop.settings import EngineName
from verifier.closedloop.traces import NEAR, Course, ExactMotion, Ramp, VehicleSettings, ramp, safe_speed_mps


@dataclass(frozen=True)
class EventEngine(Engine):
    """The engine that goes from image to image; its unit of time is the second."""

    def motion(self, speed: Floats, target: Floats) -> ExactMotion:
        """See `Engine`."""
        rate = np.where(target > speed, self.vehicle.a_max_mps2, self.vehicle.a_min_mps2)
        return ExactMotion(speed, target, rate)

    def approach(self, fleet: Fleet) -> Mask:
        """To the next image, or to rest."""
        resting = np.zeros(len(fleet.until_m), dtype=bool)
        at = np.flatnonzero(np.isfinite(fleet.until_m))
        here, until, obstacle = fleet.position_m[at], fleet.until_m[at], fleet.obstacle_m[at]
        fleet.position_m[at], fleet.speed_mps[at], time_s, resting[at] = _follow(
            here, fleet.speed_mps[at], obstacle, until, self.vehicle
        )
        fleet.time[at] += time_s
        return resting


def _follow(
    start_m: Floats, speed: Floats, obstacle_m: Floats, until_m: Floats, vehicle: VehicleSettings
) -> tuple[Floats, Floats, Floats, Mask]:
    """Drive towards (r,) obstacles up to (r,) next places: accelerate, keep top speed, brake.

    Position and speed there, the time it took, and whether the vehicle came to rest before, each (r,).
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
    return np.where(rest, still, until_m), slower, time_s, rest


MOST_STEPS = 100_000
LARGEST_TABLE = 8_000_000
"""Entries of the tables of one batch (levels x places); more courses than fit make several batches."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """How every course ended at every sensitivity, and driven by the truth.

    Attributes:
        stop_m: (C, K) arc length of the stop that ended the run; inf where none did. Negative logs: inf.
        time_s: (C, K) from start to end of the run.
        stops: (C, K) int64 stops that were recorded.
        true_stop_m, true_time_s: (C,) the same of the run driven by the truth.
    """

    stop_m: Floats
    time_s: Floats
    stops: Ints
    true_stop_m: Floats
    true_time_s: Floats


@dataclass(frozen=True)
class StepEngine(Engine):
    """The engine with time steps; its unit of time is one step."""

    def motion(self, speed: Floats, target: Floats) -> Ramp:
        """See `Engine`."""
        return ramp(speed, target, self.vehicle)

    def approach(self, fleet: Fleet) -> Mask:
        """One time step."""
        speed = fleet.speed_mps
        safe = safe_speed_mps(np.maximum(fleet.obstacle_m - fleet.position_m, 0.0), speed, self.vehicle)
        resting: Mask = (safe == 0) & (speed == 0)
        most = self.vehicle.braking_mps2 * self.vehicle.dt_s
        slower = speed - most
        slower[slower < NEAR * most] = 0.0
        faster = speed + self.vehicle.a_max_mps2 * self.vehicle.dt_s
        fleet.speed_mps = np.maximum(np.minimum(safe, faster), slower)
        fleet.position_m += (0.5 * self.vehicle.dt_s) * (speed + fleet.speed_mps)
        fleet.time += ~resting
        return resting


def simulate(
    courses: Iterable[Course], sensitivity: Floats, vehicle: VehicleSettings, engine: EngineName
) -> Outcomes:
    """Run every course at every sensitivity, and once driven by the truth.

    Args:
        courses: one or more, of any logs, detectors and conditions, taken one after the other: a generator will do.
        sensitivity: (K,) increasing; at tau the detections with a standardized sensitivity <= tau count.
        engine: "steps" of `dt_s`, or "events" (see above).

    Raises:
        LimitError: the time step is so short that braking takes too many, or a run never comes to its end.
    """
    chosen: Engine = EventEngine(vehicle)
    if engine == "steps":
        _check_steps(vehicle)
        chosen = StepEngine(vehicle, vehicle.dt_s, NEAR * vehicle.top_speed_mps * vehicle.dt_s)
    parts = []
    for some in _chunks(courses, LARGEST_TABLE // (len(sensitivity) + 1)):
        batch = make_batch(some, sensitivity, vehicle)
        parts.append([array[batch.run_of].T for array in Fleet(batch, chosen).run()])
    whole = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Outcomes(
        *(np.ascontiguousarray(array[:, :-1]) for array in whole), *(array[:, -1].copy() for array in whole[:2])
    )


def _check_steps(vehicle: VehicleSettings) -> None:
    weakest = min(vehicle.braking_mps2, vehicle.a_max_mps2)
    steps = vehicle.top_speed_mps / (weakest * vehicle.dt_s)
    if steps > MOST_STEPS:
        raise LimitError(
            f"between rest and top speed lie {significant(steps)} steps of {vehicle.dt_s:g} s; at most "
            f"{MOST_STEPS} are made",
            hint="take longer time steps or greater accelerations",
        )


def _chunks(courses: Iterable[Course], most_places: int) -> Iterator[list[Course]]:
    """Consecutive courses with together at most so many places; a longer course stands alone."""
    some: list[Course] = []
    places = 0
    for course in courses:
        own = len(course.image_s_m) + 1
        if some and places + own > most_places:
            yield some
            some, places = [], 0
        some.append(course)
        places += own
    if some:
        yield some
