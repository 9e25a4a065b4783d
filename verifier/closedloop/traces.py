"""Every step of single runs, for looking at what the vehicle did and why.

This is the simulation of `simulator` with time steps, written without its tables and long stretches: one course, a
few levels, one state per step. Both give the same stops and times.

Stepping towards a speed that does not change, many steps at once.

The step engine moves the vehicle by time steps of constant acceleration (so within a step the distance is the mean of
both speeds times dt). While the safe speed stays what it is, the speeds are an arithmetic sequence with one shorter
last step, so the state after n steps has a closed form, and so has the first n at which a position is reached.

The simulated vehicle and its safe speed (Pezzementi et al. 2021, Sec. 6.3, eq. 7).

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

A course: one log as the simulated vehicle meets it, with everything projected onto its path.

After the Pathifier (Pezzementi et al. 2021, Sec. 6.2) the world is one-dimensional. The vehicle is locked to the
path, the images are positions on it, and a detection in an image is a distance along the path to where the vehicle
would come within the control radius of what was detected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import LimitError
from verifier.base.numbers import significant
from verifier.closedloop.settings import BetweenImages, TooClose

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
        finite = np.isfinite(steps)
        some = np.where(finite, steps, 0.0)
        fewer = np.maximum(some - 1, 0)
        steps[finite & (self.distance(some) < metres)] += 1
        enough = finite & (self.distance(fewer) >= metres)
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
        """See `Ramp`."""
        return (self.target - self.speed) / self.rate

    def distance(self, time: Floats) -> Floats:
        """See `Ramp`."""
        ramp_s = np.minimum(time, self.time_to_target())
        return ramp_s * (self.speed + 0.5 * self.rate * ramp_s) + (time - ramp_s) * self.target

    def speed_after(self, time: Floats) -> Floats:
        """See `Ramp`."""
        return np.where(time >= self.time_to_target(), self.target, self.speed + self.rate * time)

    def time_to(self, metres: Floats) -> Floats:
        """See `Ramp`."""
        until = self.time_to_target()
        beyond = metres - self.distance(until)
        with np.errstate(divide="ignore", invalid="ignore"):
            early = 2 * metres / (self.speed + np.sqrt(np.maximum(self.speed**2 + 2 * self.rate * metres, 0)))
            late = until + np.where(self.target > 0, beyond / self.target, np.inf)
        return np.where(beyond > 0, late, np.minimum(early, until))


MOST_STEPS = 1_000_000


@dataclass(frozen=True, eq=False)
class Trace:
    """The states of one run, one per time step and the last; step i lasts from state i to state i + 1.

    Attributes:
        time_s, position_m, speed_mps: (n + 1,) state of the vehicle.
        image: (n + 1,) int64 the image in view; -1 before the first.
        distance_m: (n + 1,) left to the nearest positive detection in view; inf without one.
        safe_speed_mps: (n + 1,) what the vehicle steers for in the step that begins here.
        stopped: (n + 1,) bool, a stop is recorded here.
    """

    time_s: Floats
    position_m: Floats
    speed_mps: Floats
    image: Ints
    distance_m: Floats
    safe_speed_mps: Floats
    stopped: Mask

    def rows(self) -> Iterator[dict[str, int | float | bool]]:
        """One flat row per state."""
        columns = [values.tolist() for values in vars(self).values()]
        return (dict(zip(vars(self), row, strict=True)) for row in zip(*columns, strict=True))


def trace(course: Course, sensitivity: float | None, vehicle: VehicleSettings) -> Trace:
    """Play one log back and keep every state.

    Args:
        course: to drive.
        sensitivity: the level; None for the run driven by the truth.

    Raises:
        LimitError: the run needs more than `MOST_STEPS`. A safe speed that is held (`hold`) can be next to nothing.
    """
    nearest_m = _nearest(course, sensitivity)
    near_m = NEAR * vehicle.top_speed_mps * vehicle.dt_s
    rows: list[tuple[float, float, int, float, float, bool]] = []
    position, speed, image, cleared, held = float(course.image_s_m[0]), vehicle.start_speed_mps, -1, False, 0.0
    while True:
        current = int(np.searchsorted(course.image_s_m, position + near_m, side="right")) - 1
        fresh, image = current != image, current
        cleared = cleared and not fresh
        distance = np.inf if cleared else float(nearest_m[image])
        if vehicle.between_images == "continuous":
            distance = max(0.0, distance - (position - float(course.image_s_m[image])))
        if fresh or vehicle.between_images == "continuous":
            held = float(safe_speed_mps(np.array([distance]), np.array([speed]), vehicle)[0])
        ended = position >= course.finish_m - near_m
        stopped = not ended and held == 0 and speed == 0
        if stopped and not course.positive:
            cleared, held = True, vehicle.top_speed_mps
        rows.append((position, speed, image, distance, held, stopped))
        if ended or (stopped and course.positive):
            time_s = vehicle.dt_s * np.arange(len(rows), dtype=np.float64)
            return Trace(time_s, *map(np.array, zip(*rows, strict=True)))
        if len(rows) > MOST_STEPS:
            raise LimitError(
                f"a run needs more than {MOST_STEPS} steps of {vehicle.dt_s:g} s; it has come to "
                f"{significant(position, 6)} of {significant(course.finish_m, 6)} m at {significant(speed)} m/s"
            )
        after = _towards(speed, held, vehicle)
        position += 0.5 * vehicle.dt_s * (speed + after)
        speed = after


def _nearest(course: Course, sensitivity: float | None) -> Floats:
    """(I,) distance of the nearest positive detection of each image, or of the nearest person."""
    nearest_m = np.full(len(course.image_s_m), np.inf)
    if sensitivity is None:
        np.minimum.at(nearest_m, course.truth_image, course.truth_distance_m)
    else:
        used = course.detection_sensitivity <= sensitivity
        np.minimum.at(nearest_m, course.detection_image[used], course.detection_distance_m[used])
    return nearest_m


def _towards(speed: float, target: float, vehicle: VehicleSettings) -> float:
    """The speed one step later."""
    most = (vehicle.a_max_mps2 if target >= speed else vehicle.braking_mps2) * vehicle.dt_s
    if abs(target - speed) <= (1 + NEAR) * most:
        return target
    return speed + most if target > speed else speed - most


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

    @property
    def braking_mps2(self) -> float:
        """|a_min|."""
        return -self.a_min_mps2

    @property
    def full_speed_distance_m(self) -> float:
        """From this distance on the safe speed is S_max: S_max^2 / (2 |a_min|), 0.984 m with the defaults."""
        return self.top_speed_mps**2 / (2 * self.braking_mps2)


def safe_speed_mps(distance_m: Floats, speed_mps: Floats, vehicle: VehicleSettings) -> Floats:
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


@dataclass(frozen=True, eq=False)
class Course:
    """One log on its path: what one source of detections reports, and what is truly there.

    Attributes:
        positive: a person stands where the vehicle must stop. In a negative log every stop is needless.
        image_s_m: (I,) arc length along the path of each image's pose, non-decreasing; I >= 1.
        end_s_m: arc length at which the path ends, at or beyond the last image.
        detection_image: (D,) int64 the image of each detection.
        detection_distance_m: (D,) pathified distance from that image's pose, >= 0: the arc length from there to the
            first point ahead within the control radius; 0 where the pose lies within it, inf where no point does.
        detection_sensitivity: (D,) standardized: expected false positives per image at the detection's strength, so
            smaller is stronger. At level tau those with a sensitivity <= tau count. inf: never.
        truth_image: (T,) int64 as `detection_image`, for people that are there. Empty in a negative log.
        truth_distance_m: (T,) as `detection_distance_m`.
    """

    positive: bool
    image_s_m: Floats
    end_s_m: float
    detection_image: Ints
    detection_distance_m: Floats
    detection_sensitivity: Floats
    truth_image: Ints
    truth_distance_m: Floats

    @property
    def finish_m(self) -> float:
        """Where a run ends that was not ended by a stop: the end of the path, in negative logs the last image."""
        return float(self.end_s_m if self.positive else self.image_s_m[-1])
