"""The document of a run, read back as the values it was written from, so that what follows from them can be asked."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from verifier.checking.verdicts import Decision, Verdict, condition_over, worst_verdict
from verifier.evidence.bundle.differences import differing
from verifier.evidence.bundle.findings import Finding
from verifier.evidence.points import following_verdict, fraction_of
from verifier.options import RunOptions
from verifier.results import Point, RequirementResult, Scenario

DECIDING = ("verdict_from", "strict", "assume_memoryless")
"""The options that decide a verdict from its numbers."""


def stated_requirement(one: Mapping[str, Any]) -> RequirementResult:
    """One requirement of a run's document; ValueError where a number or verdict in it is none."""
    target = one["target"]
    return RequirementResult(
        one["name"],
        one["planner"],
        one["formula"],
        "=" if target is None else target["comparison"],
        None if target is None else Fraction(target["probability"]),
        tuple(_point(each, one["planner"]) for each in one["points"]),
    )


def check_conclusions(path: str, content: Mapping[str, Any], options: RunOptions) -> list[Finding]:
    """What in the document of a run does not follow from its own numbers: verdicts, worst scenarios, totals.

    Args:
        path: of the document in the bundle.
        content: validated.
        options: of the run; they say what decides a verdict.
    """
    furthest, settings = 0.0, {**content["settings"], **{name: getattr(options, name) for name in DECIDING}}
    found: list[dict[str, Any]] = []
    expected: list[dict[str, Any]] = []
    for one in content["requirements"]:
        stated = stated_requirement(one)
        furthest = max(furthest, *(abs(each.probability - each.second) for each in stated.points))
        decisions = [following_verdict(point, one["target"], settings, content["channel"]) for point in one["points"]]
        told = {"verdict": stated.verdict.value, "condition": stated.condition}
        expected.append(
            {**told, "worst": stated.points.index(stated.worst), "points": list(map(_resting, decisions))}
        )
        found.append({name: one[name] for name in (*told, "worst")} | {"points": list(map(_stated, one["points"]))})
    verdict = worst_verdict(Verdict(each["verdict"]) for each in expected)
    condition = condition_over(verdict, ((Verdict(each["verdict"]), each["condition"]) for each in expected))
    return differing(
        path,
        _totals(content["verdict"], content["condition"], content["engines"]["largest_difference"], found),
        _totals(verdict.value, condition, furthest, expected),
        ", which follows from the numbers beside it",
    )


def _totals(
    verdict: str, condition: str | None, furthest: float, requirements: list[dict[str, Any]]
) -> dict[str, Any]:
    """What a document says of the whole."""
    engines = {"largest_difference": furthest}
    return {"verdict": verdict, "condition": condition, "engines": engines, "requirements": requirements}


def _stated(point: Mapping[str, Any]) -> dict[str, Any]:
    return {name: point[name] for name in ("verdict", "basis", "condition", "reason")}


def _resting(decision: Decision) -> dict[str, Any]:
    reason = None if decision.reason is None else dict(decision.reason)
    found = {"verdict": decision.verdict.value, "basis": decision.basis}
    return {**found, "condition": decision.condition, "reason": reason}


def _point(point: Mapping[str, Any], planner: str) -> Point:
    swept = {name: Fraction(value) for name, value in point["constants"].items()}
    return Point(
        Scenario(planner, swept, point["environment"], point["initial"]),
        point["probability"],
        point["lower"],
        point["upper"],
        fraction_of(point["exact"]) if "exact" in point else None,
        point["second_engine"],
        Verdict(point["verdict"]),
        condition=point["condition"],
    )
