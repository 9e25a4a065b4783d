"""Reading the requirements of a spec: what is asked, of which formula, and with what it is compared.

Before that, the text of a spec is cut into statements, without a look at what they say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from verifier.base.errors import InputError, shown
from verifier.language.expressions import Source, parse_expression, substitute, to_text
from verifier.language.expressions.source import advance
from verifier.language.expressions.syntax import TRUE, Node, Position, Temporal, children, nodes_in
from verifier.language.ltl import parse_formula
from verifier.language.specs.specification import Asked, Requirement

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
    return end if end != -1 else len(text)


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
        kept = tuple(Comment(comment.offset - begin, comment.text) for comment in comments if comment.offset >= begin)
        yield Statement(text[begin:], advance(start, text[:begin]), kept)


WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TARGET = re.compile(
    r"\s*(?P<quantity>[PRT])(?P<end>min|max)?\s*(?:\{\s*(?P<inner>[^}]*?)\s*\})?\s*(?P<sign>>=|≥|<=|≤|>|<|=)\s*"
    r"(?P<number>\?|[0-9][0-9.eE+-]*(?:\s*/\s*[0-9]+)?)\s*(?P<profile>over\s+profile\b\s*)?"
)
_CUMULATED = re.compile(r"\s*C\s*(?:<=|≤)\s*([0-9]{1,10})(\.[0-9]{1,12})?(s?)\s*")
_GIVEN = re.compile(r'"[^"\n]*"|\bgiven\b')
_DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?\Z")
_EXPECTED_TARGET = "expected P >= p, P > p, P <= p, P < p or P = ?, or the same with R{reward}, T or T{q}"


def resolved(written: Requirement, lets: Mapping[str, Node], source: Source) -> Requirement:
    """The requirement over what lets stand for."""
    given = None if written.given is None else substitute(written.given, lets, source)
    return replace(written, formula=substitute(written.formula, lets, source), given=given)


@dataclass
class StatementReader:
    """Reads formulas, expressions and requirements out of statements of one text."""

    source: Source

    def fail(self, statement: Statement, offset: int, message: str, hint: str | None = None) -> InputError:
        """The error to raise for what stands at `offset` of the statement."""
        return self.source.error(message, statement.position(offset), hint)

    def requirement(self, statement: Statement, name: str) -> Requirement:
        """The requirement that a statement is, as written: before its lets are replaced."""
        text = statement.text
        colon = text.index(":") + 1
        target = _TARGET.match(text, colon)
        if target is None:
            written = shown(text[colon:].partition("[")[0].strip(), 40)
            raise self.fail(statement, skip(text, colon), f"{_EXPECTED_TARGET}, found {written}")
        comparison = target["sign"].replace("≥", ">=").replace("≤", "<=")
        asked, wanted = self._asked(statement, target), self._target(statement, comparison, target)
        opening = target.end()
        if text[opening : opening + 1] != "[":
            message = f"expected '[' and a formula, found {_found(text, opening)}"
            unit = text.startswith("s", opening) and target["quantity"] == "T"
            raise self.fail(
                statement, opening, message, "targets of T are in seconds, without a unit" if unit else None
            )
        closing = matching_bracket(text, opening)
        closing = len(text) if closing is None else closing
        if text[closing + 1 :].strip():
            at = skip(text, closing + 1)
            raise self.fail(statement, at, f"expected the end of the statement, found {_found(text, at)}")
        given: Node | None = None
        if asked.is_probability:
            formula, given = self._maybe_given(statement, opening + 1, closing)
        else:
            asked, formula = self._ending(statement, asked, opening + 1, closing)
        told = statement.start.line, " ".join(text.split()), asked, given, given, target["profile"] is not None
        return Requirement(name, comparison, wanted, formula, formula, *told)

    def _asked(self, statement: Statement, match: re.Match[str]) -> Asked:
        """What stands before the sign."""
        quantity: Any = match["quantity"]
        end: Any = match["end"] or ""
        inner, at = match["inner"], match.start("quantity")
        if quantity == "R":
            if not inner or not WORD.fullmatch(inner):
                raise self.fail(statement, at, "R is of a reward: R{NAME}", "rewards stand in the model: [rewards]")
            return Asked(quantity, end, inner)
        if inner is None:
            return Asked(quantity, end)
        if quantity == "P":
            raise self.fail(statement, match.start("inner"), f"{quantity}{end} takes nothing in braces")
        level = self._fraction(statement, inner, match.start("inner"))
        if not 0 < level <= 1:
            message = f"expected a probability above 0, up to 1, found {shown(inner)}"
            raise self.fail(statement, match.start("inner"), message)
        return Asked(quantity, end, level=level)

    def _maybe_given(self, statement: Statement, begin: int, end: int) -> tuple[Node, Node | None]:
        """`FORMULA` or `FORMULA given FORMULA`; `given` may be a name too."""
        for word in _GIVEN.finditer(statement.text, begin, end):
            if word.group() == "given":
                try:
                    left = self.formula(statement, begin, word.start(), "'given'")
                except InputError:
                    continue
                return left, self.formula(statement, word.end(), end, "']'")
        return self.formula(statement, begin, end, "']'"), None

    def _ending(self, statement: Statement, asked: Asked, begin: int, end: int) -> tuple[Asked, Node]:
        """`F CONDITION`, or for R `C<=N`."""
        cumulated = _CUMULATED.fullmatch(statement.text, begin, end)
        if cumulated is not None and asked.quantity == "R":
            whole, part, seconds = cumulated.groups()
            if part and not seconds:
                message = f"C counts steps: expected a whole number, found {whole}{part}"
                raise self.fail(statement, cumulated.start(1), message)
            bound = Fraction(whole + (part or ""))
            return replace(asked, **({"steps_s": bound} if seconds else {"steps": int(bound)})), TRUE
        node = self.formula(statement, begin, end, "']'")
        plain = isinstance(node, Temporal) and node.operator == "F" and (node.interval or node.seconds) is None
        if not plain or first_temporal(children(node)[0]) is not None:
            forms = "[ F CONDITION ] or [ C<=N ]" if asked.quantity == "R" else "[ F CONDITION ]"
            raise self.source.error(f"{asked} takes {forms}, found {shown(to_text(node), 60)}", node.position)
        return asked, node

    def _target(self, statement: Statement, comparison: str, match: re.Match[str]) -> Fraction | None:
        """The number it is compared with; None for `= ?`."""
        written = match["number"]
        if (comparison == "=") != (written == "?"):
            text = shown(match.group().strip())
            raise self.fail(statement, match.start("sign"), f"{_EXPECTED_TARGET}, found {text}")
        if written == "?":
            return None
        if match["profile"] is not None:
            raise self.fail(statement, match.start("profile"), "'over profile' goes with = ?")
        value = self._fraction(statement, written, match.start("number"))
        if match["quantity"] == "P" and not 0 <= value <= 1:
            message = f"a probability is between 0 and 1, found {written}"
            raise self.fail(statement, match.start("number"), message)
        return value

    def _fraction(self, statement: Statement, written: str, at: int) -> Fraction:
        """A decimal or a fraction of at least 0."""
        numerator, _, denominator = (part.strip() for part in written.partition("/"))
        whole = denominator == "" or (denominator.isdecimal() and int(denominator) != 0)
        if not _DECIMAL.match(numerator) or len(written) > 60 or not whole:
            raise self.fail(statement, at, f"expected a decimal or a fraction, found {shown(written)}")
        return Fraction(numerator) / int(denominator or 1)

    def formula(self, statement: Statement, begin: int, end: int, closing: str) -> Node:
        """The formula between two offsets of a statement."""
        node = parse_formula(statement.text[begin:end], self.source, statement.position(begin), closing)
        self._refuse_division(statement, begin, end, parse_formula)
        return node

    def expression(self, statement: Statement, begin: int, end: int) -> Node:
        """The expression between two offsets of a statement."""
        node = parse_expression(statement.text[begin:end], self.source, statement.position(begin))
        self._refuse_division(statement, begin, end, parse_expression)
        return node

    def _refuse_division(self, statement: Statement, begin: int, end: int, parse: Callable[[str], Node]) -> None:
        """Refuse a comment that would also read as a division: what was meant, nobody can tell."""
        for comment in statement.comments:
            behind = comment.offset + len(comment.text)
            try:
                parse(statement.text[begin : comment.offset] + comment.text + statement.text[behind:end])
            except InputError:
                continue
            hint = "begin the comment with #, or write floor(a / b)"
            message = "this comment would also read as a division"
            raise self.fail(statement, comment.offset, message, hint)


def first_temporal(node: Node) -> Temporal | None:
    """A temporal operator with no other inside; None when there is none."""
    return next((part for part in nodes_in(node) if isinstance(part, Temporal)), None)


def skip(text: str, offset: int) -> int:
    """The offset of the first character at or behind `offset` that is no space."""
    return offset + len(text[offset:]) - len(text[offset:].lstrip())


def _found(text: str, offset: int) -> str:
    rest = text[offset:].split()
    return shown(rest[0], 40) if rest else "the end of the statement"
