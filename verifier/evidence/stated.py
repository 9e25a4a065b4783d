"""The document of a run, read back as the values it was written from, so that what follows from them can be asked."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

from verifier.analysis.vacuity import Vacuity
from verifier.base.documents import json_values
from verifier.checking.verdicts import Decision, Verdict, condition_over, worst_verdict
from verifier.evidence.differences import differing
from verifier.evidence.findings import Finding
from verifier.evidence.points import following_verdict, fraction_of
from verifier.questions.compare.floor import floor_of
from verifier.questions.compare.gate import worst_of_points
from verifier.study.results import Point, RequirementResult, RunResult, Scenario, Sureness

FOLLOWS = ", which follows from the numbers beside it"


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


def check_conclusions(path: str, content: Mapping[str, Any], settings: Mapping[str, Any]) -> list[Finding]:
    """What in the document of a run does not follow from its own numbers: verdicts, worst scenarios, totals, gates.

    Args:
        path: of the document.
        content: validated, its numbers within their bounds.
        settings: of the run; they say what decides a verdict.
    """
    furthest = 0.0
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
    missing = [Verdict.NO_ANSWER] if "unanswered" in content else []
    verdict = worst_verdict([*missing, *(Verdict(each["verdict"]) for each in expected)])
    condition = condition_over(verdict, ((Verdict(each["verdict"]), each["condition"]) for each in expected))
    return [
        *differing(
            path,
            _totals(content["verdict"], content["condition"], content["engines"]["largest_difference"], found),
            _totals(verdict.value, condition, furthest, expected),
            FOLLOWS,
        ),
        *_gates(path, content),
    ]


def _gates(path: str, content: Mapping[str, Any]) -> list[Finding]:
    """The floor follows from the run; of the drops, what is known without the baseline does."""
    gates = content.get("gates", {})
    findings: list[Finding] = []
    if "fail_under" in gates:
        floor, stated = gates["fail_under"], [stated_requirement(one) for one in content["requirements"]]
        least = SimpleNamespace(settings=content["settings"], channel=content["channel"], requirements=stated)
        floor_follows = floor_of(cast(RunResult, least), Fraction(floor["least"])).document()
        findings += differing(path, floor, floor_follows, FOLLOWS, "/gates/fail_under")
    if "regression" in gates:
        drops, failed = gates["regression"]["drops"], gates["regression"]["failed"]
        known = [_drop(each, content) for each in drops]
        told = [{name: each[name] for name in follows} for each, follows in zip(drops, known, strict=True)]
        over = {"failed": any(each["failed"] for each in drops), "drops": known}
        findings += differing(path, {"failed": failed, "drops": told}, over, FOLLOWS, "/gates/regression")
    return findings


def _drop(told: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
    """What of a drop follows from the run and the earlier probability."""
    key = told["requirement"], told["planner"]
    asked = next((one for one in content["requirements"] if (one["name"], one["planner"]) == key), None)
    if asked is None:
        return {"requirement": "a requirement of the run, with its planner"}
    larger = asked["target"] is None or asked["target"]["comparison"] not in ("<=", "<")
    now = worst_of_points(asked["points"], larger, asked["formula"]).probability
    found = {"now": now, "drop": told["before"] - now if larger else now - told["before"]}
    rule = content["gates"]["regression"]["drop_from"]
    if rule.startswith("chance:"):
        chance = told["chance"]
        found["failed"] = chance is not None and Fraction(chance) >= Fraction(rule.removeprefix("chance:"))
    return found


def _totals(
    verdict: str, condition: str | None, furthest: float, requirements: list[dict[str, Any]]
) -> dict[str, Any]:
    """What a document says of the whole."""
    engines = {"largest_difference": furthest}
    return {"verdict": verdict, "condition": condition, "engines": engines, "requirements": requirements}


def _stated(point: Mapping[str, Any]) -> dict[str, Any]:
    return {name: point[name] for name in ("verdict", "basis", "condition", "reason")}


def _resting(decision: Decision) -> dict[str, Any]:
    found = {"verdict": decision.verdict.value, "basis": decision.basis}
    return {**found, "condition": decision.condition, "reason": json_values(decision.reason)}


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
        _sureness(point["sureness"]) if "sureness" in point else None,
        condition=point["condition"],
        draws=tuple(point["draws"]),
        whatever_predicted=point.get("whatever_predicted"),
        vacuity=tuple(Vacuity(each["kind"], each["text"]) for each in point.get("vacuity", ())),
    )


def _sureness(told: Mapping[str, Any]) -> Sureness:
    interval, bounds = told["interval"], told["confidence_bounds"]
    return Sureness(
        told["level"],
        interval["kind"],
        interval["lower"],
        interval["upper"],
        tuple(interval["lower_range"]),
        tuple(interval["upper_range"]),
        interval["draws"],
        *(bounds[name] for name in ("lower", "upper", "attained_lower", "attained_upper", "conservative", "tier")),
    )
