"""Reading and writing the text files of the project: clear errors when reading, all or nothing when writing."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from verifier.errors import InputError, Place, shown

LARGEST_FILE = 256 * 2**20
"""Bytes; a larger text file is refused before it is read."""
LONGEST_NUMBER = 400
"""Digits of a whole number in a JSON file."""


def read_text(path: str | Path, largest: int = LARGEST_FILE) -> tuple[str, bytes]:
    """The text of a UTF-8 file and its bytes.

    Raises:
        InputError: the file is missing, no file, unreadable, larger than `largest` bytes, or not UTF-8.
    """
    place = Place(str(path))
    try:
        size = Path(path).stat().st_size
        if Path(path).is_dir():
            raise InputError("expected a file, found a directory", place)
        if size > largest:
            raise InputError(f"the file has {size} bytes; at most {largest} are read", place)
        with Path(path).open("rb") as stream:
            raw = stream.read(largest + 1)  # a device has no size to look at before
        if len(raw) > largest:
            raise InputError(f"the file has more than {largest} bytes", place)
    except FileNotFoundError:
        raise InputError("no such file", place) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read: {reason}", place) from None
    return decoded(raw, place), raw


def decoded(raw: bytes, place: Place) -> str:
    """The text of UTF-8 bytes that stand at `place`; InputError for another encoding or a NUL byte."""
    for mark, encoding in ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16")):
        if raw.startswith(mark):
            raise InputError(f"expected UTF-8 text, found {encoding}", place, "save the file as UTF-8")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{raw[error.start]:02x}"
        raise InputError(
            f"expected UTF-8 text, found {found}", Place(place.file, line), "save the file as UTF-8"
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError("expected text, found a NUL byte", Place(place.file, line))
    return text


def read_json(path: str | Path) -> tuple[Any, bytes]:
    """A decoded JSON file and its bytes.

    Stricter than the standard library: repeated keys and nesting too deep to decode are refused. NaN and
    infinities come out as floats; whoever expects a number there must refuse them, naming the element.

    Raises:
        InputError: with file, line and column.
    """
    text, raw = read_text(path)
    try:
        return json.loads(text, parse_int=_whole_number, object_pairs_hook=_unique_keys), raw
    except json.JSONDecodeError as error:
        lines = text.split("\n")
        source = lines[error.lineno - 1] if error.lineno <= len(lines) else ""
        place = Place(str(path), error.lineno, error.colno, text=source)
        raise InputError(f"not JSON: {error.msg}", place) from None
    except RecursionError:
        raise InputError("not accepted: nested too deeply", Place(str(path))) from None
    except ValueError as error:
        raise InputError(f"not accepted: {error}", Place(str(path))) from None


def _whole_number(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise ValueError(f"a number has {len(digits)} digits; at most {LONGEST_NUMBER} are read")
    return int(digits)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {shown(key)} occurs twice in one object")
        found[key] = value
    return found


def write_text(path: str | Path, text: str) -> None:
    """Write a UTF-8 file all or nothing: beside its place first, then renamed."""
    write_bytes(path, text.encode())


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a file all or nothing: beside its place first, then renamed.

    A symbolic link is followed. A device or a pipe, such as /dev/stdout, is written to and never replaced.

    Raises:
        InputError: the file cannot be written (no such folder, no permission, disk full); nothing is left over.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file() and not target.is_dir():
            with target.open("wb") as stream:
                stream.write(data)
        else:
            _write_beside(target, data)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be written: {reason}", Place(str(path))) from None


def _write_beside(target: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{target.name[:40]}.", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~umask)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)  # also when interrupted; after the rename there is nothing left
