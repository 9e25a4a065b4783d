from fractions import Fraction

import pytest
from counted_work import calls_of
from formula_strategies import conditions, formulas
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import InputError
from verifier.language.expressions import Source, to_text
from verifier.language.expressions.syntax import Interval, Name, Number, Operation, Position, Seconds, Temporal
from verifier.language.ltl import in_steps, parse_formula

A, B, C = (Name(name) for name in "abc")


def op(operator, *operands):
    return Operation(operator, operands)


def temporal(operator, *operands, low=None, high=None):
    return Temporal(operator, operands, None if low is None else Interval(low, high))


def within(operator, *operands, low, high, **open_ends):
    ends = Seconds(Fraction(low), None if high is None else Fraction(high), **open_ends)
    return Temporal(operator, operands, None, None, ends)


def X(a):  # noqa: N802
    return temporal("X", a)


def F(a):  # noqa: N802
    return temporal("F", a)


def G(a):  # noqa: N802
    return temporal("G", a)


def U(a, b):  # noqa: N802
    return temporal("U", a, b)


@pytest.mark.parametrize(
    ("spellings", "node"),
    [
        (("X a", "next a", "○a", "◯ a"), X(A)),
        (("F a", "<> a", "<>a", "◇a", "eventually a"), F(A)),
        (("G a", "[] a", "[]a", "[ ] a", "□a", "always a"), G(A)),
        (("a U b", "a until b", "a 𝒰 b"), U(A, B)),
        (("a R b",), temporal("R", A, B)),
        (("a W b",), temporal("W", A, B)),
        (("a M b",), temporal("M", A, B)),
        (("G F a", "[]<>a", "□◇a", "[] <> a", "always eventually a"), G(F(A))),
        (("F G a", "<>[]a", "◇□ a"), F(G(A))),
        (("G (a -> F b)", "[](a => <>b)", "□(a → ◇b)", "always (a implies eventually b)"), G(op("->", A, F(B)))),
        ((r"a /\ X b \/ !c", "a && X b || ~c", "a ∧ ○b ∨ ¬c"), op("|", op("&", A, X(B)), op("!", C))),
        (("F<=10 a", "F<11 a", "F[0,10] a", "F[0:10] a", "F[0..10]a", "<><=10 a"), temporal("F", A, low=0, high=10)),
        (("G>=3 a", "G>2 a", "[]>=3 a"), temporal("G", A, low=3)),
        (("F=5 a", "F==5 a", "F[5,5] a", "F [ 5 .. 5 ] a"), temporal("F", A, low=5, high=5)),
        (("a U<=4 b", "a U<5 b", "a U[0,4] b", "a U ≤4 b"), temporal("U", A, B, low=0, high=4)),
        (("a U>=2 b", "a U>1 b", "a U ≥ 2 b"), temporal("U", A, B, low=2)),
        (("a R[1,3] b", "a R[1:3]b"), temporal("R", A, B, low=1, high=3)),
        (("X[3] a", "next[3] a"), temporal("X", A, low=3, high=3)),
        (("F<=0 a", "F<1 a"), temporal("F", A, low=0, high=0)),
        (("F x<-1", "F (x < -1)"), F(op("<", Name("x"), op("neg", Number(1))))),
        (("F<=10000000 a",), temporal("F", A, low=0, high=10_000_000)),
        (("F<=2147483647 a",), temporal("F", A, low=0, high=2**31 - 1)),
        (("F[1s,2.5s] a", "F[1.0s:2.5s] a", "F[1s..2.5s] a"), within("F", A, low=1, high=Fraction(5, 2))),
        (("F[2s,2s] a", "F=2s a"), within("F", A, low=2, high=2)),
        (("G>=2s a",), within("G", A, low=2, high=None)),
        (("a U<0.5s b",), within("U", A, B, low=0, high=Fraction(1, 2), high_open=True)),
        (("F<=123456789.123456789s a",), within("F", A, low=0, high=Fraction("123456789.123456789"))),
    ],
)
def test_every_spelling_reads_the_same(spellings, node):
    for spelling in spellings:
        assert parse_formula(spelling) == node


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("a U b U c", U(A, U(B, C))),
        ("a U b W c", U(A, temporal("W", B, C))),
        ("!a U b", U(op("!", A), B)),
        ("G a U b", U(G(A), B)),
        ("a U !b", U(A, op("!", B))),
        ("a U G b", U(A, G(B))),
        ("a & b U c", op("&", A, U(B, C))),
        ("a U b & c", op("&", U(A, B), C)),
        ("a U b | c", op("|", U(A, B), C)),
        ("G a & b", op("&", G(A), B)),
        ("F a | G b", op("|", F(A), G(B))),
        ("G a -> F b", op("->", G(A), F(B))),
        ("X a xor b", op("xor", X(A), B)),
        ("G x = 1", G(op("=", Name("x"), Number(1)))),
        ("F<=3 x = 1 & b", op("&", temporal("F", op("=", Name("x"), Number(1)), low=0, high=3), B)),
        ("! X a", op("!", X(A))),
        ("a U x + 1 = 2", U(A, op("=", op("+", Name("x"), Number(1)), Number(2)))),
        ("a -> b U c -> a", op("->", A, op("->", U(B, C), A))),
    ],
)
def test_precedence_and_associativity(text, node):
    assert parse_formula(text) == node


