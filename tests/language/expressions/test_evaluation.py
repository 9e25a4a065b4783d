import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from formula_strategies import arithmetic, conditions
from hypothesis import assume, given
from hypothesis import strategies as st

from verifier.base.errors import InputError
from verifier.language.expressions import Source, evaluate, exact_number, parse_expression, resolve_sees, substitute
from verifier.language.expressions.evaluation import _evaluated
from verifier.language.expressions.numbers import Exact, joined, quantity
from verifier.language.expressions.syntax import Boolean, Call, Name, Number, Operation

X = np.array([-7, -1, 0, 1, 2, 7], dtype=np.int64)


def value(text, **values):
    return evaluate(parse_expression(text), values, Source(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # whole division and remainder round towards minus infinity, as -7 = 2 * (-4) + 1
        ("x // 2", [-4, -1, 0, 0, 1, 3]),
        ("x % 2", [1, 1, 0, 1, 0, 1]),
        ("x // -2", [3, 0, 0, -1, -1, -4]),
        ("x % -2", [-1, -1, 0, -1, 0, -1]),
        ("x - 2 * x", [7, 1, 0, -1, -2, -7]),
        ("-x", [7, 1, 0, -1, -2, -7]),
        ("abs(x)", [7, 1, 0, 1, 2, 7]),
        ("min(x, 1, 5)", [-7, -1, 0, 1, 1, 1]),
        ("max(x, 1)", [1, 1, 1, 1, 2, 7]),
        ("floor(x / 2)", [-4, -1, 0, 0, 1, 3]),
        ("ceil(x / 2)", [-3, 0, 0, 1, 1, 4]),
    ],
)
def test_whole_numbers_stay_int64(text, expected):
    result = value(text, x=X)
    assert result.dtype == np.int64
    assert result.tolist() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x / 2", [-3.5, -0.5, 0, 0.5, 1, 3.5]),
        ("x * 0.5 + x / 2", [-7, -1, 0, 1, 2, 7]),
        ("2 / (x + 8)", [2, 2 / 7, 1 / 4, 2 / 9, 1 / 5, 2 / 15]),
        ("x + 0.5", [-6.5, -0.5, 0.5, 1.5, 2.5, 7.5]),
        ("min(x, 0.5)", [-7, -1, 0, 0.5, 0.5, 0.5]),
        ("ite(x > 0, x, 0.5)", [0.5, 0.5, 0.5, 1, 2, 7]),
        ("floor(x / 2) + 0.5", [-3.5, -0.5, 0.5, 0.5, 1.5, 3.5]),
        ("f", [3, 0.75, 0, -0.25, -1.5, -3]),
        ("x + f", [-4, -0.25, 0, 0.75, 0.5, 4]),
        ("f - x", [10, 1.75, 0, -1.25, -3.5, -10]),
        ("x * f", [-21, -0.75, 0, -0.25, -3, -21]),
        ("f / 10", [0.3, 0.075, 0, -0.025, -0.15, -0.3]),  # in doubles 3 * 0.1 is not 0.3
        ("min(x, f)", [-7, -1, 0, -0.25, -1.5, -3]),
        ("max(f, x)", [3, 0.75, 0, 1, 2, 7]),
        ("abs(f)", [3, 0.75, 0, 0.25, 1.5, 3]),
        ("floor(f) + 0.5", [3.5, 0.5, 0.5, -0.5, -1.5, -2.5]),
        ("ceil(f) + 0.5", [3.5, 1.5, 0.5, 0.5, -0.5, -2.5]),
        ("ite(x > 0, x, f)", [3, 0.75, 0, 1, 2, 7]),
        ("ite(x > f, c, d)", [4, 4, 4, 0.5, 0.5, 0.5]),
    ],
)
def test_decimals_and_quotients_are_float64(text, expected):
    result = value(text, x=X, f=np.array([3, 0.75, 0, -0.25, -1.5, -3]), c=0.5, d=np.array(4))
    assert result.dtype == np.float64
    assert result.tolist() == expected


