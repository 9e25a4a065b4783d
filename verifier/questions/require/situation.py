"""One planner at one value of each swept constant, in every true environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.dependence.channel_test import Drawn, classes_drawn, drawn_together
from verifier.analysis.intervals.measured import measured
from verifier.analysis.objective import Objective
from verifier.analysis.recall.cells import relevant_columns
from verifier.analysis.recall.requirements import Problem, Target
from verifier.blocks import block_objectives, check_block
from verifier.chains.filled import assumed_columns, filled_counts
from verifier.checking.process import StormProcess
from verifier.collection import collected
from verifier.options import RunOptions
from verifier.perception.confusion import ConfusionMatrices, rates
from verifier.provenance import noted
from verifier.results import Point
from verifier.scenarios import Block, Grid

Ints = NDArray[np.int64]

EXACT_TRANSITIONS = 2000
"""Chains with at most so many transitions are checked with rational numbers even when nobody asks for that."""


@dataclass(frozen=True, eq=False)
class Situation:
    """See the module.

    Attributes:
        blocks: of one planner and one value of each swept constant.
        grid: with the one requirement in question and its target.
        matrices: as measured.
        options: of the run.
        problem: what all chains must meet, and the measured rates.
        counts: (bins, predicted, true) behind these rates, empty columns filled by the policy.
        relevant: for each objective the (bin, true label) pairs that make a difference to it, (k, 2) each.
    """

    blocks: tuple[Block, ...]
    grid: Grid
    matrices: ConfusionMatrices
    options: RunOptions
    problem: Problem
    counts: Ints
    relevant: tuple[Ints, ...]

    @property
    def assumed(self) -> tuple[str, ...]:
        """Descriptions of the columns without items that some chain needs."""
        objectives = self.problem.objectives
        return tuple(text for each in objectives for text in assumed_columns(each.skeleton, self.matrices))

    @property
    def draws(self) -> Drawn:
        """The columns that the chains draw from."""
        data = measured(self.matrices, self.options.empty_columns)
        return drawn_together(classes_drawn(each.skeleton, data) for each in self.problem.objectives)

    @property
    def exact(self) -> bool:
        """Whether Storm computes with rational numbers."""
        small = all(len(each.skeleton.indices) <= EXACT_TRANSITIONS for each in self.problem.objectives)
        return self.options.engines.exact or small

    def check(
        self, counts: Ints, storm: StormProcess, only: Sequence[bool] | None = None
    ) -> tuple[Point, tuple[str, ...]]:
        """The worst point with other matrices, by both engines, and what a reader must know about it.

        Args:
            counts: (bins, predicted, true), every needed column with items.
            storm: a running worker.
            only: for each block whether to look at it; None for all.

        Raises:
            EngineError: Storm failed, or the engines disagree.
        """
        matrices = replace(self.matrices, counts=counts)
        options = replace(self.options, engines=replace(self.options.engines, exact=self.exact))
        chosen = [block for k, block in enumerate(self.blocks) if only is None or only[k]]
        found = [check_block(block, self.grid, matrices, options, storm) for block in chosen]
        (result,) = collected(self.grid, found, [None] * len(found))
        remarks = tuple(text for each in found for text in each.remarks)
        return result.worst, (*remarks, *noted((each.block, each.notes) for each in found))


def make_situation(
    blocks: tuple[Block, ...], grid: Grid, matrices: ConfusionMatrices, options: RunOptions
) -> Situation:
    """Build the products of one planner with its requirement.

    Args:
        blocks: of one planner and one value of each swept constant.
        grid: with the one requirement in question, which has a target.
        matrices: the counts.
        options: of the run.

    Raises:
        VerifierError: as `verifier.pipeline.verify_spec`.
    """
    (requirement,) = grid.requirements
    if requirement.target is None:
        raise ValueError("a requirement without a target asks nothing of perception")
    target = Target(requirement.comparison, requirement.target)
    objectives: list[Objective] = []
    for block in blocks:
        (objective,) = block_objectives(block, grid, matrices, options)
        objectives.append(objective)
        counts = filled_counts(objective.skeleton, matrices, options.empty_columns)
    problem = Problem(tuple(objectives), rates(counts), target)
    relevant = tuple(relevant_columns(each, problem.rates) for each in objectives)
    return Situation(blocks, grid, matrices, options, problem, counts, relevant)
