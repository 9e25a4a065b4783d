"""What a planner does: the next state for every state and observation.

A planner may carry a memory that never changes during an episode: a planner of kind `runs` follows the runs of the
initial state it started in, so there is one memory value per initial state.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Columns, Ints, Mask
from verifier.base.graphs import coreachable
from verifier.language.expressions import evaluate
from verifier.language.expressions.evaluation import Value
from verifier.language.expressions.syntax import TRUE, Node, names_in
from verifier.perception.confusion.matrices import Label
from verifier.systems.model import BoundedVariable, System
from verifier.systems.model_parts import EMPTY_CLASS, Planner, Rule, Run
from verifier.systems.observation import Questions, frames_read, in_frames, tracked, what_rules_read
from verifier.systems.space import Codes, StateSpace, World, successors, truth

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
    nodes = [*planner.nodes, *(tracker.of for tracker in planner.trackers)]
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
    """The next states by the decider, the command or the first rule that holds, else with every input at its default.

    Args:
        world: the system, and what its world draws.
        states: (k,) codes; `values` are their valuations.
        choice: what the world decides, a number in `World.choices`.

    Returns:
        (k, observations * outcomes of the world) codes, the outcomes of an observation side by side; `nowhere` where
        none of them is possible, several commands are, the step is invalid, or the outcome impossible.
    """
    outcomes = len(world.outcomes)
    following = np.repeat(states[:, None], len(observations) * outcomes, axis=1)
    following[:] = space.nowhere
    possible = world.possible(values, len(states), choice)
    drawn = [
        {name: np.asarray(value) for name, value in {**world.choices[choice], **draw}.items()}
        for draw in world.outcomes
    ]
    for action in actions(world.system, planner, observations, values, len(states)):
        columns = slice(action.observation * outcomes, (action.observation + 1) * outcomes)
        entries = list(zip(drawn, possible[action.where].T, strict=True))
        following[action.where, columns] = step_by(world.system, space, action, states, entries)
    return following


@dataclass(frozen=True)
class View:
    """What a planner knows in some states under one observation.

    Attributes:
        told: the facts that its conditions read.
        scope: (k,) value of each variable, of memory, and `confirmed(t)`.
        after: the trackers after this step, by variable.
        count: number of states, k.
    """

    told: Label
    scope: Columns
    after: Columns
    count: int

    def at(self, where: Ints) -> tuple[Columns, Columns]:
        """Scope and trackers of the states at these positions."""
        whole = len(where) == self.count
        there = self.scope if whole else {name: value[where] for name, value in self.scope.items()}
        return there, {name: value[where] for name, value in self.after.items()}


def view_of(system: System, planner: Planner, observation: Label, values: Mapping[str, Ints], count: int) -> View:
    """What a planner knows in some states, given by their values, under one observation."""
    seen = in_frames(observation, frames_read(planner, system.model.frames))
    after = tracked(system, planner, seen, values, count)
    return View(what_rules_read(planner, seen), {**values, **after}, after, count)


def asked(system: System, planner: Planner, view: View) -> dict[str, NDArray[Any]]:
    """(k,) value of each question of a planner's decider."""
    answers = {}
    for index, (text, (node, _)) in enumerate(planner.decider.asks.items() if planner.decider else ()):
        path = f"planners.{planner.name}.asks[{index}]"
        question, source = system.answered(node, view.told, path)
        value = evaluate(question, view.scope, source)
        answers[text] = np.broadcast_to(np.asarray(value), (view.count,))
    return answers


def where_applies(
    system: System, rule: Rule | Run, observation: Label, values: Mapping[str, Value], count: int
) -> Mask:
    """(count,) the valuations in which the condition of a rule or run holds."""
    when, source = system.answered(rule.when, observation, f"{rule.path}.when")
    return truth(when, values, count, source)


@dataclass(frozen=True)
class Action:
    """What a planner sets in some states under one observation.

    Attributes:
        where: (k,) positions of the states.
        view: what is known in all states, of which these are some.
        sets: name -> (k,) or single value of every input, and of the memory that changes; None where the state stays.
        path: dotted key of the rule; "" where none decided.
    """

    observation: int
    where: Ints
    view: View
    sets: Mapping[str, Value] | None
    path: str = ""


