"""What the best planner reaches where it does not see all of the state: bounds that close in where it matters.

With weights b of the nodes of a view, what can still be reached within some steps is

    V(b) = sum over y of max over choices u of [ won_u b_y + sum over views of V(T_u b_y) ],   b_y = (b_i mu_i(y))_i,

a convex function of b, and twice as much for twice the weights. It is bounded from below by plans, each of which
reaches a linear function of b, and from above by what was found at some weights: between these and the corners, where
the planner knows the node, a convex function lies below the mean of its values. Both are improved along the histories
on which they are farthest apart, backwards from their ends (heuristic search value iteration: Smith and Simmons,
Heuristic search value iteration for POMDPs, UAI 2004; the mean of a point and corners: Hauskrecht, Value-function
approximations for partially observable Markov decision processes, JAIR 13, 2000).

Where the world decides, against the planner, it knows the node and all that was told before this step. It divides the
weight of each node among its moves so that the sum is least; that is a linear program over what plans reach, whose
prices are how the planner draws lots (Horak, Bosansky and Pechoucek, Heuristic search value iteration for one-sided
partially observable stochastic games, AAAI 2017). What the planner reaches so is computed anew from the lots, and any
division bounds it from above, so that no rounding of the program counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array

from verifier.analysis.hidden_game import HiddenGame, View
from verifier.base.arrays import Floats, Mask
from verifier.base.errors import NoAnswerError

CLOSE = 1e-4
"""Bounds that are as close need not be improved."""
MOST_WORK = 2 * 10**9
"""Of numbers looked up; a step counts for `LEAST_WORK` of them at least, a linear program for more."""
LEAST_WORK = 10**4
_BETTER = 1e-13


@dataclass(eq=False)
class _Bounds:
    """What is known of the weights of a view with some steps left.

    Attributes:
        sure: (k,) what is reached from each node if it is known.
        plans: (plans, k) what some plans reach from each node.
        points: (points, k) weights that add up to 1.
        less: (points,) by how much less than the mean of `sure` is reached there, at most; negative.
    """

    sure: Floats
    plans: Floats
    points: Floats
    less: Floats

    def lower(self, weights: Floats) -> Floats:
        """(n,) what the best plan reaches, for (k, n) weights."""
        return np.asarray((self.plans @ weights).max(axis=0))

    def upper(self, weights: Floats) -> Floats:
        """(n,) what none exceeds, for (k, n) weights."""
        most = self.sure @ weights
        if len(self.points):
            with np.errstate(divide="ignore", invalid="ignore"):
                part = np.where(self.points[:, :, None] > 0, weights / self.points[:, :, None], np.inf).min(axis=1)
            most += (self.less[:, None] * part).min(axis=0)
        return np.asarray(most)

    def improve(self, weights: Floats, plan: Floats, above: float) -> None:
        """Take a plan, and what none exceeds at some weights."""
        if plan @ weights > self.lower(weights[:, None])[0] + _BETTER * weights.sum():
            kept = (self.plans > plan).any(axis=1)
            self.plans = np.concatenate([self.plans[kept], plan[None]])
        if above < self.upper(weights[:, None])[0] - _BETTER * weights.sum():
            total = weights.sum()
            self.points = np.concatenate([self.points, weights[None] / total])
            self.less = np.append(self.less, (above - self.sure @ weights) / total)


@dataclass(eq=False)
class HiddenSearch:
    """The bounds of one game, which every question about it improves.

    Args:
        game: what is played.
        most_steps: an episode that has not ended after so many is lost.
    """

    game: HiddenGame
    most_steps: int
    work: int = 0
    _views: dict[int, View] = field(default_factory=dict)
    _known: dict[tuple[int, int], _Bounds] = field(default_factory=dict)

    @cached_property
    def ends_within(self) -> int | None:
        """Steps after which every episode has ended; None where one can go on for longer than is looked at."""
        longest = self.game.ends_within()
        return longest if longest is not None and longest <= self.most_steps else None

    @cached_property
    def _sure(self) -> list[Floats]:
        """(nodes,) what is reached from a node that is known, for each number of steps left."""
        game, sure = self.game, [(self.game.payoff == 1).astype(np.float64)]
        may: Mask = np.asarray(game.after[:, :, 0] != -1)
        for _ in range(self.most_steps if self.ends_within is None else self.ends_within):
            led = np.einsum("nco,nmo->ncm", sure[-1][game.after], game.chances)
            after = np.where(may[:, :, None], led, 0.0).max(axis=1).min(axis=1)
            reached = np.where(game.payoff == -1, after, sure[-1])
            sure = [*sure, reached] if self.ends_within is None else [reached]
        return sure

    def best(self, start: int, weights: Floats) -> tuple[Floats, float]:
        """(environments,) what some planner reaches in each, and what none exceeds with these weights."""
        game, nodes = self.game, self.game.starts[start]
        open_ = game.view[nodes] != -1
        reached = np.where(game.payoff[nodes] == 1, 1.0, 0.0)
        above = float(weights @ reached)
        if open_.any():
            (view,) = np.unique(game.view[nodes[open_]]).tolist()
            first = np.zeros(len(game.members[view]))
            first[game.place[nodes[open_]]] = weights[open_]
            bounds = self._bounds(view, self._left)
            while self.work <= MOST_WORK and self._gap(bounds, first) > CLOSE:
                self._explore(view, first)
            plan = bounds.plans[(bounds.plans @ first).argmax()]
            reached[open_] = plan[game.place[nodes[open_]]]
            above += float(bounds.upper(first[:, None])[0])
        return reached, above

    @property
    def _left(self) -> int:
        """Steps at the start; 0 where they need not be counted."""
        return self.most_steps if self.ends_within is None else 0

    @staticmethod
    def _gap(bounds: _Bounds, weights: Floats) -> float:
        return float(bounds.upper(weights[:, None])[0] - bounds.lower(weights[:, None])[0])

    def _view(self, view: int) -> View:
        if view not in self._views:
            self._views[view] = self.game.looked_at(view)
        return self._views[view]

    def _bounds(self, view: int, left: int) -> _Bounds:
        if (view, left) not in self._known:
            nodes = self.game.members[view]
            sure = self._sure[left if self.ends_within is None else -1][nodes]
            self._known[view, left] = _Bounds(sure, np.zeros_like(sure)[None], np.zeros((0, len(nodes))), np.zeros(0))
        return self._known[view, left]

    def _explore(self, view: int, weights: Floats) -> None:
        """Follow the history on which the bounds are farthest apart, and improve them along it."""
        path, left = list[tuple[int, int, Floats]](), self._left
        while True:
            path.append((view, left, weights))
            behind = self._widest(view, left, weights)
            if behind is None:
                break
            view, weights = behind
            left = max(left - 1, 0)
        for view, left, weights in reversed(path):
            self._improve(view, left, weights)

    def _is_over(self, left: int) -> bool:
        return self.ends_within is None and left == 0

    def _onward(self, view: int, left: int, divided: Floats) -> list[_Onward]:
        """What each choice leads to after each report, for weights of nodes with moves."""
        here, after = self._view(view), max(left - 1, 0)
        told = (here.told * divided).T
        self.work += LEAST_WORK
        onward = []
        for choice in here.choices:
            parts = [(other, self._bounds(other, after), matrix @ told) for other, matrix in choice.onward.items()]
            self.work += sum(part.size * (len(bounds.plans) + len(bounds.points) + 1) for _, bounds, part in parts)
            ends = [(other, part, bounds.lower(part), bounds.upper(part)) for other, bounds, part in parts]
            won = choice.won @ told
            lower, upper = (won + sum((end[k] for end in ends), np.zeros(len(won))) for k in (2, 3))
            onward.append(_Onward(lower, upper, ends))
        return onward

    def _widest(self, view: int, left: int, weights: Floats) -> tuple[int, Floats] | None:
        """The view and weights after the report and choice that seems best where the bounds are farthest apart."""
        if self._is_over(left):
            return None
        onward = self._onward(view, left, self._divided(view, left, weights)[0])
        widest, successor = _BETTER, None
        chosen = np.array([choice.upper for choice in onward]).argmax(axis=0)
        for report, choice in enumerate(chosen.tolist()):
            for other, part, lower, upper in onward[choice].ends:
                if upper[report] - lower[report] > widest:
                    widest, successor = upper[report] - lower[report], (other, part[:, report])
        return successor

    def _improve(self, view: int, left: int, weights: Floats) -> None:
        bounds = self._bounds(view, left)
        if self._is_over(left):
            bounds.improve(weights, np.zeros(len(weights)), 0.0)
            return
        divided, lots = self._divided(view, left, weights)
        onward = self._onward(view, left, divided)
        above = float(np.array([successor.upper for successor in onward]).max(axis=0).sum())
        here, plan = self._view(view), np.zeros(len(divided))
        for report, told in enumerate(here.told):
            plan += told * (self._best_reply(view, left, onward, report) if lots is None else lots[report])
        bounds.improve(weights, plan.reshape(-1, here.moves).min(axis=1), above)

    def _best_reply(self, view: int, left: int, onward: list[_Onward], report: int) -> Floats:
        """(nodes with moves,) what the choice reaches that is best after a report, by what plans reach behind it."""
        number = int(np.argmax([successor.lower[report] for successor in onward]))
        choice = self._view(view).choices[number]
        reached = choice.won.copy()
        for other, part, _, _ in onward[number].ends:
            plans = self._bounds(other, max(left - 1, 0)).plans
            reached += choice.onward[other].T @ plans[(plans @ part[:, report]).argmax()]
        return reached

    def _divided(self, view: int, left: int, weights: Floats) -> tuple[Floats, Floats | None]:
        """(nodes with moves,) the weights as the world divides them, and (observations, nodes with moves) what the
        planner reaches that draws lots against it; None where the world has one move."""
        here = self._view(view)
        if here.moves == 1:
            return weights, None
        behind = {
            (number, other): self._bounds(other, max(left - 1, 0)).plans @ matrix
            for number, choice in enumerate(here.choices)
            for other, matrix in choice.onward.items()
        }
        self.work += 100 * LEAST_WORK + 100 * sum(array.size for array in behind.values()) * len(here.told)
        return _least_division(here, behind, weights)


def _least_division(here: View, behind: Mapping[tuple[int, int], Floats], weights: Floats) -> tuple[Floats, Floats]:
    """As `HiddenSearch._divided`, by a linear program.

    Its variables are the divided weights (as parts of 1), for each report what is reached after it, and for each
    report, choice and view behind it what the best plan reaches there.

    Args:
        here: the nodes.
        behind: choice and view behind it -> (plans, nodes with moves) what each plan there reaches.
        weights: of the nodes.
    """
    size, reports, parts = here.told.shape[1], len(here.told), list(behind)
    first = size + reports  # of the last kind, report by report
    count = first + reports * len(parts)
    rows = list[NDArray[np.float64]]()
    for report, told in enumerate(here.told):
        for number, choice in enumerate(here.choices):
            row = np.zeros(count)
            row[:size], row[size + report] = told * choice.won, -1
            row[[first + report * len(parts) + k for k, (own, _) in enumerate(parts) if own == number]] = 1
            rows.append(row[None])
        for k, part in enumerate(parts):
            block = np.zeros((len(behind[part]), count))
            block[:, :size], block[:, first + report * len(parts) + k] = behind[part] * told, -1
            rows.append(block)
    of_nodes = np.kron(np.eye(len(weights)), np.ones(here.moves))
    # Sparse ones are accepted, whatever the types of the library say.
    below: Any = csr_array(np.concatenate(rows))
    equal: Any = csr_array(np.pad(of_nodes, ((0, 0), (0, count - size))))
    optimum = linprog(
        np.concatenate([np.zeros(size), np.ones(reports), np.zeros(count - first)]),
        A_ub=below,
        b_ub=np.zeros(below.shape[0]),
        A_eq=equal,
        b_eq=weights / weights.sum(),
        bounds=[(0, None)] * size + [(None, None)] * (count - size),
        method="highs",
    )
    if optimum.x is None:
        raise NoAnswerError(f"the linear program of what the world does has no answer: {optimum.message}")
    divided = np.maximum(optimum.x[:size], 0).reshape(-1, here.moves)
    short = divided.sum(axis=1, keepdims=True)
    divided = np.divide(divided, short, out=np.full_like(divided, 1 / here.moves), where=short > 0)
    lots, prices = np.zeros((reports, size)), np.maximum(-optimum.ineqlin.marginals, 0)
    at = 0
    for report in range(reports):
        chosen = _shares(prices[at : at + len(here.choices)])
        at += len(here.choices)
        lots[report] = chosen @ [choice.won for choice in here.choices]
        for part in parts:
            mixed = _shares(prices[at : at + len(behind[part])])
            at += len(behind[part])
            lots[report] += chosen[part[0]] * (mixed @ behind[part])
    return (divided * weights[:, None]).ravel(), lots


def _shares(prices: Floats) -> Floats:
    """The prices as parts of 1; all of it for the first where they are 0."""
    total = prices.sum()
    return np.asarray(prices / total) if total > 0 else np.eye(len(prices))[0]


@dataclass(frozen=True, eq=False)
class _Onward:
    """What a choice leads to: (observations,) bounds of what is reached after each report, and for each view behind
    it the weights there and their bounds."""

    lower: Floats
    upper: Floats
    ends: list[tuple[int, Floats, Floats, Floats]]
