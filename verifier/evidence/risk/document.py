"""The residual risk as a document: what is stated, and what follows from it; no value of it contradicts itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import starmap
from typing import Annotated, ClassVar

from verifier.base.documents import Condition, Derives, Exact, FractionText, Limits, Share, derived
from verifier.checking.verdicts import Verdict, condition_over, worst_verdict
from verifier.evidence.rates.document import RateInput
from verifier.evidence.risk.records import (
    RiskCondition,
    RiskEnvironment,
    RiskHazard,
    RiskRun,
    RiskShare,
    RiskUnlisted,
)
from verifier.evidence.risk.sums import RiskFound, risk_of, risk_over


@dataclass(frozen=True)
class RiskPart:
    """How often one of the intervals may miss."""

    part: str
    error: Exact


@dataclass(frozen=True, kw_only=True)
class RiskResult(Derives):
    """Result of `verify evidence risk`.

    Attributes:
        command: that made it, inputs by name without folders.
        inputs: the context of the case, and the results of runs.
        runs: those that probabilities are from.
        confidence: least level that was asked for; None where none was.
        accepted, source: harm per hour that is accepted of all hazards together, and who says so; None and empty
            where that is not said.
        parts: how often each interval may miss: the budget of errors.
        level: 1 - their sum: all ends hold at once with at least this confidence.
        risks: what follows for each hazard, in their order.
        total: what follows for all together.
        verdict, condition: the worst, of the hazards and of all together.
    """

    schema: ClassVar[str] = "verifier.risk"
    version: ClassVar[int] = 1
    command: tuple[str, ...] = ()
    inputs: Annotated[tuple[RateInput, ...], Limits(min_length=1)]
    versions: Mapping[str, str]
    conditions: Annotated[tuple[RiskCondition, ...], Limits(min_length=1)]
    environments: Annotated[tuple[RiskEnvironment, ...], Limits(min_length=1)]
    runs: tuple[RiskRun, ...]
    hazards: Annotated[tuple[RiskHazard, ...], Limits(min_length=1)]
    confidence: Exact | None
    accepted: FractionText | None
    source: str
    parts: tuple[RiskPart, ...] = derived(lambda risk: tuple(starmap(RiskPart, risk.errors.items())))
    level: Share = derived(lambda risk: float(max(1 - sum(risk.errors.values()), Fraction(0))))
    risks: tuple[RiskFound, ...] = derived(
        lambda risk: tuple(risk_of(hazard, risk.environments) for hazard in risk.hazards)
    )
    total: RiskFound = derived(lambda risk: risk_over(risk.risks, risk.hazards, risk.accepted))
    verdict: Verdict = derived(lambda risk: worst_verdict(each.verdict for each in (*risk.risks, risk.total)))
    condition: Condition | None = derived(
        lambda risk: condition_over(
            risk.verdict, ((each.verdict, each.condition) for each in (*risk.risks, risk.total))
        )
    )

    @property
    def errors(self) -> dict[str, Fraction]:
        """What each interval is called -> how often it may miss."""
        return errors_of(self.runs, self.environments, self.hazards)


def errors_of(
    runs: Iterable[RiskRun], environments: Sequence[RiskEnvironment], hazards: Iterable[RiskHazard]
) -> dict[str, Fraction]:
    """What each interval is called -> how often it may miss."""
    found = {f"{run.source} of run {number}, {run.name}": run.error for number, run in enumerate(runs, 1)}
    stated: list[RiskEnvironment | RiskUnlisted | RiskShare] = [*environments]
    stated += [each.unlisted for each in environments]
    stated += [share for each in environments for share in each.shares]
    stated += [factor for each in hazards for factor in each.chain]
    for each in stated:
        found[each.part] = max(each.error, found.get(each.part, Fraction(0)))
    return {part: error for part, error in found.items() if error}
