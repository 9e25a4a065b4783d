"""The closed-loop trade-off curve: does the vehicle stop in time, and how much time does it lose?

Pezzementi et al. 2021, Sec. 8.2.3. A detector is compared with the *reference* vehicle, which has the same
controller but is told where people are.

* Safety S(tau): share of the positive logs in which the vehicle stops no later than the reference vehicle, "later" by
  position along the path. (By time, a vehicle that drives carefully would count as late.) Where the reference
  vehicle never stops, every run is safe by definition; `never_stops` says in which logs.
* The safety radius asks for less: that the vehicle is never in motion within that distance of a person (Sec. 3). The
  controller keeps a greater distance, the control radius, so a vehicle that stops too late by the measure above may
  still have kept the safety radius; and where somebody appears too near to stop, the reference vehicle breaks it,
  too.
* Efficiency (eq. 12): E(tau) = sum t_truth / sum (t + nu n) over the negative logs, n the number of stops and nu what
  one costs in seconds. It is one ratio of sums, not a mean of ratios.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats
from verifier.base.errors import InputError
from verifier.closedloop.course import Course
from verifier.closedloop.curves import TradeOffCurve
from verifier.closedloop.settings import EngineName
from verifier.closedloop.simulator import Outcomes, simulate
from verifier.closedloop.vehicle import VehicleSettings


def standard_sensitivities(count: int = 100, lowest: float = 1e-4, highest: float = 1.0) -> Floats:
    """(count,) standardized sensitivities, equally spaced in their logarithm.

    The paper has 100 up to 1 false positive per image. Its lower end is lost in the print; 1e-4 is our reading.

    Raises:
        ValueError: not 0 < lowest < highest < inf, or fewer than 2.
    """
    if count < 2 or not 0 < lowest < highest < math.inf:
        raise ValueError(f"expected at least 2 levels and 0 < lowest < highest, got {count}, {lowest}, {highest}")
    return np.geomspace(lowest, highest, count)


@dataclass(frozen=True)
class LoopSettings:
    """Everything a closed-loop curve depends on beside the logs.

    Attributes:
        engine: "steps" as in the paper, or "events", its limit without a time step.
        stop_cost_s: nu of eq. (12), >= 0; 0 in the paper.
        tolerance_m: a stop counts as no later up to so much beyond the reference vehicle; it covers the rounding of
            positions, nothing physical.

    Raises:
        ValueError: a value is negative or not finite.
    """

    vehicle: VehicleSettings
    engine: EngineName = "events"
    stop_cost_s: float = 0.0
    tolerance_m: float = 1e-6

    def __post_init__(self) -> None:
        for name in ("stop_cost_s", "tolerance_m"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be a number from 0, got {getattr(self, name)}")


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """What one detector under one condition does to the vehicle, log by log.

    Attributes:
        sensitivity: (K,) increasing levels.
        positive: (L,) bool.
        outcomes: of every log at every level.
    """

    sensitivity: Floats
    positive: NDArray[np.bool_]
    outcomes: Outcomes
    settings: LoopSettings

    @property
    def safe(self) -> NDArray[np.bool_]:
        """(P, K) of each positive log: the vehicle stops no later than the reference vehicle."""
        found = self.outcomes
        latest_m = found.true_stop_m[self.positive] + self.settings.tolerance_m
        return found.stop_m[self.positive] <= latest_m[:, None]

    def kept(self, violation_m: Floats) -> NDArray[np.bool_]:
        """(P, K) of each positive log: the vehicle is never in motion within the safety radius of a person.

        Args:
            violation_m: (L,) where the path of each log comes within it, as `pathifier.violation_m`; inf: nowhere.
        """
        return ~self._drives_beyond(self.outcomes.stop_m, violation_m)[self.positive]

    def truth_breaks(self, violation_m: Floats) -> NDArray[np.int64]:
        """The positive logs, by their number among all, in which the reference vehicle does not keep it."""
        beyond = self._drives_beyond(self.outcomes.true_stop_m[:, None], violation_m)[:, 0]
        return np.flatnonzero(self.positive & beyond)

    def _drives_beyond(self, stop_m: Floats, limit_m: Floats) -> NDArray[np.bool_]:
        # Where nothing stops the vehicle it drives to the end of the path, and a limit on the path is before that.
        return stop_m > limit_m[:, None] + self.settings.tolerance_m

    @property
    def cost_s(self) -> Floats:
        """(N, K) t + nu n of each negative log."""
        negative = ~self.positive
        return self.outcomes.time_s[negative] + self.settings.stop_cost_s * self.outcomes.stops[negative]

    @property
    def true_time_s(self) -> Floats:
        """(N,) time of the reference vehicle on each negative log."""
        return self.outcomes.true_time_s[~self.positive]

    @property
    def never_stops(self) -> NDArray[np.int64]:
        """The positive logs, by their number among all, in which the reference vehicle never stops."""
        return np.flatnonzero(self.positive & np.isinf(self.outcomes.true_stop_m))

    @property
    def curve(self) -> TradeOffCurve:
        """Safety and efficiency at every level."""
        return self.curve_of(self.safe)

    def curve_of(self, safe: NDArray[np.bool_]) -> TradeOffCurve:
        """The same with another notion of safety, (P, K) of each positive log, as `kept`."""
        efficiency = self.true_time_s.sum() / self.cost_s.sum(axis=0)
        return TradeOffCurve(self.sensitivity, safe.mean(axis=0), at_most_one(efficiency))


def at_most_one(efficiency: Floats) -> Floats:
    """Efficiencies without the last bit of their sums: nothing is faster than the reference vehicle.

    Raises:
        ValueError: one is more than rounding above 1.
    """
    if np.any(efficiency > 1 + 1e-9):
        raise ValueError(f"an efficiency of {efficiency.max()}: a run was faster than the reference vehicle")
    return np.minimum(efficiency, 1.0)


def closed_loop(courses: Iterable[Course], sensitivity: Floats, settings: LoopSettings) -> ClosedLoop:
    """Drive every log at every sensitivity.

    Args:
        courses: one per log, all from one detector under one condition.
        sensitivity: (K,) increasing.

    Raises:
        InputError: there is no positive log (safety is undefined) or no negative log of any length (efficiency is).
    """
    return closed_loops([list(courses)], sensitivity, settings)[0]


def closed_loops(
    sources: Sequence[Sequence[Course]], sensitivity: Floats, settings: LoopSettings
) -> list[ClosedLoop]:
    """As `closed_loop` for several detectors and conditions over the same logs, in one batch."""
    counts = {len(each) for each in sources}
    if len(counts) != 1:
        raise ValueError(f"every source needs the same logs; there are sources with {sorted(counts)}")
    positive = np.array([each.positive for each in sources[0]], dtype=bool)
    if any([each.positive for each in source] != positive.tolist() for source in sources[1:]):
        raise ValueError("the sources disagree about which logs are positive")
    check_logs(positive)
    every = simulate(
        (each for courses in sources for each in courses), sensitivity, settings.vehicle, settings.engine
    )
    found = [
        ClosedLoop(sensitivity, positive, _part(every, at, len(positive)), settings) for at in range(len(sources))
    ]
    if not found[0].true_time_s.sum() > 0:
        raise InputError("the negative logs have no length, so efficiency is undefined")
    return found


def check_logs(positive: NDArray[np.bool_]) -> None:
    """Refuse logs from which safety or efficiency cannot be had; InputError."""
    if not positive.any():
        raise InputError("there is no positive log, so safety is undefined", hint="add logs that end before a person")
    if positive.all():
        raise InputError("there is no negative log, so efficiency is undefined", hint="add logs with a free path")


def _part(every: Outcomes, at: int, size: int) -> Outcomes:
    rows = slice(at * size, (at + 1) * size)
    return Outcomes(
        every.stop_m[rows],
        every.time_s[rows],
        every.stops[rows],
        every.true_stop_m[rows],
        every.true_time_s[rows],
        every.true_stops[rows],
    )
