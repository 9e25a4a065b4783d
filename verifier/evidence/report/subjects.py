"""Which documents speak of the same thing: requirements with what explains them, and runs with their matrices.

Two documents speak of the same only where they say so themselves: by the SHA-256 of their inputs, the formula, the
target, the constants and, for an explanation, the very scenario and number that it explains.

The confusion matrices: what they are, who used them, recall by distance, every matrix with counts and rates.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from verifier.analysis.channel_test import Channel
from verifier.base.arrays import grouped
from verifier.base.numbers import number_text
from verifier.base.words import counted, listed
from verifier.evidence.documents import Document, of_kind
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.data_set import NAMES, DataSetRecord, annotations_told, record_of
from verifier.perception.confusion.document_reader import DocumentReader
from verifier.questions.explain.explain_result import Explained
from verifier.questions.require.require_result import Answer
from verifier.study.points import Point
from verifier.study.records import SettingsRecord
from verifier.study.results import InputRole, RequirementResult
from verifier.telling.blocks import Block, Fold, Paragraph, Section, Table, facts, name_text
from verifier.telling.confusion import matrix_blocks
from verifier.telling.grounds import scenario_text, told_verdict

T = TypeVar("T")
CHOICES = (
    "constants", "where", "score_threshold", "canonical", "empty_columns", "false_positives", "endless",
    "round_transitions",
)  # fmt: skip
"""Settings that decide what is asked of which chain."""
_AS_FOUND = ("name", "planner", "formula", "target", "additional_data", "tipping_points")
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
    told = [(document, part) for document in of_kind(documents, "explain") for part in document.result.explanations]
    asked = [(document, answer) for document in of_kind(documents, "require") for answer in document.result.answers]
    found: list[tuple[Document, RequirementResult, tuple[tuple[Document, Explained], ...]]] = []
    explained = _by_requirement((*pair, pair[1].name, pair[1].planner) for pair in told)
    answers = _by_requirement((*pair, pair[0].result.requirement.name, pair[1].planner) for pair in asked)
    for run in of_kind(documents, "run"):
        for requirement in run.result.requirements:
            known = explained.get(_key(run, requirement.name, requirement.planner), ())
            found.append((run, requirement, tuple(pair for pair in known if _explains(pair[1], requirement))))
    used = {id(part) for _, _, mine in found for _, part in mine}
    found += [(document, _as_found(part), ((document, part),)) for document, part in told if id(part) not in used]
    subjects = []
    for number, (document, one, mine) in enumerate(found, 1):
        result, asking = document.result, answers.get(_key(document, one.name, one.planner), ())
        theirs = tuple(pair for pair in asking if _answers(pair[0], one))
        subjects.append(Subject(f"r{number}", document, one, result.settings, result.channel, mine, theirs))
    return tuple(subjects)


def _as_found(part: Explained) -> RequirementResult:
    """What an explanation says of its requirement: of all scenarios the worst, whose verdict is that of all."""
    same = {name: getattr(part, name) for name in _AS_FOUND}
    return RequirementResult(points=(part.point,), **same)


def disagreements(subjects: Sequence[Subject]) -> Iterator[str]:
    """Documents that name the same inputs and settings and tell another probability of the same scenario."""
    first: dict[Any, tuple[Document, Point]] = {}
    for subject in subjects:
        one = subject.result
        settings = subject.settings  # what else decides a probability
        chosen = settings.synthesised_from, repr(settings.set_), settings.initial
        key = _key(subject.document, one.name, one.planner), one.formula, settings.planners.get(one.planner), chosen
        for point in one.points:
            other, told = first.setdefault((key, point.place), (subject.document, point))
            if abs(told.probability - point.probability) > CLOSE:
                tell, tells = (number_text(either.probability) for either in (told, point))
                yield (
                    f"Contradiction: of {name_text(one.name)} in {scenario_text(point)}, {other.name} tells P = "
                    f"{tell} and {subject.document.name} P = {tells}, from the same inputs and settings; one is "
                    "wrong."
                )


def unattached_answers(
    documents: Sequence[Document], subjects: Sequence[Subject]
) -> Iterator[tuple[Document, Answer]]:
    """Answers of `verify require` to requirements that no other document verifies."""
    used = {id(answer) for subject in subjects for _, answer in subject.answers}
    for document in of_kind(documents, "require"):
        yield from ((document, answer) for answer in document.result.answers if id(answer) not in used)


def _by_requirement(parts: Iterable[tuple[Document, T, str, str]]) -> dict[Any, list[tuple[Document, T]]]:
    """Parts of documents, by inputs, requirement, planner and choices; each comes with the names of the two."""
    return grouped((_key(document, name, planner), (document, part)) for document, part, name, planner in parts)


def _key(document: Document, name: str, planner: str) -> Any:
    roles = get_args(InputRole)
    hashes = tuple(sorted((file.role, file.sha256) for file in document.result.inputs if file.role in roles))
    settings = document.content["settings"]
    return hashes, name, planner, tuple(repr(settings.get(choice)) for choice in CHOICES)


def _explains(part: Explained, result: RequirementResult) -> bool:
    """Whether an explanation is of this requirement's worst scenario."""
    told, worst = part.point, result.worst_point
    same = (part.formula, part.target, told.place) == (result.formula, result.target, worst.place)
    return same and abs(told.probability - worst.probability) <= CLOSE


def _answers(document: Document, result: RequirementResult) -> bool:
    """Whether answers are to this requirement."""
    asked = document.result.requirement
    return (asked.formula, asked.target) == (result.formula, result.target)