def test_truth_tables():
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    tables = {
        "!a": [True, True, False, False],
        "a & b": [False, False, False, True],
        "a | b": [False, True, True, True],
        "a xor b": [False, True, True, False],
        "a -> b": [True, True, False, True],
        "a <-> b": [True, False, False, True],
    }
    for text, table in tables.items():
        assert value(text, a=a, b=b).tolist() == table
        for i in range(4):
            assert value(text, a=bool(a[i]), b=b[i]) is table[i]


def test_comparisons():
    for text, table in {
        "x = 0": [0, 0, 1, 0, 0, 0],
        "x != 0": [1, 1, 0, 1, 1, 1],
        "x < 0": [1, 1, 0, 0, 0, 0],
        "x <= 0": [1, 1, 1, 0, 0, 0],
        "x > 0": [0, 0, 0, 1, 1, 1],
        "x >= 0": [0, 0, 1, 1, 1, 1],
    }.items():
        assert value(text, x=X).tolist() == [bool(each) for each in table]


def test_scalars_give_scalars():
    assert value("1 + 2") == 3
    assert value("abs(x)", x=-3) == 3
    assert type(value("x // 2", x=np.int64(7))) is int
    assert type(value("7 / 2")) is float
    assert value("7 / 2") == 3.5
    assert value("x < 3", x=np.array(2)) is True
    assert value("true") is True


def test_decimals_compare_exactly_where_floats_would_not():
    # In floating point 100 * 0.29 = 28.999999999999996 and 3 * 0.1 = 0.30000000000000004.
    x = np.array([3, 99, 100, 101])
    assert value("x * 0.29 >= 29", x=x).tolist() == [False, False, True, True]
    assert value("floor(x * 0.29)", x=x).tolist() == [0, 28, 29, 29]
    assert value("x * 0.1 <= 0.3", x=x).tolist() == [True, False, False, False]
    assert value("x * c <= 0.3", x=x, c=Fraction(1, 10)).tolist() == [True, False, False, False]
    assert value("x / 3 * 3 = x", x=x).tolist() == [True] * 4


def test_comparisons_stay_exact_beyond_64_bits():
    # 2e18 + 1/2 against 2e18 + 1/3 and 2e18 + 2/3: equal as float64, and 6 * 2e18 does not fit 64 bits
    x, y = np.array([4 * 10**18 + 1] * 2), np.array([6 * 10**18 + 1, 6 * 10**18 + 2])
    assert value("x / 2 > y / 3", x=x, y=y).tolist() == [True, False]
    assert value("x > 0.5", x=np.array([0, 2**62])).tolist() == [False, True]
    assert value("x > 0.5", x=np.array([-(2**62) - 1, 0])).tolist() == [False, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / x", "division by zero in 1 / x"),
        ("1 // x", "division by zero in 1 // x"),
        ("1 % x", "division by zero in 1 % x"),
        ("1 / 0", "division by zero in 1 / 0"),
        (f"(11{' + 1' * 13}) / 0", f"division by zero in (11{' + 1' * 13}) / 0"),  # 60 characters
        (f"(111{' + 1' * 13}) / 0", f"division by zero in (111{' + 1' * 13})..."),
        ("1 / (x * 0.5)", "division by zero in"),
        ("x != 0 & 1 / x > 0", "division by zero in 1 / x"),
        ("x * 9223372036854775807", "beyond 64-bit integers: x * 9223372036854775807"),
        ("x * 5000000000 * 5000000000", "beyond 64-bit integers"),
        ("9223372036854775807 + 1", "beyond 64-bit integers"),
        ("0 - 9223372036854775807 - 2", "beyond 64-bit integers"),
        ("9223372036854775808", "beyond 64-bit integers"),
        ("big + x", "beyond 64-bit integers"),
        ("-small", "beyond 64-bit integers"),
        ("abs(small)", "beyond 64-bit integers"),
        ("small // -1", "beyond 64-bit integers"),
        ("small - 1", "beyond 64-bit integers"),
        ("floor(f * 1e18 * 10)", "beyond 64-bit integers"),
        ("floor(g)", "beyond 64-bit integers"),
        ("floor(-2 * g)", "beyond 64-bit integers"),
        ("small // m", "beyond 64-bit integers"),
        ("f * f", "beyond the range of floating point"),
        ("x // 0.5", "expected whole numbers on both sides of //"),
        ("f % 2", "expected whole numbers on both sides of %"),
        ("y + 1", "unknown name 'y'"),
        ("u + 0", "the value of 'u' is beyond 64-bit integers"),
    ],
)
def test_what_has_no_value_is_refused(text, message):
    values = {
        "x": X,
        "big": np.array([2**63 - 1, 0]).repeat(3),
        "small": np.array([-(2**63)] * 6),
        "f": np.array([1, *[1e200] * 5]),
        "u": np.array([0, 2**63], dtype=np.uint64),
        "g": np.array([0, *[2.0**63] * 5]),
        "m": np.array([1, -1, 2, 3, 4, 5]),
    }
    with pytest.raises(InputError) as caught:
        evaluate(parse_expression(text), values, Source(text))
    assert message in caught.value.message
    assert caught.value.place.text == text


