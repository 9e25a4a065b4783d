"""What is written from a dataclass is read into an equal one, and nothing else is accepted."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

import jsonschema
import pytest

from verifier.base.documents import (
    Derives,
    Exact,
    InputFile,
    Limits,
    MisfitError,
    Share,
    derived,
    json_values,
    read_document,
    schema_of,
)
from verifier.base.errors import InputError
from verifier.base.files import document_text
from verifier.base.numbers import fraction_of, fraction_text


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Step:
    at: Annotated[float, Limits(gt=0)]
    count: int
    share: Share | None = None


@dataclass(frozen=True)
class TripInput(InputFile):
    role: Literal["map", "car"]


@dataclass(frozen=True, kw_only=True)
class Trip:
    schema: ClassVar[str] = "verifier.trip"
    version: ClassVar[int] = 2
    command: tuple[str, ...] = ()
    from_: str
    colour: Colour
    inputs: tuple[TripInput, ...]
    steps: Annotated[tuple[Step, ...], Limits(min_length=1)]
    cells: Mapping[str, tuple[int | None, ...]]
    level: float | Literal["inf"] | None
    anything: Any
    kept: bool


TRIP = Trip(
    from_="here",
    colour=Colour.RED,
    inputs=(TripInput("map", "a.json", "0" * 64),),
    steps=(Step(1.5, 2), Step(2.0, 3, 0.25)),
    cells={"a/b": (1, None)},
    level="inf",
    anything={"x": [1, "two"]},
    kept=True,
)


def test_keys_are_fields_in_their_order_and_defaults_are_left_out():
    assert list(json_values(TRIP).items()) == [
        ("schema", "verifier.trip"),
        ("version", 2),
        ("from", "here"),
        ("colour", "red"),
        ("inputs", [{"role": "map", "name": "a.json", "sha256": "0" * 64}]),
        ("steps", [{"at": 1.5, "count": 2}, {"at": 2.0, "count": 3, "share": 0.25}]),
        ("cells", {"a/b": [1, None]}),
        ("level", "inf"),
        ("anything", {"x": [1, "two"]}),
        ("kept", True),
    ]
    assert list(json_values(replace(TRIP, command=("verify", "trip"))))[:3] == ["schema", "version", "command"]


@pytest.mark.parametrize("trip", [TRIP, replace(TRIP, command=("verify",), level=None), replace(TRIP, level=0.5)])
def test_what_is_written_is_read_as_it_was(trip):
    assert read_document(Trip, json.loads(document_text(trip)), "trip.json") == trip
    jsonschema.validate(json.loads(document_text(trip)), schema_of(Trip))


def test_nan_is_not_written():
    with pytest.raises(ValueError, match="Out of range"):
        document_text(replace(TRIP, anything=float("nan")))


WRONG = {
    "/steps/0/at: .*'1.5' is not of type 'number'": {"steps": [{"at": "1.5", "count": 2}]},
    "/steps/0/at: .*True is not of type 'number'": {"steps": [{"at": True, "count": 2}]},
    "/steps/0/at: .*nan is not of type 'number'": {"steps": [{"at": float("nan"), "count": 2}]},
    "/steps/0/at: .*inf is not of type 'number'": {"steps": [{"at": float("inf"), "count": 2}]},
    "/steps/0/at: .*input should be greater than 0, got 0": {"steps": [{"at": 0, "count": 2}]},
    "/steps/0/count: .*3.0 is not of type 'integer'": {"steps": [{"at": 1, "count": 3.0}]},
    "/steps/0: .*'count' is a required property": {"steps": [{"at": 1}]},
    r"/steps/0: .*\('counts' was unexpected\)": {"steps": [{"at": 1, "count": 1, "counts": 1}]},
    "/steps/0/share: .*less than or equal to 1, got 2": {"steps": [{"at": 1, "count": 1, "share": 2}]},
    "/steps: .*at least 1 item": {"steps": []},
    "/steps: .*is not of type 'array'": {"steps": {}},
    "/cells/a~1b/0: .*'1' is not of type 'integer'": {"cells": {"a/b": ["1"]}},
    "/colour: .*'red' or 'blue', got 'green'": {"colour": "green"},
    "/level: .*": {"level": "high"},
    "/inputs/0/role: .*'map' or 'car', got 'spec'": {"inputs": [{"role": "spec", "name": "", "sha256": "0" * 64}]},
    "/inputs/0/sha256: .*pattern": {"inputs": [{"role": "map", "name": "", "sha256": "0" * 63}]},
    "/kept: .*1 is not of type 'boolean'": {"kept": 1},
    "/from: .*None is not of type 'string'": {"from": None},
    "/: .*'from_' was unexpected": {"from_": "here"},
    "/version: .*2 was expected": {"version": 2.0},
    "/schema: .*'verifier.trip' was expected": {"schema": "verifier.run"},
    "/anything/x/1: .*expected Unicode text": {"anything": {"x": [1, "\ud800"]}},
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_not_written_is_refused_naming_the_element(message):
    with pytest.raises(InputError, match=f"(?s)trip.json: {message}"):
        read_document(Trip, json_values(TRIP) | WRONG[message], "trip.json")


@pytest.mark.parametrize("key", ["schema", "version", "from", "steps"])
def test_every_key_without_a_default_is_required(key):
    content = {name: value for name, value in json_values(TRIP).items() if name != key}
    with pytest.raises(InputError, match=f"trip.json: /: .*'{key}' is a required property"):
        read_document(Trip, content, "trip.json")


@pytest.mark.parametrize("content", [None, 3, "x", [], [1]])
def test_other_json_is_no_document(content):
    with pytest.raises(InputError, match="is not of type 'object'"):
        read_document(Trip, content, "trip.json")


@pytest.mark.parametrize("kind", [dict[str, str], Step])
def test_null_is_no_part_of_a_document(kind):
    with pytest.raises(InputError, match=r"trip\.json: /steps/0: .*None is not of type 'object'"):
        read_document(kind, None, "trip.json", "/steps/0")


def test_the_schema_is_one_and_names_its_documents():
    schema = schema_of(Trip)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"] == "verifier.trip.v2"
    assert schema["properties"]["schema"] == {"const": "verifier.trip"}
    assert set(schema["required"]) == set(json_values(TRIP))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json_values(TRIP) | {"version": 1}, schema)


@dataclass(frozen=True, kw_only=True)
class Leg(Derives):
    total: float = derived(lambda leg: sum(leg.parts))
    parts: tuple[float, ...]
    chance: Exact | None = None


@dataclass(frozen=True, kw_only=True)
class Tour(Derives):
    legs: tuple[Leg, ...]
    longest: Leg = derived(lambda tour: max(tour.legs, key=lambda leg: leg.total))
    count: int = derived(lambda tour: len(tour.legs), refused=False)


TOUR = Tour(legs=(Leg(parts=(1.0, 2.0), chance=Fraction(-1, 3)), Leg(parts=(0.5,), chance=Fraction(10**5000, 7))))


def test_what_follows_is_written_and_a_fraction_is_a_text_of_any_length():
    assert json_values(TOUR)["longest"] == {"total": 3.0, "parts": [1.0, 2.0], "chance": "-1/3"}
    assert json_values(TOUR)["legs"][1]["chance"] == "1" + "0" * 5000 + "/7"
    assert json_values(TOUR)["count"] == 2
    assert read_document(Tour, json.loads(document_text(TOUR)), "tour.json") == TOUR
    schema = schema_of(Tour)
    jsonschema.validate(json.loads(document_text(TOUR)), schema)
    assert schema["required"] == ["legs", "longest", "count"]


@pytest.mark.parametrize(
    ("way", "value", "message"),
    [
        (
            ("legs", 0, "total"),
            4.0,
            "/legs/0/total: expected 3.0, which follows from the numbers beside it, found 4.0",
        ),
        (("longest", "chance"), "1/3", "/longest/chance: expected .-1/3., which follows from"),
        (("longest",), None, "/longest: .*None is not of type 'object'"),
        (("legs", 0, "chance"), "1/0", "/legs/0/chance: expected a fraction whose denominator is not 0"),
        (("legs", 0, "chance"), "0.5", "/legs/0/chance: .*pattern"),
        (("legs", 0, "chance"), 0.5, "/legs/0/chance: 0.5 is not of type 'string'"),
        (("legs", 0, "chance"), "1" * 1_000_001, "/legs/0/chance: expected a fraction of at most 1000000 characters"),
    ],
)
def test_what_does_not_follow_is_refused_naming_the_element(way, value, message):
    content = json_values(TOUR)
    *inner, last = way
    part = content
    for key in inner:
        part = part[key]
    part[last] = value
    with pytest.raises(InputError, match=f"(?s)tour.json: {message}"):
        read_document(Tour, content, "tour.json")


def test_what_follows_is_required_in_a_file_and_cannot_be_contradicted_by_a_value():
    content = json_values(TOUR)
    del content["legs"][1]["total"]
    with pytest.raises(InputError, match=r"/legs/1: .*'total' is a required property"):
        read_document(Tour, content, "tour.json")
    with pytest.raises(MisfitError, match=r"expected 0.5, which follows from the numbers beside it, found 1.5"):
        Leg(parts=(0.5,), total=1.5)
    # Who reads has to look where it is not refused at once.
    stated = read_document(Tour, json_values(TOUR) | {"count": 3}, "tour.json")
    assert (stated.count, stated.following()["count"]) == (3, 2)


def test_fractions_of_very_many_digits_are_read_as_they_are_written():
    for value in (Fraction(-(10**9001) - 7, 3**9000), Fraction(10**9001 + 7, 3**9000), Fraction(10**5000 + 3)):
        assert fraction_of(fraction_text(value)) == value
    for places in (2, 3998, 8000):
        text = "3" * places
        assert fraction_of(f"-1.{text}") == -1 - Fraction(10**places - 1, 3 * 10**places)
        assert fraction_of(f"0.{text}/{text}") == Fraction(1, 10**places)
    # An Arabic three is a digit, and no text of a document; and nobody writes out 10^(10^9).
    for text in ("x" * 5000, "\u0663" * 5000, "", "/3", "1/", "--1", "1.-5", "1e999999999", " 1", "1_0", "nan"):
        with pytest.raises(ValueError, match="expected a decimal number"):
            fraction_of(text)
