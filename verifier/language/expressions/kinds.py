"""What is a number and what is a condition.

A node is of one of two kinds, `number` or `boolean`. An operator fixes the kind of its operands and of its
result; a name has the kind of its declaration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from verifier.language.expressions.source import Source
from verifier.language.expressions.syntax import (
    ARITHMETIC,
    COMPARISONS,
    CONNECTIVES,
    Call,
    Name,
    Node,
    Number,
    Operation,
    Temporal,
    children,
    fold,
    is_atom,
    is_choice,
    labels_of,
)

Kind: TypeAlias = Literal["number", "boolean"]

WORDS: dict[Kind, str] = {"number": "a number", "boolean": "a condition"}
ARITIES = {"min": 2, "max": 2, "abs": 1, "floor": 1, "ceil": 1, "ite": 3}
"""Number of arguments; `min` and `max` take that many or more."""


def result_kind(node: Node) -> Kind | None:
    """The kind that a node shows by itself; None for a name."""
    if isinstance(node, Name):
        return None
    if is_choice(node):
        return next(filter(None, map(result_kind, children(node)[1:])), None)
    if isinstance(node, Number) or (isinstance(node, Operation) and node.operator in ARITHMETIC):
        return "number"
    return "number" if isinstance(node, Call) and (not is_atom(node) or node.function == "count") else "boolean"


def operand_kinds(node: Node, kinds: Sequence[Kind | None]) -> tuple[Kind, ...]:
    """The kinds that the operands of `node` must have; `kinds` are those they show, None where nothing does."""
    if is_choice(node):
        branch: Kind = next((kind for kind in kinds[1:] if kind is not None), "number")
        return ("boolean", branch, branch)
    conditions = isinstance(node, Temporal) or (isinstance(node, Operation) and node.operator in CONNECTIVES)
    own: Kind = "boolean" if conditions else "number"
    return (own,) * len(kinds)


def misuse(expected: Kind, actual: Kind, operand: Node, parent: Node | None = None) -> tuple[str, str | None]:
    """Message and hint for an `operand` of `parent` that has the wrong kind."""
    hint = None
    if isinstance(parent, Operation) and parent.operator in ("=", "!="):
        hint = f"compare conditions with {'<->' if parent.operator == '=' else 'xor'}"
    elif isinstance(parent, Operation) and parent.operator in COMPARISONS:
        hint = "comparisons do not chain: write a < b & b < c"
    what = f"'{operand.name}', which is {WORDS[actual]}" if isinstance(operand, Name) else WORDS[actual]
    return f"expected {WORDS[expected]}, found {what}", hint


def check_type(
    node: Node,
    types: Mapping[str, Kind],
    source: Source | None = None,
    expected: Kind | None = None,
    reports: bool = False,
) -> Kind:
    """The kind of `node`, every name of which must be declared in `types`.

    Args:
        source: the text `node` was read from, for the message.
        expected: the kind that is wanted.
        reports: whether atoms that ask for reports, as `sees(...)`, have a meaning.

    Raises:
        InputError: an unknown name (with the nearest declared one), a number where a condition is expected or
            the other way round, `sees` where it has no meaning.
    """
    text = source or Source("")

    def combine(node: Node, below: tuple[Kind, ...]) -> Kind:
        if isinstance(node, Name):
            if node.name not in types:
                raise text.unknown("name", node.name, types, node.position)
            return types[node.name]
        if is_atom(node):
            if node.function != "present":
                _check_report(node, reports, text)
            return result_kind(node) or "boolean"
        for operand, kind, wanted in zip(children(node), below, operand_kinds(node, below), strict=False):
            if kind != wanted:
                said, advice = misuse(wanted, kind, operand, node)
                raise text.error(said, operand.position, advice)
        return below[1] if is_choice(node) else result_kind(node) or "boolean"

    kind = fold(node, combine)
    if expected is not None and kind != expected:
        raise text.error(misuse(expected, kind, node)[0], node.position)
    return kind


def _check_report(call: Call, reports: bool, source: Source) -> None:
    name, *classes = labels_of(call)
    if call.function == "report" and not classes:
        raise source.error(f"report({name}) is a class: write report({name}) = CLASS or != CLASS", call.position)
    if not reports:
        message = f"{call.function}(...) has no meaning here"
        raise source.error(message, call.position, "only planners know what is reported")
