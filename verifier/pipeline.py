"""The whole story: from a spec and confusion matrices to verdicts.

    spec + model + matrices -> scenario grid -> skeleton -> Markov chain -> both engines -> verdicts

`verify_spec` is that story; everything else here prepares what it hands on or collects what it found.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from verifier.chains import DecisionProcess, MarkovChain, write_chain
from verifier.chains.filled import assumed_columns, decision_process, filled_counts, markov_chain
from verifier.checking.linear import ROUNDOFF
from verifier.checking.process import StormProcess
from verifier.checking.requirements import TwoEngineValues, abstracted, check_formulas
from verifier.checking.strategies import StrategyRange, strategy_range
from verifier.checking.verdicts import verdict_of
from verifier.confusion import ConfusionFile, ConfusionMatrices, read_confusion
from verifier.errors import EngineError, LimitError, UsageError
from verifier.expressions import Source, check_type, to_text
from verifier.expressions.syntax import Node
from verifier.options import RunOptions
from verifier.provenance import (
    block_remarks,
    input_files,
    program_versions,
    reading_remarks,
    run_remarks,
    run_settings,
)
from verifier.results import Point, RequirementResult, RunResult, Scenario
from verifier.scenarios import Block, Grid, make_grid
from verifier.specs import Requirement, Specification, check_names, read_spec
from verifier.specs.specification import expand_lets
from verifier.systems.model import SystemModel
from verifier.systems.reader import read_model
from verifier.systems.scene import SkeletonOptions
from verifier.systems.skeleton import Skeleton, build_skeleton
from verifier.systems.strategies import build_strategies, winning_starts

Progress: TypeAlias = Callable[[list[Block]], Iterable[Block]]


def verify_spec(
    spec_path: str | Path, confusion_path: str | Path, options: RunOptions = RunOptions(), progress: Progress = iter
) -> RunResult:
    """Check every requirement of a spec in every scenario.

    Args:
        spec_path: a `.ltl` file; it names the system model.
        confusion_path: a confusion document.
        options: see `RunOptions`.
        progress: wraps the list of blocks, for a progress bar.

    Raises:
        VerifierError: see `verifier.errors`; each says what to do.
    """
    with StormProcess() as storm:  # starts at once, so that Storm loads while the files are read
        return verified(read_inputs(spec_path, confusion_path, options), options, storm, progress)


def verified(inputs: Inputs, options: RunOptions, storm: StormProcess, progress: Progress = iter) -> RunResult:
    """As `verify_spec`, for files that are read and a worker that runs."""
    grid, matrices = inputs.grid(options), inputs.matrices(options)
    found = [check_block(block, grid, matrices, options, storm) for block in progress(list(grid.blocks))]
    return RunResult(
        title=inputs.confusion.matrices.title or Path(inputs.confusion.name).stem,
        inputs=input_files(inputs.spec, inputs.model, inputs.confusion),
        settings=run_settings(grid, options),
        requirements=_by_requirement(grid, found),
        versions={**program_versions(), "storm": storm.storm_version()},
        remarks=run_remarks(
            inputs.confusion.matrices,
            options,
            [each for block in found for each in block.assumed],
            [*reading_remarks(grid), *(each for block in found for each in block.remarks)],
        ),
    )


@dataclass(frozen=True)
class Inputs:
    """The files of a run, read and checked against each other."""

    spec: Specification
    model: SystemModel
    confusion: ConfusionFile

    def grid(self, options: RunOptions) -> Grid:
        """The scenario grid that spec and options ask for."""
        return make_grid(self.spec, self.model, options.selection)

    def matrices(self, options: RunOptions) -> ConfusionMatrices:
        """The matrices to use: those of the file, or their sum over all bins."""
        return self.confusion.matrices.canonical() if options.canonical else self.confusion.matrices


def read_inputs(spec_path: str | Path, confusion_path: str | Path, options: RunOptions = RunOptions()) -> Inputs:
    """Read spec, system model and matrices; VerifierError as `verify_spec`."""
    spec = read_spec(spec_path)
    model = read_model(spec.model)
    check_names(spec, model.types())
    if options.selection.initial is not None:
        check_type(options.selection.initial, model.types(), Source("", "--initial"), "boolean")
    return Inputs(spec, model, read_confusion(confusion_path, options.where, options.score_threshold))


@dataclass(frozen=True)
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
    skeleton, chain = _chain(block, grid, matrices, options, conditions)
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
        chosen = _skeleton_options(grid, options)
        won = winning_starts(block.system, block.planner, block.environment, matrices, chosen)
    return CheckedBlock(
        block,
        _initial_valuations(skeleton),
        tuple(values),
        strategies,
        tuple(assumed_columns(skeleton, matrices)),
        tuple(block_remarks(block, grid, skeleton, won, values, strategies)),
    )


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


def require_one_block(grid: Grid) -> None:
    """Refuse a grid of several blocks where one chain is exported; UsageError."""
    if len(grid.blocks) != 1:
        raise UsageError(
            f"one chain is exported at a time, and {len(grid.blocks)} were asked for: name one planner, one "
            "environment and one value of each swept constant"
        )


def export_chain(inputs: Inputs, path: str | Path, options: RunOptions = RunOptions()) -> None:
    """Write the Markov chain of a grid of one block, labelled with the propositions of model and spec.

    Args:
        path: ending in .umb, .drn or .prism.

    Raises:
        UsageError: the grid has several blocks.
        VerifierError: as `verify_spec`.
    """
    grid = inputs.grid(options)
    require_one_block(grid)
    conditions = {**inputs.model.labels, **expand_lets(inputs.spec.lets, inputs.spec.source)}
    skeleton, chain = _chain(grid.blocks[0], grid, inputs.matrices(options), options, conditions)
    write_chain(replace(chain, labels={**chain.labels, "terminal": skeleton.terminal}), path)


def _chain(
    block: Block,
    grid: Grid,
    matrices: ConfusionMatrices,
    options: RunOptions,
    conditions: Mapping[str, Node],
) -> tuple[Skeleton, MarkovChain]:
    """The skeleton of a block and its chain, labelled with `conditions`."""
    chosen = _skeleton_options(grid, options)
    skeleton = build_skeleton(block.system, block.planner, block.environment, matrices, chosen)
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


def _by_requirement(grid: Grid, found: list[CheckedBlock]) -> tuple[RequirementResult, ...]:
    """The points of all blocks, collected per planner and requirement."""
    results = []
    for planner in dict.fromkeys(each.block.planner.name for each in found):
        mine = [each for each in found if each.block.planner.name == planner]
        for index, requirement in enumerate(grid.requirements):
            points = tuple(point for each in mine for point in _points(each, index, requirement))
            results.append(
                RequirementResult(
                    requirement.name,
                    planner,
                    to_text(requirement.formula, parenthesise=True),
                    requirement.comparison,
                    requirement.target,
                    points,
                    _strategies(mine, index),
                )
            )
    return tuple(results)


def _strategies(found: list[CheckedBlock], index: int) -> tuple[tuple[float, float], ...] | None:
    if not all(each.strategies for each in found):
        return None
    ranges = [each.strategies[index] for each in found]
    return tuple(pair for each in ranges for pair in zip(each.smallest.tolist(), each.largest.tolist(), strict=True))


def _points(found: CheckedBlock, index: int, requirement: Requirement) -> Iterable[Point]:
    values = found.values[index]
    for k, initial in enumerate(found.initial):
        exact = None if values.fractions is None else values.fractions[k]
        lower, upper = float(values.lower[k]), float(values.upper[k])
        verdict = verdict_of(
            lower if exact is None else exact,
            upper if exact is None else exact,
            requirement.comparison,
            requirement.target,
        )
        block = found.block
        yield Point(
            Scenario(block.planner.name, block.swept, block.environment, initial),
            float(values.probability[k]),
            lower,
            upper,
            exact,
            float(values.second[k]),
            verdict,
        )
