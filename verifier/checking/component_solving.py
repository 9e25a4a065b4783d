"""Solving a plan's equations block by block, for several matrices side by side and any right-hand sides; level by
level, with memory for the values only, where no component has two states.
"""

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from verifier.base.arrays import Floats, Ints
from verifier.checking.elimination import Band, Factorised, eliminate, eliminate_without_underflow
from verifier.checking.plan import Block, Plan

DENSE_LIMIT = 200
"""Most states of a component solved by elimination on a full array at first; larger ones are factorised."""
ELIMINATION_LIMIT = 1000
"""Most states of a component solved by elimination on a full array where a factorisation was not accurate enough."""
BAND_WORK = 10**10
"""Most multiplications of an elimination within a band."""
BAND_STATES = 24
"""Least states of a component for which a band is looked for."""
MANY_MATRICES = 50
"""From so many matrices on a narrow band is eliminated for all of them together, however many states there are."""
NARROW = 16
"""Widest band for which that is faster than to factorise each matrix."""

FEW_EDGES = 300
"""Edges of a block up to which a sum by rows is faster than a product with a sparse matrix."""

Method = Literal["single", "substitution", "elimination", "factorisation", "band"]


class BlockSolver:
    """How each block of a plan is solved, and what all matrices share in that.

    In the arrays, the last axis runs over the matrices.

    Args:
        plan: the equations.
        stochastic: whether rows sum to 1; otherwise nothing but single states can be eliminated.
        matrices: for how many of them.
        thorough: whether to eliminate where that is slower than to factorise.
        roughly: whether to factorise within a narrow band, which is faster than to eliminate.
    """

    def __init__(self, plan: Plan, *, stochastic: bool, matrices: int, thorough: bool, roughly: bool = False) -> None:
        self.plan = plan
        self._roughly = roughly
        edges = len(plan.edge)
        self.degree = np.diff(plan.row_start)
        self.row_of_edge = np.repeat(np.arange(plan.size), self.degree)
        # Sparse rows of ones add up the edges of many states, much faster than `add.reduceat`.
        self.row_sum = csr_array((np.ones(edges), np.arange(edges), plan.row_start), shape=(plan.size, edges))
        first = [block.first for block in plan.blocks]
        self.most_edges = np.maximum.reduceat(self.degree, first).tolist() if first else []
        self._rows_of_ones: dict[int, csr_array[Any, Any]] = {}
        self.bands: dict[int, Band] = {}
        self.methods = [self._method(block, stochastic, matrices, thorough) for block in plan.blocks]

    def added(self, number: int, terms: Floats) -> Floats:
        """The (edges, ...) terms of a block, given by its number, added up over the edges of each of its states."""
        block, most = self.plan.blocks[number], self.most_edges[number]
        if len(terms) > FEW_EDGES:
            if number not in self._rows_of_ones:
                rows, columns = slice(block.first, block.last), slice(block.first_edge, block.last_edge)
                self._rows_of_ones[number] = self.row_sum[rows, columns]
            return add_up(self._rows_of_ones[number], terms)
        if len(terms) == most * (block.last - block.first):
            return np.asarray(np.add.reduce(terms.reshape(-1, most, *terms.shape[1:]), axis=1))
        starts = self.plan.row_start[block.first : block.last] - block.first_edge
        return np.asarray(np.add.reduceat(terms, starts, axis=0))

    def _method(self, block: Block, stochastic: bool, matrices: int, thorough: bool) -> Method:
        if block.size == 1:
            return "single"
        if not stochastic:
            return "factorisation"
        if block.size > DENSE_LIMIT and self._is_acyclic(block):
            return "substitution"
        on_array = block.size <= (ELIMINATION_LIMIT if thorough else DENSE_LIMIT)
        many = thorough or matrices >= MANY_MATRICES
        if block.count == 1 and block.size >= BAND_STATES and (on_array or many):
            _, source, target = self.inner(block)
            band = Band.of(block.size, source, target)
            narrow = block.size * band.width**2 <= BAND_WORK if thorough else band.width <= NARROW
            if 4 * band.width < block.size and narrow:
                self.bands[block.first] = band
                return "band" if self._roughly and not on_array else "elimination"
        return "elimination" if on_array else "factorisation"

    def _is_acyclic(self, block: Block) -> bool:
        """Whether a block of many levels has only edges to states before their source, or only to states after it."""
        _, source, target = self.inner(block)
        return bool(np.all(target < source) or np.all(target > source))

    def exits(self) -> Ints:
        """The edges that lead out of the components that are eliminated."""
        edges = [np.zeros(0, dtype=np.int64)]
        for block, method in zip(self.plan.blocks, self.methods, strict=True):
            if method == "elimination":
                edges.append(np.flatnonzero(self.leads_out_of(block)) + block.first_edge)
        return np.concatenate(edges)

    def exponents(self) -> tuple[Floats, Floats]:
        """(u + 2,) roundings K and added-up component sizes over the levels up to that of each state."""
        size = self.plan.size
        roundings, powers = np.zeros(size + 2), np.zeros(size + 2)
        below = np.zeros((len(self.plan.blocks) + 1, 2))  # a level, of which there are as many at most
        for block, method, most in zip(self.plan.blocks, self.methods, self.most_edges, strict=True):
            total = below[block.level] + (self._roundings(block, method, most), block.size)
            below[block.level + 1] = np.maximum(below[block.level + 1], total)
            roundings[block.first : block.last], powers[block.first : block.last] = total
        return roundings, powers

    def _roundings(self, block: Block, method: Method, d: int) -> float:
        """How many roundings a value may differ by, the relative bound of `linear`; infinite for a factorisation."""
        k = block.size
        if method in ("single", "substitution"):
            return float(2 * d + 2) * k  # a path goes through each state once at most
        if method in ("factorisation", "band"):
            return math.inf
        # The states that change in one step, added up over the steps: those in the band, or all that are left.
        band = self.bands.get(block.first)
        widest = k - 1 if band is None else band.width
        changed = k * (k - 1) / 2 if band is None else k * widest
        return 2 * k * (d + 2) + 2 * changed * (math.ceil(math.log2(widest + 1)) + 6) + k * (widest + 3)

    def leads_out_of(self, block: Block) -> NDArray[np.bool_]:
        """Which of the block's edges leave their component; components of one level do not lead to each other."""
        target = self.plan.target[block.first_edge : block.last_edge]
        return (target < block.first) | (target >= block.last)

    def inner(self, block: Block) -> tuple[NDArray[np.bool_], Ints, Ints]:
        """Which of the block's edges stay inside, and their ends, counted from the block's first state."""
        inner = ~self.leads_out_of(block)
        edges = slice(block.first_edge, block.last_edge)
        return inner, self.row_of_edge[edges][inner] - block.first, self.plan.target[edges][inner] - block.first

    def numbers_per_matrix(self, columns: int) -> int:
        """About how many numbers the largest block needs for one matrix."""
        numbers = [0]
        for block, method in zip(self.plan.blocks, self.methods, strict=True):
            band = self.bands.get(block.first)
            if band is not None:
                numbers.append(block.size * (2 * band.width + 4 + 3 * columns))
            elif method == "elimination":
                numbers.append(block.count * block.size * (block.size + 1 + columns))
            elif method in ("substitution", "factorisation"):
                numbers.append(60 * block.count * block.size)
        return max(numbers)


