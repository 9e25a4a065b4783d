"""What a planner does: the next state for every state and observation.

A planner may carry a memory that never changes during an episode: a planner of kind `runs` follows the runs of the
initial state it started in, so there is one memory value per initial state.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Ints, Mask
from verifier.language.expressions import evaluate, resolve_sees
from verifier.language.expressions.syntax import TRUE, Node, names_in
from verifier.perception.confusion.matrices import Label
from verifier.systems.memory import frames_read, in_frames, tracked, what_rules_read
from verifier.systems.model import BoundedVariable, System
from verifier.systems.model_parts import EMPTY_CLASS, Planner, Rule, Run
from verifier.systems.observation import Questions
from verifier.systems.reachability import reachable, rows
from verifier.systems.space import Codes, StateSpace, successors, truth
from verifier.systems.world import World

DEFAULTS = (Rule(TRUE, {}),)
"""The rule that holds where no other does, if every input has a default."""


@dataclass(frozen=True)
class Behaviour:
    """The next state for every memory value, state and observation.

    Attributes:
        following: (memories, n, observations) int64, state number; -1 where the planner gives no valid step.
        memory_of_start: (m,) int64, the memory value with which each initial state starts.
    """

    following: Ints
    memory_of_start: Ints


def questions_of(system: System, planner: Planner, formula: Node | None) -> Questions:
    """What a planner asks about the detector's reports."""
    rules: tuple[Rule | Run, ...] = (*planner.rules, *planner.runs)
    nodes = [node for rule in rules for node in (rule.when, *(rule.inputs or {}).values())]
    nodes += [tracker.of for tracker in planner.trackers]
    asked: frozenset[str] = frozenset()
    if planner.kind == "synthesis" and formula is not None:
        names = names_in(formula)
        classes = system.model.environment_classes()
        asked = classes if EMPTY_CLASS in names else names & classes
    return Questions.of((system.resolve(node) for node in nodes), asked)


def rules_behaviour(system: System, space: StateSpace, planner: Planner, observations: tuple[Label, ...]) -> Ints:
    """(n, observations) int64 next state of every state of the space, as `steps`."""
    return steps(World(system), space, planner, observations, np.arange(space.size), space.valuations())


def steps(
    world: World,
    space: StateSpace,
    planner: Planner,
    observations: tuple[Label, ...],
    states: Codes,
    values: Mapping[str, Ints],
    choice: int = 0,
) -> Codes:
    """The next states by the first rule that holds, else with every input at its default.

    Args:
        world: the system, and what its world draws.
        space, planner, observations: what is asked.
        states: (k,) codes; `values` are their valuations.
        choice: what the world decides, a number in `World.choices`.

    Returns:
        (k, observations * outcomes of the world) codes, the outcomes of an observation side by side; `nowhere` where
        neither is possible, the step is invalid, or the outcome impossible.
    """
    system = world.system
    following = np.repeat(states[:, None], len(observations) * len(world.outcomes), axis=1)
    following[:] = space.nowhere
    possible = world.possible(values, len(states), choice)
    for number, observation in enumerate(observations):
        columns = slice(number * len(world.outcomes), (number + 1) * len(world.outcomes))
        undecided = np.ones(len(states), dtype=bool)
        seen = in_frames(observation, frames_read(planner, system.model.frames))
        after = tracked(system, planner, seen, values, len(states))
        told, scope = what_rules_read(planner, seen), {**values, **after}
        for rule in (*planner.rules, *DEFAULTS[: len(system.defaults) == len(system.inputs)]):
            where = np.flatnonzero(undecided & _applies(system, rule, told, scope, len(states)))
            undecided[where] = False
            if len(where):
                decided = world.choices[choice]
                drawn = [({**decided, **each}, possible[where, k]) for k, each in enumerate(world.outcomes)]
                following[where, columns] = step_by(system, space, rule, told, states, where, scope, after, drawn)
    return following


def _applies(system: System, rule: Rule | Run, observation: Label, values: Mapping[str, Any], count: int) -> Mask:
    """(count,) the valuations in which the condition of a rule or run holds."""
    path = f"{rule.path}.when"
    when = system.resolve(resolve_sees(rule.when, observation), path)
    return truth(when, values, count, system.model.at(path))


def step_by(
    system: System,
    space: StateSpace,
    rule: Rule | Run,
    observation: Label,
    states: Codes,
    where: Ints,
    values: Mapping[str, Any],
    tracked: Mapping[str, Any] = MappingProxyType({}),
    drawn: Sequence[tuple[Mapping[str, Any], Mask | bool]] = (({}, True),),
) -> Codes:
    """(k, outcomes) next state of the states at the positions `where` under one rule, for each outcome of what the
    world draws and where it is possible; `nowhere` where the step is invalid or the outcome impossible."""
    if rule.inputs is None and not tracked:
        return states[where, None]
    there = values if len(where) == len(states) else {name: value[where] for name, value in values.items()}
    after = {name: value[where] for name, value in tracked.items()}
    if rule.inputs is None:
        return space.number({**there, **after}, len(where))[:, None]
    chosen = what_is_set(system, rule, observation, there)
    inputs = {each.name: chosen.pop(each.name) for each in system.inputs}
    moving = {each.name for each in system.variables}
    kept = {each.name: there[each.name] for each in space.variables if each.name not in moving}
    new = {**kept, **chosen, **after}
    found = [successors(system, space, {**there, **each}, inputs, len(where), new, may) for each, may in drawn]
    return np.stack(found, axis=1)