def test_what_has_no_value_is_refused_where_it_was_read():
    with pytest.raises(InputError) as caught:
        evaluate(parse_expression("1 / x"), {"x": X}, Source("1 / x", "model.toml", "invariant"))
    assert (caught.value.place.file, caught.value.place.path) == ("model.toml", "invariant")


@pytest.mark.parametrize(
    ("number", "said"), [("9" * 40, "9" * 40), ("9" * 41, "a number of 41 digits")], ids=["40 digits", "41 digits"]
)
def test_a_long_number_is_not_repeated_in_the_message(number, said):
    with pytest.raises(InputError) as caught:
        value(number)
    assert caught.value.message == f"beyond 64-bit integers: {said}"


HALF = 2**62


@pytest.mark.parametrize(
    ("text", "x"),
    [
        ("max(x, 0) * 4", [-7, HALF]),
        ("max(0, x) * 4", [-7, HALF]),
        ("min(x, 0) * 4", [-HALF, 7]),
        ("min(0, x) * 4", [-HALF, 7]),
        ("abs(x) * 4", [-HALF, 7]),
        ("abs(x) + 9223372036854775800", [-HALF, 7]),
        ("(x // 1) - 9223372036854775807", [-HALF, 7]),
        ("(x // 1) * 4", [-7, HALF]),
        ("(x // 1) * 4", [-HALF, 7]),
        ("(x % -3) * 4611686018427387905", [4, 4]),  # -2 * (2**62 + 1) = -2**63 - 2
        ("(x % 3) * 4611686018427387904", [2, 2]),  # 2 * 2**62 = 2**63
        ("(x % 3) - 9223372036854775807 - 2", [3, 3]),  # -2**63 - 1
        ("(4 % x) * 2305843009213693952", [-3, 5]),  # 4 * 2**61 = 2**63
        ("(1 % x) * 2305843009213693953", [-5, 3]),  # -4 * (2**61 + 1) = -2**63 - 4
    ],
)
def test_bounds_of_a_part_are_not_below_what_it_attains(text, x):
    with pytest.raises(InputError, match="beyond 64-bit integers"):
        value(text, x=np.array(x))


@pytest.mark.parametrize(
    ("text", "y", "expected"),
    [
        ("max(x % y, 5)", 2**63 - 1, 2**53 + 1),
        ("min(x % y, 5)", -(2**63), 2**53 + 1 - 2**63),
    ],
)
def test_remainders_stay_exact_for_the_widest_divisors(text, y, expected):
    # 2**53 + 1 is the least whole number that no float64 is
    found = value(text, x=np.array([2**53 + 1]), y=np.array([y]))
    assert found.dtype == np.int64
    assert found.tolist() == [expected]


PAIRS = np.array([(x, y) for x in range(-2, 5) for y in range(-4, 4)]).T
"""Every pair of some whole numbers, of which the bounds of most operators are attained."""


