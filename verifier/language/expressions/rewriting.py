"""Putting nodes in the place of names, and truth values in the place of what a detector reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from verifier.base.errors import InputError, LimitError
from verifier.language.expressions.parser import DEEPEST_NODE
from verifier.language.expressions.source import Source
from verifier.language.expressions.syntax import (
    FALSE,
    TRUE,
    Boolean,
    Call,
    Name,
    Node,
    Number,
    fold,
    size,
)

LARGEST_NODE = 100_000
"""Nodes of one expression once the names in it are replaced."""


def substitute(node: Node, mapping: Mapping[str, Node], source: Source | None = None) -> Node:
    """`node` with every name of `mapping` replaced, all at once; the labels inside `sees(...)` are no names.

    Raises:
        InputError: the result nests deeper than `DEEPEST_NODE` (LimitError: has more than `LARGEST_NODE` nodes),
            which repeated substitution reaches from short texts.
    """

    def combine(node: Node, below: tuple[Node, ...]) -> Node:
        if isinstance(node, Name):
            return mapping.get(node.name, node)
        return _rebuilt(node, below)

    result = fold(node, combine)
    text = source or Source("")
    if result.depth > DEEPEST_NODE:
        message = f"with the names in it replaced it nests {result.depth} operators deep"
        raise InputError(f"{message}; at most {DEEPEST_NODE} are accepted", text.place(node.position))
    count = size(result)
    if count > LARGEST_NODE:
        message = f"with the names in it replaced it has {count} operators and names"
        raise LimitError(f"{message}; at most {LARGEST_NODE} are accepted", text.place(node.position))
    return result


def resolve_sees(node: Node, seen: frozenset[str]) -> Node:
    """`node` with `sees(c)` replaced by whether `c` is in `seen`."""

    def combine(node: Node, below: tuple[Node, ...]) -> Node:
        if isinstance(node, Call) and node.function == "sees":
            label = node.arguments[0]
            return TRUE if isinstance(label, Name) and label.name in seen else FALSE
        return _rebuilt(node, below)

    return fold(node, combine)


def _rebuilt(node: Node, below: tuple[Node, ...]) -> Node:
    """`node` over other operands; itself when they are the ones it has."""
    if isinstance(node, Name | Number | Boolean):
        return node
    before = node.arguments if isinstance(node, Call) else node.operands
    if not below or all(old is new for old, new in zip(before, below, strict=True)):
        return node
    return replace(node, arguments=below) if isinstance(node, Call) else replace(node, operands=below)
