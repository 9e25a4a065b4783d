"""Every winning strategy at once: the choices a correct-by-construction planner leaves open.

The controller of `verifier.systems.synthesis` breaks ties in a fixed order, and another order is another controller
with another probability: for the published study a different choice of the synthesis tool changes 23 of 55 points,
by up to 6.4 times. Here every winning move stays open. In each state a strategy picks, for each observation, one
winning move; where none is left, the planner's rules decide as always. That is a Markov decision process: one choice
per combination of moves. Its least and greatest probability of a requirement enclose those of all winning
strategies, with or without memory.

Worlds that decide: the decision process whose choices are what the world may do in each state.

In each state the world decides first, then draws; what it decides, and which extreme point it takes of probabilities
that are only known up to intervals, is one choice of the state. Otherwise it is built as a skeleton.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Ints, Mask
from verifier.base.errors import NoAnswerError, Place, UsageError
from verifier.base.graphs import reachable
from verifier.base.numbers import memory_text
from verifier.systems.behaviour import Moves, rules_behaviour, steps
from verifier.systems.exploration import Known, no_valid_step, watch, where_possible
from verifier.systems.scene import BYTES_PER_STATE, BYTES_PER_TRANSITION, Scene
from verifier.systems.skeleton import Skeleton, digest_of, merged_transitions, synthesis_formula
from verifier.systems.space import Codes
from verifier.systems.synthesis import winning_moves


@dataclass(frozen=True)
class StrategySkeleton:
    """The skeleton of a decision process: `choices` is a skeleton with one row per choice instead of per state.

    Attributes:
        choice_starts: (n + 1,) int64, the choices of state s are choice_starts[s] .. choice_starts[s + 1] - 1.
        choices: rows of the transitions; its valuations, terminal mask and starts are those of the n states.
        names: what a world that decides does: name -> value for people; nothing for winning strategies.
        name: (c,) int64, for each choice the number of its name.
    """

    choice_starts: Ints
    choices: Skeleton
    names: tuple[Mapping[str, str], ...] = ()
    name: Ints | None = None


def build_strategies(scene: Scene) -> StrategySkeleton:
    """The decision process of all winning strategies; errors as `build_skeleton`.

    Raises:
        UsageError: the planner is not synthesised, or its winning moves may circle before the goal: then taking
            winning moves is not yet a winning strategy, and the process would hold others as well.
        NoAnswerError: more choices than the limits allow.
    """
    if scene.planner.kind != "synthesis":
        raise UsageError(f"planner '{scene.planner.name}' is not synthesised: it leaves no choice between strategies")
    open_moves = _moves_per_observation(scene)
    states = _reached(scene, open_moves)
    number = np.full(scene.space.size + 1, -1, dtype=np.int64)  # the last one answers for -1
    number[states] = np.arange(len(states))
    ended = scene.terminal[states]
    options_at = [_compacted(number[move[:, states]]) for move in open_moves]
    valuations = {name: value[states] for name, value in scene.values.items()}
    stuck = np.stack([array[0] for array in options_at], axis=1)
    if np.any(stuck < 0):
        raise no_valid_step(scene, stuck < 0, valuations)

    owner, following = _combined(scene, options_at, ended)
    channel, row_of_state = scene.channel_at(valuations, ended)
    skeleton = Skeleton(
        scene.system,
        scene.environment,
        MappingProxyType(valuations),
        np.zeros(len(states), dtype=np.int64),
        number[scene.starts],
        ended,
        channel,
        *merged_transitions(following, row_of_state[owner], ended[owner]),
    )
    starts = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(states)))])
    return StrategySkeleton(starts.astype(np.int64), skeleton)


def winning_starts(scene: Scene) -> Mask:
    """(m,) the initial states from which a synthesised planner can meet its objective under perfect perception.

    From the others no controller can, and the planner follows its rules there; errors as `build_skeleton`.
    """
    asked = frozenset().union(*scene.observations)
    truth = frozenset().union(*(placed.classes for placed in scene.objects)) & asked
    moves = Moves.of(scene.system, scene.space, scene.planner.pick, scene.terminal)
    won = winning_moves(scene.system, scene.space, scene.planner, synthesis_formula(scene), truth, moves)
    return won.region[scene.starts]


def _moves_per_observation(scene: Scene) -> list[NDArray[np.int32]]:
    """For each observation (moves, n): the winning moves of each state, or its rule's step where none wins."""
    formula = synthesis_formula(scene)
    rules = rules_behaviour(scene.system, scene.space, scene.planner, scene.observations)
    moves = Moves.of(scene.system, scene.space, scene.planner.pick, scene.terminal)
    winning = []
    for column, observation in enumerate(scene.observations):
        won = winning_moves(scene.system, scene.space, scene.planner, formula, observation, moves)
        if not won.moves_terminate():
            raise UsageError(
                f"planner '{scene.planner.name}': its winning moves may circle before the goal, so not every choice "
                "of them is a winning strategy; ask for the goal as an always-requirement, or for a single controller"
            )
        if won.goal_is_forgotten():
            raise UsageError(
                f"planner '{scene.planner.name}': a run may come back to where it was before the goal, and would be "
                "free there; a state does not tell the two apart, so the range over all winning strategies is not "
                "computed. Make the goal terminal, or ask for it as an always-requirement"
            )
        step = won.moves.following.copy()
        lost = (step < 0).all(axis=0)
        step[:, lost] = rules[lost, column]
        step[:, scene.terminal] = np.flatnonzero(scene.terminal)
        winning.append(step)
    return winning


