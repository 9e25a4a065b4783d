"""The report as a flat table: a row for every verified probability, for spreadsheets and scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from verifier.evidence.documents import Content, Document
from verifier.evidence.report.subjects import confusion_inputs
from verifier.evidence.rounding import decimal_text
from verifier.textfiles import csv_text

COLUMNS = (
    "document", "kind", "sha256", "requirement", "detector", "planner", "state", "environment", "constants",
    "initial", "probability", "lower", "upper", "exact", "second_engine", "level", "interval", "interval_lower",
    "interval_upper", "guaranteed_lower", "guaranteed_upper", "comparison", "target", "verdict", "matrices",
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
                yield _about(each) | _point(point)
    elif document.kind == "explain":
        for each in content["explanations"]:
            yield _about(each) | _point(each["point"])
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
                yield {**about, "state": state.replace("at_place", "required")} | _point(answer[state])


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


def _point(point: Content) -> dict[str, Any]:
    found = {
        name: point[name] for name in ("environment", "probability", "lower", "upper", "second_engine", "verdict")
    }
    found |= {
        name: " ".join(f"{key}={value}" for key, value in point[name].items()) for name in ("constants", "initial")
    }
    found["exact"] = point.get("exact", "")
    sure = point.get("sureness")
    if sure is None:
        return found
    return found | {
        "level": sure["level"],
        "interval": sure["interval"]["kind"],
        "interval_lower": sure["interval"]["lower"],
        "interval_upper": sure["interval"]["upper"],
        "guaranteed_lower": sure["guaranteed"]["lower"],
        "guaranteed_upper": sure["guaranteed"]["upper"],
    }
