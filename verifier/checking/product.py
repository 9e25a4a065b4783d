"""The product of a Markov chain's graph with the progression of a formula.

A product state (s, o) says: the chain is in s, and o is the obligation that remains after the label of s was
read. The path from s on, its first position included, meets the formula's earlier obligation exactly when the path
from the *successor* on meets o. Obligations are deterministic, so the product of a chain is a chain:

    (s, o) -> (t, progress(o, label of t))    with the probability of    s -> t.

All states whose obligation is `true` are one absorbing state, number `ACCEPT`; all those with `false` are number
`REJECT`. The probability of the formula is that of reaching `ACCEPT`, or a bottom component in which the
obligation holds almost surely (`verifier.checking.recurrence`).

The product depends on the chain's graph and labels only. Each of its transitions keeps the number of the chain's
transition that it comes from, so filling it with the probabilities of another chain of the same graph is one
gather, and a transition may later get probability 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from verifier.base.arrays import Ints, Mask, rows_of
from verifier.base.budget import Cache
from verifier.base.errors import NoAnswerError
from verifier.base.graphs import ranges
from verifier.chains.chain import MarkovChain
from verifier.language.expressions.syntax import Node
from verifier.language.ltl.progression import ACCEPT, REJECT, Obligations
from verifier.systems.space import truth

MOST_OBLIGATIONS = 100_000
"""Obligations of one formula that are told apart."""
LONG = 2000
"""States of a chain from which on its product is made at once where that is possible, not step by step."""
MOST_DECIDED = 8
"""Supports of one product whose decided components are kept."""
_MOST_CLOSED = 200
"""Pairs of an obligation and a letter that are tried for it."""
_AT_ONCE = 1_000_000
"""Transitions of all pairs of a state and an obligation, reachable or not, that are made at once."""
_PAGE_BITS = 8


@dataclass(frozen=True, eq=False)
class Product:
    """The part of the product that is reachable from the initial states, in compressed sparse rows.

    Attributes:
        indptr: (p + 1,) int64, row starts. The rows of `ACCEPT` and `REJECT` are empty: both absorb.
        indices: (q,) int64, successor of each product transition; several may lead to the same one.
        edge: (q,) int64, the chain's transition (a position in its value array) behind each product transition.
        state: (p,) int64, the chain's state; -1 for `ACCEPT` and `REJECT`.
        obligation: (p,) int64, number in `obligations` of what remains after the state's label.
        start: (m,) int64, the product state of each initial state.
        obligations: the obligations of the formula.
        chain_indptr: (n + 1,) int64, the chain's row starts.
        chain_indices: (nnz,) int64, the chain's successors.
        propositions: one (n,) bool mask for each proposition of `obligations.formula`.
        decided: what was found out about it under the last few supports (`verifier.checking.plan`).
        tried: which combination of choices in a component gives the formula another value, if one does, and how many
            were tried (`verifier.analysis.robust.graph`).
    """

    indptr: Ints
    indices: Ints
    edge: Ints
    state: Ints
    obligation: Ints
    start: Ints
    obligations: Obligations
    chain_indptr: Ints
    chain_indices: Ints
    propositions: tuple[Mask, ...]
    decided: Cache = field(init=False, default_factory=partial(Cache, MOST_DECIDED))
    tried: dict[tuple[object, ...], tuple[dict[int, frozenset[int]], int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.indptr) != self.state_count + 1 or not len(self.indices) == len(self.edge) == self.indptr[-1]:
            raise ValueError("the arrays of a product must fit together")
        if self.indptr[2] != 0 or self.start.min() < 0 or self.start.max() >= self.state_count:
            raise ValueError("accept and reject must have no successors, and start states must be states")

    @property
    def state_count(self) -> int:
        """Number of product states, p, with `ACCEPT` and `REJECT`."""
        return len(self.state)

    @property
    def sources(self) -> Ints:
        """(q,) int64, the product state that each product transition leaves."""
        return rows_of(self.indptr)

    def on_part(self, indptr: Ints, indices: Ints) -> Product:
        """The product on a part of the graph, which lacks transitions but no states.

        States that can no longer be reached stay. Successors must increase within rows, in the graph and in its part.
        """
        whole, part = (
            np.ravel_multi_index((rows_of(starts), ends), (len(indptr), len(indptr)))
            for starts, ends in ((self.chain_indptr, self.chain_indices), (indptr, indices))
        )
        there = np.isin(whole, part)
        number, kept = np.cumsum(there) - 1, there[self.edge]
        lengths = np.bincount(self.sources[kept], minlength=self.state_count)
        return replace(
            self,
            indptr=np.concatenate([[0], np.cumsum(lengths)]),
            indices=self.indices[kept],
            edge=number[self.edge[kept]],
            chain_indptr=indptr,
            chain_indices=indices,
        )


def build_product(
    indptr: Ints,
    indices: Ints,
    labels: Mapping[str, Mask],
    formula: Node,
    initial: Ints,
    *,
    max_states: int = 50_000_000,
) -> Product:
    """Product of the chain's graph with the progression of `formula`, from every initial state.

    Args:
        indptr: (n + 1,) int64, the chain's row starts.
        indices: (nnz,) int64, the chain's successors.
        labels: name -> (n,) bool mask, for every name in `formula`.
        formula: names, `true`, `false`, connectives and temporal operators.
        initial: (m,) int64, the states asked about; each is read as position 0 of its paths.
        max_states: most product states to build.

    Raises:
        NoAnswerError: if the product or the progression would be larger.
        InputError: a name has no label.
    """
    obligations = Obligations(formula, MOST_OBLIGATIONS)
    n = len(indptr) - 1
    propositions = tuple(truth(node, labels, n) for node in obligations.formula.propositions)
    letter_class, letters = _letter_classes(propositions, n)
    successor = _Successors(obligations, letters)
    numbering = _Numbering(n, max_states)

    first = successor(np.full(len(initial), obligations.initial), letter_class[initial])
    open_obligations = _closed(successor, first, len(letters)) if n >= LONG else None
    if open_obligations is not None and len(open_obligations) and _fits_at_once(len(open_obligations), len(indices)):
        arrays = _at_once(indptr, indices, letter_class, successor, (open_obligations, initial, first), max_states)
        return Product(
            *arrays, obligations=obligations, chain_indptr=indptr, chain_indices=indices, propositions=propositions
        )
    start, new = numbering.number(initial, first)
    states, remaining = [np.array([-1, -1])], [np.array([REJECT, ACCEPT])]
    lengths, targets, edges = [np.zeros(2, dtype=np.int64)], [], []
    frontier, frontier_obligation = initial[new], first[new]
    while len(frontier):
        states.append(frontier)
        remaining.append(frontier_obligation)
        length = indptr[frontier + 1] - indptr[frontier]
        edge = ranges(indptr[frontier], indptr[frontier + 1])
        target = indices[edge]
        target_obligation = successor(np.repeat(frontier_obligation, length), letter_class[target])
        numbers, new = numbering.number(target, target_obligation)
        lengths.append(length)
        targets.append(numbers)
        edges.append(edge)
        frontier, frontier_obligation = target[new], target_obligation[new]
    nothing = np.zeros(0, dtype=np.int64)
    return Product(
        indptr=np.concatenate([[0], np.cumsum(np.concatenate(lengths))]),
        indices=np.concatenate([nothing, *targets]),
        edge=np.concatenate([nothing, *edges]),
        state=np.concatenate(states),
        obligation=np.concatenate(remaining),
        start=start,
        obligations=obligations,
        chain_indptr=indptr,
        chain_indices=indices,
        propositions=propositions,
    )


def product_with(chain: MarkovChain, formula: Node, known: Product | None, max_states: int) -> Product:
    """The product of a chain with a formula; errors as `build_product`.

    Args:
        known: that of the formula with a graph that the chain is a part of, if there is one.
    """
    if known is None:
        return build_product(chain.indptr, chain.indices, chain.labels, formula, chain.initial, max_states=max_states)
    whole = len(known.chain_indices) == chain.transition_count
    return known if whole else known.on_part(chain.indptr, chain.indices)


def _closed(successor: _Successors, first: Ints, letters: int) -> Ints | None:
    """The open obligations that any labels lead to, in increasing order; None where there are many."""
    known: set[int] = set()
    pending = set(first.tolist()) - {ACCEPT, REJECT}
    while pending:
        known |= pending
        if len(known) * letters > _MOST_CLOSED:
            return None
        at = np.array(sorted(pending), dtype=np.int64)
        reached = successor(np.repeat(at, letters), np.tile(np.arange(letters), len(at)))
        pending = set(reached.tolist()) - known - {ACCEPT, REJECT}
    return np.array(sorted(known), dtype=np.int64)


def _fits_at_once(obligations: int, transitions: int) -> bool:
    return obligations <= 2 or obligations * transitions <= _AT_ONCE


def _at_once(
    indptr: Ints,
    indices: Ints,
    letter_class: Ints,
    successor: _Successors,
    begin: tuple[Ints, Ints, Ints],
    max_states: int,
) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints]:
    """The first six arrays of a product whose open obligations are few, without a round for each step of a path.

    `begin` has the open obligations, the initial states, and the obligation that remains after each.
    """
    obligations, initial, first = begin
    n, transitions, count = len(indptr) - 1, len(indices), len(obligations)
    place = np.full(obligations[-1] + 1, -1, dtype=np.int64)
    place[obligations] = np.arange(count)
    after = [successor(np.full(transitions, number), letter_class[indices]) for number in obligations.tolist()]
    remaining = np.concatenate(after)
    target = place[remaining] * n + np.tile(indices, count)
    opened = place[remaining] >= 0
    starts = place[first] * n + initial
    # The last node leads to all starts; ends of the search that are decided are left out.
    degree = np.add.reduceat(opened, _rows(indptr, transitions, count), dtype=np.int64)
    starts_open = np.unique(starts[place[first] >= 0])
    nodes = np.concatenate([target[opened], starts_open])
    ends = np.concatenate([[0], np.cumsum(degree), [len(nodes)]])
    graph = csr_array((np.ones(len(nodes)), nodes, ends), shape=(count * n + 1, count * n + 1))
    code = breadth_first_order(graph, count * n, return_predecessors=False)[1:].astype(np.int64)
    if len(code) + 2 > max_states:
        raise _too_large(len(code) + 2, max_states)
    number = np.empty(count * n, dtype=np.int64)  # of those in `code`; no other is read
    number[code] = 2 + np.arange(len(code))
    at, state = np.divmod(code, n)
    edge = ranges(indptr[state], indptr[state + 1])
    length = indptr[state + 1] - indptr[state]
    behind = np.repeat(at, length) * transitions + edge
    decided = np.array([REJECT, ACCEPT])
    return (
        np.concatenate([[0, 0, 0], np.cumsum(length)]),
        np.where(opened[behind], number[target[behind]], remaining[behind]),
        edge,
        np.concatenate([[-1, -1], state]),
        np.concatenate([decided, obligations[at]]),
        np.where(place[first] >= 0, number[starts], first),
    )


def _rows(indptr: Ints, transitions: int, count: int) -> Ints:
    """Where each row starts in `count` copies of a chain's transitions; no row of a chain is empty."""
    return (np.arange(count)[:, None] * transitions + indptr[None, :-1]).ravel()


