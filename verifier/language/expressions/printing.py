"""Nodes as text that reads back to the same node."""

from __future__ import annotations

import re
from fractions import Fraction

from verifier.language.expressions.syntax import (
    RESERVED,
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
)

_LEVELS = (
    {"->": 1, "<->": 1, "xor": 2, "|": 3, "&": 4, "U": 5, "R": 5, "W": 5, "M": 5}
    | {"!": 6, "X": 6, "F": 6, "G": 6, "=": 7, "!=": 7, "<": 7, "<=": 7, ">": 7, ">=": 7}
    | {"+": 8, "-": 8, "*": 9, "/": 9, "//": 9, "%": 9, "neg": 10}
)
"""How tightly an operator binds; the order of `grammar.lark` and `ltl.lark`."""
_COMPARISON = 7
_RIGHT = frozenset({"->", "<->", "U", "R", "W", "M"})
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
    within = "".join(f", within = {_number(each.value)}" for each in node.arguments if isinstance(each, Number))
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
        simple = operand.value >= 0 and _number(operand.value).replace(".", "").isdigit()
        return not simple
    if is_atom(operand) and operand.function == "report":
        return True  # it reads as a comparison
    if not isinstance(operand, Operation | Temporal):
        return False
    if always:
        return True
    outer, inner = _LEVELS[parent.operator], _LEVELS[operand.operator]
    if inner == _COMPARISON and 5 <= outer <= _COMPARISON:
        return True  # `!x = 3` and `a = 1 U b = 2` would read the same without, to the parser only
    if len(parent.operands) == 1:
        return inner < outer
    if inner == outer:
        leans = parent.operator in _RIGHT
        mixed = outer == 1 and parent.operator != operand.operator
        return mixed or leans != (index == 1)
    return inner < outer
