"""What each state of a skeleton gains in a step, for one reward of its model and whatever matrix fills it.

A reward is about the state and the inputs, and the inputs are what the planner does about the reports of the step:

    gain(s) = sum over y of Pr(y | objects, their bins in s) * reward(s, K(s, y))

So a gain is linear in the weights of the channel, as the probabilities of transitions are. A reward that is the same
whatever is reported does not depend on the matrix at all. One that reads what the world draws is its mean over the
outcomes, which are drawn independently of the reports. Terminal states gain nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from verifier.base.arrays import ROUNDOFF, Floats, Ints
from verifier.base.errors import UsageError
from verifier.language.expressions import evaluate, exact_number
from verifier.language.expressions.syntax import Node, names_in
from verifier.systems.behaviour import actions
from verifier.systems.channel import FRAME
from verifier.systems.model_parts import Planner
from verifier.systems.skeleton import Skeleton
from verifier.systems.space import World, whole_in_range
from verifier.systems.standing import state_text


@dataclass(frozen=True, eq=False)
class Gains:
    """What a step gains in each state.

    Attributes:
        skeleton: whose states.
        states, places: (k,) int64: each part of a gain belongs to a state and to a place among the channel's
            weights, row by row, behind which one more place stands for what is gained for sure.
        rewards: (k,) float64, what is gained there.
        exact: (k,) the same exactly.
    """

    skeleton: Skeleton
    states: Ints
    places: Ints
    rewards: Floats
    exact: NDArray[Any]

    def columns_needed(self) -> Ints:
        """(k, 2) the (bin, column) pairs whose rates gains depend on."""
        channel = self.skeleton.channel
        reported = self.places[self.places < self._sure]
        return channel.columns_used(np.unique(reported // len(channel.observations)))

    @property
    def matters(self) -> bool:
        """Whether gains depend on what is reported."""
        return bool(np.any(self.places < self._sure))

    @property
    def _sure(self) -> int:
        channel = self.skeleton.channel
        return len(channel.bins) * len(channel.observations)

    def values(self, rates: Floats) -> Floats:
        """(n, M) expected gain of a step from each state, for (M, bins, predicted, true) rates."""
        shape = (self.skeleton.state_count, self._sure + 1)
        summed = csr_array((self.rewards, (self.states, self.places)), shape=shape)
        weights = np.ones((len(rates), 1))
        if self.matters:
            weights = np.concatenate([self._weights(rates), weights], axis=1)
        else:
            summed = summed[:, self._sure :]
        return np.asarray(summed @ weights.T)

    def fractions(self, rates: NDArray[Any]) -> list[Fraction]:
        """The same exactly, (n,), for (bins, predicted, true) rates as fractions."""
        gains = [Fraction(0)] * self.skeleton.state_count
        weights = [*(self._weights(rates[None])[0] if self.matters else [None] * self._sure), 1]
        for state, place, reward in zip(self.states.tolist(), self.places.tolist(), self.exact, strict=True):
            gains[state] += Fraction(weights[place]) * reward
        return gains

    def _weights(self, rates: NDArray[Any]) -> NDArray[Any]:
        """(M, places) of the channel."""
        weights: NDArray[Any] = self.skeleton.channel.told_weights(rates).reshape(len(rates), -1)
        return weights

    @property
    def relative_error(self) -> float:
        """By how much a value may be off, relatively, beyond what the rates are off by."""
        channel = self.skeleton.channel
        return (channel.rounding_steps * self.matters + len(channel.observations) + 4) * ROUNDOFF


def gains_of_time(skeleton: Skeleton, step_s: Fraction) -> Gains:
    """The duration of a step in every state that is not terminal."""
    states = np.flatnonzero(~skeleton.terminal)
    sure = len(skeleton.channel.bins) * len(skeleton.channel.observations)
    exact = np.full(len(states), step_s, dtype=object)
    return Gains(skeleton, states, np.full(len(states), sure), np.full(len(states), float(step_s)), exact)


def gains_of(skeleton: Skeleton, planner: Planner, name: str) -> Gains:
    """What a reward of the model gains.

    Args:
        planner: whose inputs count.
        name: of the reward.

    Raises:
        InputError: a reward below 0, or one that cannot be evaluated, or that asks for inputs where a rule stays.
        UsageError: it asks for inputs, and the planner chooses among moves.
    """
    system, path = skeleton.system, f"rewards.{name}"
    node = system.resolve(system.model.rewards[name], path)
    asks = bool(names_in(node) & {variable.name for variable in system.inputs})
    if asks and planner.chooses:
        raise UsageError(
            f"R{{{name}}} asks for inputs, and planner '{planner.name}' of kind \"{planner.kind}\" chooses moves: "
            "rewards about the state alone are known for it"
        )
    frame = skeleton.valuations.get(FRAME, np.zeros(skeleton.state_count, dtype=np.int64))
    if asks and FRAME in skeleton.valuations:
        raise UsageError(
            f"R{{{name}}} asks for inputs, and with memory each of several frames in a step is followed: rewards "
            "about the state alone are known then; or name --memory none"
        )
    moving = np.flatnonzero(~skeleton.terminal & (frame == 0))  # a step gains once, whatever its frames
    channel, width = skeleton.channel, len(skeleton.channel.observations)
    sure, values = len(channel.bins) * width, {name: value[moving] for name, value in skeleton.valuations.items()}
    row = skeleton.entry_row[skeleton.entry[skeleton.indptr[moving]]]
    if not asks:
        return Gains(skeleton, moving, np.full(len(moving), sure), *_gained(skeleton, node, path, values, row))
    possible = channel.possible[row]
    none = np.zeros(0, dtype=np.int64)
    parts = [(none, none, none.astype(np.float64), none.astype(object))]
    for action in actions(system, planner, channel.observations, values, len(moving)):
        of_those = np.flatnonzero(possible[action.where, action.observation])
        here = action.where[of_those]
        if not len(here):
            continue
        if action.sets is None:
            message = "the rule stays without setting inputs, and a reward asks for them"
            raise system.model.at(action.path).error(message, None, "set the inputs in place of stay = true")
        there = {name: value[here] for name, value in values.items()}
        for variable in system.inputs:
            whole, _ = whole_in_range(action.sets[variable.name], variable)
            there[variable.name] = np.broadcast_to(whole, action.where.shape)[of_those]
        gained = _gained(skeleton, node, path, there, row[here])
        parts.append((moving[here], row[here] * width + action.observation, *gained))
    states, places, rewards, exact = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Gains(skeleton, *_joined(states, places, rewards, exact, sure))


def _joined(
    states: Ints, places: Ints, rewards: Floats, exact: NDArray[Any], sure: int
) -> tuple[Ints, Ints, Floats, NDArray[Any]]:
    """The parts with those of each state made one, for sure, where they are the same whatever is reported."""
    order = np.argsort(states, kind="stable")
    states, places, rewards, exact = states[order], places[order], rewards[order], exact[order]
    if not len(states):
        return states, places, rewards, exact
    begins = np.concatenate([[0], np.flatnonzero(np.diff(states)) + 1])
    lengths = np.diff(np.append(begins, len(states)))
    same = np.logical_and.reduceat(exact == exact[np.repeat(begins, lengths)], begins)
    joined = np.repeat(same, lengths)
    places = np.where(joined, sure, places)
    kept = ~joined
    kept[begins] = True
    return states[kept], places[kept], rewards[kept], exact[kept]


def _gained(
    skeleton: Skeleton, node: Node, path: str, values: Mapping[str, Ints], row: Ints
) -> tuple[Floats, NDArray[Any]]:
    """(count,) rewards as doubles and exactly, in the mean over what the world draws in these rows of the channel."""
    outcomes = World(skeleton.system).outcomes
    if not names_in(node) & outcomes[0].keys():
        return _rewards(skeleton, node, path, values, len(row))
    chances = skeleton.channel.chances(np.dtype(object))[row]
    exact = np.full(len(row), Fraction(0), dtype=object)
    for number, drawn in enumerate(outcomes):
        here = np.flatnonzero(chances[:, number] > 0)
        there = {name: value[here] for name, value in values.items()}
        there |= {name: np.full(len(here), value) for name, value in drawn.items()}
        exact[here] += chances[here, number] * _rewards(skeleton, node, path, there, len(here))[1]
    return exact.astype(np.float64), exact


def _rewards(
    skeleton: Skeleton, node: Node, path: str, values: Mapping[str, Ints], count: int
) -> tuple[Floats, NDArray[Any]]:
    """(count,) rewards as doubles and exactly."""
    source = skeleton.system.model.at(path)
    rewards = np.broadcast_to(np.asarray(evaluate(node, values, source)), (count,))
    if np.any(rewards < 0):
        at = int(np.flatnonzero(rewards < 0)[0])
        where = state_text(values, at)
        raise source.error(f"in state {where} the reward is {rewards[at]:g}; a reward is at least 0", None)
    if rewards.dtype.kind in "iu":
        return rewards.astype(np.float64), np.array(rewards.tolist(), dtype=object)
    # Not whole: exactly once for each combination of the values that it speaks about.
    names = sorted(names_in(node))
    columns = [np.broadcast_to(values[name], (count,)) for name in names] or [np.zeros(count, dtype=np.int64)]
    distinct, number = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    fractions = [
        Fraction(exact_number(node, dict(zip(names, row, strict=False)), source)) for row in distinct.tolist()
    ]
    exact = np.array(fractions, dtype=object)[number.ravel()]
    return exact.astype(np.float64), exact