@given(formulas(["a", "at_line", "F", "traffic cone"], 4), st.booleans())
def test_reading_a_print_gives_the_formula(node, parenthesise):
    assert parse_formula(to_text(node, parenthesise)) == node


@given(
    st.sampled_from("UWRM"),
    st.lists(conditions(st.sampled_from([Name("x"), Number(2)]), st.sampled_from([A, B]), 2), min_size=2, max_size=2),
    st.booleans(),
)
def test_reading_a_print_gives_the_formula_over_comparisons(operator, operands, parenthesise):
    node = G(Temporal(operator, tuple(operands)))
    assert parse_formula(to_text(node, parenthesise)) == node


@pytest.mark.parametrize(
    ("text", "printed", "parenthesised"),
    [
        ("[](a -> <>b)", "G (a -> F b)", "G (a -> (F b))"),
        ("[]<>a && <>[]b", "G F a & F G b", "(G (F a)) & (F (G b))"),
        ("(a U b) U c", "(a U b) U c", "(a U b) U c"),
        ("a U (b U c)", "a U b U c", "a U (b U c)"),
        ("F<10 a", "F<=9 a", "F<=9 a"),
        ("F<=00000000012 a", "F<=12 a", "F<=12 a"),
        ("G>=00 a", "G>=0 a", "G>=0 a"),
        ("F=5 a & G>2 b", "F[5,5] a & G>=3 b", "(F[5,5] a) & (G>=3 b)"),
        ("a U x = 1", "a U (x = 1)", "a U (x = 1)"),
        ("G !x = 1", "G !(x = 1)", "G (!(x = 1))"),
        ("a U !b", "a U !b", "a U (!b)"),
        ("a R X b", "a R X b", "a R (X b)"),
        ("a W F b", "a W F b", "a W (F b)"),
        ("a M G b", "a M G b", "a M (G b)"),
    ],
)
def test_prints(text, printed, parenthesised):
    assert to_text(parse_formula(text)) == printed
    assert to_text(parse_formula(text), parenthesise=True) == parenthesised


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("G (a", "expected ')' or an operator, found the end", 5),
        ("a)", "expected an operator or the end, found ')'", 2),
        ("G", "expected a condition or a number, found the end", 2),
        ("U & a", "expected a condition or a number, found 'U'", 1),
        ("a U", "expected a condition or a number, found the end", 4),
        ("x = G b", "expected a number, found 'G'", 5),
        ("a -> b <-> c", "-> and <-> stand side by side without parentheses", 8),
        ("G (a <-> b -> c)", "-> and <-> stand side by side without parentheses", 12),
        ("1", "expected a condition, found a number", 1),
        ("x + 1", "expected a condition, found a number", 1),
        ("G x + 1", "expected a condition, found a number", 3),
        ("a U 3", "expected a condition, found a number", 5),
        ("(F a) > 2", "expected a number, found a condition", 2),
        ("a W<=3 b", "W takes no bound", 4),
        ("a M[1,2] b", "M takes no bound", 5),
        ("F[5,2] a", "the bound allows no step at all", 3),
        ("a U<0 b", "the bound allows no step at all", 4),
        ("X[0] a", "X[0] is no step: expected at least 1", 3),
        ("X<=3 a", "X takes a number of steps in brackets", 2),
        ("X[1,2] a", "X takes a number of steps in brackets", 3),
        ("F[3] a", "one number in brackets does not bound F", 3),
        ("F<=2.5 a", "a bound counts steps: expected a whole number, found 2.5", 4),
        ("F<=1e3 a", "a bound counts steps: expected a whole number, found 1e3", 4),
        ("F<=2147483648 a", "a bound is at most 2147483647 steps", 4),
        ("F[2s,1s] a", "the bound allows no step at all", 3),
        ("F<=123456789.1234567890s a", "the number 123456789.1234567890s is too long", 4),
        ("X[1s,1s] a", "X takes a number of steps in brackets", 3),
        ("F<= a", "expected a whole number, found 'a'", 5),
        ("F[1 2] a", "expected ']', ',', '..' or ':', found '2'", 5),
        ("a , b", "expected an operator or the end, found ','", 3),
    ],
)
def test_what_is_wrong_is_said_and_shown(text, message, column):
    with pytest.raises(InputError) as caught:
        parse_formula(text)
    assert caught.value.message == message
    assert (caught.value.place.line, caught.value.place.column) == (1, column)


