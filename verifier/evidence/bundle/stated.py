"""The document of a run, read back as the values it was written from, so that what follows from them can be asked."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from verifier.checking.verdicts import Verdict, verdict_of, worst_verdict
from verifier.evidence.bundle.differences import differing_leaves
from verifier.evidence.bundle.findings import Finding, Kind
from verifier.options import RunOptions
from verifier.results import Point, RequirementResult, Scenario

LONGEST_FRACTION = 1_000_000
"""Characters of an exact probability."""


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


def fraction_of(text: str) -> Fraction:
    """An exact probability; ValueError where it is none."""
    if len(text) > LONGEST_FRACTION:
        raise ValueError(f"a fraction of more than {LONGEST_FRACTION} characters")
    top, _, bottom = text.partition("/")
    return Fraction(_long(top), _long(bottom or "1"))


def check_conclusions(path: str, content: Mapping[str, Any], options: RunOptions) -> list[Finding]:
    """What in the document of a run does not follow from its own numbers: verdicts, worst scenarios, totals.

    Args:
        path: of the document in the bundle.
        content: validated.
        options: of the run; they say what decides a verdict.
    """
    verdicts, furthest = [], 0.0
    expected_requirements = []
    for one in content["requirements"]:
        stated = stated_requirement(one)
        points = [{"verdict": _verdict(point, stated, options).value} for point in one["points"]]
        furthest = max(furthest, *(abs(each.probability - each.second) for each in stated.points))
        worst = stated.points.index(stated.worst)
        verdicts.append(stated.verdict)
        expected_requirements.append({"verdict": stated.verdict.value, "worst": worst, "points": points})
    found = {
        "verdict": content["verdict"],
        "engines": {"largest_difference": content["engines"]["largest_difference"]},
        "requirements": [
            {
                "verdict": one["verdict"],
                "worst": one["worst"],
                "points": [{"verdict": point["verdict"]} for point in one["points"]],
            }
            for one in content["requirements"]
        ],
    }
    expected = {
        "verdict": worst_verdict(verdicts).value,
        "engines": {"largest_difference": furthest},
        "requirements": expected_requirements,
    }
    return [
        Finding(
            path, each.where, each.found, f"{each.expected}, which follows from the numbers beside it", Kind.CONTENT
        )
        for each in differing_leaves(found, expected)
    ]


def _verdict(point: Mapping[str, Any], stated: RequirementResult, options: RunOptions) -> Verdict:
    """What the numbers of a point say about the target."""
    ends: tuple[float | Fraction, float | Fraction] = (point["lower"], point["upper"])
    if "exact" in point:
        ends = (fraction_of(point["exact"]),) * 2
    if "sureness" in point and options.verdict_from == "guaranteed":
        ends = (point["sureness"]["guaranteed"]["lower"], point["sureness"]["guaranteed"]["upper"])
    elif "sureness" in point and options.verdict_from == "interval":
        interval = point["sureness"]["interval"]
        ends = (interval["lower_range"][0], interval["upper_range"][1])
    return verdict_of(*ends, stated.comparison, stated.target)


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


def _long(digits: str) -> int:
    """A whole number, however many digits it has."""
    if not digits.isascii() or not digits.isdigit():
        raise ValueError("no whole number")
    value = 0
    for start in range(0, len(digits), 4000):
        piece = digits[start : start + 4000]
        value = value * 10 ** len(piece) + int(piece)
    return value
