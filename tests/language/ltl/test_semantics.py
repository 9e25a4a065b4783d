"""The definition itself is tested on words worked out by hand, then by laws of the textbook."""

import numpy as np
import pytest
from formula_strategies import formulas, lassos
from hypothesis import given
from hypothesis import strategies as st

from verifier.language.expressions.syntax import FALSE, TRUE, Boolean, Call, Interval, Name, Operation, Temporal
from verifier.language.ltl import holds_on_lasso, parse_formula
from verifier.language.ltl.semantics import connective, temporal


def word(text):
    """Letters separated by spaces; "-" is the empty letter: "ab - a" is {a,b} {} {a}."""
    return tuple(frozenset(letter) - {"-"} for letter in text.split())


@pytest.mark.parametrize(
    ("formula", "prefix", "loop", "expected"),
    [
        ("true", "", "-", True),
        ("false", "", "a", False),
        ("a", "a", "-", True),
        ("a", "-", "a", False),
        ("X a", "-", "a", True),
        ("X a", "a", "- a", False),
        ("X[3] a", "- - -", "a", True),
        ("X[3] a", "a a a", "-", False),
        ("X[100] a", "-", "a -", False),  # index 100 of - (a -)^w: even positions are empty
        ("X[101] a", "-", "a -", True),
        ("X[4] a", "-", "a - -", True),
        ("F a", "- -", "- a", True),
        ("F a", "", "-", False),
        ("G a", "a a", "a", True),
        ("G a", "a a", "a -", False),
        ("G F a", "", "- - a", True),
        ("G F a", "a a", "-", False),
        ("F G a", "- -", "a", True),
        ("F G a", "a", "a -", False),
        ("a U b", "a a b", "-", True),
        ("a U b", "a - b", "-", False),
        ("a U b", "b", "-", True),
        ("a U b", "", "a", False),  # the right side must come
        ("a W b", "", "a", True),
        ("a W b", "a -", "b", False),
        ("a W b", "-", "a", False),
        ("a R b", "b b ab", "-", True),  # b up to and including the first a
        ("a R b", "b b a", "-", False),
        ("a R b", "", "b", True),
        ("a M b", "", "b", False),  # strong: a must come
        ("a M b", "b ab", "-", True),
        ("F<=2 a", "- - a", "-", True),
        ("F<=1 a", "- - a", "-", False),
        ("F[2,3] a", "a a - a", "-", True),
        ("F[2,3] a", "a a - -", "a", False),
        ("F>=3 a", "a a a", "-", False),
        ("F>=3 a", "- - -", "- - a", True),
        ("F=2 a", "- - a", "-", True),
        ("F=2 a", "a a -", "a", False),
        ("G<=1 a", "a a", "-", True),
        ("G<=2 a", "a a", "-", False),
        ("G[1,2] a", "- a a", "-", True),
        ("G>=2 a", "- -", "a", True),
        ("G>=2 a", "a a a", "-", False),
        ("a U<=2 b", "a a b", "-", True),
        ("a U<=1 b", "a a b", "-", False),
        ("a U[2,3] b", "b b b", "-", False),  # a must hold at steps 0 and 1
        ("a U[2,3] b", "ab ab b", "-", True),
        ("a U>=2 b", "ab a a", "b", True),
        ("a U>=2 b", "ab b a", "b", False),
        ("a R[1,2] b", "- b b", "-", True),
        ("a R[1,2] b", "a - -", "-", True),  # a at step 0 releases both
        ("a R[1,2] b", "- b -", "-", False),
        ("F<=1000000000 a", "", "-", False),
        ("F[999999999,1000000000] a", "", "a -", True),
        ("a U[1000000,1000001] b", "a", "a ab", True),
    ],
)
def test_infinite_words(formula, prefix, loop, expected):
    assert holds_on_lasso(parse_formula(formula), word(prefix), word(loop)) is expected


