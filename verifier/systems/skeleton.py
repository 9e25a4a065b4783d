"""The skeleton: the structure of the Markov chain, computed once for a system, a planner and an environment.

Every transition is "planner K, in state s, on observation y, goes to K(s, y)", and its weight is the chance of y
(Badithela et al. 2022, Algorithm 3 with eqs. 6 and 9):

    P[s, s'] = sum over y with K(s, y) = s' of Pr(y | objects, their bins in s)

Where the world draws w, K(s, y, w) stands for K(s, y) and Pr(y | ..) Pr(w | s) for Pr(y | ..): "observation" then
means an observation together with an outcome of what the world draws, (y, w) in the column y * outcomes + w.

The structure is the same for every matrix with the same bins and labels. Many transitions also share the very same
sum: it depends only on the bins and the draws of the world (a row of the channel) and on the set of observations
that lead to s'. The skeleton keeps those few distinct sums (`entry_row`, `entry_observations`) and, for each
transition, which of them it has (`entry`). Filling the chain for a new matrix is therefore a tiny matrix product
and one gather.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import Ints, Mask, numbered
from verifier.base.errors import NoAnswerError, Place, UsageError
from verifier.language.expressions.syntax import Node
from verifier.perception.confusion import ConfusionMatrices
from verifier.systems.behaviour import Behaviour, runs_behaviour
from verifier.systems.channel import Channel
from verifier.systems.contexts import remembering
from verifier.systems.exploration import explored, reachable_part
from verifier.systems.model import System, SystemModel
from verifier.systems.model_parts import Planner
from verifier.systems.scene import Scene, SkeletonOptions, set_scene
from verifier.systems.space import truth
from verifier.systems.synthesis import synthesised_behaviour

_ROWS_AT_ONCE = 2**15
_BITS = 62
"""Observations kept in one 64-bit integer."""


@dataclass(frozen=True)
class Skeleton:
    """States, transitions and the sum behind each transition's probability.

    Attributes:
        system: the system it was built for.
        environment: name of the environment.
        valuations: variable name -> (n,) int64 value in each state.
        memory: (n,) int64, which initial state's runs the planner follows; 0 for planners without memory.
        starts: (m,) int64 the initial states, in the order of their valuations.
        terminal: (n,) bool, the states in which the episode is over.
        channel: the draws behind each channel row.
        indptr, indices: (n + 1,), (nnz,) int64 transitions in compressed sparse rows, successors increasing.
        entry: (nnz,) int64, which distinct sum each transition has; the last entry is the constant 1.
        entry_row: (entries - 1,) int64 channel row of each distinct sum.
        entry_observations: (entries - 1, observations) bool, the observations it sums over.
        start_weights: how frequent each initial state is among those that differ in contexts only; None where each of
            them counts for itself.
        forgets: whether a detector with memory begins again where others stand together, or a place is another.
        table: SHA-256 of what a planner from elsewhere does: where each observation leads in each state.
    """

    system: System
    environment: str
    valuations: Mapping[str, Ints]
    memory: Ints
    starts: Ints
    terminal: Mask
    channel: Channel
    indptr: Ints
    indices: Ints
    entry: Ints
    entry_row: Ints
    entry_observations: Mask
    table: str = ""
    start_weights: tuple[Fraction, ...] | None = None
    forgets: bool = False

    @property
    def state_count(self) -> int:
        """Number of states, n."""
        return len(self.terminal)

    def beginnings(self, names: Sequence[str]) -> tuple[tuple[dict[str, int], dict[int, Fraction]], ...]:
        """The initial states that differ in the variables of these names: valuation, and the number of each start
        with its weight."""
        columns = {name: self.valuations[name][self.starts].tolist() for name in names}
        initials = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        if self.start_weights is None:
            return tuple((initial, {k: Fraction(1)}) for k, initial in enumerate(initials))
        whole: dict[tuple[int, ...], dict[int, Fraction]] = {}
        for k, (initial, weight) in enumerate(zip(initials, self.start_weights, strict=True)):
            whole.setdefault(tuple(initial.values()), {})[k] = weight
        return tuple((dict(zip(names, values, strict=True)), parts) for values, parts in whole.items())

    def entry_values(self, rates: NDArray[Any]) -> NDArray[Any]:
        """(..., entries) value of each distinct sum, for (..., bins, predicted, true) rates."""
        weights, motion = self.channel.weights(rates), self.channel.chances(rates.dtype)
        free, drawn = ~self.depends_on_reports, self.entry_observations[:, : motion.shape[1]]
        if rates.dtype == object:
            entries = zip(self.entry_row, self.entry_observations, drawn, free, strict=True)
            sums = [sum(motion[row, w] if certain else weights[row, both]) for row, both, w, certain in entries]
            return np.array([*sums, 1], dtype=object)
        chosen = weights[..., self.entry_row, :]
        sums = np.where(self.entry_observations, chosen, 0).sum(axis=-1)
        sums[..., free] = np.where(drawn[free], motion[self.entry_row[free]], 0).sum(axis=1)
        return np.concatenate([sums, np.ones((*sums.shape[:-1], 1))], axis=-1)

    @cached_property
    def depends_on_reports(self) -> Mask:
        """(entries - 1,) bool, which sums depend on what is reported: those that an observation leads to, and another
        with the same outcome of what the world draws does not."""
        shape = len(self.entry_row), len(self.channel.observations), self.channel.outcome_count
        told = self.entry_observations.reshape(shape)
        depends: Mask = (told != told[:, :1]).any(axis=(1, 2))
        return depends

    def columns_needed(self) -> Ints:
        """(k, 2) the (bin, column) pairs whose rates the chain depends on.

        Where every observation leads to the same state, nothing depends on what is reported.
        """
        return self._columns_needed

    @cached_property
    def _columns_needed(self) -> Ints:
        return self.channel.columns_used(np.unique(self.entry_row[self.depends_on_reports]))

    def fill(self, rates: NDArray[Any]) -> NDArray[Any]:
        """(..., nnz) probability of each transition, for (..., bins, predicted, true) rates.

        Probabilities of 0 occur: whether an edge exists may depend on the matrix.
        """
        # With the transitions first in memory a gather copies whole rows.
        values = np.ascontiguousarray(np.moveaxis(self.entry_values(rates), -1, 0))
        return np.moveaxis(np.take(values, self.entry, axis=0), 0, -1)

    def mask_of(self, condition: Node) -> Mask:
        """(n,) where a condition of the spec holds: over variables, labels, constants and true classes."""
        grounded = self.system.in_environment(condition, self.environment)
        return np.array(truth(grounded, self.valuations, self.state_count))


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
        environment: name of the environment.
        matrices: for bins and labels only; any matrices with the same ones can fill the skeleton later.

    Raises:
        NoAnswerError: more states or memory than `options.limits`.
        InputError: a reachable state in which the planner has no valid step, a distance that no bin holds, or a
            class without a matrix column.
        UsageError: no initial state.
    """
    scene = set_scene(system, planner, environment, matrices.whole, options)
    if system.model.decides:
        raise world_decides(system.model)
    reached = reachable_part(scene, _chosen(scene)) if planner.chooses else explored(scene)
    valuations = scene.space.valuations(reached.states)
    ended = scene.ended(valuations, len(reached.states))
    channel, row_of_state = scene.channel_at(valuations, ended)
    table = digest_of(scene, valuations, reached.following) if planner.is_foreign else ""
    following, starts, memory, weights = reached.following, reached.starts, reached.memory, None
    forgets = False
    if matrices.memory is not None:
        nodes = remembering(matrices, reached, channel, row_of_state, ended, scene)
        valuations = {name: value[nodes.state] for name, value in valuations.items()} | nodes.valuations
        following, starts, memory, ended = nodes.following, nodes.starts, memory[nodes.state], ended[nodes.state]
        channel, row_of_state, weights, forgets = nodes.channel, nodes.row, nodes.weights, nodes.forgets
    return Skeleton(
        system,
        environment,
        MappingProxyType(valuations),
        memory,
        starts,
        ended,
        channel,
        *merged_transitions(following, row_of_state, ended),
        table=table,
        start_weights=weights,
        forgets=forgets,
    )


