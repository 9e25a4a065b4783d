"""The document of a run as a list: one entry per requirement, planner and scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from verifier.evidence.documents import Document
from verifier.evidence.points import block_text, scenario_text
from verifier.scenarios import number_text


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
        probability, lower, upper: Storm's value and its numerical bounds.
        sureness: as in the document; None where the run made no intervals.
        worst: whether this is the worst scenario of the requirement under this planner.
        needed: further items that would decide the requirement; 0 where that is not known.
    """

    requirement: str
    planner: str
    block: str
    scenario: str
    formula: str
    target: str
    verdict: str
    probability: float
    lower: float
    upper: float
    sureness: Mapping[str, Any] | None
    worst: bool
    needed: int

    @property
    def name(self) -> str:
        """What tells it from all others of the run: "stops [planner published, ped x=1 v=1]"."""
        return f"{self.requirement} [planner {self.planner}, {self.scenario}]"

    @property
    def message(self) -> str:
        """What was found, on one line: the verdict, P, how sure that is, and what was asked."""
        found = [f"P = {self.probability:.9g}"]
        if self.sureness is not None:
            interval, bounds = self.sureness["interval"], self.sureness["guaranteed"]
            level = f"{100 * self.sureness['level']:g} %"
            found.append(f"{level} {interval['kind']} interval [{interval['lower']:.6g}, {interval['upper']:.6g}]")
            found.append(f"{level} guaranteed [{bounds['lower']:.6g}, {bounds['upper']:.6g}]")
        asked = "no target" if self.target == "= ?" else f"target P {self.target}"
        more = f"; about {self.needed} more items would decide it" if self.worst and self.needed else ""
        verdict = "" if self.verdict == "no target" else f"{self.verdict}: "
        return f"{verdict}{', '.join(found)}; {asked}{more}"


def checked(run: Document) -> tuple[Checked, ...]:
    """Every requirement in every scenario of a run, in the order of its document.

    Raises:
        ValueError: the document is not that of a run.
    """
    if run.kind != "run":
        raise ValueError(f"expected the document of a run, got one of kind {run.kind!r}")
    return tuple(_entries(run.content["requirements"]))


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
        outcome = "below" if each["failed"] else "not below"
        message = f"{each['value']:.9g} ({floor['from']}) in {each['scenario']} is {outcome} {floor['least']}"
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


def _entries(requirements: list[dict[str, Any]]) -> Iterator[Checked]:
    for each in requirements:
        columns = each.get("evidence_needed", {}).get("columns", [])
        for at, point in enumerate(each["points"]):
            yield Checked(
                requirement=each["name"],
                planner=each["planner"],
                block=block_text(point["environment"], point["constants"]),
                scenario=scenario_text(point),
                formula=each["formula"],
                target=_target(each["target"]),
                verdict=point["verdict"],
                probability=point["probability"],
                lower=point["lower"],
                upper=point["upper"],
                sureness=point.get("sureness"),
                worst=at == each["worst"],
                needed=sum(column["further"] for column in columns),
            )


def _target(target: Mapping[str, str] | None) -> str:
    return "= ?" if target is None else f"{target['comparison']} {number_text(Fraction(target['probability']))}"
