"""The command `verify evidence triggers`: ask, print and write what was found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from verifier.base.files import document_text
from verifier.cli.invocation import Command
from verifier.cli.targets import check_targets, give
from verifier.evidence.consistency import read_document
from verifier.evidence.context import read_context
from verifier.evidence.settings import TriggersSettings
from verifier.evidence.triggers.assembly import known_triggers
from verifier.evidence.triggers.telling import triggers_table


def triggers_command(arguments: TriggersSettings, command: Command) -> int:
    """Run `verify evidence triggers` and give its exit code."""
    context = read_context(arguments.context)
    check_targets(arguments, "table", [str(Path(arguments.context).parent / each) for each in context.documents])
    found = known_triggers(context.triggers, [read_document(path) for path in arguments.results], context.file)
    study = replace(found, command=command)
    give(arguments, document_text(study), lambda: triggers_table(study))
    return int(study.verdict.exit_code)