@pytest.mark.parametrize(
    ("text", "integer"),
    [
        *[(text, True) for text in ("x", "x + y", "x - y", "x * y", "-x", "min(x, y)", "max(x, y)")],
        *[(text, True) for text in ("floor(x / 2)", "ceil(y / 2)", "floor(f)", "ceil(f)", "ite(x > y, y, x)")],
        *[(text, True) for text in ("ite(x > 0, x, y)", "ite(x > 0, y, x + 9)")],
        *[(text, False) for text in ("x + 0.5", "y * 0.5 - x", "x * y * 0.5", "-(x / 2)", "min(x / 2, y)")],
        *[(text, False) for text in ("max(x, y / 2)", "ite(x > y, 0.5, y)", "ite(x > 9, x, 0.5)", "y / 2 * x")],
    ],
)
def test_bounds_of_a_part_are_what_it_attains(text, integer):
    values = {"x": PAIRS[0], "y": PAIRS[1], "f": PAIRS[1] / 4}
    found = _evaluated(parse_expression(text), values, Source(text))
    assert (found.low, found.high, found.integer) == (found.data.min(), found.data.max(), integer)


def test_no_numbers_are_bounded_by_0():
    assert (quantity(X[:0]).low, quantity(X[:0]).high) == (0, 0)


@pytest.mark.parametrize(
    ("number", "exact"),
    [
        (Fraction(1, 2**63 - 1), True),
        (Fraction(1, 2**63), False),
        (Fraction(2**63 - 1, 2), True),
        (Fraction(-(2**63), 3), True),
        (Fraction(2**63, 3), False),
        (Fraction(sys.float_info.max), False),
        (-Fraction(sys.float_info.max), False),
    ],
)
def test_fractions_are_exact_within_64_bits(number, exact):
    found = quantity(number)
    assert isinstance(found, Exact) == exact
    assert found.value() == float(number)
    assert quantity(2 * Fraction(sys.float_info.max)) is None


def test_products_and_sums_are_exact_up_to_the_last_denominator():
    last = Fraction(1, 2**63 - 1)
    for text in ("x * c", "x + c"):
        assert (
            _evaluated(parse_expression(text), {"x": np.array([-1, 0]), "c": last}, Source(text)).denominator
            == 2**63 - 1
        )


def test_a_product_of_fractions_beyond_64_bits_is_a_float():
    assert value("x * 2.5", x=np.array([2**62 + 1])).tolist() == [2.5 * 2.0**62]
    assert value("2.5 * x", x=np.array([2**62 + 1])).tolist() == [2.5 * 2.0**62]
    assert value("x + 0.5", x=np.array([0, 2**62])).tolist() == [0.5, 2.0**62]
    assert value("x + 0.5", x=np.array([-(2**62) - 1, 0])).tolist() == [-(2.0**62), 0.5]


def test_values_that_just_fit_are_not_refused():
    least, greatest = np.array([-(2**63)]), np.array([2**63 - 1])
    assert value("x + 1", x=least).tolist() == [-(2**63) + 1]
    assert value("x - 1 + 1", x=greatest).tolist() == [2**63 - 1]
    assert value("x // 1", x=least // 2 * 2 + 1).tolist() == [-(2**63) + 1]
    assert value("x % -1", x=least).tolist() == [0]
    assert value("-x", x=greatest).tolist() == [-(2**63) + 1]
    assert value("x // 2", x=least).tolist() == [-(2**62)]
    assert value("x // y", x=np.array([-(2**63), 7]), y=np.array([1, -1])).tolist() == [-(2**63), -7]
    assert value("x // 2 + 2", x=least).tolist() == [-(2**62) + 2]
    # where what is known of the parts does not fit, what they attain does
    assert value("x // 4 * 4", x=np.array([HALF])).tolist() == [HALF]
    assert value("x // 4 + y", x=np.array([HALF]), y=np.array([HALF])).tolist() == [HALF // 4 + HALF]
    # the largest double below 2**63, and the least that fits
    assert value("floor(f)", f=np.array([0, 2.0**63 - 1024])).tolist() == [0, 2**63 - 1024]
    assert value("floor(f)", f=np.array([-(2.0**63), 0])).tolist() == [-(2**63), 0]
    # 3037000499 is the largest integer whose square is below 2**63
    assert value("x * x", x=np.array([3037000499])).tolist() == [3037000499**2]
    with pytest.raises(InputError):
        value("x * x", x=np.array([3037000500]))


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (parse_expression("sees(ped)"), "not a state expression"),
        (Operation("&", (Number(1), Boolean(True))), "wrong kind"),
        (Operation("+", (Number(1), Boolean(True))), "wrong kind"),
    ],
)
def test_nodes_that_cannot_be_evaluated_are_programming_errors(node, message):
    with pytest.raises(ValueError, match=message):
        evaluate(node, {})


