"""What is written on the command line about a system, read exactly."""

import argparse
from fractions import Fraction

import pytest

from verifier.base.errors import UsageError
from verifier.systems.settings import (
    Limits,
    condition_text,
    constant,
    fraction_from_0_to_1,
    initial_condition,
    memory_bytes,
    sweep,
)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("v=3..3", (3,)),
        (" v = -1 .. 1 ", (-1, 0, 1)),
        ("v=1..10000", tuple(range(1, 10_001))),
        ("v=2, 0.25,1/3,-4/2", (2, Fraction(1, 4), Fraction(1, 3), -2)),
    ],
)
def test_a_sweep_is_a_range_or_a_list_of_exact_numbers(text, values):
    name, found = sweep(text)
    assert (name, found, [*map(type, found)]) == ("v", values, [*map(type, values)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *(
            (text, "expected NAME=LOW..HIGH or NAME=VALUE,VALUE,...")
            for text in ("v", "=1..2", "v=1,x", "v=1,1/0", "v=")
        ),
        *((text, "expected 1 to 10000 values, got") for text in ("v=3..2", "v=0..10000")),
        ("v=1,0.5,2/4", "a value occurs twice in 'v=1,0.5,2/4'"),
    ],
)
def test_a_sweep_that_is_none_is_refused(text, message):
    with pytest.raises(UsageError, match=message):
        sweep(text)


def test_numbers_are_read_exactly_and_other_words_are_kept():
    found = [constant(f"a={text}")[1] for text in ("3", "1/3", "4/2", "0.1", "1/0", "lowest")]
    assert found == [3, Fraction(1, 3), 2, Fraction(1, 10), "1/0", "lowest"]
    assert [fraction_from_0_to_1(text) for text in ("0", ".5", "1/2", "1")] == [0, Fraction(1, 2), Fraction(1, 2), 1]
    for text in ("-0.1", "1.01", "2", "x"):
        with pytest.raises(argparse.ArgumentTypeError, match="expected a number from 0 to 1"):
            fraction_from_0_to_1(text)


def test_memory_is_given_in_gibibytes():
    assert [memory_bytes(text) for text in ("0.5", "16", "1e12")] == [2**29, Limits().memory_bytes, 2**60]
    assert Limits().memory_bytes == 17_179_869_184


def test_a_condition_is_written_with_all_parentheses():
    condition = initial_condition("x = 0 & y = 1 | z > 2")
    assert condition_text(condition) == "((x = 0) & (y = 1)) | (z > 2)"
    assert initial_condition(condition_text(condition)) == condition
