"""A system without its planner: every state that some inputs lead to, and where all inputs lead.

Several environments stand beside each other: whoever chooses the inputs sees the state and the reports, not the
environment. So states, dynamics and ends must be the same in all of them; where they are not, or planners do not see
all of the state, each stands alone (`is_seen`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.errors import LimitError, NoAnswerError, Place, UsageError
from verifier.base.numbers import memory_text
from verifier.language.expressions.syntax import Call, Name, Node
from verifier.perception.confusion import ConfusionMatrices
from verifier.perception.confusion.matrices import Label
from verifier.systems.behaviour import input_choices
from verifier.systems.declarations import hidden_names
from verifier.systems.exploration import Known, watch
from verifier.systems.model import System
from verifier.systems.model_parts import Planner, Rule
from verifier.systems.scene import LARGEST_INPUT_COUNT, Scene, SkeletonOptions, set_scene
from verifier.systems.space import Codes, StateSpace, successors, truth

BYTES_PER_MOVE = 40
"""Peak memory for each state and combination of inputs."""


@dataclass(frozen=True, eq=False)
class OpenSystem:
    """See the module.

    Attributes:
        system: of any of the environments.
        valuations: variable -> (n,) int64 value in each state.
        starts: (m,) int64 the initial states.
        ended: (n,) bool, which states end the episode.
        following: (n, choices, outcomes) int64, where each combination of inputs leads with each outcome of what the
            world decides and draws; -1 where the inputs are not admissible. States that end the episode lead to
            themselves. Every other state has a choice.
        chances: (n, moves, outcomes) how likely each outcome is with each thing that the world may do, the last of
            these repeated; what cannot be leads where something else does.
        observations: what can be reported.
        scenes: of each environment.
    """

    system: System
    environments: tuple[str, ...]
    valuations: Mapping[str, Ints]
    starts: Ints
    ended: Mask
    following: Ints
    chances: Floats
    observations: tuple[Label, ...]
    scenes: tuple[Scene, ...]

    @property
    def state_count(self) -> int:
        """Number of states, n."""
        return len(self.ended)

    def reported(self, rates: Floats) -> Floats:
        """(environments, n, observations) how likely each observation is in each state, for (bins, predicted, true)
        rates; 0 in states that end the episode."""
        weights = np.zeros((len(self.scenes), self.state_count, len(self.observations)))
        for of_environment, scene in zip(weights, self.scenes, strict=True):
            channel, row = scene.channel_at(self.valuations, self.ended)
            where = [self.observations.index(observation) for observation in channel.observations]
            of_environment[:, where] = channel.told_weights(rates)[row]
            of_environment[self.ended] = 0
        return weights

    def mask_of(self, condition: Node, environment: str) -> Mask:
        """(n,) where a condition of a spec holds in an environment."""
        system = next(scene.system for scene in self.scenes if scene.environment == environment)
        return np.array(truth(system.in_environment(condition, environment), self.valuations, self.state_count))


def open_system(
    systems: Mapping[str, System], matrices: ConfusionMatrices, options: SkeletonOptions = SkeletonOptions()
) -> OpenSystem:
    """What can be reached whatever is set.

    The reports say what any planner of the model asks, and which classes are seen at all. Where some rule of the
    model lets the state stay, that is a choice everywhere.

    Args:
        systems: environment -> the system there; where there are several, they are seen.
        matrices: for bins and labels only.
        options: as for `build_skeleton`.

    Raises:
        UsageError: runs begin or the world draws otherwise in another environment, or nothing is admissible for
            long enough.
        InputError: as `build_skeleton`.
        NoAnswerError: more states or memory than the limits allow.
    """
    first = next(iter(systems.values()))
    asking = _asking_everything(first, matrices)
    scenes = tuple(set_scene(system, asking, name, matrices, options) for name, system in systems.items())
    if any(not np.array_equal(scene.starts, scenes[0].starts) for scene in scenes):
        raise UsageError(f"{NOT_TOLD}, and runs begin in different states there")
    told = {observation for scene in scenes for observation in scene.observations}
    observations = tuple(sorted(told, key=lambda label: (len(label), sorted(label))))
    states, following = _reached(scenes[0])
    valuations = scenes[0].space.valuations(states)
    ended = scenes[0].ended(valuations, len(states))
    chances, *others = (_chances(scene, valuations, ended) for scene in scenes)
    if any(not np.array_equal(chances, array) for array in others):
        raise UsageError(f"{NOT_TOLD}, and 'world' differs there: name one of them (--env NAME)")
    return OpenSystem(
        first,
        tuple(systems),
        valuations,
        np.searchsorted(states, scenes[0].starts),
        ended,
        following,
        chances.astype(np.float64),
        observations,
        scenes,
    )


NOT_TOLD = "a planner that sees only reports does not know in which environment it is"


def is_seen(systems: Mapping[str, System]) -> bool:
    """Whether planners see all of the state, the world decides nothing, and all environments move alike."""
    first = next(iter(systems.values()))
    behind = hidden_names(first.model)
    parts = ["variables", "inputs", "dynamics", "admissible", "initial", "terminal"]
    parts += ["constants"] if first.model.world else []
    alike = all(getattr(first, what) == getattr(other, what) for other in systems.values() for what in parts)
    return (
        alike and not first.model.decides and not any(variable.name in behind for variable in first.model.variables)
    )


def _chances(scene: Scene, valuations: Mapping[str, Ints], ended: Mask) -> NDArray[Any]:
    """(n, moves, outcomes) fractions, as `OpenSystem.chances`; the first outcome where all is over."""
    world, going = scene.world, np.flatnonzero(~ended)
    there = {name: value[going] for name, value in valuations.items()}
    may, width = world.admissible(there, len(going)), len(world.outcomes)
    rows = [np.where(may[:, [k]], world.distributions(there, len(going), k), -1) for k in range(len(world.choices))]
    decided = np.concatenate([np.full(row.shape[1], k) for k, row in enumerate(rows)])
    joined = np.concatenate(rows, axis=1)
    order = np.argsort(joined < 0, axis=1, kind="stable")  # what it may do first
    moves = (joined >= 0).sum(axis=1)
    chances = np.full((len(ended), int(moves.max(initial=1)), len(world.choices) * width), Fraction(0), dtype=object)
    chances[:, :, 0] = Fraction(1)
    for move in range(chances.shape[1]):
        at = order[np.arange(len(going)), np.minimum(move, moves - 1)]
        own = np.full((len(going), len(world.choices), width), Fraction(0), dtype=object)
        own[np.arange(len(going)), decided[at]] = world.chances[joined[np.arange(len(going)), at]]
        chances[going, move] = own.reshape(len(going), chances.shape[2])
    return chances


def _asking_everything(system: System, matrices: ConfusionMatrices) -> Planner:
    """A planner that asks what any planner of the model asks, of every frame, and about every class."""
    nodes: list[Node] = [Call("sees", (Name(name),)) for name in sorted(matrices.classes)]
    for planner in system.planners.values():
        nodes += [*planner.nodes, *(tracker.of for tracker in planner.trackers)]
    return Planner("any", "rules", tuple(Rule(node, {}) for node in nodes), reading="all")


def _choices(system: System) -> list[Mapping[str, int] | None]:
    """Every combination of inputs; None for staying, where some rule of the model allows that."""
    count = StateSpace(system.inputs).size
    if count > LARGEST_INPUT_COUNT:
        message = (
            f"a planner may choose among {count} combinations of inputs; at most {LARGEST_INPUT_COUNT} are tried"
        )
        raise LimitError(message, Place(system.model.file), hint="narrow the ranges of the inputs")
    rules = (rule for planner in system.planners.values() for rule in (*planner.rules, *planner.commands))
    stays: list[Mapping[str, int] | None] = [None] if any(rule.inputs is None for rule in rules) else []
    return [*input_choices(system, "lowest"), *stays]


def _reached(scene: Scene) -> tuple[Codes, Ints]:
    """The codes of all states that some inputs lead to, increasing, and `following`."""
    system, space, choices = scene.system, scene.space, _choices(scene.system)
    outcomes = [{**decided, **drawn} for decided in scene.world.choices for drawn in scene.world.outcomes]
    known, fresh, depth = Known(), np.unique(scene.starts), 0
    blocks: list[tuple[Codes, Codes]] = []
    while len(fresh):
        known.add(fresh)
        watch(scene, known, depth, len(fresh))
        _refuse_memory(scene, known.count * len(choices) * len(outcomes))
        following = np.tile(fresh[:, None, None], (1, len(choices), len(outcomes)))
        values = space.valuations(fresh)
        going = np.flatnonzero(~scene.ended(values, len(fresh)))
        there = {name: value[going] for name, value in values.items()}
        may = scene.world.admissible(there, len(going))
        possible = [scene.world.possible(there, len(going), k) & may[:, [k]] for k in range(len(scene.world.choices))]
        can = np.concatenate(possible, axis=1)
        some = np.arange(len(going)), can.argmax(axis=1)
        for number, inputs in enumerate(choices):
            if inputs is not None:
                drawn = [
                    {name: np.full(len(going), value) for name, value in outcome.items()} for outcome in outcomes
                ]
                led = np.stack(
                    [
                        successors(system, space, {**there, **own}, inputs, len(going), possible=possible)
                        for own, possible in zip(drawn, can.T, strict=True)
                    ],
                    axis=1,
                )
                led = np.where(can, led, led[some][:, None])
                led[(led == space.nowhere).any(axis=1)] = space.nowhere
                following[going, number] = led
        blocks.append((fresh, following))
        met = np.unique(following)
        fresh, depth = known.unknown_among(met[met != space.nowhere]), depth + 1
    states = np.concatenate([states for states, _ in blocks])
    order = np.argsort(states)
    led = np.concatenate([following for _, following in blocks])[order]
    states = states[order]
    numbers = np.where(led == space.nowhere, -1, np.searchsorted(states, led.ravel()).reshape(led.shape))
    return states, _without_dead_ends(numbers, np.searchsorted(states, scene.starts))


def _without_dead_ends(following: Ints, starts: Ints) -> Ints:
    """Without the choices that lead to where, sooner or later, nothing is admissible."""
    while True:
        dead = np.append((following < 0).all(axis=(1, 2)), True)  # the last one answers for -1
        closed = np.where(dead[following].any(axis=2, keepdims=True), -1, following)
        if np.array_equal(closed, following):
            break
        following = closed
    if dead[starts].any():
        raise UsageError("from some initial state every choice of inputs ends where none is admissible")
    return following


def _refuse_memory(scene: Scene, moves: int) -> None:
    needed, limit = moves * BYTES_PER_MOVE, scene.options.limits.memory_bytes
    if needed > limit:
        raise NoAnswerError(
            f"what all inputs lead to needs about {memory_text(needed)}; the limit is {memory_text(limit)}",
            Place(scene.system.model.file),
            hint="narrow the ranges of the inputs, or raise --max-memory",
        )
