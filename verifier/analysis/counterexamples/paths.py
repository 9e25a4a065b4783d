"""The k cheapest walks of a graph from a node to a goal, one after the other.

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
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from verifier.base.arrays import Ints, Mask
from verifier.checking.graphs import ranges

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
        # (cost, number, walk it extends, the sidetrack it adds): -1 twice for the tree walk.
        heap = [(float(self._distance[node]), 0, -1, -1)]
        offered = 1
        taken: list[tuple[int, int]] = []
        while heap and len(taken) < count:
            cost, _, parent, sidetrack = heapq.heappop(heap)
            taken.append((parent, sidetrack))
            yield self._edges(node, taken)
            wanted = count - len(taken)
            last_part = self._tree_nodes(node if sidetrack < 0 else int(self._target[sidetrack]))
            for edge in self._cheapest_sidetracks(last_part, wanted):
                heapq.heappush(heap, (cost + float(self._extra[edge]), offered, len(taken) - 1, edge))
                offered += 1
            if len(heap) > 2 * wanted:
                heap = heapq.nsmallest(wanted, heap)

    def _cheapest_sidetracks(self, nodes: Ints, wanted: int) -> list[int]:
        """Sidetracks that leave one of the nodes: the `wanted` cheapest, cheapest first."""
        edges = ranges(self._start[nodes], self._start[nodes + 1])
        edges = edges[np.isfinite(self._extra[edges])]
        found: list[int] = edges[np.argsort(self._extra[edges], kind="stable")[:wanted]].tolist()
        return found

    def _tree_nodes(self, node: int, until: int = -1) -> Ints:
        """The nodes from `node` along the tree, up to `until` or the goal; the last one left out."""
        found = []
        while node != until and self._next[node] >= 0:
            found.append(node)
            node = self._next[node]
        return np.array(found, dtype=np.int64)

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
    """(n,) distance of each node to the nearest goal, infinite where there is none; and its next node, or -1."""
    n, goals = len(goal), np.flatnonzero(goal)
    if not len(goals):
        return np.full(n, np.inf), np.full(n, -1)
    backwards = csr_array((cost, (targets, sources)), shape=(n, n))
    distance, step, _ = dijkstra(backwards, indices=goals, return_predecessors=True, min_only=True)
    return distance, np.where(step >= 0, step, -1).astype(np.int64)
