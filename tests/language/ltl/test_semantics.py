"""The definition itself is tested on words worked out by hand, then by laws of the textbook."""

import numpy as np
import pytest
from formula_strategies import formulas, lassos
from hypothesis import given
from hypothesis import strategies as st

from verifier.language.expressions.syntax import FALSE, TRUE, Call, Interval, Name, Operation, Temporal
from verifier.language.ltl import holds_on_finite_trace, holds_on_lasso, parse_formula
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


@pytest.mark.parametrize(
    ("formula", "trace", "expected"),
    [
        ("X a", "-", False),  # there is no next step
        ("!X a", "a", True),
        ("X true", "a", False),
        ("X true", "a a", True),
        ("X[2] a", "- - a", True),
        ("X[3] a", "a a a", False),
        ("F a", "- - a", True),
        ("F a", "- -", False),
        ("G a", "a a", True),
        ("G a", "a -", False),
        ("G F a", "- a -", False),  # at the last step nothing follows
        ("F G a", "- a", True),
        ("a U b", "a a b", True),
        ("a U b", "a a", False),
        ("a W b", "a a", True),
        ("a R b", "b b", True),
        ("a M b", "b b", False),
        ("a M b", "b ab", True),
        ("F[2,3] a", "- - a", True),
        ("F[2,3] a", "a a", False),
        ("F>=1 a", "a", False),
        ("G[2,3] a", "- -", True),  # steps 2 and 3 do not exist
        ("G>=1 a", "-", True),
        ("a R[1,2] b", "-", True),
        ("a U[1,2] b", "ab", False),
    ],
)
def test_finite_words(formula, trace, expected):
    assert holds_on_finite_trace(parse_formula(formula), word(trace)) is expected


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
        assert [holds_on_finite_trace(node, row) for row in rows] == table


NAMES = ["a", "b"]
FORMULAS = formulas(NAMES, 2)


def both(left, right, lasso):
    """Whether both hold, or neither does, on the lasso and on the finite word of its letters."""
    prefix, loop = lasso
    assert holds_on_lasso(left, prefix, loop) == holds_on_lasso(right, prefix, loop)
    trace = (*prefix, *loop)
    assert holds_on_finite_trace(left, trace) == holds_on_finite_trace(right, trace)


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
        lambda: holds_on_finite_trace(Name("a"), ()),
        lambda: holds_on_lasso(parse_formula("G x > 1"), (), word("a")),
        lambda: holds_on_lasso(Call("sees", (Name("a"),)), (), word("a")),
    ],
)
def test_what_has_no_meaning_is_refused(call):
    with pytest.raises(ValueError, match=r"has at least one letter|not a connective|neither temporal"):
        call()


def test_deep_formulas_have_a_value():
    assert holds_on_lasso(parse_formula("X " * 199 + "a"), (), word("- a")) is True


# What is known of a path at its first position, and at every position: true, false or not known.
KNOWN = {"yes": (1, 1), "no": (-1, -1), "open": (0, 0), "now": (1, 0), "not_now": (-1, 0)}


@pytest.mark.parametrize(
    ("formula", "operands", "expected"),
    [
        ("F a", ["now"], (1, 0)),
        ("F a", ["open"], (0, 0)),
        ("F a", ["no"], (-1, -1)),
        ("F[2,3] a", ["now"], (0, 0)),  # what is true now need not be true in two steps
        ("F[2,3] a", ["yes"], (1, 1)),
        ("F[0,0] a", ["not_now"], (-1, 0)),
        ("G a", ["not_now"], (-1, 0)),
        ("G[1,3] a", ["not_now"], (0, 0)),
        ("G[1,3] a", ["yes"], (1, 1)),
        ("X a", ["now"], (0, 0)),
        ("X a", ["no"], (-1, -1)),
        ("a U b", ["no", "now"], (1, 0)),
        ("a U b", ["no", "not_now"], (-1, 0)),
        ("a U[1,4] b", ["not_now", "yes"], (-1, 0)),
        ("a U[1,4] b", ["now", "yes"], (1, 0)),
        ("a R b", ["no", "not_now"], (-1, 0)),
        ("a R b", ["now", "now"], (1, 0)),
        ("a W b", ["yes", "no"], (1, 1)),
        ("a W b", ["not_now", "not_now"], (-1, 0)),
        ("a M b", ["now", "now"], (1, 0)),
        ("a M b", ["no", "yes"], (-1, -1)),
    ],
)
def test_what_operands_tell_of_a_temporal_formula(formula, operands, expected):
    found = temporal(parse_formula(formula), [np.array(KNOWN[each])[:, None] for each in operands])
    assert tuple(found[:, 0].tolist()) == expected


@pytest.mark.parametrize(
    ("operator", "table"),  # of true, not known and false with each of them
    [
        ("&", [1, 0, -1, 0, 0, -1, -1, -1, -1]),
        ("|", [1, 1, 1, 1, 0, 0, 1, 0, -1]),
        ("->", [1, 0, -1, 1, 0, 0, 1, 1, 1]),
        ("xor", [-1, 0, 1, 0, 0, 0, 1, 0, -1]),
        ("<->", [1, 0, -1, 0, 0, 0, -1, 0, 1]),
    ],
)
def test_connectives_of_what_is_known(operator, table):
    first, last = np.repeat([1, 0, -1], 3)[None], np.tile([1, 0, -1], 3)[None]
    assert connective(operator, [first, last]).tolist() == [table]
    assert connective("!", [first]).tolist() == [[-1] * 3 + [0] * 3 + [1] * 3]
