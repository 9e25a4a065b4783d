"""The whole story: from a spec and confusion matrices to verdicts.

    spec + model + matrices -> scenario grid -> skeleton -> Markov chain -> both engines -> verdicts

`verify_spec` is that story; everything else here prepares what it hands on or collects what it found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from verifier.analysis.confidence import Confidence, Data, confidence, data_of_run
from verifier.analysis.measured import measured
from verifier.blocks import CheckedBlock, block_chain, block_objectives, check_block
from verifier.chains import write_chain
from verifier.checking.process import StormProcess
from verifier.collection import collected, with_plans
from verifier.confusion import ConfusionFile, ConfusionMatrices, read_confusion
from verifier.confusion.counts import Sequences
from verifier.errors import UsageError
from verifier.expressions import Source, check_type
from verifier.options import RunOptions
from verifier.provenance import (
    input_files,
    matrices_record,
    program_versions,
    reading_remarks,
    run_remarks,
    run_settings,
)
from verifier.results import RunResult
from verifier.scenarios import Block, Grid, make_grid
from verifier.specs import Specification, check_names, read_spec
from verifier.specs.specification import expand_lets
from verifier.systems.model import SystemModel
from verifier.systems.reader import read_model

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
    return result_of(checked_grid(inputs, options, storm, progress), inputs, options)


@dataclass(frozen=True, eq=False)
class CheckedGrid:
    """What was computed in every block of a grid; it does not depend on what decides verdicts.

    Attributes:
        grid: the scenarios.
        blocks: what both engines say in each block.
        data: what intervals and bounds rest on; None where there are none.
        sure: for each block how sure that is; None where nothing says.
        storm: version of the model checker.
    """

    grid: Grid
    blocks: tuple[CheckedBlock, ...]
    data: Data | None
    sure: tuple[tuple[Confidence, ...] | None, ...]
    storm: str


def checked_grid(inputs: Inputs, options: RunOptions, storm: StormProcess, progress: Progress = iter) -> CheckedGrid:
    """Both engines' values in every scenario, and how sure they are; VerifierError as `verify_spec`."""
    grid, matrices, settings = inputs.grid(options), inputs.matrices(options), options.confidence
    found = tuple(check_block(block, grid, matrices, options, storm) for block in progress(list(grid.blocks)))
    if settings is None or options.decimals is not None:
        return CheckedGrid(grid, found, None, tuple(None for _ in found), storm.storm_version())
    chains = (block_objectives(block, grid, matrices, options) for block in grid.blocks)
    data = data_of_run(chains, measured(matrices, options.empty_columns), inputs.sequences(options), settings)
    sure = tuple(
        confidence(block_objectives(block, grid, matrices, options), data, settings)
        for block in progress(list(grid.blocks))
    )
    return CheckedGrid(grid, found, data, sure, storm.storm_version())


def result_of(checked: CheckedGrid, inputs: Inputs, options: RunOptions) -> RunResult:
    """Verdicts, and what would decide more.

    Args:
        checked: what was computed under these options, or under ones that differ in `verdict_from` only.
        inputs: the files.
        options: of the run.
    """
    grid, data = checked.grid, checked.data
    source = "point" if data is None else options.verdict_from
    results = collected(grid, checked.blocks, checked.sure, source)
    if data is not None and options.confidence is not None and source == "guaranteed":
        matrices = inputs.matrices(options)
        results = with_plans(
            results,
            grid,
            matrices,
            lambda block: block_objectives(block, grid, matrices, options),
            data,
            options.confidence,
        )
    return RunResult(
        title=inputs.confusion.matrices.title or Path(inputs.confusion.name).stem,
        inputs=input_files(inputs.spec, inputs.model, inputs.confusion),
        settings=run_settings(grid, options, data),
        requirements=results,
        versions={**program_versions(), "storm": checked.storm},
        remarks=run_remarks(
            inputs.confusion.matrices,
            options,
            [each for block in checked.blocks for each in block.assumed],
            [*reading_remarks(grid), *(each for block in checked.blocks for each in block.remarks)],
            data,
        ),
        matrices=matrices_record(inputs.confusion),
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

    def sequences(self, options: RunOptions) -> Sequences | None:
        """The counts by sequence behind these matrices, where the file has them."""
        found = self.confusion.sequences
        return found.canonical() if found is not None and options.canonical else found


def read_inputs(spec_path: str | Path, confusion_path: str | Path, options: RunOptions = RunOptions()) -> Inputs:
    """Read spec, system model and matrices; VerifierError as `verify_spec`."""
    spec = read_spec(spec_path)
    model = read_model(spec.model)
    check_names(spec, model.types())
    if options.selection.initial is not None:
        check_type(options.selection.initial, model.types(), Source("", "--initial"), "boolean")
    return Inputs(spec, model, read_confusion(confusion_path, options.where, options.score_threshold))


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
    skeleton, chain = block_chain(grid.blocks[0], grid, inputs.matrices(options), options, conditions)
    write_chain(replace(chain, labels={**chain.labels, "terminal": skeleton.terminal}), path)