def actions(
    system: System, planner: Planner, observations: tuple[Label, ...], values: Mapping[str, Ints], count: int
) -> Iterator[Action]:
    """What a planner that decides by its rules or from elsewhere sets in each of some states on each observation.

    Each state occurs at most once per observation; it does not occur where nothing decides, or several commands do.

    Args:
        values: (count,) of variables, memory and trackers.
    """
    views = [view_of(system, planner, observation, values, count) for observation in observations]
    decider, defaults = planner.decider, len(system.defaults) == len(system.inputs)
    decided = decider.decided(asked(system, planner, view) for view in views) if decider else iter(())
    usual = DEFAULTS[: defaults and not (planner.is_foreign and not planner.rules)]
    for number, view in enumerate(views):
        undecided = np.ones(count, dtype=bool)
        if decider is not None:
            decides, chosen = next(decided)
            where, undecided = np.flatnonzero(decides), ~decides
            if len(where):
                own = {name: value[where] for name, value in chosen.items()}
                yield Action(number, where, view, _whole_choice(system, view.at(where)[0], own))
        times, command = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        for index, rule in enumerate(planner.commands):
            applies = where_applies(system, rule, view.told, view.scope, count)
            times, command = times + applies, np.where(applies, index, command)
        for index, rule in enumerate(planner.commands):
            where = np.flatnonzero((times == 1) & (command == index))
            if len(where):
                yield action_by(system, rule, number, view, where)
        undecided &= times == 0
        for rule in (*planner.rules, *usual):
            where = np.flatnonzero(undecided & where_applies(system, rule, view.told, view.scope, count))
            undecided[where] = False
            if len(where):
                yield action_by(system, rule, number, view, where)


def action_by(system: System, rule: Rule | Run, number: int, view: View, where: Ints) -> Action:
    """What a rule or run sets in the states at these positions; `number` is that of the observation."""
    if rule.inputs is None:
        return Action(number, where, view, None, rule.path)
    there, own = view.at(where)[0], dict[str, Value]()
    for name, node in rule.inputs.items():
        value, source = system.answered(node, view.told, f"{rule.path}.set.{name}")
        own[name] = evaluate(value, there, source)
    return Action(number, where, view, _whole_choice(system, there, own), rule.path)


def _whole_choice(system: System, there: Mapping[str, Value], own: Mapping[str, Value]) -> dict[str, Value]:
    """What is set in states of these values, with the inputs that are not named at their defaults."""
    choice = dict(own)
    for variable in system.inputs:
        if variable.name not in choice:
            source = system.model.at(f"inputs.{variable.name}.default")
            choice[variable.name] = evaluate(system.defaults[variable.name], there, source)
    return choice


def step_by(
    system: System,
    space: StateSpace,
    action: Action,
    states: Codes,
    drawn: Sequence[tuple[Columns, Mask | bool]] = (({}, True),),
) -> Codes:
    """(k, outcomes) next state of each state of an action, for each outcome of what the world draws and where it is
    possible; `nowhere` where the step is invalid or the outcome impossible."""
    where, count = action.where, len(action.where)
    if action.sets is None and not action.view.after:
        return states[where, None]
    there, after = action.view.at(where)
    if action.sets is None:
        return space.number({**there, **after}, count)[:, None]
    inputs = {variable.name: action.sets[variable.name] for variable in system.inputs}
    moving = {variable.name for variable in system.variables}
    kept = {variable.name: there[variable.name] for variable in space.variables if variable.name not in moving}
    memory = {name: np.asarray(value) for name, value in action.sets.items() if name in kept}
    new = {**kept, **memory, **after}
    outcomes = [successors(system, space, {**there, **entry}, inputs, count, new, may) for entry, may in drawn]
    return np.stack(outcomes, axis=1)


def input_choices(system: System, pick: str) -> Iterator[dict[str, int]]:
    """Every combination of inputs, in the order in which `pick` prefers them; the first input counts most."""
    ranges = [
        sorted(range(variable.low, variable.high + 1), key=partial(_preference, variable, pick))
        for variable in system.inputs
    ]
    for combination in itertools.product(*ranges):
        yield {variable.name: value for variable, value in zip(system.inputs, combination, strict=True)}


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
        return coreachable(len(goal), sources, targets, goal)

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
    system: System, space: StateSpace, planner: Planner, observations: tuple[Label, ...], starts: Ints, terminal: Mask
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
            when = where_applies(system, run, observation, values, space.size)
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
        view = View(observation, space.valuations(), {}, space.size)
        return step_by(system, space, action_by(system, run, 0, view, every), every)[:, 0]
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
