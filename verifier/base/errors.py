"""What a user of `verifier` can meet when something is wrong, and the exit code each case has.

An error names the place (file, line, column, or the path inside a document), what was found, what was
expected and what to do. The command line prints exactly `str(error)`; nothing else of the program is shown.
"""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command `verify`; a crash never exits with 1."""

    SATISFIED = 0
    VIOLATED = 1
    USAGE = 2
    INCONCLUSIVE = 3
    BAD_INPUT = 4
    INTERNAL = 5
    NO_ANSWER = 6


class VerifierError(Exception):
    """Base of every error this package raises on purpose."""

    exit_code = ExitCode.INTERNAL


class UsageError(VerifierError):
    """The command line or a call asks for something that does not exist or does not fit together."""

    exit_code = ExitCode.USAGE


class EngineError(VerifierError):
    """A model checker failed, timed out, or the two engines disagree beyond their stated bounds."""

    exit_code = ExitCode.INTERNAL


@dataclass(frozen=True)
class Place:
    """Where in the user's input something stands.

    `file` is the name as the user gave it. `line` and `column` count from 1. `path` is a JSON pointer or a
    dotted TOML key; with one, `column` counts in `text` and is only shown by the caret. `text` is the source
    line, or the text that stands at `path`, shown with a caret under `column`.
    """

    file: str | None = None
    line: int | None = None
    column: int | None = None
    path: str | None = None
    text: str | None = None

    def __str__(self) -> str:
        parts = [self.file or "<input>"]
        if self.line is not None:
            parts.append(str(self.line))
            if self.column is not None and self.path is None:
                parts.append(str(self.column))
        where = ":".join(parts)
        return f"{where}: {self.path}" if self.path is not None else where


class InputError(VerifierError):
    """A file or text of the user's cannot be accepted.

    `message` says what was found and what was expected; `hint`, if any, what to do about it.
    """

    exit_code = ExitCode.BAD_INPUT

    def __init__(self, message: str, place: Place | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.place = place or Place()
        self.hint = hint

    def __str__(self) -> str:
        lines = [self.message if self.place == Place() else f"{self.place}: {self.message}"]
        if self.place.text is not None:
            lines.extend(_source_excerpt(self.place.text, self.place.column))
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class LimitError(InputError):
    """What was asked for would exceed a limit; the message names the predicted number and the limit."""


class NoAnswerError(LimitError):
    """The limits of time, memory or size that the user sets are used up, or would be, before there is an answer."""

    exit_code = ExitCode.NO_ANSWER


@contextlib.contextmanager
def files_named(name: Callable[[str], str]) -> Iterator[None]:
    """Within it errors call files as `name` says, which is given every text that may hold the name of one."""
    try:
        yield
    except InputError as error:
        file, hint = (text and name(text) for text in (error.place.file, error.hint))
        raise type(error)(name(error.message), replace(error.place, file=file), hint) from None
    except VerifierError as error:
        raise type(error)(name(str(error))) from None


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name closest to `name`, or None when nothing is close."""
    import difflib

    matches = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


def unknown_name(kind: str, name: str, known: Iterable[str]) -> tuple[str, str]:
    """Message and hint for a name that is not declared.

    >>> unknown_name("environment", "pde", ["ped", "obs"])
    ("unknown environment 'pde'", "did you mean 'ped'? known: obs, ped")
    """
    names = sorted(set(known))
    listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    nearest = nearest_name(name, names)
    suggestion = f"did you mean '{nearest}'? " if nearest else ""
    return f"unknown {kind} {shown(name)}", f"{suggestion}known: {listed or '(none)'}"


def unknown_error(kind: str, name: str, known: Iterable[str], before: str = "", after: str = "") -> UsageError:
    """The error for a name that is not declared: as `unknown_name`, between what is said before and after it."""
    message, hint = unknown_name(kind, name, known)
    return UsageError(f"{before}{message}{after}\n  hint: {hint}")


def check_known(kind: str, name: str, known: Collection[str]) -> None:
    """`unknown_error` unless the name is a known one."""
    if name not in known:
        raise unknown_error(kind, name, known)


def shown(value: object, limit: int = 60) -> str:
    """`value` quoted for a message: one line, no control characters, at most about `limit` characters."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 4] + "..." + text[-1:]


def first_line(error: Exception) -> str:
    """The first line of a library's message."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def one_line(text: str) -> str:
    """`text` safe for a terminal: line breaks, control characters and escapes are written out, not sent."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


EXCERPT = 100
"""Characters of a source line that are shown."""


def _source_excerpt(text: str, column: int | None) -> list[str]:
    """The source line, cut around `column` where it is long, and a caret under that column."""
    line = "".join(character if character.isprintable() else " " for character in text.rstrip("\r\n"))
    start = column - EXCERPT // 2 if column is not None and column > EXCERPT else 0
    lines = [f"    {line[start : start + EXCERPT]}"]
    if column is not None:
        lines.append("    " + " " * (column - 1 - start) + "^")
    return lines


def pointer_part(part: object) -> str:
    """A key or a position as a part of a JSON pointer (RFC 6901)."""
    return str(part).replace("~", "~0").replace("/", "~1")
