"""Formulas that PRISM and Storm read differently are told apart; checked with Storm's own parser."""

import pytest
import stormpy

from verifier.language.ltl import read_otherwise_by_prism


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        # text, and the grouping that we read; Storm's parser must see another formula exactly when we say so.
        ('G "a" | "b"', '(G "a") | "b"'),
        ('G "a" & G "b"', '(G "a") & (G "b")'),
        ('"a" & F "b"', '"a" & (F "b")'),
        ('"a" & "b" U "c"', '"a" & ("b" U "c")'),
        ('"a" U "b" | "c"', '("a" U "b") | "c"'),
        ('(G "a") | (F "b")', '(G "a") | (F "b")'),
        ('G ("a" | "b")', 'G ("a" | "b")'),
        ('G F "a" & "b"', '(G (F "a")) & "b"'),
        ('F<=3 "a" & "b"', '(F<=3 "a") & "b"'),
        ('X "a" | X "b"', '(X "a") | (X "b")'),
        ('! ("a" & "b") | G "c"', '(! ("a" & "b")) | (G "c")'),
    ],
)
def test_the_remark_is_made_exactly_where_storm_groups_differently(text, grouped):
    ours, theirs = (str(stormpy.parse_property(f"P=? [ {each} ]").get_raw_formula()) for each in (grouped, text))
    assert read_otherwise_by_prism(text) == (ours != theirs)
