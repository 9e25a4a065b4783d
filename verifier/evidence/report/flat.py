"""The report as a flat table: a row for every verified probability, for spreadsheets and scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from verifier.base.documents import Content
from verifier.base.files import csv_text
from verifier.base.numbers import decimal_text
from verifier.evidence.documents import Document
from verifier.evidence.report.subjects import confusion_inputs
from verifier.telling.grounds import reason_text, tier_of, vacuity_text

COLUMNS = (
    "document", "kind", "sha256", "requirement", "detector", "planner", "state", "environment", "constants",
    "initial", "probability", "lower", "upper", "exact", "second_engine", "level", "interval", "interval_lower",
    "interval_upper", "bounds_lower", "bounds_upper", "tier", "comparison", "target", "verdict",
    "condition", "basis", "reason", "vacuity", "matrices",
)  # fmt: skip


def flat_text(documents: Sequence[Document]) -> str:
    """One row per document, requirement, planner and scenario; a document without probabilities has one row."""
    return csv_text([row for each in documents for row in _document_rows(each)], COLUMNS)


def _document_rows(document: Document) -> Iterator[dict[str, Any]]:
    matrices = " ".join(each["sha256"] for each in confusion_inputs(document))
    about = {"document": document.name, "kind": document.kind, "sha256": document.sha256, "matrices": matrices}
    for row in list(_rows(document)) or [{}]:
        yield about | row


def _rows(document: Document) -> Iterator[dict[str, Any]]:
    content = document.content
    if document.kind == "run":
        for each in content["requirements"]:
            for point in each["points"]:
                yield _about(each) | _point(point, content["settings"])
    elif document.kind == "explain":
        for each in content["explanations"]:
            yield _about(each) | _point(each["point"], content["settings"])
    elif document.kind == "require":
        yield from _require_rows(content)
    elif document.kind == "compare":
        yield from _compare_rows(content)


def _require_rows(content: Content) -> Iterator[dict[str, Any]]:
    asked = content["requirement"]
    for answer in content["answers"]:
        about = {"requirement": asked["name"], "planner": answer["planner"], **_target(asked)}
        for state in ("measured", "at_place", "perfect"):
            if answer[state] is not None:
                row = {**about, "state": state.replace("at_place", "required")} | _point(answer[state])
                free = state == "perfect" or "whatever_predicted" in answer[state]
                yield row | ({} if free else {"condition": answer["condition"] or ""})


def _compare_rows(content: Content) -> Iterator[dict[str, Any]]:
    for spec in content["specs"]:
        for each in spec["requirements"]:
            for entry in each["entries"]:
                about = _about({**each, "planner": entry["planner"]}) | {"detector": entry["detector"]}
                for point in entry["points"]:
                    yield about | _point(point)


def _about(found: Content) -> dict[str, Any]:
    return {"requirement": found["name"], "planner": found["planner"], **_target(found["target"])}


def _target(target: Content | None) -> dict[str, str]:
    if target is None:
        return {}
    return {"comparison": target["comparison"], "target": decimal_text(target["probability"])}


def _point(point: Content, settings: Content | None = None) -> dict[str, Any]:
    found = {
        name: point[name] for name in ("environment", "probability", "lower", "upper", "second_engine", "verdict")
    }
    found |= {
        name: " ".join(f"{key}={value}" for key, value in point[name].items()) for name in ("constants", "initial")
    }
    found["exact"] = point.get("exact", "")
    found |= {name: point.get(name) or "" for name in ("condition", "basis")}
    found |= {"reason": reason_text(point), "vacuity": vacuity_text(point)}
    sure = point.get("sureness")
    if sure is None or settings is None:
        return found
    return found | {
        "tier": tier_of(settings),
        "level": sure["level"],
        "interval": sure["interval"]["kind"],
        "interval_lower": sure["interval"]["lower"],
        "interval_upper": sure["interval"]["upper"],
        "bounds_lower": sure["confidence_bounds"]["lower"],
        "bounds_upper": sure["confidence_bounds"]["upper"],
    }
