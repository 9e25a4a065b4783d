"""The most probable runs on which a requirement is violated.

A *violating run* is a path of the product from an initial state to the point where the formula is decided against
the requirement: its obligation has become false, or a bottom component is entered in which it almost surely fails
(for `P <= target`: holds). No run continues another, so their probabilities add up, and those of all of them to the
probability of violation (Han, Katoen and Damman, Counterexample generation in probabilistic model checking, IEEE TSE
35(2), 2009). Observations after which the planner does the same are one step of a run.

A run is *irrevocable* from the first state on from which the requirement is violated with the measured detector and
with a perfect one, often long before the violation is seen. Runs that agree up to there fail for the same
reason, so they are counted together unless whole runs are asked for: the probability is then that of the steps up to
there, and the steps behind are those of the most probable continuation. Runs that differ only in when it happened are
one pattern (`causes`), and are its members.

The k cheapest walks of a graph from a node to a goal, one after the other.

A walk may pass a node several times; it ends at the first goal it comes to. Costs are not negative, so with the cost
-log p of a transition the cheapest walks are the most probable ones.

Method: D. Eppstein, Finding the k shortest paths, SIAM Journal on Computing 28(2), 1998, section 2. One shortest-path
search from the goals backwards gives every node its distance to them and its first step there (a tree). Any other
edge is a *sidetrack*, and taking it costs

    cost + distance of its target - distance of its source >= 0

more than following the tree. A walk is its sequence of sidetracks, with the tree in between, and costs the tree walk
from the start plus their extra costs. Leaving out the last sidetrack gives another walk that costs no more, so a
search that takes the cheapest known walk first, and then offers every walk with one more sidetrack behind its last
one, meets all walks in the order of their costs, each once. Of those offered only as many are kept as are still
wanted. Work for each walk is a few array operations on its last part.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from verifier.analysis.objective import Objective
from verifier.analysis.sensitivity.adjoint import Values, state_values
from verifier.base.arrays import Floats, Ints, Mask
from verifier.base.graphs import ranges
from verifier.checking.linear import solve
from verifier.checking.plan import decide
from verifier.language.ltl.progression import ACCEPT, REJECT
from verifier.perception.confusion import exact_rates
from verifier.systems.skeleton import Skeleton

LONGEST_EXACT = 2000
"""Steps of a run up to which its probability is also computed as a fraction, and rounded once from that."""


@dataclass(frozen=True, eq=False)
class Prospects:
    """What each product state has before it; (p,) arrays.

    Attributes:
        violation: probability of losing, which is violating the requirement.
        risk: the mean of that probability and of the same with all reports correct from there on.
        certain: bool, losing is certain both ways, or a losing bottom component is entered.
        escapable: bool, states of losing bottom components from which correct reports need not lose.
        satisfying: whether losing is to satisfy the formula, because the requirement is `P <= target`.
    """

    violation: Floats
    risk: Floats
    certain: NDArray[np.bool_]
    escapable: NDArray[np.bool_]
    satisfying: bool


def prospects(objective: Objective, values: Values, satisfying: bool = False) -> Prospects:
    """What each product state has before it.

    Args:
        objective, values: formula, skeleton and one family of matrices.
        satisfying: losing is to satisfy the formula.

    Raises:
        EngineError, LimitError: as `state_values`.
    """
    perfect = state_values(objective, np.broadcast_to(np.eye(values.rates.shape[-1]), values.rates.shape))
    both = [(side.failure, side.value) if satisfying else (side.value, side.failure) for side in (values, perfect)]
    (hope, violation), (perfect_hope, perfect_violation) = both
    lost = values.recurrent & (hope == 0)
    certain = lost | ((hope == 0) & (perfect_hope == 0))
    risk = (violation + perfect_violation) / 2
    return Prospects(violation, risk, certain, lost & (perfect_hope > 0), satisfying)


@dataclass(frozen=True, eq=False)
class Run:
    """One violating run; or, with fewer steps counted than it has, all that begin like it and the likeliest of them.

    Attributes:
        states: (k + 1,) states of the chain; the formula is decided in the last.
        transitions: (k,) transitions of the skeleton.
        nodes: (k + 1,) product states; the last may be `REJECT` or `ACCEPT`.
        counted: the first so many steps are what `probability` is the probability of.
        probability: the product of the probabilities of the counted steps.
        irrevocable: position in `states` from which on the violation is certain.
    """

    states: Ints
    transitions: Ints
    nodes: Ints
    counted: int
    probability: float
    irrevocable: int

    @property
    def steps(self) -> int:
        """Number of steps, k."""
        return len(self.transitions)


def with_exact(
    skeleton: Skeleton, groups: Sequence[list[Run]], counts: NDArray[np.int64] | None
) -> tuple[list[list[Run]], dict[int, Fraction] | None]:
    """Groups of runs with probabilities that are rounded once, most probable first, and the exact values of entries.

    Args:
        groups: runs.
        counts: (bins, predicted, true) behind the rates; None for no exact values.
    """
    exact = None
    if counts is not None and any(groups):
        taken = [skeleton.entry[run.transitions] for runs in groups for run in runs]
        exact = exact_entries(skeleton, counts, np.unique(np.concatenate(taken)))
        known = [[(run, exact_probability(skeleton, run, exact)) for run in runs] for runs in groups]
        groups = [[replace(run, probability=float(p)) if p is not None else run for run, p in runs] for runs in known]
    # Stable: equal ones stay in the order they were found.
    return [sorted(runs, key=lambda run: -run.probability) for runs in groups], exact


def exact_probability(skeleton: Skeleton, run: Run, exact: Mapping[int, Fraction]) -> Fraction | None:
    """The probability of a run as an exact fraction: the product over its counted steps.

    None for more than `LONGEST_EXACT` of them: such a fraction has thousands of digits.
    """
    if run.counted > LONGEST_EXACT:
        return None
    times = Counter(skeleton.entry[run.transitions[: run.counted]].tolist())
    return math.prod((exact[entry] ** power for entry, power in sorted(times.items())), start=Fraction(1))


def exact_entries(skeleton: Skeleton, counts: NDArray[np.int64], entries: Ints) -> dict[int, Fraction]:
    """The exact values of some of the skeleton's distinct sums, for counts in which the columns needed have items.

    Args:
        counts: (bins, predicted, true).
        entries: their numbers.
    """
    one = len(skeleton.entry_row)
    drawn = entries[entries < one]
    rows, place = np.unique(skeleton.entry_row[drawn], return_inverse=True)
    told = skeleton.entry_observations[drawn]
    few = replace(skeleton, channel=skeleton.channel.at(rows), entry_row=place, entry_observations=told)
    return dict(zip([*drawn.tolist(), one], map(Fraction, few.entry_values(exact_rates(counts))), strict=True))


def violation_probability(
    objective: Objective, rates: Floats, start: int, satisfying: bool = False
) -> tuple[float, float]:
    """Probability that the formula fails (or holds) from an initial state, and how far it can be off numerically.

    It is solved for as such, so that a small one has as many digits as a large one.
    """
    skeleton = objective.skeleton
    product = replace(objective.product, start=objective.product.start[[start]])
    entries = skeleton.entry_values(rates)
    plan = decide(product, entries[skeleton.entry] > 0).plan(accepting=satisfying, exact_one=True, matrices=1)
    solution = solve(plan, entries[np.newaxis], skeleton.entry, stochastic=True)
    return float(solution.value[0, 0]), float(solution.error[0, 0])


class RunGraph:
    """The product with an end of its own for every state of the chain in which the formula is decided.

    `REJECT` and `ACCEPT` are one state each of the product; here node p + s is the end in state s of the chain.

    Args:
        objective, values, prospects: what was solved.
    """

    def __init__(self, objective: Objective, values: Values, prospects: Prospects) -> None:
        self._objective = objective
        skeleton, product = objective.skeleton, objective.product
        self._p = product.state_count
        self._end, lost = (ACCEPT, REJECT) if prospects.satisfying else (REJECT, ACCEPT)
        entries = skeleton.entry_values(values.rates)
        probability = entries[skeleton.entry][product.edge]
        self._kept = np.flatnonzero((probability > 0) & (product.indices != lost))
        self._transition = product.edge[self._kept]
        self._probability = probability[self._kept]
        targets = product.indices[self._kept]
        self._target = np.where(targets == self._end, self._p + skeleton.indices[self._transition], targets)
        self._nodes = self._p + skeleton.state_count
        self._certain = np.concatenate([prospects.certain, np.ones(skeleton.state_count, dtype=bool)])
        self._decided = self._certain.copy()
        self._decided[: self._p] &= values.recurrent
        self._source = product.sources[self._kept]
        # A sum of rates that is 1 may come out a rounding above it.
        self._cost = np.maximum(-np.log(self._probability), 0.0)
        self._to_decided: CheapestWalks | None = None

    def runs(
        self, start: int, count: int, whole: bool, symbol: Ints | None = None, pattern: Sequence[int] = ()
    ) -> list[Run]:
        """The `count` most probable violating runs from an initial state, most probable first.

        Args:
            start: number of the initial state.
            count: of runs, at least 1.
            whole: count whole runs, not only their steps up to where they are irrevocable.
            symbol: (q,) what counts on each transition of the product, 0 for nothing; None for all runs.
            pattern: with `symbol`, only runs on which these count, in order, each once or several times in a row.
        """
        node = int(self._objective.product.start[start])
        if node == self._end:
            node = self._p + int(self._objective.skeleton.starts[start])
        if symbol is None or self._certain[node]:
            walks = CheapestWalks(*self._edges(), self._decided if whole else self._certain)
            edge = np.arange(len(self._kept))
        else:
            walks, edge = self._along(symbol[self._kept], pattern, self._decided if whole else self._certain)
        runs = []
        for path in walks.from_node(node, count):
            walk = edge[path]
            last = int(self._target[walk[-1]]) if len(walk) else node
            rest = np.zeros(0, dtype=np.int64)
            if not self._decided[last]:
                if self._to_decided is None:
                    self._to_decided = CheapestWalks(*self._edges(), self._decided)
                (rest,) = self._to_decided.from_node(last, 1)
            runs.append(self._run(node, np.concatenate([walk, rest]), len(walk)))
        return runs

    def _edges(self) -> tuple[int, Ints, Ints, Floats]:
        return self._nodes, self._source, self._target, self._cost

    def _along(self, symbol: Ints, pattern: Sequence[int], goal: NDArray[np.bool_]) -> tuple[CheapestWalks, Ints]:
        """The walks that read a pattern, on one copy of the nodes for each of its beginnings; and their edges."""
        parts: list[tuple[Ints, int, int]] = []
        for place in range(len(pattern) + 1):
            staying = symbol == 0
            if place:
                staying |= symbol == pattern[place - 1]
            parts.append((np.flatnonzero(staying), place, place))
            if place < len(pattern):
                parts.append((np.flatnonzero(symbol == pattern[place]), place, place + 1))
        edge = np.concatenate([part for part, _, _ in parts])
        sources = np.concatenate([self._source[part] + before * self._nodes for part, before, _ in parts])
        targets = np.concatenate([self._target[part] + after * self._nodes for part, _, after in parts])
        read = np.zeros((len(pattern) + 1) * self._nodes, dtype=bool)
        read[len(pattern) * self._nodes :] = goal
        return CheapestWalks(len(read), sources, targets, self._cost[edge], read), edge

    def _run(self, start: int, walk: Ints, counted: int) -> Run:
        """The run behind a walk from the node `start`."""
        skeleton = self._objective.skeleton
        transitions = self._transition[walk]
        nodes = np.concatenate([[start], self._target[walk]])
        begun = start - self._p if start >= self._p else self._objective.product.state[start]
        states = np.concatenate([[begun], skeleton.indices[transitions]])
        probability = math.exp(math.fsum(np.log(self._probability[walk[:counted]])))
        irrevocable = int(np.argmax(self._certain[nodes]))
        return Run(
            states, transitions, np.where(nodes < self._p, nodes, self._end), counted, probability, irrevocable
        )


_GRAIN = 2.0**-44
"""Costs are rounded to multiples of this, so that sums are exact and equal costs stay equal in any order."""


class CheapestWalks:
    """The walks of one graph to its goals.

    Args:
        n: number of nodes.
        sources, targets: (e,) edges, at most one from one node to another.
        cost: (e,) float64, finite and not negative.
        goal: (n,) bool, where walks end.

    Raises:
        ValueError: a cost is negative or no number.
    """

    def __init__(self, n: int, sources: Ints, targets: Ints, cost: NDArray[np.float64], goal: Mask) -> None:
        if len(cost) and not (cost.min() >= 0 and np.isfinite(cost.max())):
            raise ValueError("costs must be finite and not negative")
        leaving = ~goal[sources]
        order = np.flatnonzero(leaving)[np.argsort(sources[leaving], kind="stable")]
        self._edge = order
        self._source, self._target = sources[order], targets[order]
        self._start = np.concatenate([[0], np.cumsum(np.bincount(self._source, minlength=n))])
        grained = np.round(cost[order] / _GRAIN) * _GRAIN
        distance, step = _towards(goal, self._source, self._target, grained)
        on_tree = step[self._source] == self._target
        self._step = np.full(n, -1, dtype=np.int64)
        self._step[self._source[on_tree]] = np.flatnonzero(on_tree)
        self._distance = distance
        with np.errstate(invalid="ignore"):
            extra = grained + distance[self._target] - distance[self._source]
        # Rounding, where distances are huge, must not make a sidetrack look like a gain.
        self._extra = np.where(on_tree | np.isnan(extra), np.inf, np.maximum(extra, 0.0))
        self._next = step.tolist()

    def reaches(self, node: int) -> bool:
        """Whether a walk leads from `node` to a goal."""
        return bool(np.isfinite(self._distance[node]))

    def from_node(self, node: int, count: int) -> Iterator[Ints]:
        """At most `count` walks in the order of their costs, each as the positions of its edges as given.

        A goal has one walk, without edges. Among walks of equal cost the order is fixed, and means nothing.
        """
        if count < 1 or not self.reaches(node):
            return
        # (cost, number, walk it extends, the sidetrack it adds): -1 for the tree walk.
        numbers = itertools.count()
        heap = [(float(self._distance[node]), next(numbers), 0, -1)]
        taken: list[tuple[int, int]] = []
        while heap:  # which nothing is left of once no more are wanted
            cost, _, parent, sidetrack = heapq.heappop(heap)
            taken.append((parent, sidetrack))
            yield self._edges(node, taken)
            wanted = count - len(taken)
            last_part = self._tree_nodes(node if sidetrack < 0 else int(self._target[sidetrack]))
            for edge in self._cheapest_sidetracks(last_part, wanted):
                heapq.heappush(heap, (cost + float(self._extra[edge]), next(numbers), len(taken) - 1, edge))
            if len(heap) > 2 * wanted:
                heap = heapq.nsmallest(wanted, heap)

    def _cheapest_sidetracks(self, nodes: Ints, wanted: int) -> list[int]:
        """Sidetracks that leave one of the nodes: the `wanted` cheapest, cheapest first."""
        edges = ranges(self._start[nodes], self._start[nodes + 1])
        edges = edges[np.isfinite(self._extra[edges])]
        cheapest: list[int] = edges[np.argsort(self._extra[edges], kind="stable")[:wanted]].tolist()
        return cheapest

    def _tree_nodes(self, node: int, until: int = -1) -> Ints:
        """The nodes from `node` along the tree, up to `until` or the goal; the last one left out."""
        passed = []
        while node != until and self._next[node] >= 0:
            passed.append(node)
            node = self._next[node]
        return np.array(passed, dtype=np.int64)

    def _edges(self, node: int, taken: list[tuple[int, int]]) -> Ints:
        """All edges of the walk that was taken last."""
        sidetracks = []
        walk = len(taken) - 1
        while taken[walk][1] >= 0:
            walk, sidetrack = taken[walk][0], taken[walk][1]
            sidetracks.append(sidetrack)
        parts: list[Ints] = []
        for sidetrack in reversed(sidetracks):
            parts += [self._step[self._tree_nodes(node, int(self._source[sidetrack]))], np.array([sidetrack])]
            node = int(self._target[sidetrack])
        parts.append(self._step[self._tree_nodes(node)])
        return self._edge[np.concatenate(parts)]


def _towards(goal: Mask, sources: Ints, targets: Ints, cost: NDArray[np.float64]) -> tuple[NDArray[np.float64], Ints]:
    """(n,) distance of each node to the nearest goal, infinite where there is none; its next node, or below 0."""
    n, goals = len(goal), np.flatnonzero(goal)
    if not len(goals):
        return np.full(n, np.inf), np.full(n, -1)
    backwards = csr_array((cost, (targets, sources)), shape=(n, n))
    distance, step, _ = dijkstra(backwards, indices=goals, return_predecessors=True, min_only=True)
    return distance, step.astype(np.int64)
