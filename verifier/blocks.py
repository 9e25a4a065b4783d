"""One block of the scenario grid: its skeleton, its chain, and what both engines say on it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verifier.analysis.objective import Objective, build_objective
from verifier.chains import DecisionProcess, MarkovChain
from verifier.chains.filled import assumed_columns, decision_process, filled_counts, markov_chain
from verifier.checking.linear import ROUNDOFF
from verifier.checking.process import StormProcess
from verifier.checking.requirements import TwoEngineValues, abstracted, check_formulas
from verifier.checking.strategies import StrategyRange, strategy_range
from verifier.confusion import ConfusionMatrices
from verifier.errors import EngineError, LimitError, UsageError
from verifier.expressions import to_text
from verifier.expressions.syntax import Node
from verifier.options import RunOptions
from verifier.provenance import block_remarks, start_remarks
from verifier.scenarios import Block, Grid
from verifier.systems.scene import SkeletonOptions
from verifier.systems.skeleton import Skeleton, build_skeleton
from verifier.systems.strategies import build_strategies, winning_starts


@dataclass(frozen=True, eq=False)
class CheckedBlock:
    """What was found in one block of the grid.

    Attributes:
        block: where.
        initial: the initial states, one valuation each.
        values: for each requirement what both engines say at those states.
        strategies: for each requirement the range over all winning strategies, where that was asked for.
        assumed: descriptions of the matrix columns that the chain needs and that have no items.
        remarks: what a reader must know about single requirements or initial states.
    """

    block: Block
    initial: tuple[Mapping[str, int], ...]
    values: tuple[TwoEngineValues, ...]
    strategies: tuple[StrategyRange, ...]
    assumed: tuple[str, ...]
    remarks: tuple[str, ...]


def check_block(
    block: Block, grid: Grid, matrices: ConfusionMatrices, options: RunOptions, storm: StormProcess
) -> CheckedBlock:
    """Build the chain of one block and check every requirement on it."""
    formulas = abstracted([each.formula for each in grid.requirements])
    conditions = {name: node for each in formulas for name, node in each.propositions.items()}
    skeleton, chain = block_chain(block, grid, matrices, options, conditions)
    value_error = ROUNDOFF * skeleton.channel.rounding_steps
    with _explained(block, conditions):
        values = check_formulas(chain, [each.formula for each in formulas], storm, options.engines, value_error)
    strategies: tuple[StrategyRange, ...] = ()
    won = None
    if block.planner.kind == "synthesis":
        if options.strategies:
            process = _process(block, grid, matrices, options, conditions)
            with _explained(block, conditions):
                strategies = tuple(strategy_range(process, each.formula, storm, options.engines) for each in formulas)
        won = _won(block, grid, matrices, options)
    return CheckedBlock(
        block,
        _initial_valuations(skeleton),
        tuple(values),
        strategies,
        tuple(assumed_columns(skeleton, matrices)),
        tuple(block_remarks(block, grid, skeleton, won, values, strategies)),
    )


def known_remarks(
    block: Block, grid: Grid, matrices: ConfusionMatrices, options: RunOptions
) -> tuple[list[str], list[str]]:
    """What is assumed in one block and what a reader must know about it, as far as no engine is needed to tell."""
    skeleton = block_skeleton(block, grid, matrices, options)
    won = _won(block, grid, matrices, options) if block.planner.kind == "synthesis" else None
    return list(assumed_columns(skeleton, matrices)), list(start_remarks(block, skeleton, won))


def _won(block: Block, grid: Grid, matrices: ConfusionMatrices, options: RunOptions) -> NDArray[np.bool_]:
    chosen = _skeleton_options(grid, options)
    return winning_starts(block.system, block.planner, block.environment, matrices, chosen)


@contextlib.contextmanager
def _explained(block: Block, conditions: Mapping[str, Node]) -> Iterator[None]:
    """Say where an engine failed, and what the proposition names in its message stand for."""
    try:
        yield
    except (EngineError, LimitError) as error:
        named = {name: node for name, node in conditions.items() if name in str(error)}
        legend = "".join(f"\n  {name} is {to_text(node)}" for name, node in named.items())
        message = f"{block}: {error}{legend}"
        raise (EngineError(message) if isinstance(error, EngineError) else LimitError(message)) from None


def block_skeleton(block: Block, grid: Grid, matrices: ConfusionMatrices, options: RunOptions) -> Skeleton:
    """The skeleton of a block; errors as `build_skeleton`."""
    chosen = _skeleton_options(grid, options)
    return build_skeleton(block.system, block.planner, block.environment, matrices, chosen)


def block_objectives(
    block: Block, grid: Grid, matrices: ConfusionMatrices, options: RunOptions
) -> tuple[Objective, ...]:
    """The product of a block's skeleton with each requirement of the grid; errors as `build_objective`."""
    skeleton = block_skeleton(block, grid, matrices, options)
    formulas = abstracted([each.formula for each in grid.requirements])
    limit = options.engines.product_states
    return tuple(build_objective(skeleton, each.formula, each.propositions, limit) for each in formulas)


def block_chain(
    block: Block,
    grid: Grid,
    matrices: ConfusionMatrices,
    options: RunOptions,
    conditions: Mapping[str, Node],
) -> tuple[Skeleton, MarkovChain]:
    """The skeleton of a block and its chain, labelled with `conditions`."""
    skeleton = block_skeleton(block, grid, matrices, options)
    labels = {name: skeleton.mask_of(node) for name, node in conditions.items()}
    counts = filled_counts(skeleton, matrices, options.empty_columns)
    exact, decimals = options.engines.exact, options.decimals
    return skeleton, markov_chain(skeleton, counts, labels, exact=exact, decimals=decimals)


def _process(
    block: Block,
    grid: Grid,
    matrices: ConfusionMatrices,
    options: RunOptions,
    conditions: Mapping[str, Node],
) -> DecisionProcess:
    """All winning strategies of a block's planner, labelled with `conditions`."""
    if options.decimals is not None:
        raise UsageError("the range over all winning strategies is not computed for rounded transitions")
    chosen = _skeleton_options(grid, options)
    strategies = build_strategies(block.system, block.planner, block.environment, matrices, chosen)
    labels = {name: strategies.choices.mask_of(node) for name, node in conditions.items()}
    counts = filled_counts(strategies.choices, matrices, options.empty_columns)
    return decision_process(strategies, counts, labels)


def _skeleton_options(grid: Grid, options: RunOptions) -> SkeletonOptions:
    return SkeletonOptions(grid.goal_formula, grid.initial, options.false_alarms, options.endless, options.limits)


def _initial_valuations(skeleton: Skeleton) -> tuple[Mapping[str, int], ...]:
    columns = {name: value[skeleton.starts].tolist() for name, value in skeleton.valuations.items()}
    return tuple(dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
