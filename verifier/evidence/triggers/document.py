"""Triggering conditions as a document: what people state of each, what runs found, and what follows.

ISO 21448 sorts scenarios into known and unknown, hazardous and not. Here each condition that somebody lists stands
once: not hazardous where every requirement of its run is satisfied, hazardous where one is violated, undecided, or
without data, which is no reason to call it harmless.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, TypeAlias

from verifier.base.documents import Condition, Count, Derives, Extended, Limits, Sha256, derived
from verifier.checking.verdicts import Verdict, condition_over, worst_verdict
from verifier.evidence.rates.document import RateInput

Part: TypeAlias = Literal["sense", "plan", "act"]
Sort: TypeAlias = Literal["not hazardous", "hazardous", "undecided", "no data", "excluded"]
_VERDICTS: Mapping[Sort, Verdict] = {
    "not hazardous": Verdict.SATISFIED,
    "hazardous": Verdict.VIOLATED,
    "undecided": Verdict.INCONCLUSIVE,
    "no data": Verdict.INCONCLUSIVE,
    "excluded": Verdict.SATISFIED,
}


@dataclass(frozen=True, kw_only=True)
class TriggerVerdict:
    """What the run of a condition says of one requirement, in its worst scenario.

    Attributes:
        lower, upper: the ends that decide.
        needed: how many more items or drives would decide it; empty where it is decided, or that is not known.
    """

    requirement: str
    planner: str
    asked: str
    scenario: str
    probability: Extended
    lower: Extended
    upper: Extended
    verdict: Verdict
    condition: Condition | None
    needed: str


@dataclass(frozen=True, kw_only=True)
class Trigger(Derives):
    """One condition.

    Attributes:
        name, text, part, source, effect: as stated; the part of the system that it affects.
        excluded_by: the monitor that keeps it out of the operational design domain; empty where none does.
        severity: the mutation that its images were made by; empty where they were not.
        matrices, sha256, where: the data: a file, and bins of its further variables; empty and None for no data.
        run: SHA-256 of the run; None where there is none.
        items: true label that the run draws -> items; None where the matrices are not at hand.
        drives: sequences with an item; None where that is not known.
        judged: of each requirement with a target.
        sort: what it is known as.
    """

    name: str
    text: str
    part: Part | None = None
    source: str = ""
    effect: str = ""
    excluded_by: str = ""
    severity: str = ""
    matrices: str = ""
    sha256: Sha256 | None = None
    where: Mapping[str, str] = field(default_factory=dict)
    run: Sha256 | None = None
    items: Mapping[str, Count] | None = None
    drives: Count | None = None
    judged: tuple[TriggerVerdict, ...] = ()
    sort: Sort = derived(lambda trigger: _sort(trigger))


def _sort(trigger: Trigger) -> Sort:
    if trigger.excluded_by:
        return "excluded"
    if trigger.run is None or not trigger.judged:
        return "no data"
    worst = worst_verdict(each.verdict for each in trigger.judged)
    return {Verdict.SATISFIED: "not hazardous", Verdict.VIOLATED: "hazardous"}.get(worst, "undecided")  # type: ignore[return-value]


@dataclass(frozen=True, kw_only=True)
class TriggerPair:
    """Two conditions that may come together: the objects in both; None, and why, where that is not known."""

    first: str
    second: str
    items: Count | None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class TriggersResult(Derives):
    """Result of `verify evidence triggers`.

    Attributes:
        command: that made it, inputs by name without folders.
        inputs: the context of the case, the results of runs, and the matrices whose items were counted.
        triggers: every condition once, in the order of the file.
        pairs: every two of them.
        verdict, condition: on the claim that all known conditions in the operational design domain are acceptable.
    """

    schema: ClassVar[str] = "verifier.triggers"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    inputs: Annotated[tuple[RateInput, ...], Limits(min_length=1)]
    versions: Mapping[str, str]
    triggers: Annotated[tuple[Trigger, ...], Limits(min_length=1)]
    pairs: tuple[TriggerPair, ...]
    verdict: Verdict = derived(lambda found: worst_verdict(_VERDICTS[each.sort] for each in found.triggers))
    condition: Condition | None = derived(
        lambda found: (
            condition_over(
                found.verdict, ((one.verdict, one.condition) for each in found.triggers for one in each.judged)
            )
            if found.verdict in (Verdict.SATISFIED, Verdict.VIOLATED)
            else None
        )
    )
