"""The goals about the numbers of a run for which there is evidence: what is computed, its sample, its looks, memory.

Where there is no evidence, what numbers rest on are assumptions of the scenarios; a goal here never makes a claim
weaker, and stands so that what is shown is argued and not only assumed.

Goals that the detector does what a requirement asks of it: measured recalls against the least ones that meet it.

A requirement that asks for nothing (no recall makes a difference, or recall 0 suffices) makes no goal.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from verifier.base.statistics import clopper_pearson
from verifier.base.words import bounds_text, clipped, counted, probability_text
from verifier.evidence.case.drafting import Draft
from verifier.evidence.case.elements import Kind
from verifier.evidence.case.requirements import memory_grounds, statistics_grounds
from verifier.evidence.defeaters.about_data import matrices_behind, same_sources
from verifier.evidence.defeaters.finding import UNCONFIRMED
from verifier.evidence.defeaters.values import claimed
from verifier.evidence.documents import Document, of_kind
from verifier.evidence.status import Grade, Ground, Status
from verifier.perception.confusion.data_set import annotation_error, looks_at
from verifier.questions.require.require_result import Answer, CellRecall, RequireResult
from verifier.telling.grounds import looks_text

FOR_NUMBERS = (
    "Argument over what the numbers rest on, as far as there is evidence: computation, sample, looks, memory"
)


def number_goals(draft: Draft) -> list[str]:
    """Their goals, each supported."""
    return [goal for run in draft.runs if not draft.verification(run) for goal in _goals(draft, run)]


def _goals(draft: Draft, run: Document) -> Iterator[str]:
    about, settings = clipped(draft.path(run)), run.result.settings
    points = [(claim.at(at), point) for claim, one in claimed(run) for at, point in enumerate(one.points)]
    paths = tuple(dict.fromkeys(path for claim, _ in points for path in draft.proven.get(claim, ())))
    if paths:
        proven = sum(claim in draft.proven for claim, _ in points)
        alone = any(remark.endswith(UNCONFIRMED) for remark in run.result.remarks)
        whole = proven == len(points)
        text = f"Given the region of the rates, every probability of {about} lies in its bounds"
        note = f"{proven} of {len(points)} scenarios proven by certificates"
        note += "" if alone else "; all by a second engine"
        grade = Grade.PROVEN if whole else Grade.TESTED if alone else Grade.RECOMPUTED
        yield _goal(draft, text, note, (draft.certificates(paths, "certificates/*"), draft.solution(run)), (), grade)
    counts = matrices_behind(run, draft.documents)
    basis = settings.bounds
    resting = [point for _, point in points if point.whatever_predicted is None]
    sample = _holding(ground for point in resting for ground in statistics_grounds(draft, run, point))
    if basis is not None and sample and counts is not None:
        text = f"The region of the rates in {about} holds those of the detector: {basis.name}"
        yield _goal(draft, text, basis.condition, (draft.solution(counts),), sample, Grade.TESTED)
    used = 0 if counts is None else looks_at(counts.content) - 1
    every = basis is not None and (basis.every_look or basis.tier == "anytime")
    if basis is not None and (every or 0 < used < basis.looks):
        what = f"the {counted(used, 'verdict')} that the record of the data names"
        what = "every look at the data" if every else what
        shown_by = (run,) if every or counts is None else (run, counts)
        solutions = tuple(map(draft.solution, shown_by))
        text, note = f"The level of {about} allows for {what}", f"Bounds hold {looks_text(basis)}"
        yield _goal(draft, text, note, solutions, (), Grade.RECOMPUTED)
    memory = _holding(ground for point in resting for ground in memory_grounds(draft, run, point))
    if memory:
        text = f"Dependence of successive reports does not make the bounds of {about} optimistic"
        yield _goal(draft, text, "", (draft.solution(run),), memory, Grade.TESTED)


def _holding(grounds: Iterator[Ground]) -> tuple[Ground, ...]:
    """All of them, if all hold; none where there are none, or one does not."""
    distinct = tuple(dict.fromkeys(grounds))
    return distinct if all(ground.holds for ground in distinct) else ()


def _goal(
    draft: Draft, text: str, note: str, solutions: tuple[str, ...], grounds: tuple[Ground, ...], grade: Grade
) -> str:
    identifier, contexts = draft.name(Kind.GOAL), [ground.id for ground in grounds]
    stands = draft.standing(Status.SUPPORTED, grounds, grade)
    return draft.goal(identifier, text, note, (*solutions, *draft.shown_by(grounds)), contexts, **stands)


LEVEL = 0.95
FOR_RECALLS = "Argument over what the requirements ask of the detector: each recall as measured, with its bounds"


class Asked(NamedTuple):
    """What one requirement asks of the detector of a run, in one answer of a document."""

    run: Document
    document: Document
    result: RequireResult
    answer: Answer

    @property
    def cells(self) -> list[CellRecall]:
        """Those in which more than recall 0 is required."""
        return [cell for cell in self.answer.cells if cell.required is not None and float(cell.required) > 0]


def asked_recalls(runs: Sequence[Document], documents: Sequence[Document]) -> Iterator[Asked]:
    """Every answer that asks for a recall, of each run that has its inputs."""
    for document, run in itertools.product(of_kind(documents, "require"), runs):
        for answer in document.result.answers if same_sources(document, run) else ():
            if (asked := Asked(run, document, document.result, answer)).cells:
                yield asked


def recall_goals(draft: Draft) -> list[str]:
    """Their goals: supported where exact bounds of all its recalls lie above what is asked, violated where one lies
    wholly below, else open; `LEVEL` for all recalls of a goal together."""
    return [_recall_goal(draft, asked) for asked in asked_recalls(draft.runs, draft.documents)]


def _recall_goal(draft: Draft, asked: Asked) -> str:
    cells, requirement = asked.cells, asked.result.requirement
    hits, items = np.array([(cell.measured.hits, cell.measured.items) for cell in cells]).T
    counts, basis = matrices_behind(asked.run, draft.documents), asked.run.result.settings.bounds
    stated = {} if counts is None else counts.content
    error = float(annotation_error(stated)) if basis is None else basis.annotation_error
    looks = looks_at(stated) if basis is None else basis.looks
    lower, upper = clopper_pearson(hits, items, (1 - LEVEL) / 2 / len(cells) / looks)
    lower, upper = np.maximum(lower - error, 0), np.minimum(upper + error, 1)
    allowed = f", for {looks} looks" if looks > 1 else ""
    allowed += f", if at most a share of {error:g} of a column is annotated wrongly or missing" if error else ""
    least = np.array([float(cell.required or 0) for cell in cells])
    status = Status.SUPPORTED if np.all(lower >= least) else Status.INCONCLUSIVE
    status = Status.VIOLATED if np.any(upper < least) else status
    said = [
        f"{clipped(cell.label)} in {clipped(cell.bin)}: {cell.measured.hits} of "
        f"{counted(cell.measured.items, 'item')}, {probability_text(cell.measured.recall)} {bounds_text(low, high)}"
        for cell, low, high in zip(cells, lower.tolist(), upper.tolist(), strict=True)
    ]
    wanted = [f"{clipped(cell.label)} in {clipped(cell.bin)} at least {cell.required}" for cell in cells]
    where = "".join(f", {clipped(name)} = {value}" for name, value in asked.answer.constants.items())
    identifier, met = draft.name(Kind.GOAL), status is Status.SUPPORTED
    text = "Bounds of measured recalls: items are independent" + ", and annotations as right as stated" * (error > 0)
    grounds = [draft.ground(("recalls", text), text, "Not tested", claim="statistics")] if met else []
    shown_by = [document for document in (asked.document, counts) if document is not None] if met else []
    draft.goal(
        identifier,
        f"The detector has the recall that {clipped(requirement.name)} asks for, planner "
        f"{clipped(asked.answer.planner)}{where}: {'; '.join(wanted)}",
        f"Measured, with exact bounds at {LEVEL:g} for all together{allowed}: {'; '.join(said)}. Least recall in "
        f"mode {asked.result.mode}, all other rates in their measured proportions",
        (*map(draft.solution, shown_by), *draft.shown_by(grounds)),
        [ground.id for ground in grounds],
        undeveloped=not met,
        defeated=status is Status.VIOLATED,
        **draft.standing(status, grounds, Grade.TESTED),
        amlas="Stage 2, ML safety requirements [H]; Stage 5, G5.1",
    )
    if status is Status.VIOLATED:
        draft.refute(identifier, f"measured is {'; '.join(said)}", asked.document)
    return identifier
