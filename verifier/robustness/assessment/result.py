"""What an assessment found, as values: frozen, complete, and able to give their JSON document.

Byte-stable: no times, no absolute paths, no user names. Its schema is `assess.schema.json` beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from verifier.base.files import document_text
from verifier.checking.verdicts import Verdict, worst_verdict
from verifier.robustness.assessment.breaks import Break, Criterion, break_of, in_order, surely_before
from verifier.robustness.assessment.circumstances import Circumstance, priorities
from verifier.robustness.assessment.definition import Assessment, DataSet
from verifier.robustness.assessment.measures import DatasetDistance, DistanceRule
from verifier.robustness.assessment.plan import Plan
from verifier.robustness.assessment.relation import Outcome

T = TypeVar("T")
SCHEMA_NAME = "verifier.assess"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class TargetResult:
    """One target data set against the source.

    Attributes:
        target: the data set.
        distances: by name, given or computed.
        outcomes: of the relation, per metric and distance.
        unchecked: distances with a tolerance that the relation could not be checked with, for want of a value.
    """

    target: DataSet
    distances: Mapping[str, DatasetDistance]
    outcomes: tuple[Outcome, ...]
    unchecked: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Satisfied only if the relation holds for every metric and distance, and could be checked for all."""
        left = [Verdict.INCONCLUSIVE] if self.unchecked else []
        return worst_verdict([*left, *(each.verdict for each in self.outcomes)])


@dataclass(frozen=True)
class DegradationResult:
    """What the levels of a disturbance showed.

    Attributes:
        levels: from the mildest on.
        breaks: one per criterion.
        criteria: with one value per level.
        inputs: the files that went in.
        settings: how the requirements were checked, by name; None where none were.
        remarks: what a reader must know to read the numbers rightly.
    """

    levels: tuple[float, ...]
    breaks: tuple[Break, ...]
    criteria: tuple[Criterion, ...]
    inputs: tuple[Mapping[str, str], ...] = ()
    settings: Mapping[str, Any] | None = None
    remarks: tuple[str, ...] = ()

    @property
    def seen(self) -> tuple[tuple[Break, ...], ...]:
        """Those that break, grouped: who saw it first, who next."""
        return in_order(self.breaks, self.levels)

    @property
    def surely_before(self) -> tuple[tuple[Criterion, Criterion], ...]:
        """(earlier, later) of which the number of images leaves no doubt."""
        return surely_before(self.criteria)


@dataclass(frozen=True)
class MadeHere:
    """What was made for this assessment, and with what.

    Attributes:
        identity: of the detector that was run; None where none was.
        lowest_score: from which score on a detection counts; None where every detection does, or none was run.
        images: how many follow-up images were made.
        remarks: what a reader must know of what was made.
    """

    identity: Mapping[str, Any] | None
    lowest_score: float | None
    images: int
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class SystemResult:
    """Everything found about one system.

    Attributes:
        assessment: what the file says.
        targets: in the order of the file, those of sweeps last.
        plan: of the follow-up test cases, where one was asked for.
        degradation: where one was asked for.
        remarks: what a reader must know to read the numbers rightly.
        made: what was made here; None where all data were given.
    """

    assessment: Assessment
    targets: tuple[TargetResult, ...]
    plan: Plan | None = None
    degradation: DegradationResult | None = None
    remarks: tuple[str, ...] = ()
    made: MadeHere | None = None

    @property
    def verdict(self) -> Verdict:
        """The worst over the target data sets; no target where nothing was held against a tolerance."""
        return worst_verdict(each.verdict for each in self.targets)


@dataclass(frozen=True)
class AssessmentResult:
    """Everything one `verify assess` found."""

    title: str
    inputs: tuple[Mapping[str, str], ...]
    systems: tuple[SystemResult, ...]
    versions: Mapping[str, str]

    @property
    def verdict(self) -> Verdict:
        """The worst over the systems."""
        return worst_verdict(each.verdict for each in self.systems)

    def document(self) -> dict[str, Any]:
        """The JSON document."""
        return {
            "schema": SCHEMA_NAME,
            "version": SCHEMA_VERSION,
            "title": self.title,
            "verdict": self.verdict.value,
            "inputs": [dict(each) for each in self.inputs],
            "versions": dict(self.versions),
            "systems": [_system_document(each) for each in self.systems],
        }

    def json_text(self) -> str:
        """The document as text."""
        return document_text(self.document())


def _system_document(found: SystemResult) -> dict[str, Any]:
    given = found.assessment
    return {
        "key": given.key,
        "title": given.title,
        "citation": given.citation,
        "verdict": found.verdict.value,
        "remarks": list(found.remarks),
        "viewpoint": given.viewpoint,
        "perspectives": {name: list(each) for name, each in given.perspectives.items()},
        "occurrence": given.occurrence,
        "circumstances": [_circumstance_document(each) for each in given.circumstances],
        "priorities": [each.name for each in priorities(given.circumstances)],
        "metrics": list(given.metrics),
        "rules": [
            {"name": each.name, "measure": each.measure, "tolerance": _tolerance_document(each)}
            for each in given.rules.values()
        ],
        "source": {"performance": _performance_document(given.source)},
        "targets": [_target_document(each) for each in found.targets],
        "sweeps": [
            {
                "name": each.name,
                "parameter": each.parameter,
                "settings": [float(setting) for setting in each.settings],
                "targets": [target.name for target in each.targets],
            }
            for each in given.sweeps
        ],
        "plan": None if found.plan is None else found.plan.summary(),
        "made": None if found.made is None else _made_document(found.made),
        "degradation": None if found.degradation is None else _degradation_document(found),
    }


