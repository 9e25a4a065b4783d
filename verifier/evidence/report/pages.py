"""The report in one function: check the documents, put together what belongs together, write it down.

The report as a flat table: a row for every verified probability, for spreadsheets and scripts.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from verifier.base.documents import fraction_text
from verifier.base.files import csv_text
from verifier.base.numbers import decimal_text
from verifier.base.words import counted
from verifier.evidence import telling
from verifier.evidence.consistency import check_documents
from verifier.evidence.documents import Document
from verifier.evidence.following.rates import RATED, alone
from verifier.evidence.report.assumptions import assumptions_section, provenance_section
from verifier.evidence.report.requirements import answers_section, requirement_section
from verifier.evidence.report.subjects import (
    Subject,
    confusion_inputs,
    matrices_section,
    subjects_of,
    unattached_answers,
)
from verifier.evidence.report.summary import About, summary_section
from verifier.study.points import Point, ProfileMean, uncertainty_columns
from verifier.study.records import SettingsRecord
from verifier.study.results import RequirementResult
from verifier.telling import robustness
from verifier.telling.blocks import Block, Page, Paragraph, Section, name_text
from verifier.telling.closedloop import curve_blocks, trade_off_blocks, trade_off_sentences
from verifier.telling.collision import collision_blocks, collision_sentence
from verifier.telling.compare import compare_blocks, compare_sentences
from verifier.telling.grounds import reason_text, told_verdict, vacuity_text
from verifier.telling.html import html_text
from verifier.telling.markdown import markdown_text
from verifier.telling.run import gate_sentences, gates_section

COLUMNS = (
    "document", "kind", "sha256", "requirement", "detector", "planner", "state", "environment", "constants",
    "initial", "probability", "lower", "upper", "exact", "second_engine", "level", "interval", "interval_lower",
    "interval_upper", "bounds_lower", "bounds_upper", "tier", "comparison", "target", "verdict",
    "condition", "basis", "reason", "vacuity", "matrices", "note", "asked", "unit",
)  # fmt: skip


def _rows(document: Document) -> Iterator[dict[str, object]]:
    result: Any = document.result
    match document.kind:
        case "run":
            for one in result.requirements:
                about = _about(one) | ({} if one.asked == "P" else {"asked": one.asked, "unit": one.unit})
                yield from (about | _point(point, result.settings) for point in one.points)
                yield from (about | _mean(mean, one, result.settings) for mean in one.means)
        case "explain":
            for one in result.explanations:
                yield _about(one) | _point(one.point, result.settings)
        case "require":
            for answer, state in itertools.product(result.answers, ("measured", "at_value", "perfect")):
                point: Point | None = getattr(answer, state)
                if point is not None:
                    row = _about(result.requirement, answer.planner) | _point(point)
                    row["state"] = state.replace("at_value", "required")
                    free = state == "perfect" or point.whatever_predicted is not None
                    yield row | ({} if free else {"condition": answer.condition or ""})
        case "compare":
            for requirement in (requirement for spec in result.specs for requirement in spec.requirements):
                for entry in requirement.entries:
                    about = _about(requirement, entry.planner) | {"detector": entry.detector}
                    yield from (about | _point(told) for told in entry.points)
        case "rate":
            told = {name: getattr(result, name) for name in ("requirement", "planner", "basis", "condition")}
            yield told | {"verdict": result.verdict.value, "reason": reason_text(result.reason)}
        case "risk":
            for hazard, risk in zip(result.hazards, result.risks, strict=True):
                told = {"requirement": hazard.requirement, "planner": hazard.planner}
                yield told | {"verdict": risk.verdict.value, "condition": risk.condition}


def _mean(mean: ProfileMean, of: RequirementResult, settings: SettingsRecord) -> dict[str, object]:
    cells = {name: getattr(mean, name) for name in ("probability", "lower", "upper")}
    cells |= {"asked": f"{of.asked} over profile", "constants": _pairs(mean.constants), "verdict": of.verdict.value}
    cells |= {} if mean.exact is None else {"exact": fraction_text(mean.exact)}
    if mean.interval is None or settings.confidence is None:
        return cells
    ends = {"interval_lower": mean.interval.lower, "interval_upper": mean.interval.upper}
    return cells | ends | {"level": settings.confidence.level, "interval": mean.interval.kind}


def _pairs(values: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


def _about(requirement: Any, planner: str | None = None) -> dict[str, object]:
    """The cells that name a requirement; `planner` where it stands elsewhere."""
    about, target = {"requirement": requirement.name, "planner": planner or requirement.planner}, requirement.target
    if target is not None:
        about |= {"comparison": target.comparison, "target": decimal_text(target.probability)}
    return about


def _point(point: Point, settings: SettingsRecord | None = None) -> dict[str, object]:
    cells: dict[str, object] = {
        name: getattr(point, name) for name in ("environment", "probability", "lower", "upper", "second_engine")
    }
    cells |= {name: _pairs(getattr(point, name)) for name in ("constants", "initial")} | {
        "exact": "" if point.exact is None else fraction_text(point.exact),
        "verdict": point.verdict.value,
        "condition": point.condition or "",
        "basis": point.basis or "",
        "reason": reason_text(point.reason, point.probability),
        "vacuity": vacuity_text(point),
    }
    sure = point.uncertainty
    if sure is None or settings is None:
        return cells
    known = {name: value for name, value in uncertainty_columns(point).items() if name in COLUMNS}
    return cells | known | {"tier": settings.tier, "interval": sure.interval.kind}


OF_REQUIREMENTS = frozenset({"run", "explain", "require", "confusion"})
"""Kinds of documents that tell of requirements and their matrices; the others have sections of their own."""
SENTENCES: Mapping[str, Callable[[Any, Document, str], Iterable[tuple[str, str]]]] = {
    "compare": lambda result, document, _: compare_sentences(result, document.name),
    "rate": lambda result, _, note: telling.rate_sentences(result, note),
    "risk": lambda result, _, note: telling.risk_sentences(result, note),
    "assess": lambda result, *_: robustness.assess_sentences(result),
    "trade_offs": lambda result, *_: ((text, "") for text in trade_off_sentences(result)),
    "collision": lambda result, *_: [(collision_sentence(result), "")],
    "triggers": lambda result, *_: [(telling.triggers_sentence(result), told_verdict(result))],
    "mutate": lambda result, *_: [(f"{counted(result.counts.written, 'mutated image')} written.", "")],
    "adr": lambda result, *_: [(robustness.rates_sentence(result), "")],
    "campaign": lambda result, *_: [robustness.campaign_sentence(result)],
}
"""What a document says in the summary, by its kind: of its result, itself, and what `alone` says of it."""
BLOCKS: Mapping[str, tuple[str, Callable[[Any], Iterable[Block]]]] = {
    "compare": ("Comparison", compare_blocks),
    "rate": ("Event rate", telling.rate_blocks),
    "risk": ("Residual risk", telling.risk_blocks),
    "triggers": ("Triggering conditions", telling.triggers_blocks),
    "adr": ("Average detection rate", robustness.adr_blocks),
    "campaign": ("Campaign", robustness.campaign_blocks),
    "collision": ("Probability of collision", collision_blocks),
    "trade_offs": ("Safety against efficiency", trade_off_blocks),
    "curves": ("Safety against efficiency", lambda result: curve_blocks(result.curves, "given curves")),
    "mutate": ("Mutated images", robustness.mutate_blocks),
}
"""Title and blocks of the section of a document that verifies no requirement of a run, by its kind."""


def html_report(documents: Sequence[Document], title: str | None = None) -> str:
    """The report as one HTML page that needs nothing else: no network, no other file, no script to be readable.

    Args:
        documents: in the order in which they are told.
        title: of the page; None for the title of the first document.

    Raises:
        InputError: no document, two with equal bytes, or parts of one that do not fit together.
    """
    return html_text(report_page(documents, title))


def markdown_report(documents: Sequence[Document], title: str | None = None) -> str:
    """The report in Markdown (GitHub's), captions for pictures; arguments and errors as `html_report`."""
    return markdown_text(report_page(documents, title))


def csv_report(documents: Sequence[Document]) -> str:
    """One row per document, requirement, planner and scenario; a document without probabilities has one row.

    Raises:
        InputError: as `html_report`.
    """
    check_documents(documents)
    rows: list[dict[str, object]] = []
    for document in _told_apart(documents):
        matrices = " ".join(source["sha256"] for source in confusion_inputs(document))
        about = {"document": document.name, "kind": document.kind, "sha256": document.sha256, "matrices": matrices}
        about["note"] = alone(document, documents)
        rows += [about | row for row in list(_rows(document)) or [{}]]
    return csv_text(rows, COLUMNS)


def report_page(documents: Sequence[Document], title: str | None = None, about: About | None = None) -> Page:
    """The report, not yet written in any format; `about` the case; other arguments and errors as `html_report`."""
    check_documents(documents)
    documents = _told_apart(documents)
    subjects = subjects_of(documents)
    others = [document for document in documents if document.kind not in OF_REQUIREMENTS]
    gated = [document for document in documents if document.kind == "run" and document.result.gates is not None]
    sentences = [pair for document in gated for pair in gate_sentences(document.result.gates, document.name)]
    notes = [alone(document, documents) for document in others]
    for document, note in zip(others, notes, strict=True):
        if document.kind in SENTENCES:
            sentences += SENTENCES[document.kind](document.result, document, note)
    sections = [summary_section(documents, subjects, sentences, about)]
    sections += _requirement_sections(subjects)
    sections += answers_section(list(unattached_answers(documents, subjects)))
    sections += [
        gates_section(document.result.gates, document.result, document.name, f"g{k}")
        for k, document in enumerate(gated, start=1)
    ]
    sections += [_other_section(*pair, f"d{k}") for k, pair in enumerate(zip(others, notes, strict=True), start=1)]
    sections += [matrices_section(documents), assumptions_section(documents), provenance_section(documents)]
    return Page(_title(documents) if title is None else title, tuple(sections))


def _other_section(document: Document, note: str, anchor: str) -> Section:
    """The section of a document that verifies no requirement of a run; `note` as `alone` has it."""
    result: Any = document.result
    if document.kind == "assess":
        return Section(f"Robustness: {document.name}", (), tuple(robustness.assess_sections(result)), anchor)
    title, blocks = BLOCKS[document.kind]
    notes = (Paragraph(note, "note"),) if note else ()
    verdict = told_verdict(result) if document.kind in RATED else ""
    return Section(f"{title}: {document.name}", (*notes, *blocks(result)), id=anchor, verdict=verdict)


def _told_apart(documents: Sequence[Document]) -> tuple[Document, ...]:
    """Files of one name from different folders get the start of their hash behind the name."""
    names = Counter(document.name for document in documents)
    return tuple(
        replace(document, name=f"{document.name} [{document.sha256[:8]}]") if names[document.name] > 1 else document
        for document in documents
    )


def _requirement_sections(subjects: Sequence[Subject]) -> Iterator[Section]:
    if not subjects:
        return
    documents = {id(subject.document) for subject in subjects}
    several = len({subject.result.planner for subject in subjects}) > 1
    sections = []
    for subject in subjects:
        heading = name_text(subject.result.name)
        if several:
            heading += f", planner {name_text(subject.result.planner)}"
        if len(documents) > 1:
            heading += f" ({subject.document.name})"
        sections.append(requirement_section(subject, heading))
    yield Section("Requirements", (), tuple(sections), "requirements")


def _title(documents: Sequence[Document]) -> str:
    titles = list(dict.fromkeys(str(text) for one in documents if (text := one.content.get("title"))))
    if not titles:
        return f"Report on {counted(len(documents), 'document')}"
    return name_text(titles[0]) + (f" and {len(titles) - 1} more" if len(titles) > 1 else "")
