"""What is written from a dataclass is read into an equal one, and nothing else is accepted."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Annotated, Any, ClassVar, Literal

import jsonschema
import pytest

from verifier.base.documents import InputFile, Limits, Share, json_values, read_document, schema_of
from verifier.base.errors import InputError
from verifier.base.files import document_text


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


def test_the_schema_is_one_and_names_its_documents():
    schema = schema_of(Trip)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"] == "verifier.trip.v2"
    assert schema["properties"]["schema"] == {"const": "verifier.trip"}
    assert set(schema["required"]) == set(json_values(TRIP))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json_values(TRIP) | {"version": 1}, schema)
