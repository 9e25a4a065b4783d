"""A scene: a system with its planner in one environment, before anything about behaviour is known.

It fixes what skeletons and strategies have in common: the state space, the initial states, which states end the
episode, what the planner can be told, and the channel that tells it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from verifier.base.arrays import Ints, Mask, numbered_rows
from verifier.base.errors import InputError, LimitError, NoAnswerError, Place, UsageError, shown, unknown_name
from verifier.base.numbers import memory_text, significant
from verifier.language.expressions import Source, exact_number, to_text
from verifier.language.expressions.syntax import FALSE, TRUE, Name, Node, Number, Operation, names_in
from verifier.perception.confusion import ConfusionMatrices
from verifier.perception.confusion.matrices import Label
from verifier.systems.behaviour import questions_of
from verifier.systems.channel import Channel, Standing, make_channel, possible_observations
from verifier.systems.declarations import VIEW_AND_PLACE
from verifier.systems.model import BoundedVariable, System
from verifier.systems.model_parts import EMPTY_CLASS, PlacedObject, Planner
from verifier.systems.observation import Frames, Questions, remembered
from verifier.systems.settings import InitialContext, Limits
from verifier.systems.space import Codes, StateSpace, World, truth
from verifier.systems.standing import edges_text, standing_in, viewed_bins

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
        false_positives: a policy of `FALSE_POSITIVE_POLICIES`.
        endless: leave terminal states out: runs never end.
        initial_context: what a detector with memory remembers at the initial states.
        limits: when to refuse.
    """

    formula: Node | None = None
    initial: Node | None = None
    false_positives: str = "as_counted"
    endless: bool = False
    initial_context: InitialContext = "start"
    limits: Limits = Limits()


@dataclass(frozen=True)
class Scene:
    """See the module.

    Attributes:
        objects: what stands in the environment.
        formula: what a synthesis planner is computed from, or None.
        questions: what the planner asks.
        observations: what the planner can be told, the empty set first.
        starts: (m,) codes of the initial states, increasing.
        world: the system, and what its world draws.
    """

    system: System
    planner: Planner
    environment: str
    objects: tuple[PlacedObject, ...]
    matrices: ConfusionMatrices
    options: SkeletonOptions
    formula: Node | None
    questions: Questions
    observations: tuple[Label, ...]
    space: StateSpace
    starts: Codes
    world: World

    @property
    def width(self) -> int:
        """How many things may happen in a step: combinations of an observation and what the world draws."""
        return len(self.observations) * len(self.world.outcomes)

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

    @property
    def comes_and_goes(self) -> bool:
        """Whether what can be reported differs from state to state."""
        viewed = self.system.field_of_view_m is not None
        return self.questions.asks_within or viewed or any(placed.when != TRUE for placed in self.objects)

    def channel_at(
        self, valuations: Mapping[str, Ints], ended: Mask, moved: Ints | None = None
    ) -> tuple[Channel, Ints]:
        """The channel for some states, and the channel row of each.

        Args:
            valuations: variable name -> (k,) int64 value in each of the states.
            ended: (k,) bool, the states in which nobody looks any more.
            moved: (k,) row of `World.chances` that the world draws with; the only one if None.

        Raises:
            InputError: a distance that no bin holds, or a class without a matrix column.
        """
        standing = standing_in(self.system, self.environment, self.matrices, valuations, ended)
        if moved is None:
            moved = np.zeros(len(ended), dtype=np.int64)
            looking = {name: value[~ended] for name, value in valuations.items()}
            moved[~ended] = self.world.distributions(looking, int(np.count_nonzero(~ended)))[:, 0]
        kept, row_of_state = _distinct_rows(standing, moved, ended)
        standing = replace(standing, what=standing.what[kept], bins=standing.bins[kept])
        frames = Frames.of(self.planner, self.system.model.frames)
        policy = self.options.false_positives
        try:
            channel = make_channel(self.matrices, standing, self.questions, self.observations, policy, frames)
        except LimitError:
            raise
        except InputError as error:
            place = self.system.model.at(f"environments.{self.environment}")
            raise place.error(error.message, None, error.hint) from None
        return channel.moved_by(self.world.chances[moved[kept]]), row_of_state


def set_scene(
    system: System,
    planner: Planner,
    environment: str,
    matrices: ConfusionMatrices,
    options: SkeletonOptions = SkeletonOptions(),
) -> Scene:
    """Put a scene together; see `build_skeleton` for arguments and errors. The matrices are whatever the context."""
    if matrices.memory is not None:
        raise UsageError(f"--memory {matrices.memory.contexts}: only single Markov chains are made with memory")
    objects = system.environment(environment)
    formula = planner.formula if planner.formula is not None else options.formula
    questions = questions_of(system, planner, formula)
    for name in sorted(questions.named - matrices.classes):
        _, hint = unknown_name("class", name, matrices.classes)
        message = f"the matrices have no class {shown(name)}"
        raise system.model.at(f"planners.{planner.name}").error(message, None, hint)
    _check_atoms(system, planner, matrices, questions)
    _check_places(system, environment, objects)
    real = [placed.name for placed in objects if placed.class_name != EMPTY_CLASS]
    places = [*(None for _ in range(len(objects) - len(real))), *viewed_bins(system, matrices)]
    frames = Frames.of(planner, system.model.frames)
    observations = possible_observations(matrices, questions, tuple(real), places, options.false_positives, frames)
    own = remembered(system, planner)
    space = StateSpace((*system.variables, *(variable for variable, _ in own)))
    if planner.chooses:
        _refuse_if_too_large(space, system, planner, len(observations), 1, options.limits)
    begun = {variable.name: value for variable, value in own}
    starts = _initial_states(system, space, environment, options.initial, begun)
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
        questions,
        observations,
        space,
        starts,
        World(system),
    )


