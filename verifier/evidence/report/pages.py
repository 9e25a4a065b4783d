"""The report in one function: check the documents, put together what belongs together, write it down.

The report as a flat table: a row for every verified probability, for spreadsheets and scripts.
"""

import itertools
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from verifier.base.arrays import grouped
from verifier.base.documents import fraction_text
from verifier.base.files import csv_text
from verifier.base.numbers import decimal_text
from verifier.base.words import counted
from verifier.evidence.consistency import check_documents
from verifier.evidence.documents import Document
from verifier.evidence.following.rates import alone
from verifier.evidence.report.assumptions import assumptions_section
from verifier.evidence.report.requirements import answers_section, requirement_section
from verifier.evidence.report.subjects import (
    Subject,
    confusion_inputs,
    matrices_section,
    plain,
    subjects_of,
    unattached_answers,
)
from verifier.evidence.report.summary import About, summary_section
from verifier.evidence.telling import (
    rate_section,
    rate_sentences,
    risk_section,
    risk_sentences,
    triggers_section,
    triggers_sentence,
)
from verifier.study.points import Point
from verifier.study.records import SettingsRecord
from verifier.study.results import ProfileMean, RequirementResult
from verifier.telling.blocks import (
    LONGEST_NAME,
    Block,
    Fold,
    Listing,
    Page,
    Paragraph,
    Row,
    Section,
    Table,
    facts,
    name_text,
)
from verifier.telling.closedloop import curve_blocks, trade_off_blocks, trade_off_sentences
from verifier.telling.collision import collision_blocks, collision_sentence
from verifier.telling.compare import compare_section, compare_sentences
from verifier.telling.grounds import difference_text, long_names, reason_text, told_verdict, vacuity_text
from verifier.telling.html import html_text
from verifier.telling.markdown import markdown_text
from verifier.telling.robustness import (
    adr_blocks,
    assess_sections,
    assess_sentences,
    campaign_blocks,
    campaign_sentence,
    mutate_blocks,
    rates_sentence,
)
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
            yield from (
                _about(explanation) | _point(explanation.point, result.settings)
                for explanation in result.explanations
            )
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
    ends, confidence = mean.interval, settings.confidence
    cells = {name: getattr(mean, name) for name in ("probability", "lower", "upper")}
    cells |= {
        "asked": f"{of.asked} over profile",
        "constants": _pairs(mean.constants),
        "exact": "" if mean.exact is None else fraction_text(mean.exact),
        "verdict": of.verdict.value,
    }
    if ends is None or confidence is None:
        return cells
    level = {"level": confidence.level, "interval": ends.kind}
    return cells | level | {"interval_lower": ends.lower, "interval_upper": ends.upper}


def _pairs(values: Mapping[str, Any]) -> str:
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
    bounds = sure.confidence_bounds
    return cells | {
        "tier": settings.tier,
        "level": sure.level,
        "interval": sure.interval.kind,
        "interval_lower": sure.interval.lower,
        "interval_upper": sure.interval.upper,
        "bounds_lower": "" if bounds is None else bounds.lower,
        "bounds_upper": "" if bounds is None else bounds.upper,
    }


OF_REQUIREMENTS = frozenset({"run", "explain", "require", "confusion"})
"""Kinds of documents that tell of requirements and their matrices; the others have sections of their own."""
SENTENCES: Mapping[str, Callable[[Any, Document, str], Iterable[tuple[str, str]]]] = MappingProxyType(
    {
        "compare": lambda result, document, _: compare_sentences(result, document.name),
        "rate": lambda result, _, note: rate_sentences(result, note),
        "risk": lambda result, _, note: risk_sentences(result, note),
        "assess": lambda result, *_: assess_sentences(result),
        "trade_offs": lambda result, *_: ((text, "") for text in trade_off_sentences(result)),
        "collision": lambda result, *_: [(collision_sentence(result), "")],
        "triggers": lambda result, *_: [(triggers_sentence(result), told_verdict(result))],
        "mutate": lambda result, *_: [(f"{counted(result.counts.written, 'mutated image')} written.", "")],
        "adr": lambda result, *_: [(rates_sentence(result), "")],
        "campaign": lambda result, *_: [campaign_sentence(result)],
    }
)
"""What a document says in the summary, by its kind: of its result, itself, and what `alone` says of it."""


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
    for document in others:
        if document.kind in SENTENCES:
            sentences += SENTENCES[document.kind](document.result, document, alone(document, documents))
    sections = [summary_section(documents, subjects, sentences, about)]
    sections += _requirement_sections(subjects)
    sections += answers_section(list(unattached_answers(documents, subjects)))
    sections += [
        gates_section(document.result.gates, document.result, document.name, f"g{k}")
        for k, document in enumerate(gated, start=1)
    ]
    sections += [
        _other_section(document, f"d{k}", alone(document, documents)) for k, document in enumerate(others, start=1)
    ]
    sections += [matrices_section(documents), assumptions_section(documents), provenance_section(documents)]
    return Page(_title(documents) if title is None else title, tuple(sections))


