"""What `verify compare` found, as values: frozen, complete, and able to give their JSON document.

The document is byte-stable, like that of `verify run`; its schema is `compare.schema.json` beside this file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from verifier.base.documents import json_values
from verifier.base.errors import ExitCode
from verifier.base.files import document_text
from verifier.base.numbers import decimal_text
from verifier.base.result import Result
from verifier.base.words import counted
from verifier.questions.compare.gate import Gate
from verifier.questions.compare.tables import ParetoView, SpecComparison
from verifier.study.points import Point
from verifier.study.results import InputFile

SCHEMA_NAME = "verifier.compare"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Detector:
    """A file of matrices: its name as the user calls it, their title, and how they were made."""

    name: str
    title: str
    matrices: Mapping[str, Any]


@dataclass(frozen=True, repr=False)
class CompareResult(Result):
    """Everything one `verify compare` found.

    Attributes:
        inputs: the files that went in; the matrices in the order of `detectors`.
        detectors: see `Detector`.
        settings: every choice that can change a number, by name; per spec under its name.
        draws: how many, of each contender.
        level: of the intervals.
        specs: the comparisons.
        gate: what became of the baseline; None without one.
        versions: of this program and of what it computed with.
        remarks: what a reader must know to read the numbers rightly.
    """

    inputs: tuple[InputFile, ...]
    detectors: tuple[Detector, ...]
    settings: Mapping[str, Any]
    draws: int
    level: float
    specs: tuple[SpecComparison, ...]
    gate: Gate | None
    versions: Mapping[str, str]
    remarks: tuple[str, ...]

    TOLD = "verifier.telling.compare:compare_table"
    DRAWN = "verifier.telling.figures.compare:compare_figure"

    @property
    def headline(self) -> str:
        """What was compared."""
        return f"{', '.join(each.name for each in self.detectors)} under {counted(len(self.specs), 'spec')}"

    @property
    def largest_difference(self) -> float:
        """Between the two engines, over all points."""
        return max(abs(point.probability - point.second_engine) for point in self._points())

    @property
    def exit_code(self) -> ExitCode:
        """1 when the gate is closed; else 0, for to compare is not to judge."""
        return ExitCode.VIOLATED if self.gate is not None and self.gate.failed else ExitCode.SATISFIED

    def _points(self) -> Iterator[Point]:
        for spec in self.specs:
            for each in spec.requirements:
                for entry in each.entries:
                    yield from entry.points

    def document(self) -> dict[str, Any]:
        """The JSON document."""
        return {
            "schema": SCHEMA_NAME,
            "version": SCHEMA_VERSION,
            "inputs": [{"role": each.role, "name": each.name, "sha256": each.sha256} for each in self.inputs],
            "detectors": [
                {"name": each.name, "title": each.title, "matrices": dict(each.matrices)} for each in self.detectors
            ],
            "settings": json_values(self.settings),
            "versions": dict(self.versions),
            "engines": {"reported": "storm", "second": "batch", "largest_difference": self.largest_difference},
            "draws": self.draws,
            "level": self.level,
            "remarks": list(self.remarks),
            "specs": [each.document() for each in self.specs],
            "gate": None if self.gate is None else self.gate.document(),
        }

    def json_text(self) -> str:
        """The document as text."""
        return document_text(self.document())

    def rows(self) -> Iterator[dict[str, str | int | float]]:
        """One flat row per spec, requirement and contender, with the same columns throughout."""
        for spec in self.specs:
            for each in spec.requirements:
                for k, entry in enumerate(each.entries):
                    yield {
                        "spec": spec.spec,
                        "requirement": each.name,
                        "detector": entry.contender.detector,
                        "planner": entry.contender.planner,
                        "comparison": "" if each.target is None else each.comparison,
                        "target": "" if each.target is None else decimal_text(each.target),
                        "probability": entry.worst_point.probability,
                        "scenario": str(entry.worst_point.scenario),
                        "verdict": entry.verdict.value,
                        "condition": entry.condition or "",
                        "level": self.level,
                        "interval_lower": entry.lower,
                        "interval_upper": entry.upper,
                        "best": entry.best,
                        **_pareto_columns(spec.pareto, each.name, k),
                    }


def _pareto_columns(pareto: ParetoView | None, requirement: str, contender: int) -> dict[str, str | float]:
    if pareto is None or requirement not in (pareto.first, pareto.second):
        return {"pareto": "", "pareto_chance": ""}
    kind = "non-dominated" if pareto.non_dominated[contender] else "dominated"
    return {"pareto": kind, "pareto_chance": pareto.chances[contender]}
