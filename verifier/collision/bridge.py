"""The bridge from the collision map to a verified closed loop: the same braking policy, driven and model checked.

lambda(y, v) looks at one report: the detector says y, the car has the speed v, and a collision is certain iff the
true distance D is below S(v). A car does not stop looking after one report. Here it drives on from where that report
was given, hears the detector once per period, and brakes by the policy (`approach`). Storm computes the probability
that it never comes closer than `near_m`, and a second engine checks it. The cars that start are those of the pairs
whose reported distance is near y, with the weights of the map's kernel (cut at `KERNEL_REACH` widths).

Two numbers stand beside each other for every speed:

* `one_shot`: the weight of the cars with D < S(v) + near_m. They cannot be helped: whatever is reported next, they
  come closer. So the closed loop can only be worse than this part, never better. It is lambda for one obstacle; the
  lambda of the map is about the nearest of all objects of an image.
* `closer`: the closed loop in which every report is drawn independently. That is what a Markov chain of
  detector and planner assumes; a bad report is soon followed by another draw.

Everything is conditional on a first report: objects that are never reported are not here. Later reports may be
missing, where the data say how often objects are missed.

How sure the closed loop is: a bootstrap over images.

The planner has one decision: the first report that makes it brake. Let b(c) be the probability that the report at
cell c does, u the speed in cells per period, and L the cells that a stop takes, reaction time included. Then

    V(c) = b(c) [c < L] + (1 - b(c)) V(c - u),      V = 1 below 0,

is the probability of coming closer from c, and it needs no model checker. A replicate draws images with replacement
and weights every pair and every missed object by how often its image is drawn: in the rates of the channel and in the
cars that start. The bins and the kernel stay; what they blur does not show. A bin that has no item in a replicate
could report anything: the lower end is taken as if it always made the car brake, the upper one as if it never did.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import LimitError, UsageError
from verifier.base.numbers import significant
from verifier.base.statistics import effective_number
from verifier.checking.process import StormProcess
from verifier.checking.two_engines import answers_within_limits
from verifier.collision.approach import CLOSER, Approach, DriveSettings, approach, approach_chain
from verifier.collision.distance_channel import ChannelSettings, DistanceChannel, distance_channel
from verifier.collision.document import ClosedLoop, ClosedLoopPoint
from verifier.collision.intervals import end_quantiles
from verifier.collision.pairs_reader import ReadPairs
from verifier.collision.resampling import Progress, image_draws
from verifier.language.expressions.syntax import Name, Operation, Temporal

KERNEL_REACH = 6.0
"""Widths of the kernel; beyond lies less than 2e-9 of a normal distribution."""
STAYS_AWAY = Temporal("G", (Operation("!", (Name(CLOSER),)),))
REPLICATES = 500


@dataclass(frozen=True)
class LoopSettings:
    """The closed loop that is set beside the maps.

    Attributes:
        first_report_m: y, the reported distance at which the runs begin.
        speeds_mps: initial speeds, from 0.
        drive: how the vehicle is driven; in a study its policy gives way to each of those studied.
        channel: what later reports are drawn from.
        replicates: of the bootstrap; 0 for no intervals.
    """

    first_report_m: float
    speeds_mps: tuple[float, ...]
    drive: DriveSettings
    channel: ChannelSettings = field(default_factory=ChannelSettings)
    replicates: int = REPLICATES


@dataclass(frozen=True, eq=False)
class Cars:
    """The cars that start.

    `rows` (n,) index into the pairs, `true_m` (n,), `weight` (n,) of the kernel, above 0.
    """

    rows: Ints
    true_m: Floats
    weight: Floats

    @property
    def reach_m(self) -> float:
        """True distance of the furthest."""
        return float(self.true_m.max())

    def share(self, which: Mask) -> float:
        """The part of the weight that some of the cars have."""
        # Sums that are rounded once: a part is never more than the whole.
        return math.fsum(self.weight[which].tolist()) / math.fsum(self.weight.tolist())


def closed_loop(
    pairs: ReadPairs,
    width_m: float,
    settings: LoopSettings,
    storm: StormProcess,
    progress: Progress | None = None,
) -> ClosedLoop:
    """Verify the closed loop from a first report, at every initial speed.

    Args:
        pairs: the pairs, and the objects without a report.
        width_m: of the kernel, that of the map.
        settings: where the runs begin, how the vehicle is driven, and what it hears.
        storm: a running worker.
        progress: told how many speeds are done.

    Raises:
        UsageError: no pair is reported near the first report.
        InputError: a bin of the true distance that is driven through has no item, and no policy says what to assume.
        LimitError: a chain would be too large.
        EngineError: the engines disagree or fail.
    """
    cars = cars_near(pairs, settings.first_report_m, width_m)
    table = distance_channel(pairs, cars.reach_m, settings.channel)
    points = []
    for speed in settings.speeds_mps:
        points.append(_point(speed, settings, cars, table, storm))
        if progress is not None:
            progress(len(points), len(settings.speeds_mps))
    borrowed = np.flatnonzero(table.source != np.arange(len(table.source)))
    return ClosedLoop(
        settings.first_report_m,
        width_m,
        len(cars.weight),
        effective_number(cars.weight),
        len(pairs.missed_m),
        settings.drive.period,
        settings.drive.cell_m,
        tuple(borrowed.tolist()),
        tuple(points),
    )


def cars_near(read: ReadPairs, first_report_m: float, width_m: float) -> Cars:
    """The cars of the pairs that are reported within `KERNEL_REACH` widths of `first_report_m`.

    Raises:
        UsageError: there are none, or a number is out of range.
    """
    pairs = read.pairs
    if not 0 <= first_report_m < math.inf:
        raise UsageError(f"expected a first report from 0 m, got {first_report_m:g} m")
    if not 0 < width_m < math.inf:
        raise UsageError(
            f"{read.name}without spread in the reported distances there is no kernel to weight cars with"
        )
    away = (pairs.predicted_m - first_report_m) / width_m
    near = np.flatnonzero(np.abs(away) <= KERNEL_REACH)
    if not len(near):
        reach = f"{significant(KERNEL_REACH * width_m)} m"
        raise UsageError(f"{read.name}no pair is reported within {reach} of the first report at {first_report_m:g} m")
    weight = np.exp(-0.5 * away[near] ** 2)
    return Cars(near, pairs.true_m[near], weight)


def _point(
    speed_mps: float, settings: LoopSettings, cars: Cars, channel: DistanceChannel, storm: StormProcess
) -> ClosedLoopPoint:
    drive = settings.drive
    units = drive.speed_units(speed_mps)
    speed = drive.speed_mps(units)
    stopping_m = float(drive.policy.stopping_distance_m(speed))
    # What is closer from the start stays so, at any speed.
    one_shot = cars.share(cars.true_m < stopping_m + drive.near_m)
    if units == 0:
        same = one_shot
        return ClosedLoopPoint(speed, stopping_m, False, one_shot, same, same, same, same, None, states=0)
    runs = approach(channel, speed_mps, cars.reach_m, drive)
    brakes = settings.first_report_m <= runs.trigger_m
    (closer, lower, upper, second), states = _verified(runs, cars, brakes, storm)
    return ClosedLoopPoint(speed, stopping_m, brakes, one_shot, closer, lower, upper, second, None, states)


def _verified(
    runs: Approach, cars: Cars, brakes: bool, storm: StormProcess
) -> tuple[tuple[float, float, float, float], int]:
    """The probability of coming closer over all cars: Storm's, its bounds, the second engine's; and the states."""
    cells = runs.cells(cars.true_m)
    ahead = cells - runs.units  # where they hear their next report, if they keep their speed
    lost = (cells < 0) | (runs.too_late(cells) if brakes else ahead < 0)
    if brakes or lost.all():
        share = cars.share(lost)
        return (share, share, share, share), 0
    starts, where = np.unique(ahead[~lost], return_inverse=True)
    chain = approach_chain(runs, starts)
    (values,) = answers_within_limits(chain, [STAYS_AWAY], storm)
    if isinstance(values, LimitError):
        raise values

    def mixed(stays: Floats) -> float:
        parts = [*cars.weight[lost].tolist(), *(cars.weight[~lost] * (1 - stays[where])).tolist()]
        return math.fsum(parts) / math.fsum(cars.weight.tolist())

    # Each term and the quotient are rounded: four roundings of numbers up to 1.
    slack = 4 * float(np.finfo(np.float64).eps)
    lower, upper = max(mixed(values.upper) - slack, 0.0), min(mixed(values.lower) + slack, 1.0)
    return (mixed(values.probability), lower, upper, mixed(values.second)), chain.state_count


def closed_loop_intervals(
    pairs: ReadPairs, width_m: float, settings: LoopSettings, *, rng: np.random.Generator, level: float = 0.95
) -> tuple[Floats, Floats]:
    """Lower and upper ends (V,) of percentile intervals for `ClosedLoopPoint.closer`, at every speed.

    Raises:
        UsageError, InputError, LimitError: as `closed_loop`.
    """
    drive, cars = settings.drive, cars_near(pairs, settings.first_report_m, width_m)
    table = distance_channel(pairs, cars.reach_m, settings.channel)
    draws = image_draws(pairs.pairs.image_count, settings.replicates, rng)
    weights = _resampled(pairs, table, draws)
    car_weight = cars.weight[:, None] * draws.T[pairs.pairs.image[cars.rows]]
    lower, upper = np.empty(len(settings.speeds_mps)), np.empty(len(settings.speeds_mps))
    for at, speed in enumerate(settings.speeds_mps):
        if drive.speed_units(speed) == 0:
            closer = np.repeat(cars.true_m[:, None] < drive.near_m, 2, axis=1)[:, :, None].astype(np.float64)
        else:
            runs = approach(table, speed, cars.reach_m, drive)
            away_m = np.minimum(drive.near_m + np.arange(len(runs.items)) * drive.cell_m, cars.reach_m)
            ahead = _from_each_cell(runs, table.settings.bin_of(away_m), weights)
            closer = _of_cars(runs, runs.cells(cars.true_m), settings.first_report_m <= runs.trigger_m, ahead)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = np.einsum("cr,cer->er", car_weight, np.broadcast_to(closer, (*closer.shape[:2], len(draws))))
            shares /= car_weight.sum(axis=0)
        lower[at] = end_quantiles(shares[0], level)[0]
        upper[at] = end_quantiles(shares[1], level)[1]
    return lower, upper


def _resampled(pairs: ReadPairs, channel: DistanceChannel, draws: NDArray[np.uint8]) -> list[tuple[Floats, Floats]]:
    """Of each bin (n_b + 1, R) the weight in R replicates of its lowest reports, the first ones of them, from 0; and
    (R,) that of all its items."""
    lost = channel.settings.bin_of(pairs.missed_m)
    weights = []
    for number, rows in zip(channel.source.tolist(), channel.rows, strict=True):
        own = draws[:, pairs.pairs.image[rows]].T.astype(np.float64)
        drawn = np.concatenate([np.zeros((1, len(draws))), np.cumsum(own, axis=0)])
        weights.append((drawn, drawn[-1] + draws[:, pairs.missed_image[lost == number]].sum(axis=1)))
    return weights


def _from_each_cell(runs: Approach, index: Ints, weights: Sequence[tuple[Floats, Floats]]) -> Floats:
    """(c, 2, R) V at every cell, with the best and with the worst that an empty bin could report."""
    cells = len(index)
    brake = np.empty((cells, 2, len(weights[0][1])))
    for number in np.unique(index).tolist():
        rows = np.flatnonzero(index == number)
        drawn, items = weights[number]
        with np.errstate(invalid="ignore", divide="ignore"):
            rate = drawn[runs.hits[rows]] / items
        brake[rows, 0], brake[rows, 1] = np.where(np.isnan(rate), 1.0, rate), np.where(np.isnan(rate), 0.0, rate)
    units = runs.units
    closer = np.empty_like(brake)
    late = runs.too_late(np.arange(cells))[:, None, None]
    for start in range(0, cells, units):
        block = slice(start, min(start + units, cells))
        after = closer[start - units : block.stop - units] if start else 1.0
        closer[block] = np.where(late[block], brake[block], 0.0) + (1 - brake[block]) * after
    return closer


def _of_cars(runs: Approach, cell: Ints, brakes: bool, ahead: Floats) -> Floats:
    """(n, 2, R or 1) the probability of each car, whose first report is known."""
    late = (cell < 0) | runs.too_late(cell)
    if brakes or not len(ahead):  # without a cell every car is closer from the start
        return np.repeat(late[:, None], 2, axis=1)[:, :, None].astype(np.float64)
    after = cell - runs.units
    return np.where((after < 0)[:, None, None], 1.0, ahead[np.maximum(after, 0)])
