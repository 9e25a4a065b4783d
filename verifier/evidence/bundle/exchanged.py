"""The files of a bundle for other tools, which need no library to be written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from verifier.evidence.bundle.layout import numbered_file
from verifier.evidence.bundle.trace import TRACE_COLUMNS
from verifier.evidence.case import Case
from verifier.evidence.exchange.mlte import mlte_artefacts
from verifier.evidence.exchange.reqif import reqif_text
from verifier.evidence.exchange.sacm import sacm_text
from verifier.evidence.exchange.tables import links_text, nodes_text
from verifier.evidence.status import Standing
from verifier.study.results import RunResult


@dataclass(frozen=True)
class Exchanged:
    """What is told: a run, the case, how requirements stand, the rows of the trace, and path -> SHA-256 of files."""

    run: RunResult
    case: Case
    standings: Sequence[Standing]
    rows: Sequence[Mapping[str, str]]
    hashes: Mapping[str, str]

    def texts(self, folder: str, title: str, day: str) -> dict[str, str]:
        """Path -> text, in a folder that ends with a slash; `day` as 2026-05-28."""
        return {
            f"{folder}case.sacm.xmi": sacm_text(self.case, self.hashes),
            f"{folder}nodes.csv": nodes_text(self.case),
            f"{folder}links.csv": links_text(self.case),
            f"{folder}requirements.reqif": reqif_text(self.rows, TRACE_COLUMNS, "requirement", title, day),
            **{
                numbered_file(f"{folder}mlte", number, name): text
                for number, (name, text) in enumerate(mlte_artefacts(self.run, self.standings), 1)
            },
        }
