"""Results as evidence of MLTE (Machine Learning Test and Evaluation, SEI; package mlte), one artefact for each.

The number is the probability for the matrices as measured; what bounds it, and how the requirement stands, are texts
beside it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from verifier.base.files import document_text
from verifier.evidence.status import Standing
from verifier.study.points import Point
from verifier.study.records import SettingsRecord
from verifier.study.results import RunResult

_CLASSES = {"real": "mlte.evidence.types.real.Real", "string": "mlte.evidence.types.string.String"}
MEASURED_BY = "verifier.run"


def mlte_artefacts(run: RunResult, standings: Sequence[Standing]) -> Iterator[tuple[str, str]]:
    """Name and JSON of an artefact for each requirement of a run and planner, in their order."""
    status = {(standing.requirement, standing.planner): standing for standing in standings}
    (digest,) = {file.sha256 for file in run.inputs if file.role == "confusion"} or {""}
    for one in run.requirements:
        worst, stands = one.worst_point, status.get((one.name, one.planner))
        ends = worst.bounds(run.settings.verdict_from)
        said = {
            "planner": one.planner,
            "target": one.target_text,
            "worst_scenario": worst.scenario,
            "lower": str(ends[0]),
            "upper": str(ends[1]),
            "bounds": _of_bounds(run.settings, worst),
            "verdict": one.verdict.value,
            "condition": one.condition or "none",
            "status": "no target" if stands is None else stands.told,
            "sha256_of_matrices": digest,
        }
        yield one.name, _artefact(f"{one.name}.{one.planner}", worst.probability, one.unit, said)


def _of_bounds(settings: SettingsRecord, point: Point) -> str:
    """What lower and upper are, with what they assume."""
    confidence, source = settings.confidence, settings.verdict_from
    if confidence is None or point.uncertainty is None or source == "point":
        return "numerical error alone, for the matrices as measured"
    if source == "interval" or point.uncertainty.confidence_bounds is None:
        return f"{confidence.level:g} {confidence.interval} interval; assumed: {settings.assumption('interval')}"
    looks = "any number" if confidence.bounds.every_look else str(confidence.bounds.looks)
    return f"{confidence.bounds.name}; assumed: {confidence.bounds.condition}; looks at the data: {looks}"


def _artefact(name: str, number: float, unit: str, said: Mapping[str, str]) -> str:
    """The JSON of an artefact.

    Args:
        name: of the test case.
        number: what was measured; one that is not finite is a text.
        unit: in words; empty for probabilities.
        said: what belongs to it, by name.
    """
    kind = "real" if math.isfinite(number) else "string"
    value = {kind: number if kind == "real" else str(number)} | ({"unit": None} if kind == "real" else {})
    measured = {"measurement_class": MEASURED_BY, "output_class": _CLASSES[kind]}
    more = {**said, **({"unit": unit} if unit else {})}
    return document_text(
        {
            "header": {"identifier": f"evidence.{name}", "type": "evidence", "timestamp": -1, "creator": None,
                       "level": "version"},
            "body": {
                "artifact_type": "evidence",
                "metadata": {"test_case_id": name, "measurement": {**measured, "additional_data": more}},
                "evidence_class": _CLASSES[kind],
                "value": {"evidence_type": kind, **value},
            },
        }
    )  # fmt: skip
