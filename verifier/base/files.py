"""Reading and writing the text files of the project: clear errors when reading, all or nothing when writing."""

import contextlib
import csv
import hashlib
import io
import json
import math
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verifier.base.checksums import with_checksums
from verifier.base.documents import json_values
from verifier.base.errors import InputError, LimitError, Place, UsageError, one_line, shown
from verifier.base.numbers import LARGEST_NUMBER, extreme_numbers, significant

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

LARGEST_FILE = 256 * 2**20
"""Bytes; a larger text file is refused before it is read."""
LARGEST_SOURCE = 4 * 2**30
"""Bytes of one file of data, or of one archive's files together; more is refused before it is read."""
LAST_SECOND = 253_402_300_799
"""Of the year 9999."""
LONGEST_NUMBER = 400
"""Digits of a whole number in a JSON file."""
OPEN_FILES = re.compile(r"/proc/\d+(/task/\d+)?/fd|/dev/fd")
"""Folders whose entries are the files that a process holds open."""
MOST_LINKS = 40
"""As many links in a row are followed, like the kernel does."""
_HASHES: ContextVar[dict[str, str] | None] = ContextVar("hashes", default=None)
FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""How a text begins that a spreadsheet would compute, in full width too."""


def read_text(path: str | Path, largest: int = LARGEST_FILE) -> tuple[str, bytes]:
    """The text of a UTF-8 file and its bytes.

    Raises:
        InputError: the file is missing, no file, unreadable, larger than `largest` bytes, or not UTF-8.
    """
    raw = read_bytes(path, largest)
    return decoded(raw, Place(str(path))), raw


def read_bytes(path: str | Path, largest: int = LARGEST_SOURCE) -> bytes:
    """The bytes of a file.

    Raises:
        InputError: the file is missing, no file, unreadable, or larger than `largest` bytes; or within
            `hashes_of_files` it is not what was read before.
    """
    place = Place(str(path))
    try:
        size = Path(path).stat().st_size
        if Path(path).is_dir():
            raise InputError("expected a file, found a directory", place)
        if size > largest:
            raise InputError(f"the file has {size} bytes; at most {largest} are read", place)
        with Path(path).open("rb") as stream:
            raw = b"".join(_pieces(stream, size + 1, largest + 1))  # a device has no size, and a file may grow
        if len(raw) > largest:
            raise InputError(f"the file has more than {largest} bytes", place)
    except FileNotFoundError:
        raise InputError("no such file", place) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read: {reason}", place) from None
    hashes = _HASHES.get()
    if hashes is not None:
        digest = hashlib.sha256(raw).hexdigest()
        if hashes.setdefault(os.path.realpath(path), digest) != digest:
            raise InputError("the file has changed since it was first read", place)
    return raw


def _pieces(stream: io.BufferedReader, expected: int, most: int) -> Iterator[bytes]:
    """What a stream has, at most so many bytes: to ask for more than there is takes the memory for it as well."""
    while most > 0 and (piece := stream.read(min(expected, most))):
        yield piece
        most -= len(piece)
        expected = 1 << 24


def stated_second() -> int | None:
    """The time of SOURCE_DATE_EPOCH, in seconds since 1970, instead of that of the clock; None where it is not set.

    Raises:
        UsageError: it is set and is no time before the year 10000, the last that dates of Python reach.
    """
    text = os.environ.get("SOURCE_DATE_EPOCH")
    if text is not None and not (text.isascii() and text.isdigit() and len(text) <= 12 and int(text) <= LAST_SECOND):
        raise UsageError(f"SOURCE_DATE_EPOCH: expected seconds since 1970 as a whole number, got {shown(text)}")
    return None if text is None else int(text)


def named_file(option: str, text: str) -> tuple[str, str]:
    """The name and the file of an argument `NAME=FILE`; no name for a file alone, also for one with = in its name.

    Raises:
        UsageError: the name cannot be printed, or one of both is empty.
    """
    name, equals, path = (part.strip() for part in text.partition("="))
    if not equals or Path(text).exists():
        name, path = "", text
    if not path or not name.isprintable() or (equals and not name and path != text):
        raise UsageError(f"{option}: expected FILE or NAME=FILE, got {shown(text)}")
    return name, path


def named_files(option: str, texts: Iterable[str]) -> dict[str, str]:
    """Name -> file of each argument `NAME=FILE`; a file without a name is called after itself.

    Raises:
        UsageError: as `named_file`, or a name is given twice.
    """
    files: dict[str, str] = {}
    for text in texts:
        name, path = named_file(option, text)
        name = name or Path(path).stem
        if name in files:
            raise UsageError(f"{option}: two are called {shown(name)}: name them, as {option} NAME=FILE")
        files[name] = path
    return files


@contextlib.contextmanager
def hashes_of_files() -> Iterator[dict[str, str]]:
    """Real path -> SHA-256 of the bytes of every file that `read_bytes` and `read_text` read within."""
    hashes: dict[str, str] = {}
    token = _HASHES.set(hashes)
    try:
        yield hashes
    finally:
        _HASHES.reset(token)


def decoded(raw: bytes, place: Place) -> str:
    """The text of UTF-8 bytes that stand at `place`; InputError for another encoding or a NUL byte."""
    for mark, encoding in ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16")):
        if raw.startswith(mark):
            raise InputError(f"expected UTF-8 text, found {encoding}", place, "save the file as UTF-8")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{raw[error.start]:02x}"
        raise InputError(
            f"expected UTF-8 text, found {byte}", Place(place.file, line), "save the file as UTF-8"
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
    return json_value(text, Place(str(path))), raw


def json_value(text: str, where: Place) -> Any:
    """The decoded JSON of a text that stands in the file of `where`; errors as `read_json`."""
    try:
        return json.loads(text, parse_int=_whole_number, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        lines = text.split("\n")
        source = lines[error.lineno - 1] if error.lineno <= len(lines) else ""
        place = Place(where.file, error.lineno, error.colno, text=source)
        raise InputError(f"not JSON: {error.msg}", place) from None
    except RecursionError:
        raise InputError("not accepted: nested too deeply", where) from None
    except ValueError as error:
        raise InputError(f"not accepted: {error}", where) from None


def json_of(raw: bytes, file: str) -> Any:
    """The decoded JSON of the bytes of a file; errors as `read_json`."""
    place = Place(file)
    return json_value(decoded(raw, place), place)


def _whole_number(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise ValueError(f"a number has {len(digits)} digits; at most {LONGEST_NUMBER} are read")
    return int(digits)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, object]:
    members: dict[str, object] = {}
    for key, value in pairs:
        if key in members:
            raise ValueError(f"the key {shown(key)} occurs twice in one object")
        members[key] = value
    return members


def document_text(document: Any) -> str:
    """A document, a dataclass or JSON values, as the text that is written: indented, ending with a line end; with
    checksums, if it is a result.

    Raises:
        LimitError: it holds a number that no reader takes, as something that was given is too large or too small.
        ValueError: it holds NaN or an infinity, which JSON does not have.
    """
    values = json_values(document)
    for pointer, value in extreme_numbers(values):
        if abs(value) < math.inf:
            raise LimitError(
                f"the result would hold {significant(value)} at {pointer}, and numbers of results go up to "
                f"{LARGEST_NUMBER:g}",
                hint="give a number of a size that something has",
            )
    return with_checksums(json.dumps(values, indent=2, allow_nan=False) + "\n")


def ending_of(option: str, path: str | Path, endings: Iterable[str]) -> str:
    """The ending of an output that is one of these, in small letters; UsageError, which names the option."""
    ending = Path(path).suffix.lower()
    if ending not in endings:
        name = one_line(Path(path).name)
        raise UsageError(f"{option}: expected a file name ending in {', '.join(endings)}, got {name}")
    return ending


def make_folder(path: str | Path) -> None:
    """Make a folder, and those above it, unless it is there. Raises InputError: it cannot be made."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder cannot be made: {error.strerror}", Place(str(path))) from error