def _too_large(states: int, limit: int) -> NoAnswerError:
    return NoAnswerError(
        f"the product of the chain with the formula has at least {states} states; the limit is {limit}"
    )


def _letter_classes(propositions: tuple[Mask, ...], n: int) -> tuple[Ints, list[int]]:
    """For each state a class, and for each class the letter (bit i: proposition i holds) of its states."""
    state_class, letters = np.zeros(n, dtype=np.int64), [0]
    for bit, mask in enumerate(propositions):
        split = 2 * state_class + mask
        present = np.bincount(split) > 0
        state_class = (np.cumsum(present) - 1)[split]
        letters = [letters[code // 2] | (code % 2) << bit for code in np.flatnonzero(present).tolist()]
    return state_class, letters


class _Successors:
    """`progress` on arrays: each pair of an obligation and a letter class is progressed once."""

    def __init__(self, obligations: Obligations, letters: list[int]) -> None:
        self._obligations = obligations
        self._letters = letters
        self._table = np.zeros((0, len(letters)), dtype=np.int64)

    def __call__(self, obligation: Ints, letter_class: Ints) -> Ints:
        """(k,) int64: the obligations that remain after the (k,) given ones have read the (k,) letters."""
        self._table = _grown(self._table, int(obligation.max(initial=0)) + 1)
        result = self._table[obligation, letter_class]
        unknown = result < 0
        if np.any(unknown):
            codes = np.unique(obligation[unknown] * len(self._letters) + letter_class[unknown])
            for code in codes.tolist():
                number, column = divmod(code, len(self._letters))
                self._table[number, column] = self._obligations.progress(number, self._letters[column])
            result = self._table[obligation, letter_class]
        return result


class _Numbering:
    """Numbers for pairs of a state and an obligation, in the order in which they are met.

    A table of pages, because a full table of states times obligations may not fit into memory: each obligation
    gets pages of `2**_PAGE_BITS` neighbouring states, allocated when one of them is met.
    """

    def __init__(self, n: int, max_states: int) -> None:
        self._pages_each = (n >> _PAGE_BITS) + 1
        self._page = np.zeros(0, dtype=np.int64)
        self._slots = np.zeros((0, 1 << _PAGE_BITS), dtype=np.int64)
        self._page_count = 0
        self._max_states = max_states
        self._next = 2  # after REJECT and ACCEPT

    def number(self, state: Ints, obligation: Ints) -> tuple[Ints, Ints]:
        """(k,) numbers of the pairs, and the positions at which new pairs stand first, in increasing number."""
        result = np.where(obligation == ACCEPT, ACCEPT, REJECT)
        open_pairs = np.flatnonzero(obligation > max(ACCEPT, REJECT))
        page, offset = self._locate(state[open_pairs], obligation[open_pairs])
        known = self._slots[page, offset]
        fresh = np.flatnonzero(known < 0)
        # Every new pair writes its position; where a pair stands more than once, one of the positions remains.
        self._slots[page[fresh], offset[fresh]] = fresh
        first = fresh[self._slots[page[fresh], offset[fresh]] == fresh]
        if self._next + len(first) > self._max_states:
            raise _too_large(self._next + len(first), self._max_states)
        self._slots[page[first], offset[first]] = self._next + np.arange(len(first))
        self._next += len(first)
        result[open_pairs] = self._slots[page, offset]
        return result, open_pairs[first]

    def _locate(self, state: Ints, obligation: Ints) -> tuple[Ints, Ints]:
        code = obligation * self._pages_each + (state >> _PAGE_BITS)
        self._page = _grown(self._page, int(code.max(initial=0)) + 1)
        missing = np.unique(code[self._page[code] < 0])
        self._page[missing] = self._page_count + np.arange(len(missing))
        self._page_count += len(missing)
        self._slots = _grown(self._slots, self._page_count)
        return self._page[code], state & ((1 << _PAGE_BITS) - 1)


def _grown(table: Ints, size: int) -> Ints:
    """The table with at least so many rows, and twice as many as before where it has to grow; new ones hold -1."""
    if size <= len(table):
        return table
    more = max(size, 2 * len(table)) - len(table)
    return np.concatenate([table, np.full((more, *table.shape[1:]), -1)])
