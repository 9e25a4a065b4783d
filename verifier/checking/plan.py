"""What a reachability problem on a product looks like before any number is known: states, edges, and an order.

For one set of transitions with positive probability (the *support*), the graph alone tells which states reach
the target with probability exactly 0 and exactly 1 (Baier and Katoen, Principles of Model Checking, section
10.1.1). The others are *unknown*; they are put into an order in which they can be solved: by strongly connected
components, each after the components it leads to, and level by level, all components of a level together.
"""

import itertools
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from verifier.base.arrays import Ints, Mask, distinct, marked
from verifier.base.budget import Cache
from verifier.base.graphs import components, coreachable, in_bottom, levels, ranges, reachable
from verifier.checking.product import Product
from verifier.checking.recurrence import component_values
from verifier.language.ltl.progression import ACCEPT, REJECT

LARGEST_KEPT = 20_000
"""States of a product of which it is kept what is decided under a support, and how its equations are solved."""
MOST_PLANS = 4
"""Plans under one support, and solutions of one plan, that share what was found out."""
_CHUNK = 512
_SECONDS_PER_BLOCK = 1e-4
_SECONDS_PER_SPARSE_STATE = 5e-6
_SECONDS_PER_TRIANGULAR_STATE = 1e-6


@dataclass(frozen=True)
class Block:
    """Unknown states solved together: `count` components of `size` states each, all of one `level`.

    The states are `first .. first + count*size - 1` in the order of the plan, one component after the other, and
    their edges are `first_edge .. last_edge - 1`. Components of size 1 have no edges among themselves.
    """

    level: int
    first: int
    count: int
    size: int
    first_edge: int
    last_edge: int

    @property
    def last(self) -> int:
        """One past the last state."""
        return self.first + self.count * self.size


@dataclass(frozen=True, eq=False)
class Plan:
    """A system of equations x = W x + w for the probability of reaching a target, without its coefficients.

    The u unknown states are numbered in the order of solving. Slot u stands for all states of probability 1,
    slot u + 1 for all of probability 0.

    Attributes:
        unknown: (u,) int64, the product states.
        row_start: (u + 1,) int64, start of each unknown state's edges. No row is empty.
        target: (e,) int64, slot that each edge leads to; never its own source.
        edge: (e,) int64, the chain's transition behind each edge.
        loop_edge: (u,) int64, the chain's transition behind the self-loop of each unknown state, or -1.
        start: (m,) int64, slot of each initial state.
        blocks: the order of solving. When there would be too many levels, one block of all states, as if they
            were one component.
        systems: what the last few solutions share (`verifier.checking.linear`).
    """

    unknown: Ints
    row_start: Ints
    target: Ints
    edge: Ints
    loop_edge: Ints
    start: Ints
    blocks: tuple[Block, ...]
    systems: Cache = field(init=False, default_factory=partial(Cache, MOST_PLANS))

    @property
    def size(self) -> int:
        """Number of unknown states, u."""
        return len(self.unknown)


@dataclass(frozen=True, eq=False)
class _Graph:
    """The product under one support: its edges, and which states are reached and decided."""

    n: int
    sources: Ints
    targets: Ints
    edge: Ints
    reached: Mask
    accepting: Mask
    rejecting: Mask
    component: Ints