def test_truth_tables_of_connectives():
    rows = [word(letter) for letter in ("-", "b", "a", "ab")]
    for text, table in {
        "!a": [True, True, False, False],
        "a & b": [False, False, False, True],
        "a | b": [False, True, True, True],
        "a xor b": [False, True, True, False],
        "a -> b": [True, True, False, True],
        "a <-> b": [True, False, False, True],
    }.items():
        node = parse_formula(text)
        assert [holds_on_lasso(node, (), row) for row in rows] == table


NAMES = ["a", "b"]
FORMULAS = formulas(NAMES, 2)


def both(left, right, lasso):
    """Whether both hold, or neither does, on the lasso."""
    prefix, loop = lasso
    assert holds_on_lasso(left, prefix, loop) == holds_on_lasso(right, prefix, loop)


def no(a):
    return Operation("!", (a,))


def land(a, b):
    return Operation("&", (a, b))


def lor(a, b):
    return Operation("|", (a, b))


def t(operator, *operands, bound=None):
    return Temporal(operator, operands, bound)


BOUNDS = st.one_of(
    st.none(),
    st.tuples(st.integers(0, 3), st.integers(0, 3)).map(lambda pair: Interval(pair[0], sum(pair))),
    st.integers(0, 3).map(lambda low: Interval(low, None)),
)


@given(FORMULAS, FORMULAS, BOUNDS, lassos(NAMES))
def test_dualities(a, b, bound, lasso):
    both(no(t("F", a, bound=bound)), t("G", no(a), bound=bound), lasso)
    both(no(t("U", a, b, bound=bound)), t("R", no(a), no(b), bound=bound), lasso)
    both(no(t("W", a, b)), t("M", no(a), no(b)), lasso)


@given(FORMULAS, FORMULAS, lassos(NAMES))
def test_derived_operators(a, b, lasso):
    both(t("F", a), t("U", TRUE, a), lasso)
    both(t("G", a), t("R", FALSE, a), lasso)
    both(t("W", a, b), lor(t("U", a, b), t("G", a)), lasso)
    both(t("R", a, b), t("W", b, land(a, b)), lasso)
    both(t("M", a, b), land(t("R", a, b), t("F", a)), lasso)


@given(FORMULAS, FORMULAS, lassos(NAMES))
def test_expansion_laws(a, b, lasso):
    both(t("U", a, b), lor(b, land(a, t("X", t("U", a, b)))), lasso)
    both(t("F", a), lor(a, t("X", t("F", a))), lasso)
    both(t("M", a, b), land(b, lor(a, t("X", t("M", a, b)))), lasso)
    # what may go on for ever asks for no next step on a finite word: weak next, !X!
    both(t("G", a), land(a, no(t("X", no(t("G", a))))), lasso)
    both(t("R", a, b), land(b, lor(a, no(t("X", no(t("R", a, b)))))), lasso)
    both(t("W", a, b), lor(b, land(a, no(t("X", no(t("W", a, b)))))), lasso)


@given(FORMULAS, FORMULAS, st.integers(0, 3), st.integers(0, 3), lassos(NAMES))
def test_bounds_unroll(a, b, low, extra, lasso):
    high = low + extra
    unrolled = b
    for _ in range(extra):
        unrolled = lor(b, land(a, t("X", unrolled)))
    for _ in range(low):
        unrolled = land(a, t("X", unrolled))
    both(t("U", a, b, bound=Interval(low, high)), unrolled, lasso)
    endless = t("U", a, b)
    for _ in range(low):
        endless = land(a, t("X", endless))
    both(t("U", a, b, bound=Interval(low, None)), endless, lasso)
    steps = a
    for _ in range(low + 1):
        steps = t("X", steps)
    both(t("X", a, bound=Interval(low + 1, low + 1)), steps, lasso)
    both(t("F", a, bound=Interval(low, high)), t("U", TRUE, a, bound=Interval(low, high)), lasso)


