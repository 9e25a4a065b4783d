"""Objects that are met one by one in JSON or XML, gathered as the table of `tablefiles`; and XML, walked.

Frames of formats that have one file per image are named by the file, with its folder as sequence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from verifier.base.errors import InputError, Place, shown
from verifier.base.libraries import library
from verifier.base.tables import NUMBER
from verifier.perception.detections.classmap import is_part
from verifier.perception.detections.columns import NO_SEQUENCE, DetectionSet, Frames
from verifier.perception.detections.sources import Member, Reading, Source, by_name, read_source
from verifier.perception.detections.tablefiles import NAMES, TEXTS, NamedTable, check_columns, renamed, table_set

SCORES = ("score", "confidence")
"""What scores are called where a format has no name for them."""
DEEPEST = 100
"""Elements within elements of an XML file."""
SAID = ("score", "distance_m", "region")
"""Names of the table that attributes of an object may have."""


@dataclass
class Gathered:
    """What is read of a source, object by object.

    Attributes:
        path: of the source, as given.
        scored: whether the objects are detections.
        rows, parts, lines, pointers: of each object its values, and the number of its file, line and JSON pointer.
        frames, places: sequence and name of each frame, and where it stands.
        left_out: what is no box, and left out.
    """

    path: str
    source: Source
    scored: bool
    rows: list[dict[str, Any]] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    pointers: list[str] = field(default_factory=list)
    frames: list[tuple[str, str]] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    left_out: int = 0

    @classmethod
    def of(
        cls,
        path: str | Path,
        suffix: str,
        read: Callable[[Gathered, int, Member, str], None],
        *,
        scored: bool = False,
    ) -> Gathered:
        """All that `read` gathers: it is given each file, its number, and the sequence that it is."""
        gathered = cls(str(path), read_source(path, "detections" if scored else "annotations", suffix), scored)
        members = gathered.source.members
        for part, (member, drive) in enumerate(zip(members, drives_of(members), strict=True)):
            read(gathered, part, member, drive)
        return gathered

    def frame(self, sequence: str, name: str, place: Place) -> None:
        """A frame, with or without objects."""
        self.frames.append((sequence, name))
        self.places.append(place)

    def each_frame(self) -> Iterator[tuple[str, str]]:
        """The frames, each once; InputError where one occurs twice."""
        seen: set[tuple[str, str]] = set()
        for key, place in zip(self.frames, self.places, strict=True):
            if key in seen:
                raise InputError(f"frame {shown('/'.join(filter(None, key)))} occurs twice", place)
            seen.add(key)
            yield key

    def add(
        self, part: int, line: int, pointer: str, values: dict[str, object], attributes: Mapping[str, object]
    ) -> None:
        """One object of file `part`: its values by the names of the table; attributes that are numbers, or "1"."""
        if SCORES[0] not in attributes and SCORES[1] in attributes:
            attributes = {**attributes, SCORES[0]: attributes[SCORES[1]]}
        told = {name: _number(value) for name, value in attributes.items() if name in SAID or name not in NAMES}
        self.rows.append({name: value for name, value in told.items() if value is not None} | values)
        self.parts.append(part)
        self.lines.append(line)
        self.pointers.append(pointer)

    def place(self, row: int) -> Place:
        """Where an object stands."""
        file = self.source.members[self.parts[row]].name
        return Place(file, path=self.pointers[row]) if self.pointers[row] else Place(file, self.lines[row])

    def table(self, columns: Mapping[str, str]) -> NamedTable:
        """The objects as a table; `columns` as of tables, of detections those that they have, and `score`.

        Raises:
            InputError: a value of the wrong type, a column that is not there.
        """
        arrow, scored = library("pyarrow"), self.scored
        names = dict.fromkeys(["frame", "class", *(["score"] if scored and not self.rows else [])])
        names |= dict.fromkeys(name for row in self.rows for name in row)
        made = {name: self._column(name) for name in names}
        if "id" not in made and not scored:
            made["id"] = arrow.array(self._numbers())
        if "track" in made:
            made["track"] = made["track"].dictionary_encode().indices  # an empty cell is no track
        wanted = {
            name: scored if name == "score" else (bool(self.rows) and not scored) or theirs in made
            for name, theirs in columns.items()
        }
        own = {name: theirs for name, theirs in columns.items() if wanted[name]}
        table = renamed(arrow.table(made), own, ["score"] if scored else [], self.path)
        files = tuple(member.name for member in self.source.members)
        line, part = np.array(self.lines, dtype=np.int64), np.array(self.parts, dtype=np.int32)
        pointer = self.pointers.__getitem__ if any(self.pointers) else None
        return NamedTable(table, line, self.path, files, part, pointer)

    def _numbers(self) -> list[int]:
        """The number of each object in its frame, from 1: what a table of distances names it by."""
        seen: Counter[tuple[Any, Any]] = Counter()
        numbers = []
        for row in self.rows:
            key = (row.get("sequence"), row["frame"])
            seen[key] += 1
            numbers.append(seen[key])
        return numbers

    def _column(self, name: str) -> Any:
        arrow = library("pyarrow")
        values = [row.get(name) for row in self.rows]
        text = name in (*TEXTS, "track")
        types = (str,) if text else (int, float) if name in NAMES else (int, float, bool)
        missing = () if name in TEXTS else (type(None),)
        if not set(map(type, values)) <= {*types, *missing}:
            row = next(row for row, value in enumerate(values) if type(value) not in (*types, *missing))
            wanted = "a name" if text else "a number"
            raise InputError(f"{name}: expected {wanted}, got {shown(values[row])}", self.place(row))
        try:
            plain = values if text else [None if value is None else float(value) for value in values]
        except OverflowError:
            raise InputError(f"{name}: a number too large to be one", Place(self.source.members[0].name)) from None
        return arrow.array(plain, arrow.string() if text else arrow.float64())


def _number(value: Any) -> Any:
    if isinstance(value, str):
        return float(value) if NUMBER.fullmatch(value.strip()) else None
    return value if isinstance(value, int | float) else None


def drives_of(members: Sequence[Member]) -> list[str]:
    """The sequence that each of several files is: its name, or that of its folder where names are equal; also of one
    that is read alone (`only_files`)."""
    stems = [member.stem for member in members]
    if len(members) < 2 and not is_part():
        return [""] * len(members)
    return stems if len(set(stems)) == len(stems) else [f"{member.folder}/{member.stem}" for member in members]


@dataclass(frozen=True)
class Element:
    """An element of an XML file at its end: path of names from the root, attributes, text, and line of its start."""

    path: str
    attributes: Mapping[str, str]
    text: str
    line: int


def walk_xml(
    member: Member, root: str, of: str, begin: Callable[[Element], None], end: Callable[[Element], None]
) -> None:
    """Call `begin` and `end` for each element of a file, in its order.

    Args:
        member: the file.
        root: name that its root element must have.
        of: the format, for messages.
        begin, end: are given the element; at its begin it has no text.

    Raises:
        InputError: no XML, another root, entities that are declared; with file and line.
    """
    parser = expat.ParserCreate()
    path: list[str] = []
    open_elements: list[tuple[Mapping[str, str], int]] = []
    text = ""

    def start(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal text
        if not path and name != root:
            message = f"expected the element '{root}' of {of}, got {shown(name)}"
            raise InputError(message, Place(member.name, parser.CurrentLineNumber))
        if len(path) > DEEPEST:
            raise InputError("nested too deeply", Place(member.name, parser.CurrentLineNumber))
        path.append(name)
        open_elements.append((attributes, parser.CurrentLineNumber))
        text = ""
        begin(Element("/".join(path), attributes, "", parser.CurrentLineNumber))

    def stop(_: str) -> None:
        nonlocal text
        attributes, line = open_elements.pop()
        end(Element("/".join(path), attributes, text.strip(), line))
        path.pop()
        text = ""

    def entity(*_: object) -> None:
        raise InputError("an XML file that declares entities is not read", Place(member.name))

    def characters(piece: str) -> None:
        nonlocal text
        text += piece

    parser.StartElementHandler, parser.EndElementHandler = start, stop
    parser.CharacterDataHandler, parser.EntityDeclHandler = characters, entity
    try:
        parser.Parse(member.raw, True)
    except expat.ExpatError as error:
        message = f"not readable as XML: {expat.ErrorString(error.code)}"
        raise InputError(message, Place(member.name, error.lineno)) from None


def gathered_set(
    name: str,
    labels: Gathered,
    results: Gathered,
    reading: Reading | None,
    columns: Mapping[str, str] | None,
    notes: Mapping[str, object] | None = None,
) -> DetectionSet:
    """The checked set of a format whose objects are gathered; `columns` as of tables."""
    columns = check_columns(columns or {})
    tables = labels.table(columns), results.table(columns)
    records = [labels.source.record, results.source.record]
    return table_set(name, *tables, list(labels.each_frame()), reading, records, notes=notes)


def image_frames(members: Iterable[Member], images: Iterable[tuple[str, str]] = ()) -> Frames:
    """The frames of label files, and of further images (stem, folder).

    Where files stand in several folders, these are the sequences; a single one says nothing of how images were taken.

    Raises:
        InputError: two files have one stem.
    """
    folders = dict(images)
    for stem, member in by_name(members, "image").items():
        folders[stem] = member.folder
    names = tuple(sorted(folders))
    own = [folders[name] or NO_SEQUENCE for name in names]
    if len(set(own)) < 2:
        own = [NO_SEQUENCE] * len(own)
    return Frames.of(names, own)
