"""What `verify compare` found: the values that are its document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from verifier.base.documents import Limits, NumberText
from verifier.base.errors import ExitCode
from verifier.base.numbers import decimal_text
from verifier.base.result import Result
from verifier.base.words import counted
from verifier.questions.compare.tables import ParetoView, SpecComparison
from verifier.study.gates import DropGate
from verifier.study.records import MatricesRecord, SettingsRecord
from verifier.study.results import Engines, RunInput


@dataclass(frozen=True)
class Detector:
    """A file of matrices: its name as the user calls it, their title, and how they were made."""

    name: str
    title: str
    matrices: MatricesRecord | None = None


@dataclass(frozen=True, kw_only=True)
class CompareChoices:
    """Every choice that can change a number.

    Attributes:
        pareto: two requirements that are looked at together.
        max_drop: largest drop against the baseline that is allowed; None without one.
        best_planner: steps within which the episodes of the best possible planner end; None where it was left out.
        specs: name of a spec -> name of a detector -> the choices of its runs.
    """

    pareto: tuple[str, str] | None
    max_drop: NumberText | None
    best_planner: Annotated[int, Limits(ge=1)] | None = None
    specs: Mapping[str, Mapping[str, SettingsRecord]]


@dataclass(frozen=True, kw_only=True, repr=False)
class CompareResult(Result):
    """Everything one `verify compare` found.

    Attributes:
        command: that made it, inputs by name without folders.
        inputs: the files that went in; the matrices in the order of `detectors`.
        settings: every choice that can change a number, by name; per spec under its name.
        versions: of this program and of what it computed with.
        draws: how many, of each configuration.
        remarks: what a reader must know to read the numbers rightly.
        gate: what became of the baseline; None without one.
    """

    schema: ClassVar[str] = "verifier.compare"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    inputs: tuple[RunInput, ...]
    detectors: tuple[Detector, ...]
    settings: CompareChoices
    versions: Mapping[str, str]
    engines: Engines
    draws: Annotated[int, Limits(ge=1)]
    level: Annotated[float, Limits(gt=0, le=1)]
    remarks: tuple[str, ...]
    specs: Annotated[tuple[SpecComparison, ...], Limits(min_length=1)]
    gate: DropGate | None

    TOLD = "verifier.telling.compare:compare_table"
    DRAWN = "verifier.telling.figures.compare:compare_figure"
    NAMED_BY = ("spec", "requirement", "detector", "planner")
    METRICS = ("probability", "interval_lower", "interval_upper")

    @property
    def headline(self) -> str:
        """What was compared."""
        return f"{', '.join(each.name for each in self.detectors)} under {counted(len(self.specs), 'spec')}"

    @property
    def exit_code(self) -> ExitCode:
        """1 when the gate is closed; else 0, for to compare is not to judge."""
        return ExitCode.VIOLATED if self.gate is not None and self.gate.failed else ExitCode.SATISFIED

    def rows(self) -> Iterator[dict[str, str | int | float]]:
        """One flat row per spec, requirement and configuration, with the same columns throughout."""
        for spec in self.specs:
            for requirement in spec.requirements:
                target = requirement.target
                reach = {each.detector: each for each in requirement.reach}
                for k, entry in enumerate(requirement.entries):
                    yield {
                        "spec": spec.spec,
                        "requirement": requirement.name,
                        "detector": entry.detector,
                        "planner": entry.planner,
                        "comparison": "" if target is None else target.comparison,
                        "target": "" if target is None else decimal_text(target.probability),
                        "probability": entry.probability,
                        "scenario": "profile" if entry.means else entry.worst_point.scenario,
                        "verdict": entry.verdict.value,
                        "condition": entry.condition or "",
                        "level": self.level,
                        "interval_lower": entry.interval.lower,
                        "interval_upper": entry.interval.upper,
                        "best": entry.best,
                        "reach_lower": reach[entry.detector].lower if reach else "",
                        "reach_upper": reach[entry.detector].upper if reach else "",
                        **_pareto_columns(spec.pareto, requirement.name, k),
                    }


def _pareto_columns(pareto: ParetoView | None, requirement: str, configuration: int) -> dict[str, str | float]:
    if pareto is None or requirement not in (pareto.first, pareto.second):
        return {"pareto": "", "pareto_chance": ""}
    kind = "non-dominated" if pareto.non_dominated[configuration] else "dominated"
    return {"pareto": kind, "pareto_chance": pareto.chances[configuration]}
