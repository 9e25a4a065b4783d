"""Values of a number of steps for many chains of one graph at once: gains over N steps, and quantiles of times.

    gained(k + 1) = gain + P gained(k)                  from gained(0) = 0
    left(k + 1)   = P left(k) outside of the goal       the chance that the goal was not reached within k steps

Only non-negative numbers are added and multiplied. With at most d transitions per state, whose doubles miss the exact
sum of their row by d u (u = 2^-53), every number is off by a factor of at most exp(k (3d + 6) u) after k steps, and
where the doubles are off by a factor 1 +- v, by one of (1 + v)^k more.

**Quantiles.** The time by which the goal is reached with probability q is the least k with left(k) <= 1 - q. `left`
is known to its last digits however small it is, so this is decided unless it is equal or nearly so, and there it is
computed in fractions. No k is enough where the goal is reached with a probability below q, or with q exactly but
never for certain by any time.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from verifier.base.arrays import ROUNDOFF, Floats, Ints, Mask, rows_of
from verifier.base.errors import NoAnswerError
from verifier.base.graphs import coreachable, on_cycle
from verifier.chains.chain import MarkovChain
from verifier.checking.component_solving import add_up

NEVER = -1
"""The number of steps that stands for no number of steps."""
MOST_STEPS = 1_000_000
"""Steps that are taken for a quantile."""
_NEAR = 2.0**-40
_MOST_DIGITS = 10**8
"""Bits of all fractions together, of those that settle a quantile."""


@dataclass(frozen=True, eq=False)
class Steps:
    """One step of many chains of one graph; with several rows for each state where the world decides.

    Attributes:
        indptr, indices: the graph.
        values: (k, M) probabilities.
        entry: (nnz,) which of them each transition has.
    """

    indptr: Ints
    indices: Ints
    values: Floats
    entry: Ints

    def of(self, numbers: Floats) -> Floats:
        """(rows, M) expectation after one step of (n, M) numbers of the states."""
        n, edges = len(self.indptr) - 1, len(self.indices)
        if self.values.shape[1] == 1:
            matrix = csr_array((self.values[self.entry, 0], self.indices, self.indptr), shape=(n, len(numbers)))
            return np.asarray(matrix @ numbers)
        row_sum = csr_array((np.ones(edges), np.arange(edges), self.indptr), shape=(n, edges))
        return add_up(row_sum, self._each * numbers[self.indices])

    @cached_property
    def _each(self) -> Floats:
        """(nnz, M) probability of each transition."""
        return np.take(self.values, self.entry, axis=0)

    def error_after(self, steps: int, value_error: float) -> tuple[float, float]:
        """Relative error by rounding of what was computed in so many steps, and by that of the probabilities."""
        width = int(np.diff(self.indptr).max())
        rounding = math.expm1(1.01 * (steps + 1) * (3 * width + 6) * ROUNDOFF)
        return rounding, math.expm1(1.01 * (steps + 1) * value_error)


def gained(steps: Steps, gains: Floats, count: int, best: Callable[[Floats], Floats] = lambda rows: rows) -> Floats:
    """(n, M) what is expected to be gained in so many steps, for (n, M) gains of one step; with the `best` of several
    rows for each state."""
    total = np.zeros_like(gains)
    for _ in range(count):
        following = best(steps.of(total)) + gains
        if np.array_equal(following, total):
            break  # nothing more is gained
        total = following
    return total


def quantiles(steps: Steps, goal: Mask, initial: Ints, level: Fraction, probability: Floats) -> Ints:
    """(M, m) least numbers of steps by which the goal is reached with a probability of at least `level`; `NEVER`.

    For draws of matrices: what is equal or nearly so is decided by the doubles.

    Args:
        steps: the chains.
        goal: (n,) the states to reach.
        initial: (m,) where they begin.
        level: above 0, up to 1.
        probability: (M, m) that the goal is reached at all.

    Raises:
        NoAnswerError: more than `MOST_STEPS` steps.
    """
    cyclic = _cyclic(steps.indptr, steps.indices, goal)[initial]
    never = (probability < float(level)) | (cyclic & (probability <= float(level)))
    counts = np.full(probability.shape, NEVER, dtype=np.int64)
    left = np.repeat((~goal).astype(np.float64)[:, None], len(probability), axis=1)
    rest, taken = float(1 - level), 0
    while True:
        done = (rest >= left[initial].T) & (counts < 0) & ~never
        counts[done] = taken
        if np.all((counts >= 0) | never):
            return counts
        before, left, taken = left, steps.of(left), taken + 1
        left[goal] = 0
        if np.array_equal(left, before):
            return counts  # what is left stays for ever: the probability was above the level by rounding alone
        _refuse_many(taken)


def exact_quantiles(
    chain: MarkovChain,
    goal: Mask,
    level: Fraction,
    value_error: float,
    surely: Callable[[], list[Fraction]],
    exact_chain: Callable[[], MarkovChain] | None,
) -> Ints:
    """(m,) as `quantiles`, of one chain and beyond doubt.

    Args:
        chain, goal, level: what is asked.
        value_error: largest relative error of the chain's probabilities.
        surely: the probabilities that the goal is reached at all, exactly; asked only where that matters.
        exact_chain: the same chain with its fractions; None where there is none.

    Raises:
        NoAnswerError: more than `MOST_STEPS` steps, or fractions too long.
    """
    steps = Steps(chain.indptr, chain.indices, chain.probabilities[:, None], np.arange(chain.transition_count))
    initial, rest = chain.initial, 1 - level
    possible = coreachable(chain.state_count, rows_of(chain.indptr), chain.indices, goal)
    cyclic = _cyclic(chain.indptr, chain.indices, goal)[initial]
    counts, taken = np.full(len(initial), NEVER, dtype=np.int64), 0
    open_: Mask = possible[initial] & ~(cyclic & (rest == 0))
    # What is left, and the part of it that never reaches the goal.
    left = np.stack([~goal, ~possible], axis=1).astype(np.float64)
    doubtful: dict[int, _Masses] = {}
    reach: list[Fraction] | None = None
    while np.any(open_):
        _refuse_many(taken)
        off = sum(steps.error_after(taken, value_error))
        now, lost = left[initial].T
        near = (now * (1 - off - _NEAR) <= float(rest)) | (lost > float(rest))
        for k in np.flatnonzero(open_ & near).tolist():
            most, least = (Fraction(float(now[k])) * Fraction(1 + side * off) for side in (1, -1))
            settled = k in doubtful or most > rest >= least
            if settled:  # equal, or nearly so
                if exact_chain is None:
                    raise NoAnswerError("the quantile is too close to its level to be told in doubles")
                if k not in doubtful:
                    doubtful[k] = _Masses(exact_chain(), goal, int(initial[k]))
                most = least = doubtful[k].left_after(taken)
            if most <= rest:
                counts[k], open_[k] = taken, False
            elif Fraction(float(lost[k])) * Fraction(1 - off) > rest:
                open_[k] = False
            elif settled and cyclic[k]:
                reach = surely() if reach is None else reach
                open_[k] = reach[k] > level
        left, taken = steps.of(left), taken + 1
        left[goal] = 0
    return counts


def _refuse_many(steps: int) -> None:
    if steps > MOST_STEPS:
        raise NoAnswerError(
            f"the quantile lies behind {MOST_STEPS} steps", hint="ask a lower level, or the probability of a bound"
        )


def _cyclic(indptr: Ints, indices: Ints, goal: Mask) -> Mask:
    """(n,) the states from which a path may pass a cycle on its way to the goal: it has no longest one."""
    n, sources = len(indptr) - 1, rows_of(indptr)
    inside = coreachable(n, sources, indices, goal) & ~goal
    kept = inside[sources] & inside[indices]
    sources, targets = sources[kept], indices[kept]
    return coreachable(n, sources, targets, on_cycle(n, sources, targets))


class _Masses:
    """The chance of each state after k steps from one state without the goal, in fractions."""

    def __init__(self, chain: MarkovChain, goal: Mask, start: int) -> None:
        assert chain.fractions is not None
        self._chain, self._goal, self._steps = chain, goal, 0
        self._fractions = chain.fractions
        self._masses = {} if goal[start] else {start: Fraction(1)}

    def left_after(self, steps: int) -> Fraction:
        """That the goal was not reached within so many steps; not fewer than asked before."""
        starts, targets = self._chain.indptr, self._chain.indices
        while self._steps < steps:
            following: dict[int, Fraction] = {}
            for state, mass in self._masses.items():
                for edge in range(starts[state], starts[state + 1]):
                    target = int(targets[edge])
                    if not self._goal[target]:
                        following[target] = following.get(target, Fraction(0)) + mass * self._fractions[edge]
            self._masses, self._steps = following, self._steps + 1
            if sum(fraction.denominator.bit_length() for fraction in following.values()) > _MOST_DIGITS:
                raise NoAnswerError("the quantile is too close to its level to be told within the limits")
        return sum(self._masses.values(), Fraction(0))
