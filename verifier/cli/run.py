"""The command `verify run`: call the pipeline, print and write what it found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from verifier.base.errors import ExitCode, InputError, UsageError, one_line
from verifier.base.files import csv_text, document_text, write_bytes, write_text
from verifier.chains import EXPORT_FORMATS, write_model
from verifier.checking.process import StormProcess
from verifier.cli.ci import Stopwatch, ci_texts
from verifier.cli.gates import asked_gates, gates_of
from verifier.cli.invocation import Command
from verifier.cli.targets import check_targets
from verifier.cli.terminal import progress_bar, wants_colour
from verifier.pipeline import verified
from verifier.questions.settings import RunSettings
from verifier.study.case import Study
from verifier.study.exporting import exported_region, model_of, require_one_case, vertex_model_of
from verifier.study.inputs import Inputs, read_inputs, read_spec_and_model
from verifier.study.model_checks import look_at, model_remarks
from verifier.study.options import RunOptions
from verifier.study.parsed import ParsedStudy, parsed_study
from verifier.study.provenance import input_files, model_files
from verifier.study.results import RunResult
from verifier.study.scenarios import make_grid
from verifier.telling.figures.drawing import figure_bytes
from verifier.telling.figures.run import run_figure
from verifier.telling.gates import gate_lines
from verifier.telling.parsed import parsed_text
from verifier.telling.run import run_table


def run_command(arguments: RunSettings, command: Command) -> int:
    """Run `verify run` and give its exit code."""
    arguments = replace(arguments, options=arguments.options.by_default())
    if arguments.parse:
        found = replace(_parsed(arguments), command=command)
        print(document_text(found) if arguments.json else parsed_text(found), end="")
        return 0
    if arguments.cm is None:
        raise UsageError("name the confusion matrices: --cm RESULTS.json")
    options, gates = arguments.options, asked_gates(arguments)
    check_targets(arguments)
    exports = {"--export": arguments.export, "--export-bounds": arguments.export_bounds}
    for option, path in exports.items():
        if path is not None and Path(path).suffix not in EXPORT_FORMATS:
            raise UsageError(f"{option}: expected a file name ending in {', '.join(EXPORT_FORMATS)}")
    watch = Stopwatch()
    with StormProcess() as storm:
        inputs = read_inputs(arguments.spec, arguments.cm, options)
        study = Study.of(inputs, options)
        if any(path is not None for path in exports.values()):
            require_one_case(study)
        if arguments.export_bounds is not None:
            exported_region(study)
        result = verified(study, storm, watch.around(progress_bar), partial=True)
        held = gates_of(gates, arguments, result, storm)
        panels = [] if arguments.plot is None else _panels(inputs, options, storm, result)
    # Everything is made before anything is written.
    picture = (
        b"" if arguments.plot is None else figure_bytes(run_figure(panels, arguments.plot_scale), arguments.plot)
    )
    recorded = replace(result, command=command, gates=held)
    document = recorded.json_text()
    texts = ci_texts(arguments, recorded, document, inputs.spec, watch)
    if arguments.output is not None:
        texts.append((arguments.output, document))
    if arguments.csv is not None:
        texts.append((arguments.csv, csv_text(result.rows())))
    for path, text in texts:
        write_text(path, text)
    if arguments.plot is not None:
        write_bytes(arguments.plot, picture)
    if arguments.export is not None:
        write_model(model_of(study), arguments.export)
    if arguments.export_bounds is not None:
        write_model(vertex_model_of(study), arguments.export_bounds)
    if arguments.json:
        print(document, end="")
    else:
        print(run_table(result, points=arguments.all_scenarios, colour=wants_colour()), end="")
        if held is not None:
            print("".join(f"{one_line(line)}\n" for line in gate_lines(held, result)), end="")
    return int(ExitCode.VIOLATED if held is not None and held.failed else result.verdict.exit_code)


def _parsed(arguments: RunSettings) -> ParsedStudy:
    """Spec and model as they are read; where matrices are given, what the chains show of them."""
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


def _panels(
    inputs: Inputs, options: RunOptions, storm: StormProcess, result: RunResult
) -> list[tuple[str, RunResult]]:
    """The canonical matrix beside those by distance; the result alone where there is no other."""
    if options.canonical or inputs.confusion.matrices.bin_count == 1:
        return [("", result)]
    try:
        canonical = verified(Study.of(inputs, replace(options, canonical=True)), storm, progress_bar)
    except InputError:  # objects of different bins may need a true label that only the sum over bins would have
        return [("by distance", result)]
    return [("canonical", canonical), ("by distance", result)]
