"""Text tables without a header: what fits a layout, and where the first field stands that does not."""

import math

import numpy as np
import pytest

from verifier.base.errors import InputError
from verifier.perception.detections.sources import Member
from verifier.perception.detections.texttables import Layout, _exact_floats, read_tables

KINDS = {"name": "text", "count": "whole", "x": "number", "y": "finite"}
BLANKS, COMMAS = Layout(KINDS), Layout(KINDS, ",")


def read(*texts, layouts=(BLANKS, COMMAS)):
    names = (f"{letter}.txt" for letter in "abc")
    return read_tables([Member(n, n[0], "", t.encode()) for n, t in zip(names, texts, strict=False)], layouts)


def test_rows_of_several_files():
    """Blank lines and blanks at the ends are nothing; numbers of a column may be none where it says so."""
    table = read("car 1 0.5 2\n\n  van -2.0 nan 1e3\r\n", "", "car 999999999999999 -inf .5")
    assert [table.names["name"][code] for code in table.columns["name"]] == ["car", "van", "car"]
    assert table.columns["count"].tolist() == [1, -2, 999999999999999]
    assert np.array_equal(table.columns["x"], [0.5, math.nan, -math.inf], equal_nan=True)
    assert table.columns["y"].tolist() == [2, 1000, 0.5]
    assert (table.line.tolist(), table.file.tolist()) == ([1, 3, 1], [0, 0, 2])
    assert table.stack("y", "count").tolist() == [[2, 1], [1000, -2], [0.5, 999999999999999]]
    table = read('a b,1,NaN, 3\n"c",+2,-nan,4\n')
    assert [table.names["name"][code] for code in table.columns["name"]] == ["a b", '"c"']
    assert table.columns["count"].tolist() == [1, 2]
    table = read("NA 1 1 3\nnull 2 1 3\nTrue 2 1 3")
    assert [table.names["name"][code] for code in table.columns["name"]] == ["NA", "null", "True"]
    assert read("NA 1e3 1 3").columns["count"].tolist() == [1000]
    none = read("\n", " \n")
    assert (len(none), none.names) == (0, {"name": ()})
    assert {name: column.tolist() for name, column in none.columns.items()} == {name: [] for name in KINDS}
    assert (none.columns["name"].dtype, none.columns["y"].dtype) == (np.int64, np.float64)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a 1 2"], "a.txt:1: found 3 columns, expected 4 separated by blanks or 4 separated by ','"),
        (["\n", "\na,1,2"], "b.txt:2: found 3 columns, expected 4 separated by blanks or 4 separated by ','"),
        (["a 1 2 3\nb 1 2"], "a.txt:2: found 3 columns, expected 4"),
        (["a 1 2 3\n\u00a0"], "a.txt:2: found 0 columns, expected 4"),
        (["a 1 2 3\nb 1 2 3 4"], "a.txt:2: found 5 columns, expected 4"),
        (["a 1 2 3", "b 1 2 3\n\nb 1 2 3 4"], "b.txt:3: found 5 columns, expected 4"),
        (["a 1 2 3\nb  1.5 2 3"], "a.txt:2:4: count: expected a whole number, got '1.5'"),
        (["a 1 2 3\nb 1000000000000000 2 3"], "a.txt:2:3: count: expected a whole number, got '1000000000000000'"),
        (["a 1 2 3\nb inf 2 3"], "a.txt:2:3: count: expected a whole number, got 'inf'"),
        (["a 1 2 3\nb 1 1 inf"], "a.txt:2:7: y: expected a finite number, got 'inf'"),
        (["a 1 2 3\nb 1 1 nan"], "a.txt:2:7: y: expected a finite number, got 'nan'"),
        (["a 1 2 3\nb 1 0x1 3"], "a.txt:2:5: x: expected a number, got '0x1'"),
        (["a 1 True 3\nb 1 False 3"], "a.txt:1:5: x: expected a number, got 'True'"),
        (["a 1 2 TRUE"], "a.txt:1:7: y: expected a finite number, got 'TRUE'"),
        (["a 1.5 2 3"], "a.txt:1:3: count: expected a whole number, got '1.5'"),
        (["a 1 NA 3"], "a.txt:1:5: x: expected a number, got 'NA'"),
        (["a 1 2 3\nb 1 none 3"], "a.txt:2:5: x: expected a number, got 'none'"),
        (["a,1,2,3\nb,1,1,x"], "a.txt:2:7: y: expected a finite number, got 'x'"),
        (["a,1,2,3\nb,,1,3"], "a.txt:2:3: count: expected a whole number, got ''"),
        (["a,1,2,3\n b, 1 ,1 ,"], "a.txt:2:11: y: expected a finite number, got ''"),
    ],
)
def test_the_first_field_that_does_not_fit_is_named(texts, message):
    with pytest.raises(InputError) as caught:
        read(*texts)
    assert str(caught.value).startswith(message + "\n")


@pytest.mark.parametrize(
    ("version", "exact"), [("2.2.3", False), ("3.0.9", False), ("3.1.0", True), ("3.2", True), ("4.0", True)]
)
def test_pandas_rounds_decimals_to_the_nearest_double(version, exact):
    assert _exact_floats(version) == ({} if exact else {"float_precision": "round_trip"})