@dataclass(frozen=True, eq=False)
class Decided:
    """The product under one support, with every bottom component decided.

    Attributes:
        product: the product.
        graph: its edges with positive probability between reachable states.
        plans: the last few that were made.
    """

    product: Product
    graph: _Graph
    plans: Cache = field(init=False, default_factory=partial(Cache, MOST_PLANS))

    def plan(self, *, accepting: bool, exact_one: bool, matrices: int) -> Plan:
        """The plan for the probability of reaching the accepting (or the rejecting) bottom components.

        Args:
            accepting: which of the two.
            exact_one: whether states that cannot avoid the target have probability 1 without solving; false for
                chains whose rows do not sum to 1.
            matrices: for how many value arrays the plan will be used; it decides how to solve.
        """
        return self.plans.kept(
            (accepting, exact_one, matrices), lambda: self._planned(accepting, exact_one, matrices)
        )

    def plan_of_gains(self, *, matrices: int) -> Plan:
        """The plan for what is gained before the accepting bottom components are reached.

        Unknown are the states that reach them surely; slot u stands for these components, where nothing more is
        gained, and slot u + 1 for all states that may miss them. `matrices` as for `plan`.
        """
        g = self.graph
        unsure = g.reached & coreachable(g.n, g.sources, g.targets, g.rejecting)
        return self.plans.kept(("gains", matrices), lambda: _order(self.product, g, unsure, g.accepting, matrices))

    def _planned(self, accepting: bool, exact_one: bool, matrices: int) -> Plan:
        g = self.graph
        goal, other = (g.accepting, g.rejecting) if accepting else (g.rejecting, g.accepting)
        zero = g.reached & ~coreachable(g.n, g.sources, g.targets, goal)
        one = goal
        if exact_one:
            one = g.reached & ~coreachable(g.n, g.sources, g.targets, other)
        return _order(self.product, g, zero, one, matrices)

    def also_decides(self, positive: NDArray[np.bool_], entry: Ints) -> NDArray[np.bool_]:
        """(M,) bool: for which of M smaller supports the plans made here are right as well.

        `positive` is (M, k) bool, and `entry` says which of its k columns each of the chain's transitions has.
        They are when no transition of a bottom component is missing, no states outside can be visited in turn, and
        each of them keeps a transition to another state. Then no new bottom component arises: every path still
        ends in one of the known ones, and sure states stay sure.
        """
        g = self.graph
        recurrent = g.accepting | g.rejecting
        transient = g.reached & ~recurrent
        if len(distinct(g.component[transient])) < np.count_nonzero(transient):
            return np.zeros(len(positive), dtype=bool)
        fixed = distinct(entry[g.edge[recurrent[g.sources]]])
        moving = transient[g.sources] & (g.sources != g.targets)
        sources = g.sources[moving]
        row = np.searchsorted(distinct(sources), sources)
        rows = csr_array(
            (np.ones(len(row)), (row, entry[g.edge[moving]])), shape=(row.max(initial=-1) + 1, positive.shape[1])
        )
        result = np.empty(len(positive), dtype=bool)
        for low in range(0, len(positive), _CHUNK):
            chunk = positive[low : low + _CHUNK]
            remaining = np.asarray(rows @ chunk.T.astype(float))
            result[low : low + _CHUNK] = chunk[:, fixed].all(axis=1) & np.all(remaining > 0, axis=0)
        return result


def decide(product: Product, support: Mask) -> Decided:
    """Restrict the product to reachable states and decide its bottom components.

    Args:
        product: the product.
        support: (nnz,) bool, the chain's transitions with positive probability; every row must keep one.

    Raises:
        EngineError, LimitError: from deciding the bottom components.
    """
    if product.state_count > LARGEST_KEPT:
        return _decided(product, support)
    return product.decided.kept(support.tobytes(), lambda: _decided(product, support))


def towards(product: Product, kept: Mask, target: Mask) -> Decided:
    """The product with some of its (q,) transitions, as the question whether (p,) target states are reached.

    What remains to be met is not looked at: target states accept, and those from which none can be reached reject.
    """
    n = product.state_count
    used = np.flatnonzero(kept & ~target[product.sources])
    sources, targets, edge = product.sources[used], product.indices[used], product.edge[used]
    rejecting = ~coreachable(n, sources, targets, target)
    component = components(n, sources, targets)
    graph = _Graph(n, sources, targets, edge, np.ones(n, dtype=bool), target, rejecting, component)
    return Decided(product, graph)


def _decided(product: Product, support: Mask) -> Decided:
    kept = np.flatnonzero(support[product.edge])
    sources, targets, edge = product.sources[kept], product.indices[kept], product.edge[kept]
    n = product.state_count
    reached = reachable(n, sources, targets, marked(n, product.start))
    inside = reached[sources]
    sources, targets, edge = sources[inside], targets[inside], edge[inside]

    component = components(n, sources, targets)
    recurrent = reached & in_bottom(component, sources, targets)
    recurrent[[REJECT, ACCEPT]] = False
    accepting = np.zeros(n, dtype=bool)
    members = np.flatnonzero(recurrent)
    if len(members):
        _, dense = np.unique(component[members], return_inverse=True)
        accepting[members] = component_values(product, support, members, dense)[dense]
    rejecting = recurrent & ~accepting
    accepting[ACCEPT], rejecting[REJECT] = True, True
    reached[[REJECT, ACCEPT]] = True
    return Decided(product, _Graph(n, sources, targets, edge, reached, accepting, rejecting, component))


