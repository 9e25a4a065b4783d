"""How well any planner could do that sees only the state and the reports: is perception or the planner the limit?

The planner does not know in which of some environments it is; what it has seen makes each of them more or less
likely. With weights b of the environments, after a report y the new ones are proportional to b_e mu_e(y). What can
still be reached is a convex function of b,

    V(node, b) = sum over y of max over inputs of E[ V(next node, (b_e mu_e(y))_e) ],

at the end sum_e b_e [the formula holds in e] (Smallwood and Sondik, The optimal control of partially observable
Markov processes over a finite horizon, Operations Research 21(5), 1973). A node is the state with what remains of the
formula in each environment. The mean is over what the world draws; that leads to what the planner sees, and as it is
equally likely in all environments it says nothing about them.

All weights that can occur are followed forward, equal ones once. Where these become too many, those of a grid stand
for them: equally spaced log odds of each environment against those after it. Weights between its points are a mean
of points, and a convex function lies below the mean of its values: an upper bound (Lovejoy, Computationally feasible
bounds for partially observed Markov decision processes, Operations Research 39(1), 1991). Going by what is best at
one of those points is a planner, which may not be the best: a lower bound.

Where planners do not see all of the state, weights are of the values of hidden variables, too: `hidden_search`, which
also answers where no grid is small enough.

In the worst case over the environments the best planner draws lots between plans. Its value is the least of V over
all weights at the start; weights and plans are found in turns, by linear programs, as in matrix games.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np
from scipy.optimize import linprog

from verifier.analysis.belief_grid import grid_values, log_odds, spacings_of, updated
from verifier.analysis.hidden_game import Game, HiddenGame, told_apart
from verifier.analysis.hidden_search import CLOSE, HiddenSearch
from verifier.base.arrays import ROUNDOFF, Floats, Ints, Mask

MOST_MOVES = 3_000_000
"""Of a node with weights, for every report and choice, that are followed one by one."""
WIDEST_BRACKET = 5e-4
"""A grid is made finer until the bracket is no wider, while there is time."""
MOST_TURNS = 100
_SAME = 1e-11
"""Log odds that differ by less are taken for equal; what that can change is part of the bounds."""


@dataclass(frozen=True)
class Bracket:
    """What the best planner reaches, from one initial state.

    Attributes:
        lower: some planner reaches it.
        upper: no planner reaches more.
        weights: of the environments, for which that is so; in the worst case those that are worst.
        steps: after at most so many every episode has ended or was taken for lost.
        all_end: whether every episode ends by then, whatever the planner does.
        exact: whether all weights were followed, none of them rounded to a grid.
    """

    lower: float
    upper: float
    weights: tuple[float, ...]
    steps: int
    all_end: bool
    exact: bool


def worst_cases(game: Game | HiddenGame, most_steps: int) -> tuple[Bracket, ...]:
    """The best over planners of the least over environments, from each initial state.

    Args:
        game: the nodes.
        most_steps: an episode that has not ended after so many counts as lost, in every environment where nothing
            is decided yet.
    """
    searches = [_Search.of(game.environments) for _ in game.starts]
    for spacing, best in _ways(game, most_steps):
        for start, search in enumerate(searches):
            if search.upper - search.lower > WIDEST_BRACKET:
                search.go_on(partial(best, start), exact=spacing is None)
        if all(search.upper - search.lower <= WIDEST_BRACKET for search in searches):
            break
    return tuple(
        _bracket(game, search.lower, search.upper, search.worst, most_steps, search.exact) for search in searches
    )


def means(game: Game | HiddenGame, weights: Sequence[float] | Floats, most_steps: int) -> tuple[Bracket, ...]:
    """The best over planners of the mean over environments with these weights, (environments,) or of each initial
    state; the rest as `worst_cases`."""
    each_start = np.broadcast_to(np.asarray(weights, dtype=np.float64), (len(game.starts), game.environments))
    brackets: list[Bracket] = []
    for spacing, best in _ways(game, most_steps):
        ends = [best(start, given) for start, given in enumerate(each_start)]
        lower = [float(given @ plan) for given, (plan, _) in zip(each_start, ends, strict=True)]
        upper = [above for _, above in ends]
        if brackets:
            lower = list(map(max, lower, (bracket.lower for bracket in brackets)))
            upper = list(map(min, upper, (bracket.upper for bracket in brackets)))
        exact = spacing is None
        brackets = [_bracket(game, *row, most_steps, exact) for row in zip(lower, upper, each_start, strict=True)]
        if max(bracket.upper - bracket.lower for bracket in brackets) <= WIDEST_BRACKET:
            break
    return tuple(brackets)


_Best: TypeAlias = Callable[[int, Floats], tuple[Floats, float]]
"""From the number of an initial state and weights there to what some planner reaches in each environment, and what
none exceeds."""


@dataclass
class _Search:
    """For the weights against which the best planner reaches least, and for the plans it draws lots between."""

    weights: Floats
    worst: Floats
    plans: list[Floats] = field(default_factory=list)
    lower: float = 0.0
    upper: float = 1.0
    exact: bool = True

    @classmethod
    def of(cls, environments: int) -> _Search:
        """Begun with equal weights."""
        equal = np.full(environments, 1 / environments)
        return cls(equal, equal)

    def go_on(self, best: Callable[[Floats], tuple[Floats, float]], *, exact: bool) -> None:
        """Weights and plans in turns, until neither is new."""
        self.exact = exact
        for _ in range(MOST_TURNS):
            plan, above = best(self.weights)
            if above < self.upper:
                self.upper, self.worst = above, self.weights
            known = any(np.array_equal(plan, array) for array in self.plans)
            self.plans.append(plan)
            self.lower, self.weights = _lots(np.array(self.plans))
            if known or self.upper - self.lower <= _SAME:
                break


def _lots(plans: Floats) -> tuple[float, Floats]:
    """What drawing lots between (plans, environments) reaches in the worst environment, and the weights of the
    environments against which no plan does better."""
    count, environments = plans.shape
    optimum = linprog(
        np.append(np.zeros(count), -1.0),
        A_ub=np.hstack([-plans.T, np.ones((environments, 1))]),
        b_ub=np.zeros(environments),
        A_eq=np.append(np.ones(count), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * count + [(None, None)],
        method="highs",
    )
    shares, prices = optimum.x, optimum.ineqlin.marginals
    assert shares is not None
    assert prices is not None
    lots, weights = np.maximum(shares[:-1], 0), np.maximum(-prices, 0)
    return float((lots / lots.sum() @ plans).min()), weights / weights.sum()


def _ways(game: Game | HiddenGame, most_steps: int) -> Iterator[tuple[float | None, _Best]]:
    """None with a way that follows all weights where they are few enough, else finer and finer grids; where something
    is hidden, or no grid is small enough, how close the bounds are that are searched for."""
    spacings: list[float] = []
    if isinstance(game, Game):
        try:
            _forward(game, int(game.starts[0]), np.ones(game.environments), most_steps)
        except _TooManyError:
            spacings = list(spacings_of(game, most_steps))
        else:
            yield None, partial(_followed, game, most_steps)
            return
        for spacing in spacings:
            yield spacing, grid_values(game, most_steps, spacing).best
    if not spacings:
        hidden = told_apart(game) if isinstance(game, Game) else game
        yield CLOSE, HiddenSearch(hidden, most_steps).best


def _bracket(
    game: Game | HiddenGame, lower: float, upper: float, weights: Floats, most_steps: int, exact: bool
) -> Bracket:
    longest = game.ends_within()
    slack = most_steps * ((len(weights) * _SAME if exact else 0.0) + 4096 * ROUNDOFF)
    return Bracket(
        max(lower - slack, 0.0),
        min(upper + slack, 1.0),
        tuple(weights.tolist()),
        most_steps if longest is None else min(longest, most_steps),
        longest is not None and longest <= most_steps,
        exact,
    )


class _TooManyError(Exception):
    """More moves than are kept."""


@dataclass(frozen=True, eq=False)
class _Layer:
    """The nodes with their weights after some steps; k of them are not over.

    Attributes:
        nodes: (entries,) int64.
        going: (k,) positions of those that are not over.
        after: (k, observations, environments) weights after each report; as before where it cannot be made.
        place: (k, observations, choices, outcomes) int64 positions in the next layer; -1 where the value is known.
    """

    nodes: Ints
    going: Ints
    after: Floats
    place: Ints


def _followed(game: Game, most_steps: int, start: int, weights: Floats) -> tuple[Floats, float]:
    """As `_Best`, by following all weights."""
    plan = weights[None]  # not read: from the last layer nothing leads on
    for layer in reversed(_forward(game, int(game.starts[start]), weights, most_steps)):
        plan = _back(game, layer, plan)
    return plan[0], float(plan[0] @ weights)


def _forward(game: Game, start: int, weights: Floats, most_steps: int) -> list[_Layer]:
    layers, moves = list[_Layer](), 0
    nodes, beliefs = np.array([start]), weights[None, :]
    for left in reversed(range(most_steps)):
        layer, (nodes, beliefs) = _onward(game, nodes, beliefs, last=not left)
        layers.append(layer)
        moves += layer.place.size
        if moves > MOST_MOVES:
            raise _TooManyError
        if not len(nodes):
            break
    return layers


def _onward(game: Game, nodes: Ints, beliefs: Floats, *, last: bool) -> tuple[_Layer, tuple[Ints, Floats]]:
    """One layer, and the nodes with weights of the next."""
    going = np.flatnonzero(~game.over[nodes])
    at = nodes[going]
    following = game.following[at]
    chance, after = updated(beliefs[going], game.told[:, at])
    drawn = (following != -1) & ~game.over[following] & (game.chances[at] > 0)[:, None]
    met = drawn[:, None] & (chance > 0)[:, :, None, None] & (not last)
    place = np.full(met.shape, -1, dtype=np.int64)
    if not met.any():
        return _Layer(nodes, going, after, place), (nodes[:0], beliefs)
    if met.size > MOST_MOVES:
        raise _TooManyError
    flat = after.reshape(-1, after.shape[2])
    same = np.rint(log_odds(flat) / _SAME)
    _, first, number = np.unique(same, axis=0, return_index=True, return_inverse=True)
    keys = number.reshape(*chance.shape, 1, 1)
    pairs = np.broadcast_to(following[:, None] * len(first) + keys, met.shape)[met]
    distinct, position = np.unique(pairs, return_inverse=True)
    place[met] = position.ravel()
    node, point = np.divmod(distinct, len(first))
    return _Layer(nodes, going, after, place), (node, flat[first[point]])


def _back(game: Game, layer: _Layer, plan: Floats) -> Floats:
    """(entries, environments) what the best planner reaches, from that of the next layer."""
    plans = game.payoff[layer.nodes]
    if not len(layer.going):
        return plans
    at = layer.nodes[layer.going]
    following = game.following[at]
    shape = layer.place.shape
    payoff = np.broadcast_to(game.payoff[following][:, None], (*shape, plans.shape[1])).copy()
    met = layer.place != -1
    payoff[met] = plan[layer.place[met]]
    onward = np.einsum("ko,kycoe->kyce", game.chances[at], payoff)
    reached = np.einsum("kye,kyce->kyc", layer.after, onward)
    closed: Mask = np.asarray(following[:, :, 0] == -1)
    reached[np.broadcast_to(closed[:, None], reached.shape)] = -1.0
    chosen = np.take_along_axis(onward, reached.argmax(axis=2)[:, :, None, None], axis=2)[:, :, 0]
    plans[layer.going] = np.einsum("eky,kye->ke", game.told[:, at], chosen)
    return plans
