r"""Probabilities of reaching a target, or what is gained on the way, for many value arrays of one chain at once.

With a bound on their error.

The unknown probabilities satisfy x = W x + w, where W_st = p_st / d_s for s != t, w_s sums the same weights over
the states of probability 1, and d_s is the probability of leaving s. A component is solved after those it leads to.

| component                                | solved by                                  | bound of the error      |
|------------------------------------------|--------------------------------------------|-------------------------|
| of at most `DENSE_LIMIT` states          | elimination without subtraction            | relative, by counting   |
| larger, or of rounded probabilities      | sparse LU factorisation                    | absolute, by a residual |
| many levels of single states together    | substitution in a triangular system        | the smaller of the two  |
| any, if the bound exceeds `REFINED_FROM` | the same, refined to twice the digits      | by `refinement`         |
| larger, if it still does                 | elimination, within a band if there is one | relative; then refined  |

Neither time nor accuracy depends on how many steps pass before a value is decided. The absolute bound alone does: it
is the residual times the steps, and is replaced where that is not good enough.

**No subtraction.** In a stochastic chain d_s is the sum of the probabilities of leaving, not 1 - p_ss, and
components of at most `DENSE_LIMIT` states are solved by the elimination of Grassmann, Taksar and Heyman
(Regenerative analysis and steady state distributions for Markov chains, Operations Research 33, 1985). Only
non-negative numbers are added, multiplied and divided, so every result is relatively accurate down to the underflow
stated below, be it 1e-200 or the exit from a state with p_ss = 1 - 1e-15. In a chain of rounded probabilities d_s is
1 - p_ss, one rounding, and every component of more than one state is factorised.

*Relative bound.* u = 2^-53 is the unit roundoff. In a component of k states with at most d edges per state, x is
a ratio of two polynomials of degree k in the weights, with coefficients >= 0, linear in the values outside and in
the weights of every state (matrix-tree theorem). Changing the weights of n states by factors within
(1-e)/(1+e) .. (1+e)/(1-e) so changes x by a factor within the n-th power of these. Removing one of the states changes
the weights of the states that enter it, of all p that are left or of as many as the band is wide, by the roundings of
a sum by halves, a division, a product and a sum: log2(p+1) + 6 at most (O'Cinneide, Entrywise perturbation theory and
error analysis for Markov chains, Numer. Math. 65, 1993; there sums run from left to right). Putting a value back in
is a weighted mean of p + 1 terms, p + 3 roundings. `BlockSolver` adds this up over the states; for k = 1 it is 2d+2.
Where many levels are solved together by substitution it is 2d+2 for each of the states, of which a path visits each
once: off its diagonal of ones a triangular I - W is nowhere positive, so that nothing is subtracted there either.
Factors multiply along a path through the levels. With K their total, |x - x*| <= x (exp(1.1 K u) - 1), and underflow.

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

*Refined.* Where max|r| t/c is not good enough, for it grows with the steps that pass, `refinement` bounds each error
by itself from a residual in twice the digits.

**Gains.** What is gained before the target is reached, g_s >= 0 in each step from s, satisfies the same equations
with g_s / d_s in place of w_s. It is linear in the g, with coefficients >= 0 that are made from the weights as above:
the relative bound holds unchanged for the given g, and so does the absolute one, with g_s / d_s in the residual. Only
states that surely reach the target are unknown. Errors of the g themselves are for the caller to add: one of relative
size e changes x by at most e x. Moving the weights changes x by at most max x times what it changes probabilities.

**Representation.** The doubles p are the true probabilities rounded: each is off by a factor 1 +- v (v = u when
the true fraction was rounded once). That moves every weight by (1+v)/(1-v) at most, so x by at most that factor to
the power of the k's added up over the levels; and by at most 2v/(1-v) t/c, as each row of the change sums to at
most 2v/(1-v). The smaller of the two is reported, apart from the error of solving.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from verifier.base.arrays import ROUNDOFF, Floats, Ints
from verifier.base.errors import EngineError
from verifier.checking.component_solving import DENSE_LIMIT, BlockSolver, Equation, LevelEquation, add_up
from verifier.checking.plan import LARGEST_KEPT, Plan
from verifier.checking.refinement import Equations, refined

REFINED_FROM = 2.0**-33
"""Bounds above this are improved; it is a tenth of the width that a probability is reported with at most."""
ROUGH = 2.0**-27
"""The same where a rough value will do."""
_REFINED_SHARE = 2.0**-20
_NOTHING = 2.0**-900
"""Values below this need no digits."""
_CHUNK = 512
_FEW_AT_ONCE = 16
_NUMBERS_OF_LEVEL = 1 << 17
_SMALLEST = 2.0**-1074


@dataclass(frozen=True, eq=False)
class Solution:
    """Probabilities of reaching the target of a plan, or gains on the way; each is (M, m), matrix by initial state.

    Attributes:
        value: the probabilities; or the gains, infinite where the target may be missed.
        error: bound on |value - the exact solution for the given doubles|, rows scaled to sum 1 if stochastic.
        representation: bound on the distance from there to the solution for the true probabilities; it means
            nothing unless `stochastic`.
        steps: bound on the expected number of steps before the value is decided, those that stay included.
    """

    value: Floats
    error: Floats
    representation: Floats
    steps: Floats


def solve(
    plan: Plan,
    values: Floats,
    entry: Ints,
    *,
    stochastic: bool,
    value_error: float = ROUNDOFF,
    memory_bytes: int = 1 << 30,
    roughly: bool = False,
    gains: Floats | None = None,
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
        roughly: whether bounds of `ROUGH` will do, however small the probability.
        gains: (M, u) float64, what a step from each unknown state gains, for a plan of gains and stochastic chains.

    Raises:
        EngineError: a value exceeds the range of doubles, or a state of rounded probabilities has no way out.
    """
    system = _system_of(plan, entry, stochastic, len(values), roughly)
    solution = _in_chunks(system, values, gains, value_error, memory_bytes)
    if stochastic and any(block.size > DENSE_LIMIT for block in plan.blocks):
        coarse = np.flatnonzero(_coarse(solution.value, solution.error, roughly).any(axis=1))
        if len(coarse):
            thorough = _System(plan, entry, stochastic, len(coarse), thorough=True)
            own = None if gains is None else gains[coarse]
            again = _in_chunks(thorough, values[coarse], own, value_error, memory_bytes)
            better = again.error < solution.error[coarse]
            for name in ("value", "error", "representation"):
                old, new = getattr(solution, name), getattr(again, name)
                old[coarse] = np.where(better, new, old[coarse])
            solution.steps[coarse] = np.minimum(solution.steps[coarse], again.steps)
    return solution


