"""A vehicle that approaches an obstacle and brakes by what its detector reports, as a Markov chain.

The braking policy of the collision map, driven as a planner. Every `period_s` the detector reports a distance, drawn
again from the channel of the vehicle's true distance. The planner commands "brake" iff

    report <= S(v) + margin_m + T v,       S(v) = v^2 / (2 a) + t v,

else "keep the speed"; without a report it commands "keep". T v is the way that the vehicle drives in the period T
between two reports, without which a perfect detector brakes too late. A command takes effect after the reaction time
t, and a planner that has commanded "brake" once commands nothing else: the vehicle stands after S(v), and a collision
is certain iff the true distance is below S(v) when braking is commanded. So a run has one speed until then, and what
follows is known.

It has come *closer* than `near_m` when its distance is below that; `near_m` = 0 is a collision. The planner does not
know of `near_m`; a margin does what it needs.

**The motion is exact.** Measure distance in cells of a T^2 / 2 and speed in cells per period. In a period the vehicle
drives u cells; braking takes u^2 / 4 cells. With u a whole number all positions until braking are whole numbers of
cells: the chain is the continuous motion, without rounding. Only where a run starts is rounded: its speed to the
nearest whole u (off by at most a T / 4), its distance down, towards the obstacle, to a cell.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array

from verifier.base.arrays import Floats, Ints, Mask, rows_of
from verifier.base.errors import LimitError, UsageError
from verifier.base.numbers import significant
from verifier.chains.chain import MarkovChain
from verifier.collision.distance_channel import DistanceChannel
from verifier.collision.estimator import BrakingPolicy

CLOSER = "closer"
USUAL_PERIOD_S = 0.1
LEAST_PERIOD_S, LARGEST = 1e-9, 1e6
"""Seconds and metres beyond which no vehicle is meant."""
MOST_STATES = 3_000_000
"""Larger chains are refused."""
WHOLE = 1e-9
"""How far a number of periods may be from a whole one through rounding of decimals."""


@dataclass(frozen=True)
class DriveSettings:
    """How the vehicle is driven.

    Attributes:
        policy: deceleration and reaction time.
        period_s: time between two reports, a whole part of the reaction time. None: the largest whole part up to
            `USUAL_PERIOD_S`, and that without a reaction time.
        near_m: the distance that must be kept.
        margin_m: added to the stopping distance.

    Raises:
        UsageError: a number out of range, or a reaction time that is no whole number of periods.
    """

    policy: BrakingPolicy
    period_s: float | None = None
    near_m: float = 0.0
    margin_m: float = 0.0

    def __post_init__(self) -> None:
        for name in ("period_s", "near_m", "margin_m"):
            value, least = getattr(self, name), LEAST_PERIOD_S if name == "period_s" else 0.0
            if value is not None and not least <= value <= LARGEST:
                raise UsageError(f"{name}: expected a number from {least:g} to {LARGEST:g}, got {value:g}")
        delay = self.policy.reaction_s / self.period
        if abs(delay - round(delay)) > WHOLE * max(delay, 1):
            raise UsageError(
                f"a reaction time of {self.policy.reaction_s:g} s is no whole number of periods of {self.period:g} s"
            )

    @property
    def period(self) -> float:
        """Seconds between two reports."""
        if self.period_s is not None:
            return self.period_s
        parts = math.ceil(self.policy.reaction_s / USUAL_PERIOD_S - WHOLE)
        return self.policy.reaction_s / parts if parts else USUAL_PERIOD_S

    @property
    def delay(self) -> int:
        """Periods until a command takes effect."""
        return round(self.policy.reaction_s / self.period)

    @property
    def cell_m(self) -> float:
        """Length of a cell."""
        return self.policy.deceleration_mps2 * self.period**2 / 2

    def speed_units(self, speed_mps: float) -> int:
        """The nearest speed of the chain in cells per period, half a unit upwards."""
        return math.floor(speed_mps * self.period / self.cell_m + 0.5)

    def speed_mps(self, units: int) -> float:
        """A speed of the chain in metres per second."""
        return units * self.cell_m / self.period

    def trigger_m(self, speed_mps: float) -> float:
        """The largest reported distance at which the planner brakes at a speed."""
        return float(self.policy.stopping_distance_m(speed_mps) + self.margin_m + self.period * speed_mps)


@dataclass(frozen=True, eq=False)
class Approach:
    """The runs of a vehicle with one speed, over c cells of distance.

    Attributes:
        units: the speed in cells per period, above 0.
        hits: (c,) at each distance, how many items of the channel make the planner brake.
        items: (c,) of how many.
    """

    drive: DriveSettings
    units: int
    hits: Ints
    items: Ints

    @property
    def trigger_m(self) -> float:
        """The largest reported distance at which the planner brakes."""
        return self.drive.trigger_m(self.drive.speed_mps(self.units))

    def cells(self, distance_m: Floats) -> Ints:
        """Cells of distances, counted from `near_m`, rounded down; negative where they are closer."""
        return np.floor((np.asarray(distance_m) - self.drive.near_m) / self.drive.cell_m + WHOLE).astype(np.int64)

    def too_late(self, cell: Ints) -> Mask:
        """(n,) whether a command to brake at each cell comes too late: the way to a stop is longer."""
        return np.asarray(4 * (cell - self.drive.delay * self.units) < self.units * self.units)


def approach(channel: DistanceChannel, speed_mps: float, reach_m: float, drive: DriveSettings) -> Approach:
    """The runs of a vehicle that starts up to `reach_m` away, at the speed of the chain nearest to `speed_mps`.

    Raises:
        UsageError: the speed is less than half a unit, so the vehicle stands.
        LimitError: the chain would have more than `MOST_STATES` states, or as many cells lie in a period.
    """
    units = drive.speed_units(speed_mps)
    if units < 1:
        raise UsageError(f"a vehicle with {speed_mps:g} m/s stands still; its least speed is {drive.speed_mps(1):g}")
    count = max(math.floor((reach_m - drive.near_m) / drive.cell_m + WHOLE) + 1, 0)
    if max(count, units) > MOST_STATES:
        raise LimitError(
            f"{count} states, cells of {significant(drive.cell_m, 4)} m, and {units} of them in a period; at most "
            f"{MOST_STATES} are built",
            hint="take a longer period between two reports, or a nearer start",
        )
    distance_m = np.minimum(drive.near_m + np.arange(count) * drive.cell_m, reach_m)
    hits, items = channel.at_most(distance_m, drive.trigger_m(drive.speed_mps(units)))
    return Approach(drive, units, hits, items)


def approach_chain(runs: Approach, starts: Ints) -> MarkovChain:
    """The Markov chain of the runs, with the label `closer`; its initial states are the starts, in their order.

    A state is a cell at which the vehicle hears its next report; a run that stands, or is closer, stays so.

    Args:
        runs: the vehicle.
        starts: (s,) cells at which runs begin, strictly increasing, from 0.
    """
    count = len(runs.hits)
    cell, rest, closer = np.arange(count), count, count + 1
    keeps = np.where(cell < runs.units, closer, cell - runs.units)
    brakes = np.where(runs.too_late(cell), closer, rest)
    origin = np.concatenate([cell, cell, [rest, closer]])
    target = np.concatenate([keeps, brakes, [rest, closer]])
    weight = np.concatenate([runs.items - runs.hits, runs.hits, [1, 1]])
    matrix = coo_array((weight, (origin, target)), shape=(count + 2, count + 2)).tocsr()  # equal targets add up
    matrix.eliminate_zeros()
    matrix.sort_indices()
    indptr = matrix.indptr.astype(np.int64)
    probability = matrix.data / np.append(runs.items, [1, 1])[rows_of(indptr)]
    label = np.arange(count + 2) == closer
    return MarkovChain(indptr, matrix.indices.astype(np.int64), probability, {CLOSER: label}, starts)
