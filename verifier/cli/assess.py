"""The command `verify assess`: call what assesses, print and write. Nothing is computed here."""

from __future__ import annotations

import os
from pathlib import Path

from verifier.base.errors import InputError, Place, UsageError
from verifier.base.files import document_text, write_bytes, write_text
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.terminal import progress_bar
from verifier.robustness.assessment.document import assess_document
from verifier.robustness.assessment.plan import plans_text
from verifier.robustness.assessment.request import assessed
from verifier.robustness.assessment.result import AssessmentResult
from verifier.robustness.settings import AssessSettings
from verifier.telling.assess import assess_markdown, assess_tables
from verifier.telling.figures.drawing import check_plot_target, figure_bytes

OUTPUTS = ("output", "markdown", "plan", "plot")


def assess_command(arguments: AssessSettings, command: Command) -> int:
    """Run `verify assess` and give its exit code."""
    _check_targets(arguments)
    result = assessed(arguments, progress_bar)
    _give(arguments, result, command)
    return int(result.verdict.exit_code)


def _give(arguments: AssessSettings, result: AssessmentResult, command: Command) -> None:
    """Everything is made before anything is written."""
    texts = {}
    document = with_provenance(document_text(assess_document(result)), command)
    if arguments.output is not None:
        texts[arguments.output] = document
    if arguments.markdown is not None:
        texts[arguments.markdown] = assess_markdown(result)
    if arguments.plan is not None:
        texts[arguments.plan] = plans_text(result.title, result.plans)
    picture = b""
    if arguments.plot is not None:
        from verifier.telling.figures.assess import assess_figure

        picture = figure_bytes(assess_figure(result), arguments.plot)
    printed = document if arguments.json else assess_tables(result)
    for path, text in texts.items():
        write_text(path, text)
    if arguments.plot is not None:
        write_bytes(arguments.plot, picture)
    print(printed, end="")


def _check_targets(arguments: AssessSettings) -> None:
    """Refuse outputs that could not be written, or would overwrite the input, before anything is computed."""
    targets = {name: getattr(arguments, name) for name in OUTPUTS if getattr(arguments, name) is not None}
    for name, target in targets.items():
        if name == "plot":
            check_plot_target(target)
        if Path(target).exists() and Path(arguments.file).exists() and Path(target).samefile(arguments.file):
            raise UsageError(f"--{name}: {target} is an input of this assessment")
        if not target or Path(target).is_dir() or not Path(target).absolute().parent.is_dir():
            raise InputError("cannot be written: no such folder, or a folder itself", Place(target or "''"))
    made = None if arguments.make is None else Path(arguments.make).resolve()
    for name, target in targets.items():
        if made is not None and Path(target).resolve() in (made, *made.parents):
            raise UsageError(f"--{name}: {target} is or holds the folder of --make")
    if len({os.path.realpath(each) for each in targets.values()}) < len(targets):
        raise UsageError("two outputs would be written to the same file")
