"""The command `verify run`: call the pipeline, print, write what it found; its gates and outputs for integration."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from verifier.analysis.channel_test import detector_text
from verifier.base.blocks import Pool
from verifier.base.errors import ExitCode, InputError, UsageError, one_line
from verifier.base.files import csv_text, document_text, ending_of, read_json
from verifier.chains import EXPORT_FORMATS, write_model
from verifier.checking.process import StormProcess
from verifier.cli.invocation import Command
from verifier.cli.terminal import check_targets, give, progress_bar, tell_shares
from verifier.language.specs import Specification
from verifier.pipeline import verified
from verifier.questions.settings import RunSettings
from verifier.study.case import Case, Study
from verifier.study.exporting import exported_region, model_of, require_one_case, vertex_model_of
from verifier.study.inputs import Inputs, make_grid, read_inputs, read_spec_and_model
from verifier.study.model_checks import look_at, model_remarks
from verifier.study.options import RunOptions
from verifier.study.points import block_text
from verifier.study.records import BaselineFile, DropGate, Gates, NewRequirement, Regression
from verifier.study.results import RunResult
from verifier.telling.figures.drawing import figure_bytes
from verifier.telling.run import run_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from verifier.questions.compare.gating import Baseline
    from verifier.study.parsed import ParsedStudy


def run_command(arguments: RunSettings, command: Command) -> int:
    """Run `verify run` and give its exit code."""
    arguments = replace(arguments, options=arguments.options.by_default())
    if arguments.parse:
        from verifier.telling.parsed import parsed_text

        parsed = replace(_parsed(arguments), command=command)
        print(document_text(parsed) if arguments.json else parsed_text(parsed), end="")
        return 0
    if arguments.cm is None:
        raise UsageError("name the confusion matrices: --cm RESULTS.json")
    options, recorded = arguments.options, recorded_baseline(arguments)
    check_targets(arguments)
    exports = {"--export": arguments.export, "--export-bounds": arguments.export_bounds}
    for option, path in exports.items():
        if path is not None:
            ending_of(option, path, EXPORT_FORMATS)
    watch = Stopwatch()
    with StormProcess() as storm, Pool(arguments.scheduler, options.limits.memory_bytes) as pool:
        inputs = read_inputs(arguments.spec, arguments.cm, options)
        study = Study.of(inputs, options)
        if any(path is not None for path in exports.values()):
            require_one_case(study)
        if arguments.export_bounds is not None:
            exported_region(study)
        result = verified(study, storm, watch.around(progress_bar), partial=True, pool=pool)
        held = gates_of(arguments, recorded, result, storm)
        draw = None if arguments.plot is None else _figure(arguments, inputs, options, storm, result)
    tell_shares(pool.shares)
    result = replace(result, command=command, gates=held)
    document = result.json_text()
    asked = (arguments.export, model_of), (arguments.export_bounds, vertex_model_of)
    models = [(make(study), path) for path, make in asked if path is not None]
    give(
        arguments,
        document,
        lambda: run_table(result, points=arguments.all_scenarios),
        csv=lambda _: csv_text(result.rows()),
        **({} if draw is None else {"plot": lambda path: figure_bytes(draw(), path)}),
        **ci_outputs(arguments, result, document, inputs.spec, watch),
    )
    for model, path in models:
        write_model(model, path)
    return int(ExitCode.VIOLATED if held is not None and held.failed else result.verdict.exit_code)


def _parsed(arguments: RunSettings) -> ParsedStudy:
    """Spec and model as they are read; where matrices are given, what the chains show of them."""
    from verifier.study.parsed import parsed_study
    from verifier.study.provenance import input_files, model_files

    options = arguments.options
    spec, model = read_spec_and_model(arguments.spec, options)
    if not (spec.planners or options.selection.planners):
        options = replace(options, selection=replace(options.selection, planners=tuple(model.planners)))
    if arguments.cm is None:
        return parsed_study(model, make_grid(spec, model, options.selection), model_files(spec, model))
    study = Study.of(read_inputs(arguments.spec, arguments.cm, options), options)
    looks, inputs = [look_at(case) for case in study.cases], study.inputs
    shares, remarks = tuple(look.share for look in looks), tuple(model_remarks(looks))
    files = input_files(inputs.spec, inputs.model, inputs.confusion)
    return parsed_study(inputs.model, study.grid, files, shares, remarks)


def _figure(
    arguments: RunSettings, inputs: Inputs, options: RunOptions, storm: StormProcess, result: RunResult
) -> Callable[[], Figure]:
    """What draws the result, from what else must be computed for it."""
    from verifier.study.remembered import longest_shown
    from verifier.telling.figures.confusion import persistence_figure, swept_lengths
    from verifier.telling.figures.run import run_figure

    if options.persist is None:
        return partial(run_figure, _panels(inputs, options, storm, result), arguments.plot_scale)
    results = {options.persist: result}
    for longest in swept_lengths(options.persist)[:-1]:
        shorter = replace(options, persist=longest, assume_persistence=True)
        study = Study.of(read_inputs(arguments.spec, str(arguments.cm), shorter), shorter)
        results[longest] = verified(study, storm, progress_bar)
    seen, _ = longest_shown(inputs.confusion, inputs.model)
    return partial(persistence_figure, results, seen, one_line(result.title))


def _panels(
    inputs: Inputs, options: RunOptions, storm: StormProcess, result: RunResult
) -> list[tuple[str, RunResult]]:
    """The canonical matrix beside those by distance; the result alone where none sums over all bins."""
    matrices = inputs.confusion.matrices
    if options.canonical or matrices.bin_count == 1 or matrices.variables:
        return [("", result)]
    try:
        canonical = verified(Study.of(inputs, replace(options, canonical=True)), storm, progress_bar)
    except InputError:  # objects of different bins may need a true label that only the sum over bins would have
        return [("by distance", result)]
    return [("canonical", canonical), ("by distance", result)]


PAIRED = (
    "worst probabilities, both verified here; posterior probabilities from paired draws of the two files of matrices"
)
SAME = "worst probabilities, both verified here; the matrices are the same, so every drop is 0 in every draw"
POINTS = "worst probabilities, both verified here, without draws"
CONTRADICTED = (
    "; both are those of {}, which the data contradict: neither a drop nor its absence is shown of the system"
)
RECORDED = "worst probabilities found here and those that the baseline records; no draws, for it has no matrices"


def recorded_baseline(arguments: RunSettings) -> Baseline | None:
    """The earlier result that a run is held against; None where there is none, or the baseline is of matrices.

    Raises:
        UsageError: a drop without a baseline or the other way round, or a chance for which there are no draws;
            InputError: a baseline that cannot be read.
    """
    recorded = None
    if arguments.baseline is not None:
        document, _ = read_json(arguments.baseline)
        if not isinstance(document, dict) or document.get("schema") != "verifier.confusion":
            from verifier.evidence.consistency import read_baseline

            recorded = read_baseline(arguments.baseline)
    if arguments.drop_from is not None and recorded is not None:
        raise UsageError(
            "--drop-from probability: the baseline records probabilities and has no matrices to draw\n"
            "  hint: give the earlier matrices as --baseline, or use --drop-from point"
        )
    if arguments.drop_from is not None and not _draws(arguments.options):
        raise UsageError(
            "--drop-from probability takes draws: leave out --point-only, --round-transitions, --mix and --persist"
        )
    return recorded


def _draws(options: RunOptions) -> bool:
    """Whether matrices are drawn for a run with these options, and both files of matrices for its gate."""
    alone = options.mix is not None or options.persist is not None
    return options.confidence is not None and options.decimals is None and not alone


def gates_of(
    arguments: RunSettings, recorded: Baseline | None, result: RunResult, storm: StormProcess
) -> Gates | None:
    """Hold a run against the gates that were asked for, if any; VerifierError as the pipeline and `gate_of_run`."""
    options, floor = arguments.options, None
    if arguments.fail_under is not None:
        from verifier.questions.compare.floor import floor_of

        floor = floor_of(result, arguments.fail_under)
    if arguments.max_drop is None or arguments.baseline is None:
        return None if floor is None else Gates(floor)
    from verifier.questions.compare.gating import gate_of_run, rule_text

    if recorded is not None:
        baseline, compared = recorded, RECORDED
        gate = gate_of_run(baseline, arguments.max_drop, result, options.selection)
    else:
        if options.persist is None:  # the memory of the run, whatever the earlier data support
            options = replace(options, memory=result.settings.memory or "none")
        inputs = read_inputs(arguments.spec, arguments.baseline, options)
        baseline = _verified_baseline(inputs, options, storm)
        same = next(file.sha256 for file in result.inputs if file.role == "confusion") == inputs.confusion.sha256
        if not same and _draws(options):
            names = dict.fromkeys(requirement.name for requirement in result.requirements if requirement.is_plain)
            gate, compared = _paired(baseline, replace(arguments, options=options), names), PAIRED
        else:
            gate = gate_of_run(baseline, arguments.max_drop, result, options.selection)
            gate = replace(gate, drop_from=rule_text(arguments.drop_from))
            compared = SAME if same else POINTS
    if result.channel.test == "contradicted":
        compared += CONTRADICTED.format(detector_text(result.channel.contexts))
    known = {(requirement, planner) for _, requirement, _, planner in baseline.worst}
    added = tuple(
        NewRequirement(requirement.name, requirement.planner)
        for requirement in result.requirements
        if requirement.is_plain and (requirement.name, requirement.planner) not in known
    )
    return Gates(floor, Regression(**vars(gate), compared=compared, not_in_baseline=added))


def _verified_baseline(inputs: Inputs, options: RunOptions, storm: StormProcess) -> Baseline:
    """The earlier matrices under today's spec, model and options."""
    from verifier.questions.compare.gating import baseline_of

    file = BaselineFile(PurePath(inputs.confusion.name).name, inputs.confusion.sha256)
    return baseline_of(verified(Study.of(inputs, options.point_alone()), storm), file, file.name)