@given(formulas(NAMES, 3), lassos(NAMES))
def test_a_word_has_one_truth_value_however_it_is_written(formula, lasso):
    prefix, loop = lasso
    expected = holds_on_lasso(formula, prefix, loop)
    assert holds_on_lasso(formula, prefix, (*loop, *loop)) == expected
    assert holds_on_lasso(formula, (*prefix, *loop), loop) == expected
    assert holds_on_lasso(formula, (*prefix, loop[0]), (*loop[1:], loop[0])) == expected


@pytest.mark.parametrize(
    "call",
    [
        lambda: holds_on_lasso(Name("a"), word("a"), ()),
        lambda: holds_on_lasso(parse_formula("G x > 1"), (), word("a")),
        lambda: holds_on_lasso(Call("sees", (Name("a"),)), (), word("a")),
    ],
)
def test_what_has_no_meaning_is_refused(call):
    with pytest.raises(ValueError, match=r"has at least one letter|not a connective|neither temporal"):
        call()


def test_deep_formulas_have_a_value():
    assert holds_on_lasso(parse_formula("X " * 199 + "a"), (), word("- a")) is True


# What is known of sets of paths: 1 on all of them, -1 on none, 0 else; at the first position and at every one.


def known(formula, settled):
    """What `temporal` and `connective` make of a formula, from what is known of its names."""
    if isinstance(formula, Name):
        return settled[formula.name]
    if isinstance(formula, Boolean):
        return np.full_like(settled["a"], 1 if formula.value else -1)
    below = [known(each, settled) for each in formula.operands]
    return temporal(formula, below) if isinstance(formula, Temporal) else connective(formula.operator, below)


def truth_on(paths, formula, at):
    """1, -1 or 0: whether a formula holds on all words from position `at` on, on none, or on some."""
    found = {holds_on_lasso(formula, prefix[at:], loop) for prefix, loop in paths}
    return {frozenset([True]): 1, frozenset([False]): -1}.get(frozenset(found), 0)


@given(formulas(("a", "b"), 3), st.lists(lassos(("a", "b")), min_size=1, max_size=3))
def test_what_is_known_of_a_set_of_paths_is_true_of_each(formula, paths):
    # Every position of a lasso is one of the first ones: those of prefix and of one round of the loop.
    longest = max(len(prefix) + len(loop) for prefix, loop in paths)
    unrolled = [(tuple(prefix) + tuple(loop) * (longest // len(loop) + 1), loop) for prefix, loop in paths]

    def settled(node):
        every = {truth_on(unrolled, node, at) for at in range(longest)}
        return np.array([[truth_on(unrolled, node, 0)], [every.pop() if len(every) == 1 else 0]], dtype=np.int8)

    found, truth = known(formula, {name: settled(Name(name)) for name in "ab"}), settled(formula)
    assert np.all((found == 0) | (found == truth))
    assert abs(found[0]) >= abs(found[1])  # what is known at every position is known at the first


@pytest.mark.parametrize(
    ("formula", "first"),
    [
        ("F a", 1), ("F[1,3] a", 0), ("F>=1 b", 0), ("F c", 1), ("F[2,5] c", 1), ("G[0,0] a", 1), ("G a", 0),
        ("G[2,4] c", 1), ("X c", 1), ("X a", 0), ("a & c", 1), ("a & b", 0), ("!c | b", 0), ("a -> c", 1),
        ("F<=2 a", 1), ("a <-> b", 0),
        ("a xor c", -1), ("a xor !c", 1), ("a <-> c", 1), ("b xor c", 0), ("b U a", 1), ("b U[1,2] a", 0),
        ("a U[1,2] c", 1), ("a U[2,2] c", 0),
        ("b R c", 1), ("!c R a", 0), ("c W b", 1), ("b M !c", -1), ("c M a", 1),
        ("!c U b", 0), ("b U !c", -1),
    ],
)  # fmt: skip
def test_what_is_known_by_hand(formula, first):
    """a holds at first, c everywhere, and of b nothing is known."""
    settled = {"a": [[1], [0]], "b": [[0], [0]], "c": [[1], [1]]}
    found = known(parse_formula(formula), {name: np.array(each, dtype=np.int8) for name, each in settled.items()})
    assert found[0, 0] == first
