"""What a safety case is about, beside what was computed: system, ODD, detector, data, exposure, acceptance, people.

All of it is stated by people; none of it can be computed here. What is not stated is None or empty, and the case then
says "not stated".

Reading the context of a assurance case from a TOML file. Everything in it is optional; nothing in it is executed.

[system]
name = "Car with an emergency brake"

[odd]
description = "Urban roads with crosswalks, daylight, dry, up to 10 m/s"

[detector]
name = "YOLOv3"
version = "1.2"
weights = "..."                              # SHA-256; threshold, preprocessing, sensor, calibration in words
trained_on = ["2011_09_26_drive_00*"]        # sequences; * and ? stand for other characters
trained_list = "training.txt"                # a file beside this one, a sequence in a line
trained_frames = "training.sha256"           # and of what sha256sum says of the frames of both sets
tested_frames = "test.sha256"

[dataset]
description = "KITTI tracking, 21 drives"

[exposure.ped]                               # a environment of the model, or "every"
encounters = 240                             # a count, or: per_hour = 12, or: between = [10, 14] (and a level)
hours = 20
source = "Drives of March"

[acceptance.stops_for_pedestrians]           # a requirement
per_hour = 1e-7
source = "Hazard analysis 3.2"

[responsible]
requirements = "Head of functional safety"

Identity as in `verifier.evidence.identity`, evidence and dispositions as in `verifier.evidence.declarations`,
conditions and hazards as in `verifier.evidence.residual_risk.records`, triggering conditions as in
`verifier.evidence.triggers`, `[field]` and `[review]` name files as in `verifier.evidence.field` and
`verifier.evidence.context`.

Findings of an assessor about nodes of the case, kept through rebuilds.

A file beside the context, `[review] file = "review.csv"`, with the columns node, content, text, class, by, date,
state. `node` and `content` are anchor and digest of a node, as exchange/nodes.csv has them; `state` is open, answered
or closed. What is answered or closed is about the content that it names: when the node says something else, it is
open again.
"""

import datetime
import hashlib
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TypeVar

from verifier.base.errors import InputError, Place, shown
from verifier.base.files import read_text
from verifier.base.toml import Element, read_toml
from verifier.evidence.declarations import Declarations, beside_at, day_in, read_declarations, rows_of, today
from verifier.evidence.field import FieldRow, read_field
from verifier.evidence.identity import Identity, read_identity
from verifier.evidence.paths import as_seen
from verifier.evidence.rates.document import Acceptance
from verifier.evidence.rates.exposure import LARGEST_COUNT, Exposure
from verifier.evidence.rates.hazard import EVERY
from verifier.evidence.residual_risk.records import RISK_TABLES, DeclaredRisk, RiskCondition, Stated, read_risk
from verifier.evidence.triggers import Trigger, read_triggers
from verifier.perception.confusion.data_set import frame_hashes

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


@dataclass(frozen=True)
class Duty:
    """A row of `duties.toml`, as its head says."""

    answer: str
    goal: str = ""
    amlas: str = ""
    module: str = ""
    acp: str = ""


_TABLE = tomllib.loads(Path(__file__).with_name("duties.toml").read_text(encoding="utf-8"))
LEFT_TO_PEOPLE: Mapping[str, Duty] = {name: Duty(**duty) for name, duty in _TABLE["duty"].items()}
"""All that is known of duties."""
GOALS: tuple[str, ...] = tuple(_TABLE["goals"])
"""Duties that are goals of the case, in its order; that of training data stands before them."""
MODULES: tuple[str, ...] = tuple(_TABLE["modules"])
DUTIES: Mapping[str, str] = {name: duty.answer for name, duty in LEFT_TO_PEOPLE.items()}
"""What is not shown by this evidence: key in the file -> what they answer for."""
Row = TypeVar("Row")
_SETTING, _MOUNTING = ("weights", "threshold", "preprocessing"), ("sensor", "calibration")


@dataclass(frozen=True)
class FrameList:
    """Frames by the SHA-256 of each, and the file that lists them with its own."""

    file: str
    sha256: str
    hashes: frozenset[str] = field(repr=False)