def test_arrays_of_other_types_are_programming_errors():
    for array in (np.array([1.0], dtype=np.float32), np.array([0, np.nan]), np.array(["a"])):
        with pytest.raises(ValueError, match="array of integers or of finite float64"):
            value("x + 1", x=array)


class RefusedError(Exception):
    pass


def by_definition(node, state):
    """One state, exact fractions: (value, whether it is an integer by construction)."""
    if isinstance(node, Name):
        return state[node.name]
    if isinstance(node, Number):
        return Fraction(node.value), isinstance(node.value, int)
    if isinstance(node, Boolean):
        return node.value
    below = [by_definition(each, state) for each in (node.arguments if isinstance(node, Call) else node.operands)]
    if isinstance(node, Operation) and node.operator in ("!", "&", "|", "xor", "->", "<->"):
        a, b = below[0], below[-1]
        table = {"!": not a, "&": a and b, "|": a or b, "xor": a != b, "->": b or not a, "<->": a == b}
        return table[node.operator]
    numbers, whole = [each[0] for each in below], all(each[1] for each in below)
    if isinstance(node, Call):
        if node.function in ("floor", "ceil"):
            return Fraction(getattr(math, node.function)(numbers[0])), True
        return {"min": min, "max": max, "abs": lambda *a: abs(a[0])}[node.function](*numbers), whole
    a, b = numbers[0], numbers[-1]
    comparisons = {"=": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}
    if node.operator in comparisons:
        return comparisons[node.operator]
    if node.operator in ("//", "%") and not whole:
        raise RefusedError
    if node.operator in ("/", "//", "%") and b == 0:
        raise RefusedError
    if node.operator == "/":
        return a / b, False
    if node.operator == "//":
        return Fraction(math.floor(a / b)), True
    if node.operator == "%":
        return a - b * math.floor(a / b), True
    return {"+": a + b, "-": a - b, "*": a * b, "neg": -a}[node.operator], whole


LITERALS = st.one_of(
    st.integers(0, 9).map(Number),
    st.integers(1, 99).map(lambda n: Number(Fraction(n, 10) if n % 10 else n // 10)),
    st.sampled_from([Name("x"), Name("y")]),
)
NUMBERS = arithmetic(["x", "y"], 2, LITERALS)


def divides_by_a_variable(node):
    below = node.arguments if isinstance(node, Call) else getattr(node, "operands", ())
    here = isinstance(node, Operation) and node.operator == "/" and not isinstance(below[1], Number)
    return here or any(divides_by_a_variable(each) for each in below)


@given(
    st.one_of(NUMBERS, conditions(NUMBERS, st.sampled_from([Name("p"), Boolean(True)]), 2)),
    st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9), st.booleans()), min_size=1, max_size=5),
)
def test_arrays_agree_with_exact_fractions_state_by_state(node, states):
    assume(not divides_by_a_variable(node))
    columns = list(zip(*states, strict=True))
    values = {"x": np.array(columns[0]), "y": np.array(columns[1]), "p": np.array(columns[2])}
    scalars = [{"x": (Fraction(x), True), "y": (Fraction(y), True), "p": p} for x, y, p in states]
    try:
        expected = [by_definition(node, each) for each in scalars]
    except RefusedError:
        with pytest.raises(InputError):
            evaluate(node, values)
        return
    result = np.broadcast_to(np.asarray(evaluate(node, values)), len(states))
    if isinstance(expected[0], bool):
        assert result.tolist() == expected
    else:
        assert result.dtype == (np.int64 if expected[0][1] else np.float64)
        assert result.tolist() == [float(each) for each, _ in expected]
    for x, y, p in states[:1]:
        alone = evaluate(node, {"x": x, "y": y, "p": p})
        assert alone == result[0]
        assert type(alone) is type(result[0].item())


