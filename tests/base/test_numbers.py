"""Numbers as people read them, at the places where one way of writing them ends and the next begins."""

import math
from fractions import Fraction

import pytest
from pydantic import TypeAdapter, ValidationError

from verifier.base import numbers
from verifier.base.numbers import (
    NumberText,
    error_text,
    exact_or_number,
    exact_text,
    extreme_numbers,
    fixed,
    fraction_of,
    fraction_text,
    interval_text,
    level_text,
    memory_text,
    number_text,
    number_words,
    p_value_text,
    power_text,
    rounded,
    short_text,
    signed,
    significant,
)


@pytest.mark.parametrize(
    ("value", "down", "nearest", "up"),
    [
        (0.0, "0", "0", "0"),
        (1.0, "1", "1", "1"),
        (math.inf, "inf", "inf", "inf"),
        (0.12349, "0.123", "0.123", "0.124"),
        (0.06245, "0.0624", "0.0624", "0.0625"),  # a half goes to the even digit
        (0.06255, "0.0625", "0.0626", "0.0626"),
        (0.0012349, "0.00123", "0.00123", "0.00124"),
        (0.000012349, "1.23e-05", "1.23e-05", "1.24e-05"),
        (0.99987651, "0.999876", "0.999877", "0.999877"),
        (1.2349e-10, "1.23e-10", "1.23e-10", "1.24e-10"),
        (1.2349e-13, "1.23e-13", "1.23e-13", "1.24e-13"),  # behind twelve decimals
        (0.9999999999998765, *["0.9999999999998765"] * 3),
        (2.71828, "2.718", "2.718", "2.719"),
        (1e6, "1000000", "1000000", "1000000"),
        (1000000.0001, *["1000000.0001"] * 3),  # no probability
    ],
)
def test_a_probability_has_three_digits_of_what_it_is_away_from_0_or_1(value, down, nearest, up):
    assert [rounded(value, up=way) for way in (False, None, True)] == [down, nearest, up]


@pytest.mark.parametrize(
    ("value", "target", "down", "up"),
    [
        (0.25000000004, Fraction(1, 4), "0.25000000004", "0.251"),
        (0.9499996, Fraction(95, 100), "0.9499", "0.9499996"),
        (0.94999961, Fraction(9499999, 10**7), "0.9499", "0.9499997"),  # 0.95 is on its other side
        (0.2500000000041, Fraction(1, 4), "0.250000000004", "0.251"),  # with twelve decimals
        (0.25000000000041, Fraction(1, 4), "0.25000000000041", "0.251"),  # and with all
        (0.24999999999996, Fraction(1, 4), "0.249", "0.24999999999996"),
        (1.00000000000004e-5, Fraction(1, 10**5), "1.00000000000004e-05", "1.01e-05"),
        (1.2300000004e-13, Fraction(123, 10**15), "1.2300000004e-13", "1.24e-13"),
    ],
)
def test_an_end_is_not_moved_to_a_target_however_near(value, target, down, up):
    assert [rounded(value, up=way, target=target) for way in (False, True)] == [down, up]


def test_other_numbers_of_digits():
    assert rounded(0.123456, up=False, digits=5) == "0.12345"
    assert rounded(1.23456e-13, up=True, digits=5) == "1.2346e-13"
    assert interval_text(0.123456, 0.5, digits=5) == "[0.12345, 0.50000]"


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        (0.0, 1.0, "[0, 1]"),
        (0.0, 0.25, "[0, 0.25]"),
        (0.5, 0.75, "[0.50, 0.75]"),
        (0.25, 0.9991, "[0.2500, 0.9991]"),
        (0.25, 0.99991, "[0.25, 0.99991]"),
        (1.25e-5, 0.25, "[1.25e-05, 0.25]"),
    ],
)
def test_ends_have_equally_many_decimals_where_they_are_few(lower, upper, text):
    assert interval_text(lower, upper) == text


