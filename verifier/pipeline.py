"""The whole story: from a spec and confusion matrices to verdicts.

    spec + model + matrices -> scenario grid -> skeleton -> Markov chain -> both engines -> verdicts

`verify_spec` is that story; everything else here prepares what it hands on or collects what it found.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from verifier.analysis.confidence import Confidence, Data, confidence, data_of_run
from verifier.analysis.dependence.channel_test import channel_document, class_tests, drawn_together
from verifier.analysis.intervals.drive_items import weighted_matrices
from verifier.analysis.intervals.measured import measured
from verifier.analysis.mixed import mixed_data
from verifier.analysis.objective import Objective
from verifier.analysis.settings import ConfidenceSettings
from verifier.base.budget import memory_limit
from verifier.base.errors import LimitError, NoAnswerError, UsageError
from verifier.blocks import CheckedBlock, block_chain, block_objectives, check_block, clock_of
from verifier.chains import write_chain
from verifier.checking.process import StormProcess
from verifier.collection import Judging, collected, interval_remarks, unanswered_requirement, with_plans
from verifier.language.expressions import Source, check_type
from verifier.language.specs import Specification, check_names, read_spec
from verifier.language.specs.specification import expand_lets
from verifier.options import RunOptions
from verifier.perception.confusion import ConfusionFile, ConfusionMatrices, read_confusion
from verifier.perception.confusion.counts import Sequences
from verifier.perception.confusion.mix import MixedMatrices
from verifier.provenance import (
    grid_remarks,
    input_files,
    matrices_record,
    noted,
    program_versions,
    run_remarks,
    run_settings,
)
from verifier.results import RunResult, Unanswered
from verifier.scenarios import Block, Grid, make_grid
from verifier.systems.model import SystemModel
from verifier.systems.reader import read_model

Progress: TypeAlias = Callable[[list[Block]], Iterable[Block]]
ObjectivesOf: TypeAlias = Callable[[Block], tuple[Objective, ...]]


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
        VerifierError: see `verifier.base.errors`; each says what to do.
    """
    with StormProcess() as storm:  # starts at once, so that Storm loads while the files are read
        return verified(read_inputs(spec_path, confusion_path, options), options, storm, progress)


def verified(
    inputs: Inputs, options: RunOptions, storm: StormProcess, progress: Progress = iter, *, partial: bool = False
) -> RunResult:
    """As `verify_spec`, for files that are read and a worker that runs; `partial` as for `checked_grid`."""
    with memory_limit(options.limits.memory_bytes):
        return result_of(checked_grid(inputs, options, storm, progress, partial=partial), inputs, options)


@dataclass(frozen=True, eq=False)
class CheckedGrid:
    """What was computed in every block of a grid; it does not depend on what decides verdicts.

    Attributes:
        grid: the scenarios, with the requirements that have an answer in all of them.
        blocks: what both engines say in each block.
        data: what intervals and bounds rest on; None where there are none.
        sure: for each block how sure that is; None where nothing says.
        storm: version of the model checker.
        unanswered: the requirements that have none.
    """

    grid: Grid
    blocks: tuple[CheckedBlock, ...]
    data: Data | None
    sure: tuple[tuple[Confidence, ...] | None, ...]
    storm: str
    unanswered: tuple[Unanswered, ...] = ()


def checked_grid(
    inputs: Inputs, options: RunOptions, storm: StormProcess, progress: Progress = iter, *, partial: bool = False
) -> CheckedGrid:
    """Both engines' values in every scenario, and how sure they are.

    Args:
        inputs, options, storm, progress: as for `verified`.
        partial: go on without the requirements that have no answer within the limits, as long as one has.

    Raises:
        VerifierError: as `verify_spec`; NoAnswerError where there is no answer.
    """
    grid, matrices, settings = inputs.grid(options), inputs.matrices(options), options.confidence
    begun, clock = time.monotonic(), clock_of(options, len(grid.requirements) * len(grid.blocks))
    found = tuple(
        check_block(block, grid, matrices, options, storm, partial=partial) for block in progress(list(grid.blocks))
    )
    intervals = settings is not None and options.decimals is None
    grid, found, unanswered = _answered(grid, found, intervals=intervals, partial=partial)
    if settings is None or not intervals:
        return CheckedGrid(grid, found, None, tuple(None for _ in found), storm.storm_version(), unanswered)
    clock.spend(time.monotonic() - begun)
    with clock.running("intervals and bounds over all matrices: --no-confidence leaves them out. It"):
        objectives = _remembering_one(lambda block: block_objectives(block, grid, matrices, options))
        data = _data(inputs, grid, matrices, options, settings, objectives)
        sure = tuple(confidence(objectives(block), data, settings) for block in progress(list(grid.blocks)))
    return CheckedGrid(grid, found, data, sure, storm.storm_version(), unanswered)


