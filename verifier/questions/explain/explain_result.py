"""What `verify explain` found, as values: frozen, complete, and able to give their JSON document.

The document is byte-stable, like that of `verify run`; its schema is `explain.schema.json` beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verifier.analysis.counterexamples.explanation import Explanation, Kind, Step, ToldCause, ToldPattern, ToldRun
from verifier.analysis.counterexamples.moves import Alternatives, WrongReport
from verifier.analysis.counterexamples.replay import Replay
from verifier.analysis.sensitivity.state_map import StateMap
from verifier.base.documents import fraction_text
from verifier.base.files import document_text
from verifier.base.result import Result
from verifier.perception.confusion.matrices import Label, label_text
from verifier.study.points import Point
from verifier.study.results import InputFile, RequirementResult, RunResult

SCHEMA_NAME = "verifier.explain"
SCHEMA_VERSION = 1
DEVIATION_ASSUMES = "if items are independent"
"""What the posterior of the matrices assumes, and with it the standard deviation of P."""


@dataclass(frozen=True)
class Frame:
    """A frame in which a report really happened, from the record of the counting.

    Attributes:
        sequence, frame: names.
        distance_m: of the object, or of the report where nothing stands; None where it is not known.
        file, line: of the annotated object, with the folder the file lies in; an empty name for none.
        report_file, report_line: of the detection; an empty name for none.
    """

    sequence: str
    frame: str
    distance_m: float | None
    file: str
    line: int
    report_file: str
    report_line: int


@dataclass(frozen=True)
class Counted:
    """A kind of wrong report that causes or patterns speak of, as it was counted.

    Attributes:
        kind: the matrix cell, and what correcting it would give.
        rate: of the report.
        items: how many such reports the matrices count; 0 where a policy gives the rate.
        occurrences: how many such items the record has; None without a record.
        frames: the first of them.
    """

    kind: Kind
    rate: float
    items: int
    occurrences: int | None = None
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, eq=False)
class Explained:
    """One requirement under one planner, explained in one scenario.

    Attributes:
        result: the requirement over all its scenarios.
        point: the scenario explained: the worst.
        explanation: see there.
        counted: the kinds of wrong reports of the explanation, in its order.
    """

    result: RequirementResult
    point: Point
    explanation: Explanation
    counted: tuple[Counted, ...]


@dataclass(frozen=True, eq=False, repr=False)
class ExplainResult(Result):
    """Everything one `verify explain` found.

    Attributes:
        run: the probabilities, as `verify run` gives them.
        labels: of rows and columns of the matrices.
        bins: texts of their distance bins.
        settings: choices beside those of the run, by name.
        record: the record of the counting that was read, or None.
        explained: in the order of `run.requirements`.
    """

    run: RunResult
    labels: tuple[Label, ...]
    bins: tuple[str, ...]
    settings: Mapping[str, Any]
    record: InputFile | None
    explained: tuple[Explained, ...]

    TOLD = "verifier.telling.explain:explain_table"
    DRAWN = "verifier.telling.figures.explain:explain_figure"

    @property
    def remarks(self) -> tuple[str, ...]:  # type: ignore[override]
        """Those of the run."""
        return self.run.remarks

    @property
    def headline(self) -> str:
        """That of the run."""
        return self.run.headline

    def rows(self) -> Iterator[dict[str, str | float]]:
        """One row per requirement and cause: the reports that it is lost by, together, and how probable that is."""
        names = [label_text(label) for label in self.labels]
        for each in self.explained:
            for told in each.explanation.causes:
                cause = told.cause
                reports = [
                    f"{names[report.true]} in {self.bins[report.bin]} reported as {names[report.predicted]}"
                    for report in cause.reports
                ]
                yield {
                    "requirement": each.result.name,
                    "planner": each.result.planner,
                    "scenario": str(each.point.scenario),
                    "cause": "; ".join([*reports, *(["other reports"] if cause.others else [])]) or "no wrong report",
                    "probability": cause.probability,
                    "corrected": told.corrected,
                }

    def document(self) -> dict[str, Any]:
        """The JSON document."""
        found: dict[str, Any] = self.run.document()
        requirements = found.pop("requirements")
        found |= {"schema": SCHEMA_NAME, "version": SCHEMA_VERSION}
        if self.record is not None:
            found["inputs"].append({"role": "record", "name": self.record.name, "sha256": self.record.sha256})
        found["explain"] = dict(self.settings)
        found["labels"] = [label_text(label) for label in self.labels]
        found["bins"] = list(self.bins)
        found["explanations"] = [
            _explained_document(each, requirement, self)
            for each, requirement in zip(self.explained, requirements, strict=True)
        ]
        return found

    def json_text(self) -> str:
        """The document as text."""
        return document_text(self.document())


def _explained_document(each: Explained, requirement: dict[str, Any], whole: ExplainResult) -> dict[str, Any]:
    found, names = each.explanation, [label_text(label) for label in whole.labels]
    number = {kind.report: place for place, kind in enumerate(found.kinds)}
    points = requirement.pop("points")
    del requirement["worst"]
    return requirement | {
        "point": points[each.result.points.index(each.point)],
        "violation": {
            "satisfies_the_formula": found.satisfying,
            "probability": found.violation,
            "error": found.violation_error,
            "wrong_reports": [_counted_document(counted, names) for counted in each.counted],
            "causes": [_cause_document(cause, number, found.violation) for cause in found.causes],
            "rest": found.rest,
            "corrections": [
                {"wrong_reports": [number[report] for report in best.reports], "corrected": best.corrected}
                for best in found.corrections
            ],
            "patterns": [_pattern_document(pattern, number, found.violation) for pattern in found.patterns],
            "covered": _number(found.covered),
            "complete": found.complete,
            "ranked": found.ranked,
        },
        "perfect_perception": found.fixes.perfect,
        "fixes": _fixes_document(each, names, int(whole.settings["moves"])),
        "moves": _moves_document(each, names),
        "label_more": _columns_document(each, names),
        "posterior_deviation": found.columns.deviation,
        "posterior_deviation_assumes": DEVIATION_ASSUMES,
        "gradient": _gradient_document(each, names),
        "jumps": np.argwhere(found.sensitivity.jumps).tolist(),
        "map": None if found.map is None else _map_document(found.map),
    }


def _cause_document(found: ToldCause, number: Mapping[WrongReport, int], total: float) -> dict[str, Any]:
    return {
        "wrong_reports": [number[report] for report in found.cause.reports],
        "others": found.cause.others,
        "probability": found.cause.probability,
        "share": found.cause.probability / total,
        "corrected": found.corrected,
    }


def _pattern_document(told: ToldPattern, number: Mapping[WrongReport, int], total: float) -> dict[str, Any]:
    return {
        "steps": [_step_alternatives(step, number) for step in told.pattern.steps],
        "probability": told.pattern.probability,
        "share": told.pattern.probability / total,
        "members": [_run_document(run) for run in told.members],
        "complete": told.complete,
    }


def _step_alternatives(step: Alternatives, number: Mapping[WrongReport, int]) -> list[list[int]]:
    return sorted(sorted(number[report] for report in reports) for reports in step)


def _run_document(run: ToldRun) -> dict[str, Any]:
    return {
        "probability": run.probability,
        "counted_steps": run.counted,
        "irrevocable_after": run.irrevocable,
        "replayed": "whole" if run.replayed is Replay.WHOLE else "steps",
        "initial": dict(run.initial),
        "steps": [_step_document(step) for step in run.steps],
    }


def _step_document(step: Step) -> dict[str, Any]:
    return {
        "there": [{"label": label_text(label), "bin": at} for label, at in step.there],
        "reported": [{"classes": sorted(label), "probability": rate} for label, rate in step.told],
        "matters": step.matters,
        "probability": step.probability if step.exact is None else fraction_text(step.exact),
        "after": dict(step.after),
        "chance": step.chance,
    }


def _counted_document(cell: Counted, names: list[str]) -> dict[str, Any]:
    report = cell.kind.report
    found: dict[str, Any] = {
        "bin": report.bin,
        "true": names[report.true],
        "reported": names[report.predicted],
        "rate": cell.rate,
        "items": cell.items,
        "told_apart": cell.kind.told_apart,
        "corrected": cell.kind.corrected,
    }
    if cell.occurrences is not None:
        found["in_record"] = cell.occurrences
        found["frames"] = [
            {
                "sequence": each.sequence,
                "frame": each.frame,
                "distance_m": each.distance_m,
                "file": each.file,
                "line": each.line,
                "report_file": each.report_file,
                "report_line": each.report_line,
            }
            for each in cell.frames
        ]
    return found


def _fixes_document(each: Explained, names: list[str], most: int) -> list[dict[str, Any]]:
    return [
        {
            "bin": fix.bin,
            "true": names[fix.true],
            "reported": names[fix.predicted],
            "rate": fix.rate,
            "first_order": fix.first_order,
            "probability": fix.probability,
            "jumps": fix.jumps,
        }
        for fix in each.explanation.fixes.single[:most]
    ]


def _moves_document(each: Explained, names: list[str]) -> list[dict[str, Any]]:
    return [
        {
            "bin": move.bin,
            "true": names[move.true],
            "from": names[move.source],
            "to": names[move.target],
            "slope": move.slope,
            "rate_from": move.available,
            "rate_to": move.returning,
            "jumps": move.jumps,
        }
        for move in each.explanation.moves
    ]


def _columns_document(each: Explained, names: list[str]) -> list[dict[str, Any]]:
    found = each.explanation.columns
    return [
        {
            "bin": int(found.bins[k]),
            "true": names[found.columns[k]],
            "items": int(found.items[k]),
            "share_of_variance": float(found.share[k]),
            "swing": float(found.swing[k]),
            "swing_of": names[found.cell[k]],
        }
        for k in range(len(found.bins))
    ]


def _gradient_document(each: Explained, names: list[str]) -> list[dict[str, Any]]:
    """For every column drawn from: what a unit of mass changes that moves from the correct report to each label."""
    found = each.explanation.sensitivity
    change = found.against(np.arange(len(names)))
    return [
        {"bin": at, "true": names[true], "slopes": change[at, :, true].tolist()}
        for at, true in found.columns.tolist()
    ]


def _map_document(found: StateMap) -> dict[str, Any]:
    return {
        "variables": list(found.variables),
        "values": [values.tolist() for values in found.values],
        "worst_is_largest": found.largest,
        "probability": _numbers(found.probability.tolist()),
    }


def _numbers(nested: Any) -> Any:
    return [_numbers(each) for each in nested] if isinstance(nested, list) else _number(nested)


def _number(value: float) -> float | None:
    """NaN is no JSON number: what does not exist is null."""
    return None if math.isnan(value) else value
