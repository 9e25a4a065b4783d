"""Numbers and names in a report: never towards a better verdict, never two things under one name."""

import re
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from verifier.base.numbers import decimal_text, exact_or_number, interval_text, number_text, rounded
from verifier.study.results import Target
from verifier.telling.blocks import name_text
from verifier.telling.grounds import asked_text, long_names
from verifier.telling.html import escaped
from verifier.telling.markdown import escaped as in_markdown
from verifier.telling.pictures import Line, chart, plot, ruler

PROBABILITIES = st.floats(0, 1, allow_nan=False)
NEAR_ONE = st.floats(0, 1e-3).map(lambda gap: 1 - gap)
TARGETS = st.integers(0, 10_000).map(lambda k: Fraction(k, 10_000))


@given(PROBABILITIES | NEAR_ONE)
@example(0.3)
@example(1 - 2**-53)
@example(5e-324)
def test_intervals_are_rounded_outwards(value):
    """An interval that is shown holds the one that was found."""
    low, high = (Decimal(each) for each in interval_text(value, value)[1:-1].split(", "))
    assert low <= Decimal(repr(value)) <= high


@given(PROBABILITIES | NEAR_ONE, st.booleans())
def test_a_rounded_end_keeps_three_digits_of_what_it_is_away_from_0_and_1(value, up):
    shown, exact = Fraction(rounded(value, up=up)), Fraction(repr(value))
    away = min(exact, 1 - exact)
    assert abs(shown - exact) <= max(away / 100, Fraction(1, 10**15))


@given(PROBABILITIES | NEAR_ONE, st.booleans(), TARGETS)
@example(0.94999961, True, Fraction(19, 20))
@example(0.9500004, False, Fraction(19, 20))
def test_a_rounded_end_stays_on_its_side_of_the_target(value, up, target):
    shown, exact = Fraction(rounded(value, up=up, target=target)), Fraction(repr(value))
    assert (shown > target) - (shown < target) == (exact > target) - (exact < target)


@given(PROBABILITIES | NEAR_ONE, TARGETS)
def test_a_probability_stays_on_its_side_of_the_target_and_of_1(value, target):
    shown = Fraction(number_text(value, target))
    assert (shown > target) - (shown < target) == (Fraction(value) > target) - (Fraction(value) < target)
    assert (shown == 1) == (value == 1)


@pytest.mark.parametrize(
    ("number", "exact", "text"),
    [
        (0.75, Fraction(3, 4), "3/4 = 0.75"),
        (1.0000001, None, "1.0000001"),  # a gain beyond 1 is not shown as 1
        (1.0, Fraction(1), "1"),
        (1 / 3, None, "0.333333"),
        (0.9999999999, None, "0.9999999999"),
        (1 / 3, Fraction(10**30 // 3, 10**30), "0.333333"),
    ],
)
def test_probabilities_as_texts(number, exact, text):
    assert exact_or_number(number, exact) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [("19/20", "0.95"), ("1/3", "1/3"), ("1", "1"), ("0", "0"), ("-1/2", "-0.5"), ("0.9500", "0.95"),
     ("1/1000000000000", "0.000000000001"), ("1/10000000000000", "1/10000000000000")],
)  # fmt: skip
def test_targets_as_texts(number, text):
    assert decimal_text(number) == text


def test_targets_in_words():
    words = [asked_text(Target(sign, Fraction(1, 2))) for sign in (">=", ">", "<=", "<")]
    assert words == ["at least 0.5", "more than 0.5", "at most 0.5", "less than 0.5"]


@given(st.text(min_size=100, max_size=300), st.text(min_size=100, max_size=300))
def test_different_names_stay_different(first, second):
    assert (name_text(first) == name_text(second)) == (first == second)
    assert len(name_text(first)) <= 160


def test_long_names_are_found_wherever_they_stand():
    long = "n" * 200
    content = {
        "a": [{"name": long}],
        long + "k": 1,
        "formula": "f" * 500,
        "remarks": ["r" * 500],
        "numbers": [1.0, 2.0],
        "checksums": {"a": "0123456789abcdef" * 70},  # nowhere shown, so nowhere shortened
    }
    assert list(long_names(content)) == [long, long + "k"]


@given(st.text())
def test_escaped_text_has_no_markup_no_control_and_no_direction(text):
    shown = escaped(text)
    left = shown.replace("<bdi>", "").replace("</bdi>", "")
    assert not set(left) & set("<>\"'")
    assert left.isprintable()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("a\u202eb\x1b[2J", "a\\u202eb\\x1b[2J"),
        ("שלום עולם", "<bdi>שלום עולם</bdi>"),
        ("ped שלום obs", "ped <bdi>שלום</bdi> obs"),
        ("größe m²", "größe m²"),
    ],
)
def test_hostile_texts_as_html(text, shown):
    assert escaped(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[a](http://x)", r"\[a\](http\://x)"),
        ("<img src=x>", r"\<img src=x\>"),
        ("a|b\nc", r"a\|b\\nc"),
        ("# title", r"\# title"),
        ("1. item", r"1\. item"),
        ("- item", r"\- item"),
        ("www.example.org", r"www\.example.org"),
        ("`code` *b* _i_ ~s~ $x$ &lt; @me", r"\`code\` \*b\* \_i\_ \~s\~ \$x\$ \&lt; \@me"),
    ],
)
def test_hostile_texts_as_markdown(text, shown):
    assert in_markdown(text) == shown


