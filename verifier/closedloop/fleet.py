"""All runs of a batch on their way at once: what both engines share.

An engine says how a vehicle moves towards a speed and what it does while an obstacle is in view; the fleet knows the
rules of replay (Pezzementi et al. 2021, Sec. 6.3):

* In view is the last image whose position the vehicle has reached.
* A stop is recorded when safe speed and speed are both 0. In a positive log it ends the run. In a negative log the
  detections in view are cleared, and the vehicle accelerates again until the next image.
* Without a stop, a run ends at the finish.

Many runs as tables: every course at every sensitivity, and once more driven by the truth.

Between two images nothing new is seen, so all a run needs of its detections is the nearest positive one per image.
Sorting detections into levels of sensitivity and taking running minima gives that for all levels at once. Two things
keep the tables and the number of runs small, and change no number:

* a detection that stays too far away to lower the safe speed while its image is in view is left out, and an image
  with nothing left is no place of its own;
* levels at which a course looks the same are simulated once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import LimitError
from verifier.base.numbers import memory_text
from verifier.closedloop.traces import Course, ExactMotion, Ramp, VehicleSettings, safe_speed_mps

LARGEST_BATCH = 60_000_000
BYTES_PER_ENTRY = 30
"""At the most, while the tables are made."""


@dataclass(frozen=True, eq=False)
class Batch:
    """The tables of C courses at K levels of sensitivity; row K is the run driven by the truth.

    The n *places* of all courses stand one after the other: of each course its first image, the images in which
    something matters at some level, and its finish.

    Attributes:
        positive: (C,) bool.
        first, finish: (C,) int64 first place and finish of each course.
        place_m: (n,) arc length, never decreasing within a course.
        view_end_m: (n,) where the next image comes into view. Of images at one position only the last is ever in
            view, and of a negative log not the last one, where the run ends.
        seen_m: (K + 1, n) distance from a place to the nearest positive detection in its image; inf without one.
        next: (K + 1, n) int32 the first place from here on (it included) with a detection, or the finish.
        run_of: (K + 1, C) which run each level and course is.
        run_level, run_course: (R,) of each run, R <= (K + 1) C.
    """

    positive: Mask
    first: Ints
    finish: Ints
    place_m: Floats
    view_end_m: Floats
    seen_m: Floats
    next: NDArray[np.int32]
    run_of: Ints
    run_level: Ints
    run_course: Ints


def make_batch(courses: Sequence[Course], sensitivity: Floats, vehicle: VehicleSettings) -> Batch:
    """Put the detections of every course at its places, for every level.

    Args:
        courses: at least one.
        sensitivity: (K,) increasing levels; at tau the detections with a standardized sensitivity <= tau count.

    Raises:
        LimitError: the tables would be too large; only a single very long log can be.
    """
    images = _Images.of(courses)
    reach_m = _reach(images, vehicle)
    image, distance, strength = images.rows(
        courses, "detection_image", "detection_distance_m", "detection_sensitivity"
    )
    used = (distance < reach_m[image]) & (strength <= sensitivity[-1])
    person, true_distance = images.rows(courses, "truth_image", "truth_distance_m")
    there = true_distance < reach_m[person]
    # Detections at their levels, and people in the last row.
    image = np.append(image[used], person[there])
    distance = np.append(distance[used], true_distance[there])
    level = np.append(
        np.searchsorted(sensitivity, strength[used]), np.full(np.count_nonzero(there), len(sensitivity))
    )

    place_of, first, finish = images.places(image)
    chosen = np.flatnonzero(place_of >= 0)
    place_m, view_end_m = np.empty(int(finish[-1]) + 1), np.empty(int(finish[-1]) + 1)
    place_m[place_of[chosen]], view_end_m[place_of[chosen]] = images.position_m[chosen], images.view_end_m[chosen]
    place_m[finish] = view_end_m[finish] = [course.finish_m for course in courses]
    seen_m = _nearest(len(sensitivity), len(place_m), level, place_of[image], distance)
    differs = _differs(seen_m, first)
    number = np.cumsum(differs.ravel()).reshape(differs.shape) - 1
    return Batch(
        np.array([course.positive for course in courses]),
        first,
        finish,
        place_m,
        view_end_m,
        seen_m,
        _next_detections(seen_m, finish),
        np.maximum.accumulate(np.where(differs, number, -1), axis=0),
        *np.nonzero(differs),
    )


def _reach(images: _Images, vehicle: VehicleSettings) -> Floats:
    """(I,) how near a detection in each image must be to lower the safe speed while the image is in view."""
    seen_over_m = images.view_end_m - images.position_m
    further_m = 0.0 if vehicle.between_images == "hold" else seen_over_m
    return np.where(seen_over_m > 0, vehicle.full_speed_distance_m + further_m, 0.0)


def _nearest(levels: int, places: int, level: Ints, place: Ints, distance: Floats) -> Floats:
    """(levels + 1, places) the least distance at each place, over the level's and all lower ones; last row by itself.

    Raises:
        LimitError: the table would be too large.
    """
    if (levels + 1) * places > LARGEST_BATCH:
        raise LimitError(
            f"logs with {places} images that matter, at {levels} levels, need about "
            f"{memory_text((levels + 1) * places * BYTES_PER_ENTRY)}; at most {LARGEST_BATCH} entries are made",
            hint="cut long logs into pieces",
        )
    table = np.full((levels + 1, places), np.inf)
    np.minimum.at(table.reshape(-1), level * places + place, distance)
    for k in range(1, levels):
        np.minimum(table[k], table[k - 1], out=table[k])
    return table


@dataclass(frozen=True, eq=False)
class _Images:
    """The images of all courses, one after the other: (C + 1,) their ends, (I,) position and end of view of each."""

    ends: Ints
    position_m: Floats
    view_end_m: Floats

    @classmethod
    def of(cls, courses: Sequence[Course]) -> _Images:
        ends = np.cumsum([0, *(len(course.image_s_m) for course in courses)])
        position_m = np.concatenate([course.image_s_m for course in courses])
        view_end_m = np.append(position_m[1:], 0.0)
        view_end_m[ends[1:] - 1] = [course.finish_m for course in courses]
        return cls(ends, position_m, view_end_m)

    def rows(self, courses: Sequence[Course], image: str, *others: str) -> tuple[NDArray[Any], ...]:
        """Columns of all courses, the first as an index into all images."""
        index = [getattr(course, image) + start for course, start in zip(courses, self.ends.tolist(), strict=False)]
        return np.concatenate(index), *(
            np.concatenate([getattr(course, name) for course in courses]) for name in others
        )

    def places(self, image: Ints) -> tuple[Ints, Ints, Ints]:
        """(I,) the place of each image, -1 without one; (C,) first place and finish of each course."""
        chosen = np.zeros(len(self.position_m), dtype=bool)
        chosen[image] = True
        chosen[self.ends[:-1]] = True
        count = np.cumsum(chosen)
        courses = np.arange(len(self.ends) - 1)
        course = np.repeat(courses, np.diff(self.ends))
        finish = count[self.ends[1:] - 1] + courses
        return np.where(chosen, count - 1 + course, -1), np.append(0, finish[:-1] + 1), finish


def _differs(seen_m: Floats, first: Ints) -> Mask:
    """(K + 1, C) whether a course looks otherwise than at the level before; so at the first and for the truth."""
    differs = np.ones((len(seen_m), len(first)), dtype=bool)
    for level in range(1, len(seen_m) - 1):
        differs[level] = np.logical_or.reduceat(seen_m[level] != seen_m[level - 1], first)
    return differs


def _next_detections(seen_m: Floats, finish: Ints) -> NDArray[np.int32]:
    places = seen_m.shape[1]
    stop = np.isfinite(seen_m)
    stop[:, finish] = True
    index = np.where(stop, np.arange(places, dtype=np.int32), np.int32(places))
    backwards = index[:, ::-1]
    np.minimum.accumulate(backwards, axis=1, out=backwards)
    return index


MOST_ROUNDS = 1_000_000


@dataclass(frozen=True)
class Engine(ABC):
    """How time is dealt with.

    Attributes:
        unit_s: seconds per unit of its time.
        near_m: a position counts as reached from so close on, lest rounding decide between two steps.
    """

    vehicle: VehicleSettings
    unit_s: float = 1.0
    near_m: float = 0.0

    @abstractmethod
    def motion(self, speed: Floats, target: Floats) -> Ramp | ExactMotion:
        """From (r,) speeds towards (r,) target speeds at the greatest rates."""

    @abstractmethod
    def approach(self, fleet: Fleet) -> Mask:
        """Move every run on by the distance that shrinks while driving, at most to its next place; (r,) which are at
        rest and have to stay at rest."""


class Fleet:
    """The runs that are under way, r of them; those that end are recorded and, every now and then, dropped.

    Attributes:
        position_m, speed_mps, time: (r,) state of each run.
        obstacle_m: (r,) where the nearest positive detection in view ends the way; inf where none does.
        seen_m: (r,) its distance from the image in view.
        until_m: (r,) where the next image, or the finish, is reached.
    """

    def __init__(self, batch: Batch, engine: Engine) -> None:
        count = len(batch.run_level)
        self._batch, self.vehicle, self._engine = batch, engine.vehicle, engine
        self._seen, self._next = batch.seen_m.ravel(), batch.next.ravel()
        self._reach_m, self._view_end_m = batch.place_m - engine.near_m, batch.view_end_m - engine.near_m
        self._run = np.arange(count)
        self._row = batch.run_level * len(batch.place_m)
        self._place = batch.first[batch.run_course]
        self._stops = np.zeros(count, dtype=np.int64)
        self.position_m = batch.place_m[self._place]
        self.speed_mps = np.full(count, self.vehicle.start_speed_mps)
        self.time = np.zeros(count)
        self.obstacle_m = np.full(count, np.inf)
        self.seen_m = np.full(count, np.inf)
        self.until_m = np.full(count, np.inf)
        self._over = np.zeros(count, dtype=bool)
        self._ended = np.full(count, np.inf), np.zeros(count), np.zeros(count, dtype=np.int64)

    def run(self) -> tuple[Floats, Floats, Ints]:
        """Let every run come to its end.

        Returns:
            (R,) arc length of the stop that ended the run, inf where none did (always so in negative logs); (R,)
            seconds from start to end; (R,) int64 stops that were recorded.

        Raises:
            LimitError: one does not; the vehicle creeps, or the time step is tiny.
        """
        everyone = np.arange(len(self._run))
        self._look(everyone)
        rounds, held = 0, self.vehicle.between_images == "hold"
        while len(self._run):
            rounds += 1
            if rounds > MOST_ROUNDS:
                raise LimitError(
                    f"after {MOST_ROUNDS} steps within reach of an obstacle {len(self._run)} runs are under way",
                    hint="take longer time steps or greater accelerations",
                )
            resting = self._hold() if held else self._engine.approach(self)
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

    def _hold(self) -> Mask:
        """Drive at the safe speed of the image in view to the next one; which come to rest before."""
        at, resting = np.flatnonzero(np.isfinite(self.until_m)), np.zeros(len(self.until_m), dtype=bool)
        target = safe_speed_mps(self.seen_m[at], self.speed_mps[at], self.vehicle)
        resting[at] = self.steer(at, target)
        return resting

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
        ended_m, time_s, stops = self._ended
        ended_m[run] = stop_m
        time_s[run] = self.time[at] * self._engine.unit_s
        stops[run] = self._stops[at]
        self._over[at] = True
        self.obstacle_m[at] = self.seen_m[at] = self.until_m[at] = np.inf

    def _drop(self) -> None:
        keep = ~self._over
        for name in ("_run", "_row", "_place", "_stops", "_over"):
            setattr(self, name, getattr(self, name)[keep])
        for name in ("position_m", "speed_mps", "time", "obstacle_m", "seen_m", "until_m"):
            setattr(self, name, getattr(self, name)[keep])