class Equation:
    """The equations d_s x_s - sum_t p_st x_t = right_s of a plan with the numbers of m matrices.

    Args:
        solver: of the plan.
        weight: (e, m) probability of each edge.
        leave: (u, m) probability of leaving each state, d.

    Attributes:
        least_leave: (m,) the least of them, at most 1.
    """

    def __init__(self, solver: BlockSolver, weight: Floats, leave: Floats) -> None:
        self._solver = solver
        self.weight = weight
        self.leave = leave
        self.least_leave: Floats = leave.min(axis=0, initial=1)
        self._factors: dict[tuple[int, int], Factorised] = {}

    def weight_of(self, matrices: Ints) -> Floats:
        """(e, c) the probability of each edge in c of the matrices."""
        return self.weight[:, matrices]

    def solve(self, x: Floats, right: Floats, matrices: Ints | None = None) -> None:
        """Fill in the unknown states of `x`.

        Args:
            x: (u + 2, columns, m), 0 in all unknown states.
            right: (u, columns, m) right-hand sides.
            matrices: (m,) which of the matrices the last axis stands for; None for all.
        """
        numbers = np.arange(self.weight.shape[1]) if matrices is None else matrices
        weight, leave = (
            (self.weight, self.leave) if matrices is None else (self.weight[:, numbers], self.leave[:, numbers])
        )
        solver = self._solver
        for number, (block, method) in enumerate(zip(solver.plan.blocks, solver.methods, strict=True)):
            rows, edges = slice(block.first, block.last), slice(block.first_edge, block.last_edge)
            if method in ("substitution", "factorisation"):
                # So many edges stay inside, where x is still 0, that the others are taken by themselves.
                leading = block.first_edge + np.flatnonzero(solver.leads_out_of(block))
                terms = weight[leading][:, None, :] * x[solver.plan.target[leading]]
                outside = right[rows] + added_by(
                    solver.row_of_edge[leading] - block.first, terms, block.last - block.first
                )
            else:
                outside = solver.added(number, weight[edges][:, None, :] * x[solver.plan.target[edges]])
                outside += right[rows]
            if method == "single":
                np.divide(outside, leave[rows][:, None], out=x[rows])
                continue
            inner, source, column = solver.inner(block)
            if method in ("substitution", "factorisation"):
                self._factorised(block, (source, column, weight[edges][inner]), leave[rows], outside, numbers, x)
                continue
            leaving = solver.added(number, np.where(inner[:, None], 0, weight[edges]))
            beside = np.concatenate([leaving[:, None], outside], axis=1)
            entries = (source, column, weight[edges][inner])
            if method == "band":
                x[rows] = solver.bands[block.first].factorise(*entries, beside)
                continue
            x[rows] = _eliminate_block(block, entries, beside, solver.bands.get(block.first))

    def _factorised(
        self,
        block: Block,
        entries: tuple[Ints, Ints, Floats],
        leave: Floats,
        outside: Floats,
        numbers: Ints,
        x: Floats,
    ) -> None:
        source, column, weight = entries
        for place, number in enumerate(numbers.tolist()):
            factors = self._factors.get((block.first, number))
            if factors is None:
                share = weight[:, place] / leave[source, place]
                factors = Factorised(block.count * block.size, source, column, share)
                self._factors[block.first, number] = factors
            x[block.first : block.last, :, place] = factors.solve(outside[:, :, place] / leave[:, None, place])


