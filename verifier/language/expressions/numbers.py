"""Arithmetic over arrays that is exact while it can be, and says so when it cannot go on.

A quantity is `Exact` (whole numbers over one common denominator, within 64 bits) or `Floating` (float64). Overflow
is excluded by interval arithmetic in unbounded integers over the least and greatest operand, so it costs no pass
over the array unless the bound is nearly reached.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verifier.language.expressions.printing import to_text
from verifier.language.expressions.source import Source
from verifier.language.expressions.syntax import Call, Node, Operation

_LEAST, _GREATEST = -(2**63), 2**63 - 1
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Exact:
    """`data / denominator`, exactly.

    Attributes:
        data: an int, or an int64 array with one entry per state.
        denominator: at least 1; 1 for integers.
        low, high: bounds of `data`, within 64 bits.
        integer: whether the value is given back as an integer.
    """

    data: int | NDArray[np.int64]
    denominator: int
    low: int
    high: int
    integer: bool

    def value(self) -> Any:
        """int or int64 array if `integer`, else float or float64 array."""
        return self.data if self.integer else self.data / self.denominator

    def floating(self) -> Floating:
        """The same in float64."""
        return Floating(self.data / self.denominator)

    def measured(self) -> Exact:
        """The same, with bounds that are attained."""
        low, high = _ends(np.asarray(self.data))
        return replace(self, low=low, high=high)


@dataclass(frozen=True, slots=True)
class Floating:
    """A float, or a float64 array with one entry per state; finite."""

    data: float | NDArray[np.float64]

    def value(self) -> Any:
        """The float or array."""
        return self.data

    def floating(self) -> Floating:
        """Itself."""
        return self


Quantity: TypeAlias = Exact | Floating


def quantity(value: Any) -> Quantity | None:
    """The quantity that a number or an array of numbers is; None if an integer is beyond 64 bits, or a fraction
    beyond float64.

    Raises:
        ValueError: it is neither, or not finite.
    """
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "iu":
            low, high = _ends(value)
            return Exact(np.asarray(value, dtype=np.int64), 1, low, high, True) if high <= _GREATEST else None
        if value.dtype != np.float64 or not np.all(np.isfinite(value)):
            raise ValueError("expected an array of integers or of finite float64")
        return Floating(value)
    if isinstance(value, Fraction):
        exact = _fits(value.numerator, value.numerator) and value.denominator <= _GREATEST
        number = value.numerator
        if exact:
            return Exact(number, value.denominator, number, number, False)
        return Floating(float(value)) if abs(value) <= sys.float_info.max else None
    if isinstance(value, float) and math.isfinite(value):
        return Floating(value)
    if isinstance(value, int):
        return Exact(value, 1, value, value, True) if _fits(value, value) else None
    raise ValueError(f"expected a finite number, got {value!r}")


def _ends(numbers: NDArray[Any]) -> tuple[int, int]:
    return (int(numbers.min()), int(numbers.max())) if numbers.size else (0, 0)


def _fits(low: int, high: int) -> bool:
    return low >= _LEAST and high <= _GREATEST


@dataclass(frozen=True)
class Arithmetic:
    """The operators and functions over quantities; `source` is the text that errors point into."""

    source: Source

    def operate(self, node: Operation, operands: tuple[Quantity, ...]) -> Quantity:
        """`+ - * / // %` and the unary minus.

        Raises:
            InputError: division by zero, a result beyond its range, `//` or `%` of fractions.
        """
        if node.operator == "neg":
            return self._scaled(node, operands[0], -1)
        left, right = operands
        match node.operator:
            case "+":
                return self._sum(node, left, right)
            case "-":
                return self._sum(node, left, self._scaled(node, right, -1))
            case "*":
                return self._product(node, left, right)
            case "/":
                return self._quotient(node, left, right)
            case _:
                return self._whole_quotient(node, left, right)

    def call(self, node: Call, operands: tuple[Quantity, ...]) -> Quantity:
        """`min max abs floor ceil`; InputError when a float to be rounded is beyond 64 bits."""
        first = operands[0]
        match node.function:
            case "min":
                return reduce(lambda a, b: self._extreme(a, b, np.minimum, min), operands)
            case "max":
                return reduce(lambda a, b: self._extreme(a, b, np.maximum, max), operands)
            case "abs":
                return self._absolute(node, first)
            case "floor":
                return self._floor(node, first)
            case _:
                return self._scaled(node, self._floor(node, self._scaled(node, first, -1)), -1)

    def compare(self, node: Operation, left: Quantity, right: Quantity) -> Any:
        """A bool or an array of bool; exact where both sides are."""
        compare = COMPARE[node.operator]
        if isinstance(left, Exact) and isinstance(right, Exact):
            aligned = _aligned(left, right)
            if aligned is not None:
                return compare(aligned[0].data, aligned[1].data)
            wide = [np.asarray(exact.data, dtype=object) for exact in (left, right)]
            outcome = compare(wide[0] * right.denominator, wide[1] * left.denominator)
            return np.asarray(outcome, dtype=bool) if isinstance(outcome, np.ndarray) else bool(outcome)
        return compare(left.floating().data, right.floating().data)

    def _sum(self, node: Node, left: Quantity, right: Quantity) -> Quantity:
        if isinstance(left, Exact) and isinstance(right, Exact):
            for a, b in ((left, right), (left.measured(), right.measured())):
                aligned = _aligned(a, b)
                if aligned is not None:
                    a, b = aligned
                    low, high = a.low + b.low, a.high + b.high
                    if _fits(low, high):
                        return Exact(a.data + b.data, a.denominator, low, high, a.integer and b.integer)
            self._refuse_overflow(node, left, right)
        return self._finite(node, operator.add, left, right)

    def _product(self, node: Node, left: Quantity, right: Quantity) -> Quantity:
        if isinstance(left, Exact) and isinstance(right, Exact):
            left, right = _cancelled(left, right)
            for a, b in ((left, right), (left.measured(), right.measured())):
                corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
                denominator = a.denominator * b.denominator
                if _fits(min(corners), max(corners)) and denominator <= _GREATEST:
                    integer = a.integer and b.integer
                    return Exact(a.data * b.data, denominator, min(corners), max(corners), integer)
            self._refuse_overflow(node, left, right)
        return self._finite(node, operator.mul, left, right)

    def _scaled(self, node: Node, value: Quantity, factor: int) -> Quantity:
        return self._product(node, value, Exact(factor, 1, factor, factor, True))

    def _quotient(self, node: Node, left: Quantity, right: Quantity) -> Quantity:
        self._refuse_zero(node, right)
        if isinstance(right, Exact) and isinstance(right.data, int):
            reciprocal = quantity(Fraction(right.denominator, right.data))
            if isinstance(left, Exact) and isinstance(reciprocal, Exact):
                return self._product(node, left, reciprocal)
        return self._finite(node, operator.truediv, left, right)

    def _whole_quotient(self, node: Operation, left: Quantity, right: Quantity) -> Quantity:
        a, b = left, right
        if not (isinstance(a, Exact) and isinstance(b, Exact) and a.integer and b.integer):
            message = f"expected whole numbers on both sides of {node.operator}"
            raise self.source.error(message, node.position, "for the whole part of a quotient write floor(a / b)")
        self._refuse_zero(node, right)
        if node.operator == "%":
            low = min(0, b.low + 1)
            high = max(0, b.high - 1)
            return Exact(a.data % b.data, 1, low, high, True)
        size = max(abs(a.low), abs(a.high))
        if size > _GREATEST and np.any(np.equal(a.data, _LEAST) & np.equal(b.data, -1)):
            self._refuse_overflow(node, a, b)
        return Exact(a.data // b.data, 1, -size, min(size, _GREATEST), True)

    def _absolute(self, node: Node, value: Quantity) -> Quantity:
        negated = self._scaled(node, value, -1)
        return self._extreme(value, negated, np.maximum, max)

    def _extreme(
        self, left: Quantity, right: Quantity, arrays: Callable[[Any, Any], Any], scalars: Callable[[Any, Any], Any]
    ) -> Quantity:
        aligned = _aligned(left, right) if isinstance(left, Exact) and isinstance(right, Exact) else None
        a, b = aligned or (left.floating(), right.floating())
        both_scalar = not isinstance(a.data, np.ndarray) and not isinstance(b.data, np.ndarray)
        data = scalars(a.data, b.data) if both_scalar else arrays(a.data, b.data)
        if isinstance(a, Exact) and isinstance(b, Exact):
            low, high = scalars(a.low, b.low), scalars(a.high, b.high)
            return Exact(data, a.denominator, low, high, a.integer and b.integer)
        return Floating(data)

    def _floor(self, node: Node, value: Quantity) -> Quantity:
        if isinstance(value, Exact):
            d = value.denominator
            return Exact(value.data // d, 1, value.low // d, value.high // d, True)
        floors = np.floor(np.asarray(value.data))
        if not np.all((floors >= -(2.0**63)) & (floors < 2.0**63)):
            raise self.source.error(f"beyond 64-bit integers: {_excerpt(node)}", node.position)
        whole = floors.astype(np.int64)
        return Exact(whole if whole.ndim else int(whole), 1, *_ends(whole), True)

    def _finite(self, node: Node, operation: Callable[[Any, Any], Any], left: Quantity, right: Quantity) -> Floating:
        with np.errstate(all="ignore"):
            data = operation(np.asarray(left.floating().data), np.asarray(right.floating().data))
        if not np.all(np.isfinite(data)):
            raise self.source.error(f"beyond the range of floating point: {_excerpt(node)}", node.position)
        return Floating(data if data.ndim else float(data))

    def _refuse_zero(self, node: Node, divisor: Quantity) -> None:
        if not np.all(np.asarray(divisor.data) != 0):
            rule = "every state is evaluated, also where a condition beside it rules the quotient out"
            hint = f"{rule}: write ite(condition, quotient, 0)"
            raise self.source.error(f"division by zero in {_excerpt(node)}", node.position, hint)

    def _refuse_overflow(self, node: Node, left: Exact, right: Exact) -> None:
        """Integers must not become floats unasked; fractions may."""
        if left.integer and right.integer:
            raise self.source.error(f"beyond 64-bit integers: {_excerpt(node)}", node.position)


def _excerpt(node: Node) -> str:
    text = to_text(node)
    return text if len(text) <= 60 else text[:57] + "..."


def _aligned(left: Exact, right: Exact) -> tuple[Exact, Exact] | None:
    """Both over their least common denominator; None if that leaves 64 bits."""
    denominator = math.lcm(left.denominator, right.denominator)
    if denominator > _GREATEST:
        return None
    scaled = []
    for exact in (left, right):
        factor = denominator // exact.denominator
        low, high = exact.low * factor, exact.high * factor
        if not _fits(low, high):
            return None
        data = exact.data if factor == 1 else exact.data * factor
        scaled.append(Exact(data, denominator, low, high, exact.integer))
    return scaled[0], scaled[1]


def joined(taken: NDArray[np.bool_], first: Quantity, second: Quantity) -> Quantity:
    """`first` in the places that are `taken`, `second` in the others; each has one entry per place, or is a scalar.

    Where all places are of one kind both are what stands there.
    """
    only = first if taken.all() else None if taken.any() else second
    if only is not None:
        if isinstance(only.data, np.ndarray):
            return only
        if isinstance(only, Exact):
            return replace(only, data=np.full(taken.shape, only.data, dtype=np.int64))
        return Floating(np.full(taken.shape, only.data))
    aligned = _aligned(first, second) if isinstance(first, Exact) and isinstance(second, Exact) else None
    a, b = aligned or (first.floating(), second.floating())
    if isinstance(a, Exact) and isinstance(b, Exact):
        whole = np.empty(taken.shape, dtype=np.int64)
        whole[taken], whole[~taken] = a.data, b.data
        return Exact(whole, a.denominator, min(a.low, b.low), max(a.high, b.high), a.integer and b.integer)
    numbers = np.empty(taken.shape)
    numbers[taken], numbers[~taken] = a.data, b.data
    return Floating(numbers)


def _cancelled(left: Exact, right: Exact) -> tuple[Exact, Exact]:
    """Both factors, with what a constant one shares with the other's denominator taken out."""
    if isinstance(left.data, int):
        left, right = _shared_factor(left.data, left, right)
    if isinstance(right.data, int):
        right, left = _shared_factor(right.data, right, left)
    return left, right


def _shared_factor(number: int, constant: Exact, other: Exact) -> tuple[Exact, Exact]:
    common = math.gcd(number, other.denominator)
    number //= common
    return (
        replace(constant, data=number, low=number, high=number),
        replace(other, denominator=other.denominator // common),
    )