def matrices_of(documents: Sequence[Document]) -> dict[str, Document]:
    """SHA-256 -> confusion document among the documents."""
    return {document.sha256: document for document in of_kind(documents, "confusion")}


def confusion_inputs(document: Document) -> tuple[Mapping[str, str], ...]:
    """The confusion matrices that a result was made from: name and SHA-256."""
    inputs = document.content.get("inputs", ())
    return tuple(entry for entry in inputs if entry.get("role") == "confusion")


MOST_OPEN = 4
"""Matrices of a document that are open; the others are shown on request."""
MOST_CELLS = 20_000
"""Cells of a document's matrices that are written out."""


def matrices_section(documents: Sequence[Document]) -> Section:
    """One section per confusion document, and which matrices are not at hand."""
    given = matrices_of(documents)
    used: dict[str, list[Document]] = {}
    missing: dict[str, list[str]] = {}
    for document in documents:
        for source in confusion_inputs(document):
            if source["sha256"] in given:
                used.setdefault(source["sha256"], []).append(document)
            else:
                told = f"{name_text(source['name'])} (SHA-256 {source['sha256']})"
                missing.setdefault(told, []).append(document.name)
    blocks: list[Block] = [
        Paragraph(f"Not among the documents: {source}, used by {listed(list(dict.fromkeys(names)))}.", "note")
        for source, names in missing.items()
    ]
    if not given:
        blocks.insert(0, Paragraph("No confusion matrices were given to this report."))
    sections = tuple(
        _document_section(document, used.get(digest, []), f"m{k}")
        for k, (digest, document) in enumerate(given.items(), start=1)
    )
    return Section("Matrices", tuple(blocks), sections, "matrices")


def _document_section(document: Document, users: list[Document], anchor: str) -> Section:
    whole = DocumentReader(document.name).counts(dict(document.content))
    blocks: list[Block] = [_about(document, whole, users)]
    threshold = None
    if whole.thresholds is not None:
        chosen = (user.content["settings"].get("score_threshold") for user in users)  # the first where none says
        threshold = next((value for value in chosen if value in whole.thresholds), whole.thresholds[0])
        family = f"A family over {len(whole.thresholds)} score thresholds; shown for {threshold:g}."
        blocks.append(Paragraph(family, "note"))
    shown = max(1, min(whole.bins.count, MOST_CELLS // max(1, len(whole.labels) ** 2)))
    recall, *tables = matrix_blocks(whole if threshold is None else whole.member(threshold), shown)
    blocks.append(recall)
    said = "In each matrix the rows are reports and the columns true labels; a column's rates sum to 1."
    blocks.append(Paragraph(said))
    blocks += tables[:MOST_OPEN]
    if tables[MOST_OPEN:]:
        blocks.append(Fold(f"{len(tables) - MOST_OPEN} more matrices", tuple(tables[MOST_OPEN:])))
    if shown < whole.bins.count:
        blocks.append(Paragraph(f"{whole.bins.count - shown} more matrices are in {document.name}.", "note"))
    title = name_text(whole.title or document.name)
    return Section(title, tuple(blocks), id=anchor)


def _about(document: Document, whole: ConfusionCounts, users: Sequence[Document]) -> Table:
    content = document.content
    items = "one item per frame" if whole.labelling == "proposition" else f"one item per {whole.labelling}"
    items = items.replace("per class", "per object")
    by = listed(list(dict.fromkeys(user.name for user in users))) if users else "no result among the documents"
    sequences = content.get("sequences")
    return facts(
        "About these matrices",
        ("File", document.name),
        ("SHA-256", document.sha256),
        ("Used by", by),
        ("Labelling", f"{whole.labelling}: {items}"),
        ("Distance", plain(content["distance"])) if "distance" in content else None,
        ("Matching", plain(content["matching"])) if "matching" in content else ("Matching", "not stated"),
        ("Unmatched detections", plain(content.get("false_positives", "not stated"))),
        ("Drives counted apart", "not stated" if sequences is None else str(len(sequences))),
        ("Source", plain(content["source"])) if "source" in content else ("Source", "not stated"),
        ("Notes", plain(content["notes"])) if content.get("notes") else None,
        None if (told := annotations_told(whole)) is None else ("Annotations", plain(told)),
        *_of_data_set(record_of(whole.metadata)),
    )


def _of_data_set(record: DataSetRecord | None) -> Iterator[tuple[str, str]]:
    """What is stated of the data, and what verdicts were drawn from them."""
    if record is None:
        return
    yield from ((f"Data: {name}", record.stated.get(name, "not stated")) for name in NAMES)
    checks = [f"{requirement.text} ({requirement.check})" for requirement in record.requirements]
    yield "Data: requirements and their checks", "; ".join(checks) or "not stated"
    ends = record.error_rate or ()
    yield "Data: annotation error rate", " to ".join(map(number_text, ends)) or "not stated"
    far = [f"{name}: {number_text(distance)}" for name, distance in record.distances.items()]
    yield "Data: distance of its shares from those of the domain", "; ".join(far) or "not stated"
    lists = [f"{counted(number, 'frame')}, SHA-256 {name}" for name, number in record.frames.items()]
    yield "Data: list of the frames that were counted", "; ".join(lists) or "not stated"
    uses = [f"{use.title}: {use.verdict} ({use.day})" for use in record.uses]
    yield "Data: verdicts drawn from it", "; ".join(uses) or "none recorded"


def plain(value: Any) -> str:
    """JSON values as a person reads them: `unit: m; of: true object`."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "; ".join(f"{name_text(key)}: {plain(inner)}" for key, inner in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(plain(inner) for inner in value) or "none"
    return "none" if value is None else json.dumps(value)
