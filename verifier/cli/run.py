"""The command `verify run`: call the pipeline, print and write what it found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from verifier.base.blocks import Pool
from verifier.base.errors import ExitCode, InputError, UsageError, one_line
from verifier.base.files import csv_text, document_text, write_bytes, write_text
from verifier.chains import EXPORT_FORMATS, write_model
from verifier.checking.process import StormProcess
from verifier.cli.ci import Stopwatch, ci_texts
from verifier.cli.gates import asked_gates, gates_of
from verifier.cli.invocation import Command
from verifier.cli.targets import check_targets
from verifier.cli.terminal import columns, progress_bar, tell_shares, wants_colour
from verifier.pipeline import CheckedStudy, checked_and_told, verified
from verifier.questions.settings import RunSettings
from verifier.study.case import Study
from verifier.study.exporting import exported_region, model_of, require_one_case, vertex_model_of
from verifier.study.inputs import Inputs, read_inputs, read_spec_and_model
from verifier.study.model_checks import look_at, model_remarks
from verifier.study.options import RunOptions
from verifier.study.results import RunResult
from verifier.study.scenarios import make_grid
from verifier.telling.run import run_table

if TYPE_CHECKING:  # what most runs do not ask for is imported where it is made
    from matplotlib.figure import Figure

    from verifier.study.parsed import ParsedStudy


def run_command(arguments: RunSettings, command: Command) -> int:
    """Run `verify run` and give its exit code."""
    arguments = replace(arguments, options=arguments.options.by_default())
    if arguments.parse:
        from verifier.telling.parsed import parsed_text

        found = replace(_parsed(arguments), command=command)
        print(document_text(found) if arguments.json else parsed_text(found), end="")
        return 0
    if arguments.cm is None:
        raise UsageError("name the confusion matrices: --cm RESULTS.json")
    options, gates = arguments.options, asked_gates(arguments)
    for name in ("certificates", "check_certificates"):
        if getattr(arguments, name) is not None and not options.dependence_free:
            raise UsageError(
                f"--{name.replace('_', '-')} of verify run is about the bounds of --dependence-free: add that; "
                "certificates of other bounds are in bundles (verify evidence build)"
            )
    if arguments.check_certificates is not None:
        study = Study.of(read_inputs(arguments.spec, arguments.cm, options), options)
        return _check_certificates(study, arguments.check_certificates)
    check_targets(arguments)
    exports = {"--export": arguments.export, "--export-bounds": arguments.export_bounds}
    for option, path in exports.items():
        if path is not None and Path(path).suffix not in EXPORT_FORMATS:
            raise UsageError(f"{option}: expected a file name ending in {', '.join(EXPORT_FORMATS)}")
    watch = Stopwatch()
    with StormProcess() as storm, Pool(arguments.scheduler) as pool:
        inputs = read_inputs(arguments.spec, arguments.cm, options)
        study = Study.of(inputs, options)
        if any(path is not None for path in exports.values()):
            require_one_case(study)
        if arguments.export_bounds is not None:
            exported_region(study)
        checked, result = checked_and_told(study, storm, watch.around(progress_bar), partial=True, pool=pool)
        held = gates_of(gates, arguments, result, storm)
        draw = None if arguments.plot is None else _figure(arguments, inputs, options, storm, result)
    tell_shares(pool.shares)
    # Everything is made before anything is written.
    proofs = None if arguments.certificates is None else _certificates(checked)
    picture = b"" if draw is None or arguments.plot is None else _picture(draw(), arguments.plot)
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
    if proofs is not None and arguments.certificates is not None:
        write_bytes(arguments.certificates, proofs)
    if arguments.export is not None:
        write_model(model_of(study), arguments.export)
    if arguments.export_bounds is not None:
        write_model(vertex_model_of(study), arguments.export_bounds)
    if arguments.json:
        print(document, end="")
    else:
        points = arguments.all_scenarios
        print(run_table(result, points=points, colour=wants_colour(), columns=columns()), end="")
        if held is not None:
            from verifier.telling.gates import gate_lines

            print("".join(f"{one_line(line)}\n" for line in gate_lines(held, result)), end="")
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


def _certificates(checked: CheckedStudy) -> bytes:
    """An archive with the certificate of every bound whatever the dependence."""
    from verifier.evidence.bundle.archive import zip_bytes
    from verifier.evidence.bundle.layout import free_certificate_file
    from verifier.study.free import free_certificates  # linear programs take long to load

    return zip_bytes(free_certificates(checked.cases, free_certificate_file))


def _check_certificates(study: Study, path: str) -> int:
    """Decide certificates about a system; exit code 0 where all of its bounds are proven."""
    from verifier.evidence.bundle.archive import read_bundle
    from verifier.evidence.bundle.layout import free_certificate_file
    from verifier.study.free import wrong_certificates

    files = read_bundle(path)
    wrong = wrong_certificates(study, files, free_certificate_file)
    for each in wrong:
        print(f"WRONG {one_line(each)}")
    if not wrong:
        print(
            f"{len(files)} certificates prove every bound whatever the dependence of these spec, model and matrices."
        )
    return int(ExitCode.BAD_INPUT if wrong else ExitCode.SATISFIED)


def _figure(
    arguments: RunSettings, inputs: Inputs, options: RunOptions, storm: StormProcess, result: RunResult
) -> Callable[[], Figure]:
    """What draws the result, from what else must be computed for it."""
    from verifier.study.remembered import longest_shown
    from verifier.telling.figures.memory import persistence_figure, swept_lengths
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
    """The canonical matrix beside those by distance; the result alone where there is no other."""
    if options.canonical or inputs.confusion.matrices.bin_count == 1:
        return [("", result)]
    try:
        canonical = verified(Study.of(inputs, replace(options, canonical=True)), storm, progress_bar)
    except InputError:  # objects of different bins may need a true label that only the sum over bins would have
        return [("by distance", result)]
    return [("canonical", canonical), ("by distance", result)]


def _picture(figure: Figure, path: str) -> bytes:
    from verifier.telling.figures.drawing import figure_bytes

    return figure_bytes(figure, path)
