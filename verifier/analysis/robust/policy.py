"""Policy iteration over the choices of rates: one search, its policies, and the linear equations of each.

`robust_solve` says what is solved and why the iteration ends at the solution. The equations of a policy are

    x = W x + w,    W(N, M) = weight from node N to node M / weight of leaving N,

so that rows are scaled by the chance of leaving, without the cancellation in 1 - p. Where no run comes back to a node
they are solved by substitution, else by a sparse LU factorisation. When only few nodes have been switched since,
corrections x + B^-1 (w - (I - W) x) with the matrix B of the earlier policy lead to the solution in a few steps; they
are used while they shrink the residual fast. Otherwise the present policy is factorised. Nothing rests on the
accuracy of the values: they are judged later.

Policy iteration alone carries what is better one step further in each round, each of which solves a chain. So it
begins with a policy that is nearly the best (`first_policy`), from the states where all is decided back to where runs
begin: every component of the graph is looked at once, after those that it leads to, a single state at once, the
states of a larger one in some rounds. Nothing rests on it but how long the search takes.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.linalg import SuperLU, splu, spsolve_triangular

from verifier.analysis.robust.step import UncertainStep
from verifier.base.arrays import Floats, Ints, Mask, distinct, marked, row_sums, rows_of
from verifier.base.errors import EngineError
from verifier.base.graphs import components, levels, ranges
from verifier.checking.elimination import one_minus

MOST_ITERATIONS = 1000
_NOISE = 2.0**-46
"""A choice is better if it gains more than this share of what is at stake: less could be rounding."""
_ROUGH = 2.0**-24
"""The same where the solution need not be good to the last bit."""
_STILL = 2.0**-50
"""Values that grow by less than this share have stopped growing."""
_FEW = 0.1
"""Share of switched nodes up to which an earlier factorisation is tried."""
_MANY = 2000
"""Nodes from which on it pays to begin with values that are not solved to the last bit."""
_SHRINKING = 1.5
"""By what factor each correction with it must make the residual smaller."""
_WORTH = 16
"""Corrections that cost about as much as a factorisation."""
_SMALLEST = np.finfo(np.float64).tiny
_RESIDUAL = 2.0**-46
_DENSE = 300
"""Nodes up to which substitution in a full matrix is faster than in a sparse one."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """Product states gathered into nodes.

    Attributes:
        of: (p,) int64, the node of each product state: the number of one of its states.
        component: (p,) bool, states of nodes in which nature can stay forever.
        order: (p,) int64, rank of each state in an order in which most moves go one way.
        sources, targets: the moves that nature can make, with whatever choice.
    """

    of: Ints
    component: Mask
    order: Ints
    sources: Ints
    targets: Ints


def make_nodes(step: UncertainStep, component: Ints) -> Nodes:
    """Nodes for the (p,) end components of the step; -1 outside."""
    n = step.state_count
    of = np.arange(n)
    members = np.flatnonzero(component >= 0)
    _, first, number = np.unique(component[members], return_index=True, return_inverse=True)
    of[members] = members[first][number]
    sources, targets = step.moves
    order = np.empty(n, dtype=np.int64)
    order[np.argsort(components(n, of[sources], of[targets])[of], kind="stable")] = np.arange(n)
    return Nodes(of, component >= 0, order, sources, targets)


class PolicySearch:
    """Policy iteration over a fixed set of unknown states; one search goes on where the last one stopped.

    Args:
        step, nodes: nature's choices.
        unknown: whole nodes.
        guide: (p,) values; the first policy makes the best choice for them instead of one that allows every move.

    Attributes:
        open: (k,) the unknown product states, whole nodes; each as often as it has rows.
        iterations: linear solves so far.
    """

    def __init__(self, step: UncertainStep, nodes: Nodes, unknown: Ints, guide: Floats | None = None) -> None:
        self._step, self._nodes = step, nodes
        self.iterations = 0
        self._owners = distinct(nodes.of[unknown])
        self._owners = self._owners[np.argsort(nodes.order[self._owners], kind="stable")]
        self._place = np.full(step.state_count, -1, dtype=np.int64)
        self._place[self._owners] = np.arange(len(self._owners))
        rows = step.rows_of(unknown)
        self._rows = rows[np.argsort(self._place[nodes.of[step.owner[rows]]], kind="stable")]
        self.open = step.owner[self._rows]
        self._row = self._place[nodes.of[self.open]]
        self._behind = nodes.of[step.following[self._rows]]
        self._jumps = self._behind != nodes.of[self.open][:, None]
        self._weights = np.where(self._jumps, step.inner_weights(self._rows), 0)
        self._column = self._place[self._behind]
        known = ~self._jumps | (self._column < 0)
        self._lower = bool(np.all(known | (self._column < self._row[:, None])))
        self._acyclic = self._lower or bool(np.all(known | (self._column > self._row[:, None])))
        self._leaving = np.ones(len(self.open), dtype=bool)
        if guide is not None:
            self._follow(guide)
        self._capped = np.zeros(len(self._owners), dtype=bool)
        self._equations: tuple[Any, Floats] | None = None  # of the present policy, once they are made
        self._solver: SuperLU | None = None
        self._switched = len(self.open)

    def _follow(self, guide: Floats) -> None:
        """Begin with the best choices for other values, where they leave a node that is a single state."""
        at, rows = self.open, self._rows
        gained = np.where(self._jumps, guide[self._behind] - guide[at, None], 0)
        gain, masses = self._step.greatest(gained, rows)
        weights = np.where(self._jumps, self._step.weights(masses, rows), 0)
        taken = np.flatnonzero((row_sums(weights) > 0) & ~self._nodes.component[at])
        self._weights[taken] = weights[taken]
        self._leave_by(taken[np.argsort(gain[taken], kind="stable")])

    def optimum(self, known: Floats, cost: Floats, roughly: bool = False) -> Floats:
        """(p,) the solution of equation (1) of `robust_solve`, nearly.

        With costs, nodes that reach 1 have the value 1: otherwise it would pay to go back and forth for the costs.

        Args:
            known: (p,) the values; those of unknown states are not read.
            cost: (p,) of leaving a node, equal within each.
            roughly: in large problems the solution need not be good to the last bit.

        Raises:
            EngineError: the equations are singular in doubles.
        """
        value = known.copy()
        if len(self.open) == 0:
            return value
        rough = roughly and len(self._owners) >= _MANY
        noise, residual = (_ROUGH, _ROUGH / 16) if rough else (_NOISE, _RESIDUAL)
        capping, fresh = bool(np.any(cost[self.open])), True
        self._cap(np.zeros_like(self._capped))
        for _ in range(MOST_ITERATIONS):
            old = value[self.open]
            self._solve(value, cost, residual)
            # Where nodes were capped since, other values fall first.
            grown = fresh or bool(np.any(value[self.open] > old * (1 + _STILL)))
            fresh = capping and self._cap_at_one(value)
            if not grown or not self._improve(value, cost, noise):
                break
        return value

    def _cap_at_one(self, value: Floats) -> bool:
        """Cap the nodes that have reached 1, and their values; whether there are new ones."""
        before = self._capped
        self._cap(before | (value[self._owners] >= 1))
        value[self.open] = np.minimum(value[self.open], 1)
        return bool(np.any(before != self._capped))

    def _cap(self, capped: Mask) -> None:
        changed = int(np.count_nonzero(capped != self._capped))
        self._switched += changed
        self._capped = capped
        if changed:
            self._equations = None

    def burden(self, cost: Floats, value: Floats) -> float:
        """How much (p,) costs of leaving a node add to the (p,) values of the present policy, at most."""
        if len(self.open) == 0:
            return 0.0
        matrix, _ = self._matrix()
        right = np.where(self._capped, np.maximum(1 - value[self._owners], 0), cost[self._owners])
        if self._acyclic:
            return float(np.max(self._substituted(matrix, right)))
        added = self._corrected(matrix, right, np.zeros_like(right), _ROUGH)
        return float(np.max(self._factorised(matrix).solve(right) if added is None else added))

    def steps_from(self, starts: Ints) -> Floats:
        """(r,) expected number of steps that the policy makes in each row, from a random one of `starts`.

        A weighting, no result: the factorisation of a policy that differs in few nodes will do.
        """
        result = np.zeros(len(self._step.owner))
        begun = self._place[self._nodes.of[starts]]
        right = np.bincount(begun[begun >= 0], minlength=len(self._owners)) / len(starts)
        if np.any(right):
            self._cap(np.zeros_like(self._capped))
            matrix, out = self._matrix()
            if self._acyclic:
                visits = self._substituted(matrix.T, right, turned=True)
            else:
                near = self._solver is not None and self._switched <= _FEW * len(right)
                solver = self._solver if near and self._solver is not None else self._factorised(matrix)
                visits = solver.solve(right, "T")  # type: ignore[call-overload]
            jumps = np.maximum(visits, 0)
            result[self._rows] = np.where(self._leaving, (jumps / out)[self._row], 0)
        return result

    def _matrix(self) -> tuple[Any, Floats]:
        """I - W, and the weight of leaving each node."""
        if self._equations is None:
            self._equations = self._equations_of_policy()
        return self._equations

    def _equations_of_policy(self) -> tuple[Any, Floats]:
        used = self._leaving
        share, row, column = self._weights[used], self._row[used], self._column[used]
        out: Floats = np.bincount(row, row_sums(share), len(self._owners)).astype(np.float64)
        inner = (column >= 0) & (share > 0) & ~self._capped[row][:, None]
        source, target = np.broadcast_to(row[:, None], column.shape)[inner], column[inner]
        weight, size = share[inner] / out[source], len(self._owners)
        if self._acyclic:
            return one_minus(size, source, target, weight), out
        moves = csr_array((weight, (source, target)), shape=(size, size))
        return csc_array(eye_array(size, format="csc") - moves.tocsc()), out

    def _substituted(self, matrix: Any, right: Floats, turned: bool = False) -> Floats:
        """The solution where no run comes back, of the equations or of those `turned` round."""
        lower = self._lower != turned
        if len(right) <= _DENSE:
            return solve_triangular(matrix.toarray(), right, lower=lower, unit_diagonal=True, check_finite=False)
        return spsolve_triangular(matrix, right, lower=lower, unit_diagonal=True)

    def _factorised(self, matrix: Any) -> SuperLU:
        if self._solver is None or self._switched > 0:
            entries = matrix.tocoo()
            triangular = bool(np.all(entries.row <= entries.col) or np.all(entries.row >= entries.col))
            order: Literal["NATURAL", "COLAMD"] = "NATURAL" if triangular else "COLAMD"
            try:
                # The diagonal of an M-matrix with dominant rows is a good pivot.
                self._solver = splu(matrix, permc_spec=order, diag_pivot_thresh=0.0)
            except RuntimeError as error:
                raise EngineError(f"the equations of {matrix.shape[0]} product states are singular") from error
            self._switched = 0
        return self._solver

    def _solve(self, value: Floats, cost: Floats, residual: float) -> None:
        """Fill in the values of the unknown states under the present policy."""
        matrix, out = self._matrix()
        used = self._leaving
        told = row_sums(np.where(self._column[used] >= 0, 0, self._weights[used] * value[self._behind[used]]))
        right = np.bincount(self._row[used], told, len(self._owners)) / out + cost[self._owners]
        right[self._capped] = 1
        solved = (
            self._substituted(matrix, right)
            if self._acyclic
            else self._corrected(matrix, right, value[self._owners], residual)
        )
        if solved is None:
            solver = self._factorised(matrix)
            solved = solver.solve(right)
            solved += solver.solve(right - matrix @ solved)
        if not np.all(np.isfinite(solved)):
            raise EngineError(f"the equations of {len(right)} product states are singular in doubles")
        self.iterations += 1
        value[self.open] = np.maximum(solved, 0)[self._row]

    def _corrected(self, matrix: Any, right: Floats, value: Floats, residual: float) -> Floats | None:
        """The solution by means of an earlier factorisation, if that is as good as a new one and soon there."""
        solver = self._solver
        if solver is None or not 0 < self._switched <= _FEW * len(right):
            return None
        solution, before = value, np.inf
        while True:
            rest = right - matrix @ solution
            excess = float(np.max(np.abs(rest) / (residual * (right + np.abs(solution)) + _SMALLEST)))
            if excess <= 1:
                return solution
            if not excess * _SHRINKING <= before or _still_to_do(before, excess) > _WORTH:
                return None
            solution, before = solution + solver.solve(rest), excess

    def _improve(self, value: Floats, cost: Floats, noise: float) -> bool:
        """Switch the nodes that have a better choice; whether there were any."""
        at, row = self.open, self._row
        gained = np.where(self._jumps, value[self._behind] - value[at, None] + cost[at, None], 0)
        gain, masses = self._step.greatest(gained, self._rows)
        weights = np.where(self._jumps, self._step.weights(masses, self._rows), 0)
        out = row_sums(weights)
        stake = row_sums(weights * np.abs(gained)) + out * value[at]
        better = np.flatnonzero((gain > noise * stake) & ~self._capped[row])
        if len(better) == 0:
            return False
        # Of the rows of a node, the one with the greatest gain for each time that the node is left.
        switched = self._leave_by(better[np.argsort(gain[better] / out[better], kind="stable")])
        self._weights[switched] = weights[switched]
        self._switched += len(switched)
        self._equations = None
        return True

    def _leave_by(self, chosen: Ints) -> Ints:
        """Leave nodes by these rows only, by the last one of a node; which those are."""
        best_of = np.full(len(self._owners), -1, dtype=np.int64)
        best_of[self._row[chosen]] = chosen
        switched = best_of[best_of >= 0]
        self._leaving[best_of[self._row] >= 0] = False
        self._leaving[switched] = True
        return switched


def _still_to_do(before: float, excess: float) -> float:
    """How many more corrections it takes until `excess` is 1, at the pace of the last one."""
    return math.log(excess) / math.log(before / excess)


MOST_LEVELS = 100_000
MOST_ROUNDS = 50
"""In a component of several states."""


def first_policy(first: Ints, behind: Ints, targets: Ints, weights: Floats, goal: Mask) -> Ints:
    """(p,) an alternative of each state, for reaching the goal with great probability.

    Args:
        first: (p + 1,) where the alternatives of each state begin.
        behind: (q,) the alternative behind each transition, increasing.
        targets: (q,) the state that it leads to.
        weights: (q,) its probability.
        goal: (p,) bool.
    """
    policy, owner, count = first[:-1].copy(), rows_of(first), len(goal)
    there = weights > 0
    sources, led = owner[behind[there]], targets[there]
    of = components(count, sources, led)
    inner = of[sources] == of[led]
    rank = levels(int(of.max()) + 1, of[sources[~inner]], of[led[~inner]], MOST_LEVELS)
    if rank is None:
        return policy
    circles = marked(count, sources[inner])
    value, begun = goal.astype(np.float64), np.searchsorted(behind, np.arange(len(owner) + 1))
    chosen = np.flatnonzero(~goal & (begun[first[1:]] > begun[first[:-1]]))
    chosen = chosen[np.argsort(rank[of[chosen]], kind="stable")]
    for states in np.split(chosen, np.flatnonzero(np.diff(rank[of[chosen]])) + 1):
        if not len(states):
            continue
        rows = ranges(first[states], first[states + 1])
        edges = ranges(begun[rows], begun[rows + 1])
        ends = np.cumsum(begun[rows + 1] - begun[rows])[:-1]
        begins = np.cumsum(first[states + 1] - first[states])[:-1]
        begins, ends = np.concatenate([[0], begins]), np.concatenate([[0], ends])
        for _ in range(MOST_ROUNDS if circles[states].any() else 1):
            worth = np.add.reduceat(weights[edges] * value[targets[edges]], ends)
            most = np.maximum.reduceat(worth, begins)
            better = most > value[states]  # only then: of equal ones one may lead round and round
            if not better.any():
                break
            best = worth == np.repeat(most, first[states + 1] - first[states])
            policy[states[better]] = np.minimum.reduceat(np.where(best, rows, len(owner)), begins)[better]
            value[states] = most
    return policy
