"""The text a user wrote and the place of every character in it, for error messages."""

from __future__ import annotations

from dataclasses import dataclass

from verifier.errors import InputError, Place
from verifier.expressions.syntax import Position


@dataclass(frozen=True)
class Source:
    """A text to be read.

    Attributes:
        text: all of it; lines and columns of positions count in it, from 1.
        file: the file's name as the user gave it.
        path: the element of a structured file that holds this text (a dotted TOML key). Its lines and columns
            are then not those of the file, and are not shown as such.
    """

    text: str
    file: str | None = None
    path: str | None = None

    def place(self, position: Position | None) -> Place:
        """Where `position` is, with its line of text; the text as a whole when there is no position."""
        if position is None:
            return Place(self.file, path=self.path)
        lines = self.text.split("\n", position.line)
        text = lines[position.line - 1] if position.line <= len(lines) else ""
        line = position.line if self.path is None else None
        return Place(self.file, line, position.column, self.path, text.rstrip("\r") or None)

    def error(self, message: str, position: Position | None, hint: str | None = None) -> InputError:
        """The error to raise for what stands at `position`."""
        return InputError(message, self.place(position), hint)


def advance(start: Position, text: str) -> Position:
    """The position behind `text` that begins at `start`."""
    newlines = text.count("\n")
    if newlines == 0:
        return Position(start.line, start.column + len(text))
    return Position(start.line + newlines, len(text) - text.rindex("\n"))
