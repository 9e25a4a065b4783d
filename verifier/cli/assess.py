"""The command `verify assess`: call what assesses, print and write. Nothing is computed here."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from verifier.base.errors import UsageError
from verifier.base.files import document_text
from verifier.cli.invocation import Command, with_provenance
from verifier.cli.targets import check_targets, give
from verifier.cli.terminal import columns, progress_bar
from verifier.robustness.assessment.document import assess_document
from verifier.robustness.assessment.plan import plans_text
from verifier.robustness.assessment.request import assessed
from verifier.robustness.assessment.result import AssessmentResult
from verifier.robustness.settings import AssessSettings
from verifier.telling.assess import assess_markdown, assess_tables
from verifier.telling.figures.drawing import figure_bytes


def assess_command(arguments: AssessSettings, command: Command) -> int:
    """Run `verify assess` and give its exit code."""
    _check_folders(arguments)
    check_targets(arguments, "assessment")
    result = assessed(arguments, progress_bar)
    give(
        arguments,
        with_provenance(document_text(assess_document(result)), command),
        lambda: assess_tables(result, columns=columns()),
        markdown=lambda _: assess_markdown(result),
        plan=lambda _: plans_text(result.title, result.plans),
        plot=partial(_picture, result),
    )
    return int(result.verdict.exit_code)


def _picture(result: AssessmentResult, path: str) -> bytes:
    from verifier.telling.figures.assess import assess_figure

    return figure_bytes(assess_figure(result), path)


def _check_folders(arguments: AssessSettings) -> None:
    """Refuse folders that an output would lie in the way of, before anything is computed."""
    made = None if arguments.make is None else Path(arguments.make).resolve()
    for name in ("output", "markdown", "plan", "plot"):
        target = getattr(arguments, name)
        if made is not None and target is not None and Path(target).resolve() in (made, *made.parents):
            raise UsageError(f"--{name}: {target} is or holds the folder of --make")
