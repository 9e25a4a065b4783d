"""Weights of environments on a grid of log odds, and what a planner that sees only reports reaches from there.

Weights between the points of the grid are a mean of points. A convex function lies below the mean of its values
there: that bounds from above what is reached. Going by what is best at one of those points is a planner, and bounds
from below.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from verifier.analysis.hidden_game import Game
from verifier.base.arrays import Floats, Ints

SPACINGS = (2.0, 1.0, 0.4, 0.1, 0.04, 0.01, 0.004)
MOST_NUMBERS = 30_000_000
"""That are kept at once."""
MOST_WORK = 5 * 10**9
"""Of values looked up."""
_LARGEST_LOG_ODDS = 20.0
"""Beyond it comes certainty."""


@dataclass(frozen=True)
class Grid:
    """Equally spaced log odds of each of some environments against those after it, and certainty.

    Attributes:
        environments: how many.
        spacing: of the log odds.
    """

    environments: int
    spacing: float

    @property
    def most(self) -> int:
        """The number of the last point before certainty; numbers go from -most - 1 to most + 1."""
        return math.ceil(_LARGEST_LOG_ODDS / self.spacing)

    @property
    def shape(self) -> tuple[int, ...]:
        """Points along each axis."""
        return (2 * self.most + 3,) * (self.environments - 1)

    @property
    def size(self) -> int:
        """Number of points."""
        return math.prod(self.shape)

    @property
    def points(self) -> Floats:
        """(size, environments) weights."""
        _, *axes = np.unravel_index(np.arange(self.size), (1, *self.shape))
        numbers = np.array(axes, dtype=np.int64).reshape(len(self.shape), self.size).T
        return _weights(self._odds(numbers - self.most - 1))

    def around(self, weights: Floats) -> tuple[Ints, Floats]:
        """(n, corners) points of which (n, environments) weights are a mean, and how much of each."""
        odds = log_odds(weights)
        number = np.floor(np.clip(odds, -1e6, 1e6) / self.spacing)
        low = np.clip(number, -self.most - 1, self.most).astype(np.int64)
        high_share = _between(odds, self._odds(low), self._odds(low + 1))
        places, shares = list[Ints](), list[Floats]()
        for ends in itertools.product((0, 1), repeat=odds.shape[1]):
            axes = (low + np.array(ends, dtype=np.int64) + self.most + 1).T
            places.append(
                np.ravel_multi_index(tuple(axes), self.shape) if len(axes) else np.zeros(len(low), np.int64)
            )
            shares.append(np.where(ends, high_share, 1 - high_share).prod(axis=1))
        return np.stack(places, axis=1), np.stack(shares, axis=1)

    def _odds(self, number: Ints) -> Floats:
        return np.where(np.abs(number) > self.most, np.copysign(np.inf, number), number * self.spacing)


@dataclass(frozen=True, eq=False)
class GridValues:
    """What is reached from each initial state at each point.

    Attributes:
        grid: the points.
        above: (starts, points) which no planner exceeds.
        plans: (starts, points, environments) what some planner reaches in each environment.
    """

    grid: Grid
    above: Floats
    plans: Floats

    def best(self, start: int, weights: Floats) -> tuple[Floats, float]:
        """(environments,) what some planner reaches in each, and what none exceeds with these weights."""
        ((place,), (share,)) = self.grid.around(weights[None])
        plans = self.plans[start, place]
        return plans[(plans @ weights).argmax()], float(share @ self.above[start, place])


def spacings_of(game: Game, most_steps: int) -> Iterator[float]:
    """Finer and finer ones that there is room and time for, if any."""
    environments, nodes, observations = game.told.shape
    moves = observations * game.following.size * 2 ** (environments - 1) * (environments + 1)
    for spacing in SPACINGS:
        size = Grid(environments, spacing).size
        if size * nodes * (environments + 1) > MOST_NUMBERS or size * moves * most_steps > MOST_WORK:
            return
        yield spacing


def grid_values(game: Game, most_steps: int, spacing: float) -> GridValues:
    """What is reached within so many steps, at every point of a grid."""
    environments = len(game.told)
    grid = Grid(environments, spacing)
    points = grid.points
    plans = np.repeat(game.payoff[:, None], grid.size, axis=1)
    above = game.payoff @ points.T
    looks = [_Look.of(game, grid, points, nodes) for nodes in _alike(game)]
    distance = _distances(game, most_steps)
    for away in reversed(range(most_steps)):
        before = above, plans
        above, plans = above.copy(), plans.copy()
        for look in looks:
            nodes = look.nodes[distance[look.nodes] <= away]
            if len(nodes):
                above[nodes], plans[nodes] = look.back(game.following[nodes], game.chances[nodes], *before)
        if np.array_equal(above, before[0]) and np.array_equal(plans, before[1]):
            break
    return GridValues(grid, above[game.starts], plans[game.starts])


def _alike(game: Game) -> list[Ints]:
    """The nodes that are not over, together where reports are equally likely in all environments."""
    going = np.flatnonzero(~game.over)
    rows = game.told[:, going].transpose(1, 0, 2).reshape(len(going), -1)
    _, kind = np.unique(rows, axis=0, return_inverse=True)
    return [going[kind.ravel() == number] for number in range(int(kind.max()) + 1)]


def _distances(game: Game, most_steps: int) -> Ints:
    """(nodes,) fewest steps from an initial state, at most `most_steps + 1`."""
    distances = np.full(len(game.over), most_steps + 1, dtype=np.int64)
    fresh = np.unique(game.starts)
    for steps in range(most_steps + 1):
        distances[fresh] = steps
        led = np.unique(game.following[fresh[~game.over[fresh]]])  # whatever is drawn
        fresh = led[(led != -1) & (distances[led] > steps)]
        if not len(fresh):
            break
    return distances


@dataclass(frozen=True, eq=False)
class _Look:
    """One report in nodes where all reports are equally likely, at every point of the grid.

    Attributes:
        nodes: (k,) of the game.
        told: (environments, observations) how likely each report is.
        chance: (points, observations) likewise with the weights of the points.
        after: (points, observations, environments) weights after each.
        place: (points, observations, corners) points around these, and `share` of each.
    """

    nodes: Ints
    told: Floats
    chance: Floats
    after: Floats
    place: Ints
    share: Floats

    @classmethod
    def of(cls, game: Game, grid: Grid, points: Floats, nodes: Ints) -> _Look:
        """Of some nodes that are alike."""
        told = game.told[:, nodes[0]]
        chance, after = updated(points, np.repeat(told[:, None], len(points), axis=1))
        place, share = grid.around(after.reshape(-1, after.shape[2]))
        shape = (*chance.shape, place.shape[1])
        return cls(nodes, told, chance, after, place.reshape(shape), share.reshape(shape))

    def back(self, following: Ints, chances: Floats, above: Floats, plans: Floats) -> tuple[Floats, Floats]:
        """(k, points) and (k, points, environments) with one step more, from those of all nodes."""
        shape = len(following), len(self.chance)
        most, reached = np.zeros(shape), np.zeros((*shape, len(self.told)))
        for report in range(self.told.shape[1]):
            highest, best, chosen = np.full(shape, -1.0), np.full(shape, -1.0), np.zeros_like(reached)
            for led in following.swapaxes(0, 1):
                may, place = led[:, 0] != -1, self.place[:, report]
                parts, drawn = chances[may].T, led[may].T
                mean = sum(chance[:, None] * above[onward] for chance, onward in zip(parts, drawn, strict=True))
                ahead = np.einsum("kpc,pc->kp", mean[:, place], self.share[:, report])
                highest[may] = np.maximum(highest[may], ahead)
                for corner in place.T:
                    plan = sum(
                        chance[:, None, None] * plans[onward[:, None], corner]
                        for chance, onward in zip(parts, drawn, strict=True)
                    )
                    own = np.einsum("kpe,pe->kp", plan, self.after[:, report])
                    better = own > best[may]
                    best[may] = np.where(better, own, best[may])
                    chosen[may] = np.where(better[:, :, None], plan, chosen[may])
            most += self.chance[:, report] * highest
            reached += self.told[:, report] * chosen
        return most, reached


def updated(weights: Floats, told: Floats) -> tuple[Floats, Floats]:
    """(k, observations) how likely each report is, and (k, observations, environments) the weights after it.

    Args:
        weights: (k, environments) before.
        told: (environments, k, observations) how likely each report is in each environment. After one that cannot be
            made the weights are as before.
    """
    joint = np.einsum("ke,eky->kye", weights, told)
    chance = joint.sum(axis=2)
    before = np.broadcast_to(weights[:, None], joint.shape).copy()
    return chance, np.divide(joint, chance[:, :, None], out=before, where=chance[:, :, None] > 0)


def log_odds(beliefs: Floats) -> Floats:
    """(n, environments - 1) of each environment against those after it; infinite where one side has no weight."""
    rest = np.cumsum(beliefs[:, ::-1], axis=1)[:, ::-1][:, 1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.log(beliefs[:, :-1]) - np.log(rest)
    return np.where(np.isnan(odds), np.inf, odds)


def _weights(odds: Floats) -> Floats:
    """The weights with these log odds."""
    left, weights = np.ones(len(odds)), np.empty((len(odds), odds.shape[1] + 1))
    for index, column in enumerate(odds.T):
        weights[:, index] = left * expit(column)
        left = left * expit(-column)
    weights[:, -1] = left
    return weights


def _between(odds: Floats, low: Floats, high: Floats) -> Floats:
    """How much the high end has in a mean of both that has these odds, in terms of probabilities."""
    # Where odds are large it is the complement that has digits; the sign of both differences does not matter.
    at, begin, end = (expit(np.where(high > 0, -array, array)) for array in (odds, low, high))
    return np.asarray(np.clip((at - begin) / (end - begin), 0, 1))
