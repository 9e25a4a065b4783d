from fractions import Fraction

import pytest

from verifier.base.errors import InputError
from verifier.language.expressions import Source, parse_expression
from verifier.language.expressions.syntax import FALSE, TRUE, Call, Name, Number, Operation, Position

A, B, C, X, Y = (Name(name) for name in "abcxy")


def op(operator, *operands):
    return Operation(operator, operands)


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("a -> b -> c", op("->", A, op("->", B, C))),
        ("a <-> b <-> c", op("<->", A, op("<->", B, C))),
        ("a xor b -> c", op("->", op("xor", A, B), C)),
        ("a xor b | c", op("xor", A, op("|", B, C))),
        ("a xor b xor c", op("xor", op("xor", A, B), C)),
        ("a | b & c", op("|", A, op("&", B, C))),
        ("a & b | c", op("|", op("&", A, B), C)),
        ("a & b & c", op("&", op("&", A, B), C)),
        ("!a & b", op("&", op("!", A), B)),
        ("!x = 3", op("!", op("=", X, Number(3)))),
        ("!!a", op("!", op("!", A))),
        ("x + 1 = y", op("=", op("+", X, Number(1)), Y)),
        ("x<-1", op("<", X, op("neg", Number(1)))),
        ("x - y - 1", op("-", op("-", X, Y), Number(1))),
        ("x - (y - 1)", op("-", X, op("-", Y, Number(1)))),
        ("x + y * 2", op("+", X, op("*", Y, Number(2)))),
        ("x / y * 2", op("*", op("/", X, Y), Number(2))),
        ("-x * y", op("*", op("neg", X), Y)),
        ("x * -y", op("*", X, op("neg", Y))),
        ("x // 2 % 3", op("%", op("//", X, Number(2)), Number(3))),
        ("x = 3 & v", op("&", op("=", X, Number(3)), Name("v"))),
        ("min(x, y, 2) > abs(x)", op(">", Call("min", (X, Y, Number(2))), Call("abs", (X,)))),
        (
            'sees(ped) & !sees("traffic cone")',
            op("&", Call("sees", (Name("ped"),)), op("!", Call("sees", (Name("traffic cone"),)))),
        ),
        ("ite(b, a & c, x)", Call("ite", (B, op("&", A, C), X))),
        ("sees(a, within = 5)", Call("sees", (A, Number(5)))),
        ("report(x, within = 5) = a", Call("report", (X, A, Number(5)))),
        ("report(x) = a & report(x) != b", op("&", Call("report", (X, A)), op("!", Call("report", (X, B))))),
        ('"G" | "a b"', op("|", Name("G"), Name("a b"))),
        ("(((a)))", A),
        (" a\n &\t b ", op("&", A, B)),
    ],
)
def test_precedence_and_associativity(text, node):
    assert parse_expression(text) == node


@pytest.mark.parametrize(
    ("spellings", "node"),
    [
        (("a & b", "a&&b", r"a /\ b", "a ∧ b", "a and b"), op("&", A, B)),
        (("a | b", "a||b", r"a \/ b", "a ∨ b", "a or b"), op("|", A, B)),
        (("!a", "~a", "¬a", "not a"), op("!", A)),
        (("a -> b", "a=>b", "a → b", "a ⇒ b", "a implies b"), op("->", A, B)),
        (("a <-> b", "a<=>b", "a ↔ b", "a ⇔ b", "a iff b"), op("<->", A, B)),
        (("a xor b", "a ^ b", "a ⊕ b"), op("xor", A, B)),
        (("x = y", "x == y"), op("=", X, Y)),
        (("x != y", "x ≠ y"), op("!=", X, Y)),
        (("x <= y", "x ≤ y"), op("<=", X, Y)),
        (("x >= y", "x ≥ y"), op(">=", X, Y)),
        (("true", "True"), TRUE),
        (("false", "False"), FALSE),
    ],
)
def test_every_spelling_reads_the_same(spellings, node):
    for spelling in spellings:
        assert parse_expression(spelling) == node


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("007", 7),
        ("0.25", Fraction(1, 4)),
        ("2.50", Fraction(5, 2)),
        ("2.0", 2),
        ("1e3", 1000),
        ("1e00001", 10),
        ("1.5e-3", Fraction(3, 2000)),
        ("12E+1", 120),
        ("9" * 60, 10**60 - 1),
        ("1e300", 10**300),
    ],
)
def test_numbers_are_exact(text, value):
    node = parse_expression(text)
    assert node == Number(value)
    assert type(node.value) is type(value)


