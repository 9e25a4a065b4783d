"""The rate of an unwanted event as a JSON document; its schema is `rate.schema.json` beside this file."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from verifier import __version__
from verifier.base.files import document_text
from verifier.evidence.rates.exposure import Exposure, float_above, float_below
from verifier.evidence.rates.hazard import Bounds, Demonstration, HazardRate, Term

SCHEMA_NAME = "verifier.rate"
SCHEMA_VERSION = 1


def rate_document(found: HazardRate, context: tuple[str, str] | None = None) -> dict[str, Any]:
    """The JSON document of a rate.

    Args:
        found: the rate.
        context: name and SHA-256 of the file of the case's context, where it was read.
    """
    name, sha256 = found.run
    inputs = [{"role": "result", "name": name, "sha256": sha256}]
    if context is not None:
        inputs.append({"role": "context", "name": context[0], "sha256": context[1]})
    accepted = found.acceptance
    return {
        "schema": SCHEMA_NAME,
        "version": SCHEMA_VERSION,
        "verdict": found.verdict.value,
        "condition": found.decision.condition,
        "basis": found.decision.basis,
        "reason": None if found.decision.reason is None else dict(found.decision.reason),
        "inputs": inputs,
        "versions": {"verifier": __version__},
        "requirement": found.requirement,
        "planner": found.planner,
        "event": found.event,
        "per_hour": None if found.rate is None else float(found.rate),
        "bounds": _bounds(found.bounds),
        "other_bounds": [_bounds(each) for each in found.other],
        "terms": [_term(each) for each in found.terms],
        "left_out": list(found.left_out),
        "acceptance": None if accepted is None else {"per_hour": str(accepted.per_hour), "source": accepted.source},
        "demonstration": None if found.demonstration is None else _demonstration(found.demonstration),
    }


def rate_text(document: dict[str, Any]) -> str:
    """The text of the document."""
    return document_text(document)


def _bounds(bounds: Bounds) -> dict[str, Any]:
    return {
        "source": bounds.source,
        "lower": float_below(bounds.lower),
        "upper": float_above(bounds.upper),
        "level": _share(bounds.level),
        "error_probability": _share(bounds.error_probability),
        "error_exposure": _share(bounds.error_exposure),
        "assumes": list(bounds.assumes),
    }


def _term(term: Term) -> dict[str, Any]:
    return {
        "environment": term.environment,
        "worst_scenario": term.worst.scenario,
        "scenarios": term.scenarios,
        "probability": float(term.worst.probability),
        "exposure": _exposure(term.exposure, term.ends),
    }


def _exposure(exposure: Exposure, ends: tuple[Fraction, Fraction]) -> dict[str, Any]:
    return {
        "kind": "count" if exposure.is_count else "number" if exposure.lower == exposure.upper else "interval",
        "encounters": exposure.encounters,
        "hours": None if exposure.hours is None else str(exposure.hours),
        "level": _share(exposure.level),
        "per_hour": None if exposure.rate is None else float(exposure.rate),
        "lower": float_below(ends[0]),
        "upper": float_above(ends[1]),
        "source": exposure.source,
    }


def _demonstration(found: Demonstration) -> dict[str, Any]:
    return {
        "confidence": float(found.confidence),
        "events": found.events,
        "hours": float_above(found.hours),
        "encounters": found.encounters,
    }


def _share(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
