"""Residual risk: hazardous behaviour and harm per hour over stated conditions, and in none of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verifier.evidence.risk.document import RiskResult


def risk_from(context: str | Path, results: Iterable[str | Path]) -> RiskResult:
    """The residual risk of the hazards of a context, from the documents of runs.

    Raises:
        InputError, UsageError: see `verifier.evidence.risk.assembly.residual_risk`.
    """
    from verifier.evidence.consistency import read_document
    from verifier.evidence.context import read_context
    from verifier.evidence.risk.assembly import residual_risk

    return residual_risk(read_context(context), [read_document(path) for path in results])