def _remembering_one(made: ObjectivesOf) -> ObjectivesOf:
    """The same, without making those of a single block again; those of several would take too much memory."""
    last: list[tuple[Block, tuple[Objective, ...]]] = []

    def objectives(block: Block) -> tuple[Objective, ...]:
        if not last or last[0][0] is not block:
            last.clear()  # before the next are made
            last.append((block, made(block)))
        return last[0][1]

    return objectives


def _data(
    inputs: Inputs,
    grid: Grid,
    matrices: ConfusionMatrices,
    options: RunOptions,
    settings: ConfidenceSettings,
    objectives: ObjectivesOf,
) -> Data:
    """What intervals and bounds rest on."""
    chains = map(objectives, grid.blocks)
    counts, strata = measured(matrices, options.empty_columns), inputs.mixed(options)
    if strata is None:
        return data_of_run(chains, counts, inputs.sequences(options), settings)
    return mixed_data(chains, counts, strata, settings)


def _answered(
    grid: Grid, found: Sequence[CheckedBlock], *, intervals: bool, partial: bool
) -> tuple[Grid, tuple[CheckedBlock, ...], tuple[Unanswered, ...]]:
    """Grid and blocks with the requirements that are answered everywhere, and the others.

    Raises:
        NoAnswerError: there are others, and `partial` is not asked for or nothing else is left.
    """
    reasons: dict[int, LimitError] = {}
    for block in found:
        counted = [k for k, values in zip(block.answered, block.values, strict=True) if values.counted and intervals]
        for index, reason in [*block.refused.items(), *((k, _without_intervals(grid, k)) for k in counted)]:
            reasons.setdefault(index, reason)
    if reasons and (not partial or len(reasons) == len(grid.requirements)):
        raise next(iter(reasons.values()))
    unanswered = tuple(
        unanswered_requirement(grid, found, index, str(reason)) for index, reason in sorted(reasons.items())
    )
    kept = replace(grid, requirements=tuple(r for k, r in enumerate(grid.requirements) if k not in reasons))
    return kept, tuple(block.without(reasons) for block in found), unanswered


def _without_intervals(grid: Grid, index: int) -> NoAnswerError:
    return NoAnswerError(
        f"{grid.requirements[index].name}: its steps are counted, for the measured matrix; intervals and bounds over "
        "all matrices would need an obligation for each step left, more than the limits allow",
        hint="--no-confidence gives the probability for the measured matrix alone; or shorten the window",
    )


def result_of(checked: CheckedGrid, inputs: Inputs, options: RunOptions) -> RunResult:
    """Verdicts, and what would decide more.

    Args:
        checked: what was computed under these options, or under ones that differ in what decides verdicts only.
        inputs: the files.
        options: of the run.
    """
    grid, data = checked.grid, checked.data
    settings = run_settings(grid, options, data)
    tests = class_tests(inputs.confusion.matrices.metadata, drawn_together(block.draws for block in checked.blocks))
    results = collected(grid, checked.blocks, checked.sure, Judging.of(settings, options, tests))
    if data is not None and options.confidence is not None and settings["verdict_from"] == "bounds":
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
        settings=settings,
        requirements=results,
        versions={**program_versions(), "storm": checked.storm},
        remarks=(
            *interval_remarks(results),
            *run_remarks(
                inputs.confusion.matrices,
                options,
                [each for block in checked.blocks for each in block.assumed],
                [
                    *grid_remarks(grid, options.false_alarms),
                    *(each for block in checked.blocks for each in block.remarks),
                    *noted((each.block, each.notes) for each in checked.blocks),
                ],
                data,
                tests,
            ),
            *(each.remark for each in checked.unanswered),
        ),
        matrices=matrices_record(inputs.confusion),
        channel=channel_document(tests),
        unanswered=checked.unanswered,
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
        """The matrices to use: those of the file or their sum over all bins, with the weights of the bounds.

        Point, intervals and bounds are made from the same weights: so the point lies within its bounds.

        Raises:
            UsageError: the file does not know what the weights need.
        """
        strata = self.mixed(options)
        if strata is not None:
            return strata.matrices()
        matrices = self.confusion.matrices.canonical() if options.canonical else self.confusion.matrices
        return weighted_matrices(matrices, self.sequences(options), options.weights)

    def mixed(self, options: RunOptions) -> MixedMatrices | None:
        """The matrices by the bins of the variable that is weighed, where one is."""
        found = self.confusion.mixed
        return found.canonical() if found is not None and options.canonical else found

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
    return Inputs(spec, model, read_confusion(confusion_path, options.where, options.score_threshold, options.mix))


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
