"""The command `verify report`: read the results, write the report. Nothing is computed here."""

from __future__ import annotations

from pathlib import Path

from verifier.base.errors import UsageError, one_line
from verifier.base.files import write_text
from verifier.cli.invocation import Command
from verifier.cli.targets import check_targets
from verifier.evidence.consistency import read_document
from verifier.evidence.report import csv_report, html_report, markdown_report
from verifier.evidence.settings import ReportSettings

ENDINGS = (".html", ".md", ".csv")


def report_command(arguments: ReportSettings, command: Command) -> int:
    """Run `verify report` and give its exit code: 0 when everything is written, whatever the verdicts are."""
    _check_targets(arguments)
    documents = [read_document(path) for path in arguments.results]
    # Everything is made before anything is written.
    texts = {}
    for target in arguments.output:
        match Path(target).suffix.lower():
            case ".html":
                texts[target] = html_report(documents, arguments.title)
            case ".md":
                texts[target] = markdown_report(documents, arguments.title)
            case _:
                texts[target] = csv_report(documents)
    for target, text in texts.items():
        write_text(target, text)
        print(f"wrote {one_line(target)}")
    return 0


def _check_targets(arguments: ReportSettings) -> None:
    """Refuse outputs that could not be written, or would overwrite an input, before anything is read."""
    if arguments.title is not None and not arguments.title.strip():
        raise UsageError("--title: expected a text")
    for target in arguments.output:
        if Path(target).suffix.lower() not in ENDINGS:
            raise UsageError(f"--output: expected a file name ending in {', '.join(ENDINGS)}, got {one_line(target)}")
    check_targets(arguments, "report")