def _order(product: Product, g: _Graph, zero: Mask, one: Mask, matrices: int) -> Plan:
    unknown = np.flatnonzero(g.reached & ~zero & ~one)
    u = len(unknown)
    local = np.full(g.n, -1, dtype=np.int64)
    local[unknown] = np.arange(u)
    inside = local[g.sources] >= 0
    sources, edge = local[g.sources[inside]], g.edge[inside]
    targets = local[g.targets[inside]]
    targets[targets < 0] = np.where(one[g.targets[inside]][targets < 0], u, u + 1)

    loop = sources == targets
    loop_edge = np.full(u, -1, dtype=np.int64)
    loop_edge[sources[loop]] = edge[loop]
    sources, targets, edge = sources[~loop], targets[~loop], edge[~loop]
    component, level, size = _condense(g.component[unknown], sources, targets, matrices)
    order = np.lexsort((component, size, level))
    place = np.empty(u + 2, dtype=np.int64)
    place[order], place[u], place[u + 1] = np.arange(u), u, u + 1
    degree = np.bincount(sources, minlength=u)
    end = np.cumsum(degree)  # the edges of the graph are in the order of their sources
    by_row = ranges((end - degree)[order], end[order])
    row_start = np.concatenate([[0], np.cumsum(degree[order])])
    slot = np.where(one, u, u + 1)
    slot[unknown[order]] = np.arange(u)
    return Plan(
        unknown=unknown[order],
        row_start=row_start,
        target=place[targets[by_row]],
        edge=edge[by_row],
        loop_edge=loop_edge[order],
        start=slot[product.start],
        blocks=_blocks(level[order], size[order], row_start),
    )


def _condense(component: Ints, sources: Ints, targets: Ints, matrices: int) -> tuple[Ints, Ints, Ints]:
    """Component, level and size of the component of every unknown state.

    Too many levels become one, in which all states are solved together, as if they were one component.

    Args:
        component: (u,) in the whole product; all states of one are unknown if one is, for they reach the same ones.
        sources, targets: of the edges between different states.
        matrices: see `Decided.plan`.
    """
    u = len(component)
    zeros = np.zeros(u, dtype=np.int64)
    if u == 0:
        return zeros, zeros, zeros
    inner = targets < u
    there = np.bincount(component) > 0
    component = (np.cumsum(there) - 1)[component]  # without gaps, in the same order
    size = np.bincount(component)
    above, below = component[sources[inner]], component[targets[inner]]
    per_state = _SECONDS_PER_TRIANGULAR_STATE if len(size) == u else _SECONDS_PER_SPARSE_STATE
    max_levels = int(1000 + matrices * u * per_state / _SECONDS_PER_BLOCK)
    level = None
    if len(size) < u or not _has_long_path(u, above, below, max_levels):
        crossing = above != below
        level = levels(len(size), above[crossing], below[crossing], max_levels)
    if level is None:
        # Components are numbered along the edges: in that order the factorisation has the least to fill in.
        return component, zeros, zeros + u
    return component, level[component], size[component]


def _has_long_path(count: int, above: Ints, below: Ints, most: int) -> bool:
    """Whether a path of `most` edges or more between the states of a graph without cycles, each of which leads to a
    smaller number, is found at once: from the greatest one on, always to the greatest number."""
    following = np.full(count, -1, dtype=np.int64)
    np.maximum.at(following, above, below)
    at = int(above.max(initial=0))
    for _ in range(most):
        at = int(following[at])
        if at < 0:
            return False
    return True


def _blocks(level: Ints, size: Ints, row_start: Ints) -> tuple[Block, ...]:
    """Runs of equal level and size."""
    change = np.flatnonzero((np.diff(level) != 0) | (np.diff(size) != 0)) + 1
    first = np.concatenate([[0], change, [len(level)]]).tolist()
    blocks = []
    for begin, end in itertools.pairwise(first):
        if end > begin:
            k, edges = int(size[begin]), row_start[[begin, end]].tolist()
            blocks.append(Block(int(level[begin]), begin, (end - begin) // k, k, *edges))
    return tuple(blocks)