def _reached(scene: Scene, open_moves: list[NDArray[np.int32]]) -> Ints:
    """The states that some strategy reaches from an initial state, increasing."""
    begun = np.zeros(scene.space.size, dtype=bool)
    begun[scene.starts] = True
    edges = [Moves(move).edges() for move in open_moves]
    sources, targets = (np.concatenate(column) for column in zip(*edges, strict=True))
    return np.flatnonzero(reachable(len(begun), sources, targets, begun))


def _compacted(step: Ints) -> Ints:
    """(k, n) the distinct next states of each column first, -1 below them."""
    ordered = np.sort(step, axis=0)
    ordered[1:][ordered[1:] == ordered[:-1]] = -1
    ordered = np.sort(ordered, axis=0)[::-1]
    kept: Mask = np.any(ordered >= 0, axis=1)
    kept[:1] = True
    return ordered[kept]


def _combined(scene: Scene, options_at: list[Ints], ended: Mask) -> tuple[Ints, Ints]:
    """Every combination of one move per observation, as rows.

    Returns:
        owner: (rows,) int64 state of each row, increasing.
        following: (rows, observations) int64 next states.
    """
    counts = np.stack([(array >= 0).sum(axis=0) for array in options_at])
    rows = int(counts.prod(axis=0, dtype=np.float64).sum())  # as floats, which cannot wrap around
    limits = scene.options.limits
    needed = rows * (BYTES_PER_STATE + BYTES_PER_TRANSITION * len(options_at))
    if rows > limits.states or needed > limits.memory_bytes:
        raise NoAnswerError(
            f"the winning strategies of planner '{scene.planner.name}' have {rows} combinations of moves over "
            f"{len(ended)} states; the limits are {limits.states} and {memory_text(limits.memory_bytes)}",
            Place(scene.system.model.file),
            hint="narrow the inputs or the ranges of the variables, or raise --max-states and --max-memory",
        )
    product = counts.prod(axis=0)
    owner = np.repeat(np.arange(len(ended)), product)
    rank, columns = np.arange(rows), []  # so many in a row are every combination, wherever they begin
    for array, count in zip(options_at, counts, strict=True):
        rank, pick = np.divmod(rank, count[owner])
        columns.append(array[pick, owner])
    return owner, np.stack(columns, axis=1)


def build_decisions(scene: Scene) -> StrategySkeleton:
    """The decision process of the world; errors as `build_skeleton`.

    A world that decides nothing has one choice in each state.

    Raises:
        InputError: a reachable state in which the world may do nothing.
    """
    known, fresh, depth = Known(), np.unique(scene.starts), 0
    parts: list[tuple[Codes, Codes, Ints, Ints]] = []
    while len(fresh):
        known.add(fresh)
        watch(scene, known, depth, len(fresh))
        choices = _choices_of(scene, fresh)
        parts += choices
        fresh = known.unknown_among(np.unique(np.concatenate([following.ravel() for _, following, _, _ in choices])))
        depth += 1
    owners, following, moved, decided = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(owners, kind="stable")
    states, owner = np.unique(owners[order], return_inverse=True)
    numbers = np.searchsorted(states, following[order].ravel()).reshape(following.shape)
    valuations = scene.space.valuations(states)
    ended = scene.ended(valuations, len(states))
    of_rows = {name: value[owner] for name, value in valuations.items()}
    channel, row = scene.channel_at(of_rows, ended[owner], moved[order])
    skeleton = Skeleton(
        scene.system,
        scene.environment,
        MappingProxyType(valuations),
        np.zeros(len(states), dtype=np.int64),
        np.searchsorted(states, scene.starts),
        ended,
        channel,
        *merged_transitions(numbers, row, ended[owner]),
        table=digest_of(scene, valuations, numbers) if scene.planner.is_foreign else "",
    )
    starts = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(states)))])
    done, name = np.unique(np.stack([decided, moved], axis=1)[order], axis=0, return_inverse=True)
    names = tuple({} if choice < 0 else scene.world.told(choice, row) for choice, row in done.tolist())
    return StrategySkeleton(starts.astype(np.int64), skeleton, names, name.ravel())


def _choices_of(scene: Scene, states: Codes) -> list[tuple[Codes, Codes, Ints, Ints]]:
    """For each thing that the world may do: the states in which it may, where each observation and outcome leads
    from there, the row of `World.chances`, and the number of what it decides, -1 where all is over."""
    world, values = scene.world, scene.space.valuations(states)
    ended = scene.ended(values, len(states))
    over = states[ended]
    nothing = np.zeros(len(over), dtype=np.int64)
    choices = [(over, np.repeat(over[:, None], scene.width, axis=1), nothing, nothing - 1)]
    going = np.flatnonzero(~ended)
    may = world.admissible({name: value[going] for name, value in values.items()}, len(going))
    for choice in range(len(world.choices)):
        at = going[may[:, choice]]
        there = {name: value[at] for name, value in values.items()}
        moved = steps(world, scene.space, scene.planner, scene.observations, states[at], there, choice)
        for drawn in world.distributions(there, len(at), choice).T:
            here = np.flatnonzero(drawn >= 0)
            around = {name: value[here] for name, value in there.items()}
            led = where_possible(scene, moved[here], around, drawn[here])
            nowhere = led == scene.space.nowhere
            if nowhere.any():
                raise no_valid_step(scene, nowhere, {**around, **_decided(scene, choice, len(here))})
            choices.append((states[at[here]], led, drawn[here], np.full(len(here), choice)))
    return choices


def _decided(scene: Scene, choice: int, count: int) -> dict[str, Ints]:
    return {name: np.full(count, value) for name, value in scene.world.choices[choice].items()}
