"""The argument for one requirement: over environments, then over scenarios, each resting on the result of a run.

A scenario whose verdict is "satisfied" is supported by the run, on condition of those assumptions of its numbers that
are neither tested nor documented. A violated one is refuted by it: a counter goal with the run as its counter
solution. An inconclusive or a vacuous one is left undeveloped. What is defeated above is defeated below.

What the numbers of a scenario assume: a memory of the detector, the data's independence, that somebody made them
again; each with what is known of it. A claim stands no better than what it rests on.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from verifier.analysis.channel_test import channel_test
from verifier.base.errors import one_line
from verifier.base.numbers import significant
from verifier.base.words import bounds_text, clipped, counted, probability_text, rate_interval_text, some_of
from verifier.checking.verdicts import Verdict
from verifier.evidence.case.drafting import Draft
from verifier.evidence.case.elements import Kind
from verifier.evidence.defeaters.about_data import same_sources
from verifier.evidence.defeaters.values import Claim, Defeater, is_rate_of
from verifier.evidence.documents import Document
from verifier.evidence.rates.document import RateResult
from verifier.evidence.status import Grade, Ground, Status, worst_status
from verifier.study.points import Point
from verifier.study.results import RequirementResult, RunResult
from verifier.telling.failing import cause_lines
from verifier.telling.grounds import (
    FREE_ASSUMES,
    FREE_KNOWN,
    Judged,
    channel_lines,
    free_text,
    memory_text,
    told_verdict,
    why,
)
from verifier.telling.questions import answer_text, asks_for_recall

STATUS_OF: Mapping[str, Status] = {
    "satisfied": Status.SUPPORTED,
    "vacuous": Status.VACUOUS,
    "inconclusive": Status.INCONCLUSIVE,
    "violated": Status.VIOLATED,
}
"""Verdict -> what a goal is that rests on it alone."""


@dataclass(frozen=True)
class Argued:
    """One requirement of one run.

    Attributes:
        run: the document.
        requirement: its part about the requirement.
        label: the requirement's name for people; says which run where there are several.
    """

    run: Document
    requirement: RequirementResult
    label: str

    @property
    def claim(self) -> Claim:
        """About all scenarios."""
        return Claim(self.run.sha256, self.requirement.name, self.requirement.planner)


def requirement_goal(draft: Draft, argued: Argued) -> str:
    """The goal that a requirement is met, with everything below it."""
    requirement = argued.requirement
    identifier, strategy = draft.name(Kind.GOAL), draft.name(Kind.STRATEGY)
    defeaters = draft.against(argued.claim)
    inherited = [(identifier, defeater) for defeater in defeaters]
    environments = list(dict.fromkeys(point.environment for point in requirement.points))
    children = [_environment_goal(draft, argued, name, inherited) for name in environments]
    in_worst = f"Worst: {clipped(requirement.worst_point.scenario)}: {_judgement(argued, requirement.worst_point)}"
    listing = ", ".join(clipped(name) for name in environments[:8]) + (", ..." if len(environments) > 8 else "")
    draft.strategy(strategy, f"Argument over the environments {listing}: each must meet the target", children, True)
    draft.goal(
        identifier,
        f"{argued.label}: {requirement.asked_text} that {clipped(requirement.formula, 240)}, planner "
        f"{clipped(requirement.planner)}, in every scenario{on_condition(requirement)}",
        noted(in_worst, [], defeaters),
        [strategy],
        list(_contexts(draft, argued)),
        defeated=bool(defeaters),
        **draft.over([strategy], *([Status.DEFEATED] if defeaters else [])),
        amlas="Stage 2, G2.1, for this requirement",
    )
    draft.goals[argued.claim] = identifier
    draft.challenge(identifier, defeaters)
    draft.refuted(identifier, argued.claim)
    return identifier


def _environment_goal(
    draft: Draft, argued: Argued, environment: str, inherited: Sequence[tuple[str, Defeater]]
) -> str:
    """A goal for one scenario, or one over all scenarios of the environment."""
    points = [k for k, point in enumerate(argued.requirement.points) if point.environment == environment]
    if len(points) == 1:
        return _scenario_goal(draft, argued, points[0], inherited)
    identifier, strategy = draft.name(Kind.GOAL), draft.name(Kind.STRATEGY)
    children = [_scenario_goal(draft, argued, point, inherited) for point in points]
    said = f"Argument over {counted(len(points), 'scenario')}: initial states and constants"
    draft.strategy(strategy, said, children, True)
    text = f"In environment {clipped(environment)}, {argued.label} holds: {argued.requirement.asked_text}"
    return draft.goal(identifier, text, noted("", inherited, []), [strategy], (), **draft.over([strategy]))


def _scenario_goal(draft: Draft, argued: Argued, at: int, inherited: Sequence[tuple[str, Defeater]]) -> str:
    point, target = argued.requirement.points[at], argued.requirement.asked_text
    own = draft.against(argued.claim.at(at))
    verdict = STATUS_OF[point.verdict.value]
    status = worst_status(verdict, *([Status.DEFEATED] if own or inherited else []))
    identifier = draft.name(Kind.GOAL)
    holds = verdict is Status.SUPPORTED
    grounds = grounds_at(draft, argued.run, argued.requirement, at) if holds else ()
    kind = Kind.SOLUTION if holds else Kind.COUNTER_SOLUTION if verdict is Status.VIOLATED else Kind.CONTEXT
    results = (draft.solution(argued.run),) if holds else ()
    proofs = draft.proofs(argued.claim.at(at), kind)
    grades = [Grade.PROVEN if proofs else Grade.RECOMPUTED]
    grades += draft.grades(argued.claim) + draft.grades(argued.claim.at(at))
    draft.goal(
        identifier,
        f"In {clipped(point.scenario)}, {argued.label} holds: {target}{on_condition(point)}",
        noted(_judgement(argued, point), inherited, own),
        (*results, *proofs, *draft.shown_by(grounds)) if holds else (),
        (*(ground.id for ground in grounds), *(proofs if kind is Kind.CONTEXT else ())),
        undeveloped=not holds,
        defeated=bool(own) or verdict is Status.VIOLATED,
        **draft.standing(status, grounds, *grades),
    )
    draft.goals[argued.claim.at(at)] = identifier
    if verdict is Status.VIOLATED:
        draft.refute(identifier, f"{_bounds_text(argued, point)}, the target is {target}", argued.run, proofs)
    draft.challenge(identifier, own)
    draft.refuted(identifier, argued.claim.at(at))
    return identifier


def _judgement(argued: Argued, point: Point) -> str:
    """The numbers and the verdict with its condition, and why it is open or vacuous."""
    reason = why(point)
    basis, free = ", whatever the detector predicts" if point.basis == "any_dependence" else "", point.decided_free
    basis = basis if free is None else f"; {free_text(free)}"
    return f"{_bounds_text(argued, point)}: {told_verdict(point)}{basis}{f' ({reason})' if reason else ''}"


def worst_text(requirement: RequirementResult) -> str:
    """The number of the worst scenario, and why its verdict is what it is, on one line."""
    point = requirement.worst_point
    value = requirement.with_unit(f"{requirement.asked} = {probability_text(point.probability)}")
    rest = [value + f" in {clipped(point.scenario)}", *filter(None, [point.condition, why(point)])]
    return one_line(", ".join(rest))


def on_condition(part: Judged) -> str:
    """The condition of what is satisfied, behind its claim; what is not satisfied is refuted or open anyway."""
    return f", {part.condition}" if part.condition is not None and part.verdict is Verdict.SATISFIED else ""


def _bounds_text(argued: Argued, point: Point) -> str:
    """The probability, and the bounds that were compared with the target."""
    settings, uncertainty = argued.run.result.settings, point.uncertainty
    asked = argued.requirement
    value = asked.with_unit(f"{asked.asked} = {probability_text(point.probability)}")
    source = settings.verdict_from
    if uncertainty is None or source == "point":
        return f"{value}, the data's uncertainty left out"
    ends = bounds_text(*point.bounds(source))
    if source == "bounds" and uncertainty.confidence_bounds is not None:
        return f"{value}, {settings.bounds_name} {ends}"
    return f"{value}, {uncertainty.interval.kind} {ends} at level {uncertainty.level:g}"


def noted(note: str, inherited: Sequence[tuple[str, Defeater]], own: Sequence[Defeater]) -> str:
    """What was found, and what defeats a goal: its own doubts, and those of goals above it, each with that goal."""
    parts = [note] if note else []
    if own:
        parts.append(f"Defeated by {some_of([f'{defeater.id}: {defeater.title}' for defeater in own], 8)}")
    by = dict.fromkeys(defeater.id for _, defeater in inherited)
    if by:
        above = ", ".join(dict.fromkeys(name for name, _ in inherited))
        parts.append(f"Defeated with {above} by {some_of(list(by), 8)}")
    return ". ".join(parts)


def _contexts(draft: Draft, argued: Argued) -> Iterator[str]:
    """How the requirement fails, and what it asks of the detector, where that was found out."""
    requirement = argued.requirement
    asked = requirement.name, requirement.planner
    for doubt in draft.sensitivities:
        if any(claim.about == argued.claim.about for claim in doubt.claims):
            yield draft.context(f"Sensitivity: {doubt.message}", "A weaker choice than that of the run: no doubt")
    for document in draft.documents:
        if document.kind == "explain" and same_sources(document, argued.run):
            for part in document.result.explanations:
                if (part.name, part.planner) == asked:
                    for line in itertools.islice(cause_lines(document.result, part), 1):
                        yield _file_context(draft, document, f"How it fails: {one_line(line)}")
        if document.kind == "require" and same_sources(document, argued.run):
            for answer in document.result.answers if document.result.requirement.name == requirement.name else ():
                if answer.planner == requirement.planner and not asks_for_recall(answer):
                    words = f"What it asks of the detector: {answer_text(document.result, answer)}"
                    yield _file_context(draft, document, words)
        if document.kind == "rate" and document.result.acceptance is None and is_rate_of(document, argued.run):
            about = document.result.requirement, document.result.planner
            if about == asked:
                yield _file_context(draft, document, f"How often it fails: {rate_text(document.result)}")


def _file_context(draft: Draft, document: Document, words: str) -> str:
    note = f"{clipped(draft.path(document))}, SHA-256 {document.sha256}"
    note += ", not verified here" if document.sha256 in draft.unverified else ""
    return draft.context(words, note, url=draft.url_of(document.sha256))


def rate_text(rate: RateResult) -> str:
    """The bounds of a rate, with their level and what they assume."""
    bounds = rate.decisive
    level = "the data's uncertainty left out" if bounds.level is None else f"at level {significant(bounds.level, 6)}"
    ends = rate_interval_text(bounds.lower, bounds.upper)
    assumes = f"; assumes that {' and '.join(bounds.assumes)}" if bounds.assumes else ""
    return f"{ends} per hour ({bounds.source}, {level}{assumes})"


def grounds_at(draft: Draft, run: Document, requirement: RequirementResult, at: int) -> tuple[Ground, ...]:
    """What the number of a scenario of a requirement rests on, each ground once.

    What holds whatever the detector predicts rests on nothing but the computation. What holds however reports depend
    on each other rests on `FREE_ASSUMES`, which no data test: a verdict from it is conditional.
    """
    point, claim = requirement.points[at], Claim(run.sha256, requirement.name, requirement.planner)
    grounds = [*draft.verification(run), *draft.residual(claim), *draft.residual(claim.at(at))]
    if point.whatever_predicted is None:
        grounds += [*memory_grounds(draft, run, point), *statistics_grounds(draft, run, point)]
    return tuple(dict.fromkeys(grounds))


def grounds_of(draft: Draft) -> list[str]:
    """Identifiers of all grounds of the runs, whatever their verdicts."""
    requirements = ((run, requirement) for run in draft.runs for requirement in run.result.requirements)
    points = ((run, one, at) for run, one in requirements for at in range(len(one.points)))
    return list(dict.fromkeys(ground.id for point in points for ground in grounds_at(draft, *point)))


def memory_grounds(draft: Draft, run: Document, point: Point) -> Iterator[Ground]:
    """That detection errors depend on the past as the chain has it, by the test of the classes that it draws."""
    result: RunResult = run.result
    if point.decided_free is not None:
        yield draft.ground(("free",), FREE_ASSUMES, f"Not tested; {FREE_KNOWN}")
        return
    if point.basis == "any_dependence" or result.settings.tier == "rate_box":
        return
    tested = channel_test(result.channel.classes, point.draws)
    told, against, shown = "; ".join(channel_lines(result.channel)), [], ""
    grade, status = Grade.TESTED, "Tested by permutation of frames: not contradicted"
    if tested.test == "untested":
        grade, status, shown = Grade.UNTESTED, "Not tested on these data", "memory"
    elif tested.test == "contradicted":
        against = draft.of_kind(run, "dependent_frames")
        named = f" ({', '.join(doubt.id for doubt in against)})" if against else ""
        grade, status = Grade.UNTESTED, f"Contradicted by the data{named}"
    note = f"{status}{f': {told}' if told else ''}"
    key = ("memory", str(result.channel.contexts), str(tested.test), told)
    yield draft.ground(key, memory_text(result.channel), note, grade, against, shown)


def statistics_grounds(draft: Draft, run: Document, point: Point) -> Iterator[Ground]:
    """What the bounds, or the interval, that decide a verdict assume of the data."""
    settings, sure = run.result.settings, point.uncertainty
    basis, assumed = settings.bounds, settings.assumption("interval")
    unbounded = sure is not None and sure.confidence_bounds is None and settings.verdict_from == "bounds"
    if assumed is not None and (unbounded or settings.verdict_from == "interval"):
        yield draft.ground(
            ("interval", assumed), f"Statistical interval: {assumed}", "Not tested", claim="statistics"
        )
    elif basis is not None:
        known = "Not tested"
        if basis.drives is not None and basis.effective_drives is not None:
            known += f"; {counted(basis.drives, 'drive')}, effectively {significant(basis.effective_drives)}"
        key = ("bounds", basis.name, basis.condition, known)
        against = draft.of_kind(run, "few_drives")
        text = f"{basis.name}: {basis.condition}"
        yield draft.ground(key, text, known, Grade.UNTESTED, against, "statistics")
