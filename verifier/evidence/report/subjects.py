"""Which documents speak of the same thing: requirements with what explains them, and runs with their matrices.

Two documents speak of the same only where they say so themselves: by the SHA-256 of their inputs, the formula, the
target, the constants and, for an explanation, the very scenario and number that it explains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from verifier.analysis.channel_test import Channel
from verifier.base.numbers import number_text
from verifier.evidence.documents import Document
from verifier.questions.explain.explain_result import Explained
from verifier.questions.require.require_result import Answer
from verifier.study.points import Point
from verifier.study.records import SettingsRecord
from verifier.study.results import InputRole, RequirementResult, RunResult
from verifier.telling.grounds import told_verdict
from verifier.telling.wording import name_text, scenario_text

T = TypeVar("T")
CHOICES = (
    "constants", "where", "score_threshold", "canonical", "empty_columns", "false_positives", "endless",
    "round_transitions",
)  # fmt: skip
"""Settings that decide what is asked of which chain."""
CLOSE = 1e-9
"""Two engines' answers to one question may differ by rounding, by no more than this."""


@dataclass(frozen=True)
class Subject:
    """One requirement under one planner, with everything the documents say of it.

    Attributes:
        id: of its section.
        document: the run or, without one, the explanation its numbers are from.
        result: over all scenarios; of an explanation alone it has only the worst one.
        settings, channel: of the run it was verified in.
        explained: (document, explanation) of its worst scenario.
        answers: (document, answer) to what recall it asks for.
    """

    id: str
    document: Document
    result: RequirementResult
    settings: SettingsRecord
    channel: Channel
    explained: tuple[tuple[Document, Explained], ...]
    answers: tuple[tuple[Document, Answer], ...]

    @property
    def told(self) -> str:
        """Its verdict with its condition."""
        return told_verdict(self.result)


def subjects_of(documents: Sequence[Document]) -> tuple[Subject, ...]:
    """Every requirement of every run, then those that only explanations speak of, in the order of the documents."""
    runs = [each for each in documents if each.kind == "run"]
    told = [(each, part) for each in documents if each.kind == "explain" for part in each.result.explanations]
    asked = [(each, answer) for each in documents if each.kind == "require" for answer in each.result.answers]
    found: list[Subject] = []
    used: set[int] = set()
    explained = _by_requirement((*pair, pair[1].name, pair[1].planner) for pair in told)
    answers = _by_requirement((*pair, pair[0].result.requirement.name, pair[1].planner) for pair in asked)
    for run in runs:
        result: RunResult = run.result
        for each in result.requirements:
            key = _key(run, each.name, each.planner)
            mine = tuple(pair for pair in explained.get(key, ()) if _explains(pair[1], each))
            used |= {id(part) for _, part in mine}
            theirs = tuple(pair for pair in answers.get(key, ()) if _answers(pair[0], each))
            name = f"r{len(found) + 1}"
            found.append(Subject(name, run, each, result.settings, result.channel, mine, theirs))
    for document, part in told:
        if id(part) not in used:
            one, result = _as_found(part), document.result
            key = _key(document, one.name, one.planner)
            theirs = tuple(pair for pair in answers.get(key, ()) if _answers(pair[0], one))
            name = f"r{len(found) + 1}"
            found.append(Subject(name, document, one, result.settings, result.channel, ((document, part),), theirs))
    return tuple(found)


def _as_found(part: Explained) -> RequirementResult:
    """What an explanation says of its requirement: of all scenarios the worst, whose verdict is that of all."""
    return RequirementResult(
        name=part.name,
        planner=part.planner,
        formula=part.formula,
        target=part.target,
        points=(part.point,),
        additional_data=part.additional_data,
        tipping_points=part.tipping_points,
    )


def disagreements(subjects: Sequence[Subject]) -> Iterator[str]:
    """Documents that name the same inputs and settings and tell another probability of the same scenario."""
    first: dict[Any, tuple[Document, Point]] = {}
    for each in subjects:
        one = each.result
        key = _key(each.document, one.name, one.planner), one.formula, _choices(each)
        for point in one.points:
            other, told = first.setdefault((key, point.place), (each.document, point))
            if abs(told.probability - point.probability) > CLOSE:
                tell, tells = (number_text(found.probability) for found in (told, point))
                yield (
                    f"Contradiction: of {name_text(one.name)} in {scenario_text(point)}, {other.name} "
                    f"tells P = {tell} and {each.document.name} P = {tells}, from the same inputs and settings; one "
                    "is wrong."
                )


def _choices(subject: Subject) -> tuple[object, ...]:
    """What else decides a probability."""
    settings = subject.settings
    return (
        settings.planners.get(subject.result.planner),
        settings.synthesised_from,
        repr(settings.set_),
        settings.initial,
    )


def unattached_answers(
    documents: Sequence[Document], subjects: Sequence[Subject]
) -> Iterator[tuple[Document, Answer]]:
    """Answers of `verify require` to requirements that no other document verifies."""
    used = {id(answer) for subject in subjects for _, answer in subject.answers}
    for document in documents:
        if document.kind == "require":
            yield from ((document, answer) for answer in document.result.answers if id(answer) not in used)


def _by_requirement(parts: Iterable[tuple[Document, T, str, str]]) -> dict[Any, list[tuple[Document, T]]]:
    """Parts of documents, by inputs, requirement, planner and choices; each comes with the names of the two."""
    found: dict[Any, list[tuple[Document, T]]] = {}
    for document, part, name, planner in parts:
        found.setdefault(_key(document, name, planner), []).append((document, part))
    return found


def _key(document: Document, name: str, planner: str) -> Any:
    roles = get_args(InputRole)
    inputs = document.content["inputs"]
    hashes = tuple(sorted((each["role"], each["sha256"]) for each in inputs if each["role"] in roles))
    settings = document.content["settings"]
    return hashes, name, planner, tuple(repr(settings.get(choice)) for choice in CHOICES)


def _explains(part: Explained, found: RequirementResult) -> bool:
    """Whether an explanation is of this requirement's worst scenario."""
    told, worst = part.point, found.worst_point
    same = (part.formula, part.target, told.place) == (found.formula, found.target, worst.place)
    return same and abs(told.probability - worst.probability) <= CLOSE


def _answers(document: Document, found: RequirementResult) -> bool:
    """Whether answers are to this requirement."""
    asked = document.result.requirement
    return (asked.formula, asked.target) == (found.formula, found.target)


def matrices_of(documents: Sequence[Document]) -> dict[str, Document]:
    """SHA-256 -> confusion document among the documents."""
    return {each.sha256: each for each in documents if each.kind == "confusion"}


def confusion_inputs(document: Document) -> tuple[Mapping[str, str], ...]:
    """The confusion matrices that a result was made from: name and SHA-256."""
    inputs = document.content.get("inputs", ())
    return tuple(each for each in inputs if each.get("role") == "confusion")
