"""What the numbers of a scenario assume: a memory of the detector, the data's independence, that somebody made them
again; each with what is known of it. A claim stands no better than what it rests on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from verifier.analysis.channel_test import channel_test
from verifier.base.words import counted
from verifier.evidence.case.drafting import Draft
from verifier.evidence.defeaters.values import Claim
from verifier.evidence.documents import Document
from verifier.evidence.status import Grade, Ground
from verifier.study.points import Point
from verifier.study.results import RequirementResult, RunResult
from verifier.telling.grounds import FREE_ASSUMES, FREE_KNOWN, channel_lines


def grounds_at(draft: Draft, run: Document, each: RequirementResult, at: int) -> tuple[Ground, ...]:
    """What the number of a scenario of a requirement rests on, each ground once.

    What holds whatever the detector predicts rests on nothing but the computation. What holds however reports depend
    on each other rests on `FREE_ASSUMES`, which no data test: a verdict from it is conditional.
    """
    point, claim = each.points[at], Claim(run.sha256, each.name, each.planner)
    found = [*draft.verification(run), *draft.residual(claim), *draft.residual(replace(claim, point=at))]
    if point.whatever_predicted is None:
        found += [*_memory(draft, run, point), *_statistics(draft, run, point)]
    return tuple(dict.fromkeys(found))


def grounds_of(draft: Draft, runs: Sequence[Document]) -> list[str]:
    """Identifiers of all grounds of the runs, whatever their verdicts."""
    found = dict[str, None]()
    for run in runs:
        each: RequirementResult
        for each in run.result.requirements:
            for at in range(len(each.points)):
                found |= dict.fromkeys(ground.id for ground in grounds_at(draft, run, each, at))
    return list(found)


def _memory(draft: Draft, run: Document, point: Point) -> Iterator[Ground]:
    """That detection errors depend on the past as the chain has it, by the test of the classes that it draws."""
    result: RunResult = run.result
    if point.decided_free is not None:
        yield draft.ground(("free",), FREE_ASSUMES, f"Not tested; {FREE_KNOWN}")
        return
    if point.basis == "any_dependence" or result.settings.tier == "rate_box":
        return
    contexts, tested = result.channel.contexts, channel_test(result.channel.classes, point.draws)
    text = f"Detection errors depend on the past through {contexts} of the object only"
    if contexts is None:
        text = "Detection errors are independent between time steps and between objects (memoryless detector)"
    told, against, shown = "; ".join(channel_lines(result.channel)), [], ""
    grade, status = Grade.TESTED, "Tested by permutation of frames: not contradicted"
    if tested.test == "untested":
        grade, status, shown = Grade.UNTESTED, "Not tested on these data", "memory"
    elif tested.test == "contradicted":
        against = draft.of_kind(run, "dependent_frames")
        named = f" ({', '.join(doubt.id for doubt in against)})" if against else ""
        grade, status = Grade.UNTESTED, f"Contradicted by the data{named}"
    note = f"{status}{f': {told}' if told else ''}"
    yield draft.ground(("memory", str(contexts), str(tested.test), told), text, note, grade, against, shown)


def _statistics(draft: Draft, run: Document, point: Point) -> Iterator[Ground]:
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
            known += f"; {counted(basis.drives, 'drive')}, effectively {basis.effective_drives:.3g}"
        key = ("bounds", basis.name, basis.condition, known)
        against = draft.of_kind(run, "few_drives")
        text = f"{basis.name}: {basis.condition}"
        yield draft.ground(key, text, known, Grade.UNTESTED, against, "statistics")
