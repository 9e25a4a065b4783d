"""A TOML file as a tree that knows its lines: every complaint names the file, the line and the dotted key.

Decimal numbers are kept as the exact fractions they spell, so that .15 - .05 is .1 and a difference that equals its
limit is not judged by a rounding error.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from verifier.base.errors import InputError, Place, UsageError, nearest_name, shown
from verifier.base.files import read_text

LARGEST_FILE = 2**20
DEEPEST_NESTING = 16
LONGEST_NUMBER = 60
_LARGEST_EXPONENT = 300
_TOO_LONG = f"the number is too long; at most {LONGEST_NUMBER} digits are read"
_PLAIN = re.compile(r"[A-Za-z0-9_-]+\Z")

Key: TypeAlias = str | int
Made = TypeVar("Made")
Word = TypeVar("Word", bound=str)
More = ParamSpec("More")


@dataclass(frozen=True)
class _Spelled:
    """A decimal number as the file spells it."""

    text: str

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Element:
    """A value of the file, and where it stands.

    Attributes:
        value: a table, a list or a plain value, as `tomllib` gives it.
        keys: the way to it from the top.
    """

    value: Any
    keys: tuple[Key, ...]
    file: str
    text: str
    sha256: str

    def fail(self, message: str, hint: str | None = None) -> InputError:
        """The complaint about this value, with its line."""
        return InputError(message, Place(self.file, self.line(), path=self.path), hint)

    @property
    def path(self) -> str | None:
        """The dotted key; None for the top."""
        return _dotted(self.keys)

    def line(self) -> int | None:
        """The line where the statement begins that gives the file this value; found by reading parts of it again."""
        return _line_of(self.text, self.keys)

    def find(self, path: str) -> Element:
        """The element at a dotted key as messages show it, or the last on the way there that exists."""
        element = self
        for name, index in re.findall(r"([A-Za-z0-9_-]+)|\[(\d+)\]", path):
            key: Key = int(index) if index else name
            if isinstance(key, int) != isinstance(element.value, list):
                break
            if (key >= len(element.value)) if isinstance(key, int) else (key not in element.value):
                break
            element = element.at(key)
        return element

    def has(self, key: str) -> bool:
        """Whether a table has this key."""
        return key in self.value

    def at(self, key: Key) -> Element:
        """The value under a key that is there."""
        return Element(self.value[key], (*self.keys, key), self.file, self.text, self.sha256)

    def table(self, known: tuple[str, ...], required: tuple[str, ...] = ()) -> Element:
        """This value as a table whose keys are all known and of which some must be there; InputError."""
        self.open_table()
        for key in self.value:
            if key not in known:
                nearest = nearest_name(key, known)
                hint = f"did you mean '{nearest}'?" if nearest else f"known here: {', '.join(known)}"
                raise self.at(key).fail(f"unknown key {shown(key)}", hint)
        for key in required:
            if key not in self.value:
                raise self.fail(f"missing key '{key}'")
        return self

    def open_table(self) -> Element:
        """This value as a table with any keys; InputError."""
        if not isinstance(self.value, dict):
            raise self.fail(f"expected a table, got {shown(self.value)}")
        return self

    def entries(self) -> Iterator[tuple[str, Element]]:
        """Key and value of a table with any keys; InputError where it is none or a key cannot be shown."""
        for key in self.open_table().value:
            if not key.strip() or not key.isprintable() or len(key) > LONGEST_NUMBER:
                raise self.fail(f"{shown(key)} cannot be a name", f"printable, 1 to {LONGEST_NUMBER} characters")
            yield key, self.at(key)

    def items(self, *, least: int = 0) -> list[Element]:
        """The values of a list; InputError where it is none or too short."""
        if not isinstance(self.value, list):
            raise self.fail(f"expected a list, got {shown(self.value)}")
        if len(self.value) < least:
            raise self.fail(
                f"expected at least {least} {'entry' if least == 1 else 'entries'}, got {len(self.value)}"
            )
        return [self.at(index) for index in range(len(self.value))]

    def given(
        self,
        key: str,
        read: Callable[Concatenate[Element, More], Made],
        usual: Made,
        *more: More.args,
        **named: More.kwargs,
    ) -> Made:
        """What `read` makes of the value under a key; `usual` where the key is missing."""
        return read(self.at(key), *more, **named) if self.has(key) else usual

    def list_at(self, key: str) -> list[Element]:
        """The values of a list under a key; none where the key is missing."""
        return self.given(key, Element.items, [])

    def table_at(self, key: str) -> list[tuple[str, Element]]:
        """Key and value of a table under a key; none where the key is missing."""
        return list(self.at(key).entries()) if self.has(key) else []

    def made(self, make: Callable[[], Made]) -> Made:
        """What `make` makes; what it refuses (ValueError, UsageError) is a fault of this part of the file."""
        try:
            return make()
        except (ValueError, UsageError) as error:
            raise self.fail(str(error)) from None

    def string(self, *, empty: bool = False) -> str:
        """A printable text; InputError."""
        if not isinstance(self.value, str):
            raise self.fail(f"expected a text in quotes, got {shown(self.value)}")
        if not empty and not self.value.strip():
            raise self.fail("expected a text that is not empty")
        if not self.value.replace("\n", " ").isprintable():
            raise self.fail(f"expected printable text, got {shown(self.value)}")
        return self.value

    def one_of(self, known: tuple[Word, ...]) -> Word:
        """One of the words; InputError."""
        if not isinstance(self.value, str) or self.value not in known:
            nearest = nearest_name(self.value, known) if isinstance(self.value, str) else None
            hint = f"did you mean '{nearest}'?" if nearest else None
            raise self.fail(f"expected one of {', '.join(known)}, got {shown(self.value)}", hint)
        return known[known.index(self.value)]

    def truth(self) -> bool:
        """True or false; InputError."""
        if not isinstance(self.value, bool):
            raise self.fail(f"expected true or false, got {shown(self.value)}")
        return self.value

    def is_number(self) -> bool:
        """Whether this is a number, finite or not."""
        return isinstance(self.value, int | _Spelled) and not isinstance(self.value, bool)

    def whole(self, least: int, most: int) -> int:
        """A whole number within `least..most`; InputError."""
        if isinstance(self.value, bool) or not isinstance(self.value, int) or not least <= self.value <= most:
            raise self.fail(f"expected a whole number from {least} to {most}, got {shown(self.value)}")
        return self.value

    def number(self, least: int | None = None, most: int | None = None) -> Fraction:
        """A finite number, exactly as it is spelled, within the ends that are given; InputError."""
        fraction = _exact(self.value)
        if fraction is None or (least is not None and fraction < least) or (most is not None and fraction > most):
            ends = {
                (False, False): "a finite number",
                (True, False): f"a number from {least}",
                (False, True): f"a number up to {most}",
                (True, True): f"a number from {least} to {most}",
            }[least is not None, most is not None]
            if fraction is None and isinstance(self.value, _Spelled) and "n" not in self.value.text:
                ends += f" of at most {LONGEST_NUMBER} digits and with an exponent up to {_LARGEST_EXPONENT}"
            raise self.fail(f"expected {ends}, got {shown(self.value)}")
        return fraction

    def positive(self) -> Fraction:
        """A finite number above 0; InputError."""
        fraction = self.number()
        if not fraction > 0:
            raise self.fail("expected a number above 0")
        return fraction

    def level(self) -> Fraction:
        """A confidence level; InputError."""
        fraction = self.number()
        if not 0 < fraction < 1:
            raise self.fail("a level lies strictly between 0 and 1")
        return fraction

    def share(self) -> tuple[Fraction, Fraction]:
        """A number from 0 to 1, or two in order that a share lies between; InputError."""
        if not isinstance(self.value, list):
            return (self.number(0, 1),) * 2
        ends = [element.number(0, 1) for element in self.items()]
        if len(ends) != 2 or ends[0] > ends[1]:
            raise self.fail("expected a number from 0 to 1, or two in order that it lies between")
        return ends[0], ends[1]


def read_toml(path: str | Path) -> Element:
    """The top of a TOML file.

    Raises:
        InputError: the file cannot be read, is no TOML (with line and column), or is nested too deeply.
    """
    text, raw = read_text(path, LARGEST_FILE)
    place = Place(str(path))
    try:
        document = tomllib.loads(text, parse_float=_Spelled)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(str(path), text, str(error)) from None
    except RecursionError:
        raise InputError("not accepted: nested too deeply", place) from None
    except ValueError:  # an integer of thousands of digits, which Python does not read
        digits = re.search(r"[0-9][0-9_]{1000,}", text)
        line = text.count("\n", 0, digits.start()) + 1 if digits else None
        raise InputError(_TOO_LONG, Place(str(path), line)) from None
    top = Element(document, (), str(path), text, hashlib.sha256(raw).hexdigest())
    _refuse_what_cannot_be_shown(top)
    return top


def _refuse_what_cannot_be_shown(top: Element) -> None:
    pending: list[tuple[tuple[Key, ...], Any]] = [((), top.value)]
    while pending:
        keys, value = pending.pop()
        if len(keys) > DEEPEST_NESTING:
            raise InputError("not accepted: nested too deeply", Place(top.file, path=f"{_dotted(keys[:4])}..."))
        if isinstance(value, dict):
            pending += [((*keys, key), inner) for key, inner in value.items()]
        elif isinstance(value, list):
            pending += [((*keys, index), inner) for index, inner in enumerate(value)]
        elif isinstance(value, int) and abs(value) >= 10**LONGEST_NUMBER:
            raise InputError(_TOO_LONG, Place(top.file, _line_of(top.text, keys), path=_dotted(keys)))


def _exact(value: Any) -> Fraction | None:
    """The number as a fraction; None for what is no number, not finite, or too long to work with."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    if not isinstance(value, _Spelled):
        return None
    mantissa, _, exponent = value.text.replace("_", "").lower().partition("e")
    if "n" in mantissa or len(mantissa) > LONGEST_NUMBER or len(exponent) > 5:
        return None
    if abs(int(exponent or 0)) > _LARGEST_EXPONENT:
        return None
    return Fraction(f"{mantissa}e{exponent or 0}")


