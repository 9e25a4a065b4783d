"""Assessments as a person reads them: on a terminal, and as a report in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from verifier.base.errors import one_line
from verifier.robustness.assessment.result import AssessmentResult, SystemResult
from verifier.telling import markdown, terminal
from verifier.telling.assessment import ROBUST, sections
from verifier.telling.blocks import Listing, Section
from verifier.telling.markdown import escaped


def assess_tables(result: AssessmentResult) -> str:
    """Everything for a terminal."""
    lines = [one_line(result.title)]
    for system in result.systems:
        lines += ["", *_heading(system)]
        for section in sections(system):
            lines += ["", *terminal.section_lines(section)]
        lines += ["", *_closing(system)]
    return "\n".join([*lines, f"verdict: {result.verdict.value}"]) + "\n"


def assess_markdown(result: AssessmentResult) -> str:
    """The report: a section per system, with the questions as headings."""
    lines = [f"# {escaped(result.title)}"]
    lines += ["", "Method: Wozniak, Segura and Mazo, Electronics 13(7), 1368, 2024."]
    lines += ["", *(f"* {escaped(each['role'])}: {_file(each)}" for each in result.inputs)]
    for system in result.systems:
        lines += ["", f"## {escaped(system.assessment.title)}", ""]
        lines += [f"Verdict: **{_verdict(system)}**."]
        if system.assessment.citation:
            lines += ["", f"Source: {escaped(system.assessment.citation)}"]
        for section in sections(system):
            lines += markdown.section_lines(section, 3)
        notes = _notes(system)
        if notes:
            lines += markdown.section_lines(Section("Notes", (Listing(notes),)), 3)
    return "\n".join(lines) + "\n"


def _heading(system: SystemResult) -> Iterator[str]:
    title = one_line(system.assessment.title)
    yield from ("#" * len(title), title, "#" * len(title))
    if system.assessment.citation:
        yield f"source: {one_line(system.assessment.citation)}"


def _closing(system: SystemResult) -> Iterator[str]:
    yield from (f"note: {one_line(each)}" for each in _notes(system))
    yield f"{one_line(system.assessment.title)}: {_verdict(system)}"


def _notes(system: SystemResult) -> tuple[str, ...]:
    return system.remarks if system.degradation is None else (*system.remarks, *system.degradation.remarks)


def _verdict(system: SystemResult) -> str:
    return ROBUST.get(system.verdict.value, "no tolerance was given")


def _file(each: Mapping[str, str]) -> str:
    return f"{escaped(each['name'])}, SHA-256 {each['sha256']}"
