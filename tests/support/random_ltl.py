"""Hypothesis strategies for LTL formulas, and short constructors for them."""

from __future__ import annotations

import random
from collections.abc import Callable

from hypothesis import strategies as st

from verifier.language.expressions.syntax import FALSE, TEMPORAL, TRUE, Interval, Name, Node, Operation, Temporal

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


@st.composite
def _intervals(draw: st.DrawFn) -> tuple[int, int | None] | None:
    kind = draw(st.sampled_from(["none", "none", "none", "both", "low"]))
    if kind == "none":
        return None
    low = draw(st.integers(0, 2))
    return (low, low + draw(st.integers(0, 2))) if kind == "both" else (low, None)


_LEAVES = [a, b, c, neg(a), neg(b), TRUE, FALSE]
_OPERATORS = ["!", "&", "|", "->", "xor", "<->", "X", "X", "F", "G", "F", "G", "U", "U", "R", "W", "M"]
assert TEMPORAL.keys() <= {*_OPERATORS}, "an operator that no random formula has"


@st.composite
def formulas(draw: st.DrawFn, depth: int = 3) -> Node:
    """LTL over a, b, c of at most the given depth, with every operator and small bounds."""
    if depth == 0 or draw(st.integers(0, 6)) == 6:
        return draw(st.sampled_from(_LEAVES))
    operator = draw(st.sampled_from(_OPERATORS))
    steps = draw(st.sampled_from([1, 1, 1, 2, 3])) if operator == "X" else 1
    within = draw(_intervals()) if operator in "FGUR" else None
    return _build(operator, steps, within, lambda: draw(formulas(depth - 1)))


def random_formula(rng: random.Random, depth: int = 3) -> Node:
    """The same from a seed: a fixed list of formulas, richer than what a search for simple examples meets."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(_LEAVES[:5])
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