def _syntax_error(file: str, text: str, message: str) -> InputError:
    match = re.search(r"\(at line (\d+), column (\d+)\)", message)
    if match is None:
        return InputError(f"not TOML: {message}", Place(file))
    line, column = int(match[1]), int(match[2])
    lines = text.split("\n")
    source = lines[line - 1] if line <= len(lines) else ""
    return InputError(f"not TOML: {message[: match.start()].strip()}", Place(file, line, column, text=source))


def _dotted(keys: tuple[Key, ...]) -> str | None:
    """`systems.mds.circumstances[2].frequency`; None for the top."""
    path = ""
    for key in keys:
        if isinstance(key, int):
            path += f"[{key}]"
        else:
            path += "." + (key if _PLAIN.match(key) and len(key) <= LONGEST_NUMBER else shown(key))
    return path.lstrip(".") or None


def _line_of(text: str, keys: tuple[Key, ...]) -> int | None:
    """The line where the statement begins that first gives the file a value at `keys`.

    `tomllib` tells no positions. But the first so many lines of a TOML file are TOML too, unless they end within a
    statement, and a value that is there stays: the place is found by halving.
    """
    if not keys:
        return None
    lines = text.replace("\r\n", "\n").split("\n")
    without, limit = 0, len(lines)  # the value is not in the first `without` lines
    while limit - without > 1:
        middle = (without + limit) // 2
        end, there = _complete_from(lines, middle, limit, keys)
        if there is False:
            without = end
        else:  # there already, or all of middle..limit lies within one statement
            limit = middle
    return without + 1


def _complete_from(lines: list[str], first: int, limit: int, keys: tuple[Key, ...]) -> tuple[int, bool | None]:
    """The least count of lines from `first` below `limit` that is TOML by itself, and whether it has `keys`."""
    for count in range(first, limit):
        try:
            value: Any = tomllib.loads("\n".join(lines[:count]), parse_float=_Spelled)
        except tomllib.TOMLDecodeError:
            continue
        for key in keys:
            there = key in value if isinstance(value, dict) else isinstance(key, int) and key < len(value)
            if not there:
                return count, False
            value = value[key]
        return count, True
    return limit, None