def test_names_that_begin_like_operators():
    for name in ("Ga", "not_a", "orange", "android", "xorx", "iffy", "trueish", "G1", "X_"):
        assert parse_expression(name) == Name(name)


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("a b", "expected an operator or the end, found 'b'", 3),
        (f"a {'b' * 38}", f"expected an operator or the end, found '{'b' * 38}'", 3),
        (f"a {'b' * 39}", f"expected an operator or the end, found '{'b' * 35}...'", 3),
        ("(a & b", "expected ')' or an operator, found the end", 7),
        ("a &", "expected a condition or a number, found the end", 4),
        ("", "expected a condition or a number, found the end", 1),
        ("x = !y", "expected a number, found '!'", 5),
        ("a -> b <-> c", "-> and <-> stand side by side without parentheses", 8),
        ("a <-> b -> c", "-> and <-> stand side by side without parentheses", 9),
        ("0 < x < 5", "comparisons do not chain", 7),
        ("(0 < x) < 5", "expected a number, found a condition", 2),
        ("x + 1 & b", "expected a condition, found a number", 1),
        ("a & x + 1", "expected a condition, found a number", 5),
        ("a & ite(b, 1, x)", "expected a condition, found a number", 5),
        ("a & ite(b, x, 1)", "expected a condition, found a number", 5),
        ("a + (b & c)", "expected a number, found a condition", 6),
        ("-(a & b)", "expected a number, found a condition", 3),
        ("min(a & b, 1)", "expected a number, found a condition", 5),
        ("G a", "temporal operator 'G' cannot be used here", 1),
        ("a & always b", "temporal operator 'always' cannot be used here", 5),
        ("X(a)", "temporal operator 'X' cannot be used here", 1),
        ("a U b", "expected an operator or the end, found 'U'", 3),
        ("min", "expected a name, found the reserved word 'min'", 1),
        ("min()", "min(...) takes 2 arguments or more, found 0", 1),
        ("abs(x, y)", "abs(...) takes 1 argument, found 2", 1),
        ("sees(a, b)", "sees(...) takes one name and within = DISTANCE", 9),
        ("sees(a, b = 5)", "sees(...) takes one name and within = DISTANCE", 9),
        ("sees(a, 5 = within)", "sees(...) takes one name and within = DISTANCE", 9),
        ("sees(a, within < 5)", "sees(...) takes one name and within = DISTANCE", 9),
        ("sees(a, within = 5, within = 6)", "sees(...) takes one name and within = DISTANCE", 21),
        ("sees(a, within = b)", "within takes a number of metres", 18),
        ("present(a, within = 5)", "present(...) takes one name", 12),
        ("confirmed(a, within = 5)", "confirmed(...) takes one name", 14),
        ("report(a) < b", "report(...) is a class: compare it with = or != to a class", 1),
        ("report(a) = 3", "report(...) is a class: compare it with = or != to a class", 1),
        ("-> a", "expected a condition or a number, found '->'", 1),
        ("= a", "expected a condition or a number, found '='", 1),
        ("0 < x 5", "expected an operator or the end, found '5'", 7),
        ("sees(x + 1)", "sees(...) takes the name of one class", 6),
        ("foo(x)", "unknown function 'foo'", 1),
        ("a $ b", "unexpected character '$'", 3),
        ("$ a", "unexpected character '$'", 1),
        ("a & \u0430", "unexpected character '\u0430' (U+0430 CYRILLIC SMALL LETTER A)", 5),
        ('a & "b', "the quoted name is empty or not closed on its line", 5),
        ('a & ""', "the quoted name is empty or not closed on its line", 5),
        ("1e9999", "the number '1e9999' is too long", 1),
        ("1e301", "the number '1e301' is too long", 1),
        ("9" * 61, f"the number '{'9' * 25}...' is too long", 1),
        ("1e000001", "the number '1e000001' is too long", 1),  # five characters of exponent are read: 1e00001 is 10
        ("9" * 5000, "the number '9999999999999999999999999...' is too long", 1),
    ],
)
def test_what_is_wrong_is_said_and_shown(text, message, column):
    with pytest.raises(InputError) as caught:
        parse_expression(text)
    assert caught.value.message == message
    assert (caught.value.place.line, caught.value.place.column) == (1, column)


def test_positions_count_in_the_whole_text():
    whole = Source("let a =\n  x = 1\n  & y @ 2", "a.ltl")
    with pytest.raises(InputError) as caught:
        parse_expression(whole.text[7:], whole, Position(1, 8))
    assert str(caught.value) == ("a.ltl:3:7: unexpected character '@'\n      & y @ 2\n          ^")
    node = parse_expression("x = 1\n  & y = 2", Source("     x = 1\n  & y = 2"), Position(1, 6))
    assert node.operands[0].operands[0].position == Position(1, 6)
    assert node.operands[1].operands[0].position == Position(2, 5)


def test_a_value_inside_a_structured_file_is_named_by_its_path():
    source = Source("x + ", "car.toml", "planners.slow.when")
    with pytest.raises(InputError) as caught:
        parse_expression(source.text, source)
    assert str(caught.value) == ("car.toml: planners.slow.when: expected a number, found the end\n    x + \n       ^")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 150_000,
        "!" * 150_000,
        "-" * 150_000 + "1",
        "a&" * 90_000 + "a",
        "a->" * 60_000 + "a",
        "min(" * 40_000,
        "(" * 201 + "!" * 201 + "a" + ")" * 201,
    ],
    ids=lambda text: text[:4],
)
def test_depth_is_limited_without_recursion(text):
    with pytest.raises(InputError, match="nested too deeply: at most 200 operators"):
        parse_expression(text)


def test_as_many_parentheses_and_characters_as_the_limits_are_read():
    assert parse_expression("(" * 1998 + "a" + ")" * 1998) == A
    with pytest.raises(InputError, match="nested too deeply"):
        parse_expression("(" * 1999 + "a" + ")" * 1999)
    assert parse_expression("a".rjust(200_000)) == A


def test_a_temporal_operator_is_shown_where_it_stands():
    with pytest.raises(InputError, match="temporal operator 'always' cannot be used here") as caught:
        parse_expression("a &\n  always b")
    assert (caught.value.place.line, caught.value.place.column) == (2, 3)


def test_depth_just_within_the_limit_is_read():
    node = parse_expression("!" * 199 + "a")
    assert node.depth == 200
    with pytest.raises(InputError, match="nested too deeply"):
        parse_expression("!" * 200 + "a")


@pytest.mark.parametrize("text", ["§" * 10_000_000, "a & " * 2_500_000], ids=["signs", "words"])
def test_ten_megabytes_are_refused_at_once(text):
    with pytest.raises(InputError, match="the text has 10000000 characters; at most 200000 are read"):
        parse_expression(text)
