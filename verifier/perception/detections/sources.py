"""Where detections are read from: a file, a folder of files, or a zip archive of files.

An archive is read in memory, never unpacked to disk. Its size is limited by what its directory declares, and
reading stops at the declared size, so that an archive that unfolds without end is refused before it is read.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from verifier.base.errors import InputError, Place, shown
from verifier.base.files import LARGEST_SOURCE, read_bytes

MOST_FILES = 500_000
"""Files of one folder or archive; more is refused."""


@dataclass(frozen=True)
class Member:
    """One file: `name` for messages, `stem` without folder and suffix, `folder` it stands in, and its bytes."""

    name: str
    stem: str
    folder: str
    raw: bytes


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
        InputError: nothing there, unreadable, too large, an encrypted or damaged archive, unsafe names in it.
    """
    target = Path(path)
    if target.is_dir():
        members = tuple(_folder(target, str(path), suffix))
        lines = "".join(f"{hashlib.sha256(each.raw).hexdigest()}  {each.name}\n" for each in members)
        digest = hashlib.sha256(lines.replace(f"  {path}/", "  ").encode()).hexdigest()
    else:
        raw = read_bytes(path)
        digest = hashlib.sha256(raw).hexdigest()
        if zipfile.is_zipfile(target):
            members = tuple(_archive(target, str(path), suffix))
        else:
            members = (Member(str(path), target.stem, target.parent.name, raw),)
    if not members:
        raise InputError(f"no file *{suffix} in it", Place(str(path)))
    record = {"role": role, "name": target.name, "files": len(members), "sha256": digest}
    return Source(members, record)


def digest_record(role: str, path: str | Path, raw: bytes) -> dict[str, Any]:
    """What is recorded of one file: role, name without folders, number of files, SHA-256."""
    return {"role": role, "name": Path(path).name, "files": 1, "sha256": hashlib.sha256(raw).hexdigest()}


def _check_size(size: int, place: Place) -> None:
    if size > LARGEST_SOURCE:
        raise InputError(f"it holds {size} bytes; at most {LARGEST_SOURCE} are read", place)


def _folder(folder: Path, shown_as: str, suffix: str) -> Iterator[Member]:
    found = sorted(each for each in folder.rglob(f"*{suffix}") if each.is_file())
    if len(found) > MOST_FILES:
        raise InputError(f"it has {len(found)} files; at most {MOST_FILES} are read", Place(shown_as))
    _check_size(sum(each.stat().st_size for each in found), Place(shown_as))
    for each in found:
        name = f"{shown_as}/{each.relative_to(folder).as_posix()}"
        parent = each.parent.name if each.parent != folder else ""
        yield Member(name, each.stem, parent, read_bytes(each))


def _archive(path: Path, shown_as: str, suffix: str) -> Iterator[Member]:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [each for each in archive.infolist() if not each.is_dir() and each.filename.endswith(suffix)]
            entries = [each for each in entries if not each.filename.startswith("__MACOSX/")]
            _check_archive(entries, shown_as)
            for entry in sorted(entries, key=lambda each: each.filename):
                name = PurePosixPath(entry.filename)
                yield Member(f"{shown_as}/{name}", name.stem, name.parent.name, archive.read(entry))
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise InputError(f"not a readable zip archive: {error}", Place(shown_as)) from None


def _check_archive(entries: list[zipfile.ZipInfo], shown_as: str) -> None:
    place = Place(shown_as)
    if len(entries) > MOST_FILES:
        raise InputError(f"it has {len(entries)} files; at most {MOST_FILES} are read", place)
    _check_size(sum(each.file_size for each in entries), place)
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
