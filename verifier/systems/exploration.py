"""The states that can be reached, found from the initial states on, and where each observation leads from them.

The frontier is explored a block at a time, vectorised; terminal states lead nowhere else. Ranges are types, not a
size: of 3.5e9 valuations only those that are met are looked at. Where the space is so small that looking at all of it
at once is cheaper than going on step by step, that is done instead; a fault in a state that nothing reaches is none.

States come out in the order of their valuations, however they were found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from verifier.base.arrays import Ints, Mask
from verifier.base.errors import InputError, NoAnswerError, Place, memory_text
from verifier.systems.behaviour import Behaviour, steps
from verifier.systems.diagnosis import no_valid_step
from verifier.systems.reachability import reachable
from verifier.systems.scene import MOST_STATES, Scene, reached_bytes
from verifier.systems.space import Codes

_BLOCK_COST = 2**13
"""Exploring a block of the frontier costs as much beforehand as looking at so many more states."""


@dataclass(frozen=True)
class Reached:
    """States and their successors.

    Attributes:
        states: (n,) codes, increasing within each memory value.
        memory: (n,) int64 memory value.
        following: (n, observations) int64 position of the next state.
        starts: (m,) int64 positions of the initial states.
    """

    states: Codes
    memory: Ints
    following: Ints
    starts: Ints


def explored(scene: Scene) -> Reached:
    """What a planner that decides by its rules can reach.

    Raises:
        InputError: a reachable state in which the planner has no valid step, or something cannot be evaluated.
        NoAnswerError: more states or memory than the limits allow.
    """
    size, width, looked_at = scene.space.size, scene.width, 0
    at_once = (
        scene.planner.kind != "function"
        and size <= MOST_STATES
        and reached_bytes(scene, size) <= scene.options.limits.memory_bytes
    )
    blocks: list[tuple[Codes, Codes]] = []
    for states, following in _frontiers(scene):
        blocks.append((states, following))
        looked_at += _BLOCK_COST + len(states)
        if at_once and looked_at > size:
            found = _all_at_once(scene)
            if found is not None:
                return found
            at_once = False
    states = np.concatenate([states for states, _ in blocks])
    order = np.argsort(states)
    states = states[order]
    following = np.concatenate([following for _, following in blocks])[order]
    numbers = np.searchsorted(states, following.ravel()).reshape(-1, width)
    starts = np.searchsorted(states, scene.starts)
    return Reached(states, np.zeros(len(states), dtype=np.int64), numbers, starts)


def _frontiers(scene: Scene) -> Iterator[tuple[Codes, Codes]]:
    """Blocks of states met for the first time, and the codes of their next states."""
    space, known, fresh, depth = scene.space, Known(), np.unique(scene.starts), 0
    while len(fresh):
        known.add(fresh)
        watch(scene, known, depth, len(fresh))
        values = space.valuations(fresh)
        moving = np.flatnonzero(~scene.ended(values, len(fresh)))
        following = np.repeat(fresh[:, None], scene.width, axis=1)
        if len(moving):
            there = {name: value[moving] for name, value in values.items()}
            moved = _led(scene, fresh[moving], there)
            nowhere = moved == space.nowhere
            if nowhere.any():
                raise no_valid_step(scene, nowhere, there)
            following[moving] = moved
        yield fresh, following
        fresh, depth = known.unknown_among(np.unique(following)), depth + 1


def _led(scene: Scene, states: Codes, values: Mapping[str, Ints]) -> Codes:
    """(k, observations * outcomes) where each observation and outcome leads from states that are not terminal."""
    moved = steps(scene.world, scene.space, scene.planner, scene.observations, states, values)
    return where_possible(scene, moved, values, scene.world.distributions(values, len(states))[:, 0])


def where_possible(scene: Scene, moved: Codes, values: Mapping[str, Ints], distribution: Ints) -> Codes:
    """(k, observations * outcomes) codes in which what is impossible leads where something possible leads.

    An outcome without probability leads as the first that has one; a report about an object that is not there as the
    first that can be made, whatever the matrices say.

    Args:
        moved: where each observation and outcome leads from the states with these values.
        values: (k,) of each variable.
        distribution: (k,) row of `World.chances`.
    """
    count = len(moved)
    shape = count, len(scene.observations), len(scene.world.outcomes)
    if count and shape[2] > 1:
        can = (scene.world.chances > 0)[distribution][:, None, :]
        moved = _as_the_first(moved.reshape(shape), np.broadcast_to(can, shape), 2).reshape(count, -1)
    if count and scene.comes_and_goes:
        channel, row = scene.channel_at(values, np.zeros(count, dtype=bool), distribution)
        can = channel.possible[row]
        moved = _as_the_first(moved.reshape(shape), np.broadcast_to(can[:, :, None], shape), 1).reshape(count, -1)
    return moved


def _as_the_first(moved: Codes, can: Mask, axis: int) -> Codes:
    """The codes with those that cannot be replaced by the first along an axis that can."""
    first = np.take_along_axis(moved, np.expand_dims(can.argmax(axis=axis), axis), axis)
    led: Codes = np.where(can, moved, first)
    return led


class Known:
    """The codes met so far, in a few sorted parts of falling size, so that adding and looking up stay cheap."""

    def __init__(self) -> None:
        self.parts: list[Codes] = []

    def add(self, codes: Codes) -> None:
        """Sorted codes, none of them known."""
        self.parts.append(codes)
        while len(self.parts) > 1 and len(self.parts[-2]) <= 2 * len(self.parts[-1]):
            self.parts.append(np.sort(np.concatenate([self.parts.pop(), self.parts.pop()]), kind="stable"))

    def unknown_among(self, codes: Codes) -> Codes:
        """Those of the sorted codes that are not known."""
        for part in self.parts:
            place = np.minimum(np.searchsorted(part, codes), len(part) - 1)
            codes = codes[part[place] != codes]
        return codes

    @property
    def count(self) -> int:
        """How many codes are known."""
        return sum(map(len, self.parts))


def watch(scene: Scene, known: Known, depth: int, fresh: int) -> None:
    """Refuse when what is reached outgrows the limits."""
    limits, count, place = scene.options.limits, known.count, Place(scene.system.model.file)
    where = f"(stopped at depth {depth}; {fresh} new in the last step)"
    most = min(limits.states, MOST_STATES)
    if count > most:
        values = scene.space.valuations(np.concatenate(known.parts))
        sizes = sorted(((len(np.unique(value)), name) for name, value in values.items()), key=lambda pair: -pair[0])
        widest = ", ".join(f"{name} {size}" for size, name in sizes[:3])
        raise NoAnswerError(
            f"more than {most} states are reachable {where}",
            place,
            hint=f"the variables with most values: {widest}; narrow them or where runs begin, or raise --max-states",
        )
    needed = reached_bytes(scene, count)
    if needed > limits.memory_bytes:
        raise NoAnswerError(
            f"planner '{scene.planner.name}' with {scene.width} observations on {count} reachable states "
            f"needs about {memory_text(needed)}; the limit is {memory_text(limits.memory_bytes)} {where}",
            place,
            hint="narrow the ranges of the variables or the initial states, or raise --max-memory",
        )


def _all_at_once(scene: Scene) -> Reached | None:
    """The same from one look at the whole space; None where some valuation cannot be evaluated, or limits are met."""
    every, going = np.arange(scene.space.size), np.flatnonzero(~scene.terminal)
    moved = np.repeat(every[:, None], scene.width, axis=1)
    try:
        moved[going] = _led(scene, going, {name: value[going] for name, value in scene.values.items()})
    except InputError:
        return None
    found = reachable_part(scene, Behaviour(moved[np.newaxis], np.zeros(len(scene.starts), dtype=np.int64)))
    return None if len(found.states) > scene.options.limits.states else found


def reachable_part(scene: Scene, behaviour: Behaviour) -> Reached:
    """The part of a behaviour on the whole space that an initial state reaches, renumbered.

    Raises:
        InputError: a reachable state in which the planner has no valid step.
    """
    memories, size, width = behaviour.following.shape
    offset = (np.arange(memories) * size)[:, None, None]
    following = np.where(behaviour.following >= 0, behaviour.following + offset, -1).reshape(-1, width)
    ended = np.tile(scene.terminal, memories)
    following[ended] = np.flatnonzero(ended)[:, None]
    first = behaviour.memory_of_start * size + scene.starts
    sources, _ = np.nonzero(following >= 0)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=len(following)))])
    begun: Mask = np.zeros(len(following), dtype=bool)
    begun[first] = True
    kept = np.flatnonzero(begun if begun.all() else reachable(indptr, following[following >= 0], begun))
    number = np.full(len(following) + 1, -1, dtype=np.int64)  # the last one answers for -1
    number[kept] = np.arange(len(kept))
    after = number[following[kept]]
    if np.any(after < 0):
        raise no_valid_step(scene, after < 0, {name: value[kept % size] for name, value in scene.values.items()})
    return Reached(kept % size, kept // size, after, number[first])