def add_up(rows_of_ones: csr_array[Any, Any], terms: Floats) -> Floats:
    """(rows, ...): the (edges, ...) terms added up over the edges of each row."""
    flat = np.asarray(rows_of_ones @ terms.reshape(len(terms), math.prod(terms.shape[1:])))
    return flat.reshape(rows_of_ones.shape[0], *terms.shape[1:])


def added_by(rows: Ints, terms: Floats, count: int) -> Floats:
    """(count, ...): the (edges, ...) terms added up over the edges of each row, given in increasing order."""
    starts = np.searchsorted(rows, np.arange(count + 1))
    return add_up(csr_array((np.ones(len(rows)), np.arange(len(rows)), starts), shape=(count, len(rows))), terms)


def _eliminate_block(block: Block, entries: tuple[Ints, Ints, Floats], beside: Floats, band: Band | None) -> Floats:
    """(count*size, columns, matrices): a block's components by elimination, all matrices at once.

    Args:
        block: which states.
        entries: sources and targets, counted from the block's first state, and (edges, matrices) weights.
        beside: (count*size, 1 + columns, matrices), weight of leaving the component, then right-hand sides.
        band: of the one component, if it has a narrow one.
    """
    if band is None:
        return _eliminate_array(block, entries, beside)
    source, target, weight = entries
    result, safe = band.eliminate(source, target, weight, beside)
    if not np.all(safe):
        unsafe = np.flatnonzero(~safe)
        result[:, :, unsafe] = band.eliminate_without_underflow(
            source, target, weight[:, unsafe], beside[:, :, unsafe]
        )
    return result


