r"""Probabilities of reaching a target, for many value arrays of one chain at once, with a bound on their error.

The unknown probabilities satisfy x = W x + w, where W_st = p_st / d_s for s != t, w_s sums the same weights over
the states of probability 1, and d_s is the probability of leaving s. A component is solved after those it leads to.

**No subtraction.** In a stochastic chain d_s is the sum of the probabilities of leaving, not 1 - p_ss, and
components of at most `DENSE_LIMIT` states are solved by the elimination of Grassmann, Taksar and Heyman
(Regenerative analysis and steady state distributions for Markov chains, Operations Research 33, 1985). Only
non-negative numbers are added, multiplied and divided, so every result is relatively accurate down to the underflow
stated below, be it 1e-200 or the exit from a state with p_ss = 1 - 1e-15. In two cases this does not hold. Larger
components are solved by a sparse LU factorisation, which subtracts. In a chain of rounded probabilities d_s is
1 - p_ss, one rounding, and every component of more than one state is factorised.

*Relative bound.* u = 2^-53 is the unit roundoff. In a component of k states with at most d edges per state, x is
a ratio of two polynomials of degree k in the weights, with coefficients >= 0 and linear in the values outside
(matrix-tree theorem). Changing every weight by a factor within (1-e)/(1+e) .. (1+e)/(1-e) so changes x by a
factor within the k-th power of these, and one elimination step on p states changes every weight by at most p+4
roundings (O'Cinneide, Entrywise perturbation theory and error analysis for Markov chains, Numer. Math. 65, 1993).
Summed over the steps: at most 2k(d+2) + k(k+4)^2 roundings, and 2d+2 if k = 1. Factors multiply along a path
through the levels. With K their total, |x - x*| <= x (exp(1.1 K u) - 1), plus underflow.

*Underflow.* Leaving a component of k states may be as rare as the k-th power of a probability. An elimination in
which a number gets too small to be accurate is repeated with numbers of unlimited exponent (`elimination`). What is
left are products p_st x_t and, when values are put back in, at most k products per state. An error of 2^-1075 in
p_st x_t is that of changing x_t by 2^-1075 / p_st, and a state on its own divides by d_s. As x is a weighted mean of
the values outside, such errors add up over the states at most: to u' (d + k + 2) 2^-1074 / p, where u' is the number
of unknown states and p the least d_s of all or p_st out of an eliminated component. Where d_s = 1 - p_ss, weights
may add up to more than 1, and their largest sum to the power of the number of levels is a further factor. A p below
2^-1022 makes this bound useless, not wrong.

**Factorised components** have results of unknown quality, judged afterwards.

*Absolute bound.* Let A = I - W (W the exact weights), r = w - A x with x as computed, and t >= 0 with A t >= c > 0
in every row. Then A is a nonsingular M-matrix, A^-1 >= 0 and A^-1 1 <= t/c (Berman and Plemmons, Nonnegative
Matrices in the Mathematical Sciences, chapter 6), so |x - x*| = |A^-1 r| <= max|r| t/c. Both r and c are taken
with their own rounding: at most 2d+4 roundings of the sum of the non-negative products, and for underflow in
weights and products 2^-1074 max(1, x) and 2^-50 for each of d edges, as t < 2^1024. t approximates the
expected number of jumps (transitions to another state) before the value is decided; c must be at least 1/2.

**Representation.** The doubles p are the true probabilities rounded: each is off by a factor 1 +- v (v = u when
the true fraction was rounded once). That moves every weight by (1+v)/(1-v) at most, so x by at most that factor to
the power of the k's added up over the levels; and by at most 2v/(1-v) t/c, as each row of the change sums to at
most 2v/(1-v). The smaller of the two is reported, apart from the error of solving.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from verifier.checking.elimination import eliminate, eliminate_without_underflow, factorise_and_solve
from verifier.checking.graphs import Integers
from verifier.checking.plan import Block, Plan
from verifier.errors import EngineError

ROUNDOFF = 2.0**-53
"""Largest relative error of one operation on doubles, and of rounding a fraction to a double."""
DENSE_LIMIT = 200
"""Most states of a component solved by elimination on a full array; larger ones use a sparse LU factorisation."""
_CHUNK = 512
_SMALLEST = 2.0**-1074


@dataclass(frozen=True, eq=False)
class Solution:
    """Probabilities of reaching the target of a plan; each array is (M, m), matrix by initial state.

    Attributes:
        value: the probabilities.
        error: bound on |value - the exact solution for the given doubles|, rows scaled to sum 1 if stochastic.
        representation: bound on the distance from there to the solution for the true probabilities; it means
            nothing unless `stochastic`.
        jumps: bound on the expected number of jumps to another state before the value is decided.
    """

    value: NDArray[np.float64]
    error: NDArray[np.float64]
    representation: NDArray[np.float64]
    jumps: NDArray[np.float64]


def solve(
    plan: Plan,
    values: NDArray[np.float64],
    entry: Integers,
    *,
    stochastic: bool,
    value_error: float = ROUNDOFF,
    memory_bytes: int = 1 << 30,
) -> Solution:
    """Solve the plan's equations for every value array.

    Args:
        plan: the equations.
        values: (M, k) float64, probabilities; those of the plan's transitions must be positive.
        entry: (nnz,) int64, which of the k probabilities each of the chain's transitions has.
        stochastic: whether rows sum to 1 but for rounding. If not, a state is left with 1 - p_ss, and values may
            exceed 1.
        value_error: largest relative error of each probability, for `Solution.representation`.
        memory_bytes: how much memory the working arrays may take; the matrices are solved in chunks.

    Raises:
        EngineError: if a component is too close to having no exit for double precision, or a value exceeds the
            range of doubles.
    """
    system = _System(plan, entry, stochastic)
    chunk = int(np.clip(memory_bytes // system.bytes_per_matrix(values.shape[1]), 1, _CHUNK))
    parts = []
    for low in range(0, len(values), chunk):
        side_by_side = np.ascontiguousarray(values[low : low + chunk].T)
        parts.append(system.solve(side_by_side, value_error))
    names = ("value", "error", "representation", "jumps")
    return Solution(**{name: np.concatenate([part[name].T for part in parts]) for name in names})


class _System:
    """The parts of the equations that all matrices share.

    In the arrays of one chunk, the last axis runs over the matrices. `x` is (u + 2, columns, matrices): column 0
    is the probability, column 1, if there is one, the expected number of jumps.
    """

    def __init__(self, plan: Plan, entry: Integers, stochastic: bool) -> None:
        self._plan = plan
        self._stochastic = stochastic
        self._entry_of_edge = entry[plan.edge]
        self._has_loop = plan.loop_edge >= 0
        self._entry_of_loop = entry[plan.loop_edge[self._has_loop]]
        edges, degree = len(plan.edge), np.diff(plan.row_start)
        self._widest = int(degree.max(initial=1))
        self._row_of_edge = np.repeat(np.arange(plan.size), degree)
        # Sparse rows of ones add up the edges of each state, much faster than `add.reduceat`.
        self._sum = csr_array((np.ones(edges), np.arange(edges), plan.row_start), shape=(plan.size, edges))
        self._block_sums = [self._sum[b.first : b.last, b.first_edge : b.last_edge] for b in plan.blocks]
        self._columns = 1 if all(block.size == 1 for block in plan.blocks) else 2
        self._roundings, self._powers = _exponents(plan, degree, self._by_elimination)
        eliminated = [b for b in plan.blocks if b.size > 1 and self._by_elimination(b)]
        leading_out = (np.flatnonzero(self._leads_out_of(b)) + b.first_edge for b in eliminated)
        self._exits = np.concatenate([np.zeros(0, dtype=np.int64), *leading_out])
        self._largest = max((b.size for b in eliminated), default=1)
        self._levels = 1 + max((b.level for b in plan.blocks), default=0)
        dense = max((b.count * b.size * (b.size + 1 + self._columns) for b in eliminated), default=0)
        self._numbers_per_matrix = 5 * self._columns * edges + 5 * plan.size + 3 * dense

    def bytes_per_matrix(self, probabilities: int) -> int:
        """Working memory for one matrix of a chunk, given by so many probabilities."""
        return 8 * (probabilities + self._numbers_per_matrix)

    def solve(self, values: NDArray[np.float64], value_error: float) -> dict[str, NDArray[np.float64]]:
        """The arrays of `Solution`, transposed, for values of shape (k, matrices)."""
        plan = self._plan
        weight, leave = self._weights(values)
        x = np.zeros((plan.size + 2, self._columns, values.shape[1]))
        x[plan.size, 0] = 1
        for block, block_sum in zip(plan.blocks, self._block_sums, strict=True):
            self._solve_block(block, block_sum, weight, leave, x)

        value, powers = x[plan.start, 0], self._powers[plan.start][:, None]
        unknown = plan.start < plan.size
        relative = np.expm1(1.1 * ROUNDOFF * self._roundings[plan.start])[:, None]
        underflow = self._underflow(weight, leave)
        error = np.zeros_like(value)
        certain = np.isfinite(relative)  # elsewhere only the absolute bound below applies
        factor = np.where(certain, relative, 0)
        error[unknown] = np.where(certain, (value + underflow) * factor + underflow, np.inf)[unknown]
        jumps, absolute = np.broadcast_to(powers, value.shape), np.full(value.shape, np.inf)
        if self._columns == 2:
            residual, jumps = self._certificate(weight / leave[self._row_of_edge], x)
            with np.errstate(over="ignore", invalid="ignore"):
                error = np.fmin(error, residual * jumps)
                absolute = 2 * value_error / (1 - value_error) * jumps
        spread = np.expm1(powers * np.log1p(2 * value_error / (1 - value_error)))
        moved = np.minimum(value + error, 1) * spread + np.where(spread > 0, _SMALLEST, 0)  # this may underflow too
        representation = np.fmin(moved, absolute)
        if not np.all(np.isfinite(value)):
            raise EngineError("the probability of reaching the target is beyond the range of doubles")
        return {"value": value, "error": error, "representation": representation, "jumps": jumps}

    def _underflow(self, weight: NDArray[np.float64], leave: NDArray[np.float64]) -> NDArray[np.float64]:
        """(matrices,) bound on what underflow may add to or take from a value."""
        operations = self._plan.size * (self._widest + self._largest + 2)
        exits = weight[self._exits]
        least = np.minimum(leave.min(axis=0, initial=1), exits.min(axis=0, initial=1, where=exits > 0))
        underflow = operations * _SMALLEST / least
        if not self._stochastic:
            with np.errstate(over="ignore"):
                growth = (_add_up(self._sum, weight) / leave).max(axis=0, initial=1) ** self._levels
                return np.asarray(underflow * growth)
        return np.asarray(underflow)

    def _leads_out_of(self, block: Block) -> NDArray[np.bool_]:
        """Which of the block's edges leave their component; components of one level do not lead to each other."""
        target = self._plan.target[block.first_edge : block.last_edge]
        return (target < block.first) | (target >= block.last)

    def _by_elimination(self, block: Block) -> bool:
        return block.size == 1 or (block.size <= DENSE_LIMIT and self._stochastic)

    def _weights(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(e, matrices) probability of each edge and (u, matrices) probability of leaving each state."""
        weight = np.take(values, self._entry_of_edge, axis=0)
        if self._stochastic:
            return weight, _add_up(self._sum, weight)
        stay = np.zeros((self._plan.size, values.shape[1]))
        stay[self._has_loop] = values[self._entry_of_loop]
        if np.any(stay >= 1):
            raise EngineError("a state with a self-loop of probability 1 also has other successors")
        return weight, 1 - stay

    def _solve_block(
        self,
        block: Block,
        block_sum: csr_array[Any, Any],
        weight: NDArray[np.float64],
        leave: NDArray[np.float64],
        x: NDArray[np.float64],
    ) -> None:
        """Fill in the block's rows of `x`, given those of earlier blocks."""
        rows = slice(block.first, block.last)
        weight, leave = weight[block.first_edge : block.last_edge], leave[rows]
        target = self._plan.target[block.first_edge : block.last_edge]
        # The block's own states are still 0 in x, so only values outside the block contribute.
        products = weight[:, None, :] * x[target]
        outside = _add_up(block_sum, products)
        if self._columns == 2:
            outside[:, 1] += leave
        if block.size == 1:
            np.divide(outside, leave[:, None], out=x[rows])
            return
        inner = ~self._leads_out_of(block)
        source = self._row_of_edge[block.first_edge : block.last_edge][inner] - block.first
        column = target[inner] - block.first
        if self._by_elimination(block):
            exits = _add_up(block_sum, np.where(inner[:, None], 0, weight))
            right = np.concatenate([exits[:, None], outside], axis=1)
            x[rows] = _eliminate_block(block, (source, column, weight[inner]), right)
            return
        for matrix in range(x.shape[2]):
            share = weight[inner, matrix] / leave[source, matrix]
            right = outside[:, :, matrix] / leave[:, None, matrix]
            solved = factorise_and_solve(source, column, share, right)
            # A useless factorisation may give anything; the certificate finds it out if it is told numbers.
            solved[:, 0] = np.clip(np.nan_to_num(solved[:, 0]), 0, 1 if self._stochastic else None)
            x[rows, :, matrix] = solved

    def _certificate(
        self, share: NDArray[np.float64], x: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(matrices,) largest residual and (m, matrices) t/c of the absolute bound; infinite where c < 1/2."""
        size, slack = self._plan.size, (2 * self._widest + 4) * ROUNDOFF
        solved = x[:size]
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # t may exceed the range of doubles; then nothing is certain
            products = share[:, None, :] * x[self._plan.target]
            sums = _add_up(self._sum, products)
            margin = (solved[:, 1] - sums[:, 1] - slack * sums[:, 1]).min(axis=0, initial=1)
            residual = (np.abs(sums[:, 0] - solved[:, 0]) + slack * sums[:, 0]).max(axis=0, initial=0)
        residual += self._widest * _SMALLEST * x[:, 0].max(axis=0, initial=1)
        margin -= self._widest * 2.0**-50
        certified = (margin >= 0.5) & (solved[:, 1].min(axis=0, initial=0) >= 0)
        jumps = x[self._plan.start, 1] / np.where(certified, margin, np.nan)
        return residual, np.where(np.isnan(jumps), np.inf, jumps * (1 + slack))


def _exponents(
    plan: Plan, degree: Integers, by_elimination: Callable[[Block], bool]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(u + 2,) roundings K and added-up component sizes over the levels up to that of each state."""
    roundings, powers = np.zeros(plan.size + 2), np.zeros(plan.size + 2)
    levels = 1 + max((block.level for block in plan.blocks), default=0)
    below = np.zeros((levels + 1, 2))
    for block in plan.blocks:
        d, k = int(degree[block.first : block.last].max()), block.size
        own = 2 * d + 2 if k == 1 else 2 * k * (d + 2) + k * (k + 4) ** 2
        total = below[block.level] + (own if by_elimination(block) else np.inf, k)
        below[block.level + 1] = np.maximum(below[block.level + 1], total)
        roundings[block.first : block.last], powers[block.first : block.last] = total
    return roundings, powers


def _add_up(rows_of_ones: csr_array[Any, Any], terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """(rows, ...): the (edges, ...) terms added up over the edges of each row."""
    flat = np.asarray(rows_of_ones @ terms.reshape(len(terms), math.prod(terms.shape[1:])))
    return flat.reshape(rows_of_ones.shape[0], *terms.shape[1:])


def _eliminate_block(
    block: Block, entries: tuple[Integers, Integers, NDArray[np.float64]], beside: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(count*size, columns, matrices): a block's components by elimination, all matrices at once.

    Args:
        block: which states.
        entries: sources and targets, counted from the block's first state, and (edges, matrices) weights.
        beside: (count*size, 1 + columns, matrices), weight of leaving the component, then right-hand sides.
    """
    source, target, weight = entries
    count, size, (first, matrices) = block.count, block.size, beside.shape[1:]
    component, row = np.divmod(source, size)
    table = np.empty((size, first + size, count, matrices))

    def fill() -> NDArray[np.float64]:
        table[:, :first] = beside.reshape(count, size, first, matrices).transpose(1, 2, 0, 3)
        table[:, first:] = 0
        table[row, first + target % size, component] = weight
        return table.reshape(size, first + size, count * matrices)

    solved, safe = eliminate(fill(), first - 1)
    if not np.all(safe):
        solved = solved.copy()  # it is a part of the table
        solved[:, :, ~safe] = eliminate_without_underflow(fill()[:, :, ~safe], first - 1)
    return solved.reshape(size, first - 1, count, matrices).transpose(2, 0, 1, 3).reshape(-1, first - 1, matrices)