@given(NUMBERS, st.integers(-9, 9), st.integers(-9, 9))
def test_exact_numbers_agree_with_the_definition(node, x, y):
    state = {"x": (Fraction(x), True), "y": (Fraction(y), True)}
    try:
        expected = by_definition(node, state)[0]
    except RefusedError:
        return  # whole division of fractions has a value here: floor of the quotient
    result = exact_number(node, {"x": x, "y": y})
    assert result == expected
    assert isinstance(result, int) == (expected.denominator == 1)


def test_exact_numbers_keep_thirds():
    assert exact_number(parse_expression("k / 3 + 0.1"), {"k": 1}) == Fraction(13, 30)
    assert exact_number(parse_expression("k / 3 * 6"), {"k": Fraction(1, 2)}) == 1
    assert exact_number(parse_expression("10 * floor(k / 3) + ceil(k / 3)"), {"k": 4}) == 12
    assert exact_number(parse_expression("ite(k > 4, 1 // 0, k)"), {"k": 4}) == 4


def test_numbers_of_ten_thousand_bits_are_exact_and_no_longer_ones():
    node, upside_down = parse_expression("2 * c"), parse_expression("1 / (2 * c)")
    half = 2**9_998
    assert exact_number(node, {"c": half}) == 2**9_999
    assert exact_number(upside_down, {"c": half}) == Fraction(1, 2**9_999)
    with pytest.raises(InputError, match="the number is too large"):
        exact_number(node, {"c": 2 * half})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / (k - 2)", "division by zero"),
        ("k % 0", "division by zero"),
        ("m + 1", "unknown constant 'm'"),
        ("*".join(["1e300"] * 50), "the number is too large"),
    ],
)
def test_constants_without_a_value_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        exact_number(parse_expression(text), {"k": 2})


def test_substitution_replaces_all_at_once():
    node = parse_expression("a & sees(a) -> b = 1")
    swapped = substitute(node, {"a": Name("b"), "b": Name("a")})
    assert swapped == parse_expression("b & sees(a) -> a = 1")
    assert substitute(node, {"c": Name("d")}) is node


def test_substitution_is_limited():
    deep = parse_expression("!" * 150 + "a")
    with pytest.raises(InputError, match="nests 299 operators deep; at most 200"):
        substitute(parse_expression("!" * 148 + "b"), {"b": deep})
    assert substitute(parse_expression("!" * 49 + "b"), {"b": deep}).depth == 200
    with pytest.raises(InputError, match="nests 201 operators deep; at most 200"):
        substitute(parse_expression("!" * 50 + "b"), {"b": deep})
    trees = {"t1": parse_expression("a")}  # t16 has 2**16 - 1 nodes
    for depth in range(2, 17):
        trees[f"t{depth}"] = Operation("&", (trees[f"t{depth - 1}"],) * 2)
    most = "t16 & t15 & t10 & t9 & t7 & t5"  # 99,999 nodes
    assert substitute(parse_expression(f"!({most})"), trees).depth == 22
    with pytest.raises(InputError, match="has 100001 operators and names; at most 100000"):
        substitute(parse_expression(f"!!({most})"), trees)
    wide = parse_expression("a")
    for _ in range(15):
        wide = substitute(parse_expression("b & b"), {"b": wide})
    with pytest.raises(InputError, match="has 131071 operators and names; at most 100000"):
        substitute(parse_expression("b & b"), {"b": wide})


def test_sees_becomes_a_truth_value():
    node = parse_expression('sees(ped) & !sees("traffic cone") | a')
    assert resolve_sees(node, frozenset({"ped"})) == parse_expression("true & !false | a")
    assert resolve_sees(node, frozenset({"traffic cone"})) == parse_expression("false & !true | a")