def write_text(path: str | Path, text: str) -> None:
    """Write a UTF-8 file all or nothing: beside its place first, then renamed."""
    write_bytes(path, text.encode())


def write_bytes(path: str | Path, *parts: "ReadableBuffer") -> None:
    """Write a file all or nothing, one part after the other: beside its place first, then renamed.

    A symbolic link is followed. A device or a pipe is written to and never replaced; so is what is already open
    under a name such as /dev/stdout, a file behind it is written at its end.

    Raises:
        InputError: the file cannot be written (no such folder, no permission, disk full); nothing is left over.
    """
    given = Path(path)
    try:
        if _is_open_file(given):
            with given.open("ab") as stream:  # a shell's >> has put it behind what is there
                stream.writelines(parts)
        elif given.exists() and not given.is_file() and not given.is_dir():
            with given.open("wb") as stream:
                stream.writelines(parts)
        else:
            _write_beside(Path(os.path.realpath(path)), parts)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be written: {reason}", Place(str(path))) from None


def _is_open_file(path: Path) -> bool:
    """Whether a name leads to a file that a process holds open: /dev/stdout, /dev/fd/3, or a link to one."""
    for _ in range(MOST_LINKS):
        if OPEN_FILES.fullmatch(os.path.realpath(path.parent)):
            return path.exists()
        if not path.is_symlink():
            return False
        path = path.parent / path.readlink()
    return False


def csv_rows(text: str, file: str, separators: str = ",") -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV text that are not blank: the line where each ends, and its cells, without blanks around them.

    Args:
        separators: that which the first line has most often stands between cells.

    Raises:
        InputError: no CSV, or a row with another number of cells than the first one.
    """
    separator, width = max(separators, key=text.partition("\n")[0].count), 0
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            width = width or len(cells) * any(cells)
            if any(cells) and len(cells) != width:
                message = f"expected {width} cells, found {len(cells)}: {shown(separator.join(row))}"
                hint = "a text with the sign between cells in it stands in quotation marks"
                raise InputError(message, Place(file, reader.line_num), hint)
            if any(cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise InputError(f"not a readable CSV file: {error}", Place(file, reader.line_num)) from None


def csv_text(rows: Iterable[Mapping[str, object]], columns: Sequence[str] | None = None) -> str:
    """Rows as CSV with a header, harmless in a spreadsheet and on a terminal.

    A text that a spreadsheet would compute gets an apostrophe in front, unless it is a number; control characters
    are written out.

    Args:
        rows: all with the same keys.
        columns: of the header; those of the first row if left out.

    Raises:
        ValueError: neither rows nor columns.
    """
    listed = list(rows)
    if columns is None and not listed:
        raise ValueError("a table without rows needs columns")
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(listed[0]) if columns is None else columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _harmless(value) for name, value in row.items()} for row in listed)
    return stream.getvalue()


def _harmless(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    text = one_line(cell)
    if not text.startswith(FORMULA_STARTS):
        return text
    try:
        float(text)
    except ValueError:
        return "'" + text
    return text


def _write_beside(target: Path, parts: "Iterable[ReadableBuffer]") -> None:
    handle, name = tempfile.mkstemp(prefix=f".{target.name[:40]}.", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(parts)
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~umask)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)  # also when interrupted; after the rename there is nothing left
