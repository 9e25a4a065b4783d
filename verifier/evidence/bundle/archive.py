"""Reading a bundle, a folder or a zip archive, as bytes in memory. Whatever it holds, nothing is written or followed.

An archive says about itself what it likes. So its directory is checked before anything is unpacked, names as in
`names`, and what comes out is counted while it comes out: never more than was declared. Nothing in it is compressed,
so nothing can swell. In the end it must be, to the byte, the archive that `writing` makes of these files: there is no
room beside them for anything that is not looked at.
"""

from __future__ import annotations

import os
import stat
import struct
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from verifier.base.errors import InputError, LimitError, Place, shown
from verifier.evidence.bundle.names import LONGEST_PATH, check_paths
from verifier.evidence.bundle.writing import FIRST_DATE, zip_bytes

_ENCRYPTED = 0x1
_SYSTEM_UNIX = 3
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
        files: how many.
    """

    file_bytes: int = 256 * 2**20
    total_bytes: int = 2**30
    files: int = 20_000


DEFAULT_LIMITS = ReadingLimits()


def read_bundle(path: str | Path, limits: ReadingLimits = DEFAULT_LIMITS) -> dict[str, bytes]:
    """Every file of a bundle: path inside it -> content, sorted by path.

    Args:
        path: of a folder, or of a zip archive.
        limits: beyond which a bundle is refused.

    Raises:
        InputError: it is neither, it cannot be read, or it holds what no bundle holds: links, devices, encrypted
            files, unknown compression, names that lead out of it or collide.
        LimitError: it is larger than the limits.
    """
    place = Place(str(path))
    try:
        mode = Path(path).stat().st_mode
        if stat.S_ISDIR(mode):
            found = _read_folder(Path(path), limits, str(path))
        elif stat.S_ISREG(mode):
            found = _read_zip(Path(path), limits, str(path))
        else:
            raise InputError("expected a folder or a zip archive", place)
    except FileNotFoundError:
        raise InputError("no such bundle", place) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", place) from None
    return dict(sorted(found.items()))


def _read_folder(folder: Path, limits: ReadingLimits, bundle: str) -> dict[str, bytes]:
    sizes: dict[str, int] = {}
    for name, size in _walk(folder, "", bundle, 0):
        sizes[name] = size
        _check_count(len(sizes), limits, bundle)
    check_paths(sizes, bundle)
    _check_sizes(sizes, limits, bundle)
    found = {}
    for name, size in sizes.items():
        with _opened(folder / name) as stream:
            found[name] = stream.read(size + 1)
        if len(found[name]) != size:
            raise InputError(f"{shown(name)} changed while it was read", Place(bundle))
    return found


def _opened(path: Path) -> BinaryIO:
    """A file, opened only if it is one and no link, even if it was exchanged a moment ago."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    return os.fdopen(handle, "rb")


def _walk(folder: Path, prefix: str, bundle: str, depth: int) -> Iterator[tuple[str, int]]:
    """Path inside the bundle and size of every file; links and whatever is no file are refused."""
    if depth > _DEEPEST:
        raise InputError(f"folders nest more than {_DEEPEST} deep", Place(bundle))
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            name = prefix + entry.name
            if entry.is_symlink():
                raise InputError(f"{shown(name)} is a link", Place(bundle), "a bundle holds files and folders only")
            if entry.is_dir(follow_symlinks=False):
                empty = True
                for found in _walk(folder / entry.name, name + "/", bundle, depth + 1):
                    empty = False
                    yield found
                if empty:
                    raise InputError(f"{shown(name)} is an empty folder, which no bundle holds", Place(bundle))
            elif entry.is_file(follow_symlinks=False):
                yield name, entry.stat(follow_symlinks=False).st_size
            else:
                raise InputError(f"{shown(name)} is no file", Place(bundle), "a bundle holds files and folders only")


