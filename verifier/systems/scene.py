"""A scene: a system with its planner in one true environment, before anything about behaviour is known.

It fixes what skeletons and strategies have in common: the state space, the initial states, which states end the
episode, what the planner can be told, and the channel that tells it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from verifier.base.arrays import Ints, Mask
from verifier.base.errors import InputError, LimitError, NoAnswerError, Place, UsageError, memory_text, unknown_name
from verifier.language.expressions import Source, evaluate, exact_number
from verifier.language.expressions.syntax import Name, Node, Operation, names_in
from verifier.perception.confusion import ConfusionMatrices
from verifier.perception.confusion.matrices import Label
from verifier.systems.behaviour import classes_asked
from verifier.systems.channel import Channel, make_channel, possible_observations
from verifier.systems.distinct import distinct
from verifier.systems.model import BoundedVariable, System
from verifier.systems.model_parts import EMPTY_CLASS, PlacedObject, Planner
from verifier.systems.settings import Limits
from verifier.systems.space import Codes, StateSpace, truth

BYTES_PER_STATE = 120
BYTES_PER_VALUE = 20
BYTES_PER_TRANSITION = 80
BYTES_PER_MOVE = 48
"""Peak memory while a skeleton is built, as measured and a fifth more: per state; per state and variable; per state
and observation (with a run followed: per state, run and observation); and, for planners that choose among all moves,
per state and combination of inputs. Inadmissible inputs and states out of reach cost less, which is not known before.
"""
MOST_STATES = 2**31 - 2
"""Graph searches number states with 32 bits."""
MOST_CANDIDATES = 10**7
"""Valuations among which initial states are looked for."""
LARGEST_INPUT_COUNT = 10_000
"""Combinations of inputs that a planner may choose among."""


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
        starts: (m,) codes of the initial states, increasing.
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
    starts: Codes

    @cached_property
    def values(self) -> Mapping[str, Ints]:
        """Variable name -> (n,) int64 value in each state of the whole space."""
        return self.space.valuations()

    @cached_property
    def terminal(self) -> Mask:
        """(n,) bool, which states of the whole space end the episode."""
        return self.ended(self.values, self.space.size)

    def ended(self, values: Mapping[str, Ints], count: int) -> Mask:
        """(count,) bool, which of these valuations end the episode."""
        if self.options.endless:
            return np.zeros(count, dtype=bool)
        return np.array(truth(self.system.terminal, values, count, self.system.model.at("terminal")))

    def channel_at(self, valuations: Mapping[str, Ints], ended: Mask) -> tuple[Channel, Ints]:
        """The channel for some states, and the channel row of each.

        Args:
            valuations: variable name -> (k,) int64 value in each of the states.
            ended: (k,) bool, the states in which nobody looks any more.

        Raises:
            InputError: a distance that no bin holds, or a class without a matrix column.
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
        message, hint = unknown_name(kind, name, matrices.classes)
        raise InputError(message, Place(system.model.file), hint)
    observations = possible_observations(matrices.labels, true_classes(objects), asked, options.false_alarms)
    space = StateSpace(system.variables)
    if planner.kind != "rules":
        _refuse_if_too_large(space, system, planner, len(observations), 1, options.limits)
    starts = _initial_states(system, space, environment, options.initial)
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
        starts,
    )


def _refuse_if_too_large(
    space: StateSpace, system: System, planner: Planner, observations: int, runs: int, limits: Limits
) -> None:
    place, states = Place(system.model.file), space.size * runs
    limit = min(limits.states, MOST_STATES)
    if states > limit:
        ranges = " x ".join(f"{each.name}: {each.size}" for each in space.variables)
        followed = f" x runs: {runs}" if runs > 1 else ""
        raise NoAnswerError(
            f"the model has {states} states ({ranges}{followed}); the limit is {limit}",
            place,
            hint="narrow the ranges of the variables or the initial states, or raise --max-states",
        )
    moves = _choices(system, planner)
    if moves > LARGEST_INPUT_COUNT:
        raise LimitError(
            f"planner '{planner.name}' would choose among {moves} combinations of inputs; at most "
            f"{LARGEST_INPUT_COUNT} are tried",
            place,
            hint="narrow the ranges of the inputs",
        )
    needed = predicted_bytes(system, planner, observations, runs)
    if needed > limits.memory_bytes:
        raise NoAnswerError(
            f"planner '{planner.name}' with {observations} observations on {states} states needs about "
            f"{memory_text(needed)}; the limit is {memory_text(limits.memory_bytes)}",
            place,
            hint="narrow the ranges of the variables, or raise --max-memory",
        )


def predicted_bytes(system: System, planner: Planner, observations: int, runs: int = 1) -> int:
    """Bytes of memory needed at most while a skeleton is built, whatever the structure turns out to be."""
    space = StateSpace(system.variables)
    per_state = BYTES_PER_STATE + BYTES_PER_VALUE * len(space.variables)
    choosing = per_state + BYTES_PER_MOVE * _choices(system, planner)  # over before the transitions are made
    return space.size * max(choosing, runs * (per_state + BYTES_PER_TRANSITION * observations))


