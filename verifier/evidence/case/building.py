"""The assurance case: from requirements and results to goals, strategies, evidence, and what speaks against them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from verifier.base.arrays import grouped
from verifier.base.errors import UsageError
from verifier.base.numbers import short_text
from verifier.base.words import clipped, counted
from verifier.evidence.case.criteria import rate_goal, risk_goals, triggers_goal
from verifier.evidence.case.drafting import Draft, undeveloped
from verifier.evidence.case.elements import Case, Kind
from verifier.evidence.case.numbers import FOR_NUMBERS, FOR_RECALLS, number_goals, recall_goals
from verifier.evidence.case.requirements import Argued, requirement_goal, worst_text
from verifier.evidence.case.surroundings import NOT_STATED, argument_grounds, left_to_persons, top_contexts
from verifier.evidence.context import CaseContext
from verifier.evidence.defeaters.values import Claim, Defeater, Doubt, claimed, is_rate_of
from verifier.evidence.documents import Document, of_kind
from verifier.evidence.rates.document import Acceptance, RateResult
from verifier.evidence.rates.exposure import requirement_of, unwanted
from verifier.evidence.status import Grade, Standing, Status, severity, weakest

NOTHING: Mapping[str, str] = MappingProxyType({})
IN_ONE_ENCOUNTER = "Argument at the level of one encounter: over each requirement, in the worst of its scenarios"
IN_OPERATION = "Argument at the level of operation: over the rate of each event, from all encounters of an hour"
OVER_HAZARDS = "Argument over hazards and triggering conditions: known conditions, unknown ones, and the way to harm"
LEFT_TO_PERSONS = "Argument over what the results cannot show"


def build_case(
    documents: Sequence[Document],
    context: CaseContext,
    defeaters: Sequence[Defeater],
    files: Mapping[str, str],
    unevidenced: Mapping[str, str] = NOTHING,
    unverified: Mapping[str, str] = NOTHING,
    proven: Mapping[Claim, tuple[str, ...]] = MappingProxyType({}),
    sensitivities: Sequence[Doubt] = (),
) -> Case:
    """The case that the documents make.

    Args:
        documents: every run among them makes a goal of each of its requirements with a target; explanations, required
            recalls and rates are attached to the requirements they are about.
        context: what people state; what they do not state shows as "not stated", and where the argument needs it as
            a goal that is not developed.
        defeaters: what speaks against the claims, from `find_defeaters` for the same documents.
        files: path -> SHA-256 of the files that solutions point at; a document that is not there goes by its name.
        unevidenced: requirement -> why there is no result for it.
        unverified: SHA-256 of a result -> why its numbers are not made again here: what it claims is at best
            conditional.
        proven: claim about a single scenario -> the certificates that prove its probability and bounds.
        sensitivities: where weaker choices give other verdicts, from `find_sensitivities`.

    Raises:
        UsageError: there is no run among the documents.
    """
    draft = Draft(documents, context, defeaters, files, unverified, proven, sensitivities)
    if not draft.runs:
        raise UsageError("an assurance case needs the result of a verify run")
    top, over, persons = draft.name(Kind.GOAL), draft.name(Kind.STRATEGY), draft.name(Kind.STRATEGY)
    contexts, grounds = top_contexts(draft), argument_grounds(draft)
    goals = _requirement_claims(draft, unevidenced)
    rates, risks = _rate_claims(draft), _risk_claims(draft)
    left = left_to_persons(draft)
    recalls, numbers = recall_goals(draft), number_goals(draft)
    strategies = [over, persons]
    draft.strategy(over, IN_ONE_ENCOUNTER, goals, grounds=grounds)
    draft.strategy(persons, LEFT_TO_PERSONS, left)
    for text, claims in (
        (FOR_NUMBERS, numbers),
        (FOR_RECALLS, recalls),
        (IN_OPERATION, rates),
        (OVER_HAZARDS, risks),
    ):
        if claims:
            strategies.insert(-1, draft.name(Kind.STRATEGY))
            draft.strategy(strategies[-2], text, claims)
    met = "its requirement" if len(goals) == 1 else f"all {counted(len(goals), 'requirement')}"
    met = met if goals else "its requirements, none of which has a target,"
    system = clipped(context.system, 200) if context.system else f"The system (name: {NOT_STATED})"
    draft.goal(
        top,
        f"{system} meets {met} in its operational design domain",
        _summary(draft, [*goals, *numbers, *recalls, *rates, *risks], left),
        strategies,
        contexts,
        **draft.over(strategies),
        amlas="Stage 1, top claim of the scoping argument",
    )
    return draft.case(f"Assurance case: {clipped(context.system) if context.system else draft.runs[0].result.title}")


def standings(
    case: Case, documents: Sequence[Document], defeaters: Sequence[Defeater], unevidenced: Mapping[str, str] = NOTHING
) -> tuple[Standing, ...]:
    """How every requirement with a target stands under every planner over all runs among the documents, which the
    case is made of, as of the defeaters and the requirements without a result."""
    claims = grouped(
        ((requirement.name, requirement.planner), (case.by_id[case.goals[claim]], run, requirement))
        for run in of_kind(documents, "run")
        for claim, requirement in claimed(run)
        if claim in case.goals
    )
    evidenced = []
    for (name, planner), made in claims.items():
        goal, run, requirement = max(made, key=lambda one: severity(one[0].status))
        assert goal.status is not None
        about = run.sha256, name, planner
        against = [one for one in defeaters if any(claim.about == about for claim in one.claims)]
        alike = [one for one, _, _ in made if one.status is goal.status]
        rests_on = tuple(dict.fromkeys(name for one in alike for name in one.rests_on))
        grade = weakest(one.grade for one, _, _ in made if one.grade is not None)
        assumed = tuple(case.by_id[one].text for one in rests_on)
        reason = {
            Status.SUPPORTED: "",
            Status.CONDITIONAL: f"on {', '.join(rests_on)}",
            Status.DEFEATED: f"by {', '.join(one.id for one in against)}",
        }.get(goal.status, worst_text(requirement))
        evidenced.append(Standing(name, planner, goal.status, grade, reason, run.name, assumed))
    left = (Standing(name, "", Status.UNDEVELOPED, Grade.UNTESTED, why) for name, why in unevidenced.items())
    return (*evidenced, *left)


def _rate_claims(draft: Draft) -> list[str]:
    """The goals of rates that were compared with a criterion, and of criteria that no rate was compared with."""
    found = of_kind(draft.documents, "rate")
    rates = [(rate, run) for rate in found for run in draft.runs if is_rate_of(rate, run)]
    goals = [rate_goal(draft, document, run) for document, run in rates if document.result.acceptance is not None]
    return goals + _missing_rates(draft, rates)


def _risk_claims(draft: Draft) -> list[str]:
    """The goals of hazards with a criterion; those that no risk is of, of all its runs, are not developed."""
    known = {run.sha256 for run in draft.runs}
    risks = [risk for risk in of_kind(draft.documents, "risk") if {run.sha256 for run in risk.result.runs} <= known]
    held = {(hazard.name, hazard.accepted) for risk in risks for hazard in risk.result.hazards}
    asked = (hazard for hazard in draft.stated.risk.hazards if hazard.accepted)
    missing = [hazard for hazard in asked if (hazard.name, hazard.accepted) not in held]
    goals = [goal for risk in risks for goal in risk_goals(draft, risk)]
    triggers = of_kind(draft.documents, "triggers")
    goals += [triggers_goal(draft, trigger) for trigger in triggers]
    if draft.stated.triggers and not triggers:
        text, note = "Every known triggering condition is acceptable", "No result of verify evidence triggers"
        goals.append(undeveloped(draft, text, note))
    return goals + [
        undeveloped(
            draft,
            f"The harm of hazard {clipped(hazard.name)} is at most {short_text(hazard.accepted or '')} per hour",
            "Criterion stated, no result of verify evidence risk against it with its runs",
        )
        for hazard in missing
    ]


def _requirement_claims(draft: Draft, unevidenced: Mapping[str, str]) -> list[str]:
    """The goals of requirements, and of those that there is no result for."""
    goals = []
    for number, run in enumerate(draft.runs, start=1):
        for requirement in run.result.requirements:
            if requirement.target is None:
                continue  # reported in a context: it claims nothing
            label = clipped(requirement.name)
            if len(run.result.settings.planners) > 1:
                label += f" with planner {clipped(requirement.planner)}"
            if len(draft.runs) > 1:
                label += f" (run {number}: {clipped(run.result.title)})"
            goals.append(requirement_goal(draft, Argued(run, requirement, label)))
    for name, why in unevidenced.items():
        goals.append(undeveloped(draft, f"{clipped(name)} is met", f"No result: {clipped(why, 300)}"))
    return goals


def _missing_rates(draft: Draft, rates: Sequence[tuple[Document, Document]]) -> list[str]:
    """Acceptance criteria that none of the rates, each with its run, was compared with, under some planner."""
    goals = []
    for name, accepted in draft.stated.acceptances.items():
        requirements = (requirement for run in draft.runs for requirement in run.result.requirements)
        verified = list(dict.fromkeys(one.planner for one in requirements if one.name == name))
        held = {document.result.planner for document, run in rates if _is_held(document, run, name, accepted)}
        exposure = "" if draft.stated.exposures else f"; exposure: {NOT_STATED}"
        text = f"The rate at which {clipped(name)} fails is at most {float(accepted.per_hour):g} per hour"
        if not verified:
            note = f"Acceptance criterion stated, no run has a requirement of this name{exposure}"
            goals.append(undeveloped(draft, text, note))
        for planner in verified:
            if planner not in held:
                note = f"Acceptance criterion stated, no result of verify evidence rate against it{exposure}"
                under = f"{text} with planner {clipped(planner)}" if len(verified) > 1 else text
                goals.append(undeveloped(draft, under, note))
    return goals


def _is_held(rate: Document, run: Document, name: str, accepted: Acceptance) -> bool:
    """Whether a rate of a requirement's failures is compared with this criterion, or against a stricter one."""
    content: RateResult = rate.result
    if content.requirement != name or content.acceptance is None:
        return False
    requirement = requirement_of(run, name, content.planner)
    fails = requirement.target is None or content.event == unwanted(requirement, None)
    return fails and content.acceptance.per_hour <= accepted.per_hour


def _summary(draft: Draft, goals: Sequence[str], left: Sequence[str]) -> str:
    """How many of the goals stand how."""
    parts = []
    for what, names in (("Claims", goals), ("Not shown by the results", left)):
        statuses = [draft.over([name])["status"] for name in names]
        counts = [(status, statuses.count(status)) for status in Status]
        parts.append(f"{what}: {', '.join(f'{count} {status.value}' for status, count in counts if count) or 'none'}")
    return ". ".join(parts)
