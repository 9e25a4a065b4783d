r"""Formulas with a long step bound, counted on the chain itself in place of one obligation for each step left.

    a U[i,j] b                      and F[i,j], G[i,j], R[i,j], X[i], which are it or its dual
    G[i,j] (p -> F[0,m] b)          and its dual F[i,j] (p & G[0,m] b)

with state formulas a, b and p. The first is a walk that stops at b and is cut where neither a nor b holds, for
j - i steps, behind a walk through a for i steps (`powers.after_steps`).

The second, behind i steps and with n = j - i, is broken when some p at a position up to n sees no b within m steps.
Two ways to count it:

* *Windows apart.* Where b is out of reach for ever, a pending p is lost at once. Elsewhere let r be the largest
  probability that b has neither come within m steps nor got out of reach. Requiring b within m steps in place of b
  ever changes the probability by (n + 1) r at most. What then remains has one bit of memory: whether a p waits for b.
* *Ages.* Where r is not that small: one state for every chain state and number of steps that the oldest p waits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from verifier.base.arrays import Ints, Mask, rows_of
from verifier.base.errors import NoAnswerError
from verifier.base.graphs import coreachable, on_cycle
from verifier.chains.chain import MarkovChain
from verifier.checking.batch import BatchResult
from verifier.checking.powers import NEGLIGIBLE, Expected, SubChain, after_steps
from verifier.checking.product import MOST_OBLIGATIONS
from verifier.checking.recurrence import state_mask
from verifier.language.expressions.syntax import Node
from verifier.language.ltl.normal_form import FALSE_NODE, TRUE_NODE, PositiveFormula
from verifier.systems.space import truth

LONGEST_UNROLLED = 20_000
"""Obligations, one for each step left, beyond which a formula is counted."""
LARGEST_UNROLLED = 5_000_000
"""The same times the states of the chain."""
BYTES_PER_PRODUCT_STATE = 1000
"""About what a product and solving on it take."""
MOST_AGES = 20_000_000
"""Transitions of the chain with ages."""
MOST_APART = 2.0**-40
"""What may be lost by leaving out the bound of each window."""


@dataclass(frozen=True, eq=False)
class LongWindow:
    """A formula that is counted.

    Attributes:
        negated: whether it is the complement of what follows.
        left, right: (n,) bool, the states of a and b in `a U[low,high] b`, or of p and b in
            `G[low,high] (p -> F[0,response] b)`.
        low, high: the window.
        response: above 0; None for the first form.
    """

    negated: bool
    left: Mask
    right: Mask
    low: int
    high: int
    response: int | None = None

    @property
    def obligations(self) -> int:
        """How many it would have, one for each step or pair of steps left."""
        return self.high if self.response is None else self.high * self.response

    @property
    def is_long(self) -> bool:
        """Whether counting is the better way."""
        return self.obligations > LONGEST_UNROLLED or self.obligations * len(self.left) > LARGEST_UNROLLED

    def cannot_unroll(self, memory_bytes: int) -> bool:
        """Whether its product with the chain is out of reach, by the number of obligations or the memory it needs."""
        needed = self.obligations * len(self.left) * BYTES_PER_PRODUCT_STATE
        return self.has_no_product or needed > memory_bytes

    @property
    def has_no_product(self) -> bool:
        """Whether its obligations, those of no step left, true and false among them, are too many for any."""
        return self.obligations + 3 > MOST_OBLIGATIONS


def long_window(formula: Node, labels: Mapping[str, Mask], indptr: Ints, indices: Ints) -> LongWindow | None:
    """The formula as a window, where it is one that is too long to be unrolled.

    Args:
        formula: over names of `labels`.
        labels: name -> (n,) bool mask.
        indptr, indices: the chain's graph in compressed sparse rows.
    """
    n = len(indptr) - 1
    window = any_window(formula, labels, n)
    if window is None or not window.is_long:
        return None
    if window.response is None:
        # Where no path stays undecided for long, few of the obligations occur.
        sources = rows_of(indptr)
        undecided = window.left & (~window.right if window.low == 0 else True)
        inside = undecided[sources] & undecided[indices]
        if not np.any(on_cycle(n, sources[inside], indices[inside])):
            return None
    return window


def any_window(formula: Node, labels: Mapping[str, Mask], n: int) -> LongWindow | None:
    """The formula as a window, however short; arguments as for `long_window`, n states."""
    reader = _Reader(PositiveFormula(formula), labels, n)
    return reader.until() or reader.response()


class _Reader:
    """Looks for the two forms in a positive normal form."""

    def __init__(self, formula: PositiveFormula, labels: Mapping[str, Mask], n: int) -> None:
        self._nodes = formula.nodes
        self._root = formula.nodes[formula.root]
        self._truth = [truth(node, labels, n) for node in formula.propositions]
        self._n = n

    def until(self) -> LongWindow | None:
        """`a U[i,j] b`, or `a R[i,j] b` as the complement of `!a U[i,j] !b`, or `X[i] b`."""
        root = self._root
        masks = [mask for mask in map(self._mask, root.operands) if mask is not None]
        if len(masks) < len(root.operands):
            return None
        if root.kind == "X":
            return LongWindow(False, np.ones(self._n, dtype=bool), masks[0], root.low, root.low)
        if root.kind not in ("U", "R") or root.high is None:
            return None
        left, right = (mask ^ (root.kind == "R") for mask in masks)
        return LongWindow(root.kind == "R", left, right, root.low, root.high)

    def response(self) -> LongWindow | None:
        """`G[i,j] (e | F[0,m] b)` with p = !e, or `F[i,j] (p & G[0,m] c)` as its complement for b = !c."""
        root = self._root
        always = root.kind == "R"
        outer, inner_kind, junction = (FALSE_NODE, "U", "|") if always else (TRUE_NODE, "R", "&")
        if root.kind not in ("U", "R") or root.high is None or root.operands[0] != outer:
            return None
        body = self._nodes[root.operands[1]]
        parts = {
            number: self._mask(number) for number in (body.operands if body.kind == junction else root.operands[1:])
        }
        inner = [self._nodes[number] for number, mask in parts.items() if mask is None]
        states = [mask ^ always for mask in parts.values() if mask is not None]
        if len(inner) != 1 or inner[0].kind != inner_kind or inner[0].high is None or inner[0].low > 0:
            return None
        b = self._mask(inner[0].operands[1])
        if inner[0].operands[0] != (TRUE_NODE if always else FALSE_NODE) or b is None:
            return None
        p = np.logical_and.reduce([np.ones(self._n, dtype=bool), *states])
        return LongWindow(not always, p, b ^ (not always), root.low, root.high, inner[0].high)

    def _mask(self, number: int) -> Mask | None:
        return state_mask(self._nodes, number, self._truth, self._n)


def counted(chain: MarkovChain, window: LongWindow, value_error: float, seconds: float | None = None) -> BatchResult:
    """Probability of the formula at the initial states; arrays of shape (1, m).

    Args:
        chain: without a `rounding_defect`.
        window: of this chain.
        value_error: largest relative error of the chain's probabilities against the true ones.
        seconds: what it may take; None for no limit.

    Raises:
        NoAnswerError: it would take longer, or too much memory.
    """
    if chain.rounding_defect > 0:
        raise NoAnswerError("long step bounds are counted on true probabilities only, not on rounded ones")
    count = _Count(chain, window, value_error, seconds)
    expected = count.window() if window.response is None else count.response(window.response)
    lower, upper = expected.lower[chain.initial], expected.upper[chain.initial]
    if window.negated:
        lower, upper = np.nextafter(1 - upper, -np.inf), np.nextafter(1 - lower, np.inf)
    lower, upper = np.maximum(lower, 0.0), np.minimum(upper, 1.0)
    steps = np.full((1, len(chain.initial)), float(window.high + (window.response or 0)))
    return BatchResult(
        probability=((lower + upper) / 2)[None],
        error_bound=np.nextafter((upper - lower) / 2, np.inf)[None],
        representation_bound=expected.representation[chain.initial][None],
        expected_steps=steps,
        lower=lower[None],
        upper=upper[None],
    )


@dataclass(frozen=True, eq=False)
class _Count:
    chain: MarkovChain
    of: LongWindow
    value_error: float
    seconds: float | None

    def window(self) -> Expected:
        """`a U[i,j] b` at every state."""
        a, b = self.of.left, self.of.right
        goal = b.astype(np.float64)
        stopping = self._part(a & ~b, a | b, ~a & ~b)
        inside = self._after(stopping, Expected(goal, goal, np.zeros(len(a))), self.of.high - self.of.low)
        return self._after(self._part(a, np.ones_like(a), ~a), inside, self.of.low)

    def response(self, bound: int) -> Expected:
        """`G[0,n] (p -> F[0,m] b)` at every state, behind so many steps as the window begins later."""
        p, b, n = self.of.left, self.of.right, self.of.high - self.of.low
        lost = ~coreachable(len(b), self._sources, self.chain.indices, b)
        waiting = ~b & ~lost
        ones = waiting.astype(np.float64)
        unanswered = after_steps(
            self._part(waiting, waiting, ~waiting),
            (ones, ones),
            bound,
            self.value_error,
            negligible=NEGLIGIBLE / (n + 1),
            seconds=self.seconds,
        )
        rest = float(unanswered.upper.max())
        apart = (n + 1) * rest
        if apart <= MOST_APART:
            expected = self._waiting(p, b, lost, bound, None, rest)
            moved = apart * np.exp(min(2.1 * bound * self.value_error, 700.0))
            apart_too = Expected(
                np.maximum(expected.lower - apart, 0), expected.upper, expected.representation + apart + moved
            )
            return self._later(apart_too)
        if bound * self.chain.transition_count > MOST_AGES:
            raise NoAnswerError(
                f"a bounded response needs one state for each of {len(b)} states and {bound} steps that it may wait",
                hint="shorten the inner window, or leave its bound out",
            )
        return self._later(self._waiting(p, b, lost, bound, bound, 0.0))

    def _later(self, expected: Expected) -> Expected:
        """The same behind as many steps as the window begins later."""
        everywhere = np.ones_like(self.of.left)
        return self._after(self._part(everywhere, everywhere, ~everywhere), expected, self.of.low)

    def _waiting(self, p: Mask, b: Mask, lost: Mask, bound: int, counted_ages: int | None, rest: float) -> Expected:
        """With so many ages of the oldest p that waits; None for one bit that says whether one does."""
        n, ages = len(b), 1 if counted_ages is None else counted_ages
        start = np.repeat([1.0, 0.0], [n, n * ages])
        known = Expected(start, start, np.zeros_like(start))
        settled = self._after(self._ageing(np.zeros_like(p), b, lost, counted_ages), known, bound)
        upper = np.minimum(settled.upper + np.where(start == 1, 0.0, rest), 1.0)
        final = Expected(settled.lower, upper, settled.representation)
        expected = self._after(self._ageing(p, b, lost, counted_ages), final, self.of.high - self.of.low)
        place = np.where(p & ~b, n, 0) + np.arange(n)
        return Expected(expected.lower[place], expected.upper[place], expected.representation[place])

    def _ageing(self, p: Mask, b: Mask, lost: Mask, counted_ages: int | None) -> SubChain:
        """States 0 .. n-1 with nothing waiting, then n for every age of the oldest p, or n in all."""
        n, s, t = len(b), self._sources, self.chain.indices
        ages, older = (1, 0) if counted_ages is None else (counted_ages, 1)
        begins = p & ~b
        fine = ~begins[t] | ~lost[t]
        groups = [(s[fine], np.where(begins[t], n + t, t)[fine], np.flatnonzero(fine))]
        source = np.concatenate([n * (1 + age) + s for age in range(ages)])
        following = np.concatenate([n * (1 + age + older) + t for age in range(ages)])
        target, edge = np.tile(t, ages), np.tile(np.arange(len(t)), ages)
        kept = b[target] | (~lost[target] & (following < n * (1 + ages)))
        groups.append((source[kept], np.where(b[target], target, following)[kept], edge[kept]))
        sources, targets, edges = (np.concatenate(part) for part in zip(*groups, strict=True))
        size = n * (1 + ages)
        degree = np.tile(np.diff(self.chain.indptr), 1 + ages)
        leaks = np.bincount(sources, minlength=size) < degree
        return SubChain(self.chain, np.tile(np.arange(n), 1 + ages), sources, targets, edges, leaks)

    def _part(self, moving: Mask, inside: Mask, leaking: Mask) -> SubChain:
        """The chain's rows of `moving` states as far as they lead into `inside`."""
        kept = np.flatnonzero(moving[self._sources] & inside[self.chain.indices])
        sources = self._sources[kept]
        n = self.chain.state_count
        short = moving & (np.bincount(sources, minlength=n) < np.diff(self.chain.indptr))
        return SubChain(self.chain, np.arange(n), sources, self.chain.indices[kept], kept, leaking | short)

    @cached_property
    def _sources(self) -> Ints:
        return rows_of(self.chain.indptr)

    def _after(self, chain: SubChain, ends: Expected, steps: int) -> Expected:
        expected = after_steps(chain, (ends.lower, ends.upper), steps, self.value_error, seconds=self.seconds)
        moved = np.minimum(expected.representation + float(ends.representation.max()), 1.0)
        return Expected(expected.lower, expected.upper, moved)