def reached_bytes(scene: Scene, states: int) -> int:
    """Bytes of memory needed at most while a skeleton of so many states is built for a planner of rules."""
    values, transitions = len(scene.space.variables), len(scene.observations)
    return states * (BYTES_PER_STATE + BYTES_PER_VALUE * values + BYTES_PER_TRANSITION * transitions)


def _choices(system: System, planner: Planner) -> int:
    """Combinations of inputs that the planner chooses among."""
    return 0 if planner.kind == "rules" else StateSpace(system.inputs).size


def _initial_states(system: System, space: StateSpace, environment: str, narrowed: Node | None) -> Codes:
    """(m,) codes of the initial states, increasing: what the conditions leave of the box that they narrow."""
    conditions: list[tuple[Node, Source | None]] = [(system.initial, system.model.at("initial"))]
    if narrowed is not None:
        conditions.append((system.in_environment(narrowed, environment), None))
    box = _box(space, [condition for condition, _ in conditions])
    candidates = StateSpace(box).size if all(each.low <= each.high for each in box) else 0
    if candidates > MOST_CANDIDATES:
        widest = max(box, key=lambda each: each.size)
        raise system.model.at("initial").error(
            f"initial leaves {candidates:.2g} candidates; fix variables: {widest.name} = {widest.low}", None
        )
    if candidates:
        values = StateSpace(box).valuations()
        initial = np.ones(candidates, dtype=bool)
        for condition, source in conditions:
            initial &= truth(condition, values, candidates, source)
        if initial.any():
            return space.number({name: value[initial] for name, value in values.items()}, int(initial.sum()))
    raise UsageError("no state satisfies the initial condition of the model and the spec")


def _box(space: StateSpace, conditions: list[Node]) -> tuple[BoundedVariable, ...]:
    """The ranges that conjuncts `x = e`, `x <= e`, `x >= e` with constant e leave; a low end may exceed the high."""
    ends = {each.name: (each.low, each.high) for each in space.variables}
    pending = list(conditions)
    while pending:
        node = pending.pop()
        if not isinstance(node, Operation):
            continue
        left, right = node.operands[0], node.operands[-1]
        if node.operator == "&":
            pending += (left, right)
        for name, end, operator in ((left, right, node.operator), (right, left, _MIRRORED.get(node.operator))):
            if isinstance(name, Name) and operator in _MIRRORED and not names_in(end):
                value, (low, high) = exact_number(end, {}), ends[name.name]
                if operator in ("=", ">="):
                    low = max(low, math.ceil(value))
                if operator in ("=", "<="):
                    high = min(high, math.floor(value))
                ends[name.name] = low, high
    return tuple(BoundedVariable(name, low, high) for name, (low, high) in ends.items())


_MIRRORED = {"=": "=", "<=": ">=", ">=": "<="}


def _object_bins(scene: Scene, valuations: Mapping[str, Ints], ended: Mask) -> Ints:
    """(k, objects) bin of each object in each state; 0 in terminal states, where nobody looks."""
    matrices, looking = scene.matrices, np.flatnonzero(~ended)
    there = {name: value[looking] for name, value in valuations.items()}
    bins = np.zeros((len(ended), len(scene.objects)), dtype=np.int64)
    for j, placed in enumerate(scene.objects):
        source = scene.system.model.at(f"{scene.system.model.object_path(scene.environment, j)}.distance_m")
        distance = np.asarray(evaluate(placed.distance_m, there, source), dtype=float)
        distance = np.broadcast_to(distance, looking.shape)
        found = matrices.bins_of(distance)
        outside = np.flatnonzero(found < 0)
        if len(outside):
            state = int(outside[0])
            what = "place" if placed.class_name == EMPTY_CLASS else placed.class_name
            message = (
                f"in state {state_text(there, state)} the {what} is {distance[state]:g} m away, "
                f"and the bins cover {matrices.edges_m[0]:g} to {matrices.edges_m[-1]:g} m"
            )
            hint = "add an overflow bin to the matrices, change the model's constants, or use --canonical"
            if distance[state] < 0:
                hint = "a distance is not negative: write abs(...)"
            raise source.error(message, None, hint)
        bins[looking, j] = found
    return bins


def state_text(valuations: Mapping[str, Ints], state: int) -> str:
    """A state for people: `x = 3, v = 0`."""
    return ", ".join(f"{name} = {value[state]}" for name, value in valuations.items())


def _distinct_rows(bins: Ints, ended: Mask, bin_count: int) -> tuple[Ints, Ints]:
    """The distinct combinations of bins that occur, (rows, objects), and the row of each state."""
    looked_from = np.flatnonzero(~ended)
    if len(looked_from):  # terminal states need no row; they borrow one that occurs
        bins = np.where(ended[:, None], bins[looked_from[0]], bins)
    row, count = np.zeros(len(bins), dtype=np.int64), 1
    for column in bins.T:  # numbered anew for every object, so that no code outgrows an integer
        found, row = distinct(row * bin_count + column, count * bin_count)
        count = len(found)
    sample = np.empty(count, dtype=np.int64)
    sample[row] = np.arange(len(bins))
    return bins[sample], row