def what_is_set(system: System, rule: Rule | Run, observation: Label, values: Mapping[str, Any]) -> dict[str, Any]:
    """What a rule with inputs sets where it applies: every input, those not named to their defaults, and memory."""
    found = {}
    for name, node in (rule.inputs or {}).items():
        path = f"{rule.path}.set.{name}"
        found[name] = evaluate(system.resolve(resolve_sees(node, observation), path), values, system.model.at(path))
    for each in system.inputs:
        if each.name not in found:
            source = system.model.at(f"inputs.{each.name}.default")
            found[each.name] = evaluate(system.defaults[each.name], values, source)
    return found


def input_choices(system: System, pick: str) -> Iterator[dict[str, int]]:
    """Every combination of inputs, in the order in which `pick` prefers them; the first input counts most."""
    ranges = [sorted(range(each.low, each.high + 1), key=partial(_preference, each, pick)) for each in system.inputs]
    for combination in itertools.product(*ranges):
        yield {each.name: value for each, value in zip(system.inputs, combination, strict=True)}


def _preference(variable: BoundedVariable, pick: str, value: int) -> int:
    if pick == "lsb_first":
        width = (variable.high - variable.low).bit_length()
        return int(format(value - variable.low, f"0{width}b")[::-1], 2)
    return -value if pick == "highest" else value


@dataclass(frozen=True)
class Moves:
    """All moves of a system: every input a planner could set, in every state.

    Attributes:
        following: (choices, n) int32 next state under each combination of inputs, best pick first; -1 where
            the inputs are not admissible there. Terminal states stay where they are under every choice.
    """

    following: NDArray[np.int32]

    @classmethod
    def of(cls, system: System, space: StateSpace, pick: str, terminal: Mask) -> Moves:
        """Compute the moves; the order of the choices is the one `pick` prefers."""
        values, choices = space.valuations(), list(input_choices(system, pick))
        following = np.empty((len(choices), space.size), dtype=np.int32)
        for row, inputs in zip(following, choices, strict=True):
            row[:] = successors(system, space, values, inputs, space.size)
            row[terminal] = np.flatnonzero(terminal)
        return cls(following)

    def edges(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Source and target of every move."""
        sources = [np.flatnonzero(row >= 0).astype(np.int32) for row in self.following]
        targets = [row[source] for row, source in zip(self.following, sources, strict=True)]
        return np.concatenate(sources), np.concatenate(targets)

    def leading_to(self, goal: Mask) -> Mask:
        """(n,) the states from which some moves lead to `goal`, the goal itself included."""
        sources, targets = self.edges()
        return reachable(*rows(len(goal), targets, sources), goal)

    def between(self, sources: Mask, targets: Mask) -> Moves:
        """Only the moves from `sources` into `targets`."""
        kept = np.full_like(self.following, -1)
        for row, out in zip(self.following, kept, strict=True):
            np.copyto(out, row, where=(row >= 0) & sources & targets[row])
        return Moves(kept)

    def best(self) -> Ints:
        """(n,) the next state of the best-picked move of each state; -1 where there is none."""
        result = np.full(self.following.shape[1], -1, dtype=np.int64)
        for row in self.following[::-1]:
            np.copyto(result, row, where=row >= 0)
        return result


def runs_behaviour(
    system: System,
    space: StateSpace,
    planner: Planner,
    observations: tuple[Label, ...],
    starts: Ints,
    terminal: Mask,
) -> Behaviour:
    """Runs followed from each initial state, and the planner's rules wherever a state lies on no run.

    The runs are fixed: a run-controller looks at the state only to find its place on the run (Badithela et al.
    2022; the published controllers are such lassos).
    """
    backup = rules_behaviour(system, space, planner, observations)
    values = space.valuations()
    following = np.broadcast_to(backup, (len(starts), *backup.shape)).copy()
    for column, observation in enumerate(observations):
        undecided = np.ones(space.size, dtype=bool)
        for run in planner.runs:
            when = _applies(system, run, observation, values, space.size)
            applies, undecided = undecided & when, undecided & ~when
            if applies.any():
                step = _run_steps(system, space, planner, run, observation, terminal)
                on_run = _states_on_runs(step, starts) & applies
                memory, state = np.nonzero(on_run & (step >= 0))
                following[memory, state, column] = step[state]
    return Behaviour(following, np.arange(len(starts)))


def _run_steps(
    system: System, space: StateSpace, planner: Planner, run: Run, observation: Label, terminal: Mask
) -> Ints:
    """(n,) the step that the run takes from each state it may pass; -1 where it does not lead on."""
    every = np.arange(space.size)
    if run.inputs is not None:
        return step_by(system, space, run, observation, every, every, space.valuations())[:, 0]
    goal, through = (
        space.where(system.resolve(node, f"{run.path}.{key}"), system.model.at(f"{run.path}.{key}"))
        for key, node in (("reach", run.reach), ("through", run.through))
    )
    passing = Moves.of(system, space, planner.pick, terminal).between(through, np.ones(space.size, dtype=bool))
    leading = passing.leading_to(goal)
    return np.where(goal, every, passing.between(leading, leading).best())


def _states_on_runs(step: Ints, starts: Ints) -> Mask:
    """(starts, n) which states lie on the run from each start.

    By doubling: once the first k states of every run are marked, k steps at a time mark the next k.
    """
    n = len(step)
    jump = np.append(step, -1)  # the last one answers for -1: a run that has ended stays so
    visited = np.zeros((len(starts), n), dtype=bool)
    visited[np.arange(len(starts)), starts] = True
    while True:
        memory, position = np.nonzero(visited)
        target = jump[position]
        fresh = (target >= 0) & ~visited[memory, target]
        if not fresh.any():
            return visited
        visited[memory[fresh], target[fresh]] = True
        jump = jump[jump]
