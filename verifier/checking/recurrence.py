"""Whether an obligation holds almost surely or almost never in a bottom component of the product.

By the zero-one law one of the two is the case: from every state of a bottom component of the product, the
obligation that remains has probability 0 or 1. Which one is decided on the chain itself, by eliminating the
temporal operators from the inside out (Courcoubetis and Yannakakis, The complexity of probabilistic verification,
JACM 42(4), 1995, section 3.1). No automaton is built, and no probability is computed.

To eliminate psi, an operator over state formulas, every state s is split into (s, x), one for each truth value x
that psi has with positive probability on the paths from s; and s -> t becomes the edges (s, x) -> (t, y) for which
the truth x at s follows from the label of s and the truth y at t:

    psi = a U b:    x = b(s) or (a(s) and y)        psi = X a:    x = a(t)

On the split graph psi is a label. What can happen with positive probability depends on the graph only, so the
next operator is eliminated there in the same way. In the end an obligation is a Boolean combination of labels, and
the zero-one law says that all copies of one state agree on it; if they do not, the program is wrong and says so.

Bounds are direct: for all `a U[0,j] b` with j <= h at once, a state is split by the number of steps (0..h, or
more) after which b is reached through a; `a U[i,j] b` is `a & X (a U[i-1,j-1] b)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np

from verifier.base.arrays import Ints, Mask, marked
from verifier.base.errors import EngineError, NoAnswerError
from verifier.base.graphs import coreachable, ranges
from verifier.checking.product import Product
from verifier.language.ltl.normal_form import PositiveNode

EDGE_LIMIT = 50_000_000
"""Most edges of the split graph."""

_Key: TypeAlias = "tuple[object, ...]"


def component_values(product: Product, support: Mask, members: Ints, component: Ints) -> Mask:
    """The value of every bottom component of the product: True for 1, False for 0.

    Args:
        product: the product; its states `members` have an obligation that is neither `true` nor `false`.
        support: (nnz,) bool, the transitions of the chain with positive probability.
        members: (k,) int64, the product states of some bottom components (under `support`), all of each.
        component: (k,) int64, the component of each member, numbered from 0 without gaps.

    Returns:
        (number of components,) bool.

    Raises:
        EngineError: if two copies of one state, or two states of one component, disagree.
        NoAnswerError: if splitting the states would need more than `EDGE_LIMIT` edges.
    """
    edges = ranges(product.indptr[members], product.indptr[members + 1])
    owner = np.repeat(np.arange(len(members)), np.diff(product.indptr)[members])
    kept = support[product.edge[edges]]
    edges, owner = edges[kept], owner[kept]
    # A member's obligation speaks about the path from the member's successors on.
    obligation = product.obligation[members][owner]
    successor = product.chain_indices[product.edge[edges]]
    base = np.unique(product.state[members])
    graph = _SplitGraph(product, support, base)
    value = _truth_at(product, graph, np.searchsorted(base, successor), obligation)

    result: Mask = np.bincount(component[owner], weights=value) > 0
    if np.any(result[component[owner]] != value):
        raise EngineError("two states of one bottom component of the product have different values")
    return result


def _truth_at(product: Product, graph: _SplitGraph, state: Ints, obligation: Ints) -> Mask:
    """(k,) bool: whether each of the (k,) obligations holds almost surely from each of the (k,) base states."""
    obligations = product.obligations
    distinct = np.unique(obligation)
    graph.eliminate(set().union(*(obligations.nodes_in(number) for number in distinct.tolist())))
    copies, masks = np.bincount(graph.origin), dict[int, Mask]()
    result = np.zeros(len(state), dtype=bool)
    order = np.argsort(obligation, kind="stable")
    bounds = np.searchsorted(obligation[order], distinct, side="left").tolist()
    for number, begin, end in zip(distinct.tolist(), bounds, [*bounds[1:], len(order)], strict=True):
        holds = np.bincount(graph.origin, weights=_obligation_mask(product, graph, number, masks))
        asked = state[order[begin:end]]
        result[order[begin:end]] = holds[asked] > 0
        if np.any((holds[asked] > 0) & (holds[asked] < copies[asked])):
            raise EngineError("an obligation in a bottom component is neither almost certain nor almost impossible")
    return result


def _obligation_mask(product: Product, graph: _SplitGraph, number: int, masks: dict[int, Mask]) -> Mask:
    """Where the obligation holds; `masks` keeps those of its parts, which may occur many times."""
    if number in masks:
        return masks[number]
    obligation = product.obligations[number]
    if obligation.kind != "terms":
        parts = [_obligation_mask(product, graph, part, masks) for part in obligation.parts]
        result = _all(parts) if obligation.kind == "&" else ~_all([~part for part in parts])
    else:
        result = np.zeros(len(graph.origin), dtype=bool)
        for term in obligation.terms:
            result |= _all([graph.holds(("node", node)) for node in term])
    masks[number] = result
    return result


def _all(masks: list[Mask]) -> Mask:
    result = masks[0].copy()
    for mask in masks[1:]:
        result &= mask
    return result


def nodes_below(nodes: Sequence[PositiveNode], numbers: Iterable[int]) -> list[int]:
    """These nodes of a normal form and all below them, operands first, for they have smaller numbers."""
    known, pending = set[int](), list(numbers)
    while pending:
        number = pending.pop()
        if number not in known:
            known.add(number)
            pending.extend(nodes[number].operands)
    return sorted(known)


def state_mask(nodes: Sequence[PositiveNode], number: int, propositions: Sequence[Mask], count: int) -> Mask | None:
    """(count,) bool: in which states a node of a normal form holds that speaks of the present alone, from where each
    proposition does; None for any other node."""
    node = nodes[number]
    if node.kind in ("holds", "fails"):
        return propositions[node.low] ^ (node.kind == "fails")
    if node.kind not in ("true", "false", "&", "|"):
        return None
    both = node.kind in ("true", "&")
    joined = np.full(count, both)
    for operand in node.operands:
        part = state_mask(nodes, operand, propositions, count)
        if part is None:
            return None
        joined = joined & part if both else joined | part
    return joined


class _SplitGraph:
    """The chain's bottom components, with states split by the truth of the operators eliminated so far.

    Attributes:
        origin: (c,) the base state that each copy belongs to.
        sources, targets: the edges between copies.
        columns: key -> (c,) array: truth of a node (`("node", number)`), of an auxiliary formula, or a distance.
    """

    def __init__(self, product: Product, support: Mask, base: Ints) -> None:
        edges = ranges(product.chain_indptr[base], product.chain_indptr[base + 1])
        sources = np.repeat(np.arange(len(base)), np.diff(product.chain_indptr)[base])
        kept = support[edges]
        self.origin = np.arange(len(base))
        self.sources = sources[kept]
        self.targets = np.searchsorted(base, product.chain_indices[edges[kept]])
        self.columns: dict[_Key, Ints] = {}
        self._nodes = product.obligations.formula.nodes
        self._horizons: dict[_Key, int] = {}
        for number, mask in enumerate(product.propositions):
            self.columns["proposition", number] = mask[base].astype(np.int64)

    def eliminate(self, nodes: set[int]) -> None:
        """Give every node of the normal form in `nodes`, and every node below one, a column of truth values."""
        needed = nodes_below(self._nodes, nodes)  # operands first
        for number in needed:
            node = self._nodes[number]
            if node.kind in ("U", "R") and node.high is not None:
                family = (node.kind, *node.operands)
                self._horizons[family] = max(self._horizons.get(family, 0), node.high - node.low)
        for number in needed:
            truth = self._truth(self._nodes[number])
            self.columns["node", number] = truth.astype(np.int64)

    def holds(self, key: _Key) -> Mask:
        """(c,) bool: where the column `key` is not 0."""
        result: Mask = self.columns[key] != 0
        return result

    def _truth(self, node: PositiveNode) -> Mask:
        operands = [("node", operand) for operand in node.operands]
        match node.kind:
            case "false" | "true":
                return np.full(len(self.origin), node.kind == "true")
            case "holds":
                return self.holds(("proposition", node.low))
            case "fails":
                return ~self.holds(("proposition", node.low))
            case "&":
                return _all([self.holds(key) for key in operands])
            case "|":
                return ~_all([~self.holds(key) for key in operands])
            case "X":
                key: _Key = operands[0]
                for _ in range(node.low):
                    key = self._next(key)
                return self.holds(key)
        return self._window(node)

    def _next(self, operand: _Key) -> _Key:
        """Key of `X operand`, for the key of a column of truth values."""
        key = ("X", *operand)
        if key not in self.columns:
            truth = self.holds(operand)
            can_hold, can_fail = self._before(truth), self._before(~truth)
            self._split(key, [can_fail, can_hold], lambda s, t, y: truth[t].astype(np.int64))
        return key

    def _window(self, node: PositiveNode) -> Mask:
        """Truth of `a U[i,j] b`, or of `a R[i,j] b` as the negation of `!a U[i,j] !b`."""
        left, right = node.operands
        until = node.kind == "U"
        key: _Key
        if node.high is None:
            key = ("unbounded", node.kind, left, right)
            if key not in self.columns:
                self._eliminate_until(key, left, right, negate=not until)
        else:
            distance = ("distance", node.kind, left, right)
            if distance not in self.columns:
                self._eliminate_distance(distance, left, right, self._horizons[node.kind, left, right], not until)
            key = ("within", node.high - node.low, *distance)
            self.columns[key] = (self.columns[distance] <= node.high - node.low).astype(np.int64)
        for _ in range(node.low):
            after = self._next(key)
            key = ("step", *key)
            self.columns[key] = (self.holds(after) & self._operand(left, not until)).astype(np.int64)
        return self.holds(key) if until else ~self.holds(key)

    def _operand(self, number: int, negate: bool) -> Mask:
        truth = self.holds(("node", number))
        return ~truth if negate else truth

    def _eliminate_until(self, key: _Key, left: int, right: int, negate: bool) -> None:
        a, b = self._operand(left, negate), self._operand(right, negate)
        through = a & ~b
        can_hold = self._reaching(b, through)
        can_fail = self._reaching(~can_hold, through)
        self._split(key, [can_fail, can_hold], lambda s, t, y: np.where(through[s], y, b[s]))

    def _eliminate_distance(self, key: _Key, left: int, right: int, horizon: int, negate: bool) -> None:
        """Split by the number of steps until b is reached through a; `horizon + 1` stands for more, or never."""
        a, b = self._operand(left, negate), self._operand(right, negate)
        through = a & ~b
        possible = [b]
        late = ~b
        for _ in range(horizon):
            possible.append(through & self._before(possible[-1]))
            late = ~b & (~a | self._before(late))
        more = horizon + 1
        stop = np.where(b, 0, more)
        self._split(key, [*possible, late], lambda s, t, y: np.where(through[s], np.minimum(y + 1, more), stop[s]))

    def _before(self, mask: Mask) -> Mask:
        """Where some successor is in `mask`."""
        return marked(len(self.origin), self.sources[mask[self.targets]])

    def _reaching(self, goal: Mask, through: Mask) -> Mask:
        """Where `goal` is reached by a path whose earlier states are all in `through`."""
        usable = through[self.sources]
        return coreachable(len(self.origin), self.sources[usable], self.targets[usable], goal)

    def _split(self, key: _Key, possible: list[Mask], value_at_source: Callable[[Ints, Ints, Ints], Ints]) -> None:
        """Split every node into one copy for each value it can have, and store the value as column `key`.

        Args:
            key: key of the new column.
            possible: for each value 0, 1, ... the (c,) mask of the nodes that can have it.
            value_at_source: value at s, given s, t and the value at t, for the edges s -> t.
        """
        counts = np.zeros(len(self.origin), dtype=np.int64)
        for mask in possible:
            counts += mask
        if np.any(counts < 1):
            raise EngineError("a state of a bottom component has no truth value for a temporal operator")
        node = np.concatenate([np.flatnonzero(mask) for mask in possible])
        value = np.repeat(np.arange(len(possible)), [np.count_nonzero(mask) for mask in possible])
        if len(node) == len(self.origin):
            self.columns[key] = np.empty(len(node), dtype=np.int64)
            self.columns[key][node] = value
            return
        edge_count = int(counts[self.targets].sum())
        if edge_count > EDGE_LIMIT:
            raise NoAnswerError(
                f"deciding the formula in the recurrent part of the chain needs a graph of {edge_count} edges; "
                f"the limit is {EDGE_LIMIT}"
            )
        code = np.sort(node * len(possible) + value)
        node, value = np.divmod(code, len(possible))
        first = np.concatenate([[0], np.cumsum(counts)])
        targets = ranges(first[self.targets], first[self.targets + 1])
        edge = np.repeat(np.arange(len(self.targets)), counts[self.targets])
        source = self.sources[edge]
        wanted = source * len(possible) + value_at_source(source, self.targets[edge], value[targets])
        sources = np.minimum(np.searchsorted(code, wanted), len(code) - 1)
        if np.any(code[sources] != wanted):
            raise EngineError("the truth of a temporal operator is impossible where an edge requires it")
        self.sources, self.targets = sources, targets
        self.origin = self.origin[node]
        self.columns = {name: column[node] for name, column in self.columns.items()}
        self.columns[key] = value