@pytest.mark.parametrize(
    ("number", "target", "least", "text"),
    [
        (math.inf, None, 6, "inf"),
        (0.123456789, None, 6, "0.123457"),
        (0.123456789, None, 3, "0.123"),
        (0.4876543, None, 3, "0.488"),
        (0.5123456, None, 3, "0.5123"),  # four digits of what is missing
        (0.9996543, None, 3, "0.9996543"),
        (0.25000412, Fraction(1, 4), 3, "0.250004"),  # six digits, nine, twelve, all
        (0.25000004123, Fraction(1, 4), 3, "0.250000041"),
        (0.250000000041234, Fraction(1, 4), 6, "0.250000000041"),
        (0.25000000000000006, Fraction(1, 4), 6, "0.25000000000000006"),
        (1 - 2.0**-53, None, 6, "0.99999999999999989"),
        (0.25, Fraction(1, 4), 6, "0.25"),
    ],
)
def test_a_number_has_as_many_digits_as_it_needs(number, target, least, text):
    assert number_text(number, target, least) == text


def test_a_fraction_is_shown_where_it_is_short():
    for exact, text in (
        (Fraction(1, 10**12 - 1), "1/999999999999 = 1e-12"),
        (Fraction(1, 10**12), "1e-12"),
        (Fraction(1, 3), "1/3 = 0.333333"),
        (Fraction(1, 2), "1/2 = 0.5"),
        (Fraction(0), "0"),
    ):
        assert exact_or_number(float(exact), exact) == text
    assert exact_or_number(0.123456789, None, least=3) == "0.123"
    assert exact_or_number(0.123456789, None) == "0.123457"


def test_numbers_of_every_kind():
    levels = [level_text(level) for level in (0.5, 1.2345e-7, 1.2345e-8, 1.2345e-9)]
    assert levels == ["50 %", "0.000012345 %", "0.0000012345 %", "1.23e-7 %"]
    assert [exact_text(Fraction(part)) for part in ("-1/3", "-1/20", "12", "0.5")] == [
        "~-0.333333",
        "-0.05",
        "12",
        "0.5",
    ]
    assert [short_text(text) for text in ("1/3", "0.1234567")] == ["0.333333", "0.123457"]
    assert [number_words(number) for number in (1e-9, 2.5, 3)] == ["1e-9", "2.5", "3"]
    assert [significant(0.123456), significant(0.123456, 2)] == ["0.123", "0.12"]
    assert [signed(0.123456), signed(-0.123456, 2)] == ["+0.123", "-0.12"]
    assert [fixed(1.5, 2), p_value_text(0.012345), error_text(1.2345e-9)] == ["1.50", "0.012", "1.2e-09"]
    assert [power_text(number) for number in (2.5, 8.5, 9, 10.4)] == ["316.2", "3.162e+08", "1e9", "1e10"]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (102, "102 bytes"),
        (103, "0.1006 KiB"),
        (50 * 2**20, "50 MiB"),
        (103 * 2**20, "0.1006 GiB"),
        (103 * 2**10, "0.1006 MiB"),
        (int(9998.4 * 2**30), "9998 GiB"),
        (int(9999.7 * 2**30), "10000 GiB"),
        (123456 * 2**30, "123456 GiB"),
    ],
)
def test_memory_is_told_in_the_largest_unit_of_which_there_is_a_tenth(count, text):
    assert memory_text(count) == text


def test_extreme_numbers_are_found_wherever_they_are():
    told = {"a": [1e300, 1e301, "1e301", True, [math.nan]], "b": {"c": -2e300, "d": -1e300}, "e": "nan", "f": None}
    assert [(place, str(number)) for place, number in extreme_numbers(told)] == [
        ("/a/1", "1e+301"), ("/a/4/0", "nan"), ("/b/c", "-2e+300")
    ]  # fmt: skip


def test_fractions_are_read_and_written_in_documents(monkeypatch):
    for value, text in ((Fraction(3), "3"), (Fraction(-7, 3), "-7/3"), (Fraction(0), "0")):
        assert (fraction_text(value), fraction_of(text)) == (text, value)
    assert fraction_of("-0.25") == Fraction(-1, 4)
    for text in ("1/0", "1/" + "0" * 5000):
        with pytest.raises(ValueError, match="denominator is not 0"):
            fraction_of(text)
    monkeypatch.setattr(numbers, "LONGEST_FRACTION", 10)
    assert fraction_of("1234567890") == 1234567890
    with pytest.raises(ValueError, match="at most 10 characters"):
        fraction_of("12345678901")


def test_a_number_of_a_document_is_near_to_a_double():
    number = TypeAdapter(NumberText)
    for text in ("-0.5", "1/3", "9" * 300, "1/" + "9" * 400):
        assert number.validate_python(text) == text
    with pytest.raises(ValidationError, match="a double is near to"):
        number.validate_python("9" * 400)
