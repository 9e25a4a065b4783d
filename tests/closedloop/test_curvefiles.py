"""Files of curves: written and read back, checked against their schema, and refused with the place of the fault."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typed_documents import read_back

from verifier.base.errors import InputError, one_line
from verifier.closedloop.comparison import NamedCurve
from verifier.closedloop.curvefiles import curves_csv, curves_json, read_curves
from verifier.closedloop.curves import TradeOffCurve

CURVES = [
    NamedCurve("closed_loop", "ssd, small", "baseline", TradeOffCurve([1e-4, 0.1, 1], [0, 1 / 3, 1], [1, 0.7, 0.1])),
    NamedCurve("closed_loop", "ssd, small", 'haze "98 m"', TradeOffCurve([1e-4, 1], [0, 0.5], [1, 0]), "severe"),
]


def parts(found):
    return [
        (each.metric, each.detector, each.condition, each.severity, *(
            getattr(each.curve, key).tolist() for key in ("sensitivity", "safety", "efficiency")
        ))
        for each in found
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "text"), [("a.json", curves_json(CURVES, "T")), ("a.csv", curves_csv(CURVES))])
def test_what_is_written_is_read_back(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    found = read_curves(tmp_path / name)
    assert parts(found.curves) == parts(CURVES)
    assert found.title == ("T" if name.endswith("json") else "")
    assert len(found.sha256) == 64


def test_the_document_fits_its_schema():
    read_back(json.loads(curves_json(CURVES)))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6))
def test_numbers_survive_exactly(tmp_path_factory, pairs):
    safety, efficiency = zip(*pairs, strict=True)
    curve = NamedCurve("m", "d", "baseline", TradeOffCurve(np.arange(len(pairs)) / 7, safety, efficiency))
    folder = tmp_path_factory.mktemp("curves")
    for name, text in (("a.json", curves_json([curve])), ("a.csv", curves_csv([curve]))):
        (folder / name).write_text(text)
        assert parts(read_curves(folder / name).curves) == parts([curve])


def test_columns_in_any_order_and_without_a_metric(tmp_path):
    (tmp_path / "a.csv").write_text(
        "safety,efficiency, sensitivity,condition,detector\n1,0,2,baseline,a\n\n0,1,1,baseline,a\n"
    )
    (found,) = read_curves(tmp_path / "a.csv").curves
    assert (found.metric, found.severity) == ("trade_off", "")
    assert found.curve.sensitivity.tolist() == [2, 1]


def entry(**changes):
    names = {"detector": "a", "condition": "baseline"}
    return {**names, "sensitivity": [1, 2], "safety": [0, 1], "efficiency": [1, 0], **changes}


def document(*entries, **changes):
    return {"schema": "verifier.curves", "version": 1, "curves": list(entries), **changes}


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (document(entry(), version=2), "/version: not a document of schema verifier.curves: 1 was expected"),
        (document(), "/curves: not a document of schema verifier.curves: tuple should have at least 1 item"),
        (document(entry(saftey=[1])), "properties are not allowed ('saftey' was unexpected)"),
        (document(entry(detector=" ")), "/curves/0: detector: expected a name, got ' '"),
        (document(entry(severity="bad")), "/curves/0: severity: expected mild, severe or nothing, got 'bad'"),
        (
            document(entry(safety=[0, 1.5])),
            "/curves/0/safety/1: not a document of schema verifier.curves: input should be less than or equal to 1",
        ),
        (document(entry(safety=[0])), "/curves/0: the curve here: safety has shape"),
        (document(entry(sensitivity=[1, 1])), "/curves/0: the curve here: a sensitivity occurs twice"),
    ],
)
def test_documents_that_are_refused(tmp_path, found, message):
    (tmp_path / "a.json").write_text(json.dumps(found))
    with pytest.raises(InputError) as refused:
        read_curves(tmp_path / "a.json")
    assert message in str(refused.value)
    assert "a.json" in str(refused.value)


HEADER = "detector,condition,sensitivity,safety,efficiency\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER.replace("\n", ",note\n"), "a.csv:1: unknown column 'note'"),
        (HEADER, "there is no curve in it"),
        (
            HEADER + "a,baseline,1,0,1\na,baseline,1,1,1\n",
            "a.csv:2: the curve here: a sensitivity occurs",
        ),
        (
            HEADER.replace("\n", ",severity\n") + "a,fog,1,0,1,Mild\n",
            "a.csv:2: severity: expected mild, severe or nothing, got 'Mild'",
        ),
        (HEADER + "a, ,1,0,1\n", "a.csv:2: condition: expected a name, got ''"),
        (HEADER + "a,baseline,1,2,1\n", "a.csv:2: the curve here: safety: a value lies outside"),
    ],
)
def test_tables_that_are_refused(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError) as refused:
        read_curves(tmp_path / "a.csv")
    assert message in str(refused.value)


def test_remarks_travel_with_the_points(tmp_path):
    """More remarks than points, and of several lines: all of them come back, and the points are the same."""
    for remarks in ((), ("closed_loop: not defined, no log",), ("a\nb", "c", "d", "e", "f", "g", 'of "h", too')):
        (tmp_path / "a.csv").write_text(curves_csv(CURVES, remarks))
        found = read_curves(tmp_path / "a.csv")
        assert parts(found.curves) == parts(CURVES)
        assert "; ".join(found.remarks).split("; ") == [one_line(each) for each in remarks] or not remarks
        assert len(found.remarks) == min(len(remarks), 5)  # of five points
