"""What a world that decides does for an optimum: its choices, and the Markov chain that they leave.

Until the formula is decided, the world chooses by the state and by what remains to be met (`optimum`). Where it has
won by staying, it takes ways of staying, each as often; where the formula is decided, it may do anything. What that
leaves has the form of any other system, so whatever is computed of chains can be computed of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType

import numpy as np
from scipy.sparse import csc_array, eye_array
from scipy.sparse.linalg import spsolve

from verifier.analysis.objective import led_by_observation
from verifier.analysis.robust.optimum import Bracket, Optimum
from verifier.base.arrays import Floats, Ints, Mask, marked, rows_of
from verifier.base.graphs import coreachable, reachable
from verifier.chains.chain import MarkovChain
from verifier.systems.channel import Channel
from verifier.systems.skeleton import Skeleton, merged_transitions
from verifier.systems.strategies import StrategySkeleton


@dataclass(frozen=True, eq=False)
class KeptStrategy:
    """What is left of a system where the world keeps to a strategy.

    Attributes:
        skeleton: its states are those of the process, one copy for each thing that may remain to be met; its initial
            states are those of the process, in their order.
        choices: for each state the numbers of the choices of the process that the world takes.
        state: (k,) int64, the state of the process that each state is a copy of.
        won: (k,) bool, where the world has won by staying, or the formula is decided.
        decided: (k,) bool, where the formula is decided.
        options: (k,) int64, between how many choices the world could choose there.
    """

    skeleton: Skeleton
    choices: tuple[tuple[int, ...], ...]
    state: Ints
    won: Mask
    decided: Mask
    options: Ints


@dataclass(frozen=True, eq=False)
class WorldStrategy:
    """What the world does from one initial state.

    Attributes:
        chain: under its choices, with the one initial state.
        choices, state, options: as in `KeptStrategy`, for the states of this chain.
        visits: (k,) how often each is expected to be visited until the world has won or lost; infinite where it has
            won and goes on to decide.
    """

    chain: MarkovChain
    choices: tuple[tuple[int, ...], ...]
    state: Ints
    visits: Floats
    options: Ints


def kept_strategy(choices: StrategySkeleton, objective: Optimum, bracket: Bracket) -> KeptStrategy:
    """What is left while the world does what gives it an optimum.

    Args:
        choices: of the world.
        objective: that was asked for.
        bracket: what was found for some rates. The strategy covers all states that any rates lead to.
    """
    product, skeleton, p = objective.product, choices.choices, objective.product.state_count
    process = np.arange(len(choices.choice_starts) - 1)
    led, drawn = led_by_observation(
        skeleton, len(skeleton.indptr) - 1, rows_of(skeleton.indptr), skeleton.entry, skeleton.indices
    )
    # The first p nodes are product states; behind them stand the states of the process, once the formula is decided.
    taken = np.flatnonzero(bracket.taken & (objective.owner >= 2))
    owner = objective.owner[taken]
    choice = choices.choice_starts[product.state[owner]] + taken - objective.first[owner]
    after = np.where(objective.following[taken] < 2, p + led[choice], objective.following[taken])
    source = np.concatenate([owner, p + process])
    choice = np.concatenate([choice, choices.choice_starts[:-1]])
    target = np.concatenate([after, p + led[choices.choice_starts[:-1]]])
    begun = np.where(product.start < 2, p + skeleton.starts, product.start)
    met, place = _met(p + len(process), np.repeat(source, target.shape[1]), target.ravel(), begun)
    inside = place[source] >= 0
    source, choice, target = place[source[inside]], choice[inside], place[target[inside]]
    ways = np.split(np.arange(len(source)), np.flatnonzero(np.diff(source)) + 1)
    following, channel, of_row = _mixed(ways, target, np.maximum(drawn, 0)[choice], skeleton.channel)
    state = np.concatenate([product.state, process])[met]
    ended = skeleton.terminal[state]
    indptr, indices, entry, entry_row, entry_observations = merged_transitions(following, of_row, ended)
    left = replace(
        skeleton,
        valuations=MappingProxyType({name: value[state] for name, value in skeleton.valuations.items()}),
        memory=skeleton.memory[state],
        starts=place[begun],
        terminal=ended,
        channel=channel,
        indptr=indptr,
        indices=indices,
        entry=entry,
        entry_row=entry_row,
        entry_observations=entry_observations,
    )
    won = np.concatenate([bracket.target, np.ones(len(process), dtype=bool)])[met]
    options = np.concatenate([np.diff(objective.first), np.ones(len(process), dtype=np.int64)])[met]
    chosen = tuple(tuple(choice[way].tolist()) for way in ways)
    return KeptStrategy(left, chosen, state, won, met >= p, options)


def _met(count: int, sources: Ints, targets: Ints, begun: Ints | list[int]) -> tuple[Ints, Ints]:
    """The states that are reached, and for each state its place among them, -1 for others."""
    met = np.flatnonzero(reachable(count, sources, targets, marked(count, begun)))
    place = np.full(count, -1, dtype=np.int64)
    place[met] = np.arange(len(met))
    return met, place


def _mixed(ways: list[Ints], target: Ints, row: Ints, channel: Channel) -> tuple[Ints, Channel, Ints]:
    """Where each observation leads from each state, with the channel and its row for each state, if the world takes
    one of several ways on, each as often: another thing that it draws.

    Args:
        target, row: of each way.
    """
    most = max(map(len, ways))
    first = np.array([way[0] for way in ways])
    if most == 1:
        return target[first], channel, row[first]
    rows = [tuple(row[way].tolist()) for way in ways]
    known = {row: number for number, row in enumerate(dict.fromkeys(rows))}
    chances = channel.chances(np.dtype(object))
    motion = np.full((len(known), chances.shape[1], most), Fraction(0), dtype=object)
    for group, number in known.items():
        for place, own in enumerate(group):
            motion[number, :, place] = chances[own] / Fraction(len(group))
    filled = np.array([[*way.tolist(), *[way[0]] * (most - len(way))] for way in ways])
    following = np.moveaxis(target[filled], 1, 2).reshape(len(ways), -1)
    mixed = channel.at(np.array([row[0] for row in known]))
    return following, mixed.moved_by(motion.reshape(len(known), -1)), np.array([known[row] for row in rows])


def world_strategy(
    choices: StrategySkeleton,
    objective: Optimum,
    bracket: Bracket,
    rates: Floats,
    labels: Mapping[str, Mask],
    start: int,
) -> WorldStrategy:
    """What the world does for an optimum, from one initial state.

    Args:
        choices, objective: as for `kept_strategy`.
        bracket: what was found for these (bins, predicted, true) rates.
        rates: the rates.
        labels: of the states.
        start: number of the initial state.
    """
    kept = kept_strategy(choices, objective, bracket)
    whole, begin = kept.skeleton, int(kept.skeleton.starts[start])
    weights, sources = whole.fill(rates), rows_of(whole.indptr)
    there = weights > 0
    met, place = _met(whole.state_count, sources[there], whole.indices[there], [begin])
    there &= place[sources] >= 0
    lengths = np.bincount(place[sources[there]], minlength=len(met))
    state = kept.state[met]
    chain = MarkovChain(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        place[whole.indices[there]],
        weights[there],
        {name: mask[state] for name, mask in labels.items()},
        place[[begin]],
        valuations={name: value[met] for name, value in whole.valuations.items()},
    )
    visits = _visits(chain, kept.won[met])
    visits[kept.won[met] & ~kept.decided[met]] = np.inf
    return WorldStrategy(chain, tuple(kept.choices[k] for k in met.tolist()), state, visits, kept.options[met])


def _visits(chain: MarkovChain, over: Mask) -> Floats:
    """(k,) how often each state is visited on average before one that is over, or from where none is reached."""
    sources = rows_of(chain.indptr)
    open_ = coreachable(chain.state_count, sources, chain.indices, over) & ~over
    result = np.zeros(chain.state_count)
    places = np.flatnonzero(open_)
    if len(places) and open_[chain.initial[0]]:
        number = np.cumsum(open_) - 1
        inner = open_[sources] & open_[chain.indices]
        moves = csc_array(
            (chain.probabilities[inner], (number[chain.indices[inner]], number[sources[inner]])),
            shape=(len(places),) * 2,
        )
        begun = np.zeros(len(places))
        begun[number[chain.initial[0]]] = 1
        result[places] = np.atleast_1d(spsolve(csc_array(eye_array(len(places), format="csc") - moves), begun))
    return result
