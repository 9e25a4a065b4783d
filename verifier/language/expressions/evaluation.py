"""The value of an expression, in one state or in all states of an array at once.

Numbers are exact for as long as they are whole numbers over one common denominator that fits 64 bits: integers,
decimals, their sums and products, quotients by a constant, minima, roundings and comparisons. So `x * 0.29 >= 29`
holds for x = 100, which it would not in floating point. Beyond that (a quotient by a variable, values given as
floats, denominators that grow too large) they are float64.

Nothing wraps around, divides by zero or becomes infinite silently: that raises.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.language.expressions.numbers import COMPARE, Arithmetic, Exact, Floating, Quantity, joined, quantity
from verifier.language.expressions.printing import to_text
from verifier.language.expressions.source import Source
from verifier.language.expressions.syntax import (
    ARITHMETIC,
    COMPARISONS,
    CONNECTIVES,
    Boolean,
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
    names_in,
)

Scalar: TypeAlias = "bool | int | float | Fraction | np.generic"
Value: TypeAlias = "Scalar | NDArray[Any]"
Truth: TypeAlias = "np.bool_ | NDArray[np.bool_]"

_LONGEST_INTEGER = 10_000
_EXACT: dict[str, Callable[..., int | Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "neg": operator.neg,
    "min": min,
    "max": max,
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
}


def evaluate(node: Node, values: Mapping[str, Value], source: Source | None = None) -> Any:
    """The value of a state expression.

    Args:
        node: an expression that `check_type` accepts, without temporal operators and without `sees`.
        values: for each name a scalar, or an array (integer, float64 or bool) with one entry per state; arrays
            must have one common shape.
        source: the text `node` was read from, for messages.

    Returns:
        int, float or bool when no name of `node` has an array; else an array of int64, float64 or bool of their
        common shape. Integer operands give integers, decimals and `/` give floats: exact values rounded once.

    Raises:
        InputError: division by zero, a value beyond 64 bits or beyond float64, `//` or `%` of fractions, or a
            name without a value.
    """
    result = _evaluated(node, values, source or Source(""))
    if isinstance(result, Exact | Floating):
        return result.value()
    return result if isinstance(result, np.ndarray) else bool(result)


def _evaluated(node: Node, values: Mapping[str, Value], text: Source) -> Quantity | Truth:
    arithmetic = Arithmetic(text)

    def combine(node: Node, below: tuple[Quantity | Truth, ...]) -> Quantity | Truth:
        if isinstance(node, Number):
            return _literal(node, text)
        if isinstance(node, Boolean):
            return np.bool_(node.value)
        if isinstance(node, Name):
            return _leaf(node, values, text)
        if isinstance(node, Temporal) or is_atom(node):
            raise ValueError(f"not a state expression: {to_text(node)}")
        if is_choice(node):
            return _chosen(node, values, text)
        numeric = isinstance(node, Call) or node.operator in ARITHMETIC | COMPARISONS
        if any(isinstance(mask, Exact | Floating) != numeric for mask in below):
            raise ValueError(f"operands of the wrong kind: {to_text(node)}")
        if isinstance(node, Operation) and not numeric:
            return truth_of(node.operator, [x for x in below if not isinstance(x, Exact | Floating)])
        operands = tuple(mask for mask in below if isinstance(mask, Exact | Floating))
        if isinstance(node, Call):
            return arithmetic.call(node, operands)
        if node.operator in COMPARISONS:
            truth: Truth = arithmetic.compare(node, *operands)
            return truth
        return arithmetic.operate(node, operands)

    return fold(node, combine, is_choice)


def _chosen(node: Node, values: Mapping[str, Value], text: Source) -> Quantity | Truth:
    """The value of `ite(condition, a, b)`; each branch is evaluated only where it is taken."""
    condition, *branches = children(node)
    taken = _evaluated(condition, values, text)
    assert not isinstance(taken, Exact | Floating)
    if not isinstance(taken, np.ndarray):
        return _evaluated(branches[0 if taken else 1], values, text)
    parts = []
    for branch, mask in zip(branches, (taken, ~taken), strict=True):
        there = {name: values[name] for name in names_in(branch) if name in values}
        if not mask.all():
            there = {
                name: value[mask] if isinstance(value, np.ndarray) and value.ndim else value
                for name, value in there.items()
            }
        parts.append(_evaluated(branch, there, text) if mask.any() or not mask.size else None)
    first, second = (part if part is not None else other for part, other in zip(parts, parts[::-1], strict=True))
    if isinstance(first, Exact | Floating) and isinstance(second, Exact | Floating):
        return joined(taken, first, second)
    truth = np.empty(taken.shape, dtype=bool)
    for mask, part in zip((taken, ~taken), parts, strict=True):
        if part is not None:
            truth[mask] = part
    return truth


def exact_number(node: Node, values: Mapping[str, int | Fraction], source: Source | None = None) -> int | Fraction:
    """The exact value of an arithmetic expression over constants; an int where it is whole.

    Raises:
        InputError: division by zero, a name without a value, or a number of more than `_LONGEST_INTEGER` bits.
    """
    value: Fraction = _exactly(node, values, source or Source(""))
    return value.numerator if value.denominator == 1 else value


def _exactly(node: Node, values: Mapping[str, int | Fraction], text: Source) -> Any:
    """A fraction, or the truth of a condition."""

    def combine(node: Node, below: tuple[Any, ...]) -> Any:
        if is_choice(node):
            condition, *branches = children(node)
            return _exactly(branches[0 if _exactly(condition, values, text) else 1], values, text)
        if isinstance(node, Boolean):
            return node.value
        if isinstance(node, Operation) and node.operator in COMPARISONS:
            return COMPARE[node.operator](*below)
        if isinstance(node, Operation) and node.operator in CONNECTIVES:
            return bool(truth_of(node.operator, below))
        if isinstance(node, Name):
            if node.name not in values:
                raise text.unknown("constant", node.name, values, node.position)
            return Fraction(values[node.name])
        if isinstance(node, Number):
            return Fraction(node.value)
        known = node.function if isinstance(node, Call) else getattr(node, "operator", "")
        if known not in _EXACT:
            raise ValueError(f"not an arithmetic expression: {to_text(node)}")
        if known in ("/", "//", "%") and below[1] == 0:
            where = ", ".join(f"{name} = {values[name]}" for name in sorted(names_in(node)))
            raise text.error(f"division by zero{where and f' at {where}'}", node.position)
        result = Fraction(_EXACT[known](*below))
        if max(result.numerator.bit_length(), result.denominator.bit_length()) > _LONGEST_INTEGER:
            raise text.error("the number is too large", node.position)
        return result

    return fold(node, combine, is_choice)


def _literal(node: Number, source: Source) -> Quantity:
    number = quantity(node.value)
    if number is None:
        text = to_text(node)
        text = text if len(text) <= 40 else f"a number of {len(text)} digits"
        raise source.error(f"beyond 64-bit integers: {text}", node.position)
    return number


def _leaf(node: Name, values: Mapping[str, Value], source: Source) -> Quantity | Truth:
    if node.name not in values:
        raise source.unknown("name", node.name, values, node.position)
    value = values[node.name]
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, np.ndarray) and value.dtype == np.bool_:
        return value
    number = quantity(value)
    if number is None:
        raise source.error(f"the value of '{node.name}' is beyond 64-bit integers", node.position)
    return number


def truth_of(operator: str, operands: Sequence[Truth]) -> Truth:
    """That of a connective, from the truth of its operands."""
    first, last = operands[0], operands[-1]
    match operator:
        case "!":
            return np.logical_not(first)
        case "&":
            return np.logical_and(first, last)
        case "|":
            return np.logical_or(first, last)
        case "xor":
            return np.logical_xor(first, last)
        case "->":
            return np.logical_or(np.logical_not(first), last)
        case _:
            return np.equal(first, last)