def _check_places(system: System, environment: str, objects: tuple[PlacedObject, ...]) -> None:
    """Refuse an empty place beside a field of view, unless the constants say that it is not there."""
    for index, placed in enumerate(objects):
        placed_anyway = placed.class_name == EMPTY_CLASS and placed.when != FALSE
        if system.field_of_view_m is not None and placed_anyway:
            raise system.model.at(system.model.object_path(environment, index)).error(VIEW_AND_PLACE, None)


def _refuse_if_too_large(
    space: StateSpace, system: System, planner: Planner, observations: int, runs: int, limits: Limits
) -> None:
    place, states = Place(system.model.file), space.size * runs
    limit = min(limits.states, MOST_STATES)
    if states > limit:
        ranges = " x ".join(f"{variable.name}: {variable.size}" for variable in space.variables)
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
    values, transitions = len(scene.space.variables), scene.width
    return states * (BYTES_PER_STATE + BYTES_PER_VALUE * values + BYTES_PER_TRANSITION * transitions)


def _choices(system: System, planner: Planner) -> int:
    """Combinations of inputs that the planner chooses among."""
    return StateSpace(system.inputs).size if planner.chooses else 0


def _initial_states(
    system: System, space: StateSpace, environment: str, narrowed: Node | None, begun: Mapping[str, int]
) -> Codes:
    """(m,) codes of the initial states, increasing: what the conditions leave of the box that they narrow."""
    conditions: list[tuple[Node, Source | None]] = [(system.initial, system.model.at("initial"))]
    if narrowed is not None:
        conditions.append((system.in_environment(narrowed, environment), None))
    box = _box(system.variables, [condition for condition, _ in conditions])
    candidates = StateSpace(box).size if all(variable.low <= variable.high for variable in box) else 0
    if candidates > MOST_CANDIDATES:
        widest = max(box, key=lambda variable: variable.size)
        raise system.model.at("initial").error(
            f"initial leaves {significant(candidates, 2)} candidates; fix variables: {widest.name} = {widest.low}",
            None,
        )
    if candidates:
        values = StateSpace(box).valuations()
        initial = np.ones(candidates, dtype=bool)
        for condition, source in conditions:
            initial &= truth(condition, values, candidates, source)
        if initial.any():
            count = int(initial.sum())
            chosen = {name: value[initial] for name, value in values.items()}
            return space.number({**chosen, **{name: np.full(count, value) for name, value in begun.items()}}, count)
    own = f" in environment {environment}" * (environment in system.model.variants)
    raise UsageError(f"no state satisfies the initial condition of the model and the spec{own}")


def _box(variables: tuple[BoundedVariable, ...], conditions: list[Node]) -> tuple[BoundedVariable, ...]:
    """The ranges that conjuncts `x = e`, `x <= e`, `x >= e` with constant e leave; a low end may exceed the high."""
    ends = {variable.name: (variable.low, variable.high) for variable in variables}
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


def _check_atoms(system: System, planner: Planner, matrices: ConfusionMatrices, questions: Questions) -> None:
    """Refuse distances off the edges, and identities where a bin is reported as a whole."""
    source = system.model.at(f"planners.{planner.name}")
    for atom in sorted(questions.atoms, key=to_text):
        within = next((argument.value for argument in atom.arguments if isinstance(argument, Number)), None)
        if within is not None and float(within) not in matrices.edges_m[1:]:
            message = f"within = {float(within):g}: no bin ends there; {edges_text(matrices)}"
            raise source.error(message, None)
        if atom.function != "sees" and matrices.labelling == "proposition":
            message = f"{to_text(atom)}: proposition-labelled matrices report all objects of a bin together"
            raise source.error(message, None, "ask sees(...), or use class-labelled matrices")


def _distinct_rows(standing: Standing, moved: Ints, ended: Mask) -> tuple[Ints, Ints]:
    """A state for each distinct combination of what stands where and of how the world moves, and the number of the
    combination of each state; terminal states borrow one."""
    looking = np.flatnonzero(ended.all() | ~ended)
    there = np.stack([standing.what + 1, standing.bins], axis=2)[looking]
    number, first = numbered_rows([*there.reshape(len(looking), -1).T, moved[looking]], len(looking))
    row = np.full(len(ended), number[0])
    row[looking] = number
    return looking[first], row
