"""What a person is told about text that the grammar does not accept."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection

from lark import Token

from verifier.base.errors import InputError, shown
from verifier.language.expressions.source import Source
from verifier.language.expressions.syntax import TEMPORAL_WORDS, Position

_ARROWS = {"IMPLIES", "IFF"}
_COMPARISONS = {"EQ", "NE", "LT", "LE", "GT", "GE"}
_OPERATORS = _ARROWS | _COMPARISONS | {"XOR", "OR", "AND", "PLUS", "MINUS", "STAR", "SLASH", "PERCENT"}
_PUNCTUATION = {"RPAR": "')'", "RSQB": "']'", "COMMA": "','", "DOTDOT": "'..'", "COLON": "':'"}
_PUNCTUATION |= {"SEMICOLON": "';'", "MODULE": "'module'", "ENDMODULE": "'endmodule'", "PRIMED": "x'"}
_LOOKALIKES = {"–": "-", "—": "-", "−": "-", "×": "*", "·": "*", "÷": "/", "“": '"', "”": '"', "’": "'", "…": ".."}


def unexpected_token(
    token: Token,
    previous: Token | None,
    accepted: Collection[str],
    end: str,
    source: Source,
    position: Position,
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
        place = Position(previous.line or 1, previous.column or 1)
        return source.error(f"temporal operator {shown(str(previous))} cannot be used here", place)
    found = end if token.type == "$END" else shown(str(token), 40)
    return source.error(f"expected {_expectation(accepted, end)}, found {found}", position)


def _expectation(accepted: Collection[str], end: str) -> str:
    words = [word for kind, word in _PUNCTUATION.items() if kind in accepted]
    if "$END" in accepted and end != "the end":
        words.append(end)
    if "NAME" in accepted:
        words.append("a condition or a number" if "NOT" in accepted else "a number")
    elif "NUMBER" in accepted:
        words.append("a whole number")
    if _OPERATORS & set(accepted) and "NAME" not in accepted:
        words.append("an operator")
    if "$END" in accepted and end == "the end":
        words.append(end)
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


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
