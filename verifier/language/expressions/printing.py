"""Nodes as text that reads back to the same node; nodes in the place of names, and truth values in the place of what
a detector reports.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from verifier.base.errors import InputError, LimitError
from verifier.language.expressions.parser import DEEPEST_NODE
from verifier.language.expressions.source import Source
from verifier.language.expressions.syntax import (
    RESERVED,
    TEMPORAL,
    Boolean,
    Call,
    Interval,
    Name,
    Node,
    Number,
    Operation,
    Seconds,
    Temporal,
    fold,
    is_atom,
    labels_of,
    size,
)

_BETWEEN = [name for name, operator in TEMPORAL.items() if operator.operands == 2]
_ORDER = (
    *(["->", "<->"], ["xor"], ["|"], ["&"], _BETWEEN, ["!", *(TEMPORAL.keys() - _BETWEEN)]),
    *(["=", "!=", "<", "<=", ">", ">="], ["+", "-"], ["*", "/", "//", "%"], ["neg"]),
)
_LEVELS = {name: level for level, names in enumerate(_ORDER) for name in names}
"""How tightly an operator binds; the order of `grammar.lark` and `ltl.lark`."""
_RIGHT = {"->", "<->", *_BETWEEN}
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def to_text(node: Node, parenthesise: bool = False) -> str:
    """`node` in the spelling of this project; reading it gives `node` again.

    With `parenthesise` every operand that is not a single word stands in parentheses, so the text shows how a
    formula was read. A negative number, or a fraction that no decimal spells, reads back to the operation with
    the same value.
    """

    def combine(node: Node, below: tuple[str, ...]) -> str:
        if isinstance(node, Boolean):
            return "true" if node.value else "false"
        if isinstance(node, Number):
            return _number(node.value)
        if isinstance(node, Name):
            return name_text(node.name)
        if isinstance(node, Call):
            if is_atom(node):
                return _atom_text(node)
            return f"{node.function}({', '.join(below)})"
        wrapped = tuple(
            f"({text})" if _needs_parentheses(node, index, operand, parenthesise) else text
            for index, (operand, text) in enumerate(zip(node.operands, below, strict=True))
        )
        return _operator_text(node, wrapped)

    return fold(node, combine)


def _atom_text(node: Call) -> str:
    name, *classes = map(name_text, labels_of(node))
    within = "".join(
        f", within = {_number(argument.value)}" for argument in node.arguments if isinstance(argument, Number)
    )
    return f"{node.function}({name}{within})" + "".join(f" = {label}" for label in classes)


def name_text(name: str) -> str:
    """A name as it stands in a text: in double quotes where it would read as something else."""
    return name if _PLAIN_NAME.match(name) and name not in RESERVED else f'"{name}"'


def _operator_text(node: Operation | Temporal, operands: tuple[str, ...]) -> str:
    bound = _bound_text(node) if isinstance(node, Temporal) else ""
    if len(operands) == 2:
        return f"{operands[0]} {node.operator}{bound} {operands[1]}"
    if node.operator in ("!", "neg"):
        return ("!" if node.operator == "!" else "-") + operands[0]
    return f"{node.operator}{bound} {operands[0]}"


def _bound_text(node: Temporal) -> str:
    if node.seconds is not None:
        return _seconds_text(node.seconds)
    bound: Interval | None = node.interval
    if bound is None:
        return ""
    if node.operator == "X":
        return f"[{bound.low}]"
    if bound.high is None:
        return f">={bound.low}"
    return f"<={bound.high}" if bound.low == 0 else f"[{bound.low},{bound.high}]"


def _seconds_text(bound: Seconds) -> str:
    low, high = f"{_number(bound.low)}s", "" if bound.high is None else f"{_number(bound.high)}s"
    if not high:
        return f"{'>' if bound.low_open else '>='}{low}"
    return f"{'<' if bound.high_open else '<='}{high}" if bound.low == 0 else f"[{low},{high}]"


def _number(value: int | Fraction) -> str:
    """Digits of a whole number or a finite decimal; `a / b` for any other fraction."""
    if value < 0:
        return "-" + _number(-value)
    whole = Fraction(value)
    places, rest = 0, whole.denominator
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest //= prime
            power += 1
        places = max(places, power)
    if rest != 1:
        return f"{whole.numerator} / {whole.denominator}"
    digits = str(int(whole * 10**places))
    if places == 0:
        return digits
    padded = digits.rjust(places + 1, "0")
    return f"{padded[:-places]}.{padded[-places:]}"


def _needs_parentheses(parent: Operation | Temporal, index: int, operand: Node, always: bool) -> bool:
    if isinstance(operand, Number):
        return not _number(operand.value).replace(".", "").isdigit()
    if is_atom(operand) and operand.function == "report":
        return True  # it reads as a comparison
    if not isinstance(operand, Operation | Temporal):
        return False
    if always:
        return True
    outer, inner = _LEVELS[parent.operator], _LEVELS[operand.operator]
    if inner == _LEVELS["="] and outer >= _LEVELS["U"]:
        return True  # `!x = 3` and `a = 1 U b = 2` would read the same without, to the parser only
    if inner != outer or len(parent.operands) == 1:
        return inner < outer
    mixed = outer == _LEVELS["->"] and parent.operator != operand.operator
    return mixed or (parent.operator in _RIGHT) != (index == 1)


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
    return fold(node, lambda call, below: meaning(call) if is_atom(call) else rebuilt(call, below))


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
