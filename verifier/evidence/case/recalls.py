"""Goals that the detector does what a requirement asks of it: measured recalls against the least ones that meet it.

A requirement that asks for nothing (no recall makes a difference, or recall 0 suffices) makes no goal.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from verifier.base.statistics import clopper_pearson
from verifier.base.words import bounds_text, counted, name_text, probability_text
from verifier.evidence.case.drafting import Draft
from verifier.evidence.case.elements import Element, Kind
from verifier.evidence.defeaters.about_data import matrices_behind, same_sources
from verifier.evidence.documents import Document
from verifier.evidence.status import Grade, Status
from verifier.perception.confusion.data_set import annotation_error, looks_at
from verifier.questions.require.require_result import Answer, CellRecall, RequireResult

LEVEL = 0.95
FOR_RECALLS = "Argument over what the requirements ask of the detector: each recall as measured, with its bounds"


class Asked(NamedTuple):
    """What one requirement asks of the detector of a run, in one answer of a document."""

    run: Document
    document: Document
    result: RequireResult
    answer: Answer
    number: int

    @property
    def cells(self) -> list[CellRecall]:
        """Those in which more than recall 0 is required."""
        return [each for each in self.answer.cells if each.required is not None and float(each.required) > 0]


def asked_recalls(runs: Sequence[Document], documents: Sequence[Document]) -> Iterator[Asked]:
    """Every answer that asks for a recall, of each run that has its inputs."""
    for document in documents:
        if document.kind == "require":
            for run in runs:
                for k, answer in enumerate(document.result.answers if same_sources(document, run) else ()):
                    if (found := Asked(run, document, document.result, answer, k)).cells:
                        yield found


def recall_goals(draft: Draft, runs: Sequence[Document], documents: Sequence[Document]) -> list[str]:
    """Their goals: supported where exact bounds of all its recalls lie above what is asked, violated where one lies
    wholly below, else open; `LEVEL` for all recalls of a goal together."""
    return [_goal(draft, asked, documents) for asked in asked_recalls(runs, documents)]


def _goal(draft: Draft, asked: Asked, documents: Sequence[Document]) -> str:
    cells, requirement = asked.cells, asked.result.requirement
    hits, items = (np.array([getattr(each.measured, name) for each in cells]) for name in ("hits", "items"))
    counts, basis = matrices_behind(asked.run, documents), asked.run.result.settings.bounds
    stated = {} if counts is None else counts.content
    error = float(annotation_error(stated)) if basis is None else basis.annotation_error
    looks = looks_at(stated) if basis is None else basis.looks
    lower, upper = clopper_pearson(hits, items, (1 - LEVEL) / 2 / len(cells) / looks)
    lower, upper = np.maximum(lower - error, 0), np.minimum(upper + error, 1)
    allowed = f", for {looks} looks" if looks > 1 else ""
    allowed += f", if at most a share of {error:g} of a column is annotated wrongly or missing" if error else ""
    least = np.array([float(each.required or 0) for each in cells])
    status = Status.SUPPORTED if np.all(lower >= least) else Status.INCONCLUSIVE
    status = Status.VIOLATED if np.any(upper < least) else status
    said = [
        f"{name_text(each.label)} in {name_text(each.bin)}: {each.measured.hits} of "
        f"{counted(each.measured.items, 'item')}, {probability_text(each.measured.recall)} {bounds_text(low, high)}"
        for each, low, high in zip(cells, lower.tolist(), upper.tolist(), strict=True)
    ]
    wanted = [f"{name_text(each.label)} in {name_text(each.bin)} at least {each.required}" for each in cells]
    where = "".join(f", {name_text(name)} = {value}" for name, value in asked.answer.constants.items())
    identifier, met = draft.name(Kind.GOAL), status is Status.SUPPORTED
    text = "Bounds of measured recalls: items are independent" + ", and annotations as right as stated" * (error > 0)
    grounds = [draft.ground(("recalls", text), text, "Not tested", claim="statistics")] if met else []
    shown_by = [each for each in (asked.document, counts) if each is not None] if met else []
    draft.put(
        Element(
            identifier,
            Kind.GOAL,
            f"The detector has the recall that {name_text(requirement.name)} asks for, planner "
            f"{name_text(asked.answer.planner)}{where}: {'; '.join(wanted)}",
            f"Measured, with exact bounds at {LEVEL:g} for all together{allowed}: {'; '.join(said)}. Least recall in "
            f"mode {asked.result.mode}, all other rates in their measured proportions",
            (*map(draft.solution, shown_by), *draft.documents(grounds)),
            tuple(each.id for each in grounds),
            undeveloped=not met,
            defeated=status is Status.VIOLATED,
            **draft.standing(status, grounds, Grade.TESTED),
            amlas="Stage 2, ML safety requirements [H]; Stage 5, G5.1",
        )
    )
    if status is Status.VIOLATED:
        draft.refute(identifier, f"measured is {'; '.join(said)}", asked.document)
    return identifier
