"""A system without its planner where planners do not see all of the state, environments differ, or the world decides.

A *node* is an environment with a state and with what remains of the formula there. What the planner sees of it is its
*view*: the values of the variables that are not hidden, and not whether the episode has ended. Weights of nodes with
one view are unnormalised: how likely it is to have come there and to have been told what was told.

What the world does is no report: it chooses a *move* for each node, knowing all but the reports of the step. Nodes
with moves are numbered node by node, all moves of one side by side.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import NoAnswerError, UsageError
from verifier.base.graphs import components
from verifier.checking.plan import decide
from verifier.checking.product import build_product
from verifier.language.expressions.syntax import Node
from verifier.language.ltl.progression import ACCEPT, REJECT
from verifier.systems.declarations import hidden_names
from verifier.systems.exploration import Known
from verifier.systems.open_system import NOT_TOLD, OpenSystem
from verifier.systems.space import LARGEST_WORD


@dataclass(frozen=True, eq=False)
class Choice:
    """What one choice leads to from the nodes of a view with the moves of the world.

    Attributes:
        won: (nodes with moves,) how likely the formula is known to hold after the step.
        onward: view -> (nodes there, nodes with moves) how likely each is next.
    """

    won: Floats
    onward: Mapping[int, csr_array]


@dataclass(frozen=True, eq=False)
class View:
    """The nodes that look the same to a planner.

    Attributes:
        nodes: (k,) int64.
        moves: how many the world has.
        told: (observations, k * moves) how likely each report is.
        choices: those that are admissible.
    """

    nodes: Ints
    moves: int
    told: Floats
    choices: tuple[Choice, ...]


@dataclass(frozen=True, eq=False)
class HiddenGame:
    """See the module; nodes where the formula is decided have no view.

    Attributes:
        after: (nodes, choices, outcomes) int64, -1 where a choice is not admissible.
        chances: (nodes, moves, outcomes) how likely each outcome is with each move of the world.
        payoff: (nodes,) 1 where it is decided for the planner, 0 where against it, -1 where it is open.
        told: (nodes, observations) how likely each report is.
        view: (nodes,) int64 number, -1 where the formula is decided.
        starts: (m, environments) int64 the node of each initial state in each environment.
    """

    after: Ints
    chances: Floats
    payoff: Ints
    told: Floats
    view: Ints
    starts: Ints

    @property
    def environments(self) -> int:
        """How many there are."""
        return int(self.starts.shape[1])

    @cached_property
    def place(self) -> Ints:
        """(nodes,) position among the nodes of its view; not read of nodes without one."""
        places = np.zeros_like(self.view)
        for nodes in self.members:
            places[nodes] = np.arange(len(nodes))
        return places

    @cached_property
    def members(self) -> list[Ints]:
        """The nodes of each view."""
        order = np.argsort(self.view, kind="stable")
        ends = np.searchsorted(self.view[order], np.arange(int(self.view.max()) + 2))
        return [order[low:high] for low, high in itertools.pairwise(ends.tolist())]

    def looked_at(self, view: int) -> View:
        """The nodes of a view, with what is told and may be done there."""
        nodes = self.members[view]
        may: Mask = np.asarray(self.after[nodes, :, 0] != -1)
        if not np.array_equal(may.all(axis=0), may.any(axis=0)):
            raise UsageError("what is admissible depends on what planners do not see, so they cannot keep to it")
        choices = tuple(self._choice(nodes, int(number)) for number in np.flatnonzero(may[0]))
        moves = self.chances.shape[1]
        return View(nodes, moves, np.repeat(self.told[nodes].T, moves, axis=1), choices)

    def _choice(self, nodes: Ints, number: int) -> Choice:
        chances, size = self.chances[nodes], len(nodes) * self.chances.shape[1]
        drawn = chances.ravel() > 0
        source = np.repeat(np.arange(size), chances.shape[2])[drawn]
        led = np.broadcast_to(self.after[nodes, number][:, None], chances.shape)
        after, chance = led.ravel()[drawn], chances.ravel()[drawn]
        won = np.bincount(source, chance * (self.payoff[after] == 1), size).astype(np.float64)
        onward = {}
        for view in np.unique(self.view[after]).tolist():
            here = self.view[after] == view
            if view != -1:
                shape = len(self.members[view]), size
                onward[view] = csr_array((chance[here], (self.place[after[here]], source[here])), shape=shape)
        return Choice(won, onward)

    def ends_within(self) -> int | None:
        """As `Game.ends_within`."""
        return episode_steps(self.after, self.payoff != -1, self.starts)


def told_apart(game: Game) -> HiddenGame:
    """The same game with its nodes once for each environment."""
    count, size = game.environments, len(game.over)
    shift = size * np.arange(count)
    after = np.where(game.following == -1, -1, game.following + shift[:, None, None, None])
    view = np.where(game.over, -1, np.cumsum(~game.over) - 1)
    return HiddenGame(
        after.reshape(count * size, *game.following.shape[1:]),
        np.tile(game.chances, (count, 1))[:, None],
        np.where(game.over, game.payoff.T, -1).astype(np.int64).ravel(),
        game.told.reshape(count * size, -1),
        np.tile(view, count),
        game.starts[:, None] + shift,
    )


def hidden_game(
    systems: Sequence[OpenSystem],
    formula: Node,
    propositions: Mapping[str, Node],
    rates: Floats,
    *,
    negated: bool,
    most: int,
) -> HiddenGame:
    """The nodes of one open system for each environment, as `game_of`.

    Raises:
        NoAnswerError: more nodes.
        UsageError: runs begin in different states, or what is admissible depends on what is hidden.
    """
    first = systems[0]
    begun = [{name: value[system.starts] for name, value in system.valuations.items()} for system in systems]
    if not all(np.array_equal(one[name], begun[0][name]) for one in begun for name in one):
        raise UsageError(f"{NOT_TOLD}, and runs begin in different states there")
    if [system.system.inputs for system in systems] != [first.system.inputs] * len(systems):
        raise UsageError(f"{NOT_TOLD}, and 'inputs' differs there: name one of them (--env NAME)")
    hidden = hidden_names(first.system.model)
    told = sorted({observation for system in systems for observation in system.observations}, key=sorted)
    parts: list[tuple[Ints, ...]] = []
    reports, chances, seen, starts, count = [], [], [], [], 0
    for system in systems:
        (name,) = system.environments
        way = progress_in(system, formula, propositions, name, most)
        count += len(way.value)
        if count > most:
            raise too_many(most)
        state = way.state  # where it is decided, that of another: nobody reads it
        outcomes = system.chances.shape[2]
        after = way.after.reshape(len(state), -1, outcomes)
        parts.append((np.where(after != -1, after + count - len(state), -1), way.value))
        own = np.zeros((len(state), len(told)))
        own[:, [told.index(observation) for observation in system.observations]] = system.reported(rates)[0][state]
        reports.append(own)
        chances.append(system.chances[state])
        seen.append(
            np.stack([v[state] for name, v in system.valuations.items() if name not in hidden] or [state * 0])
        )
        starts.append(way.start + count - len(state))
    value = np.concatenate([value for _, value in parts])
    _, view = np.unique(np.concatenate(seen, axis=1)[:, value == -1], axis=1, return_inverse=True)
    views = np.full(count, -1, dtype=np.int64)
    views[value == -1] = view.ravel()
    moves, width = np.max([chance.shape[1:] for chance in chances], axis=0).tolist()
    drawn = [np.pad(chance, ((0, 0), (0, 0), (0, width - chance.shape[2]))) for chance in chances]
    padded = [array[:, np.minimum(np.arange(moves), array.shape[1] - 1)] for array in drawn]
    padded_after = [array[:, :, np.minimum(np.arange(width), array.shape[2] - 1)] for array, _ in parts]
    wins = 0 if negated else 1
    return HiddenGame(
        np.concatenate(padded_after),
        np.concatenate(padded),
        np.where(value == -1, -1, value == wins).astype(np.int64),
        np.concatenate(reports),
        views,
        np.stack(starts, axis=1),
    )


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

    def ends_within(self) -> int | None:
        """Steps after which every episode has ended, whatever is chosen; None where one can go on for ever."""
        return episode_steps(self.following, self.over, self.starts)


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
        may = led[0] != -1
        following = np.where(may, _coded([np.maximum(array, 0) for array in led], sizes), -1)
        parts.append((fresh, following))
        fresh = known.unknown_among(np.unique(following[may]))
    codes = np.concatenate([codes for codes, _ in parts])
    order = np.argsort(codes)
    codes, following = codes[order], np.concatenate([following for _, following in parts])[order]
    state, *remaining = np.unravel_index(codes, sizes)
    values = np.stack([way.value[at] for way, at in zip(ways, remaining, strict=True)], axis=1)
    following = np.where(following == -1, -1, np.searchsorted(codes, following))
    return Game(
        following.reshape(len(codes), *system.following.shape[1:]),
        system.chances[state, 0],
        np.asarray((values != -1).all(axis=1)),
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
    may = following != -1
    indptr = np.concatenate([[0], np.cumsum(may.sum(axis=1))])
    labels = {name: system.mask_of(node, environment) for name, node in propositions.items()}
    product = build_product(indptr, following[may], labels, formula, system.starts, max_states=most)
    after = np.full((product.state_count, may.shape[1]), -1, dtype=np.int64)
    after[product.sources, np.nonzero(may)[1][product.edge]] = product.indices
    after[[REJECT, ACCEPT]] = np.array([[REJECT], [ACCEPT]])
    value = np.full(product.state_count, -1, dtype=np.int64)
    value[REJECT], value[ACCEPT] = 0, 1
    ended = np.flatnonzero(system.ended[product.state])
    if len(ended):  # the state stays, what remains goes round in a circle
        onward = after[:, 0]
        for _ in range(product.state_count.bit_length()):
            onward = onward[onward]
        accepting = decide(product, np.ones(indptr[-1], dtype=bool)).graph.accepting
        value[ended] = accepting[onward[ended]]
    return Way(product.start, after, value, product.state)


def episode_steps(following: Ints, over: Mask, starts: Ints) -> int | None:
    """As `Game.ends_within`: (nodes, ..) where each leads, -1 for nowhere, which nodes are over, and the first."""
    led = np.where(over[:, None], -1, following.reshape(len(over), -1))
    sources, choice = np.nonzero(led != -1)
    component = components(len(led), sources, led[sources, choice])
    if np.any(component[sources] == component[led[sources, choice]]):
        return None
    steps, going = 0, np.unique(starts[~over[starts]])
    while len(going):
        reached = np.unique(led[going])
        going, steps = reached[(reached != -1) & ~over[reached]], steps + 1
    return steps
