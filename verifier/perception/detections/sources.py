"""Where detections are read from: a file, a folder of files, or a zip archive of files.

An archive is read in memory, never unpacked to disk. Its size is limited by what its directory declares, and
reading stops at the declared size, so that an archive that unfolds without end is refused before it is read.

How to read: the settings that every reader shares, and what of them is written down.

A fault in the input is an error that names file and line. A fault of a kind that `ignore` names is left out
instead, and the number left out is recorded in `origin["ignored"]`.

Large JSON files into columns: decoded by orjson, then one column at a time, without a Python object per box.
When something does not fit, the elements are looked at one by one, to name the first faulty one.
"""

from __future__ import annotations

import hashlib
import math
import zipfile
import zlib
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.base.errors import InputError, Place, check_known, shown
from verifier.base.files import LARGEST_SOURCE, decoded, json_value, read_bytes
from verifier.base.libraries import library
from verifier.perception.detections.classmap import ClassMap, files_of_part, is_part
from verifier.perception.settings import DontCare, FrameNames


class NoFilesError(InputError):
    """A folder or an archive without a file of the kind that was looked for."""


MOST_FILES = 500_000
"""Files of one folder or archive; more is refused."""


@dataclass(frozen=True)
class Member:
    """One file: `name` for messages, `stem` without folder and suffix, `folder` it stands in, and its bytes."""

    name: str
    stem: str
    folder: str
    raw: bytes


def by_name(
    members: Iterable[Member], what: str, name_of: Callable[[Member], str] = lambda member: member.stem
) -> dict[str, Member]:
    """The files by the names of what they are of, such as frames; InputError where one has two files."""
    named: dict[str, Member] = {}
    for member in members:
        name = name_of(member)
        if name in named:
            raise InputError(f"{what} {shown(name)} has a second file, {named[name].name}", Place(member.name))
        named[name] = member
    return named


@dataclass(frozen=True)
class Source:
    """The files found, and what of them is recorded: role, name, number of files, SHA-256."""

    members: tuple[Member, ...]
    record: dict[str, Any]


def read_source(path: str | Path, role: str, suffix: str = ".txt") -> Source:
    """All files with the given suffix in the folder or zip archive `path`, or `path` itself if it is another file.

    Files come in the order of their names. The SHA-256 is that of the one file or archive; of a folder it is
    that of the lines "<SHA-256 of the file>  <name>" in the same order.

    Raises:
        NoFilesError: no such file in the folder or archive.
        InputError: nothing there, unreadable, too large, an encrypted or damaged archive, unsafe names in it.
    """
    target = Path(path)
    if target.is_dir():
        members = tuple(_folder(target, str(path), suffix, files_of_part(role)))
        lines = "".join(f"{hashlib.sha256(member.raw).hexdigest()}  {member.name}\n" for member in members)
        digest = hashlib.sha256(lines.replace(f"  {path}/", "  ").encode()).hexdigest()
    else:
        raw = read_bytes(path)
        digest = hashlib.sha256(raw).hexdigest()
        if zipfile.is_zipfile(target):
            members = tuple(_archive(target, str(path), suffix))
        else:
            members = (Member(str(path), target.stem, target.parent.name, raw),)
    if not members and not is_part():
        raise NoFilesError(f"no file *{suffix} in it", Place(str(path)))
    record = {"role": role, "name": target.name, "files": len(members), "sha256": digest}
    return Source(members, record)


def digest_record(role: str, path: str | Path, raw: bytes) -> dict[str, Any]:
    """What is recorded of one file: role, name without folders, number of files, SHA-256."""
    return {"role": role, "name": Path(path).name, "files": 1, "sha256": hashlib.sha256(raw).hexdigest()}


def _check_sizes(sizes: Collection[int], place: Place) -> None:
    """Refuse too many files, or files of so many bytes together."""
    if len(sizes) > MOST_FILES:
        raise InputError(f"it has {len(sizes)} files; at most {MOST_FILES} are read", place)
    if sum(sizes) > LARGEST_SOURCE:
        raise InputError(f"it holds {sum(sizes)} bytes; at most {LARGEST_SOURCE} are read", place)