def _eliminate_array(block: Block, entries: tuple[Ints, Ints, Floats], beside: Floats) -> Floats:
    """The same on a full array, without limits to how small a number may get."""
    source, target, weight = entries
    count, size, (first, matrices) = block.count, block.size, beside.shape[1:]
    component, row = np.divmod(source, size)
    table = np.empty((size, first + size, count, matrices))

    def fill() -> Floats:
        table[:, :first] = beside.reshape(count, size, first, matrices).transpose(1, 2, 0, 3)
        table[:, first:] = 0
        table[row, first + target % size, component] = weight
        return table.reshape(size, first + size, count * matrices)

    solved, safe = eliminate(fill(), first - 1)
    if not np.all(safe):
        solved = solved.copy()  # it is a part of the table
        solved[:, :, ~safe] = eliminate_without_underflow(fill()[:, :, ~safe], first - 1)
    return solved.reshape(size, first - 1, count, matrices).transpose(2, 0, 1, 3).reshape(-1, first - 1, matrices)


_LEFT_AT_ONCE = 4096


class LevelEquation:
    """As `Equation`, of rows that sum to 1 and blocks of single states. The probabilities of a level's edges are
    gathered from those that they are made of, and forgotten again.

    Args:
        solver: of the plan.
        values: (k, m) the probabilities of m matrices.
        entry: (e,) which of them each edge has.

    Attributes:
        least_leave: (m,) the least probability of leaving a state, at most 1; known when all matrices were solved.
    """

    def __init__(self, solver: BlockSolver, values: Floats, entry: Ints) -> None:
        self._solver = solver
        self._values = values
        self._entry = entry
        self.least_leave = np.ones(values.shape[1])

    def weight_of(self, matrices: Ints) -> Floats:
        """(e, c) the probability of each edge in c of the matrices."""
        return np.take(self._values[:, matrices], self._entry, axis=0)

    def solve(self, x: Floats, right: Floats | None, matrices: Ints | None = None) -> None:
        """Fill in the unknown states of `x`.

        Args:
            x: (u + 2, 1, m), whatever the unknown states have.
            right: (u, 1, m) right-hand sides; None for 0.
            matrices: (m,) which of the matrices the last axis stands for; None for all.
        """
        values = self._values if matrices is None else self._values[:, matrices]
        value, target, entry, count = x[:, 0], self._solver.plan.target, self._entry, values.shape[1]
        left, kept, least = np.empty((min(_LEFT_AT_ONCE, self._solver.plan.size), count)), 0, np.ones(count)
        for number, (block, most) in enumerate(zip(self._solver.plan.blocks, self._solver.most_edges, strict=True)):
            first, last, begin, end = block.first, block.first + block.count, block.first_edge, block.last_edge
            weight = values.take(entry[begin:end], axis=0)
            flow = value.take(target[begin:end], axis=0)
            np.multiply(weight, flow, out=flow)
            if len(flow) == most * block.count and len(flow) <= FEW_EDGES:
                shape = block.count, most, count
                if kept + block.count > _LEFT_AT_ONCE:
                    least, kept = np.minimum(least, left[:kept].min(axis=0)), 0
                leave = np.add.reduce(weight.reshape(shape), axis=1, out=left[kept : kept + block.count])
                outside, kept = np.add.reduce(flow.reshape(shape), axis=1), kept + block.count
            else:
                leave, outside = self._solver.added(number, weight), self._solver.added(number, flow)
                least = np.minimum(least, leave.min(axis=0))
            if right is not None:
                outside += right[first:last, 0]
            np.divide(outside, leave, out=value[first:last])
        if matrices is None:
            self.least_leave = np.minimum(least, left[:kept].min(axis=0, initial=1))
