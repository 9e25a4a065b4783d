"""Findings of an assessor about nodes of the case, kept through rebuilds.

A file beside the context, `[review] file = "review.csv"`, with the columns node, content, text, class, by, date,
state. `node` and `content` are anchor and digest of a node, as exchange/nodes.csv has them; `state` is open, answered
or closed. What is answered or closed is about the content that it names: when the node says something else, it is
open again.
"""

import datetime
from dataclasses import dataclass
from pathlib import Path

from verifier.base.errors import InputError, Place, shown
from verifier.base.files import read_text
from verifier.evidence.rows import day_in, rows_of

COLUMNS = ("node", "content", "text", "class", "by", "date", "state")
CLASSES, STATES = ("major", "minor", "observation"), ("open", "answered", "closed")


@dataclass(frozen=True)
class ReviewFinding:
    """One finding, as stated.

    Attributes:
        node, content: anchor of the node, and the digest of what it said.
        grade: "major", "minor" or "observation".
        state: "open", "answered" or "closed".
    """

    node: str
    content: str
    text: str
    grade: str
    by: str
    dated: datetime.date
    state: str

    @property
    def about(self) -> str:
        """For people, whatever its state and what the node says: `G-1a2b3c4d (major, A. B., 2026-05-04): text`."""
        return f"{self.node} ({self.grade}, {self.by}, {self.dated}): {self.text}"


def read_review(path: str | Path) -> tuple[ReviewFinding, ...]:
    """The findings of a file; InputError with its line."""
    return tuple(_finding(row, place) for row, place in rows_of(read_text(path)[0], path, COLUMNS))


def _finding(row: dict[str, str], place: Place) -> ReviewFinding:
    for name, known in (("class", CLASSES), ("state", STATES)):
        if row[name] not in known:
            raise InputError(f"{name}: expected {', '.join(known)}, found {shown(row[name])}", place)
    for name in ("node", "text", "by") + (("content",) if row["state"] != "open" else ()):
        if not row[name]:
            raise InputError(f"{name}: expected a text, found nothing", place)
    dated = day_in(row["date"], place)
    return ReviewFinding(row["node"], row["content"], row["text"], row["class"], row["by"], dated, row["state"])
