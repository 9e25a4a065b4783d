"""How sure the closed loop is: a bootstrap over images, for a planner that brakes to rest.

Such a planner has one decision: the first report that makes it brake. Let b(c) be the probability that the report at
cell c does, u the initial speed in cells per period, and L the cells that a stop takes, reaction time included. Then

    V(c) = b(c) [c < L] + (1 - b(c)) V(c - u),      V = 1 below 0,

is the probability of coming closer from c, and it needs no model checker. A replicate draws images with replacement
and weights every pair and every missed object by how often its image is drawn: in the rates of the channel and in the
cars that start. The bins and the kernel stay; what they blur does not show. A bin that has no item in a replicate
could report anything: the lower end is taken as if it always made the car brake, the upper one as if it never did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints
from verifier.base.errors import UsageError
from verifier.collision.approach import Approach, DriveSettings, approach
from verifier.collision.bootstrap import image_draws
from verifier.collision.bridge import cars_near
from verifier.collision.distance_channel import ChannelSettings, distance_channel
from verifier.collision.intervals import check_level, end_quantiles
from verifier.collision.pairs_reader import ReadPairs

REPLICATES = 500


@dataclass(frozen=True, eq=False)
class _Resampled:
    """Weights of a channel's items in R replicates.

    Attributes:
        drawn: per bin, (n_b + 1, R) weight of its lowest reports, the first ones of them; from 0.
        items: per bin, (R,) weight of all items.
    """

    drawn: tuple[Floats, ...]
    items: tuple[Floats, ...]


def closed_loop_intervals(
    found: ReadPairs,
    first_report_m: float,
    width_m: float,
    speeds_mps: Sequence[float],
    drive: DriveSettings,
    channel: ChannelSettings,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    replicates: int = REPLICATES,
) -> tuple[Floats, Floats]:
    """Lower and upper ends (V,) of percentile intervals for `ClosedLoopPoint.closer`, at every speed.

    Raises:
        UsageError: the planner does not brake to rest, or the level is outside (0, 1).
        InputError, LimitError: as `closed_loop`.
    """
    check_level(level)
    if drive.braking != "to_rest":
        raise UsageError("the bootstrap of the closed loop is for planners that brake to rest")
    cars = cars_near(found, first_report_m, width_m, channel)
    reach_m = float(cars.true_m.max())
    table = distance_channel(found, reach_m, channel)
    draws = image_draws(found.pairs.image_count, replicates, rng)
    weights = _resampled(found, table.source, channel, draws)
    car_weight = cars.weight[:, None] * draws.T[found.pairs.image[cars.rows]]
    lower, upper = np.empty(len(speeds_mps)), np.empty(len(speeds_mps))
    for at, speed in enumerate(speeds_mps):
        if drive.speed_units(speed) == 0:
            closer = np.repeat(cars.true_m[:, None] < drive.near_m, 2, axis=1)[:, :, None].astype(np.float64)
        else:
            runs = approach(table, speed, reach_m, drive)
            index = table.bin_of(np.minimum(drive.near_m + np.arange(len(runs.items)) * drive.cell_m, reach_m))
            ahead = _from_each_cell(runs, index, weights)
            closer = _of_cars(runs, runs.cells(cars.true_m), runs.brakes(first_report_m), ahead)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = np.einsum("cr,cer->er", car_weight, np.broadcast_to(closer, (*closer.shape[:2], len(draws))))
            shares /= car_weight.sum(axis=0)
        lower[at] = end_quantiles(shares[0], level)[0]
        upper[at] = end_quantiles(shares[1], level)[1]
    return lower, upper


def _resampled(found: ReadPairs, source: Ints, channel: ChannelSettings, draws: NDArray[np.uint8]) -> _Resampled:
    pairs = found.pairs
    value = pairs.predicted_m - pairs.true_m if channel.drawn == "error" else pairs.predicted_m
    index = np.floor(pairs.true_m / channel.bin_m).astype(np.int64)
    lost = np.floor(found.missed_m / channel.bin_m).astype(np.int64)
    order = np.lexsort((value, index))
    first, last = (np.searchsorted(index[order], source, side=side) for side in ("left", "right"))
    drawn: list[Floats] = []
    items: list[Floats] = []
    for number, low, high in zip(source.tolist(), first.tolist(), last.tolist(), strict=True):
        own = draws[:, pairs.image[order[low:high]]].T.astype(np.float64)
        drawn.append(np.concatenate([np.zeros((1, len(draws))), np.cumsum(own, axis=0)]))
        missed = draws[:, found.missed_image[lost == number]].sum(axis=1) if channel.misses else 0.0
        # A bin without a source gives no report, whatever is drawn.
        items.append(drawn[-1][-1] + missed if number >= 0 else np.ones(len(draws)))
    return _Resampled(tuple(drawn), tuple(items))


def _from_each_cell(runs: Approach, index: Ints, weights: _Resampled) -> Floats:
    """(c, 2, R) V at every cell, with the best and with the worst that an empty bin could report."""
    cells = len(index)
    brake = np.empty((cells, 2, weights.items[0].shape[0]))
    for number in np.unique(index).tolist():
        rows = np.flatnonzero(index == number)
        with np.errstate(invalid="ignore", divide="ignore"):
            rate = weights.drawn[number][runs.hits[rows, 0]] / weights.items[number]
        brake[rows, 0], brake[rows, 1] = np.where(np.isnan(rate), 1.0, rate), np.where(np.isnan(rate), 0.0, rate)
    units = int(runs.units[0])
    closer = np.empty_like(brake)
    late = too_late(runs, np.arange(cells))[:, None, None]
    for start in range(0, cells, units):
        block = slice(start, min(start + units, cells))
        after = closer[start - units : block.stop - units] if start else 1.0
        closer[block] = np.where(late[block], brake[block], 0.0) + (1 - brake[block]) * after
    return closer


def _of_cars(runs: Approach, cell: Ints, brakes: bool, ahead: Floats) -> Floats:
    """(n, 2, R or 1) the probability of each car, whose first report is known."""
    late = (cell < 0) | too_late(runs, cell)
    if brakes or not len(ahead):  # without a cell every car is closer from the start
        return np.repeat(late[:, None], 2, axis=1)[:, :, None].astype(np.float64)
    after = cell - int(runs.units[0])
    return np.where((after < 0)[:, None, None], 1.0, ahead[np.maximum(after, 0)])


def too_late(runs: Approach, cell: Ints) -> NDArray[np.bool_]:
    """(n,) whether a command at the cell comes too late: it is nearer than the reaction time and a full stop take."""
    units, delay, m = int(runs.units[0]), runs.drive.delay, runs.drive.refinement
    return np.asarray(4 * m * (cell - delay * units) < units * units)
