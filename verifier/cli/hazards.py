"""The commands `verify evidence risk` and `verify evidence triggers`: ask, print and write what was found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from verifier.base.files import document_text
from verifier.cli.invocation import Command
from verifier.cli.targets import check_targets, give
from verifier.evidence.consistency import read_document
from verifier.evidence.context import CaseContext, read_context
from verifier.evidence.documents import Document
from verifier.evidence.risk.assembly import Stated, residual_risk
from verifier.evidence.risk.telling import risk_table
from verifier.evidence.settings import RiskSettings, TriggersSettings
from verifier.evidence.triggers.assembly import known_triggers
from verifier.evidence.triggers.telling import triggers_table


def risk_command(arguments: RiskSettings, command: Command) -> int:
    """Run `verify evidence risk` and give its exit code."""
    context, runs = _read(arguments)
    stated = Stated(context.risk, context.exposures, context.file)
    study = replace(residual_risk(stated, runs), command=command)
    give(arguments, document_text(study), lambda: risk_table(study))
    return int(study.verdict.exit_code)


def triggers_command(arguments: TriggersSettings, command: Command) -> int:
    """Run `verify evidence triggers` and give its exit code."""
    context, results = _read(arguments)
    study = replace(known_triggers(context.triggers, results, context.file), command=command)
    give(arguments, document_text(study), lambda: triggers_table(study))
    return int(study.verdict.exit_code)


def _read(arguments: RiskSettings | TriggersSettings) -> tuple[CaseContext, list[Document]]:
    """The context and the results; documents that the context names are inputs, too."""
    context = read_context(arguments.context)
    check_targets(arguments, "result", [str(Path(arguments.context).parent / each) for each in context.documents])
    return context, [read_document(path) for path in arguments.results]