@pytest.mark.parametrize(
    ("text", "step_s", "counted"),
    [
        ("F[1s,2.5s] a", Fraction(1, 2), "F[2,5] a"),
        ("F>1s a & G<2s b", Fraction(1, 2), "F>=3 a & G<=3 b"),
        ("F<=2147483647s a", Fraction(1), "F<=2147483647 a"),
        ("F<=2 a", None, "F<=2 a"),
    ],
)
def test_bounds_in_seconds_are_counted_in_steps(text, step_s, counted):
    assert in_steps(parse_formula(text), step_s) == parse_formula(counted)


@pytest.mark.parametrize(
    ("text", "step_s", "message", "hint"),
    [
        ("F<=2.5s a", Fraction(1), "expected a whole number of steps, got 2.5 s", "bounds are multiples of step_s"),
        ("F<=3s a", Fraction(7), "expected a whole number of steps, got 3 s", "bounds are multiples of step_s"),
        ("F<=2147483648s a", Fraction(1), "expected a whole number", "bounds are at most 2**31 - 1 steps"),
        ("F<1s a & F<=1s b", None, "a bound in seconds needs the duration of a step", None),
        ("F<0s a", Fraction(1), "the bound allows no step at all", None),
    ],
)
def test_bounds_that_are_no_steps_are_refused(text, step_s, message, hint):
    with pytest.raises(InputError) as caught:
        in_steps(parse_formula(text), step_s)
    assert caught.value.message.startswith(message)
    assert caught.value.hint == hint


def test_the_end_is_called_what_follows_the_text():
    source = Source("a: P = ? [ G (ped ]", "s.ltl")
    with pytest.raises(InputError) as caught:
        parse_formula(" G (ped ", source, Position(1, 11), "']'")
    assert str(caught.value) == (
        "s.ltl:1:19: expected ')' or an operator, found ']'\n    a: P = ? [ G (ped ]\n                      ^"
    )


@pytest.mark.parametrize(
    "text",
    ["G(" * 60_000, "X " * 90_000 + "a", "a U " * 45_000 + "a", "F<=3 " * 39_000 + "a", "[]" * 90_000],
    ids=lambda text: text[:5],
)
def test_depth_is_limited_without_recursion(text):
    parse_formula("G a")  # the grammar is read once

    def refused():
        with pytest.raises(InputError, match="nested too deeply: at most 200 operators"):
            parse_formula(text)

    assert calls_of(refused) < 700_000  # about as many for half the text: all is not read


def test_ten_megabytes_are_refused_at_once():
    def refused():
        with pytest.raises(InputError, match="at most 200000 are read"):
            parse_formula("[] " * 3_400_000)

    assert calls_of(refused) < 1000
