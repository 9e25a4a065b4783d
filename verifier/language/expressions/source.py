"""The text a user wrote and the place of every character in it, for error messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from verifier.base.errors import InputError, Place, unknown_name


@dataclass(frozen=True, slots=True)
class Position:
    """Line and column, both from 1, in the text a node was read from; `source` is that text where it is known."""

    line: int
    column: int
    source: Source | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Source:
    """A text to be read.

    Attributes:
        text: all of it; lines and columns of positions count in it, from 1.
        file: the file's name as the user gave it.
        path: the element of a structured file that holds this text (a dotted TOML key). Its lines and columns
            are then not those of the file, and are not shown as such.
        line: tells the line of the file in which that element begins; asked only where there is an error.
    """

    text: str
    file: str | None = None
    path: str | None = None
    line: Callable[[], int | None] | None = field(default=None, compare=False, repr=False)

    def place(self, position: Position | None) -> Place:
        """Where `position` is, with its line of text; the text as a whole when there is no position.

        A source without a file stands for none: then the position says itself what text it is in.
        """
        line = self.line() if self.line is not None else None
        if position is None:
            return Place(self.file, line, path=self.path)
        if self.file is None and position.source is not None and position.source != self:
            return position.source.place(position)
        lines = self.text.split("\n", position.line)
        text = lines[position.line - 1] if position.line <= len(lines) else ""
        line = position.line if self.path is None else line
        return Place(self.file, line, position.column, self.path, text.rstrip("\r") or None)

    def unknown(self, kind: str, name: str, known: Iterable[str], position: Position | None = None) -> InputError:
        """The error for a name at `position` that is not declared; see `unknown_name`."""
        message, hint = unknown_name(kind, name, known)
        return self.error(message, position, hint)

    def error(self, message: str, position: Position | None, hint: str | None = None) -> InputError:
        """The error to raise for what stands at `position`."""
        return InputError(message, self.place(position), hint)


def advance(start: Position, text: str) -> Position:
    """The position behind `text` that begins at `start`."""
    newlines = text.count("\n")
    if newlines == 0:
        return Position(start.line, start.column + len(text))
    return Position(start.line + newlines, len(text) - text.rindex("\n"))