@dataclass(frozen=True)
class Detector:
    """The machine-learnt component.

    Attributes:
        name, version: of it; empty where not stated.
        setting: key -> what is stated of weights, threshold and preprocessing.
        mounting: likewise of the sensor and its calibration.
        trained_on: names of the sequences it was trained on, `*` and `?` standing for other characters; None where
            that is not stated, () where it is said to have seen none of them.
        trained_list: name and SHA-256 of a file that lists them, one in a line; None where there is none.
        frames: those trained and those tested on, by their SHA-256; None where they are not listed.
    """

    name: str = ""
    version: str = ""
    trained_on: tuple[str, ...] | None = None
    trained_list: tuple[str, str] | None = None
    setting: Mapping[str, str] = field(default_factory=dict)
    mounting: Mapping[str, str] = field(default_factory=dict)
    frames: tuple[FrameList, FrameList] | None = None

    @property
    def told(self) -> str:
        """For people: name, version and what else is stated; empty where nothing is."""
        more = [f"{key} {text}" for key, text in {**self.setting, **self.mounting}.items()]
        return ", ".join(filter(None, (self.name, self.version, *more)))


@dataclass(frozen=True)
class CaseContext:
    """Everything that people state.

    Attributes:
        system, odd, dataset: in words; empty where not stated.
        detector: the machine-learnt component.
        exposures: environment, or `verifier.evidence.rates.hazard.EVERY` -> encounters per hour.
        acceptances: requirement -> how often per hour it may fail.
        responsible: key of `DUTIES` -> who answers for it.
        file: name and SHA-256 of the file it was read from; None where it was not read from one.
        declared: documents that are given as evidence, and answers to doubts.
        risk: conditions and hazards.
        triggers: triggering conditions, without what runs say of them.
        identity: of the document that the case is.
        counted: file of what was counted in the field, beside this one, and its rows; empty where there is none.
        review: likewise of the findings of an assessor.

    Raises:
        ValueError: a duty that is not known.
    """

    system: str = ""
    odd: str = ""
    dataset: str = ""
    detector: Detector = Detector()
    exposures: Mapping[str, Exposure] = field(default_factory=dict)
    acceptances: Mapping[str, Acceptance] = field(default_factory=dict)
    responsible: Mapping[str, str] = field(default_factory=dict)
    file: tuple[str, str] | None = None
    declared: Declarations = field(default_factory=Declarations)
    risk: DeclaredRisk = field(default_factory=DeclaredRisk)
    triggers: tuple[Trigger, ...] = ()
    identity: Identity = field(default_factory=Identity)
    counted: tuple[str, tuple[FieldRow, ...]] = ("", ())
    review: tuple[str, tuple[ReviewFinding, ...]] = ("", ())

    @property
    def documents(self) -> tuple[str, ...]:
        """The files beside the context that it names and that are there, to be copied with it."""
        files = [evidence.file for evidence in self.declared.evidence.values() if evidence.copied]
        listed = self.detector.trained_list
        files += [] if listed is None else [listed[0]]
        files += [frame.file for frame in self.detector.frames or ()]
        files += [self.counted[0], self.review[0]]
        files += [condition.matrices for condition in self.conditions]
        return tuple(dict.fromkeys(filter(None, files)))

    @property
    def conditions(self) -> tuple[RiskCondition | Trigger, ...]:
        """Those of the risk and triggering ones, each of which may have matrices of its own."""
        return (*self.risk.conditions, *self.triggers)

    @property
    def stated(self) -> Stated:
        """What residual risk is computed from, beside runs."""
        return Stated(self.risk, self.exposures, self.file)

    def exposures_for(self, environments: Collection[str]) -> dict[str, Exposure]:
        """Those to every encounter or one of these environments; a context may tell of more than a run is about."""
        return {name: exposure for name, exposure in self.exposures.items() if name == EVERY or name in environments}


TABLES = (
    "system", "odd", "detector", "dataset", "exposure", "acceptance", "responsible", "evidence", "disposition",
    *RISK_TABLES, "trigger", "document", "field", "review",
)  # fmt: skip


