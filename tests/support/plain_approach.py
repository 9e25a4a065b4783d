"""A vehicle that approaches an obstacle, in plain Python with continuous time and positions: an oracle for the chain.

Nothing here is shared with the package, and nothing is rounded to cells. Braking is integrated by its formulas.
"""

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Drive:
    """Deceleration, reaction time, period and margins; metres, seconds."""

    a: float
    reaction: float
    period: float
    near: float = 0.0
    margin: float = 0.0

    def brakes(self, report, v):
        """Whether a report makes the planner brake; the time margin is one period."""
        return report <= v * v / (2 * self.a) + (self.reaction + self.period) * v + self.margin


def comes_closer(d, v, first_report, draw, drive):
    """Whether one run comes closer than `drive.near`.

    `draw(d)` gives a report (None for none) for an obstacle at distance d, again at each call.
    """
    delay = round(drive.reaction / drive.period)
    pending = [False] * delay
    if d < drive.near:
        return True
    report, begun = first_report, False
    while True:
        brake = begun or (report is not None and drive.brakes(report, v))
        begun = begun or brake
        pending.append(brake)
        if pending.pop(0):
            if v <= drive.a * drive.period * (1 + 1e-9):  # a speed of 1e-15 m/s is rounding, not driving
                return d - v * v / (2 * drive.a) < drive.near
            d -= v * drive.period - drive.a * drive.period**2 / 2
            v -= drive.a * drive.period
        else:
            d -= v * drive.period
        if d < drive.near:
            return True
        report = draw(d)


def reporter(true_m, predicted_m, missed_m, bin_m, rng):
    """A `draw` that takes any item of the bin of d: the error of a pair, or none for a missed object."""
    items = {}
    for true, predicted in zip(true_m, predicted_m, strict=True):
        items.setdefault(math.floor(true / bin_m), []).append((true, predicted))
    for true in missed_m:
        items.setdefault(math.floor(true / bin_m), []).append(None)

    def draw(d):
        found = rng.choice(items[math.floor(d / bin_m)])
        if found is None:
            return None
        return d + found[1] - found[0]

    return draw


def stops_too_late(cell, units, sure, limit_cells):
    """P(closer) of one run that brakes to rest, as an exact sum over the report that makes it brake; near = 0.

    The run is at `cell`, has `units` cells per period, and hears its next report there. `sure(cell)` is the
    probability that a report makes it brake. It then needs `limit_cells` (a fraction).
    """
    total, still = Fraction(0), Fraction(1)
    while cell >= 0:
        total += still * sure(cell) * (cell < limit_cells)
        still *= 1 - sure(cell)
        cell -= units
    return total + still