def _read_zip(path: Path, limits: ReadingLimits, bundle: str) -> dict[str, bytes]:
    if path.stat().st_size > limits.total_bytes:
        raise LimitError(f"the archive has more than {limits.total_bytes} bytes", Place(bundle))
    try:
        _check_directory(path, limits, bundle)
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
            _check_count(len(infos), limits, bundle)
            for info in infos:
                _check_info(info, bundle)
            check_paths([info.filename for info in infos], bundle)
            _check_sizes({info.filename: info.file_size for info in infos}, limits, bundle)
            found = {info.filename: _unpacked(archive, info, bundle) for info in infos}
            date = infos[0].date_time if infos else FIRST_DATE
        _check_rest(path.read_bytes(), zip_bytes(found, date), bundle)
        return found
    except zipfile.BadZipFile as error:
        raise InputError(f"no sound zip archive: {error}", Place(bundle)) from None
    except (NotImplementedError, RuntimeError, EOFError) as error:
        raise InputError(f"the archive cannot be unpacked: {error}", Place(bundle)) from None


def _check_directory(path: Path, limits: ReadingLimits, bundle: str) -> None:
    """Refuse a directory of more or longer entries than a bundle has, before it is read: each takes memory."""
    with path.open("rb") as stream:
        start = max(0, stream.seek(0, os.SEEK_END) - _LOCATOR_BYTES - _END.size)
        stream.seek(start)
        tail = stream.read()
    end = tail[-_END.size :]
    if len(end) < _END.size or not end.startswith(_END_MARK):
        raise InputError(
            "no sound zip archive: it does not end as verify evidence build writes it",
            Place(bundle),
            "if it was packed again by another program, unpack it and check the folder",
        )
    if tail[: -_END.size].startswith(_LOCATOR_MARK):
        raise InputError("a zip64 archive, which no bundle is", Place(bundle))
    _, _, _, _, _, size, _, _ = _END.unpack(end)
    if size > limits.files * _LARGEST_ENTRY:
        raise LimitError(f"a directory of {size} bytes, too many for {limits.files} files", Place(bundle))


def _check_info(info: zipfile.ZipInfo, bundle: str) -> None:
    """Refuse an entry that is anything but a plain file."""
    name, kind = shown(info.orig_filename), info.external_attr >> 16
    if info.orig_filename != info.filename:
        raise InputError(f"{name}: a name with a NUL byte or foreign separators", Place(bundle))
    if info.is_dir():
        raise InputError(f"{name}: an entry for a folder, which no bundle has", Place(bundle))
    if stat.S_IFMT(kind) not in (0, stat.S_IFREG) and info.create_system == _SYSTEM_UNIX:
        raise InputError(f"{name} is a link or a device", Place(bundle), "a bundle holds files only")
    if info.flag_bits & _ENCRYPTED:
        raise InputError(f"{name} is encrypted", Place(bundle))
    if info.compress_type != zipfile.ZIP_STORED:
        raise InputError(
            f"{name} is compressed (method {info.compress_type}), as no bundle is",
            Place(bundle),
            "if it was packed again by another program, unpack it and check the folder",
        )


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, bundle: str) -> bytes:
    """The content, which may not be longer or shorter than declared."""
    pieces, size = [], 0
    with archive.open(info) as stream:
        while piece := stream.read(_PIECE):
            size += len(piece)
            if size > info.file_size:
                break
            pieces.append(piece)
    if size != info.file_size:
        raise InputError(f"{shown(info.filename)} does not have the size that the archive declares", Place(bundle))
    return b"".join(pieces)


def _check_rest(raw: bytes, written: bytes, bundle: str) -> None:
    """Refuse an archive with anything beside its files: then no byte of it is left unchecked."""
    if raw != written:
        at = next((k for k, pair in enumerate(zip(raw, written, strict=False)) if pair[0] != pair[1]), None)
        where = min(len(raw), len(written)) if at is None else at
        raise InputError(
            f"byte {where} of the archive is not as verify evidence build writes it",
            Place(bundle),
            "if it was packed again by another program, unpack it and check the folder",
        )


def _check_count(count: int, limits: ReadingLimits, bundle: str) -> None:
    if count > limits.files:
        raise LimitError(f"more than {limits.files} files", Place(bundle))


def _check_sizes(sizes: Mapping[str, int], limits: ReadingLimits, bundle: str) -> None:
    for name, size in sizes.items():
        if size > limits.file_bytes:
            raise LimitError(f"{shown(name)} has {size} bytes; at most {limits.file_bytes} are read", Place(bundle))
    total = sum(sizes.values())
    if total > limits.total_bytes:
        raise LimitError(
            f"the files have {total} bytes together; at most {limits.total_bytes} are read", Place(bundle)
        )
