"""What may reach Storm's parser, and what never may."""

from pathlib import Path

import pytest
from small_chains import chain_of

from verifier.checking.process import _expected_bytes
from verifier.checking.storm import _address_space, formula_labels


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("true", set()),
        ('"p0"', {"p0"}),
        ('!"p0"', {"p0"}),
        ('(!("p0"))', {"p0"}),
        ('F "a"', {"a"}),
        ('G (!("a"))', {"a"}),
        ('X (X ("a"))', {"a"}),
        ('X X F "a"', {"a"}),
        ('("a") U ("b")', {"a", "b"}),
        ('"a" U<=12 "b"', {"a", "b"}),
        ('"a" U[0,5] "b"', {"a", "b"}),
        ('F<=3 "a"', {"a"}),
        ('F<3 "a"', {"a"}),
        ('F=3 "a"', {"a"}),
        ('F[2, 7] "a"', {"a"}),
        ('(F "a") & (G "b") & "c"', {"a", "b", "c"}),
        ('("a" | "b") | (!"c")', {"a", "b", "c"}),
        ('G ((!("a")) | (F ("b")))', {"a", "b"}),
        ('"trueish" | "F"', {"trueish", "F"}),
    ],
)
def test_the_safe_subset_is_accepted_and_its_labels_are_found(text, labels):
    assert formula_labels(text) == labels


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        '"a" || "b"',  # conditional probability in Storm
        '"a" | | "b"',
        '"a" => "b"',
        '"a" -> "b"',
        'P=? [ F "a" ]',
        'F "a" ], filter(max, P=? [ F "b" ], true)',
        'filter(avg, P=? [ F "a" ], "b")',
        'F "a"; P=? [ F "b" ]',
        'F "a"\nP=? [ F "b" ]',
        'F "a"\t',
        'F "a" // comment',
        'F "a b"',
        'F "a"b"',
        "F 'a'",
        "F a",
        'F "é"',
        "x = 3",
        'R{"cost"}=? [ F "a" ]',
        'multi(F "a", F "b")',
        'HOA: {"file.hoa", "p0" -> "a"}',
        "1",
        "truefalse",
        'FG "a"',
        'G<=3 "a"',
        'F>=3 "a"',
        'F<=-3 "a"',
        'F<=1e3 "a"',
        'F<=9999999999999999999 "a"',
        'F{"cost"}<=3 "a"',
        '("a"',
        '"a")',
        "()",
        '"a" "b"',
        '"a" &',
        '& "a"',
        '"a" !',
        "F",
        '"a" U',
    ],
)
def test_everything_else_is_refused(text):
    with pytest.raises(ValueError, match=r"unexpected text|unbalanced|missing parentheses|incomplete"):
        formula_labels(text)


@pytest.mark.parametrize(
    "text",
    [
        'F "a" & G "b"',  # Storm reads F ("a" & G "b")
        '! "a" & F "b"',
        '"a" & "b" | "c"',
        '"a" U "b" U "c"',
        '"a" U "b" & "c"',
        '"a" & F "b"',
        'X "a" U "b"',
    ],
)
def test_text_whose_meaning_depends_on_precedence_is_refused(text):
    with pytest.raises(ValueError, match="missing parentheses"):
        formula_labels(text)


def test_deep_nesting_needs_no_recursion():
    depth = 200_000
    assert formula_labels("(" * depth + '"a"' + ")" * depth) == {"a"}


def test_the_archive_of_a_model_is_expected_to_have_a_size():
    # 5 transitions of 16 bytes, of 9 words with fractions; 3 states of 32 bytes and one for each of 4 labels.
    model = chain_of([{0: 0.5, 1: 0.5}, {1: 0.5, 2: 0.5}, {2: 1}])
    assert _expected_bytes(model, 4, False) == 5 * 16 + 3 * 36 + 2**20
    assert _expected_bytes(model, 4, True) == 5 * 72 + 3 * 36 + 2**20


def test_the_address_space_is_what_the_system_says():
    size = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmSize:"))
    assert _address_space() == pytest.approx(int(size.split()[1]) * 1024, rel=0.05)
