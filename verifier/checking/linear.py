r"""Probabilities of reaching a target, for many value arrays of one chain at once, with a bound on their error.

The unknown probabilities satisfy x = W x + w, where W_st = p_st / d_s for s != t, w_s sums the same weights over
the states of probability 1, and d_s is the probability of leaving s. A component is solved after those it leads to.

**No subtraction.** In a stochastic chain d_s is the sum of the probabilities of leaving, not 1 - p_ss, and
components are solved by the elimination of Grassmann, Taksar and Heyman (Regenerative analysis and steady state
distributions for Markov chains, Operations Research 33, 1985). Only non-negative numbers are added, multiplied and
divided, so every result is relatively accurate, be it 1e-300 or the exit from a state with p_ss = 1 - 1e-15.

*Relative bound.* u = 2^-53 is the unit roundoff. In a component of k states with at most d edges per state, x is
a ratio of two polynomials of degree k in the weights, with coefficients >= 0 and linear in the values outside
(matrix-tree theorem). Changing every weight by a factor within (1-e)/(1+e) .. (1+e)/(1-e) so changes x by a
factor within the k-th power of these, and one elimination step on p states changes every weight by at most p+4
roundings (O'Cinneide, Entrywise perturbation theory and error analysis for Markov chains, Numer. Math. 65, 1993).
Summed over the steps: at most 2k(d+2) + k(k+4)^2 roundings, and 2d+2 if k = 1. Factors multiply along a path
through the levels. With K their total, |x - x*| <= x (exp(1.1 K u) - 1), plus underflow.

**Large components** are solved by a sparse LU factorisation, whose result is judged afterwards.

*Absolute bound.* Let A = I - W (W the exact weights), r = w - A x with x as computed, and t >= 0 with A t >= c > 0
in every row. Then A is a nonsingular M-matrix, A^-1 >= 0 and A^-1 1 <= t/c (Berman and Plemmons, Nonnegative
Matrices in the Mathematical Sciences, chapter 6), so |x - x*| = |A^-1 r| <= max|r| t/c. Both r and c are taken
with their own rounding: at most 2d+4 roundings of the sum of the non-negative products. t approximates the
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

from verifier.checking.elimination import eliminate, factorise_and_solve
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
        EngineError: if a component is too close to having no exit for double precision.
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
        dense = max((b.count * b.size**2 for b in plan.blocks if b.size > 1 and self._by_elimination(b)), default=0)
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
        underflow = plan.size * self._widest * _SMALLEST / leave.min(axis=0, initial=1)
        error = np.zeros_like(value)
        certain = np.isfinite(relative)  # elsewhere only the absolute bound below applies
        error[unknown] = np.where(certain, value * np.where(certain, relative, 0) + underflow, np.inf)[unknown]
        jumps, absolute = np.broadcast_to(powers, value.shape), np.full(value.shape, np.inf)
        if self._columns == 2:
            residual, jumps = self._certificate(weight / leave[self._row_of_edge], x)
            error = np.fmin(error, residual * jumps)
            absolute = 2 * value_error / (1 - value_error) * jumps
        spread = np.expm1(powers * np.log1p(2 * value_error / (1 - value_error)))
        representation = np.minimum((value + error) * spread, absolute)
        return {"value": value, "error": error, "representation": representation, "jumps": jumps}

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
        inner = (target >= block.first) & (target < block.last)
        source = self._row_of_edge[block.first_edge : block.last_edge][inner] - block.first
        column = target[inner] - block.first
        if self._by_elimination(block):
            exits = _add_up(block_sum, np.where(inner[:, None], 0, weight))
            x[rows] = _eliminate_block(block, (source, column, weight[inner]), exits, outside)
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
        products = share[:, None, :] * x[self._plan.target]
        sums = _add_up(self._sum, products)
        solved = x[:size]
        residual = (np.abs(sums[:, 0] - solved[:, 0]) + slack * sums[:, 0]).max(axis=0, initial=0)
        margin = (solved[:, 1] - sums[:, 1] - slack * sums[:, 1]).min(axis=0, initial=1)
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
    block: Block,
    entries: tuple[Integers, Integers, NDArray[np.float64]],
    exits: NDArray[np.float64],
    outside: NDArray[np.float64],
) -> NDArray[np.float64]:
    """(count*size, columns, matrices): a block's components by elimination, all matrices at once.

    Args:
        block: which states.
        entries: sources and targets, counted from the block's first state, and (edges, matrices) weights.
        exits: (count*size, matrices), weight of leaving the component.
        outside: (count*size, columns, matrices), right-hand sides.
    """
    source, target, weight = entries
    count, size, (columns, matrices) = block.count, block.size, outside.shape[1:]
    inside = np.zeros((size, size, count, matrices))
    component, row = np.divmod(source, size)
    inside[row, target % size, component] = weight
    right = outside.reshape(count, size, columns, matrices).transpose(1, 2, 0, 3).reshape(size, columns, -1)
    leaving = exits.reshape(count, size, matrices).transpose(1, 0, 2).reshape(size, -1)
    solved = eliminate(inside.reshape(size, size, -1), leaving, right)
    return solved.reshape(size, columns, count, matrices).transpose(2, 0, 1, 3).reshape(outside.shape)
