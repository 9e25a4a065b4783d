"""The commands `verify explain`, `verify compare` and `verify require`: ask, print and write what was found."""

from dataclasses import replace
from functools import partial

from verifier.base.blocks import Pool
from verifier.base.budget import memory_limit
from verifier.base.errors import UsageError
from verifier.base.files import csv_text, named_files, write_text
from verifier.checking.process import StormProcess
from verifier.cli.invocation import Command
from verifier.cli.terminal import check_targets, give_result, progress_bar, tell_shares
from verifier.evidence.bundle.archive import zip_bytes
from verifier.evidence.bundle.certificates import certificates_of_comparison
from verifier.evidence.consistency import read_baseline
from verifier.questions.compare.comparing import compare, with_default_memory
from verifier.questions.compare.gating import CompareOptions
from verifier.questions.explain.explaining import explained
from verifier.questions.explain.frames import cell_sheets, read_traced
from verifier.questions.require.question import question_of
from verifier.questions.require.requiring import require
from verifier.questions.settings import ComparisonSettings, ExplanationSettings, RequirementSettings
from verifier.study.case import Study
from verifier.study.inputs import read_inputs
from verifier.telling.contact_sheet import contact_sheet_page
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
    give_result(arguments, command, result)
    return int(result.verdict.exit_code)


def compare_command(arguments: ComparisonSettings, command: Command) -> int:
    """Run `verify compare` and give its exit code."""
    check_targets(arguments, "comparison")
    baseline = None if arguments.baseline is None else read_baseline(arguments.baseline)
    asked = CompareOptions(**vars(arguments.look), baseline=baseline)
    files = named_files("--cm", arguments.cm)
    options = with_default_memory(arguments.options, asked.best_planner)
    with Pool(arguments.scheduler, options.limits.memory_bytes) as pool:
        result = compare(arguments.spec, files, asked, options, progress_bar, pool=pool)
    tell_shares(pool.shares)
    matrices = list(files.values())
    give_result(
        arguments,
        command,
        result,
        lambda: result.told(pairs=arguments.pairs),
        certificates=lambda _: zip_bytes(certificates_of_comparison(arguments.spec, matrices, options)),
    )
    return int(result.exit_code)


WITHOUT_ROWS = ("requirement", "planner", "outcome", "bin", "label", "required_recall")
"""Columns of the table where nothing is required of any cell."""


def require_command(arguments: RequirementSettings, command: Command) -> int:
    """Run `verify require` and give its exit code."""
    asked = question_of(arguments)
    check_targets(arguments)
    watch = partial(progress_bar, what="planners")
    result = require(arguments.spec, arguments.cm, asked, arguments.run_options, watch)
    rows = list(result.rows())
    give_result(arguments, command, result, csv=lambda _: csv_text(rows, None if rows else WITHOUT_ROWS))
    return int(result.exit_code)