def test_a_map_is_drawn_in_few_shapes_and_blocks_of_cells_are_as_bad_as_their_worst():
    """300 columns are drawn as 100 blocks of three; one bad cell makes its block bad."""
    table = np.ones((300, 2))
    table[150, 0] = 0.0
    ticks = (range(300), range(2))
    low = chart(table, ticks, ("x", "v"), "P", worst_is_largest=False)
    assert low.count('fill="#440154"') == 2  # the block, and the legend
    high = chart(table, ticks, ("x", "v"), "P", worst_is_largest=True)
    assert high.count('fill="#440154"') == 1
    assert len(low) < 4000


def test_pictures_escape_what_they_are_told():
    told = ruler(0.5, None, None, None, "<script>\"'\u202e")
    assert "<script>" not in told
    assert 'aria-label="&lt;script&gt;&quot;&#x27;\\u202e"' in told


def test_a_ruler_places_its_marks_on_the_scale():
    """From 20 to 420 is 0 to 1: P = 1/2 at 220, the target 3/4 at 320, the bar from 1/4 (120), 240 wide."""
    told = ruler(0.5, None, (0.25, 0.85), 0.75, "P")
    assert '<circle cx="220"' in told
    assert 'd="M320 20V58"' in told
    assert '<rect x="120" y="31" width="240"' in told


def test_lines_differ_in_dashes_too_and_numbers_along_the_axis_do_not_touch():
    lines = [Line(f"line {k}", [(0.2, 0.1 * k), (0.9, 0.5), (0.95, 0.5), (1.0, 0.5)]) for k in range(10)]
    told = plot(lines, ("x", "y"), "P")
    legend = re.findall(
        r'<path d="M60 \d+h34" stroke="(#\w+)" stroke-width="2.5"(?: stroke-dasharray="([\d ]+)")?/>', told
    )
    assert len(set(legend)) == len(legend) == 10
    assert all(first[1] != second[1] for first, second in pairwise(legend))
    assert ">0.2<" in told
    assert ">0.9<" in told
    assert ">0.95<" not in told


def test_a_map_says_its_range_to_those_who_do_not_see_it():
    table = np.array([[0.25, np.nan], [0.5, 0.75]])
    assert 'aria-label="P by x: from 0.25 to 0.75"' in chart(
        table, (range(2), range(2)), ("x", "v"), "P by x", worst_is_largest=True
    )
    nothing = chart(np.full((1, 1), np.nan), ([0], [0]), ("x", "v"), "P by x", worst_is_largest=True)
    assert 'aria-label="P by x"' in nothing
