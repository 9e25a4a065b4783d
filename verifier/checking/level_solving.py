"""Solving a plan's equations level by level where no component has two states, with memory for the values only."""

from __future__ import annotations

import numpy as np

from verifier.base.arrays import Floats, Ints
from verifier.checking.component_solving import FEW_EDGES, BlockSolver

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
        left, kept, least = np.ones((_LEFT_AT_ONCE, count)), 0, np.ones(count)
        for number, (block, most) in enumerate(zip(self._solver.plan.blocks, self._solver.most_edges, strict=True)):
            first, last, begin, end = block.first, block.first + block.count, block.first_edge, block.last_edge
            weight = values.take(entry[begin:end], axis=0)
            flow = value.take(target[begin:end], axis=0)
            np.multiply(weight, flow, out=flow)
            if end - begin == most * block.count and end - begin <= FEW_EDGES:
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
