"""The command `verify require`: ask, print and write what was found."""

from __future__ import annotations

from functools import partial

from verifier.base.budget import memory_limit
from verifier.base.files import csv_text
from verifier.checking.process import StormProcess
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.targets import check_targets, give
from verifier.cli.terminal import columns, progress_bar
from verifier.questions.require.question import question_of
from verifier.questions.require.requiring import required
from verifier.questions.settings import RequirementSettings
from verifier.study.case import Study
from verifier.study.inputs import read_inputs
from verifier.telling.require import require_table

WITHOUT_ROWS = ("requirement", "planner", "outcome", "bin", "label", "required_recall")
"""Columns of the table where nothing is required of any cell."""


def require_command(arguments: RequirementSettings, command: Command) -> int:
    """Run `verify require` and give its exit code."""
    asked = question_of(arguments)
    options = arguments.run_options.by_default()
    check_targets(arguments)
    with StormProcess() as storm, memory_limit(options.limits.memory_bytes):
        inputs = read_inputs(arguments.spec, arguments.cm, options)
        result = required(Study.of(inputs, options), asked, storm, partial(progress_bar, what="planners"))
    rows, document = list(result.rows()), with_provenance(result.json_text(), command)
    table = csv_text(rows, None if rows else WITHOUT_ROWS)
    give(arguments, document, lambda: require_table(result, columns=columns()), csv=lambda _: table)
    return int(result.exit_code)
