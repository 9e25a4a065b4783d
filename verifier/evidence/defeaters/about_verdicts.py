"""Doubts about a verdict itself. Each function looks at one thing and yields what it finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from verifier.base.words import bounds_text, counted, name_text, probability_text
from verifier.checking.values import ONE_ENGINE
from verifier.checking.verdicts import Verdict
from verifier.evidence.defeaters.values import Claim, Doubt, claimed, confirmed, doubt, requirements_with_targets
from verifier.evidence.documents import Document
from verifier.study.points import Point
from verifier.telling.grounds import needed_text, reason_text, told_verdict, vacuity_text

LESS_INDEPENDENT = "the two are less independent here"
UNCONFIRMED = "is Storm's alone, not confirmed"
"""How the remarks of a run end that say so."""


def straddles_target(run: Document) -> Iterator[Doubt]:
    """Bounds on both sides of the target."""
    source = run.result.settings.verdict_from
    for claim, each in requirements_with_targets(run):
        points = [
            k
            for k, point in enumerate(each.points)
            if point.verdict is Verdict.INCONCLUSIVE and not reason_text(point.reason)
        ]
        if points:
            point = each.points[each.worst if each.worst in points else points[0]]
            needed = each.additional_data
            yield from doubt(
                "straddles_target",
                f"{name_text(claim.requirement)}: {counted(len(points), 'scenario')} undecided; in "
                f"{name_text(point.scenario)} P lies in {bounds_text(*point.bounds(source))}, which "
                f"straddles {each.asked_text}",
                tuple(Claim(claim.run, claim.requirement, claim.planner, k) for k in points),
                "more data" if needed is None else f"about {needed_text(needed)}, as verify run says",
            )


def no_bounds(run: Document) -> Iterator[Doubt]:
    """Verdicts from the probability alone, or satisfied ones that the confidence bounds do not confirm."""
    if run.result.settings.verdict_from != "point":
        return
    for claim, each in requirements_with_targets(run):
        for k, point in enumerate(each.points):
            if point.verdict is not Verdict.SATISFIED or confirmed(point, each.target):
                continue
            how = "and no bounds were computed"
            if point.uncertainty is not None:
                how = f"and the confidence bounds are {bounds_text(*point.bounds('bounds'))}"
            yield from doubt(
                "no_bounds",
                f"{name_text(claim.requirement)}, {name_text(point.scenario)}: P = "
                f"{probability_text(point.probability)} alone was compared with {each.asked_text}, {how}",
                (Claim(claim.run, claim.requirement, claim.planner, k),),
                "a verdict from the confidence bounds (--verdict-from bounds)",
            )


def policy_sensitive(run: Document, alternatives: Mapping[str, Document]) -> Iterator[Doubt]:
    """Scenarios with another verdict under another policy.

    Args:
        run: the document of a run.
        alternatives: policy in words -> the document of a run of the same inputs under it.
    """
    for policy, other in alternatives.items():
        theirs = {(each.name, each.planner): each for each in other.result.requirements}
        for claim, each in requirements_with_targets(run):
            found = theirs.get((claim.requirement, claim.planner))
            if found is None:
                continue
            verdicts = {point.place: point for point in found.points}
            changed = [
                (k, point, verdicts[point.place])
                for k, point in enumerate(each.points)
                if point.place in verdicts and verdicts[point.place].verdict is not point.verdict
            ]
            if changed:
                _, mine, yours = changed[0]
                yield from doubt(
                    "policy_sensitive",
                    f"{name_text(claim.requirement)}: under the policy '{name_text(policy)}' "
                    f"{counted(len(changed), 'scenario')} would be judged otherwise: in "
                    f"{name_text(mine.scenario)} {_judged(yours)}, not {_judged(mine)}",
                    tuple(Claim(claim.run, claim.requirement, claim.planner, k) for k, _, _ in changed),
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
                yield from doubt(
                    "one_engine",
                    name_text(remark, 600),
                    (claim,),
                    "a formula or a model for which both engines answer on their own",
                )


def vacuous(run: Document, documents: Sequence[Document]) -> Iterator[Doubt]:
    """Scenarios in which the check of a requirement says nothing about the system."""
    told: dict[tuple[str, str], list[Claim]] = {}
    for claim, each in claimed(run, documents):
        for k, point in enumerate(each.points):
            text = vacuity_text(point)
            if text:
                told.setdefault((claim.requirement, text), []).append(
                    Claim(claim.run, claim.requirement, claim.planner, k)
                )
    for (name, text), claims in told.items():
        yield from doubt(
            "vacuous",
            f"{name_text(name)}: {name_text(text, 600)}",
            tuple(claims),
            "scenarios from which the requirement can be violated and met, or another requirement",
        )
