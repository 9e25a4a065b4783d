"""Which documents speak of the same thing: requirements with what explains them, and runs with their matrices.

Two documents speak of the same only where they say so themselves: by the SHA-256 of their inputs, the formula, the
target, the constants and, for an explanation, the very scenario and number that it explains.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from verifier.base.documents import Content, json_values
from verifier.base.numbers import number_text
from verifier.evidence.documents import Document
from verifier.questions.explain.explain_result import Explained
from verifier.questions.require.require_result import Answer
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


@dataclass(frozen=True)
class Subject:
    """One requirement under one planner, with everything the documents say of it.

    Attributes:
        id: of its section.
        document: the run or, without one, the explanation its numbers are from.
        found: its part of that document: name, planner, formula, target, verdict and maybe evidence_needed.
        points: of all scenarios; of an explanation alone only the worst.
        worst: the worst of them.
        explained: (document, explanation) of its worst scenario.
        answers: (document, answer) to what recall it asks for.
    """

    id: str
    document: Document
    found: Content
    points: tuple[Content, ...]
    worst: Content
    explained: tuple[tuple[Document, Explained], ...]
    answers: tuple[tuple[Document, Answer], ...]

    @property
    def verdict(self) -> str:
        """Its verdict over all scenarios."""
        return str(self.found["verdict"])

    @property
    def told(self) -> str:
        """Its verdict with its condition."""
        return told_verdict(self.found)

    @property
    def settings(self) -> Content:
        """Of the run it was verified in."""
        settings: Content = self.document.content["settings"]
        return settings


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
        for each in run.content["requirements"]:
            key = _key(run, each["name"], each["planner"])
            points = tuple(each["points"])
            mine = tuple(pair for pair in explained.get(key, ()) if _explains(pair[1], each))
            used |= {id(part) for _, part in mine}
            theirs = tuple(pair for pair in answers.get(key, ()) if _answers(pair[0], each))
            found.append(Subject(f"r{len(found) + 1}", run, each, points, points[each["worst"]], mine, theirs))
    for document, part in told:
        if id(part) not in used:
            key, alone = _key(document, part.name, part.planner), json_values(part)
            theirs = tuple(pair for pair in answers.get(key, ()) if _answers(pair[0], alone))
            point = alone["point"]
            name = f"r{len(found) + 1}"
            found.append(Subject(name, document, alone, (point,), point, ((document, part),), theirs))
    return tuple(found)


def disagreements(subjects: Sequence[Subject]) -> Iterator[str]:
    """Documents that name the same inputs and settings and tell another probability of the same scenario."""
    first: dict[Any, tuple[Document, Content]] = {}
    for each in subjects:
        key = _key(each.document, each.found["name"], each.found["planner"]), each.found["formula"], _choices(each)
        for point in each.points:
            scenario = json.dumps([point[name] for name in ("environment", "constants", "initial")], sort_keys=True)
            other, told = first.setdefault((key, scenario), (each.document, point))
            if abs(told["probability"] - point["probability"]) > CLOSE:
                tell, tells = (number_text(found["probability"]) for found in (told, point))
                yield (
                    f"Contradiction: of {name_text(each.found['name'])} in {scenario_text(point)}, {other.name} "
                    f"tells P = {tell} and {each.document.name} P = {tells}, from the same inputs and settings; one "
                    "is wrong."
                )


def _choices(subject: Subject) -> tuple[str, ...]:
    """What else decides a probability."""
    settings = subject.settings
    planner = settings["planners"].get(subject.found["planner"])
    return repr(planner), repr(settings["synthesised_from"]), repr(settings["set"]), repr(settings["initial"])


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


def _explains(part: Explained, found: Content) -> bool:
    """Whether an explanation is of this requirement's worst scenario."""
    if part.formula != found["formula"] or json_values(part.target) != found["target"]:
        return False
    return _same_point(json_values(part.point), found["points"][found["worst"]])


def _same_point(first: Content, second: Content) -> bool:
    same = all(first[name] == second[name] for name in ("environment", "constants", "initial"))
    return same and abs(first["probability"] - second["probability"]) <= CLOSE


def _answers(document: Document, found: Content) -> bool:
    """Whether answers are to this requirement."""
    asked, target = document.result.requirement, found["target"]
    if target is None or asked.formula != found["formula"]:
        return False
    return bool(asked.comparison == target["comparison"] and asked.probability == target["probability"])


def matrices_of(documents: Sequence[Document]) -> dict[str, Document]:
    """SHA-256 -> confusion document among the documents."""
    return {each.sha256: each for each in documents if each.kind == "confusion"}


def confusion_inputs(document: Document) -> tuple[Mapping[str, str], ...]:
    """The confusion matrices that a result was made from: name and SHA-256."""
    inputs = document.content.get("inputs", ())
    return tuple(each for each in inputs if each.get("role") == "confusion")
