"""Writing a bundle, all or nothing: beside its place first, then renamed. Equal files give equal bytes.

A zip archive has its entries sorted by name, with one date (that of SOURCE_DATE_EPOCH, else the format's first day,
1980-01-01), the permissions rw-r--r--, and no compression: what a compressor writes differs between its versions.
"""

from __future__ import annotations

import io
import os
import tempfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from verifier.base.errors import InputError, Place, UsageError, shown
from verifier.base.files import write_bytes
from verifier.evidence.bundle.names import check_paths

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
    text = os.environ.get("SOURCE_DATE_EPOCH")
    if text is None:
        return FIRST_DATE
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise UsageError(f"SOURCE_DATE_EPOCH: expected seconds since 1970 as a whole number, got {shown(text)}")
    moment = time.gmtime(int(text))
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
