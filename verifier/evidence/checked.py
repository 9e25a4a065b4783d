"""The document of a run as a list: one entry per requirement, planner and scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from verifier.base.documents import Content
from verifier.base.numbers import decimal_text
from verifier.checking.verdicts import verdict_text
from verifier.evidence.documents import Document
from verifier.evidence.points import block_text, scenario_text
from verifier.telling.grounds import bounds_name, channel_lines, needed_text, reason_text, tier_of, vacuity_text


@dataclass(frozen=True)
class Checked:
    """One requirement in one scenario, as the document of a run says it.

    Attributes:
        requirement, planner: by name.
        block: true environment and swept constants, as "ped vmax=1": what is checked on one Markov chain.
        scenario: the block and the initial state, as "ped vmax=1 x=1 v=1".
        formula: fully parenthesised.
        target: as ">= 0.95", or "= ?".
        verdict: a value of `Verdict`.
        condition: what must be true for the verdict to hold; None where nothing is assumed.
        basis: what the verdict rests on, as in the document; None where nothing is decided.
        reason: why a verdict that its numbers would give is not given, in words; empty otherwise.
        vacuity: what makes the check say nothing here, in words; empty where nothing does.
        probability, lower, upper: Storm's value and its numerical bounds.
        sureness: as in the document; None where the run made no intervals.
        tier, bounds_name: of the confidence bounds, the name with level and tier for people; empty without bounds.
        worst: whether this is the worst scenario of the requirement under this planner.
        needed: further items or drives that would decide the requirement, in words; empty where that is not known.
    """

    requirement: str
    planner: str
    block: str
    scenario: str
    formula: str
    target: str
    verdict: str
    condition: str | None
    basis: str | None
    reason: str
    vacuity: str
    probability: float
    lower: float
    upper: float
    sureness: Mapping[str, Any] | None
    tier: str
    bounds_name: str
    worst: bool
    needed: str

    @property
    def name(self) -> str:
        """What tells it from all others of the run: "stops [planner published, ped x=1 v=1]"."""
        return f"{self.requirement} [planner {self.planner}, {self.scenario}]"

    @property
    def message(self) -> str:
        """On one line: the verdict with its condition, why it is open or vacuous, P with intervals, the target."""
        found = [f"P = {self.probability:.9g}"]
        if self.sureness is not None:
            interval, bounds = self.sureness["interval"], self.sureness["confidence_bounds"]
            level = f"{100 * self.sureness['level']:g} %"
            found.append(f"{level} {interval['kind']} interval [{interval['lower']:.6g}, {interval['upper']:.6g}]")
            found.append(f"{self.bounds_name} [{bounds['lower']:.6g}, {bounds['upper']:.6g}]")
        asked = "no target" if self.target == "= ?" else f"target P {self.target}"
        more = f"; about {self.needed} would decide it" if self.worst and self.needed else ""
        said = "" if self.verdict == "no target" else verdict_text(self.verdict, self.condition)
        why = "; ".join(part for part in (self.reason, self.vacuity and f"vacuous: {self.vacuity}") if part)
        head = " ".join(part for part in (said, why and f"({why})") if part)
        return f"{head}{': ' if head else ''}{', '.join(found)}; {asked}{more}"


def grounds_of(each: Checked) -> dict[str, str]:
    """What a verdict rests on, as names and texts; without what does not apply."""
    found = {
        "condition": each.condition or "",
        "basis": each.basis or "",
        "reason": each.reason,
        "vacuity": each.vacuity,
        "tier": each.tier,
    }
    return {name: value for name, value in found.items() if value}


def run_grounds(run: Content) -> Iterator[tuple[str, str]]:
    """What all verdicts of a run rest on, as names and texts: its confidence bounds and the test of the channel."""
    confidence = run["settings"]["confidence"]
    if confidence is not None:
        yield "bounds", f"{confidence['bounds']['name']}: {confidence['bounds']['condition']}"
    tests = "; ".join(channel_lines(run["channel"]))
    yield "memoryless detector", f"{run['channel']['test']}{f' ({tests})' if tests else ''}"


def checked(run: Document) -> tuple[Checked, ...]:
    """Every requirement in every scenario of a run, in the order of its document.

    Raises:
        ValueError: the document is not that of a run.
    """
    if run.kind != "run":
        raise ValueError(f"expected the document of a run, got one of kind {run.kind!r}")
    return tuple(_entries(run.content))


def worst_of(run: Document) -> tuple[Checked, ...]:
    """The worst scenario of each requirement under each planner; ValueError as `checked`."""
    return tuple(each for each in checked(run) if each.worst)


@dataclass(frozen=True)
class Gated:
    """What a gate for continuous integration says of one requirement under one planner.

    Attributes:
        requirement, planner: by name.
        gate: "fail_under" or "max_drop".
        failed: whether the gate is closed by it.
        message: on one line.
    """

    requirement: str
    planner: str
    gate: str
    failed: bool
    message: str

    @property
    def name(self) -> str:
        """What tells it from all others of the run: "stops [planner published, fail_under]"."""
        return f"{self.requirement} [planner {self.planner}, {self.gate}]"


def gated(run: Document) -> tuple[Gated, ...]:
    """What the gates of a run say, requirement by requirement; empty where none was asked for.

    Raises:
        ValueError: as `checked`.
    """
    if run.kind != "run":
        raise ValueError(f"expected the document of a run, got one of kind {run.kind!r}")
    gates = run.content.get("gates", {})
    return (*_floor_entries(gates.get("fail_under")), *_drop_entries(gates.get("regression")))


def _floor_entries(floor: Mapping[str, Any] | None) -> Iterator[Gated]:
    if floor is None:
        return
    for each in floor["requirements"]:
        outcome = "below" if each["failed"] and not each["reason"] else "not below"
        message = f"{each['value']:.9g} ({floor['from']}) in {each['scenario']} is {outcome} {floor['least']}"
        message += f", {each['condition']}" if each["condition"] is not None else ""
        message += f"; not shown: {each['reason']}" if each["reason"] else ""
        yield Gated(each["requirement"], each["planner"], "fail_under", each["failed"], message)


def _drop_entries(regression: Mapping[str, Any] | None) -> Iterator[Gated]:
    if regression is None:
        return
    for each in regression["drops"]:
        message = f"worse by {each['drop']:.9g}, P from {each['before']:.9g} to {each['now']:.9g}"
        message += f"; at most {regression['max_drop']} is allowed, judged by {regression['drop_from']}"
        if each["chance"] is not None:
            message += f"; chance {each['chance']:.3g} that it is more"
        yield Gated(each["requirement"], each["planner"], "max_drop", each["failed"], message)


def _entries(run: Content) -> Iterator[Checked]:
    settings = run["settings"]
    for each in run["requirements"]:
        for at, point in enumerate(each["points"]):
            yield Checked(
                requirement=each["name"],
                planner=each["planner"],
                block=block_text(point["environment"], point["constants"]),
                scenario=scenario_text(point),
                formula=each["formula"],
                target=_target(each["target"]),
                verdict=point["verdict"],
                condition=point["condition"],
                basis=point["basis"],
                reason=reason_text(point),
                vacuity=vacuity_text(point),
                probability=point["probability"],
                lower=point["lower"],
                upper=point["upper"],
                sureness=point.get("sureness"),
                tier=tier_of(settings),
                bounds_name=bounds_name(settings) if "sureness" in point else "",
                worst=at == each["worst"],
                needed=needed_text(each.get("evidence_needed")),
            )


def _target(target: Mapping[str, str] | None) -> str:
    return "= ?" if target is None else f"{target['comparison']} {decimal_text(Fraction(target['probability']))}"
