"""Reading a bundle, a folder or a zip archive, as bytes in memory. Whatever it holds, nothing is written or followed.

An archive says about itself what it likes. So its directory is checked before anything is unpacked, names as in
`layout`, and what comes out is counted while it comes out: never more than was declared. Nothing in it is compressed,
so nothing can swell. In the end it must be, to the byte, the archive that is made of these files: there is no
room beside them for anything that is not looked at.

Writing a bundle, all or nothing: beside its place first, then renamed. Equal files give equal bytes.

A zip archive has its entries sorted by name, with one date (that of SOURCE_DATE_EPOCH, else the format's first day,
1980-01-01), the permissions rw-r--r--, and no compression: what a compressor writes differs between its versions.
"""

import io
import os
import stat
import struct
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from verifier.base.errors import InputError, LimitError, Place, UsageError, shown
from verifier.base.files import stated_second, write_bytes
from verifier.evidence.paths import LONGEST_PATH, check_paths

Date: TypeAlias = tuple[int, int, int, int, int, int]

FIRST_DATE: Date = (1980, 1, 1, 0, 0, 0)
_LAST_YEAR = 2107
_MODE = 0o100644
_CREATED_ON_UNIX = 3


def check_target(target: str | Path, force: bool) -> None:
    """Refuse a place that cannot be written to, before anything is computed.

    An existing file or folder is replaced only with `force`; a folder only if it holds a manifest or nothing.

    Raises:
        InputError: there is something that is not replaced, or no folder that can be written to.
        UsageError: SOURCE_DATE_EPOCH is no time that an archive can hold.
    """
    path = Path(target)
    place = Place(str(target) or "''")
    if not str(target) or not path.absolute().parent.is_dir():
        raise InputError("cannot be written: no such folder", place)
    try:
        tempfile.TemporaryFile(dir=path.absolute().parent).close()
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", place) from None
    if is_archive(path):
        _date()
    if path.is_symlink():
        raise InputError("is a link, which is not replaced", place)
    if not path.exists():
        return
    if not force:
        raise InputError("exists already", place, "name another place, or replace it with --force")
    if is_archive(path) != path.is_file():
        raise InputError("exists already and is of the other kind, folder or archive", place)
    if path.is_dir() and any(path.iterdir()) and not (path / "manifest.json").is_file():
        raise InputError("is a folder that is no bundle, which is not replaced", place)


def is_archive(target: str | Path) -> bool:
    """Whether a bundle of this name is a zip archive and no folder."""
    return Path(target).suffix.lower() == ".zip"


def write_bundle(files: Mapping[str, bytes], target: str | Path, force: bool = False) -> None:
    """Write a bundle: a zip archive if the name ends in `.zip`, else a folder.

    Raises:
        InputError: as `check_target`, or writing failed; then nothing is left over.
        UsageError: as `check_target`.
    """
    check_target(target, force)
    check_paths(files, str(target))
    if is_archive(target):
        write_bytes(target, zip_bytes(files, _date()))
    else:
        _write_folder(files, Path(target))


