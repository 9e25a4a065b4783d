"""The command `verify explain`: call the story, print and write what it found."""

from __future__ import annotations

from dataclasses import replace

from verifier.base.budget import memory_limit
from verifier.base.errors import UsageError
from verifier.base.files import write_text
from verifier.checking.process import StormProcess
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.targets import check_targets, give
from verifier.cli.terminal import columns, progress_bar
from verifier.questions.explain.contact_sheet import cell_sheets
from verifier.questions.explain.explaining import explained, read_traced
from verifier.questions.settings import ExplanationSettings
from verifier.study.case import Study
from verifier.study.inputs import read_inputs
from verifier.telling.contact_sheet import contact_sheet_page
from verifier.telling.explain import explain_table
from verifier.telling.figures.drawing import figure_bytes
from verifier.telling.figures.explain import explain_figure
from verifier.telling.html import html_text


def explain_command(arguments: ExplanationSettings, command: Command) -> int:
    """Run `verify explain` and give its exit code: that of the verdict."""
    options, settings = arguments.options, arguments.explanation
    options = options.by_default() if arguments.record is None else options
    seen = arguments.json or arguments.output or arguments.plot or settings.variables
    settings = replace(settings, with_map=bool(seen))
    if arguments.sheet.contact_sheet is not None and arguments.record is None:
        raise UsageError(
            "--contact-sheet needs the frames of detection errors: name the record of the counting, --record"
        )
    check_targets(arguments)
    with StormProcess() as storm, memory_limit(options.limits.memory_bytes):
        inputs = read_inputs(arguments.spec, arguments.cm, options)
        sheet = arguments.sheet
        drawn = sheet.contact_sheet is not None
        traced = None if arguments.record is None else read_traced(arguments.record, arguments.cm, boxes=drawn)
        study = Study.of(inputs, options)
        result = explained(study, settings, storm, traced, progress_bar)
    if sheet.contact_sheet is not None and sheet.images is not None and traced is not None:
        frames = cell_sheets(result, study, traced, sheet.images, sheet.frames)
        page = contact_sheet_page(result.title, frames, result.bins, traced.record, sheet.blur)
        write_text(sheet.contact_sheet, html_text(page))
    document = with_provenance(result.json_text(), command)
    give(
        arguments,
        document,
        lambda: explain_table(result, columns=columns()),
        plot=lambda path: figure_bytes(explain_figure(result), path),
    )
    return int(result.verdict.exit_code)