def _folder(folder: Path, shown_as: str, suffix: str, only: Collection[str] | None) -> Iterator[Member]:
    paths = sorted(path for path in folder.rglob(f"*{suffix}") if path.is_file())
    paths = paths if only is None else [path for path in paths if str(path) in only]
    _check_sizes([path.stat().st_size for path in paths], Place(shown_as))
    for path in paths:
        name = f"{shown_as}/{path.relative_to(folder).as_posix()}"
        parent = path.parent.name if path.parent != folder else ""
        yield Member(name, path.stem, parent, read_bytes(path))


def _archive(path: Path, shown_as: str, suffix: str) -> Iterator[Member]:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [
                entry for entry in archive.infolist() if not entry.is_dir() and entry.filename.endswith(suffix)
            ]
            entries = [entry for entry in entries if not entry.filename.startswith("__MACOSX/")]
            _check_archive(entries, shown_as)
            for entry in sorted(entries, key=lambda one: one.filename):
                name = PurePosixPath(entry.filename)
                yield Member(f"{shown_as}/{name}", name.stem, name.parent.name, archive.read(entry))
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise InputError(f"not a readable zip archive: {error}", Place(shown_as)) from None


def _check_archive(entries: list[zipfile.ZipInfo], shown_as: str) -> None:
    place = Place(shown_as)
    _check_sizes([entry.file_size for entry in entries], place)
    seen: set[str] = set()
    for entry in entries:
        name = entry.filename
        if name.startswith("/") or "\\" in name or ":" in name or ".." in PurePosixPath(name).parts:
            raise InputError(f"unsafe file name {shown(name)} in the archive", place)
        if entry.flag_bits & 1:
            raise InputError(f"{shown(name)} is encrypted", place, "unpack the archive with its password first")
        if name in seen:
            raise InputError(f"the file {shown(name)} is in the archive twice", place)
        seen.add(name)


IGNORABLE = {
    "unknown_frames": "objects in frames that the ground truth does not list",
    "missing_frames": "frames of the ground truth for which the detector's output has no entry",
    "unknown_classes": "objects whose class no rule of the class map fits, or that the format does not know",
    "faulty_boxes": "boxes that are partly NaN, infinite or of negative size; scores that are not finite",
    "implausible_boxes": "boxes too large or too far away to be in the stated units; scores too large to be any",
    "unknown_depth": "annotations in whose rectangle the depth map knows no depth; they become regions not judged",
}
"""What `Reading.ignore` may name, and what is then left out."""


REACH_M, SIZE_M, PIXELS, TURN_RAD, SCORE = 1000.0, 60.0, 100_000.0, 10.0, 1e9
"""Limits beyond which a box cannot be in the stated units: distance of a centre from the ego; length, width or height
(the longest road vehicles measure 54 m); an image coordinate; a yaw (degrees are larger); the size of a score
(probabilities, per cent, margins and logits are far below; beyond it differences of scores are rounded away)."""


@dataclass(frozen=True)
class Reading:
    """Settings shared by all readers.

    `class_map` None keeps the names of the data set. `ignore` names kinds of `IGNORABLE` that are left out and
    counted instead of refused. `dont_care` "keep" makes regions out of the annotations that a data set marks as
    not to be judged, "drop" leaves them out. `sequences` restricts to the drives or scenes named. `match_frames`
    "stem" takes frames of detections for those of the ground truth whose names have the same stem.

    Raises:
        UsageError: `ignore` names something that does not exist.
    """

    class_map: ClassMap | None = None
    ignore: tuple[str, ...] = ()
    dont_care: DontCare = "keep"
    sequences: tuple[str, ...] | None = None
    match_frames: FrameNames = "name"

    def __post_init__(self) -> None:
        for name in self.ignore:
            check_known("kind of fault to ignore", name, IGNORABLE)

    def frame_index(self, index: Mapping[Any, int], names: Iterable[Any] | None = None) -> Mapping[Any, int]:
        """Where the frames of detections are looked up.

        Args:
            index: the frame of each name, id, or (sequence, name) that the annotations have.
            names: of the frames, in their order, if the keys of the index are no names.

        Raises:
            InputError: two frames have one stem.
        """
        if self.match_frames == "name":
            return index
        return _Stems(index if names is None else {name: at for at, name in enumerate(names)})

    def record(self) -> Mapping[str, object]:
        """The settings as JSON values, for `origin`."""
        rules = None if self.class_map is None else [list(rule) for rule in self.class_map.rules]
        chosen = None if self.sequences is None else list(self.sequences)
        record = {"class_map": rules, "dont_care": self.dont_care, "sequences": chosen}
        return record if self.match_frames == "name" else record | {"match_frames": self.match_frames}


