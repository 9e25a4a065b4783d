"""All runs of a batch on their way at once: what both engines share.

An engine says how a vehicle moves towards a speed and what it does while an obstacle is in view; the fleet knows the
rules of replay (Pezzementi et al. 2021, Sec. 6.3):

* In view is the last image whose position the vehicle has reached.
* A stop is recorded when safe speed and speed are both 0. In a positive log it ends the run. In a negative log the
  detections in view are cleared, and the vehicle accelerates again until the next image.
* Without a stop, a run ends at the finish.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import LimitError
from verifier.closedloop.batch import Batch
from verifier.closedloop.vehicle import VehicleSettings

MOST_ROUNDS = 1_000_000


@dataclass(frozen=True, eq=False)
class Runs:
    """How each of R runs ended.

    Attributes:
        stop_m: (R,) arc length of the stop that ended the run; inf where none did (always so in negative logs).
        time_s: (R,) from start to end.
        stops: (R,) int64 stops that were recorded.
    """

    stop_m: Floats
    time_s: Floats
    stops: Ints


class Motion(Protocol):
    """The way of (r,) vehicles from their speeds to target speeds; time in the engine's own unit."""

    def time_to(self, metres: Floats) -> Floats:
        """(r,) until so far, metres > 0; inf where the vehicle comes to rest before."""

    def time_to_target(self) -> Floats:
        """(r,) until the target speed is reached."""

    def distance(self, time: Floats) -> Floats:
        """(r,) metres after that time."""

    def speed_after(self, time: Floats) -> Floats:
        """(r,) m/s after that time."""


class Engine(Protocol):
    """How time is dealt with."""

    @property
    def unit_s(self) -> float:
        """Seconds per unit of its time."""

    @property
    def near_m(self) -> float:
        """A position counts as reached from so close on, lest rounding decide between two steps."""

    def motion(self, speed: Floats, target: Floats) -> Motion:
        """Towards (r,) target speeds at the greatest rates."""

    def approach(self, fleet: Fleet) -> Mask:
        """Move every run on, at most to its next place; (r,) which are at rest and have to stay at rest."""


class Fleet:
    """The runs that are under way, r of them; those that end are recorded and, every now and then, dropped.

    Attributes:
        vehicle: limits and readings.
        position_m, speed_mps, time: (r,) state of each run.
        obstacle_m: (r,) where the nearest positive detection in view ends the way; inf where none does.
        seen_m: (r,) its distance from the image in view.
        until_m: (r,) where the next image, or the finish, is reached.
    """

    def __init__(self, batch: Batch, vehicle: VehicleSettings, engine: Engine) -> None:
        count = len(batch.run_level)
        self._batch, self.vehicle, self._engine = batch, vehicle, engine
        self._seen, self._next = batch.seen_m.ravel(), batch.next.ravel()
        self._reach_m, self._view_end_m = batch.place_m - engine.near_m, batch.view_end_m - engine.near_m
        self._run = np.arange(count)
        self._row = batch.run_level * len(batch.place_m)
        self._place = batch.first[batch.run_course]
        self._stops = np.zeros(count, dtype=np.int64)
        self.position_m = batch.place_m[self._place]
        self.speed_mps = np.full(count, vehicle.start_speed_mps)
        self.time = np.zeros(count)
        self.obstacle_m = np.full(count, np.inf)
        self.seen_m = np.full(count, np.inf)
        self.until_m = np.full(count, np.inf)
        self._over = np.zeros(count, dtype=bool)
        self._ended = Runs(np.full(count, np.inf), np.zeros(count), np.zeros(count, dtype=np.int64))

    def run(self) -> Runs:
        """Let every run come to its end.

        Raises:
            LimitError: one does not; the vehicle creeps, or the time step is tiny.
        """
        everyone = np.arange(len(self._run))
        self._look(everyone)
        rounds = 0
        while len(self._run):
            rounds += 1
            if rounds > MOST_ROUNDS:
                raise LimitError(
                    f"after {MOST_ROUNDS} steps within reach of an obstacle {len(self._run)} runs are under way",
                    hint="take longer time steps or greater accelerations",
                )
            resting = self._engine.approach(self)
            if resting.any():
                self._rest(np.flatnonzero(resting))
            arrived = self.position_m >= self.until_m
            if arrived.any():
                self._look(np.flatnonzero(arrived))
            if 8 * np.count_nonzero(self._over) > len(self._run):
                self._drop()
        return self._ended

    def steer(self, at: Ints, target: Floats) -> Mask:
        """Drive the runs `at` towards their target speeds up to their next place; which come to rest before."""
        motion = self._engine.motion(self.speed_mps[at], target)
        time = motion.time_to(self.until_m[at] - self.position_m[at])
        rest = np.isinf(time)
        time = np.where(rest, motion.time_to_target(), time)
        reached = self.position_m[at] + motion.distance(time)
        self.position_m[at] = np.where(rest, reached, np.maximum(reached, self.until_m[at]))
        self.speed_mps[at] = motion.speed_after(time)
        self.time[at] += time
        return rest

    def _rest(self, at: Ints) -> None:
        """Record a stop; in a positive log the end, otherwise drive on without what is in view."""
        self._stops[at] += 1
        positive = self._batch.positive[self._batch.run_course[self._run[at]]]
        self._end(at[positive], self.position_m[at[positive]])
        self._cruise(at[~positive])
        self._look(at[~positive])

    def _look(self, at: Ints) -> None:
        """Take the image that is in view at the runs `at`; drive on at once while there is nothing in it."""
        while len(at):
            self._find_place(at)
            finished = self._place[at] == self._finish(at)
            self._end(at[finished], np.inf)
            at = at[~finished]
            place = self._place[at]
            seen_m, until_m = self._seen[self._row[at] + place], self._view_end_m[place]
            self.seen_m[at], self.until_m[at] = seen_m, until_m
            self.obstacle_m[at] = self._batch.place_m[place] + seen_m
            at = at[np.isinf(seen_m) | (until_m <= self.position_m[at])]
            self._cruise(at)

    def _cruise(self, at: Ints) -> None:
        """Drive towards top speed until the next image with an obstacle, or the finish."""
        target = self._next[self._row[at] + self._place[at] + 1]
        self.until_m[at] = self._reach_m[target]
        self.steer(at, np.full(len(at), self.vehicle.top_speed_mps))
        self._place[at] = target

    def _find_place(self, at: Ints) -> None:
        """Step on to the last place that is reached."""
        while len(at):
            at = at[self._place[at] < self._finish(at)]
            at = at[self._reach_m[self._place[at] + 1] <= self.position_m[at]]
            self._place[at] += 1

    def _finish(self, at: Ints) -> Ints:
        return self._batch.finish[self._batch.run_course[self._run[at]]]

    def _end(self, at: Ints, stop_m: Floats | float) -> None:
        """Record the end. Until they are dropped such runs drive on where nobody looks."""
        run = self._run[at]
        self._ended.stop_m[run] = stop_m
        self._ended.time_s[run] = self.time[at] * self._engine.unit_s
        self._ended.stops[run] = self._stops[at]
        self._over[at] = True
        self.obstacle_m[at] = self.seen_m[at] = self.until_m[at] = np.inf

    def _drop(self) -> None:
        keep = ~self._over
        for name in ("_run", "_row", "_place", "_stops", "_over"):
            setattr(self, name, getattr(self, name)[keep])
        for name in ("position_m", "speed_mps", "time", "obstacle_m", "seen_m", "until_m"):
            setattr(self, name, getattr(self, name)[keep])