def read_context(
    path: str | Path, day: datetime.date | None = None, issued: datetime.date | None = None
) -> CaseContext:
    """Read a context.

    Args:
        path: of the file; documents that it names lie in its folder.
        day: on which the validity of documents is judged; today if left out.
        issued: when the document is issued, where the context does not say.

    Raises:
        InputError: the file cannot be read, is no TOML, or an element is not accepted; with file, line and key.
    """
    top = read_toml(path).table(TABLES)
    for key in ("evidence", "condition", "hazard", "trigger"):
        seen: dict[str, str] = {}
        for name, element in top.table_at(key):
            if (other := seen.setdefault(as_seen(name), name)) != name:
                raise element.fail(f"a name that looks like {shown(other)}: nobody could tell them apart")
    responsible = top.at("responsible").table(tuple(DUTIES)) if top.has("responsible") else None
    acceptances: dict[str, Acceptance] = {}
    for name, table in top.table_at("acceptance"):
        table.table(("per_hour", "source"), ("per_hour",))
        acceptances[name] = Acceptance(table.at("per_hour").positive(), table.given("source", Element.string, ""))
    return CaseContext(
        _words(top, "system", ("name", "description")),
        _words(top, "odd", ("description",)),
        _words(top, "dataset", ("name", "description")),
        _detector(top),
        {name: _exposure(element) for name, element in top.table_at("exposure")},
        acceptances,
        {} if responsible is None else {name: element.string() for name, element in responsible.entries()},
        (PurePath(path).name, top.sha256),
        read_declarations(top, tuple(DUTIES), day or today()),
        read_risk(top),
        read_triggers(top),
        read_identity(top, issued),
        _listed(top, "field", read_field),
        _listed(top, "review", read_review),
    )


def _words(top: Element, key: str, known: tuple[str, ...]) -> str:
    """The texts of a table as one; empty where it is missing."""
    if not top.has(key):
        return ""
    table = top.at(key).table(known)
    return ": ".join(table.at(name).string() for name in known if table.has(name))


def _detector(top: Element) -> Detector:
    if not top.has("detector"):
        return Detector()
    frames = ("trained_frames", "tested_frames")
    known = ("name", "version", "trained_on", "trained_list", *frames, *_SETTING, *_MOUNTING)
    table = top.at("detector").table(known)
    name, version = (table.given(key, Element.string, "") for key in ("name", "version"))
    setting, mounting = (
        {key: table.at(key).string() for key in keys if table.has(key)} for keys in (_SETTING, _MOUNTING)
    )
    stated = tuple(element.string() for element in table.list_at("trained_on")) if table.has("trained_on") else None
    if table.has(frames[0]) != table.has(frames[1]):
        raise table.fail(f"expected both {' and '.join(frames)}, or none of them")
    pair = (_frames(table.at(frames[0])), _frames(table.at(frames[1]))) if table.has(frames[0]) else None
    if not table.has("trained_list"):
        return Detector(name, version, stated, None, setting, mounting, pair)
    file = beside_at(table.at("trained_list"))
    text, raw = read_text(Path(table.file).parent / file)
    lines = map(str.strip, text.splitlines())
    listed = tuple(line for line in lines if as_seen(line) and not line.startswith("#"))
    if not listed:
        raise InputError("expected a sequence in each line, found none", Place(str(Path(table.file).parent / file)))
    lists = file, hashlib.sha256(raw).hexdigest()
    return Detector(name, version, (*(stated or ()), *listed), lists, setting, mounting, pair)


def _frames(element: Element) -> FrameList:
    """A list as sha256sum writes it: a hash in each line, and what it is of."""
    file = beside_at(element)
    hashes, digest = frame_hashes(Path(element.file).parent / file)
    return FrameList(file, digest, hashes)


def _listed(top: Element, key: str, read: Callable[[Path], tuple[Row, ...]]) -> tuple[str, tuple[Row, ...]]:
    """The file that a table names, and its rows; empty where there is no such table."""
    if not top.has(key):
        return "", ()
    table = top.at(key).table(("file",), ("file",))
    file = beside_at(table.at("file"))
    return file, read(Path(table.file).parent / file)


def _exposure(table: Element) -> Exposure:
    table.table(("encounters", "hours", "per_hour", "between", "level", "source"))
    source = table.given("source", Element.string, "")
    ways = [key for key in ("encounters", "per_hour", "between") if table.has(key)]
    if len(ways) != 1 or table.has("hours") != (ways == ["encounters"]):
        raise table.fail(
            "expected one way to say how often",
            "encounters = 240 with hours = 20, or per_hour = 12, or between = [10, 14]",
        )
    if table.has("level") and ways != ["between"]:
        raise table.at("level").fail("only a stated interval has a level")
    if ways == ["encounters"]:
        hours = table.at("hours").positive()
        return Exposure.counted(table.at("encounters").whole(0, LARGEST_COUNT), hours, source)
    if ways == ["per_hour"]:
        return Exposure.stated(table.at("per_hour").number(0), source)
    ends = table.at("between").items(least=2)
    if len(ends) > 2:
        raise table.at("between").fail(f"expected two ends, got {len(ends)}")
    level = table.given("level", Element.level, None)
    lower, upper = (end.number(0) for end in ends)
    return table.at("between").made(lambda: Exposure(lower, upper, level=level, source=source))
