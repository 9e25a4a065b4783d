from fractions import Fraction

import pytest
from formula_strategies import arithmetic, conditions
from hypothesis import given
from hypothesis import strategies as st

from verifier.language.expressions import parse_expression, to_text
from verifier.language.expressions.syntax import Call, Name, Number

NAMES = ["x", "stop_cell", "G", "min", "traffic cone", "True"]
NUMBERS = arithmetic(NAMES, 3)
PROPOSITIONS = st.sampled_from(
    [Name("ped"), Name("always"), Call("sees", (Name("a b"),)), Call("sees", (Name("ped"),))]
)


@given(st.one_of(NUMBERS, conditions(NUMBERS, PROPOSITIONS, 3)), st.booleans())
def test_reading_a_print_gives_the_node(node, parenthesise):
    assert parse_expression(to_text(node, parenthesise)) == node


@pytest.mark.parametrize(
    ("text", "printed", "parenthesised"),
    [
        ("a&&b||c", "a & b | c", "(a & b) | c"),
        ("(a|b)&c", "(a | b) & c", "(a | b) & c"),
        ("a&(b&c)", "a & (b & c)", "a & (b & c)"),
        ("(a->b)->c", "(a -> b) -> c", "(a -> b) -> c"),
        ("a->(b<->c)", "a -> (b <-> c)", "a -> (b <-> c)"),
        ("!x=3", "!(x = 3)", "!(x = 3)"),
        ("a->b->c", "a -> b -> c", "a -> (b -> c)"),
        ("x-y+1", "x - y + 1", "(x - y) + 1"),
        ("x-(y-1)-2", "x - (y - 1) - 2", "(x - (y - 1)) - 2"),
        ("-(x+1)*2", "-(x + 1) * 2", "(-(x + 1)) * 2"),
        ("x=1&v=0->a", "x = 1 & v = 0 -> a", "((x = 1) & (v = 0)) -> a"),
        ("report(x)!=a&b", "!(report(x) = a) & b", "(!(report(x) = a)) & b"),
        ("a xor (b xor c)", "a xor (b xor c)", "a xor (b xor c)"),
        ("(a->b)xor c", "(a -> b) xor c", "(a -> b) xor c"),
        ("(a xor b)|c", "(a xor b) | c", "(a xor b) | c"),
        ("a xor(b->c)", "a xor (b -> c)", "a xor (b -> c)"),
        ("(a<->b)xor c", "(a <-> b) xor c", "(a <-> b) xor c"),
        ("x=-(y*2)%3", "x = -(y * 2) % 3", "x = ((-(y * 2)) % 3)"),
        ("x=1-y/2//3", "x = 1 - y / 2 // 3", "x = (1 - ((y / 2) // 3))"),
        ("sees(ped)|min(x,1)>0.50", "sees(ped) | min(x, 1) > 0.5", "sees(ped) | (min(x, 1) > 0.5)"),
    ],
)
def test_prints(text, printed, parenthesised):
    assert to_text(parse_expression(text)) == printed
    assert to_text(parse_expression(text), parenthesise=True) == parenthesised


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
def test_a_comparison_stands_in_parentheses_below_what_binds_tighter_only(operator):
    text = f"!(x + 1 {operator} y - 2) & a"
    assert to_text(parse_expression(text)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (Fraction(1, 8), "0.125"),
        (Fraction(3, 1000), "0.003"),
        (Fraction(1, 10**20), "0.00000000000000000001"),
        (-2, "-2"),
        (Fraction(-1, 4), "-0.25"),
        (Fraction(1, 3), "1 / 3"),
    ],
)
def test_numbers(value, text):
    assert to_text(Number(value)) == text


def test_numbers_without_a_literal_keep_their_value_inside_an_operation():
    product = parse_expression("x * y")
    third = type(product)("*", (Name("x"), Number(Fraction(-1, 3))))
    assert to_text(third) == "x * (-1 / 3)"
    assert to_text(type(product)("*", (Name("x"), Number(Fraction(1, 3))))) == "x * (1 / 3)"
