"""The states that can be reached, found from the initial states on, and where each observation leads from them.

The frontier is explored a block at a time, vectorised; terminal states lead nowhere else. Ranges are types, not a
size: of 3.5e9 valuations only those that are met are looked at. Where the space is so small that looking at all of it
at once is cheaper than going on step by step, that is done instead; a fault in a state that nothing reaches is none.

States come out in the order of their valuations, however they were found.

Why a planner has no valid step somewhere: the rule that holds there, and what is wrong with what it sets.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from verifier.base.arrays import Ints, Mask
from verifier.base.errors import InputError, NoAnswerError, Place
from verifier.base.graphs import reachable
from verifier.base.numbers import memory_text
from verifier.language.expressions import evaluate, resolve_sees
from verifier.language.expressions.syntax import Node
from verifier.perception.confusion.matrices import Label
from verifier.systems.behaviour import Behaviour, asked, steps, view_of
from verifier.systems.model import BoundedVariable
from verifier.systems.observation import remembered
from verifier.systems.scene import MOST_STATES, Scene, reached_bytes
from verifier.systems.space import Codes, whole_in_range
from verifier.systems.standing import state_text

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
            reached = _all_at_once(scene)
            if reached is not None:
                return reached
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
        can = scene.world.can_occur[distribution][:, None, :]
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
            f"planner '{scene.planner.name}' with {len(scene.observations)} observations on {count} reachable states "
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
    reached = reachable_part(scene, Behaviour(moved[np.newaxis], np.zeros(len(scene.starts), dtype=np.int64)))
    return None if len(reached.states) > scene.options.limits.states else reached


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
    begun: Mask = np.zeros(len(following), dtype=bool)
    begun[first] = True
    graph = len(following), sources, following[following >= 0]
    kept = np.flatnonzero(begun if begun.all() else reachable(*graph, begun))
    number = np.full(len(following) + 1, -1, dtype=np.int64)  # the last one answers for -1
    number[kept] = np.arange(len(kept))
    after = number[following[kept]]
    if np.any(after < 0):
        raise no_valid_step(scene, after < 0, {name: value[kept % size] for name, value in scene.values.items()})
    return Reached(kept % size, kept // size, after, number[first])


_HINT = "add or correct a rule for this case, or make the state terminal"


def no_valid_step(scene: Scene, nowhere: Mask, valuations: Mapping[str, Ints]) -> InputError:
    """The error for the first state without a next state under some observation.

    Args:
        scene: for its planner, which decides there by its rules.
        nowhere: (k, observations * outcomes) bool, no next state.
        valuations: variable name -> (k,) int64.
    """
    index = int(np.flatnonzero(nowhere.any(axis=1))[0])
    number, outcome = divmod(int(np.flatnonzero(nowhere[index])[0]), len(scene.world.outcomes))
    told, drawn = scene.observations[number], scene.world.outcomes[outcome]
    valuations = {**valuations, **{name: np.full(index + 1, value) for name, value in drawn.items()}}
    state = {name: int(value[index]) for name, value in valuations.items()}
    case = f"in state {state_text(valuations, index)}"
    error = _reason(scene, told, state, case)
    if isinstance(error, InputError):
        return error
    path, reason = error
    source, report = scene.system.model.at(path), ", ".join(sorted(told))
    if not path.startswith(("planners", "inputs")):
        return source.error(f"{case} {reason}", None, _HINT)
    if path.endswith(".rules"):
        return source.error(f"no rule applies {case} on report {{{report}}}, and {reason}", None, _HINT)
    return source.error(
        f"planner '{scene.planner.name}' has no valid step {case} when the detector reports {report or 'nothing'}: "
        f"{reason}",
        None,
        _HINT,
    )


def _reason(scene: Scene, told: Label, state: Mapping[str, int], case: str) -> tuple[str, str] | InputError:
    """(dotted key, what is wrong there) for one state and observation, or the error itself."""
    system, planner = scene.system, scene.planner
    there = {name: np.array([number]) for name, number in state.items()}
    view = view_of(system, planner, told, there, 1)
    scope = {name: column.tolist()[0] for name, column in view.scope.items()}

    def value(node: Node) -> int | float | bool:
        number: int | float | bool = evaluate(system.resolve(resolve_sees(node, view.told)), scope)
        return number

    own: dict[str, int | float | bool] = {}
    rule, decides, source, missing = None, False, None, ""
    if planner.decider is not None:
        answers = asked(system, planner, view)
        (which, chosen), *_ = planner.decider.decided([answers])
        source, missing = planner.decider.explained({text: answer.tolist()[0] for text, answer in answers.items()})
        decides = bool(which[0])
        own = {name: column.tolist()[0] for name, column in chosen.items()} if decides else {}
    holding = [command for command in planner.commands if value(command.when)]
    if len(holding) > 1:
        lines = " and ".join(str(system.model.at(rule.path).place(None).line) for rule in holding[:2])
        message = f"{case} the guards of lines {lines} both hold on report {{{', '.join(sorted(told))}}}"
        return system.model.at(holding[1].path).error(message, None, "in every case one command decides")
    if not decides:
        rule = next((rule for rule in (*holding, *planner.rules) if value(rule.when)), None)
        own = {name: value(node) for name, node in (rule.inputs or {}).items()} if rule else {}
    if rule is None and not decides and planner.is_foreign and not planner.rules:
        hint = f"{_HINT}; rules = [...] of the planner decide where the file does not"
        if source is None:
            message = f"no guard holds {case} on report {{{', '.join(sorted(told))}}}"
            return InputError(message, Place(system.model.at(planner.commands[0].path).file), hint)
        return source.error(missing, None, hint)
    source = source if decides else None
    unset = [
        variable.name
        for variable in system.inputs
        if variable.name not in system.defaults and variable.name not in own
    ]
    if unset and not decides and rule is None:
        return f"planners.{planner.name}.rules", f"'{unset[0]}' has no default"
    inputs = {variable.name: own.get(variable.name) for variable in system.inputs}
    inputs |= {name: value(system.defaults[name]) for name, number in inputs.items() if number is None}
    place = rule.path if rule else f"planners.{planner.name}"
    for variable in (*system.inputs, *(variable for variable, _ in remembered(system, planner))):
        assigned = inputs.get(variable.name, own.get(variable.name))
        if assigned is not None and not whole_in_range(assigned, variable)[1]:
            message = f"{variable.name} = {assigned:g}, {_wanted(variable)}"
            if source is not None and variable.name in own:
                return source.error(message, None)
            return (
                f"{place}.set.{variable.name}" if variable.name in own else f"inputs.{variable.name}.default",
                message,
            )
    whole = {name: int(number) for name, number in inputs.items() if number is not None}
    taken = ", ".join(f"{name} = {number}" for name, number in whole.items()) or "this step"
    if not evaluate(system.admissible, {**state, **whole}):
        if source is not None:
            return source.error(f"{case} {taken} is not admissible", None, _HINT)
        return place, f"{taken} is not admissible"
    for variable in system.variables:
        moved = evaluate(system.dynamics[variable.name], {**state, **whole})
        if not whole_in_range(moved, variable)[1]:
            beyond = not variable.low <= moved <= variable.high
            wanted = f"outside {variable.low}..{variable.high}" if beyond else _wanted(variable)
            return f"variables.{variable.name}.next", f"the next '{variable.name}' is {moved:g}, {wanted}"
    raise ValueError(f"planner '{planner.name}' has a valid step in state {state}")


def _wanted(variable: BoundedVariable) -> str:
    return f"expected a whole number in {variable.low}..{variable.high}"
