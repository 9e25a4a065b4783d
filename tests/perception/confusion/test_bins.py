"""Bins: edges, values, bearings and their product, from text and by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_counter import Object, detection_set

from verifier.base.errors import UsageError
from verifier.perception.confusion.bins import Bins, Variable, parse_edges, parse_variable
from verifier.perception.confusion.places import bearing_deg, layout


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("0,10,20", (0, 10, 20)),
        ("0, 5.5 ,inf", (0, 5.5, math.inf)),
        ("0..30:10", (0, 10, 20, 30)),
        ("0..0.3:0.1,1,inf", (0, 0.1, 0.2, 0.3, 1, math.inf)),
        ("0..10:5,20..40:20", (0, 5, 10, 20, 40)),
        ("0,10", (0, 10)),
        ("0..100000:1", tuple(range(100_001))),
    ],
)
def test_edges_from_text(text, edges):
    assert parse_edges(text) == edges


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "0,0",
        "10,0",
        "0,x",
        "0,nan",
        "0..x:1",
        "0..10:3",
        "0..10:0",
        "0..inf:1",
        "0..100001:1",
        "0..2e-13:1e-13",
    ],
)
def test_edges_that_make_no_bins_are_refused(text):
    with pytest.raises(UsageError, match="--bins"):
        parse_edges(text)


@pytest.mark.parametrize("text", ["0..10:0", "0..10:inf", "0..10:-1", "5..5:1", "10..0:1", "0..inf:1", "-inf..0:1"])
def test_steps_lead_from_a_lower_to_a_higher_number(text):
    with pytest.raises(UsageError, match=r"expected LOW\.\.HIGH:STEP with LOW < HIGH and STEP > 0"):
        parse_edges(text)


def test_variables_from_text():
    assert parse_variable("occluded=0,1,2").groups == (("0", ("0",)), ("1", ("1",)), ("2", ("2",)))
    assert parse_variable("occluded = low:0|1, high:2").groups == (("low", ("0", "1")), ("high", ("2",)))
    assert parse_variable("speed=edges:0,2,inf").edges == (0, 2, math.inf)
    assert parse_variable("sequence=night:00*,day:*").scope == "frame"
    assert parse_variable("bearing_deg=edges:-180,0,180").scope == "place"


@pytest.mark.parametrize(
    "text",
    ["occluded", "=1", "a=", "a=0,0", "a=x:", "a=edges:1", "1a=0", "counts=0", "distance_m=0", "sequence=edges:0,1"],
)
def test_variables_that_make_no_bins_are_refused(text):
    how = "--by: expected NAME=VALUE" if text in ("occluded", "=1", "a=") else "variable|edges"
    with pytest.raises(UsageError, match=how):
        parse_variable(text)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({}, "needs either edges or values"),
        ({"edges": (0.0, 1.0), "groups": (("a", ("1",)),)}, "needs either edges or values"),
        ({"edges": (1.0,)}, "at least two increasing edges"),
        ({"groups": (("a", ("1",)), ("a", ("2",)))}, "occurs twice, or has no name or no value"),
        ({"groups": (("", ("1",)),)}, "occurs twice, or has no name or no value"),
        ({"groups": (("a", ("1", "")), ("b", ("2",)))}, "occurs twice, or has no name or no value"),
        ({"groups": (("a", ("1",)), ("b", ()))}, "occurs twice, or has no name or no value"),
        ({"name": "true", "edges": (0.0, 1.0)}, "'true' cannot be the name of a variable"),
        ({"name": "a b", "edges": (0.0, 1.0)}, "'a b' cannot be the name of a variable"),
        ({"name": "sequence", "edges": (0.0, 1.0)}, "has no numbers: give values"),
    ],
)
def test_variables_that_cannot_be_say_why(parts, words):
    with pytest.raises(UsageError, match=words):
        Variable(**{"name": "x", **parts})


def test_values_fall_into_their_bins():
    speed = Variable("speed", edges=(0.0, 2.0, math.inf))
    assert speed.bins_of(np.array([0.0, 1.9, 2.0, 1e9, -0.1, np.nan])).tolist() == [0, 0, 1, 1, -1, -1]
    near = Variable("speed", edges=(0.0, 2.0, 5.0))
    assert near.bins_of(np.array([4.9, 5.0, 1e9, np.inf, -np.inf, np.nan])).tolist() == [1, -1, -1, -1, -1, -1]
    occluded = Variable("occluded", groups=(("low", ("0", "1")), ("high", ("2",))))
    assert occluded.bins_of(np.array([0, 2, 1, 3])).tolist() == [0, 1, 0, -1]
    assert occluded.bins_of(np.array([0.0, 2.0, np.nan])).tolist() == [0, 1, -1]
    assert occluded.bins_of(np.array([])).tolist() == []
    assert near.bins_of(np.array([True, False])).tolist() == [0, 0]
    weather = Variable("weather", groups=(("wet", ("rain*", "snow")), ("rest", ("*",))))
    assert weather.bins_of(np.array(["rainy", "dry", "snow"])).tolist() == [0, 1, 0]
    with pytest.raises(UsageError, match="'speed' is text"):
        speed.bins_of(np.array(["fast"]))


def test_bins_are_found_by_name_and_by_value():
    speed = Variable("speed", edges=(0.0, 2.0, math.inf))
    assert [speed.bin_named(text) for text in ("[0, 2)", "1.5", "2")] == [0, 0, 1]
    occluded = Variable("occluded", groups=(("low", ("0", "1")), ("high", ("2",))))
    assert [occluded.bin_named(text) for text in ("low", "1", "2")] == [0, 0, 1]
    for text in ("-1", "nan", "inf", "fast"):
        with pytest.raises(UsageError, match=rf"no bin for '{text}'; it has: \[0, 2\), \[2, inf\)"):
            speed.bin_named(text)
    with pytest.raises(UsageError, match="no bin for '3'; it has: low, high"):
        occluded.bin_named("3")
    weather = Variable("weather", groups=(("wet", ("rain*", "snow")), ("rest", ("s?n", "5*"))))
    assert [weather.bin_named(text) for text in ("rainy", "snow", "sun", "rest")] == [0, 0, 1, 1]


def test_distance_bins_are_half_open():
    bins = Bins((0.0, 10.0, 20.0))
    assert bins.distance_bins(np.array([0, 9.99, 10, 19.99, 20, np.nan])).tolist() == [0, 0, 1, 1, -1, -1]


def test_the_product_counts_with_distance_slowest():
    occluded = Variable("occluded", groups=(("0", ("0",)), ("1", ("1",))))
    drive = Variable("sequence", groups=(("a", ("A",)), ("b", ("B",)), ("c", ("C",))))
    bins = Bins((0.0, 10.0, 20.0), (occluded, drive))
    assert (bins.count, bins.shape, bins.of_objects) == (12, (2, 2, 3), (False, True, False))
    assert bins.text(0) == "[0, 10) m, occluded 0, sequence a"
    assert bins.text(7) == "[10, 20) m, occluded 0, sequence b"
    assert bins.distance_part(np.arange(12)).tolist() == [0] * 6 + [1] * 6
    places = layout(bins)
    assert places.places.tolist() == [0, 1, 2, 6, 7, 8]
    assert places.spread.tolist() == [[0, 3], [1, 4], [2, 5], [6, 9], [7, 10], [8, 11]]
    assert places.frame_part.tolist() == [0, 1, 2, 0, 1, 2]


def test_bins_are_refused_when_they_overlap_or_are_too_many():
    speed = Variable("speed", edges=(0.0, 1.0))
    for edges, variables, words in (
        ((0.0, 10.0, 10.0), (), "increasing edges"),
        ((-1.0, 10.0), (), "increasing edges"),
        ((5.0,), (), "increasing edges"),
        ((0.0, 10.0), (speed, speed), "named twice"),
        (tuple(map(float, range(100_002))), (), "100001 bins"),
    ):
        with pytest.raises(UsageError, match=words):
            Bins(edges, variables)
    assert Bins(tuple(map(float, range(100_001)))).count == 100_000


@given(st.integers(-180, 179))
def test_bearings_turn_to_the_left(degrees):
    place = Object(0, "ped", 10 * math.cos(math.radians(degrees)), 10 * math.sin(math.radians(degrees)))
    (found,) = bearing_deg(detection_set(["A"], [place], []).annotations).tolist()
    assert -180 <= found < 180
    assert math.isclose(found, degrees, abs_tol=1e-9) or (degrees == -180 and math.isclose(found, 180, abs_tol=1e-9))


def test_straight_behind_is_minus_180():
    assert bearing_deg(detection_set(["A"], [Object(0, "ped", -5, 0)], []).annotations).tolist() == [-180]
