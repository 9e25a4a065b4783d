"""The report as a flat table: a row for every verified probability, for spreadsheets and scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from verifier.base.documents import Content, fraction_text, json_values, read_document
from verifier.base.files import csv_text
from verifier.base.numbers import decimal_text
from verifier.evidence.documents import Document
from verifier.evidence.following.rates import alone
from verifier.evidence.report.subjects import confusion_inputs
from verifier.study.points import Point
from verifier.study.records import SettingsRecord
from verifier.study.results import RunResult
from verifier.telling.grounds import reason_text, vacuity_text

COLUMNS = (
    "document", "kind", "sha256", "requirement", "detector", "planner", "state", "environment", "constants",
    "initial", "probability", "lower", "upper", "exact", "second_engine", "level", "interval", "interval_lower",
    "interval_upper", "bounds_lower", "bounds_upper", "tier", "comparison", "target", "verdict",
    "condition", "basis", "reason", "vacuity", "matrices", "note", "asked", "unit",
)  # fmt: skip


def flat_text(documents: Sequence[Document]) -> str:
    """One row per document, requirement, planner and scenario; a document without probabilities has one row."""
    rows = [row | {"note": alone(each, documents)} for each in documents for row in _document_rows(each)]
    return csv_text(rows, COLUMNS)


def _document_rows(document: Document) -> Iterator[dict[str, Any]]:
    matrices = " ".join(each["sha256"] for each in confusion_inputs(document))
    about = {"document": document.name, "kind": document.kind, "sha256": document.sha256, "matrices": matrices}
    for row in list(_rows(document)) or [{}]:
        yield about | row


def _rows(document: Document) -> Iterator[dict[str, Any]]:
    content = document.content

    def point(told: Content) -> Point:
        return read_document(Point, told, document.name)

    if document.kind == "run":
        run: RunResult = document.result
        for one in run.requirements:
            about = {"requirement": one.name, "planner": one.planner, **_told_target(json_values(one.target))}
            about |= {} if one.asked == "P" else {"asked": one.asked, "unit": one.unit}
            yield from (about | _point(each, run.settings) for each in one.points)
    elif document.kind == "explain":
        settings = read_document(SettingsRecord, content["settings"], document.name)
        for each in content["explanations"]:
            yield _about(each) | _point(point(each["point"]), settings)
    elif document.kind == "require":
        asked = content["requirement"]
        for answer in content["answers"]:
            about = {"requirement": asked["name"], "planner": answer["planner"], **_told_target(asked)}
            for state in ("measured", "at_value", "perfect"):
                if answer[state] is not None:
                    row = {**about, "state": state.replace("at_value", "required")} | _point(point(answer[state]))
                    free = state == "perfect" or "whatever_predicted" in answer[state]
                    yield row | ({} if free else {"condition": answer["condition"] or ""})
    elif document.kind == "compare":
        for spec in content["specs"]:
            for each in spec["requirements"]:
                for entry in each["entries"]:
                    about = _about({**each, "planner": entry["planner"]}) | {"detector": entry["detector"]}
                    yield from (about | _point(point(told)) for told in entry["points"])
    elif document.kind == "rate":
        told = {name: content[name] for name in ("requirement", "planner", "verdict", "basis", "condition")}
        yield told | {"reason": reason_text(document.result.reason)}


def _about(found: Content) -> dict[str, Any]:
    return {"requirement": found["name"], "planner": found["planner"], **_told_target(found["target"])}


def _told_target(told: Content | None) -> dict[str, str]:
    if told is None:
        return {}
    return {"comparison": told["comparison"], "target": decimal_text(told["probability"])}


def _point(point: Point, settings: SettingsRecord | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: getattr(point, name) for name in ("environment", "probability", "lower", "upper", "second_engine")
    }
    found |= {
        name: " ".join(f"{key}={value}" for key, value in getattr(point, name).items())
        for name in ("constants", "initial")
    }
    found |= {
        "exact": "" if point.exact is None else fraction_text(point.exact),
        "verdict": point.verdict.value,
        "condition": point.condition or "",
        "basis": point.basis or "",
        "reason": reason_text(point.reason, point.probability),
        "vacuity": vacuity_text(point),
    }
    sure = point.uncertainty
    if sure is None or settings is None:
        return found
    bounds = sure.confidence_bounds
    return found | {
        "tier": settings.tier,
        "level": sure.level,
        "interval": sure.interval.kind,
        "interval_lower": sure.interval.lower,
        "interval_upper": sure.interval.upper,
        "bounds_lower": "" if bounds is None else bounds.lower,
        "bounds_upper": "" if bounds is None else bounds.upper,
    }
