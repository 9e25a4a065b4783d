"""Hypothesis strategies for LTL formulas, and short constructors for them."""

from __future__ import annotations

from hypothesis import strategies as st

from verifier.expressions.syntax import FALSE, TRUE, Interval, Name, Node, Operation, Temporal

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


def formulas(max_leaves: int = 8) -> st.SearchStrategy[Node]:
    """LTL over a, b, c with every operator and small bounds."""
    leaves = st.sampled_from([a, b, c, a, b, c, TRUE, FALSE])

    def extend(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
        return st.one_of(
            st.builds(neg, inner),
            st.builds(op, st.sampled_from(["&", "|", "->", "xor", "<->"]), inner, inner),
            st.builds(lambda x, n: X(x, n), inner, st.sampled_from([1, 1, 1, 2, 3])),
            st.builds(lambda o, x, w: temporal(o, x, within=w), st.sampled_from("FG"), inner, _intervals()),
            st.builds(lambda o, x, y, w: temporal(o, x, y, within=w), st.sampled_from("UR"), inner, inner, _intervals()),
            st.builds(lambda o, x, y: temporal(o, x, y), st.sampled_from("WM"), inner, inner),
        )

    return st.recursive(leaves, extend, max_leaves=max_leaves)