def _stem(key: Any) -> Any:
    """The last part of a name without suffix; of a number without leading zeros."""
    stem = PurePosixPath(str(key).replace("\\", "/")).stem
    return stem.lstrip("0") or "0" if stem.isdecimal() else stem


class _Stems(dict[Any, int]):
    """Frames by the stem of their names, and in their sequence where stems alone are not different."""

    def __init__(self, index: Mapping[Any, int]) -> None:
        pairs = [key if isinstance(key, tuple) else ("", key) for key in index]
        stems = [_stem(name) for _, name in pairs]
        self.alone = len(set(stems)) == len(stems)
        first: dict[Any, Any] = {}
        for key, reduced, frame in zip(index, map(self._reduced, index), index.values(), strict=True):
            if reduced in first:
                text, other = (
                    "/".join(filter(None, row)) if isinstance(row, tuple) else row for row in (first[reduced], key)
                )
                message = f"the frames {shown(text)} and {shown(other)} have one stem"
                raise InputError(message, hint="leave out --match-frames stem, or rename the frames")
            first[reduced] = key
            self[reduced] = frame

    def _reduced(self, key: Any) -> Any:
        sequence, name = key if isinstance(key, tuple) else ("", key)
        return _stem(name) if self.alone else (sequence, _stem(name))

    def get(self, key: Any, default: Any = None) -> Any:
        """The frame whose name has the stem of `key`."""
        return super().get(self._reduced(key), default)


