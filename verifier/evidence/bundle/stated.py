"""The document of a run, read back as the values it was written from, so that what follows from them can be asked."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from verifier.checking.verdicts import Verdict, worst_verdict
from verifier.evidence.bundle.differences import differing
from verifier.evidence.bundle.findings import Finding
from verifier.evidence.points import following_verdict, fraction_of
from verifier.options import RunOptions
from verifier.results import Point, RequirementResult, Scenario


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
    furthest = 0.0
    found, expected = [], []
    for one in content["requirements"]:
        stated = stated_requirement(one)
        furthest = max(furthest, *(abs(each.probability - each.second) for each in stated.points))
        following = [following_verdict(point, one["target"], options.verdict_from).value for point in one["points"]]
        expected.append(_conclusions(stated.verdict.value, stated.points.index(stated.worst), following))
        found.append(_conclusions(one["verdict"], one["worst"], [point["verdict"] for point in one["points"]]))
    verdict = worst_verdict(Verdict(each["verdict"]) for each in expected).value
    return differing(
        path,
        _totals(content["verdict"], content["engines"]["largest_difference"], found),
        _totals(verdict, furthest, expected),
        ", which follows from the numbers beside it",
    )


def _totals(verdict: str, furthest: float, requirements: list[dict[str, Any]]) -> dict[str, Any]:
    return {"verdict": verdict, "engines": {"largest_difference": furthest}, "requirements": requirements}


def _conclusions(verdict: str, worst: int, points: list[str]) -> dict[str, Any]:
    return {"verdict": verdict, "worst": worst, "points": [{"verdict": each} for each in points]}


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
    )
