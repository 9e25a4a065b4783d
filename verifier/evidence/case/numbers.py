"""The goals about the numbers of a run for which there is evidence: what is computed, its sample, its looks, memory.

Where there is no evidence, what numbers rest on are assumptions of the scenarios; a goal here never makes a claim
weaker, and stands so that what is shown is argued and not only assumed.
"""

from collections.abc import Iterator, Sequence

from verifier.base.words import counted, name_text
from verifier.evidence.case.drafting import Draft
from verifier.evidence.case.elements import Element, Kind
from verifier.evidence.case.requirements import memory_grounds, statistics_grounds
from verifier.evidence.defeaters.about_data import matrices_behind
from verifier.evidence.defeaters.finding import UNCONFIRMED
from verifier.evidence.defeaters.values import Claim
from verifier.evidence.documents import Document
from verifier.evidence.status import Grade, Ground, Status
from verifier.perception.confusion.data_set import looks_at
from verifier.study.points import Point
from verifier.telling.grounds import looks_text

FOR_NUMBERS = (
    "Argument over what the numbers rest on, as far as there is evidence: computation, sample, looks, memory"
)


def number_goals(draft: Draft, runs: Sequence[Document], documents: Sequence[Document]) -> list[str]:
    """Their goals, each supported."""
    return [goal for run in runs if not draft.verification(run) for goal in _goals(draft, run, documents)]


def _goals(draft: Draft, run: Document, documents: Sequence[Document]) -> Iterator[str]:
    about, settings = name_text(draft.path(run)), run.result.settings
    points: list[tuple[Claim, Point]] = [
        (Claim(run.sha256, each.name, each.planner, at), point)
        for each in run.result.requirements
        if each.target is not None
        for at, point in enumerate(each.points)
    ]
    paths = tuple(dict.fromkeys(path for claim, _ in points for path in draft.proven.get(claim, ())))
    if paths:
        proven = sum(claim in draft.proven for claim, _ in points)
        alone = any(each.endswith(UNCONFIRMED) for each in run.result.remarks)
        whole = proven == len(points)
        text = f"Given the region of the rates, every probability of {about} lies in its bounds"
        note = (
            f"{proven} of {len(points)} scenarios proven by certificates{'' if alone else '; all by a second engine'}"
        )
        grade = Grade.PROVEN if whole else Grade.TESTED if alone else Grade.RECOMPUTED
        yield _goal(draft, text, note, (draft.certificates(paths, "certificates/*"), draft.solution(run)), (), grade)
    counts = matrices_behind(run, documents)
    basis = settings.bounds
    resting = [point for _, point in points if point.whatever_predicted is None]
    sample = _holding(ground for point in resting for ground in statistics_grounds(draft, run, point))
    if basis is not None and sample and counts is not None:
        text = f"The region of the rates in {about} holds those of the detector: {basis.name}"
        yield _goal(draft, text, basis.condition, (draft.solution(counts),), sample, Grade.TESTED)
    used = 0 if counts is None else looks_at(counts.content) - 1
    every = basis is not None and (basis.every_look or basis.tier == "anytime")
    if basis is not None and (every or 0 < used < basis.looks):
        what = (
            "every look at the data" if every else f"the {counted(used, 'verdict')} that the record of the data names"
        )
        solutions = tuple(draft.solution(each) for each in (run, *([] if every else [counts])) if each is not None)
        text, note = f"The level of {about} allows for {what}", f"Bounds hold {looks_text(basis)}"
        yield _goal(draft, text, note, solutions, (), Grade.RECOMPUTED)
    memory = _holding(ground for point in resting for ground in memory_grounds(draft, run, point))
    if memory:
        text = f"Dependence of successive reports does not make the bounds of {about} optimistic"
        yield _goal(draft, text, "", (draft.solution(run),), memory, Grade.TESTED)


def _holding(grounds: Iterator[Ground]) -> tuple[Ground, ...]:
    """All of them, if all hold; none where there are none, or one does not."""
    found = tuple(dict.fromkeys(grounds))
    return found if all(each.holds for each in found) else ()


def _goal(
    draft: Draft, text: str, note: str, solutions: tuple[str, ...], grounds: tuple[Ground, ...], grade: Grade
) -> str:
    identifier, contexts = draft.name(Kind.GOAL), tuple(each.id for each in grounds)
    supports = (*solutions, *draft.documents(grounds))
    stands = draft.standing(Status.SUPPORTED, grounds, grade)
    return draft.put(Element(identifier, Kind.GOAL, text, note, supports, contexts, **stands))