@dataclass(frozen=True)
class Elements:
    """Objects of one file, in its order: `what` they are, and the JSON pointer of each, for messages."""

    items: Sequence[dict[str, Any]]
    file: str
    what: str
    pointer: Callable[[int], str]

    def __post_init__(self) -> None:
        if not set(map(type, self.items)) <= {dict}:
            row = next(row for row, item in enumerate(self.items) if type(item) is not dict)
            raise self.fail(row, "", f"expected an object, got {shown(self.items[row])}")

    def __len__(self) -> int:
        return len(self.items)

    def fail(self, row: int, key: str, message: str) -> InputError:
        """The error for the value under `key` of element `row`."""
        return InputError(message, Place(self.file, path=self.pointer(row) + (f"/{key}" if key else "")))

    def values(self, key: str, default: Any = None) -> list[Any]:
        """The values under `key`; an element without it is an error unless there is a default."""
        try:
            return list(map(itemgetter(key), self.items))
        except KeyError:
            if default is not None:
                return [item.get(key, default) for item in self.items]
            row = next(row for row, item in enumerate(self.items) if key not in item)
            raise self.fail(row, "", f"missing key '{key}'") from None

    def texts(self, key: str, default: str | None = None) -> list[str]:
        """(n) strings."""
        return self._of_type(key, self.values(key, default), (str,), "a string")

    def index(self, key: str) -> dict[Any, int]:
        """The element that has each whole number or string under `key`; InputError where one occurs twice."""
        index: dict[Any, int] = {}
        for row, value in enumerate(self.ids(key)):
            if index.setdefault(value, row) != row:
                raise self.fail(row, key, f"the {key} {shown(value)} occurs twice")
        return index

    def ids(self, key: str) -> list[Any]:
        """(n) whole numbers or strings."""
        return self._of_type(key, self.values(key), (int, str), "a whole number or a string")

    def numbers(self, key: str, default: float | None = None) -> NDArray[np.float64]:
        """(n,) numbers; NaN only where the file says NaN."""
        return self._array(key, self._of_type(key, self.values(key, default), (float, int), "a number"))

    def whole(self, key: str, default: int | None = None) -> NDArray[np.int64]:
        """(n,) whole numbers of at most 64 bits."""
        numbers = self._of_type(key, self.values(key, default), (int,), "a whole number")
        try:
            return np.frombuffer(array("q", numbers), dtype=np.int64)
        except OverflowError:
            row = next(row for row, value in enumerate(numbers) if not -(2**63) <= value < 2**63)
            raise self.fail(row, key, "a whole number of more than 64 bits") from None

    def vectors(self, key: str, width: int, *, unknown: bool = False) -> NDArray[np.float64]:
        """(n, width) numbers; NaN for null, in place of a number or of the list, where they may be unknown."""
        vectors = self.values(key)
        if unknown:
            vectors = [[None] * width if vector is None else vector for vector in vectors]
        vectors = self._of_type(key, vectors, (list,), f"a list of {width} numbers")
        if not set(map(len, vectors)) <= {width}:
            row = next(row for row, value in enumerate(vectors) if len(value) != width)
            raise self.fail(row, key, f"expected a list of {width} numbers, got {shown(vectors[row])}")
        flat = list(chain.from_iterable(vectors))
        if unknown:
            flat = [math.nan if number is None else number for number in flat]
        if not set(map(type, flat)) <= {float, int}:
            row = next(row for row, value in enumerate(flat) if type(value) not in (float, int)) // width
            raise self.fail(row, key, f"expected a list of {width} numbers, got {shown(vectors[row])}")
        return self._array(key, flat).reshape(-1, width)

    def _of_type(self, key: str, values: list[Any], types: tuple[type, ...], wanted: str) -> list[Any]:
        if set(map(type, values)) <= set(types):
            return values
        row = next(row for row, value in enumerate(values) if type(value) not in types)
        raise self.fail(row, key, f"expected {wanted}, got {shown(values[row])}")

    def _array(self, key: str, values: list[Any]) -> NDArray[np.float64]:
        try:
            return np.frombuffer(array("d", values), dtype=np.float64)
        except OverflowError:
            raise InputError(f"{key}: a number too large to be one", Place(self.file)) from None


def load_json(path: Any) -> tuple[Any, bytes]:
    """A decoded JSON file and its bytes. NaN and infinities, which are not JSON, are read as Python writes them.

    Raises:
        InputError: with file, line and column.
    """
    raw = read_bytes(path)
    return decoded_json(raw, str(path)), raw


def decoded_json(raw: bytes, file: str) -> Any:
    """The document in the bytes of a JSON file; errors as `load_json`."""
    orjson = library("orjson")
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        text = decoded(raw, Place(file))
    if not text.strip():
        raise InputError("the file is empty", Place(file))
    return json_value(text, Place(file))


def elements(document: Any, file: str, what: str, key: str = "") -> Elements:
    """The objects of a list: the document itself, or what it holds under `key`."""
    listed = document
    if key:
        if not isinstance(document, dict) or key not in document:
            raise InputError(f"expected an object with the key '{key}'", Place(file))
        listed = document[key]
    return nested([listed], file, what, lambda _: f"/{key}" if key else "")[0]


def nested(
    lists: Sequence[Any], file: str, what: str, pointer: Callable[[int], str]
) -> tuple[Elements, NDArray[np.int64]]:
    """The objects of several lists, each of which stands at its pointer, and (n,) the list of each object."""
    for number, listed in enumerate(lists):
        if not isinstance(listed, list):
            message = f"expected a list of {what}, got {shown(listed)}"
            raise InputError(message, Place(file, path=pointer(number) or None))
    lengths = np.array([len(listed) for listed in lists], dtype=np.int64)
    owner = np.repeat(np.arange(len(lists)), lengths)
    begin = np.cumsum(lengths) - lengths

    def place(row: int) -> str:
        return f"{pointer(int(owner[row]))}/{row - int(begin[owner[row]])}"

    return Elements(list(chain.from_iterable(lists)), file, what, place), owner
