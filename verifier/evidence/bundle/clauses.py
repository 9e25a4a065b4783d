"""What standards ask, clause by clause, and how far a bundle answers it, by files and their hashes.

The table is `clauses.toml`: numbers and own words, to be confirmed against the licensed texts. A clause is covered
only where all its files are there and what they rest on is proven, recomputed, tested or documented.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from verifier.evidence.context import CaseContext
from verifier.evidence.status import Grade, Standing, weakest
from verifier.telling.blocks import Page, Paragraph, Section, Table

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
    return tuple(Clause(**each) for each in _tables()["clause"])


def clause_rows(
    files: Mapping[str, str], standings: Sequence[Standing], context: CaseContext
) -> list[dict[str, str]]:
    """A row for each clause.

    Args:
        files: path -> SHA-256; rows have PATH SHA-256, `MOST_NAMED` of each pattern.
        standings: how the requirements stand.
        context: what people state.
    """
    return [_row(each, files, standings, context) for each in clauses()]


def _row(
    clause: Clause, files: Mapping[str, str], standings: Sequence[Standing], context: CaseContext
) -> dict[str, str]:
    found = {pattern: [path for path in sorted(files) if fnmatchcase(path, pattern)] for pattern in clause.files}
    missing = [pattern for pattern, paths in found.items() if not paths]
    grade, duty = _grade(clause, standings, context), clause.duty
    status, best = "covered", clause.best
    if missing or grade not in _SOUND:
        status = "partly" if len(missing) < len(found) else "none"
    if best in ("others", "none") or (best == "partly" and status == "covered"):
        status = best
    open_points = [f"no file {pattern}" for pattern in missing] if best not in _NAMES else []
    if best not in _NAMES and grade not in _SOUND:
        open_points.append(f"rests on what is {grade.value}")
    named = [path for paths in found.values() for path in paths[:MOST_NAMED]]
    return {
        "clause": clause.id,
        "asked": clause.asked,
        "answer": clause.answer,
        "status": _NAMES.get(status, status),
        "grade": grade.value if found else "",
        "files": "; ".join(f"{path} {files[path]}" for path in dict.fromkeys(named)),
        "owner": context.responsible.get(duty, "not stated") if duty else "",
        "open": "; ".join(open_points),
    }


def _grade(clause: Clause, standings: Sequence[Standing], context: CaseContext) -> Grade:
    """The weakest of what a clause rests on: results, documents of people, the identity of the document."""
    grades = []
    if clause.duty:
        grades.append(weakest(each.grade for each in context.declared.shown(clause.duty)))
    if clause.identity:
        grades.append(Grade.DECLARED if context.identity.missing else Grade.DOCUMENTED)
    if clause.fields:
        grades.append(Grade.DOCUMENTED if context.identity.is_whole else Grade.DECLARED)
    return weakest(grades or [each.grade for each in standings])


def clauses_page(rows: Sequence[Mapping[str, str]], title: str) -> Page:
    """The rows as a page."""
    cells = tuple(tuple(row[name] or "-" for name in COLUMNS) for row in rows)
    table = Table("Clause by clause", COLUMNS, cells, sortable=True)
    return Page(
        f"Clause trace: {title}", (Section("Clause trace", (Paragraph(UNCONFIRMED, "note"), table)),), "the bundle"
    )
