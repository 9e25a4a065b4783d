"""The result of a run as a list: one entry per requirement, planner and scenario."""

from collections.abc import Iterator
from dataclasses import dataclass

from verifier.base.numbers import level_text, significant
from verifier.base.words import bounds_text
from verifier.checking.verdicts import Verdict, verdict_text
from verifier.study.points import Point
from verifier.study.results import RequirementResult, RunResult
from verifier.telling.grounds import channel_lines, needed_text, reason_text, told_verdict, vacuity_text


@dataclass(frozen=True)
class Checked:
    """One requirement in one scenario of a run. `result`: the requirement under one planner."""

    run: RunResult
    result: RequirementResult
    number: int

    @property
    def point(self) -> Point:
        """What the run says of it."""
        return self.result.points[self.number]

    @property
    def worst(self) -> bool:
        """Whether this is the worst scenario of the requirement under this planner."""
        return self.number == self.result.worst

    @property
    def name(self) -> str:
        """What tells it from all others of the run: "stops [planner published, ped x=1 v=1]"."""
        return f"{self.result.name} [planner {self.result.planner}, {self.point.scenario}]"

    @property
    def message(self) -> str:
        """On one line: the verdict with its condition, why it is open or vacuous, P with intervals, the target."""
        point, plan = self.point, self.result.additional_data
        numbers = [self.result.with_unit(f"{self.result.asked} = {significant(point.probability, 9)}")]
        if point.uncertainty is not None:
            interval, bounds = point.uncertainty.interval, point.uncertainty.confidence_bounds
            level = level_text(point.uncertainty.level)
            numbers.append(f"{level} {interval.kind} interval {bounds_text(interval.lower, interval.upper)}")
            if bounds is not None:
                numbers.append(f"{self.run.settings.bounds_name} {bounds_text(bounds.lower, bounds.upper)}")
        asked = "no target" if self.result.target is None else f"target {self.result.asked_text}"
        more = f"; about {needed_text(plan)} would decide it" if self.worst and plan is not None else ""
        said = "" if point.verdict is Verdict.NO_TARGET else told_verdict(point)
        vacuity = vacuity_text(point)
        reasons = (reason_text(point.reason, point.probability), vacuity and f"vacuous: {vacuity}")
        why = "; ".join(filter(None, reasons))
        head = " ".join(part for part in (said, why and f"({why})") if part)
        return f"{head}{': ' if head else ''}{', '.join(numbers)}; {asked}{more}"

    @property
    def grounds(self) -> dict[str, str]:
        """What the verdict rests on, as names and texts; without what does not apply."""
        texts = {
            "condition": self.point.condition or "",
            "basis": self.point.basis or "",
            "reason": reason_text(self.point.reason, self.point.probability),
            "vacuity": vacuity_text(self.point),
            "tier": self.run.settings.tier,
        }
        return {name: value for name, value in texts.items() if value}


def run_grounds(run: RunResult) -> Iterator[tuple[str, str]]:
    """What all verdicts of a run rest on, as names and texts: its confidence bounds and the test of the channel."""
    bounds = run.settings.bounds
    if bounds is not None:
        yield "bounds", f"{bounds.name}: {bounds.condition}"
    tests = "; ".join(channel_lines(run.channel))
    model = "memoryless detector" if run.channel.contexts is None else f"detector with memory {run.channel.contexts}"
    yield model, f"{run.channel.test}{f' ({tests})' if tests else ''}"


def checked(run: RunResult) -> tuple[Checked, ...]:
    """Every requirement in every scenario of a run, in the order of its document."""
    return tuple(Checked(run, result, number) for result in run.requirements for number in range(len(result.points)))


@dataclass(frozen=True)
class Gated:
    """What a gate for continuous integration says of one requirement under one planner.

    Attributes:
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


def gated(run: RunResult) -> tuple[Gated, ...]:
    """What the gates of a run say, requirement by requirement; empty where none was asked for."""
    entries: list[Gated] = []
    floor, regression = (None, None) if run.gates is None else (run.gates.fail_under, run.gates.regression)
    if floor is not None:
        for held in floor.requirements:
            outcome = "below" if held.failed and not held.reason else "not below"
            message = f"{significant(held.value, 9)} ({floor.from_}) in {held.scenario} is {outcome} {floor.least}"
            message = verdict_text(message, held.condition)
            message += f"; not shown: {held.reason}" if held.reason else ""
            entries.append(Gated(held.requirement, held.planner, "fail_under", held.failed, message))
    if regression is not None:
        for drop in regression.drops:
            message = f"worse by {significant(drop.drop, 9)}, P from {significant(drop.before, 9)} "
            message += f"to {significant(drop.now, 9)}"
            message += f"; at most {regression.max_drop} is allowed, judged by {regression.drop_from}"
            if drop.chance is not None:
                message += f"; probability {significant(drop.chance)} that it is more"
            entries.append(Gated(drop.requirement, drop.planner, "max_drop", drop.failed, message))
    return tuple(entries)
