"""A system without its planner, with what remains of a formula in each of some environments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import NoAnswerError
from verifier.checking.graphs import components
from verifier.checking.plan import decide
from verifier.checking.product import build_product
from verifier.language.expressions.syntax import Node
from verifier.language.ltl.progression import ACCEPT, REJECT
from verifier.systems.exploration import Known
from verifier.systems.open_system import OpenSystem
from verifier.systems.space import LARGEST_WORD


@dataclass(frozen=True, eq=False)
class Game:
    """Nodes: a state, with what remains of the formula in each environment.

    Attributes:
        following: (nodes, choices, outcomes) int64, -1 where a choice is not admissible.
        chances: (nodes, outcomes) how likely each outcome of what the world draws is.
        over: (nodes,) bool, the nodes where it is decided in every environment.
        payoff: (nodes, environments) 1 where it is decided and the formula holds, else 0.
        told: (environments, nodes, observations) how likely each report is.
        starts: (m,) int64.
    """

    following: Ints
    chances: Floats
    over: Mask
    payoff: Floats
    told: Floats
    starts: Ints

    @property
    def environments(self) -> int:
        """How many there are."""
        return int(self.payoff.shape[1])


def game_of(
    system: OpenSystem, formula: Node, propositions: Mapping[str, Node], rates: Floats, *, negated: bool, most: int
) -> Game:
    """The nodes of an open system with a formula, which the planner wants to hold (or, where negated, to fail).

    Args:
        system: the states.
        formula: over proposition names.
        propositions: name -> the state condition it stands for.
        rates: (bins, predicted, true).
        negated: whether the payoff is that of the negation.
        most: nodes to build.

    Raises:
        NoAnswerError: more nodes.
    """
    ways = [progress_in(system, formula, propositions, name, most) for name in system.environments]
    sizes = [system.state_count, *(len(way.value) for way in ways)]
    if math.prod(sizes) > LARGEST_WORD:
        raise too_many(most)
    starts = _coded([system.starts, *(way.start for way in ways)], sizes)
    known, fresh = Known(), np.unique(starts)
    parts: list[tuple[Ints, Ints]] = []
    while len(fresh):
        known.add(fresh)
        if known.count > most:
            raise too_many(most)
        state, *remaining = np.unravel_index(fresh, sizes)
        flat = system.following.reshape(system.state_count, -1)
        led = [flat[state], *(way.after[at] for way, at in zip(ways, remaining, strict=True))]
        may = led[0] >= 0
        following = np.where(may, _coded([np.maximum(each, 0) for each in led], sizes), -1)
        parts.append((fresh, following))
        fresh = known.unknown_among(np.unique(following[may]))
    codes = np.concatenate([codes for codes, _ in parts])
    order = np.argsort(codes)
    codes, following = codes[order], np.concatenate([following for _, following in parts])[order]
    state, *remaining = np.unravel_index(codes, sizes)
    values = np.stack([way.value[at] for way, at in zip(ways, remaining, strict=True)], axis=1)
    following = np.where(following < 0, -1, np.searchsorted(codes, following))
    return Game(
        following.reshape(len(codes), *system.following.shape[1:]),
        system.chances[state, 0],
        np.asarray((values >= 0).all(axis=1)),
        np.asarray(values == (0 if negated else 1), dtype=np.float64),
        system.reported(rates)[:, state],
        np.searchsorted(codes, starts),
    )


def _coded(columns: Sequence[Ints], sizes: Sequence[int]) -> Ints:
    return np.ravel_multi_index(tuple(columns), tuple(sizes)).astype(np.int64)


def too_many(most: int) -> NoAnswerError:
    """Why there is no game."""
    hint = "shorten the formula, or narrow the ranges of variables and inputs"
    return NoAnswerError(f"the system without its planner has more than {most} states with the formula", hint=hint)


@dataclass(frozen=True, eq=False)
class Way:
    """What remains of the formula in one environment.

    Attributes:
        start: (m,) start states of the product.
        after: (p, choices * outcomes) where each leads.
        value: (p,) 1 where the formula holds for certain, 0 where it fails, -1 where that is open.
        state: (p,) of the system, -1 where nothing remains.
    """

    start: Ints
    after: Ints
    value: Ints
    state: Ints


def progress_in(
    system: OpenSystem, formula: Node, propositions: Mapping[str, Node], environment: str, most: int
) -> Way:
    """The formula's progression on all that a planner may do in an environment; NoAnswerError as `game_of`."""
    following = system.following.reshape(system.state_count, -1)
    may = following >= 0
    indptr = np.concatenate([[0], np.cumsum(may.sum(axis=1))])
    labels = {name: system.mask_of(node, environment) for name, node in propositions.items()}
    product = build_product(indptr, following[may], labels, formula, system.starts, max_states=most)
    after = np.full((product.state_count, may.shape[1]), -1, dtype=np.int64)
    after[product.sources, np.nonzero(may)[1][product.edge]] = product.indices
    after[[REJECT, ACCEPT]] = np.array([[REJECT], [ACCEPT]])
    value = np.full(product.state_count, -1, dtype=np.int64)
    value[REJECT], value[ACCEPT] = 0, 1
    ended = np.flatnonzero((product.state >= 0) & system.ended[product.state])
    if len(ended):  # the state stays, what remains goes round in a circle
        onward, steps = after[:, 0], 1
        while steps < product.state_count:
            onward, steps = np.where(onward < 0, onward, onward[onward]), 2 * steps
        accepting = decide(product, np.ones(indptr[-1], dtype=bool)).graph.accepting
        value[ended] = accepting[onward[ended]]
    return Way(product.start, after, value, product.state)


def longest_episode(game: Game) -> int | None:
    """Steps after which every episode has ended, whatever is chosen; None where one can go on for ever."""
    led = np.where(game.over[:, None], -1, game.following.reshape(len(game.over), -1))
    return episode_steps(led, game.over, game.starts)


def episode_steps(led: Ints, over: Mask, starts: Ints) -> int | None:
    """As `longest_episode`: (nodes, moves) where each leads, -1 for nowhere, which nodes are over, and the first."""
    sources, choice = np.nonzero(led >= 0)
    component = components(len(led), sources, led[sources, choice])
    if np.any(component[sources] == component[led[sources, choice]]):
        return None
    steps, going = 0, np.unique(starts[~over[starts]])
    while len(going):
        reached = np.unique(led[going])
        going, steps = reached[(reached >= 0) & ~over[reached]], steps + 1
    return steps
