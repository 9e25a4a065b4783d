"""What people put behind a claim, and answer to a doubt: documents with hash, person and date, and dispositions.

[evidence.NAME]: claim, title, file, author, date; copy, sha256, revision, valid_until, grade, limits
[disposition."KIND/REQUIREMENT"]: decision, doubt, reason, by, date; evidence, review

Rows of CSV files that people write, with their lines.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, TypeAlias

from verifier.base.documents import Limits, is_sha256
from verifier.base.errors import InputError, Place, shown
from verifier.base.files import csv_rows, read_bytes, stated_second
from verifier.base.toml import Element
from verifier.evidence.paths import fault_of
from verifier.evidence.status import Grade

_EVIDENCE = (
    "claim", "title", "file", "copy", "sha256", "revision", "author", "date", "valid_until", "grade", "limits",
)  # fmt: skip
_DISPOSITION = ("decision", "doubt", "reason", "evidence", "by", "date", "review")
GRADES = ("tested", "documented", "declared")
DECISIONS = ("refuted", "accepted", "open")
NUMBERS = ("memory", "statistics", "conditions", "harm", "triggers")
"""What numbers assume, which evidence may be given for beside the duties of people; the
last three are shares of conditions, how seldom behaviour leads to harm, and that the list of triggers is complete."""
DIGITS = 8
DAY = datetime.timedelta(days=1)
_BLANK = b"\0\xef\xbb\xbf \t\r\n\f\v"
"""Bytes that say nothing, a mark of UTF-8 among them."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One document that is given for claims.

    Attributes:
        name: in the file.
        claims: what it supports: duties, or names of `NUMBERS`.
        title, file, revision, author, limits: as stated; empty where not.
        sha256: of the file; empty where it is missing.
        dated, valid_until: of the document.
        grade: as stated.
        copied: whether the file is there and belongs into a bundle.
        fault: why it shows nothing, whenever it is: missing or altered; empty where nothing is wrong.
    """

    name: str
    claims: tuple[str, ...]
    title: str
    file: str = ""
    sha256: str = ""
    revision: str = ""
    author: str = ""
    dated: datetime.date | None = None
    valid_until: datetime.date | None = None
    grade: Grade = Grade.DOCUMENTED
    limits: str = ""
    copied: bool = False
    fault: str = ""

    def fault_on(self, day: datetime.date | None) -> str:
        """Why it shows nothing on a day; empty where it does."""
        if self.fault or self.valid_until is None:
            return self.fault
        if day is None or day > self.valid_until:
            return f"expired on {self.valid_until}"
        if self.dated is not None and self.dated > day + DAY:  # the day is that of UTC
            return f"dated {self.dated}, after {day}, on which it is judged"
        return ""

    @property
    def told(self) -> str:
        """For people: title, file, revision, author, date."""
        about = [self.title, self.file, self.revision and f"revision {self.revision}", self.author]
        return ", ".join([*filter(None, about), *([] if self.dated is None else [str(self.dated)])])


@dataclass(frozen=True, kw_only=True)
class Disposition:
    """How people answer a doubt: what they decided, on which numbers, why, by whom and when."""

    decision: str
    reason: str
    by: str
    dated: datetime.date
    doubt: str = ""
    evidence: str = ""
    review: str = ""

    @property
    def told(self) -> str:
        """For people."""
        review = f", {self.review}" if self.review else ""
        return f"{self.decision} by {self.by} on {self.dated}{review}: {self.reason}"


@dataclass(frozen=True)
class Declarations:
    """Everything of a context that is evidence, or an answer.

    Attributes:
        evidence: by name.
        dispositions: key of a doubt -> the answer.
        day: on which validity is judged; None where no document expires.
    """

    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    dispositions: Mapping[str, Disposition] = field(default_factory=dict)
    day: datetime.date | None = None

    def shown(self, claim: str) -> list[Evidence]:
        """What shows a claim: of a grade above declared, and nothing wrong with it."""
        mine = (stated for stated in self.evidence.values() if claim in stated.claims)
        return [one for one in mine if one.grade is not Grade.DECLARED and not one.fault_on(self.day)]

    def faulty(self, claim: str | None = None) -> list[str]:
        """In words, documents given for a claim, or for any, that are missing, altered or expired."""
        mine = (stated for stated in self.evidence.values() if claim is None or claim in stated.claims)
        return [f"{one.name} ({one.told}): {fault}" for one in mine if (fault := one.fault_on(self.day))]

    def answer(self, key: str, messages: Sequence[str]) -> Answer:
        """How the doubts of a key stand, from what they say and are about."""
        digest = hashlib.sha256("\n".join(sorted(messages)).encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]
        disposition = self.dispositions.get(key)
        if disposition is None or disposition.decision == "open":
            return Answer(digest, "open", disposition)
        if disposition.doubt != digest:
            return Answer(digest, "stale", disposition)
        if disposition.decision == "accepted":
            return Answer(digest, "accepted", disposition)
        proof = self.evidence.get(disposition.evidence)
        sound = proof is not None and proof.grade is not Grade.DECLARED and not proof.fault_on(self.day)
        return Answer(digest, "refuted" if sound else "open", disposition, proof if sound else None)


@dataclass(frozen=True)
class Answer:
    """How a doubt of a requirement stands.

    Attributes:
        digest: of its messages, and of data and results they speak of: which numbers a disposition is about.
        state: "refuted", "accepted", "open", or "stale" where it was decided on other numbers; the last two defeat.
        disposition: what people say; None where they say nothing.
        proof: what refutes it.
    """

    digest: str
    state: str
    disposition: Disposition | None = None
    proof: Evidence | None = None

    @property
    def told(self) -> str:
        """For people: the state, and why."""
        if self.disposition is None or self.state == "open":
            return self.state
        if self.state == "stale":
            return f"stale: decided on {self.disposition.doubt or 'no numbers'}, now {self.digest}"
        return self.disposition.told


def read_declarations(top: Element, duties: Sequence[str], day: datetime.date | None) -> Declarations:
    """Evidence and dispositions of a context; InputError with file, line and key."""
    known = {duty: duty for duty in (*duties, *NUMBERS)} | {node_of_duty(duty): duty for duty in duties}
    evidence = {name: _evidence(name, element, known) for name, element in top.table_at("evidence")}
    given = {key: _disposition(key, element, evidence) for key, element in top.table_at("disposition")}
    expires = any(stated.valid_until is not None for stated in evidence.values())
    return Declarations(evidence, given, day if expires else None)


def node_of_duty(duty: str) -> str:
    """The name of the node of the assurance case that a duty is the goal of, the same in every build."""
    return f"G-{hashlib.sha256(f'G duty {duty} 1'.encode()).hexdigest()[:DIGITS]}"


def _evidence(name: str, table: Element, claims: Mapping[str, str]) -> Evidence:
    """`claims`: as the file may name them -> what they are."""
    table.table(_EVIDENCE, ("claim", "title"))
    grade = Grade(table.given("grade", Element.one_of, "documented", GRADES))
    for key in ("file", "author", "date") if grade is not Grade.DECLARED else ():
        if not table.has(key):
            raise table.fail(f"missing key '{key}'", 'only grade = "declared" needs none')
    claim = table.at("claim")
    given = tuple(
        claims[element.one_of(tuple(claims))]
        for element in (claim.items(least=1) if isinstance(claim.value, list) else [claim])
    )
    texts = ("title", "revision", "author", "limits")
    told: dict[str, Any] = {key: table.given(key, Element.string, "") for key in texts}
    told |= {"dated": table.given("date", past_at, None), "valid_until": table.given("valid_until", date_at, None)}
    return Evidence(name=name, claims=given, grade=grade, **told, **_file(table))


def _file(table: Element) -> dict[str, Any]:
    """The file of evidence beside the context: its name, hash, and what is wrong with it."""
    if not table.has("file"):
        return {}
    name, copied = beside_at(table.at("file")), table.given("copy", Element.truth, True)
    stated = table.given("sha256", digest_at, "")
    if not copied and not stated:
        raise table.fail("missing key 'sha256'", "a document that is not copied is known by its hash alone")
    path = Path(table.file).parent / PurePosixPath(name)
    if path.is_file() and path.samefile(table.file):
        raise table.at("file").fail("expected a document, found the file that declares it")
    raw = read_bytes(path) if path.is_file() else None
    digest = "" if raw is None else hashlib.sha256(raw).hexdigest()
    if not copied and digest not in ("", stated):
        raise table.at("sha256").fail(f"expected {digest}, the SHA-256 of {name}, found {stated}")
    fault = "" if digest or not copied else "the file is missing"
    if copied and digest and stated not in ("", digest):
        fault = f"the file was altered: SHA-256 {digest}, not {stated}"
    if (digest or stated) == hashlib.sha256().hexdigest() or (copied and raw is not None and not raw.strip(_BLANK)):
        fault = "the file is empty"
    return {"file": name, "sha256": digest or stated, "copied": copied and bool(digest), "fault": fault}


def _disposition(key: str, table: Element, evidence: Mapping[str, Evidence]) -> Disposition:
    table.table(_DISPOSITION, ("decision", "reason", "by", "date"))
    decision = table.at("decision").one_of(DECISIONS)
    if decision == "refuted" and not table.has("evidence"):
        raise table.fail("missing key 'evidence'", "a doubt is refuted by evidence; without, it can be accepted")
    texts = {name: table.given(name, Element.string, "") for name in ("reason", "by", "doubt", "review")}
    named = table.given("evidence", Element.one_of, "", tuple(evidence))
    dated, proof = past_at(table.at("date")), evidence.get(named)
    if proof is not None and proof.dated is not None and dated < proof.dated:
        expected = f"expected no day before that of the evidence it rests on, {proof.dated}"
        raise table.at("date").fail(f"{expected}, found {dated}")
    return Disposition(decision=decision, evidence=named, dated=dated, **texts)


def beside_at(element: Element) -> str:
    """The name of a file in the folder of this one, or below; InputError."""
    name = element.string()
    if fault := fault_of(name):
        raise element.fail(f"expected a file beside this one or below, found {shown(name)}: {fault}")
    return name


def matrices_at(table: Element) -> tuple[str, str | None]:
    """The name of the matrices beside the file, and their SHA-256; empty and None where there are none."""
    if not table.has("matrices"):
        return "", None
    file = beside_at(table.at("matrices"))
    path = Path(table.file).parent / PurePosixPath(file)
    if not path.is_file():
        hint = "of a condition without matrices nothing is known: leave out the key"
        raise table.at("matrices").fail(f"there is no file {shown(file)} beside this one", hint)
    return file, hashlib.sha256(read_bytes(path)).hexdigest()


def digest_at(element: Element) -> str:
    """A SHA-256; InputError."""
    text = element.string()
    if not is_sha256(text):
        raise element.fail(f"expected 64 hexadecimal digits, found {shown(text)}")
    return text


def date_at(element: Element) -> datetime.date:
    """A day; InputError."""
    if type(element.value) is not datetime.date:
        raise element.fail(f"expected a date such as 2026-05-04, found {shown(element.value)}")
    return element.value


def past_at(element: Element) -> datetime.date:
    """A day that is not still to come; InputError."""
    return past_day(date_at(element), element.fail)


def past_day(day: datetime.date, fail: Callable[[str], InputError]) -> datetime.date:
    """The day of something that happened, at most that of the clock, or of SOURCE_DATE_EPOCH, anywhere on earth.

    Raises:
        InputError: what `fail` makes of the words, where it is later.
    """
    last = max(today(), clock_day())
    if day > last + DAY:  # the day is that of UTC
        raise fail(f"expected a day that has been, today is {last}, found {day}")
    return day


def today() -> datetime.date:
    """The day of SOURCE_DATE_EPOCH, in UTC; of the clock where that is not set."""
    return stated_day() or clock_day()


def clock_day() -> datetime.date:
    """The day of the clock, in UTC, whatever SOURCE_DATE_EPOCH says."""
    return datetime.datetime.now(datetime.UTC).date()


def stated_day() -> datetime.date | None:
    """The day of SOURCE_DATE_EPOCH, in UTC; None where that is not set. Errors as `stated_second`."""
    second = stated_second()
    return None if second is None else datetime.datetime.fromtimestamp(second, datetime.UTC).date()


DayText: TypeAlias = Annotated[str, Limits(pattern=r"^\d{4}-\d\d-\d\d$")]


def rows_of(
    text: str, path: str | Path, needed: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[tuple[dict[str, str], Place]]:
    """The rows with their places, cells by column; columns that are optional and missing are empty.

    Raises:
        InputError: other columns, no CSV, or a row with another number of cells.
    """
    rows = csv_rows(text, str(path))
    line, columns = next(rows, (1, []))
    if len({*columns}) != len(columns) or not {*needed} <= {*columns} <= {*needed, *optional}:
        more = f", and perhaps {', '.join(optional)}" if optional else ""
        there = shown(",".join(columns)) if columns else "nothing"
        raise InputError(f"expected the columns {', '.join(needed)}{more}, found {there}", Place(str(path), line))
    for line, cells in rows:
        given = dict(zip(columns, cells, strict=True))
        yield {name: given.get(name, "") for name in (*needed, *optional)}, Place(str(path), line)


def day_in(text: str, place: Place) -> datetime.date:
    """A day as 2026-05-04, not still to come; InputError."""
    try:
        day = datetime.date.fromisoformat(text)
    except ValueError:
        raise InputError(f"expected a date such as 2026-05-04, found {shown(text)}", place) from None
    return past_day(day, lambda said: InputError(said, place))
