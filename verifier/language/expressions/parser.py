"""Reading expressions: the grammar's actions, and one loop that `verifier.language.ltl` shares.

The parser is LALR(1) and builds nodes while it reads, so no text, however deep, makes it recurse. Text is refused
early where it is too long or nested too deeply.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator
from fractions import Fraction
from functools import cache
from itertools import islice

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from lark.parsers.lalr_interactive_parser import InteractiveParser

from verifier.base.errors import InputError, Place, nearest_name, shown
from verifier.language.expressions.kinds import ARITIES, misuse, operand_kinds, result_kind
from verifier.language.expressions.source import Source, advance
from verifier.language.expressions.syntax import (
    ATOMS,
    FUNCTIONS,
    RESERVED,
    TEMPORAL_WORDS,
    Boolean,
    Call,
    Name,
    Node,
    Number,
    Operation,
    Position,
    children,
    labels_of,
)
from verifier.language.grammars import CONDITIONS, parser_of

LONGEST_TEXT = 200_000
"""Characters of one expression or formula."""
DEEPEST_NODE = 200
"""Operators inside one another; walks over nodes written elsewhere may recurse this deep."""
_DEEPEST_STACK = 10 * DEEPEST_NODE
_LONGEST_NUMBER = 60
_LARGEST_EXPONENT = 300
_START = Position(1, 1)

_BINARY = (
    {"IMPLIES": "->", "IFF": "<->", "XOR": "xor", "OR": "|", "AND": "&"}
    | {"EQ": "=", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
    | {"PLUS": "+", "MINUS": "-", "STAR": "*", "SLASH": "/", "FLOORDIV": "//", "PERCENT": "%"}
)


def parse_expression(text: str, source: Source | None = None, start: Position = _START) -> Node:
    """The expression that `text` spells.

    Args:
        source: the whole text of which `text` is a part, for positions and messages; `text` itself by default.
        start: where in `source` the text begins.

    Raises:
        InputError: with the place, what was expected and what was found.
    """
    return read(_parser(), text, source or Source(text), start, "the end")


@cache
def _parser() -> Lark:
    return parser_of(CONDITIONS, ExpressionActions())


def read(parser: Lark, text: str, source: Source, start: Position, end: str) -> Node:
    """Run `parser`, whose actions build nodes, over `text`, which begins at `start` of `source`.

    Raises:
        InputError: as `parse_expression`.
    """
    if len(text) > LONGEST_TEXT:
        message = f"the text has {len(text)} characters; at most {LONGEST_TEXT} are read"
        raise source.error(message, None)
    interactive = parser.parse_interactive(text)
    state = interactive.parser_state
    count = 0
    try:
        for plain in _tokens(interactive):
            _shift(plain, start)
            token = _Placed.of(plain, source)
            if len(state.value_stack) > _DEEPEST_STACK:
                raise too_deep(position_of(token))
            interactive.feed_token(token)
            count += 1
        end_position = advance(start, text if end != "the end" else text.rstrip())
        last = Token("$END", "", line=end_position.line, column=end_position.column)
        node: Node = interactive.feed_token(last)
    except UnexpectedToken as error:
        previous, accepted = _before(parser, text, count, start)
        position = position_of(error.token)
        raise unexpected_token(error.token, previous, accepted, end, source, position) from None
    except UnexpectedCharacters as error:
        offset = error.pos_in_stream or 0
        raise unexpected_character(text, offset, source, advance(start, text[:offset])) from None
    except InputError as error:
        column, line = error.place.column, error.place.line
        known = Position(line, column) if line is not None and column is not None else None
        raise InputError(error.message, source.place(known), error.hint) from None
    return node


def _before(parser: Lark, text: str, count: int, start: Position) -> tuple[Token | None, set[str]]:
    """The last of the first `count` tokens and the token types that may follow it.

    Read again: a parser that met a token it cannot use has by then reduced what came before.
    """
    interactive = parser.parse_interactive(text)
    previous = None
    for previous in islice(_tokens(interactive), count):
        interactive.feed_token(previous)
    if previous is not None:
        _shift(previous, start)
    return previous, set(interactive.accepts())  # type: ignore[no-untyped-call]


def _tokens(interactive: InteractiveParser) -> Iterator[Token]:
    yield from interactive.lexer_thread.lex(interactive.parser_state)  # type: ignore[no-untyped-call]


class _Placed(Token):
    """A token that knows the text it stands in, so that a node can be traced to its file wherever it is used."""

    source: Source | None = None

    @classmethod
    def of(cls, token: Token, source: Source) -> _Placed:
        """The same token, of this text."""
        placed = cls.new_borrow_pos(token.type, token.value, token)
        placed.source = source
        return placed


def position_of(token: Token) -> Position:
    """Where a token begins."""
    return Position(token.line or 1, token.column or 1, token.source if isinstance(token, _Placed) else None)


def _shift(token: Token, start: Position) -> None:
    if token.line == 1 and token.column is not None:
        token.column += start.column - 1
    if token.line is not None:
        token.line += start.line - 1


def problem(message: str, position: Position | None, hint: str | None = None) -> InputError:
    """An error of an action, which knows positions but not the text; `read` adds the text."""
    return InputError(message, None if position is None else Place(None, position.line, position.column), hint)


def too_deep(position: Position | None) -> InputError:
    """The error for operators inside one another beyond `DEEPEST_NODE`."""
    hint = "a chain of operators nests as well: put parentheses around parts of a long one"
    return problem(f"nested too deeply: at most {DEEPEST_NODE} operators inside one another", position, hint)


@v_args(inline=True)
class ExpressionActions(Transformer[Token, Node]):
    """What each alternative of `grammar.lark` builds; operands of an evident wrong kind are refused here."""

    def binary(self, left: Node, operator: Token, right: Node) -> Node:
        """An operator between two operands."""
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Call) and one.function == "report" and len(labels_of(one)) == 1:
                return _reported(one, operator, other)
        node = Operation(_BINARY[operator.type], (left, right), left.position)
        require_kinds(node, right if operator == "=>" else None)
        return node

    def negation(self, operator: Token, operand: Node) -> Node:
        """`!a`."""
        node = Operation("!", (operand,), position_of(operator))
        require_kinds(node)
        return node

    def minus(self, operator: Token, operand: Node) -> Node:
        """`-a`."""
        node = Operation("neg", (operand,), position_of(operator))
        require_kinds(node)
        return node

    def number(self, token: Token) -> Node:
        """A whole number or a decimal, exactly."""
        mantissa, _, exponent = token.lower().partition("e")
        if len(mantissa) > _LONGEST_NUMBER or len(exponent) > 5 or abs(int(exponent or "0")) > _LARGEST_EXPONENT:
            hint = f"at most {_LONGEST_NUMBER} characters and an exponent up to {_LARGEST_EXPONENT} are read"
            raise problem(f"the number {shown(str(token), 30)} is too long", position_of(token), hint)
        value = Fraction(str(token))
        whole = value.numerator if value.denominator == 1 else value
        return Number(whole, position_of(token))

    def true(self, token: Token) -> Node:
        """`true`."""
        return Boolean(True, position_of(token))

    def false(self, token: Token) -> Node:
        """`false`."""
        return Boolean(False, position_of(token))

    def name(self, token: Token) -> Node:
        """A name, which no reserved word can be."""
        if token in TEMPORAL_WORDS:
            raise problem(f"temporal operator {shown(str(token))} cannot be used here", position_of(token))
        if token in RESERVED:
            raise problem(f"expected a name, found the reserved word {shown(str(token))}", position_of(token))
        return Name(str(token), position_of(token))

    def quoted(self, token: Token) -> Node:
        """A name in double quotes, of any characters."""
        if not token.isprintable():
            raise problem("a quoted name has a character that cannot be printed", position_of(token))
        return Name(token[1:-1], position_of(token))

    def arguments(self, *arguments: Node) -> tuple[Node, ...]:
        """What stands between the parentheses of a call."""
        return arguments

    def call(self, token: Token, arguments: tuple[Node, ...]) -> Node:
        """A function and its arguments."""
        position, function = position_of(token), str(token)
        if function in TEMPORAL_WORDS:
            raise problem(f"temporal operator {shown(function)} cannot be used here", position)
        if function not in FUNCTIONS:
            nearest = nearest_name(function, FUNCTIONS)
            known = f"known: {', '.join(sorted(FUNCTIONS))}"
            hint = f"did you mean '{nearest}'? {known}" if nearest else known
            raise problem(f"unknown function {shown(function)}", position, hint)
        if function in ATOMS:
            return _atom(function, arguments, position)
        _require_arguments(function, arguments, position)
        node = Call(function, arguments, position)
        require_kinds(node)
        return node


def _atom(function: str, arguments: tuple[Node, ...], position: Position) -> Call:
    """`sees(c)`, `count(c, within = d)`, `report(o)` (which is still to be compared) or `present(n)`."""
    if not arguments or not isinstance(arguments[0], Name):
        kind = {"report": "object", "present": "object or class", "confirmed": "tracker"}.get(function, "class")
        place = arguments[0].position if arguments else position
        raise problem(f"{function}(...) takes the name of one {kind}", place)
    rest: list[Node] = []
    for node in arguments[1:]:
        named = isinstance(node, Operation) and node.operator == "=" and node.operands[0] == Name("within")
        if not named or rest or function in ("present", "confirmed"):
            wanted = "one name" if function in ("present", "confirmed") else "one name and within = DISTANCE"
            raise problem(f"{function}(...) takes {wanted}", node.position)
        distance = node.operands[1]  # type: ignore[union-attr]
        if not isinstance(distance, Number):
            raise problem("within takes a number of metres", distance.position)
        rest.append(distance)
    return Call(function, (arguments[0], *rest), position)


def _reported(call: Call, operator: Token, other: Node) -> Node:
    """`report(o) = c` or `report(o) != c`."""
    if operator.type not in ("EQ", "NE") or not isinstance(other, Name):
        raise problem("report(...) is a class: compare it with = or != to a class", call.position)
    equality = Call("report", (call.arguments[0], other, *call.arguments[1:]), call.position)
    return equality if operator.type == "EQ" else Operation("!", (equality,), call.position)


def _require_arguments(function: str, arguments: tuple[Node, ...], position: Position) -> None:
    wanted, given = ARITIES[function], len(arguments)
    more = function in ("min", "max")
    if given < wanted or (given > wanted and not more):
        amount = f"{wanted} argument{'s' if wanted > 1 else ''}{' or more' if more else ''}"
        raise problem(f"{function}(...) takes {amount}, found {given}", position)


def require_kinds(node: Node, maybe_at_least: Node | None = None) -> None:
    """Refuse a node that is too deep, or an operand that is evidently of the wrong kind.

    `maybe_at_least` is the right operand of `=>`, which may have been meant as `>=`.

    Raises:
        InputError: with the operand's position.
    """
    if node.depth > DEEPEST_NODE:
        raise too_deep(node.position)
    operands = children(node)
    kinds = [result_kind(operand) for operand in operands]
    for operand, kind, wanted in zip(operands, kinds, operand_kinds(node, kinds), strict=True):
        if kind is not None and kind != wanted:
            message, hint = misuse(wanted, kind, operand, node)
            if operand is maybe_at_least:
                hint = "=> is implication; 'at least' is >="
            raise problem(message, operand.position, hint)


_ARROWS = {"IMPLIES", "IFF"}
_COMPARISONS = {"EQ", "NE", "LT", "LE", "GT", "GE"}
_PUNCTUATION = {"RPAR": "')'", "RSQB": "']'", "COMMA": "','", "DOTDOT": "'..'", "COLON": "':'"}
_PUNCTUATION |= {"SEMICOLON": "';'", "MODULE": "'module'", "ENDMODULE": "'endmodule'", "PRIMED": "x'"}
_LOOKALIKES = {"–": "-", "—": "-", "−": "-", "×": "*", "·": "*", "÷": "/", "“": '"', "”": '"', "’": "'", "…": ".."}


def unexpected_token(
    token: Token, previous: Token | None, accepted: Collection[str], end: str, source: Source, position: Position
) -> InputError:
    """The error for a token that cannot stand where it stands.

    `previous` is what was read just before it, `accepted` the token types that could have followed, `end` what
    the end of the text is called.
    """
    if token.type in _ARROWS and _ARROWS & set(accepted):
        hint = "write a -> (b <-> c) or (a -> b) <-> c: tools differ in how they read it"
        return source.error("-> and <-> stand side by side without parentheses", position, hint)
    if token.type in _COMPARISONS and "AND" in accepted and not _COMPARISONS & set(accepted):
        return source.error("comparisons do not chain", position, "write a < b & b < c")
    if previous is not None and previous.type == "NAME" and previous in TEMPORAL_WORDS:
        return source.error(f"temporal operator {shown(str(previous))} cannot be used here", position_of(previous))
    text = end if token.type == "$END" else shown(str(token), 40)
    return source.error(f"expected {_expectation(accepted, end)}, found {text}", position)


def _expectation(accepted: Collection[str], end: str) -> str:
    words = [word for kind, word in _PUNCTUATION.items() if kind in accepted]
    if "$END" in accepted and end != "the end":
        words.append(end)
    if "NAME" in accepted:
        words.append("a condition or a number" if "NOT" in accepted else "a number")
    elif "NUMBER" in accepted:
        words.append("a whole number")
    if "AND" in accepted:
        words.append("an operator")
    if "$END" in accepted and end == "the end":
        words.append(end)
    return " or ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def unexpected_character(text: str, offset: int, source: Source, position: Position) -> InputError:
    """The error for the character `text[offset]`, with which nothing begins."""
    character = text[offset]
    if character == '"':
        return source.error("the quoted name is empty or not closed on its line", position)
    name = unicodedata.name(character, "unnamed")
    code = f"U+{ord(character):04X} {name}"
    described = f"{shown(character)} ({code})" if character.isprintable() else code
    if character.isascii() and character.isprintable():
        return source.error(f"unexpected character {shown(character)}", position)
    plain = _LOOKALIKES.get(character, unicodedata.normalize("NFKC", character))
    if plain.isascii() and plain.isprintable() and plain.strip():
        hint = f"did you mean {shown(plain)}?"
    elif character.isalpha():
        hint = "names are ASCII letters, digits and _; any other name stands in double quotes"
    else:
        hint = None
    return source.error(f"unexpected character {described}", position, hint)