def test_counts_and_reports_become_what_was_seen():
    seen = frozenset({"ped", "count(ped) = 2", "report(o) = car", "count(car, within = 5) = 1"})
    for text, meaning in {
        "count(ped) > 1 & count(bike) = 0": "2 > 1 & 0 = 0",
        "count(car, within = 5) > 0": "1 > 0",
        "report(o) = car | report(o) = ped": "true | false",
        "report(o) = empty | report(n) = empty": "false | true",
        "present(ped)": "present(ped)",
    }.items():
        assert resolve_sees(parse_expression(text), seen) == parse_expression(meaning)


def test_a_million_states_are_evaluated_at_once():
    x = np.arange(10**6)
    node = parse_expression("min(x + v, 65) * 2 - abs(x - v) // 3 >= 4 & x * 0.1 <= 30 | !(v = 0)")
    found = evaluate(node, {"x": x, "v": x % 10})
    # v = 0 at every tenth x; elsewhere the last part is true, and so is the whole.
    assert found[x % 10 != 0].all()
    # x = 300, v = 0: min(300, 65) * 2 - 300 // 3 = 30 >= 4 and 30 <= 30; at x = 310 the product is above 30.
    assert found[300]
    assert not found[310]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ite(x > 0, x, -x)", [7, 1, 0, 1, 2, 7]),
        ("ite(x != 0, 14 // x, 5)", [-2, -14, 5, 14, 7, 2]),  # nothing is divided where the branch is not taken
        ("ite(x = 9, 1 // 0, 2)", [2] * 6),
        ("ite(x < 0, ite(x < -1, 10, 20), ite(x > 1, 30, 40))", [10, 20, 40, 40, 30, 30]),
        ("2 * ite(x > 0, 1, 0) + 1", [1, 1, 1, 3, 3, 3]),
        ("ite(x > 0, 1 / 2, 1 / 3)", [1 / 3, 1 / 3, 1 / 3, 0.5, 0.5, 0.5]),
        ("ite(x > 0, x = 1, x < -1)", [True, False, False, True, False, False]),
    ],
)
def test_only_the_branch_taken_is_evaluated(text, expected):
    assert value(text, x=X).tolist() == expected
    assert [value(text, x=int(x)) for x in X] == expected


def test_choices_of_whole_numbers_stay_whole_and_choices_of_fractions_stay_exact():
    assert value("ite(x > 0, x, 3)", x=X).dtype == np.int64
    assert value("ite(x > 0, 0.1, 0.3) * 10 = ite(x > 0, 1, 3)", x=X).all()  # in doubles 0.3 * 10 is not 3
    # Where one branch is taken everywhere, it stays exact whatever the other is: 2^62 + 1 is no double.
    for large in ("ite(x > -9, 2 ** 62 + 1 + x, y)", "ite(x < -9, y, 2 ** 62 + 1 + x)"):
        large = large.replace("2 ** 62", str(2**62))
        assert value(large, x=X, y=X / 7).tolist() == [2**62 + 1 + int(x) for x in X]
    assert exact_number(parse_expression("ite(n >= 2 & !(n = 3), 1 / 3, 1 // (n - 3))"), {"n": 2}) == Fraction(1, 3)
    assert exact_number(parse_expression("ite(n = 3 | n = 4, 7, 1 // (n - 3))"), {"n": 3}) == 7


def test_a_branch_that_is_taken_and_fails_is_named():
    with pytest.raises(InputError, match="division by zero"):
        value("ite(x >= 0, 1 // x, 0)", x=X)


def test_a_choice_over_no_states_is_of_its_kind():
    assert value("ite(x > 0, x, 0)", x=X[:0]).dtype == np.int64
    assert value("ite(x > 0, x = 1, false)", x=X[:0]).dtype == bool


@pytest.mark.parametrize("taken", [True, False])
def test_where_all_places_are_of_one_kind_both_are_what_stands_there(taken):
    places, whole, half = np.full(3, taken), quantity(np.array([4, 5, 6])), quantity(Fraction(1, 2))
    assert joined(places, whole, whole) is whole
    found = joined(places, half, half)
    assert (found.data.tolist(), found.denominator) == ([1, 1, 1], 2)
    assert joined(places, quantity(0.5), quantity(0.5)).data.tolist() == [0.5] * 3
