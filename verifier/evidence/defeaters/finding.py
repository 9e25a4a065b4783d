"""All defeaters of all runs of a case, and those that follow from how a run was made (its settings, what it remarks
itself) and from a verdict itself. Each function looks at one thing and yields what it finds.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from verifier.base.errors import InputError, Place
from verifier.base.words import bounds_text, clipped, counted, probability_text, some_of
from verifier.checking.enclosure import ONE_ENGINE
from verifier.checking.verdicts import Verdict
from verifier.evidence.context import CaseContext
from verifier.evidence.defeaters import about_data
from verifier.evidence.defeaters.about_data import sources_of
from verifier.evidence.defeaters.values import (
    Claim,
    Defeater,
    Doubt,
    basis_of,
    claimed,
    claims_on,
    confirmed,
    doubt,
)
from verifier.evidence.documents import Document, of_kind
from verifier.evidence.field import IndicatorFound
from verifier.study.options import VerdictSource
from verifier.study.points import Point
from verifier.study.records import SettingsRecord
from verifier.telling.grounds import needed_text, reason_text, told_verdict, vacuity_text

ASSUMED = "rates filled in by policy"
NO_ALARMS = "so the model contains no false positives"
"""What the remarks of a run hold, and how they end, that say so."""


def by_choice(run: Document, documents: Sequence[Document]) -> Iterator[Doubt]:
    """What a run leaves out or takes for granted, by its settings or as it remarks itself."""
    settings: SettingsRecord = run.result.settings
    remarks: tuple[str, ...] = run.result.remarks
    alarms = [remark for remark in remarks if remark.endswith(NO_ALARMS)][:1]
    if settings.false_positives == "ignore":
        alarms = [f"false positives were ignored by choice, {NO_ALARMS}"]
    canonical = "the matrices of all distances were added up: "
    canonical += "the detector is assumed to be equally good at every distance"
    # Intervals and confidence bounds do not lean on rates that a policy made up for columns without items.
    assumed = [remark for remark in remarks if ASSUMED in remark] if settings.verdict_from == "point" else []
    rounded = (
        f"transition probabilities were rounded to {settings.round_transitions} decimals: rows need not sum to 1, "
        "and the values are no probabilities of the system"
    )
    endless = "the model's terminal states were left out: "
    endless += "the probabilities are of runs that never end, not of encounters"
    names = some_of([clipped(name) for name in settings.environments_left_out], 8)
    left_out = f"{clipped(run.name)} leaves out what the spec asks for: environment {names}"
    perceived = ("distance_ignored", "assumed_rates")
    for kind, messages, remedy in (
        ("no_false_positives", alarms, "matrices that count unmatched detections"),
        ("distance_ignored", [canonical] * settings.canonical, "a run without --canonical"),
        ("assumed_rates", assumed, "items in these columns, or a verdict from the confidence bounds"),
        ("rounded", [rounded] * (settings.round_transitions is not None), "a run without --round-transitions"),
        ("endless", [endless] * settings.endless, "a run without --endless"),
        ("scenarios_left_out", [left_out] * bool(names), "a run without --env"),
    ):
        for message in messages:
            told = clipped(message, 600) if message in (*alarms, *assumed) else message
            yield from doubt(kind, told, claims_on(run, documents, perceived=kind in perceived), remedy)


LESS_INDEPENDENT = "the two are less independent here"
UNCONFIRMED = "is Storm's alone, not confirmed"
"""How the remarks of a run end that say so."""


def straddles_target(run: Document) -> Iterator[Doubt]:
    """Bounds on both sides of the target."""
    source = run.result.settings.verdict_from
    for claim, requirement in claimed(run):
        points = [
            k
            for k, point in enumerate(requirement.points)
            if point.verdict is Verdict.INCONCLUSIVE and not reason_text(point.reason)
        ]
        if points:
            point = requirement.points[requirement.worst if requirement.worst in points else points[0]]
            needed = requirement.additional_data
            yield from doubt(
                "straddles_target",
                f"{clipped(claim.requirement)}: {counted(len(points), 'scenario')} undecided; in "
                f"{clipped(point.scenario)} P lies in {bounds_text(*point.bounds(source))}, which "
                f"straddles {requirement.asked_text}",
                tuple(map(claim.at, points)),
                "more data" if needed is None else f"about {needed_text(needed)}, as verify run says",
            )


def no_bounds(run: Document) -> Iterator[Doubt]:
    """Verdicts from the probability alone, or satisfied ones that the confidence bounds do not confirm."""
    if run.result.settings.verdict_from != "point":
        return
    for claim, requirement in claimed(run):
        for k, point in enumerate(requirement.points):
            if point.verdict is not Verdict.SATISFIED or confirmed(point, requirement.target):
                continue
            how = "and no bounds were computed"
            if point.uncertainty is not None:
                how = f"and the confidence bounds are {bounds_text(*point.bounds('bounds'))}"
            told = (
                f"P = {probability_text(point.probability)} alone was compared with {requirement.asked_text}, {how}"
            )
            message = f"{clipped(claim.requirement)}, {clipped(point.scenario)}: {told}"
            remedy = "a verdict from the confidence bounds (--verdict-from bounds)"
            yield from doubt("no_bounds", message, (claim.at(k),), remedy)


RULES = get_args(VerdictSource)[::-1]
"""What decides verdicts, the weakest rule first: each allows for more than the one before it."""


def is_weaker(mine: SettingsRecord, other: SettingsRecord) -> bool:
    """Whether other choices leave out what those of a run allow for: then they say nothing against its verdicts.

    | chosen                              | weaker           | a doubt: stricter, or equally defensible |
    |-------------------------------------|------------------|------------------------------------------|
    | verdict from bounds                 | interval, point  | -                                        |
    | verdict from interval               | point            | bounds                                   |
    | verdict from point                  | -                | interval, bounds                         |
    | false positives as_counted          | ignore           | background                               |
    | false positives background          | ignore           | as_counted                               |
    | false positives ignore              | -                | as_counted, background                   |
    | columns or contexts without items   | -                | every other policy                       |
    """
    rule = RULES.index(other.verdict_from) < RULES.index(mine.verdict_from)
    return rule or (other.false_positives == "ignore" and mine.false_positives != "ignore")


def find_sensitivities(documents: Sequence[Document], alternatives: Mapping[str, Document]) -> tuple[Doubt, ...]:
    """Where a weaker choice than that of a run gives another verdict: worth telling, and no doubt."""
    runs = of_kind(documents, "run")
    return tuple(doubt for run in runs for doubt in policy_sensitive(run, alternatives, weaker=True))


def policy_sensitive(run: Document, alternatives: Mapping[str, Document], *, weaker: bool = False) -> Iterator[Doubt]:
    """Scenarios with another verdict under another policy.

    Args:
        alternatives: policy in words -> the document of a run under it; of other inputs they say nothing.
        weaker: the policies that are weaker than those of the run, in place of the others.
    """
    for policy, other in alternatives.items():
        if (
            sources_of(other) != sources_of(run)
            or is_weaker(run.result.settings, other.result.settings) is not weaker
        ):
            continue
        theirs = {(requirement.name, requirement.planner): requirement for requirement in other.result.requirements}
        for claim, requirement in claimed(run):
            counterpart = theirs.get((claim.requirement, claim.planner))
            if counterpart is None:
                continue
            verdicts = {point.place: point for point in counterpart.points}
            changed = [
                (k, point, verdicts[point.place])
                for k, point in enumerate(requirement.points)
                if point.place in verdicts and verdicts[point.place].verdict is not point.verdict
            ]
            if changed:
                _, mine, yours = changed[0]
                yield from doubt(
                    "policy_sensitive",
                    f"{clipped(claim.requirement)}: under the policy '{clipped(policy)}' "
                    f"{counted(len(changed), 'scenario')} would be judged otherwise: in "
                    f"{clipped(mine.scenario)} {_judged(yours)}, not {_judged(mine)}",
                    tuple(claim.at(k) for k, _, _ in changed),
                    "a reason for the policy, or data for which it makes no difference",
                )


def _judged(point: Point) -> str:
    return f"{told_verdict(point)} (P = {probability_text(point.probability)})"


def one_engine(run: Document, documents: Sequence[Document]) -> Iterator[Doubt]:
    """Requirements for which Storm and the second engine did not work independently of each other."""
    for claim, _ in claimed(run, documents):
        for remark in run.result.remarks:
            about = remark.startswith(f"{claim.requirement}: ")
            if about and (f"{ONE_ENGINE}: " in remark or remark.endswith((LESS_INDEPENDENT, UNCONFIRMED))):
                remedy = "a formula or a model for which both engines answer on their own"
                yield from doubt("one_engine", clipped(remark, 600), (claim,), remedy)


def vacuous(run: Document, documents: Sequence[Document]) -> Iterator[Doubt]:
    """Scenarios in which the check of a requirement says nothing about the system, and that have another verdict."""
    told: dict[tuple[str, str], list[Claim]] = {}
    for claim, requirement in claimed(run, documents):
        for k, point in enumerate(requirement.points):
            text = vacuity_text(point)
            if text and point.verdict is not Verdict.VACUOUS:
                told.setdefault((claim.requirement, text), []).append(claim.at(k))
    for (name, text), claims in told.items():
        remedy = "scenarios from which the requirement can be violated and met, or another requirement"
        yield from doubt("vacuous", f"{clipped(name)}: {clipped(text, 600)}", tuple(claims), remedy)


def contradicted_in_the_field(
    run: Document, documents: Sequence[Document], field: Sequence[IndicatorFound]
) -> Iterator[Doubt]:
    """Indicators that what was counted in the field contradicts."""
    for found in field:
        if found.fired_at is not None:
            of = found.indicator
            claims = tuple(claim for claim, _ in claimed(run, documents) if claim.requirement in of.requirements)
            message = f"{clipped(of.told)}: {found.count:g} of {found.of:g} counted in the field, {found.fired_told}"
            yield from doubt("field" if of.falls == "requirement" else "field_rate", message, claims, of.action)


def find_defeaters(
    documents: Sequence[Document],
    context: CaseContext,
    alternatives: Mapping[str, Document],
    field: Sequence[IndicatorFound] = (),
) -> tuple[Defeater, ...]:
    """What speaks against the verdicts of every run among the documents.

    Args:
        documents: of the case; those of kind "run" make the claims.
        alternatives: policy in words -> the document of a run of the same inputs under that policy.
        field: what was found of indicators in the field.

    Raises:
        InputError: an alternative is not the document of a run, or of other inputs than every run of the case.
    """
    runs = of_kind(documents, "run")
    for policy, other in alternatives.items():
        if other.kind != "run" or not any(sources_of(other) == sources_of(run) for run in runs):
            said = f"the result under the policy '{policy}' is no run of the same spec, model and matrices"
            raise InputError(said, Place(other.name))
    doubts: list[Doubt] = []
    for run in runs:
        if any(claimed(run, documents)):
            doubts += [
                *about_data.stale(run, documents),
                *about_data.trained_on_tests(run, documents, context),
                *contradicted_in_the_field(run, documents, field),
                *about_data.dependent_frames(run, documents),
                *about_data.few_drives(run, documents),
                *by_choice(run, documents),
                *vacuous(run, documents),
                *one_engine(run, documents),
                *straddles_target(run),
                *about_data.thin_columns(run, documents),
                *no_bounds(run),
                *policy_sensitive(run, alternatives),
            ]
    unique = dict.fromkeys(doubt for doubt in doubts if doubt.claims)
    of = {run.sha256: run for run in runs}
    return tuple(
        Defeater(
            **vars(doubt), id=f"D{number}", basis={claim: basis_of(of[claim.run], claim) for claim in doubt.claims}
        )
        for number, doubt in enumerate(unique, start=1)
    )
