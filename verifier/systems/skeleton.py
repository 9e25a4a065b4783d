"""The skeleton: the structure of the Markov chain, computed once for a system, a planner and an environment.

Every transition is "planner K, in state s, on observation y, goes to K(s, y)", and its weight is the chance of y
(Badithela et al. 2022, Algorithm 3 with eqs. 6 and 9):

    P[s, s'] = sum over y with K(s, y) = s' of Pr(y | objects, their bins in s)

The structure is the same for every matrix with the same bins and labels. Many transitions also share the very same
sum: it depends only on the bins (a row of the channel) and on the set of observations that lead to s'. The
skeleton keeps those few distinct sums (`entry_row`, `entry_observations`) and, for each transition, which of them
it has (`entry`). Filling the chain for a new matrix is therefore a tiny matrix product and one gather.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.confusion import ConfusionMatrices
from verifier.confusion.matrices import Label
from verifier.errors import InputError, LimitError, Place, UsageError, unknown_name
from verifier.expressions import evaluate
from verifier.expressions.syntax import Node
from verifier.systems.behaviour import Behaviour, classes_asked, rules_behaviour, runs_behaviour
from verifier.systems.channel import Channel, make_channel, possible_observations
from verifier.systems.model import EMPTY_CLASS, Planner, System
from verifier.systems.reachability import reachable
from verifier.systems.space import StateSpace, truth
from verifier.systems.synthesis import synthesised_behaviour

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

BYTES_PER_STATE = 120
BYTES_PER_STATE_AND_OBSERVATION = 140
"""Peak memory while a skeleton is built, measured with margin; see tests/benchmarks."""


@dataclass(frozen=True)
class Limits:
    """What may be built: states before reachability, and bytes of memory at the peak of building."""

    states: int = 50_000_000
    memory_bytes: int = 16 * 2**30


@dataclass(frozen=True)
class Skeleton:
    """States, transitions and the sum behind each transition's probability.

    Attributes:
        system: the system it was built for.
        environment: name of the true environment.
        valuations: variable name -> (n,) int64 value in each state.
        memory: (n,) int64, which initial state's runs the planner follows; 0 for planners without memory.
        starts: (m,) int64 the initial states, in the order of their valuations.
        terminal: (n,) bool, the states in which the episode is over.
        indptr, indices: (n + 1,), (nnz,) int64 transitions in compressed sparse rows, successors increasing.
        channel: the draws behind each channel row.
        entry: (nnz,) int64, which distinct sum each transition has; the last entry is the constant 1.
        entry_row: (entries - 1,) int64 channel row of each distinct sum.
        entry_observations: (entries - 1, observations) bool, the observations it sums over.
    """

    system: System
    environment: str
    valuations: Mapping[str, Ints]
    memory: Ints
    starts: Ints
    terminal: Mask
    indptr: Ints
    indices: Ints
    channel: Channel
    entry: Ints
    entry_row: Ints
    entry_observations: Mask

    @property
    def state_count(self) -> int:
        """Number of states, n."""
        return len(self.indptr) - 1

    def entry_values(self, rates: NDArray[Any]) -> NDArray[Any]:
        """(..., entries) value of each distinct sum, for (..., bins, predicted, true) rates."""
        weights = self.channel.weights(rates)
        if rates.dtype == object:
            sums = [sum(weights[row, mask], start=0) for row, mask in zip(self.entry_row, self.entry_observations)]
            return np.array([*sums, 1], dtype=object)
        chosen = weights[..., self.entry_row, :]
        sums = np.where(self.entry_observations, chosen, 0).sum(axis=-1)
        return np.concatenate([sums, np.ones((*sums.shape[:-1], 1))], axis=-1)

    def fill(self, rates: NDArray[Any]) -> NDArray[Any]:
        """(..., nnz) probability of each transition, for (..., bins, predicted, true) rates.

        Probabilities of 0 occur: whether an edge exists may depend on the matrix.
        """
        return self.entry_values(rates)[..., self.entry]

    def mask_of(self, condition: Node) -> Mask:
        """(n,) where a condition of the spec holds: over variables, labels, constants and true classes."""
        grounded = self.system.in_environment(condition, self.environment)
        return np.array(truth(grounded, self.valuations, self.state_count))


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


def build_skeleton(
    system: System,
    planner: Planner,
    environment: str,
    matrices: ConfusionMatrices,
    options: SkeletonOptions = SkeletonOptions(),
) -> Skeleton:
    """Build the skeleton, vectorised over states.

    Args:
        system: the system with its constants.
        planner: one of its planners, with any options set.
        environment: name of the true environment.
        matrices: for bins and labels only; any matrices with the same ones can fill the skeleton later.
        options: see `SkeletonOptions`.

    Raises:
        LimitError: more states or memory than `options.limits`, predicted before anything is allocated.
        InputError: a reachable state in which the planner has no valid step, or a distance that no bin holds.
        UsageError: no initial state, or a class without a matrix column.
    """
    objects = system.environment(environment)
    formula = planner.formula if planner.formula is not None else options.formula
    asked = classes_asked(system, planner, formula)
    for name in sorted(asked - matrices.classes):
        raise UsageError(
            ": ".join(unknown_name(f"class, asked about by planner '{planner.name}',", name, matrices.classes))
        )
    classes = tuple(None if each.class_name == EMPTY_CLASS else each.class_name for each in objects)
    observations = possible_observations(matrices.labels, classes, asked, options.false_alarms)
    space = StateSpace(system.variables)
    _refuse_if_too_large(space, planner, len(observations), options.limits)

    values = space.valuations()
    terminal = np.zeros(space.size, dtype=bool) if options.endless else space.where(system.resolve(system.terminal))
    starts = _initial_states(system, space, environment, options.initial, values)
    behaviour = _behaviour(system, space, planner, formula, observations, starts, np.array(terminal))

    following, memory, states, first = _reachable_part(space, behaviour, starts, np.array(terminal))
    there = {name: value[states] for name, value in values.items()}
    ended = np.array(terminal)[states]
    if np.any(following[~ended] < 0):
        raise _no_valid_step(system, planner, observations, following, ended, there)

    bins = _object_bins(system, objects, matrices, there, ended)
    rows, row_of_state = _distinct_rows(bins, ended, matrices.bin_count)
    channel = make_channel(matrices, classes, rows, observations, options.false_alarms)
    indptr, indices, entry, entry_row, entry_observations = _transitions(following, row_of_state, ended)
    return Skeleton(
        system,
        environment,
        MappingProxyType(there),
        memory,
        first,
        ended,
        indptr,
        indices,
        channel,
        entry,
        entry_row,
        entry_observations,
    )


def _refuse_if_too_large(space: StateSpace, planner: Planner, observations: int, limits: Limits) -> None:
    size = space.size
    if size > limits.states:
        ranges = " x ".join(f"{each.name}: {each.size}" for each in space.variables)
        raise LimitError(
            f"the model has {size} states ({ranges}); the limit is {limits.states}",
            hint="narrow the ranges of the variables, or raise --max-states",
        )
    needed = size * (BYTES_PER_STATE + BYTES_PER_STATE_AND_OBSERVATION * observations)
    if needed > limits.memory_bytes:
        raise LimitError(
            f"planner '{planner.name}' with {observations} observations on {size} states needs about "
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


def _behaviour(
    system: System,
    space: StateSpace,
    planner: Planner,
    formula: Node | None,
    observations: tuple[Label, ...],
    starts: Ints,
    terminal: Mask,
) -> Behaviour:
    if planner.kind == "runs":
        return runs_behaviour(system, space, planner, observations, starts, terminal)
    if planner.kind == "synthesis":
        if formula is None:
            raise UsageError(
                f"planner '{planner.name}' is synthesised from the requirements with a lower target "
                "(P >= p or P > p), and the spec has none"
            )
        following = synthesised_behaviour(system, space, planner, formula, observations, terminal)
    else:
        following = rules_behaviour(system, space, planner, observations)
    return Behaviour(following[np.newaxis], np.zeros(len(starts), dtype=np.int64))


def _reachable_part(
    space: StateSpace, behaviour: Behaviour, starts: Ints, terminal: Mask
) -> tuple[Ints, Ints, Ints, Ints]:
    """The states that an initial state reaches, renumbered.

    Returns:
        following: (n, observations) next states in the new numbers; -1 where there is none.
        memory: (n,) memory value.
        states: (n,) number in the state space.
        first: (m,) new number of each initial state.
    """
    memories, size, width = behaviour.following.shape
    offset = (np.arange(memories) * size)[:, None, None]
    following = np.where(behaviour.following >= 0, behaviour.following + offset, -1).reshape(-1, width)
    ended = np.tile(terminal, memories)
    following[ended] = np.flatnonzero(ended)[:, None]
    first = behaviour.memory_of_start * size + starts
    sources, _ = np.nonzero(following >= 0)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=len(following)))])
    begun = np.zeros(len(following), dtype=bool)
    begun[first] = True
    kept = np.flatnonzero(begun if begun.all() else reachable(indptr, following[following >= 0], begun))
    number = np.full(len(following) + 1, -1, dtype=np.int64)  # the last one answers for -1
    number[kept] = np.arange(len(kept))
    return number[following[kept]], kept // size, kept % size, number[first]


def _no_valid_step(
    system: System,
    planner: Planner,
    observations: tuple[Label, ...],
    following: Ints,
    ended: Mask,
    valuations: Mapping[str, Ints],
) -> InputError:
    state = int(np.flatnonzero((following < 0).any(axis=1) & ~ended)[0])
    told = observations[int(np.flatnonzero(following[state] < 0)[0])]
    where = ", ".join(f"{name} = {value[state]}" for name, value in valuations.items())
    report = ", ".join(sorted(told)) or "nothing"
    return InputError(
        f"planner '{planner.name}' has no valid step in state {where} when the detector reports {report}: "
        "no rule holds there, or the inputs or the next values are out of range or not whole numbers",
        Place(system.model.file, path=f"planners.{planner.name}"),
        "add a rule for this case, or make the state terminal",
    )


def _object_bins(
    system: System,
    objects: tuple[Any, ...],
    matrices: ConfusionMatrices,
    valuations: Mapping[str, Ints],
    ended: Mask,
) -> Ints:
    """(n, objects) bin of each object in each state; 0 in terminal states, where nobody looks."""
    n = len(ended)
    bins = np.zeros((n, len(objects)), dtype=np.int64)
    for j, placed in enumerate(objects):
        distance = np.broadcast_to(np.asarray(evaluate(placed.distance_m, valuations), dtype=float), (n,))
        found = matrices.bins_of(distance)
        outside = np.flatnonzero((found < 0) & ~ended)
        if len(outside):
            state = int(outside[0])
            where = ", ".join(f"{name} = {value[state]}" for name, value in valuations.items())
            raise InputError(
                f"in state {where} the {placed.class_name} is {distance[state]:g} m away, and the bins cover "
                f"{matrices.edges_m[0]:g} to {matrices.edges_m[-1]:g} m",
                hint="add an overflow bin to the matrices, change the model's constants, or use --canonical",
            )
        bins[:, j] = np.where(ended, 0, found)
    return bins


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


def _transitions(following: Ints, row_of_state: Ints, ended: Mask) -> tuple[Ints, Ints, Ints, Ints, Mask]:
    """Merge the observations that share a successor; see `Skeleton` for what is returned."""
    n, width = following.shape
    order = np.argsort(following, axis=1, kind="stable")
    successor = np.take_along_axis(following, order, axis=1)
    new = np.ones((n, width), dtype=bool)
    new[:, 1:] = successor[:, 1:] != successor[:, :-1]
    begins = np.flatnonzero(new)
    told = np.bitwise_or.reduceat(np.left_shift(np.int64(1), order).ravel(), begins)
    indices = successor.ravel()[begins]
    counts = new.sum(axis=1)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    sources = np.repeat(np.arange(n), counts)
    patterns, pattern = np.unique(told, return_inverse=True)
    code = row_of_state[sources] * len(patterns) + pattern
    constant = ended[sources]
    occurs = np.zeros((int(row_of_state.max()) + 1) * len(patterns), dtype=bool)
    occurs[code[~constant]] = True
    number = np.cumsum(occurs) - 1
    distinct = np.flatnonzero(occurs)
    entry = np.where(constant, len(distinct), number[code])
    entry_row, entry_pattern = np.divmod(distinct, len(patterns))
    bits = (patterns[entry_pattern][:, None] >> np.arange(width)) & 1
    return indptr, indices, entry, entry_row, bits.astype(bool)
