"""Random expressions, formulas and words for the tests of several packages."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from verifier.language.expressions.syntax import Boolean, Call, Interval, Name, Node, Number, Operation, Temporal


def formulas(
    names: Sequence[str], max_depth: int, temporal: bool = True, bounded: bool = True
) -> SearchStrategy[Node]:
    """Formulas over the propositions `names`, at most `max_depth` operators deep.

    Without `temporal` only connectives; without `bounded` no bounds. Bounds are at most 4 steps.
    """
    leaves = st.one_of(st.sampled_from([Name(name) for name in names]), st.booleans().map(Boolean))
    if max_depth <= 0:
        return leaves
    inner = formulas(names, max_depth - 1, temporal, bounded)
    choices = [leaves, _operations(("!",), inner, 1), _operations(("&", "|", "xor", "->", "<->"), inner, 2)]
    if temporal:
        bounds = st.one_of(st.none(), intervals()) if bounded else st.none()
        steps = st.one_of(st.none(), st.integers(1, 4).map(lambda n: Interval(n, n))) if bounded else st.none()
        choices += [
            st.builds(Temporal, st.just("X"), st.tuples(inner), steps),
            st.builds(Temporal, st.sampled_from("FG"), st.tuples(inner), bounds),
            st.builds(Temporal, st.sampled_from("UR"), st.tuples(inner, inner), bounds),
            st.builds(Temporal, st.sampled_from("WM"), st.tuples(inner, inner)),
        ]
    return st.one_of(choices)


def intervals() -> SearchStrategy[Interval]:
    """Bounds `[low, high]` with low and high - low at most 3, and bounds without end."""
    closed = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(lambda pair: Interval(pair[0], sum(pair)))
    return st.one_of(closed, st.integers(0, 3).map(lambda low: Interval(low, None)))


def arithmetic(
    names: Sequence[str], max_depth: int, leaves: SearchStrategy[Node] | None = None
) -> SearchStrategy[Node]:
    """Numbers built from `names` and literals (or `leaves`) with every operator and function."""
    numbers = st.one_of(
        st.integers(0, 10**6),
        st.decimals(0, 1000, places=3).map(Fraction).filter(lambda value: value.denominator > 1),
    ).map(Number)
    words = st.sampled_from([Name(name) for name in names])
    bottom = leaves if leaves is not None else st.one_of(words, numbers)
    if max_depth <= 0:
        return bottom
    inner = arithmetic(names, max_depth - 1, leaves)
    return st.one_of(
        bottom,
        _operations(("neg",), inner, 1),
        _operations(("+", "-", "*", "/", "//", "%"), inner, 2),
        st.builds(Call, st.sampled_from(("abs", "floor", "ceil")), st.tuples(inner)),
        st.builds(Call, st.sampled_from(("min", "max")), st.lists(inner, min_size=2, max_size=3).map(tuple)),
    )


def conditions(
    numbers: SearchStrategy[Node], propositions: SearchStrategy[Node], max_depth: int
) -> SearchStrategy[Node]:
    """State conditions: comparisons of `numbers` and `propositions` under connectives."""
    leaves = st.one_of(propositions, _operations(("=", "!=", "<", "<=", ">", ">="), numbers, 2))
    if max_depth <= 0:
        return leaves
    inner = conditions(numbers, propositions, max_depth - 1)
    connectives = _operations(("&", "|", "xor", "->", "<->"), inner, 2)
    return st.one_of(leaves, _operations(("!",), inner, 1), connectives)


def lassos(
    names: Sequence[str], longest: int = 4
) -> SearchStrategy[tuple[tuple[frozenset[str], ...], tuple[frozenset[str], ...]]]:
    """Prefix and loop over the letters 2^names, each at most `longest` letters, the loop at least one."""
    letter = st.frozensets(st.sampled_from(list(names)))
    prefix = st.lists(letter, max_size=longest).map(tuple)
    return st.tuples(prefix, st.lists(letter, min_size=1, max_size=longest).map(tuple))


def _operations(operators: Sequence[str], inner: SearchStrategy[Node], count: int) -> SearchStrategy[Node]:
    return st.builds(Operation, st.sampled_from(operators), st.tuples(*[inner] * count))
