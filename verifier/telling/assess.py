"""Assessments, told once: on a terminal, as a report in Markdown, and in reports of several results."""

from collections.abc import Iterator

from verifier.base.errors import one_line
from verifier.robustness.assessment.document import AssessResult, SystemRecord, assess_document
from verifier.robustness.assessment.result import AssessmentResult
from verifier.telling import markdown, terminal
from verifier.telling.assessment import ROBUST, sections
from verifier.telling.blocks import Listing, Paragraph, Section
from verifier.telling.grounds import name_text
from verifier.telling.markdown import escaped


def assess_tables(result: AssessmentResult) -> str:
    """Everything for a terminal."""
    study = assess_document(result)
    lines = [one_line(study.title)]
    for system in study.systems:
        title = one_line(system.title)
        lines += ["", "#" * len(title), title, "#" * len(title)]
        if system.citation:
            lines.append(f"source: {one_line(system.citation)}")
        for section in sections(system):
            lines += ["", *terminal.section_lines(section)]
        lines += ["", *(f"note: {one_line(note)}" for note in _notes(system)), f"{title}: {_verdict(system)}"]
    return terminal.text_of([*lines, f"verdict: {study.verdict}"])


def assess_markdown(result: AssessmentResult) -> str:
    """The report: a section per system, with the questions as headings."""
    study = assess_document(result)
    lines = [f"# {escaped(study.title)}"]
    lines += ["", "Method: Wozniak, Segura and Mazo, Electronics 13(7), 1368, 2024."]
    lines += ["", *(f"* {escaped(file.role)}: {escaped(file.name)}, SHA-256 {file.sha256}" for file in study.inputs)]
    for system in study.systems:
        lines += ["", f"## {escaped(system.title)}", ""]
        lines += [f"Verdict: **{_verdict(system)}**."]
        if system.citation:
            lines += ["", f"Source: {escaped(system.citation)}"]
        notes = _notes(system)
        more = (Section("Notes", (Listing(notes),)),) if notes else ()
        for section in (*sections(system), *more):
            lines += markdown.section_lines(section, 3)
    return "\n".join(lines) + "\n"


def assess_sections(study: AssessResult) -> Iterator[Section]:
    """A section per system."""
    for system in study.systems:
        blocks = (Paragraph(f"Source: {system.citation}"),) if system.citation else ()
        yield Section(name_text(system.title), blocks, sections(system), verdict=system.verdict)


def assess_sentences(study: AssessResult) -> Iterator[tuple[str, str]]:
    """How each system maintains its performance, with the verdict, for a summary."""
    for system in study.systems:
        yield f"Robustness of {name_text(system.title)}: {_verdict(system)}.", system.verdict


def _notes(system: SystemRecord) -> tuple[str, ...]:
    return system.remarks if system.degradation is None else (*system.remarks, *system.degradation.remarks)


def _verdict(system: SystemRecord) -> str:
    return ROBUST.get(system.verdict, "no tolerance was given")
