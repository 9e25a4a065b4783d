"""Putting nodes in the place of names, and truth values in the place of what a detector reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from verifier.base.errors import InputError, LimitError
from verifier.language.expressions.parser import DEEPEST_NODE
from verifier.language.expressions.printing import to_text
from verifier.language.expressions.source import Source
from verifier.language.expressions.syntax import (
    Boolean,
    Call,
    Name,
    Node,
    Number,
    fold,
    is_atom,
    labels_of,
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
        return rebuilt(node, below)

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


def replace_atoms(node: Node, meaning: Callable[[Call], Node]) -> Node:
    """`node` with every atom replaced by what it means."""
    return fold(node, lambda each, below: meaning(each) if is_atom(each) else rebuilt(each, below))


def resolve_sees(node: Node, seen: frozenset[str]) -> Node:
    """`node` with what it asks of reports replaced by the answers.

    Args:
        node: any.
        seen: the facts of an observation: the classes c of which `sees(c)` holds, other atoms that hold as text, and
            `count(c) = n` for counts above 0. Whether a tracker is confirmed is left as a name, `confirmed(t)`.
    """

    def answer(atom: Call) -> Node:
        text, labels = to_text(atom), labels_of(atom)
        if atom.function == "present":
            return atom
        if atom.function == "confirmed":
            return Name(text)
        if atom.function == "count":
            told = [fact.removeprefix(f"{text} = ") for fact in seen if fact.startswith(f"{text} = ")]
            return Number(int(told[0]) if told else 0)
        if atom.function == "report" and labels[1] == "empty":
            asked = text.removesuffix("empty")
            return Boolean(not any(fact.startswith(asked) for fact in seen))
        return Boolean((labels[0] if len(atom.arguments) == 1 else text) in seen)

    return replace_atoms(node, answer)


def rebuilt(node: Node, below: tuple[Node, ...]) -> Node:
    """`node` over other operands; itself when they are the ones it has."""
    if isinstance(node, Name | Number | Boolean):
        return node
    before = node.arguments if isinstance(node, Call) else node.operands
    if not below or all(old is new for old, new in zip(before, below, strict=True)):
        return node
    return replace(node, arguments=below) if isinstance(node, Call) else replace(node, operands=below)
