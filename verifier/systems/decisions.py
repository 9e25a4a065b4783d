"""Worlds that decide: the decision process whose choices are what the world may do in each state.

In each state the world decides first, then draws; what it decides, and which extreme point it takes of probabilities
that are only known up to intervals, is one choice of the state. Otherwise it is built as a skeleton.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from verifier.base.arrays import Ints
from verifier.perception.confusion import ConfusionMatrices
from verifier.systems.behaviour import steps
from verifier.systems.diagnosis import no_valid_step
from verifier.systems.exploration import Known, watch, where_possible
from verifier.systems.model import System
from verifier.systems.model_parts import Planner
from verifier.systems.scene import Scene, SkeletonOptions, set_scene
from verifier.systems.skeleton import Skeleton, digest_of, merged_transitions
from verifier.systems.space import Codes
from verifier.systems.strategies import StrategySkeleton


def build_decisions(
    system: System,
    planner: Planner,
    environment: str,
    matrices: ConfusionMatrices,
    options: SkeletonOptions = SkeletonOptions(),
) -> StrategySkeleton:
    """The decision process of the world; arguments and errors as `build_skeleton`.

    A world that decides nothing has one choice in each state.

    Raises:
        InputError: a reachable state in which the world may do nothing.
    """
    scene = set_scene(system, planner, environment, matrices, options)
    known, fresh, depth = Known(), np.unique(scene.starts), 0
    parts: list[tuple[Codes, Codes, Ints, Ints]] = []
    while len(fresh):
        known.add(fresh)
        watch(scene, known, depth, len(fresh))
        found = _choices_of(scene, fresh)
        parts += found
        fresh = known.unknown_among(np.unique(np.concatenate([following.ravel() for _, following, _, _ in found])))
        depth += 1
    owners, following, moved, decided = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(owners, kind="stable")
    states, owner = np.unique(owners[order], return_inverse=True)
    numbers = np.searchsorted(states, following[order].ravel()).reshape(following.shape)
    valuations = scene.space.valuations(states)
    ended = scene.ended(valuations, len(states))
    of_rows = {name: value[owner] for name, value in valuations.items()}
    channel, row = scene.channel_at(of_rows, ended[owner], moved[order])
    skeleton = Skeleton(
        system,
        environment,
        MappingProxyType(valuations),
        np.zeros(len(states), dtype=np.int64),
        np.searchsorted(states, scene.starts),
        ended,
        channel,
        *merged_transitions(numbers, row, ended[owner]),
        table=digest_of(scene, valuations, numbers) if planner.is_foreign else "",
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
    found = [(over, np.repeat(over[:, None], scene.width, axis=1), nothing, nothing - 1)]
    going = np.flatnonzero(~ended)
    may = world.admissible({name: value[going] for name, value in values.items()}, len(going))
    for choice in range(len(world.choices)):
        at = going[may[:, choice]]
        there = {name: value[at] for name, value in values.items()}
        moved = steps(world, scene.space, scene.planner, scene.observations, states[at], there, choice)
        for rows in world.distributions(there, len(at), choice).T:
            here = np.flatnonzero(rows >= 0)
            around = {name: value[here] for name, value in there.items()}
            led = where_possible(scene, moved[here], around, rows[here])
            nowhere = led == scene.space.nowhere
            if nowhere.any():
                raise no_valid_step(scene, nowhere, {**around, **_decided(scene, choice, len(here))})
            found.append((states[at[here]], led, rows[here], np.full(len(here), choice)))
    return found


def _decided(scene: Scene, choice: int, count: int) -> dict[str, Ints]:
    return {name: np.full(count, value) for name, value in scene.world.choices[choice].items()}
