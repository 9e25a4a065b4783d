"""A vehicle that approaches an obstacle and brakes by what its detector reports, as a Markov chain.

The braking policy of the collision map, driven as a planner. Every `period_s` the detector reports a distance, drawn
again from the channel of the vehicle's true distance. The planner commands "brake" iff

    report <= S(v) + margin_m + margin_s * v,       S(v) = v^2 / (2 a) + t v,

else "keep the speed"; without a report it commands "keep". A command takes effect after the reaction time t and holds
for one period. Braking takes a * `period_s` from the speed, or all of it where less is left; a vehicle at rest stays.
With `braking` "to_rest" a planner that has commanded "brake" once commands nothing else; that is what makes S(v) the
way to a stop, and a collision certain iff the true distance is below S(v) when it begins. With "while_near" it asks
each report again: the vehicle then creeps up to the obstacle, and touches it unless a margin covers the errors.

It has come *closer* than `near_m` when its distance is below that; `near_m` = 0 is a collision. The planner does not
know of `near_m`; a margin does what it needs. `margin_s` is one period by default: the way the vehicle drives between
two reports, without which a perfect detector brakes too late.

**The motion is exact.** Let T be the period, m the `refinement`, and measure distance in cells of a T^2 / (2 m) and
speed in cells per period. Braking for a period takes 2 m from the speed u and drives u - m cells; keeping drives u
cells; and the last, shorter braking drives u^2 / (4 m). With u a whole number all positions are whole numbers of
cells: the chain is the continuous motion, without rounding. Only where a run starts is rounded: its speed to the
nearest whole u (off by at most a T / (4 m)), its distance down, towards the obstacle, to a cell.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import get_args

import numpy as np

from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import LimitError, UsageError, check_known
from verifier.base.graphs import reachable
from verifier.base.numbers import significant
from verifier.chains.chain import MarkovChain
from verifier.collision.distance_channel import DistanceChannel
from verifier.collision.estimator import BrakingPolicy
from verifier.collision.settings import Braking

CLOSER = "closer"
USUAL_PERIOD_S = 0.1
LEAST_PERIOD_S, LARGEST = 1e-9, 1e6
"""Seconds and metres beyond which no vehicle is meant."""
MOST_PENDING = 12
"""Commands under way at a time: a state holds them all."""
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
        margin_s: the way of so many seconds is added, too; None for one period.
        braking: `to_rest` or `while_near`, see above.
        refinement: m above.
        max_states: larger chains are refused.

    Raises:
        UsageError: a number out of range, or a reaction time that is no whole number of periods.
    """

    policy: BrakingPolicy
    period_s: float | None = None
    near_m: float = 0.0
    margin_m: float = 0.0
    margin_s: float | None = None
    braking: Braking = "to_rest"
    refinement: int = 1
    max_states: int = 3_000_000

    def __post_init__(self) -> None:
        for name in ("period_s", "near_m", "margin_m", "margin_s"):
            value, least = getattr(self, name), LEAST_PERIOD_S if name == "period_s" else 0.0
            if value is not None and not least <= value <= LARGEST:
                raise UsageError(f"{name}: expected a number from {least:g} to {LARGEST:g}, got {value:g}")
        check_known("way of braking", self.braking, get_args(Braking))
        if self.refinement < 1:
            raise UsageError(f"the refinement is a whole number from 1, got {self.refinement}")
        delay = self.policy.reaction_s / self.period
        if abs(delay - round(delay)) > WHOLE * max(delay, 1):
            raise UsageError(
                f"a reaction time of {self.policy.reaction_s:g} s is no whole number of periods of {self.period:g} s"
            )
        if self.delay > MOST_PENDING:
            raise LimitError(
                f"{self.delay} commands are under way during a reaction time of {self.policy.reaction_s:g} s; "
                f"at most {MOST_PENDING} are followed",
                hint="take a longer period between two reports",
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
        return self.policy.deceleration_mps2 * self.period**2 / (2 * self.refinement)

    def speed_units(self, speed_mps: float) -> int:
        """The nearest speed of the chain in cells per period, half a unit upwards."""
        return math.floor(speed_mps * self.period / self.cell_m + 0.5)

    def speed_mps(self, units: int) -> float:
        """A speed of the chain in metres per second."""
        return units * self.cell_m / self.period

    def trigger_m(self, speed_mps: Floats) -> Floats:
        """The largest reported distance at which the planner brakes, of each speed."""
        margin_s = self.period if self.margin_s is None else self.margin_s
        return np.asarray(self.policy.stopping_distance_m(speed_mps) + self.margin_m + margin_s * speed_mps)


@dataclass(frozen=True, eq=False)
class Approach:
    """The runs of a vehicle with one initial speed: c cells of distance, k speeds from the initial one downwards.

    Attributes:
        units: (k,) speeds in cells per period, all above 0.
        hits: (c, k) at each distance and speed, how many items of the channel make the planner brake.
        items: (c,) of how many.
    """

    drive: DriveSettings
    units: Ints
    hits: Ints
    items: Ints

    @property
    def speeds_mps(self) -> Floats:
        """(k,) the speeds."""
        return np.asarray(self.units * (self.drive.cell_m / self.drive.period), dtype=np.float64)

    def brakes(self, report_m: float) -> bool:
        """Whether the planner brakes at the initial speed on this report."""
        return bool(report_m <= self.drive.trigger_m(self.speeds_mps[:1])[0])

    def cells(self, distance_m: Floats) -> Ints:
        """Cells of distances, counted from `near_m`, rounded down; negative where they are closer."""
        return np.floor((np.asarray(distance_m) - self.drive.near_m) / self.drive.cell_m + WHOLE).astype(np.int64)

    def bound_to_brake(self, speed: Ints, queue: Ints) -> Mask:
        """Whether the planner brakes whatever is reported, at a speed index and with commands under way."""
        begun = (speed > 0) | ((queue & 1) == 1)
        return begun if self.drive.braking == "to_rest" else np.zeros_like(begun)

    def moved(self, cell: Ints, speed: Ints, brake: Mask) -> tuple[Ints, Ints]:
        """Where one period leads: cell (negative: closer) and speed index; k for a vehicle at rest.

        Args:
            cell: cells of distance.
            speed: indices into `units`.
            brake: which of them brake in this period; the arrays are broadcast against each other.
        """
        m = self.drive.refinement
        units = self.units[speed]
        rests = brake & (units <= 2 * m)
        after = np.where(brake, cell - (units - m), cell - units)
        # At rest after u^2 / (4 m) cells, no whole number: closer iff 4 m cell < u^2.
        after = np.where(rests, np.where(4 * m * cell < units * units, -1, 0), after)
        return after, np.where(rests, len(self.units), speed + brake)


def approach(channel: DistanceChannel, speed_mps: float, reach_m: float, drive: DriveSettings) -> Approach:
    """The runs of a vehicle that starts up to `reach_m` away, at the speed of the chain nearest to `speed_mps`.

    Raises:
        UsageError: the speed is less than half a unit, so the vehicle stands.
        LimitError: the chain would have more than `drive.max_states` states.
    """
    first = drive.speed_units(speed_mps)
    if first < 1:
        raise UsageError(f"a vehicle with {speed_mps:g} m/s stands still; its least speed is {drive.speed_mps(1):g}")
    speeds = -(-first // (2 * drive.refinement))
    count = max(math.floor((reach_m - drive.near_m) / drive.cell_m + WHOLE) + 1, 0)
    states = count * speeds * 2**drive.delay
    if states > drive.max_states:
        raise LimitError(
            f"{states} states: {count} cells of {significant(drive.cell_m, 4)} m, {speeds} speeds, "
            f"{2**drive.delay} sets of commands under way; at most {drive.max_states} are built",
            hint="take a longer period between two reports, or a nearer start",
        )
    units = np.arange(first, 0, -2 * drive.refinement, dtype=np.int64)
    distance_m = np.minimum(drive.near_m + np.arange(count) * drive.cell_m, reach_m)
    speeds_mps = np.asarray(units * (drive.cell_m / drive.period), dtype=np.float64)
    hits, items = channel.at_most(distance_m, drive.trigger_m(speeds_mps))
    return Approach(drive, units, hits, items)


def approach_chain(runs: Approach, starts: Ints, first_command: bool | None, exact: bool = False) -> MarkovChain:
    """The Markov chain of the runs, with the label `closer`; its initial states are the starts, in their order.

    A state is a cell, a speed and the commands under way. A run that has stopped, or has come closer, stays so.

    Args:
        runs: the vehicle.
        starts: (s,) cells at which runs begin at the initial speed, strictly increasing, from 0.
        first_command: what the first report makes the planner do; None draws the first report like all others.
        exact: also give the probabilities as fractions.

    Raises:
        ValueError: the starts are not as described.
    """
    cells, speeds = runs.hits.shape
    if not len(starts) or starts[0] < 0 or starts[-1] >= cells or np.any(np.diff(starts) <= 0):
        raise ValueError("starts must be cells of the approach in strictly increasing order")
    driving = cells * speeds * 2**runs.drive.delay
    cell, speed, queue = (index.ravel() for index in np.indices((cells, speeds, 2**runs.drive.delay)))
    zero = np.zeros(len(starts), dtype=np.int64)
    drives = _rows(runs, 0, (cell, speed, queue), None)
    begins = _rows(runs, driving + 2, (starts, zero, zero), first_command)
    # At rest, and closer: these two stay as they are.
    ends = np.array([driving, driving + 1])
    parts = zip(drives[0], (ends, ends, np.ones(2, dtype=np.int64)), begins[0], strict=True)
    origin, target, weight = (np.concatenate(part) for part in parts)
    total = np.concatenate([drives[1], np.ones(2, dtype=np.int64), begins[1]])
    return _reached_chain((origin, target, weight), total, driving + 2, driving + 1, exact)


def _rows(
    runs: Approach, first: int, states: tuple[Ints, Ints, Ints], command: bool | None
) -> tuple[tuple[Ints, Ints, Ints], Ints]:
    """Origin, target and weight of the transitions of states `first`, `first + 1`, ..., and the sum of each state's.

    The states are given by cell, speed and commands under way; `command` is what the report makes the planner do.
    """
    cell, speed, queue = states
    number = first + np.arange(len(cell))
    if command is not None:
        one = np.ones(len(cell), dtype=np.int64)
        return (number, _after(runs, *states, command), one), one
    items = runs.items[cell]
    hits = np.where(runs.bound_to_brake(speed, queue), items, runs.hits[cell, speed])
    target = np.concatenate([_after(runs, *states, False), _after(runs, *states, True)])
    return (np.concatenate([number, number]), target, np.concatenate([items - hits, hits])), items


def _after(runs: Approach, cell: Ints, speed: Ints, queue: Ints, command: bool) -> Ints:
    """The state after one period in which the planner gives this command."""
    cells, speeds = runs.hits.shape
    delay = runs.drive.delay
    waiting = (queue << 1) | int(command)
    acts = (waiting >> delay).astype(bool)
    after, slower = runs.moved(cell, speed, acts)
    state = (after * speeds + slower) * 2**delay + (waiting & (2**delay - 1))
    driving = cells * speeds * 2**delay
    return np.asarray(np.where(after < 0, driving + 1, np.where(slower == speeds, driving, state)))


def _reached_chain(edges: tuple[Ints, Ints, Ints], total: Ints, first: int, closer: int, exact: bool) -> MarkovChain:
    """The chain of whole weights over their row's total, without the states that no run from `first` on reaches."""
    n = len(total)
    some = edges[2] > 0
    origin, target, weight = (edge[some] for edge in edges)
    start = np.zeros(n, dtype=bool)
    start[first:] = True
    kept = reachable(n, origin, target, start)
    kept[closer] = True
    number = np.cumsum(kept) - 1
    inside = kept[origin]
    origin, target, weight = number[origin[inside]], number[target[inside]], weight[inside]
    count = int(kept.sum())
    keys, where = np.unique(origin * count + target, return_inverse=True)
    merged = np.bincount(where, weights=weight, minlength=len(keys)).astype(np.int64)
    rows, below = keys // count, total[kept]
    indptr = np.searchsorted(rows, np.arange(count + 1)).astype(np.int64)
    label = np.zeros(count, dtype=bool)
    label[number[closer]] = True
    fractions = None
    if exact:
        fractions = tuple(map(Fraction, merged.tolist(), below[rows].tolist()))
    return MarkovChain(
        indptr, keys % count, merged / below[rows], {CLOSER: label}, np.arange(number[first], count), fractions
    )