def digest_of(scene: Scene, valuations: Mapping[str, Ints], following: Ints) -> str:
    """SHA-256 of a planner's table, in hexadecimal: names, observations, states, and where these lead."""
    names = json.dumps([list(valuations), [sorted(observation) for observation in scene.observations]])
    digest = hashlib.sha256(names.encode())
    for column in (*valuations.values(), *following.T):
        digest.update(column.astype("<i8").tobytes())
    return digest.hexdigest()


def world_decides(model: SystemModel) -> NoAnswerError:
    """Why there is no Markov chain."""
    names = ", ".join(f"'{name}'" for name in model.decides)
    return NoAnswerError(
        f"the world decides {names}: a probability has a least and a greatest value, and there is no single chain",
        Place(model.file),
        hint="give it a probability, or ask verify run, which gives both",
    )


def _chosen(scene: Scene) -> Behaviour:
    """What a planner does that looks at all moves."""
    system, space, planner = scene.system, scene.space, scene.planner
    if planner.kind == "runs":
        return runs_behaviour(system, space, planner, scene.observations, scene.starts, scene.terminal)
    formula = synthesis_formula(scene)
    following = synthesised_behaviour(system, space, planner, formula, scene.observations, scene.terminal)
    return Behaviour(following[np.newaxis], np.zeros(len(scene.starts), dtype=np.int64))