def _made_document(made: MadeHere) -> dict[str, Any]:
    identity = None if made.identity is None else dict(made.identity)
    return {"detector": identity, "lowest_score": made.lowest_score, "follow_up_images": made.images}


def _circumstance_document(each: Circumstance) -> dict[str, Any]:
    return {
        "name": each.name,
        "description": each.description,
        "measure": each.measure,
        "frequency": _number(each.frequency),
        "source_frequency": _number(each.source_frequency),
        "missing": _number(each.missing),
        "exposure": None if each.risk is None else each.risk.exposure,
        "likelihood": None if each.risk is None else each.risk.likelihood,
        "severity": None if each.risk is None else each.risk.severity,
        "significance": each.significance,
        "tolerance_scale": float(each.tolerance_scale),
        "transformation": None if each.transformation is None else str(each.transformation),
        "part_of": list(each.part_of),
    }


def _tolerance_document(rule: DistanceRule) -> list[dict[str, Any]] | None:
    if rule.tolerance is None:
        return None
    return [
        {"slope": float(each.slope), "constant": float(each.constant), "up_to": _number(each.up_to)}
        for each in rule.tolerance.pieces
    ]


def _performance_document(data: DataSet) -> dict[str, Any] | None:
    if data.performance is None:
        return None
    return {
        **dict(data.performance.counts),
        **{name: float(value) for name, value in data.performance.values.items()},
    }


def _target_document(found: TargetResult) -> dict[str, Any]:
    return {
        "name": found.target.name,
        "circumstances": list(found.target.circumstances),
        "verdict": found.verdict.value,
        "performance": _performance_document(found.target),
        "distances": {
            name: {
                "distance": _number(each.distance),
                "similarity": _number(each.similarity),
                "given": each.given,
                "pairs": each.pairs,
                "deviation": each.deviation,
            }
            for name, each in found.distances.items()
        },
        "unchecked": list(found.unchecked),
        "outcomes": [
            {
                "metric": each.metric,
                "distance_name": each.distance_name,
                "source": float(each.source),
                "target": float(each.target),
                "change": float(each.change),
                "distance": float(each.distance),
                "scale": float(each.scale),
                "tolerance": float(each.tolerance),
                "verdict": each.verdict.value,
            }
            for each in found.outcomes
        ],
    }


def _degradation_document(found: SystemResult) -> dict[str, Any]:
    given, result = found.assessment.degradation, found.degradation
    if given is None or result is None:
        raise ValueError("a degradation result without a degradation")
    return {
        "parameter": given.parameter,
        "unit": given.unit,
        "scale": given.scale,
        "levels": [_level(each) for each in result.levels],
        "inputs": [dict(each) for each in result.inputs],
        "settings": result.settings,
        "remarks": list(result.remarks),
        "criteria": [
            {
                "kind": each.kind,
                "name": each.name,
                "limit": each.limit,
                "values": list(each.values),
                "margins": list(each.margins),
                "verdicts": [None if verdict is None else verdict.value for verdict in _all(each, each.verdicts)],
                "intervals": [None if ends is None else list(ends) for ends in _all(each, each.intervals)],
                "break": _break_document(one),
            }
            for each, one in zip(result.criteria, result.breaks, strict=True)
        ],
        "seen": [[{"kind": each.kind, "name": each.name} for each in group] for group in result.seen],
        "surely_before": [
            {"earlier": {"kind": one.kind, "name": one.name}, "later": {"kind": other.kind, "name": other.name}}
            for one, other in result.surely_before
        ],
    }


def _all(each: Criterion, known: Sequence[T | None]) -> Sequence[T | None]:
    """One entry per level; none of them known where nothing is."""
    return known or (None,) * len(each.values)


def _break_document(found: Break) -> dict[str, Any]:
    return {
        "holds_at": _level(found.holds_at),
        "fails_at": _level(found.fails_at),
        "interpolated": _level(found.place),
        "recovers": found.recovers,
        "undefined": found.undefined,
        "sure_at": _level(found.sure_at),
    }


def degradation_result(
    found: Assessment,
    criteria: tuple[Criterion, ...],
    inputs: tuple[Mapping[str, str], ...] = (),
    settings: Mapping[str, Any] | None = None,
    remarks: tuple[str, ...] = (),
) -> DegradationResult:
    """The breaks of the criteria at the levels of the assessment; ValueError where it has no degradation."""
    if found.degradation is None:
        raise ValueError("no degradation was asked for")
    levels = tuple(each.at for each in found.degradation.levels)
    breaks = tuple(break_of(each, levels, found.degradation.scale) for each in criteria)
    return DegradationResult(levels, breaks, criteria, inputs, settings, remarks)


def _number(value: Fraction | None) -> float | None:
    return None if value is None else float(value)


def _level(value: float | None) -> float | str | None:
    """JSON has no infinity; a level can be."""
    return "inf" if value is not None and math.isinf(value) else value
