"""An order that shows, without any number, that every run is decided.

Nodes are as in `robust_policy`: components in which nature can stay forever, and single states outside them. An order
gives a whole number r to every product state, the same to all states of a node, such that with every choice

    with which the node may be left, some probability goes to states of smaller r,                                (1)

where a single state outside the components counts as left with every step, even if the step leads back to it.

Then every run stays in one component from some time on, with probability 1, whatever nature chooses. For every choice
is a mixture of the finitely many choices of a vertex for each draw. With d the least chance of a fall (to a smaller
r), given a departure, among those of them that may depart, every choice has a fall with at least d times the chance
of a departure. So of R departures in a row, R being the number of values of r, all are falls with probability at
least d^R; but after R falls there is no smaller r to depart to. Hence there are only finitely many departures.

Conversely such an order exists whenever the components are all maximal end components: states from which no order
leads on form a set that nature can avoid to leave, and such a set contains an end component. It is built from the
strongly connected parts of the graph of possible moves, each of which leads only to parts that come before it, and
within a part layer by layer. In contrast to an expected number of steps it exists at any size and is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.robust.policy import Nodes
from verifier.analysis.robust.step import UncertainStep
from verifier.base.arrays import Ints
from verifier.base.errors import EngineError
from verifier.checking.graphs import components, levels, ranges


def decision_order(step: UncertainStep, nodes: Nodes) -> Ints:
    """(p,) int64, an order with property (1), from 0.

    Raises:
        EngineError: there is none, so the nodes are not the maximal end components.
    """
    n, of = step.state_count, nodes.of
    sources, targets = of[nodes.sources], of[nodes.targets]
    part = _parts(n, sources, targets)[of]
    layer = np.full(n, -1, dtype=np.int64)
    size = np.bincount(of, minlength=n)
    members, start = np.argsort(of, kind="stable"), np.concatenate([[0], np.cumsum(size)])
    waiting = size.copy()  # per node, the states from which it may still be left without a fall
    order = np.argsort(nodes.targets, kind="stable")
    entering, first = nodes.sources[order], np.concatenate([[0], np.cumsum(np.bincount(nodes.targets, minlength=n))])
    falls = np.zeros(n, dtype=bool)
    at, number = np.arange(n), 0
    while len(at):
        falling = at[_always_falls(step, nodes, part, layer, at)]
        falls[falling] = True
        np.subtract.at(waiting, of[falling], 1)
        done = np.unique(of[falling])
        done = done[waiting[done] == 0]
        placed = members[ranges(start[done], start[done + 1])]
        layer[placed] = number
        number += 1
        before = np.unique(entering[ranges(first[placed], first[placed + 1])])
        at = before[~falls[before]]
    if np.any(layer < 0):
        raise EngineError(
            f"{np.count_nonzero(layer < 0)} product states can be stayed in forever and are in no component"
        )
    result: Ints = part * number + layer
    return result


def _always_falls(step: UncertainStep, nodes: Nodes, part: Ints, layer: Ints, at: Ints) -> NDArray[np.bool_]:
    """Whether leaving the nodes of the states `at` always gives some probability to what has a place already."""
    rows = step.rows_of(at)
    following, own = step.following[rows], step.owner[rows]
    unplaced = (part[following] == part[own, None]) & (layer[following] < 0)
    stays = nodes.component[own, None] & (nodes.of[following] == nodes.of[own, None])
    avoiding = step.usable(unplaced | stays, rows)
    may = own[np.any(avoiding & ~stays, axis=1)]
    return np.isin(at, may, invert=True)


def _parts(n: int, sources: Ints, targets: Ints) -> Ints:
    """(n,) the strongly connected part of each node, numbered so that moves between parts lead to smaller numbers."""
    part = components(n, sources, targets)
    if np.all(part[sources] >= part[targets]):  # as scipy numbers them
        return part
    count = int(part.max()) + 1
    crossing = part[sources] != part[targets]
    level = levels(count, part[sources[crossing]], part[targets[crossing]], count + 1)
    assert level is not None  # the parts of a graph form no cycle
    place = np.empty(count, dtype=np.int64)
    place[np.argsort(level, kind="stable")] = np.arange(count)
    return place[part]
