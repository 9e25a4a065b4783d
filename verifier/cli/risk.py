"""The command `verify evidence risk`: ask, print and write what was found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from verifier.base.files import document_text
from verifier.cli.invocation import Command
from verifier.cli.targets import check_targets, give
from verifier.evidence.consistency import read_document
from verifier.evidence.context import read_context
from verifier.evidence.risk.assembly import Stated, residual_risk
from verifier.evidence.risk.telling import risk_table
from verifier.evidence.settings import RiskSettings


def risk_command(arguments: RiskSettings, command: Command) -> int:
    """Run `verify evidence risk` and give its exit code."""
    context = read_context(arguments.context)
    check_targets(arguments, "risk", [str(Path(arguments.context).parent / each) for each in context.documents])
    runs = [read_document(path) for path in arguments.results]
    stated = Stated(context.risk, context.exposures, context.file)
    study = replace(residual_risk(stated, runs), command=command)
    give(arguments, document_text(study), lambda: risk_table(study))
    return int(study.verdict.exit_code)
