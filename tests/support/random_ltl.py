"""Random LTL formulas from seeds, and short constructors for formulas."""

from __future__ import annotations

import random
from collections.abc import Callable

from verifier.language.expressions.syntax import TEMPORAL, Interval, Name, Node, Operation, Temporal

a, b, c = Name("a"), Name("b"), Name("c")


def op(operator: str, *operands: Node) -> Node:
    return Operation(operator, operands)


def temporal(operator: str, *operands: Node, within: tuple[int, int | None] | None = None) -> Node:
    return Temporal(operator, operands, None if within is None else Interval(*within))


def F(x: Node, within: tuple[int, int | None] | None = None) -> Node:  # noqa: N802
    return temporal("F", x, within=within)


def G(x: Node, within: tuple[int, int | None] | None = None) -> Node:  # noqa: N802
    return temporal("G", x, within=within)


def X(x: Node, steps: int = 1) -> Node:  # noqa: N802
    return temporal("X", x, within=(steps, steps))


def U(x: Node, y: Node, within: tuple[int, int | None] | None = None) -> Node:  # noqa: N802
    return temporal("U", x, y, within=within)


def neg(x: Node) -> Node:
    return op("!", x)


_LEAVES = [a, b, c, neg(a), neg(b)]
_OPERATORS = ["!", "&", "|", "->", "xor", "<->", "X", "X", "F", "G", "F", "G", "U", "U", "R", "W", "M"]
assert TEMPORAL.keys() <= {*_OPERATORS}, "an operator that no random formula has"


def random_formula(rng: random.Random, depth: int = 3) -> Node:
    """LTL over a, b, c with every operator and small bounds, from a seed: richer than what a search finds first."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(_LEAVES)
    operator = rng.choice(_OPERATORS)
    low = rng.randint(0, 2)
    within = rng.choice([None, None, None, (low, None), (low, low + rng.randint(0, 2))])
    return _build(operator, rng.choice([1, 1, 2, 3]), within, lambda: random_formula(rng, depth - 1))


def _build(operator: str, steps: int, within: tuple[int, int | None] | None, part: Callable[[], Node]) -> Node:
    if operator == "!":
        return neg(part())
    if operator == "X":
        return X(part(), steps)
    if operator in "FG":
        return temporal(operator, part(), within=within)
    if operator in "UR":
        return temporal(operator, part(), part(), within=within)
    if operator in "WM":
        return temporal(operator, part(), part())
    return op(operator, part(), part())
