"""Which documents speak of the same thing: requirements with what explains them, and runs with their matrices.

Two documents speak of the same only where they say so themselves: by the SHA-256 of their inputs, the formula, the
target, the constants and, for an explanation, the very scenario and number that it explains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from verifier.analysis.channel_test import Channel
from verifier.analysis.planning import EvidencePlan
from verifier.analysis.tipping import TippingPoints
from verifier.base.numbers import number_text
from verifier.checking.verdicts import Verdict
from verifier.evidence.documents import Document
from verifier.questions.explain.explain_result import Explained
from verifier.questions.require.require_result import Answer
from verifier.study.records import SettingsRecord
from verifier.study.results import Point, RequirementResult, RunResult, StrategyEnds, Target
from verifier.telling.grounds import told_verdict
from verifier.telling.wording import name_text, scenario_text

T = TypeVar("T")
CHOICES = (
    "constants", "where", "score_threshold", "canonical", "empty_columns", "false_alarms", "endless",
    "round_transitions",
)  # fmt: skip
"""Settings that decide what is asked of which chain."""
CLOSE = 1e-9
"""Two engines' answers to one question may differ by rounding, by no more than this."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One requirement under one planner, with everything the documents say of it.

    Attributes:
        id: of its section.
        document: the run or, without one, the explanation its numbers are from.
        name, planner, formula, target: of the requirement.
        verdict, condition: over all scenarios.
        points: of all scenarios; of an explanation alone only the worst.
        worst: the worst of them.
        settings, channel: of the run it was verified in.
        needed: what would decide it, where that is known.
        tipping: how wrong the assumptions of its bounds may be, where that is known.
        strategies: the range over all winning strategies in the worst scenario, where that was asked for.
        explained: (document, explanation) of its worst scenario.
        answers: (document, answer) to what recall it asks for.
    """

    id: str
    document: Document
    name: str
    planner: str
    formula: str
    target: Target | None
    verdict: Verdict
    condition: str | None
    points: tuple[Point, ...]
    worst: Point
    settings: SettingsRecord
    channel: Channel
    needed: EvidencePlan | None
    tipping: TippingPoints | None
    strategies: StrategyEnds | None
    explained: tuple[tuple[Document, Explained], ...]
    answers: tuple[tuple[Document, Answer], ...]

    @property
    def told(self) -> str:
        """Its verdict with its condition."""
        return told_verdict(self)

    @property
    def threshold(self) -> Fraction | None:
        """The probability that is asked for."""
        return None if self.target is None else self.target.probability

    @property
    def target_text(self) -> str:
        """The target for people: `>= 0.95`."""
        return "= ?" if self.target is None else str(self.target)


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
            theirs = tuple(pair for pair in answers.get(key, ()) if _answers(pair[0], each.formula, each.target))
            about = {name: getattr(each, name) for name in ("name", "planner", "formula", "target", "verdict")}
            found.append(
                Subject(
                    id=f"r{len(found) + 1}",
                    document=run,
                    **about,
                    condition=each.condition,
                    points=each.points,
                    worst=each.worst_point,
                    settings=result.settings,
                    channel=result.channel,
                    needed=each.evidence_needed,
                    tipping=each.tipping_points,
                    strategies=None if each.strategies is None else each.strategies[each.worst],
                    explained=mine,
                    answers=theirs,
                )
            )
    for document, part in told:
        if id(part) not in used:
            found.append(_explained_alone(f"r{len(found) + 1}", document, part, answers))
    return tuple(found)


def _explained_alone(
    identity: str, document: Document, part: Explained, answers: Mapping[Any, Sequence[tuple[Document, Answer]]]
) -> Subject:
    """A requirement that only an explanation speaks of."""
    asked = answers.get(_key(document, part.name, part.planner), ())
    return Subject(
        id=identity,
        document=document,
        name=part.name,
        planner=part.planner,
        formula=part.formula,
        target=part.target,
        verdict=part.verdict,
        condition=part.condition,
        points=(part.point,),
        worst=part.point,
        settings=document.result.settings,
        channel=document.result.channel,
        needed=part.evidence_needed,
        tipping=part.tipping_points,
        strategies=None,
        explained=((document, part),),
        answers=tuple(pair for pair in asked if _answers(pair[0], part.formula, part.target)),
    )


def disagreements(subjects: Sequence[Subject]) -> Iterator[str]:
    """Documents that name the same inputs and settings and tell another probability of the same scenario."""
    first: dict[Any, tuple[Document, Point]] = {}
    for each in subjects:
        key = _key(each.document, each.name, each.planner), each.formula, _choices(each)
        for point in each.points:
            other, told = first.setdefault((key, point.place), (each.document, point))
            if abs(told.probability - point.probability) > CLOSE:
                tell, tells = (number_text(found.probability) for found in (told, point))
                yield (
                    f"Contradiction: of {name_text(each.name)} in {scenario_text(point)}, {other.name} "
                    f"tells P = {tell} and {each.document.name} P = {tells}, from the same inputs and settings; one "
                    "is wrong."
                )


def _choices(subject: Subject) -> tuple[object, ...]:
    """What else decides a probability."""
    settings = subject.settings
    return settings.planners.get(subject.planner), settings.synthesised_from, repr(settings.set_), settings.initial


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
    roles = ("spec", "model", "confusion")
    inputs = document.content["inputs"]
    hashes = tuple(sorted((each["role"], each["sha256"]) for each in inputs if each["role"] in roles))
    settings = document.content["settings"]
    return hashes, name, planner, tuple(repr(settings.get(choice)) for choice in CHOICES)


def _explains(part: Explained, found: RequirementResult) -> bool:
    """Whether an explanation is of this requirement's worst scenario."""
    told, worst = part.point, found.worst_point
    same = (part.formula, part.target, told.place) == (found.formula, found.target, worst.place)
    return same and abs(told.probability - worst.probability) <= CLOSE


def _answers(document: Document, formula: str, target: Target | None) -> bool:
    """Whether answers are to this requirement."""
    asked = document.result.requirement
    return target is not None and (asked.formula, asked.target) == (formula, target)


def matrices_of(documents: Sequence[Document]) -> dict[str, Document]:
    """SHA-256 -> confusion document among the documents."""
    return {each.sha256: each for each in documents if each.kind == "confusion"}


def confusion_inputs(document: Document) -> tuple[Mapping[str, str], ...]:
    """The confusion matrices that a result was made from: name and SHA-256."""
    inputs = document.content.get("inputs", ())
    return tuple(each for each in inputs if each.get("role") == "confusion")