def _paired(baseline: Baseline, arguments: RunSettings, names: Iterable[str]) -> DropGate:
    """Both files of matrices drawn together, as `verify compare` does, for the requirements of these names."""
    from verifier.questions.compare.comparing import compare
    from verifier.questions.compare.gating import CompareOptions

    selection = replace(arguments.options.selection, requirements=tuple(names))
    plain = replace(arguments.options, verdict_from="point", strategies=False, selection=selection)
    gated = CompareOptions(max_drop=arguments.max_drop, drop_from=arguments.drop_from, baseline=baseline)
    files = {"baseline": str(arguments.baseline), "now": str(arguments.cm)}
    gate = compare([arguments.spec], files, gated, plain).gate
    if gate is None:
        raise ValueError("a comparison with a baseline has a gate")
    drops = tuple(replace(drop, detector="") for drop in gate.drops)
    return replace(gate, drops=drops)


CI_OUTPUTS = ("junit", "sarif", "in_toto")
RESULT_FILE = "run.json"
"""What the document of the run is called in them, wherever it is written."""
Progress = Callable[[list[Case]], Iterable[Case]]


class Stopwatch:
    """Measures how long each Markov chain takes, by its planner and what else makes it."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[str, str], float] = {}

    def around(self, progress: Progress) -> Progress:
        """The progress bar, with the time between two chains taken."""

        def timed(cases: list[Case]) -> Iterator[Case]:
            for case in progress(cases):
                name = case.planner.name, block_text(case.environment, case.constants)
                start = time.perf_counter()
                yield case
                self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

        return timed


def ci_outputs(
    arguments: RunSettings, result: RunResult, document: str, spec: Specification, watch: Stopwatch
) -> dict[str, Callable[[str], str]]:
    """What makes the outputs for continuous integration, as for `give`; nothing where none was asked for.

    With SOURCE_DATE_EPOCH in the environment, the wish for repeatable bytes, JUnit has no times.
    """
    if all(getattr(arguments, name) is None for name in CI_OUTPUTS):
        return {}
    from verifier.evidence.documents import Document
    from verifier.evidence.junit import junit_xml, suite_name
    from verifier.evidence.sarif import requirement_places, sarif_log
    from verifier.evidence.statements import statement

    digest = hashlib.sha256(document.encode()).hexdigest()
    run = Document(RESULT_FILE, "run", json.loads(document), digest).holding(result)
    taken = {suite_name(*chain): seconds for chain, seconds in watch.seconds.items()}
    seconds = None if "SOURCE_DATE_EPOCH" in os.environ else taken
    name = Path(arguments.spec).name
    return {
        "junit": lambda _: junit_xml(run, name, seconds),
        "sarif": lambda _: sarif_log(run, _path_in_repository(arguments.spec), requirement_places(spec)),
        "in_toto": lambda _: statement(run, _subjects(result)),
    }


def _subjects(result: RunResult) -> dict[str, str]:
    """Model, files of planners and matrices with their hashes; where two have one name, the role stands before it."""
    tested = [file for file in result.inputs if file.role != "spec"]
    names = [file.name for file in tested]
    return {file.name if names.count(file.name) == 1 else f"{file.role}/{file.name}": file.sha256 for file in tested}


def _path_in_repository(path: str) -> str:
    """The path from the folder the command runs in, usually a repository's root; the name where it lies elsewhere."""
    given = Path(path)
    if given.is_absolute():
        given = given.relative_to(Path.cwd()) if given.is_relative_to(Path.cwd()) else Path(given.name)
    return Path(given.name).as_posix() if ".." in given.parts else given.as_posix()
