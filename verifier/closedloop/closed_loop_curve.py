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

How sure areas are, given that only so many logs were driven: the bootstrap over logs.

Images of one log resemble each other, so whole logs are drawn: positive logs from the positive ones and negative logs
from the negative ones, with replacement, as many as there are (a stratified bootstrap, Davison and Hinkley 1997, Sec.
3.2). Every detector, condition and metric sees the same draws, so that differences between them are judged on the
same logs. What a curve needs for that is what each log adds to its sums (`LogSums`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import InputError
from verifier.base.statistics import drawn_with_replacement
from verifier.closedloop.curves import FPR_MAX, TradeOffCurve
from verifier.closedloop.detection_outcomes import Judged
from verifier.closedloop.settings import EngineName
from verifier.closedloop.simulator import Outcomes, simulate
from verifier.closedloop.traces import Course, VehicleSettings


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
    """

    vehicle: VehicleSettings
    engine: EngineName = "events"
    stop_cost_s: float = 0.0
    tolerance_m: float = 1e-6


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """What one detector under one condition does to the vehicle, log by log.

    Attributes:
        sensitivity: (K,) increasing levels.
        positive: (L,) bool.
        outcomes: of every log at every level.
    """

    sensitivity: Floats
    positive: Mask
    outcomes: Outcomes
    settings: LoopSettings

    @property
    def safe(self) -> Mask:
        """(P, K) of each positive log: the vehicle stops no later than the reference vehicle."""
        outcomes = self.outcomes
        latest_m = outcomes.true_stop_m[self.positive] + self.settings.tolerance_m
        return outcomes.stop_m[self.positive] <= latest_m[:, None]

    def kept(self, violation_m: Floats) -> Mask:
        """(P, K) of each positive log: the vehicle is never in motion within the safety radius of a person.

        Args:
            violation_m: (L,) where the path of each log comes within it, as `pathifier.violation_m`; inf: nowhere.
        """
        return ~self._drives_beyond(self.outcomes.stop_m, violation_m)[self.positive]

    def truth_breaks(self, violation_m: Floats) -> Ints:
        """The positive logs, by their number among all, in which the reference vehicle does not keep it."""
        beyond = self._drives_beyond(self.outcomes.true_stop_m[:, None], violation_m)[:, 0]
        return np.flatnonzero(self.positive & beyond)

    def _drives_beyond(self, stop_m: Floats, limit_m: Floats) -> Mask:
        # Where nothing stops the vehicle it drives to the end of the path, and a limit on the path is before that.
        return stop_m > limit_m[:, None] + self.settings.tolerance_m

    @property
    def never_stops(self) -> Ints:
        """The positive logs, by their number among all, in which the reference vehicle never stops."""
        return np.flatnonzero(self.positive & np.isinf(self.outcomes.true_stop_m))

    @property
    def curve(self) -> TradeOffCurve:
        """Safety and efficiency at every level."""
        return self.sums().curve

    def sums(self, violation_m: Floats | None = None) -> LogSums:
        """What each log adds to a curve: whether it was safe; true time, and t + nu n, time with the cost of stops.

        Args:
            violation_m: (L,) as `kept` takes it, for that notion of safety; None for `safe`.
        """
        outcomes, positive = self.outcomes, self.positive
        safe = np.zeros(outcomes.time_s.shape)
        safe[positive] = self.safe if violation_m is None else self.kept(violation_m)
        true_s = np.where(positive, 0.0, outcomes.true_time_s)[:, None]
        cost_s = np.where(positive[:, None], 0.0, outcomes.time_s + self.settings.stop_cost_s * outcomes.stops)
        idle = len(self.never_stops) if violation_m is None else int(np.isinf(violation_m[positive]).sum())
        return LogSums(self.sensitivity, positive, safe, positive.astype(np.float64), true_s, cost_s, idle=idle)


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
    every = list(courses)
    positive = np.array([course.positive for course in every], dtype=bool)
    check_logs(positive)
    outcomes = simulate(every, sensitivity, settings.vehicle, settings.engine)
    if not outcomes.true_time_s[~positive].any():
        raise InputError("the negative logs have no length, so efficiency is undefined")
    return ClosedLoop(sensitivity, positive, outcomes, settings)


def check_logs(positive: Mask) -> None:
    """Refuse logs from which safety or efficiency cannot be had; InputError."""
    if not positive.any():
        raise InputError("there is no positive log, so safety is undefined", hint="add logs that end before a person")
    if positive.all():
        raise InputError("there is no negative log, so efficiency is undefined", hint="add logs with a free path")


FEWEST_LOGS = 2
"""Of each kind; drawing from fewer says nothing."""


@dataclass(frozen=True, eq=False)
class LogSums:
    """What each of L logs adds to a trade-off curve.

    Safety is sum(found) / sum(wanted). Efficiency is the rate r = sum(part) / sum(whole) itself, or, for metrics with
    a false-positive rate, 1 - min(r / limit, 1).

    Attributes:
        sensitivity: (K,) levels.
        positive: (L,) bool.
        found: (L, K) e.g. 1 where a log was safe.
        wanted: (L,) e.g. 1 for positive logs.
        part: (L, K) or (L, 1).
        whole: (L, K) or (L, 1).
        limit: None where the efficiency is the rate.
        idle: how many of the logs with something wanted say nothing: all detectors find it there.
    """

    sensitivity: Floats
    positive: Mask
    found: Floats
    wanted: Floats
    part: Floats
    whole: Floats
    limit: float | None = None
    idle: int = 0

    @property
    def informative(self) -> tuple[Floats, Floats]:
        """Of each log that speaks about safety what is wanted there, and of each that speaks about efficiency how
        large it is: its images, or the time of the reference vehicle, which no detector changes."""
        wanted, sizes = np.sort(self.wanted[self.wanted > 0]), self.part if self.limit is None else self.whole
        return wanted[self.idle :], sizes.max(axis=1)[self.whole.any(axis=1)]

    @property
    def curve(self) -> TradeOffCurve:
        """The curve of these logs, each counted once."""
        counted = self.whole.any(axis=1)  # so that the sum of these alone is rounded
        rate = self.part[counted].sum(axis=0) / self.whole[counted].sum(axis=0)
        safety = self.found.sum(axis=0) / self.wanted.sum()
        return TradeOffCurve(self.sensitivity, safety, np.broadcast_to(self._efficiency(rate), safety.shape))

    def drawn(self, weights: Floats) -> tuple[Floats, Floats]:
        """(B, K) safety and (B, K) efficiency when each log counts as often as (B, L) weights say.

        NaN where nothing is wanted, or the whole is nothing.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            safety = (weights @ self.found) / (weights @ self.wanted)[:, None]
            rate = (weights @ self.part) / (weights @ self.whole)
        return safety, np.broadcast_to(self._efficiency(rate), safety.shape)

    def _efficiency(self, rate: Floats) -> Floats:
        return at_most_one(rate) if self.limit is None else 1 - np.minimum(rate / self.limit, 1)


def judged_sums(judged: Judged, sensitivity: Floats, positive: Mask, fpr_max: float = FPR_MAX) -> LogSums:
    """What each log adds to a curve of recall against 1 - min(rate of false positives / `fpr_max`, 1)."""
    return LogSums(
        sensitivity,
        positive,
        judged.found_by_log(sensitivity),
        judged.wanted_by_log(),
        judged.alarms_by_log(sensitivity),
        judged.images.astype(np.float64)[:, None],
        fpr_max,
    )


def draw_logs(positive: Mask, draws: int, rng: np.random.Generator) -> Floats:
    """(B, L) how often each log is drawn, positive and negative logs each among themselves.

    Args:
        positive: (L,) at least `FEWEST_LOGS` of each kind.
        draws: B.
        rng: randomness.
    """
    weights = np.zeros((draws, len(positive)))
    for kind in (positive, ~positive):
        weights[:, kind] = drawn_with_replacement(int(np.count_nonzero(kind)), draws, rng)
    return weights


@dataclass(frozen=True, eq=False)
class Draws:
    """A bootstrap: (B, L) weights from `draw_logs`, and the confidence of intervals."""

    weights: Floats
    confidence: float = 0.95
