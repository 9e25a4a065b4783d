"""Goals that what happens per hour is acceptable: the rate of an event, and the harm of a hazard, or of all."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from verifier.base.numbers import level_text, short_text, significant
from verifier.base.words import clipped, percent, rate_interval_text, some_of
from verifier.evidence.case.drafting import Draft
from verifier.evidence.case.elements import Kind
from verifier.evidence.case.requirements import STATUS_OF, grounds_at, noted, on_condition, rate_text
from verifier.evidence.defeaters.values import PER_HOUR, Claim, Defeater
from verifier.evidence.documents import Document
from verifier.evidence.rates.document import RateExposure, RateResult
from verifier.evidence.rates.hazard import EVERY
from verifier.evidence.residual_risk.document import RiskFound, RiskResult
from verifier.evidence.residual_risk.records import UNLISTED, RiskHazard
from verifier.evidence.status import Grade, Ground, Status, worst_status
from verifier.evidence.telling import ends_text, source_text, triggers_sentence
from verifier.evidence.triggers import TriggersResult
from verifier.telling.grounds import reason_text, told_verdict

_EVENTS: Mapping[str, str] = {"violated": "violation rate", "satisfied": "rate of satisfaction"}
_ABOUT_THE_TARGET = ("straddles_target", "thin_columns", "policy_sensitive", "no_bounds")
"""Kinds of doubt that say nothing against a rate, which is compared with another criterion. Thin columns do, where
the rate is not made from confidence bounds, which alone allow for them."""


@dataclass(frozen=True)
class _Rests:
    """The requirement of a run that a number is from: its source, and the environments that are not in it."""

    run: Document
    requirement: str
    planner: str
    source: str
    left_out: tuple[str, ...] = ()

    @property
    def claim(self) -> Claim:
        return Claim(self.run.sha256, self.requirement, self.planner)


def rate_goal(draft: Draft, rate: Document, run: Document) -> str:
    """The goal that the rate of an unwanted event is acceptable: for a rate with an acceptance criterion.

    Args:
        draft: of the case; the goals of the run's requirements are in it.
    """
    content: RateResult = rate.result
    bounds, accepted = content.decisive, content.acceptance
    assert accepted is not None
    status = STATUS_OF[content.verdict.value]
    if status is Status.SUPPORTED and (bounds.level is None or content.left_out):
        status = Status.UNDEVELOPED  # the point alone shows nothing, and a part of the rate not the whole
    reason, names = reason_text(content.reason), [clipped(name) for name in content.left_out]
    left_out = f"; without what happens in {some_of(names, 8)}, which was left out" if names else ""
    return _goal(
        draft,
        rate,
        f"The {_EVENTS[content.event]} of {clipped(content.requirement)} with planner "
        f"{clipped(content.planner)} is at most {short_text(accepted.per_hour)} per hour "
        f"(worst scenario in every encounter){on_condition(content)}",
        f"{rate_text(content)}: {told_verdict(content)}{f' ({reason})' if reason else ''}{left_out}",
        status,
        f"in the worst scenarios the rate is at least {significant(bounds.lower, 4)} per hour",
        [_Rests(run, content.requirement, content.planner, content.bounds.source)],
        {
            "exposure": _exposures_text((term.environment, term.exposure) for term in content.terms),
            "acceptance": f"{short_text(accepted.per_hour)} per hour is acceptable{source_text(accepted.source)}",
        },
    )


def risk_goals(draft: Draft, risk: Document) -> Iterator[str]:
    """The goals that the harm of each hazard, and of all together, is acceptable, where a criterion is stated.

    Args:
        draft: of the case; the goals of its runs' requirements are in it.
    """
    content: RiskResult = risk.result
    by_number = {k: one for k, run in enumerate(content.runs) for one in draft.runs if one.sha256 == run.sha256}
    rests: dict[str, list[_Rests]] = {}
    for hazard in content.hazards:
        used = {cell.run for cell in hazard.cells}
        runs_of = ((run, content.runs[k].source) for k, run in by_number.items() if k in used)
        about = hazard.requirement, hazard.planner
        rests[hazard.name] = [_Rests(run, *about, source, hazard.left_out) for run, source in runs_of]
    for hazard, outcome in zip(content.hazards, content.risks, strict=True):
        if hazard.accepted is not None:
            what, mine = f"hazard {clipped(hazard.name)}", rests[hazard.name]
            yield _risk_goal(draft, risk, what, outcome, hazard.accepted, hazard.source, [hazard], mine)
    if content.accepted is not None:
        every = [one for named in rests.values() for one in named]
        what, hazards = "all hazards together", content.hazards
        yield _risk_goal(draft, risk, what, content.total, content.accepted, content.source, hazards, every)


def _risk_goal(
    draft: Draft,
    risk: Document,
    what: str,
    outcome: RiskFound,
    accepted: str,
    source: str,
    hazards: Sequence[RiskHazard],
    rests: Sequence[_Rests],
) -> str:
    ends = rate_interval_text(*outcome.harm)
    most = next((contribution for contribution in outcome.contributions if contribution.kind == "condition"), None)
    note = f"{ends} per hour (level {level_text(risk.result.level)}): {told_verdict(outcome)}"
    note += f"; {percent(most.share)} of the upper end by condition {clipped(most.name)}" if most else ""
    return _goal(
        draft,
        risk,
        f"The harm of {what} is at most {short_text(accepted)} per hour{on_condition(outcome)}",
        note,
        STATUS_OF[outcome.verdict.value],
        f"the harm is within {ends} per hour",
        rests,
        _stated_of(risk.result, hazards)
        | {"acceptance": f"{short_text(accepted)} harm per hour is acceptable for {what}{source_text(source)}"},
    )


def triggers_goal(draft: Draft, document: Document) -> str:
    """The goal that the known triggering conditions are acceptable: without data for one nothing shows it; `draft`
    as for `risk_goals`."""
    result: TriggersResult = document.result
    by_hash = {run.sha256: run for run in draft.runs}
    used = (trigger for trigger in result.triggers if trigger.run in by_hash and not trigger.excluded_by)
    judged = ((by_hash[trigger.run or ""], one) for trigger in used for one in trigger.judged)
    rests = [_Rests(run, one.requirement, one.planner, "") for run, one in judged]
    sorts = {trigger.sort for trigger in result.triggers}
    status = STATUS_OF[result.verdict.value]
    if status is Status.INCONCLUSIVE and "undecided" not in sorts:
        status = Status.UNDEVELOPED
    hazardous = [clipped(trigger.name) for trigger in result.triggers if trigger.sort == "hazardous"]
    excluded = [f"{clipped(one.name)} by {clipped(one.excluded_by)}" for one in result.triggers if one.excluded_by]
    stated = {"triggers": "The list of triggering conditions is complete"}
    stated |= {"odd": f"Conditions are kept out as stated: {some_of(excluded, 8)}"} if excluded else {}
    text = f"Every known triggering condition is acceptable, or excluded by a monitor{on_condition(result)}"
    why = f"hazardous: {some_of(hazardous, 8)}"
    return _goal(draft, document, text, triggers_sentence(result), status, why, rests, stated)


def _stated_of(risk: RiskResult, hazards: Sequence[RiskHazard]) -> dict[str, str]:
    """Claim -> what people state that the risk of some hazards rests on."""
    used = {name for hazard in hazards for name in hazard.environments}
    places = [where for where in risk.environments if where.name in used]
    shares = [f"{clipped(one.name)} {ends_text(one)}{source_text(one.source)}" for one in places[0].shares]
    for rest in (where.unlisted for where in places):
        shares.append(f"in {UNLISTED} at most {significant(rest.upper, 6)}{source_text(rest.source)}")
    statements = {
        "exposure": _exposures_text((where.name, where.exposure) for where in places),
        "conditions": f"Encounters are in the conditions as often as stated: {some_of(shares, 8)}",
    }
    factors = (factor for hazard in hazards for factor in hazard.chain)
    chain = [f"{factor.part} {ends_text(factor)}{source_text(factor.source)}" for factor in factors]
    if chain:
        statements["harm"] = f"Hazardous behaviour leads to harm as seldom as stated: {some_of(chain, 8)}"
    left = [f"{clipped(hazard.name)} not in {clipped(name)}" for hazard in hazards for name in hazard.left_out]
    return statements | ({"requirements": f"Hazards cannot happen elsewhere: {some_of(left, 8)}"} if left else {})


def _goal(
    draft: Draft,
    document: Document,
    text: str,
    note: str,
    status: Status,
    why_false: str,
    rests: Sequence[_Rests],
    stated: Mapping[str, str],
) -> str:
    """The goal that a number per hour is acceptable.

    Args:
        document: that has the number.
        status: by the number alone.
        why_false: what speaks against it where it is violated.
        rests: what the number is from.
        stated: claim -> what people state that it rests on as well.
    """
    own, inherited = list[Defeater](), list[tuple[str, Defeater]]()
    for one in rests:
        doubts = [defeater for defeater in draft.touching(one.claim) if _speaks_against(defeater, one.source)]
        goal = draft.goals.get(one.claim)
        own += [doubt for doubt in doubts if goal is None or doubt.kind in PER_HOUR]
        inherited += [(goal, doubt) for doubt in doubts if goal is not None and doubt.kind not in PER_HOUR]
    own = list(dict.fromkeys(own))
    identifier, supported = draft.name(Kind.GOAL), status is Status.SUPPORTED
    whole = worst_status(status, *([Status.DEFEATED] if own or inherited else []))
    mine = [
        draft.ground((claim, said), said, "Stated by people", Grade.DECLARED, claim=claim)
        for claim, said in stated.items()
    ]
    grounds = [ground for one in rests for ground in _grounds(draft, one)] + [*draft.verification(document), *mine]
    draft.goal(
        identifier,
        text,
        noted(note, inherited, own),
        (draft.solution(document), *draft.shown_by(grounds)) if supported else (),
        [ground.id for ground in mine],
        undeveloped=not supported,
        defeated=status is Status.VIOLATED or bool(own),
        **draft.standing(whole, grounds if supported else (), Grade.RECOMPUTED),
    )
    if status is Status.VIOLATED:
        draft.refute(identifier, why_false, document)
    draft.challenge(identifier, own)
    return identifier


def _grounds(draft: Draft, one: _Rests) -> Iterator[Ground]:
    for requirement in one.run.result.requirements:
        if (requirement.name, requirement.planner) == (one.requirement, one.planner):
            for k, point in enumerate(requirement.points):
                if point.environment not in one.left_out:
                    yield from grounds_at(draft, one.run, requirement, k)


def _speaks_against(defeater: Defeater, source: str) -> bool:
    """Whether a doubt about a requirement is one about its rate, too; without a source all are."""
    if not source:
        return True
    if defeater.kind == "thin_columns":
        return source != "bounds"
    return defeater.kind not in _ABOUT_THE_TARGET


def _exposures_text(exposures: Iterable[tuple[str, RateExposure]]) -> str:
    parts = []
    for name, exposure in exposures:
        where = "all" if name == EVERY else clipped(name)
        how = clipped(exposure.source) if exposure.source else "source not stated"
        if exposure.encounters is not None and exposure.hours is not None:
            how = f"{exposure.encounters} counted in {short_text(exposure.hours)} h, {how}"
        parts.append(f"{where} {rate_interval_text(exposure.lower, exposure.upper)} per hour ({how})")
    return f"Encounters come as often as stated: {some_of(parts, 8)}"
