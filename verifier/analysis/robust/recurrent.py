"""Obligations that speak of what happens again and again, or from some time on always: what the states that are
visited infinitely often decide.

A disjunction of conjunctions of `G F a` and `F G a` holds on a run exactly if, in one of the conjunctions, every
state that it visits infinitely often has all the `a` of the `F G a`, and some of them each `a` of the `G F a`. These
states form an end component, and in every end component nature can visit all states again and again. So it can meet
such an obligation by staying exactly if some end component among the states with the `a` of the `F G a` has them all.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from verifier.analysis.objective import Objective
from verifier.base.arrays import Ints, Mask
from verifier.checking.recurrence import state_mask

MOST_TERMS = 64


@dataclass(frozen=True, eq=False)
class Recurrence:
    """One conjunction: (p,) product states that alone may be visited again and again, and sets of them of each of
    which one must be."""

    always: Mask
    often: tuple[Mask, ...]


def recurrences(objective: Objective, obligation: int) -> tuple[list[Recurrence], list[Recurrence]] | None:
    """The conjunctions that meet an obligation, and those that violate it; None where it speaks of other things."""
    product = objective.product
    nodes, known = product.obligations.formula.nodes, np.maximum(product.state, 0)
    propositions = [mask[known] for mask in product.propositions]

    def literal(number: int) -> tuple[bool, Mask] | None:
        """Whether it is some `G F a` (else `F G a`), and where a holds."""
        outer = nodes[number]
        if outer.kind not in ("U", "R") or (outer.low, outer.high) != (0, None):
            return None
        inner = nodes[outer.operands[1]]
        if inner.kind != ("R" if outer.kind == "U" else "U") or (inner.low, inner.high) != (0, None):
            return None
        idle = ("true", "false") if outer.kind == "U" else ("false", "true")
        mask = state_mask(nodes, inner.operands[1], propositions, len(known))
        if (nodes[outer.operands[0]].kind, nodes[inner.operands[0]].kind) != idle or mask is None:
            return None
        return outer.kind == "R", mask

    conjunctions = _terms(objective, obligation)
    if conjunctions is None:
        return None
    terms = [[literal(number) for number in term] for term in conjunctions]
    if any(mask is None for term in terms for mask in term):
        return None
    literals = [[mask for mask in term if mask is not None] for term in terms]
    if math.prod(map(len, literals)) > MOST_TERMS:
        return None
    # What is violated: of every conjunction some part, whose opposite then holds.
    opposite = [[(not often, ~mask) for often, mask in chosen] for chosen in itertools.product(*literals)]
    size = len(known)
    return [_recurrence(term, size) for term in literals], [_recurrence(term, size) for term in opposite]


def _terms(objective: Objective, obligation: int) -> list[frozenset[int]] | None:
    """An obligation as a disjunction of conjunctions of nodes; None where there are many."""
    known = objective.product.obligations[obligation]
    if known.kind == "terms":
        return list(known.terms)
    parts = [_terms(objective, part) for part in sorted(known.parts)]
    told = [part for part in parts if part is not None]
    if len(told) < len(parts):
        return None
    if known.kind == "|":
        return [term for part in told for term in part]
    if math.prod(map(len, told)) > MOST_TERMS:
        return None
    return [frozenset().union(*chosen) for chosen in itertools.product(*told)]


def _recurrence(parts: Sequence[tuple[bool, Mask]], size: int) -> Recurrence:
    always = np.ones(size, dtype=bool)
    for often, mask in parts:
        always &= mask | often
    return Recurrence(always, tuple(mask for often, mask in parts if often))


def component_meeting(
    recurrences: Sequence[Recurrence], inside: Mask, components_among: Callable[[Mask], Ints]
) -> Ints | None:
    """The states of an end component that meets one of the conjunctions; None where there is none.

    Args:
        recurrences: the conjunctions.
        inside: (p,) the states of the component to look in.
        components_among: the maximal end components among some states, (p,) numbers, -1 outside.
    """
    for recurrence in recurrences:
        of = components_among(inside & recurrence.always)
        for number in range(int(of.max(initial=-1)) + 1):
            members = of == number
            if all(np.any(members & mask) for mask in recurrence.often):
                return np.flatnonzero(members)
    return None
