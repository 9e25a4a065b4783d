"""A scene: a system with its planner in one true environment, before anything about behaviour is known.

It fixes what skeletons and strategies have in common: the state space, the initial and the terminal states, what
the planner can be told, and the channel that tells it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.confusion import ConfusionMatrices
from verifier.confusion.matrices import Label
from verifier.errors import InputError, LimitError, UsageError, unknown_name
from verifier.expressions import evaluate
from verifier.expressions.syntax import Node
from verifier.systems.behaviour import classes_asked
from verifier.systems.channel import Channel, make_channel, possible_observations
from verifier.systems.model import EMPTY_CLASS, PlacedObject, Planner, System
from verifier.systems.space import StateSpace, truth

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

BYTES_PER_STATE = 120
BYTES_PER_TRANSITION = 140
BYTES_PER_MOVE = 40
"""Peak memory while a skeleton is built, with margin: per state; per state and observation (and run followed); per
state and combination of inputs, for planners that choose among all moves. `tests/benchmarks` measures it."""


@dataclass(frozen=True)
class Limits:
    """What may be built: states before reachability, and bytes of memory at the peak of building."""

    states: int = 50_000_000
    memory_bytes: int = 16 * 2**30


@dataclass(frozen=True)
class SkeletonOptions:
    """What a skeleton depends on beside system, planner, environment and matrices.

    Attributes:
        formula: what a synthesis planner without a formula of its own is computed from.
        initial: a condition that narrows the model's initial states.
        false_alarms: a policy of `FALSE_ALARM_POLICIES`.
        endless: leave terminal states out: runs never end.
        limits: when to refuse.
    """

    formula: Node | None = None
    initial: Node | None = None
    false_alarms: str = "as_counted"
    endless: bool = False
    limits: Limits = Limits()


@dataclass(frozen=True)
class Scene:
    """See the module.

    Attributes:
        objects: what stands in the environment.
        formula: what a synthesis planner is computed from, or None.
        observations: what the planner can be told, the empty set first.
        values: variable name -> (n,) int64 value in each state of the space.
        terminal: (n,) bool.
        starts: (m,) int64 the initial states, increasing.
    """

    system: System
    planner: Planner
    environment: str
    objects: tuple[PlacedObject, ...]
    matrices: ConfusionMatrices
    options: SkeletonOptions
    formula: Node | None
    observations: tuple[Label, ...]
    space: StateSpace
    values: Mapping[str, Ints]
    terminal: Mask
    starts: Ints

    def channel_at(self, valuations: Mapping[str, Ints], ended: Mask) -> tuple[Channel, Ints]:
        """The channel for some states, and the channel row of each.

        Args:
            valuations: variable name -> (k,) int64 value in each of the states.
            ended: (k,) bool, the states in which nobody looks any more.

        Raises:
            InputError: a distance that no bin holds.
            UsageError: a class without a matrix column.
        """
        bins = _object_bins(self, valuations, ended)
        rows, row_of_state = _distinct_rows(bins, ended, self.matrices.bin_count)
        channel = make_channel(
            self.matrices, true_classes(self.objects), rows, self.observations, self.options.false_alarms
        )
        return channel, row_of_state


def true_classes(objects: tuple[PlacedObject, ...]) -> tuple[str | None, ...]:
    """The class of each object; None for a place where nothing stands."""
    return tuple(None if each.class_name == EMPTY_CLASS else each.class_name for each in objects)


def set_scene(
    system: System, planner: Planner, environment: str, matrices: ConfusionMatrices, options: SkeletonOptions
) -> Scene:
    """Put a scene together; see `build_skeleton` for arguments and errors."""
    objects = system.environment(environment)
    formula = planner.formula if planner.formula is not None else options.formula
    asked = classes_asked(system, planner, formula)
    for name in sorted(asked - matrices.classes):
        kind = f"class, asked about by planner '{planner.name}',"
        raise UsageError(": ".join(unknown_name(kind, name, matrices.classes)))
    observations = possible_observations(matrices.labels, true_classes(objects), asked, options.false_alarms)
    space = StateSpace(system.variables)
    _refuse_if_too_large(space, system, planner, len(observations), 1, options.limits)
    values = space.valuations()
    terminal = np.zeros(space.size, dtype=bool)
    if not options.endless:
        terminal = np.array(space.where(system.resolve(system.terminal)))
    starts = _initial_states(system, space, environment, options.initial, values)
    if planner.kind == "runs":
        _refuse_if_too_large(space, system, planner, len(observations), len(starts), options.limits)
    return Scene(
        system,
        planner,
        environment,
        objects,
        matrices,
        options,
        formula,
        observations,
        space,
        values,
        terminal,
        starts,
    )


def _refuse_if_too_large(
    space: StateSpace, system: System, planner: Planner, observations: int, runs: int, limits: Limits
) -> None:
    states = space.size * runs
    if states > limits.states:
        ranges = " x ".join(f"{each.name}: {each.size}" for each in space.variables)
        followed = f" x runs: {runs}" if runs > 1 else ""
        raise LimitError(
            f"the model has {states} states ({ranges}{followed}); the limit is {limits.states}",
            hint="narrow the ranges of the variables or the initial states, or raise --max-states",
        )
    moves = 0 if planner.kind == "rules" else StateSpace(system.inputs).size
    per_state = BYTES_PER_STATE + BYTES_PER_TRANSITION * observations
    needed = states * per_state + space.size * moves * BYTES_PER_MOVE
    if needed > limits.memory_bytes:
        raise LimitError(
            f"planner '{planner.name}' with {observations} observations on {states} states needs about "
            f"{needed / 2**30:.1f} GiB; the limit is {limits.memory_bytes / 2**30:.1f} GiB",
            hint="narrow the ranges of the variables, or raise --max-memory",
        )


def _initial_states(
    system: System, space: StateSpace, environment: str, narrowed: Node | None, values: Mapping[str, Ints]
) -> Ints:
    initial = np.array(space.where(system.resolve(system.initial)))
    if narrowed is not None:
        initial &= truth(system.in_environment(narrowed, environment), values, space.size)
    starts = np.flatnonzero(initial)
    if not len(starts):
        raise UsageError("no state satisfies the initial condition of the model and the spec")
    return starts


def _object_bins(scene: Scene, valuations: Mapping[str, Ints], ended: Mask) -> Ints:
    """(k, objects) bin of each object in each state; 0 in terminal states, where nobody looks."""
    n, matrices = len(ended), scene.matrices
    bins = np.zeros((n, len(scene.objects)), dtype=np.int64)
    for j, placed in enumerate(scene.objects):
        distance = np.broadcast_to(np.asarray(evaluate(placed.distance_m, valuations), dtype=float), (n,))
        found = matrices.bins_of(distance)
        outside = np.flatnonzero((found < 0) & ~ended)
        if len(outside):
            state = int(outside[0])
            raise InputError(
                f"in state {state_text(valuations, state)} the {placed.class_name} is {distance[state]:g} m away, "
                f"and the bins cover {matrices.edges_m[0]:g} to {matrices.edges_m[-1]:g} m",
                hint="add an overflow bin to the matrices, change the model's constants, or use --canonical",
            )
        bins[:, j] = np.where(ended, 0, found)
    return bins


def state_text(valuations: Mapping[str, Ints], state: int) -> str:
    """A state for people: `x = 3, v = 0`."""
    return ", ".join(f"{name} = {value[state]}" for name, value in valuations.items())


def _distinct_rows(bins: Ints, ended: Mask, bin_count: int) -> tuple[Ints, Ints]:
    """The distinct combinations of bins that occur, (rows, objects), and the row of each state."""
    looked_from = np.flatnonzero(~ended)
    if len(looked_from):  # terminal states need no row; they borrow one that occurs
        bins = np.where(ended[:, None], bins[looked_from[0]], bins)
    code = np.zeros(len(bins), dtype=np.int64)
    for column in bins.T:
        code = code * bin_count + column
    _, sample, row = np.unique(code, return_index=True, return_inverse=True)
    return bins[sample], row.astype(np.int64)
