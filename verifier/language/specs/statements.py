"""Cutting the text of a spec into statements, without a look at what they say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from verifier.base.errors import InputError, shown
from verifier.language.expressions import Source
from verifier.language.expressions.source import advance
from verifier.language.expressions.syntax import Position

_MARKS = re.compile(r'"[^"\n]*"|//[^\n]*|#[^\n]*|[()\[\]\n]')
_MOST_BRACKETS = 1000
_OPENING = {")": "(", "]": "["}
_NEXT_STATEMENT = re.compile(
    r"\s*(?:let\s+\w+\s*=|(?:model|planner|environments|initial|set|sweep)\s+[\"\w]"
    r"|\w+\s*:\s*[PRT](?:min|max)?\s*(?:\{[^}\n]*\}\s*)?[<>=≤≥])"
)


@dataclass(frozen=True)
class Comment:
    """A comment of a statement: where it begins in the statement's text, and its own text."""

    offset: int
    text: str


@dataclass(frozen=True)
class Statement:
    """One statement.

    Attributes:
        text: as written, every character of a comment replaced by a space.
        start: where the text begins.
        comments: the comments that stand inside.
    """

    text: str
    start: Position
    comments: tuple[Comment, ...]

    def position(self, offset: int) -> Position:
        """Where the character `text[offset]` stands."""
        return advance(self.start, self.text[:offset])


def statements(source: Source) -> Iterator[Statement]:
    """The statements of a spec: a line each, or more lines while a bracket is open.

    Raises:
        InputError: a bracket that is open at the end, or where the next statement begins.
    """
    text = source.text
    begin, start = 0, Position(1, 1)
    open_brackets: list[tuple[str, int]] = []
    comments: list[Comment] = []
    for mark in _MARKS.finditer(text):
        symbol = mark.group()
        if symbol in ("(", "["):
            open_brackets.append((symbol, mark.start()))
            if len(open_brackets) > _MOST_BRACKETS:
                message = f"more than {_MOST_BRACKETS} brackets are open at once"
                raise source.error(message, advance(Position(1, 1), text[: mark.start()]))
        elif symbol in _OPENING:
            _close(open_brackets, _OPENING[symbol])
        elif symbol.startswith(("//", "#")):
            comments.append(Comment(mark.start() - begin, symbol))
        elif symbol == "\n":
            if open_brackets:
                if _NEXT_STATEMENT.match(text, mark.end(), _line_end(text, mark.end())):
                    raise _unclosed(source, open_brackets, "before the next statement")
                continue
            yield from _statement(text[begin : mark.start()], start, comments)
            start = advance(start, text[begin : mark.end()])
            begin, comments = mark.end(), []
    if open_brackets:
        raise _unclosed(source, open_brackets, "before the end of the file")
    yield from _statement(text[begin:], start, comments)


def matching_bracket(text: str, opening: int) -> int | None:
    """Offset of the bracket that closes the one at `opening`, counted as `statements` counts; None without one."""
    open_brackets: list[tuple[str, int]] = []
    for mark in _MARKS.finditer(text, opening):
        symbol = mark.group()
        if symbol in ("(", "["):
            open_brackets.append((symbol, mark.start()))
        elif symbol in _OPENING:
            _close(open_brackets, _OPENING[symbol])
        if not open_brackets:
            return mark.start()
    return None


def _close(open_brackets: list[tuple[str, int]], opening: str) -> None:
    """A `]` closes the last `[` and with it every `(` inside, whose absence the formula's parser explains."""
    if not any(symbol == opening for symbol, _ in open_brackets):
        return
    if opening == "(" and open_brackets[-1][0] != "(":
        return
    while open_brackets.pop()[0] != opening:
        pass


def _line_end(text: str, begin: int) -> int:
    end = text.find("\n", begin)
    return len(text) if end < 0 else end


def _unclosed(source: Source, open_brackets: list[tuple[str, int]], where: str) -> InputError:
    symbol, offset = open_brackets[-1]
    return source.error(f"{shown(symbol)} is not closed {where}", advance(Position(1, 1), source.text[:offset]))


def _statement(text: str, start: Position, comments: list[Comment]) -> Iterator[Statement]:
    pieces, end = [], 0
    for comment in comments:
        pieces += [text[end : comment.offset], " " * len(comment.text)]
        end = comment.offset + len(comment.text)
    text = "".join([*pieces, text[end:]])
    begin = len(text) - len(text.lstrip())
    if begin < len(text):
        kept = tuple(Comment(each.offset - begin, each.text) for each in comments if each.offset >= begin)
        yield Statement(text[begin:], advance(start, text[:begin]), kept)