def synthesis_formula(scene: Scene) -> Node:
    """What the scene's synthesis planner is computed from; UsageError when there is nothing."""
    if scene.formula is None:
        raise UsageError(
            f"planner '{scene.planner.name}' is synthesised from the requirements that have a target, and the spec "
            "has none"
        )
    return scene.formula


def merged_transitions(following: Ints, row_of_state: Ints, ended: Mask) -> tuple[Ints, Ints, Ints, Ints, Mask]:
    """Merge the observations that share a successor.

    Args:
        following: (k, observations) next state of each row; a row is a state, or a choice of a decision process.
        row_of_state: (k,) channel row.
        ended: (k,) whether the row is the self-loop of a terminal state.

    Returns:
        indptr, indices, entry, entry_row, entry_observations, as `Skeleton` documents them.
    """
    width = following.shape[1]
    # Block by block, so that what is needed in between stays small.
    blocks = range(0, len(following), _ROWS_AT_ONCE)
    parts = [_merged_rows(following[low : low + _ROWS_AT_ONCE]) for low in blocks]
    indices, told, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
    pattern, pattern_count = np.zeros(len(told), dtype=np.int64), 1
    for word, bits in enumerate(told.T):
        unique, place = numbered(bits, 1 << min(_BITS, width - word * _BITS))
        patterns, pattern = numbered(pattern * len(unique) + place, pattern_count * len(unique))
        pattern_count = len(patterns)
    constant = (int(row_of_state.max()) + 1) * pattern_count  # sorts behind the code of every sum
    code = np.repeat(row_of_state * pattern_count, counts)
    code += pattern
    code[np.repeat(ended, counts)] = constant
    codes, entry = numbered(code, constant + 1)
    entry_row, entry_pattern = np.divmod(codes[codes < constant], pattern_count)
    sample = np.empty(pattern_count, dtype=np.int64)
    sample[pattern] = np.arange(len(pattern))
    columns = np.arange(width)
    bits = (told[sample[entry_pattern]][:, columns // _BITS] >> columns % _BITS) & 1
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return indptr, indices, entry, entry_row, bits.astype(bool)


def _merged_rows(following: Ints) -> tuple[Ints, Ints, Ints]:
    """The distinct successors of each row, one row after the other; the observations that lead to each, as the bits
    of as many words as it takes; and how many successors each row has."""
    order = np.argsort(following, axis=1, kind="stable")
    successor = np.take_along_axis(following, order, axis=1)
    new = np.ones(following.shape, dtype=bool)
    new[:, 1:] = successor[:, 1:] != successor[:, :-1]
    begins = np.flatnonzero(new)
    word, bit = np.divmod(order, _BITS)
    bits = np.left_shift(np.int64(1), bit)
    words = [np.where(word == k, bits, 0) for k in range(-(-following.shape[1] // _BITS))]
    told = np.stack([np.bitwise_or.reduceat(word.ravel(), begins) for word in words], axis=1)
    return successor.ravel()[begins], told, new.sum(axis=1)