def zip_bytes(files: Mapping[str, bytes], date: Date = FIRST_DATE) -> bytes:
    """The bytes of the archive of some files, each with this date."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, date)
            info.create_system = _CREATED_ON_UNIX
            info.external_attr = _MODE << 16
            archive.writestr(info, files[name])
    return stream.getvalue()


def _date() -> Date:
    """The date of the entries; UsageError as `write_bundle`."""
    moment = time.gmtime(stated_second() or 0)
    if moment.tm_year < FIRST_DATE[0]:
        return FIRST_DATE
    if moment.tm_year > _LAST_YEAR:
        raise UsageError(f"SOURCE_DATE_EPOCH: a zip archive holds no date after {_LAST_YEAR}")
    return moment[:6]


def _write_folder(files: Mapping[str, bytes], target: Path) -> None:
    place = Place(str(target))
    beside = target.absolute().parent
    try:
        with tempfile.TemporaryDirectory(prefix=f".{target.name[:40]}.", dir=beside) as name:
            made, old = Path(name) / "new", Path(name) / "old"
            made.mkdir()
            for path in sorted(files):
                file = made / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(files[path])
            try:
                if target.exists():
                    target.rename(old)
                made.rename(target)
            finally:
                if old.exists() and not target.exists():  # interrupted in between: what was there comes back
                    old.rename(target)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", place) from None


_ENCRYPTED = 0x1
_UNPACK = "if it was packed again by another program, unpack it and check the folder"
_FILES_ONLY = "a bundle holds files and folders only"
_PIECE = 2**20
_END = struct.Struct("<4s4H2IH")
"""The record at the end of an archive: mark, two disks, entries on this disk and in all, size and start of the
directory, length of a comment."""
_END_MARK = b"PK\x05\x06"
_LOCATOR_MARK = b"PK\x06\x07"
_LOCATOR_BYTES = 20
_LARGEST_ENTRY = 46 + LONGEST_PATH
"""Bytes of an entry of the directory."""
_DEEPEST = 20


@dataclass(frozen=True)
class ReadingLimits:
    """What a bundle may have at most.

    Attributes:
        file_bytes: of one file, unpacked.
        total_bytes: of all files together, unpacked; an archive itself may not be larger either.
    """

    file_bytes: int = 256 * 2**20
    total_bytes: int = 2**30
    files: int = 20_000


DEFAULT_LIMITS = ReadingLimits()


def read_bundle(path: str | Path, limits: ReadingLimits = DEFAULT_LIMITS) -> dict[str, bytes]:
    """Every file of a bundle: path inside it -> content, sorted by path.

    Raises:
        InputError: it is neither, it cannot be read, or it holds what no bundle holds: links, devices, encrypted
            files, unknown compression, names that lead out of it or collide.
        LimitError: it is larger than the limits.
    """
    place = Place(str(path))
    try:
        mode = Path(path).stat().st_mode
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            raise InputError("expected a folder or a zip archive")
        files = (_read_folder if stat.S_ISDIR(mode) else _read_zip)(Path(path), limits)
    except InputError as error:
        raise type(error)(error.message, place, error.hint) from None
    except FileNotFoundError:
        raise InputError("no such bundle", place) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", place) from None
    return dict(sorted(files.items()))


def _read_folder(folder: Path, limits: ReadingLimits) -> dict[str, bytes]:
    sizes: dict[str, int] = {}
    for name, size in _walk(folder, "", 0):
        sizes[name] = size
        _check_count(len(sizes), limits)
    check_paths(sizes)
    _check_sizes(sizes, limits)
    files = {}
    for name, size in sizes.items():
        # Opened only if it is a file and no link, even if it was exchanged a moment ago.
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with os.fdopen(os.open(folder / name, flags), "rb") as stream:
            files[name] = stream.read(size + 1)
        if len(files[name]) != size:
            raise InputError(f"{shown(name)} changed while it was read")
    return files


def _walk(folder: Path, prefix: str, depth: int) -> Iterator[tuple[str, int]]:
    """Path inside the bundle and size of every file; links and whatever is no file are refused."""
    if depth > _DEEPEST:
        raise InputError(f"folders nest more than {_DEEPEST} deep")
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda one: one.name):
            name = prefix + entry.name
            if entry.is_symlink():
                raise InputError(f"{shown(name)} is a link", hint=_FILES_ONLY)
            if entry.is_dir(follow_symlinks=False):
                empty = True
                for file in _walk(folder / entry.name, name + "/", depth + 1):  # one by one: they are counted
                    empty = False
                    yield file
                if empty:
                    raise InputError(f"{shown(name)} is an empty folder, which no bundle holds")
            elif entry.is_file(follow_symlinks=False):
                yield name, entry.stat(follow_symlinks=False).st_size
            else:
                raise InputError(f"{shown(name)} is no file", hint=_FILES_ONLY)


def _read_zip(path: Path, limits: ReadingLimits) -> dict[str, bytes]:
    if path.stat().st_size > limits.total_bytes:
        raise LimitError(f"the archive has more than {limits.total_bytes} bytes")
    try:
        _check_directory(path, limits)
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
            _check_count(len(infos), limits)
            for info in infos:
                _check_info(info)
            check_paths([info.filename for info in infos])
            _check_sizes({info.filename: info.file_size for info in infos}, limits)
            files = {info.filename: _unpacked(archive, info) for info in infos}
            date = infos[0].date_time if infos else FIRST_DATE
    except zipfile.BadZipFile as error:
        raise InputError(f"no sound zip archive: {error}") from None
    except (NotImplementedError, RuntimeError, EOFError) as error:
        raise InputError(f"the archive cannot be unpacked: {error}") from None
    raw, written = path.read_bytes(), zip_bytes(files, date)
    if raw != written:  # anything beside its files: then no byte of it is left unchecked
        where = next((k for k, pair in enumerate(zip(raw, written, strict=False)) if pair[0] != pair[1]), None)
        where = min(len(raw), len(written)) if where is None else where
        raise InputError(f"byte {where} of the archive is not as verify evidence build writes it", hint=_UNPACK)
    return files


def _check_directory(path: Path, limits: ReadingLimits) -> None:
    """Refuse a directory of more or longer entries than a bundle has, before it is read: each takes memory."""
    with path.open("rb") as stream:
        start = max(0, stream.seek(0, os.SEEK_END) - _LOCATOR_BYTES - _END.size)
        stream.seek(start)
        tail = stream.read()
    end = tail[-_END.size :]
    if len(end) < _END.size or not end.startswith(_END_MARK):
        raise InputError("no sound zip archive: it does not end as verify evidence build writes it", hint=_UNPACK)
    if tail[: -_END.size].startswith(_LOCATOR_MARK):
        raise InputError("a zip64 archive, which no bundle is")
    _, _, _, _, _, size, _, _ = _END.unpack(end)
    if size > limits.files * _LARGEST_ENTRY:
        raise LimitError(f"a directory of {size} bytes, too many for {limits.files} files")


def _check_info(info: zipfile.ZipInfo) -> None:
    """Refuse an entry that is anything but a plain file."""
    name, kind = shown(info.orig_filename), info.external_attr >> 16
    if info.orig_filename != info.filename:
        raise InputError(f"{name}: a name with a NUL byte or foreign separators")
    if info.is_dir():
        raise InputError(f"{name}: an entry for a folder, which no bundle has")
    if stat.S_IFMT(kind) not in (0, stat.S_IFREG) and info.create_system == _CREATED_ON_UNIX:
        raise InputError(f"{name} is a link or a device", hint="a bundle holds files only")
    if info.flag_bits & _ENCRYPTED:
        raise InputError(f"{name} is encrypted")
    if info.compress_type != zipfile.ZIP_STORED:
        raise InputError(f"{name} is compressed (method {info.compress_type}), as no bundle is", hint=_UNPACK)


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The content, which may not be longer or shorter than declared."""
    pieces, size = [], 0
    with archive.open(info) as stream:
        while piece := stream.read(_PIECE):
            size += len(piece)
            if size > info.file_size:
                break
            pieces.append(piece)
    if size != info.file_size:
        raise InputError(f"{shown(info.filename)} does not have the size that the archive declares")
    return b"".join(pieces)


def _check_count(count: int, limits: ReadingLimits) -> None:
    if count > limits.files:
        raise LimitError(f"more than {limits.files} files")


def _check_sizes(sizes: Mapping[str, int], limits: ReadingLimits) -> None:
    for name, size in sizes.items():
        if size > limits.file_bytes:
            raise LimitError(f"{shown(name)} has {size} bytes; at most {limits.file_bytes} are read")
    total = sum(sizes.values())
    if total > limits.total_bytes:
        raise LimitError(f"the files have {total} bytes together; at most {limits.total_bytes} are read")