def _system_of(plan: Plan, entry: Ints, stochastic: bool, matrices: int, roughly: bool) -> _System:
    def made() -> _System:
        return _System(plan, entry, stochastic, matrices, roughly=roughly)

    # Plan and system know each other, so that a large one would stay in memory until cycles are looked for.
    return (
        plan.systems.kept((id(entry), stochastic, matrices, roughly), made) if plan.size <= LARGEST_KEPT else made()
    )


def _in_chunks(
    system: _System, values: Floats, gains: Floats | None, value_error: float, memory_bytes: int
) -> Solution:
    most = memory_bytes // system.bytes_per_matrix(values.shape[1], gains is not None)
    chunk = int(np.clip(min(most, system.most_at_once), 1, _CHUNK))
    at_once = max(1, memory_bytes // system.bytes_to_refine(values.shape[1]))
    chunk = -(-len(values) // -(-len(values) // chunk)) if len(values) else 1  # of equal sizes
    parts = []
    for low in range(0, len(values), chunk):
        side_by_side = np.ascontiguousarray(values[low : low + chunk].T)
        own = None if gains is None else np.ascontiguousarray(gains[low : low + chunk].T)
        parts.append(system.solve(side_by_side, value_error, own, at_once))
    return Solution(
        **{field.name: np.concatenate([part[field.name].T for part in parts]) for field in fields(Solution)}
    )


def _coarse(value: Floats, error: Floats, roughly: bool) -> NDArray[np.bool_]:
    """Where a bound leaves more open than it has to."""
    most = ROUGH if roughly else np.minimum(REFINED_FROM, _REFINED_SHARE * np.abs(value) + _NOTHING)
    return np.asarray(~(error <= most * np.maximum(np.abs(value), 1)))


class _System:
    """The parts of the equations that all matrices share.

    In the arrays of one chunk, the last axis runs over the matrices. `x` is (u + 2, columns, matrices): column 0
    is the probability, column 1, if there is one, the expected number of jumps.
    """

    def __init__(
        self,
        plan: Plan,
        entry: Ints,
        stochastic: bool,
        matrices: int,
        *,
        thorough: bool = False,
        roughly: bool = False,
    ) -> None:
        self._plan = plan
        self._entry = entry  # kept, for the system is known by its identity
        self._roughly = roughly
        self._stochastic = stochastic
        self._entry_of_edge = entry[plan.edge]
        self._has_loop = plan.loop_edge >= 0
        self._entry_of_loop = entry[plan.loop_edge[self._has_loop]]
        self._solver = BlockSolver(plan, stochastic=stochastic, matrices=matrices, thorough=thorough, roughly=roughly)
        self._widest = int(self._solver.degree.max(initial=1))
        self._columns = 1 if all(block.size == 1 for block in plan.blocks) else 2
        self._roundings, self._powers = self._solver.exponents()
        self._exits = self._solver.exits()
        self._largest = max((block.size for block in plan.blocks), default=1)
        self._levels = 1 + max((b.level for b in plan.blocks), default=0)
        self._by_levels = stochastic and self._columns == 1
        widest = max((block.last_edge - block.first_edge for block in plan.blocks), default=0)
        self._numbers_per_matrix = 5 * self._columns * len(plan.edge) + 5 * plan.size
        self._numbers_per_matrix += 3 * self._solver.numbers_per_matrix(self._columns)
        self._numbers_by_levels = 2 * plan.size + 4 * widest  # more chunks cost little, so half of the memory will do
        self.most_at_once = _CHUNK
        if self._by_levels:  # more would only leave the processor's cache
            self.most_at_once = max(_FEW_AT_ONCE, _NUMBERS_OF_LEVEL * len(plan.blocks) // max(len(plan.edge), 1))

    def bytes_per_matrix(self, probabilities: int, gains: bool) -> int:
        """Working memory for one matrix of a chunk, given by so many probabilities."""
        if not self._by_levels:
            return self.bytes_to_refine(probabilities)
        return 8 * (probabilities + self._numbers_by_levels + gains * self._plan.size)

    def bytes_to_refine(self, probabilities: int) -> int:
        """Working memory to improve the values of one matrix."""
        return 8 * (probabilities + self._numbers_per_matrix)

    def solve(self, values: Floats, value_error: float, gains: Floats | None, at_once: int) -> dict[str, Floats]:
        """The arrays of `Solution`, transposed, for values of shape (k, matrices) and gains of (u, matrices), of
        which so many are refined at once."""
        plan = self._plan
        equation = self._equation(values)
        x, solved = self._solved(equation, gains)
        value, powers = x[plan.start, 0], self._powers[plan.start][:, None]
        error = np.where(solved, self._relative_bound(equation, value), np.inf)
        jumps, absolute = np.broadcast_to(powers, value.shape), np.full(value.shape, np.inf)
        most: Floats | float = 1.0 if gains is None else np.inf
        if isinstance(equation, Equation) and self._columns == 2:
            residual, jumps, farthest = self._certificate(equation, x, gains)
            with np.errstate(over="ignore", invalid="ignore"):
                error = np.fmin(error, residual * jumps)
                if gains is not None:
                    most = x[: plan.size, 0].max(axis=0, initial=0) + residual * farthest
                absolute = most * (2 * value_error / (1 - value_error) * jumps)
        if self._stochastic:
            value, error = self._refined(equation, x, gains, (value, error), at_once)
        spread = np.expm1(powers * np.log1p(2 * value_error / (1 - value_error)))
        moved = np.minimum(value + error, most) * spread + np.where(spread > 0, _SMALLEST, 0)  # may underflow
        representation = np.fmin(moved, absolute)
        if not np.all(np.isfinite(value)):
            raise EngineError("what is to be computed is beyond the range of doubles")
        if gains is not None:
            value = np.where((plan.start == plan.size + 1)[:, None], np.inf, value)
        with np.errstate(divide="ignore", over="ignore"):
            steps = jumps / equation.least_leave * (1 + 2.0**-50)
        arrays = {"value": value, "error": error, "representation": representation, "steps": steps}
        return {name: np.array(array) for name, array in arrays.items()}

    def _solved(self, equation: Equation | LevelEquation, gains: Floats | None) -> tuple[Floats, NDArray[np.bool_]]:
        """x of the probabilities (or gains) and, beside them, the jumps; and (matrices,) whether all are numbers."""
        shape = (self._plan.size + 2, self._columns, len(equation.least_leave))
        x = np.zeros(shape)
        x[self._plan.size, 0] = gains is None
        if isinstance(equation, LevelEquation):
            equation.solve(x, None if gains is None else gains[:, None])
            return x, np.ones(shape[2], dtype=bool)  # what is no number would be none in an initial state, either
        right = np.zeros((self._plan.size, *shape[1:]))
        if gains is not None:
            right[:, 0] = gains
        if self._columns == 2:
            right[:, 1] = equation.leave
        equation.solve(x, right)
        solved = np.isfinite(x[:, 0].min(axis=0)) & np.isfinite(x[:, 0].max(axis=0))
        if self._columns == 2:
            # A useless factorisation may give anything; the certificate finds it out if it is told numbers.
            x[:, 0] = np.clip(np.nan_to_num(x[:, 0]), 0, 1 if self._stochastic and gains is None else None)
        return x, solved

    def _relative_bound(self, equation: Equation | LevelEquation, value: Floats) -> Floats:
        """(m, matrices) the relative bound with underflow; infinite where something was factorised."""
        relative = np.expm1(1.1 * ROUNDOFF * self._roundings[self._plan.start])[:, None]
        relative[relative >= 1] = np.inf
        underflow = self._underflow(equation)
        with np.errstate(invalid="ignore"):
            error = (value + underflow) * relative + underflow
        error[self._plan.start >= self._plan.size] = 0
        return error

    def _refined(
        self,
        equation: Equation | LevelEquation,
        x: Floats,
        gains: Floats | None,
        known: tuple[Floats, Floats],
        at_once: int,
    ) -> tuple[Floats, Floats]:
        """Values and errors, better ones for the matrices in which an error is too large."""
        start, (value, error) = self._plan.start, known
        coarse = np.flatnonzero(_coarse(value, error, self._roughly).any(axis=0))  # errors of decided states are 0
        for concerned in np.split(coarse, range(at_once, len(coarse), at_once)) if len(coarse) else []:

            def solve(right: Floats, concerned: Ints = concerned) -> Floats:
                x = np.zeros((self._plan.size + 2, 1, right.shape[1]))
                equation.solve(x, right[:, None], concerned)
                return x[: self._plan.size, 0]

            gained = None if gains is None else gains[:, concerned]
            equations = Equations(self._plan.row_start, self._plan.target, equation.weight_of(concerned), gained)
            better_ones = refined(equations, x[:, 0, concerned], solve)
            better = better_ones.error[start] < error[:, concerned]
            value, error = value.copy(), error.copy()
            value[:, concerned] = np.where(better, better_ones.value[start], value[:, concerned])
            error[:, concerned] = np.where(better, better_ones.error[start], error[:, concerned])
        return value, error

    def _underflow(self, equation: Equation | LevelEquation) -> Floats:
        """(matrices,) bound on what underflow may add to or take from a value."""
        operations = self._plan.size * (self._widest + self._largest + 2)
        if isinstance(equation, LevelEquation):
            return np.asarray(operations * _SMALLEST / equation.least_leave)
        weight, leave = equation.weight, equation.leave
        exits = weight[self._exits]
        least = np.minimum(equation.least_leave, exits.min(axis=0, initial=1, where=exits > 0))
        underflow = operations * _SMALLEST / least
        if not self._stochastic:
            with np.errstate(over="ignore"):
                growth = (add_up(self._solver.row_sum, weight) / leave).max(axis=0, initial=1) ** self._levels
                return np.asarray(underflow * growth)
        return np.asarray(underflow)

    def _equation(self, values: Floats) -> Equation | LevelEquation:
        if self._by_levels:
            return LevelEquation(self._solver, values, self._entry_of_edge)
        return Equation(self._solver, *self._weights(values))

    def _weights(self, values: Floats) -> tuple[Floats, Floats]:
        """(e, matrices) probability of each edge and (u, matrices) probability of leaving each state."""
        weight = np.take(values, self._entry_of_edge, axis=0)
        if self._stochastic:
            return weight, add_up(self._solver.row_sum, weight)
        stay = np.zeros((self._plan.size, values.shape[1]))
        stay[self._has_loop] = values[self._entry_of_loop]
        if np.any(stay >= 1):
            raise EngineError("a state with a self-loop of probability 1 also has other successors")
        return weight, 1 - stay

    def _certificate(self, equation: Equation, x: Floats, gains: Floats | None) -> tuple[Floats, Floats, Floats]:
        """(matrices,) largest residual, (m, matrices) t/c of the absolute bound, and (matrices,) the largest one of
        all states; infinite where c < 1/2."""
        size, slack = self._plan.size, (2 * self._widest + 6) * ROUNDOFF
        share = equation.weight / equation.leave[self._solver.row_of_edge]
        solved = x[:size]
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # t may exceed the range of doubles; then nothing is certain
            products = x[self._plan.target]
            products *= share[:, None, :]
            sums = add_up(self._solver.row_sum, products)
            if gains is not None:
                sums[:, 0] += gains / equation.leave
            margin = (solved[:, 1] - sums[:, 1] - slack * sums[:, 1]).min(axis=0, initial=1)
            residual = (np.abs(sums[:, 0] - solved[:, 0]) + slack * sums[:, 0]).max(axis=0, initial=0)
        residual += self._widest * _SMALLEST * x[:, 0].max(axis=0, initial=1)
        margin -= self._widest * 2.0**-50
        certified = (margin >= 0.5) & np.all(solved[:, 1] >= 0, axis=0)
        scale = np.where(certified, margin, np.nan)
        jumps, farthest = x[self._plan.start, 1] / scale, solved[:, 1].max(axis=0, initial=0) / scale
        ends = (np.where(np.isnan(bound), np.inf, bound * (1 + slack)) for bound in (jumps, farthest))
        return residual, *ends