def _other_section(document: Document, anchor: str, note: str) -> Section:
    """The section of a document that verifies no requirement of a run; `note` as `alone` has it."""
    result: Any = document.result
    match document.kind:
        case "compare":
            return compare_section(result, document.name, anchor)
        case "rate":
            return rate_section(result, document.name, anchor, note)
        case "risk":
            return risk_section(result, document.name, anchor, note)
        case "triggers":
            return triggers_section(result, document.name, anchor)
        case "assess":
            return Section(f"Robustness: {document.name}", (), tuple(assess_sections(result)), anchor)
        case "adr":
            title, blocks = "Average detection rate", adr_blocks(result)
        case "campaign":
            title, blocks = "Campaign", campaign_blocks(result)
        case "collision":
            title, blocks = "Probability of collision", collision_blocks(result)
        case "trade_offs":
            title, blocks = "Safety against efficiency", trade_off_blocks(result)
        case "curves":
            title, blocks = "Safety against efficiency", curve_blocks(result.curves, "given curves")
        case _:
            title, blocks = "Mutated images", mutate_blocks(result)
    return Section(f"{title}: {document.name}", tuple(blocks), id=anchor)


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
    titles = list(
        dict.fromkeys(str(document.content["title"]) for document in documents if document.content.get("title"))
    )
    if not titles:
        return f"Report on {counted(len(documents), 'document')}"
    return name_text(titles[0]) + (f" and {len(titles) - 1} more" if len(titles) > 1 else "")


MOST_NAMES = 50


def provenance_section(documents: Sequence[Document]) -> Section:
    """Every file that this report rests on, by hash, and every choice that was made."""
    blocks: list[Block] = [
        Table(
            "Documents of this report",
            ("document", "kind", "title", "SHA-256"),
            tuple(
                (
                    document.name,
                    document.kind.replace("_", " "),
                    name_text(document.content.get("title", "none")),
                    document.sha256,
                )
                for document in documents
            ),
        )
    ]
    rows = tuple(_input_rows(documents))
    if rows:
        blocks.append(Table("Files they were made from", ("file", "role", "SHA-256", "used by"), rows))
    blocks += [*_versions(documents), *_engines(documents)]
    with_settings = [document for document in documents if "settings" in document.content] or documents
    made = [(document, table) for document in documents if (table := _made(document, with_settings[0])) is not None]
    blocks += [Fold(table.caption, (table,)) for document, table in made if document is with_settings[0]]
    others = tuple(replace(table, side=True) for document, table in made if document is not with_settings[0])
    blocks += [Fold(f"Settings of {counted(len(others), 'other document')}", others)] if others else []
    return Section("Provenance", tuple(blocks), tuple(_names_section(documents)), "provenance")


def _input_rows(documents: Sequence[Document]) -> Iterator[Row]:
    files = ((file, document.name) for document in documents for file in document.content.get("inputs", ()))
    inputs = grouped(
        ((file.get("name", file.get("title", "none")), file.get("role", "data"), file.get("sha256", "none")), name)
        for file, name in files
    )
    for (name, role, digest), names in inputs.items():
        yield name_text(name), role, digest, ", ".join(dict.fromkeys(names))


def _versions(documents: Sequence[Document]) -> Iterator[Block]:
    libraries: dict[str, dict[str, list[str]]] = {}
    for document in documents:
        for name, version in document.content.get("versions", {}).items():
            libraries.setdefault(name, {}).setdefault(version, []).append(document.name)
    if not libraries:
        return
    pairs = []
    for name, versions in libraries.items():
        several = len(versions) > 1
        text = "; ".join(f"{name_text(v)} ({', '.join(n)})" if several else name_text(v) for v, n in versions.items())
        pairs.append((name_text(name), text))
    yield facts("Versions", *pairs)


def _engines(documents: Sequence[Document]) -> Iterator[Block]:
    pairs = [
        (document.name, f"Storm, and the batch engine; {difference_text(engines['largest_difference'])}")
        for document in documents
        if (engines := document.content.get("engines")) is not None
    ]
    if pairs:
        yield facts("Engines", *pairs)


def _made(document: Document, first: Document) -> Table | None:
    """The command and the settings that a document was made with, without what the first one says already."""
    command = document.content.get("command")
    pairs = (
        [] if command is None else [("command", plain(command) if isinstance(command, str) else shlex.join(command))]
    )
    settings, before = document.content.get("settings", {}), first.content.get("settings", {})
    same = {name for name, value in settings.items() if document is not first and before.get(name, settings) == value}
    own = {name: value for name, value in settings.items() if name not in same}
    unset = [name_text(name) for name, value in own.items() if value is None or value is False]
    pairs += [(name_text(name), plain(value)) for name, value in own.items() if name_text(name) not in unset]
    pairs += [("none, or no", ", ".join(unset))] if unset else []
    pairs += [("all others", f"as of {first.name}")] if same else []
    return facts(f"Settings of {document.name}", *pairs) if pairs else None


def _names_section(documents: Sequence[Document]) -> Iterator[Section]:
    """Names that were shortened, in full."""
    names = list(dict.fromkeys(name for document in documents for name in long_names(document.content)))
    names += [
        document.name for document in documents if len(document.name) > LONGEST_NAME and document.name not in names
    ]
    if not names:
        return
    shown = tuple(f"{name_text(name)[-18:]} {name}" for name in names[:MOST_NAMES])
    blocks: list[Block] = [Listing(shown)]
    if len(names) > MOST_NAMES:
        blocks.append(Paragraph(f"{len(names) - MOST_NAMES} more are in the documents.", "note"))
    yield Section("Long names and texts in full", (Fold(counted(len(names), "text"), tuple(blocks)),), listed=False)
