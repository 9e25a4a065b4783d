"""From requirements to evidence, and from files to nodes of the case: for spreadsheets.

Every requirement of the spec has at least one row, whether it was run or not. A row names the files that speak of it.

What standards ask, clause by clause, and how far a bundle answers it, by files and their hashes.

The table is `clauses.toml`: numbers and own words, to be confirmed against the licensed texts. A clause is covered
only where all its files are there and what they rest on is proven, recomputed, tested or documented.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from verifier.base.arrays import grouped
from verifier.base.documents import fraction_text
from verifier.base.files import csv_text
from verifier.base.numbers import decimal_text
from verifier.base.words import some_of
from verifier.checking.verdicts import Verdict
from verifier.evidence.bundle.layout import (
    EXPLAIN_FILE,
    RUN_FILE,
    certificates_of_any_block,
    certificates_of_pair,
    require_file,
)
from verifier.evidence.bundle.parts import Parts
from verifier.evidence.case.elements import Case
from verifier.evidence.context import CaseContext
from verifier.evidence.status import Grade, Standing, Status, overall, severity, weakest
from verifier.study.inputs import ends_of
from verifier.study.results import RequirementResult
from verifier.telling.blocks import Block, Cell, Page, Paragraph, Section, Table, name_text
from verifier.telling.grounds import reason_text, vacuity_text

UNCONFIRMED = "Clause numbers are to be confirmed against the licensed texts; what is asked is told in own words."
COLUMNS = ("clause", "asked", "answer", "status", "grade", "files", "owner", "open")
MOST_NAMED = 3
_TABLE = Path(__file__).parent / "clauses.toml"
_SOUND = (Grade.PROVEN, Grade.RECOMPUTED, Grade.TESTED, Grade.DOCUMENTED)
_NAMES = {"others": "by others", "none": "not covered"}


@dataclass(frozen=True)
class Clause:
    """A row of the table, as the head of the file says."""

    id: str
    asked: str
    answer: str
    files: Sequence[str]
    best: str
    duty: str = ""
    identity: bool = False
    fields: bool = False


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(_TABLE.read_text(encoding="utf-8"))


def not_argued_from() -> Mapping[str, str]:
    """Pattern of a path -> why nothing in the case argues from such a file; the first that fits."""
    return {**_tables()["not_argued_from"]}


def clauses() -> tuple[Clause, ...]:
    """The table."""
    return tuple(Clause(**table) for table in _tables()["clause"])


def clause_rows(
    files: Mapping[str, str], standings: Sequence[Standing], context: CaseContext
) -> list[dict[str, str]]:
    """A row for each clause; `files` is path -> SHA-256, and rows have PATH SHA-256, `MOST_NAMED` of each pattern."""
    return [_row(clause, files, _grade(clause, standings, context), context) for clause in clauses()]


def _row(clause: Clause, files: Mapping[str, str], grade: Grade, context: CaseContext) -> dict[str, str]:
    matches = {pattern: [path for path in sorted(files) if fnmatchcase(path, pattern)] for pattern in clause.files}
    missing = [pattern for pattern, paths in matches.items() if not paths]
    duty, status, best = clause.duty, "covered", clause.best
    if missing or grade not in _SOUND:
        status = "partly" if len(missing) < len(matches) else "none"
    if best in ("others", "none") or (best == "partly" and status == "covered"):
        status = best
    open_points = [f"no file {pattern}" for pattern in missing] if best not in _NAMES else []
    if best not in _NAMES and grade not in _SOUND:
        open_points.append(f"rests on what is {grade.value}")
    named = [path for paths in matches.values() for path in paths[:MOST_NAMED]]
    return {
        "clause": clause.id,
        "asked": clause.asked,
        "answer": clause.answer,
        "status": _NAMES.get(status, status),
        "grade": grade.value if matches else "",
        "files": "; ".join(f"{path} {files[path]}" for path in dict.fromkeys(named)),
        "owner": context.responsible.get(duty, "not stated") if duty else "",
        "open": "; ".join(open_points),
    }


def _grade(clause: Clause, standings: Sequence[Standing], context: CaseContext) -> Grade:
    """The weakest of what a clause rests on: results, documents of people, the identity of the document."""
    grades = []
    if clause.duty:
        grades.append(weakest(evidence.grade for evidence in context.declared.shown(clause.duty)))
    if clause.identity:
        grades.append(Grade.DECLARED if context.identity.missing else Grade.DOCUMENTED)
    if clause.fields:
        grades.append(Grade.DOCUMENTED if context.identity.is_whole else Grade.DECLARED)
    return weakest(grades or [standing.grade for standing in standings])


def clauses_page(rows: Sequence[Mapping[str, str]], title: str) -> Page:
    """The rows as a page."""
    cells = tuple(tuple(row[name] or "-" for name in COLUMNS) for row in rows)
    table = Table("Clause by clause", COLUMNS, cells, sortable=True)
    section = Section("Clause trace", (Paragraph(UNCONFIRMED, "note"), table))
    return Page(f"Clause trace: {title}", (section,), "the bundle")


TRACE_COLUMNS = (
    "requirement", "line", "as_written", "target", "status", "reason", "grade", "conditional_on", "of_run", "planner",
    "verdict", "condition", "basis",
    "reason_of_verdict", "vacuity", "worst_scenario", "probability", "bounds_lower", "bounds_upper", "tier",
    "defeated_by", "doubts", "run", "explanation", "required_recall", "certificates", "rate",
)  # fmt: skip
NOT_RUN = "not selected for this run"
NO_TARGET = {"reason": "P = ? asks for a number and has no target"}
NO_EXPOSURE = "no exposure is declared"
_FILES = ("run", "explanation", "required_recall", "rate")


@dataclass(frozen=True)
class Traced:
    """What the trace is made from.

    Attributes:
        parts: inputs and results.
        defeaters: requirement -> the defeaters that speak against it, in words.
        answers: key of a doubt -> the key, what it says in digits, and how it stands.
        standings: how every requirement stands over all runs.
        rates: number in the run's document, from 1 -> the file of its rate, or why there is none.
    """

    parts: Parts
    defeaters: Mapping[str, Sequence[str]]
    answers: Mapping[str, str]
    standings: Sequence[Standing]
    rates: Mapping[int, str]


def trace_rows(traced: Traced) -> list[dict[str, str]]:
    """One row per requirement of the spec and planner it was run under, or one that says why it was not."""
    rows, rebuilt = [], traced.parts.rebuilt
    selected = [requirement.name for requirement in rebuilt.grid.requirements]
    for number, requirement in enumerate(rebuilt.inputs.spec.requirements, 1):
        about = {"requirement": requirement.name, "line": str(requirement.line), "as_written": requirement.text}
        target = requirement.target
        compared = "= ?" if target is None else f"{requirement.comparison} {decimal_text(target)}"
        names = [end.name for end in ends_of(requirement, rebuilt.inputs.model)]
        results = [(k, one) for k, one in enumerate(traced.parts.result.requirements, 1) if one.name in names]
        if not results:
            target_text, standing = f"{requirement.asked} {compared}", _standing(traced, requirement.name, "")
            rows.append({**about, "target": target_text, **standing})
        for k, one in results:
            place = selected.index(one.name)
            about |= {"requirement": one.name, "target": f"{one.asked} {compared}"}
            rate = traced.rates.get(k, "no target" if one.target is None else NO_EXPOSURE)
            rows.append({**about, **_evidence(one, traced, number, place), "rate": rate})
        under = {one.planner for _, one in results}
        for elsewhere in traced.standings:  # what only a given run has
            if elsewhere.requirement in names and elsewhere.planner and elsewhere.planner not in under:
                rows.append({**about, "requirement": elsewhere.requirement, "planner": elsewhere.planner})
                rows[-1] |= _standing(traced, elsewhere.requirement, elsewhere.planner)
    return [dict.fromkeys(TRACE_COLUMNS, "") | row for row in rows]


def trace_text(traced: Traced) -> str:
    """The trace as CSV."""
    return csv_text(trace_rows(traced), TRACE_COLUMNS)


def trace_section(rows: Sequence[Mapping[str, str]]) -> Section:
    """The trace as a section of the report."""
    table = Table(
        "Every requirement of the spec",
        ("requirement", "line", "target", "status", "evidence", "planner", "defeated by", "files"),
        tuple(
            (
                row["requirement"],
                row["line"],
                row["target"],
                ": ".join(part for part in (row["status"], row["reason"], row["conditional_on"]) if part),
                row["grade"] or "-",
                row["planner"] or "-",
                row["defeated_by"] or "-",
                ", ".join(row[name] for name in _FILES if "/" in row[name] and ": " not in row[name]) or "-",
            )
            for row in rows
        ),
        sortable=True,
    )
    said = (
        "Which file of the bundle speaks of which requirement, and why of some none does; trace.csv has the numbers."
    )
    return Section("From requirements to evidence", (Paragraph(said), table), (), "trace")


def status_blocks(
    standings: Sequence[Standing],
    whole: Status,
    notes: Sequence[str],
    compared: Mapping[tuple[str, str, str], str],
    doubts: Mapping[str, Sequence[str]],
) -> tuple[Block, ...]:
    """How every requirement stands, for the first page.

    Args:
        whole: of the top goal of the case, which is told where it is worse than that of every requirement.
        notes: what is to be said of doubts and evidence.
        compared: requirement, planner and result -> what is compared with the target.
        doubts: requirement -> keys of doubts, open or accepted, in words.
    """
    rows = tuple(
        (
            name_text(standing.requirement),
            Cell(name_text(standing.told), verdict=standing.status.value),
            standing.grade.value,
            compared.get((standing.requirement, standing.planner, standing.run), "-"),
            some_of(doubts.get(standing.requirement, ())) or "none",
            name_text(standing.planner or "-"),
            name_text(standing.run or "-"),
        )
        for standing in standings
    )
    worst = overall(standings)
    if worst is None:
        return ()
    if severity(whole) > severity(worst.status):
        told = f"The assurance case as a whole: {whole.value}. Its top goal rests on more than these requirements"
        notes = (f"{told} (case/gsn_print.html).", *notes)
    header = ("requirement", "status", "evidence", "decided from", "doubts", "planner", "result")
    return (
        Paragraph("Status over all runs:", "overall", worst.status.value),
        Table("Status of every requirement", header, rows, sortable=True),
        *(Paragraph(note, "note") for note in notes),
    )


def _evidence(one: RequirementResult, traced: Traced, number: int, place: int) -> dict[str, str]:
    """The cells about a requirement under one planner: `number` in the spec, `place` among those run, from 0."""
    worst, verdict = one.worst_point, one.verdict
    bounds = ("", "") if worst.uncertainty is None or one.means else tuple(map(str, worst.bounds("bounds")))
    numbers = one.means or (worst,)  # what is asked for: means over the profile, or that of the worst scenario
    against = traced.defeaters.get(one.name, ())
    pairs = [certificates_of_pair(block, place) for block in range(len(traced.parts.rebuilt.grid.blocks))]
    proofs = sum(path.startswith(f"{pair}_") for path in traced.parts.files for pair in pairs)
    gone = sum(pair in traced.parts.omitted for pair in pairs)
    named = f"{proofs}: {certificates_of_any_block(place)}" if proofs else "0"
    return {
        "status": "reported",
        **NO_TARGET,
        **_standing(traced, one.name, one.planner),
        "planner": one.planner,
        "verdict": verdict.value,
        "condition": one.condition or "",
        "basis": worst.basis or "",
        "reason_of_verdict": reason_text(worst.reason, worst.probability),
        "vacuity": some_of([f"{point.scenario}: {vacuity_text(point)}" for point in one.points if point.vacuity]),
        "worst_scenario": "profile" if one.means else worst.scenario,
        "probability": "; ".join(
            repr(number.probability) if number.exact is None else fraction_text(number.exact) for number in numbers
        ),
        "bounds_lower": bounds[0],
        "bounds_upper": bounds[1],
        "tier": traced.parts.result.settings.tier,
        "defeated_by": "; ".join(against),
        "doubts": "; ".join(told for key, told in traced.answers.items() if key.partition("/")[2] == one.name),
        "run": RUN_FILE,
        "explanation": _file(EXPLAIN_FILE, traced),
        "required_recall": "no target"
        if verdict is Verdict.NO_TARGET
        else _file(require_file(number, one.name), traced),
        "certificates": named + (f"; {gone} chains without: too large" if gone else ""),
    }


def _standing(traced: Traced, name: str, planner: str) -> dict[str, str]:
    """The cells about the status of a requirement; none where it has no target."""
    for standing in traced.standings:
        if (standing.requirement, standing.planner) == (name, planner):
            return {
                "status": standing.status.value,
                "reason": standing.reason,
                "grade": standing.grade.value,
                "conditional_on": "; ".join(standing.assumed),
                "of_run": standing.run,
            }
    return {}


def _file(path: str, traced: Traced) -> str:
    return path if path in traced.parts.files else f"omitted: {traced.parts.omitted.get(path, 'not planned')}"


def citations_text(files: Iterable[str], case: Case) -> str:
    """Every file with the elements that cite it, or the reason why none does, as CSV."""
    cited = grouped((path, element.id) for element in case.elements for path in case.files_of(element))
    rows, reasons = list[dict[str, str]](), not_argued_from()
    for path in sorted(files):
        why = "" if path in cited else next(reasons[pattern] for pattern in reasons if fnmatchcase(path, pattern))
        rows.append({"file": path, "cited_by": " ".join(cited.get(path, ())), "not_argued_from": why})
    return csv_text(rows)
