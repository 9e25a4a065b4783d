"""The shipped car with the planners `feedback` and `cautious`, one state at a time, in plain Python and fractions.

Independent of the package. Geometry and dynamics are those of `published_chain`; here a planner looks at the whole
state, so it is a function of cell, speed and what is seen. Labels are 'ped', 'obs', 'empty'.
"""

from fractions import Fraction
from functools import cache

from published_chain import geometry

CELLS, STOP = geometry(10)
CROSSWALK = STOP + 1


def halt(x, v):
    """The cell in which a car comes to a stop that slows down by one in every step."""
    while v > 0:
        x, v = x + v, v - 1
    return x


def feedback(x, v, seen, vmax):
    """Brake for a pedestrian as late as one still can; otherwise keep the speed. None: stay where you are."""
    if seen != "ped":
        return v
    if v == 0 or x > STOP:
        return None
    can_wait = halt(x + v, v) <= STOP
    return v if can_wait else v - 1


def cautious(x, v, seen, vmax):
    """Come to the line at walking pace whatever is seen, and decide there."""
    if x >= STOP:  # at the line or beyond: go
        return min(v + 1, vmax)
    if v == 0:
        return 1
    if v == 1 and x + 1 == STOP and seen == "ped":
        return 0
    if v > 1 and (seen == "ped" or halt(x + v, v) > STOP):
        return v - 1
    if seen == "empty" and v < vmax and halt(x + v, v + 1) <= STOP:
        return v + 1
    return v


# The requirements of the shipped spec: which states they allow where `environment` is true.
REQUIREMENTS = {
    "stops_only_for_pedestrians": lambda x, v, environment: environment == "ped" or (x, v) != (STOP, 0),
    "stops_for_pedestrians": lambda x, v, environment: environment != "ped" or x < STOP or (x, v) == (STOP, 0),
    "never_stalls_early": lambda x, v, environment: not (x < STOP and v == 0),
}
REQUIREMENTS["all_three"] = lambda x, v, environment: all(
    REQUIREMENTS[name](x, v, environment)
    for name in ("stops_only_for_pedestrians", "stops_for_pedestrians", "never_stalls_early")
)


def step(planner, vmax, column, x, v):
    """{next state: probability} in state (x, v); the episode ends at the line or the end of the road.

    `column(distance_in_cells)` gives label -> probability of reporting it.
    """
    if (x, v) == (STOP, 0) or x == CELLS:
        return {(x, v): Fraction(1)}
    row = {}
    for seen, probability in column(abs(CROSSWALK - x)).items():
        speed = planner(x, v, seen, vmax)
        following = (x, v) if speed is None else (min(x + v, CELLS), speed)
        row[following] = row.get(following, 0) + probability
    return row


def chain(planner, vmax, column):
    """state -> {next state: probability}, for every state reachable from a start (1, v0)."""
    rows, pending = {}, [(1, v0) for v0 in range(1, vmax + 1)]
    while pending:
        state = pending.pop()
        if state not in rows:
            rows[state] = step(planner, vmax, column, *state)
            pending.extend(rows[state])
    return rows


def kept_probability(planner, vmax, environment, column, requirement):
    """v0 -> probability that a car starting in (1, v0) never leaves the states the requirement allows.

    The recursion ends because a car stands still only at speed 0, and starts again or stays for ever.
    """
    allowed = REQUIREMENTS[requirement]

    @cache
    def kept(x, v):
        if not allowed(x, v, environment):
            return Fraction(0)
        row = step(planner, vmax, column, x, v)
        stay = row.pop((x, v), Fraction(0))
        if stay == 1:
            return Fraction(1)
        return sum((p * kept(*following) for following, p in row.items()), Fraction(0)) / (1 - stay)

    return {v0: kept(1, v0) for v0 in range(1, vmax + 1)}
